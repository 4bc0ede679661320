"""A multiple-choice item turned to free response, after a judge has said whether that can be answered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import Field, field_validator

from triagestats.collect.answer_text import without_thoughts
from triagestats.collect.contract import Ask, Parsed, Scenario, Slot, Step, Strict, Trace
from triagestats.collect.json_answers import find_object, value_at
from triagestats.collect.parsers import AnswerContract, FreeText
from triagestats.collect.protocols.common import Asked, answered, chat, filled, packaged, text_field
from triagestats.collect.protocols.yes_no import as_bool
from triagestats.collect.templates import PromptText

__all__ = ["Filter", "FreeResponse", "Replacement", "open_question"]

_PROVIDES: Final = frozenset({"question"})
_SPEAKS: Final = re.compile(
    r"\b(?:of|among) the following\b|\b(?:following|above|below|listed) (?:options|choices|answers)\b"
    r"|\bexcept\s*[:?.]?\s*\Z",
    re.IGNORECASE,
)


class Replacement(Strict):
    r"""What is replaced in a stem.

    Attributes
    ----------
    find
        A regular expression; capital and small letters are one.
    replace
        What takes its place; `\1` stands for its first group.
    """

    find: str
    replace: str

    @field_validator("find")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
        return value


_VERB: Final = r"(?:is|are|was|were|would|will|should|can|could|may|has|have|best|most)"
_OPTIONS: Final = (
    r"(?:one |option |statement |choice )?(?:of|among) (?:the )?(?:following|these|options below)"
)
_BELOW: Final = r"(?:option|answer) below"
_OPENED: Final = (
    # `Which of the following drugs is given?` keeps its noun.
    (rf"\bwhich {_OPTIONS} ((?!{_VERB}\b)[a-z]+(?: [a-z]+){{0,3}}?) (?={_VERB}\b)", r"Which \1 "),
    (rf"\bwhich {_OPTIONS}\b,?", "What"),
    (
        rf"\b(?:select|choose|pick) (?:the )?(?:single |most |best )*(?:\w+ )?(?:{_OPTIONS}|{_BELOW})\b",
        "State",
    ),
    (r"\s*\((?:select|choose|pick) (?:one|the best answer)[^)]*\)", ""),
)


def _default_patterns() -> tuple[Replacement, ...]:
    return tuple(Replacement(find=find, replace=replace) for find, replace in _OPENED)


class Filter(Strict):
    """Who says whether an item can be answered without its options.

    Attributes
    ----------
    model
        Name of the model that judges; it is asked at temperature 0, whoever answers afterwards.
    template
        What it is asked; it may use `question`.
    """

    model: str
    template: PromptText = Field(default_factory=packaged("answerability"))


class FreeResponse(Asked):
    """A stem without its options, answered in free text and judged against the right answer.

    Attributes
    ----------
    stem_field
        Column of the scenario with the question.
    patterns
        Replacements that open the question, in order; those of the study file replace ours.
    filter
        The answerability filter; by default there is none.
    template
        The message; it may use `question`.
    answer
        How the answer is read; by default free text, for an equivalence judge.

    Notes
    -----
    An item that the filter leaves out is not asked: its row has the status `unscored`. The feature
    `asks_openly` is False where the question still speaks of options after all replacements.
    """

    kind: ClassVar[str] = "free_response"

    stem_field: str = "stem"
    patterns: tuple[Replacement, ...] = Field(default_factory=_default_patterns)
    filter: Filter | None = None
    template: PromptText = Field(default_factory=packaged("free_response"))
    answer: AnswerContract = Field(default_factory=lambda: FreeText(text_features=False))

    @property
    def reads_labels(self) -> bool:
        return self.answer.reads_labels

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        stem = text_field(scenario, self.stem_field, "stem_field")
        question = open_question(stem, self.patterns)
        features: dict[str, Any] = {"asks_openly": not _speaks_of_options(question)}
        values = filled(scenario, question=question)
        if self.filter is not None:
            asked = chat(self.filter.template.render(values))
            said = await ask(asked, role="filter", model=self.filter.model, temperature=0)
            found = find_object(without_thoughts(said.text), "answerable")
            answerable = None if found is None else as_bool(value_at(found, "answerable"))
            features["answerable"] = answerable
            if answerable is False:
                left_out = Parsed(None, "unscored", "not answerable without its options")
                return Trace("", (left_out,), features=features)
        answer = await ask(self.opened(self.template.render(values), values))
        return answered(answer, self.answer.parse(answer, scenario), **features)

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        if self.filter is None:
            return (Step("answer"),)
        return (Step("filter", self.filter.model), Step("answer", at_least=0))

    def slots(self) -> Mapping[str, Slot]:
        slots = {**self.shared_slots(_PROVIDES), "template": Slot(self.template, _PROVIDES)}
        if self.filter is not None:
            slots["filter.template"] = Slot(self.filter.template, _PROVIDES)
        return slots

    def check(self, scenario: Scenario) -> None:
        text_field(scenario, self.stem_field, "stem_field")


def open_question(stem: str, patterns: tuple[Replacement, ...] | None = None) -> str:
    """A stem whose question no longer points to options.

    Examples
    --------
    >>> from triagestats.collect.protocols.free_response import open_question
    >>> open_question("He coughs. Which of the following is the most likely diagnosis?")
    'He coughs. What is the most likely diagnosis?'
    """
    for rule in _default_patterns() if patterns is None else patterns:
        stem = re.sub(rule.find, rule.replace, stem, flags=re.IGNORECASE)
    return stem.strip()


def _speaks_of_options(question: str) -> bool:
    return _SPEAKS.search(question) is not None
