"""Results of promptfoo: versions 2 and 3, JSON lines, and what must not be taken for a score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]


def result(case: str = "c1", score: float = 1, **changes: Any) -> dict[str, Any]:
    """A result of version 3."""
    return {
        "id": f"{case}-{changes.get('testIdx', 0)}-{changes.get('promptIdx', 0)}",
        "testIdx": 0,
        "promptIdx": 0,
        "provider": {"id": "acme:a", "label": "acme/a"},
        "prompt": {"raw": "Answer", "label": "plain"},
        "vars": {"case_id": case, "passage": "p1"},
        "response": {"output": "urgent", "cached": False},
        "success": score == 1,
        "score": score,
        "namedScores": {"correct": score},
        "gradingResult": {"pass": score == 1, "score": score, "reason": "said", "componentResults": []},
        "testCase": {"vars": {"case_id": case}, "assert": [{"type": "equals", "metric": "correct"}]},
        "failureReason": 0 if score == 1 else 1,
    } | changes


def written(folder: Path, *results: Mapping[str, Any], name: str = "results.json", **more: Any) -> Path:
    path = folder / name
    document = {"evalId": "e", "results": {"version": 3, "results": list(results)}, "config": {}} | more
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize("names", [("results.json",), ("results.jsonl",), ("",)])
def test_every_expected_row_is_read(
    names: tuple[str, ...], shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    """JSON, JSON lines (without the description of the configuration), and the folder with both and a csv."""
    table = ts.read_promptfoo(shared(f"harness/promptfoo/{names[0]}"), cluster="vars.passage")
    # the answers are not in the expected rows of this harness
    without = ("response", *(("task", "source_file") if names == ("results.jsonl",) else ()))
    assert expected_rows(table, "promptfoo", without=without) == []


def test_results_are_sorted_before_repetitions_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, result(score=0, testIdx=1, id="second"), result(score=1, testIdx=0, id="first"))
    table = ts.read_promptfoo(path, metric="correct")
    assert rows(table, "scenario", "repetition", "score") == [("c1", "1", 1.0), ("c1", "2", 0.0)]


def test_an_error_is_missing_in_every_metric(tmp_path: Path) -> None:
    failed = result(
        "c2", 0, failureReason=2, error="529 overloaded", namedScores={}, gradingResult=None, response={}
    )
    table = ts.read_promptfoo(written(tmp_path, result(), failed))
    assert rows(table.with_cluster("scenario"), "scenario", "metric", "score", "status", "reason")[2:] == [
        ("c2", "__overall__", None, "error", "529 overloaded"),
        ("c2", "correct", None, "error", "529 overloaded"),
    ]


def test_a_failed_assertion_is_no_error_though_it_is_written_as_one(tmp_path: Path) -> None:
    """Both versions copy the reason of the failed assertion to `error`."""
    old = result(score=0, error="Expected output to contain 'urgent'")
    del old["failureReason"]
    table = ts.read_promptfoo(written(tmp_path, old))
    assert set(table.frame["status"]) == {"ok"}
    assert set(table.frame["score"]) == {0.0}


def test_a_failed_grader_is_no_zero(tmp_path: Path) -> None:
    component = {
        "pass": False,
        "score": 0,
        "reason": "Could not extract JSON from llm-rubric response",
        "metadata": {"graderError": True},
        "assertion": {"type": "llm-rubric", "metric": "correct"},
    }
    broken = result(score=0, gradingResult={"score": 0, "componentResults": [component]})
    table = ts.read_promptfoo(written(tmp_path, broken))
    assert rows(table, "metric", "score", "status") == [
        ("__overall__", None, "error"),
        ("correct", None, "error"),
    ]


def test_assertions_without_a_metric_take_the_name_of_their_type(tmp_path: Path) -> None:
    parts = [
        {"score": s, "assertion": {"type": t}} for s, t in ((1, "contains"), (0, "contains"), (0.5, "cost"))
    ]
    table = ts.read_promptfoo(
        written(tmp_path, result(namedScores={}, score=0.5, gradingResult={"componentResults": parts}))
    )
    assert rows(table, "metric", "score") == [
        ("__overall__", 0.5),
        ("contains", 1.0),
        ("contains #2", 0.0),
        ("cost", 0.5),
    ]


def test_the_only_assertion_is_the_overall_score(tmp_path: Path) -> None:
    part = {"score": 1, "assertion": {"type": "equals"}}
    path = written(tmp_path, result(namedScores={}, gradingResult={"componentResults": [part]}))
    assert rows(ts.read_promptfoo(path), "metric", "score") == [("__overall__", 1.0)]


def test_a_test_without_assertions_is_not_scored(tmp_path: Path) -> None:
    grading = {"pass": True, "score": 1, "reason": "No assertions"}
    path = written(tmp_path, result(namedScores={}, gradingResult=grading))
    assert rows(ts.read_promptfoo(path), "score", "status") == [(None, "unscored")]


def test_version_2_takes_tests_from_its_table(tmp_path: Path) -> None:
    """Its results have neither indices nor tests, prompts have `display`, and providers may be text."""
    variables = {"question": "Chest pain?"}
    old = {
        "provider": {"id": "acme:a"},
        "prompt": {"raw": "Q: Chest pain?", "display": "Q: {{question}}"},
        "vars": variables,
        "response": {"output": "urgent"},
        "success": True,
        "score": 1,
        "namedScores": {},
        "gradingResult": {"pass": True, "score": 1},
    }
    error = old | {
        "provider": "acme:b",
        "success": False,
        "score": 0,
        "error": "timeout",
        "gradingResult": None,
    }
    table = {
        "head": {"vars": ["question"]},
        "body": [{"vars": ["Chest pain?"], "test": {"description": "case 1", "metadata": {"passage": "p1"}}}],
    }
    results = {"version": 2, "results": [old, error, old], "stats": {}, "table": table}
    path = tmp_path / "output.json"
    path.write_text(json.dumps({"results": results, "config": {"description": "mini"}, "shareableUrl": None}))
    read = ts.read_promptfoo(path, cluster="metadata.passage")
    columns = ("task", "scenario", "model", "condition", "repetition", "score", "status", "cluster_1")
    assert rows(read, *columns) == [
        ("mini", "case 1", "acme:a", "Q: {{question}}", "1", 1.0, "ok", "p1"),
        ("mini", "case 1", "acme:a", "Q: {{question}}", "2", 1.0, "ok", "p1"),
        ("mini", "case 1", "acme:b", "Q: {{question}}", "1", None, "error", "p1"),
    ]


def test_a_bare_summary_is_read(tmp_path: Path) -> None:
    """What `evaluate()` of the node package returns has no evalId."""
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"version": 3, "timestamp": "t", "prompts": [], "results": [result()]}))
    assert ts.read_promptfoo(path).frame.height == 2


def test_columns_of_one_provider_and_prompt_are_no_repetitions(tmp_path: Path) -> None:
    table = ts.read_promptfoo(written(tmp_path, result(), result(score=0, promptIdx=1)), metric="correct")
    assert rows(table, "model", "repetition", "score") == [
        ("acme/a [0]", "1", 1.0),
        ("acme/a [1]", "1", 0.0),
    ]
    assert "columns" in [note.code for note in table.notes]


def test_cached_answers_are_noted(tmp_path: Path) -> None:
    copy = result(testIdx=1, response={"output": "urgent", "cached": True})
    table = ts.read_promptfoo(written(tmp_path, result(), copy))
    said = {note.code: str(note) for note in table.notes}
    assert said["cached"] == (
        "1 of 2 answers came from the cache of promptfoo; repetitions from the cache are copies, not new "
        "answers (run with `--no-cache`)."
    )


def test_one_evaluation_in_two_files_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    first = written(tmp_path, result())
    second = written(tmp_path, result(), name="again.json", evalId="other")
    assert refusal(lambda: ts.read_promptfoo([first, second])) == (
        "DataError: `path`: 'results.json' and 'again.json' hold the same results (their ids are equal); "
        "leave one of them out"
    )


def test_json_lines_of_the_same_evaluation_are_left_out(tmp_path: Path) -> None:
    written(tmp_path, result())
    (tmp_path / "results.jsonl").write_text(json.dumps(result()) + "\n")
    table = ts.read_promptfoo(tmp_path)
    assert set(table.frame["source"]) == {"results.json"}
    assert "'results.jsonl' left out: 'results.json' holds the same results." in map(str, table.notes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", "case,[acme] plain,Status,Score,Grader Reason\nc1,urgent,PASS,0.71,fine\n"),
        ("r.yaml", "evalId: e\nresults:\n  version: 3\n"),
        ("r.html", "<!DOCTYPE html><html><head><title>LLM Evals - promptfoo</title></head></html>"),
    ],
)
def test_rounded_and_printed_results_are_refused(
    name: str, content: str, tmp_path: Path, refusal: Refusal
) -> None:
    (tmp_path / name).write_text(content)
    said = refusal(lambda: ts.read_promptfoo(tmp_path / name))
    assert said.startswith(
        f"ReadError: `path`: '{name}' is no JSON of promptfoo; scores in its csv are rounded"
    )


def test_a_file_that_is_cut_short_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, result())
    path.write_text(path.read_text()[:-40])
    assert "'results.json'" in refusal(lambda: ts.read_promptfoo(path))


def test_an_evaluation_without_results_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    assert "no samples" in refusal(lambda: ts.read_promptfoo(written(tmp_path)))


def test_item_names_another_field(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, result(), result("c2", testIdx=1))
    assert set(ts.read_promptfoo(path, item="vars.passage").frame["scenario"]) == {"p1"}
    assert refusal(lambda: ts.read_promptfoo(path, item="vars.nobody")).startswith(
        "DataError: `item` names 'vars.nobody', which these files do not have; choose from ["
    )
