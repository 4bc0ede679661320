"""Reading of ratings: vectors, matrices, tables of any make, and the judges of a response table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import triagestats as ts
from triagestats.agreement.ratings import read_rated_pairs, read_rated_units, read_scores
from triagestats.agreement.scale import Scale, plain_scale, scale_of

Refusal = Callable[[Callable[[], object]], str]

UNITS = [[1, 1], [2, 2], [3, 2], [1, 2], [2, 2]]


def judged(**changes: Any) -> ts.ResponseTable:
    """Six responses to three scenarios, two judges, of whom one skipped a response."""
    rows = {
        "scenario": ["s1", "s1", "s2", "s2", "s3", "s3"] * 2,
        "model": ["m", "n"] * 6,
        "judge": ["x"] * 6 + ["y"] * 6,
        "response": ["A", "B", "B", "C", "A", "A", "A", "B", "C", "C", "A", None],
        "gold": ["A", "A", "B", "B", "A", "A"] * 2,
    }
    return ts.ResponseTable(rows, **({"levels": ["A", "B", "C", "D"]} | changes))


@pytest.mark.parametrize(
    "ratings",
    [
        UNITS,
        [tuple(unit) for unit in UNITS],
        np.array(UNITS),
        np.array(UNITS, dtype=float),
        np.array(UNITS).astype(str),
        pl.DataFrame({"p": [1, 2, 3, 1, 2], "q": [1, 2, 2, 2, 2]}),
        pd.DataFrame({"p": [1, 2, 3, 1, 2], "q": [1, 2, 2, 2, 2]}),
        {"p": [1, 2, 3, 1, 2], "q": ["1", "2", "2", "2", "2"]},
    ],
    ids=["rows", "tuples", "int", "float", "text", "polars", "pandas", "mapping"],
)
def test_matrices_of_any_make(ratings: object) -> None:
    units = read_rated_units(ratings)
    assert units.scale.labels == ("1", "2", "3")
    assert units.scale.values == (1.0, 2.0, 3.0)
    assert units.counts.tolist() == [[2, 0, 0], [0, 2, 0], [0, 1, 1], [1, 1, 0], [0, 2, 0]]
    assert ts.gwet_ac1(ratings).estimate == ts.gwet_ac1(UNITS).estimate


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
def test_gaps_of_any_make(gap: object) -> None:
    units = read_rated_units([["a", "a"], ["b", gap], [gap, gap]])
    assert units.counts.tolist() == [[2, 0], [0, 1]]
    assert units.n_empty == 1


def test_pairs_of_any_make() -> None:
    first, second = [1, 2, 3], [1, 3, 3]
    plain = read_rated_pairs(first, second).counts
    for make in (np.array, pl.Series, pd.Series, lambda v: [str(x) for x in v]):
        np.testing.assert_array_equal(read_rated_pairs(make(first), make(second)).counts, plain)  # type: ignore[operator]


def test_pandas_order_of_numbers() -> None:
    kind = pd.CategoricalDtype([3, 2, 1], ordered=True)
    pairs = read_rated_pairs(
        pd.Series([1, 2, None], dtype=kind), pd.Series([1, 3, 1], dtype=kind), missing="omit"
    )
    assert pairs.scale == Scale(("3", "2", "1"), (3.0, 2.0, 1.0), declared=True, numeric=True)
    assert (pairs.n, pairs.n_missing) == (2, 1)


def test_totals_by_unit_and_by_cluster() -> None:
    pairs = read_rated_pairs([1, 2, 1, 2], [1, 2, 2, 2], clusters=["x", "y", "x", "y"])
    assert pairs.totals().tolist() == [[1, 1, 0, 0], [0, 0, 0, 2]]
    alone = read_rated_pairs([1, 2, 1, 2], [1, 2, 2, 2])
    assert alone.totals().tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 1]]
    table = read_rated_pairs([[1, 1], [0, 2]])
    assert sorted(table.totals().tolist()) == sorted(alone.totals().tolist())


def test_scales() -> None:
    numbers = scale_of([pl.Series([10, 9, 2])])
    assert (numbers.labels, numbers.values) == (("2", "9", "10"), (2.0, 9.0, 10.0))
    text = scale_of([pl.Series(["b", "a"])])
    assert (text.labels, text.values, text.declared) == (("a", "b"), None, False)
    assert scale_of([], ["low", "high"]).values == (1.0, 2.0)
    assert scale_of([], ["1", "2", "4"]).values == (1.0, 2.0, 4.0)
    assert scale_of([pl.Series([True, False])]).values == (0.0, 1.0)
    assert plain_scale(3).labels == ("1", "2", "3")


def test_different_enums_are_refused(refusal: Refusal) -> None:
    first = pl.Series(["a"], dtype=pl.Enum(["a", "b"]))
    second = pl.Series(["a"], dtype=pl.Enum(["b", "a"]))
    assert "different Enums" in refusal(lambda: ts.cohen_kappa(first, second))
    assert ts.cohen_kappa(first, second, categories=["a", "b"]).n == 1


def test_judges_of_a_response_table(refusal: Refusal) -> None:
    table = judged()
    assert "missing='omit'" in refusal(lambda: ts.cohen_kappa(table))
    pairs = read_rated_pairs(table, missing="omit")
    assert pairs.raters == ("x", "y")
    assert pairs.scale.labels == ("A", "B", "C", "D")
    assert (pairs.n, pairs.n_missing) == (5, 1)
    assert pairs.counts.tolist() == [[2, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert pairs.shared is not None
    assert (pairs.shared.name, pairs.shared.size) == ("scenario", 3)
    assert pairs.totals().shape == (3, 16)
    swapped = read_rated_pairs("y", "x", data=table, missing="omit")
    np.testing.assert_array_equal(swapped.counts, pairs.counts.T)


def test_every_measure_takes_a_response_table() -> None:
    table = judged()
    few = {"n_resamples": 99}
    tests = [
        ts.cohen_kappa(table, missing="omit", weights="linear", **few),
        ts.pabak(table, missing="omit", **few),
        ts.within_levels(table, missing="omit", **few),
        ts.direction_of_disagreement(table, missing="omit", **few),
        ts.percent_agreement("x", "y", data=table, missing="omit", **few),
        ts.percent_agreement(table, missing="omit", **few),
        ts.krippendorff_alpha(table, metric="ordinal", **few),
        ts.gwet_ac1(["x", "y"], data=table, **few),
        ts.gwet_ac2(None, data=table, weights="linear", **few),
        ts.fleiss_kappa(table, unequal="pooled-margins", **few),
        ts.icc(table, form="ICC(3,1)", missing="omit", **few),
    ]
    for test in tests:
        assert test.details["n_clusters"] == 3, test.method
        assert test.details["raters"] == ["x", "y"], test.method
        assert test.tidy()["n_clusters"].to_list() == [3]
    kendall = ts.kendall_w(table, missing="omit")
    assert kendall.n == 5


def test_the_clusters_are_those_of_the_table(refusal: Refusal) -> None:
    rows = (
        judged()
        .frame.select("scenario", "model", "judge", "response")
        .with_columns(
            gold=pl.lit("A"), group=pl.col("scenario").replace({"s1": "g1", "s2": "g1", "s3": "g2"})
        )
    )
    grouped = ts.ResponseTable(rows, cluster="group")
    assert ts.krippendorff_alpha(grouped, n_resamples=99).details["n_clusters"] == 2
    crossed = grouped.with_cluster(("scenario", "model"))
    assert "takes one cluster column" in refusal(lambda: ts.krippendorff_alpha(crossed))
    by_judge = grouped.with_cluster("judge")
    assert "splits the judgments of one response" in refusal(lambda: ts.krippendorff_alpha(by_judge))
    assert "which has its own" in refusal(lambda: ts.krippendorff_alpha(grouped, clusters=[1, 2]))


def test_scores_stand_in_for_labels_that_are_not_there() -> None:
    table = ts.ResponseTable(
        {"scenario": ["a", "a", "b", "b", "c", "c"], "judge": ["x", "y"] * 3, "score": [1, 1, 0, 1, 0, 0]}
    )
    test = ts.cohen_kappa(table, n_resamples=99)
    assert test.estimate == ts.cohen_kappa([1, 0, 0], [1, 1, 0]).estimate
    assert "labels" in [note.code for note in test.notes]


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.cohen_kappa("x", "z", data=judged()), "there is no judge 'z'; the table has ['x', 'y']"),
        (lambda: ts.cohen_kappa("x", "x", data=judged()), "between different judges"),
        (
            lambda: ts.cohen_kappa(ts.ResponseTable({"scenario": ["a", "b"], "score": [1, 0]})),
            "agreement is between judges, and the table has 0",
        ),
        (lambda: ts.krippendorff_alpha("x", data={"x": [1], "y": [2]}), "must be a list of the columns"),
        (lambda: ts.krippendorff_alpha(["x", "x"], data={"x": [1], "y": [2]}), "names a rater twice"),
        (lambda: ts.krippendorff_alpha(["x", "w"], data={"x": [1], "y": [2]}), "which `data` does not have"),
        (lambda: ts.krippendorff_alpha(["x"], data={"x": [1], "y": [2]}), "two at least"),
        (lambda: ts.krippendorff_alpha([[1, 2]], counts=True, data={"x": [1]}), "without `data`"),
        (lambda: ts.fleiss_kappa([[0, 0]], counts=True), "every unit is empty"),
        (lambda: ts.fleiss_kappa([[1, 2]], counts=True, categories=["a"]), "must name the 2 categories"),
        (lambda: ts.krippendorff_alpha({"x": [], "y": []}), "holds no unit"),
    ],
)
def test_refusals(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)


def test_three_judges_need_names(refusal: Refusal) -> None:
    rows = {"scenario": ["a"] * 3 + ["b"] * 3, "judge": ["x", "y", "z"] * 2, "score": [1, 1, 0, 0, 1, 0]}
    table = ts.ResponseTable(rows)
    assert "must name two of the judges ['x', 'y', 'z']" in refusal(lambda: ts.cohen_kappa(table))
    assert ts.cohen_kappa("x", "z", data=table, n_resamples=99).n == 2
    assert read_scores(table).values.tolist() == [[1, 1, 0], [0, 1, 0]]


def test_results_are_plain_values() -> None:
    tests = [
        ts.cohen_kappa(*zip(*UNITS, strict=True)),
        ts.gwet_ac1(UNITS),
        ts.krippendorff_alpha(UNITS, n_resamples=99),
        ts.fleiss_kappa(UNITS),
        ts.icc(UNITS, form="ICC1"),
        ts.kendall_w(UNITS),
        ts.direction_of_disagreement(*zip(*UNITS, strict=True)),
    ]
    plain = (float, int, str, list, type(None))
    for test in tests:
        for name, value in {**test.details, "estimate": test.estimate, "p": test.p_value}.items():
            assert type(value) in plain, (test.method, name, type(value))
        assert isinstance(test.to_dict()["details"], dict)
