"""Intervals on arrays, against closed forms, scipy and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from triagestats import intervals

CLOSE = 1e-12  # the same arithmetic in another order
SPECIAL = 1e-9  # two implementations of the incomplete beta function
QUICK = settings(max_examples=100, deadline=None)

samples = st.lists(st.floats(-100, 100), min_size=3, max_size=30)


def one(value: float) -> np.ndarray:
    return np.array([value])


def jackknife(x: np.ndarray) -> np.ndarray:
    return ((x.sum() - x) / (len(x) - 1))[:, None]


@QUICK
@given(samples)
def test_jackknife_of_a_mean_is_its_standard_error(values: list[float]) -> None:
    x = np.round(values, 12)  # squares of far smaller numbers vanish
    variance, size = intervals.jackknife_error(jackknife(x), np.ones((len(x), 1), dtype=bool))
    assert size[0] == len(x)
    scale = float(np.abs(x).max())
    assert math.sqrt(variance[0]) == pytest.approx(x.std(ddof=1) / math.sqrt(len(x)), abs=CLOSE * scale)


def test_jackknife_counts_clusters_that_carry_data() -> None:
    """A cluster without data neither adds to the sum nor to G."""
    x = np.array([1.0, 2.0, 6.0])
    without = np.concatenate([jackknife(x), [[3.0]]])
    variance, size = intervals.jackknife_error(without, np.array([[True], [True], [True], [False]]))
    assert size[0] == 3
    assert variance[0] == pytest.approx(x.var(ddof=1) / 3, rel=CLOSE)


def test_jackknife_of_one_cluster_is_undefined() -> None:
    variance, size = intervals.jackknife_error(np.array([[np.nan], [1.0]]), np.array([[True], [False]]))
    assert size[0] == 1
    assert np.isnan(variance[0])


def test_t_interval_by_hand() -> None:
    """Two-sided 95 % quantile of t with 4 degrees of freedom: 2.776445."""
    ends = intervals.jackknife_t(one(0.5), one(0.1), one(4), 0.95)
    assert ends.low[0] == pytest.approx(0.5 - 0.2776445, abs=1e-7)  # the quantile has seven digits
    assert ends.high[0] == pytest.approx(0.5 + 0.2776445, abs=1e-7)
    p = intervals.t_p_value(one(0.2776445), one(0.1), one(4))
    assert p[0] == pytest.approx(0.05, abs=1e-7)


def test_t_without_an_error_is_undefined() -> None:
    for error in (0.0, np.nan):
        ends = intervals.jackknife_t(one(0.5), one(error), one(4), 0.95)
        assert np.isnan([ends.low[0], ends.high[0]]).all()
        assert np.isnan(intervals.t_p_value(one(0.5), one(error), one(4)))[0]


def test_t_p_value_keeps_its_digits_in_the_tail() -> None:
    p = intervals.t_p_value(one(60.0), one(1.0), one(50))
    assert p[0] == pytest.approx(2 * stats.t.sf(60.0, 50), rel=SPECIAL)
    assert 0 < p[0] < 1e-40


@QUICK
@given(st.lists(st.floats(-10, 10), min_size=2, max_size=60), st.floats(0.05, 0.99))
def test_percentile_is_the_quantile_of_type_6(values: list[float], conf_level: float) -> None:
    replicates = np.array(values)[:, None]
    ends = intervals.percentile(replicates, conf_level)
    tail = (1 - conf_level) / 2
    expected = np.quantile(replicates[:, 0], [tail, 1 - tail], method="weibull")
    # A rank within 1e-9 of a whole number is read as that number.
    np.testing.assert_allclose([ends.low[0], ends.high[0]], expected, rtol=0, atol=2e-8)


def test_percentile_of_9999_is_an_order_statistic() -> None:
    ordered = np.arange(1.0, 10_000.0)
    shuffled = np.random.default_rng(2).permutation(ordered)[:, None]
    ends = intervals.percentile(shuffled, 0.95)
    assert (ends.low[0], ends.high[0]) == (250, 9750)
    ends = intervals.percentile(shuffled, 0.9)
    assert (ends.low[0], ends.high[0]) == (500, 9500)


def test_undefined_replicates_are_left_out() -> None:
    column = np.arange(1.0, 100.0)
    spoiled = np.concatenate([column, [np.nan, np.inf, -np.inf]])[:, None]
    ends, plain = intervals.percentile(spoiled, 0.9), intervals.percentile(column[:, None], 0.9)
    assert (ends.low[0], ends.high[0]) == (plain.low[0], plain.high[0]) == (5, 95)
    nothing = intervals.percentile(np.full((5, 1), np.nan), 0.9)
    assert np.isnan([nothing.low[0], nothing.high[0]]).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("conf_level", [0.8, 0.95])
def test_bca_has_the_ends_of_scipy_on_the_same_resamples(seed: int, conf_level: float) -> None:
    """scipy reads the same two probabilities off its replicates, by another definition of a quantile.

    Halves, whose means tie exactly: scipy has no tolerance for ties that rounding breaks.
    """
    x = np.random.default_rng(seed).exponential(3, size=16).round() / 2
    found = stats.bootstrap(
        (x,), np.mean, n_resamples=999, method="BCa", confidence_level=conf_level, rng=seed
    )
    replicates = found.bootstrap_distribution[:, None]
    ends = intervals.bca(
        one(x.mean()), replicates, jackknife(x), np.ones((len(x), 1), dtype=bool), conf_level
    )
    below = ((replicates < x.mean() - CLOSE).mean() + (replicates <= x.mean() + CLOSE).mean()) / 2
    z0 = stats.norm.ppf(below)
    d = (jackknife(x).mean() - jackknife(x))[:, 0]
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    probabilities = [
        stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))
        for z in stats.norm.ppf([(1 - conf_level) / 2, (1 + conf_level) / 2])
    ]
    type_6 = np.quantile(replicates[:, 0], probabilities, method="weibull")
    type_7 = np.quantile(replicates[:, 0], probabilities, method="linear")
    np.testing.assert_allclose([ends.low[0], ends.high[0]], type_6, rtol=SPECIAL)
    np.testing.assert_allclose([*found.confidence_interval], type_7, rtol=SPECIAL)


def test_bca_acceleration_is_that_of_the_clusters() -> None:
    """Replicates symmetric about the estimate leave z0 = 0, so the ends show a = +0.0470359 alone."""
    x = np.array([12.0, 7, 3, 9, 15, 4, 8, 22])
    replicates = np.linspace(0, 20, 99_999)[:, None]
    ends = intervals.bca(one(10.0), replicates, jackknife(x), np.ones((8, 1), dtype=bool), 0.95)
    z = stats.norm.ppf(0.975)
    for end, side in ((ends.low[0], -z), (ends.high[0], z)):
        probability = stats.norm.cdf(side / (1 - 0.0470358611053917 * side))
        assert end == pytest.approx(20 * (probability * 100_000 - 1) / 99_998, abs=1e-8)  # ten digits of a


def test_bca_is_undefined_where_it_is_degenerate() -> None:
    all_carry = np.ones((4, 1), dtype=bool)
    x = np.array([1.0, 2.0, 3.0, 4.0])
    cases = [
        (2.5, np.full((99, 1), 2.5), jackknife(np.full(4, 2.5))),  # nothing varies
        (2.5, np.linspace(3, 4, 99)[:, None], jackknife(x)),  # no replicate below
        (2.5, np.full((99, 1), np.nan), jackknife(x)),  # no replicate at all
    ]
    for estimate, replicates, without in cases:
        ends = intervals.bca(one(estimate), replicates, without, all_carry, 0.95)
        assert np.isnan([ends.low[0], ends.high[0]]).all()


def korn_graubard_by_hand(scores: list[list[float]], conf_level: float) -> tuple[float, float]:
    """The interval of a rate whose clusters weigh the same, written with scipy's beta distribution."""
    means = [sum(cluster) / len(cluster) for cluster in scores]
    g, n = len(scores), sum(len(cluster) for cluster in scores)
    rate = sum(means) / g
    extended = [*means, 0.0, 1.0]
    m = sum(extended) / (g + 2)
    variance = sum((x - m) ** 2 for x in extended) / (g + 1)  # of one of the g + 2 clusters
    effective = min(m * (1 - m) * (g + 2) / variance, n)
    half = (1 - conf_level) / 2
    effective *= (stats.t.isf(half, n - 1) / stats.t.isf(half, g - 1)) ** 2
    right, wrong = rate * effective, (1 - rate) * effective
    low = 0.0 if rate == 0 else float(stats.beta.ppf(half, right, wrong + 1))
    high = 1.0 if rate == 1 else float(stats.beta.isf(half, right + 1, wrong))
    return low, high


