"""Separation: combinations of regressors along which a logit has no finite maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Separation", "separation_of"]

_MARGIN: Final = 1e-7
"""Below this a row is not separated; those that are have a margin of 1."""
_NULL: Final = 1e-9
"""A singular value below this share of the largest is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """Rows whose outcome the regressors predict for certain, and what the others identify.

    Attributes
    ----------
    direction
        Coefficients that go to infinity go along this vector, shape (k,); zeros where nothing is separated.
    certain
        Rows that are predicted for certain, shape (n,).
    basis
        Orthonormal directions that the other rows identify, shape (k, r).
    """

    direction: Array
    certain: NDArray[np.bool_]
    basis: Array

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Whether each coefficient is finite and identified, shape (k,)."""
        return self.identifies(np.eye(len(self.basis)))

    def identifies(self, sums: Array) -> NDArray[np.bool_]:
        """Whether weighted sums of the coefficients (m, k) are finite and identified, shape (m,)."""
        left = sums - (sums @ self.basis) @ self.basis.T
        fine: NDArray[np.bool_] = np.abs(left).max(axis=1) <= np.sqrt(_NULL) * np.abs(sums).max(axis=1)
        return fine

    def limits(self, x: Array) -> Array:
        """Log odds that go to infinity: +inf or -inf for such rows, 0 for others, NaN if not identified."""
        along = x @ self.direction
        scale = np.abs(x) @ np.abs(self.direction)
        far = np.abs(along) > np.sqrt(_NULL) * np.maximum(scale, 1.0)
        odds = np.where(far, np.copysign(np.inf, along), 0.0)
        outside = np.abs(x - (x @ self.basis) @ self.basis.T).max(axis=1)
        odds[(outside > np.sqrt(_NULL) * np.maximum(np.abs(x).max(axis=1), 1.0)) & (odds == 0)] = np.nan
        return odds


def separation_of(x: Array, y: Array) -> Separation:
    """Whether a direction d exists with `(2y - 1) x'd >= 0` in every row and > 0 in some.

    Such a direction is sought by a linear program over the distinct rows that lets as many as possible have
    a margin of 1.

    Parameters
    ----------
    x
        Regressors without collinear columns, shape (n, k).
    y
        Outcomes 0 and 1, shape (n,).

    References
    ----------
    Albert, A. and Anderson, J. A. (1984), On the Existence of Maximum Likelihood Estimates in Logistic
    Regression Models, Biometrika 71(1):1-10, doi:10.1093/biomet/71.1.1.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    distinct, where = np.unique(np.column_stack([x, y]), axis=0, return_inverse=True)
    signed = distinct[:, :-1] * (2 * distinct[:, -1:] - 1)
    signed = signed / np.maximum(np.abs(signed).max(axis=0), 1e-300)
    m, k = signed.shape
    # Its stubs know dense matrices only.
    constraints: Any = sparse.hstack([-sparse.csr_array(signed), sparse.eye_array(m)])
    found = linprog(
        np.concatenate([np.zeros(k), -np.ones(m)]),
        A_ub=constraints,
        b_ub=np.zeros(m),
        bounds=[(None, None)] * k + [(0, 1)] * m,
        method="highs",
    )
    margin = np.zeros(m) if found.x is None else found.x[k:]
    direction = np.zeros(k) if found.x is None else found.x[:k] / np.abs(x).max(axis=0)
    certain = margin[where.ravel()] > _MARGIN
    if not certain.any():
        return Separation(np.zeros(k), certain, np.eye(k))
    direction = np.where(np.abs(direction) > _MARGIN * np.abs(direction).max(), direction, 0.0)
    if certain.all():
        return Separation(direction, certain, np.empty((k, 0)))
    _, sizes, rows = np.linalg.svd(x[~certain], full_matrices=False)
    return Separation(direction, certain, rows[sizes > _NULL * sizes[0]].T)
