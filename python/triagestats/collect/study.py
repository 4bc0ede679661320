"""A study: what is asked of whom."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from triagestats.collect.calls import canonical
from triagestats.collect.contract import Condition, Contract, Judge, Scenario
from triagestats.collect.study_models import Limits, Model

__all__ = ["COLUMNS", "Study"]

COLUMNS: Final = (
    "scenario",
    "model",
    "condition",
    "repetition",
    "judge",
    "metric",
    "response",
    "gold",
    "score",
    "status",
    "reason",
    "cluster",
    "stratum",
    "own_label",
    "confidence",
    "text",
    "transcript",
    "refusal",
    "finish_reason",
    "returned_model",
    "n_calls",
    "prompt_tokens",
    "completion_tokens",
    "latency",
    "judge_text",
    "judge_prompt_tokens",
    "judge_completion_tokens",
    "prompt_hash",
    "call",
)
"""Columns of every row; features, factors and carried columns come after them."""


@dataclass(frozen=True, slots=True)
class Study:
    """What is asked of whom: everything that a study file says, read and checked.

    Attributes
    ----------
    name, levels, repetitions, seed, limits
        As the file says.
    scenarios
        Those that are asked.
    reading
        Their columns that say how answers are read and grouped.
    models
        By name.
    conditions
        Those of grids written out.
    judges
        By name.
    file
        That of the scenarios; None where the study holds them.
    carry
        Columns of the scenarios to have in the table.
    key_places
        Where the file says which variable holds the key of a model, by name.
    """

    name: str
    levels: tuple[str, ...] | None
    repetitions: int
    seed: int
    scenarios: tuple[Scenario, ...]
    reading: frozenset[str]
    file: Path | None
    models: Mapping[str, Model]
    conditions: tuple[Condition, ...]
    judges: Mapping[str, Judge]
    limits: Limits
    carry: tuple[str, ...]
    key_places: Mapping[str, str]

    def models_of(self, condition: Condition) -> tuple[str, ...]:
        """The models that answer under a condition."""
        answering = tuple(name for name, model in self.models.items() if model.answers)
        return answering if condition.models is None else condition.models

    def judges_of(self, condition: Condition) -> tuple[Judge, ...]:
        """The judges of a condition."""
        names = tuple(self.judges) if condition.judges is None else condition.judges
        return tuple(self.judges[name] for name in names)

    def record(self) -> dict[str, Any]:
        """What must not change while a store is filled, as plain values.

        How the calls are made (concurrency, timeout, retries, key, limits) may change at any time.
        """
        return {
            "repetitions": self.repetitions,
            "levels": self.levels,
            "scenarios": {
                scenario.id: {
                    "fields": self._digest(scenario),
                    "gold": scenario.gold,
                    "stratum": scenario.stratum,
                    "cluster": scenario.cluster,
                }
                for scenario in self.scenarios
            },
            "models": {
                name: {"model": model.model, "base_url": model.base_url, "parameters": model.parameters}
                for name, model in self.models.items()
            },
            "conditions": {
                condition.name: {
                    **_plain(condition.protocol),
                    "scored": condition.scored,
                    "models": self.models_of(condition),
                    "judges": [judge.name for judge in self.judges_of(condition)],
                }
                for condition in self.conditions
            },
            "judges": {name: _plain(judge) for name, judge in self.judges.items()},
        }

    def _digest(self, scenario: Scenario) -> str:
        """A hash of what may be sent of a scenario."""
        sent = {name: value for name, value in scenario.fields.items() if name not in self.reading}
        return hashlib.sha256(canonical(_jsonable(sent)).encode()).hexdigest()[:16]


def _plain(model: BaseModel) -> dict[str, Any]:
    """The kind of a pydantic model and its fields as plain values, contracts apart under `reads`."""
    values = model.model_dump(mode="json")
    contracts = [name for name in values if isinstance(getattr(model, name), Contract)]
    reads = {name: values.pop(name) for name in contracts}
    return {"kind": type(model).__name__, **values, "reads": reads}


def _jsonable(value: Any) -> Any:
    """Plain values with what JSON does not have, such as the dates of toml, as text."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | bool | None) else repr(value)
