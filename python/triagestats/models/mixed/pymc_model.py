"""A mixed model as a PyMC model, and back from its posterior to the parameters of the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.models.mixed.extras import bayes_library
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.naming import dimension, effect_dimension, threshold_names
from triagestats.models.mixed.prior_scales import PriorScales, prior_scales
from triagestats.models.mixed.priors import Priors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Swept", "pymc_model", "redrawn"]

_WELL_KNOWN: Final = 1.0
"""Information of a level's rows on its effect, over that of the prior, from which effects are centred."""
_LEAST_VARIANCE: Final = 0.02
"""Of effects, for that ratio."""
_FEW_LEVELS: Final = 20
_WELL_KNOWN_OF_FEW: Final = 10.0
"""The same for few levels, whose standard deviation may be near 0: there centred effects have a funnel."""
_THRESHOLD_SPREAD: Final = 1.0
_FAR_AWAY: Final = 1e3
"""Log odds that stand for infinite ones, as the outer edges of the levels."""


def pymc_model(matrix: MixedMatrix, priors: Priors | None = None) -> Any:
    r"""The model as a `pymc.Model`, to sample with any tool that takes one.

    Cells enter with their counts; a predicted outcome of an ordinal cell is the level of one of its rows.
    Random intercepts are swept: with :math:`u_g = \bar u + d_g`, the means of the parts' effects and the
    intercept only enter as their sum, so that the model has that sum, with variance :math:`\tau^2 + \sum_t
    \sigma_t^2 / G_t`, and the deviations d, which sum to zero. `redrawn` splits the sum again, exactly.
    Deviations are centred where the rows of a level tell more of them than the prior. Random slopes are not
    centred, with an LKJ prior of their correlations.

    Parameters
    ----------
    matrix
        The cells.
    priors
        Default: `Priors()`.

    Returns
    -------
    pymc.Model
        With the variables `coefficients` (at centred regressors), `location` (the swept intercept, or the
        swept thresholds), `sd_<part>`, `deviations_<part>` or `effects_<part>`, `sigma`, `y`; and the
        coordinates `term`, `threshold`, `cell` and one a grouping.

    Raises
    ------
    ArgumentError
        If PyMC is not installed, or a prior names what the model does not have.
    """
    pm = bayes_library("pymc")
    pt = bayes_library("pytensor.tensor")
    scales = prior_scales(matrix, priors or Priors())
    coords: dict[str, Any] = {
        "term": [matrix.terms[j] for j in scales.others],
        "cell": np.arange(len(matrix.y)),
    }
    for part in matrix.random:
        coords[dimension(part)] = list(part.levels)
        if part.width > 1:
            coords[effect_dimension(part)] = list(part.z_names)
    with pm.Model(coords=coords) as model:
        shared_variance = pt.constant(0.0)
        predictor = pt.zeros(len(matrix.y))
        if len(scales.others):
            b = pm.Normal("coefficients", 0.0, scales.coefficients, dims="term")
            predictor += pt.dot(pt.as_tensor(matrix.x[:, scales.others] - scales.centre), b)
        for place, part in enumerate(matrix.random):
            if part.intercept_only:
                sd = pm.HalfNormal(f"sd_{part.name}", scales.sds[place])
                deviations = _deviations(pm, part, sd, _informative(matrix, part))
                predictor += deviations[part.codes]
                shared_variance = shared_variance + sd**2 / part.n_levels
            else:
                effects = _slopes(pm, pt, part, scales.sds[place], scales.correlation)
                predictor += (effects[part.codes] * part.z).sum(axis=1)
        if matrix.family == "ordinal":
            _ordinal(pm, pt, matrix, scales, shared_variance, predictor)
        else:
            prior_variance = scales.intercept**2 if scales.constant is not None else 0.0
            if scales.constant is not None or swept_parts(matrix):
                predictor += pm.Normal(
                    "location", scales.location if scales.constant is not None else 0.0,
                    pt.sqrt(prior_variance + shared_variance),
                )  # fmt: skip
            if matrix.family == "binomial":
                pm.Binomial("y", n=matrix.counts, logit_p=predictor, observed=matrix.y, dims="cell")
            else:
                sigma = pm.HalfNormal("sigma", scales.residual)
                pm.Normal("y", predictor, sigma, observed=matrix.y, dims="cell")
    return model


