"""Pareto-smoothed importance sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["smoothed_weights"]

_FEWEST: Final = 5
"""Weights in a tail to which a distribution is fitted."""
_PRIOR_STRENGTH: Final = 10
"""Observations that the prior of the shape at 0.5 counts for."""


def smoothed_weights(log_ratios: Array, *, efficiency: float = 1.0) -> tuple[Array, Array]:
    """Log importance weights whose upper tail is that of a fitted Pareto distribution.

    Parameters
    ----------
    log_ratios
        Log of target over proposal density, shape (k, draws).
    efficiency
        Effective over actual number of draws.

    Returns
    -------
    log_weights, shapes
        Normalised weights, shape (k, draws); and the shape of the tail, shape (k,): above 0.7 the weights of
        so many draws are not reliable.

    References
    ----------
    Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024), Pareto Smoothed Importance Sampling,
    Journal of Machine Learning Research 25(72):1-58.

    Zhang, J. and Stephens, M. A. (2009), A New and Efficient Estimation Method for the Generalized Pareto
    Distribution, Technometrics 51(3):316-325.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.models.mixed.psis import smoothed_weights
    >>> draws = np.random.default_rng(1).normal(size=(1, 4000))
    >>> weights, shape = smoothed_weights(0.5 * draws)
    >>> round(float(np.exp(weights).sum()), 6), bool(shape[0] < 0.5)
    (1.0, True)
    """
    n = log_ratios.shape[1]
    length = int(np.ceil(min(n / 5, 3 * np.sqrt(n / efficiency))))
    weights = log_ratios - log_ratios.max(axis=1, keepdims=True)
    shapes = np.empty(len(weights))
    for row, values in enumerate(weights):
        shapes[row] = _smooth(values, length)
    return weights - special.logsumexp(weights, axis=1, keepdims=True), shapes


def _smooth(values: Array, length: int) -> float:
    """Replace the tail of log weights, whose largest is 0, in place; the shape of the tail."""
    order = np.argsort(values)
    cutoff = max(float(values[order[-length - 1]]), float(np.log(np.finfo(np.float64).tiny)))
    tail = order[values[order] > cutoff]
    if len(tail) < _FEWEST:
        return float("inf")
    shape, scale = _pareto_fit(np.exp(values[tail]) - np.exp(cutoff))
    if np.isfinite(shape):
        p = (np.arange(len(tail)) + 0.5) / len(tail)
        if abs(shape) < np.finfo(np.float64).eps:
            excess = -scale * np.log1p(-p)
        else:
            excess = scale * np.expm1(-shape * np.log1p(-p)) / shape
        values[tail] = np.minimum(np.log(excess + np.exp(cutoff)), 0.0)
    return shape


def _pareto_fit(ordered: Array) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution by the posterior mean of Zhang and Stephens."""
    n = len(ordered)
    m = 30 + int(np.sqrt(n))
    quartile = ordered[int(n / 4 + 0.5) - 1]
    theta = (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * quartile) + 1 / ordered[-1]
    shapes = np.log1p(-theta[:, None] * ordered).mean(axis=1)
    profile = n * (np.log(-theta / shapes) - shapes - 1)
    mean = float(special.softmax(profile) @ theta)
    shape = float(np.log1p(-mean * ordered).mean())
    scale = -shape / mean
    return (n * shape + 0.5 * _PRIOR_STRENGTH) / (n + _PRIOR_STRENGTH), scale
