"""What follows from an estimate, its variance and degrees of freedom by the t distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["UNKNOWN", "Inference", "inference_of"]


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


def inference_of(estimate: float, variance: float, df: float, conf_level: float) -> Inference:
    """The t test that an estimate is 0, and its interval.

    Parameters
    ----------
    estimate, variance
        Of one coefficient or combination; the variance is positive.
    df
        Degrees of freedom, whole or not.
    conf_level
        Level of the interval.
    """
    from scipy import stats

    error = math.sqrt(variance)
    half = float(stats.t.isf((1 - conf_level) / 2, df)) * error
    return Inference(
        std_error=error,
        df=df,
        statistic=estimate / error,
        p_value=2 * float(stats.t.sf(abs(estimate / error), df)),
        conf_low=estimate - half,
        conf_high=estimate + half,
    )
