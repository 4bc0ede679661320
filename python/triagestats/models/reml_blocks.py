"""Rows of a mixed model as sums by block: what its likelihood needs, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.errors import DesignError
from triagestats.models.facets import joint_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["MOST_DENSE", "MOST_NUMBERS", "Batch", "Sums", "sums_of"]

MOST_DENSE: Final = 3_000
"""Most effects outside blocks: their cross products are one dense matrix."""
MOST_NUMBERS: Final = 40_000_000
"""Most numbers in the cross products of all blocks, 320 MB."""

_PIECE: Final = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Blocks of like size, one entry for all blocks with the same cells.

    Attributes
    ----------
    term
        The term of each effect in a block, shape (b,).
    copies
        Blocks with these cells, shape (k,).
    inner
        `Z'Z` of the effects in the block, shape (k, b, b).
    outer
        `Z'A` with the columns A outside blocks, shape (k, b, a).
    first, second
        Sums over the blocks of `z = Z'y` and of `z z'`, shapes (k, b) and (k, b, b).
    """

    term: Codes
    copies: Array
    inner: Array
    outer: Array
    first: Array
    second: Array


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """A mixed model as sums; the outcome has mean 0 and length sqrt(n), columns but the constant too.

    Attributes
    ----------
    batches
        The blocks.
    dense_term
        The term of each random effect outside blocks, shape (d,). The other p columns outside are fixed.
    dense, dense_y, yy
        `A'A`, `A'y` and `y'y`, shapes (d + p, d + p), (d + p,) and ().
    n_rows, n_terms, n_fixed
        Numbers of rows, random terms and fixed columns.
    centre, scale
        The outcome is `centre + scale` times the standardised one.
    shift, stretch
        Fixed column j is `shift[j] + stretch[j]` times the standardised one; (0, 1) for the constant.
    n_patterns
        Number of different blocks.
    within
        Sum of squares of the standardised outcome within combinations of all terms and columns, and its
        degrees of freedom.
    """

    batches: tuple[Batch, ...]
    dense_term: Codes
    dense: Array
    dense_y: Array
    yy: float
    n_rows: int
    n_terms: int
    n_fixed: int
    centre: float
    scale: float
    shift: Array
    stretch: Array
    n_patterns: int
    within: tuple[float, int]

    @property
    def work(self) -> float:
        """Multiplications in one likelihood with its slopes, about."""
        width = float(len(self.dense))
        sizes = [(float(len(batch.copies)), float(len(batch.term))) for batch in self.batches]
        return sum(k * b * (b + width) * (b + 3 * width) for k, b in sizes) + 4 * width**3


