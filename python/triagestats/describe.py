"""The design as a tidy frame, and the choices that were made in notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from triagestats.blocks import Target
from triagestats.key_sums import KeySums
from triagestats.layout import Layout
from triagestats.rate_effects import RateEffect
from triagestats.readings import Comparison
from triagestats.results import Note, tidy_frame
from triagestats.schema import Interval, Match, Weights
from triagestats.tallies import Tally

__all__ = ["design_frame", "plan_notes"]


def design_frame(
    design: Layout,
    tally: Tally,
    sums: KeySums,
    targets: Sequence[Target],
    match: Match,
    comparison: Comparison | None,
    effects: Sequence[RateEffect] = (),
) -> pl.DataFrame:
    """Counts of the design, one a row: `estimand` names the count, `estimate` holds it.

    Statuses stand in `status` by condition; keys matched for a contrast, and keys scored at a level
    without their partner, in `contrast` and `condition`; `design_effect` is the variance by cluster
    over that of independent rows, of the contrasts, or of the rates where there are none.
    """
    rows = [
        *_sizes(design, tally),
        *_by_level(design, tally),
        *(row for target in targets for row in _matching(sums, target, match)),
        *(_design_effects(comparison) if comparison is not None else ()),
        *(_of_rate(effect) for effect in effects),
    ]
    return tidy_frame(rows)


def _sizes(design: Layout, tally: Tally) -> Iterator[dict[str, Any]]:
    yield {"estimand": "rows", "estimate": float(tally.n_rows)}
    yield {"estimand": "responses", "estimate": float(tally.responses["responses"].sum())}
    yield {"estimand": "scored", "estimate": float(tally.responses["scored"].sum())}
    yield {"estimand": "cells", "estimate": float(tally.n_cells)}
    yield {"estimand": "scenarios", "estimate": float(design.n_scenarios)}
    for axis in design.axes:
        yield {"estimand": "clusters", "term": axis.name, "estimate": float(len(axis.labels))}
    if design.has_models:
        yield {"estimand": "models", "estimate": float(len(design.models))}
    for factor in design.factors:
        yield {"estimand": "conditions", "term": factor.name, "estimate": float(len(factor.levels))}
    if tally.n_judges is not None:
        yield {"estimand": "judges", "estimate": float(tally.n_judges)}


def _by_level(design: Layout, tally: Tally) -> Iterator[dict[str, Any]]:
    by_status = tally.responses.group_by("level", "status").agg(pl.col("responses").sum())
    statuses = by_status.sort("level", "status")
    scored = dict(tally.responses.group_by("level").agg(pl.col("scored").sum()).iter_rows())
    for code, level in enumerate(design.levels):
        condition = {"condition": level.label if design.factors else None}
        planned = design.planned([code], "row") * len(design.models)
        usable = scored.get(code, 0)
        variants, repetitions = len(design.variants[code]), design.repetitions[code]
        yield condition | {"estimand": "variants", "estimate": float(variants)}
        yield condition | {"estimand": "repetitions", "estimate": float(repetitions)}
        yield condition | {
            "estimand": "balance",
            "estimate": usable / planned if planned else None,
            "n_rows": usable,
            "n_missing": planned - usable,
        }
        for _, status, count in statuses.filter(pl.col("level") == code).iter_rows():
            yield condition | {"estimand": "responses", "status": status, "estimate": float(count)}


def _matching(sums: KeySums, target: Target, match: Match) -> Iterator[dict[str, Any]]:
    scored = sums.n_scored()
    matched = 0
    lost = dict.fromkeys(target.estimand.levels, 0)
    for columns in target.columns:
        complete = sums.n_matched(columns)
        matched += complete
        for level, code in zip(target.estimand.levels, columns, strict=True):
            lost[level] += int(scored[code]) - complete
    contrast = {"contrast": target.estimand.label, "term": target.term, "method": f"match={match}"}
    yield contrast | {"estimand": "keys_matched", "estimate": float(matched)}
    for level, count in lost.items():
        yield contrast | {"estimand": "keys_lost", "condition": level, "estimate": float(count)}


def _design_effects(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for identity, e in comparison:
        same = {name: identity[name] for name in ("term", "contrast", "model", "stratum")}
        yield same | {"estimand": "design_effect", "estimate": comparison.design_effect(e)}


def _of_rate(effect: RateEffect) -> dict[str, Any]:
    same = {
        name: effect.identity[name] for name in ("condition", "model", "stratum") if name in effect.identity
    }
    return same | {
        "estimand": "design_effect",
        "estimate": effect.design_effect,
        "n_rows": effect.n_rows,
        "n_clusters": effect.n_clusters,
    }


def plan_notes(
    design: Layout, targets: Sequence[Target], *, match: Match, weights: Weights, interval: Interval
) -> tuple[Note, ...]:
    """How cells were weighted and matched, and how intervals are made, where there was a choice."""
    notes: list[Note] = []
    if max(design.repetitions) > 1 and match != "row":
        cell = "scenario x model x variant x condition"
        notes.append(Note("repetitions", f"Repetitions are averaged within a cell ({cell})."))
    if weights == "row":
        notes.append(Note("weights", "Every matched key weighs the same, pooled over everything."))
    elif len(design.models) > 1:
        how = "Pooled over models is the plain mean of the models' estimates; each scenario weighs the same."
        notes.append(Note("weights", how))
    if len({variants for variants in design.variants if variants}) > 1 and match != "scenario":
        message = "Conditions differ in their variants; contrasts use the variants that all sides have."
        notes.append(Note("variants", message))
    silent = [level.label for code, level in enumerate(design.levels) if not design.has_scores(code)]
    if silent:
        message = f"Nothing is scored at {', '.join(map(repr, silent))}; its contrasts are not estimated."
        notes.append(Note("nothing_scored", message, "caution"))
    if len(design.factors) > 1:
        message = "Contrasts of a condition column give equal weight to each combination of the others."
        notes.append(Note("factors", message))
    if not targets:
        if not design.factors:
            what = "the table has no condition column"
        elif all(len(factor.levels) == 1 for factor in design.factors):
            what = "the table has one condition"
        else:
            what = "no two levels of a condition column occur with the same levels of the others"
        notes.append(Note("no_contrasts", f"Nothing is compared: {what}."))
    if interval == "auto":
        notes.append(Note("intervals", f"Intervals: {_intervals(design, compared=bool(targets))}."))
    return tuple(notes)


def _intervals(design: Layout, *, compared: bool) -> str:
    jackknife = "cluster jackknife with t(G - 1)"
    if not design.is_rate:
        return jackknife
    return "Korn-Graubard plus two for rates" + (f", {jackknife} for contrasts" if compared else "")
