"""Correlations across models: coefficients, exact p-values, intervals, and the flag for shared noise."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.models.association import coefficient, fisher_interval

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]
Array = np.ndarray[Any, np.dtype[np.float64]]

EXACT = 1e-12
DRAWN = 0.03  # four standard errors of the difference of two p-values of 0.5, of 9,999 draws each
METHODS = ("pearson", "spearman", "kendall")
X = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
Y = [2.0, 1.0, 4.0, 3.0, 6.0, 5.0]


def table_of(scores: Array, levels: tuple[str, ...] = ("a", "b")) -> ts.ResponseTable:
    """A table from scores of shape (scenarios, models, levels)."""
    rows = [
        (f"s{s:03}", f"m{m:02}", level, scores[s, m, place])
        for s in range(scores.shape[0])
        for m in range(scores.shape[1])
        for place, level in enumerate(levels)
    ]
    frame = pl.DataFrame(rows, schema=["scenario", "model", "condition", "score"], orient="row")
    return ts.ResponseTable(frame)


@pytest.fixture(scope="module")
def noisy() -> ts.ResponseTable:
    """Forty models that are all alike: whatever differs between them is noise."""
    rng = np.random.default_rng(5)
    return table_of((rng.random((30, 40, 2)) < 0.5).astype(float))


def test_the_oracle(shared: Shared) -> None:
    families = json.loads(shared("oracles/permutation.json").read_text())["fixtures"]
    (fixture,) = (f for f in families if f["name"] == "correlation_exact_n6")
    expected, tolerance = fixture["expected"], fixture["tolerance"]
    close = {"rel": tolerance["rtol"], "abs": tolerance["atol"]}
    x, y = fixture["input"]["x"], fixture["input"]["y"]
    both = ts.model_correlation(x, y)
    assert both.estimate == pytest.approx(expected["observed"], **close)
    assert both.p_value == pytest.approx(expected["p_two_abs"], **close)
    assert both.details["n_arrangements"] == expected["n_perm"]
    for alternative, key in (("greater", "p_greater"), ("less", "p_less")):
        found = ts.model_correlation(x, y, alternative=alternative)  # type: ignore[arg-type]
        assert found.p_value == pytest.approx(expected[key], **close)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3, -7.0])
def test_rounding_breaks_no_tie(shift: float, scale: float) -> None:
    """The 42 orders tie in any units."""
    found = ts.model_correlation(X, [scale * y + shift for y in Y])
    assert found.p_value == pytest.approx(42 / 720, abs=EXACT)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_coefficients_agree_with_scipy(method: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 12).astype(float), rng.normal(size=12).round(1)
    other = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[method]
    assert coefficient(x, y, method) == pytest.approx(other(x, y).statistic, abs=EXACT)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_p_values_are_those_of_enumeration(method: Any, alternative: Any) -> None:
    x, y = np.array([1.0, 1, 2, 5, 3, 4]), np.array([0.3, 0.1, 0.1, 0.7, 0.9, 0.2])
    own = coefficient(x, y, method)
    null = np.array([coefficient(x, np.array(order), method) for order in itertools.permutations(y)])
    away = {"two-sided": np.abs, "greater": lambda v: v, "less": lambda v: -v}[alternative]
    expected = float(np.mean(away(null) >= away(np.array(own)) - EXACT))
    found = ts.model_correlation(x, y, method=method, alternative=alternative)
    assert found.p_value == pytest.approx(expected, abs=EXACT)


def test_nine_are_enumerated_and_ten_are_drawn() -> None:
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=10), rng.normal(size=10)
    nine, ten = ts.model_correlation(x[:9], y[:9]), ts.model_correlation(x, y, alternative="greater")
    assert (nine.details["way"], nine.details["n_arrangements"]) == ("enumeration", math.factorial(9))
    assert (ten.details["way"], ten.details["n_arrangements"]) == ("drawn", 9_999)
    null = rng.permuted(np.tile(y, (9_999, 1)), axis=1) @ (x - x.mean())
    expected = np.mean(null >= (x - x.mean()) @ y)
    assert ten.p_value == pytest.approx(expected, abs=DRAWN)


@pytest.mark.parametrize("method", METHODS)
def test_swapping_the_sides_or_the_order_changes_nothing(method: Any) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=8), rng.integers(0, 4, 8).astype(float)
    order = rng.permutation(8)
    first = ts.model_correlation(x, y, method=method)
    for other in (
        ts.model_correlation(y, x, method=method),
        ts.model_correlation(x[order], y[order], method=method),
    ):
        assert (other.estimate, other.p_value) == pytest.approx((first.estimate, first.p_value), abs=EXACT)
    turned = ts.model_correlation(-x, y, method=method)
    assert turned.estimate == pytest.approx(-(first.estimate or 0), abs=EXACT)
    assert turned.p_value == pytest.approx(first.p_value, abs=EXACT)


def test_the_interval_is_that_of_scipy_and_of_the_formulas() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=15), rng.normal(size=15)
    found = ts.model_correlation(x, y, conf_level=0.9)
    expected = stats.pearsonr(x, y).confidence_interval(0.9)
    assert (found.conf_low, found.conf_high) == pytest.approx(tuple(expected), abs=EXACT)
    # R package vcmeta, se.spear(.40, 55): the error of the coefficient, by the delta method.
    low, high = fisher_interval(0.40, 55, "spearman", 0.95) or (0.0, 0.0)
    half = (math.atanh(high) - math.atanh(low)) / 2 / stats.norm.ppf(0.975)
    assert half * (1 - 0.4**2) == pytest.approx(0.1210569, abs=5e-8)
    tau = fisher_interval(0.3, 12, "kendall", 0.95) or (0.0, 0.0)
    assert (math.atanh(tau[1]) - math.atanh(tau[0])) / 2 == pytest.approx(
        stats.norm.ppf(0.975) * math.sqrt(0.437 / 8), abs=EXACT
    )


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([1, 2], [3, 4], "2 pairs: a correlation needs at least three."),
        ([1, 1, 1, 1], [1, 2, 3, 4], "'x' is the same for all 4 pairs."),
        ([0.1, 0.1, 0.1], [0.3, 0.3, 0.3], "'x' and 'y' is the same for all 3 pairs."),
    ],
)
def test_what_is_undefined_says_why(x: list[float], y: list[float], said: str) -> None:
    found = ts.model_correlation(x, y)
    assert (found.estimate, found.p_value, found.conf_low) == (None, None, None)
    assert found.undefined == said


def test_few_models_carry_notes_and_a_perfect_correlation_no_interval() -> None:
    three = ts.model_correlation([1, 2, 3], [1, 2, 4])
    assert [note.code for note in three.notes] == ["few_models", "no_interval", "smallest_p"]
    assert three.p_value == pytest.approx(1 / 3, abs=EXACT)
    line = ts.model_correlation(X, X)
    assert line.estimate == pytest.approx(1.0, abs=EXACT)
    assert line.conf_low is None
    assert line.p_value == pytest.approx(2 / 720, abs=EXACT)
    assert line.tidy()["status"][0] == "warning"
    many = ts.model_correlation(np.arange(12.0), np.arange(12.0) % 5)
    assert many.notes == ()


def test_missing_values_are_refused_or_left_out(refusal: Refusal) -> None:
    x, y = [*X, 9.0], [*Y, None]
    assert "missing value in `x` or `y`" in refusal(lambda: ts.model_correlation(x, y))
    found = ts.model_correlation(x, y, missing="omit")
    assert (found.n, found.details["n_missing"]) == (6, 1)
    assert found.p_value == pytest.approx(42 / 720, abs=EXACT)


def test_a_published_rank_correlation(shared: Shared) -> None:
    frame = pl.read_csv(shared("replication/medsafe/severity_scales.csv"))
    expected = json.loads(shared("replication/medsafe/expected.json").read_text())["severity_scales"]
    found = ts.model_correlation("ddxplus_severity", "reference_level", data=frame, method="spearman")
    assert found.estimate == pytest.approx(expected["spearman"], abs=EXACT)
    assert found.n == 49


def test_quantities_of_models_are_those_of_analyze(noisy: ts.ResponseTable) -> None:
    found = ts.model_correlation("a", "b", data=noisy)
    rates = ts.analyze(noisy, n_resamples=99).rates.filter(pl.col("model").is_not_null())
    for side, level in (("x", "a"), ("y", "b")):
        expected = rates.filter(pl.col("condition") == level).sort("model")["estimate"].to_list()
        assert found.details[side] == pytest.approx(expected, abs=EXACT)
    assert (found.n, found.details["models"][:2]) == (40, ["m00", "m01"])
    assert "shared" not in found.details


def test_a_change_and_its_baseline_are_flagged(noisy: ts.ResponseTable) -> None:
    """All models are alike, so that the change goes with its baseline by noise alone."""
    found = ts.model_correlation(ts.Mean("a"), ts.Difference("b", "a"), data=noisy)
    assert found.estimate is not None
    assert found.estimate < -0.5
    assert found.p_value == pytest.approx(1e-4, abs=EXACT)
    (note,) = (note for note in found.notes if note.code == "shared_noise")
    assert note.message.startswith("Both quantities hold the scores at ['a'], and so the same noise")
    assert found.details["shared"] == ["a"]
    for key in ("split_half", "oldham"):
        assert abs(found.details[key]["estimate"]) < 0.35
        assert found.details[key]["p_value"] > 0.05


def test_the_alternatives_are_what_they_say(noisy: ts.ResponseTable) -> None:
    """Oldham's correlation compares two spreads; halves repeat for the same seed."""
    found = ts.model_correlation(ts.Difference("b", "a"), ts.Mean("a"), data=noisy)
    a, change = np.array(found.details["y"]), np.array(found.details["x"])
    b = a + change
    expected = np.corrcoef(b - a, (a + b) / 2)[0, 1]
    assert found.details["oldham"]["estimate"] == pytest.approx(expected, abs=EXACT)
    again = ts.model_correlation(ts.Difference("b", "a"), ts.Mean("a"), data=noisy)
    assert again.details == found.details
    kendall = ts.model_correlation(ts.Mean("a"), ts.Difference("b", "a"), data=noisy, method="kendall")
    assert kendall.details["split_half"]["p_value"] is None
    assert abs(kendall.details["split_half"]["estimate"]) < 0.35


