"""Permutation of condition labels: one relabelling a cluster, the same for all of its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats import _native
from triagestats.blocks import Block
from triagestats.extremes import (
    PROBES,
    Center,
    as_extreme,
    at_least,
    centers_by_symmetry,
    most_extreme,
    oriented,
    ties_across,
)
from triagestats.lattice import lattice_of, permutation_law, tail
from triagestats.resample import chunks
from triagestats.results import Alternative
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["MOST_LABELS", "Family", "Permuted", "block_null", "block_tests", "max_t"]

MOST_LABELS: Final = 8
MOST_CONVOLVED: Final = 4
"""Labels whose arrangements in one cluster (24) are worth writing out."""


@dataclass(frozen=True, slots=True)
class Permuted:
    """Result of one permutation test.

    Attributes
    ----------
    p_value
        For the alternative that was asked for.
    way
        Whether all arrangements were enumerated, their law computed by convolution, or some were drawn.
    n_arrangements
        Arrangements behind the p-value.
    n_moving
        Clusters in which the relabelling changes anything.
    smallest
        A p-value below which none can lie with these data: the chance of the most extreme arrangement
        where the law is exact, else 1 / (R + 1).
    """

    p_value: float
    way: Literal["enumeration", "convolution", "drawn"]
    n_arrangements: int = field(repr=False)  # of thousands of clusters it has too many digits to print
    n_moving: int
    smallest: float

    @property
    def how(self) -> str:
        """In words, how the p-value was computed."""
        return f"{self.n_arrangements:,} drawn" if self.way == "drawn" else f"exact by {self.way}"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Estimates whose p-values were adjusted together.

    Attributes
    ----------
    statistic
        (T - mu) / sd over the arrangements, shape (E,); NaN where nothing moves.
    p_adjusted
        Single-step max-T p-values, shape (E,).
    exact
        Whether all arrangements were enumerated.
    n_arrangements
        Arrangements behind the adjustment.
    """

    statistic: Array
    p_adjusted: Array
    exact: bool
    n_arrangements: int


def block_tests(
    block: Block,
    totals: Array,
    *,
    n_resamples: int,
    seed: int,
    alternative: Alternative = "two-sided",
    n_threads: int = 1,
    chunk: int | None = None,
) -> tuple[Permuted | None, ...]:
    """Permutation p-value of each estimate of a block.

    Under the hypothesis that the labels of the levels are exchangeable within a cluster, each
    cluster's scores are relabelled at random, for all its models, variants and repetitions alike.
    `p = #{|T* - mu| >= |T - mu|} / A` over all A arrangements where they are at most `n_resamples`, or
    where the estimand is linear and its values lie on a lattice (their law is then a convolution);
    else `(b + 1) / (R + 1)` over R drawn ones. One-sided: `T* >= T`, or `T* <= T`. Ties by relative
    tolerance. mu is 0 for contrasts whose coefficients sum to 0, else the mean over arrangements.

    Where R are drawn, mu is known too for two labels if f + f(swapped labels) is one number on the data
    and on some drawn arrangements (half of it); else it is estimated, and ties across it are kept as
    `ties_across` says.

    Parameters
    ----------
    block
        The estimand on the totals.
    totals
        Totals by cluster, shape (G, K).
    n_resamples, seed
        Number of drawn arrangements R, and the seed.
    alternative
        Which arrangements are as extreme as the data.
    n_threads, chunk
        They change the time and the memory, not the result.

    Returns
    -------
    tuple
        One result an estimate; None where the estimand has one level or more than eight, or is undefined.

    References
    ----------
    Phipson, B. and Smyth, G. K. (2010), Permutation p-values should never be zero, Statistical
    Applications in Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.
    """
    n_labels = block.numerators.shape[1]
    if not 2 <= n_labels <= MOST_LABELS:
        return (None,) * len(block.groups)
    data = _Scores.of(block, totals)
    orders = math.factorial(n_labels)
    results: list[Permuted | None] = []
    drawn: Array | None = None
    known = np.full(len(block.groups), 0.0 if _centered(block) else np.nan)
    for place in range(len(block.groups)):
        if not np.isfinite(data.observed[place]):
            results.append(None)
            continue
        moving = data.moving(place)
        n_moving = int(moving.sum())
        exact = _countable(n_moving, orders, n_resamples)
        if not exact and _centered(block):
            found = _convolved(block, place, totals, moving, alternative, data.noise[place])
            if found is not None:
                results.append(Permuted(found[0], "convolution", orders**n_moving, n_moving, found[1]))
                continue
        if exact:
            null = data.only(place).enumerated(moving, n_threads, chunk)[:, 0]
        else:
            if drawn is None:
                drawn = data.drawn(n_resamples, seed, n_threads, chunk)
                known = data.centers(seed)
            null = drawn[:, place]
        own, rounding = float(data.observed[place]), float(data.noise[place])
        center = _center(null, own, float(known[place]), exact=exact)
        b, count = int(as_extreme(null, own, center, alternative, rounding).sum()), len(null)
        if exact:
            smallest = most_extreme(null, center, alternative, rounding) / count
            results.append(Permuted(max(b, 1) / count, "enumeration", count, n_moving, smallest))
        else:
            results.append(Permuted((b + 1) / (count + 1), "drawn", count, n_moving, 1 / (count + 1)))
    return tuple(results)


