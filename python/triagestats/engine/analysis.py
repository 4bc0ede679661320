"""The analysis of a table whose rows stay in the engine that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats import describe, missingness, plan, rate_effects, readings
from triagestats.analysis import Analysis, Parts, Settings, assemble
from triagestats.blocks import Target
from triagestats.design import judge_notes
from triagestats.engine.gather import Gathered, Wanted, gather, places_of
from triagestats.engine.held import Held
from triagestats.engine.layout import (
    HeldLayout,
    Units,
    axis_of,
    completed,
    draft_layout,
    level_values,
    units_of,
)
from triagestats.engine.repeated import refuse_repeated
from triagestats.engine.stages import Group, Stages
from triagestats.engine.sums import HeldSums, level_code, readings_of, tally_from
from triagestats.engine.table import HeldTable, held_table
from triagestats.estimands import Estimand
from triagestats.inference import Options, infer
from triagestats.layout import Reference, refuse_unscored
from triagestats.resample import valid_resamples
from triagestats.results import Note
from triagestats.roles import RoleArgument
from triagestats.schema import Interval, Match, Unparsed, Weights
from triagestats.tallies import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Asked", "analyze_held"]

_NEEDS_ROWS: Final = (
    "errors, agreement, regression, ranking, and the tests of McNemar, Wilcoxon and equivalence"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of `analyze` beside the table."""

    reference: Reference
    estimands: Sequence[Estimand] | None
    match: Match
    weights: Weights
    interval: Interval
    margin: float | None
    conf_level: float
    n_resamples: int
    seed: int
    n_threads: int


def analyze_held(
    held: Held,
    roles: Mapping[str, RoleArgument],
    *,
    levels: Sequence[str] | None,
    higher_is_better: bool | None,
    unparsed: Unparsed | None,
    asked: Asked,
) -> Analysis:
    """As `analyze`, from sums by cluster that the engine makes.

    Raises
    ------
    ReadError
        If the engine cannot group and sum the columns.
    ArgumentError, ArgumentTypeError, DataError, RoleError, DesignError
        As `analyze`, and where the sums of all clusters do not fit in memory.
    """
    table = held_table(held, roles, levels=levels, higher_is_better=higher_is_better, unparsed=unparsed)
    units = units_of(table)
    draft = draft_layout(table, units, asked.reference)
    targets = plan.targets_of(draft, asked.estimands)
    found = _ask(table, units, draft, targets, asked)
    layout, sums, tally = found.layout, found.sums, found.tally
    options = Options(
        interval=asked.interval,
        n_resamples=asked.n_resamples,
        seed=asked.seed,
        n_threads=asked.n_threads,
        margin=asked.margin,
        higher_is_better=table.higher_is_better,
    )
    rate_plan = plan.rates_of(layout, sums, weights=asked.weights, metric=table.metric)
    contrast_plan = plan.contrasts_of(
        layout, sums, targets, match=asked.match, weights=asked.weights, metric=table.metric
    )
    valid_resamples(
        options.n_resamples, len(rate_plan.rows) + (len(contrast_plan.rows) if contrast_plan else 0)
    )
    rates, rate_notes = infer(rate_plan, kind="mean", options=options)
    comparison: readings.Comparison | None = None
    contrast_notes: tuple[Note, ...] = ()
    if contrast_plan is not None:
        family, contrast_notes = infer(contrast_plan, kind="contrast", options=options)
        comparison = readings.Comparison(family, readings_of(sums, contrast_plan.blocks, found.kinds))
    effects = rate_effects.rate_effects(layout, tally, rates) if comparison is None else ()
    parts = Parts(
        settings=Settings(
            cluster=layout.cluster_name,
            n_clusters=layout.n_clusters,
            match=asked.match,
            weights=asked.weights,
            interval=asked.interval,
            conf_level=asked.conf_level,
            margin=asked.margin,
            n_resamples=asked.n_resamples,
            seed=asked.seed,
            higher_is_better=table.higher_is_better,
        ),
        design=describe.design_frame(layout, tally, sums, targets, asked.match, comparison, effects),
        missing=missingness.missing_frame(layout, tally, table.metric),
        rates=rates,
        comparison=comparison,
        contrast_tests=(),
        agreement=None,
        errors=None,
        mixed=None,
        ranking=None,
        regression=None,
        notes=(
            *table.notes,
            *layout.notes,
            *missingness.unparsed_notes(layout, tally),
            *describe.plan_notes(
                layout, targets, match=asked.match, weights=asked.weights, interval=asked.interval
            ),
            *rate_notes,
            *rate_effects.rows_note(layout, effects),
            *contrast_notes,
            _totals_note(held.engine),
        ),
    )
    return assemble(parts, asked.conf_level)


