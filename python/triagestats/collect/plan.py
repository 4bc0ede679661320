"""What a study will ask: its answers one by one, and how many calls they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triagestats.collect.contract import Condition, Scenario, Step
from triagestats.collect.study import Study

__all__ = ["Planned", "Unit", "n_units", "planned_calls", "units_of"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One answer of one model, with the judgments of it: whatever calls it takes."""

    scenario: Scenario
    condition: Condition
    model: str
    repetition: int


@dataclass(frozen=True, slots=True)
class Planned:
    """Calls of one model: at least and at most so many, where later calls depend on earlier answers."""

    model: str
    at_least: int
    at_most: int


def units_of(study: Study, model: str) -> Iterator[Unit]:
    """The answers of a model. Every scenario once before any twice, so that a part is a study, too."""
    conditions = [one for one in study.conditions if model in study.models_of(one)]
    for repetition in range(1, study.repetitions + 1):
        for scenario in study.scenarios:
            for condition in conditions:
                yield Unit(scenario, condition, model, repetition)


def n_units(study: Study) -> int:
    """How many answers there will be."""
    answering = sum(len(study.models_of(condition)) for condition in study.conditions)
    return answering * len(study.scenarios) * study.repetitions


def planned_calls(study: Study) -> tuple[Planned, ...]:
    """Calls a model, in the order of the study.

    Calls that send the same are made once, so that there can be fewer.
    """
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def add(steps: Sequence[Step], own: str, times: int) -> None:
        for step in steps:
            least[step.model or own] += step.at_least * times
            most[step.model or own] += step.at_most * times

    for condition in study.conditions:
        models = study.models_of(condition)
        for scenario in study.scenarios:
            steps = condition.protocol.steps(scenario)
            for model in models:
                add(steps, model, study.repetitions)
        judged = len(models) * len(study.scenarios) * study.repetitions
        for judge in study.judges_of(condition):
            add(judge.steps(), judge.model, judged)
    return tuple(Planned(model, least[model], most[model]) for model in study.models)
