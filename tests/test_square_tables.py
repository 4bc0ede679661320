"""bowker and stuart_maxwell: hand-computed values, special cases, labels, response tables and bad input."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import triagestats as ts

SUMS = 1e-12  # the same sum in another order
SOLVED = 1e-9  # a small linear system

Refusal = Callable[[Callable[[], object]], str]
LARGER_THAN_MCNEMAR = [[45, 13, 5], [8, 18, 30], [9, 25, 40]]


def test_bowker_of_a_table_that_mcnemar_must_not_cut() -> None:
    result = ts.bowker(LARGER_THAN_MCNEMAR)
    assert result.statistic == pytest.approx(25 / 21 + 16 / 14 + 25 / 55, rel=SUMS)
    assert result.statistic == pytest.approx(2.78788, abs=5e-6)
    assert result.details["df"] == 3
    assert result.p_value == pytest.approx(0.42550, abs=5e-6)
    assert result.tidy()["df"].to_list() == [3.0]


def test_two_categories_are_mcnemar() -> None:
    table = [[30, 12], [4, 50]]
    chi2 = 64 / 16
    for result in (ts.bowker(table), ts.stuart_maxwell(table)):
        assert result.statistic == pytest.approx(chi2, rel=SOLVED)
        assert result.details["df"] == 1
    bhapkar = ts.stuart_maxwell(table, method="bhapkar")
    assert bhapkar.statistic == pytest.approx(64 / (16 - 64 / 96), rel=SOLVED)


def test_only_pairs_with_counts_give_degrees_of_freedom() -> None:
    result = ts.bowker([[10, 0, 3], [0, 12, 4], [1, 6, 20]])
    assert result.details["df"] == 2
    assert result.statistic == pytest.approx(4 / 4 + 4 / 10, rel=SUMS)


@pytest.mark.parametrize("call", [ts.bowker, ts.stuart_maxwell])
def test_no_pair_differs(call: Callable[..., ts.Test]) -> None:
    result = call([[4, 0, 0], [0, 7, 0], [0, 0, 0]])
    assert (result.statistic, result.p_value, result.details["df"]) == (None, 1.0, 0)
    assert (
        result.undefined
        == "No pair differs, so that the statistic is 0/0; p is 1, as no other table is possible."
    )


def test_symmetric_table() -> None:
    table = [[5, 2, 1], [2, 6, 3], [1, 3, 7]]
    for result in (ts.bowker(table), ts.stuart_maxwell(table), ts.stuart_maxwell(table, method="bhapkar")):
        assert result.statistic == pytest.approx(0.0, abs=SUMS)
        assert result.p_value == pytest.approx(1.0, abs=SUMS)


def test_equal_margins_without_symmetry() -> None:
    """A cycle: every category loses as much as it gains."""
    table = [[5, 9, 1], [1, 5, 9], [9, 1, 5]]
    assert ts.stuart_maxwell(table).statistic == pytest.approx(0.0, abs=SUMS)
    assert ts.bowker(table).statistic == pytest.approx(3 * 64 / 10, rel=SUMS)


def test_against_the_textbook_formula() -> None:
    """Any one category may be left out of d and S."""
    table = np.array([[20, 10, 5, 1], [3, 30, 15, 2], [0, 5, 40, 6], [2, 2, 9, 11]])
    d = table.sum(axis=1) - table.sum(axis=0)
    covariance = np.diag(table.sum(axis=1) + table.sum(axis=0)) - table - table.T
    result = ts.stuart_maxwell(table)
    for left_out in range(4):
        kept = [place for place in range(4) if place != left_out]
        x2 = d[kept] @ np.linalg.solve(covariance[np.ix_(kept, kept)], d[kept])
        assert result.statistic == pytest.approx(float(x2), rel=SOLVED)
    wald = covariance - np.outer(d, d) / table.sum()
    bhapkar = d[:3] @ np.linalg.solve(wald[:3, :3], d[:3])
    assert result.details["bhapkar"] == pytest.approx(float(bhapkar), rel=SOLVED)
    assert result.details["differences"] == d.tolist()


def test_unused_categories_are_left_out_but_their_pairs_count() -> None:
    small, padded = [[12, 4], [2, 15]], [[12, 4, 0], [2, 15, 0], [0, 0, 9]]
    result = ts.stuart_maxwell(padded)
    assert result.statistic == pytest.approx(ts.stuart_maxwell(small).statistic, rel=SOLVED)
    assert result.details["df"] == 1
    assert [note.message for note in result.notes] == [
        "Categories that no differing pair uses are left out: row 3."
    ]
    x2, n = 4 / 6, 42
    assert result.details["bhapkar"] == pytest.approx(x2 / (1 - x2 / n), rel=SOLVED)


def test_separate_sets_of_categories() -> None:
    """1-2 and 3-4 do not mix: S has rank 2, and the statistic is the sum of two."""
    table = [[5, 8, 0, 0], [2, 5, 0, 0], [0, 0, 4, 1], [0, 0, 9, 6]]
    result = ts.stuart_maxwell(table)
    assert result.details["df"] == 2
    assert result.statistic == pytest.approx(36 / 10 + 64 / 10, rel=SOLVED)
    assert [note.code for note in result.notes] == ["singular"]


def test_all_pairs_one_way() -> None:
    table = [[0, 6], [0, 0]]
    assert ts.stuart_maxwell(table).statistic == pytest.approx(6.0, rel=SOLVED)
    result = ts.stuart_maxwell(table, method="bhapkar")
    assert (result.statistic, result.p_value) == (None, None)
    assert result.undefined is not None
    assert "method='stuart-maxwell' is defined" in result.undefined


def test_order_and_sides_change_nothing() -> None:
    table = np.array([[20, 10, 5], [3, 30, 15], [0, 5, 40]])
    for call in (ts.bowker, ts.stuart_maxwell):
        first = call(table)
        for order in itertools.permutations(range(3)):
            for other in (table[np.ix_(order, order)], table[np.ix_(order, order)].T):
                assert call(other).statistic == pytest.approx(first.statistic, rel=SOLVED)


def test_labels_are_paired() -> None:
    first, second = ["A", "B", "B", "C", "C", None], ["B", "A", "B", "A", "C", "A"]
    result = ts.bowker(first, second, missing="omit")
    assert result.details["categories"] == ["A", "B", "C"]
    assert result.details["table"] == [[0, 1, 0], [1, 1, 0], [1, 0, 1]]
    assert (result.n, result.details["n_missing"], result.details["n_discordant"]) == (5, 1, 3)
    declared = ts.bowker(first, second, missing="omit", categories=["D", "C", "B", "A"])
    assert declared.details["table"][0] == [0, 0, 0, 0]
    assert declared.statistic == result.statistic
    frame = pl.DataFrame({"one": first, "two": second, "scenario": list("aabbcc")})
    noted = ts.stuart_maxwell("one", "two", data=frame, missing="omit")
    assert [note.code for note in noted.notes] == ["missing", "independence"]
    named = "permutation_test(np.asarray(x) == label, np.asarray(y) == label, clusters=...) for each label"
    assert named in noted.notes[1].message


def test_response_table_pairs_its_responses() -> None:
    table = ts.ResponseTable(
        {
            "scenario": ["a", "a", "b", "b", "c", "c", "d"],
            "condition": ["x", "y", "x", "y", "x", "y", "x"],
            "response": ["C", "D", "D", "D", "D", "C", "A"],
            "gold": ["C", "C", "D", "D", "D", "D", "A"],
        },
        levels=["A", "B", "C", "D"],
    )
    result = ts.bowker("y", "x", data=table)
    assert result.details["categories"] == ["A", "B", "C", "D"]
    assert result.details["table"] == [[0] * 4, [0] * 4, [0, 0, 0, 1], [0, 0, 1, 1]]
    assert (result.n, result.details["n_missing"]) == (3, 1)
    assert [note.code for note in result.notes] == ["unmatched"]
    by_default = ts.bowker(table)  # the second level against the first, the reference
    assert by_default.details["table"] == result.details["table"]


def test_response_table_with_repetitions_names_the_clusters() -> None:
    rows = [
        (scenario, condition, repetition, "C" if (repetition + len(condition)) % 2 else "D")
        for scenario in "abc"
        for condition in ("x", "yy")
        for repetition in (1, 2)
    ]
    names = ("scenario", "condition", "repetition", "response")
    data = {name: [row[place] for row in rows] for place, name in enumerate(names)} | {
        "gold": ["C"] * len(rows)
    }
    result = ts.stuart_maxwell(ts.ResponseTable(data))
    assert result.n == 6
    assert [note.code for note in result.notes] == ["independence"]


def judged(levels: tuple[str, ...], judges: tuple[str, ...], seed: int = 0) -> ts.ResponseTable:
    """Free text that judges labelled, beside letters that nobody judged at other levels."""
    rng = np.random.default_rng(seed)
    scenarios = [f"s{place}" for place in range(12)]
    rows = [
        {
            "scenario": s,
            "condition": c,
            "gold": "A",
            "response": None if c in levels else rng.choice(list("ABC")),
        }
        for s in scenarios
        for c in ("free", "letter")
    ]
    labels = [
        {"scenario": s, "condition": c, "judge": judge, "label": rng.choice(list("ABC"))}
        for s in scenarios
        for c in levels
        for judge in judges
    ]
    table = ts.ResponseTable(pl.DataFrame(rows, schema_overrides={"response": pl.String}))
    return table.with_judgments(pl.DataFrame(labels))


@pytest.mark.parametrize("call", [ts.bowker, ts.stuart_maxwell])
def test_letters_pair_with_judged_text(call: Callable[..., ts.Test]) -> None:
    table = judged(("free",), ("j1", "j2"))
    for judge in ("j1", "j2"):
        one = table.with_judge(judge)
        result = call("free", "letter", data=one)
        wide = one.frame.pivot("condition", index="scenario", values="response")
        assert result.n == 12
        assert result.statistic == call(wide["free"], wide["letter"]).statistic
        assert result.notes == ()


def test_several_judges_are_refused(refusal: Refusal) -> None:
    for levels in (("free",), ("free", "letter")):
        said = refusal(lambda levels=levels: ts.bowker(judged(levels, ("j1", "j2"))))
        assert "2 judges labelled the responses at" in said
        assert "test per judge, data=table.with_judge('j1')" in said
    both = judged(("free", "letter"), ("j1", "j2")).with_judge("j2")
    assert ts.stuart_maxwell(both).n == 12
    assert ts.stuart_maxwell(both).notes == ()


REFUSED: dict[str, Callable[[], object]] = {
    "ArgumentError: `x` must be a table of counts with as many rows as columns, at least two; got 2 x 3": (
        lambda: ts.bowker([[1, 2, 3], [4, 5, 6]])
    ),
    "ArgumentError: `x` holds a negative count, -1; expected whole numbers from 0": (
        lambda: ts.stuart_maxwell([[1, -1], [4, 5]])
    ),
    "ArgumentError: `y` holds ['C'], which `categories` does not list: ['A', 'B']": (
        lambda: ts.bowker(["A", "B"], ["C", "B"], categories=["A", "B"])
    ),
    "ArgumentError: `categories` must hold two or more different labels, each once and none blank; "
    "got ['A', 'A']": (lambda: ts.bowker(["A"], ["A"], categories=["A", "A"])),
    "ArgumentError: `categories` names the scale of labels; a table of counts has its own": (
        lambda: ts.bowker([[1, 2], [3, 4]], categories=["A", "B"])
    ),
    "ArgumentError: `x` and `y` must pair: they have 1 and 2 labels": lambda: ts.bowker(["A"], ["A", "B"]),
    "ArgumentError: `method` must be one of 'stuart-maxwell', 'bhapkar', 'cluster-sign-flip', 'auto'; got "
    "'wald'": (
        lambda: ts.stuart_maxwell([[1, 2], [3, 4]], method="wald")  # type: ignore[arg-type]
    ),
    "DesignError: the table must have responses and a condition to compare their labels; name the columns "
    "with `response=` and `condition=`": (
        lambda: ts.bowker(
            ts.ResponseTable({"scenario": ["a", "a"], "condition": ["x", "y"], "score": [1, 0]})
        )
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(refusal: Refusal, message: str) -> None:
    assert refusal(REFUSED[message]) == message
