"""Coordinates in which fixed and random effects of a mixed model do not compete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.models.mixed.matrix import RandomPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Lower", "Reflections", "Sweep", "Upper", "lower_parts", "nested_in", "sums_by", "sweeps"]

_ZERO: Final = 1e-9
"""An eigenvalue between 0 and 1 that is below this is 0."""
_LARGEST: Final = 2_000_000
"""Entries of the reflections of a part beyond which it is not swept into other parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Reflections:
    """An orthogonal matrix `H_1 H_2 ... H_r` of reflections `H = I - 2 n n'`.

    Attributes
    ----------
    bounds
        Reflection i has the entries `bounds[i]` to `bounds[i + 1]` of `at` and `normals`, shape (r + 1,).
    at
        Coordinates that the reflection moves.
    normals
        Entries of its unit normal.
    """

    bounds: NDArray[np.uint32]
    at: NDArray[np.uint32]
    normals: Array

    def _all(self) -> list[tuple[NDArray[np.uint32], Array]]:
        ends = zip(self.bounds[:-1], self.bounds[1:], strict=True)
        return [(self.at[a:b], self.normals[a:b]) for a, b in ends]

    def apply(self, values: Array) -> Array:
        """The product of the matrix with vectors along the last axis."""
        return _reflected(values, self._all()[::-1])

    def transposed(self, values: Array) -> Array:
        """The product of the transposed matrix with vectors along the last axis."""
        return _reflected(values, self._all())

    def diagonal(self, values: Array) -> Array:
        """About the diagonal of `Q' diag(values) Q`: each reflection takes the diagonal of the last."""
        out = values.copy()
        for at, normal in self._all():
            here, squares = out[at], normal**2
            whole = float(squares @ here)
            out[at] = here * (1 - 2 * squares) ** 2 + 4 * squares * (whole - squares * here)
        return out


def _reflected(values: Array, reflections: list[tuple[NDArray[np.uint32], Array]]) -> Array:
    out = values.copy()
    for at, normal in reflections:
        along = out[..., at] @ normal
        out[..., at] -= 2 * along[..., None] * normal
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Upper:
    """A coarser part, whose levels the levels of a part are nested in.

    Attributes
    ----------
    part
        Number of the coarser part.
    codes
        Its level for each level of the finer one.
    size
        Levels of the finer part in each of its levels.
    """

    part: int
    codes: Codes
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Lower:
    """A part whose means the coordinates of a coarser part take up; or that part itself.

    Attributes
    ----------
    part
        Its number.
    codes
        The level of the coarser part for each of its levels.
    size
        How many of its levels are in each level of the coarser part.
    """

    part: int
    codes: Codes
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """How the effects u of a part divide.

    `u = directions @ alpha + (means, over the levels of coarser parts) + Q e`: the first joins the fixed
    coefficients, the second the effects of the coarser parts, and the entries of e that are not swept are
    coordinates.

    Attributes
    ----------
    levels
        Orthonormal vectors over the levels that the fixed columns span, shape (levels, r).
    directions
        Coefficients of the fixed columns that make them, shape (p, r).
    uppers
        Coarser parts that take up its means.
    reflections
        Q.
    free
        Entries of e that are coordinates.
    """

    levels: Array
    directions: Array
    uppers: tuple[Upper, ...]
    reflections: Reflections
    free: NDArray[np.uint32]


def sums_by(codes: Codes, values: Array, n_levels: int) -> Array:
    """Sums of values by level, shape (n_levels,)."""
    out: Array = np.bincount(codes, weights=values, minlength=n_levels).astype(np.float64)
    return out


def nested_in(fine: RandomPart, coarse: RandomPart) -> Codes | None:
    """The level of `coarse` of each level of `fine`, or None where some level of it has several."""
    if fine.n_levels < coarse.n_levels:
        return None
    upper = np.zeros(fine.n_levels, dtype=np.int64)
    upper[fine.codes] = coarse.codes
    return upper if np.array_equal(upper[fine.codes], coarse.codes) else None


def _spanned(part: RandomPart, x: Array) -> Array:
    """Orthonormal vectors over the levels of a part that columns `x` span when spread to the cells."""
    counts = np.bincount(part.codes, minlength=part.n_levels).astype(float)
    q, _ = np.linalg.qr(x)
    sums = np.stack([sums_by(part.codes, column, part.n_levels) for column in q.T], axis=1)
    within = np.eye(q.shape[1]) - sums.T @ (sums / counts[:, None])
    values, vectors = np.linalg.eigh(within)
    spanned = (sums / counts[:, None]) @ vectors[:, values < _ZERO]
    out: Array = np.linalg.qr(spanned)[0]
    return out


def _coefficients(part: RandomPart, levels: Array, x: Array) -> Array:
    """The coefficients of columns `x` that make vectors over the levels."""
    sums = np.stack([sums_by(part.codes, column, part.n_levels) for column in x.T])
    return np.ascontiguousarray(np.linalg.solve(x.T @ x, sums @ levels).astype(np.float64))


