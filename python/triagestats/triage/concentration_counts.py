"""Counts of misses by condition and scenario, their labels, and how many scenarios they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from triagestats.results import Note
from triagestats.triage.outcomes import VALUE, Pool

__all__ = ["CELL", "concentrated", "counts_of", "effective_of", "labels_of_misses", "with_blanks"]

CELL: Final = ("scenario", "model", "variant", "condition")
_LIMITED: Final = 2.0
"""Fewer effective scenarios than this are worth a note where there are more."""


def with_blanks(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with all columns of a cell, blank where it has none."""
    absent = [name for name in CELL if name not in frame.columns]
    return frame.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)


def counts_of(responses: pl.DataFrame, levels: Sequence[str | None]) -> pl.DataFrame:
    """Misses and responses (or labels) by condition and scenario, and each scenario's share of the misses."""
    counts = responses.group_by("condition", "scenario").agg(
        (pl.col("value") * pl.col("weight")).sum().alias("misses"), pl.col("weight").sum().alias("n")
    )
    conditions = pl.DataFrame({"condition": list(levels)}, schema={"condition": pl.String})
    grid = conditions.with_row_index("_order").join(responses.select("scenario").unique(), how="cross")
    counts = grid.join(counts, on=["condition", "scenario"], how="left", nulls_equal=True)
    counts = counts.with_columns(pl.col("misses").fill_null(0.0), pl.col("n").fill_null(0))
    whole = pl.col("misses").sum().over("_order")
    share = pl.when(whole > 0).then(pl.col("misses") / whole)
    return (
        counts.with_columns(share.alias("share"))
        .sort("_order", "scenario")
        .select("condition", "scenario", "misses", "n", "share")
    )


def labels_of_misses(
    frame: pl.DataFrame, pool: Pool, levels: Sequence[str | None], scale: Sequence[str] | None
) -> pl.DataFrame:
    """How often each label was given among the misses, by condition; labels in the order of the scale."""
    schema = {"condition": pl.String, "label": pl.String, "misses": pl.Float64}
    if "response" not in frame.columns:
        return pl.DataFrame(schema=schema)
    frame = with_blanks(frame.filter(pl.col(VALUE).is_not_null()))
    if "repetition" not in frame.columns:
        frame = frame.with_columns(pl.lit(None, pl.String).alias("repetition"))
    misses = pl.col(VALUE)
    if pool == "responses":
        others = [name for name in frame.columns if name.startswith("condition[")]
        misses = misses / pl.len().over([*CELL, "repetition", *others])
    known = frame["response"].drop_nulls().unique().sort() if scale is None else scale
    counts = frame.group_by("condition", pl.col("response").alias("label")).agg(misses.sum().alias("misses"))
    orders = [dict(zip(names, range(len(names)), strict=True)) for names in (levels, known)]
    return (
        counts.filter(pl.col("misses") > 0)
        .sort(
            *(
                pl.col(name).replace_strict(order, default=len(order), return_dtype=pl.Int64)
                for name, order in zip(("condition", "label"), orders, strict=True)
            )
        )
        .select(list(schema))
    )


def concentrated(counts: pl.DataFrame) -> Iterator[Note]:
    """A note where the misses of a condition rest on fewer than two of several scenarios."""
    for (condition,), part in counts.group_by("condition", maintain_order=True):
        effective, scenario, share = effective_of(part)
        if effective is not None and effective < _LIMITED and (part["n"] > 0).sum() > 1:
            where = "" if condition is None else f"{condition}: "
            yield Note(
                "concentrated",
                f"{where}{share:.0%} of the misses are of {scenario}; they weigh as much as those of "
                f"{effective:.1f} scenarios with equal shares.",
                "caution",
            )


def effective_of(counts: pl.DataFrame) -> tuple[float | None, str | None, float | None]:
    """Effective number of scenarios of one condition, and the scenario with the largest share."""
    shares = counts.drop_nulls("share")
    if shares.is_empty():
        return None, None, None
    largest = shares.sort("share", "scenario", descending=[True, False]).row(0, named=True)
    return 1 / float((shares["share"] ** 2).sum()), largest["scenario"], largest["share"]
