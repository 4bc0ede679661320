"""How far collecting has come: a bar on a terminal, a plain line every 30 seconds elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["EVERY", "Meter"]

EVERY: Final = 30.0
"""Seconds between two lines."""


class Meter:
    """Counts answers as they are completed, and says so on stderr.

    Parameters
    ----------
    total
        Answers that the study plans.
    shown
        False says nothing but why a model stopped.
    every
        Seconds between two plain lines; default 30.
    """

    def __init__(self, total: int, *, shown: bool, every: float | None = None) -> None:
        self._total = total
        self._shown = shown
        self._every = EVERY if every is None else every
        self._since = (time.monotonic(), 0)
        self._done = 0
        self._failed = 0
        self._ended = asyncio.Event()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Meter:
        if self._shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("answers", total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, *, failed: bool) -> None:
        """Note that an answer is complete, or has failed."""
        self._done += 1
        self._failed += failed
        if self._bar is not None and self._task is not None:
            words = f"answers, {self._failed:,} failed" if self._failed else "answers"
            self._bar.update(self._task, completed=self._done, description=words)

    def say(self, message: str) -> None:
        """One line that stays, above the bar where there is one."""
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False)
        elif self._shown:
            sys.stderr.write(message + "\n")
            sys.stderr.flush()

    def end(self) -> None:
        """No more lines."""
        self._ended.set()

    async def lines(self) -> None:
        """Write a line now and then until the end, where there is no terminal."""
        if not self._shown or self._bar is not None:
            return
        while True:
            try:
                await asyncio.wait_for(self._ended.wait(), self._every)
            except TimeoutError:
                self.say(self.line())
            else:
                return

    def line(self) -> str:
        """Where it stands in words, with the pace since the last line."""
        (before, had), now = self._since, time.monotonic()
        self._since = (now, self._done)
        pace = (self._done - had) / max(now - before, 1e-9)
        failed = f", {self._failed:,} failed" if self._failed else ""
        left = f", about {(self._total - self._done) / pace / 60:,.0f} min left" if pace else ""
        return f"{self._done:,} of {self._total:,} answers{failed}, {pace:,.1f} a second{left}"
