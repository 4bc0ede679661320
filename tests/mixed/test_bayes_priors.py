"""Priors: their densities, draws from them, and the sweep of the intercept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import Family, MixedMatrix
from triagestats.models.mixed.prior_scales import log_prior, prior_draws, prior_scales
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.pymc_model import redrawn

Maker = Callable[..., MixedMatrix]
Drawer = Callable[..., Draws]

FOUR_ERRORS = 4.0  # of a Monte Carlo mean


def test_priors_refuse_what_is_no_scale() -> None:
    with pytest.raises(ArgumentError, match="`intercept` of the priors must be positive and finite; got 0"):
        Priors(intercept=0.0)
    with pytest.raises(ArgumentTypeError, match="`sd\\['model'\\]` of the priors must be a number; got '1'"):
        Priors(sd={"model": "1"})  # type: ignore[dict-item]


def test_priors_by_name(crossed: Maker) -> None:
    matrix = crossed()
    scales = prior_scales(matrix, Priors(coefficient={"condition[T.b]": 0.5}, sd={"model": 0.7}))
    assert scales.coefficients.tolist() == [0.5]
    assert scales.sds == (1.5, 0.7)
    with pytest.raises(ArgumentError, match="`sd` of the priors names 'judge', which is no random part"):
        prior_scales(matrix, Priors(sd={"judge": 1.0}))
    with pytest.raises(ArgumentError, match=r"`coefficient` of the priors names '\(Intercept\)'"):
        prior_scales(matrix, Priors(coefficient={"(Intercept)": 1.0}))


def test_the_centre_is_weighted_by_rows(crossed: Maker) -> None:
    matrix = crossed()
    counts = np.where(matrix.x[:, 1] == 1, 3.0, 1.0)
    scales = prior_scales(replace(matrix, counts=counts), Priors())
    assert scales.centre.tolist() == pytest.approx([0.75])


def test_priors_of_a_gaussian_outcome_follow_its_spread(crossed: Maker) -> None:
    matrix = crossed("gaussian")
    one, ten = (prior_scales(replace(matrix, y=unit * matrix.y + 5), Priors()) for unit in (1.0, 10.0))
    assert ten.intercept == pytest.approx(10 * one.intercept)
    assert ten.sds[0] == pytest.approx(10 * one.sds[0])
    assert one.location == pytest.approx(float(matrix.y.mean()) + 5)


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
def test_prior_draws_follow_the_log_prior(crossed: Maker, family: Family) -> None:
    """Draws from the prior have the moments that the densities have."""
    matrix = crossed(family, slope=True)
    scales = prior_scales(matrix, Priors())
    draws = prior_draws(matrix, scales, draws=20_000, seed=1)
    b = draws.coefficients[0][:, scales.others] / scales.coefficients
    assert abs(np.square(b).mean() - 1) < FOUR_ERRORS * np.sqrt(2 / b.size)
    if family == "ordinal":
        thresholds = draws.thresholds[0] - (draws.coefficients[0] @ scales.centre)[:, None]
        assert (np.diff(thresholds, axis=1) > 0).all()
        squares = np.square(thresholds / scales.intercept).mean(axis=1)
    else:
        at_centre = draws.coefficients[0][:, 0] + draws.coefficients[0][:, 1] * scales.centre[0]
        squares = np.square((at_centre - scales.location) / scales.intercept)
    assert abs(squares.mean() - 1) < FOUR_ERRORS * squares.std() / np.sqrt(len(squares))
    factor = draws.factors[0][0]
    sds = np.sqrt(np.square(factor).sum(axis=2))
    correlation = factor[:, 1, 0] / sds[:, 1]
    # LKJ(2) of two dimensions: (r + 1) / 2 is beta(2, 2).
    assert stats.kstest((correlation + 1) / 2, stats.beta(2, 2).cdf).pvalue > 0.001
    assert stats.kstest(sds[:, 0], stats.halfnorm(scale=scales.sds[0]).cdf).pvalue > 0.001


def test_lkj_of_three_dimensions(crossed: Maker) -> None:
    """Every correlation of LKJ(eta) in d dimensions is, on (-1, 1), beta(eta + d/2 - 1, same)."""
    from triagestats.models.mixed.prior_scales import _lkj_factors

    factors = _lkj_factors(3, 1.5, 20_000, np.random.default_rng(3))
    matrices = factors @ factors.transpose(0, 2, 1)
    np.testing.assert_allclose(np.diagonal(matrices, axis1=1, axis2=2), 1.0)
    for a, b in ((1, 0), (2, 0), (2, 1)):
        assert stats.kstest((matrices[:, a, b] + 1) / 2, stats.beta(2.0, 2.0).cdf).pvalue > 0.001


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
def test_log_prior_is_that_of_scipy(crossed: Maker, independent: Drawer, family: Family) -> None:
    matrix = crossed(family)
    scales = prior_scales(matrix, Priors())
    draws = independent(matrix, chains=1, draws=40)
    found = log_prior(matrix, scales, draws)
    b = draws.coefficients[0][:, scales.others]
    shift = b @ scales.centre
    expected = {
        "coefficients": stats.norm.logpdf(b, 0, scales.coefficients).sum(axis=1),
        "sds": sum(
            stats.halfnorm.logpdf(factor[0, :, 0, 0], scale=scale)
            for factor, scale in zip(draws.factors, scales.sds, strict=True)
        ),
    }
    if family == "ordinal":
        expected["location"] = stats.norm.logpdf(
            draws.thresholds[0] - shift[:, None], 0, scales.intercept
        ).sum(axis=1)
    else:
        expected["location"] = stats.norm.logpdf(
            draws.coefficients[0][:, 0] + shift, scales.location, scales.intercept
        )
    if draws.sigma is not None:
        expected["residual"] = stats.halfnorm.logpdf(draws.sigma[0], scale=scales.residual)
    assert set(found) == set(expected)
    for name, values in expected.items():
        differences = found[name][0] - values  # equal up to a constant
        np.testing.assert_allclose(differences, differences[0], atol=1e-10)


def test_log_prior_of_correlations_is_lkj(crossed: Maker, independent: Drawer) -> None:
    """With two effects the density of (sd1, sd2, r) is half-normal, half-normal, (1 - r^2)^(eta - 1)."""
    matrix = crossed(slope=True)
    scales = prior_scales(matrix, Priors(correlation=3.0))
    draws = independent(matrix, chains=1, draws=40)
    factor = draws.factors[0][0]
    sds = np.sqrt(np.square(factor).sum(axis=2))
    r = factor[:, 1, 0] / sds[:, 1]
    expected = (
        stats.halfnorm.logpdf(sds, scale=1.5).sum(axis=1)
        + 2 * np.log(1 - r**2)
        + stats.halfnorm.logpdf(draws.factors[1][0, :, 0, 0], scale=1.5)
    )
    differences = log_prior(matrix, scales, draws)["sds"][0] - expected
    np.testing.assert_allclose(differences, differences[0], atol=1e-9)


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
def test_the_swept_intercept_is_split_exactly(crossed: Maker, family: Family) -> None:
    """Drawn from the prior, summed and split again, intercept and means keep their joint distribution."""
    matrix = crossed(family)
    scales = prior_scales(matrix, Priors())
    rng = np.random.default_rng(11)
    n = 60_000
    sds = {0: np.full((1, n), 1.3), 1: np.full((1, n), 2.0)}
    means = {
        place: sds[place] / np.sqrt(matrix.random[place].n_levels) * rng.standard_normal((1, n))
        for place in sds
    }
    total = sum(means.values())
    if family == "ordinal":
        before = np.sort(scales.intercept * rng.standard_normal((1, n, 2)), axis=2)
        location = before - np.asarray(total)[:, :, None]
    else:
        before = scales.intercept * rng.standard_normal((1, n))
        location = before + total
    found = redrawn(matrix, scales, location, sds, np.random.default_rng(12))
    again = sum(found.means.values())
    # The sum is kept to rounding; marginals and products have their moments within Monte Carlo error.
    if family == "ordinal":
        np.testing.assert_allclose(found.location - np.asarray(again)[:, :, None], location, atol=1e-10)
    else:
        np.testing.assert_allclose(found.location + again, location, atol=1e-10)
    columns_before = [*(means[place].ravel() for place in sds), *before.reshape(n, -1).T]
    columns_after = [*(found.means[place].ravel() for place in sds), *found.location.reshape(n, -1).T]
    for a in range(len(columns_before)):
        for b in range(a + 1):
            one = columns_before[a] * columns_before[b]
            other = columns_after[a] * columns_after[b]
            error = np.sqrt((one.var() + other.var()) / n)
            assert abs(one.mean() - other.mean()) < FOUR_ERRORS * error, (a, b)
