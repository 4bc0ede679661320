"""Keys in more than one row, found by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from triagestats.engine.gather import Gathered
from triagestats.engine.held import Held
from triagestats.engine.stages import Stages
from triagestats.errors import DataError
from triagestats.labels import as_text, n_rows
from triagestats.roles import Assignment
from triagestats.schema import KEY_ROLES

__all__ = ["refuse_repeated"]

_ADVICE: Final = (
    "give the column that tells them apart its role (`condition=`, `variant=`, `repetition=`, `judge=`), "
    "keep the rows of one of its values, or drop the copies"
)


def refuse_repeated(
    stages: Stages, parts: Sequence[Held], gathered: Gathered, roles: Assignment, *, repeats: bool
) -> None:
    """Every row must have a key of its own.

    Without judges the counts of keys say so already; with them the engine is asked.

    Raises
    ------
    DataError
        If not.
    """
    import narwhals as nw

    if "judge" not in stages.frame.collect_schema():
        counts = gathered.described["row" if repeats else "cell"]
        most = max(int(counts[name].max() or 0) for name in counts.columns if name.startswith("n_"))  # type: ignore[arg-type]  # counts
        if most < 2:
            return
    keys = rows = 0
    example: pl.DataFrame | None = None
    for part in parts:
        found = stages.within(part.frame).judgments().filter(nw.col("n") > 1)
        sizes = found.with_columns(everything=nw.lit(0)).group_by("everything")
        counted, first = part.collect(
            sizes.agg(nw.len().alias("keys"), nw.col("n").sum().alias("rows")), found.head(1)
        )
        if counted.height:
            keys, rows = keys + int(counted["keys"][0]), rows + int(counted["rows"][0])
            example = first
    if example is None:
        return
    shown = {name: as_text(example[name], name)[0] for name in KEY_ROLES if name in example.columns}
    conditions = roles.columns.get("condition", ())
    factors = [as_text(example[f"factor_{k}"], name)[0] for k, name in enumerate(conditions)]
    if factors:
        joint = ", ".join(f"{name}={part}" for name, part in zip(conditions, factors, strict=True))
        shown["condition"] = joint if len(factors) > 1 else factors[0]
    if "task" in example.columns:
        shown["scenario"] = f"{as_text(example['task'], 'task')[0]}/{shown['scenario']}"
    ordered = {role: shown[role] for role in KEY_ROLES if role in shown}
    said = ", ".join(f"{role}={value!r}" for role, value in ordered.items())
    raise DataError(
        f"`data` has {'one key' if keys == 1 else f'{keys:,} keys'} ({' x '.join(ordered)}) in more than one "
        f"row, {n_rows(rows)} in all, such as {said}; {_ADVICE}"
    )
