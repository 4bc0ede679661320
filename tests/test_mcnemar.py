"""McNemar's test: tails by enumeration, odds ratios, clusters of pairs, forms of input."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.clustered_pairs import Clustered
from triagestats.mcnemar_tests import McNemarMethod
from triagestats.results import Alternative

Refusal = Callable[[Callable[[], object]], str]

TAIL = 1e-12  # incomplete beta functions against exact fractions
ROUNDING = 1e-12  # the same formula by another route
UNCLUSTERED: tuple[McNemarMethod, ...] = ("mid-p", "exact", "chi2", "chi2-corrected")
CLUSTERED: tuple[Clustered, ...] = ("obuchowski", "durkalski")


def codes(result: ts.Test) -> list[str]:
    return [note.code for note in result.notes]


def at_most(k: int, n: int) -> Fraction:
    return Fraction(sum(math.comb(n, i) for i in range(k + 1)), 2**n)


def enumerated(b: int, c: int, alternative: Alternative, *, mid: bool) -> Fraction:
    """The tails of the binomial law, in exact fractions, from the definition."""
    n = b + c
    at = Fraction(math.comb(n, b), 2**n)
    below, above = at_most(b, n), 1 - at_most(b, n) + at
    if mid:
        below, above = below - at / 2, above - at / 2
    if alternative == "greater":
        return above
    if alternative == "less":
        return below
    if b == c:
        return 1 - at / 2 if mid else Fraction(1)
    return min(2 * min(below, above), Fraction(1))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("mid", [True, False])
def test_tails_by_enumeration(alternative: Alternative, mid: bool) -> None:
    method: McNemarMethod = "mid-p" if mid else "exact"
    for b in range(14):
        for c in range(14):
            if b + c:
                found = ts.mcnemar(b, c, method=method, alternative=alternative).p_value
                expected = float(enumerated(b, c, alternative, mid=mid))
                assert found == pytest.approx(expected, rel=TAIL), (b, c)


@pytest.mark.parametrize(("b", "c"), [(0, 60), (100, 900), (7, 990), (1_500, 3_500)])
def test_deep_tails_keep_their_digits(b: int, c: int) -> None:
    for method in ("exact", "mid-p"):
        found = ts.mcnemar(b, c, method=method).p_value  # type: ignore[arg-type]
        assert found == pytest.approx(float(enumerated(b, c, "two-sided", mid=method == "mid-p")), rel=TAIL)
        assert found is not None
        assert found < 1e-17


def test_published_counts() -> None:
    assert ts.mcnemar(32, 13, method="exact").p_value == pytest.approx(0.0066, abs=5e-5)
    assert ts.mcnemar(68, 22, method="exact").p_value == pytest.approx(1.25e-6, rel=5e-3)


def test_the_exact_test_is_the_permutation_test() -> None:
    """Sign flips of the discordant pairs, enumerated."""
    x, y = [1, 1, 1, 1, 1, 0, 1, 0, 1, 1], [0, 0, 0, 1, 0, 0, 0, 1, 0, 1]
    assert ts.mcnemar(x, y, method="exact").p_value == pytest.approx(
        ts.permutation_test(x, y).p_value, rel=ROUNDING
    )


def test_the_correction_is_cut_at_0() -> None:
    """b = c squares no -1, as in statsmodels."""
    result = ts.mcnemar(10, 10, method="chi2-corrected")
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    for alternative in ("greater", "less"):
        one = ts.mcnemar(10, 10, method="chi2-corrected", alternative=alternative)  # type: ignore[arg-type]
        assert one.p_value == pytest.approx(stats.norm.sf(-1 / math.sqrt(20)), rel=ROUNDING)


@pytest.mark.parametrize("method", UNCLUSTERED)
def test_without_discordant_pairs_nothing_is_shown(method: McNemarMethod) -> None:
    for result in (
        ts.mcnemar(0, 0, method=method),
        ts.mcnemar([[5, 0], [0, 3]], method=method),
        ts.mcnemar([1, 1, 0], [1, 1, 0], method=method, alternative="greater"),
    ):
        assert result.p_value == (None if method.startswith("chi2") else 1)  # chi-square is 0/0
        assert result.statistic is None
        assert result.estimate is None
        assert (result.conf_low, result.conf_high) == (None, None)
        assert result.undefined is not None
        assert "no discordant pairs" in result.undefined
        assert result.tidy()["status"].item() == "undefined"


@pytest.mark.parametrize("method", UNCLUSTERED)
def test_swapping_the_sides(method: McNemarMethod) -> None:
    first, second = ts.mcnemar(31, 12, method=method), ts.mcnemar(12, 31, method=method)
    assert first.p_value == second.p_value
    assert first.estimate == pytest.approx(1 / second.estimate, rel=ROUNDING)  # type: ignore[operator]
    assert first.conf_low == pytest.approx(1 / second.conf_high, rel=ROUNDING)  # type: ignore[operator]
    one, other = (
        ts.mcnemar(31, 12, method=method, alternative="greater"),
        ts.mcnemar(12, 31, method=method, alternative="less"),
    )
    assert one.p_value == other.p_value


def test_one_sided_halves_of_chi_square_and_mid_p() -> None:
    for method in ("mid-p", "chi2", "chi2-corrected"):
        two = ts.mcnemar(20, 9, method=method)  # type: ignore[arg-type]
        one = ts.mcnemar(20, 9, method=method, alternative="greater")  # type: ignore[arg-type]
        assert one.p_value == pytest.approx(two.p_value / 2, rel=ROUNDING)  # type: ignore[operator]


def test_odds_ratio_at_its_ends() -> None:
    """b = 5, c = 0: infinite above; lower end the odds of (alpha / 2)^(1/5)."""
    result = ts.mcnemar(5, 0)
    low = 0.025 ** (1 / 5)
    assert (result.estimate, result.conf_high) == (math.inf, math.inf)
    assert result.conf_low == pytest.approx(low / (1 - low), rel=ROUNDING)
    assert (ts.mcnemar(0, 5).estimate, ts.mcnemar(0, 5).conf_low) == (0.0, 0.0)
    assert result.to_dict()["estimate"] == "inf"
    large = ts.mcnemar(10**9, 500).conf_high
    assert large == pytest.approx(1 / ts.mcnemar(500, 10**9).conf_low, rel=ROUNDING)  # type: ignore[operator]


def test_the_exact_interval_agrees_with_the_exact_test() -> None:
    for b in range(25):
        for c in range(1 if b == 0 else 0, 25):
            result = ts.mcnemar(b, c, method="exact")
            assert result.p_value is not None
            assert result.conf_low is not None
            assert result.conf_high is not None
            assert (result.p_value < 0.05) == (not result.conf_low <= 1 <= result.conf_high), (b, c)
            assert "interval" not in codes(result)


def test_a_test_that_the_interval_contradicts_is_noted() -> None:
    """b = 7, c = 1: mid-p 0.039, interval of the odds ratio from 0.899."""
    result = ts.mcnemar(7, 1)
    assert codes(result) == ["interval"]
    assert str(result.notes[0]) == (
        "p = 0.0391 is below 0.05, and the exact interval of the odds ratio holds 1: the interval is that of "
        "the exact test."
    )
    assert codes(ts.mcnemar(7, 1, alternative="greater")) == []


# Forms of input

X = [1, 1, 1, 0, 0, 1, 1, 0]
Y = [1, 0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        pl.Series,
        pd.Series,
        lambda v: np.array(v, dtype=bool),
        lambda v: np.array(v, dtype=np.int8),
        lambda v: np.array(v, dtype=np.float32),
    ],
)
def test_vectors_tables_and_counts_agree(make: Callable[[list[int]], Any]) -> None:
    found = ts.mcnemar(make(X), make(Y))
    table = ts.mcnemar([[2, 3], [1, 2]])
    counts = ts.mcnemar(3, 1)
    assert found.p_value == table.p_value == counts.p_value
    assert (found.n, table.n, counts.n) == (8, 8, 4)
    assert found.details == table.details | {"n_missing": 0}
    assert "difference" not in counts.details
    interval = ts.paired_difference_ci(X, Y)
    assert found.details["difference"] == interval.estimate
    assert (found.details["difference_low"], found.details["difference_high"]) == (
        interval.conf_low,
        interval.conf_high,
    )


def test_results_are_plain_numbers() -> None:
    result = ts.mcnemar(np.array(X), np.array(Y))
    for value in (result.estimate, result.statistic, result.p_value, result.conf_low, result.conf_high):
        assert type(value) is float
    assert all(type(value) in (int, float) for value in result.details.values())
    assert type(ts.mcnemar(np.int64(3), np.int32(1)).p_value) is float
    assert type(ts.mcnemar(X, Y, clusters=[0, 0, 1, 1, 2, 2, 3, 3]).p_value) is float


def test_frames_are_tables_of_counts() -> None:
    frame = pd.DataFrame([[2, 3], [1, 2]])
    assert ts.mcnemar(frame).p_value == ts.mcnemar(3, 1).p_value
    assert ts.mcnemar(np.array([[2, 3], [1, 2]])).p_value == ts.mcnemar(3, 1).p_value


def test_columns_and_levels() -> None:
    data = {"item": [f"i{i}" for i in range(8)], "free": X, "letter": Y}
    result = ts.mcnemar("free", "letter", data=data)
    assert result.contrast == "free / letter"
    assert result.p_value == ts.mcnemar(X, Y).p_value
    long = pl.DataFrame(
        {
            "scenario": [f"i{i}" for i in range(8)] * 2,
            "format": ["free"] * 8 + ["letter"] * 8,
            "score": X + Y,
        }
    )
    table = ts.ResponseTable(long)
    found = ts.mcnemar("free", "letter", data=table)
    assert found.p_value == result.p_value
    assert found.contrast == "free / letter"
    assert ts.mcnemar(table).contrast == "letter / free"
    assert "independence" not in codes(found)  # one pair a scenario


def repeated() -> ts.ResponseTable:
    return ts.ResponseTable(
        pl.DataFrame(
            {
                "scenario": ["a", "a", "b", "b"] * 4,
                "repetition": [1, 2] * 8,
                "model": ["m"] * 8 + ["n"] * 8,
                "format": (["free"] * 4 + ["letter"] * 4) * 2,
                "score": [1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0],
            }
        )
    )


def test_repeated_scenarios_are_noted_and_the_clustered_test_is_named() -> None:
    result = ts.mcnemar("free", "letter", data=repeated())
    assert result.n == 8
    assert "independence" in codes(result)
    message = next(str(note) for note in result.notes if note.code == "independence")
    assert 'mcnemar(..., method="obuchowski")' in message
    assert "permutation_test" in message
    clustered = ts.mcnemar("free", "letter", data=repeated(), method="obuchowski")
    assert clustered.details["n_clusters"] == 2
    assert "independence" not in codes(clustered)
    assert "independence" in codes(ts.mcnemar(X, Y, clusters=[0, 0, 1, 1, 2, 2, 3, 3], method="exact"))
    assert codes(ts.mcnemar(X, Y, clusters=range(8), method="exact")) == []


def test_means_of_judges_are_refused(refusal: Refusal) -> None:
    table = ts.ResponseTable(
        pl.DataFrame(
            {
                "scenario": ["a", "a", "b", "b"] * 2,
                "judge": ["u", "v"] * 4,
                "format": ["free"] * 4 + ["letter"] * 4,
                "score": [1, 0, 1, 1, 0, 0, 1, 1],
            }
        )
    )
    assert refusal(lambda: ts.mcnemar("free", "letter", data=table)) == (
        "DataError: `free` holds 0.5 where 0 and 1 are expected. A mean over judges or repetitions is no "
        "single answer: test per judge, `table.with_judge('...')`, or only what all judges agree on, "
        "`table.with_unanimous_judges()`, with match='row'; for means use `wilcoxon_signed_rank` or "
        "`permutation_test`"
    )
    assert ts.mcnemar("free", "letter", data=table.with_judge("u")).details["b"] == 1
    assert ts.mcnemar("free", "letter", data=table.with_unanimous_judges()).n == 1
    assert "with_judge" in refusal(lambda: ts.mcnemar("free", "letter", data=repeated(), match="scenario"))


def test_bad_input_is_refused(refusal: Refusal) -> None:
    three = [[45, 13, 5], [8, 18, 30], [9, 25, 40]]
    assert refusal(lambda: ts.mcnemar(three)) == (
        "ArgumentError: `x` must be a 2 x 2 table, [[both, x only], [y only, neither]]; got 3 x 3; for 3 "
        "categories use `bowker(table)` or `stuart_maxwell(table)`"
    )
    assert "got 2 x 3" in refusal(lambda: ts.mcnemar([[1, 2, 3], [4, 5, 6]]))
    assert refusal(lambda: ts.mcnemar(5)) == (
        "ArgumentTypeError: two counts are needed: `x`, how many pairs are 1 on the first side only, and "
        "`y`, how many are 1 on the second side only; or two vectors, or a 2 x 2 table as `x`"
    )
    assert refusal(lambda: ts.mcnemar(3, 1, method="obuchowski")) == (
        "ArgumentError: method='obuchowski' needs every pair with its cluster, and got counts; give `x` and "
        "`y` as vectors of 0 and 1 with `clusters`"
    )
    assert "`clusters` needs one label a pair" in refusal(lambda: ts.mcnemar(3, 1, clusters=[1]))
    assert "`clusters` needs one label a pair" in refusal(lambda: ts.mcnemar([[1, 2], [3, 4]], clusters=[1]))
    assert "needs `clusters`" in refusal(lambda: ts.mcnemar(X, Y, method="durkalski"))
    assert "needs two" in refusal(lambda: ts.mcnemar(X, Y, clusters=[1] * 8))
    assert "negative" in refusal(lambda: ts.mcnemar(-1, 3))
    assert "not whole" in refusal(lambda: ts.mcnemar(1.5, 3))
    assert "missing" in refusal(lambda: ts.mcnemar(math.nan, 3))
    assert "no observation" in refusal(lambda: ts.mcnemar([[0, 0], [0, 0]]))
    assert "8 and 7 values" in refusal(lambda: ts.mcnemar(X, Y[:7]))
    assert "holds no value" in refusal(lambda: ts.mcnemar([], []))
    assert "`y` is needed" in refusal(lambda: ts.mcnemar(X))
    assert "missing value" in refusal(lambda: ts.mcnemar([*X[:7], None], Y))
    assert "`x` holds 2 where 0 and 1 are expected" in refusal(lambda: ts.mcnemar([2, *X[1:]], Y))
    assert "must hold numbers" in refusal(lambda: ts.mcnemar(["a", "b"], ["a", "a"]))
    assert "got bool" in refusal(lambda: ts.mcnemar(True, False))
    assert "`method` must be one of" in refusal(lambda: ts.mcnemar(3, 1, method="midp"))  # type: ignore[arg-type]
    assert "`match` must be one of" in refusal(
        lambda: ts.mcnemar(repeated(), match="item")  # type: ignore[arg-type]
    )
    assert "`alternative` must be one of" in refusal(
        lambda: ts.mcnemar(3, 1, alternative="both")  # type: ignore[arg-type]
    )


def test_missing_pairs_are_left_out_with_a_note() -> None:
    result = ts.mcnemar([*X, None], [*Y, 1], missing="omit")
    assert result.p_value == ts.mcnemar(X, Y).p_value
    assert result.details["n_missing"] == 1
    assert "missing" in codes(result)


# Clusters of pairs


def drawn(seed: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs whose clusters differ, so that they are alike within."""
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    rate = rng.uniform(size=k)[cluster]
    return (rng.random(n) < rate).astype(int), (rng.random(n) < rate * 0.7).astype(int), cluster


