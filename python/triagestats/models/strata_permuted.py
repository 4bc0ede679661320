"""Permutation test of two strata of clusters: of the difference, or of it over its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.models.strata_groups import Groups
from triagestats.permutation import Permuted
from triagestats.results import Alternative
from triagestats.subsets import subset_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["PermutedStatistic", "StratumTest", "permuted_strata"]

PermutedStatistic = Literal["auto", "studentised", "difference"]

_STEP: Final = 1e-3
"""Weight that a cluster gains or loses for the slope of the estimand in it."""
_NOTHING: Final = 1e-14
"""A sum of squares below this share of what it was made of is rounding."""


@dataclass(frozen=True, slots=True)
class StratumTest:
    """A permutation test of two strata.

    Attributes
    ----------
    difference
        First less second.
    t
        The difference over its error; None where the difference alone was permuted, or the error is 0.
    studentised
        Whether t was permuted.
    permuted
        The test.
    """

    difference: float
    t: float | None
    studentised: bool
    permuted: Permuted


def permuted_strata(
    groups: Groups, statistic: PermutedStatistic, alternative: Alternative, asked: dict[str, Any]
) -> StratumTest:
    """Permute which clusters form the first stratum.

    Parameters
    ----------
    groups
        The clusters.
    statistic
        `studentised`: the difference over `sqrt(V1 + V2)`, each V the variance between the clusters of one
        stratum, of their influence on the estimand, over its number of clusters. `auto`: `studentised`, but
        `difference` for strata of one size, and for estimands that are not smooth.
    alternative, asked
        As in `subset_test`.
    """
    block, totals = groups.block, groups.totals
    values = _cluster_values(groups)
    difference = float(_difference(block.evaluate(_sums(groups))[..., 0]))
    wanted = statistic == "studentised" or (
        statistic == "auto" and groups.sizes[0] != groups.sizes[1] and block.target.estimand.smooth
    )
    is_plain = values is not None and bool((values[:, 1] == values[0, 1]).all())
    influence = _influence(groups, values if is_plain else None) if wanted else None
    if influence is not None:
        parts = np.stack([influence, influence**2, np.ones(len(influence))], axis=1)
        table = parts if is_plain else np.concatenate([totals, parts], axis=1)
        width = table.shape[1] - 3

        def parts_of(pair: Array) -> tuple[Array, Array]:
            """The difference and its variance, from the totals of both strata (..., 2, K)."""
            sums, squares, number = np.moveaxis(pair[..., width:], -1, 0)
            means = sums / number if is_plain else block.evaluate(pair[..., :width])[..., 0]
            left = squares - sums**2 / number
            variance = np.where(left > _NOTHING * squares, left, 0.0) / (number * (number - 1))
            return _difference(means), variance.sum(axis=-1)

        def bounded(pair: Array) -> Array:
            """T / sqrt(1 + T^2): in the order of T, and finite where no variance is left."""
            size, variance = parts_of(pair)
            length = np.sqrt(size**2 + variance)
            found: Array = size / np.where(length == 0, 1.0, length)
            return found

        whole = np.stack([table[groups.first].sum(axis=0), table[~groups.first].sum(axis=0)])
        variance = float(parts_of(whole)[1])
        _, permuted = subset_test(
            table,
            groups.first,
            _difference,
            is_difference=True,
            joint=bounded,
            alternative=alternative,
            **asked,
        )
        t = difference / variance**0.5 if variance > 0 else None
        return StratumTest(difference, t, True, permuted)
    if values is not None:
        _, permuted = subset_test(
            values, groups.first, _difference, is_difference=True, alternative=alternative, **asked
        )
        return StratumTest(difference, None, False, permuted)
    _, permuted = subset_test(
        totals,
        groups.first,
        _difference,
        is_difference=True,
        alternative=alternative,
        value=lambda sums: block.evaluate(sums)[..., 0],
        **asked,
    )
    return StratumTest(difference, None, False, permuted)


def _sums(groups: Groups) -> Array:
    """Totals of both strata, shape (2, K)."""
    return np.stack([groups.totals[groups.first].sum(axis=0), groups.totals[~groups.first].sum(axis=0)])


def _difference(pair: Array) -> Array:
    result: Array = pair[..., 0] - pair[..., 1]
    return result


def _cluster_values(groups: Groups) -> Array | None:
    """Value and weight of each cluster where the estimand is their mean, shape (G, 2); it may have a law."""
    block, totals = groups.block, groups.totals
    coefficients = block.target.estimand.coefficients
    weights = totals[:, block.denominators]
    if coefficients is None or not bool((weights == weights[:, :1]).all()):
        return None
    values = totals[:, block.numerators] @ np.array(coefficients)
    return np.stack([values[:, block.groups[0]] @ block.shares[0], weights[:, 0]], axis=1)


def _influence(groups: Groups, values: Array | None) -> Array | None:
    """What each cluster adds to the estimand, in all clusters together; None where it has no slope.

    Of a mean of one value a cluster this is the value less the mean; else the slope of the estimand in
    the weight of the cluster, times their number (the infinitesimal jackknife).
    """
    block, totals = groups.block, groups.totals
    if values is not None:
        own = values[:, 0] / values[:, 1]
        return np.asarray(own - own.mean(), dtype=np.float64)
    whole = totals.sum(axis=0)
    more, less = (block.evaluate(whole + sign * _STEP * totals)[..., 0] for sign in (1, -1))
    slopes: Array = len(totals) * (more - less) / (2 * _STEP)
    return slopes if np.isfinite(slopes).all() else None
