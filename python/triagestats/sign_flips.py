"""The signed-rank test where pairs share clusters: one sign a cluster, for all of its pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.midranks import midranks, normal_tail, sign_law
from triagestats.permute import permutation_test
from triagestats.results import Alternative, Note, Test
from triagestats.walsh import collapsed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["flip_interval", "flip_test"]

_HALVINGS: Final = 36
"""Steps of the search for an end, at most: to the distance below of the range of the differences."""
_APART: Final = 1e-10
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
    """The shifts theta that the sign flips of `values - theta` do not reject on either side.

    The exact law of the flips, or its normal approximation where that would take too long. Each end is
    searched for between the extreme difference and the estimate.

    Parameters
    ----------
    values
        Differences, shape (n,).
    codes
        Cluster of each, shape (n,).
    estimate
        A shift inside the interval.
    conf_level
        Its level.
    """
    tail = (1 - conf_level) / 2

    def chance(theta: float, alternative: Alternative) -> float:
        moved = values - theta
        signed = np.where(moved == 0, 0.0, np.sign(moved) * midranks(np.abs(moved)))
        sums = np.bincount(codes, weights=signed)
        widths = np.abs(sums)
        observed = float(sums.sum())
        law = sign_law(widths)
        if law is not None:
            return law.p_value((observed + float(widths.sum())) / 2, alternative)
        return normal_tail(observed, math.sqrt(float(widths @ widths)), alternative, correction=False)[1]

    ordered = np.sort(values)
    margin = float(ordered[-1] - ordered[0]) or 1.0
    ends: list[float | None] = []
    sides: tuple[tuple[float, Alternative], ...] = (
        (float(ordered[0]) - margin, "greater"),
        (float(ordered[-1]) + margin, "less"),
    )
    for extreme, alternative in sides:
        if chance(extreme, alternative) > tail:
            message = (
                f"{int(codes.max()) + 1} clusters are too few for a {conf_level * 100:g} % interval: "
                "no shift is rejected at that level."
            )
            return None, None, (Note("degenerate", message, "caution"),)
        outside, inside = extreme, estimate
        for _ in range(_HALVINGS):
            # The chance jumps at averages of two differences only: the end is the one between the two.
            lower, upper = sorted((outside, inside))
            end = _average(ordered, upper)
            if _average(ordered, end - _APART * margin) <= lower:
                break
            middle = (outside + inside) / 2
            if chance(middle, alternative) > tail:
                inside = middle
            else:
                outside = middle
        ends.append(end)
    if ends[0] == ends[1]:
        return None, None, (collapsed(),)
    return ends[0], ends[1], ()


def _average(ordered: Array, limit: float) -> float:
    """The largest average of two of the ordered values that is at most a limit, or -infinity."""
    partner = np.searchsorted(ordered, 2 * limit - ordered, side="right") - 1
    found = ((ordered + ordered[partner]) / 2)[partner >= 0]
    return float(found.max(initial=-math.inf))
