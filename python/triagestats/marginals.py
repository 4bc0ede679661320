"""Intervals of estimates one by one: means and shares by cluster, and shares of independent answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from triagestats import intervals
from triagestats.binomial_intervals import wilson_score
from triagestats.defaults import BY_QUANTILES, FEWEST_CLUSTERS, Choice, choose_interval, too_few
from triagestats.inference import METHODS
from triagestats.schema import Interval
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Whole = NDArray[np.int64]

__all__ = ["Marginals", "Scarce", "pooled_share", "share_of_counts", "shares_of"]


class Scarce(NamedTuple):
    """Something that an estimate needs and few clusters hold, such as urgent cases."""

    n_clusters: int
    what: str

    def of(self, reason: str | None) -> str | None:
        """A reason, with what it is about before it."""
        return f"{self.what}: {reason}" if self.what and reason else reason


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Estimates, and what the interval of each by itself is read from.

    Attributes
    ----------
    estimate, std_error
        Shape (E,); the error is that of the cluster jackknife, 0 where no cluster moves the estimate.
    n_clusters, n_rows
        Clusters and answers behind each, shape (E,).
    is_rate
        Whether each is a mean of values between 0 and 1.
    successes
        Of rates of independent values 0 and 1, each a cluster of its own, how many are 1; else -1.
    replicates
        Shape (R, E), or (0, E) where nobody reads them.
    interval, smooth
        What is asked, and whether the estimands are differentiable.
    scarce
        What each estimate needs and fewer clusters hold than `n_clusters`; None or () where nothing is.
    """

    estimate: Array
    std_error: Array
    n_clusters: Whole
    n_rows: Whole
    is_rate: tuple[bool, ...]
    successes: Whole
    replicates: Array
    interval: Interval = "auto"
    smooth: bool = True
    scarce: tuple[Scarce | None, ...] = ()

    def read(self, conf_level: float) -> list[dict[str, Any]]:
        """The columns of a tidy row from `estimate` to `n_clusters`, for each estimate.

        A rate of independent values gets Wilson's interval where no other is asked for, and at 0 and 1.
        """
        choices = [self._choice(e) for e in range(len(self.estimate))]
        methods = {choice.method for choice in choices} - {"none"}
        ends = {method: self._ends(method, conf_level) for method in sorted(methods)}
        rows = []
        for e, choice in enumerate(choices):
            row: dict[str, Any] = {
                "estimate": float(self.estimate[e]),
                "std_error": float(self.std_error[e]) if self.std_error[e] > 0 and self.smooth else None,
                "conf_level": conf_level,
                "status": choice.status,
                "reason": choice.reason,
                "method": METHODS[choice.method],
                "n_rows": int(self.n_rows[e]),
                "n_clusters": int(self.n_clusters[e]),
            }
            if not np.isfinite(self.estimate[e]):
                row |= {"status": "undefined", "reason": "nothing to divide by", "method": METHODS["none"]}
            elif choice.method == "kg2" and self.successes[e] >= 0:
                low, high = wilson_score(int(self.successes[e]), int(self.n_rows[e]), conf_level)
                reason = (
                    None
                    if choice.reason is None
                    else choice.reason.replace("Korn-Graubard plus two", "Wilson")
                )
                row |= {"conf_low": low, "conf_high": high, "method": "Wilson", "reason": reason}
            elif choice.method != "none":
                found = ends[choice.method]
                row |= {"conf_low": float(found.low[e]), "conf_high": float(found.high[e])}
                row |= self._doubts(choice, row, conf_level)
            rows.append(row)
        return rows

    def ordered(self, order: Whole) -> Marginals:
        """Some of the estimates, in an order."""
        return replace(
            self,
            estimate=self.estimate[order],
            std_error=self.std_error[order],
            n_clusters=self.n_clusters[order],
            n_rows=self.n_rows[order],
            is_rate=tuple(self.is_rate[place] for place in order),
            successes=self.successes[order],
            replicates=np.ascontiguousarray(self.replicates[:, order]),
            scarce=tuple(self.scarce[place] for place in order) if self.scarce else (),
        )

    def _choice(self, e: int) -> Choice:
        scarce = (self.scarce[e] if self.scarce else None) or Scarce(int(self.n_clusters[e]), "")
        withheld = scarce.n_clusters < FEWEST_CLUSTERS  # whatever the interval: nobody asked for one of few
        choice = choose_interval(
            "auto" if withheld else self.interval,
            is_rate=self.is_rate[e],
            smooth=self.smooth,
            estimable=not np.isnan(self.std_error[e]),
            varies=bool(self.std_error[e] > 0),
            at_boundary=bool(self.estimate[e] in (0.0, 1.0)),
            n_clusters=scarce.n_clusters,
            n_axes=1,
        )
        return replace(choice, reason=scarce.of(choice.reason))

    def _ends(self, method: str, conf_level: float) -> intervals.Ends:
        if method == "kg2":
            return intervals.korn_graubard_plus_two(
                self.estimate,
                self.std_error**2,
                self.n_clusters.astype(np.float64),
                self.n_rows.astype(np.float64),
                conf_level,
            )
        if method == "jackknife-t":
            return intervals.jackknife_t(
                self.estimate, self.std_error, self.n_clusters.astype(np.float64) - 1, conf_level
            )
        return intervals.percentile(self.replicates, conf_level)

    def _doubts(self, choice: Choice, row: dict[str, Any], conf_level: float) -> dict[str, Any]:
        """What the draws add to status and reason."""
        if choice.method not in BY_QUANTILES:
            return {}
        number = len(self.replicates)
        found: dict[str, Any] = {"method": f"{row['method']}, {number:,} drawn"}
        if doubt := too_few(number, conf_level):
            found |= {"status": "warning", "reason": "; ".join(filter(None, (row["reason"], doubt)))}
        return found


