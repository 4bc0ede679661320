"""Fixtures for all tests."""

from __future__ import annotations

import csv
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from triagestats.errors import TriagestatsError
from triagestats.table import ResponseTable

settings.register_profile("shared machine", deadline=None)  # a busy machine is no failure
settings.load_profile("shared machine")

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


@pytest.fixture(scope="session")
def expected_rows(shared: Callable[[str], Path]) -> Callable[..., list[str]]:
    """What a table read from files of a harness has otherwise than the rows expected of these files."""

    def differences(
        table: ResponseTable, folder: str, *, files: Collection[str] = (), without: Collection[str] = ()
    ) -> list[str]:
        found = Counter(_found(row) for row in table.frame.iter_rows(named=True))
        with shared(f"harness/{folder}/expected.csv").open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if not files or row["source_file"] in files]
        expected = Counter(_expected(row) for row in rows)
        ignored = [place for place, name in enumerate(_COMPARED) if name in without]

        def kept(counts: Counter[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
            return Counter(
                tuple("" if place in ignored else cell for place, cell in enumerate(row))
                for row in counts.elements()
            )

        assert rows
        more, fewer = kept(found) - kept(expected), kept(expected) - kept(found)
        return [f"not expected: {row}" for row in more] + [f"not found: {row}" for row in fewer]

    return differences


_COMPARED = (
    "source_file",
    "task",
    "item_id",
    "model",
    "condition",
    "epoch",
    "metric",
    "score_raw",
    "score",
    "status",
    "reason",
    "response",
    "gold",
    "cluster",
)


def _expected(row: dict[str, str]) -> tuple[str, ...]:
    metric = "/".join(name for name in (row["scorer"], row["metric"]) if name)
    file = row["source_file"].rpartition("/")[2]
    cells = row | {"metric": metric, "source_file": file, "score": _number(row["score"] or None)}
    return tuple(cells[name] for name in _COMPARED)


def _found(row: dict[str, object]) -> tuple[str, ...]:
    task, item = str(row.get("task") or ""), str(row["scenario"])
    cells = {
        "source_file": str(row["source"]).rpartition("/")[2],
        "task": task,
        "item_id": item.removeprefix(f"{task}/"),
        "epoch": row["repetition"],
        "score": _number(row["score"]),
        "gold": row.get("gold_low"),
        "cluster": row.get("cluster_1"),
    }
    return tuple(str(value) for value in (cells.get(name, row.get(name)) or "" for name in _COMPARED))


def _number(value: object) -> str:
    return "" if value is None else repr(float(str(value)))


@pytest.fixture(scope="session")
def chat() -> ModuleType:
    """The module `chat_server`: a server on loopback that speaks chat completions, with faults."""
    return _beside("chat_server")


@pytest.fixture(scope="session")
def scripted() -> ModuleType:
    """The module `scripted`: protocols and judges run on answers from a list."""
    return _beside("scripted")


def _beside(name: str) -> ModuleType:
    """A module in the folder of the tests, which is on no path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
