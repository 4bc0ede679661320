"""A frame with what its source says of it, and columns whose values are of several types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from triagestats.results import Note

__all__ = ["Source", "mixed_series"]

_EXACT: Final = 2**53


@dataclass(frozen=True, slots=True)
class Source:
    """A frame as it came.

    Attributes
    ----------
    frame
        The rows under their own column names.
    notes
        What was unusual about the file.
    decimal_comma
        Whether the source is a text file in which a comma can be a decimal point: one whose columns
        are not separated by commas.
    settled
        Whether scores and statuses are as a harness stated them: no score is filled in from labels, no blank
        response is taken for an answer that could not be read, and several metrics may stand side by side.
    """

    frame: pl.DataFrame
    notes: tuple[Note, ...] = ()
    decimal_comma: bool = False
    settled: bool = False


def mixed_series(name: str, values: Sequence[object]) -> pl.Series:
    """Python values as a column: of one type where they agree, else numbers, else text, else objects."""
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        pass
    import numpy as np

    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    plain = [None if _absent(value) else value for value in values]
    present = [value for value in plain if value is not None]
    if all(
        isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT) for value in present
    ):
        return pl.Series(name, [None if v is None else float(v) for v in plain], dtype=pl.Float64)  # type: ignore[arg-type]  # numbers
    if all(isinstance(value, str | int | float) for value in present):
        return pl.Series(name, [None if v is None else _text(v) for v in plain], dtype=pl.String)
    return pl.Series(name, plain, dtype=pl.Object)


def _absent(value: object) -> bool:
    """None, NaN, and the NA and NaT of pandas, which are not equal to themselves."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return str(int(value))
    return str(value)
