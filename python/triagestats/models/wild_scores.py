"""Sums by cluster that stand for a linear model in the wild cluster bootstrap of one coefficient."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.models.matrix import ModelMatrix
from triagestats.models.sandwich import SmallSample, cluster_factors, cluster_sums, count_parameters
from triagestats.models.within import demeaned, dummies, is_nested, n_levels
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["ClusterScores", "Coefficient", "cluster_scores", "coefficient_of"]

_SLACK: Final = 1e-9
"""A regressor is swallowed if less than this share of its spread is left beside the others."""
_DROPPED: Final = 1e-13
"""Directions that carry less than this share of a score are rounding."""
_READ: Final = 1e-14
"""Rounding in what is left of a column, as a share of the column before anything was taken off."""
_LARGEST: Final = 40_000_000
"""Numbers to hold at most for fixed effects that are not nested in the clusters: 320 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterScores:
    """A coefficient, and what its wild cluster bootstrap needs to know of the data.

    Let x and y be regressor and outcome after the other regressors and the fixed effects were taken off, all
    times the roots of the weights, P the projection on all regressors, and u = y - b x. With w_g on the
    residuals of cluster g, the estimate is off by sum_g w_g x_g'u_g / x'x, and the score of a cluster is
    w_g x_g'u_g - sum_h w_h x_g' P_gh u_h, where x_g' P_gh u_h is a product of rows of two factors.

    Attributes
    ----------
    estimate
        x'y / x'x.
    size
        x'x.
    own
        x_g'y_g and x_g'x_g, shape (2, G).
    left
        The factor of x, for either side, shape (G, K).
    right
        The right factor of y, shape (G, K).
    length
        Of y.
    unread
        Lengths of what is rounding in x and in y.
    """

    estimate: float
    size: float
    own: Array
    left: Array
    right: Array
    length: float
    unread: tuple[float, float]

    @property
    def n_clusters(self) -> int:
        """G."""
        return int(self.own.shape[1])

    @property
    def of_regressor(self) -> Array:
        """Scores and right factors of x, shape (G, 1 + K)."""
        return np.column_stack([self.own[1], self.left])

    def of_residuals(self, value: float) -> Array:
        """Scores and right factors of u = y - value x, shape (G, 1 + K)."""
        own = self.own[0] - value * self.own[1]
        return np.column_stack([own, self.right - value * self.left])

    def noise(self, value: float) -> float:
        """Scores of u = y - value x are rounding up to this length, and so are sums of them."""
        of_x, of_y = self.unread
        root = float(self.size**0.5)
        return of_x * (self.length + abs(value) * root) + of_y * root


@dataclass(frozen=True, slots=True, eq=False)
class Coefficient:
    """A coefficient of a model, with its error by cluster.

    Attributes
    ----------
    term, scores
        Its name, and the data as sums by cluster.
    n, n_parameters, factor
        N, K and the factor of CRV1.
    std_error
        None where it is 0 but for rounding.
    """

    term: str
    scores: ClusterScores
    n: int
    n_parameters: int
    factor: float
    std_error: float | None


def coefficient_of(model: object, term: str) -> Coefficient:
    """Read a coefficient from what `lpm` returns, whose small-sample convention holds, or from a ModelMatrix.

    Raises
    ------
    ArgumentTypeError
        If `model` is neither.
    ArgumentError, DesignError
        As `cluster_scores`, and if there are not more rows than parameters.
    """
    matrix = model if isinstance(model, ModelMatrix) else getattr(model, "matrix", None)
    if not isinstance(matrix, ModelMatrix):
        raise ArgumentTypeError(f"`model` must be what lpm returns; got {type(model).__name__}")
    small = getattr(model, "small_sample", None) or SmallSample()
    n, k = len(matrix.y), count_parameters(matrix.x.shape[1], matrix.absorbed, matrix.clusters, small.effects)
    if n <= k:
        raise DesignError(f"{n:,} rows cannot carry {k:,} parameters; leave regressors out")
    scores = cluster_scores(matrix, term)
    (factor,) = cluster_factors(n, k, [scores.n_clusters], small)
    length = float(np.linalg.norm(scores.own[0] - scores.estimate * scores.own[1]))
    known = length > scores.noise(scores.estimate)
    return Coefficient(term, scores, n, k, factor, factor**0.5 * length / scores.size if known else None)


