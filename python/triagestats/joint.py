"""Joint evidence on several models: estimates, jackknife and replicates of all from one set of draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats import defaults, intervals
from triagestats.errors import ArgumentError
from triagestats.estimands import Estimand, Mean
from triagestats.marginals import Marginals, Scarce
from triagestats.rank_sets import Contest, competition_ranks
from triagestats.resample import bootstrap, thread_count, totals_without, valid_resamples
from triagestats.schemes import cluster_draws
from triagestats.standings import Leaderboard
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Joint", "Means", "best_first", "joint_estimates", "rank_totals"]


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """E estimates with the evidence on all of them together.

    Attributes
    ----------
    estimate, std_error
        Shape (E,); the error is that of the cluster jackknife, 0 where no cluster moves the estimate.
    leave_one_out, replicates
        Shapes (G, E) and (R, E).
    """

    estimate: Array
    std_error: Array
    leave_one_out: Array
    replicates: Array

    def ordered(self, places: Codes) -> Joint:
        """Some of the estimates, in an order."""
        return Joint(
            self.estimate[places],
            self.std_error[places],
            self.leave_one_out[:, places],
            np.ascontiguousarray(self.replicates[:, places]),
        )

    def contest(
        self,
        places: Codes,
        contributes: NDArray[np.bool_],
        *,
        higher_is_better: bool,
        linear: bool = False,
        smooth: bool = True,
        metric: str | None = None,
        scarce: Scarce | None = None,
    ) -> Contest:
        """The contest of some of the estimates, given by their places."""
        return Contest(
            estimate=self.estimate[places],
            replicates=np.ascontiguousarray(self.replicates[:, places]),
            leave_one_out=self.leave_one_out[:, places],
            contributes=contributes,
            higher_is_better=higher_is_better,
            linear=linear,
            smooth=smooth,
            metric=metric,
            scarce=scarce,
        )


def joint_estimates(
    evaluate: Callable[[Array, int], Array],
    totals: NDArray[np.generic],
    *,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Joint:
    """Estimates of totals by cluster, shape (G, K).

    Parameters
    ----------
    evaluate
        From sums (..., K) over so many clusters to estimates (..., E).
    """
    size = len(totals)
    values = totals.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = evaluate(values.sum(axis=0), size)
        without = evaluate(totals_without(values), size - 1)
        replicates = bootstrap(
            lambda sums: evaluate(sums, size),
            cluster_draws(totals),
            n_resamples=valid_resamples(n_resamples, len(estimate)),
            seed=seed,
            n_threads=n_threads,
        )
    everywhere = np.ones(without.shape, dtype=bool)
    variance, _ = intervals.jackknife_error(without, everywhere)
    still = intervals.spread(without, everywhere) <= ROUNDING * np.maximum(np.abs(estimate), 1.0)
    return Joint(estimate, np.where(still, 0.0, np.sqrt(variance)), without, replicates)


def best_first(estimate: Array, *, higher_is_better: bool) -> Codes:
    """Places from the best estimate to the worst, those that tie as they came."""
    sign = 1.0 if higher_is_better else -1.0
    order: Codes = np.argsort(competition_ranks(sign * estimate[None])[0], kind="stable")
    return order


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Sums by cluster behind an estimand of M models, averaged over combinations of other conditions.

    Attributes
    ----------
    estimand
        The function of the level means, (..., L) to (...).
    scores
        One array (G, M, L) a combination: sums over the scenarios of a cluster.
    sizes
        One array (G, M) a combination: how many scenarios.
    """

    estimand: Estimand
    scores: tuple[Array, ...]
    sizes: tuple[Array, ...]

    def joint(self, *, n_resamples: int, seed: int, n_threads: int) -> Joint:
        """Estimates of the models.

        Sizes that are the same in all clusters are not drawn, and combinations of one level and one such
        size are added up first: whole numbers then stay whole.
        """
        constant = all((size == size[0, 0]).all() for size in self.sizes)
        evaluate: Callable[[Array, int], Array]
        if constant and isinstance(self.estimand, Mean) and len({size[0, 0] for size in self.sizes}) == 1:
            share = 1.0 / (len(self.sizes) * float(self.sizes[0][0, 0]))
            totals = np.sum([part[..., 0] for part in self.scores], axis=0)

            def scaled(sums: Array, number: int) -> Array:
                means: Array = sums * (share / number)
                return means

            evaluate = scaled

        else:
            totals, evaluate = self._ratios(constant=constant)
        return joint_estimates(evaluate, totals, n_resamples=n_resamples, seed=seed, n_threads=n_threads)

    def _ratios(self, *, constant: bool) -> tuple[Array, Callable[[Array, int], Array]]:
        """Totals of scores, then of sizes, and what reads them."""
        n_clusters, n_models, n_levels = self.scores[0].shape
        width = n_models * n_levels
        columns = [part.reshape(n_clusters, width) for part in self.scores]
        if not constant:
            columns += list(self.sizes)
        ends = len(self.scores) * width

        def evaluate(sums: Array, number: int) -> Array:
            total: Array | float = 0.0
            for place, size in enumerate(self.sizes):
                part = sums[..., place * width : (place + 1) * width]
                first = ends + place * n_models
                weight = size[0] * number if constant else sums[..., first : first + n_models]
                means = part.reshape(*part.shape[:-1], n_models, n_levels) / weight[..., None]
                total = total + self.estimand.evaluate(means)
            result: Array = np.divide(total, len(self.sizes))
            return result

        return np.concatenate(columns, axis=1), evaluate

    @property
    def contributes(self) -> NDArray[np.bool_]:
        """Whether a cluster carries data of a model, shape (G, M)."""
        found: NDArray[np.bool_] = np.any([size > 0 for size in self.sizes], axis=0)
        return found


