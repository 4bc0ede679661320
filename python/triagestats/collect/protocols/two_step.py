"""Two calls of the same model: put the story into another form, then reason from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from triagestats.collect.answer_text import without_thoughts
from triagestats.collect.contract import Answer, Ask, Scenario, Slot, Step, Trace
from triagestats.collect.json_answers import find_object
from triagestats.collect.parsers import AnswerContract, FreeText
from triagestats.collect.protocols.common import (
    Asked,
    OptionalPrompt,
    answered,
    chat,
    filled,
    packaged,
    scale_answer,
    spoken,
    text_field,
)
from triagestats.collect.templates import PromptText

__all__ = ["TwoStep"]

_SCHEMA: Final[dict[str, Any]] = {
    "age": "number of years",
    "sex": "text",
    "complaint": "text",
    "onset": "text",
    "course": "text",
    "severity": "text",
    "other_symptoms": ["text"],
    "denied": ["text"],
    "history": ["text"],
    "medicines": ["text"],
    "measurements": {"name": "value with unit"},
    "asks_for": "text",
}
_FIRST: Final = frozenset({"story", "schema"})
_SECOND: Final = frozenset({"story", "schema", "first", "extracted", "scale"})


def _from_file(value: object, info: ValidationInfo) -> object:
    """A schema from a JSON file, relative to the study file."""
    if not isinstance(value, dict) or set(value) != {"file"} or not isinstance(value["file"], str):
        return value
    folder = info.context["setting"].folder if info.context else Path()
    path = folder / value["file"]
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as JSON: {error}") from None


class TwoStep(Asked):
    """A first call that puts the story into another form, and a second one that answers from it.

    Attributes
    ----------
    first
        `rewrite`: a neutral note, from which the second call answers; `extract`: a JSON object, from
        which it answers; `story_and_schema`: it gets the story as well as the object.
    source_field
        Column of the scenario with the story.
    schema
        What is extracted: a JSON schema or an example of the object, in the study file or as
        `{ file = "schema.json" }`.
    first_system, first_template
        The prompts of the first call; they may use `story` and `schema`.
    template
        The message of the second call; it may use `story`, `schema`, `first`, `extracted` and `scale`.
    scale
        What each letter means.
    json_mode
        Whether the endpoint is asked for a JSON object in the first call (`response_format`).
    answer
        How the second answer is read; by default a letter of `scale`, else free text.

    Notes
    -----
    Where the first answer holds no JSON object, it is passed on as it came, and the feature `extraction`
    says `raw`.
    """

    kind: ClassVar[str] = "two_step"

    first: Literal["rewrite", "extract", "story_and_schema"] = "rewrite"
    source_field: str = "text"
    extraction_schema: Annotated[dict[str, Any], BeforeValidator(_from_file)] = Field(
        default=_SCHEMA, alias="schema"
    )
    first_system: OptionalPrompt = None
    first_template: PromptText = Field(default_factory=packaged("two_step_extract"))
    template: PromptText = Field(default_factory=packaged("two_step_reason"))
    scale: dict[str, str] = Field(default_factory=dict)
    json_mode: bool = False
    answer: AnswerContract = Field(default_factory=FreeText)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("first", "rewrite") == "rewrite":
            data = {"first_template": {"prompt": "two_step_rewrite"}, **data}
        return scale_answer(data)

    @property
    def reads_labels(self) -> bool:
        return self.answer.reads_labels

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        story = text_field(scenario, self.source_field, "source_field")
        schema = json.dumps(self.extraction_schema, indent=2, ensure_ascii=False)
        values = filled(scenario, story=story, schema=schema)
        system = None if self.first_system is None else self.first_system.render(values)
        first = chat(self.first_template.render(values), system)
        rewrites = self.first == "rewrite"
        more: dict[str, Any] = {}
        if self.json_mode and not rewrites:
            more["response_format"] = {"type": "json_object"}
        middle = await ask(first, role="rewrite" if rewrites else "extract", **more)
        extracted, found = self._extracted(middle)
        values |= {"extracted": extracted, "first": self.first, "scale": self.scale}
        second = self.opened(self.template.render(values), values)
        answer = await ask(second, role="reason")
        features: dict[str, Any] = {"first_text": middle.text}
        if found is not None:
            features["extraction"] = found
        return answered(
            answer, self.answer.parse(answer, scenario), (*spoken(first, middle.text), *second), **features
        )

    def _extracted(self, middle: Answer) -> tuple[str, str | None]:
        """What the second call gets, and whether it is a JSON object or the raw answer."""
        text = without_thoughts(middle.text)
        if self.first == "rewrite":
            return text, None
        found = find_object(text)
        if found is None:
            return text, "raw"
        return json.dumps(found, indent=2, ensure_ascii=False), "json"

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        return (Step("rewrite" if self.first == "rewrite" else "extract"), Step("reason"))

    def slots(self) -> Mapping[str, Slot]:
        slots = {**self.shared_slots(_SECOND), "template": Slot(self.template, _SECOND)}
        slots["first_template"] = Slot(self.first_template, _FIRST)
        if self.first_system is not None:
            slots["first_system"] = Slot(self.first_system, _FIRST)
        return slots

    def check(self, scenario: Scenario) -> None:
        text_field(scenario, self.source_field, "source_field")
