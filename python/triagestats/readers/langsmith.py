"""LangSmith experiments: the table of `evaluate(...).to_pandas()`, and rows of runs with their feedback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

from triagestats.errors import ReadError
from triagestats.readers.bounded import File
from triagestats.readers.claims import claim, refuse_nameless
from triagestats.readers.items import Items
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows, text_of
from triagestats.readers.shapes import mapping, mappings
from triagestats.readers.tables import column_names, nested, table_rows
from triagestats.table import ResponseTable

__all__ = ["READER", "read_langsmith"]

_HARNESS: Final = "LangSmith"
_PARTS: Final = re.compile(
    r"(?P<part>inputs?|outputs?|reference(?:_outputs?|s)?|feedback|metadata)\.(?P<name>.+)", re.DOTALL
)
_WHOLE: Final = {
    "inputs": "input",
    "input": "input",
    "outputs": "output",
    "output": "output",
    "reference_outputs": "reference",
    "reference": "reference",
    "metadata": "metadata",
    "feedback": "feedback",
}
_ANSWERS: Final = ("output", "answer", "response", "label", "prediction", "result", "text", "content")
_NO_OUTPUT: Final = "run error: evaluator saw no output"


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of one example."""

    source: str
    input: Mapping[str, object]
    output: Mapping[str, object]
    reference: Mapping[str, object]
    metadata: Mapping[str, object]
    feedback: Mapping[str, object]
    failed: Mapping[str, str]
    error: str | None
    example_id: str | None
    own_id: str | None


def _recognises(file: File) -> bool:
    if file.kind not in ("json", "jsonl", "csv", "parquet"):
        return False
    names = set(column_names(file))
    if any(name.startswith("feedback.") for name in names):
        return (
            any(name.startswith(("input", "output", "reference")) for name in names) or "example_id" in names
        )
    return {"run", "example", "evaluation_results"} <= names or "examples_with_runs" in names


def _read(files: Sequence[File], ask: Ask) -> Rows:
    rows = Collector(ask)
    runs = []
    owners: dict[str, File] = {}
    for file in files:
        own = list(_runs(file))
        claim(owners, [run.own_id for run in own], file, "run")
        runs += own
    refuse_nameless(dict.fromkeys(run.source for run in runs), ask, _HARNESS)
    items = Items(_HARNESS, ask.item, own="example_id")
    for run in runs:
        items.add(run.input, _fields(run))
    labels, notes = items.labels()
    rows.notes += notes
    for run, label in zip(runs, labels, strict=True):
        for key, value in run.feedback.items():
            rows.add(
                source=run.source,
                scenario=label,
                scorer=key,
                value=value,
                error=_reason(run) or run.failed.get(key),
                response=_answer(run.output),
                gold=_answer(run.reference),
                extra={**_fields(run), "run_error": run.error and run.error.splitlines()[0]},
            )
    return rows.done()


READER: Final = Reader("langsmith", _HARNESS, _recognises, _read)


