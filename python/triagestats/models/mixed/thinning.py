"""Fewer draws: those that have all effects, and every k-th of many."""

from __future__ import annotations

import math
from dataclasses import replace

from triagestats.models.mixed.draws import Draws

__all__ = ["aligned", "thinned"]


def aligned(draws: Draws) -> Draws:
    """The draws whose effects were kept, of every random part."""
    if max(draws.effects_every, default=1) == 1:
        return draws
    every = math.lcm(*draws.effects_every)
    kept = _every(draws, every)
    effects = tuple(
        values[:, :: every // own] for values, own in zip(draws.effects, draws.effects_every, strict=True)
    )
    return replace(kept, effects=effects, effects_every=())


def thinned(draws: Draws, most: int) -> Draws:
    """Of draws with all effects every k-th of each chain, so that all chains have `most` or fewer."""
    whole = aligned(draws)
    every = -(-whole.n_chains * whole.n_draws // most)
    if every <= 1:
        return whole
    return replace(_every(whole, every), effects=tuple(effects[:, ::every] for effects in whole.effects))


def _every(draws: Draws, every: int) -> Draws:
    """Every k-th draw of all but the effects."""
    return replace(
        draws,
        coefficients=draws.coefficients[:, ::every],
        thresholds=draws.thresholds[:, ::every],
        factors=tuple(factor[:, ::every] for factor in draws.factors),
        sigma=None if draws.sigma is None else draws.sigma[:, ::every],
        statistics={name: values[:, ::every] for name, values in draws.statistics.items()},
    )
