"""The regression in `analyze`: the same as `lpm` of the same model, and its notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts

SAME = 1e-9  # pyfixest takes fixed effects off by iteration


def rows(fit: ts.Analysis, **where: Any) -> list[dict[str, Any]]:
    assert fit.regression is not None
    found = fit.regression
    for column, value in where.items():
        found = found.filter(pl.col(column).eq_missing(value))
    return found.to_dicts()


def rows_of(fit: ts.Analysis) -> list[dict[str, Any]]:
    """The pooled rows."""
    return rows(fit, model=None)


def responses() -> pl.DataFrame:
    """The bundled study with judges averaged: one row a response."""
    frame = ts.demo_table().frame.filter(pl.col("score").is_not_null())
    key = ["scenario", "model", "condition", "variant", "repetition"]
    return frame.group_by(key, maintain_order=True).agg(pl.col("score").mean())


def test_it_is_the_least_squares_fit() -> None:
    fit = ts.analyze(ts.demo_table(), n_resamples=99)
    golden = ts.lpm("score ~ condition | scenario^model^variant", responses(), cluster="scenario").tidy()
    (row,) = rows(fit, model=None)
    (own,) = golden.to_dicts()
    for name in ("estimate", "std_error", "statistic", "df", "p_value", "conf_low", "conf_high"):
        assert row[name] == pytest.approx(own[name], rel=SAME), name
    assert row["n_rows"] == own["n_rows"]
    one = ts.lpm(
        "score ~ condition | scenario^variant",
        responses().filter(pl.col("model") == "model_c"),
        cluster="scenario",
    )
    (row,) = rows(fit, model="model_c")
    assert row["estimate"] == pytest.approx(one.tidy()["estimate"].item(), rel=SAME)
    assert row["std_error"] == pytest.approx(one.tidy()["std_error"].item(), rel=SAME)


def two_factors() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    rows = [
        (f"s{s:02}", model, a, b, float(rng.random() < 0.4 + 0.2 * (a == "y") + 0.02 * s))
        for s in range(14)
        for model in ("m", "n")
        for a in ("x", "y")
        for b in ("p", "q", "r")
        if rng.random() < 0.9
    ]
    return pl.DataFrame(rows, schema=["scenario", "model", "a", "b", "score"], orient="row")


def test_each_condition_column_within_the_levels_of_the_others() -> None:
    frame = two_factors()
    fit = ts.analyze(frame, condition=["a", "b"], n_resamples=99)
    for term, other, count in (("a", "b", 1), ("b", "a", 2)):
        golden = ts.lpm(f"score ~ {term} | scenario^model^{other}", frame, cluster="scenario").tidy()
        found = rows(fit, model=None, term=term)
        assert len(found) == count
        assert [row["estimate"] for row in found] == pytest.approx(golden["estimate"].to_list(), rel=SAME)
        assert [row["std_error"] for row in found] == pytest.approx(golden["std_error"].to_list(), rel=SAME)


def test_the_contrast_is_the_regression_where_every_cell_has_one_row() -> None:
    frame = two_factors().filter(pl.col("b") == "p").drop("b")
    whole = frame.filter(pl.len().over("scenario", "model") == 2)
    complete = whole.filter(pl.len().over("scenario") == 4)
    fit = ts.analyze(complete, condition="a", n_resamples=99)
    assert fit.contrasts is not None
    (row,) = rows(fit, model=None)
    assert row["estimate"] == pytest.approx(fit.contrasts["estimate"][0], rel=SAME)


def test_a_disagreement_is_noted() -> None:
    """Twelve scenarios gain a little; one more has most of the answers, and loses all of them."""
    rows = []
    for s in range(13):
        heavy = s == 12
        for repetition in range(60 if heavy else 2):
            for condition in ("a", "b"):
                gains = 0.0 if heavy and condition == "b" else float(heavy or condition == "b" or s % 4 == 0)
                rows.append((f"s{s:02}", repetition, condition, gains))
    frame = pl.DataFrame(rows, schema=["scenario", "repetition", "condition", "score"], orient="row")
    fit = ts.analyze(frame, n_resamples=99)
    assert fit.contrasts is not None
    (row,) = fit.regression.to_dicts() if fit.regression is not None else ()
    contrast = fit.contrasts.row(0, named=True)
    noted = [note for note in fit.notes if note.code == "regression_disagrees"]
    excluded = [not found["conf_low"] <= 0 <= found["conf_high"] for found in (row, contrast)]
    assert excluded == [False, True]
    assert len(noted) == 1
    assert "the regression weighs answers" in noted[0].message


def test_a_difference_of_errors_alone_is_said() -> None:
    """Coarse clusters of unequal size: one estimate, two errors."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        scenario = np.repeat(np.arange(24), 2)
        group = np.minimum(scenario // 2, 6 + scenario % 6)
        gain = rng.normal(0.12, 0.25, 24)[scenario] + rng.normal(0, 0.2, 12)[group]
        score = rng.random(24)[scenario] + np.where(np.arange(48) % 2, gain, 0)
        frame = pl.DataFrame(
            {
                "scenario": [f"s{s:02}" for s in scenario],
                "cluster": [f"g{g:02}" for g in group],
                "condition": ["a", "b"] * 24,
                "score": score,
            }
        )
        fit = ts.analyze(frame, n_resamples=9)
        noted = [note.message for note in fit.notes if note.code == "regression_disagrees"]
        if noted:
            assert "the estimates are alike, their errors are not: CRV1 here, cluster jackknife t" in noted[0]
            return
    pytest.fail("no seed gives a disagreement")


def test_one_scenario_names_what_is_absorbed() -> None:
    rng = np.random.default_rng(2)
    rows = [
        ("s", model, repetition, condition, float(rng.random() < 0.6))
        for model in ("m", "n")
        for repetition in range(14)
        for condition in ("a", "b")
        if rng.random() < 0.9
    ]
    frame = pl.DataFrame(rows, schema=["scenario", "model", "repetition", "condition", "score"], orient="row")
    fit = ts.analyze(frame, cluster="repetition", n_resamples=99)
    golden = ts.lpm("score ~ condition | repetition^model", frame, cluster="repetition").tidy()
    (row,) = rows_of(fit)
    assert "repetition x model absorbed" in row["method"]
    assert row["estimate"] == pytest.approx(golden["estimate"].item(), rel=SAME)


def test_few_clusters_and_perfect_fits_have_no_error() -> None:
    scenario = [f"s{s}" for s in range(3) for _ in range(2)]
    few = ts.analyze(
        {"scenario": scenario, "condition": ["a", "b"] * 3, "score": [0, 1, 1, 1, 0, 0]}, n_resamples=99
    )
    (row,) = rows(few)
    assert (row["status"], row["std_error"], row["conf_low"]) == ("few_clusters", None, None)
    scenario = [f"s{s:02}" for s in range(15) for _ in range(2)]
    perfect = ts.analyze(
        {"scenario": scenario, "condition": ["a", "b"] * 15, "score": [0.1, 0.4] * 15}, n_resamples=99
    )
    (row,) = rows(perfect)
    assert row["estimate"] == pytest.approx(0.3)
    assert (row["status"], row["std_error"], row["p_value"]) == ("degenerate", None, None)


def test_nothing_to_compare_is_none_and_noted() -> None:
    fit = ts.analyze({"scenario": ["a", "b", "c", "d", "e"], "score": [1, 0, 1, 1, 0]}, n_resamples=99)
    assert fit.regression is None
    assert "regression" in next(note.message for note in fit.notes if note.code == "not_computed")
