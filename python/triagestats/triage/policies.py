"""Triage score of an under and an over rate, and the policies that need no model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from triagestats.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Policy", "Tolerances", "TriageScore", "best_random", "policies", "score_of"]


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The under rate U and the over rate O that are tolerated.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If one is not positive, or above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.triage.policies import Tolerances
    >>> float(Tolerances(0.05, 0.35).score(np.array(0.05), np.array(0.35)))
    50.0
    """

    under: float
    over: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "under", _rate(self.under, "U"))
        object.__setattr__(self, "over", _rate(self.over, "O"))

    def squared_distance(self, under: Array, over: Array) -> Array:
        """`d^2 = (under / U)^2 + (over / O)^2`."""
        result: Array = (under / self.under) ** 2 + (over / self.over) ** 2
        return result

    def distance(self, under: float, over: float) -> float:
        """The distance d of known rates."""
        return math.hypot(under / self.under, over / self.over)

    def score(self, under: Array, over: Array) -> Array:
        """`100 / (1 + d^2 / 2)`: 100 without errors, 50 where both rates are just tolerated."""
        return score_of(self.squared_distance(under, over))


def score_of(squares: Array) -> Array:
    """The score of squared distances."""
    result: Array = 100.0 / (1.0 + squares / 2.0)
    return result


def _rate(value: object, argument: str) -> float:
    """A tolerated rate: a number above 0 and finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(f"`{argument}` must be a number, the tolerated rate; got {value!r}")
    rate = float(value)
    if not 0 < rate < math.inf:
        raise ArgumentError(
            f"`{argument}` must be positive, as rates are divided by it; got {rate:g}. Give the rate that is "
            "tolerated, such as 0.05"
        )
    if rate > 1:
        raise ArgumentError(
            f"`{argument}` is {rate:g}, and a rate is at most 1; divide percentages by 100, such as "
            f"{argument}={rate / 100:g}"
        )
    return rate


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule that reads no case, with the rates that it is known to have."""

    name: str
    under: float
    over: float


def policies(share_urgent: float) -> tuple[Policy, ...]:
    """Always and never escalate, and escalate at random as often as cases are urgent."""
    return (
        Policy("always escalate", 0.0, 1.0),
        Policy("never escalate", 1.0, 0.0),
        Policy("random escalate", 1.0 - share_urgent, share_urgent),
    )


def best_random(tolerances: Tolerances) -> tuple[float, float]:
    """The chance of escalating at random that scores best, `O^2 / (U^2 + O^2)`, and its score.

    Examples
    --------
    >>> from triagestats.triage.policies import Tolerances, best_random
    >>> [round(value, 6) for value in best_random(Tolerances(0.05, 0.35))]
    [0.98, 20.0]
    """
    squares = tolerances.under**2 + tolerances.over**2
    return tolerances.over**2 / squares, 100.0 / (1.0 + 0.5 / squares)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageScore:
    """The triage score as a metric of `leaderboard`.

    Parameters
    ----------
    escalate, urgent, valid, threshold, U, O, policies
        As in `triage_board`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If U or O is not positive, or above 1.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = {
    ...     "case": [1, 2, 3, 4, 5, 6] * 2,
    ...     "model": ["a"] * 6 + ["b"] * 6,
    ...     "urgent": [1, 1, 1, 0, 0, 0] * 2,
    ...     "escalate": [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1],
    ... }
    >>> board = ts.leaderboard(rows, metric=ts.TriageScore(U=0.05, O=0.35))
    >>> board.models
    ('a', 'b')
    """

    U: float
    O: float  # noqa: E741  # the letters of the score
    escalate: str = "escalate"
    urgent: str = "urgent"
    valid: str | None = None
    threshold: float | None = None
    policies: bool = True

    def __post_init__(self) -> None:
        Tolerances(self.U, self.O)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `triage_board`."""
        return {name: getattr(self, name) for name in self.__slots__}
