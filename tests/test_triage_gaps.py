"""Gaps of methods: narrativeshield re-run, hand-computed tables, verdicts, simulated truths, bad input."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.intervals import spread
from triagestats.triage.gap_frames import gap_verdict

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-9  # recomputed values are printed with ten digits
PRINTED = 5e-5  # four decimals
LATTICE = 0.0005  # one model's gap moves in steps of half an item in 1,000
ERRORS = 4  # standard errors of a resampled entry that count as the same
SIX = ("llama31", "llama32", "mistral7b", "qwen25", "gemma3_12b", "gemma4_e4b")
ASKED: dict[str, Any] = {"method": "condition", "voice": "voice", "control": "alpha", "baseline": "B1"}


def end_error(std: float, n_resamples: int) -> float:
    """Return the Monte Carlo error of a 2.5 % quantile of a normal law, and a step of the lattice."""
    density = math.exp(-(1.96**2) / 2) / math.sqrt(2 * math.pi) / std
    return ERRORS * math.sqrt(0.025 * 0.975 / n_resamples) / density + LATTICE


def one(frame: pl.DataFrame, **wanted: object) -> dict[str, Any]:
    """Return the one row with these values; None stands for null."""
    for name, value in wanted.items():
        frame = frame.filter(pl.col(name).is_null() if value is None else pl.col(name) == value)
    assert frame.height == 1, frame
    return frame.row(0, named=True)


def table_of(scores: Mapping[tuple[str, str, str], list[float]], **roles: Any) -> ts.ResponseTable:
    """Return a table of scores by model, method and voice, one a scenario."""
    rows = [(*key, f"s{s:03d}", value) for key, values in scores.items() for s, value in enumerate(values)]
    names = ("model", "method", "voice", "scenario", "score")
    data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return ts.ResponseTable(data, condition=["method", "voice"], **roles)


def compared(table: object, **options: Any) -> ts.GapComparison:
    asked: dict[str, Any] = {"method": "method", "voice": "voice", "control": "plain", "baseline": "direct"}
    return ts.compare_gaps(table, **(asked | {"n_resamples": 199} | options))


@pytest.fixture(scope="module")
def raw(shared: Shared) -> pl.DataFrame:
    return pl.read_csv(shared("replication/narrativeshield/responses.csv.gz"), infer_schema=False)


@pytest.fixture(scope="module")
def expected(shared: Shared) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(shared("replication/narrativeshield/expected.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def found(raw: pl.DataFrame) -> ts.GapComparison:
    return ts.compare_gaps(raw, interval="percentile", **ASKED)


@pytest.fixture(scope="module")
def six(raw: pl.DataFrame) -> ts.GapComparison:
    return ts.compare_gaps(raw.filter(pl.col("model") != "biomistral"), interval="percentile", **ASKED)


@pytest.mark.parametrize(
    ("estimand", "printed"),
    [
        ("control_change", -0.0063),
        ("marked_change", 0.0057),
        ("gap_reduction", 0.0120),
        ("recovered", 0.1924),
        ("broken", 0.0788),
    ],
)
def test_six_models(found: ts.GapComparison, six: ts.GapComparison, estimand: str, printed: float) -> None:
    row = one(found.gaps, estimand=estimand, model=None, stratum="without biomistral")
    assert row["estimate"] == pytest.approx(printed, abs=PRINTED)
    alone = one(six.gaps, estimand=estimand, model=None, stratum=None)
    for name in ("estimate", "std_error", "n_rows", "n_clusters", "verdict"):
        assert row[name] == (pytest.approx(alone[name], abs=1e-12) if alone[name] is not None else None)


def test_the_relative_reduction(found: ts.GapComparison, expected: dict[str, Any]) -> None:
    row = one(found.gaps, estimand="relative_gap_reduction", model=None, stratum="without biomistral")
    checks = {check["id"]: check["recomputed"] for check in expected["published_checks"]}
    assert row["estimate"] == pytest.approx(checks["paper/B3_gap_reduction_share"], abs=EXACT)
    assert row["estimate"] == pytest.approx(0.128, abs=5e-4)


def test_one_of_six(found: ts.GapComparison) -> None:
    row = one(found.directions, estimand="gap_reduction", stratum="without biomistral")
    assert (row["n_models"], row["n_above"], row["n_below"]) == (6, 1, 0)
    assert (row["above"], row["below"]) == (["qwen25"], [])
    qwen = one(found.gaps, estimand="gap_reduction", model="qwen25")
    assert qwen["estimate"] == pytest.approx(0.022, abs=EXACT)
    assert (qwen["conf_low"], qwen["conf_high"]) == pytest.approx((0.003, 0.041), abs=6e-4)
    assert qwen["verdict"] == "levels up"


@pytest.mark.parametrize("model", SIX)
def test_transitions(found: ts.GapComparison, expected: dict[str, Any], model: str) -> None:
    golden = expected["transitions_B1_to_B3"][model]
    for voice, counts in golden["by_voice"].items():
        row = one(found.victims, model=model, voice=voice)
        got = {name: row[name] for name in ("victims", "recovered", "broken")} | {"correct_B1": row["right"]}
        assert got == counts
    row = one(found.victims, model=model, voice=None)
    assert (row["victims"], row["recovered"]) == (golden["victims"], golden["recovered"])
    assert (row["right"], row["broken"]) == (golden["marked_correct_B1"], golden["broken"])
    for share in ("recovered", "broken"):
        assert row[f"{share}_share"] == pytest.approx(golden[f"{share}_share"], abs=EXACT)
        estimate = one(found.gaps, estimand=share, model=model)["estimate"]
        assert estimate == pytest.approx(golden[f"{share}_share"], abs=EXACT)


def test_pooled_transitions(raw: pl.DataFrame, found: ts.GapComparison, expected: dict[str, Any]) -> None:
    golden = expected["transitions_B1_to_B3"]
    counts = one(found.victims, model=None, voice=None, stratum="without biomistral")
    pairs = ts.compare_gaps(raw, weights="row", n_resamples=99, **ASKED).gaps
    for share in ("recovered", "broken"):
        mean = one(found.gaps, estimand=share, model=None, stratum="without biomistral")["estimate"]
        assert mean == pytest.approx(golden["mean_of_six_models"][f"{share}_share"], abs=EXACT)
        pooled = golden["pooled_six_models"][f"{share}_share"]
        assert counts[f"{share}_share"] == pytest.approx(pooled, abs=EXACT)
        row = one(pairs, estimand=share, model=None, stratum="without biomistral")
        assert row["estimate"] == pytest.approx(pooled, abs=EXACT)


@pytest.mark.parametrize("n_resamples", [2_000, 10_000])
def test_bootstrap_entries(
    found: ts.GapComparison, six: ts.GapComparison, expected: dict[str, Any], n_resamples: int
) -> None:
    """Ends differ by the Monte Carlo error of the source, four standard errors and a step of the lattice."""
    entries = expected[f"bootstrap_{n_resamples}"]
    for name, golden in entries.items():
        condition, _, model = name.partition("/")
        if condition == "B1-B3":
            row = one(found.gaps, estimand="gap_reduction", model=model)
            tolerance = end_error(row["std_error"], n_resamples)
            assert row["estimate"] == pytest.approx(golden["gap_reduction"], abs=EXACT)
            assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden["ci95"], abs=tolerance)
            continue
        wanted: dict[str, Any] = {"estimand": "gap", "condition": condition, "model": model}
        frame = found.gaps
        if model.startswith("mean_over"):
            wanted |= {"model": None, "stratum": None}
            frame = six.gaps if condition == "B3" or model == "mean_over_six" else found.gaps
        row = one(frame, **wanted)
        assert row["estimate"] == pytest.approx(golden["gap"], abs=1e-9)
        if golden["gap_ci95"] == [0.0, 0.0]:  # biomistral under B3: nothing was read
            assert (row["status"], row["conf_low"]) == ("degenerate", None)
            continue
        tolerance = end_error(row["std_error"], n_resamples)
        assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden["gap_ci95"], abs=tolerance)
        if "gap_boot_sd" in golden:
            relative = ERRORS / math.sqrt(2 * n_resamples)
            assert row["std_error"] == pytest.approx(golden["gap_boot_sd"], rel=relative)
        if "nag" in golden:
            row = one(found.gaps, **(wanted | {"estimand": "anchoring_gap"}))
            assert row["estimate"] == pytest.approx(golden["nag"], abs=EXACT)
            width = (golden["nag_ci95"][1] - golden["nag_ci95"][0]) / 3.92
            ends = pytest.approx(
                golden["nag_ci95"], abs=2 * end_error(width, n_resamples)
            )  # two sets of draws
            assert (row["conf_low"], row["conf_high"]) == ends


def test_the_error_of_a_gap_is_that_of_pyfixest(
    found: ts.GapComparison, six: ts.GapComparison, expected: dict[str, Any]
) -> None:
    """`correct ~ marked | question^model` with errors by question, a second library; its factor differs."""
    factor = 1e-3  # (N - 1) / (N - 2) of at least 3,000 rows
    for name, golden in expected["lpm"].items():
        condition, _, which = name.partition("_")
        if "two_voices" in which:
            continue
        pooled = which.startswith(("all7", "six"))
        frame = six.gaps if which.startswith("six") else found.gaps
        row = one(frame, estimand="gap", condition=condition, model=None if pooled else which, stratum=None)
        term = golden["terms"]["marked"]
        assert row["estimate"] == pytest.approx(-term["coef"], abs=EXACT)
        assert row["std_error"] == pytest.approx(term["pyfixest"]["se"], rel=factor)


def test_gaps_by_subgroup(shared: Shared, raw: pl.DataFrame, expected: dict[str, Any]) -> None:
    questions = pl.read_csv(shared("replication/narrativeshield/questions.csv"), infer_schema=False)
    words = pl.col("words_beta").cast(pl.Int64) + pl.col("words_gamma").cast(pl.Int64)
    questions = questions.with_columns(
        pl.concat_str(pl.lit("step="), "step").alias("by_step"),
        pl.concat_str(pl.lit("ask_type_derived="), "ask_type_derived").alias("by_ask"),
        pl.when(words <= words.median())
        .then(pl.lit("shorter_half"))
        .otherwise(pl.lit("longer_half"))
        .alias("half"),
    )
    joined = raw.join(questions.select("question_id", "by_step", "by_ask", "half"), on="question_id")
    entries = dict(expected["subgroup_gap_B1_mean_of_7"])
    for column in ("by_step", "by_ask", "half"):
        table = ts.ResponseTable(joined, condition=["condition", "voice"], stratum=column)
        gaps = ts.compare_gaps(table, n_resamples=99, **ASKED).gaps
        for stratum in joined[column].unique():
            golden = entries.pop(stratum)
            row = one(gaps, estimand="gap", condition="B1", model=None, stratum=stratum)
            assert row["n_clusters"] == golden["n"]
            assert row["estimate"] == pytest.approx(golden["gap"], abs=EXACT)
    assert not entries


def test_items_that_hold_the_original(shared: Shared, raw: pl.DataFrame, expected: dict[str, Any]) -> None:
    questions = pl.read_csv(shared("replication/narrativeshield/questions.csv"), infer_schema=False)
    kept = questions.filter(pl.col("orig_verbatim_in_beta") == "1")["question_id"]
    part = raw.filter(pl.col("question_id").is_in(kept.implode()) & (pl.col("voice") != "gamma"))
    golden = expected["superset_B1"]
    row = one(
        ts.compare_gaps(part, interval="percentile", **ASKED).gaps,
        estimand="gap",
        condition="B1",
        model=None,
        stratum=None,
    )
    assert row["n_clusters"] == golden["n"]
    assert row["estimate"] == pytest.approx(golden["alpha_minus_beta"], abs=EXACT)
    tolerance = end_error(row["std_error"], 2_000) + 0.001  # a step of the lattice is 1 / (84 x 7)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden["ci95"], abs=tolerance)


def test_control_against_marked(raw: pl.DataFrame, expected: dict[str, Any]) -> None:
    golden = expected["b1_control_vs_marked_significance"]
    wide = (
        raw.filter(pl.col("condition") == "B1")
        .with_columns(pl.col("correct").cast(pl.Int64))
        .pivot(on="voice", index=["question_id", "model"], values="correct")
    )
    corrected, exact = [], []
    for _, model in wide.group_by("model"):
        for voice in ("beta", "gamma"):
            corrected.append(ts.mcnemar(model["alpha"], model[voice], method="chi2-corrected").p_value)
            exact.append(ts.mcnemar(model["alpha"], model[voice], method="exact").p_value)
    assert len(corrected) == golden["tests"]
    for name, p_values in (("cc", corrected), ("exact", exact)):
        for shown, bound in (("0.05", 0.05), ("0.05/3", 0.05 / 3), ("0.05/14", 0.05 / 14)):
            number = sum(p is not None and p < bound for p in p_values)
            assert number == golden[f"{name}_p<{shown}"]


def test_a_method_of_which_nothing_was_read(found: ts.GapComparison) -> None:
    """Blank answers count as wrong: the gap is 0, and the method would seem to level down."""
    assert found.without == ("biomistral",)
    (note,) = (note for note in found.notes if note.code == "unread_method")
    assert note.message == (
        "biomistral under B3: none of 3,000 answers could be read in alpha, beta and gamma, and they "
        "count as wrong; its gap there says nothing of the method."
    )
    everyone = one(found.gaps, estimand="gap_reduction", model=None, stratum=None)
    others = one(found.gaps, estimand="gap_reduction", model=None, stratum="without biomistral")
    assert (everyone["verdict"], others["verdict"]) == ("levels down", "mixed")
    assert "without biomistral" in repr(found)


def test_unread_answers_that_are_missing(raw: pl.DataFrame) -> None:
    table = ts.ResponseTable(raw, condition=["condition", "voice"], unparsed="missing")
    fit = ts.compare_gaps(table, n_resamples=99, **ASKED)
    assert fit.without == ()
    row = one(fit.gaps, estimand="gap_reduction", model="biomistral")
    assert (row["status"], row["estimate"], row["n_missing"]) == ("no_data", None, 1000)
    codes = {note.code for note in fit.notes}
    assert {"unread_method", "model_left_out", "incomplete_keys"} <= codes
    assert one(fit.directions, estimand="gap_reduction")["n_models"] == 6


def test_named_models_are_left_out(raw: pl.DataFrame) -> None:
    fit = ts.compare_gaps(raw, without=["qwen25", "biomistral"], n_resamples=99, **ASKED)
    row = one(fit.gaps, estimand="gap_reduction", model=None, stratum="without biomistral, qwen25")
    single = fit.gaps.filter(
        (pl.col("estimand") == "gap_reduction") & ~pl.col("model").is_in(["qwen25", "biomistral"])
    )
    assert row["estimate"] == pytest.approx(single["estimate"].to_numpy().mean(), abs=1e-12)
    assert ts.compare_gaps(raw, without=(), n_resamples=99, **ASKED).gaps["stratum"].null_count() > 0


HAND: dict[tuple[str, str, str], list[float]] = {
    ("m", "direct", "plain"): [1, 1, 1, 0, 1, 1],
    ("m", "direct", "x"): [0, 1, 0, 0, 1, 0],
    ("m", "direct", "y"): [0, 0, 1, 1, 1, 1],
    ("m", "advice", "plain"): [1, 1, 0, 0, 1, 1],
    ("m", "advice", "x"): [1, 1, 0, 1, 0, 1],
    ("m", "advice", "y"): [1, 0, 1, 1, 1, 0],
}


def test_hand_computed_table() -> None:
    fit = compared(table_of(HAND))
    got = {
        (row["estimand"], row["condition"]): row["estimate"]
        for row in fit.gaps.filter(pl.col("model") == "m").iter_rows(named=True)
    }
    assert got == pytest.approx(
        {
            ("control_change", None): -1 / 6,  # 5/6 to 4/6
            ("marked_change", None): 1 / 6,  # (2 + 4)/12 to (4 + 4)/12
            ("overall_change", None): 1 / 18,  # 11/18 to 12/18
            ("gap", "direct"): 1 / 3,
            ("gap", "advice"): 0.0,
            ("gap_reduction", None): 1 / 3,
            ("relative_gap_reduction", None): 1.0,
            ("anchoring_gap", "direct"): 0.5,  # 5/6 - 2/6
            ("anchoring_gap", "advice"): 0.0,
            ("recovered", "advice"): 3 / 5,  # victims x0, x2, x5, y0, y1; recovered x0, x5, y0
            ("broken", "advice"): 2 / 6,  # right x1, x4, y2 to y5; broken x4, y5
        }
        | {("relative_gap_reduction", None): got["relative_gap_reduction", None]}
    )
    counts = one(fit.victims, model="m", voice=None)
    assert [counts[name] for name in ("victims", "recovered", "right", "broken")] == [5, 3, 6, 2]
    assert one(fit.victims, model=None, voice="y")["victims"] == 2
    assert fit.marked == ("x", "y")


def test_the_p_value_is_that_of_all_flips_of_the_methods() -> None:
    row = one(compared(table_of(HAND)).gaps, estimand="gap_reduction", model=None)
    base = {voice: np.array(HAND["m", "direct", voice]) for voice in ("plain", "x", "y")}
    other = {voice: np.array(HAND["m", "advice", voice]) for voice in ("plain", "x", "y")}
    added = [side["plain"] - (side["x"] + side["y"]) / 2 for side in (base, other)]
    difference = added[0] - added[1]
    flips = np.array(list(product((-1, 1), repeat=6))) @ difference
    assert row["p_value"] == np.mean(np.abs(flips) >= abs(difference.sum()) - 1e-9)


def test_swapping_baseline_and_method_swaps_signs() -> None:
    table = table_of(HAND)
    plain, turned = compared(table).gaps, compared(table, baseline="advice").gaps
    for estimand in ("control_change", "marked_change", "overall_change", "gap_reduction"):
        before, after = one(plain, estimand=estimand, model=None), one(turned, estimand=estimand, model=None)
        assert after["estimate"] == pytest.approx(-before["estimate"])
        assert after["conf_low"] == pytest.approx(-before["conf_high"])
        assert after["p_value"] == before["p_value"]


def test_several_methods_are_each_compared_with_the_baseline() -> None:
    third = {(m, "third", v): scores for (m, method, v), scores in HAND.items() if method == "advice"}
    third["m", "third", "x"] = [1, 1, 1, 1, 1, 1]
    fit = compared(table_of(HAND | third))
    assert fit.methods == ("advice", "third")
    rows = fit.gaps.filter((pl.col("estimand") == "marked_change") & pl.col("model").is_null())
    assert dict(rows.select("term", "estimate").iter_rows()) == pytest.approx(
        {"advice": 1 / 6, "third": 1 / 3}
    )
    two = compared(table_of(HAND | third), baseline="advice", methods=["third"])
    row = one(two.gaps, estimand="gap_reduction", model=None)
    assert (row["term"], row["estimate"]) == ("third", pytest.approx(1 / 6))


def test_a_relative_reduction_over_no_gap_is_withheld() -> None:
    same = [1.0, 0, 1, 0, 1, 0, 1, 1]
    scores: dict[tuple[str, str, str], list[float]] = {
        ("m", "direct", "plain"): same,
        ("m", "direct", "x"): [0, 1, 1, 0, 1, 0, 1, 1],
        ("m", "advice", "plain"): same,
        ("m", "advice", "x"): [0, 1, 1, 1, 1, 0, 0, 1],
    }
    row = one(compared(table_of(scores)).gaps, estimand="relative_gap_reduction", model=None)
    assert (row["status"], row["estimate"], row["conf_low"]) == ("withheld", None, None)
    assert row["reason"].startswith("the interval of the baseline gap, [-0.")
    assert row["reason"].endswith("], holds 0")


def test_a_gap_below_zero_is_pointed_out() -> None:
    ones, none = [1.0] * 11 + [0.0], [0.0] * 11 + [1.0]
    half = [1.0, 0.0] * 6
    scores = {
        ("m", "direct", "plain"): none,
        ("m", "direct", "x"): ones,
        ("m", "advice", "plain"): half,
        ("m", "advice", "x"): ones,
    }
    fit = compared(table_of(scores))
    assert "turned_gap" in {note.code for note in fit.notes}
    row = one(fit.gaps, estimand="relative_gap_reduction", model=None)
    assert row["estimate"] > 0
    assert (
        row["reason"] == "the baseline gap is below 0, so that a positive ratio is a gap that moves towards 0"
    )
    assert one(fit.gaps, estimand="gap_reduction", model=None)["estimate"] == pytest.approx(-5 / 12)


def test_a_relative_reduction_of_all_models_is_a_ratio_of_means() -> None:
    """Not the mean of the models' ratios, which a small gap would rule."""
    rng = np.random.default_rng(3)
    scores = {}
    for model, low in (("m", 0.2), ("n", 0.5)):
        for (method, voice), p in (
            (("direct", "plain"), 0.9),
            (("direct", "x"), low),
            (("advice", "plain"), 0.9),
            (("advice", "x"), low + 0.2),
        ):
            scores[model, method, voice] = rng.binomial(1, p, 60).astype(float).tolist()
    gaps = compared(table_of(scores)).gaps
    parts = {
        name: one(gaps, estimand=name, model=None, condition=where)["estimate"]
        for name, where in (("gap", "direct"), ("gap_reduction", None), ("relative_gap_reduction", None))
    }
    assert parts["relative_gap_reduction"] == pytest.approx(parts["gap_reduction"] / parts["gap"])
    ratios = gaps.filter((pl.col("estimand") == "relative_gap_reduction") & pl.col("model").is_not_null())
    assert parts["relative_gap_reduction"] != pytest.approx(ratios["estimate"].to_numpy().mean(), abs=1e-3)


