"""The likelihood of a mixed model, its slopes, and the fixed effects, for given variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.models.reml_leaves import Weighed
from triagestats.models.reml_sums import Batch, Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Evaluation", "Likelihood", "evaluate"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Parts of the likelihood at variances that are given as multiples of the residual variance.

    With `V = I + sum_t ratio_t Z_t Z_t'` and `P = V^-1 - V^-1 X (X'V^-1 X)^-1 X'V^-1`.

    Attributes
    ----------
    log_v, log_x
        Log determinants of V and of X'V^-1 X.
    quadratic
        y'Py.
    traces
        tr(Z_t' P Z_t) by term, or tr(Z_t' V^-1 Z_t) without `reml`.
    squares
        |Z_t' P y|^2 by term.
    fixed, fixed_covariance
        Coefficients of the standardised columns, and (X'V^-1 X)^-1.
    """

    log_v: float
    log_x: float
    quadratic: float
    traces: Array
    squares: Array
    fixed: Array
    fixed_covariance: Array


def evaluate(sums: Sums, ratios: Array, *, reml: bool) -> Evaluation:
    """The parts of the likelihood at some ratios, each at least 0.

    Notes
    -----
    Leaves, if there are some, are taken into the noise. The blocks are eliminated next, each by a
    Cholesky factor of I + G^1/2 Z'Z G^1/2 with G the ratios of its effects; what is left is one dense system
    of the other effects and the fixed columns.
    """
    roots = np.sqrt(ratios)
    leaves = sums.leaves
    weighed = None
    a, a_y, quadratic, log_v = sums.dense.copy(), sums.dense_y.copy(), sums.yy, 0.0
    if leaves is not None:
        weighed = Weighed(leaves, sums.dense, sums.dense_y, sums.yy, float(ratios[leaves.term]))
        a, a_y, quadratic = weighed.dense, weighed.dense_y, weighed.yy
        log_v = weighed.log_determinant
    solved = []
    for batch in sums.batches:
        block = _Eliminated(batch, roots, weighed)
        solved.append(block)
        log_v += block.log_determinant
        a -= block.outer_drop
        a_y -= block.outer_y_drop
        quadratic -= block.quadratic_drop
    d = len(sums.dense_term)
    root = roots[sums.dense_term]
    system = np.eye(d) + root[:, None] * a[:d, :d] * root
    log_v += 2 * float(np.log(np.diag(np.linalg.cholesky(system))).sum())
    core = root[:, None] * np.linalg.inv(system) * root
    to_fixed = core @ a[:d, d:]
    information = a[d:, d:] - a[d:, :d] @ to_fixed
    information = (information + information.T) / 2
    log_x = 2 * float(np.log(np.diag(np.linalg.cholesky(information))).sum())
    covariance = np.linalg.inv(information)
    kernel = np.empty_like(a)
    kernel[:d, :d] = core + to_fixed @ covariance @ to_fixed.T
    kernel[:d, d:] = -to_fixed @ covariance
    kernel[d:, :d] = kernel[:d, d:].T
    kernel[d:, d:] = covariance
    solution = kernel @ a_y

    traced = kernel
    if not reml:
        traced = np.zeros_like(a)
        traced[:d, :d] = core
    traces, squares = np.zeros(sums.n_terms), np.zeros(sums.n_terms)
    own = np.diag(a) - np.einsum("ij,ji->i", a @ traced, a)
    np.add.at(traces, sums.dense_term, own[:d])
    np.add.at(squares, sums.dense_term, ((a_y - a @ solution)[:d]) ** 2)
    for block in solved:
        np.add.at(traces, block.term, block.traces(traced))
        np.add.at(squares, block.term, block.squares(solution))
        if weighed is not None and block.leaves is not None:
            weighed.add_block(
                block.leaves,
                block.copies,
                block.scaled,
                block.before,
                (block.first, block.second),
                traced,
                solution,
            )
    if leaves is not None and weighed is not None:
        traces[leaves.term], squares[leaves.term] = weighed.finish(traced, solution)
    return Evaluation(
        log_v=log_v,
        log_x=log_x,
        quadratic=quadratic - float(a_y @ solution),
        traces=traces,
        squares=squares,
        fixed=solution[d:],
        fixed_covariance=covariance,
    )


