"""Studentised replicates for bootstrap-t: each replicate over its own jackknife error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.progress import Progress
from triagestats.resample import chunks
from triagestats.schemes import Multiplicities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["studentised"]

_LEAST_ERROR: Final = 0.1
"""Floor of a replicate's error, as a share of the observed one."""


def studentised(
    evaluate: Callable[[Array], Array],
    totals: Array,
    estimate: Array,
    std_error: Array,
    contributes: NDArray[np.bool_],
    *,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Array:
    """Pivots `(replicate - estimate) / error of the replicate`, shape (R, E).

    The error of a replicate is that of the jackknife over its drawn clusters, each as often as it was
    drawn: with n drawn clusters `(n - 1) / n * sum_g c_g (theta*_(g) - mean)^2`, where theta*_(g) is
    without one copy of cluster g. It takes R x G evaluations. It is not let below a tenth of the
    observed error, so that draws without variance give no infinite pivots.

    Parameters
    ----------
    evaluate
        Function from totals (..., K) to estimates (..., E), whatever the number of clusters in them.
    totals
        Totals by cluster, shape (G, K).
    estimate, std_error
        The observed estimates and their jackknife errors, shape (E,).
    contributes
        Whether each cluster carries data for each estimate, shape (G, E).
    n_resamples, seed, n_threads
        As for the bootstrap.
    """
    size, width = totals.shape
    draws = Multiplicities(size)
    pivots = np.empty((n_resamples, len(estimate)))
    with Progress(n_resamples, shown=True) as bar:
        for first, number in chunks(n_resamples, size * max(width, len(estimate))):
            counts = draws.totals(number, seed, first=first, n_threads=n_threads)
            whole = np.einsum("rg,gk->rk", counts, totals)
            without = evaluate(whole[:, None, :] - totals)
            weights = counts[..., None] * contributes
            n = weights.sum(axis=1)
            kept = np.where(weights > 0, without, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                center = (weights * kept).sum(axis=1) / n
                squares = (weights * (kept - center[:, None]) ** 2).sum(axis=1)
                spread = np.maximum(np.sqrt((n - 1) / n * squares), _LEAST_ERROR * std_error)
                pivots[first : first + number] = (evaluate(whole) - estimate) / spread
            bar.advance(number)
    return pivots
