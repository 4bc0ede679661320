"""Verdicts: the reading of an interval against zero and a margin."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triagestats.verdicts import verdict

NAN = math.nan


@pytest.mark.parametrize(
    ("low", "high", "options", "expected"),
    [
        (0.01, 0.06, {}, "better"),
        (-0.06, -0.01, {}, "worse"),
        (-0.01, 0.06, {}, "undecided"),
        (0.0, 0.06, {}, "undecided"),
        (-0.06, 0.0, {}, "undecided"),
        (0.01, 0.06, {"higher_is_better": False}, "worse"),
        (-0.06, -0.01, {"higher_is_better": False}, "better"),
        # The 1 - 2 alpha interval decides equivalence, even where the displayed one is beyond 0.
        (0.01, 0.06, {"margin": 0.06, "inner": (0.02, 0.05)}, "equivalent"),
        (0.01, 0.06, {"margin": 0.05, "inner": (0.02, 0.05)}, "better"),
        (-0.06, 0.01, {"margin": 0.05, "inner": (-0.05, 0.0)}, "undecided"),
        (-0.04, 0.09, {"margin": 0.05, "inner": (-0.03, 0.08)}, "not worse"),
        (-0.05, 0.09, {"margin": 0.05, "inner": (-0.04, 0.08)}, "undecided"),
        (-0.09, 0.04, {"margin": 0.05, "inner": (-0.08, 0.03), "higher_is_better": False}, "not worse"),
        (-0.04, 0.09, {"margin": 0.05, "inner": (-0.03, 0.08), "higher_is_better": False}, "undecided"),
        (-0.09, -0.01, {"margin": 0.1, "inner": (NAN, NAN)}, "worse"),
        (-0.04, 0.04, {"margin": 0.05}, "not worse"),
        (None, None, {"margin": 0.05}, "undecided"),
        (NAN, NAN, {"margin": 0.05, "inner": (NAN, NAN)}, "undecided"),
    ],
)
def test_by_hand(low: float | None, high: float | None, options: dict[str, Any], expected: str) -> None:
    assert verdict(low, high, **options) == expected


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0.01, 1), st.booleans())
def test_swapping_the_sides_turns_better_into_worse(
    center: float, half: float, margin: float, higher: bool
) -> None:
    inner = (center - half / 2, center + half / 2)
    one = verdict(center - half, center + half, margin=margin, inner=inner, higher_is_better=higher)
    other = verdict(
        -center - half, -center + half, margin=margin, inner=(-inner[1], -inner[0]), higher_is_better=higher
    )
    swapped = {"better": "worse", "worse": "better", "equivalent": "equivalent"}
    if one in swapped:
        assert other == swapped[one]
    else:
        assert other in ("undecided", "not worse")
    turned = verdict(center - half, center + half, margin=margin, inner=inner, higher_is_better=not higher)
    assert turned == other
