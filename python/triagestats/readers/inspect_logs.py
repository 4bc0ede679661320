"""Logs of Inspect AI: `.eval` archives and `.json` files, of any version."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from triagestats.errors import ReadError
from triagestats.readers.archives import Archive, member_names, open_archive
from triagestats.readers.bounded import File, laid_out
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import ABSENT, Ask, Collector, Reader, Rows
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_inspect"]

_HARNESS: Final = "Inspect"
_HEADER: Final = "header.json"
_START: Final = "_journal/start.json"
_UNREAD: Final = ("invalid_response_format", "no_response")
_SHOWN: Final = 3


def read_inspect(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Logs of Inspect AI as a response table, one row a scorer's value of one epoch of one sample.

    Parameters
    ----------
    path
        A log (`.eval` or `.json`), a folder of logs, or a list of them.
    **options
        `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`, `higher_is_better`,
        `unparsed` and `max_bytes`, as in `read`.

    Returns
    -------
    ResponseTable
        With the roles scenario (sample id), task, model (with its provider), condition (the task arguments),
        repetition (epoch), metric (scorer, or scorer/key where its value is a mapping) or judge, response
        (the answer), gold (the target), score, status, reason and source. Metadata of the samples are carried
        as `metadata.<key>`.

    Raises
    ------
    ReadError
        If a log is damaged, has no samples, or is packed with zstd and the extra `inspect` is missing.
    DataError
        If two logs claim the same model, task and epoch.

    Notes
    -----
    C, I, P and N are 1, 0, 0.5 and 0. A sample that failed has the status `error` for every scorer, whatever
    epochs of it succeeded; NaN (null in logs before 0.3.253) is `unscored`, a scorer without an entry
    `absent`, a list `non_scalar`. A sample that was invalidated counts as an error. Inspect's own `results`
    and `reductions` leave errors out and average epochs, and are not used.

    A run that crashed has no `header.json`: its journal is read, and a note counts what is there.

    References
    ----------
    UK AI Security Institute (2024), Inspect AI: framework for large language model evaluations,
    https://inspect.aisi.org.uk.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import triagestats as ts
    >>> log = {"version": 2, "status": "success", "eval": {"task": "triage", "model": "acme/mock-7b"},
    ...        "samples": [{"id": 1, "epoch": 1, "target": "A", "metadata": {"passage_id": "p1"},
    ...                     "scores": {"choice": {"value": "C", "answer": "A"}}}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.json")
    ...     _ = path.write_text(json.dumps(log))
    ...     table = ts.read_inspect(path, cluster="metadata.passage_id")
    >>> table.frame.select("scenario", "model", "metric", "score", "cluster_1").rows()
    [('1', 'acme/mock-7b', 'choice', 1.0, 'p1')]
    """
    return read_as(READER, path, **options)


@dataclass(frozen=True, slots=True)
class _Sample:
    """What is kept of a sample; its messages and events are not."""

    scenario: object
    epoch: int
    gold: object
    metadata: Mapping[str, Any]
    error: str | None
    limit: str | None
    scores: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class _Log:
    """One log: its header, its samples, and what was odd about it."""

    file: File
    header: Mapping[str, Any]
    samples: list[_Sample] = field(default_factory=list)
    crashed: bool = False
    outside: tuple[str, ...] = ()

    @property
    def spec(self) -> Mapping[str, Any]:
        return _mapping(self.header.get("eval"))


def _recognises(file: File) -> bool:
    if file.kind == "zip":
        names = member_names(file)
        return any(name in (_HEADER, _START) or name.startswith(("samples/", "_journal/")) for name in names)
    return file.kind == "json" and {"eval", "status"} <= set(file.keys)


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "Inspect")
    rows = Collector(ask)
    for log in sorted((_log(file) for file in files), key=_created):
        with laid_out(repr(log.file.name), _HARNESS):
            _add(log, rows)
    return rows.done()


