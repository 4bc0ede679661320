"""Closed-form intervals of proportions and of their differences, independent and paired, on counts.

Each function returns the two ends as the formula gives them; some leave [0, 1] or [-1, 1].
"""

from __future__ import annotations

import math

from scipy.special import betainccinv, betaincinv

from triagestats.intervals import wilson
from triagestats.score_intervals import normal_quantile

__all__ = [
    "agresti_caffo",
    "agresti_coull",
    "agresti_min",
    "bonett_price",
    "clopper_pearson",
    "jeffreys",
    "newcombe_independent",
    "newcombe_paired",
    "paired_correlation",
    "paired_error",
    "wald_paired",
    "wilson_corrected",
    "wilson_score",
]

Pair = tuple[float, float]


def wilson_score(x: int, n: int, conf_level: float) -> Pair:
    """Wilson's interval of x of n, exactly 0 at the lower end for none and 1 at the upper end for all."""
    low, high = wilson(x / n, n, conf_level)
    return (0.0 if x == 0 else low), (1.0 if x == n else high)


def wilson_corrected(x: int, n: int, conf_level: float) -> Pair:
    """Wilson's interval with the continuity correction of Newcombe (1998), whatever the count."""
    z = normal_quantile(conf_level)
    z2, p = z * z, x / n
    low, high = 0.0, 1.0
    if x > 0:
        root = math.sqrt(z2 - 2 - 1 / n + 4 * p * (n - x + 1))
        low = max(0.0, (2 * x + z2 - 1 - z * root) / (2 * (n + z2)))
    if x < n:
        root = math.sqrt(z2 + 2 - 1 / n + 4 * p * (n - x - 1))
        high = min(1.0, (2 * x + z2 + 1 + z * root) / (2 * (n + z2)))
    return low, high


def clopper_pearson(x: int, n: int, conf_level: float) -> Pair:
    """The rates at which neither binomial tail of x of n is below half of 1 - `conf_level`."""
    tail = (1 - conf_level) / 2
    low = 0.0 if x == 0 else float(betaincinv(x, n - x + 1, tail))
    high = 1.0 if x == n else float(betainccinv(x + 1, n - x, tail))
    return low, high


def jeffreys(x: int, n: int, conf_level: float) -> Pair:
    """Equal tails of Beta(x + 1/2, n - x + 1/2), without the modified ends of Brown, Cai and DasGupta."""
    a, b, tail = x + 0.5, n - x + 0.5, (1 - conf_level) / 2
    return float(betaincinv(a, b, tail)), float(betainccinv(a, b, tail))


def agresti_coull(x: int, n: int, conf_level: float) -> Pair:
    """Wald's interval after z^2 / 2 successes and as many failures are added."""
    z = normal_quantile(conf_level)
    size = n + z * z
    rate = (x + z * z / 2) / size
    half = z * math.sqrt(rate * (1 - rate) / size)
    return rate - half, rate + half


def newcombe_independent(x1: int, n1: int, x2: int, n2: int, conf_level: float) -> Pair:
    """Method 10 of Newcombe (1998c): the distances of Wilson's ends, added in squares."""
    p1, p2 = x1 / n1, x2 / n2
    low1, high1 = wilson_score(x1, n1, conf_level)
    low2, high2 = wilson_score(x2, n2, conf_level)
    return p1 - p2 - math.hypot(p1 - low1, high2 - p2), p1 - p2 + math.hypot(high1 - p1, p2 - low2)


def agresti_caffo(x1: int, n1: int, x2: int, n2: int, conf_level: float) -> Pair:
    """Wald's interval after a success and a failure are added to each sample."""
    p1, p2 = (x1 + 1) / (n1 + 2), (x2 + 1) / (n2 + 2)
    variance = p1 * (1 - p1) / (n1 + 2) + p2 * (1 - p2) / (n2 + 2)
    half = normal_quantile(conf_level) * math.sqrt(variance)
    return p1 - p2 - half, p1 - p2 + half


def wald_paired(b: float, c: float, n: float, conf_level: float) -> Pair:
    """Wald's interval of (b - c) / n for n pairs; no width without discordant pairs."""
    difference = (b - c) / n
    half = normal_quantile(conf_level) * paired_error(b, c, n)
    return difference - half, difference + half


def paired_error(b: float, c: float, n: float) -> float:
    """Wald's standard error of (b - c) / n for n pairs; 0 if all pairs have one difference."""
    return math.sqrt(max(b + c - (b - c) / n * (b - c), 0.0)) / n


def agresti_min(b: int, c: int, n: int, conf_level: float) -> Pair:
    """Wald's interval after 1/2 is added to each cell of the table."""
    return wald_paired(b + 0.5, c + 0.5, n + 2, conf_level)


def bonett_price(b: int, c: int, n: int, conf_level: float) -> Pair:
    """Wald's interval after 1 is added to both discordant cells."""
    return wald_paired(b + 1, c + 1, n + 2, conf_level)


def paired_correlation(both: int, b: int, c: int, neither: int) -> float:
    """The correlation phi of a table, drawn towards 0 by n/2 where positive, as Newcombe's method 10 has it.

    0 where a side is constant.
    """
    margins = (both + b) * (c + neither) * (both + c) * (b + neither)
    excess: float = both * neither - b * c
    if excess > 0:
        excess = max(excess - (both + b + c + neither) / 2, 0.0)
    return excess / math.sqrt(margins) if margins else 0.0


def newcombe_paired(both: int, b: int, c: int, neither: int, conf_level: float) -> Pair:
    """Method 10 of Newcombe (1998b): distances of Wilson's ends, as lengths of sides with an angle."""
    n = both + b + c + neither
    p1, p2, phi = (both + b) / n, (both + c) / n, paired_correlation(both, b, c, neither)
    low1, high1 = wilson_score(both + b, n, conf_level)
    low2, high2 = wilson_score(both + c, n, conf_level)

    def length(first: float, second: float) -> float:
        return math.sqrt(max(first**2 - 2 * phi * first * second + second**2, 0.0))

    return p1 - p2 - length(p1 - low1, high2 - p2), p1 - p2 + length(high1 - p1, p2 - low2)