def test_by_hand() -> None:
    """Clusters with d = (2, 1, -1) of m = (2, 3, 1) pairs."""
    x, y = [1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1]
    clusters = ["p", "p", "q", "q", "q", "r"]
    result = ts.mcnemar(x, y, clusters=clusters)
    assert result.method.startswith("clustered McNemar test of Obuchowski")
    assert result.estimate == pytest.approx(2 / 6)
    assert result.statistic == pytest.approx(2 / 3 * 4 / 6)
    assert result.p_value == pytest.approx(stats.chi2(1).sf(4 / 9), rel=ROUNDING)
    means = [1, 1 / 3, -1]
    other = ts.mcnemar(x, y, clusters=clusters, method="durkalski")
    assert other.estimate == pytest.approx(sum(means) / 3)
    assert other.statistic == pytest.approx(sum(means) ** 2 / sum(m * m for m in means))
    assert "few_clusters" in codes(result)
    assert "permutation_test(x, y, clusters=...)" in str(result.notes[-1])


def test_obuchowski_is_the_ratio_variance_with_pooled_rates() -> None:
    """Rao and Scott's variances and covariance of two ratio estimates, around the pooled rate."""
    x, y, cluster = drawn(1, 150, 30)
    n = len(x)
    pooled = (x.sum() + y.sum()) / (2 * n)
    sizes = np.bincount(cluster)
    first = np.bincount(cluster, weights=x) - sizes * pooled
    second = np.bincount(cluster, weights=y) - sizes * pooled
    k = len(sizes)
    variance = k / (k - 1) * (first @ first + second @ second - 2 * first @ second) / n**2
    expected = ((x.sum() - y.sum()) / n) ** 2 / variance
    result = ts.mcnemar(x, y, clusters=cluster)
    assert result.statistic == pytest.approx(expected, rel=ROUNDING)
    assert result.details["std_error_null"] == pytest.approx(math.sqrt(variance), rel=ROUNDING)


