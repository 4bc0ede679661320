"""Samples of clusters in arrays, and their bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats import intervals, schemes
from triagestats.defaults import Method
from triagestats.errors import ArgumentError, DesignError
from triagestats.estimates import JACKKNIFED, Estimates, readable
from triagestats.evidence import Evidence, studentised
from triagestats.lattice import FINEST, Law, bootstrap_law, lattice_of
from triagestats.resample import bootstrap, valid_resamples
from triagestats.results import Note
from triagestats.schema import Scheme
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Statistic = Callable[[Array], Any]

__all__ = [
    "NESTED",
    "Sample",
    "bayesian_sample",
    "cluster_sample",
    "crossed_sample",
    "estimates_of",
    "multiplicity_sample",
    "nested_sample",
    "ratio_sample",
]

NESTED: Final = Note(
    "nested",
    "Repetition noise counts twice, in the data and in the draws: intervals are wider than by cluster.",
)
_GLANCE: Final = 64
"""Rows that are looked at before all of them are."""
_EAGER: Final = 10_000
"""Numbers up to which the jackknife is made though no interval asks for it yet."""


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
    totals
        Totals by cluster for studentising, shape (G, K'); None where that does not apply.
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
    totals: Array | None
    cells: NDArray[Any] | None
    n_clusters: int
    n_rows: int
    notes: tuple[Note, ...] = ()


def cluster_sample(values: NDArray[Any], strata: NDArray[np.int64] | None = None) -> Sample:
    """Rows of (G, K) as clusters, drawn within strata where there are some."""
    size = _enough(len(values))
    codes = None if strata is None else np.unique(strata, return_inverse=True)[1].astype(np.uint32)
    return Sample(
        scheme="cluster" if strata is None else "stratified",
        draws=schemes.cluster_draws(values, codes),
        means=lambda totals: totals / size,
        observed=values.sum(axis=0) / size,
        without=lambda: ((values.sum(axis=0) - values) / (size - 1),),
        totals=values,
        cells=values if strata is None else None,
        n_clusters=size,
        n_rows=size,
    )


def bayesian_sample(values: NDArray[Any]) -> Sample:
    """Rows of (G, K) as clusters with Dirichlet weights."""
    size = _enough(len(values))
    return Sample(
        scheme="bayesian",
        draws=schemes.Bayesian(np.ascontiguousarray(values, dtype=np.float64)),
        means=lambda totals: totals / size,
        observed=values.sum(axis=0) / size,
        without=lambda: ((values.sum(axis=0) - values) / (size - 1),),
        totals=None,
        cells=None,
        n_clusters=size,
        n_rows=size,
    )


def ratio_sample(values: NDArray[Any], codes: NDArray[np.int64]) -> Sample:
    """Rows (n, K) in clusters: means over rows are ratios of sums to numbers of rows."""
    codes = np.unique(codes, return_inverse=True)[1]
    columns = [np.bincount(codes, weights=column) for column in values.T.astype(np.float64)]
    totals = np.stack([*columns, np.bincount(codes).astype(np.float64)], axis=1)
    size = _enough(len(totals))

    def means(sums: Array) -> Array:
        result: Array = sums[..., :-1] / sums[..., -1:]
        return result

    even = bool((totals[:, -1] == totals[0, -1]).all())
    return Sample(
        scheme="cluster",
        draws=schemes.cluster_draws(totals),
        means=means,
        observed=means(totals.sum(axis=0)),
        without=lambda: (means(totals.sum(axis=0) - totals),),
        totals=totals,
        cells=totals[:, :-1] / totals[0, -1] if even else None,
        n_clusters=size,
        n_rows=len(values),
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

    def means(sums: Array) -> Array:
        result: Array = sums[..., :n_columns] / sums[..., n_columns:]
        return result

    offsets = np.concatenate([[0], np.cumsum(counts.reshape(-1))]).astype(np.int64)
    return Sample(
        scheme="nested",
        draws=schemes.Nested(np.ascontiguousarray(values[present]), offsets, n_columns),
        means=means,
        observed=means(totals.sum(axis=0)),
        without=lambda: (means(totals.sum(axis=0) - totals),),
        totals=None,
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
        totals=None,
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
        totals=None,
        cells=None,
        n_clusters=size,
        n_rows=size,
    )


def _enough(size: int) -> int:
    if size < 2:
        raise DesignError(f"there is {size} cluster, and an interval needs at least two")
    return size


def estimates_of(
    sample: Sample,
    statistic: Statistic | None,
    *,
    interval: Method,
    conf_level: float,
    n_resamples: int,
    seed: int,
    n_threads: int,
    smooth: bool = True,
    names: tuple[str, ...] | None = None,
    notes: tuple[Note, ...] = (),
    progress: bool = False,
) -> Estimates:
    """The bootstrap of a statistic of the means of a sample."""
    evaluate = _checked(statistic)
    estimate = evaluate(sample.observed[None])[0]
    n_estimates = len(estimate)
    valid_resamples(n_resamples, n_estimates)
    without, std_error = np.empty((0, n_estimates)), np.full(n_estimates, np.nan)
    if interval in JACKKNIFED or sample.n_clusters * len(sample.observed) <= _EAGER:
        without, std_error = _jackknife(evaluate, sample)
    contributes = np.ones(without.shape, dtype=bool)
    asked: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed, "n_threads": n_threads}
    replicates = bootstrap(
        lambda totals: evaluate(sample.means(totals)), sample.draws, progress=progress, **asked
    )
    pivots = np.empty((0, n_estimates))
    if interval == "bootstrap-t" and sample.totals is not None and sample.scheme == "cluster":
        pivots = studentised(
            lambda totals: evaluate(sample.means(totals)),
            sample.totals.astype(np.float64),
            (estimate, std_error),
            (without, contributes),
            **asked,
        )
    evidence = Evidence(
        estimate=estimate,
        std_error=std_error,
        df=np.full(n_estimates, sample.n_clusters - 1.0),
        replicates=replicates,
        pivots=pivots,
        laws=_laws(sample, n_estimates) if statistic is None else (None,) * n_estimates,
        leave_one_out=without if sample.scheme != "crossed" else without[:0],
        contributes=contributes,
        rate_variance=np.full(n_estimates, np.nan),
        n_clusters=np.full(n_estimates, sample.n_clusters),
        varies=_varies(replicates, estimate),
        one_way=np.zeros(n_estimates, dtype=bool),
        repaired=np.zeros(n_estimates, dtype=bool),
    )
    return Estimates(
        identity=tuple({"estimand": name} for name in names or _names(statistic, n_estimates)),
        evidence=evidence,
        interval=readable(evidence, interval),
        conf_level=conf_level,
        scheme=sample.scheme,
        smooth=(smooth,) * n_estimates,
        binomial=(_binomial(sample, statistic),) * n_estimates,
        n_rows=(sample.n_rows,) * n_estimates,
        n_resamples=n_resamples,
        seed=seed,
        notes=(*notes, *sample.notes),
    )


def _checked(statistic: Statistic | None) -> Callable[[Array], Array]:
    """The statistic from (..., K) to (..., E), with the shape of its result checked."""

    def evaluate(means: Array) -> Array:
        if statistic is None:
            return means
        with np.errstate(divide="ignore", invalid="ignore"):
            result = np.asarray(statistic(means), dtype=np.float64)
        if result.shape == means.shape[:-1]:
            return result[..., None]
        if result.shape[:-1] != means.shape[:-1]:
            raise ArgumentError(
                f"`statistic` must be vectorised, from (..., K) to (..., E): from {means.shape} expected "
                f"{(*means.shape[:-1], 'E')}, got {result.shape}. Write it with `x[..., k]`"
            )
        return result

    return evaluate


def _jackknife(evaluate: Callable[[Array], Array], sample: Sample) -> tuple[Array, Array]:
    """Estimates without each cluster, and their error: V1 + V2 - V12 with two classifications."""
    cuts = [evaluate(means) for means in sample.without()]
    variances = [intervals.jackknife_error(cut, np.ones(cut.shape, dtype=bool))[0] for cut in cuts]
    if len(cuts) == 1:
        return cuts[0], np.sqrt(variances[0])
    crossed = variances[0] + variances[1] - variances[2]
    return cuts[0], np.sqrt(np.where(crossed > 0, crossed, np.maximum(variances[0], variances[1])))


def _laws(sample: Sample, n_estimates: int) -> tuple[Law | None, ...]:
    """Exact laws of the means that are sums of lattice values."""
    cells = sample.cells
    if cells is None or sample.scheme != "cluster" or sample.n_clusters > FINEST:
        return (None,) * n_estimates
    return tuple(_law(column, sample.n_clusters) for column in cells.T)


def _law(column: NDArray[Any], size: int) -> Law | None:
    """The exact law of one mean; None where its values lie on no lattice, or it would be too long."""
    if column.dtype.kind in "iu" and (int(column.max()) - int(column.min())) * size > FINEST:
        return None
    if lattice_of(column[:_GLANCE].astype(np.float64)) is None:  # a part off any lattice settles it
        return None
    lattice = lattice_of(column / size)
    return None if lattice is None else bootstrap_law(lattice, size)


def _varies(replicates: Array, estimate: Array) -> NDArray[np.bool_]:
    """Whether the replicates of each estimate differ by more than rounding."""
    least = ROUNDING * np.maximum(np.abs(estimate), 1e-300)
    varies: NDArray[np.bool_] = _spread(replicates[:_GLANCE]) > least
    still = np.flatnonzero(~varies)
    varies[still] = _spread(replicates[:, still]) > least[still]
    return varies


def _spread(values: Array) -> Array:
    """Largest minus smallest finite value of each column; -inf without any."""
    usable = np.isfinite(values)
    spread: Array = np.max(values, axis=0, initial=-np.inf, where=usable) - np.min(
        values, axis=0, initial=np.inf, where=usable
    )
    return spread


def _binomial(sample: Sample, statistic: Statistic | None) -> int:
    """The number of 0/1 rows, where the estimates are their plain means."""
    cells = sample.cells
    if statistic is not None or sample.scheme not in ("cluster", "stratified") or cells is None:
        return 0
    return sample.n_clusters if bool(((cells == 0) | (cells == 1)).all()) else 0


def _names(statistic: Statistic | None, n_estimates: int) -> tuple[str, ...]:
    what = "mean of column" if statistic is None else "statistic"
    return tuple(f"{what} {place + 1}" for place in range(n_estimates))