def test_means_of_repetitions_count_expected_shares() -> None:
    rows = [
        ("direct", "plain", 1, 1),
        ("direct", "plain", 2, 1),
        ("direct", "x", 1, 1),
        ("direct", "x", 2, 0),
        ("advice", "plain", 1, 1),
        ("advice", "x", 1, 1),
        ("advice", "x", 2, 0),
        ("advice", "x", 3, 1),
        ("advice", "x", 4, 1),
    ]
    names = ("method", "voice", "repetition", "score")
    both = [(s, *row) for s in ("a", "b") for row in rows]
    data = dict(zip(("scenario", *names), map(list, zip(*both, strict=True)), strict=True))
    fit = compared(ts.ResponseTable(data, condition=["method", "voice"]))
    row = one(fit.victims, voice="x")
    assert row["victims"] == pytest.approx(2 * 1 * 0.5)
    assert row["recovered"] == pytest.approx(2 * 1 * 0.5 * 0.75)
    assert (row["right"], row["broken"]) == pytest.approx((2 * 0.5, 2 * 0.5 * 0.25))


UP, DOWN, NONE = (0.01, 0.05), (-0.05, -0.01), (-0.02, 0.03)


@pytest.mark.parametrize(
    ("reduction", "marked", "control", "expected"),
    [
        (UP, UP, NONE, "levels up"),
        (UP, UP, UP, "levels up"),
        (UP, UP, DOWN, "levels up"),
        (UP, NONE, DOWN, "levels down"),
        (UP, DOWN, DOWN, "levels down"),
        (UP, NONE, NONE, "mixed"),
        (DOWN, DOWN, NONE, "mixed"),
        (NONE, UP, DOWN, "undecided"),
        (NONE, UP, UP, "undecided"),
        ((0.0, 0.02), UP, NONE, "undecided"),
        ((None, None), UP, NONE, "undecided"),
        (UP, (None, None), (None, None), "mixed"),
    ],
)
def test_verdicts(reduction: Any, marked: Any, control: Any, expected: str) -> None:
    assert gap_verdict(reduction, marked, control) == expected


