"""The estimates of a mixed model as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

__all__ = ["shown_rows"]


def shown_rows(rows: pl.DataFrame, conf_level: float) -> list[str]:
    """Tidy rows as aligned lines under a heading for each kind of estimate."""
    lines = []
    interval = f"{conf_level * 100:g} % interval"
    for (estimand, compared), found in _kinds(rows):
        heading = f"{estimand}: differences" if compared else estimand
        cells: list[tuple[str, ...]] = [(heading, "estimate", "error", interval, "p", "")]
        cells += [_cells(row) for row in found]
        used = [place for place in range(len(cells[0])) if place < 2 or any(row[place] for row in cells[1:])]
        lines += _aligned([tuple(row[place] for place in used) for row in cells])
    return lines


def _kinds(rows: pl.DataFrame) -> Iterator[tuple[tuple[str, bool], list[dict[str, Any]]]]:
    """Rows of one estimand together, levels and differences apart, in the order that they come."""
    kinds: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    averaged = ("averaged", "random effects", "estimated effects")
    for row in rows.iter_rows(named=True):
        compared = row["contrast"] is not None and any(word in row["estimand"] for word in averaged)
        kinds.setdefault((row["estimand"], compared), []).append(row)
    yield from kinds.items()


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    level = row["contrast"] or row["condition"] or row["model"]
    named = row["term"] or "all rows"
    if level is not None and level != named:
        named = f"{named}: {level}" if "[T." not in named else named
    ends = "" if row["conf_low"] is None else f"[{row['conf_low']:.4g}, {row['conf_high']:.4g}]"
    return (
        named,
        "-" if row["estimate"] is None else f"{row['estimate']:.4g}",
        "" if row["std_error"] is None else f"{row['std_error']:.3g}",
        ends,
        "" if row["p_value"] is None else f"{row['p_value']:.3g}",
        row["verdict"] or "",
    )


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of text under a heading, the first column to the left and the others to the right."""
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    lines = []
    for number, row in enumerate(cells):
        first = f"  {row[0]}" if number == 0 else f"    {row[0]}"
        rest = "".join(f"   {v.rjust(w)}" for v, w in zip(row[1:], widths[1:], strict=True))
        lines.append(first.ljust(widths[0] + 4) + rest.rstrip())
    return lines
