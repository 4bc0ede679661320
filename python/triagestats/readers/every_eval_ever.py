"""Every Eval Ever: instance files (`..._samples.jsonl`) with their aggregate files."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Unpack

import polars as pl

from triagestats.errors import ReadError
from triagestats.readers.bounded import File
from triagestats.readers.claims import claim
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows, text_of
from triagestats.readers.shapes import as_float, mapping, mappings, only
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_every_eval_ever"]

_INSTANCE: Final = {"evaluation_id", "sample_id", "evaluation_name", "model_id"}
_OWN: Final = ("evaluation_id", "model_id", "evaluation_name", "evaluation_result_id")
"""What one file has of its own; conversions of HELM give all files one `evaluation_id`."""
_AGGREGATE: Final = {"evaluation_id", "schema_version"}
_CARRIED: Final = ("lm_eval_metrics", "lighteval_metrics")
"""Metadata in which converters keep all metrics of a sample."""
_NO_SCALAR: Final = "converter wrote score 0.0 for a non-scalar metric; evaluation_result_id is null"
_REDUCED: Final = "all epochs of the item carry one score, the mean over them"


@dataclass(slots=True)
class _Aggregate:
    """What the aggregate file says of its samples."""

    evaluation_id: str | None = None
    total: int | None = None
    lower: set[str] = field(default_factory=set)


def _recognises(file: File) -> bool:
    keys = set(file.keys)
    if file.kind == "jsonl":
        return keys >= _INSTANCE
    return file.kind == "json" and (keys >= _INSTANCE or (keys >= _AGGREGATE and _is_aggregate(file)))


def _is_aggregate(file: File) -> bool:
    return "evaluation_results" in file.keys or {"model_info", "source_metadata"} <= set(file.keys)


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "Every Eval Ever")
    rows = Collector(ask)
    owners: dict[str, File] = {}
    for file in _instances(files, rows.notes):
        aggregate = _aggregate(file)
        rows.lower |= aggregate.lower
        count = 0
        ids: dict[str, None] = {}
        claims: dict[str, None] = {}
        for _, sample in file.lines():
            count += 1
            ids[text_of(sample.get("evaluation_id")) or ""] = None
            claims[" / ".join(str(sample[name]) for name in _OWN if sample.get(name) is not None)] = None
            _add(rows, file, sample)
        claim(owners, claims, file, "evaluation")
        _check(rows.notes, file, aggregate, count, ids)
    return _reduced(_errors_of_all(_without_scalar(rows.done())))


READER: Final = Reader("every_eval_ever", "Every Eval Ever", _recognises, _read)


def read_every_eval_ever(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Samples of Every Eval Ever, schema 0.2 and 0.3.

    Parameters
    ----------
    path
        A `<uuid>_samples.jsonl` file, its aggregate `<uuid>.json`, a folder, or a list of them.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`.

    Returns
    -------
    ResponseTable
        The metric is the `evaluation_result_id`, the task the `evaluation_name`. Columns `metadata.*` serve
        as clusters, where the conversion kept them.

    Raises
    ------
    ReadError
        If a file is damaged, or holds aggregates without samples.
    DataError
        If two files hold samples of one evaluation.

    Notes
    -----
    The schema has no place for a missing score, an epoch, a judge or a cluster, and conversions fill in what
    must be there. A sample with an `error` has no score here, whatever was written, in any metric of its
    file. Where all epochs of an item carry one fractional score, the conversion wrote the mean over epochs
    into each: the status is `suspect`, the score stays, and a note says so, because the variation within
    items is lost. A score that stands for a metric that is no number a sample (perplexity) is left out, with
    the status `suspect`. Read the log of the harness itself where it is at hand.

    References
    ----------
    EvalEval Coalition. Every Eval Ever, schema 0.3.0. https://github.com/evaleval/every_eval_ever

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> def sample(item, epoch, score):
    ...     return {"schema_version": "0.3.0", "evaluation_id": "e", "model_id": "acme/a",
    ...             "evaluation_name": "mini", "evaluation_result_id": "acc", "sample_id": item,
    ...             "input": {"raw": "?", "reference": ["4"]}, "output": {"raw": ["4"]},
    ...             "evaluation": {"score": score, "is_correct": True}, "metadata": {"epoch": str(epoch)}}
    >>> samples = [sample("q1", 1, 0.5), sample("q1", 2, 0.5), sample("q2", 1, 1.0), sample("q2", 2, 1.0)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "1_samples.jsonl")
    ...     _ = path.write_text(chr(10).join(map(json.dumps, samples)))
    ...     table = ts.read_every_eval_ever(path)
    >>> table.frame.select("scenario", "repetition", "score", "status").rows()
    [('q1', '1', 0.5, 'suspect'), ('q1', '2', 0.5, 'suspect'), ('q2', '1', 1.0, 'ok'), ('q2', '2', 1.0, 'ok')]
    """
    return read_as(READER, path, **options)


