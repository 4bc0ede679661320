"""Cohen's and Fleiss' kappa: values by hand, errors by simulation and resampling, clusters, and traps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.agreement.coefficients import pair_coefficients, together
from triagestats.agreement.estimation import influences
from triagestats.agreement.functions import fleiss_of_units, kappa
from triagestats.agreement.scale import plain_scale

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # rounding of sums of a few hundred terms
END = 0.004  # Monte Carlo error of two sets of 10,000 replicates
NEAR = 0.1  # share by which a bootstrap error of 60 or more units may differ from a large-sample one
TABLE = [[10, 2, 0, 0], [3, 9, 0, 1], [0, 0, 0, 0], [1, 0, 0, 4]]  # the third category is unused


def labels_of(table: list[list[int]], names: list[object]) -> tuple[list[object], list[object]]:
    """The labels of both raters that a table counts."""
    first, second = [], []
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            first += [names[i]] * count
            second += [names[j]] * count
    return first, second


def rated(n: int, seed: int, size: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Two raters who agree in part."""
    draw = np.random.default_rng(seed)
    first = draw.integers(1, size + 1, n)
    second = np.where(draw.random(n) < 0.6, first, draw.integers(1, size + 1, n))
    return first, second


def test_by_hand() -> None:
    test = ts.cohen_kappa([[20, 5], [10, 15]])
    assert test.estimate == pytest.approx((0.7 - 0.5) / 0.5, abs=EXACT)
    assert test.details["kappa_max"] == pytest.approx((0.9 - 0.5) / 0.5, abs=EXACT)
    assert test.n == 50


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_labels_and_table_agree(weights: str | None) -> None:
    first, second = labels_of(TABLE, [1, 2, 3, 4])
    of_labels = ts.cohen_kappa(first, second, weights=weights, categories=[1, 2, 3, 4])
    of_table = ts.cohen_kappa(TABLE, weights=weights)
    assert of_labels.estimate == pytest.approx(of_table.estimate, abs=EXACT)
    assert of_labels.conf_low == pytest.approx(of_table.conf_low, abs=EXACT)
    assert of_labels.details["pabak"] == pytest.approx(of_table.details["pabak"], abs=EXACT)


def test_weights_come_from_values_not_from_positions_of_what_occurs() -> None:
    first, second = labels_of(TABLE, [1, 2, 3, 4])
    by_value = ts.cohen_kappa(first, second, weights="quadratic")
    assert by_value.estimate == pytest.approx(0.725050916496945, abs=1e-12)
    text = [dict(zip((1, 2, 4), "abd", strict=True))[value] for value in first]
    other = [dict(zip((1, 2, 4), "abd", strict=True))[value] for value in second]
    declared = ts.cohen_kappa(text, other, weights="quadratic", categories=list("abcd"))
    assert declared.estimate == pytest.approx(0.725050916496945, abs=1e-12)
    squeezed = ts.cohen_kappa(text, other, weights="quadratic", categories=list("abd"))
    assert squeezed.estimate == pytest.approx(0.685534591194968, abs=1e-12)


def test_an_enum_declares_its_order() -> None:
    first, second = labels_of(TABLE, ["d", "c", "b", "a"])
    order = pl.Enum(["a", "b", "c", "d"])
    test = ts.cohen_kappa(pl.Series(first, dtype=order), pl.Series(second, dtype=order), weights="quadratic")
    assert test.estimate == pytest.approx(0.725050916496945, abs=1e-12)
    assert test.details["categories"] == ["a", "b", "c", "d"]


def test_text_without_an_order_has_no_weights(refusal: Refusal) -> None:
    said = refusal(lambda: ts.cohen_kappa(["lo", "hi"], ["hi", "hi"], weights="linear"))
    assert said == (
        "ArgumentError: `weights='linear'` needs the order of the categories, and nothing orders "
        "['hi', 'lo']; give `categories` from the lowest to the highest, or labels of an Enum"
    )


def test_given_weights_reproduce_the_named_ones() -> None:
    places = np.arange(4)
    linear = 1 - np.abs(np.subtract.outer(places, places)) / 3
    given = ts.cohen_kappa(TABLE, weights=linear)
    named = ts.cohen_kappa(TABLE, weights="linear")
    assert given.estimate == pytest.approx(named.estimate, abs=EXACT)
    assert given.details["std_error"] == pytest.approx(named.details["std_error"], abs=EXACT)
    assert given.estimand == "weighted kappa (given)"


