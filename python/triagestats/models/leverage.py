"""Leverage by cluster: leave-one-cluster-out estimates, Bell-McCaffrey errors, Satterthwaite df."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.errors import DesignError
from triagestats.models.sandwich import cluster_sums
from triagestats.models.within import Orthogonal, demeaned, dummies, independent, is_nested, n_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Leverage", "estimable_without_one", "leverage_of"]

_NULL: Final = 1e-10
"""Of I - H_gg: an eigenvalue below is 0, so that the cluster alone fixes a combination of coefficients."""
_NEAR: Final = 1e-6
"""How far below 1 the leverage of a cluster may be where it decides something alone."""
_LARGEST: Final = 60_000_000
"""Numbers to hold at most: clusters times the square of the columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Leverage:
    """What the clusters weigh in a fit of k coefficients.

    With Z the regressors and the dummies of the effects not nested in clusters, p together, LL' the inverse
    of Z'Z, and e the residuals: eigenvalues and eigenvectors of L'Z_g'Z_gL for each cluster g, and L'Z_g'e_g.

    Attributes
    ----------
    root
        The first k rows of L, shape (k, p).
    values, vectors
        Shapes (G, p) and (G, p, p).
    scores
        Shape (G, p).
    """

    root: Array
    values: Array
    vectors: Array
    scores: Array

    def contributions(self, power: float) -> Array:
        """Rows of which the sum of squares is the covariance matrix, shape (G, k).

        Parameters
        ----------
        power
            Of I - H_gg: 0 for the plain sandwich, -1/2 for CRV2, -1 for the jackknife, where a row is
            the estimate less that without the cluster.
        """
        turned = np.einsum("gij,gi->gj", self.vectors, self.scores) * self._powers(power)
        rows: Array = np.einsum("gij,gj->gi", self.vectors, turned) @ self.root.T
        return rows

    def satterthwaite(self, power: float, contrast: Array) -> float:
        """Degrees of freedom of the variance of a contrast of the k coefficients.

        For independent errors of one variance the estimate is a quadratic form with eigenvalues l:
        `(sum l)^2 / sum l^2`.

        References
        ----------
        Bell, R. M. and McCaffrey, D. F. (2002), Bias Reduction in Standard Errors for Linear Regression
        with Multi-Stage Samples, Survey Methodology 28(2):169-181.

        Pustejovsky, J. E. and Tipton, E. (2018), Small-Sample Methods for Cluster-Robust Variance
        Estimation and Hypothesis Testing in Fixed Effects Models, Journal of Business & Economic
        Statistics 36(4):672-683, doi:10.1080/07350015.2016.1247004.
        """
        along = np.einsum("gij,i->gj", self.vectors, self.root.T @ contrast)
        powers = self._powers(power)
        own = (along**2 * self.values * powers**2).sum(axis=1)
        shared = np.einsum("gij,gj->gi", self.vectors, along * self.values * powers)
        cross = shared.T @ shared
        trace = own.sum() - np.trace(cross)
        squares = (own**2).sum() - 2 * (own * (shared**2).sum(axis=1)).sum() + (cross**2).sum()
        return float(trace**2 / squares) if squares > 0 else float("nan")

    def estimable(self) -> NDArray[np.bool_]:
        """Whether each coefficient can be estimated without any one of the clusters, shape (k,)."""
        lost = (1 - self.values) <= _NULL
        places = np.nonzero(lost)
        directions = self.vectors[places[0], :, places[1]] @ self.root.T
        scale = np.linalg.norm(self.root, axis=1)
        fine: NDArray[np.bool_] = (np.abs(directions) <= 1e-6 * scale).all(axis=0)
        return fine

    def _powers(self, power: float) -> Array:
        left = 1 - self.values
        positive = left > _NULL
        return np.where(positive, np.where(positive, left, 1.0) ** power, 0.0)


def leverage_of(
    x: Array, absorbed: Sequence[Codes], weights: Array | None, residuals: Array, clusters: Codes
) -> Leverage:
    """The leverage of the clusters in a least-squares fit.

    Parameters
    ----------
    x
        Regressors, not demeaned, shape (n, k), none of them collinear.
    absorbed, weights
        Fixed effects and weights; errors are taken to vary as 1 / weight.
    residuals
        Of the fit, shape (n,).
    clusters
        Codes, shape (n,).

    Raises
    ------
    DesignError
        If too many levels of fixed effects are not nested in the clusters.
    """
    turned, root = _orthonormal(x, absorbed, weights, clusters)
    values, vectors = np.linalg.eigh(_blocks(turned, clusters))
    if weights is not None:
        residuals = residuals * np.sqrt(weights)
    return Leverage(
        root=root[: x.shape[1]],
        values=values.clip(0.0, 1.0),
        vectors=vectors,
        scores=cluster_sums(turned * residuals[:, None], clusters),
    )


def estimable_without_one(
    columns: Orthogonal, x: Array, absorbed: Sequence[Codes], weights: Array | None, clusters: Codes
) -> NDArray[np.bool_]:
    """Whether each of k coefficients can be estimated without any one of the clusters, shape (k,).

    A cluster that decides something alone has a leverage of 1 or more in all, so that only such
    clusters are looked at.

    Parameters
    ----------
    columns
        The regressors after fixed effects and weights.
    x, absorbed, weights, clusters
        As in `leverage_of`.
    """
    k = x.shape[1]
    if all(is_nested(codes, clusters) for codes in absorbed):
        turned, root = columns.basis, columns.inverse
    else:
        turned, root = _orthonormal(x, absorbed, weights, clusters)
    own = np.bincount(clusters, weights=(turned**2).sum(axis=1))
    rows = (own > 1 - _NEAR)[clusters]
    if not rows.any():
        return np.ones(k, dtype=bool)
    some = np.unique(clusters[rows], return_inverse=True)[1].astype(np.int64)
    values, vectors = np.linalg.eigh(_blocks(turned[rows], some))
    return Leverage(root[:k], values.clip(0.0, 1.0), vectors, np.zeros(values.shape)).estimable()


def _orthonormal(
    x: Array, absorbed: Sequence[Codes], weights: Array | None, clusters: Codes
) -> tuple[Array, Array]:
    """Regressors and dummies of effects not nested in clusters as orthonormal columns, and L."""
    k = x.shape[1]
    nested = [codes for codes in absorbed if is_nested(codes, clusters)]
    others = [codes for codes in absorbed if not is_nested(codes, clusters)]
    n_clusters = n_levels(clusters)
    width = k + sum(map(n_levels, others))
    if n_clusters * width**2 > _LARGEST:
        raise DesignError(
            f"{width - k:,} levels of fixed effects are not nested in the {n_clusters:,} clusters; to leave "
            "each cluster out in turn takes too much memory. Ask for vcov='CRV1'"
        )
    before = np.column_stack([x, *map(dummies, others)])
    after = demeaned(before, nested, weights)
    if weights is not None:
        before, after = before * np.sqrt(weights)[:, None], after * np.sqrt(weights)[:, None]
    kept = independent(after, before)
    kept[:k] = True
    turned, upper = np.linalg.qr(after[:, kept])
    return turned, np.linalg.inv(upper)


def _blocks(turned: Array, clusters: Codes) -> Array:
    """Cross products of orthonormal columns by cluster, shape (G, p, p)."""
    p = turned.shape[1]
    blocks = np.empty((n_levels(clusters), p, p))
    for one in range(p):
        sums = cluster_sums(turned[:, : one + 1] * turned[:, [one]], clusters)
        blocks[:, one, : one + 1] = blocks[:, : one + 1, one] = sums
    return blocks
