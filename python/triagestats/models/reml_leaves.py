"""The finest random term of a mixed model, solved level by level before the blocks are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["BatchLeaves", "Leaves", "Weighed", "leaves_of"]


@dataclass(frozen=True, slots=True, eq=False)
class BatchLeaves:
    """Sums over the leaves of the blocks of a batch, by their number of rows.

    With c the sums of the other effects in the block within a leaf, o those of the columns outside blocks,
    and q that of the outcome:

    Attributes
    ----------
    inner, outer
        Sums of c c' and of c o', shapes (N, k, b, b) and (N, k, b, a).
    first, second
        Of the layers Z'y, sum of c q for each number of rows: sums over the blocks with the same cells, and
        of products of layers, shapes (1 + N, k, b) and (1 + N, 1 + N, k, b, b).
    """

    inner: Array
    outer: Array
    first: Array
    second: Array


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """The levels of one random term, each of which lies in one block; a row has one of them.

    Attributes
    ----------
    term
        Which term.
    sizes, numbers
        Rows of a leaf, and how many leaves have so many, shape (N,).
    dense, dense_y, yy
        Sums over all leaves of so many rows of o o', o q and q^2, shapes (N, a, a), (N, a) and (N,).
    """

    term: int
    sizes: Array
    numbers: Array
    dense: Array
    dense_y: Array
    yy: Array


def leaves_of(term: int, codes: Codes, weights: Array, totals: Array, a: Any, sizes: Array) -> Leaves:
    """The leaves of a model.

    Parameters
    ----------
    term, codes
        The term, and its level of each cell.
    weights, totals
        Rows of each cell, and the sum of their outcomes.
    a
        Columns outside blocks of each cell, sparse.
    sizes
        The numbers of rows that leaves have.
    """
    from scipy import sparse

    n_cells, n_leaves = len(codes), int(codes.max()) + 1
    member = sparse.csr_array((np.ones(n_cells), (codes, np.arange(n_cells))), shape=(n_leaves, n_cells))
    rows, outcome = np.asarray(member @ weights), np.asarray(member @ totals)
    outside: Any = (member @ (a * weights[:, None])).tocsr()
    found = [np.flatnonzero(rows == size) for size in sizes]
    return Leaves(
        term=term,
        sizes=sizes,
        numbers=np.array([len(places) for places in found], dtype=np.float64),
        dense=np.array([(outside[places].T @ outside[places]).toarray() for places in found]),
        dense_y=np.array([outside[places].T @ outcome[places] for places in found]),
        yy=np.array([float(outcome[places] @ outcome[places]) for places in found]),
    )


class Weighed:
    """A model with the effects of its leaves taken into the noise: R = I + ratio Z Z'.

    `R^-1 = I - sum_j w_j z_j z_j'` with w = ratio / (1 + ratio n) for a leaf of n rows, so that every sum of
    products is that of the rows less those of the leaves, weighted by w.
    """

    __slots__ = ("dense", "dense_y", "leaves", "log_determinant", "ratio", "spread", "square", "trace", "yy")

    def __init__(self, leaves: Leaves, dense: Array, dense_y: Array, yy: float, ratio: float) -> None:
        self.leaves, self.ratio = leaves, ratio
        weights = ratio / (1 + ratio * leaves.sizes)
        self.dense = dense - np.tensordot(weights, leaves.dense, axes=1)
        self.dense_y = dense_y - weights @ leaves.dense_y
        self.yy = yy - float(weights @ leaves.yy)
        self.log_determinant = float(leaves.numbers @ np.log1p(ratio * leaves.sizes))
        self.spread = 1 / (1 + ratio * leaves.sizes)
        self.trace = float(leaves.numbers @ (leaves.sizes * self.spread))
        self.square = float(self.spread**2 @ leaves.yy)

    def block_sums(self, inner: Array, outer: Array, parts: BatchLeaves) -> tuple[Array, Array, Array, Array]:
        """`inner`, `outer`, `first` and `second` of a batch with R^-1 between."""
        weights = self.ratio * self.spread
        layers = np.append(1.0, -weights)
        return (
            inner - np.tensordot(weights, parts.inner, axes=1),
            outer - np.tensordot(weights, parts.outer, axes=1),
            np.tensordot(layers, parts.first, axes=1),
            np.tensordot(np.outer(layers, layers), parts.second, axes=2),
        )

    def add_block(
        self,
        parts: BatchLeaves,
        copies: Array,
        scaled: Array,
        outer: Array,
        sums: tuple[Array, Array],
        kernel: Array,
        solution: Array,
    ) -> None:
        """Take the part of some blocks into tr(Z'PZ) and |Z'Py|^2 of the leaves.

        Parameters
        ----------
        parts, copies
            The leaves of the batch, and how many blocks have these cells.
        scaled, outer, sums
            The inverse within blocks, `outer`, and `first` and `second`, all with R^-1 between.
        kernel, solution
            Inverse and solution of what is outside blocks.
        """
        squares = self.spread**2
        inner_v = np.tensordot(squares, parts.inner, axes=1)
        outer_v = np.tensordot(squares, parts.outer, axes=1)
        solved = scaled @ outer
        turned = solved @ kernel
        within = scaled + turned @ solved.transpose(0, 2, 1)
        lost = (within * inner_v).sum(axis=(1, 2)) - 2 * (turned * outer_v).sum(axis=(1, 2))
        self.trace -= float(copies @ lost)

        first, second = sums
        # The effects of a block are `scaled` times what the columns outside leave of its outcome.
        fitted = outer @ solution
        layers = np.append(1.0, -self.ratio * self.spread)
        first_v = np.tensordot(squares, parts.first[1:], axes=1)
        crossed = np.tensordot(np.outer(layers, squares), parts.second[:, 1:], axes=2)
        with_outcome = crossed - fitted[:, :, None] * first_v[:, None, :]
        mixed = fitted[:, :, None] * first[:, None, :]
        left = second - mixed - mixed.transpose(0, 2, 1)
        left = left + copies[:, None, None] * fitted[:, :, None] * fitted[:, None, :]
        effects = scaled @ left @ scaled
        mean = np.einsum("kij,kj->ki", scaled, first - copies[:, None] * fitted)
        self.square += float(
            (effects * inner_v).sum()
            - 2 * (scaled * with_outcome).sum()
            + 2 * (mean * (outer_v @ solution)).sum()
        )

    def finish(self, kernel: Array, solution: Array) -> tuple[float, float]:
        """tr(Z'PZ) and |Z'Py|^2 of the leaves, once all blocks are in."""
        squares = self.spread**2
        dense_v = np.tensordot(squares, self.leaves.dense, axes=1)
        dense_y_v = squares @ self.leaves.dense_y
        trace = self.trace - float((kernel * dense_v).sum())
        square = self.square + float(solution @ dense_v @ solution - 2 * dense_y_v @ solution)
        return trace, square
