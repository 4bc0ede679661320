"""`ts.mixed` by both engines, and `analyze(bayes=True)`: what a user sees."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts

FORMULA = "correct ~ condition + (1 | scenario) + (1 | scenario:condition)"
FAST: dict[str, Any] = {"draws": 400, "tune": 400, "chains": 2}
ERRORS = 5.0
"""Monte Carlo errors that a posterior mean may be off."""


@pytest.fixture(scope="module")
def table() -> ts.ResponseTable:
    return ts.demo_table()


@pytest.fixture(scope="module")
def laplace(table: ts.ResponseTable) -> ts.MixedModel:
    return ts.mixed(FORMULA, table, judge="judge_1", margin=0.05)


@pytest.fixture(scope="module")
def bayes(table: ts.ResponseTable) -> ts.BayesianMixedModel:
    return ts.mixed(FORMULA, table, judge="judge_1", margin=0.05, engine="bayes", **FAST)


def test_engines_name_the_same_things(laplace: ts.MixedModel, bayes: ts.BayesianMixedModel) -> None:
    by = ["estimand", "term", "condition", "contrast"]
    one = laplace.tidy().select(by).unique()
    other = bayes.tidy().select(by).unique()
    assert one.join(other, on=by, how="anti", nulls_equal=True).is_empty()
    assert set(other["estimand"]) - set(one["estimand"]) == {"share of variance"}


def test_engines_agree_on_a_table_with_much_data(
    laplace: ts.MixedModel, bayes: ts.BayesianMixedModel
) -> None:
    """To half a standard error: priors and the approximation move estimates by less."""
    by = ["estimand", "term", "condition", "contrast"]
    both = (
        laplace.tidy()
        .join(bayes.tidy(), on=by, nulls_equal=True)
        .filter(pl.col("estimand").str.starts_with("population"))
    )
    assert both.height == 4
    apart = (both["estimate"] - both["estimate_right"]).abs() / both["std_error"]
    assert apart.max() < 0.5


def test_the_same_call_gives_the_same_bits(table: ts.ResponseTable, bayes: ts.BayesianMixedModel) -> None:
    again = ts.mixed(FORMULA, table, judge="judge_1", margin=0.05, engine="bayes", n_threads=1, **FAST)
    assert np.array_equal(again.draws.coefficients, bayes.draws.coefficients)
    assert again.tidy().equals(bayes.tidy())


def test_results_pickle_and_become_json(laplace: ts.MixedModel, bayes: ts.BayesianMixedModel) -> None:
    for fit in (laplace, bayes):
        assert pickle.loads(pickle.dumps(fit)).tidy().equals(fit.tidy())
        assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["schema_version"]
        assert fit.glance().height == 1
        assert fit.tidy().columns == ts.analyze(ts.demo_table(), n_resamples=99).tidy().columns


def test_another_level_reads_the_same_fit(laplace: ts.MixedModel, bayes: ts.BayesianMixedModel) -> None:
    for fit in (laplace, bayes):
        wide, narrow = (fit.with_level(level).tidy()[0] for level in (0.99, 0.8))
        assert wide["estimate"][0] == narrow["estimate"][0]
        assert wide["conf_low"][0] < narrow["conf_low"][0] < narrow["conf_high"][0] < wide["conf_high"][0]


def test_a_margin_gives_verdicts_in_the_right_direction(table: ts.ResponseTable) -> None:
    found = [
        ts.mixed(FORMULA, table, judge="judge_1", margin=0.5, higher_is_better=higher).tidy()["verdict"][3]
        for higher in (True, False)
    ]
    assert found == ["equivalent", "equivalent"]
    plain = "correct ~ condition + (1 | scenario)"  # too sure of itself, which serves here
    directed = [
        ts.mixed(plain, table, judge="judge_1", higher_is_better=higher).tidy()["verdict"][3]
        for higher in (True, False)
    ]
    assert directed == ["worse", "better"]


def test_too_few_draws_withhold_verdicts(table: ts.ResponseTable) -> None:
    fit = ts.mixed(FORMULA, table, judge="judge_1", engine="bayes", draws=20, tune=30, chains=2)
    assert not fit.diagnostics.ok
    assert repr(fit).startswith("NOT RELIABLE, verdicts withheld")
    assert fit.tidy()["verdict"].null_count() == fit.tidy().height


def test_separation_ends_with_a_note_and_priors_keep_it_finite() -> None:
    rows = {
        "scenario": [s for s in "abcdefgh" for _ in range(6)],
        "condition": ["x", "x", "x", "y", "y", "y"] * 8,
        "correct": [1, 0, 1, 1, 1, 1] * 8,
    }
    fit = ts.mixed("correct ~ condition + (1 | scenario)", rows)
    assert not fit.converged
    assert repr(fit).startswith("NOT CONVERGED")
    assert "not_converged" in [note.code for note in fit.notes]
    bayes = ts.mixed("correct ~ condition + (1 | scenario)", rows, engine="bayes", **FAST)
    odds = bayes.tidy().filter(estimand="log odds")["estimate"]
    assert odds.is_finite().all()
    assert odds.abs().max() < 10


def test_pairs_and_quadrature(table: ts.ResponseTable) -> None:
    one = ts.mixed("correct ~ condition + (1 | scenario)", table, judge="judge_1")
    more = ts.mixed("correct ~ condition + (1 | scenario)", table, judge="judge_1", nodes=15)
    assert more.glance()["engine"][0] == "quadrature"
    assert one.loglik == pytest.approx(more.loglik, abs=0.5)  # 146 rows a scenario leave little to correct


def test_analyze_adds_the_model(table: ts.ResponseTable) -> None:
    fit = ts.analyze(table, bayes=True, margin=0.05, n_resamples=99)
    assert fit.mixed is not None
    model = fit.mixed_model
    assert model is not None
    assert model.formula == (
        "score ~ condition + (1 | scenario) + (1 | scenario:condition) + (1 | model) + (1 | scenario:model)"
    )
    assert "population-averaged probability" in set(fit.tidy()["estimand"])
    assert "Differences of a mixed model" in str(fit)
    assert fit.with_level(0.8).mixed["conf_level"].drop_nulls().unique().to_list() == [0.8]
    assert "mixed_judge" in [note.code for note in fit.notes]
    without = ts.analyze(table, n_resamples=99)
    assert without.mixed is None
    assert without.mixed_model is None


def test_analyze_says_why_there_is_no_model() -> None:
    graded = {
        "scenario": [f"s{i // 2}" for i in range(24)],
        "condition": ["x", "y"] * 12,
        "score": [0.5, 1.0, 0.0] * 8,
    }
    fit = ts.analyze(graded, bayes=True, n_resamples=99)
    assert fit.mixed is None
    notes = {note.code: note.message for note in fit.notes}
    assert notes["no_mixed"].startswith("No mixed model: the scores are not all 0 or 1.")


BAD = [
    (
        {"nodes": 3, "engine": "bayes"},
        "ArgumentError: `nodes` is of the Laplace engine; got 3 with engine='bayes'",
    ),
    ({"priors": ts.Priors()}, "ArgumentError: `priors` are of engine='bayes'; maximum likelihood has none"),
    (
        {"nodes": 5},
        (
            "ArgumentError: `nodes` above 1 are for a binomial or ordinal model with one random intercept; "
            "this one is binomial with random effects of scenario, scenario:condition. Leave `nodes` out"
        ),
    ),
    ({"reml": "yes"}, "ArgumentTypeError: `reml` must be True or False; got 'yes'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_refusals(
    options: dict[str, Any],
    message: str,
    table: ts.ResponseTable,
    refusal: Callable[[Callable[[], object]], str],
) -> None:
    assert refusal(lambda: ts.mixed(FORMULA, table, judge="judge_1", **options)) == message


def test_bayes_needs_rows(table: ts.ResponseTable, refusal: Callable[[Callable[[], object]], str]) -> None:
    said = refusal(lambda: ts.analyze(table.frame.lazy(), bayes=True))
    assert said == "ArgumentError: `bayes` needs rows, and `data` is lazy: collect it first"


def test_study_2_beside_its_clusters(shared: Callable[[str], Path]) -> None:
    """Four formats, crossed scenarios and models, scenarios in pairs, scores of the first judge."""
    folder = shared("replication/study2/expected.json").parent
    key = ["scenario", "model", "format", "repetition"]
    parts = []
    for name in ("exact_structured", "natural_forced_letter", "natural_free_text", "source_stripped"):
        rows = pl.read_csv(folder / f"{name}_responses.csv", infer_schema=False).rename({"response": "label"})
        if (path := folder / f"{name}_judgments.csv").exists():
            first = pl.read_csv(path, infer_schema=False).filter(judge="gpt-5.4-xhigh").select(*key, "label")
            rows = rows.drop("label").join(first, on=key)
        parts.append(rows.select(*key, "pair", "label", "gold_low", "gold_high"))
    levels = ["exact_structured", "natural_forced_letter", "natural_free_text", "source_stripped"]
    table = (
        pl.concat(parts)
        .filter(pl.col("label").is_not_null())
        .with_columns(
            pl.col("format").cast(pl.Enum(levels)),
            correct=pl.col("label").is_between(pl.col("gold_low"), pl.col("gold_high")).cast(pl.Int8),
        )
    )
    assert table.height == 672 + 718 + 702 + 360
    fit = ts.mixed(
        "correct ~ format + (1 | pair/scenario) + (1 | model) + (1 | scenario:format) + (1 | scenario:model)",
        table,
    )
    assert fit.converged
    clustered = ts.analyze(
        table, scenario="scenario", condition="format", score="correct", cluster="pair", gold=False,
        response=False, n_resamples=99,
    ).contrasts  # fmt: skip
    found = fit.tidy().filter(
        pl.col("estimand") == "population-averaged probability", pl.col("contrast").is_not_null()
    )
    both = found.join(clustered.filter(pl.col("model").is_null()), on="contrast")
    assert both.height == 3
    # The model averages over new models and pairs, the contrast over matched cells: alike, not the same.
    apart = (both["estimate"] - both["estimate_right"]).abs() / both["std_error_right"]
    assert apart.max() < 1.5
