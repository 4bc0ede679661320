"""Test runs of DeepEval: versions, judges that failed, and names that are no items."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]


def case(name: str = "c1", score: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    metric = {"name": "Exact Match", "score": score, "success": score == 1, "evaluationModel": "rule"}
    return {
        "name": name,
        "input": f"Case {name}",
        "actualOutput": "urgent",
        "expectedOutput": "urgent",
        "metricsData": [metric],
    } | changes


def written(folder: Path, *cases: Mapping[str, Any], name: str = "run.json", **more: Any) -> Path:
    path = folder / name
    run = {"testCases": list(cases), "hyperparameters": {"model": "acme/a"}, "testPassed": 1} | more
    path.write_text(json.dumps(run), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize("name", ["test_run.json", "latest_test_run_wrapped.json", ""])
def test_every_expected_row_is_read(
    name: str, shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    """A run, the same run as `.deepeval` keeps it, and the folder with both."""
    table = ts.read_deepeval(shared(f"harness/deepeval/{name}"), cluster="metadata.passage")
    assert expected_rows(table, "deepeval", without=("source_file",)) == []


def test_a_failed_judge_has_no_score_and_the_lists_at_the_top_are_not_used(tmp_path: Path) -> None:
    judge = {"name": "Judge [GEval]", "success": False, "error": "invalid JSON"}
    broken = case("c1", metricsData=[judge])
    fine = case("c2", metricsData=[{"name": "Judge [GEval]", "score": 0.4, "success": True}])
    path = written(tmp_path, broken, fine, metricsScores=[{"metric": "Judge [GEval]", "scores": [0.4]}])
    assert rows(ts.read_deepeval(path), "scenario", "score", "status", "reason") == [
        ("c1", None, "error", "invalid JSON"),
        ("c2", 0.4, "ok", None),
    ]


def test_cases_run_in_the_order_of_order(tmp_path: Path) -> None:
    path = written(tmp_path, case(score=0.0, order=1), case(score=1.0, order=0))
    assert rows(ts.read_deepeval(path), "repetition", "score") == [("1", 1.0), ("2", 0.0)]


def test_running_numbers_are_no_names_of_items(tmp_path: Path) -> None:
    """DeepEval names cases test_case_0, ... where the user does not; the second run of an item goes on."""
    first, again = case("test_case_0", input="Chest pain?"), case("test_case_1", input="Chest pain?")
    table = ts.read_deepeval(written(tmp_path, first, again))
    assert rows(table, "scenario", "repetition") == [("Chest pain?", "1"), ("Chest pain?", "2")]


def test_one_name_for_several_inputs_is_no_item(tmp_path: Path) -> None:
    """Under pytest, all cases of a test function have its name."""
    table = ts.read_deepeval(
        written(tmp_path, case("test_answers", input="A?"), case("test_answers", input="B?"))
    )
    assert table.frame["scenario"].to_list() == ["A?", "B?"]


def test_old_spellings(tmp_path: Path) -> None:
    """Versions before 1.0 wrote metricsMetadata and metric; dumped results are in snake case."""
    old = case(metricsMetadata=[{"metric": "Bias", "score": 0.25, "success": True}], metricsData=None)
    result = {
        "name": "c1",
        "success": True,
        "metrics_data": [{"name": "Bias", "score": 0.25, "evaluation_model": "acme/judge"}],
        "input": "Case c1",
        "actual_output": "urgent",
        "expected_output": "urgent",
        "additional_metadata": {"passage": "p1"},
    }
    dumped = tmp_path / "dumped.json"
    dumped.write_text(json.dumps({"test_results": [result], "confident_link": None}))
    expected = [("c1", "Bias", 0.25, "urgent", "urgent")]
    columns = ("scenario", "metric", "score", "response", "gold_low")
    assert rows(ts.read_deepeval(written(tmp_path, old)), *columns) == expected
    assert rows(ts.read_deepeval(dumped, cluster="passage"), *columns) == expected


def test_conversations_answer_with_their_last_turn(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Go to hospital."}]
    talk = {"name": "t1", "turns": turns, "scenario": "chest pain", "expectedOutcome": "urgent"}
    talk["metricsData"] = [{"name": "Role", "score": 1.0}]
    table = ts.read_deepeval(written(tmp_path, conversationalTestCases=[talk]))
    assert rows(table, "scenario", "response", "gold_low") == [("t1", "Go to hospital.", "urgent")]


def test_a_case_without_metrics_is_absent_in_all(tmp_path: Path) -> None:
    table = ts.read_deepeval(written(tmp_path, case("c1"), case("c2", metricsData=[])))
    assert rows(table, "scenario", "metric", "status") == [
        ("c1", "Exact Match", "ok"),
        ("c2", "Exact Match", "absent"),
    ]


def test_hyperparameters_are_model_and_condition(tmp_path: Path) -> None:
    settings = {"Model": "acme/a", "prompt": "structured", "temperature": 0}
    table = ts.read_deepeval(written(tmp_path, case(), hyperparameters=settings))
    assert rows(table, "model", "condition") == [("acme/a", '{"prompt": "structured", "temperature": 0}')]


def test_a_copy_of_a_run_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    paths = [written(tmp_path, case()), written(tmp_path, case(), name="copy.json", testPassed=2)]
    assert refusal(lambda: ts.read_deepeval(paths)) == (
        "DataError: `path`: 'run.json' and 'copy.json' hold the same test cases, down to how long each took; "
        "leave one of them out"
    )


def test_several_runs_without_a_model_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    paths = [
        written(tmp_path, case(runDuration=seconds), name=name, hyperparameters=None)
        for seconds, name in ((1.0, "a.json"), (2.0, "b.json"))
    ]
    assert refusal(lambda: ts.read_deepeval(paths)) == (
        "DataError: `model`: 'a.json' does not say which model it is of, which may be another than that of "
        "'b.json'; read DeepEval files one at a time, each with `model=` and a name, or all with one name if "
        "they are runs of one model"
    )
    table = ts.read_deepeval(paths, model="acme/a")
    assert rows(table, "model", "repetition") == [("acme/a", "1"), ("acme/a", "2")]


def test_a_file_that_is_cut_short_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, case())
    path.write_text(path.read_text()[:-20])
    assert refusal(lambda: ts.read_deepeval(path)).startswith("ReadError: 'run.json' is not JSON")
