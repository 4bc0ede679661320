"""MixedMatrix: what a mixed model is fitted to, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Family", "MixedMatrix", "RandomPart"]

Family = Literal["binomial", "ordinal", "gaussian"]


@dataclass(frozen=True, slots=True, eq=False)
class RandomPart:
    """Effects of the levels of one grouping, drawn from one normal distribution with mean 0.

    Level g has the effects `u[g]`, shape (q,), with a covariance matrix of their own; they enter the linear
    predictor of cell i as `z[i] @ u[codes[i]]`.

    Attributes
    ----------
    name
        `scenario`, `scenario:model`; several parts may share a grouping, then `scenario` and `condition | \
scenario`.
    parts
        The columns whose combinations are the levels.
    levels
        Labels of the levels, those of several columns joined by `:`.
    codes
        Level of each cell, 0 to the number of levels - 1, shape (n,).
    z
        What multiplies the effects, shape (n, q); a column of ones for an intercept alone.
    z_names
        Names of the q effects of a level, `(Intercept)` first where there is one.
    """

    name: str
    parts: tuple[str, ...]
    levels: tuple[str, ...]
    codes: Codes
    z: Array
    z_names: tuple[str, ...]

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def width(self) -> int:
        """Number of effects of a level, q."""
        return int(self.z.shape[1])

    @property
    def intercept_only(self) -> bool:
        """Whether a level has one effect that is added to all its cells."""
        return self.z.shape[1] == 1 and bool((self.z == 1).all())


@dataclass(frozen=True, slots=True, eq=False)
class MixedMatrix:
    """Cells of a mixed model: rows that share every regressor and grouping are one cell with counts.

    Attributes
    ----------
    family
        `binomial`: `logit P(y = 1) = x'b + z'u`; `ordinal`: `logit P(y <= j) = threshold_j - x'b - z'u`;
        `gaussian`: `y = x'b + z'u + e`.
    y
        Shape (n,). Binomial: the successes of a cell; ordinal: the level, 0 to J - 1, of all rows of
        a cell; gaussian: the outcome of a row (each cell is one row).
    counts
        Shape (n,). Binomial: the trials of a cell; ordinal: its rows; gaussian: ones.
    x
        Regressors, shape (n, p), of full column rank; with a constant, except for `ordinal`, whose
        thresholds take its place.
    terms
        Names of the regressors, p.
    random
        The random effects.
    levels
        Labels of the levels of an ordinal outcome, from lowest to highest; empty otherwise.
    n_rows
        Rows that were collapsed into the cells.
    """

    family: Family
    y: Array
    counts: Array
    x: Array
    terms: tuple[str, ...]
    random: tuple[RandomPart, ...]
    levels: tuple[str, ...]
    n_rows: int
