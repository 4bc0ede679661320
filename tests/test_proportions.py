"""One proportion, and the difference of two independent ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import triagestats as ts
from triagestats.independent_difference import DifferenceMethod
from triagestats.margin_tests import score_tests, wald_tests
from triagestats.proportions import ProportionMethod
from triagestats.score_intervals import difference_interval, difference_score, normal_quantile

Refusal = Callable[[Callable[[], object]], str]

ROUNDING = 1e-12  # the same formula by another route
ROOT = 1e-9  # a score at the end of its interval: z moves by up to 1e5 per unit near the ends
SEARCHED = 1e-6  # a maximum that scipy finds to half of the digits
ONE: tuple[ProportionMethod, ...] = (
    "wilson",
    "wilson-corrected",
    "clopper-pearson",
    "jeffreys",
    "agresti-coull",
)
TWO: tuple[DifferenceMethod, ...] = ("newcombe", "miettinen-nurminen", "mee", "agresti-caffo")


def ends(result: ts.Test) -> tuple[float, float]:
    assert result.conf_low is not None
    assert result.conf_high is not None
    return result.conf_low, result.conf_high


def test_wilson_solves_its_score_equation() -> None:
    """|p - e| = z sqrt(e (1 - e) / n) at both ends."""
    for x, n in ((3, 17), (1, 2), (81, 263)):
        for end in ends(ts.proportion_ci(x, n)):
            assert abs(x / n - end) == pytest.approx(
                1.959963984540054 * math.sqrt(end * (1 - end) / n), rel=ROUNDING
            )


def test_clopper_pearson_ends_have_the_tails_of_the_level() -> None:
    low, high = ends(ts.proportion_ci(7, 30, method="clopper-pearson", conf_level=0.9))
    assert stats.binom(30, low).sf(6) == pytest.approx(0.05, rel=ROUNDING)
    assert stats.binom(30, high).cdf(7) == pytest.approx(0.05, rel=ROUNDING)


@pytest.mark.parametrize("method", ONE)
def test_every_interval_stays_within_0_and_1_and_holds_the_estimate(method: ProportionMethod) -> None:
    for n in range(1, 14):
        for x in range(n + 1):
            for level in (0.5, 0.9, 0.999):
                result = ts.proportion_ci(x, n, method=method, conf_level=level)
                low, high = ends(result)
                assert 0 <= low < high <= 1
                assert low <= x / n <= high


@pytest.mark.parametrize("method", ONE)
def test_failures_mirror_successes(method: ProportionMethod) -> None:
    low, high = ends(ts.proportion_ci(4, 19, method=method))
    assert ends(ts.proportion_ci(15, 19, method=method)) == pytest.approx((1 - high, 1 - low), rel=ROUNDING)


def test_none_and_all_have_ends_of_0_and_1_and_no_standard_error() -> None:
    """0 of 20 is [0, 0.1611]; Clopper-Pearson 0 of 18 at 99% is [0, 0.254985]."""
    result = ts.proportion_ci(0, 20)
    assert result.conf_low == 0
    assert result.conf_high == pytest.approx(0.1611, abs=5e-5)
    assert result.details["std_error"] is None
    assert [note.code for note in result.notes] == ["boundary"]
    assert ts.proportion_ci(20, 20).conf_high == 1
    exact = ts.proportion_ci(0, 18, method="clopper-pearson", conf_level=0.99)
    assert ends(exact) == (0, pytest.approx(0.254985, abs=5e-7))
    modified = ts.proportion_ci(0, 10, method="jeffreys")
    assert modified.conf_low == 0
    assert modified.details["interval_unmodified"][0] == pytest.approx(4.789e-5, abs=5e-9)


def test_the_correction_stays_at_one_half() -> None:
    """R's prop.test drops it at 5 of 10."""
    found = ends(ts.proportion_ci(5, 10, method="wilson-corrected"))
    assert found == pytest.approx((0.2014, 0.7986), abs=5e-5)


def test_agresti_coull_is_cut_and_says_what_it_was() -> None:
    result = ts.proportion_ci(0, 10, method="agresti-coull")
    assert result.conf_low == 0
    assert result.details["interval_raw"][0] < 0
    assert result.details["interval_raw"][1] == result.conf_high


