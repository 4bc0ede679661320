"""Averages of a logistic probability over a normal distribution of the log odds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["logistic_normal"]

_REACH: Final = 8.0
"""Standard deviations to which the integral goes: what is beyond weighs 1e-15."""
_WIDEST: Final = 0.5
_RESOLUTION: Final = 0.8
"""Of a step times the sd: the trapezoidal rule then errs by exp(-2 pi^2 / 0.8) = 2e-11."""
_AT_ONCE: Final = 1 << 21


def logistic_normal(mean: Array, sd: Array) -> Array:
    r"""Mean of the logistic function of normal log odds.

    .. math:: E\{1 / (1 + e^{-\mu - \sigma W})\}, \qquad W \sim N(0, 1)

    Parameters
    ----------
    mean, sd
        Arrays that broadcast against each other; `sd` is not negative.

    Notes
    -----
    The trapezoidal rule: the integrand is analytic in a strip around the real line, of half width pi / sd, so
    that equal steps h err by exp(-2 pi^2 / (h sd)); h follows the largest sd.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.models.mixed.integrals import logistic_normal
    >>> logistic_normal(np.array([0.0, 1.0]), np.array([2.0, 0.0])).round(6).tolist()
    [0.5, 0.731059]
    """
    mean, sd = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.asarray(sd, dtype=np.float64))
    flat_mean, flat_sd = mean.ravel(), sd.ravel()
    result = np.empty(flat_mean.size)
    largest = float(flat_sd.max(initial=0.0))
    step = min(_WIDEST, _RESOLUTION / largest) if largest > 0 else _WIDEST
    nodes = np.arange(-int(_REACH / step), int(_REACH / step) + 1) * step
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    chunk = max(1, _AT_ONCE // len(nodes))
    for start in range(0, flat_mean.size, chunk):
        part = slice(start, start + chunk)
        result[part] = special.expit(flat_mean[part, None] + flat_sd[part, None] * nodes) @ weights
    return result.reshape(mean.shape)
