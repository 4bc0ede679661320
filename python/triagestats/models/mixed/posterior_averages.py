"""Population-averaged probabilities at each draw, and what is known of the levels that were seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.integrals import logistic_normal
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.naming import grouped
from triagestats.models.mixed.profiles import Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["level_averages", "new_level_averages", "profile_averages", "variance_shares"]

_RESIDUAL: Final = {"binomial": np.pi**2 / 3, "ordinal": np.pi**2 / 3}
"""Variance of the standard logistic distribution."""


def profile_averages(matrix: MixedMatrix, draws: Draws, profile: Profile) -> Array:
    r"""Average of a profile over new levels of every random part.

    At each draw, with rows i of weight :math:`w_i` that sum to 1,

    .. math::
        \sum_i w_i E_u[p(x_i'b + z_i'u)], \qquad u_t \sim N(0, L_t L_t').

    Parameters
    ----------
    matrix, draws
        The model and its draws.
    profile
        Rows to average over.

    Returns
    -------
    ndarray
        Binomial: the probability, gaussian: the mean, shape (chains, draws, 1). Ordinal: the probability of
        each level, shape (chains, draws, J), then of being under and over the gold range where there is one.
    """
    everything = range(len(matrix.random))
    return _average(matrix, draws, profile, integrated=everything, shift=None)


def level_averages(matrix: MixedMatrix, draws: Draws, profile: Profile, part: str, level: int) -> Array:
    """The same for one level that was seen: its effects at each draw, the other parts new."""
    own = grouped(matrix, part)
    rest = [place for place in range(len(matrix.random)) if place not in own]
    shift = sum(
        (draws.effects[place][:, :, level, :] @ profile.z[place].T for place in own),
        np.zeros((*draws.coefficients.shape[:2], len(profile.weights))),
    )
    return _average(matrix, draws, profile, integrated=rest, shift=shift)


def new_level_averages(
    matrix: MixedMatrix, draws: Draws, profile: Profile, part: str, rng: np.random.Generator
) -> Array:
    """The same for a level that is new, a fresh one at each draw: the distribution of its rate.

    Where the profile sets a column, the effect of the new level in that setting, as of `scenario:condition`,
    is drawn with it: it is one more trait of that level, not one to average over.
    """
    own = grouped(matrix, part)
    grouping = set(matrix.random[own[0]].parts)
    own += [place for place, other in enumerate(matrix.random) if {*other.parts} == grouping | {profile.term}
            and profile.term not in grouping]  # fmt: skip
    rest = [place for place in range(len(matrix.random)) if place not in own]
    shift = np.zeros((*draws.coefficients.shape[:2], len(profile.weights)))
    for place in own:
        factor = draws.factors[place]
        effects = (factor @ rng.standard_normal((*factor.shape[:3], 1)))[..., 0]
        shift += effects @ profile.z[place].T
    return _average(matrix, draws, profile, integrated=rest, shift=shift)


def variance_shares(matrix: MixedMatrix, draws: Draws) -> dict[str, Array]:
    """Share of each random part in the variance of the latent outcome, and `residual`, shape (chains, draws).

    The variance of a part is the mean over the rows of z' L L' z; the residual one is pi^2 / 3 for log odds.
    The regressors count in none.
    """
    variances = {
        part.name: _mean_variance(part, factor, matrix.counts)
        for part, factor in zip(matrix.random, draws.factors, strict=True)
    }
    shape = draws.coefficients.shape[:2]
    residual = np.square(draws.sigma) if draws.sigma is not None else np.full(shape, _RESIDUAL[matrix.family])
    variances["residual"] = residual
    total = np.sum(list(variances.values()), axis=0)
    return {name: value / total for name, value in variances.items()}


def _mean_variance(part: RandomPart, factor: Array, counts: Array) -> Array:
    mean_square = (part.z * counts[:, None]).T @ part.z / counts.sum()
    variance: Array = np.einsum("cdik,cdjk,ij->cd", factor, factor, mean_square)
    return variance


def _average(
    matrix: MixedMatrix, draws: Draws, profile: Profile, *, integrated: Iterable[int], shift: Array | None
) -> Array:
    predictor = draws.coefficients @ profile.x.T
    if shift is not None:
        predictor = predictor + shift
    if matrix.family == "gaussian":
        return (predictor @ profile.weights)[..., None]
    variance = np.zeros_like(predictor)
    for place in integrated:
        spread = profile.z[place] @ draws.factors[place]
        variance += np.square(spread).sum(axis=3)
    sd = np.sqrt(variance)
    if matrix.family == "binomial":
        return (_mean_logistic(predictor, sd) @ profile.weights)[..., None]
    j = draws.thresholds.shape[2] + 1
    below = np.zeros((*predictor.shape, j + 1))
    below[..., -1] = 1.0
    for level in range(j - 1):
        below[..., level + 1] = _mean_logistic(draws.thresholds[:, :, level, None] - predictor, sd)
    levels = np.diff(below, axis=3)
    columns = [np.einsum("cdmj,m->cdj", levels, profile.weights)]
    columns += [
        np.einsum("cdmj,mj,m->cd", levels, weights, profile.weights)[..., None]
        for weights in (profile.under, profile.over)
        if weights is not None
    ]
    return np.concatenate(columns, axis=2)


def _mean_logistic(mean: Array, sd: Array) -> Array:
    if not sd.any():
        probability: Array = special.expit(mean)
        return probability
    return logistic_normal(mean, sd)
