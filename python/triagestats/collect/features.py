"""What a text does beside answering: escalates on a condition, asks, wants a measurement, or puts off."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Final

from triagestats.collect.feature_patterns import (
    ASKS,
    CARE,
    CONDITION,
    ESCALATION,
    MEASURES,
    NOT,
    OFFER,
    OTHERS_MEASURE,
    RHETORICAL,
    SEEKS,
    TELL,
)

__all__ = ["TextFeatures", "questions", "requests", "sentences", "text_features"]

_BOUNDARY: Final = re.compile(r"(?<=[.!?？])[\"'”’)*_]*\s+|\n+|(?<=[？！。])")
_LIST_MARK: Final = re.compile(r"^[\s#>]*(?:[-•*+–]\s+|\(?\d{1,2}[.)]\s+)*[*_]*")
_QUOTED: Final = re.compile(r"[\"“][^\"“”\n]{0,300}[\"”]")


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """Features of a text, each by a rule on its sentences.

    Attributes
    ----------
    conditional_escalation
        A sentence sends to more urgent care if something happens (`Call 911 if you faint`).
    direct_question
        A question to the patient about facts; no offer (`Would you like me to ...?`), no heading
        (`When should you worry?`), nothing in quotation marks.
    information_seeking
        A direct question, or a request for facts in other words (`Please tell me how long`).
    measurement_request
        The patient is to measure something, or is asked for a measured value.
    recommendation
        A sentence names a place or a time of care, or care at home, or says that no care is needed, without
        a condition.
    deferred
        `information_seeking` or `measurement_request` without a `recommendation`: the text puts the
        decision off.
    n_questions
        The number of direct questions.

    Examples
    --------
    >>> from triagestats.collect.features import text_features
    >>> text_features("How long has it hurt? Call 911 if you faint.").deferred
    True
    """

    conditional_escalation: bool
    direct_question: bool
    information_seeking: bool
    measurement_request: bool
    recommendation: bool
    deferred: bool
    n_questions: int

    def columns(self) -> dict[str, bool | int]:
        """The features by column."""
        return asdict(self)


def text_features(text: str) -> TextFeatures:
    """The features of a text.

    Notes
    -----
    The rules know English. They are screens, not judges: they look at one sentence at a time, a heading and
    the items below it are joined where the heading ends with a colon.
    """
    parts = _joined(sentences(_QUOTED.sub('""', text)))
    asked = questions(text)
    conditional = any(ESCALATION.search(part) and CONDITION.search(part) for part in parts)
    recommended = any(_recommends(part) for part in parts)
    measure = any(MEASURES.search(part) and not OTHERS_MEASURE.search(part) for part in parts)
    seeks = bool(asked) or any(SEEKS.search(part) for part in parts)
    return TextFeatures(
        conditional_escalation=conditional,
        direct_question=bool(asked),
        information_seeking=seeks,
        measurement_request=measure,
        recommendation=recommended,
        deferred=(seeks or measure) and not recommended,
        n_questions=len(asked),
    )


def sentences(text: str) -> list[str]:
    """Sentences and lines of a text, without list marks and emphasis."""
    plain = re.sub(r"[*`]+|__", "", text)
    found = (_LIST_MARK.sub("", part).strip() for part in _BOUNDARY.split(plain))
    return [part for part in found if part]


def questions(text: str) -> tuple[str, ...]:
    """The direct questions of a text, in order.

    Examples
    --------
    >>> from triagestats.collect.features import questions
    >>> questions("Since when? Do you have a fever? When should you worry? Would you like a list?")
    ('Since when?', 'Do you have a fever?')
    """
    found = []
    for part in sentences(_QUOTED.sub('""', text)):
        if not part.rstrip("\"'”’)").endswith(("?", "？")):
            continue
        heading = RHETORICAL.search(part) is not None and not re.search(r"\byour\b", part, re.IGNORECASE)
        if not heading and not OFFER.search(part) and (ASKS.search(part) or len(part.split()) <= 6):
            found.append(part)
    return tuple(found)


def requests(text: str) -> tuple[str, ...]:
    """The direct questions of a text, and what it asks to be told in other words.

    Examples
    --------
    >>> from triagestats.collect.features import requests
    >>> requests("Tell me about the pain. Is it sharp? Let me know if you have questions.")
    ('Tell me about the pain.', 'Is it sharp?')
    """
    asked = set(questions(text))
    return tuple(part for part in sentences(_QUOTED.sub('""', text)) if part in asked or TELL.search(part))


def _joined(parts: list[str]) -> list[str]:
    """Sentences, where one that ends with a colon goes on with the next one."""
    found: list[str] = []
    for part in parts:
        if found and found[-1].endswith(":"):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found


def _recommends(sentence: str) -> bool:
    if sentence.endswith(("?", "？")):
        return False
    escalation = ESCALATION.search(sentence)
    if escalation is not None:
        before = sentence[: escalation.start()]
        if not CONDITION.search(sentence) and not NOT.search(before[-40:]):
            return True
    care = CARE.search(sentence)
    return care is not None and not CONDITION.search(sentence[: care.start()])