@pytest.mark.parametrize(
    ("weights", "fragment"),
    [
        ("cubic", "`weights` must be one of 'linear', 'quadratic'"),
        ([[1, 0], [0, 1]], "must be a matrix of 4 x 4"),
        (1 - np.eye(4), "must be 1 on the diagonal"),
        (np.ones((4, 4)), "all 1"),
        (np.where(np.eye(4) == 1, 1, np.nan), "missing values"),
    ],
)
def test_wrong_weights(refusal: Refusal, weights: object, fragment: str) -> None:
    assert fragment in refusal(lambda: ts.cohen_kappa(TABLE, weights=weights))


def test_swapping_raters_and_relabelling_change_nothing() -> None:
    first, second = rated(60, 1)
    plain = ts.cohen_kappa(first, second)
    swapped = ts.cohen_kappa(second, first)
    names = np.array(["w", "z", "x", "y"])
    renamed = ts.cohen_kappa(names[first - 1], names[second - 1])
    assert swapped.estimate == pytest.approx(plain.estimate, abs=EXACT)
    assert swapped.details["std_error"] == pytest.approx(plain.details["std_error"], abs=EXACT)
    assert renamed.estimate == pytest.approx(plain.estimate, abs=EXACT)
    reversed_scale = ts.cohen_kappa(5 - first, 5 - second, weights="linear")
    assert reversed_scale.estimate == pytest.approx(
        ts.cohen_kappa(first, second, weights="linear").estimate, abs=EXACT
    )


def test_one_category_is_undefined() -> None:
    for test in (ts.cohen_kappa(["a"] * 3, ["a"] * 3), ts.cohen_kappa([0, 0, 0], [0, 0, 0])):
        assert test.estimate is test.p_value is test.conf_low is test.statistic is None
        assert test.undefined is not None
        assert test.undefined.startswith("All ratings are in one category")
        assert test.details["percent_agreement"] == 1
        assert test.details["gwet_ac1"] is None  # of one category
        assert test.tidy()["status"].to_list() == ["undefined"]
    declared = ts.cohen_kappa(["a"] * 3, ["a"] * 3, categories=["a", "b"])
    assert declared.estimate is None
    assert declared.details["gwet_ac1"] == declared.details["pabak"] == 1


@pytest.mark.parametrize("clusters", [None, [1, 1, 2, 2]])
def test_a_constant_rater_has_kappa_0_and_no_test(clusters: list[int] | None) -> None:
    test = ts.cohen_kappa(["a"] * 4, ["a", "b"] * 2, clusters=clusters)
    assert test.estimate == 0
    assert test.details["std_error_null"] == 0
    assert test.p_value is test.statistic is test.conf_low is None
    assert [note.code for note in test.notes] == ["one_rater_constant"]


def test_perfect_agreement_is_noted() -> None:
    test = ts.cohen_kappa([[5, 0], [0, 7]], counts="confusion")
    assert (test.estimate, test.conf_low, test.conf_high) == (1, 1, 1)
    assert [note.code for note in test.notes] == ["degenerate"]


def test_an_interval_beyond_1_is_noted() -> None:
    test = ts.cohen_kappa(TABLE, weights="quadratic")
    assert test.conf_high is not None
    assert test.conf_high > 1
    assert "beyond" in [note.code for note in test.notes]


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_the_error_is_that_of_the_influences(weights: str | None) -> None:
    first, second = rated(80, 2)
    test = ts.cohen_kappa(first, second, weights=weights)
    codes = (first - 1) * 4 + second - 1
    rows = np.eye(16)[codes]
    matrix = {None: np.eye(4)}.get(weights)
    if matrix is None:
        distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) / 3
        matrix = 1 - distance ** (1 if weights == "linear" else 2)
    found = influences(kappa("kappa", "kappa", matrix), rows)
    assert np.sqrt((found**2).sum()) == pytest.approx(test.details["std_error"], rel=1e-10)


def test_resampled_units_agree_with_the_large_sample_error() -> None:
    first, second = rated(150, 3)
    asymptotic = ts.cohen_kappa(first, second)
    for interval in ("percentile", "jackknife-t"):
        drawn = ts.cohen_kappa(first, second, interval=interval, n_resamples=1_999)
        assert drawn.details["std_error"] == pytest.approx(asymptotic.details["std_error"], rel=NEAR)
        assert drawn.estimate == asymptotic.estimate
        assert drawn.p_value == asymptotic.p_value
    of_table = ts.cohen_kappa(
        np.histogram2d(first, second, bins=4)[0].astype(int), interval="normal", n_resamples=1_999
    )
    assert of_table.details["std_error"] == pytest.approx(asymptotic.details["std_error"], rel=NEAR)
    assert of_table.method == "Cohen's kappa, unit bootstrap, normal, 1,999 drawn"


