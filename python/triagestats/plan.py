"""Which estimates an analysis makes: blocks on totals, and the rows that show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triagestats.blocks import (
    Block,
    Target,
    block_of,
    contrast_targets,
    custom_target,
    rate_block,
)
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Estimand
from triagestats.key_sums import DesignSums, KeySums
from triagestats.layout import Layout
from triagestats.schema import Match, Weights
from triagestats.totals import Totals, TotalsBuilder

__all__ = ["Plan", "Row", "contrast_plan", "contrasts_of", "rate_plan", "rates_of", "targets_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a result: the columns that say what it is, and its place among the estimates.

    `slot` is None where nothing was observed; `reason` then says so.
    """

    identity: dict[str, Any]
    slot: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Blocks, the totals that they read, and the rows to show."""

    blocks: tuple[Block, ...]
    totals: Totals
    rows: tuple[Row, ...]


def targets_of(design: Layout, estimands: Sequence[Estimand] | None) -> tuple[Target, ...]:
    """Every level against the reference, then the estimands that the caller asked for.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If something is no estimand, or names a level that the table does not have.
    DesignError
        If its levels never stand together in one combination of the other factors.
    """
    targets = list(contrast_targets(design))
    if estimands is None:
        return tuple(targets)
    if isinstance(estimands, Estimand) or not isinstance(estimands, Sequence):
        raise ArgumentTypeError(
            f"`estimands` must be a list of estimands, such as [ts.Gap(...)]; got {estimands!r}"
        )
    for estimand in estimands:
        if not isinstance(estimand, Estimand):
            raise ArgumentTypeError(f"`estimands` must hold estimands, such as ts.Gap(...); got {estimand!r}")
        target = custom_target(design, estimand)
        if target is None:
            known = {factor.name: list(factor.levels) for factor in design.factors}
            raise ArgumentError(
                f"estimand {estimand.label!r} needs the levels {list(estimand.levels)} of one condition; "
                f"the levels are {known or 'none, as the table has no condition column'}"
            )
        if not target.columns:
            raise DesignError(
                f"estimand {estimand.label!r}: its levels never occur with the same other conditions"
            )
        targets.append(target)
    return tuple(targets)


def rate_plan(design: Design, *, weights: Weights, metric: str | None) -> Plan:
    """The mean score of every model and pooled, at every joint level, for all rows and by stratum."""
    return rates_of(design, DesignSums(design, "cell", weights), weights=weights, metric=metric)


def rates_of(design: Layout, sums: KeySums, *, weights: Weights, metric: str | None) -> Plan:
    """As `rate_plan`, from the sums of a layout."""
    builder = TotalsBuilder(design.axes)
    blocks: list[Block] = []
    rows: list[Row] = []
    named = bool(design.factors)
    for stratum in (None, *design.strata):
        for code, level in enumerate(design.levels):
            matched = sums.rate(code, stratum)
            block = rate_block(builder, design, matched, code, weights=weights, stratum=stratum)
            identity = {
                "estimand": "rate" if design.is_rate else "mean",
                "condition": level.label if named else None,
                "stratum": stratum,
                "metric": metric,
            }
            planned = design.planned([code], "row") if stratum is None else None
            used = [] if block is None else list(block.n_rows)
            rows += _rows(design, block, len(_slots(blocks)), identity, "nothing is scored", planned, used)
            if block is not None:
                blocks.append(block)
    return Plan(tuple(blocks), builder.build(), tuple(rows))


def contrast_plan(
    design: Design,
    targets: Sequence[Target],
    *,
    match: Match,
    weights: Weights,
    metric: str | None,
    strata: bool = True,
) -> Plan | None:
    """Every target, pooled and by model, for all rows and by stratum; None where no target has scores.

    Without `strata` for all rows alone.

    Raises
    ------
    DesignError
        If levels have scores, but no target has a matched key at all.
    """
    sums = DesignSums(design, match, weights)
    return contrasts_of(design, sums, targets, match=match, weights=weights, metric=metric, strata=strata)


def contrasts_of(
    design: Layout,
    sums: KeySums,
    targets: Sequence[Target],
    *,
    match: Match,
    weights: Weights,
    metric: str | None,
    strata: bool = True,
) -> Plan | None:
    """As `contrast_plan`, from the sums of a layout; they are those of `match` and `weights`.

    Raises
    ------
    DesignError
        As `contrast_plan`.
    """
    scored = [design.has_scores(level) for level in range(len(design.levels))]
    if not any(all(scored[code] for code in columns) for target in targets for columns in target.columns):
        return None
    builder = TotalsBuilder(design.axes)
    blocks: list[Block] = []
    rows: list[Row] = []
    for stratum in (None, *(design.strata if strata else ())):
        for target in targets:
            matched = [sums.contrast(columns, stratum) for columns in target.columns]
            block = block_of(builder, design, target, matched, weights=weights, stratum=stratum)
            identity = {
                "estimand": target.estimand.name,
                "term": target.term,
                "contrast": target.estimand.label,
                "stratum": stratum,
                "metric": metric,
            }
            planned = None
            if stratum is None:
                planned = sum(design.planned(columns, match) for columns in target.columns)
            used = [] if block is None else list(block.n_keys)
            reason = f"no key is scored at all of its levels with match={match!r}"
            rows += _rows(design, block, len(_slots(blocks)), identity, reason, planned, used)
            if block is not None:
                blocks.append(block)
    if not blocks:
        hint = _unmatched_hint(design, sums, targets[0], match)
        raise DesignError(f"no key is scored on both sides of any contrast with match={match!r}; {hint}")
    return Plan(tuple(blocks), builder.build(), tuple(rows))


def _slots(blocks: Sequence[Block]) -> list[int]:
    return [place for block in blocks for place in range(len(block.groups))]


def _rows(
    design: Layout,
    block: Block | None,
    first: int,
    identity: dict[str, Any],
    reason: str,
    planned: int | None,
    used: Sequence[int],
) -> Iterator[Row]:
    """A row for the pooled models and one a model; models without data get an empty one."""
    slots = {} if block is None else {model: first + place for place, model in enumerate(block.models)}
    counts = {} if block is None else dict(zip(block.models, used, strict=True))
    everyone = len(design.models)
    wanted: list[int | None] = [None]
    if design.has_models:
        wanted += list(range(everyone))
    for model in wanted:
        goal = None if planned is None else planned * (everyone if model is None else 1)
        missing = None if goal is None else max(0, goal - counts.get(model, 0))
        named = identity | {
            "model": None if model is None else design.models[model],
            "n_missing": missing,
        }
        if model in slots:
            yield Row(named, slots[model])
        else:
            yield Row(named | {"n_rows": 0, "n_clusters": 0}, None, reason)


def _unmatched_hint(design: Layout, sums: KeySums, target: Target, match: Match) -> str:
    levels = target.columns[0]
    shared = frozenset.intersection(*(design.variants[level] for level in levels))
    if match != "scenario" and not shared:
        return "the conditions share no variant: use match='scenario' to compare scenario means"
    if match == "row":
        return "repetitions do not pair across the conditions: use match='cell' to average them"
    scored = sums.n_scored()
    by_level = [int(scored[level]) for level in levels]
    names = ", ".join(
        f"{design.levels[level].label!r} {n:,}" for level, n in zip(levels, by_level, strict=True)
    )
    return f"scored keys by level are {names}, and none is shared: scenarios or models differ between them"