@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """Intercept, thresholds and effects with the means of the swept parts given back.

    Attributes
    ----------
    location
        The intercept at the centre of the regressors, shape (chains, draws), or the thresholds there, shape
        (chains, draws, J - 1).
    means
        Mean of the effects of each swept part, by its place, shape (chains, draws).
    """

    location: Array
    means: Mapping[int, Array]


def swept_parts(matrix: MixedMatrix) -> list[int]:
    """Places of the random parts whose mean is summed with the intercept."""
    return [place for place, part in enumerate(matrix.random) if part.intercept_only]


def redrawn(
    matrix: MixedMatrix,
    scales: PriorScales,
    location: Array,
    sds: Mapping[int, Array],
    rng: np.random.Generator,
) -> Swept:
    r"""Split the sum of intercept and means of effects, from its exact conditional distribution.

    Given the standard deviations all are normal: with k the swept intercept (k = a + U) or the K swept
    thresholds (k_j = a_j - U), :math:`a \sim N(m, \tau^2)` and :math:`U = \sum_t \bar u_t \sim N(0, s^2)`,

    .. math::
        U \mid k \sim N\left( \pm \frac{s^2 \sum_j (k_j - m)}{\tau^2 + K s^2},
        \frac{s^2 \tau^2}{\tau^2 + K s^2} \right),

    and the means given U are normal draws moved to that sum.
    """
    places = swept_parts(matrix)
    ordinal = matrix.family == "ordinal"
    if not places:
        return Swept(location, {})
    variances = {place: np.square(sds[place]) / matrix.random[place].n_levels for place in places}
    total = np.sum(list(variances.values()), axis=0)
    fixed = ordinal or scales.constant is not None
    tau2 = scales.intercept**2 if fixed else 0.0
    k = location if ordinal else location[:, :, None]
    centre = scales.location if fixed else 0.0
    denominator = tau2 + k.shape[2] * total
    mean = (-1 if ordinal else 1) * total * (k - centre).sum(axis=2) / denominator
    spread = np.sqrt(total * tau2 / denominator)
    shared = mean + spread * rng.standard_normal(total.shape)
    means = {place: np.sqrt(variances[place]) * rng.standard_normal(total.shape) for place in places}
    missing = shared - np.sum(list(means.values()), axis=0)
    means = {place: means[place] + variances[place] / total * missing for place in places}
    moved = k + shared[:, :, None] if ordinal else k - shared[:, :, None]
    return Swept(moved if ordinal else moved[:, :, 0], means)


def _informative(matrix: MixedMatrix, part: RandomPart) -> bool:
    """Whether the rows of a typical level tell more of its effect than the distribution of effects does."""
    rows = np.bincount(part.codes, weights=matrix.counts, minlength=part.n_levels)
    sums = np.bincount(part.codes, weights=_outcome_sums(matrix), minlength=part.n_levels)
    seen = rows > 0
    rows, sums = rows[seen], sums[seen]
    if matrix.family == "gaussian":
        means = sums / rows
        within = np.square(matrix.y - (np.bincount(part.codes, matrix.y) / np.maximum(
            np.bincount(part.codes), 1))[part.codes]).sum() / max(len(matrix.y) - len(rows), 1)  # fmt: skip
        noise = max(float(within), np.finfo(np.float64).tiny) / rows
    else:
        rates = (sums + 0.5) / (rows + 1)
        means = np.log(rates / (1 - rates))
        noise = 1 / (rows * rates * (1 - rates))
    variance = max(float(means.var() - noise.mean()), _LEAST_VARIANCE * float(noise.mean() * rows.mean()))
    enough = _WELL_KNOWN if len(rows) >= _FEW_LEVELS else _WELL_KNOWN_OF_FEW
    return bool(np.median(variance / noise) > enough)