def test_split_halves_keep_a_correlation_that_is_there() -> None:
    """The better a model at the baseline, the less it loses: half of the range, and little noise."""
    rng = np.random.default_rng(6)
    ability = np.linspace(0.3, 0.9, 12)
    p = np.stack([ability, 0.3 * ability], axis=-1)
    table = table_of((rng.random((200, 12, 2)) < p).astype(float))
    found = ts.model_correlation(ts.Mean("b"), ts.Gap("a", ["b"]), data=table)
    assert found.details["shared"] == ["b"]
    assert found.estimate == pytest.approx(
        np.corrcoef(found.details["x"], found.details["y"])[0, 1], abs=EXACT
    )
    for key in ("split_half", "oldham"):
        assert found.details[key]["estimate"] > 0.6
        assert found.details[key]["p_value"] < 0.01


def test_levels_overlap_through_factors(refusal: Refusal) -> None:
    """A level of one factor holds the rows of the levels of the other."""
    rng = np.random.default_rng(7)
    frame = pl.DataFrame(
        [(s, m, arm, voice, float(rng.random() < 0.6))
         for s in range(8) for m in "pqrst" for arm in ("x", "y") for voice in ("u", "v")],
        schema=["scenario", "model", "arm", "voice", "score"], orient="row",
    )  # fmt: skip
    table = ts.ResponseTable(frame, condition=["arm", "voice"])
    found = ts.model_correlation(ts.Mean("x"), ts.Difference("v", "u"), data=table)
    assert found.details["shared"] == ["arm=x, voice=u", "arm=x, voice=v"]
    assert found.details["oldham"] is None
    apart = ts.model_correlation("arm=x, voice=u", "arm=y, voice=v", data=table)
    assert "shared" not in apart.details
    assert "same quantity" in refusal(lambda: ts.model_correlation("x", ts.Mean("x"), data=table))