def block_null(
    block: Block, totals: Array, *, n_resamples: int, seed: int, n_threads: int = 1
) -> tuple[Array, bool]:
    """Estimates of a block under the relabellings of `block_tests`, shape (A, E), and whether A are all.

    Parameters
    ----------
    block, totals, n_resamples, seed, n_threads
        As in `block_tests`; the block has 2 to 8 labels.
    """
    data = _Scores.of(block, totals)
    moving = np.asarray(data.differs.any(axis=1))
    exact = _countable(int(moving.sum()), math.factorial(block.numerators.shape[1]), n_resamples)
    if exact:
        return data.enumerated(moving, n_threads, None), True
    return data.drawn(n_resamples, seed, n_threads, None), False


def max_t(
    blocks: Sequence[Block],
    totals: Array,
    *,
    n_resamples: int,
    seed: int,
    alternative: Alternative = "two-sided",
    n_threads: int = 1,
    chunk: int | None = None,
) -> Family:
    """Single-step max-T p-values of all estimates of some blocks with the same number of labels.

    With `z*[e] = (T*[e] - mu[e]) / sd[e]`, the standard deviation taken over the arrangements,
    `p_adjusted[e] = #{max over e' of |z*[e']| >= |z[e]|} / A`, or `(b + 1) / (R + 1)` where R arrangements
    are drawn. One relabelling a cluster serves all blocks: blocks that name the same labels see the
    same permutation of them, and the difference of any two labels is flipped with the others. Where mu[e] is
    estimated, what may tie with z[e] across it counts too, as in `block_tests`.

    Parameters
    ----------
    blocks, totals, n_resamples, seed, alternative, n_threads, chunk
        As in `block_tests`; the blocks have one number of labels, 2 to 8.

    References
    ----------
    Westfall, P. H. and Young, S. S. (1993), Resampling-Based Multiple Testing, Wiley.
    """
    parts = [_Scores.of(block, totals) for block in blocks]
    moving = np.any([part.differs.any(axis=1) for part in parts], axis=0)
    orders = math.factorial(blocks[0].numerators.shape[1])
    exact = _countable(int(moving.sum()), orders, n_resamples)
    null = np.concatenate(
        [
            part.enumerated(moving, n_threads, chunk)
            if exact
            else part.drawn(n_resamples, seed, n_threads, chunk)
            for part in parts
        ],
        axis=1,
    )
    observed = np.concatenate([part.observed for part in parts])
    noise = np.concatenate([part.noise for part in parts])
    known = np.concatenate([part.centers(seed, exact=exact) for part in parts])
    centers = [
        _center(column, float(own), float(at), exact=exact)
        for column, own, at in zip(null.T, observed, known, strict=True)
    ]
    center = np.array([found.at for found in centers])
    null -= center
    spread = np.sqrt(
        np.mean(null**2, axis=0, where=np.isfinite(null)) if len(null) else np.zeros(len(observed))
    )
    moves = (spread > noise) & np.isfinite(observed)
    statistic = np.full(len(observed), np.nan)
    statistic[moves] = (observed - center)[moves] / spread[moves]
    adjusted = np.where(np.isfinite(observed), 1.0, np.nan)
    if moves.any():
        highest = np.fmax.reduce(oriented(null[:, moves] / spread[moves], alternative), axis=1)
        for e in np.flatnonzero(moves):
            own = float(oriented(statistic[e], alternative))
            extreme = at_least(highest, own, float(noise[e] / spread[e]))
            if alternative == "two-sided":
                extreme |= ties_across(null[:, e], observed[e] - center[e], centers[e], noise[e])
            b = int(extreme.sum())
            adjusted[e] = max(b, 1) / len(null) if exact else (b + 1) / (len(null) + 1)
    return Family(statistic, adjusted, exact, len(null))


