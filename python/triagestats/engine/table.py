"""The responses that an engine holds, under role names, with what was asked of the engine about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.arguments import valid_choice
from triagestats.canonical import Factor, blank_identifier, joined_conditions
from triagestats.engine.held import SPLIT, Held
from triagestats.engine.identifiers import factor_column, factors_of, infinite, ragged, role_columns
from triagestats.engine.scores import refuse_infinite, scored_rows
from triagestats.errors import ArgumentTypeError, DesignError
from triagestats.labels import as_text
from triagestats.results import Note
from triagestats.roles import Assignment, RoleArgument, assign_roles
from triagestats.schema import Unparsed
from triagestats.table_steps import (
    chosen_metric,
    left_out,
    no_rows,
    refuse_lacking,
    scale_of,
    tasks_note,
)

if TYPE_CHECKING:
    pass

__all__ = ["HeldTable", "held_table"]

_GROUPS: Final = ("metric", "task", "model", "stratum")
_MUST: Final = ("scenario", "model", "condition", "cluster")


@dataclass(frozen=True, slots=True, eq=False)
class HeldTable:
    """A table whose rows stay in the engine.

    Attributes
    ----------
    held
        The rows under role names: `scenario`, `model`, `factor_0`, ..., `value`, `scored`, `status`.
    roles, factors, higher_is_better, notes
        As in `ResponseTable`.
    groups
        The combinations of model, conditions and stratum that occur, as the engine holds them and, with the
        ending `_label`, as text.
    n_rows, n_tasks
        Rows of the metric that is analysed, and tasks.
    metric
        That metric.
    """

    held: Held
    roles: Assignment
    factors: tuple[Factor, ...]
    higher_is_better: bool
    groups: pl.DataFrame
    n_rows: int
    n_tasks: int
    metric: str | None
    notes: tuple[Note, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The role columns."""
        return tuple(self.held.frame.collect_schema().names())

    def of(self, held: Held) -> HeldTable:
        """The same table with some of the rows."""
        return replace(self, held=held)

    def values_of(self, name: str) -> dict[str, Any]:
        """Labels of a column of `groups`, with the values that the engine compares."""
        if name not in self.groups.columns:
            return {}
        pairs = self.groups.select(f"{name}_label", name).unique()
        return {label: value for label, value in pairs.iter_rows() if label is not None}


def held_table(
    held: Held,
    given: Mapping[str, RoleArgument],
    *,
    levels: Sequence[str] | None,
    higher_is_better: bool | None,
    unparsed: Unparsed | None,
) -> HeldTable:
    """A table whose columns play the roles that were given or recognised, scored in the engine.

    Raises
    ------
    ArgumentError, ArgumentTypeError, RoleError, DataError
        As `ResponseTable`, and for columns that the engine cannot compare.
    DesignError
        If two cluster columns are named.
    """
    import narwhals as nw

    scale = scale_of(levels)
    unparsed = "as scored" if unparsed is None else unparsed
    valid_choice("unparsed", unparsed, Unparsed)
    if higher_is_better is not None and not isinstance(higher_is_better, bool):
        raise ArgumentTypeError(f"`higher_is_better` must be True or False; got {higher_is_better!r}")
    schema = held.frame.collect_schema()
    roles = assign_roles(schema.names(), given)
    refuse_lacking(roles, schema.names())
    clusters = roles.columns.get("cluster", ())
    if len(clusters) > 1:
        raise DesignError(
            f"`cluster` names {' and '.join(map(repr, clusters))}, and two crossed columns need the rows in "
            f"memory, and {held.engine} holds them: collect the table first, or name one column"
        )
    groups, uneven = _groups(held, schema, roles)
    plain = {name for name, changed in uneven.items() if not changed}
    together = roles.one("cluster") or roles.columns["scenario"][0]
    split = SPLIT
    while split in schema:
        split += "_"
    held = held.with_split(together, split, strip=together in uneven and together not in plain)
    coded = held.engine == "polars"
    columns = role_columns(schema, roles, plain=plain, coded=coded)
    table = held.of(held.frame.select(*columns, *([nw.col(split).alias(SPLIT)] if coded else [])))
    n_rows = int(groups["n"].sum())
    _refuse_blanks(groups, roles, n_rows)
    metric: str | None = None
    notes: tuple[Note, ...] = ()
    if "metric" in groups.columns:
        groups, table, metric, notes = _of_metric(groups, table, roles)
    if "infinite" in groups.columns and groups["infinite"].sum():
        there = nw.col("given")
        refuse_infinite(table, ~there.is_null() & ~there.is_nan() & ~there.is_finite())
    n_tasks = groups["task_label"].n_unique() if "task" in groups.columns else 1
    if n_tasks > 1:
        notes = (*notes, tasks_note(n_tasks))
    factors = factors_of(schema, roles, groups)
    conditions = [factor_column(position) for position in range(len(factors))]
    _refuse_joined(groups, factors)
    table, scoring_notes = scored_rows(
        table,
        levels=scale,
        unparsed=unparsed,
        answered=_answered(groups, conditions),
    )
    return HeldTable(
        held=table,
        roles=roles,
        factors=factors,
        higher_is_better=True if higher_is_better is None else higher_is_better,
        groups=groups,
        n_rows=int(groups["n"].sum()),
        n_tasks=n_tasks,
        metric=metric,
        notes=(*notes, *scoring_notes),
    )


