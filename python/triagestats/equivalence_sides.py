"""The two one-sided tests of a difference against two bounds, one function a method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from triagestats import intervals
from triagestats.errors import ArgumentError, DataError
from triagestats.locations import hodges_lehmann
from triagestats.margin_tests import score_tests, tango_tests, wald_tests
from triagestats.resample import chunks
from triagestats.results import Note
from triagestats.schemes import Multiplicities
from triagestats.score_intervals import difference_interval, normal_quantile, tango_interval
from triagestats.signed_ranks import wilcoxon_signed_rank
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "Bounds",
    "MeanError",
    "Side",
    "Sides",
    "bootstrap_sides",
    "cluster_error",
    "count_sides",
    "mean_error",
    "percentile_sides",
    "pivots_of",
    "rank_sides",
    "t_sides",
    "tango_sides",
    "two_sample_error",
]

CONSTANT: Final = "all differences are equal, so nothing shows how far they could be off"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What counts as equal: above `low` and below `high`, each tested at level `alpha`."""

    low: float
    high: float
    alpha: float

    @property
    def conf_level(self) -> float:
        """Level of the interval that lies between the bounds where both tests reject."""
        return 1 - 2 * self.alpha


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tests; both None where it is undefined."""

    statistic: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Sides:
    """Both tests with their estimate and interval.

    Attributes
    ----------
    lower
        The test that the difference is not above the lower bound.
    upper
        The test that it is not below the upper bound.
    ends
        The 1 - 2 alpha interval; None where it is undefined.
    method
        The method in words.
    details
        What else it knows.
    undefined
        Why the tests are undefined, None where they are not.
    """

    estimate: float
    lower: Side
    upper: Side
    ends: tuple[float, float] | None
    method: str
    details: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    undefined: str | None = None

    def withheld(self, why: str) -> Sides:
        """The estimate alone, and why there is no more."""
        nothing = Side(None, None)
        return replace(self, lower=nothing, upper=nothing, ends=None, undefined=why)


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean difference with its standard error and degrees of freedom; the error is 0 for constant data."""

    estimate: float
    std_error: float
    df: float


def mean_error(differences: Array, scale: float) -> MeanError:
    """Mean, sd / sqrt(n) and n - 1; an sd that is rounding of values of size `scale` is 0."""
    n = len(differences)
    if n < 2:
        raise DataError(f"a t test needs two pairs or more; got {n}")
    deviation = float(differences.std(ddof=1))
    if deviation <= ROUNDING * scale:
        deviation = 0.0
    return MeanError(float(differences.mean()), deviation / n**0.5, n - 1.0)


def two_sample_error(x: Array, y: Array, *, pooled: bool) -> MeanError:
    """Difference of the means of two samples, by Welch or with a pooled variance."""
    n, m = len(x), len(y)
    if min(n, m) < 2:
        raise DataError(f"both samples need two values or more; they have {n} and {m}")
    v, w = float(x.var(ddof=1)), float(y.var(ddof=1))
    if max(v, w) ** 0.5 <= ROUNDING * float(np.abs(np.concatenate([x, y])).max()):
        return MeanError(float(x.mean() - y.mean()), 0.0, n + m - 2.0)
    if pooled:
        df = n + m - 2.0
        variance = ((n - 1) * v + (m - 1) * w) / df * (1 / n + 1 / m)
    else:
        variance = v / n + w / m
        df = variance**2 / ((v / n) ** 2 / (n - 1) + (w / m) ** 2 / (m - 1))
    return MeanError(float(x.mean() - y.mean()), variance**0.5, df)


def cluster_error(differences: Array, codes: NDArray[np.int64], scale: float) -> MeanError:
    """Mean over rows with the delete-one-cluster jackknife error and G - 1 degrees of freedom."""
    totals = np.stack([np.bincount(codes, weights=differences), np.bincount(codes)], axis=1)
    without = totals.sum(axis=0) - totals
    values = (without[:, 0] / without[:, 1])[:, None]
    everywhere = np.ones(values.shape, dtype=bool)
    variance, _ = intervals.jackknife_error(values, everywhere)
    varies = intervals.spread(values, everywhere)[0] > ROUNDING * scale
    error = float(variance[0]) ** 0.5 if varies else 0.0
    return MeanError(float(differences.mean()), error, len(totals) - 1.0)


