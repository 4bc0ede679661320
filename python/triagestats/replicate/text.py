"""The report of a replication as plain text."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from triagestats.replicate.entry import Entry
from triagestats.replicate.leaves import shown

__all__ = ["report_text"]

_WIDTH: Final = 110
_MOST: Final = 400
"""Characters of a value that are shown."""


def report_text(study: str, folder: str, entries: Sequence[Entry], not_derivable: Sequence[str]) -> str:
    """Every entry with what was published, what the library finds, the match, and the clustered answer."""
    printed = [entry for entry in entries if entry.kind == "published"]
    kept = [entry for entry in entries if entry.kind == "reference"]
    lines = [f"{study}: {len(printed):,} published entries of {folder}", ""]
    for entry in printed:
        lines += _entry(entry, "published")
    if kept:
        lines += ["", f"Reference values that the folder recomputed and nobody printed: {len(kept):,}", ""]
        for entry in kept:
            lines += _entry(entry, "folder")
    lines += ["", *_summary(printed, kept)]
    lines += [f"the folder says that this is not derivable: {reason}" for reason in not_derivable]
    return "\n".join(lines)


def _entry(entry: Entry, source: str) -> Iterator[str]:
    yield entry.id + (f"  {entry.claim}" if entry.claim else "")
    yield from _wrapped(source, _short(shown(entry.published)))
    yield from _wrapped("library", _short(shown(entry.value)))
    mark = "" if entry.mark in ("yes", "reference") else f" (the folder's mark: {entry.mark})"
    again = "" if entry.recomputed_agrees is not True else "; the folder recomputed the same"
    again = again if entry.kind == "published" and entry.match == "no" else ""
    yield from _wrapped("match", f"{entry.match}{mark}{again}")
    if entry.reason:
        yield from _wrapped("reason", entry.reason)
    for answer in entry.clustered:
        yield from _wrapped("clustered", str(answer))


def _wrapped(name: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {name:<10}",
        subsequent_indent=" " * 12,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST else text[:_MOST].rstrip(", ") + " ..."


def _summary(printed: Sequence[Entry], kept: Sequence[Entry]) -> Iterator[str]:
    counts = Counter(entry.match for entry in printed)
    told = ", ".join(f"{counts[match]:,} {match}" for match in sorted(counts, key=_order))
    yield f"published: {len(printed):,} entries; match: {told}"
    marked = [entry for entry in printed if entry.marked]
    failed = [entry.id for entry in marked if entry.match == "no"]
    left = [entry.id for entry in marked if entry.match == "not derivable"]
    yield f"marked as matching in expected.json: {len(marked):,}; of these {len(failed):,} do not match"
    yield from (f"  does not match: {name}" for name in failed)
    if left:
        yield f"marked as matching and not derivable here: {len(left):,}"
        yield from (f"  not derivable: {name}" for name in left)
    if kept:
        counts = Counter(entry.match for entry in kept)
        told = ", ".join(f"{counts[match]:,} {match}" for match in sorted(counts, key=_order))
        yield f"reference: {len(kept):,} values; match: {told}"


def _order(match: str) -> int:
    return ("yes", "within Monte Carlo error", "no", "not derivable").index(match)
