"""What reading the stored answers again changes: labels, and the contrasts that rest on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import polars as pl

from triagestats.collect.calls import canonical
from triagestats.collect.store import Store

__all__ = ["ChangedContrast", "Rereading", "keep_readings", "reread"]

_KEY: Final = ("scenario", "model", "condition", "repetition", "judge", "metric")
_CLOSE: Final = 1e-12
"""Means of the same scores differ by less, whatever the order of summing."""


@dataclass(frozen=True, slots=True)
class ChangedContrast:
    """A difference between two conditions of a model in mean score, before and after."""

    model: str
    metric: str | None
    contrast: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        measured = f" ({self.metric})" if self.metric else ""
        return f"{self.model}, {self.contrast}{measured}: {_number(self.before)} -> {_number(self.after)}"


@dataclass(frozen=True, slots=True)
class Rereading:
    """What changed.

    Attributes
    ----------
    n_read
        Rows that were there before and after.
    labels
        How often a label became another, with both; None stands for no label.
    contrasts
        Those that changed.
    """

    n_read: int
    labels: Mapping[tuple[str | None, str | None], int]
    contrasts: tuple[ChangedContrast, ...]

    def __str__(self) -> str:
        count = sum(self.labels.values())
        lines = [f"{count:,} of {self.n_read:,} labels changed."]
        for (old, new), number in sorted(self.labels.items(), key=lambda item: (-item[1], str(item[0]))):
            lines.append(f"  {old or '(none)'} -> {new or '(none)'}: {number:,}")
        lines.append(f"{len(self.contrasts):,} contrasts changed.")
        return "\n".join([*lines, *(f"  {one}" for one in self.contrasts)])


def keep_readings(frame: pl.DataFrame, store: Store) -> None:
    """Remember in the store what was read of the answers."""
    store.keep_readings(
        {"place": place, **{name: row[name] for name in ("label", "score", "status", "reason")}}
        for place, row in _rows(frame)
    )


def reread(frame: pl.DataFrame, store: Store) -> Rereading:
    """Compare what was read now with what the store remembers."""
    before = store.readings()
    labels: dict[tuple[str | None, str | None], int] = {}
    n_read = 0
    old_scores: list[float | None] = []
    for place, row in _rows(frame):
        found = before.get(place)
        old_scores.append(None if found is None else found[1])
        if found is None:
            continue
        n_read += 1
        if found[0] != row["label"]:
            pair = (found[0], row["label"])
            labels[pair] = labels.get(pair, 0) + 1
    both = frame.with_columns(pl.Series("old_score", old_scores, dtype=pl.Float64))
    return Rereading(n_read, labels, tuple(_changed_contrasts(both)))


def _rows(frame: pl.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place of each row as text, and what was read there."""
    key = [name for name in _KEY if name in frame.columns]
    for row in frame.select(*key, pl.col("response").alias("label"), "score", "status", "reason").iter_rows(
        named=True
    ):
        yield canonical([row.get(name) for name in _KEY]), row


def _changed_contrasts(frame: pl.DataFrame) -> Iterator[ChangedContrast]:
    """Differences of mean scores over the scenarios that both conditions have."""
    metric = pl.col("metric") if "metric" in frame.columns else pl.lit(None, dtype=pl.String).alias("metric")
    cells = (
        frame.with_columns(metric)
        .group_by("model", "metric", "condition", "scenario", maintain_order=True)
        .agg(pl.col("old_score").mean(), pl.col("score").mean())
    )
    for (model, measured), rows in cells.group_by("model", "metric", maintain_order=True):
        conditions = sorted(rows["condition"].unique().to_list())
        for reference, level in combinations(conditions, 2):
            sides = [rows.filter(pl.col("condition") == name) for name in (level, reference)]
            pairs = sides[0].join(sides[1], on="scenario", suffix="_reference")
            old, new = _difference(pairs, "old_score"), _difference(pairs, "score")
            if (old is None) != (new is None) or (
                old is not None and new is not None and abs(new - old) > _CLOSE
            ):
                yield ChangedContrast(str(model), measured, f"{level} - {reference}", old, new)


def _difference(pairs: pl.DataFrame, score: str) -> float | None:
    value = pairs.select((pl.col(score) - pl.col(f"{score}_reference")).mean()).item()
    return None if value is None else float(value)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:+.4f}"
