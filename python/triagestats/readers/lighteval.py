"""lighteval details: a parquet file a task, with the columns of old versions or of new ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Unpack

import polars as pl

from triagestats.errors import ReadError
from triagestats.readers.bounded import File, open_file
from triagestats.readers.claims import refuse_nameless
from triagestats.readers.items import refuse_item
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import ABSENT, Ask, Collector, Reader, Rows, text_of
from triagestats.readers.shapes import elements, mapping, mappings
from triagestats.readers.tables import nested
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["READER", "read_lighteval"]

_NEW: Final = {"doc", "metric", "model_response"}
_OLD: Final = {"metrics", "predictions"}
_DATE: Final = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)$")
_KEPT: Final = {
    "doc": ("id", "task_name", "query", "choices", "gold_index", "specific"),
    "model_response": ("text", "text_post_processed", "logprobs"),
}
_SEVERAL: Final = 2
_BEST: Final = frozenset({"em", "qem", "pem", "pqem", "f1", "f1_score"})
"""Metrics that take the best of several samples unless told otherwise."""


@dataclass(slots=True)
class _Results:
    """What the results file of a run says of it."""

    model: str | None = None
    functions: dict[str, str] = field(default_factory=dict)
    lower: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Doc:
    """One row of details, whichever version wrote it."""

    item: object
    task: str | None
    query: object
    metrics: Mapping[str, object]
    texts: Sequence[object]
    response: object
    gold: object
    specific: object


def _recognises(file: File) -> bool:
    columns = set(file.columns)
    return file.kind == "parquet" and (
        columns >= _NEW or (columns >= _OLD and bool(columns & {"example", "gold"}))
    )


def _read(files: Sequence[File], ask: Ask) -> Rows:
    refuse_item(ask, "lighteval")
    rows = Collector(ask)
    several: set[str] = set()
    queries: dict[tuple[str | None, str], tuple[object, str]] = {}
    differing: dict[str, str] = {}
    models: dict[str | None, dict[str, str | None]] = {}
    for file in files:
        results = _results(file)
        rows.lower |= results.lower
        docs = _docs(file)
        for task in {doc.task for doc in docs}:
            models.setdefault(task, {})[file.name] = results.model
        if any(doc.item is None for doc in docs):
            message = f"{file.name!r} numbers no documents: its rows are the items, counted from 0."
            rows.notes.append(Note("row_numbers", message, "caution"))
        for position, doc in enumerate(docs):
            item = text_of(position if doc.item is None else doc.item) or ""
            first, source = queries.setdefault((doc.task, item), (doc.query, file.name))
            if first != doc.query:
                differing.setdefault(file.name, f"item {item!r} of {source!r}")
            if len(doc.texts) >= _SEVERAL:
                several.add(file.name)
            _add(rows, file, doc, item, results)
    for named in models.values():
        refuse_nameless(named, ask, "lighteval")
    if several:
        rows.notes.append(
            Note(
                "aggregated",
                f"lighteval kept one value a document for several samples, in {len(several):,} of "
                f"{len(files):,} files: `reason` says how it was made, and the repetitions are not on file.",
                "caution",
            )
        )
    if differing:
        name, example = next(iter(differing.items()))
        rows.notes.append(
            Note(
                "differing_items",
                f"{len(differing):,} files ask other questions under numbers that other files use, such as "
                f"{name!r} for {example}: answers paired by number would not belong together.",
                "caution",
            )
        )
    return rows.done()


def _companion(file: File) -> str | None:
    if file.head.startswith(b"version https://git-lfs") and file.path.suffix == ".parquet":
        return "is a pointer of Git LFS and not the file itself; fetch that with `git lfs pull`"
    if file.kind == "json" and set(file.keys) >= {"config_general", "results"} and b"lighteval" in file.head:
        return (
            "holds averages over the documents of lighteval tasks; the documents are in the parquet files of "
            "the folder `details`, which `--save-details` writes"
        )
    return None


READER: Final = Reader("lighteval", "lighteval", _recognises, _read, _companion)


def read_lighteval(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Documents and metrics of lighteval details (`--save-details`).

    Parameters
    ----------
    path
        A `details_<task>_<date>.parquet` file, the folder that holds `details` and `results`, or a list of
        them.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`.

    Returns
    -------
    ResponseTable
        The item is the id of the document within its task (such as `gsm8k|5`). The model is that of the
        results file of the same date, else the path under `details`. Columns `specific.*` serve as clusters.

    Raises
    ------
    ReadError
        If a file is damaged.

    Notes
    -----
    Several samples of a document are one row of the file, and each metric has made one value of them: `em`
    the best, `avg@n` the mean. `reason` says which (`max_over_3_samples`); the values of the samples are not
    on file. Files of several dates are runs, and number the repetitions. Details of old versions have no id:
    their rows are counted, and a note says so.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> import triagestats as ts
    >>> rows = [{"doc": {"id": str(i), "task_name": "mini|0", "query": q, "choices": [g], "gold_index": 0,
    ...                  "specific": {"passage": "p1"}},
    ...          "model_response": {"text": [a], "logprobs": []}, "metric": {"em": int(a == g)}}
    ...         for i, (q, g, a) in enumerate([("2+3", "5", "5"), ("6*7", "42", "41")])]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = Path(folder, "details", "acme", "a", "2026-01-01T00-00-00.000000")
    ...     run.mkdir(parents=True)
    ...     pl.DataFrame(rows).write_parquet(run / "details_mini|0_2026-01-01T00-00-00.000000.parquet")
    ...     table = ts.read_lighteval(folder, cluster="specific.passage")
    >>> table.frame.select("scenario", "model", "task", "score", "response", "gold_low").rows()
    [('0', 'acme/a', 'mini|0', 1.0, '5', '5'), ('1', 'acme/a', 'mini|0', 0.0, '41', '42')]
    """
    return read_as(READER, path, **options)


