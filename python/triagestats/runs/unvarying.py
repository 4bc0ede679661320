"""An interval of a difference that is the same in all clusters, from how many clusters say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.binomial_intervals import clopper_pearson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from triagestats.blocks import Block

    Array = NDArray[np.float64]

__all__ = ["METHOD", "heaviest", "unvarying_interval"]

METHOD: Final = "Clopper-Pearson, clusters that differ"


def unvarying_interval(
    difference: float, n_clusters: int, conf_level: float, *, weight: float = 1.0
) -> tuple[float, float]:
    r"""The mean differences that clusters all with the same difference are compatible with.

    Let p be the share of clusters, among those that could have been drawn, whose difference is another than
    the one seen, d. None of the G that were drawn is one, so that p is at most the upper end of Clopper and
    Pearson's interval of 0 of G,

    .. math:: p_U = 1 - ((1 - \mathrm{level}) / 2)^{1 / G}

    Differences of scores between 0 and 1 lie between -1 and 1, so that the mean lies between
    :math:`d - p_U (1 + d)` and :math:`d + p_U (1 - d)`.

    Parameters
    ----------
    difference
        The difference of every cluster, between -1 and 1.
    n_clusters
        Clusters that were drawn.
    conf_level
        Level of the interval.
    weight
        Weight of the heaviest cluster over the mean weight. Clusters that differ are taken to be as heavy, so
        that they have at most this many times `p_U` of the weight.

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934), The use of confidence or fiducial limits illustrated in the case
    of the binomial, Biometrika 26(4):404-413, doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> from triagestats.runs.unvarying import unvarying_interval
    >>> low, high = unvarying_interval(0.0, 200, 0.95)
    >>> round(low, 4), round(high, 4)
    (-0.0183, 0.0183)
    """
    share = min(1.0, weight * clopper_pearson(0, n_clusters, conf_level)[1])
    return difference - share * (1 + difference), difference + share * (1 - difference)


def heaviest(block: Block, totals: Array, place: int) -> float:
    """The heaviest cluster over the mean, in the worst combination of an estimate; totals (G, K)."""
    weights = totals[:, block.denominators[block.groups[place]]]
    present = weights[(weights > 0).any(axis=1)]
    return float((present.max(axis=0) / present.mean(axis=0)).max())
