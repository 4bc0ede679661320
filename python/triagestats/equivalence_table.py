"""Equivalence of an estimand of a response table, by its cluster interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.blocks import Block, custom_target
from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS
from triagestats.design import Design, design_of
from triagestats.equivalence_sides import Bounds, MeanError, Sides, percentile_sides, t_sides
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Difference, Estimand
from triagestats.evidence import Evidence, gather_evidence
from triagestats.labels import listed
from triagestats.matching import keys_of
from triagestats.pairs import level_codes, lost_keys
from triagestats.plan import contrast_plan
from triagestats.results import Note
from triagestats.schema import Match, Weights
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TableSides", "few_cluster_notes", "table_sides"]

_CONSTANT: Final = "all clusters agree, so nothing shows how far the estimate could be off"


@dataclass(frozen=True, slots=True)
class TableSides:
    """The tests of one estimand of a table, and what they are about."""

    sides: Sides
    estimand: Estimand
    n_keys: int
    n_clusters: int
    notes: tuple[Note, ...]


def table_sides(
    table: ResponseTable,
    levels: tuple[object, object],
    estimand: Estimand | None,
    model: str | None,
    bounds_at: Callable[[float], Bounds],
    *,
    match: Match,
    weights: Weights,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> TableSides:
    """Both one-sided tests of a contrast or an estimand of a table, pooled or of one model.

    By the cluster jackknife t; by the replicates where the estimand is not smooth.

    Parameters
    ----------
    levels
        Level and reference, where no estimand is given.
    bounds_at
        The bounds for an estimand whose value without a difference is the argument.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DesignError
        If estimand, levels or model are not those of the table, or nothing is matched.
    """
    design = design_of(table)
    wanted = _estimand(design, levels, estimand)
    target = custom_target(design, wanted)
    if target is None or not target.columns:
        raise ArgumentError(
            f"`estimand` {wanted.label!r} needs the levels {list(wanted.levels)}; the table has "
            f"{listed(level.label for level in design.levels)}"
        )
    if wanted.null is None:
        raise ArgumentError(
            f"`estimand` {wanted.label!r} has no value that stands for no difference; give it a `null`"
        )
    plan = contrast_plan(design, (target,), match=match, weights=weights, metric=None, strata=False)
    if plan is None:
        raise DesignError(f"no key is scored at all levels of {wanted.label!r} with match={match!r}")
    block = plan.blocks[0]
    place = _place(design, block, model)
    evidence = gather_evidence(
        (block,),
        plan.totals,
        n_resamples=0 if wanted.smooth else n_resamples,
        seed=seed,
        n_threads=n_threads,
    )
    n_clusters = int(evidence.n_clusters[place])
    notes = [*table.notes, *(note for note in design.notes if note.code != "reference")]
    keys = keys_of(design, match)
    for columns in target.columns:
        notes += lost_keys(keys, list(columns))[1]
    if design.has_models and model is None and weights == "scenario":
        message = f"Pooled over {len(design.models)} models: the plain mean of their estimates."
        notes.append(Note("pooled", message))
    return TableSides(
        sides=_sides(evidence, place, bounds_at(wanted.null), n_clusters, smooth=wanted.smooth),
        estimand=wanted,
        n_keys=block.n_keys[place],
        n_clusters=n_clusters,
        notes=(*notes, *few_cluster_notes(n_clusters)),
    )


def few_cluster_notes(n_clusters: int) -> tuple[Note, ...]:
    """A doubt where clusters are few but enough to be tested."""
    if not FEWEST_CLUSTERS <= n_clusters < FEW_CLUSTERS:
        return ()
    message = f"{n_clusters} clusters: tests with fewer than {FEW_CLUSTERS} may reject too often."
    return (Note("few_clusters", message, "caution"),)


def _estimand(design: Design, levels: tuple[object, object], estimand: Estimand | None) -> Estimand:
    if estimand is None:
        level, reference = level_codes(design, *levels)
        return Difference(design.levels[level].label, design.levels[reference].label)
    if not isinstance(estimand, Estimand):
        raise ArgumentTypeError(f"`estimand` must be an estimand, such as ts.Gap(...); got {estimand!r}")
    if any(level is not None for level in levels):
        raise ArgumentError("`estimand` names its levels itself: leave `x` and `y` out")
    return estimand


def _place(design: Design, block: Block, model: str | None) -> int:
    if model is None:
        return 0
    if model not in design.models:
        raise ArgumentError(f"`model` must be one of {listed(design.models)}; got {model!r}")
    code = design.models.index(model)
    if code not in block.models:
        raise DesignError(f"model {model!r} has no key that is scored at all levels")
    return block.models.index(code)


def _sides(evidence: Evidence, place: int, bounds: Bounds, n_clusters: int, *, smooth: bool) -> Sides:
    estimate = float(evidence.estimate[place])
    if not smooth:
        column: NDArray[np.float64] = evidence.replicates[:, place]

        def read(conf_level: float) -> tuple[float, float]:
            ends = evidence.ends("percentile", conf_level)
            return float(ends.low[place]), float(ends.high[place])

        sides = percentile_sides(estimate, column, bounds, read)
    else:
        error = float(evidence.std_error[place]) if evidence.varies[place] else 0.0
        found = MeanError(estimate, error, float(evidence.df[place]))
        sides = t_sides(found, bounds, "cluster jackknife t", _CONSTANT)
    if n_clusters >= FEWEST_CLUSTERS:
        return sides
    return sides.withheld(
        f"{n_clusters} clusters are too few for a test that speaks of a population of clusters "
        f"({FEWEST_CLUSTERS} are needed)"
    )
