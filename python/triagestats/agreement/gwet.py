"""Gwet's AC1 and AC2: agreement beyond chance that does not collapse where one category prevails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from triagestats import defaults
from triagestats.agreement import functions as known
from triagestats.agreement.estimation import (
    Resampling,
    Uncertainty,
    is_clustered,
    linearised,
    measured,
    reported,
    resampling_of,
    t_test,
    value_of,
)
from triagestats.agreement.ratings import RatedUnits, read_rated_units
from triagestats.agreement.sources import Counted
from triagestats.agreement.weights import KappaWeights, agreement_weights, name_of
from triagestats.defaults import Method
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.results import Test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["gwet_ac1", "gwet_ac2"]


def gwet_ac1(
    ratings: object,
    *,
    data: object = None,
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Gwet's AC1: agreement of ratings that are not left to chance.

    With pa the mean share of agreeing pairs of ratings of a unit, and p_j the mean share of category j in
    a unit, of k categories,

        pe = sum p_j (1 - p_j) / (k - 1),   AC1 = (pa - pe) / (1 - pe)

    Parameters
    ----------
    ratings
        Labels, one row a unit and one column a rater, None or NaN where one is missing; or names of columns
        of `data`; or judges, or None for all, where `data` is a ResponseTable.
    data
        A table of any make, or a ResponseTable: units are then its responses, labels its `response`, the
        categories its `levels`, and the clusters its own.
    counts
        What a matrix holds. `units`, or True: ratings counted by unit (rows) and category (columns).
        `confusion`: a square table of counts of two raters, as in `cohen_kappa`. False: ratings, which is the
        default, with a note where the matrix is square and of whole numbers.
    categories
        All categories, used or not: their number matters. By default those of an Enum, else the labels
        that occur, with a note.
    clusters
        One label a unit, or the name of a column: whole clusters are then resampled.
    interval
        By default the linearised error with t(n - 1), or with clusters `percentile`. Or any interval of
        `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without clusters `statistic` and `p_value` are of AC1 = 0. `details` hold `observed` (pa), `expected`
        (pe), `std_error`, `n_units` (with two ratings at least).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used.

    Notes
    -----
    Units with one rating count in p_j, not in pa. The error is Gwet's: the first-order expansion over units,
    with the raters and the number of units with two ratings as fixed; where units have one rating it is
    larger than the bootstrap's, which draws that number too. With one category known the coefficient is
    undefined: give all as `categories`. The ratings that are there are used, and a note counts those that
    are missing. Fewer than five units have neither interval nor p-value. How the percentile interval of few
    clusters covers stands in the Notes of `cohen_kappa`; AC1 is up to .02 below kappa.

    References
    ----------
    Gwet, K. L. (2008), Computing inter-rater reliability and its variance in the presence of high agreement,
    British Journal of Mathematical and Statistical Psychology 61(1):29-48, doi:10.1348/000711006X126600.

    Examples
    --------
    >>> import triagestats as ts
    >>> ratings = [["C", "C"], ["D", "D"], ["C", "C"], ["C", "D"], ["C", "C"], ["C", None]]
    >>> result = ts.gwet_ac1(ratings, categories=["A", "B", "C", "D"])
    >>> round(result.estimate, 3), round(result.details["observed"], 3)
    (0.771, 0.8)
    """
    units = read_rated_units(ratings, data=data, categories=categories, clusters=clusters, counts=counts)
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    return _gwet(units, None, asked, "gwet_ac1")


