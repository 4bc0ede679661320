"""An `ask` that answers from a list, and conditions and judges as a study file would make them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triagestats.collect.contract import Answer, Condition, Judge, Message, Parsed, Scenario, Setting, Trace
from triagestats.collect.judges import build_judges
from triagestats.collect.protocols.registry import build_conditions

__all__ = ["LEVELS", "SCALE", "Ask", "Asked", "built", "judged", "ran", "setting"]

LEVELS = ("A", "B", "C", "D")
SCALE = {"A": "stay at home", "B": "doctor in weeks", "C": "doctor in two days", "D": "emergency now"}


@dataclass(frozen=True)
class Asked:
    """One call."""

    role: str
    model: str | None
    attempt: int
    parameters: dict[str, Any]
    messages: list[Message]

    @property
    def last(self) -> str:
        return self.messages[-1]["content"]


@dataclass
class Ask:
    """Answers in order, or by a function of the call; remembers what was asked."""

    answers: Sequence[str] | Callable[[Asked], str]
    calls: list[Asked] = field(default_factory=list)

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        role: Any = "answer",
        model: str | None = None,
        attempt: int = 0,
        **parameters: Any,
    ) -> Answer:
        call = Asked(role, model, attempt, parameters, list(messages))
        self.calls.append(call)
        text = self.answers(call) if callable(self.answers) else self.answers[len(self.calls) - 1]
        return Answer(f"key{len(self.calls)}", text)

    @property
    def roles(self) -> list[str]:
        return [call.role for call in self.calls]


def setting(folder: Path = Path(), **changes: Any) -> Setting:
    values: dict[str, Any] = {"levels": LEVELS, "models": ("m", "other"), "seed": 7} | changes
    return Setting(folder, **values)


def built(protocol: str, where: Setting | None = None, **keys: Any) -> list[Condition]:
    table = {"name": "c", "protocol": protocol, **keys}
    return list(build_conditions(table, where or setting()))


def ran(condition: Condition, scenario: Scenario, *answers: str) -> tuple[Trace, Ask]:
    """Run a protocol on a scenario, with exactly these answers."""
    ask = Ask(answers)
    condition.protocol.check(scenario)
    trace = asyncio.run(condition.protocol.run(scenario, ask))
    assert len(ask.calls) == len(answers), "answers are left over"
    most = sum(step.at_most for step in condition.protocol.steps(scenario))
    least = sum(step.at_least for step in condition.protocol.steps(scenario))
    assert least <= len(ask.calls) <= most
    return trace, ask


def judged(
    table: dict[str, Any], text: str, verdict: str | None, scenario: Scenario | None = None, **more: Any
) -> tuple[tuple[Parsed, ...], Ask]:
    """Have a judge read an answer; without a verdict it must not ask."""
    (judge,) = build_judges({"name": "j", "model": "other", **table}, more.pop("where", setting()))
    assert isinstance(judge, Judge)
    ask = Ask([] if verdict is None else [verdict])
    trace = Trace(text, more.pop("own", (Parsed(None),)))
    found = asyncio.run(judge.run(scenario or Scenario("s", {}), trace, ask))
    assert len(ask.calls) == (verdict is not None)
    return found, ask
