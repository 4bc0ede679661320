"""Counts of labels by gold range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from triagestats.triage.outcomes import DIRECTION, HIGH, LABEL, LOW, Outcomes, direction_of

__all__ = ["CONFUSION_COLUMNS", "confusion_of"]

CONFUSION_COLUMNS: Final = (
    "condition",
    "model",
    "gold",
    "label",
    "direction",
    "n_labels",
    "n_responses",
)
_RESPONSE: Final = ("scenario", "model", "condition", "variant", "repetition")
_SHARE: Final = "_share"


def confusion_of(outcomes: Outcomes, levels: Sequence[str]) -> pl.DataFrame:
    """Counts of labels by gold range for each condition, pooled over models (model null) and by model.

    Every label of the scale has a row beside every gold range that occurs; answers that could not be read
    have the label null. `n_responses` counts a response once, its labels share it.
    """
    frame = outcomes.frame.filter(pl.col(DIRECTION).is_not_null())
    response = [name for name in _RESPONSE if name in frame.columns]
    frame = frame.with_columns((1 / pl.len().over(response)).alias(_SHARE))
    for name in ("condition", "model"):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    place = {level.label: code for code, level in enumerate(outcomes.design.levels)}
    frame = frame.with_columns(pl.col("condition").replace_strict(place, default=0).alias("_level"))
    golds = frame.select(LOW, HIGH).unique()
    labels = pl.DataFrame({LABEL: range(len(levels))}, schema={LABEL: pl.Int64})
    grid = golds.join(labels, how="cross")
    pooled = frame.with_columns(pl.lit(None, pl.String).alias("model"))
    parts = [_counted(pooled, grid)]
    if frame["model"].count():
        parts.append(_counted(frame, grid))
    names = dict(enumerate(levels))
    low, high, label = (
        pl.col(column).replace_strict(names, default=None, return_dtype=pl.String)
        for column in (LOW, HIGH, LABEL)
    )
    gold = pl.when(pl.col(LOW) == pl.col(HIGH)).then(low).otherwise(low + "/" + high)
    return (
        pl.concat(parts)
        .with_columns(pl.col(LABEL).is_null().alias("_unread"))
        .sort("_level", "model", LOW, HIGH, "_unread", LABEL)
        .select(
            "condition",
            "model",
            gold.alias("gold"),
            label.alias("label"),
            direction_of(pl.col(LABEL).is_null()).alias("direction"),
            "n_labels",
            "n_responses",
        )
    )


def _counted(frame: pl.DataFrame, grid: pl.DataFrame) -> pl.DataFrame:
    """Counts by gold and label within groups, with a row of zeros where a label was not given."""
    groups = ["_level", "condition", "model"]
    cell = [*groups, LOW, HIGH, LABEL]
    counts = frame.group_by(cell).agg(
        pl.len().cast(pl.Int64).alias("n_labels"), pl.col(_SHARE).sum().alias("n_responses")
    )
    whole = frame.select(groups).unique().join(grid, how="cross").select(cell)
    unread = counts.filter(pl.col(LABEL).is_null()).select(cell)
    return (
        pl.concat([whole, unread])
        .join(counts, on=cell, how="left", nulls_equal=True)
        .with_columns(pl.col("n_labels").fill_null(0), pl.col("n_responses").fill_null(0.0))
    )