@pytest.mark.parametrize(
    ("advice", "verdict"),
    [((0.9, 0.85), "levels up"), ((0.5, 0.5), "levels down"), ((0.9, 0.5), "undecided")],
)
def test_simulated_methods(advice: tuple[float, float], verdict: str) -> None:
    rng = np.random.default_rng(11)
    n = 400
    chances = {("direct", "plain"): 0.9, ("direct", "x"): 0.5}
    chances |= {("advice", "plain"): advice[0], ("advice", "x"): advice[1]}
    scores = {
        (model, *side): rng.binomial(1, p, n).astype(float).tolist()
        for model in ("m", "n")
        for side, p in chances.items()
    }
    fit = compared(table_of(scores))
    row = one(fit.gaps, estimand="gap_reduction", model=None)
    true = (0.9 - 0.5) - (advice[0] - advice[1])
    assert abs(row["estimate"] - true) < ERRORS * row["std_error"]
    assert row["verdict"] == verdict


def test_a_voice_that_a_model_lacks_is_noted() -> None:
    other = {("n", *key[1:]): scores for key, scores in HAND.items() if key[1:] != ("advice", "y")}
    fit = compared(table_of(HAND | other))
    assert one(fit.gaps, estimand="gap_reduction", model=None)["estimate"] == pytest.approx(1 / 3)
    row = one(fit.gaps, estimand="gap_reduction", model="n")
    assert (row["status"], row["reason"]) == ("no_data", "no key is scored in all voices with both methods")
    messages = [note.message for note in fit.notes if note.code == "model_left_out"]
    assert messages == ["n is in no estimate of advice: no answer of it under advice in y has a score."]


