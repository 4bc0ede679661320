"""Right answers, counted and written as papers write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from triagestats.replicate.tables import best_named

__all__ = ["count_text", "counts_like", "scored"]

_NAMED: Final = ("scenario", "model", "format", "variant", "judge", "race", "gender", "anchor", "barrier")
_NUMBERS: Final = {"correct": "right", "scored": "scored", "n": "n", "accuracy": "accuracy"}


def scored(rows: pl.DataFrame, *, label: str = "response", keep_blank: bool = False) -> pl.DataFrame:
    """Rows with `right`: whether the label lies in the gold range, in the order of the letters.

    Rows without a label are left out, or kept with null.
    """
    found = rows.with_columns(
        pl.when(pl.col(label).is_not_null())
        .then(pl.col(label).is_between(pl.col("gold_low"), pl.col("gold_high")))
        .cast(pl.Int64)
        .alias("right")
    )
    return found if keep_blank else found.filter(pl.col("right").is_not_null())


def count_text(right: float, of: float, planned: float | None = None) -> str:
    """`12/25`; with answers that were not scored `12/22 scored, 3 unresolved`."""
    text = f"{right:g}/{of:g}"
    if planned is None or planned == of:
        return text
    return f"{text} scored, {planned - of:g} unresolved"


def counts_like(shape: Any, rows: pl.DataFrame) -> Any:
    """Counts of right answers in the shape of a JSON value whose keys name levels of the columns.

    A key such as `gpt-5.2:F9` names two. A leaf `[12, 25]` stands for right answers of all, a text for the
    same as `12/25`, a whole number for the right answers, another one for their share. A key that names
    nothing has None.

    Examples
    --------
    >>> rows = pl.DataFrame({"model": ["m", "m", "n"], "format": ["x", "y", "x"], "right": [1, 0, 1]})
    >>> counts_like({"m": {"x": 5, "y": [3, 4]}, "other": 1}, rows)
    {'m': {'x': 1, 'y': [0, 1]}, 'other': None}
    """
    if isinstance(shape, Mapping) and not shape.keys() <= _NUMBERS.keys():
        found: dict[str, Any] = {}
        for key, item in shape.items():
            part = _part(str(key), rows)
            found[key] = None if part is None else counts_like(item, part)
        return found
    right, of = int(rows["right"].sum()), int(rows["right"].count())
    numbers = {"right": right, "scored": of, "n": rows.height, "accuracy": right / of if of else None}
    if isinstance(shape, Mapping):
        return {key: numbers[_NUMBERS[key]] for key in shape}
    if isinstance(shape, list):
        return [right, rows.height]
    if isinstance(shape, str):
        return count_text(right, rows.height)
    return right if isinstance(shape, int) else numbers["accuracy"]


def _part(key: str, rows: pl.DataFrame) -> pl.DataFrame | None:
    """The rows that a key names; None where one of its parts names nothing."""
    for short in re.split(r"[:|]", key):
        for column in (name for name in _NAMED if name in rows.columns):
            values = rows[column].drop_nulls().unique().to_list()
            name = short if short in values else best_named(short, values)
            if name is not None:
                rows = rows.filter(pl.col(column) == name)
                break
        else:
            return None
    return rows
