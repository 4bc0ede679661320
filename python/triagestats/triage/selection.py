"""Parts of a table: rows that fulfil a condition, and another column as what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import polars as pl

from triagestats.canonical import Factor, ordered_levels
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.labels import as_text, label_of, listed, n_rows
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable

__all__ = ["Rows", "column_named", "rows_where", "table_of", "with_condition", "with_stratum"]

Rows = pl.Expr | Mapping[str, object] | str | Callable[[pl.DataFrame], object]
"""An expression, a mapping from column to value(s), a stratum, or a function from the frame to either."""


def table_of(data: object, levels: object) -> ResponseTable:
    """The data as a ResponseTable; `levels` belong to data that are none yet.

    Raises
    ------
    ArgumentError
        If `levels` are given with a ResponseTable.
    """
    if not isinstance(data, ResponseTable):
        return ResponseTable(data, levels=levels)  # type: ignore[arg-type]  # checked there
    if levels is not None:
        raise ArgumentError(
            "`levels` cannot be given with a ResponseTable; give them where the table is made"
        )
    return data


def rows_where(table: ResponseTable, rows: Rows, argument: str) -> ResponseTable:
    """The rows of a table that `rows` describes.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it describes rows in none of the ways of `Rows`, or names what the table does not have.
    DataError
        If no row is left.
    """
    try:
        frame = table.frame.filter(_predicate(table, rows, argument))
    except pl.exceptions.PolarsError as error:
        raise ArgumentError(f"`{argument}` cannot be evaluated on the rows of the table ({error})") from None
    if frame.is_empty():
        raise DataError(f"`{argument}` leaves none of the {n_rows(table.frame.height)}")
    return table.with_frame(frame)


def _predicate(table: ResponseTable, rows: object, argument: str) -> pl.Expr | pl.Series:
    if isinstance(rows, pl.Expr):
        return rows
    if isinstance(rows, str):
        if "stratum" not in table.frame.columns:
            raise ArgumentError(
                f"`{argument}` is {rows!r}, and the table has no stratum; name a column, such as "
                f"`{argument}={{'condition': {rows!r}}}`"
            )
        rows = {"stratum": rows}
    if isinstance(rows, Mapping):
        if not rows:
            raise ArgumentError(f"`{argument}` is an empty mapping; give at least one column and its value")
        return pl.all_horizontal(_is_in(table, name, value, argument) for name, value in rows.items())
    if callable(rows):
        found = rows(table.frame)
        if isinstance(found, pl.Series) and found.dtype == pl.Boolean and len(found) == table.frame.height:
            return found
        if isinstance(found, pl.Expr):
            return found
        raise ArgumentTypeError(
            f"the function `{argument}` must return a polars expression or one boolean a row; "
            f"got {type(found).__name__}"
        )
    raise ArgumentTypeError(
        f"`{argument}` must be a polars expression, a mapping from column to value(s), a stratum or a "
        f"function of the frame; got {rows!r}"
    )


def _is_in(table: ResponseTable, name: str, value: object, argument: str) -> pl.Expr:
    """Whether a column has one of the values, compared as text; each of them must occur."""
    column = column_named(table, name, argument)
    many = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    values: Iterable[object] = value if many else (value,)  # type: ignore[assignment]  # an iterable then
    wanted = [label_of(item) for item in values]
    text = as_text(table.frame[column], argument)
    present = set(text)
    absent = [label for label in wanted if label not in present]
    if absent or not wanted:
        known = sorted(label for label in present if label is not None)
        raise ArgumentError(
            f"`{argument}` names {', '.join(map(repr, absent)) or 'no value'} of {name!r}; choose from "
            f"{listed(known)}"
        )
    kept = text.is_in(pl.Series(wanted, dtype=pl.String).implode(), nulls_equal=True)
    return pl.lit(kept.fill_null(value=False))


def column_named(table: ResponseTable, name: object, argument: str) -> str:
    """The column of the frame that a name stands for: its own, or that of the role it played.

    Raises
    ------
    ArgumentTypeError
        If `name` is no text.
    ArgumentError
        If there is no such column.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`{argument}` must be the name of a column; got {name!r}")
    if name in table.frame.columns:
        return name
    came_from = {names[0]: role for role, names in table.roles.columns.items() if len(names) == 1}
    for factor in table.factors:
        if factor.name == name:
            return factor.column
    if (role := came_from.get(name)) in table.frame.columns and role is not None:
        return role
    shown = [column for column in table.frame.columns if not column.startswith("_")]
    raise ArgumentError(
        f"`{argument}` names {name!r}, which the table does not have; choose from {listed(shown)}"
    )


def with_condition(table: ResponseTable, column: str | None, argument: str) -> ResponseTable:
    """The table with one column as its condition, or with none (None).

    The column is no part of the key any more, and neither are the other conditions: their rows are pooled.

    Raises
    ------
    DataError
        If the column is blank somewhere.
    """
    frame = table.frame
    others = [name for name in frame.columns if name == "condition" or name.startswith("condition[")]
    if column is None:
        return table.with_frame(frame.drop(others), factors=())
    if column == "condition" and "condition" in frame.columns:
        return table
    text = as_text(frame[column], argument).alias("condition")
    if blank := text.null_count():
        raise DataError(
            f"`{argument}` is column {column!r}, which is blank in {blank:,} of {n_rows(frame.height)}; "
            "fill it in, or drop these rows"
        )
    levels, declared = ordered_levels(frame[column])
    dropped = [*others, *([column] if column in KEY_ROLES else [])]
    frame = frame.drop(dropped, strict=False).with_columns(text)
    return table.with_frame(frame, factors=(Factor(column, "condition", levels, declared),))


def with_stratum(table: ResponseTable, column: str) -> ResponseTable:
    """The table with one column as its stratum."""
    return table.with_frame(table.frame.with_columns(as_text(table.frame[column], "by").alias("stratum")))
