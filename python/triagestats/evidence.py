"""What intervals are read from: estimates, their errors by cluster, and bootstrap replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats import intervals
from triagestats.blocks import Block
from triagestats.defaults import Method
from triagestats.lattice import Law, bootstrap_law, lattice_of
from triagestats.resample import bootstrap, leave_one_out
from triagestats.schemes import Crossed, Draws, cluster_draws
from triagestats.studentise import studentised
from triagestats.tolerances import ROUNDING
from triagestats.totals import Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Evidence", "gather_evidence"]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What intervals are read from, at any level.

    Attributes
    ----------
    estimate, std_error, df
        Shape (E,). The error is that of the jackknife by cluster, V1 + V2 - V12 with two axes; 0 where
        nothing varies, NaN where a model or level rests on one cluster.
    replicates
        Bootstrap estimates (R, E), from product weights with two axes; (0, E) where nobody reads them.
    pivots
        Studentised replicates (R, E), for bootstrap-t; (0, E) where nobody reads them.
    laws
        Exact bootstrap law of each estimate, where it is a sum of lattice values; None elsewhere.
    leave_one_out, contributes
        Along the first axis, shape (G, E).
    rate_variance
        Variance that the interval of a rate reads: the linearised one of a mean, with two axes the
        squared `std_error`; NaN for estimands of several levels, shape (E,).
    n_clusters
        Clusters that carry data, the smaller number of two axes, shape (E,).
    varies
        Whether leaving a cluster out, or drawing others, changes the estimate, shape (E,).
    one_way
        Estimates whose error uses one axis only, as the other has one cluster for them, shape (E,).
    repaired
        Estimates for which V1 + V2 - V12 is not positive, and the larger of V1 and V2 stands, shape (E,).
    strata
        Stratum codes of the clusters, shape (G,); None without strata.
    """

    estimate: Array
    std_error: Array
    df: Array
    replicates: Array
    pivots: Array
    laws: tuple[Law | None, ...]
    leave_one_out: Array
    contributes: NDArray[np.bool_]
    rate_variance: Array
    n_clusters: NDArray[np.int64]
    varies: NDArray[np.bool_]
    one_way: NDArray[np.bool_]
    repaired: NDArray[np.bool_]
    strata: NDArray[np.uint32] | None = None

    def doubts(self, e: int) -> list[str]:
        """What is doubtful about the two-way error of one estimate, in words."""
        found = []
        if self.one_way[e]:
            found.append("one cluster along one of the two cluster axes: the error uses the other only")
        if self.repaired[e]:
            found.append("the two-way variance is not positive: the larger of the one-way variances is used")
        return found

    def ends(self, method: Method, conf_level: float) -> intervals.Ends:
        """All intervals by one method, NaN where it does not apply."""
        ends = self._ends(method, conf_level)
        return intervals.Ends(*(np.where(np.isfinite(end), end, np.nan) for end in (ends.low, ends.high)))

    def _ends(self, method: Method, conf_level: float) -> intervals.Ends:
        estimate, replicates = self.estimate, self.replicates
        if method == "jackknife-t":
            return intervals.jackknife_t(estimate, self.std_error, self.df, conf_level)
        if method == "bootstrap-t" and len(self.pivots):
            return intervals.bootstrap_t(estimate, self.std_error, self.pivots, conf_level)
        if method == "percentile" and len(replicates):
            return self._exact(intervals.percentile(replicates, conf_level), conf_level)
        if method == "basic" and len(replicates):
            ends = self._exact(intervals.percentile(replicates, conf_level), conf_level)
            return intervals.Ends(2 * estimate - ends.high, 2 * estimate - ends.low)
        if method == "normal" and len(replicates):
            return intervals.normal(estimate, replicates, conf_level)
        if method == "max-t" and len(replicates):
            return intervals.max_t(estimate, self.std_error, replicates, conf_level)
        if method == "bca" and len(replicates) and len(self.leave_one_out):
            return intervals.bca(
                estimate, replicates, self.leave_one_out, self.contributes, conf_level, self.strata
            )
        nothing = np.full(len(estimate), np.nan)
        return intervals.Ends(nothing, nothing)

    def _exact(self, ends: intervals.Ends, conf_level: float) -> intervals.Ends:
        """Percentile ends without Monte Carlo error where the law is known."""
        for e, law in enumerate(self.laws):
            if law is not None:
                ends.low[e], ends.high[e] = law.interval(conf_level)
        return ends


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """The jackknife along one way to cut the totals into clusters."""

    without: Array
    contributes: NDArray[np.bool_]
    variance: Array
    size: NDArray[np.int64]
    varies: NDArray[np.bool_]


