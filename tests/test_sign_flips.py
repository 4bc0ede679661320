"""Sign flips by cluster: intervals against the test by enumeration, and the tests that read them."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest
from scipy import stats

import triagestats as ts
from triagestats.clustered_rates import clustered_rate
from triagestats.results import Alternative

CLOSE = 1e-9  # averages of tenths
EXACT = 1e-12  # shares of whole numbers of arrangements
ALTERNATIVES: tuple[Alternative, ...] = get_args(Alternative)

Array = np.ndarray


def codes_of(result: ts.Test) -> list[str]:
    return [note.code for note in result.notes]


def tail(d: Array, clusters: Array, shift: float, *, upper: bool) -> float:
    """P(T* >= T), or P(T* <= T), of the signed ranks of d - shift over all signs, by definition."""
    moved = np.round(d - shift, 9)
    ranks = np.where(moved == 0, 0.0, stats.rankdata(np.abs(moved))) * np.sign(moved)
    sums = np.bincount(clusters, weights=ranks)
    null = np.array(list(product((1, -1), repeat=len(sums)))) @ np.abs(sums)
    own = sums.sum()
    return float(np.mean(null >= own - CLOSE) if upper else np.mean(null <= own + CLOSE))


def inverted(d: Array, clusters: Array, level: float) -> tuple[float, float] | None:
    """The closed hull of the shifts that neither side rejects; None if all, none or one is inside."""
    i, j = np.triu_indices(len(d))
    averages = np.unique(np.round((d[i] + d[j]) / 2, 9))
    between = (averages[1:] + averages[:-1]) / 2
    shifts = np.sort(np.concatenate([[averages[0] - 1], averages, between, [averages[-1] + 1]]))
    alpha = (1 - level) / 2
    inside = [min(tail(d, clusters, s, upper=up) for up in (True, False)) > alpha for s in shifts]
    if inside[0] or not any(inside):
        return None
    held = shifts[inside]
    low = averages[averages <= held.min() + CLOSE].max()
    high = averages[averages >= held.max() - CLOSE].min()
    return (float(low), float(high)) if low < high else None


@pytest.mark.parametrize("part", range(10))
def test_the_interval_is_the_inverted_test(part: int) -> None:
    """40 tied sets each, by all signs at every average and between them; mirrored where signs change."""
    rng = np.random.default_rng(part)
    for _ in range(40):
        n = int(rng.integers(6, 14))
        d = rng.integers(-3, 5, n) / rng.choice([1, 2, 10])
        clusters = np.unique(rng.integers(0, 6, n), return_inverse=True)[1]
        if not d.any() or clusters.max() < 1:
            continue
        level = float(rng.choice([0.5, 0.8, 0.9]))
        expected = inverted(d, clusters, level)
        result = ts.wilcoxon_signed_rank(d, clusters=clusters, conf_level=level)
        mirrored = ts.wilcoxon_signed_rank(-d, clusters=clusters, conf_level=level)
        if expected is None:
            assert result.conf_low is result.conf_high is mirrored.conf_low is None
            assert "degenerate" in codes_of(result)
            continue
        assert (result.conf_low, result.conf_high) == pytest.approx(expected, abs=CLOSE)
        assert mirrored.conf_low is not None
        assert mirrored.conf_high is not None
        assert (-mirrored.conf_high, -mirrored.conf_low) == (result.conf_low, result.conf_high)


def test_an_estimate_that_is_the_last_one_inside() -> None:
    d, clusters = np.array([0] * 30 + [-1] * 4 + [1] * 2), np.arange(36) % 12
    for side in (d, -d):
        result = ts.wilcoxon_signed_rank(side, clusters=clusters)
        assert (result.estimate, result.conf_low, result.conf_high) == (0.0, None, None)
        assert codes_of(result) == ["zeros", "degenerate"]
        assert codes_of(ts.wilcoxon_signed_rank(side)) == ["zeros", "degenerate"]


def test_hodges_lehmann_has_the_interval_of_the_flips() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(9), 3)
    d = np.round(rng.normal(size=9)[clusters] + rng.normal(size=27) + 0.4, 1)
    result, test = ts.hodges_lehmann(d, clusters=clusters), ts.wilcoxon_signed_rank(d, clusters=clusters)
    assert (result.estimate, result.conf_low, result.conf_high) == (
        test.estimate,
        test.conf_low,
        test.conf_high,
    )
    assert result.method == "Hodges-Lehmann estimate, interval by sign flips by cluster"
    assert (result.details["interval"], result.details["n_clusters"]) == ("sign flips by cluster", 9)
    assert codes_of(result) == []
    zeros = ts.hodges_lehmann(np.append(d, [0.0, 0.0]), clusters=np.append(clusters, [0, 9]), zeros="drop")
    assert (zeros.conf_low, zeros.conf_high) == (result.conf_low, result.conf_high)
    named = ts.hodges_lehmann(d, clusters=clusters, method="exact")
    assert codes_of(named) == ["independence"]
    assert (named.conf_low, named.conf_high) != (result.conf_low, result.conf_high)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_signs_are_flipped_by_cluster(alternative: Alternative) -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(8), 4)
    d = np.sign(rng.normal(size=8)[clusters] + rng.normal(size=32) + 0.5) * (rng.random(32) > 0.1)
    result = ts.sign_test(d, clusters=clusters, alternative=alternative)
    sums = np.bincount(clusters, weights=d)
    null = np.array(list(product((1, -1), repeat=8))) @ np.abs(sums)
    own = sums.sum()
    extreme = {
        "greater": null >= own,
        "less": null <= own,
        "two-sided": np.abs(null) >= abs(own),
    }[alternative]
    assert result.p_value == pytest.approx(extreme.mean(), abs=EXACT)
    assert result.estimate == np.mean(d[d != 0] > 0)
    rate = clustered_rate((d[d != 0] > 0).astype(float), clusters[d != 0], 0.95)
    assert (result.conf_low, result.conf_high) == (rate.low, rate.high)
    assert "sign flips by cluster" in result.method
    assert (result.details["n_clusters"], result.details["way"]) == (8, "enumeration")
    plain = ts.sign_test(d, alternative=alternative)
    again = ts.sign_test(d, clusters=clusters, alternative=alternative, method="exact")
    assert again.p_value == plain.p_value
    assert "independence" in codes_of(again)


def test_signs_that_are_all_zero() -> None:
    result = ts.sign_test([0, 0, 0], clusters=[1, 1, 2])
    assert (result.p_value, result.estimate, result.conf_low) == (1.0, None, None)
    assert codes_of(result) == ["undefined"]
