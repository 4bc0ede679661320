"""Responses counted by condition, model, subgroup and status, with the moments of their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from triagestats.design import Design

__all__ = ["Moments", "Tally", "pooled", "tally_of"]


@dataclass(frozen=True, slots=True)
class Moments:
    """Number, mean and sum of squared deviations of some values."""

    n: int
    mean: float
    squares: float

    @property
    def deviation(self) -> float:
        """Standard deviation, with n - 1."""
        return math.sqrt(self.squares / (self.n - 1)) if self.n > 1 else math.nan


def pooled(parts: pl.DataFrame) -> Moments:
    """Moments of all values from those of parts, rows of `scored`, `mean` and `squares`.

    Means and squared deviations combine without sums of squares of the values themselves, so that
    nothing cancels (Chan, T. F., Golub, G. H. and LeVeque, R. J. (1983), The American Statistician 37(3)).
    """
    parts = parts.filter(pl.col("scored") > 0)
    n = int(parts["scored"].sum())
    if n == 0:
        return Moments(0, math.nan, 0.0)
    mean = float((parts["mean"] * parts["scored"]).sum()) / n
    between = float((parts["scored"] * (parts["mean"] - mean) ** 2).sum())
    return Moments(n, mean, float(parts["squares"].sum()) + between)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of a table.

    Attributes
    ----------
    n_rows, n_cells
        Rows, and cells with a score.
    n_judges
        Judges; None without a column of them.
    responses
        By `level` and `model` (codes), `stratum` (null without) and `status`: `responses`, those with a
        score (`scored`), their sum (`total`), their `mean`, and the sum of their squared deviations
        (`squares`).
    """

    n_rows: int
    n_cells: int
    n_judges: int | None
    responses: pl.DataFrame

    def of(self, *, level: int | None = None, model: int | None = None) -> pl.DataFrame:
        """The counts of one level, one model, or both."""
        chosen = pl.lit(value=True)
        if level is not None:
            chosen &= pl.col("level") == level
        if model is not None:
            chosen &= pl.col("model") == model
        return self.responses.filter(chosen)


def tally_of(design: Design, n_rows: int, n_judges: int | None) -> Tally:
    """The counts of a design; rows and judges are those of its table."""
    responses = design.responses
    if "stratum" not in responses.columns:
        responses = responses.with_columns(pl.lit(None, pl.String).alias("stratum"))
    score = pl.col("score")
    cell = [name for name in ("unit", "model", "variant", "level") if name in responses.columns]
    return Tally(
        n_rows=n_rows,
        n_cells=responses.filter(score.is_not_null()).select(cell).n_unique(),
        n_judges=n_judges,
        responses=responses.group_by("level", "model", "stratum", "status")
        .agg(
            pl.len().cast(pl.Int64).alias("responses"),
            score.count().cast(pl.Int64).alias("scored"),
            score.sum().alias("total"),
            score.mean().alias("mean"),
            ((score - score.mean()) ** 2).sum().alias("squares"),
        )
        .sort("level", "model", "stratum", "status"),
    )
