"""Columns of ratings, one a rater, and tables of counts: from matrices, tables, and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import polars as pl

from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.counts import count_table
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError, TriagestatsError
from triagestats.ingest import to_polars
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import complete_codes, series_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

__all__ = [
    "Columns",
    "Counted",
    "could_be_counts",
    "held_by",
    "holds_confusion",
    "is_matrix",
    "judges_of",
    "of_judges",
    "of_two",
    "rated_columns",
    "reading_note",
    "said_to_hold",
    "square_table",
]

Counted = Literal["confusion", "units"]
"""What counts are of: a table of two raters, or the categories of each unit."""

_CELL: Final = "rater_"


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One column of labels a rater."""

    columns: tuple[pl.Series, ...]
    categories: object
    shared: Shared | None
    notes: tuple[Note, ...] = ()

    @property
    def raters(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def is_matrix(values: object) -> bool:
    """Whether values have rows and columns."""
    if isinstance(values, np.ndarray):
        return values.ndim == 2
    if hasattr(values, "columns"):
        return True
    return isinstance(values, Sequence) and bool(len(values)) and _is_row(values[0])


def _is_row(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def rated_columns(
    ratings: object,
    data: object,
    categories: object,
    clusters: object,
    what: str,
    argument: str = "ratings",
) -> Columns:
    """One column a rater, whatever holds them; `argument` is the name of `ratings` in messages."""
    if isinstance(ratings, ResponseTable) and data is None:
        ratings, data = None, ratings
    if isinstance(data, ResponseTable):
        return of_judges(data, judges_of(data, ratings), categories, clusters, what)
    frame = frame_of(data)
    if frame is not None:
        names = _names(ratings, argument)
        columns = [series_of(column_of(frame, name, argument), name) for name in names]
    else:
        columns = _columns(ratings, argument)
    if len(columns) < 2:
        raise ArgumentError(
            f"`{argument}` must have one column a rater, and two at least; got {len(columns)}. Rows are units"
        )
    if not len(columns[0]):
        raise ArgumentError(f"`{argument}` holds no unit")
    return Columns(tuple(columns), categories, shared_rows(frame, clusters, len(columns[0])))


def of_two(a: object, b: object, data: object, categories: object, clusters: object) -> Columns:
    """The labels of two raters, given one by one."""
    frame = frame_of(data)
    sides = (a, b) if isinstance(a, str) and isinstance(b, str) else ("a", "b")
    first, second = (
        series_of(column_of(frame, value, argument), argument).alias(side)
        for value, argument, side in zip((a, b), ("a", "b"), sides, strict=True)
    )
    if len(first) != len(second):
        raise ArgumentError(f"`a` and `b` must pair: they have {len(first):,} and {len(second):,} labels")
    if not len(first):
        raise ArgumentError("`a` and `b` are empty: there is no unit")
    return Columns((first, second), categories, shared_rows(frame, clusters, len(first)))


def _columns(ratings: object, argument: str) -> list[pl.Series]:
    """The columns of a matrix or a table."""
    if isinstance(ratings, Mapping) or hasattr(ratings, "columns"):
        return to_polars(ratings, argument, index_columns=False).frame.get_columns()
    return _transposed(ratings, argument)


def _names(given: object, argument: str) -> list[Any]:
    if (
        isinstance(given, str | bytes)
        or not isinstance(given, Sequence)
        or not all(isinstance(name, str) for name in given)
    ):
        raise ArgumentTypeError(
            f"`{argument}` must be a list of the columns of `data`, one a rater; got {given!r}"
        )
    if len(set(given)) < len(given):
        raise ArgumentError(f"`{argument}` names a rater twice: {list(given)}")
    return list(given)


def _transposed(ratings: object, argument: str) -> list[pl.Series]:
    """The columns of a matrix given by rows."""
    if isinstance(ratings, np.ndarray) and ratings.ndim == 2:
        return [series_of(column, f"rater {place + 1}") for place, column in enumerate(ratings.T)]
    if isinstance(ratings, Sequence | np.ndarray) and not isinstance(ratings, str) and not len(ratings):
        raise ArgumentError(f"`{argument}` holds no unit")
    if not isinstance(ratings, Sequence) or not all(map(_is_row, ratings)):
        raise ArgumentTypeError(
            f"`{argument}` must be a matrix with one row a unit and one column a rater, or a table; got "
            + (f"shape {ratings.shape}" if isinstance(ratings, np.ndarray) else type(ratings).__name__)
        )
    lengths = {len(row) for row in ratings}
    if len(lengths) > 1:
        raise ArgumentError(
            f"`{argument}` must have as many ratings in every row, None where one is missing; got rows of "
            f"{min(lengths)} and of {max(lengths)}"
        )
    return [
        series_of(list(column), f"rater {place + 1}")
        for place, column in enumerate(zip(*ratings, strict=True))
    ]


def said_to_hold(counts: object, meaning: Counted) -> Counted | Literal["ratings"] | None:
    """What `counts` says that a matrix holds; None where it says nothing.

    Parameters
    ----------
    counts
        As the caller gave it.
    meaning
        What True stands for in this function.

    Raises
    ------
    ArgumentError
        If it is none of the words.
    """
    if counts is None:
        return None
    if isinstance(counts, bool | np.bool_):
        return meaning if counts else "ratings"
    for word in get_args(Counted):
        if counts == word:
            found: Counted = word
            return found
    raise ArgumentError(
        "`counts` must be 'confusion' (a square table of two raters), 'units' (one row a unit, one column a "
        f"category), or True for {meaning!r}, False for ratings; got {counts!r}"
    )


def held_by(a: object, b: object, data: object, counts: object) -> Counted | Literal["ratings"] | None:
    """What a table of counts, or a matrix of two raters, is said to hold."""
    held = said_to_hold(counts, "confusion")
    if held in ("confusion", "units") and (b is not None or data is not None or isinstance(a, ResponseTable)):
        raise ArgumentError(
            f"`counts={counts!r}` takes a "
            + ("square table" if held == "confusion" else "matrix")
            + " of counts as `a`, without `b` and `data`"
        )
    return held


def holds_confusion(a: object, b: object, data: object, counts: object) -> bool:
    """Whether `a` is a square table of counts, said to be one, or else one by its looks."""
    held = held_by(a, b, data, counts)
    if held is None:
        return b is None and data is None and could_be_counts(a)
    return held == "confusion"


def could_be_counts(values: object) -> bool:
    """Whether a matrix could be a square table of counts: numbers, whole, from 0, not all 0."""
    if not is_matrix(values):
        return False
    try:
        columns = _columns(values, "ratings")
    except TriagestatsError:
        return False
    if len(columns) < 2 or len(columns[0]) != len(columns):
        return False
    if not all(column.dtype.is_numeric() and not column.null_count() for column in columns):
        return False
    matrix = np.stack([column.cast(pl.Float64).to_numpy() for column in columns])
    return bool(((matrix >= 0) & (matrix == np.floor(matrix)) & (matrix < np.inf)).all() and matrix.any())


def square_table(
    table: object, data: object, categories: object, clusters: object, argument: str
) -> tuple[Codes, object]:
    """A square table of counts of two raters, and its categories: those given, else those that a frame names.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is none, has clusters, or is a frame with other names for its rows than for its columns.
    """
    if data is not None:
        raise ArgumentTypeError("`b` is needed: the column of `data` that holds the second rater's labels")
    if not is_matrix(table):
        needed = "`b` is needed: the labels of the second rater; " if argument == "a" else ""
        alone = "`a` alone" if argument == "a" else f"`{argument}`"
        raise ArgumentTypeError(f"{needed}{alone} must be a square table of counts")
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a table of counts, which does not say which unit is whose; give "
            "the labels of both raters"
        )
    index: Any = getattr(table, "index", None)
    if index is not None and hasattr(table, "columns") and type(index).__name__ != "RangeIndex":
        frame: Any = table
        rows, columns = ([str(label_of(name)) for name in names] for names in (index, frame.columns))
        if rows != columns:
            raise ArgumentError(
                f"`{argument}` has the rows {listed(rows)} and the columns {listed(columns)}; a table of two "
                "raters has the same categories in both, in one order, unused ones with counts of 0"
            )
        table, categories = frame.to_numpy(), rows if categories is None else categories
    return count_table(table, argument, square=True), categories


def reading_note(argument: str, shape: tuple[int, ...], what: str, said: str, others: str) -> Note:
    """A note on how a square matrix of whole numbers was read, and how to say so or otherwise."""
    size = " x ".join(map(str, shape))
    return Note("reading", f"`{argument}`, {size}, is read as {what}; {said} says so, {others}.")


def judges_of(table: ResponseTable, wanted: object) -> list[str]:
    """The judges asked for, all of the table where none are.

    Raises
    ------
    ArgumentError, DesignError
        If the table has none, or not those.
    """
    present = table.judges
    if len(present) < 2:
        raise DesignError(
            f"agreement is between judges, and the table has {len(present)}; name the column of judges with "
            "`judge=`, or join judgments with `table.with_judgments(...)`"
        )
    if wanted is None:
        return list(present)
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise ArgumentTypeError(f"the judges must be a list of names; got {wanted!r}")
    for judge in wanted:
        if judge not in present:
            raise ArgumentError(f"there is no judge {judge!r}; the table has {listed(present)}")
    if len(wanted) < 2 or len(set(wanted)) < len(wanted):
        raise ArgumentError(f"agreement is between different judges; got {list(wanted)}")
    return list(wanted)


def of_judges(
    table: ResponseTable, judges: list[str], categories: object, clusters: object, what: str
) -> Columns:
    """One column a judge, one row a response; the clusters are those of the table."""
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
            "`table.with_cluster(...)`"
        )
    frame = table.frame
    names = table.roles.columns.get("cluster", ())
    if len(names) > 1:
        raise DesignError(
            "agreement takes one cluster column, and the table has two that cross; choose one with "
            "`table.with_cluster(...)`"
        )
    cluster = "cluster_1" if names else "scenario"
    label = what if what in frame.columns and frame[what].count() else "score"
    key = [role for role in KEY_ROLES if role in frame.columns and role != "judge"]
    judge = pl.col("judge")
    units = (
        frame.filter(judge.is_in(judges))
        .group_by(key, maintain_order=True)
        .agg(
            *(
                pl.col(label).filter(judge == name).first().alias(f"{_CELL}{j}")
                for j, name in enumerate(judges)
            ),
            pl.col(cluster).first().alias("_cluster"),
            pl.col(cluster).n_unique().alias("_clusters"),
        )
    )
    if (units["_clusters"] > 1).any():
        raise DesignError(
            f"`cluster` is {names[0]!r}, which splits the judgments of one response; choose one that holds "
            "whole responses with `table.with_cluster(...)`"
        )
    notes = list(table.notes)
    if label != what:
        notes.append(Note("labels", "The table has no labels: the scores are compared."))
    if categories is None and label == "response":
        categories = table.levels
    codes = complete_codes(units["_cluster"], "cluster", units.height)
    return Columns(
        columns=tuple(units[f"{_CELL}{j}"].alias(name) for j, name in enumerate(judges)),
        categories=categories,
        shared=Shared(codes, names[0] if names else table.roles.one("scenario") or "scenario", asked=True),
        notes=tuple(notes),
    )
