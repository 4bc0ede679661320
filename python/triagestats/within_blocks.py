"""Tests of several treatments within blocks: Friedman's, and Cochran's Q."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method
from triagestats.association import chi_square_tail
from triagestats.block_laws import permuted_p
from triagestats.errors import ArgumentError, DataError
from triagestats.midranks import midranks
from triagestats.permute import permutation_test
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Note, Test
from triagestats.schema import Match
from triagestats.treatments import Blocks, read_blocks
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["WITHIN_BLOCKS", "cochran_q", "friedman"]

Method = Literal["chi-square", "exact", "cluster-permutation", "auto"]

WITHIN_BLOCKS: Final = (
    "permutation_test(blocks, statistic=lambda m: m.var(axis=-1), alternative='greater', clusters=...),"
)
"""The test of treatments within blocks that respects clusters; blocks are rows, treatments columns."""
_OF_PERMUTATION: Final = ("way", "smallest_p_value", "n_clusters", "n_resamples", "seed")
_SMALL_TABLE: Final = 24
"""Values in blocks that vary, from which the chi-square law of Q is usually taken as good."""


def friedman(
    *blocks: object,
    data: object = None,
    clusters: object = None,
    method: Method | None = None,
    match: Match = "cell",
    missing: Missing = "raise",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
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
        One label a block.
    method
        `chi-square`, or `exact`, which is feasible for few treatments or blocks, and says where it is not:
        both take the blocks as independent; where they share clusters, a note says so.
        `cluster-permutation`: one order of the treatments is drawn a cluster, for all of its blocks, as in
        `permutation_test`. Default (`auto`, or None): `cluster-permutation` where `clusters` are given, else
        `chi-square`.
    match
        What is a block in a ResponseTable.
    missing
        `raise`, or `omit` blocks with a missing value. Keys of a ResponseTable that are not scored at all
        levels are left out, with a note.
    n_resamples, seed
        For `cluster-permutation`.

    Returns
    -------
    Test
        `statistic` is Q, `n` the number of blocks. `details`: `df`, `kendall_w` Q / (n (k - 1)),
        `iman_davenport_f` with `iman_davenport_p`, `treatments`, `mean_ranks`; for `cluster-permutation` also
        `way`, `n_clusters`, `smallest_p_value`, `n_resamples`, `seed`, and no p-value of F. If the values tie
        within every block, Q and p are undefined.

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
    asked = _Asked(chosen_method(method, Method), valid_resamples(n_resamples), valid_seed(seed))
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
        asked,
        name="Friedman test",
        details={"mean_ranks": (sums / n).tolist()} | details,
        why="The values tie within every block: ranks have no variance, and Q is 0/0.",
    )


def cochran_q(
    *blocks: object,
    data: object = None,
    clusters: object = None,
    method: Method | None = None,
    match: Match = "row",
    missing: Missing = "raise",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Cochran's Q test of several treatments with answers 0 and 1 within blocks.

    With C_j the sum of treatment j, R_i that of block i, and T that of all,

        Q = (k - 1) (k sum C_j^2 - T^2) / (k T - sum R_i^2)

    and p from chi-square with k - 1 degrees of freedom, or exact: every order of the answers within a block
    as likely as any other. With two treatments Q is McNemar's chi-square, and exact the exact McNemar test.

    Parameters
    ----------
    blocks, data, clusters, method, match, missing, n_resamples, seed
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
    asked = _Asked(chosen_method(method, Method), valid_resamples(n_resamples), valid_seed(seed))
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
        asked,
        name="Cochran's Q test",
        details={"rates": (columns / n).tolist()},
        why="No block has answers that differ: nothing compares the treatments, and Q is 0/0.",
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a test within blocks is to find its p-value."""

    method: Method | None
    n_resamples: int
    seed: int


def _of_blocks(
    read: Blocks,
    q: float | None,
    whole: NDArray[np.int64],
    asked: _Asked,
    *,
    name: str,
    details: dict[str, Any],
    why: str,
) -> Test:
    """The result of a test within blocks, from whole numbers whose column sums order as Q does."""
    n, k = read.values.shape
    varying = int((np.ptp(whole, axis=1) > 0).sum())
    notes = [*read.notes]
    clustered = read.shared is not None and read.shared.asked
    method = asked.method or ("cluster-permutation" if clustered else "chi-square")
    law = "chi-square approximation" if method == "chi-square" else "exact by permutation within blocks"
    p_value = None
    if method == "cluster-permutation":
        found = _permuted(read, whole, asked)
        p_value, law = found.p_value if q is not None else None, found.method
        details |= {key: found.details[key] for key in _OF_PERMUTATION}
        details.pop("iman_davenport_p", None)
        notes += found.notes if q is not None else ()
    elif q is not None and method == "chi-square":
        p_value = chi_square_tail(q, k - 1)
        if varying * k < _SMALL_TABLE:
            message = (
                f"{varying} blocks that vary, of {k} values, are few: the chi-square law is rough; "
                "method='exact' does without."
            )
            notes.append(Note("approximation", message, "caution"))
    elif q is not None:
        p_value = permuted_p(whole)
        if p_value is None:
            raise ArgumentError(
                f"`method` 'exact' would take too long for {varying:,} blocks of {k} treatments; use "
                "method='chi-square'"
            )
    if q is None:
        notes.append(_undefined(why))
    if read.shared is not None and method != "cluster-permutation":
        notes += read.shared.taken_as_independent(f"method='cluster-permutation', or {WITHIN_BLOCKS}")
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


def _permuted(read: Blocks, whole: NDArray[np.int64], asked: _Asked) -> Test:
    """One order of the treatments a cluster; Q grows with the variance of the column means."""
    if read.shared is None:
        raise ArgumentError("method='cluster-permutation' needs `clusters`, one label a block")
    found: Any = permutation_test(
        whole.astype(np.float64),
        clusters=read.shared.needed_by("cluster-permutation").codes,
        statistic=lambda means: means.var(axis=-1),
        alternative="greater",
        n_resamples=asked.n_resamples,
        seed=asked.seed,
    )
    test: Test = found
    return test


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