def _instances(files: Sequence[File], notes: list[Note]) -> list[File]:
    """Instance files; those that lie beside aggregate files that were named alone."""
    found = {file.path.absolute(): file for file in files if not _is_aggregate(file)}
    lonely = []
    for file in files:
        if _is_aggregate(file):
            beside = file.siblings(f"{file.path.stem.removesuffix('.json')}_samples.jsonl*")
            for one in beside:
                found.setdefault(one.path.absolute(), one)
            if not beside:
                lonely.append(file.name)
    if not found:
        raise ReadError(
            f"`path`: {lonely[0]!r} holds aggregate scores alone, from which nothing can be resampled; its "
            "samples would be in a file of the same name that ends in `_samples.jsonl`"
        )
    if lonely:
        message = f"{', '.join(map(repr, lonely[:3]))}: aggregate scores without samples are left out."
        notes.append(Note("no_samples", message, "caution"))
    return [found[path] for path in sorted(found)]


def _aggregate(file: File) -> _Aggregate:
    stem = file.path.name.partition("_samples.jsonl")[0]
    beside = file.beside(f"{stem}.json")
    if beside is None or not _is_aggregate(beside):
        return _Aggregate()
    document = mapping(beside.json())
    total = mapping(document.get("detailed_evaluation_results")).get("total_rows")
    lower = {
        str(result.get("evaluation_result_id"))
        for result in mappings(document.get("evaluation_results"))
        if mapping(result.get("metric_config")).get("lower_is_better") is True
    }
    return _Aggregate(
        text_of(document.get("evaluation_id")), total if isinstance(total, int) else None, lower - {"None"}
    )


def _check(notes: list[Note], file: File, aggregate: _Aggregate, count: int, ids: Mapping[str, None]) -> None:
    if aggregate.total is not None and aggregate.total != count:
        message = f"{file.name!r} has {count:,} samples, and its aggregate file says {aggregate.total:,}."
        notes.append(Note("other_count", message, "caution"))
    if aggregate.evaluation_id is not None and aggregate.evaluation_id not in ids:
        message = f"{file.name!r} and the aggregate file beside it have different evaluation_ids."
        notes.append(Note("other_evaluation", message, "caution"))


def _add(rows: Collector, file: File, sample: Mapping[str, Any]) -> None:
    evaluation, metadata = mapping(sample.get("evaluation")), mapping(sample.get("metadata"))
    if "sample_id" not in sample or not evaluation:
        raise ReadError(
            f"{file.name!r} has a line without `sample_id` or `evaluation`, so that it is no sample"
        )
    scorer, scalar = _scorer(sample, metadata)
    rows.add(
        source=file.name,
        task=text_of(sample.get("evaluation_name")),
        model=text_of(sample.get("model_id")),
        scenario=sample["sample_id"],
        repetition=_epoch(metadata),
        scorer=scorer,
        value=as_float(evaluation.get("score")),
        error=sample.get("error") or None,
        null="unscored",
        status=None if scalar else "suspect",
        reason=None if scalar else _NO_SCALAR,
        response=_response(sample),
        gold=only(mapping(sample.get("input")).get("reference") or None),
        extra={"metadata": metadata, "is_correct": evaluation.get("is_correct")},
    )