def test_single_pairs_as_clusters_give_the_chi_square() -> None:
    x, y, _ = drawn(2, 90, 10)
    plain = ts.mcnemar(x, y, method="chi2").statistic
    assert plain is not None
    clusters = range(90)
    assert ts.mcnemar(x, y, clusters=clusters).statistic == pytest.approx(plain * 89 / 90, rel=ROUNDING)
    assert ts.mcnemar(x, y, clusters=clusters, method="durkalski").statistic == pytest.approx(
        plain, rel=ROUNDING
    )


def test_copied_pairs_add_nothing() -> None:
    """Each pair twice, in one cluster: the clustered test stays, the plain one does not."""
    x, y, _ = drawn(3, 60, 10)
    clusters = np.arange(60)
    once = ts.mcnemar(x, y, clusters=clusters)
    twice = ts.mcnemar(np.tile(x, 2), np.tile(y, 2), clusters=np.tile(clusters, 2))
    assert twice.p_value == pytest.approx(once.p_value, rel=ROUNDING)
    assert twice.conf_low == pytest.approx(once.conf_low, rel=ROUNDING)
    plain = ts.mcnemar(np.tile(x, 2), np.tile(y, 2)).p_value
    assert plain is not None
    assert once.p_value is not None
    assert plain < once.p_value


