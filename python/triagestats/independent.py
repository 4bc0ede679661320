"""What an analysis that takes rows as independent would have said, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.blocks import Block, Target
from triagestats.design import Design
from triagestats.intervals import jackknife_t, t_p_value
from triagestats.matching import Keys, keys_of
from triagestats.schema import Match
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["RowReading", "read_independent"]


@dataclass(frozen=True, slots=True)
class RowReading:
    """Mean, error and test of values taken as independent.

    Attributes
    ----------
    n, estimate, std_error
        Number of values, their mean, and sd / sqrt(n).
    """

    n: int
    estimate: float
    std_error: float

    def ends(self, conf_level: float) -> tuple[float, float]:
        """The t interval with n - 1 degrees of freedom."""
        ends = jackknife_t(*self._as_arrays(), conf_level)
        return float(ends.low[0]), float(ends.high[0])

    @property
    def p_value(self) -> float | None:
        """Two-sided p-value of the paired t test; None where all values are equal."""
        if not self.std_error > 0:
            return None
        return float(t_p_value(*self._as_arrays())[0])

    def _as_arrays(self) -> tuple[Array, Array, Array]:
        """Estimate, error and degrees of freedom, as the functions on arrays take them."""
        return np.array([self.estimate]), np.array([self.std_error]), np.array([self.n - 1.0])


def read_independent(design: Design, blocks: Sequence[Block]) -> tuple[dict[Match, RowReading | None], ...]:
    """Readings of each estimate of the blocks that take its rows, and its cells, as independent.

    Rows are paired by repetition, cells average repetitions; each matched key weighs the same. Cells
    are left out where they are the rows.
    """
    kinds: tuple[Match, ...] = ("row", "cell") if max(design.repetitions) > 1 else ("row",)
    strata = dict.fromkeys(block.stratum for block in blocks)
    keys = {(kind, stratum): keys_of(design, kind, stratum) for kind in kinds for stratum in strata}
    readings: list[dict[Match, RowReading | None]] = []
    for block in blocks:
        values = {kind: _values(keys[kind, block.stratum], block.target) for kind in kinds}
        for model in block.models:
            readings.append({kind: _read(values[kind], model) for kind in kinds})
    return tuple(readings)


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """The estimand of each matched key (n,), its model (n,), and the largest score behind them."""

    values: Array
    model: NDArray[np.int64]
    largest: float


def _values(keys: Keys, target: Target) -> _Values | None:
    """The estimand of each matched key; None where it is not a linear contrast."""
    coefficients = target.estimand.coefficients
    if coefficients is None or target.estimand.null is None:
        return None
    matched = [keys.matched(list(columns)) for columns in target.columns]
    return _Values(
        np.concatenate([part.values @ np.array(coefficients) for part in matched]),
        np.concatenate([part.model for part in matched]),
        max(float(np.abs(part.values).max(initial=0.0)) for part in matched),
    )


def _read(given: _Values | None, model: int | None) -> RowReading | None:
    if given is None:
        return None
    chosen = given.values if model is None else given.values[given.model == model]
    if len(chosen) < 2:
        return None
    deviation = float(chosen.std(ddof=1))
    if deviation <= ROUNDING * given.largest:
        deviation = 0.0
    return RowReading(len(chosen), float(chosen.mean()), deviation / len(chosen) ** 0.5)
