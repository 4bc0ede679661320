"""Predicates of rules as text, so that what was frozen can be checked."""

from __future__ import annotations

import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Predicate", "content_hash", "expression_text", "matches", "predicate_text", "values_of"]

Predicate = str | pl.Expr | Callable[[pl.DataFrame], Any]

_PLAIN: Final = (bool, int, float, str, bytes, type(None))
_MATCH: Final = "_matches"


def content_hash(content: object) -> str:
    """SHA-256 of plain JSON values, in one form whatever the order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def predicate_text(predicate: Predicate, rule: str) -> str:
    """A predicate as text: SQL as it stands, an expression as JSON, a function as its source.

    Raises
    ------
    ArgumentError
        If SQL text is none, or a function has no source or depends on values that no text stands for.
    ArgumentTypeError
        If it is none of these.
    """
    if isinstance(predicate, str):
        _sql(predicate, rule)
        return f"sql: {predicate.strip()}"
    if isinstance(predicate, pl.Expr):
        return expression_text(predicate, rule)
    if callable(predicate):
        return _function_text(predicate, rule)
    raise ArgumentTypeError(
        f"`predicate` of rule {rule!r} must be a SQL condition, a polars expression or a function of the "
        "frame; "
        f"got {predicate!r}"
    )


def _sql(text: str, rule: str) -> pl.Expr:
    try:
        return pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        raise ArgumentError(f"`predicate` of rule {rule!r} is no SQL condition: {_first(error)}") from None


def expression_text(value: object, rule: str) -> str:
    """An expression as JSON with the version that wrote it, or a plain value."""
    if not isinstance(value, pl.Expr):
        if isinstance(value, _PLAIN):
            return f"value: {value!r}"
        raise ArgumentTypeError(
            f"`sets` of rule {rule!r} must hold numbers, text or polars expressions; got {value!r}"
        )
    try:
        return f"polars {pl.__version__}: {value.meta.serialize(format='json')}"
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"rule {rule!r} has an expression that cannot be written down ({error}); write the condition as "
            "SQL text"
        ) from None


def _function_text(function: Callable[..., Any], rule: str, told: tuple[object, ...] = ()) -> str:
    """Source of a function, and what it takes from outside; those in `told` are written already."""
    if function in told:
        return "as above"
    told = (*told, function)
    try:
        source = textwrap.dedent(inspect.getsource(function)).strip()
        outside = inspect.getclosurevars(function)
    except (OSError, TypeError) as error:
        raise ArgumentError(
            f"the source of the `predicate` of rule {rule!r} cannot be read ({error}), so that it could not "
            "be frozen; write the condition as SQL text or a polars expression"
        ) from None
    values = {**outside.globals, **outside.nonlocals}
    values |= {f"default {place}": value for place, value in enumerate(function.__defaults__ or ())}
    read = {name: _plain_text(value, name, rule, told) for name, value in sorted(values.items())}
    return f"python: {source}\n" + json.dumps(read, sort_keys=True)


def _plain_text(value: object, name: str, rule: str, told: tuple[object, ...]) -> str:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if isinstance(value, pl.Expr):
        return expression_text(value, rule)
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple):
        return repr([_plain_text(item, name, rule, told) for item in value])
    if isinstance(value, set | frozenset):
        return repr(sorted(_plain_text(item, name, rule, told) for item in value))
    if isinstance(value, Mapping):
        return repr(sorted((repr(key), _plain_text(item, name, rule, told)) for key, item in value.items()))
    if inspect.isfunction(value):
        return _function_text(value, rule, told)
    raise ArgumentError(
        f"the `predicate` of rule {rule!r} depends on {name!r}, a {type(value).__name__} that cannot be "
        "written down; use numbers, text and lists, or write the condition as SQL text or a polars expression"
    )


def matches(frame: pl.DataFrame, predicate: Predicate, rule: str) -> tuple[NDArray[np.bool_], int]:
    """Which rows a predicate matches, and in how many it is null, which is no match.

    Raises
    ------
    ArgumentError
        If it fails, or gives something else than one truth value a row.
    """
    if isinstance(predicate, str | pl.Expr):
        expression = _sql(predicate, rule) if isinstance(predicate, str) else predicate
        found = values_of(frame, expression, rule, "predicate")
    else:
        try:
            given = predicate(frame)
            found = given if isinstance(given, pl.Series) else pl.Series(_MATCH, given)
        except (pl.exceptions.PolarsError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise ArgumentError(
                f"`predicate` of rule {rule!r} cannot be computed: {_first(error)}"
            ) from error
        if len(found) != frame.height:
            raise ArgumentError(
                f"`predicate` of rule {rule!r} must give one truth value a row: expected {frame.height:,}, "
                f"got {len(found):,}"
            )
    if found.dtype not in (pl.Boolean, pl.Null):
        raise ArgumentError(
            f"`predicate` of rule {rule!r} must give truth values; got {found.dtype}. Compare with "
            "something, such "
            "as 'age >= 65'"
        )
    truth = found.cast(pl.Boolean)
    return truth.fill_null(value=False).to_numpy(), truth.null_count()


def values_of(frame: pl.DataFrame, value: Any, rule: str, argument: str) -> pl.Series:
    """An expression or a value as a column of a frame.

    Raises
    ------
    ArgumentError
        If it cannot be computed.
    """
    expression = value if isinstance(value, pl.Expr) else pl.lit(value)
    try:
        return frame.with_columns(expression.alias(_MATCH))[_MATCH]
    except pl.exceptions.ColumnNotFoundError as error:
        raise ArgumentError(
            f"`{argument}` of rule {rule!r} names a column that the table does not have: {_first(error)}; "
            f"its columns are {frame.columns}"
        ) from None
    except pl.exceptions.PolarsError as error:
        raise ArgumentError(f"`{argument}` of rule {rule!r} cannot be computed: {_first(error)}") from None


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
