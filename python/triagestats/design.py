"""The design of a response table: units, models, levels, clusters, and what of the crossing is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from triagestats.canonical import Factor, ordered_levels
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.schema import KEY_ROLES, Match
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ClusterAxis", "Design", "Level", "design_of"]

Reference = str | float | Mapping[str, str | float] | None
ALL: Final = "all"
_READ: Final = (*KEY_ROLES, "cluster_1", "cluster_2", "stratum", "score", "status")


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
class Design:
    """What was asked of whom, how often, and what is resampled.

    Attributes
    ----------
    responses
        One row a response, judges averaged: `unit`, `model`, `level` (codes), `variant`, `repetition`,
        `stratum` (where present), `score` (null where unusable), `n_judges`, `status`.
    models, levels, factors
        Labels in order; a table without a model or condition column has one nameless one.
    references
        The reference level of each factor.
    axes
        One or two cluster axes.
    variants, repetitions
        What was planned at each level: the variants seen there, and the most repetitions of a cell there.
    """

    responses: pl.DataFrame
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

    def has_scores(self, level: int) -> bool:
        """Whether any response at a joint level is scored."""
        at_level = self.responses.filter(pl.col("level") == level)
        return at_level["score"].null_count() < at_level.height

    def planned(self, levels: Sequence[int], match: Match) -> int:
        """Keys of one model that a complete crossing would have at all of the given levels."""
        if match == "scenario":
            return self.n_units
        cells = self.n_units * len(frozenset.intersection(*(self.variants[level] for level in levels)))
        return cells * min(self.repetitions[level] for level in levels) if match == "row" else cells


def design_of(table: ResponseTable, *, reference: Reference = None) -> Design:
    """The design of a table.

    Parameters
    ----------
    table
        The responses.
    reference
        The reference level; for several condition columns a mapping from column to level. The first
        level where not given.

    Raises
    ------
    DesignError
        If nothing is scored, there are fewer than two clusters, or the cluster splits a scenario.
    ArgumentError
        If `reference` names no level.
    DataError
        If the table has several metrics.
    """
    table.refuse_metrics()
    frame = table.frame.select(
        name for name in table.frame.columns if name in _READ or name.startswith("condition[")
    )
    if frame["score"].count() == 0:
        counts = frame["status"].value_counts().sort("count", "status", descending=[True, False]).rows()
        said = ", ".join(f"{count:,} {status}" for status, count in counts)
        raise DesignError(f"`score` is there in no row, so nothing can be estimated; rows by status: {said}")
    notes: list[Note] = []
    models, has_models = _labels(frame, "model")
    levels = _joint_levels(frame, table.factors)
    references, reference_note = _references(table.factors, reference)
    notes += reference_note
    frame, axes, n_units, cluster_notes = _clusters(frame, table, models)
    notes += cluster_notes
    responses, judge_notes = _responses(frame, models, levels)
    notes += judge_notes
    strata = ordered_levels(frame["stratum"])[0] if "stratum" in frame.columns else ()
    variants, repetitions = _plan(responses, len(levels))
    scores = responses["score"].drop_nulls()
    return Design(
        responses=responses,
        n_units=n_units,
        n_scenarios=frame["scenario"].n_unique(),
        models=models,
        has_models=has_models,
        levels=levels,
        factors=table.factors,
        references=references,
        axes=axes,
        strata=strata,
        variants=variants,
        repetitions=repetitions,
        is_rate=bool(scores.is_between(0, 1).all()),
        notes=tuple(notes),
    )


def _labels(frame: pl.DataFrame, column: str) -> tuple[tuple[str, ...], bool]:
    if column not in frame.columns:
        return ("",), False
    return ordered_levels(frame[column])[0], True


def _joint_levels(frame: pl.DataFrame, factors: Sequence[Factor]) -> tuple[Level, ...]:
    if not factors:
        return (Level(ALL, ()),)
    if len(factors) == 1:
        return tuple(Level(label, (label,)) for label in factors[0].levels)
    columns = [factor.column for factor in factors]
    rank = [{level: position for position, level in enumerate(factor.levels)} for factor in factors]
    present = sorted(
        frame.select(columns).unique().rows(),
        key=lambda row: tuple(order[part] for order, part in zip(rank, row, strict=True)),
    )
    return tuple(
        Level(", ".join(f"{f.name}={part}" for f, part in zip(factors, row, strict=True)), row)
        for row in present
    )


def _references(factors: Sequence[Factor], reference: Reference) -> tuple[tuple[str, ...], list[Note]]:
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


def _clusters(
    frame: pl.DataFrame, table: ResponseTable, models: tuple[str, ...]
) -> tuple[pl.DataFrame, tuple[ClusterAxis, ...], int, list[Note]]:
    """Units (what is averaged within: scenarios, or a single scenario's clusters) and cluster axes."""
    import numpy as np

    names = table.roles.columns.get("cluster", ())
    if not names:
        scenario = table.roles.one("scenario") or "scenario"
        frame, labels = _coded(frame, ["scenario"])
        axis = ClusterAxis(scenario, labels, "unit", np.arange(len(labels), dtype=np.int64))
        _enough((axis,), frame)
        return frame, (axis,), len(labels), []
    columns = [f"cluster_{position + 1}" for position in range(len(names))]
    notes = []
    unit = ["scenario"]
    if frame["scenario"].n_unique() == 1 and len(names) == 1 and frame[columns[0]].n_unique() > 1:
        unit = ["scenario", columns[0]]
        notes.append(
            Note(
                "one_scenario",
                f"One scenario, clustered by {names[0]}: the intervals speak of new {names[0]} values of "
                "this scenario, not of other scenarios.",
                "caution",
            )
        )
    frame, labels = _coded(frame, unit)
    axes = tuple(
        _axis(frame, column, name, len(labels), models, alone=len(names) == 1)
        for column, name in zip(columns, names, strict=True)
    )
    _enough(axes, frame)
    return frame, axes, len(labels), notes


def _coded(frame: pl.DataFrame, unit: list[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Add `unit`, the rank of the unit in sorted order, and give the labels in that order."""
    units = frame.select(unit).unique().sort(unit).with_row_index("unit")
    frame = frame.join(units, on=unit, how="left", maintain_order="left")
    return frame, tuple(units[unit[-1]].to_list())


def _axis(
    frame: pl.DataFrame,
    column: str,
    name: str,
    n_units: int,
    models: tuple[str, ...],
    *,
    alone: bool,
) -> ClusterAxis:
    import numpy as np

    labels = tuple(sorted(frame[column].unique().to_list()))
    rank = {label: position for position, label in enumerate(labels)}
    by_unit = frame.select("unit", column).unique()
    if by_unit.height == n_units:
        ordered = by_unit.sort("unit")[column]
        return ClusterAxis(name, labels, "unit", np.array([rank[label] for label in ordered], dtype=np.int64))
    if not alone and "model" in frame.columns:
        by_model = frame.select("model", column).unique()
        if by_model.height == len(models):
            cluster_of = dict(by_model.iter_rows())
            return ClusterAxis(
                name,
                labels,
                "model",
                np.array([rank[cluster_of[m]] for m in models], dtype=np.int64),
            )
    example = by_unit.filter(pl.col("unit").is_duplicated()).sort("unit", column).head(2)
    scenario = frame.filter(pl.col("unit") == example["unit"][0])["scenario"][0]
    raise DesignError(
        f"`cluster` is {name!r}, which splits scenarios: scenario {scenario!r} is in {example[column][0]!r} "
        f"and {example[column][1]!r}. Rows of one scenario are dependent, "
        "so a cluster must hold whole scenarios"
        + (
            "; leave `cluster` out to cluster by scenario, or give two columns that cross, such as "
            "`cluster=('scenario', 'model')`"
            if alone
            else " or whole models"
        )
    )


def _enough(axes: tuple[ClusterAxis, ...], frame: pl.DataFrame) -> None:
    for axis in axes:
        if len(axis.labels) >= 2:
            continue
        one_scenario = frame["scenario"].n_unique() == 1
        fix = (
            "a study of one scenario can say `cluster='repetition'`; its intervals then speak of it alone"
            if one_scenario
            else "choose a column with at least two values, or leave `cluster` out to cluster by scenario"
        )
        raise DesignError(
            f"`cluster` gives one cluster, {axis.name} {axis.labels[0]!r}, and an interval needs two: {fix}"
        )


def _responses(
    frame: pl.DataFrame, models: tuple[str, ...], levels: tuple[Level, ...]
) -> tuple[pl.DataFrame, list[Note]]:
    """One row a response: codes for model and level, judges averaged."""
    model_code = {label: code for code, label in enumerate(models)}
    level_code = {level.label: code for code, level in enumerate(levels)}
    frame = frame.with_columns(
        _code(frame, "model", model_code).alias("model_code"),
        _code(frame, "condition", level_code).alias("level"),
    )
    key = ["unit", "model_code", "level"]
    key += [name for name in ("variant", "repetition", "stratum") if name in frame.columns]
    notes: list[Note] = []
    if "judge" not in frame.columns:
        responses = frame.select(*key, "score", pl.lit(1, pl.Int64).alias("n_judges"), "status")
    else:
        scored = pl.col("score").is_not_null()
        responses = frame.group_by(key, maintain_order=True).agg(
            pl.col("score").mean(),
            scored.sum().cast(pl.Int64).alias("n_judges"),
            pl.when(scored.any()).then(pl.lit("ok")).otherwise(pl.col("status").first()).alias("status"),
        )
        notes += _judge_notes(responses)
    return responses.rename({"model_code": "model"}), notes


def _code(frame: pl.DataFrame, column: str, codes: Mapping[str, int]) -> pl.Expr:
    if column not in frame.columns:
        return pl.lit(0, pl.Int64)
    return pl.col(column).replace_strict(dict(codes), return_dtype=pl.Int64)


def _judge_notes(responses: pl.DataFrame) -> list[Note]:
    scored = responses.filter(pl.col("n_judges") > 0)
    most = scored.group_by("level").agg(pl.col("n_judges").max().alias("most"))
    fewer = scored.join(most, on="level").filter(pl.col("n_judges") < pl.col("most")).height
    judged = int(most["most"].max() or 0)  # type: ignore[arg-type]  # an integer column
    notes = []
    if judged > 1:
        notes.append(Note("judges", "Scores of several judges are averaged within a response."))
    if fewer:
        what = "responses have fewer judges than others of their condition"
        message = f"{fewer:,} {what}; those present are averaged."
        notes.append(Note("judges_missing", message, "caution"))
    return notes


def _plan(
    responses: pl.DataFrame, n_levels: int
) -> tuple[tuple[frozenset[str | None], ...], tuple[int, ...]]:
    """Variants seen at each level, and the most repetitions of one of its cells."""
    variant = (
        pl.col("variant") if "variant" in responses.columns else pl.lit(None, pl.String).alias("variant")
    )
    cells = responses.group_by("level", "unit", "model", variant).len()
    seen = cells.group_by("level").agg(pl.col("variant").unique(), pl.col("len").max())
    variants = {level: frozenset(names) for level, names, _ in seen.iter_rows()}
    most = {level: int(count) for level, _, count in seen.iter_rows()}
    return (
        tuple(variants.get(level, frozenset()) for level in range(n_levels)),
        tuple(most.get(level, 0) for level in range(n_levels)),
    )
