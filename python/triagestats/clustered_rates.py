"""The interval of a rate whose values share clusters, as `analyze` has it for rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS
from triagestats.intervals import korn_graubard_plus_two
from triagestats.results import Note
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ClusteredRate", "clustered_rate"]


@dataclass(frozen=True, slots=True)
class ClusteredRate:
    """A rate with its error and interval by cluster.

    Attributes
    ----------
    rate
        The mean of the values.
    std_error
        Linearised by cluster; None where the clusters agree.
    low, high
        Ends of the interval; None with fewer than 5 clusters.
    n_clusters
        How many clusters there are.
    notes
        Why there is no interval, or what is doubtful about it.
    """

    rate: float
    std_error: float | None
    low: float | None
    high: float | None
    n_clusters: int
    notes: tuple[Note, ...]


def clustered_rate(values: Array, codes: NDArray[np.int64], conf_level: float) -> ClusteredRate:
    """The rate of values 0 and 1 with Korn and Graubard's interval, after two clusters are added.

    With u_g = sum over cluster g of (value - rate), the variance is `G / (G - 1) sum(u_g^2) / N^2`.

    Parameters
    ----------
    values
        0 or 1, shape (n,).
    codes
        Cluster of each, 0 to G - 1, shape (n,).
    conf_level
        Level of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.clustered_rates import clustered_rate
    >>> found = clustered_rate(np.repeat([1.0, 1, 1, 0, 1, 0], 4), np.repeat(np.arange(6), 4), 0.95)
    >>> round(found.std_error, 4), round(found.low, 2), round(found.high, 2)
    (0.2108, 0.17, 0.97)
    """
    rate, size = float(values.mean()), int(codes.max()) + 1
    influence = np.bincount(codes, weights=values - rate) / len(values)
    if size < FEWEST_CLUSTERS:
        message = (
            f"{size} cluster{'s are' if size > 1 else ' is'} too few for an interval that speaks of a "
            f"population of clusters ({FEWEST_CLUSTERS} are needed)."
        )
        error = _error(influence) if size > 1 else None
        return ClusteredRate(rate, error, None, None, size, (Note("few_clusters", message, "caution"),))
    notes: tuple[Note, ...] = ()
    if size < FEW_CLUSTERS:
        message = f"{size} clusters: intervals from fewer than {FEW_CLUSTERS} may cover less than they say."
        notes = (Note("few_clusters", message, "caution"),)
    error = _error(influence)
    one = np.ones(1)
    ends = korn_graubard_plus_two(
        rate * one, (error or 0.0) ** 2 * one, size * one, len(values) * one, conf_level
    )
    return ClusteredRate(rate, error, float(ends.low[0]), float(ends.high[0]), size, notes)


def _error(influence: Array) -> float | None:
    """None where rounding is all that varies."""
    size = len(influence)
    error = (size / (size - 1) * float(influence @ influence)) ** 0.5
    return error if error > ROUNDING else None
