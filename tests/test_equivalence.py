"""Equivalence and non-inferiority: duality of tests and intervals, degenerate data, tables, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import triagestats as ts
from triagestats.equivalence_sides import pivots_of

EXACT = 1e-12  # the same numbers by another route
SOLVED = 1e-9  # ends of intervals that are found by a root search

METHODS: list[Any] = ["t", "signed-rank", "bootstrap", "cluster"]


@pytest.fixture(scope="module")
def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """60 pairs in 15 clusters of unequal size, the difference about 0.1."""
    rng = np.random.default_rng(1)
    cluster = np.sort(rng.integers(0, 15, 60))
    x = rng.normal(size=60) + rng.normal(size=15)[cluster]
    return x, x - 0.1 + 0.3 * rng.normal(size=60) + 0.2 * rng.normal(size=15)[cluster], cluster


def test_paired_t_is_two_one_sided_t_tests(pairs: tuple[np.ndarray, ...]) -> None:
    x, y, _ = pairs
    found = ts.tost(x, y, margin=0.2, method="t")
    lower = stats.ttest_1samp(x - y, -0.2, alternative="greater")
    upper = stats.ttest_1samp(x - y, 0.2, alternative="less")
    assert found.details["p_lower"] == pytest.approx(lower.pvalue, rel=EXACT)
    assert found.details["p_upper"] == pytest.approx(upper.pvalue, rel=EXACT)
    assert found.p_value == max(found.details["p_lower"], found.details["p_upper"])
    ends = stats.ttest_1samp(x - y, 0).confidence_interval(0.9)
    assert (found.conf_low, found.conf_high) == pytest.approx(tuple(ends), rel=EXACT)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("margin", [0.05, 0.12, 0.2, 0.3, 0.6])
def test_p_is_below_alpha_where_the_interval_lies_inside(
    pairs: tuple[np.ndarray, ...], method: Any, margin: float
) -> None:
    x, y, cluster = pairs
    clusters = cluster if method in ("cluster", "bootstrap") else None
    found = ts.tost(x, y, margin=margin, method=method, clusters=clusters, n_resamples=1_999)
    assert found.p_value is not None
    assert found.conf_low is not None
    assert found.conf_high is not None
    assert found.details["equivalent"] == (-margin < found.conf_low and found.conf_high < margin)


@pytest.mark.parametrize("method", METHODS)
def test_swapping_the_sides_swaps_the_tests(pairs: tuple[np.ndarray, ...], method: Any) -> None:
    x, y, cluster = pairs
    clusters = cluster if method in ("cluster", "bootstrap") else None
    one = ts.tost(x, y, low=-0.1, high=0.3, method=method, clusters=clusters, n_resamples=499)
    other = ts.tost(y, x, low=-0.3, high=0.1, method=method, clusters=clusters, n_resamples=499)
    assert other.details["p_lower"] == pytest.approx(one.details["p_upper"], rel=EXACT)
    assert other.p_value == pytest.approx(one.p_value, rel=EXACT)
    assert (other.conf_low, other.conf_high) == pytest.approx((-one.conf_high, -one.conf_low), rel=SOLVED)  # type: ignore[operator]


def test_the_cluster_error_is_the_jackknife(pairs: tuple[np.ndarray, ...]) -> None:
    x, y, cluster = pairs
    d = x - y
    without = np.array([d[cluster != g].mean() for g in range(15)])
    error = np.sqrt(14 / 15 * ((without - without.mean()) ** 2).sum())
    found = ts.tost(x, y, margin=0.3, clusters=cluster)
    assert found.details["std_error"] == pytest.approx(error, rel=EXACT)
    assert found.details["df"] == 14
    assert found.details["p_lower"] == pytest.approx(stats.t.sf((d.mean() + 0.3) / error, 14), rel=EXACT)


def test_clusters_of_one_pair_give_the_paired_t_test(pairs: tuple[np.ndarray, ...]) -> None:
    x, y, _ = pairs
    one = ts.tost(x, y, margin=0.2, clusters=np.arange(60))
    assert one.p_value == pytest.approx(ts.tost(x, y, margin=0.2, method="t").p_value, rel=1e-9)


def test_pivots_of_even_clusters_are_those_of_their_means() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(6, 4))
    counts = rng.multinomial(6, np.full(6, 1 / 6), size=50)
    means, pivots = pivots_of(counts, values.sum(axis=1), np.full(6, 4.0), values.mean())
    for row, mean, pivot in zip(counts, means, pivots, strict=True):
        drawn = np.repeat(values.mean(axis=1), row)
        assert mean == pytest.approx(drawn.mean(), rel=EXACT)
        if drawn.std() > 0:
            error = drawn.std(ddof=1) / np.sqrt(6)
            assert pivot == pytest.approx((drawn.mean() - values.mean()) / error, rel=1e-9)


def test_no_discordant_pair_proves_nothing() -> None:
    """Also where every pair agrees, whatever the method says of data without variation."""
    agree = [1] * 40
    assert ts.tost(agree, agree, margin=0.05).p_value == pytest.approx(0.0734, abs=5e-5)
    for method in ("t", "bootstrap"):
        found = ts.tost(agree, agree, margin=0.05, method=method)  # type: ignore[arg-type]
        assert found.p_value is None
        assert "all differences are equal" in str(found.undefined)
    found = ts.tost(agree, agree, margin=0.05, clusters=np.arange(40) // 4)
    assert found.p_value is None
    assert found.details["equivalent"] is None
    assert found.tidy()["status"][0] == "undefined"


def test_zeros_do_not_prove_that_a_median_is_small() -> None:
    """Cells of means of judges: most do not differ, and the pseudo-median has no width."""
    d = [0.0] * 277 + [0.5] * 22 + [-0.5] * 45
    found = ts.tost(d, margin=0.05, method="signed-rank")
    assert found.p_value is None
    assert "no width" in str(found.undefined)
    assert ts.tost(d, margin=0.05).p_value > 0.05  # type: ignore[operator]


def test_noninferiority_speaks_of_its_own_bound() -> None:
    found = ts.noninferiority([[120, 32], [13, 35]], margin=0.1)
    assert "bound -0.1" in found.method
    assert "high" not in found.details
    assert "p_upper" not in found.details


def test_what_is_read_as_proportions_is_said() -> None:
    assert [note.code for note in ts.tost([1, 0, 1, 1], [0, 1, 1, 1], margin=0.3).notes] == ["method"]
    assert ts.tost([1, 0, 1, 1], [0, 1, 1, 1], margin=0.3, method="tango").notes == ()


def test_a_crosstab_is_read_by_its_labels() -> None:
    pd = pytest.importorskip("pandas")
    x, y = [1] * 30 + [0] * 20, [1] * 26 + [0] * 4 + [1] * 9 + [0] * 11
    crossed = ts.tost(pd.crosstab(pd.Series(x, name="x"), pd.Series(y, name="y")), margin=0.3)
    assert crossed.p_value == pytest.approx(ts.tost(x, y, margin=0.3).p_value, rel=EXACT)
    assert [note.code for note in crossed.notes] == ["labels"]


def test_keys_of_a_table_without_a_partner_are_counted() -> None:
    notes = {note.code: note.message for note in ts.tost(ts.demo_table(), margin=0.1).notes}
    assert notes["unmatched"].startswith("6 of 255 keys are not scored at all of the levels")
    assert "plain mean of their estimates" in notes["pooled"]


@pytest.mark.parametrize("shift", [0.1, 1e6 + 0.1])
def test_rounding_is_no_variation(shift: float) -> None:
    y = np.arange(1.0, 9.0)
    found = ts.tost(y + shift, y, low=shift - 1, high=shift + 1, method="t")
    assert found.p_value is None
    assert found.estimate == pytest.approx(shift)


def test_differences_alone_are_one_sample() -> None:
    d = np.array([0.1, -0.2, 0.3, 0.05, -0.1, 0.2])
    alone = ts.tost(d, margin=0.4)
    assert alone.p_value == ts.tost(d, np.zeros(6), margin=0.4, method="t").p_value
    assert alone.contrast == "x"


def test_noninferiority_is_the_lower_test() -> None:
    table = [[120, 32], [13, 35]]
    both = ts.tost(table, margin=0.1)
    one = ts.noninferiority(table, margin=0.1)
    assert one.p_value == both.details["p_lower"]
    assert one.alternative == "greater"
    other = ts.noninferiority(table, margin=0.1, higher_is_better=False)
    assert other.p_value == both.details["p_upper"]
    assert not other.details["noninferior"]


def test_a_table_gives_the_verdict_of_analyze() -> None:
    table = ts.demo_table()
    for margin in (0.05, 0.2, 0.3):
        fit = ts.analyze(table, margin=margin, n_resamples=99)
        assert fit.contrasts is not None
        row = fit.contrasts.row(0, named=True)
        found = ts.tost(table, margin=margin)
        assert found.estimate == pytest.approx(row["estimate"], rel=EXACT)
        assert found.details["std_error"] == pytest.approx(row["std_error"], rel=EXACT)
        assert found.details["n_clusters"] == 17
        assert found.details["equivalent"] == (row["verdict"] == "equivalent")


def test_an_estimand_of_a_table_for_one_model() -> None:
    table = ts.demo_table()
    model = table.frame["model"][0]
    gap = ts.Gap("letter", ["free_text"])
    found = ts.tost(table, estimand=gap, model=model, margin=0.3)
    fit = ts.bootstrap(table, [gap], interval="jackknife-t", n_resamples=99).tidy()
    row = next(row for row in fit.iter_rows(named=True) if row["model"] == model)
    assert found.estimate == pytest.approx(row["estimate"], rel=EXACT)
    assert found.details["std_error"] == pytest.approx(row["std_error"], rel=EXACT)
    assert found.contrast == "letter - mean(free_text)"


def test_an_estimand_that_is_not_smooth_is_read_from_replicates() -> None:
    levels = ["a", "b", "c"]
    rng = np.random.default_rng(3)
    rows = [
        {"scenario": f"s{s}", "condition": level, "score": float(rng.random() < 0.7)}
        for s in range(30)
        for level in levels
    ]
    table = ts.ResponseTable({key: [row[key] for row in rows] for key in rows[0]})
    found = ts.tost(table, estimand=ts.AnchoringGap("a", ["b", "c"]), margin=0.9, n_resamples=999)
    assert found.statistic is None
    assert found.p_value == pytest.approx(1 / 1_000)
    assert "percentile" in found.method


def test_rows_that_share_clusters_are_noted() -> None:
    table = ts.demo_table().with_judge("judge_1")
    found = ts.tost(table, margin=0.1, method="tango")
    (note,) = [note for note in found.notes if note.code == "independence"]
    assert "17 clusters (scenario)" in note.message
    assert "method='cluster'" in note.message


def test_few_clusters_are_withheld() -> None:
    d = np.array([0.1, 0.2, -0.1, 0.0, 0.3, 0.1])
    found = ts.tost(d, clusters=[1, 1, 2, 2, 3, 3], margin=0.5)
    assert found.p_value is None
    assert found.estimate == pytest.approx(0.1)
    assert "3 clusters are too few" in str(found.undefined)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ts.tost([1, 2], [1, 3]), "give `margin`"),
        (lambda: ts.tost([1, 2], [1, 3], margin=0.1, low=-1, high=1), "give `margin`"),
        (lambda: ts.tost([1, 2], [1, 3], low=0.1), "`high` must be a finite number; got None"),
        (lambda: ts.tost([1, 2], [1, 3], low=1, high=-1), "`low` must lie below `high`; got 1 and -1"),
        (lambda: ts.tost([1, 2], [1, 3], margin=-0.1), "`margin` must be positive"),
        (lambda: ts.tost([1, 2], [1, 3], margin=0.1, alpha=0.5), "`alpha` must lie between 0 and 0.5"),
        (lambda: ts.tost([1, 2], [1], margin=0.1), "must pair: they have 2 and 1 values"),
        (lambda: ts.tost([1, None], [1, 2], margin=0.1), "missing value"),
        (lambda: ts.tost([0.5, 1], [1, 0], margin=0.1, method="tango"), "takes pairs of 0 and 1"),
        (lambda: ts.tost([0, 1], [1, 0], margin=0.1, method="signed-rank"), "use method='tango'"),
        (lambda: ts.tost([0.5, 1], [1, 0], margin=0.1, method="cluster"), "needs `clusters`"),
        (lambda: ts.tost([[1, 2], [3, 4]], margin=0.1, method="t"), "takes method='tango'"),
        (lambda: ts.tost([[1, 2, 3], [3, 4, 5]], margin=0.1), "a 2 x 2 table of paired counts"),
        (lambda: ts.tost([[1, -2], [3, 4]], margin=0.1), "a negative count"),
        (lambda: ts.tost(margin=0.1), "`x` is needed"),
        (lambda: ts.tost([1, 1, 1], [1, 1, 1], margin=1), "must lie between -1 and 1 for a difference of"),
        (lambda: ts.tost_proportions(0, 10, 10, 10, margin=1.5), "must lie between -1 and 1"),
        (lambda: ts.tost([1, 2], [1, 3], margin=0.1, model="m"), "need a ResponseTable"),
        (lambda: ts.tost([1, 2], [1, 3], margin=0.1, method="welsh"), "`method` must be one of"),  # type: ignore[arg-type]
        (lambda: ts.tost_proportions(3, 2, 1, 2, margin=0.1), "`nobs1` must be at least 1 and `count1`"),
        (lambda: ts.tost(ts.demo_table(), margin=0.1, model="nobody"), "`model` must be one of"),
        (lambda: ts.tost(ts.demo_table(), margin=0.1, clusters=[1]), "table.with_cluster"),
    ],
)
def test_refusals(
    refusal: Callable[[Callable[[], object]], str], call: Callable[[], object], said: str
) -> None:
    assert said in refusal(call)
