"""Large-sample errors of kappa, of units that are independent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["fleiss_null_error", "kappa_errors"]


def kappa_errors(counts: NDArray[np.int64], weights: Array, kappa: float) -> tuple[float, float]:
    """Large-sample errors of Fleiss, Cohen and Everitt: for any kappa, and for kappa = 0."""
    n = int(counts.sum())
    shares = counts / n
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    chance = np.outer(rows, columns)
    mean_weights = np.add.outer(weights @ columns, weights.T @ rows)
    expected = float((weights * chance).sum())

    def error(of: Array, values: Array) -> float:
        variance = float((of * (values - (of * values).sum()) ** 2).sum()) / (n * (1 - expected) ** 2)
        found = math.sqrt(variance)
        return found if found > ROUNDING else 0.0

    return error(shares, weights - mean_weights * (1 - kappa)), error(chance, weights - mean_weights)


def fleiss_null_error(shares: Array, n_units: int, n_raters: int) -> float:
    """The error for kappa = 0 of Fleiss, Nee and Landis."""
    spread = shares * (1 - shares)
    total = float(spread.sum())
    inner = total**2 - float((spread * (1 - 2 * shares)).sum())
    return math.sqrt(2 * max(inner, 0.0) / (n_units * n_raters * (n_raters - 1))) / total
