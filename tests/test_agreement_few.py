"""Few units, few clusters, and nothing that varies: what is shown, what is withheld, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import triagestats as ts
from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS
from triagestats.intervals import wilson
from triagestats.score_intervals import tango_interval

Call = Callable[..., ts.Test]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # rounding of a few terms
FEW = {"n_resamples": 199}  # replicates, where an interval is there or not
LIKE_TWO: list[Call] = [
    ts.cohen_kappa,
    ts.pabak,
    ts.percent_agreement,
    ts.within_levels,
    ts.direction_of_disagreement,
]


def as_units(call: Call, **given: Any) -> Call:
    """A function of a matrix, as one of two raters."""
    return lambda a, b, **options: call(np.column_stack([a, b]), **given, **options)


CLUSTERED: list[Call] = [
    *LIKE_TWO,
    as_units(ts.gwet_ac1),
    as_units(ts.gwet_ac2, weights="linear"),
    as_units(ts.fleiss_kappa),
    as_units(ts.krippendorff_alpha),
    as_units(ts.icc, form="ICC(2,1)"),
]


def rated(n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four units a cluster, rated 1 to 3 by two who agree in part."""
    draw = np.random.default_rng(3)
    n = 4 * n_clusters
    first = draw.integers(1, 4, n)
    second = np.where(draw.random(n) < 0.6, first, draw.integers(1, 4, n))
    return first, second, np.arange(n) // 4


def codes(test: ts.Test) -> list[str]:
    return [note.code for note in test.notes]


def messages(test: ts.Test) -> str:
    return " ".join(note.message for note in test.notes)


@pytest.mark.parametrize("call", CLUSTERED)
def test_the_rule_of_few_clusters(call: Call) -> None:
    first, second, clusters = rated(FEWEST_CLUSTERS - 1)
    withheld = call(first, second, clusters=clusters, **FEW)
    assert withheld.estimate is not None
    assert withheld.conf_low is withheld.conf_high is withheld.details["std_error"] is None
    assert withheld.details["n_clusters"] == 4
    assert "4 clusters: too few for an interval (5 are needed)." in messages(withheld)
    first, second, clusters = rated(FEW_CLUSTERS - 1)
    doubted = call(first, second, clusters=clusters, **FEW)
    assert doubted.conf_low is not None
    assert "11 clusters: intervals from fewer than 12" in messages(doubted)
    assert doubted.tidy()["status"].to_list() == ["warning"]
    first, second, clusters = rated(FEW_CLUSTERS)
    enough = call(first, second, clusters=clusters, **FEW)
    assert "fewer than 12" not in messages(enough)


def test_how_the_percentile_interval_covers_is_said_below_30_clusters() -> None:
    first, second, clusters = rated(29)
    test = ts.cohen_kappa(first, second, clusters=clusters, **FEW)
    assert "coverage" in codes(test)
    assert "29 clusters" in messages(test)
    assert "interval='bca'" in messages(test)
    for interval in ("percentile", "bca"):
        chosen = ts.cohen_kappa(first, second, clusters=clusters, interval=interval, **FEW)
        assert "coverage" not in codes(chosen)
    first, second, clusters = rated(30)
    assert "coverage" not in codes(ts.cohen_kappa(first, second, clusters=clusters, **FEW))
    assert "coverage" not in codes(as_units(ts.krippendorff_alpha)(first[:29], second[:29], **FEW))


