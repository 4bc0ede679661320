"""Permutation of condition labels: one relabelling a cluster, the same for all of its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats import _native
from triagestats.blocks import Block
from triagestats.intervals import NOISE, TIES
from triagestats.lattice import lattice_of, permutation_law
from triagestats.resample import chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Permuted", "permutation_test"]

MOST_LABELS: Final = 8
MOST_CONVOLVED: Final = 4
"""Labels whose arrangements in one cluster (24) are worth writing out."""


@dataclass(frozen=True, slots=True)
class Permuted:
    """Result of one permutation test.

    Attributes
    ----------
    p_value
        Two-sided.
    way
        Whether all arrangements were enumerated, their law computed by convolution, or some were drawn.
    n_arrangements
        Arrangements behind the p-value.
    n_moving
        Clusters in which the relabelling changes anything.
    smallest
        The smallest p-value that a difference of two labels in so many moving clusters can have; None for
        other estimands.
    """

    p_value: float
    way: Literal["enumeration", "convolution", "drawn"]
    n_arrangements: int
    n_moving: int
    smallest: float | None

    @property
    def how(self) -> str:
        """In words, how the p-value was computed."""
        return f"{self.n_arrangements:,} drawn" if self.way == "drawn" else f"exact by {self.way}"


def permutation_test(
    block: Block,
    totals: Array,
    *,
    n_resamples: int,
    seed: int,
    n_threads: int = 1,
    chunk: int | None = None,
) -> tuple[Permuted | None, ...]:
    """Two-sided permutation p-value of each estimate of a block.

    Under the hypothesis that the labels of the levels are exchangeable within a cluster, each
    cluster's scores are relabelled at random, for all its models, variants and repetitions alike.
    `p = #{|T* - mu| >= |T - mu|} / A` over all A arrangements where they are at most `n_resamples`, or
    where the estimand is linear and its values lie on a lattice (their law is then a convolution);
    else `(b + 1) / (R + 1)` over R drawn ones. Ties by relative tolerance. mu is 0 for contrasts
    whose coefficients sum to 0, else the mean over arrangements.

    Parameters
    ----------
    block
        The estimand on the totals.
    totals
        Totals by cluster, shape (G, K).
    n_resamples, seed
        Number of drawn arrangements R, and the seed.
    n_threads, chunk
        They change the time and the memory, not the result.

    Returns
    -------
    tuple
        One result an estimate; None where the estimand has one level or more than eight.

    References
    ----------
    Phipson, B. and Smyth, G. K. (2010), Permutation p-values should never be zero, Statistical
    Applications in Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.
    """
    n_labels = block.numerators.shape[1]
    if not 2 <= n_labels <= MOST_LABELS:
        return (None,) * len(block.groups)
    scores = totals[:, block.numerators].transpose(0, 2, 1)  # (G, L, C)
    weights = totals[:, block.denominators].sum(axis=0)
    estimand = block.target.estimand
    centered = estimand.coefficients is not None and estimand.null == 0
    observed = block.of_sums(scores.sum(axis=0).T, weights)
    noise = NOISE * block.magnitude(totals.sum(axis=0))
    differs = np.ptp(scores, axis=1) > NOISE * np.abs(scores).max(axis=(0, 1))  # (G, C)
    orders = math.factorial(n_labels)
    results: list[Permuted | None] = []
    drawn: Array | None = None
    for place, group in enumerate(block.groups):
        moving = differs[:, group].any(axis=1)
        n_moving = int(moving.sum())
        exact = n_moving * math.log(orders) <= math.log(n_resamples) + 1e-9
        smallest = None
        if centered and n_labels == 2:
            smallest = min(1.0, 2.0 ** (1 - n_moving))
        if not exact and centered:
            p = _convolved(block, place, totals, moving)
            if p is not None:
                results.append(Permuted(p, "convolution", orders**n_moving, n_moving, smallest))
                continue
        if exact:
            null = _enumerated(
                block.only(place), scores[..., group], weights[group], moving, n_threads, chunk
            )[:, 0]
        else:
            if drawn is None:
                drawn = _drawn(
                    block, np.ascontiguousarray(scores), weights, n_resamples, seed, n_threads, chunk
                )
            null = drawn[:, place]
        center = 0.0 if centered else float(null.mean())
        b = _at_least(null - center, float(observed[place]) - center, float(noise[place]))
        count = len(null)
        if exact:
            results.append(Permuted(b / count, "enumeration", count, n_moving, smallest))
        else:
            smallest = None if smallest is None else max(smallest, 1 / (count + 1))
            results.append(Permuted((b + 1) / (count + 1), "drawn", count, n_moving, smallest))
    return tuple(results)


def _at_least(null: Array, observed: float, noise: float) -> int:
    """How many values are at least as far from 0 as the observed one; NaN is not."""
    scale = max(abs(observed), float(np.abs(null).max(initial=0.0)))
    return int((np.abs(null) >= abs(observed) - max(TIES * scale, noise)).sum())


def _convolved(block: Block, place: int, totals: Array, moving: NDArray[np.bool_]) -> float | None:
    """Exact p-value of a linear estimate whose values lie on a lattice; None where they do not."""
    coefficients = block.target.estimand.coefficients
    if coefficients is None or len(coefficients) > MOST_CONVOLVED:
        return None
    parts = block.by_label(place, totals)[moving]
    orders = list(permutations(range(len(coefficients))))  # the first one changes nothing
    moves = np.stack([parts[:, order] @ np.array(coefficients) for order in orders], axis=1)
    lattice = lattice_of(moves)
    law = None if lattice is None else permutation_law(lattice)
    return None if lattice is None or law is None else law.tails(int(lattice.multiples[:, 0].sum()))


def _enumerated(
    block: Block,
    scores: Array,
    weights: Array,
    moving: NDArray[np.bool_],
    n_threads: int,
    chunk: int | None,
) -> Array:
    """Estimates under every arrangement of the clusters that move, shape (A, E)."""
    still = scores[~moving].sum(axis=0)
    if not moving.any():
        return block.of_sums(still.T, weights)[None, :]
    n_labels, n_combinations = scores.shape[1:]
    moved = np.ascontiguousarray(scores[moving])
    arrangements = math.factorial(n_labels) ** len(moved)
    parts = []
    for first, number in chunks(arrangements, n_labels * n_combinations, chunk):
        sums = still + _native.enumerate_blocks(moved, number, first=first, n_threads=n_threads)
        parts.append(block.of_sums(sums.transpose(0, 2, 1), weights))
    return np.concatenate(parts)


def _drawn(
    block: Block,
    scores: Array,
    weights: Array,
    n_resamples: int,
    seed: int,
    n_threads: int,
    chunk: int | None,
) -> Array:
    """Estimates under drawn arrangements, shape (R, E)."""
    parts = []
    for first, number in chunks(n_resamples, scores.shape[1] * scores.shape[2], chunk):
        sums = _native.permute_blocks(scores, number, seed, first=first, n_threads=n_threads)
        parts.append(block.of_sums(sums.transpose(0, 2, 1), weights))
    return np.concatenate(parts)
