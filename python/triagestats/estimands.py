"""Estimands: functions of the mean scores of condition levels, vectorised over leading axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from triagestats.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["AnchoringGap", "Difference", "Estimand", "Function", "Gap", "Mean"]


class Estimand(ABC):
    """A number computed from the mean scores of some condition levels.

    Each model's value is the function of that model's level means, over the keys scored in all its
    levels; pooled over models it is the plain mean of the models' values (with `weights="row"`, the
    function of the pooled means).

    Examples
    --------
    >>> import triagestats as ts
    >>> gap = ts.Gap("alpha", ["beta", "gamma"])
    >>> isinstance(gap, ts.Estimand), gap.levels, gap.null
    (True, ('alpha', 'beta', 'gamma'), 0.0)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """The condition levels that it needs, in the order in which `evaluate` takes their means."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in the column `estimand`."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What it is called in the column `contrast`."""

    @property
    def smooth(self) -> bool:
        """Whether it is differentiable in the means; where not, jackknife, t and BCa do not hold."""
        return True

    @property
    def coefficients(self) -> tuple[float, ...] | None:
        """Its coefficients over `levels` where it is linear, else None."""
        return None

    @property
    def null(self) -> float | None:
        """Its value where the levels do not differ, which verdict and t test compare with; None without."""
        return None

    @abstractmethod
    def evaluate(self, means: Array) -> Array:
        """Value for level means of shape (..., L); the result has shape (...)."""


def _level(level: object, argument: str) -> str:
    if isinstance(level, bool) or not isinstance(level, str | int):
        raise ArgumentTypeError(f"`{argument}` must be the name of a condition level; got {level!r}")
    return str(level).strip()


def _levels(levels: object, argument: str) -> tuple[str, ...]:
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        raise ArgumentTypeError(f"`{argument}` must be a list of condition levels; got {levels!r}")
    return tuple(_level(level, argument) for level in levels)


def _distinct(levels: tuple[str, ...]) -> None:
    if len(set(levels)) != len(levels):
        raise ArgumentError(f"the levels of an estimand must differ; got {list(levels)}")


def _check_null(null: object) -> None:
    if null is None:
        return
    if isinstance(null, bool) or not isinstance(null, int | float) or not isfinite(null):
        raise ArgumentTypeError(f"`null` must be a finite number or None; got {null!r}")


class _Linear(Estimand):
    """An estimand with one coefficient a level."""

    __slots__ = ()

    @property
    @abstractmethod
    def coefficients(self) -> tuple[float, ...]:
        """Its coefficients over `levels`."""

    @property
    def null(self) -> float | None:
        return 0.0 if abs(sum(self.coefficients)) < 1e-9 else None

    def evaluate(self, means: Array) -> Array:
        first, *rest = self.coefficients
        total = means[..., 0] * first
        for position, weight in enumerate(rest, start=1):
            total = total + means[..., position] * weight
        return total


@dataclass(frozen=True, slots=True)
class Mean(_Linear):
    """Mean score of one level, `mean(level)`; a rate where scores lie between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats import Mean
    >>> float(Mean("letter").evaluate(np.array([0.75])))
    0.75
    """

    level: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _level(self.level, "level"))

    @property
    def levels(self) -> tuple[str, ...]:
        return (self.level,)

    @property
    def name(self) -> str:
        return "mean"

    @property
    def label(self) -> str:
        return f"mean({self.level})"

    @property
    def coefficients(self) -> tuple[float, ...]:
        return (1.0,)


