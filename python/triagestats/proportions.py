"""Confidence intervals of a proportion, by clusters too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice, valid_level
from triagestats.binomial_intervals import (
    agresti_coull,
    clopper_pearson,
    jeffreys,
    wilson_corrected,
    wilson_score,
)
from triagestats.clustered_rates import clustered_rate
from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.counts import trials_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.results import Note, Test
from triagestats.score_intervals import normal_quantile
from triagestats.vectors import Missing, drop_missing, numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ProportionMethod", "proportion_ci"]

ProportionMethod = Literal[
    "wilson",
    "wilson-corrected",
    "clopper-pearson",
    "jeffreys",
    "agresti-coull",
    "korn-graubard-plus-two",
    "auto",
]

Pair = tuple[float, float]

_CLUSTERED: Final = (
    'proportion_ci(..., method="korn-graubard-plus-two"), `ts.analyze(...)`, or '
    "`ts.cluster_bootstrap(x, clusters)`,"
)


def proportion_ci(
    count: object,
    nobs: object = None,
    *,
    data: object = None,
    clusters: object = None,
    method: ProportionMethod | None = None,
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
        One label a value, or the name of a column of `data`.
    method
        `wilson`, the score interval. `wilson-corrected`, the same with Newcombe's continuity correction.
        `clopper-pearson`, which covers at least at its level. `jeffreys`, equal tails of the posterior under
        a Beta(1/2, 1/2) prior, with the lower end 0 at 0 of n and the upper end 1 at n of n.
        `agresti-coull`, cut at 0 and 1. These take values as independent; a note says so where they share
        clusters. `korn-graubard-plus-two`, the interval of Korn and Graubard by cluster after an all-right
        and an all-wrong one are added, as `analyze` has it for rates; from 5 clusters on. Default (`auto`,
        or None): `wilson`; `korn-graubard-plus-two` where `clusters` is given.
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
        By cluster `std_error` is linearised by cluster, `wald_raw` is left out, and `n_clusters` is there.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For counts that are none, more successes than trials, no trial, or values other than 0 and 1; and for
        clusters that cannot be used.

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

    Korn, E. L. and Graubard, B. I. (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data, Survey Methodology 24(2):193-201.

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
    asked: ProportionMethod | None = chosen_method(method, ProportionMethod)
    level = valid_level(conf_level)
    read = _successes(count, nobs, data, clusters, missing)
    clustered = read.shared is not None and read.shared.asked
    chosen = asked or ("korn-graubard-plus-two" if clustered else "wilson")
    if chosen == "korn-graubard-plus-two":
        return _by_cluster(read, level)
    x, n, missed = read.x, read.n, read.n_missing
    notes = read.notes
    if read.shared is not None:
        notes = (*notes, *read.shared.taken_as_independent(_CLUSTERED))
    low, high = formula = _ONE[chosen](x, n, level)
    more = {}
    if chosen == "jeffreys":
        more["interval_unmodified"] = list(formula)
        low, high = (0.0 if x == 0 else low), (1.0 if x == n else high)
    elif chosen == "agresti-coull":
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
        method=_NAMES[chosen],
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


@dataclass(frozen=True, slots=True, eq=False)
class _Successes:
    """How many of how many, the values themselves where they were given, and notes."""

    x: int
    n: int
    values: Array | None = None
    shared: Shared | None = None
    n_missing: int = 0
    notes: tuple[Note, ...] = ()


def _successes(count: object, nobs: object, data: object, clusters: object, missing: Missing) -> _Successes:
    valid_choice("missing", missing, Missing)
    if nobs is not None:
        for value, argument in ((data, "data"), (clusters, "clusters")):
            if value is not None:
                raise ArgumentError(f"`{argument}` goes with a vector of 0 and 1, not with counts")
        return _Successes(*trials_of(count, nobs, "count", "nobs"))
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
    shared = None if shared is None else shared.of(kept)
    return _Successes(int(known.sum()), len(known), known, shared, int((~kept).sum()), notes)


def _by_cluster(read: _Successes, level: float) -> Test:
    """The interval of `analyze` for a rate."""
    if read.values is None or read.shared is None:
        raise ArgumentError(
            "method='korn-graubard-plus-two' needs a vector of 0 and 1 as `count`, with `clusters`"
        )
    shared = read.shared.needed_by("korn-graubard-plus-two")
    found = clustered_rate(read.values, shared.codes, level)
    return Test(
        estimand="proportion",
        estimate=found.rate,
        statistic=None,
        p_value=None,
        conf_low=found.low,
        conf_high=found.high,
        conf_level=None if found.low is None else level,
        method=_NAMES["korn-graubard-plus-two"],
        n=read.n,
        details={
            "count": read.x,
            "nobs": read.n,
            "std_error": found.std_error,
            "n_clusters": found.n_clusters,
            "n_missing": read.n_missing,
        },
        notes=(*read.notes, *found.notes),
    )


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
    "korn-graubard-plus-two": "Korn-Graubard plus two interval by cluster",
}
