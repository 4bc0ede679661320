"""The law of t* in the wild cluster bootstrap, for any value under the hypothesis: tails and inversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.models.wild_scores import Coefficient
from triagestats.tolerances import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["POINTS", "Tails", "TwoSided", "WildLaw", "studentised"]

TwoSided = Literal["symmetric", "equal-tailed"]

_DOUBLINGS: Final = 20
"""Of two standard errors, until a value is reached that the test rejects."""
_WIDTH: Final = 1e-10
"""Standard errors to which the end of an interval is found."""
_DIGITS: Final = 1e-8
"""Standard errors to which an end is rounded: where t* and t tie is known to some 1e-10 of t."""
_LEVEL: Final = 1e-9
"""Share of alpha by which a p-value must exceed it: one of exactly alpha rejects."""
_ROOT: Final = math.sqrt(5)
POINTS: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "rademacher": ((-1.0, 0.5), (1.0, 0.5)),
    "webb": tuple((sign * math.sqrt(square), 1 / 6) for sign in (-1, 1) for square in (0.5, 1.0, 1.5)),
    "mammen": (((1 - _ROOT) / 2, (_ROOT + 1) / (2 * _ROOT)), ((1 + _ROOT) / 2, (_ROOT - 1) / (2 * _ROOT))),
}
"""The weights that are drawn, and their chances."""
_CANCELLED: Final = 1e-15
"""A sum of squares below this share of what it was made of is rounding."""


@dataclass(frozen=True, slots=True)
class Tails:
    """Replicates with |t*| >= |t|, t* >= t, t* <= t, |t*| = |t|, and with an error of 0."""

    extreme: int
    above: int
    below: int
    ties: int
    degenerate: int


@dataclass(frozen=True, slots=True, eq=False)
class WildLaw:
    """Replicates of one coefficient.

    Attributes
    ----------
    data
        The coefficient; its error is not None.
    held
        The value of b in the residuals u = y - b x that were weighted.
    replicates
        Sums and products of the kernel `wild_regression`: of u alone, shape (R, 2), for the law that does not
        depend on the value (null not imposed); of u and x, shape (R, 5), for the law with the value imposed.
    enumerated
        Whether they are all sign vectors.
    """

    data: Coefficient
    held: float
    replicates: Array
    enumerated: bool

    @property
    def _error(self) -> float:
        return self.data.std_error or math.nan

    def statistics(self, value: float) -> Array:
        """t* of each replicate under the hypothesis that the coefficient is `value`, shape (R,)."""
        if self.replicates.shape[1] == 2:
            sums, squares = self.replicates.T
            return studentised(sums, squares, self.data.factor, self.data.scores.noise(self.held))
        sums, of_x, squares, mixed, squares_of_x = self.replicates.T
        shift = value - self.held
        if shift:
            # Where x is weighted by one number all over, its scores vanish but for rounding.
            moves = squares_of_x > self.data.scores.unread[0] ** 2 * self.data.scores.size
            added = np.where(moves, shift**2 * squares_of_x, 0.0)
            total = squares + added
            squares = total - np.where(moves, 2 * shift * mixed, 0.0)
            squares = np.where(squares > _CANCELLED * total, squares, 0.0)
            sums = sums - shift * of_x
        return studentised(sums, squares, self.data.factor, self.data.scores.noise(value))

    def observed(self, value: float) -> tuple[float, float]:
        """Statistic t of the data, and how far a t* may lie from it and still tie."""
        t = (self.data.scores.estimate - value) / self._error
        length = self._error * self.data.scores.size / self.data.factor**0.5
        noise = self.data.scores.noise(value) / length
        return t, max(TIES * abs(t), noise * (1 + abs(t)))

    def tails(self, value: float) -> Tails:
        """How many replicates are beyond the data; those with an undefined t* are on all sides."""
        t, slack = self.observed(value)
        drawn = self.statistics(value)
        sizes, lost = np.abs(drawn), int(np.isnan(drawn).sum())
        return Tails(
            extreme=int((sizes >= abs(t) - slack).sum()) + lost,
            above=int((drawn >= t - slack).sum()) + lost,
            below=int((drawn <= t + slack).sum()) + lost,
            ties=int((np.abs(sizes - abs(t)) <= slack).sum()),
            degenerate=int((~np.isfinite(drawn)).sum()),
        )

    def share(self, count: int) -> float:
        """Of the law: b / 2^G where it is enumerated, (b + 1) / (R + 1) where it is drawn."""
        n = len(self.replicates)
        return count / n if self.enumerated else (count + 1) / (n + 1)

    def p_value(self, tails: Tails, two_sided: TwoSided) -> float:
        """The two-sided p-value of some tails."""
        if two_sided == "symmetric":
            return self.share(tails.extreme)
        return min(1.0, 2 * self.share(min(tails.above, tails.below)))

    def interval(self, conf_level: float, two_sided: TwoSided) -> tuple[float, float]:
        """Ends of the values that are not rejected; infinite where none on a side is."""
        alpha = (1 - conf_level) * (1 + _LEVEL)
        symmetric = two_sided == "symmetric"

        def accepts_low(value: float) -> bool:
            tails = self.tails(value)
            return (self.share(tails.extreme) if symmetric else 2 * self.share(tails.above)) > alpha

        def accepts_high(value: float) -> bool:
            tails = self.tails(value)
            return (self.share(tails.extreme) if symmetric else 2 * self.share(tails.below)) > alpha

        step = 2 * self._error
        return self._rounded(self._end(accepts_low, -step)), self._rounded(self._end(accepts_high, step))

    def _rounded(self, end: float) -> float:
        """An end without the digits that ties by tolerance and the search leave open."""
        if math.isinf(end):
            return end
        return round(end, -math.floor(math.log10(_DIGITS * self._error))) + 0.0

    def _end(self, accepts: Callable[[float], bool], step: float) -> float:
        """Where acceptance ends in the direction of a step from the estimate.

        Tails of one side may reject the estimate itself; the end then lies in the other direction.
        """
        inside = accepts(self.data.scores.estimate)
        if not inside:
            step = -step
        near = self.data.scores.estimate
        for doubling in range(_DOUBLINGS):
            far = self.data.scores.estimate + step * 2.0**doubling
            if accepts(far) != inside:
                break
            near = far
        else:
            return math.copysign(math.inf, step)
        while abs(far - near) > _WIDTH * self._error:
            middle = (near + far) / 2
            if middle in (near, far):  # floats lie no closer
                break
            near, far = (middle, far) if accepts(middle) == inside else (near, middle)
        return (near + far) / 2


def studentised(sums: Array, squares: Array, factor: float, noise: float) -> Array:
    """Sums over the roots of sums of squares, times a factor.

    Parameters
    ----------
    sums, squares
        Shape (R,).
    factor
        Of the squares.
    noise
        A sum, or the root of a sum of squares, is rounding up to here: infinity where only the squares
        are, NaN where both are.
    """
    still = ~(squares > noise**2)
    found: Array = sums / np.sqrt(factor * np.where(still, 1.0, squares))
    found[still] = np.where(np.abs(sums[still]) > noise, np.copysign(np.inf, sums[still]), np.nan)
    return found
