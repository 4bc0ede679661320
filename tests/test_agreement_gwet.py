"""Gwet's AC1 and AC2: by hand, their error, missing ratings, and one category."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # rounding of sums of a few hundred terms
NEAR = 0.1  # share by which a bootstrap error of 100 units may differ from a large-sample one
TABLE = [[118, 5], [2, 0]]


def units_of(table: list[list[int]]) -> list[list[int]]:
    return [[i, j] for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]


def test_two_raters_by_hand() -> None:
    units = units_of(TABLE)
    test = ts.gwet_ac1(units)
    share = (123 + 120) / 250
    chance = 2 * share * (1 - share)
    assert test.estimate == pytest.approx((118 / 125 - chance) / (1 - chance), abs=EXACT)
    assert test.estimate == pytest.approx(ts.cohen_kappa(TABLE).details["gwet_ac1"], abs=EXACT)


def test_error_of_two_raters_by_its_formula() -> None:
    """Gwet (2008): u_i = (a_i - pe) / (1 - pe) - 2 (1 - AC1) (pe_i - pe) / (1 - pe)."""
    draw = np.random.default_rng(1)
    units = draw.integers(0, 3, (40, 3))
    test = ts.gwet_ac1(units, categories=[0, 1, 2])
    counts = np.stack([(units == c).sum(axis=1) for c in range(3)], axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / 6
    share = counts.mean(axis=0) / 3
    chance = (share * (1 - share)).sum() / 2
    value = (agreeing.mean() - chance) / (1 - chance)
    of_unit = (counts @ (1 - share)) / 3 / 2
    spread = (agreeing - chance) / (1 - chance) - 2 * (1 - value) * (of_unit - chance) / (1 - chance)
    error = np.sqrt(((spread - value) ** 2).sum() / (40 * 39))
    assert test.estimate == pytest.approx(value, abs=EXACT)
    assert test.details["std_error"] == pytest.approx(error, rel=1e-10)
    assert test.details["df"] == 39


def test_resampled_units_agree_with_the_error() -> None:
    draw = np.random.default_rng(2)
    base = draw.integers(0, 3, 150)
    units = np.where(draw.random((150, 3)) < 0.6, base[:, None], draw.integers(0, 3, (150, 3)))
    for weights in (None, "linear"):
        call = ts.gwet_ac1 if weights is None else ts.gwet_ac2
        given = {} if weights is None else {"weights": weights}
        linear = call(units, **given)
        for interval in ("percentile", "jackknife-t"):
            drawn = call(units, **given, interval=interval, n_resamples=1_999)
            assert drawn.details["std_error"] == pytest.approx(linear.details["std_error"], rel=NEAR)
            assert drawn.p_value is None
    clustered = ts.gwet_ac1(units, clusters=np.arange(150) // 3, n_resamples=999)
    assert clustered.details["n_clusters"] == 50


def test_single_ratings_count_in_the_margins_only() -> None:
    units = [["a", "a"], ["b", "b"], ["a", "b"], ["b", None]]
    test = ts.gwet_ac1(units)
    share = (1 + 0 + 0.5 + 0) / 4
    chance = 2 * share * (1 - share)
    assert test.details["observed"] == pytest.approx(2 / 3, abs=EXACT)
    assert test.estimate == pytest.approx((2 / 3 - chance) / (1 - chance), abs=EXACT)
    assert (test.details["n_units"], test.details["n_single"], test.n) == (3, 1, 4)


def test_one_category() -> None:
    alone = ts.gwet_ac1([["a", "a"]] * 3)
    assert alone.estimate is None
    assert alone.undefined is not None
    assert "give all as `categories`" in alone.undefined
    assert alone.details["observed"] == 1
    declared = ts.gwet_ac1([["a", "a"]] * 3, categories=["a", "b"])
    assert declared.estimate == 1
    assert declared.conf_low is declared.p_value is None
    assert [note.code for note in declared.notes] == ["degenerate"]


def test_the_number_of_categories_matters_and_is_noted() -> None:
    units = [["a", "a"], ["b", "b"], ["a", "b"]]
    two, four = ts.gwet_ac1(units), ts.gwet_ac1(units, categories=list("abcd"))
    assert two.estimate != four.estimate
    assert [note.code for note in two.notes if note.code == "categories"] == ["categories"]
    assert "categories" not in [note.code for note in four.notes]


def test_ac2_by_hand() -> None:
    units = [[1, 1], [2, 2], [4, 4], [2, 3], [1, 2], [3, 3]]
    test = ts.gwet_ac2(units, weights="quadratic", categories=[1, 2, 3, 4])
    weights = 1 - np.subtract.outer(np.arange(4), np.arange(4)) ** 2 / 9
    share = np.array([3, 4, 3, 2]) / 12
    chance = weights.sum() / 12 * (share * (1 - share)).sum()
    observed = (4 + 2 * (1 - 1 / 9)) / 6
    assert test.estimate == pytest.approx((observed - chance) / (1 - chance), abs=EXACT)
    given = ts.gwet_ac2(units, weights=weights, categories=[1, 2, 3, 4])
    assert given.estimate == pytest.approx(test.estimate, abs=EXACT)
    identity = ts.gwet_ac2(units, weights=np.eye(4), categories=[1, 2, 3, 4])
    assert identity.estimate == pytest.approx(ts.gwet_ac1(units).estimate, abs=EXACT)


def test_p_value_deep_in_the_tail() -> None:
    test = ts.gwet_ac1(units_of([[50, 1], [0, 50]]))
    assert test.p_value is not None
    assert 0 < test.p_value < 1e-60


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.gwet_ac2([["a", "b"]], weights="linear"), "needs the order of the categories"),
        (lambda: ts.gwet_ac2([[1, 2]], weights="ordinal"), "`weights` must be one of 'linear', 'quadratic'"),
        (
            lambda: ts.gwet_ac2([[1, 2]], weights=[[1, 0.5], [0, 1]], categories=[1, 2]),
            "`weights` must be symmetric",
        ),
        (lambda: ts.gwet_ac1([["a", None], [None, "b"]]), "no unit with two ratings"),
        (lambda: ts.gwet_ac1([["a", "b"]], clusters=[1, 2]), "one label a row: expected 1, got 2"),
    ],
)
def test_bad_input(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)