def t_sides(found: MeanError, bounds: Bounds, method: str, why: str = CONSTANT) -> Sides:
    """`(estimate - bound) / std_error` against t."""
    estimate, error, df = found.estimate, found.std_error, found.df
    details: dict[str, Any] = {"df": df, "std_error": error}
    if not error > 0:
        nothing = Side(None, None)
        return Sides(estimate, nothing, nothing, None, method, details, undefined=why)
    below, above = ((estimate - bound) / error for bound in (bounds.low, bounds.high))
    half = float(stdtrit(df, 1 - bounds.alpha)) * error
    return Sides(
        estimate,
        Side(below, float(stdtr(df, -below))),
        Side(above, float(stdtr(df, above))),
        (estimate - half, estimate + half),
        method,
        details,
    )


def _of_proportions(bounds: Bounds) -> None:
    """Refuse bounds that every difference of proportions lies between, or cannot reach."""
    if not -1 < bounds.low < bounds.high < 1:
        raise ArgumentError(
            "`margin` (or `low` and `high`) must lie between -1 and 1 for a difference of proportions; got "
            f"bounds {bounds.low:g} and {bounds.high:g}"
        )


def tango_sides(b: int, c: int, n: int, bounds: Bounds) -> Sides:
    """Tango's score test of the difference of paired proportions at each bound."""
    _of_proportions(bounds)
    tests = tango_tests(b, c, n, bounds.low, bounds.high)
    return Sides(
        (b - c) / n,
        Side(tests.z_lower, tests.p_lower),
        Side(tests.z_upper, tests.p_upper),
        tango_interval(b, c, n, bounds.conf_level),
        "Tango score test",
        {"b": b, "c": c, "n_discordant": b + c},
    )


def count_sides(
    count1: int,
    nobs1: int,
    count2: int,
    nobs2: int,
    bounds: Bounds,
    method: Literal["miettinen-nurminen", "mee", "wald"],
) -> Sides:
    """Tests of the difference of two independent proportions at each bound."""
    _of_proportions(bounds)
    difference = count1 / nobs1 - count2 / nobs2
    if method == "wald":
        tests = wald_tests(count1, nobs1, count2, nobs2, bounds.low, bounds.high)
        if tests.z_lower is None:
            nothing = Side(None, None)
            why = "both proportions are 0 or 1, so that their Wald error is 0; use a score test"
            return Sides(difference, nothing, nothing, None, "Wald", undefined=why)
        error = (bounds.high - bounds.low) / (tests.z_lower - (tests.z_upper or 0.0))
        half = normal_quantile(bounds.conf_level) * error
        ends = difference - half, difference + half
    else:
        tests = score_tests(count1, nobs1, count2, nobs2, bounds.low, bounds.high, method=method)
        ends = difference_interval(count1, nobs1, count2, nobs2, bounds.conf_level, method=method)
    names = {"miettinen-nurminen": "Miettinen-Nurminen score test", "mee": "Mee score test", "wald": "Wald"}
    return Sides(
        difference,
        Side(tests.z_lower, tests.p_lower),
        Side(tests.z_upper, tests.p_upper),
        ends,
        names[method],
    )


def rank_sides(
    differences: Array, bounds: Bounds, law: Literal["auto", "exact", "normal"], *, correction: bool
) -> Sides:
    """Signed rank test of the differences minus each bound; those that equal the bound are dropped."""
    if len(np.unique(differences)) < 2:
        nothing = Side(None, None)
        return Sides(float(differences[0]), nothing, nothing, None, "signed rank", undefined=CONSTANT)
    asked: dict[str, Any] = {"zero_method": "wilcox", "method": law, "correction": correction}
    below = wilcoxon_signed_rank(differences - bounds.low, alternative="greater", **asked)
    above = wilcoxon_signed_rank(differences - bounds.high, alternative="less", **asked)
    center = hodges_lehmann(differences, conf_level=bounds.conf_level)
    low, high = center.conf_low, center.conf_high
    sides = Sides(
        float(np.median(differences)) if center.estimate is None else center.estimate,
        Side(below.statistic, below.p_value),
        Side(above.statistic, above.p_value),
        None if low is None or high is None else (low, high),
        below.method,
        {"n_zero_lower": below.details["n_zero"], "n_zero_upper": above.details["n_zero"]},
    )
    if sides.ends is None:
        return sides.withheld(
            "so many differences are equal that the interval of the pseudo-median has no width; test the mean"
        )
    return sides


