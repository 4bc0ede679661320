"""Seams of the mixed models: both engines, odd tables, odd arguments."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit

import triagestats as ts
from triagestats.design import design_of
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.models.mixed import bayes_fit, pymc_sampler
from triagestats.models.mixed.fit import mixed
from triagestats.models.mixed.of_table import formula_of
from triagestats.models.mixed.posterior_averages import new_level_averages
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.quantities import model_quantities
from triagestats.models.mixed.read import mixed_data
from triagestats.models.mixed.wald import row_of

FORMULA = "y ~ condition + (1 | scenario)"
ROUNDING = 1e-12
"""Of the same numbers by two roads."""
MONTE_CARLO = 0.02
"""About four errors of a mean or standard deviation of 4,000 draws of rates with a deviation of 0.25."""
INTEGRATED = 0.03
"""About four errors of means of 4,000 draws with a deviation of 0.7 that are worth half as many."""


def table(scenarios: int = 12, repetitions: int = 3, *, seed: int = 3) -> pl.DataFrame:
    """0/1 answers to scenarios that differ, under two conditions."""
    rng = np.random.default_rng(seed)
    effects = rng.standard_normal(scenarios)
    rows = [
        (f"s{s}", "ab"[c], r, int(rng.random() < expit(0.3 + effects[s] + 0.5 * c)))
        for s in range(scenarios)
        for c in range(2)
        for r in range(repetitions)
    ]
    return pl.DataFrame(rows, schema=["scenario", "condition", "repetition", "y"], orient="row")


def test_a_correlation_is_tested_without_an_edge() -> None:
    """Independent against correlated slopes: the covariance is 0 inside of its range."""
    rows = table(40, 6)
    larger = ts.mixed("y ~ condition + (condition | scenario)", rows)
    smaller = ts.mixed("y ~ condition + (condition || scenario)", rows)
    found = larger.likelihood_ratio(smaller)
    assert found.p_value == pytest.approx(float(stats.chi2.sf(found.statistic or 0.0, 1)), rel=ROUNDING)
    assert "half" not in found.method
    assert not [note for note in found.notes if note.code == "boundary"]


def test_quadrature_is_compared_with_no_random_effects() -> None:
    """Without random effects both likelihoods are exact, whatever the nodes."""
    rows = table(40, 6)
    larger, smaller = ts.mixed(FORMULA, rows, nodes=9), ts.mixed("y ~ condition", rows)
    found = larger.likelihood_ratio(smaller)
    statistic = 2 * (larger.loglik - smaller.loglik)
    assert found.p_value == pytest.approx(0.5 * float(stats.chi2.sf(statistic, 1)), rel=ROUNDING)


def test_models_of_other_rows_are_not_compared() -> None:
    """The same totals of another order of the outcomes passed for the same rows."""
    rows = table(20, 4)
    other = rows.with_columns(y=rows["y"].shuffle(seed=1))
    with pytest.raises(ArgumentError, match="`smaller` must be fitted to the same rows and family"):
        ts.mixed(FORMULA, rows).likelihood_ratio(ts.mixed("y ~ 1 + (1 | scenario)", other))


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
def test_cells_may_be_cut_differently(family: Any) -> None:
    rows = table(20, 4).with_columns(
        y=pl.col("y") + (pl.col("repetition") > 2).cast(pl.Int64) * int(family != "binomial")
    )
    larger = ts.mixed("y ~ condition + (1 | scenario)", rows, family=family, reml=False)
    smaller = ts.mixed("y ~ 1 + (1 | scenario)", rows, family=family, reml=False)
    assert larger.likelihood_ratio(smaller).details["df"] == 1
    assert smaller.likelihood_ratio(ts.mixed("y ~ 1", rows, family=family, reml=False)).details["df"] == 1


def test_a_blank_group_is_missing() -> None:
    """As a null one is, with a note; it was taken for another level."""
    rows = table().rename({"scenario": "g"})
    blank = rows.with_columns(g=pl.when(pl.col("g") == "s1").then(pl.lit(" ")).otherwise(pl.col("g")))
    null = rows.with_columns(g=pl.when(pl.col("g") == "s1").then(None).otherwise(pl.col("g")))
    one, other = (ts.mixed("y ~ condition + (1 | g)", found) for found in (blank, null))
    assert one.random_effects().equals(other.random_effects())
    assert one.random_effects().height == 11
    assert "6 rows of 72 with a missing value are left out (g in 6)." in [n.message for n in one.notes]


@pytest.mark.parametrize("formula", [FORMULA, "y ~ condition + (1 | repetition)"])
def test_a_blank_scenario_is_no_matter_of_clusters(formula: str) -> None:
    """A mixed model has no argument `cluster` that an error could name."""
    name = pl.col("scenario")
    rows = table().with_columns(scenario=pl.when(name == "s1").then(pl.lit("")).otherwise(name))
    assert ts.mixed(formula, rows).converged


def test_the_end_of_an_interval_is_finite() -> None:
    """A deviation near 0 with a large error overflowed."""
    row = row_of(1e-4, 1.0, 0.95, scale="log", tested=False)
    assert math.isfinite(row["conf_high"])
    assert row["conf_low"] == 0.0


def test_no_verdict_without_a_maximum() -> None:
    """Complete separation: the averages stand, the verdict does not."""
    rows = table().with_columns(y=pl.when(pl.col("condition") == "b").then(1).otherwise(pl.col("y")))
    fit = ts.mixed(FORMULA, rows, margin=0.1)
    assert not fit.converged
    assert fit.tidy()["verdict"].null_count() == fit.tidy().height


def test_both_engines_name_deviations_alike() -> None:
    """Of intercepts, of correlated slopes, and of independent ones."""
    for random in ("(1 | scenario)", "(condition | scenario)", "(condition || scenario)"):
        read = mixed_data(f"y ~ condition + {random}", table(), family="binomial")
        draws: Any = SimpleNamespace(
            coefficients=np.zeros((2, 8, 2)),
            thresholds=np.zeros((2, 8, 0)),
            factors=tuple(np.ones((2, 8, part.width, part.width)) for part in read.matrix.random),
            sigma=None,
        )
        kinds = ("standard deviation", "correlation")
        bayes = [(q.estimand, q.term) for q in model_quantities(read.matrix, draws) if q.estimand in kinds]
        rows = ts.mixed(f"y ~ condition + {random}", table()).tidy()
        assert bayes == rows.filter(pl.col("estimand").is_in(kinds)).select("estimand", "term").rows()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"priors": {"sd": 1.0}}, r"`priors` must be made by ts.Priors\(...\); got {'sd': 1.0}"),
        ({"target_accept": "high"}, "`target_accept` must be a number between 0 and 1; got 'high'"),
        ({"target_accept": 1.5}, "`target_accept` must lie between 0 and 1; got 1.5"),
        ({"progress": "yes"}, "`progress` must be True or False; got 'yes'"),
        ({"n_threads": 0}, "`n_threads` must be at least 1; got 0"),
        ({"nodes": True}, "`nodes` is of the Laplace engine; got True"),
        ({"reml": False}, "`reml` is of the Laplace engine; got False"),
    ],
)
def test_arguments_of_the_sampler(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        mixed(FORMULA, table(), engine="bayes", draws=20, tune=20, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sampler", "nutpie"), ("chains", 2), ("draws", 10), ("tune", 5), ("target_accept", 0.9),
     ("keep_on_interrupt", True)],
)  # fmt: skip
def test_laplace_does_not_ignore_the_sampler(name: str, value: object) -> None:
    """An engine that was forgotten is told."""
    options: dict[str, Any] = {name: value}
    with pytest.raises(ArgumentError, match=f"`{name}` is of engine='bayes'; got {value!r}"):
        mixed(FORMULA, table(), **options)


def ordinal(levels: list[str] | None = None, *, without_gold: str | None = None) -> Any:
    """The demonstration as an ordinal model of one judge."""
    rows = ts.demo_table()
    frame = rows.frame
    if levels is not None:
        frame = frame.filter(pl.col("response").is_in(levels))
    if without_gold is not None:
        ends = [
            pl.when(pl.col("scenario") == without_gold).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("gold_low", "gold_high")
        ]
        frame = frame.with_columns(ends)
    chosen: dict[str, Any] = {"judge": "judge_1", "family": "ordinal", "levels": levels}
    return ts.mixed("response ~ condition + (1 | scenario)", rows.with_frame(frame), **chosen)


def test_a_gold_range_off_the_scale_is_told() -> None:
    """Labels of the gold range that `levels` lacks ended in a KeyError."""
    fit = ordinal(["routine", "urgent", "emergency"])
    assert [note.code for note in fit.notes].count("no_gold") == 1
    assert not fit.tidy()["estimand"].str.contains("gold").any()


def test_a_gold_range_that_some_rows_lack_is_told() -> None:
    """The rates under and over gold were left out without a word."""
    fit = ordinal(without_gold=ts.demo_table().frame["scenario"][0])
    (note,) = [note for note in fit.notes if note.code == "no_gold"]
    assert note.message == (
        "142 rows of 2,486 have no gold range on the scale: the rates under and over gold are not given."
    )


def test_rates_under_and_over_gold_by_hand() -> None:
    """Averages of expit at the thresholds over normal effects, cell by cell."""
    fit = ordinal()
    thresholds, (slope,) = fit.fit.thresholds, fit.fit.coefficients
    sd = float(fit.fit.factors[0][0, 0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    scale = ["self_care", "routine", "urgent", "emergency"]
    kept = ts.demo_table().with_judge("judge_1").frame.filter(pl.col("response").is_not_null())
    under = over = 0.0
    for low, high, condition in kept.select("gold_low", "gold_high", "condition").iter_rows():
        shift = slope * (condition == "letter") + sd * nodes
        below = [0.0, *(float(expit(t - shift) @ weights / weights.sum()) for t in thresholds), 1.0]
        under += below[scale.index(low)] / kept.height
        over += (1 - below[scale.index(high) + 1]) / kept.height
    rows = fit.tidy().filter(pl.col("term").is_null() & pl.col("estimand").str.contains("gold"))
    # The nodes of the package are fewer, and the deviation is above 2.
    np.testing.assert_allclose(rows["estimate"].to_list(), [under, over], atol=1e-5)


def test_an_interrupted_sampler_of_pymc_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyMC returns the draws there are as if nothing had happened."""
    short = SimpleNamespace(posterior=SimpleNamespace(sizes={"chain": 2, "draw": 3}))
    library = SimpleNamespace(sample=lambda **_: short)
    monkeypatch.setattr(pymc_sampler, "bayes_library", lambda _: library)
    monkeypatch.setattr(pymc_sampler, "pymc_model", lambda *_: None)
    matrix = mixed_data(FORMULA, table(), family="binomial").matrix
    with pytest.raises(KeyboardInterrupt):
        pymc_sampler.sample_pymc(matrix, draws=50, chains=2)


