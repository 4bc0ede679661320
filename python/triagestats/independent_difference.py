"""Confidence intervals of a difference of two independent proportions."""

from __future__ import annotations

import math
from typing import Any, Final, Literal

from scipy.special import ndtr

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_level
from triagestats.binomial_intervals import agresti_caffo, newcombe_independent
from triagestats.counts import trials_of
from triagestats.results import Note, Test
from triagestats.score_intervals import Independent, difference_interval, difference_score, normal_quantile

__all__ = ["DifferenceMethod", "difference_ci"]

DifferenceMethod = Literal["newcombe", "miettinen-nurminen", "mee", "agresti-caffo", "auto"]

_NAMES: Final[dict[DifferenceMethod, str]] = {
    "newcombe": "Newcombe hybrid score interval",
    "miettinen-nurminen": "Miettinen-Nurminen score interval, variance factor N / (N - 1)",
    "mee": "Mee score interval",
    "agresti-caffo": "Agresti-Caffo interval",
}


def difference_ci(
    count1: object,
    nobs1: object,
    count2: object,
    nobs2: object,
    *,
    method: DifferenceMethod | None = None,
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
        Default (`auto`, or None): `newcombe`.
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
    chosen: DifferenceMethod = chosen_method(method, DifferenceMethod) or "newcombe"
    level = valid_level(conf_level)
    x1, n1 = trials_of(count1, nobs1, "count1", "nobs1")
    x2, n2 = trials_of(count2, nobs2, "count2", "nobs2")
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
    if chosen == "newcombe":
        low, high = newcombe_independent(x1, n1, x2, n2, level)
    elif chosen == "agresti-caffo":
        low, high = agresti_caffo(x1, n1, x2, n2, level)
        details["interval_raw"] = [low, high]
    else:
        score: Independent = "mee" if chosen == "mee" else "miettinen-nurminen"
        low, high = difference_interval(x1, n1, x2, n2, level, method=score)
        statistic = difference_score(x1, n1, x2, n2, 0.0, method=score)
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
        method=_NAMES[chosen],
        n=n1 + n2,
        details=details,
        notes=tuple(notes),
    )


def _z_test(difference: float, variance: float) -> tuple[float | None, float | None, float | None]:
    """z, its two-sided p-value and its error; None where the variance is 0."""
    if variance == 0:
        return None, None, None
    error = math.sqrt(variance)
    z = difference / error
    return z, 2 * float(ndtr(-abs(z))), error