def _outcome_sums(matrix: MixedMatrix) -> Array:
    if matrix.family != "ordinal":
        return matrix.y
    share = np.bincount(matrix.y.astype(np.int64), matrix.counts, len(matrix.levels)).cumsum()
    cut = int(np.abs(share / share[-1] - 0.5).argmin())  # the split of the levels that is nearest to half
    return matrix.counts * (matrix.y > min(cut, len(matrix.levels) - 2))


def _deviations(pm: Any, part: RandomPart, sd: Any, centred: bool) -> Any:
    name, dims = f"deviations_{part.name}", dimension(part)
    if centred:
        return pm.ZeroSumNormal(name, sd, dims=dims)
    return pm.Deterministic(name, sd * pm.ZeroSumNormal(f"unit_{part.name}", 1.0, dims=dims), dims=dims)


def _slopes(pm: Any, pt: Any, part: RandomPart, scale: float, eta: float) -> Any:
    """Effects of several columns, or of one that is no constant; not centred."""
    levels, effect = dimension(part), effect_dimension(part)
    if part.width == 1:
        sd = pm.HalfNormal(f"sd_{part.name}", scale)
        unit = pm.Normal(f"unit_{part.name}", 0.0, 1.0, dims=levels)
        return pm.Deterministic(f"effects_{part.name}", sd * unit, dims=levels)[:, None]
    factor, _, _ = pm.LKJCholeskyCov(
        f"covariance_{part.name}", n=part.width, eta=eta, sd_dist=pm.HalfNormal.dist(scale), compute_corr=True
    )
    unit = pm.Normal(f"unit_{part.name}", 0.0, 1.0, dims=(levels, effect))
    return pm.Deterministic(f"effects_{part.name}", pt.dot(unit, factor.T), dims=(levels, effect))


def _ordinal(
    pm: Any, pt: Any, matrix: MixedMatrix, scales: PriorScales, shared_variance: Any, predictor: Any
) -> None:
    k = len(matrix.levels) - 1
    tau2 = scales.intercept**2
    pm.modelcontext(None).add_coord("threshold", list(threshold_names(matrix)))
    location = pm.Normal(
        "location",
        0.0,
        scales.intercept,
        dims="threshold",
        transform=pm.distributions.transforms.ordered,
        initval=np.linspace(-_THRESHOLD_SPREAD, _THRESHOLD_SPREAD, k) if k > 1 else np.zeros(1),
    )
    # From independent normals to the covariance tau^2 I + s^2 11': its determinant and inverse are known, and
    # no factorisation has to be compiled.
    pm.Potential(
        "shared_location",
        -0.5 * pt.log1p(k * shared_variance / tau2)
        + 0.5 * shared_variance / tau2 * location.sum() ** 2 / (tau2 + k * shared_variance),
    )

    def log_probability(value: Any, eta: Any, thresholds: Any, counts: Any) -> Any:
        far = np.array([_FAR_AWAY])
        edges = pt.concatenate([-far, thresholds[0] if thresholds.ndim > 1 else thresholds, far])
        lower, upper = edges[value] - eta, edges[value + 1] - eta
        gap = pt.log1p(-pt.exp(lower - upper))
        return counts * (gap - pt.softplus(-upper) - pt.softplus(lower))

    def draw(eta: Any, thresholds: Any, counts: Any, rng: Any = None, size: Any = None) -> Any:
        shape = np.broadcast_shapes(np.shape(eta), np.shape(counts)) if size is None else size
        return ((eta + rng.logistic(size=shape))[..., None] > thresholds).sum(axis=-1)

    pm.CustomDist(
        "y",
        predictor,
        location,
        matrix.counts,
        logp=log_probability,
        random=draw,
        signature="(),(k),()->()",
        dtype="int64",
        observed=matrix.y.astype(np.int64),
        dims="cell",
    )
