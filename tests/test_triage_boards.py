"""Triage boards: rates, score and ranks by hand, published boards, severity, and input that is refused."""

from __future__ import annotations

import html
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triagestats as ts
from triagestats.results import TIDY_SCHEMA

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-9  # what expected.json states for values that are recomputed
RATE_END = 0.012  # Monte Carlo error of an end of a rate from 2,000 draws, lattice of 1/94, five errors
SCORE_END = 0.9  # the same for a score; the source's own two seeds differ by 0.5
RANK_END = 1  # whole ranks

MEDSAFE = "replication/medsafe"
U, O = 0.05, 0.35  # noqa: E741  # the letters of the score


def cases(escalate: dict[str, list[int]], urgent: list[int], **columns: list[Any]) -> pl.DataFrame:
    """Return one row an answer: the answers of each model to the cases in their order."""
    size, models = len(urgent), list(escalate)
    frame = {
        "case": [f"c{place:03}" for place in range(size)] * len(models),
        "model": [model for model in models for _ in range(size)],
        "urgent": urgent * len(models),
        "escalate": [value for model in models for value in escalate[model]],
    }
    return pl.DataFrame(frame | columns)


def simulated(n_cases: int = 60, n_models: int = 4, seed: int = 7) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    urgent = (random.random(n_cases) < 0.6).astype(int)
    sure = random.random((n_cases, 1))
    ability = np.linspace(0.9, 0.6, n_models)
    right = (0.5 * sure + 0.5 * random.random((n_cases, n_models))) < ability
    done = np.where(right, urgent[:, None], 1 - urgent[:, None])
    return cases({f"m{m}": done[:, m].tolist() for m in range(n_models)}, urgent.tolist())


def medsafe(shared: Shared, run: int) -> pl.DataFrame:
    responses = pl.read_csv(shared(f"{MEDSAFE}/responses.csv.gz")).filter(run_n=run)
    return responses.join(pl.read_csv(shared(f"{MEDSAFE}/cases.csv")), on="case_id")


@pytest.fixture(scope="module")
def expected(shared: Shared) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared(f"{MEDSAFE}/expected.json").read_text())
    return found


@pytest.fixture(scope="module")
def board_250(shared: Shared) -> ts.Board:
    rows = medsafe(shared, 250)
    return ts.triage_board(rows, U=U, O=O, urgent="urgent_v0", valid="valid", flags=["hard_fail"])


def standing(board: ts.Board, model: str) -> dict[str, Any]:
    return board.standings.filter(model=model).row(0, named=True)


def test_rates_distance_and_score_by_hand() -> None:
    urgent = [1] * 8 + [0] * 5
    board = ts.triage_board(cases({"m": [1] * 6 + [0] * 2 + [1] * 2 + [0] * 3}, urgent), U=0.1, O=0.5)
    row = standing(board, "m")
    assert (row["missed"], row["n_urgent"], row["over"], row["n_nonurgent"]) == (2, 8, 2, 5)
    assert (row["under_rate"], row["over_rate"]) == (0.25, 0.4)
    assert row["distance"] == pytest.approx(math.sqrt(2.5**2 + 0.8**2))
    assert row["score"] == pytest.approx(100 / (1 + (2.5**2 + 0.8**2) / 2))
    tidy = board.tidy().filter(model="m", estimand="squared_distance").row(0, named=True)
    assert tidy["estimate"] == pytest.approx(2.5**2 + 0.8**2)
    assert tidy["conf_low"] == pytest.approx(2 * (100 / row["score_high"] - 1))


def test_kappa_is_cohens() -> None:
    frame = simulated()
    board = ts.triage_board(frame, U=U, O=O)
    for model in board.leaderboard.models:
        own = frame.filter(model=model)
        kappa = ts.cohen_kappa(own["escalate"], own["urgent"]).estimate
        assert standing(board, model)["kappa"] == pytest.approx(kappa)


