"""Kruskal-Wallis, Friedman and Cochran's Q: by hand, by enumeration, and against SciPy."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of probabilities
CLOSE = 1e-9  # the same formula in another order

FRIEDMAN_4X3 = [[1, 2, 3], [2, 1, 3], [1, 3, 2], [1, 2, 3]]
COCHRAN_6X3 = [[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 0]]


def permuted_share(values: np.ndarray, statistic: Callable[[np.ndarray], float | None]) -> float:
    """Of all orders within blocks, those with a statistic at least as large, by definition."""
    own = statistic(values)
    assert own is not None
    arranged = product(*(permutations(row) for row in values.tolist()))
    extreme = [(statistic(np.array(one)) or 0.0) >= own - 1e-9 for one in arranged]
    return float(np.mean(extreme))


@pytest.mark.parametrize("seed", range(4))
def test_kruskal_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [rng.integers(0, 6, size).astype(float) for size in (5, 9, 7, 6)]
    result = ts.kruskal(*groups)
    expected = stats.kruskal(*groups)
    assert result.statistic == pytest.approx(expected.statistic, rel=CLOSE)
    assert result.p_value == pytest.approx(expected.pvalue, rel=CLOSE)
    assert result.details["df"] == 3
    assert result.details["epsilon_squared"] == pytest.approx(expected.statistic / 26, rel=CLOSE)
    assert result.details["eta_squared"] == pytest.approx((expected.statistic - 3) / 23, rel=CLOSE)


def test_kruskal_reads_groups_in_every_form() -> None:
    groups = [[1, 2, 2, 3, 3], [3, 3, 4, 4, 5], [2, 2, 2, 5, 5, 1]]
    expected = ts.kruskal(*groups)
    assert ts.kruskal(groups).statistic == expected.statistic
    values = [value for group in groups for value in group]
    labels = [name for name, group in zip("cab", groups, strict=True) for _ in group]
    by_label = ts.kruskal(values, groups=labels)
    assert by_label.statistic == pytest.approx(expected.statistic, rel=CLOSE)
    assert by_label.details["groups"] == ["a", "b", "c"]
    assert by_label.details["n_by_group"] == [5, 6, 5]
    table = pl.DataFrame({"score": values, "voice": labels})
    assert ts.kruskal("score", groups="voice", data=table) == by_label
    wide = pl.DataFrame({"a": [1, 2, 4], "b": [3, 3, 5]})
    assert ts.kruskal("a", "b", data=wide).details["groups"] == ["a", "b"]


def test_kruskal_of_two_groups_is_mann_whitney() -> None:
    x, y = [5, 4, 3, 5, 4, 2, 5, 3], [3, 2, 2, 4, 1, 3, 2]
    h = ts.kruskal(x, y)
    u = ts.mann_whitney(x, y, method="normal")
    assert h.statistic == pytest.approx(u.details["z"] ** 2, rel=CLOSE)
    assert h.p_value == pytest.approx(u.p_value, rel=CLOSE)


def test_kruskal_without_variance_is_undefined() -> None:
    result = ts.kruskal([2, 2, 2], [2, 2, 2, 2])
    assert (result.statistic, result.p_value, result.details["epsilon_squared"]) == (None, None, None)
    assert result.undefined == "All values tie: ranks have no variance, and H is 0/0."
    assert ts.kruskal([0.1 + 0.2, 0.3], [0.3, 0.7 - 0.4]).undefined is not None


def test_realism_of_three_voices(shared: Shared) -> None:
    table = pl.read_csv(shared("replication/narrativeshield/annotations.csv"))
    expected = json.loads(shared("replication/narrativeshield/expected.json").read_text(encoding="utf-8"))
    result = ts.kruskal("realism", groups="voice", data=table, clusters="question_id", method="chi-square")
    assert result.statistic == pytest.approx(expected["annotations"]["kruskal_H"], rel=CLOSE)
    assert result.statistic == pytest.approx(138.694, abs=5e-4)
    assert result.p_value == pytest.approx(expected["annotations"]["kruskal_p"], rel=CLOSE)
    assert result.details["n_by_group"] == [300, 300, 300]
    note = next(note for note in result.notes if note.code == "independence")
    assert "900 rows are taken as independent, but they share 100 clusters (question_id)" in note.message


@pytest.mark.parametrize("seed", range(4))
def test_friedman_is_that_of_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 5, (11, 4)).astype(float)
    result = ts.friedman(values)
    expected = stats.friedmanchisquare(*values.T)
    assert result.statistic == pytest.approx(expected.statistic, rel=CLOSE)
    assert result.p_value == pytest.approx(expected.pvalue, rel=CLOSE)
    assert result.details["kendall_w"] == pytest.approx(expected.statistic / 33, rel=CLOSE)
    assert ts.friedman(*values.T.tolist()).statistic == result.statistic
    assert ts.friedman(values[::-1]).p_value == pytest.approx(result.p_value, rel=CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_exact_friedman_is_that_of_all_orders(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 4, (4, 3)).astype(float)

    def statistic(arranged: np.ndarray) -> float | None:
        return ts.friedman(arranged).statistic

    result = ts.friedman(values, method="exact")
    assert result.p_value == pytest.approx(permuted_share(values, statistic), abs=EXACT)
    assert "exact" in result.method


def test_exact_reference_values(shared: Shared) -> None:
    fixtures = json.loads(shared("oracles/permutation.json").read_text(encoding="utf-8"))["fixtures"]
    found = 0
    for fixture in fixtures:
        for argument, test in (
            ("blocks_by_treatments", ts.friedman),
            ("subjects_by_treatments", ts.cochran_q),
        ):
            if argument in fixture["input"]:
                found += 1
                exact = test(fixture["input"][argument], method="exact")
                assert exact.statistic == pytest.approx(fixture["expected"]["Q"], rel=CLOSE)
                assert exact.p_value == pytest.approx(fixture["expected"]["p_exact"], rel=CLOSE)
                rough = test(fixture["input"][argument])
                assert rough.p_value == pytest.approx(fixture["expected"]["p_chi2"], rel=CLOSE)
    assert found


def test_exact_reference_values_by_hand() -> None:
    assert ts.friedman(FRIEDMAN_4X3, method="exact").p_value == pytest.approx(0.125, abs=EXACT)
    assert ts.cochran_q(COCHRAN_6X3, method="exact").p_value == pytest.approx(10 / 81, abs=EXACT)


def test_exact_with_two_treatments_is_the_sign_test() -> None:
    x, y = [5, 4, 3, 5, 4, 2, 5, 3, 4, 5, 1, 4, 3, 5, 2], [3, 4, 2, 5, 2, 3, 3, 3, 1, 4, 2, 2, 3, 3, 1]
    assert ts.friedman(x, y, method="exact").p_value == pytest.approx(ts.sign_test(x, y).p_value, abs=EXACT)


def test_full_agreement() -> None:
    result = ts.friedman([[1, 2, 3]] * 8, method="exact")
    assert result.details["kendall_w"] == 1.0
    assert (result.details["iman_davenport_f"], result.details["iman_davenport_p"]) == (None, None)
    assert result.p_value == pytest.approx(6.0**-7, rel=CLOSE)


def test_noise_of_floats_ties_within_blocks() -> None:
    noisy = ts.friedman([[0.1 + 0.2, 0.3, 1.0], [0.5, 0.6, 0.7]])
    assert noisy.statistic == ts.friedman([[3, 3, 10], [5, 6, 7]]).statistic


def test_cochran_of_two_treatments_is_mcnemar() -> None:
    answers = [[1, 0]] * 32 + [[0, 1]] * 13 + [[1, 1]] * 5
    result = ts.cochran_q(answers)
    assert result.statistic == pytest.approx((32 - 13) ** 2 / 45, rel=CLOSE)
    assert result.details["n_varying"] == 45
    assert result.details["rates"] == [0.74, 0.36]
    exact = stats.binomtest(13, 45).pvalue
    assert ts.cochran_q(answers, method="exact").p_value == pytest.approx(exact, rel=CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_cochran_is_friedman_of_binary_answers(seed: int) -> None:
    answers = np.random.default_rng(seed).integers(0, 2, (12, 4))
    q, f = ts.cochran_q(answers), ts.friedman(answers)
    assert q.statistic == pytest.approx(f.statistic, rel=CLOSE)
    assert q.details["kendall_w"] == pytest.approx(f.details["kendall_w"], rel=CLOSE)
    one, other = ts.cochran_q(answers, method="exact"), ts.friedman(answers, method="exact")
    assert one.p_value == pytest.approx(other.p_value, abs=EXACT)


@pytest.mark.parametrize(
    ("test", "values"),
    [(ts.cochran_q, [[1, 1, 1], [0, 0, 0]]), (ts.friedman, [[2, 2, 2], [0.1 + 0.2, 0.3, 0.3]])],
)
@pytest.mark.parametrize("method", ["chi-square", "exact"])
def test_blocks_without_variation_are_undefined(test: Any, values: Any, method: str) -> None:
    result = test(values, method=method)
    assert (result.statistic, result.p_value, result.details["kendall_w"]) == (None, None, None)
    assert (result.undefined is not None, result.details["df"]) == (True, 2)


def test_blocks_of_a_response_table() -> None:
    rows = [
        {"scenario": f"s{s}", "model": m, "condition": c, "score": float((s * 3 + i + (m == "b") * s) % 2)}
        for s in range(8)
        for m in ("a", "b")
        for i, c in enumerate(("alpha", "beta", "gamma"))
        if (s, m, c) != (0, "a", "gamma")
    ]
    table = ts.ResponseTable(pl.DataFrame(rows))
    result = ts.friedman(table)
    assert result.details["treatments"] == ["alpha", "beta", "gamma"]
    assert (result.n, result.details["n_missing"]) == (15, 1)
    codes = [note.code for note in result.notes]
    assert {"unmatched", "pooled", "independence"} <= set(codes)
    note = next(note for note in result.notes if note.code == "independence")
    assert "permutation_test(blocks, statistic=lambda m: m.var(axis=-1)" in note.message
    wide = pl.DataFrame(rows).pivot(on="condition", index=["scenario", "model"], values="score").drop_nulls()
    plain = ts.friedman("alpha", "beta", "gamma", data=wide)
    assert result.statistic == pytest.approx(plain.statistic, rel=CLOSE)
    assert ts.cochran_q(data=table).statistic == pytest.approx(plain.statistic, rel=CLOSE)
    two = ts.friedman("gamma", "alpha", data=table)
    assert two.details["treatments"] == ["gamma", "alpha"]
    everything = ts.friedman("beta", "alpha", data=table)
    assert everything.n == 16


def test_missing_blocks() -> None:
    values = [[1, 2, 3], [None, 1, 2], [3, 2, 1], [1, 3, 2]]
    result = ts.friedman(pl.DataFrame(values, schema=["a", "b", "c"], orient="row"), missing="omit")
    assert (result.n, result.details["n_missing"]) == (3, 1)
    assert result.details["treatments"] == ["a", "b", "c"]


def test_refusals(refusal: Refusal) -> None:
    assert "at least two groups are needed" in refusal(lambda: ts.kruskal([1, 2], groups=["a", "a"]))
    assert "one vector a group" in refusal(lambda: ts.kruskal([1, 2, 3]))
    assert "one vector a group" in refusal(lambda: ts.kruskal(np.ones((2, 3))))
    assert "`group 2` holds no value" in refusal(lambda: ts.kruskal([1, 2], []))
    assert "missing='omit'" in refusal(lambda: ts.kruskal([1, float("nan")], [2, 3]))
    assert "`groups` must have one label a value: expected 2, got 1" in refusal(
        lambda: ts.kruskal([1, 2], groups=["a"])
    )
    assert "one value a block each: they have 2, 3 values" in refusal(lambda: ts.friedman([1, 2], [1, 2, 3]))
    assert "at least two treatments are needed" in refusal(lambda: ts.friedman([[1], [2]]))
    assert "matrix of blocks by treatments" in refusal(ts.friedman)
    assert "every row as long as the others" in refusal(lambda: ts.friedman([[1, 2], [1, 2, 3]]))
    fractional = refusal(lambda: ts.cochran_q([[0.5, 1], [1, 0]]))
    assert "`blocks` holds 0.5 where 0 and 1 are expected. A mean over judges" in fractional
    assert "for scores on a scale use `friedman`" in refusal(lambda: ts.cochran_q([[2, 1], [1, 0]]))
    assert "use method='chi-square'" in refusal(
        lambda: ts.friedman(np.random.default_rng(1).random((40, 8)), method="exact")
    )
    assert "`method` must be one of 'chi-square', 'exact'" in refusal(
        lambda: ts.friedman(FRIEDMAN_4X3, method="normal")  # type: ignore[arg-type]
    )
