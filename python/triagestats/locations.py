"""The Hodges-Lehmann estimate as a result: of paired differences, or of a shift between groups."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice, valid_level
from triagestats.differences import read_differences
from triagestats.errors import ArgumentError
from triagestats.midranks import NO_CORRECTION
from triagestats.results import Note, Test
from triagestats.schema import Match
from triagestats.sign_flips import flip_location
from triagestats.two_groups import read_groups
from triagestats.vectors import Missing
from triagestats.walsh import pseudo_median, shift

__all__ = ["hodges_lehmann"]

IntervalMethod = Literal["exact", "normal", "cluster-sign-flip", "auto"]
Zeros = Literal["keep", "drop"]


def hodges_lehmann(
    x: object,
    y: object = None,
    *,
    data: object = None,
    groups: object = None,
    paired: bool = True,
    zeros: Zeros = "keep",
    method: IntervalMethod | None = None,
    correction: bool = False,
    clusters: object = None,
    match: Match = "cell",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
) -> Test:
    """Hodges-Lehmann estimate of paired differences, or of the shift between two groups.

    Paired, the median of the n (n + 1) / 2 Walsh averages `(d_i + d_j) / 2`, i <= j; for two groups the
    median of the n m differences `x_i - y_j`.

    Parameters
    ----------
    x, y, data, match
        Pairs or differences as in `wilcoxon_signed_rank`, or, with `paired=False`, groups as in
        `mann_whitney`.
    groups
        One of two labels a value of `x`; with `paired=False`.
    paired
        Whether values of `x` and `y` belong together.
    zeros
        `keep`, or `drop` differences that are zero, as R does; of paired differences only.
    method
        Where the interval ends: at quantiles of the `exact` law of the rank statistic without ties (up to
        1,000 differences), or of its `normal` approximation with the variance that ties leave. Both take
        pairs or values as independent; where they share clusters, a note says so. `cluster-sign-flip`, of
        pairs: the shifts that sign flips by cluster do not reject, as in `wilcoxon_signed_rank`. Default
        (`auto`, or None): `cluster-sign-flip` where pairs have `clusters`, else exact where that is quick (up
        to 300 differences, or about 60 and 60 values), and normal beyond.
    correction
        Continuity correction of the normal approximation.
    clusters
        One label a pair or value. Two groups have no interval by cluster: with `paired=False` clusters are
        refused, unless a `method` is named.
    missing
        `raise`, or `omit` what has a missing value.
    conf_level
        Level of the interval.

    Returns
    -------
    Test
        Without statistic and p-value. `details`: `level_attained` of the interval where all values differ,
        `interval`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says how to fix it.

    Notes
    -----
    With the exact law and tied values the closed interval covers at least as often as stated. The estimate of
    a shift is not the difference of the medians.

    References
    ----------
    Hodges, J. L. and Lehmann, E. L. (1963), Estimates of location based on rank tests, Annals of
    Mathematical Statistics 34:598-611, doi:10.1214/aoms/1177704172.

    Lehmann, E. L. (1963), Nonparametric confidence intervals for a shift parameter, Annals of Mathematical
    Statistics 34:1507-1512, doi:10.1214/aoms/1177703882.

    Examples
    --------
    >>> import triagestats as ts
    >>> heights = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
    >>> result = ts.hodges_lehmann(heights)
    >>> result.estimate, result.conf_low, result.conf_high
    (25.0, 4.0, 41.5)
    >>> ts.hodges_lehmann([6, 7, 8, 9, 10], [1, 2, 3, 4, 5], paired=False).estimate
    5.0
    """
    asked: IntervalMethod | None = chosen_method(method, IntervalMethod)
    valid_choice("zeros", zeros, Zeros)
    level = valid_level(conf_level)
    if correction and asked in ("exact", "cluster-sign-flip"):
        raise ArgumentError(f"`correction` goes with method='normal'; got method={asked!r}")
    exact = {None: None, "exact": True, "normal": False}.get(asked)
    how = None
    if paired:
        if groups is not None:
            raise ArgumentError("`groups` goes with paired=False: pairs are two vectors, `x` and `y`")
        read = read_differences(x, y, data=data, clusters=clusters, match=match, missing=missing)
        kept = np.full(len(read.ranked.values), True) if zeros == "keep" else read.ranked.values != 0
        values = read.ranked.values[kept]
        notes = read.pairs.notes
        details: dict[str, Any] = {"n_zero": read.ranked.n_zero}
        location = None
        if asked == "cluster-sign-flip" or (asked is None and read.pairs.clustered):
            if correction:
                raise ArgumentError("`correction` goes with method='normal', and not with clusters")
            shared = read.pairs.clusters_for("cluster-sign-flip").of(kept)
            details["n_clusters"], how = shared.size, "sign flips by cluster"
            location = flip_location(values, shared.codes, level) if len(values) else None
        else:
            if len(values):
                location = pseudo_median(values, level, exact=exact, correction=correction)
            notes += read.pairs.independence("hodges_lehmann(..., method='cluster-sign-flip')")
        n, contrast, estimand, n_missing = len(values), read.contrast, "pseudo-median", read.pairs.n_missing
    else:
        if zeros != "keep":
            raise ArgumentError("`zeros='drop'` is for paired differences; two groups have none")
        both = read_groups(x, y, groups=groups, data=data, clusters=clusters, missing=missing)
        if asked == "cluster-sign-flip":
            raise ArgumentError("method='cluster-sign-flip' is for pairs; two groups have no signs to flip")
        if asked is None and both.shared is not None and both.shared.asked and both.shared.shares:
            raise ArgumentError(
                "there is no interval of a shift between groups by cluster. mann_whitney(..., clusters=...) "
                "has the estimate and a test; method='exact' or 'normal' takes the values as independent"
            )
        location = shift(both.level, both.reference, level, exact=exact, correction=correction)
        n, contrast, estimand, n_missing = len(both.values), both.contrast, "shift", both.n_missing
        notes = (*both.notes, *both.independence())
        details = {"n_level": int(both.in_level.sum()), "n_reference": int((~both.in_level).sum())}
    if location is None:
        return Test(
            estimand=estimand,
            contrast=contrast,
            statistic=None,
            p_value=None,
            method="Hodges-Lehmann estimate",
            n=n,
            details=details | {"n_missing": n_missing},
            notes=(*notes, Note("undefined", "All differences are zero, and were dropped.", "caution")),
        )
    if asked == "exact" and location.level is None:
        raise ArgumentError(f"`method` 'exact' would take too long for {n:,} values; use method='normal'")
    how = how or location.how
    by = f"{how} interval" if how == location.how else f"interval by {how}"
    return Test(
        estimand=estimand,
        contrast=contrast,
        estimate=location.estimate,
        statistic=None,
        p_value=None,
        conf_low=location.low,
        conf_high=location.high,
        conf_level=location.conf_level(level),
        method=f"Hodges-Lehmann estimate, {by}",
        n=n,
        details=details | {"level_attained": location.level, "interval": how, "n_missing": n_missing},
        notes=(
            *notes,
            *((NO_CORRECTION,) if correction and location.level is not None else ()),
            *location.notes,
        ),
    )
