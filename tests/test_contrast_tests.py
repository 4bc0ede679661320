"""The tests of pairs in `analyze`: by judge, by model and pooled, recomputed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts

EXACT = 1e-12  # the same numbers by another route
JUDGES = ("gpt-5.4-xhigh", "claude-opus-4.6")


@pytest.fixture(scope="module")
def demo() -> ts.Analysis:
    return ts.analyze(ts.demo_table(), margin=0.1, n_resamples=999)


@pytest.fixture(scope="module")
def study2(shared: Callable[[str], Path]) -> ts.ResponseTable:
    folder = shared("replication/study2/expected.json").parent

    def read(name: str, condition: str) -> pl.DataFrame:
        frame = pl.read_csv(folder / name, infer_schema_length=None)
        return frame.with_columns(pl.lit(condition).alias("condition"))

    responses = pl.concat(
        [
            read("exact_structured_responses.csv", "exact"),
            read("natural_free_text_responses.csv", "natural"),
            read("natural_forced_letter_responses.csv", "forced"),
        ],
        how="diagonal_relaxed",
    ).drop("format")
    judgments = read("natural_free_text_judgments.csv", "natural").drop("format")
    table = ts.ResponseTable(
        responses, levels=["A", "B", "C", "D"], status="error", stratum=False, cluster=False
    )
    return table.with_judgments(judgments, response="label", status="error")


def kind(fit: ts.Analysis, name: str, **where: Any) -> pl.DataFrame:
    """Rows of one kind of test, of what `where` says."""
    assert fit.tests is not None
    rows = fit.tests.filter(pl.col("method").str.starts_with(name))
    for column, value in where.items():
        rows = rows.filter(pl.col(column).eq_missing(value))
    return rows


def quantity(fit: ts.Analysis, name: str, contrast: str, judge: str | None) -> float:
    assert fit.details is not None
    same = pl.col("judge").eq_missing(judge) & pl.col("model").is_null() & (pl.col("contrast") == contrast)
    found = fit.details.filter((pl.col("quantity") == name) & same)
    return float(found["value"].item())


def expected_of(shared: Callable[[str], Path], name: str) -> dict[str, Any]:
    entries = json.loads(shared("replication/study2/expected.json").read_text())["published"]
    found: dict[str, Any] = next(entry["recomputed"] for entry in entries if entry["id"] == name)
    return found


def test_study2_mcnemar_by_judge(study2: ts.ResponseTable, shared: Callable[[str], Path]) -> None:
    fit = ts.analyze(study2, reference="exact", n_resamples=999)
    golden = expected_of(shared, "s2_natural_exact_mcnemar")
    for judge, key in zip(JUDGES, ("mcnemar_gpt", "mcnemar_opus"), strict=True):
        counts = golden[key]
        b = quantity(fit, "discordant_level_only", "natural - exact", judge)
        c = quantity(fit, "discordant_reference_only", "natural - exact", judge)
        assert (b, c) == (counts["first_only"], counts["second_only"])
        (row,) = kind(fit, "McNemar mid-p", judge=judge, model=None, contrast="natural - exact").to_dicts()
        assert row["p_value"] == pytest.approx(ts.mcnemar(int(b), int(c)).p_value, rel=EXACT)
        exact = ts.mcnemar(int(b), int(c), method="exact")
        assert exact.p_value == pytest.approx(counts["p"], rel=1e-9)
        assert f"{b:.0f} against {c:.0f}" in row["method"]


def test_study2_signed_rank_of_cells(study2: ts.ResponseTable, shared: Callable[[str], Path]) -> None:
    golden = expected_of(shared, "s2_natural_exact_wilcoxon")
    fit = ts.analyze(study2, reference="exact", n_resamples=999)
    rows = kind(
        fit, "Wilcoxon signed-rank of independent", judge=None, model=None, contrast="natural - exact"
    )
    (row,) = rows.to_dicts()
    assert row["n_rows"] == golden["n_cells"]
    by_judge = study2.frame.group_by("scenario", "model", "condition", "repetition").agg(
        pl.col("score").mean()
    )
    cells = by_judge.group_by("scenario", "model", "condition").agg(pl.col("score").mean())
    wide = cells.pivot("condition", index=["scenario", "model"], values="score")
    d = wide.select(pl.col("natural") - pl.col("exact")).drop_nulls().to_series().to_numpy()
    pratt = stats.wilcoxon(d.round(9), zero_method="pratt", method="approx")
    assert quantity(fit, "signed_rank_n_zero", "natural - exact", None) == (np.abs(d) < 1e-9).sum()
    assert row["estimate"] == pytest.approx(d.mean(), rel=1e-9)
    assert ts.wilcoxon_signed_rank(d, method="normal").p_value == pytest.approx(pratt.pvalue, rel=1e-9)
    assert row["p_value"] == ts.wilcoxon_signed_rank(d).p_value  # exact


def test_pairs_are_matched_rows(demo: ts.Analysis) -> None:
    """Discordant pairs of one judge and one model, counted in polars."""
    frame = ts.demo_table().with_judge("judge_1").frame.filter(pl.col("model") == "model_b")
    key = ["scenario", "variant", "repetition"]
    wide = frame.pivot("condition", index=key, values="score").drop_nulls()
    b = wide.filter((pl.col("letter") == 1) & (pl.col("free_text") == 0)).height
    c = wide.filter((pl.col("letter") == 0) & (pl.col("free_text") == 1)).height
    (row,) = kind(demo, "McNemar mid-p", judge="judge_1", model="model_b").to_dicts()
    assert f"{b} against {c}" in row["method"]
    assert row["n_rows"] == wide.height
    assert row["estimate"] == pytest.approx((b - c) / wide.height, rel=EXACT)
    tango = ts.paired_difference_ci(b, c, n=wide.height)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((tango.conf_low, tango.conf_high), rel=EXACT)


def test_the_mean_of_judges_counts_where_they_agree(demo: ts.Analysis) -> None:
    agreed = ts.demo_table().with_unanimous_judges()
    pairs = ts.mcnemar("letter", "free_text", data=agreed)
    (row,) = kind(demo, "McNemar mid-p", judge=None, model=None).to_dicts()
    assert "judges agree" in row["method"]
    assert row["p_value"] == pytest.approx(pairs.p_value, rel=EXACT)
    assert row["n_rows"] == pairs.n
    clustered = ts.mcnemar("letter", "free_text", data=agreed, method="obuchowski")
    (row,) = kind(demo, "McNemar by cluster", judge=None, model=None).to_dicts()
    assert row["p_value"] == pytest.approx(clustered.p_value, rel=EXACT)
    assert row["n_clusters"] == 17


def test_signed_ranks_of_cells(demo: ts.Analysis) -> None:
    table = ts.demo_table()
    found = ts.wilcoxon_signed_rank("letter", "free_text", data=table)
    (row,) = kind(demo, "Wilcoxon signed-rank of independent", judge=None, model=None).to_dicts()
    assert row["p_value"] == pytest.approx(found.p_value, rel=EXACT)
    assert row["statistic"] == found.statistic
    flips = ts.wilcoxon_signed_rank("letter", "free_text", data=table, method="cluster-sign-flip")
    (row,) = kind(demo, "Wilcoxon signed-rank of cells by", judge=None, model=None).to_dicts()
    assert row["p_value"] == pytest.approx(flips.p_value, rel=EXACT)


@pytest.mark.parametrize("judge", [None, "judge_1"])
def test_equivalence_by_cluster_is_tost(demo: ts.Analysis, judge: str | None) -> None:
    table = ts.demo_table() if judge is None else ts.demo_table().with_judge(judge)
    for model in (None, "model_c"):
        found = ts.tost(table, margin=0.1, model=model)
        rows = kind(demo, "equivalence within 0.1 by cluster", judge=judge, model=model)
        (row,) = rows.to_dicts()
        assert row["p_value"] == pytest.approx(found.p_value, rel=EXACT)
        assert (row["conf_low"], row["conf_high"]) == pytest.approx((found.conf_low, found.conf_high))
        assert row["conf_level"] == pytest.approx(0.9)


def test_equivalence_is_read_at_the_level(demo: ts.Analysis) -> None:
    (row,) = kind(
        demo.with_level(0.8), "equivalence within 0.1 by cluster", judge=None, model=None
    ).to_dicts()
    assert row["conf_level"] == pytest.approx(0.6)
    (same,) = kind(demo, "equivalence within 0.1 by cluster", judge=None, model=None).to_dicts()
    assert row["p_value"] == same["p_value"]


def test_both_p_values_are_in_the_details(demo: ts.Analysis) -> None:
    found = ts.tost(ts.demo_table(), margin=0.1).details
    for side in ("lower", "upper"):
        value = quantity(demo, f"equivalence_p_{side}", "letter - free_text", None)
        assert value == pytest.approx(found[f"p_{side}"], rel=EXACT)


def test_equivalence_without_variation_is_undefined_with_a_reason() -> None:
    scenario = [f"s{s:02}" for s in range(20)] * 2
    frame = {"scenario": scenario, "condition": ["a"] * 20 + ["b"] * 20, "score": [1, 0] * 20}
    fit = ts.analyze(frame, margin=0.1, n_resamples=99)
    (row,) = kind(fit, "equivalence within 0.1 by cluster").to_dicts()
    assert (row["p_value"], row["conf_low"], row["status"]) == (None, None, "undefined")
    assert "all clusters agree" in row["reason"]
    (tango,) = kind(fit, "equivalence within 0.1 by Tango").to_dicts()
    assert 0 < tango["p_value"] < 1


def test_without_a_margin_there_is_no_equivalence() -> None:
    fit = ts.analyze(ts.demo_table(), n_resamples=99)
    assert kind(fit, "equivalence").is_empty()


def test_p_values_are_adjusted_within_their_family(demo: ts.Analysis) -> None:
    """Holm by scipy's own route: the kinds, the judges, and pooled and single models apart."""
    assert demo.tests is not None
    groups = demo.tests.with_columns(
        pl.col("method").str.split(",").list.first().alias("kind"), pl.col("model").is_null().alias("pooled")
    )
    for _, family in groups.group_by("kind", "judge", "pooled"):
        p = family["p_value"].to_numpy()
        order = np.argsort(p)
        stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        assert np.allclose(family["p_adjusted"].to_numpy()[order], np.minimum(stepped, 1), rtol=EXACT)
    assert demo.contrasts is not None
    single = demo.contrasts.filter(pl.col("model").is_not_null())
    smallest = single["p_value"].min()
    assert single["p_adjusted"].min() == pytest.approx(5 * float(smallest))  # type: ignore[arg-type]
    assert any(note.code == "families" for note in demo.notes)