def _totals_note(engine: str) -> Note:
    return Note(
        "totals_only",
        f"The rows stayed in {engine}, and only sums by cluster arrived: {_NEEDS_ROWS} need the rows. "
        "Collect the table first for these, where it fits in memory.",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What the engine was asked for and sent."""

    layout: HeldLayout
    sums: HeldSums
    tally: Tally
    kinds: Mapping[Match, Match]


def _ask(
    table: HeldTable, units: Units, draft: HeldLayout, targets: Sequence[Target], asked: Asked
) -> _Found:
    """Ask the engine for the sums and counts of an analysis."""
    columns = table.columns
    values = level_values(table, draft.levels)
    models = [table.values_of("model")[label] for label in draft.models] if draft.has_models else []
    stages = Stages.of(table, units.unit, units.cluster, values, models)
    parts = table.held.parts(table.n_rows)
    wanted = _wanted(draft, targets, asked, repeats="repetition" in columns)
    counts = _counts(table, stages, parts, judged="judge" in columns)
    if not (counts["scored"] > 0).any():
        by_status = counts.group_by("status").agg(pl.col("responses").sum())
        refuse_unscored(dict(by_status.iter_rows()))
    gathered: dict[str | None, Gathered] = {None: gather(stages, parts, wanted, units.name)}
    refuse_repeated(stages, parts, gathered[None], table.roles, repeats="repetition" in columns)
    axis, order = axis_of(gathered[None].clusters, units)
    orders: dict[str | None, NDArray[np.int64]] = {None: order}
    strata = table.values_of("stratum")
    for stratum in draft.strata:
        own = [_of_stratum(part, strata[stratum]) for part in parts]
        gathered[stratum] = gather(stages, own, wanted, units.name)
        orders[stratum] = _order_in(gathered[stratum].clusters, gathered[None].clusters, order)
    cells = gathered[None].described["cell"]
    notes = judge_notes(_by_judges(counts, values)) if "judge" in columns else []
    layout = completed(draft, units, axis, cells, counts, notes)
    known = tuple(models) or (None,)
    tally = tally_from(
        counts,
        known,
        values,
        n_rows=table.n_rows,
        n_cells=sum(int(cells[f"h_{code}"].sum()) for code in range(len(values))),
        n_judges=_n_judges(table) if "judge" in columns else None,
    )
    row: Match = "row" if "repetition" in columns else "cell"
    kinds: dict[Match, Match] = {"row": row}
    if max(layout.repetitions) > 1:
        kinds["cell"] = "cell"
    match: Match = asked.match if asked.match != "row" else row
    sums = HeldSums(gathered, wanted.described, orders, match, known)
    return _Found(layout, sums, tally, kinds)


def _wanted(draft: HeldLayout, targets: Sequence[Target], asked: Asked, *, repeats: bool) -> Wanted:
    """The groups of rates and contrasts, at the kinds of key that are read."""
    rates = tuple(Group((code,), by_count=True) for code in range(len(draft.levels)))
    coefficients: dict[tuple[int, ...], list[tuple[float, ...]]] = {}
    for target in targets:
        for levels in target.columns:
            known = coefficients.setdefault(levels, [])
            own = target.estimand.coefficients
            if own is not None and target.estimand.null is not None and own not in known:
                known.append(own)
    contrasts = tuple(Group(levels, contrasts=tuple(own)) for levels, own in coefficients.items())
    match: Match = "cell" if asked.match == "row" and not repeats else asked.match
    summed: dict[Match, tuple[Group, ...]] = {"cell": rates + (contrasts if match == "cell" else ())}
    described: dict[Match, tuple[Group, ...]] = {"cell": rates + contrasts}
    if repeats:
        described["row"] = contrasts
    if match != "cell":
        described[match] = contrasts
        if contrasts:
            summed[match] = contrasts
    return Wanted(asked.weights, summed, described, times=1 + len(draft.strata))


def _counts(table: HeldTable, stages: Stages, parts: Sequence[Held], *, judged: bool) -> pl.DataFrame:
    """Responses by model, conditions, stratum and status; of all rows at once where nothing is averaged."""
    if not judged:
        return table.held.collect(stages.counts())[0]
    found = [part.collect(stages.within(part.frame).responses().counts())[0] for part in parts]
    return pl.concat(found)


def _by_judges(counts: pl.DataFrame, levels: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Responses by level and number of judges."""
    named = counts.with_columns(level=level_code(levels), n_judges=pl.col("judges").cast(pl.Int64))
    return named.group_by("level", "n_judges").agg(pl.col("responses").sum().cast(pl.Int64).alias("len"))


def _n_judges(table: HeldTable) -> int:
    import narwhals as nw

    frame = table.held.frame.filter(~nw.col("judge").is_null()).select("judge")
    (found,) = table.held.collect(frame.group_by("judge").agg(nw.len().alias("n")))
    return found.height


def _of_stratum(held: Held, value: Any) -> Held:
    import narwhals as nw

    return held.of(held.frame.filter(nw.col("stratum") == value))


def _order_in(own: pl.DataFrame, everyone: pl.DataFrame, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each sorted cluster among those of a stratum; -1 where it has none."""
    place = np.full(everyone.height, -1, dtype=np.int64)
    place[places_of(own, everyone)] = np.arange(own.height)
    return place[order]
