"""The part of a summary that is about the mixed model."""

from __future__ import annotations

import polars as pl

from triagestats.report.grid import Grid
from triagestats.report.labels import Decimals, name

__all__ = ["mixed_grid"]


def mixed_grid(mixed: pl.DataFrame, contrasts: pl.DataFrame | None, level: str) -> Grid | None:
    """Population-averaged differences of the model beside the contrasts by cluster."""
    averaged = mixed.filter(
        pl.col("estimand").str.starts_with("population-averaged") & pl.col("contrast").is_not_null()
    )
    if averaged.is_empty():
        return None
    decimals = Decimals.of(averaged["std_error"].to_list())
    direct = {}
    if contrasts is not None:
        pooled = contrasts.filter(pl.col("model").is_null() & pl.col("stratum").is_null())
        direct = {(row["term"], row["contrast"]): row for row in pooled.iter_rows(named=True)}
    rows = []
    for row in averaged.iter_rows(named=True):
        other = direct.get((row["term"], row["contrast"]))
        beside = ("", "") if other is None else (decimals.signed(other["estimate"]), decimals.interval(other))
        shown = (decimals.signed(row["estimate"]), decimals.interval(row))
        rows.append((name(row["term"]), name(row["contrast"]), *shown, *beside))
    numbers = ("mixed model", level, "by cluster", f"{level} ")
    title = "Differences of a mixed model (Bayes, averaged over new scenarios) beside those by cluster"
    return Grid(title, ("", "contrast"), numbers, tuple(rows)).without_constants()
