"""A logistic mixed model as the native sampler takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats import _native
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.pilot import Pilot, pilot_fit
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.sweeps import Lower, Sweep, lower_parts, nested_in, sums_by, sweeps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Indices = NDArray[np.uint32]

__all__ = ["Centring", "NativePlan", "native_plan"]

_ROWS: Final = 40
"""Rows a level, on average, up to which the effects of a nested part are integrated out."""
_FEWEST: Final = 2
"""Or fewer rows a level: effects such as those of responses that two judges scored can be so large that
trajectories over their integrals grow very long; sampled themselves, they stay short."""
_NODES: Final = (9, 11, 15, 21, 31)
"""Numbers of nodes of the quadrature to choose from."""
_MOST_NODES: Final = 61
"""Nodes of the quadrature that the others are measured by."""
_ENOUGH: Final = 0.01
"""Largest error of the log-density, and of each of its slopes, by the quadrature."""
_FAR: Final = 1.5
"""The nodes have to be enough at so many times the approximate standard deviation."""
_SPARSE: Final = 3
"""A crossing is computed whole where it has at most so many times the cells that are observed."""
_DEFAULTS: Final = Priors()


@dataclass(frozen=True, slots=True, eq=False)
class Centring:
    """The fixed columns about their means, which the prior of the intercept refers to.

    Attributes
    ----------
    x
        The columns, those that are not the constant less their mean over the rows.
    constant
        Number of the constant column; None without one.
    means
        What was taken from each column.
    variances
        Of the priors of the coefficients of `x`.
    """

    x: Array
    constant: int | None
    means: Array
    variances: Array

    def original(self, coefficients: Array) -> Array:
        """The coefficients of the columns as they were, along the last axis."""
        out = coefficients.copy()
        if self.constant is not None:
            out[..., self.constant] -= coefficients @ self.means
        return out


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A part as `MixedPosterior` reads it."""

    n_levels: int
    free: Indices
    bounds: Indices
    at: Indices
    normals: Array
    information: Array
    pull: Array
    shares: Array
    directions: Array


@dataclass(frozen=True, slots=True, eq=False)
class NativePlan:
    """A posterior in the coordinates that are sampled, and the way back.

    Attributes
    ----------
    posterior
        The native object.
    centring
        The fixed columns.
    centre, basis
        The coefficients, mean effects included, are `centre + basis @ z`.
    order
        Numbers of the random parts as the sampler has them: the one that is integrated out is the last.
    integrated
        Whether the last part is integrated out.
    sweeps
        How the effects of the others divide.
    lower
        For each of those, the parts whose means its coordinates take up.
    information, pulls
        About their coordinates, by which these are scaled and shifted.
    sds
        Rough standard deviations of all parts, in the order of the model.
    """

    posterior: _native.MixedPosterior
    centring: Centring
    centre: Array
    basis: Array
    order: tuple[int, ...]
    integrated: bool
    sweeps: tuple[Sweep, ...]
    lower: tuple[tuple[Lower, ...], ...]
    information: tuple[Array, ...]
    pulls: tuple[Array, ...]
    sds: Array

    def starts(self, n_chains: int, seed: int) -> Array:
        """A position to start each chain from, about as far apart as draws from the posterior."""
        p, n_parts = self.centre.size, len(self.order)
        out = np.empty((n_chains, self.posterior.n_coordinates))
        for chain, row in enumerate(out):
            rng = np.random.Generator(np.random.PCG64([seed, chain, 0]))
            row[:] = rng.standard_normal(row.size)
            spread = 0.3 * row[p : p + n_parts]
            row[p : p + n_parts] = self.sds[list(self.order)] * np.exp(spread)
        return out


def _centred(matrix: MixedMatrix, priors: Priors) -> Centring:
    constants = np.flatnonzero((matrix.x == 1).all(axis=0))
    constant = int(constants[0]) if constants.size else None
    given = priors.coefficient
    scales = np.array([_scale(given, term, _DEFAULTS.coefficient) for term in matrix.terms])
    means = np.zeros(matrix.x.shape[1])
    if constant is not None:
        means = np.average(matrix.x, axis=0, weights=matrix.counts)
        means[constant] = 0.0
        scales[constant] = priors.intercept
    return Centring(np.ascontiguousarray(matrix.x - means), constant, means, scales**2)


def _scale(given: float | Mapping[str, float], name: str, default: object) -> float:
    if isinstance(given, Mapping):
        return float(given.get(name, default))  # type: ignore[arg-type]
    return float(given)


def _to_integrate(matrix: MixedMatrix) -> int | None:
    """The part with the most levels, if they are nested in those of another and have few rows each."""
    parts = matrix.random
    finest = max(range(len(parts)), key=lambda number: parts[number].n_levels)
    if not _FEWEST < matrix.counts.sum() / parts[finest].n_levels <= _ROWS:
        return None
    others = (part for number, part in enumerate(parts) if number != finest)
    return finest if any(nested_in(parts[finest], part) is not None for part in others) else None


