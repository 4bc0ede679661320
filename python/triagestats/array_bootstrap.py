"""The bootstrap of a statistic of the means of a sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats import intervals
from triagestats.defaults import OF_SCHEME, Method
from triagestats.errors import ArgumentError
from triagestats.estimates import JACKKNIFED, Estimates, readable
from triagestats.evidence import Evidence
from triagestats.lattice import FINEST, Law, bootstrap_law, lattice_of
from triagestats.resample import bootstrap, valid_resamples
from triagestats.results import Note
from triagestats.samples import Sample
from triagestats.studentise import studentised
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Statistic = Callable[[Array], Any]

__all__ = ["estimates_of"]

_GLANCE: Final = 64
"""Rows that are looked at before all of them are."""
_EAGER: Final = 10_000
"""Numbers up to which the jackknife is made though no interval asks for it yet."""


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
    repaired = np.zeros(n_estimates, dtype=bool)
    jackknifable = "jackknife-t" in OF_SCHEME[sample.scheme]
    if interval in JACKKNIFED or (jackknifable and sample.n_clusters * len(sample.observed) <= _EAGER):
        without, std_error, repaired = _jackknife(evaluate, sample)
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
        repaired=repaired,
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


def _jackknife(evaluate: Callable[[Array], Array], sample: Sample) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Estimates without each cluster, their error, and where the two-way one had to be repaired."""
    cuts = [evaluate(means) for means in sample.without()]
    variances = [
        intervals.jackknife_error(cut, np.ones(cut.shape, dtype=bool), sample.strata)[0] for cut in cuts
    ]
    if len(cuts) == 1:
        return cuts[0], np.sqrt(variances[0]), np.zeros(len(variances[0]), dtype=bool)
    variance, repaired = intervals.two_way_variance(*variances)
    return cuts[0], np.sqrt(variance), repaired


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
    glance = replicates[:_GLANCE]
    varies: NDArray[np.bool_] = intervals.spread(glance, np.isfinite(glance)) > least
    rest = replicates[:, ~varies]
    varies[~varies] = intervals.spread(rest, np.isfinite(rest)) > least[~varies]
    return varies


def _names(statistic: Statistic | None, n_estimates: int) -> tuple[str, ...]:
    what = "mean of column" if statistic is None else "statistic"
    return tuple(f"{what} {place + 1}" for place in range(n_estimates))
