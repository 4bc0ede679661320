"""Kendall's W: by rank correlations, ties, and limits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # rounding of sums of ranks


def test_mean_rank_correlation() -> None:
    values = np.random.default_rng(1).normal(size=(8, 4))
    test = ts.kendall_w(values)
    pairs = [stats.spearmanr(values[:, i], values[:, j]).statistic for i, j in combinations(range(4), 2)]
    assert test.details["mean_spearman"] == pytest.approx(np.mean(pairs), abs=EXACT)
    assert test.details["w_no_tie_correction"] == test.estimate


@pytest.mark.parametrize("ties", [False, True])
def test_the_chi_square_is_friedmans(ties: bool) -> None:
    values = np.random.default_rng(2).normal(size=(6, 5))
    values = np.round(values) if ties else values
    expected = stats.friedmanchisquare(*values)
    test = ts.kendall_w(values)
    assert test.statistic == pytest.approx(expected.statistic, abs=EXACT)
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-10)


def test_monotone_changes_of_a_rater_change_nothing() -> None:
    values = np.random.default_rng(3).normal(size=(7, 3))
    bent = np.column_stack([np.exp(values[:, 0]), values[:, 1] ** 3, values[:, 2] * 1e-9])
    assert ts.kendall_w(bent).estimate == pytest.approx(ts.kendall_w(values).estimate, abs=EXACT)


def test_float_noise_breaks_no_ties() -> None:
    noisy = [[0.1 + 0.2, 1], [0.3, 2], [0.5, 3]]
    clean = [[0.3, 1], [0.3, 2], [0.5, 3]]
    assert ts.kendall_w(noisy).estimate == ts.kendall_w(clean).estimate


def test_limits() -> None:
    assert ts.kendall_w([[1, 1, 1], [2, 2, 2], [3, 3, 3]]).estimate == 1
    assert ts.kendall_w([[1, 2], [2, 1]]).estimate == 0
    assert ts.kendall_w([[1, 5], [1, 5], [1, 9]]).estimate is not None
    tied = ts.kendall_w([[1, 5], [1, 5], [1, 5]])
    assert tied.estimate is tied.p_value is tied.statistic is None
    assert tied.undefined is not None
    assert tied.undefined.startswith("Every rater ties all items")


def test_columns_of_a_table_and_missing_items() -> None:
    data = pl.DataFrame({"x": [1, 2, 3, None], "y": [1, 3, 2, 4], "z": [2, 1, 3, 4]})
    test = ts.kendall_w(["x", "y"], data=data, missing="omit")
    assert test.estimate == ts.kendall_w([[1, 1], [2, 3], [3, 2]]).estimate
    assert (test.n, test.details["n_missing"]) == (3, 1)
    assert test.details["raters"] == ["x", "y"]


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.kendall_w([[1, 2]]), "has 1 item, and a ranking needs two"),
        (lambda: ts.kendall_w([[1, None], [2, 3]]), "missing='omit'"),
        (lambda: ts.kendall_w([["a", "b"], ["c", "d"]]), "must hold numbers"),
        (lambda: ts.kendall_w([[1], [2]]), "two at least"),
    ],
)
def test_bad_input(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)
