"""Every kind of dataframe gives the same frame, or one clear message."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import triagestats as ts
from triagestats.canonical import Factor
from triagestats.ingest import to_polars

COLUMNS = {"scenario": ["007", "b", "c"], "model": ["m", "m", "n"], "score": [1, 0, None]}
EXPECTED = [("007", "m", 1.0), ("b", "m", 0.0), ("c", "n", None)]


def answers(table: ts.ResponseTable) -> list[tuple[Any, ...]]:
    return table.frame.select("scenario", "model", "score").rows()


SOURCES: dict[str, Callable[[], object]] = {
    "polars": lambda: pl.DataFrame(COLUMNS),
    "lazy polars": lambda: pl.LazyFrame(COLUMNS),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas index": lambda: pd.DataFrame(COLUMNS).set_index(["scenario", "model"]),
    "pandas sparse": lambda: pd.DataFrame(COLUMNS).astype({"score": pd.SparseDtype(float)}),
    "pyarrow": lambda: pa.table(COLUMNS),
    "duckdb": lambda: duckdb.from_arrow(pa.table(COLUMNS)),
    "narwhals": lambda: nw.from_native(pd.DataFrame(COLUMNS)),
    "lazy narwhals": lambda: nw.from_native(pl.LazyFrame(COLUMNS)),
    "mapping": lambda: COLUMNS,
    "mapping of arrays": lambda: {name: pl.Series(values) for name, values in COLUMNS.items()},
    "mapping of numpy": lambda: {**COLUMNS, "scenario": np.array(COLUMNS["scenario"])},
    "mapping of iterators": lambda: {name: iter(values) for name, values in COLUMNS.items()},
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_frame_gives_the_same_table(source: str) -> None:
    assert answers(ts.ResponseTable(SOURCES[source]())) == EXPECTED


NO_TABLE = (
    "`data` must be a dataframe (polars, pandas, pyarrow, duckdb or any other that narwhals knows), a "
    "mapping from column names to values, or a path to a csv, parquet or jsonl file; got "
)
TWICE = "`data` has several columns named {}; rename them, so that each has a name of its own"

BAD_FRAMES: list[tuple[Callable[[], object], str]] = [
    (lambda: None, f"ArgumentTypeError: {NO_TABLE}NoneType"),
    (lambda: [{"scenario": "a"}], f"ArgumentTypeError: {NO_TABLE}list"),
    (lambda: np.zeros((2, 2)), f"ArgumentTypeError: {NO_TABLE}ndarray"),
    (lambda: pd.Series([1]), f"ArgumentTypeError: {NO_TABLE}Series"),
    (lambda: b"a.csv", f"ArgumentTypeError: {NO_TABLE}bytes"),
    (
        lambda: ts.ResponseTable(COLUMNS),
        "ArgumentTypeError: `data` is a ResponseTable already; use it, or give what it was made from",
    ),
    (
        lambda: {1: ["a"], "score": [1]},
        "ArgumentTypeError: `data` has column names that are not text: 1; write them as text",
    ),
    (
        lambda: {"scenario": ["a"], "score": [1, 0]},
        (
            "DataError: `data` is a mapping of columns that differ in length: 'scenario' has 1, 'score' has "
            "2; give every column as many values"
        ),
    ),
    (
        lambda: pd.DataFrame([["a", 1, 2]], columns=["scenario", "score", "score"]),
        "DataError: " + TWICE.format("'score'"),
    ),
    (lambda: pd.DataFrame({5: [1], "5": [2]}), "DataError: " + TWICE.format("'5'")),
    (lambda: pa.table([["a"], ["b"]], names=["x", "x"]), "DataError: " + TWICE.format("'x'")),
    (
        lambda: pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "score")])),
        (
            "DataError: `data` has column names of 2 levels (a pandas MultiIndex); make them one, for "
            "instance with data.columns = data.columns.map('_'.join)"
        ),
    ),
    (
        lambda: pl.LazyFrame(COLUMNS).select("zz"),
        (
            'ReadError: `data` is a lazy frame that cannot be collected: unable to find column "zz"; valid '
            'columns: ["scenario", "model", "score"]'
        ),
    ),
    (dict, "DataError: `data` has no rows and no columns"),
    (
        lambda: pl.DataFrame({"scenario": [], "score": []}),
        "DataError: `data` has no rows; its columns are ['scenario', 'score']",
    ),
]


@pytest.mark.parametrize(("data", "message"), BAD_FRAMES)
def test_bad_frames(data: Callable[[], object], message: str, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: ts.ResponseTable(data())) == message


def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'pyarrow'")

    monkeypatch.setattr(pl, "from_pandas", absent)
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.parametrize("nullable", [True, False])
def test_pandas_needs_no_pyarrow(*, nullable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pd.DataFrame(
        {
            "scenario": ["a", None, "b"],
            "rep": [1, None, 3],
            "score": [True, None, False],
            "when": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "condition": pd.Categorical(["z", None, "a"], categories=["z", "a"]),
        }
    )
    data = data.convert_dtypes() if nullable else data
    fast = to_polars(data).frame
    without_pyarrow(monkeypatch)
    slow = to_polars(data).frame
    assert_frame_equal(fast, slow, check_dtypes=False)
    assert fast.null_count().row(0) == (1, int(nullable), 1, 1, 1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nan_is_unscored_whatever_holds_it(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.array([1.0, 0.0, np.nan], dtype=dtype)
    columns = {"scenario": ["a", "b", "c"], "score": scores}
    expected = [("ok",), ("ok",), ("unscored",)]
    for make in (dict, pl.DataFrame, pd.DataFrame):
        assert ts.ResponseTable(make(columns)).frame.select("status").rows() == expected
    without_pyarrow(monkeypatch)
    assert ts.ResponseTable(pd.DataFrame(columns)).frame.select("status").rows() == expected


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "object", "boolean", "double[pyarrow]"])
def test_what_pandas_knows_to_be_absent_is_missing(dtype: str) -> None:
    data = pd.DataFrame({"scenario": ["a", "b"], "score": pd.array([1, None], dtype=dtype)})
    assert ts.ResponseTable(data).frame["status"].to_list() == ["ok", "missing"]


def test_nan_of_pandas_is_blank_in_other_roles() -> None:
    data = {"scenario": ["a", "b"], "score": [1.0, 0.0], "error": [np.nan] * 2, "rep": [1.0, np.nan]}
    frame = ts.ResponseTable(pd.DataFrame(data)).frame
    assert frame.select("repetition", "status").rows() == [("1", "ok"), (None, "ok")]


def test_python_values_are_never_lost() -> None:
    odd: dict[str, list[Any]] = {
        "x": [1, {"a": 2}],
        "y": [1, 2**200],
        "z": [2**53 + 1, 0.5],
        "u": [True, "no"],
        "v": [float("nan"), "a"],
        "w": [1, 0.5],
    }
    assert to_polars(odd).frame.to_dict(as_series=False) == {
        "x": [1, {"a": 2}],
        "y": ["1", str(2**200)],
        "z": [str(2**53 + 1), "0.5"],
        "u": ["true", "no"],
        "v": [None, "a"],
        "w": [1.0, 0.5],
    }


@pytest.mark.parametrize(
    ("column", "levels", "declared"),
    [
        (pl.Series(["m", "z"], dtype=pl.Enum(["z", "q", "m"])), ("z", "m"), True),
        (pd.Categorical(["m", "z"], categories=["z", "q", "m"]), ("z", "m"), True),
        (pd.Categorical([1, 3], categories=[3, 2, 1], ordered=True), ("3", "1"), True),
        (pl.Series(["m", "z"], dtype=pl.Categorical), ("m", "z"), False),
        (["10", "9"], ("9", "10"), False),
        ([10.0, 9.5], ("9.5", "10"), False),
        (["nan", "2"], ("2", "nan"), False),
        (pd.PeriodIndex(["2021", "2020"], freq="Y"), ("2020", "2021"), False),
        ([dt.date(2021, 1, 1), dt.date(2020, 1, 1)], ("2020-01-01", "2021-01-01"), False),
    ],
)
def test_a_declared_order_is_kept(column: Any, levels: tuple[str, ...], *, declared: bool) -> None:
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    table = ts.ResponseTable(make({"scenario": ["a", "b"], "score": [1, 0], "condition": column}))
    assert table.factors == (Factor("condition", "condition", levels, declared),)


def test_the_index_of_pandas_is_noted() -> None:
    table = ts.ResponseTable(pd.DataFrame(COLUMNS).set_index("scenario"))
    assert [str(note) for note in table.notes] == ["The pandas index is read as a column: `scenario`."]


@pytest.mark.parametrize("source", ["pandas", "pandas index", "pandas objects"])
def test_pandas_is_not_mutated(source: str) -> None:
    data: Any = SOURCES[source]()
    before = data.copy(deep=True)
    ts.ResponseTable(data).frame.with_columns(score=pl.lit(9.0))
    pd.testing.assert_frame_equal(data, before)


def test_polars_is_not_mutated() -> None:
    data = pl.DataFrame({"scenario": [" a", "b"], "score": ["yes", "no"], "error": [None, "x"]})
    before = data.clone()
    ts.ResponseTable(data, unparsed="missing")
    assert_frame_equal(data, before)
