"""From paths to a ResponseTable by the readers that are offered; no format is known here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack, get_type_hints

from triagestats.errors import ArgumentError, ArgumentTypeError, ReadError
from triagestats.labels import listed
from triagestats.readers.assemble import Options, assemble, metadata_names
from triagestats.readers.bounded import DEFAULT_LIMIT, File, laid_out
from triagestats.readers.recognise import Found, Paths, advice, files_of, nothing, recognise
from triagestats.readers.rows import Ask, Reader
from triagestats.roles import RoleArgument
from triagestats.schema import Unparsed
from triagestats.table import ResponseTable

__all__ = ["ReadOptions", "read_as", "table_of", "valid_limit"]

_CHUNK = 2**20


class ReadOptions(TypedDict, total=False):
    """Options that every reader of a harness takes.

    Attributes
    ----------
    metric
        The metric to keep. Default: all; a table of several metrics is analysed after choosing one.
    judge
        Scorers that are judges of one metric, a name or a list of them; True for all. Default: scorers
        are metrics.
    task
        The task to keep, or a list of them.
    model
        What the model is called where the files do not say.
    item
        The field that names the items, in formats that leave that to the user.
    cluster, stratum
        A role, or metadata of the items under a dotted name such as `metadata.passage_id`; its last part
        is enough where only one column has it.
    runs
        Whether files that claim the same model, task and epoch are runs of their own, numbered as further
        repetitions. Default: an error that names both.
    levels, higher_is_better, unparsed
        As in `ResponseTable`. Default of `higher_is_better`: what the files say of the metric, else True.
    max_bytes
        Bytes that one line, one JSON value or one member of an archive may unpack to.
    """

    metric: str | None
    judge: str | Sequence[str] | bool | None
    task: str | Sequence[str] | None
    model: str | None
    item: str | None
    cluster: RoleArgument
    stratum: str | None
    runs: bool
    levels: Sequence[str] | None
    higher_is_better: bool | None
    unparsed: Unparsed
    max_bytes: int


def read_as(reader: Reader, path: Paths, **options: Unpack[ReadOptions]) -> ResponseTable:
    """The files of one format among the files and folders that are named.

    Raises
    ------
    ReadError
        If there are none, or one is damaged.
    DataError
        If two files claim the same answers, or an option names what the files do not have.
    """
    max_bytes = valid_limit(options.get("max_bytes"))
    files, title = files_of(path, max_bytes)
    found = recognise(files, (reader,))
    if not found:
        raise ReadError(f"`path`: {advice(files, (reader,)) or nothing(files, (reader,), title)}")
    return table_of(found[0], options)


def table_of(found: Found, options: Mapping[str, Any]) -> ResponseTable:
    """The table of files whose format is known."""
    unknown = sorted(options.keys() - get_type_hints(ReadOptions).keys())
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        raise ArgumentTypeError(
            f"{names}: no option of a reader of {found.reader.harness} files, whose columns are known; the "
            f"options are {', '.join(get_type_hints(ReadOptions))}"
        )
    max_bytes = valid_limit(options.get("max_bytes"))
    asked = Options(**{name: value for name, value in options.items() if name != "max_bytes"})
    ask = Ask(metadata_names(asked), asked.model, asked.item, asked.metric, max_bytes)
    files = found.files
    names = repr(files[0].name) if len(files) == 1 else f"one of {listed([file.name for file in files])}"
    with laid_out(names, found.reader.harness):
        rows = found.reader.read(files, ask)
    return assemble(rows, asked, _copies(files))


def valid_limit(max_bytes: object) -> int:
    """`max_bytes` if it is a positive whole number; None for the default.

    Raises
    ------
    ArgumentError
        If it is something else.
    """
    if max_bytes is None:
        return DEFAULT_LIMIT
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ArgumentError(f"`max_bytes` must be a positive whole number of bytes; got {max_bytes!r}")
    return max_bytes


def _copies(files: Sequence[File]) -> list[tuple[str, str]]:
    """Pairs of files with the same bytes; only files of one size are compared."""
    sizes: dict[int, list[File]] = {}
    for file in files:
        sizes.setdefault(file.path.stat().st_size, []).append(file)
    pairs = []
    for alike in sizes.values():
        first: dict[bytes, str] = {}
        for file in alike if len(alike) > 1 else ():
            digest = _digest(file)
            if digest in first:
                pairs.append((first[digest], file.name))
            first.setdefault(digest, file.name)
    return pairs


def _digest(file: File) -> bytes:
    digest = hashlib.sha256()
    with file.path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()
