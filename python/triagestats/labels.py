"""Identifiers and labels as text: the one form in which values of any type are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import polars as pl

from triagestats.errors import DataError

__all__ = ["WHITE_SPACE", "as_text", "counted", "in_task", "label_of", "listed", "n_rows"]

WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What `as_text` strips, to be named to engines whose own idea of blanks is another."""

_SHOWN: Final = 20
_INT64: Final = 2.0**63
_READABLE: Final = (
    pl.String,
    pl.Categorical,
    pl.Enum,
    pl.Boolean,
    pl.Date,
    pl.Datetime,
    pl.Time,
    pl.Null,
    pl.Binary,
)


def as_text(series: pl.Series, role: str) -> pl.Series:
    """Values as text: 7 and 7.0 become `7`, the text `007` stays, blank text and NaN become null.

    Raises
    ------
    DataError
        If the column holds something that no text stands for; `role` is named in the message.
    """
    dtype = series.dtype
    if not (dtype.is_numeric() or dtype in _READABLE):
        raise _unreadable(series, role)
    if dtype.is_float():
        text = _float_text(series)
    elif dtype.is_decimal():
        text = series.cast(pl.String)
        fraction = text.str.contains(".", literal=True)
        text = text.zip_with(~fraction, text.str.strip_chars_end("0").str.strip_chars_end("."))
    else:
        try:
            text = series.cast(pl.String)
        except pl.exceptions.PolarsError:
            raise _unreadable(series, role) from None
    text = text.str.strip_chars()
    return text.set(text == "", None)


def _float_text(series: pl.Series) -> pl.Series:
    """Whole numbers without decimals, value by value, so that a blank or a 2.5 elsewhere changes nothing."""
    value = pl.col(series.name)
    whole = (value == value.floor()) & (value.abs() < _INT64)
    text = (
        pl.when(whole)
        .then(value.cast(pl.Int64, strict=False).cast(pl.String))
        .otherwise(value.cast(pl.String))
    )
    return pl.DataFrame(series.fill_nan(None)).select(text.alias(series.name)).to_series()


def _unreadable(series: pl.Series, role: str) -> DataError:
    fix = (
        "write a range as text such as 'C/D', or as two columns with `gold=('low', 'high')`"
        if role == "gold"
        else "name another column, or make this one text"
    )
    return DataError(
        f"`{role}` is column {series.name!r}, which holds {series.dtype}; expected text or numbers: {fix}"
    )


def label_of(value: object) -> str | None:
    """The text of one value, as `as_text` writes it; None where it is blank."""
    text: str | None = as_text(pl.Series("", [value]), "")[0]
    return text


def in_task(task: str = "task", scenario: str = "scenario") -> pl.Expr:
    """The label of a scenario among several tasks: task/item."""
    return pl.concat_str(pl.col(task), pl.col(scenario), separator="/")


def listed(values: Iterable[str]) -> str:
    """Names for a message; where there are many, the first of them."""
    names = list(values)
    if len(names) <= _SHOWN:
        return str(names)
    return f"{str(names[:_SHOWN])[:-1]}, and {len(names) - _SHOWN:,} more]"


def n_rows(count: int) -> str:
    """`1 row`, `2,000 rows`."""
    return counted(count, "row")


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 cluster`, `2,000 clusters`; with `many`, `1 cluster is`, `2,000 clusters are`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