def test_unreadable_answers_do_not_escalate() -> None:
    urgent = [1] * 6 + [0] * 6
    frame = cases({"m": [1] * 6 + [0] * 6, "n": [1] * 12}, urgent, valid=([0, 0, 1, 1, 1, 1] * 2) * 2)
    board = ts.triage_board(frame, U=U, O=O, valid="valid")
    assert standing(board, "m")["missed"] == 2
    assert (standing(board, "n")["missed"], standing(board, "n")["over"]) == (2, 4)
    codes = {note.code: str(note) for note in board.notes}
    assert codes["unreadable"].startswith("8 of 24 answers could not be read")
    assert codes["unreadable_escalated"].startswith("6 answers that escalate could not be read")
    blank = frame.with_columns(pl.when(pl.col("valid") == 1).then("escalate").alias("escalate")).drop("valid")
    assert standing(ts.triage_board(blank, U=U, O=O), "n")["missed"] == 2
    readable = board.tidy().filter(estimand="share", term="readable")
    assert readable["estimate"].to_list() == pytest.approx([2 / 3, 2 / 3])


def test_policies_have_known_scores() -> None:
    board = ts.triage_board(simulated(), U=U, O=O)
    rows = {row["model"]: row for row in board.standings.filter(kind="policy").iter_rows(named=True)}
    assert rows["always escalate"]["score"] == pytest.approx(19.67871485943775)
    assert rows["never escalate"]["score"] == pytest.approx(0.4975124378109453)
    share = simulated().filter(model="m0")["urgent"].mean()
    assert rows["random escalate"]["under_rate"] == pytest.approx(1 - share)
    assert rows["random escalate"]["over_rate"] == pytest.approx(share)
    best = max(100 / (1 + (((1 - q) / U) ** 2 + (q / O) ** 2) / 2) for q in np.linspace(0, 1, 10_001))
    assert "at most 20, at a chance of 0.98" in str(board.notes[-1])
    assert best == pytest.approx(20.0)
    assert (
        ts.triage_board(simulated(), U=U, O=O, policies=False).standings["kind"].to_list() == ["ranked"] * 4
    )


def test_draws_are_joint_bootstrap_samples_of_cases() -> None:
    """Replicates of scores, recomputed from the multiplicities that the engine draws."""
    from triagestats import _native

    frame = simulated(30, 3)
    board = ts.triage_board(frame, U=U, O=O, n_resamples=200, seed=5)
    counts = _native.bootstrap_counts(30, 200, 5)
    urgent = frame.filter(model="m0")["urgent"].to_numpy()
    assert board.leaderboard.contest is not None
    for place, model in enumerate(board.leaderboard.models):
        done = frame.filter(model=model)["escalate"].to_numpy()
        under = counts @ (urgent * (1 - done)) / (counts @ urgent)
        over = counts @ ((1 - urgent) * done) / (counts @ (1 - urgent))
        distance = np.sqrt((under / U) ** 2 + (over / O) ** 2)
        assert board.leaderboard.contest.replicates[:, place] == pytest.approx(distance)
        score = 100 / (1 + distance**2 / 2)
        low, high = np.quantile(score, [0.025, 0.975], method="weibull")
        row = standing(board, model)
        if low < high:
            assert (row["score_low"], row["score_high"]) == pytest.approx((low, high))


@settings(max_examples=40, deadline=None)
@given(exponent=st.floats(-6.0, 6.0), seed=st.integers(0, 10**6))
def test_scaling_both_tolerances_never_changes_ranks(exponent: float, seed: int) -> None:
    """Factors from 1e-6 to 1e6, from U and O so small that even the largest leaves them rates."""
    frame = simulated(40, 5, seed)
    counts = {"model": ["x", "y"], "missed": [3, 8], "over": [9, 2], "n_urgent": 20, "n_nonurgent": 20}
    options: dict[str, Any] = {"n_resamples": 99, "n_threads": 1, "counts": counts, "unranked": ["m2"]}
    u, o = U * 1e-6, O * 1e-6
    scale = 10.0**exponent
    one = ts.triage_board(frame, U=u, O=o, **options)
    other = ts.triage_board(frame, U=u * scale, O=o * scale, **options)
    columns = ["model", "rank", "rank_low", "rank_high", "p_best", "set_low", "set_high", "could_rank"]
    assert one.standings.select(columns).equals(other.standings.select(columns))
    assert one.leaderboard.pairs["verdict"].equals(other.leaderboard.pairs["verdict"])
    ranks = other.sensitivity(U=[u], O=[o])["rank"]
    assert ranks.to_list() == other.sensitivity(U=[u * scale], O=[o * scale])["rank"].to_list()


