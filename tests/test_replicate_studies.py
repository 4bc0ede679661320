"""Four published studies re-run from their folders: every entry, mutated folders, and the command."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import triagestats as ts
from triagestats.cli import app
from triagestats.replicate.entry import Entry
from triagestats.results import TIDY_SCHEMA

Shared = Callable[[str], Path]

STUDIES = ("study1", "study2", "narrativeshield", "medsafe")
SOUND = ("yes", "within Monte Carlo error")
BLANK = [f"B3/biomistral/mcnemar_p/{pair}" for pair in ("alpha-beta", "alpha-gamma", "beta-gamma")]


@pytest.fixture(scope="module")
def folders(shared: Shared) -> dict[str, Path]:
    return {study: shared(f"replication/{study}/expected.json").parent for study in STUDIES}


@pytest.fixture(scope="module")
def expected(folders: dict[str, Path]) -> dict[str, Any]:
    return {study: json.loads((path / "expected.json").read_text()) for study, path in folders.items()}


@pytest.fixture(scope="module")
def runs(folders: dict[str, Path]) -> dict[str, ts.Replication]:
    return {study: ts.replicate_study(study, path) for study, path in folders.items()}  # type: ignore[arg-type]  # its names


def printed(loaded: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The list of published entries of an expected.json."""
    found: list[dict[str, Any]] = loaded.get("published") or loaded["published_checks"]
    return found


def by_id(run: ts.Replication) -> dict[str, Entry]:
    return {entry.id: entry for entry in run.entries}


def folder_of(
    path: Path,
    loaded: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    tables: Mapping[str, pl.DataFrame | Path],
    blocks: Sequence[str] = (),
) -> Path:
    """Write a folder of some entries, blocks and tables."""
    path.mkdir()
    name = "published" if "published" in loaded else "published_checks"
    kept = {block: loaded[block] for block in ("conventions", *blocks) if block in loaded}
    (path / "expected.json").write_text(json.dumps(kept | {name: list(entries)}))
    for file, table in tables.items():
        if isinstance(table, Path):
            (path / file).symlink_to(table)
        elif file.endswith(".gz"):
            (path / file).write_bytes(gzip.compress(table.write_csv().encode()))
        else:
            table.write_csv(path / file)
    return path


def read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


@pytest.mark.parametrize("study", STUDIES)
def test_every_entry_is_listed_once(
    study: str, runs: dict[str, ts.Replication], expected: dict[str, Any]
) -> None:
    ids = [entry.id for entry in runs[study].entries]
    assert len(ids) == len(set(ids))
    wanted = [entry["id"] for entry in printed(expected[study])]
    assert ids[: len(wanted)] == wanted


@pytest.mark.parametrize("study", STUDIES)
def test_what_the_folder_marks_as_matching_matches(study: str, runs: dict[str, ts.Replication]) -> None:
    run = runs[study]
    assert run.failed == ()
    marked = [entry for entry in run.entries if entry.marked]
    assert marked
    left = [entry.id for entry in marked if entry.match not in SOUND]
    assert left == (BLANK if study == "narrativeshield" else [])


@pytest.mark.parametrize("study", STUDIES)
def test_what_the_folder_marks_as_differing_differs(
    study: str, runs: dict[str, ts.Replication], expected: dict[str, Any]
) -> None:
    found = by_id(runs[study])
    for entry in printed(expected[study]):
        if entry["match"] in (False, "no"):
            assert found[entry["id"]].match == "no", entry["id"]
            assert found[entry["id"]].reason


@pytest.mark.parametrize("study", STUDIES)
def test_the_library_finds_what_the_folder_recomputed(study: str, runs: dict[str, ts.Replication]) -> None:
    compared = [entry for entry in runs[study].entries if entry.recomputed_agrees is not None]
    assert len(compared) > 0.8 * sum(entry.match != "not derivable" for entry in runs[study].entries)
    assert [entry.id for entry in compared if not entry.recomputed_agrees] == []


@pytest.mark.parametrize("study", STUDIES)
def test_reference_values_agree(study: str, runs: dict[str, ts.Replication]) -> None:
    kept = [entry for entry in runs[study].entries if entry.kind == "reference"]
    assert kept
    for entry in kept:
        if entry.match == "not derivable":
            assert entry.reason.startswith("rows are not in the folder: no answers of"), entry.id
        else:
            assert entry.match in SOUND, (entry.id, entry.reason)


