"""Score statistics of a difference of proportions, paired and independent, and the intervals they invert to.

Plain functions of counts: what a test, an interval and an equivalence test share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

from scipy.special import ndtri

__all__ = [
    "Independent",
    "difference_interval",
    "difference_score",
    "normal_quantile",
    "tango_interval",
    "tango_score",
]

Independent = Literal["miettinen-nurminen", "mee"]

_RESOLUTION: Final = 4e-16
"""Roots are differences of proportions: two roundings of 1 is what floats can tell apart."""


def normal_quantile(conf_level: float) -> float:
    """The z that a standard normal exceeds in absolute value with probability 1 - `conf_level`."""
    return -float(ndtri((1 - conf_level) / 2))


def tango_score(b: int, c: int, n: int, margin: float) -> float:
    """Score statistic of Tango for the hypothesis that a difference of paired proportions is `margin`.

        z = (b - c - n d) / sqrt(n (2 q + d (1 - d))),   d = `margin`

    with q the maximum likelihood estimate of the probability of the pairs counted by c under the
    hypothesis, the positive root of 2 n q^2 + (2 n d - (b + c) - d (b - c)) q - c d (1 - d) = 0.

    Parameters
    ----------
    b, c
        Discordant pairs: only the first is 1, only the second is 1.
    n
        All pairs.
    margin
        Difference under the hypothesis. Beyond -1 and 1 it is impossible, and z infinite.

    Returns
    -------
    float
        z, positive where the observed difference exceeds `margin`. The square of z at 0 is McNemar's
        chi-square without correction. Where the variance is 0, the limit: 0 if the observed difference
        is `margin`, else plus or minus infinity.

    References
    ----------
    Tango, T. (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17(8):891-908,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Examples
    --------
    >>> from triagestats.score_intervals import tango_score
    >>> round(tango_score(32, 13, 200, -0.1), 4), round(tango_score(32, 13, 200, 0.0) ** 2, 4)
    (5.3307, 8.0222)
    """
    if margin < 0:  # then the other side has the smaller probability, and its root does not cancel
        return -tango_score(c, b, n, -margin)
    return -math.inf if margin > 1 else _ratio(*_tango_parts(b, c, n, margin))


def _tango_parts(b: int, c: int, n: int, margin: float) -> tuple[float, float]:
    """Numerator and variance of z for a margin that is not negative."""
    slack = margin * (1 - margin)
    linear = 2 * n * margin - (b + c) - margin * (b - c)
    root = math.sqrt(linear * linear + 8 * n * c * slack)
    # Both forms are the positive root; each loses digits where the other does not.
    q = 2 * c * slack / (linear + root) if linear > 0 else (root - linear) / (4 * n)
    return b - c - n * margin, n * (2 * q + slack)


def tango_interval(b: int, c: int, n: int, conf_level: float) -> tuple[float, float]:
    """The differences of paired proportions that Tango's score test does not reject.

    Examples
    --------
    >>> from triagestats.score_intervals import tango_interval
    >>> [round(end, 4) for end in tango_interval(0, 0, 40, 0.90)]
    [-0.0634, 0.0634]
    """
    z = normal_quantile(conf_level)
    return -_tango_upper(c, b, n, z), _tango_upper(b, c, n, z)


def _tango_upper(b: int, c: int, n: int, z: float) -> float:
    """The largest difference that is not rejected; the lower end is that of the swapped sides."""

    def excess(margin: float) -> float:
        if margin >= 0:
            numerator, variance = _tango_parts(b, c, n, margin)
        else:
            numerator, variance = _tango_parts(c, b, n, -margin)
            numerator = -numerator
        return numerator + z * math.sqrt(variance)

    return _end(excess, (b - c) / n)


def difference_score(
    count1: int, nobs1: int, count2: int, nobs2: int, margin: float, *, method: Independent
) -> float:
    """Score statistic for the hypothesis that a difference of independent proportions is `margin`.

        z = (p1 - p2 - d) / sqrt(k (q1 (1 - q1) / nobs1 + q2 (1 - q2) / nobs2)),   d = `margin`

    with q1 and q2 = q1 - d the maximum likelihood estimates under the hypothesis; k is N / (N - 1) with
    N = nobs1 + nobs2 for Miettinen and Nurminen, and 1 for Mee.

    Returns
    -------
    float
        z, positive where the observed difference exceeds `margin`. Where the variance is 0, the limit: 0
        if the observed difference is `margin`, else plus or minus infinity.

    References
    ----------
    Miettinen, O. and Nurminen, M. (1985), Comparative analysis of two rates, Statistics in Medicine
    4(2):213-226, doi:10.1002/sim.4780040211.

    Mee, R. W. (1984), Confidence bounds for the difference between two probabilities, Biometrics
    40:1175-1176.

    Examples
    --------
    >>> from triagestats.score_intervals import difference_score
    >>> round(difference_score(50, 50, 50, 50, 0.10, method="miettinen-nurminen"), 4)
    -2.3452
    """
    if abs(margin) > 1:
        return -math.copysign(math.inf, margin)
    return _ratio(*_difference_parts(count1, nobs1, count2, nobs2, margin, method))


def difference_interval(
    count1: int, nobs1: int, count2: int, nobs2: int, conf_level: float, *, method: Independent
) -> tuple[float, float]:
    """The differences of independent proportions that the score test does not reject.

    Examples
    --------
    >>> from triagestats.score_intervals import difference_interval
    >>> ends = difference_interval(7, 34, 1, 34, 0.95, method="miettinen-nurminen")
    >>> [round(end, 4) for end in ends]
    [0.027, 0.3453]
    """
    z = normal_quantile(conf_level)

    def upper(x1: int, n1: int, x2: int, n2: int) -> float:
        def excess(margin: float) -> float:
            numerator, variance = _difference_parts(x1, n1, x2, n2, margin, method)
            return numerator + z * math.sqrt(variance)

        return _end(excess, x1 / n1 - x2 / n2)

    return -upper(count2, nobs2, count1, nobs1), upper(count1, nobs1, count2, nobs2)


def _difference_parts(
    x1: int, n1: int, x2: int, n2: int, margin: float, method: Independent
) -> tuple[float, float]:
    """Numerator and variance of z."""
    q1 = _restricted_rate(x1, n1, x2, n2, margin)
    q2 = min(max(q1 - margin, 0.0), 1.0)
    variance = q1 * (1 - q1) / n1 + q2 * (1 - q2) / n2
    if method == "miettinen-nurminen":
        variance *= (n1 + n2) / (n1 + n2 - 1)
    return x1 / n1 - x2 / n2 - margin, variance


def _restricted_rate(x1: int, n1: int, x2: int, n2: int, margin: float) -> float:
    """The first rate that maximises the likelihood where the second is lower by `margin`.

    The log-likelihood is concave, so that its slope changes sign once. A closed form exists (the root of
    a cubic), and loses digits, or picks a wrong root, where counts are 0 or full.
    """
    low, high = max(0.0, margin), min(1.0, 1 + margin)

    def slope(rate: float) -> float:
        """The slope times what is positive inside, so that it is finite at the ends."""
        other = min(max(rate - margin, 0.0), 1.0)
        top1, bottom1 = _slope_of_one(x1, n1, rate)
        top2, bottom2 = _slope_of_one(x2, n2, other)
        return top1 * bottom2 + top2 * bottom1

    at_low, at_high = slope(low), slope(high)
    if at_low < 0 or low == high:
        return low
    if at_high > 0:
        return high
    # 0 is an infinite slope times 0, as where both rates are 0 and both counts are not.
    return _root(slope, low, high, at_low or 1.0, at_high or -1.0)


def _slope_of_one(x: int, n: int, rate: float) -> tuple[float, float]:
    """Slope of the log-likelihood of x of n, as numerator and denominator."""
    if x == 0:
        return -n, 1 - rate
    if x == n:
        return n, rate
    return x - n * rate, rate * (1 - rate)


def _ratio(numerator: float, variance: float) -> float:
    if variance > 0:
        return numerator / math.sqrt(variance)
    return math.copysign(math.inf, numerator) if numerator else 0.0


def _end(excess: Callable[[float], float], estimate: float) -> float:
    """Where `excess`, positive just above the estimate and negative at 1, changes its sign."""
    if estimate >= 1:
        return 1.0
    # At the estimate itself numerator and variance may both be 0, as without discordant pairs.
    return _root(excess, estimate, 1.0, excess(estimate) or 1.0, excess(1.0))


def _root(f: Callable[[float], float], low: float, high: float, at_low: float, at_high: float) -> float:
    """Where f changes its sign, by the bracketing method of Chandrupatla (1997).

    Inverse quadratic steps where they are safe, else bisection. scipy's brentq finds the same roots; its
    checks take longer than all else in a test of McNemar.
    """
    a, b, c, fa, fb, fc = high, low, high, at_high, at_low, at_high
    step = 0.5
    while True:
        x = a + step * (b - a)
        fx = f(x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        if fa == 0:
            return a
        width = abs(b - a)
        if width <= 2 * _RESOLUTION:
            return a if abs(fa) < abs(fb) else b
        least = _RESOLUTION / width
        place, rise = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if rise * rise < place and (1 - rise) ** 2 < 1 - place:
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            step = min(max(step, least), 1 - least)
        else:
            step = 0.5