def test_an_interruption_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = bayes_fit.sample_native

    def stopped(*given: Any, **options: Any) -> Any:
        draws = sample(*given, **options)
        object.__setattr__(draws, "interrupted", True)
        return draws

    monkeypatch.setattr(bayes_fit, "sample_native", stopped)
    fit = mixed(FORMULA, table(), engine="bayes", draws=50, tune=50, chains=2, keep_on_interrupt=True)
    assert [note.code for note in fit.notes].count("interrupted") == 1


def test_a_new_scenario_has_its_own_effect_of_the_condition() -> None:
    """Its rate under a condition spreads by both deviations; averaging over one made it too narrow."""
    read = mixed_data(FORMULA + " + (1 | scenario:condition)", table(), family="binomial")
    n = 4_000
    draws: Any = SimpleNamespace(
        coefficients=np.broadcast_to([0.3, 0.5], (1, n, 2)),
        thresholds=np.zeros((1, n, 0)),
        factors=(np.full((1, n, 1, 1), 0.6), np.full((1, n, 1, 1), 1.2)),
        sigma=None,
    )
    found = ts.mixed(FORMULA + " + (1 | scenario:condition)", table()).profiles.profiles[1]
    assert (found.term, found.label) == ("condition", "a")
    rates = new_level_averages(read.matrix, draws, found, "scenario", np.random.default_rng(1)).ravel()
    whole = expit(0.3 + math.hypot(0.6, 1.2) * np.random.default_rng(2).standard_normal(n))
    assert rates.mean() == pytest.approx(whole.mean(), abs=MONTE_CARLO)
    assert rates.std() == pytest.approx(whole.std(), abs=MONTE_CARLO)


