"""Logs of Inspect AI: archives and JSON, old and new, whole and crashed."""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts
from triagestats.readers import archives

Refusal = Callable[[Callable[[], object]], str]

SPEC: dict[str, Any] = {
    "task": "triage",
    "model": "openai/acme/mock-7b",
    "task_args": {},
    "config": {"epochs": 1},
}


def sample(name: object, epoch: int = 1, /, **more: Any) -> dict[str, Any]:
    scores = {"choice": {"value": "C", "answer": "A"}}
    return {"id": name, "epoch": epoch, "target": "A", "metadata": {}, "scores": scores} | more


def log(*samples: Mapping[str, Any], status: str = "success", **spec: Any) -> dict[str, Any]:
    return {"version": 2, "status": status, "eval": SPEC | spec, "samples": list(samples)}


def as_json(folder: Path, document: Mapping[str, Any], name: str = "log.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def as_archive(
    folder: Path, document: Mapping[str, Any], name: str = "log.eval", *, header: str = "header.json"
) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, one in enumerate(document["samples"]):
            archive.writestr(f"samples/{place}.json", json.dumps(one))
        archive.writestr(header, json.dumps({key: document[key] for key in document if key != "samples"}))
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize(
    "files",
    [
        ("passage_mcq_mock-7b.eval", "passage_mcq_mock-70b.eval"),
        ("passage_mcq_mock-7b.eval",),
        ("freeform_mock-7b.eval",),
    ],
)
def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]], files: tuple[str, ...]
) -> None:
    pytest.importorskip("zstandard")
    cluster = "metadata.family" if "freeform" in files[0] else "metadata.passage_id"
    table = ts.read_inspect([shared(f"harness/inspect/{name}") for name in files], cluster=cluster)
    assert expected_rows(table, "inspect", files=files) == []


def test_the_json_log_of_a_second_run_says_the_same(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    table = ts.read_inspect(shared("harness/inspect/freeform_mock-7b.json"), cluster="family")
    assert expected_rows(table, "inspect", files=("freeform_mock-7b.eval",), without=("source_file",)) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "fixture_mmlu_deflate_2025-12.eval",
            ("1", "inspect_evals/mmlu_0_shot", "openai/gpt-4o", "choice", 0.0, "C", "A"),
        ),
        (
            "fixture_model_graded_deflate_2024-11.eval",
            ("1", "input_task", "openai/gpt-4o-mini", "model_graded_fact", 1.0),
        ),
    ],
)
def test_logs_of_other_versions(
    shared: Callable[[str], Path], name: str, expected: tuple[object, ...]
) -> None:
    table = ts.read(shared(f"harness/inspect/{name}"))
    columns = ("scenario", "task", "model", "metric", "score", "response", "gold_low")[: len(expected)]
    assert rows(table, *columns) == [expected]


def test_a_header_without_samples_is_refused(shared: Callable[[str], Path], refusal: Refusal) -> None:
    said = refusal(lambda: ts.read(shared("harness/inspect/fixture_llm_scoring.json")))
    assert "'fixture_llm_scoring.json' holds no samples: it is a header with averages" in said


def test_the_passage_log_by_passage_and_by_rows(shared: Callable[[str], Path]) -> None:
    """The design effect by hand: sd of 20 rows, and the jackknife over 4 passages."""
    pytest.importorskip("zstandard")
    files = [shared(f"harness/inspect/passage_mcq_mock-{size}.eval") for size in ("7b", "70b")]
    table = ts.read_inspect(files, metric="choice", cluster="metadata.passage_id")
    fit = ts.analyze(table, interval="jackknife-t", n_resamples=99)
    row = fit.rates.filter(pl.col("model") == "mockllm/acme/mock-7b").row(0, named=True)
    one = table.frame.filter(pl.col("model") == "mockllm/acme/mock-7b")
    cells = one.group_by("cluster_1", "scenario").agg(pl.col("score").mean())
    by_passage = cells.group_by("cluster_1").agg(pl.col("score").sum(), pl.len()).sort("cluster_1")
    sums, counts = by_passage["score"].to_numpy(), by_passage["len"].to_numpy()
    left_out = (sums.sum() - sums) / (counts.sum() - counts)
    error = math.sqrt(3 / 4 * ((left_out - left_out.mean()) ** 2).sum())
    assert row["std_error"] == pytest.approx(error, rel=1e-9)
    assert row["conf_low"] < row["estimate"] < row["conf_high"]
    assert (row["status"], row["n_clusters"]) == ("warning", 4)
    scores = one["score"].drop_nulls()
    deviation = scores.std()
    assert isinstance(deviation, float)
    effect = fit.design.filter((pl.col("estimand") == "design_effect") & (pl.col("model") == row["model"]))
    assert effect["estimate"][0] == pytest.approx((error / (deviation / math.sqrt(20))) ** 2, rel=1e-9)
    assert effect.select("n_rows", "n_clusters").row(0) == (20, 4)
    note = next(note for note in fit.notes if note.code == "independence")
    assert "Read as 40 independent rows, the standard error of the rate would be 0.0764" in note.message
    assert "4 clusters (metadata.passage_id)" in note.message


