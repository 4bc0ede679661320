"""Mean scores of single runs or forms, from numbers or from a response table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from triagestats.design import Design, design_of
from triagestats.errors import ArgumentError, DataError, DesignError
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.table import ResponseTable
from triagestats.triage.selection import rows_where, table_of
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["RUNS_SCHEMA", "RunValues", "Unit", "runs_of_numbers", "runs_of_table", "table_of_levels"]

Unit = Literal["run", "form"]

_COLUMN: Final[dict[Unit, str]] = {"run": "repetition", "form": "variant"}
RUNS_SCHEMA: Final = pl.Schema(
    {"condition": pl.String, "unit": pl.String, "mean": pl.Float64, "n_rows": pl.Int64}
)


@dataclass(frozen=True, slots=True, eq=False)
class RunValues:
    """Mean scores of the runs of one condition.

    Attributes
    ----------
    name
        The condition.
    labels
        Names of the runs, or their places where none are known.
    values
        One mean score a run, shape (n,).
    n_rows
        Responses behind each; empty where the means alone are known.
    """

    name: str
    labels: tuple[str, ...]
    values: Array
    n_rows: tuple[int, ...] = ()

    def frame(self) -> pl.DataFrame:
        """One row a run."""
        counts = self.n_rows or (None,) * len(self.values)
        return pl.DataFrame(
            {
                "condition": [self.name] * len(self.values),
                "unit": self.labels,
                "mean": self.values,
                "n_rows": counts,
            },
            schema=RUNS_SCHEMA,
        )

    def only(self, labels: Sequence[str]) -> RunValues:
        """The runs of these names, in their order."""
        places = [self.labels.index(label) for label in labels]
        return RunValues(
            self.name,
            tuple(labels),
            self.values[places],
            tuple(self.n_rows[place] for place in places) if self.n_rows else (),
        )


def runs_of_numbers(values: object, argument: str) -> RunValues:
    """One number a run.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is no vector of numbers.
    DataError
        If one is missing.
    """
    found = numbers_of(values, argument, dimensions=(1,))
    if gaps := int(np.isnan(found).sum()):
        raise DataError(f"`{argument}` is missing for {gaps:,} of {len(found):,} runs; leave such runs out")
    return RunValues(argument, tuple(str(place + 1) for place in range(len(found))), found)


def table_of_levels(
    data: object, levels: Sequence[object] | None, arguments: Sequence[str], model: object
) -> tuple[ResponseTable, tuple[str, ...]]:
    """The rows of one model at some levels of the one condition column, and the levels as text.

    Raises
    ------
    ArgumentError
        If the table has not one condition column, a level is none of its own, or models are several and
        none is named.
    """
    table = table_of(data, None)
    if len(table.factors) != 1:
        shown = listed([factor.name for factor in table.factors]) if table.factors else "none"
        raise ArgumentError(
            f"`data` must have one condition column here; its condition columns are {shown}. Keep the rows "
            "of one level of the others, and name the one to compare with ts.ResponseTable(..., condition=)"
        )
    factor = table.factors[0]
    wanted = factor.levels if levels is None else tuple(str(label_of(level)) for level in levels)
    for level, argument in zip(wanted, arguments, strict=False):
        if level not in factor.levels:
            raise ArgumentError(
                f"`{argument}` is {level!r}, which is no level of {factor.name!r}; choose from "
                f"{listed(factor.levels)}"
            )
    rows: dict[str, object] = {"condition": list(wanted)}
    names = sorted(table.frame["model"].unique()) if "model" in table.frame.columns else []
    if model is not None:
        if not names:
            raise ArgumentError(f"`model` is {model!r}, and the table has no model column")
        rows["model"] = [model]
    elif len(names) > 1:
        raise ArgumentError(
            f"`model` is needed: a run is of one model, and the table has {listed(names)}; name one"
        )
    return rows_where(table, rows, "model" if model is not None else "data"), wanted


def runs_of_table(
    table: ResponseTable, levels: Sequence[str], unit: Unit
) -> tuple[Design, tuple[RunValues, ...], tuple[Note, ...]]:
    """Mean scores of the runs at each level, over the questions that are scored at all levels.

    Raises
    ------
    DesignError
        If the table does not tell runs apart, or no question is scored at all levels.
    """
    column = _COLUMN[unit]
    design = design_of(table)
    if column not in design.responses.columns:
        raise DesignError(
            f"the table has no {column} column, which tells the {unit}s apart; name it with "
            f"ts.ResponseTable(..., {column}=)"
        )
    codes = {level.label: code for code, level in enumerate(design.levels)}
    scored = design.responses.filter(
        pl.col("score").is_not_null() & pl.col("level").is_in([codes[level] for level in levels])
    )
    shared = scored.group_by("unit").agg(pl.col("level").n_unique()).filter(pl.col("level") == len(levels))
    if shared.is_empty():
        raise DesignError(f"no question is scored at all of {listed(levels)}")
    kept = scored.filter(pl.col("unit").is_in(shared["unit"].implode()))
    means = (
        kept.group_by("level", pl.col(column).cast(pl.String).alias("run"))
        .agg(pl.col("score").mean(), pl.len().cast(pl.Int64).alias("n"))
        .with_columns(pl.col("run").cast(pl.Float64, strict=False).alias("number"))
        .sort("number", "run", nulls_last=True)
    )
    notes = []
    if lost := scored["unit"].n_unique() - shared.height:
        message = f"{lost:,} questions are not scored at all of {listed(levels)}, and are in no {unit}."
        notes.append(Note("unshared", message, "caution"))
    sizes = means["n"].to_list()
    if len(set(sizes)) > 1:
        message = (
            f"The {unit}s rest on {min(sizes):,} to {max(sizes):,} responses: their means are not of the "
            "same questions throughout."
        )
        notes.append(Note("uneven_runs", message, "caution"))
    found = []
    for level in levels:
        part = means.filter(pl.col("level") == codes[level])
        labels = tuple("" if label is None else str(label) for label in part["run"])
        found.append(RunValues(level, labels, part["score"].to_numpy(), tuple(part["n"].to_list())))
    return design, tuple(found), tuple(notes)
