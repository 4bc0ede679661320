"""The within transformation: columns less their fixed effects, and which regressors that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Orthogonal", "demeaned", "dummies", "independent", "is_nested", "n_levels", "orthogonal"]

_DENSE: Final = 1_500
"""Up to so many levels of the smaller fixed effects their equations are solved directly."""
_NOISE: Final = 1e-13
"""Conjugate gradients stop at this share of what they started from: further on they follow rounding."""
_SLACK: Final = 1e-9
"""A column is collinear if less than this share of it (as a length) is left beside the others."""
_ROUNDING: Final = 1e-12
"""Or less than this share of what it was before means were taken off."""


def demeaned(columns: Array, absorbed: Sequence[Codes], weights: Array | None = None) -> Array:
    """Residuals of the least-squares fit of each column on all fixed effects together.

    Parameters
    ----------
    columns
        Shape (n, m).
    absorbed
        Codes of each fixed effect, shape (n,); none leaves the columns as they are.
    weights
        Of the rows, shape (n,).

    Returns
    -------
    ndarray of shape (n, m)

    Notes
    -----
    The largest fixed effect is taken off by its means. The normal equations of the others, after that, are
    solved by their pseudo-inverse, or by conjugate gradients where there are many levels. Both are applied
    again to what is left, so that later passes remove the error of the first.
    """
    if not absorbed or not columns.shape[1]:
        return columns
    w = np.ones(len(columns)) if weights is None else weights
    largest, *others = sorted(absorbed, key=n_levels, reverse=True)
    size: Array = np.bincount(largest, weights=w).astype(np.float64)

    def take_means(values: Array) -> Array:
        sums = np.stack([np.bincount(largest, weights=w * column) for column in values.T], axis=1)
        residual: Array = values - (sums / size[:, None])[largest]
        return residual

    left = take_means(columns)
    if not others:
        return take_means(left)
    solve, matrix, crossed = _others(largest, size, others, w)
    floor = _NOISE * np.linalg.norm(matrix.T @ (w[:, None] * left), axis=0)
    for _ in range(3):
        levels = solve(matrix.T @ (w[:, None] * left), floor)
        left = take_means(left - matrix @ levels + ((crossed @ levels) / size[:, None])[largest])
    return left


def _others(largest: Codes, size: Array, others: Sequence[Codes], w: Array) -> tuple[Any, Any, Any]:
    """A solver for the smaller fixed effects, their dummies, and these crossed with the largest one."""
    from scipy import sparse
    from scipy.sparse.linalg import LinearOperator, cg

    n = len(largest)
    rows = np.arange(n)
    matrix: Any = sparse.hstack(
        [sparse.csr_array((np.ones(n), (rows, codes)), shape=(n, n_levels(codes))) for codes in others]
    ).tocsr()
    first = sparse.csr_array((w, (largest, rows)), shape=(len(size), n))
    crossed: Any = (first @ matrix).tocsr()
    own: Any = (matrix.T @ (matrix * w[:, None])).tocsr()
    width = matrix.shape[1]
    if width <= _DENSE:
        gram = own.toarray() - (crossed.T @ (crossed / size[:, None])).toarray()
        inverse = np.linalg.pinv(gram, rcond=1e-11, hermitian=True)
        return (lambda right, _: inverse @ right), matrix, crossed

    def apply(levels: Array) -> Array:
        product: Array = own @ levels - crossed.T @ ((crossed @ levels) / size)
        return product

    gram_of = LinearOperator((width, width), matvec=apply, dtype=np.float64)
    scale = LinearOperator((width, width), matvec=lambda v: v / own.diagonal(), dtype=np.float64)

    def solve(right: Array, floor: Array) -> Array:
        found = [
            cg(gram_of, column, rtol=1e-7, atol=noise, maxiter=10_000, M=scale)[0]
            for column, noise in zip(right.T, floor, strict=True)
        ]
        return np.stack(found, axis=1)

    return solve, matrix, crossed


def n_levels(codes: Codes) -> int:
    """Number of levels of a fixed effect or cluster."""
    return int(codes.max(initial=-1)) + 1


def dummies(codes: Codes) -> Array:
    """One column a level, shape (n, levels)."""
    columns = np.zeros((len(codes), n_levels(codes)))
    columns[np.arange(len(codes)), codes] = 1.0
    return columns


def is_nested(inner: Codes, outer: Codes) -> bool:
    """Whether each level of the one lies in one level of the other."""
    pairs = np.unique(inner * n_levels(outer) + outer)
    return len(pairs) == n_levels(inner)


def independent(columns: Array, before: Array) -> NDArray[np.bool_]:
    """Which columns are no combination of those to their left, shape (k,); see `orthogonal`."""
    return orthogonal(columns, before).kept


@dataclass(frozen=True, slots=True, eq=False)
class Orthogonal:
    """Columns that are independent as orthonormal ones times a triangular matrix, X = QR.

    Attributes
    ----------
    kept
        Which columns are no combination of those to their left, shape (k,).
    basis
        Q, shape (n, kept).
    upper
        R, shape (kept, kept).
    """

    kept: NDArray[np.bool_]
    basis: Array
    upper: Array

    @property
    def inverse(self) -> Array:
        """The inverse of R, of which the rows turn coefficients of Q into those of X."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.upper, np.eye(len(self.upper))), dtype=np.float64)

    def coefficients(self, y: Array) -> Array:
        """The least-squares coefficients of the columns for an outcome, shape (kept,)."""
        turned = self.basis.T @ y
        turned += self.basis.T @ (y - self.basis @ turned)  # what rounding took
        found: Array = self.inverse @ turned
        return found


def orthogonal(columns: Array, before: Array) -> Orthogonal:
    """The columns that are no combination of those to their left, by Gram-Schmidt.

    It does not matter how large the columns and their means are: what is collinear is decided by what is left
    of a column, and coefficients come from Q, not from products of the columns.

    Parameters
    ----------
    columns
        Regressors after fixed effects and weights, shape (n, k).
    before
        The same before the fixed effects were taken off, to compare with what is left.
    """
    n, k = columns.shape
    kept = np.zeros(k, dtype=bool)
    basis, upper = np.empty((n, k), order="F"), np.zeros((k, k))
    spread = np.linalg.norm(before - before.mean(axis=0), axis=0) if n else np.zeros(k)
    length = np.linalg.norm(before, axis=0)
    rank = 0
    for j in range(k):
        left, parts = columns[:, j], np.zeros(rank)
        for _ in range(2):  # the second pass removes the rounding of the first
            part = basis[:, :rank].T @ left
            left = left - basis[:, :rank] @ part
            parts += part
        size = float(np.linalg.norm(left))
        constant = spread[j] <= _ROUNDING * length[j]
        enough = max(_SLACK * (length[j] if constant else spread[j]), _ROUNDING * length[j])
        if size > enough:
            kept[j] = True
            basis[:, rank], upper[:rank, rank], upper[rank, rank] = left / size, parts, size
            rank += 1
    return Orthogonal(kept, basis[:, :rank], upper[:rank, :rank])
