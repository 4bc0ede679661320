"""The signed-rank test and the sign test: by hand, by enumeration, against SciPy and published studies."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.results import Alternative
from triagestats.signed_ranks import ZeroMethod

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of probabilities
CLOSE = 1e-9  # the same formula in another order

ALTERNATIVES: tuple[Alternative, ...] = get_args(Alternative)
ZERO_METHODS: tuple[ZeroMethod, ...] = get_args(ZeroMethod)
LIKERT = (
    [5, 4, 3, 5, 4, 2, 5, 3, 4, 5, 1, 4, 3, 5, 2],
    [3, 4, 2, 5, 2, 3, 3, 3, 1, 4, 2, 2, 3, 3, 1],
)


def differences(seed: int, size: int) -> list[float]:
    """Small whole numbers: ties, and zeros."""
    return [float(value) for value in np.random.default_rng(seed).integers(-2, 5, size)]


def share(sums: np.ndarray, own: float, alternative: Alternative) -> float:
    """Of sums as extreme as the own one; `two-sided` twice the smaller tail."""
    above, below = float(np.mean(sums >= own - 1e-9)), float(np.mean(sums <= own + 1e-9))
    return {"greater": above, "less": below, "two-sided": min(1.0, 2 * min(above, below))}[alternative]


def enumerated(
    d: np.ndarray, clusters: np.ndarray, zero_method: ZeroMethod, alternative: Alternative
) -> float:
    """p over all signs of the clusters, by definition."""
    kept = d[d != 0] if zero_method == "wilcox" else d
    labels = clusters[d != 0] if zero_method == "wilcox" else clusters
    ranks = stats.rankdata(np.abs(kept)) * np.sign(kept)
    names = np.unique(clusters)
    sums = np.array(
        [
            sum(sign * ranks[labels == name].sum() for sign, name in zip(signs, names, strict=True))
            for signs in product((1, -1), repeat=len(names))
        ]
    )
    return share(sums, float(ranks.sum()), alternative)


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("seed", range(6))
def test_exact_p_is_that_of_all_signs(seed: int, alternative: Alternative, zero_method: ZeroMethod) -> None:
    d = differences(seed, 9)
    result = ts.wilcoxon_signed_rank(d, zero_method=zero_method, alternative=alternative)
    expected = enumerated(np.array(d), np.arange(9), zero_method, alternative)
    assert result.p_value == pytest.approx(expected, abs=EXACT)
    assert "exact" in result.method


@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("seed", range(6))
def test_sign_flips_by_cluster(seed: int, alternative: Alternative, zero_method: ZeroMethod) -> None:
    d = differences(seed, 14)
    clusters = np.random.default_rng(seed).integers(0, 6, 14)
    result = ts.wilcoxon_signed_rank(d, clusters=clusters, zero_method=zero_method, alternative=alternative)
    expected = enumerated(np.array(d), clusters, zero_method, alternative)
    assert result.p_value == pytest.approx(expected, abs=EXACT)
    assert "sign flips by cluster" in result.method
    assert result.details["n_clusters"] == len(np.unique(clusters))


def test_clusters_of_one_pair_are_pairs() -> None:
    x, y = LIKERT
    alone = ts.wilcoxon_signed_rank(x, y)
    one_each = ts.wilcoxon_signed_rank(x, y, clusters=range(15))
    assert one_each.p_value == pytest.approx(alone.p_value, abs=EXACT)
    assert one_each.details["z"] == pytest.approx(alone.details["z"], rel=CLOSE)
    assert one_each.estimate == alone.estimate


def test_the_cluster_interval_holds_what_the_flips_do_not_reject() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(9), 3)
    d = np.round(rng.normal(size=9)[clusters] + rng.normal(size=27) + 0.4, 1)
    result = ts.wilcoxon_signed_rank(d, clusters=clusters)
    assert result.conf_low is not None
    assert result.conf_high is not None
    step = 1e-6
    for end, outwards, side in ((result.conf_low, -step, "greater"), (result.conf_high, step, "less")):
        beyond = ts.wilcoxon_signed_rank(
            d - (end + outwards), clusters=clusters, alternative=side, zero_method="wilcox"
        )
        within = ts.wilcoxon_signed_rank(
            d - (end - outwards), clusters=clusters, alternative=side, zero_method="wilcox"
        )
        assert beyond.p_value is not None
        assert within.p_value is not None
        assert beyond.p_value <= 0.025 < within.p_value
    assert result.conf_high - result.conf_low > 1.2 * np.subtract(*_ends(d)[::-1])


def _ends(d: np.ndarray) -> tuple[float, float]:
    result = ts.hodges_lehmann(d)
    assert result.conf_low is not None
    assert result.conf_high is not None
    return result.conf_low, result.conf_high


def test_few_clusters_have_no_interval() -> None:
    result = ts.wilcoxon_signed_rank([1, 2, 3, 4, 5, 7], clusters=[1, 1, 2, 2, 3, 3])
    assert (result.conf_low, result.conf_high, result.conf_level) == (None, None, None)
    assert any("too few for a 95 % interval" in note.message for note in result.notes)
    assert result.p_value == 0.25


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.parametrize("zero_method", ZERO_METHODS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_normal_is_that_of_scipy(
    seed: int, alternative: Alternative, zero_method: ZeroMethod, correction: bool
) -> None:
    d = differences(seed, 40)
    options: Any = {"zero_method": zero_method, "correction": correction, "alternative": alternative}
    result = ts.wilcoxon_signed_rank(d, method="normal", **options)
    expected = stats.wilcoxon(d, method="asymptotic", **options)
    assert result.p_value == pytest.approx(expected.pvalue, rel=CLOSE)
    least = result.details["t_min" if alternative == "two-sided" else "t_plus"]
    assert least == expected.statistic
    assert "normal approximation" in result.method


@pytest.mark.parametrize("n", [1, 2, 5, 20, 50])
def test_without_ties_it_is_that_of_scipy(n: int) -> None:
    d = np.random.default_rng(n).normal(size=n) + 0.3
    result = ts.wilcoxon_signed_rank(d)
    expected = stats.wilcoxon(d, method="exact")
    assert result.p_value == pytest.approx(expected.pvalue, rel=CLOSE)
    assert result.details["t_min"] == expected.statistic


def test_balance_with_many_zeros_is_no_evidence() -> None:
    d = [1] * 5 + [0] * 40 + [-1] * 5
    for zero_method in ZERO_METHODS:
        for method in ("exact", "normal", "auto"):
            result = ts.wilcoxon_signed_rank(d, zero_method=zero_method, method=method)
            assert result.p_value == 1.0
            assert result.details["n_zero"] == 40
            assert any("40 of 50 differences are zero" in note.message for note in result.notes)


def test_exact_respects_ties() -> None:
    assert ts.wilcoxon_signed_rank(*LIKERT, zero_method="wilcox").p_value == 0.015625
    assert ts.wilcoxon_signed_rank(*LIKERT).p_value == 0.0205078125


@pytest.mark.parametrize("n", [60, 200, 300])
def test_the_far_tail_is_exact(n: int) -> None:
    assert ts.wilcoxon_signed_rank(range(1, n + 1)).p_value == 2.0 ** (1 - n)
    assert ts.wilcoxon_signed_rank(range(1, n + 1), alternative="less").p_value == 1.0


def test_beyond_300_differences_it_is_normal_and_says_so() -> None:
    d = np.arange(1, 302) * np.where(np.arange(301) % 9 < 5, 1, -1)
    assert "exact" in ts.wilcoxon_signed_rank(d[:300]).method
    beyond = ts.wilcoxon_signed_rank(d)
    assert "normal approximation" in beyond.method
    exact = ts.wilcoxon_signed_rank(d, method="exact")
    assert "exact" in exact.method
    assert exact.p_value == pytest.approx(beyond.p_value, rel=0.01)


def test_noise_of_floats_changes_nothing() -> None:
    """Tenths: 0.7 - 0.6 and 0.4 - 0.3 are both 0.1."""
    rng = np.random.default_rng(8)
    x, y = rng.integers(0, 11, 60), rng.integers(0, 11, 60)
    expected = ts.wilcoxon_signed_rank(x, y)
    for scaled in (ts.wilcoxon_signed_rank(x / 10, y / 10), ts.wilcoxon_signed_rank(x / 10 - y / 10)):
        assert scaled.p_value == expected.p_value
        assert scaled.statistic == expected.statistic
        assert scaled.details["n_zero"] == expected.details["n_zero"]
    shuffled = rng.permutation(60)
    again = ts.wilcoxon_signed_rank((x / 10)[shuffled], (y / 10)[shuffled])
    assert again == ts.wilcoxon_signed_rank(x / 10, y / 10)


def test_swapped_sides_mirror() -> None:
    x, y = LIKERT
    one, other = ts.wilcoxon_signed_rank(x, y), ts.wilcoxon_signed_rank(y, x)
    assert one.p_value == other.p_value
    assert one.details["t_plus"] == other.details["t_minus"]
    assert one.estimate == -(other.estimate or 0.0)
    assert one.details["matched_rank_biserial"] == -other.details["matched_rank_biserial"]
    greater = ts.wilcoxon_signed_rank(x, y, alternative="greater").p_value
    assert greater == ts.wilcoxon_signed_rank(y, x, alternative="less").p_value


def test_all_zero_is_undefined_with_p_of_one() -> None:
    for method in ("exact", "normal", "auto", "cluster-sign-flip"):
        clusters = [1, 2, 3] if method == "cluster-sign-flip" else None
        result = ts.wilcoxon_signed_rank([1, 2, 3], [1, 2, 3], method=method, clusters=clusters)
        assert (result.statistic, result.p_value, result.details["z"]) == (None, 1.0, None)
        assert result.undefined is not None
        assert result.tidy()["status"][0] == "undefined"
    sign = ts.sign_test([1, 2, 3], [1, 2, 3])
    assert (sign.statistic, sign.estimate, sign.p_value) == (None, None, 1.0)
    assert sign.undefined is not None


def test_zsplit_counts_half_of_the_zeros() -> None:
    d = [0, 0, 0, 1, 1, 2, -1, 3, 2, 1, 4, -2]
    split = ts.wilcoxon_signed_rank(d, zero_method="zsplit")
    pratt = ts.wilcoxon_signed_rank(d)
    assert split.p_value == pratt.p_value
    assert split.details["t_plus"] == pratt.details["t_plus"] + 3
    assert split.details["z_conditional"] == pytest.approx(pratt.details["z"], rel=CLOSE)
    assert abs(split.details["z"]) < abs(pratt.details["z"])


def test_columns_and_clusters_of_a_table() -> None:
    x, y = LIKERT
    scenario = [str(place // 2) for place in range(15)]
    table = pl.DataFrame({"free": x, "letter": y, "scenario": scenario})
    plain = ts.wilcoxon_signed_rank("free", "letter", data=table)
    assert plain.contrast == "free - letter"
    assert plain.p_value == 0.0205078125
    note = next(note for note in plain.notes if note.code == "independence")
    assert "15 rows" in note.message
    assert "method='cluster-sign-flip'" in note.message
    flipped = ts.wilcoxon_signed_rank("free", "letter", data=table, clusters="scenario")
    assert flipped.details["n_clusters"] == 8
    assert not any(note.code == "independence" for note in flipped.notes)
    asked = ts.wilcoxon_signed_rank("free", "letter", data=table, method="cluster-sign-flip")
    assert asked.p_value == flipped.p_value
    forced = ts.wilcoxon_signed_rank(x, y, clusters=scenario, method="exact")
    assert forced.p_value == 0.0205078125
    assert any(note.code == "independence" for note in forced.notes)


def test_a_correction_that_is_not_needed_is_said_to_be_left_out() -> None:
    result = ts.wilcoxon_signed_rank(*LIKERT, correction=True)
    assert result.p_value == ts.wilcoxon_signed_rank(*LIKERT).p_value
    assert any(note.code == "correction" for note in result.notes)


def test_missing_pairs() -> None:
    x, y = [5.0, None, 3, 6], [3, 4, None, 2]
    result = ts.wilcoxon_signed_rank(x, y, missing="omit")
    assert (result.n, result.details["n_missing"], result.p_value) == (2, 2, 0.5)


def test_refusals(refusal: Refusal) -> None:
    assert refusal(lambda: ts.wilcoxon_signed_rank([1, 2], [1, 2, 3])) == (
        "ArgumentError: `x` and `y` must pair: they have 2 and 3 values"
    )
    assert "`x` holds no value" in refusal(lambda: ts.wilcoxon_signed_rank([]))
    assert "missing='omit'" in refusal(lambda: ts.wilcoxon_signed_rank([1.0, float("nan")]))
    assert "`x` must hold numbers" in refusal(lambda: ts.wilcoxon_signed_rank(["low", "high"]))
    assert refusal(lambda: ts.wilcoxon_signed_rank([1, 2], zero_method="drop")) == (  # type: ignore[arg-type]
        "ArgumentError: `zero_method` must be one of 'pratt', 'wilcox', 'zsplit'; got 'drop'"
    )
    assert "method='normal'" in refusal(
        lambda: ts.wilcoxon_signed_rank([1, 2], correction=True, method="exact")
    )
    assert "needs `clusters`" in refusal(lambda: ts.wilcoxon_signed_rank([1, 2], method="cluster-sign-flip"))
    assert "there is 1 cluster" in refusal(lambda: ts.wilcoxon_signed_rank([1, 2], clusters=[1, 1]))
    assert "for 2,000 differences that are not zero: it goes up to 1,000; use method='normal'" in refusal(
        lambda: ts.wilcoxon_signed_rank(range(1, 2001), method="exact")
    )
    assert "infinite" in refusal(lambda: ts.sign_test([1.0, float("inf")]))


def test_exact_laws_reach_1_000_differences() -> None:
    d = np.random.default_rng(4).normal(0.1, 1.0, 400)
    result = ts.wilcoxon_signed_rank(d, method="exact")
    assert "exact by convolution" in result.method
    assert result.p_value == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=CLOSE)
    assert result.details["interval"] == "exact"
    assert ts.wilcoxon_signed_rank(d).p_value == pytest.approx(result.p_value, rel=0.02)
    assert "normal approximation" in ts.wilcoxon_signed_rank(d).method
    assert ts.hodges_lehmann(d, method="exact").conf_low == result.conf_low
    tied = ts.wilcoxon_signed_rank(np.round(d, 1), method="exact")
    assert "exact by convolution" in tied.method


def test_a_test_and_an_interval_that_differ_about_0_are_noted() -> None:
    """Ties: p is below .1, and the interval for values without ties still holds 0."""
    d = [-2.0, -1.0, 2.0, 3.0, 3.0, 3.0, 4.0]
    noted = [
        result
        for shift in np.arange(-2, 3, 0.25)
        for result in [ts.wilcoxon_signed_rank(np.array(d) - shift, conf_level=0.9)]
        if any(note.code == "interval" for note in result.notes)
    ]
    assert noted
    for result in noted:
        assert result.p_value is not None
        assert result.conf_low is not None
        assert result.conf_high is not None
        assert (result.p_value < 0.1) == (result.conf_low <= 0 <= result.conf_high)
    assert not any(note.code == "interval" for note in ts.wilcoxon_signed_rank(d).notes)


def test_auto_and_the_names_of_estimands() -> None:
    d, clusters = [1.0, 2.0, -1.0, 3.5, 2.0, 4.0], [1, 1, 2, 2, 3, 3]
    assert ts.wilcoxon_signed_rank(d, method="auto") == ts.wilcoxon_signed_rank(d)
    assert ts.wilcoxon_signed_rank(d, clusters=clusters, method="auto") == ts.wilcoxon_signed_rank(
        d, clusters=clusters
    )
    assert ts.sign_test(d, method="auto") == ts.sign_test(d)
    assert ts.hodges_lehmann(d, method="auto") == ts.hodges_lehmann(d)
    assert ts.wilcoxon_signed_rank(d).estimand == ts.hodges_lehmann(d).estimand == "pseudo-median"
    assert ts.sign_test(d).estimand == "share positive"
    assert "pseudo-median of x = 2," in repr(ts.wilcoxon_signed_rank(d))
    assert ": x - y = 2," in repr(ts.wilcoxon_signed_rank(d, [0] * 6))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("seed", range(5))
def test_sign_test_is_binomial(seed: int, alternative: Alternative) -> None:
    d = differences(seed, 20)
    positive, m = sum(value > 0 for value in d), sum(value != 0 for value in d)
    result = ts.sign_test(d, alternative=alternative)
    expected = stats.binomtest(positive, m, alternative=alternative)
    assert result.p_value == pytest.approx(expected.pvalue, rel=CLOSE)
    ends = stats.binomtest(positive, m).proportion_ci()
    assert (result.conf_low, result.conf_high) == pytest.approx((ends.low, ends.high), rel=1e-7)
    assert result.estimate == positive / m


def test_sign_test_keeps_its_tail_and_notes_clusters() -> None:
    assert ts.sign_test([1] * 200).p_value == pytest.approx(2.0**-199, rel=CLOSE)
    assert ts.sign_test([1] * 3000).p_value > 0  # type: ignore[operator]
    result = ts.sign_test([1, 2, -1, 0], clusters=[1, 1, 2, 2], method="exact")
    assert result.p_value == 1.0
    assert [note.code for note in result.notes] == ["zeros", "independence"]


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


def _recomputed(path: Path, name: str) -> dict[str, Any]:
    published = json.loads(path.read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = next(
        value for value in published.values() if isinstance(value, list) and "recomputed" in value[0]
    )
    found: dict[str, Any] = next(entry for entry in entries if entry["id"] == name)["recomputed"]
    return found


@pytest.fixture(scope="module")
def study1(shared: Shared) -> ts.ResponseTable:
    responses = [_read(shared(f"replication/study1/{n}_responses.csv")) for n in ("constrained", "natural")]
    judgments = shared("replication/study1/natural_judgments.csv")
    return ts.ResponseTable(pl.concat(responses)).with_judgments(judgments)


@pytest.fixture(scope="module")
def study2(shared: Shared) -> ts.ResponseTable:
    free = ("natural_free_text", "source_stripped")
    names = ("exact_structured", "natural_forced_letter", *free)
    responses = pl.concat([_read(shared(f"replication/study2/{n}_responses.csv")) for n in names])
    judgments = pl.concat([_read(shared(f"replication/study2/{n}_judgments.csv")) for n in free])
    return ts.ResponseTable(responses, levels=["A", "B", "C", "D"]).with_judgments(judgments)


def test_study1_cells(study1: ts.ResponseTable, shared: Shared) -> None:
    golden = _recomputed(shared("replication/study1/expected.json"), "s1_wilcoxon_170")
    options: Any = {"data": study1, "zero_method": "wilcox", "method": "normal"}
    result = ts.wilcoxon_signed_rank("natural", "constrained", **options)
    assert result.p_value == pytest.approx(golden["p_exact_ties"], rel=CLOSE)
    assert result.p_value == pytest.approx(0.01357, abs=5e-6)
    assert result.details["t_min"] == golden["W_exact_ties"]
    counted = [result.details[f"n_{name}"] for name in ("positive", "negative", "zero")]
    assert counted == [golden["n_pos"], golden["n_neg"], golden["n_zero"]]
    assert result.n == 170
    corrected = ts.wilcoxon_signed_rank("natural", "constrained", **options, correction=True)
    assert corrected.p_value == pytest.approx(golden["p_continuity_corrected_exact_ties"], rel=CLOSE)
    pratt = ts.wilcoxon_signed_rank("natural", "constrained", data=study1, method="normal")
    assert pratt.p_value == pytest.approx(golden["p_pratt"], rel=CLOSE)
    note = next(note for note in result.notes if note.code == "independence")
    assert "170 rows are taken as independent, but they share 17 clusters" in note.message


def test_study1_by_scenario(study1: ts.ResponseTable) -> None:
    """17 scenarios, of which 11 differ: all of the evidence that 170 cells seem to give is gone."""
    result = ts.wilcoxon_signed_rank(study1, method="cluster-sign-flip")
    assert result.contrast == "natural - constrained"
    assert result.p_value is not None
    assert result.p_value > 0.05
    assert (result.details["n_clusters"], result.details["n_moving"]) == (17, 11)


@pytest.mark.parametrize(
    ("judge", "name"),
    [("gpt-5.2-thinking-high", "s1_wilcoxon_170_gpt"), ("claude-opus-4.6", "s1_wilcoxon_170_opus")],
)
def test_study1_single_judges(study1: ts.ResponseTable, shared: Shared, judge: str, name: str) -> None:
    golden = _recomputed(shared("replication/study1/expected.json"), name)
    table = study1.with_judge(judge)
    result = ts.wilcoxon_signed_rank(
        "natural", "constrained", data=table, zero_method="wilcox", method="normal"
    )
    assert result.p_value == pytest.approx(golden["p_exact_ties"], rel=CLOSE)
    assert result.details["t_min"] == golden["W_exact_ties"]


@pytest.mark.parametrize(
    ("level", "reference", "name"),
    [
        ("natural_free_text", "exact_structured", "s2_natural_exact_wilcoxon"),
        ("source_stripped", "exact_structured", "s2_stripped_exact_wilcoxon"),
        ("natural_forced_letter", "exact_structured", "s2_forced_exact_wilcoxon"),
        ("natural_forced_letter", "natural_free_text", "s2_forced_natural_wilcoxon"),
    ],
)
def test_study2_cells(
    study2: ts.ResponseTable, shared: Shared, level: str, reference: str, name: str
) -> None:
    """Rows present in both formats, then cell means, as published: the mean of each cell's matched rows."""
    golden = _recomputed(shared("replication/study2/expected.json"), name)
    scored = study2.frame.filter(
        pl.col("score").is_not_null() & pl.col("condition").is_in([level, reference])
    )
    keys = ["scenario", "model", "repetition"]
    rows = scored.group_by([*keys, "condition"]).agg(pl.col("score").mean())
    cells = (
        rows.pivot(on="condition", index=keys, values="score")
        .drop_nulls()
        .group_by("scenario", "model")
        .agg(pl.col(level, reference).mean())
    )
    options: Any = {"data": cells, "method": "normal"}
    result = ts.wilcoxon_signed_rank(level, reference, **options, zero_method="wilcox")
    assert result.p_value == pytest.approx(golden["p"], rel=CLOSE)
    assert result.details["t_min"] == golden["W"]
    assert result.n == golden["n_cells"]
    counted = [result.details[f"n_{side}"] for side in ("positive", "negative", "zero")]
    assert counted == [golden["n_pos"], golden["n_neg"], golden["n_zero"]]
    pratt = ts.wilcoxon_signed_rank(level, reference, **options)
    assert pratt.p_value == pytest.approx(golden["p_pratt"], rel=CLOSE)
    corrected = ts.wilcoxon_signed_rank(level, reference, **options, zero_method="wilcox", correction=True)
    assert corrected.p_value == pytest.approx(golden["p_continuity_corrected"], rel=CLOSE)