def shares_of(successes: Array, sizes: Array, *, binary: bool) -> Marginals:
    """Shares by cluster, `sum successes / sum sizes`, with the linearised error.

    Parameters
    ----------
    successes, sizes
        Sums by cluster, shape (G, E); clusters of size 0 carry no data.
    binary
        Whether all values are 0 and 1; where each cluster then has one, they are independent.
    """
    total, whole = successes.sum(axis=0), sizes.sum(axis=0)
    carries = sizes > 0
    number = carries.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = total / whole
        away = (successes - share * sizes) / whole
        variance = np.where(number > 1, number / (number - 1) * (away**2).sum(axis=0), np.nan)
    still = np.abs(away).max(axis=0, initial=0.0) <= ROUNDING
    alone = binary & (sizes <= 1).all(axis=0)
    return Marginals(
        estimate=share,
        std_error=np.where(still & (number > 1), 0.0, np.sqrt(variance)),
        n_clusters=number,
        n_rows=whole.round().astype(np.int64),
        is_rate=(True,) * len(share),
        successes=np.where(alone, total, -1).astype(np.int64),
        replicates=np.empty((0, len(share))),
    )


def share_of_counts(successes: int, n: int, conf_level: float) -> dict[str, Any]:
    """The columns of a tidy row of a share that is known by its counts alone, with Wilson's interval."""
    low, high = wilson_score(successes, n, conf_level)
    return {
        "estimate": successes / n,
        "conf_low": low,
        "conf_high": high,
        "conf_level": conf_level,
        "status": "ok",
        "method": "Wilson, from counts",
        "n_rows": n,
    }


def pooled_share(successes: Array, sizes: Array) -> Marginals:
    """Plain mean of the shares of M models, with the cluster jackknife error; those without data left out."""
    there = sizes.sum(axis=0) > 0
    totals = np.stack([successes[:, there], sizes[:, there]])
    number = totals[1].sum(axis=-1)
    kept = totals[:, number > 0]
    whole = kept.sum(axis=1)
    left = whole[:, None] - kept
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (whole[0] / whole[1]).mean()
        without = (left[0] / left[1]).mean(axis=-1)[:, None]
    everywhere = np.ones(without.shape, dtype=bool)
    variance, _ = intervals.jackknife_error(without, everywhere)
    still = intervals.spread(without, everywhere) <= ROUNDING
    return Marginals(
        estimate=np.array([float(share)]),
        std_error=np.where(still, 0.0, np.sqrt(variance)),
        n_clusters=np.array([kept.shape[1]]),
        n_rows=np.array([round(float(number.sum()))]),
        is_rate=(True,),
        successes=np.array([-1]),
        replicates=np.empty((0, 1)),
    )
