"""Samples of clusters in arrays, and their bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats import intervals, schemes
from triagestats.defaults import OF_SCHEME, Method
from triagestats.errors import ArgumentError, DesignError
from triagestats.estimates import JACKKNIFED, Estimates, readable
from triagestats.evidence import Evidence
from triagestats.lattice import FINEST, Law, bootstrap_law, lattice_of
from triagestats.resample import bootstrap, totals_without, valid_resamples
from triagestats.results import Note
from triagestats.schema import Scheme
from triagestats.studentise import studentised
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
    "stratum_codes",
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
) -> Estimates:
    """The bootstrap of a statistic of the means of a sample."""
    readable(interval, sample.scheme)
    evaluate = _checked(statistic)
    estimate = evaluate(sample.observed[None])[0]
    n_estimates = len(estimate)
    valid_resamples(n_resamples, n_estimates)
    without, std_error = np.empty((0, n_estimates)), np.full(n_estimates, np.nan)
    jackknifable = "jackknife-t" in OF_SCHEME[sample.scheme]
    if interval in JACKKNIFED or (jackknifable and sample.n_clusters * len(sample.observed) <= _EAGER):
        without, std_error = _jackknife(evaluate, sample)
    contributes = np.ones(without.shape, dtype=bool)
    asked: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed, "n_threads": n_threads}
    replicates = bootstrap(
        lambda totals: evaluate(sample.means(totals)), sample.draws, progress=statistic is not None, **asked
    )
    pivots = np.empty((0, n_estimates))
    if interval == "bootstrap-t" and sample.studentised is not None:
        totals, means = sample.studentised
        pivots = studentised(
            lambda sums: evaluate(means(sums)),
            totals.astype(np.float64),
            estimate,
            std_error,
            contributes,
            **asked,
        )
    n_strata = 1 if sample.strata is None else int(sample.strata.max()) + 1
    evidence = Evidence(
        estimate=estimate,
        std_error=std_error,
        df=np.full(n_estimates, float(sample.n_clusters - n_strata)),
        replicates=replicates,
        pivots=pivots,
        laws=_laws(sample, n_estimates) if statistic is None else (None,) * n_estimates,
        leave_one_out=without,
        contributes=contributes,
        rate_variance=np.full(n_estimates, np.nan),
        n_clusters=np.full(n_estimates, sample.n_clusters),
        varies=_varies(replicates, estimate, float(np.abs(sample.observed).max())),
        one_way=np.zeros(n_estimates, dtype=bool),
        repaired=np.zeros(n_estimates, dtype=bool),
        strata=sample.strata,
    )
    binary = np.zeros(n_estimates, dtype=bool)
    if statistic is None and sample.binary is not None:
        binary = sample.binary
    return Estimates(
        identity=tuple({"estimand": name} for name in names or _names(statistic, n_estimates)),
        evidence=evidence,
        interval=interval,
        conf_level=conf_level,
        scheme=sample.scheme,
        smooth=(smooth,) * n_estimates,
        binomial=tuple(sample.n_clusters if flag else 0 for flag in binary),
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
            value = statistic(means)
        try:
            result = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(f"`statistic` must return numbers; got {value!r}") from None
        if result.shape == means.shape[:-1]:
            return result[..., None]
        if result.shape[:-1] != means.shape[:-1] or not result.shape[-1]:
            raise ArgumentError(
                f"`statistic` must be vectorised, from (..., K) to (..., E): from {means.shape} expected "
                f"{(*means.shape[:-1], 'E')}, got {result.shape}. Write it with `x[..., k]`"
            )
        return result

    return evaluate


def _jackknife(evaluate: Callable[[Array], Array], sample: Sample) -> tuple[Array, Array]:
    """Estimates without each cluster, and their error: V1 + V2 - V12 with two classifications."""
    cuts = [evaluate(means) for means in sample.without()]
    variances = [
        intervals.jackknife_error(cut, np.ones(cut.shape, dtype=bool), sample.strata)[0] for cut in cuts
    ]
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


def _varies(replicates: Array, estimate: Array, largest: float) -> NDArray[np.bool_]:
    """Whether the replicates of each estimate differ by more than rounding of the means they read."""
    least = ROUNDING * np.maximum(np.abs(estimate), largest)
    if len(replicates) == 1:  # one draw shows no variation, nor its absence
        return np.ones(len(estimate), dtype=bool)
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


def _names(statistic: Statistic | None, n_estimates: int) -> tuple[str, ...]:
    what = "mean of column" if statistic is None else "statistic"
    return tuple(f"{what} {place + 1}" for place in range(n_estimates))
