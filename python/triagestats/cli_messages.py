"""Messages that name arguments of Python, with options of the command line in their place."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping

__all__ = ["as_options"]


def as_options(message: str, names: Mapping[str, str]) -> str:
    """A message that names arguments of Python with options of the command line in their place."""
    if message.startswith("`judgments`"):  # no option names a column of the judgments
        advises = re.search("`\\w+=", message)
        fix = "; on the command line, rename or drop columns in that file" if advises else ""
        return message.replace("`judgments`", names["judgments"]) + fix
    return re.sub("`([^`]+)`", lambda found: _as_option(found[1], names) or found[0], message)


def _as_option(code: str, names: Mapping[str, str]) -> str | None:
    """`name`, `name=` or `name=value, other=value` as options; None for what is no argument."""
    if (name := code.removesuffix("=")) in names:
        return names[name]
    try:
        call = ast.parse(f"_({code})", mode="eval").body
        given = {found.arg: ast.literal_eval(found.value) for found in getattr(call, "keywords", ())}
    except (SyntaxError, ValueError):
        return None
    if not given or not given.keys() <= names.keys():
        return None
    return " ".join(
        f"{names[str(name)]} {shlex.quote(word)}" if value is not True else names[str(name)]
        for name, value in given.items()
        for word in _words(name, value)
    )


def _words(name: str | None, value: object) -> list[str]:
    """What to write after an option, once for each time that it is given."""
    if value is False:
        return [""]
    if isinstance(value, Mapping):
        return [f"{key}={item}" for key, item in value.items()]
    values = list(value) if isinstance(value, list | tuple) else [value]
    if name == "levels":
        return [",".join("ABC" if values == [...] else map(str, values))]
    return [str(item) for item in values]
