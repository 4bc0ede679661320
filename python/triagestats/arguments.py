"""Checks of arguments that several functions take."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from triagestats.errors import ArgumentError, ArgumentTypeError

__all__ = ["chosen_method", "valid_choice", "valid_flag", "valid_level", "valid_margin"]


def valid_choice(argument: str, value: object, options: Any) -> None:
    """Refuse a value that a `Literal` does not list.

    Raises
    ------
    ArgumentError
        If `value` is none of the options.
    """
    allowed: tuple[str, ...] = options.__args__  # what get_args returns, in a tenth of its time
    if value not in allowed:
        raise ArgumentError(f"`{argument}` must be one of {', '.join(map(repr, allowed))}; got {value!r}")


def chosen_method(method: Any, options: Any) -> Any:
    """`method` if the `Literal` lists it; None where it is None or `auto`, so that the data decide.

    Raises
    ------
    ArgumentError
        If `method` is none of the options.
    """
    if method is None:
        return None
    valid_choice("method", method, options)
    return None if method == "auto" else method


def valid_flag(argument: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    """
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"`{argument}` must be True or False; got {value!r}")
    return value


def valid_level(conf_level: object) -> float:
    """`conf_level` if it lies between 0 and 1.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If not.
    """
    if type(conf_level) is not float and (isinstance(conf_level, bool) or not isinstance(conf_level, Real)):
        raise ArgumentTypeError(f"`conf_level` must be a number between 0 and 1; got {conf_level!r}")
    level = float(conf_level)
    if not 0 < level < 1:
        hint = f"; did you mean {level / 100:g}?" if 50 <= level < 100 else ""
        raise ArgumentError(f"`conf_level` must lie between 0 and 1; got {level:g}{hint}")
    return level


def valid_margin(margin: object) -> float | None:
    """`margin` if it is None, or positive and finite.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If not.
    """
    if margin is None:
        return None
    if isinstance(margin, bool) or not isinstance(margin, Real):
        raise ArgumentTypeError(f"`margin` must be a number; got {margin!r}")
    value = float(margin)
    if not 0 < value < math.inf:
        raise ArgumentError(
            f"`margin` must be positive and finite, on the scale of the scores; got {value:g}"
        )
    return value
