"""Pairs of values: two vectors, two columns of a table, or two condition levels of a response table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.design import Design, design_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed
from triagestats.matching import Keys, keys_of
from triagestats.results import Note
from triagestats.schema import Match
from triagestats.table import ResponseTable
from triagestats.vectors import Missing, drop_missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Pairs", "level_codes", "lost_keys", "read_pairs"]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Values that belong together.

    Attributes
    ----------
    x, y
        The values, shape (n,).
    names
        What the two sides are called.
    shared
        The clusters of the pairs, None where nothing says that pairs share any.
    n_missing
        Pairs that were left out.
    notes
        Choices made while reading.
    """

    x: Array
    y: Array
    names: tuple[str, str]
    shared: Shared | None = None
    n_missing: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def contrast(self) -> str:
        """The difference in words."""
        return f"{self.names[0]} - {self.names[1]}"

    @property
    def clustered(self) -> bool:
        """Whether the caller gave clusters."""
        return self.shared is not None and self.shared.asked

    def independence(self, clustered: str) -> tuple[Note, ...]:
        """A note for a test that ignores clusters which the pairs share; `clustered` names the one to use."""
        return () if self.shared is None else self.shared.taken_as_independent(clustered)

    def clusters_for(self, method: str) -> Shared:
        """The clusters, for a method that needs them.

        Raises
        ------
        ArgumentError
            If there are none.
        DesignError
            If there are fewer than two, or the table has two crossed ones.
        """
        if self.shared is None:
            raise ArgumentError(f"method={method!r} needs `clusters`, one label a pair")
        return self.shared.needed_by(method)


def read_pairs(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    match: Match = "row",
    missing: Missing = "raise",
    names: tuple[str, str] = ("x", "y"),
) -> Pairs:
    """Pairs from vectors, from two columns of `data`, or from two levels of a response table.

    Parameters
    ----------
    x, y
        Vectors of one length; or names of columns of `data`; or, where `data` is a ResponseTable,
        condition levels (none needed where there are two). `x` alone may be the ResponseTable.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a pair, or the name of a column of `data`.
    match
        What is paired in a ResponseTable.
    missing
        Whether pairs with a missing value are refused or left out, with a note. Keys of a ResponseTable
        that one level lacks are left out, with a note.
    names
        What the sides are called where they have no names of their own.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as pairs.
    """
    valid_choice("match", match, Match)
    if isinstance(x, ResponseTable) and data is None:
        x, data = None, x
    if isinstance(data, ResponseTable):
        return _of_levels(x, y, data, clusters, match)
    if y is None:
        raise ArgumentTypeError(
            f"`{names[1]}` is needed: the value of each pair that `{names[0]}` is compared to"
        )
    frame = frame_of(data)
    first, second = column_of(frame, x, names[0]), column_of(frame, y, names[1])
    sides = (x, y) if isinstance(x, str) and isinstance(y, str) else names
    a, b = numbers_of(first, names[0], dimensions=(1,)), numbers_of(second, names[1], dimensions=(1,))
    if len(a) != len(b):
        raise ArgumentError(
            f"`{names[0]}` and `{names[1]}` must pair: they have {len(a):,} and {len(b):,} values"
        )
    kept, notes = drop_missing([a, b], names, missing)
    shared = shared_rows(frame, clusters, len(a))
    if notes:
        a, b = a[kept], b[kept]
        shared = None if shared is None else shared.of(kept)
    return Pairs(a, b, sides, shared, len(kept) - len(a), notes)


def _of_levels(x: object, y: object, table: ResponseTable, clusters: object, match: Match) -> Pairs:
    """The keys of a response table that are scored at two levels."""
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
            "`table.with_cluster(...)`"
        )
    design = design_of(table)
    first, second = level_codes(design, x, y)
    keys = keys_of(design, match)
    paired = keys.matched([first, second])
    names = (design.levels[first].label, design.levels[second].label)
    if not len(paired.unit):
        raise DesignError(
            f"no key is scored at both {names[0]!r} and {names[1]!r} with match={match!r}; "
            "match='cell' averages repetitions, match='scenario' also averages variants"
        )
    lost, unmatched = lost_keys(keys, [first, second])
    axis = design.axes[0]
    codes = axis.codes[paired.unit if axis.by == "unit" else paired.model]
    notes = [*table.notes, *(note for note in design.notes if note.code != "reference")]
    notes += unmatched
    if len(design.models) > 1:
        notes.append(Note("pooled", f"Pairs of {len(design.models)} models are pooled."))
    return Pairs(
        x=paired.values[:, 0],
        y=paired.values[:, 1],
        names=names,
        shared=Shared(codes, axis.name, asked=False, crossed=len(design.axes) > 1),
        n_missing=lost,
        notes=tuple(notes),
    )


def lost_keys(keys: Keys, columns: list[int]) -> tuple[int, tuple[Note, ...]]:
    """How many keys are scored at some of the levels but not at all, and a note where there are some."""
    scored = ~np.isnan(keys.values[:, columns])
    planned, whole = int(scored.any(axis=1).sum()), int(scored.all(axis=1).sum())
    if planned == whole:
        return 0, ()
    message = f"{planned - whole:,} of {planned:,} keys are not scored at all of the levels, and left out."
    return planned - whole, (Note("unmatched", message, "caution"),)


def level_codes(design: Design, x: object, y: object) -> tuple[int, int]:
    """Codes of the two levels; level and reference where the table has two."""
    labels = [level.label for level in design.levels]
    if x is None and y is None:
        if len(labels) != 2:
            raise ArgumentError(
                f"the table has the condition levels {listed(labels)}; name two of them, as in "
                f"test({labels[-1]!r}, {labels[0]!r}, data=table)"
            )
        return 1, 0
    wanted = [label_of(side) if isinstance(side, str | int | float) else None for side in (x, y)]
    for side, argument in zip(wanted, ("x", "y"), strict=True):
        if side not in labels:
            raise ArgumentError(
                f"`{argument}` must be a condition level of the table, one of {listed(labels)}; got {side!r}"
            )
    if wanted[0] == wanted[1]:
        raise ArgumentError(f"`x` and `y` are both the level {wanted[0]!r}; name two levels")
    return labels.index(str(wanted[0])), labels.index(str(wanted[1]))
