"""Readings of estimates, jackknife values and replicates as intervals; functions on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtr, stdtrit

from triagestats import _native
from triagestats.tolerances import ROUNDING, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "Ends",
    "bca",
    "bootstrap_t",
    "jackknife_error",
    "jackknife_t",
    "korn_graubard_plus_two",
    "max_t",
    "moments",
    "normal",
    "percentile",
    "spread",
    "t_p_value",
    "two_way_variance",
    "wilson",
]


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Lower and upper ends of intervals, shape (E,) each; NaN where undefined."""

    low: Array
    high: Array


def jackknife_error(
    leave_one_out: Array, contributes: NDArray[np.bool_], strata: NDArray[np.uint32] | None = None
) -> tuple[Array, NDArray[np.int64]]:
    """Delete-one-cluster jackknife variance of each estimate.

    `V = (G - 1) / G * sum_g (theta_(g) - mean(theta_(.)))^2` over the G clusters that carry data for
    the estimate; with strata the sum of their V.

    Parameters
    ----------
    leave_one_out
        Estimates without each cluster, shape (G, E).
    contributes
        Whether the cluster carries data for the estimate, shape (G, E).
    strata
        Stratum codes of the clusters, shape (G,).

    Returns
    -------
    tuple
        Variances (E,), NaN with fewer than two clusters or an undefined estimate, and G of each (E,).

    References
    ----------
    Efron, B. and Tibshirani, R. J. (1993), An Introduction to the Bootstrap, chapter 11,
    doi:10.1007/978-1-4899-4541-9.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.intervals import jackknife_error
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> without = (x.sum() - x) / 2
    >>> variance, g = jackknife_error(without[:, None], np.ones((3, 1), bool))
    >>> bool(np.isclose(variance[0], x.var(ddof=1) / 3))
    True
    """
    if strata is not None:
        members = [np.flatnonzero(strata == code) for code in range(int(strata.max()) + 1)]
        parts = [jackknife_error(leave_one_out[rows], contributes[rows]) for rows in members]
        variances = np.array([part[0] for part in parts])
        sizes = np.array([part[1] for part in parts])
        return np.where(sizes > 0, variances, 0.0).sum(axis=0), sizes.sum(axis=0)
    size = contributes.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(contributes, leave_one_out, 0.0)
        center = kept.sum(axis=0) / size
        squares = np.where(contributes, (leave_one_out - center) ** 2, 0.0).sum(axis=0)
        variance = (size - 1) / size * squares
    return np.where(size >= 2, variance, np.nan), size


