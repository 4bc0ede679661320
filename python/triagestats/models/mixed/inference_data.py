"""Draws of a mixed model as an ArviZ object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.extras import bayes_library
from triagestats.models.mixed.likelihood import blocks, log_density, new_outcomes, predictor
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.naming import dimension, effect_dimension, threshold_names
from triagestats.models.mixed.prior_scales import log_prior, prior_draws, prior_scales
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.thinning import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["inference_data"]

_MOST_NUMBERS: Final = 20_000_000
"""Of cells times draws, up to which what has one number a cell is made without being asked for."""
_PREDICTED: Final = 0x9E4D
"""Beside the seed: the streams of predicted outcomes, of the prior and from it."""


def inference_data(
    matrix: MixedMatrix,
    draws: Draws,
    priors: Priors | None = None,
    *,
    log_likelihood: bool | None = None,
    predictive: bool | None = None,
    prior: int = 500,
    seed: int = 0,
) -> Any:
    """The draws of any sampler as `arviz.InferenceData`, for ArviZ's plots, summaries and comparisons.

    Parameters
    ----------
    matrix, draws
        The model and its draws.
    priors
        Those of the fit. Default: `Priors()`.
    log_likelihood
        Whether to add the log likelihood of each cell: the sum over its rows, without binomial coefficient,
        so that ArviZ's LOO leaves out a cell. Default: where cells times draws are at most 20 million.
    predictive
        The same for outcomes predicted for each cell.
    prior
        Draws from the prior, and outcomes predicted from it; 0 for none.
    seed
        Of what is predicted.

    Returns
    -------
    arviz.InferenceData
        `posterior` (`coefficients` by term; `thresholds`; for each random part `sd_<part>`, `effects_<part>`
        with the labels of its levels, and `correlation_<part>` where it has slopes; `sigma`), `sample_stats`,
        `observed_data`, `constant_data` (`counts`, `x`, and `code_<part>`), `log_prior`, and as asked
        `log_likelihood`, `posterior_predictive`, `prior`, `prior_predictive`. Its attributes say what was
        left out for its size.

    Raises
    ------
    ArgumentError
        If ArviZ is not installed.
    """
    az = bayes_library("arviz")
    chosen = priors or Priors()
    draws = aligned(draws)
    n = draws.n_chains * draws.n_draws
    small = len(matrix.y) * n <= _MOST_NUMBERS
    coords, dims = _coordinates(matrix)
    scales = prior_scales(matrix, chosen)
    groups: dict[str, Any] = {
        "posterior": _variables(matrix, draws),
        "sample_stats": dict(draws.statistics),
        "observed_data": {"y": matrix.y},
        "constant_data": _constants(matrix),
    }
    omitted = []
    if log_likelihood or (log_likelihood is None and small):
        groups["log_likelihood"] = {"y": _per_cell(matrix, draws, _density)}
    elif log_likelihood is None:
        omitted.append("log_likelihood")
    if predictive or (predictive is None and small):
        groups["posterior_predictive"] = {"y": _predicted(matrix, draws, [seed, _PREDICTED])}
    elif predictive is None:
        omitted.append("posterior_predictive")
    if prior:
        before = prior_draws(matrix, scales, draws=prior, seed=seed)
        groups["prior"] = _variables(matrix, before)
        groups["prior_predictive"] = {"y": _predicted(matrix, before, [seed, _PREDICTED, 1])}
    data = az.from_dict(
        **{name: values for name, values in groups.items() if values}, coords=coords, dims=dims
    )
    data.add_groups({"log_prior": log_prior(matrix, scales, draws)})
    data.attrs |= {
        "sampler": draws.sampler,
        "sampling_time": draws.seconds,
        "tuning_steps": draws.n_tune,
        "family": matrix.family,
        "n_rows": matrix.n_rows,
        "priors": "\n".join(chosen.described()),
    }
    if omitted:
        data.attrs["omitted"] = (
            f"{' and '.join(omitted)}: {len(matrix.y):,} cells times {n:,} draws are many; ask for them"
        )
    return data


def _coordinates(
    matrix: MixedMatrix,
) -> tuple[dict[str, list[str] | NDArray[np.int64]], dict[str, list[str]]]:
    coords: dict[str, Any] = {"term": list(matrix.terms), "cell": np.arange(len(matrix.y))}
    dims: dict[str, list[str]] = {
        "coefficients": ["term"],
        "y": ["cell"],
        "counts": ["cell"],
        "x": ["cell", "term"],
    }
    if matrix.family == "ordinal":
        coords |= {"threshold": list(threshold_names(matrix)), "level": list(matrix.levels)}
        dims["thresholds"] = ["threshold"]
    for part in matrix.random:
        coords[dimension(part)] = list(part.levels)
        dims[f"code_{part.name}"] = ["cell"]
        dims[f"effects_{part.name}"] = [dimension(part)]
        if not part.intercept_only:
            effect = effect_dimension(part)
            coords |= {effect: list(part.z_names), f"{effect} (2)": list(part.z_names)}
            dims[f"sd_{part.name}"] = [effect]
            dims[f"effects_{part.name}"].append(effect)
            dims[f"correlation_{part.name}"] = [effect, f"{effect} (2)"]
    return coords, dims


def _variables(matrix: MixedMatrix, draws: Draws) -> dict[str, Array]:
    found: dict[str, Array] = {}
    if len(matrix.terms):
        found["coefficients"] = draws.coefficients
    if matrix.family == "ordinal":
        found["thresholds"] = draws.thresholds
    for part, factor, effects in zip(matrix.random, draws.factors, draws.effects, strict=True):
        found |= _of_part(part, factor, effects)
    if draws.sigma is not None:
        found["sigma"] = draws.sigma
    return found


def _of_part(part: RandomPart, factor: Array, effects: Array) -> dict[str, Array]:
    if part.intercept_only:
        return {f"sd_{part.name}": factor[..., 0, 0], f"effects_{part.name}": effects[..., 0]}
    covariance = factor @ factor.swapaxes(2, 3)
    sds = np.sqrt(np.diagonal(covariance, axis1=2, axis2=3))
    found = {f"sd_{part.name}": sds, f"effects_{part.name}": effects}
    if part.width > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            found[f"correlation_{part.name}"] = covariance / (sds[..., :, None] * sds[..., None, :])
    return found


def _constants(matrix: MixedMatrix) -> dict[str, Any]:
    codes = {f"code_{part.name}": part.codes for part in matrix.random}
    return {"counts": matrix.counts, **({"x": matrix.x} if len(matrix.terms) else {}), **codes}


def _density(matrix: MixedMatrix, draws: Draws, rows: slice, eta: Array) -> Array:
    return log_density(matrix, draws, rows, eta)


def _predicted(matrix: MixedMatrix, draws: Draws, seed: list[int]) -> Array:
    rng = np.random.default_rng(seed)

    def fresh(matrix: MixedMatrix, draws: Draws, rows: slice, eta: Array) -> Array:
        return new_outcomes(matrix, draws, rows, eta, rng)

    return _per_cell(matrix, draws, fresh)


def _per_cell(matrix: MixedMatrix, draws: Draws, of: Any) -> Array:
    """What `of` gives for each cell and draw, shape (chains, draws, cells)."""
    n = draws.n_chains * draws.n_draws
    result = np.empty((n, len(matrix.y)))
    for rows in blocks(len(matrix.y), n):
        result[:, rows] = of(matrix, draws, rows, predictor(matrix, draws, rows)).T
    return result.reshape(draws.n_chains, draws.n_draws, -1)