def test_answers_that_are_all_wrong_are_pointed_out() -> None:
    silent = {key: [0.0] * 6 if key[1] == "advice" else scores for key, scores in HAND.items()}
    fit = compared(table_of(silent))
    messages = [note.message for note in fit.notes if note.code == "all_wrong"]
    assert messages == ["m under advice: every answer scores 0; was its output read?"]


def test_scores_beyond_one_have_no_victims() -> None:
    fit = compared(table_of({key: [10 * value for value in scores] for key, scores in HAND.items()}))
    assert fit.victims.is_empty()
    assert not {"recovered", "broken"} & set(fit.gaps["estimand"])
    assert "no_victims" in {note.code for note in fit.notes}


def test_without_victims_nothing_is_recovered() -> None:
    never = HAND | {("m", "direct", "plain"): [0.0] * 6}
    row = one(compared(table_of(never)).gaps, estimand="recovered", model="m")
    assert (row["status"], row["reason"]) == ("no_data", "there is no victim")


def test_other_conditions_are_averaged_over() -> None:
    rows = [
        (s, method, voice, wording, score + (wording == "long"))
        for (_, method, voice), scores in HAND.items()
        for s, score in enumerate(scores)
        for wording in ("long", "short")
    ]
    names = ("scenario", "method", "voice", "wording", "score")
    data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    fit = compared(ts.ResponseTable(data, condition=["method", "voice", "wording"]))
    assert one(fit.gaps, estimand="gap_reduction")["estimate"] == pytest.approx(1 / 3)


