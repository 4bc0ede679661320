"""Averages, likelihoods and predictions of a Bayesian mixed model against direct computation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from triagestats.errors import ArgumentError
from triagestats.models.mixed.checks import predictive_check
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.held_out import level_log_likelihood
from triagestats.models.mixed.integrals import logistic_normal
from triagestats.models.mixed.likelihood import log_density, new_outcomes, predictor
from triagestats.models.mixed.loo import leave_one_out
from triagestats.models.mixed.matrix import Family, MixedMatrix, RandomPart
from triagestats.models.mixed.posterior_averages import (
    level_averages,
    new_level_averages,
    profile_averages,
    variance_shares,
)
from triagestats.models.mixed.profiles import Profile

Array = NDArray[np.float64]
Maker = Callable[..., MixedMatrix]
Drawer = Callable[..., Draws]

FAMILIES: tuple[Family, ...] = ("binomial", "ordinal", "gaussian")
QUADRATURE = 1e-9  # both integrals converge far below it
ADAPTIVE = 2e-6  # eleven adaptive nodes
NESTED = 5e-4  # 21 nodes around draws that are as wide as the prior, which those of a posterior are not
ROUNDING = 1e-11


def everything(matrix: MixedMatrix) -> Profile:
    weights = matrix.counts / matrix.counts.sum()
    return Profile(None, "", matrix.x, tuple(part.z for part in matrix.random), weights)


def row_densities(matrix: MixedMatrix, cell: int, eta: Array, thresholds: Array, sigma: float) -> Array:
    """Log density of a cell by the textbook, the rows one by one, at linear predictors of any shape."""
    y, count = matrix.y[cell], matrix.counts[cell]
    if matrix.family == "binomial":
        p = special.expit(eta)
        return np.asarray(y * np.log(p) + (count - y) * np.log(1 - p))
    if matrix.family == "gaussian":
        return np.asarray(stats.norm.logpdf(y, eta, sigma))
    below = [np.zeros_like(eta), *(special.expit(t - eta) for t in thresholds), np.ones_like(eta)]
    return np.asarray(count * np.log(below[int(y) + 1] - below[int(y)]))


def at_draw(draws: Draws, s: int) -> tuple[Array, float]:
    """Thresholds and residual deviation of one draw of all chains in a row."""
    sigma = np.nan if draws.sigma is None else float(draws.sigma.ravel()[s])
    return draws.thresholds.reshape(draws.n_chains * draws.n_draws, -1)[s], sigma


@pytest.mark.parametrize("sd", [0.0, 0.3, 1.7, 6.0, 25.0])
def test_logistic_normal_is_the_integral(sd: float) -> None:
    means = np.array([-30.0, -2.5, 0.0, 0.7, 8.0])
    for mean, found in zip(means, logistic_normal(means, np.array(sd)), strict=True):
        expected, _ = integrate.quad(
            lambda w, m=mean: special.expit(m + sd * w) * stats.norm.pdf(w), -12, 12, limit=400,
            epsabs=1e-12, points=[-mean / sd] if sd and abs(mean / sd) < 12 else None,
        )  # fmt: skip
        assert found == pytest.approx(expected, abs=QUADRATURE)


def average(mean: Array, sd: Array, weights: Array) -> float:
    """Weighted mean of logistic-normal integrals, by another quadrature."""
    return sum(
        weight * integrate.quad(lambda w, m=m, d=d: special.expit(m + d * w) * stats.norm.pdf(w), -10, 10)[0]
        for weight, m, d in zip(weights, mean, sd, strict=True)
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("slope", [False, True])
def test_profile_averages_integrate_over_new_levels(
    crossed: Maker, independent: Drawer, family: Family, slope: bool
) -> None:
    matrix = crossed(family, slope=slope)
    draws = independent(matrix, chains=1, draws=2)
    weights = np.array([0.25, 0.75])
    profile = Profile(None, "", matrix.x[:2], tuple(part.z[:2] for part in matrix.random), weights)
    averages = profile_averages(matrix, draws, profile)[0]
    for s in range(2):
        mean = profile.x @ draws.coefficients[0, s]
        variance = sum(
            np.einsum("ij,jk,ik->i", z, factor[0, s] @ factor[0, s].T, z)
            for z, factor in zip(profile.z, draws.factors, strict=True)
        )
        if family == "gaussian":
            assert averages[s, 0] == pytest.approx(float(weights @ mean), rel=ROUNDING)
            continue

        sd = np.sqrt(np.asarray(variance))
        if family == "binomial":
            assert averages[s, 0] == pytest.approx(average(mean, sd, weights), abs=QUADRATURE)
        else:
            below = [average(t - mean, sd, weights) for t in draws.thresholds[0, s]]
            expected = np.diff([0.0, *below, 1.0])
            np.testing.assert_allclose(averages[s], expected, atol=QUADRATURE)


def test_gold_ranges_of_an_ordinal_outcome(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed("ordinal")
    draws = independent(matrix, chains=1, draws=3)
    n = len(matrix.y)
    under = np.tile([1.0, 0.0, 0.0], (n, 1))
    over = np.tile([0.0, 0.0, 1.0], (n, 1))
    averages = profile_averages(matrix, draws, replace(everything(matrix), under=under, over=over))
    np.testing.assert_allclose(averages[..., :3].sum(axis=2), 1.0, rtol=ROUNDING)
    np.testing.assert_allclose(averages[..., 3], averages[..., 0], rtol=ROUNDING)
    np.testing.assert_allclose(averages[..., 4], averages[..., 2], rtol=ROUNDING)


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
def test_new_levels_average_to_the_population(crossed: Maker, independent: Drawer, family: Family) -> None:
    """Averaged over very many new scenarios at the same parameters, the rate is the population's."""
    matrix = crossed(family)
    one = independent(matrix, chains=1, draws=1)
    n = 40_000
    many = replace(
        one,
        coefficients=np.repeat(one.coefficients, n, axis=1),
        thresholds=np.repeat(one.thresholds, n, axis=1),
        factors=tuple(np.repeat(factor, n, axis=1) for factor in one.factors),
    )
    profile = everything(matrix)
    profile = replace(
        profile, x=profile.x[:2], z=tuple(z[:2] for z in profile.z), weights=np.array([0.5, 0.5])
    )
    values = new_level_averages(matrix, many, profile, "scenario", np.random.default_rng(4))[0]
    expected = profile_averages(matrix, one, profile)[0, 0]
    error = values.std(axis=0) / np.sqrt(n)
    assert (np.abs(values.mean(axis=0) - expected) < 4 * error).all()  # four standard errors


