"""`triagestats import`, and `triagestats analyze` with the files of harnesses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import triagestats as ts
from triagestats.cli import app


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def printed(*arguments: str | Path) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: str | Path) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    return result.output


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of two models and two tasks, with two scorers, three epochs and passages."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for task in ("t1", "t2"):
        for model in ("acme/a", "acme/b"):
            samples = [
                {
                    "id": item,
                    "epoch": epoch,
                    "target": "A",
                    "metadata": {"passage_id": f"p{item // 2}", "id": f"own{item}"},
                    "scores": {
                        "match": {"value": "CI"[(item * epoch + len(model) * len(task)) % 2], "answer": "A"},
                        "judge": {"value": item / 20},
                    },
                }
                for item in range(14)
                for epoch in (1, 2, 3)
            ]
            spec = {"task": task, "model": model}
            document = {"version": 2, "status": "success", "eval": spec, "samples": samples}
            (folder / f"{task}{model[-1]}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_import_says_what_files_hold(logs: Path) -> None:
    lines = printed("import", logs, "--cluster", "metadata.passage_id").splitlines()
    assert lines[:4] == [
        "336 rows, 336 with a score, 28 scenarios",
        "model: acme/a (168), acme/b (168)",
        "task: t1 (168), t2 (168)",
        "repetition: 1 (112), 2 (112), 3 (112)",
    ]
    assert "metric: judge (168), match (168)" in lines
    assert "status: ok (336)" in lines
    assert any(line.startswith("cluster: p0 (") for line in lines)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_what_is_written_is_read_as_the_same_table(logs: Path, tmp_path: Path, ending: str) -> None:
    """Scenarios keep their names, and a field called id is not taken for the scenario."""
    path = tmp_path / f"table.{ending}"
    printed("import", logs, "--metric", "match", "--cluster", "metadata.passage_id", "-o", path)
    columns = (
        "scenario",
        "model",
        "task",
        "repetition",
        "metric",
        "score",
        "status",
        "gold_low",
        "cluster_1",
    )
    first = ts.read(logs, metric="match", cluster="metadata.passage_id")
    second = ts.read(path)
    assert first.frame.select(columns).equals(second.frame.select(columns))
    one, two = (ts.analyze(table, n_resamples=99) for table in (first, second))
    shown = ("model", "estimate", "std_error", "conf_low", "conf_high")
    assert one.rates.select(shown).equals(two.rates.select(shown))


def test_a_parquet_file_keeps_all_metrics(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    printed("import", logs, "-o", path)
    assert ts.read(path).metrics == ("judge", "match")
    assert "metric" in printed("analyze", path, "--metric", "judge", "--format", "csv").splitlines()[0]


def test_unread_answers_are_the_same_after_parquet(tmp_path: Path) -> None:
    """A blank answer scored 0 stays what the harness said of it."""
    samples = [
        {
            "id": item,
            "epoch": 1,
            "target": "A",
            "scores": {"s": {"value": item % 2, "answer": "A" * (item % 2)}},
        }
        for item in range(6)
    ]
    document = {"status": "success", "eval": {"task": "t", "model": "m"}, "samples": samples}
    (tmp_path / "log.json").write_text(json.dumps(document), encoding="utf-8")
    printed("import", tmp_path / "log.json", "-o", tmp_path / "t.parquet")
    assert ts.read(tmp_path / "t.parquet").frame["status"].unique().to_list() == ["ok"]


def test_several_conditions_keep_their_names(tmp_path: Path) -> None:
    from triagestats.readers.export import exported

    table = ts.ResponseTable(
        {"scenario": ["a", "b"], "x": ["1", "2"], "y": ["u", "u"], "doc_id": ["7", "8"], "score": [1, 0]},
        scenario="scenario",
        condition=["x", "y"],
    )
    assert set(exported(table).columns) >= {"x", "y", "carried.doc_id", "scenario"}
    ranged = ts.ResponseTable({"scenario": ["a"], "response": ["A"], "gold": ["A/B"]}, levels=["A", "B", "C"])
    assert exported(ranged).select("gold_low", "gold_high").rows() == [("A", "B")]


def test_analyze_takes_folders_and_several_files(logs: Path) -> None:
    options = ("--metric", "match", "--n-resamples", "99", "--format", "csv")
    whole = printed("analyze", logs, *options)
    assert printed("analyze", *sorted(logs.iterdir()), *options) == whole
    assert len(whole.splitlines()) >= 4
    fit = ts.analyze(sorted(logs.iterdir()), metric="match", n_resamples=99)
    assert fit.rates.equals(ts.analyze(logs, metric="match", n_resamples=99).rates)


def test_several_metrics_are_named_with_the_option(logs: Path) -> None:
    said = refused("analyze", logs)
    assert said.startswith(
        "triagestats: --metric has several values, ['judge', 'match']; choose one, for instance"
    )
    assert "--metric judge" in said


def test_judges_of_the_command_line(logs: Path) -> None:
    assert "judge: judge (168), match (168)" in printed(
        "import", logs, "--judge", "judge", "--judge", "match"
    )
    assert "judge" in printed("analyze", logs, "--judge", "match", "--n-resamples", "99", "--task", "t1")


def test_options_of_import(logs: Path, tmp_path: Path) -> None:
    assert "task: t2 (168)" in printed("import", logs, "--task", "t2")
    (tmp_path / "copy.json").write_bytes((logs / "t1a.json").read_bytes())
    said = refused("import", logs / "t1a.json", tmp_path / "copy.json")
    assert "PATH: 'copy.json' and 'logs/t1a.json' both claim" in said
    assert "or give --runs if they are runs" in said
    assert "repetition: 1 (28), 2 (28)" in printed(
        "import", logs / "t1a.json", tmp_path / "copy.json", "--runs"
    )
    assert "raise the limit with --max-bytes 400" in refused("import", logs, "--max-bytes", "100")
    assert "--from must be one of 'inspect'" in refused("import", logs, "--from", "excel")
    assert "holds no HELM file" in refused("import", logs, "--from", "helm")


def test_where_a_table_can_be_written(logs: Path, tmp_path: Path) -> None:
    assert "--output must end in .parquet, .csv, .jsonl; got 't.xlsx'" in refused(
        "import", logs, "-o", tmp_path / "t.xlsx"
    )
    assert "there is no folder" in refused("import", logs, "-o", tmp_path / "absent" / "t.csv")
    table = tmp_path / "t.csv"
    printed("import", logs, "-o", table)
    assert "choose another name for the output" in refused("import", table, "-o", table)
    (tmp_path / "d.csv").mkdir()
    assert "cannot be written" in refused("import", logs, "-o", tmp_path / "d.csv")


def test_the_help_names_what_is_read() -> None:
    assert "logs and results of a harness" in " ".join(printed("import", "--help").split())


def test_the_passage_log_by_the_command_line(shared: Callable[[str], Path], tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    files = [shared(f"harness/inspect/passage_mcq_mock-{size}.eval") for size in ("7b", "70b")]
    path = tmp_path / "t.parquet"
    printed("import", *files, "--cluster", "metadata.passage_id", "-o", path)
    assert pl.read_parquet(path).filter(pl.col("metric") == "choice").height == 42
    text = printed("analyze", path, "--metric", "choice", "--n-resamples", "99")
    assert "clustered by cluster (4)" in text
    assert "Read as 40 independent rows" in " ".join(text.split())
