"""The right label of a row, or the range of right labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import polars as pl

from triagestats.errors import DataError
from triagestats.labels import listed, n_rows
from triagestats.results import Note

__all__ = ["Gold", "order_notes", "read_gold", "refuse_labels", "refuse_outside"]

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Gold:
    """The two ends of the right range of each row, in the order of `levels`.

    Without `levels` nothing orders a range: it stays as it was written, and `unordered` marks it.
    """

    low: pl.Series
    high: pl.Series
    unordered: pl.Series
    notes: tuple[Note, ...] = ()


def read_gold(
    gold: pl.Series, other: pl.Series | None, responses: pl.Series | None, levels: Sequence[str] | None
) -> Gold:
    """The right range of each row.

    Parameters
    ----------
    gold, other
        Labels, or strings such as `C/D`; or the two ends of ranges.
    responses
        The labels given, to tell a range `C/D` from a label that holds a slash.
    levels
        The response scale from least to most urgent.

    Raises
    ------
    DataError
        If a gold label is not in `levels`.
    """
    if other is not None:
        gold, other = gold.fill_null(other), other.fill_null(gold)
    known = levels if levels is not None else responses.drop_nulls().unique() if responses is not None else ()
    labels = pl.Series(known, dtype=pl.String)
    written = (gold.str.contains("/", literal=True) & ~gold.is_in(labels.implode())).fill_null(value=False)
    if levels is None:
        ranges = written if other is None else (gold != other).fill_null(value=False)
        return Gold(gold, gold if other is None else other, ranges)
    low, high = (gold, other) if other is not None else _split(gold, written)
    _refuse_outside_gold(gold, low, high, levels)
    return _ordered(low, high, levels)


def _split(gold: pl.Series, ranges: pl.Series) -> tuple[pl.Series, pl.Series]:
    if not ranges.any():
        return gold, gold
    parts = gold.str.splitn("/", 2)
    first, second = (parts.struct.field(f"field_{end}").str.strip_chars() for end in (0, 1))
    return first.zip_with(ranges, gold), second.zip_with(ranges, gold)


def _ordered(low: pl.Series, high: pl.Series, levels: Sequence[str]) -> Gold:
    rank = {level: position for position, level in enumerate(levels)}
    low_rank, high_rank = (
        end.replace_strict(rank, return_dtype=pl.Int32, default=None) for end in (low, high)
    )
    swapped = (low_rank > high_rank).fill_null(value=False)
    whole = ((low_rank - high_rank).abs() == len(levels) - 1).fill_null(value=False)
    notes = order_notes(int(swapped.sum()), int(whole.sum()), levels)
    none = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(low))
    return Gold(low.zip_with(~swapped, high), high.zip_with(~swapped, low), none, tuple(notes))


def _refuse_outside_gold(gold: pl.Series, low: pl.Series, high: pl.Series, levels: Sequence[str]) -> None:
    scale = pl.Series(levels, dtype=pl.String).implode()
    outside = ~(low.is_in(scale) & high.is_in(scale))
    shown = gold if low is not gold else low.zip_with(low.eq_missing(high), low + "/" + high)
    refuse_outside(shown.filter(outside), levels, "gold", "or correct the gold")


def refuse_outside(outside: pl.Series, levels: Sequence[str], role: str, fix: str) -> None:
    """Refuse labels that are not on the scale, with the most frequent as examples.

    Raises
    ------
    DataError
        If there are any.
    """
    if not outside.is_empty():
        refuse_labels(dict(outside.value_counts().iter_rows()), levels, role, fix)


def refuse_labels(counts: Mapping[str | None, int], levels: Sequence[str], role: str, fix: str) -> NoReturn:
    """Refuse labels by the number of their rows, the most frequent as examples.

    Raises
    ------
    DataError
        Always.
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] is not None, item[0] or ""))
    raise DataError(
        f"`{role}` has labels outside `levels`, {listed(levels)}: "
        + ", ".join(f"{label!r} ({n_rows(count)})" for label, count in ordered[:_SHOWN])
        + f"; add them to `levels`, {fix}"
    )


def order_notes(n_reversed: int, n_whole: int, levels: Sequence[str]) -> list[Note]:
    """Notes on rows whose gold range is written the other way round, or spans the whole scale."""
    notes = []
    if n_reversed:
        notes.append(
            Note(
                "gold_reversed",
                f"{n_rows(n_reversed)} {'names' if n_reversed == 1 else 'name'} the more urgent end of the "
                "gold range first; ranges are read by the order of `levels`, either way round.",
            )
        )
    if n_whole:
        notes.append(
            Note(
                "gold_spans_scale",
                f"{n_rows(n_whole)} {'has' if n_whole == 1 else 'have'} a gold range that spans the whole "
                f"scale ({levels[0]} to {levels[-1]}): every label is right there. If that was a "
                "disagreement of judges and no range, correct the gold.",
                "caution",
            )
        )
    return notes
