"""A quick approximate fit of a logistic mixed model, which a sampler takes its coordinates from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.models.mixed.matrix import RandomPart
from triagestats.models.mixed.sweeps import sums_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Pilot", "pilot_fit"]

_SWEEPS: Final = 60
"""Passes over the parts at most."""
_CLOSE: Final = 1e-3
"""The fit has settled where no effect moves by more."""
_STEP: Final = 2.0
"""Longest step of an effect."""
_LEAST: Final = 0.05
"""Least standard deviation of a part, so that coordinates are never of no width."""


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """Where the posterior lies, roughly.

    Attributes
    ----------
    coefficients
        With the mean effects of the parts, shape (p,).
    information
        About the coefficients given the effects, shape (p, p).
    sds
        Standard deviations of the parts.
    levels
        For each part, the information about the effect of each level.
    pulls
        For each part, the slope of the log-likelihood by the effect of each level, extrapolated to 0.
    """

    coefficients: Array
    information: Array
    sds: Array
    levels: tuple[Array, ...]
    pulls: tuple[Array, ...]


def pilot_fit(
    y: Array,
    counts: Array,
    x: Array,
    parts: Sequence[RandomPart],
    *,
    precision: Array,
    spanned: Sequence[tuple[Array, Array]],
    integrated: int | None = None,
) -> Pilot:
    """Fit the parts in turn by penalised Newton steps, their variances by steps of the EM algorithm.

    Parameters
    ----------
    y, counts, x
        Successes, trials and fixed columns of the cells.
    parts
        Random intercepts.
    precision
        Of the priors of the coefficients, shape (p,).
    spanned
        For each part, orthonormal vectors over its levels and the coefficients that make them; the effects
        along them join the coefficients.
    integrated
        Number of a part that the information about the others shall not be conditional on.

    Returns
    -------
    Pilot
        Nothing that is drawn depends on how good it is, only how fast.
    """
    b = np.zeros(x.shape[1])
    u = [np.zeros(part.n_levels) for part in parts]
    sds = np.full(len(parts), 0.7)
    eta = np.zeros(y.size)
    for _ in range(_SWEEPS):
        moved = 0.0
        residual, weight = _score(y, counts, eta)
        curvature = x.T @ (weight[:, None] * x) + np.diag(precision)
        step = np.clip(np.linalg.solve(curvature, x.T @ residual - precision * b), -_STEP, _STEP)
        b += step
        eta += x @ step
        moved = max(moved, float(np.abs(step).max(initial=0.0)))
        for number, (part, (levels, directions)) in enumerate(zip(parts, spanned, strict=True)):
            residual, weight = _score(y, counts, eta)
            information = sums_by(part.codes, weight, part.n_levels) + sds[number] ** -2
            slope = sums_by(part.codes, residual, part.n_levels) - u[number] * sds[number] ** -2
            new = u[number] + np.clip(slope / information, -_STEP, _STEP)
            along = levels.T @ new
            new -= levels @ along
            b += directions @ along
            moved = max(moved, float(np.abs(new - u[number]).max()))
            eta += (new - u[number])[part.codes] + x @ (directions @ along)
            u[number] = new
            sds[number] = max(_LEAST, float(np.sqrt(np.mean(new**2 + 1 / information))))
        if moved < _CLOSE:
            break
    residual, weight = _score(y, counts, eta)
    if integrated is not None:
        part = parts[integrated]
        whole = sums_by(part.codes, weight, part.n_levels)
        weight = weight / (1 + sds[integrated] ** 2 * whole[part.codes])
    levels_of = [sums_by(part.codes, weight, part.n_levels) for part in parts]
    pulls = [
        sums_by(part.codes, residual, part.n_levels) + information * effects
        for part, information, effects in zip(parts, levels_of, u, strict=True)
    ]
    return Pilot(b, x.T @ (weight[:, None] * x), sds, tuple(levels_of), tuple(pulls))


def _score(y: Array, counts: Array, eta: Array) -> tuple[Array, Array]:
    """Slope and curvature of the log-likelihood of each cell by its linear predictor."""
    p = 1 / (1 + np.exp(-np.clip(eta, -30, 30)))
    return y - counts * p, counts * p * (1 - p)
