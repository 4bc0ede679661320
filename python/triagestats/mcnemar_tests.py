"""McNemar's test of paired proportions: mid-p, exact, chi-square, and for clusters of pairs."""

from __future__ import annotations

import math
from typing import Any, Final, Literal

from scipy.special import betainc, ndtr

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice, valid_level
from triagestats.binary_pairs import PairCounts, read_pair_counts
from triagestats.binomial_intervals import clopper_pearson
from triagestats.clustered_pairs import Clustered, clustered_score
from triagestats.results import Alternative, Note, Test
from triagestats.schema import Match
from triagestats.score_intervals import normal_quantile, tango_interval
from triagestats.vectors import Missing

__all__ = ["McNemarMethod", "clustered_mcnemar", "mcnemar"]

McNemarMethod = Literal["mid-p", "exact", "chi2", "chi2-corrected", "obuchowski", "durkalski", "auto"]

FEW_CLUSTERS: Final = 20
"""Below this many clusters the chi-square law of the clustered statistics is doubtful."""

_NAMES: Final[dict[McNemarMethod, str]] = {
    "mid-p": "McNemar mid-p test, exact interval of the odds ratio",
    "exact": "McNemar exact test (binomial), exact interval of the odds ratio",
    "chi2": "McNemar chi-square test, asymptotic, exact interval of the odds ratio",
    "chi2-corrected": "McNemar chi-square test with Edwards' correction, asymptotic, exact interval of the "
    "odds ratio",
    "obuchowski": "clustered McNemar test of Obuchowski, asymptotic",
    "durkalski": "clustered McNemar test of Durkalski et al., asymptotic, clusters weighted equally",
}


def mcnemar(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    method: McNemarMethod | None = None,
    match: Match = "row",
    missing: Missing = "raise",
    alternative: Alternative = "two-sided",
    conf_level: float = defaults.CONF_LEVEL,
) -> Test:
    """McNemar's test that two paired proportions are equal.

    With b pairs that are 1 for x only and c that are 1 for y only, b is binomial (b + c, 1/2) if the
    proportions are equal. The odds ratio is b / c.

    | method | p-value, two-sided | statistic |
    |---|---|---|
    | `mid-p` | twice the smaller tail, the observed b counted half; 1 - P(X = b) / 2 if b = c | b |
    | `exact` | twice the smaller tail, at most 1 | b |
    | `chi2` | chi-square, 1 df | (b - c)^2 / (b + c) |
    | `chi2-corrected` | chi-square, 1 df | max(abs(b - c) - 1, 0)^2 / (b + c) |
    | `obuchowski` | chi-square, 1 df | (K - 1) / K sum(d_k)^2 / sum(d_k^2) |
    | `durkalski` | chi-square, 1 df | sum(d_k / n_k)^2 / sum((d_k / n_k)^2) |

    In the last two d_k = b_k - c_k over the n_k pairs of cluster k, of K.

    Parameters
    ----------
    x, y
        Two counts, b and c. Or `x` alone a table [[both, x only], [y only, neither]]; of a pandas frame
        whose rows and columns are labelled 0 and 1, such as a crosstab, the labels are read, with a note.
        Or vectors of 0 and 1; names of columns of `data`; condition levels, where `data` is a ResponseTable
        (`x` alone may be the ResponseTable).
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a pair, or the name of a column of `data`.
    method
        See the table. Default (`auto`, or None): `mid-p`; `obuchowski` where `clusters` is given.
    match
        What is paired in a ResponseTable; `row` keeps single answers, which are 0 or 1.
    missing
        `raise`, or `omit` pairs with a missing value, with a note.
    alternative
        `two-sided`; `greater`: b > c, x is 1 more often; `less`.
    conf_level
        Level of the interval, two-sided for every alternative.

    Returns
    -------
    Test
        `estimate` is the odds ratio b / c with the interval of Clopper and Pearson for b / (b + c), as odds.
        With a clustered method it is the difference of proportions, of all pairs (`obuchowski`) or the
        mean over clusters (`durkalski`), with the differences that the test does not reject as interval.
        `n` counts pairs, or b + c where two counts are given. `details` hold `b`, `c`, `n_discordant`, and
        where all pairs are known `difference`, (b - c) / n, with Tango's interval `difference_low` and
        `difference_high`; with a clustered method `n_clusters`, `std_error_null` and `df`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For input that cannot be used: means of judges' scores, which are neither 0 nor 1; tables of more
        than two categories; clustered methods without the pairs. The message says what would help.

    Notes
    -----
    The mid-p test keeps its level in all cases that Fagerland et al. examined, and is less conservative
    than the exact one; the corrected chi-square is more conservative still without being exact. At b = c
    implementations differ: exact2x2 in R gives mid-p 1. Without discordant pairs statistic and odds ratio
    are undefined; p is 1 for the exact and mid-p tests, and undefined for chi-square, which is 0/0.

    Tests and interval: the exact test and the interval agree; another method may differ from the interval
    near the level, and a note says so. The clustered statistics need many clusters; with few
    `permutation_test(x, y, clusters=...)` is exact.

    The variance of Obuchowski pools the two proportions, as under the hypothesis, and is that of R's
    clust.bin.pair.

    References
    ----------
    McNemar, Q. (1947), Note on the sampling error of the difference between correlated proportions or
    percentages, Psychometrika 12(2):153-157, doi:10.1007/BF02295996.

    Fagerland, M. W., Lydersen, S. and Laake, P. (2013), The McNemar test for binary matched-pairs data:
    mid-p and asymptotic are better than exact conditional, BMC Medical Research Methodology 13:91,
    doi:10.1186/1471-2288-13-91.

    Obuchowski, N. A. (1998), On the comparison of correlated proportions for clustered data, Statistics in
    Medicine 17(13):1495-1507, doi:10.1002/(SICI)1097-0258(19980715)17:13<1495::AID-SIM863>3.0.CO;2-I.

    Durkalski, V. L., Palesch, Y. Y., Lipsitz, S. R. and Rust, P. F. (2003), Analysis of clustered
    matched-pair data, Statistics in Medicine 22(15):2417-2428, doi:10.1002/sim.1438.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.mcnemar(32, 13)
    >>> round(result.p_value, 4), round(ts.mcnemar(32, 13, method="exact").p_value, 4)
    (0.0045, 0.0066)
    >>> [round(value, 2) for value in (result.estimate, result.conf_low, result.conf_high)]
    [2.46, 1.26, 5.11]
    >>> table = ts.mcnemar([[120, 32], [13, 35]])
    >>> round(table.details["difference"], 3), round(table.details["difference_low"], 4)
    (0.095, 0.0304)
    """
    asked: McNemarMethod | None = chosen_method(method, McNemarMethod)
    valid_choice("alternative", alternative, Alternative)
    level = valid_level(conf_level)
    found = read_pair_counts(x, y, data=data, clusters=clusters, match=match, missing=missing)
    chosen = asked or ("obuchowski" if found.clustered else "mid-p")
    if chosen in ("obuchowski", "durkalski"):
        return clustered_mcnemar(found, chosen, alternative, level)
    return _independent(found, chosen, alternative, level)


