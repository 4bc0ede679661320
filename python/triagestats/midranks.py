"""Midranks that float noise does not break, and the exact laws of sums of ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.lattice import Lattice, permutation_law
from triagestats.results import Alternative, Note
from triagestats.subsets import subset_law
from triagestats.tolerances import ROUNDING, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "MOST_SIGNS",
    "NO_CORRECTION",
    "RankLaw",
    "SignedRanks",
    "cube_sum",
    "midranks",
    "normal_tail",
    "sign_law",
    "signed_ranks",
    "sum_law",
    "untied_signs",
    "untied_sums",
]

MOST_SIGNS: Final = 300
"""Ranks up to which the law of their signed sum is taken exactly without being asked."""
NO_CORRECTION: Final = Note("correction", "The law is exact: the continuity correction was not applied.")
_SHIFTED: Final = 30_000_000
"""Additions up to which a law is built shift by shift, which is quicker than by groups of equal ranks."""
_SMALLEST: Final = float(np.finfo(np.float64).tiny)  # what was observed has some chance, however small
_HALF_ROOT: Final = math.sqrt(0.5)


@dataclass(frozen=True, slots=True, eq=False)
class SignedRanks:
    """Differences ranked by their size, without the zeros, from the smallest size to the largest.

    Attributes
    ----------
    ranks
        Midranks 1 to m of the m differences that are not zero, shape (m,).
    positive
        Their signs, shape (m,).
    rows
        Which differences they are, shape (m,).
    values
        All differences, shape (n,); those that tie are equal, and zeros are exactly 0.
    untied
        Whether no sizes tie.
    """

    ranks: Array
    positive: NDArray[np.bool_]
    rows: NDArray[np.intp]
    values: Array
    untied: bool

    @property
    def n_zero(self) -> int:
        """Differences that are zero."""
        return len(self.values) - len(self.ranks)


def signed_ranks(x: Array, y: Array | None = None) -> SignedRanks:
    """Rank differences by size; those that only float noise separates tie, and noise about 0 is zero.

    Sizes a <= b tie if `b - a <= 1e-10 b + noise`: they agree to ten digits, or to 1e-12 of the values that
    they are differences of; to 1e-12 of the largest where differences are given.

    Parameters
    ----------
    x, y
        Shape (n,). Differences are x - y, or x where there is no y.
    """
    differences = x if y is None else x - y
    sizes = np.abs(differences)
    order = sizes.argsort()
    ordered = sizes[order]
    largest = float(ordered[-1])
    # |y| is at most |x| + |x - y|, so that this reaches at least as far as any pair's own noise.
    reach = TIES * largest + ROUNDING * (largest if y is None else float(np.abs(x).max()) + largest)
    n = len(ordered)
    if ordered[0] > reach and (n == 1 or (ordered[1:] - ordered[:-1]).min() > reach):
        return SignedRanks(_whole(n), (differences > 0)[order], order, differences, untied=True)
    limits = np.full(n, ROUNDING * largest) if y is None else ROUNDING * np.maximum(np.abs(x), np.abs(y))
    rows = order[(sizes > limits)[order]]
    if not len(rows):
        return SignedRanks(np.empty(0), np.empty(0, dtype=np.bool_), rows, np.zeros(n), untied=True)
    sizes = sizes[rows]
    first, counts = _groups(sizes, limits[rows])
    ranks = np.repeat(first + (counts + 1) / 2, counts)
    positive = differences[rows] > 0
    values = np.zeros(n)
    typical = np.repeat(sizes[first + (counts - 1) // 2], counts)
    values[rows] = np.where(positive, typical, -typical)
    return SignedRanks(ranks, positive, rows, values, untied=len(counts) == len(rows))


def midranks(values: Array) -> Array:
    """Ranks from 1, shape (n,); values that only float noise separates share the mean of their ranks.

    Values a <= b tie if they agree to ten digits, or to 1e-12 of the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.midranks import midranks
    >>> midranks(np.array([0.3, 0.1 + 0.2, 0.1, 5.0])).tolist()
    [2.5, 2.5, 1.0, 4.0]
    """
    order = values.argsort()
    noise = np.broadcast_to(ROUNDING * np.abs(values).max(), values.shape)
    first, counts = _groups(values[order], noise)
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    return ranks


def _groups(ordered: Array, noise: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each group of tied values starts in ordered ones, and its size."""
    sizes = np.abs(ordered)
    reach = TIES * np.maximum(sizes[1:], sizes[:-1]) + np.maximum(noise[1:], noise[:-1])
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] - ordered[:-1] > reach]))
    return first, np.diff(first, append=len(ordered))


def cube_sum(ranks: Array) -> float:
    """Sum over groups of t tied ranks of `t^3 - t`."""
    counts = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    return float((counts**3 - counts).sum())


