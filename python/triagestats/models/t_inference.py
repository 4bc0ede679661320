"""What follows from an estimate, its variance and degrees of freedom by the t distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError

__all__ = ["UNKNOWN", "Inference", "hypothesis", "inference_of"]


@dataclass(frozen=True, slots=True)
class Inference:
    """Standard error, degrees of freedom, t, two-sided p-value and interval; all None where undefined."""

    std_error: float | None = None
    df: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    conf_low: float | None = None
    conf_high: float | None = None


UNKNOWN = Inference()


def hypothesis(value: object) -> float:
    """The value that a coefficient has under the hypothesis, if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"`value` must be a number; got {value!r}")
    if not math.isfinite(value):
        raise ArgumentError(f"`value` must be finite; got {value!r}")
    return float(value)


def inference_of(
    estimate: float, variance: float, df: float, conf_level: float, *, value: float = 0.0
) -> Inference:
    """The t test that an estimate has a value, and its interval.

    Parameters
    ----------
    estimate, variance
        Of one coefficient or combination; the variance is positive.
    df
        Degrees of freedom, whole or not.
    conf_level
        Level of the interval.
    value
        The value under the hypothesis.
    """
    from scipy import stats

    error = math.sqrt(variance)
    statistic = (estimate - value) / error
    half = float(stats.t.isf((1 - conf_level) / 2, df)) * error
    return Inference(
        std_error=error,
        df=df,
        statistic=statistic,
        p_value=2 * float(stats.t.sf(abs(statistic), df)),
        conf_low=estimate - half,
        conf_high=estimate + half,
    )