def test_ranks_are_those_of_the_distance_at_any_factor() -> None:
    """Scores of 100 to ten digits, or near 0, are told apart."""
    urgent = [1] * 50 + [0] * 50
    done = {f"m{k}": [0] * k + [1] * (50 - k) + [0] * 50 for k in (1, 2, 3)}
    board = ts.triage_board(cases(done, urgent), U=U, O=O, n_resamples=99)
    for scale in (1e-8, 1e-4, 1.0, 2.5):
        grid = board.sensitivity(U=[U * scale], O=[O * scale])
        assert dict(grid.select("model", "rank").iter_rows()) == {"m1": 1, "m2": 2, "m3": 3}


@pytest.mark.parametrize(("n_urgent", "rare"), [(3, "urgent"), (4, "urgent"), (97, "other")])
def test_few_urgent_or_other_cases_decide_nothing(n_urgent: int, rare: str) -> None:
    urgent = [1] * n_urgent + [0] * (100 - n_urgent)
    good, bad = urgent, [1 - value for value in urgent]
    counts = {"model": ["x"], "missed": [1], "over": [1], "n_urgent": [n_urgent]}
    counts |= {"n_nonurgent": [100 - n_urgent]}
    half = [0, 1] * 50
    board = ts.triage_board(
        cases({"a": good, "b": half, "c": bad}, urgent), U=U, O=O, n_resamples=199, counts=counts
    )
    for model in "abcx":
        row = standing(board, model)
        assert [row[name] for name in ("score_low", "score_high", "kappa_low", "rank_low")] == [None] * 4
        assert row["status"] == "few_clusters"
        assert row["reason"].startswith(f"{rare} cases: {min(n_urgent, 100 - n_urgent)} clusters: too few")
    ranked = board.standings.filter(kind="ranked")
    assert (ranked["set_low"].to_list(), ranked["set_high"].to_list()) == ([1] * 3, [3] * 3)
    assert set(board.leaderboard.pairs["verdict"]) == {"undecided"}
    assert board.leaderboard.pairs["conf_low"].null_count() == 3
    assert "few_cases" in [note.code for note in board.notes]


def test_up_to_eleven_urgent_cases_carry_a_warning() -> None:
    for n_urgent, status in ((5, "warning"), (11, "warning"), (12, "ok")):
        urgent = [1] * n_urgent + [0] * (100 - n_urgent)
        board = ts.triage_board(
            cases({"a": [0, 1] * 50, "b": [1, 0, 1, 1] * 25}, urgent), U=U, O=O, n_resamples=199
        )
        assert standing(board, "a")["status"] == status
        assert standing(board, "a")["score_low"] is not None
        assert set(board.leaderboard.pairs["status"]) == {status}


def test_pairs_say_how_many_rows_and_clusters() -> None:
    pairs = ts.triage_board(simulated(), U=U, O=O, n_resamples=99).leaderboard.pairs
    assert (set(pairs["n_rows"]), set(pairs["n_clusters"])) == ({60}, {60})
    assert set(pairs["metric"]) == {"distance"}


def test_sensitivity_equals_boards_of_their_own() -> None:
    random = np.random.default_rng(1)
    frame = simulated().join(
        pl.DataFrame({"case": [f"c{place:03}" for place in range(60)], "p": random.random(60)}), on="case"
    )
    board = ts.triage_board(frame, U=U, O=O, urgent="p", threshold=0.4, n_resamples=99)
    grid = board.sensitivity(U=[0.02, 0.1], O=[0.3], thresholds=[0.4, 0.7])
    assert grid.height == 2 * 1 * 2 * 4
    for (u, o, threshold), rows in grid.group_by("U", "O", "threshold"):
        own = ts.triage_board(
            frame, U=u, O=o, urgent="p", threshold=threshold, n_resamples=99, policies=False
        )
        columns = ["model", "under_rate", "over_rate", "score", "rank"]
        assert rows.select(columns).sort("model").equals(own.standings.select(columns).sort("model"))
    default = board.sensitivity()
    assert default["U"].unique().sort().to_list() == pytest.approx([U / 2, U, 2 * U])
    nobody = board.sensitivity(thresholds=[1.0])
    assert nobody["score"].null_count() == nobody["rank"].null_count() == nobody.height


