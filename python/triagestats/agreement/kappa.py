"""Cohen's kappa of two raters, and Fleiss' kappa of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from triagestats import defaults
from triagestats.agreement import functions as known
from triagestats.agreement.coefficients import beside_kappa
from triagestats.agreement.estimation import (
    Resampling,
    Uncertainty,
    few_of,
    is_clustered,
    linearised,
    measured,
    normal_interval,
    reported,
    resampling_of,
    too_few_of,
    value_of,
    z_test,
)
from triagestats.agreement.large_sample import fleiss_null_error, kappa_errors
from triagestats.agreement.ratings import RatedPairs, RatedUnits, read_rated_pairs, read_rated_units
from triagestats.agreement.sources import Counted
from triagestats.agreement.weights import agreement_weights, name_of
from triagestats.arguments import valid_choice
from triagestats.defaults import FEWEST_CLUSTERS, Method
from triagestats.errors import DataError
from triagestats.results import Note, Test
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["cohen_kappa", "fleiss_kappa"]

Unequal = Literal["raise", "pooled-margins"]

ONE_CATEGORY = "All ratings are in one category, so that agreement by chance is complete too: 0 / 0."


def cohen_kappa(
    a: object,
    b: object = None,
    *,
    data: object = None,
    counts: bool | Counted | None = None,
    weights: object = None,
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Cohen's kappa of two raters: agreement beyond that of independent raters with the same margins.

    With p_ij the shares of units in category i by `a` and j by `b`, r and c their margins, and w_ij the
    weights of agreement (1 on the diagonal),

        po = sum w_ij p_ij,   pe = sum w_ij r_i c_j,   kappa = (po - pe) / (1 - pe)

    Parameters
    ----------
    a, b
        Labels of both raters, one a unit; or names of columns of `data`; or two judges where `data` is a
        ResponseTable. `a` alone may be a matrix, or a ResponseTable with two judges.
    data
        A table of any make, or a ResponseTable: units are then its responses, labels its `response`, the
        categories its `levels`, and the clusters its own.
    counts
        What a matrix as `a` holds. `confusion`, or True: units counted by the category of the first rater
        (rows) and of the second (columns). False: ratings, one row a unit and two columns. Default: counts,
        with a note that says so. The rows of a pandas frame name the categories.
    weights
        None; `linear`, `1 - d`; `quadratic`, `1 - d^2`, with d the distance of the values over the
        largest; or a matrix of weights of agreement in the order of the categories.
    categories
        All categories in their order, used or not; by default those of an Enum, else the labels that occur.
        Numbers are worth their value, other labels their position.
    clusters
        One label a unit, or the name of a column: whole clusters are then resampled.
    missing
        `raise`, or `omit` units with a missing label.
    interval
        By default the large-sample interval, or with clusters `percentile`. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without clusters `statistic` and `p_value` are of kappa = 0. `details` hold `observed` (po),
        `expected` (pe), `std_error`, `std_error_null`, and unweighted `percent_agreement`, `pabak`,
        `scott_pi`, `gwet_ac1`, `kappa_max` (the largest kappa that the margins allow, for kappa without
        weights).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used; weights of text without an order are an error.

    Notes
    -----
    The interval uses the error that holds for any kappa; the test the one for kappa = 0. They differ, and
    packages print one or the other. Both take units as independent; with clusters there is no test. Fewer
    than five units or clusters have no interval, from fewer than twelve it carries a warning. Where nothing
    shows how far kappa could be off it has none; a kappa of 1 keeps its large-sample interval from 1 to 1.

    The percentile interval of few clusters covers too little, mostly because its lower end lies too high. Of
    kappa .57 to .90 with 2 to 7 units a cluster, in 3,000 samples a case, nominal 95 % intervals covered .88
    to .92 with 12 clusters, .90 to .92 with 17, .92 to .94 with 30, .94 to .95 with 60; `interval="bca"`
    covered .91 to .98, .93 to .96, .94 to .95, .94 to .95. BCa is undefined where no replicate lies above the
    estimate. A note says so from 12 to 29 clusters, and `analyze` has the same percentile intervals.

    Weights come from the values of the scale. Packages that take them from the positions of the labels
    that occur give another kappa where a category is unused.

    If both raters use one and the same category kappa is 0 / 0, undefined. If one rater uses one category,
    kappa is 0 whatever the other did, and has no error.

    References
    ----------
    Cohen, J. (1960), A coefficient of agreement for nominal scales, Educational and Psychological
    Measurement 20(1):37-46, doi:10.1177/001316446002000104.

    Cohen, J. (1968), Weighted kappa, Psychological Bulletin 70(4):213-220, doi:10.1037/h0026256.

    Fleiss, J. L., Cohen, J. and Everitt, B. S. (1969), Large sample standard errors of kappa and weighted
    kappa, Psychological Bulletin 72(5):323-327, doi:10.1037/h0028106.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.cohen_kappa([[20, 5], [10, 15]], counts="confusion")
    >>> round(result.estimate, 3), round(result.conf_low, 3), round(result.conf_high, 3)
    (0.4, 0.151, 0.649)
    >>> first = ["low", "mid", "high", "mid", "low", "high"]
    >>> second = ["low", "high", "high", "mid", "mid", "high"]
    >>> scale = ["low", "mid", "high"]
    >>> round(ts.cohen_kappa(first, second, weights="quadratic", categories=scale).estimate, 3)
    0.75
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    pairs = read_rated_pairs(
        a, b, data=data, counts=counts, categories=categories, clusters=clusters, missing=missing
    )
    matrix = agreement_weights(weights, pairs.scale)
    name = "Cohen's kappa" if weights is None else f"weighted kappa ({name_of(weights)})"
    coefficient = known.kappa("kappa", name, matrix)
    estimate = value_of(coefficient, pairs.counts.reshape(1, -1))
    details = beside_kappa(pairs, matrix) | {"weights": name_of(weights)}
    if weights is not None:
        del details["kappa_max"]
    notes = list(pairs.notes)
    statistic = p_value = None
    uncertainty = Uncertainty()
    if estimate is not None:
        error, null = kappa_errors(pairs.counts, matrix, estimate)
        details["std_error_null"] = null
        if _one_rater_constant(pairs):
            message = (
                "One rater used one category: kappa is 0 whatever the other did, so it has no error, and "
                "there is nothing to test."
            )
            notes.append(Note("one_rater_constant", message, "caution"))
        else:
            uncertainty = measured(
                coefficient,
                pairs.totals,
                asked,
                pairs.shared,
                "cohen_kappa",
                n_rows=pairs.n,
                alone=lambda: _large_sample(estimate, error, pairs.n, asked),
            )
            if not is_clustered(pairs.shared):
                statistic, p_value, few = z_test(estimate, null, pairs.n)
                notes += few
    return reported(
        estimand="kappa" if weights is None else name,
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=name,
        n=pairs.n,
        statistic=statistic,
        p_value=p_value,
        details=details,
        notes=tuple(notes),
        reason=f"{_certain(pairs)} The shares of agreement stand in the details.",
    )


def _certain(pairs: RatedPairs) -> str:
    """Why agreement by chance is complete."""
    used = np.count_nonzero(pairs.counts.sum(axis=0) + pairs.counts.sum(axis=1))
    if used == 1:
        return ONE_CATEGORY
    return "The weights take all that the raters said as agreement, also by chance: 0 / 0."


def _one_rater_constant(pairs: RatedPairs) -> bool:
    return any(np.count_nonzero(pairs.counts.sum(axis=axis)) == 1 for axis in (0, 1))


def _large_sample(estimate: float, error: float, n: int, asked: Resampling) -> Uncertainty:
    how = "large-sample error, normal"
    if n < FEWEST_CLUSTERS:
        return Uncertainty(std_error=error, how=how, notes=too_few_of(n, "unit"))
    if error > 0:
        return Uncertainty(
            *normal_interval(estimate, error, asked.conf_level), error, how, {}, few_of(n, "unit")
        )
    unknown = "the large-sample error is 0, and nothing shows how far kappa could be off."
    if estimate == 1:
        note = Note("degenerate", f"All units agree: {unknown}", "caution")
        return Uncertainty(1.0, 1.0, error, how, notes=(note,))
    note = Note("degenerate", f"No unit moves kappa: {unknown}", "caution")
    return Uncertainty(std_error=error, how=how, notes=(note,))


def fleiss_kappa(
    ratings: object,
    *,
    data: object = None,
    counts: bool | Counted | None = None,
    unequal: Unequal = "raise",
    categories: object = None,
    clusters: object = None,
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Fleiss' kappa of several raters, who need not be the same ones for every unit.

    With n_ij ratings of unit i in category j, m ratings a unit, and p_j the shares of all ratings,

        P = mean over i of sum_j n_ij (n_ij - 1) / (m (m - 1)),   Pe = sum p_j^2,
        kappa = (P - Pe) / (1 - Pe)

    Parameters
    ----------
    ratings
        Labels, one row a unit and one column a rater; or names of columns of `data`; or judges, or None for
        all, where `data` is a ResponseTable.
    data, categories, clusters
        As in `cohen_kappa`.
    counts
        What a matrix holds. `units`, or True: ratings counted by unit (rows) and category (columns).
        `confusion`: a square table of counts of two raters, as in `cohen_kappa`. False: ratings, which is the
        default, with a note where the matrix is square and of whole numbers.
    unequal
        If units differ in their number of ratings: `raise`, or `pooled-margins`, P as the mean over units
        with two ratings at least, of their own m, and p_j from all their ratings together.
    interval
        By default the linearised error with t(n - 1), or with clusters `percentile`. Or any interval of
        `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without clusters `statistic` and `p_value` are of kappa = 0 (Fleiss, Nee and Landis), for equal
        numbers of ratings. `details` hold `observed` (P), `expected` (Pe), `std_error`,
        `std_error_null`, `randolph_free_marginal`, `gwet_ac1`, `n_raters`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used, or numbers of ratings differ.

    Notes
    -----
    If all ratings are in one category kappa is 0 / 0, undefined. With unequal numbers of ratings
    `krippendorff_alpha` and `gwet_ac1` need no variant. The variant uses the ratings that are there, and a
    note counts those that are missing. Fewer than five units have neither interval nor p-value. How the
    percentile interval of few clusters covers stands in the Notes of `cohen_kappa`.

    References
    ----------
    Fleiss, J. L. (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin
    76(5):378-382, doi:10.1037/h0031619.

    Fleiss, J. L., Nee, J. C. M. and Landis, J. R. (1979), Large sample variance of kappa in the case of
    different sets of raters, Psychological Bulletin 86(5):974-977, doi:10.1037/0033-2909.86.5.974.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.fleiss_kappa([[3, 0, 0], [2, 1, 0], [0, 3, 0], [1, 2, 0]], counts=True)
    >>> round(result.estimate, 4), round(result.details["observed"], 4)
    (0.3333, 0.6667)
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    valid_choice("unequal", unequal, Unequal)
    units = read_rated_units(ratings, data=data, categories=categories, clusters=clusters, counts=counts)
    units, n_single = _with_pairs(units, unequal)
    rows = units.counts.astype(np.float64)
    numbers = rows.sum(axis=1)
    agreeing = (rows * (rows - 1)).sum(axis=1) / (numbers * (numbers - 1))
    totals = units.totals(np.column_stack([agreeing, np.ones(len(rows)), rows]))
    coefficient = known.fleiss_of_units()
    estimate = value_of(coefficient, totals)
    shares = rows.sum(axis=0) / rows.sum()
    observed, size = float(agreeing.mean()), units.scale.size
    spread = float((shares * (1 - shares)).sum())
    equal = bool((numbers == numbers[0]).all())
    null = fleiss_null_error(shares, len(rows), int(numbers[0])) if equal and estimate is not None else None
    notes = list(units.notes)
    uncertainty = Uncertainty()
    statistic = p_value = None
    if estimate is not None:
        uncertainty = measured(
            coefficient,
            lambda: totals,
            asked,
            units.shared,
            "fleiss_kappa",
            n_rows=len(rows),
            alone=lambda: linearised(coefficient, totals, asked.conf_level),
        )
        if null is not None and not is_clustered(units.shared):
            statistic, p_value, few = z_test(estimate, null, len(rows))
            notes += few
    free = size > 1
    return reported(
        estimand="Fleiss' kappa",
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method="Fleiss' kappa" if equal else "Fleiss' kappa with pooled margins",
        n=len(rows),
        statistic=statistic,
        p_value=p_value,
        details={
            "observed": observed,
            "expected": float((shares**2).sum()),
            "std_error_null": null,
            "randolph_free_marginal": (observed - 1 / size) / (1 - 1 / size) if free else None,
            "gwet_ac1": (observed - spread / (size - 1)) / (1 - spread / (size - 1)) if free else None,
            "n_raters": int(numbers[0]) if equal else None,
            "variant": "equal numbers of ratings" if equal else "pooled margins",
            "categories": list(units.scale.labels),
            "raters": list(units.raters),
            "n_missing": units.n_empty + n_single,
            "n_missing_ratings": units.n_gaps,
        },
        notes=tuple(notes),
        reason=f"{ONE_CATEGORY} The share of agreement and Gwet's AC1 stand in the details.",
    )


def _with_pairs(units: RatedUnits, unequal: Unequal) -> tuple[RatedUnits, int]:
    """The units with two ratings at least, and how many have one; unequal numbers only where asked for."""
    numbers = units.n_ratings
    if unequal == "raise" and (numbers != numbers[0]).any():
        raise DataError(
            f"`ratings` has units with {numbers.min()} to {numbers.max()} ratings, and Fleiss' kappa needs "
            "as many of every unit; take krippendorff_alpha or gwet_ac1, which allow missing ratings, or the "
            "variant unequal='pooled-margins'"
        )
    single = numbers < 2
    if single.all():
        raise DataError("`ratings` has no unit with two ratings, so nothing can agree")
    return (units.of(~single), int(single.sum())) if single.any() else (units, 0)
