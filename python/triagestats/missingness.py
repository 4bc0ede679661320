"""Answers that are missing or were not read, and the worst cases of the rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from triagestats.design import Design
from triagestats.results import Note, tidy_frame

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


def missing_frame(design: Design, metric: str | None) -> pl.DataFrame | None:
    """Planned answers without a score or not read, and the worst cases of each rate; None without any.

    `share_missing` is the share of planned answers that have no score, by status (`absent` where the
    table has no row at all). `share_unparsed` is the share of those that could not be read and yet
    have a score. `rate_if_missing_wrong` and `rate_if_missing_right` give every planned answer equal
    weight, and score all of these 0 or 1.
    """
    rows: list[dict[str, Any]] = []
    models: list[int | None] = [None, *range(len(design.models))] if design.has_models else [None]
    for code, level in enumerate(design.levels):
        for model in models:
            counts = _counts(design, code, model)
            same = {
                "model": None if model is None else design.models[model],
                "condition": level.label if design.factors else None,
                "metric": metric,
                "n_rows": counts.scored,
                "n_missing": counts.planned - counts.scored,
            }
            if counts.planned != counts.read:
                rows += [same | row for row in _rows(counts, is_rate=design.is_rate)]
    return tidy_frame(rows) if rows else None


def _counts(design: Design, level: int, model: int | None) -> _Counts:
    planned = design.planned([level], "row") * (len(design.models) if model is None else 1)
    chosen = pl.col("level") == level
    if model is not None:
        chosen &= pl.col("model") == model
    responses = design.responses.filter(chosen)
    scored = responses.filter(pl.col("score").is_not_null())
    read = scored.filter(pl.col("status") != "unparsed")
    unscored = responses.filter(pl.col("score").is_null())["status"].value_counts().sort("status")
    absent = planned - responses.height
    return _Counts(
        planned=planned,
        scored=scored.height,
        read=read.height,
        total=float(read["score"].sum()),
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


def unparsed_notes(design: Design) -> tuple[Note, ...]:
    """A note where answers that could not be read count with a score."""
    unread = design.responses.filter((pl.col("status") == "unparsed") & pl.col("score").is_not_null())
    if unread.is_empty():
        return ()
    by_level = dict(unread["level"].value_counts().iter_rows())
    where = ", ".join(
        f"{level.label} {by_level[code]:,}" for code, level in enumerate(design.levels) if code in by_level
    )
    message = (
        f"{unread.height:,} answers could not be read and count with the score that they have"
        f"{f' ({where})' if design.factors else ''}; `unparsed` changes that, `missing` has the worst cases."
    )
    return (Note("unparsed_scored", message, "caution"),)
