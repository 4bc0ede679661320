"""The Mann-Whitney test: by hand, by enumeration, against SciPy, and by cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import get_args

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.results import Alternative

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of probabilities
CLOSE = 1e-9  # the same formula in another order

ALTERNATIVES: tuple[Alternative, ...] = get_args(Alternative)
TIED = ([5, 4, 3, 5, 4, 2, 5, 3], [3, 2, 2, 4, 1, 3, 2])


def groups(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(seed).integers(0, 5, n + m).astype(float)
    return values[:n], values[n:]


def of_all_subsets(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """U over all choices of the first group, and as observed."""
    ranks = stats.rankdata(np.concatenate([x, y]))
    n = len(x)
    sums = np.array([sum(chosen) for chosen in combinations(ranks.tolist(), n)])
    return sums - n * (n + 1) / 2, float(ranks[:n].sum()) - n * (n + 1) / 2


@pytest.mark.parametrize("sizes", [(5, 5), (3, 7), (7, 3), (1, 8), (8, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_exact_p_is_that_of_all_subsets(seed: int, sizes: tuple[int, int]) -> None:
    x, y = groups(seed, *sizes)
    u, own = of_all_subsets(x, y)
    above, below = np.mean(u >= own - 1e-9), np.mean(u <= own + 1e-9)
    center = len(x) * len(y) / 2
    expected = {
        ("greater", "distance"): above,
        ("less", "distance"): below,
        ("two-sided", "distance"): np.mean(np.abs(u - center) >= abs(own - center) - 1e-9),
        ("two-sided", "doubled"): min(1.0, 2 * min(above, below)),
    }
    for (alternative, rule), p in expected.items():
        result = ts.mann_whitney(x, y, method="exact", alternative=alternative, two_sided=rule)  # type: ignore[arg-type]
        assert result.p_value == pytest.approx(p, abs=EXACT)
        assert result.statistic == own


@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_normal_is_that_of_scipy(alternative: Alternative, correction: bool) -> None:
    x, y = groups(3, 25, 30)
    result = ts.mann_whitney(x, y, method="normal", alternative=alternative, correction=correction)
    expected = stats.mannwhitneyu(
        x, y, method="asymptotic", alternative=alternative, use_continuity=correction
    )
    assert result.p_value == pytest.approx(expected.pvalue, rel=CLOSE)
    assert result.statistic == expected.statistic


@pytest.mark.parametrize("sizes", [(1, 4), (6, 9), (20, 11)])
def test_without_ties_it_is_that_of_scipy(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=sizes[0]), rng.normal(size=sizes[1]) + 0.4
    expected = stats.mannwhitneyu(x, y, method="exact")
    assert ts.mann_whitney(x, y).p_value == pytest.approx(expected.pvalue, rel=CLOSE)


def test_two_rules_differ_where_ties_make_the_law_skew() -> None:
    assert ts.mann_whitney(*TIED).p_value == pytest.approx(0.0357420357420357, rel=CLOSE)
    doubled = ts.mann_whitney(*TIED, two_sided="doubled")
    assert doubled.p_value == pytest.approx(0.0388500388500388, rel=CLOSE)
    assert "doubled" in doubled.method


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_sign_of_the_effect_does_not_depend_on_the_alternative(alternative: Alternative) -> None:
    result = ts.mann_whitney([5, 6, 7, 8], [1, 2, 3, 9], alternative=alternative)
    assert result.details["rank_biserial"] == 0.5
    assert result.details["prob_superiority"] == 0.75
    swapped = ts.mann_whitney([1, 2, 3, 9], [5, 6, 7, 8], alternative=alternative)
    assert swapped.details["rank_biserial"] == -0.5
    assert swapped.estimate == -(result.estimate or 0.0)


def test_the_far_tail_is_exact() -> None:
    result = ts.mann_whitney(range(60), range(60, 120), alternative="less")
    assert "exact" in result.method
    assert result.p_value == pytest.approx(1 / math.comb(120, 60), rel=CLOSE)
    assert result.p_value < 1e-34


def test_auto_turns_normal_where_the_law_is_long() -> None:
    x, y = np.arange(300.0), np.arange(300.0) + 10.5
    assert "normal approximation" in ts.mann_whitney(x, y).method


def test_all_tied() -> None:
    exact = ts.mann_whitney([1] * 4, [1] * 5)
    assert (exact.p_value, exact.statistic, exact.details["z"], exact.estimate) == (1.0, 10.0, None, 0.0)
    assert any("All values tie" in note.message for note in exact.notes)
    normal = ts.mann_whitney([1] * 4, [1] * 5, method="normal")
    assert normal.p_value is None
    assert normal.undefined is not None


def test_noise_of_floats_ties() -> None:
    noisy = ts.mann_whitney([0.1 + 0.2, 0.7 - 0.4, 0.6], [0.3, 0.1, 0.2])
    clean = ts.mann_whitney([3, 3, 6], [3, 1, 2])
    assert noisy.p_value == clean.p_value
    assert noisy.statistic == clean.statistic == 8.0


def test_labels_and_tables() -> None:
    x, y = TIED
    values, labels = [*x, *y], ["x"] * len(x) + ["a"] * len(y)
    expected = ts.mann_whitney(x, y)
    by_label = ts.mann_whitney(values, groups=labels)
    assert by_label.contrast == "x - a"
    assert (by_label.p_value, by_label.details) == (expected.p_value, expected.details)
    ordered = pl.Series(labels, dtype=pl.Enum(["x", "a"]))
    table = pl.DataFrame({"score": values, "format": ordered, "scenario": range(15)})
    result = ts.mann_whitney("score", groups="format", data=table)
    assert result.contrast == "a - x"
    assert result.details["rank_biserial"] == -expected.details["rank_biserial"]
    assert not any(note.code == "independence" for note in result.notes)
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    assert ts.mann_whitney("score", groups="format", data=shuffled) == result


def test_shared_scenarios_are_noted() -> None:
    x, y = TIED
    table = {
        "score": [*x, *y],
        "format": ["b"] * len(x) + ["a"] * len(y),
        "scenario": [place // 3 for place in range(15)],
    }
    note = ts.mann_whitney("score", groups="format", data=table).notes[-1]
    assert note.code == "independence"
    # The third scenario has values of both groups.
    assert "the groups vary within clusters, so that permutation_test(a, b, clusters=...)" in note.message
    whole = ts.mann_whitney(
        "score", groups="format", data=table | {"scenario": [place // 4 for place in range(15)]}
    )
    assert "permutation_test(values, groups=..., clusters=...)" in whole.notes[-1].message


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_clusters_are_permuted(alternative: Alternative) -> None:
    values = np.array([5, 4, 3, 5, 4, 2, 5, 3, 3, 2, 2, 4, 1, 3, 2], dtype=float)
    cluster = np.array([0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5, 6, 6])
    in_x = cluster < 4
    result = ts.mann_whitney(values[in_x], values[~in_x], clusters=cluster, alternative=alternative)
    ranks = stats.rankdata(values)

    def statistic(chosen: tuple[int, ...]) -> float:
        inside = np.isin(cluster, chosen)
        return float(ranks[inside].mean() - ranks[~inside].mean())

    null = np.array([statistic(chosen) for chosen in combinations(range(7), 4)])
    own = statistic((0, 1, 2, 3))
    extreme = {
        "greater": null >= own - 1e-9,
        "less": null <= own + 1e-9,
        "two-sided": np.abs(null - null.mean()) >= abs(own - null.mean()) - 1e-9,
    }[alternative]
    assert result.p_value == pytest.approx(extreme.mean(), abs=EXACT)
    assert "permutation of clusters between groups" in result.method
    assert (result.details["n_clusters"], result.conf_low) == (7, None)


def test_refusals(refusal: Refusal) -> None:
    assert refusal(lambda: ts.mann_whitney([1, 2])) == (
        "ArgumentTypeError: give `y`, the values of the second group, or `groups`, one label a value; "
        "and not both"
    )
    assert "kruskal(values, groups=...)" in refusal(
        lambda: ts.mann_whitney([1, 2, 3], groups=["a", "b", "c"])
    )
    assert "two labels among the values; got 3" in refusal(
        lambda: ts.mann_whitney([1, 2, 3], groups=["a", "b", "c"])
    )
    assert "`y` holds no value" in refusal(lambda: ts.mann_whitney([1, 2], []))
    assert "must hold numbers" in refusal(lambda: ts.mann_whitney(["low"], ["high"]))
    assert "missing='omit'" in refusal(lambda: ts.mann_whitney([1, None], [2, 3]))
    assert "group 'y' has no value left" in refusal(
        lambda: ts.mann_whitney([1, 2], [None, None], missing="omit")
    )
    assert "cluster 's1' has rows of both groups, 'x' and 'y'" in refusal(
        lambda: ts.mann_whitney([1, 2], [3, 4], clusters=["s1", "s2", "s1", "s3"])
    )
    assert "`clusters` must have one label a row: expected 4, got 2" in refusal(
        lambda: ts.mann_whitney([1, 2], [3, 4], clusters=["s1", "s2"])
    )
    assert "would take too long for 400 and 400 values" in refusal(
        lambda: ts.mann_whitney(range(400), range(400), method="exact")
    )
    assert "needs `clusters`" in refusal(lambda: ts.mann_whitney([1], [2], method="cluster-permutation"))
