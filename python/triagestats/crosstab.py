"""Tables of counts: given as such, or counted from two labels a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.counts import axis_labels, count_table
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.results import Note
from triagestats.table import ResponseTable
from triagestats.two_groups import PAIRED
from triagestats.vectors import Labels, Missing, complete_codes, drop_missing, labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Codes = NDArray[np.int64]

__all__ = ["Crosstab", "complete_rows", "given_counts", "own_clusters", "read_crosstab", "two_labels"]


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
    codes
        Row and column of each observation, shape (n,) each; None where counts were given.
    """

    counts: Counts
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shared: Shared | None = None
    n_missing: int = 0
    notes: tuple[Note, ...] = ()
    codes: tuple[Codes, Codes] | None = None

    @property
    def n(self) -> int:
        """Observations."""
        return int(self.counts.sum())

    @property
    def alone(self) -> Literal["row", "column"]:
        """Of a table with one row or column that holds observations, which of them it is."""
        return "row" if int(self.counts.any(axis=1).sum()) < 2 else "column"

    def described(self) -> dict[str, Any]:
        """The table as details of a test."""
        return {
            "table": self.counts.tolist(),
            "rows": list(self.rows),
            "columns": list(self.columns),
            "n_missing": self.n_missing,
        }

    @property
    def clustered(self) -> bool:
        """Whether the caller gave clusters, and observations share some."""
        return self.shared is not None and self.shared.asked and self.shared.shares

    @property
    def groups(self) -> Literal["rows", "columns"] | None:
        """Which labels form groups of whole clusters; None where both vary within clusters."""
        if self.shared is None or self.codes is None:
            return None
        if self.shared.within(self.codes[0]):
            return "rows"
        return "columns" if self.shared.within(self.codes[1]) else None

    @property
    def clustered_call(self) -> str:
        """The test of independence that respects the clusters, as a call."""
        if self.groups is None:
            return PAIRED
        call = "chi_square(x, y, clusters=...)"
        if len(self.rows if self.groups == "rows" else self.columns) > 2:
            return call
        outcome, group = ("y", "x") if self.groups == "rows" else ("x", "y")
        return f"permutation_test(np.asarray({outcome}) == label, groups={group}, clusters=...), or {call},"

    def independence(self, clustered: str | None = None) -> tuple[Note, ...]:
        """A note for a test that ignores clusters which observations share; `clustered` is the one to use."""
        if self.shared is None:
            return ()
        return self.shared.taken_as_independent(self.clustered_call if clustered is None else clustered)

    def refuse_clusters(self, name: str) -> None:
        """Refuse clusters that were given to a test which has no use for them.

        Raises
        ------
        ArgumentError
            If there are some, and observations share them.
        """
        if self.shared is not None and self.clustered:
            raise ArgumentError(
                f"{name} takes rows as independent, and `clusters` says that {self.n:,} rows share "
                f"{self.shared.size:,}; {self.clustered_call} respects the clusters"
            )

    def by_cluster(self) -> tuple[Counts, Codes]:
        """Counts by cluster of the labels that are no groups, shape (G, c), and the group of each cluster.

        Raises
        ------
        ArgumentError
            If counts were given, or no clusters.
        DesignError
            If neither label forms groups of whole clusters.
        """
        if self.shared is None or self.codes is None:
            raise ArgumentError(
                "method='cluster-permutation' needs two labels a row, `x` and `y`, with `clusters`"
            )
        shared, groups = self.shared.needed_by("cluster-permutation"), self.groups
        if groups is None:
            raise DesignError(
                "`x` and `y` both vary within clusters, which then cannot be permuted between groups; "
                f"{PAIRED} respects the clusters"
            )
        group, other = self.codes if groups == "rows" else self.codes[::-1]
        width = self.counts.shape[1 if groups == "rows" else 0]
        counts = np.bincount(shared.codes * width + other, minlength=shared.size * width)
        of_cluster = np.empty(shared.size, dtype=np.int64)
        of_cluster[shared.codes] = group
        return counts.reshape(shared.size, width), of_cluster

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
        )  # labels that are counted have no empty row or column, so that there are no codes to keep


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
        return given_counts(x, data, clusters, square=False)
    first, second, shared = two_labels(x, y, data, clusters)
    (a, b), shared, n_missing, notes = complete_rows((first.codes, second.codes), shared, missing)
    # A label may have gone with its rows.
    kept_rows, a = np.unique(a, return_inverse=True)
    kept_columns, b = np.unique(b, return_inverse=True)
    counts = np.zeros((len(kept_rows), len(kept_columns)), dtype=np.int64)
    np.add.at(counts, (a, b), 1)
    return Crosstab(
        counts=counts,
        rows=tuple(first.levels[place] for place in kept_rows),
        columns=tuple(second.levels[place] for place in kept_columns),
        shared=shared,
        n_missing=n_missing,
        notes=notes,
        codes=(a.astype(np.int64), b.astype(np.int64)),
    )


def given_counts(x: object, data: object, clusters: object, *, square: bool) -> Crosstab:
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
    rows, columns = axis_labels(x)
    return Crosstab(
        counts,
        rows or tuple(f"row {place + 1}" for place in range(len(counts))),
        columns or tuple(f"column {place + 1}" for place in range(counts.shape[1])),
    )


def two_labels(x: object, y: object, data: object, clusters: object) -> tuple[Labels, Labels, Shared | None]:
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
        return first, second, own_clusters(data, data.frame)
    return first, second, shared_rows(frame, clusters, len(first.codes))


def own_clusters(table: ResponseTable, frame: pl.DataFrame) -> Shared:
    """The clusters of a response table, for some of its rows."""
    column = "cluster_1" if "cluster_1" in frame.columns else "scenario"
    name = table.roles.columns["cluster"][0] if column == "cluster_1" else "scenario"
    codes = complete_codes(frame[column], "cluster", frame.height)
    return Shared(codes, name, asked=False, crossed="cluster_2" in frame.columns)


def complete_rows(
    codes: tuple[Codes, Codes], shared: Shared | None, missing: Missing
) -> tuple[tuple[Codes, Codes], Shared | None, int, tuple[Note, ...]]:
    """The rows that have both labels."""
    values = [np.where(side < 0, np.nan, side) for side in codes]
    kept, notes = drop_missing(values, ("x", "y"), missing)
    if not notes:
        return codes, shared, 0, ()
    both = (codes[0][kept], codes[1][kept])
    return both, None if shared is None else shared.of(kept), int((~kept).sum()), notes