@pytest.mark.parametrize("study", STUDIES)
def test_published_numbers_come_from_the_folder(
    study: str, runs: dict[str, ts.Replication], expected: dict[str, Any]
) -> None:
    found = by_id(runs[study])
    for entry in printed(expected[study]):
        wanted = entry["published"] if entry["published"] is not None else entry["recomputed"]
        assert found[entry["id"]].published == wanted


@pytest.mark.parametrize("study", STUDIES)
def test_entries_that_are_found_have_a_clustered_answer_or_a_reason(
    study: str, runs: dict[str, ts.Replication]
) -> None:
    for entry in runs[study].entries:
        if entry.kind == "published":
            assert entry.clustered or entry.reason, entry.id


@pytest.mark.parametrize(
    ("study", "name", "reason"),
    [
        (
            "narrativeshield",
            "B1/qwen25/dss",
            "needs sentence embeddings of the raw text; not in the tidy table",
        ),
        (
            "narrativeshield",
            "published_only_cells/NS/qwen25",
            "rows are not in the folder: no answers of qwen25 under NS",
        ),
        (
            "medsafe",
            "board/openai-gpt-5.2@250/t15_under",
            "needs P(severe) per case, which no file of the repository holds",
        ),
    ],
)
def test_what_cannot_be_derived_says_why(
    study: str, name: str, reason: str, runs: dict[str, ts.Replication]
) -> None:
    entry = by_id(runs[study])[name]
    assert (entry.match, entry.value, entry.reason) == ("not derivable", None, reason)


def test_no_output_is_no_significance(runs: dict[str, ts.Replication]) -> None:
    """The source prints p = 0 where nothing was read; the exact test has 1."""
    for name in BLANK:
        entry = by_id(runs["narrativeshield"])[name]
        assert entry.match == "not derivable"
        assert "no discordant pairs" in entry.reason
        assert entry.clustered[0].p_value == 1.0


@pytest.mark.parametrize(
    ("study", "name", "within", "p_value", "n_clusters"),
    [
        ("study1", "s1_diff", (-0.021, 0.150), 0.1376953125, 17),
        ("study1", "s1_wilcoxon_170", (-0.021, 0.150), 0.1376953125, 17),
        ("study2", "s2_natural_exact_wilcoxon", (-0.072, 0.011), 0.1556, 60),
        ("study2", "s2_forced_natural_wilcoxon", (0.0138, 0.0990), 0.0097, 60),
    ],
)
def test_clustered_answers_beside_small_published_p_values(
    study: str,
    name: str,
    within: tuple[float, float],
    p_value: float,
    n_clusters: int,
    runs: dict[str, ts.Replication],
) -> None:
    answer = by_id(runs[study])[name].clustered[0]
    assert (answer.conf_low, answer.conf_high) == pytest.approx(within, abs=6e-4)
    assert answer.p_value == pytest.approx(p_value, abs=1e-4)
    assert (answer.n_clusters, answer.cluster) == (n_clusters, "scenario")


def test_study2_answers_by_pair_too(runs: dict[str, ts.Replication]) -> None:
    answers = by_id(runs["study2"])["s2_natural_exact_wilcoxon"].clustered
    assert [(a.cluster, a.n_clusters) for a in answers[:2]] == [("scenario", 60), ("pair", 30)]


def test_emergency_headlines_rest_on_few_scenarios(runs: dict[str, ts.Replication]) -> None:
    found = by_id(runs["study2"])
    for name, effective in (
        ("exact", "1 effective"),
        ("natural", "2.6 effective"),
        ("forced", "1 effective"),
    ):
        (answer,) = found[f"s2_emergency_{name}"].clustered
        assert effective in answer.note
    assert by_id(runs["study1"])["s1_diff"].clustered[0].note.startswith("without one cluster +0.040")


def test_resampled_entries_state_their_monte_carlo_error(runs: dict[str, ts.Replication]) -> None:
    found = by_id(runs["medsafe"])
    resampled = [e for e in found.values() if e.match == "within Monte Carlo error" and e.kind == "published"]
    assert resampled
    for entry in resampled:
        assert "4 standard errors of 2,000 replicates of the source" in entry.reason
    blocks = [e for e in runs["narrativeshield"].entries if e.id.startswith("bootstrap_10000/B1/llama")]
    assert all("10,000 replicates of the source" in e.reason for e in blocks)


