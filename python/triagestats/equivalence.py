"""Equivalence and non-inferiority: a difference against the smallest that matters."""

from __future__ import annotations

import math
from typing import Final, Literal

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_margin
from triagestats.counts import count_of
from triagestats.equivalence_ask import Asked, Found, Law, Method, find
from triagestats.equivalence_sides import Bounds, count_sides
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.estimands import Estimand
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Hypothesis, Note, Test
from triagestats.schema import Match, Weights
from triagestats.vectors import Missing

__all__ = ["noninferiority", "tost", "tost_proportions"]

ALPHA: Final = 0.05


def tost(
    x: object = None,
    y: object = None,
    *,
    margin: float | None = None,
    low: float | None = None,
    high: float | None = None,
    data: object = None,
    clusters: object = None,
    estimand: Estimand | None = None,
    model: str | None = None,
    method: Method | None = None,
    law: Law = "auto",
    correction: bool = False,
    match: Match | None = None,
    weights: Weights = "scenario",
    missing: Missing = "raise",
    alpha: float = ALPHA,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Two one-sided tests that the difference of x and y lies between `low` and `high`.

    With theta the difference and se its error, the tests of `theta <= low` and `theta >= high` are

        (theta - low) / se    and    (theta - high) / se

    and p is the larger of their two one-sided p-values. p < alpha if and only if the 1 - 2 alpha interval
    lies between the bounds, for the methods that have both from one statistic.

    | method | theta | tests |
    |---|---|---|
    | `cluster` | mean of x - y; an estimand of a table | cluster jackknife with t(G - 1) |
    | `bootstrap` | mean of x - y | studentised bootstrap of clusters, recentred |
    | `t` | mean of x - y | paired t |
    | `tango` | difference of paired proportions | score test at each bound |
    | `signed-rank` | pseudo-median of x - y | Wilcoxon, exact or normal |
    | `welch`, `pooled` | difference of the means of two samples | t |

    Parameters
    ----------
    x, y
        Pairs of values; `x` alone for differences, or a 2 x 2 table of paired counts (`tango`); two samples
        for `welch` and `pooled`; names of columns of `data`; condition levels where `data` is a
        ResponseTable (`x` may be the table itself).
    margin
        Half the width of what counts as equal, on the scale of x: low = -margin and high = margin. For an
        estimand around its value without a difference.
    low, high
        The bounds themselves, instead of `margin`.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a pair, or the name of a column of `data`.
    estimand, model, weights
        For a ResponseTable with `method="cluster"`: what is tested instead of level minus reference, for one
        model instead of all, and the weights as in `analyze`.
    method
        Default: `cluster` with clusters or a ResponseTable, `tango` for pairs of 0 and 1, else `t`.
    law, correction
        For `signed-rank`: the exact law or the normal approximation, this one with or without continuity
        correction.
    match
        What is paired in a ResponseTable. Default: `row` for `tango`, else `cell`.
    missing
        `raise`, or `omit` pairs with a missing value.
    alpha
        Level of each one-sided test.
    n_resamples, seed, n_threads
        Of the bootstrap, and of estimands that are not smooth.

    Returns
    -------
    Test
        `p_value` and `statistic` are those of the side that is harder to show; the interval has level
        1 - 2 alpha. `details` hold `p_lower`, `p_upper`, `statistic_lower`, `statistic_upper`, the bounds,
        and `equivalent`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says how to fix it.

    Notes
    -----
    Data without variation prove nothing: where all differences are equal, or so many that the interval of
    the pseudo-median has no width, the tests are undefined, with a reason. Tango's score test is defined
    without discordant pairs, as its error at the bound is not 0: 40 equal pairs and a margin of .05 give
    p = .073. The signed rank test drops differences that equal a bound, and speaks of the pseudo-median,
    which for 0/1 values is no proportion: these are refused.

    References
    ----------
    Schuirmann, D. J. (1987), A comparison of the two one-sided tests procedure and the power approach for
    assessing the equivalence of average bioavailability, Journal of Pharmacokinetics and Biopharmaceutics
    15(6):657-680, doi:10.1007/BF01068419.
    Tango, T. (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17(8):891-908,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.tost([[120, 32], [13, 35]], margin=0.1)
    >>> round(result.p_value, 4), result.details["equivalent"]
    (0.4396, False)
    >>> same = ts.tost([[40, 0], [0, 0]], margin=0.05)
    >>> round(same.p_value, 3)
    0.073
    """
    asked = Asked(
        x, y, data, clusters, estimand, model, method, law, correction, match, weights, missing,
        valid_resamples(n_resamples), valid_seed(seed), thread_count(n_threads),
    )  # fmt: skip
    found = find(asked, lambda null: _bounds(margin, low, high, alpha, null))
    return _equivalence(found)


def noninferiority(
    x: object = None,
    y: object = None,
    *,
    margin: float,
    higher_is_better: bool = True,
    data: object = None,
    clusters: object = None,
    estimand: Estimand | None = None,
    model: str | None = None,
    method: Method | None = None,
    law: Law = "auto",
    correction: bool = False,
    match: Match | None = None,
    weights: Weights = "scenario",
    missing: Missing = "raise",
    alpha: float = ALPHA,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """One-sided test that x is not worse than y by `margin` or more.

    The test of `theta <= -margin`, with theta the difference of x and y; where lower scores are better that
    of `theta >= margin`.

    Parameters
    ----------
    x, y, data, clusters, estimand, model, method, law, correction, match, weights, missing, n_resamples, \
seed, n_threads
        As in `tost`.
    margin
        The smallest loss that matters, positive, on the scale of x.
    higher_is_better
        Whether a larger value is the better one; taken from a ResponseTable where `data` is one.
    alpha
        Level of the test.

    Returns
    -------
    Test
        The interval has level 1 - 2 alpha: x is not worse where its lower end lies above -margin (its upper
        end below margin, where lower is better). `details` hold `noninferior`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        As in `tost`.

    References
    ----------
    Lakens, D. (2017), Equivalence tests: a practical primer for t tests, correlations, and meta-analyses,
    Social Psychological and Personality Science 8(4):355-362, doi:10.1177/1948550617697177.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.noninferiority([[120, 32], [13, 35]], margin=0.1).details["noninferior"]
    True
    """
    asked = Asked(
        x, y, data, clusters, estimand, model, method, law, correction, match, weights, missing,
        valid_resamples(n_resamples), valid_seed(seed), thread_count(n_threads),
    )  # fmt: skip
    table = asked.table
    higher = higher_is_better if table is None else table.higher_is_better
    found = find(asked, lambda null: _bounds(margin, None, None, alpha, null))
    side = found.sides.lower if higher else found.sides.upper
    alternative: Hypothesis = "greater" if higher else "less"
    return _test(found, side.statistic, side.p_value, alternative, "non-inferiority")


def tost_proportions(
    count1: object,
    nobs1: object,
    count2: object,
    nobs2: object,
    *,
    margin: float | None = None,
    low: float | None = None,
    high: float | None = None,
    method: Literal["miettinen-nurminen", "mee", "wald"] = "miettinen-nurminen",
    alpha: float = ALPHA,
) -> Test:
    """Two one-sided tests of the difference of two independent proportions.

    The tests of `p1 - p2 <= low` and of `p1 - p2 >= high`, with p = count / nobs.

    Parameters
    ----------
    count1, nobs1, count2, nobs2
        Successes and observations of each sample.
    margin, low, high, alpha
        As in `tost`.
    method
        Score tests of Miettinen and Nurminen (variance times N / (N - 1)) or Mee (without), or Wald's, whose
        error is 0, and the test undefined, where both proportions are 0 or 1.

    Returns
    -------
    Test
        As `tost` gives it.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If counts are no counts, or more than the observations.

    References
    ----------
    Miettinen, O. and Nurminen, M. (1985), Comparative analysis of two rates, Statistics in Medicine
    4(2):213-226, doi:10.1002/sim.4780040211.

    Examples
    --------
    >>> import triagestats as ts
    >>> round(ts.tost_proportions(80, 100, 78, 100, margin=0.1, method="wald").p_value, 4)
    0.0824
    >>> ts.tost_proportions(50, 50, 50, 50, margin=0.1, method="wald").p_value is None
    True
    """
    valid_choice("method", method, Literal["miettinen-nurminen", "mee", "wald"])
    bounds = _bounds(margin, low, high, alpha, 0.0)
    x1, n1 = _share(count1, nobs1, "count1", "nobs1")
    x2, n2 = _share(count2, nobs2, "count2", "nobs2")
    sides = count_sides(x1, n1, x2, n2, bounds, method)
    what, contrast = "difference of independent proportions", "first - second"
    return _equivalence(Found(sides, bounds, what, contrast, n1 + n2, {}, ()))


def _share(count: object, nobs: object, *names: str) -> tuple[int, int]:
    x, n = count_of(count, names[0]), count_of(nobs, names[1])
    if n == 0 or x > n:
        raise ArgumentError(f"`{names[1]}` must be at least 1 and `{names[0]}`; got {n} and {x}")
    return x, n


def _bounds(margin: float | None, low: float | None, high: float | None, alpha: float, null: float) -> Bounds:
    """The bounds that were given, checked."""
    level = _number(alpha, "alpha")
    if not 0 < level < 0.5:
        raise ArgumentError(f"`alpha` must lie between 0 and 0.5; got {level:g}")
    if (margin is None) == (low is None and high is None):
        raise ArgumentError(
            "give `margin`, the smallest difference that matters, or both `low` and `high`, on the scale of x"
        )
    half = valid_margin(margin)
    if half is not None:
        return Bounds(null - half, null + half, level)
    ends = [_number(bound, argument) for bound, argument in ((low, "low"), (high, "high"))]
    if not ends[0] < ends[1]:
        raise ArgumentError(f"`low` must lie below `high`; got {ends[0]:g} and {ends[1]:g}")
    return Bounds(ends[0], ends[1], level)


def _number(bound: object, argument: str) -> float:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
        raise ArgumentTypeError(f"`{argument}` must be a finite number; got {bound!r}")
    return float(bound)


def _equivalence(found: Found) -> Test:
    """Both tests as one: the side that is harder to show."""
    lower, upper = found.sides.lower, found.sides.upper
    harder = lower if (lower.p_value or 0.0) >= (upper.p_value or 0.0) else upper
    return _test(found, harder.statistic, harder.p_value, "equivalence", "equivalence, two one-sided tests")


def _test(
    found: Found,
    statistic: float | None,
    p_value: float | None,
    alternative: Hypothesis,
    what: str,
) -> Test:
    """The result in words and numbers."""
    sides, bounds = found.sides, found.bounds
    notes = list(found.notes)
    if sides.undefined is not None:
        notes.append(Note("undefined", f"The test is undefined: {sides.undefined}.", "caution"))
    shown = p_value is not None and p_value < bounds.alpha
    low, high = sides.ends or (None, None)
    tests = {
        "lower": {
            "statistic_lower": sides.lower.statistic,
            "p_lower": sides.lower.p_value,
            "low": bounds.low,
        },
        "upper": {
            "statistic_upper": sides.upper.statistic,
            "p_upper": sides.upper.p_value,
            "high": bounds.high,
        },
    }
    if alternative == "equivalence":
        name, said, about = "equivalent", f"bounds {bounds.low:g} and {bounds.high:g}", ["lower", "upper"]
    else:
        side, bound = ("lower", bounds.low) if alternative == "greater" else ("upper", bounds.high)
        name, said, about = "noninferior", f"bound {bound:g}", [side]
    return Test(
        estimand=found.estimand,
        contrast=found.contrast,
        estimate=sides.estimate,
        statistic=statistic,
        p_value=p_value,
        conf_low=low,
        conf_high=high,
        conf_level=bounds.conf_level,
        alternative=alternative,
        method=f"{what}: {sides.method}, {said}",
        n=found.n,
        details={
            **found.details,
            **sides.details,
            **{key: value for side in about for key, value in tests[side].items()},
            "alpha": bounds.alpha,
            name: None if p_value is None else shown,
        },
        notes=tuple(notes),
    )
