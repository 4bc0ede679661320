"""Arguments that may name columns of a table given as `data`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.ingest import to_polars
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.schema import ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import complete_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

__all__ = ["Shared", "column_of", "frame_of", "shared_rows"]


class Shared:
    """Rows that share clusters: their codes, what the cluster is, and whether the caller asked for it.

    Attributes
    ----------
    codes
        Cluster of each row, 0 to G - 1, shape (n,).
    name
        What a cluster is, such as `scenario`.
    asked
        Whether `clusters` was given in the call; else the clusters are those of a table.
    crossed
        Whether the table has a second cluster column, which `codes` leaves out.
    """

    __slots__ = ("asked", "codes", "crossed", "name")

    def __init__(self, codes: Codes, name: str, *, asked: bool, crossed: bool = False) -> None:
        self.codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        self.name = name
        self.asked = asked
        self.crossed = crossed

    @property
    def size(self) -> int:
        """Number of clusters."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def shares(self) -> bool:
        """Whether there are clusters of several rows."""
        return self.size < len(self.codes)

    def within(self, labels: NDArray[Any]) -> bool:
        """Whether each cluster has one label, a code from 0: groups by label are then groups of clusters."""
        return len(np.unique(self.codes * (int(labels.max()) + 1) + labels)) == self.size

    def needed_by(self, method: str) -> Shared:
        """Itself, if a method can read clusters from it.

        Raises
        ------
        DesignError
            If there are fewer than two, or the table has two crossed ones.
        """
        if self.crossed:
            raise DesignError(
                f"method={method!r} takes one cluster column, and the table has two that cross; choose one "
                "with `table.with_cluster(...)`"
            )
        if self.size < 2:
            raise DesignError(f"there is {self.size} cluster, and method={method!r} needs two")
        return self

    def of(self, kept: NDArray[np.bool_]) -> Shared:
        """The clusters of some of the rows."""
        return Shared(self.codes[kept], self.name, asked=self.asked, crossed=self.crossed)

    def taken_as_independent(self, clustered: str) -> tuple[Note, ...]:
        """A note for a test that ignores the clusters, where rows share some.

        Parameters
        ----------
        clustered
            The test that respects them, as a call.
        """
        n_rows, n_clusters = len(self.codes), self.size
        if not self.shares:
            return ()
        return (
            Note(
                "independence",
                f"{n_rows:,} rows are taken as independent, but they share {n_clusters:,} clusters "
                f"({self.name}), so that the p-value and interval are too optimistic where rows of a "
                f"cluster are alike; {clustered} respects the clusters.",
                "caution",
            ),
        )


def frame_of(data: object) -> pl.DataFrame | None:
    """The table given as `data` as a polars frame; None where none is given.

    Raises
    ------
    ArgumentTypeError
        If `data` is no table, or a ResponseTable where columns are wanted.
    """
    if data is None:
        return None
    return data.frame if isinstance(data, ResponseTable) else to_polars(data).frame


def column_of(frame: pl.DataFrame | None, value: object, argument: str) -> object:
    """The column that `value` names where there is a frame, else `value` itself.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If a name is given without a frame, no name with one, or the frame has no such column.
    """
    if frame is None:
        if isinstance(value, str):
            raise ArgumentTypeError(
                f"`{argument}` is the text {value!r}; a column name needs its table as `data=`"
            )
        return value
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"`{argument}` must be the name of a column of `data`; got {type(value).__name__}"
        )
    if value not in frame.columns:
        raise ArgumentError(
            f"`{argument}` names {value!r}, which `data` does not have; its columns are "
            f"{listed(frame.columns)}"
        )
    return frame[value]


def shared_rows(frame: pl.DataFrame | None, clusters: object, n_rows: int) -> Shared | None:
    """The clusters of rows: those given, else the scenarios of a table that has such a column.

    Raises
    ------
    ArgumentError
        If there are not as many labels as rows, or some are missing.
    """
    if clusters is not None:
        name = clusters if isinstance(clusters, str) else "clusters"
        codes = complete_codes(column_of(frame, clusters, "clusters"), "clusters", n_rows)
        return Shared(codes, name, asked=True)
    if frame is None:
        return None
    known = [name for name in frame.columns if name.lower() in ROLES["scenario"].spellings]
    if len(known) != 1 or frame[known[0]].null_count():
        return None
    return Shared(complete_codes(frame[known[0]], known[0], n_rows), known[0], asked=False)