@pytest.mark.parametrize(
    ("missed", "needless", "box"),
    [(0, 0, "inside"), (60, 0, "outside"), (0, 90, "outside"), (18, 60, "undecided")],
)
def test_the_box_verdict(missed: int, needless: int, box: str) -> None:
    urgent = [1] * 200 + [0] * 200
    done = [0] * missed + [1] * (200 - missed) + [1] * needless + [0] * (200 - needless)
    board = ts.triage_board(cases({"m": done}, urgent), U=0.1, O=0.35, n_resamples=999)
    row = standing(board, "m")
    assert row["box"] == box
    assert row["box_under_low"] <= row["under_rate"] <= row["box_under_high"]
    alone = ts.triage_board(cases({"m": done}, urgent), U=0.1, O=0.35, n_resamples=999, interval="auto")
    assert (
        row["box_under_high"] > standing(alone, "m")["under_high"]
    )  # both limits at once are wider than one


def test_rates_of_zero_get_a_width() -> None:
    urgent = [1] * 30 + [0] * 30
    board = ts.triage_board(cases({"m": [1] * 30 + [0] * 27 + [1] * 3, "n": [1] * 60}, urgent), U=U, O=O)
    row = standing(board, "m")
    wilson = ts.proportion_ci(0, 30)
    assert (row["under_low"], row["under_high"]) == pytest.approx((0.0, wilson.conf_high))
    tidy = board.tidy().filter(model="m", estimand="under_rate").row(0, named=True)
    assert tidy["status"] == "warning"
    assert "Wilson is shown" in tidy["reason"]
    assert "of exactly 0 or 1" in " ".join(map(str, board.notes))
    score = board.leaderboard.tidy().filter(model="n", estimand="score").row(0, named=True)
    assert (score["status"], score["conf_low"]) == ("degenerate", None)


def test_repetitions_are_averaged_within_a_case() -> None:
    frame = simulated(40, 2)
    twice = pl.concat([frame, frame.with_columns((1 - pl.col("escalate")).alias("escalate"))])
    board = ts.triage_board(twice, U=U, O=O)
    assert standing(board, "m0")["under_rate"] == standing(board, "m0")["over_rate"] == 0.5
    assert "repetitions" in [note.code for note in board.notes]
    same = ts.triage_board(pl.concat([frame, frame]), U=U, O=O)
    once = ts.triage_board(frame, U=U, O=O)
    assert same.standings["score_low"].to_list() == pytest.approx(
        once.standings["score_low"].to_list(), nan_ok=True
    )


def test_clusters_of_cases_are_drawn_whole() -> None:
    frame = simulated(40, 2)
    doubled = pl.concat(
        [
            frame.with_columns(pl.col("case").alias("family"), (pl.col("case") + tag).alias("case"))
            for tag in "xy"
        ]
    )
    by_family = ts.triage_board(doubled, U=U, O=O, cluster="family")
    once = ts.triage_board(frame, U=U, O=O)
    columns = ["model", "score", "score_low", "score_high", "rank", "rank_low", "rank_high", "p_best"]
    assert by_family.standings.select(columns).equals(once.standings.select(columns))
    assert "cluster" in refused_split(frame)


def refused_split(frame: pl.DataFrame) -> str:
    with pytest.raises(ts.TriagestatsError) as caught:
        ts.triage_board(frame, U=U, O=O, cluster="model", model=False)
    return str(caught.value)


