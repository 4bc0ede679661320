"""What the likelihood of a mixed model needs to know of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.models.reml_leaves import BatchLeaves, Leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["PASS", "Batch", "Sums"]

PASS: Final = 10.0
"""Multiplications that take the time of reading one number."""


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
    leaves
        Of the term that is solved before the blocks, and is not among their effects; None where none is.
    """

    term: Codes
    copies: Array
    inner: Array
    outer: Array
    first: Array
    second: Array
    leaves: BatchLeaves | None = None


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
    leaves
        The term that is solved before the blocks; None where none is.
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
    leaves: Leaves | None

    @property
    def levels(self) -> Array:
        """Levels of each term that blocks have room for, shape (t,)."""
        found = np.bincount(self.dense_term, minlength=self.n_terms).astype(np.float64)
        for batch in self.batches:
            np.add.at(found, batch.term, batch.copies.sum())
        if self.leaves is not None:
            found[self.leaves.term] = self.leaves.numbers.sum()
        return found

    @property
    def work(self) -> float:
        """Multiplications in one likelihood with its slopes, about."""
        width = float(len(self.dense))
        sizes = [(float(len(batch.copies)), float(len(batch.term))) for batch in self.batches]
        layers = PASS * (0 if self.leaves is None else 1 + len(self.leaves.sizes))
        return sum(k * b * (b + width) * (b + 3 * width + layers) for k, b in sizes) + 4 * width**3
