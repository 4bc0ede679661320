"""Vectors of p-values: numbers, results of tests, or a column of a tidy frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError
from triagestats.ingest import to_polars
from triagestats.labels import listed
from triagestats.results import Note, Test
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["PValues", "read_p_values"]


@dataclass(frozen=True, slots=True, eq=False)
class PValues:
    """P-values in their places.

    Attributes
    ----------
    values
        Shape (n,), NaN where missing.
    frame
        The frame that they came from, None where they came as a vector.
    """

    values: Array
    frame: pl.DataFrame | None = None

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which are not missing."""
        found: NDArray[np.bool_] = ~np.isnan(self.values)
        return found

    @property
    def n_missing(self) -> int:
        """How many are missing."""
        return int((~self.present).sum())

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is said of missing ones."""
        if not self.n_missing:
            return ()
        message = f"{self.n_missing:,} of {len(self.values):,} p-values are missing and not counted."
        return (Note("missing", message, "caution"),)


def read_p_values(p_values: object) -> PValues:
    """P-values from a vector, a sequence of `Test` results, or a frame with a column `p_value`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If they are no numbers from 0 to 1, or there are none.
    """
    frame = None
    if isinstance(p_values, Mapping) or any(
        hasattr(p_values, name) for name in ("columns", "collect_schema")
    ):
        frame = to_polars(p_values).frame
        if "p_value" not in frame.columns:
            raise ArgumentError(
                f"`p_values` is a table without the column 'p_value'; its columns are {listed(frame.columns)}"
            )
        p_values = frame["p_value"]
    elif isinstance(p_values, Test):
        p_values = [p_values.p_value]
    elif isinstance(p_values, Sequence) and not isinstance(p_values, str | bytes):
        p_values = [item.p_value if isinstance(item, Test) else item for item in p_values]
    values: Array = numbers_of(p_values, "p_values", dimensions=(1,))
    wrong = (values < 0) | (values > 1)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise ArgumentError(
            f"`p_values` must lie between 0 and 1; got {values[place]:g} in place {place} (from 0)"
        )
    return PValues(values, frame)
