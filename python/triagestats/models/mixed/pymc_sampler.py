"""Draws of a mixed model through PyMC, with its own sampler or with nutpie."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.extras import bayes_library
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.prior_scales import PriorScales, prior_scales
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.pymc_model import pymc_model, redrawn, swept_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["PymcDraws", "PymcSampler", "sample_pymc"]

PymcSampler = Literal["pymc", "nutpie"]

_STATISTICS: Final = {
    "diverging": ("diverging",),
    "energy": ("energy",),
    "tree_depth": ("tree_depth", "depth"),
    "n_steps": ("n_steps",),
    "acceptance_rate": ("acceptance_rate", "mean_tree_accept"),
    "step_size": ("step_size",),
    "lp": ("lp", "logp"),
}
"""Names of the statistics, and what PyMC and nutpie call them."""
_REDRAW: Final = 0x5EED
"""Beside the seed: the stream that splits the swept intercept."""


@dataclass(frozen=True, slots=True, eq=False)
class PymcDraws:
    """Draws, and what PyMC returned.

    Attributes
    ----------
    draws
        On the scale of the package.
    raw
        The `arviz.InferenceData` of the model as PyMC sampled it, swept and with centred regressors.
    model
        The `pymc.Model`.
    """

    draws: Draws
    raw: Any
    model: Any


def sample_pymc(
    matrix: MixedMatrix,
    priors: Priors | None = None,
    *,
    sampler: PymcSampler = "pymc",
    chains: int = 4,
    draws: int = 1_000,
    tune: int = 1_000,
    seed: int = 0,
    target_accept: float = 0.9,
    progress: bool = False,
    cores: int | None = None,
    keep_on_interrupt: bool = False,
) -> PymcDraws:
    """Sample the posterior of a mixed model by PyMC.

    Parameters
    ----------
    matrix
        The cells.
    priors
        Default: `Priors()`.
    sampler
        `pymc`, or `nutpie`, which compiles the model and samples it in Rust.
    chains, draws, tune
        Number of chains, draws that each keeps, and draws before them that adapt the sampler.
    seed
        Of all that is random.
    target_accept
        Acceptance rate that the step size is adapted to.
    progress
        Whether a bar shows how far the chains are.
    cores
        Chains that run at once. Default: what PyMC finds.
    keep_on_interrupt
        At Ctrl-C, whether to return what was drawn, if the sampler hands it over, instead of raising.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C, unless draws are kept.
    ArgumentError
        If PyMC or nutpie is not installed, or a prior names what the model does not have.
    """
    valid_choice("sampler", sampler, PymcSampler)
    pm = bayes_library("pymc")
    if sampler == "nutpie":
        bayes_library("nutpie")
    chosen = priors or Priors()
    model = pymc_model(matrix, chosen)
    started = time.perf_counter()
    with warnings.catch_warnings():
        # What the chains did is read from the draws; the libraries' own warnings would only repeat it.
        warnings.simplefilter("ignore")
        raw = pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            cores=cores,
            random_seed=seed,
            nuts_sampler=sampler,
            target_accept=target_accept,
            progressbar=progress,
            compute_convergence_checks=False,
            quiet=not progress,
            model=model,
        )
    seconds = time.perf_counter() - started
    # The samplers swallow a Ctrl-C and return the draws that there are.
    interrupted = raw.posterior.sizes["draw"] < draws
    if interrupted and not keep_on_interrupt:
        raise KeyboardInterrupt
    rng = np.random.default_rng([seed, _REDRAW])
    made = _as_draws(matrix, prior_scales(matrix, chosen), raw, rng, sampler, seconds, tune)
    return PymcDraws(replace(made, interrupted=interrupted), raw, model)


def _as_draws(
    matrix: MixedMatrix,
    scales: PriorScales,
    raw: Any,
    rng: np.random.Generator,
    sampler: str,
    seconds: float,
    tune: int,
) -> Draws:
    posterior = {str(name): np.asarray(values, dtype=np.float64) for name, values in raw.posterior.items()}
    shape = (raw.posterior.sizes["chain"], raw.posterior.sizes["draw"])
    sds = {place: posterior[f"sd_{matrix.random[place].name}"] for place in swept_parts(matrix)}
    location = posterior.get("location", np.zeros((*shape, 0) if matrix.family == "ordinal" else shape))
    swept = redrawn(matrix, scales, location, sds, rng)
    b = posterior.get("coefficients", np.zeros((*shape, 0)))
    shift = b @ scales.centre
    coefficients = np.zeros((*shape, matrix.x.shape[1]))
    coefficients[:, :, scales.others] = b
    thresholds = np.zeros((*shape, 0))
    if matrix.family == "ordinal":
        thresholds = swept.location + shift[:, :, None]
    elif scales.constant is not None:
        coefficients[:, :, scales.constant] = swept.location - shift
    factors, effects = [], []
    for place, part in enumerate(matrix.random):
        if place in swept.means:
            deviations = posterior[f"deviations_{part.name}"]
            effects.append((deviations + swept.means[place][:, :, None])[..., None])
            factors.append(sds[place][:, :, None, None])
        elif part.width == 1:
            effects.append(posterior[f"effects_{part.name}"][..., None])
            factors.append(posterior[f"sd_{part.name}"][:, :, None, None])
        else:
            effects.append(posterior[f"effects_{part.name}"])
            factors.append(_unpacked(posterior[f"covariance_{part.name}"], part.width))
    return Draws(
        coefficients,
        thresholds,
        tuple(factors),
        posterior.get("sigma"),
        tuple(effects),
        _statistics(raw.sample_stats),
        sampler,
        seconds,
        tune,
    )


def _unpacked(packed: Array, q: int) -> Array:
    """Lower triangles that were packed row by row, shape (..., q (q + 1) / 2), as matrices."""
    factor = np.zeros((*packed.shape[:-1], q, q))
    rows, columns = np.tril_indices(q)
    factor[..., rows, columns] = packed
    return factor


def _statistics(found: Any) -> Mapping[str, NDArray[Any]]:
    kept: dict[str, NDArray[Any]] = {}
    for name, spellings in _STATISTICS.items():
        for spelling in spellings:
            if spelling in found:
                kept[name] = np.asarray(found[spelling])
                break
    return kept
