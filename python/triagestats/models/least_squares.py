"""Least squares for one row a scenario: coefficients, robust covariances, collinearity; functions on arrays.

Own arithmetic rather than statsmodels: it is four formulas, needs no optional library, and says which rows
leave an error undefined, where a division by zero would say nothing. The tests compare it with statsmodels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.models.within import independent
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Fit", "Vcov", "fit", "inflation", "split_dependent"]

Vcov = Literal["HC1", "HC2", "HC3", "CRV1", "CRV3"]

PART: Final = 1e-6
"""A column is part of a combination if its weight is more than this share of the largest; else rounding."""
ALONE: Final = 1e-9
"""A row whose leverage is 1 but for this decides a coefficient alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A linear model fitted by least squares.

    Attributes
    ----------
    coefficients
        Shape (k,).
    vcov
        Their robust covariance, shape (k, k).
    df
        Degrees of freedom of t: n - k, or the number of clusters - 1.
    r_squared
        Share of the variance of y; NaN where y is constant.
    is_perfect
        Whether nothing is left of y.
    free, deciding
        Directions in which the coefficients could not be told without one row, or with CRV3 one cluster,
        shape (F, k), and these rows or clusters, shape (F,). A sum of coefficients that such a direction
        changes has no error: nothing shows it.
    """

    coefficients: Array
    vcov: Array
    df: float
    r_squared: float
    is_perfect: bool
    free: Array
    deciding: Codes

    def decided_by(self, weights: Array) -> int | None:
        """A row or cluster on which a weighted sum of coefficients rests alone; None where there is none."""
        parts = self.free * weights
        moved = np.abs(parts.sum(axis=1)) > PART * np.abs(parts).sum(axis=1)
        return int(self.deciding[moved][0]) if moved.any() else None


def fit(x: Array, y: Array, *, vcov: Vcov, clusters: Codes) -> Fit:
    """Least squares with robust errors.

    With `A = (X'X)^-1`, residuals e and leverages h:

    | `vcov` | covariance | df |
    |---|---|---|
    | HC1 | `n / (n - k) A (sum e_i^2 x_i x_i') A` | n - k |
    | HC2 | `A (sum e_i^2 / (1 - h_i) x_i x_i') A` | n - k |
    | HC3 | `A (sum e_i^2 / (1 - h_i)^2 x_i x_i') A` | n - k |
    | CRV1 | `G / (G - 1) (n - 1) / (n - k) A (sum_g X_g'e_g e_g'X_g) A` | G - 1 |
    | CRV3 | `(G - 1) / G sum_g (b_(g) - b)(b_(g) - b)'`, b_(g) without cluster g | G - 1 |

    Parameters
    ----------
    x
        Independent columns, shape (n, k), n > k.
    y
        Shape (n,).
    clusters
        Codes 0 to G - 1, for CRV1 and CRV3, shape (n,).

    References
    ----------
    MacKinnon, J. G. and White, H. (1985), Some heteroskedasticity-consistent covariance matrix estimators
    with improved finite sample properties, Journal of Econometrics 29:305-325.
    """
    n, k = x.shape
    scale = np.sqrt((x**2).sum(axis=0))
    q, r = np.linalg.qr(x / scale)
    # Rows of `influence` are A x_i: what one unit of residual of row i moves the coefficients by.
    influence = np.linalg.solve(r, q.T).T / scale
    coefficients = influence.T @ y
    residuals = y - x @ coefficients
    largest = float(np.abs(y).max())
    is_perfect = float(np.abs(residuals).max()) <= n * ROUNDING * largest
    leverage = (q**2).sum(axis=1)
    n_clusters = int(clusters.max()) + 1
    free, deciding = np.empty((0, k)), np.empty(0, dtype=np.int64)
    if vcov == "CRV3":
        moves, free, deciding = _without_clusters(q, r, scale, residuals, clusters)
        covariance = (n_clusters - 1) / n_clusters * moves.T @ moves
    elif vcov == "CRV1":
        scores = _by_cluster(influence * residuals[:, None], clusters)
        covariance = n_clusters / (n_clusters - 1) * (n - 1) / (n - k) * scores.T @ scores
    else:
        alone = leverage > 1 - ALONE
        power = {"HC1": 0.0, "HC2": 0.5, "HC3": 1.0}[vcov]
        scores = influence * (residuals / np.where(alone, 1.0, 1 - leverage) ** power)[:, None]
        covariance = (n / (n - k) if vcov == "HC1" else 1.0) * scores.T @ scores
        if vcov != "HC1":
            # X times the influence of such a row is the row's indicator: without it, that direction is free.
            free, deciding = influence[alone], np.flatnonzero(alone)
    share = np.abs(free) * scale
    free = np.where(share > PART * share.max(axis=1, initial=0.0, keepdims=True), free, 0.0)
    spread = float(((y - y.mean()) ** 2).sum())
    return Fit(
        coefficients=coefficients,
        vcov=covariance,
        df=float(n_clusters - 1 if vcov in ("CRV1", "CRV3") else n - k),
        r_squared=1 - float(residuals @ residuals) / spread if spread > (ROUNDING * largest) ** 2 else np.nan,
        is_perfect=is_perfect,
        free=free,
        deciding=deciding,
    )


def _by_cluster(rows: Array, clusters: Codes) -> Array:
    """Sums by cluster, shape (G, k)."""
    return np.stack([np.bincount(clusters, weights=column) for column in rows.T], axis=1)


def _without_clusters(
    q: Array, r: Array, scale: Array, residuals: Array, clusters: Codes
) -> tuple[Array, Array, Codes]:
    """How leaving each cluster out moves the coefficients, shape (G, k), and what is free without which.

    In the coordinates of Q, leaving a cluster out moves the coefficients by `-(I - Q_g'Q_g)^-1 Q_g'e_g`.
    Where the matrix is singular, the directions of its null space are free without the cluster, and 0 is
    taken.
    """
    order = np.argsort(clusters, kind="stable")
    edges = np.flatnonzero(np.diff(clusters[order])) + 1
    moves = np.empty((len(edges) + 1, len(scale)))
    free: list[Array] = []
    deciding: list[int] = []
    for cluster, rows in enumerate(np.split(order, edges)):
        part = q[rows]
        values, vectors = np.linalg.eigh(np.eye(len(scale)) - part.T @ part)
        open_ = values < ALONE
        inverse = np.where(open_, 0.0, 1 / np.where(open_, 1.0, values))
        step = vectors @ (inverse * (vectors.T @ (part.T @ residuals[rows])))
        moves[cluster] = -np.linalg.solve(r, step) / scale
        for direction in vectors[:, open_].T:
            free.append(np.linalg.solve(r, direction) / scale)
            deciding.append(cluster)
    directions = np.array(free).reshape(-1, len(scale))
    return moves, directions, np.array(deciding, dtype=np.int64)


def split_dependent(x: Array) -> tuple[list[int], dict[int, list[int]]]:
    """Columns that are kept, in their order, and for each of the others the kept ones that it is made of."""
    mask = independent(x, x)
    kept = np.flatnonzero(mask).tolist()
    dropped = {}
    for place in np.flatnonzero(~mask).tolist():
        before = [column for column in kept if column < place]
        scale = np.sqrt((x[:, before] ** 2).sum(axis=0))
        weights = np.linalg.lstsq(x[:, before] / scale, x[:, place], rcond=None)[0]
        share = np.abs(weights) / max(float(np.abs(weights).max(initial=0.0)), 1e-300)
        dropped[place] = [before[i] for i in np.flatnonzero(share > PART)]
    return kept, dropped


def inflation(x: Array, groups: Sequence[Sequence[int]]) -> list[float]:
    """Generalised variance inflation of groups of columns (without an intercept), `(GVIF)^(1 / df)`.

    `GVIF = det(R_g) det(R_rest) / det(R)` of correlation matrices; with one column the usual
    `1 / (1 - R^2)`. The power makes groups of several columns comparable with those of one.

    References
    ----------
    Fox, J. and Monette, G. (1992), Generalized collinearity diagnostics, JASA 87(417):178-183.
    """
    if x.shape[1] == 0:
        return [1.0 for _ in groups]
    correlations = np.atleast_2d(np.corrcoef(x, rowvar=False))
    everything = list(range(x.shape[1]))

    def log_determinant(columns: Sequence[int]) -> float:
        return float(np.linalg.slogdet(correlations[np.ix_(columns, columns)])[1]) if columns else 0.0

    whole = log_determinant(everything)
    found = []
    for group in groups:
        rest = [column for column in everything if column not in group]
        log_gvif = log_determinant(list(group)) + log_determinant(rest) - whole
        found.append(float(np.exp(log_gvif / max(len(group), 1))))
    return found
