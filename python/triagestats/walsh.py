"""Hodges-Lehmann estimates: medians of Walsh averages and of pairwise differences, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.midranks import MOST_SIGNS, RankLaw, cube_sum, midranks, untied_signs, untied_sums
from triagestats.results import Note
from triagestats.score_intervals import normal_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Location", "collapsed", "pseudo_median", "shift"]

_LISTED: Final = 2_000_000
"""Averages that are written out; of more, single ones are searched for."""
_KEPT: Final = 512
"""Differences up to which the places of the pairs are kept between calls."""
_SEARCHED: Final = 200
"""Halvings of the range of a search, more than the digits of a float."""
_UNKNOWN: Final[tuple[int, float | None]] = (0, None)
_EQUAL: Final = 1e-12
"""Slack on a level that is met exactly."""


@dataclass(frozen=True, slots=True)
class Location:
    """An estimate of location, and its interval.

    Attributes
    ----------
    estimate
        The median of the averages.
    low, high
        Ends of the interval; None where there is none.
    level
        The level that the interval has where all values differ; None for the normal approximation.
    notes
        Why there is no interval, or what is odd about it.
    """

    estimate: float
    low: float | None
    high: float | None
    level: float | None
    notes: tuple[Note, ...] = ()

    @property
    def how(self) -> str:
        """How the ends were chosen, in a word."""
        return "normal" if self.level is None else "exact"

    def conf_level(self, asked: float) -> float | None:
        """The level to report: that asked for, or the one that few values allow."""
        if self.low is None:
            return None
        return asked if self.level is None or self.level >= asked - _EQUAL else self.level


def pseudo_median(values: Array, conf_level: float, *, exact: bool | None, correction: bool) -> Location:
    """Median of the Walsh averages `(d_i + d_j) / 2`, i <= j, with its distribution-free interval.

    The interval goes from the k-th smallest average to the k-th largest. k is the quantile of the signed-rank
    statistic of n untied values; with tied ones the closed interval covers at least as often. Or it is that
    of the normal approximation with the variance that ties leave.

    Parameters
    ----------
    values
        Differences, shape (n,).
    conf_level
        Its level.
    exact
        Whether k comes from the exact law; None where there are at most 300 values.
    correction
        Whether the normal approximation is corrected for continuity.

    References
    ----------
    Hodges, J. L. and Lehmann, E. L. (1963), Estimates of location based on rank tests, Annals of
    Mathematical Statistics 34:598-611, doi:10.1214/aoms/1177704172.

    Noether, G. E. (1967), Wilcoxon confidence intervals for location parameters in the discrete case,
    Journal of the American Statistical Association 62:184-188.
    """
    n = len(values)
    number = n * (n + 1) // 2
    by_law = n <= MOST_SIGNS if exact is None else exact
    place, level = (_signed_place(n, conf_level) if by_law else None) or _UNKNOWN
    if level is None:
        variance = n * (n + 1) * (2 * n + 1) / 24 - cube_sum(midranks(values)) / 48
        place = _normal_place(number, variance, conf_level, correction=correction)
    wanted = ((number - 1) // 2, number // 2, place - 1, number - place)
    ordered = np.sort(values)  # sorted sums are parted twice as fast
    if number <= _LISTED:
        i, j = _pairs(n) if n <= _KEPT else np.triu_indices(n)
        sums = ordered.take(i) + ordered.take(j)
        sums.partition(wanted)
        picked = [float(sums[at]) / 2 for at in wanted]
    else:

        def count(limit: float) -> int:
            pairs = int(np.searchsorted(ordered, limit - ordered, side="right").sum())
            return (pairs + int(np.searchsorted(ordered, limit / 2, side="right"))) // 2

        picked = [_searched(ordered, ordered, at, count) / 2 for at in wanted]
    still = "All differences are equal" if ordered[0] == ordered[-1] else None
    return _located(picked, level, conf_level, n, still=still)


def shift(x: Array, y: Array, conf_level: float, *, exact: bool | None, correction: bool) -> Location:
    """Median of the differences `x_i - y_j`, with its distribution-free interval.

    As `pseudo_median`, with the quantile of the Mann-Whitney statistic.

    Parameters
    ----------
    x, y
        Values of two groups, shapes (n,) and (m,).
    conf_level
        Its level.
    exact
        Whether the places of the ends come from the exact law; None where that is quick.
    correction
        Whether the normal approximation is corrected for continuity.

    References
    ----------
    Lehmann, E. L. (1963), Nonparametric confidence intervals for a shift parameter, Annals of Mathematical
    Statistics 34:1507-1512, doi:10.1214/aoms/1177703882.
    """
    n, m = len(x), len(y)
    number = n * m
    place, level = (None if exact is False else _sum_place(n, m, conf_level)) or _UNKNOWN
    if level is None:
        ties = cube_sum(midranks(x)) + cube_sum(midranks(y))
        total = n + m
        variance = number / 12 * (total + 1 - ties / (total * (total - 1)))
        place = _normal_place(number, variance, conf_level, correction=correction)
    wanted = ((number - 1) // 2, number // 2, place - 1, number - place)
    first, second = np.sort(x), np.sort(-y)
    if number <= _LISTED:
        sums = np.partition(np.add.outer(first, second).ravel(), wanted)
        picked = [float(sums[at]) for at in wanted]
    else:

        def count(limit: float) -> int:
            return int(np.searchsorted(second, limit - first, side="right").sum())

        picked = [_searched(first, second, at, count) for at in wanted]
    same = first[0] == first[-1] and second[0] == second[-1]
    return _located(
        picked, level, conf_level, n + m, still="The values of each group are equal" if same else None
    )


def _located(
    picked: Sequence[float], level: float | None, conf_level: float, n: int, *, still: str | None
) -> Location:
    """The estimate between the two middle averages, and the interval with what is odd about it."""
    lower, upper, low, high = picked
    estimate = (lower + upper) / 2
    if still is not None or (level is not None and level <= 0):
        why = still or f"{n} value" + ("" if n == 1 else "s") + " cannot make an interval"
        message = f"{why}: nothing shows how far the estimate could be off, so there is no interval."
        return Location(estimate, None, None, level, (Note("degenerate", message, "caution"),))
    if level is not None and level < conf_level - _EQUAL:
        message = (
            f"{n} values are too few for a {conf_level * 100:g} % interval; the widest one, of level "
            f"{level * 100:.4g} %, is shown."
        )
        return Location(estimate, low, high, level, (Note("conf_level", message, "caution"),))
    if low == high:
        return Location(estimate, None, None, level, (collapsed(),))
    return Location(estimate, low, high, level)


def collapsed() -> Note:
    """Why there is no interval where its ends meet."""
    message = (
        "Most averages tie with the estimate, so that its interval would have no width: such an estimate "
        "stays where it is while the other values change, and there is no interval. Read a mean difference "
        "beside it."
    )
    return Note("degenerate", message, "caution")


@lru_cache(maxsize=128)
def _signed_place(n: int, conf_level: float) -> tuple[int, float] | None:
    law = untied_signs(n)
    return None if law is None else _place(law, conf_level)


@lru_cache(maxsize=128)
def _sum_place(n: int, m: int, conf_level: float) -> tuple[int, float] | None:
    law = untied_sums(n + m, min(n, m))
    return None if law is None else _place(law, conf_level)


def _place(law: RankLaw, conf_level: float) -> tuple[int, float]:
    """The largest k with `P(T <= k - 1) <= alpha / 2`, at least 1, and the level that the ends have."""
    tail = (1 - conf_level) / 2
    below = np.cumsum(law.mass[: len(law.mass) // 2 + 1])
    k = max(1, int(np.searchsorted(below, tail * (1 + _EQUAL), side="right")))
    return k, 1 - 2 * float(below[k - 1])


def _normal_place(number: int, variance: float, conf_level: float, *, correction: bool) -> int:
    reach = normal_quantile(conf_level) * math.sqrt(max(variance, 0.0))
    k = math.ceil(number / 2 - (0.5 if correction else 0.0) - reach)
    return min(max(k, 1), (number + 1) // 2)


@lru_cache(maxsize=16)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


def _searched(first: Array, second: Array, place: int, count: Callable[[float], int]) -> float:
    """The sum `first_i + second_j` of a place in their order, without writing them out.

    Parameters
    ----------
    first, second
        Ordered values.
    place
        From 0.
    count
        Number of sums at most as large as a limit.
    """
    low, high = float(first[0] + second[0]), float(first[-1] + second[-1])
    if count(low) > place:
        return low
    for _ in range(_SEARCHED):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if count(middle) > place else (middle, high)
    partner = np.searchsorted(second, high - first, side="right") - 1
    return float((first + second[partner])[partner >= 0].max())
