"""How far a coefficient of agreement can be off: by the engine of clusters, or by a large-sample error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from triagestats import intervals, schemes
from triagestats.agreement.functions import Coefficient
from triagestats.arguments import valid_level
from triagestats.array_bootstrap import estimates_of
from triagestats.columns import Shared
from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS, Method
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
    "few_of",
    "influences",
    "is_clustered",
    "linearised",
    "measured",
    "normal_interval",
    "reported",
    "resampling_of",
    "sums_sample",
    "t_test",
    "too_few_of",
    "value_of",
    "z_test",
]

_STEP: Final = 1e-30
"""Step of the derivative: imaginary, so that nothing is subtracted and any small number will do."""
_ENOUGH: Final = 30
"""Clusters from which on the percentile interval covers about what it says.

Kappa at 95 %, 3,000 samples a cell (binomial error .004 to .007), the range over three designs: 2 to 7 units
a cluster, two to four categories, kappa .57, .74 and .90. Samples that have no interval, as nothing varies,
do not count: up to .12 of them with 8 clusters, .04 with 12, .01 with 17.

| clusters | percentile | BCa | jackknife t |
|---|---|---|---|
| 8 | .82 to .98 | .85 to .98 | .91 to 1.00 |
| 12 | .88 to .92 | .91 to .98 | .92 to .93 |
| 17 | .90 to .92 | .93 to .96 | .92 to .93 |
| 30 | .92 to .94 | .94 to .95 | .93 to .95 |
| 60 | .94 to .95 | .94 to .95 | .93 to .95 |

