"""Counts: tables of whole numbers that are not negative."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

__all__ = ["axis_labels", "count_of", "count_table", "pair_table", "trials_of", "whole_counts"]

_LARGEST: Final = 2.0**53
_ONE: Final = ("1", "true")
_NONE: Final = ("0", "false")
_TOTAL: Final = "All"
"""What pandas calls the totals of a crosstab."""


def whole_counts(values: NDArray[Any], argument: str) -> Counts:
    """Numbers as counts.

    Raises
    ------
    ArgumentError
        If one is missing, negative, fractional, or too large to be exact.
    """
    found = values.astype(np.float64)
    for wrong, why in (
        (np.isnan(found), "a missing count"),
        (found < 0, "a negative count"),
        (found != np.floor(found), "a count that is not whole"),
        (found > _LARGEST, "a count beyond 2^53"),
    ):
        if wrong.any():
            example = found[wrong].flat[0]
            raise ArgumentError(f"`{argument}` holds {why}, {example:g}; expected whole numbers from 0")
    return found.astype(np.int64)


def count_of(value: object, argument: str) -> int:
    """One count.

    Raises
    ------
    ArgumentTypeError
        If `value` is no number.
    ArgumentError
        If it is missing, negative or fractional.
    """
    if type(value) is int and 0 <= value <= _LARGEST:
        return value
    if isinstance(value, Iterable) and not isinstance(value, str):
        raise ArgumentTypeError(f"`{argument}` must be one whole number; got a {type(value).__name__}")
    number = numbers_of([value], argument, dimensions=(1,))
    return int(whole_counts(number, argument)[0])


def trials_of(count: object, nobs: object, argument: str, trials: str) -> tuple[int, int]:
    """How many successes of how many trials.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If they are no counts, or there is no trial, or more successes than trials.
    """
    if np.ndim(count) or np.ndim(nobs):  # type: ignore[arg-type]  # any object may come
        raise ArgumentTypeError(
            f"`{argument}` and `{trials}` must be counts, so many successes of so many; of a vector of 0 and "
            "1 give the sum and the number of values"
        )
    x, n = count_of(count, argument), count_of(nobs, trials)
    if n == 0:
        raise ArgumentError(f"`{trials}` must be at least 1; got 0: without a trial there is no proportion")
    if x > n:
        raise ArgumentError(f"`{argument}` must not exceed `{trials}`; got {x:,} of {n:,}")
    return x, n


def count_table(values: object, argument: str, *, square: bool = False) -> Counts:
    """A table of counts with at least two rows and two columns, and one observation.

    Parameters
    ----------
    values
        Rows, an array, or a frame of any make, whose index is no column.
    argument
        Its name in messages.
    square
        Whether rows and columns must be the same categories. Where a pandas frame labels both, such as a
        crosstab, the labels must then be the same and in one order, or have nothing in common.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it has another shape, holds something that is no count, or is empty.
    """
    found = whole_counts(numbers_of(values, argument, dimensions=(2,)), argument)
    rows, columns = axis_labels(values)
    if square and rows is not None and columns is not None and rows != columns and set(rows) & set(columns):
        raise ArgumentError(
            f"`{argument}` must have one scale for rows and columns, in one order; got rows "
            f"{listed(rows)} and columns {listed(columns)}. With `levels` the list of all, "
            "table.reindex(index=levels, columns=levels, fill_value=0) has them"
        )
    if rows is not None and columns is not None and rows[-1] == columns[-1] == _TOTAL and _has_totals(found):
        raise ArgumentError(
            f"`{argument}` holds its own totals, as row and column {_TOTAL!r}; leave them out, for instance "
            "with table.iloc[:-1, :-1]"
        )
    if min(found.shape) < 2 or (square and found.shape[0] != found.shape[1]):
        shape = " x ".join(map(str, found.shape))
        wanted = "as many rows as columns, at least two" if square else "at least two rows and two columns"
        raise ArgumentError(f"`{argument}` must be a table of counts with {wanted}; got {shape}")
    if found.sum() == 0:
        raise ArgumentError(f"`{argument}` holds no observation: all counts are 0")
    return found


def _has_totals(counts: Counts) -> bool:
    """Whether the last row and the last column are the sums of the others."""
    inner = counts[:-1, :-1]
    return inner.size > 0 and bool(
        (counts[-1, :-1] == inner.sum(axis=0)).all()
        and (counts[:-1, -1] == inner.sum(axis=1)).all()
        and counts[-1, -1] == inner.sum()
    )


def pair_table(values: object, argument: str) -> tuple[Counts, tuple[Note, ...]]:
    """A table of pairs of 0 and 1 with 1 first: [[both, x only], [y only, neither]].

    Rows and columns stand in this order, but for a pandas frame that labels both with 0 and 1, or False and
    True, such as a crosstab, where 0 comes first: its labels are read, and a note says so where the order
    changes. The numbers that pandas gives to rows and columns without labels do not count as such.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As `count_table`.
    """
    counts = count_table(values, argument)
    labels = axis_labels(values)
    places = [_ones_first(axis) for axis in labels]
    if counts.shape != (2, 2) or None in places or places == [[0, 1], [0, 1]]:
        return counts, ()
    note = Note(
        "labels",
        f"The labels of `{argument}` are read, rows {listed(labels[0] or ())} and columns "
        f"{listed(labels[1] or ())}: 1 comes first in [[both, x only], [y only, neither]].",
    )
    return counts[places[0]][:, places[1]], (note,)


def axis_labels(values: Any) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Labels of rows and columns of a pandas frame, such as a crosstab.

    None for an axis that pandas numbered because nothing labelled it, and for frames of other makes.
    """
    if not (hasattr(values, "columns") and hasattr(values, "index")):
        return None, None
    return _labels(values.index), _labels(values.columns)


def _labels(axis: Any) -> tuple[str, ...] | None:
    numbered = type(axis).__name__ == "RangeIndex" and axis.name is None
    if numbered or getattr(axis, "nlevels", 1) > 1:
        return None
    return tuple(
        str(label_of(label)) if isinstance(label, int | float | np.number) else str(label) for label in axis
    )


def _ones_first(labels: tuple[str, ...] | None) -> list[int] | None:
    """Places of 1 and 0 among two labels; None where they are others."""
    small = [label.lower() for label in labels or ()]
    for one, none in zip(_ONE, _NONE, strict=True):
        if sorted(small) == sorted((one, none)):
            return [small.index(one), small.index(none)]
    return None