def test_means_that_are_not_binary_have_no_mcnemar() -> None:
    rng = np.random.default_rng(5)
    scenario = np.repeat([f"s{s:02}" for s in range(12)], 2)
    frame = pl.DataFrame(
        {"scenario": scenario, "condition": ["a", "b"] * 12, "score": rng.normal(size=24).round(3)}
    )
    fit = ts.analyze(frame, n_resamples=99)
    assert kind(fit, "McNemar").is_empty()
    (row,) = kind(fit, "Wilcoxon signed-rank").to_dicts()
    wide = frame.pivot("condition", index="scenario", values="score")
    golden = stats.wilcoxon(wide["b"], wide["a"], method="exact")
    assert row["p_value"] == pytest.approx(golden.pvalue, rel=1e-9)


def test_a_judge_without_scores_is_noted() -> None:
    frame = ts.demo_table().frame.select(
        "scenario", "model", "condition", "variant", "repetition", "judge", "score"
    )
    lone = frame.with_columns(
        pl.when((pl.col("judge") == "judge_2") & (pl.col("scenario") != frame["scenario"][0]))
        .then(pl.lit("judge_3"))
        .otherwise("judge")
        .alias("judge")
    )
    only = lone.filter((pl.col("judge") == "judge_2") | pl.col("judge").is_null())
    silent = pl.concat([lone, only.filter(pl.col("judge") == "judge_2").with_columns(judge=pl.lit("mute"))])
    silent = silent.with_columns(
        pl.when(pl.col("judge") == "mute").then(None).otherwise("score").alias("score")
    )
    fit = ts.analyze(silent, n_resamples=99)
    assert fit.tests is not None
    judges = set(fit.tests["judge"].drop_nulls())
    assert {"judge_1", "judge_3"} <= judges
    assert "mute" not in {row["judge"] for row in kind(fit, "McNemar").to_dicts() if row["n_rows"] == 0}
