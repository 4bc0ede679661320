"""A bar on a terminal that shows how far a sampler is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(total: int, shown: bool | None) -> Iterator[Callable[[int], None] | None]:
    """What a sampler calls with the number of steps that are done; None where nothing is shown.

    Parameters
    ----------
    total
        Steps of all chains.
    shown
        Whether to show it; None: where the standard error is a terminal.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("sampling"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sampling", total=total)
        yield lambda done: bar.update(task, completed=done)
