"""The signed-rank test where pairs share clusters: one sign a cluster, for all of its pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.midranks import midranks, normal_tail
from triagestats.permute import permutation_test
from triagestats.results import Alternative, Note, Test
from triagestats.sign_sums import sign_p_value
from triagestats.walsh import Location, collapsed, pseudo_median

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["FLIP_DETAILS", "flip_interval", "flip_location", "flip_test"]

FLIP_DETAILS: Final = ("way", "smallest_p_value", "n_clusters", "n_moving", "n_resamples", "seed")
"""What a result tells of a test by sign flips."""

_APART: Final = 1e-9
"""Averages that are nearer to each other are one, as a share of the range of the differences."""


def flip_test(signed: Array, codes: Codes, *, alternative: Alternative, n_resamples: int, seed: int) -> Test:
    """Permutation test of the sum of signed ranks, with the ranks fixed and one sign flip a cluster.

    Parameters
    ----------
    signed
        Signed ranks, shape (n,).
    codes
        Cluster of each, shape (n,).
    alternative, n_resamples, seed
        As in `permutation_test`.

    References
    ----------
    Rosner, B., Glynn, R. J. and Lee, M.-L. T. (2006), The Wilcoxon signed rank test for paired comparisons
    of clustered data, Biometrics 62:185-192, doi:10.1111/j.1541-0420.2005.00389.x.
    """
    found: Any = permutation_test(
        signed,
        np.zeros(len(signed)),
        clusters=codes,
        alternative=alternative,
        n_resamples=n_resamples,
        seed=seed,
    )
    test: Test = found
    return test


def flip_interval(
    values: Array, codes: Codes, estimate: float, conf_level: float
) -> tuple[float | None, float | None, tuple[Note, ...]]:
    """The shifts theta that the sign flips of `values - theta` do not reject on either side, ends included.

    The exact law of the flips, or its normal approximation where that would take too long. With A the
    clusters that are flipped, `P(T* >= T) = P(sum over A of S_g <= 0)`, and no S_g rises with theta: the
    p-value of `greater` never falls as theta rises, and it changes at averages of two differences only. The
    lower end is the first average to the right of which it is above alpha / 2; the upper end is minus that of
    the negative values.

    Parameters
    ----------
    values
        Differences, shape (n,).
    codes
        Cluster of each, shape (n,).
    estimate
        The median of their averages, which is inside.
    conf_level
        The level.
    """
    tail = (1 - conf_level) / 2
    lowest, highest = (_first_accepted(sign * values, codes, sign * estimate, tail) for sign in (1.0, -1.0))
    if lowest is None or highest is None:
        message = (
            f"{int(codes.max()) + 1} clusters are too few for a {conf_level * 100:g} % interval: "
            "no shift is rejected at that level."
        )
        return None, None, (Note("degenerate", message, "caution"),)
    low, high = lowest, 0.0 - highest
    if high - low <= _APART * float(np.ptp(values)):
        return None, None, (collapsed(),)
    return low, high, ()


def flip_location(values: Array, codes: Codes, conf_level: float) -> Location:
    """The pseudo-median, with the interval of `flip_interval`."""
    center = pseudo_median(values, conf_level, exact=False, correction=False).estimate
    low, high, notes = flip_interval(values, codes, center, conf_level)
    return Location(center, low, high, None, notes)


def _first_accepted(values: Array, codes: Codes, estimate: float, tail: float) -> float | None:
    """The first average of two values to the right of which the flips are not rejected; None if none is."""
    ordered = np.sort(values)
    span = float(ordered[-1] - ordered[0]) or 1.0
    apart = _APART * span

    def accepted(average: float) -> bool:
        """Whether the shifts between an average and the next one are inside."""
        following = _average_above(ordered, average + apart)
        return (
            _chance(values - ((average + following) / 2 if following < math.inf else average + span), codes)
            > tail
        )

    if _chance(values - (float(ordered[0]) - span), codes) > tail:
        return None
    if accepted(float(ordered[0])):
        return float(ordered[0])
    # No average up to `lower` is the end, and `end` is accepted.
    lower, end = float(ordered[0]) + apart, _average_below(ordered, estimate + apart)
    while _average_above(ordered, lower) < end - apart:
        middle = (lower + end) / 2
        average = _average_below(ordered, middle)
        if average > lower and accepted(average):
            end = average
        else:
            lower = middle
    return end


def _chance(moved: Array, codes: Codes) -> float:
    """P(T* >= T) of the sum of signed ranks, for values of which none is 0."""
    sums = np.bincount(codes, weights=np.sign(moved) * midranks(np.abs(moved)))
    widths = np.abs(sums)
    observed = float(sums.sum())
    exact = sign_p_value(widths, (observed + float(widths.sum())) / 2, "greater")
    if exact is not None:
        return exact
    return normal_tail(observed, math.sqrt(float(widths @ widths)), "greater", correction=False)[1]


def _average_below(ordered: Array, limit: float) -> float:
    """The largest average of two of the ordered values that is at most a limit, or -infinity."""
    partner = np.searchsorted(ordered, 2 * limit - ordered, side="right") - 1
    found = ((ordered + ordered[partner]) / 2)[partner >= 0]
    return float(found.max(initial=-math.inf))


def _average_above(ordered: Array, limit: float) -> float:
    """The smallest average of two of the ordered values that is above a limit, or infinity."""
    partner = np.searchsorted(ordered, 2 * limit - ordered, side="right")
    there = partner < len(ordered)
    return float(((ordered + ordered[partner * there]) / 2)[there].min(initial=math.inf))
