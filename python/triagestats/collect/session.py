"""One run over a study and its store: ask, read what is stored, write what is wanted."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from triagestats.collect.asking import Replay, outcome_of
from triagestats.collect.changes import check_unchanged
from triagestats.collect.client import connect
from triagestats.collect.loops import waited
from triagestats.collect.output import check_output, frame_of, scored_frame, table_of, write_output
from triagestats.collect.plan import planned_calls, units_of
from triagestats.collect.rereading import Rereading, keep_readings, reread
from triagestats.collect.rows import rows_of
from triagestats.collect.runner import run_study
from triagestats.collect.store import Store
from triagestats.collect.study import Study
from triagestats.collect.study_file import read_study
from triagestats.errors import ArgumentError, ReadError
from triagestats.results import Note
from triagestats.table import ResponseTable

__all__ = ["Collected", "Session"]

_MEMORY: Final = ":memory:"


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run left.

    Attributes
    ----------
    table
        The responses.
    frame
        The rows of every metric, as they are written.
    reasons
        Why models stopped, or everything did.
    n_absent
        Planned answers without all of their calls.
    rereading
        What changed by reading the answers again, where that was asked for.
    """

    table: ResponseTable
    frame: pl.DataFrame
    reasons: tuple[str, ...]
    n_absent: int
    rereading: Rereading | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A study with the places of its store and its output.

    Attributes
    ----------
    study
        Read and checked.
    store
        The file of the answers; None keeps them in memory.
    output
        The file of the table, or None.
    """

    study: Study
    store: Path | None
    output: Path | None

    @classmethod
    def of(
        cls, study: str | Path | Mapping[str, Any], *, store: str | Path | None, output: str | Path | None
    ) -> Session:
        """Read a study, and settle where things go.

        Raises
        ------
        ArgumentError, ArgumentTypeError, ReadError
            If the study cannot be used, or a place cannot be.
        """
        read = read_study(study)
        if store is None and isinstance(study, Mapping):
            raise ArgumentError(
                "`store` must name a file for the answers, such as 'study.sqlite', where the study is no file"
            )
        place = Path(str(study)).with_suffix(".sqlite") if store is None else Path(store)
        kept = None if str(place) == _MEMORY else place
        target = None if output is None else Path(output)
        if kept is not None and not kept.parent.is_dir():
            raise ArgumentError(f"`store`: there is no folder {str(kept.parent)!r}; make it first")
        if target is not None:
            check_output(target, kept, read.file)
        return cls(read, kept, target)

    def run(
        self,
        client: Any,
        *,
        resume: bool = False,
        reparse: bool = False,
        metric: str | None = None,
        shown: bool = False,
    ) -> Collected:
        """Ask what is not stored, unless `reparse`; then read all that is."""
        if reparse and (self.store is None or not self.store.exists()):
            raise ArgumentError(f"`reparse` reads stored answers, and there is no store {str(self.store)!r}")
        planned = {one.model for one in planned_calls(self.study) if one.at_most}
        asked = {} if reparse else {name: m for name, m in self.study.models.items() if name in planned}
        endpoints = connect(
            asked, client, self.study.key_places
        )  # a missing key is found before the store is made
        try:
            with Store(self.store) as opened:
                stored = opened.totals().calls
                if stored and not (resume or reparse):
                    raise ArgumentError(
                        f"`store`: {str(self.store)!r} is there, with {stored:,} answers; go on with "
                        "`resume`, or choose another `store`"
                    )
                added = check_unchanged(self.study, opened, reparse=reparse)
                reasons: tuple[str, ...] = ()
                if not reparse:
                    reasons = waited(lambda: run_study(self.study, opened, endpoints, shown=shown))
                return self._read(opened, reasons, added, reparse=reparse, metric=metric)
        except sqlite3.Error as error:
            raise ReadError(f"`store`: {str(self.store)!r} cannot be read or written: {error}") from error

    def _read(
        self,
        store: Store,
        reasons: tuple[str, ...],
        added: tuple[str, ...],
        *,
        reparse: bool,
        metric: str | None,
    ) -> Collected:
        rows: list[dict[str, Any]] = []

        async def replay() -> int:
            answers = Replay(store)
            absent = 0
            for name in self.study.models:
                for unit in units_of(self.study, name):
                    outcome = await outcome_of(unit, self.study, answers)
                    absent += bool(outcome.failures)
                    rows.extend(rows_of(outcome, self.study))
            return absent

        n_absent = waited(replay)
        frame = frame_of(rows)
        notes = [Note("collection_stopped", reason, "caution") for reason in reasons]
        if added:
            notes.append(Note("study_grown", f"Added since the store was made: {', '.join(added)}."))
        notes += _seed_notes(self.study)
        table = table_of(frame, self.study, notes, metric=metric)
        scored = scored_frame(frame, self.study)
        rereading = reread(scored, store) if reparse else None
        keep_readings(scored, store)
        if self.output is not None:
            write_output(self.output, scored, self.study, store, reasons)
        return Collected(table, scored, reasons, n_absent, rereading)


def _seed_notes(study: Study) -> list[Note]:
    fixed = [name for name, model in study.models.items() if model.answers and "seed" in model.parameters]
    if study.repetitions < 2 or not fixed:
        return []
    message = f"A fixed `seed` is sent to {', '.join(fixed)}: repetitions of the same request may be alike."
    return [Note("fixed_seed", message, "caution")]
