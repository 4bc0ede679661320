"""Rows of a mixed model as sums by block: what its likelihood needs, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.errors import DesignError
from triagestats.models.facets import joint_codes
from triagestats.models.reml_leaves import BatchLeaves, leaves_of
from triagestats.models.reml_sums import PASS, Batch, Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["MOST_DENSE", "MOST_NUMBERS", "sums_of"]

MOST_DENSE: Final = 3_000
"""Most effects outside blocks: their cross products are one dense matrix."""
MOST_NUMBERS: Final = 40_000_000
"""Most numbers in the cross products of all blocks, 320 MB."""

_PIECE: Final = 50_000
_LARGE: Final = 5e6
"""Multiplications in one likelihood above which a term is solved before the blocks, where that saves work."""


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
    leaf = _leaf(cells, block, inside, a.shape[1])
    batches = _batches(cells, block, inside, slots, a.shape[1], leaf) if inside else ()
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
        leaves=None
        if leaf is None
        else leaves_of(leaf, cells.codes[leaf], cells.weights, totals, a, _leaf_sizes(cells, leaf)),
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
    leaf: int | None
    sizes: Array

    @property
    def others(self) -> list[int]:
        """Places of the terms inside blocks that are effects of these."""
        return [place for place, term in enumerate(self.inside) if term != self.leaf]


def _leaf(cells: _Cells, block: Codes, inside: Sequence[int], width: int) -> int | None:
    """The term to solve before the blocks, if that saves much: the one with most levels inside blocks."""
    if len(inside) < 2:
        return None
    leaf = max(inside, key=cells.n_levels)
    n_blocks = int(block.max()) + 1
    size = sum(map(cells.n_levels, inside)) / n_blocks
    left = size - cells.n_levels(leaf) / n_blocks
    layers = (1 + len(_leaf_sizes(cells, leaf))) * left * (left + width)
    before, after = (b * (b + width) * (b + 3 * width) for b in (size, left))
    return leaf if n_blocks * before > _LARGE and after + PASS * layers < before / 2 else None


def _leaf_sizes(cells: _Cells, leaf: int | None) -> Array:
    """The numbers of rows that leaves have; none without leaves."""
    if leaf is None:
        return np.empty(0)
    return np.unique(np.bincount(cells.codes[leaf], weights=cells.weights))


def _batches(
    cells: _Cells,
    block: Codes,
    inside: Sequence[int],
    slots: Sequence[Codes],
    width: int,
    leaf: int | None,
) -> tuple[Batch, ...]:
    """Blocks by pattern, patterns by size."""
    local = [_places_in(block, cells.codes[term]) for term in inside]
    record = joint_codes(*local, *slots, cells.row_of_x, cells.weights.astype(np.int64))
    pattern, representative = _patterns(block, record)
    layout = _Layout(
        block, inside, local, slots, width, pattern, representative, leaf, _leaf_sizes(cells, leaf)
    )
    sizes = np.zeros((len(representative), len(inside)), dtype=np.int64)
    for place, codes in enumerate(local):
        np.maximum.at(sizes[:, place], pattern[block], codes + 1)
    n_layers = 1 + len(layout.sizes)
    of_block = sizes[:, layout.others].sum(axis=1)
    bucket = np.ceil(np.log2(of_block)).astype(np.int64)
    members = [
        piece
        for level in np.unique(bucket)
        for piece in _pieces(np.flatnonzero(bucket == level), n_layers * width << level)
    ]
    widths = [int(sizes[m][:, layout.others].max(axis=0).sum()) for m in members]
    numbers = sum(
        len(m) * n_layers * b * ((1 + n_layers) * b + width) for m, b in zip(members, widths, strict=True)
    )
    if numbers > MOST_NUMBERS:
        raise DesignError(
            f"{len(representative):,} different blocks need {numbers:,} numbers, more than the "
            f"{MOST_NUMBERS:,} that are held; leave out an interaction, or name fewer factors"
        )
    return tuple(_batch(cells, layout, m, sizes[m].max(axis=0)) for m in members)


def _pieces(members: Codes, numbers: int) -> list[Codes]:
    """Patterns in pieces whose cross products stay in the cache of a processor."""
    return np.array_split(members, min(len(members), max(1, len(members) * numbers // _PIECE)))


def _batch(cells: _Cells, layout: _Layout, members: Codes, sizes: Codes) -> Batch:
    """The blocks of some patterns; `sizes` are the effects that a block has room for, by term."""
    others = layout.others
    starts = np.cumsum([0, *sizes[others]])
    b, k = int(starts[-1]), len(members)
    index = np.full(len(layout.representative), -1)
    index[members] = np.arange(k)
    of_block = index[layout.pattern]

    shown = np.flatnonzero(
        (of_block[layout.block] >= 0) & (layout.representative[layout.pattern[layout.block]] == layout.block)
    )
    at, weights = of_block[layout.block[shown]], cells.weights[shown]
    places = [layout.local[one][shown] + start for one, start in zip(others, starts[:-1], strict=True)]
    inner, outer = np.zeros((k, b, b)), np.zeros((k, b, layout.width))
    for one in places:
        for other in places:
            np.add.at(inner, (at, one, other), weights)
        _add_outer(outer, (at, one), cells, layout, shown)

    blocks = np.flatnonzero(of_block >= 0)
    number = np.full(len(of_block), -1)
    number[blocks] = np.arange(len(blocks))
    mine = np.flatnonzero(number[layout.block] >= 0)
    row = number[layout.block[mine]]
    z = np.zeros((1, len(blocks), b))
    for one, start in zip(others, starts[:-1], strict=True):
        np.add.at(z[0], (row, layout.local[one][mine] + start), cells.totals[mine])
    order = np.argsort(of_block[blocks], kind="stable")
    bounds = np.searchsorted(of_block[blocks][order], np.arange(k + 1))
    leaves = None
    if layout.leaf is not None:
        leaf = layout.inside.index(layout.leaf)
        shape = (k, int(sizes[leaf]))
        leaf_of = at, layout.local[leaf][shown]
        of_leaf, outside = np.zeros((*shape, b)), np.zeros((*shape, layout.width))
        for one in places:
            np.add.at(of_leaf, (*leaf_of, one), weights)
        _add_outer(outside, leaf_of, cells, layout, shown)
        rows = np.zeros(shape)
        np.add.at(rows, leaf_of, weights)
        outcome = np.zeros((len(blocks), shape[1]))
        np.add.at(outcome, (row, layout.local[leaf][mine]), cells.totals[mine])
        layers = [rows == size for size in layout.sizes]
        parts = [np.where(layer[:, :, None], of_leaf, 0.0).transpose(0, 2, 1) for layer in layers]
        z = np.concatenate(
            [z, *((part[of_block[blocks]] @ outcome[:, :, None])[None, :, :, 0] for part in parts)]
        )
        leaves = BatchLeaves(
            np.array([part @ of_leaf for part in parts]),
            np.array([part @ outside for part in parts]),
            *_summed(z, order, bounds),
        )
    first, second = _summed(z[:1], order, bounds)
    copies = np.diff(bounds).astype(np.float64)
    terms = np.repeat([layout.inside[place] for place in others], sizes[others])
    return Batch(terms, copies, inner, outer, first[0], second[0, 0], leaves)


def _add_outer(outer: Array, at: tuple[Codes, Codes], cells: _Cells, layout: _Layout, shown: Codes) -> None:
    """Add the columns outside blocks of some cells to the rows of a matrix, in place."""
    weights = cells.weights[shown]
    for slot in layout.slots:
        np.add.at(outer, (*at, slot[shown]), weights)
    np.add.at(outer[:, :, layout.width - cells.x.shape[1] :], at, weights[:, None] * cells.x[shown])


def _summed(z: Array, order: Codes, bounds: Codes) -> tuple[Array, Array]:
    """Sums by pattern of layers of Z'y (l, blocks, b), and of products of two layers."""
    n_layers, _, b = z.shape
    k = len(bounds) - 1
    first, second = np.zeros((n_layers, k, b)), np.zeros((n_layers, n_layers, k, b, b))
    for place in range(k):
        mine = z[:, order[bounds[place] : bounds[place + 1]]]
        first[:, place] = mine.sum(axis=1)
        second[:, :, place] = mine[:, None].transpose(0, 1, 3, 2) @ mine[None]
    return first, second


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
