"""Midranks under float noise, and exact laws of rank sums against enumeration."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from triagestats import midranks as m
from triagestats.sign_sums import sign_p_value

EXACT = 1e-13  # sums of at most a few thousand masses

Array = np.ndarray


def tied(rng: np.random.Generator, size: int) -> Array:
    return rng.integers(-3, 4, size).astype(float)


@pytest.mark.parametrize("seed", range(20))
def test_midranks_are_those_of_scipy(seed: int) -> None:
    values = tied(np.random.default_rng(seed), 12)
    assert m.midranks(values).tolist() == stats.rankdata(values).tolist()


def test_noise_breaks_no_ties() -> None:
    values = np.array([0.1 + 0.2, 0.3, 0.7 - 0.4, 5.5e-17, 0.0, 2.0])
    assert m.midranks(values).tolist() == [4.0, 4.0, 4.0, 1.5, 1.5, 6.0]


def test_an_outlier_ties_nothing_else() -> None:
    values = np.array([1.0, 2.0, 3.0, 1e11])
    assert m.midranks(values).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert m.signed_ranks(values, np.zeros(4)).ranks.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_differences_round_as_far_as_their_parts() -> None:
    """1,000.1 - 1,000 and 0.1 differ by 2e-14, which is rounding of 1,000 and not of 0.1."""
    x, y = np.array([1000.1, 0.1, 0.3, 0.2, 0.3]), np.array([1000.0, 0.0, 0.1, 0.0, 0.3])
    ranked = m.signed_ranks(x, y)
    assert ranked.ranks.tolist() == [1.5, 1.5, 3.5, 3.5]
    assert ranked.n_zero == 1
    assert len(np.unique(ranked.values)) == 3


def test_noise_about_zero_is_zero() -> None:
    ranked = m.signed_ranks(np.array([0.1 + 0.2, 0.7]), np.array([0.3, 0.7]))
    assert ranked.n_zero == 2
    assert ranked.values.tolist() == [0.0, 0.0]


def test_cubes_count_ties() -> None:
    assert m.cube_sum(np.array([1.0, 2.5, 2.5, 5.0, 5.0, 5.0])) == (8 - 2) + (27 - 3)


@pytest.mark.parametrize("seed", range(10))
def test_law_of_signs_is_that_of_all_signs(seed: int) -> None:
    ranks = stats.rankdata(np.abs(tied(np.random.default_rng(seed), 8)))
    law = m.sign_law(ranks)
    assert law is not None
    sums = np.array([ranks @ signs for signs in product((0, 1), repeat=8)])
    for value in np.unique(sums):
        assert law.tails(float(value)) == pytest.approx(
            (np.mean(sums <= value), np.mean(sums >= value)), abs=EXACT
        )
        distance = np.abs(sums - ranks.sum() / 2)
        own = abs(value - ranks.sum() / 2)
        assert law.beyond(float(value)) == pytest.approx(np.mean(distance >= own), abs=EXACT)


@pytest.mark.parametrize("seed", range(10))
def test_law_of_subsets_is_that_of_all_subsets(seed: int) -> None:
    ranks = stats.rankdata(tied(np.random.default_rng(seed), 9))
    for size in (1, 3, 4):
        law = m.sum_law(ranks, size)
        assert law is not None
        sums = np.array([sum(chosen) for chosen in combinations(ranks.tolist(), size)])
        assert law.start == min(sums)
        center = size * ranks.mean()
        for value in np.unique(sums):
            expected = np.mean(sums <= value), np.mean(sums >= value)
            assert law.tails(float(value)) == pytest.approx(expected, abs=EXACT)
            beyond = np.mean(np.abs(sums - center) >= abs(value - center) - 1e-9)
            assert law.beyond(float(value)) == pytest.approx(beyond, abs=EXACT)


def test_both_ways_to_build_a_law_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = stats.rankdata(np.abs(tied(np.random.default_rng(1), 40)))
    shifted = m.sign_law(ranks)
    monkeypatch.setattr(m, "_SHIFTED", 0)
    grouped = m.sign_law(ranks)
    assert shifted is not None
    assert grouped is not None
    assert (shifted.start, shifted.step) == (grouped.start, grouped.step)
    np.testing.assert_allclose(shifted.mass, grouped.mass, rtol=EXACT)


def test_tails_keep_their_digits() -> None:
    law = m.untied_signs(300)
    assert law is not None
    assert law.tails(0.0) == (2.0**-300, 1.0)
    assert law.tails(300 * 301 / 2)[1] == 2.0**-300
    assert law.tails(2.0)[0] == pytest.approx(3 * 2.0**-300, rel=EXACT)  # {}, {1}, {2}


@pytest.mark.parametrize("size", [1, 2, 7, 25, 60, 90])
def test_p_values_are_those_of_the_whole_law(size: int) -> None:
    rng = np.random.default_rng(size)
    for ranks in (
        stats.rankdata(np.abs(rng.integers(-4, 5, size) / 2)),
        stats.rankdata(rng.normal(size=size)),
        np.abs(np.add.reduceat(stats.rankdata(rng.integers(0, 9, 3 * size)), np.arange(0, 3 * size, 3))),
        np.concatenate([np.zeros(2), np.full(size, 1.5)]),
    ):
        law = m.sign_law(ranks)
        assert law is not None
        total = float(ranks.sum())
        values = {0.0, total, *(float(ranks @ rng.integers(0, 2, len(ranks))) for _ in range(20))}
        for value in values:
            for alternative in ("two-sided", "greater", "less"):
                expected = law.p_value(value, alternative)
                assert sign_p_value(ranks, value, alternative) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("size", [400, 1_000])
def test_large_laws_are_there_if_asked_for(size: int) -> None:
    tied = np.repeat(np.arange(size // 4) * 4 + 2.5, 4)
    assert sign_p_value(tied, 0.0, "less", asked=True) == 2.0**-size
    untied = np.arange(1.0, size + 1)
    assert sign_p_value(untied, 0.0, "less") is None
    assert sign_p_value(untied, 2.0, "less", asked=True) == pytest.approx(3 * 2.0**-size, rel=EXACT)
    middle = size * (size + 1) / 4
    p = sign_p_value(untied, middle // 1, "less", asked=True)
    assert p == pytest.approx(0.5, abs=1e-3)


def test_larger_laws_are_none() -> None:
    assert sign_p_value(np.arange(1.0, 1_002), 9.0, "less", asked=True) is None


def test_a_law_without_ranks_that_move_is_a_point() -> None:
    law = m.sign_law(np.zeros(3))
    assert law is not None
    assert law.tails(0.0) == (1.0, 1.0)


def test_a_law_that_is_too_long_is_none() -> None:
    assert m.sign_law(np.arange(1.0, 2001)) is None
    assert m.sum_law(np.arange(1.0, 2001), 1000) is None


@pytest.mark.parametrize("distance", [-3.0, -0.5, -0.2, 0.0, 0.2, 4.0])
def test_correction_does_not_pass_the_mean(distance: float) -> None:
    z, p = m.normal_tail(distance, 2.0, "two-sided", correction=True)
    assert z * distance >= 0
    assert abs(z) == pytest.approx(max(0.0, abs(distance) - 0.5) / 2)
    assert p == pytest.approx(min(1.0, 2 * stats.norm.sf(abs(z))))


def test_normal_tails_reach_far() -> None:
    assert m.normal_tail(30.0, 1.0, "greater", correction=False)[1] == pytest.approx(
        stats.norm.sf(30.0), rel=1e-10
    )
    assert m.normal_tail(30.0, 1.0, "less", correction=False)[1] == 1.0
