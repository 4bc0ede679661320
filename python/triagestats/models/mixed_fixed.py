"""Fixed effects of a mixed model: errors, degrees of freedom, means of levels, contrasts, F tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.errors import DesignError
from triagestats.models.facets import joint_codes
from triagestats.models.random_terms import VarianceDesign
from triagestats.models.reml import MixedFit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["MOST_CELLS", "DfMethod", "FixedEffects", "KenwardRoger", "fixed_effects", "kenward_roger"]

DfMethod = Literal["satterthwaite", "kenward-roger", "normal"]
MOST_CELLS: Final = 2_500
"""Most combinations of levels for Kenward and Roger's matrices, which are dense."""


@dataclass(frozen=True, slots=True, eq=False)
class KenwardRoger:
    """What Kenward and Roger's degrees of freedom need.

    Attributes
    ----------
    pieces
        P_r = -X'V^-1 V_r V^-1 X by variance, shape (t + 1, p, p).
    weights
        Twice the inverse of their expected information, shape (t + 1, t + 1).
    adjusted
        Covariance of the coefficients with the correction for few levels, shape (p, p).
    """

    pieces: Array
    weights: Array
    adjusted: Array


@dataclass(frozen=True, slots=True, eq=False)
class FixedEffects:
    """Coefficients with what their tests need, in the units of the outcome.

    Attributes
    ----------
    names
        Of the coefficients, p.
    estimate
        Shape (p,).
    covariance
        (X'V^-1 X)^-1, shape (p, p).
    covariance_slopes
        Its derivatives in the logarithms of the variances that are not 0, shape (f, p, p).
    spread
        Covariance of these logarithms, shape (f, f).
    correction
        For Kenward and Roger's errors; else None.
    df_method
        How degrees of freedom are found.
    """

    names: tuple[str, ...]
    estimate: Array
    covariance: Array
    covariance_slopes: Array
    spread: Array
    correction: KenwardRoger | None
    df_method: DfMethod

    @property
    def reported(self) -> Array:
        """The covariance that errors are taken from, shape (p, p)."""
        return self.covariance if self.correction is None else self.correction.adjusted

    def combination(self, weights: Array) -> tuple[float, float, float]:
        """Estimate, standard error and degrees of freedom of a weighted sum of coefficients."""
        estimate = float(weights @ self.estimate)
        variance = float(weights @ self.reported @ weights)
        return estimate, float(np.sqrt(variance)), self._df(weights)

    def _df(self, weights: Array) -> float:
        if self.df_method == "normal":
            return np.inf
        if self.correction is not None:
            return self._scaled_f(self.correction, weights[None])[1]
        slopes = np.einsum("i,fij,j->f", weights, self.covariance_slopes, weights)
        spread = float(slopes @ self.spread @ slopes)
        variance = float(weights @ self.covariance @ weights)
        return 2 * variance**2 / spread if spread > 0 else np.inf

    def joint(self, weights: Array) -> tuple[float, int, float]:
        """F, its numerator and its denominator degrees of freedom for several sums being 0 at once."""
        rank = int(np.linalg.matrix_rank(weights))
        basis = np.linalg.svd(weights, full_matrices=False)[2][:rank]
        estimate = basis @ self.estimate
        spread = basis @ self.reported @ basis.T
        f = float(estimate @ np.linalg.solve(spread, estimate)) / rank
        if self.df_method == "normal":
            return f, rank, np.inf
        if self.correction is not None:
            scale, df = self._scaled_f(self.correction, basis)
            return scale * f, rank, df
        return f, rank, _joint_df([self._df(v @ basis) for v in np.linalg.eigh(spread)[1].T])

    def _scaled_f(self, correction: KenwardRoger, weights: Array) -> tuple[float, float]:
        """Kenward and Roger's factor of F and its denominator degrees of freedom."""
        phi, q = self.covariance, len(weights)
        theta = weights.T @ np.linalg.solve(weights @ phi @ weights.T, weights)
        turned = [theta @ phi @ piece @ phi for piece in correction.pieces]
        w = correction.weights
        traces = np.array([np.trace(t) for t in turned])
        a1 = float(traces @ w @ traces)
        a2 = float(sum(w[r, s] * np.trace(a @ b) for r, a in enumerate(turned) for s, b in enumerate(turned)))
        if a2 <= 0:
            return 1.0, np.inf
        b = (a1 + 6 * a2) / (2 * q)
        g = ((q + 1) * a1 - (q + 4) * a2) / ((q + 2) * a2)
        below = 3 * q + 2 * (1 - g)
        c1, c2, c3 = g / below, (q - g) / below, (q + 2 - g) / below
        mean = 1 / (1 - a2 / q)
        variance = (2 / q) * (1 + c1 * b) / ((1 - c2 * b) ** 2 * (1 - c3 * b))
        rho = variance / (2 * mean**2)
        df = 4 + (q + 2) / (q * rho - 1)
        return df / (mean * (df - 2)), df


