"""Event logs of OpenAI evals: JSON lines with a run specification, events and a final report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from triagestats.readers.bounded import File
from triagestats.readers.claims import claim, refuse_nameless
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows, text_of
from triagestats.readers.shapes import as_float, mapping, only
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_openai_evals"]

_MATCH: Final = "match"
_METRICS: Final = "metrics"
_MATCHED: Final = ("correct", "expected", "picked", "sampled")
_INVALID: Final = "__invalid__"
_EVENT: Final = {"run_id", "event_id", "sample_id", "type"}


@dataclass(slots=True)
class _Sample:
    """What the events of one sample say."""

    matches: list[Mapping[str, Any]] = field(default_factory=list)
    metrics: list[Mapping[str, Any]] = field(default_factory=list)
    prompt: object = None
    sampled: object = None
    error: str | None = None


@dataclass(slots=True)
class _Run:
    """One log."""

    file: File
    spec: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, _Sample] = field(default_factory=dict)
    run_id: str | None = None
    finished: bool = False


def _recognises(file: File) -> bool:
    if file.kind not in ("jsonl", "json"):
        return False
    return file.keys[:1] == ("spec",) or set(file.keys) >= _EVENT


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "OpenAI evals")
    rows = Collector(ask)
    runs = sorted(
        (_run(file, rows.notes) for file in files), key=lambda run: str(run.spec.get("created_at") or "")
    )
    refuse_nameless({run.file.name: next(iter(_models(run.spec)), None) for run in runs}, ask, "OpenAI evals")
    owners: dict[str, File] = {}
    for run in runs:
        claim(owners, [run.run_id], run.file, "run")
        _add_run(rows, run)
    return rows.done()


READER: Final = Reader("openai_evals", "OpenAI evals", _recognises, _read)


def read_openai_evals(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Samples of `oaieval` logs, one line an event.

    Parameters
    ----------
    path
        A log, a folder, or a list of them.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`.

    Returns
    -------
    ResponseTable
        Metrics are `match/correct` and `metrics/<key>` for every number that an eval records. The first
        completion function is the model, the base eval the task. `prompt` is what was asked, `seed` that
        of the run.

    Raises
    ------
    ReadError
        If a file is damaged.
    DataError
        If two files have the run_id of one run.

    Notes
    -----
    A log has no epochs: several logs of one model and eval are its repetitions, in the order in which they
    began. A sample with an `error` event, or one that was asked and has no match, has no score. The item is
    the `sample_id`, which counts the rows of the data file, so that cluster keys come from a join with that.
    A choice of `__invalid__` is scored by the eval and keeps its score; `reason` marks it. The
    `boostrap_std` (so spelled) of the final report resamples half of the samples without replacement, and is
    no standard error.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> lines = [
    ...     {"spec": {"completion_fns": ["acme/a"], "base_eval": "mini", "run_id": "r1"}},
    ...     {"run_id": "r1", "event_id": 0, "sample_id": "mini.dev.0", "type": "match",
    ...      "data": {"correct": True, "expected": "urgent", "picked": "urgent", "sampled": "urgent"}},
    ...     {"final_report": {"accuracy": 1.0}, "run_id": "r1"},
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "run.jsonl")
    ...     _ = path.write_text(chr(10).join(map(json.dumps, lines)))
    ...     table = ts.read_openai_evals(path)
    >>> table.frame.select("task", "scenario", "model", "metric", "score", "gold_low").rows()
    [('mini', 'mini.dev.0', 'acme/a', 'match/correct', 1.0, 'urgent')]
    """
    return read_as(READER, path, **options)


def _run(file: File, notes: list[Note]) -> _Run:
    run = _Run(file)
    unnamed = 0
    for _, event in file.lines():
        if isinstance(event.get("spec"), Mapping):
            run.spec = event["spec"]
            run.run_id = text_of(run.spec.get("run_id"))
        elif "final_report" in event:
            run.finished = True
        elif "type" in event:
            run.run_id = run.run_id or text_of(event.get("run_id"))
            if event.get("sample_id") is None:
                unnamed += 1
            else:
                _take(run.samples.setdefault(str(event["sample_id"]), _Sample()), event)
    if unnamed:
        message = f"{file.name!r}: {unnamed:,} events name no sample, and are left out."
        notes.append(Note("no_sample", message, "caution"))
    if not run.finished:
        message = f"{file.name!r} has no final report: the run may have stopped early."
        notes.append(Note("unfinished", message, "caution"))
    return run


