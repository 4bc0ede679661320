"""Where a key stands in a toml file: tomllib reads values and forgets their lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["line_of"]

Path = tuple[str | int, ...]

# What ends or hides a statement: strings first, so that marks inside them count for nothing.
_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]', re.DOTALL
)


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    r"""The line of the deepest part of a path that the file writes down.

    Parameters
    ----------
    text
        A valid toml file.
    path
        Keys and positions in lists from the root down to what is sought.

    Returns
    -------
    int or None
        From 1; None where no part of the path is in the file.

    Examples
    --------
    >>> from triagestats.collect.lines import line_of
    >>> text = 'seed = 1\n[[models]]\nname = "a"\n[[models]]\nname = "b"\nretries = -1'
    >>> line_of(text, ("models", 1, "retries")), line_of(text, ("models", 0, "retries"))
    (6, 2)
    """
    wanted = tuple(path)
    best: tuple[int, int] | None = None
    for written, line in _places(text):
        depth = _shared(written, wanted)
        if depth == len(written) and depth > (best[0] if best else 0):
            best = (depth, line)
    return None if best is None else best[1]


def _shared(written: Path, wanted: Path) -> int:
    count = 0
    for one, other in zip(written, wanted, strict=False):
        if one != other:
            break
        count += 1
    return count


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Every header and every key with the line on which it begins."""
    table: Path = ()
    entries: dict[Path, int] = {}
    for statement, line in _statements(text):
        header = re.fullmatch(r"(\[\[?)(.*?)\]\]?\s*(#[^\n]*)?", statement, re.DOTALL)
        if header is None:
            yield (*table, *_keys(statement)), line
            continue
        names = _keys(f"{header[2]} = 0")
        table = ()
        for position, name in enumerate(names):
            table = (*table, name)
            if header[1] == "[[" and position == len(names) - 1:
                entries[table] = entries.get(table, -1) + 1
            if table in entries:  # a header below an array of tables means its last entry
                table = (*table, entries[table])
        yield table, line


def _keys(statement: str) -> Path:
    """The dotted key before the sign of equality; its value is of no interest."""
    key = re.match(r"""\s*((?:"(?:\\.|[^"\\])*"|'[^']*'|[^=])*?)\s*=""", statement, re.DOTALL)
    if key is None:
        return ()
    found: object = tomllib.loads(f"{key[1]} = 0")
    keys: list[str] = []
    while isinstance(found, dict):
        name, found = next(iter(found.items()))
        keys.append(name)
    return tuple(keys)


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Headers and assignments, which end with a line that closes all that was opened."""
    start = depth = 0
    for token in _TOKEN.finditer(text + "\n"):
        mark = token[0]
        if mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
        elif mark == "\n" and depth == 0:
            statement = text[start : token.start()]
            if (bare := statement.lstrip()) and not bare.startswith("#"):
                skipped = len(statement) - len(bare)
                yield bare.rstrip(), text.count("\n", 0, start + skipped) + 1
            start = token.end()
