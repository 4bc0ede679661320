"""JSON lines as one polars frame; a large file chunk by chunk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

import polars as pl

from triagestats.errors import ReadError
from triagestats.source import mixed_series

__all__ = ["is_large", "read_json_text", "read_large_json_lines"]

_LARGE: Final = 2**26
_CHUNK: Final = 2**24
_LONGEST_LINE: Final = 2**28
_LONGEST_LABEL: Final = 256


def is_large(path: Path) -> bool:
    """Whether a file is read in chunks, so that its text is never in memory as a whole; not a gzip file."""
    try:
        if path.stat().st_size <= _LARGE:
            return False
        with path.open("rb") as stream:
            return stream.read(1) == b"{"
    except OSError:
        return False


def read_json_text(text: str, name: str, first: int = 1) -> pl.DataFrame:
    """Lines of JSON objects as a frame; `first` is the number of the first line.

    Raises
    ------
    ReadError
        If a line is no JSON object.
    """
    try:
        return pl.read_ndjson(BytesIO(text.encode()), infer_schema_length=None)
    except pl.exceptions.PolarsError:
        return _line_by_line(text, name, first)


def _line_by_line(text: str, name: str, first: int) -> pl.DataFrame:
    """What polars does not take: NaN, numbers beside text in one column; or the line that is wrong."""
    rows: list[dict[str, object]] = []
    for number, line in enumerate(text.split("\n"), start=first):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ReadError(
                f"{name}, line {number:,}, is not one JSON object; jsonl has one whole object in each line"
            )
        rows.append(row)
    names = dict.fromkeys(key for row in rows for key in row)
    return pl.DataFrame([mixed_series(key, [row.get(key) for row in rows]) for key in names])


def read_large_json_lines(
    path: Path, name: str, keep: Callable[[str], bool] | None = None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A file of JSON lines, a chunk of which is text in memory at a time, and the columns that were left out.

    Parameters
    ----------
    path, name
        The file, and what it is called in messages.
    keep
        Which columns of long text and of nested values stay; all where it is not given.

    Raises
    ------
    ReadError
        If a line is no JSON object, is not UTF-8, or is longer than any table needs.
    """
    frames: list[pl.DataFrame] = []
    left: dict[str, None] = {}
    number = 1
    for chunk in _chunks(path, name):
        try:
            text = chunk.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ReadError(f"{name} is not UTF-8 text near line {number:,}; save it as UTF-8") from error
        frame = read_json_text(text, name, number)
        if keep is not None:
            left |= dict.fromkeys(column.name for column in frame if _bulky(column) and not keep(column.name))
            frame = frame.drop(left, strict=False)
        if frame.height:
            frames.append(frame)
        number += chunk.count(b"\n")
    frames = [frame.drop(left, strict=False) for frame in frames]
    try:
        return pl.concat(frames, how="diagonal_relaxed", rechunk=True), tuple(left)
    except pl.exceptions.PolarsError:
        return _mixed(frames), tuple(left)


def _bulky(column: pl.Series) -> bool:
    """Nested values, and text too long for a label."""
    if column.dtype.is_nested() or column.dtype == pl.Object:
        return True
    longest = column.str.len_bytes().max() if column.dtype == pl.String else None
    return isinstance(longest, int) and longest > _LONGEST_LABEL


def _chunks(path: Path, name: str) -> Iterator[bytes]:
    """Whole lines, about as many bytes at a time as a chunk has."""
    rest = b""
    with path.open("rb") as stream:
        while block := stream.read(_CHUNK):
            block = rest + block
            cut = block.rfind(b"\n") + 1
            if cut:
                yield block[:cut]
            rest = block[cut:]
            if len(rest) > _LONGEST_LINE:
                raise ReadError(f"{name} has a line of more than {_LONGEST_LINE:,} bytes; is it JSON lines?")
    if rest.strip():
        yield rest


def _mixed(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Chunks whose columns are of several types, value by value."""
    names = dict.fromkeys(name for frame in frames for name in frame.columns)
    return pl.DataFrame(
        [
            mixed_series(
                name,
                [
                    value
                    for frame in frames
                    for value in (frame[name].to_list() if name in frame.columns else [None] * frame.height)
                ],
            )
            for name in names
        ]
    )
