"""Hodges-Lehmann estimates and their intervals: by definition, by inversion of the test, and by search."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

import triagestats as ts
from triagestats import walsh

Refusal = Callable[[Callable[[], object]], str]

SAME = 1e-12  # averages of floats in another order
PLANTS = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]


def averages(d: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_median_of_all_averages(seed: int) -> None:
    d = np.random.default_rng(seed).integers(-4, 9, 17).astype(float)
    assert ts.hodges_lehmann(d).estimate == np.median(averages(d))
    x, y = d[:9], d[9:] + 0.5
    shift = ts.hodges_lehmann(x, y, paired=False)
    assert shift.estimate == np.median(np.subtract.outer(x, y))


@pytest.mark.parametrize("conf_level", [0.8, 0.95, 0.99])
def test_the_interval_holds_the_shifts_that_are_not_rejected(conf_level: float) -> None:
    d = np.random.default_rng(4).normal(size=12)
    result = ts.hodges_lehmann(d, conf_level=conf_level)
    cuts = averages(d)
    between = (cuts[1:] + cuts[:-1]) / 2
    kept = [float(theta) for theta in between if stats.wilcoxon(d - theta).pvalue > 1 - conf_level]
    assert result.conf_low == pytest.approx(cuts[cuts < min(kept)].max(), abs=SAME)
    assert result.conf_high == pytest.approx(cuts[cuts > max(kept)].min(), abs=SAME)


def test_the_shift_interval_holds_the_shifts_that_are_not_rejected() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=8), rng.normal(size=7)
    result = ts.hodges_lehmann(x, y, paired=False)
    cuts = np.sort(np.subtract.outer(x, y).ravel())
    between = (cuts[1:] + cuts[:-1]) / 2
    kept = [float(theta) for theta in between if stats.mannwhitneyu(x - theta, y).pvalue > 0.05]
    assert result.conf_low == pytest.approx(cuts[cuts < min(kept)].max(), abs=SAME)
    assert result.conf_high == pytest.approx(cuts[cuts > max(kept)].min(), abs=SAME)


def test_the_level_attained_is_the_coverage_over_all_signs() -> None:
    """Given the sizes, all signs are as likely for a center of 0: the share of intervals that hold it."""
    sizes = np.array([0.3, 1.1, 1.9, 2.4, 4.2, 5.5, 7.3])
    found = [ts.hodges_lehmann(sizes * signs, conf_level=0.9) for signs in product((1, -1), repeat=7)]
    held = [
        r.conf_low <= 0 <= r.conf_high for r in found if r.conf_low is not None and r.conf_high is not None
    ]
    assert np.mean(held) == found[0].details["level_attained"]
    assert np.mean(held) >= 0.9


def test_closed_ends_cover_under_ties() -> None:
    sizes = np.array([1.0, 1, 1, 2, 2, 3, 3, 3])
    found = [ts.hodges_lehmann(sizes * signs, conf_level=0.9) for signs in product((1, -1), repeat=8)]
    held = [r.conf_low is None or r.conf_high is None or r.conf_low <= 0 <= r.conf_high for r in found]
    assert np.mean(held) >= 0.9


def test_intervals_of_plants() -> None:
    result = ts.hodges_lehmann(PLANTS)
    assert (result.estimate, result.conf_low, result.conf_high) == (25.0, 4.0, 41.5)
    assert (result.statistic, result.p_value) == (None, None)
    assert "exact" in result.method
    signed = ts.wilcoxon_signed_rank(PLANTS)
    assert (signed.estimate, signed.conf_low, signed.conf_high) == (25.0, 4.0, 41.5)
    normal = ts.hodges_lehmann(PLANTS, method="normal")
    assert normal.details["level_attained"] is None
    assert "normal" in normal.method


@pytest.mark.parametrize("tied", [False, True])
def test_a_search_finds_what_a_list_holds(monkeypatch: pytest.MonkeyPatch, tied: bool) -> None:
    rng = np.random.default_rng(2)
    d = rng.normal(size=70)
    d = np.round(d) if tied else d
    x, y = d[:40], d[40:]
    exact = (True, False)
    listed = [walsh.pseudo_median(d, 0.95, exact=e, correction=False) for e in exact]
    listed += [walsh.shift(x, y, 0.95, exact=e, correction=False) for e in exact]
    monkeypatch.setattr(walsh, "_LISTED", 0)
    searched = [walsh.pseudo_median(d, 0.95, exact=e, correction=False) for e in exact]
    searched += [walsh.shift(x, y, 0.95, exact=e, correction=False) for e in exact]
    for one, other in zip(listed, searched, strict=True):
        assert one.estimate == pytest.approx(other.estimate, abs=SAME)
        assert (one.low, one.high) == (
            pytest.approx(other.low, abs=SAME),
            pytest.approx(other.high, abs=SAME),
        )


def test_many_values_are_searched() -> None:
    d = np.random.default_rng(1).normal(size=2100) + 0.25
    result = ts.hodges_lehmann(d)
    assert result.estimate == pytest.approx(np.median(averages(d)), abs=SAME)
    assert result.conf_low is not None
    assert result.conf_high is not None
    assert result.conf_low < 0.25 < result.conf_high


def test_values_shift_and_scale() -> None:
    one = ts.hodges_lehmann(PLANTS)
    other = ts.hodges_lehmann([3 - 2 * value for value in PLANTS])
    assert one.estimate is not None
    assert one.conf_low is not None
    assert one.conf_high is not None
    assert (other.estimate, other.conf_low, other.conf_high) == (
        3 - 2 * one.estimate,
        3 - 2 * one.conf_high,
        3 - 2 * one.conf_low,
    )


def test_too_few_values_for_a_level() -> None:
    result = ts.hodges_lehmann([1, 2, 3, 4, 5])
    assert (result.conf_low, result.conf_high, result.details["level_attained"]) == (1.0, 5.0, 0.9375)
    assert result.conf_level == 0.9375
    note = next(note for note in result.notes if note.code == "conf_level")
    assert "5 values are too few for a 95 % interval; the widest one, of level 93.75 %" in note.message


@pytest.mark.parametrize("d", [[2.0], [2.0, 2.0, 2.0], [0.0] * 40 + [1.0] * 5 + [-1.0] * 5])
def test_no_interval_without_width(d: list[float]) -> None:
    result = ts.hodges_lehmann(d)
    assert result.estimate == np.median(averages(np.array(d)))
    assert (result.conf_low, result.conf_high, result.conf_level) == (None, None, None)
    assert any(note.code == "degenerate" for note in result.notes)


def test_zeros_can_be_dropped() -> None:
    d = [0, 0, 0, 1, 1, 2, -1, 3, 2, 1, 4, -2]
    assert ts.hodges_lehmann(d).estimate == 1.0
    assert ts.hodges_lehmann(d, zeros="drop").estimate == 1.5
    none = ts.hodges_lehmann([0, 0], zeros="drop")
    assert none.estimate is None
    assert none.undefined is not None


def test_groups_of_a_table() -> None:
    table = {"score": [3, 5, 4, 1, 2, 2], "format": ["b", "b", "b", "a", "a", "a"]}
    result = ts.hodges_lehmann("score", groups="format", data=table, paired=False)
    assert (result.contrast, result.estimate, result.n) == ("b - a", 2.0, 6)
    clustered = ts.hodges_lehmann(
        "score", groups="format", data=table, paired=False, clusters="score", method="exact"
    )
    assert any(note.code == "independence" for note in clustered.notes)


def test_refusals(refusal: Refusal) -> None:
    assert "paired=False" in refusal(lambda: ts.hodges_lehmann([1, 2], groups=[1, 2]))
    assert "`zeros='drop'` is for paired" in refusal(
        lambda: ts.hodges_lehmann([1, 2], [3], paired=False, zeros="drop")
    )
    assert "method='normal'" in refusal(lambda: ts.hodges_lehmann([1], correction=True, method="exact"))
    assert "`conf_level` must lie between 0 and 1; got 95; did you mean 0.95?" in refusal(
        lambda: ts.hodges_lehmann([1], conf_level=95)
    )
    assert "would take too long for 3,000 values" in refusal(
        lambda: ts.hodges_lehmann(range(3000), method="exact")
    )