def two_way_variance(first: Array, second: Array, both: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Variance under two crossed classifications, `V1 + V2 - V12`.

    Where that is not positive, the larger of V1 and V2 stands in; the second array says where.

    References
    ----------
    Cameron, A. C., Gelbach, J. B. and Miller, D. L. (2011), Robust inference with multiway clustering,
    Journal of Business & Economic Statistics 29(2):238-249, doi:10.1198/jbes.2010.07136.
    """
    crossed = first + second - both
    larger = np.maximum(first, second)
    repaired = crossed <= ROUNDING * larger
    return np.where(repaired, larger, crossed), repaired & (larger > 0)


def spread(values: Array, where: NDArray[np.bool_]) -> Array:
    """Largest minus smallest of the chosen values of each column; -inf without any, NaN with a NaN.

    NaN too where all of them are infinite, as ratios over 0 are.
    """
    largest: Array = np.max(values, axis=0, initial=-np.inf, where=where)
    smallest: Array = np.min(values, axis=0, initial=np.inf, where=where)
    with np.errstate(invalid="ignore"):
        return largest - smallest


def jackknife_t(estimate: Array, std_error: Array, df: Array, conf_level: float) -> Ends:
    """`estimate +- t_{df, 1 - alpha/2} * std_error`; NaN where the error is 0, which is no error at all."""
    half = np.where(std_error > 0, stdtrit(df, 0.5 + conf_level / 2) * std_error, np.nan)
    return Ends(estimate - half, estimate + half)


def t_p_value(estimate: Array, std_error: Array, df: Array) -> Array:
    """Two-sided p-value of `estimate / std_error` against t with df degrees of freedom; NaN for no error."""
    statistic = estimate / np.where(std_error > 0, std_error, np.nan)
    p: Array = 2 * stdtr(df, -np.abs(statistic))
    return p


def percentile(replicates: Array, conf_level: float) -> Ends:
    """Quantiles of the finite replicates (R, E), definition 6 of Hyndman and Fan (1996).

    With R = 9,999 the ends at 95 % are order statistics, as (R + 1) alpha / 2 is whole.

    References
    ----------
    Hyndman, R. J. and Fan, Y. (1996), Sample quantiles in statistical packages, The American
    Statistician 50(4):361-365, doi:10.1080/00031305.1996.10473566.
    """
    tail = (1 - conf_level) / 2
    return _quantiles(replicates, np.full(replicates.shape[1], tail), np.full(replicates.shape[1], 1 - tail))


def normal(estimate: Array, replicates: Array, conf_level: float) -> Ends:
    """`estimate - bias +- z sd`, with bias and sd of the finite replicates; NaN where they do not vary.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997), Bootstrap Methods and their Application, section 5.2,
    doi:10.1017/CBO9780511802843.
    """
    center, spread = moments(replicates)
    middle = 2 * estimate - center
    half = np.where(spread > 0, ndtri(0.5 + conf_level / 2) * spread, np.nan)
    return Ends(middle - half, middle + half)


def bootstrap_t(estimate: Array, std_error: Array, pivots: Array, conf_level: float) -> Ends:
    """`estimate - q std_error`, with quantiles q of the studentised replicates.

    Parameters
    ----------
    estimate, std_error
        Shape (E,); the error is that of the cluster jackknife.
    pivots
        `(replicate - estimate) / error of the replicate`, shape (R, E).
    conf_level
        The level.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997), Bootstrap Methods and their Application, section 5.2,
    doi:10.1017/CBO9780511802843.
    """
    q = percentile(pivots, conf_level)
    error = np.where(std_error > 0, std_error, np.nan)
    return Ends(estimate - q.high * error, estimate - q.low * error)


def max_t(estimate: Array, std_error: Array, replicates: Array, conf_level: float) -> Ends:
    """Simultaneous intervals of a family: `estimate +- c std_error`.

    c is the quantile of `max_e |replicate_e - estimate_e| / std_error_e`, over the replicates in which
    the whole family is finite. Estimates without an error have no interval and no part in the maximum.

    References
    ----------
    Romano, J. P. and Wolf, M. (2005), Exact and approximate stepdown methods for multiple hypothesis
    testing, JASA 100(469):94-108, doi:10.1198/016214504000000539.
    """
    used = std_error > 0
    if not used.any():
        nothing = np.full(len(estimate), np.nan)
        return Ends(nothing, nothing)
    away = np.abs(replicates[:, used] - estimate[used]) / std_error[used]
    largest = away.max(axis=1, keepdims=True)
    c = _quantiles(largest, np.array([conf_level]), np.array([conf_level])).low[0]
    half = np.where(used, c * std_error, np.nan)
    return Ends(estimate - half, estimate + half)


def moments(replicates: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the finite values of each column."""
    usable = np.isfinite(replicates)
    size = usable.sum(axis=0)
    kept = np.where(usable, replicates, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        center = kept.sum(axis=0) / size
        spread = np.sqrt(np.where(usable, (replicates - center) ** 2, 0.0).sum(axis=0) / (size - 1))
    return center, spread


def _quantiles(replicates: Array, low: Array, high: Array) -> Ends:
    """Two quantiles, definition 6, of the finite values of each column of (R, E)."""
    ends = _native.quantile_pairs(
        np.ascontiguousarray(replicates), np.ascontiguousarray(low), np.ascontiguousarray(high)
    )
    return Ends(ends[0], ends[1])


def bca(
    estimate: Array,
    replicates: Array,
    leave_one_out: Array,
    contributes: NDArray[np.bool_],
    conf_level: float,
    strata: NDArray[np.uint32] | None = None,
) -> Ends:
    """Bias-corrected and accelerated percentile interval.

    z0 is the normal quantile of the share of replicates below the estimate, ties counted half; the
    acceleration is that of the jackknife over clusters, `a = sum d^3 / (6 (sum d^2)^1.5)` with
    `d = mean(theta_(.)) - theta_(g)`; with strata d is `(n - 1) / n` times that within each stratum of n
    clusters. NaN where no replicate lies below or above the estimate, or the
    jackknife has no variance.

    References
    ----------
    Efron, B. (1987), Better bootstrap confidence intervals, JASA 82(397):171-185,
    doi:10.1080/01621459.1987.10478410.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = np.isfinite(replicates)
        finite = usable.sum(axis=0)
        largest = np.max(np.abs(replicates), axis=0, initial=0.0, where=usable)
        tolerance = TIES * np.maximum(np.abs(estimate), largest)
        below = (usable & (replicates < estimate - tolerance)).sum(axis=0)
        above = (usable & (replicates > estimate + tolerance)).sum(axis=0)
        z0 = ndtri((below + (finite - below - above) / 2) / finite)
        d = _influence(leave_one_out, contributes, strata)
        squares = (d**2).sum(axis=0)
        a = (d**3).sum(axis=0) / (6 * squares**1.5)
        z = ndtri(0.5 + conf_level / 2)
        ends = [ndtr(z0 + (z0 + side) / (1 - a * (z0 + side))) for side in (-z, z)]
    defined = (below > 0) & (above > 0) & np.isfinite(a) & (ends[0] < ends[1])
    return _quantiles(replicates, np.where(defined, ends[0], np.nan), np.where(defined, ends[1], np.nan))


def _influence(
    leave_one_out: Array, contributes: NDArray[np.bool_], strata: NDArray[np.uint32] | None
) -> Array:
    """Mean of the estimates without a cluster minus each; within strata, scaled by (n - 1) / n."""
    if strata is None:
        center = np.where(contributes, leave_one_out, 0.0).sum(axis=0) / contributes.sum(axis=0)
        return np.where(contributes, center - leave_one_out, 0.0)
    result = np.zeros(leave_one_out.shape)
    for code in range(int(strata.max()) + 1):
        rows = strata == code
        n = contributes[rows].sum(axis=0)
        result[rows] = (n - 1) / n * _influence(leave_one_out[rows], contributes[rows], None)
    return result


def wilson(rate: float, n: float, conf_level: float) -> tuple[float, float]:
    """Wilson's score interval of a share of n independent values; an effective n need not be whole.

    References
    ----------
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA
    22(158):209-212, doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> from triagestats.intervals import wilson
    >>> [round(end, 4) for end in wilson(0.0, 20, 0.95)]
    [0.0, 0.1611]
    """
    z2 = float(ndtri(0.5 + conf_level / 2)) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = (z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) ** 0.5 / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def korn_graubard_plus_two(
    rate: Array, variance: Array, n_clusters: Array, n_rows: Array, conf_level: float
) -> Ends:
    """Interval of a clustered rate: Korn and Graubard's after adding one all-right and one all-wrong cluster.

    With p the rate, G clusters, N rows and s2 = G * variance: m = (G p + 1) / (G + 2);
    v = ((G-1) s2 + G (p-m)^2 + (1-m)^2 + m^2) / (G+1);
    n* = min(m (1-m) (G+2) / v, N) * (t_{N-1} / t_{G-1})^2; the interval is that of Clopper and Pearson
    at p n* of n*. It has a positive width at rates of 0 and 1.

    Parameters
    ----------
    rate, variance
        The rate and its linearised variance by cluster, shape (E,).
    n_clusters, n_rows
        G and N, shape (E,).

    References
    ----------
    Korn, E. L. and Graubard, B. I. (1998), Confidence intervals for proportions with small expected
    number of positive counts estimated from survey data, Survey Methodology 24(2):193-201; the added
    clusters are this package's, after its own coverage study.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.intervals import korn_graubard_plus_two
    >>> one = np.array([1.0])
    >>> ends = korn_graubard_plus_two(one, 0 * one, 12 * one, 216 * one, 0.95)
    >>> bool(ends.low[0] < 1), float(ends.high[0])
    (True, 1.0)
    """
    alpha = 1 - conf_level
    with np.errstate(divide="ignore", invalid="ignore"):
        m = (n_clusters * rate + 1) / (n_clusters + 2)
        spread = (n_clusters - 1) * n_clusters * variance
        v = (spread + n_clusters * (rate - m) ** 2 + (1 - m) ** 2 + m**2) / (n_clusters + 1)
        ratio = stdtrit(n_rows - 1, 1 - alpha / 2) / stdtrit(n_clusters - 1, 1 - alpha / 2)
        effective = np.minimum(m * (1 - m) * (n_clusters + 2) / v, n_rows) * ratio**2
        right = rate * effective
        wrong = effective - right
        low = np.where(right <= 0, 0.0, betaincinv(np.maximum(right, 1e-300), wrong + 1, alpha / 2))
        high = np.where(wrong <= 0, 1.0, betaincinv(right + 1, np.maximum(wrong, 1e-300), 1 - alpha / 2))
    return Ends(low, high)
