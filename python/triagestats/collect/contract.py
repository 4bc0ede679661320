"""What protocols, contracts and judges are to the runner: the only things they share with it.

A *protocol* is plain code: `await ask(messages)` is its only way to a model, and it returns a `Trace`.
The store keeps the answer of every `ask` under a hash of what was sent, so that a protocol is resumed, and
its answers read again, by running it once more. It must therefore be deterministic: no clock, no random
number that is not drawn from its own seed, and no state between runs.

A *contract* reads an answer. A *judge* is asked about a trace. All three are pydantic models: their fields
are the keys of the study file. `protocols.registry.build_conditions` and `judges.build_judges` make them of
the tables of the study file, with `Setting` as the context of validation; they raise pydantic's
ValidationError, with places relative to the table, or `Misfit`.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict

from triagestats.collect.templates import Template

__all__ = [
    "Answer",
    "Ask",
    "CallFailed",
    "Condition",
    "Contract",
    "Judge",
    "Message",
    "Misfit",
    "Parsed",
    "Protocol",
    "Scenario",
    "Setting",
    "Slot",
    "Step",
    "StepRole",
    "Strict",
    "Trace",
]

StepRole = Literal["rewrite", "audit", "extract", "reason", "turn", "match", "answer", "filter", "judge"]
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Message(typing.TypedDict):
    """One message of a chat, as it is sent."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is asked.

    Attributes
    ----------
    id
        Its name, of its own within a study.
    fields
        Every column of the scenario file by name: text, numbers, or what a jsonl line nests. Templates see
        them under their names.
    gold
        The right label, or a range such as `C/D`; None where the study has none.
    stratum, cluster
        Passed on to the response table.
    """

    id: str
    fields: Mapping[str, Any]
    gold: str | None = None
    stratum: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to one call, as the store keeps it.

    Attributes
    ----------
    key
        Hash of everything sent, the repetition and the attempt.
    text
        The content of the message; empty where there is none.
    refusal
        The refusal, where the endpoint marks one.
    finish_reason, returned_model
        As returned.
    prompt_tokens, completion_tokens
        As returned; None where the endpoint counts none.
    latency
        Seconds from sending to the answer, with the client's retries.
    asked_at
        When it was sent: UTC, ISO 8601.
    """

    key: str
    text: str
    refusal: str | None = None
    finish_reason: str | None = None
    returned_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency: float = 0.0
    asked_at: str = ""


class CallFailed(Exception):  # noqa: N818 - not an error of the caller
    """A call has no answer: protocols and judges let it pass, and the runner records it."""


class Ask(typing.Protocol):
    """Asks a model, or finds its answer in the store."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        role: StepRole = "answer",
        model: str | None = None,
        attempt: int = 0,
        **parameters: Any,
    ) -> Answer:
        """Send `messages` and give the answer back.

        Parameters
        ----------
        messages
            What is sent; text arrives unchanged.
        role
            What the call is for: a label in the store.
        model
            Name of a model of the study; default the one whose answer is collected (of a judge: its own).
        attempt
            Part of the key: the same messages sent again for another answer, as after a failed audit.
        **parameters
            Over those of the model, such as `temperature=0` or `response_format=...`.

        Raises
        ------
        CallFailed
            If there is no answer, now or for good.
        """


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an answer says, read by a contract or a judge: one row of the response table.

    Attributes
    ----------
    label
        The label that was given, on the scale of the study; None where none was read.
    status
        `ok`; `unparsed`, with the reason; `deferred`, where the answer declines to decide by rule;
        `unscored`, where nothing was asked because the item was left out.
    reason
        The status in words.
    confidence
        The confidence that the answer states, as a share of 1.
    score
        A score that was read rather than a label (equivalence, counts, recall); the label is then not
        compared with the gold one.
    metric
        What the score measures, where one answer is read for several.
    features
        Further columns by name: plain values.
    """

    label: str | None
    status: Literal["ok", "unparsed", "deferred", "unscored"] = "ok"
    reason: str | None = None
    confidence: float | None = None
    score: float | None = None
    metric: str | None = None
    features: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Trace:
    """What a protocol brought back.

    Attributes
    ----------
    text
        The answer that is judged, kept as it came.
    parsed
        What the answer says by its own contract; usually one. With a contract that reads no label
        (free text), its label is None and its status `ok`.
    transcript
        The conversation or the steps, in order; empty for a single call.
    features
        Further columns by name: plain values, such as `n_questions`.
    """

    text: str
    parsed: tuple[Parsed, ...]
    transcript: tuple[Message, ...] = ()
    features: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Step:
    """Calls that a protocol or a judge will make for one trace, to count them beforehand.

    Attributes
    ----------
    role
        As given to `ask`.
    model
        As given to `ask`: None for the model whose answer is collected (of a judge: its own).
    at_least, at_most
        How many calls.
    """

    role: StepRole
    model: str | None = None
    at_least: int = 1
    at_most: int = 1


