"""Tests of a difference of paired proportions in clusters of pairs, and the intervals they invert to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Clustered", "ClusteredScore", "clustered_score"]

Clustered = Literal["obuchowski", "durkalski"]


@dataclass(frozen=True, slots=True)
class ClusteredScore:
    """A score test of a difference of proportions with clusters of pairs.

    With r_k = d_k - delta m_k the part of cluster k,

        z(delta) = sum(r_k) / sqrt(factor sum(r_k^2))

    where d_k and m_k are sums of differences and numbers of pairs for Obuchowski, with factor K / (K - 1),
    and means and 1 for Durkalski, with factor 1.

    Attributes
    ----------
    total, weight
        sum(d_k) and sum(m_k).
    dd, dm, mm
        sum(d_k^2), sum(d_k m_k) and sum(m_k^2).
    factor
        Of the variance.
    """

    total: float
    weight: float
    dd: float
    dm: float
    mm: float
    factor: float

    @property
    def estimate(self) -> float:
        """The difference of proportions."""
        return self.total / self.weight

    @property
    def std_error(self) -> float:
        """Of the estimate, if the proportions are equal."""
        return math.sqrt(self.factor * self.dd) / self.weight

    @property
    def z(self) -> float | None:
        """Statistic of the test that the proportions are equal; None where no cluster differs."""
        return self.total / math.sqrt(self.factor * self.dd) if self.dd else None

    def interval(self, z: float) -> tuple[float, float] | None:
        """The differences around the estimate with |z(delta)| at most z, within -1 and 1.

        They solve a quadratic inequality. Where clusters are so few, or one is so large, that differences far
        away are not rejected, at most a gap is: that end is then -1 or 1, and if 0 lies beyond the gap
        both are, so that 0 is inside if and only if it is not rejected. None where all clusters have one
        difference: z is infinite for every other one.
        """
        product = self.dd * self.mm
        if product - self.dm**2 <= ROUNDING * product:
            return None
        scale = z * z * self.factor
        square = self.weight**2 - scale * self.mm
        linear = -2 * (self.total * self.weight - scale * self.dm)
        constant = self.total**2 - scale * self.dd
        discriminant = linear**2 - 4 * square * constant
        if discriminant <= 0:
            return -1.0, 1.0
        half = -(linear + math.copysign(math.sqrt(discriminant), linear)) / 2
        first = constant / half
        second = half / square if square else math.copysign(math.inf, -linear)
        low, high = min(first, second), max(first, second)
        if square < 0:  # the roots are the ends of the gap
            low, high = (high, 1.0) if self.estimate >= high else (-1.0, low)
            if constant <= 0 and not low <= 0 <= high:
                return -1.0, 1.0
        return max(low, -1.0), min(high, 1.0)


def clustered_score(differences: Array, codes: NDArray[np.int64], method: Clustered) -> ClusteredScore:
    """The sums over clusters.

    Parameters
    ----------
    differences
        -1, 0 or 1 a pair, shape (n,).
    codes
        Cluster of each pair, 0 to K - 1, shape (n,).
    method
        Which clusters weigh how much: by their pairs, or equally.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.clustered_pairs import clustered_score
    >>> found = clustered_score(np.array([1.0, 0, 1, -1]), np.array([0, 0, 1, 2]), "obuchowski")
    >>> round(found.z**2, 4)
    0.2222
    """
    sums = np.bincount(codes, weights=differences).astype(np.float64)
    sizes = np.bincount(codes).astype(np.float64)
    k = len(sums)
    factor = k / (k - 1)
    if method == "durkalski":
        sums, sizes, factor = sums / sizes, np.ones(k), 1.0
    return ClusteredScore(
        total=float(sums.sum()),
        weight=float(sizes.sum()),
        dd=float(sums @ sums),
        dm=float(sums @ sizes),
        mm=float(sizes @ sizes),
        factor=factor,
    )
