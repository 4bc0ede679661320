"""Confidence intervals of a difference of two paired proportions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from scipy.special import ndtr

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_level
from triagestats.binary_pairs import PairCounts, read_pair_counts
from triagestats.binomial_intervals import (
    agresti_min,
    bonett_price,
    newcombe_paired,
    paired_correlation,
    paired_error,
    wald_paired,
)
from triagestats.clustered_pairs import Clustered
from triagestats.errors import ArgumentError
from triagestats.mcnemar_tests import clustered_mcnemar
from triagestats.results import Note, Test
from triagestats.schema import Match
from triagestats.score_intervals import tango_interval, tango_score
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PairedMethod", "paired_difference_ci", "tango_interval", "tango_score"]

PairedMethod = Literal[
    "tango", "newcombe", "agresti-min", "bonett-price", "wald", "obuchowski", "durkalski", "auto"
]

_CLUSTERED: Final = (
    'paired_difference_ci(..., method="obuchowski"), the interval of mcnemar(..., method="obuchowski"),'
)
_NAMES: Final[dict[PairedMethod, str]] = {
    "tango": "Tango score interval and test",
    "newcombe": "Newcombe hybrid score interval for pairs (method 10)",
    "agresti-min": "Agresti-Min interval",
    "bonett-price": "Bonett-Price interval",
    "wald": "Wald interval",
    "obuchowski": "clustered score interval and test of Obuchowski",
    "durkalski": "clustered score interval and test of Durkalski et al., clusters weighted equally",
}


def paired_difference_ci(
    x: object,
    y: object = None,
    *,
    n: int | None = None,
    data: object = None,
    clusters: object = None,
    method: PairedMethod | None = None,
    match: Match = "row",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
) -> Test:
    """Confidence interval of a difference of paired proportions, `(b - c) / n`.

    With b pairs that are 1 for x only, c that are 1 for y only, and n pairs in all.

    Parameters
    ----------
    x, y
        Two counts, b and c, with `n`. Or `x` alone a table [[both, x only], [y only, neither]]; of a
        pandas frame whose rows and columns are labelled 0 and 1, such as a crosstab, the labels are read,
        with a note. Or vectors of 0 and 1; names of columns of `data`; condition levels, where `data` is a
        ResponseTable (`x` alone may be the ResponseTable).
    n
        The number of all pairs, for two counts.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a pair, or the name of a column of `data`.
    method
        `tango`, the differences that a score test does not reject. `newcombe`, a hybrid of both Wilson
        intervals, which needs the whole table. `agresti-min` and `bonett-price`, Wald's interval
        after 1/2 is added to each cell, or 1 to both discordant ones, cut at -1 and 1. `wald`. These take
        pairs as independent; a note says so where they share clusters. `obuchowski` and `durkalski`, the
        differences that the clustered tests of `mcnemar` do not reject, of all pairs or the mean over
        clusters. Default (`auto`, or None): `tango`; `obuchowski` where `clusters` is given.
    match
        What is paired in a ResponseTable; `row` keeps single answers, which are 0 or 1.
    missing
        `raise`, or `omit` pairs with a missing value, with a note.
    conf_level
        Level of the interval.

    Returns
    -------
    Test
        For `tango` `statistic` is the score z of the test that the difference is 0, and `p_value`
        two-sided: the chi-square of McNemar without correction; else None. `details` hold `b`, `c`,
        `n_discordant`; `interval_raw`, the ends before they are cut (`agresti-min`, `bonett-price`,
        `wald`); `phi`, the corrected correlation (`newcombe`); `std_error` (`wald`). For `obuchowski` and
        `durkalski` `statistic` is the clustered z, and `details` hold `n_clusters` and `std_error_null`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For input that cannot be used; the message says what would help.

    Notes
    -----
    Tango's interval and test agree: 0 lies outside if and only if p < 1 - `conf_level`. Without discordant
    pairs it has a width, which only n gives; Wald's has none, and is undefined here. The other methods
    are closed forms. The clustered tests and intervals agree in the same way. R's PropCIs solves the score
    equation to about six digits.

    References
    ----------
    Tango, T. (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17(8):891-908,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Newcombe, R. G. (1998), Improved confidence intervals for the difference between binomial proportions
    based on paired data, Statistics in Medicine 17(22):2635-2650,
    doi:10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C.

    Agresti, A. and Min, Y. (2005), Simple improved confidence intervals for comparing matched proportions,
    Statistics in Medicine 24(5):729-740, doi:10.1002/sim.1781.

    Obuchowski, N. A. (1998), On the comparison of correlated proportions for clustered data, Statistics in
    Medicine 17(13):1495-1507, doi:10.1002/(SICI)1097-0258(19980715)17:13<1495::AID-SIM863>3.0.CO;2-I.

    Bonett, D. G. and Price, R. M. (2012), Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data, Journal of Educational and Behavioral Statistics 37(4):479-488,
    doi:10.3102/1076998611411915.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.paired_difference_ci([[120, 32], [13, 35]])
    >>> [round(value, 4) for value in (result.estimate, result.conf_low, result.conf_high)]
    [0.095, 0.0304, 0.1619]
    >>> same = ts.paired_difference_ci(0, 0, n=40)
    >>> [round(end, 4) for end in (same.conf_low, same.conf_high)]
    [-0.0876, 0.0876]
    """
    asked: PairedMethod | None = chosen_method(method, PairedMethod)
    level = valid_level(conf_level)
    found = read_pair_counts(x, y, n=n, data=data, clusters=clusters, match=match, missing=missing)
    b, c, size = found.b, found.c, found.n
    if size is None:
        raise ArgumentError(
            "`n`, the number of all pairs, is needed with two counts: the difference is (b - c) / n"
        )
    details: dict[str, Any] = {"b": b, "c": c, "n_discordant": b + c}
    if found.pairs is not None:
        details["n_missing"] = found.pairs.n_missing
    chosen = asked or ("obuchowski" if found.clustered else "tango")
    if chosen in ("obuchowski", "durkalski"):
        return _by_cluster(found, chosen, level)
    notes = found.notes + found.independence(_CLUSTERED)
    statistic = p_value = None
    ends: tuple[float, float] | None
    if chosen == "tango":
        ends = tango_interval(b, c, size, level)
        statistic = tango_score(b, c, size, 0.0)
        p_value = 2 * float(ndtr(-abs(statistic)))
    elif chosen == "newcombe":
        both, neither = _concordant(found, size)
        ends = newcombe_paired(both, b, c, neither, level)
        details["phi"] = paired_correlation(both, b, c, neither)
    else:
        ends = _ADJUSTED[chosen](b, c, size, level)
        details["interval_raw"] = list(ends)
    if chosen == "wald":
        details["std_error"] = paired_error(b, c, size) or None
    if chosen == "wald" and details["std_error"] is None:
        ends = None
        message = (
            "All pairs have one difference: Wald's standard error is 0 and its interval undefined; "
            "method='tango' has one."
        )
        notes += (Note("undefined", message, "caution"),)
    elif b + c == 0:
        message = "There are no discordant pairs: the width of the interval rests on the number of pairs."
        notes += (Note("no_discordant", message, "caution"),)
    return Test(
        estimand="difference of paired proportions",
        contrast=f"{found.names[0]} - {found.names[1]}",
        estimate=(b - c) / size,
        statistic=statistic,
        p_value=p_value,
        conf_low=None if ends is None else max(ends[0], -1.0),
        conf_high=None if ends is None else min(ends[1], 1.0),
        conf_level=level,
        method=_NAMES[chosen],
        n=size,
        details=details,
        notes=notes,
    )


def _by_cluster(found: PairCounts, method: Clustered, level: float) -> Test:
    """The interval of `mcnemar` for clusters, with the sign of its test."""
    test = clustered_mcnemar(found, method, "two-sided", level)
    z = None if test.statistic is None else math.copysign(math.sqrt(test.statistic), test.estimate or 0.0)
    details = {name: value for name, value in test.details.items() if name != "df"}
    name = "difference of paired proportions"
    return replace(test, estimand=name, statistic=z, method=_NAMES[method], details=details)


def _concordant(found: PairCounts, n: int) -> tuple[int, int]:
    """Pairs that are 1 on both sides, and on none."""
    if found.both is None:
        raise ArgumentError(
            "method='newcombe' needs the whole 2 x 2 table, [[both, x only], [y only, neither]], or the "
            "pairs: its interval depends on how the concordant pairs divide"
        )
    return found.both, n - found.both - found.b - found.c


_ADJUSTED: Final[dict[str, Callable[[int, int, int, float], tuple[float, float]]]] = {
    "agresti-min": agresti_min,
    "bonett-price": bonett_price,
    "wald": wald_paired,
}
