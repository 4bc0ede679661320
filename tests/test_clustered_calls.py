"""Clusters that the caller gave are respected or refused, and the calls that notes name run as written."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # shares of whole numbers of arrangements
CLOSE = 1e-9  # the same formula in another order

CLUSTERS = np.repeat(np.arange(9), 3)
GROUPS = np.repeat(["a", "b", "c"], 9)  # of whole clusters
WITHIN = np.tile(["a", "b", "c"], 9)  # in every cluster
RNG = np.random.default_rng(8)
VALUES = RNG.integers(1, 6, 27) + (GROUPS == "c")
ANSWERS = (VALUES > 3).astype(int)
LABELS = np.array(list("xyz"))[np.minimum(VALUES, 3) - 1]
OTHER = np.array(list("xyz"))[np.minimum(np.roll(VALUES, 2), 3) - 1]


def codes(result: ts.Test) -> list[str]:
    return [note.code for note in result.notes]


def independence(result: ts.Test) -> str:
    return next(note.message for note in result.notes if note.code == "independence")


def arrangements(k: int) -> list[tuple[int, ...]]:
    return sorted(set(permutations([group for group in range(k) for _ in range(3)])))


def test_rates_have_the_interval_of_analyze() -> None:
    result = ts.proportion_ci(ANSWERS, clusters=CLUSTERS)
    rows = pl.DataFrame({"scenario": CLUSTERS, "model": "m", "repetition": WITHIN, "score": ANSWERS})
    rates = ts.analyze(rows, n_resamples=99).rates.row(0, named=True)
    assert result.estimate == pytest.approx(rates["estimate"], rel=CLOSE)
    assert (result.conf_low, result.conf_high) == pytest.approx(
        (rates["conf_low"], rates["conf_high"]), rel=CLOSE
    )
    assert result.details["std_error"] == pytest.approx(rates["std_error"], rel=CLOSE)
    assert result.method == "Korn-Graubard plus two interval by cluster"
    assert codes(result) == ["few_clusters"]
    assert ts.proportion_ci(ANSWERS, clusters=CLUSTERS, method="auto") == result
    plain = ts.proportion_ci(ANSWERS, clusters=CLUSTERS, method="wilson")
    assert plain.conf_low == ts.proportion_ci(ANSWERS).conf_low
    assert 'proportion_ci(..., method="korn-graubard-plus-two")' in independence(plain)


def test_rates_of_all_alike_clusters_have_a_width() -> None:
    result = ts.proportion_ci(np.ones(27), clusters=CLUSTERS)
    assert (result.estimate, result.conf_high, result.details["std_error"]) == (1.0, 1.0, None)
    assert result.conf_low is not None
    assert result.conf_low < ts.proportion_ci(27, 27).conf_low  # type: ignore[operator]
    few = ts.proportion_ci([1, 0, 1, 1], clusters=[1, 1, 2, 2])
    assert (few.conf_low, few.conf_level, codes(few)) == (None, None, ["few_clusters"])


def test_rates_refuse_clusters_that_are_not_there(refusal: Refusal) -> None:
    assert "needs a vector of 0 and 1" in refusal(
        lambda: ts.proportion_ci(3, 9, method="korn-graubard-plus-two")
    )
    assert "there is 1 cluster" in refusal(lambda: ts.proportion_ci([1, 0], clusters=[1, 1]))


def test_paired_differences_have_the_interval_of_mcnemar() -> None:
    other = np.roll(ANSWERS, 1)
    result = ts.paired_difference_ci(ANSWERS, other, clusters=CLUSTERS)
    test = ts.mcnemar(ANSWERS, other, clusters=CLUSTERS)
    assert (result.conf_low, result.conf_high) == (test.conf_low, test.conf_high)
    assert result.p_value == test.p_value
    assert result.statistic is not None
    assert result.statistic**2 == pytest.approx(test.statistic, rel=CLOSE)
    assert result.estimand == "difference of paired proportions"
    assert result.method == "clustered score interval and test of Obuchowski"
    assert ts.paired_difference_ci(ANSWERS, other, clusters=CLUSTERS, method="auto") == result
    swapped = ts.paired_difference_ci(other, ANSWERS, clusters=CLUSTERS)
    assert swapped.statistic == pytest.approx(-result.statistic, rel=CLOSE)
    durkalski = ts.paired_difference_ci(ANSWERS, other, clusters=CLUSTERS, method="durkalski")
    assert durkalski.estimate == pytest.approx(result.estimate, rel=CLOSE)  # clusters of one size
    plain = ts.paired_difference_ci(ANSWERS, other, clusters=CLUSTERS, method="tango")
    assert 'mcnemar(..., method="obuchowski")' in independence(plain)
    rows = [(s, c, r, (s + r + len(c)) % 2) for s in range(6) for c in ("x", "yy") for r in (1, 2)]
    table = ts.ResponseTable(
        pl.DataFrame(rows, schema=["scenario", "condition", "repetition", "score"], orient="row")
    )
    named = ts.paired_difference_ci(table)
    assert 'paired_difference_ci(..., method="obuchowski")' in independence(named)
    assert ts.paired_difference_ci(table, method="obuchowski").details["n_clusters"] == 6
    assert ts.mcnemar(table, method="obuchowski").details["n_clusters"] == 6


def test_kruskal_permutes_clusters_between_groups() -> None:
    result = ts.kruskal(VALUES, groups=GROUPS, clusters=CLUSTERS)
    ranks = stats.rankdata(VALUES)
    null = []
    for labels in arrangements(3):
        of_row = np.array(labels)[CLUSTERS]
        null.append(sum(9 * (ranks[of_row == group].mean() - 14) ** 2 for group in range(3)))
    own = sum(9 * (ranks[group == GROUPS].mean() - 14) ** 2 for group in "abc")
    assert result.p_value == pytest.approx(np.mean(np.array(null) >= own - 1e-9), abs=EXACT)
    assert result.statistic == pytest.approx(ts.kruskal(VALUES, groups=GROUPS).statistic, rel=CLOSE)
    assert "permutation of clusters between groups, exact by enumeration" in result.method
    assert (result.details["n_clusters"], result.details["way"]) == (9, "enumeration")
    vectors = ts.kruskal(*(VALUES[g == GROUPS] for g in "abc"), clusters=CLUSTERS)
    assert vectors.p_value == result.p_value
    drawn = ts.kruskal(VALUES, groups=GROUPS, clusters=CLUSTERS, n_resamples=999)
    assert drawn.details["way"] == "drawn"
    assert drawn.p_value == pytest.approx(result.p_value, abs=0.05)
    plain = ts.kruskal(VALUES, groups=GROUPS, clusters=CLUSTERS, method="chi-square")
    assert plain.p_value == ts.kruskal(VALUES, groups=GROUPS).p_value
    assert "kruskal(..., method='cluster-permutation') respects" in independence(plain)
    tied = ts.kruskal([1, 1, 1, 1], groups=list("aabb"), clusters=[1, 1, 2, 2])
    assert (tied.p_value, tied.undefined is None) == (None, False)


def test_two_groups_agree_with_mann_whitney() -> None:
    two = GROUPS != "c"
    args = {"groups": GROUPS[two], "clusters": CLUSTERS[two]}
    test = ts.mann_whitney(VALUES[two], **args)  # type: ignore[arg-type]
    assert ts.kruskal(VALUES[two], **args).p_value == pytest.approx(test.p_value, abs=EXACT)  # type: ignore[arg-type]


def test_groups_within_clusters_are_blocks(refusal: Refusal) -> None:
    said = refusal(lambda: ts.kruskal(VALUES, groups=WITHIN, clusters=CLUSTERS))
    assert "the groups vary within clusters" in said
    assert "friedman(..., clusters=...)" in said
    plain = ts.kruskal(VALUES, groups=WITHIN, clusters=CLUSTERS, method="chi-square")
    assert "permutation_test(blocks, statistic=lambda m: m.var(axis=-1)" in independence(plain)
    assert "needs `clusters`" in refusal(
        lambda: ts.kruskal(VALUES, groups=GROUPS, method="cluster-permutation")
    )


BLOCKS = VALUES.reshape(9, 3).astype(float)
OF_BLOCK = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])


def test_friedman_permutes_treatments_within_clusters() -> None:
    result = ts.friedman(BLOCKS, clusters=OF_BLOCK)
    ranks = np.apply_along_axis(stats.rankdata, 1, BLOCKS)
    sums = np.stack([ranks[g == OF_BLOCK].sum(axis=0) for g in range(5)])
    orders = list(permutations(range(3)))
    null = np.array(
        [
            np.var(sum(sums[g][list(order)] for g, order in enumerate(chosen)))
            for chosen in product(orders, repeat=5)
        ]
    )
    own = np.var(ranks.sum(axis=0))
    assert result.p_value == pytest.approx(np.mean(null >= own - 1e-9), abs=EXACT)
    assert result.statistic == pytest.approx(ts.friedman(BLOCKS).statistic, rel=CLOSE)
    assert "iman_davenport_p" not in result.details
    assert ts.friedman(BLOCKS, clusters=OF_BLOCK, method="auto") == result
    assert ts.friedman(BLOCKS, method="auto") == ts.friedman(BLOCKS)
    # The call that the note names, as it stands there.
    plain = ts.friedman(BLOCKS, clusters=OF_BLOCK, method="chi-square")
    named = (
        "permutation_test(blocks, statistic=lambda m: m.var(axis=-1), alternative='greater', clusters=...)"
    )
    assert named in independence(plain)
    call = ts.permutation_test(
        ranks, statistic=lambda m: m.var(axis=-1), alternative="greater", clusters=OF_BLOCK
    )
    assert call.p_value == pytest.approx(result.p_value, abs=EXACT)


def test_cochran_permutes_treatments_within_clusters() -> None:
    answers = (BLOCKS > 3).astype(float)
    result = ts.cochran_q(answers, clusters=OF_BLOCK)
    call = ts.permutation_test(
        answers, statistic=lambda m: m.var(axis=-1), alternative="greater", clusters=OF_BLOCK
    )
    assert result.p_value == pytest.approx(call.p_value, abs=EXACT)
    assert "independence" not in codes(result)
    still = ts.cochran_q([[1, 1], [0, 0], [1, 1]], clusters=[1, 1, 2])
    assert (still.p_value, codes(still)) == (None, ["undefined"])


def test_chi_square_permutes_clusters_between_groups(refusal: Refusal) -> None:
    result = ts.chi_square(GROUPS, LABELS, clusters=CLUSTERS)
    null = []
    for labels in arrangements(3):
        of_row = np.array(labels)[CLUSTERS]
        table = [[np.sum((of_row == g) & (label == LABELS)) for label in "xyz"] for g in range(3)]
        null.append(stats.chi2_contingency(np.array(table), correction=False).statistic)
    own = ts.chi_square(GROUPS, LABELS).statistic
    assert result.statistic == own
    assert result.p_value == pytest.approx(np.mean(np.array(null) >= own - 1e-9), abs=EXACT)
    assert "chi2_p_value" not in result.details
    assert ts.chi_square(LABELS, GROUPS, clusters=CLUSTERS).p_value == result.p_value
    plain = ts.chi_square(GROUPS, LABELS, clusters=CLUSTERS, method="pearson")
    assert plain.p_value == ts.chi_square(GROUPS, LABELS).p_value
    assert "chi_square(x, y, clusters=...) respects" in independence(plain)
    assert ts.chi_square(GROUPS, LABELS, method="auto") == ts.chi_square(GROUPS, LABELS)
    said = refusal(lambda: ts.chi_square(WITHIN, LABELS, clusters=CLUSTERS))
    assert "`x` and `y` both vary within clusters" in said
    assert "permutation_test(a, b, clusters=...)" in said
    alone = ts.chi_square(WITHIN, LABELS, clusters=range(27))  # clusters that no rows share
    assert alone.p_value == ts.chi_square(WITHIN, LABELS).p_value
    assert "`correction` is for the chi-square law" in refusal(
        lambda: ts.chi_square(GROUPS == "a", ANSWERS, clusters=CLUSTERS, correction=True)
    )


def test_fisher_refuses_clusters_and_names_what_runs(refusal: Refusal) -> None:
    group = np.where(GROUPS == "a", "p", "q")
    said = refusal(lambda: ts.fisher_exact(group, ANSWERS, clusters=CLUSTERS))
    assert "27 rows share 9" in said
    assert "permutation_test(np.asarray(y) == label, groups=x, clusters=...)" in said
    named = ts.permutation_test(np.asarray(ANSWERS) == 1, groups=group, clusters=CLUSTERS)
    assert named.details["n_clusters"] == 9
    turned = refusal(lambda: ts.fisher_exact(ANSWERS, group, clusters=CLUSTERS))
    assert "permutation_test(np.asarray(x) == label, groups=y, clusters=...)" in turned
    within = refusal(lambda: ts.fisher_exact(WITHIN, ANSWERS, clusters=CLUSTERS))
    assert "the groups vary within clusters, so that permutation_test(a, b, clusters=...)" in within
    wide = ANSWERS.reshape(9, 3)
    assert ts.permutation_test(wide[:, 0], wide[:, 1], clusters=range(9)).details["n_clusters"] == 9
    assert (
        ts.fisher_exact(group, ANSWERS, clusters=range(27)).p_value == ts.fisher_exact(group, ANSWERS).p_value
    )


@pytest.mark.parametrize("call", [ts.bowker, ts.stuart_maxwell])
def test_square_tables_exchange_the_sides_of_clusters(call: Callable[..., ts.Test]) -> None:
    result = call(LABELS, OTHER, clusters=CLUSTERS)
    null = []
    for flips in product((False, True), repeat=9):
        turned = np.array(flips)[CLUSTERS]
        null.append(call(np.where(turned, OTHER, LABELS), np.where(turned, LABELS, OTHER)).statistic)
    own = call(LABELS, OTHER).statistic
    assert result.statistic == pytest.approx(own, rel=CLOSE)
    assert result.p_value == pytest.approx(np.mean(np.array(null) >= own - 1e-9), abs=EXACT)  # type: ignore[operator]
    assert "sign flips by cluster, exact by enumeration" in result.method
    drawn = call(LABELS, OTHER, clusters=CLUSTERS, n_resamples=400)
    assert drawn.details["way"] == "drawn"
    assert drawn.p_value == pytest.approx(result.p_value, abs=0.1)
    alone = call(LABELS, OTHER, clusters=range(27))
    assert alone.p_value == call(LABELS, OTHER).p_value
    same = call(LABELS, LABELS, clusters=CLUSTERS)
    assert (same.p_value, codes(same)) == (1.0, ["undefined"])
    # What the note of the unclustered test names.
    label = "x"
    named = ts.permutation_test(np.asarray(LABELS) == label, np.asarray(OTHER) == label, clusters=CLUSTERS)
    assert named.details["n_clusters"] == 9


def test_square_tables_need_pairs(refusal: Refusal) -> None:
    assert "needs the pairs" in refusal(lambda: ts.bowker([[1, 2], [3, 4]], method="cluster-sign-flip"))
    plain = ts.stuart_maxwell(LABELS, OTHER, clusters=CLUSTERS, method="bhapkar")
    assert "method='cluster-sign-flip'" in independence(plain)
    flipped = ts.stuart_maxwell(LABELS, OTHER, clusters=CLUSTERS)
    assert not {"stuart_maxwell_p_value", "bhapkar_p_value"} & set(flipped.details)


def test_hodges_lehmann_has_no_clusters_of_groups(refusal: Refusal) -> None:
    two = GROUPS != "c"
    said = refusal(
        lambda: ts.hodges_lehmann(VALUES[two], groups=GROUPS[two], clusters=CLUSTERS[two], paired=False)
    )
    assert "mann_whitney(..., clusters=...) has the estimate and a test" in said
    assert ts.mann_whitney(VALUES[two], groups=GROUPS[two], clusters=CLUSTERS[two]).estimate is not None


def test_mann_whitney_names_what_runs() -> None:
    two = GROUPS != "c"
    table = {"score": VALUES[two], "format": GROUPS[two], "scenario": CLUSTERS[two]}
    assert "permutation_test(values, groups=..., clusters=...)" in independence(
        ts.mann_whitney("score", groups="format", data=table)
    )
    ts.permutation_test(VALUES[two], groups=GROUPS[two], clusters=CLUSTERS[two])
    some = WITHIN != "c"
    within = {"score": VALUES[some], "format": WITHIN[some], "scenario": CLUSTERS[some]}
    message = independence(ts.mann_whitney("score", groups="format", data=within))
    assert "permutation_test(a, b, clusters=...) of a column for each, or permutation_tests(table)" in message
    ts.permutation_tests(ts.ResponseTable(pl.DataFrame(within), condition="format"), n_resamples=99)


def test_auto_is_what_none_is() -> None:
    x, y = ANSWERS, np.roll(ANSWERS, 1)
    assert ts.mcnemar(x, y, method="auto") == ts.mcnemar(x, y)
    assert ts.mcnemar(x, y, clusters=CLUSTERS, method="auto") == ts.mcnemar(x, y, clusters=CLUSTERS)
    assert ts.paired_difference_ci(x, y, method="auto") == ts.paired_difference_ci(x, y)
    assert ts.difference_ci(3, 9, 2, 8, method="auto") == ts.difference_ci(3, 9, 2, 8)
    assert ts.cochran_q(BLOCKS > 3, method="auto") == ts.cochran_q(BLOCKS > 3)
    assert ts.bowker(LABELS, OTHER, method="auto") == ts.bowker(LABELS, OTHER)
    assert ts.stuart_maxwell(LABELS, OTHER, method="auto") == ts.stuart_maxwell(LABELS, OTHER)
    two = GROUPS != "c"
    both = VALUES[two & (GROUPS == "a")], VALUES[two & (GROUPS == "b")]
    assert ts.mann_whitney(*both, method="auto") == ts.mann_whitney(*both)
    assert ts.mann_whitney(*both, method="auto", clusters=CLUSTERS[:18]) == ts.mann_whitney(
        *both, clusters=CLUSTERS[:18]
    )
    assert ts.kruskal(VALUES, groups=GROUPS, method="auto") == ts.kruskal(VALUES, groups=GROUPS)
