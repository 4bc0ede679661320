"""Steps from a frame under role names to the rows of a ResponseTable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
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
    "chosen_metric",
    "joined_tasks",
    "key_order",
    "left_out",
    "no_rows",
    "one_metric",
    "present_factors",
    "refuse_lacking",
    "scale_of",
    "scenario_in_task",
    "tasks_note",
]

IN_TASKS: Final = "task"
"""The note of a table whose scenarios are task/item."""


def no_rows(columns: Sequence[str]) -> DataError:
    """The refusal of a table without rows."""
    found = f"; its columns are {listed(columns)}" if columns else " and no columns"
    return DataError(f"`data` has no rows{found}")


def refuse_lacking(roles: Assignment, columns: Iterable[str]) -> None:
    """Refuse a table without scenarios, or without anything to score.

    Raises
    ------
    DataError
        If it has no column of scenarios, and neither scores nor labels and the right labels.
    """
    if "scenario" not in roles:
        raise DataError(
            "`scenario` has no column: name the one that holds the item, question or case with "
            f"`scenario=`; the columns are {listed(columns)}"
        )
    if "score" not in roles and not ("response" in roles and "gold" in roles):
        raise DataError(
            "`score` has no column: name the one that holds it, or name the columns of the label and of "
            f"the right label with `response=` and `gold=`; the columns are {listed(columns)}"
        )


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
    counts: dict[str | None, int] = dict(frame["metric"].value_counts().iter_rows())
    wanted = chosen_metric(counts, roles, several=several)
    if wanted is None:
        return frame, ()
    kept = frame.filter(pl.col("metric") == wanted)
    return kept, left_out(wanted, frame.height - kept.height)


def chosen_metric(
    counts: Mapping[str | None, int], roles: Assignment, *, several: bool = False
) -> str | None:
    """The metric whose rows are kept, from the number of rows of each; None where all are.

    Raises
    ------
    DataError
        As `one_metric`.
    """
    present = sorted(metric for metric in counts if metric is not None)
    wanted = roles.metric
    if wanted is not None:
        if wanted not in present:
            raise DataError(
                f"`metric` names {wanted!r}, which the table does not have; choose from {listed(present)}"
            )
        return wanted
    if several:
        return None
    if len(present) > 1:
        raise DataError(
            f"`metric` has several values, {listed(present)}; choose one, for instance "
            f"`metric={present[0]!r}`"
        )
    if present and (blank := counts.get(None, 0)):
        raise DataError(
            f"`metric` is column {roles.one('metric')!r}, which is blank in {blank:,} of "
            f"{n_rows(sum(counts.values()))}; fill it in, or keep the others with `metric={present[0]!r}`"
        )
    return None


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
        raise joined_tasks()
    clusters = [
        f"cluster_{position + 1}"
        for position, name in enumerate(roles.columns.get("cluster", ()))
        if name == roles.one("scenario")
    ]
    note = tasks_note(frame["task"].n_unique())
    return frame.with_columns(joint.alias(name) for name in ("scenario", *clusters)), (note,)


def joined_tasks() -> DataError:
    """The refusal of tasks and scenarios whose joint labels are one."""
    return DataError(
        "`task` and `scenario` have labels that are one when joined, as 'a/b' with 'c' and 'a' with "
        "'b/c' would be; rename the tasks that hold a slash"
    )


def tasks_note(n_tasks: int) -> Note:
    """What a scenario is where there are several tasks."""
    return Note(IN_TASKS, f"{n_tasks} tasks: a scenario is task/item, so that tasks share none.")


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