def test_clusters_of_copies_count_once() -> None:
    """Every unit three times over: the interval by cluster is that of the units."""
    first, second = rated(60, 4)
    single = ts.cohen_kappa(first, second, clusters=np.arange(60), n_resamples=999)
    copied = ts.cohen_kappa(
        np.tile(first, 3), np.tile(second, 3), clusters=np.tile(np.arange(60), 3), n_resamples=999
    )
    assert copied.estimate == pytest.approx(single.estimate, abs=EXACT)
    assert copied.conf_low == pytest.approx(single.conf_low, abs=EXACT)
    assert copied.details["n_clusters"] == 60
    assert copied.p_value is None
    independent = ts.cohen_kappa(np.tile(first, 3), np.tile(second, 3))
    assert independent.details["std_error"] < 0.7 * copied.details["std_error"]


def test_row_order_changes_nothing() -> None:
    first, second = rated(60, 5)
    clusters = np.arange(60) // 4
    order = np.random.default_rng(6).permutation(60)
    one = ts.cohen_kappa(first, second, clusters=clusters, n_resamples=999)
    other = ts.cohen_kappa(first[order], second[order], clusters=clusters[order], n_resamples=999)
    assert one.estimate == other.estimate
    assert one.conf_low == pytest.approx(other.conf_low, abs=EXACT)


def test_a_table_with_scenarios_is_noted_or_clustered() -> None:
    first, second = rated(60, 7)
    data = pl.DataFrame({"scenario": np.arange(60) // 3, "a": first, "b": second})
    plain = ts.cohen_kappa("a", "b", data=data)
    assert any("cohen_kappa(..., clusters=...)" in note.message for note in plain.notes)
    clustered = ts.cohen_kappa("a", "b", data=data, clusters="scenario", n_resamples=999)
    assert clustered.details["n_clusters"] == 20
    assert clustered.details["raters"] == ["a", "b"]
    assert [note.code for note in clustered.notes] == ["coverage"]


def test_all_coefficients_from_one_set_of_counts() -> None:
    first, second = rated(50, 8)
    counts = np.zeros((4, 4), dtype=int)
    np.add.at(counts, (first - 1, second - 1), 1)
    chosen = pair_coefficients(plain_scale(4))
    values = dict(zip([one.name for one in chosen], together(chosen)(counts.reshape(1, -1))[0], strict=True))
    units = np.column_stack([first, second])
    scale = {"categories": [1, 2, 3, 4]}
    expected = {
        "kappa": ts.cohen_kappa(first, second),
        "weighted_kappa": ts.cohen_kappa(first, second, weights="quadratic"),
        "ac1": ts.gwet_ac1(units, **scale),
        "pabak": ts.pabak(first, second, **scale),
        "percent_agreement": ts.percent_agreement(units),
        "within_1_level": ts.within_levels(first, second),
        "direction": ts.direction_of_disagreement(first, second),
    } | {
        f"alpha_{metric}": ts.krippendorff_alpha(units, metric=metric, n_resamples=1)
        for metric in ("nominal", "ordinal", "interval")
    }
    assert set(values) == {*expected, "disagreement"}
    for name, test in expected.items():
        assert values[name] == pytest.approx(test.estimate, abs=EXACT), name
    assert values["disagreement"] == pytest.approx(1 - values["percent_agreement"], abs=EXACT)


def test_coefficients_are_vectorised_and_undefined_is_nan() -> None:
    chosen = pair_coefficients(plain_scale(2))
    read = together(chosen)
    stack = np.array([[[20, 5, 10, 15], [9, 0, 0, 0]], [[0, 0, 0, 0], [3, 0, 0, 5]]], dtype=float)
    values = read(stack)
    assert values.shape == (2, 2, len(chosen))
    names = [one.name for one in chosen]
    assert np.isnan(values[0, 1, names.index("kappa")])
    assert values[0, 1, names.index("ac1")] == 1
    assert np.isnan(values[1, 0]).all()
    assert values[1, 1, names.index("kappa")] == 1
    np.testing.assert_array_equal(read(stack[0, 0]), values[0, 0])


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: ts.cohen_kappa([1, 2], [1, 2, 3]), "`a` and `b` must pair: they have 2 and 3 labels"),
        (lambda: ts.cohen_kappa([], []), "`a` and `b` are empty"),
        (lambda: ts.cohen_kappa([None], [None]), "every label is missing"),
        (lambda: ts.cohen_kappa([1, None], [1, 2]), "missing='omit'"),
        (lambda: ts.cohen_kappa([1, 2]), "`b` is needed"),
        (lambda: ts.cohen_kappa([[1, -2], [3, 4]]), "a negative count"),
        (lambda: ts.cohen_kappa([[1, 2.5], [3, 4]]), "not whole"),
        (lambda: ts.cohen_kappa([[1, 2, 3], [3, 4, 5]]), "as many rows as columns"),
        (lambda: ts.cohen_kappa([[0, 0], [0, 0]]), "no observation"),
        (lambda: ts.cohen_kappa([[1, 2], [3, 4]], clusters=[1, 2]), "table of counts"),
        (lambda: ts.cohen_kappa([1, 2], [1, 3], categories=[1, 2]), "none of the categories ['1', '2']"),
        (lambda: ts.cohen_kappa([1, 2], [1, 2], categories=[1, 3, 2]), "must rise or fall"),
        (lambda: ts.cohen_kappa([1, 2], [1, 2], categories=[1, 1, 2]), "each once"),
        (lambda: ts.cohen_kappa([1, 2], [1, 2], categories="12"), "must be a list"),
        (lambda: ts.cohen_kappa(["1", "1.0"], ["1", "2"]), "are one number"),
        (lambda: ts.cohen_kappa([1, 2], [1, 2], interval="wald"), "`interval` must be one of"),
        (lambda: ts.cohen_kappa([1, 2], [1, 2], conf_level=95), "did you mean 0.95"),
        (lambda: ts.cohen_kappa("a", "b"), "a column name needs its table"),
        (lambda: ts.cohen_kappa([1, 2, 1], [1, 2, 2], clusters=[1, 1]), "one label a row"),
    ],
)
def test_bad_input(refusal: Refusal, call: Callable[[], object], fragment: str) -> None:
    assert fragment in refusal(call)


