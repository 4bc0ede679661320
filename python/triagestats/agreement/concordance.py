"""Kendall's W: how far raters rank items alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc
from scipy.stats import rankdata

from triagestats.agreement.estimation import Uncertainty, reported
from triagestats.agreement.ratings import read_scores
from triagestats.defaults import CONF_LEVEL
from triagestats.errors import DataError
from triagestats.results import Test
from triagestats.tolerances import TIES
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["kendall_w"]


def kendall_w(ratings: object, *, data: object = None, missing: Missing = "raise") -> Test:
    """Kendall's coefficient of concordance, with the correction for ties.

    With n items in rows, m raters in columns, R_i the sum of the ranks of item i over the raters, and t the
    sizes of the groups of ties of each rater,

        W = 12 sum (R_i - mean R)^2 / (m^2 (n^3 - n) - m sum (t^3 - t))

    and m (n - 1) W is about chi-square with n - 1 degrees of freedom if raters rank at random.

    Parameters
    ----------
    ratings
        Numbers or ranks, one row an item and one column a rater; each rater's are ranked, equal ones with
        their mid-rank. Or names of columns of `data`; or judges, or None for all, where `data` is a
        ResponseTable, of which the scores are taken.
    data
        A table of any make, or a ResponseTable.
    missing
        `raise`, or `omit` items with a missing number.

    Returns
    -------
    Test
        `estimate` is W, from 0 to 1, `statistic` the chi-square. `details` hold `df`, `n_raters`,
        `w_no_tie_correction`, and `mean_spearman`, the mean rank correlation of two raters,
        (m W - 1) / (m - 1) (of ranks without ties).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used.

    Notes
    -----
    The chi-square is rough for few items; `friedman` tests the same hypothesis, also exactly. Ranks are
    of all items together, so that W is no function of sums over clusters: it has no cluster interval.
    Numbers that agree to ten digits of the largest are tied.

    If every rater ties all items W is 0 / 0, undefined.

    References
    ----------
    Kendall, M. G. and Babington Smith, B. (1939), The problem of m rankings, Annals of Mathematical
    Statistics 10(3):275-287, doi:10.1214/aoms/1177732186.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.kendall_w([[1, 1, 6], [6, 5, 3], [3, 6, 2], [2, 2, 5], [5, 4, 4], [4, 3, 1]])
    >>> round(result.estimate, 4), round(result.p_value, 4)
    (0.2127, 0.6706)
    """
    scores = read_scores(ratings, data=data, missing=missing)
    n, m = scores.values.shape
    if n < 2:
        raise DataError(f"`ratings` has {n} item, and a ranking needs two")
    ranks = _ranks(scores.values)
    ties = sum(float((t**3 - t).sum()) for t in map(_tie_sizes, ranks.T))
    sums = ranks.sum(axis=1)
    spread = 12.0 * float(((sums - sums.mean()) ** 2).sum())
    whole = float(m**2 * (n**3 - n))
    corrected = whole - m * ties
    estimate = spread / corrected if corrected > 0 else None
    statistic = None if estimate is None else m * (n - 1) * estimate
    return reported(
        estimand="Kendall's W",
        estimate=estimate,
        uncertainty=Uncertainty(how="chi-square approximation"),
        conf_level=CONF_LEVEL,
        method="Kendall's W",
        n=n,
        statistic=statistic,
        p_value=None if statistic is None else float(chdtrc(n - 1, statistic)),
        details={
            "df": float(n - 1),
            "n_raters": m,
            "w_no_tie_correction": spread / whole,
            "mean_spearman": None if estimate is None else (m * estimate - 1) / (m - 1),
            "raters": list(scores.raters),
            "n_missing": scores.n_missing,
        },
        notes=scores.notes,
        reason="Every rater ties all items, so that there is no ranking to agree on: 0 / 0.",
    )


def _ranks(values: Array) -> Array:
    """Mid-ranks of each rater's numbers, those that agree to ten digits of the largest tied."""
    largest = np.abs(values).max(axis=0)
    rounded = np.round(values / np.where(largest > 0, largest, 1.0), round(-np.log10(TIES)))
    ranks: Array = rankdata(rounded, axis=0)
    return ranks


def _tie_sizes(ranks: Array) -> Array:
    """How many items share each rank."""
    return np.unique(ranks, return_counts=True)[1].astype(np.float64)
