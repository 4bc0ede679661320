"""How far numbers may differ and still count as equal, each for one purpose; and the least probability."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["MASS", "OFF_LATTICE", "ROUNDING", "SMALLEST", "TIES"]

TIES: Final = 1e-10
"""Values of a statistic tie when they agree to ten significant digits."""
ROUNDING: Final = 1e-12
"""Below this share of the means that it is made of, a difference is rounding."""
OFF_LATTICE: Final = 1e-9
"""How far a value may lie from a multiple of the step, relative to the largest value."""
MASS: Final = 1e-12
"""Slack on a probability that is a sum of masses."""
SMALLEST: Final = sys.float_info.min
"""Chance of what was observed where it is too small for a float: it happened, so that it is not 0."""