def test_missing_pairs_are_omitted_and_counted() -> None:
    test = ts.cohen_kappa([1, 2, None, 1, 2], [1, 2, 1, float("nan"), 1], missing="omit")
    assert (test.n, test.details["n_missing"]) == (3, 2)
    assert test.estimate == ts.cohen_kappa([1, 2, 2], [1, 2, 1]).estimate
    assert test.tidy()["n_missing"].to_list() == [2]


def test_one_cluster_has_no_interval() -> None:
    test = ts.cohen_kappa([1, 2, 1], [1, 2, 2], clusters=["x"] * 3)
    assert test.estimate is not None
    assert test.conf_low is None
    assert [note.code for note in test.notes] == ["few_clusters"]


def test_fleiss_of_labels_and_counts() -> None:
    labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "c", "c"], ["a", "a", "a"]]
    counts = [[2, 1, 0], [0, 3, 0], [1, 0, 2], [3, 0, 0]]
    one, other = ts.fleiss_kappa(labels), ts.fleiss_kappa(counts, counts=True)
    assert one.estimate == other.estimate
    observed = (1 / 3 + 1 + 1 / 3 + 1) / 4
    chance = (6**2 + 4**2 + 2**2) / 12**2
    assert one.estimate == pytest.approx((observed - chance) / (1 - chance), abs=EXACT)
    assert one.details["n_raters"] == 3


def test_fleiss_of_two_raters_is_scott_pi() -> None:
    first, second = rated(40, 9)
    fleiss = ts.fleiss_kappa(np.column_stack([first, second]))
    assert fleiss.estimate == pytest.approx(ts.cohen_kappa(first, second).details["scott_pi"], abs=EXACT)


def test_fleiss_unequal_numbers(refusal: Refusal) -> None:
    assert "unequal='pooled-margins'" in refusal(lambda: ts.fleiss_kappa([[2, 1], [0, 2]], counts=True))
    assert "has units with 2 to 3 ratings" in refusal(
        lambda: ts.fleiss_kappa([["a", "a", "b"], ["b", "b", None]])
    )
    pooled = ts.fleiss_kappa([[2, 1], [0, 2]], counts=True, unequal="pooled-margins")
    assert pooled.estimate == pytest.approx((2 / 3 - 13 / 25) / (12 / 25), abs=EXACT)  # 0.30556
    assert pooled.p_value is None
    assert pooled.method.startswith("Fleiss' kappa with pooled margins")
    single = ts.fleiss_kappa([[2, 1], [0, 2], [1, 0]], counts=True, unequal="pooled-margins")
    assert (single.estimate, single.details["n_missing"]) == (pooled.estimate, 1)
    assert "no unit with two ratings" in refusal(lambda: ts.fleiss_kappa([[1, 0], [0, 1]], counts=True))


