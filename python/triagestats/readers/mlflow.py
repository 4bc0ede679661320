"""MLflow: `eval_results_table.json` of `mlflow.evaluate`, and result tables of `mlflow.genai.evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

from triagestats.errors import ReadError
from triagestats.readers.bounded import File
from triagestats.readers.claims import claim, refuse_nameless
from triagestats.readers.items import Items
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import ABSENT, Ask, Collector, Reader, Rows, text_of
from triagestats.readers.shapes import mapping, mappings, only
from triagestats.readers.tables import column_names, nested, table_rows
from triagestats.roles import role_spelled
from triagestats.schema import ROLES
from triagestats.table import ResponseTable

__all__ = ["READER", "read_mlflow"]

_HARNESS: Final = "MLflow"
_SCORES: Final = ("/score", "/value", "/rating", "/ratings")
_TRACE: Final = {
    "assessments",
    "client_request_id",
    "column_1",
    "execution_duration",
    "execution_time_ms",
    "request",
    "request_id",
    "request_metadata",
    "request_time",
    "response",
    "spans",
    "state",
    "status",
    "tags",
    "timestamp_ms",
    "trace",
    "trace_id",
    "trace_metadata",
}
_RESERVED: Final = {*ROLES, "scorer", "measure", "score_raw", "unread"}
_RESPONSES: Final = ("response", "outputs", "predictions", "output", "prediction", "actual_output")
_GOLDS: Final = ("expected_response", "targets", "ground_truth", "expected_output", "expected_answer")
_EXPECTED: Final = ("expected_response", "expected_facts", "expected_retrieved_context", "guidelines")
_MEASURED: Final = ("latency", "token_count", "column_1")
_JUDGE_FAILED: Final = ("Failed to score model", "Failed to extract score")
"""How a judge metric of `mlflow.evaluate` begins its justification where it has no score."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One row, taken apart."""

    source: str
    trace: str | None
    scores: Mapping[str, object]
    errors: Mapping[str, str]
    inputs: Mapping[str, object]
    fields: Mapping[str, object]
    model: str | None
    error: str | None
    response: object
    gold: object


def _recognises(file: File) -> bool:
    if file.kind not in ("json", "jsonl", "csv", "parquet"):
        return False
    names = column_names(file)
    return any(name.endswith(_SCORES) for name in names) or {"trace_id", "assessments"} <= set(names)


def _read(files: Sequence[File], ask: Ask) -> Rows:
    rows = Collector(ask)
    found = []
    owners: dict[str, File] = {}
    for file in files:
        own = list(_rows(file))
        claim(owners, [row.trace for row in own], file, "trace")
        found += own
    models = {row.source: row.model for row in found}
    refuse_nameless(models, ask, _HARNESS)
    items = Items(_HARNESS, ask.item)
    for row in found:
        items.add(row.inputs, row.fields)
    labels, notes = items.labels()
    rows.notes += notes
    for row, label in zip(found, labels, strict=True):
        for scorer, value in row.scores.items():
            rows.add(
                source=row.source,
                model=row.model,
                scenario=label,
                scorer=scorer,
                value=value,
                error=row.error or row.errors.get(scorer),
                null="unscored",
                response=row.response,
                gold=row.gold,
                extra=row.fields,
            )
    return rows.done()


READER: Final = Reader("mlflow", _HARNESS, _recognises, _read)