def _householder(basis: Array) -> tuple[list[Array], int]:
    """Normals of the reflections that turn orthonormal columns into the first unit vectors."""
    rest: Array = basis.copy()
    normals: list[Array] = []
    for column in range(basis.shape[1]):
        normal: Array = np.where(np.arange(rest.shape[0]) < column, 0.0, rest[:, column])
        normal[column] += np.copysign(float(np.linalg.norm(normal)), normal[column])
        normal /= float(np.linalg.norm(normal))
        rest -= 2 * np.outer(normal, normal @ rest)
        normals.append(normal)
    return normals, basis.shape[1]


def _dense(basis: Array) -> tuple[Reflections, NDArray[np.uint32]]:
    n_levels = basis.shape[0]
    normals, rank = _householder(basis)
    at = [np.arange(column, n_levels, dtype=np.uint32) for column in range(rank)]
    reflections = _packed(at, [normal[column:] for column, normal in enumerate(normals)])
    return reflections, np.arange(rank, n_levels, dtype=np.uint32)


def _grouped(groups: Codes) -> tuple[Reflections, NDArray[np.uint32]]:
    """Reflections that sweep out the mean of each group."""
    order = np.argsort(groups, kind="stable").astype(np.uint32)
    members = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    normals = [_householder(np.full((m.size, 1), m.size**-0.5))[0][0] for m in members]
    free = np.sort(np.concatenate([m[1:] for m in members])) if members else order
    return _packed(members, normals), free.astype(np.uint32)


def _packed(at: Sequence[NDArray[np.uint32]], normals: Sequence[Array]) -> Reflections:
    bounds = np.cumsum([0, *(normal.size for normal in normals)]).astype(np.uint32)
    if not at:
        return Reflections(bounds, np.zeros(0, dtype=np.uint32), np.zeros(0))
    return Reflections(bounds, np.concatenate(at), np.concatenate(normals))


def _upper(fine: RandomPart, number: int, coarse: RandomPart) -> Upper | None:
    """`coarse` if the levels of `fine` are nested in its levels, as many in each."""
    codes = nested_in(fine, coarse)
    if codes is None:
        return None
    sizes = np.bincount(codes, minlength=coarse.n_levels)
    return Upper(number, codes, int(sizes[0])) if (sizes == sizes[0]).all() else None


def _indicators(upper: Upper) -> Array:
    return np.eye(upper.codes.max() + 1)[upper.codes]


def _chosen(uppers: list[Upper], n_levels: int) -> tuple[Upper, ...]:
    """Those coarser parts, the largest first, that are crossed with all before, each pair of levels as often.

    Only then do their means divide into independent components.
    """
    chosen: list[Upper] = []
    for upper in sorted(uppers, key=lambda upper: upper.size):
        size = n_levels // upper.size
        crossed = [
            np.ptp(np.bincount(upper.codes * (other.codes.max() + 1) + other.codes)) == 0
            and np.unique(upper.codes * (other.codes.max() + 1) + other.codes).size
            == size * (n_levels // other.size)
            for other in chosen
        ]
        width = size + sum(n_levels // other.size for other in chosen)
        if all(crossed) and (not chosen or width * n_levels <= _LARGEST):
            chosen.append(upper)
    return tuple(chosen)


def sweeps(parts: Sequence[RandomPart], x: Array) -> list[Sweep]:
    """How the effects of each part divide, where columns `x` (cells, p) are fixed.

    Parameters
    ----------
    parts
        Random intercepts, none of which has the levels of another.
    x
        The fixed columns, of full column rank.

    Returns
    -------
    list of Sweep
        One a part. A part with coarser ones whose levels have unequal numbers of its levels is not swept into
        them: the components would not have equal variances.
    """
    done: dict[int, Sweep] = {}
    # Coarse parts have fewer levels than those nested in them.
    for number in sorted(range(len(parts)), key=lambda number: parts[number].n_levels):
        part = parts[number]
        found = [
            upper
            for other in done
            if parts[other].n_levels < part.n_levels
            and (upper := _upper(part, other, parts[other])) is not None
        ]
        uppers = _chosen(found, part.n_levels)
        if not uppers:
            levels = _spanned(part, x)
            reflections, free = _dense(levels)
        else:
            # Directions within the levels of the coarser parts are left to compete.
            levels = _orthonormal(np.concatenate([done[u.part].levels[u.codes] for u in uppers], axis=1))
            if len(uppers) == 1:
                reflections, free = _grouped(uppers[0].codes)
            else:
                basis = _orthonormal(np.concatenate([_indicators(upper) for upper in uppers], axis=1))
                reflections, free = _dense(basis)
        done[number] = Sweep(levels, _coefficients(part, levels, x), uppers, reflections, free)
    return [done[number] for number in range(len(parts))]


def lower_parts(all_sweeps: Sequence[Sweep], part: int) -> list[Lower]:
    """The part itself, and all those whose means its coordinates take up."""
    n_levels = all_sweeps[part].levels.shape[0]
    found = [Lower(part, np.arange(n_levels), 1)]
    for number, sweep in enumerate(all_sweeps):
        for upper in sweep.uppers:
            if upper.part != part:
                continue
            for lower in lower_parts(all_sweeps, number):
                found.append(Lower(lower.part, upper.codes[lower.codes], upper.size * lower.size))
    return found


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of what the columns span."""
    u, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.ascontiguousarray(u[:, values > _ZERO * values[0]])
