"""Files read in bounded memory: heads, lines, elements of JSON lists, and members of zip archives."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import IO, Any, Final, cast

import polars as pl

from triagestats.errors import ReadError, TriagestatsError

__all__ = ["DEFAULT_LIMIT", "File", "damaged", "laid_out", "open_file", "parsed", "too_large"]

DEFAULT_LIMIT: Final = 2**28
"""Bytes of one JSON value, one line, or one member of an archive, that are read at most."""

_HEAD: Final = 2**16
_CHUNK: Final = 2**20
_MARK: Final = b"\xef\xbb\xbf"
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]', re.DOTALL)
_SPACE: Final = " \t\r\n,"
_FAILURES: Final = (OSError, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class File:
    """A file with what its first bytes say of it; its content is read where it is asked for.

    Attributes
    ----------
    path
        Where it is.
    name
        What it is called in the column `source` and in messages: its path within the folder that was given.
    kind
        `zip`, `parquet`, `json` (one object or list), `jsonl` (an object a line), `csv`, `empty` or `other`.
    head
        The first bytes, without compression.
    keys
        Keys of the JSON object, of the object in the first line, or of the first object of the list, as far
        as the head shows them.
    columns
        Column names of a parquet or csv file.
    max_bytes
        Bytes that a JSON value, a line or a member of an archive may have.
    """

    path: Path
    name: str
    kind: str
    head: bytes
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    max_bytes: int

    def beside(self, name: str) -> File | None:
        """The file of this name in the same folder, or None."""
        path = self.path.parent / name
        folder = self.name.rpartition("/")[0]
        return (
            open_file(path, f"{folder}/{name}" if folder else name, self.max_bytes)
            if path.is_file()
            else None
        )

    def siblings(self, pattern: str) -> list[File]:
        """The files of the same folder whose names fit a glob pattern, sorted."""
        found = (self.beside(path.name) for path in sorted(self.path.parent.glob(pattern)))
        return [file for file in found if file is not None]

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes of the file without gzip; damage becomes a ReadError that names it."""
        try:
            with self.path.open("rb") as raw:
                gzipped = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                yield cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if gzipped else raw
        except _FAILURES as error:
            raise damaged(self.name, error) from error

    def lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line numbers and objects of a JSON-lines file, one line in memory at a time."""
        with self.open() as stream:
            number = 0
            while line := stream.readline(self.max_bytes + 1):
                number += 1
                if len(line) > self.max_bytes:
                    raise too_large(f"line {number:,} of {self.name!r}", self.max_bytes)
                line = (line.removeprefix(_MARK) if number == 1 else line).strip()  # one line
                if line:
                    where = f"{self.name!r}, line {number:,},"
                    value = parsed(line, where)
                    if not isinstance(value, dict):
                        raise ReadError(
                            f"{where} is not one JSON object; jsonl has one whole object in each line"
                        )
                    yield number, value

    def json(self) -> Any:
        """The whole JSON document."""
        with self.open() as stream:
            content = stream.read(self.max_bytes + 1)
        if len(content) > self.max_bytes:
            raise too_large(repr(self.name), self.max_bytes)
        return parsed(content.removeprefix(_MARK), repr(self.name))

    def stream(self, *listed: str) -> Iterator[tuple[str | None, Any]]:
        """The keys and values of a JSON object in order, or the elements of a list with the key None.

        Parameters
        ----------
        *listed
            Keys of the object whose lists come element by element, so that only one is in memory.
        """
        with self.open() as stream:
            yield from _Pieces(stream, self.name, self.max_bytes).members(listed)


def open_file(path: Path, name: str, max_bytes: int = DEFAULT_LIMIT) -> File:
    """A file with its kind, told from its first bytes.

    Raises
    ------
    ReadError
        If it cannot be opened, or its gzip is damaged.
    """
    file = File(path, name, "other", b"", (), (), max_bytes)
    with file.open() as stream:
        head = stream.read(_HEAD).removeprefix(_MARK)
        kind = _kind(head, path)
        line = head
        if kind == "jsonl" and b"\n" not in head.strip():  # the keys may stand beyond a long text
            line += stream.readline(max_bytes)
    columns: tuple[str, ...] = ()
    if kind == "parquet":
        try:
            columns = tuple(pl.read_parquet_schema(path))
        except pl.exceptions.PolarsError as error:
            raise damaged(name, error) from error
    elif kind == "csv":
        columns = _csv_columns(head)
    keys = _keys(line) if kind in ("json", "jsonl") else ()
    return File(path, name, kind, head, keys, columns, max_bytes)


def _kind(head: bytes, path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    start = head.lstrip()
    if not start:
        return "empty"
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[:4] == b"PAR1":
        return "parquet"
    if re.match(rb'\{\s*("|\})', start):
        line, ended, rest = start.partition(b"\n")
        if not ended and len(head) == _HEAD:
            return "jsonl" if suffix in (".jsonl", ".ndjson") else "json"
        whole = _is_object(line)
        single = not rest.strip() and suffix not in (".jsonl", ".ndjson")
        return "jsonl" if (whole or suffix in (".jsonl", ".ndjson")) and not single else "json"
    if re.match(rb"\[\s*[\[{\]]", start):
        return "json"
    return "csv" if suffix in (".csv", ".tsv", ".txt") and b"\x00" not in head else "other"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _keys(head: bytes) -> tuple[str, ...]:
    """Keys of the first object; its values need not be whole."""
    text = head.decode("utf-8", "replace").lstrip()
    depth, level, last, found = 0, 2 if text.startswith("[") else 1, "", []
    for part in _TOKEN.findall(text):
        if part in "{[":
            depth += 1
        elif part in "}]":
            depth -= 1
            if depth < level:
                break
        elif part == ":" and depth == level and last:
            found.append(last)
            last = ""
        elif depth == level:
            last = part[1:-1]
    return tuple(found)


def _csv_columns(head: bytes) -> tuple[str, ...]:
    text = head.decode("utf-8", "replace")
    first = text.lstrip().partition("\n")[0]
    separator = max((",", ";", "\t", "|"), key=first.count)
    try:
        return tuple(next(csv.reader(StringIO(text.lstrip()), delimiter=separator), ()))
    except csv.Error:
        return ()


def parsed(content: bytes | str, where: str) -> Any:
    """A JSON value, with the NaN and Infinity that Python writes.

    Raises
    ------
    ReadError
        If it is none; `where` begins the message.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ReadError(f"{where} is not JSON, and may be damaged or cut short: {said}") from error


