"""Sampling through PyMC: the model's density, and its draws against numerical integration."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from triagestats.models.mixed.convergence import convergence
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.extras import bayes_library
from triagestats.models.mixed.likelihood import log_density, predictor
from triagestats.models.mixed.matrix import Family, MixedMatrix, RandomPart
from triagestats.models.mixed.prior_scales import prior_scales
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.pymc_model import pymc_model
from triagestats.models.mixed.pymc_sampler import PymcSampler, sample_pymc

Array = NDArray[np.float64]
Maker = Callable[..., MixedMatrix]

FOUR_ERRORS = 4.5  # Monte Carlo errors of a posterior mean, over a few dozen comparisons

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet_pymc() -> None:
    """Import PyMC where it is installed: it warns of compilers and of ArviZ as it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pymc")


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
def test_the_density_of_the_model_is_the_one_documented(crossed: Maker, family: Family) -> None:
    """Differences of the log density between points, by hand from the definition of the swept model."""
    matrix = crossed(family)
    scales = prior_scales(matrix, Priors())
    model = pymc_model(matrix)
    pytensor = bayes_library("pytensor")
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        density = model.compile_logp(vars=[*model.basic_RVs, *model.potentials], jacobian=False)
    rng = np.random.default_rng(5)
    differences = []
    k = max(len(matrix.levels) - 1, 1)
    for _ in range(4):
        sds = np.abs(rng.standard_normal(2)) + 0.3
        b = rng.standard_normal(1)
        location = np.sort(rng.standard_normal(k))
        sigma = 1.3
        deviations = [v - v.mean() for v in (rng.standard_normal(6), rng.standard_normal(3))]
        point: dict[str, Array] = {"coefficients": b}
        expected = float(stats.norm.logpdf(b, 0, scales.coefficients).sum())
        shared = sum(sd**2 / part.n_levels for sd, part in zip(sds, matrix.random, strict=True))
        covariance = scales.intercept**2 * np.eye(k) + shared * np.ones((k, k))
        expected += float(stats.multivariate_normal.logpdf(location, np.full(k, scales.location), covariance))
        for part, sd, deviation, scale in zip(matrix.random, sds, deviations, scales.sds, strict=True):
            expected += float(stats.halfnorm.logpdf(sd, scale=scale))
            names = {v.name for v in model.value_vars}
            unit = next((n for n in names if n.startswith(f"unit_{part.name}")), None)
            spread = sd if unit is None else 1.0
            # On the hyperplane of sum zero: n - 1 dimensions.
            expected += -(part.n_levels - 1) * np.log(spread) - 0.5 * float(
                np.square(deviation / spread).sum()
            )
            point |= _on_value_scale(model, f"sd_{part.name}", np.array(sd))
            name = f"deviations_{part.name}" if unit is None else f"unit_{part.name}"
            point |= _on_value_scale(model, name, deviation)
        point |= _on_value_scale(model, "location", location if family == "ordinal" else location[0])
        if family == "gaussian":
            point |= _on_value_scale(model, "sigma", np.array(sigma))
            expected += float(stats.halfnorm.logpdf(sigma, scale=scales.residual))
        eta = np.full(len(matrix.y), 0.0 if family == "ordinal" else location[0])
        eta += (matrix.x[:, scales.others] - scales.centre) @ b
        for place, part in enumerate(matrix.random):
            unit_scaled = f"unit_{part.name}" in {rv.name for rv in model.free_RVs}
            eta += deviations[place][part.codes] * (sds[place] if unit_scaled else 1.0)
        one = Draws(
            np.zeros((1, 1, matrix.x.shape[1])),
            location.reshape(1, 1, -1) if family == "ordinal" else np.zeros((1, 1, 0)),
            (),
            np.full((1, 1), sigma),
            (),
            {},
            "",
            0.0,
            0,
        )
        bare = replace(matrix, random=())
        expected += float(log_density(bare, one, slice(0, len(eta)), eta[:, None]).sum())
        differences.append(float(density(point)) - expected)
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)


def _on_value_scale(model: object, name: str, value: Array) -> dict[str, Array]:
    """A value of a variable under the name, and on the scale, that the compiled density takes."""
    rv = model[name]  # type: ignore[index]
    transform = model.rvs_to_transforms[rv]  # type: ignore[attr-defined]
    variable = model.rvs_to_values[rv]  # type: ignore[attr-defined]
    if transform is None:
        return {variable.name: value}
    tensor = bayes_library("pytensor.tensor").as_tensor(value)
    return {variable.name: transform.forward(tensor, *rv.owner.inputs).eval()}


