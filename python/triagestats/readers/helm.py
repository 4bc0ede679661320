"""Run folders of HELM: `per_instance_stats.json`, with the run specification and the responses beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

from triagestats.readers.bounded import File, laid_out
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_helm"]

_HARNESS: Final = "HELM"
_STATS: Final = "per_instance_stats.json"
_MODEL: Final = re.compile(r"model(_deployment)?=")
_SPEC_NAME: Final = re.compile(r"(?P<scenario>[\w./]+?)(?P<mark>[:\-])(?P<arguments>\w+=.*)")
_USUAL: Final = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match")
_SHOWN: Final = 12

Key = tuple[str, str, int]
"""Instance, perturbation in words, and train trial."""


def read_helm(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Run folders of HELM as a response table, one row a metric of one instance.

    Parameters
    ----------
    path
        A run folder, a folder of them, a `per_instance_stats.json`, or a list.
    **options
        `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`, `higher_is_better`,
        `unparsed` and `max_bytes`, as in `read`.

    Returns
    -------
    ResponseTable
        With the roles scenario (instance id), task (the run specification without its model), model,
        condition (the adapter method, and the perturbation of a perturbed instance), repetition (train
        trial), metric, response (the first completion), gold (the correct reference: its letter where the
        model chooses among letters), score, status, reason and source. `split` is carried.

    Raises
    ------
    ReadError
        If a file is damaged.
    DataError
        If two folders claim the same model, task and trial.

    Notes
    -----
    Most statistics of HELM are bookkeeping (tokens, run time). Metrics are those that the run specification
    names, else the exact-match family; any other is read where `metric=` names it, and a note lists them.
    HELM removes NaN as it writes: a metric that an instance lacks and others have is `unscored`. Several
    completions of one request are one statistic, and are not taken apart.

    References
    ----------
    Liang, P. et al. (2023), Holistic evaluation of language models, Transactions on Machine Learning
    Research, arXiv:2211.09110.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import triagestats as ts
    >>> spec = {"name": "mmlu:subject=anatomy,model=acme_mock-7b",
    ...         "adapter_spec": {"method": "multiple_choice_joint", "model": "acme/mock-7b"},
    ...         "metric_specs": [{"class_name": "BasicMetric", "args": {"names": ["exact_match"]}}]}
    >>> stats = [{"instance_id": "id1", "train_trial_index": 0,
    ...           "stats": [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": 1.0}]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "run_spec.json").write_text(json.dumps(spec))
    ...     _ = pathlib.Path(folder, "per_instance_stats.json").write_text(json.dumps(stats))
    ...     table = ts.read_helm(folder)
    >>> table.frame.select("scenario", "task", "model", "metric", "score").rows()
    [('id1', 'mmlu:subject=anatomy', 'acme/mock-7b', 'exact_match', 1.0)]
    """
    return read_as(READER, path, **options)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was answered to an instance, and what was right."""

    response: object = None
    gold: object = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Instance:
    """An instance with its metrics: name and part to value, None where there is none."""

    key: Key
    split: str | None
    values: Mapping[tuple[str, str | None], float | None]


def _recognises(file: File) -> bool:
    return (
        file.kind == "json" and {"instance_id", "stats"} <= set(file.keys) and file.head.lstrip()[:1] == b"["
    )


def _companion(file: File) -> str | None:
    if file.kind == "json" and "adapter_spec" in file.keys:
        return f"belongs to a run of HELM, whose scores stand in {_STATS}; give the whole run folder"
    return None


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "HELM")
    rows = Collector(ask)
    left: dict[str, None] = {}
    for file in files:
        with laid_out(repr(file.name), _HARNESS):
            _add(file, rows, left)
    if left:
        shown = ", ".join(list(left)[:_SHOWN]) + (" and others" if len(left) > _SHOWN else "")
        text = f"Statistics that are no metric of the run are left out: {shown}; `metric=` reads one."
        rows.notes.append(Note("bookkeeping", text))
    return rows.done()


READER: Final = Reader("helm", _HARNESS, _recognises, _read, _companion)


def _add(file: File, rows: Collector, left: dict[str, None]) -> None:
    found = file.beside("run_spec.json")
    spec = _mapping(found.json()) if found is not None else {}
    adapter = _mapping(spec.get("adapter_spec"))
    folder = file.path.absolute().parent.name
    answers = _answers(file)
    wanted = _wanted(spec, rows.ask)
    instances = [_instance(_mapping(raw), wanted, left) for _, raw in file.stream()]
    for instance in instances:
        answer = answers.get(instance.key, _Answer())
        for name, part in dict.fromkeys(metric for one in instances for metric in one.values):
            value = instance.values.get((name, part))
            rows.add(
                source=file.name if "/" in file.name else f"{folder}/{file.name}",
                scenario=instance.key[0],
                task=_task(folder, spec),
                model=adapter.get("model") or adapter.get("model_deployment"),
                condition=" + ".join(str(one) for one in (adapter.get("method"), instance.key[1]) if one)
                or None,
                repetition=instance.key[2] + 1,
                scorer=name,
                measure=part,
                value=value,
                null="unscored",
                reason="no value: HELM leaves NaN out" if value is None else None,
                error=answer.error,
                response=answer.response,
                gold=answer.gold,
                extra={"split": instance.split},
            )


def _instance(raw: Mapping[str, Any], wanted: frozenset[str], left: dict[str, None]) -> _Instance:
    values: dict[tuple[str, str | None], float | None] = {}
    split = None
    for stat in raw.get("stats") or ():
        full = _mapping(stat.get("name"))
        name, part = str(full.get("name")), full.get("sub_split")
        split = full.get("split") or split
        if name not in wanted:
            left.setdefault(name)
            continue
        count = stat.get("count")
        mean = stat.get("mean")
        if mean is None and count:
            mean = stat["sum"] / count
        values[name, part] = mean if count != 0 else None
    return _Instance(_key(raw), split, values)


def _wanted(spec: Mapping[str, Any], ask: Ask) -> frozenset[str]:
    """The metrics of the run specification, else the usual ones; and the one that the caller names."""
    named = {
        str(name)
        for metric in spec.get("metric_specs") or ()
        for name in _mapping(_mapping(metric).get("args")).get("names") or ()
    }
    asked = {ask.metric, ask.metric.partition("/")[0]} if ask.metric else set()
    return frozenset((named or set(_USUAL)) | asked)


def _key(raw: Mapping[str, Any]) -> Key:
    name = raw.get("instance_id", _mapping(raw.get("instance")).get("id"))
    perturbation = raw.get("perturbation") or _mapping(raw.get("instance")).get("perturbation")
    return str(name), _perturbation(_mapping(perturbation)), int(raw.get("train_trial_index") or 0)


def _perturbation(perturbation: Mapping[str, Any]) -> str:
    """The name of a perturbation with its arguments; empty for the instance as it is."""
    flags = ("name", "robustness", "fairness", "computed_on")
    arguments = [f"{key}={value}" for key, value in sorted(perturbation.items()) if key not in flags]
    name = str(perturbation.get("name") or "")
    return f"{name}({', '.join(arguments)})" if arguments else name


def _task(folder: str, spec: Mapping[str, Any]) -> str | None:
    """The run specification without its model, as the folder spells it where it is the name of the run."""
    name = str(spec.get("name") or "")
    alike = re.sub(r"\W", "_", folder) == re.sub(r"\W", "_", name)
    parts = _SPEC_NAME.fullmatch(folder if alike or not name else name)
    if parts is None:
        return name or folder
    kept = [part for part in parts["arguments"].split(",") if not _MODEL.match(part)]
    return parts["scenario"] + parts["mark"] + ",".join(kept) if kept else parts["scenario"]


def _answers(file: File) -> dict[Key, _Answer]:
    """Responses and gold labels: of the scenario state, else of the predictions for display."""
    if (state := file.beside("scenario_state.json")) is not None:
        requests = (_mapping(raw) for key, raw in state.stream("request_states") if key == "request_states")
        return {
            _key(raw): _answer(raw)
            for raw in requests
            if raw.get("request_mode") in (None, "original") and not raw.get("reference_index")
        }
    if (shown := file.beside("display_predictions.json")) is not None:
        predictions = (_mapping(raw) for _, raw in shown.stream())
        return {
            _key(raw): _Answer(raw.get("mapped_output") or raw.get("predicted_text")) for raw in predictions
        }
    return {}


def _answer(raw: Mapping[str, Any]) -> _Answer:
    """The first completion and the correct references; of choices judged one by one only the latter."""
    instance = _mapping(raw.get("instance"))
    references = [_mapping(reference) for reference in instance.get("references") or ()]
    right = [
        _mapping(reference.get("output")).get("text")
        for reference in references
        if "correct" in (reference.get("tags") or ())
    ]
    letters = {text: letter for letter, text in _mapping(raw.get("output_mapping")).items()}
    gold = [letters.get(text, text) for text in right]
    result = _mapping(raw.get("result"))
    completions = result.get("completions") or ()
    separate = raw.get("reference_index") is not None
    failed = result.get("success") is False
    return _Answer(
        response=None if separate or not completions else _mapping(completions[0]).get("text"),
        gold=gold[0] if len(gold) == 1 else gold or None,
        error=str(result.get("error") or "the request failed") if failed else None,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
