"""Tables of counts with given margins: how likely those are that are no likelier than the one at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.tolerances import SMALLEST, TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

__all__ = ["TableLaw", "drawn_tables", "enumerated_tables"]

MOST_CELLS: Final = 12_000_000
"""Row sums of half tables that are written out, a second's work; beyond, tables are drawn."""
_CHUNK: Final = 1_000
_ROUNDING: Final = 16 * float(np.finfo(np.float64).eps)
"""Relative rounding of a sum of log factorials."""


@dataclass(frozen=True, slots=True)
class TableLaw:
    """Where a table stands among those with its margins.

    Attributes
    ----------
    p_value
        Probability of the tables that are no likelier; `(b + 1) / (R + 1)` where R are drawn.
    probability
        Probability of the table itself.
    n_tables
        Tables with these margins where all were counted, else those that were drawn.
    exact
        Whether all were counted.
    """

    p_value: float
    probability: float
    n_tables: int
    exact: bool


def enumerated_tables(counts: Counts) -> TableLaw | None:
    """The exact law, None where more than `MOST_CELLS` numbers would be written out.

    The columns are split in two halves. A left and a right half fit together where their row sums add up to
    those of the table; the log probability is then the sum of theirs, so that among the right halves of one
    kind, sorted, those that keep the table no likelier than the observed one are found by bisection.
    """
    plans = [plan for table in (counts, counts.T) if (plan := _Plan.of(table)) is not None]
    if not plans:
        return None
    plan = min(plans, key=lambda found: found.cells)
    constant, own = _constant(counts), float(_log_mass(counts[None])[0])
    left, right = (_paths(half, plan.rows) for half in plan.halves)
    p_value, n_tables = _matched(
        (left[0] @ plan.radix, left[1] + constant),
        ((plan.rows - right[0]) @ plan.radix, right[1]),
        own + constant + _slack(counts),
    )
    return TableLaw(min(1.0, max(p_value, SMALLEST)), math.exp(own + constant), n_tables, exact=True)


def drawn_tables(counts: Counts, n_resamples: int, seed: int) -> TableLaw:
    """The law by drawn tables, each as likely as the hypothesis makes it."""
    from scipy.stats import random_table

    law = random_table(counts.sum(axis=1), counts.sum(axis=0))
    random = np.random.default_rng(seed)
    own = float(_log_mass(counts[None])[0])
    found = 0
    for first in range(0, n_resamples, _CHUNK):
        tables = law.rvs(size=min(_CHUNK, n_resamples - first), random_state=random)
        found += int((_log_mass(tables) <= own + _slack(counts)).sum())
    probability = math.exp(_constant(counts) + own)
    return TableLaw((found + 1) / (n_resamples + 1), probability, n_resamples, exact=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Row totals, the ways to fill each column of the two halves, and what tells row sums apart."""

    rows: Counts
    halves: tuple[list[Counts], list[Counts]]
    radix: Counts
    cells: int

    @classmethod
    def of(cls, counts: Counts) -> _Plan | None:
        """None where too much would be written out."""
        rows = counts.sum(axis=1)
        ways = []
        for total in counts.sum(axis=0).tolist():
            way = _columns(int(total), rows)
            if way is None:
                return None
            ways.append(way)
        halves = _split(ways)
        cells = len(rows) * sum(math.prod(len(way) for way in half) for half in halves)
        sizes = [int(total) + 1 for total in rows[:-1]]  # the last sum follows from the others
        if cells > MOST_CELLS or math.prod(sizes) >= 2**62:
            return None
        radix = [math.prod(sizes[:place]) for place in range(len(sizes))]
        return cls(rows, halves, np.array([*radix, 0], dtype=np.int64), cells)


def _columns(total: int, rows: Counts) -> Counts | None:
    """All columns of a given total under the row totals, shape (C, k); None where they are too many."""
    found = np.zeros((1, 0), dtype=np.int64)
    left = np.array([total], dtype=np.int64)
    for place, most in enumerate(rows.tolist()):
        room = int(rows[place + 1 :].sum())
        low, high = np.maximum(left - room, 0), np.minimum(left, most)
        lengths = high - low + 1
        if int(lengths.sum()) * len(rows) > MOST_CELLS:
            return None
        parent = np.repeat(np.arange(len(left)), lengths)
        start = np.cumsum(lengths) - lengths
        cell = np.arange(len(parent)) - start[parent] + low[parent]
        found = np.concatenate([found[parent], cell[:, None]], axis=1)
        left = left[parent] - cell
    return found


def _split(ways: list[Counts]) -> tuple[list[Counts], list[Counts]]:
    """Two halves of the columns with about as many combinations."""
    halves: tuple[list[Counts], list[Counts]] = ([], [])
    sizes = [0.0, 0.0]
    for way in sorted(ways, key=len, reverse=True):
        smaller = 0 if sizes[0] <= sizes[1] else 1
        halves[smaller].append(way)
        sizes[smaller] += math.log(len(way))
    return halves


def _paths(ways: list[Counts], rows: Counts) -> tuple[NDArray[np.int32], Array]:
    """Row sums and log masses of all combinations of columns that keep within the row totals."""
    sums, logs = np.zeros((1, len(rows)), dtype=np.int32), np.zeros(1)
    for way in ways:
        sums = (sums[:, None] + way[None].astype(np.int32)).reshape(-1, len(rows))
        logs = (logs[:, None] + _log_mass(way[:, :, None])[None]).reshape(-1)
        kept = (sums <= rows).all(axis=1)
        sums, logs = sums[kept], logs[kept]
    return sums, logs


def _matched(left: tuple[Counts, Array], right: tuple[Counts, Array], most: float) -> tuple[float, int]:
    """Sum of exp(l + r) over halves of one key with l + r at most `most`, and the number of all pairs."""
    left_key, left_log = _grouped(*left)
    right_key, right_log = _grouped(*right)
    keys, left_first, left_count = np.unique(left_key, return_index=True, return_counts=True)
    others, right_first, right_count = np.unique(right_key, return_index=True, return_counts=True)
    shared, at, other = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    parts, pairs = [], 0
    for place in range(len(shared)):
        ours = left_log[left_first[at[place]] :][: left_count[at[place]]]
        theirs = right_log[right_first[other[place]] :][: right_count[other[place]]]
        pairs += len(ours) * len(theirs)
        top = float(theirs[-1])
        # From the smallest up, so that a tiny sum keeps its digits.
        below = np.concatenate([[0.0], np.cumsum(np.exp(theirs - top))])
        fitting = np.searchsorted(theirs, most - ours, side="right")
        parts.append(float((np.exp(ours + top) * below[fitting]).sum()))
    return math.fsum(parts), pairs


def _grouped(key: Counts, log: Array) -> tuple[Counts, Array]:
    """Sorted by key, and by log mass within a key."""
    order = np.lexsort((log, key))
    return key[order], log[order]


def _log_mass(tables: NDArray[Any]) -> Array:
    """Minus the log factorials of all cells, shape (T, r, c) to (T,)."""
    from scipy.special import gammaln

    mass: Array = -gammaln(tables + 1.0).sum(axis=(1, 2))
    return mass


def _constant(counts: Counts) -> float:
    """Log factorials of the margins less that of the total."""
    from scipy.special import gammaln

    margins = np.concatenate([counts.sum(axis=0), counts.sum(axis=1)])
    return float(gammaln(margins + 1.0).sum() - gammaln(float(counts.sum()) + 1))


def _slack(counts: Counts) -> float:
    """How far apart two log masses may lie and still tie."""
    return max(TIES, _ROUNDING * math.lgamma(float(counts.sum()) + 1))
