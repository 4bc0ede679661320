"""Tests of pairs of labels in clusters: the sides of all pairs of a cluster are exchanged, or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.crosstab import Crosstab
from triagestats.errors import ArgumentError
from triagestats.flipped import flipped_sums
from triagestats.permute_table import ALPHA
from triagestats.results import Note
from triagestats.tolerances import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["CLUSTERED", "SideFlips", "side_flips"]

CLUSTERED: Final = (
    "method='cluster-sign-flip', or permutation_test(np.asarray(x) == label, np.asarray(y) == label, "
    "clusters=...) for each label,"
)
"""The tests of pairs of labels that respect clusters."""


@dataclass(frozen=True, slots=True)
class SideFlips:
    """A test by exchanging the sides of clusters.

    Attributes
    ----------
    p_value
        The share of exchanges whose statistic is at least as large.
    how
        In words, how it was computed.
    details, notes
        What a result tells of it.
    """

    p_value: float
    how: str
    details: dict[str, Any]
    notes: tuple[Note, ...]


def side_flips(table: Crosstab, evaluate: Callable[[Array], Array], n_resamples: int, seed: int) -> SideFlips:
    """Test of a statistic of a square table by exchanging both sides for all pairs of a cluster.

    Parameters
    ----------
    table
        A square table, with its clusters.
    evaluate
        The statistic, from tables (..., k * k) to (...), which reads n_ij - n_ji alone.
    n_resamples, seed
        All exchanges are taken where they are at most so many; else so many are drawn.

    Raises
    ------
    ArgumentError, DesignError
        If counts were given, or no clusters that can be used.
    """
    if table.shared is None or table.codes is None:
        raise ArgumentError("method='cluster-sign-flip' needs the pairs, `x` and `y`, with `clusters`")
    shared = table.shared.needed_by("cluster-sign-flip")
    cells = table.counts.size
    cell = table.codes[0] * len(table.counts) + table.codes[1]
    totals = np.bincount(shared.codes * cells + cell, minlength=shared.size * cells)
    tables = totals.reshape(shared.size, *table.counts.shape)
    # What an exchange turns the sign of; the rest stays, and no statistic reads it.
    signed = (tables - tables.swapaxes(1, 2)).reshape(shared.size, cells) / 2
    sums, exact = flipped_sums(signed, n_resamples, seed)
    null, own = evaluate(sums), float(evaluate(signed.sum(axis=0)))
    b = int((null >= own - TIES * float(np.abs(null).max(initial=own))).sum())
    notes: tuple[Note, ...] = ()
    n_moving = int(signed.any(axis=1).sum())
    if exact and (smallest := 2.0 ** (1 - n_moving)) > ALPHA:
        message = f"With {n_moving} clusters whose sides differ, p cannot be below {smallest:.3g}."
        notes = (Note("smallest_p", message, "caution"),)
    return SideFlips(
        b / len(null) if exact else (b + 1) / (len(null) + 1),
        "exact by enumeration" if exact else f"{len(null):,} drawn",
        {
            "way": "enumeration" if exact else "drawn",
            "n_clusters": shared.size,
            "n_resamples": n_resamples,
            "seed": seed,
        },
        notes,
    )
