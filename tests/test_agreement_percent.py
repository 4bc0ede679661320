"""Shares of agreement and the direction of disagreement: by hand, intervals, levels, and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.score_intervals import tango_interval

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # rounding of sums of a few hundred terms
A = [3, 2, 4, 1, 5, 2, 2, 3]
B = [2, 2, 3, 1, 3, 3, 2, 3]


def test_two_raters() -> None:
    test = ts.percent_agreement(A, B)
    assert test.estimate == 0.5
    wilson = (0.5 + 3.841458820694124 / 16) / (1 + 3.841458820694124 / 8)
    assert (test.conf_low + test.conf_high) / 2 == pytest.approx(wilson, abs=EXACT)  # type: ignore[operator]
    assert test.p_value is None
    assert test.tidy()["status"].to_list() == ["ok"]


def test_several_raters_are_compared_in_pairs() -> None:
    draw = np.random.default_rng(1)
    units = draw.integers(0, 3, (30, 4))
    mean = np.mean(
        [ts.percent_agreement(units[:, i], units[:, j]).estimate for i in range(4) for j in range(i)]  # type: ignore[misc]
    )
    test = ts.percent_agreement(units)
    assert test.estimate == pytest.approx(mean, abs=EXACT)
    assert test.details["n_raters"] == 4
    resampled = ts.percent_agreement(units, interval="percentile", n_resamples=1_999)
    assert resampled.details["std_error"] == pytest.approx(test.details["std_error"], rel=0.1)


def test_missing_ratings(refusal: Refusal) -> None:
    units = [["a", "a", None], ["b", "b", "c"], ["c", None, None], [None, None, None]]
    said = refusal(lambda: ts.percent_agreement(units))
    assert said == "DataError: 3 of 4 rows have a missing value in `a`; drop them with missing='omit'"
    test = ts.percent_agreement(units, missing="omit")
    assert test.estimate == pytest.approx((1 + 1 / 3) / 2, abs=EXACT)
    assert (test.n, test.details["n_missing"], test.details["n_missing_ratings"]) == (2, 2, 6)


def test_a_square_table_is_counts_unless_it_is_said_to_be_ratings() -> None:
    table = [[20, 5], [10, 15]]
    assert ts.percent_agreement(table, counts=True).estimate == 0.7
    assert ts.percent_agreement(table).estimate == 0.7
    assert ts.percent_agreement(table, counts=False).estimate == 0  # two units, by two raters


@pytest.mark.parametrize("share", [0, 1])
def test_shares_of_0_and_1_have_an_interval(share: int) -> None:
    first = ["x"] * 20
    second = ["x" if share else "y"] * 20
    clusters = np.arange(20) // 2
    plain = ts.percent_agreement(first, second)
    clustered = ts.percent_agreement(first, second, clusters=clusters, n_resamples=199)
    several = ts.percent_agreement([[a, b] for a, b in zip(first, second, strict=True)])
    for test, n in ((plain, 20), (clustered, 10), (several, 20)):
        assert test.estimate == share
        width = test.conf_high - test.conf_low  # type: ignore[operator]
        assert width == pytest.approx(3.841458820694124 / (n + 3.841458820694124), abs=EXACT)
    assert "degenerate" in [note.code for note in clustered.notes]


def test_pabak() -> None:
    agreement, adjusted = ts.percent_agreement(A, B), ts.pabak(A, B, categories=[1, 2, 3, 4, 5])
    assert adjusted.estimate == pytest.approx((5 * 0.5 - 1) / 4, abs=EXACT)
    assert adjusted.conf_low == pytest.approx((5 * agreement.conf_low - 1) / 4, abs=EXACT)  # type: ignore[operator]
    assert adjusted.details["std_error"] == pytest.approx(agreement.details["std_error"] * 1.25, abs=EXACT)
    assert not adjusted.notes
    assert [note.code for note in ts.pabak(A, B).notes] == ["categories"]
    alone = ts.pabak(["a", "a"], ["a", "a"])
    assert alone.estimate is None
    assert alone.undefined is not None
    assert ts.pabak(["a", "a"], ["a", "a"], categories=["a", "b"]).estimate == 1


@pytest.mark.parametrize(("k", "count"), [(0, 4), (1, 7), (2, 8), (9, 8)])
def test_within_levels(k: int, count: int) -> None:
    test = ts.within_levels(A, B, k=k)
    assert test.details["n_within"] == count
    assert test.estimate == count / 8


def test_levels_are_those_of_the_scale() -> None:
    first, second = [1, 2, 4], [2, 4, 4]
    assert ts.within_levels(first, second).details["n_within"] == 2  # 2 and 4 are two apart
    assert ts.within_levels(first, second, categories=[1, 2, 3, 4]).details["n_within"] == 2
    assert ts.within_levels(first, second, categories=[1, 2, 4]).details["n_within"] == 3  # 3 is no level
    letters = ts.within_levels(["A", "B"], ["B", "D"], categories=["A", "B", "C", "D"])
    assert letters.details["n_within"] == 1
    order = pl.Enum(["A", "B", "C", "D"])
    enum = ts.within_levels(pl.Series(["A", "B"], dtype=order), pl.Series(["B", "D"], dtype=order))
    assert enum.estimate == letters.estimate


def test_direction() -> None:
    test = ts.direction_of_disagreement(A, B)
    assert test.estimate == pytest.approx((3 - 1) / 8, abs=EXACT)
    assert test.details["share_above"] == 3 / 8
    assert test.details["share_below"] == 1 / 8
    assert test.details["share_equal"] == 4 / 8
    assert test.p_value == pytest.approx(10 / 16, abs=EXACT)  # 3 of 4 or further, both sides
    sign = np.sign(np.array(A) - np.array(B))
    assert test.details["std_error"] == pytest.approx(sign.std(ddof=1) / np.sqrt(8), abs=EXACT)
    swapped = ts.direction_of_disagreement(B, A)
    assert (swapped.estimate, swapped.p_value) == (-test.estimate, test.p_value)  # type: ignore[operator]
    turned = ts.direction_of_disagreement(A, B, categories=[5, 4, 3, 2, 1])
    assert turned.estimate == -test.estimate  # type: ignore[operator]


def test_direction_by_cluster() -> None:
    """Clusters of copies: the p-value is that of the clusters, by flips of their signs."""
    first, second = np.repeat(A, 3), np.repeat(B, 3)
    test = ts.direction_of_disagreement(first, second, clusters=np.repeat(np.arange(8), 3), n_resamples=999)
    single = ts.direction_of_disagreement(A, B)
    assert test.estimate == pytest.approx(single.estimate, abs=EXACT)
    assert test.p_value == pytest.approx(single.p_value, abs=EXACT)
    assert test.details["test"] == "sign flips by cluster"
    naive = ts.direction_of_disagreement(first, second)
    assert naive.p_value < 0.2 < test.p_value  # type: ignore[operator]


def test_no_disagreement_has_no_direction() -> None:
    test = ts.direction_of_disagreement([1, 2, 3], [1, 2, 3])
    assert (test.estimate, test.p_value) == (0, 1)
    assert (test.conf_low, test.conf_high) == tango_interval(0, 0, 3, 0.95)
    assert not test.notes


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.within_levels(["a"], ["b"]), "the share within levels needs the order"),
        (lambda: ts.within_levels([1.5], [2]), "give all of them as `categories`"),
        (lambda: ts.within_levels(A, B, k=-1), "`k` must be a number of levels from 0; got -1"),
        (lambda: ts.within_levels(A, B, k=1.5), "`k` must be a whole number of levels; got 1.5"),
        (lambda: ts.direction_of_disagreement(["a"], ["b"]), "the direction of disagreement needs the order"),
        (lambda: ts.percent_agreement(A), "`b` is needed"),
        (lambda: ts.percent_agreement(A, B, counts=True), "`counts=True` takes a square table"),
        (lambda: ts.percent_agreement(A, B[:3]), "8 and 3 labels"),
        (lambda: ts.percent_agreement([[1, 2]], missing="drop"), "`missing` must be one of"),
    ],
)
def test_bad_input(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)


def test_every_share_notes_scenarios_that_are_not_clusters() -> None:
    data = pl.DataFrame({"item": [1, 1, 2, 2, 3, 3, 4, 4], "a": A, "b": B})
    calls = (ts.percent_agreement, ts.pabak, ts.within_levels, ts.direction_of_disagreement)
    for call in calls:
        plain = call("a", "b", data=data)
        assert f"{call.__name__}(..., clusters=...)" in " ".join(map(str, plain.notes))
        clustered = call("a", "b", data=data, clusters="item", n_resamples=199)
        assert clustered.details["n_clusters"] == 4
        assert "independence" not in [note.code for note in clustered.notes]
