"""Two groups of clusters: which clusters form the one is permuted among all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import _native
from triagestats.extremes import PROBES, Center, as_extreme, centers_by_symmetry, most_extreme
from triagestats.lattice import Lattice, Law, lattice_of, tail
from triagestats.permutation import Permuted
from triagestats.resample import chunks
from triagestats.results import Alternative
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["subset_law", "subset_test"]

WORK: Final = 50_000_000
"""Additions that a law may take; beyond, drawing is faster."""


def subset_test(
    totals: Array,
    chosen: NDArray[np.bool_],
    statistic: Callable[[Array], Array],
    *,
    is_difference: bool,
    n_resamples: int,
    seed: int,
    alternative: Alternative = "two-sided",
    n_threads: int = 1,
    chunk: int | None = None,
    value: Callable[[Array], Array] | None = None,
    joint: Callable[[Array], Array] | None = None,
) -> tuple[float, Permuted]:
    """Permutation test of two groups of clusters.

    `T = f(S1 / N1, (S - S1) / (N - N1))` with S1 and N1 the sum and the number of the values in the
    clusters of the first group. Under the hypothesis that clusters are exchangeable, any n1 of the G
    clusters were as likely to form it: C(G, n1) arrangements. The center mu is known, if not enumerated, for
    the difference of means of clusters of one size (0), and for groups of equal numbers of clusters where
    f + f(swapped groups) is one number (half of it); else it is estimated as in `block_tests`.

    Parameters
    ----------
    totals
        Sum and number of values of each cluster, shape (G, 2); or what `value` reads, shape (G, K).
    chosen
        Whether a cluster is in the first group, shape (G,).
    statistic
        f, from means (..., 2) to (...).
    is_difference
        Whether f is the first mean minus the second.
    n_resamples, seed, alternative
        As in `block_tests`.
    n_threads, chunk
        They change the time and the memory, not the result.
    value
        The value of a group from its totals, (..., K) to (...), in place of the mean.
    joint
        The statistic from the totals of both groups, (..., 2, K) to (...), in place of a function of two
        values; of size 1 at most, and compared with 0.

    Returns
    -------
    tuple
        T and its test.
    """
    of_group = value or _mean
    n_clusters, size = len(chosen), int(chosen.sum())
    whole = totals.sum(axis=0)
    # The smaller group is drawn; the other one is what is left.
    swapped = 2 * size > n_clusters
    size = min(size, n_clusters - size)

    def of_sums(drawn: Array) -> Array:
        pair = np.stack([drawn, whole - drawn], axis=-2)
        if joint is not None:
            return joint(pair[..., :: -1 if swapped else 1, :])
        return statistic(of_group(pair)[..., :: -1 if swapped else 1])

    observed = float(of_sums(totals[~chosen if swapped else chosen].sum(axis=0)))
    n_moving = n_clusters if np.ptp(totals, axis=0).any() else 0
    count = math.comb(n_clusters, size)
    is_linear = value is None and joint is None and is_difference
    is_linear = is_linear and bool((totals[:, 1] == totals[0, 1]).all())
    exact = count <= n_resamples
    if not exact and is_linear:
        found = _convolved(totals[:, 0], ~chosen if swapped else chosen, alternative, swapped=swapped)
        if found is not None:
            return observed, Permuted(found[0], "convolution", count, n_moving, found[1])
    sums = np.concatenate(
        list(
            _enumerated(totals, size, chunk)
            if exact
            else _drawn(totals, size, n_resamples, seed, n_threads, chunk)
        )
    )
    null = of_sums(sums)
    noise = ROUNDING
    if joint is None:
        own = of_group(totals)
        noise *= float(np.abs(of_group(whole)) + np.max(np.abs(own), where=np.isfinite(own), initial=0.0))
    is_centered = joint is not None or (is_linear and not exact)
    center = Center(0.0) if is_centered else Center.of(null, observed, exact=exact)
    if not (exact or is_centered) and 2 * size == n_clusters:
        probes = np.concatenate([totals[chosen].sum(axis=0)[None], sums[:PROBES]])
        values, turned = of_sums(probes)[:, None], of_sums(whole - probes)[:, None]
        (known,) = centers_by_symmetry(values, turned, np.array([noise])).tolist()
        center = center if math.isnan(known) else Center(known)
    b = int(as_extreme(null, observed, center, alternative, noise).sum())
    if not exact:
        n = len(null)
        return observed, Permuted((b + 1) / (n + 1), "drawn", n, n_moving, 1 / (n + 1))
    smallest = most_extreme(null, center, alternative, noise) / count
    return observed, Permuted(max(b, 1) / count, "enumeration", count, n_moving, smallest)


def _mean(sums: Array) -> Array:
    result: Array = sums[..., 0] / sums[..., 1]
    return result


def _convolved(
    values: Array, drawn: NDArray[np.bool_], alternative: Alternative, *, swapped: bool
) -> tuple[float, float] | None:
    """Exact and smallest p-value of a sum of values on a lattice; None where they are on none."""
    lattice = lattice_of(values)
    size = int(drawn.sum())
    law = None if lattice is None else subset_law(lattice, size)
    if lattice is None or law is None:
        return None
    # Whole numbers: G times the distance of the sum from its mean.
    center = size * int(lattice.multiples.sum())
    away = len(values) * np.arange(law.start, law.start + len(law.mass)) - center
    distance = len(values) * int(lattice.multiples[drawn].sum()) - center
    if alternative == "two-sided":
        return tail(law.mass, np.abs(away), abs(distance))
    sign = 1 if (alternative == "greater") != swapped else -1
    return tail(law.mass, sign * away, sign * distance)


def subset_law(values: Lattice, size: int) -> Law | None:
    """Law of the sum of `size` of the values, drawn without replacement; None where it would be too long.

    Value by value, one that leaves k to choose among m is chosen with chance k / m. Every mass is a sum
    of positive terms, so that small ones keep their leading digits.

    Parameters
    ----------
    values
        Multiples of shape (G,).
    size
        How many are drawn.
    """
    low = int(values.multiples.min())
    shifts = np.sort(values.multiples - low)
    n_values = len(shifts)
    width = 1 + int(shifts[n_values - size :].sum())
    if n_values * (size + 1) * width > WORK:
        return None
    taken = np.arange(size + 1)
    mass = np.zeros((size + 1, width))
    mass[0, 0] = 1.0
    for done, shift in enumerate(shifts.tolist()):
        left = n_values - done
        chance = np.clip((size - taken) / left, 0.0, 1.0)[:, None]
        rest = np.clip((left - size + taken) / left, 0.0, 1.0)[:, None]
        before = mass
        mass = before * rest
        if shift < width:
            mass[1:, shift:] += (before * chance)[:-1, : width - shift]
    return Law(low * size, mass[size], values.step)


def _enumerated(totals: Array, size: int, chunk: int | None) -> Iterator[Array]:
    """Sums of every subset, in parts of shape (A, K)."""
    n_clusters = len(totals)
    subsets = combinations(range(n_clusters), size)
    for _, number in chunks(math.comb(n_clusters, size), totals.shape[1] * size, chunk):
        flat = np.fromiter(chain.from_iterable(islice(subsets, number)), dtype=np.intp, count=number * size)
        yield totals[flat.reshape(number, size)].sum(axis=1)


def _drawn(
    totals: Array, size: int, n_resamples: int, seed: int, n_threads: int, chunk: int | None
) -> Iterator[Array]:
    """Sums of drawn subsets, in parts of shape (R, K)."""
    totals = np.ascontiguousarray(totals)
    for first, number in chunks(n_resamples, totals.shape[1], chunk):
        yield _native.subset_totals(totals, size, number, seed, first=first, n_threads=n_threads)
