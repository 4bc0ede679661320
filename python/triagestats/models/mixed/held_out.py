"""Log likelihood of whole levels, such as scenarios, with their effects integrated out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from triagestats.errors import ArgumentError
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.likelihood import log_density, predictor
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.naming import grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["level_log_likelihood", "nested_in"]

_NODES: Final = {1: 11, 2: 7, 3: 5}
"""Nodes of the quadrature along each effect of a level, by number of effects."""
_OUTER_NODES: Final = 21
_STEPS: Final = 5
_NEXT_STEPS: Final = 3
_LONGEST: Final = 3.0
"""Of a step towards the mode, in standard deviations of the prior."""
_AT_ONCE: Final = 1 << 21


def level_log_likelihood(matrix: MixedMatrix, draws: Draws, name: str) -> Array:
    r"""Log likelihood of the rows of each level of a random part, its effects integrated out.

    .. math:: \log \int \prod_{i \in g} p(y_i \mid \eta_i + z_i'u) \, N(u; 0, \Sigma) \, du

    at each draw, the effects of the other parts as drawn: how well the level would be predicted as a new
    one. The integral is by adaptive Gauss-Hermite quadrature around its mode.

    Returns
    -------
    ndarray
        Shape (levels, chains * draws); levels without rows have 0.

    Raises
    ------
    ArgumentError
        If random parts are nested in the levels in a way that is not integrated, or a level has more than
        three effects.
    """
    own = tuple(grouped(matrix, name))
    unit = matrix.random[own[0]]
    inner = tuple(place for place in nested_in(matrix, own[0]) if place not in own)
    if inner:
        return _nested(matrix, draws, own, inner)
    q = sum(matrix.random[place].width for place in own)
    if q not in _NODES:
        raise ArgumentError(f"`unit` {name!r} has {q} effects a level; up to {max(_NODES)} can be integrated")
    order = np.argsort(unit.codes, kind="stable")
    codes = unit.codes[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    seen = codes[starts]
    within = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(codes)]))
    z = np.concatenate([matrix.random[place].z for place in own], axis=1)[order]
    factor, whitened = _joint(draws, own, seen)
    n_draws = factor.shape[0]
    found = np.zeros((unit.n_levels, n_draws))
    step = max(1, _AT_ONCE // (len(order) * q))
    for start in range(0, n_draws, step):
        chosen = slice(start, start + step)
        part_of = _some(draws, chosen)
        eta = predictor(matrix, part_of, order, leaving_out=own)
        slope = np.einsum("ij,djk->idk", z, factor[chosen])
        found[seen, chosen], _ = _integrated(
            matrix, part_of, order, eta, slope, whitened[:, chosen], starts, within
        )
    return found


def nested_in(matrix: MixedMatrix, place: int) -> list[int]:
    """Places of the random parts whose levels each lie within one level of a part; its own among them."""
    unit = matrix.random[place]
    return [
        other
        for other, part in enumerate(matrix.random)
        if len(np.unique(part.codes * unit.n_levels + unit.codes)) == len(np.unique(part.codes))
    ]


def _nested(matrix: MixedMatrix, draws: Draws, own: tuple[int, ...], inner: tuple[int, ...]) -> Array:
    """The same where a level holds levels of one other part: both integrals, one within the other.

    The outer one by Gauss-Hermite quadrature around the mean of a level's standardised effects over the
    draws, with their standard deviation, which is that of the integrand or wider.
    """
    unit = matrix.random[own[0]]
    parts = [matrix.random[place] for place in (*own, *inner)]
    if len(parts) > 2 or not all(part.width == 1 for part in parts):
        names = [matrix.random[place].name for place in inner]
        raise ArgumentError(
            f"`unit` {unit.name!r} cannot be left out: effects of {names} are nested in it, which can be "
            "integrated for one random intercept within another; use unit='cell' or unit='row'"
        )
    leaf = parts[1]
    order = np.lexsort((leaf.codes, unit.codes))
    codes = leaf.codes[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    within = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(codes)]))
    units = unit.codes[order][starts]
    unit_starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]])
    seen = units[unit_starts]
    outer, drawn = _joint(draws, own, seen)
    deeper, drawn_leaves = _joint(draws, inner, codes[starts])
    centre = drawn[..., 0].mean(axis=1)[:, None]
    spread = drawn[..., 0].std(axis=1)[:, None] + np.finfo(np.float64).tiny
    nodes, weights = np.polynomial.hermite_e.hermegauss(_OUTER_NODES)
    n_draws = len(outer)
    found = np.zeros((unit.n_levels, n_draws))
    step = max(1, _AT_ONCE // len(order))
    for start in range(0, n_draws, step):
        chosen = slice(start, start + step)
        some = _some(draws, chosen)
        eta = predictor(matrix, some, order, leaving_out=(*own, *inner))
        slope = np.einsum("ij,djk->idk", leaf.z[order], deeper[chosen])
        along = unit.z[order] * outer[chosen, 0, 0]
        mode, steps, terms = drawn_leaves[:, chosen], _STEPS, []
        for node, weight in zip(nodes, weights, strict=True):
            v = centre + spread * node
            shift = along * v[np.searchsorted(seen, unit.codes[order])]
            # The modes at one node are near those at the node before.
            leaves, mode = _integrated(
                matrix, some, order, eta + shift, slope, mode, starts, within, steps=steps
            )
            steps = _NEXT_STEPS
            log_weight = np.log(weight * spread) + 0.5 * (node**2 - v**2 - np.log(2 * np.pi))
            terms.append(np.add.reduceat(leaves, unit_starts, axis=0) + log_weight)
        found[seen, chosen] = special.logsumexp(np.stack(terms), axis=0)
    return found


def _joint(draws: Draws, own: tuple[int, ...], seen: NDArray[np.int64]) -> tuple[Array, Array]:
    """Factor of all effects of a level, (draws, q, q), and the drawn effects by it, (levels, draws, q)."""
    widths = [draws.factors[place].shape[2] for place in own]
    ends = np.r_[0, np.cumsum(widths)]
    n = draws.n_chains * draws.n_draws
    factor = np.zeros((n, ends[-1], ends[-1]))
    effects = np.zeros((len(seen), n, ends[-1]))
    for place, a, b in zip(own, ends[:-1], ends[1:], strict=True):
        factor[:, a:b, a:b] = draws.factors[place].reshape(n, b - a, b - a)
        effects[:, :, a:b] = draws.effects[place][:, :, seen].reshape(n, len(seen), b - a).transpose(1, 0, 2)
    safe = factor + np.finfo(np.float64).tiny * np.eye(ends[-1])
    whitened = _solved(safe[None], effects)
    return factor, np.clip(whitened, -2 * _LONGEST, 2 * _LONGEST)


def _some(draws: Draws, chosen: slice) -> Draws:
    """Some draws, of all chains in one."""
    n = draws.n_chains * draws.n_draws

    def of(values: Array) -> Array:
        return values.reshape(1, n, *values.shape[2:])[:, chosen]

    return replace(
        draws,
        coefficients=of(draws.coefficients),
        thresholds=of(draws.thresholds),
        factors=tuple(of(factor) for factor in draws.factors),
        sigma=None if draws.sigma is None else of(draws.sigma),
        effects=tuple(of(effects) for effects in draws.effects),
        statistics={},
    )


def _integrated(
    matrix: MixedMatrix,
    draws: Draws,
    order: NDArray[np.int64],
    eta: Array,
    slope: Array,
    mode: Array,
    starts: NDArray[np.int64],
    within: NDArray[np.int64],
    *,
    steps: int = _STEPS,
) -> tuple[Array, Array]:
    """Log integrals over standard normal v of the density at `eta + slope v`, and the modes.

    Shapes (levels, draws) and (levels, draws, q), from a first guess of the modes.
    """
    q = slope.shape[2]
    identity = np.eye(q)
    for _ in range(steps):
        at = eta + (slope * mode[within]).sum(axis=2)
        first, second = _derivatives(matrix, draws, order, at)
        gradient = np.add.reduceat(slope * first[..., None], starts, axis=0) - mode
        curvature = identity + np.add.reduceat(
            slope[..., :, None] * slope[..., None, :] * second[..., None, None], starts, axis=0
        )
        move = _solved(curvature, gradient)
        mode = mode + np.clip(move, -_LONGEST, _LONGEST)
    if q == 1:
        spread = np.asarray(1 / np.sqrt(curvature), dtype=np.float64)
    else:
        spread = np.asarray(np.linalg.cholesky(np.linalg.inv(curvature)), dtype=np.float64)
    log_volume = np.log(np.diagonal(spread, axis1=2, axis2=3)).sum(axis=2) + 0.5 * q * np.log(2)
    nodes, weights = np.polynomial.hermite.hermgauss(_NODES[q])
    terms = []
    for places in product(range(len(nodes)), repeat=q):
        x = nodes[list(places)]
        v = mode + np.sqrt(2) * (spread[..., 0] * x if q == 1 else spread @ x)
        density = log_density(matrix, draws, order, eta + (slope * v[within]).sum(axis=2))
        log_prior = -0.5 * np.square(v).sum(axis=2) - 0.5 * q * np.log(2 * np.pi)
        log_weight = np.log(weights[list(places)]).sum() + np.square(x).sum()
        terms.append(np.add.reduceat(density, starts, axis=0) + log_prior + log_weight)
    return special.logsumexp(np.stack(terms), axis=0) + log_volume, mode


def _solved(curvature: Array, gradient: Array) -> Array:
    """Solution of small linear systems, (..., q, q) and (..., q); one by one for q = 1 would take long."""
    if gradient.shape[-1] == 1:
        return gradient / curvature[..., 0]
    return np.asarray(np.linalg.solve(curvature, gradient[..., None])[..., 0], dtype=np.float64)


def _derivatives(
    matrix: MixedMatrix, draws: Draws, order: NDArray[np.int64], eta: Array
) -> tuple[Array, Array]:
    """First, and negative second, derivative of the log density by the linear predictor."""
    y, counts = matrix.y[order, None], matrix.counts[order, None]
    if matrix.family == "binomial":
        p = special.expit(eta)
        return y - counts * p, counts * p * (1 - p)
    if draws.sigma is not None:
        precision = 1 / np.square(draws.sigma.reshape(1, -1))
        return (y - eta) * precision, np.broadcast_to(precision, eta.shape)
    thresholds = draws.thresholds.reshape(eta.shape[1], -1).T
    level = matrix.y[order].astype(np.int64)
    j = len(thresholds)
    upper = np.where((level < j)[:, None], special.expit(thresholds[np.minimum(level, j - 1)] - eta), 1.0)
    lower = np.where((level > 0)[:, None], special.expit(thresholds[np.maximum(level - 1, 0)] - eta), 0.0)
    return counts * (upper + lower - 1), counts * (upper * (1 - upper) + lower * (1 - lower))
