"""The rows that every reader gives: one scorer's value for one answer, with where it came from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import polars as pl

from triagestats.readers.bounded import DEFAULT_LIMIT, File
from triagestats.results import Note

__all__ = ["ABSENT", "Ask", "Collector", "Reader", "Rows", "Scored", "scored", "text_of"]

ABSENT: Final = object()
"""The value of a scorer that left no entry for an answer."""

_LETTERS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "correct"), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failed", "incorrect"), 0.0),
}
_BLANK: Final = ("", "na", "n/a", "null", "none", "missing")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_LONGEST: Final = 200
_CHUNK: Final = 20_000

_SCHEMA: Final[dict[str, Any]] = {
    "scenario": pl.String,
    "task": pl.String,
    "model": pl.String,
    "condition": pl.String,
    "variant": pl.String,
    "repetition": pl.String,
    "scorer": pl.String,
    "measure": pl.String,
    "score": pl.Float64,
    "score_raw": pl.String,
    "status": pl.String,
    "reason": pl.String,
    "unread": pl.Boolean,
    "response": pl.String,
    "gold": pl.String,
    "source": pl.String,
}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a reader must know of what the caller asked.

    Attributes
    ----------
    keys
        Dotted names of metadata that are wanted as clusters or strata: carried whatever their length.
    model
        What the model is called where a file does not say.
    item
        The field that names the items, in formats that leave that to the user.
    metric
        The metric to keep; a reader that leaves bookkeeping out must know what is wanted of it.
    max_bytes
        Bytes that a JSON document, a line or a member of an archive may have.
    """

    keys: tuple[str, ...] = ()
    model: str | None = None
    item: str | None = None
    metric: str | None = None
    max_bytes: int = DEFAULT_LIMIT

    def wants(self, name: str) -> bool:
        """Whether a dotted name, or its last part, is one of `keys`."""
        return any(name == key or name.endswith("." + key.removeprefix("metadata.")) for key in self.keys)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one format under the names that all formats share.

    Attributes
    ----------
    frame
        The columns of `_SCHEMA`, then metadata under dotted names such as `metadata.passage_id`.
        `scenario` is the item within its task. `repetition` is null where the files number no epochs: it is
        then counted in order of occurrence. `scorer` and `measure` make the metric (`scorer/measure`), or
        `scorer` the judge where the caller names it as one. `unread` marks an answer that could not be read
        and was scored as wrong: its score stays, its status is `ok`, and `reason` says so.
    notes
        What a user must know of these files, such as what they do not hold.
    lower
        Metrics (`scorer/measure` labels) of which the files say that a smaller value is better.
    run_ids
        What each file says of the run that wrote it, by `source`, in formats that number no epochs: two files
        of one model, task and run claim the same answers, and two of different runs are repetitions.
    """

    frame: pl.DataFrame
    notes: tuple[Note, ...] = ()
    lower: frozenset[str] = frozenset()
    run_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reader:
    """A format: which files are its own, and their rows.

    Attributes
    ----------
    name
        What `format=` calls it.
    harness
        What it is called in messages.
    recognises
        Whether a file holds rows of the format, told from `file.kind`, `file.keys`, `file.columns` and its
        head, never from the name alone. Companions that hold no rows of their own (results, run
        specifications) are not recognised; `read` finds them with `file.beside`.
    read
        The rows of files of the format, in the order in which runs should be counted.
    companion
        What to say of a file that belongs to the format and holds no rows, such as a table of averages, where
        nothing else is found; None of any other file.
    """

    name: str
    harness: str
    recognises: Callable[[File], bool]
    read: Callable[[Sequence[File], Ask], Rows]
    companion: Callable[[File], str | None] = field(default=lambda _: None)


@dataclass(frozen=True, slots=True)
class Scored:
    """A value of a scorer as a score, with the value in words."""

    score: float | None
    status: Literal["ok", "unscored", "missing", "absent", "non_scalar"]
    raw: str | None
    reason: str | None = None


def scored(value: object, *, null: Literal["missing", "unscored"] = "missing") -> Scored:
    """A value as a score: C/I/P/N and words of yes and no as numbers, NaN as unscored.

    Parameters
    ----------
    value
        A number, a boolean, text, None, `ABSENT`, or a list or mapping, which is no score.
    null
        The status of None.
    """
    if value is ABSENT:
        return Scored(None, "absent", None)
    if value is None:
        return Scored(None, null, None)
    if isinstance(value, bool):
        return Scored(float(value), "ok", str(value).lower())
    if isinstance(value, int | float):
        return _of_number(value)
    if isinstance(value, str):
        return _of_text(value)
    return Scored(None, "non_scalar", text_of(value))


def _of_number(value: float) -> Scored:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    raw = "NaN" if math.isnan(number) else str(value)
    if math.isfinite(number):
        return Scored(number, "ok", raw)
    return Scored(None, "unscored", raw, None if math.isnan(number) else "not a finite number")


def _of_text(text: str) -> Scored:
    raw = text_of(text)
    word = text.strip()
    if word in _LETTERS:
        return Scored(_LETTERS[word], "ok", raw)
    if (lower := word.lower()) in _WORDS:
        return Scored(_WORDS[lower], "ok", raw)
    if lower in _BLANK:
        return Scored(None, "missing", raw or None)
    if lower == "nan":
        return Scored(None, "unscored", raw)
    if _NUMBER.fullmatch(word):
        return Scored(float(word), "ok", raw) if math.isfinite(float(word)) else _of_number(math.inf)
    return Scored(None, "non_scalar", raw)


def text_of(value: object) -> str | None:
    """A value as text: lists and mappings as JSON, whole floats as they stand, None as null."""
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return value.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text


@dataclass(slots=True)
class Collector:
    """Gathers rows one by one into compact chunks.

    Examples
    --------
    >>> from triagestats.readers.rows import Ask, Collector
    >>> rows = Collector(Ask())
    >>> rows.add(source="a.json", scenario=1, scorer="match", value="C", response="4", gold=["4", "four"])
    >>> rows.add(source="a.json", scenario=2, scorer="match", error="timeout")
    >>> rows.done().frame.select("scenario", "score", "status", "reason", "gold").rows()
    [('1', 1.0, 'ok', None, '["4", "four"]'), ('2', None, 'error', 'timeout', None)]
    """

    ask: Ask
    notes: list[Note] = field(default_factory=list)
    lower: set[str] = field(default_factory=set)
    run_ids: dict[str, str] = field(default_factory=dict)
    _columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _SCHEMA})
    _extra: dict[str, list[Any]] = field(default_factory=dict)
    _long: set[str] = field(default_factory=set)
    _chunks: list[pl.DataFrame] = field(default_factory=list)

    def add(
        self,
        *,
        source: str,
        scenario: object,
        task: str | None = None,
        model: str | None = None,
        condition: object = None,
        variant: object = None,
        repetition: int | None = None,
        scorer: str | None = None,
        measure: str | None = None,
        value: object = None,
        error: object = None,
        status: str | None = None,
        reason: object = None,
        unread: bool = False,
        null: Literal["missing", "unscored"] = "missing",
        response: object = None,
        gold: object = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """One scorer's value for one answer.

        Parameters
        ----------
        source
            `file.name`.
        scenario, task, model, condition, variant, repetition, scorer, measure
            As in `Rows`; ids may be text or numbers, a condition a mapping of arguments.
        value
            What the scorer gave, as `scored` takes it.
        error
            What failed, where the answer or its judge did: the row then has no score, whatever `value` is.
        status, reason
            Where the reader knows better than `scored`. A status other than `ok` and `suspect` has no score.
        unread
            Whether the answer could not be read and was scored as wrong; `reason` says why.
        null
            The status of a value None.
        response, gold
            The label given, and the right one or a list of right ones.
        extra
            Metadata by name, nested mappings too: `{"metadata": {"passage_id": "p1"}}`.
        """
        found = scored(value, null=null)
        if error is not None:
            found = Scored(None, found.status, found.raw)
            status, reason = "error", error
        state = status or found.status
        row = {
            "scenario": text_of(scenario),
            "task": text_of(task),
            "model": text_of(model) if model is not None else self.ask.model,
            "condition": text_of(condition),
            "variant": text_of(variant),
            "repetition": None if repetition is None else str(repetition),
            "scorer": text_of(scorer),
            "measure": text_of(measure),
            "score": found.score if state in ("ok", "suspect") else None,
            "score_raw": found.raw,
            "status": state,
            "reason": text_of(reason) if reason is not None else found.reason,
            "unread": unread,
            "response": text_of(response),
            "gold": text_of(gold),
            "source": source,
        }
        for name, cell in row.items():
            self._columns[name].append(cell)
        self._carry(extra or {})
        if len(self._columns["source"]) >= _CHUNK:
            self._flush()

    def _carry(self, extra: Mapping[str, object]) -> None:
        position = len(self._columns["source"]) - 1
        for name, value in _flat(extra, self.ask):
            if name in self._long:
                continue
            text = text_of(value)
            if text is not None and len(text) > _LONGEST and not self.ask.wants(name):
                self._long.add(name)
                continue
            column = self._extra.setdefault(name, [])
            column += [None] * (position - len(column))
            column.append(text)

    def _flush(self) -> None:
        height = len(self._columns["source"])
        extra = {
            name: pl.Series(name, [*values, *[None] * (height - len(values))], dtype=pl.String)
            for name, values in self._extra.items()
        }
        chunk = pl.DataFrame(self._columns, schema=_SCHEMA)
        self._chunks.append(chunk.with_columns(extra.values()))
        self._columns = {name: [] for name in _SCHEMA}
        self._extra = {}

    def done(self) -> Rows:
        """The rows; metadata that are long text are left out, unless they were asked for."""
        self._flush()
        frame = pl.concat(self._chunks, how="diagonal")
        return Rows(
            frame.drop([name for name in self._long if name in frame.columns]),
            tuple(self.notes),
            frozenset(self.lower),
            dict(self.run_ids),
        )


def _flat(value: Mapping[str, object], ask: Ask, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Leaves of nested mappings under dotted names; lists only where they were asked for."""
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            yield from _flat(item, ask, f"{name}.")
        elif not isinstance(item, list | tuple) or ask.wants(name):
            yield name, item
