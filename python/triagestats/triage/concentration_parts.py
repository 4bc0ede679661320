"""What a concentration is made of: counts by scenario, estimates without each cluster, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.blocks import Target
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.design import Design, Reference, design_of
from triagestats.errors import DesignError
from triagestats.inference import Family, Options, infer
from triagestats.plan import Plan, contrast_plan, rate_plan, targets_of
from triagestats.results import Note, tidy_frame
from triagestats.schema import Weights
from triagestats.table import ResponseTable
from triagestats.tolerances import ROUNDING
from triagestats.triage.concentration_counts import CELL, concentrated, counts_of, effective_of, with_blanks
from triagestats.triage.fixed_scenarios import FixedError, error_of_contrast, error_of_labels, error_of_rate
from triagestats.triage.outcomes import VALUE, Kind, Pool
from triagestats.triage.text import in_words

__all__ = ["OF_LABELS", "Parts", "parts_of", "tidy_of"]

_FIXED: Final = (
    "{n} {cluster} {what} too few for an interval that speaks of others. Intervals headed 'these scenarios "
    "only' speak of fresh answers of the same models to the same scenarios."
)
OF_LABELS: Final = "_rate_of_labels"
_READINGS: Final = (
    "The variance of these scenarios only has two readings. {kind}_rate takes responses as draws: n_c counts "
    "responses and s_c^2 is that of the means of their labels. {kind}_rate_of_labels takes every label as a "
    "draw, also those that judges give to one response: n_c counts labels."
)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What the rows of a concentration are read from, at any level.

    Attributes
    ----------
    kind
        What is counted.
    responses
        One row a response: key, `value` (the mean of its labels) and `weight` (their number).
    rates, contrasts
        The families of estimates; None with one cluster, and where nothing is compared.
    fixed
        Errors of these scenarios only, by condition or contrast, where there are few clusters.
    of_labels
        The same by condition with each label as a draw, where responses have several labels that count.
    without
        Estimates without each cluster.
    n_clusters
        Clusters of the rows.
    levels
        The conditions of the rows, in order.
    """

    kind: Kind
    responses: pl.DataFrame
    rates: Family | None
    contrasts: Family | None
    fixed: Mapping[str | None, FixedError]
    of_labels: Mapping[str | None, FixedError]
    without: pl.DataFrame
    n_clusters: int
    levels: tuple[str | None, ...]
    notes: tuple[Note, ...]

    def counts(self) -> pl.DataFrame:
        """Counts by condition and scenario."""
        return counts_of(self.responses, self.levels)


def parts_of(
    table: ResponseTable,
    *,
    kind: Kind,
    pool: Pool,
    reference: Reference,
    weights: Weights,
    options: Options,
) -> Parts:
    """The parts of a concentration of a table whose frame has `_value`.

    Raises
    ------
    DesignError
        If nothing counts, or a cluster splits scenarios.
    """
    responses = _responses(table.frame, pool)
    if responses.is_empty():
        raise DesignError("no row counts: there is no label or score that could be right or wrong")
    cluster = "cluster_1" if "cluster_1" in table.frame.columns else "scenario"
    counted = table.frame.filter(pl.col(VALUE).is_not_null())
    n_clusters = counted[cluster].n_unique()
    notes: list[Note] = []
    judges = responses["weight"] if pool == "labels" else responses["n_labels"]
    several = judges.max() != 1
    if several:
        how = "Each judge's label counts" if pool == "labels" else "Judges are averaged within a response"
        notes.append(Note("judges", f"{how}; for these scenarios only, a response is one draw."))
    rates = contrasts = design = None
    targets: tuple[Target, ...] = ()
    if n_clusters > 1:
        scored = table.frame.with_columns(pl.col(VALUE).alias("score"))
        if pool == "labels":
            scored = scored.drop("judge", strict=False)
        design = design_of(table.with_frame(scored), reference=reference)
        notes += [note for note in design.notes if note.code != "judges"]
        targets = targets_of(design, None)
        rates, contrasts, said = _families(design, targets, weights, options)
        notes += said
        if len(design.axes) > 1:
            message = f"Clusters are left out along one axis, {design.axes[0].name}."
            notes.append(Note("one_axis", message))
    name = design.cluster_name if design is not None else table.roles.one("cluster") or "scenario"
    one_way = design is None or (len(design.axes) == 1 and design.axes[0].by == "unit")
    fixed: dict[str | None, FixedError] = {}
    if one_way:
        fixed = dict(_fixed(responses, rates, contrasts, targets, weights))
    of_labels: dict[str | None, FixedError] = {}
    if pool == "labels" and weights == "row" and several:
        labels = with_blanks(counted).select(*CELL, pl.col(VALUE).alias("value"))
        of_labels = {
            condition: error_of_labels(part)
            for (condition,), part in labels.group_by("condition", maintain_order=True)
            if condition in fixed
        }
    if of_labels:
        notes.append(Note("two_readings", _READINGS.format(kind=kind)))
    if one_way and n_clusters < FEWEST_CLUSTERS:
        what = "is" if n_clusters == 1 else "are"
        said_of = f"{name} cluster" + ("" if n_clusters == 1 else "s")
        message = _FIXED.format(n=n_clusters, cluster=said_of, what=what)
        notes.append(Note("few_clusters", message, "caution"))
    present = set(responses["condition"])
    order = [level.label for level in design.levels] if design is not None else sorted(present - {None})
    levels = tuple(label for label in order if label in present) or (None,)
    notes += _unlike(rates, contrasts, targets)
    notes += concentrated(counts_of(responses, levels))
    return Parts(
        kind=kind,
        responses=responses,
        rates=rates,
        contrasts=contrasts,
        fixed=fixed,
        of_labels=of_labels,
        without=_without(design, rates, contrasts),
        n_clusters=n_clusters,
        levels=levels,
        notes=tuple(notes),
    )