def _independent(found: PairCounts, method: McNemarMethod, alternative: Alternative, level: float) -> Test:
    b, c = found.b, found.c
    details: dict[str, Any] = {"b": b, "c": c, "n_discordant": b + c}
    if found.n is not None:
        low, high = tango_interval(b, c, found.n, level)
        details |= {
            "difference": (b - c) / found.n,
            "difference_low": low,
            "difference_high": high,
        }
    if found.pairs is not None:
        details["n_missing"] = found.pairs.n_missing
    notes = found.notes + found.independence(
        'mcnemar(..., method="obuchowski"), or permutation_test(a, b, clusters=...) where clusters are few,'
    )
    first, second = found.names
    result: dict[str, Any] = {
        "estimand": "conditional odds ratio",
        "contrast": f"{first} / {second}",
        "alternative": alternative,
        "conf_level": level,
        "method": _NAMES[method],
        "n": b + c if found.n is None else found.n,
        "details": details,
    }
    if b + c == 0:
        message = "There are no discordant pairs (b = c = 0): statistic and odds ratio are undefined; "
        counted = method in ("mid-p", "exact")
        message += (
            "nothing speaks against equality, so p = 1."
            if counted
            else "so is p, as chi-square is 0/0. The exact test has p = 1."
        )
        notes += (Note("undefined", message, "caution"),)
        return Test(statistic=None, p_value=1.0 if counted else None, notes=notes, **result)
    if method in ("mid-p", "exact"):
        statistic, p_value = float(b), _binomial_p(b, c, alternative, mid=method == "mid-p")
    else:
        statistic, p_value = _chi_square(b, c, alternative, correction=1 if method == "chi2-corrected" else 0)
    conf_low, conf_high = _odds_interval(b, c, level)
    if alternative == "two-sided" and (p_value < 1 - level) == (conf_low <= 1 <= conf_high):
        side, holds = ("below", "holds") if p_value < 1 - level else ("not below", "leaves out")
        message = (
            f"p = {p_value:.3g} is {side} {1 - level:.3g}, and the exact interval of the odds ratio {holds} "
            "1: the interval is that of the exact test."
        )
        notes += (Note("interval", message),)
    return Test(
        estimate=b / c if c else math.inf,
        statistic=statistic,
        p_value=p_value,
        conf_low=conf_low,
        conf_high=conf_high,
        notes=notes,
        **result,
    )


