"""Rows of a format as a ResponseTable: metrics and judges, runs, clusters, and what must not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from triagestats.arguments import valid_choice
from triagestats.errors import DataError, ReadError, RoleError
from triagestats.labels import in_task, listed, n_rows
from triagestats.readers.rows import Rows
from triagestats.readers.runs import number_runs, refuse_copies, refuse_twice
from triagestats.results import Note
from triagestats.roles import ROLE_ARGUMENTS, RoleArgument
from triagestats.schema import Unparsed
from triagestats.source import Source
from triagestats.table import ResponseTable
from triagestats.table_steps import left_out

__all__ = ["Options", "assemble", "metadata_names"]

_NO_CONDITION: Final = "(none)"
_ALWAYS: Final = ("scenario", "repetition", "score", "status", "reason", "source")


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asked of a reader.

    Attributes
    ----------
    metric, judge, task
        The metric to keep; scorers that are judges (True for all); the tasks to keep.
    model, item
        What the model is called where the files do not say, and the field that names the items.
    cluster, stratum
        Columns of the rows: roles, or metadata under dotted names.
    runs
        Whether files that claim the same model, task and epoch are runs of their own.
    levels, higher_is_better, unparsed
        As in `ResponseTable`; `higher_is_better` None takes what the files say.
    """

    metric: str | None = None
    judge: str | Sequence[str] | bool | None = None
    task: str | Sequence[str] | None = None
    model: str | None = None
    item: str | None = None
    cluster: RoleArgument = None
    stratum: str | None = None
    runs: bool = False
    levels: Sequence[str] | None = None
    higher_is_better: bool | None = None
    unparsed: Unparsed = "as scored"


def metadata_names(options: Options) -> tuple[str, ...]:
    """Names that the caller wants as clusters or strata."""
    cluster = options.cluster
    names = [cluster] if isinstance(cluster, str) else list(cluster) if cluster else []
    return (*names, *([options.stratum] if options.stratum else []))


def assemble(rows: Rows, options: Options, copies: Sequence[tuple[str, str]] = ()) -> ResponseTable:
    """The table of rows.

    Parameters
    ----------
    rows
        What a reader found.
    options
        What the caller asked.
    copies
        Names of files with the same bytes.

    Raises
    ------
    ReadError
        If there is no row.
    DataError
        If two files claim the same answers, or an option names what the files do not have.
    """
    if rows.frame.is_empty():
        said = " ".join(note.message for note in rows.notes) or "The files hold no samples."
        raise ReadError(f"`path`: there is nothing to read. {said}")
    notes = list(rows.notes)
    frame = _tasks(rows.frame, options.task)
    frame, more = _named(frame, options.judge)
    notes += more
    if not options.runs:
        refuse_copies(frame, copies, rows.run_ids)
    frame, more = number_runs(frame, runs=options.runs)
    notes += more
    refuse_twice(frame)
    frame, more = _of_metric(frame, options.metric)
    notes += more
    frame, more = _unread(frame, options.unparsed, levels=options.levels is not None)
    notes += more
    frame, compared, more = _conditions(frame)
    notes += more
    frame = _tidied(frame)
    _refuse_nameless(frame)
    if not frame["score"].count():
        notes.append(Note("nothing_scored", "No row of these files has a score.", "caution"))
    roles: dict[str, Any] = {role: role if role in frame.columns else False for role in ROLE_ARGUMENTS}
    roles["condition"] = "condition" if compared else False
    roles["cluster"] = _columns(frame, "cluster", options.cluster)
    roles["stratum"] = _columns(frame, "stratum", options.stratum)
    frame, more = _filled(frame, roles["cluster"])
    notes += more
    metrics = set(frame["metric"].drop_nulls()) if "metric" in frame.columns else set()
    higher, more = _direction(metrics, rows.lower, options.higher_is_better)
    notes += more
    return ResponseTable(
        Source(frame, tuple(notes), settled=True),
        **roles,
        levels=options.levels,
        higher_is_better=higher,
    )


def _tasks(frame: pl.DataFrame, wanted: str | Sequence[str] | None) -> pl.DataFrame:
    if wanted is None:
        return frame
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    present = frame["task"].drop_nulls().unique().sort().to_list()
    if absent := [name for name in names if name not in present]:
        raise DataError(
            f"`task` names {', '.join(map(repr, absent))}, which the files do not have; choose from "
            f"{listed(present)}"
        )
    return frame.filter(pl.col("task").is_in(names))


