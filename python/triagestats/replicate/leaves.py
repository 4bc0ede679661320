"""JSON values as leaves by path, and whether two leaves say the same at the digits that were printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

__all__ = ["agrees", "decimals_of", "flat", "printed_alike", "shown"]

_SEPARATOR: Final = "/"
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\d)", re.IGNORECASE)
RELATIVE: Final = 1e-9
"""How far two computations of one number may differ, relative to it."""
ROUNDED: Final = 1e-10
"""Half a unit of the last digit of values that are kept to ten decimals, with room for the sum of two."""
NOTHING: Final = 1e-15
"""What 1 - cdf loses of a small p-value: below it a number is 0 to another computation."""
FEWEST_DECIMALS: Final = 3
"""Digits of a share that JSON shows with one: 0.9 was printed as 90.0 %, or as 0.900."""


def flat(value: Any) -> dict[str, Any]:
    """The leaves of a JSON value by path; a leaf alone has the path "".

    Examples
    --------
    >>> flat({"p": 0.5, "counts": [3, 4]})
    {'p': 0.5, 'counts/0': 3, 'counts/1': 4}
    """
    return dict(_leaves(value, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    items: Iterator[tuple[Any, Any]] | None = None
    if isinstance(value, Mapping):
        items = iter(value.items())
    elif isinstance(value, list | tuple):
        items = iter(enumerate(value))
    if items is None:
        yield path, value
        return
    for key, item in items:
        yield from _leaves(item, f"{path}{_SEPARATOR}{key}" if path else str(key))


def decimals_of(number: float) -> int:
    """Decimals to which a number is printed, negative for none before the point.

    Examples
    --------
    >>> decimals_of(0.098), decimals_of(1.58e-14), decimals_of(37), decimals_of(0.9)
    (3, 16, 0, 3)
    """
    exponent = Decimal(repr(number)).as_tuple().exponent
    decimals = -exponent if isinstance(exponent, int) else 0
    if decimals != 1:
        return decimals
    if number == int(number):
        return 0
    return FEWEST_DECIMALS if abs(number) < 1 else decimals


def printed_alike(printed: Any, found: Any, tolerance: float | None = None) -> bool:
    """Whether a found value rounds to a printed one, or lies within a stated tolerance of it.

    Texts are alike where their numbers are, one after the other: "about 85 versus 69" and "85 versus 69".
    """
    if isinstance(printed, bool) or isinstance(found, bool) or found is None or printed is None:
        return printed is found
    if isinstance(printed, str) or isinstance(found, str):
        return _texts_alike(str(printed), str(found))
    if not (math.isfinite(found) and math.isfinite(printed)):
        return bool(printed == found)
    slack = tolerance if tolerance is not None else 0.5 * 10.0 ** -decimals_of(printed)
    return bool(abs(printed - found) <= slack + _rounding(printed, found))


def _rounding(a: float, b: float) -> float:
    """What binary fractions add to a difference."""
    return 4e-16 * max(abs(a), abs(b))


def _texts_alike(printed: str, found: str) -> bool:
    first, second = _NUMBER.findall(printed), _NUMBER.findall(found)
    if not first:
        return printed.strip().lower() == found.strip().lower()
    return len(first) == len(second) and all(
        printed_alike(_number(a), _number(b)) for a, b in zip(first, second, strict=True)
    )


def _number(text: str) -> float:
    return float(text) if re.search(r"[.e]", text, re.IGNORECASE) else int(text)


def agrees(kept: Any, found: Any) -> bool:
    """Whether two computations of one number agree to nine digits."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (kept, found))
    if not numbers:
        return bool(kept == found)
    difference = abs(kept - found)
    if math.isnan(difference):
        return math.isnan(kept) and math.isnan(found)
    slack = ROUNDED if abs(kept) > 1e-6 else NOTHING
    return bool(difference <= max(RELATIVE * abs(kept), slack))


def shown(value: Any) -> str:
    """A JSON value in a line of text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_nested(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)


def _nested(value: Any) -> str:
    return f"({shown(value)})" if isinstance(value, Mapping) else shown(value)
