"""Fit of a vector of counts to given shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.association import few_expected, likelihood_ratio, pearson, statistics
from triagestats.errors import ArgumentError
from triagestats.results import Note, Test
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

__all__ = ["ChiSquare", "fit_test"]

ChiSquare = Literal["pearson", "g"]

_SHARES: Final = 1e-8
"""How far shares may be from a sum of 1, or expected counts from n."""


def fit_test(counts: Counts, expected: object, method: ChiSquare) -> Test:
    """Test of a vector of counts against expected shares, or counts; equal ones where not given.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there are less than two categories, or the expected shares do not fit the counts.
    """
    n = int(counts.sum())
    if len(counts) < 2 or n == 0:
        what = "one category" if len(counts) < 2 else "no observation"
        raise ArgumentError(f"`x` holds {what}; a test of fit needs counts of two categories or more")
    shares = np.full(len(counts), 1 / len(counts)) if expected is None else _shares(expected, counts)
    possible = shares > 0
    notes: list[Note] = []
    if not possible.all():
        message = (
            f"{int((~possible).sum())} categories without a count and with expected share 0 are left out."
        )
        notes.append(Note("empty", message))
    observed, awaited = counts[possible].astype(np.float64), shares[possible] * n
    name = f"{'Chi-square' if method == 'pearson' else 'G'} test of fit"
    if len(observed) < 2:
        message = "One category alone has a positive expected share, so that nothing can be tested."
        return Test(
            estimand=None,
            statistic=None,
            p_value=None,
            method=name,
            n=n,
            notes=(*notes, Note("undefined", message, "caution")),
        )
    chi2, g, df = pearson(observed, awaited), likelihood_ratio(observed, awaited), len(observed) - 1
    details = statistics(chi2, g, df, awaited, counts[possible])
    key = "g" if method == "g" else "chi2"
    return Test(
        estimand=None,
        statistic=details[key],
        p_value=details[f"{key}_p_value"],
        method=name,
        n=n,
        details=details,
        notes=(*notes, *few_expected(awaited, "join categories")),
    )


def _shares(expected: object, counts: Counts) -> Array:
    given: Array = numbers_of(expected, "expected", dimensions=(1,))
    total, n = float(given.sum()), float(counts.sum())
    if len(given) != len(counts) or np.isnan(given).any() or (given < 0).any():
        raise ArgumentError(
            f"`expected` must hold one share or count from 0 for each of the {len(counts)} counts; got "
            f"{given.tolist()}"
        )
    if abs(total - 1) > _SHARES and abs(total - n) > _SHARES * n:
        raise ArgumentError(f"`expected` must sum to 1 (shares) or to {n:g} (counts); its sum is {total:g}")
    shares: Array = given / total
    if (counts[shares == 0] > 0).any():
        raise ArgumentError(
            "`expected` is 0 for a category that has a count, which makes the data impossible"
        )
    return shares
