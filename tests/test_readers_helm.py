"""Run folders of HELM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

SPEC: dict[str, Any] = {
    "name": "mmlu:subject=anatomy,method=multiple_choice_joint,model=acme_mock-7b",
    "adapter_spec": {"method": "multiple_choice_joint", "model": "acme/mock-7b"},
    "metric_specs": [{"class_name": "Basic", "args": {"names": ["exact_match"]}}, {"class_name": "Other"}],
}


def stat(name: str, mean: float | None = 1.0, **more: Any) -> dict[str, Any]:
    name_of = {"name": name, "split": "test"} | more
    values = {"count": 0, "sum": 0} if mean is None else {"count": 1, "sum": mean, "mean": mean}
    return {"name": name_of, **values}


def instance(name: str, *stats: Mapping[str, Any], trial: int = 0, **more: Any) -> dict[str, Any]:
    return {"instance_id": name, "train_trial_index": trial, **more, "stats": list(stats)}


def request(name: str, text: str, *, correct: Sequence[str] = ("x",), **more: Any) -> dict[str, Any]:
    references = [{"output": {"text": one}, "tags": ["correct"] if one in correct else []} for one in "xyz"]
    made: dict[str, Any] = {
        "instance": {"id": name, "references": references, "split": "test"},
        "train_trial_index": 0,
        "result": {"success": True, "completions": [{"text": text}, {"text": "other"}]},
    }
    return made | more


def written(
    folder: Path,
    *instances: Mapping[str, Any],
    spec: Mapping[str, Any] | None = SPEC,
    requests: Sequence[Mapping[str, Any]] = (),
) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "per_instance_stats.json").write_text(json.dumps(instances), encoding="utf-8")
    if spec is not None:
        (folder / "run_spec.json").write_text(json.dumps(spec), encoding="utf-8")
    if requests:
        state = {"adapter_spec": {}, "request_states": list(requests)}
        (folder / "scenario_state.json").write_text(json.dumps(state), encoding="utf-8")
    return folder


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


@pytest.mark.parametrize("metric", ["exact_match", "quasi_exact_match"])
def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]], metric: str
) -> None:
    """Of one metric at a time: the run names four, and the list has two of them."""
    table = ts.read_helm(shared("harness/helm"), metric=metric)
    left = expected_rows(table, "helm", without=("metric", "response"))
    assert len(left) == 10  # the rows of the other metric, whose scores are the same
    assert all(row.startswith("not found") for row in left)


def test_all_expected_rows_together(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    """Responses too, but for the blank that HELM leaves at their start."""
    table = ts.read(shared("harness/helm"))
    left = expected_rows(table, "helm", without=("metric", "response"))
    assert all(row.startswith("not expected") for row in left)  # of the metrics that the list leaves out
    assert set(rows(table.with_metric("exact_match"), "scenario", "response", "gold_low")) >= {
        ("id44874", "B", "C"),
        ("id45277", "B", "B"),
        ("id49438", "D", "B"),
    }


def test_a_run_folder_is_named_also_where_it_is_given_itself(shared: Callable[[str], Path]) -> None:
    folder = next(shared("harness/helm").glob("*model*"))
    for path in (folder, folder / "per_instance_stats.json"):
        assert ts.read(path).frame["source"][0] == f"{folder.name}/per_instance_stats.json"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("mmlu:subject=anatomy,model=acme_mock-7b", "mmlu:subject=anatomy"),
        (
            "narrative_qa:model=acme_mock-7b,data_augmentation=canonical",
            "narrative_qa:data_augmentation=canonical",
        ),
        ("boolq:model=acme_mock-7b", "boolq"),
        ("mmlu:model_deployment=x_y,subject=law,model=acme_z", "mmlu:subject=law"),
        ("plain", "plain"),
    ],
)
def test_the_task_is_the_run_without_its_model(tmp_path: Path, name: str, task: str) -> None:
    written(tmp_path, instance("id1", stat("exact_match")), spec=SPEC | {"name": name})
    assert rows(ts.read(tmp_path), "task", "model") == [(task, "acme/mock-7b")]


def test_the_folder_spells_the_task_where_it_is_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "mmlu-subject=anatomy,method=multiple_choice_joint,model=acme_mock-7b"
    assert rows(ts.read(written(folder, instance("id1", stat("exact_match")))), "task") == [
        ("mmlu-subject=anatomy,method=multiple_choice_joint",)
    ]


def test_metrics_are_those_of_the_run_and_what_is_asked_for(tmp_path: Path, refusal: Refusal) -> None:
    stats = (stat("exact_match"), stat("num_prompt_tokens", 700.0), stat("logprob", -1.5))
    folder = written(tmp_path, instance("id1", *stats))
    table = ts.read(folder)
    assert table.metrics == ("exact_match",)
    note = next(note for note in table.notes if note.code == "bookkeeping")
    assert "num_prompt_tokens, logprob; `metric=` reads one" in note.message
    assert rows(ts.read(folder, metric="logprob"), "metric", "score") == [("logprob", -1.5)]
    assert "`metric` names 'f1'" in refusal(lambda: ts.read(folder, metric="f1"))


def test_the_usual_metrics_where_the_run_names_none(tmp_path: Path) -> None:
    stats = (stat("quasi_exact_match"), stat("num_bytes", 3.0))
    assert ts.read(written(tmp_path, instance("id1", *stats), spec=None)).metrics == ("quasi_exact_match",)


def test_a_metric_that_helm_left_out_is_unscored(tmp_path: Path) -> None:
    """NaN is not written, and a count of 0 has no mean; a sum over several is their mean."""
    several = {"name": {"name": "exact_match", "split": "test"}, "count": 4, "sum": 3.0}
    folder = written(
        tmp_path,
        instance("id1", stat("exact_match", 0.0)),
        instance("id2", stat("other")),
        instance("id3", stat("exact_match", None)),
        instance("id4", several),
    )
    assert rows(ts.read(folder), "scenario", "score", "status", "reason") == [
        ("id1", 0.0, "ok", None),
        ("id2", None, "unscored", "no value: HELM leaves NaN out"),
        ("id3", None, "unscored", "no value: HELM leaves NaN out"),
        ("id4", 0.75, "ok", None),
    ]


def test_trials_perturbations_and_splits(tmp_path: Path) -> None:
    """Each a row of its own: the key is instance, perturbation and trial."""
    typos = {"name": "misspellings", "robustness": True, "prob": 0.1}
    folder = written(
        tmp_path,
        instance("id1", stat("exact_match", 1.0, split="valid")),
        instance("id1", stat("exact_match", 0.0, split="valid"), trial=1),
        instance("id1", stat("exact_match", 0.5, split="test"), perturbation=typos),
    )
    assert rows(ts.read(folder), "condition", "repetition", "score", "split") == [
        ("multiple_choice_joint", "1", 1.0, "valid"),
        ("multiple_choice_joint", "2", 0.0, "valid"),
        ("multiple_choice_joint + misspellings(prob=0.1)", "1", 0.5, "test"),
    ]


def test_parts_of_a_metric(tmp_path: Path) -> None:
    stats = (stat("exact_match"), stat("exact_match", 0.0, sub_split="hard"))
    assert ts.read(written(tmp_path, instance("id1", *stats))).metrics == ("exact_match", "exact_match/hard")


def test_responses_and_gold_of_the_scenario_state(tmp_path: Path) -> None:
    letters = {"output_mapping": {"A": "x", "B": "y", "C": "z"}}
    typos = {"name": "misspellings"}
    perturbed = request("id1", " B")
    perturbed["instance"]["perturbation"] = typos
    folder = written(
        tmp_path,
        instance("id1", stat("exact_match")),
        instance("id1", stat("exact_match"), perturbation=typos),
        instance("id2", stat("exact_match")),
        instance("id3", stat("exact_match")),
        instance("id4", stat("exact_match")),
        requests=(
            request("id1", " A", **letters),
            perturbed,
            request("id2", " x", correct=("x", "z")),
            request("id3", "", result={"success": False, "error": "HTTP 529", "completions": []}),
            request("id4", "x", reference_index=0, request_mode="original"),
            request("id4", "y", reference_index=1, request_mode="original"),
        ),
    )
    assert rows(ts.read(folder), "scenario", "response", "gold_low", "score", "status", "reason") == [
        ("id1", "A", "A", 1.0, "ok", None),
        ("id1", "B", "x", 1.0, "ok", None),
        ("id2", "x", '["x", "z"]', 1.0, "ok", None),
        ("id3", None, "x", None, "error", "HTTP 529"),
        ("id4", None, "x", 1.0, "ok", None),
    ]


def test_responses_of_the_predictions_where_there_is_no_state(tmp_path: Path) -> None:
    folder = written(tmp_path, instance("id1", stat("exact_match")))
    shown = [{"instance_id": "id1", "train_trial_index": 0, "predicted_text": " B", "mapped_output": "beta"}]
    (folder / "display_predictions.json").write_text(json.dumps(shown), encoding="utf-8")
    assert rows(ts.read(folder), "response") == [("beta",)]


def test_two_suites_that_hold_one_run_are_named(tmp_path: Path, refusal: Refusal) -> None:
    for suite in ("v1", "v2"):
        written(tmp_path / suite / "run", instance("id1", stat("exact_match")))
    said = refusal(lambda: ts.read(tmp_path))
    assert "'v1/run/per_instance_stats.json' and 'v2/run/per_instance_stats.json' both claim" in said
    assert ts.read(tmp_path, runs=True).frame["repetition"].to_list() == ["1", "2"]


def test_models_pair(tmp_path: Path) -> None:
    for model in ("a", "b"):
        spec = SPEC | {
            "name": f"boolq:model=acme_{model}",
            "adapter_spec": {"model": f"acme/{model}", "method": "generation"},
        }
        written(tmp_path / model, instance("id1", stat("exact_match")), spec=spec)
    table = ts.read(tmp_path)
    assert rows(table, "scenario", "model", "task") == [
        ("id1", "acme/a", "boolq"),
        ("id1", "acme/b", "boolq"),
    ]


def test_other_files_of_a_run_alone_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    folder = written(tmp_path, instance("id1", stat("exact_match")))
    said = refusal(lambda: ts.read(folder / "run_spec.json"))
    assert "belongs to a run of HELM, whose scores stand in per_instance_stats.json" in said
