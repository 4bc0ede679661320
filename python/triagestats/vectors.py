"""Array-likes of any make as vectors: numbers with NaN where missing, and codes of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats.canonical import ordered_levels
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.ingest import to_polars
from triagestats.labels import as_text
from triagestats.results import Note
from triagestats.source import mixed_series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Labels", "Missing", "complete_codes", "drop_missing", "labels_of", "numbers_of", "series_of"]

Missing = Literal["raise", "omit"]

LARGEST: Final = 1e300
"""Numbers up to it can be added and subtracted without overflow."""
_PLAIN: Final = frozenset({int, float})
"""Types of values that become numbers as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """One label a row.

    Attributes
    ----------
    codes
        Place of each row's label among the levels, -1 where it is missing. Shape (n,).
    levels
        The labels that occur, in the order of an Enum or ordered categorical, else sorted.
    """

    codes: NDArray[np.int64]
    levels: tuple[str, ...]


def numbers_of(
    values: object,
    argument: str,
    *,
    dimensions: Sequence[int] = (1, 2),
    keep_integers: bool = False,
) -> NDArray[Any]:
    """Numbers of shape (n,), or of more axes from a matrix, rows or a frame; null and NaN become NaN.

    Parameters
    ----------
    values
        A list, rows, an array, a series or a dataframe of any make. The index of a pandas frame labels its
        rows, whether it has a name or not, and is no column.
    argument
        Its name in messages.
    dimensions
        Numbers of axes that it may have.
    keep_integers
        Leave arrays of integers as they are; else all numbers become float64.

    Raises
    ------
    ArgumentTypeError
        If `values` is no array-like of numbers.
    ArgumentError
        If it is empty or ragged, has another number of axes, or holds a value that is infinite or beyond
        1e300.
    """
    if type(values) is list and set(map(type, values)) <= _PLAIN:
        return _checked(_floats(values, argument), argument, dimensions)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if keep_integers and isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        found: NDArray[Any] = values.astype(np.int16) if values.dtype.kind == "b" else values
    elif isinstance(values, np.ndarray) and values.dtype.kind in "iubf":
        found = values.astype(np.float64)
    elif hasattr(values, "columns"):
        found = _frame(values, argument)
    else:
        found = _matrix(values, argument) if _is_nested(values) else _vector(values, argument)
    return _checked(found, argument, dimensions)


def _checked(found: NDArray[Any], argument: str, dimensions: Sequence[int]) -> NDArray[Any]:
    """The numbers, if they have a shape that is taken, and none is out of range."""
    if found.size == 0:
        raise ArgumentError(f"`{argument}` holds no value")
    if found.ndim not in dimensions:
        raise ArgumentError(f"`{argument}` must have {_axes(dimensions)}; got shape {found.shape}")
    if found.dtype.kind != "f" or not np.count_nonzero(outside := np.abs(found) > LARGEST):
        return found
    infinite = np.isinf(found)
    rows = (infinite if infinite.any() else outside).reshape(len(found), -1).any(axis=1)
    first = int(np.flatnonzero(rows)[0])
    if not infinite.any():
        raise ArgumentError(_too_large(argument, f" in row {first} (from 0)"))
    raise ArgumentError(
        f"`{argument}` holds {int(infinite.sum()):,} infinite value{'s' if infinite.sum() > 1 else ''}, "
        f"the first in row {first} (from 0); replace it, or make it missing"
    )


