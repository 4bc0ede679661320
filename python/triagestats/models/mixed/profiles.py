"""What predicted probabilities are averaged over: the cells, with one column set to a level."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.models.design_columns import is_category, levels_in
from triagestats.models.mixed.read import MixedData

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Comparison", "Profile", "Profiles", "profiles_of"]

_STEP: Final = 1e-3
"""Of the standard deviation of a column: half the difference that gives a slope."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Cells that a prediction is averaged over.

    Attributes
    ----------
    term
        The column that is set; None where all stay as they are.
    label
        What it is set to; empty where all stay.
    x
        Regressors, shape (m, p).
    z
        What multiplies the effects of each random part, each of shape (m, q).
    weights
        Shares of the cells, shape (m,), which add up to 1.
    under, over
        For each cell and level of an ordinal outcome whether the level lies below, or above, the gold range:
        shape (m, J); None where there is no gold.
    """

    term: str | None
    label: str
    x: Array
    z: tuple[Array, ...]
    weights: Array
    under: Array | None = None
    over: Array | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A difference of two profiles: `(high - low) * scale`.

    Attributes
    ----------
    term
        The column.
    label
        `b - a`, or `slope`.
    high, low
        Places among the profiles.
    scale
        1; for a slope, 1 over the difference of the values.
    """

    term: str
    label: str
    high: int
    low: int
    scale: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """Profiles, those of all levels of each column, and their comparisons.

    Attributes
    ----------
    profiles
        The first is that of the cells as they are; those that serve a slope alone come last.
    shown
        How many of them are reported themselves.
    comparisons
        Each level less the first of its column.
    """

    profiles: tuple[Profile, ...]
    shown: int
    comparisons: tuple[Comparison, ...]


def profiles_of(data: MixedData, *, collapse: bool = True) -> Profiles:
    """The profiles of every column among the regressors.

    For a level l of a category, the cells with this column set to l; for numbers, the cells with the column
    moved up and down by a thousandth of its standard deviation. The other columns stay as they are.

    Parameters
    ----------
    data
        The model.
    collapse
        Whether cells of the same prediction become one.
    """
    matrix = data.matrix
    under, over = _gold(data)
    weights = matrix.counts / matrix.counts.sum()

    def profile(term: str | None, label: str, x: Array, z: Sequence[Array]) -> Profile:
        whole = Profile(term, label, x, tuple(z), weights, under, over)
        return _collapsed(whole) if collapse else whole

    made = [profile(None, "", matrix.x, [part.z for part in matrix.random])]
    comparisons: list[Comparison] = []
    slopes: list[tuple[str, float]] = []
    for name in data.formula.regressors:
        levels = _levels(data, name)
        if levels is None:
            slopes.append((name, _step(data.frame[name])))
            continue
        first = len(made)
        arrays = [_arrays(data, name, level) for level in levels]
        for place, (level, (x, z)) in enumerate(zip(levels, arrays, strict=True)):
            made.append(profile(name, _text(level), x, z))
            if place and not _same(arrays[0], arrays[place]):
                label = f"{made[-1].label} - {made[first].label}"
                comparisons.append(Comparison(name, label, first + place, first))
    shown = len(made)
    for name, step in slopes:
        values = data.frame[name].cast(pl.Float64).to_numpy()
        ends = [_arrays(data, name, values + move) for move in (step, -step)]
        if not _same(*ends):
            comparisons.append(Comparison(name, "slope", len(made), len(made) + 1, 0.5 / step))
            made += [profile(name, "", *end) for end in ends]
    return Profiles(tuple(made), shown, tuple(comparisons))


def _arrays(data: MixedData, name: str, level: object) -> tuple[Array, list[Array]]:
    """`x` and the `z` of each random part with a column set to a level, or to numbers."""
    return data.x_with(name, level), [part.z_with(name, level) for part in data.parts]


def _same(one: tuple[Array, list[Array]], other: tuple[Array, list[Array]]) -> bool:
    parts = zip(one[1], other[1], strict=True)
    return np.array_equal(one[0], other[0]) and all(np.array_equal(a, b) for a, b in parts)


def _levels(data: MixedData, name: str) -> list[object] | None:
    """The levels of a column; None for one of numbers."""
    series = data.frame[name]
    if is_category(series):
        return list(levels_in(series))
    as_levels = re.search(rf"\bC\(\s*`?{re.escape(name)}`?\s*[,)]", data.formula.fixed) is not None
    if as_levels or set(series.unique()) <= {0, 1}:
        return sorted(series.unique().to_list())
    return None


def _step(series: pl.Series) -> float:
    return _STEP * float(series.cast(pl.Float64).to_numpy().std())


def _text(level: object) -> str:
    return str(int(level)) if isinstance(level, bool | float) and level == int(level) else str(level)


def _gold(data: MixedData) -> tuple[Array | None, Array | None]:
    """Which levels of each cell lie below and above its gold range."""
    if "gold_low" not in data.frame.columns:
        return None, None
    low = data.frame["gold_low"].to_list()
    high = data.frame["gold_high"].to_list() if "gold_high" in data.frame.columns else low
    scale = {label: place for place, label in enumerate(data.scale)}
    own = np.array([scale[label] for label in data.matrix.levels])
    lows, highs = (np.array([scale[label] for label in ends])[:, None] for ends in (low, high))
    return (own < lows).astype(np.float64), (own > highs).astype(np.float64)


def _collapsed(profile: Profile) -> Profile:
    """Cells of the same prediction as one."""
    blocks: Iterator[Array] = iter((profile.x, *profile.z))
    extra = [block for block in (profile.under, profile.over) if block is not None]
    columns = np.column_stack([*blocks, *extra, np.empty((len(profile.weights), 0))])
    names = [f"c{place}" for place in range(columns.shape[1])]
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.Float64), orient="row")
    frame = frame.with_columns(pl.Series("weight", profile.weights)).with_row_index("row")
    unique = frame.group_by(names).agg(pl.col("weight").sum(), pl.col("row").min()).sort("row")
    rows = unique["row"].to_numpy()
    return replace(
        profile,
        x=profile.x[rows],
        z=tuple(block[rows] for block in profile.z),
        weights=unique["weight"].to_numpy(),
        under=None if profile.under is None else profile.under[rows],
        over=None if profile.over is None else profile.over[rows],
    )
