"""Ratings of units: by two raters in categories, by several in categories, or by several in numbers.

Rows are units (responses, items), columns are raters; everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.agreement.scale import Scale, codes_on, plain_scale, scale_of
from triagestats.agreement.sources import Columns, is_matrix, judges_of, of_judges, rated_columns
from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.counts import count_table, whole_counts
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.table import ResponseTable
from triagestats.vectors import Missing, drop_missing, numbers_of, series_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]
    Counts = NDArray[np.int64]

__all__ = ["RatedPairs", "RatedUnits", "Scores", "read_rated_pairs", "read_rated_units", "read_scores"]

_MOST: Final = 50_000_000
"""Numbers of units times categories that are counted."""


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
    """

    counts: Counts
    scale: Scale
    raters: tuple[str, ...]
    shared: Shared | None = None
    n_empty: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def n_ratings(self) -> Counts:
        """Ratings of each unit, shape (n,)."""
        ratings: Counts = self.counts.sum(axis=1)
        return ratings

    def of(self, kept: NDArray[np.bool_]) -> RatedUnits:
        """Some of the units."""
        shared = None if self.shared is None else self.shared.of(kept)
        return RatedUnits(self.counts[kept], self.scale, self.raters, shared, self.n_empty, self.notes)

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
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
) -> RatedPairs:
    """Ratings by two raters.

    Parameters
    ----------
    a, b
        Labels, one a unit; or names of columns of `data`; or two judges where `data` is a ResponseTable (none
        needed where it has two). `a` alone may be a square table of counts, or the ResponseTable.
    data
        A table of any make, or a ResponseTable.
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
    elif b is None:
        return _of_table(a, data, categories, clusters)
    else:
        frame = frame_of(data)
        sides = (a, b) if isinstance(a, str) and isinstance(b, str) else ("a", "b")
        first, second = (
            series_of(column_of(frame, value, argument), argument).alias(side)
            for value, argument, side in zip((a, b), ("a", "b"), sides, strict=True)
        )
        if len(first) != len(second):
            raise ArgumentError(f"`a` and `b` must pair: they have {len(first):,} and {len(second):,} labels")
        found = Columns((first, second), categories, shared_rows(frame, clusters, len(first)))
    scale, codes = _coded(found)
    kept, notes = drop_missing([np.where(codes < 0, np.nan, codes)], list(found.raters), missing)
    codes = codes[kept]
    cell = codes[:, 0] * scale.size + codes[:, 1]
    return RatedPairs(
        counts=np.bincount(cell, minlength=scale.size**2).reshape(scale.size, scale.size),
        codes=codes,
        scale=scale,
        raters=(found.raters[0], found.raters[1]),
        shared=None if found.shared is None else found.shared.of(kept),
        n_missing=int((~kept).sum()),
        notes=(*found.notes, *notes),
    )


def read_rated_units(
    ratings: object,
    *,
    data: object = None,
    categories: object = None,
    clusters: object = None,
    counts: bool = False,
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
        `ratings` are counts instead, one row a unit and one column a category.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as ratings.
    """
    if counts:
        if data is not None or isinstance(ratings, ResponseTable):
            raise ArgumentError("`counts=True` takes a matrix of counts, without `data`")
        matrix = numbers_of(ratings, "ratings", dimensions=(2,))
        table = whole_counts(matrix, "ratings")
        scale = plain_scale(table.shape[1], categories)
        shared = shared_rows(None, clusters, len(table))
        return _rated(RatedUnits(table, scale, (), shared))
    found = rated_columns(ratings, data, categories, clusters, "response")
    scale, codes = _coded(found)
    if len(codes) * scale.size > _MOST:
        raise DataError(
            f"{len(codes):,} units have {scale.size:,} different ratings, too many to count; round them"
        )
    table = np.stack([(codes == code).sum(axis=1) for code in range(scale.size)], axis=1).astype(np.int64)
    return _rated(RatedUnits(table, scale, found.raters, found.shared, notes=found.notes))


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


def _of_table(table: object, data: object, categories: object, clusters: object) -> RatedPairs:
    """A square table of counts."""
    if data is not None:
        raise ArgumentTypeError("`b` is needed: the column of `data` that holds the second rater's labels")
    if not is_matrix(table):
        raise ArgumentTypeError(
            "`b` is needed: the labels of the second rater; `a` alone must be a square table of counts"
        )
    counts = count_table(table, "a", square=True)
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a table of counts, which does not say which unit is whose; give "
            "the labels of both raters as `a` and `b`"
        )
    return RatedPairs(counts, None, plain_scale(len(counts), categories), ("a", "b"))


def _coded(found: Columns) -> tuple[Scale, Codes]:
    """The scale, and the categories of all ratings, -1 where one is missing; shape (n, m)."""
    scale = scale_of(found.columns, found.categories)
    codes = np.stack([codes_on(scale, column, column.name) for column in found.columns], axis=1)
    if not (codes >= 0).any():
        raise DataError("there is no rating: every label is missing")
    return scale, codes


def _rated(units: RatedUnits) -> RatedUnits:
    """The units that have a rating."""
    rated = units.n_ratings > 0
    if not rated.any():
        raise DataError("there is no rating: every unit is empty")
    if rated.all():
        return units
    kept = units.of(rated)
    empty = int((~rated).sum())
    note = Note("unrated", f"{empty:,} of {len(rated):,} units without any rating are left out.", "caution")
    return RatedUnits(kept.counts, kept.scale, kept.raters, kept.shared, empty, (*kept.notes, note))
