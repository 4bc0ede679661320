"""Replicates: one set of draws for all estimates, the same in any chunks, and their arguments."""

from __future__ import annotations

import numpy as np
import pytest

from triagestats import _native
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.resample import (
    bootstrap,
    chunks,
    leave_one_out,
    thread_count,
    valid_resamples,
    valid_seed,
)
from triagestats.schemes import cluster_draws

CLOSE = 1e-12  # sums of ten numbers in another order


def ratios(totals: np.ndarray) -> np.ndarray:
    return totals[..., :-1] / totals[..., -1:]


def totals(n_clusters: int = 10) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.hstack([rng.normal(size=(n_clusters, 3)), rng.integers(1, 5, size=(n_clusters, 1))])


def test_replicates_are_functions_of_the_drawn_counts() -> None:
    values = totals()
    drawn = bootstrap(ratios, cluster_draws(values), n_resamples=50, seed=3)
    counts = _native.bootstrap_counts(10, 50, 3).astype(float)
    np.testing.assert_allclose(drawn, ratios(counts @ values), rtol=0, atol=CLOSE)


def test_strata_are_resampled_within() -> None:
    """A total that counts each stratum never varies."""
    codes = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], dtype=np.uint32)
    members = (codes[:, None] == np.arange(3)).astype(float)
    drawn = bootstrap(lambda x: x, cluster_draws(members, codes), n_resamples=40, seed=3)
    np.testing.assert_array_equal(drawn, np.tile([3.0, 4.0, 3.0], (40, 1)))


def test_one_draw_serves_all_estimates() -> None:
    values = totals()
    together = bootstrap(ratios, cluster_draws(values), n_resamples=50, seed=3)
    alone = bootstrap(ratios, cluster_draws(values[:, [1, 3]]), n_resamples=50, seed=3)
    np.testing.assert_array_equal(together[:, [1]], alone)


@pytest.mark.parametrize("chunk", [1, 7, 49, 50, 1000])
def test_chunks_change_no_bit(chunk: int) -> None:
    values = totals()
    once = bootstrap(ratios, cluster_draws(values), n_resamples=50, seed=3)
    np.testing.assert_array_equal(
        bootstrap(ratios, cluster_draws(values), n_resamples=50, seed=3, chunk=chunk, n_threads=2), once
    )


def test_the_ideal_bootstrap_error_is_approached() -> None:
    """The bootstrap error of a mean converges to sd / sqrt(n) with divisor n, not n - 1."""
    x = np.random.default_rng(4).normal(size=30)
    values = np.column_stack([x, np.ones(30)])
    drawn = bootstrap(ratios, cluster_draws(values), n_resamples=20_000, seed=5)
    ideal = x.std() / np.sqrt(30)
    assert drawn.std() == pytest.approx(ideal, rel=5 / np.sqrt(2 * 20_000))  # five standard errors


def test_leave_one_out_by_hand() -> None:
    values = np.array([[1.0, 1.0], [2.0, 1.0], [6.0, 2.0]])
    np.testing.assert_array_equal(leave_one_out(ratios, values), [[8 / 3], [7 / 3], [1.5]])


def test_chunks_cover_every_replicate_once() -> None:
    for n_resamples, width, limit in ((10, 1, 3), (10, 1, None), (1, 10**9, None), (7, 0, 7)):
        parts = list(chunks(n_resamples, width, limit))
        assert [r for first, number in parts for r in range(first, first + number)] == list(
            range(n_resamples)
        )


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ArgumentError), (-3, ArgumentError), (True, ArgumentTypeError), (9.0, ArgumentTypeError)],
)
def test_numbers_of_replicates_that_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="`n_resamples`"):
        valid_resamples(value)  # type: ignore[arg-type]


def test_replicates_that_fit_no_memory_are_refused() -> None:
    with pytest.raises(ArgumentError, match="MiB"):
        valid_resamples(10**9, 100)
    assert valid_resamples(9_999, 100) == 9_999


@pytest.mark.parametrize(
    ("value", "error"),
    [(-1, ArgumentError), (2**64, ArgumentError), (None, ArgumentTypeError), (True, ArgumentTypeError)],
)
def test_seeds_that_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="`seed`"):
        valid_seed(value)  # type: ignore[arg-type]
    assert valid_seed(2**64 - 1) == 2**64 - 1


def test_threads_come_from_the_argument_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGESTATS_NUM_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(2) == 2
    for wrong in ("0", "two", "-1"):
        monkeypatch.setenv("TRIAGESTATS_NUM_THREADS", wrong)
        with pytest.raises(ArgumentError, match="TRIAGESTATS_NUM_THREADS"):
            thread_count(None)
    monkeypatch.delenv("TRIAGESTATS_NUM_THREADS")
    assert thread_count(None) >= 1
    with pytest.raises(ArgumentError, match="`n_threads`"):
        thread_count(0)
    with pytest.raises(ArgumentTypeError, match="`n_threads`"):
        thread_count(1.5)  # type: ignore[arg-type]
