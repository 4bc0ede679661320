"""Steps from a frame under role names to the rows of a ResponseTable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

import polars as pl

from triagestats.canonical import Factor
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.labels import in_task, label_of, listed, n_rows
from triagestats.results import Note
from triagestats.roles import Assignment
from triagestats.schema import KEY_ROLES, ROLES

__all__ = [
    "IN_TASKS",
    "carried_columns",
    "key_order",
    "left_out",
    "one_metric",
    "present_factors",
    "scale_of",
    "scenario_in_task",
]

IN_TASKS: Final = "task"
"""The note of a table whose scenarios are task/item."""


def scale_of(levels: Iterable[object] | None) -> tuple[str, ...] | None:
    """The response scale as labels.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is no list of two or more different labels.
    """
    if levels is None:
        return None
    if isinstance(levels, str | Mapping | Set) or not isinstance(levels, Iterable):
        raise ArgumentTypeError(
            "`levels` must be a list of labels from least to most urgent, such as ['A', 'B', 'C']; "
            f"got {type(levels).__name__}"
        )
    given = [label_of(level) for level in levels]
    scale = tuple(level for level in given if level is not None)
    if len(scale) < max(2, len(given)) or len(set(scale)) < len(scale):
        raise ArgumentError(
            f"`levels` must hold two or more different labels, each once and none blank; got {given}"
        )
    return scale


def one_metric(
    frame: pl.DataFrame, roles: Assignment, *, several: bool = False
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """The rows of the metric that is wanted, or of the only one; of all where `several` may stay.

    Raises
    ------
    DataError
        If there is no such metric, several where one is needed, or blank ones.
    """
    if "metric" not in frame.columns:
        return frame, ()
    present = frame["metric"].unique().drop_nulls().sort().to_list()
    wanted = roles.metric
    if wanted is not None:
        if wanted not in present:
            raise DataError(
                f"`metric` names {wanted!r}, which the table does not have; choose from {listed(present)}"
            )
        kept = frame.filter(pl.col("metric") == wanted)
        return kept, left_out(wanted, frame.height - kept.height)
    if several:
        return frame, ()
    if len(present) > 1:
        raise DataError(
            f"`metric` has several values, {listed(present)}; choose one, for instance "
            f"`metric={present[0]!r}`"
        )
    if present and (blank := frame["metric"].null_count()):
        raise DataError(
            f"`metric` is column {roles.one('metric')!r}, which is blank in {blank:,} of "
            f"{n_rows(frame.height)}; fill it in, or keep the others with `metric={present[0]!r}`"
        )
    return frame, ()


def left_out(metric: str, left: int) -> tuple[Note, ...]:
    """How many rows of other metrics were left out."""
    message = f"Metric {metric!r}; {n_rows(left)} of other metrics {'is' if left == 1 else 'are'} left out."
    return (Note("metric", message),) if left else ()


def scenario_in_task(frame: pl.DataFrame, roles: Assignment) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Scenarios, and clusters that are scenarios, as task/item where there are several tasks.

    Raises
    ------
    DataError
        If two of these labels are one.
    """
    if "task" not in frame.columns or frame["task"].n_unique() < 2:
        return frame, ()
    joint = frame.select(in_task()).to_series()
    if joint.n_unique() < frame.select("task", "scenario").n_unique():
        raise DataError(
            "`task` and `scenario` have labels that are one when joined, as 'a/b' with 'c' and 'a' with "
            "'b/c' would be; rename the tasks that hold a slash"
        )
    clusters = [
        f"cluster_{position + 1}"
        for position, name in enumerate(roles.columns.get("cluster", ()))
        if name == roles.one("scenario")
    ]
    note = Note(
        IN_TASKS,
        f"{frame['task'].n_unique()} tasks: a scenario is task/item, so that tasks share none.",
    )
    return frame.with_columns(joint.alias(name) for name in ("scenario", *clusters)), (note,)


def key_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows sorted by key, so that the order in which they came changes nothing."""
    key = [role for role in KEY_ROLES if role in frame.columns]
    return frame.sort(key, nulls_last=False, maintain_order=True)


def carried_columns(frame: pl.DataFrame) -> list[str]:
    """Columns that play no role."""
    own = {*ROLES, "cluster_1", "cluster_2"}
    return [name for name in frame.columns if name not in own and not name.startswith("condition[")]


def present_factors(frame: pl.DataFrame, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Levels that are left after rows of other metrics went."""
    present = {f.column: set(frame[f.column].unique()) for f in factors}
    return tuple(
        Factor(f.name, f.column, tuple(v for v in f.levels if v in present[f.column]), f.declared)
        for f in factors
    )
