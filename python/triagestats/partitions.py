"""Several groups of clusters: which clusters form which group is permuted among all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.permutation import Permuted
from triagestats.permute_table import ALPHA
from triagestats.resample import chunks
from triagestats.results import Note
from triagestats.schemes import Multiplicities
from triagestats.tolerances import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Partitioned", "partition_test"]


@dataclass(frozen=True, slots=True, eq=False)
class Partitioned:
    """A test of groups of clusters.

    Attributes
    ----------
    statistic
        Observed.
    found
        Its test.
    n_clusters, n_resamples, seed
        Of the test.
    """

    statistic: float
    found: Permuted
    n_clusters: int
    n_resamples: int
    seed: int

    @property
    def p_value(self) -> float:
        """Of the test."""
        return self.found.p_value

    @property
    def how(self) -> str:
        """What was done, in words."""
        return f"permutation of clusters between groups, {self.found.how}"

    @property
    def details(self) -> dict[str, Any]:
        """What a result tells of it."""
        return {
            "way": self.found.way,
            "smallest_p_value": self.found.smallest,
            "n_clusters": self.n_clusters,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
        }

    @property
    def notes(self) -> tuple[Note, ...]:
        """Why p is 1, or cannot be small."""
        if self.found.n_moving == 0:
            message = "All clusters are alike: every arrangement gives the same value, so p = 1."
            return (Note("degenerate", message, "caution"),)
        if self.found.smallest <= ALPHA:
            return ()
        message = f"With {self.n_clusters} clusters to permute, p cannot be below {self.found.smallest:.3g}."
        return (Note("smallest_p", message, "caution"),)


def partition_test(
    totals: Array,
    codes: Codes,
    statistic: Callable[[Array], Array],
    *,
    n_resamples: int,
    seed: int,
    n_threads: int = 1,
    chunk: int | None = None,
) -> Partitioned:
    """Permutation test of k groups of clusters, for a statistic that grows with their differences.

    Under the hypothesis that clusters are exchangeable, every way to cut the G clusters into groups of n_1,
    ..., n_k of them is as likely: G! / (n_1! ... n_k!) arrangements.

    Parameters
    ----------
    totals
        Sums by cluster, shape (G, K).
    codes
        Group of each cluster, 0 to k - 1, none of them empty, shape (G,).
    statistic
        From sums by group (..., k, K) to (...).
    n_resamples, seed
        All arrangements are taken where they are at most so many; else so many are drawn. Drawn arrangement r
        depends on (seed, r) alone: it is the order of the Dirichlet weights of that replicate.
    n_threads, chunk
        They change the time and the memory, not the result.

    Returns
    -------
    Partitioned
        The p-value is the share of arrangements at least as extreme.
    """
    sizes = np.bincount(codes)
    count = math.factorial(len(codes)) // math.prod(map(math.factorial, sizes.tolist()))
    exact = count <= n_resamples

    def evaluate(labels: Codes) -> Array:
        groups = [(labels == group).astype(np.float64) @ totals for group in range(len(sizes))]
        return statistic(np.stack(groups, axis=-2))

    observed = float(evaluate(codes[None])[0])
    parts = _enumerated(sizes, chunk) if exact else _drawn(sizes, n_resamples, seed, n_threads, chunk)
    null = np.concatenate([evaluate(labels) for labels in parts])
    slack = TIES * max(abs(observed), float(np.abs(null).max()))
    b = int((null >= observed - slack).sum())
    n_moving = len(codes) if np.ptp(totals, axis=0).any() else 0
    if not exact:
        size = len(null)
        found = Permuted((b + 1) / (size + 1), "drawn", size, n_moving, 1 / (size + 1))
    else:
        smallest = int((null >= null.max() - slack).sum()) / count
        found = Permuted(b / count, "enumeration", count, n_moving, smallest)
    return Partitioned(observed, found, len(codes), n_resamples, seed)


def _enumerated(sizes: Codes, chunk: int | None) -> Iterator[Codes]:
    """Groups of the clusters in every arrangement, in parts of shape (A, G).

    Cluster by cluster each beginning is continued with every group that has room: there are never more
    beginnings than arrangements.
    """
    labels = np.empty((1, 0), dtype=np.int64)
    room = sizes[None]
    for _ in range(int(sizes.sum())):
        row, group = np.nonzero(room > 0)
        labels = np.concatenate([labels[row], group[:, None]], axis=1)
        room = room[row]
        room[np.arange(len(row)), group] -= 1
    for first, number in chunks(len(labels), labels.shape[1], chunk):
        yield labels[first : first + number]


def _drawn(sizes: Codes, n_resamples: int, seed: int, n_threads: int, chunk: int | None) -> Iterator[Codes]:
    """Groups of the clusters in drawn arrangements, in parts of shape (R, G)."""
    by_place = np.repeat(np.arange(len(sizes)), sizes)
    weights = Multiplicities(len(by_place), bayesian=True)
    for first, number in chunks(n_resamples, weights.width, chunk):
        order = weights.totals(number, seed, first=first, n_threads=n_threads).argsort(axis=1)
        labels = np.empty_like(order)
        np.put_along_axis(labels, order, np.broadcast_to(by_place, order.shape), axis=1)
        yield labels