def test_levels_that_were_seen_keep_their_effects(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed()
    draws = independent(matrix, chains=2, draws=5)
    shifted = replace(draws, coefficients=draws.coefficients.copy())
    shifted.coefficients[..., 0] += draws.effects[1][:, :, 2, 0]
    without = replace(shifted, factors=(draws.factors[0], 0 * draws.factors[1]))
    np.testing.assert_allclose(
        level_averages(matrix, draws, everything(matrix), "model", 2),
        profile_averages(matrix, without, everything(matrix)),
        atol=QUADRATURE,
    )


def test_variance_shares_by_hand(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed(slope=True)
    draws = independent(matrix, chains=1, draws=1)
    covariance = draws.factors[0][0, 0] @ draws.factors[0][0, 0].T
    # Half of the rows have the slope: the mean of z'Sz over z = (1, 0) and (1, 1).
    scenario = 0.5 * covariance[0, 0] + 0.5 * covariance.sum()
    model = float(draws.factors[1][0, 0, 0, 0] ** 2)
    total = scenario + model + np.pi**2 / 3
    shares = {name: float(values[0, 0]) for name, values in variance_shares(matrix, draws).items()}
    assert shares == pytest.approx(
        {"scenario": scenario / total, "model": model / total, "residual": np.pi**2 / 3 / total}, rel=ROUNDING
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_log_density_is_that_of_single_rows(crossed: Maker, independent: Drawer, family: Family) -> None:
    matrix = crossed(family)
    draws = independent(matrix, chains=2, draws=3)
    rows = slice(0, len(matrix.y))
    eta = predictor(matrix, draws, rows)
    found = log_density(matrix, draws, rows, eta)
    b = draws.coefficients.reshape(6, -1)
    for cell in range(len(matrix.y)):
        by_hand = b @ matrix.x[cell]
        for part, effects in zip(matrix.random, draws.effects, strict=True):
            by_hand = by_hand + effects.reshape(6, part.n_levels, -1)[:, part.codes[cell]] @ part.z[cell]
        np.testing.assert_allclose(eta[cell], by_hand, atol=ROUNDING)
        expected = [row_densities(matrix, cell, by_hand[s], *at_draw(draws, s)) for s in range(6)]
        np.testing.assert_allclose(found[cell], expected, rtol=1e-9, atol=1e-12)


def test_ordinal_densities_do_not_underflow(crossed: Maker, independent: Drawer) -> None:
    matrix = replace(crossed("ordinal"), y=np.full(36, 2.0))
    draws = independent(matrix, chains=1, draws=1)
    found = log_density(matrix, draws, slice(0, 1), np.array([[-800.0]]))
    assert found[0, 0] == pytest.approx(-800 - draws.thresholds[0, 0, 1], rel=ROUNDING)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("slope", [False, True])
def test_held_out_levels_integrate_their_effects(
    crossed: Maker, independent: Drawer, family: Family, slope: bool
) -> None:
    matrix = crossed(family, slope=slope)
    draws = independent(matrix, chains=1, draws=2)
    found = level_log_likelihood(matrix, draws, "scenario")
    b = draws.coefficients[0]
    scenario, model = matrix.random
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = np.array(list(product(nodes, repeat=scenario.width)))
    shares = np.prod(list(product(weights / weights.sum(), repeat=scenario.width)), axis=1)
    for s, level in product(range(2), (0, 4)):
        u = grid @ draws.factors[0][0, s].T
        density = np.zeros(len(grid))
        for cell in np.flatnonzero(scenario.codes == level):
            eta = matrix.x[cell] @ b[s] + draws.effects[1][0, s, model.codes[cell], 0]
            density += row_densities(matrix, cell, eta + u @ scenario.z[cell], *at_draw(draws, s))
        # With slopes there are 7 nodes along each effect.
        assert found[level, s] == pytest.approx(
            np.log(shares @ np.exp(density)), abs=1e-4 if slope else ADAPTIVE
        )


def test_held_out_levels_of_a_gaussian_outcome_are_multivariate_normal(
    crossed: Maker, independent: Drawer
) -> None:
    matrix = crossed("gaussian", slope=True)
    draws = independent(matrix, chains=1, draws=1)
    found = level_log_likelihood(matrix, draws, "scenario")
    scenario, model = matrix.random
    factor = draws.factors[0][0, 0]
    assert draws.sigma is not None
    for level in range(scenario.n_levels):
        cells = scenario.codes == level
        mean = matrix.x[cells] @ draws.coefficients[0, 0] + draws.effects[1][0, 0, model.codes[cells], 0]
        z = scenario.z[cells] @ factor
        covariance = z @ z.T + draws.sigma[0, 0] ** 2 * np.eye(int(cells.sum()))
        assert found[level, 0] == pytest.approx(
            float(stats.multivariate_normal.logpdf(matrix.y[cells], mean, covariance)), rel=1e-9
        )


def test_effects_without_spread_are_held_out_too(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed()
    draws = independent(matrix, chains=1, draws=2)
    still = replace(
        draws,
        factors=(0 * draws.factors[0], draws.factors[1]),
        effects=(0 * draws.effects[0], draws.effects[1]),
    )
    rows = slice(0, len(matrix.y))
    density = log_density(matrix, still, rows, predictor(matrix, still, rows))
    sums = np.zeros((6, 2))
    np.add.at(sums, matrix.random[0].codes, density)
    np.testing.assert_allclose(level_log_likelihood(matrix, still, "scenario"), sums, atol=1e-9)


def with_pairs(matrix: MixedMatrix) -> MixedMatrix:
    """The same model with an effect of each pair of scenario and model."""
    scenario, model = matrix.random
    codes = scenario.codes * model.n_levels + model.codes
    labels = tuple(f"{s}:{m}" for s in scenario.levels for m in model.levels)
    one = np.ones((len(codes), 1))
    pair = RandomPart("scenario:model", ("scenario", "model"), labels, codes, one, ("(Intercept)",))
    return replace(matrix, random=(scenario, model, pair))


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
def test_effects_within_a_level_are_held_out_with_it(
    crossed: Maker, independent: Drawer, family: Family
) -> None:
    matrix = with_pairs(crossed(family))
    draws = independent(matrix, chains=1, draws=60)
    found = level_log_likelihood(matrix, draws, "scenario")
    scenario, model, pair = matrix.random
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    for s, level in product((0, 7), (0, 4)):
        total = np.zeros(40)
        for leaf in np.unique(pair.codes[scenario.codes == level]):
            inside = np.zeros((40, 40))
            for cell in np.flatnonzero(pair.codes == leaf):
                eta = matrix.x[cell] @ draws.coefficients[0, s] + draws.effects[1][0, s, model.codes[cell], 0]
                u = draws.factors[0][0, s, 0, 0] * nodes[:, None] + draws.factors[2][0, s, 0, 0] * nodes
                inside += row_densities(matrix, cell, eta + u, *at_draw(draws, s))
            total += np.log(np.exp(inside) @ weights)
        assert found[level, s] == pytest.approx(np.log(weights @ np.exp(total)), abs=NESTED)


def test_gaussian_effects_within_a_level_are_multivariate_normal(crossed: Maker, independent: Drawer) -> None:
    matrix = with_pairs(crossed("gaussian"))
    draws = independent(matrix, chains=1, draws=60)
    assert draws.sigma is not None
    found = level_log_likelihood(matrix, draws, "scenario")
    scenario, model, pair = matrix.random
    for s, level in product((0, 7), (0, 4)):
        cells = scenario.codes == level
        mean = matrix.x[cells] @ draws.coefficients[0, s] + draws.effects[1][0, s, model.codes[cells], 0]
        same = pair.codes[cells][:, None] == pair.codes[cells]
        outer, inner = draws.factors[0][0, s, 0, 0], draws.factors[2][0, s, 0, 0]
        covariance = outer**2 + inner**2 * same + draws.sigma[0, s] ** 2 * np.eye(int(cells.sum()))
        expected = float(stats.multivariate_normal.logpdf(matrix.y[cells], mean, covariance))
        assert found[level, s] == pytest.approx(expected, abs=NESTED)


def test_nested_slopes_cannot_be_held_out(crossed: Maker, independent: Drawer) -> None:
    matrix = with_pairs(crossed(slope=True))
    with pytest.raises(ArgumentError, match=r"effects of \['scenario:model'\] are nested in it"):
        leave_one_out(matrix, independent(matrix), unit="scenario")


def test_leaving_cells_out_is_what_arviz_does(crossed: Maker, independent: Drawer) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells once a day of its coming refactoring
        arviz = pytest.importorskip("arviz")
    matrix = crossed()
    draws = independent(matrix)
    rows = slice(0, len(matrix.y))
    density = log_density(matrix, draws, rows, predictor(matrix, draws, rows))
    data = arviz.from_dict(
        posterior={"b": draws.coefficients},
        log_likelihood={"y": density.T.reshape(4, 250, -1)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # independent draws of the parameters weigh some cells much
        expected = arviz.loo(data, pointwise=True, reff=0.9)
    found = leave_one_out(matrix, draws, unit="cell", efficiency=0.9)
    assert found.elpd == pytest.approx(float(expected.elpd_loo), rel=1e-8)
    assert found.p_loo == pytest.approx(float(expected.p_loo), rel=1e-6)
    np.testing.assert_allclose(found.pointwise, expected.loo_i.to_numpy(), rtol=1e-8)


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
def test_leaving_rows_out_does_not_depend_on_collapsing(
    crossed: Maker, independent: Drawer, family: Family
) -> None:
    matrix = crossed(family)
    draws = independent(matrix)
    if family == "binomial":
        cells = np.repeat(np.arange(len(matrix.y)), 3)
        y = np.concatenate([[1.0] * int(k) + [0.0] * (3 - int(k)) for k in matrix.y])
        single = replace(
            matrix,
            y=y,
            counts=np.ones(len(y)),
            x=matrix.x[cells],
            random=tuple(replace(part, codes=part.codes[cells], z=part.z[cells]) for part in matrix.random),
        )
        collapsed = matrix
    else:
        single = replace(
            matrix,
            y=np.r_[matrix.y, matrix.y],
            counts=np.ones(2 * len(matrix.y)),
            x=np.r_[matrix.x, matrix.x],
            random=tuple(replace(p, codes=np.r_[p.codes, p.codes], z=np.r_[p.z, p.z]) for p in matrix.random),
        )
        collapsed = replace(matrix, counts=2 * matrix.counts)
    one = leave_one_out(collapsed, draws, unit="row")
    other = leave_one_out(single, draws, unit="row")
    assert one.n_units == other.n_units == len(single.y)
    assert one.elpd == pytest.approx(other.elpd, rel=1e-10)
    assert one.std_error == pytest.approx(other.std_error, rel=1e-10)
    assert one.p_loo == pytest.approx(other.p_loo, rel=1e-8)


def test_leaving_out_refuses_an_unknown_unit(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed()
    with pytest.raises(ArgumentError, match=r"`unit` must be one of \['scenario', 'model', 'cell', 'row'\]"):
        leave_one_out(matrix, independent(matrix), unit="judge")


@pytest.mark.parametrize("family", FAMILIES)
def test_new_outcomes_have_the_mean_of_the_model(crossed: Maker, independent: Drawer, family: Family) -> None:
    matrix = crossed(family)
    draws = independent(matrix, chains=1, draws=1)
    n = 20_000
    many = replace(
        draws,
        coefficients=np.repeat(draws.coefficients, n, axis=1),
        thresholds=np.repeat(draws.thresholds, n, axis=1),
        sigma=None if draws.sigma is None else np.repeat(draws.sigma, n, axis=1),
    )
    eta = np.full((1, n), 0.3)
    values = new_outcomes(matrix, many, slice(0, 1), eta, np.random.default_rng(2))
    if family == "binomial":
        expected = 3 * special.expit(0.3)
    elif family == "gaussian":
        expected = 0.3
    else:
        expected = float((1 - special.expit(draws.thresholds[0, 0] - 0.3)).sum())
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(n)  # four standard errors


@pytest.mark.parametrize("family", FAMILIES)
def test_predictive_check_reads_the_data(crossed: Maker, independent: Drawer, family: Family) -> None:
    matrix = crossed(family)
    found = predictive_check(matrix, independent(matrix, draws=50), seed=1)
    mean = float((matrix.y / matrix.counts).mean()) if family == "binomial" else float(matrix.y.mean())
    observed = dict(zip(found.names, found.observed, strict=True))
    name = "rate" if family == "binomial" else "mean"
    assert observed[name] == pytest.approx(mean + (family == "ordinal"), rel=ROUNDING)
    scenario = matrix.random[0].codes
    means = np.array(
        [matrix.y[scenario == level].sum() / matrix.counts[scenario == level].sum() for level in range(6)]
    ) + (family == "ordinal")
    assert observed[f"sd of the {name}s by scenario"] == pytest.approx(float(means.std()), rel=ROUNDING)
    assert found.replicated.shape == (200, len(found.names))
    assert ((found.p_values >= 0) & (found.p_values <= 1)).all()
    assert found.tidy().height == len(found.names)


def test_predictive_check_finds_a_wrong_rate(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed()
    draws = independent(matrix, draws=100)
    wrong = replace(draws, coefficients=draws.coefficients + np.array([6.0, 0.0]))
    found = predictive_check(matrix, wrong, levels="new")
    assert found.p_values[found.names.index("rate")] > 0.99
    assert found.glance()["n_doubtful"][0] > 0