def test_fleiss_one_category_is_undefined() -> None:
    test = ts.fleiss_kappa([[7, 0], [7, 0]], counts=True)
    assert test.estimate is None
    assert test.undefined is not None
    assert test.details["observed"] == test.details["gwet_ac1"] == test.details["randolph_free_marginal"] == 1


def test_fleiss_errors() -> None:
    draw = np.random.default_rng(10)
    base = draw.integers(0, 3, 120)
    ratings = np.where(draw.random((120, 4)) < 0.6, base[:, None], draw.integers(0, 3, (120, 4)))
    linear = ts.fleiss_kappa(ratings)
    drawn = ts.fleiss_kappa(ratings, interval="percentile", n_resamples=1_999)
    assert drawn.details["std_error"] == pytest.approx(linear.details["std_error"], rel=NEAR)
    clustered = ts.fleiss_kappa(ratings, clusters=np.arange(120) // 2, n_resamples=999)
    assert clustered.details["n_clusters"] == 60
    assert clustered.p_value is None


def test_influences_are_derivatives() -> None:
    totals = np.random.default_rng(11).integers(1, 5, (6, 5)).astype(float)
    totals[:, 0] /= 5
    totals[:, 1] = 1
    coefficient = fleiss_of_units()
    step, whole = 1e-6, totals.sum(axis=0)
    forward, back = (coefficient.evaluate(whole + sign * step * totals) for sign in (1, -1))
    np.testing.assert_allclose(influences(coefficient, totals), (forward - back) / (2 * step), atol=1e-8)


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


def _judged(shared: Shared, study: str, name: str, **roles: object) -> ts.ResponseTable:
    responses = _read(shared(f"replication/{study}/{name}_responses.csv"))
    judgments = _read(shared(f"replication/{study}/{name}_judgments.csv"))
    return ts.ResponseTable(responses, **roles).with_judgments(judgments)  # type: ignore[arg-type]


def test_study_1_by_scenario(shared: Shared) -> None:
    test = ts.cohen_kappa(_judged(shared, "study1", "natural"))
    assert test.estimate == pytest.approx(0.9208525166830479, abs=EXACT)
    assert test.conf_low == pytest.approx(0.8504268, abs=END)
    assert test.conf_high == pytest.approx(0.9656276, abs=END)
    assert (test.n, test.details["n_clusters"]) == (850, 17)
    assert test.details["percent_agreement"] == pytest.approx(805 / 850, abs=EXACT)


def test_study_2(shared: Shared) -> None:
    scale = {"levels": ["A", "B", "C", "D"]}
    free = _judged(shared, "study2", "natural_free_text", **scale)
    first = ts.cohen_kappa("gpt-5.4-xhigh", "claude-opus-4.6", data=free, missing="omit", n_resamples=999)
    assert first.estimate == pytest.approx(0.8274663771299152, abs=EXACT)
    assert first.details["percent_agreement"] == pytest.approx(0.8874643874643875, abs=EXACT)
    assert first.details["raters"] == ["gpt-5.4-xhigh", "claude-opus-4.6"]
    assert first.details["categories"] == ["A", "B", "C", "D"]
    stripped = ts.cohen_kappa(_judged(shared, "study2", "source_stripped", **scale), n_resamples=999)
    assert stripped.estimate == pytest.approx(0.7891690781314592, abs=EXACT)


def test_severity_scales(shared: Shared) -> None:
    data = pl.read_csv(shared("replication/medsafe/severity_scales.csv"))
    sides = ("ddxplus_severity", "reference_level")
    expected = {None: 0.32544052863436124, "linear": 0.5672554347826086, "quadratic": 0.766109785202864}
    for weights, value in expected.items():
        test = ts.cohen_kappa(*sides, data=data, weights=weights, categories=[1, 2, 3, 4, 5])
        assert test.estimate == pytest.approx(value, abs=EXACT)
    within = ts.within_levels(*sides, data=data, categories=[1, 2, 3, 4, 5])
    assert (within.details["n_within"], within.n) == (48, 49)
