"""Published studies, re-run: point values, clustered intervals and p-values against recomputed ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts

Shared = Callable[[str], Path]

POINT = 5e-5  # four decimals
END = 0.004  # Monte Carlo error of two sets of 10,000 replicates
P = 0.015  # the same for a resampled p-value
EXACT = 1e-12

EXACT_FORMAT = "exact_structured"
FORCED = "natural_forced_letter"
FREE = "natural_free_text"
STRIPPED = "source_stripped"


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


def _pooled(fit: ts.Analysis, contrast: str) -> dict[str, Any]:
    assert fit.contrasts is not None
    rows = fit.contrasts.filter((pl.col("contrast") == contrast) & pl.col("model").is_null())
    return rows.row(0, named=True)


@pytest.fixture(scope="module")
def study1(shared: Shared) -> ts.ResponseTable:
    responses = pl.concat(
        [_read(shared(f"replication/study1/{name}_responses.csv")) for name in ("constrained", "natural")]
    )
    judgments = shared("replication/study1/natural_judgments.csv")
    return ts.ResponseTable(responses).with_judgments(judgments)


@pytest.fixture(scope="module")
def study2(shared: Shared) -> ts.ResponseTable:
    names = (EXACT_FORMAT, FORCED, FREE, STRIPPED)
    responses = pl.concat([_read(shared(f"replication/study2/{name}_responses.csv")) for name in names])
    judgments = pl.concat([_read(shared(f"replication/study2/{n}_judgments.csv")) for n in (FREE, STRIPPED)])
    return ts.ResponseTable(responses, levels=["A", "B", "C", "D"]).with_judgments(judgments)


@pytest.fixture(scope="module")
def voices(shared: Shared) -> pl.DataFrame:
    table = _read(shared("replication/narrativeshield/responses.csv.gz"))
    return table.filter(pl.col("condition") == "B1")


@pytest.fixture(scope="module")
def voices_expected(shared: Shared) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(shared("replication/narrativeshield/expected.json").read_text())
    return expected


def test_study1_natural_minus_constrained(study1: ts.ResponseTable) -> None:
    row = _pooled(ts.analyze(study1, interval="percentile"), "natural - constrained")
    assert row["estimate"] == pytest.approx(0.0641, abs=POINT)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((-0.011, 0.142), abs=END)
    assert row["p_value"] == pytest.approx(0.1376953125, abs=EXACT)  # 282 of 2^11 sign flips
    assert (row["n_rows"], row["n_clusters"]) == (850, 17)


def test_study1_cluster_t_equals_cr1(study1: ts.ResponseTable, shared: Shared) -> None:
    expected = json.loads(shared("replication/study1/expected.json").read_text())
    golden = expected["clustered"]["natural_minus_constrained_5_models"]
    row = _pooled(ts.analyze(study1), "natural - constrained")
    assert row["std_error"] == pytest.approx(golden["cr1_se"], rel=1e-10)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden["cr1_t_95ci"], rel=1e-8)


def test_study1_summary_sets_the_independent_reading_beside_the_clustered_one(
    study1: ts.ResponseTable, shared: Shared
) -> None:
    fit = ts.analyze(study1)
    assert fit.tests is not None
    pooled = fit.tests.filter(pl.col("model").is_null() & pl.col("judge").is_null())
    p_values = dict(pooled.select("method", "p_value").iter_rows())
    assert p_values["cells as independent, t"] < 0.02
    assert p_values["cluster jackknife t"] > 0.1
    expected = json.loads(shared("replication/study1/expected.json").read_text())
    naive = expected["clustered"]["natural_minus_constrained_5_models"]["naive_row_se"]
    assert fit.sensitivity is not None
    rows = fit.sensitivity.filter(pl.col("model").is_null() & (pl.col("method") == "rows as independent, t"))
    assert rows["std_error"][0] == pytest.approx(naive, rel=1e-10)
    text = repr(fit)
    assert "850 rows" in text
    assert "170 cells" in text
    assert "0.138" in text
    assert "8.6" in text  # the design effect, (0.04028 / 0.01372)^2


@pytest.mark.parametrize("cluster", ["scenario", "pair"])
@pytest.mark.parametrize(
    ("contrast", "name"),
    [(FREE, "natural_minus_exact"), (FORCED, "forced_minus_exact"), (STRIPPED, "stripped_minus_exact")],
)
def test_study2_by_rows(
    study2: ts.ResponseTable, shared: Shared, cluster: str, contrast: str, name: str
) -> None:
    golden = json.loads(shared("replication/study2/expected.json").read_text())["clustered"][name]
    golden = golden[f"cluster_{cluster}"]
    fit = ts.analyze(study2, match="row", weights="row", interval="percentile", cluster=cluster)
    row = _pooled(fit, f"{contrast} - {EXACT_FORMAT}")
    assert row["estimate"] == pytest.approx(golden["estimate"], abs=EXACT)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden["bootstrap_95ci"], abs=END)
    assert row["p_value"] == pytest.approx(golden["sign_flip_p"], abs=P)
    assert (row["n_rows"], row["n_clusters"]) == (golden["n_rows"], golden["n_clusters"])


def test_study2_cluster_t_by_rows(study2: ts.ResponseTable, shared: Shared) -> None:
    """The jackknife of a ratio differs from the linearised CR1 error in the third digit."""
    clustered = json.loads(shared("replication/study2/expected.json").read_text())["clustered"]
    golden = clustered["natural_minus_exact"]["cluster_scenario"]
    row = _pooled(ts.analyze(study2, match="row", weights="row"), f"{FREE} - {EXACT_FORMAT}")
    assert row["std_error"] == pytest.approx(golden["cr1_se"], rel=0.02)


@pytest.mark.parametrize("cluster", ["scenario", "pair"])
def test_study2_forced_minus_natural(study2: ts.ResponseTable, shared: Shared, cluster: str) -> None:
    clustered = json.loads(shared("replication/study2/expected.json").read_text())["clustered"]
    golden = clustered["forced_minus_natural"][f"cluster_{cluster}"]
    fit = ts.analyze(
        study2, match="row", weights="row", interval="percentile", reference=FREE, cluster=cluster
    )
    row = _pooled(fit, f"{FORCED} - {FREE}")
    assert row["estimate"] == pytest.approx(0.0564, abs=POINT)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden["bootstrap_95ci"], abs=END)
    assert row["p_value"] == pytest.approx(golden["sign_flip_p"], abs=P)


def test_study2_defaults_pool_the_models_estimates(study2: ts.ResponseTable) -> None:
    """Cells of scenario x model, repetitions averaged; each model's mean over its scenarios; their mean.

    Written out in polars, apart from the package's own path.
    """
    scored = study2.frame.filter(pl.col("score").is_not_null())
    responses = scored.group_by("scenario", "model", "condition", "repetition").agg(pl.col("score").mean())
    cells = responses.group_by("scenario", "model", "condition").agg(pl.col("score").mean())
    wide = cells.pivot(on="condition", index=["scenario", "model"], values="score")
    fit = ts.analyze(study2)
    for level, printed in ((FREE, -0.0317), (FORCED, 0.0288), (STRIPPED, -0.0146)):
        difference = (pl.col(level) - pl.col(EXACT_FORMAT)).alias("d")
        by_model = wide.select("model", difference).drop_nulls().group_by("model").agg(pl.col("d").mean())
        row = _pooled(fit, f"{level} - {EXACT_FORMAT}")
        assert row["estimate"] == pytest.approx(by_model["d"].to_numpy().mean(), abs=EXACT)
        assert row["estimate"] == pytest.approx(printed, abs=POINT)


def test_study2_disagreement_is_shown(study2: ts.ResponseTable) -> None:
    fit = ts.analyze(study2, match="row", weights="row", interval="percentile")
    contrast = f"{FORCED} - {EXACT_FORMAT}"
    row = _pooled(fit, contrast)
    assert row["conf_low"] > 0
    assert row["p_value"] == pytest.approx(0.095703125, abs=EXACT)  # 98 of 2^10 sign flips
    t = _pooled(ts.analyze(study2, match="row", weights="row"), contrast)
    assert t["conf_low"] < 0
    notes = " ".join(note.message for note in fit.notes if note.code == "disagreement")
    assert contrast in notes
    assert "p = 0.096" in notes
    text = " ".join(repr(fit).split())
    assert "Readings disagree" in text


def test_voices_gap_of_seven_models(voices: pl.DataFrame) -> None:
    fit = ts.analyze(voices, condition="voice", estimands=[ts.Gap("alpha", ["beta", "gamma"])])
    row = _pooled(fit, "alpha - mean(beta, gamma)")
    assert row["estimate"] == pytest.approx(0.0873, abs=POINT)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((0.0726, 0.1018), abs=END)


@pytest.mark.parametrize("estimand", ["gap", "anchoring_gap"])
def test_voices_by_model(voices: pl.DataFrame, voices_expected: dict[str, Any], estimand: str) -> None:
    asked = [ts.Gap("alpha", ["beta", "gamma"]), ts.AnchoringGap("alpha", ["beta", "gamma"])]
    fit = ts.analyze(voices, condition="voice", estimands=asked, interval="percentile")
    assert fit.contrasts is not None
    rows = fit.contrasts.filter((pl.col("estimand") == estimand) & pl.col("model").is_not_null())
    assert rows.height == 7
    short = {"gap": "gap", "anchoring_gap": "nag"}[estimand]
    for row in rows.iter_rows(named=True):
        golden = voices_expected["bootstrap_10000"][f"B1/{row['model']}"]
        assert row["estimate"] == pytest.approx(golden[short], abs=EXACT)
        assert (row["conf_low"], row["conf_high"]) == pytest.approx(golden[f"{short}_ci95"], abs=END)


def test_voices_rates_and_missing(voices: pl.DataFrame, voices_expected: dict[str, Any]) -> None:
    fit = ts.analyze(voices, condition="voice", n_resamples=99)
    for model in voices["model"].unique():
        cell = voices_expected["cells"][f"B1/{model}"]
        for voice in ("alpha", "beta", "gamma"):
            row = fit.rates.filter((pl.col("model") == model) & (pl.col("condition") == voice))
            assert row["estimate"][0] == pytest.approx(cell[f"acc_{voice}"], abs=EXACT)
    unparsed = sum(
        voices_expected["cells"][f"B1/{model}"]["n_unparsed"] for model in voices["model"].unique()
    )
    counts = fit.design.filter((pl.col("estimand") == "responses") & (pl.col("status") == "unparsed"))
    assert counts["estimate"].sum() == unparsed  # an answer that was not read keeps its score of 0


def test_anchoring_gap_permutation(voices: pl.DataFrame, voices_expected: dict[str, Any]) -> None:
    fit = ts.analyze(
        voices, condition="voice", estimands=[ts.AnchoringGap("alpha", ["beta", "gamma"])], n_resamples=2000
    )
    assert fit.contrasts is not None
    rows = fit.contrasts.filter(pl.col("model").is_not_null() & (pl.col("estimand") == "anchoring_gap"))
    for row in rows.iter_rows(named=True):
        golden = voices_expected["nag_permutation_null_2000"][f"B1/{row['model']}"]
        assert row["p_value"] == pytest.approx(golden["p_value"], abs=1e-3)