def read_langsmith(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Runs and feedback of LangSmith experiments.

    Parameters
    ----------
    path
        `results.to_pandas()` of `evaluate` saved as csv, json or parquet; the rows of `evaluate` themselves,
        each with `run`, `example` and `evaluation_results`, as json or JSON lines; a folder, or a list of
        them.
    item
        The field that names the item, such as `inputs.case_id` or `example_id`. Default: an input that is
        called so, else `example_id`, else all inputs together.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`. The table does not name the model: `model=` does.

    Returns
    -------
    ResponseTable
        Each `feedback.<key>` is a metric. Columns `inputs.*`, `metadata.*` and `example_id` serve as
        clusters; `run_error` is what a failed run said.

    Raises
    ------
    ReadError
        If a file is damaged, or has no feedback.

    Notes
    -----
    A failed run is handed to the evaluators all the same, and they call it wrong: here it has no score and
    the status `error`. Feedback is its score, or its value where it has no score, so that numbers, booleans
    and words such as PASS stand side by side. Runs of one example are repetitions, in the order of the rows.
    The download of the web page has other spellings: read it with `read_csv`, and name its columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> header = "inputs.case_id,inputs.passage,outputs.label,error,reference.label,feedback.correct"
    >>> lines = [header, "c1,p1,urgent,,urgent,True", "c2,p1,,RuntimeError('overloaded'),urgent,False"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "experiment.csv")
    ...     _ = path.write_text(chr(10).join(lines))
    ...     table = ts.read_langsmith(path, model="acme/a", cluster="inputs.passage")
    >>> table.frame.select("scenario", "metric", "score", "status", "run_error").rows()
    [('c1', 'correct', 1.0, 'ok', None), ('c2', 'correct', None, 'error', "RuntimeError('overloaded')")]
    """
    return read_as(READER, path, **options)


def _runs(file: File) -> Iterator[_Run]:
    if "examples_with_runs" in file.keys:
        for key, example in file.stream("examples_with_runs"):
            if key == "examples_with_runs":
                yield from _of_example(file, mapping(example))
        return
    for cells in table_rows(file):
        yield _evaluated(file, cells) if "evaluation_results" in cells else _tabular(file, cells)


def _tabular(file: File, cells: Mapping[str, Any]) -> _Run:
    """A row of the table: `inputs.case_id`, `outputs.label`, `feedback.correct`."""
    parts: dict[str, dict[str, object]] = {name: {} for name in _WHOLE.values()}
    for column, cell in cells.items():
        found = _PARTS.fullmatch(column)
        if found:
            part = found["part"] if found["part"] in ("feedback", "metadata") else found["part"].rstrip("s")
            parts[part.partition("_")[0]][found["name"]] = (
                nested(cell) if found["part"] != "feedback" else cell
            )
        elif column in _WHOLE and isinstance(whole := nested(cell), Mapping):
            parts[_WHOLE[column]] |= whole
    if not parts["feedback"]:
        raise ReadError(f"{file.name!r} has no column `feedback.<key>`, so that nothing is scored")
    return _Run(
        source=file.name,
        **{name: _filled(parts[name]) for name in ("input", "output", "reference", "metadata")},
        feedback=parts["feedback"],
        failed={},
        error=text_of(cells.get("error")) or None,
        example_id=text_of(cells.get("example_id")),
        own_id=text_of(cells.get("id")) or None,
    )


def _evaluated(file: File, cells: Mapping[str, Any]) -> _Run:
    """A row of `evaluate`: a run, its example, and the results of the evaluators."""
    run, example = mapping(cells.get("run")), mapping(cells.get("example"))
    given = cells["evaluation_results"]
    results = mappings(mapping(given).get("results", given))
    return _Run(
        source=file.name,
        input=mapping(example.get("inputs")) or mapping(run.get("inputs")),
        output=mapping(run.get("outputs")),
        reference=mapping(example.get("outputs")),
        metadata=mapping(example.get("metadata")),
        feedback={str(one.get("key")): _given(one) for one in results},
        failed={str(one.get("key")): _said(one) for one in results if mapping(one.get("extra")).get("error")},
        error=text_of(run.get("error")) or None,
        example_id=text_of(example.get("id") or run.get("reference_example_id")),
        own_id=text_of(run.get("id")),
    )


def _of_example(file: File, example: Mapping[str, Any]) -> Iterator[_Run]:
    """An example of the service with its runs, whose feedback is a mean of `n` values."""
    for run in mappings(example.get("runs")):
        stats = mapping(run.get("feedback_stats"))
        yield _Run(
            source=file.name,
            input=mapping(example.get("inputs")),
            output=mapping(run.get("outputs")),
            reference=mapping(example.get("outputs")),
            metadata=mapping(example.get("metadata")),
            feedback={key: mapping(value).get("avg") for key, value in stats.items()},
            failed={},
            error=text_of(run.get("error")) or None,
            example_id=text_of(example.get("id")),
            own_id=text_of(run.get("id")),
        )


def _fields(run: _Run) -> dict[str, object]:
    return {"inputs": run.input, "metadata": run.metadata, "example_id": run.example_id}


def _reason(run: _Run) -> str | None:
    if run.error is None:
        return None
    return f"run error: {run.error.splitlines()[0]}" if run.output else _NO_OUTPUT


def _answer(fields: Mapping[str, object]) -> object:
    """One field is the answer; of several the one that is called so, else all together."""
    if len(fields) < 2:
        return next(iter(fields.values()), None)
    return next((fields[name] for name in _ANSWERS if name in fields), dict(fields))


def _given(result: Mapping[str, Any]) -> object:
    return result.get("value") if result.get("score") is None else result.get("score")


def _said(result: Mapping[str, Any]) -> str:
    return text_of(result.get("comment")) or "the evaluator failed"


def _filled(fields: Mapping[str, object]) -> dict[str, object]:
    """Without blank cells: a table has a column for what any run has."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}
