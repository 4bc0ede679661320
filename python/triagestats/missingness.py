"""Answers that are missing or were not read, and the worst cases of the rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from triagestats.layout import Layout
from triagestats.results import Note, tidy_frame
from triagestats.tallies import Tally

__all__ = ["missing_frame", "unparsed_notes"]


@dataclass(frozen=True, slots=True)
class _Counts:
    """Planned answers of some models at one level.

    Attributes
    ----------
    planned, scored
        Answers of a complete crossing, and those with a score.
    read, total
        Answers with a score that were read, and the sum of their scores.
    unscored
        Answers without a score by status; `absent` where the table has no row.
    """

    planned: int
    scored: int
    read: int
    total: float
    unscored: tuple[tuple[str, int], ...]


def missing_frame(layout: Layout, tally: Tally, metric: str | None) -> pl.DataFrame | None:
    """Planned answers without a score or not read, and the worst cases of each rate; None without any.

    `share_missing` is the share of planned answers that have no score, by status (`absent` where the
    table has no row at all). `share_unparsed` is the share of those that could not be read and yet
    have a score. `rate_if_missing_wrong` and `rate_if_missing_right` give every planned answer equal
    weight, and score all of these 0 or 1.
    """
    rows: list[dict[str, Any]] = []
    models: list[int | None] = [None, *range(len(layout.models))] if layout.has_models else [None]
    for code, level in enumerate(layout.levels):
        for model in models:
            counts = _counts(layout, tally, code, model)
            same = {
                "model": None if model is None else layout.models[model],
                "condition": level.label if layout.factors else None,
                "metric": metric,
                "n_rows": counts.scored,
                "n_missing": counts.planned - counts.scored,
            }
            if counts.planned != counts.read:
                rows += [same | row for row in _rows(counts, is_rate=layout.is_rate)]
    return tidy_frame(rows) if rows else None


def _counts(layout: Layout, tally: Tally, level: int, model: int | None) -> _Counts:
    planned = layout.planned([level], "row") * (len(layout.models) if model is None else 1)
    responses = tally.of(level=level, model=model)
    read = responses.filter((pl.col("status") != "unparsed") & (pl.col("scored") > 0))
    unscored = (
        responses.group_by("status")
        .agg((pl.col("responses") - pl.col("scored")).sum().alias("count"))
        .filter(pl.col("count") > 0)
        .sort("status")
    )
    absent = planned - int(responses["responses"].sum())
    return _Counts(
        planned=planned,
        scored=int(responses["scored"].sum()),
        read=int(read["scored"].sum()),
        total=float(read["total"].sum()),
        unscored=(*unscored.iter_rows(), *((("absent", absent),) if absent else ())),
    )


def _rows(counts: _Counts, *, is_rate: bool) -> Iterator[dict[str, Any]]:
    planned = counts.planned
    for status, number in counts.unscored:
        yield {"estimand": "share_missing", "status": status, "estimate": number / planned}
    if unread := counts.scored - counts.read:
        yield {"estimand": "share_unparsed", "status": "unparsed", "estimate": unread / planned}
    if is_rate:
        yield {"estimand": "rate_if_missing_wrong", "estimate": counts.total / planned}
        right = counts.total + planned - counts.read
        yield {"estimand": "rate_if_missing_right", "estimate": right / planned}


def unparsed_notes(layout: Layout, tally: Tally) -> tuple[Note, ...]:
    """A note where answers that could not be read count with a score."""
    unread = tally.responses.filter(pl.col("status") == "unparsed")
    by_level = {
        level: count
        for level, count in unread.group_by("level").agg(pl.col("scored").sum()).iter_rows()
        if count
    }
    if not by_level:
        return ()
    where = ", ".join(
        f"{level.label} {by_level[code]:,}" for code, level in enumerate(layout.levels) if code in by_level
    )
    message = (
        f"{int(unread['scored'].sum()):,} answers could not be read and count with the score that they have"
        f"{f' ({where})' if layout.factors else ''}; `unparsed` changes that, `missing` has the worst cases."
    )
    return (Note("unparsed_scored", message, "caution"),)