@pytest.mark.parametrize("method", CLUSTERED)
def test_the_interval_holds_what_the_test_does_not_reject(method: Clustered) -> None:
    """Ends solve z(delta)^2 = quantile, from the definition; and 0 lies inside where p is above alpha."""
    for seed in range(60):
        x, y, cluster = drawn(seed, 60, 5 + seed % 20)
        result = ts.mcnemar(x, y, clusters=cluster, method=method)
        assert result.conf_low is not None
        assert result.conf_high is not None
        assert result.p_value is not None
        assert (result.p_value < 0.05) == (not result.conf_low <= 0 <= result.conf_high), seed
        sums = np.bincount(cluster, weights=x - y)
        sizes = np.bincount(cluster).astype(float)
        k = len(sums)
        factor = k / (k - 1)
        if method == "durkalski":
            sums, sizes, factor = sums / sizes, np.ones(k), 1.0
        for end in (result.conf_low, result.conf_high):
            if abs(end) < 1:
                rest = sums - end * sizes
                assert rest.sum() ** 2 / (factor * (rest @ rest)) == pytest.approx(
                    stats.chi2(1).ppf(0.95), rel=1e-9
                )


@pytest.mark.parametrize(
    ("sizes", "sums", "rejected", "open_ends"),
    [
        ([40, 1, 1], [6, 0, 0], False, (True, True)),
        ([40, 1, 2, 2, 3, 1], [4, 1, 2, 2, 2, 0], False, (True, True)),
        ([40, 1, 2, 2, 3, 3], [4, 1, 2, 2, 3, 2], True, (False, True)),
        ([40, 1, 2, 2, 3, 3], [-4, -1, -2, -2, -3, -2], True, (True, False)),
    ],
)
def test_one_huge_cluster_leaves_ends_open(
    sizes: list[int],
    sums: list[int],
    rejected: bool,
    open_ends: tuple[bool, bool],
) -> None:
    """Differences far away are not rejected; 0 is outside if and only if it is."""
    x = np.concatenate([[1] * max(d, 0) + [0] * (m - max(d, 0)) for d, m in zip(sums, sizes, strict=True)])
    y = np.concatenate([[1] * max(-d, 0) + [0] * (m - max(-d, 0)) for d, m in zip(sums, sizes, strict=True)])
    result = ts.mcnemar(x, y, clusters=np.repeat(range(len(sizes)), sizes))
    assert result.p_value is not None
    assert result.conf_low is not None
    assert result.conf_high is not None
    assert (result.p_value < 0.05) == rejected
    assert (result.conf_low <= 0 <= result.conf_high) == (not rejected)
    assert (result.conf_low == -1, result.conf_high == 1) == open_ends


