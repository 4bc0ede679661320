"""The result of an analysis: frozen, tidy, convertible, and read again at another level."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import triagestats as ts
from triagestats.schema import GLOSSARY, SCHEMA_VERSION, TIDY_COLUMNS

RESAMPLES = 999
FRAMES = [
    "design",
    "rates",
    "contrasts",
    "errors",
    "agreement",
    "regression",
    "mixed",
    "variance",
    "ranking",
    "missing",
    "sensitivity",
    "tests",
]
# Rounding of sums of a few hundred floats.
ROUNDING = 1e-12


def scores(
    *,
    n_scenarios: int = 14,
    models: Sequence[str | None] = ("m1", "m2"),
    conditions: Sequence[str | None] = ("a", "b"),
    repetitions: int = 2,
    effect: float = 0.15,
    seed: int = 5,
) -> pl.DataFrame:
    """Return 0/1 scores that share scenario effects."""
    draw = np.random.default_rng(seed)
    rows = []
    for s in range(n_scenarios):
        base = draw.uniform(0.2, 0.7)
        for m in models:
            for k, c in enumerate(conditions):
                p = base + k * effect + draw.uniform(-0.1, 0.1)
                for r in range(repetitions):
                    row = {"scenario": f"s{s:02}", "model": m, "condition": c, "repetition": r}
                    rows.append(row | {"score": int(draw.uniform() < p)})
    frame = pl.DataFrame(rows)
    return frame.drop(name for name in ("model", "condition") if frame[name].null_count())


@pytest.fixture(scope="module")
def demo() -> ts.Analysis:
    return ts.analyze(ts.demo_table(), n_resamples=RESAMPLES, margin=0.05)


def ratio(values: np.ndarray) -> np.ndarray:
    return values[..., 0] / values[..., 1]


def with_estimands(function: object = ratio) -> ts.Analysis:
    return ts.analyze(
        scores(conditions=("a", "b", "c")),
        n_resamples=RESAMPLES,
        estimands=[
            ts.Gap("a", ["b", "c"]),
            ts.AnchoringGap("a", ["b", "c"]),
            ts.Function(function, [ts.Mean("b"), ts.Mean("a")], name="ratio"),  # type: ignore[arg-type]
        ],
    )


def same(first: ts.Analysis, second: ts.Analysis) -> None:
    """Assert that two analyses hold the same bits."""
    for name in (*FRAMES, "details"):
        one, other = getattr(first, name), getattr(second, name)
        if one is None:
            assert other is None
        else:
            assert_frame_equal(one, other, check_exact=True)
    assert first.notes == second.notes
    assert first.settings == second.settings
    assert repr(first) == repr(second)


def test_all_parts_are_there(demo: ts.Analysis) -> None:
    for name in FRAMES:
        frame = getattr(demo, name)
        assert frame is None or tuple(frame.columns) == TIDY_COLUMNS
    present = {name for name in FRAMES if getattr(demo, name) is not None}
    assert present == set(FRAMES) - {"mixed", "variance"}
    absent = next(note for note in demo.notes if note.code == "not_computed")
    assert all(name in absent.message for name in FRAMES if name not in present)


def test_a_part_without_content_is_none_and_noted() -> None:
    fit = ts.analyze(scores(conditions=("a",)), n_resamples=RESAMPLES)
    assert fit.contrasts is None
    assert fit.sensitivity is None
    assert fit.tests is None
    assert fit.missing is None
    assert any(note.code == "no_contrasts" for note in fit.notes)
    assert tuple(fit.tidy().columns) == TIDY_COLUMNS


def test_tidy_has_one_row_an_estimate(demo: ts.Analysis) -> None:
    tidy = demo.tidy()
    assert tuple(tidy.columns) == TIDY_COLUMNS
    what = ["estimand", "term", "model", "condition", "contrast", "stratum", "judge", "metric", "status"]
    assert demo.agreement is not None
    assert tidy.select(pl.struct(what).is_duplicated().any()).item() is False
    assert demo.contrasts is not None
    assert demo.missing is not None
    assert demo.regression is not None
    assert demo.errors is not None
    assert demo.ranking is not None
    parts = [
        demo.rates,
        demo.contrasts,
        demo.errors,
        demo.agreement,
        demo.regression,
        demo.ranking,
        demo.missing,
    ]
    assert tidy.height == sum(part.height for part in parts)


def test_glance_is_one_row(demo: ts.Analysis) -> None:
    glance = demo.glance()
    assert glance.height == 1
    row = glance.row(0, named=True)
    assert (row["rows"], row["responses"], row["scenarios"], row["n_clusters"]) == (3780, 2520, 17, 17)
    assert (row["conf_level"], row["margin"], row["n_notes"]) == (0.95, 0.05, len(demo.notes))
    for other in (
        ts.analyze(scores(conditions=(None,)), n_resamples=9),
        ts.analyze(scores(models=(None,)), n_resamples=9),
        ts.analyze(scores(models=tuple("abcdef")), n_resamples=9, cluster=["scenario", "model"]),
    ):
        assert other.glance().height == 1
        assert other.glance().schema == glance.schema


def test_to_dict_is_plain_json_with_a_schema_version(demo: ts.Analysis) -> None:
    values = demo.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert json.loads(demo.to_json()) == values
    assert values["schema_version"] == SCHEMA_VERSION
    assert set(FRAMES) < set(values)
    assert values["mixed"] is None
    assert values["rates"][0]["estimate"] == demo.rates["estimate"][0]
    assert list(values["contrasts"][0]) == list(TIDY_COLUMNS)
    assert values["settings"]["n_clusters"] == [17]
    assert {"code", "level", "message"} == set(values["notes"][0])


@pytest.mark.parametrize(
    "table",
    [
        scores(n_scenarios=3),
        scores(n_scenarios=2, models=("only",)),
        scores().with_columns(score=1),
        scores().filter(~((pl.col("model") == "m2") & (pl.col("condition") == "b"))),
    ],
    ids=["three clusters", "two clusters", "constant", "a model without one side"],
)
def test_degenerate_results_are_json_too(table: pl.DataFrame) -> None:
    fit = ts.analyze(table, n_resamples=RESAMPLES)
    json.dumps(fit.to_dict(), allow_nan=False)
    assert fit.glance().height == 1
    assert repr(fit)


def test_to_pandas_is_tidy(demo: ts.Analysis) -> None:
    frame = demo.to_pandas()
    assert tuple(frame.columns) == TIDY_COLUMNS
    assert len(frame) == demo.tidy().height


def test_results_are_frozen(demo: ts.Analysis) -> None:
    with pytest.raises(FrozenInstanceError):
        demo.rates = None  # type: ignore[misc, assignment]
    with pytest.raises(FrozenInstanceError):
        demo.settings.conf_level = 0.5  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        demo.other = 1  # type: ignore[attr-defined]


def test_pickle_round_trip(demo: ts.Analysis) -> None:
    again = pickle.loads(pickle.dumps(demo))
    same(demo, again)
    same(demo.with_level(0.8), again.with_level(0.8))


@pytest.mark.parametrize("function", [ratio, lambda v: v[..., 0] / v[..., 1]], ids=["function", "lambda"])
def test_custom_estimands_pickle_without_their_function(function: object) -> None:
    fit = with_estimands(function)
    stored = pickle.dumps(fit)
    assert b"test_analysis" not in stored
    same(fit, pickle.loads(stored))


def test_another_level_reads_the_same_replicates() -> None:
    data = scores(conditions=("a", "b", "c"))
    asked = {"n_resamples": RESAMPLES, "margin": 0.1, "estimands": [ts.AnchoringGap("a", ["b", "c"])]}
    fit = ts.analyze(data, **asked)  # type: ignore[arg-type]
    read = fit.with_level(0.9)
    same(read, ts.analyze(data, conf_level=0.9, **asked))  # type: ignore[arg-type]
    same(read.with_level(0.95), fit)
    for frame in ("rates", "contrasts", "sensitivity"):
        wide, narrow = getattr(fit, frame), getattr(read, frame)
        given = wide["conf_low"].is_not_null()
        assert given.any()
        assert (narrow["conf_low"] >= wide["conf_low"]).filter(given).all()
        assert (narrow["conf_high"] <= wide["conf_high"]).filter(given).all()
        inside = narrow["conf_high"] - narrow["conf_low"] < wide["conf_high"] - wide["conf_low"]
        assert inside.filter(given).all()


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, float("nan"), "0.9", None, True])
def test_levels_outside_0_and_1_are_refused(demo: ts.Analysis, level: object) -> None:
    with pytest.raises(ts.TriagestatsError, match="`conf_level` must"):
        demo.with_level(level)  # type: ignore[arg-type]


def test_numpy_numbers_are_numbers() -> None:
    first = ts.analyze(scores(), n_resamples=99, conf_level=np.float64(0.9), margin=np.float64(0.1))
    same(first, ts.analyze(scores(), n_resamples=99, conf_level=0.9, margin=0.1))
    assert type(first.settings.margin) is float


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("match", "rows", "`match` must be one of 'cell', 'row', 'scenario'; got 'rows'"),
        ("weights", None, "`weights` must be one of"),
        ("interval", "wald", "`interval` must be one of"),
        ("margin", 0, "`margin` must be positive and finite"),
        ("margin", float("inf"), "`margin` must be positive and finite"),
        ("margin", "0.1", "`margin` must be a number"),
        ("conf_level", 95, "did you mean 0.95"),
    ],
)
def test_arguments_are_checked(argument: str, value: object, message: str) -> None:
    with pytest.raises(ts.TriagestatsError, match=message):
        ts.analyze(scores(), **{argument: value})  # type: ignore[arg-type]


def test_arguments_are_checked_before_the_data_is_read() -> None:
    with pytest.raises(ts.TriagestatsError, match="`seed`"):
        ts.analyze("absent.csv", seed=-1)


def test_a_response_table_takes_no_roles() -> None:
    table = ts.ResponseTable(scores())
    with pytest.raises(ts.TriagestatsError, match="`model`, `levels` cannot be given with a ResponseTable"):
        ts.analyze(table, model="model", levels=["a", "b"])
    assert ts.analyze(table, cluster="scenario", n_resamples=9).settings.cluster == "scenario"


def test_sensitivity_holds_every_interval_and_independent_rows(demo: ts.Analysis) -> None:
    assert demo.sensitivity is not None
    assert demo.contrasts is not None
    pooled = demo.sensitivity.filter(pl.col("model").is_null())
    assert pooled["method"].to_list() == [
        "cluster jackknife t",
        "cluster bootstrap percentile",
        "cluster bootstrap BCa",
        "rows as independent, t",
        "cells as independent, t",
    ]
    assert pooled.select(pl.col("conf_low", "conf_high", "verdict").is_not_null().all()).row(0) == (True,) * 3
    shown = demo.contrasts.row(0, named=True)
    first = pooled.row(0, named=True)
    for name in ("estimate", "std_error", "conf_low", "conf_high", "df", "n_rows", "n_clusters"):
        assert first[name] == shown[name]
    assert demo.sensitivity.height == 5 * demo.contrasts.height


def test_tests_hold_every_test(demo: ts.Analysis) -> None:
    assert demo.tests is not None
    assert demo.contrasts is not None
    pooled = demo.tests.filter(pl.col("model").is_null())
    of_mean = pooled.filter(pl.col("judge").is_null())
    paired = [
        "McNemar mid-p",
        "McNemar by cluster (Obuchowski)",
        "equivalence within 0.05 by Tango score",
        "Wilcoxon signed-rank of independent cells",
        "Wilcoxon signed-rank of cells by cluster",
    ]
    clustered = ["permutation of labels by cluster", "cluster jackknife t"]
    equivalence = "equivalence within 0.05 by cluster jackknife t"
    independent = ["rows as independent", "cells as independent"]
    kinds = [method.partition(",")[0] for method in of_mean["method"]]
    assert kinds == [*clustered, *independent, equivalence, *paired]
    for judge in ("judge_1", "judge_2"):
        own = pooled.filter(pl.col("judge") == judge)
        kinds = [method.partition(",")[0] for method in own["method"]]
        assert kinds == [*clustered, equivalence, *paired]
    assert of_mean["p_value"][0] == demo.contrasts["p_value"][0]
    assert pooled["p_value"].is_not_null().all()
    t = pooled.filter(pl.col("statistic").is_not_null() & pl.col("std_error").is_not_null())
    assert np.allclose(t["statistic"], t["estimate"] / t["std_error"], rtol=ROUNDING)


def test_estimands_without_a_null_value_have_no_disagreement_and_no_side() -> None:
    fit = with_estimands()
    assert fit.sensitivity is not None
    functions = fit.sensitivity.filter(pl.col("estimand") == "ratio")
    assert set(functions["verdict"]) == {"undecided"}
    assert not [n for n in fit.notes if n.code == "disagreement" and "ratio" in n.message]


def disagreeing() -> ts.Analysis:
    """Return contrasts of seven scenarios, six of which improve: t excludes 0, and the test cannot."""
    rows = [
        {"scenario": s, "model": m, "condition": c, "score": 0.5 + (c == "b") * gain}
        for s, gain in enumerate([0.10, 0.11, 0.12, 0.10, 0.11])
        for m in ("m1", "m2")
        for c in ("a", "b")
    ]
    return ts.analyze(pl.DataFrame(rows), n_resamples=RESAMPLES)


def test_disagreements_name_pooled_contrasts_first_and_models_briefly() -> None:
    notes = [note for note in disagreeing().notes if note.code in ("disagreement", "smallest_p")]
    test = "the permutation test"
    assert [note.message for note in notes] == [
        f"Readings disagree on b - a: 0 is excluded by all intervals, not by {test} (p = 0.062).",
        ("Readings disagree for single models: b - a (m1), b - a (m2); see `sensitivity` and `tests`."),
        "b - a: 5 clusters differ between the levels, so the permutation test's p cannot be below 0.0625.",
    ]
    assert all(note.level == "caution" for note in notes)


def test_agreement_of_readings_is_not_noted(demo: ts.Analysis) -> None:
    assert not [note for note in demo.notes if note.code == "disagreement"]


def unread(*, scored: bool) -> ts.Analysis:
    """Return 0/1 answers by letter, every seventh of condition b empty."""
    rows = []
    for s in range(12):
        for c in ("a", "b"):
            for r in range(3):
                lost = c == "b" and (3 * s + r) % 7 == 0
                row = {"scenario": s, "condition": c, "repetition": r, "gold": "A"}
                row |= {"response": None if lost else "AB"[(s + r) % 2]}
                right = None if lost and not scored else int(row["response"] == "A")
                rows.append(row | {"score": right})
    return ts.analyze(pl.DataFrame(rows), n_resamples=99)


def test_unread_answers_that_count_as_wrong_are_noted_with_worst_cases() -> None:
    fit = unread(scored=True)
    note = next(note for note in fit.notes if note.code == "unparsed_scored")
    assert note.level == "caution"
    assert note.message.startswith(
        "6 answers could not be read and count with the score that they have (b 6)"
    )
    assert fit.missing is not None
    value = {row["estimand"]: row for row in fit.missing.iter_rows(named=True)}
    assert value["share_unparsed"]["estimate"] == pytest.approx(6 / 36, abs=ROUNDING)
    assert value["share_unparsed"]["n_missing"] == 0
    rate = fit.rates.filter(pl.col("condition") == "b")["estimate"][0]
    assert value["rate_if_missing_wrong"]["estimate"] == pytest.approx(rate, abs=ROUNDING)
    assert value["rate_if_missing_right"]["estimate"] == pytest.approx(rate + 6 / 36, abs=ROUNDING)


def test_missing_answers_have_the_same_worst_cases() -> None:
    fit, counted = unread(scored=False), unread(scored=True)
    assert fit.missing is not None
    assert counted.missing is not None
    assert not [note for note in fit.notes if note.code == "unparsed_scored"]
    bounds = pl.col("estimand").str.starts_with("rate_if")
    assert (
        fit.missing.filter(bounds)["estimate"].to_list()
        == counted.missing.filter(bounds)["estimate"].to_list()
    )
    share = fit.missing.filter(pl.col("estimand") == "share_missing")
    assert share["estimate"].sum() == pytest.approx(6 / 36, abs=ROUNDING)
    assert share["n_missing"].unique().to_list() == [6]


def test_pooled_shares_add_up_over_models(demo: ts.Analysis) -> None:
    assert demo.missing is not None
    by_status = demo.missing.filter(pl.col("estimand") == "share_missing").with_columns(
        number=pl.col("estimate") * (pl.col("n_rows") + pl.col("n_missing"))
    )
    pooled = by_status.filter(pl.col("model").is_null())["number"].sum()
    single = by_status.filter(pl.col("model").is_not_null())["number"].sum()
    assert pooled == pytest.approx(single, rel=ROUNDING)
    assert pooled == pytest.approx(2550 - 2495, rel=ROUNDING)


def test_details_and_settings_are_documented_fields(demo: ts.Analysis) -> None:
    documented = ts.Analysis.__doc__ or ""
    for field in dataclasses.fields(ts.Analysis):
        assert field.name.startswith("_") or field.name in documented
    assert demo.details is not None
    assert {"design_effect", "bootstrap_std_error", "smallest_p_value"} <= set(demo.details["quantity"])


def test_repr_is_the_summary_and_html_is_escaped() -> None:
    fit = ts.analyze(scores(models=("<script>x</script>", "a & b")), n_resamples=99)
    assert str(fit) == repr(fit)
    assert "<script>x</script>" in repr(fit)
    html = fit._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;x&lt;/script&gt;" in html
    assert "a &amp; b" in html


def test_the_glossary_says_that_a_t_statistic_may_stand_beside_the_p_value_of_a_permutation() -> None:
    contrasts = ts.analyze(ts.demo_table(), n_resamples=99).contrasts
    both = contrasts.filter(pl.col("method").str.contains("permutation") & pl.col("df").is_not_null())
    assert both["statistic"].null_count() < both.height
    meaning = {column.name: column.meaning for column in GLOSSARY}
    for name in ("statistic", "df", "p_value"):
        assert "permutation" in meaning[name]
