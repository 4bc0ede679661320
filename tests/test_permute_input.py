"""What the public permutation test takes, gives back, and refuses."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import triagestats as ts

Array = np.ndarray
Refusal = Callable[[Callable[[], object]], str]


def spread(means: Array) -> Array:
    return means.max(axis=-1) - means.min(axis=-1)


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        pl.Series,
        pd.Series,
        pa.array,
        lambda v: pa.chunked_array([v[:3], v[3:]]),
        lambda v: pd.Series(v, dtype="Int64"),
        lambda v: pd.Series(v, index=range(9, 9 + len(v))),
        lambda v: np.array(v, dtype=bool),
        np.ma.array,
        lambda v: (x for x in v),
    ],
)
def test_any_array_will_do(make: Callable[[list[int]], Any]) -> None:
    a, b, clusters = [1, 1, 0, 1, 1, 1], [0, 1, 0, 0, 1, 0], [3, 3, 1, 1, 2, 2]
    expected = ts.permutation_test(a, b, clusters=clusters)
    found = ts.permutation_test(make(a), make(b), clusters=clusters)
    assert found == expected
    assert ts.permutation_test(a, b, clusters=make(clusters)).n == 6


@pytest.mark.parametrize(
    "groups",
    [
        pl.Series(["lo", "lo", "hi", "hi"], dtype=pl.Enum(["lo", "hi"])),
        pd.Series(pd.Categorical(["lo", "lo", "hi", "hi"], categories=["lo", "hi"], ordered=True)),
        [2, 2, 10, 10],
        ["2", "2", "10", "10"],
        [False, False, True, True],
    ],
)
def test_the_reference_comes_first(groups: Any) -> None:
    found = ts.permutation_test([0, 0, 1, 1], groups=groups)
    assert found.contrast in ("hi - lo", "10 - 2", "true - false")
    assert found.estimate == 1.0


@pytest.mark.parametrize("gap", [None, math.nan, pd.NA])
def test_rows_with_gaps_are_left_out_on_request(gap: object) -> None:
    a, b = [1, gap, 0, 1, 1, 1], [0, 1, 0, None, 0, 0]
    found = ts.permutation_test(a, b, clusters=["x", "x", "y", "y", None, "z"], missing="omit")
    expected = ts.permutation_test([1, 0, 1], [0, 0, 0], clusters=["x", "y", "z"])
    assert (found.p_value, found.estimate, found.n) == (expected.p_value, expected.estimate, 3)
    assert (found.details["n_missing"], found.tidy()["n_missing"][0]) == (3, 3)
    assert str(found.notes[0]) == "3 of 6 rows with a missing value are left out."
    groups = ts.permutation_test([1, 2, 3, gap, 5], groups=["x", "y", None, "x", "y"], missing="omit")
    assert groups.n == 3
    assert ts.permutation_test([[1, 0], [1, None], [1, 0]], missing="omit").n == 2


def test_equal_data_have_p_one() -> None:
    for found in (
        ts.permutation_test([1, 0, 1], [1, 0, 1]),
        ts.permutation_test([0.3, 0.3], [0.1 + 0.2, 0.3]),
        ts.permutation_test([1, 1, 1, 1], groups=["x", "x", "y", "y"]),
        ts.permutation_test([[1, 1, 1]] * 4, statistic=spread),
    ):
        assert found.p_value == 1.0
        assert [note.code for note in found.notes] == ["degenerate"]
        assert found.tidy()["status"][0] == "warning"


def test_one_cluster_shows_nothing() -> None:
    found = ts.permutation_test([1, 1, 1], [0, 0, 1], clusters=["x"] * 3)
    assert (found.p_value, found.details["n_arrangements"]) == (1.0, 2)
    assert str(found.notes[0]) == "With 1 cluster to permute, p cannot be below 1."
    assert ts.permutation_test([1], [0], alternative="greater").p_value == 0.5


@pytest.mark.parametrize(("n", "noted"), [(5, True), (6, False)])
def test_the_smallest_p_is_noted_where_it_is_large(n: int, noted: bool) -> None:
    found = ts.permutation_test([1.0] * n, [0.0] * n)
    assert found.p_value == found.details["smallest_p_value"] == 2.0 ** (1 - n)
    assert [note.code for note in found.notes] == (["smallest_p"] if noted else [])


def test_undefined_arrangements_do_not_count() -> None:
    """Where all of b is 0 the ratio is infinite, or 0 / 0 with both."""
    found = ts.permutation_test([1, 1, 0], [1, 0, 0], statistic=lambda m: m[..., 0] / m[..., 1])
    assert found.estimate == 2.0
    assert 0 < found.p_value <= 1  # type: ignore[operator]


def test_a_result_converts() -> None:
    found = ts.permutation_test([1, 1, 1, 0], [0, 0, 0, 0])
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["details"]["way"] == "enumeration"
    assert found.to_dict()["schema_version"] == 1
    assert found.tidy().shape == (1, 24)
    assert found.glance().row(0, named=True)["p_value"] == 0.25
    assert found.to_pandas()["n_clusters"][0] == 4
    assert repr(found) == (
        "sign flips by cluster, exact by enumeration: a - b = 0.75, p = 0.25 (two-sided), n = 4. "
        "With 3 clusters to permute, p cannot be below 0.25."
    )
    less = ts.permutation_test([1, 1, 1, 0], [0, 0, 0, 0], alternative="less")
    assert less.tidy()["method"][0] == "sign flips by cluster, exact by enumeration; one-sided, less"


LINES = {
    "lengths": (
        lambda: ts.permutation_test([1, 2, 3], [1, 2]),
        "ArgumentError: `b` must have as many values as `a`: expected 3, got 2",
    ),
    "missing": (
        lambda: ts.permutation_test([1, None, math.nan], [1, 2, 3]),
        ("DataError: 2 of 3 rows have a missing value in `a` or `b`; drop them with missing='omit'"),
    ),
    "all missing": (
        lambda: ts.permutation_test([None, None], [1, 2], missing="omit"),
        "DataError: every row has a missing value in `a` or `b`",
    ),
    "infinite": (
        lambda: ts.permutation_test([1, math.inf], [1, 2], missing="omit"),
        (
            "ArgumentError: `a` holds 1 infinite value, the first in row 1 (from 0); replace it, or make it "
            "missing"
        ),
    ),
    "text": (
        lambda: ts.permutation_test(["A", "B"], [1, 2]),
        "ArgumentTypeError: `a` must hold numbers; got 'A'",
    ),
    "scalar": (
        lambda: ts.permutation_test([1, 2], 3),  # type: ignore[call-overload]
        "ArgumentTypeError: `b` must be a list, a NumPy array or a series; got int",
    ),
    "empty": (lambda: ts.permutation_test([], []), "ArgumentError: `a` holds no value"),
    "ragged": (
        lambda: ts.permutation_test([[1, 2], [3]]),
        "ArgumentError: `a` must be a matrix of numbers, every row as long as the others",
    ),
    "three axes": (
        lambda: ts.permutation_test(np.zeros((2, 2, 2))),
        "ArgumentError: `a` must have one axis, or two with one row a cluster; got shape (2, 2, 2)",
    ),
    "alone": (
        lambda: ts.permutation_test([1, 2]),
        (
            "ArgumentError: `a` alone has one axis; give `b` for pairs, `groups` for two groups of clusters, "
            "or a matrix with one column a label. For differences made already, `permutation_test(d, "
            "[0] * len(d))`"
        ),
    ),
    "both": (
        lambda: ts.permutation_test([1, 2], [1, 2], groups=[0, 1]),
        "ArgumentError: give `b` for pairs or `groups` for two groups of clusters, not both",
    ),
    "matrix and groups": (
        lambda: ts.permutation_test([[1, 2], [1, 2]], groups=[0, 1]),
        "ArgumentError: `a` has the shape (2, 2), one column a label; then give neither `b` nor `groups`",
    ),
    "one group": (
        lambda: ts.permutation_test([1, 2], groups=["x", "x"]),
        "DesignError: `groups` must have two labels; got 1: ['x']",
    ),
    "mixed cluster": (
        lambda: ts.permutation_test([1, 2, 3], groups=["x", "y", "y"], clusters=["p", "p", "q"]),
        (
            "DesignError: cluster 'p' has rows of both groups, 'x' and 'y'; every cluster must be wholly in "
            "one group. If the groups vary within clusters, compare pairs: permutation_test(a, b, "
            "clusters=...)"
        ),
    ),
    "three labels": (
        lambda: ts.permutation_test([[1, 2, 3]]),
        (
            "ArgumentError: `statistic` is needed for 3 labels: a function of the column means, from (..., "
            "3) to (...), such as `lambda m: m.max(axis=-1) - m.min(axis=-1)`, or an estimand"
        ),
    ),
    "nine labels": (
        lambda: ts.permutation_test([[1] * 9], statistic=spread),
        "DesignError: there must be 2 to 8 labels to permute, one a column; got 9",
    ),
    "levels": (
        lambda: ts.permutation_test([[1, 2, 3]], statistic=ts.Difference("x", "y")),
        "ArgumentError: `statistic` takes 2 levels, ['x', 'y']; the data have 3 columns",
    ),
    "other groups": (
        lambda: ts.permutation_test([1, 2], groups=["x", "y"], statistic=ts.Difference("x", "z")),
        "ArgumentError: `statistic` names the levels ['x', 'z']; the groups are ['y', 'x']",
    ),
    "no function": (
        lambda: ts.permutation_test([1, 2], [1, 2], statistic=3),  # type: ignore[call-overload]
        "ArgumentTypeError: `statistic` must be a function or an estimand; got 3",
    ),
    "not vectorised": (
        lambda: ts.permutation_test([1, 2], [1, 3], statistic=lambda m: m.sum()),
        (
            "ArgumentError: the function of estimand 'statistic' must return one value for each leading "
            "index: expected shape (1,), got (). Write it with `v[..., i]`"
        ),
    ),
    "undefined": (
        lambda: ts.permutation_test([1, 2], [0, 0], statistic=lambda m: m[..., 1] / (m[..., 1] * 0)),
        "DataError: `statistic` is nan for these data; it must be finite to be compared",
    ),
    "alternative": (
        lambda: ts.permutation_test([1, 2], [0, 0], alternative="larger"),  # type: ignore[call-overload]
        "ArgumentError: `alternative` must be one of 'two-sided', 'greater', 'less'; got 'larger'",
    ),
    "of tables": (
        lambda: ts.permutation_test([1, 2], [0, 0], match="row"),  # type: ignore[call-overload]
        "ArgumentError: `match` can be given with a response table only; here use `statistic`",
    ),
    "of arrays": (
        lambda: ts.permutation_test(ts.demo_table(), clusters=[1]),  # type: ignore[call-overload]
        (
            "ArgumentError: `clusters` cannot be given with a table; its columns have roles, so make a "
            "ts.ResponseTable, and ask for `estimands`"
        ),
    ),
}


@pytest.mark.parametrize("case", LINES)
def test_refusals_say_what_to_do(refusal: Refusal, case: str) -> None:
    call, said = LINES[case]
    found = refusal(call)
    assert found.startswith(said) if case == "ragged" else found == said
