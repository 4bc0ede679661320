"""Drawn p-values of groups of clusters about a center that is known, or estimated: ties, size, symmetry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import triagestats as ts
from triagestats.extremes import Center, as_extreme, centers_by_symmetry

Array = np.ndarray

ONE_SIDE = 4  # standard errors; missed by chance once in 30,000 seeds
HALVES = np.arange(12) < 6
ROOTS = np.array([0, 1, 1, 0, math.sqrt(2), math.sqrt(2), 0, 1, 0, 1, math.sqrt(2), 0])
COINS = np.repeat([1.0, 0.0], 7)


def difference(means: Array) -> Array:
    return means[..., 0] - means[..., 1]


@pytest.mark.parametrize(
    ("a", "groups", "statistic"),
    [
        (ROOTS, HALVES, None),
        (ROOTS, HALVES, difference),
        (ROOTS[:11], np.arange(11) < 4, None),
        (COINS[:12], np.arange(12) % 4 > 1, difference),
    ],
)
def test_drawn_groups_keep_ties_about_a_known_center(a: Array, groups: Array, statistic: Any) -> None:
    exact = ts.permutation_test(a, groups=groups, statistic=statistic)
    assert exact.details["way"] == "enumeration"
    n = 300
    drawn = [
        ts.permutation_test(a, groups=groups, statistic=statistic, n_resamples=n, seed=seed)
        for seed in range(300)
    ]
    assert {found.details["way"] for found in drawn} == {"drawn"}
    errors = np.array([found.p_value - exact.p_value for found in drawn])
    error = math.sqrt(exact.p_value * (1 - exact.p_value) / n)
    assert np.abs(errors).max() < ONE_SIDE * error + 1 / n
    assert abs(errors.mean()) < ONE_SIDE * error / math.sqrt(300) + 1 / n


def uneven() -> tuple[Array, Array, Array]:
    """0/1 scores of 13 clusters of one to four rows, five of them in the first group."""
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(13), rng.integers(1, 5, 13))
    return (rng.random(len(clusters)) < 0.5).astype(float), clusters < 5, clusters


@pytest.mark.parametrize("case", ["coins", "uneven"])
def test_drawn_groups_lose_no_tie_about_an_estimated_center(case: str) -> None:
    options: dict[str, Any] = {"groups": np.isin(np.arange(14), [0, 1, 7, 8, 9, 10]), "statistic": difference}
    a = COINS
    if case == "uneven":
        a, groups, clusters = uneven()
        options = {"groups": groups, "clusters": clusters}
    exact = ts.permutation_test(a, **options)
    assert exact.details["way"] == "enumeration"
    assert exact.p_value is not None
    assert exact.p_value < 0.8
    n = 900
    error = math.sqrt(exact.p_value * (1 - exact.p_value) / n)
    for seed in range(100):
        found = ts.permutation_test(a, **options, n_resamples=n, seed=seed)
        assert found.details["way"] == "drawn"
        assert found.p_value > exact.p_value - ONE_SIDE * error


@pytest.mark.parametrize("discrete", [True, False])
def test_a_drawn_test_about_an_estimated_center_keeps_its_size(discrete: bool) -> None:
    """Under the null p <= .05 at most one time in twenty, up to four binomial standard errors."""
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(16), rng.integers(1, 5, 16))
    n_sets = 1_000
    rejected = 0
    for seed in range(n_sets):
        a = rng.integers(0, 2, len(clusters)) if discrete else rng.exponential(size=len(clusters))
        groups = rng.permutation(16) < 5
        found = ts.permutation_test(
            a, groups=groups[clusters], clusters=clusters, n_resamples=99, seed=seed, n_threads=1
        )
        rejected += found.p_value <= 0.05  # type: ignore[operator]
    assert rejected / n_sets <= 0.05 + ONE_SIDE * math.sqrt(0.05 * 0.95 / n_sets)
    assert discrete or rejected / n_sets >= 0.05 - ONE_SIDE * math.sqrt(0.05 * 0.95 / n_sets)


def test_the_center_of_a_symmetric_statistic() -> None:
    values = np.array([[1.0, 5.0, 1.0, np.nan, np.inf, np.inf], [-2.0, 2.0, 3.0, np.nan, 1.0, 1.0]])
    swapped = np.array([[-1.0, 3.0, 1.0, np.nan, -np.inf, 0.0], [2.0, 6.0, -2.0, np.nan, -1.0, 2.0]])
    found = centers_by_symmetry(values, swapped, np.full(6, 1e-12))
    np.testing.assert_array_equal(found, [0, 4, np.nan, np.nan, 0, np.nan])


def test_what_ties_across_an_estimated_center() -> None:
    """2 and 2 repeat beside the mirrored point of -1.8, which is 1.8 about 0; 1.7 does not repeat."""
    null = np.array([2.0, 2.0, 1.7, -1.0, -1.0, 0.5, np.nan, np.inf, 1.5, 1.5])
    known = as_extreme(null, -1.8, Center(0.0), "two-sided", 1e-12)
    assert np.flatnonzero(known).tolist() == [0, 1, 7]
    estimated = as_extreme(null, -1.8, Center(0.0, 0.31), "two-sided", 1e-12)
    assert np.flatnonzero(estimated).tolist() == [0, 1, 7, 8, 9]
    assert as_extreme(null, -1.8, Center(0.0, 0.31), "less", 1e-12).sum() == 0


@pytest.mark.parametrize("n_resamples", [9, 99])
def test_p_is_never_zero(n_resamples: int) -> None:
    """A function that jumps may see the data otherwise, by rounding, than as one of their arrangements."""

    def jumping(dimensions: int) -> Any:
        return lambda means: np.full(means.shape[:-1], float(means.ndim == dimensions))

    a, b = np.array([[1.0, 2, 3, 5, 6, 9], [0.0, 1, 1, 2, 1, 3]])
    for found in (
        ts.permutation_test(a, b, statistic=jumping(2), n_resamples=n_resamples),
        ts.permutation_test(a, groups=a > 4, statistic=jumping(1), n_resamples=n_resamples),
    ):
        assert found.estimate == 1.0
        assert found.p_value is not None
        assert 0 < found.p_value <= 1
