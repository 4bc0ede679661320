"""Every Eval Ever: what conversions write where the schema has no place for the truth."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

LOSSY = "harness/eee/from_inspect_epochs_LOSSY"


def sample(item: str = "q1", score: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "e1",
        "model_id": "acme/a",
        "evaluation_name": "mini",
        "evaluation_result_id": "acc",
        "sample_id": item,
        "interaction_type": "single_turn",
        "input": {"raw": "2+2?", "reference": ["4"]},
        "output": {"raw": ["It is 4."]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": True},
        "metadata": {},
    } | changes


def written(folder: Path, *samples: Mapping[str, Any], name: str = "u1") -> Path:
    path = folder / f"{name}_samples.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
    return path


def aggregate(folder: Path, name: str = "u1", **changes: Any) -> Path:
    path = folder / f"{name}.json"
    metric = {"evaluation_result_id": "acc", "metric_config": {"lower_is_better": False}}
    document = {
        "schema_version": "0.3.0",
        "evaluation_id": "e1",
        "model_info": {},
        "source_metadata": {},
        "evaluation_results": [metric],
    }
    path.write_text(json.dumps(document | changes), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    folders = [shared(f"harness/eee/{name}") for name in ("from_lm_eval", "schema_fixture")]
    assert expected_rows(ts.read_every_eval_ever(folders), "eee") == []


def test_reduced_epochs_of_a_real_conversion_are_suspect(shared: Callable[[str], Path]) -> None:
    """7 items in 3 epochs by 2 scorers; one epoch of p4-q1 failed, and was written once, with score 1."""
    table = ts.read_every_eval_ever(shared(LOSSY))
    suspect = table.frame.filter(table.frame["status"] == "suspect")
    assert set(suspect["scenario"]) == {"p1-q1", "p1-q2", "p2-q2", "p3-q1", "p3-q2"}
    assert suspect.height == 30
    assert suspect["score"].null_count() == 0
    failed = table.frame.filter(table.frame["status"] == "error")
    assert rows_of(failed, "scenario", "repetition", "metric", "score") == [
        ("p4-q1", "2", "choice:accuracy", None),
        ("p4-q1", "2", "judge:accuracy", None),
    ]
    assert [note.level for note in table.notes if note.code == "reduced_epochs"] == ["caution"]


def rows_of(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    return list(frame.select(columns).rows())


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        ((0.5, 0.5), {"suspect"}),
        ((1.0, 1.0), {"ok"}),
        ((0.0, 0.0), {"ok"}),
        ((0.5, 0.25), {"ok"}),
        ((0.5,), {"ok"}),
    ],
)
def test_only_one_fractional_score_in_all_epochs_is_suspect(
    scores: tuple[float, ...], status: set[str], tmp_path: Path
) -> None:
    samples = [sample(score=s, metadata={"epoch": str(i)}) for i, s in enumerate(scores, start=1)]
    table = ts.read_every_eval_ever(written(tmp_path, *samples))
    assert set(table.frame["status"]) == status
    assert table.frame["score"].to_list() == list(scores)


def test_an_error_is_missing_whatever_score_was_written(tmp_path: Path) -> None:
    failed = sample("q2", 1.0, error="timeout", evaluation_result_id=None)
    samples = [sample(), sample(evaluation_result_id="f1"), failed]
    assert rows(ts.read_every_eval_ever(written(tmp_path, *samples)), "scenario", "metric", "status") == [
        ("q1", "acc", "ok"),
        ("q1", "f1", "ok"),
        ("q2", "acc", "error"),
        ("q2", "f1", "error"),
    ]


def test_a_score_for_a_metric_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    invented = sample(
        score=0.0,
        evaluation_result_id=None,
        metadata={"lm_eval_metrics": '{"word_perplexity": [-11.0, 3]}'},
    )
    assert rows(ts.read_every_eval_ever(written(tmp_path, invented)), "score", "score_raw", "status") == [
        (None, "0.0", "suspect")
    ]


@pytest.mark.parametrize(
    "metadata",
    [
        {"lm_eval_metrics": '{"brier_score": [0, "x"], "acc": 1.0}'},
        {"lighteval_metrics": '{"acc": 1.0}', "primary_metric": "acc"},
    ],
)
def test_conversions_without_a_result_id_name_the_metric_in_their_metadata(
    metadata: dict[str, str], tmp_path: Path
) -> None:
    table = ts.read_every_eval_ever(written(tmp_path, sample(evaluation_result_id=None, metadata=metadata)))
    assert rows(table, "metric", "score", "status") == [("acc", 1.0, "ok")]


def test_a_result_id_is_optional(tmp_path: Path) -> None:
    """Schema 0.2 and conversions of HELM go without, and without an aggregate file."""
    plain = sample(metadata=None)
    del plain["evaluation_result_id"]
    table = ts.read_every_eval_ever(written(tmp_path, plain))
    assert rows(table, "scenario", "score", "status") == [("q1", 1.0, "ok")]


def test_the_extracted_answer_is_the_response(tmp_path: Path) -> None:
    parts = [
        {"extracted_value": "5", "is_terminal": False},
        {"extracted_value": "4", "is_terminal": True},
    ]
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Four."}]
    samples = [
        sample("q1", answer_attribution=parts),
        sample("q2"),
        sample("q3", output=None, messages=talk),
        sample("q4", input={"raw": "?", "reference": ["4", "four"]}),
    ]
    assert rows(ts.read_every_eval_ever(written(tmp_path, *samples)), "response", "gold_low") == [
        ("4", "4"),
        ("It is 4.", "4"),
        ("Four.", "4"),
        ("It is 4.", '["4", "four"]'),
    ]


def test_metadata_are_clusters(tmp_path: Path) -> None:
    path = written(tmp_path, sample(metadata={"passage_id": "p1"}))
    assert rows(ts.read_every_eval_ever(path, cluster="metadata.passage_id"), "cluster_1") == [("p1",)]


def test_the_aggregate_leads_to_its_samples(tmp_path: Path) -> None:
    written(tmp_path, sample())
    path = aggregate(tmp_path, detailed_evaluation_results={"total_rows": 2}, evaluation_id="e2")
    table = ts.read_every_eval_ever(path)
    assert table.frame.height == 1
    said = {note.code: str(note) for note in table.notes}
    assert said["other_count"] == "'u1_samples.jsonl' has 1 samples, and its aggregate file says 2."
    assert "different evaluation_ids" in said["other_evaluation"]


def test_the_aggregate_says_which_way_is_better(tmp_path: Path) -> None:
    worse = {"evaluation_result_id": "acc", "metric_config": {"lower_is_better": True}}
    aggregate(tmp_path, evaluation_results=[worse])
    assert ts.read_every_eval_ever(written(tmp_path, sample())).higher_is_better is False


def test_an_aggregate_without_samples_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    assert refusal(lambda: ts.read_every_eval_ever(aggregate(tmp_path))) == (
        "ReadError: `path`: 'u1.json' holds aggregate scores alone, from which nothing can be resampled; its "
        "samples would be in a file of the same name that ends in `_samples.jsonl`"
    )


def test_lonely_aggregates_beside_others_are_noted(tmp_path: Path) -> None:
    written(tmp_path, sample())
    aggregate(tmp_path)
    aggregate(tmp_path, name="u2")
    assert [str(n) for n in ts.read_every_eval_ever(tmp_path).notes if n.code == "no_samples"] == [
        "'u2.json': aggregate scores without samples are left out."
    ]


def test_one_evaluation_in_two_files_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    written(tmp_path, sample())
    written(tmp_path, sample(score=0.0), name="u2")
    assert refusal(lambda: ts.read_every_eval_ever(tmp_path)) == (
        "DataError: `path`: 'u1_samples.jsonl' and 'u2_samples.jsonl' both hold evaluation 'e1 / acme/a / "
        "mini / acc'; leave one of them out"
    )


def test_models_pair_by_task_and_item(tmp_path: Path) -> None:
    written(tmp_path, sample("q1"), sample("q2", 0.0))
    written(tmp_path, sample("q1", model_id="acme/b"), name="u2")
    table = ts.read_every_eval_ever(tmp_path)
    assert rows(table, "scenario", "model", "repetition", "score") == [
        ("q1", "acme/a", "1", 1.0),
        ("q1", "acme/b", "1", 1.0),
        ("q2", "acme/a", "1", 0.0),
    ]


def test_gzip_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, sample())
    (tmp_path / "u1_samples.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert ts.read_every_eval_ever(tmp_path).frame.height == 1


def test_a_line_that_is_cut_short_is_named(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, sample(), sample("q2"))
    path.write_text(path.read_text()[:-20])
    assert refusal(lambda: ts.read_every_eval_ever(path)).startswith(
        "ReadError: 'u1_samples.jsonl', line 2, is not JSON"
    )
