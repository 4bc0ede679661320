"""Comparators: the same rows on both sides, published tables, hand-computed errors, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.results import TIDY_SCHEMA

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12  # sums of a few fractions
SCALE = ["A", "B", "C", "D"]
MATCHED = {"condition": "constrained", "variant": ["patient_minimal", "patient_realistic"]}


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


@pytest.fixture(scope="module")
def study1(shared: Shared) -> ts.ResponseTable:
    names = ("constrained", "natural")
    responses = pl.concat([_read(shared(f"replication/study1/{name}_responses.csv")) for name in names])
    return ts.ResponseTable(responses).with_judgments(shared("replication/study1/natural_judgments.csv"))


@pytest.fixture(scope="module")
def study2(shared: Shared) -> ts.ResponseTable:
    names = ("exact_structured", "natural_free_text")
    responses = pl.concat([_read(shared(f"replication/study2/{name}_responses.csv")) for name in names])
    judged = _read(shared("replication/study2/natural_free_text_judgments.csv"))
    return ts.ResponseTable(responses, levels=SCALE).with_judgments(judged)


@pytest.fixture(scope="module")
def sweep(shared: Shared) -> ts.ResponseTable:
    frame = _read(shared("replication/study1/factor_sweep_responses.csv"))
    return ts.ResponseTable(frame, levels=SCALE[::-1], condition=False)


def _plain(scores: dict[str, list[float]], condition: str) -> pl.DataFrame:
    rows = [(s, condition, r, float(x)) for s, values in scores.items() for r, x in enumerate(values)]
    return pl.DataFrame(rows, schema=["scenario", "condition", "repetition", "score"], orient="row")


def _table(x: dict[str, list[float]], y: dict[str, list[float]]) -> ts.ResponseTable:
    return ts.ResponseTable(pl.concat([_plain(x, "x"), _plain(y, "y")]))


X = {"a": [1, 1], "b": [1, 0], "c": [1, 1], "d": [0, 1], "e": [1, 1], "f": [1, 0]}
Y = {"a": [0, 1], "b": [0, 0], "c": [1, 1], "d": [0, 0], "e": [1, 0], "f": [0, 0]}


def test_four_reference_rows_against_64_variants_are_refused(
    sweep: ts.ResponseTable, refusal: Refusal
) -> None:
    said = refusal(lambda: ts.compare_rates(sweep, {"variant": "WW-AX"}, pl.lit(value=True)))
    assert said.startswith(
        "DesignError: `a` and `b` rest on different rows: 4 rows against 64, by scenario x model x variant x "
        "repetition. 60 keys of `b` are not in `a`, such as scenario='F13', model='claude-opus-4.6', "
        "variant='BM', repetition='1'; "
    )
    assert said.endswith("or say `unmatched=True`, and every line is labelled")
    others = pl.col("variant") != "WW-AX"
    said = refusal(lambda: ts.compare_rates(sweep, {"variant": "WW-AX"}, others))
    assert "4 rows against 60, by scenario x model x repetition. 4 keys stand more often in `b`" in said
    assert "(15 against 1 times)" in said


def test_unmatched_rates_are_labelled_on_every_line(sweep: ts.ResponseTable) -> None:
    found = ts.compare_rates(
        sweep,
        {"variant": "WW-AX"},
        pl.lit(value=True),
        unmatched=True,
        names=("reference", "variants"),
        n_resamples=99,
    )
    tidy = found.tidy()
    counts = (tidy["estimate"] * tidy["n_rows"]).head(2)
    assert counts.to_list() == pytest.approx([2, 48], abs=EXACT)  # 16 + 16 + 7 + 9 of 64
    assert tidy["estimate"][2] == pytest.approx(2 / 4 - 48 / 64, abs=EXACT)
    assert tidy["method"].str.starts_with("unmatched").all()
    assert tidy["reason"].str.starts_with("unmatched: 4 rows against 64").all()
    lines = repr(found).splitlines()
    assert all(line.strip().startswith("unmatched") for line in lines[2:5])
    assert any(note.code == "unmatched" for note in found.notes)
    assert (found.only_a.height, found.only_b.height) == (0, 60)


def test_study1_needs_the_variants_of_both_sides(study1: ts.ResponseTable, refusal: Refusal) -> None:
    said = refusal(lambda: ts.compare_rates(study1, {"condition": "natural"}, {"condition": "constrained"}))
    assert "850 rows against 1,275" in said
    assert "425 keys of `b` are not in `a`" in said
    assert "variant='original_structured'" in said
    found = ts.compare_rates(study1, {"condition": "natural"}, MATCHED, n_resamples=9999)
    assert found.matched
    rows = found.tidy().select("estimate", "n_rows").rows()
    assert rows[0] == (pytest.approx(595.5 / 850, abs=EXACT), 850)
    assert rows[1] == (pytest.approx(541 / 850, abs=EXACT), 850)
    assert rows[2][0] == pytest.approx(54.5 / 850, abs=EXACT)
    fit = ts.analyze(study1)
    assert fit.contrasts is not None
    golden = fit.contrasts.filter(pl.col("model").is_null()).row(0, named=True)
    row = found.tidy().row(2, named=True)
    for name in ("std_error", "conf_low", "conf_high", "p_value"):
        assert row[name] == pytest.approx(golden[name], rel=1e-9)


def test_study2_unscored_rows_make_two_row_sets(study2: ts.ResponseTable, refusal: Refusal) -> None:
    sides: tuple[Any, Any] = ({"condition": "natural_free_text"}, {"condition": "exact_structured"})
    said = refusal(lambda: ts.compare_rates(study2, *sides))
    assert "702 rows against 672" in said
    assert "46 keys of `a` are not in `b`" in said
    assert "16 keys of `b` are not in `a`" in said
    found = ts.compare_rates(study2, *sides, unmatched=True, n_resamples=99)
    assert found.only_a.height + found.only_b.height == 62
    both = 702 - found.only_a.height
    assert both == 672 - found.only_b.height == 656


def test_models_on_the_same_rows_are_matched(study2: ts.ResponseTable) -> None:
    rows = {"condition": "natural_free_text", "repetition": "1"}
    a, b = ({**rows, "model": model} for model in ("gemini-3-flash", "gpt-5.4-xhigh"))
    found = ts.compare_rates(study2, a, b, kind="under", unmatched=True, n_resamples=99)
    assert "model" not in found.on
    assert found.tidy()["estimand"].unique().to_list() == ["under_rate"]
    assert found.names == (
        "natural_free_text, 1, gemini-3-flash",
        "natural_free_text, 1, gpt-5.4-xhigh",
    )


def test_a_matched_difference_by_hand() -> None:
    found = ts.compare_rates(_table(X, Y), {"condition": "x"}, {"condition": "y"}, n_resamples=99)
    d = np.array([np.mean(X[s]) - np.mean(Y[s]) for s in X])
    row = found.tidy().row(2, named=True)
    assert row["contrast"] == "x - y"
    assert row["estimate"] == pytest.approx(d.mean(), abs=EXACT)
    assert row["std_error"] == pytest.approx(d.std(ddof=1) / 6**0.5, abs=EXACT)
    assert row["verdict"] == "better"
    assert "permutation" in row["method"]


def test_an_unmatched_difference_by_hand() -> None:
    """Scenario f has one answer on side y: the jackknife over clusters of the difference of two ratios."""
    y = Y | {"f": [0]}
    sides: tuple[Any, Any] = ({"condition": "x"}, {"condition": "y"})
    found = ts.compare_rates(_table(X, y), *sides, unmatched=True, n_resamples=99)

    def difference(scenarios: list[str]) -> float:
        rates = [np.concatenate([side[s] for s in scenarios]).mean() for side in (X, y)]
        return float(rates[0] - rates[1])

    without = np.array([difference([s for s in X if s != left]) for left in X])
    error = (5 / 6 * ((without - without.mean()) ** 2).sum()) ** 0.5
    row = found.tidy().row(2, named=True)
    assert row["estimate"] == pytest.approx(difference(list(X)), abs=EXACT)
    assert row["std_error"] == pytest.approx(error, abs=EXACT)
    assert row["df"] == 5
    assert row["method"] == "unmatched; cluster jackknife t; t test"
    assert row["verdict"] is None


@pytest.mark.parametrize("n_few", [1, 2, 4])
def test_under_five_clusters_on_a_side_decide_nothing(n_few: int) -> None:
    names = [f"s{place:02}" for place in range(40)]
    frame = pl.DataFrame({"scenario": names, "score": [1] * n_few + [0, 1, 0] * 12 + [0] * (4 - n_few)})
    few = pl.col("scenario").is_in(names[:n_few])
    for sides in ((few, ~few), (~few, few)):
        found = ts.compare_rates(frame, *sides, names=("one", "two"), unmatched=True, n_resamples=99)
        row = found.tidy().row(2, named=True)
        assert [row[name] for name in ("conf_low", "p_value", "statistic", "verdict")] == [None] * 4
        assert row["status"] == "few_clusters"
        assert f"{n_few} cluster" in row["reason"]


def test_an_unmatched_side_of_ones_has_a_floor_and_welchs_df() -> None:
    names = [f"s{place:02}" for place in range(26)]
    frame = pl.DataFrame({"scenario": names, "score": [1] * 6 + [0, 1] * 10})
    six = pl.col("scenario").is_in(names[:6])
    row = ts.compare_rates(frame, six, ~six, unmatched=True, n_resamples=99).tidy().row(2, named=True)
    own = (np.var([1] * 7 + [0], ddof=1) / 8, np.var([0, 1] * 10, ddof=1) / 20)
    df = sum(own) ** 2 / (own[0] ** 2 / 5 + own[1] ** 2 / 19)
    assert row["df"] == pytest.approx(df, abs=EXACT)
    assert row["estimate"] == 0.5
    assert row["conf_high"] <= 1.0
    assert row["conf_low"] < 0.25
    assert "one all-right and one all-wrong cluster added" in row["reason"]


def test_swapping_sides_flips_the_difference() -> None:
    table = _table(X, Y | {"f": [0]})
    for unmatched, rows in ((False, pl.col("scenario") != "f"), (True, pl.lit(value=True))):
        x, y = ((pl.col("condition") == side) & rows for side in "xy")
        one, two = (
            ts.compare_rates(table, *sides, unmatched=unmatched, n_resamples=99).tidy()
            for sides in ((x, y), (y, x))
        )
        assert one["estimate"][2] == -two["estimate"][2]
        assert one["conf_low"][2] == pytest.approx(-two["conf_high"][2], abs=EXACT)
        assert one["p_value"][2] == pytest.approx(two["p_value"][2], abs=EXACT)


def test_unequal_repetitions_are_other_rows(refusal: Refusal) -> None:
    table = _table(X, {s: values[:1] for s, values in Y.items()})
    sides: tuple[Any, Any] = ({"condition": "x"}, {"condition": "y"})
    assert "6 keys of `a` are not in `b`" in refusal(lambda: ts.compare_rates(table, *sides))
    said = refusal(lambda: ts.compare_rates(table, *sides, on=["scenario"]))
    assert "12 rows against 6, by scenario. 6 keys stand more often in `a` than in `b`" in said


def test_other_scenarios_are_never_the_same_rows(refusal: Refusal) -> None:
    table = _table(X, Y)
    a, b = ({"condition": "x", "scenario": list(names)} for names in ("abc", "def"))
    assert "3 keys of `a` are not in `b`" in refusal(lambda: ts.compare_rates(table, a, b, on=["scenario"]))
    assert "6 keys of `a` are not in `b`" in refusal(lambda: ts.compare_rates(table, a, b))
    said = refusal(lambda: ts.compare_rates(table, a, b, on=["repetition"]))
    assert said == (
        "ArgumentError: `on` must hold the scenario: rates on other scenarios are unmatched; got "
        "['repetition']"
    )


def test_sides_that_differ_in_two_ways_are_noted() -> None:
    frame = pl.concat([_plain(X, "x"), _plain(Y, "y")])
    frame = frame.with_columns((pl.lit("m") + pl.col("condition")).alias("model"))
    found = ts.compare_rates(ts.ResponseTable(frame), {"condition": "x"}, {"condition": "y"}, n_resamples=99)
    assert [note.message for note in found.notes if note.code == "confounded"] == [
        "The sides differ in model and condition: the difference is that of all of these."
    ]


def test_judges_are_averaged_or_counted() -> None:
    """Judge q sees one answer of side x only: with labels as rows the sides differ."""
    frame = pl.concat([_plain(X, "x"), _plain(Y, "y")]).with_columns(pl.lit("p").alias("judge"))
    extra = frame.head(1).with_columns(pl.lit("q").alias("judge"), pl.lit(0.0).alias("score"))
    table = ts.ResponseTable(pl.concat([frame, extra]))
    sides: tuple[Any, Any] = ({"condition": "x"}, {"condition": "y"})
    found = ts.compare_rates(table, *sides, n_resamples=99)
    assert found.matched
    assert found.tidy()["estimate"][0] == pytest.approx(8.5 / 12, abs=EXACT)
    labels = ts.compare_rates(table, *sides, pool="labels", unmatched=True, n_resamples=99)
    assert labels.tidy().select("estimate", "n_rows").row(0) == (pytest.approx(9 / 13, abs=EXACT), 13)


def test_rows_of_several_conditions_are_kept_apart() -> None:
    """Side a holds two conditions of the same key: neither is taken for a second judge of the other."""
    frame = pl.concat([_plain(X, "x"), _plain(Y, "y"), _plain(X, "z"), _plain(X, "w")])
    table = ts.ResponseTable(frame)
    a, b = {"condition": ["x", "y"]}, {"condition": ["z", "w"]}
    found = ts.compare_rates(table, a, b, n_resamples=99)
    assert found.tidy().select("condition", "n_rows").rows()[:2] == [("a", 24), ("b", 24)]
    assert found.tidy()["estimate"].to_list()[:2] == pytest.approx([13 / 24, 18 / 24], abs=EXACT)


def test_two_cluster_columns_have_a_paired_error_alone() -> None:
    frame = pl.concat(
        [
            _plain(scores, condition).with_columns(pl.lit(model).alias("model"))
            for model in [f"m{k}" for k in range(6)]
            for scores, condition in ((X, "x"), (Y, "y"))
        ]
    )
    table = ts.ResponseTable(frame, cluster=("scenario", "model"))
    sides: tuple[Any, Any] = ({"condition": "x"}, {"condition": "y"})
    assert ts.compare_rates(table, *sides, n_resamples=99).tidy()["conf_low"][2] is not None
    few = {"condition": "y", "repetition": 0}
    row = ts.compare_rates(table, sides[0], few, unmatched=True, n_resamples=99).tidy().row(2, named=True)
    assert (row["conf_low"], row["status"]) == (None, "undefined")


def test_the_result_is_a_tidy_frame_and_plain_values() -> None:
    found = ts.compare_rates(_table(X, Y), {"condition": "x"}, {"condition": "y"}, n_resamples=99)
    assert found.tidy().schema == TIDY_SCHEMA
    assert found.glance().select("matched", "n_a", "n_b").row(0) == (True, 12, 12)
    assert json.loads(json.dumps(found.to_dict()))["on"] == ["scenario", "repetition"]
    narrow = found.with_level(0.5).tidy()
    assert (narrow["conf_low"] > found.tidy()["conf_low"]).all()
    assert repr(found).startswith("Two rates on the same rows; 0.95 intervals")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kind": "net"},
            "ArgumentError: `kind` must be one of 'under', 'over', 'wrong', 'correct'; got 'net'",
        ),
        ({"unmatched": 1}, "ArgumentTypeError: `unmatched` must be True or False; got 1"),
        (
            {"names": "ab"},
            "ArgumentTypeError: `names` must be two names, such as ('new', 'old'); got 'ab'",
        ),
        (
            {"names": ("p", "p")},
            "ArgumentError: `names` must be two different names; got ['p', 'p']",
        ),
        (
            {"on": "scenario"},
            (
                "ArgumentTypeError: `on` must be a list of columns, such as ['scenario', 'model']; got "
                "'scenario'"
            ),
        ),
        (
            {"on": ["scenario", "score"]},
            (
                "ArgumentError: `on` names ['score']; choose from the columns of the key, ['scenario', "
                "'condition', 'repetition']"
            ),
        ),
    ],
)
def test_bad_arguments_are_refused(refusal: Refusal, arguments: dict[str, Any], message: str) -> None:
    sides: tuple[Any, Any] = ({"condition": "x"}, {"condition": "y"})
    assert refusal(lambda: ts.compare_rates(_table(X, Y), *sides, **arguments)) == message


def test_a_side_without_scores_is_refused(refusal: Refusal) -> None:
    frame = pl.concat([_plain(X, "x"), _plain(Y, "y").with_columns(pl.lit(None, pl.Float64).alias("score"))])
    said = refusal(lambda: ts.compare_rates(ts.ResponseTable(frame), {"condition": "x"}, {"condition": "y"}))
    assert said == "DesignError: `b` has no row that counts: none of its rows has what 'correct' needs"
