"""Krippendorff's alpha: any number of raters, missing ratings, and four metrics."""

from __future__ import annotations

from triagestats import defaults
from triagestats.agreement.disagreement import Metric, alpha_of_units
from triagestats.agreement.estimation import (
    Uncertainty,
    measured,
    reported,
    resampling_of,
    value_of,
)
from triagestats.agreement.ratings import read_rated_units
from triagestats.agreement.sources import Counted
from triagestats.arguments import valid_choice
from triagestats.defaults import Method
from triagestats.errors import ArgumentError, DataError
from triagestats.results import Note, Test

__all__ = ["krippendorff_alpha"]


def krippendorff_alpha(
    ratings: object,
    *,
    data: object = None,
    metric: Metric = "nominal",
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Krippendorff's alpha: 1 - observed over expected disagreement of the pairable ratings.

    A unit with m ratings adds 1 / (m - 1) for each ordered pair of them to the coincidences o_ck. With their
    margins n_c, n = sum n_c, and distances d_ck,

        alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck

    | metric | d_ck |
    |---|---|
    | `nominal` | 0 if c = k, else 1 |
    | `ordinal` | (sum of n_g from c to k, less (n_c + n_k) / 2) squared |
    | `interval` | (c - k) squared |
    | `ratio` | ((c - k) / (c + k)) squared |

    Parameters
    ----------
    ratings
        Labels, one row a unit and one column a rater, None or NaN where one is missing; or names of columns
        of `data`; or judges, or None for all, where `data` is a ResponseTable.
    data
        A table of any make, or a ResponseTable: units are then its responses, labels its `response`, the
        categories its `levels`, and the clusters its own.
    metric
        How far categories are apart. All but `nominal` need an order, `ratio` numbers from 0.
    counts
        What a matrix holds. `units`, or True: ratings counted by unit (rows) and category (columns).
        `confusion`: a square table of counts of two raters, as in `cohen_kappa`. False: ratings, which is the
        default, with a note where the matrix is square and of whole numbers.
    categories
        All categories in their order; by default those of an Enum, else the labels that occur. Numbers are
        worth their value, other labels their position.
    clusters
        One label a unit, or the name of a column: whole clusters are then resampled.
    interval
        By default `percentile`, with units resampled, or clusters. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without a test: `estimate` and its interval. `details` hold `n_pairable` (ratings), `n_units` (with
        two ratings at least), and `n_single` (units with one, left out).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used; text without an order has the nominal metric only.

    Notes
    -----
    Rows are units. Some packages take raters as rows: transpose.

    If all pairable ratings are in one category, nothing could disagree: alpha is undefined, where packages
    say 1 or 0. The ordinal metric is Krippendorff's, of the frequencies of the categories; the ordinal
    weights of Gwet are others. Units with one rating are dropped, also from the frequencies; the other
    ratings that are there are used, and a note counts those that are missing.

    Fewer than five units, or clusters, have no interval. How the percentile interval of few clusters covers
    stands in the Notes of `cohen_kappa`; alpha is as kappa.

    References
    ----------
    Krippendorff, K. (2011), Computing Krippendorff's alpha-reliability, University of Pennsylvania,
    https://repository.upenn.edu/asc_papers/43.

    Hayes, A. F. and Krippendorff, K. (2007), Answering the call for a standard reliability measure for
    coding data, Communication Methods and Measures 1(1):77-89, doi:10.1080/19312450709336664.

    Examples
    --------
    >>> import triagestats as ts
    >>> ratings = [[1, 1, None], [2, 2, 3], [3, 3, 3], [2, 2, 2], [1, 2, 1], [None, 3, 3], [3, None, None]]
    >>> result = ts.krippendorff_alpha(ratings, metric="ordinal", n_resamples=999)
    >>> round(result.estimate, 3), result.details["n_pairable"], result.details["n_single"]
    (0.809, 16, 1)
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    valid_choice("metric", metric, Metric)
    units = read_rated_units(ratings, data=data, categories=categories, clusters=clusters, counts=counts)
    scale = units.scale
    if metric == "ratio" and not (counts or scale.numeric):
        raise ArgumentError(
            "`metric='ratio'` needs numbers, whose 0 means nothing; text has none. Take metric='ordinal'"
        )
    if metric == "ratio" and scale.values is not None and min(scale.values) < 0:
        raise ArgumentError(
            f"`metric='ratio'` needs numbers from 0; got {min(scale.values):g}. Take metric='interval'"
        )
    pairable = units.n_ratings >= 2
    n_single = int((~pairable).sum())
    if not pairable.any():
        raise DataError("`ratings` has no unit with two ratings, so nothing can agree")
    units = units.of(pairable)
    coefficient, rows = alpha_of_units("alpha", units.counts, scale, metric)
    totals = units.totals(rows)
    estimate = value_of(coefficient, totals)
    notes = list(units.notes)
    if n_single:
        message = f"{n_single:,} of {len(pairable):,} units with one rating are left out."
        notes.append(Note("single", message))
    uncertainty = Uncertainty()
    if estimate is not None:
        uncertainty = measured(
            coefficient,
            lambda: totals,
            asked,
            units.shared,
            "krippendorff_alpha",
            n_rows=len(rows),
        )
    return reported(
        estimand=f"alpha ({metric})",
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=f"Krippendorff's alpha ({metric})",
        n=len(rows),
        details={
            "metric": metric,
            "n_pairable": int(units.counts.sum()),
            "n_units": len(rows),
            "n_single": n_single,
            "categories": list(scale.labels),
            "raters": list(units.raters),
            "n_missing": units.n_empty + n_single,
            "n_missing_ratings": units.n_gaps,
        },
        notes=tuple(notes),
        reason="All pairable ratings are in one category, so that nothing could disagree: 0 / 0.",
    )
