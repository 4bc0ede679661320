"""The sign test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice, valid_level
from triagestats.binomial_intervals import clopper_pearson
from triagestats.clustered_rates import clustered_rate
from triagestats.differences import Differences, all_zero, read_differences
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.schema import Match
from triagestats.sign_flips import FLIP_DETAILS, flip_test
from triagestats.tolerances import SMALLEST
from triagestats.vectors import Missing

__all__ = ["sign_test"]

Method = Literal["exact", "cluster-sign-flip", "auto"]


def sign_test(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    alternative: Alternative = "two-sided",
    method: Method | None = None,
    match: Match = "cell",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Exact sign test of paired differences.

    With n+ positive ones among the m differences that are not zero, p is that of a binomial (m, 1/2):
    two-sided `min(1, 2 min(P(B <= n+), P(B >= n+)))`. For 0/1 values it is the exact McNemar test.

    Parameters
    ----------
    x, y, data, match, missing
        As in `wilcoxon_signed_rank`.
    clusters
        One label a pair.
    alternative
        `greater`: x tends to be larger than y.
    method
        `exact`, which takes the pairs as independent; where they share clusters, a note says so.
        `cluster-sign-flip`: one sign is drawn a cluster, for all of its pairs. Default (`auto`, or None):
        `cluster-sign-flip` where `clusters` are given, else `exact`.
    conf_level
        Level of the interval of the share of positive differences, by Clopper and Pearson; by cluster that of
        `proportion_ci` for clusters.
    n_resamples, seed
        As in `permutation_test`; for `cluster-sign-flip`.

    Returns
    -------
    Test
        `statistic` is n+, `estimate` its share of m. `details`: `n_positive`, `n_negative`, `n_zero`,
        `n_nonzero`; for `cluster-sign-flip` also `way`, `n_clusters`, `n_moving`, `smallest_p_value`,
        `n_resamples`, `seed`. If all differences are zero p = 1, and the share is undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says how to fix it.

    Notes
    -----
    Zeros are dropped and counted. The hypothesis is that a difference which is not zero is as likely positive
    as negative. Whether a difference is zero is decided as in `wilcoxon_signed_rank`.

    With clusters the hypothesis is that the signs of a cluster, all of them, are as likely to be exchanged.
    The interval does not come from the flips, and can differ from them about 1/2.

    References
    ----------
    Dixon, W. J. and Mood, A. M. (1946), The statistical sign test, Journal of the American Statistical
    Association 41(236):557-566, doi:10.1080/01621459.1946.10501898.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.sign_test([1, 1, 2, -1, 3, 2, 1, 4, -2, 0, 0, 0])
    >>> result.p_value, result.details["n_positive"], result.details["n_zero"]
    (0.1796875, 7, 3)
    """
    valid_choice("alternative", alternative, Alternative)
    asked: Method | None = chosen_method(method, Method)
    resamples, seed = valid_resamples(n_resamples), valid_seed(seed)
    level = valid_level(conf_level)
    read = read_differences(x, y, data=data, clusters=clusters, match=match, missing=missing)
    ranked = read.ranked
    m, positive = len(ranked.ranks), int(np.count_nonzero(ranked.positive))
    notes = [*read.pairs.notes]
    if ranked.n_zero:
        message = f"{ranked.n_zero:,} of {len(ranked.values):,} differences are zero and dropped."
        notes.append(Note("zeros", message) if m else all_zero())
    by_cluster = asked == "cluster-sign-flip" or (asked is None and read.pairs.clustered)
    if by_cluster:
        found = _by_cluster(read, alternative, level, resamples, seed)
    else:
        found = _exact(positive, m, alternative, level)
        notes += read.pairs.independence("sign_test(..., method='cluster-sign-flip')")
    return Test(
        estimand="share positive",
        contrast=read.contrast,
        estimate=positive / m if m else None,
        statistic=float(positive) if m else None,
        p_value=found.p_value,
        conf_low=found.low,
        conf_high=found.high,
        conf_level=None if found.low is None else level,
        alternative=alternative,
        method=f"sign test, {found.method}",
        n=len(ranked.values),
        details={
            "n_positive": positive,
            "n_negative": m - positive,
            "n_zero": ranked.n_zero,
            "n_nonzero": m,
            "n_missing": read.pairs.n_missing,
            **found.details,
        },
        notes=(*notes, *(found.notes if m else ())),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A p-value, and the interval of the share of positive differences."""

    p_value: float
    low: float | None
    high: float | None
    method: str
    details: dict[str, Any]
    notes: tuple[Note, ...] = ()


def _exact(positive: int, m: int, alternative: Alternative, level: float) -> _Found:
    from scipy.special import bdtr, bdtrc

    if not m:
        return _Found(1.0, None, None, "exact", {})
    below = max(float(bdtr(positive, m, 0.5)), SMALLEST)
    above = max(float(bdtrc(positive - 1, m, 0.5)), SMALLEST) if positive else 1.0
    two = min(1.0, 2 * min(below, above))
    p_value = {"two-sided": two, "greater": above, "less": below}[alternative]
    return _Found(p_value, *clopper_pearson(positive, m, level), "exact", {})


def _by_cluster(
    read: Differences, alternative: Alternative, level: float, n_resamples: int, seed: int
) -> _Found:
    """Sign flips by cluster, and the clustered interval of a rate over the differences that are not zero."""
    ranked = read.ranked
    shared = read.pairs.clusters_for("cluster-sign-flip")
    signs = np.zeros(len(ranked.values))
    signs[ranked.rows] = np.where(ranked.positive, 1.0, -1.0)
    flips = flip_test(signs, shared.codes, alternative=alternative, n_resamples=n_resamples, seed=seed)
    details = {key: flips.details[key] for key in FLIP_DETAILS}
    if not len(ranked.rows):
        return _Found(1.0, None, None, flips.method, details)
    some = shared.of(signs != 0)
    rate = clustered_rate((signs[signs != 0] > 0).astype(np.float64), some.codes, level)
    notes = (*flips.notes, *rate.notes)
    return _Found(flips.p_value or 0.0, rate.low, rate.high, flips.method, details, notes)