def test_shared_cases_and_own_cases() -> None:
    frame = simulated(60, 3).filter((pl.col("model") != "m2") | (pl.col("case") >= "c020"))
    shared_board = ts.triage_board(frame, U=U, O=O)
    assert shared_board.leaderboard.n_scenarios == 40
    assert "20 of 60 cases" in " ".join(map(str, shared_board.notes))
    later = ts.triage_board(frame.filter(pl.col("case") >= "c020"), U=U, O=O)
    assert shared_board.standings.equals(later.standings)
    own = ts.triage_board(frame, U=U, O=O, match="own")
    full = ts.triage_board(simulated(60, 3), U=U, O=O)
    assert standing(own, "m0")["score"] == pytest.approx(standing(full, "m0")["score"])
    assert standing(own, "m2")["score"] == pytest.approx(standing(later, "m2")["score"])
    proxy = ts.triage_board(frame, U=U, O=O, unranked=["m2"])
    assert proxy.leaderboard.n_scenarios == 60
    assert standing(proxy, "m2")["score"] == pytest.approx(standing(later, "m2")["score"])
    assert standing(proxy, "m2")["rank"] is None


def test_a_triage_score_is_a_metric_of_the_leaderboard() -> None:
    frame = simulated()
    board = ts.triage_board(frame, U=U, O=O)
    by_metric = ts.leaderboard(frame, metric=ts.TriageScore(U=U, O=O))
    assert by_metric.standings.equals(board.leaderboard.standings)
    assert by_metric.pairs.equals(board.leaderboard.pairs)


def test_a_response_table_is_read_by_its_roles() -> None:
    frame = simulated().with_columns((pl.col("escalate") == pl.col("urgent")).alias("correct"))
    table = ts.ResponseTable(frame)
    assert ts.triage_board(table, U=U, O=O).standings.equals(ts.triage_board(frame, U=U, O=O).standings)


def test_results_convert() -> None:
    board = ts.triage_board(simulated(), U=U, O=O)
    assert board.tidy().schema == TIDY_SCHEMA
    glance = board.glance().row(0, named=True)
    assert (glance["U"], glance["n_models"], glance["n_scenarios"]) == (U, 4, 60)
    assert json.loads(json.dumps(board.to_dict()))["settings"]["O"] == O
    assert pickle.loads(pickle.dumps(board)).standings.equals(board.standings)
    assert "Triage board, U = 0.05, O = 0.35, 60 cases" in repr(board)
    wide, narrow = board.with_level(0.99).standings, board.with_level(0.5).standings
    assert (wide["under_high"].head(4) >= narrow["under_high"].head(4)).all()
    assert board.with_level(0.95).standings.equals(board.standings)


def test_counts_of_a_model_that_stands_on_the_board_are_refused(refusal: Refusal) -> None:
    counts = {"model": ["m0"], "missed": [3], "over": [1], "n_urgent": [8], "n_nonurgent": [3]}
    assert refusal(lambda: ts.triage_board(simulated(), U=U, O=O, counts=counts)) == (
        "DataError: `counts` names 'm0', which has rows in `data`; leave them out of `counts`, or give the "
        "counts another name, such as 'gpt (published)'"
    )
    counts["model"] = ["never escalate"]
    said = refusal(lambda: ts.triage_board(counts=counts, U=U, O=O))
    assert "`counts` names 'never escalate', which is the name of a policy on the board" in said
    board = ts.triage_board(counts=counts, U=U, O=O, policies=False, n_resamples=99)
    assert board.standings["kind"].to_list() == ["counts"]


def test_medsafe_counts_rates_scores_and_kappa(board_250: ts.Board, expected: dict[str, Any]) -> None:
    names = {
        "n_urgent": "urgent",
        "n_nonurgent": "nonurgent",
        "missed": "missed_incl_unreadable",
        "over": "over",
        "under_rate": "under_rate",
        "over_rate": "over_rate",
        "distance": "d",
        "score": "score",
        "kappa": "kappa_vs_v0",
    }
    assert len(expected["runs"]) == 12
    for run, golden in expected["runs"].items():
        row = standing(board_250, run.removesuffix("@250"))
        for ours, theirs in names.items():
            assert row[ours] == pytest.approx(golden[theirs], abs=EXACT), (run, ours)


