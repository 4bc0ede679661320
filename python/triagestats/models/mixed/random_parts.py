"""The random effects of a formula, from its terms and the columns of the cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.errors import DesignError
from triagestats.labels import as_text
from triagestats.models.design_columns import Columns, columns_of
from triagestats.models.formula import INTERCEPT, Formula, RandomTerm, nested_groups, parse_formula
from triagestats.models.mixed.matrix import RandomPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["FEW_LEVELS", "ReadPart", "random_parts"]

FEW_LEVELS: Final = 5
"""With fewer levels, the variance of a grouping is hardly known."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadPart:
    """A random part, and what its effects are multiplied by if a column held other values.

    Attributes
    ----------
    part
        Its arrays.
    columns
        The columns of its slopes; None where it has an intercept alone.
    kept
        Places of its effects among these columns.
    """

    part: RandomPart
    columns: Columns | None
    kept: tuple[int, ...]

    def z_with(self, name: str, level: object) -> Array:
        """`z` for all cells if a column held another level."""
        if self.columns is None or name not in self.columns.names_read:
            return self.part.z
        values: Array = self.columns.with_column(name, level)[:, list(self.kept)]
        return values


def random_parts(formula: Formula, frame: pl.DataFrame, n_rows: int) -> tuple[ReadPart, ...]:
    """The random effects of all terms, for the cells.

    Parameters
    ----------
    formula
        With the random terms.
    frame
        One row a cell.
    n_rows
        Rows that the cells hold.

    Raises
    ------
    ArgumentError
        If a term cannot be read.
    DesignError
        If a grouping has one level, as many levels as there are rows, or the levels of another.
    """
    read = [part for term in formula.random for part in _parts_of(term, formula, frame)]
    for place, one in enumerate(read):
        _check(one.part, n_rows, [other.part for other in read[:place]])
    return tuple(read)


def _parts_of(term: RandomTerm, formula: Formula, frame: pl.DataFrame) -> Iterator[ReadPart]:
    """The parts of one term: one a grouping, and of independent effects one an effect."""
    columns = None
    names: tuple[str, ...] = (INTERCEPT,)
    z = np.ones((frame.height, 1))
    if term.terms.strip() != "1":
        columns = columns_of(parse_formula(f"`{formula.outcome}` ~ {term.terms}"), frame)
        if not columns.names:
            raise DesignError(
                f"`formula` has the random term ({term.terms} | {term.group}) without any effect"
            )
        z, names = columns.values, columns.names
    together = [tuple(range(len(names)))] if term.correlated else [(place,) for place in range(len(names))]
    for group in nested_groups(term):
        levels, codes = _levels(frame, group)
        label = ":".join(group)
        for places in together:
            own = tuple(names[place] for place in places)
            yield ReadPart(
                RandomPart(
                    name=label if own[0] == INTERCEPT else f"{', '.join(own)} | {label}",
                    parts=group,
                    levels=levels,
                    codes=codes,
                    z=np.ascontiguousarray(z[:, list(places)]),
                    z_names=own,
                ),
                columns,
                places,
            )


def _levels(frame: pl.DataFrame, group: Sequence[str]) -> tuple[tuple[str, ...], Codes]:
    """Labels and codes of the combinations of columns, in their sorted order."""
    text = pl.DataFrame([as_text(frame[name], name).alias(str(place)) for place, name in enumerate(group)])
    unique = text.unique().sort(text.columns).with_row_index("code")
    codes = text.join(unique, on=text.columns, how="left", maintain_order="left")["code"]
    joined = unique.select(pl.concat_str(pl.exclude("code"), separator=":")).to_series()
    return tuple(joined), codes.to_numpy().astype(np.int64)


def _check(part: RandomPart, n_rows: int, before: Sequence[RandomPart]) -> None:
    named = f"`formula` has random effects of {part.name}"
    if part.n_levels == 1:
        raise DesignError(
            f"{named}, which has one level, {part.levels[0]!r}: nothing shows how levels differ. Leave it out"
        )
    if part.intercept_only and part.n_levels == n_rows:
        raise DesignError(
            f"{named}, which has a level for each of the {n_rows:,} rows: they cannot be told from what is "
            "left over in single rows. Name a coarser grouping"
        )
    for other in before:
        if other.name == part.name and other.parts == part.parts:
            raise DesignError(f"{named} twice; leave one out")
        if not (part.intercept_only and other.intercept_only and other.n_levels == part.n_levels):
            continue
        if len(np.unique(part.codes * other.n_levels + other.codes)) == part.n_levels:
            raise DesignError(
                f"{named} and of {other.name}, whose levels are the same groups of rows: their variances "
                "cannot be told apart. Leave one out"
            )
