"""Factors of a factorial: which joint condition levels stand at which levels of each factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed

__all__ = ["Combination", "FactorArgument", "Factors", "read_factors"]

FactorArgument = str | Mapping[str, object] | None
"""A condition column; or a mapping from the factor's levels to condition levels, or from its name to one."""

Combination = tuple[int, ...]
"""One level of each factor, by place."""

_EXAMPLE: Final = "{'wording': {'source': ['exact', 'stripped'], 'natural': ['free', 'letter']}}"


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor: its name, its levels, and the level of every joint condition level, None for none."""

    name: str
    levels: tuple[str, ...]
    place: tuple[int | None, ...]
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Factors:
    """A grid of factors over joint condition levels.

    Attributes
    ----------
    names, levels
        The factors and their levels, the reference first. Those from `n_shown` on are averaged over
        without effects of their own.
    n_shown
        How many have effects.
    members
        Codes of the joint condition levels of each combination that has any.
    unused
        Joint condition levels that belong to no combination.
    """

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    n_shown: int
    members: Mapping[Combination, tuple[int, ...]]
    unused: tuple[str, ...]

    @property
    def combinations(self) -> tuple[Combination, ...]:
        """All combinations of the levels, seen or not."""
        return tuple(product(*(range(len(levels)) for levels in self.levels)))

    def label(self, combination: Combination) -> str:
        """A combination in words."""
        return ", ".join(
            f"{name}={levels[place]}"
            for name, levels, place in zip(self.names, self.levels, combination, strict=True)
        )


def read_factors(design: Design, given: Mapping[str, FactorArgument]) -> Factors:
    """Factors from the arguments; all condition columns where there are none.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument names no column or condition level, or gives a condition level twice.
    DesignError
        If the table has no condition, or the factors cross nowhere.
    """
    if not design.factors:
        raise DesignError("the table has no condition column; name it, or several, with `condition=`")
    asked = {argument: value for argument, value in given.items() if value is not None}
    shown = [_read(design, argument, value) for argument, value in asked.items()] or [
        _of_column(design, factor.name, "a") for factor in design.factors
    ]
    for factor in shown:
        if len(factor.levels) < 2:
            raise DesignError(f"factor {factor.name!r} has the level {factor.levels[0]!r} alone: no effect")
    names = [factor.name for factor in shown]
    if len(set(names)) != len(names):
        raise ArgumentError(f"the factors must have different names; got {names}")
    covered = frozenset[str]().union(*(factor.columns for factor in shown))
    others = [
        _of_column(design, factor.name, "a")
        for factor in design.factors
        if factor.name not in covered and len(factor.levels) > 1
    ]
    factors = [*shown, *others]
    members: dict[Combination, tuple[int, ...]] = {}
    unused = []
    for code, level in enumerate(design.levels):
        places = [factor.place[code] for factor in factors]
        combination = tuple(place for place in places if place is not None)
        if len(combination) < len(places):
            unused.append(level.label)
        else:
            members[combination] = (*members.get(combination, ()), code)
    if not members:
        raise DesignError(f"no condition level belongs to all of the factors {names}")
    return Factors(
        names=tuple(factor.name for factor in factors),
        levels=tuple(factor.levels for factor in factors),
        n_shown=len(shown),
        members=members,
        unused=tuple(unused),
    )


def _read(design: Design, argument: str, value: FactorArgument) -> _Factor:
    if isinstance(value, str):
        return _of_column(design, value, argument)
    if not isinstance(value, Mapping) or not value:
        raise ArgumentTypeError(
            f"`{argument}` must name a condition column, or map the levels of a factor to condition levels, "
            f"such as {_EXAMPLE}; got {value!r}"
        )
    name, levels = argument, value
    first = next(iter(value.values()))
    if len(value) == 1 and isinstance(first, Mapping):
        name, levels = str(next(iter(value))), first
    if len(levels) < 2:
        raise ArgumentError(
            f"`{argument}` must have two levels or more, such as {_EXAMPLE}; got {dict(value)!r}"
        )
    wanted = {
        str(level): _conditions(argument, str(level), conditions) for level, conditions in levels.items()
    }
    flat = [condition for conditions in wanted.values() for condition in conditions]
    twice = [condition for condition in dict.fromkeys(flat) if flat.count(condition) > 1]
    if twice:
        raise ArgumentError(f"`{argument}` gives {', '.join(map(repr, twice))} twice; a level belongs to one")
    labels, columns = _labels(design, argument, flat)
    of_condition = {
        condition: place for place, conditions in enumerate(wanted.values()) for condition in conditions
    }
    return _Factor(name, tuple(wanted), tuple(of_condition.get(label) for label in labels), columns)


def _conditions(argument: str, level: str, conditions: object) -> tuple[str, ...]:
    several = [conditions] if isinstance(conditions, str | int | float) else conditions
    if not isinstance(several, Sequence) or not several:
        raise ArgumentTypeError(
            f"`{argument}` must map {level!r} to a list of condition levels, such as {_EXAMPLE}; got "
            f"{conditions!r}"
        )
    found = [label_of(one) if isinstance(one, str | int | float) else None for one in several]
    if None in found:
        raise ArgumentTypeError(f"`{argument}` must list condition levels by name; got {conditions!r}")
    return tuple(label for label in found if label is not None)


def _labels(
    design: Design, argument: str, conditions: Sequence[str]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """What every joint level is called by the columns that have all these levels, and these columns."""
    joint = tuple(level.label for level in design.levels)
    if set(conditions) <= set(joint):
        return joint, frozenset(factor.name for factor in design.factors)
    fitting = [
        position for position, factor in enumerate(design.factors) if set(conditions) <= set(factor.levels)
    ]
    if len(fitting) == 1:
        position = fitting[0]
        named = frozenset({design.factors[position].name})
        return tuple(level.parts[position] for level in design.levels), named
    known = {factor.name: list(factor.levels) for factor in design.factors}
    if fitting:
        raise ArgumentError(
            f"`{argument}` names levels that several condition columns have, {known}; give joint levels such "
            f"as {joint[0]!r}"
        )
    unknown = [condition for condition in conditions if condition not in joint]
    raise ArgumentError(
        f"`{argument}` names {', '.join(map(repr, unknown))}; the levels of one condition column are needed, "
        f"of {known}"
    )


def _of_column(design: Design, name: str, argument: str) -> _Factor:
    """A condition column as a factor, its reference level first."""
    columns = [factor.name for factor in design.factors]
    if name not in columns:
        raise ArgumentError(
            f"`{argument}` names {name!r}; choose from the condition columns {listed(columns)}, or map the "
            f"levels of a factor to condition levels, such as {_EXAMPLE}"
        )
    position = columns.index(name)
    reference = design.references[position]
    levels = (reference, *(level for level in design.factors[position].levels if level != reference))
    place = {level: code for code, level in enumerate(levels)}
    return _Factor(
        name, levels, tuple(place[level.parts[position]] for level in design.levels), frozenset({name})
    )
