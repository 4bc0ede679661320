"""Tables of the user's own: long and wide, one file and several."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts
from triagestats import files, json_lines

Refusal = Callable[[Callable[[], object]], str]


def write(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize(
    ("name", "judge_is_scorer"),
    [("long.csv", True), ("wide_models.csv", False), ("wide_labels_semicolon_utf8bom.csv", True)],
)
def test_every_expected_row_is_read(shared: Callable[[str], Path], name: str, judge_is_scorer: bool) -> None:
    table = ts.read_csv(shared(f"harness/csv/{name}"), cluster="passage")
    with shared("harness/csv/expected.csv").open(encoding="utf-8") as stream:
        wanted = [row for row in csv.DictReader(stream) if row["source_file"] == name]
    expected = sorted(
        (
            row["item_id"],
            row["model"],
            row["condition"],
            row["epoch"],
            row["scorer"],
            row["score"],
            row["status"],
            row["reason"],
            row["response"],
            row["gold"],
            row["cluster"],
        )
        for row in wanted
    )
    columns = (
        "scenario",
        "model",
        "condition",
        "repetition",
        "judge",
        "score",
        "status",
        "reason",
        "response",
    )
    found = sorted(
        tuple(
            "" if value is None else str(value)
            for value in (
                *(row.get(column, "1" if column == "repetition" else None) for column in columns),
                row["gold_low"],
                row["cluster_1"],
            )
        )
        for row in table.frame.iter_rows(named=True)
    )
    assert found == expected
    assert bool(table.judges) == judge_is_scorer


def test_analyze_takes_the_same_files(shared: Callable[[str], Path]) -> None:
    fit = ts.analyze(shared("harness/csv/wide_models.csv"), n_resamples=99)
    rates = fit.rates.filter(pl.col("model").is_not_null())
    assert rates.select("model", "n_rows").rows() == [("acme/mock-70b", 6), ("acme/mock-7b", 5)]


def test_letters_are_numbers_only_where_nothing_else_is_odd(tmp_path: Path, refusal: Refusal) -> None:
    table = ts.read(write(tmp_path, "item,score\na,C\nb,I\nc,P\nd,0.25\ne,PASS\n"))
    assert table.frame["score"].to_list() == [1.0, 0.0, 0.5, 0.25, 1.0]
    note = next(note for note in table.notes if note.code == "score_words")
    assert "'C' as 1.0" in note.message
    path = write(tmp_path, "item,score\na,C\nb,D\n")
    assert "`score` cannot be read in 2 rows, such as 'C', 'D'" in refusal(lambda: ts.read(path))


def test_a_stated_blank_is_not_filled_in_from_labels(tmp_path: Path) -> None:
    """`NA` says that there is no score; an empty cell is scored by the labels, as everywhere."""
    text = "item,answer,gold,score\na,A,A,NA\nb,A,A,\nc,A,A,1\n"
    assert rows(ts.read(write(tmp_path, text)), "score", "status") == [
        (None, "missing"),
        (1.0, "ok"),
        (1.0, "ok"),
    ]


def test_a_long_table_stays_long(tmp_path: Path) -> None:
    """Columns of 0 and 1 beside a score, or beside labels, are no models."""
    path = write(tmp_path, "item,score,urgent,male\na,1,0,1\nb,0,1,1\n")
    assert ts.read(path).frame.height == 2
    path = write(tmp_path, "item,answer,gold,urgent\na,A,A,0\nb,B,A,1\n")
    assert ts.read(path).frame["score"].to_list() == [1.0, 0.0]


def test_a_table_without_scores_is_refused_as_ever(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path, "item,latency\na,120\nb,95\n")
    assert "`score` has no column" in refusal(lambda: ts.read(path))


def test_runs_of_models(tmp_path: Path) -> None:
    """`@2` is a run only beside another column of the name; a version is no run."""
    text = "item,m,m@2,m@3,claude@20240229,k@001\na,1,0,1,1,0\n"
    assert rows(ts.read(write(tmp_path, text)), "model", "repetition", "score") == [
        ("claude@20240229", "1", 1.0),
        ("k@001", "1", 0.0),
        ("m", "1", 1.0),
        ("m", "2", 0.0),
        ("m", "3", 1.0),
    ]


def test_runs_without_a_first(tmp_path: Path) -> None:
    text = "item,m@1,m@2\na,1,0\n"
    assert rows(ts.read(write(tmp_path, text)), "model", "repetition") == [("m", "1"), ("m", "2")]


def test_numbers_beyond_one_are_measurements(tmp_path: Path) -> None:
    table = ts.read(write(tmp_path, "item,age,acme/a,acme/b\nx,71,1,0\ny,34,C,\n"))
    assert table.frame["model"].unique().sort().to_list() == ["acme/a", "acme/b"]
    assert table.frame["age"].unique().sort().to_list() == ["34", "71"]


def test_columns_that_are_named_are_the_models(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path, "item,urgent,a,b\nx,1,4,5\ny,0,2,3\n")
    table = ts.read_csv(path, model=["a", "b"])
    assert rows(table, "model", "score", "urgent") == [
        ("a", 4.0, "1"),
        ("b", 5.0, "1"),
        ("a", 2.0, "0"),
        ("b", 3.0, "0"),
    ]
    assert "`model` names 'c'" in refusal(lambda: ts.read_csv(path, model=["a", "c"]))
    assert "`model` is an empty list" in refusal(lambda: ts.read_csv(path, model=[]))


def test_columns_that_are_named_are_the_judges(tmp_path: Path) -> None:
    path = write(tmp_path, "item,model,gpt_score,score_claude\nx,m,4,5\n")
    table = ts.read_csv(path, judge=["gpt_score", "score_claude"])
    assert rows(table, "model", "judge", "score") == [("m", "claude", 5.0), ("m", "gpt", 4.0)]


def test_labels_of_conditions_and_of_models(tmp_path: Path) -> None:
    path = write(tmp_path, "item,gold,pred_plain,pred_json\nx,A,A,B\ny,B,B,B\n")
    assert rows(ts.read(path), "condition", "response", "score") == [
        ("json", "B", 0.0),
        ("plain", "A", 1.0),
        ("json", "B", 1.0),
        ("plain", "B", 1.0),
    ]
    path = write(tmp_path, "item,gold,acme/a,acme/b\nx,A,A,B\ny,B,B,\n")
    assert rows(ts.read(path), "model", "score", "status") == [
        ("acme/a", 1.0, "ok"),
        ("acme/b", 0.0, "ok"),
        ("acme/a", 1.0, "ok"),
        ("acme/b", None, "missing"),
    ]


def test_decimal_commas_of_wide_tables(tmp_path: Path) -> None:
    path = write(tmp_path, "item;acme/a;acme/b\nx;0,5;1\ny;0,25;0\n")
    assert sorted(ts.read(path).frame["score"].to_list()) == [0.0, 0.25, 0.5, 1.0]


def test_a_name_that_is_taken_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path, "item,repetition,m,m@2\nx,1,1,0\n")
    assert "a column 'repetition' besides" in refusal(lambda: ts.read_csv(path))


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for model in ("a", "b"):
        write(tmp_path, f"item,model,score\nx,{model},1\n", f"{model}.csv")
    assert rows(ts.read(tmp_path), "model", "source") == [("a", "a.csv"), ("b", "b.csv")]


def test_files_without_repetitions_are_runs(tmp_path: Path) -> None:
    for run in (1, 2):
        write(tmp_path, f"item,score\nx,{run - 1}\ny,1\n", f"run{run}.csv")
    table = ts.read(tmp_path)
    assert rows(table, "scenario", "repetition", "score") == [
        ("x", "1", 0.0),
        ("x", "2", 1.0),
        ("y", "1", 1.0),
        ("y", "2", 1.0),
    ]
    assert "runs" in [note.code for note in table.notes]


def test_files_that_claim_one_repetition_are_named(tmp_path: Path, refusal: Refusal) -> None:
    for name in ("a", "b"):
        write(tmp_path, "item,run,score\nx,1,1\n", f"{name}.csv")
    assert "'a.csv' and 'b.csv' both claim item 'x', run '1'" in refusal(lambda: ts.read(tmp_path))


def test_tables_of_several_kinds(tmp_path: Path) -> None:
    write(tmp_path, "item,model,score\nx,a,1\n")
    write(tmp_path, json.dumps({"item": "x", "model": "b", "score": "0.5"}) + "\n", "t.jsonl")
    pl.DataFrame({"item": ["x"], "model": ["c"], "score": ["C"]}).write_parquet(tmp_path / "t.parquet")
    assert rows(ts.read(tmp_path), "model", "score") == [("a", 1.0), ("b", 0.5), ("c", 1.0)]


def test_tables_beside_the_logs_of_a_harness_are_left_aside(tmp_path: Path) -> None:
    write(tmp_path, "item,score\nx,1\n", "notes.csv")
    log = {"status": "success", "eval": {"task": "t", "model": "m"}}
    scored = {"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}}
    write(tmp_path, json.dumps(log | {"samples": [scored]}), "log.json")
    assert ts.read(tmp_path).frame["source"].to_list() == ["log.json"]
    assert ts.read(tmp_path, format="csv").frame["scenario"].to_list() == ["x"]


def test_options_of_a_table(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path, "item,score\nx,1\n")
    assert "`runs`: no option of a table" in refusal(lambda: ts.read_csv(path, runs=True))
    assert ts.read_csv(path, higher_is_better=False).higher_is_better is False


def test_large_json_lines_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that differ in type and columns are one table; long text is left out, and said."""
    monkeypatch.setattr(json_lines, "_LARGE", 1)
    monkeypatch.setattr(json_lines, "_CHUNK", 64)
    lines = [{"item": i if i < 20 else f"x{i}", "score": i % 2, "text": "long " * 60} for i in range(40)]
    lines[33]["only"] = "here"
    path = write(tmp_path, "\n".join(map(json.dumps, lines)), "t.jsonl")
    table = ts.read(path)
    assert table.frame.height == 40
    assert set(table.frame["scenario"]) == {str(line["item"]) for line in lines}
    assert table.frame["only"].drop_nulls().to_list() == ["here"]
    assert "text" not in table.frame.columns
    assert "long text or nested values are left out: text." in " ".join(map(str, table.notes))
    assert ts.read(path, response="text").frame["response"].null_count() == 0


def test_the_line_of_a_large_file_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal
) -> None:
    monkeypatch.setattr(json_lines, "_LARGE", 1)
    monkeypatch.setattr(json_lines, "_CHUNK", 64)
    lines = [json.dumps({"item": i, "score": 1}) for i in range(50)]
    lines[41] = "{'item': 3}"
    path = write(tmp_path, "\n".join(lines), "t.jsonl")
    assert "'t.jsonl', line 42, is not one JSON object" in refusal(lambda: ts.read(path))


def test_a_packed_table_that_grows_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal
) -> None:
    monkeypatch.setattr(files, "_LARGEST_PACKED", 10_000)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"item,score\n" + b"x,1\n" * 1_000_000))
    assert "'t.csv.gz' unpacks to more than" in refusal(lambda: ts.read(path))
