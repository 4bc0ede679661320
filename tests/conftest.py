"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from triagestats.errors import TriagestatsError

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).parents[2] / "shared")


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Path of a file of reference data; a test that asks for an absent one is skipped, and says why."""

    def path(name: str) -> Path:
        found = SHARED / name
        if not found.exists():
            pytest.skip(f"reference data {name!r} is not there; set TRIAGESTATS_SHARED to its folder")
        return found

    return path


@pytest.fixture(scope="session")
def refusal() -> Callable[[Callable[[], object]], str]:
    """What a call says when it refuses: its class and its message, in one line."""

    def said(call: Callable[[], object]) -> str:
        with pytest.raises(TriagestatsError) as caught:
            call()
        return f"{type(caught.value).__name__}: {caught.value}"

    return said
