"""Tables of a report: built as plain text first, laid out for a width last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["Grid"]

_GAP: Final = 3
_NARROWEST: Final = 12


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text.

    Attributes
    ----------
    title
        A line above it.
    names
        Columns that name things: to the left, folded where the line is too short. One with the same value in
        all rows is left out, and that value is put into the title.
    numbers
        Columns of numbers: to the right, never broken.
    rows
        Cells in the order of the columns, the names first.
    last
        Whether the last number is a word, and goes to the left.
    styles
        Style of words in the last column.
    bold
        Rows in bold.
    """

    title: str
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: bool = False
    styles: dict[str, str] = field(default_factory=dict)
    bold: frozenset[int] = frozenset()

    def without_constants(self) -> Grid:
        """The grid without columns of names that hold one value, which goes into the title."""
        n = len(self.names)
        constant = [
            place for place in range(n - 1) if len({row[place] for row in self.rows}) == 1 and self.rows
        ]
        if not constant:
            return self
        values = [self.rows[0][place] for place in constant if self.rows[0][place]]
        kept = [place for place in range(n + len(self.numbers)) if place not in constant]
        return Grid(
            ": ".join((self.title, ", ".join(values))) if values else self.title,
            tuple(self.names[place] for place in kept if place < n),
            self.numbers,
            tuple(tuple(row[place] for place in kept) for row in self.rows),
            self.last,
            self.styles,
            self.bold,
        )

    @property
    def least_width(self) -> int:
        """The width below which numbers would break."""
        cells = [(*self.names, *self.numbers), *self.rows]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        names = [min(width, _NARROWEST) for width in widths[: len(self.names)]]
        return sum(names) + sum(widths[len(self.names) :]) + _GAP * (len(widths) - 1)

    def rendered(self) -> RenderableType:
        """The grid as something that rich can print."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for heading in self.names:
            table.add_column(Text(heading), overflow="fold", min_width=min(cell_len(heading), _NARROWEST))
        for position, heading in enumerate(self.numbers):
            word = self.last and position == len(self.numbers) - 1
            table.add_column(Text(heading), justify="left" if word else "right", no_wrap=True)
        before: tuple[str, ...] = ()
        for index, row in enumerate(self.rows):
            style = "bold" if index in self.bold else None
            table.add_row(*self._cells(row, before), style=style)
            before = row
        return Group(Text(self.title, style="bold"), table)

    def _cells(self, row: tuple[str, ...], before: tuple[str, ...]) -> list[Text]:
        """Cells; a name that stands in the line above is not repeated, except the innermost."""
        outer = len(self.names) - 1
        cells = []
        for place, value in enumerate(row):
            again = place < outer and row[: place + 1] == before[: place + 1]
            style = self.styles.get(value, "") if place == len(row) - 1 else ""
            cells.append(Text("" if again else value, style=style))
        return cells
