"""What was read from one answer, and what every parser does before it reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = [
    "Reading",
    "is_conditional",
    "is_refusal",
    "sentence_before",
    "single_spaced",
    "stated_confidence",
    "unparsed",
    "visible_text",
    "without_thoughts",
]

_THOUGHTS: Final = re.compile(
    r"<(think|thinking|thought|reasoning|scratchpad)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL
)
_THOUGHT_END: Final = re.compile(
    r"\A.*</(?:think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE | re.DOTALL
)
_REFUSAL: Final = re.compile(
    r"\b(?:i['’]?m|i am|we are|we['’]re)\s+(?:\w+\s+){0,2}?(?:unable|not able|not allowed|not permitted)"
    r"\s+to\b"
    r"|\b(?:i|we)\s+(?:really\s+|simply\s+)?(?:cannot|can['’]?t|can not|won['’]?t|will not|must decline)\b"
    r"|\b(?:i|we)\s+(?:must|have to|need to)\s+(?:decline|refuse)\b"
    r"|\bi\s+(?:decline|refuse)\s+to\b"
    r"|\bas an? (?:ai|artificial intelligence|language model)\b"
    r"|\b(?:i['’]?m|i am) sorry,?\s+but\b",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"\b(?:if|unless|in case|should (?:he|she|they|it|you|your|the|symptoms|this|these|any)"
    r"|were (?:he|she|you|they) to)\b",
    re.IGNORECASE,
)
_NO_CONDITION: Final = re.compile(
    r"\bif (?:i|you) (?:had|have|were|am|are|must|need|want)\b|\bif (?:forced|pressed|asked|required)\b",
    re.IGNORECASE,
)
_REACH: Final = 400
_NUMBER: Final = r"(?<!\d)(?P<number>\d{1,6}(?:[.,]\d{1,6})?|\.\d{1,6})"
_CONFIDENCE: Final = re.compile(
    r"\b(?:confidence|certainty)(?:\s+(?:level|score|rating))?[\"'*`_]*\s*"
    r"(?:\(\s*\d+(?:\.\d+)?\s*%?\s*(?:-|–|to)\s*(?P<top>\d+(?:\.\d+)?)\s*%?\s*\))?[\"'*`_]*"
    r"\s*(?:is|of|at|=|:|-|–|—)*[\s\"'*`_~≈]*(?:about|approximately|around)?\s*"
    rf"(?:{_NUMBER}\s*(?P<unit>%|percent\b|(?:/|out of)\s*(?P<of>\d+))?"
    r"|(?P<word>(?:very\s+|moderately\s+)?(?:low|moderate|medium|high))\b)",
    re.IGNORECASE,
)
_CONFIDENT: Final = re.compile(
    rf"{_NUMBER}\s*(?P<unit>%|percent)\s*(?:confident|confidence(?! interval)|sure|certain)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The label that an answer states, or the reason why none was read.

    Attributes
    ----------
    label
        The label on the scale of the study; None where none was read.
    status
        `ok` or `unparsed`.
    reason
        Why nothing was read.
    stated
        The labels of all statements that count, in the order of the text; the last one is `label`.
    confidence
        The stated confidence as a share from 0 to 1.
    confidence_stated
        The same in the words of the answer, also where no number follows from them.
    fields
        What else a JSON answer holds.

    Examples
    --------
    >>> from triagestats.collect.answer_text import Reading
    >>> Reading("C").status
    'ok'
    """

    label: str | None = None
    status: Literal["ok", "unparsed"] = "ok"
    reason: str | None = None
    stated: tuple[str, ...] = ()
    confidence: float | None = None
    confidence_stated: str | None = None
    fields: Mapping[str, object] = field(default_factory=dict)


def unparsed(reason: str, stated: tuple[str, ...] = ()) -> Reading:
    """An answer that could not be read."""
    return Reading(None, "unparsed", reason, stated)


def without_thoughts(text: str) -> str:
    """An answer without what a model wrote to itself between tags."""
    text = _THOUGHTS.sub("", text)
    return _THOUGHT_END.sub("", text).strip()  # servers that cut the opening tag leave the closing one


def visible_text(text: str) -> str:
    """An answer without its thoughts, in the plain forms of its characters (full-width `Ｃ` becomes `C`).

    Examples
    --------
    >>> from triagestats.collect.answer_text import visible_text
    >>> visible_text("<think>B? No.</think>Answer： Ｃ")
    'Answer: C'
    """
    return unicodedata.normalize("NFKC", without_thoughts(text)).replace("\r\n", "\n").strip()


def single_spaced(text: str) -> str:
    """Text without runs of blanks, so that patterns need not look far: a bound on their time."""
    return re.sub(r"\n\s*\n", "\n\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def is_refusal(text: str) -> bool:
    """Whether an answer says that it will not answer; it is asked only where nothing else was read."""
    return _REFUSAL.search(text[:600]) is not None


def sentence_before(text: str, position: int) -> str:
    """The part of a sentence that stands before a position, at most 400 characters of it."""
    first = max(0, position - _REACH)
    start = max(text.rfind(mark, first, position) for mark in (". ", "! ", "? ", "\n", "; "))
    return text[max(start + 1, first) : position]


def is_conditional(text: str, position: int) -> bool:
    """Whether what stands at a position depends on an `if` before it in its sentence.

    `If I had to choose, the answer is C` depends on nothing that may happen to the patient.
    """
    before = sentence_before(text, position)
    return _CONDITION.search(before) is not None and _NO_CONDITION.search(before) is None


def stated_confidence(text: str) -> tuple[float | None, str | None]:
    """The confidence that an answer states last, as a share and in its own words.

    A number up to 1 without a unit is a share, a larger one a percentage.

    Examples
    --------
    >>> from triagestats.collect.answer_text import stated_confidence
    >>> stated_confidence("Answer: C. Confidence: 85%"), stated_confidence("Confidence (1-10): 8")
    ((0.85, '85%'), (0.8, '8'))
    """
    found = [*_CONFIDENCE.finditer(text), *_CONFIDENT.finditer(text)]
    if not found:
        return None, None
    last = max(found, key=lambda match: match.end())
    parts = last.groupdict()
    if parts.get("word"):
        return None, str(parts["word"]).lower()
    number = float(str(parts["number"]).replace(",", "."))
    unit = parts.get("unit") or ""
    top = float(parts.get("of") or parts.get("top") or (100 if unit or number > 1 else 1))
    stated = f"{parts['number']}{unit}"
    return (number / top if top > 0 and number <= top else None), stated