def _docs(file: File) -> list[_Doc]:
    try:
        with file.open():
            lazy = pl.scan_parquet(file.path)
            if set(file.columns) >= _NEW:
                return [_new(row) for row in _selected(lazy).collect().iter_rows(named=True)]
            task = _task(file)
            wanted = ("example", "metrics", "predictions", "choices", "gold", "gold_index", "specifics")
            names = [name for name in wanted if name in file.columns]
            return [_old(row, task) for row in lazy.select(names).collect().iter_rows(named=True)]
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).strip().splitlines()[0]
        raise ReadError(
            f"{file.name!r} cannot be read as parquet, and may be damaged or cut short: {first}"
        ) from error


def _selected(lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Only what is used: details carry tokens and logits, which take most of the file."""
    schema = lazy.collect_schema()
    columns: list[pl.Expr] = [pl.col("metric")]
    for name, wanted in _KEPT.items():
        kind = schema[name]
        if isinstance(kind, pl.Struct):
            present = {part.name for part in kind.fields}
            columns.append(
                pl.struct(pl.col(name).struct.field(part) for part in wanted if part in present).alias(name)
            )
        else:
            columns.append(pl.col(name))
    return lazy.select(columns)


def _new(row: Mapping[str, Any]) -> _Doc:
    doc, said, metrics = (mapping(nested(row[name])) for name in ("doc", "model_response", "metric"))
    texts = elements(said.get("text_post_processed")) or elements(said.get("text"))
    choices = elements(doc.get("choices"))
    return _Doc(
        item=doc.get("id") if doc.get("id") not in (None, "") else None,
        task=text_of(doc.get("task_name")),
        query=doc.get("query"),
        metrics=metrics,
        texts=texts,
        response=_said(texts, elements(said.get("logprobs")), choices),
        gold=_gold(choices, doc.get("gold_index")),
        specific=doc.get("specific"),
    )


def _old(row: Mapping[str, Any], task: str | None) -> _Doc:
    said = nested(row["predictions"])
    predictions = [said] if isinstance(said, str) else elements(said)
    choices = elements(nested(row.get("choices")))
    ranks = [one[0] if isinstance(one, list | tuple) and one else one for one in predictions]
    ranked = bool(ranks) and all(isinstance(one, int | float) for one in ranks)
    texts = [] if ranked else [_first(one) for one in predictions]
    gold = elements(nested(row.get("gold"))) or None
    return _Doc(
        item=None,
        task=task,
        query=row.get("example"),
        metrics=mapping(nested(row["metrics"])),
        texts=texts,
        response=_said(texts, ranks if ranked else [], choices),
        gold=_gold(choices, nested(row.get("gold_index"))) if gold is None else _stripped(gold),
        specific=nested(row.get("specifics")),
    )


def _said(texts: Sequence[object], logprobs: Sequence[Any], choices: Sequence[object]) -> object:
    """What was generated, or the choice of the highest log-probability."""
    if texts:
        return _stripped(texts)
    if len(logprobs) == len(choices) > 0 and None not in logprobs:
        return _stripped([choices[max(range(len(logprobs)), key=logprobs.__getitem__)]])
    return None


def _gold(choices: Sequence[object], index: object) -> object:
    wanted = elements(index) if isinstance(index, list | tuple) else [index]
    found = [choices[one] for one in wanted if isinstance(one, int) and 0 <= one < len(choices)]
    return _stripped(found) if found else None


def _stripped(texts: Sequence[object]) -> object:
    """Without the space that stands before a choice; one text as itself."""
    clean = [text.strip() if isinstance(text, str) else text for text in texts]
    return clean[0] if len(clean) == 1 else clean


def _add(rows: Collector, file: File, doc: _Doc, item: str, results: _Results) -> None:
    for name, value in doc.metrics.items():
        rows.add(
            source=file.name,
            task=doc.task,
            model=rows.ask.model or results.model,
            scenario=item,
            scorer=name,
            value=ABSENT if value is None else value,
            reason=_aggregation(name, len(doc.texts), results) if len(doc.texts) >= _SEVERAL else None,
            response=doc.response,
            gold=doc.gold,
            extra={"specific": doc.specific} if doc.specific else None,
        )


def _aggregation(metric: str, n: int, results: _Results) -> str:
    """How one value was made of several samples, as far as the metric says."""
    function = results.functions.get(metric, "")
    if metric.startswith("avg@") or "AvgAt" in function:
        how = "mean"
    elif metric.startswith("maj@") or "MajAt" in function:
        how = "majority"
    elif metric.startswith(("pass@", "g-pass@")) or "PassAt" in function:
        how = "pass_at_k"
    elif "aggregation_function=max" in function or (not function and metric in _BEST):
        how = "max"
    elif "aggregation_function=mean" in function:
        how = "mean"
    else:
        how = "aggregated"
    return f"{how}_over_{n}_samples"


def _results(file: File) -> _Results:
    """The results file of the same date, and the model; a path may be all that names it."""
    found = _Results()
    stem = _DATE.search(file.path.stem)
    parts = file.path.absolute().parts[:-1]
    dated = stem is not None and bool(parts) and parts[-1] == stem[1]
    above = parts[:-1] if dated else parts
    within = next((i for i in reversed(range(len(above))) if above[i] == "details"), None)
    if within is not None and above[within + 1 :]:
        found.model = "/".join(above[within + 1 :])
    if stem is not None:
        name = f"results_{stem[1]}.json"
        folders = [Path(*above), Path(*parts)]
        if within is not None:
            folders.insert(0, Path(*above[:within], "results", *above[within + 1 :]))
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is not None:
            _take(found, open_file(path, name, file.max_bytes).json())
    return found


def _take(found: _Results, document: object) -> None:
    general = mapping(mapping(document).get("config_general"))
    found.model = text_of(general.get("model_name")) or found.model
    for task in mapping(mapping(document).get("config_tasks")).values():
        for metric in mappings(mapping(task).get("metrics") or mapping(task).get("metric")):
            name = text_of(metric.get("metric_name"))
            if name is not None:
                found.functions[name] = str(metric.get("sample_level_fn") or "")
                if metric.get("higher_is_better") is False:
                    found.lower.add(name)


def _task(file: File) -> str | None:
    """The task in the name of a file: `details_lighteval|gsm8k|5_<date>`."""
    task = _DATE.sub("", file.path.stem).removeprefix("details_")
    return task or None


def _first(value: object) -> object:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
