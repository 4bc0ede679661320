"""Maximum likelihood of mixed models, by the Laplace approximation or by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import _native
from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentError, DesignError
from triagestats.models.mixed.matrix import Family

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from triagestats.models.mixed.matrix import MixedMatrix, RandomPart

    Array = NDArray[np.float64]

__all__ = ["MAX_NODES", "LaplaceFit", "fit_laplace"]

MAX_NODES: Final = 100
"""Most nodes of a quadrature; the weights of more are too small for floats."""
_MESSAGES: Final = {
    "converged": "converged",
    "stuck": "the search stopped where no step raised the likelihood, though its gradient is not 0",
    "tired": "the search stopped after its largest number of steps",
    "flat": "the likelihood is flat, or not curved down in every direction, where the search ended; "
    "no standard errors",
    "separated": "coefficients or standard deviations run to infinity, or are above 20 on the scale of the "
    "logit: the regressors or the groupings predict some answers for certain (separation)",
}


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceFit:
    """A mixed model at the maximum of its likelihood.

    Attributes
    ----------
    coefficients
        Of the regressors, shape (p,).
    thresholds
        Of an ordinal outcome with J levels, shape (J - 1,); empty otherwise.
    factors
        For each random part the lower triangular L of its covariance matrix L L', shape (q, q), with a
        diagonal of 0 or more, on the scale of the linear predictor.
    sigma
        Residual standard deviation of a Gaussian outcome.
    modes
        For each random part the conditional modes of its effects, shape (levels, q).
    mode_variances
        Their conditional covariance matrices given the parameters, shape (levels, q, q).
    vcov
        Joint covariance matrix of the thresholds, the coefficients, the lower triangle of each factor row
        by row, and `sigma`. The inverse of the Hessian of the negative log-likelihood in all of them. For a
        Gaussian outcome it is in two blocks, as is usual for linear models: the coefficients with the
        variances held, and the variances with the coefficients profiled, or integrated, out. The factor
        of a singular part has no error: NaN in its rows and columns, and the others are given that factor.
        All NaN where the Hessian is not positive definite.
    loglik
        The log-likelihood, or the restricted one, with all constants; that of single rows, also where they
        were collapsed into cells.
    n_parameters
        Thresholds, coefficients, entries of the factors, and `sigma`.
    nodes
        Nodes of the quadrature; 1 is the Laplace approximation. A Gaussian likelihood is exact.
    reml
        Whether the restricted likelihood was maximised.
    converged
        Whether the likelihood has a maximum here, to 1e-8.
    gradient
        The largest derivative in units of the square root of the Hessian.
    message
        How the search ended.
    singular
        For each random part, whether its covariance matrix is singular: a standard deviation of exactly 0,
        or effects that determine each other.
    evaluations
        Evaluations of the likelihood with its gradient.
    """

    coefficients: Array
    thresholds: Array
    factors: tuple[Array, ...]
    sigma: float | None
    modes: tuple[Array, ...]
    mode_variances: tuple[Array, ...]
    vcov: Array
    loglik: float
    n_parameters: int
    nodes: int
    reml: bool
    converged: bool
    gradient: float
    message: str
    singular: tuple[bool, ...]
    evaluations: int

    @property
    def covariances(self) -> tuple[Array, ...]:
        """Covariance matrix of the effects of each random part, shape (q, q)."""
        return tuple(factor @ factor.T for factor in self.factors)


def fit_laplace(matrix: MixedMatrix, *, nodes: int = 1, reml: bool = True) -> LaplaceFit:
    r"""Fit a mixed model by maximum likelihood.

    The effects u = L v of the levels, with v standard normal, are integrated out of the likelihood by the
    Laplace approximation at their conditional modes,

        -log L = -sum log p(y_i | v) + v'v / 2 + log det(H) / 2,    H = I + L'Z'WZL,

    by adaptive Gauss-Hermite quadrature around them (`nodes` > 1), or exactly (Gaussian outcomes).

    Parameters
    ----------
    matrix
        The cells, regressors and random parts.
    nodes
        Nodes of the quadrature for each level; more than 1 for one random part with one effect a level.
    reml
        For a Gaussian outcome, whether the variances maximise the restricted likelihood. Not read for the
        other families.

    Returns
    -------
    LaplaceFit
        The estimates.

    Raises
    ------
    ArgumentError
        If `nodes` is out of range, or does not go with the random parts or the family.
    DesignError
        If the arrays do not make a model: a regressor that depends on others, a level of an ordinal outcome
        that never occurs, no more rows than coefficients, an outcome without residuals.

    Notes
    -----
    The modes are found by Newton's method with a sparse Cholesky factor of H; effects are eliminated in the
    order of how many others they meet, so that what is dense at the end is as small as the smallest
    factor. The parameters are found by BFGS with the exact gradient of the approximation, modes
    and curvature moving with the parameters. The Hessian is by central differences of that gradient.

    The Laplace approximation is too small for the standard deviation of effects with few rows each.

    A standard deviation whose maximum is at 0 is reported as exactly 0, and the others are those of the
    model without it. Coefficients that run to infinity end the search with `converged` false.

    References
    ----------
    Pinheiro, J. C. and Chao, E. C. (2006). Efficient Laplacian and adaptive Gaussian quadrature algorithms
    for multilevel generalized linear mixed models. Journal of Computational and Graphical Statistics,
    15(1), 58-81.

    Bates, D., Maechler, M., Bolker, B. and Walker, S. (2015). Fitting linear mixed-effects models using lme4.
    Journal of Statistical Software, 67(1), 1-48. doi:10.18637/jss.v067.i01

    Examples
    --------
    Three answers to each of five scenarios.

    >>> import numpy as np
    >>> from triagestats.models.mixed.laplace import fit_laplace
    >>> from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
    >>> scenario = RandomPart(
    ...     "scenario", ("scenario",), tuple("abcde"), np.arange(5), np.ones((5, 1)), ("(Intercept)",)
    ... )
    >>> cells = MixedMatrix(
    ...     "binomial", np.array([0.0, 3, 1, 2, 3]), np.full(5, 3.0), np.ones((5, 1)), ("(Intercept)",),
    ...     (scenario,), (), 15,
    ... )
    >>> fit = fit_laplace(cells, nodes=15)
    >>> fit.converged, round(float(fit.coefficients[0]), 2), round(float(fit.factors[0][0, 0]), 2)
    (True, 0.74, 2.33)
    """
    valid_choice("family", matrix.family, Family)
    nodes = _valid_nodes(nodes, matrix)
    rule = _rule(nodes) if nodes > 1 else (None, None)
    ordinal = matrix.family == "ordinal"
    try:
        found = _native.fit_laplace(
            matrix.family,
            _levels(matrix.y) if ordinal else np.ascontiguousarray(matrix.y, dtype=np.float64),
            np.ascontiguousarray(matrix.counts, dtype=np.float64),
            np.ascontiguousarray(matrix.x, dtype=np.float64),
            [_part(part) for part in matrix.random],
            n_levels=len(matrix.levels),
            nodes=rule[0],
            log_weights=rule[1],
            reml=reml,
        )
    except ValueError as error:
        raise DesignError(str(error)) from None
    gaussian = matrix.family == "gaussian"
    return LaplaceFit(
        coefficients=found["coefficients"],
        thresholds=found["thresholds"],
        factors=tuple(found["factors"]),
        sigma=found["sigma"],
        modes=tuple(found["modes"]),
        mode_variances=tuple(found["mode_variances"]),
        vcov=found["vcov"],
        loglik=found["loglik"],
        n_parameters=len(found["vcov"]),
        nodes=nodes,
        reml=reml and gaussian,
        converged=found["ending"] == "converged",
        gradient=found["gradient"],
        message=_MESSAGES[found["ending"]],
        singular=tuple(found["singular"]),
        evaluations=found["evaluations"],
    )


def _valid_nodes(nodes: object, matrix: MixedMatrix) -> int:
    """Return `nodes`, where the model has a quadrature of so many."""
    if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= MAX_NODES:
        msg = f"`nodes` must be an integer from 1 to {MAX_NODES}, got {nodes!r}"
        raise ArgumentError(msg)
    if nodes > 1 and (len(matrix.random) != 1 or matrix.random[0].width != 1):
        parts = ", ".join(f"{part.name} ({part.width})" for part in matrix.random)
        msg = (
            f"`nodes` > 1 takes one random part with one effect a level, got {parts or 'none'}; "
            "use nodes=1, the Laplace approximation"
        )
        raise ArgumentError(msg)
    if nodes > 1 and matrix.family == "gaussian":
        msg = f"`nodes` must be 1 for a Gaussian outcome, whose likelihood is exact, got {nodes}"
        raise ArgumentError(msg)
    return nodes


def _levels(y: Array) -> NDArray[np.uint32]:
    """Levels of an ordinal outcome as integers."""
    wrong = np.flatnonzero(~((y >= 0) & (y == np.floor(y)) & (y < np.iinfo(np.uint32).max)))
    if wrong.size:
        msg = f"`y` of an ordinal outcome must hold levels 0, 1, 2, ...; got {y[wrong[0]]:g} at {wrong[0]}"
        raise DesignError(msg)
    return np.ascontiguousarray(y, dtype=np.uint32)


def _rule(nodes: int) -> tuple[Array, Array]:
    """Nodes for a standard normal variable, and the logarithms of weights that sum to 1."""
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return places, np.log(weights / weights.sum())


def _part(part: RandomPart) -> tuple[NDArray[np.uint32], Array | None, int]:
    """Level of each cell, multipliers, number of levels."""
    z = None if part.intercept_only else np.ascontiguousarray(part.z, dtype=np.float64)
    return np.ascontiguousarray(part.codes, dtype=np.uint32), z, part.n_levels
