"""P-values adjusted by their order alone: step-down, step-up, and single-step procedures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["BY_ORDER", "ByOrder", "adjusted"]

ByOrder = Literal["holm", "bonferroni", "hochberg", "hommel", "bh", "by", "sidak", "holm-sidak"]
BY_ORDER: Final[tuple[ByOrder, ...]] = get_args(ByOrder)


def adjusted(p: Array, method: ByOrder) -> Array:
    """Adjusted p-values, in the order that they came in; NaN keeps its place and is not counted.

    Parameters
    ----------
    p
        Numbers from 0 to 1, shape (n,).
    method
        The procedure.
    """
    found = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")[: int((~np.isnan(p)).sum())]  # NaN sorts last
    if len(order):
        found[order] = np.minimum(_PROCEDURES[method](p[order]), 1.0)
    return found


def _ranks(p: Array) -> Array:
    return np.arange(1, len(p) + 1, dtype=np.float64)


def _down(p: Array) -> Array:
    """The largest so far: a hypothesis is kept once one with a smaller p-value is."""
    largest: Array = np.maximum.accumulate(p)
    return largest


def _up(p: Array) -> Array:
    """The smallest from here on: a hypothesis is refused once one with a larger p-value is."""
    smallest: Array = np.minimum.accumulate(p[::-1])[::-1]
    return smallest


def _one_of(p: Array, number: Array | int) -> Array:
    """1 - (1 - p)^number, without losing the digits of a tiny p."""
    with np.errstate(divide="ignore"):
        chance: Array = -np.expm1(number * np.log1p(-p))
    return chance


def _hommel(p: Array) -> Array:
    """The smallest level at which the closed test with Simes' test refuses, for sorted p."""
    m = len(p)
    best = np.full(m, float((m * p / _ranks(p)).min()))
    for size in range(m - 1, 1, -1):
        lower, upper = p[: m - size + 1], p[m - size + 1 :]
        simes = float((size * upper / np.arange(2, size + 1)).min())
        level = np.empty(m)
        level[: m - size + 1] = np.minimum(size * lower, simes)
        level[m - size + 1 :] = level[m - size]
        best = np.maximum(best, level)
    not_below: Array = np.maximum(best, p)
    return not_below


_PROCEDURES: Final[dict[ByOrder, Callable[[Array], Array]]] = {
    "holm": lambda p: _down((len(p) + 1 - _ranks(p)) * p),
    "bonferroni": lambda p: len(p) * p,
    "hochberg": lambda p: _up((len(p) + 1 - _ranks(p)) * p),
    "hommel": _hommel,
    "bh": lambda p: _up(len(p) / _ranks(p) * p),
    "by": lambda p: _up(float((1 / _ranks(p)).sum()) * len(p) / _ranks(p) * p),
    "sidak": lambda p: _one_of(p, len(p)),
    "holm-sidak": lambda p: _down(_one_of(p, len(p) + 1 - _ranks(p))),
}
