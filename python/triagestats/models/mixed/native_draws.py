"""From the positions of the native sampler to draws of what the model is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.models.mixed.native_plan import NativePlan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Unknowns", "unknowns"]

_STREAM: Final = 1
"""Stream of a chain for these draws; its start has stream 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Unknowns:
    """Draws of one chain.

    Attributes
    ----------
    coefficients
        Of the columns as they were, shape (draws, p).
    sds
        Standard deviations of the parts, shape (draws, T), in the order of the model.
    effects
        Effects of the parts that are not integrated out, in the order of the sampler, shape (kept draws,
        levels).
    """

    coefficients: Array
    sds: Array
    effects: tuple[Array, ...]


def unknowns(plan: NativePlan, heads: Array, tails: Array, *, every: int, seed: int, chain: int) -> Unknowns:
    """Split the sums that were sampled into their summands, by draws from the normal distributions of these.

    Given a sum of independent normal vectors, draws of them are unconditional draws, each corrected by its
    share of what their sum is off.

    Parameters
    ----------
    plan
        The coordinates.
    heads
        Coordinates of the coefficients and standard deviations, shape (draws, p + T).
    tails
        Coordinates of the effects, of every `every`-th draw.
    every, seed, chain
        Which draws `tails` has; what the random draws depend on.
    """
    rng = np.random.Generator(np.random.PCG64([seed, chain, _STREAM]))
    p = plan.centre.size
    s = heads[:, p:]
    sums = plan.centre + heads[:, :p] @ plan.basis.T
    coefficients, along = _split_fixed(plan, sums, s, rng)
    kept = s[::every]
    effects = [alpha[::every] @ sweep.levels.T for alpha, sweep in zip(along, plan.sweeps, strict=True)]
    first = 0
    for part, sweep in enumerate(plan.sweeps):
        last = first + sweep.free.size
        own = _placed(plan, part, kept, tails[:, first:last])
        _split_levels(plan, part, own, kept, effects, rng)
        first = last
    sds = np.empty_like(s)
    sds[:, list(plan.order)] = np.abs(s)
    return Unknowns(plan.centring.original(coefficients), sds, tuple(effects))


def _split_fixed(
    plan: NativePlan, sums: Array, s: Array, rng: np.random.Generator
) -> tuple[Array, list[Array]]:
    """Coefficients, and for each part the effects along the directions that the fixed columns span."""
    n_draws, p = sums.shape
    variances = plan.centring.variances
    b = rng.standard_normal((n_draws, p)) * variances**0.5
    total = np.broadcast_to(np.diag(variances), (n_draws, p, p)).copy()
    off = sums - b
    along = []
    for part, sweep in enumerate(plan.sweeps):
        sd = s[:, part, None]
        alpha = rng.standard_normal((n_draws, sweep.directions.shape[1])) * np.abs(sd)
        off -= alpha @ sweep.directions.T
        total += (sd**2)[:, :, None] * (sweep.directions @ sweep.directions.T)
        along.append(alpha)
    share = np.linalg.solve(total, off[:, :, None])[:, :, 0]
    for part, sweep in enumerate(plan.sweeps):
        along[part] += s[:, part, None] ** 2 * (share @ sweep.directions)
    return b + variances * share, along


def _variance(plan: NativePlan, part: int, s: Array) -> Array:
    out: Array = sum((s[:, below.part] ** 2 / below.size for below in plan.lower[part]), np.zeros(s.shape[0]))
    return out


def _placed(plan: NativePlan, part: int, s: Array, z: Array) -> Array:
    """Effects of the levels from the coordinates of a part, shape (draws, levels)."""
    sweep = plan.sweeps[part]
    alone = len(plan.lower[part]) == 1
    sigma = (s[:, part] if alone else np.sqrt(_variance(plan, part, s)))[:, None]
    spread = 1 + plan.information[part] * sigma**2
    e = np.zeros((s.shape[0], sweep.levels.shape[0]))
    e[:, sweep.free] = sigma * (sigma * plan.pulls[part] / spread + z / np.sqrt(spread))
    return sweep.reflections.apply(e)


def _split_levels(
    plan: NativePlan, part: int, sums: Array, s: Array, effects: list[Array], rng: np.random.Generator
) -> None:
    """Divide effects between the part and those that are nested in it, and add them to `effects`."""
    lower, sweep = plan.lower[part], plan.sweeps[part]
    if len(lower) == 1:
        effects[part] += sums
        return
    basis, free = sweep.reflections, sweep.free
    variance = _variance(plan, part, s)[:, None]
    pieces, off = [], sums.copy()
    for below in lower:
        e = np.zeros_like(sums)
        e[:, free] = rng.standard_normal((s.shape[0], free.size))
        piece = basis.apply(e) * (np.abs(s[:, below.part]) / below.size**0.5)[:, None]
        off -= piece
        pieces.append(piece)
    for below, piece in zip(lower, pieces, strict=True):
        share = (s[:, below.part] ** 2 / below.size)[:, None] / variance
        effects[below.part] += (piece + share * off)[:, below.codes]