READER: Final = Reader("inspect", _HARNESS, _recognises, _read)


def _created(log: _Log) -> tuple[str, str]:
    return str(log.spec.get("created") or ""), log.file.name


def _log(file: File) -> _Log:
    with laid_out(repr(file.name), _HARNESS):
        log = _of_archive(file) if file.kind == "zip" else _of_json(file)
    if not log.spec:
        raise ReadError(f"{file.name!r} has no `eval` that says which task and model it is of")
    return log


def _of_archive(file: File) -> _Log:
    with open_archive(file) as archive:
        names = set(archive.names)
        crashed = _HEADER not in names
        log = _Log(file, _document(archive, _START if crashed else _HEADER), crashed=crashed)
        log.outside = archive.outside
        members = [name for name in archive.names if name.startswith("samples/") and name.endswith(".json")]
        log.samples += [_sample(_mapping(archive.json(name)), log) for name in members]
        if crashed or not log.samples:
            log.samples += _of_summaries(archive, log)
        return log


def _document(archive: Archive, name: str) -> Mapping[str, Any]:
    if name not in archive.names:
        raise ReadError(
            f"{archive.name!r} has neither {_HEADER} nor {_START}, so that nothing says which task and model "
            "it is of; read the log as Inspect wrote it"
        )
    return _mapping(archive.json(name))


def _of_summaries(archive: Archive, log: _Log) -> Iterator[_Sample]:
    """Samples of which only the summary was written before the run ended."""
    seen = {(str(sample.scenario), sample.epoch) for sample in log.samples}
    for name in archive.names:
        if name == "summaries.json" or (name.startswith("_journal/summaries/") and name.endswith(".json")):
            for summary in archive.json(name) or ():
                sample = _sample(_mapping(summary), log)
                if (str(sample.scenario), sample.epoch) not in seen:
                    seen.add((str(sample.scenario), sample.epoch))
                    yield sample


def _of_json(file: File) -> _Log:
    header: dict[str, Any] = {}
    log = _Log(file, header)
    for key, value in file.stream("samples"):
        if key == "samples":
            if isinstance(value, dict):
                log.samples.append(_sample(value, log))
        elif key not in (None, "reductions"):
            header[str(key)] = value
    return log


def _sample(raw: Mapping[str, Any], log: _Log) -> _Sample:
    scores = raw.get("scores")
    if scores is None and isinstance(raw.get("score"), Mapping):  # the one scorer of the first versions
        scores = {_only_scorer(log): raw["score"]}
    error = _words(raw.get("error"), "message")
    invalid = raw.get("invalidation")
    if error is None and invalid:
        why = _words(invalid, "reason")
        error = f"invalidated: {why}" if why else "invalidated"
    return _Sample(
        scenario=raw.get("id"),
        epoch=int(raw.get("epoch") or 1),
        gold=raw.get("target"),
        metadata=_mapping(raw.get("metadata")),
        error=error,
        limit=_words(raw.get("limit"), "type"),
        scores={
            name: score if isinstance(score, Mapping) else {"value": score}
            for name, score in _mapping(scores).items()
            if score is not None
        },
    )


def _only_scorer(log: _Log) -> str:
    results = _mapping(log.header.get("results"))
    named = results.get("scorer") or next(iter(results.get("scores") or ()), None)
    return _words(named, "name") or "score"