def _answered(groups: pl.DataFrame, conditions: list[str]) -> list[dict[str, Any]]:
    """The conditions in which some row has a response; one without columns where there is no condition."""
    if "answered" not in groups.columns:
        return []
    found = groups.filter(pl.col("answered") > 0)
    if found.is_empty() or not conditions:
        return [{}] if found.height else []
    return list(found.select(conditions).unique().iter_rows(named=True))


def _groups(held: Held, schema: Mapping[str, Any], roles: Assignment) -> tuple[pl.DataFrame, dict[str, int]]:
    """Rows, blanks and responses by metric, task, model, conditions and stratum; labels beside the values.

    Also the number of rows of each column of text whose text stripping changes.
    """
    import narwhals as nw

    uneven = ragged(schema, roles)
    marks = {f"uneven_{place}": flag for place, flag in enumerate(uneven.values())}
    if (wild := infinite(schema, roles)) is not None:
        marks["infinite"] = nw.when(wild).then(nw.lit(1)).otherwise(nw.lit(0))
    frame = held.frame.select(*role_columns(schema, roles), **marks)
    present = frame.collect_schema().names()
    by = [name for name in present if name in _GROUPS or name.startswith("factor_")]
    sums = {f"blank_{name}": nw.col(name).is_null() for name in ("scenario", "cluster") if name in present}
    if "response" in present:
        sums["answered"] = ~nw.col("response").is_null()
    frame = frame.select(
        *by, *marks, everything=nw.lit(0), **{name: flag.cast(nw.Int64) for name, flag in sums.items()}
    )
    totals = (nw.col(name).sum() for name in (*marks, *sums))
    (groups,) = held.collect(frame.group_by("everything", *by).agg(nw.len().alias("n"), *totals))
    if groups.is_empty() or not groups["n"].sum():
        raise no_rows(list(schema))
    labels = [as_text(groups[name], name.partition("_")[0]).alias(f"{name}_label") for name in by]
    names = [f"{name}_label" for name in by]
    changed = {name: int(groups[f"uneven_{place}"].sum()) for place, name in enumerate(uneven)}
    result = groups.drop("everything", *(mark for mark in marks if mark != "infinite")).with_columns(labels)
    return (result.sort(names) if names else result), changed


def _refuse_blanks(groups: pl.DataFrame, roles: Assignment, n_rows: int) -> None:
    several_tasks = "task" in groups.columns and groups["task_label"].n_unique() > 1
    for role in (*_MUST, *(["task"] if several_tasks else [])):
        for position, name in enumerate(roles.columns.get(role, ())):
            column = factor_column(position) if role == "condition" else role
            if role in ("scenario", "cluster"):
                blank = int(groups[f"blank_{role}"].sum())
            else:
                blank = int(groups.filter(pl.col(f"{column}_label").is_null())["n"].sum())
            if blank:
                raise blank_identifier(role, name, blank, n_rows)


def _of_metric(
    groups: pl.DataFrame, held: Held, roles: Assignment
) -> tuple[pl.DataFrame, Held, str | None, tuple[Note, ...]]:
    """The rows of the metric that is wanted, or of the only one."""
    import narwhals as nw

    counts = dict(groups.group_by("metric_label").agg(pl.col("n").sum()).iter_rows())
    wanted = chosen_metric(counts, roles)
    if wanted is None:
        return groups, held, next((name for name in counts if name is not None), None), ()
    kept = groups.filter(pl.col("metric_label") == wanted)
    frame = held.frame.filter(nw.col("metric") == kept["metric"][0])
    left = sum(counts.values()) - counts[wanted]
    return kept, replace(held, frame=frame), wanted, left_out(wanted, left)


def _refuse_joined(groups: pl.DataFrame, factors: Sequence[Factor]) -> None:
    if len(factors) < 2:
        return
    names = [f"{factor_column(position)}_label" for position in range(len(factors))]
    parts = groups.select(names).unique()
    label = pl.concat_str(
        [pl.lit(f"{f.name}=") + pl.col(name) for f, name in zip(factors, names, strict=True)], separator=", "
    )
    if parts.select(label.alias("joint"))["joint"].n_unique() < parts.height:
        raise joined_conditions()
