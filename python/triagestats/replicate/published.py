"""What a study published, and what its folder recomputed, as expected.json holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from triagestats.errors import DataError, ReadError

__all__ = ["EXPECTED", "Expected", "Kind", "Published", "Study", "read_expected"]

EXPECTED: Final = "expected.json"
Study = Literal["study1", "study2", "narrativeshield", "medsafe"]
Kind = Literal["published", "reference"]
Blocks = Mapping[str, int]

_LISTS: Final = ("published", "published_checks")
_MATCHES: Final = (True, "yes")
_NOTHING_PRINTED: Final = "not_published"
_REPLICATES: Final = (
    re.compile(r"([\d,]{3,})\s+(?:\w+\s+){0,3}?(?:resamples|permutations|replicates|draws)"),
    re.compile(r"resamples?\b[^;.]*?([\d,]{3,})\s+times"),
    re.compile(r"([\d,]{3,})-(?:resample|permutation|replicate|draw)"),
    re.compile(r"size=\(\s*([\d_,]+?)\s*,\s*[nG]\s*\)"),
)
_IN_NAME: Final = re.compile(r"_(\d{3,})$")


@dataclass(frozen=True, slots=True)
class Published:
    """One entry of expected.json.

    Attributes
    ----------
    id
        Its name there.
    kind
        `published`: a number of the paper or of its files. `reference`: one that only the folder has.
    published
        What was printed; None where nothing was.
    recomputed
        What the folder recomputed from its tables; None where it could not.
    mark
        Whether these two match, in the words of the folder; `reference` where nothing was printed.
    tolerance
        How far they may differ, where the folder says so.
    recipe
        How it is computed. "as above" and the like are replaced by what they refer to.
    table
        Files that it rests on, where the folder names them.
    claim, where, note
        What it says, where it stands, and what the folder adds.
    n_replicates
        Replicates of the source, if it was resampled: as the entry says, else the fewest that any entry
        says; None where none does.
    """

    id: str
    kind: Kind
    published: Any
    recomputed: Any
    mark: str
    tolerance: float | None
    recipe: str
    table: str
    claim: str
    where: str
    note: str
    n_replicates: int | None

    @property
    def marked(self) -> bool:
        """Whether the folder says that it matches."""
        return self.kind == "published" and self.mark == "yes"


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected.json.

    Attributes
    ----------
    entries
        What was printed, in order, then the folder's own reference values.
    conventions
        What the folder states of its computations.
    not_derivable
        What it says cannot be recomputed.
    """

    entries: tuple[Published, ...]
    conventions: Mapping[str, Any]
    not_derivable: tuple[str, ...]


def read_expected(folder: Path, blocks: Blocks) -> Expected:
    """The expected.json of a folder.

    Parameters
    ----------
    folder
        Where it is.
    blocks
        Beginnings of the names of blocks of reference values, with the depth at which their entries stand:
        0, the block is one entry; 1, each of its keys is one.

    Raises
    ------
    ReadError
        If there is no such file, or it is no JSON.
    DataError
        If it has no list of published values, or an entry has no id.
    """
    path = folder / EXPECTED
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(
            f"`data` must be a folder with {EXPECTED}; {str(path)!r} cannot be read: {error.strerror}"
        ) from None
    except ValueError as error:
        raise ReadError(f"`data`: {str(path)!r} is not valid JSON ({error})") from None
    if not isinstance(loaded, dict) or not any(isinstance(loaded.get(name), list) for name in _LISTS):
        raise DataError(f"`data`: {str(path)!r} must hold a list {' or '.join(map(repr, _LISTS))}")
    conventions = loaded.get("conventions")
    stated = conventions if isinstance(conventions, Mapping) else {}
    printed = [entry for name in _LISTS for entry in _printed(loaded.get(name) or ())]
    kept = [entry for name, block in loaded.items() for entry in _references(name, block, blocks, stated)]
    told = loaded.get("not_derivable")
    fewest = min((e.n_replicates for e in (*printed, *kept) if e.n_replicates), default=None)
    return Expected(
        entries=tuple(replace(e, n_replicates=e.n_replicates or fewest) for e in (*printed, *kept)),
        conventions=stated,
        not_derivable=tuple(map(str, told)) if isinstance(told, list) else (),
    )


def _printed(items: Any) -> Iterator[Published]:
    """Entries of a list of published values; "as above" takes the recipe of the entry before."""
    recipe = ""
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            raise DataError(f"`data`: every published entry of {EXPECTED} must have an `id`; got {item!r}")
        said = str(item.get("recipe", ""))
        recipe = f"{said} ({recipe})" if re.match(r"as\b|same\b", said) and recipe else said
        match = item.get("match")
        printed = match != _NOTHING_PRINTED
        yield Published(
            id=item["id"],
            kind="published" if printed else "reference",
            published=item.get("published"),
            recomputed=item.get("recomputed"),
            mark=_mark(match),
            tolerance=item.get("tolerance"),
            recipe=recipe,
            table=str(item.get("table", "")),
            claim=str(item.get("claim", "")),
            where=str(item.get("where", item.get("source", ""))),
            note=". ".join(str(item[key]).rstrip(". ") for key in ("match_note", "note") if item.get(key)),
            n_replicates=_replicates(recipe),
        )


def _mark(match: Any) -> str:
    if match in _MATCHES:
        return "yes"
    if match is None:
        return "not checked"
    return "no" if match is False else str(match)


def _references(name: str, block: Any, blocks: Blocks, conventions: Mapping[str, Any]) -> Iterator[Published]:
    """Entries of a block of reference values, at the depth at which they stand."""
    depth = next((depth for start, depth in blocks.items() if name.startswith(start)), None)
    if depth is None or not isinstance(block, Mapping):
        return
    said = " ".join(str(block[key]) for key in ("recipe", "note") if isinstance(block.get(key), str))
    recipe = said or str(conventions.get("bootstrap", ""))
    in_name = _IN_NAME.search(name)
    for path, value in _at(block, depth):
        printed, kept = _sides(name, value)
        yield Published(
            id="/".join((name, *path)),
            kind="reference" if printed is None else "published",
            published=printed,
            recomputed=kept,
            mark="reference" if printed is None else _mark(None),
            tolerance=None,
            recipe=recipe,
            table="",
            claim="",
            where=EXPECTED,
            note="",
            n_replicates=int(in_name[1]) if in_name else _replicates(recipe),
        )


def _sides(name: str, value: Any) -> tuple[Any, Any]:
    """What a value of a block says was printed, and what the folder recomputed."""
    if name.startswith("published"):
        return value, None
    if isinstance(value, Mapping) and "published" in value:
        return value["published"], {key: item for key, item in value.items() if key != "published"}
    return None, value


def _at(block: Mapping[str, Any], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values of a block at a depth with their paths; text beside them is no value."""
    if depth == 0:
        yield (), block
        return
    for key, value in block.items():
        if isinstance(value, Mapping):
            yield from (((key, *path), found) for path, found in _at(value, depth - 1))


def _replicates(recipe: str) -> int | None:
    """How often the source resampled, as its recipe says; the fewest where it says several numbers."""
    found = [number for pattern in _REPLICATES for number in pattern.findall(recipe)]
    return min((int(re.sub(r"[,_]", "", number)) for number in found), default=None)