@dataclass(frozen=True, slots=True)
class Difference(_Linear):
    """`mean(level) - mean(reference)` over the keys scored in both.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats import Difference
    >>> float(Difference("free text", "letter").evaluate(np.array([0.75, 0.5])))
    0.25
    """

    level: str
    reference: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _level(self.level, "level"))
        object.__setattr__(self, "reference", _level(self.reference, "reference"))
        _distinct(self.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        return (self.level, self.reference)

    @property
    def name(self) -> str:
        return "difference"

    @property
    def label(self) -> str:
        return f"{self.level} - {self.reference}"

    @property
    def coefficients(self) -> tuple[float, ...]:
        return (1.0, -1.0)


@dataclass(frozen=True, slots=True)
class Gap(_Linear):
    """`mean(control) - mean(mean(m) for m in marked)` over the keys scored in all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats import Gap
    >>> round(float(Gap("alpha", ["beta", "gamma"]).evaluate(np.array([0.7, 0.6, 0.5]))), 6)
    0.15
    """

    control: str
    marked: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "control", _level(self.control, "control"))
        object.__setattr__(self, "marked", _levels(self.marked, "marked"))
        _distinct(self.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        return (self.control, *self.marked)

    @property
    def name(self) -> str:
        return "gap"

    @property
    def label(self) -> str:
        return f"{self.control} - mean({', '.join(self.marked)})"

    @property
    def coefficients(self) -> tuple[float, ...]:
        return (1.0, *[-1.0 / len(self.marked)] * len(self.marked))


@dataclass(frozen=True, slots=True)
class AnchoringGap(Estimand):
    """`mean(control) - min(mean(m) for m in marked)`: the gap to the worst of the marked levels.

    Not smooth where two marked levels tie: the plug-in estimate is then biased upward, and intervals
    by jackknife or BCa do not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats import AnchoringGap
    >>> round(float(AnchoringGap("alpha", ["beta", "gamma"]).evaluate(np.array([0.7, 0.6, 0.5]))), 6)
    0.2
    """

    control: str
    marked: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "control", _level(self.control, "control"))
        object.__setattr__(self, "marked", _levels(self.marked, "marked"))
        _distinct(self.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        return (self.control, *self.marked)

    @property
    def name(self) -> str:
        return "anchoring_gap"

    @property
    def label(self) -> str:
        return f"{self.control} - min({', '.join(self.marked)})"

    @property
    def smooth(self) -> bool:
        return len(self.marked) == 1

    @property
    def null(self) -> float:
        return 0.0

    def evaluate(self, means: Array) -> Array:
        import numpy as np

        result: Array = means[..., 0] - np.min(means[..., 1:], axis=-1)
        return result


@dataclass(frozen=True, slots=True)
class Function(Estimand):
    """A function of other estimands, `f(values)`.

    Parameters
    ----------
    function
        Takes an array of shape (..., n), the values of the n estimands, and returns one of shape (...).
        It must be vectorised: it is called with many replicates at once.
    estimands
        The estimands whose values it takes.
    name
        What the result is called, in the columns `estimand` and `contrast`.
    smooth
        Whether it is differentiable; where not, jackknife, t and BCa are withheld.
    null
        Its value where the levels do not differ, such as 1 for a ratio: what verdict and t test compare
        with. Without it there is neither.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats import Function, Mean
    >>> ratio = Function(lambda v: v[..., 0] / v[..., 1], [Mean("a"), Mean("b")], name="ratio")
    >>> float(ratio.evaluate(np.array([0.5, 0.8])))
    0.625
    """

    function: Callable[[Array], Array]
    estimands: Sequence[Estimand]
    name: str = "function"
    smooth: bool = True
    null: float | None = None

    def __post_init__(self) -> None:
        parts = tuple(self.estimands)
        if not parts or not all(isinstance(part, Estimand) for part in parts):
            raise ArgumentTypeError(f"`estimands` must be a list of estimands; got {self.estimands!r}")
        if not callable(self.function):
            raise ArgumentTypeError(f"`function` must be callable; got {self.function!r}")
        _check_null(self.null)
        object.__setattr__(self, "estimands", parts)

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(level for part in self.estimands for level in part.levels))

    @property
    def label(self) -> str:
        return f"{self.name}({', '.join(part.label for part in self.estimands)})"

    def evaluate(self, means: Array) -> Array:
        import numpy as np

        position = {level: index for index, level in enumerate(self.levels)}
        values = np.stack(
            [
                part.evaluate(means[..., [position[level] for level in part.levels]])
                for part in self.estimands
            ],
            axis=-1,
        )
        result = np.asarray(self.function(values), dtype=np.float64)
        if result.shape != means.shape[:-1]:
            raise ArgumentError(
                f"the function of estimand {self.name!r} must return one value for each leading index: "
                f"expected shape {means.shape[:-1]}, got {result.shape}. Write it with `v[..., i]`"
            )
        return result
