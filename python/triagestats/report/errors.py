"""The part of a summary that is about the direction of error."""

from __future__ import annotations

from typing import Final

import polars as pl

from triagestats.report.grid import Grid
from triagestats.report.labels import Decimals, name

__all__ = ["errors_grid"]

_COLUMNS: Final = {
    "under_rate": "too low",
    "over_rate": "too high",
    "unreadable_rate": "unreadable",
    "net_direction": "too high - too low",
}


def errors_grid(frame: pl.DataFrame, level: str) -> Grid | None:
    """Shares of labels below and above the gold range by condition, over all models."""
    pooled = frame.filter(
        pl.col("model").is_null() & pl.col("stratum").is_null() & pl.col("contrast").is_null()
    )
    shown = [column for column in _COLUMNS if column in set(pooled["estimand"])]
    if pooled.is_empty():
        return None
    cell = {(row["condition"], row["estimand"]): row for row in pooled.iter_rows(named=True)}
    conditions = pooled["condition"].unique(maintain_order=True).to_list()
    rows = tuple(
        (name(condition) or "all", *(Decimals().estimate(cell[condition, column]) for column in shown))
        for condition in conditions
    )
    title = f"Direction of error, {level} intervals"
    return Grid(title, ("condition",), tuple(_COLUMNS[column] for column in shown), rows)
