"""What results of triage and rankings share: tidy rows as lines of text, JSON values, notebook text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from triagestats.results import Note, plain, preformatted
from triagestats.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Shown",
    "aligned",
    "amount",
    "as_json",
    "counted",
    "glanced",
    "in_words",
    "number",
    "withheld_lines",
]

_GAP = "  "
_NAMED = 20


class _Settled(Protocol):
    @property
    def notes(self) -> tuple[Note, ...]: ...
    def glance(self) -> pl.DataFrame: ...


class Shown:
    """A result with `tidy()`, of which the repr is what a notebook shows."""

    __slots__ = ()

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """`tidy()` as a pandas frame; needs pandas and pyarrow."""
        frame: pd.DataFrame = self.tidy().to_pandas()
        return frame

    def _repr_html_(self) -> str:
        return preformatted(self)


def as_json(result: _Settled, settings: Mapping[str, Any] | None = None, **parts: object) -> dict[str, Any]:
    """A result as plain JSON values: schema, settings of `glance()` and more, parts, and notes.

    Frames among the parts become lists of rows.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": plain(result.glance())[0] | dict(settings or {}),
        **{name: plain(part) if isinstance(part, pl.DataFrame) else part for name, part in parts.items()},
        "notes": [{"code": n.code, "level": n.level, "message": n.message} for n in result.notes],
    }


def glanced(result: object, first: Mapping[str, object], names: Sequence[str]) -> pl.DataFrame:
    """One row: values, then attributes of a result, its seed, and how many notes it has."""
    asked = {name: getattr(result, name) for name in (*names, "seed")}
    values = {**first, **asked, "n_notes": len(getattr(result, "notes", ()))}
    return pl.DataFrame(
        {name: [value] for name, value in values.items()}, schema_overrides={"seed": pl.UInt64}
    )


def number(value: object) -> str:
    """A value as it is printed: four digits of a number, nothing for null."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def amount(value: float) -> str:
    """A count, with two decimals where it is not whole."""
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def counted(n: int, noun: str) -> str:
    """How many of something: `1 answer`, `2 answers`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def in_words(names: Iterable[str]) -> str:
    """Names as words: `a`, `a and b`, `a, b and c`; where there are many, the first of them."""
    several = list(names)
    if len(several) > _NAMED:
        several = [*several[:_NAMED], f"{len(several) - _NAMED:,} more"]
    return " and ".join([*([", ".join(several[:-1])] if several[1:] else []), *several[-1:]])


def withheld_lines(rows: pl.DataFrame, name: pl.Expr) -> list[str]:
    """Why rows have no interval."""
    none = rows.filter(pl.col("conf_low").is_null() & pl.col("reason").is_not_null())
    return [
        f"{_GAP}no interval, {called}: {reason}" for called, reason in none.select(name, "reason").iter_rows()
    ]


def aligned(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Lines of the given columns, without those that are null; text to the left, numbers to the right."""
    kept = [name for name in columns if frame[name].count()]
    if frame.is_empty() or not kept:
        return []
    text = {name: [name, *map(number, frame[name])] for name in kept}
    width = {name: max(map(len, cells)) for name, cells in text.items()}
    lines = []
    for row in range(frame.height + 1):
        cells = [
            text[name][row].rjust(width[name])
            if frame.schema[name].is_numeric()
            else text[name][row].ljust(width[name])
            for name in kept
        ]
        lines.append(_GAP + _GAP.join(cells).rstrip())
    return lines
