"""Shares of agreement: percent agreement, PABAK, within k levels, and the direction of disagreement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import bdtr

from triagestats import defaults
from triagestats.agreement import functions as known
from triagestats.agreement.estimation import (
    Resampling,
    bootstrapped,
    is_clustered,
    linearised,
    resampling_of,
)
from triagestats.agreement.ratings import RatedPairs, read_rated_pairs, read_rated_units
from triagestats.agreement.shares import agreement_of_several, reported_pairs, share_of_pairs
from triagestats.agreement.sources import is_matrix
from triagestats.arguments import valid_choice
from triagestats.defaults import Method
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.permute import permutation_test
from triagestats.results import Note, Test
from triagestats.table import ResponseTable
from triagestats.vectors import Missing

__all__ = ["direction_of_disagreement", "pabak", "percent_agreement", "within_levels"]


def percent_agreement(
    a: object,
    b: object = None,
    *,
    data: object = None,
    counts: bool = False,
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
        `a` alone is a square table of counts of two raters instead.
    missing
        `raise`, or `omit`: of two raters the units with a missing label, of several the missing labels.
    interval
        By default Wilson's of two raters, of several the linearised error with t(n - 1), and with clusters
        `percentile`. Or any interval of `bootstrap`.
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

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.percent_agreement(["A", "B", "B", "C"], ["A", "B", "C", "C"]).estimate
    0.75
    >>> round(ts.percent_agreement([["A", "A", "A"], ["B", "B", "C"], ["C", "C", "C"]]).estimate, 4)
    0.7778
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    if counts and (b is not None or data is not None or isinstance(a, ResponseTable)):
        raise ArgumentError("`counts=True` takes a square table of counts as `a`, without `b` and `data`")
    several = b is None and not counts and (data is not None or isinstance(a, ResponseTable) or is_matrix(a))
    if several:
        valid_choice("missing", missing, Missing)
        units = read_rated_units(a, data=data, categories=categories, clusters=clusters)
        return agreement_of_several(units, asked, missing)
    if b is None and not counts:
        raise ArgumentTypeError(
            "`b` is needed: the labels of the second rater; `a` alone must be a matrix, one column a rater"
        )
    pairs = read_rated_pairs(a, b, data=data, categories=categories, clusters=clusters, missing=missing)
    coefficient = known.share_of_agreement("percent_agreement", "percent agreement", np.eye(pairs.scale.size))
    share, uncertainty = share_of_pairs(pairs, coefficient, asked)
    return reported_pairs(pairs, "percent agreement", share, uncertainty, asked, "percent_agreement")


def pabak(
    a: object,
    b: object = None,
    *,
    data: object = None,
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
        ResponseTable. `a` alone may be a square table of counts, or a ResponseTable with two judges.
    data, clusters, missing
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
        Without a test: `estimate` and its interval; `details` hold `percent_agreement`.

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
    >>> round(ts.pabak([[118, 5], [2, 0]]).estimate, 3)
    0.888
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    pairs = read_rated_pairs(a, b, data=data, categories=categories, clusters=clusters, missing=missing)
    size = pairs.scale.size
    coefficient = known.share_of_agreement("percent_agreement", "percent agreement", np.eye(size))
    share, uncertainty = share_of_pairs(pairs, coefficient, asked)
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
        "pabak",
        details={"percent_agreement": share},
        notes=pairs.scale.as_they_occur() if size > 1 else (),
        reason="One category is known, and agreement by chance needs the number of categories that there "
        "were: give all as `categories`.",
    )


def within_levels(
    a: object,
    b: object = None,
    *,
    k: int = 1,
    data: object = None,
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
        ResponseTable. `a` alone may be a square table of counts, or a ResponseTable with two judges.
    k
        Levels apart, from 0 (equal).
    data, clusters, missing
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
    pairs = read_rated_pairs(a, b, data=data, categories=categories, clusters=clusters, missing=missing)
    steps = pairs.scale.steps("the share within levels")
    near = (np.abs(steps[:, None] - steps) <= k).astype(np.float64)
    what = f"share within {k} level{'' if k == 1 else 's'}"
    share, uncertainty = share_of_pairs(
        pairs, known.share_of_agreement(f"within_{k}_levels", what, near), asked
    )
    details = {"k": int(k), "n_within": int((near * pairs.counts).sum())}
    return reported_pairs(pairs, what, share, uncertainty, asked, "within_levels", details=details)


def direction_of_disagreement(
    a: object,
    b: object = None,
    *,
    data: object = None,
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
        ResponseTable. `a` alone may be a square table of counts, or a ResponseTable with two judges.
    data, clusters, missing
        As in `cohen_kappa`.
    categories
        All categories from the lowest to the highest. By default those of an Enum, else numbers by value.
    interval
        By default the linearised error with t(n - 1), or with clusters `percentile`. Or any interval of
        `bootstrap`.
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

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.direction_of_disagreement([3, 2, 4, 1, 5, 2], [2, 2, 3, 1, 3, 3])
    >>> round(result.estimate, 3), result.details["share_above"], result.p_value
    (0.333, 0.5, 0.625)
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    pairs = read_rated_pairs(a, b, data=data, categories=categories, clusters=clusters, missing=missing)
    pairs.scale.worth("the direction of disagreement")
    above, below = int(np.tril(pairs.counts, -1).sum()), int(np.triu(pairs.counts, 1).sum())
    coefficient = known.direction(pairs.scale.size)
    clustered = is_clustered(pairs.shared)
    totals = pairs.totals()
    notes: tuple[Note, ...] = ()
    if clustered or asked.interval is not None:
        uncertainty = bootstrapped(coefficient, totals, asked, clustered=clustered, n_rows=pairs.n)
    else:
        uncertainty = linearised(coefficient, totals, asked.conf_level)
    if clustered:
        p_value, notes = _sign_flips(pairs, asked)
    else:
        p_value = min(1.0, 2.0 * float(bdtr(min(above, below), above + below, 0.5)))
    return reported_pairs(
        pairs,
        "direction of disagreement",
        (above - below) / pairs.n,
        uncertainty,
        asked,
        "direction_of_disagreement",
        p_value=p_value,
        details={
            "share_above": above / pairs.n,
            "share_below": below / pairs.n,
            "share_equal": (pairs.n - above - below) / pairs.n,
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
