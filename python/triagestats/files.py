"""A csv, parquet or jsonl file as one polars frame."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Final

import polars as pl

from triagestats.errors import ReadError
from triagestats.json_lines import is_large, read_json_text, read_large_json_lines
from triagestats.results import Note
from triagestats.source import Source

__all__ = ["SETTLED", "read_table", "refuse_url"]

SETTLED: Final = "triagestats.settled"
"""Marks a parquet file whose scores and statuses are as a harness stated them."""

_SEPARATORS: Final = (",", ";", "\t", "|")
_ENDINGS: Final = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_BYTE_ORDER_MARKS: Final = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_LONGEST_NAME: Final = 80
_MOST_PACKED: Final = 200
_LARGEST_PACKED: Final = 2**28
"""Tables rarely shrink to a two-hundredth; a file that unpacks to more than both is refused."""


def read_table(path: Path, *, keep: Callable[[str], bool] | None = None) -> Source:
    """A csv, parquet or jsonl file (plain or gzip) as a frame.

    All columns of a csv are text, so that the identifier `007` keeps its zeros. Separator, byte
    order mark and decimal comma are recognised, and noted where they are unusual.

    Parameters
    ----------
    path
        The file.
    keep
        Which columns of long text and of nested values a large JSON-lines file keeps; a note names the
        others. All where it is not given.

    Raises
    ------
    ReadError
        If the file is absent or a URL, has an unknown ending, or is not what its ending says.
    """
    path = path.expanduser() if path.parts[:1] == ("~",) else path
    refuse_url(path)
    name = _name(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = bool(suffixes) and suffixes[-1] == ".gz"
    ending = suffixes[-2 if gzipped else -1] if len(suffixes) > gzipped else ""
    if os.path.isdir(path):  # noqa: PTH112  # `Path.is_dir` fails on names that are too long
        raise ReadError(f"{name} is a folder; expected one file")
    if ending not in _ENDINGS:
        raise ReadError(
            f"{name} has {'the ending ' + repr(ending) if ending else 'no ending'}; expected a file ending "
            f"in {', '.join(_ENDINGS)}, or in one of them with .gz: save the table as one of these"
        )
    kind = _ENDINGS[ending]
    if kind == "jsonl" and not gzipped and is_large(path):
        frame, left = read_large_json_lines(path, name, keep)
        text = f"{name} is large: columns of long text or nested values are left out: {', '.join(left)}."
        return Source(frame, (Note("left_out", text),) if left else ())
    content = _content(path, name, gzipped=gzipped)
    if not content.removeprefix(b"\xef\xbb\xbf").strip():
        raise ReadError(f"{name} is empty")
    found = _looks_like(content)
    if found not in (kind, "text") or (found == "text" and kind != "csv"):
        raise ReadError(
            f"{name} is named as {kind}, but its content looks like {found}; save it as {kind}, "
            "or rename it after what it holds"
        )
    if kind == "csv":
        return _read_csv(_decode(content, name), name, usual="\t" if ending == ".tsv" else ",")
    try:
        if kind == "parquet":
            settled = SETTLED in pl.read_parquet_metadata(BytesIO(content))
            return Source(pl.read_parquet(BytesIO(content)), settled=settled)
        return Source(read_json_text(_decode(content, name), name))
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise ReadError(
            f"{name} cannot be read as {kind}, and may be damaged or cut short: {first}"
        ) from error


def refuse_url(path: Path) -> None:
    """Refuse a URL, of which a path keeps one of the two slashes; a drive has one letter.

    Raises
    ------
    ReadError
        If the path is one.
    """
    url = re.match(r"([A-Za-z][\w+.-]+):/+(.*)", path.as_posix(), re.DOTALL)
    if url and not os.path.lexists(path.parts[0]):
        raise ReadError(
            f"{_shortened(f'{url[1]}://{url[2]}')} is a URL, and URLs are not read; download the file, and "
            "give its path"
        )


def _name(path: Path) -> str:
    return _shortened(path.name or str(path))


def _shortened(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "...")


def _content(path: Path, name: str, *, gzipped: bool) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        folder = path.parent.absolute()
        raise ReadError(f"there is no file {name} in {str(folder)!r}; correct the path") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise ReadError(f"{name} cannot be read: {reason}") from error
    if content[:2] == b"\x1f\x8b":
        limit = max(_LARGEST_PACKED, _MOST_PACKED * len(content))
        try:
            with gzip.GzipFile(fileobj=BytesIO(content)) as stream:
                unpacked = stream.read(limit + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ReadError(f"{name} is a damaged gzip file ({error}); copy or compress it again") from error
        if len(unpacked) > limit:
            raise ReadError(
                f"{name} unpacks to more than {limit:,} bytes, {_MOST_PACKED} times its size or more; if it "
                "is to be trusted, unpack it yourself, and give the file that comes out"
            )
        return unpacked
    if gzipped:
        raise ReadError(f"{name} is named as gzip, but it is not compressed; drop .gz from its name")
    return content


def _looks_like(content: bytes) -> str:
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if content[:4] == b"PAR1":
        return "parquet"
    if content[:4] == b"PK\x03\x04":
        return "a zip archive (an Excel workbook is one)"
    if any(content.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS):
        return "jsonl" if head.lstrip(b"\xff\xfe\x00").startswith(b"{") else "text"
    if re.match(rb'\{\s*("|\})', head):
        return "jsonl"
    if re.match(rb"\[\s*[\[{]", head):
        return "a JSON array"
    if b"\x00" in head:
        return "binary data"
    return "text"


def _decode(content: bytes, name: str) -> str:
    marked = [encoding for mark, encoding in _BYTE_ORDER_MARKS if content.startswith(mark)]
    encoding = marked[0] if marked else "UTF-8"
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{name} is not {encoding} text (byte {error.start:,} is none of its characters); save it as "
            "UTF-8"
        ) from error


def _read_csv(text: str, name: str, *, usual: str) -> Source:
    if text.count('"') % 2:
        raise ReadError(
            f"{name} has a quotation mark that is never closed; quote whole fields, and double the marks "
            "in them"
        )
    if "\n" not in text:
        text = text.replace("\r", "\n")
    separator = _separator(text)
    header = _header(text, separator, name)
    try:
        frame = pl.read_csv(
            StringIO(text), separator=separator, infer_schema=False, has_header=True, new_columns=header
        )
    except pl.exceptions.PolarsError as error:
        _check_rows(text, separator, len(header), name)
        first = str(error).strip().splitlines()[0]
        raise ReadError(
            f"{name} cannot be read as csv: {first}; look for a quotation mark that is not doubled within "
            "a quoted field"
        ) from error
    if frame.height and frame[header[-1]].null_count():
        _check_rows(text, separator, len(header), name)
    notes = []
    if separator != usual:
        notes.append(Note("separator", f"{name}: columns are separated by {separator!r}."))
    filled = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if blank := frame.height - filled.height:
        lines = "1 blank line is" if blank == 1 else f"{blank:,} blank lines are"
        notes.append(Note("blank_lines", f"{name}: {lines} left out."))
    return Source(filled, tuple(notes), decimal_comma=separator != ",")


def _separator(text: str) -> str:
    """The candidate that stands most often in the header, outside quotes."""
    end = re.search(r"[\r\n]", re.sub(r'"[^"]*"', lambda m: "x" * len(m.group()), text.lstrip("\r\n")))
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")[: end.start()] if end else text)
    return max(_SEPARATORS, key=header.count)


def _header(text: str, separator: str, name: str) -> list[str]:
    """Column names, each once; a column without one is called after its position."""
    names = next(row for row in csv.reader(StringIO(text, newline=""), delimiter=separator) if row)
    twice = sorted({column for column in names if column and names.count(column) > 1})
    if twice:
        raise ReadError(
            f"{name} has several columns named {' and '.join(map(repr, twice))}; rename them, so that each "
            "has a name of its own"
        )
    header: list[str] = []
    for position, column in enumerate(names, start=1):
        own = column or f"column_{position}"
        while own in header or (not column and own in names):
            own += "_"
        header.append(own)
    return header


def _check_rows(text: str, separator: str, width: int, name: str) -> None:
    """Every row must have as many fields as the header."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator)
    try:
        for row in reader:
            if row and len(row) != width:
                fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                raise ReadError(
                    f"{name}, line {reader.line_num:,}, has {fields}, and its header has {width}; "
                    "quote fields that hold the separator, and complete rows that are cut short"
                )
    except csv.Error as error:
        raise ReadError(f"{name}, line {reader.line_num:,}, is not csv: {error}") from None
