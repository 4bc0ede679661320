"""Permutation tests of a response table and their max-T adjustment."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts

Array = np.ndarray
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # counts over counts


def table_of(scores: Array, levels: Sequence[str], models: Sequence[str] | None = None) -> ts.ResponseTable:
    """Scores of shape (G, L), or (G, M, L)."""
    scores = scores if models else scores[:, None]
    rows = [
        {"scenario": f"s{g:03}", "condition": level, "score": float(scores[g, m, place])}
        | ({"model": model} if models else {})
        for g in range(len(scores))
        for m, model in enumerate(models or ["m"])
        for place, level in enumerate(levels)
    ]
    return ts.ResponseTable(pl.DataFrame(rows).with_columns(pl.col("condition").cast(pl.Enum(list(levels)))))


def brute_max_t(null: Array, observed: Array, center: Array, alternative: str) -> Array:
    """Single-step p-values from all arrangements, shape (A, E)."""
    sd = np.sqrt(((null - center) ** 2).mean(axis=0))
    z, own = (null - center) / sd, (observed - center) / sd
    if alternative == "two-sided":
        z, own = np.abs(z), np.abs(own)
    elif alternative == "less":
        z, own = -z, -own
    return (z.max(axis=1)[:, None] >= own - 1e-9).mean(axis=0)


def test_max_t_of_the_oracle(shared: Callable[[str], Path]) -> None:
    """There the statistic is |t|, an increasing function of |mean| / sd as flips keep the squares."""
    (fixture,) = (
        f
        for f in json.loads(shared("oracles/multiple_testing.json").read_text())["fixtures"]
        if f["name"] == "maxT_stepdown_signflip_enumerated"
    )
    d = np.array(fixture["input"]["differences"])
    levels = ["reference", "l1", "l2", "l3", "l4"]
    scores = np.concatenate([np.zeros((6, 1)), d], axis=1)
    found = ts.permutation_tests(table_of(scores, levels)).tidy()
    assert found["p_value"].to_list() == pytest.approx(fixture["expected"]["raw_p"], abs=EXACT)
    assert found["p_adjusted"].to_list() == pytest.approx(fixture["expected"]["single_step_p"], abs=EXACT)
    assert set(found["method"]) == {
        "permutation by cluster, exact by enumeration; max-T over 4, exact by enumeration"
    }


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_models_are_a_family(alternative: Any) -> None:
    """Pooled and three models: one flip a scenario serves all."""
    scores = np.random.default_rng(5).choice([0, 0.25, 0.5, 1], size=(6, 3, 2))
    d = scores[..., 1] - scores[..., 0]
    values = np.concatenate([d.mean(axis=1, keepdims=True), d], axis=1)
    null = np.array(
        [(np.array(s)[:, None] * values).mean(axis=0) for s in itertools.product([1, -1], repeat=6)]
    )
    expected = brute_max_t(null, values.mean(axis=0), np.zeros(4), alternative)
    tests = ts.permutation_tests(
        table_of(scores, ["a", "b"], ["m1", "m2", "m3"]), alternative=alternative, n_resamples=64
    )
    found = tests.tidy()
    assert found["model"].to_list() == [None, "m1", "m2", "m3"]
    assert found["p_adjusted"].to_list() == pytest.approx(expected.tolist(), abs=EXACT)
    assert found["statistic"].to_list() == pytest.approx(
        (values.mean(axis=0) / null.std(axis=0)).tolist(), abs=1e-9
    )
    drawn = ts.permutation_tests(
        table_of(scores, ["a", "b"], ["m1", "m2", "m3"]), alternative=alternative, n_resamples=63
    ).tidy()
    assert "63 drawn" in drawn["method"][0]


def test_estimands_of_the_same_labels_see_one_relabelling() -> None:
    """Two gaps and a rough one over three labels, by all 6^4 arrangements."""
    scores = np.random.default_rng(6).random((4, 3))
    estimands = [ts.Gap("a", ["b", "c"]), ts.Gap("c", ["a", "b"]), ts.AnchoringGap("b", ["c", "a"])]

    def values(means: Array) -> Array:
        a, b, c = means
        return np.array([a - (b + c) / 2, c - (a + b) / 2, b - min(a, c)])

    orders = [list(order) for order in itertools.permutations(range(3))]
    null = np.array(
        [
            values(np.mean([row[order] for row, order in zip(scores, choice, strict=True)], axis=0))
            for choice in itertools.product(orders, repeat=4)
        ]
    )
    center = np.array([0.0, 0.0, null[:, 2].mean()])
    expected = brute_max_t(null, values(scores.mean(axis=0)), center, "two-sided")
    tests = ts.permutation_tests(table_of(scores, ["a", "b", "c"]), estimands=estimands)
    assert tests.tidy()["p_adjusted"].to_list() == pytest.approx(expected.tolist(), abs=EXACT)
    assert not [note for note in tests.notes if note.code == "families"]


def test_drawn_adjustment_comes_near_the_enumerated_one() -> None:
    scores = np.random.default_rng(7).random((12, 4))
    table = table_of(scores + np.array([0, 0.1, 0.2, 0.3]), ["a", "b", "c", "d"])
    exact = ts.permutation_tests(table, n_resamples=4_096).tidy()["p_adjusted"].to_numpy()
    drawn = ts.permutation_tests(table, n_resamples=2_000).tidy()["p_adjusted"].to_numpy()
    assert (np.abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 2_000) + 1 / 2_001).all()


def test_other_labels_are_adjusted_apart() -> None:
    scores = np.random.default_rng(8).random((9, 4))
    table = table_of(scores, ["a", "b", "c", "d"])
    gap, other, step = ts.Gap("a", ["b", "c"]), ts.Gap("a", ["b", "d"]), ts.Difference("d", "a")
    tests = ts.permutation_tests(table, estimands=[gap, other, step], n_resamples=499)
    (note,) = (note for note in tests.notes if note.code == "families")
    assert note.message.startswith("`p_adjusted` is made apart in 3 families")
    assert all("max-T over 1," in method for method in tests.tidy()["method"])
    alone = ts.permutation_tests(table, estimands=[step], n_resamples=499).tidy()
    assert tests.tidy()["p_value"][2] == alone["p_value"][0]


def test_the_adjusted_p_is_never_below_the_other() -> None:
    for n_resamples in (99, 999):
        frame = ts.permutation_tests(ts.demo_table(), n_resamples=n_resamples).tidy()
        assert (frame["p_adjusted"] >= frame["p_value"]).all()


def test_p_values_are_those_of_analyze() -> None:
    tests = ts.permutation_test(ts.demo_table(), n_resamples=499)
    contrasts = ts.analyze(ts.demo_table(), n_resamples=499).contrasts
    assert contrasts is not None
    assert isinstance(tests, ts.PermutationTests)
    same = ["contrast", "model", "estimate", "p_value", "n_rows", "n_clusters", "n_missing"]
    assert tests.tidy().select(same).equals(contrasts.select(same))


def test_threads_and_models_names_change_nothing() -> None:
    scores = np.random.default_rng(9).random((20, 3, 3))
    once = ts.permutation_tests(table_of(scores, list("abc"), ["x", "y", "z"]), n_resamples=301, n_threads=1)
    more = ts.permutation_tests(table_of(scores, list("abc"), ["x", "y", "z"]), n_resamples=301, n_threads=3)
    assert once.tidy().equals(more.tidy())
    turned = ts.permutation_tests(
        table_of(scores[:, ::-1], list("abc"), ["x", "y", "z"]), n_resamples=301
    ).tidy()
    for model, other in (("x", "z"), ("y", "y"), ("z", "x")):
        rows = [frame.filter(pl.col("model") == m) for frame, m in ((once.tidy(), model), (turned, other))]
        assert rows[0]["p_adjusted"].equals(rows[1]["p_adjusted"])


def test_what_cannot_be_tested_has_a_reason() -> None:
    scores = np.random.default_rng(10).random((3, 2, 2))
    scores[:, 1] = 0.5
    tests = ts.permutation_tests(
        table_of(scores, ["a", "b"], ["m", "still"]), estimands=[ts.Difference("b", "a"), ts.Mean("a")]
    )
    frame = tests.tidy()
    status = dict(zip(zip(frame["contrast"], frame["model"], strict=True), frame["status"], strict=True))
    assert status["mean(a)", "m"] == "undefined"
    still = frame.filter((pl.col("model") == "still") & (pl.col("estimand") == "difference"))
    assert still.select("p_value", "p_adjusted", "statistic", "reason").row(0) == (
        1.0,
        1.0,
        None,
        "the levels do not differ in any cluster",
    )
    assert frame["reason"][0] == "p cannot be below 0.25 with 3 clusters in which the levels differ"


def test_the_family_converts() -> None:
    tests = ts.permutation_tests(ts.demo_table(), n_resamples=99, alternative="greater")
    assert pickle.loads(pickle.dumps(tests)).tidy().equals(tests.tidy())
    assert len(json.loads(json.dumps(tests.to_dict(), allow_nan=False))["tests"]) == tests.frame.height
    glance = tests.glance().row(0, named=True)
    assert (glance["n_tests"], glance["alternative"]) == (tests.frame.height, "greater")
    assert tests.to_pandas().shape == tests.tidy().shape
    assert repr(tests).startswith("Permutation tests by cluster, greater\n")
    assert tests.tidy()["method"][0].endswith("; one-sided, greater")


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.frame, lambda t: t.frame.to_pandas()])
def test_any_table_will_do(make: Callable[[ts.ResponseTable], Any]) -> None:
    table = table_of(np.random.default_rng(11).random((5, 2)), ["a", "b"])
    found = ts.permutation_test(make(table))
    assert isinstance(found, ts.PermutationTests)
    assert found.tidy()["p_value"].equals(ts.permutation_tests(table).tidy()["p_value"])


def test_refusals_say_what_to_do(refusal: Refusal) -> None:
    scores = np.random.default_rng(12).random((4, 2))
    table = table_of(scores, ["a", "b"])
    models = np.random.default_rng(13).random((4, 3, 2))
    crossed = table_of(models, ["a", "b"], ["x", "y", "z"]).with_cluster(["scenario", "model"])
    assert refusal(lambda: ts.permutation_tests(crossed)).startswith(
        "DesignError: a permutation within clusters needs one cluster column, and this table has two"
    )
    one = ts.ResponseTable({"scenario": ["s", "t"], "score": [1, 0]})
    assert refusal(lambda: ts.permutation_tests(one)) == (
        "DesignError: there is no contrast: the table has no condition with two levels or more"
    )
    assert "`match` must be one of" in refusal(
        lambda: ts.permutation_tests(table, match="pair")  # type: ignore[arg-type]
    )
    assert math.isfinite(ts.permutation_tests(table).tidy()["p_value"][0])
