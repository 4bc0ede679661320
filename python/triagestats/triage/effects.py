"""Main effects, simple effects and interactions of a grid of factors, as linear contrasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final, Literal

from triagestats.design import Design
from triagestats.errors import DesignError
from triagestats.triage.contrasts import Contrast
from triagestats.triage.factors import Combination, Factors

__all__ = ["Effect", "Others", "effects_of"]

Others = Literal["marginal", "reference"]
"""What is done about factors that an effect does not name: averaged over, or held at their reference."""

_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Effect:
    """A contrast of joint condition levels, the factors that it is about, and the levels it reads."""

    term: str
    contrast: Contrast
    codes: tuple[int, ...]


def effects_of(design: Design, factors: Factors, *, order: int, others: Others) -> tuple[Effect, ...]:
    """Effects in the order main, simple, interaction; all levels against the reference.

    Raises
    ------
    DesignError
        If a combination that some effect reads is not in the table, or has no score.
    """
    found = []
    for names in _asked(factors, order):
        weights = _weights(factors, names, others)
        _refuse_absent(design, factors, weights)
        by_code = {
            code: weight / len(factors.members[combination])
            for combination, weight in weights.items()
            for code in factors.members[combination]
        }
        found.append(_effect(design, factors, names, by_code))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An effect: levels that are compared with the reference, and levels that are held, by factor."""

    name: str
    compared: Mapping[int, int]
    held: Mapping[int, int]


def _asked(factors: Factors, order: int) -> Iterator[_Asked]:
    shown = range(factors.n_shown)
    above = [range(1, len(levels)) for levels in factors.levels]
    for factor in shown:
        for level in above[factor]:
            yield _Asked("main_effect", {factor: level}, {})
    if order < 2:
        return
    for factor in shown:
        for other in shown:
            if other == factor:
                continue
            for level, at in product(above[factor], range(len(factors.levels[other]))):
                yield _Asked("simple_effect", {factor: level}, {other: at})
    for size in range(2, min(order, factors.n_shown) + 1):
        for several in combinations(shown, size):
            for levels in product(*(above[factor] for factor in several)):
                yield _Asked("interaction", dict(zip(several, levels, strict=True)), {})


def _weights(factors: Factors, asked: _Asked, others: Others) -> dict[Combination, float]:
    """Coefficients over combinations: a product over the factors."""
    choices: list[list[tuple[int, float]]] = []
    for factor, levels in enumerate(factors.levels):
        if factor in asked.compared:
            choices.append([(asked.compared[factor], 1.0), (0, -1.0)])
        elif factor in asked.held:
            choices.append([(asked.held[factor], 1.0)])
        elif others == "reference":
            choices.append([(0, 1.0)])
        else:
            choices.append([(place, 1.0 / len(levels)) for place in range(len(levels))])
    weights = {}
    for chosen in product(*choices):
        weight = 1.0
        for _, factor_weight in chosen:
            weight *= factor_weight
        weights[tuple(place for place, _ in chosen)] = weight
    return weights


def _refuse_absent(design: Design, factors: Factors, weights: Mapping[Combination, float]) -> None:
    hint = (
        ". others='reference' holds the other factors at their reference, and order=1 leaves out simple "
        "effects and interactions: together they need single changes from the base alone"
        if len(factors.names) > 1
        else ""
    )
    absent = [factors.label(one) for one in weights if one not in factors.members]
    if absent:
        raise DesignError(f"the factors do not cross: no condition level is at {_first(absent)}{hint}")
    empty = [
        factors.label(one)
        for one in weights
        if not all(design.has_scores(code) for code in factors.members[one])
    ]
    if empty:
        raise DesignError(
            f"nothing is scored at {_first(empty)}: score its answers (`with_judgments`), or leave it out "
            f"with a mapping of the other condition levels{hint}"
        )


def _first(labels: list[str]) -> str:
    more = len(labels) - _SHOWN
    return ", ".join(f"({label})" for label in labels[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _effect(design: Design, factors: Factors, asked: _Asked, by_code: Mapping[int, float]) -> Effect:
    compared = [
        f"{factors.levels[factor][level]} - {factors.levels[factor][0]}"
        for factor, level in asked.compared.items()
    ]
    label = compared[0] if len(compared) == 1 else " x ".join(f"({one})" for one in compared)
    held = [f"{factors.names[factor]} = {factors.levels[factor][at]}" for factor, at in asked.held.items()]
    if held:
        label += f" at {', '.join(held)}"
    contrast = Contrast(
        called=asked.name,
        text=label,
        weights={design.levels[code].label: weight for code, weight in by_code.items()},
    )
    return Effect(" x ".join(factors.names[factor] for factor in asked.compared), contrast, tuple(by_code))
