"""A progress bar for what takes long, on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["Progress"]

_PATIENCE: Final = 1.0
"""Seconds before a bar appears."""


class Progress:
    """Counts work done; shows a bar on stderr after a second, if that is a terminal.

    Parameters
    ----------
    total
        Units of work.
    shown
        False never shows a bar.
    what
        The work, in a word.
    """

    def __init__(self, total: int, *, shown: bool, what: str = "resampling") -> None:
        self._total = total
        self._what = what
        self.shown = shown and sys.stderr.isatty()
        self._start = time.monotonic()
        self._done = 0
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, number: int) -> None:
        """Note that more units are done."""
        self.reach(self._done + number)

    def reach(self, done: int) -> None:
        """Note how many units are done."""
        self._done = done
        if self._bar is None and self.shown and time.monotonic() - self._start > _PATIENCE:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.add_task(self._what, total=self._total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