@pytest.mark.parametrize("call", [ts.cohen_kappa, as_units(ts.gwet_ac1), as_units(ts.krippendorff_alpha)])
def test_undefined_replicates_are_stated(call: Call) -> None:
    """Draws without the two odd clusters have one category."""
    first = ["x"] * 18 + ["y", "x"]
    second = ["x"] * 18 + ["y", "y"]
    test = call(first, second, clusters=np.arange(20) // 2, n_resamples=999)
    if test.estimand != "AC1":  # which is 1 there
        assert "replicates are undefined and left out" in messages(test)
    assert test.conf_low is not None


SMALL: list[tuple[Call, bool]] = [
    (ts.cohen_kappa, True),
    (as_units(ts.gwet_ac1), True),
    (as_units(ts.fleiss_kappa), True),
    (as_units(ts.krippendorff_alpha), False),
]


@pytest.mark.parametrize(("call", "tested"), SMALL)
def test_two_units_have_neither_interval_nor_test(call: Call, tested: bool) -> None:
    test = call([1, 2], [2, 2]) if call is not ts.cohen_kappa else call([1, 2], [1, 2])
    assert test.estimate is not None
    assert test.conf_low is test.conf_high is test.p_value is None
    assert messages(test).count("2 units: too few for an interval or a test (5 are needed).") == 1
    five = call([1, 1, 2, 2, 1], [2, 1, 2, 2, 1], **FEW)
    assert five.conf_low is not None
    assert (five.p_value is not None) == tested
    assert "5 units: intervals from fewer than 12" in messages(five)


def test_a_share_of_two_columns_is_that_of_two_vectors() -> None:
    first, second, _ = rated(5)
    vectors = ts.percent_agreement(first, second)
    columns = ts.percent_agreement(np.column_stack([first, second]))
    for name in ("estimate", "conf_low", "conf_high"):
        assert getattr(columns, name) == pytest.approx(getattr(vectors, name), abs=EXACT)
    assert columns.details["std_error"] == pytest.approx(vectors.details["std_error"], abs=EXACT)
    few = ts.percent_agreement([["a", "a"], ["a", "b"]])
    assert (few.conf_low, few.conf_high) == pytest.approx(wilson(0.5, 2, 0.95), abs=EXACT)


def test_shares_of_several_raters_stay_within_bounds() -> None:
    units = [["a"] * 3] * 5 + [["a", "a", "b"]]
    test = ts.percent_agreement(units)
    mean, error = 8 / 9, np.std([1] * 5 + [1 / 3], ddof=1) / np.sqrt(6)
    t, z = stats.t.ppf(0.975, 5), stats.norm.ppf(0.975)
    effective = mean * (1 - mean) / error**2 * (z / t) ** 2
    assert mean + t * error > 1  # the interval that leaves the bounds
    assert (test.conf_low, test.conf_high) == pytest.approx(wilson(mean, effective, 0.95), abs=EXACT)  # type: ignore[arg-type]
    assert test.details["std_error"] == pytest.approx(error, abs=EXACT)
    alike = ts.percent_agreement([["a", "a", "b"]] * 6)
    assert alike.conf_low is None
    assert "All units have one share of agreeing pairs" in messages(alike)
    assert ts.percent_agreement([["a", "a", "b"], ["a", "a", "a"]], counts=False).conf_low is None


def test_the_direction_stays_within_bounds() -> None:
    test = ts.direction_of_disagreement([1, 2], [2, 2])
    assert (test.conf_low, test.conf_high) == tango_interval(0, 1, 2, 0.95)
    assert -1 <= test.conf_low < test.conf_high <= 1  # type: ignore[operator]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 55])
def test_a_balanced_direction_has_p_1(n: int) -> None:
    first, second = [1, 2] * n + [1], [2, 1] * n + [2]
    assert ts.direction_of_disagreement(first, second).p_value == 1
    assert ts.direction_of_disagreement(first[:-1], second[:-1]).p_value == 1


def test_no_agreement_is_not_said_to_be_complete() -> None:
    test = ts.cohen_kappa(["a", "b"] * 6, ["c", "d"] * 6)
    assert test.estimate == 0
    assert test.conf_low is test.conf_high is None
    assert "No unit moves kappa" in messages(test)
    assert "All units agree" not in messages(test)


@pytest.mark.parametrize("call", [ts.cohen_kappa, as_units(ts.krippendorff_alpha), as_units(ts.fleiss_kappa)])
def test_perfect_agreement_by_cluster_has_no_interval(call: Call) -> None:
    test = call([1, 2] * 12, [1, 2] * 12, clusters=np.arange(24) // 2, **FEW)
    assert test.estimate == 1
    assert test.conf_low is test.conf_high is None
    assert codes(test) == ["degenerate"]
    units = call([1, 2] * 12, [1, 2] * 12, interval="percentile", **FEW)
    assert units.conf_low is None
    assert "All units agree" in messages(units)


def test_equal_shares_of_clusters_have_no_interval() -> None:
    test = ts.percent_agreement([1, 2] * 12, [1, 1] * 12, clusters=np.arange(24) // 2, **FEW)
    assert test.estimate == 0.5
    assert test.conf_low is None
    assert codes(test) == ["degenerate"]


def test_an_interval_without_width_is_withheld() -> None:
    """At a level of 1 % both ends are the median of a share of few values."""
    first, second, clusters = rated(12)
    test = ts.percent_agreement(first, second, clusters=clusters, conf_level=0.01, **FEW)
    assert test.conf_low is test.conf_high is None
    assert "the interval has no width" in messages(test)


def test_intervals_below_the_smallest_value_are_noted() -> None:
    test = ts.gwet_ac1([[1, 2], [2, 1], [1, 2], [2, 1], [1, 1]])
    assert test.conf_low is not None
    assert test.conf_low < -1
    assert "-1, the smallest value there is" in messages(test)


def test_missing_ratings_that_are_used_are_counted() -> None:
    units = [["a", "a", None], ["b", "b", "b"], ["a", "b", "b"], [None, "b", "b"], ["a", "a", "a"]]
    for test in (
        ts.gwet_ac1(units),
        ts.krippendorff_alpha(units, **FEW),
        ts.fleiss_kappa(units, unequal="pooled-margins"),
        ts.percent_agreement(units, missing="omit"),
    ):
        assert "2 of 15 ratings are missing; those that are there count." in messages(test)
        assert test.details["n_missing_ratings"] == 2


def test_missing_ratings_are_refused_in_one_wording(refusal: Refusal) -> None:
    matrix = [[1, 2], [2, None], [3, 3]]
    calls: list[tuple[Callable[..., object], str]] = [
        (lambda **o: ts.cohen_kappa([1, 2, 3], [2, None, 3], **o), "`a` or `b`"),
        (lambda **o: ts.pabak([1, 2, 3], [2, None, 3], **o), "`a` or `b`"),
        (lambda **o: ts.within_levels([1, 2, 3], [2, None, 3], **o), "`a` or `b`"),
        (lambda **o: ts.direction_of_disagreement([1, 2, 3], [2, None, 3], **o), "`a` or `b`"),
        (lambda **o: ts.percent_agreement(matrix, **o), "`a`"),
        (lambda **o: ts.icc(matrix, form="ICC1", **o), "`ratings`"),
        (lambda **o: ts.kendall_w(matrix, **o), "`ratings`"),
    ]
    for call, where in calls:
        said = refusal(call)
        assert said == (
            f"DataError: 1 of 3 rows have a missing value in {where}; drop them with missing='omit'"
        )
        kept = call(missing="omit")
        assert isinstance(kept, ts.Test)
        assert (kept.n, kept.details["n_missing"]) == (2, 1)
        assert "`missing` must be one of 'raise', 'omit'; got 'drop'" in refusal(
            lambda call=call: call(missing="drop")
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ts.cohen_kappa(x[:, 0], x[:, 1]),
        ts.percent_agreement,
        ts.gwet_ac1,
        lambda x: ts.krippendorff_alpha(x, metric="interval"),
        ts.fleiss_kappa,
        lambda x: ts.icc(x, form="ICC1"),
        ts.kendall_w,
        lambda x: ts.gwet_ac1(x, counts="units"),
    ],
)
def test_infinite_ratings_are_refused_in_one_wording(refusal: Refusal, call: Callable[[Any], object]) -> None:
    said = refusal(lambda: call(np.array([[1, 2], [2, np.inf], [1, 2.0]])))
    assert "holds 1 infinite value, the first in row 1 (from 0); replace it, or make it missing" in said


def test_agreement_observed_and_by_chance_have_one_name() -> None:
    first, second, _ = rated(10)
    for test in (
        ts.cohen_kappa(first, second),
        ts.pabak(first, second),
        as_units(ts.gwet_ac1)(first, second),
        as_units(ts.fleiss_kappa)(first, second),
    ):
        observed, expected = test.details["observed"], test.details["expected"]
        assert observed == pytest.approx(np.mean(first == second), abs=EXACT)
        assert test.estimate == pytest.approx((observed - expected) / (1 - expected), abs=EXACT)
        assert test.details["std_error"] > 0
        assert not {"po", "pe", "pa", "p_bar", "pe_bar", "se_null"} & set(test.details)


@pytest.mark.parametrize(
    "other", [[1, 2, 1, 2, 2], ["c", "d", "c", "d", "d"], [True, False, True, False, True]]
)
def test_raters_without_a_common_label_are_noted(other: list[object]) -> None:
    test = ts.cohen_kappa(["a", "b", "a", "b", "b"], other)
    assert "disjoint" in codes(test)
    assert "No label of `a`, ['a', 'b'], is one of the others'" in messages(test)
    assert "disjoint" in codes(ts.gwet_ac1([list(pair) for pair in zip("abbab", other, strict=True)]))


def test_raters_who_just_differ_are_not_noted() -> None:
    assert "disjoint" not in codes(ts.cohen_kappa([1, 1, 2], [3, 4, 4]))
    assert "disjoint" not in codes(ts.pabak(["a"] * 3, ["b"] * 3, categories=["a", "b"]))
    assert "disjoint" not in codes(ts.cohen_kappa(["a", "b", "c"], ["c", "d", "d"]))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (
            lambda: ts.cohen_kappa([1], [1], weights="z"),
            "'linear', 'quadratic', a matrix of weights of agreement, or None",
        ),
        (lambda: ts.gwet_ac2([[1, 2]], weights=None), "AC2 without weights is AC1, see gwet_ac1"),
        (
            lambda: ts.icc([[1, 2], [2, 3]]),
            "`form` is needed, one of 'ICC(1,1)', 'ICC(2,1)', 'ICC(3,1)', 'ICC(1,k)'",
        ),
        (lambda: ts.percent_agreement([], []), "`a` and `b` are empty"),
        (lambda: ts.krippendorff_alpha([]), "`ratings` holds no unit"),
        (lambda: ts.kendall_w(np.empty((0, 2))), "`ratings` holds no unit"),
        (lambda: ts.cohen_kappa([1], [2], categories=[1, 2, np.inf]), "`categories` holds an infinite value"),
        (lambda: ts.percent_agreement(["x"], data={"x": [1]}), "`a` must have one column a rater"),
    ],
)
def test_messages(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)
