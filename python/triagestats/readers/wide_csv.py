"""Tables with a column a model, a run or a judge, as tables with a row a score."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from triagestats.errors import ArgumentError, DataError, RoleError
from triagestats.labels import as_text, listed
from triagestats.readers.rows import scored
from triagestats.results import Note
from triagestats.roles import Assignment, RoleArgument, assign_roles
from triagestats.source import Source

__all__ = ["long_table", "readable_scores"]

_RUN: Final = re.compile(r"(?P<name>.+)@(?P<run>[1-9]\d*)")
_SCORES: Final = re.compile(
    r"(?:score|rating|grade)[_\s.:-]+(?P<judge>.+)|(?P<other>.+)[_\s.:-]+score", re.IGNORECASE
)
_LABELS: Final = re.compile(
    r"(?:pred|prediction|response|answer|label)[_\s.:-]+(?P<condition>.+)", re.IGNORECASE
)
_COMMA: Final = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True, slots=True)
class _Wide:
    """Columns that hold one score, or one label, of each item.

    Attributes
    ----------
    columns
        Column to what it stands for: the name of the model, judge or condition.
    role
        The role of these names.
    value
        `score`, or `response` where the cells are labels.
    """

    columns: Mapping[str, str]
    role: str
    value: str


def long_table(came: Source, given: Mapping[str, RoleArgument]) -> tuple[Source, dict[str, RoleArgument]]:
    """A wide table as a long one, and what the caller said of its roles; a long table as it is.

    A table is wide where the caller names several columns for one of `model` and `judge`, or where it has
    neither a score nor a response beside a gold label, and columns without a role that hold scores (or
    labels of the gold column) only.

    Raises
    ------
    RoleError
        If a named column is absent.
    """
    roles = dict(given)
    wide = _named(came.frame, roles) or _found(came, roles)
    if wide is None:
        return came, roles
    runs = _runs(wide.columns)
    others = [name for name in came.frame.columns if name not in wide.columns]
    taken = [name for name in (wide.role, wide.value, "repetition") if name in others]
    if taken:
        raise DataError(
            f"`data` has a column for each {wide.role}, and a column {taken[0]!r} besides; rename that column"
        )
    text = came.frame.with_columns(as_text(came.frame[name], wide.value).alias(name) for name in wide.columns)
    melted = text.unpivot(list(wide.columns), index=others, variable_name="_column", value_name=wide.value)
    names = {column: runs[column][0] for column in wide.columns}
    long = melted.with_columns(
        pl.col("_column").replace_strict(names, return_dtype=pl.String).alias(wide.role),
        *(
            [
                pl.col("_column")
                .replace_strict({column: run for column, (_, run) in runs.items()}, return_dtype=pl.Int64)
                .alias("repetition")
            ]
            if any(run > 1 for _, run in runs.values())
            else []
        ),
    ).drop("_column")
    roles |= {wide.role: wide.role, wide.value: wide.value}
    note = Note(
        "wide",
        f"Each of the columns {listed(list(wide.columns))} is read as one {wide.role}"
        + (", and `@2` as its second run." if "repetition" in long.columns else "."),
    )
    return replace(came, frame=long, notes=(*came.notes, note)), roles


def _named(frame: pl.DataFrame, roles: dict[str, RoleArgument]) -> _Wide | None:
    """Columns that the caller lists for one role."""
    for role in ("model", "judge"):
        value = roles.get(role)
        if isinstance(value, Sequence) and not isinstance(value, str):
            names = [str(name) for name in value]
            absent = [name for name in names if name not in frame.columns]
            if absent:
                raise RoleError(
                    f"`{role}` names {', '.join(map(repr, absent))}, which the table does not have; choose "
                    f"from its columns {listed(frame.columns)}"
                )
            if not names:
                raise ArgumentError(f"`{role}` is an empty list; name the columns that hold its scores")
            del roles[role]
            return _Wide({name: _stem(name) if role == "judge" else name for name in names}, role, "score")
    return None


def _stem(name: str) -> str:
    found = _SCORES.fullmatch(name)
    return (found["judge"] or found["other"]) if found else name


def _found(came: Source, roles: Mapping[str, RoleArgument]) -> _Wide | None:
    """Wide columns told from their names and cells, where the table could not be scored without them."""
    frame = came.frame
    assigned = assign_roles(frame.columns, roles)
    if "score" in assigned or ("response" in assigned and "gold" in assigned) or "scenario" not in assigned:
        return None
    free = [name for name in frame.columns if name not in assigned.used]
    scores = [name for name in free if _holds_scores(frame[name], decimal_comma=came.decimal_comma)]
    named = {name: _stem(name) for name in scores if _SCORES.fullmatch(name)}
    if named and "judge" not in assigned:
        return _Wide(named, "judge", "score")
    if scores and "model" not in assigned:
        return _Wide({name: name for name in scores}, "model", "score")
    return _of_labels(frame, free, assigned)


def _of_labels(frame: pl.DataFrame, free: Sequence[str], assigned: Assignment) -> _Wide | None:
    """Columns whose cells are gold labels: `pred_<condition>`, else one a model."""
    gold = assigned.one("gold")
    if gold is None:
        return None
    right = set(as_text(frame[gold], "gold").drop_nulls())
    labels = [name for name in free if _holds(frame[name], right)]
    named = {name: found["condition"] for name in labels if (found := _LABELS.fullmatch(name))}
    if named and "condition" not in assigned:
        return _Wide(named, "condition", "response")
    if labels and "model" not in assigned:
        return _Wide({name: name for name in labels}, "model", "response")
    return None


def _runs(columns: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """The name and the run of each column; `@2` is a run where the same name has other columns."""
    parts = {column: _RUN.fullmatch(name) for column, name in columns.items()}
    bases = [part["name"] for part in parts.values() if part] + list(columns.values())
    return {
        column: (part["name"], int(part["run"]))
        if (part := parts[column]) and bases.count(part["name"]) > 1
        else (name, 1)
        for column, name in columns.items()
    }


def _holds_scores(series: pl.Series, *, decimal_comma: bool) -> bool:
    """Whether all cells are scores from 0 to 1, words for them, or blank, and not all blank."""
    if series.dtype.is_nested() or series.dtype == pl.Object:
        return False
    cells = [_score(cell, decimal_comma=decimal_comma) for cell in series.unique().to_list()]
    scores = [score for status, score in cells if status == "ok" and score is not None]
    readable = all(status in ("ok", "missing", "unscored") for status, _ in cells)
    return readable and bool(scores) and min(scores) >= 0 and max(scores) <= 1


def _score(cell: object, *, decimal_comma: bool) -> tuple[str, float | None]:
    if decimal_comma and isinstance(cell, str) and _COMMA.fullmatch(cell.strip()):
        cell = cell.replace(",", ".")
    found = scored(cell)
    return found.status, found.score


def _holds(series: pl.Series, labels: set[str]) -> bool:
    """Whether some cells are gold labels, and more than half of those that are filled in."""
    if series.dtype.is_nested() or series.dtype == pl.Object:
        return False
    cells = as_text(series, "response").drop_nulls()
    return 2 * int(cells.is_in(list(labels)).sum()) > len(cells) if len(cells) else False


def readable_scores(frame: pl.DataFrame, column: str) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Letters (C, I, P, N) and words (PASS) of a score column as numbers, if nothing else is odd there."""
    raw = frame[column]
    if raw.dtype != pl.String:
        return frame, ()
    cells = raw.drop_nulls().unique().to_list()
    found = {cell: scored(cell) for cell in cells}
    numbers = {cell: str(one.score) for cell, one in found.items() if one.status == "ok" and not _plain(cell)}
    if not numbers or any(one.status == "non_scalar" for one in found.values()):
        return frame, ()
    read = ", ".join(f"{cell!r} as {number}" for cell, number in sorted(numbers.items()))
    changed = frame.with_columns(pl.col(column).replace(numbers))
    return changed, (Note("score_words", f"`{column}` is read as numbers: {read}."),)


def _plain(cell: str) -> bool:
    """Whether a table is scored by such a cell without help."""
    return cell.strip().lower() in ("true", "false", "yes", "no") or cell.strip()[:1] in "+-.0123456789"