def rank_totals(
    scores: Array,
    models: Sequence[str],
    *,
    sizes: Array | None = None,
    metric: str = "mean",
    is_rate: bool = False,
    higher_is_better: bool = True,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Leaderboard:
    """Leaderboard of M models from sums by cluster; the mean of a model is `sum scores / sum sizes`.

    Parameters
    ----------
    scores
        Sums of scores, shape (G, M).
    models
        Names, M of them.
    sizes
        What each sum is over, shape (G, M) or (G, 1); 1 where not given.
    metric, is_rate, higher_is_better
        Its name, whether scores lie between 0 and 1, and whether more is better.
    conf_level, n_resamples, seed, n_threads
        As in `leaderboard`.

    Raises
    ------
    ArgumentError
        If the shapes do not go together.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.joint import rank_totals
    >>> right = np.array([[1, 1, 0]] * 9 + [[1, 0, 0]] * 11)
    >>> rank_totals(right, ["a", "b", "c"], is_rate=True).standings["rank"].to_list()
    [1, 2, 3]
    """
    if scores.ndim != 2 or scores.shape[1] != len(models):
        raise ArgumentError(
            f"`scores` must have one column a model: got {scores.shape} and {len(models)} models"
        )
    whole = (
        np.ones(scores.shape) if sizes is None else np.broadcast_to(sizes, scores.shape).astype(np.float64)
    )
    used = whole.sum(axis=1) > 0
    means = Means(Mean("all"), (scores[used, :, None],), (whole[used],))
    joint = means.joint(n_resamples=n_resamples, seed=seed, n_threads=thread_count(n_threads))
    order = best_first(joint.estimate, higher_is_better=higher_is_better)
    return Leaderboard(
        metric=metric,
        models=tuple(models[place] for place in order),
        unranked=(),
        marginals=marginals_of(joint, order, means, whole[used].sum(axis=0), is_rate=is_rate),
        contest=joint.contest(
            order, means.contributes[:, order], higher_is_better=higher_is_better, linear=True
        ),
        extras=(),
        flags=None,
        n_scenarios=round(float(whole.sum(axis=0).max())),
        higher_is_better=higher_is_better,
        conf_level=conf_level,
        n_resamples=n_resamples,
        seed=seed,
    )


def marginals_of(joint: Joint, order: Codes, means: Means, n_rows: Array, *, is_rate: bool) -> Marginals:
    """What the interval of each model by itself is read from, in an order."""
    return Marginals(
        estimate=joint.estimate[order],
        std_error=joint.std_error[order],
        n_clusters=means.contributes.sum(axis=0)[order],
        n_rows=n_rows[order].astype(np.int64),
        is_rate=(is_rate,) * len(order),
        successes=np.full(len(order), -1),
        replicates=joint.replicates[:, order] if not means.estimand.smooth else np.empty((0, len(order))),
        smooth=means.estimand.smooth,
    )