def _add(log: _Log, rows: Collector) -> None:
    spec = log.spec
    arguments = _mapping(spec.get("task_args"))
    _say(log, rows)
    pairs = _pairs(log)
    divided = {scorer for scorer, measure in pairs if measure is not None}
    for sample in log.samples:
        limit = {"sample": {"limit": sample.limit}} if sample.limit else {}
        for scorer, measure in pairs:
            score = sample.scores.get(scorer or "")
            value = ABSENT if score is None else score.get("value")
            if isinstance(value, Mapping) and value:
                value = value.get(measure, ABSENT) if measure is not None else ABSENT
                if measure is None:
                    continue
            elif scorer in divided and (measure is None) == (value is ABSENT or _unscored(value)):
                continue  # one value for all keys: of each where it is none, else a metric of its own
            reason = None if score is None else score.get("reason")
            if value is ABSENT and sample.limit:
                reason = f"stopped by a limit: {sample.limit}"
            rows.add(
                source=log.file.name,
                scenario=sample.scenario,
                task=spec.get("task"),
                model=spec.get("model"),
                condition=json.dumps(arguments, sort_keys=True, ensure_ascii=False) if arguments else None,
                repetition=sample.epoch,
                scorer=scorer,
                measure=measure,
                value=value,
                null="unscored",
                error=sample.error,
                reason=reason,
                unread=reason in _UNREAD,
                response=None if score is None else score.get("answer"),
                gold=sample.gold,
                extra={"metadata": sample.metadata, **limit},
            )


def _unscored(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _pairs(log: _Log) -> list[tuple[str | None, str | None]]:
    """Scorers with the keys of those whose value is a mapping, in order of appearance."""
    seen: dict[tuple[str | None, str | None], None] = {}
    for sample in log.samples:
        for scorer, score in sample.scores.items():
            value = score.get("value")
            keys: Iterable[str | None] = value if isinstance(value, Mapping) and value else (None,)
            seen |= dict.fromkeys((scorer, key) for key in keys)
    divided = {scorer for scorer, key in seen if key is not None}
    scalar = {
        scorer
        for sample in log.samples
        for scorer, score in sample.scores.items()
        if not isinstance(score.get("value"), Mapping) and not _unscored(score.get("value"))
    }
    pairs = [
        (scorer, key) for scorer, key in seen if key is not None or scorer not in divided or scorer in scalar
    ]
    return pairs or _planned(log) or [(None, None)]


def _planned(log: _Log) -> list[tuple[str | None, str | None]]:
    """The scorers of the plan, where no sample was scored; Inspect numbers those of one name."""
    pairs: list[tuple[str | None, str | None]] = []
    taken: set[str] = set()
    for spec in log.spec.get("scorers") or ():
        name = (_words(spec, "name") or "score").rpartition("/")[2]
        own, number = name, 0
        while own in taken:
            number += 1
            own = f"{name}{number}"
        taken.add(own)
        metrics = _mapping(spec).get("metrics")
        pairs += [(own, key) for key in metrics] if isinstance(metrics, Mapping) else [(own, None)]
    return pairs


def _say(log: _Log, rows: Collector) -> None:
    """Runs that did not end well, with what they planned."""
    status = "crashed" if log.crashed else str(log.header.get("status") or "success")
    name, count = log.file.name, len(log.samples)
    if log.outside:
        members = "1 member" if len(log.outside) == 1 else f"{len(log.outside):,} members"
        text = f"{name!r} has {members} whose names leave the archive, such as {log.outside[0]!r}: not read."
        rows.notes.append(Note("outside", text, "caution"))
    if not count:
        text = (
            f"{name!r} holds no samples: it is a header with averages, or a run that ended before the first. "
            "Give the whole log."
        )
        rows.notes.append(Note("no_samples", text, "caution"))
        return
    if status == "success":
        return
    spec = log.spec
    config = _mapping(spec.get("config"))
    dataset = _mapping(spec.get("dataset"))
    items = len(dataset.get("sample_ids") or ()) or dataset.get("samples")
    planned = items * int(config.get("epochs") or 1) if isinstance(items, int) else None
    of = f" of {planned:,} planned" if planned else ""
    said = "crashed before its header was written" if log.crashed else f"has the status {status!r}"
    rows.notes.append(
        Note("incomplete", f"The run of {name!r} {said}: {count:,}{of} samples are read.", "caution")
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _words(value: object, key: str) -> str | None:
    """Text, or the text under a key of a mapping."""
    found = value.get(key) if isinstance(value, Mapping) else value
    return str(found) if found else None
