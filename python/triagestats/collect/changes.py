"""What changed in a study since its store was made, and whether collecting may go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from triagestats.collect.calls import canonical
from triagestats.collect.store import Store
from triagestats.collect.study import Study
from triagestats.errors import ArgumentError

__all__ = ["check_unchanged"]

_FACT: Final = "study"
_SHOWN: Final = 6
_LONGEST: Final = 60
_READ: Final = frozenset({"reads", "gold", "stratum", "cluster", "scored"})
"""Keys that say how answers are read; where they reach a prompt, the hash of the call covers it."""

Path = tuple[str, ...]


def check_unchanged(study: Study, store: Store, *, reparse: bool) -> tuple[str, ...]:
    """Refuse a store that was filled by another study, and note what was added to this one.

    More scenarios, models, conditions, judges or repetitions leave what was asked as it was, and so do higher
    versions of rewrites. A change of how answers are read asks for `reparse`. Anything else is refused.

    Returns
    -------
    tuple of str
        What was added, in words.

    Raises
    ------
    ArgumentError
        If something changed; the message says what.
    """
    after = study.record()
    before = store.fact(_FACT)
    if before is None or not store.totals().calls:
        store.keep_fact(_FACT, after)
        return ()
    added, read, sent = [], [], []
    changes = list(_changes(before, after))
    judged = {
        path[1] for path, old, new in changes if _key(path, "conditions") == "judges" and _grew(old, new)
    }
    for path, old, new in changes:
        key = _key(path, "conditions")
        if old is None and len(path) == 2:
            added.append(".".join(path))
        elif path == ("repetitions",) and new > old:
            added.append(f"repetitions ({old} to {new})")
        elif key in ("models", "judges") and _grew(old, new):
            added.append(".".join(path))
        elif key == "scored" and new and path[1] in judged:
            pass  # what was not scored has a judge now
        elif key == "versions" and len(path) == 4 and (new or 1) >= (old or 1):
            if (new or 1) > (old or 1):  # the first version need not be named
                added.append(f"{'.'.join(path)} ({old or 1} to {new})")
        elif path[0] == "levels" or (len(path) > 2 and path[2] in _READ):
            read.append((path, old, new))
        else:
            sent.append((path, old, new))
    if sent:
        raise ArgumentError(
            f"`study` has changed since its store was made: {_said(sent)}. Put it back, or collect into "
            "another store with `store`"
        )
    if read and not reparse:
        raise ArgumentError(
            f"`study` reads its answers in another way than when its store was made: {_said(read)}. Put it "
            "back, or read the stored answers again with `reparse`"
        )
    store.keep_fact(_FACT, after)
    return tuple(dict.fromkeys(added))


def _key(path: Path, table: str) -> str | None:
    """The key of an entry of a table that a path leads to or through; names of entries are no keys."""
    return path[2] if path[0] == table and len(path) > 2 else None


def _grew(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether nothing of a list of names is gone."""
    return set(old) <= set(new)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Path, Any, Any]]:
    """Paths at which two records differ, with both values; None where one has none."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            for path, one, other in _changes(old, new):
                yield (key, *path), one, other
        elif canonical(old) != canonical(new):
            yield (key,), old, new


def _said(found: list[tuple[Path, Any, Any]]) -> str:
    parts = [f"{'.'.join(path)} {_words(old, new)}" for path, old, new in found[:_SHOWN]]
    more = len(found) - len(parts)
    return "; ".join(parts) + (f"; and {more:,} more" if more else "")


def _words(old: object, new: object) -> str:
    if old is None:
        return f"is now {_short(new)}"
    if new is None or isinstance(old, Mapping) != isinstance(new, Mapping):
        return "is gone" if new is None else "is another"
    return f"was {_short(old)} and is {_short(new)}"


def _short(value: object) -> str:
    text = canonical(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
