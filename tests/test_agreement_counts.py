"""Tables of counts: one argument says what they hold, in every function, and a square one is noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]
Call = Callable[..., ts.Test]

EXACT = 1e-12  # rounding of sums of a hundred terms
TABLE = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]
FEW = {"n_resamples": 99}  # replicates, where only the estimate is compared


def ac2(ratings: object, **options: Any) -> ts.Test:
    return ts.gwet_ac2(ratings, weights="linear", **options)


OF_TWO: list[Call] = [
    ts.cohen_kappa,
    ts.pabak,
    ts.within_levels,
    ts.direction_of_disagreement,
    ts.percent_agreement,
]
OF_SEVERAL: list[Call] = [ts.gwet_ac1, ac2, ts.fleiss_kappa, ts.krippendorff_alpha]


def labels() -> tuple[list[int], list[int]]:
    """The ratings that TABLE counts."""
    cells = [(i + 1, j + 1) for i, row in enumerate(TABLE) for j, n in enumerate(row) for _ in range(n)]
    first, second = zip(*cells, strict=True)
    return list(first), list(second)


def codes(test: ts.Test) -> list[str]:
    return [note.code for note in test.notes]


def reading(test: ts.Test) -> str:
    return next(note.message for note in test.notes if note.code == "reading")


@pytest.mark.parametrize("call", OF_TWO)
def test_two_raters_read_a_square_table_as_counts(call: Call) -> None:
    alone, said = call(TABLE), call(TABLE, counts="confusion")
    assert alone.n == said.n == call(TABLE, counts=True).n == 100
    assert alone.estimate == said.estimate
    assert alone.estimate == pytest.approx(call(*labels(), categories=[1, 2, 3]).estimate, abs=EXACT)
    assert reading(alone) == (
        "`a`, 3 x 3, is read as counts of 100 units by two raters; counts='confusion' says so, counts=False "
        "reads ratings."
    )
    assert "reading" not in codes(said)


@pytest.mark.parametrize("call", OF_SEVERAL)
def test_several_raters_take_the_table_of_two(call: Call) -> None:
    test = call(TABLE, counts="confusion", **FEW)
    units = list(map(list, zip(*labels(), strict=True)))
    expected = call(units, categories=[1, 2, 3], **FEW)
    assert test.n == 100
    assert test.estimate == pytest.approx(expected.estimate, abs=EXACT)
    assert test.details["std_error"] == pytest.approx(expected.details["std_error"], rel=0.3)
    assert not set(codes(test)) & {"reading", "categories", "few_units"}


def test_coefficients_of_one_table_stand_beside_kappa() -> None:
    kappa = ts.cohen_kappa(TABLE, counts="confusion")
    assert ts.gwet_ac1(TABLE, counts="confusion").estimate == pytest.approx(
        kappa.details["gwet_ac1"], abs=EXACT
    )
    assert ts.fleiss_kappa(TABLE, counts="confusion").estimate == pytest.approx(
        kappa.details["scott_pi"], abs=EXACT
    )
    assert ts.percent_agreement(TABLE).estimate == kappa.details["percent_agreement"]


@pytest.mark.parametrize("call", OF_SEVERAL)
def test_several_raters_read_a_square_matrix_as_ratings_and_say_so(call: Call) -> None:
    square = [[1, 1, 2], [2, 2, 2], [3, 1, 3]]
    alone, said = call(square, **FEW), call(square, counts=False, **FEW)
    assert alone.n == 3
    assert alone.estimate == said.estimate
    assert reading(alone).startswith(
        "`ratings`, 3 x 3, is read as ratings, units in rows and raters in columns"
    )
    assert "counts='confusion'" in reading(alone)
    assert "counts='units'" in reading(alone)
    assert "reading" not in codes(said)
    for other in (
        [["a", "b"], ["b", "b"]],
        [[1, 2], [2, 2], [1, 1]],
        [[1, 2.5], [2.5, 2.5]],
        [[1, None], [2, 2]],
    ):
        if call is not ac2 or not isinstance(other[0][0], str):
            options = {"unequal": "pooled-margins"} if call is ts.fleiss_kappa else {}
            assert "reading" not in codes(call(other, **options, **FEW))


def test_counts_of_units_are_told_from_tables_of_two() -> None:
    square = [[3, 0], [1, 2]]
    of_units, named = ts.gwet_ac1(square, counts=True), ts.gwet_ac1(square, counts="units")
    assert of_units.estimate == named.estimate
    assert reading(of_units).startswith("`ratings`, 2 x 2, is read as counts, units in rows and categories")
    assert "reading" not in codes(named)
    shares = ts.percent_agreement(square, counts="units")
    assert shares.estimate == pytest.approx((1 + 1 / 3) / 2, abs=EXACT)
    assert shares.estimate == named.details["observed"]


def test_ratings_of_two_raters_as_one_matrix() -> None:
    first, second = labels()
    expected = ts.cohen_kappa(first, second)
    for matrix in (
        np.column_stack([first, second]),
        pl.DataFrame({"x": first, "y": second}),
        [list(pair) for pair in zip(first, second, strict=True)],
    ):
        test = ts.cohen_kappa(matrix, counts=False)
        assert (test.estimate, test.n) == (expected.estimate, 100)
        assert "reading" not in codes(test)


def test_a_crosstab_of_pandas_names_its_categories() -> None:
    first = pd.Series([1, 2, 4, 2, 1, 4, 2], name="first")
    second = pd.Series([1, 2, 4, 1, 1, 4, 4], name="second")
    table = pd.crosstab(first, second)
    expected = ts.cohen_kappa(first, second, weights="quadratic")
    test = ts.cohen_kappa(table, weights="quadratic")
    assert test.estimate == pytest.approx(expected.estimate, abs=EXACT)
    assert test.details["categories"] == ["1", "2", "4"]
    assert ts.percent_agreement(table).n == 7
    assert (
        ts.gwet_ac1(table, counts="confusion").estimate
        == ts.gwet_ac1(np.column_stack([first, second])).estimate
    )
    positions = ts.cohen_kappa(table, weights="quadratic", categories=[1, 2, 3])
    assert positions.estimate != test.estimate


def test_a_crosstab_of_different_categories_is_refused(refusal: Refusal) -> None:
    table = pd.crosstab(pd.Series(["A", "B", "B"]), pd.Series(["B", "C", "C"]))
    said = refusal(lambda: ts.cohen_kappa(table))
    assert "has the rows ['A', 'B'] and the columns ['B', 'C']" in said


def test_a_named_index_is_no_rater() -> None:
    first, second = [1, 2, 2, 1, 3], [1, 2, 1, 1, 3]
    frame = pd.DataFrame({"x": first, "y": second}, index=pd.Index(list("abcde"), name="item"))
    test = ts.percent_agreement(frame)
    assert test.details["raters"] == ["x", "y"]
    assert test.estimate == 0.8
    assert ts.gwet_ac1(frame).estimate == ts.gwet_ac1(np.column_stack([first, second])).estimate


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.cohen_kappa(TABLE, counts="units"), "does not say which rater chose what"),
        (
            lambda: ts.cohen_kappa(TABLE, counts="table"),
            "`counts` must be 'confusion' (a square table of two",
        ),
        (lambda: ts.gwet_ac1(TABLE, counts=3), "or True for 'units', False for ratings; got 3"),
        (lambda: ts.cohen_kappa([1, 2], [1, 2], counts=True), "`counts=True` takes a square table of counts"),
        (lambda: ts.pabak(TABLE, counts=False), "must have two columns, one a rater; got 3"),
        (lambda: ts.gwet_ac1([[1, 2, 3]], counts="confusion"), "as many rows as columns"),
        (lambda: ts.gwet_ac1(TABLE, counts="confusion", clusters=[1, 2, 3]), "cannot be given with a table"),
        (lambda: ts.fleiss_kappa("abc", counts="confusion"), "`ratings` must be a square table of counts"),
        (lambda: ts.krippendorff_alpha(["x", "y"], data={"x": [1]}, counts="confusion"), "without `data`"),
        (lambda: ts.percent_agreement([[1, -1], [1, 2]], counts="units"), "`a` holds a negative count"),
    ],
)
def test_refusals(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)