@pytest.mark.parametrize("study", STUDIES)
def test_the_result_converts(study: str, runs: dict[str, ts.Replication]) -> None:
    run = runs[study]
    tidy = run.tidy()
    assert tidy.schema == TIDY_SCHEMA
    assert run.frame.height == len(run.entries)
    assert len(run.to_pandas()) == run.frame.height
    loaded = json.loads(run.to_json())
    assert [entry["id"] for entry in loaded["entries"]] == [entry.id for entry in run.entries]
    glance = run.glance().row(0, named=True)
    counts = Counter(entry.match for entry in run.entries if entry.kind == "published")
    assert glance["n_yes"] == counts["yes"]
    assert glance["n_failed"] == 0
    text = repr(run)
    for entry in run.entries:
        assert f"\n{entry.id}" in text
    assert "of these 0 do not match" in text


def test_other_conditions_models_and_replicates(
    tmp_path: Path, folders: dict[str, Path], expected: dict[str, Any]
) -> None:
    """The entries of two models under other names: recipes go by the kind of an id, not by the id."""
    loaded = expected["narrativeshield"]

    def renamed(text: str) -> str:
        for old, new in (("B3", "B2"), ("llama31", "new-model"), ("qwen25", "other.7b")):
            text = text.replace(old, new)
        return text

    kept = [
        json.loads(renamed(json.dumps(entry)))
        for entry in printed(loaded)
        if entry["id"].split("/")[1] in ("llama31", "qwen25") and not entry["id"].startswith("paper")
    ]
    rows = read(folders["narrativeshield"] / "responses.csv.gz").filter(
        pl.col("model").is_in(["llama31", "qwen25"])
    )
    rows = rows.with_columns(pl.col("condition", "model").map_elements(renamed, return_dtype=pl.String))
    path = folder_of(tmp_path / "ns", loaded, kept, {"responses.csv": rows})
    run = ts.replicate_study("narrativeshield", path)
    assert {entry.id.split("/")[0] for entry in run.entries} == {"B1", "B2", "B2-B1"}
    assert [e.id for e in run.entries if e.marked and e.match not in SOUND] == []


def test_runs_of_another_size(tmp_path: Path, folders: dict[str, Path], expected: dict[str, Any]) -> None:
    loaded, source = expected["medsafe"], folders["medsafe"]
    kept = [
        json.loads(json.dumps(entry).replace("@250", "@500"))
        for entry in printed(loaded)
        if "@250" in entry["id"] and not entry["id"].startswith("board")
    ]
    rows = read(source / "responses.csv.gz").with_columns(pl.lit("500").alias("run_n"))
    tables = {"responses.csv.gz": rows, "cases.csv": source / "cases.csv"}
    run = ts.replicate_study("medsafe", folder_of(tmp_path / "ms", loaded, kept, tables))
    assert len(run.entries) == len(kept) > 50
    assert {entry.match for entry in run.entries} == {"yes"}


def test_counts_of_other_tables(tmp_path: Path, folders: dict[str, Path], expected: dict[str, Any]) -> None:
    """An entry of a kind without its own recipe is counted in the shape that it has."""
    source = folders["study1"]
    rows = read(source / "sensitivity_responses.csv")
    right = rows.with_columns((pl.col("response") == pl.col("gold_low")).alias("right"))
    counts = right.group_by("scenario", "model", "format").agg(pl.col("right").sum(), pl.len())
    shape: dict[str, dict[str, dict[str, list[int]]]] = {}
    for scenario, model, name, k, n in counts.iter_rows():
        shape.setdefault(scenario, {}).setdefault(model, {})[name] = [k, n]
    entry = {
        "id": "s1_sensitivity",
        "claim": "counts",
        "where": "paper",
        "published": {
            "case_08": {
                "gpt_5_2": {"paper_full": f"{shape['case_08']['gpt-5.2-thinking-high']['paper_full'][0]}/5"}
            }
        },
        "recomputed": shape,
        "table": "sensitivity_responses.csv",
        "recipe": "response==gold_low",
        "match": "yes",
    }
    table = {"sensitivity_responses.csv": source / "sensitivity_responses.csv"}
    (found,) = ts.replicate_study(
        "study1", folder_of(tmp_path / "s", expected["study1"], [entry], table)
    ).entries
    assert (found.match, found.recomputed_agrees) == ("yes", True)


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("s1_acc_natural", "natural_judgments.csv"),
        ("s1_diff", "constrained_responses.csv"),
        ("s1_factor_sweep", "factor_sweep_responses.csv"),
        ("s1_all_constraints", "power_ablation_responses.csv"),
    ],
)
def test_without_a_table(
    name: str, absent: str, tmp_path: Path, folders: dict[str, Path], expected: dict[str, Any]
) -> None:
    tables = {path.name: path for path in folders["study1"].glob("*.csv") if path.name != absent}
    entries = [entry for entry in printed(expected["study1"]) if entry["id"] == name]
    run = ts.replicate_study("study1", folder_of(tmp_path / "s", expected["study1"], entries, tables))
    (entry,) = run.entries
    assert (entry.match, entry.reason) == (
        "not derivable",
        f"rows are not in the folder: there is no {absent}",
    )
    assert run.failed == ()
    assert "marked as matching and not derivable here: 1\n  not derivable: " + name in repr(run)


