"""Exact laws of sums of lattice values: bootstrap sums, sign flips, and permutations within clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.tolerances import MASS, OFF_LATTICE, SMALLEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Whole = NDArray[np.int64]

__all__ = ["Lattice", "Law", "bootstrap_law", "lattice_of", "permutation_law", "tail"]

FINEST: Final = 2**16
"""Largest multiple of the step that still counts as lying on a lattice."""
WORK: Final = 20_000_000
"""Multiplications that a law may take, and masses that it may have; beyond, drawing is faster."""
SQUARED: Final = 512
"""Largest power of (1/2, 1/2) that is taken by squaring: its smallest mass is 2^-512."""


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Values that are whole multiples of one step.

    Attributes
    ----------
    multiples
        Whole numbers, of the shape of the values.
    step
        The common step, positive.
    """

    multiples: Whole
    step: float


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A distribution on multiples of a step.

    Attributes
    ----------
    start
        The lowest multiple.
    mass
        Probability of `start`, `start + 1`, ..., shape (N,).
    step
        The step.
    """

    start: int
    mass: Array
    step: float

    def interval(self, conf_level: float) -> tuple[float, float]:
        """Ends that leave at most alpha / 2 beyond them on either side; the percentile interval."""
        tail = (1 - conf_level) / 2 - MASS
        below = np.cumsum(self.mass)
        above = np.cumsum(self.mass[::-1])
        low = int(np.searchsorted(below, tail))
        high = len(self.mass) - 1 - int(np.searchsorted(above, tail))
        return (self.start + low) * self.step, (self.start + high) * self.step


def tail(mass: Array, away: Whole, observed: int) -> tuple[float, float]:
    """Probability of whole distances of at least the observed one, and the smallest that there is."""

    def beyond(least: int) -> float:
        kept = away >= least
        return 1.0 if kept.all() else min(1.0, max(float(np.sort(mass[kept]).sum()), SMALLEST))

    return beyond(observed), beyond(int(away.max()))


def lattice_of(values: Array) -> Lattice | None:
    """Values as multiples of their greatest common step; None where they have none that is coarse enough.

    Scores of 0 and 1, halves from two judges and k/n from repetitions lie on one.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.lattice import lattice_of
    >>> found = lattice_of(np.array([0.1, -0.3, 0.0, 0.2]))
    >>> found.multiples.tolist(), round(found.step, 12)
    ([1, -3, 0, 2], 0.1)
    """
    sizes = np.unique(np.abs(values[np.isfinite(values)]))
    if len(sizes) == 0 or not np.isfinite(values).all():
        return None
    noise = OFF_LATTICE * float(sizes[-1])
    step = 0.0
    for size in sizes[sizes > noise].tolist():
        step = _common(step, size, noise)
        if step * FINEST < sizes[-1]:
            return None
    if step <= 0:
        return Lattice(np.zeros(values.shape, dtype=np.int64), 1.0)
    multiples = np.round(values / step).astype(np.int64)
    if (np.abs(values - multiples * step) > noise).any():
        return None
    largest = int(np.abs(multiples).max())
    return Lattice(multiples, float(sizes[-1]) / largest)  # the largest value fixes the step best


def _common(a: float, b: float, noise: float) -> float:
    """Greatest common divisor of two positive floats, up to noise."""
    while b > noise:
        rest = a % b
        a, b = b, 0.0 if b - rest <= noise else rest
    return a


def bootstrap_law(cells: Lattice, n_draws: int) -> Law | None:
    """Law of the sum of `n_draws` values drawn with replacement: a convolution power.

    Its masses are exact to about 1e-15 of the whole, as it goes by the discrete Fourier transform.
    None where it would be too long.

    Parameters
    ----------
    cells
        The values to draw from, multiples of shape (G,).
    n_draws
        How many are drawn; G for the bootstrap.
    """
    low = int(cells.multiples.min())
    width = int(cells.multiples.max()) - low
    length = width * n_draws + 1
    if length > FINEST:
        return None
    once = np.bincount(cells.multiples - low) / len(cells.multiples)
    size = 1 << (length - 1).bit_length()
    mass = np.fft.irfft(np.fft.rfft(once, size) ** n_draws, size)[:length] if size > 1 else np.ones(1)
    mass = np.maximum(mass, 0.0)
    return Law(low * n_draws, mass / mass.sum(), cells.step)


def permutation_law(moves: Lattice) -> Law | None:
    """Law of the sum over clusters of one of each cluster's equally likely values.

    Every mass is a sum of positive terms, so that small ones keep their leading digits. None where it
    would take too long.

    Parameters
    ----------
    moves
        The values of each cluster, multiples of shape (G, A): a cluster's contribution under each of
        its A relabellings; sign flips have A = 2.
    """
    lows = moves.multiples.min(axis=1)
    start = int(lows.sum())
    if moves.multiples.shape[1] == 2:
        mass = _flipped(np.abs(moves.multiples[:, 1] - moves.multiples[:, 0]))
        return None if mass is None else Law(start, mass, moves.step)
    rows = np.sort(moves.multiples - lows[:, None], axis=1)
    shifts, counts = np.unique(rows, axis=0, return_counts=True)
    lengths = shifts.max(axis=1) * counts + 1
    if float(np.dot(np.cumsum(lengths, dtype=np.float64), lengths)) > WORK:
        return None
    mass = np.ones(1)
    for row, times in zip(shifts, counts, strict=True):
        step = np.bincount(row) / len(row)
        mass = np.convolve(mass, _power(step, int(times)))
    return Law(start, mass, moves.step)


def _flipped(widths: Whole) -> Array | None:
    """Masses of a sum that takes each of the widths with probability 1/2; None where it would take too long.

    Those of one width w, m of them, are w times a binomial of m.
    """
    table = np.bincount(widths)
    table[0] = 0  # these do not move
    present = np.flatnonzero(table)
    counts = table[present]
    before = np.cumsum(present * counts, dtype=np.float64) - present * counts + 1
    work = float(np.dot(before, counts + 1) + (np.minimum(counts, SQUARED).astype(np.float64) ** 2).sum())
    if max(work, 1.0 + float(np.dot(present.astype(np.float64), counts))) > WORK:
        return None
    mass = np.ones(1)
    for width, times in zip(present.tolist(), counts.tolist(), strict=True):
        once = _binomial(times)
        longer = np.zeros(len(mass) + width * times)
        if times < width:
            for taken, chance in enumerate(once.tolist()):
                longer[taken * width : taken * width + len(mass)] += chance * mass
        else:  # every width-th place by itself
            for first in range(min(width, len(mass))):
                part = np.convolve(mass[first::width], once)
                longer[first::width][: len(part)] = part
        mass = longer
    return mass


def _binomial(times: int) -> Array:
    """Masses of a binomial with probability 1/2.

    By squaring to 512, which keeps all digits of small ones; beyond by their ratios, from the middle
    outwards, with a relative error below 1e-10 for a million.
    """
    if times <= SQUARED:
        return _power(np.full(2, 0.5), times)
    taken = np.arange((times + 1) // 2 + 1, times + 1, dtype=np.float64)
    upper = np.cumprod(np.concatenate([np.ones(1), (times + 1 - taken) / taken]))
    mass = np.concatenate([upper[::-1], upper[times % 2 == 0 :]])
    mass /= mass.sum()
    return mass


def _power(polynomial: Array, times: int) -> Array:
    """A polynomial with positive coefficients to a power, by squaring; no digit cancels."""
    result = np.ones(1)
    while times:
        if times & 1:
            result = np.convolve(result, polynomial)
        times >>= 1
        if times:
            polynomial = np.convolve(polynomial, polynomial)
    return result