def _named(
    frame: pl.DataFrame, judge: str | Sequence[str] | bool | None
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Scorers as metrics, or those that the caller names as judges, and then no others."""
    if judge is None or judge is False:
        metric = pl.concat_str("scorer", "measure", separator="/", ignore_nulls=True)
        named = pl.any_horizontal(pl.col("scorer", "measure").is_not_null())
        return frame.with_columns(
            pl.when(named).then(metric).alias("metric"), pl.lit(None, pl.String).alias("judge")
        ), ()
    present = frame["scorer"].drop_nulls().unique().sort().to_list()
    names = present if judge is True else [judge] if isinstance(judge, str) else list(judge)
    if absent := [name for name in names if name not in present]:
        raise DataError(
            f"`judge` names {', '.join(map(repr, absent))}, which is no scorer of these files; choose from "
            f"{listed(present)}"
        )
    kept = frame.filter(pl.col("scorer").is_in(names))
    left = frame.height - kept.height
    notes = (Note("judges", f"{n_rows(left)} of scorers that are no judges are left out."),) if left else ()
    return kept.with_columns(pl.col("measure").alias("metric"), pl.col("scorer").alias("judge")), notes


def _unread(
    frame: pl.DataFrame, unparsed: Unparsed, *, levels: bool
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """What becomes of answers that could not be read and were scored as wrong."""
    valid_choice("unparsed", unparsed, Unparsed)
    unread = pl.col("unread") & pl.col("score").is_not_null()
    count = frame.select(unread.sum()).item()
    if not count:
        return frame, ()
    if levels:  # what was not read is no label of the scale
        frame = frame.with_columns(pl.when(~unread).then("response").alias("response"))
    if unparsed == "as scored":
        said = f"{n_rows(count)} with an answer that could not be read {'is' if count == 1 else 'are'} scored"
        return frame, (
            Note("unparsed", f"{said} as the harness did; `reason` marks them, `unparsed=` changes it."),
        )
    score = pl.lit(0.0) if unparsed == "wrong" else pl.lit(None, pl.Float64)
    return frame.with_columns(
        pl.when(unread).then(score).otherwise("score").alias("score"),
        pl.when(unread).then(pl.lit("unparsed")).otherwise("status").alias("status"),
    ), ()


def _conditions(frame: pl.DataFrame) -> tuple[pl.DataFrame, bool, tuple[Note, ...]]:
    """Whether conditions are compared: not where each task has one of its own.

    A condition that some files lack is a level of its own.
    """
    if frame["condition"].null_count() == frame.height:
        return frame, False, ()
    levels = frame.group_by("task").agg(pl.col("condition").n_unique())["condition"]
    if len(levels) > 1 and frame["condition"].n_unique() > 1 and levels.max() == 1:
        text = "Each task has one condition of its own: conditions are carried along, and not compared."
        return frame, False, (Note("conditions", text),)
    return frame.with_columns(pl.col("condition").fill_null(_NO_CONDITION)), True, ()


def _tidied(frame: pl.DataFrame) -> pl.DataFrame:
    """Without columns that hold nothing."""
    return frame.select(
        name
        for name in frame.columns
        if name not in ("scorer", "measure", "unread")
        and (name in _ALWAYS or frame[name].null_count() < frame.height)
    )


def _refuse_nameless(frame: pl.DataFrame) -> None:
    if "model" in frame.columns and frame["model"].null_count():
        source = frame.filter(pl.col("model").is_null())["source"][0]
        raise DataError(
            f"`model`: {source!r} does not say which model it is of, and other files do; read it on its own, "
            "with `model=` and a name"
        )


def _of_metric(frame: pl.DataFrame, wanted: str | None) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    if wanted is None:
        return frame, ()
    present = frame["metric"].drop_nulls().unique().sort().to_list()
    if wanted not in present:
        raise DataError(
            f"`metric` names {wanted!r}, which the files do not have; choose from {listed(present)}"
        )
    kept = frame.filter(pl.col("metric") == wanted)
    return kept, left_out(wanted, frame.height - kept.height)


def _filled(frame: pl.DataFrame, cluster: RoleArgument) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Items of tasks that lack the cluster altogether are clusters of their own.

    A task in which some items have it and others do not is left as it is, to be refused.
    """
    columns = [cluster] if isinstance(cluster, str) else list(cluster or ())
    notes: list[Note] = []
    for name in columns if "task" in frame.columns else ():
        without = pl.col(name).is_null().all().over("task")
        lacking = frame.filter(without)["task"].unique().sort().to_list()
        if not lacking or len(lacking) == frame["task"].n_unique():
            continue
        frame = frame.with_columns(pl.when(without).then(in_task()).otherwise(name).alias(name))
        text = f"{listed(lacking)} have no {name!r}: each of their items is a cluster of its own."
        notes.append(Note("clusters", text, "caution"))
    return frame, tuple(notes)


def _direction(metrics: set[str], lower: frozenset[str], asked: bool | None) -> tuple[bool, tuple[Note, ...]]:
    """Whether larger scores are better: as the caller says, else as the files say of the one metric."""
    if asked is not None:
        return asked, ()
    opposed = sorted(metrics & lower)
    if opposed and len(metrics) == 1:
        return False, (Note("lower_is_better", "The files say that a smaller score is the better one."),)
    text = (
        f"A smaller value is better for {listed(opposed)}: name one as `metric=`, or choose it with "
        "higher_is_better=False."
    )
    return True, (Note("lower_is_better", text, "caution"),) if opposed else ()


def _columns(frame: pl.DataFrame, role: str, wanted: RoleArgument) -> RoleArgument:
    """Columns under their full names: `passage_id` is `metadata.passage_id` where it is the only one."""
    if wanted is None or wanted is False:
        return False if role == "stratum" else wanted
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    return (
        [_column(frame, role, name) for name in names] if len(names) > 1 else _column(frame, role, names[0])
    )


def _column(frame: pl.DataFrame, role: str, name: str) -> str:
    if name in frame.columns:
        return name
    last = "." + name.removeprefix("metadata.")
    found = [column for column in frame.columns if column.endswith(last)]
    if len(found) == 1:
        return found[0]
    offered = [column for column in frame.columns if column not in (*_ALWAYS[1:], "score_raw")]
    which = f"could be {listed(found)}" if found else "the files do not have"
    raise RoleError(f"`{role}` names {name!r}, which {which}; choose from {listed(offered)}")
