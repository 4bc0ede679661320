"""Members of a zip archive, read in memory and never written to the disk, each within a limit."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import PurePosixPath
from typing import IO, Any, Final

from triagestats.errors import ReadError
from triagestats.readers.bounded import File, damaged, parsed, too_large

__all__ = ["Archive", "member_names", "open_archive"]

_ZSTD: Final = 93
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_FAILURES: Final = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, struct.error)


@dataclass(frozen=True, slots=True)
class Archive:
    """An open archive.

    Attributes
    ----------
    name
        What the file is called in messages.
    names
        Names of its members in order; where several have one name, the last counts.
    outside
        Names that point out of the archive, such as `../x`; these members are not among `names`.
    max_bytes
        What a member may unpack to.
    """

    name: str
    names: tuple[str, ...]
    outside: tuple[str, ...]
    max_bytes: int
    _zip: zipfile.ZipFile
    _stream: IO[bytes]

    def json(self, member: str) -> Any:
        """The JSON document that a member holds.

        Raises
        ------
        ReadError
            If it is damaged or too large, or its compression needs the extra `inspect`.
        """
        info = self._zip.getinfo(member)
        where = f"member {member!r} of {self.name!r}"
        if max(info.file_size, info.compress_size) > self.max_bytes:
            raise too_large(where, self.max_bytes)
        if info.flag_bits & 1:
            raise ReadError(f"{where} is encrypted; expected an archive without a password")
        try:
            content = self._zstd(info, where) if info.compress_type == _ZSTD else self._plain(info)
        except _FAILURES as error:
            raise damaged(self.name, error) from error
        if len(content) > self.max_bytes:
            raise too_large(where, self.max_bytes)
        return parsed(content, where)

    def _plain(self, info: zipfile.ZipInfo) -> bytes:
        with self._zip.open(info) as member:
            return member.read(self.max_bytes + 1)

    def _zstd(self, info: zipfile.ZipInfo, where: str) -> bytes:
        """A member of one zstd frame or several, which zipfile below Python 3.14 does not read."""
        reader = _zstd_reader(where)
        self._stream.seek(info.header_offset)
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
        if signature != b"PK\x03\x04":
            raise zipfile.BadZipFile("a member does not begin where the directory says")
        self._stream.seek(name_length + extra_length, 1)
        packed = self._stream.read(info.compress_size)
        try:
            content: bytes = reader(packed, self.max_bytes + 1)
        except Exception as error:  # each library of zstd has an exception of its own
            raise zipfile.BadZipFile(str(error)) from error
        if len(content) <= self.max_bytes and zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile("the checksum of a member is wrong")
        return content


def _zstd_reader(where: str) -> Any:
    """A function from packed bytes and a limit to unpacked bytes."""
    try:
        library = import_module("zstandard")
    except ImportError:
        pass
    else:

        def read(packed: bytes, limit: int) -> bytes:
            with library.ZstdDecompressor().stream_reader(BytesIO(packed), read_across_frames=True) as stream:
                content: bytes = stream.read(limit)
                return content

        return read
    try:
        native = import_module("compression.zstd")
    except ImportError:
        raise ReadError(
            f"{where} is compressed with zstd, as Inspect does since April 2026; install the extra that "
            "reads it with `pip install 'triagestats[inspect]'`, or convert the log with "
            "`inspect log convert --to json`"
        ) from None

    def read_native(packed: bytes, limit: int) -> bytes:
        with native.ZstdFile(BytesIO(packed)) as stream:
            content: bytes = stream.read(limit)
            return content

    return read_native


@contextmanager
def open_archive(file: File) -> Iterator[Archive]:
    """The members of a zip file.

    Raises
    ------
    ReadError
        If its directory, which stands at the end, is damaged or cut off.
    """
    try:
        with file.path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            every = tuple(dict.fromkeys(archive.namelist()))
            outside = tuple(name for name in every if _points_outside(name))
            names = tuple(name for name in every if name not in outside)
            with file.path.open("rb") as raw:
                yield Archive(file.name, names, outside, file.max_bytes, archive, raw)
    except zipfile.BadZipFile as error:
        raise damaged(file.name, error) from error
    except OSError as error:
        raise damaged(file.name, error) from error


def member_names(file: File) -> tuple[str, ...]:
    """Names of members; of an archive that is cut short, those that the first bytes show."""
    try:
        with open_archive(file) as archive:
            return archive.names
    except ReadError:
        known = (b"_journal/start.json", b"_journal/", b"samples/", b"header.json")
        return tuple(name.decode() for name in known if name in file.head)


def _points_outside(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]
