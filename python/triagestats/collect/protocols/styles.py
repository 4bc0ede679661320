"""A multiple-choice item, answered directly or step by step, with or without a word on style (B1 to B4)."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from triagestats.collect.contract import Ask, Misfit, Scenario, Slot, Step, Trace
from triagestats.collect.parsers import JsonAnswer, LetterAnswer
from triagestats.collect.protocols.common import (
    Asked,
    answered,
    filled,
    in_seeded_order,
    list_field,
    packaged,
    text_field,
)
from triagestats.collect.protocols.masking import mask_stem
from triagestats.collect.templates import PromptText

__all__ = ["Style"]

_ALIASES: Final = {"B1": "direct", "B2": "step_by_step", "B3": "ignore_style", "B4": "both"}
_PROVIDES: Final = frozenset({"stem", "options", "letters", "style", "step_by_step", "ignore_style"})


def _spelled_out(value: object) -> object:
    return _ALIASES.get(value, value) if isinstance(value, str) else value


class Style(Asked):
    """A stem with options, asked in one of four ways.

    Attributes
    ----------
    style
        `direct` (B1), `step_by_step` (B2), `ignore_style` (B3: the way in which it is told must not
        matter) or `both` (B4).
    stem_field, options_field
        Columns of the scenario: the question, and its options as a list. The first option is A: gold labels
        are letters in this order, and so are the labels that come out.
    shuffle
        Whether options are shown in an order of their own for each scenario.
    seed
        Of that order; default the seed of the study.
    mask
        Percentage of the words of the stem, from its end, that are replaced by [MASK].
    template
        The message; it may use `stem`, `options` (text by letter, as shown), `letters`, `style`,
        `step_by_step` and `ignore_style`.
    answer
        How the letter is read: by default a letter in the text, or `{ kind = "json" }`.
    """

    kind: ClassVar[str] = "style"
    takes_options: ClassVar[bool] = False

    style: Annotated[
        Literal["direct", "step_by_step", "ignore_style", "both"], BeforeValidator(_spelled_out)
    ] = "direct"
    stem_field: str = "stem"
    options_field: str = "options"
    shuffle: bool = False
    seed: int = 1
    mask: int = Field(default=0, ge=0, le=100)
    template: PromptText = Field(default_factory=packaged("multiple_choice"))
    answer: Annotated[LetterAnswer | JsonAnswer, Field(discriminator="kind")] = Field(
        default_factory=LetterAnswer
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if isinstance(data.get("answer"), str):
            data["answer"] = {"kind": data["answer"]}
        if "seed" not in data and info.context:
            data["seed"] = info.context["setting"].seed
        return data

    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        options = self._options(scenario)
        letters = string.ascii_uppercase[: len(options)]
        order = in_seeded_order(options, self.seed, scenario.id) if self.shuffle else range(len(options))
        original = dict(zip(letters, (letters[position] for position in order), strict=True))
        values = filled(
            scenario,
            stem=mask_stem(text_field(scenario, self.stem_field, "stem_field"), self.mask),
            options={shown: options[letters.index(letter)] for shown, letter in original.items()},
            letters=list(letters),
            style=self.style,
            step_by_step=self.style in ("step_by_step", "both"),
            ignore_style=self.style in ("ignore_style", "both"),
        )
        answer = await ask(self.opened(self.template.render(values), values))
        to_label = self.answer.label_map
        labels = {shown: to_label.get(letter, letter) for shown, letter in original.items()}
        features: dict[str, Any] = {}
        if self.shuffle:
            features["option_order"] = " ".join(original.values())
        if self.mask:
            features["masked_share"] = self.mask / 100
        return answered(answer, self.answer.read(answer, labels), **features)

    def _options(self, scenario: Scenario) -> tuple[str, ...]:
        options = list_field(scenario, self.options_field, "options_field")
        if not 2 <= len(options) <= len(string.ascii_uppercase):
            raise Misfit(("options_field",), f"must hold 2 to 26 options; got {len(options)}")
        return options

    def steps(self, scenario: Scenario) -> tuple[Step, ...]:  # noqa: ARG002 - the same for all
        return (Step("answer"),)

    def slots(self) -> Mapping[str, Slot]:
        return {**self.shared_slots(_PROVIDES), "template": Slot(self.template, _PROVIDES)}

    def check(self, scenario: Scenario) -> None:
        text_field(scenario, self.stem_field, "stem_field")
        self._options(scenario)
