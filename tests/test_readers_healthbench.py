"""HealthBench results of simple-evals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]


def example(item: str = "hb-1", score: float = 0.5, **changes: Any) -> dict[str, Any]:
    criteria = [{"criterion": "Advises help", "points": 8, "tags": ["axis:accuracy"], "criteria_met": True}]
    completion = [{"role": "assistant", "content": "Call 999."}]
    return {
        "score": score,
        "prompt_id": item,
        "completion": completion,
        "rubric_items": criteria,
        "completion_id": "same",
    } | changes


def written(folder: Path, *examples: object, name: str = "healthbench_acme-7b_allresults.json") -> Path:
    path = folder / name
    run = {"score": 0.1, "metrics": {}, "htmls": ["<p>"], "convos": [[]]}
    path.write_text(json.dumps(run | {"metadata": {"example_level_metadata": list(examples)}}))
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    path = shared("harness/healthbench_simple_evals/healthbench_mock-7b_allresults.json")
    table = ts.read_healthbench(path, cluster="scenario")
    assert expected_rows(table, "healthbench_simple_evals") == []


def test_examples_below_zero_stay_there(tmp_path: Path) -> None:
    table = ts.read_healthbench(written(tmp_path, example(score=-9 / 11)), metric="overall_score")
    assert rows(table, "score") == [(-9 / 11,)]


def test_repeats_are_counted_though_their_completions_are_equal(tmp_path: Path) -> None:
    path = written(tmp_path, example(), example("hb-2"), example())
    assert rows(ts.read_healthbench(path, metric="overall_score"), "scenario", "repetition") == [
        ("hb-1", "1"),
        ("hb-1", "2"),
        ("hb-2", "1"),
    ]


def test_tags_describe_criteria(tmp_path: Path) -> None:
    table = ts.read_healthbench(written(tmp_path, example()), metric="rubric_0/points=8")
    assert rows(table, "criterion", "tags.axis", "score") == [("Advises help", "accuracy", 1.0)]


@pytest.mark.parametrize(
    ("name", "task", "model"),
    [
        ("healthbench_gpt-4.1_20250513_101500_allresults.json", "healthbench", "gpt-4.1"),
        ("healthbench_hard_o3_high_allresults.json", "healthbench_hard", "o3_high"),
        ("healthbench_consensus_gpt-4o_DEBUG_allresults.json", "healthbench_consensus", "gpt-4o"),
    ],
)
def test_model_and_task_are_in_the_name_of_the_file(name: str, task: str, model: str, tmp_path: Path) -> None:
    table = ts.read_healthbench(written(tmp_path, example(), name=name))
    assert set(rows(table, "task", "model")) == {(task, model)}


def test_a_renamed_file_takes_its_model_from_the_caller(tmp_path: Path, refusal: Refusal) -> None:
    first = written(tmp_path, example(), name="a.json")
    second = written(tmp_path, example(score=1), name="b.json")
    assert "model" not in ts.read_healthbench(first).frame.columns
    assert set(ts.read_healthbench(first, model="acme/a").frame["model"]) == {"acme/a"}
    assert refusal(lambda: ts.read_healthbench([first, second])).startswith(
        "DataError: `model`: 'a.json' does not say which model it is of"
    )


def test_another_eval_without_examples_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    assert refusal(lambda: ts.read_healthbench(written(tmp_path, None, None))) == (
        "ReadError: 'healthbench_acme-7b_allresults.json' has no scores of examples: "
        "`metadata.example_level_metadata` is empty. Only HealthBench fills it in; other tasks of "
        "simple-evals keep the mean alone"
    )


def test_lost_examples_are_noted(tmp_path: Path) -> None:
    table = ts.read_healthbench(written(tmp_path, example(), None))
    assert [note.level for note in table.notes if note.code == "no_data"] == ["caution"]


def test_a_file_that_is_cut_short_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, example())
    path.write_text(path.read_text()[:-30])
    assert "healthbench_acme-7b_allresults.json" in refusal(lambda: ts.read_healthbench(path))


def test_the_file_of_means_points_to_the_other(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "healthbench_acme-7b.json"
    path.write_text(json.dumps({"overall_score:bootstrap_std": 0.1, "score": 0.4}))
    assert refusal(lambda: ts.read_healthbench(path)) == (
        "ReadError: `path`: 'healthbench_acme-7b.json' holds means of simple-evals over all examples; the "
        "examples are in the file of the same name that ends in `_allresults.json`"
    )
