"""Midranks that float noise does not break, and the exact laws of sums of ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.lattice import Lattice, permutation_law
from triagestats.results import Alternative, Note
from triagestats.subsets import subset_law
from triagestats.tolerances import ROUNDING, SMALLEST, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int32] | NDArray[np.int64] | NDArray[np.float64]

__all__ = [
    "MOST_ASKED",
    "MOST_SIGNS",
    "NO_CORRECTION",
    "RankLaw",
    "SignedRanks",
    "cube_sum",
    "is_countable",
    "midranks",
    "normal_tail",
    "shifted",
    "sign_law",
    "signed_ranks",
    "sum_law",
    "untied_signs",
    "untied_sums",
]

MOST_SIGNS: Final = 300
"""Ranks up to which the law of their signed sum is taken exactly without being asked."""
MOST_ASKED: Final = 1_000
"""Ranks up to which it can be asked for: 2^1,000 arrangements can be counted in floats."""
NO_CORRECTION: Final = Note("correction", "The law is exact: the continuity correction was not applied.")
_SHIFTED: Final = 30_000_000
"""Additions up to which a law is built shift by shift, which is quicker than by groups of equal ranks."""
_ASKED: Final = 2_000_000_000
"""The same where the law is asked for: 1,000 ranks with ties, some tenths of a second."""
_COUNTED: Final[tuple[tuple[int, Any], ...]] = ((30, np.int32), (62, np.int64))
"""Numbers of widths whose subsets integers of 32 and of 64 bits can count."""
_AT_ONCE: Final = 10
"""Widths for which the slices are the same."""
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
    if (n_zero := int(ordered.searchsorted(reach, side="right"))) < n:
        gaps = ordered[n_zero + 1 :] - ordered[n_zero : n - 1]
        apart = gaps > reach
        exactly_zero = n_zero == 0 or ordered[n_zero - 1] == 0
        if exactly_zero and np.count_nonzero(gaps) == np.count_nonzero(apart):  # nothing to round
            rows = order[n_zero:]
            first, counts = _runs(apart)
            positive = differences[rows] > 0
            return SignedRanks(_shared(first, counts), positive, rows, differences, len(counts) == len(rows))
    limits = np.full(n, ROUNDING * largest) if y is None else ROUNDING * np.maximum(np.abs(x), np.abs(y))
    rows = order[(sizes > limits)[order]]
    if not len(rows):
        return SignedRanks(np.empty(0), np.empty(0, dtype=np.bool_), rows, np.zeros(n), untied=True)
    sizes = sizes[rows]
    first, counts = _groups(sizes, limits[rows])
    ranks = _shared(first, counts)
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
    ranks[order] = _shared(first, counts)
    return ranks


def _groups(ordered: Array, noise: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each group of tied values starts in ordered ones, and its size."""
    sizes = np.abs(ordered)
    reach = TIES * np.maximum(sizes[1:], sizes[:-1]) + np.maximum(noise[1:], noise[:-1])
    return _runs(ordered[1:] - ordered[:-1] > reach)


def _runs(apart: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where runs start, and their sizes, from whether each value is apart from the one before."""
    starts = apart.nonzero()[0]
    edges = np.zeros(len(starts) + 2, dtype=np.intp)
    edges[1:-1] = starts
    edges[1:-1] += 1
    edges[-1] = len(apart) + 1
    return edges[:-1], edges[1:] - edges[:-1]


def _shared(first: NDArray[np.intp], counts: NDArray[np.intp]) -> Array:
    """The mean rank of each run, for each of its members."""
    ranks: Array = (first + (counts + 1) / 2).repeat(counts)
    return ranks


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
    return min(1.0, max(float(masses.sum()), SMALLEST))


def sign_law(ranks: Array, *, asked: bool = False) -> RankLaw | None:
    """Law of the sum of the ranks with a positive sign, every sign as likely; None where it is too long.

    Parameters
    ----------
    ranks
        Multiples of 1/2, shape (m,); also sums of them.
    asked
        Whether the caller asked for it, so that it may take its time.

    References
    ----------
    Streitberg, B. and Roehmel, J. (1986), Exact distributions for permutation and rank tests: an
    introduction to some recently published algorithms, Statistical Software Newsletter 12:10-17.
    """
    doubled = np.rint(2 * ranks).astype(np.int64)
    unit = int(np.gcd.reduce(doubled))
    if unit == 0:  # nothing moves
        return RankLaw(0.0, 0.5, np.ones(1))
    if is_countable(len(doubled), int(doubled.sum()) // unit, asked=asked):
        return RankLaw(0.0, unit / 2, _shares((doubled // unit).tolist()))
    law = permutation_law(Lattice(np.stack([np.zeros_like(doubled), doubled // unit], axis=1), unit / 2))
    return None if law is None else RankLaw(law.start * law.step, law.step, law.mass)


def is_countable(n: int, total: int, *, asked: bool) -> bool:
    """Whether the law of n widths with this sum is built width by width."""
    most, work = (MOST_ASKED, _ASKED) if asked else (MOST_SIGNS, _SHIFTED)
    return n <= most and n * total < work


def _shares(widths: list[int]) -> Array:
    shares: Array = np.ldexp(shifted(widths).astype(np.float64), -len(widths))
    return shares


def shifted(widths: list[int], start: Counts | None = None, *, held: int = 0) -> Counts:
    """Numbers of the subsets of the widths by their sum, from 0: one addition a width.

    As long as all subsets can be counted in 32 or 64 bits they are integers, which add up faster; beyond,
    floats, which are sums of positive terms.

    Parameters
    ----------
    widths
        Whole numbers from 0.
    start, held
        Numbers of the subsets of other widths, and how many widths those are.
    """
    found = np.ones(1, dtype=np.int32) if start is None else start
    for most, kind in _COUNTED:
        if widths and held < most:
            some, widths = widths[: most - held], widths[most - held :]
            found, held = _added(some, found.astype(kind)), held + len(some)
    return _added(widths, found.astype(np.float64)) if widths else found


def _added(widths: list[int], given: Counts) -> Counts:
    """Two arrays take turns, so that none is added to itself, with zeros in front for what is shifted in."""
    pad = max(widths)
    end = pad + len(given)
    size = end + sum(widths)
    now, then = np.zeros(size, given.dtype), np.zeros(size, given.dtype)
    now[pad:end] = given
    add = np.add
    for place in range(0, len(widths), _AT_ONCE):
        some = widths[place : place + _AT_ONCE]
        end += sum(some)
        here, there = now[pad:end], then[pad:end]  # some places are zeros still
        for width in some:
            add(here, now[pad - width : end - width], there)
            now, then, here, there = then, now, there, here
    return now[pad:end]


def untied_signs(n: int) -> RankLaw | None:
    """`sign_law` of the ranks 1 to n, as if it was asked for; those that are used often are kept."""
    return _untied_signs(n) if n <= MOST_SIGNS else sign_law(_whole(n), asked=True)


@lru_cache(maxsize=64)
def _untied_signs(n: int) -> RankLaw | None:
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
