"""Ratings of units: by two raters in categories, by several in categories, or by several in numbers.

Rows are units (responses, items), columns are raters; everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.agreement.scale import Scale, codes_on, disjoint, plain_scale, scale_of
from triagestats.agreement.sources import (
    Columns,
    could_be_counts,
    held_by,
    is_matrix,
    judges_of,
    of_judges,
    of_two,
    rated_columns,
    reading_note,
    said_to_hold,
    square_table,
)
from triagestats.arguments import valid_choice
from triagestats.columns import Shared, shared_rows
from triagestats.counts import whole_counts
from triagestats.errors import ArgumentError, DataError
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.table import ResponseTable
from triagestats.vectors import Missing, drop_missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]
    Counts = NDArray[np.int64]

__all__ = [
    "RatedPairs",
    "RatedUnits",
    "Scores",
    "read_rated_pairs",
    "read_rated_units",
    "read_scores",
]

_MOST: Final = 50_000_000
"""Numbers of units times categories that are counted."""
_AS_CONFUSION: Final = "counts='confusion' reads counts of two raters"
_AS_UNITS: Final = "counts='units' counts of units by category"


@dataclass(frozen=True, slots=True, eq=False)
class RatedPairs:
    """Units that two raters put into categories.

    Attributes
    ----------
    counts
        Units by category of the first rater (rows) and of the second (columns), shape (k, k).
    codes
        Categories of each unit by both raters, shape (n, 2); None where only the counts are known.
    scale, raters
        The categories, and what the raters are called.
    shared
        The clusters of the units, None where nothing says that units share any.
    n_missing
        Units that were left out.
    notes
        Choices made while reading.
    """

    counts: Counts
    codes: Codes | None
    scale: Scale
    raters: tuple[str, str]
    shared: Shared | None = None
    n_missing: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def n(self) -> int:
        """Number of units."""
        return int(self.counts.sum())

    def totals(self) -> Counts:
        """Counts of the k * k pairs of categories by cluster, or by unit without clusters, (G, k * k)."""
        cells = self.scale.size**2
        if self.codes is None:
            return np.repeat(np.eye(cells, dtype=np.int64), self.counts.reshape(-1), axis=0)
        cell = self.codes[:, 0] * self.scale.size + self.codes[:, 1]
        group = _groups(self.shared, len(cell))
        size = int(group.max()) + 1
        return np.bincount(group * cells + cell, minlength=size * cells).reshape(size, cells)


@dataclass(frozen=True, slots=True, eq=False)
class RatedUnits:
    """Units that several raters put into categories.

    Attributes
    ----------
    counts
        Ratings of each unit in each category, shape (n, k).
    scale, raters
        The categories, and what the raters are called; none where only the counts are known.
    shared
        The clusters of the units, None where nothing says that units share any.
    n_empty
        Units without any rating, which are left out.
    notes
        Choices made while reading.
    n_gaps
        Ratings that are missing; 0 where only the counts are known.
    """

    counts: Counts
    scale: Scale
    raters: tuple[str, ...]
    shared: Shared | None = None
    n_empty: int = 0
    notes: tuple[Note, ...] = ()
    n_gaps: int = 0

    @property
    def n_ratings(self) -> Counts:
        """Ratings of each unit, shape (n,)."""
        ratings: Counts = self.counts.sum(axis=1)
        return ratings

    def of(self, kept: NDArray[np.bool_]) -> RatedUnits:
        """Some of the units."""
        shared = None if self.shared is None else self.shared.of(kept)
        return replace(self, counts=self.counts[kept], shared=shared)

    def totals(self, rows: Array) -> Array:
        """Sums of rows (n, K), one a unit, by cluster, or the rows themselves without clusters."""
        return _summed(rows, self.shared)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Numbers that raters gave to units: `values` has shape (n, m), without gaps."""

    values: Array
    raters: tuple[str, ...]
    shared: Shared | None = None
    n_missing: int = 0
    notes: tuple[Note, ...] = ()

    def totals(self, rows: Array) -> Array:
        """Sums of rows (n, K), one a unit, by cluster, or the rows themselves without clusters."""
        return _summed(rows, self.shared)