def native_plan(matrix: MixedMatrix, priors: Priors) -> NativePlan:
    """Choose coordinates for a logistic mixed model with random intercepts.

    Parameters
    ----------
    matrix
        The model, one that `covers` accepts.
    priors
        Scales of the priors.
    """
    centring = _centred(matrix, priors)
    last = _to_integrate(matrix)
    order = [number for number in range(len(matrix.random)) if number != last]
    parts = [matrix.random[number] for number in order]
    swept = sweeps(parts, centring.x)
    spanned: list[tuple[Array, Array]] = [(sweep.levels, sweep.directions) for sweep in swept]
    all_parts = list(matrix.random)
    if last is not None:
        order.append(last)
        nothing = np.zeros((matrix.random[last].n_levels, 0)), np.zeros((centring.x.shape[1], 0))
        spanned.append(nothing)
    ordered = [all_parts[number] for number in order]
    pilot = pilot_fit(
        matrix.y,
        matrix.counts,
        centring.x,
        ordered,
        precision=1 / centring.variances,
        spanned=spanned,
        integrated=None if last is None else len(ordered) - 1,
    )
    lower = [lower_parts(swept, number) for number in range(len(parts))]
    described = [
        _described(part, sweep, lower[number], pilot, number, len(ordered))
        for number, (part, sweep) in enumerate(zip(parts, swept, strict=True))
    ]
    variance = np.diag(centring.variances)
    for sweep, sd in zip(swept, pilot.sds, strict=False):
        variance = variance + sd**2 * sweep.directions @ sweep.directions.T
    whole = np.linalg.cholesky(pilot.information + np.linalg.inv(variance))
    basis = np.ascontiguousarray(np.linalg.inv(whole).T)
    scales = np.array([_scale(priors.sd, part.name, _DEFAULTS.sd) for part in ordered])
    sds = pilot.sds[np.argsort(order)]
    build = _builder(matrix, centring, pilot.coefficients, basis, parts, described, scales, last)
    plan = NativePlan(
        posterior=build(_NODES[0]),
        centring=centring,
        centre=pilot.coefficients,
        basis=basis,
        order=tuple(order),
        integrated=last is not None,
        sweeps=tuple(swept),
        lower=tuple(tuple(each) for each in lower),
        information=tuple(part.information for part in described),
        pulls=tuple(part.pull for part in described),
        sds=sds,
    )
    return plan if last is None else replace(plan, posterior=_accurate(plan, build))


def _accurate(plan: NativePlan, build: Callable[[int], _native.MixedPosterior]) -> _native.MixedPosterior:
    """The posterior with the fewest nodes that are enough where the standard deviation is large."""
    head = plan.centre.size + len(plan.order)
    position = np.zeros(plan.posterior.n_coordinates)
    position[plan.centre.size : head] = plan.sds[list(plan.order)]
    position[head - 1] = _FAR * position[head - 1]
    value, slopes = build(_MOST_NODES).log_density(position)
    for number in _NODES:
        posterior = build(number)
        here, here_slopes = posterior.log_density(position)
        if abs(here - value) < _ENOUGH and float(np.abs(here_slopes - slopes).max()) < _ENOUGH:
            return posterior
    return build(_MOST_NODES)


def _described(
    part: RandomPart, sweep: Sweep, lower: Sequence[Lower], pilot: Pilot, number: int, n_parts: int
) -> _Part:
    shares = np.zeros(n_parts)
    for below in lower:
        shares[below.part] += 1 / below.size
    reflections = sweep.reflections
    return _Part(
        part.n_levels,
        sweep.free,
        reflections.bounds,
        reflections.at,
        reflections.normals,
        reflections.diagonal(pilot.levels[number])[sweep.free],
        reflections.transposed(pilot.pulls[number])[sweep.free],
        shares,
        np.ascontiguousarray(sweep.directions),
    )


def _builder(
    matrix: MixedMatrix,
    centring: Centring,
    centre: Array,
    basis: Array,
    parts: Sequence[RandomPart],
    described: list[_Part],
    scales: Array,
    last: int | None,
) -> Callable[[int], _native.MixedPosterior]:
    """What makes the native object; the number of nodes matters only where a part is integrated out."""
    rows, row = np.unique(centring.x, axis=0, return_inverse=True)
    codes = np.stack([row.ravel(), *(part.codes for part in parts)]).astype(np.uint32)
    fixed: dict[str, Any] = {
        "rows": np.ascontiguousarray(rows),
        "centre": centre,
        "basis": basis,
        "variances": centring.variances,
        "parts": described,
        "scales": scales,
    }
    y, counts = np.ascontiguousarray(matrix.y), np.ascontiguousarray(matrix.counts)
    if last is not None:
        part = matrix.random[last]
        return lambda number: _with_nodes(fixed, y, counts, codes, part, number)
    main = max(range(len(parts)), key=lambda number: parts[number].n_levels)
    others = np.delete(codes, main + 1, axis=0)
    combinations, combination = np.unique(others, axis=1, return_inverse=True)
    shape = parts[main].n_levels, combinations.shape[1]
    size = shape[0] * shape[1]
    if size > _SPARSE * y.size:
        return lambda _: _native.MixedPosterior(**fixed, y=y, counts=counts, codes=codes)
    place = parts[main].codes * shape[1] + combination.ravel()
    successes, trials = (sums_by(place, values, size).reshape(shape) for values in (y, counts))
    crossing = np.ascontiguousarray(np.insert(combinations, main + 1, 0, axis=0).astype(np.uint32))
    return lambda _: _native.MixedPosterior(
        **fixed, y=successes, counts=trials, codes=crossing, crossed=main + 1
    )


def _with_nodes(
    fixed: dict[str, Any], y: Array, counts: Array, codes: Indices, part: RandomPart, number: int
) -> _native.MixedPosterior:
    nodes, log_weights = _quadrature(number)
    return _native.MixedPosterior(
        **fixed,
        y=y,
        counts=counts,
        codes=codes,
        groups=part.codes.astype(np.uint32),
        n_groups=part.n_levels,
        nodes=nodes,
        log_weights=log_weights,
    )


def _quadrature(number: int) -> tuple[Array, Array]:
    """Nodes for a standard normal variable; logs of their weights, as `MixedPosterior` takes them."""
    nodes, weights = np.polynomial.hermite.hermgauss(number)
    return 2**0.5 * nodes, np.log(weights) + nodes**2 - 0.5 * np.log(np.pi)
