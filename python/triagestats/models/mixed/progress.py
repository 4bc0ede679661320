"""A bar on a terminal that shows how far a sampler is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from triagestats.progress import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(total: int, shown: bool | None) -> Iterator[Callable[[int], None] | None]:
    """What a sampler calls with the number of steps that are done; None where nothing is shown.

    Parameters
    ----------
    total
        Steps of all chains.
    shown
        Whether to show it on a terminal; None for yes.
    """
    with Progress(total, shown=shown is not False, what="sampling") as bar:
        yield bar.reach if bar.shown else None
