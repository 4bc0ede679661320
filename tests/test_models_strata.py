"""Differences between strata: against hand computation, enumeration, and published subset gaps."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.subsets import subset_test

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]
Array = np.ndarray[Any, np.dtype[np.float64]]

EXACT = 1e-12
END = 0.012  # Monte Carlo error of two sets of percentile ends, in units of a difference of 0.5 or so
GAP = ts.Gap("alpha", ["beta", "gamma"])


def table_of(values: list[float], strata: list[str | None], models: int = 1) -> ts.ResponseTable:
    """One score a scenario and model; its stratum is a column that is carried along."""
    rows = [
        (f"s{place:03}", f"m{model}", value, stratum)
        for place, (value, stratum) in enumerate(zip(values, strata, strict=True))
        for model in range(models)
    ]
    return ts.ResponseTable(pl.DataFrame(rows, schema=["scenario", "model", "score", "kind"], orient="row"))


@pytest.fixture(scope="module")
def voices(shared: Shared) -> ts.ResponseTable:
    responses = pl.read_csv(shared("replication/narrativeshield/responses.csv.gz"))
    return ts.ResponseTable(responses.filter(pl.col("condition") == "B1").drop("condition"))


@pytest.fixture(scope="module")
def questions(shared: Shared) -> pl.DataFrame:
    frame = pl.read_csv(shared("replication/narrativeshield/questions.csv")).drop("gold")
    words = frame["words_beta"] + frame["words_gamma"]
    half = pl.Series("half", np.where(words <= words.median(), "shorter_half", "longer_half"))
    return frame.with_columns(half)


@pytest.mark.parametrize(
    ("by", "first", "second"),
    [
        ("step", "step=step1", "step=step2&3"),
        ("ask_type_derived", "ask_type_derived=diagnosis", "ask_type_derived=management"),
        ("ask_type_derived", "ask_type_derived=investigation", "ask_type_derived=other"),
        ("half", "shorter_half", "longer_half"),
    ],
)
def test_published_subset_gaps(
    voices: ts.ResponseTable, questions: pl.DataFrame, shared: Shared, by: str, first: str, second: str
) -> None:
    expected = json.loads(shared("replication/narrativeshield/expected.json").read_text())[
        "subgroup_gap_B1_mean_of_7"
    ]
    names = (first.rpartition("=")[2], second.rpartition("=")[2])
    found = ts.stratum_difference(
        voices, by=by, strata=names, estimand=GAP, scenarios=questions, n_resamples=999
    )
    for part, key in zip(found.details["strata"], (first, second), strict=True):
        assert part["estimate"] == pytest.approx(expected[key]["gap"], abs=EXACT)
        assert part["n_clusters"] == expected[key]["n"]
    assert found.estimate == pytest.approx(expected[first]["gap"] - expected[second]["gap"], abs=EXACT)
    assert found.n == expected[first]["n"] + expected[second]["n"]


def test_a_stratum_is_that_of_analyze(voices: ts.ResponseTable, questions: pl.DataFrame) -> None:
    """`analyze` with the same column as stratum, and the table of one stratum alone, give its estimates."""
    joined = voices.frame.join(questions, left_on="scenario", right_on="question_id")
    columns = ["scenario", "model", "condition", "score", "step"]
    table = ts.ResponseTable(joined.select(columns), stratum="step")
    fit = ts.analyze(table, estimands=[GAP], n_resamples=99)
    assert fit.contrasts is not None
    rows = fit.contrasts.filter((pl.col("estimand") == "gap") & pl.col("model").is_null())
    by_stratum = dict(rows.select("stratum", "estimate").iter_rows())
    found = ts.stratum_difference(table, by="stratum", estimand=GAP, n_resamples=99)
    assert found.contrast == "alpha - mean(beta, gamma): step2&3 - step1"
    for part in found.details["strata"]:
        assert part["estimate"] == pytest.approx(by_stratum[part["stratum"]], abs=EXACT)
    one = ts.stratum_difference(table, by="stratum", estimand=GAP, model="llama31", n_resamples=99)
    row = fit.contrasts.filter(
        (pl.col("estimand") == "gap") & (pl.col("model") == "llama31") & (pl.col("stratum") == "step1")
    )
    assert one.details["strata"][1]["estimate"] == pytest.approx(row["estimate"][0], abs=EXACT)


def test_hand_computed() -> None:
    """Means 5 and 2; of the ten arrangements two are as far apart."""
    found = ts.stratum_difference(
        table_of([1, 2, 3, 4, 6], ["a", "a", "a", "b", "b"]), by="kind", statistic="difference"
    )
    assert found.estimate == found.statistic == 3.0
    assert found.p_value == pytest.approx(1 / 10, abs=EXACT)
    assert (found.details["way"], found.details["n_arrangements"]) == ("enumeration", 10)
    assert found.contrast == "mean(all): b - a"
    assert found.conf_low is None
    assert "'b' has 2 and 'a' has 3; an interval needs 5 in each" in str(found.notes[0])
    assert str(found.notes[1]) == "With 10 arrangements p cannot be below 0.1."
    numbers = table_of([*range(20)], ["a", "b"] * 10)
    few = ts.stratum_difference(numbers, by="kind", n_resamples=5, statistic="studentised")
    assert "With 5 arrangements drawn p cannot be below 0.167." in map(str, few.notes)


def test_the_interval_draws_within_strata() -> None:
    """The jackknife is the two-sample error, with Welch's df; percentiles are those of two bootstraps."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=12), 2 * rng.normal(size=20) + 1
    table = table_of([*x, *y], ["x"] * 12 + ["y"] * 20, models=2)
    t = ts.stratum_difference(table, by="kind", strata=("x", "y"), n_resamples=99)
    error = float(np.sqrt(x.var(ddof=1) / 12 + y.var(ddof=1) / 20))
    assert t.details["std_error"] == pytest.approx(error, abs=EXACT)
    welch = stats.ttest_ind(x, y, equal_var=False)
    assert t.details["df"] == pytest.approx(welch.df, rel=EXACT)
    assert t.statistic == pytest.approx(welch.statistic, rel=1e-10)
    ends = welch.confidence_interval(0.95)
    assert (t.conf_low, t.conf_high) == pytest.approx((ends.low, ends.high), abs=1e-9)
    alone = stats.ttest_1samp(y, 0).confidence_interval(0.95)
    second = t.details["strata"][1]
    assert (second["conf_low"], second["conf_high"]) == pytest.approx((alone.low, alone.high), abs=1e-9)
    assert t.method.startswith("jackknife t, Welch's df; studentised permutation of clusters")
    percentile = ts.stratum_difference(table, by="kind", strata=("x", "y"), interval="percentile")
    draws = rng.choice(x, (40_000, 12)).mean(axis=1) - rng.choice(y, (40_000, 20)).mean(axis=1)
    expected = np.quantile(draws, [0.025, 0.975])
    assert (percentile.conf_low, percentile.conf_high) == pytest.approx(expected, abs=3 * END)
    assert [note.code for note in percentile.notes] == []


