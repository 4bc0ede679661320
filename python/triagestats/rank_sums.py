"""The Mann-Whitney test of two independent groups, exact with ties."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice, valid_level
from triagestats.errors import ArgumentError
from triagestats.estimands import Difference
from triagestats.midranks import NO_CORRECTION, RankLaw, cube_sum, midranks, normal_tail, sum_law
from triagestats.permute import permutation_test
from triagestats.results import Alternative, Note, Test
from triagestats.two_groups import TwoGroups, read_groups
from triagestats.vectors import Missing
from triagestats.walsh import Location, shift

__all__ = ["mann_whitney"]

Method = Literal["auto", "exact", "normal", "cluster-permutation"]
TwoSided = Literal["distance", "doubled"]


def mann_whitney(
    x: object,
    y: object = None,
    *,
    groups: object = None,
    data: object = None,
    clusters: object = None,
    method: Method | None = None,
    two_sided: TwoSided = "distance",
    correction: bool = False,
    alternative: Alternative = "two-sided",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Mann-Whitney (Wilcoxon rank-sum) test of two independent groups, exact with ties.

    With n values x and m values y,

        U_x = #{x_i > y_j} + #{x_i = y_j} / 2

    and p from the law of the rank sum of x when any n of the n + m observed midranks are as likely its own.

    Parameters
    ----------
    x, y
        Values of the two groups; or names of columns of `data`.
    groups
        Instead of `y`: one of two labels a value of `x`. The first label in the order of an Enum or
        ordered categorical, else in sorted order, is the reference, in the place of y.
    data
        A table whose columns are named.
    clusters
        One label a value; of two vectors first those of `x`, then those of `y`.
    method
        `exact` by convolution; `normal` with the variance that ties leave; `cluster-permutation`: clusters,
        each of them wholly in one group, are permuted between the groups. Default (`auto`, or None):
        `cluster-permutation` where `clusters` are given, else exact where the convolution takes at most 5e7
        steps, as for 60 and 60 values, and normal beyond.
    two_sided
        Of an exact p: `distance`, `P(|U* - mu| >= |U - mu|)`, or `doubled`, twice the smaller tail.
        They differ where ties and unequal groups make the law skew.
    correction
        Continuity correction of 1/2; for the normal approximation only.
    alternative
        `greater`: x tends to be larger than y.
    missing
        `raise`, or `omit` missing values and labels.
    conf_level
        Level of the interval, which is two-sided whatever the alternative.
    n_resamples, seed
        As in `permutation_test`; for `cluster-permutation`.

    Returns
    -------
    Test
        `statistic` is U_x, `estimate` the Hodges-Lehmann shift, the median of all `x_i - y_j`, with its
        interval (none for clusters). `details`: `u_x`, `u_y`, `z` without continuity correction,
        `prob_superiority` U_x / (n m), `rank_biserial` 2 U_x / (n m) - 1, `n_level`, `n_reference`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used, and for clusters with values of both groups; the
        message says what would help.

    Notes
    -----
    The hypothesis is that both groups have one distribution and that all values are independent, or all
    clusters; it is not one of medians. Values tie if they agree to ten digits. If all values tie z is
    undefined, and an exact p is 1.

    The sign of the rank-biserial correlation says which group is larger and does not depend on `alternative`.
    SciPy's exact method takes the law without ties; R falls back to the normal one.

    With clusters, T is the difference of mean ranks, a linear function of U_x / (n m), while n and m are
    those of each arrangement.

    References
    ----------
    Mann, H. B. and Whitney, D. R. (1947), On a test of whether one of two random variables is stochastically
    larger than the other, Annals of Mathematical Statistics 18:50-60.

    Lehmann, E. L. (1963), Nonparametric confidence intervals for a shift parameter, Annals of Mathematical
    Statistics 34:1507-1512, doi:10.1214/aoms/1177703882.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.mann_whitney([5, 4, 3, 5, 4, 2, 5, 3], [3, 2, 2, 4, 1, 3, 2])
    >>> round(result.p_value, 4), result.statistic, result.estimate
    (0.0357, 46.5, 1.5)
    >>> ts.mann_whitney([5, 6, 7, 8], [1, 2, 3, 9]).details["rank_biserial"]
    0.5
    >>> table = {"score": [3, 5, 4, 1, 2, 2], "format": ["b", "b", "b", "a", "a", "a"]}
    >>> ts.mann_whitney("score", groups="format", data=table).contrast
    'b - a'
    """
    valid_choice("alternative", alternative, Alternative)
    valid_choice("two_sided", two_sided, TwoSided)
    chosen = chosen_method(method, Method)
    level = valid_level(conf_level)
    both = read_groups(x, y, groups=groups, data=data, clusters=clusters, missing=missing)
    asked = both.shared is not None and both.shared.asked
    way: Method = chosen or ("cluster-permutation" if asked else "auto")
    if correction and way in ("exact", "cluster-permutation"):
        raise ArgumentError(f"`correction` goes with method='normal'; got method={way!r}")
    ranks = midranks(both.values)
    n, m = int(both.in_level.sum()), int((~both.in_level).sum())
    total = n + m
    u_x = float(ranks[both.in_level].sum()) - n * (n + 1) / 2
    distance = u_x - n * m / 2
    tied = bool((ranks == ranks[0]).all())
    ties = cube_sum(ranks)
    deviation = 0.0 if tied else math.sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))))
    details: dict[str, Any] = {
        "u_x": u_x,
        "u_y": n * m - u_x,
        "z": None if tied else distance / deviation,
        "prob_superiority": u_x / (n * m),
        "rank_biserial": 2 * distance / (n * m),
        "n_level": n,
        "n_reference": m,
        "n_missing": both.n_missing,
    }
    notes = [*both.notes]
    p_value: float | None = None
    name = "Mann-Whitney"
    if way == "cluster-permutation":
        found = _by_cluster(both, ranks, alternative=alternative, n_resamples=n_resamples, seed=seed)
        location = shift(both.level, both.reference, level, exact=False, correction=False)
        location = Location(location.estimate, None, None, None)
        p_value, name = found.p_value, f"{name}, {found.method}"
        extra = ("way", "smallest_p_value", "n_clusters", "n_resamples", "seed")
        details |= {key: found.details[key] for key in extra}
        notes += found.notes
    else:
        law = sum_law(ranks, min(n, m)) if way in ("auto", "exact") else None
        if way == "exact" and law is None:
            raise ArgumentError(
                f"`method` 'exact' would take too long for {n:,} and {m:,} values; use method='normal'"
            )
        exact = None if law is not None else False
        location = shift(both.level, both.reference, level, exact=exact, correction=correction)
        details["interval"] = location.how
        if law is not None:
            p_value = _exact_p(law, ranks, both, alternative, two_sided)
            notes += (NO_CORRECTION,) if correction else ()
            name += ", exact by convolution"
            if alternative == "two-sided":
                name += {"distance": ", |U - mu|", "doubled": ", smaller tail doubled"}[two_sided]
        else:
            name += ", normal approximation" + (" with continuity correction" if correction else "")
            if not tied:
                z, p_value = normal_tail(distance, deviation, alternative, correction=correction)
                if correction:
                    details["z_corrected"] = z
        notes += both.independence()
    if tied:
        message = "All values tie, so that ranks have no variance and z is undefined" + (
            "." if p_value is None else "; every arrangement gives the same U, so p = 1."
        )
        notes.append(Note("undefined" if p_value is None else "degenerate", message, "caution"))
    return Test(
        estimand="shift",
        contrast=both.contrast,
        estimate=location.estimate,
        statistic=u_x,
        p_value=p_value,
        conf_low=location.low,
        conf_high=location.high,
        conf_level=location.conf_level(level),
        alternative=alternative,
        method=name,
        n=total,
        details=details,
        notes=(*notes, *location.notes),
    )


