"""Tables of counts: given as such, or counted from two labels a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.counts import count_table
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import Labels, Missing, complete_codes, drop_missing, labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Codes = NDArray[np.int64]

__all__ = ["Crosstab", "read_crosstab", "read_square"]


@dataclass(frozen=True, slots=True, eq=False)
class Crosstab:
    """Counts by row and column.

    Attributes
    ----------
    counts
        Shape (r, c). Labels that are counted have no empty row or column; a table may.
    rows, columns
        What the rows and columns are called.
    shared
        The clusters of the observations, None where nothing says that they share any.
    n_missing
        Observations that were left out.
    notes
        Choices made while reading.
    """

    counts: Counts
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shared: Shared | None = None
    n_missing: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def n(self) -> int:
        """Observations."""
        return int(self.counts.sum())

    def independence(self, clustered: str) -> tuple[Note, ...]:
        """A note for a test that ignores clusters which observations share; `clustered` is the one to use."""
        return () if self.shared is None else self.shared.taken_as_independent(clustered)

    def without_empty(self) -> Crosstab:
        """The rows and columns that hold an observation, with a note on the others."""
        totals = self.counts.sum(axis=1).tolist(), self.counts.sum(axis=0).tolist()
        gone = [
            name
            for names, sums in zip((self.rows, self.columns), totals, strict=True)
            for name, total in zip(names, sums, strict=True)
            if not total
        ]
        if not gone:
            return self
        rows, columns = (np.flatnonzero(sums) for sums in totals)
        return Crosstab(
            counts=self.counts[rows][:, columns],
            rows=tuple(self.rows[place] for place in rows),
            columns=tuple(self.columns[place] for place in columns),
            shared=self.shared,
            n_missing=self.n_missing,
            notes=(*self.notes, Note("empty", f"Left out as empty: {', '.join(gone)}.")),
        )


def read_crosstab(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
) -> Crosstab:
    """Counts of a table, or of two labels a row.

    Parameters
    ----------
    x, y
        `x` alone: a table of counts. Both: labels of one length, or names of columns of `data`.
    data
        A table of any make; of a ResponseTable the columns of its `frame`.
    clusters
        One label a row, or the name of a column of `data`.
    missing
        Whether rows without a label are refused or left out, with a note.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        For what cannot be read as counts or labels.
    """
    if y is None:
        return _given(x, data, clusters, square=False)
    first, second, shared = _labels(x, y, data, clusters)
    (a, b), shared, n_missing, notes = _complete((first.codes, second.codes), shared, missing)
    counts = np.zeros((len(first.levels), len(second.levels)), dtype=np.int64)
    np.add.at(counts, (a, b), 1)
    # A label may have gone with its rows.
    kept_rows, kept_columns = (np.flatnonzero(counts.sum(axis=axis)) for axis in (1, 0))
    return Crosstab(
        counts=counts[kept_rows][:, kept_columns],
        rows=tuple(first.levels[place] for place in kept_rows),
        columns=tuple(second.levels[place] for place in kept_columns),
        shared=shared,
        n_missing=n_missing,
        notes=notes,
    )


def read_square(
    x: object,
    y: object = None,
    *,
    categories: object = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
) -> Crosstab:
    """Counts of pairs of labels on one scale: a square table, two vectors, or two condition levels.

    Parameters
    ----------
    x, y
        `x` alone: a square table of counts. Both: labels of one length, or names of columns of `data`; or,
        where `data` is a ResponseTable, condition levels (none needed where there are two), whose responses
        to the same key are paired. `x` alone may be the ResponseTable.
    categories
        The scale. Default: that of the ResponseTable, else the labels that occur.
    data, clusters, missing
        As in `read_crosstab`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as pairs of labels.
    """
    if isinstance(x, ResponseTable) and data is None:
        x, data = None, x
    if isinstance(data, ResponseTable):
        return _of_levels(data, x, y, categories, clusters)
    if y is None:
        if categories is not None:
            raise ArgumentError("`categories` names the scale of labels; a table of counts has its own")
        return _given(x, data, clusters, square=True)
    first, second, shared = _labels(x, y, data, clusters)
    scale = _scale(categories, first, second)
    codes = (_on(scale, first, "x"), _on(scale, second, "y"))
    (a, b), shared, n_missing, notes = _complete(codes, shared, missing)
    return _square(a, b, scale, shared, n_missing, notes)


def _given(x: object, data: object, clusters: object, *, square: bool) -> Crosstab:
    """A table of counts."""
    if isinstance(x, str) or data is not None:
        raise ArgumentTypeError("`y` is needed: the second label of each row")
    if clusters is not None:
        raise ArgumentError(
            "`clusters` goes with two labels a row, `x` and `y`; a table of counts has no rows"
        )
    if isinstance(x, Mapping):
        x = pl.DataFrame(x)
    counts = count_table(x, "x", square=square)
    n_rows, n_columns = counts.shape
    return Crosstab(
        counts,
        tuple(f"row {place + 1}" for place in range(n_rows)),
        tuple(f"column {place + 1}" for place in range(n_columns)),
    )


def _labels(x: object, y: object, data: object, clusters: object) -> tuple[Labels, Labels, Shared | None]:
    """Two labels a row, and the clusters of the rows."""
    frame = frame_of(data)
    first = labels_of(column_of(frame, x, "x"), "x")
    second = labels_of(column_of(frame, y, "y"), "y")
    if len(first.codes) != len(second.codes):
        raise ArgumentError(
            f"`x` and `y` must pair: they have {len(first.codes):,} and {len(second.codes):,} labels"
        )
    if not len(first.codes):
        raise ArgumentError("`x` holds no value")
    if isinstance(data, ResponseTable) and clusters is None:
        return first, second, _clusters_of(data, data.frame)
    return first, second, shared_rows(frame, clusters, len(first.codes))


def _clusters_of(table: ResponseTable, frame: pl.DataFrame) -> Shared:
    """The clusters of a response table, for some of its rows."""
    column = "cluster_1" if "cluster_1" in frame.columns else "scenario"
    name = table.roles.columns["cluster"][0] if column == "cluster_1" else "scenario"
    codes = complete_codes(frame[column], "cluster", frame.height)
    return Shared(codes, name, asked=False, crossed="cluster_2" in frame.columns)


def _complete(
    codes: tuple[Codes, Codes], shared: Shared | None, missing: Missing
) -> tuple[tuple[Codes, Codes], Shared | None, int, tuple[Note, ...]]:
    """The rows that have both labels."""
    values = [np.where(side < 0, np.nan, side) for side in codes]
    kept, notes = drop_missing(values, ("x", "y"), missing)
    if not notes:
        return codes, shared, 0, ()
    both = (codes[0][kept], codes[1][kept])
    return both, None if shared is None else shared.of(kept), int((~kept).sum()), notes


def _square(
    a: Codes, b: Codes, scale: tuple[str, ...], shared: Shared | None, n_missing: int, notes: tuple[Note, ...]
) -> Crosstab:
    counts = np.zeros((len(scale), len(scale)), dtype=np.int64)
    np.add.at(counts, (a, b), 1)
    return Crosstab(counts, scale, scale, shared, n_missing, notes)


def _scale(categories: object, *sides: Labels) -> tuple[str, ...]:
    """The categories in words: the declared ones, else those that occur."""
    if categories is None:
        return tuple(dict.fromkeys(level for side in sides for level in side.levels))
    if isinstance(categories, str | Mapping) or not isinstance(categories, Iterable):
        raise ArgumentTypeError(f"`categories` must be a list of labels; got {categories!r}")
    given = [label_of(level) for level in categories]
    scale = tuple(level for level in given if level is not None)
    if len(scale) < max(2, len(given)) or len(set(scale)) < len(scale):
        raise ArgumentError(
            f"`categories` must hold two or more different labels, each once and none blank; got {given}"
        )
    return scale


def _on(scale: tuple[str, ...], labels: Labels, argument: str) -> Codes:
    """Codes of labels on a scale, -1 where missing."""
    unknown = [level for level in labels.levels if level not in scale]
    if unknown:
        raise ArgumentError(
            f"`{argument}` holds {listed(unknown)}, which `categories` does not list: {listed(scale)}"
        )
    places = np.array([scale.index(level) for level in labels.levels] + [-1], dtype=np.int64)
    return places[labels.codes]


def _of_levels(table: ResponseTable, x: object, y: object, categories: object, clusters: object) -> Crosstab:
    """Responses to the same key at two condition levels."""
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
            "`table.with_cluster(...)`"
        )
    if "response" not in table.frame.columns or "condition" not in table.frame.columns:
        raise DesignError(
            "the table must have responses and a condition to compare their labels; name the columns with "
            "`response=` and `condition=`"
        )
    first, second = _two_levels(table, x, y)
    key = [role for role in KEY_ROLES if role in table.frame.columns and role != "condition"]
    # A judge labels a response, so that a judged row carries the label of the judge.
    at = [
        table.frame.filter((pl.col("condition") == level) & pl.col("response").is_not_null())
        for level in (first, second)
    ]
    both = at[0].join(at[1].select(*key, pl.col("response").alias("_other")), on=key, nulls_equal=True)
    if not both.height:
        raise DesignError(f"no key has a response at both {first!r} and {second!r}")
    lost = at[0].height + at[1].height - 2 * both.height
    notes = list(table.notes)
    if lost:
        message = f"{lost:,} responses without a counterpart at the other level are left out."
        notes.append(Note("unmatched", message, "caution"))
    if "model" in key and both["model"].n_unique() > 1:
        notes.append(Note("pooled", f"Pairs of {both['model'].n_unique()} models are pooled."))
    labels = labels_of(both["response"], "response"), labels_of(both["_other"], "response")
    scale = _scale(table.levels if categories is None else categories, *labels)
    a, b = _on(scale, labels[0], "response"), _on(scale, labels[1], "response")
    return _square(a, b, scale, _clusters_of(table, both), lost, tuple(notes))


def _two_levels(table: ResponseTable, x: object, y: object) -> tuple[str, str]:
    """The two levels in words; level and reference where the table has two."""
    if len(table.factors) == 1:
        levels = table.factors[0].levels
    else:
        levels = tuple(table.frame["condition"].unique().sort().to_list())
    if x is None and y is None and len(levels) == 2:
        return levels[1], levels[0]
    wanted = [label_of(side) if isinstance(side, str | int | float) else None for side in (x, y)]
    for side, argument in zip(wanted, ("x", "y"), strict=True):
        if side not in levels:
            raise ArgumentError(
                f"`{argument}` must be a condition level of the table, one of {listed(levels)}; got {side!r}"
            )
    if wanted[0] == wanted[1]:
        raise ArgumentError(f"`x` and `y` are both the level {wanted[0]!r}; name two levels")
    return str(wanted[0]), str(wanted[1])