def test_swapping_strata_turns_the_sign() -> None:
    rng = np.random.default_rng(9)
    table = table_of(list(rng.random(24)), ["u", "v"] * 12)
    first = ts.stratum_difference(table, by="kind", strata=("u", "v"), interval="jackknife-t")
    second = ts.stratum_difference(table, by="kind", strata=("v", "u"), interval="jackknife-t")
    assert first.estimate == pytest.approx(-(second.estimate or 0), abs=EXACT)
    assert (first.conf_low, first.conf_high) == pytest.approx(
        (-(second.conf_high or 0), -(second.conf_low or 0)), abs=EXACT
    )
    greater = ts.stratum_difference(table, by="kind", strata=("u", "v"), alternative="greater")
    less = ts.stratum_difference(table, by="kind", strata=("v", "u"), alternative="less")
    assert greater.p_value == pytest.approx(less.p_value, abs=0.02)


def gaps(rng: np.random.Generator, missing: float) -> ts.ResponseTable:
    """Nine scenarios, two models, three voices, some of it missing."""
    rows = [
        (f"s{s}", m, voice, float(rng.random() < 0.5), "one" if s < 4 else "two")
        for s in range(9)
        for m in ("p", "q")
        for voice in ("alpha", "beta", "gamma")
        if rng.random() >= missing
    ]
    schema = ["scenario", "model", "voice", "score", "kind"]
    return ts.ResponseTable(pl.DataFrame(rows, schema=schema, orient="row"))


