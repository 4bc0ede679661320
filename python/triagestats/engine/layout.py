"""The layout of a table that an engine holds, from counts that the engine made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.canonical import ordered_levels
from triagestats.engine.held import Held
from triagestats.engine.identifiers import factor_column
from triagestats.engine.table import HeldTable
from triagestats.labels import as_text
from triagestats.layout import (
    ClusterAxis,
    Layout,
    Level,
    Reference,
    joint_levels,
    one_scenario_note,
    references_of,
    refuse_one_cluster,
    splits_scenarios,
)
from triagestats.results import Note
from triagestats.table_steps import joined_tasks

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["HeldLayout", "Units", "axis_of", "completed", "draft_layout", "level_values", "units_of"]


_ROWS_OF_UNITS: Final = 32_000_000
"""Rows whose units are counted at a time: of a unit little is kept."""
_LOOKED_AT: Final = 1_000
"""Clusters of a scenario that an example is chosen from."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldLayout(Layout):
    """A layout of responses that stay in the engine; `scored` says where any of a level has a score."""

    scored: tuple[bool, ...]

    def has_scores(self, level: int) -> bool:
        return self.scored[level]


@dataclass(frozen=True, slots=True)
class Units:
    """The columns that name units and clusters, and how many there are.

    `n_units` is None where units are clusters, and `within` says that they lie within the only scenario.
    """

    unit: tuple[str, ...]
    cluster: tuple[str, ...]
    name: str
    n_units: int | None
    within: bool = False


def units_of(table: HeldTable) -> Units:
    """What is averaged within, and what is resampled.

    Raises
    ------
    DesignError
        If the cluster splits a scenario.
    """
    import narwhals as nw

    unit = ("task", "scenario") if table.n_tasks > 1 else ("scenario",)
    scenario = table.roles.one("scenario") or "scenario"
    name = table.roles.one("cluster")
    if name is None or name == scenario:
        return Units(unit, unit, scenario, None)
    frame = table.held.frame
    cluster = nw.col("cluster")
    dtype = frame.collect_schema()["cluster"]
    if dtype == nw.Boolean:
        cluster = cluster.cast(nw.Int64)
    elif dtype == nw.Categorical:
        cluster = cluster.cast(nw.String)

    def ends(held: Held) -> nw.LazyFrame[Any]:
        """One row a unit: whether its first and last cluster differ."""
        rows = held.frame.select(*unit, _low=cluster, _high=cluster).group_by(*unit)
        units = rows.agg(nw.col("_low").min(), nw.col("_high").max())
        differ = nw.col("_low") != nw.col("_high")
        return units.with_columns(
            everything=nw.lit(0), _split=nw.when(differ).then(nw.lit(1)).otherwise(nw.lit(0))
        )

    n_units = n_split = 0
    for part in table.held.parts(table.n_rows, column="scenario", each=_ROWS_OF_UNITS):
        counted = ends(part).group_by("everything").agg(nw.len().alias("n"), nw.col("_split").sum())
        (found,) = part.collect(counted)
        n_units, n_split = n_units + int(found["n"].sum()), n_split + int(found["_split"].sum())
    if not n_split:
        return Units(unit, ("cluster",), name, n_units)
    if n_units == 1:
        return Units((*unit, "cluster"), ("cluster",), name, None, within=True)
    first = ends(table.held).filter(nw.col("_split") == 1).select(*unit)
    if len(unit) == 1:
        text = frame.collect_schema()[unit[0]] == nw.Categorical
        column = nw.col(unit[0]).cast(nw.String) if text else nw.col(unit[0])
        first = first.select(column.min())
    (example,) = table.held.collect(first.head(1))
    own = frame.filter(*(nw.col(column) == example[column][0] for column in unit))
    (found,) = table.held.collect(own.group_by("cluster").agg(nw.len().alias("n")).head(_LOOKED_AT))
    labels = as_text(found["cluster"], "cluster").sort().to_list()
    raise splits_scenarios(name, _joined(example, unit)[0], labels, alone=True)


