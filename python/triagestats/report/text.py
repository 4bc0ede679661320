"""The printed summary: the answer, what independence would have claimed, the rates, the design, the notes."""

from __future__ import annotations

import html
from io import StringIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from triagestats.analysis import Analysis
from triagestats.report.grid import Grid
from triagestats.report.sections import VERDICT_STYLES, WIDTH, Line, sections

__all__ = ["WIDTH", "print_summary", "summary_html", "summary_text"]


def summary_text(fit: Analysis, *, width: int = WIDTH) -> str:
    """The summary as plain text; only tables whose numbers would break are wider than `width`."""
    stream = StringIO()
    print_summary(
        fit, Console(file=stream, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    )
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def summary_html(fit: Analysis) -> str:
    """The summary for a notebook."""
    return f"<pre>{html.escape(summary_text(fit))}</pre>"


def print_summary(fit: Analysis, console: Console) -> None:
    """Print the summary on a console, with its colours; a table may be wider where numbers would break."""
    width = console.width
    for position, section in enumerate(sections(fit)):
        if position:
            console.print()
        for part in section:
            console.width = max(width, part.least_width) if isinstance(part, Grid) else width
            console.print(part.rendered() if isinstance(part, Grid) else _line(part))
    console.width = width


def _line(line: Line) -> RenderableType:
    text = Text.assemble(
        (line.strong, "bold"), line.text, (line.verdict, VERDICT_STYLES.get(line.verdict, ""))
    )
    if not line.mark:
        return text
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(Text(line.mark), text)
    return grid
