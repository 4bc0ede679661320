"""How far two sets of replicates may differ: bands for quantiles, means, spreads and p-values.

All are four standard errors wide on each side: one end in about 16,000 lies outside by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Band", "band_of_mean", "band_of_p", "band_of_spread", "bands_of_ends", "bands_of_tail"]

ERRORS: Final = 4.0
"""Standard errors on each side."""
_ROUNDING: Final = 1e-9

Ends = Callable[[float], tuple[float | None, float | None]]
"""The ends of the percentile interval at a level, from the same replicates."""


@dataclass(frozen=True, slots=True)
class Band:
    """Where a resampled value of the source may lie.

    Attributes
    ----------
    low, high
        Its ends.
    source, library
        Replicates on both sides; None where the library has the exact law.
    """

    low: float
    high: float
    source: int
    library: int | None

    def holds(self, value: float, slack: float = 0.0) -> bool:
        """Whether a value lies in it."""
        room = slack + _ROUNDING * max(1.0, abs(self.low), abs(self.high))
        return self.low - room <= value <= self.high + room

    def __str__(self) -> str:
        exact = "the exact law" if self.library is None else f"{self.library:,}"
        return (
            f"{self.low:.4g} to {self.high:.4g}: {ERRORS:g} standard errors of {self.source:,} replicates of "
            f"the source and {exact} of the library"
        )


def _share(source: int, library: int | None) -> float:
    """1 / R of the source and of the library."""
    return 1 / source + (0.0 if library is None else 1 / library)


def bands_of_ends(ends: Ends, conf_level: float, source: int, library: int | None) -> tuple[Band, Band]:
    """Bands of the two ends of a percentile interval.

    The number of replicates below a quantile of probability q is binomial, so that the quantile of one set of
    replicates lies between those of probability q +- 4 sqrt(q (1 - q) (1/R + 1/R')) of the other: steps of a
    discrete statistic are in it, and nothing is taken to be normal.

    Parameters
    ----------
    ends
        The percentile interval of the library at any level.
    conf_level
        The level of the source.
    source, library
        Replicates.
    """
    tail = (1 - conf_level) / 2
    wide = ERRORS * math.sqrt(tail * (1 - tail) * _share(source, library))
    outer = max(tail - wide, min(tail, 1 / (library or source)) / 2)
    inner = min(tail + wide, 0.499)
    (low_out, high_out), (low_in, high_in) = (ends(1 - 2 * q) for q in (outer, inner))
    return (
        Band(_known(low_out), _known(low_in), source, library),
        Band(_known(high_in), _known(high_out), source, library),
    )


def bands_of_tail(quantile: float, step: float, density: float, source: int, library: int) -> Band:
    """The band of one upper 5 % quantile of a law with a known density there, and a step of its lattice."""
    error = math.sqrt(0.05 * 0.95 * _share(source, library)) / density
    return Band(quantile - ERRORS * error - step, quantile + ERRORS * error + step, source, library)


def band_of_mean(mean: float, spread: float, source: int, library: int | None) -> Band:
    """The band of the mean of replicates with a standard deviation."""
    error = ERRORS * spread * math.sqrt(_share(source, library))
    return Band(mean - error, mean + error, source, library)


def band_of_spread(spread: float | None, source: int, library: int | None) -> Band:
    """The band of the standard deviation of replicates that are about normal; None is one that is 0."""
    spread = spread or 0.0
    error = ERRORS * spread * math.sqrt(_share(source, library) / 2)
    return Band(spread - error, spread + error, source, library)


def band_of_p(p_value: float, source: int, library: int | None) -> Band:
    """The band of a drawn p-value, (b + 1) / (R + 1) or b / R."""
    error = ERRORS * math.sqrt(p_value * (1 - p_value) * _share(source, library))
    return Band(max(0.0, p_value - error - 1 / source), p_value + error + 1 / source, source, library)


def _known(value: float | None) -> float:
    return math.nan if value is None else value
