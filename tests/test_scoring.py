"""Scores, statuses and gold ranges: what counts as right, and what is refused or noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import triagestats as ts

LEVELS = ["A", "B", "C", "D"]


def table(columns: dict[str, Any], **options: Any) -> ts.ResponseTable:
    height = max(len(values) for values in columns.values())
    return ts.ResponseTable({"scenario": [f"s{row}" for row in range(height)], **columns}, **options)


def column(made: ts.ResponseTable, name: str) -> list[Any]:
    return made.frame[name].to_list()


def said(made: ts.ResponseTable) -> dict[str, str]:
    return {note.code: str(note) for note in made.notes}


@pytest.mark.parametrize(
    "given",
    [
        [True, False],
        [1, 0],
        [1.0, 0.0],
        ["true", "False"],
        ["YES", "no"],
        ["1", " 0 "],
        ["1.0", "0e0"],
        [True, "no"],
        [Decimal("1.0"), Decimal("0.0")],
        pl.Series([1, 0], dtype=pl.UInt8),
        pl.Series(["1", "0"], dtype=pl.Categorical),
        pl.Series(["yes", "no"], dtype=pl.Enum(["no", "yes"])),
    ],
)
def test_booleans_come_in_many_forms(given: Sequence[Any]) -> None:
    made = table({"score": given})
    assert column(made, "score") == [1.0, 0.0]
    assert column(made, "status") == ["ok", "ok"]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (float("nan"), "unscored"),
        ("NaN", "unscored"),
        (None, "missing"),
        ("", "missing"),
        (" n/a ", "missing"),
        ("None", "missing"),
    ],
)
def test_rows_without_a_score_stay(given: object, status: str) -> None:
    made = table({"score": [given, type(given)(1) if isinstance(given, float) else "1"]})
    assert made.frame.select("score", "status").rows() == [(None, status), (1.0, "ok")]


EXPECTED = "expected numbers, true/false, yes/no, 0/1 or blank: "
CORRECT = "correct these, or name another column"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [1.0, float("inf")],
            (
                "`score` is infinite in 1 row, such as that of scenario 's1'; a score must be finite, or "
                "null where there is none"
            ),
        ),
        (
            ["-Infinity", "1e999"],
            (
                "`score` is infinite in 2 rows, such as that of scenario 's0'; a score must be finite, or "
                "null where there is none"
            ),
        ),
        (
            ["1", "maybe", "C", "maybe"],
            f"`score` cannot be read in 3 rows, such as 'maybe', 'C'; {EXPECTED}{CORRECT}",
        ),
        (["50%"], f"`score` cannot be read in 1 row, such as '50%'; {EXPECTED}{CORRECT}"),
        (["1_000"], f"`score` cannot be read in 1 row, such as '1_000'; {EXPECTED}{CORRECT}"),
        (["١"], f"`score` cannot be read in 1 row, such as '١'; {EXPECTED}{CORRECT}"),
        (
            ["1,0", "0,5"],
            f"`score` cannot be read in 2 rows, such as '1,0', '0,5'; {EXPECTED}write decimals with a point",
        ),
        (
            [[1], [0]],
            (
                "`score` is column 'score', which holds List(Int64); expected text or numbers: name another "
                "column, or make this one text"
            ),
        ),
        (
            [{"acc": 1}, {"acc": 0}],
            (
                "`score` is column 'score', which holds Struct({'acc': Int64}); expected text or numbers: "
                "name another column, or make this one text"
            ),
        ),
    ],
)
def test_what_is_no_score(given: list[Any], message: str, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: table({"score": given})) == f"DataError: {message}"


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ([True, False], ["error", "ok"], [None, None]),
        ([1, 0], ["error", "ok"], [None, None]),
        ([1.0, 0.0], ["error", "ok"], [None, None]),
        (["Yes", "no"], ["error", "ok"], [None, None]),
        (["TRUE", "FALSE"], ["error", "ok"], [None, None]),
        (["Timeout: 30 s", None], ["error", "ok"], ["Timeout: 30 s", None]),
        (["boom", ""], ["error", "ok"], ["boom", None]),
        (["boom", "NaN"], ["error", "ok"], ["boom", None]),
        ([{"code": 500}, None], ["error", "ok"], ['{"code":500}', None]),
        (["Unparsed", "OK"], ["unparsed", "ok"], [None, None]),
        (["non-scalar", "success"], ["non_scalar", "ok"], [None, None]),
        (["deferred", "absent"], ["deferred", "absent"], [None, None]),
    ],
)
def test_a_status_is_a_word_a_flag_or_an_error_text(
    given: list[Any], status: list[str], reason: list[str | None]
) -> None:
    made = table({"score": [None, 1], "error": given})
    assert column(made, "status") == status
    assert column(made, "reason") == reason


def test_an_error_text_and_a_reason_are_both_kept() -> None:
    made = table({"score": [None, None, 1], "error": ["Timeout", None, None], "reason": ["30 s", "x", None]})
    assert column(made, "reason") == ["Timeout: 30 s", "x", None]


@pytest.mark.parametrize("role", ["status", "reason"])
def test_a_status_is_no_list(role: str, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: table({"score": [1], role: [["x"]]})) == (
        f"DataError: `{role}` is column {role!r}, which holds List(String); expected text or numbers: name "
        "another column, or make this one text"
    )


def test_a_scored_row_with_a_status_of_doubt_keeps_its_score() -> None:
    made = table({"score": [1, 0], "error": [True, False]})
    assert column(made, "score") == [1.0, 0.0]
    assert said(made) == {
        "scored_with_status": "1 row has a score and a status of doubt (error); the score is used as given."
    }


def test_the_note_on_a_status_of_doubt_names_the_words_that_are_no_status() -> None:
    words = ["completed", "completed", "200", "suspect", "ok", "x" * 50]
    made = table({"score": [1] * 6, "status": words})
    assert said(made)["scored_with_status"] == (
        "5 rows have a score and a status of doubt (error, suspect; 'completed', '200', "
        f"'{'x' * 40}...' are no status and count as error); their scores are used as given."
    )
    assert column(made, "score") == [1.0] * 6
    made = table({"score": [1] * 7, "status": [f"w{number}" for number in range(7)]})
    assert "'w4' and 2 more are no status and count as error" in said(made)["scored_with_status"]
    made = table({"score": [1], "status": ["done"]})
    assert "(error; 'done' is no status and counts as error)" in said(made)["scored_with_status"]


@pytest.mark.parametrize(("role", "column"), [("score", "points"), ("status", "error"), ("reason", "why")])
def test_what_cannot_be_read_is_named_as_in_the_table(
    role: str, column: str, refusal: Callable[..., str]
) -> None:
    data = {"scenario": ["a"], "score": [1], column: [["x"]]}
    data = data if role != "score" else {"scenario": ["a"], column: [["x"]]}
    assert refusal(lambda: ts.ResponseTable(data, **{role: column})).startswith(
        f"DataError: `{role}` is column {column!r}, which holds List(String); "
    )


def test_a_score_without_a_column_lists_the_columns_of_the_table(refusal: Callable[..., str]) -> None:
    data = {"item": ["a"], "format": ["f"], "label": ["A"], "error": [None]}
    assert refusal(lambda: ts.ResponseTable(data)) == (
        "DataError: `score` has no column: name the one that holds it, or name the columns of the label and "
        "of the right label with `response=` and `gold=`; the columns are ['item', 'format', 'label', "
        "'error']"
    )


RANGES = [
    ("A/B", ["A", "B"]),
    ("B/A", ["A", "B"]),
    (" B / D ", ["B", "C", "D"]),
    ("C", ["C"]),
    ("D/A", ["A", "B", "C", "D"]),
]


@pytest.mark.parametrize(("gold", "right"), RANGES)
def test_a_gold_range_is_read_by_the_order_of_levels(gold: str, right: list[str]) -> None:
    made = table({"response": LEVELS, "gold": [gold] * 4}, levels=LEVELS)
    assert column(made, "score") == [float(level in right) for level in LEVELS]
    assert set(column(made, "gold_low")) == {right[0]}
    assert set(column(made, "gold_high")) == {right[-1]}


def test_the_ends_of_a_range_may_be_two_columns() -> None:
    columns = {"response": ["A", "C"], "gold_low": ["B", "C"], "gold_high": ["A", None]}
    assert column(table(columns, levels=LEVELS), "score") == [1.0, 1.0]


def test_reversed_and_whole_ranges_are_noted() -> None:
    made = table({"response": ["A", "B", "C"], "gold": ["B/A", "D/A", "C"]}, levels=LEVELS)
    assert said(made) == {
        "gold_reversed": "2 rows name the more urgent end of the gold range first; ranges are read by "
        "the order of `levels`, either way round.",
        "gold_spans_scale": "1 row has a gold range that spans the whole scale (A to D): every label is "
        "right there. If that was a disagreement of judges and no range, correct the gold.",
    }


OUTSIDE = "has labels outside `levels`, ['A', 'B', 'C', 'D']:"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"response": ["A", "Z", "z", "Z"], "gold": ["A"] * 4},
            (
                f"`response` {OUTSIDE} 'Z' (2 rows), 'z' (1 row); add them to `levels`, or make them null "
                "with the status 'unparsed'"
            ),
        ),
        (
            {"response": ["A", "Z"], "score": [1, 0]},
            (
                f"`response` {OUTSIDE} 'Z' (1 row); add them to `levels`, or make them null with the status "
                "'unparsed'"
            ),
        ),
        (
            {"response": ["A", "B"], "gold": ["Q", "B"]},
            f"`gold` {OUTSIDE} 'Q' (1 row); add them to `levels`, or correct the gold",
        ),
        (
            {"response": ["A"], "gold": ["A/B/C"]},
            f"`gold` {OUTSIDE} 'A/B/C' (1 row); add them to `levels`, or correct the gold",
        ),
        (
            {"response": ["A"], "gold": ["A/"]},
            f"`gold` {OUTSIDE} 'A/' (1 row); add them to `levels`, or correct the gold",
        ),
        (
            {"response": ["A"], "gold": ["B-C"]},
            f"`gold` {OUTSIDE} 'B-C' (1 row); add them to `levels`, or correct the gold",
        ),
        (
            {"response": ["A"], "gold_low": ["A"], "gold_high": ["Q"]},
            f"`gold` {OUTSIDE} 'A/Q' (1 row); add them to `levels`, or correct the gold",
        ),
        (
            {"response": ["A"], "gold": [["A", "B"]]},
            (
                "`gold` is column 'gold', which holds List(String); expected text or numbers: write a range "
                "as text such as 'C/D', or as two columns with `gold=('low', 'high')`"
            ),
        ),
    ],
)
def test_labels_outside_the_scale(columns: dict[str, Any], message: str, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: table(columns, levels=LEVELS)) == f"DataError: {message}"


UNORDERED = (
    "DataError: `gold` has ranges such as {!r}; give the response scale from least to most urgent with "
    "`levels=[...]`, so that they can be read"
)


def test_a_range_needs_levels_where_it_decides(refusal: Callable[..., str]) -> None:
    ranges = {"response": ["A", "B"], "gold": ["A", "B/A"]}
    assert refusal(lambda: table(ranges)) == UNORDERED.format("B/A")
    assert refusal(lambda: table({**ranges, "score": [1, None]})) == UNORDERED.format("B/A")
    assert column(table({**ranges, "score": [None, 1]}), "score") == [1.0, 1.0]
    ends = {"response": ["A", "B"], "gold_low": ["A", "A"], "gold_high": ["A", "B"]}
    assert refusal(lambda: table(ends)) == UNORDERED.format("A/B")


def test_a_label_may_hold_a_slash() -> None:
    assert column(table({"response": ["n/a", "B"], "gold": ["n/a", "n/a"]}), "score") == [1.0, 0.0]
    made = table({"response": ["A/B", "C"], "gold": ["A/B", "A/B"]}, levels=["A/B", "C"])
    assert column(made, "score") == [1.0, 0.0]


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ([1, 2], [1.0, None]),
        ([1, 2], [1.0, 2.5]),
        ([1.0, None], [1, 2]),
        ([True, False], ["true", None]),
        ([Decimal("1.0"), None], [1, 2]),
    ],
)
def test_labels_of_two_types_are_compared_as_text(response: list[Any], gold: list[Any]) -> None:
    made = table({"response": response, "gold": gold})
    assert column(made, "score")[0] == 1.0
    assert made.notes == ()


@pytest.mark.parametrize(
    ("response", "gold", "shown"), [("yes", "Yes", ("yes", "Yes")), ("1", "1.0", ("1", "1.0"))]
)
def test_labels_that_differ_in_spelling_alone_are_noted(
    response: str, gold: str, shown: tuple[str, str]
) -> None:
    made = table({"response": [response], "gold": [gold]})
    assert column(made, "score") == [0.0]
    assert said(made) == {
        "labels_spelled_apart": f"`response` has {shown[0]!r} where `gold` has {shown[1]!r}: they count as "
        "different labels. If they are one, spell them alike."
    }


def test_scores_that_contradict_the_labels_are_used_and_noted() -> None:
    note = "2 rows have a score that `response` and `gold` contradict; the score is used as given."
    columns = {"response": ["A", "B", "C"], "gold": ["A", "A", "C"], "score": [0, 1, 1]}
    made = table(columns, levels=LEVELS)
    assert column(made, "score") == [0.0, 1.0, 1.0]
    assert said(made) == {"score_contradicts_label": note}
    free_text = table({"response": ["in Paris", "Rome"], "gold": ["Paris", "Rome"], "score": [1, 1]})
    assert free_text.notes == ()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"response": ["A"], "gold": [None]}, (None, "unscored", "no gold label")),
        ({"response": [None], "gold": ["A"]}, (None, "missing", None)),
        ({"response": ["A"], "gold": ["A"], "error": ["boom"]}, (None, "error", "boom")),
        ({"response": ["A"], "gold": ["A"], "score": [None]}, (1.0, "ok", None)),
        ({"response": ["A"], "gold": ["A"], "score": [float("nan")]}, (None, "unscored", None)),
    ],
)
def test_half_a_pair_of_labels(columns: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert table(columns).frame.select("score", "status", "reason").row(0) == expected


WRONG = "no answer was read; scored as wrong"


@pytest.mark.parametrize(
    ("unparsed", "scores", "reasons"),
    [
        ("as scored", [0.5, None, 1.0], [None, None, None]),
        ("wrong", [0.0, 0.0, 1.0], [WRONG, WRONG, None]),
        ("missing", [None, None, 1.0], [None, None, None]),
    ],
)
def test_unparsed_answers(unparsed: Any, scores: list[Any], reasons: list[Any]) -> None:
    made = table({"score": [0.5, None, 1], "status": ["unparsed", "unparsed", "ok"]}, unparsed=unparsed)
    assert column(made, "score") == scores
    assert column(made, "reason") == reasons
    assert column(made, "status") == ["unparsed", "unparsed", "ok"]


def test_a_zero_without_a_response_is_an_unparsed_answer() -> None:
    made = table({"score": [0, 0, 1], "response": [None, "A", "A"]})
    assert column(made, "status") == ["unparsed", "ok", "ok"]
    assert column(made, "reason") == [WRONG, None, None]
    assert column(table({"score": [0, 1], "response": [None, None]}), "status") == ["ok", "ok"]


def test_unparsed_as_wrong_needs_scores_from_0_to_1(refusal: Callable[..., str]) -> None:
    columns = {"score": [50, 90], "status": ["ok", "unparsed"]}
    assert refusal(lambda: table(columns, unparsed="wrong")) == (
        "DataError: `unparsed='wrong'` scores unread answers 0, which needs scores from 0 to 1; these run "
        "from 50.0 to 90.0. Use 'as scored' or 'missing'"
    )


@pytest.mark.parametrize("columns", [{"response": ["A"]}, {"gold": ["A"]}, {"model": ["m"]}])
def test_nothing_to_score(columns: dict[str, Any], refusal: Callable[..., str]) -> None:
    assert refusal(lambda: table(columns)).startswith(
        "DataError: `score` has no column: name the one that holds it, or name the columns of the label and "
        "of the right label with `response=` and `gold=`; the columns are ['scenario', "
    )