@pytest.mark.parametrize("make", [list, np.array, pl.Series, lambda v: np.array(v, dtype=bool)])
def test_a_vector_is_counted(make: Callable[[list[int]], object]) -> None:
    values = [1, 0, 0, 1, 1, 0, 1]
    found = ts.proportion_ci(make(values))
    assert (found.details["count"], found.details["nobs"]) == (4, 7)
    assert ends(found) == ends(ts.proportion_ci(4, 7))
    assert found.notes == ()


def test_a_column_with_clusters_is_noted() -> None:
    data = pl.DataFrame({"scenario": ["a", "a", "b", "c"], "ok": [1, 1, 0, None]})
    result = ts.proportion_ci("ok", data=data, missing="omit")
    assert result.n == 3
    assert result.details["n_missing"] == 1
    codes = [note.code for note in result.notes]
    assert codes == ["missing", "independence"]
    assert "`ts.analyze(...)`, or `ts.cluster_bootstrap(x, clusters)`" in str(result.notes[1])
    given = ts.proportion_ci([1, 0, 1], clusters=[1, 1, 2], method="wilson")
    assert [note.code for note in given.notes] == ["independence"]


def test_bad_counts_are_refused(refusal: Refusal) -> None:
    assert refusal(lambda: ts.proportion_ci(5, 4)) == (
        "ArgumentError: `count` must not exceed `nobs`; got 5 of 4"
    )
    assert refusal(lambda: ts.proportion_ci(0, 0)) == (
        "ArgumentError: `nobs` must be at least 1; got 0: without a trial there is no proportion"
    )
    assert refusal(lambda: ts.proportion_ci(3)) == (
        "ArgumentTypeError: `nobs` is needed: the number of trials of which `count` were successes; or give "
        "a vector of 0 and 1 as `count`"
    )
    assert "negative" in refusal(lambda: ts.proportion_ci(-1, 4))
    assert "not whole" in refusal(lambda: ts.proportion_ci(1.5, 4))
    assert "missing" in refusal(lambda: ts.proportion_ci(math.nan, 4))
    assert "`data` goes with a vector" in refusal(lambda: ts.proportion_ci(1, 2, data={"a": [1]}))
    assert "`count` holds 0.5 where 0 and 1 are expected" in refusal(lambda: ts.proportion_ci([0.5, 1]))
    assert "holds no value" in refusal(lambda: ts.proportion_ci([]))
    assert "missing value" in refusal(lambda: ts.proportion_ci([1, None]))
    assert "`method` must be one of" in refusal(lambda: ts.proportion_ci(1, 2, method="wald"))  # type: ignore[arg-type]
    assert "did you mean 0.95?" in refusal(lambda: ts.proportion_ci(1, 2, conf_level=95))


# Two samples


def test_miettinen_nurminen_where_a_cubic_went_wrong() -> None:
    """7/34 v 1/34, whose constrained rate statsmodels had from a cubic with a wrong coefficient."""
    found = ends(ts.difference_ci(7, 34, 1, 34, method="miettinen-nurminen"))
    assert found == pytest.approx((0.0270416, 0.3452912), abs=5e-8)


@pytest.mark.parametrize("table", [(9, 10, 3, 10), (5, 56, 0, 29), (0, 10, 0, 10), (10, 10, 0, 20)])
@pytest.mark.parametrize("method", TWO)
def test_tables_at_the_boundary_have_an_interval(
    method: DifferenceMethod, table: tuple[int, int, int, int]
) -> None:
    low, high = ends(ts.difference_ci(*table, method=method))
    assert -1 <= low < high <= 1
    assert high - low < 1.5


