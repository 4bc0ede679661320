"""Chi-square statistics and measures of association of a table of counts without an empty row or column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

__all__ = [
    "Association",
    "chi_square_tail",
    "few_expected",
    "likelihood_ratio",
    "pearson",
    "pearson_of",
    "statistics",
]

FEW: Final = 5
"""Expected counts below it make the chi-square law doubtful."""


@dataclass(frozen=True, slots=True, eq=False)
class Association:
    """Statistics of independence.

    Attributes
    ----------
    expected
        Row total times column total over n, shape (r, c).
    df
        (r - 1) (c - 1).
    chi2, g
        Pearson's statistic and the likelihood ratio.
    yates
        Pearson's with the continuity correction, None but for 2 x 2.
    cramers_v, cramers_v_bias_corrected
        The second is None where the correction leaves no range: for n = 2.
    """

    expected: Array
    df: int
    chi2: float
    g: float
    yates: float | None
    cramers_v: float
    cramers_v_bias_corrected: float | None

    @classmethod
    def of(cls, counts: Counts) -> Association:
        observed = counts.astype(np.float64)
        n = float(observed.sum())
        expected = observed.sum(axis=1)[:, None] * observed.sum(axis=0)[None] / n
        r, c = counts.shape
        chi2 = pearson(observed, expected)
        return cls(
            expected=expected,
            df=(r - 1) * (c - 1),
            chi2=chi2,
            g=likelihood_ratio(observed, expected),
            yates=_corrected(observed, expected) if (r, c) == (2, 2) else None,
            cramers_v=min(1.0, (chi2 / (n * (min(r, c) - 1))) ** 0.5),
            cramers_v_bias_corrected=_bias_corrected(chi2, n, r, c),
        )


def pearson(observed: Array, expected: Array) -> float:
    """Sum of (observed - expected)^2 / expected."""
    return float(((observed - expected) ** 2 / expected).sum())


def pearson_of(counts: Array) -> Array:
    """Pearson's statistic of each table (..., r, c) against its own margins; no row or column sum is 0."""
    rows, columns = counts.sum(axis=-1, keepdims=True), counts.sum(axis=-2, keepdims=True)
    expected = rows * columns / counts.sum(axis=(-2, -1), keepdims=True)
    found: Array = ((counts - expected) ** 2 / expected).sum(axis=(-2, -1))
    return found


def likelihood_ratio(observed: Array, expected: Array) -> float:
    """2 times the sum of observed * log(observed / expected)."""
    from scipy.special import xlogy

    return max(0.0, 2 * float(xlogy(observed, observed / expected).sum()))


def chi_square_tail(statistic: float, df: int) -> float:
    """Upper tail of the chi-square law, precise where it is tiny."""
    from scipy.special import chdtrc

    return float(chdtrc(df, statistic))


def statistics(chi2: float, g: float, df: int, expected: Array, counts: Counts) -> dict[str, Any]:
    """Both statistics with their p-values, and what was expected, as details of a test."""
    return {
        "df": df,
        "chi2": chi2,
        "chi2_p_value": chi_square_tail(chi2, df),
        "g": g,
        "g_p_value": chi_square_tail(g, df),
        "expected": expected.tolist(),
        "smallest_expected": float(expected.min()),
        "table": counts.tolist(),
    }


def few_expected(expected: Array, instead: str) -> tuple[Note, ...]:
    """A note where expected counts are small; `instead` says what to do."""
    number = int((expected < FEW).sum())
    if not number:
        return ()
    message = (
        f"{number} of {expected.size} expected counts are below {FEW}, the smallest "
        f"{float(expected.min()):.3g}: the chi-square law is doubtful; {instead}."
    )
    return (Note("small_expected", message, "caution"),)


def _corrected(observed: Array, expected: Array) -> float:
    """Yates: deviations shrink by 1/2, but not beyond 0."""
    deviation = np.abs(observed - expected)
    return float(((deviation - np.minimum(0.5, deviation)) ** 2 / expected).sum())


def _bias_corrected(chi2: float, n: float, r: int, c: int) -> float | None:
    """Bergsma's V: phi^2 less its expectation under independence, over the range that is left."""
    phi2 = max(0.0, chi2 / n - (r - 1) * (c - 1) / (n - 1))
    ranges = [k - (k - 1) ** 2 / (n - 1) - 1 for k in (r, c)]
    if min(ranges) <= 0:
        return None
    return float((phi2 / min(ranges)) ** 0.5)