def _take(sample: _Sample, event: Mapping[str, Any]) -> None:
    data = mapping(event.get("data"))
    match event["type"]:
        case "match":
            sample.matches.append({name: data.get(name) for name in _MATCHED})
        case "metrics":
            sample.metrics.append(data)
        case "sampling" if sample.sampled is None:  # a judge that is sampled later is not the answer
            sample.prompt, sample.sampled = _prompt(data.get("prompt")), data.get("sampled")
        case "error":
            said = [str(data[name]) for name in ("type", "message") if data.get(name)]
            sample.error = sample.error or ": ".join(said) or "error without a message"


def _add_run(rows: Collector, run: _Run) -> None:
    models = _models(run.spec)
    task = text_of(run.spec.get("base_eval") or run.spec.get("eval_name"))
    seed = mapping(run.spec.get("run_config")).get("seed")
    if len(models) > 1:
        message = (
            f"{run.file.name!r} has several completion functions, {models}; the first is taken for the model."
        )
        rows.notes.append(Note("models", message))
    names = dict.fromkeys(
        name for sample in run.samples.values() for data in sample.metrics for name in _numbers(data)
    )
    matched = any(sample.matches for sample in run.samples.values())
    for sample_id, sample in sorted(run.samples.items(), key=lambda one: _natural(one[0])):
        common: dict[str, Any] = {
            "source": run.file.name,
            "task": task,
            "model": models[0] if models else None,
            "scenario": sample_id,
            "error": sample.error,
            "gold": next(
                (data["expected"] for data in sample.matches if data.get("expected") is not None), None
            ),
        }
        extra = {"prompt": sample.prompt, "seed": seed}
        for data in sample.matches or ([{}] if matched or not names else []):
            rows.add(
                **common,
                scorer=_MATCH,
                measure="correct",
                value=data.get("correct"),
                response=_response(sample, data),
                extra=extra,
            )
        for data in sample.metrics or ([{}] if names else []):
            invalid = data.get("choice") == _INVALID
            words = {name: value for name, value in data.items() if isinstance(value, str)}
            for name in names:
                rows.add(
                    **common,
                    scorer=_METRICS,
                    measure=name,
                    value=as_float(data.get(name)),
                    unread=invalid,
                    reason="invalid choice" if invalid else None,
                    response=_response(sample, sample.matches[0] if sample.matches else {}),
                    extra={**extra, "metrics": words},
                )


def _numbers(data: Mapping[str, Any]) -> list[str]:
    """Keys of values that are scores, or lists of them; text such as a choice `C` is no score."""
    return [
        name for name, value in data.items() if value is not None and not isinstance(value, str | Mapping)
    ]


def _response(sample: _Sample, match: Mapping[str, Any]) -> object:
    """What was sampled; a list of one as its element."""
    said = match.get("sampled")
    said = sample.sampled if said is None else said
    said = match.get("picked") if said is None else said
    return only(said)


def _prompt(prompt: object) -> object:
    """The text that was asked last, of a conversation."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[-1], Mapping):
        return prompt[-1].get("content")
    return prompt


def _models(spec: Mapping[str, Any]) -> list[str]:
    """Completion functions, or what older logs call models."""
    named = spec.get("completion_fns")
    if named is None:
        named = mapping(spec.get("model_names")).get("completions", spec.get("model_name"))
    listed = named if isinstance(named, list) else [named]
    return [str(name) for name in listed if name is not None]


def _natural(sample_id: str) -> tuple[str, int, str]:
    """Samples by the number at the end of their id; events come in any order."""
    stem, _, number = sample_id.rpartition(".")
    return (stem, int(number), "") if number.isdecimal() else (sample_id, -1, "")
