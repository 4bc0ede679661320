"""Krippendorff's alpha: by its definition over pairs of ratings, invariances, clusters, published values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.agreement.disagreement import Metric, alpha_of_pairs, alpha_of_units
from triagestats.agreement.scale import plain_scale, scale_of

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

METRICS: tuple[Metric, ...] = ("nominal", "ordinal", "interval", "ratio")
EXACT = 1e-12  # rounding of sums of a few hundred terms
FEW = 199  # replicates, where only the estimate is compared


def rated(n: int, m: int, seed: int, *, gaps: bool = False) -> list[list[float | None]]:
    """Ratings from 1 to 4 of n units by m raters who agree in part."""
    draw = np.random.default_rng(seed)
    base = draw.integers(1, 5, n)
    values = np.where(draw.random((n, m)) < 0.5, base[:, None], draw.integers(1, 5, (n, m)))
    lost = draw.random((n, m)) < (0.25 if gaps else 0)
    return [
        [None if gone else float(v) for v, gone in zip(*row, strict=True)]
        for row in zip(values, lost, strict=True)
    ]


def by_definition(units: list[list[float | None]], metric: str) -> float:
    """Alpha by loops over ordered pairs of ratings."""
    pairable = [[v for v in unit if v is not None] for unit in units]
    pairable = [unit for unit in pairable if len(unit) > 1]
    pooled = sorted(v for unit in pairable for v in unit)
    n = len(pooled)
    count = {v: pooled.count(v) for v in pooled}

    def distance(c: float, k: float) -> float:
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return (c - k) ** 2
        if metric == "ratio":
            return 0.0 if c == k else ((c - k) / (c + k)) ** 2
        low, high = min(c, k), max(c, k)
        between = sum(number for v, number in count.items() if low <= v <= high)
        return (between - (count[low] + count[high]) / 2) ** 2

    observed = sum(distance(c, k) / (len(unit) - 1) for unit in pairable for c, k in permutations(unit, 2))
    expected = sum(distance(c, k) for c, k in permutations(pooled, 2))
    return 1 - (n - 1) * observed / expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("m", "gaps"), [(2, False), (3, False), (4, True)])
def test_by_definition(metric: Metric, m: int, gaps: bool) -> None:
    units = rated(25, m, 10 + m, gaps=gaps)
    test = ts.krippendorff_alpha(units, metric=metric, n_resamples=FEW)
    assert test.estimate == pytest.approx(by_definition(units, metric), abs=EXACT)


@pytest.mark.parametrize("metric", METRICS)
def test_order_of_units_and_raters_changes_nothing(metric: Metric) -> None:
    units = rated(20, 3, 1, gaps=True)
    plain = ts.krippendorff_alpha(units, metric=metric, n_resamples=FEW)
    turned = ts.krippendorff_alpha([unit[::-1] for unit in units[::-1]], metric=metric, n_resamples=FEW)
    assert turned.estimate == pytest.approx(plain.estimate, abs=EXACT)
    assert turned.details["n_pairable"] == plain.details["n_pairable"]


def test_what_each_metric_is_invariant_to() -> None:
    units = np.array(rated(30, 3, 2))
    value = {m: ts.krippendorff_alpha(units, metric=m, n_resamples=FEW).estimate for m in METRICS}
    shifted = {m: ts.krippendorff_alpha(units * 3 + 7, metric=m, n_resamples=FEW).estimate for m in METRICS}
    scaled = {m: ts.krippendorff_alpha(units * 3, metric=m, n_resamples=FEW).estimate for m in METRICS}
    bent = {m: ts.krippendorff_alpha(units**3, metric=m, n_resamples=FEW).estimate for m in METRICS}
    for metric in ("nominal", "ordinal", "interval"):
        assert shifted[metric] == pytest.approx(value[metric], abs=1e-10)
    assert scaled["ratio"] == pytest.approx(value["ratio"], abs=1e-10)
    assert shifted["ratio"] != pytest.approx(value["ratio"], abs=1e-3)
    assert bent["ordinal"] == pytest.approx(value["ordinal"], abs=1e-10)
    assert bent["interval"] != pytest.approx(value["interval"], abs=1e-3)


@pytest.mark.parametrize("metric", METRICS)
def test_unused_categories_change_nothing(metric: Metric) -> None:
    units = rated(20, 3, 3)
    occurring = ts.krippendorff_alpha(units, metric=metric, n_resamples=FEW)
    declared = ts.krippendorff_alpha(units, metric=metric, categories=range(1, 8), n_resamples=FEW)
    assert declared.estimate == pytest.approx(occurring.estimate, abs=EXACT)


@pytest.mark.parametrize("metric", METRICS)
def test_counts_of_pairs_and_of_units_agree(metric: Metric) -> None:
    draw = np.random.default_rng(4)
    codes = draw.integers(0, 4, (40, 2))
    scale = plain_scale(4, [1, 2, 4, 8])
    confusion = np.bincount(codes[:, 0] * 4 + codes[:, 1], minlength=16).astype(float)
    counts = np.stack([(codes == c).sum(axis=1) for c in range(4)], axis=1)
    coefficient, rows = alpha_of_units("alpha", counts, scale, metric)
    of_pairs = alpha_of_pairs("alpha", scale, metric).evaluate(confusion)
    assert float(of_pairs) == pytest.approx(float(coefficient.evaluate(rows.sum(axis=0))), abs=EXACT)
    with_counts = ts.krippendorff_alpha(
        counts, counts=True, categories=[1, 2, 4, 8], metric=metric, n_resamples=FEW
    )
    assert with_counts.estimate == pytest.approx(float(of_pairs), abs=EXACT)


def test_single_ratings_are_dropped_and_counted() -> None:
    units = [[1, 1, None], [2, 2, 3], [3, None, None], [None, None, None], [1, 2, 2]]
    test = ts.krippendorff_alpha(units, n_resamples=FEW)
    assert test.estimate == ts.krippendorff_alpha([units[0], units[1], units[4]], n_resamples=FEW).estimate
    assert test.details["n_pairable"] == 8
    assert (test.details["n_single"], test.details["n_missing"], test.n) == (1, 2, 3)
    assert [note.code for note in test.notes if note.code in ("unrated", "single")] == ["unrated", "single"]


def test_a_single_disagreement_is_0() -> None:
    raters = [[3, 3, 3, 3, 3], [3, 3, 3, 3, 3], [3, 3, None, None, 3], [3, 3, 3, 3, 1], [3, None, 3, 3, 3]]
    units = [list(unit) for unit in zip(*raters, strict=True)]
    assert ts.krippendorff_alpha(units, n_resamples=FEW).estimate == pytest.approx(0, abs=EXACT)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("value", [1, 0.1, 7])
def test_constant_ratings_are_undefined(metric: Metric, value: float) -> None:
    test = ts.krippendorff_alpha([[value] * 3] * 4, metric=metric)
    assert test.estimate is test.conf_low is None
    assert test.undefined is not None
    assert "nothing could disagree" in test.undefined


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_of_one_category_are_left_out(metric: Metric) -> None:
    """Draws without the two odd units have no variation: undefined, not 1."""
    units = [[0.1, 0.1]] * 6 + [[0.1, 0.7], [0.7, 0.7]]
    test = ts.krippendorff_alpha(units, metric=metric, n_resamples=999)
    assert any("replicates are undefined and left out" in note.message for note in test.notes)
    assert test.conf_high == 1
    assert test.conf_low is not None
    assert test.conf_low <= 0


def test_resampled_units() -> None:
    units = rated(120, 3, 5)
    test = ts.krippendorff_alpha(units, metric="ordinal", n_resamples=1_999)
    assert test.method == "Krippendorff's alpha (ordinal), unit bootstrap, percentile, 1,999 drawn"
    jackknife = ts.krippendorff_alpha(units, metric="ordinal", interval="jackknife-t")
    assert test.details["std_error"] == pytest.approx(jackknife.details["std_error"], rel=0.1)
    clustered = ts.krippendorff_alpha(units, metric="ordinal", clusters=np.arange(120) // 3, n_resamples=999)
    assert clustered.details["n_clusters"] == 40
    assert clustered.estimate == test.estimate


@pytest.mark.parametrize("metric", METRICS)
def test_the_jackknife_leaves_units_out(metric: Metric) -> None:
    units = rated(15, 3, 6, gaps=True)
    units = [unit for unit in units if sum(v is not None for v in unit) > 1]
    test = ts.krippendorff_alpha(units, metric=metric, interval="jackknife-t")
    without = np.array([by_definition(units[:i] + units[i + 1 :], metric) for i in range(len(units))])
    n = len(units)
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    assert test.details["std_error"] == pytest.approx(error, rel=1e-9)


def test_many_different_numbers() -> None:
    draw = np.random.default_rng(7)
    level = draw.normal(50, 10, 700)
    ratings = level[:, None] + draw.normal(0, 5, (700, 2))
    test = ts.krippendorff_alpha(ratings, metric="interval", n_resamples=FEW)
    assert test.estimate == pytest.approx(100 / 125, abs=0.05)
    assert len(test.details["categories"]) == 1_400


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.krippendorff_alpha([["a", "b"], ["b", "b"]], metric="ordinal"), "needs the order"),
        (lambda: ts.krippendorff_alpha([["a", "b"]], metric="ratio", categories=["a", "b"]), "needs numbers"),
        (lambda: ts.krippendorff_alpha([[-1, 2], [2, 2]], metric="ratio"), "needs numbers from 0; got -1"),
        (lambda: ts.krippendorff_alpha([[1, 2]], metric="cubic"), "`metric` must be one of"),
        (lambda: ts.krippendorff_alpha([[1, None], [None, 2]]), "no unit with two ratings"),
        (lambda: ts.krippendorff_alpha([[None, None]]), "every label is missing"),
        (lambda: ts.krippendorff_alpha([[1], [2]]), "one column a rater, and two at least; got 1"),
        (lambda: ts.krippendorff_alpha([[1, 2], [1]]), "rows of 1 and of 2"),
        (lambda: ts.krippendorff_alpha([1, 2, 3]), "must be a matrix"),
        (lambda: ts.krippendorff_alpha([[1.5, 0.5]], counts=True), "not whole"),
        (
            lambda: ts.krippendorff_alpha(np.arange(2_200.0).reshape(-1, 2), metric="ordinal"),
            "takes up to 1,000 categories; got 2,200",
        ),
    ],
)
def test_bad_input(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)


def test_the_scale_of_an_enum_orders_text() -> None:
    order = pl.Enum(["low", "mid", "high"])
    frame = pl.DataFrame(
        {"x": ["low", "high", "mid", "high"], "y": ["low", "mid", "mid", "high"]},
        schema={"x": order, "y": order},
    )
    test = ts.krippendorff_alpha(frame, metric="ordinal", n_resamples=FEW)
    numbers = ts.krippendorff_alpha([[1, 1], [3, 2], [2, 2], [3, 3]], metric="ordinal", n_resamples=FEW)
    assert test.estimate == pytest.approx(numbers.estimate, abs=EXACT)
    assert test.details["raters"] == ["x", "y"]
    assert scale_of(frame.get_columns()).labels == ("low", "mid", "high")


def test_narrativeshield(shared: Shared) -> None:
    rows = pl.read_csv(shared("replication/narrativeshield/annotations.csv"))
    data = rows.pivot("rater", index=["question_id", "voice"], values="realism")
    three, two = ["Annotator_1", "Annotator_2", "Annotator_3"], ["Annotator_1", "Annotator_3"]
    expected = {
        "nominal": (-0.05956261995512668, 0.020109998589761813),
        "ordinal": (-0.013716816664070208, 0.22644287423014953),
        "interval": (0.011455174456108774, 0.2286521110839671),
        "ratio": (0.011580016447063968, 0.2039404793838313),
    }
    for metric, values in expected.items():
        for raters, value in zip((three, two), values, strict=True):
            test = ts.krippendorff_alpha(raters, data=data, metric=metric, n_resamples=FEW)  # type: ignore[arg-type]
            assert test.estimate == pytest.approx(value, abs=1e-10)
    by_question = ts.krippendorff_alpha(two, data=data, metric="ordinal", clusters="question_id")
    assert by_question.details["n_clusters"] == 100
    assert by_question.conf_low is not None
    assert 0 < by_question.conf_low < 0.2264 < by_question.conf_high  # type: ignore[operator]
