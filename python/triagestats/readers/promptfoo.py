"""promptfoo results: JSON of any version, and JSON lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Unpack

from triagestats.errors import DataError, ReadError
from triagestats.readers.bounded import File
from triagestats.readers.items import Items
from triagestats.readers.promptfoo_results import OVERALL, Answer, Evaluation, evaluation
from triagestats.readers.reading import ReadOptions, read_as
from triagestats.readers.recognise import Paths
from triagestats.readers.rows import Ask, Collector, Reader, Rows
from triagestats.readers.shapes import as_float
from triagestats.results import Note
from triagestats.roles import role_spelled
from triagestats.table import ResponseTable

__all__ = ["READER", "read_promptfoo"]

_HARNESS: Final = "promptfoo"
_RESULT: Final = {"vars", "provider", "success"}
_CSV: Final = {"Status", "Score", "Grader Reason"}
_OTHER: Final = re.compile(
    rb"\A\s*(evalId:|<promptfoo\b|<!doctype html.*?promptfoo)", re.DOTALL | re.IGNORECASE
)
_ADVICE: Final = (
    "scores in its csv are rounded to two decimals and columns repeat, and html, yaml and xml are for other "
    "uses: write the results with `promptfoo eval -o results.json` or `promptfoo export eval <id>`"
)
_HEAD: Final = 4096

_Column = tuple[str, int | None, str | None]
"""A file, a promptIdx and a model."""


def _recognises(file: File) -> bool:
    keys = set(file.keys)
    if file.kind == "jsonl":
        return keys >= _RESULT and bool(keys & {"promptIdx", "gradingResult", "namedScores"})
    if file.kind == "json":
        return "results" in keys and (
            "evalId" in keys
            or keys >= {"config", "shareableUrl"}
            or (keys >= {"version", "timestamp"} and b'"provider"' in file.head)
            or keys >= {"version", "stats"}
        )
    if file.kind == "csv":
        return set(file.columns) >= _CSV
    return file.kind == "other" and _OTHER.match(file.head[:_HEAD]) is not None


def _read(files: Sequence[File], ask: Ask) -> Rows:
    rows = Collector(ask)
    usable = [file for file in files if file.kind in ("json", "jsonl")]
    if others := [file.name for file in files if file not in usable]:
        if not usable:
            raise ReadError(f"`path`: {others[0]!r} is no JSON of promptfoo; {_ADVICE}")
        rows.notes.append(_left_out(others, _ADVICE))
    kept = _once([evaluation(file) for file in usable], rows.notes)
    answers = [(one, answer) for one in kept for answer in _in_order(one.answers)]
    items = Items(_HARNESS, ask.item, weak=("description",))
    for _, answer in answers:
        items.add(answer.vars, answer.fields)
    labels, notes = items.labels()
    rows.notes += notes
    models = _columns_apart([answer for _, answer in answers], rows.notes)
    scorers: dict[str, dict[str, object]] = defaultdict(dict)
    for (_, answer), label in zip(answers, labels, strict=True):
        scorers[label] |= dict.fromkeys(answer.scores)
    for (one, answer), label in zip(answers, labels, strict=True):
        lost = scorers[label] if answer.error is not None else {}
        model = models.get((answer.source, answer.column, answer.model), answer.model)
        _add(rows, answer, label, task=one.description, model=model, scores={**lost, **answer.scores})
    _note_cached(rows.notes, [answer for _, answer in answers])
    return rows.done()


READER: Final = Reader("promptfoo", _HARNESS, _recognises, _read)


def read_promptfoo(path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """Responses of `promptfoo eval -o results.json` (or .jsonl).

    Parameters
    ----------
    path
        A result file, a folder, or a list of them.
    item
        The field that names the item, such as `vars.case_id`, `metadata.case` or `description`. Default: a
        variable or metadata that is called so, else a description of its own, else all variables together.
    **options
        As in `read`: `metric`, `judge`, `task`, `model`, `cluster`, `stratum`, `runs`, `levels`,
        `higher_is_better`, `unparsed`, `max_bytes`.

    Returns
    -------
    ResponseTable
        The provider (its label) is the model, the label of the prompt the condition, the description of
        the configuration the task. Each named metric is a metric, an assertion without one where there are
        several takes the name of its type, and their weighted mean is `__overall__`. Columns `vars.*` and
        `metadata.*` serve as clusters.

    Raises
    ------
    ReadError
        If a file is damaged, or is the csv, html, yaml or xml of promptfoo.
    DataError
        If two files hold the same results.

    Notes
    -----
    `--repeat` leaves no number of the repetition, and `testIdx` runs on: repetitions are counted in the order
    of `testIdx` within item, provider and prompt. A result with `failureReason` 2 (or, in older files, an
    error without a grading) has score 0 in the file; here it has none and the status `error`, and so have
    metrics whose grader failed (`graderError`). Version 2 results name neither test nor metadata; both are
    taken from the table in the same file, by their variables.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import triagestats as ts
    >>> def result(case, score, test):
    ...     return {"testIdx": test, "promptIdx": 0, "provider": {"id": "acme:a", "label": "a"},
    ...             "prompt": {"label": "plain"}, "vars": {"case_id": case, "passage": "p1"},
    ...             "response": {"output": "urgent"}, "success": score == 1, "score": score,
    ...             "namedScores": {"correct": score}, "failureReason": 0 if score else 1}
    >>> results = {"version": 3, "results": [result("c1", 1, 0), result("c1", 0, 1), result("c2", 1, 2)]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "results.json")
    ...     _ = path.write_text(json.dumps({"evalId": "e", "results": results}))
    ...     table = ts.read_promptfoo(path, metric="correct", cluster="vars.passage")
    >>> table.frame.select("scenario", "model", "repetition", "score").rows()
    [('c1', 'a', '1', 1.0), ('c1', 'a', '2', 0.0), ('c2', 'a', '1', 1.0)]
    """
    return read_as(READER, path, **options)


def _once(evaluations: Sequence[Evaluation], notes: list[Note]) -> list[Evaluation]:
    """Evaluations of which no result is in another file too, unless as JSON and as JSON lines.

    Raises
    ------
    DataError
        If two files of one kind hold the same result.
    """
    left: list[str] = []
    owner: dict[str, File] = {}
    for one in sorted(evaluations, key=lambda one: one.file.kind):
        ids = [answer.own_id for answer in one.answers if answer.own_id is not None]
        other = next((owner[own] for own in ids if own in owner), None)
        if other is None:
            owner |= dict.fromkeys(ids, one.file)
        elif other.kind == one.file.kind:
            raise DataError(
                f"`path`: {other.name!r} and {one.file.name!r} hold the same results (their ids are equal); "
                "leave one of them out"
            )
        else:
            left.append(one.file.name)
            notes.append(_left_out([one.file.name], f"{other.name!r} holds the same results"))
    return [one for one in evaluations if one.file.name not in left]


def _left_out(names: Sequence[str], reason: str) -> Note:
    return Note("left_out", f"{', '.join(map(repr, names))} left out: {reason}.", "caution")


def _in_order(answers: Sequence[Answer]) -> list[Answer]:
    """Results in the order of tests and prompts; they are written as they are completed."""
    last = len(answers)
    return sorted(
        answers,
        key=lambda a: (last if a.test is None else a.test, last if a.column is None else a.column),
    )


def _columns_apart(answers: Sequence[Answer], notes: list[Note]) -> dict[_Column, str]:
    """Models by column, where several columns have one provider and prompt: these are not repetitions."""
    columns: dict[tuple[str, str | None, str | None], set[int]] = defaultdict(set)
    for answer in answers:
        if answer.column is not None:
            columns[answer.source, answer.model, answer.prompt].add(answer.column)
    names: dict[_Column, str] = {}
    for (source, model, _), indices in columns.items():
        if len(indices) > 1:
            names |= {(source, index, model): f"{model} [{index}]" for index in sorted(indices)}
    if names:
        message = (
            "Several columns have one provider and one prompt; their promptIdx keeps them apart, such as "
            f"{next(iter(names.values()))!r}. Labels in the configuration name them."
        )
        notes.append(Note("columns", message, "caution"))
    return names


def _add(
    rows: Collector,
    answer: Answer,
    label: str,
    *,
    task: str | None,
    model: str | None,
    scores: Mapping[str, object],
) -> None:
    gold = next((value for name, value in answer.vars.items() if role_spelled(name) == "gold"), None)
    for scorer, value in {**scores, OVERALL: answer.overall}.items():
        rows.add(
            source=answer.source,
            task=task,
            model=model,
            condition=answer.prompt,
            scenario=label,
            scorer=scorer,
            value=value if answer.error is not None else as_float(value),
            error=answer.error or answer.failed.get(scorer),
            null="unscored",
            response=answer.response,
            gold=gold,
            extra=answer.fields,
        )


def _note_cached(notes: list[Note], answers: Sequence[Answer]) -> None:
    if cached := sum(answer.cached for answer in answers):
        message = (
            f"{cached:,} of {len(answers):,} answers came from the cache of promptfoo; repetitions from the "
            "cache are copies, not new answers (run with `--no-cache`)."
        )
        notes.append(Note("cached", message, "caution"))
