"""Collection: from scenarios and models to a response table."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "collect":  # the package hands on the function of its own name
        from triagestats.collect.run import collect

        return collect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
