"""ResponseTable: identifiers, keys, tasks, metrics, and clusters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import triagestats as ts

TWO = {"scenario": ["a", "b"], "score": [1, 0]}


def scenarios(values: Any) -> list[str]:
    table = ts.ResponseTable(pl.DataFrame({"scenario": values, "score": [1] * len(values)}))
    return table.frame["scenario"].to_list()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["007", "7"], ["007", "7"]),
        (["1.0", "1"], ["1", "1.0"]),
        ([1, 2], ["1", "2"]),
        ([1.0, 2.0], ["1", "2"]),
        ([1.0, 2.5], ["1", "2.5"]),
        ([-0.0, 1e300], ["0", "1e+300"]),
        ([float("inf"), 1.0], ["1", "inf"]),
        ([2**53, 2**53 + 1], ["9007199254740992", "9007199254740993"]),
        ([Decimal("1.00"), Decimal("2.50")], ["1", "2.5"]),
        (pl.Series([2**100, 1], dtype=pl.Int128), ["1", str(2**100)]),
        (pl.Series([200, 1], dtype=pl.UInt8), ["1", "200"]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ["a", "b"]),
        (pl.Series([b"b", b"a"]), ["a", "b"]),
        ([True, False], ["false", "true"]),
        ([dt.date(2020, 1, 2), dt.date(2020, 1, 1)], ["2020-01-01", "2020-01-02"]),
        ([" a", "b\u00a0"], ["a", "b"]),
        (["日本", "a\nb", "[bold]", 'x"y', "a+b/c"], ["[bold]", "a\nb", "a+b/c", 'x"y', "日本"]),
    ],
)
def test_identifiers_are_text(given: Any, expected: list[str]) -> None:
    assert scenarios(given) == expected


def test_a_blank_elsewhere_does_not_change_an_identifier() -> None:
    table = ts.ResponseTable(TWO | {"rep": [1.0, None]})
    assert table.frame["repetition"].to_list() == ["1", None]


UNREADABLE = "expected text or numbers: name another column, or make this one text"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pl.Series([["a"], ["b"]]), "List(String)"),
        (pl.Series([{"x": 1}, {"x": 2}]), "Struct({'x': Int64})"),
        (pl.Series([object(), object()], dtype=pl.Object), "Object"),
        (pl.Series([dt.timedelta(1), dt.timedelta(2)]), "Duration(time_unit='us')"),
        (pl.Series([b"\xff", b"a"]), "Binary"),
    ],
)
@pytest.mark.parametrize("role", ["scenario", "model", "condition", "cluster", "stratum", "response"])
def test_what_is_no_identifier(role: str, values: pl.Series, said: str, refusal: Callable[..., str]) -> None:
    data = pl.DataFrame({**TWO, role: values})
    assert refusal(lambda: ts.ResponseTable(data)) == (
        f"DataError: `{role}` is column {role!r}, which holds {said}; {UNREADABLE}"
    )


@pytest.mark.parametrize("role", ["scenario", "model", "condition", "cluster"])
@pytest.mark.parametrize("blank", [None, "", "  "])
def test_identifiers_are_not_blank(role: str, blank: str | None, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: ts.ResponseTable({**TWO, role: ["a", blank]})) == (
        f"DataError: `{role}` is column {role!r}, which is blank in 1 of 2 rows; fill it in, or drop "
        "these rows"
    )


def test_an_identifier_is_not_nan(refusal: Callable[..., str]) -> None:
    assert refusal(lambda: scenarios([1.0, float("nan")])) == (
        "DataError: `scenario` is column 'scenario', which is blank in 1 of 2 rows; fill it in, or "
        "drop these rows"
    )


SAME = {"scenario": ["a", "a", "b"], "score": [1, 0, 1]}
REPEATED = "`data` has one key (scenario) in more than one row, 2 rows in all, such as scenario='a'; "
COPIES = "no other column tells them apart: drop the copies, or number them in a column 'repetition'"
PLAYS = (
    "the role that it plays (a condition is compared, a variant is kept apart without being compared, a "
    "repetition is one more answer to the same request, a judge is averaged), or keep the rows of one of its "
    "values"
)
COUNTS = "if it counts answers to the same request, say `repetition={!r}`; else give it "


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({}, REPEATED + COPIES),
        ({"x": [1, 1, 2]}, REPEATED + COPIES),
        ({"x": [[1], [2], [3]]}, REPEATED + COPIES),
        (
            {"when": [0.1, 0.2, 0.3], "run_id": [1, 2, 1]},
            REPEATED + "column 'run_id' or 'when' tells them apart: " + COUNTS.format("run_id") + PLAYS,
        ),
        (
            {"source": ["f", "g", "f"]},
            REPEATED + "column 'source' tells them apart: give it " + PLAYS,
        ),
        (
            {"item": ["p", "q", "p"]},
            REPEATED + "column 'item' tells them apart: give it " + PLAYS,
        ),
        (
            {"thinking": [0, 1, 0]},  # a flag, not a count
            REPEATED + "column 'thinking' tells them apart: give it " + PLAYS,
        ),
        (
            {"seed": [42, 43, 42]},
            REPEATED + "column 'seed' tells them apart: give it " + PLAYS,
        ),
        (
            {"nth": ["1", "2", "1"], "alpha": ["p", "q", "p"]},
            REPEATED + "column 'nth' or 'alpha' tells them apart: " + COUNTS.format("nth") + PLAYS,
        ),
    ],
)
def test_a_repeated_key_names_what_separates_it(
    extra: dict[str, Any], message: str, refusal: Callable[..., str]
) -> None:
    assert (
        refusal(lambda: ts.ResponseTable({**SAME, **extra}, scenario="scenario")) == f"DataError: {message}"
    )


@pytest.mark.parametrize(
    ("roles", "advice"),
    [
        (
            {"condition": "voice"},
            "'format' tells them apart: compare both with `condition=['voice', 'format']`, or keep",
        ),
        (
            {"condition": ["voice", "style"]},
            "'format' tells them apart: compare both with `condition=['voice', 'style', 'format']`, or keep",
        ),
        ({"condition": False}, "'format' tells them apart: give it its role with `condition='format'`"),
    ],
)
def test_a_column_with_the_name_of_a_condition_is_not_advised_as_a_repetition(
    roles: dict[str, Any], advice: str, refusal: Callable[..., str]
) -> None:
    data = {"item": ["a", "a"], "score": [1, 0], "voice": ["x"] * 2, "style": ["s"] * 2, "format": [1, 2]}
    assert advice in refusal(lambda: ts.ResponseTable(data, **roles))


@pytest.mark.parametrize(
    ("role", "column"), [("model", "llm"), ("repetition", "run"), ("judge", "rater"), ("task", "dataset")]
)
def test_a_column_with_the_name_of_a_role_is_advised_for_it(
    role: str, column: str, refusal: Callable[..., str]
) -> None:
    data = {"item": ["a", "a"], "score": [1, 0], column: ["x", "y"], "nth": [1, 2]}
    said = refusal(lambda: ts.ResponseTable(data, **{role: False}))
    assert said.endswith(f"{column!r} or 'nth' tells them apart: give it its role with `{role}={column!r}`")


def test_a_repeated_key_names_two_columns_that_separate_it_together(refusal: Callable[..., str]) -> None:
    data = {"item": ["a"] * 4, "model": ["m"] * 4, "score": [1] * 4, "p": [1, 1, 2, 2], "q": [1, 2, 1, 2]}
    assert refusal(lambda: ts.ResponseTable(data)) == (
        "DataError: `data` has one key (scenario x model) in more than one row, 4 rows in all, such as "
        "scenario='a', model='m'; columns 'p' and 'q' together tell them apart: give each " + PLAYS
    )
    assert ts.ResponseTable(data, variant="p", repetition="q").frame.height == 4


def test_surrounding_blanks_do_not_make_another_scenario(refusal: Callable[..., str]) -> None:
    assert refusal(lambda: scenarios(["a", "a "])) == f"DataError: {REPEATED}{COPIES}"


def test_tasks_may_share_item_ids() -> None:
    table = ts.ResponseTable({"task": ["x", "y"], "item": [1, 1], "score": [1, 0]}, cluster="scenario")
    assert table.frame.select("scenario", "cluster_1").rows() == [("x/1", "x/1"), ("y/1", "y/1")]
    assert [str(note) for note in table.notes] == [
        "2 tasks: a scenario is task/item, so that tasks share none."
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"task": ["a", "a/b"], "item": ["b/1", "1"]},
            (
                "`task` and `scenario` have labels that are one when joined, as 'a/b' with 'c' and 'a' with "
                "'b/c' would be; rename the tasks that hold a slash"
            ),
        ),
        (
            {"task": ["a", None], "item": ["1", "1"]},
            "`task` is column 'task', which is blank in 1 of 2 rows; fill it in, or drop these rows",
        ),
        (
            {"item": ["1", "1"], "metric": ["x", "y"]},
            "`metric` has several values, ['x', 'y']; choose one, for instance `metric='x'`",
        ),
        (
            {"item": ["1", "2"], "metric": ["x", None]},
            (
                "`metric` is column 'metric', which is blank in 1 of 2 rows; fill it in, or keep the others "
                "with `metric='x'`"
            ),
        ),
    ],
)
def test_tasks_and_metrics_that_are_unclear(
    columns: dict[str, Any], message: str, refusal: Callable[..., str]
) -> None:
    assert refusal(lambda: ts.ResponseTable({**columns, "score": [1, 0]})) == f"DataError: {message}"


@pytest.mark.parametrize("metric", ["x", ("metric", "x")])
def test_one_of_several_metrics(metric: Any, refusal: Callable[..., str]) -> None:
    data = {"item": [1, 1, 1], "metric": ["x", "y", None], "score": [1, 0, 0]}
    table = ts.ResponseTable(data, metric=metric)
    assert table.frame.select("scenario", "metric", "score").rows() == [("1", "x", 1.0)]
    assert [str(note) for note in table.notes] == ["Metric 'x'; 2 rows of other metrics are left out."]
    assert refusal(lambda: ts.ResponseTable(data, metric="z")) == (
        "DataError: `metric` names 'z', which the table does not have; choose from ['x', 'y']"
    )


def test_joint_levels_are_not_merged(refusal: Callable[..., str]) -> None:
    data = {"item": ["1", "2"], "score": [1, 0], "f": ["1, g=2", "1"], "g": ["3", "2, g=3"]}
    assert refusal(lambda: ts.ResponseTable(data, condition=["f", "g"])) == (
        "DataError: `condition` has levels that are one when joined, as 'a, b' with 'c' and 'a' with 'b, c' "
        "would be; rename the levels that hold a comma"
    )


def test_other_columns_are_carried_along() -> None:
    data = {
        "item": ["a"],
        "ok": [1],
        "scenario": ["s"],
        "gold_low": [2],
        "carried.gold_low": [3],
        "note": [{"x": 1}],
    }
    table = ts.ResponseTable(data, scenario="item", score="ok", gold=False)
    assert table.frame.row(0, named=True) == {
        "scenario": "a",
        "score": 1.0,
        "carried.scenario": "s",
        "carried.gold_low": 2,
        "carried.carried.gold_low": 3,
        "note": {"x": 1},
        "status": "ok",
        "reason": None,
    }


@pytest.mark.parametrize(
    ("levels", "scale"),
    [
        (["B", " A "], ("B", "A")),
        ([1.0, 2, 2.5], ("1", "2", "2.5")),
        (range(3), ("0", "1", "2")),
        (pl.Series(["B", "A"]), ("B", "A")),
        (iter(["B", "A"]), ("B", "A")),
        ([False, True], ("false", "true")),
    ],
)
def test_levels_come_in_any_order_that_is_one(levels: Any, scale: tuple[str, ...]) -> None:
    assert ts.ResponseTable(TWO, levels=levels).levels == scale


LIST = "`levels` must be a list of labels from least to most urgent, such as ['A', 'B', 'C']; got"
DIFFERENT = "`levels` must hold two or more different labels, each once and none blank; got"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": {"A", "B"}}, f"ArgumentTypeError: {LIST} set"),
        ({"levels": "ABC"}, f"ArgumentTypeError: {LIST} str"),
        ({"levels": {"A": 1}}, f"ArgumentTypeError: {LIST} dict"),
        ({"levels": 3}, f"ArgumentTypeError: {LIST} int"),
        ({"levels": []}, f"ArgumentError: {DIFFERENT} []"),
        ({"levels": ["A"]}, f"ArgumentError: {DIFFERENT} ['A']"),
        ({"levels": ["A", "A "]}, f"ArgumentError: {DIFFERENT} ['A', 'A']"),
        ({"levels": ["A", "B", None]}, f"ArgumentError: {DIFFERENT} ['A', 'B', None]"),
        ({"levels": ["A", " "]}, f"ArgumentError: {DIFFERENT} ['A', None]"),
        (
            {"unparsed": "ignore"},
            "ArgumentError: `unparsed` must be one of 'as scored', 'wrong', 'missing'; got 'ignore'",
        ),
        (
            {"higher_is_better": "no"},
            "ArgumentTypeError: `higher_is_better` must be True or False; got 'no'",
        ),
        (
            {"scenario": False},
            (
                "DataError: `scenario` has no column: name the one that holds the item, question or case "
                "with `scenario=`; the columns are ['scenario', 'score']"
            ),
        ),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: ts.ResponseTable(TWO, **options)) == message


@pytest.mark.parametrize(
    ("cluster", "columns"),
    [
        ("ward", ["p", "p"]),
        ("item", ["a", "b"]),
        ("scenario", ["a", "b"]),
        (("ward", "model"), ["p", "p"]),
        (False, None),
        (None, None),
    ],
)
def test_with_cluster(cluster: Any, columns: list[str] | None) -> None:
    table = ts.ResponseTable(
        {"item": ["a", "b"], "score": [1, 0], "ward": ["p", "p"], "model": ["m", "n"]}, cluster="model"
    )
    changed = table.with_cluster(cluster).frame
    assert (changed["cluster_1"].to_list() if columns else "cluster_1" not in changed.columns) == (
        columns or True
    )
    assert table.frame["cluster_1"].to_list() == ["m", "n"]


@pytest.mark.parametrize("cluster", [3, True, ["a", "b", "c"], ["score", "score"], []])
def test_with_cluster_refuses_what_the_constructor_refuses(cluster: Any, refusal: Callable[..., str]) -> None:
    made = refusal(lambda: ts.ResponseTable(TWO, cluster=cluster))
    assert refusal(lambda: ts.ResponseTable(TWO).with_cluster(cluster)) == made
    assert made.startswith("ArgumentTypeError: `cluster` ")


def test_the_order_of_rows_changes_nothing() -> None:
    data = ts.demo_table().frame.drop("own_response", "own_score", strict=False)
    once, again = (
        ts.ResponseTable(frame).frame for frame in (data, data.sample(fraction=1, shuffle=True, seed=1))
    )
    assert_frame_equal(once, again)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=8, unique_by=lambda text: text.strip()))
def test_any_text_is_a_name_or_blank(names: list[str]) -> None:
    names = [name for name in names if name.strip(" \t\n\r\x0b\x0c") == name.strip() != ""]
    data = {"scenario": ["a"] * len(names), "condition": names, "score": [1] * len(names)}
    if names:
        table = ts.ResponseTable(data)
        assert set(table.factors[0].levels) == set(table.frame["condition"])
        assert table.frame.height == len(names)
