"""DeepEval test runs: files under DEEPEVAL_RESULTS_FOLDER, `.deepeval`, and dumped results of `evaluate`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Unpack

from triagestats.errors import DataError, ReadError
from triagestats.readers.bounded import File
from triagestats.readers.claims import refuse_nameless
from triagestats.readers.items import Items, shortened
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import ABSENT, Ask, Collector, Reader, Rows, text_of
from triagestats.readers.shapes import mapping, mappings
from triagestats.results import Note
from triagestats.roles import role_spelled
from triagestats.table import ResponseTable

__all__ = ["READER", "read_deepeval"]

_HARNESS: Final = "DeepEval"
_CASES: Final = (
    "testCases",
    "test_cases",
    "test_results",
    "conversationalTestCases",
    "conversational_test_cases",
)
_METRICS: Final = ("metricsData", "metrics_data", "metricsMetadata", "metrics_metadata")
_MARKS: Final = re.compile(rb'"(metricsData|metrics_data|metricsMetadata|metrics_metadata|metricsScores)"')
_COUNTED: Final = re.compile(r"(conversational_)?test_case_\d+")
"""The name that DeepEval gives to a test case without one: a running number, not the item."""

_Run = tuple[File, Mapping[str, Any], list[Mapping[str, Any]]]
"""A file, its run, and the test cases of that."""


def _recognises(file: File) -> bool:
    if file.kind not in ("json", "jsonl"):
        return False
    keys = set(file.keys)
    if "testRunData" in keys:
        return True
    return bool(keys & set(_CASES)) and (
        _MARKS.search(file.head) is not None or bool(keys & {"testPassed", "metricsScores", "confident_link"})
    )


def _read(files: Sequence[File], ask: Ask) -> Rows:
    rows = Collector(ask)
    runs = _once([(file, *_run(file)) for file in files], rows.notes)
    refuse_nameless({file.name: _settings(run)[0] for file, run, _ in runs}, ask, _HARNESS)
    items = Items(_HARNESS, ask.item, weak=("name",))
    for _, _, cases in runs:
        for case in cases:
            items.add(_input(case), _fields(case))
    labels, notes = items.labels()
    rows.notes += notes
    left = iter(labels)
    for file, run, cases in runs:
        metrics = dict.fromkeys(name for case in cases for name, _ in _metrics(case))
        model, condition = _settings(run)
        for case in cases:
            _add(rows, file, case, next(left), metrics, run=run, model=model, condition=condition)
    return rows.done()


READER: Final = Reader("deepeval", _HARNESS, _recognises, _read)


def read_deepeval(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Test cases and metrics of DeepEval test runs.

    Parameters
    ----------
    path
        A test run, a folder, or a list of them.
    item
        The field that names the item: `name`, or metadata such as `metadata.case_id`. Default: metadata that
        is called so, else the name where it goes one to one with the input, else the input.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`.

    Returns
    -------
    ResponseTable
        The hyperparameter `model` is the model, the other hyperparameters together are the condition, and the
        identifier of the run is the task. Columns `metadata.*` serve as clusters; `evaluation_model` is
        the judge model of a metric.

    Raises
    ------
    ReadError
        If a file is damaged, or holds no test cases.

    Notes
    -----
    A metric with an `error` has no score: its judge failed. The lists of scores at the top of a file leave
    such metrics out, and are not used. A test case without any metric has the status `absent` for all
    metrics of the file. Repetitions are counted in the order in which they ran.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> case = {"name": "c1", "input": "Chest pain?", "actualOutput": "urgent", "expectedOutput": "urgent",
    ...         "metadata": {"passage": "p1"},
    ...         "metricsData": [{"name": "Exact Match", "score": 1.0, "success": True},
    ...                         {"name": "Judge", "success": False, "error": "invalid JSON"}]}
    >>> run = {"testCases": [case], "identifier": "mini", "hyperparameters": {"model": "acme/a"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "test_run.json")
    ...     _ = path.write_text(json.dumps(run))
    ...     table = ts.read_deepeval(path, cluster="metadata.passage")
    >>> table.frame.select("scenario", "metric", "score", "status", "reason").rows()
    [('c1', 'Exact Match', 1.0, 'ok', None), ('c1', 'Judge', None, 'error', 'invalid JSON')]
    """
    return read_as(READER, path, **options)


