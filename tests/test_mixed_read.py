"""From a formula and a table to the cells and groupings of a mixed model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.models.formula import RandomTerm, nested_groups
from triagestats.models.mixed.profiles import profiles_of
from triagestats.models.mixed.read import MixedData, mixed_data

ROWS: dict[str, list[Any]] = {
    "scenario": list("aaaabbbbccccdddd"),
    "condition": ["x", "x", "y", "y"] * 4,
    "model": ["m", "n"] * 8,
    "length": [1.0, 1.0, 2.0, 2.0] * 4,
    "correct": [1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0],
}


def read(formula: str, data: object = None, **options: Any) -> MixedData:
    return mixed_data(formula, ROWS if data is None else data, **{"family": "binomial", **options})


def codes_of(data: MixedData) -> list[str]:
    return [note.code for note in data.notes]


def test_rows_that_share_all_columns_are_one_cell() -> None:
    cells = read("correct ~ condition + (1 | scenario)")
    assert cells.matrix.y.tolist() == [1, 0, 2, 1, 2, 1, 2, 0]  # x of a to d, then y
    assert cells.matrix.counts.tolist() == [2.0] * 8
    assert cells.matrix.terms == ("(Intercept)", "condition[T.y]")
    assert cells.matrix.n_rows == 16
    assert "collapsed" in codes_of(cells)


def test_a_grouping_of_single_rows_keeps_them_apart() -> None:
    assert len(read("correct ~ condition + (1 | scenario) + (1 | model)").matrix.y) == 16


def test_order_of_the_rows_changes_nothing() -> None:
    frame = pl.DataFrame(ROWS)
    one = read("correct ~ condition + (1 | scenario/model)", frame)
    other = read("correct ~ condition + (1 | scenario/model)", frame.sample(fraction=1, shuffle=True, seed=3))
    assert np.array_equal(one.matrix.y, other.matrix.y)
    assert np.array_equal(one.matrix.x, other.matrix.x)
    assert all(
        np.array_equal(a.codes, b.codes) for a, b in zip(one.matrix.random, other.matrix.random, strict=True)
    )


def test_functions_of_all_rows_are_computed_on_the_rows() -> None:
    """Collapsing first would centre at the mean of the cells."""
    uneven = {
        "g": list("aaaabbbb"),
        "x": [1.0, 1.0, 1.0, 3.0, 1.0, 3.0, 3.0, 3.0],
        "y": [0, 1, 0, 1, 1, 0, 1, 1],
    }
    cells = read("y ~ center(x) + (1 | g)", uneven)
    assert abs(float(cells.matrix.x[:, 1].sum())) < 1e-12
    assert len(cells.matrix.y) == 8


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("scenario", [("scenario",)]),
        ("pair/scenario", [("pair",), ("pair", "scenario")]),
        ("a/b/c", [("a",), ("a", "b"), ("a", "b", "c")]),
        ("scenario:model", [("scenario", "model")]),
        ("`my group`/item", [("my group",), ("my group", "item")]),
    ],
)
def test_nested_groups(group: str, expected: list[tuple[str, ...]]) -> None:
    assert list(nested_groups(RandomTerm("1", group, correlated=True))) == expected


def test_slopes_have_a_column_an_effect() -> None:
    part = read("correct ~ condition + (condition | scenario)").matrix.random[0]
    assert part.z_names == ("(Intercept)", "condition[T.y]")
    assert part.z[:, 1].tolist() == [0.0] * 4 + [1.0] * 4
    assert (part.name, part.intercept_only) == ("scenario", False)


def test_two_bars_make_effects_independent() -> None:
    parts = read("correct ~ condition + (condition || scenario)").matrix.random
    assert [part.name for part in parts] == ["scenario", "condition[T.y] | scenario"]
    assert [part.width for part in parts] == [1, 1]


def test_labels_of_joint_groupings() -> None:
    part = read("correct ~ condition + (1 | scenario:condition)").matrix.random[0]
    assert part.levels[:3] == ("a:x", "a:y", "b:x")


def test_an_ordinal_outcome_has_places_and_no_constant() -> None:
    table = {**ROWS, "grade": ["low", "high", "mid", "mid"] * 4}
    cells = read(
        "grade ~ condition + (1 | scenario)", table, family="ordinal", levels=["low", "mid", "high", "top"]
    )
    assert cells.matrix.levels == ("low", "mid", "high")
    assert cells.matrix.terms == ("condition[T.y]",)
    assert set(cells.matrix.y) == {0.0, 1.0, 2.0}
    assert "absent_levels" in codes_of(cells)
    assert cells.scale == ("low", "mid", "high", "top")


def test_numbers_order_themselves() -> None:
    table = {**ROWS, "grade": [0, 0.5, 1, 0.5] * 4}
    assert read("grade ~ condition + (1 | scenario)", table, family="ordinal").matrix.levels == (
        "0",
        "0.5",
        "1",
    )


def test_gold_ranges_come_along_for_labels() -> None:
    rows = {
        "scenario": list("aabbccdd"),
        "format": ["x", "y"] * 4,
        "response": list("ABBCCBAD"),
        "gold": ["A", "A", "B/C", "B/C", "D", "D", "B", "B"],
    }
    table = ts.ResponseTable(rows, condition="format", levels=list("ABCD"))
    data = read("response ~ format + (1 | scenario)", table, family="ordinal")
    whole = profiles_of(data).profiles[0]
    assert whole.under is not None
    assert whole.over is not None
    # Of gold A nothing lies under, of B one level, of B/C one, of D three: a quarter of the cells each.
    assert (whole.weights @ whole.under).tolist() == [0.75, 0.25, 0.25, 0.0]
    assert (whole.weights @ whole.over).tolist() == [0.0, 0.25, 0.5, 0.75]


def judged() -> ts.ResponseTable:
    rows = [
        {"scenario": s, "condition": c, "judge": j, "score": (i + k) % 2}
        for i, s in enumerate("abcdef")
        for c in "xy"
        for k, j in enumerate(("u", "v"))
    ]
    return ts.ResponseTable(pl.DataFrame(rows))


def test_scores_of_one_response_share_its_effect() -> None:
    data = read("score ~ condition + (1 | scenario) + (1 | response)", judged())
    assert [(part.name, part.n_levels) for part in data.matrix.random] == [("scenario", 6), ("response", 12)]
    assert "response" in codes_of(data)
    assert "judges" not in codes_of(data)
    assert "judges" in codes_of(read("score ~ condition + (1 | scenario)", judged()))


def test_one_judge() -> None:
    data = read("score ~ condition + (1 | scenario)", judged(), judge="u")
    assert data.matrix.n_rows == 12
    assert "judges" not in codes_of(data)


def test_few_levels_are_noted_with_the_alternative() -> None:
    notes = [n.message for n in read("correct ~ condition + (1 | model)").notes if n.code == "few_levels"]
    assert notes == [
        (
            "model has 2 levels, which say little of the variance of a population of levels: take it as "
            "fixed, `model` among the regressors, unless new levels are the question."
        )
    ]


def test_an_effect_that_may_vary_is_noted() -> None:
    doubt = [n.message for n in read("correct ~ condition + (1 | scenario)").notes if n.code == "same_effect"]
    assert doubt == [
        (
            "The effect of condition is taken as the same in every scenario. Where it is not, its error is "
            "too small for new ones: add (1 | scenario:condition), or slopes such as (condition | scenario)."
        )
    ]
    paired = {**ROWS, "pair": ["p" if scenario in "ab" else "q" for scenario in ROWS["scenario"]]}
    for settled in (
        "(condition | scenario)",
        "(1 | scenario) + (1 | scenario:condition)",
        "(1 | pair/scenario) + (1 | scenario:condition)",
    ):
        assert "same_effect" not in codes_of(read(f"correct ~ condition + {settled}", paired))


def test_profiles_set_a_column_and_keep_the_rest() -> None:
    data = read("correct ~ condition + model + length + (1 | scenario)")
    found = profiles_of(data)
    shown = [(p.term, p.label) for p in found.profiles[: found.shown]]
    assert shown == [(None, ""), ("condition", "x"), ("condition", "y"), ("model", "m"), ("model", "n")]
    assert [(c.term, c.label) for c in found.comparisons] == [("condition", "y - x"), ("model", "n - m")]
    assert all(abs(p.weights.sum() - 1) < 1e-12 for p in found.profiles)
    assert (
        len(found.profiles[1].x) == 2
    )  # condition is set, and length is determined by it: the models are left


BAD = [
    (
        "correct ~ condition + (1 | colour)",
        {},
        (
            "ArgumentError: `formula` names 'colour', which the data do not have. The columns are "
            "['scenario', 'condition', 'model', 'length', 'correct']"
        ),
    ),
    (
        "correct ~ condition | scenario",
        {},
        (
            "ArgumentError: `formula` absorbs scenario, which a mixed model does not: write it as random, "
            "(1 | scenario), or among the regressors. It is 'correct ~ condition | scenario'"
        ),
    ),
    (
        "correct ~ condition + (1 | scenario) + (1 | scenario)",
        {},
        "DesignError: `formula` has random effects of scenario twice; leave one out",
    ),
    (
        "correct ~ condition + (1 | scenario + model)",
        {},
        (
            "ArgumentError: `formula` must have columns behind | in a random term, with : between those of "
            "one grouping and / for nested ones, such as (1 | pair/scenario); got 'scenario + model'"
        ),
    ),
    (
        "length ~ condition + (1 | scenario)",
        {},
        (
            "DataError: `formula`: the outcome 'length' must be 0 or 1, or false or true, for "
            "family='binomial'; 8 rows of 16 hold something else, such as 2. Graded outcomes are "
            "family='ordinal', measurements family='gaussian'"
        ),
    ),
    (
        "model ~ condition + (1 | scenario)",
        {"family": "ordinal"},
        (
            "ArgumentError: `family` is 'ordinal', but the outcome 'model' holds labels without an order: "
            "['m', 'n']. "
            "Give `levels=` from lowest to highest, here or to ResponseTable, or make the column an Enum"
        ),
    ),
    (
        "correct ~ condition + (1 | scenario)",
        {"levels": ["0", "1"]},
        "ArgumentError: `levels` orders the labels of family='ordinal'; the family is 'binomial'",
    ),
    (
        "model ~ condition + (1 | scenario)",
        {"family": "ordinal", "levels": ["m", "o"]},
        (
            "DataError: `formula`: the outcome 'model' holds ['n'], which the scale does not have: m < o. "
            "Give all labels in `levels=`, from lowest to highest"
        ),
    ),
]


@pytest.mark.parametrize(("formula", "options", "message"), BAD)
def test_refusals(
    formula: str, options: dict[str, Any], message: str, refusal: Callable[[Callable[[], object]], str]
) -> None:
    assert refusal(lambda: read(formula, **options)) == message


def test_fractions_name_both_ways_out(refusal: Callable[[Callable[[], object]], str]) -> None:
    halves = {**ROWS, "correct": [1, 0.5, 0, 1] * 4}
    said = refusal(lambda: read("correct ~ condition + (1 | scenario)", halves))
    assert "4 rows of 16 hold something else, such as 0.5. Fractions are means" in said
    assert "`(1 | response)`" in said
    assert "`judge=`" in said


def test_a_single_level_and_a_level_a_row(refusal: Callable[[Callable[[], object]], str]) -> None:
    one = {**ROWS, "site": ["s"] * 16, "row": list(range(16)), "twin": ROWS["scenario"]}
    said = [
        refusal(lambda group=group: read(f"correct ~ condition + (1 | scenario) + (1 | {group})", one))
        for group in ("site", "row", "twin")
    ]
    assert said == [
        (
            "DesignError: `formula` has random effects of site, which has one level, 's': nothing shows how "
            "levels differ. Leave it out"
        ),
        (
            "DesignError: `formula` has random effects of row, which has a level for each of the 16 rows: "
            "they cannot be told from what is left over in single rows. Name a coarser grouping"
        ),
        (
            "DesignError: `formula` has random effects of twin and of scenario, whose levels are the same "
            "groups of rows: their variances cannot be told apart. Leave one out"
        ),
    ]


def test_an_outcome_that_does_not_vary(refusal: Callable[[Callable[[], object]], str]) -> None:
    said = refusal(lambda: read("correct ~ condition + (1 | scenario)", {**ROWS, "correct": [1] * 16}))
    assert said == (
        "DataError: `formula`: the outcome 'correct' has one value in all 16 rows that are used, 1: nothing "
        "varies that a model could explain"
    )