def test_a_rate_from_four_passages_is_withheld_unless_asked_for(shared: Callable[[str], Path]) -> None:
    pytest.importorskip("zstandard")
    files = [shared(f"harness/inspect/passage_mcq_mock-{size}.eval") for size in ("7b", "70b")]
    table = ts.read_inspect(files, metric="choice", cluster="metadata.passage_id")
    row = ts.analyze(table, n_resamples=99).rates.row(0, named=True)
    assert (row["status"], row["conf_low"]) == ("few_clusters", None)


def test_archives_and_json_say_the_same(tmp_path: Path) -> None:
    document = log(sample("a/b c_1", metadata={"passage_id": "p1"}), sample("a/b c_1", 2), task_args={"n": 3})
    tables = [ts.read_inspect(path) for path in (as_json(tmp_path, document), as_archive(tmp_path, document))]
    first, second = (table.frame.drop("source") for table in tables)
    assert first.equals(second)
    assert rows(tables[0], "scenario", "repetition", "condition", "metadata.passage_id") == [
        ("a/b c_1", "1", '{"n": 3}', "p1"),
        ("a/b c_1", "2", '{"n": 3}', None),
    ]


def scored_as(folder: Path, *values: Any) -> list[tuple[Any, ...]]:
    samples = [
        sample(
            i, scores={} if value is ... else {"s": value if isinstance(value, dict) else {"value": value}}
        )
        for i, value in enumerate(values)
    ]
    table = ts.read_inspect(as_json(folder, log(*samples)))
    return rows(table, "scenario", "metric", "score", "status")


def test_values_of_scorers(tmp_path: Path) -> None:
    """Null was NaN before version 0.3.253; `...` stands for a scorer that left no entry."""
    values = ("C", "I", "P", "N", True, 0.3, None, math.nan, ["a"], "maybe", ...)
    assert [row[2:] for row in scored_as(tmp_path, *values)] == [
        (1.0, "ok"),
        (0.0, "ok"),
        (None, "absent"),
        (0.5, "ok"),
        (0.0, "ok"),
        (1.0, "ok"),
        (0.3, "ok"),
        (None, "unscored"),
        (None, "unscored"),
        (None, "non_scalar"),
        (None, "non_scalar"),
    ]


def test_values_of_several_keys(tmp_path: Path) -> None:
    """A key that is null, one that is absent, and a scorer that failed as a whole."""
    assert scored_as(
        tmp_path, {"value": {"safe": 1, "kind": None}}, {"value": {"safe": "I"}}, {"value": math.nan}, ...
    ) == [
        ("0", "s/kind", None, "unscored"),
        ("0", "s/safe", 1.0, "ok"),
        ("1", "s/kind", None, "absent"),
        ("1", "s/safe", 0.0, "ok"),
        ("2", "s/kind", None, "unscored"),
        ("2", "s/safe", None, "unscored"),
        ("3", "s/kind", None, "absent"),
        ("3", "s/safe", None, "absent"),
    ]


def test_a_number_beside_keys_is_a_metric_of_its_own(tmp_path: Path) -> None:
    assert scored_as(tmp_path, {"value": {"safe": 1}}, {"value": 0.5}) == [
        ("0", "s/safe", 1.0, "ok"),
        ("1", "s", 0.5, "ok"),
    ]


