"""Experiments of LangSmith: tables, rows of runs, and runs that failed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

ROW = {
    "inputs.case_id": "c1",
    "inputs.passage": "p1",
    "outputs.label": "urgent",
    "error": "",
    "reference.label": "urgent",
    "feedback.correct": "True",
    "execution_time": "0.1",
    "example_id": "e1",
    "id": "r1",
}


def written(folder: Path, *rows: Mapping[str, object], name: str = "experiment.csv") -> Path:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path = folder / name
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    table = ts.read_langsmith(shared("harness/langsmith/experiment.csv"), cluster="inputs.passage")
    assert expected_rows(table, "langsmith") == []


def test_a_failed_run_is_missing_whatever_the_evaluators_said(tmp_path: Path) -> None:
    failed = ROW | {
        "outputs.label": "",
        "error": "RuntimeError('529')\n\nTraceback",
        "feedback.correct": "False",
    }
    half = failed | {"outputs.label": "urg", "id": "r2", "example_id": "e2", "inputs.case_id": "c2"}
    table = ts.read_langsmith(written(tmp_path, failed, half))
    assert rows(table, "score", "score_raw", "status", "reason", "run_error") == [
        (None, "False", "error", "run error: evaluator saw no output", "RuntimeError('529')"),
        (None, "False", "error", "run error: RuntimeError('529')", "RuntimeError('529')"),
    ]


def test_a_blank_cell_is_missing(tmp_path: Path) -> None:
    table = ts.read_langsmith(written(tmp_path, ROW | {"feedback.correct": ""}))
    assert rows(table, "score", "status") == [(None, "missing")]


def test_words_booleans_and_numbers_are_scores(tmp_path: Path) -> None:
    row = ROW | {"feedback.grade": "FAIL", "feedback.judge": "0.7", "feedback.said": "so-so"}
    assert rows(ts.read_langsmith(written(tmp_path, row)), "metric", "score", "status") == [
        ("correct", 1.0, "ok"),
        ("grade", 0.0, "ok"),
        ("judge", 0.7, "ok"),
        ("said", None, "non_scalar"),
    ]


def test_examples_name_the_items_where_inputs_do_not(tmp_path: Path) -> None:
    """Runs of one example are repetitions; two examples with one question stay apart."""
    base = {k: v for k, v in ROW.items() if not k.startswith("inputs")} | {"inputs.question": "Chest pain?"}
    table = ts.read_langsmith(
        written(tmp_path, base, base | {"id": "r2"}, base | {"id": "r3", "example_id": "e2"})
    )
    assert rows(table, "scenario", "repetition") == [("e1", "1"), ("e1", "2"), ("e2", "1")]


def test_of_several_outputs_the_answer_is_taken(tmp_path: Path) -> None:
    row = ROW | {"outputs.thought": "hm", "outputs.answer": "routine"}
    table = ts.read_langsmith(written(tmp_path, {k: v for k, v in row.items() if k != "outputs.label"}))
    assert rows(table, "response") == [("routine",)]


def evaluated(example: str = "e1", **changes: Any) -> dict[str, Any]:
    results = [
        {"key": "correct", "score": True, "value": None},
        {"key": "grade", "score": None, "value": "PASS"},
        {"key": "judge", "score": None, "value": None, "comment": "timeout", "extra": {"error": True}},
    ]
    return {
        "run": {"id": "r1", "inputs": {"q": "Q"}, "outputs": {"output": "urgent"}, "error": None},
        "example": {
            "id": example,
            "inputs": {"q": "Q"},
            "outputs": {"label": "urgent"},
            "metadata": {"p": "p1"},
        },
        "evaluation_results": {"results": results},
    } | changes


@pytest.mark.parametrize("lines", [False, True])
def test_rows_of_evaluate_are_read(lines: bool, tmp_path: Path) -> None:
    path = tmp_path / ("rows.jsonl" if lines else "rows.json")
    path.write_text(json.dumps(evaluated() if lines else [evaluated()]) + "\n")
    table = ts.read_langsmith(path, cluster="metadata.p")
    assert rows(table, "scenario", "metric", "score", "status", "reason", "gold_low", "cluster_1") == [
        ("e1", "correct", 1.0, "ok", None, "urgent", "p1"),
        ("e1", "grade", 1.0, "ok", None, "urgent", "p1"),
        ("e1", "judge", None, "error", "timeout", "urgent", "p1"),
    ]


def test_examples_of_the_service_are_read(tmp_path: Path) -> None:
    run = {"id": "r1", "outputs": {"output": "urgent"}, "feedback_stats": {"correct": {"n": 1, "avg": 0.5}}}
    example = {"id": "e1", "inputs": {"q": "Q"}, "outputs": {"label": "urgent"}, "runs": [run]}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"examples_with_runs": [example], "run_stats": {}}))
    assert rows(ts.read_langsmith(path), "scenario", "metric", "score") == [("e1", "correct", 0.5)]


def test_one_run_in_two_files_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    paths = [written(tmp_path, ROW), written(tmp_path, ROW | {"execution_time": "9"}, name="b.csv")]
    assert refusal(lambda: ts.read_langsmith(paths)) == (
        "DataError: `path`: 'experiment.csv' and 'b.csv' both hold run 'r1'; leave one of them out"
    )


def test_several_experiments_without_a_model_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    paths = [written(tmp_path, ROW), written(tmp_path, ROW | {"id": "r2"}, name="b.csv")]
    assert "does not say which model it is of" in refusal(lambda: ts.read_langsmith(paths))
    table = ts.read_langsmith(paths, model="acme/a")
    assert rows(table, "model", "repetition") == [("acme/a", "1"), ("acme/a", "2")]


def test_a_table_without_feedback_is_not_langsmith(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, {k: v for k, v in ROW.items() if k != "feedback.correct"})
    assert "no LangSmith file" in refusal(lambda: ts.read_langsmith(path))
