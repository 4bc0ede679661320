"""Shares of agreement: percent agreement, PABAK, within k levels, and the direction of disagreement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from triagestats import defaults
from triagestats.agreement import functions as known
from triagestats.agreement.estimation import resampling_of
from triagestats.agreement.ratings import read_rated_pairs, read_rated_units
from triagestats.agreement.shares import (
    agreement_of_several,
    direction_of_pairs,
    reported_pairs,
    share_of_pairs,
)
from triagestats.agreement.sources import Counted, holds_confusion, is_matrix
from triagestats.arguments import valid_choice
from triagestats.defaults import Method
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.results import Test
from triagestats.table import ResponseTable
from triagestats.vectors import Missing

__all__ = ["direction_of_disagreement", "pabak", "percent_agreement", "within_levels"]


def percent_agreement(
    a: object,
    b: object = None,
    *,
    data: object = None,
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Share of units on which two raters agree, or of several the mean share of agreeing pairs of raters.

    With n_ij the ratings of unit i in category j, m_i in all,

        mean over i of sum_j n_ij (n_ij - 1) / (m_i (m_i - 1))

    Parameters
    ----------
    a, b
        Labels of both raters, one a unit; or names of columns of `data`; or two judges where `data` is a
        ResponseTable. `a` alone is a matrix of labels, one row a unit and one column a rater, or names of
        several columns, or a ResponseTable, all of whose judges are compared.
    data, categories, clusters
        As in `cohen_kappa`.
    counts
        What a matrix as `a` holds. `confusion`, or True: a square table of counts of two raters, as in
        `cohen_kappa`. `units`: ratings counted by unit (rows) and category (columns). False: ratings.
        Default: a table of counts where it is square and of whole numbers, with a note, else ratings.
    missing
        `raise`, or `omit`: of two raters the units with a missing label, of several the missing labels.
    interval
        By default Wilson's, of several raters with the number of units that a share as precise would need;
        with clusters `percentile`. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without a test: `estimate` and its interval.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used.

    Notes
    -----
    Agreement by chance is in it: raters who always take the most common category agree often. See
    `cohen_kappa`, `gwet_ac1` and `krippendorff_alpha`.

    Of several raters Wilson's interval is that of `p (1 - p) / e^2 (z / t)^2` units, e the error of the mean
    over units, and t with n - 1 degrees of freedom. It stays between 0 and 1; in 20,000 samples of 3 and 5
    raters it covered .93 to .98 with 8 to 12 units where `p -+ t e` covered .90 to .995 and passed 1 in up to
    85 %. Fewer than five units, or clusters, have no interval, unless two raters rated them.

    References
    ----------
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA
    22(158):209-212, doi:10.1080/01621459.1927.10502953.

    Fleiss, J. L. (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin
    76(5):378-382, doi:10.1037/h0031619.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.percent_agreement(["A", "B", "B", "C"], ["A", "B", "C", "C"]).estimate
    0.75
    >>> round(ts.percent_agreement([["A", "A", "A"], ["B", "B", "C"], ["C", "C", "C"]]).estimate, 4)
    0.7778
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    valid_choice("missing", missing, Missing)
    rated = {"data": data, "categories": categories, "clusters": clusters}
    if b is None and not holds_confusion(a, b, data, counts):
        if data is None and not isinstance(a, ResponseTable) and not is_matrix(a):
            raise ArgumentTypeError(
                "`b` is needed: the labels of the second rater; `a` alone must be a matrix, one column "
                "a rater"
            )
        held = counts if counts == "units" else False
        return agreement_of_several(read_rated_units(a, counts=held, argument="a", **rated), asked, missing)
    pairs = read_rated_pairs(a, b, counts=counts, missing=missing, **rated)
    what = "percent agreement"
    coefficient = known.share_of_agreement("percent_agreement", what, np.eye(pairs.scale.size))
    share, uncertainty = share_of_pairs(pairs, coefficient, asked, "percent_agreement")
    return reported_pairs(pairs, what, share, uncertainty, asked)


def pabak(
    a: object,
    b: object = None,
    *,
    data: object = None,
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Prevalence- and bias-adjusted kappa: agreement beyond that of k equally likely categories.

    With po the share of units on which both raters agree, `(k po - 1) / (k - 1)`; of two categories
    `2 po - 1`.

    Parameters
    ----------
    a, b
        Labels of both raters, one a unit; or names of columns of `data`; or two judges where `data` is a
        ResponseTable. `a` alone may be a matrix, or a ResponseTable with two judges.
    data, counts, clusters, missing
        As in `cohen_kappa`.
    categories
        All categories, used or not: their number matters. By default those of an Enum, else the labels
        that occur, with a note.
    interval
        By default from Wilson's of po, or with clusters `percentile`. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without a test: `estimate` and its interval; `details` hold `observed` (po) and `expected` (1 / k).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used.

    References
    ----------
    Byrt, T., Bishop, J. and Carlin, J. B. (1993), Bias, prevalence and kappa, Journal of Clinical
    Epidemiology 46(5):423-429, doi:10.1016/0895-4356(93)90018-V.

    Examples
    --------
    >>> import triagestats as ts
    >>> round(ts.pabak([[118, 5], [2, 0]], counts="confusion").estimate, 3)
    0.888
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    pairs = read_rated_pairs(
        a, b, data=data, counts=counts, categories=categories, clusters=clusters, missing=missing
    )
    size = pairs.scale.size
    coefficient = known.share_of_agreement("percent_agreement", "percent agreement", np.eye(size))
    share, uncertainty = share_of_pairs(pairs, coefficient, asked, "pabak")
    if size > 1:
        low, high, error = uncertainty.low, uncertainty.high, uncertainty.std_error
        uncertainty = replace(
            uncertainty,
            low=None if low is None else (size * low - 1) / (size - 1),
            high=None if high is None else (size * high - 1) / (size - 1),
            std_error=None if error is None else error * size / (size - 1),
        )
    return reported_pairs(
        pairs,
        "PABAK",
        (size * share - 1) / (size - 1) if size > 1 else None,
        uncertainty,
        asked,
        details={"observed": share, "expected": 1 / size},
        notes=pairs.scale.as_they_occur() if size > 1 else (),
        reason="One category is known, and agreement by chance needs the number of categories that there "
        "were: give all as `categories`.",
        least=-1 / (size - 1) if size > 1 else -1.0,
    )


def within_levels(
    a: object,
    b: object = None,
    *,
    k: int = 1,
    data: object = None,
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Share of units on which two raters are at most `k` levels of the scale apart.

    Parameters
    ----------
    a, b
        Labels of both raters, one a unit; or names of columns of `data`; or two judges where `data` is a
        ResponseTable. `a` alone may be a matrix, or a ResponseTable with two judges.
    k
        Levels apart, from 0 (equal).
    data, counts, clusters, missing
        As in `cohen_kappa`.
    categories
        All levels in their order, used or not; neighbours are one level apart. By default those of an Enum;
        whole numbers need none, and are as many levels apart as their difference says.
    interval
        By default Wilson's, or with clusters `percentile`. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without a test: `estimate` and its interval; `details` hold `n_within`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used; labels without an order are an error.

    References
    ----------
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA
    22(158):209-212, doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> import triagestats as ts
    >>> scale = ["A", "B", "C", "D"]
    >>> ts.within_levels(["A", "B", "D", "C"], ["B", "B", "B", "D"], k=1, categories=scale).estimate
    0.75
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise ArgumentTypeError(f"`k` must be a whole number of levels; got {k!r}")
    if k < 0:
        raise ArgumentError(f"`k` must be a number of levels from 0; got {k}")
    pairs = read_rated_pairs(
        a, b, data=data, counts=counts, categories=categories, clusters=clusters, missing=missing
    )
    steps = pairs.scale.steps("the share within levels")
    near = (np.abs(steps[:, None] - steps) <= k).astype(np.float64)
    what = f"share within {k} level{'' if k == 1 else 's'}"
    coefficient = known.share_of_agreement(f"within_{k}_levels", what, near)
    share, uncertainty = share_of_pairs(pairs, coefficient, asked, "within_levels")
    details = {"k": int(k), "n_within": int((near * pairs.counts).sum())}
    return reported_pairs(pairs, what, share, uncertainty, asked, details=details)


def direction_of_disagreement(
    a: object,
    b: object = None,
    *,
    data: object = None,
    counts: bool | Counted | None = None,
    categories: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Share of units that `a` puts above `b` on the scale, minus the share that `b` puts above `a`.

    Parameters
    ----------
    a, b
        Labels of both raters, one a unit; or names of columns of `data`; or two judges where `data` is a
        ResponseTable. `a` alone may be a matrix, or a ResponseTable with two judges.
    data, counts, clusters, missing
        As in `cohen_kappa`.
    categories
        All categories from the lowest to the highest. By default those of an Enum, else numbers by value.
    interval
        By default Tango's score interval, or with clusters `percentile`. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        `estimate` between -1 and 1. `p_value` of no direction is that of the exact sign test, or with
        clusters of sign flips by cluster. `details` hold `share_above`, `share_below`, `share_equal`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used; labels without an order are an error.

    Notes
    -----
    Units above and below are like the discordant pairs of two binary answers, so that their shares differ by
    what Tango's interval is for: it stays between -1 and 1, and also has a width where no unit disagrees.

    References
    ----------
    Tango, T. (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17(8):891-908,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Dixon, W. J. and Mood, A. M. (1946), The statistical sign test, JASA 41(236):557-566,
    doi:10.1080/01621459.1946.10501898.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.direction_of_disagreement([3, 2, 4, 1, 5, 2], [2, 2, 3, 1, 3, 3])
    >>> round(result.estimate, 3), result.details["share_above"], result.p_value
    (0.333, 0.5, 0.625)
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    pairs = read_rated_pairs(
        a, b, data=data, counts=counts, categories=categories, clusters=clusters, missing=missing
    )
    pairs.scale.worth("the direction of disagreement")
    return direction_of_pairs(pairs, asked)