def _centered(block: Block) -> bool:
    estimand = block.target.estimand
    return estimand.coefficients is not None and estimand.null == 0


def _center(null: Array, observed: float, known: float, *, exact: bool) -> Center:
    """The center that is known, else the mean over the arrangements."""
    return Center.of(null, observed, exact=exact) if math.isnan(known) else Center(known)


def _countable(n_moving: int, orders: int, n_resamples: int) -> bool:
    """Whether all arrangements of so many clusters are at most the replicates."""
    return n_moving * math.log(orders) <= math.log(n_resamples) + 1e-9


def _convolved(
    block: Block,
    place: int,
    totals: Array,
    moving: NDArray[np.bool_],
    alternative: Alternative,
    noise: float,
) -> tuple[float, float] | None:
    """Exact and smallest p-value of a linear estimate with values on a lattice; None where they are not."""
    coefficients = block.target.estimand.coefficients
    if coefficients is None or len(coefficients) > MOST_CONVOLVED:
        return None
    parts = block.by_label(place, totals)[moving]
    orders = list(permutations(range(len(coefficients))))  # the first one changes nothing
    moves = np.stack([parts[:, order] @ np.array(coefficients) for order in orders], axis=1)
    moves[np.abs(moves) <= noise] = 0.0  # models that cancel leave rounding, which lies on a lattice too
    lattice = lattice_of(moves)
    law = None if lattice is None else permutation_law(lattice)
    if lattice is None or law is None:
        return None
    places = np.arange(law.start, law.start + len(law.mass))
    observed = int(lattice.multiples[:, 0].sum())
    if alternative == "two-sided":
        return tail(law.mass, np.abs(places), abs(observed))
    sign = 1 if alternative == "greater" else -1
    return tail(law.mass, sign * places, sign * observed)


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """What a block's permutations move.

    Attributes
    ----------
    scores
        Sums by cluster, label and combination, shape (G, L, C); labels sorted by name, so that
        estimands of the same labels are relabelled alike.
    back
        Place of each level of the estimand among the sorted labels.
    weights
        Shape (C,); no relabelling changes them.
    differs
        Whether the labels differ in a cluster, shape (G, C).
    noise
        Rounding of each estimate, shape (E,).
    observed
        Estimates as the labels are, shape (E,).
    """

    block: Block
    scores: Array
    back: NDArray[np.int64]
    weights: Array
    differs: NDArray[np.bool_]
    noise: Array
    observed: Array

    @classmethod
    def of(cls, block: Block, totals: Array) -> _Scores:
        order = np.argsort(np.array(block.target.estimand.levels), kind="stable")
        scores = np.ascontiguousarray(totals[:, block.numerators[:, order]].transpose(0, 2, 1))
        sums = totals.sum(axis=0)
        return cls(
            block=block,
            scores=scores,
            back=np.argsort(order),
            weights=sums[block.denominators],
            differs=np.greater(np.ptp(scores, axis=1), ROUNDING * np.abs(scores).max(axis=(0, 1))),
            noise=ROUNDING * block.magnitude(sums),
            observed=block.evaluate(sums),
        )

    def moving(self, place: int) -> NDArray[np.bool_]:
        """Clusters in which a relabelling can change an estimate, shape (G,)."""
        found: NDArray[np.bool_] = np.logical_or.reduce(self.differs[:, self.block.groups[place]], axis=1)
        return found

    def only(self, place: int) -> _Scores:
        """What moves one of the estimates."""
        group = self.block.groups[place]
        return _Scores(
            block=self.block.only(place),
            scores=np.ascontiguousarray(self.scores[..., group]),
            back=self.back,
            weights=self.weights[group],
            differs=self.differs[:, group],
            noise=self.noise[[place]],
            observed=self.observed[[place]],
        )

    def estimates(self, sums: Array) -> Array:
        """Estimates from sums by label, (R, L, C) to (R, E)."""
        return self.block.of_sums(sums[:, self.back].transpose(0, 2, 1), self.weights)

    def enumerated(self, moving: NDArray[np.bool_], n_threads: int, chunk: int | None) -> Array:
        """Estimates under every arrangement of the clusters that move, shape (A, E)."""
        still = self.scores[~moving].sum(axis=0)
        if not moving.any():
            return self.estimates(still[None])
        moved = np.ascontiguousarray(self.scores[moving])
        n_labels, n_combinations = moved.shape[1:]
        arrangements = math.factorial(n_labels) ** len(moved)
        return np.concatenate(
            [
                self.estimates(
                    still + _native.enumerate_blocks(moved, number, first=first, n_threads=n_threads)
                )
                for first, number in chunks(arrangements, n_labels * n_combinations, chunk)
            ]
        )

    def drawn(self, n_resamples: int, seed: int, n_threads: int, chunk: int | None) -> Array:
        """Estimates under drawn arrangements, shape (R, E)."""
        n_labels, n_combinations = self.scores.shape[1:]
        if n_labels > 2:
            return np.concatenate(
                [
                    self.estimates(
                        _native.permute_blocks(self.scores, number, seed, first=first, n_threads=n_threads)
                    )
                    for first, number in chunks(n_resamples, n_labels * n_combinations, chunk)
                ]
            )
        # Two labels: only the difference moves, by its sign.
        differences = np.ascontiguousarray(self.scores[:, 0] - self.scores[:, 1])
        both = self.scores.sum(axis=(0, 1))
        parts = []
        for first, number in chunks(n_resamples, n_labels * n_combinations, chunk):
            signed = _native.sign_flip_totals(differences, number, seed, first=first, n_threads=n_threads)
            parts.append(self.estimates(np.stack([both + signed, both - signed], axis=1) / 2))
        return np.concatenate(parts)

    def centers(self, seed: int, *, exact: bool = False) -> Array:
        """Means over all arrangements where they are known without enumeration, else NaN, shape (E,)."""
        if _centered(self.block):
            return np.zeros(len(self.observed))
        if exact or self.scores.shape[1] != 2:
            return np.full(len(self.observed), np.nan)
        sums = np.concatenate(
            [self.scores.sum(axis=0)[None], _native.permute_blocks(self.scores, PROBES, seed)]
        )
        values, swapped = self.estimates(sums), self.estimates(sums[:, ::-1])
        return centers_by_symmetry(values, swapped, self.noise)
