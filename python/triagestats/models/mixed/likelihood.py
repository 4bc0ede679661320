"""Log likelihood of cells at each draw, and new outcomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Rows = slice | NDArray[np.int64]

__all__ = ["blocks", "log_density", "new_outcomes", "predictor"]

_AT_ONCE: Final = 1 << 22
"""Numbers that are computed together: 32 megabytes."""
_LOG_TWO_PI: Final = float(np.log(2 * np.pi))


def blocks(n_cells: int, n_draws: int) -> Iterator[slice]:
    """Cells in blocks that, for all draws, fit into memory."""
    step = max(1, _AT_ONCE // max(n_draws, 1))
    return (slice(start, min(start + step, n_cells)) for start in range(0, n_cells, step))


def predictor(matrix: MixedMatrix, draws: Draws, rows: Rows, *, leaving_out: tuple[int, ...] = ()) -> Array:
    """`x'b + z'u` of some cells, shape (cells, chains * draws), without the parts at some places."""
    b = draws.coefficients.reshape(-1, matrix.x.shape[1])
    found = matrix.x[rows] @ b.T
    for place, part in enumerate(matrix.random):
        if place in leaving_out:
            continue
        effects = draws.effects[place].reshape(len(b), part.n_levels, part.width)
        for column in range(part.width):
            found += part.z[rows, column, None] * effects[:, :, column].T[part.codes[rows]]
    return found


def log_density(matrix: MixedMatrix, draws: Draws, rows: Rows, eta: Array) -> Array:
    """Log probability of all rows of each cell, one by one, at a linear predictor of shape (cells, draws).

    No binomial coefficient: a cell is the product of its 0/1 rows, so that collapsing changes nothing.
    """
    y, counts = matrix.y[rows, None], matrix.counts[rows, None]
    if matrix.family == "binomial":
        # log(1 + e^eta), exact to 1e-16 and several times as fast as logaddexp.
        binomial: Array = y * eta - counts * (np.maximum(eta, 0.0) + np.log(1.0 + np.exp(-np.abs(eta))))
        return binomial
    if matrix.family == "gaussian":
        sigma = _sigma(draws)
        return -0.5 * (_LOG_TWO_PI + np.square((y - eta) / sigma)) - np.log(sigma)
    thresholds = draws.thresholds.reshape(eta.shape[1], -1).T
    level = matrix.y[rows].astype(np.int64)
    j = len(thresholds)
    upper = np.where((level < j)[:, None], thresholds[np.minimum(level, j - 1)] - eta, np.inf)
    lower = np.where((level > 0)[:, None], thresholds[np.maximum(level - 1, 0)] - eta, -np.inf)
    return counts * log_logistic_difference(lower, upper)


def log_logistic_difference(lower: Array, upper: Array) -> Array:
    """Log of the logistic function at `upper` minus that at `lower`, which lies below it."""
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isinf(lower) | np.isinf(upper), -np.inf, lower - upper)
    difference: Array = -np.logaddexp(0.0, -upper) - np.logaddexp(0.0, lower) + np.log1p(-np.exp(gap))
    return difference


def new_outcomes(
    matrix: MixedMatrix, draws: Draws, rows: Rows, eta: Array, rng: np.random.Generator
) -> Array:
    """New outcomes of cells at each draw, shape (cells, draws).

    Binomial: successes among the trials of a cell. Gaussian: an outcome. Ordinal: the sum over the rows of a
    cell of their levels, from 0.
    """
    if matrix.family == "binomial":
        trials = matrix.counts[rows, None].astype(np.int64)
        return rng.binomial(np.broadcast_to(trials, eta.shape), special.expit(eta)).astype(np.float64)
    if matrix.family == "gaussian":
        return eta + _sigma(draws) * rng.standard_normal(eta.shape)
    return new_level_counts(matrix, draws, rows, eta, rng) @ np.arange(len(matrix.levels), dtype=np.float64)


def new_level_counts(
    matrix: MixedMatrix, draws: Draws, rows: Rows, eta: Array, rng: np.random.Generator
) -> Array:
    """Rows of each level among those of a cell, new at each draw, shape (cells, draws, J)."""
    thresholds = draws.thresholds.reshape(eta.shape[1], -1)
    below = special.expit(thresholds[None] - eta[:, :, None])
    edges = np.concatenate([np.zeros((*eta.shape, 1)), below, np.ones((*eta.shape, 1))], axis=2)
    probabilities = np.maximum(np.diff(edges, axis=2), 0.0)
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    counts = np.broadcast_to(matrix.counts[rows, None].astype(np.int64), eta.shape)
    return rng.multinomial(counts, probabilities).astype(np.float64)


def _sigma(draws: Draws) -> Array:
    if draws.sigma is None:
        raise TypeError("gaussian draws have a sigma")
    return draws.sigma.reshape(1, -1)
