"""Rewriting: a case in another voice, no fact added or dropped, checked by an auditor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import Field

from triagestats.collect.answer_text import without_thoughts
from triagestats.collect.contract import Ask, Message, Parsed, Protocol, Scenario, Slot, Step, Trace
from triagestats.collect.json_answers import find_object, value_at
from triagestats.collect.protocols.common import OptionalPrompt, chat, filled, packaged, spoken, text_field
from triagestats.collect.protocols.yes_no import as_bool, as_texts
from triagestats.collect.templates import PromptText

__all__ = ["Rewriting"]

_GIVEN: Final = frozenset({"story", "voice", "question"})
_PATIENT: Final = "the patient, in the first person, in everyday words, as in a message typed on a phone"
_FAULTS: Final = (("added", "it adds"), ("dropped", "it drops"), ("changed", "it changes"))


class Rewriting(Protocol):
    """A case told again in a given voice, until an auditor finds no fact added, dropped or changed.

    Attributes
    ----------
    auditor
        Name of the model that compares the rewrite with the case; it is asked at temperature 0.
    voice
        Whose voice, in words; by default that of a patient.
    question
        The sentence with which a rewrite must end.
    source_field
        Column of the scenario with the case.
    system, template
        The prompts of the writer; they may use `story`, `voice` and `question`.
    again_template
        What the writer is told after a failure; it may use `faults`, too.
    audit_template
        What the auditor is asked; it may use `rewrite`, too.
    max_attempts
        How often a rewrite is written at most.
    versions
        Version by scenario, for rewrites that a review has replaced: a higher one is written anew.

    Notes
    -----
    The rewrite is the answer of this condition; features tell its version, the number of audits, whether
    the last one was passed, and what it found. A rewrite that never passes has the status `unparsed`.
    An audit that cannot be read does not pass.
    """

    kind: ClassVar[str] = "rewriting"

    auditor: str
    voice: str = Field(default=_PATIENT, min_length=1)
    question: str = Field(default="What should I do?", min_length=1)
    source_field: str = "text"
    system: OptionalPrompt = None
    template: PromptText = Field(default_factory=packaged("rewrite"))
    again_template: PromptText = Field(default_factory=packaged("rewrite_again"))
    audit_template: PromptText = Field(default_factory=packaged("audit"))
    max_attempts: int = Field(default=3, ge=1, le=20)
    versions: dict[str, int] = Field(default_factory=dict)

    @property
    def reads_labels(self) -> bool:
        """A rewrite is no answer to a case."""
        return False

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        story = text_field(scenario, self.source_field, "source_field")
        values = filled(scenario, story=story, voice=self.voice, question=self.question)
        system = None if self.system is None else self.system.render(values)
        first = chat(self.template.render(values), system)
        version = self.versions.get(scenario.id, 1)
        messages: tuple[Message, ...] = first
        rewrite, audits = "", 0
        faults: tuple[str, ...] = ()
        for number in range(self.max_attempts):
            attempt = (version - 1) * self.max_attempts + number
            answer = await ask(messages, role="rewrite", attempt=attempt)
            rewrite = without_thoughts(answer.text)
            faults = self._own_faults(rewrite)
            if not faults:
                audit = chat(self.audit_template.render({**values, "rewrite": rewrite}))
                said = await ask(audit, role="audit", model=self.auditor, temperature=0)
                faults = _found(said.text)
                audits += 1
            messages = spoken(messages, rewrite)
            if not faults:
                break
            if number + 1 < self.max_attempts and rewrite:
                again = self.again_template.render({**values, "faults": list(faults)})
                messages = (*messages, *chat(again))
            elif number + 1 < self.max_attempts:
                messages = first  # nothing came: there is nothing to correct
        features: dict[str, Any] = {
            "rewrite_version": version,
            "n_audits": audits,
            "audit_passed": not faults,
            "audit_faults": "; ".join(faults) or None,
        }
        parsed = Parsed(None)
        if faults:
            reason = f"no rewrite passed in {self.max_attempts} attempts: {'; '.join(faults)}"
            parsed = Parsed(None, "unparsed", reason)
        return Trace(rewrite, (parsed,), messages, features)

    def _own_faults(self, rewrite: str) -> tuple[str, ...]:
        """What needs no auditor."""
        if not rewrite:
            return ("it is empty",)
        ending = rewrite.rstrip().rstrip("\"'”’*_").rstrip()
        if not ending.endswith(self.question.strip()):
            return (f"it does not end with the question: {self.question.strip()}",)
        return ()

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        most = self.max_attempts
        return (Step("rewrite", at_most=most), Step("audit", self.auditor, at_least=0, at_most=most))

    def slots(self) -> Mapping[str, Slot]:
        slots = {
            "template": Slot(self.template, _GIVEN),
            "again_template": Slot(self.again_template, _GIVEN | {"faults"}),
            "audit_template": Slot(self.audit_template, _GIVEN | {"rewrite"}),
        }
        return slots if self.system is None else {**slots, "system": Slot(self.system, _GIVEN)}

    def check(self, scenario: Scenario) -> None:
        text_field(scenario, self.source_field, "source_field")


def _found(audit: str) -> tuple[str, ...]:
    """What an audit finds; nothing is a pass."""
    found = find_object(without_thoughts(audit), "same_urgency")
    if found is None:
        return ("its audit could not be read",)
    faults = []
    for key, words in _FAULTS:
        texts = as_texts(value_at(found, key))
        if texts is None:
            return ("its audit could not be read",)
        faults += [f"{words}: {text}" for text in texts]
    same = as_bool(value_at(found, "same_urgency"))
    if same is None:
        return ("its audit could not be read",)
    if not same:
        faults.append("it changes how urgent the case sounds")
    return tuple(faults)