def _joined(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Labels of some identifiers, joined as task/item where there are two."""
    parts = [as_text(frame[name], name) for name in columns]
    return parts[0] if len(parts) == 1 else pl.select(pl.concat_str(parts, separator="/")).to_series()


def level_values(table: HeldTable, levels: Sequence[Level]) -> list[dict[str, Any]]:
    """For each joint level the values of the condition columns, as the engine holds them."""
    names = [factor_column(position) for position in range(len(table.factors))]
    values = [table.values_of(name) for name in names]
    return [
        {name: own[part] for name, own, part in zip(names, values, level.parts, strict=True)}
        for level in levels
    ]


def draft_layout(table: HeldTable, units: Units, reference: Reference) -> HeldLayout:
    """What the labels alone say: no cluster, unit or repetition is counted yet.

    Raises
    ------
    ArgumentError
        If `reference` names no level.
    """
    factors = table.factors
    names = [f"{factor_column(position)}_label" for position in range(len(factors))]
    levels = joint_levels(factors, table.groups.select(names).unique().rows() if len(names) > 1 else ())
    references, notes = references_of(factors, reference)
    has_models = "model" in table.groups.columns
    nothing = np.empty(0, dtype=np.int64)
    return HeldLayout(
        n_units=0,
        n_scenarios=0,
        models=_sorted(table, "model") if has_models else ("",),
        has_models=has_models,
        levels=levels,
        factors=factors,
        references=references,
        axes=(ClusterAxis(units.name, (), "unit", nothing),),
        strata=_sorted(table, "stratum"),
        variants=(),
        repetitions=(),
        is_rate=False,
        notes=(*notes, *([one_scenario_note(units.name)] if units.within else [])),
        scored=(),
    )


def _sorted(table: HeldTable, name: str) -> tuple[str, ...]:
    if name not in table.groups.columns:
        return ()
    return ordered_levels(table.groups[f"{name}_label"])[0]


def axis_of(clusters: pl.DataFrame, units: Units) -> tuple[ClusterAxis, NDArray[np.int64]]:
    """The clusters in sorted order, and the place of each among those that arrived.

    Raises
    ------
    DataError
        If two tasks and scenarios have one joint label.
    DesignError
        If there is one cluster.
    """
    labels = _joined(clusters, units.cluster)
    order = labels.arg_sort()
    ordered = labels.gather(order)
    if len(units.cluster) > 1 and ordered.n_unique() < len(ordered):
        raise joined_tasks()
    axis = ClusterAxis(units.name, tuple(ordered.to_list()), "unit", np.empty(0, dtype=np.int64))
    refuse_one_cluster(axis, one_scenario=units.n_units == 1 or (units.n_units is None and len(labels) == 1))
    return axis, order.to_numpy().astype(np.int64)


def completed(
    draft: HeldLayout,
    units: Units,
    axis: ClusterAxis,
    cells: pl.DataFrame,
    counts: pl.DataFrame,
    notes: Sequence[Note],
) -> HeldLayout:
    """The layout with what was counted: `cells` by model and variant, `counts` of responses by status."""
    n_units = len(axis.labels) if units.n_units is None else units.n_units
    codes = range(len(draft.levels))
    variant = as_text(cells["variant"], "variant") if "variant" in cells.columns else None
    variants = []
    for code in codes:
        there = cells[f"n_{code}"] > 0
        found = [None] if variant is None else variant.filter(there).unique().to_list()
        variants.append(frozenset(found if there.any() else []))
    scored = counts.filter(pl.col("scored") > 0)
    least, most = scored["least"].min(), scored["most"].max()
    return replace(
        draft,
        n_units=n_units,
        n_scenarios=1 if units.within else n_units,
        axes=(axis,),
        variants=tuple(variants),
        repetitions=tuple(int(cells[f"n_{code}"].max() or 0) for code in codes),  # type: ignore[arg-type]  # counts
        is_rate=bool(least >= 0 and most <= 1),  # type: ignore[operator]  # numbers
        scored=tuple(bool(cells[f"h_{code}"].sum()) for code in codes),
        notes=(*draft.notes, *notes),
    )
