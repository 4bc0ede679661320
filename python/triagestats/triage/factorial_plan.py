"""The effects of a factorial on the totals of complete cells, for all models, by model and by judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.blocks import Block, Target, contrast_block
from triagestats.design import Design, design_of
from triagestats.errors import DesignError
from triagestats.matching import Keys, keys_of
from triagestats.plan import Plan, Row
from triagestats.results import Note
from triagestats.schema import Match, Weights
from triagestats.table import ResponseTable
from triagestats.totals import TotalsBuilder
from triagestats.triage.contrasts import Contrast
from triagestats.triage.effects import Effect
from triagestats.triage.factors import Factors
from triagestats.triage.text import in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MEANS", "FactorialPlan", "block_rows", "factorial_plan", "having"]

MEANS: Final = ("rate", "mean")
"""Names of the mean scores of combinations."""
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class FactorialPlan:
    """The estimates of a factorial.

    Attributes
    ----------
    plan
        Blocks, totals and rows.
    n_cells, n_planned
        Cells scored in all combinations, and cells of a complete crossing.
    notes
        Choices made and doubts.
    """

    plan: Plan
    n_cells: int
    n_planned: int
    notes: tuple[Note, ...]


def factorial_plan(
    table: ResponseTable,
    design: Design,
    factors: Factors,
    effects: Sequence[Effect],
    *,
    match: Match,
    weights: Weights,
) -> FactorialPlan:
    """Means and effects on the cells scored at all levels that some effect reads.

    Raises
    ------
    DesignError
        If there is no such cell.
    """
    codes = sorted({code for effect in effects for code in effect.codes})
    targets = [*_means(design, factors, codes), *_contrasts(effects)]
    planned = design.planned(codes, match)
    builder = TotalsBuilder(design.axes)
    blocks: list[Block] = []
    rows: list[Row] = []
    whole = having(keys_of(design, match), codes)
    if not whole.unit.size:
        raise DesignError(_why_none(design, keys_of(design, match), factors, codes, match))
    judged = [(None, design), *_by_judge(table, design)]
    for judge, own in judged:
        for stratum in (None, *(design.strata if judge is None else ())):
            keys = having(keys_of(own, match, stratum), codes)
            for target, identity in targets:
                block = contrast_block(builder, own, keys, target, weights=weights, stratum=stratum)
                first = sum(len(one.groups) for one in blocks)
                rows += block_rows(
                    design,
                    block,
                    first,
                    identity | {"judge": judge, "stratum": stratum, "metric": _metric(table)},
                    f"no cell is scored in all {len(codes)} condition levels",
                    planned if stratum is None else None,
                )
                if block is not None:
                    blocks.append(block)
    notes = (
        *_design_notes(design, factors),
        *_cell_notes(design, whole, codes, match, weights, planned),
    )
    everyone = planned * len(design.models)
    return FactorialPlan(Plan(tuple(blocks), builder.build(), tuple(rows)), len(whole.unit), everyone, notes)


def having(keys: Keys, codes: Sequence[int]) -> Keys:
    """The keys that are scored at all of some levels, with all levels."""
    kept = ~np.isnan(keys.values[:, list(codes)]).any(axis=1)
    return Keys(keys.unit[kept], keys.model[kept], keys.cell[kept], keys.values[kept], keys.counts[kept])


def block_rows(
    design: Design,
    block: Block | None,
    first: int,
    identity: Mapping[str, Any],
    reason: str,
    planned: int | None,
) -> Iterator[Row]:
    """A row for all models and one a model; those without data say why.

    Parameters
    ----------
    first
        The place of the block's first estimate.
    planned
        Keys of one model that a complete crossing would have; None where nobody asks.
    """
    places = {} if block is None else {model: place for place, model in enumerate(block.models)}
    wanted: list[int | None] = [None, *(range(len(design.models)) if design.has_models else ())]
    for model in wanted:
        used = block.n_keys[places[model]] if block is not None and model in places else 0
        goal = None if planned is None else planned * (len(design.models) if model is None else 1)
        named = {
            **identity,
            "model": None if model is None else design.models[model],
            "n_missing": None if goal is None else max(0, goal - used),
        }
        if model in places:
            yield Row(named, first + places[model])
        else:
            yield Row(named | {"n_rows": 0, "n_clusters": 0}, None, reason)


def _means(design: Design, factors: Factors, codes: Sequence[int]) -> Iterator[tuple[Target, dict[str, Any]]]:
    """The mean of each combination that is read."""
    name = "rate" if design.is_rate else "mean"
    for combination in factors.combinations:
        members = tuple(code for code in factors.members.get(combination, ()) if code in codes)
        if not members:
            continue
        label = factors.label(combination)
        shares = {design.levels[code].label: 1 / len(members) for code in members}
        mean = Contrast(name, f"mean({label})", shares)
        yield Target(mean, None, (members,)), {"estimand": name, "condition": label}


def _contrasts(effects: Sequence[Effect]) -> Iterator[tuple[Target, dict[str, Any]]]:
    for effect in effects:
        contrast = effect.contrast
        identity = {"estimand": contrast.name, "term": effect.term, "contrast": contrast.label}
        yield Target(contrast, effect.term, (effect.codes,)), identity


def _by_judge(table: ResponseTable, design: Design) -> Iterator[tuple[str, Design]]:
    """The design with the scores of one judge alone, beside responses that no judge scored.

    Rows of other judges lose their score and stay, so that units, levels and clusters have the same codes.
    """
    if len(table.judges) < 2:
        return
    references = {factor.name: level for factor, level in zip(design.factors, design.references, strict=True)}
    for judge in table.judges:
        own = pl.col("judge").is_null() | (pl.col("judge") == judge)
        frame = table.frame.with_columns(pl.when(own).then("score").alias("score"))
        if frame["score"].count():
            yield judge, design_of(table.with_frame(frame), reference=references)


def _metric(table: ResponseTable) -> str | None:
    return table.frame["metric"][0] if "metric" in table.frame.columns else None


def _why_none(design: Design, keys: Keys, factors: Factors, codes: Sequence[int], match: Match) -> str:
    """Why no cell is scored at all levels, and what would help."""
    by_level = [f"{design.levels[code].label!r} {int((keys.counts[:, code] > 0).sum()):,}" for code in codes]
    more = len(by_level) - _SHOWN
    counts = ", ".join(by_level[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    message = f"no cell is scored in all {len(codes)} condition levels; scored cells by level are {counts}"
    if match != "scenario" and not frozenset.intersection(*(design.variants[code] for code in codes)):
        return (
            f"{message}. They share no variant: if the variant names the combination of "
            f"{' and '.join(factors.names)}, leave it out with `variant=False`, or use match='scenario'"
        )
    return f"{message}. Scenarios or models differ between them"


def _design_notes(design: Design, factors: Factors) -> Iterator[Note]:
    yield from (note for note in design.notes if note.code != "reference")
    shown = list(zip(factors.names, factors.levels, strict=True))
    references = ", ".join(f"{levels[0]!r} of {name}" for name, levels in shown[: factors.n_shown])
    yield Note("reference", f"Effects are level minus reference; the references are {references}.")
    averaged = [name for name, _ in shown[factors.n_shown :]]
    if averaged:
        yield Note("averaged", f"Averaged over, with equal weight of each level: {', '.join(averaged)}.")
    if factors.unused:
        which = in_words(map(repr, factors.unused))
        yield Note("unused", f"Condition levels that belong to no combination are left out: {which}.")


def _cell_notes(
    design: Design, whole: Keys, codes: Sequence[int], match: Match, weights: Weights, planned: int
) -> Iterator[Note]:
    by_model = np.bincount(whole.model, minlength=len(design.models))
    total = planned * len(design.models)
    kind = {"cell": "cells", "row": "rows", "scenario": "scenario x model pairs"}[match]
    if len(whole.unit) < total:
        short = [
            f"{design.models[model]} {count:,} of {planned:,}"
            for model, count in enumerate(by_model)
            if count < planned and design.has_models
        ]
        said = f" ({in_words(short)})" if short else ""
        message = (
            f"{len(whole.unit):,} of {total:,} planned {kind} are scored in all {len(codes)} levels{said}."
        )
        yield Note("incomplete_cells", message, "caution")
    for model in np.flatnonzero(by_model == 0):
        lacking = _lacking(design, int(model), codes)
        why = (
            f"it has no score at {in_words(lacking)}"
            if lacking
            else "its scenarios differ between the levels"
        )
        message = f"{design.models[model]} is in no estimate: {why}."
        yield Note("model_left_out", message, "caution")
    how = (
        f"Every complete one of the {kind} weighs the same, over all models."
        if weights == "row"
        else "All models' estimate is the plain mean of the models' estimates; each scenario weighs the same."
    )
    averaged = "" if match == "row" else "Repetitions are averaged within a cell. "
    yield Note("weights", averaged + how)


def _lacking(design: Design, model: int, codes: Sequence[int]) -> list[str]:
    """Levels at which a model has no score."""
    scored = design.responses.filter((pl.col("model") == model) & pl.col("score").is_not_null())
    there: NDArray[np.int64] = scored["level"].unique().to_numpy()
    return [design.levels[code].label for code in codes if code not in there]
