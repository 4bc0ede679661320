"""Headlines that rest on few scenarios: published counts, hand-computed errors, and bad input."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import stdtrit

import triagestats as ts
from triagestats.intervals import wilson
from triagestats.results import TIDY_SCHEMA
from triagestats.triage.fixed_scenarios import error_of_contrast, error_of_rate, within_cells

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

SCALE = ["A", "B", "C", "D"]
EXACT = 1e-12  # sums of a few fractions
POINT = 5e-4  # three printed decimals
FEW_DRAWS = 0.1  # relative error of a mean of 400 simulated variances, more than four standard errors
EMERGENCIES = {"scenario": ["E9", "E13", "F9", "F13"]}
FORMATS = {
    "exact": "exact_structured",
    "forced": "natural_forced_letter",
    "natural": "natural_free_text",
    "stripped": "source_stripped",
}


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


@pytest.fixture(scope="module")
def study1(shared: Shared) -> ts.ResponseTable:
    names = ("constrained", "natural")
    responses = pl.concat([_read(shared(f"replication/study1/{name}_responses.csv")) for name in names])
    judgments = shared("replication/study1/natural_judgments.csv")
    return ts.ResponseTable(responses).with_judgments(judgments)


@pytest.fixture(scope="module")
def study2(shared: Shared) -> ts.ResponseTable:
    names = tuple(FORMATS.values())
    responses = pl.concat([_read(shared(f"replication/study2/{name}_responses.csv")) for name in names])
    judged = [_read(shared(f"replication/study2/{name}_judgments.csv")) for name in names[2:]]
    return ts.ResponseTable(responses, levels=SCALE).with_judgments(pl.concat(judged))


@pytest.fixture(scope="module")
def emergencies(study2: ts.ResponseTable) -> ts.Concentration:
    return ts.concentration(study2, subset=EMERGENCIES, n_resamples=99)


@pytest.fixture(scope="module")
def published(shared: Shared) -> dict[str, Any]:
    entries = json.loads(shared("replication/study2/expected.json").read_text())["published"]
    return {entry["id"]: entry["recomputed"] for entry in entries}


def _row(found: ts.Concentration, estimand: str, **where: str | None) -> dict[str, Any]:
    frame = found.tidy().filter(pl.col("estimand") == estimand)
    for name, value in where.items():
        frame = frame.filter(pl.col(name).eq_missing(pl.lit(value, pl.String)))
    assert frame.height == 1
    return frame.row(0, named=True)


def _scored(scores: dict[tuple[str, str], list[float]], condition: str | None = None) -> pl.DataFrame:
    """Scores by scenario and model, one a repetition."""
    rows = [
        (scenario, model, r, float(score))
        for (scenario, model), values in scores.items()
        for r, score in enumerate(values)
    ]
    frame = pl.DataFrame(rows, schema=["scenario", "model", "repetition", "score"], orient="row")
    return frame if condition is None else frame.with_columns(pl.lit(condition).alias("condition"))


@pytest.mark.parametrize("name", list(FORMATS))
def test_emergency_rows_of_study2(
    emergencies: ts.Concentration, published: dict[str, Any], name: str
) -> None:
    golden, condition = published[f"s2_emergency_{name}"], FORMATS[name]
    counts = emergencies.counts.filter(pl.col("condition") == condition)
    assert (counts["misses"].sum(), counts["n"].sum()) == (golden["below_D"], golden["labels"])
    for scenario, misses, n in counts.select("scenario", "misses", "n").iter_rows():
        right, labels = golden["D_by_case"][scenario]
        assert (misses, n) == (labels - right, labels)
    labels = emergencies.labels.filter(pl.col("condition") == condition)
    assert dict(labels.select("label", "misses").iter_rows()) == {
        label: count for label, count in golden["label_counts"].items() if label != "D"
    }
    row = _row(emergencies, "under_rate", condition=condition)
    assert row["estimate"] == pytest.approx(golden["rate"], abs=EXACT)
    assert row["n_clusters"] == 4


@pytest.mark.parametrize(
    ("name", "effective", "largest"),
    [
        ("exact", 1.0, 1.0),
        ("forced", 1.0, 1.0),
        ("natural", 46**2 / (9**2 + 13**2 + 24**2), 24 / 46),
        ("stripped", 17**2 / (1 + 6**2 + 10**2), 10 / 17),
    ],
)
def test_effective_scenarios_of_study2(
    emergencies: ts.Concentration, name: str, effective: float, largest: float
) -> None:
    condition = FORMATS[name]
    row = _row(emergencies, "effective_scenarios", condition=condition)
    assert row["estimate"] == pytest.approx(effective, abs=EXACT)
    row = _row(emergencies, "largest_share", condition=condition)
    assert (row["term"], row["estimate"]) == ("F9", pytest.approx(largest, abs=EXACT))


def test_ranges_without_each_scenario_of_study2(emergencies: ts.Concentration) -> None:
    """Exact: 0/35 without F9, 7/34 without E9 or E13; natural: 22/66 without F9, 46/66 without E13."""
    ends = {
        ("exact", "low"): (0.0, "F9"),
        ("exact", "high"): (7 / 34, "E13"),
        ("natural", "low"): (22 / 66, "F9"),
        ("natural", "high"): (46 / 66, "E13"),
    }
    for (name, end), (value, cluster) in ends.items():
        row = _row(emergencies, f"leave_one_out_{end}", condition=FORMATS[name])
        assert (row["estimate"], row["term"]) == (pytest.approx(value, abs=EXACT), cluster)


def test_study2_has_no_population_interval(emergencies: ts.Concentration) -> None:
    rates = emergencies.tidy().filter(pl.col("estimand") == "under_rate")
    assert rates["method"].str.starts_with("these scenarios only").all()
    exact = _row(emergencies, "under_rate", condition=FORMATS["exact"])
    assert (exact["conf_low"], exact["status"]) == (None, "undefined")
    assert exact["reason"] == (
        "these scenarios only: 2 of 24 scenario x model cells hold one response, whose spread is unknown "
        "(F13 x gemini-3.1-pro, F9 x gemini-3.1-pro)"
    )
    forced = _row(emergencies, "under_rate", condition=FORMATS["forced"])
    assert (forced["conf_low"], forced["conf_high"]) == pytest.approx(wilson(10 / 48, 48, 0.95), abs=EXACT)
    assert forced["status"] == "degenerate"
    assert "Wilson" in forced["method"]
    text = repr(emergencies)
    assert "These scenarios only, 0.95 intervals" in text
    assert "For new scenarios" not in text
    assert "24/24" in text


def test_the_formula_on_labels_stands_beside_that_on_responses(emergencies: ts.Concentration) -> None:
    """Natural .0287 and stripped .0466 by hand from cells of labels; exact refused; forced Wilson."""
    rows = {name: _row(emergencies, "under_rate_of_labels", condition=FORMATS[name]) for name in FORMATS}
    assert round(rows["natural"]["std_error"], 4) == 0.0287
    assert round(rows["stripped"]["std_error"], 4) == 0.0466
    assert (rows["exact"]["conf_low"], rows["exact"]["status"]) == (None, "undefined")
    assert "hold one label" in rows["exact"]["reason"]
    forced = (rows["forced"]["conf_low"], rows["forced"]["conf_high"])
    assert forced == pytest.approx(wilson(10 / 48, 48, 0.95), abs=EXACT)
    for name, row in rows.items():
        assert row["method"].startswith("these scenarios only, each label a draw")
        main = _row(emergencies, "under_rate", condition=FORMATS[name])
        assert row["estimate"] == pytest.approx(main["estimate"], abs=EXACT)
        assert row["n_rows"] == main["n_rows"]
    (note,) = (note for note in emergencies.notes if note.code == "two_readings")
    assert "under_rate takes responses as draws" in note.message
    assert "under_rate_of_labels takes every label as a draw" in note.message
    assert "  labels     natural_free_text" in repr(emergencies)


def test_labels_have_no_reading_of_their_own_where_they_are_responses() -> None:
    table = ts.ResponseTable(_scored({("a", "m"): [1, 0, 1], ("b", "m"): [0, 1, 1]}))
    assert (
        "wrong_rate_of_labels" not in ts.concentration(table, kind="wrong", n_resamples=99).tidy()["estimand"]
    )


def test_scenarios_without_misses_are_shown_or_counted(study2: ts.ResponseTable) -> None:
    few = ts.concentration(study2, subset=EMERGENCIES, n_resamples=99)
    assert "  E13       0/12" in repr(few)
    many = repr(ts.concentration(study2, by=None, n_resamples=99))
    assert "\n  not shown: 40 scenarios without any, 0 of 2,342\n" in many
    right = _scored({(f"s{k:02}", "m"): [1, 1] for k in range(20)})
    none = repr(ts.concentration(ts.ResponseTable(right), kind="wrong", by=None, n_resamples=99))
    assert "\n  not shown: 20 scenarios without any, 0 of 40\n" in none


def test_contrasts_without_each_cluster_are_printed(emergencies: ts.Concentration) -> None:
    text = repr(emergencies)
    assert "Contrasts without each cluster" in text
    assert "source_stripped - exact_structured        0.08333 (F13) to 0.25 (E13)" in text


def test_contrasts_that_are_no_differences_of_the_rates_are_noted(emergencies: ts.Concentration) -> None:
    (note,) = (note for note in emergencies.notes if note.code == "matched_contrasts")
    assert "natural_free_text - exact_structured" in note.message
    x, y = ({("a", "m"): [1, 0], ("b", "m"): [values, 1]} for values in (0, 1))
    even = pl.concat([_scored(x, "x"), _scored(y, "y")])
    found = ts.concentration(ts.ResponseTable(even), kind="wrong", n_resamples=99)
    assert "matched_contrasts" not in [note.code for note in found.notes]


def test_results_show_their_text_in_notebooks(emergencies: ts.Concentration) -> None:
    assert emergencies._repr_html_() == f"<pre>{html.escape(repr(emergencies), quote=True)}</pre>"
    for result in (
        ts.AnchoringNull,
        ts.ErrorDirection,
        ts.Factorial,
        ts.GapComparison,
        ts.RateComparison,
        ts.RuleReport,
        ts.ValidReasons,
    ):
        assert hasattr(result, "_repr_html_")


def test_labels_that_could_not_be_read_are_called_so() -> None:
    table = ts.ResponseTable(
        {
            "scenario": list("aabb"),
            "response": ["A", None, "B", "A"],
            "gold": list("AABB"),
            "error": [None, "unparsed", None, None],
            "repetition": [1, 2, 1, 2],
        },
        levels=["A", "B"],
        unparsed="wrong",
    )
    text = repr(ts.concentration(table, kind="wrong", n_resamples=99))
    assert "unreadable 1" in text
    assert "None" not in text


def test_study1_main_contrast_without_each_scenario(study1: ts.ResponseTable) -> None:
    found = ts.concentration(study1, kind="correct", weights="scenario", n_resamples=99)
    contrast = "natural - constrained"
    low, high = (_row(found, f"leave_one_out_{end}", contrast=contrast) for end in ("low", "high"))
    assert (low["estimate"], high["estimate"]) == pytest.approx((0.040, 0.088), abs=POINT)
    assert (low["term"], high["term"]) == ("case_14", "case_16")
    fit = ts.analyze(study1, n_resamples=99)
    assert fit.contrasts is not None
    shown = ["estimate", "std_error", "conf_low", "conf_high", "n_clusters", "method"]
    own = found.tidy().filter(pl.col("contrast").is_not_null() & (pl.col("estimand") == "correct_rate"))
    assert own.select(shown).row(0) == fit.contrasts.filter(pl.col("model").is_null()).select(shown).row(0)


def test_study1_every_estimate_is_made_anew_without_a_scenario(study1: ts.ResponseTable) -> None:
    found = ts.concentration(study1, kind="correct", weights="scenario", n_resamples=99)
    without = found.without.filter(pl.col("contrast").is_not_null())
    assert without.height == 17
    for cluster, estimate in without.select("cluster", "estimate").rows()[:3]:
        rest = study1.with_frame(study1.frame.filter(pl.col("scenario") != cluster))
        fit = ts.analyze(rest, n_resamples=99)
        assert fit.contrasts is not None
        row = fit.contrasts.filter(pl.col("model").is_null())
        assert row["estimate"][0] == pytest.approx(estimate, abs=EXACT)


def test_variance_within_cells_by_hand() -> None:
    """(4/7)^2 s1^2 / 4 + (3/7)^2 s2^2 / 3 with s1^2 = 1/3 (two of four), s2^2 = 1/3 (one of three)."""
    table = ts.ResponseTable(_scored({("a", "m"): [1, 0, 1, 0], ("b", "m"): [0, 1, 1]}))
    row = _row(ts.concentration(table, kind="wrong", n_resamples=99), "wrong_rate")
    parts = (4 / 7) ** 2 / 3 / 4, (3 / 7) ** 2 / 3 / 3
    assert row["estimate"] == pytest.approx(3 / 7, abs=EXACT)
    assert row["std_error"] == pytest.approx(sum(parts) ** 0.5, abs=EXACT)
    df = sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2 / 2)
    half = _t_quantile(df) * sum(parts) ** 0.5
    ends = max(0, 3 / 7 - half), min(1, 3 / 7 + half)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(ends, abs=1e-9)
    assert row["method"] == (
        f"these scenarios only: spread within 2 scenario x model cells, t with {df:.1f} df"
    )


def _t_quantile(df: float) -> float:
    return float(stdtrit(df, 0.975))


def test_labels_of_one_response_are_one_draw() -> None:
    """Two judges who agree on every response add nothing to what one judge says."""
    one = _scored({("a", "m"): [1, 0, 1, 0], ("b", "m"): [0, 1, 1, 1]})
    two = pl.concat([one.with_columns(pl.lit(judge).alias("judge")) for judge in "pq"])
    rows = [
        _row(ts.concentration(ts.ResponseTable(frame), kind="wrong", n_resamples=99), "wrong_rate")
        for frame in (one, two)
    ]
    assert rows[1]["n_rows"] == 2 * rows[0]["n_rows"]
    for name in ("estimate", "std_error", "conf_low", "conf_high"):
        assert rows[0][name] == pytest.approx(rows[1][name], abs=EXACT)


def test_a_cell_of_one_response_is_refused_and_a_constant_one_is_not() -> None:
    constant = {("a", "m"): [1, 1], ("b", "m"): [0, 0, 0]}
    found = ts.concentration(ts.ResponseTable(_scored(constant)), kind="wrong", n_resamples=99)
    row = _row(found, "wrong_rate")
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(wilson(3 / 5, 5, 0.95), abs=EXACT)
    assert row["reason"] == (
        "these scenarios only: every response of a cell is the same; Wilson's interval of 5 responses is "
        "shown"
    )
    single = constant | {("b", "n"): [1]}
    row = _row(
        ts.concentration(ts.ResponseTable(_scored(single)), kind="wrong", n_resamples=99), "wrong_rate"
    )
    assert (row["conf_low"], row["status"]) == (None, "undefined")
    assert "1 of 3 scenario x model cells hold one response" in row["reason"]


def test_variance_is_right_on_average() -> None:
    """Over fresh answers of fixed cells the mean of the variances is the variance of the estimates."""
    rng = np.random.default_rng(11)
    chances = {("a", "m"): 0.2, ("a", "n"): 0.5, ("b", "m"): 0.9, ("b", "n"): 0.4}
    sizes = dict(zip(chances, (3, 6, 4, 5), strict=True))
    n = sum(sizes.values())
    truth = sum((sizes[c] / n) ** 2 * p * (1 - p) / sizes[c] for c, p in chances.items())
    found = []
    for _ in range(400):
        drawn = {cell: list((rng.random(sizes[cell]) < p) * 1.0) for cell, p in chances.items()}
        frame = _scored(drawn).rename({"score": "value"})
        responses = frame.with_columns(pl.lit(None, pl.String).alias("variant"), pl.lit(1).alias("weight"))
        found.append(error_of_rate(responses, weights="row").variance)
    assert np.mean(found) == pytest.approx(truth, rel=FEW_DRAWS)


def test_variance_of_two_draws_by_enumeration() -> None:
    """All 16 pairs of answers in two cells of two: mean variance = variance of the estimate."""
    estimates, variances = [], []
    cells = np.array([0, 0, 1, 1])
    shares = np.full(4, 0.25)
    for values in itertools.product((0.0, 1.0), repeat=4):
        y = np.array(values)
        variance, size = within_cells(y, shares, cells)
        assert size.tolist() == [2, 2]
        estimates.append(float(shares @ y))
        variances.append(float(variance.sum()))
    assert np.mean(variances) == pytest.approx(np.var(estimates), abs=EXACT)


def test_contrast_of_these_scenarios_by_hand() -> None:
    """Means .5 - .25 in one scenario and 1 - .5 in the other; each side adds w^2 s^2 / n of its cells."""
    x = _scored({("a", "m"): [0, 0, 0, 1], ("b", "m"): [0, 1]}, "x")
    y = _scored({("a", "m"): [0, 1], ("b", "m"): [1, 1]}, "y")
    table = ts.ResponseTable(pl.concat([x, y]))
    found = ts.concentration(table, kind="correct", n_resamples=99)
    row = _row(found, "correct_rate", contrast="y - x")
    assert row["estimate"] == pytest.approx((0.25 + 0.5) / 2, abs=EXACT)
    variance = 0.25 * (0.25 / 4 + 0.5 / 2 + 0.5 / 2 + 0)
    assert row["std_error"] == pytest.approx(variance**0.5, abs=EXACT)
    assert row["method"].startswith("these scenarios only: spread within 4 scenario x model cells")
    frame = pl.concat([x, y]).rename({"score": "value"})
    responses = frame.with_columns(pl.lit(None, pl.String).alias("variant"), pl.lit(1).alias("weight"))
    for weights in ("row", "scenario"):
        error = error_of_contrast(responses, "y", "x", weights=weights)  # type: ignore[arg-type]
        assert error is not None
        assert error.estimate == pytest.approx(row["estimate"], abs=EXACT)


@pytest.mark.parametrize("weights", ["row", "scenario"])
@pytest.mark.parametrize("pool", ["labels", "responses"])
def test_both_ways_to_an_estimate_agree(study2: ts.ResponseTable, weights: Any, pool: Any) -> None:
    """Rates and contrasts as sums over responses are those of the blocks on totals."""
    found = ts.concentration(study2, subset=EMERGENCIES, weights=weights, pool=pool, n_resamples=99)
    subset = study2.with_frame(study2.frame.filter(pl.col("scenario").is_in(EMERGENCIES["scenario"])))
    errors = ts.error_direction(subset, weights=weights, pool=pool, n_resamples=99)
    own = errors.tidy().filter((pl.col("estimand") == "under_rate") & pl.col("model").is_null())
    for row in own.iter_rows(named=True):
        where = {name: row[name] for name in ("condition", "contrast")}
        assert _row(found, "under_rate", **where)["estimate"] == pytest.approx(row["estimate"], abs=EXACT)
    for name, fixed in found._parts.fixed.items():
        side = "contrast" if name is not None and " - " in name else "condition"
        row = own.filter(pl.col(side) == name).row(0, named=True)
        assert fixed.estimate == pytest.approx(row["estimate"], abs=EXACT)


def test_one_scenario_is_all_there_is() -> None:
    table = ts.ResponseTable(_scored({("a", "m"): [1, 0, 0, 1]}))
    found = ts.concentration(table, kind="wrong", n_resamples=99)
    assert _row(found, "wrong_rate")["estimate"] == 0.5
    assert _row(found, "wrong_rate")["n_clusters"] == 1
    assert _row(found, "effective_scenarios")["estimate"] == 1
    low = _row(found, "leave_one_out_low")
    assert (low["estimate"], low["status"]) == (None, "undefined")
    assert found.without.is_empty()


def test_no_misses_have_no_effective_number() -> None:
    scores = {(f"s{k}", "m"): [1.0, 1.0] for k in range(6)}
    found = ts.concentration(ts.ResponseTable(_scored(scores)), kind="wrong", n_resamples=99)
    row = _row(found, "effective_scenarios")
    assert (row["estimate"], row["status"], row["reason"]) == (None, "undefined", "there are no misses")
    rate = _row(found, "wrong_rate")
    assert rate["conf_low"] == 0
    assert rate["conf_high"] > 0
    assert found.counts["share"].null_count() == 6


def test_equal_shares_count_every_scenario() -> None:
    scores = {(f"s{k}", "m"): [1.0, 0.0] for k in range(7)}
    found = ts.concentration(ts.ResponseTable(_scored(scores)), kind="wrong", n_resamples=99)
    assert _row(found, "effective_scenarios")["estimate"] == pytest.approx(7, abs=EXACT)
    assert not [note for note in found.notes if note.code == "concentrated"]
    assert _row(found, "wrong_rate")["method"] == "Korn-Graubard plus two"


def test_a_concentrated_headline_is_noted() -> None:
    scores = {(f"s{k}", "m"): [1.0, float(k != 3)] for k in range(8)} | {("s3", "n"): [0.0, 0.0]}
    found = ts.concentration(ts.ResponseTable(_scored(scores)), kind="wrong", n_resamples=99)
    assert [note.message for note in found.notes if note.code == "concentrated"] == [
        "100% of the misses are of s3; they weigh as much as those of 1.0 scenarios with equal shares."
    ]


@pytest.mark.parametrize(
    "subset",
    [
        {"scenario": ["F9"], "condition": "natural_free_text"},
        pl.col("scenario").eq("F9") & pl.col("condition").eq("natural_free_text"),
        lambda frame: (frame["scenario"] == "F9") & (frame["condition"] == "natural_free_text"),
        lambda _: pl.col("scenario").eq("F9") & pl.col("condition").eq("natural_free_text"),
        {"scenario": "F9", "format": ["natural_free_text"]},
    ],
)
def test_subsets_of_any_make(study2: ts.ResponseTable, subset: Any) -> None:
    found = ts.concentration(study2, subset=subset, n_resamples=99)
    assert found.counts.rows() == [("natural_free_text", "F9", 24.0, 24, 1.0)]


def test_a_stratum_is_a_subset(shared: Shared) -> None:
    responses = _read(shared("replication/study2/exact_structured_responses.csv"))
    table = ts.ResponseTable(responses, levels=SCALE, stratum="case_type")
    found = ts.concentration(table, subset="with_data", n_resamples=99)
    assert found.glance().select("misses", "n", "n_scenarios").row(0) == (6.0, 345, 30)


def test_other_crossings_and_clusters(study2: ts.ResponseTable) -> None:
    rows = {**EMERGENCIES, "condition": "natural_free_text"}
    by_model = ts.concentration(study2, subset=rows, by="model", n_resamples=99)
    assert by_model.counts["condition"].n_unique() == 6
    assert by_model.counts["misses"].sum() == 46
    assert by_model.tidy()["contrast"].drop_nulls().n_unique() == 5
    alone = ts.concentration(study2, subset=rows, by=None, n_resamples=99)
    assert alone.counts["misses"].to_list() == [0, 9, 13, 24]
    pairs = ts.concentration(study2.with_cluster("pair"), subset=rows, n_resamples=99)
    assert pairs.glance()["n_clusters"][0] == 2
    assert _row(pairs, "leave_one_out_low", condition="natural_free_text")["estimate"] == pytest.approx(
        13 / 46, abs=EXACT
    )


def test_two_condition_columns_cross_with_joint_levels() -> None:
    frame = pl.concat(
        [
            _scored({(f"s{k}", "m"): [float(k > 1), 1.0] for k in range(6)}).with_columns(
                pl.lit(a).alias("wording"), pl.lit(b).alias("output")
            )
            for a in "pq"
            for b in "uv"
        ]
    )
    table = ts.ResponseTable(frame, condition=["wording", "output"])
    found = ts.concentration(table, kind="wrong", n_resamples=99)
    assert found.counts["condition"].n_unique() == 4
    assert found.counts["misses"].sum() == 8
    assert set(found.tidy()["contrast"].drop_nulls()) == {"q - p", "v - u"}


def test_row_order_changes_nothing() -> None:
    frame = pl.concat(
        [
            _scored({(s, m): [1.0, 0.0, float(s == "a")] for s in "abc" for m in "mn"}, condition)
            for condition in ("x", "y")
        ]
    )
    first = ts.concentration(ts.ResponseTable(frame), kind="wrong", n_resamples=99)
    mixed = ts.ResponseTable(frame.sample(fraction=1, shuffle=True, seed=2))
    second = ts.concentration(mixed, kind="wrong", n_resamples=99)
    assert first.counts.equals(second.counts)
    assert first.tidy().equals(second.tidy())


def test_the_result_is_a_tidy_frame_and_plain_values(emergencies: ts.Concentration) -> None:
    assert emergencies.tidy().schema == TIDY_SCHEMA
    assert emergencies.glance().select("misses", "n", "n_clusters").row(0) == (80.0, 232, 4)
    assert json.loads(json.dumps(emergencies.to_dict()))["settings"]["kind"] == "under"
    narrow = emergencies.with_level(0.5).tidy().filter(pl.col("estimand") == "under_rate")
    wide = emergencies.tidy().filter(pl.col("estimand") == "under_rate")
    known = wide["conf_low"].is_not_null()
    assert known.any()
    assert (narrow["conf_low"].filter(known) > wide["conf_low"].filter(known)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kind": "mild"},
            "ArgumentError: `kind` must be one of 'under', 'over', 'wrong', 'correct'; got 'mild'",
        ),
        (
            {"subset": {"scenario": "z"}},
            "ArgumentError: `subset` names 'z' of 'scenario'; choose from ['a', 'b']",
        ),
        (
            {"subset": {}},
            "ArgumentError: `subset` is an empty mapping; give at least one column and its value",
        ),
        (
            {"subset": "ward"},
            (
                "ArgumentError: `subset` is 'ward', and the table has no stratum; name a column, such as "
                "`subset={'condition': 'ward'}`"
            ),
        ),
        (
            {"subset": 3},
            (
                "ArgumentTypeError: `subset` must be a polars expression, a mapping from column to value(s), "
                "a stratum or a function of the frame; got 3"
            ),
        ),
        (
            {"subset": lambda _: [True, False]},
            (
                "ArgumentTypeError: the function `subset` must return a polars expression or one boolean a "
                "row; got list"
            ),
        ),
        ({"subset": pl.col("score") > 9}, "DataError: `subset` leaves none of the 4 rows"),
        ({"by": 3}, "ArgumentTypeError: `by` must be the name of a column; got 3"),
        (
            {"kind": "under"},
            (
                "DesignError: the labels have no order, so that nothing is under or over; give the scale "
                "from least to most urgent with `levels=[...]` where the table is made"
            ),
        ),
    ],
)
def test_bad_arguments_are_refused(refusal: Refusal, arguments: dict[str, Any], message: str) -> None:
    table = ts.ResponseTable(_scored({("a", "m"): [1, 0], ("b", "m"): [0, 1]}))
    assert refusal(lambda: ts.concentration(table, **{"kind": "wrong"} | arguments)) == message


def test_scores_beyond_a_rate_and_bad_expressions_are_refused(refusal: Refusal) -> None:
    table = ts.ResponseTable(_scored({("a", "m"): [3, 0], ("b", "m"): [0, 1]}))
    assert refusal(lambda: ts.concentration(table, kind="wrong")) == (
        "DataError: `kind='wrong'` needs scores from 0 to 1; these run from 0.0 to 3.0"
    )
    said = refusal(lambda: ts.concentration(table, kind="wrong", subset=pl.col("ward") == 1))
    assert said.startswith("ArgumentError: `subset` cannot be evaluated on the rows of the table (")
