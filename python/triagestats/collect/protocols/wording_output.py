"""The two by two of wording (source, rewrite) and output (letter, free text), with a scaffold of switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from triagestats.collect.contract import Ask, Scenario, Slot, Step, Trace
from triagestats.collect.parsers import AnswerContract, FreeText
from triagestats.collect.protocols.common import Asked, answered, filled, packaged, scale_answer, text_field
from triagestats.collect.templates import PromptText

__all__ = ["WordingOutput"]

_PROVIDES: Final = frozenset(
    {"story", "wording", "output", "scale", "base_only", "no_questions", "state_confidence", "word_cap"}
)


class WordingOutput(Asked):
    """A story in one of two wordings, answered by a letter or in free text.

    Attributes
    ----------
    wording
        `source`, the text of the study; or `rewrite`, as a patient would write it.
    output
        `letter`, one of `scale`; or `free_text`.
    base_only, no_questions, state_confidence
        Switches of the scaffold: only what the message says counts; nothing is asked back; the answer ends
        with how sure it is.
    word_cap
        At most so many words; 0 for no limit.
    scale
        What each letter means, in the order in which they are shown.
    source_field, rewrite_field
        Columns of the scenario that hold the two wordings.
    template
        The message; it may use `story`, `wording`, `output`, `scale` and the switches.
    answer
        How a letter answer is read; by default a letter of `scale`.
    free_answer
        How a free-text answer is read.
    """

    kind: ClassVar[str] = "wording_output"

    wording: Literal["source", "rewrite"] = "source"
    output: Literal["letter", "free_text"] = "letter"
    base_only: bool = False
    no_questions: bool = False
    state_confidence: bool = False
    word_cap: int = Field(default=0, ge=0)
    scale: dict[str, str] = Field(default_factory=dict)
    source_field: str = "text"
    rewrite_field: str = "patient_text"
    template: PromptText = Field(default_factory=packaged("wording_output"))
    answer: AnswerContract = Field(default_factory=FreeText)
    free_answer: AnswerContract = Field(default_factory=FreeText)

    @model_validator(mode="before")
    @classmethod
    def _of_scale(cls, data: Any) -> Any:
        return scale_answer(data)

    @model_validator(mode="after")
    def _has_scale(self) -> Self:
        if self.output == "letter" and "answer" not in self.model_fields_set:
            raise ValueError(
                '`scale` must say what the letters mean for `output = "letter"`, such as '
                '{ A = "stay at home", B = "see a doctor" }; or give an `answer` and a `template` of your own'
            )
        return self

    @property
    def reads_labels(self) -> bool:
        return bool(self._contract.reads_labels)

    @property
    def _contract(self) -> Any:
        return self.answer if self.output == "letter" else self.free_answer

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        values = filled(
            scenario,
            story=text_field(scenario, *self._story),
            wording=self.wording,
            output=self.output,
            scale=self.scale,
            base_only=self.base_only,
            no_questions=self.no_questions,
            state_confidence=self.state_confidence,
            word_cap=self.word_cap,
        )
        answer = await ask(self.opened(self.template.render(values), values))
        return answered(answer, self._contract.parse(answer, scenario))

    @property
    def _story(self) -> tuple[str, str]:
        """The column of the wording, and the key that names it."""
        if self.wording == "source":
            return self.source_field, "source_field"
        return self.rewrite_field, "rewrite_field"

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        return (Step("answer"),)

    def slots(self) -> Mapping[str, Slot]:
        return {**self.shared_slots(_PROVIDES), "template": Slot(self.template, _PROVIDES)}

    def check(self, scenario: Scenario) -> None:
        text_field(scenario, *self._story)
