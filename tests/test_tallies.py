"""Counts of responses, and moments of all values from those of parts."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triagestats as ts
from triagestats.design import design_of
from triagestats.tallies import Moments, pooled, tally_of

CLOSE = 1e-12  # a few dozen numbers, added in another order


def parts_of(values: list[list[float]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "scored": [len(part) for part in values],
            "mean": [float(np.mean(part)) if part else None for part in values],
            "squares": [
                float(np.sum((np.array(part) - np.mean(part)) ** 2)) if part else 0.0 for part in values
            ],
        },
        schema={"scored": pl.Int64, "mean": pl.Float64, "squares": pl.Float64},
    )


def test_moments_by_hand() -> None:
    found = pooled(parts_of([[1.0, 3.0], [], [8.0]]))
    assert found == Moments(3, 4.0, 26.0)
    assert found.deviation == pytest.approx(math.sqrt(13), rel=CLOSE)


def test_nothing_has_no_moments() -> None:
    found = pooled(parts_of([[], []]))
    assert found.n == 0
    assert math.isnan(found.mean)
    assert math.isnan(found.deviation)


@given(st.lists(st.lists(st.floats(-1e3, 1e3), max_size=6), min_size=1, max_size=6))
def test_moments_are_those_of_all_values(values: list[list[float]]) -> None:
    everything = np.array([value for part in values for value in part])
    found = pooled(parts_of(values))
    assert found.n == len(everything)
    if found.n > 1:
        scale = float(np.abs(everything).max())
        assert found.mean == pytest.approx(everything.mean(), rel=CLOSE, abs=CLOSE * scale)
        spread = float(((everything - everything.mean()) ** 2).sum())
        assert found.squares == pytest.approx(spread, rel=1e-9, abs=CLOSE * scale**2)  # squares of rounding


def test_a_large_mean_cancels_nothing() -> None:
    found = pooled(parts_of([[1e9, 1e9 + 1], [1e9 + 2]]))
    assert found.deviation == pytest.approx(1.0, rel=1e-6)  # 1e9 leaves seven digits of a difference of 1


def test_a_tally_by_hand() -> None:
    table = ts.ResponseTable(
        {
            "scenario": ["a", "a", "a", "b", "b"],
            "model": ["m", "m", "n", "m", "n"],
            "rep": [1, 2, 1, 1, 1],
            "score": [1.0, 0.0, None, 1.0, 1.0],
        }
    )
    tally = tally_of(design_of(table), 5, None)
    assert (tally.n_rows, tally.n_cells, tally.n_judges) == (5, 3, None)
    counts = tally.responses.select("model", "status", "responses", "scored", "total", "mean", "squares")
    assert counts.rows() == [
        (0, "ok", 3, 3, 2.0, pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (1, "missing", 1, 0, 0.0, None, 0.0),
        (1, "ok", 1, 1, 1.0, 1.0, 0.0),
    ]
    assert tally.of(model=1)["responses"].sum() == 2
    assert tally.of(level=0, model=0)["scored"].sum() == 3