def test_the_order_of_rows_changes_nothing() -> None:
    turned = {key: HAND[key] for key in reversed(HAND)}
    assert compared(table_of(HAND)).tidy().equals(compared(table_of(turned)).tidy())


def test_results_convert(six: ts.GapComparison) -> None:
    assert six.tidy().columns == ts.analyze(ts.demo_table(), n_resamples=99).tidy().columns
    assert six.glance().height == 1
    json.dumps(six.to_dict(), allow_nan=False)
    narrow = one(six.with_level(0.5).gaps, estimand="gap_reduction", model=None)
    wide = one(six.gaps, estimand="gap_reduction", model=None)
    assert wide["conf_low"] < narrow["conf_low"] < narrow["conf_high"] < wide["conf_high"]
    assert "1 of 6 above, 0 below" in repr(six)
    assert {note.code for note in six.notes} >= {"anchoring_gap", "verdicts", "weights"}


def test_the_anchoring_gap_is_given_by_model_only(six: ts.GapComparison) -> None:
    rows = six.gaps.filter(pl.col("estimand") == "anchoring_gap")
    assert rows["model"].null_count() == 0
    assert rows.height == 12


def test_few_clusters_have_no_interval() -> None:
    fit = compared(table_of({key: scores[:4] for key, scores in HAND.items()}))
    row = one(fit.gaps, estimand="gap_reduction", model=None)
    assert (row["status"], row["conf_low"], row["verdict"]) == ("few_clusters", None, "undecided")
    relative = one(fit.gaps, estimand="relative_gap_reduction", model=None)
    assert relative["reason"] == "the baseline gap has no interval, so that it may be 0"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"control": "z"}, "`control` is 'z'; choose from the levels of 'voice', ['plain', 'x', 'y']"),
        ({"baseline": "z"}, "`baseline` is 'z'; choose from the levels of 'method', ['advice', 'direct']"),
        ({"marked": ["plain", "x"]}, "`marked` holds the control 'plain'; leave it out"),
        ({"marked": []}, "`marked` is empty, and a gap needs a voice beside the control 'plain'"),
        ({"marked": ["x", "x"]}, "`marked` must list each level once; got ['x', 'x']"),
        ({"methods": ["direct"]}, "`methods` holds the baseline 'direct'; leave it out"),
        ({"voice": "method"}, "`method` and `voice` are both 'method'; they are two condition columns"),
        ({"without": ["z"]}, "`without` names 'z'; the models are ['m']"),
        ({"without": ["m"]}, "`without` names all models; leave at least one"),
        ({"weights": "cell"}, "`weights` must be one of 'scenario', 'row'; got 'cell'"),
    ],
)
def test_bad_arguments(options: dict[str, Any], expected: str, refusal: Refusal) -> None:
    assert refusal(lambda: compared(table_of(HAND), **options)) == f"ArgumentError: {expected}"


