"""Columns of a held table under the names of their roles, blank where blank, as the engine compares them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.canonical import Factor, ordered_levels
from triagestats.errors import DataError
from triagestats.labels import WHITE_SPACE
from triagestats.roles import Assignment

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["factor_column", "factors_of", "infinite", "label_kind", "ragged", "role_columns"]

_COMPARED: Final = ("response", "gold_low", "gold_high", "metric")
"""Labels that are compared with each other or with words, and not grouped by."""
_KEYS: Final = (
    "scenario",
    "model",
    "variant",
    "repetition",
    "judge",
    "metric",
    "task",
    "stratum",
    "response",
)


def factor_column(position: int) -> str:
    """The name of a condition column among the role columns."""
    return f"factor_{position}"


def role_columns(
    schema: Mapping[str, Any], roles: Assignment, *, plain: Collection[str] = (), coded: bool = False
) -> list[nw.Expr]:
    """Expressions of the columns that an analysis reads, under the names of their roles.

    Text is stripped, and what is blank or NaN becomes null. Numbers, dates and truth values stay what they
    are: they group the same, and only their labels are made text.

    Parameters
    ----------
    schema, roles
        The columns as they are held, and their roles.
    plain
        Columns of text that need no stripping.
    coded
        Whether text of the key is grouped by codes, as polars does faster.

    Raises
    ------
    DataError
        If a column holds what no text stands for.
    """
    import narwhals as nw

    named = [(role, name) for role in _KEYS if (name := roles.one(role)) is not None]
    named += [(factor_column(k), name) for k, name in enumerate(roles.columns.get("condition", ()))]
    named += [("cluster", name) for name in roles.columns.get("cluster", ())[:1]]
    gold = roles.columns.get("gold", ())
    named += [(f"gold_{end}", name) for name, end in zip(gold, ("low", "high"), strict=False)]
    found = []
    for role, name in named:
        column = _identifier(schema[name], name, role, plain=name in plain)
        if coded and label_kind(schema[name]) == "text" and role not in _COMPARED:
            column = column.cast(nw.Categorical)
        found.append(column.alias(role))
    if (score := roles.one("score")) is not None:
        found.append(_number_or_text(schema[score], score).alias("given"))
    if (status := roles.one("status")) is not None:
        found.append(_identifier(schema[status], status, "status").alias("stated"))
    return found


def ragged(schema: Mapping[str, Any], roles: Assignment) -> dict[str, nw.Expr]:
    """For each column of text 1 where stripping changes it, else 0."""
    import narwhals as nw

    found = {}
    for name in dict.fromkeys(name for names in roles.columns.values() for name in names):
        if label_kind(schema[name]) == "text":
            text = _text(schema[name], name)
            changed = (text.str.strip_chars(WHITE_SPACE) != text) | (text == "")
            found[name] = nw.when(changed).then(nw.lit(1)).otherwise(nw.lit(0))
    return found


def _text(dtype: Any, name: str) -> nw.Expr:
    import narwhals as nw

    return nw.col(name) if dtype == nw.String else nw.col(name).cast(nw.String)


def _identifier(dtype: Any, name: str, role: str, *, plain: bool = False) -> nw.Expr:
    import narwhals as nw

    column = nw.col(name)
    kind = label_kind(dtype)
    if kind == "text":
        text = _text(dtype, name)
        stripped = text.str.strip_chars(WHITE_SPACE)
        return text if plain else nw.when(stripped != "").then(stripped)
    if kind == "number" and dtype.is_float():
        return nw.when(column.is_finite()).then(column)
    if kind is None:
        role = "condition" if role.startswith("factor") else role.partition("_")[0]
        raise DataError(
            f"`{role}` is column {name!r}, which holds {dtype}; expected text or numbers: name another "
            "column, or make this one text where it is held"
        )
    return column


def label_kind(dtype: Any) -> str | None:
    """`text`, `number`, `flag` or `date`: columns of one kind compare as their labels do.

    A column of nulls alone may have no type that is known, and is text, as every type that the engine can
    only write out.
    """
    import narwhals as nw

    if dtype in (nw.String, nw.Categorical, nw.Unknown) or isinstance(dtype, nw.Enum):
        return "text"
    if dtype.is_integer() or dtype.is_float():
        return "number"
    if dtype == nw.Boolean:
        return "flag"
    return "date" if dtype in (nw.Date, nw.Datetime) else None


def infinite(schema: Mapping[str, Any], roles: Assignment) -> nw.Expr | None:
    """Where the score is an infinite number; None where it cannot be."""
    import narwhals as nw

    name = roles.one("score")
    if name is None or not schema[name].is_float():
        return None
    score = nw.col(name)
    return ~score.is_null() & ~score.is_nan() & ~score.is_finite()


def _number_or_text(dtype: Any, name: str) -> nw.Expr:
    import narwhals as nw

    kind = label_kind(dtype)
    if kind == "text":
        return _identifier(dtype, name, "score")
    if kind == "flag" or dtype.is_numeric():
        return nw.col(name)
    raise DataError(
        f"`score` is column {name!r}, which holds {dtype}; expected numbers, true/false or text: name "
        "another column, or cast this one where it is held"
    )


def _declared_order(dtype: Any) -> list[str] | None:
    """The categories of an Enum in their order; None for other columns."""
    import narwhals as nw

    return list(dtype.categories) if isinstance(dtype, nw.Enum) else None


def factors_of(schema: Mapping[str, Any], roles: Assignment, found: pl.DataFrame) -> tuple[Factor, ...]:
    """The condition columns with their levels in order, from the labels that were `found`."""
    names = roles.columns.get("condition", ())
    factors = []
    for position, name in enumerate(names):
        labels = found[f"{factor_column(position)}_label"].unique()
        if (order := _declared_order(schema[name])) is not None:
            categories = list(dict.fromkeys(level.strip() for level in order))
            labels = labels.cast(pl.Enum(categories))
        levels, declared = ordered_levels(labels)
        column = "condition" if len(names) == 1 else f"condition[{name}]"
        factors.append(Factor(name, column, levels, declared))
    return tuple(factors)
