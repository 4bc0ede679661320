"""combine_pvalues: closed forms, laws under the hypothesis, ends, signs, weights and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts

CLOSED = 1e-11  # a closed form against the tail of a law
EVEN = 0.01  # share of 1,000 evenly spread points in a region, off its area

Refusal = Callable[[Callable[[], object]], str]
METHODS = ("fisher", "stouffer", "cauchy", "tippett", "pearson", "simes")
INDEPENDENT = ("fisher", "stouffer", "tippett", "pearson")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", [0.0, 1e-300, 1e-12, 0.2, 0.5, 0.9999, 1.0])
def test_one_p_value_is_itself(method: str, p: float) -> None:
    assert ts.combine_pvalues([p], method=method).p_value == pytest.approx(p, rel=1e-9)


def test_two_p_values_by_hand() -> None:
    """For k = 2 the chi-square tail is w (1 - log w), w the product."""
    w = 0.01 * 0.4
    assert ts.combine_pvalues([0.01, 0.4]).p_value == pytest.approx(w * (1 - math.log(w)), rel=CLOSED)
    v = 0.99 * 0.6
    pearson = ts.combine_pvalues([0.01, 0.4], method="pearson").p_value
    assert pearson == pytest.approx(1 - v * (1 - math.log(v)), rel=CLOSED)
    assert ts.combine_pvalues([0.01, 0.4], method="tippett").p_value == pytest.approx(1 - 0.99**2, rel=CLOSED)
    assert ts.combine_pvalues([0.01, 0.4], method="simes").p_value == pytest.approx(0.02, rel=CLOSED)
    z = stats.norm.isf([0.01, 0.4]).sum() / 2**0.5
    stouffer = ts.combine_pvalues([0.01, 0.4], method="stouffer")
    assert (stouffer.statistic, stouffer.p_value) == (
        pytest.approx(z, rel=CLOSED),
        pytest.approx(stats.norm.sf(z), rel=CLOSED),
    )
    t = (math.tan(0.49 * math.pi) + math.tan(0.1 * math.pi)) / 2
    cauchy = ts.combine_pvalues([0.01, 0.4], method="cauchy").p_value
    assert cauchy == pytest.approx(0.5 - math.atan(t) / math.pi, rel=CLOSED)


@pytest.mark.parametrize("method", METHODS)
def test_uniform_under_the_hypothesis(method: str) -> None:
    """Over two independent uniform p-values the combined one is uniform."""
    points = np.outer(np.arange(1, 1_001), [0.7548776662466927, 0.5698402909980532]) % 1
    found = np.array([ts.combine_pvalues(pair, method=method).p_value for pair in points])
    for level in (0.05, 0.2, 0.5, 0.8):
        assert (found <= level).mean() == pytest.approx(level, abs=EVEN)


@pytest.mark.parametrize("method", METHODS)
def test_order_does_not_matter(method: str) -> None:
    p = [0.04, 0.7, 0.2, 0.001, 0.5]
    first = ts.combine_pvalues(p, method=method).p_value
    assert ts.combine_pvalues(p[::-1], method=method).p_value == pytest.approx(first, rel=CLOSED)


@pytest.mark.parametrize("method", METHODS)
def test_smaller_p_values_combine_to_a_smaller_one(method: str) -> None:
    found = [ts.combine_pvalues([p, 0.3, 0.6], method=method).p_value for p in (1e-200, 1e-8, 0.01, 0.3, 0.9)]
    assert found == sorted(found)
    assert all(p is not None and p > 0 for p in found)


@pytest.mark.parametrize("method", ["fisher", "stouffer", "cauchy", "tippett", "simes"])
def test_zero_makes_zero_and_is_noted(method: str) -> None:
    result = ts.combine_pvalues([0, 0.5], method=method)
    assert result.p_value == 0.0
    assert "1 p-values are exactly 0" in result.notes[-1].message
    assert result.details["harmonic_mean_raw"] == 0.0


@pytest.mark.parametrize("method", ["stouffer", "cauchy", "pearson"])
def test_one_makes_one_and_is_noted(method: str) -> None:
    result = ts.combine_pvalues([1, 1e-9], method=method)
    assert result.p_value == 1.0
    assert "1 p-values are exactly 1" in result.notes[-1].message
    assert ts.combine_pvalues([1, 1e-9], method="fisher").p_value == pytest.approx(
        1e-9 * (1 - math.log(1e-9)), rel=CLOSED
    )


@pytest.mark.parametrize("method", ["stouffer", "cauchy"])
def test_zero_and_one_are_undefined(method: str) -> None:
    result = ts.combine_pvalues([0, 1, 0.5], method=method)
    assert (result.statistic, result.p_value) == (None, None)
    assert result.undefined == "P-values of 0 and of 1, or of 0 in both directions, add up to no number."


def test_cauchy_next_to_one_keeps_its_digits() -> None:
    """cot(pi (1 - e)) = -cot(pi e), about -1 / (pi e)."""
    e = 2.0**-40
    result = ts.combine_pvalues([1 - e], method="cauchy")
    assert result.statistic == pytest.approx(-1 / (math.pi * e), rel=CLOSED)


def test_weights() -> None:
    p = [0.01, 0.2, 0.3]
    z = stats.norm.isf(p)
    result = ts.combine_pvalues(p, method="stouffer", weights=[1, 2, 3])
    assert result.statistic == pytest.approx(float(z @ [1, 2, 3]) / 14**0.5, rel=CLOSED)
    assert result.method == "Stouffer's combination, weighted"
    for method in ("stouffer", "cauchy"):
        equal = ts.combine_pvalues(p, method=method, weights=[5, 5, 5]).p_value
        assert equal == pytest.approx(ts.combine_pvalues(p, method=method).p_value, rel=CLOSED)
    dropped = ts.combine_pvalues([0.01, None, 0.3], method="stouffer", weights=[1, 2, 3])
    kept = ts.combine_pvalues([0.01, 0.3], method="stouffer", weights=[1, 3])
    assert dropped.p_value == kept.p_value


def test_signs_give_two_sided_p_values_their_direction() -> None:
    z = np.array([1.5, -2.1, 2.4])
    result = ts.combine_pvalues(2 * stats.norm.sf(np.abs(z)), method="stouffer", signs=z)
    assert result.statistic == pytest.approx(z.sum() / 3**0.5, rel=1e-9)
    assert result.p_value == pytest.approx(2 * stats.norm.sf(z.sum() / 3**0.5), rel=1e-9)
    assert result.alternative == "two-sided"
    turned = ts.combine_pvalues(2 * stats.norm.sf(np.abs(z)), method="stouffer", signs=-z)
    assert turned.p_value == result.p_value
    assert turned.statistic == pytest.approx(-result.statistic)
    against = ts.combine_pvalues([0.03, 0.03], method="stouffer", signs=[1, -1])
    assert (against.statistic, against.p_value) == (0.0, 1.0)


def test_missing_p_values_are_counted() -> None:
    result = ts.combine_pvalues([0.01, None, 0.2, math.nan, 0.3])
    assert result.p_value == ts.combine_pvalues([0.01, 0.2, 0.3]).p_value
    assert (result.n, result.details["n_missing"]) == (3, 2)
    assert result.notes[0].message == "2 of 5 p-values are missing and not counted."


def test_tests_and_tables_are_read() -> None:
    tests = [
        ts.fisher_exact([[3, 1], [1, 3]]),
        ts.bowker([[30, 12], [4, 50]]),
        ts.chi_square([[0, 0], [1, 2]]),
    ]
    result = ts.combine_pvalues(tests)
    assert result.details["n_missing"] == 1
    frame = pl.concat([test.tidy() for test in tests])
    assert ts.combine_pvalues(frame).p_value == result.p_value


@pytest.mark.parametrize("method", METHODS)
def test_assumptions_are_said(method: str) -> None:
    codes = [note.code for note in ts.combine_pvalues([0.2, 0.3], method=method).notes]
    assert ("independence" in codes) == (method in INDEPENDENT)
    assert ("one_sided" in codes) == (method == "stouffer")


REFUSED: dict[str, Callable[[], object]] = {
    "ArgumentError: `p_values` must lie between 0 and 1; got 1.2 in place 1 (from 0)": (
        lambda: ts.combine_pvalues([0.1, 1.2])
    ),
    "ArgumentError: `p_values` must lie between 0 and 1; got -0.1 in place 0 (from 0)": (
        lambda: ts.combine_pvalues([-0.1, 0.2])
    ),
    "ArgumentError: `p_values` holds no value": lambda: ts.combine_pvalues([]),
    "ArgumentTypeError: `p_values` must hold numbers; got 'low'": lambda: ts.combine_pvalues(["low"]),
    "DataError: all p-values are missing": lambda: ts.combine_pvalues([None, math.nan]),
    "DataError: 1 of 2 p-values are missing; leave them out with missing='omit'": (
        lambda: ts.combine_pvalues([0.1, None], missing="raise")
    ),
    "ArgumentError: `weights` are for method='stouffer' or 'cauchy'; 'fisher' has none": (
        lambda: ts.combine_pvalues([0.1], weights=[1])
    ),
    "ArgumentError: `weights` must be positive; got 0": (
        lambda: ts.combine_pvalues([0.1, 0.2], method="stouffer", weights=[1, 0])
    ),
    "ArgumentError: `weights` must have one number a p-value: expected 2, got 1": (
        lambda: ts.combine_pvalues([0.1, 0.2], method="stouffer", weights=[1])
    ),
    "ArgumentError: `signs` are for method='stouffer'; 'cauchy' has no direction": (
        lambda: ts.combine_pvalues([0.1], method="cauchy", signs=[1])
    ),
    "ArgumentError: `signs` is missing beside a p-value that is not": (
        lambda: ts.combine_pvalues([0.1, 0.2], method="stouffer", signs=[1, None])
    ),
    "ArgumentError: `p_values` is a table without the column 'p_value'; its columns are ['p']": (
        lambda: ts.combine_pvalues({"p": [0.1]})
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(refusal: Refusal, message: str) -> None:
    assert refusal(REFUSED[message]) == message
