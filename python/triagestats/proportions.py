"""Confidence intervals of a proportion, and of a difference of two independent ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtr

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.binomial_intervals import (
    agresti_caffo,
    agresti_coull,
    clopper_pearson,
    jeffreys,
    newcombe_independent,
    wilson_corrected,
    wilson_score,
)
from triagestats.columns import column_of, frame_of, shared_rows
from triagestats.counts import count_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.results import Note, Test
from triagestats.score_intervals import difference_interval, difference_score, normal_quantile
from triagestats.vectors import Missing, drop_missing, numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DifferenceMethod", "ProportionMethod", "difference_ci", "proportion_ci"]

ProportionMethod = Literal["wilson", "wilson-corrected", "clopper-pearson", "jeffreys", "agresti-coull"]
DifferenceMethod = Literal["newcombe", "miettinen-nurminen", "mee", "agresti-caffo"]

Pair = tuple[float, float]


def proportion_ci(
    count: object,
    nobs: object = None,
    *,
    data: object = None,
    clusters: object = None,
    method: ProportionMethod = "wilson",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
) -> Test:
    """Confidence interval of a proportion, `count / nobs`.

    Parameters
    ----------
    count, nobs
        How many of how many. Or `count` alone a vector of 0 and 1; with `data` the name of such a column.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a value, or the name of a column of `data`. The interval takes values as independent; a
        note says so where they share clusters.
    method
        `wilson`, the score interval. `wilson-corrected`, the same with Newcombe's continuity correction.
        `clopper-pearson`, which covers at least at its level. `jeffreys`, equal tails of the posterior under
        a Beta(1/2, 1/2) prior, with the lower end 0 at 0 of n and the upper end 1 at n of n.
        `agresti-coull`, cut at 0 and 1.
    missing
        `raise`, or `omit` missing values, with a note.
    conf_level
        Level of the interval.

    Returns
    -------
    Test
        No test is made: `statistic` and `p_value` are None. `details` hold `count`, `nobs`, `std_error`
        (None where it is 0), and `wald_raw`, the ends of Wald's interval, to compare with what others
        report; `interval_unmodified` (Jeffreys) and `interval_raw` (Agresti-Coull before it is cut).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        For counts that are none, more successes than trials, no trial, or values other than 0 and 1.

    Notes
    -----
    Wald's interval is not offered: at 0 of n and n of n it has no width. R's prop.test drops the continuity
    correction at n/2 of n; the formula, and this function, keep it. statsmodels gives Jeffreys ends that
    are not modified.

    References
    ----------
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA
    22(158):209-212, doi:10.1080/01621459.1927.10502953.

    Clopper, C. J. and Pearson, E. S. (1934), The use of confidence or fiducial limits illustrated in the
    case of the binomial, Biometrika 26(4):404-413, doi:10.1093/biomet/26.4.404.

    Newcombe, R. G. (1998), Two-sided confidence intervals for the single proportion: comparison of seven
    methods, Statistics in Medicine 17(8):857-872,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E.

    Agresti, A. and Coull, B. A. (1998), Approximate is better than "exact" for interval estimation of
    binomial proportions, The American Statistician 52(2):119-126, doi:10.1080/00031305.1998.10480550.

    Brown, L. D., Cai, T. T. and DasGupta, A. (2001), Interval estimation for a binomial proportion,
    Statistical Science 16(2):101-133, doi:10.1214/ss/1009213286.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.proportion_ci(0, 20)
    >>> result.estimate, result.conf_low, round(result.conf_high, 4)
    (0.0, 0.0, 0.1611)
    >>> exact = ts.proportion_ci(81, 263, method="clopper-pearson", conf_level=0.99)
    >>> [round(end, 4) for end in (exact.conf_low, exact.conf_high)]
    [0.2368, 0.3863]
    """
    valid_choice("method", method, ProportionMethod)
    level = valid_level(conf_level)
    x, n, notes, missed = _successes(count, nobs, data, clusters, missing)
    low, high = formula = _ONE[method](x, n, level)
    more = {}
    if method == "jeffreys":
        more["interval_unmodified"] = list(formula)
        low, high = (0.0 if x == 0 else low), (1.0 if x == n else high)
    elif method == "agresti-coull":
        more["interval_raw"] = list(formula)
        low, high = max(0.0, low), min(1.0, high)
    rate = x / n
    error = math.sqrt(rate * (1 - rate) / n)
    half = normal_quantile(level) * error
    if not error:
        notes = (*notes, Note("boundary", f"All {n:,} values are alike: the standard error is undefined."))
    return Test(
        estimand="proportion",
        estimate=rate,
        statistic=None,
        p_value=None,
        conf_low=low,
        conf_high=high,
        conf_level=level,
        method=_NAMES[method],
        n=n,
        details={
            "count": x,
            "nobs": n,
            "std_error": error or None,
            "wald_raw": [rate - half, rate + half],
            **more,
            "n_missing": missed,
        },
        notes=notes,
    )


def difference_ci(
    count1: object,
    nobs1: object,
    count2: object,
    nobs2: object,
    *,
    method: DifferenceMethod = "newcombe",
    conf_level: float = defaults.CONF_LEVEL,
) -> Test:
    """Confidence interval of a difference of two independent proportions, `count1 / nobs1 - count2 / nobs2`.

    Parameters
    ----------
    count1, nobs1, count2, nobs2
        How many of how many, in two samples that share no scenarios.
    method
        `newcombe`, a hybrid of both Wilson intervals. `miettinen-nurminen` and `mee`, the differences that a
        score test does not reject, with and without the factor N / (N - 1) of its variance.
        `agresti-caffo`, Wald's after one success and one failure are added to each sample, cut at -1 and 1.
    conf_level
        Level of the interval.

    Returns
    -------
    Test
        For the score methods `statistic` is the score z at 0 and `p_value` two-sided, else None. `details`
        hold both proportions; `z_pooled` and `z_unpooled` with `p_pooled` and `p_unpooled`, and `std_error`,
        the unpooled one: None where their error is 0; `wald_raw`, Wald's ends, to compare with what
        others report; and `interval_raw` (Agresti-Caffo before it is cut).

    Raises
    ------
    ArgumentError, ArgumentTypeError
        For counts that are none, more successes than trials, or no trial.

    Notes
    -----
    The score ends solve z = plus or minus the normal quantile, where z rests on rates that maximise the
    likelihood by a bracketed search, also at 0 and full counts, where other implementations fail. Samples
    that answer the same scenarios are paired: use `paired_difference_ci`.

    References
    ----------
    Newcombe, R. G. (1998), Interval estimation for the difference between independent proportions:
    comparison of eleven methods, Statistics in Medicine 17(8):873-890,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I.

    Miettinen, O. and Nurminen, M. (1985), Comparative analysis of two rates, Statistics in Medicine
    4(2):213-226, doi:10.1002/sim.4780040211.

    Mee, R. W. (1984), Confidence bounds for the difference between two probabilities, Biometrics
    40:1175-1176.

    Agresti, A. and Caffo, B. (2000), Simple and effective confidence intervals for proportions and
    differences of proportions result from adding two successes and two failures, The American
    Statistician 54(4):280-288, doi:10.1080/00031305.2000.10474560.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.difference_ci(56, 70, 48, 80, method="miettinen-nurminen")
    >>> [round(value, 4) for value in (result.estimate, result.conf_low, result.conf_high)]
    [0.2, 0.0528, 0.3382]
    """
    valid_choice("method", method, DifferenceMethod)
    level = valid_level(conf_level)
    x1, n1 = _of_trials(count1, nobs1, "count1", "nobs1")
    x2, n2 = _of_trials(count2, nobs2, "count2", "nobs2")
    p1, p2 = x1 / n1, x2 / n2
    difference = p1 - p2
    pooled = (x1 + x2) / (n1 + n2)
    z_pooled, p_pooled, _ = _z_test(difference, pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    z_unpooled, p_unpooled, error = _z_test(difference, p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2)
    half = normal_quantile(level) * (error or 0.0)
    details: dict[str, Any] = {
        "proportion1": p1,
        "proportion2": p2,
        "std_error": error,
        "wald_raw": [difference - half, difference + half],
        "z_pooled": z_pooled,
        "p_pooled": p_pooled,
        "z_unpooled": z_unpooled,
        "p_unpooled": p_unpooled,
    }
    statistic = p_value = None
    if method == "newcombe":
        low, high = newcombe_independent(x1, n1, x2, n2, level)
    elif method == "agresti-caffo":
        low, high = agresti_caffo(x1, n1, x2, n2, level)
        details["interval_raw"] = [low, high]
    else:
        low, high = difference_interval(x1, n1, x2, n2, level, method=method)
        statistic = difference_score(x1, n1, x2, n2, 0.0, method=method)
        p_value = 2 * float(ndtr(-abs(statistic)))
    notes = []
    if error is None:
        message = (
            "Within each sample all values are alike: the standard error and z_unpooled are undefined; "
            "the interval is not."
        )
        notes.append(Note("boundary", message))
    return Test(
        estimand="difference of independent proportions",
        contrast="first - second",
        estimate=difference,
        statistic=statistic,
        p_value=p_value,
        conf_low=max(low, -1.0),
        conf_high=min(high, 1.0),
        conf_level=level,
        method=_DIFFERENCE_NAMES[method],
        n=n1 + n2,
        details=details,
        notes=tuple(notes),
    )


def _successes(
    count: object, nobs: object, data: object, clusters: object, missing: Missing
) -> tuple[int, int, tuple[Note, ...], int]:
    """How many of how many, notes, and how many are missing."""
    valid_choice("missing", missing, Missing)
    if nobs is not None:
        for value, argument in ((data, "data"), (clusters, "clusters")):
            if value is not None:
                raise ArgumentError(f"`{argument}` goes with a vector of 0 and 1, not with counts")
        return *_of_trials(count, nobs, "count", "nobs"), (), 0
    if isinstance(count, int | float | np.number):
        raise ArgumentTypeError(
            "`nobs` is needed: the number of trials of which `count` were successes; or give a vector of 0 "
            "and 1 as `count`"
        )
    frame = frame_of(data)
    values = numbers_of(column_of(frame, count, "count"), "count", dimensions=(1,))
    kept, notes = drop_missing([values], ["count"], missing)
    shared = shared_rows(frame, clusters, len(values))
    known = values[kept]
    wrong = known[(known != 0) & (known != 1)]
    if len(wrong):
        raise DataError(
            f"`count` holds {wrong[0]:g} where 0 and 1 are expected; for the mean of scores on a scale use "
            "`cluster_bootstrap`"
        )
    if shared is not None:
        clustered = "`ts.analyze(...)`, or `ts.cluster_bootstrap(x, clusters)`,"
        notes = (*notes, *shared.of(kept).taken_as_independent(clustered))
    return int(known.sum()), len(known), notes, int((~kept).sum())


def _of_trials(count: object, nobs: object, argument: str, trials: str) -> tuple[int, int]:
    """Checked counts of successes and trials."""
    x, n = count_of(count, argument), count_of(nobs, trials)
    if n == 0:
        raise ArgumentError(f"`{trials}` must be at least 1; got 0: without a trial there is no proportion")
    if x > n:
        raise ArgumentError(f"`{argument}` must not exceed `{trials}`; got {x:,} of {n:,}")
    return x, n


def _z_test(difference: float, variance: float) -> tuple[float | None, float | None, float | None]:
    """z, its two-sided p-value and its error; None where the variance is 0."""
    if variance == 0:
        return None, None, None
    error = math.sqrt(variance)
    z = difference / error
    return z, 2 * float(ndtr(-abs(z))), error


_ONE: dict[ProportionMethod, Callable[[int, int, float], Pair]] = {
    "wilson": wilson_score,
    "wilson-corrected": wilson_corrected,
    "clopper-pearson": clopper_pearson,
    "jeffreys": jeffreys,
    "agresti-coull": agresti_coull,
}
_NAMES: dict[ProportionMethod, str] = {
    "wilson": "Wilson score interval",
    "wilson-corrected": "Wilson score interval with continuity correction",
    "clopper-pearson": "Clopper-Pearson exact interval",
    "jeffreys": "Jeffreys interval, ends modified at 0 and 1",
    "agresti-coull": "Agresti-Coull interval",
}
_DIFFERENCE_NAMES: dict[DifferenceMethod, str] = {
    "newcombe": "Newcombe hybrid score interval",
    "miettinen-nurminen": "Miettinen-Nurminen score interval, variance factor N / (N - 1)",
    "mee": "Mee score interval",
    "agresti-caffo": "Agresti-Caffo interval",
}
