"""Intervals of a difference of paired proportions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import triagestats as ts
from triagestats.binomial_intervals import paired_correlation
from triagestats.margin_tests import tango_tests
from triagestats.paired_difference import PairedMethod
from triagestats.score_intervals import normal_quantile, tango_interval, tango_score

Refusal = Callable[[Callable[[], object]], str]

ROUNDING = 1e-12  # the same formula by another route
ROOT = 1e-9  # a score at the end of its interval
SEARCHED = 1e-6  # a maximum that scipy finds to half of the digits
ALL: tuple[PairedMethod, ...] = ("tango", "newcombe", "agresti-min", "bonett-price", "wald")


def small_tables(most: int) -> list[tuple[int, int, int]]:
    return [(b, c, n) for n in range(1, most + 1) for b in range(n + 1) for c in range(n + 1 - b)]


def codes(result: ts.Test) -> list[str]:
    return [note.code for note in result.notes]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_tango_ends_solve_the_score_equation(level: float) -> None:
    """In every table up to 12 pairs."""
    z = normal_quantile(level)
    for b, c, n in small_tables(12):
        low, high = tango_interval(b, c, n, level)
        assert -1 <= low <= (b - c) / n <= high <= 1
        if low > -1:
            assert tango_score(b, c, n, low) == pytest.approx(z, abs=ROOT)
        if high < 1:
            assert tango_score(b, c, n, high) == pytest.approx(-z, abs=ROOT)


def test_the_score_falls_as_the_margin_rises() -> None:
    margins = np.linspace(-1, 1, 81)
    for table in small_tables(9):
        scores = [tango_score(*table, float(margin)) for margin in margins]
        assert scores == sorted(scores, reverse=True), table


def test_the_restricted_probability_maximises_the_likelihood() -> None:
    """Against a bounded search of the trinomial likelihood."""
    for b, c, n in small_tables(6):
        for margin in (-0.5, -0.1, 0.05, 0.4):

            def loss(q: float) -> float:
                cells = ((b, q + margin), (c, q), (n - b - c, 1 - 2 * q - margin))  # noqa: B023
                return -sum(count * math.log(max(p, 1e-300)) for count, p in cells if count)

            bounds = max(0.0, -margin), (1 - margin) / 2
            q = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
            variance = n * (2 * q + margin - margin**2)
            z = tango_score(b, c, n, margin)
            assert z * z * variance == pytest.approx((b - c - n * margin) ** 2, rel=SEARCHED, abs=SEARCHED)


def test_at_0_it_is_mcnemars_chi_square() -> None:
    for b, c, n in small_tables(10):
        result = ts.paired_difference_ci(b, c, n=n)
        assert result.statistic is not None
        assert result.p_value is not None
        plain = ts.mcnemar(b, c, method="chi2")
        if b + c:
            assert result.p_value == pytest.approx(plain.p_value, rel=ROUNDING)
            assert result.statistic**2 == pytest.approx(plain.statistic, rel=ROUNDING)
        assert result.conf_low is not None
        assert result.conf_high is not None
        assert (result.p_value < 0.05) == (not result.conf_low <= 0 <= result.conf_high), (b, c, n)


def test_without_discordant_pairs_the_interval_has_a_width() -> None:
    """q is 0, so that z^2 = n d / (1 - d): the ends are z^2 / (n + z^2)."""
    z2 = normal_quantile(0.95) ** 2
    result = ts.paired_difference_ci([[25, 0], [0, 15]])
    assert result.conf_high == pytest.approx(z2 / (40 + z2), rel=ROUNDING)
    assert result.conf_low == -result.conf_high  # type: ignore[operator]
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert codes(result) == ["no_discordant"]
    assert result.undefined is None


def test_zero_discordant_pairs_do_not_prove_equivalence() -> None:
    """n = 40 and a margin of 0.05: p = 0.073."""
    tests = tango_tests(0, 0, 40, -0.05, 0.05)
    assert tests.p_value == pytest.approx(0.073, abs=5e-4)
    assert tests.p_value == pytest.approx(stats.norm.sf(math.sqrt(40 * 0.05 / 0.95)), rel=ROUNDING)
    assert tango_score(3, 1, 9, 1.2) == -math.inf
    assert tango_score(3, 1, 9, -1.2) == math.inf


def test_equivalence_and_interval_agree() -> None:
    for b, c, n in small_tables(14):
        low, high = tango_interval(b, c, n, 0.9)
        for margin in (0.1, 0.35):
            p_value = tango_tests(b, c, n, -margin, margin).p_value
            assert p_value is not None
            assert (p_value < 0.05) == (-margin < low and high < margin), (b, c, n, margin)


@pytest.mark.parametrize("method", ALL)
def test_swapping_the_sides_mirrors_the_interval(method: PairedMethod) -> None:
    first = ts.paired_difference_ci([[20, 9], [4, 7]], method=method)
    second = ts.paired_difference_ci([[20, 4], [9, 7]], method=method)
    assert second.estimate == -first.estimate  # type: ignore[operator]
    assert second.conf_low == pytest.approx(-first.conf_high, rel=ROUNDING)  # type: ignore[operator]
    assert second.conf_high == pytest.approx(-first.conf_low, rel=ROUNDING)  # type: ignore[operator]


@pytest.mark.parametrize("method", ["tango", "newcombe", "agresti-min", "bonett-price"])
def test_every_interval_stays_within_its_space(method: PairedMethod) -> None:
    for b, c, n in small_tables(8):
        for both in range(n - b - c + 1):
            table = [[both, b], [c, n - b - c - both]]
            for level in (0.5, 0.95, 0.999):
                result = ts.paired_difference_ci(table, method=method, conf_level=level)
                assert result.conf_low is not None
                assert result.conf_high is not None
                assert -1 <= result.conf_low < result.conf_high <= 1


def test_adjusted_intervals_are_cut_and_say_what_they_were() -> None:
    for method in ("agresti-min", "bonett-price"):
        result = ts.paired_difference_ci(12, 0, n=12, method=method)  # type: ignore[arg-type]
        assert result.conf_high == 1
        assert result.details["interval_raw"][1] > 1
        assert result.details["interval_raw"][0] == result.conf_low


def test_wald_by_hand() -> None:
    result = ts.paired_difference_ci(32, 13, n=200, method="wald")
    error = math.sqrt(45 - 19**2 / 200) / 200
    assert result.details["std_error"] == pytest.approx(error, rel=ROUNDING)
    assert result.conf_low == pytest.approx(0.095 - 1.959963984540054 * error, rel=ROUNDING)
    assert result.tidy()["std_error"].item() == result.details["std_error"]


@pytest.mark.parametrize(("b", "c", "n"), [(0, 0, 40), (12, 0, 12), (0, 3, 3)])
def test_wald_without_variation_is_undefined(b: int, c: int, n: int) -> None:
    result = ts.paired_difference_ci(b, c, n=n, method="wald")
    assert (result.conf_low, result.conf_high, result.details["std_error"]) == (None, None, None)
    assert result.undefined is not None
    assert "standard error is 0" in result.undefined
    assert result.details["interval_raw"] == [(b - c) / n] * 2
    assert result.estimate == (b - c) / n


def test_the_correlation_is_corrected_towards_0_only_where_positive() -> None:
    plain = (20 * 7 - 9 * 4) / math.sqrt(29 * 11 * 24 * 16)
    assert paired_correlation(20, 9, 4, 7) == pytest.approx(plain * (104 - 20) / 104, rel=ROUNDING)
    assert paired_correlation(3, 2, 2, 2) == 0  # an excess of 2 of 4.5
    assert paired_correlation(3, 20, 18, 4) == pytest.approx(
        (12 - 360) / math.sqrt(23 * 22 * 21 * 24), rel=ROUNDING
    )
    assert paired_correlation(40, 0, 0, 0) == 0


def test_without_correlation_newcombe_is_the_independent_interval() -> None:
    """phi = 0: both of Newcombe's hybrids are one."""
    paired = ts.paired_difference_ci([[6, 3], [4, 2]], method="newcombe")
    apart = ts.difference_ci(9, 15, 10, 15, method="newcombe")
    assert paired.details["phi"] == 0
    assert (paired.conf_low, paired.conf_high) == pytest.approx(
        (apart.conf_low, apart.conf_high), rel=ROUNDING
    )


