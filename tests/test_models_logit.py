"""logit: estimating equations, average marginal effects, and separation."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import triagestats as ts
from triagestats.models.logit import LogitModel
from triagestats.models.separation import separation_of
from triagestats.results import TIDY_SCHEMA

Refusal = Callable[[Callable[[], object]], str]

# The equations are solved to 1e-10 in the parameters.
SOLVED = 1e-7
# Two-sided differences with steps of 1e-4.
DIFFERENCES = 1e-6


@cache
def clustered(seed: int = 11, *, n_items: int = 25) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        base = rng.normal()
        for _ in range(int(rng.integers(3, 9))):
            arm, x, flag = int(rng.integers(0, 3)), rng.normal(), bool(rng.integers(0, 2))
            y = int(rng.random() < expit(base + 0.6 * arm + 0.5 * x - 0.7 * flag - 0.5))
            rows.append((f"i{item:02}", f"a{arm}", x, flag, y))
    return pl.DataFrame(rows, schema=["item", "arm", "x", "flag", "y"], orient="row")


def sandwich(fit: LogitModel) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The estimating function at the estimates, and the sandwich, from dense matrices by cluster."""
    k = len(fit.terms)
    score, bread, meat = np.zeros(k), np.zeros((k, k)), np.zeros((k, k))
    for cluster in range(fit.n_clusters):
        at = fit.matrix.clusters[0] == cluster
        x, y = fit.matrix.x[at], fit.matrix.y[at]
        p = expit(x @ fit.estimates)
        sd = np.sqrt(p * (1 - p))
        correlation = np.full((len(y), len(y)), fit.working_correlation)
        np.fill_diagonal(correlation, 1)
        inverse = np.linalg.inv(correlation * np.outer(sd, sd))
        slopes = x * (p * (1 - p))[:, None]
        each = slopes.T @ inverse @ (y - p)
        score += each
        bread += slopes.T @ inverse @ slopes
        meat += np.outer(each, each)
    outer = np.linalg.inv(bread)
    return score, outer @ meat @ outer


@pytest.mark.parametrize("correlation", ["exchangeable", "independence"])
@pytest.mark.parametrize("formula", ["y ~ arm + x", "y ~ arm*x + flag", "y ~ x + I(x**2)"])
def test_the_equations_are_solved_and_the_sandwich_is_theirs(formula: str, correlation: Any) -> None:
    fit = ts.logit(formula, clustered(), correlation=correlation)
    score, vcov = sandwich(fit)
    np.testing.assert_allclose(score, 0, atol=1e-6)
    np.testing.assert_allclose(fit.vcov, vcov, rtol=1e-6, atol=1e-10)
    assert (fit.working_correlation == 0) == (correlation == "independence")


