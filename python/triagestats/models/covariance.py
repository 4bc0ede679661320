"""The covariance matrix of a fitted linear model, its factor and degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.errors import ArgumentError, DesignError
from triagestats.models.leverage import Leverage, estimable_without_one, leverage_of
from triagestats.models.matrix import ModelMatrix
from triagestats.models.sandwich import (
    SmallSample,
    Vcov,
    cluster_factors,
    cluster_sums,
    count_parameters,
    crossed,
    intersections,
    meat_inverse,
)
from triagestats.models.within import Orthogonal, is_nested, n_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Covariance", "check_convention", "covariance_of"]

_SMALL: Final = 2_000_000
"""Up to so many numbers are spent on whether one cluster alone decides a coefficient of CRV1."""
_POWERS: Final = {"CRV1": 0.0, "CRV2": -0.5, "CRV3": -1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """A covariance matrix and what it rests on.

    Attributes
    ----------
    vcov, unrepaired
        Shape (k, k); they differ where a two-way matrix was repaired.
    repaired
        How, or None.
    plain
        The same matrix without factors, CR0 or HC0, shape (k, k); for iid with the sum of squares over N.
    factors
        What the parts of the matrix were multiplied by: one, or three with two cluster variables.
    n_parameters
        K of the factors.
    sizes
        Numbers of clusters: none, one or two.
    df
        Degrees of freedom where they are not Satterthwaite's.
    leverage, power
        For Satterthwaite's; None where they are not wanted.
    estimable
        Whether each coefficient could be estimated without any one of the clusters, shape (k,); not
        looked at with two cluster variables or very many fixed effects.
    """

    vcov: Array
    unrepaired: Array
    repaired: str | None
    plain: Array
    factors: tuple[float, ...]
    n_parameters: int
    sizes: tuple[int, ...]
    df: float
    leverage: Leverage | None
    power: float
    estimable: NDArray[np.bool_]

    def df_of(self, contrast: Array) -> float:
        """Degrees of freedom of a contrast of the coefficients."""
        if self.leverage is None:
            return self.df
        return self.leverage.satterthwaite(self.power, contrast)


def check_convention(matrix: ModelMatrix, vcov: Vcov, small: SmallSample) -> int:
    """K of the factors, if the convention can be used for these rows and clusters.

    Raises
    ------
    ArgumentError
        If the convention and the clusters do not go together.
    DesignError
        If there are not more rows than parameters.
    """
    clusters = matrix.clusters if vcov in _POWERS else ()
    if vcov in _POWERS and not clusters:
        raise ArgumentError(
            f"`cluster` is needed for vcov={vcov!r}, and no column is recognised as the scenario: name one, "
            "or ask for vcov='HC1' if the rows are independent"
        )
    if vcov in ("CRV2", "CRV3") and len(clusters) > 1:
        raise ArgumentError(f"vcov={vcov!r} takes one cluster column; two need vcov='CRV1'")
    if small.df == "satterthwaite" and len(clusters) != 1:
        raise ArgumentError("df='satterthwaite' needs one cluster column; use df='clusters'")
    parameters = count_parameters(len(matrix.terms), matrix.absorbed, clusters, small.effects)
    if len(matrix.y) <= parameters:
        raise DesignError(
            f"{len(matrix.y):,} rows cannot carry {parameters:,} parameters, fixed effects counted: leave "
            "regressors out, or absorb a coarser fixed effect"
        )
    return parameters


def covariance_of(
    matrix: ModelMatrix, columns: Orthogonal, residuals: Array, vcov: Vcov, small: SmallSample
) -> Covariance:
    """The covariance matrix of least-squares coefficients.

    Parameters
    ----------
    matrix
        What was fitted.
    columns
        Its regressors after fixed effects, times the roots of the weights.
    residuals
        Shape (n,), without weights.
    vcov, small
        The convention.

    Raises
    ------
    ArgumentError, DesignError
        As `check_convention`.
    """
    parameters = check_convention(matrix, vcov, small)
    n, k = columns.basis.shape
    clustered = vcov in _POWERS
    clusters = matrix.clusters if clustered else ()
    satterthwaite = small.df == "satterthwaite" or (small.df == "auto" and vcov == "CRV2")
    root = np.ones(n) if matrix.weights is None else np.sqrt(matrix.weights)
    e = residuals * root
    turn = columns.inverse
    sizes = tuple(map(n_levels, clusters))
    estimable = np.ones(k, dtype=bool)
    repaired = made = None
    if vcov == "CRV1" and len(clusters) == 1 and _is_small(matrix):
        estimable = estimable_without_one(columns, matrix.x, matrix.absorbed, matrix.weights, clusters[0])
    scores = columns.basis * e[:, None]
    if vcov == "iid":
        plain = turn @ turn.T * (float(e @ e) / n)
        factors: tuple[float, ...] = (n / (n - parameters) if small.k else 1.0,)
        found = raw = plain * factors[0]
    elif vcov == "HC1":
        plain = meat_inverse(turn.T, scores)
        factors = (n / (n - parameters) if small.k else 1.0,)
        found = raw = plain * factors[0]
    elif len(clusters) == 2:
        sums = [cluster_sums(scores, codes) for codes in (*clusters, intersections(clusters))]
        factors = cluster_factors(n, parameters, [len(part) for part in sums], small)
        parts = [meat_inverse(turn.T, part) for part in sums]
        plain = parts[0] + parts[1] - parts[2]
        scaled = [factor * part for factor, part in zip(factors, parts, strict=True)]
        two = crossed(scaled[0], scaled[1], scaled[2], small.repair)
        found, raw, repaired = two.vcov, two.unrepaired, two.repaired
    else:
        plain = meat_inverse(turn.T, cluster_sums(scores, clusters[0]))
        g = sizes[0]
        if vcov == "CRV1":
            factors = cluster_factors(n, parameters, sizes, small)
            found = raw = plain * factors[0]
        else:
            made = leverage_of(matrix.x, matrix.absorbed, matrix.weights, residuals, clusters[0])
            estimable = made.estimable()
            rows = made.contributions(_POWERS[vcov])
            if vcov == "CRV3" and small.center == "mean":
                rows = rows - rows.mean(axis=0)
            factors = ((g - 1) / g if vcov == "CRV3" and small.g else 1.0,)
            found = raw = factors[0] * rows.T @ rows
    if satterthwaite and made is None:
        made = leverage_of(matrix.x, matrix.absorbed, matrix.weights, residuals, clusters[0])
    return Covariance(
        vcov=found,
        unrepaired=raw,
        repaired=repaired,
        plain=plain,
        factors=factors,
        n_parameters=parameters,
        sizes=sizes,
        df=float(min(sizes) - 1 if clustered else n - parameters),
        leverage=made if satterthwaite else None,
        power=_POWERS.get(vcov, 0.0),
        estimable=estimable,
    )


def _is_small(matrix: ModelMatrix) -> bool:
    (clusters,) = matrix.clusters
    others = [codes for codes in matrix.absorbed if not is_nested(codes, clusters)]
    return n_levels(clusters) * (len(matrix.terms) + sum(map(n_levels, others))) ** 2 <= _SMALL
