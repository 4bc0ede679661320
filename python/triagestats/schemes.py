"""Resampling schemes: what is drawn, as replicate totals for any function to read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.uint32]

__all__ = [
    "Bayesian",
    "Clusters",
    "Collapsed",
    "Crossed",
    "Draws",
    "Flips",
    "Integers",
    "Multiplicities",
    "Nested",
    "cluster_draws",
]

COLLAPSE_FROM: Final = 4_096
"""Clusters from which it pays to look for equal rows."""
COLLAPSE_SHARE: Final = 16
"""Rows are drawn by kind when there are so many times fewer kinds than clusters."""
MOST_KINDS: Final = 2**20
"""Kinds of rows that are counted by a table."""
LARGEST_WHOLE: Final = 2.0**53 / 2**32
"""Whole numbers up to here stay exact in sums of up to 2^32 clusters."""


class Draws(ABC):
    """A scheme bound to data.

    Replicate r depends on `(seed, r)` and the data alone: not on chunks, threads or processor.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that one replicate takes."""

    @abstractmethod
    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        """Replicate totals `first` to `first + number - 1`, shape (number, K)."""


@dataclass(frozen=True, slots=True, eq=False)
class Clusters(Draws):
    """Clusters with replacement, within strata where there are some; totals of shape (G, K)."""

    values: Array
    strata: Codes | None = None

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        return _native.bootstrap_totals(
            self.values, number, seed, first=first, strata=self.strata, n_threads=n_threads
        )


@dataclass(frozen=True, slots=True, eq=False)
class Integers(Draws):
    """As `Clusters`, with the same draws, for whole numbers."""

    values: NDArray[np.int16] | NDArray[np.int64]
    strata: Codes | None = None

    @property
    def width(self) -> int:
        return 2 * int(self.values.shape[1])  # whole numbers, then floats

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        sums = _native.bootstrap_totals_int(
            self.values, number, seed, first=first, strata=self.strata, n_threads=n_threads
        )
        return sums.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Collapsed(Draws):
    """As `Clusters` in law, for many clusters of few kinds: one multinomial draw of the kinds.

    `kinds` has shape (D, K), `counts` (D,).
    """

    kinds: Array
    counts: NDArray[np.uint64]

    @property
    def width(self) -> int:
        return int(self.kinds.shape[1])

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        return _native.bootstrap_collapsed(
            self.kinds, self.counts, number, seed, first=first, n_threads=n_threads
        )


@dataclass(frozen=True, slots=True, eq=False)
class Nested(Draws):
    """Clusters with replacement, then the repetitions of each cell, anew for each draw of the cluster.

    Cell (g, k) has `values[offsets[g * K + k]:offsets[g * K + k + 1]]`. Totals are the sums of the
    cells' drawn means, then the numbers of drawn cells, shape (R, 2 K); `complete` data, where every
    cluster has every cell, leave out the numbers, which are G, (R, K). Repetition noise counts twice, in
    the data and again in the draws.
    """

    values: Array
    offsets: NDArray[np.int64]
    n_columns: int
    complete: bool = False

    @property
    def width(self) -> int:
        return self.n_columns if self.complete else 2 * self.n_columns

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        sums, counts = _native.nested_totals(
            self.values,
            self.offsets,
            self.n_columns,
            number,
            seed,
            first=first,
            n_threads=n_threads,
        )
        return sums if self.complete else np.concatenate([sums, counts], axis=1, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Crossed(Draws):
    """Two crossed classifications, each with replacement: product weights on totals (G1, G2, K).

    References
    ----------
    Owen, A. B. (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1(2):386-411,
    doi:10.1214/07-AOAS122.
    """

    values: Array

    @property
    def width(self) -> int:
        return int(self.values.shape[2])

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        return _native.crossed_totals(self.values, number, seed, first=first, n_threads=n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class Bayesian(Draws):
    """Dirichlet(1, ..., 1) weights for the clusters; totals of shape (G, K).

    References
    ----------
    Rubin, D. B. (1981), The Bayesian bootstrap, Annals of Statistics 9(1):130-134,
    doi:10.1214/aos/1176345338.
    """

    values: Array

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        return _native.bayesian_totals(self.values, number, seed, first=first, n_threads=n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class Flips(Draws):
    """A random sign for each cluster; totals of shape (G, K)."""

    values: Array

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        return _native.sign_flip_totals(self.values, number, seed, first=first, n_threads=n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class Multiplicities(Draws):
    """How often each cluster is drawn, or its Dirichlet weight: (R, G), for any statistic of these."""

    n_clusters: int
    strata: Codes | None = None
    bayesian: bool = False

    @property
    def width(self) -> int:
        return 2 * self.n_clusters

    def totals(self, number: int, seed: int, *, first: int, n_threads: int) -> Array:
        del n_threads  # the statistic takes the time
        if self.bayesian:
            return _native.bayesian_weights(self.n_clusters, number, seed, first=first)
        counts = _native.bootstrap_counts(self.n_clusters, number, seed, first=first, strata=self.strata)
        return counts.astype(np.float64)


def cluster_draws(totals: NDArray[np.generic], strata: Codes | None = None) -> Draws:
    """The fastest way to draw clusters with replacement, picked by the data alone.

    Parameters
    ----------
    totals
        Shape (G, K); whole numbers, as integers or floats, are summed exactly.
    strata
        Stratum codes, shape (G,).
    """
    whole = _whole(totals)
    if whole is None:
        return Clusters(np.ascontiguousarray(totals, dtype=np.float64), strata)
    if strata is None and len(whole) >= COLLAPSE_FROM:
        kinds = _kinds(whole)
        if kinds is not None:
            return kinds
    small = whole.size == 0 or int(np.abs(whole).max()) < 2**15
    return Integers(np.ascontiguousarray(whole, dtype=np.int16) if small else whole, strata)


def _whole(totals: NDArray[np.generic]) -> NDArray[np.int64] | None:
    """Totals as whole numbers that sums keep exact; None where they are not."""
    if totals.size and not (totals.min() > -LARGEST_WHOLE and totals.max() < LARGEST_WHOLE):
        return None
    if totals.dtype.kind in "iub":
        return np.ascontiguousarray(totals, dtype=np.int64)
    whole = totals.astype(np.int64)
    return np.ascontiguousarray(whole) if (whole == totals).all() else None


def _kinds(whole: NDArray[np.int64]) -> Collapsed | None:
    """Distinct rows and how often each occurs; None where they are not far fewer than the rows."""
    low = whole.min(axis=0)
    span = whole.max(axis=0) - low + 1
    if float(np.prod(span.astype(np.float64))) > MOST_KINDS:
        return None
    strides = np.concatenate([np.cumprod(span[::-1])[::-1][1:], [1]])
    key = np.zeros(len(whole), dtype=np.int64)
    for column, least, stride in zip(whole.T, low, strides, strict=True):
        key += (column - least) * stride
    table = np.bincount(key)
    present = np.flatnonzero(table)
    if len(present) * COLLAPSE_SHARE > len(whole):
        return None
    kinds = present[:, None] // strides % span + low
    return Collapsed(np.ascontiguousarray(kinds, dtype=np.float64), table[present].astype(np.uint64))