def _scorer(sample: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What was measured, and whether it was a number.

    Without an `evaluation_result_id`, converters score the first number among the metrics that they carry
    along, and 0 where none is a number.
    """
    named = text_of(sample.get("evaluation_result_id"))
    if named is not None:
        return named, True
    carried = next((metadata[name] for name in _CARRIED if isinstance(metadata.get(name), str)), None)
    if carried is None:
        return None, True
    try:
        metrics = mapping(json.loads(carried))
    except ValueError:
        return None, True
    numbers = [name for name, value in metrics.items() if isinstance(value, int | float)]
    return (text_of(metadata.get("primary_metric")) or numbers[0], True) if numbers else (None, False)


def _epoch(metadata: Mapping[str, Any]) -> int | None:
    epoch = str(metadata.get("epoch", ""))
    return int(epoch) if re.fullmatch(r"\d{1,9}", epoch, re.ASCII) else None


def _response(sample: Mapping[str, Any]) -> object:
    """The extracted answer; else what was generated, or said last."""
    parts = mappings(sample.get("answer_attribution"))
    last = [part for part in parts if part.get("is_terminal")] or parts
    if last and last[-1].get("extracted_value") is not None:
        return last[-1]["extracted_value"]
    output = sample.get("output")
    if isinstance(output, Mapping):
        return only(output.get("raw") or None)
    said = [
        turn.get("content") for turn in mappings(sample.get("messages")) if turn.get("role") == "assistant"
    ]
    return said[-1] if said else None


def _without_scalar(rows: Rows) -> Rows:
    """A score that stands for something that is no number is none; what was written stays in `score_raw`."""
    invented = (pl.col("status") == "suspect") & (pl.col("reason") == _NO_SCALAR)
    return replace(
        rows,
        frame=rows.frame.with_columns(pl.when(~invented).then("score").alias("score")),
    )


def _errors_of_all(rows: Rows) -> Rows:
    """A sample that failed before it was scored is an error of every metric of its file."""
    failed = (pl.col("status") == "error") & pl.col("scorer").is_null()
    within = ["source", "task"]
    scorers = (
        rows.frame.filter(pl.col("scorer").is_not_null())
        .select(*within, "scorer")
        .unique(maintain_order=True)
    )
    lost = rows.frame.filter(failed).drop("scorer").join(scorers, on=within, how="left", nulls_equal=True)
    if lost.is_empty():
        return rows
    kept = rows.frame.filter(~failed)
    return replace(rows, frame=pl.concat([kept, lost.select(kept.columns)]))


def _reduced(rows: Rows) -> Rows:
    """Mark epochs that carry one fractional score."""
    answer = ["source", "task", "model", "scenario", "scorer"]
    scored = pl.col("score").is_not_null() & (pl.col("status") == "ok")
    score = pl.when(scored).then("score")
    shared = (
        scored
        & (score.count().over(answer) > 1)
        & (score.n_unique().over(answer) == score.null_count().over(answer).clip(0, 1) + 1)
        & ~pl.col("score").is_in([0.0, 1.0])
    )
    frame = rows.frame.with_columns(shared.alias("_shared"))
    marked = frame.filter("_shared")
    if marked.is_empty():
        return rows
    files: dict[str, int] = defaultdict(int)
    for source in marked["source"]:
        files[source] += 1
    named = ", ".join(f"{source!r} ({count:,} rows)" for source, count in list(files.items())[:3])
    note = Note(
        "reduced_epochs",
        f"All epochs of an item carry one fractional score in {named}: the conversion to Every Eval Ever "
        "wrote the mean over epochs into each. Variation within items is lost, and rows are no draws; read "
        "the original log.",
        "caution",
    )
    frame = frame.with_columns(
        pl.when("_shared").then(pl.lit("suspect")).otherwise("status").alias("status"),
        pl.when("_shared").then(pl.lit(_REDUCED)).otherwise("reason").alias("reason"),
    ).drop("_shared")
    return replace(rows, frame=frame, notes=(*rows.notes, note))