def _binomial_p(b: int, c: int, alternative: Alternative, *, mid: bool) -> float:
    """Tails of b of b + c at 1/2; with `mid` P(X = b) counts half."""

    def tail(k: int) -> float:
        """P(X <= k), which is also P(X >= b + c - k); with `mid` the mean of P(X <= k) and P(X < k)."""
        return (_at_most(k, b + c) + _at_most(k - 1, b + c)) / 2 if mid else _at_most(k, b + c)

    if alternative == "two-sided":
        # By symmetry the mid-p tail at b = c is 1/2; 1 - P(X = b) / 2 is 1/2 + P(X < b).
        if b == c:
            return 0.5 + _at_most(b - 1, b + c) if mid else 1.0
        return min(2 * tail(min(b, c)), 1.0)
    return tail(c if alternative == "greater" else b)


def _at_most(k: int, n: int) -> float:
    """P(X <= k) of a binomial of n at 1/2, to the last digits also deep in the tail."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else float(betainc(n - k, k + 1, 0.5))


def _chi_square(b: int, c: int, alternative: Alternative, *, correction: int) -> tuple[float, float]:
    """The statistic and its p-value; one-sided from its signed root, corrected towards the hypothesis."""
    root = math.sqrt(b + c)
    away = max(abs(b - c) - correction, 0) / root
    if alternative == "two-sided":
        p_value = 2 * float(ndtr(-away))
    else:
        signed = b - c if alternative == "greater" else c - b
        p_value = float(ndtr(-(signed - correction) / root))
    return away * away, p_value


def _odds_interval(b: int, c: int, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of b of b + c, as odds."""
    low, high = clopper_pearson(b, b + c, level)
    if low <= 0.5 <= high:
        return low / (1 - low), high / (1 - high) if c else math.inf
    # Where both ends are near 1, 1 - p loses digits that the interval of c has.
    other_low, other_high = clopper_pearson(c, b + c, level)
    return low / other_high, high / other_low if c else math.inf


def clustered_mcnemar(found: PairCounts, method: Clustered, alternative: Alternative, level: float) -> Test:
    """The score test and interval of the difference of proportions, with clusters of pairs.

    Raises
    ------
    ArgumentError, DesignError
        If there are no pairs, or no clusters that can be used.
    """
    pairs, shared = found.clusters_for(method)
    score = clustered_score(pairs.x - pairs.y, shared.codes, method)
    z = score.z
    notes = found.notes
    if z is None:
        p_value = 1.0
        what = "There are no discordant pairs" if found.n_discordant == 0 else "No cluster has b_k unlike c_k"
        message = f"{what}: the statistic and the interval are undefined; p = 1."
        notes += (Note("undefined", message, "caution"),)
        ends = None
    else:
        if alternative == "two-sided":
            p_value = 2 * float(ndtr(-abs(z)))
        else:
            p_value = float(ndtr(-z if alternative == "greater" else z))
        ends = score.interval(normal_quantile(level))
        if ends is None:
            message = (
                f"All {shared.size:,} clusters have the same difference: nothing shows how it varies, and "
                "the interval is undefined."
            )
            notes += (Note("undefined", message, "caution"),)
    if shared.size < FEW_CLUSTERS:
        message = (
            f"{shared.size} clusters are few for a chi-square law, which needs about {FEW_CLUSTERS}; "
            "`permutation_test(x, y, clusters=...)` is exact."
        )
        notes += (Note("few_clusters", message, "caution"),)
    return Test(
        estimand="difference of proportions",
        contrast=pairs.contrast,
        estimate=score.estimate,
        statistic=None if z is None else z * z,
        p_value=p_value,
        conf_low=None if ends is None else ends[0],
        conf_high=None if ends is None else ends[1],
        conf_level=None if ends is None else level,
        alternative=alternative,
        method=_NAMES[method],
        n=len(pairs.x),
        details={
            "b": found.b,
            "c": found.c,
            "n_discordant": found.n_discordant,
            "df": 1,
            "std_error_null": score.std_error,
            "n_clusters": shared.size,
            "n_missing": pairs.n_missing,
        },
        notes=notes,
    )