def test_a_table_without_rows_and_an_entry_of_no_kind(
    tmp_path: Path, folders: dict[str, Path], expected: dict[str, Any]
) -> None:
    source = folders["study2"]
    entries = [entry for entry in printed(expected["study2"]) if entry["id"] == "s2_prompt_a"]
    entries.append(entries[0] | {"id": "s2_of_another_kind"})
    tables = {"prompt_a_summary.csv": read(source / "prompt_a_summary.csv").head(0)}
    first, second = ts.replicate_study(
        "study2", folder_of(tmp_path / "s", expected["study2"], entries, tables)
    ).entries
    assert first.reason == "rows are not in the folder: prompt_a_summary.csv holds none"
    assert second.reason == "no recipe of the library stands for this kind of entry"


def command(study: str, path: Path, *more: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["replicate", study, "--data", str(path), *more])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def small(
    tmp_path: Path, folders: dict[str, Path], expected: dict[str, Any]
) -> Callable[[dict[str, Any]], Path]:
    """Write a folder of study 2 with one entry, its published value changed."""

    def made(change: dict[str, Any]) -> Path:
        (entry,) = (e for e in printed(expected["study2"]) if e["id"] == "s2_prompt_a")
        entry = entry | {"published": entry["published"] | change}
        name = "prompt_a_summary.csv"
        return folder_of(tmp_path / "s", expected["study2"], [entry], {name: folders["study2"] / name})

    return made


def test_the_command_ends_with_0_where_all_matches(small: Callable[[dict[str, Any]], Path]) -> None:
    path = small({})
    code, out, err = command("study2", path)
    assert (code, err) == (0, "")
    assert out == repr(ts.replicate_study("study2", path)) + "\n"
    assert "match     yes" in out
    code, out, _ = command("study2", path, "--format", "json")
    assert code == 0
    (entry,) = json.loads(out)["entries"]
    assert (entry["id"], entry["match"], entry["published"]["gpt53"]) == ("s2_prompt_a", "yes", 0.9)
    code, out, _ = command("study2", path, "--format", "csv")
    assert (code, out.splitlines()[0].split(",")[0]) == (0, "id")


def test_the_command_ends_with_1_where_a_marked_entry_differs(
    small: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    path = small({"gpt53": 0.91})
    code, out, _ = command("study2", path)
    assert code == 1
    assert "does not match: s2_prompt_a" in out
    assert "1 of 6 parts differ: gpt53 0.91 against 0.9" in out
    target = tmp_path / "report.json"
    code, out, _ = command("study2", path, "--format", "json", "--output", str(target))
    assert (code, out) == (1, "")
    assert json.loads(target.read_text())["failed"] == ["s2_prompt_a"]


def test_the_command_ends_with_2_for_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    code, out, err = command("study1", tmp_path / "nowhere")
    assert (code, out) == (2, "")
    assert err.startswith("triagestats: --data must be a folder with the tables of study1; ")
    code, _, err = command("study1", tmp_path)
    assert code == 2
    assert err.startswith("triagestats: --data must be a folder with expected.json; ")
    (tmp_path / "expected.json").write_text("{")
    assert "is not valid JSON" in command("study1", tmp_path)[2]
    (tmp_path / "expected.json").write_text("{}")
    assert "must hold a list 'published' or 'published_checks'" in command("study1", tmp_path)[2]
    (tmp_path / "expected.json").write_text('{"published": [{"claim": "x"}]}')
    assert "must have an `id`" in command("study1", tmp_path)[2]
    code, _, err = command("study9", tmp_path)
    assert code == 2


def test_the_output_may_not_be_one_of_the_tables(small: Callable[[dict[str, Any]], Path]) -> None:
    path = small({})
    code, _, err = command("study2", path, "--output", str(path / "expected.json"))
    assert code == 2
    assert "is the file to analyse" in err
    assert json.loads((path / "expected.json").read_text())["published"]
