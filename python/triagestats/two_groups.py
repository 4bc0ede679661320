"""Two independent groups: two vectors, or values with a label a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.vectors import Missing, drop_missing, labels_of, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["GROUPED", "PAIRED", "TwoGroups", "read_groups"]

GROUPED: Final = "permutation_test(values, groups=..., clusters=...)"
"""The test of two groups, each cluster wholly in one."""
PAIRED: Final = (
    "the groups vary within clusters, so that permutation_test(a, b, clusters=...) of a column for each, or "
    "permutation_tests(table) of a ResponseTable,"
)
"""The test where clusters have values of several groups."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoGroups:
    """Values of a level and of a reference.

    Attributes
    ----------
    values
        All values, shape (n,).
    in_level
        Whether a value belongs to the level, shape (n,).
    names
        What the level and the reference are called.
    shared
        The clusters of the values, None where nothing says that they share any.
    cluster_labels
        The cluster of each value by its name, empty where there are none.
    n_missing
        Values that were left out.
    notes
        How many, where some were.
    """

    values: Array
    in_level: NDArray[np.bool_]
    names: tuple[str, str]
    shared: Shared | None
    cluster_labels: tuple[str, ...]
    n_missing: int
    notes: tuple[Note, ...]

    @property
    def level(self) -> Array:
        """Values of the level."""
        return self.values[self.in_level]

    @property
    def reference(self) -> Array:
        """Values of the reference."""
        return self.values[~self.in_level]

    @property
    def contrast(self) -> str:
        """The comparison in words."""
        return f"{self.names[0]} - {self.names[1]}"

    def independence(self) -> tuple[Note, ...]:
        """A note for a test that ignores clusters which values share; it names the one that respects them."""
        if self.shared is None:
            return ()
        whole = self.shared.within(self.in_level.astype(np.int64))
        return self.shared.taken_as_independent(GROUPED if whole else PAIRED)


def read_groups(
    x: object, y: object, *, groups: object, data: object, clusters: object, missing: Missing
) -> TwoGroups:
    """Two vectors `x` and `y`, or the values `x` with one of two labels a row in `groups`.

    Parameters
    ----------
    x, y, groups, data
        Vectors, or names of columns of the table `data`. Of two labels the first in the order of an Enum or
        ordered categorical, else in sorted order, is the reference.
    clusters
        One label a row; for two vectors those of `x` and then those of `y`.
    missing
        Whether missing values and labels are refused or left out.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as two groups.
    """
    frame = frame_of(data)
    if (y is None) == (groups is None):
        raise ArgumentTypeError(
            "give `y`, the values of the second group, or `groups`, one label a value; and not both"
        )
    if groups is None:
        sides = [
            numbers_of(column_of(frame, side, name), name, dimensions=(1,))
            for side, name in ((x, "x"), (y, "y"))
        ]
        names = (x, y) if isinstance(x, str) and isinstance(y, str) else ("x", "y")
        values = np.concatenate(sides)
        in_level = np.arange(len(values)) < len(sides[0])
        kept, notes = drop_missing([values], ["x", "y"], missing)
    else:
        values = numbers_of(column_of(frame, x, "x"), "x", dimensions=(1,))
        labels = labels_of(column_of(frame, groups, "groups"), "groups")
        if len(labels.codes) != len(values):
            raise ArgumentError(
                f"`groups` must have one label a value: expected {len(values):,}, got {len(labels.codes):,}"
            )
        gaps = np.where(labels.codes < 0, np.nan, 0.0)
        kept, notes = drop_missing([values, gaps], ["x", "groups"], missing)
        present = np.unique(labels.codes[kept])
        if len(present) != 2:
            found = listed(labels.levels[code] for code in present)
            raise DesignError(
                f"`groups` must have two labels among the values; got {len(present)}: {found}. For more "
                "groups use kruskal(values, groups=...)"
            )
        in_level = labels.codes == present[1]
        names = (labels.levels[present[1]], labels.levels[present[0]])
    for name, inside in zip(names, (in_level, ~in_level), strict=True):
        if not (inside & kept).any():
            raise DesignError(f"group {name!r} has no value left")
    shared = shared_rows(frame, clusters, len(values))
    named: tuple[str, ...] = ()
    if shared is not None and shared.asked:
        known = labels_of(column_of(frame, clusters, "clusters"), "clusters")
        named = tuple(known.levels[code] for code in known.codes[kept])
    return TwoGroups(
        values=values[kept],
        in_level=in_level[kept],
        names=names,
        shared=None if shared is None else shared.of(kept),
        cluster_labels=named,
        n_missing=int((~kept).sum()),
        notes=notes,
    )
