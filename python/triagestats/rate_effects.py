"""Rates beside what independent rows would have said, where nothing else is compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from triagestats.inference import Family
from triagestats.layout import Layout
from triagestats.plan import Row
from triagestats.results import Note
from triagestats.tallies import Tally, pooled
from triagestats.tolerances import ROUNDING

__all__ = ["RateEffect", "rate_effects", "rows_note"]


@dataclass(frozen=True, slots=True)
class RateEffect:
    """One rate with its standard error by cluster, and that of its rows taken as independent.

    Attributes
    ----------
    identity
        What the rate is of.
    n_rows, n_clusters
        Rows and clusters behind it.
    std_error, by_rows
        The standard error by cluster, and sd / sqrt(n) of the rows.
    """

    identity: dict[str, Any]
    n_rows: int
    n_clusters: int
    std_error: float
    by_rows: float

    @property
    def design_effect(self) -> float:
        """Variance by cluster over the variance of independent rows."""
        return (self.std_error / self.by_rows) ** 2


def rate_effects(layout: Layout, tally: Tally, family: Family) -> tuple[RateEffect, ...]:
    """The rates whose errors are known both by cluster and by rows."""
    return tuple(effect for row in family.rows if (effect := _effect(layout, tally, family, row)) is not None)


def _effect(layout: Layout, tally: Tally, family: Family, row: Row) -> RateEffect | None:
    if row.slot is None:
        return None
    scores = pooled(_counts(layout, tally, row.identity))
    error = float(family.evidence.std_error[row.slot])
    if scores.n < 2 or not scores.deviation > ROUNDING * abs(scores.mean) or not math.isfinite(error):
        return None
    clusters = int(family.evidence.n_clusters[row.slot])
    return RateEffect(row.identity, scores.n, clusters, error, scores.deviation / math.sqrt(scores.n))


def _counts(layout: Layout, tally: Tally, identity: dict[str, Any]) -> pl.DataFrame:
    """The responses that a rate is of."""
    labels = [level.label for level in layout.levels]
    condition, model = identity.get("condition"), identity.get("model")
    counts = tally.of(
        level=None if condition is None else labels.index(condition),
        model=None if model is None else layout.models.index(model),
    )
    stratum = identity.get("stratum")
    return counts if stratum is None else counts.filter(pl.col("stratum") == stratum)


def rows_note(layout: Layout, effects: tuple[RateEffect, ...]) -> Iterator[Note]:
    """What would be wrong if the rows of the first rate were taken as independent."""
    first = next(iter(effects), None)
    if first is None or first.n_rows <= first.n_clusters:
        return
    ratio = math.sqrt(first.design_effect)
    side = "narrow" if ratio > 1 else "wide"
    factor = ratio if ratio > 1 else 1 / ratio if ratio > 0 else math.inf
    yield Note(
        "independence",
        f"Read as {first.n_rows:,} independent rows, the standard error of {_name(first)} would be "
        f"{first.by_rows:.3g}; {first.n_clusters:,} clusters ({layout.cluster_name}) give "
        f"{first.std_error:.3g}, a design effect of {first.design_effect:.2f}: an interval from rows would "
        f"be {factor:.2f} times too {side}.",
    )


def _name(effect: RateEffect) -> str:
    what = " of ".join(
        str(effect.identity[part]) for part in ("condition", "model") if effect.identity.get(part) is not None
    )
    return f"the {effect.identity['estimand']}" + (f" of {what}" if what else "")
