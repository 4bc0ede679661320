"""chi_square and trend_test: hand-computed values, limits, symmetries, small counts and bad input."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import triagestats as ts

SUMS = 1e-12  # the same sum in another order
PUBLISHED = 1e-9  # printed with more digits than that

Refusal = Callable[[Callable[[], object]], str]


def test_published_chi_square_of_study_1(shared: Callable[[str], Path]) -> None:
    """Variant by correct over all 1,275 constrained answers."""
    folder = shared("replication/study1/expected.json").parent
    published = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["published"]
    expected = next(entry for entry in published if entry["id"] == "s1_chi2_variant")["recomputed"]
    rows = pl.read_csv(folder / "constrained_responses.csv").with_columns(
        (pl.col("response") == pl.col("gold_low")).fill_null(value=False).alias("right")
    )
    result = ts.chi_square("variant", "right", data=rows)
    assert [row[1] for row in result.details["table"]] == list(expected["correct"].values())
    assert result.statistic == pytest.approx(expected["chi2"], rel=PUBLISHED)
    assert result.details["df"] == expected["df"]
    assert result.p_value == pytest.approx(expected["p"], rel=PUBLISHED)
    note = next(note for note in result.notes if note.code == "independence")
    assert "17 clusters (scenario)" in note.message
    # Every scenario has every variant, and both answers.
    assert "the groups vary within clusters, so that permutation_test(a, b, clusters=...)" in note.message


def test_by_hand() -> None:
    """Rows 10 and 10, columns 12 and 8: expected 6, 4, 6, 4."""
    result = ts.chi_square([[8, 2], [4, 6]])
    assert result.statistic == pytest.approx(4 / 6 + 4 / 4 + 4 / 6 + 4 / 4, rel=SUMS)
    assert result.details["expected"] == [[6.0, 4.0], [6.0, 4.0]]
    assert result.estimate == pytest.approx((10 / 3 / 20) ** 0.5, rel=SUMS)
    g = 2 * (8 * math.log(8 / 6) + 2 * math.log(2 / 4) + 4 * math.log(4 / 6) + 6 * math.log(6 / 4))
    assert ts.chi_square([[8, 2], [4, 6]], method="g").statistic == pytest.approx(g, rel=SUMS)
    corrected = ts.chi_square([[8, 2], [4, 6]], correction=True)
    assert corrected.statistic == pytest.approx(2 * 1.5**2 / 6 + 2 * 1.5**2 / 4, rel=SUMS)
    assert "Yates" in corrected.method


def test_correction_stops_at_zero() -> None:
    """Deviations of 1/4 shrink to 0, not to -1/4."""
    result = ts.chi_square([[3, 3], [4, 3]], correction=True)
    assert result.statistic == pytest.approx(0.0, abs=SUMS)
    assert result.p_value == pytest.approx(1.0, abs=1e-6)


def test_independence_and_its_opposite() -> None:
    none = ts.chi_square([[2, 4, 6], [1, 2, 3]])
    assert none.statistic == pytest.approx(0.0, abs=SUMS)
    assert none.details["cramers_v_bias_corrected"] == 0.0
    full = ts.chi_square([[20, 0, 0], [0, 30, 0], [0, 0, 10]])
    assert full.estimate == pytest.approx(1.0, rel=SUMS)
    assert full.details["g"] == pytest.approx(
        -2 * (20 * math.log(20 / 60) + 30 * math.log(30 / 60) + 10 * math.log(10 / 60)), rel=SUMS
    )


def test_order_and_transposition_change_nothing() -> None:
    table = np.array([[12, 5, 3], [8, 9, 4], [2, 6, 11], [1, 1, 7]])
    first = ts.chi_square(table)
    for order in itertools.permutations(range(3)):
        other = ts.chi_square(table[::-1][:, order].T)
        assert other.statistic == pytest.approx(first.statistic, rel=SUMS)
        assert other.estimate == pytest.approx(first.estimate, rel=SUMS)
        assert other.p_value == pytest.approx(first.p_value, rel=1e-10)


def test_tail_keeps_its_digits() -> None:
    assert ts.chi_square([[1_000, 0], [0, 1_000]]).p_value == pytest.approx(math.erfc(1_000**0.5), rel=1e-10)


def test_small_expected_counts_are_noted() -> None:
    result = ts.chi_square([[3, 1], [1, 3]])
    assert result.notes[0].message == (
        "4 of 4 expected counts are below 5, the smallest 2: the chi-square law is doubtful; fisher_exact "
        "counts the tables instead."
    )
    assert ts.chi_square([[30, 10], [10, 30]]).notes == ()


def test_empty_margins() -> None:
    padded = ts.chi_square([[8, 0, 2], [0, 0, 0], [4, 0, 6]])
    assert padded.details["df"] == 1
    assert padded.statistic == ts.chi_square([[8, 2], [4, 6]]).statistic
    nothing = ts.chi_square([[0, 0], [7, 4]])
    assert (nothing.statistic, nothing.p_value, nothing.estimate) == (None, None, None)
    assert nothing.undefined == (
        "Only one row holds observations, so that independence cannot be tested: chi-square is 0/0."
    )
    assert ts.chi_square(["a", "b"], [1, 1], correction=True).undefined is not None


def test_two_observations_leave_no_range_for_the_corrected_v() -> None:
    assert ts.chi_square([[1, 0], [0, 1]]).details["cramers_v_bias_corrected"] is None


def test_fit_to_shares() -> None:
    result = ts.chi_square([18, 22, 20], expected=[0.25, 0.5, 0.25])
    assert result.statistic == pytest.approx(9 / 15 + 64 / 30 + 25 / 15, rel=SUMS)
    assert result.p_value == pytest.approx(math.exp(-(9 / 15 + 64 / 30 + 25 / 15) / 2), rel=SUMS)
    assert ts.chi_square([18, 22, 20], expected=[15, 30, 15]).p_value == result.p_value
    assert ts.chi_square([10, 10, 10, 10]).p_value == 1.0
    without = ts.chi_square([18, 22, 20, 0], expected=[0.25, 0.5, 0.25, 0])
    assert (without.p_value, without.details["df"]) == (result.p_value, 2)
    assert ts.chi_square([5, 0], expected=[1, 0]).undefined is not None


def test_trend_by_hand() -> None:
    """Shares 0.2, 0.5, 0.8 of 10 each: T = 3 * 2, V = (1/4) * 20."""
    result = ts.trend_test([2, 5, 8], [10, 10, 10])
    assert result.statistic == pytest.approx(6 / 5**0.5, rel=SUMS)
    assert result.details["z_mantel"] == pytest.approx(6 / (5 * 30 / 29) ** 0.5, rel=SUMS)
    assert result.estimate == pytest.approx(0.3, rel=SUMS)
    assert result.estimate is not None
    assert result.statistic == pytest.approx(result.estimate / result.details["std_error"], rel=SUMS)
    assert result.tidy()["std_error"].to_list() == [result.details["std_error"]]


def test_trend_of_two_groups_is_the_chi_square_test() -> None:
    trend, table = ts.trend_test([8, 4], [10, 10]), ts.chi_square([[8, 2], [4, 6]])
    assert trend.details["chi2"] == pytest.approx(table.statistic, rel=SUMS)
    assert trend.p_value == pytest.approx(table.p_value, rel=1e-10)


def test_mantel_is_the_correlation() -> None:
    """z^2 = (N - 1) r^2 over the single observations, and N r^2 for Cochran-Armitage."""
    s, n, w = [0, 1, 3, 7, 9], [10, 12, 10, 9, 10], [0, 1, 2, 4, 8]
    score = np.repeat(w, n)
    outcome = np.concatenate([[1] * a + [0] * (b - a) for a, b in zip(s, n, strict=True)])
    r = float(np.corrcoef(score, outcome)[0, 1])
    result = ts.trend_test(s, n, scores=w, method="mantel")
    assert result.statistic == pytest.approx(r * (sum(n) - 1) ** 0.5, rel=1e-11)
    assert result.details["z_cochran_armitage"] == pytest.approx(r * sum(n) ** 0.5, rel=1e-11)


def test_trend_sides_and_scores() -> None:
    s, n = [83, 90, 129, 70], [86, 93, 136, 82]
    result = ts.trend_test(s, n)
    assert result.statistic is not None
    assert result.p_value is not None
    scaled = ts.trend_test(s, n, scores=[10, 30, 50, 70])
    assert scaled.statistic == pytest.approx(result.statistic, rel=1e-11)
    assert ts.trend_test(s[::-1], n[::-1]).statistic == pytest.approx(-result.statistic, rel=1e-11)
    failures = [b - a for a, b in zip(s, n, strict=True)]
    assert ts.trend_test(failures, n).statistic == pytest.approx(-result.statistic, rel=1e-11)
    less, greater = (ts.trend_test(s, n, alternative=side).p_value for side in ("less", "greater"))
    assert less == pytest.approx(result.p_value / 2, rel=SUMS)
    assert greater == pytest.approx(1 - result.p_value / 2, rel=SUMS)
    flat = ts.trend_test([5, 5, 5], [10, 10, 10])
    assert (flat.statistic, flat.p_value) == (0.0, 1.0)
    assert ts.trend_test([0, 300], [300, 300]).p_value == pytest.approx(math.erfc(300**0.5), rel=1e-10)


def test_trend_without_a_trend_to_see() -> None:
    for s in ([0, 0, 0], [10, 10, 10]):
        result = ts.trend_test(s, [10, 10, 10])
        assert (result.statistic, result.p_value, result.estimate) == (None, None, None)
        assert result.undefined is not None
    one = ts.trend_test([3, 0], [10, 0])
    assert one.undefined == "One group alone has observations, so that a trend cannot be seen and z is 0/0."
    kept = ts.trend_test([2, 0, 5, 8], [10, 0, 10, 10], scores=[1, 7, 2, 3])
    assert kept.statistic == pytest.approx(6 / 5**0.5, rel=SUMS)
    assert [note.code for note in kept.notes] == ["empty"]


def test_trend_reads_columns() -> None:
    frame = pl.DataFrame({"right": [2, 5, 8], "n": [10, 10, 10], "dose": [1, 2, 3]})
    by_name = ts.trend_test("right", "n", scores="dose", data=frame)
    assert by_name.statistic == ts.trend_test([2, 5, 8], [10, 10, 10]).statistic


REFUSED: dict[str, Callable[[], object]] = {
    "ArgumentError: `correction` needs a 2 x 2 table; `x` is 2 x 3": (
        lambda: ts.chi_square([[1, 2, 3], [3, 2, 1]], correction=True)
    ),
    "ArgumentError: `correction` is for method='pearson'; the likelihood ratio has none": (
        lambda: ts.chi_square([[1, 2], [3, 4]], correction=True, method="g")
    ),
    "ArgumentError: `expected` goes with a vector of counts; those of a table follow from its margins": (
        lambda: ts.chi_square([[1, 2], [3, 4]], expected=[0.5, 0.5])
    ),
    "ArgumentError: `expected` must sum to 1 (shares) or to 10 (counts); its sum is 1.1": (
        lambda: ts.chi_square([5, 5], expected=[0.5, 0.6])
    ),
    "ArgumentError: `expected` is 0 for a category that has a count, which makes the data impossible": (
        lambda: ts.chi_square([5, 5], expected=[1, 0])
    ),
    "ArgumentError: `x` holds one category; a test of fit needs counts of two categories or more": (
        lambda: ts.chi_square([5])
    ),
    "ArgumentTypeError: `x` must hold numbers; got 'a'": lambda: ts.chi_square(["a", "b"]),
    "ArgumentError: `method` must be one of 'pearson', 'g', 'cluster-permutation', 'auto'; got 'fisher'": (
        lambda: ts.chi_square([[1, 2], [3, 4]], method="fisher")  # type: ignore[arg-type]
    ),
    "ArgumentError: `successes` must not exceed `totals`; group 2 has 11 of 10": (
        lambda: ts.trend_test([1, 11], [10, 10])
    ),
    "ArgumentError: there must be one value a group; the lengths are `successes` 2, `totals` 3": (
        lambda: ts.trend_test([1, 2], [10, 10, 10])
    ),
    "ArgumentError: `scores` must hold two or more different numbers to order the groups by": (
        lambda: ts.trend_test([1, 2], [10, 10], scores=[3, 3])
    ),
    "ArgumentTypeError: `scores` must hold numbers; got 'low'": (
        lambda: ts.trend_test([1, 2], [10, 10], scores=["low", "high"])
    ),
    "ArgumentError: `successes` holds a count that is not whole, 0.5; expected whole numbers from 0": (
        lambda: ts.trend_test([0.5, 2], [10, 10])
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(refusal: Refusal, message: str) -> None:
    assert refusal(REFUSED[message]) == message
