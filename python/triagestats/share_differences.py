"""The difference of two shares whose rows differ: its error by cluster, with a floor, and Welch's t."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats import intervals
from triagestats.defaults import choose_interval
from triagestats.inference import METHODS
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ShareDifference", "difference_of_shares"]


@dataclass(frozen=True, slots=True)
class _Side:
    """A share with its own error.

    Attributes
    ----------
    name
        What it is called.
    share, variance
        The variance is that of the cluster jackknife, or the floor.
    n_clusters
        Clusters that carry data.
    floor
        The variance that stands in where all clusters agree; 0 where they do not.
    """

    name: str
    share: float
    variance: float
    n_clusters: int
    floor: float


@dataclass(frozen=True, slots=True, eq=False)
class ShareDifference:
    """First share minus second, and what its interval is read from.

    Attributes
    ----------
    sides
        The two shares.
    estimate, variance, df
        The difference, its variance, and Welch's degrees of freedom; NaN where a share is undefined.
    n_clusters, n_rows
        Clusters of both together, and the rows that are shown.
    """

    sides: tuple[_Side, _Side]
    estimate: float
    variance: float
    df: float
    n_clusters: int
    n_rows: int

    def read(self, conf_level: float) -> list[dict[str, Any]]:
        """The columns of a tidy row from `estimate` to `n_clusters`."""
        fewer = min(self.sides, key=lambda side: side.n_clusters)
        row: dict[str, Any] = {
            "estimate": self.estimate,
            "conf_level": conf_level,
            "n_rows": self.n_rows,
            "n_clusters": self.n_clusters,
        }
        if not np.isfinite(self.estimate):
            reason = f"{fewer.name} has no row: nothing to divide by"
            return [row | {"status": "undefined", "reason": reason, "method": METHODS["none"]}]
        choice = choose_interval(
            "auto",
            is_rate=False,
            smooth=True,
            estimable=True,
            varies=True,
            at_boundary=False,
            n_clusters=fewer.n_clusters,
            n_axes=1,
        )
        doubts = [f"{fewer.name}: {choice.reason}"] if choice.reason else []
        row |= {"status": choice.status, "method": METHODS[choice.method]}
        error, df, estimate = (np.array([x]) for x in (self.variance**0.5, self.df, self.estimate))
        if choice.method != "none":
            ends = intervals.jackknife_t(estimate, error, df, conf_level)
            row |= {
                "std_error": float(error[0]),
                "conf_low": max(-1.0, float(ends.low[0])),
                "conf_high": min(1.0, float(ends.high[0])),
                "statistic": float(estimate[0] / error[0]),
                "df": self.df,
                "p_value": float(intervals.t_p_value(estimate, error, df)[0]),
                "method": f"{METHODS[choice.method]}; t test",
            }
            if still := [side.name for side in self.sides if side.floor > 0]:
                row["status"] = "warning"
                doubts.append(
                    f"all clusters agree in {' and in '.join(still)}: the error is that with one all-right "
                    "and one all-wrong cluster added"
                )
        elif self.variance > 0 and not any(side.floor for side in self.sides):
            row["std_error"] = float(error[0])
        return [row | {"reason": "; ".join(doubts) or None}]


def difference_of_shares(
    first: tuple[Array, Array],
    second: tuple[Array, Array],
    names: tuple[str, str],
    n_rows: int | None = None,
) -> ShareDifference:
    """First share minus second, from sums of successes and sizes by cluster, shape (G,) each.

    The two may lie in the same clusters or not. The variance is that of the jackknife over the clusters of
    both. Where all clusters of a side agree, as at a share of 0 or 1, the side adds the variance that it has
    with one all-right and one all-wrong cluster more: with p the share, m = (G p + 1) / (G + 2),

        (G (p - m)^2 + (1 - m)^2 + m^2) / ((G + 1) (G + 2))

    The degrees of freedom are Welch's of both sides, (V1 + V2)^2 / (V1^2 / (G1 - 1) + V2^2 / (G2 - 1)), and
    at most one less than there are clusters. In a simulation of 5 to 12 clusters against 5 to 200, at rates
    from .05 to .9, the interval covered .935 and more at nominal .95.

    References
    ----------
    Welch, B. L. (1947), The generalization of Student's problem when several different population variances
    are involved, Biometrika 34(1-2):28-35, doi:10.1093/biomet/34.1-2.28.
    """
    totals = np.stack([np.stack(first, axis=1), np.stack(second, axis=1)])
    kept = totals[:, totals[..., 1].sum(axis=0) > 0]
    whole = kept.sum(axis=1)
    one, two = (_side(name, *part.T) for name, part in zip(names, kept, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = whole[:, None] - kept
        shares = left[..., 0] / left[..., 1]
    without = (shares[0] - shares[1])[:, None]
    everywhere = np.ones(without.shape, dtype=bool)
    variance = float(intervals.jackknife_error(without, everywhere)[0][0])
    if intervals.spread(without, everywhere)[0] <= ROUNDING:
        variance = 0.0
    return ShareDifference(
        sides=(one, two),
        estimate=one.share - two.share,
        variance=variance + one.floor + two.floor,
        df=_welch(one, two, kept.shape[1]),
        n_clusters=kept.shape[1],
        n_rows=round(float(whole[:, 1].sum())) if n_rows is None else n_rows,
    )


def _side(name: str, successes: Array, sizes: Array) -> _Side:
    there = sizes > 0
    successes, sizes = successes[there], sizes[there]
    number = len(sizes)
    if number < 2:
        share = float(successes[0] / sizes[0]) if number else float("nan")
        return _Side(name, share, float("nan"), number, 0.0)
    share = float(successes.sum() / sizes.sum())
    without = ((successes.sum() - successes) / (sizes.sum() - sizes))[:, None]
    everywhere = np.ones(without.shape, dtype=bool)
    if intervals.spread(without, everywhere)[0] > ROUNDING:
        return _Side(name, share, float(intervals.jackknife_error(without, everywhere)[0][0]), number, 0.0)
    m = (number * share + 1) / (number + 2)
    spread = number * (share - m) ** 2 + (1 - m) ** 2 + m**2
    floor = spread / ((number + 1) * (number + 2))
    return _Side(name, share, floor, number, floor)


def _welch(one: _Side, two: _Side, n_clusters: int) -> float:
    if min(one.n_clusters, two.n_clusters) < 2:
        return float("nan")
    parts = sum(side.variance**2 / (side.n_clusters - 1) for side in (one, two))
    return min((one.variance + two.variance) ** 2 / parts, n_clusters - 1.0)
