"""Array-likes as clean arrays: shapes, missing values, clusters, strata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Missing", "codes_of", "drop_missing", "labels_of", "numbers_of"]

Missing = Literal["raise", "omit"]


def numbers_of(data: object, argument: str, *, dimensions: Sequence[int]) -> NDArray[Any]:
    """An array-like of numbers; whole numbers stay integers, booleans become 0 and 1, gaps NaN.

    Raises
    ------
    ArgumentTypeError
        If it is no array of numbers.
    ArgumentError
        If it is empty, infinite, or has another number of dimensions.
    """
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    try:
        array = np.asarray(data)
        if array.dtype.kind == "O":
            array = np.array([np.nan if value is None else value for value in array.flat]).reshape(
                array.shape
            )
        if array.dtype.kind not in "biuf":
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"`{argument}` must be an array of numbers; got {_shown(data)}") from error
    if array.ndim not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise ArgumentError(
            f"`{argument}` must have {wanted} dimensions; got an array of shape {array.shape}"
        )
    if array.size == 0:
        raise ArgumentError(f"`{argument}` is empty: its shape is {array.shape}")
    if array.dtype.kind == "b":
        return array.astype(np.int16)
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
        if np.isinf(array).any():
            raise ArgumentError(f"`{argument}` has {int(np.isinf(array).sum()):,} infinite values")
    return array


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."


def labels_of(data: object, argument: str, size: int) -> NDArray[np.int64]:
    """Codes of labels in sorted order, shape (size,).

    Raises
    ------
    ArgumentError
        If there are not as many labels as rows, or one is missing.
    """
    return codes_of(data, argument, size)[0]


def codes_of(data: object, argument: str, size: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes of labels in sorted order, shape (size,), and the labels as text.

    Raises
    ------
    ArgumentError
        If there are not as many labels as rows, or one is missing.
    """
    values = list(data.to_list() if hasattr(data, "to_list") else np.asarray(data).tolist())
    if len(values) != size:
        raise ArgumentError(f"`{argument}` must have one label a row: expected {size:,}, got {len(values):,}")
    gaps = sum(value is None or value != value for value in values)  # noqa: PLR0124  NaN differs from itself
    if gaps:
        raise ArgumentError(f"`{argument}` is missing in {gaps:,} of {size:,} rows; drop these rows first")
    unique = sorted(set(values), key=lambda value: (str(type(value)), value))
    code = {value: place for place, value in enumerate(unique)}
    return np.array([code[value] for value in values], dtype=np.int64), tuple(map(str, unique))


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
    for array in arrays:
        if array.dtype.kind == "f":
            complete &= ~np.isnan(array).reshape(len(array), -1).any(axis=1)
    gone = int((~complete).sum())
    if not gone:
        return complete, ()
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