def cluster_scores(matrix: ModelMatrix, term: str) -> ClusterScores:
    """Reduce a model with one cluster variable to the scores of one coefficient.

    Parameters
    ----------
    matrix
        The arrays of the model.
    term
        The coefficient.

    Raises
    ------
    ArgumentError
        If the model has no such term.
    DesignError
        If it has no cluster variable or two, one cluster, nothing of the regressor is left beside the other
        regressors and fixed effects, or too many levels of fixed effects are not nested in the clusters.

    Notes
    -----
    A fixed effect nested in the clusters has no part in x_g' P_gh: x is orthogonal to it within each cluster.
    Such effects are taken off by means, and dummies of the others join the regressors. Where that takes more
    memory, the largest other effect is taken off by means, and the rest become dummies; its part in
    x_g' P_gh u_h is a product of sums by cluster and level.
    """
    place, clusters = _place(matrix, term), _clusters(matrix)
    means, rest = _split(matrix.absorbed, clusters)
    root = np.ones(len(matrix.y)) if matrix.weights is None else np.sqrt(matrix.weights)

    def within(columns: Array) -> Array:
        return demeaned(columns, means, matrix.weights) * root[:, None]

    regressor = matrix.x[:, place]
    columns = np.column_stack([np.delete(matrix.x, place, axis=1), *map(dummies, rest)])
    others = _orthonormal(within(columns), np.linalg.norm(columns * root[:, None], axis=0))
    pair = within(np.column_stack([regressor, matrix.y]))
    for _ in range(2):  # the second pass removes the rounding of the first
        pair = pair - others @ (others.T @ pair)
    x, y = np.ascontiguousarray(pair.T)
    size, read = float(x @ x), float(np.linalg.norm(regressor * root))
    spread = float(np.linalg.norm((regressor - regressor.mean()) * root))
    if size**0.5 <= max(_SLACK * spread, ROUNDING * read):
        beside = ", ".join(("the other regressors", *matrix.absorbed_names))
        raise DesignError(f"nothing of {term!r} is left beside {beside}; test another term")
    own = cluster_sums(np.stack([x * y, x * x], axis=1), clusters).T
    crossing = [codes for codes in means if not is_nested(codes, clusters)]
    of_y, of_x = (
        np.concatenate(
            [
                sums[:, None] / size**0.5,
                cluster_sums(others * column[:, None], clusters),
                *(_level_sums(root * column, codes, root, clusters) for codes in crossing),
            ],
            axis=1,
        )
        for sums, column in zip(own, (y, x), strict=True)
    )
    vectors, lengths, turn = np.linalg.svd(of_x, full_matrices=False)
    kept = lengths > _DROPPED * size**0.5
    return ClusterScores(
        estimate=float(x @ y) / size,
        size=size,
        own=own,
        left=np.ascontiguousarray(vectors[:, kept] * lengths[kept]),
        right=of_y @ turn[kept].T,
        length=float(np.linalg.norm(y)),
        unread=(
            ROUNDING * size**0.5 + _READ * read,
            _READ * float(np.linalg.norm(matrix.y * root)),
        ),
    )


def _place(matrix: ModelMatrix, term: str) -> int:
    if term in matrix.terms:
        return matrix.terms.index(term)
    near = difflib.get_close_matches(str(term), matrix.terms, n=3) or matrix.terms[:6]
    listed = ", ".join(map(repr, near))
    raise ArgumentError(f"`term` must be a coefficient of the model, such as {listed}; got {term!r}")


def _clusters(matrix: ModelMatrix) -> Codes:
    if not matrix.clusters:
        raise DesignError(
            "the wild cluster bootstrap weighs clusters, and the model has none: name them when it is "
            "fitted, as in cluster='scenario'"
        )
    if len(matrix.clusters) > 1:
        names = " and ".join(map(repr, matrix.cluster_names))
        raise DesignError(
            f"the wild cluster bootstrap weighs the clusters of one variable, and the model has {names}. "
            "Weights of the one break the dependence within the other: fit the model with one, that of "
            "fewer clusters"
        )
    codes: Codes = np.unique(matrix.clusters[0], return_inverse=True)[1].astype(np.int64)
    if n_levels(codes) < 2:
        raise DesignError(
            f"{matrix.cluster_names[0]!r} has one cluster, and one cannot show how clusters differ; use "
            "finer clusters"
        )
    return codes


def _split(absorbed: Sequence[Codes], clusters: Codes) -> tuple[list[Codes], list[Codes]]:
    """Fixed effects that are taken off by means, and those that become dummies."""
    nested = [codes for codes in absorbed if is_nested(codes, clusters)]
    others = [codes for codes in absorbed if not is_nested(codes, clusters)]
    if not others:
        return nested, []
    largest = max(range(len(others)), key=lambda place: n_levels(others[place]))
    rest = [*nested, *others[:largest], *others[largest + 1 :]]
    n, n_clusters = len(clusters), n_levels(clusters)
    ways = [
        (_width(others) * n, (nested, others)),
        (_width(rest) * n + n_levels(others[largest]) * n_clusters, ([others[largest]], rest)),
    ]
    numbers, chosen = min(ways, key=lambda way: way[0])
    if numbers > _LARGEST:
        raise DesignError(
            f"{_width(others):,} levels of fixed effects are not nested in the {n_clusters:,} clusters, "
            "which takes too much memory; absorb coarser effects"
        )
    return chosen


def _width(effects: Sequence[Codes]) -> int:
    return sum(map(n_levels, effects))


def _orthonormal(columns: Array, lengths: Array) -> Array:
    """Orthonormal columns with the span of these, which once had other lengths."""
    from scipy.linalg import qr

    if not columns.shape[1]:
        return columns
    shares = columns / np.where(lengths > 0, lengths, 1.0)
    basis, upper, _ = qr(shares, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    rank = int((np.abs(np.diag(upper)) > ROUNDING).sum())
    return np.asarray(basis[:, :rank], dtype=np.float64)


def _level_sums(column: Array, effect: Codes, root: Array, clusters: Codes) -> Array:
    """Sums by cluster and level, over the roots of the levels' sizes, shape (G, levels)."""
    width = n_levels(effect)
    size = np.bincount(effect, weights=root**2, minlength=width)
    cells = np.bincount(clusters * width + effect, weights=column, minlength=n_levels(clusters) * width)
    return np.asarray(cells.reshape(-1, width) / np.sqrt(size), dtype=np.float64)
