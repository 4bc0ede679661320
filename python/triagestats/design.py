"""The design of a response table: units, models, levels, clusters, and what of the crossing is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from triagestats.canonical import Factor, ordered_levels
from triagestats.layout import (
    ClusterAxis,
    Layout,
    Level,
    Reference,
    joint_levels,
    one_scenario_note,
    references_of,
    refuse_one_cluster,
    refuse_unscored,
    splits_scenarios,
)
from triagestats.results import Note
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable

__all__ = ["ClusterAxis", "Design", "Level", "Reference", "design_of", "judge_notes"]

_READ: Final = (*KEY_ROLES, "cluster_1", "cluster_2", "stratum", "score", "status")


@dataclass(frozen=True, slots=True, eq=False)
class Design(Layout):
    """A layout with its responses.

    Attributes
    ----------
    responses
        One row a response, judges averaged: `unit`, `model`, `level` (codes), `variant`, `repetition`,
        `stratum` (where present), `score` (null where unusable), `n_judges`, `status`.
    """

    responses: pl.DataFrame

    def has_scores(self, level: int) -> bool:
        at_level = self.responses.filter(pl.col("level") == level)
        return at_level["score"].null_count() < at_level.height


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
        refuse_unscored(dict(frame["status"].value_counts().iter_rows()))
    notes: list[Note] = []
    models, has_models = _labels(frame, "model")
    levels = _joint_levels(frame, table.factors)
    references, reference_note = references_of(table.factors, reference)
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
    columns = [factor.column for factor in factors]
    return joint_levels(factors, frame.select(columns).unique().rows() if len(factors) > 1 else ())


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
        refuse_one_cluster(axis, one_scenario=len(labels) == 1)
        return frame, (axis,), len(labels), []
    columns = [f"cluster_{position + 1}" for position in range(len(names))]
    notes = []
    unit = ["scenario"]
    if frame["scenario"].n_unique() == 1 and len(names) == 1 and frame[columns[0]].n_unique() > 1:
        unit = ["scenario", columns[0]]
        notes.append(one_scenario_note(names[0]))
    frame, labels = _coded(frame, unit)
    axes = tuple(
        _axis(frame, column, name, len(labels), models, alone=len(names) == 1)
        for column, name in zip(columns, names, strict=True)
    )
    for axis in axes:
        refuse_one_cluster(axis, one_scenario=frame["scenario"].n_unique() == 1)
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
    raise splits_scenarios(name, scenario, example[column].to_list(), alone=alone)


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
            pl.when(scored.any()).then(pl.lit("ok")).otherwise(pl.col("status").min()).alias("status"),
        )
        notes += judge_notes(responses.group_by("level", "n_judges").len())
    return responses.rename({"model_code": "model"}), notes


def _code(frame: pl.DataFrame, column: str, codes: Mapping[str, int]) -> pl.Expr:
    if column not in frame.columns:
        return pl.lit(0, pl.Int64)
    return pl.col(column).replace_strict(dict(codes), return_dtype=pl.Int64)


def judge_notes(counts: pl.DataFrame) -> list[Note]:
    """What averaging judges did, from the number of responses (`len`) by `level` and `n_judges`."""
    scored = counts.filter(pl.col("n_judges") > 0)
    most = scored.group_by("level").agg(pl.col("n_judges").max().alias("most"))
    short = scored.join(most, on="level").filter(pl.col("n_judges") < pl.col("most"))
    fewer = int(short["len"].sum())
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