def sums_of(y: Array, x: Array, codes: Sequence[Codes], names: Sequence[str]) -> Sums:
    """The sums of a mixed model with one variance a random term.

    Parameters
    ----------
    y
        The outcome, shape (n,), not constant.
    x
        Fixed columns of full rank, the first of them the constant, shape (n, p).
    codes
        Effect of each row for each random term.
    names
        Names of the terms.

    Raises
    ------
    DesignError
        If the effects outside blocks, or the blocks, are too many.

    Notes
    -----
    Blocks are the levels of that term (or none) for which the least work is left: a term belongs to the
    blocks if each of its levels lies in one of them. Blocks with the same cells, with the same counts,
    share all matrices; of their outcomes only sums and sums of products matter. A balanced table thus
    costs the same with ten scenarios and with ten thousand.
    """
    centre, scale = float(y.mean()), float(y.std())
    standard = (y - centre) / scale
    shift, stretch = x.mean(axis=0), x.std(axis=0)
    shift[0], stretch[0] = 0.0, 1.0
    columns = (x - shift) / stretch

    row_of_x = (
        np.unique(x, axis=0, return_inverse=True)[1].reshape(-1)
        if x.shape[1] > 1
        else np.zeros(len(y), np.int64)
    )
    cell = joint_codes(*codes, row_of_x)
    first = np.unique(cell, return_index=True)[1]
    weights = np.bincount(cell).astype(np.float64)
    totals = np.bincount(cell, weights=standard).astype(np.float64)
    deviations = standard - (totals / weights)[cell]
    cells = _Cells([code[first] for code in codes], columns[first], row_of_x[first], weights, totals)

    block, inside = _best_blocks(cells, names)
    outside = [term for term in range(len(codes)) if term not in inside]
    slots = _dense_slots(cells, outside)
    a = _outside_columns(cells, slots)
    batches = _batches(cells, block, inside, slots, a.shape[1]) if inside else ()
    return Sums(
        batches=batches,
        dense_term=np.repeat(outside, [cells.n_levels(term) for term in outside]).astype(np.int64),
        dense=(a.T @ (a * weights[:, None])).toarray(),
        dense_y=np.asarray(a.T @ totals).reshape(-1),
        yy=float(standard @ standard),
        n_rows=len(y),
        n_terms=len(codes),
        n_fixed=x.shape[1],
        centre=centre,
        scale=scale,
        shift=shift,
        stretch=stretch,
        n_patterns=sum(len(batch.copies) for batch in batches),
        within=(float(deviations @ deviations), len(y) - len(weights)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Combinations of all terms and fixed columns that occur."""

    codes: list[Codes]
    x: Array
    row_of_x: Codes
    weights: Array
    totals: Array

    def n_levels(self, term: int) -> int:
        return int(self.codes[term].max()) + 1


def _best_blocks(cells: _Cells, names: Sequence[str]) -> tuple[Codes, list[int]]:
    """The block of each cell, and the terms that lie in blocks."""
    n_levels = [cells.n_levels(term) for term in range(len(names))]
    options: list[tuple[float, int, Codes, list[int]]] = []
    for candidate in range(len(names)):
        block = cells.codes[candidate]
        inside = [
            term
            for term, code in enumerate(cells.codes)
            if int(joint_codes(code, block).max()) + 1 == n_levels[term]
        ]
        n_blocks = n_levels[candidate]
        size = sum(n_levels[term] for term in inside) / n_blocks
        dense = sum(n_levels) - sum(n_levels[term] for term in inside) + cells.x.shape[1]
        work = n_blocks * (size**3 + size * dense * (size + dense)) + dense**3
        options.append((work, candidate, block, inside))
    dense = sum(n_levels) + cells.x.shape[1]
    options.append((float(dense) ** 3, len(names), np.zeros_like(cells.codes[0]), []))
    _, place, block, inside = min(options, key=lambda option: option[:2])
    left = sum(n_levels) - sum(n_levels[term] for term in inside) + cells.x.shape[1]
    if left > MOST_DENSE:
        where = f" outside blocks of {names[place]}" if place < len(names) else ""
        outside = [names[term] for term in range(len(names)) if term not in inside]
        raise DesignError(
            f"{left:,} effects{where} ({', '.join(outside)}) are more than the {MOST_DENSE:,} that are "
            "solved at once; leave out an interaction, or name fewer factors"
        )
    return block, inside


def _dense_slots(cells: _Cells, outside: Sequence[int]) -> list[Codes]:
    """The column outside blocks of each cell, for each term that has some."""
    starts = np.cumsum([0, *(cells.n_levels(term) for term in outside)])
    return [cells.codes[term] + start for term, start in zip(outside, starts[:-1], strict=True)]


def _outside_columns(cells: _Cells, slots: Sequence[Codes]) -> Any:
    """The columns outside blocks, one row a cell, sparse."""
    from scipy import sparse

    n = len(cells.weights)
    width = int(slots[-1].max()) + 1 if slots else 0
    places = np.concatenate(slots) if slots else np.empty(0, dtype=np.int64)
    rows = np.tile(np.arange(n), len(slots))
    effects = sparse.csr_array((np.ones(len(rows)), (rows, places)), shape=(n, width))
    return sparse.hstack([effects, sparse.csr_array(cells.x)], format="csr")


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Cells in blocks, and blocks by pattern."""

    block: Codes
    inside: Sequence[int]
    local: list[Codes]
    slots: Sequence[Codes]
    width: int
    pattern: Codes
    representative: Codes


def _batches(
    cells: _Cells, block: Codes, inside: Sequence[int], slots: Sequence[Codes], width: int
) -> tuple[Batch, ...]:
    """Blocks by pattern, patterns by size."""
    local = [_places_in(block, cells.codes[term]) for term in inside]
    record = joint_codes(*local, *slots, cells.row_of_x, cells.weights.astype(np.int64))
    pattern, representative = _patterns(block, record)
    layout = _Layout(block, inside, local, slots, width, pattern, representative)
    sizes = np.zeros((len(representative), len(inside)), dtype=np.int64)
    for place, codes in enumerate(local):
        np.maximum.at(sizes[:, place], pattern[block], codes + 1)
    bucket = np.ceil(np.log2(sizes.sum(axis=1))).astype(np.int64)
    members = [
        piece
        for level in np.unique(bucket)
        for piece in _pieces(np.flatnonzero(bucket == level), width << level)
    ]
    numbers = sum(len(m) * (b := int(sizes[m].max(axis=0).sum())) * (2 * b + width) for m in members)
    if numbers > MOST_NUMBERS:
        raise DesignError(
            f"{len(representative):,} different blocks need {numbers:,} numbers, more than the "
            f"{MOST_NUMBERS:,} that are held; leave out an interaction, or name fewer factors"
        )
    return tuple(_batch(cells, layout, m, sizes[m].max(axis=0)) for m in members)


def _pieces(members: Codes, numbers: int) -> list[Codes]:
    """Patterns in pieces whose cross products stay in the cache of a processor."""
    return np.array_split(members, max(1, len(members) * numbers // _PIECE))


def _batch(cells: _Cells, layout: _Layout, members: Codes, sizes: Codes) -> Batch:
    """The blocks of some patterns; `sizes` are the effects that a block has room for, by term."""
    starts = np.cumsum([0, *sizes])
    b, k = int(starts[-1]), len(members)
    index = np.full(len(layout.representative), -1)
    index[members] = np.arange(k)
    of_block = index[layout.pattern]

    shown = np.flatnonzero(
        (of_block[layout.block] >= 0) & (layout.representative[layout.pattern[layout.block]] == layout.block)
    )
    at, weights = of_block[layout.block[shown]], cells.weights[shown]
    places = [codes[shown] + start for codes, start in zip(layout.local, starts[:-1], strict=True)]
    inner, outer = np.zeros((k, b, b)), np.zeros((k, b, layout.width))
    n_effects = layout.width - cells.x.shape[1]
    for one in places:
        for other in places:
            np.add.at(inner, (at, one, other), weights)
        for slot in layout.slots:
            np.add.at(outer, (at, one, slot[shown]), weights)
        np.add.at(outer[:, :, n_effects:], (at, one), weights[:, None] * cells.x[shown])

    blocks = np.flatnonzero(of_block >= 0)
    number = np.full(len(of_block), -1)
    number[blocks] = np.arange(len(blocks))
    mine = np.flatnonzero(number[layout.block] >= 0)
    z = np.zeros((len(blocks), b))
    for codes, start in zip(layout.local, starts[:-1], strict=True):
        np.add.at(z, (number[layout.block[mine]], codes[mine] + start), cells.totals[mine])
    first, second = np.zeros((k, b)), np.zeros((k, b, b))
    order = np.argsort(of_block[blocks], kind="stable")
    bounds = np.searchsorted(of_block[blocks][order], np.arange(k + 1))
    for place in range(k):
        mine_z = z[order[bounds[place] : bounds[place + 1]]]
        first[place] = mine_z.sum(axis=0)
        second[place] = mine_z.T @ mine_z
    copies = np.diff(bounds).astype(np.float64)
    return Batch(np.repeat(layout.inside, sizes), copies, inner, outer, first, second)


def _places_in(block: Codes, codes: Codes) -> Codes:
    """Levels that lie in one block each, numbered from 0 in their block."""
    joint = joint_codes(block, codes)
    start = np.full(int(block.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(start, block, joint)
    found: Codes = joint - start[block]
    return found


def _patterns(block: Codes, record: Codes) -> tuple[Codes, Codes]:
    """The pattern of each block, and one block of each pattern."""
    order = np.lexsort((record, block))
    sizes = np.bincount(block)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    pattern = np.empty(len(sizes), dtype=np.int64)
    representative: list[int] = []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        rows = record[order][starts[members][:, None] + np.arange(size)]
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        pattern[members] = inverse.reshape(-1) + len(representative)
        representative += members[first].tolist()
    return pattern, np.array(representative, dtype=np.int64)
