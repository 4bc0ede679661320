"""What follows from an estimate and its variance by the normal distribution, on a scale that fits."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final, Literal

from scipy import stats
from scipy.special import expit, logit

from triagestats.verdicts import verdict

__all__ = ["Scale", "row_of", "verdict_of"]

Scale = Literal["identity", "log", "logit", "atanh"]

_LARGEST: Final = math.log(sys.float_info.max)
"""What `exp` still takes: beyond it the end of an interval is the largest number."""
_SCALES: Final[
    dict[Scale, tuple[Callable[[float], float], Callable[[float], float], Callable[[float], float]]]
] = {
    "identity": (float, lambda _: 1.0, float),
    "log": (math.log, lambda x: 1 / x, lambda y: math.exp(min(y, _LARGEST))),
    "logit": (lambda x: float(logit(x)), lambda x: 1 / (x * (1 - x)), lambda y: float(expit(y))),
    "atanh": (math.atanh, lambda x: 1 / (1 - x * x), math.tanh),
}
"""Of each scale the way there, its derivative, and the way back."""


def row_of(
    estimate: float, variance: float, conf_level: float, *, scale: Scale = "identity", tested: bool = True
) -> dict[str, Any]:
    """Error, interval and, where 0 is a hypothesis, the z test, by the names of the glossary.

    The interval is symmetric on the scale, so that a probability stays between 0 and 1; the error is on the
    scale of the estimate. Empty where there is no error.
    """
    if not (math.isfinite(estimate) and variance > 0):
        return {}
    error = math.sqrt(variance)
    there, slope, back = _SCALES[scale]
    row: dict[str, Any] = {"std_error": error}
    inside = {"log": estimate > 0, "logit": 0 < estimate < 1, "atanh": abs(estimate) < 1}.get(scale, True)
    if inside:
        half = float(stats.norm.isf((1 - conf_level) / 2)) * error * slope(estimate)
        centre = there(estimate)
        row |= {"conf_low": back(centre - half), "conf_high": back(centre + half)}
    if tested:
        row |= {"statistic": estimate / error, "p_value": 2 * float(stats.norm.sf(abs(estimate / error)))}
    return row


def verdict_of(
    estimate: float, variance: float, conf_level: float, margin: float | None, *, higher_is_better: bool
) -> str:
    """The verdict of a difference, from its interval and that of level 1 - 2 alpha."""
    shown = row_of(estimate, variance, conf_level)
    inner = row_of(estimate, variance, 2 * conf_level - 1) if conf_level > 0.5 else {}
    return verdict(
        shown.get("conf_low"),
        shown.get("conf_high"),
        margin=margin,
        inner=(inner["conf_low"], inner["conf_high"]) if inner else None,
        higher_is_better=higher_is_better,
    )
