"""Which arrangements are as extreme as the data: distances from a center, known or estimated, and ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.results import Alternative
from triagestats.tolerances import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "PROBES",
    "Center",
    "as_extreme",
    "at_least",
    "centers_by_symmetry",
    "most_extreme",
    "oriented",
    "ties_across",
]

PROBES: Final = 32
"""Drawn arrangements on which the symmetry of a statistic is checked."""
STANDARD_ERRORS: Final = 3
"""How many of them the mirrored point may be off, so that a tie with it still counts."""


@dataclass(frozen=True, slots=True)
class Center:
    """What distances are taken from.

    Attributes
    ----------
    at
        The mean of the statistic over all arrangements, or an estimate of it.
    slack
        How far the point that mirrors the data, 2 mu - T, may be off: 0 where the center is known.
    """

    at: float
    slack: float = 0.0

    @classmethod
    def of(cls, null: Array, observed: float, *, exact: bool) -> Center:
        """Mean over all arrangements, or over drawn ones with the data; what is not finite is left out.

        With the data among them, all R + 1 are exchangeable under the hypothesis, and so are their
        distances from the mean: the test keeps its size. The mirrored point has the standard error
        2 sd / sqrt(R + 1).
        """
        values = null if exact else np.append(null, observed)
        finite = values[np.isfinite(values)]
        if len(finite) == 0:
            return cls(0.0)
        slack = 0.0 if exact else STANDARD_ERRORS * 2 * float(finite.std()) / len(finite) ** 0.5
        return cls(float(finite.mean()), slack)


def centers_by_symmetry(values: Array, swapped: Array, noise: Array) -> Array:
    """Half of f + f(swapped) where it is one number for all arrangements, shape (E,); else NaN.

    Where swapping the two sides of an arrangement gives another one that is as likely, this is the mean over
    all of them: 0 for an antisymmetric statistic.

    Parameters
    ----------
    values, swapped
        The statistics of some arrangements and of the same with the sides swapped, shape (R, E).
    noise
        Rounding of each statistic, shape (E,).
    """
    finite = np.isfinite(values)
    paired = (finite == np.isfinite(swapped)).all(axis=0)
    kept = finite & np.isfinite(swapped)
    sums = np.where(kept, values, 0.0) + np.where(kept, swapped, 0.0)
    high = np.max(sums, axis=0, where=kept, initial=-np.inf)
    low = np.min(sums, axis=0, where=kept, initial=np.inf)
    width = np.max(values, axis=0, where=kept, initial=-np.inf) - np.min(
        values, axis=0, where=kept, initial=np.inf
    )
    slack = np.maximum(TIES * np.maximum(width, 0.0), noise)
    same = paired & kept.any(axis=0) & (high - low <= slack)
    centers = np.full(len(noise), np.nan)
    centers[same] = (high[same] + low[same]) / 4
    centers[np.abs(centers) <= slack] = 0.0
    return centers


def as_extreme(
    null: Array, observed: float, center: Center, alternative: Alternative, noise: float
) -> NDArray[np.bool_]:
    """Which arrangements are at least as far from the center as the data, shape of `null`."""
    distances, own = null - center.at, observed - center.at
    found = at_least(oriented(distances, alternative), float(oriented(np.asarray(own), alternative)), noise)
    return found | ties_across(distances, own, center, noise) if alternative == "two-sided" else found


def most_extreme(null: Array, center: Center, alternative: Alternative, noise: float) -> int:
    """How many arrangements are as extreme as the one that is most so."""
    away = oriented(null - center.at, alternative)
    highest = float(np.max(away, where=np.isfinite(away), initial=-np.inf))
    return max(int(at_least(away, highest, noise).sum()), 1) if np.isfinite(highest) else 1


def ties_across(distances: Array, own: float, center: Center, noise: float) -> NDArray[np.bool_]:
    """Values that may tie with the data across a center, and would not by the error of its estimate.

    Those that repeat among the arrangements to ten digits, and lie within the slack of the mirrored point:
    three standard errors of it. A continuous statistic has none, and all of them are counted where there
    are some: p errs upwards.

    Parameters
    ----------
    distances, own
        Signed distances of the arrangements and of the data from the center.
    center, noise
        The center, and the rounding of the statistic.
    """
    found = np.zeros(distances.shape, dtype=bool)
    if center.slack == 0 or not np.isfinite(own):
        return found
    tolerance = _tolerance(distances, own, noise)
    places = np.flatnonzero(np.abs(distances + own) <= center.slack + tolerance)
    places = places[np.argsort(distances[places], kind="stable")]
    repeats = np.diff(distances[places]) <= tolerance
    found[places[1:][repeats]] = True
    found[places[:-1][repeats]] = True
    return found


def oriented(distance: Array, alternative: Alternative) -> Array:
    """Distances from the center such that larger is more extreme."""
    if alternative == "two-sided":
        return np.abs(distance)
    return distance if alternative == "greater" else -distance


def at_least(extremes: Array, observed: float, noise: float) -> NDArray[np.bool_]:
    """Which values are at least as extreme as the observed one; NaN is not."""
    return np.greater_equal(extremes, observed - _tolerance(extremes, observed, noise))


def _tolerance(distances: Array, observed: float, noise: float) -> float:
    """How far apart two distances may lie and still tie."""
    largest = float(np.max(np.abs(distances), where=np.isfinite(distances), initial=0.0))
    return max(TIES * max(abs(observed), largest), noise)
