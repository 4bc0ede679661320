"""Whatever holds a table (a dataframe of any make, a mapping, a file) as one polars frame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sized
from pathlib import Path
from typing import Any

import polars as pl

from triagestats.errors import ArgumentTypeError, DataError, ReadError
from triagestats.files import read_table
from triagestats.labels import label_of
from triagestats.results import Note
from triagestats.source import Source, mixed_series

__all__ = ["to_polars"]


def to_polars(data: object, argument: str = "data", *, index_columns: bool = True) -> Source:
    """A polars frame from a frame of any make, a mapping of columns, or a path; `data` stays as it is.

    Null stays null and NaN stays NaN, also in a pandas column of numpy floats, where pandas writes NaN for
    what it knows nothing of. NA, NaT, and None or NaN among objects of pandas become null.

    A pandas index with a name is a column where columns are asked for by name, with a note; with
    `index_columns=False`, where every column is data, such as a matrix of counts or one rater a column, it
    is left out, as an index without a name always is.

    Raises
    ------
    ArgumentTypeError
        If `data` is none of these; `argument` is the name that the caller knows it by.
    DataError
        If its columns cannot be told apart.
    ReadError
        If it is a path that cannot be read, or a lazy frame that cannot be collected.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, pl.DataFrame):
        return Source(data)
    if isinstance(data, str | os.PathLike):
        try:
            return read_table(Path(data))
        except ReadError as error:
            raise ReadError(f"`{argument}`: {error}") from error.__cause__
    if isinstance(data, Mapping):
        return Source(_from_mapping(data, argument))
    return _from_narwhals(data, argument, index_columns=index_columns)


def _from_mapping(data: Mapping[Any, Any], argument: str) -> pl.DataFrame:
    odd = [name for name in data if not isinstance(name, str)]
    if odd:
        names = ", ".join(map(repr, odd))
        raise ArgumentTypeError(
            f"`{argument}` has column names that are not text: {names}; write them as text"
        )
    columns = {name: _column(name, values) for name, values in data.items()}
    lengths = {
        name: len(values)
        for name, values in columns.items()
        if isinstance(values, Sized) and not isinstance(values, str | bytes)
    }
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"`{argument}` is a mapping of columns that differ in length: "
            + ", ".join(f"{name!r} has {length:,}" for name, length in lengths.items())
            + "; give every column as many values"
        )
    try:
        return pl.DataFrame(columns)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        first = str(error).strip().splitlines()[0]
        raise ArgumentTypeError(f"`{argument}` is a mapping that is no table of columns: {first}") from error


def _column(name: str, values: object) -> object:
    """Python values as a series; an array stays one, and a single value is for all rows."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return values
    if hasattr(values, "__array__") or hasattr(values, "__arrow_c_stream__"):
        return values
    return mixed_series(name, list(values))


def _from_narwhals(data: object, argument: str, *, index_columns: bool) -> Source:
    import narwhals as nw

    notes: tuple[Note, ...] = ()
    if _is_pandas(nw.to_native(data, pass_through=True)):
        unwrapped = nw.to_native(data, pass_through=True)
        data, notes = _flat_pandas(unwrapped, argument, index_columns=index_columns)
    try:
        frame = nw.from_native(data)  # type: ignore[call-overload]  # any object may come; narwhals decides
    except TypeError:
        raise ArgumentTypeError(
            f"`{argument}` must be a dataframe (polars, pandas, pyarrow, duckdb or any other that narwhals "
            "knows), a mapping from column names to values, or a path to a csv, parquet or jsonl file; "
            f"got {type(data).__name__}"
        ) from None
    except nw.exceptions.DuplicateError:
        raise _twice(argument, list(data.column_names)) from None  # type: ignore[attr-defined]  # pyarrow
    if isinstance(frame, nw.LazyFrame):
        frame = _collected(frame, argument)
    native = frame.to_native()
    if isinstance(native, pl.DataFrame):
        return Source(native, notes)
    if not _is_pandas(native):
        return Source(frame.to_polars(), notes)
    return Source(_from_pandas(frame, native), notes)


def _collected(frame: Any, argument: str) -> Any:
    try:
        return frame.collect(backend="polars")
    except Exception as error:  # every engine has exceptions of its own
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ReadError(f"`{argument}` is a lazy frame that cannot be collected: {lines[0]}") from error


def _twice(argument: str, names: list[str]) -> DataError:
    twice = sorted({name for name in names if names.count(name) > 1})
    return DataError(
        f"`{argument}` has several columns named {' and '.join(map(repr, twice))}; rename them, "
        "so that each has a name of its own"
    )


def _is_pandas(native: object) -> bool:
    made_by = type(native)
    return made_by.__module__.partition(".")[0] == "pandas" and made_by.__name__ == "DataFrame"


def _flat_pandas(data: Any, argument: str, *, index_columns: bool) -> tuple[Any, tuple[Note, ...]]:
    """A pandas frame whose columns have one name each; named levels of the index become columns, or go."""
    if data.columns.nlevels > 1:
        raise DataError(
            f"`{argument}` has column names of {data.columns.nlevels} levels (a pandas MultiIndex); "
            "make them one, for instance with data.columns = data.columns.map('_'.join)"
        )
    if not index_columns:
        data = data.reset_index(drop=True)
    levels = [name for name in data.index.names if name is not None]
    names = [str(name) for name in [*levels, *data.columns]]
    if len(set(names)) < len(names):
        raise _twice(argument, names)
    notes: tuple[Note, ...] = ()
    if levels:
        data = data.reset_index(level=levels)
        said = ", ".join(f"`{name}`" for name in levels)
        notes = (Note("index_columns", f"The pandas index is read as a column: {said}."),)
    return data.set_axis([str(name) for name in data.columns], axis="columns"), notes


def _from_pandas(frame: Any, native: Any) -> pl.DataFrame:
    """The fast way needs pyarrow and columns of one type; what it does not take goes value by value."""
    special = {name: _special(native[name]) for name in native.columns}
    rest = [name for name, series in special.items() if series is None]
    try:
        converted: pl.DataFrame = frame.select(*rest).to_polars()
    except (ImportError, TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError):
        converted = pl.DataFrame([mixed_series(name, _values(native[name])) for name in rest])
    return pl.DataFrame(
        [converted[name] if series is None else series.alias(name) for name, series in special.items()]
    )


def _values(column: Any) -> list[Any]:
    """Python values of a pandas column, with None for its NaN, NA and NaT."""
    return [None if absent else value for value, absent in zip(column.tolist(), column.isna(), strict=True)]


def _special(column: Any) -> pl.Series | None:
    """Columns that arrow would change: NaN, the declared order of a categorical, and periods."""
    if str(column.dtype) in ("float32", "float64"):
        return pl.Series(column.to_numpy())
    if type(column.dtype).__name__ == "PeriodDtype":
        return pl.Series(
            [None if value is None else str(value) for value in _values(column)], dtype=pl.String
        )
    categories = getattr(column.dtype, "categories", None)
    if categories is None or not all(isinstance(value, str | int | float) for value in categories):
        return None
    labels = [value if isinstance(value, str) else str(label_of(value)) for value in categories]
    if len(set(labels)) < len(labels):
        return None
    codes = pl.Series(column.cat.codes.to_numpy()).cast(pl.Int64)
    text = pl.Series(labels, dtype=pl.String).gather(codes.set(codes < 0, None))
    return text.cast(pl.Enum(labels))