def all_tables(sizes: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    return [(x1, n1, x2, n2) for n1 in sizes for n2 in sizes for x1 in range(n1 + 1) for x2 in range(n2 + 1)]


@pytest.mark.parametrize("method", ["miettinen-nurminen", "mee"])
def test_score_ends_solve_the_score_equation(method: str) -> None:
    """In every table: z is the normal quantile at an end inside -1 and 1, by enumeration."""
    z = normal_quantile(0.95)
    for table in all_tables((1, 2, 5, 9)):
        low, high = difference_interval(*table, 0.95, method=method)  # type: ignore[arg-type]
        for end, expected in ((low, z), (high, -z)):
            if abs(end) < 1:
                found = difference_score(*table, end, method=method)  # type: ignore[arg-type]
                assert found == pytest.approx(expected, abs=ROOT), table


def test_the_score_falls_as_the_margin_rises() -> None:
    """So that its equation has one root."""
    margins = np.linspace(-1, 1, 41)
    for table in all_tables((1, 3, 8)):
        scores = [difference_score(*table, float(margin), method="mee") for margin in margins]
        assert scores == sorted(scores, reverse=True), table


def test_the_restricted_rates_maximise_the_likelihood() -> None:
    """Against a bounded search, for every table and several margins."""
    for x1, n1, x2, n2 in all_tables((1, 4, 7)):
        for margin in (-0.6, -0.05, 0.0, 0.3):

            def loss(rate: float) -> float:
                other = rate - margin  # noqa: B023
                counts = ((x1, rate), (n1 - x1, 1 - rate), (x2, other), (n2 - x2, 1 - other))  # noqa: B023
                return -sum(count * math.log(max(p, 1e-300)) for count, p in counts if count)

            bounds = max(0.0, margin), min(1.0, 1 + margin)
            found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12})
            p, q = found.x, found.x - margin
            variance = p * (1 - p) / n1 + q * (1 - q) / n2
            z = difference_score(x1, n1, x2, n2, margin, method="mee")
            numerator = x1 / n1 - x2 / n2 - margin
            assert z * z * variance == pytest.approx(numerator**2, rel=SEARCHED, abs=SEARCHED)


@pytest.mark.parametrize("method", TWO)
def test_swapping_the_samples_mirrors_the_interval(method: DifferenceMethod) -> None:
    low, high = ends(ts.difference_ci(9, 12, 3, 31, method=method))
    swapped = ends(ts.difference_ci(3, 31, 9, 12, method=method))
    assert swapped == pytest.approx((-high, -low), rel=ROUNDING)


def test_the_score_test_agrees_with_its_interval() -> None:
    for table in all_tables((3, 10)):
        for method in ("miettinen-nurminen", "mee"):
            result = ts.difference_ci(*table, method=method)  # type: ignore[arg-type]
            low, high = ends(result)
            assert result.p_value is not None
            assert (result.p_value < 0.05) == (not low <= 0 <= high), table


def test_mee_at_0_is_the_pooled_z_and_the_factor_is_named() -> None:
    mee = ts.difference_ci(56, 70, 48, 80, method="mee")
    assert mee.statistic == pytest.approx(mee.details["z_pooled"], rel=ROUNDING)
    assert mee.p_value == pytest.approx(mee.details["p_pooled"], rel=ROUNDING)
    other = ts.difference_ci(56, 70, 48, 80, method="miettinen-nurminen")
    assert other.statistic == pytest.approx(mee.details["z_pooled"] * math.sqrt(149 / 150), rel=ROUNDING)
    assert "N / (N - 1)" in other.method


def test_samples_without_variation() -> None:
    """Where an error is 0, z is None, and the score interval is still there."""
    result = ts.difference_ci(0, 10, 0, 10, method="mee")
    assert result.details["z_pooled"] is None
    assert result.details["z_unpooled"] is None
    assert result.details["std_error"] is None
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert [note.code for note in result.notes] == ["boundary"]
    assert ends(result) == pytest.approx((-0.2775, 0.2775), abs=5e-5)


def test_equivalence_at_margins() -> None:
    wald = wald_tests(140, 200, 136, 200, -0.1, 0.1)
    low, high = ts.difference_ci(140, 200, 136, 200, conf_level=0.9).details["wald_raw"]
    assert wald.p_value is not None
    assert (wald.p_value < 0.05) == (low > -0.1 and high < 0.1)
    assert wald_tests(50, 50, 50, 50, -0.1, 0.1).p_value is None
    same = score_tests(50, 50, 50, 50, -0.1, 0.1)
    assert same.z_lower == pytest.approx(-same.z_upper, rel=ROUNDING)  # type: ignore[operator]
    assert same.p_value == same.p_lower
    assert same.p_value == pytest.approx(stats.norm.sf(same.z_lower), rel=ROUNDING)
    assert score_tests(5, 9, 3, 9, -1.5, 1.5).p_value == 0  # differences beyond 1 do not exist


def test_bad_samples_are_refused(refusal: Refusal) -> None:
    assert refusal(lambda: ts.difference_ci(1, 2, 3, 0)) == (
        "ArgumentError: `nobs2` must be at least 1; got 0: without a trial there is no proportion"
    )
    assert "`count1` must not exceed `nobs1`; got 3 of 2" in refusal(lambda: ts.difference_ci(3, 2, 1, 2))
    assert "`count2` must hold numbers" in refusal(lambda: ts.difference_ci(1, 2, "a", 2))
