"""Judgments join the responses that they judge, one row a judgment, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import triagestats as ts

RESPONSES: dict[str, list[Any]] = {
    "scenario": ["a", "a", "b", "b"],
    "model": ["m", "n", "m", "n"],
    "response": ["A", "B", None, "C"],
    "gold": ["A", "A/B", "B", "B"],
}
LEVELS = ["A", "B", "C"]


def responses(**changes: list[Any]) -> ts.ResponseTable:
    return ts.ResponseTable(RESPONSES | changes, levels=LEVELS)


def judgments(**changes: list[Any]) -> dict[str, list[Any]]:
    """Two judges of the answers of m."""
    plain: dict[str, list[Any]] = {
        "scenario": ["a", "a", "b", "b"],
        "model": ["m"] * 4,
        "judge": ["x", "y", "x", "y"],
        "label": ["A", "C", "B", None],
    }
    return plain | changes


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select("scenario", "model", "judge", *columns).rows()


def test_one_row_a_judgment_and_the_rest_as_they_were() -> None:
    judged = responses().with_judgments(judgments())
    assert rows(judged, "response", "score", "status", "own_response", "own_score") == [
        ("a", "m", "x", "A", 1.0, "ok", "A", 1.0),
        ("a", "m", "y", "C", 0.0, "ok", "A", 1.0),
        ("a", "n", None, "B", 1.0, "ok", None, None),
        ("b", "m", "x", "B", 1.0, "ok", None, None),
        ("b", "m", "y", None, None, "missing", None, None),
        ("b", "n", None, "C", 0.0, "ok", None, None),
    ]


def test_a_judge_may_score() -> None:
    given = judgments(score=[1, 0, 0.5, None])
    del given["label"]
    judged = responses().with_judgments(given)
    assert judged.frame["score"].to_list() == [1.0, 0.0, 1.0, 0.5, None, 0.0]


def test_what_else_the_judgments_hold_is_carried() -> None:
    table = ts.ResponseTable(RESPONSES | {"seconds": [1, 2, 3, 4]}, levels=LEVELS)
    judged = table.with_judgments(judgments(seconds=[5, 6, 7, 8], sure=[1, 2, 3, 4], run=[1, 1, 1, 1]))
    assert rows(judged, "seconds", "judgment.seconds", "sure", "judgment.repetition")[0] == (
        "a",
        "m",
        "x",
        1,
        5,
        1,
        "1",
    )


def test_the_order_of_judgments_changes_nothing() -> None:
    given = pl.DataFrame(judgments())
    once = responses().with_judgments(given).frame
    assert once.equals(responses().with_judgments(given.reverse()).frame)


@pytest.mark.parametrize(
    ("unparsed", "score", "reason"),
    [
        ("as scored", None, None),
        ("wrong", 0.0, "no answer was read; scored as wrong"),
        ("missing", None, None),
    ],
)
def test_an_unparsed_response_without_a_verdict_stays_unparsed(
    unparsed: Any, score: float | None, reason: str | None
) -> None:
    table = ts.ResponseTable(
        {"scenario": ["a", "b"], "response": [None, "B"], "gold": ["A", "B"], "status": ["unparsed", "ok"]},
        unparsed=unparsed,
    )
    judged = table.with_judgments({"scenario": ["a", "a"], "judge": ["x", "y"], "label": [None, None]})
    first = judged.frame.filter(pl.col("scenario") == "a").select("score", "status", "reason")
    assert first.rows() == [(score, "unparsed", reason)] * 2


def test_an_unparsed_response_that_one_judge_read_is_read() -> None:
    table = ts.ResponseTable(
        {"scenario": ["a", "b"], "response": [None, "B"], "gold": ["A", "B"], "status": ["unparsed", "ok"]}
    )
    judged = table.with_judgments({"scenario": ["a", "a"], "judge": ["x", "y"], "label": ["A", None]})
    assert judged.frame.select("judge", "score", "status").rows() == [
        ("x", 1.0, "ok"),
        ("y", None, "missing"),
        (None, 1.0, "ok"),
    ]


def test_a_response_that_was_read_has_no_score_without_a_verdict() -> None:
    judged = responses().with_judgments(judgments(label=[None] * 4))
    assert rows(judged, "score", "status", "own_score")[0] == ("a", "m", "x", None, "missing", 1.0)


def test_a_blank_part_of_the_key_matches_a_blank() -> None:
    table = ts.ResponseTable(
        {"scenario": ["a", "a"], "rep": [1, None], "response": ["A", "B"], "gold": ["A", "A"]}
    )
    judged = table.with_judgments({"scenario": ["a"], "rep": [None], "judge": ["x"], "label": ["A"]})
    assert judged.frame.select("repetition", "judge", "score").rows() == [(None, "x", 1.0), ("1", None, 1.0)]


def test_scenarios_of_several_tasks() -> None:
    table = ts.ResponseTable(
        {"task": ["t", "u"], "item": ["1", "1"], "response": ["A", "B"], "gold": ["A", "A"]}
    )
    judged = table.with_judgments({"task": ["u"], "item": [1.0], "judge": ["x"], "label": ["A"]})
    assert judged.frame.select("scenario", "judge", "score").rows() == [("t/1", None, 1.0), ("u/1", "x", 1.0)]


def test_several_condition_columns() -> None:
    table = ts.ResponseTable(
        {
            "scenario": ["a", "a"],
            "f": ["x", "y"],
            "g": ["1", "2"],
            "response": ["A", "B"],
            "gold": ["A", "A"],
        },
        condition=["f", "g"],
    )
    judged = table.with_judgments({"scenario": ["a"], "f": ["y"], "g": [2], "judge": ["x"], "label": ["A"]})
    assert judged.frame.select("condition", "judge", "score").rows() == [
        ("f=x, g=1", None, 1.0),
        ("f=y, g=2", "x", 1.0),
    ]


def test_columns_of_the_user_may_have_any_name() -> None:
    names = ["own_response", "own_status", "own_score", "own_reason", "_response", "_judgment", "unit"]
    table = ts.ResponseTable(
        RESPONSES | {name: [1, 2, 3, 4] for name in names}, levels=LEVELS, response="response"
    )
    judged = table.with_judgments(judgments())
    assert judged.frame["score"].to_list() == [1.0, 0.0, 1.0, 1.0, None, 0.0]
    carried = [name for name in judged.frame.columns if name.startswith("carried.")]
    assert all(judged.frame[name].null_count() == 0 for name in carried)


FIT = (
    "they are matched by scenario x model: correct them, or leave a column out of the match, for instance "
    "with `model=False`"
)

REFUSED: list[tuple[dict[str, list[Any]], dict[str, Any], str]] = [
    (
        judgments(scenario=["a", "z", "b", "z"]),
        {},
        "DataError: `judgments` has 2 rows of 4 that fit no response, such as scenario='z', model='m'; "
        + FIT,
    ),
    (
        judgments(),
        {"model": False},
        (
            "DataError: `judgments` has 4 rows that fit several responses, such as scenario='a'; add the "
            "column of the key (model, variant, repetition, ...) that tells the responses apart"
        ),
    ),
    (
        judgments(judge=["x", "x", "x", "y"]),
        {},
        (
            "DataError: `judgments` has 2 rows in which a judge judges a response again, such as "
            "scenario='a', model='m', judge='x'; keep one judgment of each judge, or name the judges apart"
        ),
    ),
    (
        judgments(judge=["x", None, " ", "y"]),
        {},
        "DataError: `judge` is blank in 2 of 4 rows of `judgments`; fill it in",
    ),
    (
        judgments(label=["A", "Q", "Q", None]),
        {},
        (
            "DataError: `response` has labels outside `levels`, ['A', 'B', 'C']: 'Q' (2 rows); add them to "
            "`levels`, or make them null with the status 'unparsed'"
        ),
    ),
    (
        judgments(),
        {"judge": False},
        (
            "DataError: `judgments` has no column for the judge; name it with `judge=`; its columns are "
            "['scenario', 'model', 'judge', 'label']"
        ),
    ),
    (
        judgments(),
        {"response": False},
        (
            "DataError: `judgments` has neither a label nor a score; name its column with `response=` or "
            "`score=`; its columns are ['scenario', 'model', 'judge', 'label']"
        ),
    ),
    (
        {"scenario": [], "judge": []},
        {},
        "DataError: `judgments` has no rows; its columns are ['scenario', 'judge']",
    ),
    (
        judgments(),
        {"judge": "rater"},
        (
            "RoleError: `judgments`: `judge` names 'rater', which the table does not have; choose from its "
            "columns ['scenario', 'model', 'judge', 'label']"
        ),
    ),
]


@pytest.mark.parametrize(("given", "roles", "message"), REFUSED)
def test_refused(
    given: dict[str, list[Any]], roles: dict[str, Any], message: str, refusal: Callable[..., str]
) -> None:
    assert refusal(lambda: responses().with_judgments(given, **roles)) == message


def test_a_column_named_for_one_role_is_not_taken_for_the_key() -> None:
    table = ts.ResponseTable({"scenario": ["a"], "model": ["m"], "response": ["A"], "gold": ["A"]})
    judged = table.with_judgments({"scenario": ["a"], "model": ["x"], "label": ["A"]}, judge="model")
    assert judged.frame.select("model", "judge", "score").rows() == [("m", "x", 1.0)]


def test_judgments_without_any_verdict_need_no_gold() -> None:
    table = ts.ResponseTable({"scenario": ["a", "b"], "score": [1, 0]})
    judged = table.with_judgments({"scenario": ["a"], "judge": ["x"], "score": [None]})
    assert judged.frame.select("judge", "score", "status").rows() == [
        ("x", None, "missing"),
        (None, 0.0, "ok"),
    ]


def test_responses_that_name_judges(refusal: Callable[..., str]) -> None:
    judged = responses().with_judgments(judgments())
    assert refusal(lambda: judged.with_judgments(judgments())) == (
        "DataError: `with_judgments` takes responses without a judge, and these name judges already; join "
        "all judgments in one call"
    )
    assert responses(judge=[None] * 4).with_judgments(judgments()).frame.equals(judged.frame)


def test_labels_need_a_gold(refusal: Callable[..., str]) -> None:
    table = ts.ResponseTable({"scenario": ["a", "b"], "score": [1, 0]})
    given = {"scenario": ["a"], "judge": ["x"], "label": ["A"]}
    assert refusal(lambda: table.with_judgments(given)) == (
        "DataError: `judgments` has labels, and the responses have no gold to compare them with; give the "
        "responses a `gold`, or the judgments a `score`"
    )


def test_what_is_no_table_of_judgments(refusal: Callable[..., str]) -> None:
    assert refusal(lambda: responses().with_judgments(3)).startswith(
        "ArgumentTypeError: `judgments` must be a dataframe"
    )
    assert refusal(lambda: responses().with_judgments("x.xlsx")).startswith(
        "ReadError: `judgments`: 'x.xlsx' has the ending '.xlsx'; expected a file ending in .csv,"
    )