@dataclass(frozen=True, slots=True)
class Slot:
    """A template of a protocol, and the names that the protocol gives it beside the scenario's fields."""

    template: Template
    provides: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Setting:
    """What a study file is read in: given to validators as `info.context["setting"]`.

    Attributes
    ----------
    folder
        Where the study file lies: paths in it are relative to this.
    levels
        The response scale from least to most urgent, or None.
    models
        Names of the models.
    seed
        Seed of the study.
    label_judges
        Names of the judges that read labels: free text that they judge is compared with the gold label.
    """

    folder: Path
    levels: tuple[str, ...] | None
    models: tuple[str, ...]
    seed: int = 0
    label_judges: tuple[str, ...] = ()


class Misfit(Exception):  # noqa: N818 - becomes a StudyError, which knows the line
    """A key of the study file that does not fit; validators that pydantic cannot express raise it.

    Parameters
    ----------
    path
        Keys from the table that was being read down to the culprit.
    message
        What was expected, what came, how to fix it.
    """

    def __init__(self, path: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.path = tuple(path)


class Strict(BaseModel):
    """A table of the study file: frozen, no key beyond its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Contract(Strict, ABC):
    """How the label is read from an answer."""

    @abstractmethod
    def parse(self, answer: Answer, scenario: Scenario) -> Parsed:
        """What the answer says; never raises on an answer, whatever it holds."""


class Protocol(Strict, ABC):
    """How a condition comes to its answer: system prompt, templates and contract are its fields."""

    @abstractmethod
    async def run(self, scenario: Scenario, ask: Ask) -> Trace:
        """Ask until there is an answer."""

    @abstractmethod
    def steps(self, scenario: Scenario) -> tuple[Step, ...]:
        """The calls that `run` will make, counted before any is made."""

    @abstractmethod
    def slots(self) -> Mapping[str, Slot]:
        """Every template by the key that holds it, so that undefined names are found before any call."""

    def check(self, scenario: Scenario) -> None:
        """Raise `Misfit` where the scenario lacks what the protocol needs, such as `options`."""


class Judge(Strict, ABC):
    """Who is asked what about the answers.

    Attributes
    ----------
    name
        The judge in the table.
    model
        Name of the model that judges.
    reads_labels
        Whether it brings labels, to be compared with gold labels.
    """

    reads_labels: ClassVar[bool] = False

    name: str
    model: str

    @abstractmethod
    async def run(self, scenario: Scenario, trace: Trace, ask: Ask) -> tuple[Parsed, ...]:
        """Judge a trace: one `Parsed` a metric."""

    def measures(self, scenario: Scenario) -> tuple[str | None, ...]:  # noqa: ARG002 - the same for most
        """The metrics of its rows, also where nothing is judged; None for a label against the gold label."""
        return (None,)

    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The calls that `run` will make for one trace."""

    @abstractmethod
    def slots(self) -> Mapping[str, Slot]:
        """Every template by the key that holds it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A named way of asking.

    Attributes
    ----------
    name
        The condition in the table.
    protocol
        How it is asked.
    factors
        Level by factor, where the condition is a cell of a grid: further columns. One that is named as a
        column of the table is, or as a role is spelled (`confidence`, `system`), is called `factor_` and its
        name there.
    scored
        Whether the label is compared with the gold label, which each scenario must then have.
    judges
        Names of the judges; None for all of the study. A condition whose contract reads the label itself
        has none unless it names them.
    models
        Names of the models; None for all that answer.
    """

    name: str
    protocol: Protocol
    factors: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    scored: bool = True
    judges: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
