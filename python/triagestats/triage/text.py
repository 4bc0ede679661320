"""Tidy rows as lines of plain text."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

__all__ = ["aligned", "amount", "number"]

_GAP = "  "


def number(value: object) -> str:
    """A value as it is printed: four digits of a number, nothing for null."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def amount(value: float) -> str:
    """A count, with two decimals where it is not whole."""
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


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
