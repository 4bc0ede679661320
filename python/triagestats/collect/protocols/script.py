"""The script of a patient: answers to named questions, and who picks among them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import Field

from triagestats.collect.answer_text import without_thoughts
from triagestats.collect.contract import Ask, Misfit, Scenario, Step, Strict
from triagestats.collect.features import requests
from triagestats.collect.json_answers import find_object, value_at
from triagestats.collect.protocols.common import chat, packaged
from triagestats.collect.protocols.yes_no import as_texts
from triagestats.collect.templates import PromptText

__all__ = ["Entry", "Match", "ModelMatcher", "PatternMatcher", "read_script"]


_MOST: Final = 100
"""No turn asks more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer that the patient gives to a named question.

    Attributes
    ----------
    name
        Name of the question.
    answer
        What the patient says.
    asks
        Regular expressions, each of which tells the question by its words.
    about
        The question in words, for a model that matches.
    """

    name: str
    answer: str
    asks: tuple[str, ...]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """What one turn asks: the names that it hits, in the order of asking, and how many questions it has."""

    names: tuple[str, ...]
    n_questions: int
    n_unknown: int


class PatternMatcher(Strict):
    """Finds questions and requests by their form, and scripted answers by words: no call is made.

    A question matches the first entry one of whose expressions it holds; an entry without any is told by
    the words of its name.
    """

    kind: Literal["pattern"] = "pattern"

    async def match(self, message: str, script: Sequence[Entry], ask: Ask) -> Match:  # noqa: ARG002 - as others
        """What a turn asks."""
        asked = requests(message)
        hits = [_hit(question, script) for question in asked]
        names = tuple(dict.fromkeys(name for name in hits if name is not None))
        return Match(names, len(asked), hits.count(None))

    def steps(self, turns: int) -> tuple[Step, ...]:  # noqa: ARG002 - as others
        """The calls of matching."""
        return ()


class ModelMatcher(Strict):
    """Asks a model, at temperature 0, which of the named questions a turn asks.

    Attributes
    ----------
    model
        Name of the model.
    template
        What it is asked; it may use `message` and `script` (what each question is about, by name).
    """

    kind: Literal["model"]
    model: str
    template: PromptText = Field(default_factory=packaged("match"))

    async def match(self, message: str, script: Sequence[Entry], ask: Ask) -> Match:
        """What a turn asks; where the verdict cannot be read, its questions have no answer."""
        about = {entry.name: entry.about for entry in script}
        said = await ask(
            chat(self.template.render({"message": message, "script": about})),
            role="match",
            model=self.model,
            temperature=0,
        )
        found = find_object(without_thoughts(said.text), "asked")
        named = None if found is None else as_texts(value_at(found, "asked"))
        if found is None or named is None:
            count = len(requests(message))
            return Match((), count, count)
        by_name = {entry.name.lower(): entry.name for entry in script}
        names = tuple(dict.fromkeys(by_name[name.lower()] for name in named if name.lower() in by_name))
        others = value_at(found, "others")
        counted = isinstance(others, int) and not isinstance(others, bool) and 0 < others <= _MOST
        unknown = others if counted else 0
        unknown += sum(name.lower() not in by_name for name in named)
        return Match(names, len(names) + unknown, unknown)

    def steps(self, turns: int) -> tuple[Step, ...]:
        """The calls of matching."""
        return (Step("match", self.model, at_most=turns),)


def _hit(question: str, script: Sequence[Entry]) -> str | None:
    return next(
        (entry.name for entry in script if any(re.search(ask, question, re.I) for ask in entry.asks)), None
    )


def read_script(scenario: Scenario, field: str) -> tuple[Entry, ...]:
    """The script of a scenario.

    It is a mapping from the name of a question to its answer, or to `{answer, asks, about}`, or a list
    of such tables with `name`; as JSON text, too.

    Raises
    ------
    Misfit
        If it is absent or none of these.
    """
    value = scenario.fields.get(field)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise _misfit(field, f"text that is no JSON ({value[:40]!r})") from None
    if isinstance(value, Mapping):
        value = [
            {"name": name, **(entry if isinstance(entry, Mapping) else {"answer": entry})}
            for name, entry in value.items()
            if entry is not None  # what a table fills in for scenarios without this question
        ]
    if not isinstance(value, list | tuple):
        raise _misfit(field, "nothing" if value is None else type(value).__name__)
    entries = tuple(_entry(item, field) for item in value)
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        raise _misfit(field, f"a name twice, among {names}")
    return entries


def _entry(item: Any, field: str) -> Entry:
    if not isinstance(item, Mapping) or not {"name", "answer"} <= set(item) <= {
        "name",
        "answer",
        "asks",
        "about",
    }:
        raise _misfit(field, f"{item!r}")
    name, answer = str(item["name"]), str(item["answer"])
    words = r"[\W_]+".join(re.findall(r"[^\W_]+", name))
    asks = item.get("asks") or [rf"\b{words}\b"]
    patterns = tuple(asks) if isinstance(asks, list | tuple) else (str(asks),)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise Misfit(
                ("script_field",),
                f"question {name!r} has {pattern!r}, which is no regular expression: {error}",
            ) from None
    return Entry(name, answer, patterns, str(item.get("about") or ""))


def _misfit(field: str, got: str) -> Misfit:
    return Misfit(
        ("script_field",),
        f"names {field!r}, which must hold the patient's answers by name of question, such as "
        f'{{"fever": "38.5 since yesterday"}}; it holds {got}',
    )
