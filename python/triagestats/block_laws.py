"""The exact law of column sums when every block's values are permuted."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.tolerances import SMALLEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

__all__ = ["MOST_TREATMENTS", "permuted_p"]

MOST_TREATMENTS: Final = 8
"""Columns whose permutations, 40,320, can be written out."""
_MOST: Final = 4_000_000
"""Sums that one step may write out."""
_WIDEST: Final = 2**62


def permuted_p(values: Whole) -> float | None:
    """P-value of the sum of squares of the column sums; None where its law would take too long.

    Every order of the values within a block is as likely as any other, and the blocks are independent.
    Columns are alike under the hypothesis, so that sums are kept in order: the law of the ordered sums
    is that of the statistic, and has far fewer points.

    Parameters
    ----------
    values
        Whole numbers of shape (n, k), such as doubled midranks within blocks.
    """
    k = values.shape[1]
    if k > MOST_TREATMENTS:
        return None
    # A constant a block moves all column sums alike.
    rows = values - values.min(axis=1, keepdims=True)
    rows = rows[rows.any(axis=1)]
    sums = rows.sum(axis=0)
    observed = int((sums**2).sum())
    largest = int(rows.max(axis=1).sum()) + 1 if len(rows) else 1
    if float(largest) ** (k - 1) > _WIDEST:
        return None
    radix = largest ** np.arange(k - 1, dtype=np.int64)
    states = np.zeros((1, k), dtype=np.int64)
    chance = np.ones(1)
    arranged: dict[tuple[int, ...], Whole] = {}
    for row in np.sort(rows, axis=1).tolist():
        key = tuple(row)
        if key not in arranged:
            arranged[key] = np.array(sorted(set(permutations(key))), dtype=np.int64)
        orders = arranged[key]
        if len(states) * len(orders) > _MOST:
            return None
        reached = np.sort((states[:, None] + orders).reshape(-1, k), axis=1)
        # The last sum follows from the others, as their total is fixed.
        _, first, place = np.unique(reached[:, :-1] @ radix, return_index=True, return_inverse=True)
        shares = np.repeat(chance / len(orders), len(orders))
        chance = np.asarray(np.bincount(place, weights=shares), dtype=np.float64)
        states = reached[first]
    extreme = (states**2).sum(axis=1) >= observed
    return min(1.0, max(float(np.sort(chance[extreme]).sum()), SMALLEST))