def test_tables_that_cannot_answer_are_refused(refusal: Refusal) -> None:
    said = refusal(lambda: compared(table_of(HAND), voice="tone"))
    assert said.startswith("ArgumentError: `voice` names 'tone'; choose from the condition columns")
    lower = table_of(HAND, higher_is_better=False)
    assert refusal(lambda: compared(lower)).startswith("ArgumentError: `higher_is_better` is False")
    gone = {key: scores for key, scores in HAND.items() if key[1:] != ("advice", "y")}
    assert refusal(lambda: compared(table_of(gone))).startswith(
        "DesignError: the table has no advice: y (method: voice) to compare"
    )
    apart = {
        key: [math.nan if (key[1] == "direct") == (s < 3) else v for s, v in enumerate(scores)]
        for key, scores in HAND.items()
    }
    assert refusal(lambda: compared(table_of(apart))).startswith(
        "DesignError: no key is scored in all of the voices ['plain', 'x', 'y'] with both 'direct' and"
    )


def test_a_method_without_scores_in_one_voice_is_named(refusal: Refusal) -> None:
    nan = math.nan
    alone = HAND | {("m", "advice", "y"): [nan] * 6}
    assert refusal(lambda: compared(table_of(alone))).endswith(
        "with match='cell'; no answer under advice in y has a score: could its output be read?"
    )
    two = HAND | {("n", *key[1:]): values for key, values in alone.items()}
    (note,) = (n for n in compared(table_of(two)).notes if n.code == "model_left_out")
    assert note.message == "n is in no estimate of advice: no answer of it under advice in y has a score."


