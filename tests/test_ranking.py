"""Leaderboards: ranks, rank sets, P(best) and pairwise verdicts against enumeration and brute force."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.joint import rank_totals
from triagestats.rank_sets import competition_ranks, tied_sets
from triagestats.results import TIDY_SCHEMA

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of a few hundred doubles in another order
MONTE_CARLO = 0.008  # five standard errors of a share of 99,999 draws


def answers(n_cases: int, n_models: int, seed: int = 3) -> np.ndarray:
    """Return scores of 0 and 1 of models that share the difficulty of cases, shape (G, M)."""
    random = np.random.default_rng(seed)
    difficulty = random.normal(size=(n_cases, 1))
    skill = np.linspace(1.0, -0.5, n_models)
    return (random.normal(size=(n_cases, n_models)) + skill > difficulty).astype(float)


def table(scores: np.ndarray, **columns: Any) -> pl.DataFrame:
    n_cases, n_models = scores.shape
    return pl.DataFrame(
        {
            "scenario": np.repeat([f"s{case:03}" for case in range(n_cases)], n_models),
            "model": np.tile([f"m{model}" for model in range(n_models)], n_cases),
            "score": scores.reshape(-1),
            **columns,
        }
    )


def brute(board: ts.Leaderboard, conf_level: float) -> dict[str, Any]:
    """Return rank sets, adjusted p-values and critical value from all (R, pairs) differences at once."""
    contest = board.contest
    assert contest is not None
    pairs = list(itertools.combinations(range(len(board.models)), 2))
    g = len(contest.leave_one_out)
    d = np.array([contest.estimate[i] - contest.estimate[j] for i, j in pairs])
    without = np.stack([contest.leave_one_out[:, i] - contest.leave_one_out[:, j] for i, j in pairs], axis=1)
    se = np.sqrt((g - 1) * without.var(axis=0))
    drawn = np.stack([contest.replicates[:, i] - contest.replicates[:, j] for i, j in pairs], axis=1)
    largest = np.max(np.abs(drawn - d) / se, axis=1)
    largest = stats.t.ppf(stats.norm.cdf(largest * (g / (g - 1)) ** 0.5), g - 1)
    critical = np.quantile(largest, conf_level, method="weibull")
    p = np.array([(1 + (largest >= t - 1e-9).sum()) / (1 + len(largest)) for t in np.abs(d) / se])
    low, high = d - critical * se, d + critical * se
    sets = []
    for model in range(len(board.models)):
        above = sum(
            (i == model and high[k] < 0) or (j == model and low[k] > 0) for k, (i, j) in enumerate(pairs)
        )
        below = sum(
            (i == model and low[k] > 0) or (j == model and high[k] < 0) for k, (i, j) in enumerate(pairs)
        )
        sets.append((1 + above, len(board.models) - below))
    return {"critical": critical, "p": p, "low": low, "high": high, "sets": sets, "se": se}


@pytest.mark.parametrize("n_models", [2, 3, 7])
@pytest.mark.parametrize("conf_level", [0.8, 0.95])
def test_rank_sets_and_differences_equal_brute_force(n_models: int, conf_level: float) -> None:
    board = ts.leaderboard(table(answers(80, n_models)), conf_level=conf_level, n_resamples=1_999)
    expected = brute(board, conf_level)
    assert board.ranking is not None
    pairs = board.ranking.pairs
    assert pairs.critical == pytest.approx(expected["critical"], abs=EXACT)
    assert pairs.std_error == pytest.approx(expected["se"], abs=EXACT)
    assert pairs.low == pytest.approx(expected["low"], abs=EXACT)
    assert pairs.high == pytest.approx(expected["high"], abs=EXACT)
    assert pairs.p_adjusted == pytest.approx(expected["p"], abs=EXACT)
    assert list(zip(board.ranking.set_low, board.ranking.set_high, strict=True)) == expected["sets"]


def test_the_error_of_a_difference_is_that_of_the_paired_mean() -> None:
    scores = answers(50, 2)
    row = ts.leaderboard(table(scores)).pairs.row(0, named=True)
    d = scores[:, 0] - scores[:, 1]
    assert row["contrast"] == "m0 - m1"
    assert row["estimate"] == pytest.approx(d.mean(), abs=EXACT)
    assert row["std_error"] == pytest.approx(d.std(ddof=1) / np.sqrt(50), abs=EXACT)


def test_ranks_of_replicates_by_enumeration() -> None:
    """All 5^5 bootstrap samples of five cases: P(rank = k), P(best) with ties split, against draws."""
    scores = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 1]], dtype=float)
    shares, best = np.zeros((3, 3)), np.zeros(3)
    for sample in itertools.product(range(5), repeat=5):
        ranks = stats.rankdata(-scores[list(sample)].sum(axis=0), method="min").astype(int)
        shares[np.arange(3), ranks - 1] += 1 / 5**5
        best += (ranks == 1) / (ranks == 1).sum() / 5**5
    board = ts.leaderboard(table(scores), n_resamples=99_999)
    assert board.ranking is not None
    order = [int(name[1]) for name in board.models]
    assert board.ranking.p_best == pytest.approx(best[order], abs=MONTE_CARLO)
    assert board.ranking.shares == pytest.approx(shares[order], abs=MONTE_CARLO)
    assert board.ranking.p_best.sum() == pytest.approx(1.0, abs=EXACT)


def test_percentile_ranks_are_quantiles_of_the_ranks_of_the_replicates() -> None:
    board = ts.leaderboard(table(answers(60, 6)), n_resamples=1_999)
    assert board.contest is not None
    assert board.ranking is not None
    ranks = np.stack([stats.rankdata(-row, method="min") for row in board.contest.replicates])
    low, high = np.quantile(ranks, [0.025, 0.975], axis=0, method="weibull")
    assert board.ranking.percentile_low == pytest.approx(np.floor(low))
    assert board.ranking.percentile_high == pytest.approx(np.ceil(high))


def test_competition_ranks_share_the_better_place_and_see_through_rounding() -> None:
    values = np.array([[0.3, 0.1 + 0.2, 0.1, 0.5], [1.0, 1.0, 1.0, 1.0]])
    assert competition_ranks(values).tolist() == [[2, 2, 4, 1], [1, 1, 1, 1]]


def test_models_that_agree_everywhere_tie() -> None:
    scores = answers(40, 2)
    board = ts.leaderboard(table(np.column_stack([scores, scores[:, 0]])))
    standing = {row["model"]: row for row in board.standings.iter_rows(named=True)}
    assert standing["m0"]["rank"] == standing["m2"]["rank"] == 1
    assert standing["m1"]["rank"] == 3
    assert standing["m0"]["p_best"] == standing["m2"]["p_best"]
    assert standing["m0"]["p_best"] + standing["m1"]["p_best"] / 2 == pytest.approx(0.5, abs=EXACT)
    pair = board.pairs.filter(contrast="m0 - m2").row(0, named=True)
    assert (pair["status"], pair["verdict"], pair["conf_low"]) == ("degenerate", "undecided", None)
    assert pair["p_adjusted"] is None


@pytest.mark.parametrize(("n_cases", "verdict", "p"), [(5, "undecided", 2**-4), (12, "better", 2**-11)])
def test_a_difference_that_no_cluster_moves_is_left_to_the_sign_test(
    n_cases: int, verdict: str, p: float
) -> None:
    board = ts.leaderboard(table(np.tile([1.0, 0.0], (n_cases, 1))))
    row = board.pairs.row(0, named=True)
    assert (row["verdict"], row["p_adjusted"], row["std_error"]) == (verdict, p, None)
    assert board.standings["set_high"].to_list() == ([1, 2] if verdict == "better" else [2, 2])


def test_tied_sets_are_the_maximal_sets_without_a_separated_pair() -> None:
    random = np.random.default_rng(5)
    for size in (1, 2, 4, 6, 7):
        for _ in range(20):
            apart = random.random((size, size)) < 0.4
            apart = np.triu(apart, 1) | np.triu(apart, 1).T
            free = [
                set(members)
                for n in range(1, size + 1)
                for members in itertools.combinations(range(size), n)
                if not apart[np.ix_(members, members)].any()
            ]
            largest = {frozenset(s) for s in free if not any(s < other for other in free)}
            assert {frozenset(s) for s in tied_sets(apart, list(range(size)))} == largest


def test_rank_sets_hold_all_true_ranks_as_often_as_they_say() -> None:
    """Five models, two of them alike: the sets hold all true ranks at once in about 95 % of samples."""
    random = np.random.default_rng(11)
    truth = np.array([0.8, 0.7, 0.7, 0.5, 0.45])
    best, worst = np.array([1, 2, 2, 4, 5]), np.array([1, 3, 3, 4, 5])
    held, narrow = 0, 0
    n = 300
    for sample in range(n):
        shared = random.random((60, 1))
        noise = np.where(random.random((60, 5)) < 0.4, shared, random.random((60, 5)))
        board = rank_totals(
            (noise < truth).astype(float), list("abcde"), n_resamples=399, seed=sample, n_threads=1
        )
        assert board.ranking is not None
        order = ["abcde".index(model) for model in board.models]
        # Models that tie in truth have several true ranks: the set must reach from the best to the worst.
        held += bool(
            ((board.ranking.set_low <= best[order]) & (worst[order] <= board.ranking.set_high)).all()
        )
        narrow += int((board.ranking.set_high - board.ranking.set_low).min()) < 4
    assert held / n > 0.95 - 3 * np.sqrt(0.95 * 0.05 / n)
    assert narrow / n > 0.5  # not by being empty of content


@pytest.mark.parametrize("n_clusters", [8, 12])
def test_rank_sets_of_few_clusters_hold_all_ranks_as_often_as_they_say(n_clusters: int) -> None:
    """Six tied models: all sets must be 1 to 6 in .95 of the samples, less three standard errors."""
    random = np.random.default_rng(11)
    n = 300
    held = 0
    for _ in range(n):
        common = random.normal(size=(n_clusters, 1))
        scores = (random.normal(size=(n_clusters, 6)) + common < 0.7).astype(float)
        board = rank_totals(scores, list("abcdef"), is_rate=True, n_resamples=499, n_threads=1)
        assert board.ranking is not None
        held += bool((board.ranking.pairs.order == 0).all())
    assert held / n >= 0.95 - 3 * (0.95 * 0.05 / n) ** 0.5


def test_swapping_the_sides_mirrors_the_ranks() -> None:
    scores = answers(50, 5)
    up = ts.leaderboard(table(scores))
    down = ts.leaderboard(table(1 - scores), higher_is_better=False)
    assert down.models == up.models
    columns = ["rank", "set_low", "set_high", "rank_low", "rank_high", "p_best"]
    assert down.standings.select(columns).equals(up.standings.select(columns))
    assert down.pairs["estimate"].to_numpy() == pytest.approx(-up.pairs["estimate"].to_numpy(), abs=EXACT)
    assert down.pairs["verdict"].equals(up.pairs["verdict"])


@pytest.mark.parametrize("change", ["rows", "threads", "shift", "scale", "models"])
def test_what_must_not_matter_does_not(change: str) -> None:
    scores = answers(40, 4)
    base = ts.leaderboard(table(scores))
    frame, options = table(scores), {}
    if change == "rows":
        frame = frame.sample(fraction=1.0, shuffle=True, seed=1)
    elif change == "threads":
        options = {"n_threads": 2}
    elif change == "shift":
        frame = frame.with_columns(pl.col("score") + 3)
    elif change == "scale":
        frame = frame.with_columns(pl.col("score") * 7)
    else:
        frame = frame.with_columns(("x" + pl.col("model").str.replace("m", "")).alias("model"))
    other = ts.leaderboard(frame, **options)
    columns = ["rank", "set_low", "set_high", "rank_low", "rank_high", "p_best"]
    assert other.standings.select(columns).equals(base.standings.select(columns))


def test_another_level_reads_the_same_replicates() -> None:
    frame = table(answers(60, 5))
    board = ts.leaderboard(frame)
    again = board.with_level(0.5)
    assert again.standings.equals(ts.leaderboard(frame, conf_level=0.5).standings)
    assert (again.standings["set_low"] >= board.standings["set_low"]).all()
    assert (again.standings["set_high"] <= board.standings["set_high"]).all()


def test_estimates_are_those_of_analyze() -> None:
    demo = ts.demo_table()
    board = ts.leaderboard(demo)
    rates = ts.analyze(demo).rates
    assert rates is not None
    means = rates.filter(pl.col("stratum").is_null() & pl.col("model").is_not_null())
    expected = dict(means.group_by("model").agg(pl.col("estimate").mean()).iter_rows())
    for row in board.standings.iter_rows(named=True):
        assert row["estimate"] == pytest.approx(expected[row["model"]], abs=EXACT)


def test_one_condition_gives_the_interval_of_analyze() -> None:
    frame = table(answers(50, 3))
    rates = ts.analyze(frame).rates
    assert rates is not None
    expected = {row["model"]: row for row in rates.iter_rows(named=True)}
    for row in ts.leaderboard(frame).standings.iter_rows(named=True):
        assert row["conf_low"] == pytest.approx(expected[row["model"]]["conf_low"], abs=EXACT)
        assert row["conf_high"] == pytest.approx(expected[row["model"]]["conf_high"], abs=EXACT)


def test_the_array_core_equals_the_table() -> None:
    scores = answers(45, 4)
    by_table = ts.leaderboard(table(scores))
    by_array = rank_totals(scores, ["m0", "m1", "m2", "m3"], metric="rate", is_rate=True)
    assert by_array.standings.equals(by_table.standings)
    assert by_array.pairs.equals(by_table.pairs)


def test_clusters_of_several_scenarios_are_drawn_whole() -> None:
    scores = answers(60, 3)
    family = (
        (pl.col("scenario").str.slice(1).cast(pl.Int64) // 4).cast(pl.String).str.zfill(2)
    )  # sorts as text
    frame = table(scores).with_columns(family.alias("family"))
    board = ts.leaderboard(ts.ResponseTable(frame, cluster="family"))
    totals = scores.reshape(15, 4, 3).sum(axis=1)
    array = rank_totals(totals, ["m0", "m1", "m2"], sizes=np.full((15, 1), 4.0), metric="rate", is_rate=True)
    assert board.pairs.equals(array.pairs)
    assert board.glance()["n_clusters"][0] == 15


def test_uneven_clusters_weigh_scenarios_alike() -> None:
    scores = answers(30, 2)
    family = np.repeat(np.arange(10), [1, 5, 2, 4, 3, 1, 6, 2, 2, 4])
    frame = table(scores).with_columns(pl.Series("family", np.repeat(family, 2)))
    board = ts.leaderboard(ts.ResponseTable(frame, cluster="family"))
    assert board.standings["estimate"].to_numpy() == pytest.approx(
        np.sort(scores.mean(axis=0))[::-1], abs=EXACT
    )
    d = np.bincount(family, scores[:, 0] - scores[:, 1])
    n = np.bincount(family)
    without = (d.sum() - d) / (n.sum() - n)
    assert board.pairs["std_error"][0] == pytest.approx(np.sqrt(9 * without.var()), abs=EXACT)


def test_conditions_are_averaged_over_shared_scenarios() -> None:
    scores = {"a": answers(30, 2, seed=1), "b": answers(30, 2, seed=2)}
    parts = [table(s).with_columns(pl.lit(name).alias("condition")) for name, s in scores.items()]
    board = ts.leaderboard(pl.concat(parts))
    means = np.mean([s.mean(axis=0) for s in scores.values()], axis=0)
    assert board.standings.sort("model")["estimate"].to_numpy() == pytest.approx(means, abs=EXACT)
    assert not any(note.code == "reference" for note in board.notes)
    lone = pl.concat([parts[0], parts[1].filter(model="m0")])
    dropped = ts.leaderboard(lone)
    assert dropped.standings.sort("model")["estimate"].to_numpy() == pytest.approx(
        scores["a"].mean(axis=0), abs=EXACT
    )
    assert [note.code for note in dropped.notes] == ["condition_dropped"]


def test_models_are_compared_on_what_all_of_them_answered() -> None:
    scores = answers(40, 3)
    frame = table(scores).filter(~((pl.col("model") == "m2") & (pl.col("scenario") < "s010")))
    shared = ts.leaderboard(frame)
    assert shared.standings.sort("model")["estimate"].to_numpy() == pytest.approx(scores[10:].mean(axis=0))
    assert shared.n_scenarios == 30
    assert "10 scenarios" in str(shared.notes[0])
    own = ts.leaderboard(frame, match="own")
    expected = [scores[:, 0].mean(), scores[:, 1].mean(), scores[10:, 2].mean()]
    assert own.standings.sort("model")["estimate"].to_numpy() == pytest.approx(expected)
    assert "own_scenarios" in [note.code for note in own.notes]


def test_an_estimand_ranks_by_its_value_for_each_model() -> None:
    scores = {
        "alpha": answers(40, 3, seed=1),
        "beta": answers(40, 3, seed=2),
        "gamma": answers(40, 3, seed=4),
    }
    frame = pl.concat([table(s).with_columns(pl.lit(name).alias("condition")) for name, s in scores.items()])
    alpha, beta, gamma = (scores[name].mean(axis=0) for name in ("alpha", "beta", "gamma"))
    gap = ts.leaderboard(frame, metric=ts.Gap("alpha", ["beta", "gamma"]), higher_is_better=False)
    assert gap.standings.sort("model")["estimate"].to_numpy() == pytest.approx(alpha - (beta + gamma) / 2)
    assert gap.standings["estimate"].is_sorted()
    d = scores["alpha"] - (scores["beta"] + scores["gamma"]) / 2
    first, second = (int(name[1]) for name in gap.models[:2])
    spread = (d[:, first] - d[:, second]).std(ddof=1) / np.sqrt(40)
    assert gap.pairs["std_error"][0] == pytest.approx(spread, abs=EXACT)
    rough = ts.leaderboard(frame, metric=ts.AnchoringGap("alpha", ["beta", "gamma"]), higher_is_better=False)
    assert rough.standings.sort("model")["estimate"].to_numpy() == pytest.approx(
        alpha - np.minimum(beta, gamma)
    )
    assert rough.contest is not None
    drawn = rough.contest.replicates
    spread = (drawn[:, 0] - drawn[:, 1]).std(ddof=1) * np.sqrt(40 / 39)
    assert rough.pairs["std_error"][0] == pytest.approx(spread, abs=EXACT)
    assert rough.tidy()["method"][0].startswith("cluster bootstrap percentile")


def test_counts_and_unranked_models_stand_beside_the_ranking() -> None:
    scores = answers(40, 4)
    board = ts.leaderboard(
        table(scores),
        unranked=["m1"],
        counts={"model": ["elsewhere"], "successes": [45], "n": [50]},
    )
    assert set(board.models) == {"m0", "m2", "m3"}
    assert board.standings["kind"].to_list() == ["ranked"] * 3 + ["unranked", "counts"]
    counted = board.standings.row(4, named=True)
    wilson = ts.proportion_ci(45, 50)
    assert (counted["conf_low"], counted["conf_high"]) == pytest.approx((wilson.conf_low, wilson.conf_high))
    assert (counted["rank"], counted["set_low"], counted["p_best"]) == (None, None, None)
    assert counted["could_rank"] == 1 + int((scores[:, [0, 2, 3]].mean(axis=0) > 0.9).sum())
    assert len(board.pairs) == 3
    assert (set(board.pairs["n_rows"]), set(board.pairs["n_clusters"])) == ({40}, {40})
    same = ts.leaderboard(table(scores[:, [0, 2, 3]]))
    assert board.standings["set_high"].to_list()[:3] == same.standings["set_high"].to_list()


def test_an_unranked_model_with_other_scenarios_does_not_shrink_the_shared_ones() -> None:
    scores = answers(40, 3)
    frame = table(scores).filter((pl.col("model") != "m2") | (pl.col("scenario") >= "s020"))
    board = ts.leaderboard(frame, unranked=["m2"])
    assert board.n_scenarios == 40
    row = board.standings.filter(model="m2").row(0, named=True)
    assert row["estimate"] == pytest.approx(scores[20:, 2].mean(), abs=EXACT)


def test_flags_are_shares_beside_the_ranking() -> None:
    scores = answers(40, 2)
    flag = np.random.default_rng(2).random(80) < 0.2
    board = ts.leaderboard(table(scores, format_failure=flag), flags=["format_failure"])
    rows = board.tidy().filter(estimand="share")
    own = flag.reshape(40, 2)
    for place, row in enumerate(rows.sort("model").iter_rows(named=True)):
        wilson = ts.proportion_ci(int(own[:, place].sum()), 40)
        assert (row["term"], row["estimate"]) == ("format_failure", own[:, place].mean())
        assert (row["conf_low"], row["conf_high"]) == pytest.approx((wilson.conf_low, wilson.conf_high))
    assert board.standings.equals(ts.leaderboard(table(scores)).standings)


def test_few_clusters_leave_the_order_and_little_else() -> None:
    board = ts.leaderboard(table(answers(4, 3)))
    assert board.standings["rank"].to_list()[0] == 1
    assert board.standings["set_low"].to_list() == [1, 1, 1]
    assert board.standings["set_high"].to_list() == [3, 3, 3]
    assert board.standings["p_best"].null_count() == 3
    tidy = board.tidy()
    assert set(tidy["status"]) == {"few_clusters"}
    assert tidy["conf_low"].null_count() == tidy.height
    warned = ts.leaderboard(table(answers(8, 3))).tidy().filter(estimand="rank")
    assert set(warned["status"]) == {"warning"}


def test_results_convert() -> None:
    board = ts.leaderboard(table(answers(30, 3)), counts={"model": ["x"], "successes": [1], "n": [9]})
    assert board.tidy().schema == TIDY_SCHEMA
    assert board.glance().height == 1
    assert json.loads(json.dumps(board.to_dict()))["settings"]["n_models"] == 3
    assert pickle.loads(pickle.dumps(board)).standings.equals(board.standings)
    text = repr(board)
    assert "3 models on 30 shared scenarios" in text
    assert "P(best)" in text
    assert board.rank_shares.group_by("model").agg(pl.col("share").sum())["share"].to_list() == pytest.approx(
        [1] * 3
    )
    assert board.to_pandas().shape[0] == board.tidy().height


def test_one_model_is_first() -> None:
    board = ts.leaderboard(table(answers(20, 1)))
    row = board.standings.row(0, named=True)
    assert (row["rank"], row["set_low"], row["set_high"], row["p_best"]) == (1, 1, 1, 1.0)
    assert board.pairs.is_empty()


def test_bad_input_says_what_to_do(refusal: Refusal) -> None:
    frame = table(answers(20, 3))
    no_model = frame.filter(model="m0").drop("model")
    assert "name it with `ts.ResponseTable(..., model=)`" in refusal(lambda: ts.leaderboard(no_model))
    assert "`unranked` names 'gpt'" in refusal(lambda: ts.leaderboard(frame, unranked=["gpt"]))
    twice = {"model": ["m1"], "successes": [1], "n": [9]}
    assert "`counts` names 'm1', which has rows" in refusal(lambda: ts.leaderboard(frame, counts=twice))
    assert "nothing is left to rank" in refusal(lambda: ts.leaderboard(frame, unranked=["m0", "m1", "m2"]))
    assert "`metric` must be 'mean'" in refusal(lambda: ts.leaderboard(frame, metric="accuracy"))  # type: ignore[arg-type]
    assert "`metric` 'x - y' needs the levels" in refusal(
        lambda: ts.leaderboard(frame, metric=ts.Difference("x", "y"))
    )
    apart = frame.filter(
        ((pl.col("scenario") < "s010") & (pl.col("model") == "m0"))
        | ((pl.col("scenario") >= "s010") & (pl.col("model") != "m0"))
    )
    assert "no scenario is scored for all 3 ranked models" in refusal(lambda: ts.leaderboard(apart))
    wrong = {"model": ["x"], "successes": [9], "n": [5]}
    assert "`counts` has 9 successes of n = 5 for 'x'" in refusal(lambda: ts.leaderboard(frame, counts=wrong))
    assert "`flags` names 'flag'" in refusal(lambda: ts.leaderboard(frame, flags=["flag"]))
    assert "`flags` is column 'score'" in refusal(
        lambda: ts.leaderboard(frame.with_columns(pl.col("score") * 3), flags=["score"])
    )
    crossed = ts.ResponseTable(frame, cluster=("scenario", "model"))
    assert "two that cross" in refusal(lambda: ts.leaderboard(crossed))
    assert "did you mean 0.95" in refusal(lambda: ts.leaderboard(frame, conf_level=95))