def test_errors_limits_and_invalid_samples(tmp_path: Path) -> None:
    """A limit ends a sample that is scored all the same; a retried one is fine."""
    samples = (
        sample(1, error={"message": "HTTP 529", "traceback": "..."}, scores={}),
        sample(2, limit={"type": "token", "limit": 100}),
        sample(3, limit={"type": "time", "limit": 9}, scores={}),
        sample(4, invalidation={"author": "me", "reason": "leaked answer"}),
        sample(5, error_retries=[{"message": "HTTP 529"}]),
        sample(6, error={"message": "scored on error"}),
    )
    table = ts.read_inspect(as_json(tmp_path, log(*samples)))
    assert rows(table, "scenario", "score", "status", "reason", "sample.limit") == [
        ("1", None, "error", "HTTP 529", None),
        ("2", 1.0, "ok", None, "token"),
        ("3", None, "absent", "stopped by a limit: time", "time"),
        ("4", None, "error", "invalidated: leaked answer", None),
        ("5", 1.0, "ok", None, None),
        ("6", None, "error", "scored on error", None),
    ]


def test_an_error_is_one_of_every_scorer(tmp_path: Path) -> None:
    both = {"a": {"value": 1}, "b": {"value": 0}}
    table = ts.read_inspect(as_json(tmp_path, log(sample(1, scores=both), sample(2, scores={}, error="x"))))
    assert rows(table, "scenario", "metric", "status") == [
        ("1", "a", "ok"),
        ("1", "b", "ok"),
        ("2", "a", "error"),
        ("2", "b", "error"),
    ]


def test_a_log_without_a_scored_sample(tmp_path: Path, refusal: Refusal) -> None:
    """The scorers are those of the plan, numbered as Inspect does; a table comes out, and no analysis."""
    scorers = [
        {"name": "pkg/includes", "metrics": []},
        {"name": "includes"},
        {"name": "r", "metrics": {"k": []}},
    ]
    path = as_json(tmp_path, log(sample(1, scores={}, error="x"), scorers=scorers, status="error"))
    table = ts.read_inspect(path)
    assert table.metrics == ("includes", "includes1", "r/k")
    assert {"nothing_scored", "incomplete"} <= {note.code for note in table.notes}
    assert "`score` is there in no row" in refusal(lambda: ts.analyze(path, metric="includes"))


def test_a_log_without_scorers(tmp_path: Path) -> None:
    table = ts.read_inspect(as_json(tmp_path, log(sample(1, scores=None))))
    assert rows(table, "scenario", "score", "status") == [("1", None, "absent")]
    assert table.metrics == ()


def test_the_one_score_of_the_first_versions(tmp_path: Path) -> None:
    old = sample(1) | {"score": {"value": "I", "answer": "B"}}
    del old["scores"]
    document = log(old) | {"results": {"scorer": {"name": "match"}}}
    assert rows(ts.read_inspect(as_archive(tmp_path, document)), "metric", "score", "response") == [
        ("match", 0.0, "B")
    ]


