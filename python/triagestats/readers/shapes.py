"""JSON values in the shapes that are expected, and empty ones in place of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["as_float", "elements", "mapping", "mappings", "only"]

_EXACT: Final = 2**53


def mapping(value: object) -> Mapping[str, Any]:
    """An object; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def elements(value: object) -> list[Any]:
    """A list; an empty one in place of anything else."""
    return list(value) if isinstance(value, list | tuple) else []


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; what else it holds is left out."""
    return [element for element in elements(value) if isinstance(element, Mapping)]


def as_float(value: object) -> object:
    """A whole number as the decimal that it is beside others: JavaScript and Python write 1 for 1.0."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _EXACT:
        return float(value)
    return value


def only(value: object) -> object:
    """The element of a list of one, or the value of a mapping of one; else the value itself."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    if isinstance(value, Mapping) and len(value) == 1:
        return next(iter(value.values()))
    return value
