"""Shares of units with their intervals, as results."""

from __future__ import annotations

from typing import Any

import numpy as np

from triagestats.agreement import functions as known
from triagestats.agreement.estimation import (
    Resampling,
    Uncertainty,
    bootstrapped,
    is_clustered,
    linearised,
    of_share,
    reported,
    value_of,
)
from triagestats.agreement.functions import Coefficient
from triagestats.agreement.ratings import RatedPairs, RatedUnits
from triagestats.errors import DataError
from triagestats.results import Note, Test
from triagestats.vectors import Missing

__all__ = ["agreement_of_several", "reported_pairs", "share_of_pairs"]


def share_of_pairs(
    pairs: RatedPairs, coefficient: Coefficient, asked: Resampling
) -> tuple[float, Uncertainty]:
    """A share of pairs with its interval."""
    share = value_of(coefficient, pairs.counts.reshape(1, -1))
    if share is None:
        raise DataError("there is no unit with two ratings")
    clustered = is_clustered(pairs.shared)
    if clustered or asked.interval is not None:
        return share, bootstrapped(coefficient, pairs.totals(), asked, clustered=clustered, n_rows=pairs.n)
    return share, of_share(share, pairs.n, asked.conf_level)


def reported_pairs(
    pairs: RatedPairs,
    what: str,
    estimate: float | None,
    uncertainty: Uncertainty,
    asked: Resampling,
    call: str,
    *,
    p_value: float | None = None,
    details: dict[str, Any] | None = None,
    notes: tuple[Note, ...] = (),
    reason: str = "",
) -> Test:
    """The result of a measure of pairs, with a note where clusters of theirs are ignored."""
    if pairs.shared is not None and not is_clustered(pairs.shared):
        notes = (*notes, *pairs.shared.taken_as_independent(f"{call}(..., clusters=...)"))
    return reported(
        estimand=what,
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=what,
        n=pairs.n,
        p_value=p_value,
        details={
            **(details or {}),
            "categories": list(pairs.scale.labels),
            "raters": list(pairs.raters),
            "n_missing": pairs.n_missing,
        },
        notes=(*pairs.notes, *notes),
        reason=reason,
    )


def agreement_of_several(units: RatedUnits, asked: Resampling, missing: Missing) -> Test:
    """The mean share of agreeing pairs of raters."""
    numbers = units.n_ratings
    gaps = int((len(units.raters) - numbers).sum()) + units.n_empty * len(units.raters)
    if gaps and missing == "raise":
        raise DataError(
            f"`a` has {gaps:,} missing ratings; with missing='omit' the raters who rated a unit count"
        )
    paired = numbers >= 2
    if not paired.any():
        raise DataError("`a` has no unit with two ratings, so nothing can agree")
    n_single = int((~paired).sum())
    units = units.of(paired)
    counts = units.counts.astype(np.float64)
    ratings = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (ratings * (ratings - 1))
    totals = units.totals(np.column_stack([agreeing, np.ones(len(counts))]))
    what = "mean pairwise agreement"
    coefficient = Coefficient(
        "percent_agreement",
        what,
        lambda sums: known.ratio(sums[..., 0], sums[..., 1]),
        is_share=True,
    )
    share, clustered = float(agreeing.mean()), is_clustered(units.shared)
    notes = list(units.notes)
    if clustered or asked.interval is not None:
        uncertainty = bootstrapped(coefficient, totals, asked, clustered=clustered, n_rows=len(counts))
    elif share in (0.0, 1.0):
        uncertainty = of_share(share, len(counts), asked.conf_level)
    else:
        uncertainty = linearised(coefficient, totals, asked.conf_level)
    if units.shared is not None and not clustered:
        notes += units.shared.taken_as_independent("percent_agreement(..., clusters=...)")
    return reported(
        estimand="percent agreement",
        estimate=share,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=what,
        n=len(counts),
        details={
            "n_raters": len(units.raters),
            "categories": list(units.scale.labels),
            "raters": list(units.raters),
            "n_missing": units.n_empty + n_single,
            "n_missing_ratings": gaps,
        },
        notes=tuple(notes),
    )
