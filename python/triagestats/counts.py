"""Counts: tables of whole numbers that are not negative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.errors import ArgumentError
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

__all__ = ["count_of", "count_table", "whole_counts"]

_LARGEST = 2.0**53


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
    number = numbers_of([value], argument, dimensions=(1,))
    return int(whole_counts(number, argument)[0])


def count_table(values: object, argument: str, *, square: bool = False) -> Counts:
    """A table of counts with at least two rows and two columns, and one observation.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it has another shape, holds something that is no count, or is empty.
    """
    found = whole_counts(numbers_of(values, argument, dimensions=(2,)), argument)
    if min(found.shape) < 2 or (square and found.shape[0] != found.shape[1]):
        shape = " x ".join(map(str, found.shape))
        wanted = "as many rows as columns, at least two" if square else "at least two rows and two columns"
        raise ArgumentError(f"`{argument}` must be a table of counts with {wanted}; got {shape}")
    if found.sum() == 0:
        raise ArgumentError(f"`{argument}` holds no observation: all counts are 0")
    return found
