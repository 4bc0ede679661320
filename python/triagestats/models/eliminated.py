"""Coefficients from cross products by cluster, by elimination: for many replicates at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["PIVOT", "Gram", "gram_of", "paths"]

PIVOT: Final = 1e-9
"""A column of which less than this share (as a square) is left beside the others does not vary."""


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """Cross products of controls, a term, covariates and an outcome, in this order.

    Attributes
    ----------
    totals
        The upper triangle of `[X y]'[X y]` by cluster, columns scaled to length 1, shape (G, K).
    scale
        Lengths of the columns, shape (k + 1,).
    n_controls
        Controls among the columns.
    """

    totals: Array
    scale: Array
    n_controls: int

    def squares(self, totals: Array) -> Array:
        """Totals (..., K) as matrices (..., k + 1, k + 1)."""
        size = len(self.scale)
        upper = np.triu_indices(size)
        matrix = np.empty((*totals.shape[:-1], size, size))
        matrix[..., upper[0], upper[1]] = totals
        matrix[..., upper[1], upper[0]] = totals
        return matrix

    def effects(self, totals: Array) -> Array:
        """Total c, direct c', c - c' and (c - c') / c, from totals (..., K) or any multiple; shape (..., 4).

        NaN where the term or a covariate does not vary. A control that does not vary is left out.
        """
        squares = self.squares(totals)
        start = np.einsum("...ii->...i", squares).copy()
        for place in range(self.n_controls):
            _eliminate(squares, place, start[..., place])
        term, last = self.n_controls, len(self.scale) - 1
        unit = self.scale[last] / self.scale[term]
        total = _ratio(squares, term, last, start[..., term]) * unit
        varies = np.ones(total.shape, dtype=bool)
        for place in range(term + 1, last):
            varies &= _eliminate(squares, place, start[..., place])
        direct = np.where(varies, _ratio(squares, term, last, start[..., term]) * unit, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([total, direct, total - direct, (total - direct) / total], axis=-1)


def gram_of(columns: Array, clusters: Codes, n_controls: int) -> Gram:
    """Cross products by cluster of columns (n, k + 1): controls, the term, covariates, the outcome."""
    scale: Array = np.sqrt((columns**2).sum(axis=0))
    scale[scale == 0] = 1.0
    scaled = columns / scale
    upper = np.triu_indices(columns.shape[1])
    totals: Array = np.stack(
        [np.bincount(clusters, weights=scaled[:, i] * scaled[:, j]) for i, j in zip(*upper, strict=True)],
        axis=1,
    )
    return Gram(totals, scale, n_controls)


def paths(gram: Gram) -> list[tuple[float, float]]:
    """For each covariate: the coefficient of the term for it, and its own for the outcome beside the term.

    The sum of their products is c - c'.
    """
    squares = gram.squares(gram.totals.sum(axis=0))
    start = np.diag(squares).copy()
    for place in range(gram.n_controls):
        _eliminate(squares, place, start[place])
    term, last = gram.n_controls, len(gram.scale) - 1
    covariates = np.arange(term + 1, last)
    first = squares[term, covariates] / squares[term, term] * gram.scale[covariates] / gram.scale[term]
    _eliminate(squares, term, start[term])
    second = np.linalg.solve(squares[np.ix_(covariates, covariates)], squares[covariates, last])
    second = second * gram.scale[last] / gram.scale[covariates]
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _eliminate(squares: Array, place: int, start: Array) -> NDArray[np.bool_]:
    """Take a column off all others, in place, where anything is left of it; which is returned."""
    pivot = squares[..., place, place]
    varies = np.asarray(pivot > PIVOT * start)
    column = squares[..., :, place]
    factor = np.where(varies, 1 / np.where(varies, pivot, 1.0), 0.0)
    squares -= factor[..., None, None] * column[..., :, None] * column[..., None, :]
    return varies


def _ratio(squares: Array, term: int, last: int, start: Array) -> Array:
    pivot = squares[..., term, term]
    varies = pivot > PIVOT * start
    result: Array = np.where(varies, squares[..., term, last] / np.where(varies, pivot, 1.0), np.nan)
    return result