@contextmanager
def laid_out(name: str, harness: str) -> Iterator[None]:
    """Whatever goes wrong with a file that is not laid out as its harness does becomes a ReadError.

    Raises
    ------
    ReadError
        If values of the file are of other types than they ever were.
    """
    try:
        yield
    except TriagestatsError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ReadError(
            f"{name} is not laid out as {harness} does ({type(error).__name__}: {error}); was it changed, or "
            "is its version newer than this reader?"
        ) from error


def damaged(name: str, error: BaseException) -> ReadError:
    """What to say of a file whose bytes cannot be had."""
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return ReadError(f"{name!r} cannot be read, and may be damaged or cut short: {reason}")


def too_large(what: str, max_bytes: int) -> ReadError:
    """What to say of a value that would take more memory than allowed."""
    return ReadError(
        f"{what} has more than {max_bytes:,} bytes; if the file is to be trusted, raise the limit with "
        f"`max_bytes={4 * max_bytes}`"
    )


@dataclass(slots=True)
class _Pieces:
    """A JSON document taken apart from the front, with as much of it in memory as one piece needs."""

    source: IO[bytes]
    name: str
    max_bytes: int
    text: str = ""
    at: int = 0
    ended: bool = False
    decoder: codecs.IncrementalDecoder | None = None

    def members(self, listed: tuple[str, ...]) -> Iterator[tuple[str | None, Any]]:
        opening = self.next_mark()
        if opening == "[":
            self.at += 1
            for element in self.elements():
                yield None, element
            return
        if opening != "{":
            raise ReadError(f"{self.name!r} is neither a JSON object nor a list of them")
        self.at += 1
        while self.next_mark() != "}":
            key = self.value()
            if self.next_mark(also=":") == "[" and key in listed:
                self.at += 1
                for element in self.elements():
                    yield key, element
            else:
                yield key, self.value()
        self.at += 1

    def elements(self) -> Iterator[Any]:
        while self.next_mark() != "]":
            yield self.value()
        self.at += 1

    def next_mark(self, also: str = "") -> str:
        """The next character that is no space or separator."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in _SPACE + also:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                raise ReadError(f"{self.name!r} ends in the middle, and may be cut short; copy it again")

    def value(self) -> Any:
        while True:
            try:
                value, end = json.JSONDecoder().raw_decode(self.text, self.at)
                if end - self.at > self.max_bytes:
                    raise too_large(f"one value of {self.name!r}", self.max_bytes)
                if end < len(self.text) or self.ended:
                    self.at = end
                    return value
            except RecursionError as error:
                raise ReadError(f"{self.name!r} is nested too deeply to be read") from error
            except ValueError as error:
                if self.ended:
                    raise ReadError(
                        f"{self.name!r} is not JSON, and may be damaged or cut short: {error}"
                    ) from error
            if len(self.text) - self.at > self.max_bytes:
                raise too_large(f"one value of {self.name!r}", self.max_bytes)
            self.more()

    def more(self) -> bool:
        """Read on, twice as much as is still in use, so that long values are not parsed over and over."""
        if self.ended:
            return False
        left = self.text[self.at :]
        chunk = self.source.read(max(_CHUNK, len(left)))
        if self.decoder is None:
            self.decoder = codecs.getincrementaldecoder("utf-8-sig")()
        try:
            self.text, self.at = left + self.decoder.decode(chunk, final=not chunk), 0
        except UnicodeDecodeError as error:
            raise ReadError(f"{self.name!r} is not UTF-8 text; save it as UTF-8") from error
        self.ended = not chunk
        return True
