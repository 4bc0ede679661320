"""What rows, and cells, taken as independent would have said, against scipy's paired t test."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts

CLOSE = 1e-12  # the same formula by another library


def table(seed: int = 1) -> tuple[pl.DataFrame, np.ndarray]:
    """Ten scenarios, two conditions, three paired repetitions: scores (10, 2, 3) and their rows."""
    scores = np.random.default_rng(seed).normal(size=(10, 2, 3))
    s, c, r = (index.ravel() for index in np.indices(scores.shape))
    frame = pl.DataFrame(
        {
            "scenario": [f"s{place}" for place in s],
            "condition": ["ab"[place] for place in c],
            "repetition": r,
            "score": scores.ravel(),
        }
    )
    return frame, scores


def readings(fit: ts.Analysis) -> dict[str, dict]:
    assert fit.tests is not None
    rows = fit.tests.filter(pl.col("method").str.ends_with("as independent, t"))
    return {row["method"].split(" as ")[0]: row for row in rows.iter_rows(named=True)}


def test_rows_and_cells_are_paired_t_tests() -> None:
    frame, scores = table()
    found = readings(ts.analyze(frame, n_resamples=9))
    rows = (scores[:, 1] - scores[:, 0]).ravel()
    cells = (scores[:, 1] - scores[:, 0]).mean(axis=1)
    assert set(found) == {"rows", "cells"}
    for name, values in (("rows", rows), ("cells", cells)):
        expected = stats.ttest_1samp(values, 0)
        row = found[name]
        assert row["estimate"] == pytest.approx(fmean(values), abs=CLOSE)
        assert row["std_error"] == pytest.approx(stats.sem(values), rel=CLOSE)
        assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)  # another t distribution
        assert (row["df"], row["n_rows"]) == (len(values) - 1, len(values))


def test_one_repetition_leaves_rows_alone() -> None:
    frame, _ = table()
    assert set(readings(ts.analyze(frame.filter(pl.col("repetition") == 0), n_resamples=9))) == {"rows"}


def test_rounding_is_no_spread() -> None:
    """Every row differs by .1 up to its last bit: an error of 1e-17 would make p = 0."""
    frame, _ = table()
    base = pl.col("scenario").str.slice(1).cast(pl.Float64) / 7
    frame = frame.with_columns((base + 0.1 * (pl.col("condition") == "b")).alias("score"))
    assert readings(ts.analyze(frame, n_resamples=9)) == {}