@lru_cache(maxsize=64)
def _whole(n: int) -> Array:
    ranks = np.arange(1.0, n + 1)
    ranks.setflags(write=False)  # handed out again and again
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class RankLaw:
    """Exact law of a sum of ranks, on the multiples of a step.

    Attributes
    ----------
    start
        The lowest sum.
    step
        The step, a multiple of 1/2.
    mass
        Probability of `start`, `start + step`, ..., shape (N,). Each is a sum of positive terms, so that
        small ones keep their leading digits.
    """

    start: float
    step: float
    mass: Array

    def tails(self, value: float) -> tuple[float, float]:
        """`P(T <= value)` and `P(T >= value)`."""
        place = round((value - self.start) / self.step)
        last = len(self.mass) - 1
        below = 1.0 if place == last else _chance(self.mass[: place + 1])
        return below, 1.0 if place == 0 else _chance(self.mass[place:])

    def beyond(self, value: float) -> float:
        """`P(|T - mu| >= |value - mu|)`, with mu the mean."""
        places = np.arange(len(self.mass))
        # Twice the mean of a sum of ranks is whole for signs; for subsets it is a fraction, met by the slack.
        center = float(places @ self.mass)
        distance = abs((value - self.start) / self.step - center)
        slack = TIES * len(self.mass)
        return _chance(self.mass[np.abs(places - center) >= distance - slack])

    def p_value(self, value: float, alternative: Alternative) -> float:
        """Of the sum, two-sided by doubling the smaller tail."""
        below, above = self.tails(value)
        if alternative == "two-sided":
            return min(1.0, 2 * min(below, above))
        return above if alternative == "greater" else below


def _chance(masses: Array) -> float:
    return min(1.0, max(float(masses.sum()), _SMALLEST))


def sign_law(ranks: Array) -> RankLaw | None:
    """Law of the sum of the ranks with a positive sign, every sign as likely; None where it is too long.

    Parameters
    ----------
    ranks
        Multiples of 1/2, shape (m,); also sums of them.

    References
    ----------
    Streitberg, B. and Roehmel, J. (1986), Exact distributions for permutation and rank tests: an
    introduction to some recently published algorithms, Statistical Software Newsletter 12:10-17.
    """
    doubled = np.rint(2 * ranks).astype(np.int64)
    unit = int(np.gcd.reduce(doubled))
    if unit == 0:  # nothing moves
        return RankLaw(0.0, 0.5, np.ones(1))
    if len(doubled) <= MOST_SIGNS and len(doubled) * (int(doubled.sum()) // unit) < _SHIFTED:
        return RankLaw(0.0, unit / 2, _added(doubled // unit))
    law = permutation_law(Lattice(np.stack([np.zeros_like(doubled), doubled // unit], axis=1), unit / 2))
    return None if law is None else RankLaw(law.start * law.step, law.step, law.mass)


def _added(widths: NDArray[np.int64]) -> Array:
    """Masses of the sum of some of the widths, one shift a width; so many that 2^m is no overflow."""
    mass = np.zeros(int(widths.sum()) + 1)
    mass[0] = 1.0
    length = 1
    for width in widths.tolist():
        mass[width : length + width] += mass[:length]
        length += width
    return np.ldexp(mass, -len(widths))


@lru_cache(maxsize=64)
def untied_signs(n: int) -> RankLaw | None:
    """`sign_law` of the ranks 1 to n."""
    return sign_law(_whole(n))


def sum_law(ranks: Array, size: int) -> RankLaw | None:
    """Law of the sum of `size` ranks drawn without replacement; None where it is too long."""
    doubled = np.rint(2 * ranks).astype(np.int64)
    shifts = np.sort(doubled - doubled.min())
    unit = int(np.gcd.reduce(shifts)) or 1
    law = subset_law(Lattice(shifts // unit, unit / 2), size)
    if law is None:
        return None
    lowest = int(shifts[:size].sum()) // unit  # the first sum that there is
    return RankLaw(size * float(doubled.min()) / 2 + lowest * law.step, law.step, law.mass[lowest:])


@lru_cache(maxsize=64)
def untied_sums(n: int, size: int) -> RankLaw | None:
    """`sum_law` of the ranks 1 to n."""
    return sum_law(_whole(n), size)


def normal_tail(
    distance: float, deviation: float, alternative: Alternative, *, correction: bool
) -> tuple[float, float]:
    """Deviate z and p-value of a statistic by the normal approximation.

    Parameters
    ----------
    distance
        The statistic minus its mean.
    deviation
        Its standard deviation, positive.
    alternative
        Which side counts.
    correction
        Whether the statistic is moved by 1/2 towards what is tested; for two sides towards its mean, and
        no further.
    """
    if correction:
        towards = math.copysign(min(0.5, abs(distance)), distance)
        distance -= towards if alternative == "two-sided" else 0.5 if alternative == "greater" else -0.5
    z = distance / deviation
    side = abs(z) if alternative == "two-sided" else z if alternative == "greater" else -z
    chance = 0.5 * math.erfc(side * _HALF_ROOT)
    return z, min(1.0, 2 * chance) if alternative == "two-sided" else chance