def chances(data: pl.DataFrame, b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The probabilities of `y ~ arm*x + flag`, written out."""
    a1, a2 = ((data["arm"] == name).to_numpy().astype(float) for name in ("a1", "a2"))
    x, flag = data["x"].to_numpy(), data["flag"].to_numpy().astype(float)
    columns = [np.ones(len(x)), a1, a2, x, flag, a1 * x, a2 * x]
    return np.asarray(expit(np.column_stack(columns) @ b))


def average_effects(data: pl.DataFrame, b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """a1 - a0, a2 - a0, flag, and the slope of x by differences."""

    def mean(**values: object) -> float:
        return float(chances(data.with_columns(**{k: pl.lit(v) for k, v in values.items()}), b).mean())

    step = 1e-4
    up, down = (chances(data.with_columns(pl.col("x") + s), b).mean() for s in (step, -step))
    return np.array(
        [
            mean(arm="a1") - mean(arm="a0"),
            mean(arm="a2") - mean(arm="a0"),
            mean(flag=True) - mean(flag=False),
            (up - down) / (2 * step),
        ]
    )


def test_average_effects_and_their_errors_by_differences() -> None:
    data = clustered()
    fit = ts.logit("y ~ arm*x + flag", data)
    assert fit.terms == (
        "(Intercept)",
        "arm[T.a1]",
        "arm[T.a2]",
        "x",
        "flag",
        "arm[T.a1]:x",
        "arm[T.a2]:x",
    )
    b = fit.estimates
    expected = average_effects(data, b)
    step = 1e-4  # of a function that is itself a difference
    gradient = np.column_stack(
        [
            (average_effects(data, b + step * unit) - average_effects(data, b - step * unit)) / (2 * step)
            for unit in np.eye(len(b))
        ]
    )
    assert [(e.term, e.contrast) for e in fit.effects] == [
        ("arm", "a1 - a0"),
        ("arm", "a2 - a0"),
        ("flag", "1 - 0"),
        ("x", "slope"),
    ]
    np.testing.assert_allclose([e.estimate for e in fit.effects], expected, rtol=DIFFERENCES)
    np.testing.assert_allclose(fit.effects_vcov, gradient @ fit.vcov @ gradient.T, rtol=1e-5, atol=1e-8)


def test_statsmodels_has_the_same_margins() -> None:
    from statsmodels.genmod.cov_struct import Exchangeable
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE

    data = clustered()
    fit = ts.logit("y ~ x + flag", data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GEE(
            fit.matrix.y,
            fit.matrix.x,
            groups=data["item"].to_numpy(),
            family=Binomial(),
            cov_struct=Exchangeable(),
        ).fit(ctol=1e-10, maxiter=200)
        margins = theirs.get_margeff(at="overall", dummy=True)
    tidy = fit.tidy()
    effects = tidy.filter(pl.col("estimand") == "average marginal effect").sort("term", descending=True)
    np.testing.assert_allclose(effects["estimate"].to_numpy(), margins.margeff, rtol=SOLVED)
    np.testing.assert_allclose(effects["std_error"].to_numpy(), margins.margeff_se, rtol=1e-6)
    odds = tidy.filter(pl.col("estimand") == "log odds")
    np.testing.assert_allclose(odds["std_error"].to_numpy(), theirs.bse, rtol=1e-6)


def test_levels_alone_give_differences_of_rates_as_lpm() -> None:
    """Without other regressors and correlation, the effects are those of the linear model, errors too."""
    fit = ts.logit("y ~ arm", clustered(), correlation="independence").tidy()
    linear = ts.lpm("y ~ arm", clustered(), small_sample={"k": False, "g": False}).tidy()
    for column in ("estimate", "std_error", "conf_low", "p_value", "df"):
        np.testing.assert_allclose(fit[column][:2].to_numpy(), linear[column][1:].to_numpy(), rtol=1e-6)
    assert fit["contrast"][:2].to_list() == linear["contrast"][1:].to_list()


def test_bias_reduced_errors_are_larger() -> None:
    usual = ts.logit("y ~ arm + x", clustered(n_items=12))
    reduced = ts.logit("y ~ arm + x", clustered(n_items=12), vcov="bias-reduced")
    np.testing.assert_allclose(reduced.estimates, usual.estimates, rtol=SOLVED)
    assert (np.diag(reduced.vcov) > np.diag(usual.vcov)).all()
    assert "bias-reduced errors by item" in reduced.tidy()["method"][0]


def test_order_and_labels_change_nothing() -> None:
    data = clustered()
    fit = ts.logit("y ~ arm + x", data)
    order = np.random.default_rng(0).permutation(data.height)
    names = {name: f"z{place}" for place, name in enumerate(sorted(data["item"].unique(), reverse=True))}
    other = ts.logit("y ~ arm + x", data[order].with_columns(pl.col("item").replace_strict(names)))
    np.testing.assert_allclose(other.effects_vcov, fit.effects_vcov, rtol=1e-6)
    swapped = ts.logit("y ~ arm + x", data.with_columns(y=1 - pl.col("y")))
    np.testing.assert_allclose(swapped.estimates, -fit.estimates, rtol=1e-6)


def test_a_level_of_rate_one() -> None:
    data = clustered().with_columns(y=pl.when(pl.col("arm") == "a2").then(1).otherwise("y"))
    fit = ts.logit("y ~ arm + x", data)
    rest = ts.logit("y ~ arm + x", data.filter(pl.col("arm") != "a2"))
    kept = [fit.terms.index(term) for term in rest.terms]
    np.testing.assert_allclose(fit.estimates[kept], rest.estimates, rtol=SOLVED)
    np.testing.assert_allclose(fit.vcov[np.ix_(kept, kept)], rest.vcov, rtol=1e-6)
    assert np.isnan(fit.estimates[fit.terms.index("arm[T.a2]")])
    x = data["x"].to_numpy()
    at_0, at_1 = (
        expit(rest.estimates[0] + s * rest.estimates[1] + rest.estimates[2] * x).mean() for s in (0, 1)
    )
    tidy = fit.tidy()
    assert tidy["contrast"][:2].to_list() == ["a1 - a0", "a2 - a0"]
    np.testing.assert_allclose(tidy["estimate"][:2].to_numpy(), [at_1 - at_0, 1 - at_0], rtol=1e-6)
    # Only the effects that the rows with certain outcomes enter lose their error.
    assert tidy["std_error"].is_null().to_list() == [False, True, True, False, False, True, False]
    assert (
        tidy["reason"][1]
        == "rows are predicted for certain (separation), whose part of the error is not known"
    )
    messages = {note.code: note.message for note in fit.notes}
    count = int((data["arm"] == "a2").sum())
    assert messages["boundary"] == f"arm 'a2' has a rate of 1 in {count} rows."
    assert messages["separation"] == (
        f"{count} rows are predicted for certain (separation): the coefficients of arm[T.a2] are not finite."
    )


def test_a_reference_of_rate_zero_makes_every_coefficient_of_the_factor_infinite() -> None:
    data = clustered().with_columns(y=pl.when(pl.col("arm") == "a0").then(0).otherwise("y"))
    fit = ts.logit("y ~ arm", data, correlation="independence")
    rates = data.group_by("arm").agg(pl.col("y").mean()).sort("arm")["y"].to_list()
    np.testing.assert_allclose([e.estimate for e in fit.effects], [rates[1], rates[2]], rtol=SOLVED)
    assert np.isnan(fit.estimates).all()


def test_separation_by_a_number() -> None:
    x = np.column_stack([np.ones(6), [1.0, 2, 3, 3, 5, 6]])
    partly = separation_of(x, np.array([0.0, 0, 0, 1, 1, 1]))
    assert partly.certain.tolist() == [True, True, False, False, True, True]
    assert partly.direction[0] / partly.direction[1] == pytest.approx(-3)
    assert not partly.identified.any()
    wholly = separation_of(x, np.array([0.0, 0, 1, 1, 1, 1]))
    assert wholly.certain.all()
    none = separation_of(x, np.array([0.0, 1, 0, 1, 0, 1]))
    assert not none.certain.any()
    assert none.identified.all()


def test_the_result_in_tables() -> None:
    fit = ts.logit("y ~ arm + x", clustered())
    tidy = fit.tidy()
    assert tidy.schema == TIDY_SCHEMA
    assert tidy["estimand"].to_list() == ["average marginal effect"] * 3 + ["log odds"] * 4
    assert tidy["contrast"].to_list()[:4] == ["a1 - a0", "a2 - a0", "slope", None]
    assert tidy["df"].unique().to_list() == [24.0]
    assert tidy["method"][0] == "GEE logit, exchangeable, robust errors by item, delta method; t"
    assert fit.glance().height == 1
    assert fit.glance()["rate"][0] == pytest.approx(clustered()["y"].mean())
    wide = fit.with_level(0.99).tidy()
    assert (wide["conf_low"] < tidy["conf_low"]).all()
    assert json.loads(json.dumps(fit.to_dict()))["settings"]["n_clusters"] == 25
    assert fit.to_pandas()["term"].tolist() == tidy["term"].to_list()
    assert "average marginal effect of arm, a1 - a0:" in str(fit)
    assert "note: Sandwich by cluster without small-sample factor; t, df = 24." in str(fit)


def test_a_response_table() -> None:
    table = ts.ResponseTable(
        clustered().with_row_index("repetition"), scenario="item", condition="arm", score="y"
    )
    fit = ts.logit("score ~ condition + x", table)
    plain = ts.logit("y ~ arm + x", clustered())
    np.testing.assert_allclose(fit.effects_vcov, plain.effects_vcov, rtol=1e-6)


def test_clusters_of_one_row_show_no_correlation() -> None:
    data = clustered().with_row_index("row").with_columns(pl.col("row").cast(pl.String))
    fit = ts.logit("y ~ arm", data, cluster="row")
    assert fit.working_correlation == 0
    np.testing.assert_allclose(fit.vcov, sandwich(fit)[1], rtol=1e-6)


def test_doubts() -> None:
    data = clustered(n_items=8).with_columns(x2=2 * pl.col("x") + 1)
    fit = ts.logit("y ~ x + x2 + arm", data)
    messages = {note.code: note.message for note in fit.notes}
    assert messages["few_clusters"].startswith(
        "8 item: with fewer than 12 clusters robust errors are too small"
    )
    assert messages["collinear"].startswith("x2 is left out")
    assert fit.tidy()["status"].unique().to_list() == ["warning"]
    assert "many_regressors" in {n.code for n in ts.logit("y ~ x + arm", clustered(n_items=4)).notes}


@pytest.mark.parametrize(
    ("formula", "arguments", "said"),
    [
        ("y ~ amr", {}, "`formula` names 'amr', which the data do not have. Did you mean 'arm'?"),
        ("y ~ arm | item", {}, "`formula` absorbs item, which biases a logit"),
        ("y ~ arm + (1 | item)", {}, "has the random term (1 | item), which this population-averaged logit"),
        ("x ~ arm", {}, "the outcome 'x' must be 0 or 1; got values from"),
        ("one ~ arm", {}, "the outcome 'one' is 1 in every row"),
        ("y ~ arm", {"cluster": "gap"}, "`cluster` is 'gap', which is missing in"),
        ("y ~ arm", {"cluster": "one"}, "`cluster` is 'one', which has one value"),
        ("y ~ arm", {"cluster": ["item", "arm"]}, "`cluster` must be one column"),
        ("y ~ same", {}, "`formula` predicts every row for certain"),
        ("y ~ arm", {"correlation": "ar1"}, "`correlation` must be one of 'exchangeable', 'independence'"),
        ("y ~ arm", {"vcov": "CRV1"}, "`vcov` must be one of 'robust', 'bias-reduced'"),
        ("y ~ 0", {}, "`formula` has no regressors"),
        ("y ~ sqrt(zero)", {}, "`formula` has a function of 'zero' that has no slope at some of its values"),
        ("y ~ log(x)", {}, "`formula` has 'log(x)', which is not finite in some rows"),
    ],
)
def test_what_is_refused(refusal: Refusal, formula: str, arguments: dict[str, Any], said: str) -> None:
    data = clustered().with_columns(
        one=pl.lit(1),
        gap=pl.when(pl.col("x") < 0).then("item"),
        same=pl.col("y"),
        zero=pl.col("x").clip(lower_bound=0),
    )
    assert said in refusal(lambda: ts.logit(formula, data, **arguments))


def test_no_cluster_is_recognised(refusal: Refusal) -> None:
    data = clustered().drop("item")
    assert "name it, as none is recognised as the scenario" in refusal(lambda: ts.logit("y ~ arm", data))


@pytest.mark.parametrize(("shift", "scale"), [(1e4, 1.0), (1e8, 1.0), (0.0, 1e-10), (0.0, 1e12)])
@pytest.mark.parametrize("correlation", ["exchangeable", "independence"])
def test_means_and_units_of_regressors_do_not_matter(shift: float, scale: float, correlation: Any) -> None:
    data = clustered().with_columns(far=pl.col("x") * scale + shift)
    plain = ts.logit("y ~ x + arm", data, correlation=correlation)
    fit = ts.logit("y ~ far + arm", data, correlation=correlation)
    assert {note.code for note in fit.notes} == {note.code for note in plain.notes}
    tolerance = 1e-7 + 1e-15 * shift  # digits that the column has lost
    slope, far = plain.effects[-1], fit.effects[-1]
    assert (slope.term, far.term) == ("x", "far")
    assert far.estimate * scale == pytest.approx(slope.estimate, rel=tolerance)
    assert fit.effects[0].estimate == pytest.approx(plain.effects[0].estimate, rel=tolerance)
    errors, expected = np.sqrt(np.diag(fit.effects_vcov)), np.sqrt(np.diag(plain.effects_vcov))
    names = [effect.term for effect in fit.effects]
    errors = errors * np.where(np.array(names) == "far", scale, 1.0)
    np.testing.assert_allclose(errors, expected, rtol=max(tolerance, 1e-6))
    place = fit.terms.index("far")
    assert fit.estimates[place] * scale == pytest.approx(plain.estimates[plain.terms.index("x")], rel=1e-6)


def test_near_collinear_regressors() -> None:
    rng = np.random.default_rng(5)
    noise = pl.Series(rng.normal(size=clustered().height))
    data = clustered().with_columns(z=pl.col("x") + 1e-6 * noise).with_columns(d=pl.col("z") - pl.col("x"))
    fit, apart = ts.logit("y ~ x + z", data), ts.logit("y ~ x + d", data)
    assert fit.estimates[2] == pytest.approx(apart.estimates[2], rel=1e-6)
    assert fit.estimates[1] + fit.estimates[2] == pytest.approx(apart.estimates[1], rel=1e-3)
    assert np.sqrt(fit.vcov[2, 2]) == pytest.approx(np.sqrt(apart.vcov[2, 2]), rel=1e-6)


def test_a_slope_close_to_where_a_function_ends() -> None:
    """A step of the slope would leave the domain of the logarithm; the slope of log(x) is 1 / x."""
    data = clustered().with_columns(size=pl.col("x").abs()).with_row_index("row")
    data = data.with_columns(size=pl.when(pl.col("row") == 0).then(1e-7).otherwise("size"))
    fit = ts.logit("y ~ log(size)", data)
    p = expit(fit.matrix.x @ fit.estimates)
    expected = np.mean(p * (1 - p) * fit.estimates[1] / data["size"].to_numpy())
    assert fit.effects[0].estimate == pytest.approx(expected, rel=1e-6)


def test_a_category_with_one_level_is_named(refusal: Refusal) -> None:
    data = clustered().with_columns(z=pl.lit("q"))
    fit = ts.logit("y ~ z + arm", data)
    assert "z is left out: it is 'q' in every row." in map(str, fit.notes)
    np.testing.assert_allclose(fit.estimates, ts.logit("y ~ arm", data).estimates)
    assert ts.logit("y ~ 0 + z", data).terms == ("z[q]",)
    assert refusal(lambda: ts.logit("y ~ arm", data.head(0))).startswith("DataError: `data` has no rows")
    assert fit._repr_html_().startswith("<pre>logit y ~ z + arm: ")
