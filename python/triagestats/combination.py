"""combine_pvalues: one p-value from several tests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentError, DataError
from triagestats.p_values import read_p_values
from triagestats.results import Note, Test
from triagestats.vectors import Missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["combine_pvalues"]

Combination = Literal["fisher", "stouffer", "cauchy", "tippett", "pearson", "simes"]

_NAMES: Final = {
    "fisher": "Fisher's combination",
    "stouffer": "Stouffer's combination",
    "cauchy": "Cauchy combination",
    "tippett": "Tippett's combination",
    "pearson": "Pearson's combination",
    "simes": "Simes' combination",
}
_WEIGHTED: Final = ("stouffer", "cauchy")
_CERTAIN: Final = ("stouffer", "cauchy", "pearson")
"""Methods in which one p-value of 1 makes the combined one 1."""


def combine_pvalues(
    p_values: object,
    *,
    method: Combination = "fisher",
    weights: object = None,
    signs: object = None,
    missing: Missing = "omit",
) -> Test:
    """Combine p-values of several tests into one for the hypothesis that all their hypotheses hold.

    | method | statistic | p |
    |---|---|---|
    | `fisher` | X = -2 sum log p | upper tail of chi-square, 2k df |
    | `stouffer` | z = sum w z_i / sqrt(sum w^2), z_i = upper quantile of p_i | upper tail of the normal |
    | `cauchy` | T = sum w tan((1/2 - p) pi) / sum w | upper tail of the Cauchy law |
    | `tippett` | the smallest p | 1 - (1 - min p)^k |
    | `pearson` | X = -2 sum log(1 - p) | lower tail of chi-square, 2k df |
    | `simes` | min over i of k p_(i) / i | the same |

    Parameters
    ----------
    p_values
        A vector, a sequence of `Test` results, or a table with the column `p_value`.
    method
        As above.
    weights
        Positive numbers, one a p-value, for `stouffer` and `cauchy`; default 1. For `stouffer` the square
        roots of the sample sizes are usual.
    signs
        For `stouffer`: one number a p-value whose sign is the direction of that effect, such as the
        estimates. The p-values are then two-sided, z_i has that sign, and the combined p is two-sided.
    missing
        `omit` missing p-values, with a note, or `raise`.

    Returns
    -------
    Test
        `statistic`, `p_value`, `n` (p-values that were combined). `details`: `df` of `fisher` and `pearson`,
        `harmonic_mean_raw` (k / sum 1/p, which is no p-value by itself), `n_missing`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If a p-value does not lie between 0 and 1, or weights or signs do not fit the method or the p-values.
    DataError
        If all are missing, or some are and `missing` is `raise`.

    Notes
    -----
    All but `cauchy` and `simes` hold for independent p-values only: those of tests on shared scenarios are
    not independent, and the combined p is then too small where they go together. `cauchy` holds
    approximately for small p under any dependence of normal statistics, `simes` under positive dependence;
    better is one test of all the data by cluster. `stouffer` takes one-sided p-values in one direction:
    two-sided ones have lost theirs, unless `signs` gives it back. p-values of discrete tests are not uniform:
    the combined one is then conservative.

    A p-value of 0 makes the combined one 0 but for `pearson`; one of 1 makes it 1 for `stouffer`, `cauchy`
    and `pearson`; a note says so. Both together are undefined for `stouffer` and `cauchy`. Tails keep
    their digits for p-values as small as 1e-300.

    References
    ----------
    Liu, Y. and Xie, J. (2020), Cauchy combination test: a powerful test with analytic p-value calculation
    under arbitrary dependency structures, Journal of the American Statistical Association 115(529):393-402,
    doi:10.1080/01621459.2018.1554485.

    Simes, R. J. (1986), An improved Bonferroni procedure for multiple tests of significance, Biometrika
    73(3):751-754, doi:10.1093/biomet/73.3.751.

    Whitlock, M. C. (2005), Combining probability from independent tests: the weighted Z-method is superior to
    Fisher's approach, Journal of Evolutionary Biology 18(5):1368-1373,
    doi:10.1111/j.1420-9101.2005.00917.x.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.combine_pvalues([0.01, 0.2, 0.3])
    >>> round(result.statistic, 3), result.details["df"], round(result.p_value, 4)
    (14.837, 6, 0.0216)
    >>> round(ts.combine_pvalues([0.01, 0.2, None, 0.3], method="cauchy").p_value, 4)
    0.0281
    """
    valid_choice("method", method, Combination)
    valid_choice("missing", missing, Missing)
    given = read_p_values(p_values)
    if given.n_missing and missing == "raise":
        raise DataError(
            f"{given.n_missing:,} of {len(given.values):,} p-values are missing; leave them out with "
            "missing='omit'"
        )
    if given.n_missing == len(given.values):
        raise DataError("all p-values are missing")
    if weights is not None and method not in _WEIGHTED:
        raise ArgumentError(f"`weights` are for method='stouffer' or 'cauchy'; {method!r} has none")
    if signs is not None and method != "stouffer":
        raise ArgumentError(f"`signs` are for method='stouffer'; {method!r} has no direction")
    p = given.values[given.present]
    w = np.ones(len(p)) if weights is None else _beside(weights, "weights", given.present)
    if (w <= 0).any():
        raise ArgumentError(f"`weights` must be positive; got {float(w.min()):g}")
    side = None if signs is None else np.sign(_beside(signs, "signs", given.present))
    statistic, p_value, details = _combined(method, p, w, side)
    notes = [*given.notes, *_assumption(method, signed=side is not None)]
    if math.isnan(statistic):
        message = "P-values of 0 and of 1, or of 0 in both directions, add up to no number."
        notes.append(Note("undefined", message, "caution"))
    else:
        notes += _ends(method, p)
    defined = not math.isnan(statistic)
    return Test(
        estimand=None,
        statistic=statistic if defined else None,
        p_value=p_value if defined else None,
        alternative="greater" if method == "stouffer" and side is None else "two-sided",
        method=_NAMES[method]
        + (", weighted" if weights is not None else "")
        + (", signed" if side is not None else ""),
        n=len(p),
        details=details | {"harmonic_mean_raw": _harmonic(p), "n_missing": given.n_missing},
        notes=tuple(notes),
    )


def _combined(
    method: Combination, p: Array, w: Array, side: Array | None
) -> tuple[float, float, dict[str, Any]]:
    from scipy.stats import chi2, norm

    k = len(p)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if method == "fisher":
            statistic = 2 * float(-np.log(p).sum())
            return statistic, float(chi2.sf(statistic, 2 * k)), {"df": 2 * k}
        if method == "pearson":
            statistic = 2 * float(-np.log1p(-p).sum())
            return statistic, float(chi2.cdf(statistic, 2 * k)), {"df": 2 * k}
        if method == "stouffer":
            z = norm.isf(p) if side is None else np.where(side == 0, 0.0, side * norm.isf(p / 2))
            statistic = float((w * z).sum() / np.sqrt((w**2).sum()))
            tail = norm.sf(statistic) if side is None else 2 * norm.sf(abs(statistic))
            return statistic, float(tail), {}
        if method == "cauchy":
            # cot(pi p), by the nearer end, so that p next to 0 or 1 keeps its digits
            cot = np.where(p <= 0.5, 1 / np.tan(np.pi * p), -1 / np.tan(np.pi * (1 - p)))
            statistic = float((w / w.sum() * cot).sum())
            return statistic, math.atan2(1.0, statistic) / math.pi, {}
        if method == "tippett":
            statistic = float(p.min())
            return statistic, float(-np.expm1(k * np.log1p(-statistic))), {}
    statistic = float((np.sort(p) * k / np.arange(1, k + 1)).min())
    return statistic, statistic, {}


def _beside(values: object, argument: str, present: NDArray[np.bool_]) -> Array:
    """Numbers that stand beside the p-values, where those are not missing."""
    found: Array = numbers_of(values, argument, dimensions=(1,))
    if len(found) != len(present):
        raise ArgumentError(
            f"`{argument}` must have one number a p-value: expected {len(present):,}, got {len(found):,}"
        )
    if np.isnan(found[present]).any():
        raise ArgumentError(f"`{argument}` is missing beside a p-value that is not")
    return found[present]


def _assumption(method: Combination, *, signed: bool) -> list[Note]:
    notes = []
    if method == "stouffer" and not signed:
        message = "The p-values are taken as one-sided, all in the same direction."
        notes.append(Note("one_sided", message))
    if method not in ("cauchy", "simes"):
        message = (
            "The p-values are taken as independent, which those of tests on shared scenarios are not; "
            "method='cauchy' tolerates dependence."
        )
        notes.append(Note("independence", message))
    return notes


def _ends(method: Combination, p: Array) -> list[Note]:
    zero, one = int((p == 0).sum()), int((p == 1).sum())
    if zero and method != "pearson":
        message = f"{zero} p-values are exactly 0, and so is the combined one; were they rounded?"
        return [Note("zero", message, "caution")]
    if one and method in _CERTAIN:
        message = (
            f"{one} p-values are exactly 1, and so is the combined one whatever the others; 'tippett' and "
            "'simes' look at the smallest."
        )
        return [Note("one", message, "caution")]
    return []


def _harmonic(p: Array) -> float:
    smallest = float(p.min())
    return 0.0 if smallest == 0 else float(len(p) * smallest / (smallest / p).sum())
