"""Running coroutines for callers that have no event loop, or one of their own."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

__all__ = ["waited"]

_T = TypeVar("_T")


def waited(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """The result of a coroutine, also where a loop is running already, as in a notebook.

    The loop is the same from call to call: the connections that a client of the caller keeps open belong to
    the loop in which they were made, and would be of no use to the next call in another.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if threading.current_thread() is threading.main_thread():
            return _runner("here").run(work())
        return asyncio.run(work())
    return _beside(work)


def _beside(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run in a thread of its own, and end there, too, when the caller is interrupted."""
    tasks: list[asyncio.Task[Any]] = []

    async def known() -> _T:
        task = asyncio.current_task()
        tasks.extend([task] if task is not None else [])
        return await work()

    future = _thread().submit(lambda: _runner("beside").run(known()))
    try:
        return future.result()
    finally:
        if not future.done():  # Ctrl-C
            for task in tasks:
                task.get_loop().call_soon_threadsafe(task.cancel)
            wait([future])


@cache
def _runner(place: str) -> asyncio.Runner:  # noqa: ARG001 - one a place
    made = asyncio.Runner()
    atexit.register(made.close)
    return made


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="triagestats-collect")
