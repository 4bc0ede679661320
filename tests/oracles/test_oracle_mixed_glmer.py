"""`ts.mixed` against glmer, emmeans, glm and clmm, from the reference data: what a user reads off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts

STEP_OF_GLM = 2e-5
"""glm stops when the deviance changes by less than 1e-8 of itself; its errors are those before that step."""

Fixture = dict[str, Any]
Load = Callable[[str], tuple[Fixture, pl.DataFrame]]


@pytest.fixture(scope="module")
def load(shared: Callable[[str], Path]) -> Load:
    found = json.loads(shared("oracles/mixed.json").read_text())["fixtures"]
    fixtures = {fixture["name"]: fixture for fixture in found}

    def named(name: str) -> tuple[Fixture, pl.DataFrame]:
        fixture = fixtures[name]
        data = json.loads(shared(f"oracles/{fixture['input']['data']}").read_text())
        return fixture, pl.DataFrame(data).rename({"rating": "r"}, strict=False)

    return named


def close(fixture: Fixture, value: Any) -> Any:
    return pytest.approx(value, rel=fixture["tolerance"]["rtol"], abs=fixture["tolerance"]["atol"])


def row(frame: pl.DataFrame, **where: Any) -> dict[str, Any]:
    conditions = [pl.col(k).is_null() if v is None else pl.col(k) == v for k, v in where.items()]
    found = frame.filter(*conditions)
    assert found.height == 1, found
    return found.row(0, named=True)


def test_coefficients_deviations_and_likelihood(load: Load) -> None:
    fixture, data = load("glmer_crossed_laplace")
    fit = ts.mixed(fixture["options"]["formula"], data)
    golden = fixture["expected"]
    for term, expected in golden["fixed"].items():
        found = row(fit.tidy(), estimand="log odds", term=term)
        names = {"estimate": "estimate", "se": "std_error", "stat": "statistic", "p": "p_value"}
        assert {k: found[v] for k, v in names.items()} == close(fixture, expected)
    for name, variance in golden["variance"].items():
        assert row(fit.tidy(), estimand="standard deviation", term=name)["estimate"] ** 2 == close(
            fixture, variance
        )
    assert fit.loglik == close(fixture, golden["loglik"])
    assert fit.aic == close(fixture, golden["aic"])
    effects = fit.random_effects()
    for part in ("scenario", "model"):
        of_part = effects.filter(part=part)
        found_effects = dict(zip(of_part["level"], of_part["estimate"], strict=True))
        assert found_effects == close(fixture, golden[f"ranef_{part}"])
    smaller = ts.mixed("y ~ 1 + (1 | scenario) + (1 | model)", data)
    test = fit.likelihood_ratio(smaller)
    assert (test.statistic, test.p_value) == close(fixture, (golden["lrt_chi2"], golden["lrt_p"]))


def test_three_probabilities_are_three_numbers(load: Load) -> None:
    """Averaged over the population, over the predicted effects, and at effects of zero."""
    fixture, data = load("glmer_crossed_laplace")
    fit = ts.mixed(fixture["options"]["formula"], data)
    golden = fixture["expected"]["risk_difference"]
    places = {
        "population": "population_averaged",
        "estimated effects": "average_over_estimated_ranef",
        "effects at zero": "at_random_effects_zero",
    }
    found = {
        name: row(fit.averages(at), term="treat", contrast="1 - 0")["estimate"] for at, name in places.items()
    }
    assert found == close(fixture, golden)
    assert "population-averaged probability" in set(fit.tidy()["estimand"])
    assert set(fit.averages("effects at zero")["estimand"]) == {"probability at random effects of zero"}


def test_errors_at_zero_are_those_of_emmeans(load: Load) -> None:
    fixture, data = load("glmer_crossed_laplace")
    found = ts.mixed(fixture["options"]["formula"], data).averages("effects at zero")
    golden = fixture["expected"]["emmeans_u0"]
    zero, one = (row(found, term="treat", condition=level) for level in ("0", "1"))
    names = ("estimate", "std_error", "conf_low", "conf_high")
    expected = [golden[name] for name in ("prob_treat0", "se0", "lcl0", "ucl0")]
    assert [zero[name] for name in names] == close(fixture, expected)
    assert [one[name] for name in names[:2]] == close(fixture, [golden["prob_treat1"], golden["se1"]])


def test_without_random_effects_it_is_a_logit(load: Load) -> None:
    """Coefficients and errors of glm are those of its last step but one; the likelihood is to all digits."""
    fixture, data = load("glm_no_random")
    rate = [data.filter(treat=arm)["y"].mean() for arm in (0, 1)]
    exact = [np.log(rate[0] / (1 - rate[0])), np.diff([np.log(p / (1 - p)) for p in rate])[0]]
    fit = ts.mixed("y ~ treat", data)
    for term, expected in fixture["expected"]["fixed"].items():
        found = row(fit.tidy(), estimand="log odds", term=term)
        assert [found[k] for k in ("estimate", "std_error")] == pytest.approx(
            [expected["estimate"], expected["se"]], rel=STEP_OF_GLM
        )
    log_odds = fit.tidy().filter(estimand="log odds")["estimate"].to_list()
    assert log_odds == pytest.approx(exact, rel=1e-12)
    assert fit.loglik == close(fixture, fixture["expected"]["loglik"])


@pytest.mark.parametrize(("name", "nodes"), [("glmer_scenario_nAGQ1", 1), ("glmer_scenario_nAGQ15", 15)])
def test_nodes(load: Load, name: str, nodes: int) -> None:
    fixture, data = load(name)
    fit = ts.mixed(fixture["options"]["formula"], data, nodes=nodes)
    for term, expected in fixture["expected"]["fixed"].items():
        found = row(fit.tidy(), estimand="log odds", term=term)
        assert [found[k] for k in ("estimate", "std_error")] == close(
            fixture, [expected["estimate"], expected["se"]]
        )
    sd = row(fit.tidy(), estimand="standard deviation")["estimate"]
    assert sd**2 == close(fixture, fixture["expected"]["variance"]["scenario"])


@pytest.mark.parametrize("name", ["clmm_intercept_scenario", "clmm_crossed"])
def test_ordinal(load: Load, name: str) -> None:
    fixture, data = load(name)
    fit = ts.mixed(fixture["options"]["formula"], data, family="ordinal")
    golden = fixture["expected"]
    thresholds = fit.tidy().filter(estimand="threshold")
    assert dict(zip(thresholds["term"], thresholds["estimate"], strict=True)) == close(
        fixture, golden["thresholds"]
    )
    assert thresholds["std_error"].to_list() == close(fixture, golden["threshold_se"])
    for level in ("B", "C"):
        found = row(fit.tidy(), estimand="log cumulative odds", term=f"cond[T.{level}]")
        expected = golden["beta"][f"cond{level}"]
        names = {"estimate": "estimate", "se": "std_error", "z": "statistic", "p": "p_value"}
        assert {k: found[v] for k, v in names.items()} == close(fixture, expected)
    assert fit.loglik == close(fixture, golden["loglik"])
    sds = fit.tidy().filter(estimand="standard deviation")
    variances = dict(zip(sds["term"], (sds["estimate"] ** 2).to_list(), strict=True))
    assert variances == close(fixture, golden["variance"])


def test_ordinal_by_quadrature(load: Load) -> None:
    fixture, data = load("clmm_scenario_nAGQ10")
    fit = ts.mixed(fixture["options"]["formula"], data, family="ordinal", nodes=10)
    golden = fixture["expected"]
    found = {
        level: row(fit.tidy(), term=f"cond[T.{level}]", estimand="log cumulative odds")["estimate"]
        for level in ("B", "C")
    }
    assert found == close(fixture, {level: golden["beta"][f"cond{level}"] for level in ("B", "C")})
    assert fit.loglik == close(fixture, golden["loglik"])
    sd = row(fit.tidy(), estimand="standard deviation")["estimate"]
    assert sd**2 == close(fixture, golden["variance_scenario"])


def test_probabilities_of_the_levels_add_up(load: Load) -> None:
    _, data = load("clmm_crossed")
    fit = ts.mixed("r ~ cond + (1 | scenario)", data, family="ordinal")
    found = fit.tidy().filter(
        pl.col("estimand").str.starts_with("population-averaged probability"), term="cond", condition="B"
    )
    assert found.height == 5
    assert found["estimate"].sum() == pytest.approx(1, abs=1e-12)


def test_gaussian_is_lmer(load: Load) -> None:
    fixture, data = load("lmer_crossed_reml")
    fit = ts.mixed(fixture["options"]["formula"], data, family="gaussian")
    golden = fixture["expected"]
    for name, expected in golden["fixed"].items():
        term = name if name.startswith("(") else f"cond[T.{name[-1]}]"
        found = row(fit.tidy(), estimand="coefficient", term=term)
        assert [found[k] for k in ("estimate", "std_error")] == close(
            fixture, [expected["estimate"], expected["se"]]
        )
    sds = fit.tidy().filter(estimand="standard deviation")
    variances = dict(zip(sds["term"], (sds["estimate"] ** 2).to_list(), strict=True))
    assert variances == close(
        fixture, {("residual" if k == "Residual" else k): v for k, v in golden["variance"].items()}
    )
    assert fit.loglik == close(fixture, golden["loglik"])
