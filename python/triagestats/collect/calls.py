"""One call of a model: everything that is sent, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from triagestats.collect.contract import Answer, Message, StepRole

__all__ = ["Call", "NoChoices", "Place", "answer_of", "canonical", "prompt_hash"]

_MOST_TOKENS: Final = 2**53
"""No answer has more; a larger number is no count, and the store could not hold it."""


class NoChoices(Exception):  # noqa: N818 - the caller decides what it is
    """What came back is no chat completion."""


@dataclass(frozen=True, slots=True)
class Place:
    """What an answer is for: a row of the plan."""

    scenario: str
    condition: str
    model: str
    repetition: int
    judge: str | None = None


@dataclass(frozen=True)
class Call:
    """A request to an endpoint.

    Attributes
    ----------
    place
        What it is for; no part of the key.
    role
        The step of the protocol; no part of the key.
    asked
        Name of the model of the study that is asked.
    url
        The endpoint.
    body
        Everything that is sent: model, messages, parameters.
    attempt
        Tells apart the same request made again for another answer.
    """

    place: Place
    role: StepRole
    asked: str
    url: str
    body: Mapping[str, Any]
    attempt: int = 0

    @cached_property
    def request(self) -> str:
        """The body as JSON, in one form whatever the order of its keys."""
        return canonical(self.body)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the endpoint, the body, the repetition and the attempt."""
        head = canonical([self.url, self.place.repetition, self.attempt])
        return hashlib.sha256(f"{head}\n{self.request}".encode()).hexdigest()


def canonical(value: object) -> str:
    """Plain values as JSON in one form, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def prompt_hash(messages: Sequence[Message]) -> str:
    """SHA-256 of the messages of a call."""
    return hashlib.sha256(canonical(list(messages)).encode()).hexdigest()


def answer_of(key: str, response: str, *, latency: float, asked_at: str) -> Answer:
    """The answer that a response holds.

    Raises
    ------
    NoChoices
        If the response is not JSON, or no chat completion with a choice.
    """
    try:
        body = json.loads(response)
    except ValueError:
        raise NoChoices(f"the response is not JSON: {_shown(response)}") from None
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise NoChoices(f"the response has no choices: {_shown(response)}")
    found = body.get("usage")
    usage = found if isinstance(found, dict) else {}
    return Answer(
        key=key,
        text=_text(message.get("content")),
        refusal=_word(message.get("refusal")),
        finish_reason=_word(first.get("finish_reason")),
        returned_model=_word(body.get("model")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency=latency,
        asked_at=asked_at,
    )


def _text(content: object) -> str:
    """The content of a message: text, or a list of parts of which some hold text."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    if not isinstance(content, str):
        return ""
    # An escape in JSON can be half of a character, which no other program would take.
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_TOKENS else None


def _shown(response: str) -> str:
    return repr(response if len(response) <= 120 else response[:120] + "...")
