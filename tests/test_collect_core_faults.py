"""A server that fails: what the client retries, what stops a model, and what the next run asks again."""

from __future__ import annotations

import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import triagestats as ts

RETRY_AFTER = 0.3
"""Seconds; below the client's own first pause, which is at least 0.375."""


def study(url: str, n: int = 4, **model: Any) -> dict[str, Any]:
    return {
        "levels": ["A", "B"],
        "scenarios": {"rows": [{"id": f"s{i}", "story": f"Story {i}.", "gold": "A"} for i in range(n)]},
        "models": [{"name": "m", "base_url": url, "retries": 3} | model],
        "conditions": [
            {"name": "c", "protocol": "prompt", "template": "{{ story }}", "answer": {"kind": "letter"}}
        ],
    }


def statuses(table: ts.ResponseTable) -> dict[str, int]:
    return dict(table.frame["status"].value_counts().iter_rows())


def test_429_waits_as_long_as_the_server_says(chat: ModuleType) -> None:
    def fault(number: int, body: dict[str, Any]) -> Any:
        return (
            chat.Fault("status", 429, {"retry-after-ms": f"{1000 * RETRY_AFTER:.0f}"})
            if number == 1
            else None
        )

    with chat.ChatServer(fault=fault) as server:
        start = time.monotonic()
        table = ts.collect(study(server.url, 1), store=":memory:")
        waited = time.monotonic() - start
    assert statuses(table) == {"ok": 1}
    assert server.count == 2
    assert waited >= RETRY_AFTER
    assert table.frame["latency"][0] >= RETRY_AFTER  # with the client's retries


@pytest.mark.parametrize(
    ("code", "headers"),
    [(429, {}), *((code, {"retry-after-ms": "1"}) for code in (408, 409, 500, 503))],
    ids=["429-without-retry-after", "408", "409", "500", "503"],
)
def test_passing_errors_are_retried(chat: ModuleType, code: int, headers: dict[str, str]) -> None:
    def fault(number: int, body: dict[str, Any]) -> Any:
        return chat.Fault("status", code, headers) if number <= 2 else None

    with chat.ChatServer(fault=fault) as server:
        table = ts.collect(study(server.url, 2), store=":memory:")
    assert statuses(table) == {"ok": 2}
    assert server.count == 4


def test_a_hang_and_a_cut_connection_are_retried(chat: ModuleType) -> None:
    def fault(number: int, body: dict[str, Any]) -> Any:
        return {1: chat.Fault("hang"), 2: chat.Fault("reset")}.get(number)

    with chat.ChatServer(fault=fault) as server:
        table = ts.collect(study(server.url, 2, timeout=0.5), store=":memory:")
    assert statuses(table) == {"ok": 2}
    assert server.count == 4


@pytest.mark.parametrize(
    ("kind", "code", "text", "said"),
    [
        ("status", 500, '{"error": {"message": "down"}}', "HTTP 500: "),
        ("status", 429, "", "HTTP 429: "),
        ("hang", 200, "", "Request timed out."),
        ("reset", 200, "", "Connection error."),
        ("status", 200, "<html>busy</html>", "the response is not JSON: '<html>busy</html>'"),
        ("status", 200, '{"choices": [], "error": "overloaded"}', "the response has no choices: "),
        ("status", 200, "", "the response is not JSON: ''"),
    ],
    ids=["500", "429", "hang", "reset", "not-json", "no-choices", "empty"],
)
def test_what_stays_unanswered_is_asked_by_the_next_run(
    chat: ModuleType, tmp_path: Path, kind: str, code: int, text: str, said: str
) -> None:
    """One scenario fails: its row is an error with the reason, and the others are answered."""
    broken = True

    def fault(number: int, body: dict[str, Any]) -> Any:
        return chat.Fault(kind, code, text=text) if broken and "Story 2" in str(body) else None

    with chat.ChatServer(fault=fault) as server:
        asked = study(server.url, retries=0, timeout=0.5)
        table = ts.collect(asked, store=tmp_path / "s.sqlite")
        assert statuses(table) == {"ok": 3, "error": 1}
        row = table.frame.row(by_predicate=ts_error(), named=True)
        assert row["scenario"] == "s2"
        assert row["score"] is None
        assert said in row["reason"]
        assert server.count == 4
        broken = False
        again = ts.collect(asked, store=tmp_path / "s.sqlite", resume=True)
        assert server.count == 5
    assert statuses(again) == {"ok": 4}


def ts_error() -> Any:
    import polars as pl

    return pl.col("status") == "error"


@pytest.mark.parametrize("code", [400, 401, 404])
def test_an_error_for_good_stops_its_model_alone(
    chat: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    def fault(number: int, body: dict[str, Any]) -> Any:
        text = '{"error": {"message": "no such model"}}'
        return chat.Fault("status", code, text=text) if body["model"] == "closed" else None

    with chat.ChatServer(fault=fault) as server:
        asked = study(server.url, n=40)
        asked["models"] = [
            {"name": name, "base_url": server.url, "concurrency": 2} for name in ("open", "closed")
        ]
        table = ts.collect(asked, store=tmp_path / "s.sqlite")
    refused = sum(body["model"] == "closed" for body in server.requests)
    assert refused <= 2  # those under way at once
    assert server.count - refused == 40
    message = f"Model 'closed' has stopped: HTTP {code}: "
    assert capsys.readouterr().err.count(message) == 1
    assert sum(message in note.message for note in table.notes) == 1
    assert statuses(table) == {"ok": 40, "error": refused, "missing": 40 - refused}


def test_a_model_that_never_answers_stops(chat: ModuleType) -> None:
    with chat.ChatServer(fault=lambda *_: chat.Fault("status", 500)) as server:
        table = ts.collect(study(server.url, 200, retries=0, concurrency=1), store=":memory:")
    assert server.count == 20
    assert "has stopped after 20 failed calls in a row: HTTP 500" in table.notes[-1].message


def test_faults_of_every_kind_leave_one_row_a_call(chat: ModuleType, tmp_path: Path) -> None:
    """Requests fail in turn: the client mends what it can, and further runs the rest.

    75 requests are made for 60 answers: of each 15, five fail, three of which the client makes again.
    """
    quick = {"retry-after-ms": "1"}
    faults = [
        chat.Fault("status", 429, quick),
        chat.Fault("status", 500, quick),
        chat.Fault("status", 200, text="{"),
        chat.Fault("reset"),
        chat.Fault("status", 200, text='{"choices": []}'),
    ]

    def fault(number: int, body: dict[str, Any]) -> Any:
        return faults[number // 3 % len(faults)] if number % 3 == 0 and number < 100 else None

    with chat.ChatServer(fault=fault) as server:
        asked = study(server.url, 60, retries=5)
        table = ts.collect(asked, store=tmp_path / "s.sqlite")
        assert statuses(table) == {"ok": 50, "error": 10}
        for _ in range(3):
            table = ts.collect(asked, store=tmp_path / "s.sqlite", resume=True)
    assert statuses(table) == {"ok": 60}
    assert server.answered == 60
