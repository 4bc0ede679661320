"""Every native kernel against the same sums in NumPy, from the draws that it exposes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triagestats import _native
from triagestats.intervals import _quantiles

QUICK = settings(max_examples=40, deadline=None)
SEED = st.integers(0, 2**64 - 1)
FIRST = st.integers(0, 2**40)
LARGE = 2_049  # clusters from which the draws are split into blocks
ROUNDING = 1e-12  # of sums whose order of addition differs


def fractions(seed: int, *shape: int) -> np.ndarray:
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
    st.integers(1, 80),
    st.integers(1, 70),
    SEED,
    FIRST,
    st.sampled_from([np.int8, np.uint8, np.int16, np.int32, np.int64]),
    st.integers(0, 3),
)
def test_integer_totals_are_counts_times_totals(
    n_clusters: int, n_columns: int, seed: int, first: int, kind: type[np.integer], n_strata: int
) -> None:
    rng = np.random.default_rng(seed % 1000)
    info = np.iinfo(kind)
    low, high = max(info.min, -(2**40)), min(info.max, 2**40)
    spread = int(rng.integers(0, 300))
    start = int(rng.integers(low, max(high - spread, low) + 1))
    totals = rng.integers(start, min(start + spread, high) + 1, (n_clusters, n_columns)).astype(kind)
    strata = None
    if n_strata:
        codes = rng.integers(0, n_strata, n_clusters)
        strata = np.unique(codes, return_inverse=True)[1].astype(np.uint32)
    drawn = _native.bootstrap_totals_int(totals, 7, seed, first=first, strata=strata, n_threads=2)
    counts = _native.bootstrap_counts(n_clusters, 7, seed, first=first, strata=strata).astype(np.int64)
    assert drawn.dtype == np.int64
    np.testing.assert_array_equal(drawn, counts @ totals.astype(np.int64))


def test_large_integer_and_float_totals_share_the_draws() -> None:
    totals = np.random.default_rng(1).integers(0, 5, (LARGE, 3)).astype(np.int16)
    whole = _native.bootstrap_totals_int(totals, 20, 4, n_threads=2)
    real = _native.bootstrap_totals(totals.astype(float), 20, 4)
    counts = _native.bootstrap_counts(LARGE, 20, 4).astype(np.int64)
    np.testing.assert_array_equal(whole, real)
    np.testing.assert_array_equal(whole, counts @ totals)
    np.testing.assert_array_equal(counts.sum(axis=1), LARGE)


@QUICK
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30).filter(any), st.integers(1, 9), SEED, FIRST)
def test_collapsed_totals_are_counts_times_totals(
    sizes: list[int], n_columns: int, seed: int, first: int
) -> None:
    totals = fractions(seed % 1000, len(sizes), n_columns)
    for kind in (np.uint32, np.uint64):
        multiplicities = np.array(sizes, dtype=kind)
        drawn = _native.bootstrap_collapsed(totals, multiplicities, 9, seed, first=first, n_threads=2)
        counts = _native.collapsed_counts(multiplicities, 9, seed, first=first)
        np.testing.assert_array_equal(counts.sum(axis=1), sum(sizes))
        for replicate in range(9):
            np.testing.assert_array_equal(drawn[replicate], ordered_sum(counts[replicate][:, None] * totals))


@QUICK
@given(st.integers(1, 40), st.integers(1, 6), SEED, FIRST)
def test_nested_totals_of_one_repetition_or_none(
    n_clusters: int, n_columns: int, seed: int, first: int
) -> None:
    rng = np.random.default_rng(seed % 1000)
    present = rng.random((n_clusters, n_columns)) < 0.8
    offsets = np.concatenate([[0], np.cumsum(present.ravel())]).astype(np.int64)
    counts = _native.bootstrap_counts(n_clusters, 5, seed, first=first)
    for values in (rng.normal(size=offsets[-1]), rng.integers(0, 2, offsets[-1]).astype(float)):
        cells = np.zeros(n_clusters * n_columns)
        cells[present.ravel()] = values
        sums, number = _native.nested_totals(values, offsets, n_columns, 5, seed, first=first, n_threads=2)
        np.testing.assert_allclose(
            sums, counts @ cells.reshape(n_clusters, n_columns), rtol=1e-10, atol=1e-10
        )
        np.testing.assert_array_equal(number, counts.astype(np.int64) @ present)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_nested_totals_vary_on_both_levels(scale: float) -> None:
    """Mean and variance within five standard errors of what the two levels imply; both paths."""
    n_resamples, n_clusters, n_columns, n_repetitions = 20_000, 30, 3, 4
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 2, (n_clusters, n_columns, n_repetitions)) * scale
    offsets = np.arange(0, cells.size + 1, n_repetitions, dtype=np.int64)
    sums, number = _native.nested_totals(cells.ravel(), offsets, n_columns, n_resamples, 5)
    means = cells.mean(axis=2)
    variance = n_clusters * means.var(axis=0) + (cells.var(axis=2) / n_repetitions).sum(axis=0)
    assert (number == n_clusters).all()
    assert (np.abs(sums.mean(axis=0) - means.sum(axis=0)) < 5 * np.sqrt(variance / n_resamples)).all()
    assert (np.abs(sums.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / n_resamples)).all()


@QUICK
@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 6), SEED, FIRST)
def test_crossed_totals_are_products_of_counts_times_totals(
    n_first: int, n_second: int, n_columns: int, seed: int, first: int
) -> None:
    totals = fractions(seed % 1000, n_first, n_second, n_columns)
    drawn = _native.crossed_totals(totals, 5, seed, first=first, n_threads=2)
    a, b = _native.crossed_counts(n_first, n_second, 5, seed, first=first)
    np.testing.assert_array_equal(a, _native.bootstrap_counts(n_first, 5, seed, first=first))
    np.testing.assert_array_equal(b.sum(axis=1), n_second)
    for replicate in range(5):
        weights = a[replicate][:, None].astype(float) * b[replicate]
        terms = weights[..., None] * totals
        np.testing.assert_array_equal(drawn[replicate], ordered_sum(terms.reshape(-1, n_columns)))


@pytest.mark.parametrize("n_clusters", [1, 30, 2_500])
def test_bayesian_totals_are_weights_times_totals(n_clusters: int) -> None:
    totals = np.random.default_rng(2).random((n_clusters, 4))
    drawn = _native.bayesian_totals(totals, 20, 3, first=9, n_threads=2)
    weights = _native.bayesian_weights(n_clusters, 20, 3, first=9)
    np.testing.assert_allclose(weights.sum(axis=1), n_clusters, rtol=ROUNDING)
    np.testing.assert_allclose(drawn, weights @ totals, rtol=ROUNDING)


@QUICK
@given(st.integers(1, 150), st.integers(1, 8), SEED, FIRST, st.sampled_from([1, 7, 300, 0]))
def test_sign_flip_totals_are_signs_times_values(
    n_clusters: int, n_columns: int, seed: int, first: int, largest: int
) -> None:
    rng = np.random.default_rng(seed % 1000)
    values = rng.integers(-largest, largest + 1, (n_clusters, n_columns)).astype(float)
    if not largest:
        values = fractions(seed % 1000, n_clusters, n_columns)
    drawn = _native.sign_flip_totals(values, 9, seed, first=first, n_threads=2)
    signs = _native.sign_flips(n_clusters, 9, seed, first=first)
    assert signs.dtype == np.int8
    for replicate in range(9):
        np.testing.assert_array_equal(drawn[replicate], ordered_sum(signs[replicate][:, None] * values))
    codes = _native.permutation_codes(n_clusters, 2, 9, seed, first=first)
    np.testing.assert_array_equal(signs, 1 - 2 * codes.astype(np.int8))
    np.testing.assert_array_equal(
        signs, _native.wild_weights(n_clusters, 9, seed, kind="rademacher", first=first)
    )


@pytest.mark.parametrize(("kind", "points"), [("webb", 6), ("mammen", 2)])
def test_wild_weights_are_standardised(kind: str, points: int) -> None:
    drawn = _native.wild_weights(1_250, 400, 3, kind=kind)  # type: ignore[arg-type]  # one of the two
    assert len(np.unique(drawn)) == points
    assert abs(drawn.mean()) < 5 / np.sqrt(drawn.size)
    assert abs((drawn**2).mean() - 1) < 5 / np.sqrt(drawn.size)
    with pytest.raises(ValueError, match="kind"):
        _native.wild_weights(3, 3, 3, kind="normal")  # type: ignore[arg-type]  # refused


@pytest.mark.parametrize("n_resamples", [1, 2, 255, 256, 1_999, 9_999])
@pytest.mark.parametrize("kind", ["floats", "ties", "gaps"])
def test_quantile_pairs_are_those_of_the_sorted_replicates(n_resamples: int, kind: str) -> None:
    rng = np.random.default_rng(n_resamples)
    replicates = rng.standard_cauchy((n_resamples, 21))
    if kind == "ties":
        replicates = np.round(np.clip(replicates, -5, 5))
    if kind == "gaps":
        replicates[rng.random(replicates.shape) < 0.3] = np.nan
        replicates[:, 3] = np.inf
    low, high = np.sort(rng.random((2, 21)), axis=0)
    low[:5], high[:5] = 0.025, 0.975
    low[7], high[8], low[9] = np.nan, np.inf, -2.0
    expected = _quantiles(replicates, low, high)
    for n_threads in (1, 3):
        ends = _native.quantile_pairs(replicates, low, high, n_threads=n_threads)
        np.testing.assert_array_equal(ends, np.array([expected.low, expected.high]))


def test_threads_and_chunks_change_nothing() -> None:
    rng = np.random.default_rng(0)
    real, whole = rng.normal(size=(300, 5)), rng.integers(0, 9, (300, 5))
    offsets = np.arange(0, 3001, 2, dtype=np.int64)
    binary, levels = rng.integers(0, 2, 3000).astype(float), rng.normal(size=3000)
    sizes = np.array([3, 90, 207, 1], dtype=np.uint32)
    kernels = {
        "int": lambda n, **k: _native.bootstrap_totals_int(whole, n, 4, **k),
        "collapsed": lambda n, **k: _native.bootstrap_collapsed(real[:4].copy(), sizes, n, 4, **k),
        "binary": lambda n, **k: _native.nested_totals(binary, offsets, 5, n, 4, **k)[0],
        "nested": lambda n, **k: _native.nested_totals(levels, offsets, 5, n, 4, **k)[0],
        "crossed": lambda n, **k: _native.crossed_totals(real.reshape(30, 10, 5), n, 4, **k),
        "bayesian": lambda n, **k: _native.bayesian_totals(real, n, 4, **k),
        "flips": lambda n, **k: _native.sign_flip_totals(real, n, 4, **k),
        "signs": lambda n, **k: _native.sign_flip_totals(np.sign(real), n, 4, **k),
    }
    for name, kernel in kernels.items():
        once = kernel(50)
        for n_threads in (2, 3, 7):
            np.testing.assert_array_equal(kernel(50, n_threads=n_threads), once, err_msg=name)
        parts = [kernel(min(13, 50 - first), first=first) for first in range(0, 50, 13)]
        np.testing.assert_array_equal(np.concatenate(parts), once, err_msg=name)


def test_arrays_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(TypeError, match="int64"):
        _native.bootstrap_totals_int(np.ones((3, 2)), 3, 1)  # type: ignore[arg-type]  # refused
    with pytest.raises(ValueError, match="64 bits"):
        _native.bootstrap_totals_int(np.full((3, 2), 2**62), 3, 1)
    with pytest.raises(ValueError, match="offsets"):
        _native.nested_totals(np.ones(3), np.array([0, 2, 4]), 1, 3, 1)
    with pytest.raises(ValueError, match="n_columns"):
        _native.nested_totals(np.ones(3), np.array([0, 3]), 0, 3, 1)
    with pytest.raises(ValueError, match="clusters"):
        _native.collapsed_counts(np.zeros(2, dtype=np.uint32), 3, 1)
    with pytest.raises(ValueError, match="finite"):
        _native.sign_flip_totals(np.array([[np.nan]]), 3, 1)
    with pytest.raises(ValueError, match="low"):
        _native.quantile_pairs(np.ones((3, 2)), np.ones(1), np.ones(2))
