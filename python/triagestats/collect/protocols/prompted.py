"""A prompt of the user's own, asked once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from triagestats.collect.contract import Ask, Scenario, Slot, Step, Trace
from triagestats.collect.parsers import AnswerContract
from triagestats.collect.protocols.common import Asked, answered, filled
from triagestats.collect.templates import PromptText

__all__ = ["Prompted"]


class Prompted(Asked):
    """One call with a template.

    Attributes
    ----------
    template
        The message; it may use every field of the scenario.
    answer
        How the answer is read.
    """

    kind: ClassVar[str] = "prompt"

    template: PromptText
    answer: AnswerContract

    @property
    def reads_labels(self) -> bool:
        return self.answer.reads_labels

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        values = filled(scenario)
        answer = await ask(self.opened(self.template.render(values), values))
        return answered(answer, self.answer.parse(answer, scenario))

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        return (Step("answer"),)

    def slots(self) -> Mapping[str, Slot]:
        return {**self.shared_slots(), "template": Slot(self.template)}