def _run(file: File) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The run, and its test cases in the order in which they ran."""
    document = file.json()
    run = document.get("testRunData", document) if isinstance(document, Mapping) else None
    if not isinstance(run, Mapping):
        raise ReadError(f"{file.name!r} is no test run of DeepEval; expected one object with test cases")
    cases = [case for name in _CASES for case in mappings(run.get(name))]
    ordered = all(isinstance(case.get("order"), int) for case in cases)
    return run, sorted(cases, key=lambda case: case["order"]) if ordered else cases


def _once(runs: Sequence[_Run], notes: list[Note]) -> list[_Run]:
    """Runs without the copies that DeepEval itself makes: it keeps the latest run wrapped, too.

    Raises
    ------
    DataError
        If two files of one form hold the same test cases, with the same durations.
    """
    kept: dict[str, _Run] = {}
    for run in runs:
        file, _, cases = run
        content = text_of(cases) or ""
        other = kept.setdefault(content, run)[0]
        if other is not file and ("testRunData" in file.keys) == ("testRunData" in other.keys):
            raise DataError(
                f"`path`: {other.name!r} and {file.name!r} hold the same test cases, down to how long each "
                "took; leave one of them out"
            )
        if other is not file:
            notes.append(
                Note("left_out", f"{file.name!r} left out: {other.name!r} holds the same run.", "caution")
            )
    return list(kept.values())


def _metrics(case: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for metric in mappings(_first(case, *_METRICS)):
        yield str(_first(metric, "name", "metric") or "metric"), metric


def _settings(run: Mapping[str, Any]) -> tuple[str | None, object]:
    """The model, and the other hyperparameters as the condition: one as it is, several together."""
    hyperparameters = mapping(_first(run, "hyperparameters", "configurations"))
    named = [key for key in hyperparameters if role_spelled(key) == "model"]
    others = {
        key: value
        for key, value in hyperparameters.items()
        if key not in named[:1] and value not in (None, "", {})
    }
    model = text_of(hyperparameters[named[0]]) if named else None
    condition = next(iter(others.values())) if len(others) == 1 else others or None
    return model, None if condition is None else shortened(text_of(condition) or "")


def _input(case: Mapping[str, Any]) -> object:
    return _first(case, "input", "scenario", "turns")


def _fields(case: Mapping[str, Any]) -> dict[str, object]:
    name = case.get("name")
    given = isinstance(name, str) and not _COUNTED.fullmatch(name)
    return {
        "metadata": _first(case, "metadata", "additionalMetadata", "additional_metadata") or {},
        **({"name": name} if given else {}),
    }


def _add(
    rows: Collector,
    file: File,
    case: Mapping[str, Any],
    label: str,
    metrics: Mapping[str, None],
    *,
    run: Mapping[str, Any],
    model: str | None,
    condition: object,
) -> None:
    found = list(_metrics(case))
    lost: Mapping[str, Any] = {"score": ABSENT}
    seen: Counter[str] = Counter()
    for name, metric in found or [(name, lost) for name in metrics]:
        seen[name] += 1
        rows.add(
            source=file.name,
            task=text_of(_first(run, "identifier", "testFile", "test_file")),
            model=model,
            condition=condition,
            scenario=label,
            scorer=name if seen[name] == 1 else f"{name} #{seen[name]}",
            value=metric.get("score"),
            error=metric.get("error"),
            null="unscored",
            response=_response(case),
            gold=_first(case, "expectedOutput", "expected_output", "expectedOutcome", "expected_outcome"),
            extra={
                **_fields(case),
                "evaluation_model": _first(metric, "evaluationModel", "evaluation_model"),
            },
        )


def _response(case: Mapping[str, Any]) -> object:
    turns = case.get("turns")
    if isinstance(turns, list):
        said = [turn.get("content") for turn in mappings(turns) if turn.get("role") == "assistant"]
        return said[-1] if said else None
    return _first(case, "actualOutput", "actual_output")


def _first(record: Mapping[str, Any], *names: str) -> Any:
    """The value under the first of the names that has one; versions spell them differently."""
    return next((record[name] for name in names if record.get(name) is not None), None)
