"""What a design has without its responses: labels, references, cluster axes, and what was planned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from triagestats.canonical import Factor
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.schema import Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ClusterAxis",
    "Layout",
    "Level",
    "Reference",
    "joint_levels",
    "one_scenario_note",
    "references_of",
    "refuse_one_cluster",
    "refuse_unscored",
    "splits_scenarios",
]

Reference = str | float | Mapping[str, str | float] | None
"""The reference level of the condition, or a mapping from condition column to level."""
ALL: Final = "all"


@dataclass(frozen=True, slots=True, eq=False)
class ClusterAxis:
    """What is resampled along one axis, and the code of its cluster for each unit or each model."""

    name: str
    labels: tuple[str, ...]
    by: Literal["unit", "model"]
    codes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """A joint level of the condition columns: its label and its level of each factor."""

    label: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Layout(ABC):
    """What was asked of whom, how often, and what is resampled.

    Attributes
    ----------
    models, levels, factors
        Labels in order; a table without a model or condition column has one nameless one.
    references
        The reference level of each factor.
    axes
        One or two cluster axes.
    variants, repetitions
        What was planned at each level: the variants seen there, and the most repetitions of a cell there.
    """

    n_units: int
    n_scenarios: int
    models: tuple[str, ...]
    has_models: bool
    levels: tuple[Level, ...]
    factors: tuple[Factor, ...]
    references: tuple[str, ...]
    axes: tuple[ClusterAxis, ...]
    strata: tuple[str, ...]
    variants: tuple[frozenset[str | None], ...]
    repetitions: tuple[int, ...]
    is_rate: bool
    notes: tuple[Note, ...]

    @property
    def n_clusters(self) -> tuple[int, ...]:
        """Clusters on each axis."""
        return tuple(len(axis.labels) for axis in self.axes)

    @property
    def cluster_name(self) -> str:
        """What is resampled, in words."""
        return " and ".join(axis.name for axis in self.axes)

    @abstractmethod
    def has_scores(self, level: int) -> bool:
        """Whether any response at a joint level is scored."""

    def planned(self, levels: Sequence[int], match: Match) -> int:
        """Keys of one model that a complete crossing would have at all of the given levels."""
        if match == "scenario":
            return self.n_units
        cells = self.n_units * len(frozenset.intersection(*(self.variants[level] for level in levels)))
        return cells * min(self.repetitions[level] for level in levels) if match == "row" else cells


def joint_levels(factors: Sequence[Factor], present: Iterable[tuple[str, ...]]) -> tuple[Level, ...]:
    """The joint levels of the condition columns that occur, in the order of the factors' levels."""
    if not factors:
        return (Level(ALL, ()),)
    if len(factors) == 1:
        return tuple(Level(label, (label,)) for label in factors[0].levels)
    rank = [{level: position for position, level in enumerate(factor.levels)} for factor in factors]
    ordered = sorted(
        present, key=lambda row: tuple(order[part] for order, part in zip(rank, row, strict=True))
    )
    return tuple(
        Level(", ".join(f"{f.name}={part}" for f, part in zip(factors, row, strict=True)), row)
        for row in ordered
    )


def references_of(factors: Sequence[Factor], reference: Reference) -> tuple[tuple[str, ...], list[Note]]:
    """The reference level of each factor, with a note where it was not chosen.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `reference` names no level.
    """
    if reference is None:
        wanted: Mapping[str, str | float] = {}
    elif isinstance(reference, Mapping):
        wanted = reference
    elif len(factors) == 1:
        wanted = {factors[0].name: reference}
    elif not factors:
        raise ArgumentError("`reference` needs a condition column; name it with `condition=`")
    else:
        example = {factor.name: factor.levels[0] for factor in factors[:1]}
        raise ArgumentError(
            f"`reference` must map the condition columns {[factor.name for factor in factors]} to their "
            f"levels, for instance `reference={example}`; got {reference!r}"
        )
    unknown = [name for name in wanted if name not in {factor.name for factor in factors}]
    if unknown:
        raise ArgumentError(
            f"`reference` names {', '.join(map(repr, unknown))}; choose from the condition columns "
            f"{[factor.name for factor in factors]}"
        )
    chosen: list[str] = []
    notes: list[Note] = []
    for factor in factors:
        level = _level(wanted.get(factor.name, factor.levels[0]))
        if level not in factor.levels:
            raise ArgumentError(
                f"`reference` is {level!r}; choose from the levels of {factor.name!r}, "
                f"{listed(factor.levels)}"
            )
        if factor.name not in wanted and len(factor.levels) > 1:
            order = "declared" if factor.declared else "sorted"
            message = f"The reference of {factor.name} is {level!r}, the first level in {order} order."
            notes.append(Note("reference", message))
        chosen.append(level)
    return tuple(chosen), notes


def _level(reference: object) -> str | None:
    if not isinstance(reference, str | int | float):
        raise ArgumentTypeError(f"`reference` must be a level of the condition; got {reference!r}")
    return label_of(reference)


def refuse_one_cluster(axis: ClusterAxis, *, one_scenario: bool) -> None:
    """Refuse an axis of one cluster, from which no error can be computed.

    Raises
    ------
    DesignError
        If it has fewer than two.
    """
    if len(axis.labels) >= 2:
        return
    fix = (
        "a study of one scenario can say `cluster='repetition'`; its intervals then speak of it alone"
        if one_scenario
        else "choose a column with at least two values, or leave `cluster` out to cluster by scenario"
    )
    raise DesignError(
        f"`cluster` gives one cluster, {axis.name} {axis.labels[0]!r}, and an interval needs two: {fix}"
    )


def refuse_unscored(statuses: Mapping[str, int]) -> NoReturn:
    """Refuse a table without any score; `statuses` are the numbers of rows.

    Raises
    ------
    DesignError
        Always.
    """
    ordered = sorted(statuses.items(), key=lambda item: (-item[1], item[0]))
    said = ", ".join(f"{count:,} {status}" for status, count in ordered)
    raise DesignError(f"`score` is there in no row, so nothing can be estimated; rows by status: {said}")


def one_scenario_note(name: str) -> Note:
    """What intervals speak of when the clusters lie within one scenario."""
    return Note(
        "one_scenario",
        f"One scenario, clustered by {name}: the intervals speak of new {name} values of "
        "this scenario, not of other scenarios.",
        "caution",
    )


def splits_scenarios(name: str, scenario: str, clusters: Sequence[str], *, alone: bool) -> DesignError:
    """The refusal of a cluster column that has two values in one scenario."""
    return DesignError(
        f"`cluster` is {name!r}, which splits scenarios: scenario {scenario!r} is in {clusters[0]!r} "
        f"and {clusters[1]!r}. Rows of one scenario are dependent, "
        "so a cluster must hold whole scenarios"
        + (
            "; leave `cluster` out to cluster by scenario, or give two columns that cross, such as "
            "`cluster=('scenario', 'model')`"
            if alone
            else " or whole models"
        )
    )
