"""Tables of MLflow: two kinds, in every form that pandas writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

# What is known of the runs and not of the tables, so that the reader cannot say it.
UNKNOWN = ("task", "model", "condition")


def feedback(name: str, value: object, **more: object) -> dict[str, object]:
    return {"assessment_name": name, "feedback": {"value": value}, "valid": True} | more


def trace(case: str = "c1", value: object = True, **changes: Any) -> dict[str, Any]:
    """A row of a genai result table, with one scorer and one expectation."""
    expectation = {"assessment_name": "expected_response", "expectation": {"value": "urgent"}}
    return {
        "trace_id": f"tr-{case}-{value}",
        "exact/value": value,
        "expected_response/value": "urgent",
        "state": "OK",
        "request": {"case_id": case, "passage": "p1"},
        "response": "urgent",
        "tags": {"mlflow.traceName": "x", "passage": "p1"},
        "assessments": [feedback("exact", value), expectation],
    } | changes


def written(folder: Path, *traces: dict[str, Any], name: str = "genai.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(traces), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize(
    ("name", "expected", "cluster", "without"),
    [
        ("eval_results_table.json", "eval_results_table.json", "passage", ()),
        ("genai_result_df.json", "genai_result_df.json", "inputs.passage", ()),
        # csv writes True for true
        ("genai_result_df.csv", "genai_result_df.json", "inputs.passage", ("source_file", "score_raw")),
    ],
)
def test_every_expected_row_is_read(
    name: str,
    expected: str,
    cluster: str,
    without: tuple[str, ...],
    shared: Callable[[str], Path],
    expected_rows: Callable[..., list[str]],
) -> None:
    table = ts.read_mlflow(shared(f"harness/mlflow/{name}"), cluster=cluster)
    assert expected_rows(table, "mlflow", files=(expected,), without=(*UNKNOWN, *without)) == []


RECORDS = [
    {"case_id": "c1", "predictions": "urgent", "targets": "urgent", "exact/v1/score": 1.0},
    {"case_id": "c2", "predictions": "urgent", "targets": "routine", "exact/v1/score": None},
]
COLUMNS = list(RECORDS[0])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("records.json", RECORDS),
        ("split.json", {"columns": COLUMNS, "index": [0, 1], "data": [list(r.values()) for r in RECORDS]}),
        ("columns.json", {c: {str(i): r[c] for i, r in enumerate(RECORDS)} for c in COLUMNS}),
        ("table.json", {"schema": {"fields": [{"name": c} for c in COLUMNS]}, "data": RECORDS}),
    ],
)
def test_every_orientation_of_pandas_is_read(name: str, content: object, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(content).replace("/", "\\/"), encoding="utf-8")
    table = ts.read_mlflow(path)
    assert rows(table, "scenario", "metric", "score", "status", "response", "gold_low") == [
        ("c1", "exact/v1", 1.0, "ok", "urgent", "urgent"),
        ("c2", "exact/v1", None, "unscored", "urgent", "routine"),
    ]


def test_csv_and_parquet_are_read(tmp_path: Path) -> None:
    frame = pl.DataFrame(RECORDS)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    expected = [("c1", 1.0, "ok"), ("c2", None, "unscored")]
    assert rows(ts.read_mlflow(tmp_path / "t.parquet"), "scenario", "score", "status") == expected
    # a blank cell of a csv is a null too
    assert rows(ts.read_mlflow(tmp_path / "t.csv"), "scenario", "score", "status") == expected


def test_an_expectation_is_gold_and_no_score(tmp_path: Path) -> None:
    table = ts.read_mlflow(written(tmp_path, trace()))
    assert rows(table, "metric", "score", "gold_low") == [("exact", 1.0, "urgent")]


def test_expectations_of_other_names_are_told_by_the_assessments(tmp_path: Path) -> None:
    right = {"assessment_name": "right", "expectation": {"value": "urgent"}}
    row = trace(**{"right/value": "urgent", "assessments": [feedback("exact", True), right]})
    del row["expected_response/value"]
    assert rows(ts.read_mlflow(written(tmp_path, row)), "metric", "gold_low") == [("exact", "urgent")]


def test_a_failed_judge_and_a_failed_call_have_no_score(tmp_path: Path) -> None:
    judge = trace("c1", None, **{"exact/error_message": "judge returned invalid JSON"})
    call = trace("c2", False, state="TraceState.ERROR")
    assert rows(ts.read_mlflow(written(tmp_path, judge, call)), "scenario", "score", "status", "reason") == [
        ("c1", None, "error", "judge returned invalid JSON"),
        ("c2", None, "error", "the traced call failed (state ERROR)"),
    ]


def test_a_judge_metric_that_failed_says_so_in_its_justification(tmp_path: Path) -> None:
    said = "Failed to score model on payload. Error: timeout"
    record = {"inputs": "Q", "judge/v1/score": None, "judge/v1/justification": said}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([record]))
    assert rows(ts.read_mlflow(path), "metric", "status", "reason") == [("judge/v1", "error", said)]


def test_no_assessment_is_absent(tmp_path: Path) -> None:
    rows_of = [trace("c1"), trace("c2", None, assessments=[])]
    rows_of[1]["assessments"] = [feedback("other", 1)]
    assert rows(ts.read_mlflow(written(tmp_path, *rows_of)), "scenario", "status") == [
        ("c1", "ok"),
        ("c2", "absent"),
    ]


def test_traces_are_scored_by_their_assessments(tmp_path: Path) -> None:
    """A table of `search_traces` has no columns of values."""
    row = trace()
    failed = {"assessment_name": "judge", "feedback": {"error": {"error_message": "timeout"}}}
    overridden = feedback("exact", False, valid=False)
    row["assessments"] = [overridden, *row["assessments"], failed]
    del row["exact/value"], row["expected_response/value"]
    assert rows(ts.read_mlflow(written(tmp_path, row)), "metric", "score", "status", "reason") == [
        ("exact", 1.0, "ok", None),
        ("judge", None, "error", "timeout"),
    ]


def test_a_list_is_no_score(tmp_path: Path) -> None:
    row = {"inputs": "Q", "chunks/ratings": ["yes", "no"]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([row]))
    assert rows(ts.read_mlflow(path), "metric", "status", "score_raw") == [
        ("chunks", "non_scalar", '["yes", "no"]')
    ]


def test_columns_named_like_roles_do_not_take_their_place(tmp_path: Path) -> None:
    row = {"inputs": "Q", "model": "acme/a", "score": "high", "exact/score": 1.0}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([row]))
    table = ts.read_mlflow(path)
    assert rows(table, "model", "score", "inputs.score") == [("acme/a", 1.0, "high")]


def test_several_tables_without_a_model_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    paths = [written(tmp_path, trace("c1")), written(tmp_path, trace("c2"), name="other.json")]
    assert "does not say which model it is of" in refusal(lambda: ts.read_mlflow(paths))


def test_one_trace_in_two_tables_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    paths = [written(tmp_path, trace()), written(tmp_path, trace(state="DONE"), name="again.json")]
    assert refusal(lambda: ts.read_mlflow(paths, model="acme/a")) == (
        "DataError: `path`: 'genai.json' and 'again.json' both hold trace 'tr-c1-True'; leave one of them out"
    )


def test_a_table_without_scores_is_not_mlflow(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"a": 1}]')
    assert "no MLflow file" in refusal(lambda: ts.read_mlflow(path))


def test_a_row_without_scores_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"a": 1, "x/score": 1}, {"a": 2}]')
    assert refusal(lambda: ts.read_mlflow(path)) == (
        "ReadError: 't.json', row 2, has no column that ends in /score or /value, and no assessments; "
        "expected the table of an evaluation"
    )
