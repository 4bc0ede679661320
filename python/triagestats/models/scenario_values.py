"""The value of an estimand in every scenario: judges, repetitions, variants and models are averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.blocks import Target
from triagestats.design import ClusterAxis, Design
from triagestats.errors import DesignError
from triagestats.matching import keys_of
from triagestats.results import Note
from triagestats.schema import Match
from triagestats.table import ResponseTable
from triagestats.totals import sums_by_cluster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["ScenarioValues", "scenario_values"]


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioValues:
    """One value a scenario.

    Attributes
    ----------
    scenarios
        Labels of the scenarios that have a value.
    values
        Their values, shape (S,).
    clusters
        Codes of their clusters, 0 to G - 1, shape (S,).
    cluster
        What a cluster is.
    n_unmatched
        Scenarios without a value: not scored at all levels of the estimand.
    notes
        Choices made and doubts.
    """

    scenarios: tuple[str, ...]
    values: Array
    clusters: Codes
    cluster: str
    n_unmatched: int
    notes: tuple[Note, ...]

    @property
    def coarse(self) -> bool:
        """Whether a cluster holds several scenarios."""
        return len(np.unique(self.clusters)) < len(self.clusters)


def scenario_values(
    table: ResponseTable, design: Design, target: Target, *, model: int | None, match: Match
) -> ScenarioValues:
    """The value of an estimand in every scenario, `f(means of the scenario's cells at each level)`.

    Within a scenario judges are averaged, then repetitions, then variants; the estimand is taken of each
    model and combination of other factors, and averaged over these, then over models, each with equal
    weight. With every scenario complete, the mean of the values of a linear estimand is its estimate in
    `analyze`.

    Raises
    ------
    DesignError
        If there is one scenario, no scenario has a value, or two cluster columns both group scenarios.
    """
    if design.n_units != design.n_scenarios:
        raise DesignError("the table has one scenario, and a regression over scenarios needs several")
    axis = _axis(design)
    by_unit = ClusterAxis("unit", tuple(map(str, range(design.n_units))), "unit", np.arange(design.n_units))
    keys, n_models = keys_of(design, match), len(design.models)
    parts = [
        sums_by_cluster(keys.matched(list(columns)), (by_unit,), n_models, weights="scenario")
        for columns in target.columns
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Shape (S, M, O): scenario, model, combination of the other factors.
        cells = np.stack(
            [target.estimand.evaluate(part.scores / part.weights[..., None]) for part in parts], axis=-1
        )
    if model is not None:
        cells = cells[:, [model]]
    present = np.isfinite(cells)
    by_model, has = _mean(cells, present)
    values, scored = _mean(by_model, has)
    if not scored.any():
        raise DesignError(
            f"no scenario is scored at all levels of {target.estimand.label!r} with match={match!r}; "
            "match='cell' averages repetitions, match='scenario' also averages variants"
        )
    planned = present.any(axis=0)
    partial = int((scored & (present != planned).any(axis=(1, 2))).sum())
    units = np.flatnonzero(scored)
    labels = table.frame["scenario"].unique().sort().to_list()
    return ScenarioValues(
        scenarios=tuple(labels[unit] for unit in units),
        values=values[units],
        clusters=np.unique(axis.codes[units], return_inverse=True)[1].astype(np.int64),
        cluster=axis.name,
        n_unmatched=int((~scored).sum()),
        notes=tuple(_notes(target, int((~scored).sum()), partial, len(units), pooled=model is None)),
    )


def _axis(design: Design) -> ClusterAxis:
    axes = [axis for axis in design.axes if axis.by == "unit"]
    if len(axes) != 1:
        raise DesignError(
            f"the clusters are {design.cluster_name}; a regression over scenarios takes one column that "
            "groups scenarios: choose one with `table.with_cluster(...)`"
        )
    return axes[0]


def _mean(values: Array, present: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Means over the last axis of what is present, and where there is any."""
    size = present.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Array = np.where(present, values, 0.0).sum(axis=-1) / size
    return mean, size > 0


def _notes(target: Target, unmatched: int, partial: int, size: int, *, pooled: bool) -> list[Note]:
    notes = []
    if unmatched:
        message = (
            f"{unmatched:,} of {unmatched + size:,} scenarios {'has' if unmatched == 1 else 'have'} no value "
            f"of {target.estimand.label!r}, and {'is' if unmatched == 1 else 'are'} left out."
        )
        notes.append(Note("unmatched", message, "caution"))
    if partial:
        what = "models or conditions" if pooled else "conditions"
        message = (
            f"{partial:,} of {size:,} scenarios {'lacks' if partial == 1 else 'lack'} some {what}; the value "
            "is the mean over those present, so that it also reflects which are missing."
        )
        notes.append(Note("partial", message, "caution"))
    if target.estimand.coefficients is None:
        message = (
            f"{target.estimand.label!r} is not linear: it is taken of each scenario's own means, and the "
            "mean of these values is not its estimate for the table."
        )
        notes.append(Note("not_linear", message, "caution"))
    return notes