@pytest.mark.parametrize("missing", [0.0, 0.12])
@pytest.mark.parametrize("estimand", [GAP, ts.AnchoringGap("alpha", ["beta", "gamma"])])
def test_p_values_are_those_of_enumeration(missing: float, estimand: ts.Estimand) -> None:
    """Every choice of four of the scenarios, with both strata estimated anew from the rows."""
    table = gaps(np.random.default_rng(3), missing)
    wide = table.frame.pivot("condition", index=["scenario", "model"], values="score").drop_nulls()
    scenarios = wide["scenario"].unique().sort().to_list()

    def value(members: set[str]) -> float:
        part = wide.filter(pl.col("scenario").is_in(list(members)))
        means = part.group_by("model").agg(pl.col("alpha", "beta", "gamma").mean())
        if means.height < 2:
            return float("nan")
        levels = means.select("alpha", "beta", "gamma").to_numpy()
        return float(np.mean(estimand.evaluate(levels)))

    first = {s for s in scenarios if s < "s4"}
    null = np.array([
        value(set(chosen)) - value(set(scenarios) - set(chosen))
        for chosen in itertools.combinations(scenarios, len(first))
    ])  # fmt: skip
    own = value(first) - value(set(scenarios) - first)
    away = np.abs(null - np.nanmean(null))
    expected = np.mean(away >= abs(own - np.nanmean(null)) - 1e-9)
    found = ts.stratum_difference(
        table, by="kind", strata=("one", "two"), estimand=estimand, statistic="difference"
    )
    assert found.estimate == pytest.approx(own, abs=EXACT)
    assert found.details["n_arrangements"] == len(null)
    assert found.p_value == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n_first", [3, 6])  # the smaller stratum first, or second
def test_the_studentised_statistic_by_enumeration(alternative: Any, n_first: int) -> None:
    """Every choice of the first stratum, with Welch's t of each."""
    values = np.array([0.0, 1, 1, 2, 3, 5, 8, 9, 9])
    strata = ["a"] * n_first + ["b"] * (9 - n_first)

    def t(first: list[int]) -> float:
        rest = [place for place in range(9) if place not in first]
        one, two = values[first], values[rest]
        return float(
            (one.mean() - two.mean()) / np.sqrt(one.var(ddof=1) / len(one) + two.var(ddof=1) / len(two))
        )

    own = t(list(range(n_first)))
    null = np.array([t(list(chosen)) for chosen in itertools.combinations(range(9), n_first)])
    sign = -1 if alternative == "less" else 1
    beyond = np.abs(null) >= abs(own) if alternative == "two-sided" else sign * null >= sign * own
    table = table_of(list(values), list(strata), models=2)
    found = ts.stratum_difference(table, by="kind", strata=("a", "b"), alternative=alternative)
    assert found.statistic == pytest.approx(own, rel=1e-10)
    assert found.details["studentised"]
    assert found.p_value == pytest.approx(np.mean(beyond | np.isclose(null, own)), abs=EXACT)


