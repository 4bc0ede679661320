"""Two one-sided tests of a difference of proportions at margins, on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from triagestats.score_intervals import Independent, difference_score, tango_score

__all__ = ["OneSided", "score_tests", "tango_tests", "wald_tests"]


@dataclass(frozen=True, slots=True)
class OneSided:
    """The two one-sided tests at a lower and an upper margin.

    Attributes
    ----------
    z_lower, z_upper
        Statistic of the test that the difference is the lower, or upper, margin; None where undefined.
    """

    z_lower: float | None
    z_upper: float | None

    @property
    def p_lower(self) -> float | None:
        """Of the test that the difference is above the lower margin: non-inferiority."""
        return None if self.z_lower is None else float(ndtr(-self.z_lower))

    @property
    def p_upper(self) -> float | None:
        """Of the test that the difference is below the upper margin."""
        return None if self.z_upper is None else float(ndtr(self.z_upper))

    @property
    def p_value(self) -> float | None:
        """Of the test that the difference lies between the margins: the larger one."""
        lower, upper = self.p_lower, self.p_upper
        return None if lower is None or upper is None else max(lower, upper)


def tango_tests(b: int, c: int, n: int, low: float, high: float) -> OneSided:
    """Tests of Tango for paired proportions at both margins.

    Examples
    --------
    >>> from triagestats.margin_tests import tango_tests
    >>> round(tango_tests(0, 0, 40, -0.05, 0.05).p_value, 3)
    0.073
    """
    return OneSided(tango_score(b, c, n, low), tango_score(b, c, n, high))


def score_tests(
    count1: int,
    nobs1: int,
    count2: int,
    nobs2: int,
    low: float,
    high: float,
    *,
    method: Independent = "miettinen-nurminen",
) -> OneSided:
    """Score tests for independent proportions at both margins.

    Examples
    --------
    >>> from triagestats.margin_tests import score_tests
    >>> round(score_tests(50, 50, 50, 50, -0.1, 0.1).p_value, 4)
    0.0095
    """
    z_lower, z_upper = (
        difference_score(count1, nobs1, count2, nobs2, margin, method=method) for margin in (low, high)
    )
    return OneSided(z_lower, z_upper)


def wald_tests(count1: int, nobs1: int, count2: int, nobs2: int, low: float, high: float) -> OneSided:
    """Wald tests for independent proportions at both margins, with the unpooled standard error.

    Undefined where that is 0: a difference without error would be equivalent at any margin.

    Examples
    --------
    >>> from triagestats.margin_tests import wald_tests
    >>> round(wald_tests(80, 100, 78, 100, -0.1, 0.1).p_value, 4)
    0.0824
    >>> wald_tests(50, 50, 50, 50, -0.1, 0.1).p_value is None
    True
    """
    p1, p2 = count1 / nobs1, count2 / nobs2
    error = math.sqrt(p1 * (1 - p1) / nobs1 + p2 * (1 - p2) / nobs2)
    if error == 0:
        return OneSided(None, None)
    return OneSided((p1 - p2 - low) / error, (p1 - p2 - high) / error)