def _exact_p(
    law: RankLaw, ranks: np.ndarray[Any, Any], both: TwoGroups, alternative: Alternative, two_sided: TwoSided
) -> float:
    """From the law of the rank sum of the smaller group."""
    of_level = both.in_level.sum() <= (~both.in_level).sum()
    value = float(ranks[both.in_level if of_level else ~both.in_level].sum())
    if alternative == "two-sided":
        return law.beyond(value) if two_sided == "distance" else law.p_value(value, alternative)
    below, above = law.tails(value)
    return above if (alternative == "greater") == of_level else below


def _by_cluster(
    both: TwoGroups,
    ranks: np.ndarray[Any, Any],
    *,
    alternative: Alternative,
    n_resamples: int,
    seed: int,
) -> Test:
    """Permutation of clusters between the groups, of the difference of mean ranks."""
    if both.shared is None:
        raise ArgumentError("method='cluster-permutation' needs `clusters`, one label a value")
    shared = both.shared.needed_by("cluster-permutation")
    level, reference = both.names
    found: Any = permutation_test(
        ranks,
        groups=np.where(both.in_level, level, reference),
        clusters=both.cluster_labels or shared.codes,
        statistic=Difference(level, reference),
        alternative=alternative,
        n_resamples=n_resamples,
        seed=seed,
    )
    test: Test = found
    return test