class _Eliminated:
    """The blocks of a batch, solved."""

    __slots__ = (
        "before",
        "copies",
        "first",
        "inner",
        "leaves",
        "log_determinant",
        "outer",
        "outer_drop",
        "outer_y_drop",
        "project",
        "quadratic_drop",
        "scaled",
        "second",
        "term",
    )

    def __init__(self, batch: Batch, roots: Array, weighed: Weighed | None) -> None:
        self.term, self.copies, self.leaves = batch.term, batch.copies, batch.leaves
        inner, outer, first, second = batch.inner, batch.outer, batch.first, batch.second
        if weighed is not None and batch.leaves is not None:
            inner, outer, first, second = weighed.block_sums(inner, outer, batch.leaves)
        self.inner, self.before, self.first, self.second = inner, outer, first, second
        root = roots[batch.term]
        b = len(root)
        system = np.eye(b) + root[:, None] * inner * root
        factor = np.linalg.cholesky(system)
        diagonal = np.diagonal(factor, axis1=1, axis2=2)
        self.log_determinant = 2 * float(batch.copies @ np.log(diagonal).sum(axis=1))
        inverse = np.linalg.inv(system)
        self.scaled = root[:, None] * inverse * root
        solved = self.scaled @ outer
        # Block by block: one product of all blocks would start threads, which wait where cores are busy.
        weighted = (batch.copies[:, None, None] * outer).transpose(0, 2, 1)
        self.outer_drop = (weighted @ solved).sum(axis=0)
        self.outer_y_drop = np.einsum("kba,kb->a", solved, first)
        self.quadratic_drop = float(np.einsum("kij,kij->", self.scaled, second))
        self.project = np.eye(b) - inner @ self.scaled
        self.outer = self.project @ outer

    def traces(self, kernel: Array) -> Array:
        """tr(Z'PZ) by effect, summed over the blocks."""
        own = np.einsum("kij,kji->ki", self.project, self.inner)
        rest = ((self.outer @ kernel) * self.outer).sum(axis=2)
        found: Array = self.copies @ (own - rest)
        return found

    def squares(self, solution: Array) -> Array:
        """(Z'Py)^2 by effect, summed over the blocks."""
        fitted = self.outer @ solution
        own = np.einsum("kij,kij->ki", self.project @ self.second, self.project)
        mixed = np.einsum("kij,kj->ki", self.project, self.first)
        found: Array = (own - 2 * mixed * fitted + self.copies[:, None] * fitted**2).sum(axis=0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """-2 log likelihood, restricted or full, of a standardised mixed model.

    Attributes
    ----------
    sums
        The model.
    reml
        Whether it is the restricted one.
    """

    sums: Sums
    reml: bool

    @property
    def df(self) -> int:
        """Rows behind the residual variance."""
        return self.sums.n_rows - (self.sums.n_fixed if self.reml else 0)

    def profiled(self, ratios: Array) -> tuple[float, Array, float]:
        """-2 log likelihood over the residual variance, its slopes in the ratios, and that variance."""
        found = evaluate(self.sums, ratios, reml=self.reml)
        residual = found.quadratic / self.df
        value = (
            found.log_v + (found.log_x if self.reml else 0.0) + self.df * (1 + np.log(2 * np.pi * residual))
        )
        return float(value), found.traces - found.squares / residual, residual

    def at(self, variances: Array) -> tuple[float, Array, Evaluation]:
        """-2 log likelihood, its slopes in the variances, and its parts; the residual variance is last."""
        residual = float(variances[-1])
        ratios = variances[:-1] / residual
        found = evaluate(self.sums, ratios, reml=self.reml)
        value = (
            found.log_v
            + (found.log_x if self.reml else 0.0)
            + self.df * np.log(2 * np.pi * residual)
            + found.quadratic / residual
        )
        slopes = np.empty(len(variances))
        slopes[:-1] = found.traces / residual - found.squares / residual**2
        trace = (self.df - ratios @ found.traces) / residual
        square = (found.quadratic - ratios @ found.squares) / residual**2
        slopes[-1] = trace - square
        return float(value), slopes, found
