"""Permutation p-values: by enumeration in Python, against oracles, and sampled against exact."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from triagestats.blocks import Block, Target
from triagestats.estimands import AnchoringGap, Difference, Estimand, Function, Gap, Mean
from triagestats.permutation import Permuted, block_tests, max_t

Array = np.ndarray

EXACT = 1e-12  # counts over counts
QUICK = settings(max_examples=40, deadline=None)


def block_of(estimand: Estimand, n_models: int = 1) -> Block:
    """Columns are the levels of model 0, of model 1, ..., then the weight of each model."""
    n_levels = len(estimand.levels)
    columns = np.arange(n_models * n_levels).reshape(n_models, n_levels)
    models = np.arange(n_models)
    return Block(
        target=Target(estimand, None, (tuple(range(n_levels)),)),
        stratum=None,
        models=(None, *range(n_models)),
        numerators=columns,
        denominators=n_models * n_levels + models,
        groups=(models, *(np.array([m]) for m in models)),
        shares=(np.full(n_models, 1 / n_models), *(np.ones(1) for _ in models)),
        n_rows=(1,) * (n_models + 1),
        n_keys=(1,) * (n_models + 1),
    )


def totals_of(scores: Array) -> Array:
    """Totals of scores (G, M, L), one scenario a cluster."""
    flat = scores.reshape(len(scores), -1)
    return np.ascontiguousarray(np.hstack([flat, np.ones(scores.shape[:2])]))


def paired(differences: Sequence[float]) -> tuple[Block, Array]:
    scores = np.stack([np.array(differences, dtype=float), np.zeros(len(differences))], axis=-1)
    return block_of(Difference("a", "b")), totals_of(scores[:, None])


def enumerated_p(estimand: Estimand, scores: Array, *, centered: bool) -> float:
    """Every relabelling of every cluster, for the mean over models."""
    n_clusters, n_models, n_labels = scores.shape

    def value(arranged: Array) -> float:
        return float(
            np.mean([float(estimand.evaluate(arranged[:, m].mean(axis=0))) for m in range(n_models)])
        )

    orders = [list(order) for order in itertools.permutations(range(n_labels))]
    null = [
        value(np.stack([scores[g][:, orders[code]] for g, code in enumerate(codes)]))
        for codes in itertools.product(range(len(orders)), repeat=n_clusters)
    ]
    center = 0.0 if centered else math.fsum(null) / len(null)
    observed = abs(value(scores) - center)
    return sum(abs(x - center) >= observed - 1e-9 for x in null) / len(null)


def pooled(block: Block, totals: Array, n_resamples: int = 9_999, seed: int = 1) -> Permuted:
    found = block_tests(block, totals, n_resamples=n_resamples, seed=seed)[0]
    assert found is not None
    return found


@QUICK
@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_differences_are_enumerated(n_clusters: int, n_models: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.choice([0, 0.1, 0.2, 0.3, 1], size=(n_clusters, n_models, 2))
    estimand = Difference("a", "b")
    found = pooled(block_of(estimand, n_models), totals_of(scores))
    assert found.way == "enumeration"
    assert found.p_value == pytest.approx(enumerated_p(estimand, scores, centered=True), abs=EXACT)


@QUICK
@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 2**32 - 1))
def test_three_labels_are_enumerated(n_clusters: int, n_models: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.choice([0, 0.1, 0.2, 0.3, 1], size=(n_clusters, n_models, 3))
    for estimand in (Gap("a", ["b", "c"]), AnchoringGap("a", ["b", "c"])):
        found = pooled(block_of(estimand, n_models), totals_of(scores))
        expected = enumerated_p(estimand, scores, centered=isinstance(estimand, Gap))
        assert found.p_value == pytest.approx(expected, abs=EXACT)


def test_a_function_is_centered_at_its_null_mean() -> None:
    scores = np.random.default_rng(3).random((4, 2, 2))
    scores[1] = 0.7  # does not move, but counts in both means
    ratio = Function(lambda v: v[..., 0] / v[..., 1], [Mean("a"), Mean("b")], null=1.0)
    found = pooled(block_of(ratio, 2), totals_of(scores))
    assert found.p_value == pytest.approx(enumerated_p(ratio, scores, centered=False), abs=EXACT)


@QUICK
@given(st.integers(0, 2**32 - 1))
def test_models_share_one_relabelling(seed: int) -> None:
    """Two models with the same scores: pooled and single p-values agree, as they move together."""
    scores = np.repeat(np.random.default_rng(seed).random((7, 1, 2)), 2, axis=1)
    found = block_tests(block_of(Difference("a", "b"), 2), totals_of(scores), n_resamples=200, seed=3)
    assert len({result.p_value for result in found if result}) == 1


@pytest.fixture
def oracle(shared: Callable[[str], Path]) -> dict[str, dict]:
    fixtures = json.loads(shared("oracles/permutation.json").read_text())["fixtures"]
    return {fixture["name"]: fixture for fixture in fixtures}


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
def test_sign_flips_of_the_oracle(oracle: dict[str, dict], name: str) -> None:
    fixture = oracle[name]
    found = pooled(*paired(fixture["input"]["differences"]))
    tolerance = fixture["tolerance"]
    assert found.way == "enumeration"
    assert found.p_value == pytest.approx(
        fixture["expected"]["p_two_abs"], rel=tolerance["rtol"], abs=tolerance["atol"]
    )


def test_ties_of_tenths_count() -> None:
    """In floats .1 + .2 exceeds .3, so that a plain comparison would miss arrangements."""
    found = pooled(*paired([0.3, 0.2, 0.1, 0.1, 0.1, 0.2, -0.3, 0.1, 0.2]))
    integers = pooled(*paired([3, 2, 1, 1, 1, 2, -3, 1, 2]))
    assert found.p_value == integers.p_value


def test_rounding_is_not_a_difference() -> None:
    """Both sides hold .6 up to the last bit: nothing moves and p = 1."""
    scores = np.array([[0.1 + 0.2 + 0.3, 0.6]] * 8)[:, None]
    assert scores[0, 0, 0] != scores[0, 0, 1]
    found = pooled(block_of(Difference("a", "b")), totals_of(scores))
    assert (found.p_value, found.n_moving, found.n_arrangements) == (1.0, 0, 1)
    noisy = np.concatenate([scores, [[[0.5, 0.25]], [[0.25, 0.5]]]])
    found = pooled(block_of(Difference("a", "b")), totals_of(noisy))
    assert (found.p_value, found.n_moving) == (1.0, 2)


def test_models_that_cancel_leave_rounding() -> None:
    """One model is .3 up and the other .3 down in every cluster: every arrangement gives 0."""
    scores = np.array([[[0.1 + 0.2, 0.0], [0.0, 0.3]]] * 8)
    found = pooled(block_of(Difference("a", "b"), 2), totals_of(scores))
    assert (found.p_value, found.n_moving) == (1.0, 8)


def test_equal_data_have_p_one() -> None:
    found = pooled(*paired([0.0] * 20))
    assert found == Permuted(1.0, "enumeration", n_arrangements=1, n_moving=0, smallest=1.0)


@pytest.mark.parametrize(("n", "smallest"), [(1, 1.0), (2, 0.5), (5, 1 / 16), (13, 2**-12)])
def test_the_smallest_p_is_attained_when_all_agree(n: int, smallest: float) -> None:
    found = pooled(*paired([1.0] * n + [0.0] * 3))
    assert found.way == "enumeration"
    assert (found.n_moving, found.n_arrangements) == (n, 2**n)
    assert found.p_value == found.smallest == smallest


def test_drawn_p_values_are_never_zero() -> None:
    """20 clusters off any lattice, 999 drawn arrangements, none as extreme: (0 + 1) / (999 + 1)."""
    found = pooled(*paired(np.sqrt(np.arange(1, 21))), n_resamples=999)
    assert found.way == "drawn"
    assert found.p_value == found.smallest == 0.001


def test_enumerated_where_the_arrangements_are_at_most_the_replicates() -> None:
    assert pooled(*paired([1.0] * 5), n_resamples=32).way == "enumeration"
    assert pooled(*paired([1.0] * 5), n_resamples=31).way == "convolution"
    assert pooled(*paired(np.sqrt([2, 3, 5, 7, 11])), n_resamples=31).way == "drawn"


def test_a_convolution_gives_the_enumerated_p_value() -> None:
    differences = np.random.default_rng(8).integers(-4, 6, size=12) / 15
    few, many = (pooled(*paired(differences), n_resamples=number) for number in (100, 4_096))
    assert (few.way, many.way) == ("convolution", "enumeration")
    assert few.p_value == pytest.approx(many.p_value, rel=1e-12)
    assert (few.n_arrangements, few.n_moving) == (2**few.n_moving, many.n_moving)


def test_a_convolution_of_three_labels_gives_the_enumerated_p_value() -> None:
    scores = np.random.default_rng(4).integers(0, 4, size=(5, 2, 3)) / 3
    block, totals = block_of(Gap("a", ["b", "c"]), 2), totals_of(scores)
    few = block_tests(block, totals, n_resamples=100, seed=1)
    many = block_tests(block, totals, n_resamples=6**5, seed=1)
    assert {found.way for found in few if found} == {"convolution"}
    assert {found.way for found in many if found} == {"enumeration"}
    for one, other in zip(few, many, strict=True):
        assert one is not None
        assert other is not None
        assert one.p_value == pytest.approx(other.p_value, rel=1e-12)


def test_a_p_value_far_in_the_tail_keeps_its_digits() -> None:
    assert pooled(*paired(np.arange(1.0, 61.0))).p_value == pytest.approx(2.0**-59, rel=1e-12)


def test_drawn_p_values_come_near_the_enumerated_one() -> None:
    differences = np.random.default_rng(9).normal(0.4, 1, size=12)
    exact = pooled(*paired(differences))
    assert exact.way == "enumeration"
    drawn = pooled(*paired(differences), n_resamples=4_000)
    assert drawn.way == "drawn"
    error = math.sqrt(exact.p_value * (1 - exact.p_value) / 4_000)
    assert abs(drawn.p_value - exact.p_value) < 4 * error + 1 / 4_001


def test_threads_and_chunks_change_nothing() -> None:
    scores = np.random.default_rng(2).random((15, 12, 3))
    block, totals = block_of(Gap("a", ["b", "c"]), 12), totals_of(scores)
    once = block_tests(block, totals, n_resamples=301, seed=4)
    for n_threads, chunk in ((2, None), (1, 1), (2, 7), (1, 300)):
        other = block_tests(block, totals, n_resamples=301, seed=4, n_threads=n_threads, chunk=chunk)
        assert other == once
    few = np.ascontiguousarray(totals[:3])
    assert block_tests(block, few, n_resamples=301, seed=4, chunk=5) == block_tests(
        block, few, n_resamples=301, seed=4
    )


@QUICK
@given(st.integers(0, 2**32 - 1), st.permutations(range(8)))
def test_relabelled_clusters_and_swapped_sides_keep_the_exact_p(seed: int, order: list[int]) -> None:
    scores = np.random.default_rng(seed).choice([0.1, 0.2, 0.3, 0.7], size=(8, 1, 2))
    block = block_of(Difference("a", "b"))
    p = pooled(block, totals_of(scores)).p_value
    assert pooled(block, totals_of(scores[order])).p_value == p
    assert pooled(block, totals_of(scores[..., ::-1])).p_value == p
    assert pooled(block, totals_of(scores + 4)).p_value == p


def test_one_level_or_nine_have_no_test() -> None:
    block = block_of(Mean("a"))
    totals = totals_of(np.ones((5, 1, 1)))
    assert block_tests(block, totals, n_resamples=9, seed=1) == (None, None)
    nine = [str(level) for level in range(9)]
    block = block_of(Gap(nine[0], nine[1:]))
    totals = totals_of(np.ones((5, 1, 9)))
    assert block_tests(block, totals, n_resamples=9, seed=1) == (None, None)


@QUICK
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([1, -1]))
def test_one_sided_tests_are_enumerated(n_clusters: int, seed: int, sign: int) -> None:
    scores = np.random.default_rng(seed).choice([0, 0.1, 0.2, 0.3, 1], size=(n_clusters, 2, 2))
    block, totals = block_of(Difference("a", "b"), 2), totals_of(scores)
    d = (scores[..., 0] - scores[..., 1]).mean(axis=1)
    null = [np.dot(d, signs) for signs in itertools.product([1, -1], repeat=n_clusters)]
    expected = np.mean([sign * x >= sign * d.sum() - 1e-9 for x in null])
    for n_resamples in (9_999, 1):
        found = block_tests(
            block, totals, n_resamples=n_resamples, seed=1, alternative="greater" if sign > 0 else "less"
        )[0]
        assert found is not None
        assert found.way in ("enumeration", "convolution")
        assert found.p_value == pytest.approx(expected, abs=EXACT)


def test_an_undefined_estimate_has_no_test() -> None:
    ratio = Function(lambda v: v[..., 0] / v[..., 1], [Mean("a"), Mean("b")], null=1.0)
    scores = np.array([[[0.0, 0.0]], [[0.0, 0.0]]])
    assert block_tests(block_of(ratio), totals_of(scores), n_resamples=99, seed=1) == (None, None)


def test_undefined_arrangements_do_not_spoil_the_others() -> None:
    """1 / 0 is infinite and counts, 0 / 0 does not; the center is the mean of what is finite."""
    ratio = Function(lambda v: v[..., 0] / v[..., 1], [Mean("a"), Mean("b")], null=1.0)
    scores = np.array([[[1.0, 0.5]], [[0.0, 0.5]], [[0.5, 0.0]]])
    found = pooled(block_of(ratio), totals_of(scores))
    values = []
    for codes in itertools.product([0, 1], repeat=3):
        a, b = np.sum([row[0][::-1] if code else row[0] for row, code in zip(scores, codes, strict=True)], 0)
        values.append(a / b if b else math.inf)
    center = np.mean([x for x in values if x < math.inf])
    assert found.p_value == np.mean([abs(x - center) >= abs(values[0] - center) - 1e-9 for x in values])


# Drawn arrangements about a center that is known by symmetry, or estimated.

ONE_SIDE = 4  # standard errors; missed by chance once in 30,000 seeds


def drawn_error(p_value: float, n_resamples: int) -> float:
    return math.sqrt(p_value * (1 - p_value) / n_resamples)


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v[..., 0] - v[..., 1],
        lambda v: 3 + v[..., 0],
        lambda v: (v[..., 0] - v[..., 1]) ** 3,
        lambda v: np.log((v[..., 0] + 1) / (v[..., 1] + 1)),
    ],
)
def test_a_center_known_by_symmetry_keeps_ties(function: Callable[[Array], Array]) -> None:
    scores = np.random.default_rng(14).integers(0, 2, size=(22, 1, 2)).astype(float)
    block = block_of(Function(function, [Mean("a"), Mean("b")], null=0.0))
    totals = totals_of(scores)
    exact = pooled(block, totals, n_resamples=2**15)
    n = 300
    assert exact.way == "enumeration"
    assert exact.p_value < 0.9
    drawn = [pooled(block, totals, n_resamples=n, seed=seed) for seed in range(100)]
    assert {found.way for found in drawn} == {"drawn"}
    errors = [found.p_value - exact.p_value for found in drawn]
    error = drawn_error(exact.p_value, n)
    assert max(np.abs(errors)) < ONE_SIDE * error + 1 / n
    assert abs(np.mean(errors)) < ONE_SIDE * error / 10 + 1 / n


def lopsided(v: Array) -> Array:
    result: Array = v[..., 0] - v[..., 1] + 0.5 * v[..., 0] * v[..., 1]
    return result


def test_an_estimated_center_loses_no_tie() -> None:
    """Three labels of 0/1 scores: the mean over arrangements is not known by symmetry."""
    scores = np.random.default_rng(6).integers(0, 2, size=(6, 1, 3)).astype(float)
    first = Function(lambda v: v[..., 0] - v[..., 1], [Mean(x) for x in "abc"], null=0.0)
    two = np.random.default_rng(12).integers(0, 2, size=(16, 1, 2)).astype(float)
    product = Function(lopsided, [Mean("a"), Mean("b")], null=0.0)
    for estimand, data, n in ((first, scores, 900), (product, two, 100)):
        block, totals = block_of(estimand), totals_of(data)
        exact = pooled(block, totals, n_resamples=50_000)
        assert exact.way == "enumeration"
        assert exact.p_value < 0.9
        for seed in range(60):
            found = pooled(block, totals, n_resamples=n, seed=seed)
            assert found.way == "drawn"
            assert found.p_value > exact.p_value - ONE_SIDE * drawn_error(exact.p_value, n)
            family = max_t([block], totals, n_resamples=n, seed=seed)
            assert family.p_adjusted[0] == pytest.approx(found.p_value, abs=EXACT)  # a family of one


def test_a_family_about_estimated_centers_loses_no_tie() -> None:
    """Drawn max-T against that of all arrangements, for two models with ties."""
    scores = np.random.default_rng(14).integers(0, 2, size=(5, 2, 3)).astype(float)
    spread = Function(
        lambda v: v.max(axis=-1) - v.min(axis=-1) - v[..., 0] / 3, [Mean(x) for x in "abc"], null=0.0
    )
    block, totals = block_of(spread, 2), totals_of(scores)
    exact = max_t([block], totals, n_resamples=6**5, seed=1)
    assert exact.exact
    n = 2_000
    for seed in range(40):
        found = max_t([block], totals, n_resamples=n, seed=seed)
        assert not found.exact
        below = exact.p_adjusted - found.p_adjusted
        assert (below < [ONE_SIDE * drawn_error(p, n) + 1 / n for p in exact.p_adjusted]).all()


def test_a_continuous_statistic_about_an_estimated_center_has_no_bias() -> None:
    scores = np.random.default_rng(13).random((13, 1, 2))
    block, totals = block_of(Function(lopsided, [Mean("a"), Mean("b")], null=0.0)), totals_of(scores)
    exact = pooled(block, totals)
    assert exact.way == "enumeration"
    n = 500
    errors = [pooled(block, totals, n_resamples=n, seed=s).p_value - exact.p_value for s in range(100)]
    # The mean of 100; the error of the center adds to that of a share, and draws repeat among 8,192.
    assert abs(np.mean(errors)) < ONE_SIDE * 2 * drawn_error(exact.p_value, n) / 10 + 1 / n


def test_rounding_of_models_that_cancel_lies_on_no_lattice() -> None:
    """.3 - .2 and 0 - .1 sum to -1e-17 in floats: one arrangement in effect, p = 1 however it is found."""
    block, totals = block_of(Difference("a", "b"), 2), totals_of(np.array([[[0.3, 0.2], [0.0, 0.1]]] * 3))
    for n_resamples in (1, 99):
        found = block_tests(block, totals, n_resamples=n_resamples, seed=1, alternative="less")[0]
        assert found is not None
        assert found.p_value == 1.0


def test_many_pairs_are_exact() -> None:
    """Sign flips of 0/1 pairs are the binomial test, however many there are."""
    d = np.repeat([1.0, -1.0, 0.0], [5_200, 4_800, 10_000])
    found = pooled(*paired(d))
    assert found.way == "convolution"
    assert found.p_value == pytest.approx(2 * binom.sf(5_199, 10_000, 0.5), rel=1e-9)
    assert 0 < pooled(*paired(np.ones(5_000))).p_value < 1e-300
    assert "n_moving=10000" in repr(found)
