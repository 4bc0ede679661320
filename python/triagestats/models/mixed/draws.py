"""Draws: what a sampler leaves, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Draws"]


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws from the posterior of a mixed model, every chain after its tuning.

    Attributes
    ----------
    coefficients
        Of the regressors as they are in the matrix, shape (chains, draws, p).
    thresholds
        Of an ordinal outcome, shape (chains, draws, J - 1); of others (chains, draws, 0).
    factors
        For each random part the lower-triangular factor L of the covariance matrix L L' of its effects, shape
        (chains, draws, q, q), the diagonal not negative; for one effect a level its standard deviation.
    sigma
        Residual standard deviation of a gaussian outcome, shape (chains, draws).
    effects
        For each random part the effects, shape (chains, kept draws, levels, q).
    statistics
        By name, shape (chains, draws): `diverging`, `energy`, `tree_depth`, `n_steps`, `acceptance_rate`,
        `step_size`, and `lp` where the sampler has it.
    sampler
        What drew them.
    seconds
        Time that tuning and drawing took.
    n_tune
        Tuning draws of each chain, which are not kept.
    effects_every
        For each random part k, where the effects of every k-th draw were kept, starting with the first; 1
        unless memory would not hold them all. Empty where all are 1.
    interrupted
        Whether sampling was stopped before the draws asked for were made.
    """

    coefficients: Array
    thresholds: Array
    factors: tuple[Array, ...]
    sigma: Array | None
    effects: tuple[Array, ...]
    statistics: Mapping[str, NDArray[Any]]
    sampler: str
    seconds: float
    n_tune: int
    effects_every: tuple[int, ...] = ()
    interrupted: bool = False

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return int(self.coefficients.shape[0])

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""
        return int(self.coefficients.shape[1])