def test_influence_of_clusters_with_gaps_is_their_jackknife() -> None:
    """With missing cells the error behind T is that of the jackknife, to first order."""
    rng = np.random.default_rng(8)
    rows = [
        (f"s{s:02}", m, c, float(rng.normal() + (c == "v") * s / 40), "one" if s < 24 else "two")
        for s in range(60)
        for m in "pq"
        for c in "uv"
        if rng.random() < 0.9
    ]
    schema = ["scenario", "model", "condition", "score", "kind"]
    table = ts.ResponseTable(pl.DataFrame(rows, schema=schema, orient="row"))
    found = ts.stratum_difference(table, by="kind", n_resamples=99)
    assert found.details["studentised"]
    assert found.statistic == pytest.approx(found.estimate / found.details["std_error"], rel=0.02)
    percentile = ts.stratum_difference(table, by="kind", n_resamples=99, interval="percentile")
    assert percentile.details["df"] is None
    assert percentile.estimate == found.estimate


def test_strata_of_unequal_spread_keep_the_size() -> None:
    """12 clusters of three times the standard deviation of 30: the difference alone rejects in 17 %."""
    rng = np.random.default_rng(0)
    rejected = {"auto": 0, "difference": 0}
    n = 80
    for _ in range(n):
        values = [*(3 * rng.normal(size=12)), *rng.normal(size=30)]
        table = table_of(values, ["a"] * 12 + ["b"] * 30)
        for statistic in rejected:
            found = ts.stratum_difference(table, by="kind", statistic=statistic, n_resamples=199)  # type: ignore[arg-type]
            rejected[statistic] += (found.p_value or 0) <= 0.05
    # 0.17 against 0.06 in 1,500 data sets; the standard errors are 0.042 and 0.027 here.
    assert rejected["difference"] / n > 0.09
    assert rejected["auto"] / n < 0.14
    assert rejected["auto"] < 0.7 * rejected["difference"]


def test_estimands_that_are_not_smooth_have_percentiles() -> None:
    table = gaps(np.random.default_rng(3), 0.0)
    found = ts.stratum_difference(
        table, by="kind", estimand=ts.AnchoringGap("alpha", ["beta", "gamma"]), n_resamples=99
    )
    assert "percentile" in found.method
    assert not found.details["studentised"]
    assert "interval" in [note.code for note in found.notes]


def test_totals_of_groups_give_the_means_again() -> None:
    """The general way of `subset_test` is the mean where `value` is the mean."""
    rng = np.random.default_rng(1)
    totals = np.stack([rng.random(30), rng.integers(1, 4, 30).astype(float)], axis=1)
    chosen = np.arange(30) < 11
    asked: dict[str, Any] = {"is_difference": True, "n_resamples": 500, "seed": 3}
    plain = subset_test(totals, chosen, lambda m: m[..., 0] - m[..., 1], **asked)
    general = subset_test(
        totals, chosen, lambda m: m[..., 0] - m[..., 1], value=lambda s: s[..., 0] / s[..., 1], **asked
    )
    assert plain == general


def test_exact_laws_are_used_where_there_are_some() -> None:
    rng = np.random.default_rng(2)
    table = table_of([float(v) for v in rng.random(60) < 0.4], ["a", "b"] * 30)
    found = ts.stratum_difference(table, by="kind", strata=("a", "b"))
    scores = table.frame.sort("scenario")
    counts = [int(scores.filter(pl.col("kind") == kind)["score"].sum()) for kind in ("a", "b")]
    fisher = stats.fisher_exact([[counts[0], 30 - counts[0]], [counts[1], 30 - counts[1]]])
    assert found.details["way"] == "convolution"
    assert found.p_value == pytest.approx(fisher.pvalue, abs=1e-10)  # groups of one size: Fisher's test


def test_clusters_that_are_left_out_are_counted() -> None:
    values = [*np.linspace(0, 1, 14), 5.0, 6.0, 7.0]
    kinds = ["a"] * 7 + ["b"] * 7 + [None, "c", "c"]
    found = ts.stratum_difference(table_of(values, kinds), by="kind", strata=("b", "a"))
    assert (found.n, found.details["n_missing"]) == (14, 1)
    assert [note.code for note in found.notes] == ["missing", "others", "few_clusters"]
    assert found.estimate == pytest.approx(0.5384615384615384, abs=EXACT)