With 40 to 60 units a cluster and kappa .91: .91, .92 and .94 for 17 clusters, and .94, .94 and .95 for 30.
Alpha is as kappa, AC1 and the share of agreement up to .02 below. Where each unit is a cluster, alpha of .74
and .88 is covered by .98 and .99 of the percentile intervals of 17 units, .94 and .99 of 30.
"""


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


def measured(
    coefficient: Coefficient,
    totals: Callable[[], NDArray[Any]],
    asked: Resampling,
    shared: Shared | None,
    call: str,
    *,
    n_rows: int,
    alone: Callable[[], Uncertainty] | None = None,
) -> Uncertainty:
    """The interval of a coefficient: of drawn clusters, or of units without clusters.

    Parameters
    ----------
    coefficient
        Defined for the observed sums.
    totals
        Makes the sums by cluster, or by unit, shape (G, K).
    asked, shared, n_rows
        The arguments, the clusters, and the number of units.
    call
        The function, for a note where clusters of a table are ignored.
    alone
        What holds for independent units; None where they are drawn too.
    """
    clustered = is_clustered(shared)
    if clustered or asked.interval is not None or alone is None:
        found = bootstrapped(coefficient, totals(), asked, clustered=clustered, n_rows=n_rows)
    else:
        found = alone()
    if shared is None or clustered:
        return found
    notes = shared.taken_as_independent(f"{call}(..., clusters=...)")
    return replace(found, notes=(*notes, *found.notes))


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
    size, whose = len(totals), "cluster" if clustered else "unit"
    details = {"n_clusters": size} if clustered else {}
    if size < FEWEST_CLUSTERS:
        return Uncertainty(details=details, notes=too_few_of(size, whose))
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
    low, high, status, reason = row["conf_low"], row["conf_high"], row["status"], row["reason"]
    if status == "degenerate":
        low = high = None
        if coefficient.is_share and row["estimate"] in (0.0, 1.0):
            low, high = intervals.wilson(row["estimate"], size, asked.conf_level)
            reason = (
                "a share of exactly 0 or 1: Wilson's interval of as many units as there are clusters is shown"
            )
    elif low is not None and high - low <= ROUNDING:
        low = high = None
        status, reason = "degenerate", "both ends are one value of the replicates: the interval has no width"
    notes = [Note(status, _sentence(reason, whose), "caution")] if reason else []
    plain = clustered and not asked.interval and low is not None and status != "degenerate"
    if plain and FEW_CLUSTERS <= size < _ENOUGH:
        notes.append(_coverage(size))
    method = row["method"].replace("cluster bootstrap", f"{whose} bootstrap")
    return Uncertainty(
        low=low,
        high=high,
        std_error=row["std_error"],
        how=f"{whose} {method}" if method.startswith("jackknife") else method,
        details=details | {"n_resamples": asked.n_resamples, "seed": asked.seed},
        notes=tuple(notes),
    )


def too_few_of(size: int, whose: str) -> tuple[Note, ...]:
    """A note that an interval is withheld."""
    what = "an interval" if whose == "cluster" else "an interval or a test"
    message = f"{size} {whose}{'s' if size != 1 else ''}: too few for {what} ({FEWEST_CLUSTERS} are needed)."
    return (Note(f"few_{whose}s", message, "caution"),)


def few_of(size: int, whose: str) -> tuple[Note, ...]:
    """A note where an interval rests on few units."""
    if size >= FEW_CLUSTERS:
        return ()
    message = f"{size} {whose}s: intervals from fewer than {FEW_CLUSTERS} may cover too little."
    return (Note(f"few_{whose}s", message, "caution"),)


def _sentence(reason: str, whose: str) -> str:
    """A reason of the engine as a sentence, about what was drawn."""
    said = reason if whose == "cluster" else reason.replace("cluster", whose)
    return f"{said[0].upper()}{said[1:]}."


def _coverage(size: int) -> Note:
    message = (
        f"{size} clusters: in simulations of kappa at 95 % the percentile interval covered .88 to .92 with "
        "12 clusters, .90 to .92 with 17 and .92 to .94 with 30, interval='bca' .91 to .98, .93 to .96 and "
        ".94 to .95."
    )
    return Note("coverage", message)


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


def linearised(coefficient: Coefficient, totals: NDArray[Any], conf_level: float) -> Uncertainty:
    """The large-sample interval with t(G - 1): `var = G / (G - 1) sum u_g^2`, u the centred influences."""
    size, estimate = len(totals), value_of(coefficient, totals)
    if estimate is None or size < 2:
        return Uncertainty()
    values = influences(coefficient, totals)
    error = float(np.sqrt(size / (size - 1) * ((values - values.mean()) ** 2).sum()))
    how, details = "linearised error", {"df": float(size - 1)}
    if error <= ROUNDING:
        message = "No unit moves the coefficient: nothing shows how far it could be off."
        return Uncertainty(how=how, details=details, notes=(Note("degenerate", message, "caution"),))
    if size < FEWEST_CLUSTERS:
        return Uncertainty(std_error=error, how=how, details=details, notes=too_few_of(size, "unit"))
    half = float(stdtrit(size - 1, 0.5 + conf_level / 2)) * error
    return Uncertainty(estimate - half, estimate + half, error, f"{how}, t", details, few_of(size, "unit"))


def t_test(estimate: float, uncertainty: Uncertainty) -> tuple[float | None, float | None]:
    """Statistic and two-sided p-value of the coefficient being 0, from a linearised error.

    Where units are too few for an interval, they are too few for the p-value.
    """
    if uncertainty.std_error is None or "df" not in uncertainty.details:
        return None, None
    statistic = estimate / uncertainty.std_error
    if uncertainty.low is None:
        return statistic, None
    return statistic, 2.0 * float(stdtr(uncertainty.details["df"], -abs(statistic)))


def z_test(estimate: float, null_error: float, n: int) -> tuple[float | None, float | None, tuple[Note, ...]]:
    """Statistic and two-sided p-value of the coefficient being 0, and a note where n are too few for p."""
    if null_error <= 0:
        return None, None, ()
    statistic = estimate / null_error
    if n < FEWEST_CLUSTERS:
        return statistic, None, too_few_of(n, "unit")
    return statistic, 2.0 * float(ndtr(-abs(statistic))), ()


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
    least: float = -1.0,
) -> Test:
    """The result; where the estimate is None `reason` says why, and there is no interval.

    `least` is the smallest value that the coefficient can have.
    """
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
        notes=tuple(dict.fromkeys((*told, *kept.notes, *_beyond(kept, least)))),
    )


def _beyond(uncertainty: Uncertainty, least: float) -> tuple[Note, ...]:
    if uncertainty.high is None or uncertainty.low is None:
        return ()
    passed = []
    if uncertainty.high > 1.0 + ROUNDING:
        passed.append("1, the largest value there is")
    if uncertainty.low < least - ROUNDING:
        passed.append(f"{least:.3g}, the smallest value there is")
    if not passed:
        return ()
    message = f"The interval passes {' and '.join(passed)}: a large-sample error in a small sample."
    return (Note("beyond", message, "caution"),)
