"""Krippendorff's alpha as a function of sums: of counts of pairs of categories, or of sums over units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.agreement.functions import Coefficient, ratio
from triagestats.agreement.scale import Scale
from triagestats.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]
    Sums = NDArray[Any]

__all__ = ["Metric", "alpha_of_pairs", "alpha_of_units"]

Metric = Literal["nominal", "ordinal", "interval", "ratio"]

_MOST: Final = 1_000
"""Categories up to which all distances are kept."""


def alpha_of_pairs(name: str, scale: Scale, metric: Metric) -> Coefficient:
    """Alpha of two raters, of the counts of the k * k pairs of categories (row major)."""
    first, second = (places.reshape(-1) for places in np.indices((scale.size, scale.size)))
    core = _core(scale, metric, first, second)
    if metric == "ordinal":
        return Coefficient(name, f"Krippendorff's alpha ({metric})", core)
    # A unit whose ratings are c and k: its sums are those of one unit with one rating in each.
    places = np.arange(len(first))
    counts = np.zeros((len(first), scale.size), dtype=np.int64)
    np.add.at(counts, (places, first), 1)
    np.add.at(counts, (places, second), 1)
    to_sums = _plain_sums(counts, scale, metric)
    return Coefficient(name, f"Krippendorff's alpha ({metric})", lambda cells: core(cells @ to_sums))


def alpha_of_units(name: str, counts: Codes, scale: Scale, metric: Metric) -> tuple[Coefficient, Array]:
    """Alpha of any number of raters, and the sums of each unit that it is a function of, shape (n, K).

    Parameters
    ----------
    name
        The name of the coefficient.
    counts
        Ratings of each unit by category, two at least, shape (n, k).
    scale, metric
        The categories and how far they are apart.

    Raises
    ------
    ArgumentError
        If there are too many categories for the metric, or they have no order and it needs one.
    """
    if metric != "interval" and scale.size > _MOST:
        raise ArgumentError(
            f"`metric={metric!r}` takes up to {_MOST:,} categories; got {scale.size:,} different ratings. "
            "Round them, or take metric='interval'"
        )
    label = f"Krippendorff's alpha ({metric})"
    if metric == "ordinal":
        scale.worth("`metric='ordinal'`")
        first, second, rows = _coincidences(counts)
        return Coefficient(name, label, _core(scale, metric, first, second)), rows
    nowhere = np.empty(0, dtype=np.int64)
    return Coefficient(name, label, _core(scale, metric, nowhere, nowhere)), _plain_sums(
        counts, scale, metric
    )


def _core(scale: Scale, metric: Metric, first: Codes, second: Codes) -> Any:
    """Alpha of sums, from (..., K) to (...).

    With T the observed disagreement `sum o_ck d_ck`, the sums are: T and the margins n_c (nominal, ratio); T,
    n, and the sums of the values and their squares (interval); the weights of the unordered pairs of
    categories `first` and `second` (ordinal, whose distances depend on the margins).
    """
    if metric == "interval":

        def interval(sums: Sums) -> Sums:
            observed, n, total, squares = np.moveaxis(sums, -1, 0)
            return 1.0 - ratio((n - 1.0) * observed, 2.0 * (n * squares - total * total), n * squares)

        return interval
    if metric == "ordinal":
        scale.worth("`metric='ordinal'`")
        margin = np.zeros((len(first), scale.size))
        for side in (first, second):
            np.add.at(margin, (np.arange(len(first)), side), 1.0)

        def ordinal(sums: Sums) -> Sums:
            counts = sums @ margin
            n = counts.sum(axis=-1)
            ranks = np.cumsum(counts, axis=-1) - counts / 2.0 - n[..., None] / 2.0  # mid-ranks, of mean 0
            apart = ranks[..., first] - ranks[..., second]
            observed = 2.0 * (sums * apart * apart).sum(axis=-1)
            expected = 2.0 * n * (counts * ranks * ranks).sum(axis=-1)
            return 1.0 - ratio((n - 1.0) * observed, expected, n**4)

        return ordinal
    distance = _distance(scale, metric)
    largest = float(distance.max(initial=0.0))

    def plain(sums: Sums) -> Sums:
        observed, counts = sums[..., 0], sums[..., 1:]
        n = counts.sum(axis=-1)
        expected = ((counts @ distance) * counts).sum(axis=-1)
        return 1.0 - ratio((n - 1.0) * observed, expected, largest * n * n)

    return plain


def _plain_sums(counts: Codes, scale: Scale, metric: Metric) -> Array:
    """The sums of each unit for the metrics whose distances are known beforehand."""
    counts = counts.astype(np.float64)
    numbers = counts.sum(axis=1)
    if metric == "interval":
        values = scale.worth("`metric='interval'`")
        values = values - (values.max() + values.min()) / 2.0
        total = counts @ values
        within = (counts * (values - (total / numbers)[:, None]) ** 2).sum(axis=1)
        observed = 2.0 * numbers * within / (numbers - 1.0)
        return np.column_stack([observed, numbers, total, counts @ values**2])
    observed = ((counts @ _distance(scale, metric)) * counts).sum(axis=1) / (numbers - 1.0)
    return np.column_stack([observed, counts])


def _distance(scale: Scale, metric: Metric) -> Array:
    """Nominal or ratio distances of the categories, shape (k, k)."""
    if metric == "nominal":
        return 1.0 - np.eye(scale.size)
    values = scale.worth("`metric='ratio'`")
    total = values[:, None] + values
    result: Array = ((values[:, None] - values) / np.where(total == 0, 1.0, total)) ** 2
    return result


def _coincidences(counts: Codes) -> tuple[Codes, Codes, Array]:
    """The pairs of categories that units have, and their weights in each unit, shape (n, pairs).

    A unit with n_c of its m ratings in category c has n_c n_k pairs of c and k, and n_c (n_c - 1) / 2 of c
    with itself; each weighs 1 / (m - 1).
    """
    n_units, size = counts.shape
    unit, category = np.nonzero(counts)
    starts = np.searchsorted(unit, np.arange(n_units))
    used = np.bincount(unit, minlength=n_units)
    behind = used[unit] - (np.arange(len(unit)) - starts[unit])  # entries of its unit from this one on
    left = np.repeat(np.arange(len(unit)), behind)
    right = left + np.arange(len(left)) - np.repeat(np.cumsum(behind) - behind, behind)
    whose, low, high = unit[left], category[left], category[right]
    one, other = counts[whose, low], counts[whose, high]
    pairs = np.where(low == high, one * (one - 1) / 2.0, one * other)
    kept = pairs > 0
    cells, column = np.unique((low * size + high)[kept], return_inverse=True)
    rows = np.zeros((n_units, len(cells)))
    rows[whose[kept], column] = pairs[kept] / (counts.sum(axis=1)[whose[kept]] - 1.0)
    return cells // size, cells % size, rows
