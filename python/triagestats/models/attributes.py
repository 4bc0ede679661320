"""Attributes of scenarios: columns that are constant in a scenario, from the table or from a second one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from triagestats.canonical import ordered_levels
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, DesignError
from triagestats.ingest import to_polars
from triagestats.labels import as_text, in_task, listed
from triagestats.models.formula import unknown_names
from triagestats.roles import role_spelled
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Attribute", "attribute_names", "columns_by_scenario", "read_attributes"]


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """One attribute of each scenario.

    Attributes
    ----------
    name
        The column.
    kind
        `number`; `flag`: 0 or 1; `category`.
    values
        Numbers, or the places of labels among `levels`; NaN where missing. Shape (S,).
    levels
        Of a category, in the order of an Enum, else sorted.
    """

    name: str
    kind: Literal["number", "flag", "category"]
    values: Array
    levels: tuple[str, ...] = ()

    def coded(self, rows: NDArray[np.bool_]) -> tuple[tuple[str, ...], Array, str | None]:
        """Names and columns of its regressors over some scenarios, and the reference of a category.

        A category has one column for each level but the first that occurs.
        """
        values = self.values[rows]
        if self.kind != "category":
            return (self.name,), values[:, None], None
        present = np.unique(values).astype(np.int64)
        names = tuple(f"{self.name}[T.{self.levels[code]}]" for code in present[1:])
        columns = (values[:, None] == present[1:]).astype(np.float64)
        return names, columns, self.levels[present[0]]


def attribute_names(attributes: object) -> tuple[str, ...]:
    """The attributes that an argument names.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        If it names none, or one twice.
    """
    if isinstance(attributes, str):
        return (attributes,)
    if not isinstance(attributes, Sequence) or not all(isinstance(name, str) for name in attributes):
        raise ArgumentTypeError(
            "`attributes` must be a column, or a list of columns, that are constant in a scenario; "
            f"got {attributes!r}"
        )
    if not attributes or len(set(attributes)) < len(attributes):
        raise ArgumentError(f"`attributes` must name one column or more, each once; got {list(attributes)}")
    return tuple(attributes)


def read_attributes(
    table: ResponseTable, names: Sequence[str], scenarios: object, labels: Sequence[str]
) -> tuple[Attribute, ...]:
    """Attributes of the scenarios with the given labels.

    Raises
    ------
    ArgumentError
        If a name is that of no column, or of one in the table and one in `scenarios`.
    DesignError
        If an attribute varies in a scenario.
    DataError
        If it holds neither numbers nor labels.
    """
    return tuple(
        _attribute(column, name) for name, column in columns_by_scenario(table, names, scenarios, labels)
    )


def columns_by_scenario(
    table: ResponseTable,
    names: Sequence[str],
    scenarios: object,
    labels: Sequence[str],
    argument: str = "attributes",
) -> list[tuple[str, pl.Series]]:
    """Columns with one value a scenario, null where there is none; `read_attributes` says what it raises."""
    second = None if scenarios is None else _second(table, scenarios)
    known = [*table.frame.columns, *(second.columns if second is not None else ())]
    found = []
    for name in names:
        own = _own_name(table, name)
        in_second = second is not None and name in second.columns
        if own is not None and in_second:
            raise ArgumentError(
                f"`{argument}` names {name!r}, which both the table and `scenarios` have; rename or drop one"
            )
        if own is None and not in_second:
            unknown_names([name], known, argument)
        frame = second if in_second and second is not None else table.frame
        found.append((name, _column(frame, name if in_second else str(own), name, labels)))
    return found


def _own_name(table: ResponseTable, name: str) -> str | None:
    """The column of the frame that a name stands for: its own, or that of the role which it plays."""
    if name in table.frame.columns:
        return name
    roles = {columns[0]: role for role, columns in table.roles.columns.items() if len(columns) == 1}
    own = roles.get(name)
    return own if own in table.frame.columns else None


def _second(table: ResponseTable, scenarios: object) -> pl.DataFrame:
    """The second table with its scenarios under the labels of the first."""
    frame = to_polars(scenarios, "scenarios").frame
    scenario = _column_for(frame, "scenario", table)
    label = as_text(frame[scenario], "scenario").alias("scenario")
    rest = frame.drop(scenario)
    if "task" in table.frame.columns and table.frame["task"].n_unique() > 1:
        task = _column_for(frame, "task", table)
        joint = pl.DataFrame([as_text(frame[task], "task").alias("task"), label])
        label = joint.select(in_task().alias("scenario")).to_series()
    rest = rest.drop("scenario", strict=False).with_columns(label)
    if not rest["scenario"].is_in(table.frame["scenario"].unique().to_list()).any():
        raise DataError(
            f"`scenarios`: column {scenario!r} has no scenario of the table, such as "
            f"{table.frame['scenario'][0]!r}; its own are such as {rest['scenario'][0]!r}"
        )
    return rest


def _column_for(frame: pl.DataFrame, role: str, table: ResponseTable) -> str:
    same = table.roles.one(role)
    if same in frame.columns:
        return str(same)
    found = [name for name in frame.columns if role_spelled(name) == role]
    if len(found) != 1:
        raise ArgumentError(
            f"`scenarios` must have one column that names the {role}, {same!r} as in the table; its columns "
            f"are {listed(frame.columns)}"
        )
    return found[0]


def _column(frame: pl.DataFrame, column: str, name: str, labels: Sequence[str]) -> pl.Series:
    """The value of a column in each scenario, null where it is blank in all rows.

    Raises
    ------
    DesignError
        If a scenario has several values.
    """
    values = pl.col(column)
    if frame[column].dtype.is_float():
        values = values.fill_nan(None)
    pairs = frame.select(pl.col("scenario"), values.alias("value")).drop_nulls().unique()
    split = pairs.filter(pl.col("scenario").is_duplicated()).sort("scenario", "value")
    if split.height:
        scenario = split["scenario"][0]
        some = split.filter(pl.col("scenario") == scenario)["value"].head(2).to_list()
        raise DesignError(
            f"{name!r} is no attribute of scenarios: it is {some[0]!r} and {some[1]!r} in scenario "
            f"{scenario!r}, and varies in {split['scenario'].n_unique():,} scenarios. An attribute must be "
            "constant in a scenario; one that differs by condition needs a column for each condition"
        )
    wanted = pl.DataFrame({"scenario": labels}, schema={"scenario": pl.String})
    return wanted.join(pairs, on="scenario", how="left", maintain_order="left")["value"].alias(name)


def _attribute(series: pl.Series, name: str) -> Attribute:
    if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        values = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
        if np.isinf(values).any():
            raise DataError(f"attribute {name!r} holds infinite values; make them missing")
        is_flag = bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())
        return Attribute(name, "flag" if is_flag else "number", values)
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise DataError(
            f"attribute {name!r} holds {series.dtype}; expected numbers, true and false, or labels"
        )
    levels, _ = ordered_levels(series)
    places = {level: float(code) for code, level in enumerate(levels)}
    codes = as_text(series, name).replace_strict(places, default=None, return_dtype=pl.Float64)
    return Attribute(name, "category", codes.fill_null(np.nan).to_numpy(), levels)
