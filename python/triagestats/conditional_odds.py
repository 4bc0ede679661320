"""The law of one cell of a 2 x 2 table given its margins, at any odds ratio."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.results import Alternative
from triagestats.tolerances import SMALLEST, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

__all__ = ["ConditionalLaw"]

_ROOT: Final = 1e-14
"""Error of a root on the log odds."""
_MOST_DOUBLINGS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalLaw:
    """The first cell given the margins, all of them positive: hypergeometric, tilted by the odds ratio.

    Attributes
    ----------
    values
        What the cell can be, shape (N,), one apart.
    log_mass
        Log probabilities at an odds ratio of 1.
    place
        Where the observed cell is among them.
    """

    values: Array
    log_mass: Array
    place: int

    @staticmethod
    def size(counts: Counts) -> int:
        """How many tables have these margins."""
        (a, b), (c, d) = counts.tolist()
        return int(min(a + b, a + c) - max(0, a - d) + 1)

    @classmethod
    def of(cls, counts: Counts) -> ConditionalLaw:
        (a, b), (c, d) = counts.tolist()
        low, high = max(0, a - d), min(a + b, a + c)
        values = np.arange(low, high + 1, dtype=np.float64)
        # Ratios of neighbours, summed from the mode outwards: no large logarithm cancels.
        x = values[:-1]
        steps = np.log((a + b - x) * (a + c - x)) - np.log((x + 1) * (d - a + x + 1))
        mode = int(np.searchsorted(-steps, 0.0))
        log_mass = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
        return cls(values, log_mass - _log_sum(log_mass), a - low)

    @property
    def less(self) -> float:
        """Probability of a cell of at most the observed one, at an odds ratio of 1."""
        return self._sum(np.arange(len(self.values)) <= self.place)

    @property
    def greater(self) -> float:
        """Probability of a cell of at least the observed one."""
        return self._sum(np.arange(len(self.values)) >= self.place)

    @property
    def mass(self) -> float:
        """Probability of the observed table."""
        return float(np.exp(self.log_mass[self.place]))

    def minimum_likelihood(self) -> tuple[float, float]:
        """Probability of the tables that are no likelier than the observed one, and its mid-p version."""
        own = float(self.log_mass[self.place])
        beyond = self.log_mass < own - TIES
        ties = np.abs(self.log_mass - own) <= TIES
        rarer = self._sum(beyond) if beyond.any() else 0.0
        return self._sum(beyond | ties), rarer + self._sum(ties) / 2

    def blaker(self) -> float:
        """Probability of the tables whose smaller tail is no larger than that of the observed one."""
        below = np.logaddexp.accumulate(self.log_mass)
        above = np.logaddexp.accumulate(self.log_mass[::-1])[::-1]
        tails = np.minimum(below, above)
        return self._sum(tails <= tails[self.place] + TIES)

    def odds_ratio(self) -> float:
        """The conditional maximum likelihood estimate: the odds ratio at which the cell is its own mean."""
        if self.place in (0, len(self.values) - 1):
            return 0.0 if self.place == 0 else math.inf
        return math.exp(_root(self._mean))

    def interval(self, conf_level: float, alternative: Alternative) -> tuple[float, float]:
        """Odds ratios that the one-sided tests do not refuse: both at half of alpha, or one at all of it."""
        tail = math.log((1 - conf_level) / (2 if alternative == "two-sided" else 1))
        low, high = 0.0, math.inf
        if alternative != "less" and self.place > 0:
            low = math.exp(_root(lambda log_odds: self._log_tail(log_odds, upper=True) - tail))
        if alternative != "greater" and self.place < len(self.values) - 1:
            high = math.exp(_root(lambda log_odds: tail - self._log_tail(log_odds, upper=False)))
        return low, high

    def _sum(self, kept: NDArray[np.bool_]) -> float:
        if kept.all():
            return 1.0
        return min(1.0, max(float(np.sort(np.exp(self.log_mass[kept])).sum()), SMALLEST))

    def _tilted(self, log_odds: float) -> Array:
        """Log masses at another odds ratio, up to a constant."""
        tilted: Array = self.log_mass + log_odds * (self.values - self.values[self.place])
        return tilted

    def _mean(self, log_odds: float) -> float:
        """Mean less the observed cell, up to a positive factor."""
        tilted = self._tilted(log_odds)
        return float((np.exp(tilted - tilted.max()) * (self.values - self.values[self.place])).sum())

    def _log_tail(self, log_odds: float, *, upper: bool) -> float:
        tilted = self._tilted(log_odds)
        part = tilted[self.place :] if upper else tilted[: self.place + 1]
        return _log_sum(part) - _log_sum(tilted)


def _log_sum(logs: Array) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def _root(increasing: Callable[[float], float]) -> float:
    """Where an increasing function of the log odds is 0; it has one root."""
    from scipy.optimize import brentq

    low, high = -1.0, 1.0
    for _ in range(_MOST_DOUBLINGS):
        if increasing(low) <= 0:
            break
        low *= 2
    for _ in range(_MOST_DOUBLINGS):
        if increasing(high) >= 0:
            break
        high *= 2
    return float(brentq(increasing, low, high, xtol=_ROOT, rtol=4 * np.finfo(np.float64).eps, maxiter=500))
