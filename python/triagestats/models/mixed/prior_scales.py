"""The priors of one model: their scales column by column, their density, and draws from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.errors import ArgumentError
from triagestats.models.formula import INTERCEPT
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.priors import DEFAULT_COEFFICIENT, DEFAULT_SD, Priors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["PriorScales", "log_prior", "prior_draws", "prior_scales"]


@dataclass(frozen=True, slots=True, eq=False)
class PriorScales:
    """Priors of the columns and parts of one matrix.

    Attributes
    ----------
    constant
        Place of the intercept among the columns; None where there is none, as for an ordinal outcome.
    others
        Places of the other columns.
    centre
        What the other columns are centred at, shape (p - 1,) or (p,): their means over the rows, and 0 where
        neither an intercept nor thresholds could take the shift up.
    intercept, location
        Standard deviation and mean of the prior of the intercept at `centre`; of thresholds.
    coefficients
        Standard deviations of the priors of the other columns.
    sds
        Scale of the half-normal prior of the standard deviations of each random part.
    correlation
        Shape of the LKJ prior.
    residual
        Scale of the half-normal prior of the residual standard deviation.
    """

    constant: int | None
    others: NDArray[np.int64]
    centre: Array
    intercept: float
    location: float
    coefficients: Array
    sds: tuple[float, ...]
    correlation: float
    residual: float


def prior_scales(matrix: MixedMatrix, priors: Priors) -> PriorScales:
    """The priors, column by column and part by part.

    Raises
    ------
    ArgumentError
        If a prior names a term or a random part that the model does not have.
    """
    constant = _constant(matrix)
    others = np.array([j for j in range(matrix.x.shape[1]) if j != constant], dtype=np.int64)
    terms = [matrix.terms[j] for j in others]
    parts = [part.name for part in matrix.random]
    shifted = constant is not None or matrix.family == "ordinal"
    x = matrix.x[:, others]
    centre = np.average(x, axis=0, weights=matrix.counts) if shifted else np.zeros(len(others))
    location, unit = 0.0, 1.0
    if matrix.family == "gaussian":
        location, unit = float(matrix.y.mean()), float(matrix.y.std(ddof=1))
        if not unit > 0:
            raise ArgumentError("the outcome is the same in every row: no prior can be scaled by its spread")
    return PriorScales(
        constant,
        others,
        centre,
        priors.intercept * unit,
        location,
        unit * np.array(_by_name("coefficient", priors.coefficient, terms, DEFAULT_COEFFICIENT, "term")),
        tuple(unit * s for s in _by_name("sd", priors.sd, parts, DEFAULT_SD, "random part")),
        priors.correlation,
        priors.residual * unit,
    )


def _constant(matrix: MixedMatrix) -> int | None:
    if matrix.family == "ordinal":
        return None
    if INTERCEPT in matrix.terms:
        return matrix.terms.index(INTERCEPT)
    ones = np.flatnonzero((matrix.x == 1).all(axis=0))
    return int(ones[0]) if len(ones) else None


def _by_name(
    argument: str, value: float | Mapping[str, float], names: list[str], default: float, what: str
) -> list[float]:
    if not isinstance(value, Mapping):
        return [float(value)] * len(names)
    unknown = [name for name in value if name not in names]
    if unknown:
        raise ArgumentError(
            f"`{argument}` of the priors names {unknown[0]!r}, which is no {what} of the model with such a "
            f"prior; these are {names}"
        )
    return [float(value.get(name, default)) for name in names]


def log_prior(matrix: MixedMatrix, scales: PriorScales, draws: Draws) -> dict[str, Array]:
    """Log density of the priors at each draw, shape (chains, draws), up to constants.

    By kind: `location` (intercept or thresholds), `coefficients`, `sds` (with correlations), `residual`. The
    distribution of the effects given their standard deviations is part of the model, not among them.
    """
    b = draws.coefficients[:, :, scales.others]
    found = {"coefficients": -0.5 * np.square(b / scales.coefficients).sum(axis=2)}
    shift = b @ scales.centre
    if matrix.family == "ordinal":
        found["location"] = -0.5 * np.square((draws.thresholds - shift[:, :, None]) / scales.intercept).sum(
            axis=2
        )
    elif scales.constant is not None:
        at_centre = draws.coefficients[:, :, scales.constant] + shift
        found["location"] = -0.5 * np.square((at_centre - scales.location) / scales.intercept)
    spread = np.zeros(b.shape[:2])
    for factor, scale in zip(draws.factors, scales.sds, strict=True):
        q = factor.shape[2]
        sds = np.sqrt(np.square(factor).sum(axis=3))
        spread -= 0.5 * np.square(sds / scale).sum(axis=2)
        if q > 1:
            diagonal = np.diagonal(factor, axis1=2, axis2=3) / sds
            powers = q - np.arange(2, q + 1) + 2 * (scales.correlation - 1)
            with np.errstate(divide="ignore"):
                spread += (powers * np.log(diagonal[:, :, 1:])).sum(axis=2)
    found["sds"] = spread
    if draws.sigma is not None:
        found["residual"] = -0.5 * np.square(draws.sigma / scales.residual)
    return found


def prior_draws(matrix: MixedMatrix, scales: PriorScales, *, draws: int, seed: int) -> Draws:
    """Independent draws from the prior, one chain, the effects of the levels included."""
    rng = np.random.default_rng(seed)
    coefficients = np.zeros((1, draws, matrix.x.shape[1]))
    b = scales.coefficients * rng.standard_normal((draws, len(scales.others)))
    coefficients[0][:, scales.others] = b
    shift = b @ scales.centre
    thresholds = np.zeros((1, draws, 0))
    if matrix.family == "ordinal":
        at_centre = np.sort(scales.intercept * rng.standard_normal((draws, len(matrix.levels) - 1)), axis=1)
        thresholds = (at_centre + shift[:, None])[None]
    elif scales.constant is not None:
        coefficients[0][:, scales.constant] = (
            scales.location + scales.intercept * rng.standard_normal(draws) - shift
        )
    factors, effects = [], []
    for part, scale in zip(matrix.random, scales.sds, strict=True):
        sds = np.abs(scale * rng.standard_normal((draws, part.width)))
        factor = sds[:, :, None] * _lkj_factors(part.width, scales.correlation, draws, rng)
        z = rng.standard_normal((draws, part.n_levels, part.width))
        factors.append(factor[None])
        effects.append((z @ factor.transpose(0, 2, 1))[None])
    sigma = np.abs(scales.residual * rng.standard_normal((1, draws))) if matrix.family == "gaussian" else None
    return Draws(coefficients, thresholds, tuple(factors), sigma, tuple(effects), {}, "prior", 0.0, 0)


def _lkj_factors(q: int, eta: float, n: int, rng: np.random.Generator) -> Array:
    """Lower factors of n correlation matrices from LKJ(eta), by the onion method; shape (n, q, q)."""
    factors = np.zeros((n, q, q))
    factors[:, 0, 0] = 1.0
    beta = eta + (q - 2) / 2
    for row in range(1, q):
        squared = rng.beta(row / 2, beta, size=n)
        beta -= 0.5
        direction = rng.standard_normal((n, row))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        factors[:, row, :row] = np.sqrt(squared)[:, None] * direction
        factors[:, row, row] = np.sqrt(1 - squared)
    return factors
