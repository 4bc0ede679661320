"""Runs: repetitions that no file numbers, and files that claim the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from triagestats.errors import DataError
from triagestats.labels import listed
from triagestats.results import Note

__all__ = ["number_runs", "refuse_copies", "refuse_twice"]

_RUN: Final = ("task", "model", "condition", "variant")
_KEY: Final = (*_RUN, "scenario", "repetition", "metric", "judge")


def number_runs(frame: pl.DataFrame, *, runs: bool) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Number repetitions where the files do not: by order of occurrence, file after file."""
    answer = [*_RUN, "scenario", "metric", "judge", "source"]
    occurrence = pl.int_range(pl.len()).over(answer) + 1
    numbered = pl.col("repetition").cast(pl.Int64)
    frame = frame.with_columns(
        numbered.is_null().alias("_counted"), numbered.fill_null(occurrence).alias("repetition")
    )
    movable = frame if runs else frame.filter("_counted")
    offsets = _offsets(movable)
    if offsets.is_empty():
        return frame.drop("_counted"), ()
    frame = frame.join(offsets, on=[*_RUN, "source"], how="left", nulls_equal=True, maintain_order="left")
    moved = pl.col("_counted") | pl.lit(runs)
    frame = frame.with_columns(
        pl.when(moved)
        .then(pl.col("repetition") + pl.col("_offset").fill_null(0))
        .otherwise("repetition")
        .alias("repetition")
    )
    later = offsets.filter(pl.col("_offset") > 0)["source"].unique(maintain_order=True).to_list()
    note = Note(
        "runs",
        "Files of one model and task are runs: repetitions are numbered in the order of the files, so that "
        f"{listed(later)} come after what other files hold.",
    )
    return frame.drop("_counted", "_offset"), (note,)


def _offsets(frame: pl.DataFrame) -> pl.DataFrame:
    """How far the repetitions of a file move up, because earlier files answer the same items."""
    files = frame.group_by(*_RUN, "source", maintain_order=True).agg(
        pl.col("scenario").unique(), pl.col("repetition").max()
    )
    seen: dict[tuple[object, ...], tuple[set[str], int]] = {}
    offsets = []
    for row in files.iter_rows(named=True):
        run = tuple(row[name] for name in _RUN)
        items, last = seen.get(run, (set(), 0))
        offset = last if not items.isdisjoint(row["scenario"]) else 0
        offsets.append(offset)
        seen[run] = (items | set(row["scenario"]), max(last, offset + row["repetition"]))
    found = files.select(*_RUN, "source").with_columns(pl.Series("_offset", offsets, dtype=pl.Int64))
    return found if any(offsets) else found.clear()


def refuse_copies(frame: pl.DataFrame, copies: Sequence[tuple[str, str]], run_ids: Mapping[str, str]) -> None:
    """Refuse two files of one model and task that are the same run, or the same bytes.

    Raises
    ------
    DataError
        If there are such files; the message names both.
    """
    original = {second: first for first, second in copies}
    groups = frame.group_by(_RUN, maintain_order=True).agg(
        pl.col("source").filter(pl.col("repetition").is_null()).unique(maintain_order=True)
    )
    for sources in groups["source"].to_list():
        run_of: dict[str, str] = {}
        for source in sources:
            run = run_ids.get(source)
            twin = run_of.setdefault(run, source) if run is not None else source
            if twin == source and run is None and original.get(source) in sources:
                twin = original[source]
            if twin != source:
                raise DataError(
                    f"`path`: {twin!r} and {source!r} claim the same model, task and run; leave one of them "
                    "out, or give `runs=True` if they are runs of their own, to number them as repetitions"
                )


def refuse_twice(frame: pl.DataFrame) -> None:
    """Every answer must have one value of each scorer.

    Raises
    ------
    DataError
        If one has several; the message names the files.
    """
    twice = frame.filter(pl.struct(_KEY).is_duplicated())
    if twice.is_empty():
        return
    example = twice.row(0, named=True)
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(example[name])) for name in _KEY)
    sources = twice.filter(same)["source"].unique(maintain_order=True).to_list()
    what = ", ".join(
        f"{name} {example[key]!r}"
        for key, name in (
            ("model", "model"),
            ("task", "task"),
            ("condition", "condition"),
            ("repetition", "epoch"),
            ("scenario", "item"),
        )
        if example[key] is not None
    )
    if len(sources) == 1:
        raise DataError(
            f"`path`: {sources[0]!r} has two values of one scorer for {what}; correct the file, or "
            "drop the copy"
        )
    raise DataError(
        f"`path`: {sources[0]!r} and {sources[1]!r} both claim {what}; leave one of them out, or give "
        "`runs=True` if they are runs of their own, to number them as repetitions"
    )