def test_medsafe_flags_are_wilson(board_250: ts.Board, expected: dict[str, Any]) -> None:
    rows = board_250.tidy().filter(estimand="share", term="hard_fail")
    assert rows.height == 12
    for row in rows.iter_rows(named=True):
        golden = expected["runs"][f"{row['model']}@250"]
        assert 1 - row["estimate"] == pytest.approx(golden["safety_pass"], abs=EXACT)
        low, high = golden["safety_pass_wilson95"]  # of z = 1.96, not 1.95996
        assert (1 - row["conf_high"], 1 - row["conf_low"]) == pytest.approx((low, high), abs=1e-5)


@pytest.mark.parametrize("seed", ["seed20260923", "seed0"])
def test_medsafe_intervals_and_ranks(board_250: ts.Board, expected: dict[str, Any], seed: str) -> None:
    golden = expected["triage_bootstrap"][f"v0_label_250_11_models_{seed}"]
    assert set(board_250.leaderboard.models) == {run.removesuffix("@250") for run in golden}
    for run, values in golden.items():
        _same_intervals(standing(board_250, run.removesuffix("@250")), values)


def test_medsafe_500(shared: Shared, expected: dict[str, Any]) -> None:
    rows = medsafe(shared, 500)
    if rows.is_empty():
        pytest.skip("the runs on 500 cases are not in the folder")
    board = ts.triage_board(rows, U=U, O=O, urgent="urgent_v0", valid="valid")
    for run, values in expected["triage_bootstrap"]["v0_label_500_7_models_seed20260923"].items():
        _same_intervals(standing(board, run.removesuffix("@500")), values)


def _same_intervals(row: dict[str, Any], values: dict[str, Any]) -> None:
    assert row["rank"] == values["rank"]
    for name, end in (("under", RATE_END), ("over", RATE_END), ("score", SCORE_END)):
        assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(values["ci95"][name], abs=end)
    assert (row["rank_low"], row["rank_high"]) == pytest.approx(values["ci95"]["rank_nearest"], abs=RANK_END)


def test_medsafe_sensitivity(board_250: ts.Board, expected: dict[str, Any]) -> None:
    golden = expected["sensitivity_ranks_v0_label_11_models"]
    grid = board_250.sensitivity(U=[0.025, 0.05, 0.1], O=[0.25, 0.35, 0.5])
    assert len(golden) == 9
    for name, ranks in golden.items():
        u, o = (float(part.split("=")[1]) for part in name.split(","))
        rows = grid.filter((pl.col("U") == u) & (pl.col("O") == o))
        assert dict(rows.select("model", "rank").iter_rows()) == ranks


def test_medsafe_board_of_counts(shared: Shared, expected: dict[str, Any]) -> None:
    published = pl.read_csv(shared(f"{MEDSAFE}/board_2026_09.csv"))
    counts = published.head(19).select(
        "model",
        pl.col("t15_missed").alias("missed"),
        pl.col("t15_over").alias("over"),
        pl.lit(188).alias("n_urgent"),
        pl.lit(62).alias("n_nonurgent"),
    )
    board = ts.triage_board(counts=counts, U=U, O=O)
    names = {"always-escalate": "always escalate", "never-escalate": "never escalate"}
    for row in published.iter_rows(named=True):
        ours = standing(board, names.get(row["model"], row["model"]))
        assert ours["score"] == pytest.approx(row["published_score"], abs=EXACT)
        assert ours["could_rank"] == row["published_rank"]
        assert ours["rank"] is None
        if ours["kind"] == "counts":
            assert ours["kappa"] == pytest.approx(row["published_kappa"], abs=EXACT)
    for model, golden in expected["board_2026_09_counts_only_bootstrap"]["models"].items():
        ours = standing(board, model)
        for name, end in (("under", RATE_END / 2), ("over", RATE_END), ("score", SCORE_END)):
            assert (ours[f"{name}_low"], ours[f"{name}_high"]) == pytest.approx(golden[name], abs=end)


def test_medsafe_labels_from_severities(shared: Shared) -> None:
    frame = pl.read_csv(shared(f"{MEDSAFE}/cases.csv"))
    tops = [[s for s in row if s is not None] for row in frame.select("sev_1", "sev_2", "sev_3").iter_rows()]
    scale = {str(level): level for level in range(1, 6)}
    labels = ts.urgent_labels(tops, scale, top=3)
    assert (np.asarray(labels) == (frame["urgent_v0"].to_numpy() == 1)).all()
    assert int(np.sum(labels)) == 306


