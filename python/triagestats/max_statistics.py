"""P-values adjusted by the largest of several statistics under a common null, in one step or step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.errors import DataError
from triagestats.extremes import oriented
from triagestats.flipped import flipped_sums
from triagestats.results import Alternative
from triagestats.tolerances import ROUNDING, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Null", "sign_flip_null"]


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """Statistics, and what they are where all hypotheses hold.

    Attributes
    ----------
    statistics
        Observed, shape (E,).
    replicates
        Under the joint null, shape (R, E).
    exact
        Whether the replicates are all arrangements of the data, the observed one among them.
    shown
        The statistics in the form in which they are reported; NaN where they have none.
    """

    statistics: Array
    replicates: Array
    exact: bool
    shown: Array

    def raw(self, alternative: Alternative) -> Array:
        """P-values of each by itself, shape (E,)."""
        own, null = self._oriented(alternative)
        slack = self._slack()
        return np.array([self._share(null[:, e], own[e], slack[e]) for e in range(len(own))])

    def adjusted(self, alternative: Alternative, family: NDArray[np.int64], *, step_down: bool) -> Array:
        """Adjusted p-values of the statistics of a family, given by their places.

        In one step each is compared with the largest of all replicates. Stepping down, the largest
        statistic is compared so, the next one with the largest of the others, and so on; no p-value is
        below that of a larger statistic.
        """
        own, null = self._oriented(alternative)
        own, null, slack = own[family], null[:, family], self._slack()[family]
        order = np.argsort(-own, kind="stable")
        largest = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
        found = np.empty(len(own))
        for step, e in enumerate(order.tolist()):
            found[e] = self._share(largest[:, step if step_down else 0], own[e], slack[e])
        found[order] = np.maximum.accumulate(found[order])
        return found

    def _oriented(self, alternative: Alternative) -> tuple[Array, Array]:
        return oriented(self.statistics, alternative), oriented(self.replicates, alternative)

    def _slack(self) -> Array:
        """How far a replicate may lie below a statistic and still tie with it."""
        typical = np.median(np.abs(self.replicates), axis=0)
        slack: Array = TIES * np.maximum(np.abs(self.statistics), typical)
        return slack

    def _share(self, null: Array, own: float, slack: float) -> float:
        b = int((null >= own - slack).sum())
        if not self.exact:
            return (b + 1) / (len(null) + 1)
        if not b:
            raise DataError(
                "`replicates` hold none as extreme as `statistics`; with `exact=True` they must be all "
                "arrangements of the data, the observed one among them"
            )
        return b / len(null)


def sign_flip_null(totals: Array, n_resamples: int, seed: int) -> Null:
    """Statistics of mean differences under sign flips by cluster.

    Statistics and replicates are sum(t) / sqrt(sum(t^2)), t the totals of the G clusters. That rises with
    the one-sample t statistic of the totals, by one function for all columns, so that the p-values are those
    of t; and it does not overflow where all totals agree.

    Parameters
    ----------
    totals
        Sums of differences by cluster, shape (G, E).
    n_resamples, seed
        All 2^G flips are taken where they are at most `n_resamples`; else so many are drawn.
    """
    largest = np.abs(totals).max(axis=0)
    shares = totals / np.where(largest > 0, largest, 1.0)  # whose squares do not overflow
    scale = np.sqrt((shares**2).sum(axis=0))
    unit = shares / np.where(scale > 0, scale, 1.0)
    null, exact = flipped_sums(unit, n_resamples, seed)
    own = unit.sum(axis=0)
    shown = np.where(scale > 0, _t_statistics(own, len(totals)), np.nan)
    return Null(own, null, exact, shown)


def _t_statistics(own: Array, n_clusters: int) -> Array:
    """One-sample t of the totals; infinite where all agree."""
    left = n_clusters - own**2
    left = np.where(left <= ROUNDING * n_clusters, 0.0, left)
    with np.errstate(divide="ignore"):
        t: Array = own * np.sqrt((n_clusters - 1) / left)
    return t
