"""What names the item of an answer, where a harness leaves that to the user."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from triagestats.errors import ArgumentError, DataError
from triagestats.labels import listed
from triagestats.readers.rows import Ask, text_of
from triagestats.results import Note
from triagestats.schema import ROLES

__all__ = ["Items", "flat", "refuse_item", "shortened"]

_LONGEST: Final = 100
_KEPT: Final = 60
_NUMBERED: Final = frozenset(
    {name for name in ROLES["scenario"].spellings if name.endswith("_id")}
    | {"id", "uid", "qid", "prompt_id", "test_case_id", "test_id", "task_id"}
)
"""Names that say `this is the number of the item`."""
_NAMED: Final = frozenset(ROLES["scenario"].spellings) - _NUMBERED - {"question"}
"""Names that may hold the item as well as a text that several items share."""


@dataclass(slots=True)
class Items:
    """Gathers what could name the items of a format, and says in the end what does.

    A field names the items if it is called so (`case_id`, `doc`, ...), every answer has it, and its values go
    one to one with the inputs; a number (`case_id`, `id`) may also stand for several inputs, such as one case
    in two formats. Else the inputs themselves are the names, the long ones shortened.

    Attributes
    ----------
    harness
        What the files are called in messages.
    wanted
        The field that the caller names, or None.
    weak
        Further fields that name items if they go one to one with the inputs.
    own
        The field in which the harness itself numbers items, for want of one of the user's.
    """

    harness: str
    wanted: str | None = None
    weak: tuple[str, ...] = ()
    own: str | None = None
    _inputs: list[str] = field(default_factory=list)
    _fields: dict[str, list[str | None]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def add(self, inputs: object, fields: Mapping[str, object]) -> None:
        """One answer: what was put in, and all its fields under dotted names."""
        if isinstance(inputs, Mapping):
            several = len(inputs) > 1
            inputs = dict(sorted(inputs.items())) if several else next(iter(inputs.values()), None)
        position = len(self._inputs)
        self._inputs.append(shortened(text_of(inputs) or ""))
        for name, value in flat(fields):
            self._known.add(name)
            if self._candidate(name) and (text := text_of(value)):
                column = self._fields.setdefault(name, [])
                column += [None] * (position - len(column))
                column.append(text)

    def labels(self) -> tuple[list[str], tuple[Note, ...]]:
        """The name of the item of each answer, in the order in which they came, and what names them.

        Raises
        ------
        DataError
            If the caller names a field that not every answer has.
        """
        if not self._inputs:
            return [], ()
        height = len(self._inputs)
        whole = {
            name: [value for value in values if value is not None]
            for name, values in self._fields.items()
            if len(values) == height and None not in values
        }
        if self.wanted is not None:
            if self.wanted not in whole:
                held = "is not in every answer" if self.wanted in self._known else "these files do not have"
                raise DataError(
                    f"`item` names {self.wanted!r}, which {held}; choose from {listed(sorted(self._known))}"
                )
            return whole[self.wanted], ()
        name = self._best(whole)
        if name is not None:
            return whole[name], (Note("items", f"Items are named by {name!r}; `item=` names another field."),)
        message = (
            f"No field names the items of these {self.harness} files one by one, so that equal inputs are "
            "one item; `item=` names a field."
        )
        return self._inputs, (Note("items", message),)

    def _candidate(self, name: str) -> bool:
        return name in (self.wanted, self.own, *self.weak) or _last(name) in _NUMBERED | _NAMED

    def _best(self, whole: Mapping[str, Sequence[str]]) -> str | None:
        n_inputs = len(set(self._inputs))
        last = [name for name in (*self.weak, self.own) if name is not None and name in whole]
        # one value an input: a number that is finer than the inputs counts rows, not items
        fitting = [
            name
            for name in (*(name for name in whole if name not in last), *last)
            if len(set(zip(whole[name], self._inputs, strict=True))) == n_inputs
        ]
        numbered = [name for name in fitting if _last(name) in _NUMBERED and name not in last]
        for name in (*numbered, *(name for name in fitting if name not in numbered)):
            if len(set(whole[name])) == n_inputs:
                return name
        best = max(numbered, key=lambda name: len(set(whole[name])), default=None)
        return self.own if best is None and self.own in whole else best


def refuse_item(ask: Ask, harness: str) -> None:
    """Refuse `item` for a format that numbers its items.

    Raises
    ------
    ArgumentError
        If the caller names a field.
    """
    if ask.item is not None:
        raise ArgumentError(
            f"`item` names {ask.item!r}, but {harness} files number their items themselves; leave it out"
        )


def flat(fields: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Leaves of nested mappings under dotted names."""
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def shortened(text: str) -> str:
    """A text as a label: a long one by its start and a digest, so that it stays one label."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:10]
    return f"{text[:_KEPT].rstrip()}... [{digest}]"


def _last(name: str) -> str:
    """The last part of a dotted name: `vars.caseId` as `case_id`."""
    last = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2])
    return re.sub(r"\W+", "_", last.lower()).strip("_")
