"""Sums over clusters that change sign: under all sign flips, or under drawn ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from triagestats.resample import chunks
from triagestats.schemes import Flips

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["flipped_sums"]


def flipped_sums(
    totals: Array, n_resamples: int, seed: int, *, n_threads: int = 1, chunk: int | None = None
) -> tuple[Array, bool]:
    """Sums of totals with a sign for each cluster, shape (A, K), and whether they are those of all signs.

    Parameters
    ----------
    totals
        Shape (G, K), finite.
    n_resamples, seed
        All 2^G flips are taken where they are at most `n_resamples`; else so many are drawn, and flip r
        depends on (seed, r) alone.
    n_threads, chunk
        They change the time and the memory, not the result.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.flipped import flipped_sums
    >>> sums, exact = flipped_sums(np.array([[1.0], [2.0]]), 99, 0)
    >>> sorted(sums[:, 0].tolist()), exact
    ([-3.0, -1.0, 1.0, 3.0], True)
    """
    n_clusters, width = totals.shape
    exact = 2**n_clusters <= n_resamples
    if not exact:
        draws = Flips(np.ascontiguousarray(totals, dtype=np.float64))
        parts = [
            draws.totals(number, seed, first=first, n_threads=n_threads)
            for first, number in chunks(n_resamples, width, chunk)
        ]
        return np.concatenate(parts), False
    parts = []
    for first, number in chunks(2**n_clusters, n_clusters + width, chunk):
        flips = (np.arange(first, first + number)[:, None] >> np.arange(n_clusters)) & 1
        parts.append((1.0 - 2.0 * flips) @ totals)
    return np.concatenate(parts), True