def crashed(folder: Path, *, start: bool = True) -> Path:
    """One sample of three written whole, of two the summary."""
    path = folder / "crashed.eval"
    spec = SPEC | {"config": {"epochs": 2}, "dataset": {"sample_ids": [1, 2, 3]}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        if start:
            archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": spec}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, metadata={"passage_id": "whole"})))
        summaries = [sample(1), sample(2, error="HTTP 529", scores={})]
        archive.writestr("_journal/summaries/1.json", json.dumps(summaries))
    return path


def test_a_run_that_crashed_is_read_from_its_journal(tmp_path: Path) -> None:
    table = ts.read(crashed(tmp_path))
    assert rows(table, "scenario", "model", "score", "status", "metadata.passage_id") == [
        ("1", "openai/acme/mock-7b", 1.0, "ok", "whole"),
        ("2", "openai/acme/mock-7b", None, "error", None),
    ]
    note = next(note for note in table.notes if note.code == "incomplete")
    assert note.message == (
        "The run of 'crashed.eval' crashed before its header was written: 2 of 6 planned samples are read."
    )


def test_an_archive_that_names_no_task_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    said = refusal(lambda: ts.read(crashed(tmp_path, start=False)))
    assert "'crashed.eval' has neither header.json nor _journal/start.json" in said


def test_the_last_of_members_of_one_name_counts(tmp_path: Path) -> None:
    path = as_archive(tmp_path, log(sample(1, scores={"s": {"value": 0}})))
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/0.json", json.dumps(sample(1, scores={"s": {"value": 1}})))
    assert rows(ts.read_inspect(path), "score") == [(1.0,)]


def test_two_logs_of_one_epoch_are_named_and_can_be_runs(tmp_path: Path, refusal: Refusal) -> None:
    late = as_json(tmp_path, log(sample(1, scores={"s": {"value": 0}}), created="2026-02-01"), "a.json")
    early = as_archive(tmp_path, log(sample(1, scores={"s": {"value": 1}}), created="2026-01-01"), "b.eval")
    said = refusal(lambda: ts.read([late, early]))
    assert (
        "'b.eval' and 'a.json' both claim model 'openai/acme/mock-7b', task 'triage', epoch 1, item '1'"
        in said
    )
    table = ts.read([late, early], runs=True)
    assert rows(table, "repetition", "score", "source") == [("1", 1.0, "b.eval"), ("2", 0.0, "a.json")]


def test_models_pair_on_items_of_a_task(tmp_path: Path) -> None:
    for task in ("t1", "t2"):
        for model in ("acme/a", "acme/b"):
            as_json(tmp_path, log(sample(1), task=task, model=model), f"{task}{model[-1]}.json")
    table = ts.read(tmp_path)
    assert table.frame.group_by("scenario").agg(pl.col("model").n_unique()).sort("scenario").rows() == [
        ("t1/1", 2),
        ("t2/1", 2),
    ]


def test_scorers_as_judges(tmp_path: Path) -> None:
    scores = {"gpt": {"value": 1}, "claude": {"value": 0}, "length": {"value": 7}}
    path = as_json(tmp_path, log(sample(1, scores=scores)))
    assert rows(ts.read_inspect(path, judge=["gpt", "claude"]), "judge", "score") == [
        ("claude", 0.0),
        ("gpt", 1.0),
    ]


def compressed(part: bytes) -> bytes:
    frame: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(part)
    return frame


def zstd_archive(
    path: Path,
    members: Mapping[str, Iterable[bytes]],
    *,
    spoil: bool = False,
    compress: Callable[[bytes], bytes] = compressed,
) -> None:
    """An archive of method 93, each member of one frame a part."""
    body, directory = b"", b""
    for name, parts in members.items():
        content = b"".join(parts := list(parts))
        packed = b"".join(compress(part) for part in parts)
        crc = zlib.crc32(content) ^ spoil
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 93, 0, 33, crc, len(packed), len(content), len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + fields
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + fields + name.encode() + packed
    counts = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + counts)


def packed(folder: Path, **options: Any) -> Path:
    path = folder / "packed.eval"
    header = json.dumps({key: value for key, value in log().items() if key != "samples"}).encode()
    whole = json.dumps(sample(1)).encode()
    zstd_archive(path, {"header.json": [header], "samples/1.json": [whole[:40], whole[40:]]}, **options)
    return path


def test_members_of_several_zstd_frames(tmp_path: Path) -> None:
    assert rows(ts.read(packed(tmp_path)), "scenario", "score") == [("1", 1.0)]


def test_a_wrong_checksum_of_a_zstd_member(tmp_path: Path, refusal: Refusal) -> None:
    assert "the checksum of a member is wrong" in refusal(lambda: ts.read(packed(tmp_path, spoil=True)))


def test_a_zstd_member_that_unpacks_to_too_much(tmp_path: Path, refusal: Refusal) -> None:
    assert "has more than 64 bytes" in refusal(lambda: ts.read(packed(tmp_path), max_bytes=64))


def test_the_extra_that_reads_zstd_is_named(
    tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path, compress=bytes)  # what the members hold is never reached

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(archives, "import_module", absent)
    said = refusal(lambda: ts.read(path))
    assert "member 'header.json' of 'packed.eval' is compressed with zstd" in said
    assert "pip install 'triagestats[inspect]'" in said
