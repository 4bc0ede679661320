"""Exact laws on lattices: against enumeration, against draws, and where they decline."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triagestats as ts
from triagestats.lattice import (
    FINEST,
    SQUARED,
    Lattice,
    Law,
    bootstrap_law,
    lattice_of,
    permutation_law,
    tail,
)

ROUNDING = 1e-12  # sums of a few hundred products of doubles
DRAWS = 40_000
MONTE_CARLO = 5 / np.sqrt(DRAWS)  # five standard errors of a share, at its largest


def places_of(law: Law) -> np.ndarray:
    return np.arange(law.start, law.start + len(law.mass))


def std_of(law: Law) -> float:
    places = places_of(law) * law.step
    mean = (places * law.mass).sum()
    return float(np.sqrt(((places - mean) ** 2 * law.mass).sum()))


def two_sided(law: Law, multiple: int) -> float:
    return tail(law.mass, np.abs(places_of(law)), abs(multiple))[0]


@given(
    st.lists(st.integers(-60, 60), min_size=1, max_size=40),
    st.sampled_from([1.0, 0.1, 1 / 3, 1 / 85, 1e-7, 3e6]),
)
def test_multiples_are_found_again(multiples: list[int], step: float) -> None:
    values = np.array(multiples) * step
    found = lattice_of(values)
    assert found is not None
    assert found.multiples * found.step == pytest.approx(values, rel=1e-12, abs=1e-12 * step)
    divisor = np.gcd.reduce(multiples) if any(multiples) else 0
    assert np.abs(found.multiples).tolist() == [abs(m) // divisor if divisor else 0 for m in multiples]


@pytest.mark.parametrize(
    "values",
    [
        np.sqrt(np.arange(1.0, 9.0)),
        np.random.default_rng(0).normal(size=30),
        np.array([1.0, FINEST * 2.0]),
        np.array([0.5, np.nan]),
        np.array([]),
    ],
)
def test_what_lies_on_no_lattice(values: np.ndarray) -> None:
    assert lattice_of(values) is None


def test_bootstrap_law_equals_enumeration() -> None:
    values = np.array([0.5, -0.25, 0.0, 1.0])
    lattice = lattice_of(values)
    assert lattice is not None
    law = bootstrap_law(lattice, 4)
    assert law is not None
    sums = np.array([sum(draw) for draw in itertools.product(values, repeat=4)])
    for place, mass in enumerate(law.mass):
        value = (law.start + place) * law.step
        assert mass == pytest.approx((np.abs(sums - value) < ROUNDING).mean(), abs=ROUNDING)
    assert std_of(law) == pytest.approx(sums.std(), rel=ROUNDING)
    low, high = law.interval(0.8)
    assert low == pytest.approx(np.quantile(sums, 0.1, method="inverted_cdf"))
    assert high == pytest.approx(-np.quantile(-sums, 0.1, method="inverted_cdf"))


def test_bootstrap_law_of_the_oracle(shared: Callable[[str], Path]) -> None:
    fixtures = json.loads(shared("oracles/bootstrap.json").read_text())["fixtures"]
    fixture = next(f for f in fixtures if f["name"] == "boot_full_enumeration_mean_n4")
    values = np.array(fixture["input"]["x"]) / 4
    lattice = lattice_of(values)
    assert lattice is not None
    law = bootstrap_law(lattice, 4)
    assert law is not None
    assert std_of(law) == pytest.approx(fixture["expected"]["exact_boot_se_population"], rel=1e-10)
    at_most = np.cumsum(law.mass)[int(lattice.multiples.sum()) - law.start]
    assert at_most == pytest.approx(fixture["expected"]["p_le_t0"], abs=ROUNDING)


@given(st.integers(0, 2**32 - 1))
def test_permutation_law_equals_enumeration(seed: int) -> None:
    moves = np.random.default_rng(seed).integers(-3, 4, size=(5, 3))
    law = permutation_law(Lattice(moves, 0.5))
    assert law is not None
    assert law.mass.sum() == pytest.approx(1, abs=ROUNDING)
    sums = np.array([sum(choice) for choice in itertools.product(*moves)])
    for multiple in (0, 1, 4, 15):
        expected = (np.abs(sums) >= multiple).mean()
        if expected > 0:
            assert two_sided(law, multiple) == pytest.approx(expected, rel=ROUNDING)


def test_flips_of_any_widths_equal_enumeration() -> None:
    """Some widths come more often than they are wide, and some do not."""
    for widths in ([3, 3, 3, 2, 2, 5, 1, 0, 7, 7], [2, 2, 2, 2, 2], [0, 0], [1, 1, 4, 4, 4, 4, 4]):
        moves = np.stack([widths, np.negative(widths)], axis=1)
        law = permutation_law(Lattice(moves, 1.0))
        assert law is not None
        sums = np.array([sum(choice) for choice in itertools.product(*moves)])
        assert law.mass.tolist() == [(sums == place).mean() for place in places_of(law)]


@pytest.mark.parametrize("n", [SQUARED, SQUARED + 1, SQUARED + 2, 5_000])
def test_equal_flips_are_binomial(n: int) -> None:
    law = permutation_law(Lattice(np.array([[1, -1]] * n), 1.0))
    assert law is not None
    assert not law.mass[1::2].any()
    chances = law.mass[::2]
    assert len(chances) == n + 1
    for k in range(n // 2 - 12 * int(n**0.5) // 2, n // 2 + 1, 11):
        expected = float(Fraction(math.comb(n, k), 2**n))
        assert chances[k] == pytest.approx(expected, rel=1e-10)  # as documented
        assert chances[n - k] == chances[k]


def test_laws_agree_with_draws() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(-5, 7, size=30) / 30
    lattice = lattice_of(values)
    assert lattice is not None
    drawn = rng.choice(values, size=(DRAWS, 30)).sum(axis=1)
    law = bootstrap_law(lattice, 30)
    assert law is not None
    low, high = law.interval(0.95)
    half = law.step / 2
    assert (drawn < low - half).mean() <= 0.025 + MONTE_CARLO
    assert (drawn < low + half).mean() >= 0.025 - MONTE_CARLO
    assert (drawn > high + half).mean() <= 0.025 + MONTE_CARLO
    assert (drawn > high - half).mean() >= 0.025 - MONTE_CARLO
    flips = permutation_law(Lattice(np.stack([lattice.multiples, -lattice.multiples], axis=1), lattice.step))
    assert flips is not None
    signs = rng.choice([-1, 1], size=(DRAWS, 30))
    observed = int(lattice.multiples.sum())
    share = (np.abs(signs @ lattice.multiples) >= abs(observed)).mean()
    assert two_sided(flips, observed) == pytest.approx(share, abs=MONTE_CARLO)


def test_long_laws_are_declined() -> None:
    rng = np.random.default_rng(6)
    wide = Lattice(rng.integers(-FINEST, FINEST, size=400), 1.0)
    assert bootstrap_law(wide, 400) is None
    assert permutation_law(Lattice(np.stack([wide.multiples, -wide.multiples], axis=1), 1.0)) is None


def test_an_analysis_says_which_way_was_taken() -> None:
    rng = np.random.default_rng(7)
    scores = rng.integers(0, 2, size=(24, 2, 2))
    frame = pl.DataFrame(
        {
            "scenario": np.repeat([f"s{i:02}" for i in range(24)], 4),
            "condition": ["a", "a", "b", "b"] * 24,
            "repetition": [1, 2] * 48,
            "score": scores.reshape(-1),
        }
    )
    fit = ts.analyze(frame, interval="percentile", n_resamples=999)
    assert fit.contrasts is not None
    method = fit.contrasts["method"][0]
    assert "cluster bootstrap percentile, exact" in method
    assert "permutation by cluster, exact by convolution" in method
    other = ts.analyze(frame, interval="percentile", n_resamples=199, seed=5)
    assert other.contrasts is not None
    same = ["conf_low", "conf_high", "p_value"]
    assert fit.contrasts.select(same).equals(other.contrasts.select(same))  # no Monte Carlo error
    jittered = frame.with_columns(pl.col("score") + pl.Series(rng.normal(size=96)))
    drawn = ts.analyze(jittered, interval="percentile", n_resamples=999)
    assert drawn.contrasts is not None
    assert "percentile, 999 drawn; permutation by cluster, 999 drawn" in drawn.contrasts["method"][0]
