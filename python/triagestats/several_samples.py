"""The Kruskal-Wallis test of several groups, by clusters too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method
from triagestats.association import chi_square_tail
from triagestats.errors import ArgumentError, DesignError
from triagestats.midranks import cube_sum, midranks
from triagestats.partitions import Partitioned, partition_test
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Note, Test
from triagestats.treatments import Samples, read_samples
from triagestats.two_groups import GROUPED, PAIRED
from triagestats.vectors import Missing
from triagestats.within_blocks import WITHIN_BLOCKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["kruskal"]

Method = Literal["chi-square", "cluster-permutation", "auto"]

_SMALL_GROUP: Final = 5
"""Values a group from which the chi-square law of H is usually taken as good."""


def kruskal(
    *samples: object,
    groups: object = None,
    data: object = None,
    clusters: object = None,
    method: Method | None = None,
    missing: Missing = "raise",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Kruskal-Wallis test of several independent groups, corrected for ties.

    With r the midranks of all N values and R_j the rank sum of the n_j values of group j,

        H = (12 / (N (N + 1)) sum R_j^2 / n_j - 3 (N + 1)) / (1 - sum(t^3 - t) / (N^3 - N))

    with t the sizes of the groups of tied values; p from chi-square with k - 1 degrees of freedom.

    Parameters
    ----------
    samples
        One vector a group; a list of such vectors; names of columns of `data`; or one vector of values, with
        `groups`.
    groups
        One label a value.
    data
        A table whose columns are named.
    clusters
        One label a value; of several vectors one after the other.
    method
        `chi-square`, which takes the values as independent; where they share clusters, a note says so.
        `cluster-permutation`: the law of H when clusters, each of them wholly in one group, are permuted
        between the groups. Default (`auto`, or None): `cluster-permutation` where `clusters` are given, else
        `chi-square`.
    missing
        `raise`, or `omit` missing values and labels.
    n_resamples, seed
        For `cluster-permutation`: all arrangements are taken where they are at most R, else R are drawn.

    Returns
    -------
    Test
        `statistic` is H. `details`: `df`, `epsilon_squared` H / (N - 1), `eta_squared`
        (H - k + 1) / (N - k), `groups`, `mean_ranks`, `n_by_group`; for `cluster-permutation` also `way`,
        `n_clusters`, `smallest_p_value`, `n_resamples`, `seed`. If all values tie, H and p are undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as two or more groups; the message says what would help.

    Notes
    -----
    The hypothesis is that all groups have one distribution. Values tie if they agree to ten digits. Groups
    that vary within clusters are treatments within blocks: `friedman`.

    References
    ----------
    Kruskal, W. H. and Wallis, W. A. (1952), Use of ranks in one-criterion variance analysis, Journal of the
    American Statistical Association 47:583-621.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.kruskal([1, 2, 2, 3, 3], [3, 3, 4, 4, 5], [2, 2, 2, 5, 5, 1])
    >>> round(result.statistic, 4), result.details["df"], round(result.p_value, 4)
    (4.0353, 2, 0.133)
    """
    chosen = chosen_method(method, Method)
    resamples, seed = valid_resamples(n_resamples), valid_seed(seed)
    read = read_samples(samples, groups=groups, data=data, clusters=clusters, missing=missing)
    way = chosen or ("cluster-permutation" if read.shared is not None and read.shared.asked else "chi-square")
    ranks = midranks(read.values)
    n, k = len(ranks), len(read.names)
    counts = np.bincount(read.codes)
    sums = np.bincount(read.codes, weights=ranks)
    details: dict[str, Any] = {
        "df": k - 1,
        "epsilon_squared": None,
        "eta_squared": None,
        "groups": list(read.names),
        "mean_ranks": (sums / counts).tolist(),
        "n_by_group": counts.tolist(),
        "n_missing": read.n_missing,
    }
    notes = [*read.notes]
    name = f"Kruskal-Wallis test of {k} groups, "
    tested = _by_cluster(read, ranks, resamples, seed) if way == "cluster-permutation" else None
    name += "chi-square approximation" if tested is None else tested.how
    statistic = p_value = None
    if ranks.min() < ranks.max():
        between = float((counts * (sums / counts - (n + 1) / 2) ** 2).sum())
        statistic = 12 * (n - 1) * between / (n**3 - n - cube_sum(ranks))
        p_value = chi_square_tail(statistic, k - 1) if tested is None else tested.p_value
        details["epsilon_squared"] = statistic / (n - 1)
        details["eta_squared"] = (statistic - k + 1) / (n - k) if n > k else None
        if tested is None and counts.min() < _SMALL_GROUP:
            message = (
                f"The smallest group has {counts.min()} of {n:,} values, fewer than {_SMALL_GROUP}: the "
                "chi-square law is rough."
            )
            notes.append(Note("approximation", message, "caution"))
    else:
        notes.append(Note("undefined", "All values tie: ranks have no variance, and H is 0/0.", "caution"))
    if tested is not None:
        details |= tested.details
        notes += tested.notes if statistic is not None else ()
    elif read.shared is not None:
        notes += read.shared.taken_as_independent(_clustered_call(read))
    return Test(
        estimand=None,
        statistic=statistic,
        p_value=p_value,
        method=name,
        n=n,
        details=details,
        notes=tuple(notes),
    )


def _clustered_call(read: Samples) -> str:
    """The test of these groups that respects the clusters."""
    two = len(read.names) == 2
    if read.shared is not None and read.shared.within(read.codes):
        return "kruskal(..., method='cluster-permutation')" + (f", or {GROUPED}," if two else "")
    return PAIRED if two else f"friedman(..., method='cluster-permutation'), or {WITHIN_BLOCKS}"


def _by_cluster(read: Samples, ranks: Array, n_resamples: int, seed: int) -> Partitioned:
    """Clusters permuted between the groups, for the variation of mean ranks between them."""
    if read.shared is None:
        raise ArgumentError("method='cluster-permutation' needs `clusters`, one label a value")
    shared = read.shared.needed_by("cluster-permutation")
    if not shared.within(read.codes):
        raise DesignError(
            "the groups vary within clusters, which then cannot be permuted between them; with one column a "
            "group and one row a block use friedman(..., clusters=...). method='chi-square' takes all values "
            "as independent"
        )
    of_cluster = np.empty(shared.size, dtype=np.int64)
    of_cluster[shared.codes] = read.codes
    centred = ranks - (len(ranks) + 1) / 2
    sizes = np.bincount(shared.codes).astype(np.float64)
    totals = np.stack([np.bincount(shared.codes, weights=centred), sizes], axis=1)

    def between(sums: Array) -> Array:
        found: Array = (sums[..., 0] ** 2 / sums[..., 1]).sum(axis=-1)
        return found

    return partition_test(totals, of_cluster, between, n_resamples=n_resamples, seed=seed)