def test_a_gap_below_zero_is_not_levelled_up() -> None:
    """Marked voices ahead of the control, and further ahead with the method: nothing is levelled."""
    up, ahead = (0.01, 0.05), (-0.20, -0.10)
    assert gap_verdict(up, up, (-0.01, 0.01), ahead) == "mixed"
    assert gap_verdict(up, up, (-0.01, 0.01), (0.1, 0.2)) == "levels up"
    assert gap_verdict((-0.01, 0.05), up, (0.0, 0.01), ahead) == "undecided"
    n = 40
    scores = {
        ("m", "direct", "plain"): [1.0] * 10 + [0.0] * 30,
        ("m", "direct", "x"): [1.0] * 25 + [0.0] * 15,
        ("m", "advice", "plain"): [1.0] * 10 + [0.0] * 30,
        ("m", "advice", "x"): [1.0] * n,
    }
    found = compared(table_of(scores))
    assert one(found.gaps, estimand="gap_reduction", model=None)["verdict"] == "mixed"
    assert one(found.gaps, estimand="marked_change", model=None)["conf_low"] > 0


def test_shares_of_counted_victims_are_said_to_differ() -> None:
    two = HAND | {("n", *key[1:]): [1 - value for value in values] for key, values in HAND.items()}
    codes = [note.code for note in compared(table_of(two)).notes]
    assert "victims" in codes
    assert "victims" not in [note.code for note in compared(table_of(HAND)).notes]
    assert "victims" not in [note.code for note in compared(table_of(two), weights="row").notes]