@pytest.mark.parametrize("method", CLUSTERED)
def test_relabelling_and_order_change_nothing(method: Clustered) -> None:
    x, y, cluster = drawn(7, 80, 25)
    order = np.random.default_rng(0).permutation(80)
    first = ts.mcnemar(x, y, clusters=cluster, method=method)
    second = ts.mcnemar(
        x[order], y[order], clusters=[f"s{99 - label}" for label in cluster[order]], method=method
    )
    assert second.statistic == pytest.approx(first.statistic, rel=ROUNDING)
    assert second.conf_low == pytest.approx(first.conf_low, rel=ROUNDING)
    swapped = ts.mcnemar(y, x, clusters=cluster, method=method)
    assert swapped.estimate == pytest.approx(-first.estimate, rel=ROUNDING)  # type: ignore[operator]
    assert swapped.conf_high == pytest.approx(-first.conf_low, rel=ROUNDING)  # type: ignore[operator]
    one = ts.mcnemar(x, y, clusters=cluster, method=method, alternative="greater").p_value
    other = ts.mcnemar(y, x, clusters=cluster, method=method, alternative="less").p_value
    assert one == other
    assert one == pytest.approx(stats.norm.sf(math.sqrt(first.statistic)), rel=ROUNDING)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", CLUSTERED)
def test_clusters_that_do_not_differ(method: Clustered) -> None:
    """No discordant pair; as many of each kind in every cluster; one difference in all clusters."""
    clusters = np.repeat(np.arange(25), 2)
    same = ts.mcnemar(np.ones(50), np.ones(50), clusters=clusters, method=method)
    assert (same.p_value, same.statistic, same.conf_low) == (1.0, None, None)
    assert "no discordant pairs" in str(same.undefined)
    x = np.tile([1, 0], 25)
    balanced = ts.mcnemar(x, 1 - x, clusters=clusters, method=method)
    assert (balanced.p_value, balanced.statistic, balanced.estimate) == (1.0, None, 0.0)
    assert "No cluster has b_k unlike c_k" in str(balanced.undefined)
    constant = ts.mcnemar(x, np.zeros(50), clusters=clusters, method=method)
    assert constant.estimate == 0.5
    assert (constant.conf_low, constant.conf_high) == (None, None)
    assert constant.statistic == pytest.approx(24 if method == "obuchowski" else 25)
    assert "All 25 clusters have the same difference" in str(constant.undefined)
