"""How far a coefficient of agreement can be off: by the engine of clusters, or by a large-sample error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from triagestats import intervals, schemes
from triagestats.agreement.functions import Coefficient
from triagestats.arguments import valid_level
from triagestats.array_bootstrap import estimates_of
from triagestats.columns import Shared
from triagestats.defaults import Method
from triagestats.estimates import readable
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.samples import Sample
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "Resampling",
    "Uncertainty",
    "bootstrapped",
    "influences",
    "is_clustered",
    "linearised",
    "normal_interval",
    "of_share",
    "reported",
    "resampling_of",
    "sums_sample",
    "t_test",
    "value_of",
]

_STEP: Final = 1e-30
"""Step of the derivative: imaginary, so that nothing is subtracted and any small number will do."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """What was asked of an interval; `interval` None stands for the default of a function."""

    interval: Method | None
    conf_level: float
    n_resamples: int
    seed: int
    n_threads: int


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """An interval and a standard error, None where there is none, and how they came about."""

    low: float | None = None
    high: float | None = None
    std_error: float | None = None
    how: str = "no interval"
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def resampling_of(
    interval: Method | None, conf_level: float, n_resamples: int, seed: int, n_threads: int | None
) -> Resampling:
    """The arguments of an interval, checked.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If one cannot be used.
    """
    return Resampling(
        interval if interval is None else readable(interval, "cluster"),
        valid_level(conf_level),
        valid_resamples(n_resamples),
        valid_seed(seed),
        thread_count(n_threads),
    )


def is_clustered(shared: Shared | None) -> bool:
    """Whether clusters were asked for; those of a table that were not are only noted."""
    return shared is not None and shared.asked


def value_of(coefficient: Coefficient, totals: NDArray[Any]) -> float | None:
    """The coefficient of all units; None where undefined."""
    value = float(coefficient.evaluate(totals.sum(axis=0)))
    return value if math.isfinite(value) else None


def bootstrapped(
    coefficient: Coefficient, totals: NDArray[Any], asked: Resampling, *, clustered: bool, n_rows: int
) -> Uncertainty:
    """The interval from drawn clusters, percentile where no other was asked for.

    Parameters
    ----------
    coefficient
        Defined for the observed sums.
    totals
        Sums by cluster, or by unit, shape (G, K).
    asked, clustered, n_rows
        The arguments, whether the rows of `totals` are clusters of units, and the number of units.
    """
    size = len(totals)
    if size < 2:
        what = "cluster" if clustered else "unit"
        message = f"There is {size} {what}, and an interval needs at least two."
        return Uncertainty(notes=(Note("few_clusters", message, "caution"),))
    found = estimates_of(
        sums_sample(totals, n_rows),
        lambda means: coefficient.evaluate(means * size),
        interval=asked.interval or "percentile",
        conf_level=asked.conf_level,
        n_resamples=asked.n_resamples,
        seed=asked.seed,
        n_threads=asked.n_threads,
        names=(coefficient.name,),
    )
    row = found.tidy().row(0, named=True)
    low, high, reason = row["conf_low"], row["conf_high"], row["reason"]
    if row["status"] == "degenerate" and coefficient.is_share and row["estimate"] in (0.0, 1.0):
        low, high = intervals.wilson(row["estimate"], size, asked.conf_level)
        reason = (
            "a share of exactly 0 or 1: Wilson's interval of as many units as there are clusters is shown"
        )
    whose = "cluster" if clustered else "unit"
    method = row["method"].replace("cluster bootstrap", f"{whose} bootstrap")
    return Uncertainty(
        low=low,
        high=high,
        std_error=row["std_error"],
        how=f"{whose} {method}" if method.startswith("jackknife") else method,
        details=({"n_clusters": size} if clustered else {})
        | {"n_resamples": asked.n_resamples, "seed": asked.seed},
        notes=(Note(row["status"], f"{reason[0].upper()}{reason[1:]}.", "caution"),) if reason else (),
    )


def sums_sample(totals: NDArray[Any], n_rows: int) -> Sample:
    """Clusters whose sums over their number are read: `means * G` are sums, also without a cluster.

    Parameters
    ----------
    totals
        Sums by cluster, shape (G, K).
    n_rows
        Units behind them.
    """
    size = len(totals)
    whole = totals.sum(axis=0)
    return Sample(
        scheme="cluster",
        draws=schemes.cluster_draws(np.ascontiguousarray(totals)),
        means=lambda sums: sums / size,
        observed=whole / size,
        without=lambda: ((whole - totals) / size,),
        cells=None,
        n_clusters=size,
        n_rows=n_rows,
        studentised=(totals, lambda sums: sums / size),
    )


def influences(coefficient: Coefficient, totals: NDArray[Any]) -> Array:
    """What each cluster adds to the coefficient, to first order, shape (G,): derivatives along its sums."""
    whole = totals.sum(axis=0)
    values = coefficient.evaluate(whole + _STEP * 1j * totals)
    result: Array = values.imag / _STEP
    return result


def linearised(
    coefficient: Coefficient, totals: NDArray[Any], conf_level: float, *, clustered: bool = False
) -> Uncertainty:
    """The large-sample interval with t(G - 1): `var = G / (G - 1) sum u_g^2`, u the centred influences."""
    size, estimate = len(totals), value_of(coefficient, totals)
    if estimate is None or size < 2:
        return Uncertainty()
    values = influences(coefficient, totals)
    error = float(np.sqrt(size / (size - 1) * ((values - values.mean()) ** 2).sum()))
    whose = "cluster" if clustered else "unit"
    details = {"df": float(size - 1)} | ({"n_clusters": size} if clustered else {})
    if error <= ROUNDING:
        message = f"No {whose} moves the coefficient: nothing shows how far it could be off."
        return Uncertainty(
            how="linearised error", details=details, notes=(Note("degenerate", message, "caution"),)
        )
    half = float(stdtrit(size - 1, 0.5 + conf_level / 2)) * error
    return Uncertainty(estimate - half, estimate + half, error, "linearised error, t", details)


def t_test(estimate: float, uncertainty: Uncertainty) -> tuple[float | None, float | None]:
    """Statistic and two-sided p-value of the coefficient being 0, from a linearised error."""
    if uncertainty.std_error is None or "df" not in uncertainty.details:
        return None, None
    statistic = estimate / uncertainty.std_error
    return statistic, 2.0 * float(stdtr(uncertainty.details["df"], -abs(statistic)))


def of_share(share: float, n: int, conf_level: float) -> Uncertainty:
    """Wilson's interval of a share of n units that are taken as independent."""
    low, high = intervals.wilson(share, n, conf_level)
    error = math.sqrt(share * (1 - share) / n)
    return Uncertainty(low, high, error or None, "Wilson interval")


