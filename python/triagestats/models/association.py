"""Correlation coefficients, their permutation p-values and intervals; functions on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.extremes import Center, as_extreme, most_extreme
from triagestats.resample import chunks
from triagestats.results import Alternative
from triagestats.schemes import Multiplicities
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Orders = NDArray[np.int64]

__all__ = [
    "MOST_ENUMERATED",
    "Correlation",
    "Correlator",
    "Tested",
    "coefficient",
    "fisher_interval",
    "orders",
    "varies",
]

Correlation = Literal["pearson", "spearman", "kendall"]

MOST_ENUMERATED: Final = 9
"""Pairs up to which all n! permutations are enumerated: 9! = 362,880."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A coefficient and its permutation test.

    Attributes
    ----------
    estimate
        The coefficient; NaN where x or y is constant.
    p_value
        Its p-value; NaN where there is none.
    exact
        Whether all permutations were enumerated.
    n_arrangements
        Permutations behind the p-value.
    smallest
        A p-value below which none can lie with these data.
    """

    estimate: float = math.nan
    p_value: float = math.nan
    exact: bool = False
    n_arrangements: int = 0
    smallest: float = math.nan


@dataclass(frozen=True, slots=True)
class Correlator:
    """Which coefficient is computed, and how it is tested.

    With r the coefficient, `p = #{|r*| >= |r|} / n!` over all permutations of y where n is at most
    `MOST_ENUMERATED`, else `(b + 1) / (R + 1)` over R drawn ones; ties by relative tolerance. The mean of
    r* over all permutations is 0 for each of the three coefficients.

    Attributes
    ----------
    method
        Pearson's r, Spearman's rho (of midranks), or Kendall's tau-b.
    alternative, n_resamples, seed
        Which permutations are as extreme as the data; R and the seed where they are drawn.
    """

    method: Correlation
    alternative: Alternative
    n_resamples: int
    seed: int

    def of(self, x: Array, y: Array) -> Tested:
        """The coefficient of x and y, shape (n,) each and finite, and its p-value."""
        estimate = coefficient(x, y, self.method)
        if math.isnan(estimate):
            return Tested()
        if self.method == "kendall":
            return self._tested(estimate, lambda order: _tau(x, y, order), len(x), ROUNDING)
        products = np.outer(standardised(x, self.method), standardised(y, self.method))
        noise = _noise(x) + _noise(y) if self.method == "pearson" else ROUNDING
        return self._tested(estimate, lambda order: _matched(products, order), len(x), noise)

    def of_halves(self, x: Array, y: Array) -> Tested:
        """Mean coefficient over splits, with x of one part of the data and y of the other, and its p-value.

        One permutation serves all splits: their mean is `sum_i M[i, permutation[i]]`, with M the mean of the
        products. Kendall's tau-b is no sum of products, and has no p-value here.

        Parameters
        ----------
        x, y
            Shape (S, n), one row a split; rows in which a value is missing or nothing varies are left out.
        """
        kept = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
        pairs = [(a, b) for a, b in zip(x[kept], y[kept], strict=True) if varies(a) and varies(b)]
        if not pairs:
            return Tested()
        if self.method == "kendall":
            return Tested(float(np.mean([coefficient(a, b, self.method) for a, b in pairs])))
        first = np.stack([standardised(a, self.method) for a, _ in pairs])
        second = np.stack([standardised(b, self.method) for _, b in pairs])
        products = first.T @ second / len(pairs)
        noise = max(_noise(a) + _noise(b) for a, b in pairs) if self.method == "pearson" else ROUNDING
        estimate = float(np.trace(products))
        return self._tested(estimate, lambda order: _matched(products, order), x.shape[1], noise)

    def _tested(self, estimate: float, under: Callable[[Orders], Array], size: int, noise: float) -> Tested:
        """The test of a coefficient, given its values under orders of y."""
        exact = size <= MOST_ENUMERATED
        parts = [_permutations(size)] if exact else orders(size, self.n_resamples, self.seed)
        null = np.concatenate([under(part) for part in parts])
        count, center = len(null), Center(0.0)
        b = int(as_extreme(null, estimate, center, self.alternative, noise).sum())
        if not exact:
            return Tested(estimate, (b + 1) / (count + 1), False, count, 1 / (count + 1))
        smallest = most_extreme(null, center, self.alternative, noise) / count
        return Tested(estimate, max(b, 1) / count, True, count, smallest)


def coefficient(x: Array, y: Array, method: Correlation) -> float:
    """Pearson's r, Spearman's rho of midranks, or Kendall's tau-b; NaN where x or y is constant."""
    if not (varies(x) and varies(y)):
        return math.nan
    if method == "kendall":
        first, second = _signs(x), _signs(y)
        return float((first * second).sum()) / math.sqrt(float((first**2).sum() * (second**2).sum()))
    return float(np.clip(standardised(x, method) @ standardised(y, method), -1.0, 1.0))