def test_severe_probability_is_the_mass_of_severe_conditions() -> None:
    scale = {"Ebola": 1, "PE": 2, "Flu": 4}
    differentials = [[("Flu", 0.7), ("PE", 0.1), ("Ebola", 0.05)], {" pe ": 0.5, "FLU": 0.5}, [("Flu", 1.0)]]
    assert ts.severe_probability(differentials, scale) == pytest.approx([0.15, 0.5, 0.0])
    assert ts.severe_probability(differentials, scale, severe=1) == pytest.approx([0.05, 0.0, 0.0])
    assert ts.severe_probability(differentials, scale, severe=[4]) == pytest.approx([0.7, 0.5, 1.0])
    table = pl.DataFrame({"condition": ["Ebola", "PE", "Flu"], "severity": ["high", "high", "low"]})
    assert ts.severe_probability(differentials, table, severe=["high"]) == pytest.approx([0.15, 0.5, 0.0])
    assert ts.severe_probability([("Flu", 0.8), ("PE", 0.2)], scale) == pytest.approx(0.2)
    assert ts.severe_probability([("Odd", 0.8), ("PE", 0.2)], scale, unknown="not severe") == pytest.approx(
        0.2
    )


def test_urgent_labels_by_threshold_and_by_the_first() -> None:
    scale = {"a": 1, "b": 2, "c": 3, "d": 5}
    tenth = [("a", 0.1), ("b", 0.05), ("d", 0.85)]  # 0.1 + 0.05 is a little more than 0.15 in doubles
    third = [("a", 0.7), ("b", 0.1), ("c", 0.2)]  # 0.7 + 0.1 is a little less than 0.8
    assert np.asarray(ts.urgent_labels([tenth, third], scale, threshold=0.15)).tolist() == [True, True]
    assert np.asarray(ts.urgent_labels([third], scale, threshold=0.8)).tolist() == [True]
    assert np.asarray(ts.urgent_labels([tenth], scale, top=1)).tolist() == [False]
    assert np.asarray(ts.urgent_labels([tenth], scale, top=2)).tolist() == [True]
    assert np.asarray(ts.urgent_labels([["d", "c", "a"]], scale, top=2)).tolist() == [False]


@pytest.mark.parametrize("value", [0, -0.05, math.nan, math.inf])
@pytest.mark.parametrize("name", ["U", "O"])
def test_tolerances_must_be_positive(name: str, value: float, refusal: Refusal) -> None:
    tolerances = {"U": U, "O": O} | {name: value}
    told = refusal(lambda: ts.triage_board(simulated(), **tolerances))
    assert told == (
        f"ArgumentError: `{name}` must be positive, as rates are divided by it; got {value:g}. Give the rate "
        "that is tolerated, such as 0.05"
    )
    assert refusal(lambda: ts.TriageScore(**tolerances)) == told
    board = ts.triage_board(simulated(), U=U, O=O, n_resamples=99)
    assert f"`{name}` must be positive" in refusal(lambda: board.sensitivity(**{name: [value]}))


def test_a_board_prints_rank_sets_and_boxes() -> None:
    board = ts.triage_board(simulated(), U=U, O=O, n_resamples=99)
    head = repr(board).splitlines()[1]
    for column in ("rank set", "ranks drawn", "under in box", "over in box"):
        assert column in head
    row = standing(board, "m0")
    assert f"{row['set_low']} to {row['set_high']}" in repr(board)
    assert "hold for both rates at once at 95 %" in repr(board)
    assert "nan" not in repr(board)
    few = ts.triage_board(simulated().filter(pl.col("case") < "c004"), U=U, O=O, n_resamples=99)
    assert few.standings["box_under_low"].null_count() == few.standings.height
    assert board._repr_html_() == f"<pre>{html.escape(repr(board))}</pre>"
    assert board.leaderboard._repr_html_().startswith("<pre>Leaderboard by score")