def _unlike(rates: Family | None, contrasts: Family | None, targets: Sequence[Target]) -> Iterator[Note]:
    """A note where a contrast of matched cells is not the difference of the rates that are shown."""
    if rates is None or contrasts is None:
        return
    of_level = {row.identity["condition"]: rates.evidence.estimate[row.slot] for row, _ in _shown(rates)}
    sides = {target.estimand.label: target.estimand.levels for target in targets}
    unlike = []
    for row, _ in _shown(contrasts):
        label = row.identity["contrast"]
        level, reference = (of_level.get(name, np.nan) for name in sides[label])
        if abs(contrasts.evidence.estimate[row.slot] - (level - reference)) > ROUNDING:
            unlike.append(label)
    if unlike:
        yield Note(
            "matched_contrasts",
            "Contrasts are means over the cells that both conditions have, and not differences of the rates, "
            f"which are means over all rows of each. They differ in {in_words(unlike)}.",
        )


def _responses(frame: pl.DataFrame, pool: Pool) -> pl.DataFrame:
    frame = with_blanks(frame)
    key = [*CELL, *(["repetition"] if "repetition" in frame.columns else [])]
    key += [name for name in frame.columns if name.startswith("condition[")]
    order = frame.filter(pl.col(VALUE).is_not_null()).group_by(key, maintain_order=True)
    found = order.agg(pl.col(VALUE).mean().alias("value"), pl.len().cast(pl.Int64).alias("n_labels"))
    weight = pl.col("n_labels") if pool == "labels" else pl.lit(1, pl.Int64)
    return found.with_columns(weight.alias("weight"))


def _families(
    design: Design, targets: Sequence[Target], weights: Weights, options: Options
) -> tuple[Family, Family | None, tuple[Note, ...]]:
    """Rates at every level, and level minus reference over the cells seen at both; models pooled."""
    rates, notes = infer(rate_plan(design, weights=weights, metric=None), kind="mean", options=options)
    try:
        plan: Plan | None = contrast_plan(
            design, targets, match="cell", weights=weights, metric=None, strata=False
        )
    except DesignError as error:
        return rates, None, (*notes, Note("nothing_matched", f"Nothing is compared: {error}.", "caution"))
    if plan is None:
        return rates, None, notes
    contrasts, said = infer(plan, kind="contrast", options=options, compared=False)
    return rates, contrasts, (*notes, *said)


def _fixed(
    responses: pl.DataFrame,
    rates: Family | None,
    contrasts: Family | None,
    targets: Sequence[Target],
    weights: Weights,
) -> Iterator[tuple[str | None, FixedError]]:
    """Errors of these scenarios only, of the estimates that rest on too few clusters for another."""
    few = {row.identity["condition"] for row, n in _shown(rates) if n < FEWEST_CLUSTERS}
    for (condition,), part in responses.group_by("condition", maintain_order=True):
        if rates is None or condition in few:
            yield condition, error_of_rate(part, weights=weights)
    if any(name.startswith("condition[") for name in responses.columns):
        return  # with several conditions a contrast averages over the others
    sides = {target.estimand.label: target.estimand.levels for target in targets}
    for row, n in _shown(contrasts):
        if n < FEWEST_CLUSTERS:
            level, reference = sides[row.identity["contrast"]]
            found = error_of_contrast(responses, level, reference, weights=weights)
            if found is not None:
                yield row.identity["contrast"], found


