"""R-hat, effective sample sizes, Pareto-smoothed weights and power-scaling, against ArviZ."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from triagestats.errors import ArgumentError
from triagestats.models.mixed.convergence import bfmi, convergence
from triagestats.models.mixed.diagnostics import diagnostics
from triagestats.models.mixed.prior_sensitivity import power_scaling
from triagestats.models.mixed.psis import smoothed_weights

Array = NDArray[np.float64]

ROUNDING = 1e-10  # the same formula, in another order of summation


@pytest.fixture(scope="module")
def arviz() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells once a day of its coming refactoring
        return pytest.importorskip("arviz")


def chains(n_chains: int, n_draws: int, k: int = 12, seed: int = 0) -> Array:
    """Autoregressive chains, from antithetic to slow, with ties in one and a shifted chain in another."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_chains, n_draws, k))
    rho = np.linspace(-0.9, 0.99, k)
    for t in range(1, n_draws):
        x[:, t] += rho * x[:, t - 1]
    x[:, :, k // 4] = np.round(x[:, :, k // 4])
    x[0, :, k // 3] += 1
    return x


@pytest.mark.parametrize("n_chains", [2, 4])
@pytest.mark.parametrize("n_draws", [8, 100, 500])
def test_convergence_is_that_of_arviz(arviz: ModuleType, n_chains: int, n_draws: int) -> None:
    x = chains(n_chains, n_draws)
    found = convergence(x)
    for j in range(x.shape[2]):
        assert found.r_hat[j] == pytest.approx(float(arviz.rhat(x[:, :, j])), rel=ROUNDING)
        assert found.ess_bulk[j] == pytest.approx(float(arviz.ess(x[:, :, j])), rel=ROUNDING)
        assert found.ess_tail[j] == pytest.approx(float(arviz.ess(x[:, :, j], method="tail")), rel=ROUNDING)


def test_convergence_of_an_odd_number_of_draws_leaves_out_the_middle_one() -> None:
    x = chains(2, 101)
    halves = np.delete(x, 50, axis=1)
    np.testing.assert_allclose(convergence(x).ess_tail, convergence(halves).ess_tail, rtol=ROUNDING)
    np.testing.assert_allclose(convergence(x).r_hat, convergence(halves).r_hat, rtol=ROUNDING)


def test_chunks_change_nothing() -> None:
    x = chains(4, 200, k=1000)
    some = convergence(x[:, :, 900:910])
    np.testing.assert_array_equal(convergence(x).r_hat[900:910], some.r_hat)


def test_constant_and_infinite_quantities_have_no_convergence() -> None:
    x = chains(2, 50, k=3)
    x[:, :, 0] = 2.0
    x[0, 0, 1] = np.inf
    found = convergence(x)
    assert np.isnan(found.r_hat).tolist() == [True, True, False]
    assert np.isnan(found.ess_bulk).tolist() == [True, True, False]


def test_one_chain_has_no_r_hat() -> None:
    found = convergence(chains(1, 100, k=2))
    assert np.isnan(found.r_hat).all()
    assert (found.ess_bulk > 0).all()


def test_bfmi_by_hand() -> None:
    # changes 1, -2, 3: mean square 14 / 3; energies 0, 1, -1, 2: variance 5 / 3
    assert bfmi(np.array([[0.0, 1.0, -1.0, 2.0]])).tolist() == pytest.approx([14 / 5])


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_smoothed_weights_are_those_of_arviz(arviz: ModuleType, scale: float) -> None:
    ratios = scale * np.random.default_rng(5).standard_normal((6, 1000))
    expected, shapes = arviz.psislw(ratios.copy(), reff=0.8)
    found, own = smoothed_weights(ratios, efficiency=0.8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(own, shapes, rtol=1e-8)


def test_weights_that_are_all_equal_stay_so() -> None:
    weights, shapes = smoothed_weights(np.zeros((1, 200)))
    np.testing.assert_allclose(weights, -np.log(200))
    assert shapes.tolist() == [float("inf")]


def test_power_scaling_is_that_of_arviz(arviz: ModuleType) -> None:
    rng = np.random.default_rng(6)
    values = rng.standard_normal((4, 500, 3)) * [1, 0.5, 2] + [0, 4, -3]
    density = -0.5 * np.square(values[..., 0]) - 0.3 * values[..., 1]
    data = arviz.from_dict(posterior={"v": values}, log_likelihood={"all": density[..., None]})
    expected = arviz.psens(data, component="likelihood").v.to_numpy()
    found = power_scaling(values.reshape(-1, 3).T, density.ravel())
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_power_scaling_of_a_normal_mean() -> None:
    """A tenth of the log density has a tenth of the sensitivity."""
    rng = np.random.default_rng(7)
    theta = rng.standard_normal(200_000)
    strong = power_scaling(theta[None], -0.5 * np.square(theta))
    weak = power_scaling(theta[None], -0.05 * np.square(theta))
    # D is of first order in the log power.
    assert strong[0] / weak[0] == pytest.approx(10, rel=0.05)


def test_diagnostics_say_what_failed() -> None:
    rng = np.random.default_rng(8)
    good = rng.standard_normal((4, 1000))
    apart = good + np.arange(4)[:, None]
    slow = np.cumsum(rng.standard_normal((4, 1000)), axis=1)
    assert diagnostics({"good": good}).ok
    found = diagnostics({"good": good, "apart": apart, "slow": slow, "still": np.ones((4, 1000))})
    assert not found.ok
    text = " | ".join(found.failed)
    assert "1 quantity constant or not finite, such as still" in text
    assert "R-hat is" in text
    assert "1.01 or more for 2 of 4 quantities: the chains do not agree" in text
    assert "bulk effective sample size" in text
    assert found.frame()["name"][0] in ("apart", "slow")
    assert found.frame()["r_hat"].null_count() == 1


def test_diagnostics_of_one_chain_fail() -> None:
    found = diagnostics({"v": np.random.default_rng(9).standard_normal((1, 4000))})
    assert found.failed == ("one chain cannot be compared with another: run two or more, better four",)


def test_diagnostics_refuse_too_few_draws() -> None:
    with pytest.raises(ArgumentError, match="`draws` must be at least 8 a chain; got 7"):
        diagnostics({"v": np.zeros((2, 7))})