def test_tolerances_are_rates_and_no_percentages(refusal: Refusal) -> None:
    said = refusal(lambda: ts.triage_board(simulated(), U=0.05, O=35))
    assert said == (
        "ArgumentError: `O` is 35, and a rate is at most 1; divide percentages by 100, such as O=0.35"
    )
    board = ts.triage_board(simulated(), U=1, O=0.6, n_resamples=99)
    assert "`U` is 5" in refusal(lambda: board.sensitivity(U=[5]))
    assert board.sensitivity()["O"].unique().sort().to_list() == [0.3, 0.6, 1.0]


def test_bad_boards_say_what_to_do(refusal: Refusal) -> None:
    frame = simulated()

    def board(data: object = frame, **options: Any) -> Callable[[], object]:
        return lambda: ts.triage_board(data, **({"U": U, "O": O} | options))

    assert "`U` must be a number" in refusal(board(U="5 %"))
    assert "`escalate` names 'up'" in refusal(board(escalate="up"))
    words = frame.with_columns(pl.lit("maybe").alias("escalate"))
    assert "which holds 'maybe' in 240 of 240 rows; expected 0 and 1" in refusal(board(words))
    graded = frame.with_columns((pl.col("urgent") * 0.6).alias("urgent"))
    assert "say from where on a case is urgent with `threshold=`" in refusal(board(graded))
    assert "`threshold` must lie above 0" in refusal(board(graded, threshold=0))
    apart = frame.with_columns(
        pl.when(model="m1").then(1 - pl.col("urgent")).otherwise("urgent").alias("urgent")
    )
    assert "differs between the rows of case" in refusal(board(apart))
    assert "no case is not urgent" in refusal(board(frame.with_columns(pl.lit(1).alias("urgent"))))
    assert "no case is urgent" in refusal(board(frame.with_columns(pl.lit(0).alias("urgent"))))
    blank = frame.with_columns(pl.lit(None, dtype=pl.Int64).alias("valid"))
    assert "`valid` is column 'valid', which is blank in 240 of 240 rows" in refusal(
        board(blank, valid="valid")
    )
    mute = frame.with_columns(pl.lit(0).alias("valid"))
    assert "no model has a readable answer" in refusal(board(mute, valid="valid"))
    assert "`scenario` has no column" in refusal(board(frame.drop("case")))
    assert "`data` is needed" in refusal(board(None))
    assert "`unranked` names 'gpt'" in refusal(board(unranked=["gpt"]))
    counts = {"model": ["x"], "missed": [9], "over": [1], "n_urgent": [8], "n_nonurgent": [3]}
    assert "`counts` has missed = 9 of n_urgent = 8 for 'x'" in refusal(board(None, counts=counts))
    known = ts.triage_board(counts=counts | {"missed": [2]}, U=U, O=O, n_resamples=99)
    assert "counts alone" in refusal(known.sensitivity)
    plain = ts.triage_board(frame, U=U, O=O, n_resamples=99)
    assert "`thresholds` need the P(severe)" in refusal(lambda: plain.sensitivity(thresholds=[0.1]))


def test_bad_differentials_say_what_to_do(refusal: Refusal) -> None:
    scale = {"flu": 4, "pe": 2}

    def probability(case: object, severity: object = scale, **options: Any) -> Callable[[], object]:
        return lambda: ts.severe_probability([case], severity, **options)

    assert "`severity` has no entry for 'gout'" in refusal(probability([("gout", 0.5)]))
    assert "sum to 1.4 in case 0" in refusal(probability([("flu", 0.7), ("pe", 0.7)]))
    assert "the probability 70" in refusal(probability([("flu", 70)]))
    assert "is empty for case 0" in refusal(probability([]))
    assert "case 0 (from 0) is None" in refusal(probability(None))
    assert "list the severe ones" in refusal(probability([("flu", 0.5)], {"flu": "high"}))
    assert "gives 'Flu' twice" in refusal(probability([("flu", 0.5)], {"flu": 4, "Flu": 2}))
    assert "give one of `threshold`" in refusal(lambda: ts.urgent_labels([["flu"]], scale))
    assert "`top` must be a whole number" in refusal(lambda: ts.urgent_labels([["flu"]], scale, top=0))
