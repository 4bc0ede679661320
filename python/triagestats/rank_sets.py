"""Ranks of estimates that share clusters: rank sets, chances of being best, and all pairwise verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.marginals import Scarce
from triagestats.tolerances import ROUNDING, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Whole = NDArray[np.int64]

__all__ = ["Contest", "Ranking", "competition_ranks", "tied_sets"]

_BLOCK: Final = 1_024
"""Replicates that are compared at a time, so that they stay in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """One estimate a model, and what a ranking of them is read from.

    Attributes
    ----------
    estimate
        Finite, shape (M,).
    replicates
        Joint bootstrap replicates, shape (R, M).
    leave_one_out
        Estimates without each cluster, shape (G, M).
    contributes
        Whether the cluster carries data for the estimate, shape (G, M).
    higher_is_better
        Whether the largest estimate has rank 1.
    linear
        Whether each estimate is a mean: a difference that no cluster moves then has one sign in all of them.
    smooth
        Whether the estimand is differentiable; where not, errors of differences are the standard deviations
        of their replicates times sqrt(G / (G - 1)), as the jackknife does not hold.
    metric
        What the estimates are, where they are not what is shown: such as the distance behind a score.
    scarce
        What the estimates need and few clusters hold, such as urgent cases.
    """

    estimate: Array
    replicates: Array
    leave_one_out: Array
    contributes: NDArray[np.bool_]
    higher_is_better: bool = True
    linear: bool = False
    smooth: bool = True
    metric: str | None = None
    scarce: Scarce | None = None

    @property
    def n_clusters(self) -> int:
        """Clusters that carry data for any model."""
        return int(self.contributes.any(axis=1).sum())

    @property
    def behind(self) -> Scarce:
        """The clusters that decide whether ranks can be spoken of."""
        return self.scarce or Scarce(self.n_clusters, "")

    def rank(self, conf_level: float) -> Ranking:
        """The ranking, read at a level.

        With q the quantile of `max over pairs |d* - d| / se`, d* the replicates of the difference d and se
        its cluster jackknife error, the critical value of the pairwise differences is
        `c = F^-1(Phi(q sqrt(G / (G - 1))))`, F the t distribution with G - 1 degrees of freedom: replicates
        vary by (G - 1) / G too little, and the error is itself estimated. The rank set of a model reaches
        from 1 + (models that are better) to M - (models that are worse), as the simultaneous intervals
        `d +- c se` say.

        In a simulation of six tied models, scores of 0 and 1, q itself held all of these ranks in .90 of the
        samples of 8 to 30 clusters at nominal .95, and c in .991, .997, .976, .953 and .951 of the samples
        of 8, 12, 20, 30 and 100.
        """
        sign = 1.0 if self.higher_is_better else -1.0
        drawn = self.replicates[np.isfinite(self.replicates).all(axis=1)]
        enough = self.behind.n_clusters >= FEWEST_CLUSTERS and len(drawn) > 0
        rank = competition_ranks(sign * self.estimate[None])[0]
        n_models = len(rank)
        pairs = _compare(self, drawn, conf_level) if enough else _nothing(self.estimate)
        better = np.zeros((n_models, n_models), dtype=bool)  # row is better than column
        better[pairs.first, pairs.second] = sign * pairs.order > 0
        better[pairs.second, pairs.first] = sign * pairs.order < 0
        ranks = competition_ranks(sign * drawn) if enough else np.empty((0, n_models), dtype=np.int64)
        shares = np.full((n_models, n_models), np.nan)
        ends = np.full((2, n_models), np.nan)
        best = np.full(n_models, np.nan)
        if enough:
            code = ranks - 1 + np.arange(n_models) * n_models
            counts = np.bincount(code.reshape(-1), minlength=n_models**2).reshape(n_models, n_models)
            shares = counts / len(ranks)
            ends = _rank_ends(counts, conf_level)
            first = ranks == 1
            best = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
        return Ranking(
            rank=rank,
            percentile_low=ends[0],
            percentile_high=ends[1],
            set_low=1 + better.sum(axis=0),
            set_high=n_models - better.sum(axis=1),
            p_best=best,
            shares=shares,
            better=better,
            pairs=pairs,
            n_drawn=len(drawn),
            withheld=not enough,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """All M (M - 1) / 2 pairwise differences, first minus second, shape (P,) each.

    Attributes
    ----------
    first, second
        Codes of the models.
    difference, std_error
        The error is that of the cluster jackknife, 0 where no cluster moves the difference.
    low, high
        Simultaneous interval, NaN without an error.
    p_adjusted
        Family-wise over all pairs, NaN where the models agree in every cluster.
    order
        1 where the first is larger beyond doubt, -1 where the second is, else 0.
    critical
        c of `Contest.rank`.
    """

    first: Whole
    second: Whole
    difference: Array
    std_error: Array
    low: Array
    high: Array
    p_adjusted: Array
    order: Whole
    critical: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Ranks of M models, read at one level.

    Attributes
    ----------
    rank
        Competition ranks, 1 the best; models that tie share the better rank. Shape (M,).
    percentile_low, percentile_high
        Quantiles of the competition ranks of the replicates, rounded outwards; NaN where withheld.
    set_low, set_high
        Ends of the rank sets, which hold all true ranks at once at the level; 1 and M where withheld.
    p_best
        Share of the replicates in which the model is first; models that tie for it share the replicate.
    shares
        Share of the replicates in which a model (row) has a rank (column, from 1), shape (M, M).
    better
        Whether the model of the row is better than that of the column beyond doubt, shape (M, M).
    pairs
        The differences.
    n_drawn
        Replicates in which all models have a value.
    withheld
        Whether there are too few clusters to speak of a population.
    """

    rank: Whole
    percentile_low: Array
    percentile_high: Array
    set_low: Whole
    set_high: Whole
    p_best: Array
    shares: Array
    better: NDArray[np.bool_]
    pairs: Differences
    n_drawn: int
    withheld: bool

    @property
    def tied(self) -> tuple[tuple[int, ...], ...]:
        """Largest sets of models none of which is better than another, best first; some have one member."""
        order = np.argsort(self.rank, kind="stable").tolist()
        return tied_sets(self.better | self.better.T, order)


def competition_ranks(values: Array) -> Whole:
    """Ranks along the last axis of (R, M), 1 the largest; values that tie share the better rank.

    Values tie when they agree to ten significant digits of the largest.
    """
    columns = np.ascontiguousarray(values.T)
    finite = np.abs(columns[np.isfinite(columns)])
    slack = TIES * float(finite.max(initial=0.0))
    ranks = np.empty(columns.shape, dtype=np.int64)
    for start in range(0, columns.shape[1], _BLOCK):
        block = columns[:, start : start + _BLOCK]
        for model, own in enumerate(block):
            above = np.add.reduce(block > own + slack, axis=0, dtype=np.int16)
            ranks[model, start : start + _BLOCK] = above
    return np.ascontiguousarray(ranks.T) + 1


def tied_sets(separated: NDArray[np.bool_], order: list[int]) -> tuple[tuple[int, ...], ...]:
    """Largest sets of models no two of which are separated, by insertion and absorption.

    Parameters
    ----------
    separated
        Symmetric, shape (M, M).
    order
        The models from best to worst; members and sets come in this order.

    References
    ----------
    Piepho, H.-P. (2004), An algorithm for a letter-based representation of all-pairwise comparisons,
    Journal of Computational and Graphical Statistics 13(2):456-466.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.rank_sets import tied_sets
    >>> apart = np.zeros((3, 3), dtype=bool)
    >>> apart[0, 2] = apart[2, 0] = True
    >>> tied_sets(apart, [0, 1, 2])
    ((0, 1), (1, 2))
    """
    sets = [frozenset(order)]
    for one in order:
        for other in order[order.index(one) + 1 :]:
            if not separated[one, other]:
                continue
            split = [part for s in sets for part in ((s - {one}, s - {other}) if {one, other} <= s else (s,))]
            unique = list(dict.fromkeys(split))
            sets = [s for s in unique if not any(s < larger for larger in unique)]
    place = {model: position for position, model in enumerate(order)}
    ordered = [tuple(sorted(s, key=place.__getitem__)) for s in sets]
    return tuple(sorted(ordered, key=lambda s: [place[model] for model in s]))


def _compare(contest: Contest, drawn: Array, conf_level: float) -> Differences:
    """Differences of all pairs with simultaneous intervals."""
    n_models, size = len(contest.estimate), contest.n_clusters
    first, second = np.triu_indices(n_models, k=1)
    difference = contest.estimate[first] - contest.estimate[second]
    error = _pair_errors(contest) if contest.smooth else _drawn_errors(drawn, contest.estimate, size)
    moves = error > 0
    weight = np.where(moves, 1.0 / np.where(moves, error, 1.0), 0.0)
    largest = np.sort(_largest_deviation(drawn - contest.estimate, weight))
    n = len(largest)
    place = math.ceil(
        round((n + 1) * conf_level, 9)
    )  # the order statistic at which (b + 1) / (n + 1) <= alpha
    critical = _as_t(float(largest[place - 1]), size) if place <= n else math.inf
    distance = _as_drawn(np.abs(difference) * weight, size)
    beyond = n - np.searchsorted(largest, distance - TIES * np.maximum(distance, 1.0))
    p = np.where(moves, (beyond + 1) / (n + 1), np.nan)
    if contest.linear:
        same = (error == 0) & (np.abs(difference) > TIES * np.abs(contest.estimate).max(initial=0.0))
        p = np.where(same, min(1.0, len(first) * 2.0 ** (1 - size)), p)  # sign test, Bonferroni
    with np.errstate(invalid="ignore"):
        half = np.where(moves & math.isfinite(critical), critical * error, np.nan)
        order = np.where(p <= 1 - conf_level + ROUNDING, np.sign(difference), 0.0).astype(np.int64)
    return Differences(
        first, second, difference, error, difference - half, difference + half, p, order, critical
    )


def _as_t(drawn: float, n_clusters: int) -> float:
    """The value of t with G - 1 degrees of freedom whose tail is that of a deviation of replicates."""
    return -float(stdtrit(n_clusters - 1, ndtr(-drawn * math.sqrt(n_clusters / (n_clusters - 1)))))


def _as_drawn(t: Array, n_clusters: int) -> Array:
    """The inverse of `_as_t`: deviations of replicates whose tails are those of values of t."""
    drawn: Array = -ndtri(stdtr(n_clusters - 1, -t)) * math.sqrt((n_clusters - 1) / n_clusters)
    return drawn


def _nothing(estimate: Array) -> Differences:
    """Differences without intervals."""
    first, second = np.triu_indices(len(estimate), k=1)
    nothing = np.full(len(first), np.nan)
    none = np.zeros(len(first), dtype=np.int64)
    difference = estimate[first] - estimate[second]
    return Differences(first, second, difference, nothing, nothing, nothing, nothing, none, math.nan)


def _pair_errors(contest: Contest) -> Array:
    """Cluster jackknife error of each difference, exactly 0 where leaving a cluster out moves nothing."""
    without = np.ascontiguousarray(contest.leave_one_out.T)
    carries = np.ascontiguousarray(contest.contributes.T)
    noise = ROUNDING * float(np.abs(without[np.isfinite(without)]).max(initial=0.0))
    parts = []
    for model in range(len(without) - 1):
        apart = without[model] - without[model + 1 :]
        used = carries[model] | carries[model + 1 :]
        number = used.sum(axis=1)
        center = np.where(used, apart, 0.0).sum(axis=1) / np.maximum(number, 1)
        away = np.where(used, apart - center[:, None], 0.0)
        variance = (number - 1) / np.maximum(number, 1) * (away**2).sum(axis=1)
        moves = ~(np.abs(away).max(axis=1) <= noise)  # NaN stays: nothing is known of that difference
        parts.append(np.where(moves, np.sqrt(variance), 0.0))
    return np.concatenate(parts) if parts else np.empty(0)


def _drawn_errors(drawn: Array, estimate: Array, n_clusters: int) -> Array:
    """Standard deviation of each difference over the replicates (R, M), 0 where it does not vary.

    Times `sqrt(G / (G - 1))`, as replicates of G clusters vary too little.
    """
    scale = math.sqrt(n_clusters / (n_clusters - 1))
    columns = np.ascontiguousarray(drawn.T)
    noise = ROUNDING * float(np.abs(estimate).max(initial=0.0))
    parts = []
    for model in range(len(columns) - 1):
        spread = (columns[model] - columns[model + 1 :]).std(axis=1, ddof=1)
        parts.append(np.where(spread > noise, scale * spread, 0.0))
    return np.concatenate(parts) if parts else np.empty(0)


def _largest_deviation(away: Array, weight: Array) -> Array:
    """Largest weighted difference of each row of (R, M), over all pairs; no array of (R, pairs) is made."""
    columns = np.ascontiguousarray(away.T)
    n_models, number = columns.shape
    largest = np.zeros(number)
    for start in range(0, number, _BLOCK):
        block = columns[:, start : start + _BLOCK]
        kept = largest[start : start + _BLOCK]
        done = 0
        for model in range(n_models - 1):
            others = n_models - 1 - model
            apart = block[model] - block[model + 1 :]
            np.abs(apart, out=apart)
            apart *= weight[done : done + others, None]
            np.maximum(kept, apart.max(axis=0), out=kept)
            done += others
    return largest


def _rank_ends(counts: Whole, conf_level: float) -> Array:
    """Quantiles (definition 6) of ranks that occurred so often, (M, M) to (2, M), rounded outwards."""
    number = int(counts[0].sum())
    tail = (1 - conf_level) / 2
    below = min(max(math.floor(round((number + 1) * tail, 9)), 1), number)
    above = min(max(math.ceil(round((number + 1) * (1 - tail), 9)), 1), number)
    reached = counts.cumsum(axis=1)
    return np.stack([1.0 + (reached < place).sum(axis=1) for place in (below, above)])