def test_a_stratum_without_variation_has_no_interval() -> None:
    found = ts.stratum_difference(table_of([1.0] * 12 + [0.0] * 12, ["a"] * 12 + ["b"] * 12), by="kind")
    assert (found.estimate, found.conf_low, found.conf_level) == (-1.0, None, None)
    assert found.tidy()["status"][0] == "warning"
    assert "degenerate" in [note.code for note in found.notes]
    assert found.p_value == pytest.approx(2 / 2_704_156, rel=1e-9)  # C(24, 12)


def test_pairs_that_cross_the_strata_are_refused(shared: Shared, refusal: Refusal) -> None:
    """Study 2 asks each case with data and without: a pair is in both strata."""
    responses = pl.read_csv(shared("replication/study2/exact_structured_responses.csv"), infer_schema=False)
    table = ts.ResponseTable(responses, levels=["A", "B", "C", "D"])
    found = ts.stratum_difference(table, by="case_type", n_resamples=99)
    assert [part["n_clusters"] for part in found.details["strata"]] == [30, 30]
    said = refusal(lambda: ts.stratum_difference(table.with_cluster("pair"), by="case_type"))
    assert said.startswith(
        "DesignError: pair 'MH1' is in the strata 'symptoms_only' and 'with_data' of 'case_"
    )
    assert "one of 30 clusters in several" in said


def test_bad_calls_are_refused(refusal: Refusal) -> None:
    rng = np.random.default_rng(3)
    table = gaps(rng, 0.0)
    said = refusal(lambda: ts.stratum_difference(table, by="knd", estimand=GAP))
    assert said.startswith(
        "ArgumentError: `by` names 'knd', which the data do not have. Did you mean 'kind'?"
    )
    said = refusal(lambda: ts.stratum_difference(table, by="kind", estimand=GAP, statistic="t"))  # type: ignore[arg-type]
    assert "`statistic` must be one of 'auto', 'studentised', 'difference'" in said
    said = refusal(lambda: ts.stratum_difference(table, by="kind"))
    assert said.startswith(
        "ArgumentError: `estimand` is needed, as the table has 2 contrasts; give a pair such as"
    )
    said = refusal(lambda: ts.stratum_difference(table, by="kind", strata=("one", "three"), estimand=GAP))
    assert "`strata` must name two different values of 'kind', out of ['one', 'two']" in said
    said = refusal(lambda: ts.stratum_difference(table, by="condition", estimand=GAP))
    assert said.startswith("DesignError: 'condition' is no attribute of scenarios: it is 'alpha' and 'beta'")
    said = refusal(lambda: ts.stratum_difference(table, by="kind", estimand=GAP, model="pp"))
    assert "did you mean 'p'?" in said
    said = refusal(lambda: ts.stratum_difference(table, by="kind", estimand=GAP, interval="bootstrap-t"))
    assert "does not go with scheme='stratified'" in said
    said = refusal(lambda: ts.stratum_difference(table_of([1, 2, 3], ["a", "b", "b"]), by="kind"))
    assert "stratum 'a' has 1 cluster with data, and needs two" in said
    said = refusal(lambda: ts.stratum_difference(table_of([1, 2, 3], ["a", "b", "c"]), by="kind"))
    assert "`strata` is needed, as 'kind' has 3 values" in said
    said = refusal(lambda: ts.stratum_difference({"scenario": [1]}, by="kind"))  # type: ignore[arg-type]
    assert said.startswith("ArgumentTypeError: `table` must be a ResponseTable")


def test_a_model_that_is_in_one_stratum_only_is_refused(refusal: Refusal) -> None:
    table = gaps(np.random.default_rng(3), 0.0)
    rows = table.frame.select("scenario", "model", "condition", "score", "kind")
    lopsided = ts.ResponseTable(rows.filter((pl.col("model") == "p") | (pl.col("kind") == "one")))
    said = refusal(lambda: ts.stratum_difference(lopsided, by="kind", estimand=GAP))
    assert "a model or condition has no data in stratum 'two'" in said
    found = ts.stratum_difference(lopsided, by="kind", estimand=GAP, model="p")
    assert found.n == 9
