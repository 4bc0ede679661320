"""Coefficients of agreement as functions of sums, vectorised over leading axes.

A coefficient reads sums over units, from (..., K) to (...). So it can be read from the sums over all units,
from the sums without a cluster, and from the sums of drawn clusters. All accept complex sums, so that a
derivative is the imaginary part of one evaluation. Undefined is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Sums = NDArray[Any]

__all__ = [
    "Coefficient",
    "ac",
    "direction",
    "fleiss_of_units",
    "gwet_of_units",
    "kappa",
    "pabak",
    "ratio",
    "scott_pi",
    "share_of_agreement",
    "together",
]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement.

    Attributes
    ----------
    name, label
        Its name for code, and in words.
    evaluate
        From sums (..., K) to values (...), NaN where undefined.
    is_share
        Whether it is a share of units: at 0 and 1 an interval then needs another method.
    """

    name: str
    label: str
    evaluate: Callable[[Sums], Sums]
    is_share: bool = False


def together(coefficients: Sequence[Coefficient]) -> Callable[[Sums], Sums]:
    """Several coefficients of the same sums as one function, from (..., K) to (..., E)."""

    def evaluate(sums: Sums) -> Sums:
        return np.stack([coefficient.evaluate(sums) for coefficient in coefficients], axis=-1)

    return evaluate


def ratio(numerator: Sums, denominator: Sums, scale: Sums | float = 1.0) -> Sums:
    """`numerator / denominator`, NaN where the denominator is rounding of numbers as large as `scale`."""
    real = np.asarray(denominator).real > ROUNDING * np.asarray(scale).real
    result: Sums = np.where(real, numerator, np.nan) / np.where(real, denominator, 1.0)
    return result


def share_of_agreement(name: str, label: str, weights: Array) -> Coefficient:
    """Mean weight of the pairs, `sum w n / n`."""
    flat = weights.reshape(-1)

    def evaluate(counts: Sums) -> Sums:
        return ratio(counts @ flat, counts.sum(axis=-1))

    return Coefficient(name, label, evaluate, is_share=bool(((flat == 0) | (flat == 1)).all()))


def kappa(name: str, label: str, weights: Array) -> Coefficient:
    """Cohen's kappa, `1 - n sum v_ij n_ij / sum v_ij r_i c_j` with v = 1 - w."""
    apart = 1.0 - weights
    flat, largest = apart.reshape(-1), float(apart.max(initial=0.0))
    size = len(weights)

    def evaluate(counts: Sums) -> Sums:
        table = counts.reshape(*counts.shape[:-1], size, size)
        rows, columns = table.sum(axis=-1), table.sum(axis=-2)
        n = rows.sum(axis=-1)
        expected = ((rows @ apart) * columns).sum(axis=-1)
        return 1.0 - ratio(n * (counts @ flat), expected, largest * n * n)

    return Coefficient(name, label, evaluate)


def scott_pi(name: str, size: int) -> Coefficient:
    """Scott's pi: kappa with one margin, the mean of both."""

    def evaluate(counts: Sums) -> Sums:
        table = counts.reshape(*counts.shape[:-1], size, size)
        n = table.sum(axis=(-2, -1))
        margin = table.sum(axis=-1) + table.sum(axis=-2)
        apart = n - np.trace(table, axis1=-2, axis2=-1)
        expected = 4.0 * n * n - (margin * margin).sum(axis=-1)
        return 1.0 - ratio(4.0 * n * apart, expected, 4.0 * n * n)

    return Coefficient(name, "Scott's pi", evaluate)


def ac(name: str, label: str, weights: Array) -> Coefficient:
    """Gwet's AC1 or AC2 of two raters with k >= 2 categories."""
    flat, size = weights.reshape(-1), len(weights)
    chance = weights.sum() / (size * (size - 1))

    def evaluate(counts: Sums) -> Sums:
        table = counts.reshape(*counts.shape[:-1], size, size)
        n = counts.sum(axis=-1)
        margin = ratio(table.sum(axis=-1) + table.sum(axis=-2), 2.0 * n[..., None])
        expected = chance * (margin * (1.0 - margin)).sum(axis=-1)
        return ratio(ratio(counts @ flat, n) - expected, 1.0 - expected)

    return Coefficient(name, label, evaluate)


def pabak(size: int) -> Coefficient:
    """Agreement beyond chance of k >= 2 equally likely categories, `(k po - 1) / (k - 1)`."""
    equal = np.eye(size).reshape(-1)

    def evaluate(counts: Sums) -> Sums:
        return (size * ratio(counts @ equal, counts.sum(axis=-1)) - 1.0) / (size - 1.0)

    return Coefficient("pabak", "PABAK", evaluate)


def direction(size: int) -> Coefficient:
    """Share of pairs with the first rater above minus share with the second above."""
    sign = np.sign(np.subtract.outer(np.arange(size), np.arange(size))).reshape(-1).astype(np.float64)

    def evaluate(counts: Sums) -> Sums:
        return ratio(counts @ sign, counts.sum(axis=-1))

    return Coefficient("direction", "direction of disagreement", evaluate)


def fleiss_of_units() -> Coefficient:
    """Fleiss' kappa, of the sums over units of: its share of agreement, 1, and its ratings by category."""

    def evaluate(sums: Sums) -> Sums:
        counts = sums[..., 2:]
        n = counts.sum(axis=-1)
        chance = ratio((counts * counts).sum(axis=-1), n * n)
        apart = 1.0 - ratio(sums[..., 0], sums[..., 1])
        return 1.0 - ratio(apart, 1.0 - chance)

    return Coefficient("fleiss_kappa", "Fleiss' kappa", evaluate)


def gwet_of_units(name: str, label: str, weights: Array, *, paired: float | None = None) -> Coefficient:
    """AC1 or AC2 of any number of raters, k >= 2 categories.

    Of the sums over units of: the share of agreement of its pairs of raters, whether it has a pair, whether
    it has a rating, and its shares of ratings in the k categories.

    With `paired`, the share of units that have a pair, this share is taken as fixed: the value is the same,
    and the derivatives are those of Gwet's variance.
    """
    size = len(weights)
    chance = weights.sum() / (size * (size - 1))

    def evaluate(sums: Sums) -> Sums:
        margin = ratio(sums[..., 3:], sums[..., 2:3])
        expected = chance * (margin * (1.0 - margin)).sum(axis=-1)
        pairs = sums[..., 1] if paired is None else paired * sums[..., 2]
        return ratio(ratio(sums[..., 0] - expected * sums[..., 1], pairs), 1.0 - expected)

    return Coefficient(name, label, evaluate)
