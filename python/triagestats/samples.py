"""Samples of clusters in arrays: how they are drawn, and how draws become means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats import schemes
from triagestats.errors import DesignError
from triagestats.resample import totals_without
from triagestats.results import Note
from triagestats.schema import Scheme

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "NESTED",
    "Sample",
    "bayesian_sample",
    "cluster_sample",
    "crossed_sample",
    "multiplicity_sample",
    "nested_sample",
    "ratio_sample",
    "stratum_codes",
]

NESTED: Final = Note(
    "nested",
    "Repetition noise counts twice, in the data and in the draws: intervals are wider than by cluster.",
)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Clusters, how they are drawn, and how draws become means.

    Attributes
    ----------
    scheme
        What is drawn.
    draws
        Replicate totals.
    means
        From replicate totals (..., K') to means (..., K).
    observed
        The means of the sample, shape (K,).
    without
        The means without each cluster, made when needed: one array (G, K) for each way to cut the
        sample into clusters (two crossed classifications have three: each, and their cells).
    studentised
        Totals by cluster (G, K') and how sums of any number of them become means, for bootstrap-t; None
        where that does not apply.
    strata
        Stratum codes of the clusters, shape (G,).
    binary
        Which of the K means are of values 0 and 1.
    cells
        Cluster values whose sum over draws is each mean, shape (G, K); None where a mean is no such sum.
    n_rows
        Rows behind the means.
    """

    scheme: Scheme
    draws: schemes.Draws
    means: Callable[[Array], Array]
    observed: Array
    without: Callable[[], tuple[Array, ...]]
    cells: NDArray[Any] | None
    n_clusters: int
    n_rows: int
    studentised: tuple[Array, Callable[[Array], Array]] | None = None
    strata: NDArray[np.uint32] | None = None
    binary: NDArray[np.bool_] | None = None
    notes: tuple[Note, ...] = ()


def cluster_sample(values: NDArray[Any], strata: NDArray[np.int64] | None = None) -> Sample:
    """Rows of (G, K) as clusters, drawn within strata where there are some.

    Raises
    ------
    DesignError
        If there are fewer than two clusters, or a stratum has one alone.
    """
    size = _enough(len(values))
    codes = None if strata is None else stratum_codes(strata)
    counted = np.concatenate([values, np.ones((size, 1), dtype=values.dtype)], axis=1)
    return Sample(
        scheme="cluster" if strata is None else "stratified",
        draws=schemes.cluster_draws(values, codes),
        means=lambda totals: totals / size,
        observed=values.sum(axis=0) / size,
        without=lambda: (_ratio(totals_without(counted.astype(np.float64), codes)),),
        cells=values if strata is None else None,
        n_clusters=size,
        n_rows=size,
        studentised=(counted, _ratio) if strata is None else None,
        strata=codes,
        binary=_binary(values),
    )


def stratum_codes(strata: NDArray[Any]) -> NDArray[np.uint32]:
    """Codes 0 to S - 1 of strata.

    Raises
    ------
    DesignError
        If a stratum has one cluster: it would show no variation.
    """
    codes = np.unique(strata, return_inverse=True)[1].astype(np.uint32)
    if alone := int((np.bincount(codes) < 2).sum()):
        raise DesignError(
            f"`strata`: {alone:,} strata have one cluster, and a stratum needs two; join them to others"
        )
    return codes


def _ratio(sums: Array) -> Array:
    """Means from sums with the number of rows as the last column."""
    result: Array = sums[..., :-1] / sums[..., -1:]
    return result


