"""adjust: closed testing by enumeration, missing values, families, tables, max-T and bad input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.step_procedures import BY_ORDER

PRODUCTS = 1e-12  # the same products in another order
NOISE = 5  # standard errors of a Monte Carlo p-value: one failure in a million seeds

Refusal = Callable[[Callable[[], object]], str]
FAMILIES_OF_P = [
    [0.01, 0.01, 0.03, 0.03, 0.05],
    [0.7, 0.002, 0.03, 0.03, 0.5, 0.0005],
    [0.011, 0.02, 0.022, 0.09, 0.6],
    [0.0, 1.0, 0.02, 0.5],
    [0.4],
    [0.3, 0.04],
]


def closed(p: Sequence[float], local: Callable[[list[float]], float]) -> list[float]:
    """Largest local p-value of all subsets of hypotheses that hold one: the closed test."""
    places = range(len(p))
    subsets = [s for size in places for s in itertools.combinations(places, size + 1)]
    return [max(local(sorted(p[i] for i in s)) for s in subsets if place in s) for place in places]


def bonferroni(p: list[float]) -> float:
    return min(1.0, len(p) * p[0])


def simes(p: list[float]) -> float:
    return min(len(p) * value / (rank + 1) for rank, value in enumerate(p))


def sidak(p: list[float]) -> float:
    return 1 - (1 - p[0]) ** len(p)


@pytest.mark.parametrize("p", FAMILIES_OF_P)
@pytest.mark.parametrize(
    ("method", "local"), [("holm", bonferroni), ("hommel", simes), ("holm-sidak", sidak)]
)
def test_step_procedures_are_closed_tests(
    p: list[float], method: Any, local: Callable[[list[float]], float]
) -> None:
    assert ts.adjust(p, method=method).p_adjusted == pytest.approx(closed(p, local), rel=1e-10)


@pytest.mark.parametrize("p", FAMILIES_OF_P)
def test_by_the_definitions(p: list[float]) -> None:
    m, ranked = len(p), sorted(p)
    harmonic = sum(1 / i for i in range(1, m + 1))

    def up(factor: Callable[[int], float]) -> list[float]:
        return [min(1.0, *(factor(j + 1) * ranked[j] for j in range(ranked.index(v), m))) for v in p]

    assert ts.adjust(p, method="hochberg").p_adjusted == pytest.approx(up(lambda j: m - j + 1), rel=PRODUCTS)
    assert ts.adjust(p, method="bh").p_adjusted == pytest.approx(up(lambda j: m / j), rel=PRODUCTS)
    assert ts.adjust(p, method="by").p_adjusted == pytest.approx(up(lambda j: harmonic * m / j), rel=PRODUCTS)
    assert ts.adjust(p, method="bonferroni").p_adjusted == pytest.approx(
        [min(1.0, m * v) for v in p], rel=PRODUCTS
    )
    assert ts.adjust(p, method="sidak").p_adjusted == pytest.approx([1 - (1 - v) ** m for v in p], rel=1e-10)


@pytest.mark.parametrize("method", BY_ORDER)
def test_properties_of_every_procedure(method: Any) -> None:
    random = np.random.default_rng(1)
    for _ in range(40):
        p = random.random(int(random.integers(1, 12))) ** 2
        found = np.array(ts.adjust(p, method=method).p_adjusted, dtype=float)
        assert (found >= p * (1 - PRODUCTS)).all()
        assert (found <= 1).all()
        assert (np.diff(found[np.argsort(p)]) >= 0).all()
        order = random.permutation(len(p))
        assert ts.adjust(p[order], method=method).p_adjusted == tuple(found[order])


def test_the_less_strict_never_exceed_the_stricter() -> None:
    for p in FAMILIES_OF_P:
        by = {method: np.array(ts.adjust(p, method=method).p_adjusted, dtype=float) for method in BY_ORDER}
        slack = 1 + PRODUCTS
        for smaller, larger in [
            ("holm", "bonferroni"),
            ("hochberg", "holm"),
            ("hommel", "hochberg"),
            ("bh", "hommel"),
            ("bh", "by"),
            ("sidak", "bonferroni"),
            ("holm-sidak", "holm"),
        ]:
            assert (by[smaller] <= by[larger] * slack).all(), (smaller, larger)


@pytest.mark.parametrize("method", ["sidak", "holm-sidak"])
def test_sidak_keeps_the_digits_of_tiny_p_values(method: Any) -> None:
    assert ts.adjust([1e-300, 1e-20, 0.5], method=method).p_adjusted[:2] == pytest.approx(
        (3e-300, 3e-20 if method == "sidak" else 2e-20), rel=PRODUCTS
    )


@pytest.mark.parametrize(
    ("method", "expected"), [("holm", (0.08, 0.06, None, 0.5)), ("bh", (0.06, 0.06, None, 0.5))]
)
@pytest.mark.parametrize(
    "p",
    [
        [0.04, 0.02, None, 0.5],
        np.array([0.04, 0.02, math.nan, 0.5]),
        pl.Series([0.04, 0.02, None, 0.5]),
        [0.04, 0.02, math.nan, 0.5],
    ],
)
def test_missing_p_values_keep_their_place(p: Any, method: Any, expected: tuple[float | None, ...]) -> None:
    result = ts.adjust(p, method=method)
    assert [value is None for value in result.p_adjusted] == [False, False, True, False]
    assert [v for v in result.p_adjusted if v is not None] == pytest.approx(
        [v for v in expected if v is not None]
    )
    assert (result.n, result.n_missing) == (3, 1)
    assert result.notes[0].message == "1 of 4 p-values are missing and not counted."


def test_all_missing() -> None:
    result = ts.adjust([None, None], family=["a", "b"])
    assert (result.p_adjusted, result.n, result.n_missing) == ((None, None), 0, 2)


def test_families_are_adjusted_by_themselves() -> None:
    p = [0.01, 0.04, 0.03, None, 0.2, 0.001]
    result = ts.adjust(p, family=["x", "x", "y", "y", "y", "z"])
    assert result.p_adjusted[:2] == ts.adjust(p[:2]).p_adjusted
    assert result.p_adjusted[2:5] == ts.adjust(p[2:5]).p_adjusted
    assert result.p_adjusted[5] == 0.001
    assert result.p_adjusted_overall == ts.adjust(p).p_adjusted
    assert result.family == ("x", "x", "y", "y", "y", "z")
    assert result.notes[-1].message == "3 families of 2, 2, 1 p-values, each adjusted by itself."
    assert result.glance()["n_families"].to_list() == [3]


def test_a_tidy_frame_is_filled_in() -> None:
    frame = pl.DataFrame(
        {
            "model": ["m", "m", "n", "n", None, None],
            "judge": ["a", "b", "a", "b", "a", "b"],
            "p_value": [0.01, 0.02, 0.03, None, 0.5, 0.001],
            "p_adjusted": [None] * 6,
            "status": ["ok"] * 6,
        },
        schema_overrides={"p_adjusted": pl.Float64},
    )
    result = ts.adjust(frame, family="model")
    filled = result.tidy()
    assert filled.columns == frame.columns
    assert filled.drop("p_adjusted").equals(frame.drop("p_adjusted"))
    assert filled["p_adjusted"].to_list() == [0.02, 0.02, 0.03, None, 0.5, 0.002]
    assert result.family == ("m", "m", "n", "n", "null", "null")
    both = ts.adjust(frame, family=["model", "judge"])
    assert both.p_adjusted == both.p_values
    assert both.family is not None
    assert both.family[4] == "model=null, judge=a"
    by_label = ts.adjust(frame, family=["u", "u", "v", "v", "w", "w"])
    assert by_label.p_adjusted == result.p_adjusted
    assert ts.adjust(frame.to_pandas(), family="model").p_adjusted == result.p_adjusted


def test_results_of_tests_are_read() -> None:
    tests = [
        ts.fisher_exact([[3, 1], [1, 3]]),
        ts.chi_square([[0, 0], [1, 2]]),
        ts.bowker([[30, 12], [4, 50]]),
    ]
    result = ts.adjust(tests)
    assert result.p_values == tuple(test.p_value for test in tests)
    assert result.p_adjusted[1] is None


def test_forms_of_the_result() -> None:
    result = ts.adjust([0.04, None], family=["x", "y"])
    tidy = result.tidy()
    assert tidy.select("term", "p_value", "p_adjusted", "status", "method").rows() == [
        ("x", 0.04, 0.04, "ok", "Holm"),
        ("y", None, None, "undefined", "Holm"),
    ]
    assert result.to_dict()["p_values"][1] == {
        "p_value": None,
        "p_adjusted": None,
        "p_adjusted_overall": None,
        "family": "y",
    }
    assert len(result.to_pandas()) == 2
    assert repr(result).splitlines()[:3] == [
        "Holm: 1 p-values, 1 missing",
        "  x: 0.04 -> 0.04",
        "  y: missing",
    ]


def joint_null(seed: int, n_statistics: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    common = random.standard_normal((200, 1))
    replicates = (common + random.standard_normal((200, n_statistics))) / 2**0.5
    return replicates[0] + np.linspace(0, 2, n_statistics), replicates


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stepping_down_is_the_closed_max_test(seed: int, alternative: Any) -> None:
    """The largest p-value of all subsets, each tested by its own maximum."""
    statistics, replicates = joint_null(seed)
    side = {"two-sided": np.abs, "greater": lambda v: v, "less": lambda v: -v}[alternative]
    own, null = side(statistics), side(replicates)
    subsets = [list(s) for size in range(1, 5) for s in itertools.combinations(range(4), size)]
    share = {
        tuple(s): ((null[:, s].max(axis=1) >= own[s].max()).sum() + 1) / (len(null) + 1) for s in subsets
    }
    expected = [max(share[tuple(s)] for s in subsets if place in s) for place in range(4)]
    result = ts.adjust(statistics=statistics, replicates=replicates, method="max-t", alternative=alternative)
    assert result.p_adjusted == pytest.approx(expected, rel=PRODUCTS)
    largest = null.max(axis=1)
    single = ts.adjust(
        statistics=statistics, replicates=replicates, method="max-t-single-step", alternative=alternative
    )
    assert single.p_adjusted == pytest.approx([((largest >= v).sum() + 1) / 201 for v in own], rel=PRODUCTS)
    for step, one, raw in zip(result.p_adjusted, single.p_adjusted, result.p_values, strict=True):
        assert raw is not None
        assert step is not None
        assert one is not None
        assert raw <= step <= one


def test_ties_by_float_noise_still_count() -> None:
    statistics = [0.1 + 0.2, 0.7]
    replicates = [[0.3, 0.1], [-0.3, 0.7], [0.0, 0.0], [0.1, 0.2]]
    result = ts.adjust(statistics=statistics, replicates=replicates, exact=True, method="max-t")
    assert result.p_values == (0.5, 0.25)


def test_missing_statistics_keep_their_place() -> None:
    statistics, replicates = joint_null(1)
    gap = statistics.copy()
    gap[1] = math.nan
    result = ts.adjust(statistics=gap, replicates=replicates, method="max-t")
    kept = [0, 2, 3]
    others = ts.adjust(statistics=statistics[kept], replicates=replicates[:, kept], method="max-t")
    assert tuple(result.p_adjusted[place] for place in kept) == others.p_adjusted
    assert (result.p_adjusted[1], result.p_values[1], result.n_missing) == (None, None, 1)


def test_max_t_within_families() -> None:
    statistics, replicates = joint_null(2)
    result = ts.adjust(statistics=statistics, replicates=replicates, method="max-t", family=list("aabb"))
    for part in ([0, 1], [2, 3]):
        alone = ts.adjust(statistics=statistics[part], replicates=replicates[:, part], method="max-t")
        assert tuple(result.p_adjusted[place] for place in part) == alone.p_adjusted
    whole = ts.adjust(statistics=statistics, replicates=replicates, method="max-t")
    assert result.p_adjusted_overall == whole.p_adjusted


def test_sign_flips_of_differences() -> None:
    random = np.random.default_rng(5)
    differences = random.normal(0.4, 1, (9, 3)).round(2)
    flips = np.array(list(itertools.product([1, -1], repeat=9)))
    t = np.array([d.mean(axis=0) / (d.std(axis=0, ddof=1) / 3) for d in flips[:, :, None] * differences])
    expected = ts.adjust(statistics=t[0], replicates=t, exact=True, method="max-t")
    result = ts.adjust(differences=differences, method="max-t")
    assert result.p_adjusted == expected.p_adjusted
    assert result.details["statistics"] == pytest.approx(t[0].tolist(), rel=1e-10)
    assert result.details["way"] == "enumeration"
    drawn = ts.adjust(differences=differences, method="max-t", n_resamples=500, seed=3)
    assert drawn.details["way"] == "drawn"
    assert [note.code for note in drawn.notes] == ["drawn"]
    for sampled, exact in zip(drawn.p_adjusted, result.p_adjusted, strict=True):
        assert sampled is not None
        assert exact is not None
        assert abs(sampled - exact) < NOISE * (exact * (1 - exact) / 500) ** 0.5 + 1 / 501
    again = ts.adjust(differences=differences, method="max-t", n_resamples=500, seed=3)
    assert drawn == again
    single = ts.permutation_test(differences[:, 0], np.zeros(9))
    assert result.p_values[0] == single.p_value


def test_clusters_flip_together() -> None:
    random = np.random.default_rng(6)
    differences = random.normal(0.3, 1, (12, 2)).round(1)
    clusters = list("aabbbccddeff")
    totals = np.array([differences[[c == name for c in clusters]].sum(axis=0) for name in "abcdef"])
    result = ts.adjust(differences=differences, clusters=clusters, method="max-t")
    assert result.p_adjusted == ts.adjust(differences=totals, method="max-t").p_adjusted
    assert result.details["n_clusters"] == 6
    single = ts.permutation_test(differences[:, 1], np.zeros(12), clusters=clusters)
    assert result.p_values[1] == single.p_value


def test_differences_without_spread() -> None:
    """A column of zeros has p = 1 and no t; a constant one has the smallest p and an infinite t."""
    result = ts.adjust(differences=[[0, 2, 1], [0, 2, -1], [0, 2, 3], [0, 2, 1]], method="max-t")
    assert result.p_values[:2] == (1.0, 2 / 16)
    assert result.details["statistics"][:2] == [None, math.inf]


REFUSED: dict[str, Callable[[], object]] = {
    "ArgumentError: `p_values` must lie between 0 and 1; got 1.5 in place 1 (from 0)": (
        lambda: ts.adjust([0.1, 1.5])
    ),
    "ArgumentTypeError: `p_values` must hold numbers; got 'a'": lambda: ts.adjust(["a", 0.1]),
    "ArgumentError: `p_values` holds no value": lambda: ts.adjust([]),
    "ArgumentTypeError: `p_values` is needed: a vector, `Test` results, or a table with `p_value`": (
        lambda: ts.adjust(method="bh")
    ),
    "ArgumentError: `method` must be one of 'holm', 'bonferroni', 'hochberg', 'hommel', 'bh', 'by', 'sidak', "
    "'holm-sidak', 'max-t', 'max-t-single-step'; got 'fdr'": (
        lambda: ts.adjust([0.1], method="fdr")  # type: ignore[arg-type]
    ),
    "ArgumentError: `family` must have one label a row: expected 2, got 1": (
        lambda: ts.adjust([0.1, 0.2], family=["x"])
    ),
    "ArgumentError: `family` is missing in 1 of 2 rows; drop these rows first": (
        lambda: ts.adjust([0.1, 0.2], family=["x", None])
    ),
    "ArgumentTypeError: `family` is the text 'model'; a column name needs a table as `p_values`, else give "
    "one label a p-value": lambda: ts.adjust([0.1, 0.2], family="model"),
    "ArgumentError: `family` names ['judge'], which the table does not have; its columns are "
    "['model', 'p_value']": lambda: ts.adjust({"model": ["m"], "p_value": [0.1]}, family="judge"),
    "ArgumentError: `statistics` is for method='max-t'; got method='holm'": (
        lambda: ts.adjust([0.1], statistics=[1.0])
    ),
    "ArgumentError: `p_values` cannot be given with method='max-t', which makes its own": (
        lambda: ts.adjust([0.1], method="max-t")
    ),
    "ArgumentTypeError: max-T needs `statistics` and `replicates`, or `differences`: it looks at the tests "
    "together": lambda: ts.adjust(method="max-t", statistics=[1.0]),
    "ArgumentError: `replicates` must have one column a statistic: expected 2, got 1": (
        lambda: ts.adjust(method="max-t", statistics=[1.0, 2.0], replicates=[[0.5]])
    ),
    "DataError: 1 of 2 rows of `replicates` have a missing value; drop them first": (
        lambda: ts.adjust(method="max-t", statistics=[1.0], replicates=[[0.5], [math.nan]])
    ),
    "DataError: `replicates` hold none as extreme as `statistics`; with `exact=True` they must be all "
    "arrangements of the data, the observed one among them": (
        lambda: ts.adjust(method="max-t", statistics=[2.0], replicates=[[0.5], [1.0]], exact=True)
    ),
    "DesignError: `differences` have one cluster, and sign flips by cluster need two": (
        lambda: ts.adjust(method="max-t", differences=[[1.0], [2.0]], clusters=["a", "a"])
    ),
    "DataError: 1 of 2 rows of `differences` have a missing value; drop them first": (
        lambda: ts.adjust(method="max-t", differences=[[1.0], [math.nan]])
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(refusal: Refusal, message: str) -> None:
    assert refusal(REFUSED[message]) == message