@pytest.mark.parametrize("repetitions", [1, 2])
def test_an_analysis_asks_for_no_effect_of_single_rows(repetitions: int) -> None:
    """One model without repetitions had no mixed model, because of a term that the analysis had chosen."""
    rows = table(repetitions=repetitions).rename({"y": "score"}).with_columns(model=pl.lit("m"))
    responses = ts.ResponseTable(rows)
    made = formula_of(responses, design_of(responses))
    assert isinstance(made, tuple)
    ending = " + (1 | scenario:condition)" if repetitions > 1 else ""
    assert made[0] == f"score ~ condition + (1 | scenario){ending}"


def test_notes_name_terms_that_can_be_added() -> None:
    """Not an effect for each row; and names of two words in backticks."""
    single = ts.mixed(FORMULA, table(repetitions=1))
    assert "same_effect" not in [note.code for note in single.notes]
    named = table().rename({"condition": "my condition"})
    fit = ts.mixed("y ~ `my condition` + (1 | scenario)", named)
    (note,) = [note.message for note in fit.notes if note.code == "same_effect"]
    assert "add (1 | scenario:`my condition`), or slopes such as (`my condition` | scenario)." in note


def test_a_posterior_by_brute_force() -> None:
    """The native sampler against a grid over intercept, coefficient and deviation."""
    rows = table(5, 4, seed=5)
    cells = rows.group_by("scenario", "condition").agg(pl.col("y").sum()).sort("scenario", "condition")
    k = cells["y"].to_numpy().reshape(5, 2)
    a, b, sd = np.meshgrid(
        np.linspace(-6, 6, 49), np.linspace(-6, 6, 49), (np.arange(120) + 0.5) * 0.06, indexing="ij"
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    log_likelihood = np.zeros_like(a)
    for s in range(5):
        total = np.zeros_like(a)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            eta = [a + b * (c - 0.5) + sd * node for c in (0, 1)]
            total += weight * np.exp(sum(k[s, c] * eta[c] - 4 * np.logaddexp(0, eta[c]) for c in (0, 1)))
        log_likelihood += np.log(total)
    priors = Priors(intercept=1.5, coefficient={"condition[T.b]": 0.8}, sd={"scenario": 1.0})
    log_prior = -0.5 * ((a / 1.5) ** 2 + (b / 0.8) ** 2 + sd**2)
    density = np.exp(log_likelihood + log_prior - (log_likelihood + log_prior).max())
    density /= density.sum()
    fit = mixed(FORMULA, rows, engine="bayes", priors=priors, draws=2_000, seed=1)
    assert fit.diagnostics.ok
    draws = {q.term: q.values for q in model_quantities(fit.matrix, fit.draws)[:3]}
    for values, grid in zip(draws.values(), (a - b / 2, b, sd), strict=True):
        mean = float((density * grid).sum())
        spread = math.sqrt(float((density * (grid - mean) ** 2).sum()))
        assert values.mean() == pytest.approx(mean, abs=INTEGRATED)
        assert values.std() == pytest.approx(spread, abs=INTEGRATED)
