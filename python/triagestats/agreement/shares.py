"""Shares of units with their intervals, as results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, ndtri, stdtrit

from triagestats import intervals
from triagestats.agreement import functions as known
from triagestats.agreement.estimation import (
    Resampling,
    Uncertainty,
    few_of,
    is_clustered,
    measured,
    reported,
    too_few_of,
    value_of,
)
from triagestats.agreement.functions import Coefficient
from triagestats.agreement.ratings import RatedPairs, RatedUnits
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.errors import DataError
from triagestats.permute import permutation_test
from triagestats.results import Note, Test
from triagestats.score_intervals import tango_interval
from triagestats.tolerances import ROUNDING
from triagestats.vectors import Missing, drop_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["agreement_of_several", "direction_of_pairs", "reported_pairs", "share_of_pairs"]


def share_of_pairs(
    pairs: RatedPairs, coefficient: Coefficient, asked: Resampling, call: str
) -> tuple[float, Uncertainty]:
    """A share of pairs with its interval."""
    share = value_of(coefficient, pairs.counts.reshape(1, -1))
    if share is None:
        raise DataError("there is no unit with two ratings")
    uncertainty = measured(
        coefficient,
        pairs.totals,
        asked,
        pairs.shared,
        call,
        n_rows=pairs.n,
        alone=lambda: _of_share(share, pairs.n, asked.conf_level),
    )
    return share, uncertainty


def reported_pairs(
    pairs: RatedPairs,
    what: str,
    estimate: float | None,
    uncertainty: Uncertainty,
    asked: Resampling,
    *,
    least: float = 0.0,
    p_value: float | None = None,
    details: dict[str, Any] | None = None,
    notes: tuple[Note, ...] = (),
    reason: str = "",
) -> Test:
    """The result of a measure of pairs."""
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
        least=least,
    )


def direction_of_pairs(pairs: RatedPairs, asked: Resampling) -> Test:
    """The share of units that the first rater puts higher, less that of the second."""
    above, below = int(np.tril(pairs.counts, -1).sum()), int(np.triu(pairs.counts, 1).sum())
    estimate, n = (above - below) / pairs.n, pairs.n

    def score_interval() -> Uncertainty:
        low, high = tango_interval(above, below, n, asked.conf_level)
        error = math.sqrt(((above + below) / n - estimate**2) / (n - 1)) if n > 1 else 0.0
        return Uncertainty(low, high, error or None, "Tango's score interval")

    uncertainty = measured(
        known.direction(pairs.scale.size),
        pairs.totals,
        asked,
        pairs.shared,
        "direction_of_disagreement",
        n_rows=n,
        alone=score_interval,
    )
    notes: tuple[Note, ...] = ()
    if clustered := is_clustered(pairs.shared):
        p_value, notes = _sign_flips(pairs, asked)
    elif abs(above - below) <= 1:
        p_value = 1.0  # the sum of the tails, which rounding leaves below 1
    else:
        p_value = min(1.0, 2.0 * float(bdtr(min(above, below), above + below, 0.5)))
    return reported_pairs(
        pairs,
        "direction of disagreement",
        estimate,
        uncertainty,
        asked,
        least=-1.0,
        p_value=p_value,
        details={
            "share_above": above / n,
            "share_below": below / n,
            "share_equal": (n - above - below) / n,
            "test": "sign flips by cluster" if clustered else "exact sign test",
        },
        notes=notes,
    )


def _sign_flips(pairs: RatedPairs, asked: Resampling) -> tuple[float | None, tuple[Note, ...]]:
    """The p-value of no direction by one sign flip a cluster."""
    if pairs.codes is None or pairs.shared is None or pairs.shared.size < 2:
        return None, ()
    signs = np.sign(pairs.codes[:, 0] - pairs.codes[:, 1])
    found = permutation_test(
        signs,
        np.zeros_like(signs),
        clusters=pairs.shared.codes,
        n_resamples=asked.n_resamples,
        seed=asked.seed,
        n_threads=asked.n_threads,
    )
    return found.p_value, found.notes


def agreement_of_several(units: RatedUnits, asked: Resampling, missing: Missing) -> Test:
    """The mean share of agreeing pairs of raters."""
    numbers = units.n_ratings
    if missing == "raise" and units.n_gaps:
        gaps = np.where(numbers < len(units.raters), np.nan, 0.0)
        drop_missing([np.append(gaps, np.full(units.n_empty, np.nan))], ["a"], missing)
    paired = numbers >= 2
    if not paired.any():
        raise DataError("`a` has no unit with two ratings, so nothing can agree")
    n_single = int((~paired).sum())
    units = units.of(paired)
    counts = units.counts.astype(np.float64)
    ratings = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (ratings * (ratings - 1))
    what = "mean pairwise agreement"
    coefficient = Coefficient(
        "percent_agreement",
        what,
        lambda sums: known.ratio(sums[..., 0], sums[..., 1]),
        is_share=True,
    )
    uncertainty = measured(
        coefficient,
        lambda: units.totals(np.column_stack([agreeing, np.ones(len(counts))])),
        asked,
        units.shared,
        "percent_agreement",
        n_rows=len(counts),
        alone=lambda: _of_mean(agreeing, asked.conf_level),
    )
    return reported(
        estimand="percent agreement",
        estimate=float(agreeing.mean()),
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=what,
        n=len(counts),
        details={
            "n_raters": len(units.raters) or None,
            "categories": list(units.scale.labels),
            "raters": list(units.raters),
            "n_missing": units.n_empty + n_single,
            "n_missing_ratings": units.n_gaps,
        },
        notes=units.notes,
        least=0.0,
    )


def _of_share(share: float, n: int, conf_level: float) -> Uncertainty:
    """Wilson's interval of a share of n units that are taken as independent."""
    low, high = intervals.wilson(share, n, conf_level)
    error = math.sqrt(share * (1 - share) / n)
    return Uncertainty(low, high, error or None, "Wilson interval")


def _of_mean(values: Array, conf_level: float) -> Uncertainty:
    """Wilson's interval of the mean of n independent values from 0 to 1.

    Of a share it is that of n units. Else of as many as a share with the same error e would have, with t for
    z: `p (1 - p) / e^2 (z / t)^2`, so that it stays between 0 and 1.
    """
    n, mean = len(values), float(values.mean())
    if ((values == 0) | (values == 1)).all():
        return _of_share(mean, n, conf_level)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    how, details = "Wilson interval by effective number of units", {"df": float(n - 1)}
    if n < FEWEST_CLUSTERS:
        return Uncertainty(std_error=error or None, how=how, details=details, notes=too_few_of(n, "unit"))
    if error <= ROUNDING:
        message = "All units have one share of agreeing pairs: nothing shows how far it could be off."
        return Uncertainty(how=how, details=details, notes=(Note("degenerate", message, "caution"),))
    upper = 0.5 + conf_level / 2
    effective = mean * (1 - mean) * (float(ndtri(upper)) / (float(stdtrit(n - 1, upper)) * error)) ** 2
    low, high = intervals.wilson(mean, effective, conf_level)
    return Uncertainty(low, high, error, how, details, few_of(n, "unit"))
