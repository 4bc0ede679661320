"""Details of lighteval: new and old columns, models from paths and results, several samples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

DATE = "2026-01-01T00-00-00.000000"
LATER = "2026-01-02T00-00-00.000000"


def row(item: str = "0", texts: list[str] | None = None, **metrics: Any) -> dict[str, Any]:
    """A generative document; the prompt goes with the item."""
    doc = {
        "id": item,
        "task_name": "mini|0",
        "query": f"Q{item}",
        "choices": ["5"],
        "gold_index": 0,
        "specific": {"passage": f"p{item}"},
    }
    said = {"text": texts or ["5"], "text_post_processed": None, "logprobs": [], "input_tokens": [1, 2]}
    return {"doc": doc, "model_response": said, "metric": metrics or {"em": 1}}


def written(
    folder: Path, *rows: Mapping[str, Any], model: str = "acme/a", date: str = DATE, task: str = "mini|0"
) -> Path:
    run = folder / "details" / model / date
    run.mkdir(parents=True, exist_ok=True)
    path = run / f"details_{task}_{date}.parquet"
    pl.DataFrame(list(rows)).write_parquet(path)
    return path


def results(folder: Path, model: str, metrics: list[Mapping[str, Any]], date: str = DATE) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    said = {"config_general": {"model_name": model}, "config_tasks": {"mini|0": {"metrics": metrics}}}
    (folder / f"results_{date}.json").write_text(json.dumps(said))


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize("part", ["", "details"])
def test_every_expected_row_is_read(
    part: str, shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    table = ts.read_lighteval(shared(f"harness/lighteval/{part}"), cluster="specific.passage")
    assert expected_rows(table, "lighteval") == []


def test_the_model_is_that_of_the_results_of_the_same_date(tmp_path: Path) -> None:
    written(tmp_path, row())
    results(tmp_path / "results" / "acme" / "a", "acme/a@main", [])
    results(tmp_path / "results" / "acme" / "a", "another run", [], date=LATER)
    assert rows(ts.read_lighteval(tmp_path), "model") == [("acme/a@main",)]


def test_without_results_the_path_is_the_model(tmp_path: Path) -> None:
    written(tmp_path, row(), model="hub/acme/a")
    assert rows(ts.read_lighteval(tmp_path), "model") == [("hub/acme/a",)]


def test_a_copied_file_says_no_model(tmp_path: Path) -> None:
    """The name of the file holds the task and the date alone."""
    path = tmp_path / f"details_mini|0_{DATE}.parquet"
    pl.DataFrame([row()]).write_parquet(path)
    assert "model" not in ts.read_lighteval(path).frame.columns
    assert rows(ts.read_lighteval(path, model="acme/a"), "model") == [("acme/a",)]


def test_a_dataset_of_the_hub_has_results_above_the_dates(tmp_path: Path) -> None:
    (tmp_path / DATE).mkdir()
    pl.DataFrame([row()]).write_parquet(tmp_path / DATE / f"details_mini|0_{DATE}.parquet")
    results(tmp_path, "acme/a", [])
    assert rows(ts.read_lighteval(tmp_path), "model") == [("acme/a",)]


def test_one_value_of_several_samples_says_how_it_was_made(tmp_path: Path) -> None:
    metrics = {"em": 1, "avg@n:n=2": 0.5, "maj@2": 1, "pass@k:k=1": 0.5, "f1": 1.0, "odd": 0.25}
    written(tmp_path, row(texts=["5", "6"], **metrics))
    functions = [{"metric_name": "f1", "sample_level_fn": "F1_score(aggregation_function=mean)"}]
    results(tmp_path / "results" / "acme" / "a", "acme/a", functions)
    table = ts.read_lighteval(tmp_path)
    assert dict(rows(table, "metric", "reason")) == {
        "em": "max_over_2_samples",
        "avg@n:n=2": "mean_over_2_samples",
        "maj@2": "majority_over_2_samples",
        "pass@k:k=1": "pass_at_k_over_2_samples",
        "f1": "mean_over_2_samples",
        "odd": "aggregated_over_2_samples",
    }
    assert set(table.frame["response"]) == {'["5", "6"]'}
    assert set(table.frame["status"]) == {"ok"}
    assert "aggregated" in [note.code for note in table.notes]


def test_multiple_choice_answers_with_the_likeliest_choice(tmp_path: Path) -> None:
    doc = row(acc=0)
    doc["doc"] |= {"choices": [" alpha", " beta", " gamma"], "gold_index": [1, 2]}
    doc["model_response"] |= {"text": [], "logprobs": [-0.5, -2.0, -3.0]}
    written(tmp_path, doc)
    assert rows(ts.read_lighteval(tmp_path), "response", "gold_low") == [("alpha", '["beta", "gamma"]')]


def test_reasoning_is_no_part_of_the_answer(tmp_path: Path) -> None:
    doc = row(texts=["<think>no</think> 5"])
    doc["model_response"]["text_post_processed"] = ["5"]
    written(tmp_path, doc)
    assert rows(ts.read_lighteval(tmp_path), "response") == [("5",)]


def test_values_that_are_no_scores(tmp_path: Path) -> None:
    written(tmp_path, row(em=1, ppl=[-11.0, 3.0], f1=math.nan))
    assert dict(rows(ts.read_lighteval(tmp_path), "metric", "status")) == {
        "em": "ok",
        "ppl": "non_scalar",
        "f1": "unscored",
    }


def test_a_smaller_value_is_better_where_the_results_say_so(tmp_path: Path) -> None:
    written(tmp_path, row(error_rate=0.2))
    metric = {"metric_name": "error_rate", "higher_is_better": False}
    results(tmp_path / "results" / "acme" / "a", "acme/a", [metric])
    assert ts.read_lighteval(tmp_path).higher_is_better is False


def test_dates_are_runs(tmp_path: Path) -> None:
    written(tmp_path, row(em=0), date=LATER)
    written(tmp_path, row(em=1))
    table = ts.read_lighteval(tmp_path)
    assert rows(table, "repetition", "score") == [("1", 1.0), ("2", 0.0)]
    assert "runs" in [note.code for note in table.notes]


def test_other_questions_under_one_number_are_noted(tmp_path: Path) -> None:
    other = row()
    other["doc"]["query"] = "another question"
    written(tmp_path, row())
    written(tmp_path, other, model="acme/b")
    notes = {note.code: str(note) for note in ts.read_lighteval(tmp_path).notes}
    assert "other questions under numbers that other files use" in notes["differing_items"]


def old(**changes: Any) -> dict[str, Any]:
    return {
        "example": "Q",
        "full_prompt": "Few shots. Q",
        "predictions": ["5"],
        "gold": ["5"],
        "choices": [],
        "gold_index": [],
        "metrics": {"em": 1.0},
        "specifics": {"passage": "p1"},
    } | changes


def test_old_details_are_counted_row_by_row(tmp_path: Path) -> None:
    written(tmp_path, old(), old(example="R"), task="lighteval|gsm8k|5")
    table = ts.read_lighteval(tmp_path, cluster="specific.passage")
    columns = ("task", "scenario", "score", "response", "gold_low", "cluster_1")
    assert rows(table, *columns) == [
        ("lighteval|gsm8k|5", "0", 1.0, "5", "5", "p1"),
        ("lighteval|gsm8k|5", "1", 1.0, "5", "5", "p1"),
    ]
    assert "row_numbers" in [note.code for note in table.notes]


def test_old_details_of_multiple_choice(tmp_path: Path) -> None:
    """Predictions are log-probabilities, or pairs of one and whether it was greedy."""
    ranked = old(predictions=[[-2.0, 0.0], [-0.5, 1.0]], choices=["A", "B"], gold_index=[0], gold=[])
    written(tmp_path, ranked, task="leaderboard|arc|25")
    assert rows(ts.read_lighteval(tmp_path), "response", "gold_low") == [("B", "A")]


def test_details_that_were_written_as_text(tmp_path: Path) -> None:
    """lighteval turned all columns to text where pyarrow did not take them."""
    written(tmp_path, {name: str(value) for name, value in old().items()}, task="lighteval|gsm8k|5")
    table = ts.read_lighteval(tmp_path, cluster="specific.passage")
    assert rows(table, "metric", "score", "response", "gold_low") == [("em", 1.0, "5", "5")]


def test_a_file_that_is_cut_short_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, row())
    path.write_bytes(path.read_bytes()[:200])
    said = refusal(lambda: ts.read_lighteval(path))
    assert said.startswith(f"ReadError: '{path.name}' cannot be read")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("details_mini.parquet", "version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
        (
            f"results_{DATE}.json",
            json.dumps({"config_general": {"lighteval_sha": "?"}, "results": {}}),
            "holds averages",
        ),
    ],
)
def test_files_that_stand_for_others_are_explained(
    name: str, content: str, said: str, tmp_path: Path, refusal: Refusal
) -> None:
    (tmp_path / name).write_text(content)
    assert said in refusal(lambda: ts.read_lighteval(tmp_path / name))
