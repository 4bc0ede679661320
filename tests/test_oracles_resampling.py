"""Bootstrap readings against R's boot with supplied resamples, from the reference data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from triagestats import intervals

EXACT_PROBABILITY = 1e-12  # the same normal quantiles, by two routes

SUPPLIED = [
    "boot_supplied_mean_B20",
    "boot_supplied_mean_B199",
    "boot_supplied_median_B199",
    "boot_supplied_sd_B20",
    "boot_supplied_sd_B199",
    "boot_supplied_trim_B199",
]


@pytest.fixture(scope="module")
def oracle(shared: Callable[[str], Path]) -> dict[str, dict[str, Any]]:
    fixtures = json.loads(shared("oracles/bootstrap.json").read_text())["fixtures"]
    return {fixture["name"]: fixture for fixture in fixtures}


def column(values: list[float]) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def close(fixture: dict[str, Any], expected: float) -> Any:
    return pytest.approx(expected, rel=fixture["tolerance"]["rtol"], abs=fixture["tolerance"]["atol"])


@pytest.mark.parametrize("level", ["ci90", "ci95"])
@pytest.mark.parametrize("name", SUPPLIED)
def test_percentile_ends(oracle: dict[str, dict[str, Any]], name: str, level: str) -> None:
    fixture = oracle[name]
    expected = fixture["expected"]
    ends = intervals.percentile(column(expected["t"]), int(level[2:]) / 100)
    assert [ends.low[0], ends.high[0]] == [close(fixture, end) for end in expected[level]["percentile_type6"]]


@pytest.mark.parametrize("level", ["ci90", "ci95"])
@pytest.mark.parametrize("name", SUPPLIED)
def test_bca_ends(oracle: dict[str, dict[str, Any]], name: str, level: str) -> None:
    """Quantiles of type 6 at the oracle's probabilities with ties counted half."""
    fixture = oracle[name]
    expected = fixture["expected"]
    replicates = column(expected["t"])
    jackknife = column(expected["jackknife"])
    ends = intervals.bca(
        np.array([expected["t0"]], dtype=float),
        replicates,
        jackknife,
        np.ones(jackknife.shape, dtype=bool),
        int(level[2:]) / 100,
    )
    type_6 = np.quantile(replicates[:, 0], expected[level]["bca_alpha_midrank"], method="weibull")
    assert [ends.low[0], ends.high[0]] == [close(fixture, end) for end in type_6]
    type_7 = np.quantile(replicates[:, 0], expected[level]["bca_alpha_midrank"])
    assert list(type_7) == [close(fixture, end) for end in expected[level]["bca_type7_midrank"]]


@pytest.mark.parametrize("name", SUPPLIED)
def test_jackknife_error(oracle: dict[str, dict[str, Any]], name: str) -> None:
    fixture = oracle[name]
    jackknife = column(fixture["expected"]["jackknife"])
    variance, size = intervals.jackknife_error(jackknife, np.ones(jackknife.shape, dtype=bool))
    assert size[0] == 8
    assert variance[0] ** 0.5 == close(fixture, fixture["expected"]["jackknife_se"])


def test_resampled_clusters_keep_their_rows(oracle: dict[str, dict[str, Any]]) -> None:
    """Pooled and mean of means, from totals of clusters of unequal size."""
    fixture = oracle["boot_cluster_supplied"]
    clusters, expected = fixture["input"]["clusters"], fixture["expected"]
    totals = np.array([[sum(c), len(c), sum(c) / len(c), 1] for c in clusters])
    draws = np.array(fixture["input"]["cluster_draws_0based"])
    counts = np.stack([np.bincount(draw, minlength=5) for draw in draws])
    sums = counts @ totals
    assert list(sums[:, 0] / sums[:, 1]) == [close(fixture, x) for x in expected["t_pooled"]]
    assert list(sums[:, 2] / sums[:, 3]) == [close(fixture, x) for x in expected["t_mean_of_means"]]
    rest = totals.sum(axis=0) - totals
    without = rest[:, 0] / rest[:, 1]
    assert list(without) == [close(fixture, x) for x in expected["jackknife_clusters_pooled"]]
    # The acceleration shows in the upper end of replicates that are symmetric about the estimate.
    estimate = np.array([expected["t0_pooled"]])
    grid = np.linspace(-1, 1, 9_999)[:, None] + estimate
    ends = intervals.bca(estimate, grid, without[:, None], np.ones((5, 1), dtype=bool), 0.9)
    z = stats.norm.ppf(0.95)
    probability = stats.norm.cdf(z / (1 - expected["acceleration_clusters"] * z))
    assert (ends.high[0] - estimate[0] + 1) / 2 * 9_998 + 1 == pytest.approx(
        probability * 10_000, rel=1e6 * EXACT_PROBABILITY
    )  # ranks are rounded to nine decimals


@pytest.mark.parametrize("name", ["boot_degenerate_constant", "boot_degenerate_two_values_t0_extreme"])
def test_degenerate_bca_is_undefined(oracle: dict[str, dict[str, Any]], name: str) -> None:
    fixture = oracle[name]
    x = np.array(fixture["input"]["x"], dtype=float)
    statistic = np.max if fixture["options"]["statistic"] == "max" else np.mean
    without = column([float(statistic(np.delete(x, place))) for place in range(len(x))])
    replicates = column(fixture["expected"]["t"])
    all_carry = np.ones(without.shape, dtype=bool)
    ends = intervals.percentile(replicates, 0.95)
    assert [ends.low[0], ends.high[0]] == fixture["expected"]["percentile"]
    ends = intervals.bca(np.array([statistic(x)]), replicates, without, all_carry, 0.95)
    assert fixture["expected"]["bca"] is None
    assert np.isnan([ends.low[0], ends.high[0]]).all()
