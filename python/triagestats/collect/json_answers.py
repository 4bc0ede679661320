"""The JSON object that an answer holds, with or without fences and words around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["Repeated", "find_object", "value_at"]

_FENCE: Final = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_START: Final = re.compile(r"\{(?=\s{0,200}[\"}])")


class Repeated(tuple[Any, ...]):
    """Different values that one object gives to one key."""

    __slots__ = ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            before = found[key]
            found[key] = Repeated((*before, value) if isinstance(before, Repeated) else (before, value))
        else:
            found[key] = value
    return found


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, strict=False)


def find_object(text: str, key: str | None = None) -> dict[str, Any] | None:
    r"""The last JSON object of a text, or the last one with a key where there is one; None without any.

    A key that an object gives twice with different values holds them all, as `Repeated`.

    Examples
    --------
    >>> from triagestats.collect.json_answers import find_object
    >>> find_object('Here it is:\n```json\n{"triage": "C"}\n```\nTake care {soon}.')
    {'triage': 'C'}
    >>> find_object("{triage: C") is None
    True
    """
    found: list[dict[str, Any]] = []
    for part in [*(match[1] for match in _FENCE.finditer(text)), text]:
        found = list(_objects(part))
        wanted = [one for one in found if key is None or value_at(one, key) is not None]
        if wanted:
            found = wanted
            break
    return {_whole(name): _whole(value) for name, value in found[-1].items()} if found else None


def _whole(value: Any) -> Any:
    """The same values without halves of characters, which escapes can write and nothing can send."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return Repeated(map(_whole, value)) if isinstance(value, Repeated) else value


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost objects of a text, in order."""
    at = 0
    while (start := _START.search(text, at)) is not None:
        at = start.start()
        try:
            # A part of the text, as an error counts all lines before it.
            value, used = _DECODER.raw_decode(text[at:])
        except ValueError:  # no JSON from here, or a number too long to be one
            at += 1
        except RecursionError:  # what nests so deep was never closed
            return
        else:
            at += used
            if isinstance(value, dict):
                yield value


def value_at(found: Mapping[str, Any], path: str) -> Any:
    """The value under a key, or under keys with points between them; case does not matter.

    Examples
    --------
    >>> from triagestats.collect.json_answers import value_at
    >>> value_at({"Result": {"triage": "C"}}, "result.triage")
    'C'
    """
    value: Any = found
    for key in [path] if _key(found, path) is not None else path.split("."):
        if not isinstance(value, Mapping):
            return None
        name = _key(value, key)
        if name is None:
            return None
        value = value[name]
    return value


def _key(found: Mapping[str, Any], wanted: str) -> str | None:
    if wanted in found:
        return wanted
    return next((name for name in found if name.lower() == wanted.lower()), None)
