"""The bootstrap of a response table under any scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats import schemes
from triagestats.blocks import Block, contrast_targets
from triagestats.defaults import Method
from triagestats.design import Design, Reference, design_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Estimand
from triagestats.estimates import Estimates
from triagestats.evidence import Evidence, gather_evidence
from triagestats.labels import as_text
from triagestats.matching import keys_of, repetitions_of
from triagestats.plan import Plan, contrast_plan, targets_of
from triagestats.resample import bootstrap, valid_resamples
from triagestats.results import Note
from triagestats.samples import NESTED, stratum_codes
from triagestats.schema import Match, Scheme, Weights
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["bootstrap_table"]


def bootstrap_table(
    table: ResponseTable,
    estimands: Sequence[Estimand] | None,
    *,
    scheme: Scheme,
    strata: object,
    reference: Reference,
    match: Match,
    weights: Weights,
    interval: Method,
    conf_level: float,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Estimates:
    """Contrasts of a table, pooled and by model; the arguments are those of `bootstrap`.

    Raises
    ------
    DesignError
        If the scheme does not fit the clusters of the table, or nothing can be compared.
    """
    design = design_of(table, reference=reference)
    targets = targets_of(design, estimands)
    if estimands is not None:
        targets = targets[len(contrast_targets(design)) :]
    plan = contrast_plan(design, targets, match=match, weights=weights, metric=None)
    if plan is None:
        raise DesignError("the table has nothing to compare: one condition, or scores at one of them only")
    if (scheme == "crossed") != (len(design.axes) == 2):
        raise DesignError(
            "scheme='crossed' and two cluster columns go together, such as "
            "table.with_cluster(('scenario', 'model')); "
            f"the scheme is {scheme!r} and the clusters are {design.cluster_name}"
        )
    n_estimates = sum(len(block.groups) for block in plan.blocks)
    asked: dict[str, Any] = {
        "n_resamples": valid_resamples(n_resamples, n_estimates),
        "seed": seed,
        "n_threads": n_threads,
    }
    notes: tuple[Note, ...] = ()
    if scheme == "nested":
        evidence = _nested(design, plan, match=match, weights=weights, **asked)
        notes = (NESTED,)
    else:
        codes = None if strata is None else _strata(table, design, strata)
        evidence = gather_evidence(
            plan.blocks,
            plan.totals,
            studentise=interval == "bootstrap-t",
            draws=_draws(plan, scheme, codes),
            strata=codes,
            **asked,
        )
    shown = sorted((row for row in plan.rows if row.slot is not None), key=lambda row: row.slot or 0)
    clusters = evidence.n_clusters
    is_rate = [block.is_rate for block in plan.blocks for _ in block.groups]
    return Estimates(
        identity=tuple(row.identity for row in shown),
        evidence=evidence,
        interval=interval,
        conf_level=conf_level,
        scheme=scheme,
        smooth=tuple(block.target.estimand.smooth for block in plan.blocks for _ in block.groups),
        binomial=tuple(int(n) if rate else 0 for n, rate in zip(clusters, is_rate, strict=True)),
        n_rows=tuple(number for block in plan.blocks for number in block.n_rows),
        n_resamples=asked["n_resamples"],
        seed=seed,
        notes=notes,
    )


def _draws(plan: Plan, scheme: Scheme, codes: NDArray[np.uint32] | None) -> schemes.Draws | None:
    """The scheme on the totals of a plan; None for the one that evidence takes by itself."""
    if scheme == "bayesian":
        return schemes.Bayesian(np.ascontiguousarray(plan.totals.values))
    if scheme == "stratified":
        return schemes.cluster_draws(plan.totals.values, codes)
    return None


def _strata(table: ResponseTable, design: Design, column: object) -> NDArray[np.uint32]:
    """Stratum codes of the clusters, from a column that is constant in each."""
    if not isinstance(column, str):
        raise ArgumentTypeError(f"`strata` must name a column of the table; got {column!r}")
    if column not in table.frame.columns:
        raise ArgumentError(f"`strata` names {column!r}; the columns are {table.frame.columns}")
    name = "cluster_1" if "cluster_1" in table.frame.columns else "scenario"
    pairs = table.frame.select(name, as_text(table.frame[column], "strata").alias("stratum")).unique()
    if pairs.height != design.n_clusters[0]:
        split = pairs.filter(pl.col(name).is_duplicated()).sort(name)[name][0]
        raise DesignError(f"`strata` column {column!r} has several values in cluster {split!r}")
    of_cluster = dict(pairs.iter_rows())
    labels = [of_cluster[label] for label in design.axes[0].labels]
    if gaps := sum(label is None for label in labels):
        raise DesignError(f"`strata` column {column!r} is blank in {gaps:,} clusters; fill it in")
    return stratum_codes(np.array(labels, dtype=str))


def _nested(
    design: Design,
    plan: Plan,
    *,
    match: Match,
    weights: Weights,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Evidence:
    """Scenarios with replacement, then the repetitions within each of their cells."""
    if match != "cell" or weights != "scenario" or len(design.axes[0].labels) != design.n_units:
        raise DesignError(
            "scheme='nested' draws repetitions within cells of scenarios: it needs match='cell', "
            "weights='scenario', and the scenario as the cluster"
        )
    parts = [
        _nested_block(design, block, n_resamples=n_resamples, seed=seed, n_threads=n_threads)
        for block in plan.blocks
    ]
    return replace(
        gather_evidence(plan.blocks, plan.totals, n_resamples=0, seed=seed),
        replicates=np.concatenate(parts, axis=1),
    )


def _nested_block(design: Design, block: Block, *, n_resamples: int, seed: int, n_threads: int) -> Array:
    """Nested replicates of one block, shape (R, E).

    A unit's score at a level is the mean over its matched variants of the means of their repetitions.
    The kernel draws cells; a cell here is combination x level x place among the unit's variants, with
    its repetitions over the number of variants, so that the drawn means of a unit's cells sum to its
    score.
    """
    keys = keys_of(design, "cell", block.stratum)
    rows = repetitions_of(design, block.stratum)
    n_models, size = len(design.models), design.n_units
    groups, columns, values = [], [], []
    combination = 0
    slots = 1
    for levels in block.target.columns:
        kept = np.flatnonzero(~np.isnan(keys.values[:, list(levels)]).any(axis=1))
        pair = keys.unit[kept] * n_models + keys.model[kept]
        order, number = _places(pair)
        slots = max(slots, int(number.max(initial=1)))
        place, variants = (np.zeros(len(keys.unit), dtype=np.int64) for _ in range(2))
        place[kept], variants[kept] = order, number
        of_combination = np.full(n_models, -1)
        for model in np.unique(keys.model[kept]):
            of_combination[model] = combination
            combination += 1
        used = np.isin(rows.key, kept) & np.isin(rows.level, levels)
        key, level = rows.key[used], rows.level[used]
        position = np.array(
            [levels.index(code) if code in levels else 0 for code in range(len(design.levels))]
        )
        groups.append(keys.unit[key])
        columns.append((of_combination[keys.model[key]], position[level], place[key]))
        values.append(rows.score[used] / variants[key])
    n_levels = len(block.target.estimand.levels)
    column = np.concatenate([(which * n_levels + level) * slots + place for which, level, place in columns])
    width = combination * n_levels * slots
    cell = np.concatenate(groups) * width + column
    flat = np.concatenate(values)[np.argsort(cell, kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=size * width))]).astype(np.int64)
    draws = schemes.Nested(np.ascontiguousarray(flat), offsets, width)

    def evaluate(totals: Array) -> Array:
        lead = totals.shape[:-1]
        shape = (*lead, combination, n_levels, slots)
        scores = totals[..., :width].reshape(shape)
        drawn = totals[..., width:].reshape(shape)
        return block.of_sums(sum_last(scores), drawn[..., 0, 0])

    return bootstrap(evaluate, draws, n_resamples=n_resamples, seed=seed, n_threads=n_threads)


def sum_last(values: Array) -> Array:
    """Sums over the last axis, one after the other, so that no bit depends on the shape."""
    total = values[..., 0]
    for place in range(1, values.shape[-1]):
        total = total + values[..., place]
    return total


def _places(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of each member within its group, and the size of its group."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(group)))
    place, size = np.empty(len(group), dtype=np.int64), np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - np.repeat(starts, sizes)
    size[order] = np.repeat(sizes, sizes)
    return place, size