def test_a_ratio_over_no_gap_raises_no_warning() -> None:
    """Without any one scenario the ratios are infinite, and their range is unknown: no inf - inf."""
    scores = {
        ("m", "direct", "plain"): [1, 0] * 3,
        ("m", "direct", "x"): [1, 0] * 3,
        ("m", "advice", "plain"): [1, 1] * 3,
        ("m", "advice", "x"): [0, 0] * 3,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = compared(table_of(scores))
    row = found.gaps.filter(pl.col("estimand") == "relative_gap_reduction").row(0, named=True)
    assert (row["estimate"], row["status"]) == (None, "withheld")


def test_the_range_of_infinite_values_is_unknown() -> None:
    inf, nan = math.inf, math.nan
    values = np.array([[inf, -inf, inf, 1.0, nan], [inf, -inf, 2.0, 4.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = spread(values, np.ones(values.shape, dtype=bool))
        none = spread(values, np.zeros(values.shape, dtype=bool))
    assert found.tolist() == pytest.approx([nan, nan, inf, 3.0, nan], nan_ok=True)
    assert none.tolist() == [-inf] * 5


def test_the_formulas_stand_in_lines_of_their_own() -> None:
    lines = [line.strip() for line in (ts.compare_gaps.__doc__ or "").splitlines()]
    for name in ("control_change", "marked_change", "gap_reduction", "recovered", "broken"):
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