def korn_graubard(scores: list[list[float]], conf_level: float) -> tuple[float, float]:
    means = np.array([np.mean(cluster) for cluster in scores])
    ends = intervals.korn_graubard_plus_two(
        one(float(means.mean())),
        one(float(means.var(ddof=1)) / len(means)),
        one(len(means)),
        one(sum(len(cluster) for cluster in scores)),
        conf_level,
    )
    return float(ends.low[0]), float(ends.high[0])


clustered = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=5), min_size=5, max_size=20)


@QUICK
@given(clustered, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_korn_graubard_plus_two_adds_two_clusters(scores: list[list[float]], conf_level: float) -> None:
    np.testing.assert_allclose(
        korn_graubard(scores, conf_level), korn_graubard_by_hand(scores, conf_level), rtol=SPECIAL, atol=CLOSE
    )


@QUICK
@given(clustered)
def test_korn_graubard_plus_two_is_an_interval(scores: list[list[float]]) -> None:
    """Around the rate, inside [0, 1], never a point, wider at a higher level, mirrored with the scores."""
    rate = float(np.mean([np.mean(cluster) for cluster in scores]))
    inner = korn_graubard(scores, 0.8)
    outer = korn_graubard(scores, 0.95)
    assert 0 <= outer[0] <= inner[0] <= rate + CLOSE
    assert rate - CLOSE <= inner[1] <= outer[1] <= 1
    assert inner[1] - inner[0] > 0.05
    mirrored = korn_graubard([[1 - x for x in cluster] for cluster in scores], 0.95)
    np.testing.assert_allclose(mirrored, (1 - outer[1], 1 - outer[0]), rtol=SPECIAL, atol=CLOSE)


def test_korn_graubard_plus_two_at_the_boundary_by_hand() -> None:
    """All of 12 clusters of one row right: m = 13/14, v = 13/14 / 13, n* = min(13, 12) = 12 rows.

    The lower end is then that of Clopper and Pearson at 12 of 12, .025^(1/12).
    """
    low, high = korn_graubard([[1.0]] * 12, 0.95)
    assert high == 1
    assert low == pytest.approx(0.025 ** (1 / 12), rel=SPECIAL)
    assert korn_graubard([[0.0]] * 12, 0.95) == pytest.approx((0, 1 - low), rel=SPECIAL)


def test_many_rows_do_not_buy_certainty() -> None:
    """216 right rows of 12 scenarios: n* = 13 t^2 ratio, far from 216."""
    low, _ = korn_graubard([[1.0] * 18] * 12, 0.95)
    ratio = stats.t.isf(0.025, 215) / stats.t.isf(0.025, 11)
    assert low == pytest.approx(0.025 ** (1 / (13 * ratio**2)), rel=SPECIAL)
    assert low < 0.75
