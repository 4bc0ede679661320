"""Coverage of the default intervals, and size of the permutation test, in simulated studies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.simulate import SimulatedScores, simulate_scores


def pooled(frame: pl.DataFrame | None) -> dict[str, Any]:
    assert frame is not None
    return frame.filter(pl.col("model").is_null()).row(0, named=True)


@pytest.mark.slow
@pytest.mark.parametrize("scenarios", [12, 40])
def test_coverage_and_size(scenarios: int) -> None:
    """2,000 studies without a difference; binomial error bands of four standard errors around targets.

    Targets: at most 5 % rejections of the permutation test, coverage of the difference by t between
    93 and 98 %, of the rate by Korn-Graubard plus two at least 95 %.
    """
    rng = np.random.default_rng(scenarios)
    studies = 2_000
    rejected = covered = rate_covered = 0
    grid = np.random.default_rng(0).normal(scale=1.5, size=200_000)
    truth = float((1 / (1 + np.exp(-1.0 - grid))).mean())
    names = [f"s{s:03}" for s in range(scenarios)]
    for _ in range(studies):
        p = 1 / (1 + np.exp(-1.0 - rng.normal(scale=1.5, size=scenarios)))
        frame = pl.DataFrame(
            {
                "scenario": names * 6,
                "model": [f"m{m}" for m in range(3) for _ in range(2 * scenarios)],
                "condition": ["a"] * scenarios
                + ["b"] * scenarios
                + (["a"] * scenarios + ["b"] * scenarios) * 2,
                "score": (rng.random((6, scenarios)) < p).astype(float).ravel(),
            }
        )
        fit = ts.analyze(frame, n_resamples=199, seed=int(rng.integers(2**32)))
        row, rate = pooled(fit.contrasts), pooled(fit.rates)
        rejected += row["p_value"] <= 0.05
        if row["conf_low"] is not None:
            covered += row["conf_low"] <= 0 <= row["conf_high"]
        rate_covered += rate["conf_low"] <= truth <= rate["conf_high"]
    band = 4 * math.sqrt(0.05 * 0.95 / studies)
    assert rejected / studies < 0.05 + band
    assert 0.93 - band < covered / studies < 0.98 + band
    assert rate_covered / studies > 0.95 - band


@pytest.mark.slow
@pytest.mark.parametrize(("models", "effect"), [(1, 0.0), (3, 0.8)])
def test_smoke_coverage_of_the_default_interval(models: int, effect: float) -> None:
    """20 scenarios, two conditions, scenario-by-condition effects: the difference is covered 92 to 98 %.

    The truth is the difference of the superpopulation rates, by quadrature.
    """
    studies = 1_500
    covered = 0
    for seed in range(studies):
        study = simulate_scores(
            20,
            n_models=models,
            n_repetitions=2,
            condition_effects=[0.0, effect],
            scenario_sd=1.0,
            scenario_condition_sd=0.7,
            seed=seed,
        )
        row = pooled(ts.analyze(study.scores, n_resamples=39, seed=seed).contrasts)
        covered += row["conf_low"] <= truth_of(study) <= row["conf_high"]
    band = 3 * math.sqrt(0.05 * 0.95 / studies)
    assert 0.92 - band < covered / studies < 0.98 + band


def truth_of(study: SimulatedScores) -> float:
    """Superpopulation difference c2 - c1, models averaged."""
    rows = study.truth.contrasts.filter(
        (pl.col("population") == "superpopulation")
        & (pl.col("contrast") == "c2 - c1")
        & pl.col("model").is_null()
    )
    return float(rows["correct"][0])
