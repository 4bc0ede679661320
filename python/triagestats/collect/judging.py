"""What judges have in common, and the judge of the disposition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from triagestats.collect.answer_text import visible_text, without_thoughts
from triagestats.collect.contract import (
    Answer,
    Ask,
    Judge,
    Misfit,
    Parsed,
    Scenario,
    Slot,
    Step,
    Trace,
)
from triagestats.collect.json_answers import find_object, value_at
from triagestats.collect.parsers import AnswerContract, JsonAnswer
from triagestats.collect.protocols.common import (
    OptionalPrompt,
    chat,
    filled,
    packaged,
)
from triagestats.collect.templates import PromptText

__all__ = ["UNREAD", "DispositionJudge", "RubricJudge"]

_NOTHING_RECOMMENDED: Final = "no primary recommendation"
UNREAD: Final = "the verdict could not be read"


class RubricJudge(Judge):
    """What the judges have in common.

    A judge sees an answer as its reader does: thoughts between tags are kept in the table and not shown.

    Attributes
    ----------
    system
        The system prompt; none by default.
    rubric
        Text that the template puts before what is judged.
    template
        What the judge is asked.
    temperature
        Sent with the call; False sends none, for models that take none.
    """

    kind: ClassVar[str]
    provides: ClassVar[frozenset[str]] = frozenset({"answer", "rubric"})

    system: OptionalPrompt = None
    rubric: OptionalPrompt = None
    template: PromptText
    temperature: float | bool = 0.0

    async def run(self, scenario: Scenario, trace: Trace, ask: Ask) -> tuple[Parsed, ...]:
        own = trace.parsed[0] if trace.parsed else None
        if own is not None and own.status == "unscored":
            return self._without(scenario, "unscored", own.reason)
        if not visible_text(trace.text):
            said = own.reason if own is not None and own.status == "unparsed" else "empty answer"
            return self._without(scenario, "unparsed", said)
        try:
            given = self._given(scenario)
        except Misfit as lack:
            return self._without(scenario, "unscored", f"`{lack.path[0]}` of judge {self.name!r} {lack}")
        values = {**self._visible(scenario), **given, "answer": without_thoughts(trace.text)}
        values["rubric"] = None if self.rubric is None else self.rubric.render(values)
        system = None if self.system is None else self.system.render(values)
        messages = chat(self.template.render(values), system)
        more: dict[str, Any] = {} if self.temperature is False else {"temperature": float(self.temperature)}
        verdict = await ask(messages, role="judge", **more)
        return self._read(verdict, given)

    def _without(
        self, scenario: Scenario, status: Literal["unparsed", "unscored"], reason: str | None
    ) -> tuple[Parsed, ...]:
        """Rows of an answer that is not judged."""
        return tuple(Parsed(None, status, reason, metric=metric) for metric in self.measures(scenario))

    def _visible(self, scenario: Scenario) -> Mapping[str, Any]:
        """The fields of the scenario that a template may use."""
        return filled(scenario)

    @abstractmethod
    def _given(self, scenario: Scenario) -> dict[str, Any]:
        """What the judge is given beside the answer; `Misfit` where the scenario lacks it."""

    @abstractmethod
    def _read(self, verdict: Answer, given: Mapping[str, Any]) -> tuple[Parsed, ...]:
        """What a verdict says."""

    def steps(self) -> tuple[Step, ...]:
        return (Step("judge"),)

    def slots(self) -> Mapping[str, Slot]:
        named = {"system": self.system, "rubric": self.rubric, "template": self.template}
        return {key: Slot(one, self.provides) for key, one in named.items() if one is not None}


class DispositionJudge(RubricJudge):
    """Says which level an answer recommends, by its primary recommendation and not its contingency advice.

    Attributes
    ----------
    scale
        What each level means, from least to most urgent; by default the levels of the study.
    template
        What the judge is asked; it may use `answer`, `scale`, `rubric` and the fields of the scenario.
    answer
        How the verdict is read; by default JSON with the key `label`, which our template asks for. The word
        NONE, or null, says that nothing is recommended: the status is then `deferred`.
    """

    kind: ClassVar[str] = "disposition"
    provides: ClassVar[frozenset[str]] = frozenset({"answer", "rubric", "scale"})
    reads_labels: ClassVar[bool] = True

    scale: dict[str, str]
    template: PromptText = Field(default_factory=packaged("judge_disposition"))
    answer: AnswerContract

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        levels = info.context["setting"].levels if info.context else None
        if "scale" not in data:
            if levels is None:
                raise ValueError(
                    '`scale` must name the levels, such as { A = "rest" }, where the study has no `levels`'
                )
            data = {**data, "scale": dict.fromkeys(levels, "")}
        return {"answer": {"kind": "json", "field": "label", "options": list(data["scale"])}, **data}

    @model_validator(mode="after")
    def _reads_labels(self) -> Self:
        if not self.answer.reads_labels:
            raise ValueError("`answer` must read a label: `json`, `letter` or `label`")
        return self

    def _given(self, scenario: Scenario) -> dict[str, Any]:  # noqa: ARG002 - the same for all
        return {"scale": self.scale}

    def _read(self, verdict: Answer, given: Mapping[str, Any]) -> tuple[Parsed, ...]:  # noqa: ARG002
        parsed = self.answer.parse(verdict, Scenario("", {}))
        if parsed.label is None and self._says_none(verdict):
            return (Parsed(None, "deferred", _NOTHING_RECOMMENDED),)
        return (parsed,)

    def _says_none(self, verdict: Answer) -> bool:
        text = visible_text(verdict.text)
        if isinstance(self.answer, JsonAnswer):
            found = find_object(text, self.answer.field)
            if found is None:
                return False
            value = value_at(found, self.answer.field)
            named = {name.lower() for name in found}
            return (value is None and self.answer.field.lower() in named) or _is_none(value)
        return _is_none(text.strip("*`_. \n").split()[-1] if text else "")


def _is_none(value: object) -> bool:
    return isinstance(value, str) and value.strip(" .").lower() in ("none", "null", "no recommendation")
