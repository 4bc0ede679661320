"""The reading of an interval against zero and a margin."""

from __future__ import annotations

import math

from triagestats.schema import Verdict

__all__ = ["verdict"]


def verdict(
    low: float | None,
    high: float | None,
    *,
    margin: float | None = None,
    inner: tuple[float, float] | None = None,
    higher_is_better: bool = True,
) -> Verdict:
    """What an interval of a contrast says.

    `equivalent` if the 1 - 2 alpha interval lies within +- margin, else `better` or `worse` if the
    interval lies beyond 0, else `not worse` if its worse end lies above -margin, else `undecided`.

    Parameters
    ----------
    low, high
        The displayed interval; None or NaN where it is withheld, which leaves `undecided`.
    margin
        The smallest difference that matters, on the scale of the scores.
    inner
        The 1 - 2 alpha interval; needed for `equivalent`.
    higher_is_better
        Orientation; with False a negative contrast is the better one.

    Examples
    --------
    >>> from triagestats.verdicts import verdict
    >>> verdict(-0.02, 0.14), verdict(0.01, 0.06)
    ('undecided', 'better')
    >>> verdict(-0.01, 0.02, margin=0.05, inner=(-0.005, 0.015))
    'equivalent'
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "undecided"
    if margin is not None and inner is not None and -margin < inner[0] and inner[1] < margin:
        return "equivalent"
    if not higher_is_better:
        low, high = -high, -low
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    if margin is not None and low > -margin:
        return "not worse"
    return "undecided"
