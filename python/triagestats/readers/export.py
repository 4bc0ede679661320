"""A response table as a file that can be read again as the same table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from triagestats.errors import ArgumentError, ReadError
from triagestats.files import SETTLED
from triagestats.roles import role_spelled
from triagestats.schema import ROLES
from triagestats.table import ResponseTable

__all__ = ["ENDINGS", "exported", "summary", "write_table"]

ENDINGS: Final = (".parquet", ".csv", ".jsonl")
_SHOWN: Final = 8
_HALVES: Final = ("gold_low", "gold_high")


def exported(table: ResponseTable) -> pl.DataFrame:
    """The rows under names that are recognised again: items without their task, one column of gold labels.

    Several condition columns keep their names, and so must be named with `condition=`; two cluster columns
    with `cluster=`.
    """
    frame = table.frame
    if "task" in frame.columns and frame["task"].n_unique() > 1:
        item = pl.col("scenario").str.slice(pl.col("task").str.len_chars() + 1)
        frame = frame.with_columns(item.alias("scenario"))
    if set(_HALVES) <= set(frame.columns) and frame["gold_low"].equals(frame["gold_high"], null_equal=True):
        frame = frame.rename({"gold_low": "gold"}).drop("gold_high")
    if len(table.factors) > 1:
        frame = frame.drop("condition").rename({factor.column: factor.name for factor in table.factors})
    own = {factor.name for factor in table.factors}
    names = {}
    for name in frame.columns:
        if name == "cluster_1" and "cluster_2" not in frame.columns:
            names[name] = "cluster"
        elif name not in ROLES and name not in own and role_spelled(name) is not None:
            names[name] = f"carried.{name}"
    return frame.rename(names)


def summary(table: ResponseTable) -> str:
    """What a table holds, in lines of text: sizes, models, tasks, metrics, statuses and notes."""
    frame = table.frame
    scored, scenarios = frame["score"].count(), frame["scenario"].n_unique()
    lines = [f"{frame.height:,} rows, {scored:,} with a score, {scenarios:,} scenarios"]
    for role in (
        "model",
        "task",
        "condition",
        "repetition",
        "metric",
        "judge",
        "cluster_1",
        "cluster_2",
        "status",
    ):
        if role in frame.columns:
            counts = frame[role].value_counts().drop_nulls().sort(role).rows()
            shown = ", ".join(f"{name} ({count:,})" for name, count in counts[:_SHOWN])
            more = f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
            lines.append(f"{role.removesuffix('_1')}: {shown}{more}")
    return "\n".join([*lines, *(f"- {note}" for note in table.notes)])


def write_table(table: ResponseTable, path: Path) -> None:
    """Write a table as parquet, csv or JSON lines, after the ending of the file.

    Raises
    ------
    ArgumentError
        If the ending is none of these.
    ReadError
        If the file cannot be written.
    """
    ending = path.suffix.lower()
    frame = exported(table)
    if ending not in ENDINGS:
        raise ArgumentError(f"`output` must end in {', '.join(ENDINGS)}; got {path.name!r}")
    try:
        if ending == ".parquet":
            frame.write_parquet(path, metadata={SETTLED: "true"})
        elif ending == ".csv":
            frame.write_csv(path)
        else:
            frame.write_ndjson(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ReadError(f"{str(path)!r} cannot be written: {error}") from error
