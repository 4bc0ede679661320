"""Tables of counts and matrices from frames of pandas: indexes, labels of a crosstab, words for bad input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import triagestats as ts
from triagestats.counts import count_of, count_table, pair_table
from triagestats.vectors import numbers_of

Refusal = Callable[[Callable[[], object]], str]

X = np.array([1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1])
Y = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1])
LETTERS = np.array(list("AABBCCABCABC"))


def named(values: object, name: str = "item") -> pd.DataFrame:
    frame = pd.DataFrame(values)
    frame.columns = [f"rater {place}" for place in range(frame.shape[1])]
    frame.index = pd.Index(range(10, 10 + len(frame)), name=name)
    return frame


def test_the_index_of_a_crosstab_is_no_column() -> None:
    table = pd.crosstab(X, LETTERS)
    assert table.index.name is not None
    assert ts.chi_square(table).statistic == ts.chi_square(X, LETTERS).statistic
    assert ts.fisher_exact(table).p_value == ts.fisher_exact(X, LETTERS).p_value
    labelled = ts.chi_square(table).details
    assert (labelled["rows"], labelled["columns"]) == (["0", "1"], ["A", "B", "C"])
    square = pd.crosstab(LETTERS, np.roll(LETTERS, 1))
    assert ts.bowker(square).statistic == ts.bowker(LETTERS, np.roll(LETTERS, 1)).statistic


MATRICES: dict[str, Callable[[object], object]] = {
    "friedman": lambda m: ts.friedman(m).statistic,
    "fleiss": lambda m: ts.fleiss_kappa(m).estimate,
    "alpha": lambda m: ts.krippendorff_alpha(m).estimate,
    "ac1": lambda m: ts.gwet_ac1(m).estimate,
    "icc": lambda m: ts.icc(m, form="ICC(2,1)").estimate,
    "kendall": lambda m: ts.kendall_w(m).estimate,
    "percent": lambda m: ts.percent_agreement(m).estimate,
    "bootstrap": lambda m: ts.bootstrap(m, n_resamples=99).estimate.tolist(),
    "max-t": lambda m: ts.adjust(differences=m, method="max-t").p_adjusted,
}


@pytest.mark.parametrize("name", list(MATRICES))
def test_a_named_index_is_no_rater_or_treatment(name: str) -> None:
    values = np.random.default_rng(3).integers(1, 4, (9, 3))
    frame = named(values)
    assert MATRICES[name](frame) == MATRICES[name](frame.reset_index(drop=True))


def test_columns_that_are_named_keep_the_index() -> None:
    frame = named(np.column_stack([X, Y]), name="scenario")
    result = ts.mcnemar("rater 0", "rater 1", data=frame, clusters="scenario")
    assert result.details["n_clusters"] == 12


@pytest.mark.parametrize("as_label", [int, bool, float, str], ids=["int", "bool", "float", "str"])
def test_a_crosstab_of_zero_and_one_is_read_by_its_labels(as_label: Callable[[int], object]) -> None:
    table = pd.crosstab(
        np.array([as_label(int(value)) for value in X]), np.array([as_label(int(value)) for value in Y])
    )
    by_table, by_pairs = ts.mcnemar(table), ts.mcnemar(X, Y)
    assert (by_table.details["b"], by_table.details["c"]) == (4, 1)
    assert by_table.details | {"n_missing": 0} == by_pairs.details
    assert (by_table.p_value, by_table.estimate) == (by_pairs.p_value, 4.0)
    (note,) = [note for note in by_table.notes if note.code == "labels"]
    assert "1 comes first in [[both, x only], [y only, neither]]" in note.message
    assert ts.paired_difference_ci(table).estimate == ts.paired_difference_ci(X, Y).estimate
    turned = table.iloc[::-1]
    assert ts.mcnemar(turned).details["b"] == 4
    assert ts.mcnemar(table.iloc[::-1, ::-1]).notes == ()


def test_numbers_that_label_nothing_reorder_nothing() -> None:
    counts = [[120, 32], [13, 35]]
    assert ts.mcnemar(pd.DataFrame(counts)) == ts.mcnemar(counts)
    other = pd.DataFrame(counts, index=["yes", "no"], columns=["yes", "no"])
    assert ts.mcnemar(other) == ts.mcnemar(counts)
    rows_only = pd.DataFrame(counts, index=pd.Index([0, 1], name="x"))
    assert pair_table(rows_only, "x")[0].tolist() == counts


def test_totals_and_two_scales_are_refused(refusal: Refusal) -> None:
    assert refusal(lambda: ts.chi_square(pd.crosstab(X, Y, margins=True))) == (
        "ArgumentError: `x` holds its own totals, as row and column 'All'; leave them out, for instance with "
        "table.iloc[:-1, :-1]"
    )
    missed = pd.crosstab(list("ABCABC"), list("BCDBCD"))
    assert "must have one scale for rows and columns, in one order" in refusal(lambda: ts.bowker(missed))
    assert "one order" in refusal(lambda: ts.cohen_kappa(missed))
    apart = pd.DataFrame([[4, 2], [1, 5]], index=["x yes", "x no"], columns=["y yes", "y no"])
    assert ts.bowker(apart).details["categories"] == ["x yes", "x no"]
    # A label All whose counts are no totals is a category.
    assert (
        count_table(pd.DataFrame([[1, 2], [3, 4]], index=["a", "All"], columns=["a", "All"]), "x").sum() == 10
    )


WORDS: dict[str, Callable[[], object]] = {
    "ArgumentError: `x` must be a matrix of numbers, every row as long as the others; row 0 has 2 values, "
    "and row 1 has 1": lambda: ts.chi_square([[1, 2], [3]]),
    "ArgumentError: `x` must be a matrix of numbers, every row as long as the others; row 0 has 2 values, "
    "and row 1 is a single value": lambda: ts.chi_square([[1, 2], 3]),
    "ArgumentTypeError: `x` must be a matrix of numbers; got 'a'": lambda: ts.chi_square([[1, "a"], [2, 3]]),
    "ArgumentTypeError: `x` must be a matrix of numbers; got '1'": lambda: ts.mcnemar(
        np.array([["1", "2"]] * 2)
    ),
    "ArgumentTypeError: `x` must hold numbers in every column; column 'b' holds 'low'": lambda: ts.chi_square(
        pd.DataFrame({"a": [1, 2], "b": ["low", "high"]})
    ),
    "ArgumentError: `x` holds no value": lambda: ts.fisher_exact([]),
    "ArgumentError: `blocks` holds no value": lambda: ts.friedman([[]]),
    "ArgumentError: `x` holds a value beyond 1e+300 in row 1 (from 0), too large to reckon with; change the "
    "unit": lambda: ts.wilcoxon_signed_rank([1, 1e308], [0, -1e308]),
    "ArgumentError: `x` holds a value beyond 1e+300, too large to reckon with; change the unit": lambda: (
        ts.hodges_lehmann([10**400])
    ),
    "ArgumentTypeError: `count1` and `nobs1` must be counts, so many successes of so many; of a vector of 0 "
    "and 1 give the sum and the number of values": lambda: ts.difference_ci([1, 0, 1], 3, [0, 1], 2),
    "ArgumentTypeError: `x` must be one whole number; got a list": lambda: count_of([3], "x"),
    "ArgumentTypeError: give one vector a group, as in kruskal(a, b, c), or values with "
    "`groups=`": ts.kruskal,
    "DataError: 1 of 3 rows have a missing value in `group 2`; drop them with missing='omit'": lambda: (
        ts.kruskal([1, 2], [float("nan")])
    ),
}


@pytest.mark.parametrize("message", list(WORDS))
def test_the_words_are_our_own(message: str, refusal: Refusal) -> None:
    assert refusal(WORDS[message]) == message


def test_matrices_are_read_as_before() -> None:
    assert numbers_of([[1, None], [2.5, True]], "x").tolist()[1] == [2.5, 1.0]
    assert np.isnan(numbers_of([[1, None], [2, 3]], "x")[0, 1])
    deep = numbers_of([[[1, None], [3, 4]], [[1, 2], [3, 4]]], "x", dimensions=(3,))
    assert deep.shape == (2, 2, 2)
    assert [count_of(value, "x") for value in (3, np.int64(3), 3.0, 2**53)] == [3, 3, 3, 2**53]


def test_large_values_overflow_nowhere() -> None:
    """Warnings are errors here."""
    large = ts.adjust(differences=[[1e200, 2], [1e200, 1], [-1e200, 3]], method="max-t")
    small = ts.adjust(differences=[[1.0, 2], [1.0, 1], [-1.0, 3]], method="max-t")
    assert large.p_adjusted == small.p_adjusted
    trend = ts.trend_test([8, 5, 1], [10, 10, 10], scores=[1e200, 2e200, 3e200])
    assert trend.statistic == pytest.approx(ts.trend_test([8, 5, 1], [10, 10, 10]).statistic, rel=1e-12)
    assert ts.wilcoxon_signed_rank([1e300, -1e300, 5e299]).estimate == 2.5e299
