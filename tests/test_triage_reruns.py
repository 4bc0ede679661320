"""Comparisons of runs and forms: exact values, a simulated stand-in of a masking study, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.results import TIDY_SCHEMA
from triagestats.simulate import simulate_scores

Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of a few fractions
PRINTED = 5e-7  # 1.4e-5 to its second digit
MASKED = [0.41, 0.42, 0.40, 0.43, 0.41]
FULL = [0.52, 0.50, 0.53, 0.51, 0.52]
FORMS_BEFORE = [0.50, 0.55, 0.61, 0.58, 0.52, 0.57, 0.60]
FORMS_AFTER = [0.41, 0.54, 0.50, 0.49, 0.40, 0.56, 0.59]
LEVELS = {"c1": 0.0, "c2": 25.0, "c3": 50.0, "c4": 75.0, "c5": 100.0}


def _said(refused: str) -> str:
    """Return the message without the class of the error."""
    return refused.partition(": ")[2]


def _row(frame: pl.DataFrame, **wanted: object) -> dict[str, Any]:
    for name, value in wanted.items():
        frame = frame.filter(pl.col(name).is_null() if value is None else pl.col(name) == value)
    assert frame.height == 1, frame
    return frame.row(0, named=True)


@pytest.fixture(scope="module")
def stand_in() -> pl.DataFrame:
    """A study like FreeMedQA, which released no table: five levels of masking, five runs."""
    return simulate_scores(
        150,
        n_conditions=5,
        n_repetitions=5,
        base_logit=0.6,
        condition_effects=[0.0, -0.5, -1.0, -1.8, -4.0],
        seed=11,
    ).scores


@pytest.fixture(scope="module")
def compared(stand_in: pl.DataFrame) -> ts.RerunComparison:
    return ts.compare_reruns("c5", "c1", data=stand_in, alternative="less")


@pytest.fixture(scope="module")
def slope(stand_in: pl.DataFrame) -> ts.MaskingSlope:
    return ts.masking_slope(stand_in, levels=LEVELS)


def test_five_runs_that_are_completely_apart() -> None:
    found = ts.compare_reruns(MASKED, FULL, alternative="less")
    assert found.p_value == pytest.approx(1 / 252, abs=EXACT)
    assert ts.compare_reruns(MASKED, FULL).p_value == pytest.approx(2 / 252, abs=EXACT)
    assert ts.compare_reruns(FULL, MASKED, alternative="greater").p_value == found.p_value
    assert found.test.method == "permutation of runs between conditions, exact by enumeration"
    assert "All 5 runs of a lie below all 5 of b." in map(str, found.notes)


def test_the_permutation_is_that_of_all_ways_to_name_the_runs() -> None:
    a, b = [0.4, 0.5, 0.45, 0.52], [0.5, 0.48, 0.55]
    values = np.array(a + b)
    differences = [
        values[list(chosen)].mean() - np.delete(values, list(chosen)).mean()
        for chosen in combinations(range(7), 4)
    ]
    assert len(differences) == comb(7, 4)
    observed = np.mean(a) - np.mean(b)
    expected = np.mean(np.array(differences) <= observed + 1e-12)
    assert ts.compare_reruns(a, b, alternative="less").p_value == pytest.approx(expected, abs=EXACT)


def test_three_comparisons_together() -> None:
    assert ts.combine_pvalues([0.006, 0.004, 0.004]).p_value == pytest.approx(1.4e-5, abs=PRINTED)


def test_five_runs_above_chance() -> None:
    found = ts.compare_reruns([0.31, 0.29, 0.33, 0.30, 0.32], constant=0.25, alternative="greater")
    assert found.p_value == 1 / 32
    assert found.names == ("a", "0.25")
    row = _row(found.tidy(), estimand="relative_difference")
    assert row["estimate"] == pytest.approx(0.06 / 0.25, abs=EXACT)
    assert "All 5 runs of a lie above 0.25." in map(str, found.notes)


def test_seven_forms_that_are_all_lower() -> None:
    found = ts.compare_reruns(FORMS_AFTER, FORMS_BEFORE, unit="form", alternative="less")
    assert (found.p_value, found.paired) == (1 / 128, True)
    unpaired = ts.compare_reruns(FORMS_AFTER, FORMS_BEFORE, unit="form", paired=False, alternative="less")
    assert unpaired.p_value is not None
    assert unpaired.p_value > 1 / 128


def test_spread_and_drops() -> None:
    found = ts.compare_reruns(MASKED, FULL).tidy()
    assert found.schema == TIDY_SCHEMA
    for side, values in (("a", MASKED), ("b", FULL)):
        assert _row(found, estimand="mean", condition=side)["estimate"] == pytest.approx(np.mean(values))
        sd = _row(found, estimand="run_sd", condition=side)["estimate"]
        assert sd == pytest.approx(np.std(values, ddof=1), abs=EXACT)
    assert _row(found, estimand="difference")["estimate"] == pytest.approx(-0.102, abs=EXACT)
    relative = _row(found, estimand="relative_difference")["estimate"]
    assert relative == pytest.approx(-0.102 / 0.516, abs=EXACT)


def test_one_run_has_no_spread_and_nothing_is_relative_to_nothing() -> None:
    found = ts.compare_reruns([0.4], [0.0, 0.0]).tidy()
    row = _row(found, estimand="run_sd", condition="a")
    assert (row["status"], row["estimate"]) == ("undefined", None)
    assert _row(found, estimand="relative_difference")["reason"] == "b is 0"


def test_without_responses_the_note_says_what_is_missing() -> None:
    found = ts.compare_reruns(MASKED, FULL, alternative="less")
    assert str(found.notes[-1]) == (
        "p = 0.00397 speaks of further runs with the same questions, not of other questions; what holds for "
        "those needs the responses, by question: give them as `data`."
    )
    assert found.notes[-1].level == "caution"


def test_questions_stand_beside_the_runs(compared: ts.RerunComparison, stand_in: pl.DataFrame) -> None:
    """The interval by question is that of `analyze` on the same rows; the p-value is that of the runs."""
    assert compared.p_value == pytest.approx(1 / 252, abs=EXACT)
    rows = compared.tidy().filter(pl.col("term") == "questions")
    row = _row(rows, estimand="difference")
    fit = ts.analyze(stand_in.filter(pl.col("condition").is_in(["c1", "c5"])), reference="c1", n_resamples=99)
    assert fit.contrasts is not None
    whole = _row(fit.contrasts, model=None)
    for name in ("estimate", "std_error", "conf_low", "conf_high", "n_clusters"):
        assert row[name] == pytest.approx(whole[name])
    runs = _row(compared.tidy(), estimand="difference", term="runs")
    assert row["estimate"] == pytest.approx(runs["estimate"])
    assert "speaks of further runs with the same 150 questions" in str(compared.notes[-1])


def test_means_of_the_runs(compared: ts.RerunComparison, stand_in: pl.DataFrame) -> None:
    expected = (
        stand_in.filter(pl.col("condition") == "c5")
        .group_by("repetition")
        .agg(pl.col("score").mean())
        .sort("repetition")
    )
    runs = compared.runs.filter(pl.col("condition") == "c5")
    assert runs["mean"].to_list() == pytest.approx(expected["score"].to_list())
    assert runs["n_rows"].to_list() == [150] * 5


def test_the_relative_difference_by_question(compared: ts.RerunComparison) -> None:
    rows = compared.tidy()
    found = {term: _row(rows, estimand="relative_difference", term=term) for term in ("runs", "questions")}
    assert found["questions"]["estimate"] == pytest.approx(found["runs"]["estimate"])
    assert found["questions"]["conf_low"] < found["questions"]["estimate"] < found["questions"]["conf_high"]
    narrower = _row(compared.with_level(0.5).tidy(), estimand="relative_difference", term="questions")
    assert narrower["conf_low"] > found["questions"]["conf_low"]


def test_a_constant_with_responses(stand_in: pl.DataFrame) -> None:
    found = ts.compare_reruns("c1", data=stand_in, constant=0.25, alternative="greater")
    assert found.p_value == 1 / 32
    row = _row(found.tidy(), estimand="mean", term="questions")
    assert row["conf_low"] > 0.25
    assert found.runs["condition"].unique().to_list() == ["c1"]


def test_forms_of_a_table_pair_by_name() -> None:
    rows = [
        (f"q{q}", condition, f"f{f}", (q * 3 + f * 5 + 4 * (condition == "old")) % 11 / 10)
        for q in range(14)
        for condition in ("new", "old")
        for f in range(3 + (condition == "old"))
    ]
    table = pl.DataFrame(rows, schema=["question", "condition", "variant", "score"], orient="row")
    found = ts.compare_reruns("new", "old", data=table, unit="form")
    assert found.paired
    assert found.runs.filter(pl.col("condition") == "old")["unit"].to_list() == ["f0", "f1", "f2"]
    assert "unpaired" in {note.code for note in found.notes}
    means = table.group_by("condition", "variant").agg(pl.col("score").mean())
    wide = means.pivot(on="condition", index="variant", values="score").drop_nulls().sort("variant")
    assert found.p_value == ts.sign_test(wide["new"], wide["old"]).p_value


def test_the_slope_is_that_of_least_squares_by_question(
    slope: ts.MaskingSlope, stand_in: pl.DataFrame
) -> None:
    x = np.array(list(LEVELS.values()))
    cells = stand_in.group_by("scenario", "condition").agg(pl.col("score").mean())
    wide = cells.pivot(on="condition", index="scenario", values="score").sort("scenario")
    slopes = np.array([np.polyfit(x, row, 1)[0] for row in wide.select(*LEVELS).to_numpy()])
    row = _row(slope.tidy(), estimand="slope", term="questions")
    assert row["estimate"] == pytest.approx(slopes.mean(), abs=EXACT)
    assert row["std_error"] == pytest.approx(slopes.std(ddof=1) / np.sqrt(len(slopes)), abs=EXACT)
    assert row["n_clusters"] == 150


def test_slopes_of_the_runs(slope: ts.MaskingSlope) -> None:
    row = _row(slope.tidy(), estimand="slope", term="runs")
    assert row["p_value"] == 2 / 32
    assert row["estimate"] == pytest.approx(
        _row(slope.tidy(), estimand="slope", term="questions")["estimate"]
    )
    sd = _row(slope.tidy(), estimand="run_sd")["estimate"]
    assert sd == pytest.approx(slope.slopes["slope"].to_numpy().std(ddof=1), abs=EXACT)


def test_what_is_right_when_all_is_masked_estimates_false_positives(
    slope: ts.MaskingSlope, stand_in: pl.DataFrame
) -> None:
    """A judge that takes 2 of 100 blind answers for right, and answers that are never right."""
    row = _row(slope.tidy(), estimand="false_positive_rate")
    rate = stand_in.filter(pl.col("condition") == "c5")["score"].to_numpy().mean()
    assert row["estimate"] == pytest.approx(rate, abs=EXACT)
    assert 0 < row["conf_low"] < rate < row["conf_high"]
    assert "judge's false positives" in str(slope.notes[-1])
    random = np.random.default_rng(2)
    rows = [(q, m, int(random.random() < (0.8 if m == 0 else 0.02))) for q in range(2_000) for m in (0, 100)]
    blind = ts.masking_slope(
        dict(zip(["question", "condition", "score"], zip(*rows, strict=True), strict=True))
    )
    row = _row(blind.tidy(), estimand="false_positive_rate")
    assert row["conf_low"] < 0.02 < row["conf_high"]


def test_chance_is_taken_off_where_options_are_given(stand_in: pl.DataFrame) -> None:
    found = ts.masking_slope(stand_in, levels=LEVELS, chance=0.25)
    plain = _row(found.tidy(), estimand="mean", condition="c5")
    row = _row(found.tidy(), estimand="above_chance")
    for name in ("estimate", "conf_low", "conf_high"):
        assert row[name] == pytest.approx(plain[name] - 0.25)
    assert "false_positive_rate" not in found.tidy()["estimand"].to_list()


def test_levels_are_read_from_their_names() -> None:
    rows = [(q, f"{m}%", int((q + m // 25) % 4 > m // 50)) for q in range(24) for m in (100, 0, 50)]
    table = dict(zip(["question", "condition", "score"], zip(*rows, strict=True), strict=True))
    assert list(ts.masking_slope(table).levels.items()) == [("0%", 0.0), ("50%", 50.0), ("100%", 100.0)]


def test_scaling_the_levels_scales_the_slope(slope: ts.MaskingSlope, stand_in: pl.DataFrame) -> None:
    share = ts.masking_slope(stand_in, levels={name: value / 100 for name, value in LEVELS.items()})
    old, new = (_row(fit.tidy(), estimand="slope", term="questions") for fit in (slope, share))
    assert new["estimate"] == pytest.approx(100 * old["estimate"])
    assert new["p_value"] == pytest.approx(old["p_value"])


def test_the_human_drop_is_not_what_the_figures_say() -> None:
    found = ts.check_drop(39.43, 17.79, 22.29)
    assert found.agrees is None
    assert found.absolute == pytest.approx(21.64, abs=EXACT)
    assert str(found.notes[0]) == (
        "The printed drop 22.29 is not 39.43 - 17.79 = 21.64, and rounding explains 0.015 at most."
    )
    assert _row(found.tidy(), estimand="printed_drop")["status"] == "warning"


@pytest.mark.parametrize(
    ("before", "after", "printed", "agrees"),
    [
        ("63.6", "57.2", "6.4", "absolute"),
        (63.6, 57.2, 6.5, "absolute"),  # 6.35 to 6.45 may lie behind both
        (63.6, 57.2, 6.6, None),
        (80, 60, 25, "relative"),
        (39.43, 17.79, 54.9, "relative"),
        (0, 0, 0, "absolute"),
        ("17.80", "17.8", 0.4, None),
    ],
)
def test_rounding_of_printed_figures(before: object, after: object, printed: object, agrees: object) -> None:
    assert ts.check_drop(before, after, printed).agrees == agrees


def test_results_convert(compared: ts.RerunComparison, slope: ts.MaskingSlope) -> None:
    for found in (compared, slope):
        assert found.tidy().schema == TIDY_SCHEMA
        assert found.glance().height == 1
        assert found.to_dict()["schema_version"] == 1
        assert len(found.to_pandas()) == found.tidy().height
        assert "note: " in repr(found)
    assert ts.check_drop(1, 2, 3).to_dict()["printed"] == 3.0


def test_row_order_changes_nothing(compared: ts.RerunComparison, stand_in: pl.DataFrame) -> None:
    shuffled = ts.compare_reruns(
        "c5", "c1", data=stand_in.sample(fraction=1, shuffle=True, seed=4), alternative="less"
    )
    assert shuffled.tidy().equals(compared.tidy())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ts.compare_reruns(MASKED),
            "give one of `b`, another condition, and `constant`, a number; not both",
        ),
        (
            lambda: ts.compare_reruns(MASKED, FULL, constant=0.2),
            "give one of `b`, another condition, and `constant`, a number; not both",
        ),
        (lambda: ts.compare_reruns(MASKED, constant=True), "`constant` must be a finite number; got True"),
        (
            lambda: ts.compare_reruns(MASKED, FULL[:3], paired=True),
            "`a` and `b` must pair: they have 5 and 3 runs",
        ),
        (
            lambda: ts.compare_reruns([0.1, None], FULL),
            "`a` is missing for 1 of 2 runs; leave such runs out",
        ),
        (
            lambda: ts.compare_reruns(MASKED, FULL, unit="item"),
            "`unit` must be one of 'run', 'form'; got 'item'",
        ),
        (
            lambda: ts.compare_reruns(MASKED, FULL, model="m"),
            "`model` goes with `data`; numbers are of one model",
        ),
        (
            lambda: ts.compare_reruns("a", "b", data={"scenario": ["s"], "score": [1]}),
            (
                "`data` must have one condition column here; its condition columns are none. Keep the rows "
                "of one level of the others, and name the one to compare with ts.ResponseTable(..., "
                "condition=)"
            ),
        ),
        (lambda: ts.check_drop("about 3", 1, 2), "`before` must be a number as printed; got 'about 3'"),
        (lambda: ts.check_drop(None, 1, 2), "`before` must be a number as printed; got None"),
        (lambda: ts.check_drop(float("inf"), 1, 2), "`before` must be finite; got inf"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str, refusal: Refusal) -> None:
    assert _said(refusal(call)) == message


def test_bad_tables(stand_in: pl.DataFrame, refusal: Refusal) -> None:
    def compare(**options: Any) -> Callable[[], object]:
        return lambda: ts.compare_reruns("c1", "c2", **({"data": stand_in} | options))

    two = pl.concat([stand_in, stand_in.with_columns(pl.lit("other").alias("model"))])
    assert _said(refusal(compare(data=two))).startswith(
        "`model` is needed: a run is of one model, and the table has"
    )
    assert ts.compare_reruns("c1", "c2", data=two, model="other").runs.height == 10
    assert _said(refusal(compare(data=stand_in.drop("repetition").unique(["scenario", "condition"])))) == (
        "the table has no repetition column, which tells the runs apart; name it with "
        "ts.ResponseTable(..., repetition=)"
    )
    assert _said(refusal(lambda: ts.compare_reruns("c1", "c9", data=stand_in))).startswith(
        "`b` is 'c9', which is no level of 'condition'; choose from "
    )
    assert _said(refusal(lambda: ts.compare_reruns("c1", "c1", data=stand_in))) == (
        "`a` and `b` are both 'c1'; name two levels"
    )
    assert _said(refusal(lambda: ts.masking_slope(stand_in))) == (
        "`levels` is needed: the level 'c1' is no number; map each level to how much is masked, such as "
        "levels={'c1': 100}"
    )
    assert _said(refusal(lambda: ts.masking_slope(stand_in, levels={"c1": 0, "c2": 0}))).startswith(
        "masking must differ between at least two levels, each with its own; got"
    )
    assert _said(refusal(lambda: ts.masking_slope(stand_in, levels=LEVELS, chance=1))) == (
        "`chance` must be a number from 0 to below 1; got 1"
    )