def test_forms_of_input_agree() -> None:
    x, y = [1, 1, 1, 0, 0, 1, 1, 0], [1, 0, 0, 1, 0, 0, 1, 0]
    table = ts.paired_difference_ci([[2, 3], [1, 2]])
    vectors = ts.paired_difference_ci(x, y)
    counts = ts.paired_difference_ci(3, 1, n=8)
    columns = ts.paired_difference_ci("free", "letter", data=pl.DataFrame({"free": x, "letter": y}))
    for result in (vectors, counts, columns):
        assert (result.estimate, result.conf_low, result.conf_high) == (
            table.estimate,
            table.conf_low,
            table.conf_high,
        )
    assert columns.contrast == "free - letter"
    assert type(vectors.conf_low) is float


def test_shared_clusters_are_noted() -> None:
    x, y, clusters = [1, 1, 0, 1], [0, 1, 0, 0], ["a", "a", "b", "c"]
    result = ts.paired_difference_ci(x, y, clusters=clusters, method="tango")
    assert codes(result) == ["independence"]
    assert 'paired_difference_ci(..., method="obuchowski"), the interval of mcnemar' in str(result.notes[0])
    assert result.conf_low == ts.paired_difference_ci(x, y).conf_low


def test_large_counts() -> None:
    """With many pairs Tango's interval nears Wald's."""
    n = 10**10
    score = ts.paired_difference_ci(10**9, 10**9 + 10**5, n=n)
    wald = ts.paired_difference_ci(10**9, 10**9 + 10**5, n=n, method="wald")
    assert (score.conf_low, score.conf_high) == pytest.approx((wald.conf_low, wald.conf_high), rel=1e-6)


def test_bad_input_is_refused(refusal: Refusal) -> None:
    assert refusal(lambda: ts.paired_difference_ci(3, 1)) == (
        "ArgumentError: `n`, the number of all pairs, is needed with two counts: the difference is "
        "(b - c) / n"
    )
    assert refusal(lambda: ts.paired_difference_ci(3, 1, n=3)) == (
        "ArgumentError: `n` must be the number of all pairs, at least 4 here; got 3"
    )
    assert "at least 1 here; got 0" in refusal(lambda: ts.paired_difference_ci(0, 0, n=0))
    assert refusal(lambda: ts.paired_difference_ci([1, 0], [0, 0], n=2)) == (
        "ArgumentError: `n` goes with two counts only; vectors and tables have their own"
    )
    assert refusal(lambda: ts.paired_difference_ci(3, 1, n=9, method="newcombe")) == (
        "ArgumentError: method='newcombe' needs the whole 2 x 2 table, [[both, x only], [y only, neither]], "
        "or the pairs: its interval depends on how the concordant pairs divide"
    )
    assert "`x` holds 0.5" in refusal(lambda: ts.paired_difference_ci([0.5, 1], [0, 1]))
    assert "`method` must be one of" in refusal(
        lambda: ts.paired_difference_ci(3, 1, n=9, method="exact")  # type: ignore[arg-type]
    )
