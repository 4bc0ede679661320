"""Arrays for a permutation test as clean rows: values, clusters and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.errors import ArgumentError, DesignError
from triagestats.results import Note
from triagestats.vectors import Labels, Missing, drop_missing, labels_of, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Rows", "read_rows"]


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
    notes
        How many, where some were.
    """

    values: Array
    cluster: NDArray[np.int64]
    cluster_names: tuple[str, ...]
    in_level: NDArray[np.bool_]
    groups: tuple[str, ...]
    paired: bool
    n_missing: int
    notes: tuple[Note, ...]

    @property
    def n_clusters(self) -> int:
        """Number of clusters, G."""
        return int(self.cluster.max()) + 1

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
    size = len(values)
    by_group = None if groups is None else _labels(groups, "groups", size)
    by_cluster = None if clusters is None else _labels(clusters, "clusters", size)
    given = {"a": values, "b": None if b is None else values} | {
        name: None if labels is None else np.where(labels.codes < 0, np.nan, 0.0)
        for name, labels in (("groups", by_group), ("clusters", by_cluster))
    }
    looked = {name: array for name, array in given.items() if array is not None}
    complete, notes = drop_missing(list(looked.values()), list(looked), missing)
    group = np.zeros(size, dtype=np.int64) if by_group is None else by_group.codes
    levels = () if by_group is None else by_group.levels
    names = () if by_cluster is None else by_cluster.levels
    codes = np.arange(size) if by_cluster is None else by_cluster.codes
    kept, cluster = np.unique(codes[complete], return_inverse=True)
    present = np.unique(group[complete])
    if groups is not None and len(present) != 2:
        raise DesignError(
            f"`groups` must have two labels; got {len(present)}: {[levels[code] for code in present]}"
        )
    return Rows(
        values=values[complete],
        cluster=cluster,
        cluster_names=tuple(names[code] for code in kept) if names else (),
        in_level=group[complete] == present[-1],
        groups=(levels[present[1]], levels[present[0]]) if groups is not None else (),
        paired=b is not None,
        n_missing=size - int(complete.sum()),
        notes=notes,
    )


def _labels(values: object, argument: str, expected: int) -> Labels:
    labels = labels_of(values, argument)
    _same_length(labels.codes, argument, expected)
    return labels


def _same_length(values: NDArray[Any], argument: str, expected: int) -> None:
    if len(values) != expected:
        raise ArgumentError(
            f"`{argument}` must have as many values as `a`: expected {expected:,}, got {len(values):,}"
        )