def standardised(values: Array, method: Correlation) -> Array:
    """Values, or their midranks, with mean 0 and sum of squares 1."""
    if method == "spearman":
        from scipy.stats import rankdata

        values = rankdata(_rounded(values))
    centered = values - values.mean()
    result: Array = centered / math.sqrt(float(centered @ centered))
    return result


def _rounded(values: Array) -> Array:
    """Values to ten significant digits of the largest, so that rounding makes no ranks."""
    largest = float(np.abs(values).max())
    if largest == 0:
        return values
    return np.round(values / largest, 10)


def varies(values: Array) -> bool:
    """Whether values differ by more than rounding."""
    return float(np.ptp(values)) > ROUNDING * float(np.abs(values).max())


def _noise(values: Array) -> float:
    """Rounding of standardised values."""
    return ROUNDING * float(np.abs(values).max()) / float(np.linalg.norm(values - values.mean()))


def _matched(products: Array, order: Orders) -> Array:
    """`sum_i products[i, order[i]]` for each order, shape (A,)."""
    total = np.zeros(len(order))
    for place, row in enumerate(products):
        total += row[order[:, place]]
    return total


def _signs(values: Array) -> Array:
    """Which value of each pair is larger, shape (n, n)."""
    rounded = _rounded(values)
    signs: Array = np.sign(rounded[:, None] - rounded)
    return signs


def _tau(x: Array, y: Array, order: Orders) -> Array:
    """Kendall's tau-b of x with y in each order, shape (A,)."""
    first, second = _signs(x), _signs(y)
    total = np.zeros(len(order))
    for place, row in enumerate(first):
        for other in np.flatnonzero(row[place + 1 :]) + place + 1:
            total += row[other] * second[order[:, place], order[:, other]]
    return 2 * total / math.sqrt(float((first**2).sum() * (second**2).sum()))


def _permutations(size: int) -> Orders:
    """All orders of 0 to size - 1, shape (size!, size)."""
    result = np.zeros((1, 1), dtype=np.int64)
    for last in range(1, size):
        result = np.concatenate([np.insert(result, place, last, axis=1) for place in range(last + 1)])
    return result


def orders(size: int, number: int, seed: int) -> list[Orders]:
    """Random orders of 0 to size - 1, in parts of shape (R, size).

    The ranks of exchangeable weights are a random order; the weights depend on the seed alone, on every
    platform.
    """
    weights = Multiplicities(size, bayesian=True)
    return [
        np.argsort(weights.totals(part, seed, first=first, n_threads=1), axis=1, kind="stable")
        for first, part in chunks(number, size)
    ]


def fisher_interval(
    estimate: float, n: int, method: Correlation, conf_level: float
) -> tuple[float, float] | None:
    """Interval of a correlation by Fisher's z; None where n is too small for it, or |r| is 1.

    `tanh(atanh(r) -+ z sqrt(v))` with v = 1 / (n - 3) for Pearson's r, (1 + r^2 / 2) / (n - 3) for
    Spearman's rho and 0.437 / (n - 4) for Kendall's tau.

    References
    ----------
    Bonett, D. G. and Wright, T. A. (2000), Sample size requirements for estimating Pearson, Kendall and
    Spearman correlations, Psychometrika 65(1):23-28, doi:10.1007/BF02294183.

    Examples
    --------
    >>> low, high = fisher_interval(0.5, 28, "pearson", 0.95)
    >>> round(low, 4), round(high, 4)
    (0.156, 0.7358)
    """
    from scipy.special import ndtri

    room = n - (4 if method == "kendall" else 3)
    if room < 1 or abs(estimate) >= 1 - ROUNDING:
        return None
    spread = {"pearson": 1.0, "spearman": 1 + estimate**2 / 2, "kendall": 0.437}[method]
    half = float(ndtri(0.5 + conf_level / 2)) * math.sqrt(spread / room)
    middle = math.atanh(estimate)
    return math.tanh(middle - half), math.tanh(middle + half)
