"""ModelMatrix: what a regression is fitted to, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["ModelMatrix"]


@dataclass(frozen=True, slots=True, eq=False)
class ModelMatrix:
    """Arrays of a linear model; rows with missing values, singletons and collinear columns are gone.

    Attributes
    ----------
    y
        The outcome, shape (n,).
    x
        The regressors that are estimated, shape (n, k), not demeaned.
    terms
        Their names, k.
    absorbed
        Codes of each fixed effect, 0 to its number of levels - 1, each of shape (n,).
    absorbed_names
        Names of the fixed effects.
    weights
        Analytic weights, shape (n,); None where all are 1.
    clusters
        Codes of one or two cluster variables, each of shape (n,).
    cluster_names
        Their names.
    """

    y: Array
    x: Array
    terms: tuple[str, ...]
    absorbed: tuple[Codes, ...]
    absorbed_names: tuple[str, ...]
    weights: Array | None
    clusters: tuple[Codes, ...]
    cluster_names: tuple[str, ...]
