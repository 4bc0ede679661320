"""The frame `agreement` of `analyze`: judges, and labels across conditions, recomputed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts

EXACT = 1e-12  # the same numbers by another route
END = 0.01  # the ends that the issue names are rounded, and drawn

LABELS = ("A", "B", "C", "D")


@pytest.fixture(scope="module")
def demo() -> ts.Analysis:
    return ts.analyze(ts.demo_table(), n_resamples=999)


def chosen(fit: ts.Analysis, estimand: str, **where: Any) -> dict[str, Any]:
    assert fit.agreement is not None
    rows = fit.agreement.filter(pl.col("estimand") == estimand)
    for column in ("term", "contrast", "condition", "model", "judge"):
        if column in where or column in ("condition", "model", "judge"):
            rows = rows.filter(pl.col(column).eq_missing(where.get(column)))
    (row,) = rows.to_dicts()
    return row


def test_study1_judges(shared: Callable[[str], Path]) -> None:
    responses = pl.concat(
        [
            pl.read_csv(shared(f"replication/study1/{name}_responses.csv"), infer_schema=False)
            for name in ("constrained", "natural")
        ]
    )
    table = ts.ResponseTable(responses).with_judgments(shared("replication/study1/natural_judgments.csv"))
    fit = ts.analyze(table)
    kappa = chosen(fit, "kappa", term="judges")
    assert kappa["estimate"] == pytest.approx(0.9208525166830479, rel=EXACT)
    assert (kappa["conf_low"], kappa["conf_high"]) == pytest.approx((0.850, 0.966), abs=END)
    assert (kappa["n_rows"], kappa["n_clusters"]) == (850, 17)
    share = chosen(fit, "percent_agreement", term="judges")
    assert share["estimate"] == pytest.approx(0.9470588235294117, rel=EXACT)
    disagreement = chosen(fit, "disagreement", term="judges")
    assert disagreement["estimate"] == pytest.approx(45 / 850, rel=EXACT)
    assert disagreement["conf_low"] == pytest.approx(1 - share["conf_high"])


def test_study2_judges(shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("replication/study2/expected.json").read_text())["published"]
    found = next(entry["recomputed"] for entry in golden if entry["id"] == "s2_judge_disagreement")
    names = ("natural_free_text", "source_stripped")
    responses, judgments = (
        pl.concat(
            [
                pl.read_csv(shared(f"replication/study2/{name}_{what}.csv"), infer_schema=False)
                for name in names
            ]
        )
        for what in ("responses", "judgments")
    )
    table = ts.ResponseTable(responses, levels=LABELS).with_judgments(judgments)
    fit = ts.analyze(table, n_resamples=999)
    for condition, values in (("natural_free_text", found), ("source_stripped", found["source_stripped"])):
        kappa = chosen(fit, "kappa", term="judges", condition=condition)
        assert kappa["estimate"] == pytest.approx(values["kappa"], rel=EXACT)
        rate = chosen(fit, "disagreement", term="judges", condition=condition)
        assert rate["estimate"] * rate["n_rows"] == pytest.approx(values["disagree"])


@pytest.mark.parametrize(
    "judge_and_model", [("judge_1", None), ("judge_2", "model_d")], ids=["pooled", "one model"]
)
def test_labels_across_conditions(demo: ts.Analysis, judge_and_model: tuple[str, str | None]) -> None:
    judge, model = judge_and_model
    frame = ts.demo_table().with_judge(judge).frame
    if model is not None:
        frame = frame.filter(pl.col("model") == model)
    key = ["scenario", "model", "variant", "repetition"]
    wide = frame.pivot("condition", index=key, values="response").drop_nulls(["letter", "free_text"])
    where = {"term": "conditions", "judge": judge, "model": model}
    levels = ts.demo_table().levels
    golden = ts.cohen_kappa(wide["free_text"], wide["letter"], categories=levels)
    weighted = ts.cohen_kappa(wide["free_text"], wide["letter"], categories=levels, weights="quadratic")
    ratings = wide.select("free_text", "letter")
    alpha = ts.krippendorff_alpha(ratings, metric="ordinal", categories=levels)
    assert chosen(demo, "kappa", **where)["estimate"] == pytest.approx(golden.estimate, rel=EXACT)
    assert chosen(demo, "weighted_kappa", **where)["estimate"] == pytest.approx(weighted.estimate, rel=EXACT)
    assert chosen(demo, "alpha_ordinal", **where)["estimate"] == pytest.approx(alpha.estimate, rel=1e-9)
    assert chosen(demo, "kappa", **where)["n_rows"] == wide.height


def test_intervals_are_those_of_the_function(demo: ts.Analysis) -> None:
    """One joint set of draws gives what a call for one coefficient gives."""
    table = ts.demo_table()
    alone = ts.cohen_kappa("judge_1", "judge_2", data=table, missing="omit", n_resamples=999)
    row = chosen(demo, "kappa", term="judges")
    assert row["estimate"] == pytest.approx(alone.estimate, rel=EXACT)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((alone.conf_low, alone.conf_high), rel=1e-9)
    assert row["n_clusters"] == alone.details["n_clusters"]


def test_another_level_reads_the_same_draws(demo: ts.Analysis) -> None:
    wide, narrow = chosen(demo, "kappa", term="judges"), chosen(demo.with_level(0.5), "kappa", term="judges")
    assert (
        wide["conf_low"] < narrow["conf_low"] < narrow["estimate"] < narrow["conf_high"] < wide["conf_high"]
    )


def made(labels_1: list[str], labels_2: list[str], **options: Any) -> ts.Analysis:
    """Two judges on one response of each scenario."""
    n = len(labels_1)
    frame = {
        "scenario": [f"s{place:02}" for place in range(n)] * 2,
        "judge": ["x"] * n + ["y"] * n,
        "label": labels_1 + labels_2,
        "gold": ["A"] * (2 * n),
    }
    return ts.analyze(ts.ResponseTable(frame, **options), n_resamples=199)


def test_one_category_is_undefined_with_agreement_beside_it() -> None:
    fit = made(["A"] * 12, ["A"] * 12, levels=LABELS)
    for estimand in ("kappa", "weighted_kappa", "alpha_ordinal"):
        row = chosen(fit, estimand)
        assert row["estimate"] is None
        assert row["status"] == "undefined"
        assert "one category" in row["reason"]
    share = chosen(fit, "percent_agreement")
    assert share["estimate"] == 1
    assert 0.7 < share["conf_low"] < 1  # Wilson's, as nothing varies
    assert share["conf_high"] == 1


def test_clusters_without_a_label_change_nothing() -> None:
    labels = ["A", "B", "C", "A", "B", "B"] * 2
    other = ["A", "B", "B", "A", "B", "C"] * 2
    whole = made(labels, other)
    for blank in ("a00", "z99"):  # before all others, and after
        scenario = [f"s{place:02}" for place in range(12)]
        frame = {
            "scenario": [*scenario, blank] * 2,
            "judge": ["x"] * 13 + ["y"] * 13,
            "label": [*labels, None, *other, None],
            "gold": ["A"] * 26,
        }
        fit = ts.analyze(ts.ResponseTable(frame), n_resamples=199)
        for name in ("estimate", "conf_low", "conf_high", "n_clusters"):
            assert chosen(fit, "kappa")[name] == chosen(whole, "kappa")[name]


def test_labels_without_an_order_have_no_weighted_kappa() -> None:
    fit = made(["A", "B", "C"] * 5, ["A", "C", "C"] * 5)
    assert fit.agreement is not None
    assert set(fit.agreement["estimand"]) == {"percent_agreement", "disagreement", "kappa", "alpha_nominal"}


def test_few_clusters_are_withheld() -> None:
    fit = made(["A", "B", "A", "B"], ["A", "B", "B", "B"])
    row = chosen(fit, "kappa")
    assert row["estimate"] is not None
    assert row["conf_low"] is None
    assert row["status"] == "few_clusters"


def test_scores_stand_in_for_labels() -> None:
    rng = np.random.default_rng(7)
    first = rng.integers(0, 2, 20)
    second = np.where(rng.random(20) < 0.8, first, 1 - first)
    frame = {
        "scenario": [f"s{place:02}" for place in range(20)] * 2,
        "judge": ["x"] * 20 + ["y"] * 20,
        "score": [*first.tolist(), *second.tolist()],
    }
    fit = ts.analyze(frame, n_resamples=99)
    golden = ts.cohen_kappa(first, second)
    assert chosen(fit, "kappa", term="judges")["estimate"] == pytest.approx(golden.estimate, rel=EXACT)


def two_judges(first: list[float], second: list[float]) -> ts.Analysis:
    n = len(first)
    frame = {
        "scenario": [f"s{place:02}" for place in range(n)] * 2,
        "judge": ["x"] * n + ["y"] * n,
        "score": [*first, *second],
    }
    return ts.analyze(frame, n_resamples=99)


def test_graded_scores_are_an_ordered_scale() -> None:
    first = [1, 2, 3, 4, 5, 3, 2, 1, 5, 4, 3, 2]
    second = [1, 2, 3, 5, 5, 3, 1, 1, 4, 4, 3, 3]
    fit = two_judges(list(map(float, first)), list(map(float, second)))
    golden = ts.cohen_kappa(first, second, weights="quadratic")
    assert chosen(fit, "weighted_kappa")["estimate"] == pytest.approx(golden.estimate, rel=EXACT)
    ordinal = ts.krippendorff_alpha(np.column_stack([first, second]), metric="ordinal")
    assert chosen(fit, "alpha_ordinal")["estimate"] == pytest.approx(ordinal.estimate, rel=1e-9)


def test_judges_who_all_say_the_same() -> None:
    fit = two_judges([1.0] * 12, [1.0] * 12)
    assert chosen(fit, "percent_agreement")["estimate"] == 1
    assert chosen(fit, "kappa")["status"] == "undefined"


def test_scores_of_many_values_are_no_categories() -> None:
    rng = np.random.default_rng(3)
    fit = two_judges(rng.random(30).tolist(), rng.random(30).tolist())
    assert fit.agreement is None
    note = next(note for note in fit.notes if note.code == "no_agreement")
    assert "60 different scores" in note.message
    assert "ts.icc" in note.message


def test_labels_that_no_judge_gave_are_compared_once() -> None:
    scenario = [f"s{s:02}" for s in range(12)]
    letters = pl.DataFrame(
        {
            "scenario": scenario * 2,
            "condition": ["one"] * 12 + ["two"] * 12,
            "response": ["A", "B"] * 12,
            "gold": ["A"] * 24,
        }
    )
    free = pl.DataFrame({"scenario": scenario, "condition": "free", "response": None, "gold": "A"})
    judged = pl.DataFrame(
        {
            "scenario": scenario * 2,
            "condition": "free",
            "judge": ["x"] * 12 + ["y"] * 12,
            "label": ["A", "B"] * 12,
        }
    )
    table = ts.ResponseTable(pl.concat([letters, free], how="vertical_relaxed")).with_judgments(judged)
    fit = ts.analyze(table, n_resamples=99)
    assert fit.agreement is not None
    kappa = fit.agreement.filter((pl.col("estimand") == "kappa") & (pl.col("term") == "conditions"))
    assert kappa.filter(pl.col("contrast") == "one, two")["judge"].to_list() == [None]
    assert kappa.filter(pl.col("contrast") == "free, one")["judge"].to_list() == ["x", "y"]
    assert fit.tests is not None
    unjudged = fit.tests.filter((pl.col("contrast") == "two - one") | (pl.col("contrast") == "one - two"))
    assert unjudged["judge"].null_count() == unjudged.height
    assert not unjudged["method"].str.contains("judges agree").any()


def test_one_judge_and_one_condition_have_nothing_to_compare() -> None:
    fit = ts.analyze({"scenario": ["a", "b", "c", "d", "e", "f"], "score": [1, 0, 1, 1, 0, 1]})
    assert fit.agreement is None
    note = next(note for note in fit.notes if note.code == "no_agreement")
    assert "no labels, and not two judges" in note.message


def test_the_summary_shows_agreement(demo: ts.Analysis) -> None:
    text = repr(demo)
    assert "Agreement, 95 % intervals" in text
    assert "judge_1," in text


def test_labels_of_no_named_judge_stay_apart_from_those_of_a_judge() -> None:
    """A key with a label of a judge and one of nobody has two labels; conditions compare the judge's."""
    rows = [
        {
            "scenario": f"s{k}",
            "condition": level,
            "judge": judge,
            "response": "AB"[(k + shift) % 2],
            "gold": "A",
        }
        for k in range(8)
        for level, judge, shift in (("x", "j", 0), ("x", None, 1), ("y", "j", 0))
    ]
    fit = ts.analyze(pl.DataFrame(rows), n_resamples=49)
    found = chosen(fit, "percent_agreement", term="conditions", judge="j")
    assert (found["contrast"], found["estimate"], found["n_rows"]) == ("x, y", 1.0, 8)
