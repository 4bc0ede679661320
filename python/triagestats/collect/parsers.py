"""Answer contracts: what a condition asks for, and how it is read from the answer."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from triagestats.collect.answer_text import Reading, is_refusal, stated_confidence, unparsed, visible_text
from triagestats.collect.contract import Answer, Contract, Parsed, Scenario
from triagestats.collect.dispositions import parse_disposition
from triagestats.collect.features import text_features
from triagestats.collect.json_answers import Repeated, find_object, value_at
from triagestats.collect.letters import parse_letter

__all__ = ["AnswerContract", "FreeText", "JsonAnswer", "LabelAnswer", "LabelContract", "LetterAnswer"]

_CUT_OFF: Final = "cut off at the token limit"
_FILTERED: Final = "stopped by the content filter"


class LabelContract(Contract):
    """An answer that states a label.

    Attributes
    ----------
    options
        What may be stated; by default the keys of `label_map`, else the levels of the study.
    label_map
        The level that each option stands for, where it is not the level itself.
    markers
        Words that announce the answer, for other languages than English (`Antwort`).
    text_features
        Whether the features of the text become columns.
    """

    options: tuple[str, ...] | None = None
    label_map: dict[str, str] = Field(default_factory=dict)
    markers: tuple[str, ...] = ()
    text_features: bool = False

    @property
    def reads_labels(self) -> bool:
        """Whether a label comes out, to be compared with the gold label."""
        return True

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any, info: ValidationInfo) -> Any:
        setting = info.context["setting"] if info.context else None
        levels = setting.levels if setting is not None else None
        if not isinstance(data, dict):
            return data
        data = dict(data)
        to_label = data.get("label_map") or {}
        options = data.get("options") or tuple(to_label) or levels
        if isinstance(options, str):
            options = tuple(options)
        data["options"] = options
        if not isinstance(to_label, dict) or not isinstance(options, list | tuple):
            return data
        if unknown := [name for name in to_label if name not in options]:
            raise ValueError(f"`label_map` names {unknown}, which are not among the options {list(options)}")
        labels = [to_label.get(option, option) for option in options]
        if levels and (outside := [label for label in labels if label not in levels]):
            raise ValueError(
                f"`label_map` must lead to the levels {list(levels)} of the study; {outside} are none of them"
            )
        return data

    @model_validator(mode="after")
    def _check(self) -> LabelContract:
        self._check_options()
        return self

    def _check_options(self) -> None:
        """Refuse options that cannot be read."""

    def parse(self, answer: Answer, scenario: Scenario) -> Parsed:  # noqa: ARG002 - the same for all
        return self.read(answer, {name: self.label_map.get(name, name) for name in self.options or ()})

    def read(self, answer: Answer, labels: Mapping[str, str]) -> Parsed:
        """Read an answer whose options are not those of the study file, such as shuffled ones.

        Parameters
        ----------
        answer
            What came back.
        labels
            The label by what may be stated.
        """
        text = visible_text(answer.text)
        reading = _explained(self._reading(text, labels), answer)
        return _parsed(reading, text, self.text_features)

    @abstractmethod
    def _reading(self, text: str, labels: Mapping[str, str]) -> Reading:
        """The label of a visible text."""


class LetterAnswer(LabelContract):
    """A letter: `Answer: C`.

    Examples
    --------
    >>> from triagestats.collect.contract import Answer, Scenario
    >>> from triagestats.collect.parsers import LetterAnswer
    >>> contract = LetterAnswer(options="ABCD")
    >>> contract.parse(Answer("key", "**Answer: C**"), Scenario("s", {})).label
    'C'
    """

    kind: Literal["letter"] = "letter"

    def _check_options(self) -> None:
        odd = [option for option in self.options or () if len(option) != 1 or not option.isalpha()]
        if odd:
            raise ValueError(
                f'`options` must be letters for `kind = "letter"`; got {odd}: map letters to labels with '
                '`label_map = { A = "..." }`, or use `kind = "label"`'
            )

    def _reading(self, text: str, labels: Mapping[str, str]) -> Reading:
        upper = {letter.upper(): label for letter, label in labels.items()}
        return parse_letter(text, tuple(upper), label_map=upper, markers=self.markers)


class LabelAnswer(LabelContract):
    """A label in prose or markdown: `**Disposition:** ED_NOW`.

    Examples
    --------
    >>> from triagestats.collect.contract import Answer, Scenario
    >>> from triagestats.collect.parsers import LabelAnswer
    >>> contract = LabelAnswer(label_map={"ED_NOW": "D", "HOME": "A"})
    >>> contract.parse(Answer("key", "Triage: ED now"), Scenario("s", {})).label
    'D'
    """

    kind: Literal["label"] = "label"

    def _reading(self, text: str, labels: Mapping[str, str]) -> Reading:
        return parse_disposition(text, labels, markers=self.markers)


class JsonAnswer(LabelContract):
    """A JSON object with the label under a key, with or without fences.

    Attributes
    ----------
    field
        The key of the label; `result.triage` reaches into an object.
    confidence_field
        The key of the confidence.
    keep
        Keys that become columns, `json_KEY`.

    Examples
    --------
    >>> from triagestats.collect.contract import Answer, Scenario
    >>> from triagestats.collect.parsers import JsonAnswer
    >>> contract = JsonAnswer(options="ABCD", field="triage")
    >>> contract.parse(Answer("key", 'Sure: {"triage": "C", "confidence": 70}'), Scenario("s", {})).confidence
    0.7
    """

    kind: Literal["json"] = "json"
    field: str = "answer"
    confidence_field: str = "confidence"
    keep: tuple[str, ...] = ()

    def _reading(self, text: str, labels: Mapping[str, str]) -> Reading:
        if not text:
            return unparsed("empty answer")
        found = find_object(text, self.field)
        if found is None:
            return unparsed("refusal" if is_refusal(text) and "{" not in text else "no JSON object")
        fields = {f"json_{name}": _plain(value_at(found, name)) for name in self.keep}
        share, stated = _json_confidence(value_at(found, self.confidence_field))
        reading = self._value(value_at(found, self.field), labels)
        return Reading(reading.label, reading.status, reading.reason, reading.stated, share, stated, fields)

    def _value(self, value: Any, labels: Mapping[str, str]) -> Reading:
        if value is None:
            return unparsed(f"no key {self.field!r} in the JSON object")
        several = list(value) if isinstance(value, list | Repeated) else [value]
        readings = [self._one(one, labels) for one in several]
        different = dict.fromkeys(one.label for one in readings if one.label is not None)
        if len(different) > 1:
            return unparsed(f"two different labels: {', '.join(sorted(different))}", tuple(different))
        return readings[0] if readings else unparsed(f"nothing under the key {self.field!r}")

    def _one(self, value: Any, labels: Mapping[str, str]) -> Reading:
        written = json.dumps(value) if isinstance(value, dict | bool | list) else str(value).strip()
        if written in labels:
            return Reading(labels[written], stated=(labels[written],))
        if all(len(name) == 1 for name in labels):
            upper = {name.upper(): label for name, label in labels.items()}
            return parse_letter(written, tuple(upper), label_map=upper)
        reading = parse_disposition(f"label: {written}", labels)
        if reading.reason != "no label":
            return reading
        return unparsed(f"{written[:60]!r} is not among {', '.join(labels)}")


class FreeText(Contract):
    """Free text, for judges to read; no label comes out.

    Attributes
    ----------
    text_features
        Whether the features of the text become columns, and an answer that only asks back gets the status
        `deferred`.

    Examples
    --------
    >>> from triagestats.collect.contract import Answer, Scenario
    >>> from triagestats.collect.parsers import FreeText
    >>> FreeText().parse(Answer("key", "How old are you?"), Scenario("s", {})).status
    'deferred'
    """

    kind: Literal["text"] = "text"
    text_features: bool = True

    @property
    def reads_labels(self) -> bool:
        """Whether a label comes out, to be compared with the gold label."""
        return False

    def parse(self, answer: Answer, scenario: Scenario) -> Parsed:  # noqa: ARG002 - the same for all
        text = visible_text(answer.text)
        if not text:
            return _parsed(_explained(unparsed("empty answer"), answer), text, self.text_features)
        features = text_features(text)
        asks_or_advises = features.recommendation or features.information_seeking
        if answer.refusal or (is_refusal(text) and not asks_or_advises and not features.measurement_request):
            return _parsed(unparsed("refusal"), text, self.text_features)
        parsed = _parsed(Reading(None), text, self.text_features)
        if not (self.text_features and features.deferred):
            return parsed
        reason = "asks for information and recommends nothing"
        return Parsed(None, "deferred", reason, parsed.confidence, features=parsed.features)


def _explained(reading: Reading, answer: Answer) -> Reading:
    """A better reason where the endpoint gives one."""
    if reading.status == "ok":
        return reading
    reason = reading.reason
    if answer.refusal:
        reason = "refusal"
    elif answer.finish_reason == "content_filter":
        reason = _FILTERED
    elif answer.finish_reason == "length":
        reason = f"{_CUT_OFF}; {reading.reason}"
    return Reading(
        None,
        "unparsed",
        reason,
        reading.stated,
        reading.confidence,
        reading.confidence_stated,
        reading.fields,
    )


def _parsed(reading: Reading, text: str, with_features: bool) -> Parsed:
    share, stated = reading.confidence, reading.confidence_stated
    if stated is None:
        share, stated = stated_confidence(text)
    columns: dict[str, Any] = dict(reading.fields)
    if stated is not None and share is None:
        columns["confidence_stated"] = stated
    if len(set(reading.stated)) > 1:
        columns["stated_labels"] = " > ".join(reading.stated)
    if with_features:
        columns |= text_features(text).columns()
    return Parsed(reading.label, reading.status, reading.reason, share, features=columns)


def _json_confidence(value: Any) -> tuple[float | None, str | None]:
    if value is None or isinstance(value, bool | dict | list):
        return None, None
    return stated_confidence(f"confidence: {value}")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else json.dumps(value)


def _named(value: object) -> object:
    """`answer = "letter"` is short for `answer = { kind = "letter" }`."""
    return {"kind": value} if isinstance(value, str) else value


AnswerContract = Annotated[
    Annotated[LetterAnswer | LabelAnswer | JsonAnswer | FreeText, Field(discriminator="kind")],
    BeforeValidator(_named),
]
"""The field that holds a contract in the study file."""
