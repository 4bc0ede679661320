"""The store: one SQLite file with one row a call, from which everything else can be made again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from triagestats.collect.calls import Call, answer_of, canonical
from triagestats.collect.contract import Answer
from triagestats.errors import ReadError

__all__ = ["Failure", "Store", "Totals"]

_VERSION: Final = 1
_PATIENCE: Final = 0.2
"""Seconds to wait for a store that another process holds: it will hold it for long."""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, scenario TEXT NOT NULL, condition TEXT NOT NULL, model TEXT NOT NULL,
    repetition INTEGER NOT NULL, judge TEXT, role TEXT NOT NULL, asked TEXT NOT NULL, url TEXT NOT NULL,
    attempt INTEGER NOT NULL, request TEXT NOT NULL, response TEXT NOT NULL, finish_reason TEXT,
    returned_model TEXT, prompt_tokens INTEGER, completion_tokens INTEGER, latency REAL NOT NULL,
    asked_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, scenario TEXT NOT NULL, condition TEXT NOT NULL, model TEXT NOT NULL,
    repetition INTEGER NOT NULL, judge TEXT, role TEXT NOT NULL, asked TEXT NOT NULL, code INTEGER,
    reason TEXT NOT NULL, asked_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS readings (
    place TEXT PRIMARY KEY, label TEXT, score REAL, status TEXT, reason TEXT
);
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call has no answer: the code of HTTP, where there was one, and words."""

    code: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What a store holds."""

    calls: int
    tokens: int


class Store:
    """Answers by the key of their call; a row is on disk before the answer is used.

    The write-ahead log outlives the process, so that `kill -9` loses nothing that was written. One process
    holds a store at a time: two would ask the same twice.

    Parameters
    ----------
    path
        The file, made where there is none; None keeps the store in memory.

    Raises
    ------
    ReadError
        If the file is no store, cannot be opened, or is held by another process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        name = "the store" if path is None else repr(str(path))
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                ":memory:" if path is None else path,
                isolation_level=None,
                timeout=_PATIENCE,
                check_same_thread=False,
            )
            # Taken with the first access, and let go by the system however the process ends.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._refuse_other(connection, name)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA user_version={_VERSION}")
        except (sqlite3.Error, OSError) as error:
            if connection is not None:
                connection.close()
            if "locked" in str(error):
                raise ReadError(
                    f"{name} is in use by another process that collects into it; wait until it has ended"
                ) from None
            raise ReadError(f"{name} cannot be opened as a store: {error}; choose another `store`") from None
        except ReadError:
            if connection is not None:
                connection.close()
            raise
        self._connection = connection

    @staticmethod
    def _refuse_other(connection: sqlite3.Connection, name: str) -> None:
        """Refuse a database that is not ours, before anything is written to it."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if tables and (version != _VERSION or "calls" not in tables):
            raise ReadError(
                f"{name} is a database, but no store of this version of triagestats; choose another `store`"
            )

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def answer(self, key: str) -> Answer | None:
        """The answer of a call, or None where it has none."""
        row = self._connection.execute(
            "SELECT response, latency, asked_at FROM calls WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else answer_of(key, row[0], latency=row[1], asked_at=row[2])

    def keep(self, call: Call, answer: Answer, response: str) -> None:
        """Write an answer, as it came."""
        place = call.place
        with _transaction(self._connection):
            self._connection.execute(
                "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    call.key,
                    place.scenario,
                    place.condition,
                    place.model,
                    place.repetition,
                    place.judge,
                    call.role,
                    call.asked,
                    call.url,
                    call.attempt,
                    call.request,
                    response,
                    answer.finish_reason,
                    answer.returned_model,
                    answer.prompt_tokens,
                    answer.completion_tokens,
                    answer.latency,
                    answer.asked_at,
                ),
            )
            self._connection.execute("DELETE FROM failures WHERE key = ?", (call.key,))

    def keep_failure(self, call: Call, failure: Failure, asked_at: str) -> None:
        """Write why a call has no answer; the last reason counts."""
        place = call.place
        self._connection.execute(
            "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                call.key,
                place.scenario,
                place.condition,
                place.model,
                place.repetition,
                place.judge,
                call.role,
                call.asked,
                failure.code,
                failure.reason,
                asked_at,
            ),
        )

    def failure(self, key: str) -> Failure | None:
        """Why a call has no answer, if it was tried."""
        row = self._connection.execute("SELECT code, reason FROM failures WHERE key = ?", (key,)).fetchone()
        return None if row is None else Failure(*row)

    def totals(self) -> Totals:
        """Calls and tokens so far."""
        row = self._connection.execute(
            "SELECT count(*), total(prompt_tokens) + total(completion_tokens) FROM calls"
        ).fetchone()
        return Totals(row[0], int(row[1]))

    def calls_by_model(self) -> dict[str, int]:
        """Number of stored calls by the model that was asked."""
        rows = self._connection.execute("SELECT asked, count(*) FROM calls GROUP BY asked ORDER BY asked")
        return dict(rows.fetchall())

    def fact(self, name: str) -> Any:
        """A plain value that was kept, or None."""
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def keep_fact(self, name: str, value: object) -> None:
        """Keep a plain value under a name."""
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, canonical(value)))

    def readings(self) -> dict[str, tuple[str | None, float | None, str | None, str | None]]:
        """Label, score, status and reason as they were read last, by place."""
        rows = self._connection.execute("SELECT place, label, score, status, reason FROM readings")
        return {place: (label, score, status, reason) for place, label, score, status, reason in rows}

    def keep_readings(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace what was read from the answers."""
        with _transaction(self._connection):
            self._connection.execute("DELETE FROM readings")
            self._connection.executemany(
                "INSERT INTO readings VALUES (:place, :label, :score, :status, :reason)", rows
            )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the statements, or none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
