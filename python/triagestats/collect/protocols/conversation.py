"""A conversation with a patient who answers questions from a script, then the disposition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from triagestats.collect.answer_text import without_thoughts
from triagestats.collect.contract import Ask, Message, Scenario, Slot, Step, Trace
from triagestats.collect.parsers import AnswerContract, FreeText
from triagestats.collect.protocols.common import (
    Asked,
    chat,
    filled,
    packaged,
    scale_answer,
    spoken,
    text_field,
)
from triagestats.collect.protocols.script import Entry, Match, ModelMatcher, PatternMatcher, read_script
from triagestats.collect.templates import PromptText

__all__ = ["Conversation"]

_PROVIDES: Final = frozenset({"opening", "scale"})


def _named(value: object) -> object:
    """`matcher = "pattern"` is short for `matcher = { kind = "pattern" }`."""
    return {"kind": value} if isinstance(value, str) else value


class Conversation(Asked):
    """A patient opens, answers questions from a script or with "I don't know", and the disposition follows.

    Attributes
    ----------
    opening_field
        Column of the scenario with the first message.
    script_field
        Column with the patient's answers by name of question: text, or `{answer, asks, about}`, where
        `asks` are regular expressions that tell the question.
    matcher
        `pattern`, or `{ kind = "model", model = ... }`: who finds which scripted answers a turn asks for.
    unknown
        What the patient says to a question that the script has no answer to; once a turn.
    max_turns
        The model speaks at most so often before the end.
    ending
        `ask`: the disposition is asked; `judge`: the last turn is the answer, for judges.
    ask_template
        How the disposition is asked; it may use `opening` and `scale`.
    scale
        What each letter means.
    answer
        How the last answer is read: by default a letter of `scale`, else free text.

    Notes
    -----
    The conversation goes on while the model asks something. The patient answers all scripted questions of a
    turn, a line each, in the order in which the matcher names them. Questions of the last turn before the end
    are counted and not answered. Thoughts between tags are kept in the transcript and not sent back.
    Features: `n_turns`, `n_questions`, `n_matched` and `n_unknown` (questions with and without a scripted
    answer), `asked` (names of the questions that were matched), and `ended` (`no question` or
    `turn limit`).
    """

    kind: ClassVar[str] = "conversation"

    opening_field: str = "text"
    script_field: str = "script"
    matcher: Annotated[
        Annotated[PatternMatcher | ModelMatcher, Field(discriminator="kind")], BeforeValidator(_named)
    ] = Field(default_factory=PatternMatcher)
    unknown: str = Field(default="I don't know.", min_length=1)
    max_turns: int = Field(default=6, ge=1, le=100)
    ending: Literal["ask", "judge"] = "ask"
    ask_template: PromptText = Field(default_factory=packaged("conversation_ask"))
    scale: dict[str, str] = Field(default_factory=dict)
    answer: AnswerContract = Field(default_factory=FreeText)

    @model_validator(mode="before")
    @classmethod
    def _of_scale(cls, data: Any) -> Any:
        return scale_answer(data)

    @property
    def reads_labels(self) -> bool:
        return self.ending == "ask" and self.answer.reads_labels

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        opening = text_field(scenario, self.opening_field, "opening_field")
        script = read_script(scenario, self.script_field)
        values = filled(scenario, opening=opening, scale=self.scale)
        sent = self.opened(opening, values)
        transcript: tuple[Message, ...] = sent
        matches: list[Match] = []
        while True:
            answer = await ask(sent, role="turn")
            said = without_thoughts(answer.text)
            transcript = spoken(transcript, answer.text)
            match = await self.matcher.match(said, script, ask) if said else Match((), 0, 0)
            matches.append(match)
            if not match.n_questions or len(matches) == self.max_turns:
                break
            reply = chat(self._reply(match, script))
            sent = (*spoken(sent, said), *reply)
            transcript = (*transcript, *reply)
        features = self._features(matches)
        if self.ending == "judge":
            parsed = FreeText().parse(answer, scenario)
        else:
            question = chat(self.ask_template.render(values))
            answer = await ask((*(spoken(sent, said) if said else sent), *question), role="answer")
            parsed = self.answer.parse(answer, scenario)
            transcript = spoken((*transcript, *question), answer.text)
        # Counts are those of the conversation, not of its last text.
        own = {name: value for name, value in parsed.features.items() if name not in features}
        return Trace(answer.text, (replace(parsed, features=own),), transcript, features)

    def _reply(self, match: Match, script: tuple[Entry, ...]) -> str:
        answers = {entry.name: entry.answer for entry in script}
        parts = [answers[name] for name in match.names]
        return "\n".join([*parts, self.unknown] if match.n_unknown else parts)

    def _features(self, matches: list[Match]) -> dict[str, Any]:
        names = dict.fromkeys(name for match in matches for name in match.names)
        return {
            "n_turns": len(matches),
            "n_questions": sum(match.n_questions for match in matches),
            "n_matched": sum(match.n_questions - match.n_unknown for match in matches),
            "n_unknown": sum(match.n_unknown for match in matches),
            "asked": "; ".join(names),
            "ended": "turn limit" if matches[-1].n_questions else "no question",
        }

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        turns = (Step("turn", at_most=self.max_turns), *self.matcher.steps(self.max_turns))
        return turns if self.ending == "judge" else (*turns, Step("answer"))

    def slots(self) -> Mapping[str, Slot]:
        slots = self.shared_slots(_PROVIDES)
        if self.ending == "ask":
            slots["ask_template"] = Slot(self.ask_template, _PROVIDES)
        if isinstance(self.matcher, ModelMatcher):
            slots["matcher.template"] = Slot(self.matcher.template, frozenset({"message", "script"}))
        return slots

    def check(self, scenario: Scenario) -> None:
        text_field(scenario, self.opening_field, "opening_field")
        read_script(scenario, self.script_field)
