"""The Hodges-Lehmann estimate as a result: of paired differences, or of a shift between groups."""

from __future__ import annotations

from typing import Any, Literal

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.differences import read_differences
from triagestats.errors import ArgumentError
from triagestats.midranks import NO_CORRECTION
from triagestats.results import Note, Test
from triagestats.schema import Match
from triagestats.two_groups import read_groups
from triagestats.vectors import Missing
from triagestats.walsh import pseudo_median, shift

__all__ = ["hodges_lehmann"]

IntervalMethod = Literal["auto", "exact", "normal"]
Zeros = Literal["keep", "drop"]


def hodges_lehmann(
    x: object,
    y: object = None,
    *,
    data: object = None,
    groups: object = None,
    paired: bool = True,
    zeros: Zeros = "keep",
    method: IntervalMethod = "auto",
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
        Where the interval ends: at quantiles of the `exact` law of the rank statistic without ties, or of
        its `normal` approximation with the variance that ties leave; `auto`: exact where that is quick (up to
        300 differences, or about 60 and 60 values).
    correction
        Continuity correction of the normal approximation.
    clusters
        One label a pair or value. The interval takes them as independent, with a note.
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
    valid_choice("method", method, IntervalMethod)
    valid_choice("zeros", zeros, Zeros)
    level = valid_level(conf_level)
    exact = {"auto": None, "exact": True, "normal": False}[method]
    if correction and exact is True:
        raise ArgumentError("`correction` goes with method='normal'; got method='exact'")
    if paired:
        if groups is not None:
            raise ArgumentError("`groups` goes with paired=False: pairs are two vectors, `x` and `y`")
        read = read_differences(x, y, data=data, clusters=clusters, match=match, missing=missing)
        values = read.ranked.values if zeros == "keep" else read.ranked.values[read.ranked.values != 0]
        if not len(values):
            location = None
        else:
            location = pseudo_median(values, level, exact=exact, correction=correction)
        n, contrast, estimand, n_missing = len(values), read.contrast, "pseudo_median", read.pairs.n_missing
        notes = (
            *read.pairs.notes,
            *read.pairs.independence("wilcoxon_signed_rank(..., method='cluster-sign-flip')"),
        )
        details: dict[str, Any] = {"n_zero": read.ranked.n_zero}
    else:
        if zeros != "keep":
            raise ArgumentError("`zeros='drop'` is for paired differences; two groups have none")
        both = read_groups(x, y, groups=groups, data=data, clusters=clusters, missing=missing)
        location = shift(both.level, both.reference, level, exact=exact, correction=correction)
        n, contrast, estimand, n_missing = len(both.values), both.contrast, "shift", both.n_missing
        notes = both.notes
        if both.shared is not None:
            notes += both.shared.taken_as_independent("permutation_test(values, groups=..., clusters=...)")
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
    if method == "exact" and location.level is None:
        raise ArgumentError(f"`method` 'exact' would take too long for {n:,} values; use method='normal'")
    return Test(
        estimand=estimand,
        contrast=contrast,
        estimate=location.estimate,
        statistic=None,
        p_value=None,
        conf_low=location.low,
        conf_high=location.high,
        conf_level=location.conf_level(level),
        method=f"Hodges-Lehmann estimate, {location.how} interval",
        n=n,
        details=details
        | {"level_attained": location.level, "interval": location.how, "n_missing": n_missing},
        notes=(
            *notes,
            *((NO_CORRECTION,) if correction and location.level is not None else ()),
            *location.notes,
        ),
    )
