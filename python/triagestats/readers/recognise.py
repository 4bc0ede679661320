"""Which files are read, and by which format: told from their content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from triagestats.errors import ArgumentError, ArgumentTypeError, ReadError
from triagestats.labels import listed
from triagestats.readers.bounded import File, open_file
from triagestats.readers.rows import Reader

__all__ = ["Found", "Paths", "advice", "files_of", "mixed", "nothing", "recognise"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, or several of them."""

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Found:
    """The files of one format."""

    reader: Reader
    files: tuple[File, ...]


def files_of(paths: Paths, max_bytes: int) -> tuple[tuple[File, ...], str]:
    """The files that the caller names, those of folders sorted by their paths, and what they are called.

    Hidden files and files that cannot be opened because they are no regular files are left out of folders.

    Raises
    ------
    ReadError
        If there is no such file or folder, or a folder holds no file.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, list | tuple) or not all(isinstance(path, str | os.PathLike) for path in given):
        raise ArgumentTypeError(
            f"`path` must be a file, a folder or a list of them; got {type(paths).__name__}"
        )
    roots = [Path(path).expanduser() for path in given]
    if not roots:
        raise ArgumentError("`path` is an empty list; name one file or folder, or more")
    named: dict[Path, str] = {}
    base = _base(roots)
    for root in roots:
        for path in _walk(root):
            own = path.absolute()
            if own not in named:
                named[own] = own.relative_to(base).as_posix() if own.is_relative_to(base) else path.name
    if not named:
        folder = " and ".join(repr(str(root)) for root in roots)
        raise ReadError(f"`path`: {folder} has no files; expected the logs or results of a harness")
    title = ", ".join(repr(root.name or str(root)) for root in roots[:_SHOWN])
    files = tuple(open_file(path, name, max_bytes) for path, name in named.items())
    return files, title + (" and others" if len(roots) > _SHOWN else "")


def _base(roots: Sequence[Path]) -> Path:
    """The folder that names are told from: the one that was given, or the deepest that holds all."""
    folders = [root.absolute() if root.is_dir() else root.absolute().parent for root in roots]
    return Path(os.path.commonpath(folders)) if len({f.anchor for f in folders}) == 1 else Path(folders[0])


def _walk(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        folder = root.parent.absolute()
        what = "file" if root.suffix else "file or folder"
        raise ReadError(f"`path`: there is no {what} {root.name!r} in {str(folder)!r}; correct the path")
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
    )


def recognise(files: Sequence[File], readers: Sequence[Reader]) -> tuple[Found, ...]:
    """The files of each format that has some; files that hold no rows of any are left out."""
    claims: dict[str, list[File]] = {reader.name: [] for reader in readers}
    for file in files:
        claimed = next((reader for reader in readers if reader.recognises(file)), None)
        if claimed is not None:
            claims[claimed.name].append(file)
    return tuple(Found(reader, tuple(claims[reader.name])) for reader in readers if claims[reader.name])


def mixed(found: Sequence[Found], title: str) -> str:
    """What to say of files of several harnesses."""
    each = "; ".join(f"{one.reader.harness} ({_some(one.files)})" for one in found)
    return (
        f"{title} holds files of {len(found)} harnesses: {each}. Read one at a time, with "
        f"`format={found[0].reader.name!r}` or by naming its files"
    )


def advice(files: Sequence[File], readers: Sequence[Reader]) -> str | None:
    """What to say of files that belong to a format and hold no rows; None of others."""
    for file in files:
        for reader in readers:
            if said := reader.companion(file):
                return f"{file.name!r} {said}"
    return None


def nothing(files: Sequence[File], readers: Sequence[Reader], title: str) -> str:
    """What to say of files that no format knows."""
    what = ", ".join(reader.harness for reader in readers)
    names = listed([file.name for file in files])
    if len(readers) == 1:
        return f"{title} holds no {what} file; its files are {names}"
    return f"{title} is of no format that is known; its files are {names}, and the formats are {what}"


def _some(files: Sequence[File]) -> str:
    shown = ", ".join(repr(file.name) for file in files[:_SHOWN])
    return shown + (f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else "")
