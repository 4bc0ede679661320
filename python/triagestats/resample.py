"""Replicate estimates: the cluster bootstrap and the jackknife, for any function of totals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.progress import Progress
from triagestats.schemes import Draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Evaluate = Callable[[Array], Array]

__all__ = [
    "bootstrap",
    "chunks",
    "leave_one_out",
    "thread_count",
    "totals_without",
    "valid_resamples",
    "valid_seed",
]

_CHUNK_BYTES: Final = 8 * 2**20
_LIMIT_BYTES: Final = 48 * 2**20
_STEPS: Final = 50
_LEAST_STEP: Final = 16
"""A bar moves in so many steps of at least so many replicates."""
_ALWAYS: Final = 9_999
"""Replicates that are always kept, however many estimates there are."""
_MAX_SEED: Final = 2**64


def thread_count(n_threads: int | None) -> int:
    """Threads to use: the argument, else TRIAGESTATS_NUM_THREADS, else the cores of this process.

    Raises
    ------
    ArgumentError
        If either is not a whole number of at least 1.
    """
    if n_threads is None:
        text = os.environ.get("TRIAGESTATS_NUM_THREADS", "").strip()
        if not text:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not text.isdecimal() or int(text) < 1:
            raise ArgumentError(f"TRIAGESTATS_NUM_THREADS must be a whole number of at least 1; got {text!r}")
        return int(text)
    if isinstance(n_threads, bool) or not isinstance(n_threads, int):
        raise ArgumentTypeError(f"`n_threads` must be a whole number; got {n_threads!r}")
    if n_threads < 1:
        raise ArgumentError(f"`n_threads` must be at least 1; got {n_threads}")
    return n_threads


def valid_resamples(n_resamples: int, n_estimates: int = 1) -> int:
    """`n_resamples` if it is a whole number of at least 1 whose replicates fit in memory.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If not.
    """
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer):
        raise ArgumentTypeError(f"`n_resamples` must be a whole number; got {n_resamples!r}")
    if n_resamples < 1:
        raise ArgumentError(f"`n_resamples` must be at least 1 (9,999 is usual); got {n_resamples}")
    most = max(_ALWAYS, _LIMIT_BYTES // (8 * max(n_estimates, 1)))
    if n_resamples > most:
        raise ArgumentError(
            f"`n_resamples` is {n_resamples:,}; the replicates of {n_estimates:,} estimates would take more "
            f"than {_LIMIT_BYTES // 2**20} MiB. Use at most {most:,} (9,999 is usual)"
        )
    return int(n_resamples)


def valid_seed(seed: int) -> int:
    """`seed` if it is a whole number from 0 to 2^64 - 1.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If not.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ArgumentTypeError(f"`seed` must be a whole number; got {seed!r}")
    if not 0 <= seed < _MAX_SEED:
        raise ArgumentError(f"`seed` must lie from 0 to 2**64 - 1; got {seed}")
    return int(seed)


def chunks(n_resamples: int, width: int, limit: int | None = None) -> Iterator[tuple[int, int]]:
    """(first, number) of chunks of replicates of `width` floats, small enough to stay in memory.

    Between chunks Python runs, so that Ctrl-C is heard.
    """
    fitting = max(1, _CHUNK_BYTES // (8 * max(width, 1)))
    size = min(n_resamples, fitting if limit is None else limit)
    for first in range(0, n_resamples, size):
        yield first, min(size, n_resamples - first)


def bootstrap(
    evaluate: Evaluate,
    draws: Draws,
    *,
    n_resamples: int,
    seed: int,
    n_threads: int = 1,
    chunk: int | None = None,
    progress: bool = False,
) -> Array:
    """Estimates on replicate totals.

    Parameters
    ----------
    evaluate
        Function from totals (..., K) to estimates (..., E).
    draws
        The scheme, bound to its data.
    n_resamples, seed
        Number of replicates R, and the seed; replicate r depends on (seed, r) alone.
    n_threads, chunk
        They change the time and the memory, not the result.
    progress
        Whether to show a bar when it takes over a second, on a terminal.

    Returns
    -------
    numpy.ndarray
        Replicate estimates, shape (R, E).
    """
    result: Array | None = None
    with Progress(n_resamples, shown=progress) as bar:
        steps = chunk or (max(_LEAST_STEP, n_resamples // _STEPS) if bar.shown else None)
        for first, number in chunks(n_resamples, draws.width, steps):
            part = evaluate(draws.totals(number, seed, first=first, n_threads=n_threads))
            if number == n_resamples:
                return part
            if result is None:
                result = np.empty((n_resamples, part.shape[1]))
            result[first : first + number] = part
            bar.advance(number)
    return np.empty((0, 0)) if result is None else result


def leave_one_out(evaluate: Evaluate, totals: Array, strata: NDArray[np.uint32] | None = None) -> Array:
    """Estimates without each cluster, shape (G, E).

    With strata, the other clusters of its stratum weigh n / (n - 1), so that the stratum keeps its size.
    """
    return evaluate(totals_without(totals, strata))


def totals_without(totals: Array, strata: NDArray[np.uint32] | None = None) -> Array:
    """Totals without each cluster, shape (G, K), as `leave_one_out` evaluates them."""
    whole = totals.sum(axis=0)
    if strata is None:
        result: Array = whole - totals
        return result
    sizes = np.bincount(strata).astype(np.float64)
    by_stratum = np.stack([np.bincount(strata, weights=column) for column in totals.T], axis=1)[strata]
    n = sizes[strata][:, None]
    rest: Array = whole - by_stratum + (by_stratum - totals) * n / (n - 1)
    return rest
