"""The sign test."""

from __future__ import annotations

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.binomial_intervals import clopper_pearson
from triagestats.differences import all_zero, read_differences
from triagestats.results import Alternative, Note, Test
from triagestats.schema import Match
from triagestats.vectors import Missing

__all__ = ["sign_test"]


def sign_test(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    alternative: Alternative = "two-sided",
    match: Match = "cell",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
) -> Test:
    """Exact sign test of paired differences.

    With n+ positive ones among the m differences that are not zero, p is that of a binomial (m, 1/2):
    two-sided `min(1, 2 min(P(B <= n+), P(B >= n+)))`. For 0/1 values it is the exact McNemar test.

    Parameters
    ----------
    x, y, data, match, missing
        As in `wilcoxon_signed_rank`.
    clusters
        One label a pair. The test takes the pairs as independent, with a note.
    alternative
        `greater`: x tends to be larger than y.
    conf_level
        Level of the interval of the share of positive differences, by Clopper and Pearson.

    Returns
    -------
    Test
        `statistic` is n+, `estimate` its share of m. `details`: `n_positive`, `n_negative`, `n_zero`,
        `n_nonzero`. If all differences are zero p = 1, and the share is undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says how to fix it.

    Notes
    -----
    Zeros are dropped and counted. The hypothesis is that a difference which is not zero is as likely positive
    as negative. Whether a difference is zero is decided as in `wilcoxon_signed_rank`.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.sign_test([1, 1, 2, -1, 3, 2, 1, 4, -2, 0, 0, 0])
    >>> result.p_value, result.details["n_positive"], result.details["n_zero"]
    (0.1796875, 7, 3)
    """
    from scipy.special import bdtr, bdtrc

    valid_choice("alternative", alternative, Alternative)
    level = valid_level(conf_level)
    read = read_differences(x, y, data=data, clusters=clusters, match=match, missing=missing)
    ranked = read.ranked
    m, positive = len(ranked.ranks), int(np.count_nonzero(ranked.positive))
    notes = [*read.pairs.notes]
    low = high = None
    p_value = 1.0
    if m:
        smallest = float(np.finfo(np.float64).tiny)  # what happened has some chance
        below = max(float(bdtr(positive, m, 0.5)), smallest)
        above = max(float(bdtrc(positive - 1, m, 0.5)), smallest) if positive else 1.0
        two = min(1.0, 2 * min(below, above))
        p_value = {"two-sided": two, "greater": above, "less": below}[alternative]
        low, high = clopper_pearson(positive, m, level)
    if ranked.n_zero:
        message = f"{ranked.n_zero:,} of {len(ranked.values):,} differences are zero and dropped."
        notes.append(Note("zeros", message) if m else all_zero())
    notes += read.pairs.independence("permutation_test(x, y, clusters=...)")
    return Test(
        estimand="share_positive",
        contrast=read.contrast,
        estimate=positive / m if m else None,
        statistic=float(positive) if m else None,
        p_value=p_value,
        conf_low=low,
        conf_high=high,
        conf_level=level if m else None,
        alternative=alternative,
        method="sign test, exact",
        n=len(ranked.values),
        details={
            "n_positive": positive,
            "n_negative": m - positive,
            "n_zero": ranked.n_zero,
            "n_nonzero": m,
            "n_missing": read.pairs.n_missing,
        },
        notes=tuple(notes),
    )
