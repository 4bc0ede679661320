"""What all results share: notes, tidy frames, plain values."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import FrozenInstanceError

import polars as pl
import pytest

import triagestats as ts
from triagestats.results import TIDY_SCHEMA, plain, tidy_frame
from triagestats.schema import GLOSSARY, TIDY_COLUMNS

# The order that DESIGN.md gives; a change of it breaks those who read the tidy csv by position.
COLUMNS = [
    "estimand",
    "term",
    "model",
    "condition",
    "contrast",
    "stratum",
    "judge",
    "metric",
    "estimate",
    "std_error",
    "conf_low",
    "conf_high",
    "conf_level",
    "statistic",
    "df",
    "p_value",
    "p_adjusted",
    "verdict",
    "status",
    "reason",
    "method",
    "n_rows",
    "n_clusters",
    "n_missing",
]


def test_tidy_columns_are_those_of_the_design() -> None:
    assert list(TIDY_COLUMNS) == COLUMNS
    assert tidy_frame([]).columns == COLUMNS
    assert tidy_frame([]).schema == TIDY_SCHEMA
    assert all(column.meaning for column in GLOSSARY)


def test_absent_keys_and_nan_become_null() -> None:
    frame = tidy_frame([{"estimand": "rate", "estimate": math.nan}, {"estimate": math.inf, "n_rows": 3}])
    assert frame["estimate"].to_list() == [None, math.inf]
    assert frame["estimand"].to_list() == ["rate", None]
    assert frame["n_rows"].to_list() == [None, 3]


def test_a_column_that_the_glossary_does_not_know_is_refused() -> None:
    with pytest.raises(KeyError, match="CI95"):
        tidy_frame([{"CI95": 1.0}])


def test_plain_values_are_json() -> None:
    frame = pl.DataFrame({"x": [1.5, math.nan, math.inf, None], "s": ["a", None, "é", ""]})
    assert plain(frame) == [
        {"x": 1.5, "s": "a"},
        {"x": None, "s": None},
        {"x": "inf", "s": "é"},
        {"x": None, "s": ""},
    ]
    json.dumps(plain(frame), allow_nan=False)


def test_notes_are_frozen_values() -> None:
    note = ts.Note("code", "message")
    assert str(note) == "message"
    assert note.level == "info"
    assert pickle.loads(pickle.dumps(note)) == note
    with pytest.raises(FrozenInstanceError):
        note.message = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("estimand", "contrast", "shown"),
    [
        ("pseudo-median", "x", "pseudo-median of x = 0.5"),
        ("pseudo-median", "x - y", "x - y = 0.5"),
        ("share positive", "x - y", "share positive of x - y = 0.5"),
        ("conditional odds ratio", "x / y", "x / y = 0.5"),
        ("odds ratio", "odds of 1, text / letter", "odds of 1, text / letter = 0.5"),
        ("slope", "share per unit of score", "slope of share per unit of score = 0.5"),
        ("correlation", "correlation of a and b", "correlation of a and b = 0.5"),
        ("proportion", None, "proportion = 0.5"),
        (None, "mean(x)", "mean(x) = 0.5"),
    ],
)
def test_a_test_says_what_its_estimate_is(estimand: str | None, contrast: str | None, shown: str) -> None:
    result = ts.Test(
        estimand=estimand, contrast=contrast, estimate=0.5, statistic=None, p_value=0.2, method="test", n=3
    )
    assert repr(result) == f"test: {shown}, p = 0.2 (two-sided), n = 3."


def test_notebooks_show_what_is_printed() -> None:
    found = ts.mcnemar(3, 9)
    assert found._repr_html_() == f"<pre>{found!r}</pre>"
    fit = ts.bootstrap([[1, 0], [0, 1], [1, 1]], n_resamples=9)
    assert fit._repr_html_().startswith("<pre>cluster bootstrap")
