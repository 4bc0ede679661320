"""Families of contrasts as tidy frames: adjusted, without verdicts that have no side, and side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.contrast_rows import with_adjusted
from triagestats.defaults import FEWEST_CLUSTERS, Method
from triagestats.inference import METHODS, Family
from triagestats.results import Note, tidy_frame

__all__ = ["contrasts_frame", "intervals_frame", "smallest_p_notes", "withheld_notes"]

_METHODS: Final[tuple[Method, ...]] = ("jackknife-t", "percentile", "bca")
_IDENTITY: Final = ("estimand", "term", "model", "condition", "contrast", "stratum", "judge", "metric")


def contrasts_frame(family: Family, conf_level: float, *, sided: Collection[str]) -> pl.DataFrame:
    """A family at a level: verdicts of the `sided` estimands alone, p-values adjusted within an estimand.

    `p_adjusted` is Holm's within one estimand, stratum and judge: that of all models is one family, those of
    single models another.
    """
    frame = family.read(conf_level)
    frame = frame.with_columns(
        pl.when(pl.col("estimand").is_in(list(sided))).then("verdict").alias("verdict")
    )
    parts = frame.partition_by("estimand", maintain_order=True)
    return pl.concat([with_adjusted(part, by_kind=False) for part in parts])


def intervals_frame(family: Family, conf_level: float, shown: pl.DataFrame) -> pl.DataFrame:
    """Every estimate that has an interval, under every interval that applies."""
    ends = {method: family.ends(method, conf_level) for method in _METHODS}
    place = {_key(row.identity): row.slot for row in family.rows if row.slot is not None}
    rows: list[dict[str, Any]] = []
    for row in shown.filter(pl.col("conf_low").is_not_null()).iter_rows(named=True):
        e = place[_key(row)]
        same = {name: row[name] for name in (*_IDENTITY, "estimate", "conf_level", "n_rows", "n_clusters")}
        for method, found in ends.items():
            low, high = float(found.low[e]), float(found.high[e])
            if not (np.isfinite(low) and np.isfinite(high)):
                continue
            named = family.percentile_method(e, method) if method == "percentile" else METHODS[method]
            t = {name: row[name] for name in ("std_error", "df")} if method == "jackknife-t" else {}
            rows.append(same | t | {"conf_low": low, "conf_high": high, "method": named})
    return tidy_frame(rows)


def withheld_notes(frame: pl.DataFrame) -> tuple[Note, ...]:
    """How many estimates have no interval, as they rest on few clusters."""
    few = frame.filter(pl.col("status") == "few_clusters")
    if few.is_empty():
        return ()
    message = (
        f"{few.height:,} of {frame.height:,} estimates rest on fewer than {FEWEST_CLUSTERS} clusters and "
        "have no interval that speaks of a population of clusters."
    )
    return (Note("few_clusters", message, "caution"),)


def smallest_p_notes(family: Family, conf_level: float) -> tuple[Note, ...]:
    """A note where permutations of few clusters leave p-values no chance to be small."""
    tested = [family.tests[row.slot] for row in family.rows if row.slot is not None]
    smallest = [test.smallest for test in tested if test is not None]
    stuck = sorted(p for p in smallest if p > 1 - conf_level)
    if not stuck:
        return ()
    least, most = (f"{p:.3g}" for p in (stuck[0], stuck[-1]))
    message = (
        f"So few clusters differ that {len(stuck):,} of {len(smallest):,} p-values cannot be below "
        f"{1 - conf_level:.3g}: the smallest that can be reached is {least}"
        f"{'' if least == most else f' to {most}'}."
    )
    return (Note("smallest_p", message, "caution"),)


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in _IDENTITY)