def _joint_df(dfs: Sequence[float]) -> float:
    """Denominator degrees of freedom of F from those of its independent parts (Fai and Cornelius)."""
    if np.ptp(dfs) < 1e-8 or np.isinf(dfs).all():
        return float(np.mean(dfs))
    if min(dfs) <= 2:
        return 2.0
    mean = sum(1.0 if np.isinf(df) else df / (df - 2) for df in dfs)
    return 2 * mean / (mean - len(dfs))


def fixed_effects(design: VarianceDesign, fit: MixedFit, df_method: DfMethod) -> FixedEffects:
    """The fixed effects of a fit in the units of the outcome.

    Raises
    ------
    DesignError
        If Kenward and Roger's correction is asked for and the table is too large for it.
    """
    sums = fit.likelihood.sums
    parts = fit.likelihood.at(fit.variances)[2]
    back = np.diag(1 / sums.stretch)
    back[0] = -sums.shift / sums.stretch
    back[0, 0] = 1.0
    estimate = back @ parts.fixed * sums.scale
    estimate[0] += sums.centre
    units = sums.scale**2
    covariance = units * (back @ (parts.fixed_covariance * fit.variances[-1]) @ back.T)
    values, vectors = np.linalg.eigh(fit.curvature)
    positive = values > 1e-10 * max(1.0, float(values.max()))
    spread = 2 * (vectors[:, positive] / values[positive]) @ vectors[:, positive].T
    correction = None
    if df_method == "kenward-roger":
        correction = kenward_roger(design, fit.variances * units)
    return FixedEffects(
        names=design.fixed.names,
        estimate=estimate,
        covariance=covariance,
        covariance_slopes=units * (back @ fit.covariance_slopes @ back.T),
        spread=spread,
        correction=correction,
        df_method=df_method,
    )


def kenward_roger(design: VarianceDesign, variances: Array) -> KenwardRoger:
    """Kenward and Roger's matrices for given variances, the residual last.

    Raises
    ------
    DesignError
        If there are more than `MOST_CELLS` combinations of levels.
    """
    x = design.fixed.x
    row_of_x = np.unique(x, axis=0, return_inverse=True)[1].reshape(-1)
    cell = joint_codes(*(effect.codes for effect in design.effects), row_of_x)
    first = np.unique(cell, return_index=True)[1]
    counts = np.bincount(cell).astype(np.float64)
    if len(first) > MOST_CELLS:
        raise DesignError(
            f"Kenward and Roger's correction is computed for at most {MOST_CELLS:,} combinations of levels, "
            f"and there are {len(first):,}; use df_method='satterthwaite', which agrees where levels are many"
        )
    x = x[first]
    parts = [np.equal.outer(e.codes[first], e.codes[first]).astype(np.float64) for e in design.effects]
    parts.append(np.diag(1 / counts))
    precision = np.linalg.inv(sum(v * part for v, part in zip(variances, parts, strict=True)))
    covariance = np.linalg.inv(x.T @ precision @ x)
    turned = [part @ precision for part in parts]
    moved = [turn @ x for turn in turned]
    pieces = np.array([-(m.T @ precision @ x) for m in moved])
    n, p = len(parts), x.shape[1]
    squares = np.empty((n, n, p, p))
    information = np.empty((n, n))
    for r in range(n):
        for s in range(n):
            squares[r, s] = moved[r].T @ precision @ moved[s]
            information[r, s] = (
                float((turned[r] * turned[s].T).sum())
                - 2 * float(np.trace(covariance @ squares[r, s]))
                + float(np.trace(covariance @ pieces[r] @ covariance @ pieces[s]))
            )
    information[-1, -1] += (counts.sum() - len(first)) / variances[-1] ** 2
    weights = 2 * np.linalg.pinv(information, hermitian=True).astype(np.float64)
    correction = np.zeros((p, p))
    for r in range(n):
        for s in range(n):
            correction += weights[r, s] * (squares[r, s] - pieces[r] @ covariance @ pieces[s])
    adjusted = (covariance + 2 * covariance @ correction @ covariance).astype(np.float64)
    return KenwardRoger(pieces, weights, adjusted)
