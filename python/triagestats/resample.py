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

__all__ = ["bootstrap", "chunks", "leave_one_out", "thread_count", "valid_resamples", "valid_seed"]

_CHUNK_BYTES: Final = 8 * 2**20
_LIMIT_BYTES: Final = 128 * 2**20
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
    size = max(1, min(n_resamples, limit or _CHUNK_BYTES // (8 * max(width, 1))))
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
        for first, number in chunks(n_resamples, draws.width, chunk):
            part = evaluate(draws.totals(number, seed, first=first, n_threads=n_threads))
            if number == n_resamples:
                return part
            if result is None:
                result = np.empty((n_resamples, part.shape[1]))
            result[first : first + number] = part
            bar.advance(number)
    return np.empty((0, 0)) if result is None else result


def leave_one_out(evaluate: Evaluate, totals: Array) -> Array:
    """Estimates without each cluster, shape (G, E)."""
    return evaluate(totals.sum(axis=0) - totals)
