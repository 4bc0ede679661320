"""A table that an engine holds, and what is asked of that engine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.errors import ReadError

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["SPLIT", "Held", "held_by_engine"]

SPLIT: Final = "_split"
ROWS_A_PART: Final = 8_000_000
"""Rows of the clusters that polars takes at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A lazy frame, to be grouped and summed by the engine that holds it.

    Attributes
    ----------
    frame
        The rows, as a narwhals LazyFrame; nothing here collects them.
    engine
        The name of the engine: `polars`, `duckdb`, `dask`, `pyspark`, ...
    argument
        The name that the caller knows the table by.
    """

    frame: nw.LazyFrame[Any]
    engine: str
    argument: str = "data"

    def collect(self, *queries: nw.LazyFrame[Any]) -> list[pl.DataFrame]:
        """The results of some queries on the frame, small ones, as polars frames.

        Polars answers them together, on its streaming engine, so that what they share is computed once.

        Raises
        ------
        ReadError
            If the engine cannot.
        """
        with self._refusing():
            if self.engine == "polars":
                return pl.collect_all([query.to_native() for query in queries], engine="streaming")
            return [query.collect(backend="polars").to_native() for query in queries]

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What the engine cannot do, as an error of this package."""
        try:
            yield
        except Exception as error:  # every engine has exceptions of its own
            lines = str(error).strip().splitlines() or [type(error).__name__]
            message = f"`{self.argument}` is a lazy frame that {self.engine} cannot group and sum: {lines[0]}"
            raise ReadError(message) from error

    def settled(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """A frame that several queries read, computed once where the engine works in this process.

        Polars keeps it in memory, which `parts` bounds; the other engines get it as a step of each query.
        """
        if self.engine != "polars":
            return frame
        import narwhals as nw

        with self._refusing():
            found: pl.DataFrame = frame.to_native().collect(engine="streaming")
        return nw.from_native(found.lazy())

    def with_split(self, column: str, name: str, *, strip: bool) -> Held:
        """The table with a column that, as `SPLIT`, `parts` are cut by, where this engine needs parts.

        Parameters
        ----------
        column
            The column whose values stay together.
        name
            What the new column is called, as no other is.
        strip
            Whether its texts are equal only after stripping.
        """
        if self.engine != "polars":
            return self
        import narwhals as nw

        value = pl.col(column).cast(pl.String).str.strip_chars() if strip else pl.col(column)
        return self.of(nw.from_native(self.frame.to_native().with_columns(value.hash(seed=0).alias(name))))

    def parts(self, n_rows: int, *, column: str | None = None, each: int | None = None) -> Sequence[Held]:
        """The table in parts that share no value of a column, each small enough to be grouped in memory.

        Polars groups in memory, so that a large table is grouped part by part, each a pass over the rows. The
        other engines put on disk what does not fit, and get the table whole.

        Parameters
        ----------
        n_rows
            Rows of the table.
        column
            The column; where not given that of `with_split`.
        each
            Rows of a part, some; `ROWS_A_PART` where not given.
        """
        number = -(-n_rows // (ROWS_A_PART if each is None else each))
        if self.engine != "polars" or number < 2:
            return (self,)
        import narwhals as nw

        value = pl.col(SPLIT) if column is None else pl.col(column).cast(pl.String).hash(seed=0)
        native = self.frame.to_native()
        return [self.of(nw.from_native(native.filter(value % number == place))) for place in range(number)]

    def of(self, frame: nw.LazyFrame[Any]) -> Held:
        """Other rows or columns of the same engine."""
        return replace(self, frame=frame)


def held_by_engine(data: object, argument: str = "data") -> Held | None:
    """The table if an engine holds it, None where its rows are in memory or in a file.

    Raises
    ------
    ReadError
        If the engine does not know the columns.
    """
    if isinstance(data, pl.DataFrame | Mapping | str | os.PathLike | Sequence):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    if not isinstance(frame, nw.LazyFrame):
        return None
    try:
        frame.collect_schema()
    except Exception as error:  # every engine has exceptions of its own
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ReadError(f"`{argument}` is a lazy frame that cannot be collected: {lines[0]}") from error
    return Held(frame, frame.implementation.value, argument)
