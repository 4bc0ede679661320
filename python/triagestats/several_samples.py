"""Tests of several samples by ranks: Kruskal-Wallis, Friedman, and Cochran's Q."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.block_laws import permuted_p
from triagestats.errors import ArgumentError, DataError
from triagestats.midranks import cube_sum, midranks
from triagestats.results import Note, Test
from triagestats.schema import Match
from triagestats.treatments import Blocks, read_blocks, read_samples
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["cochran_q", "friedman", "kruskal"]

Method = Literal["chi-square", "exact"]

_SMALL_GROUP: Final = 5
"""Values a group from which the chi-square law of H is usually taken as good."""
_SMALL_TABLE: Final = 24
"""Values in blocks that vary, from which the chi-square law of Q is usually taken as good."""


def kruskal(
    *samples: object,
    groups: object = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
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
        One label a value. The test takes the values as independent, with a note.
    missing
        `raise`, or `omit` missing values and labels.

    Returns
    -------
    Test
        `statistic` is H. `details`: `df`, `epsilon_squared` H / (N - 1), `eta_squared`
        (H - k + 1) / (N - k), `groups`, `mean_ranks`, `n_by_group`. If all values tie, H and p are
        undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as two or more groups; the message says what would help.

    Notes
    -----
    The hypothesis is that all groups have one distribution. Values tie if they agree to ten digits.

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
    read = read_samples(samples, groups=groups, data=data, clusters=clusters, missing=missing)
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
    statistic = p_value = None
    if ranks.min() < ranks.max():
        between = float((counts * (sums / counts - (n + 1) / 2) ** 2).sum())
        statistic = 12 * (n - 1) * between / (n**3 - n - cube_sum(ranks))
        p_value = _chi_square_tail(statistic, k - 1)
        details["epsilon_squared"] = statistic / (n - 1)
        details["eta_squared"] = (statistic - k + 1) / (n - k) if n > k else None
        if counts.min() < _SMALL_GROUP:
            message = (
                f"The smallest group has {counts.min()} of {n:,} values, fewer than {_SMALL_GROUP}: the "
                "chi-square law is rough."
            )
            notes.append(Note("approximation", message, "caution"))
    else:
        notes.append(_undefined("All values tie: ranks have no variance, and H is 0/0."))
    if read.shared is not None:
        notes += read.shared.taken_as_independent(
            "for two groups permutation_test(values, groups=..., clusters=...)"
        )
    return Test(
        estimand=None,
        statistic=statistic,
        p_value=p_value,
        method=f"Kruskal-Wallis test of {k} groups, chi-square approximation",
        n=n,
        details=details,
        notes=tuple(notes),
    )


def friedman(
    *blocks: object,
    data: object = None,
    clusters: object = None,
    method: Method = "chi-square",
    match: Match = "cell",
    missing: Missing = "raise",
) -> Test:
    """Friedman test of several treatments within blocks, corrected for ties.

    With r_ij the midranks of the k values within block i, and R_j their sum over the n blocks,

        Q = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / sum_ij (r_ij - (k + 1) / 2)^2

    and p from chi-square with k - 1 degrees of freedom, or exact: every order of the values within a block as
    likely as any other.

    Parameters
    ----------
    blocks
        A matrix of blocks by treatments; one vector a treatment; names of columns of `data`; or condition
        levels where `data` is a ResponseTable, all levels where none are named. Or the ResponseTable.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a block. The test takes the blocks as independent, with a note.
    method
        `chi-square`, or `exact`, which is feasible for few treatments or blocks, and says where it is not.
    match
        What is a block in a ResponseTable.
    missing
        `raise`, or `omit` blocks with a missing value. Keys of a ResponseTable that are not scored at all
        levels are left out, with a note.

    Returns
    -------
    Test
        `statistic` is Q, `n` the number of blocks. `details`: `df`, `kendall_w` Q / (n (k - 1)),
        `iman_davenport_f` with `iman_davenport_p`, `treatments`, `mean_ranks`. If the values tie within
        every block, Q and p are undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as blocks; the message says what would help.

    Notes
    -----
    The hypothesis is that the treatments are exchangeable within each block, and the blocks independent.
    Iman and Davenport's F = (n - 1) Q / (n (k - 1) - Q) with k - 1 and (k - 1)(n - 1) degrees of freedom is
    less conservative than the chi-square; it is undefined where the blocks agree fully.

    References
    ----------
    Friedman, M. (1937), The use of ranks to avoid the assumption of normality implicit in the analysis of
    variance, Journal of the American Statistical Association 32:675-701.

    Iman, R. L. and Davenport, J. M. (1980), Approximations of the critical region of the Friedman statistic,
    Communications in Statistics A9:571-595.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.friedman([[1, 2, 3], [2, 1, 3], [1, 3, 2], [1, 2, 3]])
    >>> result.statistic, round(result.p_value, 4), result.details["kendall_w"]
    (4.5, 0.1054, 0.5625)
    >>> ts.friedman([[1, 2, 3], [2, 1, 3], [1, 3, 2], [1, 2, 3]], method="exact").p_value
    0.125
    """
    valid_choice("method", method, Method)
    read = read_blocks(blocks, data=data, clusters=clusters, match=match, missing=missing)
    ranks = np.stack([midranks(row) for row in read.values])
    n, k = ranks.shape
    sums = ranks.sum(axis=0)
    details: dict[str, Any] = {"iman_davenport_f": None, "iman_davenport_p": None}
    spread = float(((ranks - (k + 1) / 2) ** 2).sum())  # 0 where every block ties
    q = (k - 1) * float(((sums - n * (k + 1) / 2) ** 2).sum()) / spread if spread > 0 else None
    if q is not None and (left := n * (k - 1) - q) > 0 and n > 1:
        from scipy.special import fdtrc

        f = (n - 1) * q / left
        details |= {
            "iman_davenport_f": f,
            "iman_davenport_p": float(fdtrc(k - 1, (k - 1) * (n - 1), f)),
        }
    return _of_blocks(
        read,
        q,
        np.rint(2 * ranks).astype(np.int64),
        method,
        name="Friedman test",
        details={"mean_ranks": (sums / n).tolist()} | details,
        why="The values tie within every block: ranks have no variance, and Q is 0/0.",
    )


def cochran_q(
    *blocks: object,
    data: object = None,
    clusters: object = None,
    method: Method = "chi-square",
    match: Match = "row",
    missing: Missing = "raise",
) -> Test:
    """Cochran's Q test of several treatments with answers 0 and 1 within blocks.

    With C_j the sum of treatment j, R_i that of block i, and T that of all,

        Q = (k - 1) (k sum C_j^2 - T^2) / (k T - sum R_i^2)

    and p from chi-square with k - 1 degrees of freedom, or exact: every order of the answers within a block
    as likely as any other. With two treatments Q is McNemar's chi-square, and exact the exact McNemar test.

    Parameters
    ----------
    blocks, data, clusters, method, match, missing
        As in `friedman`; all values are 0 or 1. Of a ResponseTable repetitions are blocks of their own.

    Returns
    -------
    Test
        `statistic` is Q, `n` the number of blocks. `details`: `df`, `kendall_w` Q / (n (k - 1)),
        `treatments`, `rates`, `n_varying`, the blocks whose answers differ. If there are none, Q and p are
        undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as blocks, and for values other than 0 and 1, such as means over judges; the
        message says what would help.

    Notes
    -----
    The hypothesis is that the treatments are exchangeable within each block, and the blocks independent.
    Blocks whose answers all agree do not count.

    References
    ----------
    Cochran, W. G. (1950), The comparison of percentages in matched samples, Biometrika 37:256-266.

    Examples
    --------
    >>> import triagestats as ts
    >>> answers = [[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 0]]
    >>> round(ts.cochran_q(answers).statistic, 3), round(ts.cochran_q(answers, method="exact").p_value, 4)
    (5.2, 0.1235)
    """
    valid_choice("method", method, Method)
    read = read_blocks(blocks, data=data, clusters=clusters, match=match, missing=missing)
    values = read.values
    if (values * values != values).any():
        raise _not_binary(values)
    n, k = values.shape
    columns, rows = values.sum(axis=0), values.sum(axis=1)
    total = float(values.sum())
    spread = k * total - float((rows**2).sum())
    q = (k - 1) * (k * float((columns**2).sum()) - total**2) / spread if spread > 0 else None
    return _of_blocks(
        read,
        q,
        values.astype(np.int64),
        method,
        name="Cochran's Q test",
        details={"rates": (columns / n).tolist()},
        why="No block has answers that differ: nothing compares the treatments, and Q is 0/0.",
    )


def _of_blocks(
    read: Blocks,
    q: float | None,
    whole: NDArray[np.int64],
    method: Method,
    *,
    name: str,
    details: dict[str, Any],
    why: str,
) -> Test:
    """The result of a test within blocks, from whole numbers whose column sums order as Q does."""
    n, k = read.values.shape
    varying = int((np.ptp(whole, axis=1) > 0).sum())
    notes = [*read.notes]
    p_value = None
    if q is None:
        notes.append(_undefined(why))
    elif method == "chi-square":
        p_value = _chi_square_tail(q, k - 1)
        if varying * k < _SMALL_TABLE:
            message = (
                f"{varying} blocks that vary, of {k} values, are few: the chi-square law is rough; "
                "method='exact' does without."
            )
            notes.append(Note("approximation", message, "caution"))
    else:
        p_value = permuted_p(whole)
        if p_value is None:
            raise ArgumentError(
                f"`method` 'exact' would take too long for {varying:,} blocks of {k} treatments; use "
                "method='chi-square'"
            )
    if read.shared is not None:
        notes += read.shared.taken_as_independent("permutation_test(blocks, statistic=..., clusters=...)")
    law = "chi-square approximation" if method == "chi-square" else "exact by permutation within blocks"
    return Test(
        estimand=None,
        statistic=q,
        p_value=p_value,
        method=f"{name} of {k} treatments, {law}",
        n=n,
        details={
            "df": k - 1,
            "kendall_w": None if q is None else q / (n * (k - 1)),
            "treatments": list(read.names),
            "n_varying": varying,
        }
        | details
        | {"n_missing": read.n_missing},
        notes=tuple(notes),
    )


def _chi_square_tail(statistic: float, df: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(df, statistic))


def _undefined(why: str) -> Note:
    return Note("undefined", why, "caution")


def _not_binary(values: Array) -> DataError:
    wrong = values[values * values != values]
    example = f"`blocks` holds {wrong[0]:g} where 0 and 1 are expected"
    if ((wrong > 0) & (wrong < 1)).any():
        return DataError(
            f"{example}. A mean over judges or repetitions is no single answer: test per judge, "
            "`table.with_judge('...')`, or only what all judges agree on, `table.with_unanimous_judges()`, "
            "with match='row'; for means use `friedman`"
        )
    return DataError(f"{example}; for scores on a scale use `friedman`")
