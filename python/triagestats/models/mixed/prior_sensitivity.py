"""How much a posterior would change if the prior, or the data, weighed more or less."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.likelihood import blocks, log_density, predictor
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.prior_scales import log_prior, prior_scales
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.psis import smoothed_weights
from triagestats.models.mixed.quantities import Quantity
from triagestats.models.mixed.thinning import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["power_scaling", "prior_sensitivity"]

_STEP: Final = 0.01
"""Of the power that a component is raised to."""
_SENSITIVE: Final = 0.05


def prior_sensitivity(
    matrix: MixedMatrix, draws: Draws, priors: Priors, quantities: Sequence[Quantity]
) -> pl.DataFrame:
    """Sensitivity of each quantity to power-scaling the priors, and the likelihood.

    Parameters
    ----------
    matrix, draws, priors
        The fit.
    quantities
        What is reported.

    Returns
    -------
    polars.DataFrame
        `quantity`, `prior` (all priors at once), `prior of <kind>` for each kind of parameter, `likelihood`,
        and `diagnosis`: empty where the prior has less than 0.05, else `the prior and the data pull apart`
        where the data have as much too, and `the prior decides` where they do not.

    Notes
    -----
    The distribution of the effects given their standard deviations is part of the model: it is scaled with
    neither.

    References
    ----------
    Kallioinen, N., Paananen, T., Buerkner, P.-C. and Vehtari, A. (2024), Detecting and diagnosing prior and
    likelihood sensitivity with power-scaling, Statistics and Computing 34:57, doi:10.1007/s11222-023-10366-5.
    """
    every = math.lcm(*draws.effects_every) if draws.effects_every else 1
    draws = aligned(draws)  # the likelihood needs the effects
    values = np.stack([quantity.values[:, ::every].ravel() for quantity in quantities])
    kinds = {
        name: density.ravel()
        for name, density in log_prior(matrix, prior_scales(matrix, priors), draws).items()
    }
    columns = {"prior": power_scaling(values, np.sum(list(kinds.values()), axis=0))}
    columns |= {f"prior of {name}": power_scaling(values, density) for name, density in kinds.items()}
    columns["likelihood"] = power_scaling(values, _log_likelihood(matrix, draws))
    diagnoses = [
        "" if not prior >= _SENSITIVE else (
            "the prior and the data pull apart" if data >= _SENSITIVE else "the prior decides"
        )
        for prior, data in zip(columns["prior"], columns["likelihood"], strict=True)
    ]  # fmt: skip
    return pl.DataFrame(
        {"quantity": [quantity.name for quantity in quantities], **columns, "diagnosis": diagnoses}
    ).with_columns(pl.col(columns).fill_nan(None))


def power_scaling(values: Array, log_component: Array) -> Array:
    r"""Local sensitivity of posteriors to raising a component of the model to a power.

    .. math::
        \frac{D(p, p_{1 / (1 + \delta)}) + D(p, p_{1 + \delta})}{2 \log_2(1 + \delta)}

    with D the square root of the normalised cumulative Jensen-Shannon divergence and :math:`\delta = 0.01`;
    the changed posteriors by Pareto-smoothed importance weights.

    Parameters
    ----------
    values
        Draws of k quantities, shape (k, draws).
    log_component
        Log density of the component at each draw, shape (draws,).

    Returns
    -------
    ndarray
        Shape (k,); NaN where a quantity is constant.
    """
    powers = np.array([1 / (1 + _STEP), 1 + _STEP])
    log_weights, _ = smoothed_weights((powers - 1)[:, None] * log_component)
    weights = np.exp(log_weights)
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    total = np.zeros(len(values))
    for weight in weights:
        sorted_weights = weight[order]
        total += np.maximum(
            _distance(ordered, sorted_weights), _distance(-ordered[:, ::-1], sorted_weights[:, ::-1])
        )
    sensitivity: Array = total / (2 * np.log2(1 + _STEP))
    return sensitivity


def _distance(ordered: Array, weights: Array) -> Array:
    """Root of the cumulative Jensen-Shannon divergence of ordered draws before and after weighting."""
    n = ordered.shape[1]
    widths = np.diff(ordered, axis=1)
    before = np.arange(1, n) / n
    after = np.cumsum(weights, axis=1)[:, :-1]
    mixed = 0.5 * (before + after)
    sums = (widths @ before, (widths * after).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = (widths * before * np.log2(before / mixed)).sum(axis=1)
        loss = (widths * np.where(after > 0, after * np.log2(after / mixed), 0.0)).sum(axis=1)
        half = 0.5 / np.log(2) * (sums[1] - sums[0])
        divergence = np.maximum(gain + half, 0) + np.maximum(loss - half, 0)
        distance: Array = np.sqrt(divergence / (sums[0] + sums[1]))
    return distance


def _log_likelihood(matrix: MixedMatrix, draws: Draws) -> Array:
    n = draws.n_chains * draws.n_draws
    total = np.zeros(n)
    for rows in blocks(len(matrix.y), n):
        total += log_density(matrix, draws, rows, predictor(matrix, draws, rows)).sum(axis=0)
    return total
