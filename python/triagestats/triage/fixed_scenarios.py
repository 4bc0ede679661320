"""Errors that speak of these scenarios only: fresh answers of the same models to the same scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from triagestats.intervals import jackknife_t, wilson
from triagestats.schema import Weights
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["HEADING", "FixedError", "error_of_contrast", "error_of_labels", "error_of_rate", "within_cells"]

HEADING = "these scenarios only"
_SHARE = "_share"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class FixedError:
    """An estimate that is linear in responses, and its error from answer to answer.

    Attributes
    ----------
    estimate
        The estimate.
    variance, df
        `sum_c w_c^2 s_c^2 / n_c` over cells of the same request, and its degrees of freedom by
        Satterthwaite.
    n, n_cells
        Responses and cells.
    singles
        Cells with one response, whose spread is unknown.
    is_rate
        Whether it lies between 0 and 1; else it is a difference of two that do.
    unit
        What is one draw.
    """

    estimate: float
    variance: float
    df: float
    n: int
    n_cells: int
    singles: tuple[str, ...]
    is_rate: bool
    unit: Literal["response", "label"] = "response"

    def row(self, conf_level: float) -> dict[str, Any]:
        """Interval, status and method of a tidy row."""
        heading = HEADING if self.unit == "response" else f"{HEADING}, each label a draw"
        cells = f"{self.n_cells:,} scenario x model cells"
        if self.singles:
            more = f" and {len(self.singles) - _SHOWN} more" if len(self.singles) > _SHOWN else ""
            return {
                "std_error": None,
                "conf_low": None,
                "conf_high": None,
                "status": "undefined",
                "reason": f"{heading}: {len(self.singles)} of {cells} hold one {self.unit}, whose spread is "
                f"unknown ({', '.join(self.singles[:_SHOWN])}{more})",
                "method": f"{heading}: none",
            }
        if self.variance <= ROUNDING**2:
            same = f"every {self.unit} of a cell is the same"
            found: dict[str, Any] = {"std_error": None, "status": "degenerate"}
            if not self.is_rate:
                none = {"conf_low": None, "conf_high": None, "method": f"{heading}: none"}
                return found | none | {"reason": f"{heading}: {same}, so that there is no error to see"}
            low, high = wilson(self.estimate, self.n, conf_level)
            return found | {
                "conf_low": low,
                "conf_high": high,
                "reason": f"{heading}: {same}; Wilson's interval of {self.n:,} {self.unit}s is shown",
                "method": f"{heading}: Wilson",
            }
        error = np.array([self.variance**0.5])
        ends = jackknife_t(np.array([self.estimate]), error, np.array([self.df]), conf_level)
        least = 0.0 if self.is_rate else -1.0
        return {
            "std_error": self.variance**0.5,
            "conf_low": max(least, float(ends.low[0])),
            "conf_high": min(1.0, float(ends.high[0])),
            "status": "warning",
            "reason": f"{heading}: it speaks of fresh answers of the same models, not of other scenarios"
            if self.unit == "response"
            else f"{heading}: labels of one response are taken as independent",
            "method": f"{heading}: spread within {cells}, t with {self.df:.1f} df",
        }


def within_cells(values: Array, shares: Array, cells: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Variance that each cell adds to `sum_i a_i y_i`, and the size of each cell.

    `n / (n - 1) * sum_i a_i^2 (y_i - m)^2` with m the mean of the cell by the shares; with equal shares
    that is `w^2 s^2 / n`, w being their sum. A cell of one response has none (NaN).
    """
    size = np.bincount(cells)
    whole = np.bincount(cells, weights=shares)
    mean = np.bincount(cells, weights=shares * values) / whole
    squares = np.bincount(cells, weights=(shares * (values - mean[cells])) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance: Array = np.where(size > 1, size / (size - 1) * squares, np.nan)
    return variance, size


def error_of_rate(responses: pl.DataFrame, *, weights: Weights) -> FixedError:
    """The error of the mean of some responses.

    Parameters
    ----------
    responses
        One row a response: `scenario`, `model`, `variant`, `value`, and `weight`, its number of labels.
    weights
        `row`: every label weighs the same, `w_c = n_c / N`; `scenario`: as in `analyze`.
    """
    if weights == "row":
        rows = responses.with_columns((pl.col("weight") / pl.col("weight").sum()).alias(_SHARE))
    else:
        rows = responses.with_columns((_within(["scenario", "model", "variant"]) * _equal()).alias(_SHARE))
    return _error(rows, ["scenario", "model"], is_rate=True)


def error_of_labels(labels: pl.DataFrame) -> FixedError:
    """The error of the mean of some labels where each is taken as a draw of its own.

    `labels` has one row a label: `scenario`, `model` and `value`. Every label weighs the same.
    """
    rows = labels.with_columns((1 / pl.len()).alias(_SHARE))
    return replace(_error(rows, ["scenario", "model"], is_rate=True), unit="label")


def error_of_contrast(
    responses: pl.DataFrame, level: str, reference: str, *, weights: Weights
) -> FixedError | None:
    """The error of level minus reference over the cells seen at both; None where there is none.

    `responses` also has the `condition`. With `weights="row"` every matched cell weighs the same.
    """
    cell = ["scenario", "model", "variant"]
    rows = responses.filter(pl.col("condition").is_in([level, reference]))
    rows = rows.filter(pl.col("condition").n_unique().over(cell) == 2)
    if rows.is_empty():
        return None
    of_cell = 1 / pl.struct(cell).n_unique() if weights == "row" else _equal()
    sign = pl.when(pl.col("condition") == level).then(1.0).otherwise(-1.0)
    rows = rows.with_columns((sign * _within([*cell, "condition"]) * of_cell).alias(_SHARE))
    return _error(rows, [*cell, "condition"], is_rate=False)


def _within(cell: Sequence[str]) -> pl.Expr:
    """Share of a response in its cell."""
    return pl.col("weight") / pl.col("weight").sum().over(cell)


def _equal() -> pl.Expr:
    """Share of a cell where models, scenarios of a model and variants of a scenario weigh the same."""
    models = pl.col("model").n_unique()
    scenarios = pl.col("scenario").n_unique().over("model")
    variants = pl.struct("variant").n_unique().over("scenario", "model")
    return 1 / (models * scenarios * variants)


def _error(rows: pl.DataFrame, cell: Sequence[str], *, is_rate: bool) -> FixedError:
    groups = rows.select(cell).unique(maintain_order=True).with_row_index("_cell")
    cells = rows.join(groups, on=cell, how="left", nulls_equal=True, maintain_order="left")["_cell"]
    values, shares = rows["value"].to_numpy(), rows[_SHARE].to_numpy()
    variance, size = within_cells(values, shares, cells.to_numpy().astype(np.int64))
    names = [" x ".join(part for part in row[1:] if part) for row in groups.iter_rows()]
    total = float(variance.sum())
    squares = float((variance[size > 1] ** 2 / (size[size > 1] - 1)).sum())
    return FixedError(
        estimate=float(shares @ values),
        variance=total,
        df=total**2 / squares if squares > 0 else float("nan"),
        n=rows.height,
        n_cells=groups.height,
        singles=tuple(name for name, n in zip(names, size, strict=True) if n < 2),
        is_rate=is_rate,
    )
