"""Standard deviations and correlations of random effects, from the factors of their covariance matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.naming import correlation_name, deviation_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Deviation", "deviations"]


@dataclass(frozen=True, slots=True, eq=False)
class Deviation:
    """A standard deviation, or a correlation, of one random part.

    Attributes
    ----------
    kind
        What it is.
    term
        The part, and where it has several effects which of them.
    estimate
        Its value; NaN for a correlation with effects that do not vary.
    gradient
        Its derivatives with regard to the lower-triangular entries of the factors of all parts.
    n_levels
        Levels of the grouping.
    """

    kind: Literal["standard deviation", "correlation"]
    term: str
    estimate: float
    gradient: Array
    n_levels: int


def deviations(matrix: MixedMatrix, factors: tuple[Array, ...]) -> Iterator[Deviation]:
    """The standard deviations of the effects of each part, then their correlations.

    With L the factor, the covariance matrix is S = L L'; the deviations are the roots of its diagonal.
    """
    sizes = [len(factor) * (len(factor) + 1) // 2 for factor in factors]
    for place, (part, factor) in enumerate(zip(matrix.random, factors, strict=True)):
        before, after = sum(sizes[:place]), sum(sizes[place + 1 :])
        for found in _of_part(part, factor):
            yield replace(found, gradient=np.pad(found.gradient, (before, after)))


def _of_part(part: RandomPart, factor: Array) -> Iterator[Deviation]:
    """Those of one part, with derivatives in the entries of its own factor."""
    sds = np.sqrt((factor**2).sum(axis=1))
    slopes = [_placed(factor, effect, effect) / (sd if sd > 0 else 1.0) for effect, sd in enumerate(sds)]
    for effect, (sd, slope) in enumerate(zip(sds, slopes, strict=True)):
        term = deviation_name(part, effect)
        yield Deviation("standard deviation", term, float(sd), slope, part.n_levels)
    for one, other in combinations(range(len(factor)), 2):
        term = correlation_name(part, one, other)
        product = float(sds[one] * sds[other])
        if product == 0:
            yield Deviation("correlation", term, float("nan"), np.zeros_like(slopes[one]), part.n_levels)
            continue
        estimate = float(factor[one] @ factor[other]) / product
        covariance = _placed(factor, one, other) + _placed(factor, other, one)
        relative = slopes[one] / sds[one] + slopes[other] / sds[other]
        yield Deviation(
            "correlation", term, estimate, covariance / product - estimate * relative, part.n_levels
        )


def _placed(factor: Array, row: int, of: int) -> Array:
    """Row `of` of a factor at the places of row `row` among the lower-triangular entries."""
    rows, columns = np.tril_indices(len(factor))
    placed: Array = np.where(rows == row, factor[of, columns], 0.0)
    return placed