def _binary(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns hold 0 and 1 alone."""
    found: NDArray[np.bool_] = ((values == 0) | (values == 1)).all(axis=0)
    return found


def bayesian_sample(values: NDArray[Any]) -> Sample:
    """Rows of (G, K) as clusters with Dirichlet weights."""
    size = _enough(len(values))
    return Sample(
        scheme="bayesian",
        draws=schemes.Bayesian(np.ascontiguousarray(values, dtype=np.float64)),
        means=lambda totals: totals / size,
        observed=values.sum(axis=0) / size,
        without=lambda: ((values.sum(axis=0) - values) / (size - 1),),
        cells=None,
        n_clusters=size,
        n_rows=size,
        binary=_binary(values),
    )


def ratio_sample(values: NDArray[Any], codes: NDArray[np.int64]) -> Sample:
    """Rows (n, K) in clusters: means over rows are ratios of sums to numbers of rows."""
    codes = np.unique(codes, return_inverse=True)[1]
    columns = [np.bincount(codes, weights=column) for column in values.T.astype(np.float64)]
    totals = np.stack([*columns, np.bincount(codes).astype(np.float64)], axis=1)
    size = _enough(len(totals))

    even = bool((totals[:, -1] == totals[0, -1]).all())
    return Sample(
        scheme="cluster",
        draws=schemes.cluster_draws(totals),
        means=_ratio,
        observed=_ratio(totals.sum(axis=0)),
        without=lambda: (_ratio(totals.sum(axis=0) - totals),),
        cells=totals[:, :-1] / totals[0, -1] if even else None,
        n_clusters=size,
        n_rows=len(values),
        studentised=(totals, _ratio),
        binary=_binary(values),
    )


def nested_sample(values: NDArray[Any]) -> Sample:
    """Cells of (G, K, n) with repetitions, NaN where there are fewer.

    Raises
    ------
    DesignError
        If a column has no repetition at all.
    """
    values = values.astype(np.float64)
    present = ~np.isnan(values)
    counts = present.sum(axis=2)
    if not (counts > 0).any(axis=0).all():
        raise DesignError("a column of `data` has no repetition at all")
    size, n_columns = _enough(len(values)), values.shape[1]
    cells = np.where(counts > 0, np.where(present, values, 0.0).sum(axis=2) / np.maximum(counts, 1), 0.0)
    totals = np.concatenate([cells, counts > 0], axis=1)
    complete = bool((counts > 0).all())

    def ratio(sums: Array) -> Array:
        result: Array = sums[..., :n_columns] / sums[..., n_columns:]
        return result

    offsets = np.concatenate([[0], np.cumsum(counts.reshape(-1))]).astype(np.int64)
    return Sample(
        scheme="nested",
        draws=schemes.Nested(np.ascontiguousarray(values[present]), offsets, n_columns, complete),
        means=(lambda sums: sums / size) if complete else ratio,
        observed=ratio(totals.sum(axis=0)),
        without=lambda: (ratio(totals.sum(axis=0) - totals),),
        cells=None,
        n_clusters=size,
        n_rows=int(counts.sum()),
        notes=(NESTED,),
    )


def crossed_sample(values: NDArray[Any]) -> Sample:
    """Two crossed classifications, (G1, G2, K) or (G1, G2)."""
    cube = np.ascontiguousarray(values.reshape(*values.shape[:2], -1), dtype=np.float64)
    rows, columns = (_enough(size) for size in cube.shape[:2])
    whole = cube.sum(axis=(0, 1))

    def without() -> tuple[Array, ...]:
        cuts = (cube.sum(axis=1), cube.sum(axis=0), cube.reshape(rows * columns, -1))
        return tuple((whole - cut) / (rows * columns * (1 - 1 / len(cut))) for cut in cuts)

    return Sample(
        scheme="crossed",
        draws=schemes.Crossed(cube),
        means=lambda totals: totals / (rows * columns),
        observed=whole / (rows * columns),
        without=without,
        cells=None,
        n_clusters=min(rows, columns),
        n_rows=rows * columns,
    )


def multiplicity_sample(size: int, strata: NDArray[np.int64] | None, *, bayesian: bool) -> Sample:
    """Clusters known by number alone: a statistic reads how often each is drawn."""
    _enough(size)
    ones = np.ones(size)
    codes = None if strata is None else np.unique(strata, return_inverse=True)[1].astype(np.uint32)
    return Sample(
        scheme="bayesian" if bayesian else "cluster" if strata is None else "stratified",
        draws=schemes.Multiplicities(size, codes, bayesian=bayesian),
        means=lambda counts: counts,
        observed=ones,
        without=lambda: (ones - np.eye(size),),
        cells=None,
        n_clusters=size,
        n_rows=size,
    )


def _enough(size: int) -> int:
    if size < 2:
        raise DesignError(f"there is {size} cluster, and an interval needs at least two")
    return size
