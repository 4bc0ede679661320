"""Clusters permuted between several groups, and sums of clusters that change sign: all, or drawn."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from triagestats import _native
from triagestats.flipped import flipped_sums
from triagestats.max_statistics import sign_flip_null
from triagestats.partitions import partition_test
from triagestats.subsets import subset_test

EXACT = 1e-12  # shares of whole numbers of arrangements

Array = np.ndarray


def between(sums: Array) -> Array:
    found: Array = (sums[..., 0] ** 2 / sums[..., 1]).sum(axis=-1)
    return found


def data(seed: int, codes: list[int]) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    totals = np.stack([rng.integers(-4, 5, len(codes)), rng.integers(1, 4, len(codes))], axis=1)
    return totals.astype(float), np.array(codes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("codes", [[0, 0, 1, 1, 2, 2, 2], [0, 1, 2], [0, 0, 0, 1, 1, 1], [1, 0, 2, 3, 0]])
def test_all_arrangements_are_counted(seed: int, codes: list[int]) -> None:
    totals, groups = data(seed, codes)
    found = partition_test(totals, groups, between, n_resamples=9_999, seed=1)
    arrangements = sorted(set(permutations(codes)))

    def statistic(labels: tuple[int, ...]) -> float:
        sums = [totals[np.array(labels) == group].sum(axis=0) for group in range(max(codes) + 1)]
        return float(sum(s[0] ** 2 / s[1] for s in sums))

    null = np.array([statistic(labels) for labels in arrangements])
    own = statistic(tuple(codes))
    assert found.statistic == pytest.approx(own)
    assert found.p_value == pytest.approx(np.mean(null >= own - 1e-9), abs=EXACT)
    assert found.found.n_arrangements == len(arrangements)
    assert found.details["smallest_p_value"] == pytest.approx(np.mean(null >= null.max() - 1e-9), abs=EXACT)


def test_two_groups_are_those_of_the_subset_test() -> None:
    totals, groups = data(3, [0, 0, 0, 1, 1, 1, 1])
    totals[:, 1] = 2.0  # of one size, so that the difference and the variation of means order alike
    found = partition_test(totals, groups, between, n_resamples=9_999, seed=1)
    _, other = subset_test(
        totals,
        groups == 0,
        lambda means: means[..., 0] - means[..., 1],
        is_difference=True,
        n_resamples=9_999,
        seed=1,
    )
    assert found.p_value == pytest.approx(other.p_value, abs=EXACT)


def test_drawn_arrangements_are_all_as_likely() -> None:
    codes = np.array([0, 0, 1, 2])
    counts: Counter[tuple[int, ...]] = Counter()

    def seen(sums: Array) -> Array:
        labels = np.argmax(sums, axis=-2)  # the totals are the unit matrix
        counts.update(map(tuple, labels.tolist()))
        return np.zeros(sums.shape[:-2])

    # 12 arrangements are more than 11; the draws that follow are looked at.
    for seed in range(2_000):
        partition_test(np.eye(4), codes, seen, n_resamples=11, seed=seed)
    counts[(0, 0, 1, 2)] -= 2_000  # the data
    assert len(counts) == 12
    expected = 22_000 / 12
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 31.3  # .001 of chi-square, 11 df


def test_threads_and_chunks_change_nothing() -> None:
    totals, groups = data(5, [0] * 8 + [1] * 7 + [2] * 9)
    first = partition_test(totals, groups, between, n_resamples=499, seed=7)
    other = partition_test(totals, groups, between, n_resamples=499, seed=7, n_threads=2, chunk=13)
    assert (first.p_value, first.found.way) == (other.p_value, "drawn")
    assert partition_test(totals, groups, between, n_resamples=499, seed=8).p_value != first.p_value
    sums = [
        flipped_sums(totals, 499, 7, n_threads=threads, chunk=chunk)[0]
        for threads, chunk in ((1, None), (2, None), (1, 17))
    ]
    assert all(np.array_equal(sums[0], other) for other in sums[1:])
    assert np.array_equal(flipped_sums(totals, 30, 7)[0], sums[0][:30])


def test_alike_clusters_have_p_1() -> None:
    found = partition_test(np.ones((6, 2)), np.array([0, 0, 1, 1, 2, 2]), between, n_resamples=999, seed=1)
    assert found.p_value == 1.0
    assert [note.code for note in found.notes] == ["degenerate"]


def test_flips_are_all_signs() -> None:
    totals = np.random.default_rng(1).normal(size=(5, 2))
    sums, exact = flipped_sums(totals, 32, 1)
    assert exact
    expected = [np.array(signs) @ totals for signs in product((1, -1), repeat=5)]
    np.testing.assert_allclose(np.sort(sums, axis=0), np.sort(expected, axis=0), atol=1e-12)
    assert not flipped_sums(totals, 31, 1)[1]


def test_drawn_flips_are_those_of_the_native_stream() -> None:
    """One stream keyed by seed and replicate, as every other draw of the package."""
    totals = np.random.default_rng(2).normal(size=(30, 2))
    signs = _native.sign_flips(30, 200, 11)
    np.testing.assert_allclose(flipped_sums(totals, 200, 11)[0], signs @ totals, atol=1e-12)
    null = sign_flip_null(totals, 200, 11)
    scale = np.sqrt((totals**2).sum(axis=0))
    np.testing.assert_allclose(null.replicates, signs @ (totals / scale), atol=1e-12)
    assert not null.exact
