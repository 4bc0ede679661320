"""Columns of 0 and 1 beside a score: read as numbers, and as shares by model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.beside import Shares
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.labels import listed
from triagestats.marginals import shares_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["binary_column", "column_named", "flag_names", "flag_shares"]

_WORDS: Final = {
    "0": 0.0,
    "0.0": 0.0,
    "false": 0.0,
    "no": 0.0,
    "1": 1.0,
    "1.0": 1.0,
    "true": 1.0,
    "yes": 1.0,
}


def column_named(frame: pl.DataFrame, name: object, argument: str) -> pl.Series:
    """The column that an argument names.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it names none.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`{argument}` must be the name of a column; got {name!r}")
    if name not in frame.columns:
        raise ArgumentError(
            f"`{argument}` names {name!r}, which the table does not have; choose from its columns "
            f"{listed(frame.columns)}"
        )
    return frame[name]


def binary_column(frame: pl.DataFrame, name: object, argument: str) -> Array:
    """A column of 0 and 1, true and false, or yes and no as numbers; NaN where it is blank.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is no such column.
    DataError
        If it holds something else.
    """
    series = column_named(frame, name, argument)
    if series.dtype == pl.Boolean or series.dtype.is_numeric():
        values: Array = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
        wrong = ~np.isnan(values) & (values != 0) & (values != 1)
    else:
        text = series.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
        blank = (text.is_null() | (text == "")).to_numpy()
        values = (
            text.replace_strict(_WORDS, default=None, return_dtype=pl.Float64).fill_null(np.nan).to_numpy()
        )
        wrong = np.isnan(values) & ~blank
    if wrong.any():
        example = series[int(np.flatnonzero(wrong)[0])]
        raise DataError(
            f"`{argument}` is column {name!r}, which holds {example!r} in {int(wrong.sum()):,} of "
            f"{len(values):,} rows; expected 0 and 1, or true and false"
        )
    return values


def flag_names(flags: object) -> tuple[str, ...]:
    """`flags` as names of columns.

    Raises
    ------
    ArgumentTypeError
        If it is no list of names.
    """
    if isinstance(flags, str):
        return (flags,)
    if not isinstance(flags, Sequence) or not all(isinstance(name, str) for name in flags):
        raise ArgumentTypeError(f"`flags` must be a list of names of columns; got {flags!r}")
    return tuple(dict.fromkeys(flags))


def flag_shares(
    columns: Sequence[tuple[str, Array]], models: Sequence[str], model: Codes, scenario: Codes, cluster: Codes
) -> Shares | None:
    """Shares of 0/1 columns by model, each scenario weighing one, with intervals by cluster.

    Parameters
    ----------
    columns
        Name and values (n,), NaN where blank; those rows are left out.
    models
        Names by code.
    model, scenario, cluster
        Codes of each row, shape (n,).
    """
    if not columns or not models:
        return None
    size = int(cluster.max(initial=-1)) + 1
    successes, sizes, names = [], [], []
    binary = True
    for name, values in columns:
        known = ~np.isnan(values)
        key = scenario[known] * len(models) + model[known]
        _, first, place, number = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        mean = np.bincount(place, weights=values[known]) / number
        cell = cluster[known][first] * len(models) + model[known][first]
        shape = (size, len(models))
        successes.append(np.bincount(cell, weights=mean, minlength=size * len(models)).reshape(shape))
        sizes.append(np.bincount(cell, minlength=size * len(models)).reshape(shape))
        names += [(label, name) for label in models]
        binary &= bool((number == 1).all())
    found = shares_of(np.concatenate(successes, axis=1), np.concatenate(sizes, axis=1), binary=binary)
    return Shares(tuple(names), found)