def pivots_of(counts: NDArray[Any], sums: Array, sizes: Array, estimate: float) -> tuple[Array, Array]:
    """Means of draws of clusters, and their studentised distances from the estimate, shape (R,) each.

    With c the times that a cluster is drawn: `theta* = sum c s / sum c n` and
    `se*^2 = G / (G - 1) sum c (s - theta* n)^2 / (sum c n)^2`. A draw without variance has an infinite
    distance, or 0 where it equals the estimate.

    Parameters
    ----------
    counts
        Times that each cluster is drawn, shape (R, G).
    sums, sizes
        Sum of the differences of each cluster, and their number, shape (G,).
    estimate
        The observed mean.
    """
    drawn = counts.astype(np.float64)
    n = drawn @ sizes
    means = drawn @ sums / n
    residuals = sums - means[:, None] * sizes
    size = counts.shape[1]
    errors = np.sqrt(size / (size - 1) * (drawn * residuals**2).sum(axis=1)) / n
    scale = float(np.abs(sums / sizes).max(initial=0.0))
    errors[errors <= ROUNDING * scale] = 0.0
    away = means - estimate
    away[np.abs(away) <= ROUNDING * scale] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.where(away == 0, 0.0, away / errors)
    return means, pivots


def bootstrap_sides(
    differences: Array,
    codes: NDArray[np.int64],
    scale: float,
    bounds: Bounds,
    *,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Sides:
    """Studentised distances from the bounds against those of the bootstrap from the estimate."""
    sums = np.bincount(codes, weights=differences).astype(np.float64)
    sizes = np.bincount(codes).astype(np.float64)
    size = len(sums)
    estimate = float(differences.mean())
    error = (size / (size - 1) * float(((sums - estimate * sizes) ** 2).sum())) ** 0.5 / len(differences)
    method = f"bootstrap-t, {n_resamples:,} drawn"
    details: dict[str, Any] = {"std_error": error, "n_resamples": n_resamples, "seed": seed}
    if error <= ROUNDING * scale:
        nothing = Side(None, None)
        return Sides(
            estimate, nothing, nothing, None, method, {**details, "std_error": 0.0}, undefined=CONSTANT
        )
    draws = Multiplicities(size)
    pivots = np.empty(n_resamples)
    for first, number in chunks(n_resamples, 3 * size):
        counts = draws.totals(number, seed, first=first, n_threads=n_threads)
        pivots[first : first + number] = pivots_of(counts, sums, sizes, estimate)[1]
    below, above = ((estimate - bound) / error for bound in (bounds.low, bounds.high))
    ends = intervals.bootstrap_t(np.array([estimate]), np.array([error]), pivots[:, None], bounds.conf_level)
    return Sides(
        estimate,
        Side(below, (1 + int((pivots >= below).sum())) / (n_resamples + 1)),
        Side(above, (1 + int((pivots <= above).sum())) / (n_resamples + 1)),
        (float(ends.low[0]), float(ends.high[0])),
        method,
        details,
    )


def percentile_sides(
    estimate: float, replicates: Array, bounds: Bounds, read: Callable[[float], tuple[float, float]]
) -> Sides:
    """Shares of replicates beyond the bounds, for estimands that are not smooth.

    Parameters
    ----------
    replicates
        Bootstrap estimates, shape (R,).
    read
        The percentile interval at a level.
    """
    finite = replicates[np.isfinite(replicates)]
    if not len(finite):
        raise ArgumentError("`n_resamples` gave no replicate in which the estimand is defined")
    beyond = [int((finite <= bounds.low).sum()), int((finite >= bounds.high).sum())]
    p_lower, p_upper = ((1 + count) / (len(finite) + 1) for count in beyond)
    ends = read(bounds.conf_level)
    return Sides(
        estimate,
        Side(None, p_lower),
        Side(None, p_upper),
        ends if all(map(math.isfinite, ends)) else None,
        f"cluster bootstrap percentile, {len(replicates):,} drawn",
        {"n_resamples": len(replicates)},
        undefined=None if np.ptp(finite) > 0 else CONSTANT,
    )
