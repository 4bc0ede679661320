"""permutation_test: paired, within clusters, two groups of clusters, or a whole response table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice
from triagestats.blocks import Block, Target
from triagestats.design import Reference
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, DesignError
from triagestats.estimands import Difference, Estimand, Function, Mean
from triagestats.permutation import MOST_LABELS, Permuted, block_tests
from triagestats.permute_rows import Rows, read_rows
from triagestats.permute_table import ALPHA, PermutationTests, permutation_tests
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.schema import Match, Weights
from triagestats.subsets import subset_test
from triagestats.table import ResponseTable
from triagestats.vectors import Missing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Table = (
        ResponseTable
        | pl.DataFrame
        | pl.LazyFrame
        | pd.DataFrame
        | Mapping[str, Any]
        | str
        | os.PathLike[str]
    )

__all__ = ["permutation_test"]

Statistic = Callable[["Array"], "Array"] | Estimand


@overload
def permutation_test(
    a: Table,
    *,
    estimands: Sequence[Estimand] | None = None,
    reference: Reference = None,
    match: Match | None = None,
    weights: Weights | None = None,
    alternative: Alternative = "two-sided",
    n_resamples: int = ...,
    seed: int = ...,
    n_threads: int | None = None,
) -> PermutationTests: ...


@overload
def permutation_test(
    a: Iterable[Any],
    b: Iterable[Any] | None = None,
    *,
    clusters: Iterable[Any] | None = None,
    groups: Iterable[Any] | None = None,
    statistic: Statistic | None = None,
    missing: Missing = "raise",
    alternative: Alternative = "two-sided",
    n_resamples: int = ...,
    seed: int = ...,
    n_threads: int | None = None,
) -> Test: ...


def permutation_test(
    a: object,
    b: object = None,
    *,
    clusters: object = None,
    groups: object = None,
    statistic: Statistic | None = None,
    missing: Missing = "raise",
    estimands: Sequence[Estimand] | None = None,
    reference: Reference = None,
    match: Match | None = None,
    weights: Weights | None = None,
    alternative: Alternative = "two-sided",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test | PermutationTests:
    """Permutation test by cluster: pairs, labels within clusters, or two groups of clusters.

    With T the statistic and mu its mean over all A equally likely arrangements,

        p = #{|T* - mu| >= |T - mu|} / A

    exactly, by enumeration where A is at most `n_resamples` or by convolution where T is linear and the
    values lie on a lattice; else `(b + 1) / (R + 1)` over R = `n_resamples` drawn arrangements (see Notes).

    | call | arrangements | T |
    |---|---|---|
    | `a` and `b`, shape (n,) | one sign flip a cluster, for all its pairs | `sum(a - b) / n` |
    | `a` of shape (n, L) | one relabelling of the L columns a cluster, for all its rows | f(column means) |
    | `a` and `groups`, shape (n,) | which clusters form the first group | mean(level) - mean(reference) |
    | a response table | as in `permutation_tests` | every contrast |

    Parameters
    ----------
    a, b
        Lists, NumPy arrays, or series of polars, pandas or pyarrow. Or `a` alone: a matrix, or a table.
    clusters
        Label of each row's cluster, shape (n,). Default: every row is a cluster.
    groups
        Label of each row's group, shape (n,): two labels, and each cluster wholly in one. The reference is
        the first of an Enum or ordered categorical, else of the sorted order.
    statistic
        A vectorised function of means, (..., L) to (...): of those of `a` and `b`, of the columns, or of
        the level and the reference. Or an estimand: with `groups` it names their labels, else its levels
        stand for the columns in their order. Default for two means: their difference.
    missing
        `raise`, or `omit` the rows in which a value or label is null or NaN.
    estimands, reference, match, weights
        As in `permutation_tests`; for tables only.
    alternative
        `two-sided`; `greater`: T* >= T; `less`: T* <= T.
    n_resamples
        R, and the most arrangements that are enumerated.
    seed
        A whole number; the same call gives the same answer.
    n_threads
        Threads; changes no result. Default: TRIAGESTATS_NUM_THREADS, else all cores.

    Returns
    -------
    Test
        For arrays. `statistic` and `estimate` are T, in the units of the data; `details` say which way
        was taken (`way`), and the smallest p-value that was possible.
    PermutationTests
        For a table.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used, or arguments do not go together.
    DataError
        If a value is missing (unless `omit`) or infinite, or lengths differ.
    DesignError
        If there are not two groups, or a cluster has rows in both.
        All of these derive from `TriagestatsError`; the message says what would help.

    Notes
    -----
    The hypothesis is that the labels of a cluster are exchangeable, or with `groups` the clusters; a test
    of the mean alone it is not. Values tie within a relative 1e-10. The sign flip of 0/1 pairs is the exact
    McNemar test.

    Where arrangements are drawn, mu is known for linear statistics within clusters and for differences of
    clusters of one size (0), and for two labels, or groups of equal numbers of clusters, if f(x, y) + f(y, x)
    is one number (half of it). Else mu is estimated by the mean of the drawn values and T. The error
    of the estimate would break ties between T* and the mirrored point 2 mu - T; so a two-sided p also counts
    T* that repeat among the draws, to ten digits, within three standard errors, 6 sd / sqrt(R), of that
    point. Of a discrete statistic p is then never too small for it, and can be larger than the exact one;
    a continuous one is not affected.

    Drawn arrangements depend on the order of the clusters, which is that of their sorted
    labels, or of the rows without `clusters`.

    References
    ----------
    Phipson, B. and Smyth, G. K. (2010), Permutation p-values should never be zero, Statistical
    Applications in Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> import triagestats as ts
    >>> letter = [1, 0, 1, 1, 0, 0, 1, 0, 1, 0]
    >>> free_text = [1, 1, 1, 1, 1, 0, 1, 1, 1, 1]
    >>> ts.permutation_test(free_text, letter).p_value
    0.125
    >>> result = ts.permutation_test(
    ...     [5, 6, 7, 9, 4, 4], groups=["x", "x", "x", "y", "y", "y"], alternative="less"
    ... )
    >>> result.contrast, round(result.estimate, 3), result.p_value
    ('y - x', -0.333, 0.5)
    """
    valid_choice("alternative", alternative, Alternative)
    for_tables = {"estimands": estimands, "reference": reference, "match": match, "weights": weights}
    for_arrays = {"b": b, "clusters": clusters, "groups": groups, "statistic": statistic}
    is_table = _is_table(a)
    wrong = [name for name, v in (for_arrays if is_table else for_tables).items() if v is not None]
    if wrong:
        named = ", ".join(f"`{name}`" for name in wrong)
        raise ArgumentError(
            f"{named} cannot be given with a table; its columns have roles, so make a ts.ResponseTable, and "
            "ask for `estimands`"
            if is_table
            else f"{named} can be given with a response table only; here use `statistic`"
        )
    if is_table:
        return permutation_tests(
            a,
            estimands=estimands,
            reference=reference,
            match=match or "cell",
            weights=weights or "scenario",
            alternative=alternative,
            n_resamples=n_resamples,
            seed=seed,
            n_threads=n_threads,
        )
    valid_choice("missing", missing, Missing)
    if statistic is not None and not isinstance(statistic, Estimand) and not callable(statistic):
        raise ArgumentTypeError(f"`statistic` must be a function or an estimand; got {statistic!r}")
    draws = _Draws(valid_resamples(n_resamples), valid_seed(seed), thread_count(n_threads), alternative)
    rows = read_rows(a, b, clusters, groups, missing)
    return _two_groups(rows, statistic, draws) if rows.groups else _within(rows, statistic, draws)


@dataclass(frozen=True, slots=True)
class _Draws:
    n_resamples: int
    seed: int
    n_threads: int
    alternative: Alternative


def _is_table(a: object) -> bool:
    return isinstance(a, ResponseTable | Mapping | str | os.PathLike) or any(
        hasattr(a, name) for name in ("columns", "collect_schema")
    )


def _within(rows: Rows, statistic: Statistic | None, draws: _Draws) -> Test:
    """One relabelling of the columns a cluster."""
    n_labels = rows.values.shape[1]
    if not 2 <= n_labels <= MOST_LABELS:
        raise DesignError(f"there must be 2 to {MOST_LABELS} labels to permute, one a column; got {n_labels}")
    if statistic is None and n_labels > 2:
        raise ArgumentError(
            f"`statistic` is needed for {n_labels} labels: a function of the column means, from "
            f"(..., {n_labels}) to (...), such as `lambda m: m.max(axis=-1) - m.min(axis=-1)`, or an estimand"
        )
    columns = ("a", "b") if rows.paired else tuple(f"column {place}" for place in range(n_labels))
    estimand = _estimand(statistic, columns)
    if len(estimand.levels) != n_labels:
        raise ArgumentError(
            f"`statistic` takes {len(estimand.levels)} levels, {list(estimand.levels)}; the data have "
            f"{n_labels} columns"
        )
    totals = np.ascontiguousarray(rows.totals)
    block = Block(
        target=Target(estimand, None, (tuple(range(n_labels)),)),
        stratum=None,
        models=(None,),
        numerators=np.arange(n_labels)[None],
        denominators=np.array([n_labels]),
        groups=(np.array([0]),),
        shares=(np.ones(1),),
        n_rows=(len(rows.values),),
        n_keys=(len(rows.values),),
    )
    (found,) = block_tests(
        block,
        totals,
        n_resamples=draws.n_resamples,
        seed=draws.seed,
        alternative=draws.alternative,
        n_threads=draws.n_threads,
    )
    estimate = float(block.evaluate(totals.sum(axis=0))[0])
    flips = n_labels == 2 and estimand.coefficients is not None
    name = "sign flips by cluster" if flips else "permutation of labels within clusters"
    return _test(rows, estimand, estimate, found, draws, name, "The labels do not differ in any cluster")


def _two_groups(rows: Rows, statistic: Statistic | None, draws: _Draws) -> Test:
    """Clusters permuted between two groups."""
    in_level = np.bincount(rows.cluster, weights=rows.in_level)
    mixed = np.flatnonzero((in_level > 0) & (in_level < np.bincount(rows.cluster)))
    if len(mixed):
        raise DesignError(
            f"cluster {rows.cluster_names[mixed[0]]!r} has rows of both groups, {rows.groups[1]!r} and "
            f"{rows.groups[0]!r}"
            + (f", and so have {len(mixed) - 1:,} more" if len(mixed) > 1 else "")
            + "; every cluster must be wholly in one group. If the groups vary within clusters, compare "
            "pairs: permutation_test(a, b, clusters=...)"
        )
    estimand = _estimand(statistic, rows.groups)
    if set(estimand.levels) != set(rows.groups):
        raise ArgumentError(
            f"`statistic` names the levels {list(estimand.levels)}; the groups are {list(rows.groups)}"
        )
    estimate, found = subset_test(
        rows.totals,
        (in_level > 0) == (estimand.levels[0] == rows.groups[0]),
        estimand.evaluate,
        is_difference=estimand.coefficients == (1.0, -1.0),
        n_resamples=draws.n_resamples,
        seed=draws.seed,
        alternative=draws.alternative,
        n_threads=draws.n_threads,
    )
    name = "permutation of clusters between groups"
    return _test(rows, estimand, estimate, found, draws, name, "All clusters are alike")


def _estimand(statistic: Statistic | None, labels: tuple[str, ...]) -> Estimand:
    if statistic is None:
        return Difference(*labels)
    if isinstance(statistic, Estimand):
        return statistic
    return Function(statistic, [Mean(label) for label in labels], name="statistic")


def _test(
    rows: Rows,
    estimand: Estimand,
    estimate: float,
    found: Permuted | None,
    draws: _Draws,
    name: str,
    still: str,
) -> Test:
    """The result in words and numbers."""
    if found is None or not np.isfinite(estimate):
        raise DataError(f"`statistic` is {estimate:g} for these data; it must be finite to be compared")
    notes = list(rows.notes)
    if found.n_moving == 0:
        notes.append(
            Note("degenerate", f"{still}: every arrangement gives the same value, so p = 1.", "caution")
        )
    elif found.smallest > ALPHA:
        few = f"{found.n_moving} cluster" + ("" if found.n_moving == 1 else "s")
        message = f"With {few} to permute, p cannot be below {found.smallest:.3g}."
        notes.append(Note("smallest_p", message, "caution"))
    details: dict[str, Any] = {
        "way": found.way,
        "n_arrangements": None if found.way == "convolution" else found.n_arrangements,
        "smallest_p_value": found.smallest,
        "n_clusters": rows.n_clusters,
        "n_moving": found.n_moving,
        "n_missing": rows.n_missing,
        "n_resamples": draws.n_resamples,
        "seed": draws.seed,
    }
    return Test(
        estimand=estimand.name,
        contrast=estimand.label,
        estimate=estimate,
        statistic=estimate,
        p_value=found.p_value,
        alternative=draws.alternative,
        method=f"{name}, {found.how}",
        n=len(rows.values),
        details=details,
        notes=tuple(notes),
    )
