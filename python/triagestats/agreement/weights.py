"""Weights of pairs of categories: how far two ratings agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from triagestats.agreement.scale import Scale
from triagestats.errors import ArgumentError
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["KappaWeights", "agreement_weights", "name_of"]

KappaWeights = Literal["linear", "quadratic"]


def agreement_weights(weights: object, scale: Scale) -> Array:
    """Weights of agreement, 1 for one category and less for two, shape (k, k).

    With x the values of the categories and d = |x_i - x_j| / (max x - min x): `1 - d` (linear), `1 - d^2`
    (quadratic); without weights 1 for equal categories and 0 for others.

    Parameters
    ----------
    weights
        None, `linear`, `quadratic`, or a matrix of weights in the order of the categories.
    scale
        The categories.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If the weights are none of these, or need an order that the categories have not.
    """
    if weights is None:
        return np.eye(scale.size)
    if isinstance(weights, str):
        if weights not in get_args(KappaWeights):
            raise ArgumentError(
                "`weights` must be one of 'linear', 'quadratic', a matrix of weights of agreement, or None; "
                f"got {weights!r}"
            )
        return _of_distances(scale.worth(f"`weights={weights!r}`"), 1 if weights == "linear" else 2)
    given: Array = numbers_of(weights, "weights", dimensions=(2,))
    scale.worth("a matrix as `weights`")  # else nothing says which category a row is of
    if given.shape != (scale.size, scale.size):
        raise ArgumentError(
            f"`weights` must be a matrix of {scale.size} x {scale.size}, one row a category of "
            f"{list(scale.labels)}; got {given.shape[0]} x {given.shape[1]}"
        )
    if np.isnan(given).any():
        raise ArgumentError("`weights` has missing values; give a weight for every two categories")
    if (np.diag(given) != 1).any() or (given > 1).any():
        raise ArgumentError(
            "`weights` must be 1 on the diagonal and nowhere above 1: they are weights of agreement. "
            "Weights v of disagreement become `1 - v / v.max()`"
        )
    if scale.size > 1 and (given == 1).all():
        raise ArgumentError("`weights` are all 1, so that any two ratings would agree")
    return given


def name_of(weights: object) -> str:
    """The weights in a word."""
    if weights is None:
        return "unweighted"
    return weights if isinstance(weights, str) else "given"


def _of_distances(values: Array, power: int) -> Array:
    distance = np.abs(values[:, None] - values)
    largest = distance.max(initial=0.0)
    relative = distance / largest if largest > 0 else distance
    result: Array = 1.0 - relative**power
    return result