def one_way(family: Family) -> MixedMatrix:
    """Four scenarios, one intercept: small enough for a grid."""
    codes = np.array([0, 0, 1, 1, 2, 2, 3, 3] if family == "ordinal" else [0, 1, 2, 3], dtype=np.int64)
    n = len(codes)
    ones = np.ones((n, 1))
    levels = ("A", "B", "C") if family == "ordinal" else ()
    y = np.array([0, 1, 2, 1, 2, 2, 0, 1] if family == "ordinal" else [1.0, 5.0, 6.0, 3.0])
    counts = np.array([3, 1, 2, 2, 3, 2, 1, 2.0]) if family == "ordinal" else np.full(4, 8.0)
    part = RandomPart("scenario", ("scenario",), ("a", "b", "c", "d"), codes, ones, ("(Intercept)",))
    x = np.zeros((n, 0)) if family == "ordinal" else ones
    terms = () if family == "ordinal" else ("(Intercept)",)
    return MixedMatrix(family, y.astype(float), counts, x, terms, (part,), levels, int(counts.sum()))


def integrated(matrix: MixedMatrix) -> dict[str, tuple[float, float]]:
    """Posterior mean and sd of the parameters, and the mean of the first effect, on a grid."""
    ordinal = matrix.family == "ordinal"
    sds = np.linspace(0.01, 6, 120)
    grid = np.linspace(-7, 7, 57)
    axes = [grid, grid, sds] if ordinal else [np.linspace(-8, 8, 161), sds]
    mesh = np.meshgrid(*axes, indexing="ij")
    flat = [a.ravel() for a in mesh]
    keep = flat[0] < flat[1] if ordinal else np.ones(flat[0].size, dtype=bool)
    points = np.column_stack(flat)[keep]
    log_posterior = -0.5 * np.square(points[:, :-1] / 2.5).sum(axis=1) - 0.5 * np.square(points[:, -1] / 1.5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(25)
    weights = weights / weights.sum()
    part = matrix.random[0]
    first = np.zeros(len(points))
    for level in range(4):
        inside = np.zeros((len(points), 25))
        for cell in np.flatnonzero(part.codes == level):
            u = points[:, -1:] * nodes
            y, count = matrix.y[cell], matrix.counts[cell]
            if ordinal:
                below = [
                    np.zeros_like(u),
                    *(special.expit(points[:, j : j + 1] - u) for j in range(2)),
                    np.ones_like(u),
                ]
                inside += count * np.log(np.maximum(below[int(y) + 1] - below[int(y)], 1e-300))
            else:
                p = special.expit(points[:, :1] + u)
                inside += y * np.log(np.maximum(p, 1e-300)) + (count - y) * np.log(np.maximum(1 - p, 1e-300))
        likelihood = np.exp(inside) @ weights
        if level == 0:
            first = (np.exp(inside) * points[:, -1:] * nodes) @ weights / likelihood
        log_posterior += np.log(likelihood)
    mass = np.exp(log_posterior - log_posterior.max())
    mass /= mass.sum()

    def moments(values: Array) -> tuple[float, float]:
        mean = float(mass @ values)
        return mean, float(np.sqrt(mass @ np.square(values - mean)))

    named = {f"location{j}": moments(points[:, j]) for j in range(points.shape[1] - 1)}
    return {**named, "sd": moments(points[:, -1]), "effect": (float(mass @ first), np.nan)}


@pytest.mark.parametrize(
    ("family", "sampler"), [("binomial", "pymc"), ("binomial", "nutpie"), ("ordinal", "nutpie")]
)
def test_draws_have_the_moments_of_the_posterior(family: Family, sampler: PymcSampler) -> None:
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    matrix = one_way(family)
    found = sample_pymc(matrix, sampler=sampler, seed=4, draws=2500, target_accept=0.95, cores=1).draws
    expected = integrated(matrix)
    location = found.thresholds if family == "ordinal" else found.coefficients
    values = {f"location{j}": location[:, :, j] for j in range(location.shape[2])}
    values |= {"sd": found.factors[0][:, :, 0, 0], "effect": found.effects[0][:, :, 0, 0]}
    for name, (mean, sd) in expected.items():
        draws = values[name]
        error = draws.std() / np.sqrt(convergence(draws).ess_bulk[0])
        assert abs(draws.mean() - mean) < FOUR_ERRORS * error, name
        if np.isfinite(sd):
            square = np.square(draws - mean)
            error = square.std() / np.sqrt(convergence(square).ess_bulk[0])
            assert abs(square.mean() - sd**2) < FOUR_ERRORS * error, name


def test_the_same_seed_gives_the_same_draws(crossed: Maker) -> None:
    matrix = crossed("gaussian", slope=True)
    one, other = (sample_pymc(matrix, seed=9, draws=60, tune=60, chains=2, cores=1).draws for _ in range(2))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    np.testing.assert_array_equal(one.effects[1], other.effects[1])
    assert one.factors[0].shape == (2, 60, 2, 2)
    assert one.sigma is not None
    rows = slice(0, len(matrix.y))
    eta = predictor(matrix, one, rows)
    assert np.isfinite(log_density(matrix, one, rows, eta)).all()
