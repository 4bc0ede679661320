"""Estimates of variance components by restricted or full maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.errors import DesignError
from triagestats.models.reml_evaluation import Likelihood, evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["MixedFit", "descend", "fit_variances", "slopes_of_slopes"]

_STARTS: Final = (0.53, 0.11)
"""Starting values: the ratio of each standard deviation to that of the residual."""
_LIFTS: Final = 3
"""How often a search starts again from where it came to rest at 0 without need."""
_EXACT: Final = 1e-4
"""A residual below this share of what the fixed effects leave counts as a perfect fit."""
_SMALL: Final = 1e-2
"""A ratio of variances below this is tried as 0."""
_VANISHING: Final = 1e-7
"""A ratio below this counts as 0: in discrete data the maximum may lie at 0 with no slope."""
_FLAT: Final = 1e-6
"""A slope at 0 that promises less is none."""
_DECREMENT: Final = 1e-18
"""Twice the gain in log likelihood that another Newton step promises, at which the search ends."""
_STEPS: Final = 20
"""Most Newton steps."""
_CHEAP: Final = 2e7
"""Multiplications in one likelihood up to which all starts are run, else the first only."""
_REST: Final = 1e-12
"""The promised gain at which the first search ends."""
_STALE: Final = 1e-6
"""How far log variances may lie from where the curvature was computed."""
_ACCEPTED: Final = 1e-6
"""The same, above which the fit is said not to have converged."""
_APART: Final = 1e-4
"""Two starts that end further apart than this in -2 log likelihood have found different optima."""


@dataclass(frozen=True, slots=True, eq=False)
class MixedFit:
    """A fitted mixed model, its variances in units of the standardised outcome.

    Attributes
    ----------
    likelihood
        What was maximised.
    variances
        By term, the residual last, shape (t + 1,).
    criterion
        -2 log likelihood of the outcome as it came.
    standardised
        The same of the standardised outcome.
    free
        Which variances are not at their boundary 0.
    curvature
        Second derivatives of the criterion in the logarithms of the free variances.
    covariance_slopes
        Derivatives in the same of the covariance of the fixed effects, shape (free, p, p).
    decrement
        What another Newton step promises; None where the curvature allows none.
    converged
        Whether the slopes vanish, or push against the boundary.
    starts_agree
        Whether every start ended at the same value.
    n_evaluations
        Of the likelihood with its slopes.
    """

    likelihood: Likelihood
    variances: Array
    criterion: float
    standardised: float
    free: NDArray[np.bool_]
    curvature: Array
    covariance_slopes: Array
    decrement: float | None
    converged: bool
    starts_agree: bool
    n_evaluations: int

    @property
    def covariance(self) -> Array:
        """Covariance of the estimated variances, shape (t + 1, t + 1); 0 where one is at the boundary."""
        found = np.zeros((len(self.variances), len(self.variances)))
        scale = self.variances[self.free]
        found[np.ix_(self.free, self.free)] = 2 * np.linalg.pinv(self.curvature) * np.outer(scale, scale)
        return found


def fit_variances(likelihood: Likelihood, names: Sequence[str]) -> MixedFit:
    """The variances that maximise the likelihood.

    Parameters
    ----------
    likelihood
        Of a standardised model.
    names
        Of the random terms, for messages.

    Raises
    ------
    DesignError
        If the fixed effects leave nothing of a term, or the model fits every row.

    Notes
    -----
    The residual variance is profiled out and quasi-Newton runs on the ratios of standard deviations, where
    the criterion is even, so that no bound is needed; a ratio that vanishes is put to 0 where the slope says
    that 0 is best. Newton steps on log variances follow. The best end of two starts counts; large models,
    whose likelihood has one maximum in practice, get one start.
    """
    _check(likelihood, names)
    counter = _Counter(likelihood)
    n = likelihood.sums.n_terms
    starts = _STARTS if likelihood.sums.work <= _CHEAP else _STARTS[:1]
    ends = [_search(counter, np.full(n, start)) for start in starts]
    best = min(ends, key=lambda end: end[1])
    starts_agree = max(end[1] for end in ends) - best[1] < _APART
    at_zero = _to_the_boundary(counter, best[0] ** 2)
    ratios = np.where(at_zero, 0.0, best[0] ** 2)
    residual = likelihood.profiled(ratios)[2]
    variances = np.append(ratios, 1.0) * residual
    free = np.append(~at_zero, True)
    peak = _polish(counter, variances, free)
    for _ in range(n):
        vanished = free & (peak.variances < _VANISHING * peak.variances[-1])
        if not vanished.any():
            break
        free = free & ~vanished
        peak = _polish(counter, np.where(vanished, 0.0, peak.variances), free)
    value, slopes, _ = counter.at(peak.variances)
    pushed = slopes[~free] * residual >= -np.sqrt(_ACCEPTED)
    return MixedFit(
        likelihood=likelihood,
        variances=peak.variances,
        criterion=value + 2 * likelihood.df * float(np.log(likelihood.sums.scale)) + _of_columns(likelihood),
        standardised=value,
        free=free,
        curvature=peak.curvature,
        covariance_slopes=peak.covariance_slopes,
        decrement=peak.decrement,
        converged=bool(peak.decrement is not None and peak.decrement < _ACCEPTED and pushed.all()),
        starts_agree=bool(starts_agree),
        n_evaluations=counter.calls,
    )


def descend(
    function: Callable[[Array], tuple[float, Array]], start: Array, inverse: Array, *, tolerance: float
) -> tuple[Array, float, Array]:
    """Minimum of a smooth function by BFGS steps, each shortened until it gains.

    Parameters
    ----------
    function
        Value and slopes; where it is infinite or has no value the step is shortened.
    start
        Where to start, shape (n,).
    inverse
        A guess of the inverse of the second derivatives there.
    tolerance
        The gain promised by the next step at which to stop.

    Returns
    -------
    point, value, inverse
        The inverse as it was learnt.
    """
    point, (value, slopes) = start, _value(function, start)
    for _ in range(200 if np.isfinite(value) else 0):
        step = -inverse @ slopes
        promised = float(-slopes @ step) / 2
        if promised <= 0:  # the guess is no longer positive definite
            inverse = np.eye(len(start)) / max(1.0, float(np.linalg.norm(slopes)))
            step = -inverse @ slopes
            promised = float(-slopes @ step) / 2
        if promised < tolerance:
            break
        size = min(1.0, 1.0 / float(np.abs(step).max()))
        for _ in range(40):
            new = point + size * step
            new_value, new_slopes = _value(function, new)
            if new_value <= value - 1e-4 * size * 2 * promised:
                break
            size /= 4
        else:
            break
        moved, turned = new - point, new_slopes - slopes
        point, value, slopes = new, new_value, new_slopes
        inverse = _updated(inverse, moved, turned)
    return point, value, inverse


def _value(function: Callable[[Array], tuple[float, Array]], point: Array) -> tuple[float, Array]:
    """The function, infinite where its matrices are singular in floating point."""
    try:
        return function(point)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros(len(point))


def slopes_of_slopes(slopes: Callable[[Array], Array], point: Array, step: float = 1e-4) -> Array:
    """Derivatives of a vector in each coordinate by central differences, one row a coordinate."""
    rows = []
    for place in range(len(point)):
        move = np.zeros(len(point))
        move[place] = step
        rows.append((slopes(point + move) - slopes(point - move)) / (2 * step))
    return np.array(rows)


def _updated(inverse: Array, moved: Array, turned: Array) -> Array:
    """The BFGS formula; unchanged where the curvature along the step is not positive."""
    along = float(moved @ turned)
    if along <= 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(turned)):
        return inverse
    left = np.eye(len(moved)) - np.outer(moved, turned) / along
    found: Array = left @ inverse @ left.T + np.outer(moved, moved) / along
    return found


class _Counter:
    """The likelihood, with the number of calls."""

    __slots__ = ("calls", "likelihood")

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood
        self.calls = 0

    def ratios(self, roots: Array) -> tuple[float, Array]:
        """The profiled criterion by the ratios of standard deviations."""
        self.calls += 1
        value, slopes, _ = self.likelihood.profiled(roots**2)
        return value, 2 * roots * slopes

    def at(self, variances: Array) -> tuple[float, Array, Array]:
        """The criterion, its slopes in the variances, and the covariance of the fixed effects."""
        self.calls += 1
        value, slopes, parts = self.likelihood.at(variances)
        return value, slopes, parts.fixed_covariance * variances[-1]


def _search(counter: _Counter, start: Array) -> tuple[Array, float]:
    """Ratios of standard deviations of least criterion, and the criterion.

    At a ratio of 0 the slope vanishes whether or not more would be better: there the search is lifted off.
    """
    sums = counter.likelihood.sums
    rows = sums.n_rows / sums.levels  # of a level
    point = start
    for _ in range(_LIFTS):
        # Second derivatives if each term stood alone, with as many rows in every level.
        rate = 2 * rows * point / (1 + rows * point**2)
        inverse = np.diag(1 / np.maximum(sums.levels * rate**2, 1.0))
        point, value, _ = descend(counter.ratios, point, inverse, tolerance=_REST)
        slopes = counter.likelihood.profiled(point**2)[1]
        resting = (np.abs(point) < 1e-3) & (slopes < -1e-3)
        if not resting.any():
            break
        point = np.where(resting, 0.1, point)
    return point, value


def _check(likelihood: Likelihood, names: Sequence[str]) -> None:
    """Refuse terms that the fixed effects swallow, and a model that leaves no residual."""
    sums = likelihood.sums
    if sums.n_rows <= sums.n_fixed:
        raise DesignError(f"{sums.n_rows:,} rows cannot show {sums.n_fixed:,} fixed effects and variances")
    none = evaluate(sums, np.zeros(sums.n_terms), reml=True)
    swallowed = [name for name, trace in zip(names, none.traces, strict=True) if trace < 1e-8 * sums.n_rows]
    if swallowed:
        raise DesignError(
            f"the fixed effects determine every level of {', '.join(swallowed)}, so that its variance cannot "
            "be estimated; leave it out of the random terms, or out of `fixed`"
        )
    if none.quadratic < 1e-10 * sums.n_rows:
        raise DesignError("the fixed effects fit every row: no variance is left to divide")
    full = evaluate(sums, np.full(sums.n_terms, 1.0 / _EXACT), reml=True)
    if full.quadratic < _EXACT * none.quadratic:
        raise DesignError(
            "the terms fit every row, so that the residual variance is 0 and the likelihood has no maximum; "
            "where all repetitions of a request agree, keep one of them, or leave out an interaction"
        )


def _to_the_boundary(counter: _Counter, ratios: Array) -> NDArray[np.bool_]:
    """Which small ratios are best at 0: those where the criterion falls all the way to it."""
    at_zero = np.zeros(len(ratios), dtype=bool)
    for place in np.flatnonzero(ratios < _SMALL):
        counter.calls += 1
        without = ratios.copy()
        without[place] = 0.0
        at_zero[place] = counter.likelihood.profiled(without)[1][place] >= -_FLAT
    return at_zero


@dataclass(frozen=True, slots=True, eq=False)
class _Peak:
    """The likelihood at its maximum: see `MixedFit`."""

    variances: Array
    curvature: Array
    covariance_slopes: Array
    decrement: float | None


def _polish(counter: _Counter, variances: Array, free: NDArray[np.bool_]) -> _Peak:
    """Newton steps on the logarithms of the free variances."""
    n, p = int(free.sum()), counter.likelihood.sums.n_fixed

    def full(logs: Array) -> Array:
        found = variances.copy()
        found[free] = np.exp(logs)
        return found

    def slopes(logs: Array) -> Array:
        """Slopes of the criterion, then the covariance of the fixed effects as one row."""
        at = full(logs)
        _, slope, covariance = counter.at(at)
        return np.concatenate([slope[free] * at[free], covariance.reshape(-1)])

    logs = np.log(variances[free])
    decrement: float | None = None
    seen, turned = logs, slopes_of_slopes(slopes, logs)
    for _ in range(_STEPS):
        curvature = (turned[:, :n] + turned[:, :n].T) / 2
        if np.linalg.eigvalsh(curvature).min() <= 0:
            decrement = None
            break
        slope = slopes(logs)[:n]
        step = -np.linalg.solve(curvature, slope)
        before, decrement = decrement, float(-slope @ step)
        arrived = decrement < _DECREMENT
        if arrived and np.abs(logs - seen).max() < _STALE:
            break
        if not arrived:
            logs = logs + step * min(1.0, 1.0 / float(np.abs(step).max()))
        if arrived or (before is not None and decrement > before / 4):
            seen, turned = logs, slopes_of_slopes(slopes, logs)
    return _Peak(full(logs), curvature, turned[:, n:].reshape(n, p, p), decrement)


def _of_columns(likelihood: Likelihood) -> float:
    """What standardising the fixed columns took from the restricted criterion."""
    return 2 * float(np.log(likelihood.sums.stretch).sum()) if likelihood.reml else 0.0