def read_mlflow(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Rows of MLflow evaluation tables.

    Parameters
    ----------
    path
        `eval_results_table.json`, the `result_df` of `mlflow.genai.evaluate` saved as json, csv or parquet, a
        folder, or a list of them.
    item
        The field that names the item, such as `case_id`, `inputs.case_id` or `tags.case`. Default: an input
        that is called so, else all inputs together.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`. A table does not name its model: `model=` does.

    Returns
    -------
    ResponseTable
        `<name>/score` and `<name>/value` are the metric `<name>`. Columns of an evaluation table keep their
        names; `inputs.*` and `tags.*` are those of a trace. All of them serve as clusters.

    Raises
    ------
    ReadError
        If a file is damaged, or is no table with scores.

    Notes
    -----
    A value with an `error_message`, or of a trace whose state is ERROR, has no score. Null is `unscored`, and
    `absent` where a trace has no assessment of that name. Expectations stand under `<name>/value` too, and
    are no scores: assessments say which they are. There is no number of a repetition; rows with the same item
    are repetitions, in the order of the rows.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> table = {"columns": ["case_id", "passage", "predictions", "ground_truth", "exact/score"],
    ...          "data": [["c1", "p1", "urgent", "urgent", 1.0], ["c2", "p1", None, "routine", None]]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "eval_results_table.json")
    ...     _ = path.write_text(json.dumps(table))
    ...     read = ts.read_mlflow(path, model="acme/a", cluster="passage")
    >>> read.frame.select("scenario", "model", "metric", "score", "status", "cluster_1").rows()
    [('c1', 'acme/a', 'exact', 1.0, 'ok', 'p1'), ('c2', 'acme/a', 'exact', None, 'unscored', 'p1')]
    """
    return read_as(READER, path, **options)


def _rows(file: File) -> Iterator[_Row]:
    for number, cells in enumerate(table_rows(file), start=1):
        traced = "trace_id" in cells or "assessments" in cells
        row = _traced(file, cells) if traced else _plain(file, cells)
        if not row.scores:
            raise ReadError(
                f"{file.name!r}, row {number:,}, has no column that ends in {' or '.join(_SCORES[:2])}, and "
                "no assessments; expected the table of an evaluation"
            )
        yield row


def _plain(file: File, cells: Mapping[str, Any]) -> _Row:
    """A row of `mlflow.evaluate`: the user's columns, predictions, targets and metrics."""
    own = {name: value for name, value in cells.items() if "/" not in name and name not in _MEASURED}
    response, gold = _named(own, _RESPONSES, "response"), _named(own, _GOLDS, "gold")
    model = next((text_of(own[name]) for name in own if role_spelled(name) == "model"), None)
    scores, errors = _scores(cells)
    inputs = own.get("inputs", {name: value for name, value in own.items() if name not in (response, gold)})
    return _Row(
        source=file.name,
        trace=None,
        scores=scores,
        errors=errors,
        inputs=inputs if isinstance(inputs, Mapping) else {"inputs": inputs},
        fields=_unreserved({name: value for name, value in own.items() if name not in (response, gold)}),
        model=model,
        error=None,
        response=own.get(response or ""),
        gold=own.get(gold or ""),
    )


def _named(own: Mapping[str, object], usual: Sequence[str], role: str) -> str | None:
    """The column that plays a role: under one of its usual names, or spelled like it."""
    spelled = (name for name in own if role_spelled(name) == role)
    return next((name for name in usual if name in own), next(spelled, None))


def _traced(file: File, cells: Mapping[str, Any]) -> _Row:
    """A row of `mlflow.genai.evaluate`: a trace with its assessments."""
    request = nested(cells.get("request"))
    tags = mapping(nested(cells.get("tags")))
    assessments = mappings(nested(cells.get("assessments")))
    expected = {_name(one): _value(one) for one in assessments if "expectation" in one}
    expected |= {
        name: nested(cells[f"{name}/value"])
        for name in _EXPECTED
        if f"{name}/value" in cells and name not in expected
    }
    scores, errors = _scores(
        {name: value for name, value in cells.items() if name.partition("/")[0] not in expected}
    )
    judged = [one for one in assessments if "expectation" not in one and one.get("valid") is not False]
    if not scores:
        scores = {_name(one): _value(one) for one in judged}
        errors = {_name(one): _failure(one) or "" for one in judged if _failure(one)}
    elif assessments:
        names = {_name(one) for one in judged}
        scores = {name: ABSENT if v is None and name not in names else v for name, v in scores.items()}
    gold = next((expected[name] for name in _GOLDS if name in expected), None)
    inputs = request if isinstance(request, Mapping) else {"request": request}
    state = str(cells.get("state") or cells.get("status") or "")
    return _Row(
        source=file.name,
        trace=text_of(cells.get("trace_id")),
        scores=scores,
        errors=errors,
        inputs=inputs,
        fields={
            "inputs": inputs,
            "tags": {name: v for name, v in tags.items() if not name.startswith("mlflow.")},
            **_unreserved({name: v for name, v in cells.items() if name not in _TRACE and "/" not in name}),
        },
        model=None,
        error="the traced call failed (state ERROR)" if state.rpartition(".")[2].upper() == "ERROR" else None,
        response=nested(cells.get("response")),
        gold=only(expected) if gold is None and len(expected) == 1 else gold,
    )


def _scores(cells: Mapping[str, Any]) -> tuple[dict[str, object], dict[str, str]]:
    """Values by the name of their metric, and why some have none."""
    scores: dict[str, object] = {}
    errors: dict[str, str] = {}
    for column, value in cells.items():
        suffix = next((end for end in _SCORES if column.endswith(end)), None)
        if suffix is None:
            continue
        name = column.removesuffix(suffix)
        scores[name] = nested(value)
        message = text_of(cells.get(f"{name}/error_message"))
        said = text_of(cells.get(f"{name}/justification") or cells.get(f"{name}/rationale")) or ""
        if message or (value is None and said.startswith(_JUDGE_FAILED)):
            errors[name] = message or said
    return scores, errors


def _name(assessment: Mapping[str, Any]) -> str:
    return str(assessment.get("assessment_name") or assessment.get("name") or "assessment")


def _value(assessment: Mapping[str, Any]) -> object:
    given = assessment.get("feedback") or assessment.get("expectation")
    return given.get("value") if isinstance(given, Mapping) else given


def _failure(assessment: Mapping[str, Any]) -> str | None:
    feedback = assessment.get("feedback")
    error = feedback.get("error") if isinstance(feedback, Mapping) else assessment.get("error")
    return text_of(
        error.get("error_message") or error.get("error_code") if isinstance(error, Mapping) else error
    )


def _unreserved(fields: Mapping[str, object]) -> dict[str, object]:
    """Columns of the user under their own names, or `inputs.name` where the name is that of a role."""
    return {f"inputs.{name}" if name in _RESERVED else name: value for name, value in fields.items()}