def _shown(family: Family | None) -> Iterator[tuple[Any, int]]:
    """The rows of all models and strata together that have data, and their clusters."""
    for row in () if family is None else family.rows:
        if row.slot is not None and row.identity["model"] is None and row.identity["stratum"] is None:
            yield row, int(family.evidence.n_clusters[row.slot])  # type: ignore[union-attr]  # rows are its


def _without(design: Design | None, rates: Family | None, contrasts: Family | None) -> pl.DataFrame:
    """Every estimate without each cluster that carries data for it."""
    rows = []
    for family in (rates, contrasts):
        for row, _ in _shown(family):
            for cluster, value in _left_out(design, family, row.slot):
                rows.append(
                    {
                        "condition": row.identity.get("condition"),
                        "contrast": row.identity.get("contrast"),
                        "cluster": cluster,
                        "estimate": value,
                    }
                )
    names = ("condition", "contrast", "cluster")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"estimate": pl.Float64})


def _left_out(design: Design | None, family: Family | None, slot: int) -> Iterator[tuple[str, float]]:
    if design is None or family is None:
        return
    evidence = family.evidence
    for place, cluster in enumerate(design.axes[0].labels):
        value = float(evidence.leave_one_out[place, slot])
        if evidence.contributes[place, slot] and np.isfinite(value):
            yield cluster, value


def tidy_of(parts: Parts, conf_level: float) -> pl.DataFrame:
    """The tidy rows of a concentration at a level."""
    return tidy_frame([*_rate_rows(parts, conf_level), *_contrast_rows(parts, conf_level)])


def _rate_rows(parts: Parts, conf_level: float) -> Iterator[dict[str, Any]]:
    counts = parts.counts()
    read = _read(parts.rates, conf_level, "condition")
    for (condition,), part in counts.group_by("condition", maintain_order=True):
        identity = {"condition": condition}
        row = read.get(condition, {"conf_level": conf_level, "n_clusters": 1})
        if (fixed := parts.fixed.get(condition)) is not None:
            row = row | fixed.row(conf_level) | {"estimate": fixed.estimate}
        yield row | identity | {"estimand": f"{parts.kind}_rate", "n_rows": int(part["n"].sum())}
        if (literal := parts.of_labels.get(condition)) is not None:
            own = {"estimand": f"{parts.kind}{OF_LABELS}", "estimate": literal.estimate}
            same = {name: row.get(name) for name in ("conf_level", "n_clusters")}
            yield same | identity | literal.row(conf_level) | own | {"n_rows": literal.n}
        effective, scenario, share = effective_of(part)
        none = {} if effective is not None else {"status": "undefined", "reason": "there are no misses"}
        same = identity | none | {"n_rows": int(part["n"].sum())}
        yield same | {"estimand": "effective_scenarios", "estimate": effective}
        yield same | {"estimand": "largest_share", "estimate": share, "term": scenario}
        yield from _range(parts.without.filter(pl.col("condition").eq_missing(condition)), identity)


def _contrast_rows(parts: Parts, conf_level: float) -> Iterator[dict[str, Any]]:
    for contrast, row in _read(parts.contrasts, conf_level, "contrast").items():
        fixed = parts.fixed.get(contrast)
        own = {} if fixed is None else fixed.row(conf_level) | {"statistic": None, "df": None}
        yield row | own | {"estimand": f"{parts.kind}_rate"}
        yield from _range(parts.without.filter(pl.col("contrast") == contrast), {"contrast": contrast})


def _read(family: Family | None, conf_level: float, name: str) -> dict[str, dict[str, Any]]:
    """Rows of all models and strata together, by condition or contrast."""
    if family is None:
        return {}
    frame = family.read(conf_level).filter(pl.col("model").is_null() & pl.col("stratum").is_null())
    return {row[name]: row for row in frame.iter_rows(named=True)}


def _range(without: pl.DataFrame, identity: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The smallest and the largest of the estimates without a cluster."""
    own = without.filter(pl.col("contrast").is_null()) if "contrast" not in identity else without
    for end, descending in (("low", False), ("high", True)):
        estimand = {"estimand": f"leave_one_out_{end}"}
        if own.is_empty():
            reason = "without its one cluster nothing is left"
            yield identity | estimand | {"status": "undefined", "reason": reason}
            continue
        row = own.sort("estimate", "cluster", descending=[descending, False]).row(0, named=True)
        yield identity | estimand | {"estimate": row["estimate"], "term": row["cluster"], "status": "ok"}
