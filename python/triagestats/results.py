"""What every result shares: notes and the tidy frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

from triagestats.schema import GLOSSARY

__all__ = ["TIDY_SCHEMA", "Note", "plain", "tidy_frame"]

_KINDS: Final = {"text": pl.String, "number": pl.Float64, "count": pl.Int64}
TIDY_SCHEMA: Final = pl.Schema({column.name: _KINDS[column.kind] for column in GLOSSARY})


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of a result must know: a choice that was made, or a doubt.

    Attributes
    ----------
    code
        Stable identifier, such as `reference` or `few_clusters`.
    message
        The note in words.
    level
        `info` for a choice that was made, `caution` for a doubt.

    Examples
    --------
    >>> import triagestats as ts
    >>> print(ts.Note("few_clusters", "Eight scenarios are few.", "caution"))
    Eight scenarios are few.
    """

    code: str
    message: str
    level: Literal["info", "caution"] = "info"

    def __str__(self) -> str:
        return self.message


def tidy_frame(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows as a frame with all columns of the glossary, in its order.

    Parameters
    ----------
    rows
        One mapping an estimate. Absent keys become null, and so do numbers that are NaN:
        a tidy result holds null where a number is undefined.

    Raises
    ------
    KeyError
        If a row has a key that the glossary does not know.
    """
    listed = list(rows)
    unknown = {key for row in listed for key in row} - set(TIDY_SCHEMA)
    if unknown:
        raise KeyError(f"not in the glossary of result columns: {sorted(unknown)}")
    columns = {name: [_value(row.get(name)) for row in listed] for name in TIDY_SCHEMA}
    return pl.DataFrame(columns, schema=TIDY_SCHEMA)


def _value(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as plain JSON values: NaN becomes null, and infinity text, as JSON has neither."""
    return [{key: _json(value) for key, value in row.items()} for row in frame.iter_rows(named=True)]


def _json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and math.isinf(value) else _value(value)
