"""Bayesian logistic mixed models by the native sampler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.native_draws import unknowns
from triagestats.models.mixed.native_plan import NativePlan, native_plan
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.sweeps import nested_in
from triagestats.resample import thread_count, valid_seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["covers", "sample_native"]

_MAX_DEPTH: Final = 10
"""Doublings of a trajectory at most."""
_BYTES: Final = 1 << 28
"""Memory that the effects of a part, or of all that are not integrated out, may take; beyond it only the
effects of every k-th draw are kept."""


def covers(matrix: MixedMatrix) -> str | None:
    """Why the native sampler cannot take a model, or None if it can.

    It takes logistic models with random intercepts, of any number of crossed and nested groupings.

    Parameters
    ----------
    matrix
        The model.
    """
    if matrix.family != "binomial":
        return f"it samples models of family 'binomial', not {matrix.family!r}"
    if not matrix.random:
        return "the model has no random effects"
    if matrix.x.shape[1] == 0:
        return "the model has no fixed columns"
    for number, part in enumerate(matrix.random):
        if not part.intercept_only:
            return f"it samples random intercepts, and {part.name} has slopes"
        if part.n_levels < 2:
            return f"{part.name} has one level"
        for other in matrix.random[:number]:
            if other.n_levels == part.n_levels and nested_in(part, other) is not None:
                return f"{other.name} and {part.name} have the same levels"
    return None


def sample_native(
    matrix: MixedMatrix,
    priors: Priors,
    *,
    chains: int = 4,
    draws: int = 1_000,
    tune: int = 1_000,
    seed: int,
    n_threads: int | None = None,
    target_accept: float = 0.8,
    progress: Callable[[int], object] | None = None,
    keep_on_interrupt: bool = False,
) -> Draws:
    r"""Draw from the posterior of a logistic mixed model with random intercepts.

    The model is `logit P(y = 1) = x'b + u_1[g_1] + ... + u_T[g_T]` with independent `u_t ~ N(0, s_t^2)`,
    `s_t` half-normal, the coefficients normal, and the intercept normal where the other columns are at their
    mean over the rows.

    Parameters
    ----------
    matrix
        The model; `covers` tells which are possible.
    priors
        Scales of the priors.
    chains, draws, tune
        Number of chains, of draws kept of each, and of draws before them that tune the sampler.
    seed
        Seed; each chain has streams of its own, and the draws are the same for any number of threads.
    n_threads
        Chains that run at a time; all processors by default.
    target_accept
        Acceptance rate that the length of steps is tuned to.
    progress
        Called a few times a second with the number of steps that all chains have done, of
        `chains * (tune + draws)`; what it raises stops the sampler.
    keep_on_interrupt
        At Ctrl-C, return what all chains have drawn so far, if they have drawn anything, instead of raising.

    Returns
    -------
    Draws
        Where the effects of the parts would take more than 256 MiB, only those of every k-th draw are kept;
        `effects_every` tells.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C, unless draws are kept.
    ValueError
        When a chain cannot go on.

    Notes
    -----
    The No-U-Turn sampler of the crate `nuts-rs`, with a diagonal metric. Mean effects are sampled
    together with the coefficients, means of nested effects together with the effects they are nested in,
    and both sums are split afterwards by exact draws. Other effects are sampled as deviations from an
    approximation to their distribution given their standard deviation, in units of its width. Standard
    deviations are sampled with either sign, and their absolute value is returned.

    A part whose levels are nested in those of another, with few rows each, is integrated out by adaptive
    Gauss-Hermite quadrature of 9 nodes or more, and its effects are drawn given the rest by rejection.

    References
    ----------
    Hoffman and Gelman (2014), "The No-U-Turn sampler: adaptively setting path lengths in Hamiltonian Monte
    Carlo", Journal of Machine Learning Research 15:1593-1623.
    Papaspiliopoulos, Roberts and Sköld (2007), "A general framework for the parametrization of hierarchical
    models", Statistical Science 22(1):59-73.
    """
    start = time.perf_counter()
    plan = native_plan(matrix, priors)
    seed = valid_seed(seed)
    every, every_integrated = _kept(matrix, plan, chains * draws)
    raw = plan.posterior.sample(
        plan.starts(chains, seed),
        n_tune=tune,
        n_draws=draws,
        seed=seed,
        target_accept=target_accept,
        max_depth=_MAX_DEPTH,
        every=every,
        every_integrated=every_integrated,
        n_threads=thread_count(n_threads),
        watch=progress,
        keep=keep_on_interrupt,
    )
    if not raw["heads"].shape[1]:
        raise KeyboardInterrupt
    return _draws(matrix, plan, raw, every, every_integrated, seed, start, tune, draws)


def _kept(matrix: MixedMatrix, plan: NativePlan, n_draws: int) -> tuple[int, int]:
    """Of every how many draws the effects are kept: those of all parts but the last, and of that."""
    sizes = [matrix.random[number].n_levels for number in plan.order]
    last = sizes.pop() if plan.integrated else 0
    first, second = (max(1, -(-8 * size * n_draws // _BYTES)) for size in (sum(sizes), last))
    return first, second


def _draws(
    matrix: MixedMatrix,
    plan: NativePlan,
    raw: dict[str, Any],
    every: int,
    every_integrated: int,
    seed: int,
    start: float,
    tune: int,
    asked: int,
) -> Draws:
    chains = [
        unknowns(plan, heads, tails, every=every, seed=seed, chain=chain)
        for chain, (heads, tails) in enumerate(zip(raw["heads"], raw["tails"], strict=True))
    ]
    sds = np.stack([chain.sds for chain in chains])
    n_parts = len(matrix.random)
    effects: list[Array] = [np.empty(0)] * n_parts
    kept = [every] * n_parts
    for place, number in enumerate(plan.order[: len(plan.sweeps)]):
        effects[number] = np.stack([chain.effects[place] for chain in chains])[..., None]
    if plan.integrated:
        effects[plan.order[-1]] = raw["integrated"][..., None]
        kept[plan.order[-1]] = every_integrated
    n_chains, n_draws, _ = sds.shape
    names = ("diverging", "energy", "tree_depth", "n_steps", "acceptance_rate", "step_size", "lp")
    return Draws(
        coefficients=np.stack([chain.coefficients for chain in chains]),
        thresholds=np.empty((n_chains, n_draws, 0)),
        factors=tuple(sds[:, :, number, None, None] for number in range(n_parts)),
        sigma=None,
        effects=tuple(effects),
        statistics={name: raw[name] for name in names},
        sampler="native",
        seconds=time.perf_counter() - start,
        n_tune=tune,
        effects_every=tuple(kept),
        interrupted=n_draws < asked,
    )