def labels_of(values: object, argument: str) -> Labels:
    """Labels as codes; numbers, text and dates are compared as text, 7 and 7.0 are one label.

    Raises
    ------
    ArgumentTypeError
        If `values` is no array-like.
    ArgumentError
        If no text stands for its values.
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
        unique, places = np.unique(values, return_inverse=True)
        return Labels(places.astype(np.int64), tuple(map(str, unique.tolist())))
    series = series_of(values, argument)
    levels, _ = ordered_levels(series)
    text = as_text(series, argument)
    place = {level: code for code, level in enumerate(levels)}
    codes = text.replace_strict(place, default=None, return_dtype=pl.Int64) if levels else text.cast(pl.Int64)
    return Labels(codes.fill_null(-1).to_numpy(), levels)


def _axes(dimensions: Sequence[int]) -> str:
    if tuple(dimensions) == (1, 2):
        return "one axis, or two with one row a cluster"
    return "one axis" if tuple(dimensions) == (1,) else f"{' or '.join(map(str, dimensions))} axes"


def complete_codes(values: object, argument: str, size: int) -> NDArray[np.int64]:
    """Codes of one label a row, none of them missing.

    Raises
    ------
    ArgumentError
        If there are not as many labels as rows, or some are missing.
    """
    labels = labels_of(values, argument)
    if len(labels.codes) != size:
        raise ArgumentError(
            f"`{argument}` must have one label a row: expected {size:,}, got {len(labels.codes):,}"
        )
    if gaps := int((labels.codes < 0).sum()):
        raise ArgumentError(f"`{argument}` is missing in {gaps:,} of {size:,} rows; drop these rows first")
    return labels.codes


def drop_missing(
    arrays: Sequence[NDArray[Any]], names: Sequence[str], missing: Missing
) -> tuple[NDArray[np.bool_], tuple[Note, ...]]:
    """Which rows are complete in all arrays, and a note on the others.

    Raises
    ------
    DataError
        If some are not and `missing` is `raise`, or none is.
    ArgumentError
        If `missing` is neither `raise` nor `omit`.
    """
    if missing not in ("raise", "omit"):
        raise ArgumentError(f"`missing` must be 'raise' or 'omit'; got {missing!r}")
    complete = np.ones(len(arrays[0]), dtype=bool)
    some = False
    for array in arrays:
        if array.dtype.kind == "f" and np.count_nonzero(absent := np.isnan(array)):
            complete &= ~absent.reshape(len(array), -1).any(axis=1)
            some = True
    if not some:
        return complete, ()
    gone = int((~complete).sum())
    where = " or ".join(f"`{name}`" for name in names)
    if missing == "raise":
        raise DataError(
            f"{gone:,} of {len(complete):,} rows have a missing value in {where}; "
            "drop them with missing='omit'"
        )
    if gone == len(complete):
        raise DataError(f"every row has a missing value in {where}")
    return complete, (
        Note("missing", f"{gone:,} of {len(complete):,} rows with a missing value are left out.", "caution"),
    )


def _is_nested(values: object) -> bool:
    if isinstance(values, np.ndarray):
        return values.ndim != 1
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or not len(values):
        return False
    return _is_row(values[0])


def _floats(values: Any, argument: str) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        raise ArgumentError(_too_large(argument)) from None


def _too_large(argument: str, where: str = "") -> str:
    return f"`{argument}` holds a value beyond {LARGEST:g}{where}, too large to reckon with; change the unit"


def _matrix(values: Any, argument: str) -> Array:
    try:
        found = np.asarray(values)
    except (ValueError, OverflowError):  # rows of unequal lengths
        found = np.empty(0, dtype=np.object_)
    if found.dtype.kind in "iubf":
        return found.astype(np.float64)
    if found.size and all(map(_is_number, found.flat)):
        return _floats(values, argument)
    lengths = [len(row) if _is_row(row) else None for row in values]
    if len(set(lengths)) > 1:
        place = next(place for place, length in enumerate(lengths) if length != lengths[0])
        other = "is a single value" if lengths[place] is None else f"has {lengths[place]}"
        raise ArgumentError(
            f"`{argument}` must be a matrix of numbers, every row as long as the others; row 0 has "
            f"{lengths[0]} values, and row {place} {other}"
        )
    wrong = next((cell for row in values for cell in row if not _is_number(cell)), values)
    shown = "rows of rows" if _is_row(wrong) else repr(str(wrong) if isinstance(wrong, str) else wrong)
    raise ArgumentTypeError(f"`{argument}` must be a matrix of numbers; got {shown}")


def _is_row(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def _is_number(value: object) -> bool:
    return value is None or (
        hasattr(value, "__float__") and not isinstance(value, str | complex | np.ndarray)
    )


def _frame(values: object, argument: str) -> Array:
    frame = to_polars(values, argument, index_columns=False).frame
    wrong = [
        column for column in frame if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null))
    ]
    if wrong:
        shown = next((value for value in wrong[0] if value is not None), wrong[0].dtype)
        raise ArgumentTypeError(
            f"`{argument}` must hold numbers in every column; column {wrong[0].name!r} holds {shown!r}"
        )
    numbers: Array = frame.select(pl.all().cast(pl.Float64)).to_numpy()
    return numbers


def _vector(values: object, argument: str) -> Array:
    series = series_of(values, argument)
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        given = values if isinstance(values, list | tuple) else series
        shown = next((value for value in given if isinstance(value, str)), series.dtype)
        raise ArgumentTypeError(f"`{argument}` must hold numbers; got {shown!r}")
    numbers: Array = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return numbers


def series_of(values: object, argument: str) -> pl.Series:
    """A column from a list, an array or a series of any make; an ordered categorical becomes an Enum.

    Raises
    ------
    ArgumentTypeError
        If `values` is no array-like.
    """
    if isinstance(values, pl.Series):
        return values.alias(argument)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ArgumentTypeError(
            f"`{argument}` must be a list, a NumPy array or a series; got {type(values).__name__}"
        )
    kind: Any = getattr(values, "dtype", None)
    for name in ("to_pylist", "tolist"):  # pyarrow; NumPy and pandas
        if hasattr(values, name):
            listed: list[object] = getattr(values, name)()
            break
    else:
        listed = list(values)
    if getattr(kind, "ordered", False) and hasattr(kind, "categories"):  # an ordered categorical of pandas
        names = {level: str(level) for level in kind.categories}  # what is missing is none of them
        return pl.Series(argument, [names.get(value) for value in listed], dtype=pl.Enum(names.values()))
    return mixed_series(argument, listed)
