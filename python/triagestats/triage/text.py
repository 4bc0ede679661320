"""What results of triage and rankings share: tidy rows as lines of text, JSON values, notebook text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

__all__ = [
    "aligned",
    "amount",
    "glanced",
    "in_words",
    "number",
    "withheld_lines",
]

_GAP = "  "
_NAMED = 20


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
