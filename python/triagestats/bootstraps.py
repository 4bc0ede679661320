"""The bootstrap for people with arrays, and for tables under any scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.array_bootstrap import estimates_of
from triagestats.defaults import Method
from triagestats.design import Reference
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.estimands import Estimand
from triagestats.estimates import Estimates, readable
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.samples import (
    bayesian_sample,
    cluster_sample,
    crossed_sample,
    multiplicity_sample,
    nested_sample,
    ratio_sample,
)
from triagestats.schema import Match, Scheme, Weights
from triagestats.table import ResponseTable
from triagestats.table_bootstrap import bootstrap_table
from triagestats.vectors import Missing, complete_codes, drop_missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Statistic = Callable[[Array], Any]

__all__ = ["bootstrap", "cluster_bootstrap", "paired_bootstrap"]

_DIMENSIONS: Final[dict[Scheme, tuple[int, ...]]] = {
    "cluster": (1, 2),
    "stratified": (1, 2),
    "bayesian": (1, 2),
    "nested": (3,),
    "crossed": (2, 3),
}


def bootstrap(
    data: object,
    statistic: Sequence[Estimand] | Statistic | None = None,
    *,
    scheme: Scheme = "cluster",
    interval: Method = "percentile",
    strata: object = None,
    of: Literal["means", "multiplicities"] = "means",
    smooth: bool = True,
    missing: Missing = "raise",
    reference: Reference = None,
    match: Match | None = None,
    weights: Weights | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Estimates:
    """Bootstrap estimates and intervals of an array of clusters, or of a response table.

    Parameters
    ----------
    data
        An array-like of shape (G, K), one row a cluster (or (G,)); for `crossed` (G1, G2, K) or (G1, G2);
        for `nested` (G, K, n), with n repetitions of each cell, NaN where there are fewer. Or a
        `ResponseTable`.
    statistic
        For an array a function of column means, from (..., K) to (..., E): vectorised over leading
        axes. The column means themselves where not given. With `of="multiplicities"` a function from
        the number of times that each cluster is drawn, (R, G), to (R, E). For a table a list of
        estimands; level minus reference where not given.
    scheme
        `cluster`: rows with replacement. `stratified`: within each of `strata`. `nested`: rows, then
        the repetitions within each cell of each drawn row. `crossed`: both classifications.
        `bayesian`: Dirichlet weights.
    interval
        `percentile`, `basic`, `normal`, `bca`, `bootstrap-t` (which takes R x G evaluations),
        `jackknife-t`, or `max-t` (simultaneous); the schemes other than `cluster` have some of them.
    strata
        For an array one label a row; for a table the name of a column that is constant in a cluster.
    of
        What the statistic is a function of.
    smooth
        Whether the statistic is differentiable in the means.
    missing
        `raise` refuses missing values, `omit` drops the rows that have some, with a note. In a `nested`
        array NaN is a repetition that is not there.
    reference, match, weights
        For a table, as in `analyze`.
    conf_level, n_resamples, seed
        Level, number of replicates and seed.
    n_threads
        Changes no result.

    Returns
    -------
    Estimates
        With `estimate`, `conf_low`, `conf_high`, `replicates`, `tidy()`, `with_level`, `with_interval`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says how to fix it.

    Notes
    -----
    One draw serves all columns and estimates. Where a table's estimate, or a column mean, is a sum of
    lattice values, the percentile interval is exact and has no Monte Carlo error.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997), Bootstrap Methods and their Application,
    doi:10.1017/CBO9780511802843.

    Examples
    --------
    >>> import triagestats as ts
    >>> correct = [[1, 1], [0, 1], [1, 1], [0, 0], [1, 1], [0, 1], [1, 0], [0, 1]]
    >>> fit = ts.bootstrap(correct, lambda mean: mean[..., 1:] - mean[..., :1])
    >>> fit.estimate.tolist(), fit.tidy()["n_clusters"].to_list()
    ([0.25], [8])
    """
    valid_choice("scheme", scheme, Scheme)
    valid_choice("of", of, Literal["means", "multiplicities"])
    asked: dict[str, Any] = {
        "interval": interval,
        "conf_level": valid_level(conf_level),
        "n_resamples": valid_resamples(n_resamples),
        "seed": valid_seed(seed),
        "n_threads": thread_count(n_threads),
    }
    readable(interval, scheme)
    if (scheme == "stratified") != (strata is not None):
        raise ArgumentError("`strata` and scheme='stratified' go together: give both or neither")
    if isinstance(data, ResponseTable):
        if callable(statistic):
            raise ArgumentTypeError("`statistic` must be a list of estimands for a ResponseTable")
        _refuse("an array", {"of": of != "means", "smooth": not smooth, "missing": missing != "raise"})
        return bootstrap_table(
            data,
            statistic,
            scheme=scheme,
            strata=strata,
            reference=reference,
            match=match or "cell",
            weights=weights or "scenario",
            **asked,
        )
    tabular = {"reference": reference, "match": match, "weights": weights}
    _refuse("a ResponseTable", {name: value is not None for name, value in tabular.items()})
    if statistic is not None and not callable(statistic):
        raise ArgumentTypeError(
            f"`statistic` must be a function of column means for an array; got {statistic!r}"
        )
    if of == "multiplicities" and scheme in ("nested", "crossed"):
        raise ArgumentError(f"`of='multiplicities'` does not go with scheme={scheme!r}")
    if of == "multiplicities" and statistic is None:
        raise ArgumentError("`of='multiplicities'` needs a `statistic`")
    values = numbers_of(data, "data", dimensions=_DIMENSIONS[scheme], keep_integers=True)
    if scheme == "nested":  # a gap is a repetition that is not there
        valid_choice("missing", missing, Missing)
        return estimates_of(nested_sample(values), statistic, smooth=smooth, **asked)
    if scheme == "crossed" and missing == "omit":
        raise ArgumentError(
            "`missing='omit'` does not go with scheme='crossed': a gap would drop a whole row"
        )
    kept, notes = drop_missing([values], ["data"], missing)
    if scheme == "crossed":
        return estimates_of(crossed_sample(values), statistic, smooth=smooth, **asked)
    codes = None if strata is None else complete_codes(strata, "strata", len(kept))[kept]
    values = values[kept].reshape(int(kept.sum()), -1)
    if of == "multiplicities":
        sample = multiplicity_sample(len(values), codes, bayesian=scheme == "bayesian")
    else:
        sample = bayesian_sample(values) if scheme == "bayesian" else cluster_sample(values, codes)
    return estimates_of(sample, statistic, smooth=smooth, notes=notes, **asked)


def _refuse(wanted: str, given: dict[str, bool]) -> None:
    """Refuse arguments that are for the other kind of data."""
    if names := [f"`{name}`" for name, is_given in given.items() if is_given]:
        raise ArgumentError(f"{', '.join(names)} can be given only with {wanted}")


def paired_bootstrap(
    a: object,
    b: object,
    clusters: object = None,
    *,
    interval: Method = "percentile",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Estimates:
    """Means of a and b, and `mean(a) - mean(b)`, with pairs (or clusters of pairs) resampled whole.

    Parameters
    ----------
    a, b
        Array-likes of the same length n; a[i] and b[i] belong together.
    clusters
        One label a pair; pairs of a cluster are drawn together.
    interval, missing, conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Estimates
        Three estimates: mean of a, mean of b, and their difference.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments that cannot be used.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.paired_bootstrap([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0])
    >>> fit.estimate.round(3).tolist()
    [0.833, 0.333, 0.5]
    """
    first, second = (
        numbers_of(x, name, dimensions=(1,), keep_integers=True) for x, name in ((a, "a"), (b, "b"))
    )
    if len(first) != len(second):
        raise ArgumentError(f"`a` and `b` must pair: they have {len(first):,} and {len(second):,} values")
    kept, notes = drop_missing([first, second], ["a", "b"], missing)
    pairs = np.stack([first, second, first - second], axis=1)[kept]
    labels = None if clusters is None else complete_codes(clusters, "clusters", len(kept))[kept]
    return estimates_of(
        cluster_sample(pairs) if labels is None else ratio_sample(pairs, labels),
        None,
        names=("mean of a", "mean of b", "a - b"),
        notes=notes,
        interval=interval,
        conf_level=valid_level(conf_level),
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
    )


def cluster_bootstrap(
    x: object,
    clusters: object,
    statistic: Statistic | None = None,
    *,
    interval: Method = "percentile",
    smooth: bool = True,
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Estimates:
    """Mean over rows, `sum(x) / n`, or a function of column means, with whole clusters resampled.

    Parameters
    ----------
    x
        Array-like of shape (n,) or (n, K).
    clusters
        One label a row.
    statistic
        Function of column means, from (..., K) to (..., E).
    interval, smooth, missing, conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments that cannot be used.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.cluster_bootstrap([1, 1, 0, 1, 0, 0], ["a", "a", "b", "b", "c", "d"])
    >>> fit.estimate.tolist(), fit.tidy()["n_clusters"].to_list()
    ([0.5], [4])
    """
    values = numbers_of(x, "x", keep_integers=True)
    kept, notes = drop_missing([values], ["x"], missing)
    labels = complete_codes(clusters, "clusters", len(kept))[kept]
    return estimates_of(
        ratio_sample(values[kept].reshape(int(kept.sum()), -1), labels),
        statistic,
        smooth=smooth,
        notes=notes,
        interval=interval,
        conf_level=valid_level(conf_level),
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
    )
