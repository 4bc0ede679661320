"""Intervals of variance components: by profile likelihood, or from Satterthwaite's chi-square."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.models.reml import MixedFit, descend

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Ends", "profile_ends", "satterthwaite_ends"]

_CLOSE: Final = 3e-3
"""Of the logarithm of a standard deviation: the step of Newton's method after which it ends at the root.

What is left is of the size of its square, as the root of the rise is nearly linear there.
"""
_GAIN: Final = 1e-5
"""The gain in -2 log likelihood at which the other variances count as optimal."""
_SURE: Final = 8.0
"""Standard errors from 0 beyond which 0 is not tried as the lower end."""
_NOTHING: Final = 1e-4
"""A lower end below this share of the estimate is 0."""
_STEPS: Final = 40
"""Most steps to an end."""
_LIFT: Final = 0.03
"""Where a standard deviation starts again that is at 0 and better above it."""
_LIFTS: Final = 3
"""How often that is tried."""
_PULL: Final = 1e-3
"""Slope in the variance from which 0 is not best."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Intervals of variances; NaN where an end was not found.

    Attributes
    ----------
    low, high
        In units of the standardised outcome, by term, the residual last.
    n_evaluations
        Of the likelihood with its slopes.
    """

    low: Array
    high: Array
    n_evaluations: int


def satterthwaite_ends(fit: MixedFit, conf_level: float) -> Ends:
    """`v df / chi2(df)` at the tails, with df = 2 v^2 / Var(v); undefined for a variance of 0."""
    from scipy import stats

    low, high = np.full(len(fit.variances), np.nan), np.full(len(fit.variances), np.nan)
    for place, (value, spread) in enumerate(zip(fit.variances, np.diag(fit.covariance), strict=True)):
        if fit.free[place] and spread > 0:
            df = 2 * value**2 / spread
            tail = (1 - conf_level) / 2
            least = float(stats.chi2.ppf(tail, df))
            if least > 0:  # else the data say nothing of this variance
                low[place] = df * value / stats.chi2.isf(tail, df)
                high[place] = df * value / least
    return Ends(low, high, 0)


def profile_ends(fit: MixedFit, conf_level: float) -> Ends:
    """Where -2 log likelihood, maximised over all other variances, rises by the quantile of chi2(1).

    A lower end is 0 where it rises less on the way to 0. There are no ends where the fit did not converge.
    """
    from scipy import stats

    if not fit.converged:
        nothing = np.full(len(fit.variances), np.nan)
        return Ends(nothing, nothing, 0)
    rise = float(stats.chi2.isf(1 - conf_level, 1))
    search = _Search(fit, rise)
    n = len(fit.variances)
    low, high = np.empty(n), np.empty(n)
    for place in range(n):
        low[place], high[place] = search.lower(place) ** 2, search.upper(place) ** 2
    return Ends(low, high, search.calls)


class _Search:
    """Profiles in the standard deviations, in which the criterion is even."""

    def __init__(self, fit: MixedFit, rise: float) -> None:
        self.fit = fit
        self.rise = rise
        self.best = np.sqrt(fit.variances)
        self.calls = 0
        self.curvature = self._curvature()

    def _curvature(self) -> Array:
        """Second derivatives of the criterion in the standard deviations."""
        fit = self.fit
        slopes = fit.likelihood.at(fit.variances)[1]
        found = np.diag(2 * np.maximum(slopes, 1.0))
        change = 2 / self.best[fit.free]
        found[np.ix_(fit.free, fit.free)] = fit.curvature * np.outer(change, change)
        return found

    def lower(self, place: int) -> float:
        """The lower end of a standard deviation."""
        best = float(self.best[place])
        if not self.fit.free[place]:
            return 0.0
        start = best * math.exp(-min(1.0, self._log_error(place)) * math.sqrt(self.rise))
        return self._root(place, start, 0.0, best)

    def _may_be_zero(self, place: int) -> bool:
        """Whether the criterion rises too little on the way to 0 for a lower end above it."""
        is_residual = place == len(self.best) - 1
        if is_residual or self._log_error(place) * _SURE <= 1:
            return False
        inverse = self._inverse(place)
        value = self._constrained(place, 0.0, self._moved(place, 0.0), inverse)[0]
        return value - self.fit.standardised <= self.rise

    def upper(self, place: int) -> float:
        """The upper end of a standard deviation."""
        best = float(self.best[place])
        if self.fit.free[place]:
            error, width = self._log_error(place), math.sqrt(self.rise)
            # The logarithm is nearly normal, but for a variance near 0, which is nearly normal itself.
            start = best * (math.exp(error * width) if error < 1 else math.sqrt(1 + 2 * error * width))
        else:
            start = math.sqrt(2 * self.rise / self.curvature[place, place])
        return self._root(place, start, best, math.inf)

    def _log_error(self, place: int) -> float:
        """Standard error of the logarithm of a standard deviation."""
        spread = self.fit.covariance[place, place]
        return math.sqrt(spread) / (2 * float(self.fit.variances[place]))

    def _root(self, place: int, start: float, low: float, high: float) -> float:
        """Newton's method on the logarithm, kept within what is known to bracket the end."""
        point, state, above = start, self._moved(place, start), start > self.best[place]
        target, inverse = math.sqrt(self.rise), self._inverse(place)
        for step_number in range(_STEPS):
            value, slope, state, inverse = self._constrained(place, point, state, inverse)
            risen = math.sqrt(max(value - self.fit.standardised, 1e-12))
            if step_number == 0 and not above and risen < target and self._may_be_zero(place):
                return 0.0
            if not above and risen < target and point < _NOTHING * self.best[place]:
                return 0.0
            if (risen < target) == above:
                low = point
            else:
                high = point
            rate = slope * point / (2 * risen)  # of `risen`, by the logarithm
            step = (target - risen) / rate if rate and math.isfinite(risen) else math.nan
            new = point * math.exp(max(-1.5, min(1.5, step))) if math.isfinite(step) else math.nan
            if abs(step) < _CLOSE:
                return new
            if not low < new < high:
                new = (low + high) / 2 if math.isfinite(high) else 2 * point
            state = self._along(place, state, point, new)
            point = new
        return math.nan

    def _moved(self, place: int, to: float) -> Array:
        """Where the other standard deviations go when one leaves its optimum, to first order."""
        return self._along(place, self.best, float(self.best[place]), to)

    def _along(self, place: int, state: Array, point: float, to: float) -> Array:
        others = np.arange(len(state)) != place
        bend = self.curvature
        pull = np.linalg.solve(bend[np.ix_(others, others)], bend[others, place])
        moved = state.copy()
        moved[others] = np.abs(state[others] - pull * (to - point))
        moved[others] = np.maximum(moved[others], state[others] / 3)
        moved[place] = to
        return moved

    def _inverse(self, place: int) -> Array:
        """The inverse of the second derivatives in the other standard deviations, at the maximum."""
        others = np.arange(len(self.best)) != place
        return np.linalg.inv(self.curvature[np.ix_(others, others)]).astype(np.float64)

    def _constrained(
        self, place: int, value: float, state: Array, inverse: Array
    ) -> tuple[float, float, Array, Array]:
        """The criterion with one standard deviation held, its slope in that one, the others, and `inverse`.

        The last is a guess of the inverse of the second derivatives in the others, and what was learnt of it.
        """
        others = np.arange(len(state)) != place
        seen: dict[bytes, Array] = {}

        def full(free: Array) -> Array:
            found = state.copy()
            found[others], found[place] = free, value
            return found

        def function(free: Array) -> tuple[float, Array]:
            self.calls += 1
            at = full(free)
            criterion, slopes, _ = self.fit.likelihood.at(at**2)
            seen[free.tobytes()] = slopes
            return criterion, (2 * at * slopes)[others]

        point = state[others]
        for _ in range(_LIFTS):
            point, criterion, inverse = descend(function, point, inverse, tolerance=_GAIN)
            if not math.isfinite(criterion):
                return math.inf, 0.0, state, self._inverse(place)
            slopes = seen[point.tobytes()]
            held = (np.abs(point) < _LIFT / 10) & (slopes[others] < -_PULL)
            if not held.any():
                break
            point = np.where(held, _LIFT, point)  # at 0 the slope in a standard deviation vanishes
        return criterion, float(2 * value * slopes[place]), np.abs(full(point)), inverse
