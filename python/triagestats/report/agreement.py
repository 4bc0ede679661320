"""The part of a summary that is about agreement: of judges, and of labels across conditions."""

from __future__ import annotations

from typing import Final

import polars as pl

from triagestats.report.grid import Grid
from triagestats.report.labels import Decimals, Row, name

__all__ = ["agreement_grid"]

_COLUMNS: Final = {
    "percent_agreement": "agreement",
    "kappa": "kappa",
    "weighted_kappa": "weighted kappa",
    "alpha_ordinal": "ordinal alpha",
}
_MOST: Final = 16


def agreement_grid(frame: pl.DataFrame, level: str) -> Grid | None:
    """Pairs of judges, then pairs of conditions, over all models; None where there is neither."""
    pooled = frame.filter(pl.col("model").is_null() & pl.col("condition").is_null())
    keys = pooled.select("term", "contrast", "judge").unique(maintain_order=True)
    shown = [column for column in _COLUMNS if column in set(pooled["estimand"])]
    rows = []
    for term, contrast, judge in keys.head(_MOST).iter_rows():
        same = pooled.filter(
            pl.col("term").eq_missing(term)
            & pl.col("contrast").eq_missing(contrast)
            & pl.col("judge").eq_missing(judge)
        )
        by_name = {row["estimand"]: row for row in same.iter_rows(named=True)}
        rows.append((term, _who(contrast, judge), *(_cell(by_name.get(column)) for column in shown)))
    if not rows:
        return None
    title = f"Agreement, {level} intervals" + ("; the others: see `agreement`" if keys.height > _MOST else "")
    return Grid(title, ("between", "which"), tuple(_COLUMNS[column] for column in shown), tuple(rows))


def _who(contrast: str, judge: str | None) -> str:
    return name(contrast) + (f" ({name(judge)})" if judge else "")


def _cell(row: Row | None) -> str:
    if row is None or row["estimate"] is None:
        return "undefined"
    return Decimals().estimate(row)