def normal_interval(estimate: float, error: float, conf_level: float) -> tuple[float, float]:
    """`estimate -+ z error`."""
    half = float(ndtri(0.5 + conf_level / 2)) * error
    return estimate - half, estimate + half


def reported(
    *,
    estimand: str,
    estimate: float | None,
    uncertainty: Uncertainty,
    conf_level: float,
    method: str,
    n: int,
    details: Mapping[str, Any],
    notes: tuple[Note, ...],
    statistic: float | None = None,
    p_value: float | None = None,
    alternative: Alternative = "two-sided",
    reason: str = "",
) -> Test:
    """The result; where the estimate is None `reason` says why, and there is no interval."""
    defined = estimate is not None
    kept = uncertainty if defined else Uncertainty()
    told = notes if defined else (Note("undefined", reason, "caution"), *notes)
    return Test(
        estimand=estimand,
        estimate=estimate,
        statistic=statistic if defined else None,
        p_value=p_value if defined else None,
        conf_low=kept.low,
        conf_high=kept.high,
        conf_level=None if kept.low is None else conf_level,
        alternative=alternative,
        method=f"{method}, {kept.how}" if defined else method,
        n=n,
        details={**kept.details, "std_error": kept.std_error, **details},
        notes=(*told, *kept.notes, *_beyond(kept)),
    )


def _beyond(uncertainty: Uncertainty) -> tuple[Note, ...]:
    if uncertainty.high is None or uncertainty.high <= 1.0 + ROUNDING:
        return ()
    message = "The interval passes 1, the largest value there is: a large-sample error in a small sample."
    return (Note("beyond", message, "caution"),)