def read_rated_pairs(
    a: object,
    b: object = None,
    *,
    data: object = None,
    counts: object = None,
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
) -> RatedPairs:
    """Ratings by two raters.

    Parameters
    ----------
    a, b
        Labels, one a unit; or names of columns of `data`; or two judges where `data` is a ResponseTable (none
        needed where it has two). `a` alone may be a matrix, or the ResponseTable.
    data
        A table of any make, or a ResponseTable.
    counts
        What `a` alone holds: `confusion` or True a square table of counts, as by default, with a note; False
        ratings, one column a rater.
    categories
        All categories in their order; by default those of an Enum or the `levels` of a ResponseTable, else
        the labels that occur.
    clusters
        One label a unit, or the name of a column of `data`.
    missing
        Whether units with a missing label are refused or left out, with a note.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as two ratings of each unit.
    """
    valid_choice("missing", missing, Missing)
    held = held_by(a, b, data, counts)
    if held == "units":
        raise ArgumentError(
            "`counts='units'` does not say which rater chose what, and this measure needs it; fleiss_kappa, "
            "gwet_ac1, krippendorff_alpha and percent_agreement take counts of units"
        )
    if isinstance(a, ResponseTable) and data is None:
        a, data = None, a
    if isinstance(data, ResponseTable):
        judges = judges_of(data, None if a is None and b is None else [a, b])
        if len(judges) > 2:
            raise ArgumentError(
                f"`a` and `b` must name two of the judges {listed(judges)}; functions that take `ratings` "
                "compare all"
            )
        found = of_judges(data, judges, categories, clusters, "response")
    elif b is None and held == "ratings" and is_matrix(a):
        found = rated_columns(a, None, categories, clusters, "response", "a")
        if len(found.columns) > 2:
            raise ArgumentError(
                f"`a` must have two columns, one a rater; got {len(found.columns)}. Functions that take "
                "`ratings` compare all"
            )
    elif b is None:
        return _of_table(a, data, categories, clusters, "a", noted=held is None)
    else:
        found = of_two(a, b, data, categories, clusters)
    scale, codes, notes = _coded(found, tuple(column.name for column in found.columns))
    kept, left_out = drop_missing([np.where(codes < 0, np.nan, codes)], list(found.raters), missing)
    codes = codes[kept]
    cell = codes[:, 0] * scale.size + codes[:, 1]
    return RatedPairs(
        counts=np.bincount(cell, minlength=scale.size**2).reshape(scale.size, scale.size),
        codes=codes,
        scale=scale,
        raters=(found.raters[0], found.raters[1]),
        shared=None if found.shared is None else found.shared.of(kept),
        n_missing=int((~kept).sum()),
        notes=(*found.notes, *notes, *left_out),
    )


def read_rated_units(
    ratings: object,
    *,
    data: object = None,
    categories: object = None,
    clusters: object = None,
    counts: object = None,
    argument: str = "ratings",
) -> RatedUnits:
    """Ratings by any number of raters, some of them perhaps missing.

    Parameters
    ----------
    ratings
        Labels, one row a unit and one column a rater: rows, an array, or a table; or names of columns of
        `data`; or judges where `data` is a ResponseTable (all where None), or the ResponseTable.
    data, categories, clusters
        As in `read_rated_pairs`.
    counts
        What a matrix holds: `units` or True counts, one row a unit and one column a category; `confusion` a
        square table of counts of two raters; False ratings, as by default, which a square matrix of whole
        numbers notes.
    argument
        The name of `ratings` in messages.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as ratings.
    """
    held = said_to_hold(counts, "units")
    if held in ("units", "confusion") and (data is not None or isinstance(ratings, ResponseTable)):
        raise ArgumentError(f"`counts={counts!r}` takes a matrix of counts, without `data`")
    if held == "confusion":
        return _units_of(_of_table(ratings, None, categories, clusters, argument, noted=False))
    if held == "units":
        table = whole_counts(numbers_of(ratings, argument, dimensions=(2,)), argument)
        notes: tuple[Note, ...] = ()
        if counts is not held and table.shape[0] == table.shape[1]:
            what = "counts, units in rows and categories in columns"
            notes = (reading_note(argument, table.shape, what, "counts='units'", _AS_CONFUSION),)
        shared = shared_rows(None, clusters, len(table))
        return _rated(RatedUnits(table, plain_scale(table.shape[1], categories), (), shared, notes=notes))
    found = rated_columns(ratings, data, categories, clusters, "response", argument)
    scale, codes, notes = _coded(found, (argument,) * len(found.columns))
    if len(codes) * scale.size > _MOST:
        raise DataError(
            f"{len(codes):,} units have {scale.size:,} different ratings, too many to count; round them"
        )
    if held is None and data is None and could_be_counts(ratings):
        what, others = "ratings, units in rows and raters in columns", f"{_AS_CONFUSION}, {_AS_UNITS}"
        notes = (*notes, reading_note(argument, codes.shape, what, "counts=False", others))
    if n_gaps := int((codes < 0).sum()):
        message = f"{n_gaps:,} of {codes.size:,} ratings are missing; those that are there count."
        notes = (*notes, Note("missing_ratings", message))
    table = np.stack([(codes == code).sum(axis=1) for code in range(scale.size)], axis=1).astype(np.int64)
    units = RatedUnits(table, scale, found.raters, found.shared, 0, (*found.notes, *notes), n_gaps)
    return _rated(units)


