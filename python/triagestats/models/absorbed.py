"""A linear model of condition dummies with nested fixed effects, computed from the totals of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.errors import ArgumentError, DesignError
from triagestats.models.sandwich import (
    SmallSample,
    cluster_factors,
    cluster_sums,
    crossed,
    intersections,
    meat_inverse,
)
from triagestats.models.within import n_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Absorbed", "fit_absorbed"]


@dataclass(frozen=True, slots=True, eq=False)
class Absorbed:
    """Coefficients of the levels against their reference, after the cells are absorbed.

    Attributes
    ----------
    levels
        The levels that have a coefficient, shape (k,).
    estimates
        Level less reference, shape (k,).
    crv1
        Their covariance matrix by clusters, with its factor, shape (k, k).
    crv3
        That of the cluster jackknife, centred at the estimates; NaN where a coefficient cannot be
        estimated without one of the clusters, or where there are two cluster variables.
    factors
        What CRV1 was multiplied by: one number, or three with two cluster variables.
    df
        Degrees of freedom: the (smaller) number of clusters less 1.
    n_rows, n_parameters, n_cells
        N and K of the factor, and the cells that were absorbed.
    n_clusters
        One or two numbers.
    n_singletons
        Rows that were dropped because they were alone in their cell.
    dropped
        Levels without a coefficient: no cell links them with the reference.
    repaired
        How the two-way matrix was repaired, None where it was not.
    """

    levels: Codes
    estimates: Array
    crv1: Array
    crv3: Array
    factors: tuple[float, ...]
    df: int
    n_rows: int
    n_parameters: int
    n_cells: int
    n_clusters: tuple[int, ...]
    n_singletons: int
    dropped: tuple[int, ...]
    repaired: str | None


def fit_absorbed(
    counts: Array | Codes, sums: Array, clusters: Sequence[Codes], *, reference: int = 0
) -> Absorbed:
    """The model `score ~ level | cell` by least squares, from the totals of each cell and level.

    With n the counts and S the sums of a cell, and x its dummies of levels without the reference,
    its part of X'X after demeaning is `diag(n) - n n' / N` and its part of X'y is `S - n (sum S) / N`,
    N the sum of n. Scores of a cluster are sums of `X'y - X'X b` over its cells.

    Parameters
    ----------
    counts
        Rows of each cell at each level, shape (C, L): whole numbers.
    sums
        Sums of their scores, shape (C, L); anything where the count is 0.
    clusters
        Codes of one or two cluster variables, each of shape (C,): a cell lies in one cluster.
    reference
        The level that the others are compared with.

    Returns
    -------
    Absorbed

    Raises
    ------
    ArgumentError
        If shapes do not fit, or `reference` is no level.
    DesignError
        If no cell has the reference and another level, or there is one cluster.

    Notes
    -----
    Conventions are the defaults of `lpm`: singletons dropped, K = the coefficients and one for the
    cells, as they are nested in the clusters, and t with G - 1 degrees of freedom. Clusters count where they
    have rows. Nothing but sums is read, so that the time is that of the cells, not of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.models.absorbed import fit_absorbed
    >>> fit = fit_absorbed(
    ...     counts=np.ones((4, 2)), sums=np.array([[0, 1], [1, 1], [0, 1], [0, 0]]), clusters=[np.arange(4)]
    ... )
    >>> fit.estimates.tolist(), fit.df, fit.n_parameters
    ([0.5], 3, 2)
    """
    n = np.asarray(counts, dtype=np.float64)
    if n.ndim != 2 or np.shape(sums) != n.shape or any(len(codes) != len(n) for codes in clusters):
        raise ArgumentError("`counts`, `sums` and `clusters` must be of the same cells and levels")
    if not 1 <= len(clusters) <= 2:
        raise ArgumentError(f"`clusters` must be one or two variables; got {len(clusters)}")
    if not 0 <= reference < n.shape[1]:
        raise ArgumentError(f"`reference` must be a level from 0 to {n.shape[1] - 1}; got {reference}")
    s = np.where(n > 0, sums, 0.0)
    rows_of_cell = n.sum(axis=1)
    n_singletons = int((rows_of_cell == 1).sum())
    used = rows_of_cell > 1
    n, s, rows_of_cell = n[used], s[used], rows_of_cell[used]
    codes = [np.unique(np.asarray(c)[used], return_inverse=True)[1].astype(np.int64) for c in clusters]
    sizes = tuple(map(n_levels, codes))
    if min(sizes) < 2:
        raise DesignError(
            f"{min(sizes)} cluster{'s have' if min(sizes) != 1 else ' has'} a cell with two rows or more; an "
            "error needs two clusters"
        )
    gram_all = np.diag(n.sum(axis=0)) - (n / rows_of_cell[:, None]).T @ n
    levels = _linked(gram_all, reference)
    if not len(levels):
        raise DesignError(
            "no cell has rows at the reference and at another level, so nothing can be compared"
        )
    dropped = tuple(level for level in range(n.shape[1]) if level != reference and level not in levels)
    n_k, k = n[:, levels], len(levels)
    bread = np.linalg.inv(gram_all[np.ix_(levels, levels)])
    moments = s[:, levels] - n_k * (s.sum(axis=1) / rows_of_cell)[:, None]
    estimates = bread @ moments.sum(axis=0)
    fitted = n_k * estimates - n_k * ((n_k @ estimates) / rows_of_cell)[:, None]
    scores = moments - fitted
    n_rows = int(rows_of_cell.sum())
    by = [*codes, intersections(codes)] if len(codes) == 2 else codes
    found = [cluster_sums(scores, c) for c in by]
    parameters = k + 1
    small = SmallSample()
    factors = cluster_factors(n_rows, parameters, [len(part) for part in found], small)
    parts = [factor * meat_inverse(bread, part) for factor, part in zip(factors, found, strict=True)]
    repaired, crv3 = None, np.full((k, k), np.nan)
    if len(codes) == 2:
        two = crossed(parts[0], parts[1], parts[2], small.repair)
        crv1, repaired = two.vcov, two.repaired
    else:
        crv1 = parts[0]
        crv3 = _jackknife(n_k, rows_of_cell, codes[0], bread, found[0])
    return Absorbed(
        levels=levels,
        estimates=estimates,
        crv1=crv1,
        crv3=crv3,
        factors=factors,
        df=min(sizes) - 1,
        n_rows=n_rows,
        n_parameters=parameters,
        n_cells=len(n),
        n_clusters=sizes,
        n_singletons=n_singletons,
        dropped=dropped,
        repaired=repaired,
    )


def _linked(gram: Array, reference: int) -> Codes:
    """The levels that share a cell with the reference, or with a level that does."""
    reached = {reference}
    edge = {reference}
    while edge:
        near = {int(level) for place in edge for level in np.flatnonzero(gram[place] < 0)}
        edge = near - reached
        reached |= edge
    return np.array(sorted(reached - {reference}), dtype=np.int64)


def _jackknife(n: Array, rows_of_cell: Array, clusters: Codes, bread: Array, scores: Array) -> Array:
    """Covariance of the estimates without each cluster, around the estimates of all."""
    size, k = scores.shape
    own = np.zeros((size, k, k))
    for j in range(k):
        own[:, j, :] = -cluster_sums(n[:, [j]] * n / rows_of_cell[:, None], clusters)
    own[:, np.arange(k), np.arange(k)] += cluster_sums(n, clusters)
    without = np.linalg.inv(bread) - own
    values = np.linalg.eigvalsh(without)
    if (values[:, 0] <= 1e-10 * values[:, -1]).any():
        return np.full((k, k), np.nan)
    shifts = np.linalg.solve(without, scores[:, :, None])[:, :, 0]
    covariance: Array = (size - 1) / size * shifts.T @ shifts
    return covariance