def gwet_ac2(
    ratings: object,
    *,
    weights: KappaWeights | Sequence[Sequence[float]] | Array,
    data: object = None,
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Gwet's AC2: AC1 with weights of agreement, for ordered categories.

    With w_jl the weights, 1 on the diagonal, pa the mean weight of the pairs of ratings of a unit, and p_j
    the mean share of category j in a unit, of k categories,

        pe = sum_jl w_jl / (k (k - 1)) sum_j p_j (1 - p_j),   AC2 = (pa - pe) / (1 - pe)

    Parameters
    ----------
    ratings, data, counts, clusters, interval, conf_level, n_resamples, seed, n_threads
        As in `gwet_ac1`.
    weights
        `linear`, `1 - d`; `quadratic`, `1 - d^2`, with d the distance of the values over the largest; or
        a symmetric matrix of weights of agreement in the order of the categories.
    categories
        All categories in their order, used or not. Numbers are worth their value, other labels their
        position. By default those of an Enum, or numbers that occur, with a note.

    Returns
    -------
    Test
        As of `gwet_ac1`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used; weights of text without an order are an error.

    References
    ----------
    Gwet, K. L. (2014), Handbook of Inter-Rater Reliability, 4th edition, Advanced Analytics,
    ISBN 978-0970806284.

    Examples
    --------
    >>> import triagestats as ts
    >>> ratings = [[1, 1], [2, 2], [4, 4], [2, 3], [1, 2], [3, 3]]
    >>> result = ts.gwet_ac2(ratings, weights="quadratic", categories=[1, 2, 3, 4])
    >>> round(result.estimate, 3)
    0.873
    """
    if weights is None:
        raise ArgumentTypeError(
            "`weights` must be 'linear', 'quadratic' or a matrix; AC2 without weights is AC1, see gwet_ac1"
        )
    units = read_rated_units(ratings, data=data, categories=categories, clusters=clusters, counts=counts)
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    return _gwet(units, weights, asked, "gwet_ac2")


def _gwet(units: RatedUnits, weights: object, asked: Resampling, call: str) -> Test:
    """AC1 without weights, else AC2."""
    scale, name = units.scale, "AC1" if weights is None else f"AC2 ({name_of(weights)})"
    matrix = agreement_weights(weights, scale)
    if (matrix != matrix.T).any():
        raise ArgumentError("`weights` must be symmetric: no rater comes first")
    rows = _unit_sums(units, matrix)
    paired = rows[:, 1] > 0
    if not paired.any():
        raise DataError("`ratings` has no unit with two ratings, so nothing can agree")
    expected = estimate = None
    notes = list(units.notes)
    uncertainty = Uncertainty()
    statistic = p_value = None
    if scale.size > 1:
        shares = rows[:, 3:].mean(axis=0)
        expected = float(matrix.sum() / (scale.size * (scale.size - 1)) * (shares * (1 - shares)).sum())
        coefficient = known.gwet_of_units(name, f"Gwet's {name}", matrix)
        totals = units.totals(rows)
        estimate = value_of(coefficient, totals)
        notes += scale.as_they_occur()
    if estimate is not None:
        fixed = known.gwet_of_units(name, name, matrix, paired=float(paired.mean()))
        uncertainty = measured(
            coefficient,
            lambda: totals,
            asked,
            units.shared,
            call,
            n_rows=len(rows),
            alone=lambda: linearised(fixed, totals, asked.conf_level),
        )
        if asked.interval is None and not is_clustered(units.shared):
            statistic, p_value = t_test(estimate, uncertainty)
    return reported(
        estimand=name,
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=f"Gwet's {name}",
        n=len(rows),
        statistic=statistic,
        p_value=p_value,
        details={
            "observed": float(rows[paired, 0].mean()),
            "expected": expected,
            "weights": name_of(weights),
            "n_units": int(paired.sum()),
            "n_single": int((~paired).sum()),
            "categories": list(scale.labels),
            "raters": list(units.raters),
            "n_missing": units.n_empty,
            "n_missing_ratings": units.n_gaps,
        },
        notes=tuple(notes),
        reason=f"One category is known, {scale.labels[0]!r}, and agreement by chance needs the number of "
        "categories that there were: give all as `categories`.",
    )


def _unit_sums(units: RatedUnits, weights: Array) -> Array:
    """Of each unit: agreement of its pairs, whether it has a pair, 1, and its shares of the categories."""
    counts = units.counts.astype(np.float64)
    numbers = counts.sum(axis=1)
    paired = numbers >= 2
    weighted = (counts * (counts @ weights.T - 1.0)).sum(axis=1)
    agreeing = np.where(paired, weighted / np.where(paired, numbers * (numbers - 1.0), 1.0), 0.0)
    return np.column_stack([agreeing, paired, np.ones(len(counts)), counts / numbers[:, None]])