def read_scores(
    ratings: object, *, data: object = None, clusters: object = None, missing: Missing = "raise"
) -> Scores:
    """Numbers by any number of raters, none of them missing.

    Parameters
    ----------
    ratings, data, clusters
        As in `read_rated_units`, but of numbers; of a ResponseTable the scores.
    missing
        Whether units with a missing number are refused or left out, with a note.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as numbers.
    """
    valid_choice("missing", missing, Missing)
    found = rated_columns(ratings, data, None, clusters, "score")
    values = np.stack([numbers_of(column, "ratings", dimensions=(1,)) for column in found.columns], axis=1)
    kept, notes = drop_missing([values], ["ratings"], missing)
    return Scores(
        values=values[kept],
        raters=found.raters,
        shared=None if found.shared is None else found.shared.of(kept),
        n_missing=int((~kept).sum()),
        notes=(*found.notes, *notes),
    )


def _groups(shared: Shared | None, n_rows: int) -> Codes:
    """The cluster of each unit: those that were asked for, else every unit is one."""
    return shared.codes if shared is not None and shared.asked else np.arange(n_rows)


def _summed(rows: Array, shared: Shared | None) -> Array:
    if shared is None or not shared.asked:
        return rows
    return np.stack([np.bincount(shared.codes, weights=column) for column in rows.T], axis=1)


def _of_table(
    table: object, data: object, categories: object, clusters: object, argument: str, *, noted: bool
) -> RatedPairs:
    """A square table of counts; `noted` where nobody said that it is one."""
    counts, names = square_table(table, data, categories, clusters, argument)
    notes: tuple[Note, ...] = ()
    if noted:
        what = f"counts of {counts.sum():,} units by two raters"
        notes = (
            reading_note(argument, counts.shape, what, "counts='confusion'", "counts=False reads ratings"),
        )
    return RatedPairs(counts, None, plain_scale(len(counts), names), ("a", "b"), notes=notes)


def _units_of(pairs: RatedPairs) -> RatedUnits:
    """The units of a table of counts, two ratings each."""
    size = pairs.scale.size
    if pairs.n * size > _MOST:
        raise DataError(f"{pairs.n:,} units in {size} categories are too many to list")
    both = np.eye(size, dtype=np.int64)[:, None] + np.eye(size, dtype=np.int64)
    units = np.repeat(both.reshape(-1, size), pairs.counts.reshape(-1), axis=0)
    return RatedUnits(units, pairs.scale, pairs.raters, notes=pairs.notes)


def _coded(found: Columns, names: tuple[str, ...]) -> tuple[Scale, Codes, tuple[Note, ...]]:
    """The scale, the categories of all ratings, -1 where one is missing, shape (n, m), and a note.

    `names` are what the columns are called in messages.
    """
    for column, name in zip(found.columns, names, strict=True):
        if column.dtype.is_float() and column.len():
            numbers_of(column, name, dimensions=(1,))  # refuses what is infinite
    scale = scale_of(found.columns, found.categories)
    codes = np.stack([codes_on(scale, column, column.name) for column in found.columns], axis=1)
    if not (codes >= 0).any():
        raise DataError("there is no rating: every label is missing")
    return scale, codes, disjoint(scale, codes, found.raters)


def _rated(units: RatedUnits) -> RatedUnits:
    """The units that have a rating."""
    rated = units.n_ratings > 0
    if not rated.any():
        raise DataError("there is no rating: every unit is empty")
    if rated.all():
        return units
    empty = int((~rated).sum())
    note = Note("unrated", f"{empty:,} of {len(rated):,} units without any rating are left out.", "caution")
    return replace(units.of(rated), n_empty=empty, notes=(*units.notes, note))
