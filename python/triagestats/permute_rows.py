"""Arrays for a permutation test as clean rows: values, clusters and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from triagestats.errors import ArgumentError, DataError, DesignError
from triagestats.results import Note
from triagestats.vectors import labels_of, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Missing", "Rows", "read_rows"]

Missing = Literal["raise", "omit"]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What came, without the rows that are left out.

    Attributes
    ----------
    values
        Shape (n, L).
    cluster
        Code of each row's cluster, 0 to G - 1, shape (n,).
    cluster_names
        Label of each cluster; empty where every row is one.
    in_level
        Whether a row is in the first of `groups`, shape (n,).
    groups
        Level and reference; empty where columns are compared.
    paired
        Whether the columns are `a` and `b`.
    n_missing
        Rows that were left out.
    """

    values: Array
    cluster: NDArray[np.int64]
    cluster_names: tuple[str, ...]
    in_level: NDArray[np.bool_]
    groups: tuple[str, ...]
    paired: bool
    n_missing: int

    @property
    def n_clusters(self) -> int:
        """Number of clusters, G."""
        return int(self.cluster.max()) + 1

    @property
    def notes(self) -> tuple[Note, ...]:
        """How many rows were left out, where some were."""
        if not self.n_missing:
            return ()
        rows = f"{self.n_missing:,} of {self.n_missing + len(self.values):,} rows"
        return (Note("missing", f"{rows} with a missing value or label are left out.", "caution"),)

    @property
    def totals(self) -> Array:
        """Sums of each column, then the number of rows, by cluster, shape (G, L + 1)."""
        columns = [*self.values.T, np.ones(len(self.values))]
        return np.stack([np.bincount(self.cluster, weights=column) for column in columns], axis=-1)


def read_rows(a: object, b: object, clusters: object, groups: object, missing: Missing) -> Rows:
    """Read the arguments of `permutation_test`, without the rows that are left out.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If they are no arrays of numbers and labels, or do not go together.
    DataError
        If something is missing, unless it is to be omitted.
    DesignError
        If there are not two groups.
    """
    values = numbers_of(a, "a")
    if values.ndim == 2 and (b is not None or groups is not None):
        raise ArgumentError(
            f"`a` has the shape {values.shape}, one column a label; then give neither `b` nor `groups`"
        )
    if b is not None and groups is not None:
        raise ArgumentError("give `b` for pairs or `groups` for two groups of clusters, not both")
    if values.ndim == 1 and b is None and groups is None:
        raise ArgumentError(
            "`a` alone has one axis; give `b` for pairs, `groups` for two groups of clusters, or a matrix "
            "with one column a label. For differences made already, `permutation_test(d, [0] * len(d))`"
        )
    if b is not None:
        other = numbers_of(b, "b")
        _same_length(other, "b", len(values))
        if other.ndim != 1:
            raise ArgumentError(f"`b` must have one axis, as `a` has; got shape {other.shape}")
        values = np.stack([values, other], axis=-1)
    values = values if values.ndim == 2 else values[:, None]
    lost = np.isnan(values).any(axis=1)
    levels: tuple[str, ...] = ()
    group = np.zeros(len(values), dtype=np.int64)
    if groups is not None:
        named = labels_of(groups, "groups")
        _same_length(named.codes, "groups", len(values))
        group, levels = named.codes, named.levels
        lost |= group < 0
    names: tuple[str, ...] = ()
    cluster = np.arange(len(values))
    if clusters is not None:
        by = labels_of(clusters, "clusters")
        _same_length(by.codes, "clusters", len(values))
        cluster, names = by.codes, by.levels
        lost |= cluster < 0
    n_missing = int(lost.sum())
    if n_missing and missing == "raise":
        raise DataError(
            f"{n_missing:,} of {len(values):,} rows have a missing value or label, the first is row "
            f"{int(np.flatnonzero(lost)[0])} (from 0); fill them in, or leave these rows out with "
            "missing='omit'"
        )
    if n_missing == len(values):
        raise DataError(f"all {n_missing:,} rows have a missing value or label; nothing is left to test")
    kept, cluster = np.unique(cluster[~lost], return_inverse=True)
    present = np.unique(group[~lost])
    if groups is not None and len(present) != 2:
        raise DesignError(
            f"`groups` must have two labels; got {len(present)}: {[levels[code] for code in present]}"
        )
    return Rows(
        values=values[~lost],
        cluster=cluster,
        cluster_names=tuple(names[code] for code in kept) if names else (),
        in_level=group[~lost] == present[-1],
        groups=(levels[present[1]], levels[present[0]]) if groups is not None else (),
        paired=b is not None,
        n_missing=n_missing,
    )


def _same_length(values: NDArray[Any], argument: str, expected: int) -> None:
    if len(values) != expected:
        raise ArgumentError(
            f"`{argument}` must have as many values as `a`: expected {expected:,}, got {len(values):,}"
        )
