"""Rows with a score so far, in the engine that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.engine.held import Held
from triagestats.results import Note

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]

__all__ = ["MOST_LABELS", "Rows", "in_words"]

MOST_LABELS: Final = 10_000
"""Different labels, or pairs of a label and a right one, that are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows with a score so far: `value` (0 without), `scored` (0 or 1), and `status`."""

    held: Held
    notes: tuple[Note, ...] = ()

    def with_columns(self, **columns: nw.Expr) -> Rows:
        return self.of(self.held.frame.with_columns(**columns))

    def of(self, frame: Frame, *notes: Note) -> Rows:
        return Rows(Held(frame, self.held.engine, self.held.argument), (*self.notes, *notes))

    def groups(self, frame: Frame, by: Sequence[str], most: int) -> pl.DataFrame:
        """Rows by the values of some columns, `n` each; at most one group more than `most`."""
        import narwhals as nw

        (found,) = self.held.collect(frame.group_by(*by).agg(nw.len().alias("n")).head(most + 1))
        return found


def in_words(text: nw.Expr) -> nw.Expr:
    """Text of a status as a status is spelled."""
    return text.str.to_lowercase().str.replace_all(r"[\s-]+", "_")
