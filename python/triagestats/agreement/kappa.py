"""Cohen's kappa of two raters, and Fleiss' kappa of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtr

from triagestats import defaults
from triagestats.agreement import functions as known
from triagestats.agreement.coefficients import pair_coefficients
from triagestats.agreement.estimation import (
    Resampling,
    Uncertainty,
    bootstrapped,
    is_clustered,
    linearised,
    normal_interval,
    reported,
    resampling_of,
    value_of,
)
from triagestats.agreement.large_sample import fleiss_null_error, kappa_errors
from triagestats.agreement.ratings import RatedPairs, RatedUnits, read_rated_pairs, read_rated_units
from triagestats.agreement.scale import Scale
from triagestats.agreement.weights import agreement_weights, name_of
from triagestats.arguments import valid_choice
from triagestats.defaults import Method
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
        ResponseTable. `a` alone may be a square table of counts (rows `a`, columns `b`), or a ResponseTable
        with two judges.
    data
        A table of any make, or a ResponseTable: units are then its responses, labels its `response`, the
        categories its `levels`, and the clusters its own.
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
        Without clusters `statistic` and `p_value` are of kappa = 0. `details` hold `po`, `pe`, `std_error`,
        `se_null`, and unweighted `percent_agreement`, `pabak`, `scott_pi`, `gwet_ac1`, `kappa_max` (the
        largest kappa that the margins allow, for kappa without weights).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used; weights of text without an order are an error.

    Notes
    -----
    The interval uses the error that holds for any kappa; the test the one for kappa = 0. They differ, and
    packages print one or the other. Both take units as independent; with clusters there is no test.

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
    >>> result = ts.cohen_kappa([[20, 5], [10, 15]])
    >>> round(result.estimate, 3), round(result.conf_low, 3), round(result.conf_high, 3)
    (0.4, 0.151, 0.649)
    >>> first = ["low", "mid", "high", "mid", "low", "high"]
    >>> second = ["low", "high", "high", "mid", "mid", "high"]
    >>> scale = ["low", "mid", "high"]
    >>> round(ts.cohen_kappa(first, second, weights="quadratic", categories=scale).estimate, 3)
    0.75
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    pairs = read_rated_pairs(a, b, data=data, categories=categories, clusters=clusters, missing=missing)
    matrix = agreement_weights(weights, pairs.scale)
    coefficient = known.kappa("kappa", "Cohen's kappa", matrix)
    counts = pairs.counts.reshape(1, -1)
    estimate = value_of(coefficient, counts)
    details = _details(pairs, matrix, name_of(weights))
    notes = list(pairs.notes)
    statistic = p_value = None
    uncertainty = Uncertainty()
    if estimate is not None:
        clustered = is_clustered(pairs.shared)
        error, details["se_null"] = kappa_errors(pairs.counts, matrix, estimate)
        if _one_rater_constant(pairs):
            message = (
                "One rater used one category: kappa is 0 whatever the other did, so it has no error, and "
                "there is nothing to test."
            )
            notes.append(Note("one_rater_constant", message, "caution"))
        elif clustered or asked.interval is not None:
            uncertainty = bootstrapped(
                coefficient, pairs.totals(), asked, clustered=clustered, n_rows=pairs.n
            )
        else:
            uncertainty = _large_sample(estimate, error, asked)
        if not clustered and details["se_null"] > 0:
            statistic = estimate / details["se_null"]
            p_value = 2.0 * float(ndtr(-abs(statistic)))
        if pairs.shared is not None and not clustered:
            notes += pairs.shared.taken_as_independent("cohen_kappa(..., clusters=...)")
    return reported(
        estimand="kappa" if weights is None else f"weighted kappa ({name_of(weights)})",
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method="Cohen's kappa" if weights is None else f"weighted kappa ({name_of(weights)})",
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


def _large_sample(estimate: float, error: float, asked: Resampling) -> Uncertainty:
    low, high = normal_interval(estimate, error, asked.conf_level)
    message = "All units agree: the large-sample error is 0, and nothing shows how far kappa could be off."
    return Uncertainty(
        low,
        high,
        error,
        "large-sample error, normal",
        notes=() if error > 0 else (Note("degenerate", message, "caution"),),
    )


def _details(pairs: RatedPairs, weights: Array, name: str) -> dict[str, Any]:
    """What stands beside kappa: agreement observed and by chance, and coefficients without weights."""
    counts, size, n = pairs.counts, pairs.scale.size, pairs.n
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    chance = np.outer(rows, columns) / n**2
    scale = Scale(pairs.scale.labels, None, declared=True, numeric=False)
    found = (*pair_coefficients(scale), known.scott_pi("scott_pi", size))
    simple = {one.name: value_of(one, counts.reshape(1, -1)) for one in found}
    details: dict[str, Any] = {
        "po": float((weights * counts).sum() / n),
        "pe": float((weights * chance).sum()),
        "percent_agreement": simple["percent_agreement"],
        "pabak": simple.get("pabak"),
        "scott_pi": simple["scott_pi"],
        "gwet_ac1": simple.get("ac1"),
        "se_null": None,
        "weights": name,
        "categories": list(pairs.scale.labels),
        "raters": list(pairs.raters),
        "n_missing": pairs.n_missing,
    }
    if name == "unweighted":
        most = np.minimum(rows, columns).sum() / n
        expected = details["pe"]
        details["kappa_max"] = float((most - expected) / (1 - expected)) if expected < 1 else None
    return details


def fleiss_kappa(
    ratings: object,
    *,
    data: object = None,
    counts: bool = False,
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
        `ratings` are counts, one row a unit and one column a category.
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
        numbers of ratings. `details` hold `p_bar`, `pe_bar`, `se_null`, `std_error`,
        `randolph_free_marginal`, `gwet_ac1`, `n_raters`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used, or numbers of ratings differ.

    Notes
    -----
    If all ratings are in one category kappa is 0 / 0, undefined. With unequal numbers of ratings
    `krippendorff_alpha` and `gwet_ac1` need no variant.

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
    >>> round(result.estimate, 4), round(result.details["p_bar"], 4)
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
    clustered = is_clustered(units.shared)
    notes = list(units.notes)
    uncertainty = Uncertainty()
    statistic = p_value = None
    if estimate is not None:
        if clustered or asked.interval is not None:
            uncertainty = bootstrapped(coefficient, totals, asked, clustered=clustered, n_rows=len(rows))
        else:
            uncertainty = linearised(coefficient, totals, asked.conf_level)
        if not clustered and null:
            statistic = estimate / null
            p_value = 2.0 * float(ndtr(-abs(statistic)))
        if units.shared is not None and not clustered:
            notes += units.shared.taken_as_independent("fleiss_kappa(..., clusters=...)")
    free = size > 1
    details: dict[str, Any] = {
        "p_bar": observed,
        "pe_bar": float((shares**2).sum()),
        "se_null": null,
        "randolph_free_marginal": (observed - 1 / size) / (1 - 1 / size) if free else None,
        "gwet_ac1": (observed - spread / (size - 1)) / (1 - spread / (size - 1)) if free else None,
        "n_raters": int(numbers[0]) if equal else None,
        "variant": "equal numbers of ratings" if equal else "pooled margins",
        "categories": list(units.scale.labels),
        "raters": list(units.raters),
        "n_missing": units.n_empty + n_single,
    }
    return reported(
        estimand="Fleiss' kappa",
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method="Fleiss' kappa" if equal else "Fleiss' kappa with pooled margins",
        n=len(rows),
        statistic=statistic,
        p_value=p_value,
        details=details,
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
