"""From the plan to its answers: protocols and judges run on whatever finds answers, a model or the store."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triagestats.collect.calls import Call, Place
from triagestats.collect.contract import Answer, CallFailed, Judge, Message, Parsed, StepRole, Trace
from triagestats.collect.plan import Unit
from triagestats.collect.store import Store
from triagestats.collect.study import Study
from triagestats.collect.study_models import Model

__all__ = ["Answers", "Made", "NotAsked", "Outcome", "Replay", "Verdict", "outcome_of"]


class NotAsked(CallFailed):
    """A call was not made: the store has no answer, the model has stopped, or a limit is reached."""


class Answers(typing.Protocol):
    """Where the answer of a call comes from."""

    async def answer(self, call: Call) -> Answer:
        """The answer of a call.

        Raises
        ------
        CallFailed
            If there is none.
        """


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was answered."""

    call: Call
    answer: Answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of an answer, or why it says nothing."""

    judge: str
    parsed: tuple[Parsed, ...] = ()
    calls: tuple[Made, ...] = ()
    failure: CallFailed | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one unit of the plan."""

    unit: Unit
    trace: Trace | None
    calls: tuple[Made, ...]
    failure: CallFailed | None = None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def failures(self) -> tuple[CallFailed, ...]:
        """Why calls of it have no answer; empty where all have one."""
        found = (self.failure, *(verdict.failure for verdict in self.verdicts))
        return tuple(failure for failure in found if failure is not None)


@dataclass(frozen=True, slots=True)
class Replay:
    """Answers of the store, and of nothing else."""

    store: Store

    async def answer(self, call: Call) -> Answer:
        found = self.store.answer(call.key)
        if found is not None:
            return found
        failure = self.store.failure(call.key)
        if failure is not None:
            raise CallFailed(failure.reason)
        raise NotAsked("not asked yet")


@dataclass(slots=True)
class _Asker:
    """The `ask` of one protocol or judge: makes calls of messages, and remembers them."""

    models: Mapping[str, Model]
    place: Place
    own: str
    answers: Answers
    made: list[Made] = field(default_factory=list)

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        role: StepRole = "answer",
        model: str | None = None,
        attempt: int = 0,
        **parameters: Any,
    ) -> Answer:
        asked = self.models[model or self.own]
        body = {"model": asked.model, "messages": list(messages), **asked.parameters, **parameters}
        call = Call(self.place, role, asked.name, asked.base_url, body, attempt)
        answer = await self.answers.answer(call)
        self.made.append(Made(call, answer))
        return answer


async def outcome_of(unit: Unit, study: Study, answers: Answers) -> Outcome:
    """Run the protocol of a unit, then its judges."""
    place = Place(unit.scenario.id, unit.condition.name, unit.model, unit.repetition)
    ask = _Asker(study.models, place, unit.model, answers)
    try:
        trace = await unit.condition.protocol.run(unit.scenario, ask)
    except CallFailed as failure:
        return Outcome(unit, None, tuple(ask.made), failure)
    verdicts = [
        await _verdict(judge, unit, trace, study, place, answers) for judge in study.judges_of(unit.condition)
    ]
    return Outcome(unit, trace, tuple(ask.made), verdicts=tuple(verdicts))


async def _verdict(
    judge: Judge, unit: Unit, trace: Trace, study: Study, place: Place, answers: Answers
) -> Verdict:
    ask = _Asker(study.models, replace(place, judge=judge.name), judge.model, answers)
    try:
        parsed = await judge.run(unit.scenario, trace, ask)
    except CallFailed as failure:
        return Verdict(judge.name, calls=tuple(ask.made), failure=failure)
    return Verdict(judge.name, parsed, tuple(ask.made))
