"""The public permutation test: oracles, enumeration in Python, drawn against exact, and refusals."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triagestats as ts
from triagestats import _native
from triagestats.extremes import at_least, oriented
from triagestats.lattice import lattice_of
from triagestats.subsets import subset_law, subset_test

Array = np.ndarray

EXACT = 1e-12  # counts over counts, or sums of masses
QUICK = settings(max_examples=40, deadline=None)
ALTERNATIVES = {"two-sided": "p_two_abs", "greater": "p_greater", "less": "p_less"}


@pytest.fixture
def oracle(shared: Callable[[str], Path]) -> dict[str, dict[str, Any]]:
    fixtures = json.loads(shared("oracles/permutation.json").read_text())["fixtures"]
    return {fixture["name"]: fixture for fixture in fixtures}


def close(fixture: dict[str, Any], expected: float) -> Any:
    return pytest.approx(expected, rel=fixture["tolerance"]["rtol"], abs=fixture["tolerance"]["atol"])


def share(null: list[float], observed: float, alternative: str, center: float = 0.0) -> float:
    """How many of all arrangements are as extreme, with ties."""
    sign = {"two-sided": 0, "greater": 1, "less": -1}[alternative]

    def away(x: float) -> float:
        return sign * (x - center) if sign else abs(x - center)

    return sum(away(x) >= away(observed) - 1e-9 for x in null) / len(null)


def difference(means: Array) -> Array:
    return means[..., 0] - means[..., 1]


def spread(means: Array) -> Array:
    return means.max(axis=-1) - means.min(axis=-1)


# The oracle. Not here: `within_block_*` permute single rows among unequal numbers of treated and control
# rows within a block, where this test relabels all rows of a cluster at once; `mc_convention_b0_m0`, as
# `n_resamples` is at least 1.


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n_resamples", [9_999, 9])
@pytest.mark.parametrize(
    "name",
    [
        "signflip_mean_tenths",
        "signflip_mean_binary_diffs",
        "signflip_mean_one",
        "signflip_mean_skew",
        "signflip_equals_exact_mcnemar_7_1",
    ],
)
def test_sign_flips_of_the_oracle(
    oracle: dict[str, dict[str, Any]], name: str, n_resamples: int, alternative: Any
) -> None:
    fixture = oracle[name]
    d = fixture["input"]["differences"]
    expected = fixture["expected"].get(ALTERNATIVES[alternative])
    if expected is None:
        return
    found = ts.permutation_test(d, [0] * len(d), alternative=alternative, n_resamples=n_resamples)
    assert found.p_value == close(fixture, expected)
    assert found.estimate == close(fixture, fixture["expected"].get("observed", np.mean(d)))
    few = 2 ** np.count_nonzero(d) <= n_resamples
    assert found.details["way"] == ("enumeration" if few else "convolution")


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n_resamples", "way"), [(9_999, "enumeration"), (99, "convolution")])
@pytest.mark.parametrize("name", ["two_sample_diff_means_ties", "two_sample_diff_means_binary"])
@pytest.mark.parametrize("labels", [("y", "x"), ("x", "y")])
def test_two_samples_of_the_oracle(
    oracle: dict[str, dict[str, Any]],
    name: str,
    n_resamples: int,
    way: str,
    alternative: str,
    labels: tuple[str, str],
) -> None:
    fixture = oracle[name]
    x, y = fixture["input"]["x"], fixture["input"]["y"]
    swapped = labels[0] < labels[1]  # then the estimate is that of y minus x
    side = {"greater": "less", "less": "greater"}.get(alternative, alternative) if swapped else alternative
    found = ts.permutation_test(
        x + y,
        groups=[labels[0]] * len(x) + [labels[1]] * len(y),
        alternative=side,  # type: ignore[call-overload]
        n_resamples=n_resamples,
    )
    assert found.details["way"] == way
    assert found.p_value == close(fixture, fixture["expected"][ALTERNATIVES[alternative]])
    observed = fixture["expected"]["observed"]
    assert found.estimate == close(fixture, -observed if swapped else observed)


def test_exact_friedman_and_cochran_of_the_oracle(oracle: dict[str, dict[str, Any]]) -> None:
    """Both are increasing functions of the sum of squares of the column means, within blocks."""
    friedman = oracle["friedman_exact_4x3"]
    cochran = oracle["cochran_q_exact_6x3"]
    for fixture, rows in (
        (friedman, friedman["input"]["blocks_by_treatments"]),
        (cochran, cochran["input"]["subjects_by_treatments"]),
    ):
        found = ts.permutation_test(
            rows, statistic=lambda m: (m**2).sum(axis=-1), alternative="greater", n_resamples=50_000
        )
        assert found.details["way"] == "enumeration"
        assert found.p_value == close(fixture, fixture["expected"]["p_exact"])


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_correlation_of_the_oracle(oracle: dict[str, dict[str, Any]], alternative: Any) -> None:
    """A permutation of y against x is a relabelling of six columns within one cluster."""
    fixture = oracle["correlation_exact_n6"]
    x, y = np.array(fixture["input"]["x"]), np.array(fixture["input"]["y"])

    def correlation(means: Array) -> Array:
        centered = means - means.mean(axis=-1, keepdims=True)
        result: Array = centered @ (x - x.mean()) / math.sqrt(((x - x.mean()) ** 2).sum() * 17.5)
        return result

    found = ts.permutation_test(y[None], statistic=correlation, alternative=alternative)
    assert found.details["n_arrangements"] == 720
    assert found.estimate == close(fixture, fixture["expected"]["observed"])
    assert found.p_value == close(fixture, fixture["expected"][ALTERNATIVES[alternative]])


@pytest.mark.parametrize("name", ["mc_convention_b0_m999", "mc_convention_b49_m999", "mc_convention_b3_m99"])
def test_drawn_p_values_count_the_data_once(oracle: dict[str, dict[str, Any]], name: str) -> None:
    """Differences are shifted until just b of the m draws exceed them; then p = (b + 1) / (m + 1)."""
    fixture = oracle[name]
    b, m = fixture["input"]["exceedances"], fixture["input"]["resamples"]
    signs = drawn_signs(20, m, seed=7)
    base = np.sqrt(np.arange(1, 21)) - 3
    for shift in np.linspace(0, 20, 4_001):
        d = base + shift
        if (np.abs(signs @ d) >= abs(d.sum()) - 1e-9).sum() == b:
            break
    else:
        pytest.fail("no shift has so many exceedances")
    found = ts.permutation_test(d, np.zeros(20), n_resamples=m, seed=7)
    assert found.details["way"] == "drawn"
    assert found.p_value == close(fixture, fixture["expected"]["pvalue"])


def drawn_signs(n_clusters: int, number: int, seed: int) -> Array:
    return _native.sign_flips(n_clusters, number, seed).astype(np.float64)


def test_supplied_signs_of_the_oracle(oracle: dict[str, dict[str, Any]]) -> None:
    """The public test takes no signs; its count is made here from the supplied ones."""
    fixture = oracle["signflip_supplied_signs_m19"]
    d = np.array(fixture["input"]["differences"])
    null = np.array(fixture["input"]["signs"]) @ d / len(d)
    b = at_least(oriented(null, "two-sided"), abs(d.mean()), 1e-12).sum()
    assert b == fixture["expected"]["exceedances"]
    assert (b + 1) / (len(null) + 1) == close(fixture, fixture["expected"]["p_two"])


# Enumeration in Python.

scores = st.lists(
    st.tuples(st.sampled_from([0, 0.1, 0.2, 0.3, 1]), st.sampled_from([0, 0.1, 0.2, 0.3, 1])),
    min_size=1,
    max_size=9,
)


@QUICK
@given(scores, st.integers(1, 5), st.sampled_from(sorted(ALTERNATIVES)), st.sampled_from([9_999, 1]))
def test_pairs_in_clusters(
    pairs: list[tuple[float, float]], n_clusters: int, alternative: Any, n_resamples: int
) -> None:
    a, b = np.array(pairs).T
    clusters = np.arange(len(a)) * 7 % n_clusters
    sums = [(a - b)[clusters == c].sum() for c in np.unique(clusters)]
    null = [np.dot(sums, signs) / len(a) for signs in itertools.product([1, -1], repeat=len(sums))]
    found = ts.permutation_test(
        a, b, clusters=clusters, alternative=alternative, n_resamples=n_resamples, n_threads=1
    )
    assert found.estimate == pytest.approx(np.mean(a - b), abs=EXACT)
    assert found.details["way"] in ("enumeration", "convolution")
    assert found.p_value == pytest.approx(share(null, np.sum(sums) / len(a), alternative), abs=EXACT)


@QUICK
@given(st.integers(2, 7), st.integers(0, 2**32 - 1), st.sampled_from(sorted(ALTERNATIVES)), st.booleans())
def test_two_groups_of_clusters(n_clusters: int, seed: int, alternative: Any, equal: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.full(n_clusters, 3) if equal else rng.integers(1, 4, n_clusters)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    a = rng.choice([0, 0.1, 0.2, 0.3, 1], size=len(clusters))
    n_level = int(rng.integers(1, n_clusters))
    level = rng.permutation(n_clusters) < n_level

    def value(chosen: Array) -> float:
        rows = chosen[clusters]
        return float(a[rows].mean() - a[~rows].mean())

    null = []
    for subset in itertools.combinations(range(n_clusters), n_level):
        chosen = np.zeros(n_clusters, dtype=bool)
        chosen[list(subset)] = True
        null.append(value(chosen))
    expected = share(null, value(level), alternative, float(np.mean(null)))
    groups = np.where(level, "new", "base")[clusters]
    for n_resamples in (9_999, 1) if equal and len(null) > 1 else (9_999,):
        found = ts.permutation_test(
            a, groups=groups, clusters=clusters, alternative=alternative, n_resamples=n_resamples
        )
        assert (found.contrast, found.estimate) == ("new - base", pytest.approx(value(level), abs=EXACT))
        assert found.details["way"] == ("enumeration" if n_resamples > 1 else "convolution")
        assert found.p_value == pytest.approx(expected, abs=EXACT)


@QUICK
@given(st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from(sorted(ALTERNATIVES)))
def test_three_labels_of_rows_in_clusters(n_clusters: int, seed: int, alternative: Any) -> None:
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(n_clusters), rng.integers(1, 3, n_clusters))
    a = rng.choice([0, 0.1, 0.2, 0.7], size=(len(clusters), 3))
    orders = list(itertools.permutations(range(3)))
    null = []
    for codes in itertools.product(orders, repeat=n_clusters):
        moved = np.stack([row[list(codes[c])] for row, c in zip(a, clusters, strict=True)])
        null.append(float(spread(moved.mean(axis=0))))
    found = ts.permutation_test(a, clusters=clusters, statistic=spread, alternative=alternative)
    expected = share(null, float(spread(a.mean(axis=0))), alternative, float(np.mean(null)))
    assert found.p_value == pytest.approx(expected, abs=EXACT)


def test_an_estimand_takes_the_columns_in_order() -> None:
    a = np.random.default_rng(5).choice([0, 0.5, 1], size=(7, 3))
    gap = ts.permutation_test(a, statistic=ts.Gap("z", ["y", "x"]), n_resamples=100)
    function = ts.permutation_test(
        a, statistic=lambda m: m[..., 0] - m[..., 1:].mean(axis=-1), n_resamples=6**7
    )
    assert (gap.details["way"], function.details["way"]) == ("convolution", "enumeration")
    assert gap.p_value == pytest.approx(function.p_value, rel=1e-10)
    assert gap.contrast == "z - mean(y, x)"


def test_an_estimand_names_the_groups() -> None:
    a, groups = [1, 0, 1, 1, 0, 0, 0], ["x", "x", "x", "y", "y", "y", "y"]
    default = ts.permutation_test(a, groups=groups, alternative="less")
    turned = ts.permutation_test(a, groups=groups, statistic=ts.Difference("x", "y"), alternative="greater")
    assert default.estimate == -turned.estimate  # type: ignore[operator]
    assert default.p_value == turned.p_value
    ratio = ts.permutation_test(a, groups=groups, statistic=lambda m: np.log1p(m[..., 0] / (m[..., 1] + 1)))
    assert ratio.estimate == pytest.approx(math.log1p((1 / 4) / (2 / 3 + 1)))


# Exact against drawn; what changes nothing.


def test_a_law_of_subsets_is_that_of_all_subsets() -> None:
    values = np.array([3, -2, 0, 5, 5, 1, -2])
    for size in range(1, 7):
        lattice = lattice_of(values / 10)
        assert lattice is not None
        law = subset_law(lattice, size)
        assert law is not None
        sums = [sum(subset) for subset in itertools.combinations(values.tolist(), size)]
        expected = np.array([sums.count(law.start + place) for place in range(len(law.mass))]) / len(sums)
        np.testing.assert_allclose(law.mass, expected, atol=EXACT)


def test_a_tail_of_a_law_keeps_its_digits() -> None:
    a = [0] * 60 + [1] * 60
    found = ts.permutation_test(a, groups=a)
    assert found.details["way"] == "convolution"
    assert found.p_value == pytest.approx(2 / math.comb(120, 60), rel=1e-10)
    assert found.details["smallest_p_value"] == found.p_value


def noisy_groups() -> tuple[Array, Array]:
    rng = np.random.default_rng(11)
    groups = np.arange(13) < 5
    return rng.normal(size=13) + groups, groups


def test_drawn_p_values_come_near_the_enumerated_ones() -> None:
    a, groups = noisy_groups()
    pairs = np.random.default_rng(12).normal(0.4, 1, size=(12, 2))
    for test in (
        lambda n: ts.permutation_test(a, groups=groups, n_resamples=n),
        lambda n: ts.permutation_test(a, groups=groups, n_resamples=n, alternative="greater"),
        lambda n: ts.permutation_test(pairs[:, 0], pairs[:, 1], n_resamples=n, alternative="less"),
        lambda n: ts.permutation_test(pairs, statistic=lambda m: m[..., 0] / m[..., 1], n_resamples=n),
    ):
        exact, drawn = test(10_000), test(1_200)
        assert (exact.details["way"], drawn.details["way"]) == ("enumeration", "drawn")
        error = math.sqrt(exact.p_value * (1 - exact.p_value) / 1_200)
        assert abs(drawn.p_value - exact.p_value) < 4 * error + 1 / 1_201


def test_subset_totals_follow_the_masks() -> None:
    """The kernel against NumPy, for whole numbers, in one call and in two."""
    totals = np.random.default_rng(1).integers(-9, 9, size=(31, 2)).astype(np.float64)
    masks = _native.subset_masks(31, 12, 50, 3, first=4)
    assert masks.dtype == np.uint8
    assert (masks.sum(axis=1) == 12).all()
    sums = _native.subset_totals(totals, 12, 50, 3, first=4, n_threads=2)
    np.testing.assert_array_equal(sums, masks @ totals)
    np.testing.assert_array_equal(_native.subset_totals(totals, 12, 20, 3, first=34), sums[30:])
    with pytest.raises(ValueError, match="`size` must be at most the 31 clusters, got 32"):
        _native.subset_totals(totals, 32, 1, 3)


def test_drawn_subsets_are_uniform() -> None:
    """All 21 subsets of two of seven, by a chi-square below the .9999 quantile for 20 degrees of freedom."""
    drawn = _native.subset_masks(7, 2, 42_000, 3)
    counts = np.unique(drawn @ (1 << np.arange(7)), return_counts=True)[1]
    assert len(counts) == 21
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 52.4


def test_threads_and_chunks_change_nothing() -> None:
    a, groups = noisy_groups()
    rng = np.random.default_rng(2)
    x, y, m = rng.random(40), rng.random(40), rng.random((40, 3))
    for n_threads in (2, 3):
        for call in (
            lambda n: ts.permutation_test(a, groups=groups, n_resamples=301, n_threads=n),
            lambda n: ts.permutation_test(x, y, n_resamples=301, n_threads=n),
            lambda n: ts.permutation_test(m, statistic=spread, n_resamples=301, n_threads=n),
        ):
            assert call(n_threads) == call(1)
    totals = np.stack([a, np.arange(13) % 3 + 1.0], axis=-1)
    for n_resamples in (301, 2_000):
        once, *others = (
            subset_test(
                totals, groups, difference, is_difference=True, n_resamples=n_resamples, seed=5, chunk=chunk
            )
            for chunk in (None, 1, 7, 300)
        )
        assert all(other == once for other in others)


@QUICK
@given(st.integers(0, 2**32 - 1), st.permutations(range(8)))
def test_names_and_order_of_clusters_keep_an_exact_p(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.choice([0.1, 0.2, 0.3, 0.7], size=(2, 16))
    clusters = np.repeat(np.arange(8), 2)
    names = np.array(list("hgfedcba"))[order]
    rows = rng.permutation(16)
    once = ts.permutation_test(a, b, clusters=clusters)
    again = ts.permutation_test(a[rows], b[rows], clusters=names[clusters][rows])
    assert again.p_value == once.p_value
    swapped = ts.permutation_test(b, a, clusters=clusters)
    assert swapped.p_value == once.p_value
    assert swapped.estimate == pytest.approx(-once.estimate, abs=EXACT)
    assert ts.permutation_test(a + 4, b + 4, clusters=clusters).p_value == once.p_value
    greater = ts.permutation_test(a, b, clusters=clusters, alternative="greater").p_value
    less = ts.permutation_test(b, a, clusters=clusters, alternative="less").p_value
    assert greater == less
    two = ts.permutation_test(a, groups=clusters < 4, clusters=clusters)
    turned = ts.permutation_test(a[rows], groups=(clusters >= 4)[rows], clusters=names[clusters][rows])
    assert two.p_value == turned.p_value


def test_the_order_of_rows_keeps_a_drawn_p() -> None:
    rng = np.random.default_rng(3)
    a, b, clusters, rows = rng.random(90), rng.random(90), np.arange(90) % 30, rng.permutation(90)
    once = ts.permutation_test(a, b, clusters=clusters, n_resamples=499)
    again = ts.permutation_test(a[rows], b[rows], clusters=clusters[rows], n_resamples=499)
    assert (once.details["way"], again.p_value) == ("drawn", once.p_value)


@pytest.mark.parametrize("n_resamples", [9_999, 99])
def test_without_clusters_every_row_is_one(n_resamples: int) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((2, 20))
    groups = np.arange(20) < 9
    rows = np.arange(20)
    options = {"n_resamples": n_resamples}
    assert ts.permutation_test(a, b, **options) == ts.permutation_test(a, b, clusters=rows, **options)
    assert ts.permutation_test(a, groups=groups, **options) == ts.permutation_test(
        a, groups=groups, clusters=rows, **options
    )
    matrix = ts.permutation_test(np.stack([a, b], axis=-1), **options)
    assert matrix.p_value == ts.permutation_test(a, b, **options).p_value
