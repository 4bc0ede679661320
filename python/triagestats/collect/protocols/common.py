"""What several protocols do: messages, the fields of a scenario, the contract that goes with a scale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, model_validator

from triagestats.collect.contract import Answer, Message, Misfit, Parsed, Protocol, Scenario, Slot, Trace
from triagestats.collect.parsers import LabelContract
from triagestats.collect.templates import PromptText, Template, packaged_prompt

__all__ = [
    "Asked",
    "OptionalPrompt",
    "answered",
    "chat",
    "filled",
    "in_seeded_order",
    "list_field",
    "packaged",
    "scale_answer",
    "spoken",
    "text_field",
]


def _none_if_empty(value: object) -> object:
    """In toml, which has no null, `false` and the empty text stand for no prompt."""
    return None if value is False or value == "" else value


OptionalPrompt = Annotated[PromptText | None, BeforeValidator(_none_if_empty)]
"""A prompt, or none: also `false` or the empty text, so that none can be a level of a factor."""


class Asked(Protocol):
    """A protocol that asks with a system prompt, and an instruction before the message, where there are any.

    Attributes
    ----------
    system
        The system prompt; none is sent by default.
    instruction
        Put before the message, a blank line between.
    """

    takes_options: ClassVar[bool] = True
    """Whether its contracts must name their options; others read those of the scenario."""

    system: OptionalPrompt = None
    instruction: OptionalPrompt = None

    @model_validator(mode="after")
    def _has_options(self) -> Self:
        for key in type(self).model_fields if self.takes_options else ():
            contract = getattr(self, key)
            if isinstance(contract, LabelContract) and not contract.options:
                raise ValueError(
                    f"`{key}` must name its `options`, or a `label_map`, where the study has no `levels`"
                )
        return self

    @property
    def reads_labels(self) -> bool:
        """Whether the contract brings a label, to be compared with the gold label."""
        return True

    def opened(self, user: str, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages that come before the answer."""
        if self.instruction is not None:
            user = f"{self.instruction.render(values)}\n\n{user}"
        return chat(user, None if self.system is None else self.system.render(values))

    def shared_slots(self, provides: Iterable[str] = ()) -> dict[str, Slot]:
        """The slots of `system` and `instruction`."""
        named = {"system": self.system, "instruction": self.instruction}
        return {
            key: Slot(template, frozenset(provides))
            for key, template in named.items()
            if template is not None
        }


def chat(user: str, system: str | None = None) -> tuple[Message, ...]:
    """One message, after a system prompt where there is one."""
    message = Message(role="user", content=user)
    return (message,) if system is None else (Message(role="system", content=system), message)


def spoken(messages: Sequence[Message], *answers: str) -> tuple[Message, ...]:
    """Messages and the answers to them, as a transcript."""
    return (*messages, *(Message(role="assistant", content=answer) for answer in answers))


def filled(scenario: Scenario, **provided: Any) -> dict[str, Any]:
    """What a template may use: the fields of the scenario, and over them what the protocol gives."""
    return {**scenario.fields, **provided}


def packaged(name: str) -> Any:
    """The default of a field that holds a prompt of the package."""

    def default() -> Template:
        return packaged_prompt(name)

    return default


def text_field(scenario: Scenario, name: str, key: str) -> str:
    """A field of a scenario that must hold text.

    Raises
    ------
    Misfit
        If it is absent or blank; `key` is the key of the study file that names it.
    """
    value = scenario.fields.get(name)
    if value is None or not str(value).strip():
        raise Misfit((key,), f"names {name!r}, where a scenario must have text; it has none")
    return str(value)


def list_field(scenario: Scenario, name: str, key: str) -> tuple[str, ...]:
    """A field of a scenario that must hold a list: of a jsonl line, JSON text, or text with lines.

    A mapping, such as of letters to options, gives its values in the order of its keys.

    Raises
    ------
    Misfit
        If it is absent or holds nothing of the kind.
    """
    value = scenario.fields.get(name)
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except ValueError:
            raise Misfit(
                (key,), f"names {name!r}, which looks like JSON and cannot be read as such"
            ) from None
    if isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    if isinstance(value, Mapping):
        value = [value[name] for name in sorted(value, key=str)]
    if (
        not isinstance(value, list | tuple)
        or not value
        or any(isinstance(item, dict | list) for item in value)
    ):
        raise Misfit(
            (key,),
            f"names {name!r}, where a scenario must have a list: of jsonl, as JSON text, or one item a line",
        )
    return tuple(str(item) for item in value)


def in_seeded_order(items: Sequence[str], seed: int, name: str) -> tuple[int, ...]:
    """Positions in an order that depends on nothing but the seed and a name.

    Positions are sorted by a hash, so that the order is the same on every platform and version.
    """
    keys = [hashlib.sha256(f"{seed}\n{name}\n{position}".encode()).digest() for position in range(len(items))]
    return tuple(sorted(range(len(items)), key=keys.__getitem__))


def scale_answer(data: Any, key: str = "answer") -> Any:
    """Fill in the contract of a table that gives a `scale`: the letter of one of its entries."""
    if isinstance(data, dict) and key not in data and isinstance(scale := data.get("scale"), dict) and scale:
        letters = all(len(str(name)) == 1 for name in scale)
        data = {**data, key: {"kind": "letter" if letters else "label", "options": list(scale)}}
    return data


def answered(answer: Answer, parsed: Parsed, asked: Sequence[Message] = (), **features: Any) -> Trace:
    """The trace of a last answer; with `asked`, the transcript of the steps before it, too."""
    transcript = spoken(asked, answer.text) if asked else ()
    return Trace(answer.text, (parsed,), transcript, features)