def test_columns_that_are_constant_in_a_model(noisy: ts.ResponseTable, refusal: Refusal) -> None:
    frame = noisy.frame.with_columns(
        size=pl.col("model").str.slice(1).cast(pl.Float64), words=pl.int_range(pl.len()).cast(pl.Float64)
    )
    table = ts.ResponseTable(frame.drop("status", "reason", strict=False))
    found = ts.model_correlation("size", "a", data=table)
    assert found.details["x"][:3] == [0.0, 1.0, 2.0]
    said = refusal(lambda: ts.model_correlation("words", "a", data=table))
    assert said.startswith("DesignError: column 'words' has several values for model 'm00'")
    said = refusal(lambda: ts.model_correlation("sizes", "a", data=table))
    assert "did you mean 'size'?" in said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ts.model_correlation(ts.Mean("a"), [1, 2, 3]), "an estimand needs its ResponseTable"),
        (lambda: ts.model_correlation([1, 2, 3], [1, 2]), "`x` and `y` must pair"),
        (lambda: ts.model_correlation(X, Y, method="phi"), "`method` must be one of 'pearson', 'spearman'"),
        (lambda: ts.model_correlation(X, Y, conf_level=95), "did you mean 0.95?"),
    ],
)
def test_bad_calls_are_refused(call: Callable[[], object], said: str, refusal: Refusal) -> None:
    assert said in refusal(call)


def test_models_without_both_quantities_are_named(noisy: ts.ResponseTable, refusal: Refusal) -> None:
    frame = noisy.frame.select("scenario", "model", "condition", "score")
    without = frame.filter((pl.col("model") != "m03") | (pl.col("condition") == "a"))
    found = ts.model_correlation("a", "b", data=ts.ResponseTable(without))
    assert (found.n, found.details["n_missing"]) == (39, 1)
    assert "Without both quantities, and left out: ['m03']." in [str(note) for note in found.notes]
    alone = ts.ResponseTable(frame.filter(pl.col("model") == "m00").drop("model"))
    assert "no model column" in refusal(lambda: ts.model_correlation("a", "b", data=alone))
