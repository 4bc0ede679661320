"""The native kernels against the same sums in NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triagestats import _native

QUICK = settings(max_examples=40, deadline=None)


def fractions(seed: int, *shape: int) -> np.ndarray:
    """Floats of very different size, so that another order of summation shows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, size=shape)


def ordered_sum(terms: np.ndarray) -> np.ndarray:
    """Sum over the first axis in ascending order, one term after the other."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total = total + term
    return total


@QUICK
@given(
    st.integers(1, 40),
    st.integers(1, 20),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**40),
    st.integers(0, 4),
)
def test_bootstrap_totals_are_counts_times_totals(
    n_clusters: int, n_columns: int, seed: int, first: int, n_strata: int
) -> None:
    totals = fractions(seed % 1000, n_clusters, n_columns)
    strata = None
    if n_strata:
        codes = np.random.default_rng(seed).integers(0, n_strata, n_clusters)
        strata = np.unique(codes, return_inverse=True)[1].astype(np.uint32)
    drawn = _native.bootstrap_totals(totals, 7, seed, first=first, strata=strata, n_threads=2)
    counts = _native.bootstrap_counts(n_clusters, 7, seed, first=first, strata=strata)
    assert counts.shape == (7, n_clusters)
    for replicate in range(7):
        expected = ordered_sum(counts[replicate][:, None] * totals)
        np.testing.assert_array_equal(drawn[replicate], expected)
    for stratum in range(0 if strata is None else int(strata.max()) + 1):
        inside = strata == stratum
        np.testing.assert_array_equal(counts[:, inside].sum(axis=1), inside.sum())
    np.testing.assert_array_equal(counts.sum(axis=1), n_clusters)


@QUICK
@given(
    st.integers(1, 30),
    st.integers(2, 5),
    st.integers(1, 6),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**40),
)
def test_permute_blocks_follow_the_codes(
    n_clusters: int, n_labels: int, n_columns: int, seed: int, first: int
) -> None:
    blocks = fractions(seed % 1000, n_clusters, n_labels, n_columns)
    orders = np.array(list(itertools.permutations(range(n_labels))))
    drawn = _native.permute_blocks(blocks, 6, seed, first=first, n_threads=2)
    codes = _native.permutation_codes(n_clusters, n_labels, 6, seed, first=first)
    for replicate in range(6):
        moved = np.stack([blocks[g, orders[codes[replicate, g]]] for g in range(n_clusters)])
        np.testing.assert_array_equal(drawn[replicate], ordered_sum(moved))


@pytest.mark.parametrize(("n_clusters", "n_labels"), [(1, 2), (7, 2), (3, 3), (2, 4)])
def test_enumerated_blocks_are_mixed_radix(n_clusters: int, n_labels: int) -> None:
    blocks = fractions(n_clusters, n_clusters, n_labels, 3)
    orders = np.array(list(itertools.permutations(range(n_labels))))
    base = math.factorial(n_labels)
    arrangements = base**n_clusters
    everything = _native.enumerate_blocks(blocks, arrangements, n_threads=2)
    for number in range(arrangements):
        codes = [number // base**g % base for g in range(n_clusters)]
        moved = np.stack([blocks[g, orders[code]] for g, code in enumerate(codes)])
        np.testing.assert_array_equal(everything[number], ordered_sum(moved))
    later = _native.enumerate_blocks(blocks, arrangements - 1, first=1)
    np.testing.assert_array_equal(later, everything[1:])
    with pytest.raises(ValueError, match="arrangement"):
        _native.enumerate_blocks(blocks, arrangements, first=1)


@pytest.mark.parametrize("n_clusters", [3, 3_000])
def test_threads_and_chunks_change_no_bit(n_clusters: int) -> None:
    totals = fractions(1, n_clusters, 9)
    once = _native.bootstrap_totals(totals, 50, 4)
    blocks = fractions(2, n_clusters, 3, 4)
    moved = _native.permute_blocks(blocks, 50, 4)
    for n_threads in (2, 5):
        np.testing.assert_array_equal(_native.bootstrap_totals(totals, 50, 4, n_threads=n_threads), once)
        np.testing.assert_array_equal(_native.permute_blocks(blocks, 50, 4, n_threads=n_threads), moved)
    for first in range(0, 50, 10):
        part = slice(first, first + 10)
        np.testing.assert_array_equal(_native.bootstrap_totals(totals, 10, 4, first=first), once[part])
        np.testing.assert_array_equal(_native.permute_blocks(blocks, 10, 4, first=first), moved[part])


def test_one_stratum_draws_like_none() -> None:
    plain = _native.bootstrap_counts(20, 30, 9)
    one = _native.bootstrap_counts(20, 30, 9, strata=np.zeros(20, dtype=np.uint32))
    np.testing.assert_array_equal(plain, one)


def test_clusters_and_orders_are_drawn_evenly() -> None:
    """Mean counts within five standard errors of what independent draws have."""
    counts = _native.bootstrap_counts(12, 20_000, 3)
    assert np.abs(counts.mean(axis=0) - 1).max() < 5 * math.sqrt(11 / 12 / 20_000)
    assert abs(counts.var(axis=0).mean() - 11 / 12) < 0.02  # five standard errors of a variance near 1
    codes = _native.permutation_codes(12, 3, 20_000, 3)
    shares = np.bincount(codes.ravel(), minlength=6) / codes.size
    assert np.abs(shares - 1 / 6).max() < 5 * math.sqrt(5 / 36 / codes.size)


def test_seeds_and_replicates_have_streams_of_their_own() -> None:
    draws = np.concatenate([_native.bootstrap_counts(40, 50, seed) for seed in range(4)])
    assert len(np.unique(draws, axis=0)) == len(draws)


@pytest.mark.parametrize(
    ("totals", "error"),
    [
        (np.ones((3, 2), dtype=np.float32), TypeError),
        (np.ones(3), TypeError),
        (np.ones((3, 4))[:, ::2], ValueError),
        (np.asfortranarray(np.ones((3, 2))), ValueError),
        (np.ones((0, 2)), ValueError),
        (np.array([[1.0, np.nan]]), ValueError),
        (np.array([[1.0, np.inf]]), ValueError),
    ],
)
def test_arrays_that_cannot_be_read_are_refused(totals: np.ndarray, error: type[Exception]) -> None:
    with pytest.raises(error):
        _native.bootstrap_totals(totals, 3, 1)


def test_numbers_out_of_range_are_refused() -> None:
    totals = np.ones((3, 2))
    with pytest.raises(ValueError, match="n_resamples"):
        _native.bootstrap_totals(totals, 0, 1)
    with pytest.raises(ValueError, match="n_threads"):
        _native.bootstrap_totals(totals, 3, 1, n_threads=0)
    with pytest.raises(OverflowError):
        _native.bootstrap_totals(totals, 3, -1)
    with pytest.raises(ValueError, match="label"):
        _native.permutation_codes(3, 9, 3, 1)
    with pytest.raises(ValueError, match="strat"):
        _native.bootstrap_totals(totals, 3, 1, strata=np.array([0, 2, 2], dtype=np.uint32))
