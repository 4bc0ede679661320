"""Costs of errors: a matrix over the scale, given as rows, a frame or a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.labels import label_of
from triagestats.results import Note
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["read_cost", "read_costs"]

_SHOWN = 5


def read_costs(cost: object, levels: Sequence[str]) -> tuple[Array, tuple[Note, ...]]:
    """Cost of each label (column) where the nearest right label is another (row), shape (k, k).

    Parameters
    ----------
    cost
        Rows of numbers in the order of `levels`; a frame; or a mapping, from (gold, label) to the cost or
        from gold to a mapping from label to the cost, in which right labels may be left out and cost 0.
    levels
        The scale.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If costs are missing, negative or not finite, or do not fit the scale.
    """
    size = len(levels)
    if isinstance(cost, Mapping):
        costs = _of_mapping(cost, levels)
    else:
        columns = [str(name) for name in getattr(cost, "columns", ())]
        if set(columns) == set(levels) and columns != list(levels):
            raise ArgumentError(
                f"`cost` has its columns in the order {columns}; give rows and columns in that of `levels`, "
                f"{list(levels)}"
            )
        if set(levels) < set(columns):
            extra = ", ".join(repr(name) for name in columns if name not in levels)
            raise ArgumentError(
                f"`cost` has {extra} beside the columns of the levels: order the rows as `levels`, "
                f"{list(levels)}, and leave it out; or map (gold, label) to the cost"
            )
        costs = numbers_of(cost, "cost", dimensions=(2,)).astype(np.float64)
        if costs.shape != (size, size):
            raise ArgumentError(
                f"`cost` must have one row and one column a level, {size} x {size}: rows are gold, columns "
                f"the label; got {costs.shape[0]} x {costs.shape[1]}"
            )
    if np.isnan(costs).any():
        gold, label = np.argwhere(np.isnan(costs))[0]
        raise ArgumentError(
            f"`cost` is missing for the label {levels[label]!r} where {levels[gold]!r} is right"
        )
    if (costs < 0).any():
        gold, label = np.argwhere(costs < 0)[0]
        raise ArgumentError(
            f"`cost` is {costs[gold, label]:g} for the label {levels[label]!r} where {levels[gold]!r} is "
            "right; a cost is 0 or more"
        )
    notes: tuple[Note, ...] = ()
    if np.diag(costs).any():
        said = "Right labels have a cost, so that the mean cost is not one of errors alone."
        notes = (Note("cost_of_right_labels", said, "caution"),)
    return costs, notes


def read_cost(cost: object, argument: str) -> float | None:
    """One cost, or None.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is no finite number of at least 0.
    """
    if cost is None:
        return None
    if isinstance(cost, bool) or not isinstance(cost, Real):
        raise ArgumentTypeError(f"`{argument}` must be a number; got {cost!r}")
    value = float(cost)
    if not 0 <= value < np.inf:
        raise ArgumentError(f"`{argument}` must be finite and 0 or more; got {value:g}")
    return value


def _of_mapping(cost: Mapping[object, object], levels: Sequence[str]) -> Array:
    rank = {level: place for place, level in enumerate(levels)}
    costs = np.full((len(levels), len(levels)), np.nan)
    np.fill_diagonal(costs, 0.0)
    for gold, label, value in _pairs(cost):
        names = [label_of(name) if isinstance(name, str | int | float) else None for name in (gold, label)]
        for name, given in zip(names, (gold, label), strict=True):
            if name not in rank:
                raise ArgumentError(f"`cost` names {given!r}; choose from the levels {list(levels)}")
        if (found := read_cost(value, "cost")) is None:
            continue
        costs[rank[str(names[0])], rank[str(names[1])]] = found
    missing = [(levels[gold], levels[label]) for gold, label in np.argwhere(np.isnan(costs))]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ArgumentError(
            f"`cost` is missing for (gold, label) {', '.join(map(str, missing[:_SHOWN]))}{more}; "
            "give a cost for every wrong label"
        )
    return costs


def _pairs(cost: Mapping[object, object]) -> Iterator[tuple[object, object, object]]:
    for key, value in cost.items():
        if isinstance(value, Mapping):
            for label, number in value.items():
                yield key, label, number
        elif isinstance(key, tuple) and len(key) == 2:
            yield key[0], key[1], value
        else:
            raise ArgumentTypeError(
                "`cost` must map (gold, label) to a number, or gold to a mapping from label to a number; "
                f"got {key!r}: {value!r}"
            )
