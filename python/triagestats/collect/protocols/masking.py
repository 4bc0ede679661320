"""Stems whose last words are masked, so that only the options and the beginning are left to answer from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from triagestats.errors import ArgumentError, DataError, ReadError
from triagestats.files import read_table

__all__ = ["MASK", "mask_files", "mask_stem"]

MASK: Final = "[MASK]"
_LEVELS: Final = (25, 50, 75, 100)


def mask_stem(stem: str, percent: int) -> str:
    """A stem with the last `percent` of its words replaced by [MASK], one for one.

    Words are what blanks separate; blanks and lines stay. Of n words the last n x percent / 100 are
    masked, rounded half up, so that any share above 0 of a long stem masks something and 100 masks all.

    Examples
    --------
    >>> from triagestats.collect.protocols.masking import mask_stem
    >>> mask_stem("He has a fever. What is it?", 50)
    'He has a [MASK] [MASK] [MASK] [MASK]'
    """
    words = list(re.finditer(r"\S+", stem))
    masked = (len(words) * percent + 50) // 100
    if not masked:
        return stem
    first = words[-masked].start()
    return stem[:first] + re.sub(r"\S+", MASK, stem[first:])


def mask_files(
    items: str | Path,
    folder: str | Path,
    *,
    field: str = "stem",
    levels: Sequence[int] = _LEVELS,
) -> tuple[Path, ...]:
    """Write one jsonl file of items a level of masking, with the options and all other columns whole.

    Parameters
    ----------
    items
        A csv or jsonl file of items.
    folder
        Where the files go, named `ITEMS-mask025.jsonl` and so on; made where it is not there.
    field
        The column that is masked.
    levels
        Percentages of the words, from the end.

    Returns
    -------
    tuple of Path
        The files in the order of the levels, each with a column `mask`.

    Raises
    ------
    ArgumentError
        If a level is not between 0 and 100, or none is given.
    DataError
        If an item has no text under `field`.
    ReadError
        If a file cannot be read or written.
    """
    wrong = [level for level in levels if isinstance(level, bool) or not 0 <= level <= 100]
    if wrong or not levels:
        raise ArgumentError(f"`levels` must be percentages from 0 to 100; got {list(levels)}")
    source = Path(items)
    rows = _rows(source)
    for number, row in enumerate(rows, 1):
        if not isinstance(row.get(field), str) or not row[field].strip():
            raise DataError(f"`field`: item {number:,} of {source.name!r} has no text under {field!r}")
    target = Path(folder)
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for level in levels:
            path = target / f"{source.stem}-mask{level:03d}.jsonl"
            lines = (
                json.dumps({**row, field: mask_stem(row[field], level), "mask": level}, ensure_ascii=False)
                for row in rows
            )
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise ReadError(f"`folder`: {str(target)!r} cannot be written: {error.strerror}") from error
    return tuple(written)


def _rows(source: Path) -> list[dict[str, Any]]:
    if source.suffix.lower() not in (".jsonl", ".ndjson"):
        return list(read_table(source).frame.iter_rows(named=True))
    rows = []
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"`items`: {str(source)!r} cannot be read: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ReadError(f"`items`: line {number:,} of {source.name!r} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise ReadError(f"`items`: line {number:,} of {source.name!r} must hold an object")
        rows.append(row)
    return rows
