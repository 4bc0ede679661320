"""Event logs of OpenAI evals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

RUNS = ("mini-match_run1.jsonl", "mini-fuzzy_run1.jsonl", "mini-match_run2.jsonl", "mini-fuzzy_run2.jsonl")


def spec(run: str = "r1", **changes: Any) -> dict[str, Any]:
    return {"spec": {"completion_fns": ["acme/a"], "base_eval": "mini", "run_id": run} | changes}


def event(kind: str, sample: str | None = "mini.dev.0", **data: Any) -> dict[str, Any]:
    return {"run_id": "r1", "event_id": 0, "sample_id": sample, "type": kind, "data": data}


REPORT = {"final_report": {"accuracy": 1.0}, "run_id": "r1"}


def written(folder: Path, *lines: dict[str, Any], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    """The cluster is in the prompt alone: the log has no data of the samples."""
    table = ts.read_openai_evals([shared(f"harness/openai_evals/{name}") for name in RUNS])
    assert expected_rows(table, "openai_evals", without=("cluster",)) == []
    passage = table.frame.select(
        pl.col("scenario").str.tail(1), pl.col("prompt").str.extract(r"passage (p\d)")
    )
    assert sorted(passage.unique().rows()) == [("0", "p1"), ("1", "p1"), ("2", "p2"), ("3", "p2")]


def test_runs_are_counted_from_the_earliest(tmp_path: Path) -> None:
    """Whatever the files are called."""
    late = written(tmp_path, spec("r2", created_at="2026-02-01"), event("match", correct=False), REPORT)
    early = written(
        tmp_path, spec("r1", created_at="2026-01-01"), event("match", correct=True), REPORT, name="z.jsonl"
    )
    table = ts.read_openai_evals([late, early])
    assert rows(table, "repetition", "score", "source") == [("1", 1.0, "z.jsonl"), ("2", 0.0, "log.jsonl")]


def test_a_sample_without_a_match_is_missing_and_an_error_is_one(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        spec(),
        event("match", correct=True, expected="a", picked="a"),
        event("sampling", "mini.dev.1", prompt="?", sampled=["b"]),
        event("error", "mini.dev.2", type="APIError", message="overloaded"),
        REPORT,
    )
    assert rows(ts.read_openai_evals(log), "scenario", "score", "status", "reason", "response") == [
        ("mini.dev.0", 1.0, "ok", None, "a"),
        ("mini.dev.1", None, "missing", None, "b"),
        ("mini.dev.2", None, "error", "APIError: overloaded", None),
    ]


def test_a_choice_is_no_score(tmp_path: Path) -> None:
    """A letter C beside the score of a model-graded eval would otherwise count as correct."""
    log = written(tmp_path, spec(), event("metrics", choice="C", score=0.25), REPORT)
    table = ts.read_openai_evals(log)
    assert rows(table, "metric", "score", "metrics.choice") == [("metrics/score", 0.25, "C")]


def test_an_invalid_choice_keeps_its_score_and_says_so(tmp_path: Path) -> None:
    log = written(tmp_path, spec(), event("metrics", choice="__invalid__", score=0.0), REPORT)
    assert rows(ts.read_openai_evals(log), "score", "status", "reason") == [(0.0, "ok", "invalid choice")]
    assert rows(ts.read_openai_evals(log, unparsed="missing"), "score", "status") == [(None, "unparsed")]


def test_the_judge_that_is_sampled_later_is_not_the_answer(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        spec(),
        event("sampling", prompt=[{"role": "user", "content": "Q"}], sampled=["urgent"]),
        event("sampling", prompt="Is it right?", sampled=["Y"]),
        event("metrics", score=1),
        REPORT,
    )
    assert rows(ts.read_openai_evals(log), "response", "prompt", "score_raw") == [("urgent", "Q", "1.0")]


def test_lists_are_no_scores(tmp_path: Path) -> None:
    log = written(tmp_path, spec(), event("metrics", logprobs=[0.1, 0.2], f1=1.0), REPORT)
    assert rows(ts.read_openai_evals(log), "metric", "status") == [
        ("metrics/f1", "ok"),
        ("metrics/logprobs", "non_scalar"),
    ]


@pytest.mark.parametrize(
    ("changes", "model"),
    [
        ({"completion_fns": ["acme/a", "acme/judge"]}, "acme/a"),
        ({"completion_fns": None, "model_names": {"completions": ["davinci"]}, "model_name": "x"}, "davinci"),
        ({"completion_fns": None, "model_name": "gpt-3.5-turbo"}, "gpt-3.5-turbo"),
    ],
)
def test_models_of_old_and_new_logs(changes: dict[str, Any], model: str, tmp_path: Path) -> None:
    log = written(tmp_path, spec(**changes), event("match", correct=True), REPORT)
    assert rows(ts.read_openai_evals(log), "model") == [(model,)]


def test_a_run_that_stopped_early_is_noted(tmp_path: Path) -> None:
    table = ts.read_openai_evals(written(tmp_path, spec(), event("match", correct=True)))
    assert "'log.jsonl' has no final report: the run may have stopped early." in map(str, table.notes)


def test_events_without_a_sample_are_noted(tmp_path: Path) -> None:
    log = written(tmp_path, spec(), event("error", None, message="x"), event("match", correct=True), REPORT)
    assert "'log.jsonl': 1 events name no sample, and are left out." in map(
        str, ts.read_openai_evals(log).notes
    )


def test_one_run_in_two_files_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    first = written(tmp_path, spec(), event("match", correct=True), REPORT)
    second = written(tmp_path, spec(), event("match", correct=False), name="again.jsonl")
    assert refusal(lambda: ts.read_openai_evals([first, second])) == (
        "DataError: `path`: 'log.jsonl' and 'again.jsonl' both hold run 'r1'; leave one of them out"
    )


def test_a_line_that_is_cut_short_is_named(tmp_path: Path, refusal: Refusal) -> None:
    log = written(tmp_path, spec(), event("match", correct=True))
    log.write_text(log.read_text()[:-9])
    assert refusal(lambda: ts.read_openai_evals(log)).startswith(
        "ReadError: 'log.jsonl', line 2, is not JSON"
    )


def test_a_long_log_is_read_line_by_line(tmp_path: Path, refusal: Refusal) -> None:
    """The limit holds for a line, not for the file."""
    events = [event("match", f"mini.dev.{i}", correct=i % 2 == 0, prompt="x" * 500) for i in range(50)]
    log = written(tmp_path, spec(), *events, REPORT)
    assert ts.read_openai_evals(log, max_bytes=1_000).frame.height == 50
    assert "`max_bytes=" in refusal(lambda: ts.read_openai_evals(log, max_bytes=500))
