"""Per-cluster totals: the sums that every estimand is a function of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from triagestats.layout import ClusterAxis
from triagestats.matching import Keys
from triagestats.schema import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Matched", "Sums", "Totals", "TotalsBuilder", "cluster_codes", "matched_sums", "sums_by_cluster"]


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums by cluster.

    Attributes
    ----------
    values
        Shape (G, K), or (G1, G2, K) with two crossed cluster axes; float64.
    axes
        The cluster axes, one or two.
    """

    values: NDArray[np.float64]
    axes: tuple[ClusterAxis, ...]

    @property
    def sums(self) -> NDArray[np.float64]:
        """Sums over all clusters, shape (K,)."""
        total: NDArray[np.float64] = self.values.sum(axis=tuple(range(self.values.ndim - 1)))
        return total

    def along(self, axis: int) -> NDArray[np.float64]:
        """Totals by the clusters of one axis, shape (G, K)."""
        if self.values.ndim == 2:
            return self.values
        total: NDArray[np.float64] = self.values.sum(axis=1 - axis)
        return total

    @property
    def cells(self) -> NDArray[np.float64]:
        """Totals by the cells of all axes together, shape (G, K) or (G1 G2, K)."""
        return self.values.reshape(-1, self.values.shape[-1])


@dataclass(slots=True)
class TotalsBuilder:
    """Collects columns of totals; a column that is there already is not stored twice."""

    axes: tuple[ClusterAxis, ...]
    _columns: list[NDArray[np.float64]] = field(default_factory=list)
    _places: dict[bytes, int] = field(default_factory=dict)

    def add(self, column: NDArray[np.float64]) -> int:
        """Place of a column of shape (G,) or (G1 G2,) among the totals."""
        content = blake2b(np.ascontiguousarray(column).data, digest_size=32).digest()
        place = self._places.setdefault(content, len(self._columns))
        if place == len(self._columns):
            self._columns.append(column)
        return place

    def build(self) -> Totals:
        """All columns so far as totals."""
        shape = tuple(len(axis.labels) for axis in self.axes)
        values = np.ascontiguousarray(np.stack(self._columns, axis=-1))
        return Totals(values.reshape(*shape, -1), self.axes)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of one group of keys by cluster and model.

    Attributes
    ----------
    scores
        Weighted sums of scores, shape (G, M, L).
    weights
        Sums of weights, shape (G, M); matched levels share them.
    """

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """What the keys scored at some levels come to.

    Attributes
    ----------
    sums
        Their sums by cluster and model.
    n_keys
        Keys of each model, shape (M,).
    n_rows
        Responses behind them, shape (M, L).
    """

    sums: Sums
    n_keys: NDArray[np.int64]
    n_rows: NDArray[np.int64]


def cluster_codes(keys: Keys, axes: Sequence[ClusterAxis]) -> NDArray[np.int64]:
    """Code of each key's cluster; with two axes that of its cell, first axis slowest."""
    code = np.zeros(len(keys.unit), dtype=np.int64)
    for axis in axes:
        of_key = axis.codes[keys.unit if axis.by == "unit" else keys.model]
        code = code * len(axis.labels) + of_key
    return code


def sums_by_cluster(
    keys: Keys,
    axes: Sequence[ClusterAxis],
    n_models: int,
    *,
    weights: Weights,
    by_count: bool = False,
) -> Sums:
    """Sums of matched keys by cluster and model.

    Parameters
    ----------
    keys
        Keys scored at all their levels.
    axes
        Cluster axes.
    n_models
        Number of models, M.
    weights
        `scenario`: each unit of a model weighs 1, its value the mean of its keys. `row`: each key
        weighs 1.
    by_count
        With `row`, a key weighs as much as it has responses: the mean over all responses.
    """
    n_clusters = int(np.prod([len(axis.labels) for axis in axes]))
    cluster = cluster_codes(keys, axes)
    each = keys.counts[:, 0].astype(np.float64) if by_count else np.ones(len(cluster))
    values, model = keys.values, keys.model
    if weights == "scenario":
        pair = keys.unit * n_models + keys.model
        values, first = _means(values, keys.cell)
        values, of_pair = _means(values, pair[first])
        first = first[of_pair]
        cluster, model, each = cluster[first], model[first], np.ones(len(first))
    place = cluster * n_models + model
    size = n_clusters * n_models
    scores: NDArray[np.float64] = np.stack(
        [np.bincount(place, weights=each * column, minlength=size) for column in values.T], axis=-1
    )
    total: NDArray[np.float64] = np.bincount(place, weights=each, minlength=size).astype(np.float64)
    return Sums(scores.reshape(n_clusters, n_models, -1), total.reshape(n_clusters, n_models))


def matched_sums(
    keys: Keys, axes: Sequence[ClusterAxis], n_models: int, *, weights: Weights, by_count: bool = False
) -> Matched:
    """Sums and counts of matched keys; the arguments are those of `sums_by_cluster`."""
    n_rows = [np.bincount(keys.model, weights=count, minlength=n_models) for count in keys.counts.T]
    return Matched(
        sums_by_cluster(keys, axes, n_models, weights=weights, by_count=by_count),
        np.bincount(keys.model, minlength=n_models).astype(np.int64),
        np.stack(n_rows, axis=-1).astype(np.int64),
    )


def _means(
    values: NDArray[np.float64], group: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Mean of each group, shape (groups, L), and the place of each group's first row."""
    groups, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    if len(groups) == len(group):
        return values[first], first
    size = np.bincount(inverse)
    means = np.stack([np.bincount(inverse, weights=column) / size for column in values.T], axis=-1)
    return means, first