def gather_evidence(
    blocks: Sequence[Block],
    totals: Totals,
    *,
    n_resamples: int,
    seed: int,
    n_threads: int = 1,
    studentise: bool = False,
    draws: Draws | None = None,
    strata: NDArray[np.uint32] | None = None,
) -> Evidence:
    """Observed values, errors and replicates of all blocks, from one set of draws.

    Parameters
    ----------
    blocks, totals
        The estimands, and the totals that they read.
    n_resamples, seed
        Number of replicates R and the seed; no replicates are made for R = 0.
    studentise
        Whether to make the pivots of bootstrap-t (one axis).
    draws
        The scheme; by default clusters with replacement, with two axes both of them.
    strata
        Stratum codes of the clusters, where these are drawn within strata.
    n_threads
        Changes no result.
    """

    def evaluate(values: Array, *, drop_empty: bool = False) -> Array:
        return np.concatenate([block.evaluate(values, drop_empty=drop_empty) for block in blocks], axis=-1)

    estimate = evaluate(totals.sums)
    magnitude = np.concatenate([block.magnitude(totals.sums) for block in blocks])
    noise = ROUNDING * np.maximum(np.abs(estimate), magnitude)

    def way(values: Array, *, drop_empty: bool = False) -> _Way:
        without = leave_one_out(lambda rest: evaluate(rest, drop_empty=drop_empty), values, strata)
        contributes = np.concatenate([block.contributes(values) for block in blocks], axis=-1)
        variance, size = intervals.jackknife_error(without, contributes, strata)
        varies = intervals.spread(without, contributes) > noise
        return _Way(without, contributes, np.where(varies | np.isnan(variance), variance, 0.0), size, varies)

    # Leaving a model out leaves the mean over the other models.
    ways = [way(totals.along(k), drop_empty=axis.by == "model") for k, axis in enumerate(totals.axes)]
    first = ways[0]
    varies = np.any([one.varies for one in ways], axis=0)
    replicates = np.empty((0, len(estimate)))
    laws: tuple[Law | None, ...] = (None,) * len(estimate)
    pivots = np.empty((0, len(estimate)))
    nowhere = np.zeros(len(estimate), dtype=bool)
    if len(ways) == 2:
        variance, size, one_way, repaired = _two_way(ways[0], ways[1], way(totals.cells).variance)
        rate_variance = variance
    else:
        variance, size, one_way, repaired = first.variance, first.size, nowhere, nowhere
        rate_variance = np.concatenate([_linear_variance(block, totals.values) for block in blocks])
        if n_resamples > 0 and draws is None:
            laws = tuple(_law(block, e, totals.values) for block in blocks for e in range(len(block.groups)))
    if n_resamples > 0:
        scheme = draws or (
            cluster_draws(totals.values) if len(ways) == 1 else Crossed(np.ascontiguousarray(totals.values))
        )
        replicates = bootstrap(evaluate, scheme, n_resamples=n_resamples, seed=seed, n_threads=n_threads)
        still = np.flatnonzero(~varies)
        drawn = replicates[:, still]
        varies[still] = intervals.spread(drawn, np.isfinite(drawn)) > noise[still]
        if studentise and len(ways) == 1:
            pivots = studentised(
                evaluate,
                totals.values,
                estimate,
                np.sqrt(variance),
                first.contributes,
                n_resamples=n_resamples,
                seed=seed,
                n_threads=n_threads,
            )
    return Evidence(
        estimate=estimate,
        std_error=np.sqrt(variance),
        df=(size - (1 if strata is None else int(strata.max()) + 1)).astype(np.float64),
        replicates=replicates,
        pivots=pivots,
        laws=laws,
        leave_one_out=first.without,
        contributes=first.contributes,
        rate_variance=rate_variance,
        n_clusters=size,
        varies=varies,
        one_way=one_way,
        repaired=repaired,
        strata=strata,
    )


def _law(block: Block, place: int, totals: Array) -> Law | None:
    """Exact bootstrap law of one estimate; None unless it is a sum over clusters of lattice values."""
    coefficients = block.target.estimand.coefficients
    if coefficients is None or not block.is_sum(place, totals):
        return None
    lattice = lattice_of(block.by_label(place, totals) @ np.array(coefficients))
    return None if lattice is None else bootstrap_law(lattice, len(totals))


def _two_way(
    first: _Way, second: _Way, both: Array
) -> tuple[Array, NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Variance, clusters, and where one axis stands alone or the larger variance stands in."""
    variance, repaired = intervals.two_way_variance(first.variance, second.variance, both)
    size = np.minimum(first.size, second.size)
    for alone, other in ((first, second), (second, first)):
        only = other.size < 2
        variance = np.where(only, alone.variance, variance)
        size = np.where(only, alone.size, size)
    one_way = (first.size < 2) | (second.size < 2)
    return variance, size, one_way, repaired & ~one_way


def _linear_variance(block: Block, totals: Array) -> Array:
    """G / (G - 1) times the sum of squared influences; NaN for an estimand of several levels."""
    if len(block.target.estimand.levels) != 1:
        return np.full(len(block.groups), np.nan)
    size = block.contributes(totals).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance: Array = size / (size - 1) * (block.influence(totals) ** 2).sum(axis=0)
    return variance
