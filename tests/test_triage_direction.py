"""Direction of error: hand-computed values, a published study, simulated truths, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.inference import Options
from triagestats.results import TIDY_SCHEMA
from triagestats.triage.direction import errors_of_table

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

SCALE = ["A", "B", "C", "D"]
EXACT = 1e-12  # sums of a few fractions
FREE = "natural_free_text"
FORMATS = {
    "exact": "exact_structured",
    "forced": "natural_forced_letter",
    "natural": FREE,
    "stripped": "source_stripped",
}
COSTS = [[0, 1, 2, 4], [2, 0, 1, 2], [4, 2, 0, 1], [9, 5, 3, 0]]


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


@pytest.fixture(scope="module")
def study2(shared: Shared) -> ts.ResponseTable:
    names = tuple(FORMATS.values())
    responses = pl.concat([_read(shared(f"replication/study2/{name}_responses.csv")) for name in names])
    judged = [_read(shared(f"replication/study2/{name}_judgments.csv")) for name in names[2:]]
    return ts.ResponseTable(responses, levels=SCALE).with_judgments(pl.concat(judged))


@pytest.fixture(scope="module")
def published(shared: Shared) -> dict[str, Any]:
    entries = json.loads(shared("replication/study2/expected.json").read_text())["published"]
    return {entry["id"]: entry["recomputed"] for entry in entries}


@pytest.fixture(scope="module")
def by_rows(study2: ts.ResponseTable) -> ts.ErrorDirection:
    return ts.error_direction(study2, weights="row", by="case_type", n_resamples=99)


def _counts(errors: ts.ErrorDirection, measure: str, condition: str, stratum: str | None) -> float:
    row = errors.rates.filter(
        (pl.col("estimand") == measure)
        & (pl.col("condition") == condition)
        & pl.col("stratum").eq_missing(pl.lit(stratum, pl.String))
        & pl.col("model").is_null()
    ).row(0, named=True)
    return float(row["estimate"] * row["n_rows"])


def _rate(errors: ts.ErrorDirection, measure: str, **where: str | None) -> dict[str, Any]:
    frame = errors.tidy().filter(pl.col("estimand") == measure)
    for name, value in ({"model": None, "stratum": None} | where).items():
        frame = frame.filter(pl.col(name).eq_missing(pl.lit(value, pl.String)))
    assert frame.height == 1
    return frame.row(0, named=True)


def _crossed(n_scenarios: int = 8, seed: int = 3, n_reps: int = 2) -> pl.DataFrame:
    """Labels of two models under two conditions, with gold ranges."""
    rng = np.random.default_rng(seed)
    golds = ["A", "B", "C/D", "D", "B/C", "A/B"]
    rows = [
        (f"s{s}", model, condition, r, SCALE[rng.integers(4)], golds[s % len(golds)], "hi" if s % 2 else "lo")
        for s in range(n_scenarios)
        for model in ("m", "n")
        for condition in ("x", "y")
        for r in range(n_reps)
    ]
    names = ["scenario", "model", "condition", "repetition", "response", "gold", "kind"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_study2_counts_by_format_and_case_type(by_rows: ts.ErrorDirection, published: dict[str, Any]) -> None:
    for name, golden in published["s2_direction_other"].items():
        for measure in ("under", "over"):
            got = _counts(by_rows, f"{measure}_rate", FORMATS[name], None)
            assert got == pytest.approx(golden[measure], abs=1e-9)
            for stratum, pair in golden["by_case_type"].items():
                got = _counts(by_rows, f"{measure}_rate", FORMATS[name], stratum)
                assert got == pytest.approx(pair[measure == "over"], abs=1e-9)


def test_study2_natural_labels_of_both_judges(by_rows: ts.ErrorDirection, published: dict[str, Any]) -> None:
    golden = published["s2_direction"]
    row = _rate(by_rows, "under_rate", condition=FREE, contrast=None)
    assert row["n_rows"] == golden["n_labels"]
    assert row["n_missing"] == 36  # labels of 18 answers that are not scored
    for measure in ("under", "over"):
        assert _counts(by_rows, f"{measure}_rate", FREE, None) == pytest.approx(golden[measure], abs=1e-9)
        for stratum in ("with_data", "symptoms_only"):
            got = _counts(by_rows, f"{measure}_rate", FREE, stratum)
            assert got == pytest.approx(golden[stratum][measure], abs=1e-9)


def test_study2_right_answers_by_model(study2: ts.ResponseTable, published: dict[str, Any]) -> None:
    errors = ts.error_direction(study2, weights="row", n_resamples=99)
    for model, golden in published["s2_by_model"].items():
        row = _rate(errors, "correct_rate", model=model, condition=FORMATS["exact"], contrast=None)
        assert row["estimate"] * row["n_rows"] == pytest.approx(golden["exact"][0], abs=1e-9)
        row = _rate(errors, "correct_rate", model=model, condition=FREE, contrast=None)
        assert (row["estimate"], row["n_rows"] / 2) == pytest.approx(tuple(golden["natural"]), abs=1e-9)


def test_labels_weigh_by_their_number_and_responses_do_not() -> None:
    """Scenario s0: two labels under and right, one label right; s1 to s5: right."""
    table = ts.ResponseTable(
        {
            "scenario": ["s0", "s0", "s0", *[f"s{k}" for k in range(1, 6)]],
            "repetition": [1, 1, 2, 1, 1, 1, 1, 1],
            "judge": ["p", "q", "p", "p", "p", "p", "p", "p"],
            "response": ["A", "B", "B", "B", "B", "B", "B", "B"],
            "gold": ["B"] * 8,
        },
        levels=SCALE,
    )
    cases: dict[tuple[str, str], float] = {
        ("labels", "row"): 1 / 8,
        ("responses", "row"): 0.5 / 7,
        ("labels", "scenario"): (1 / 3) / 6,
        ("responses", "scenario"): 0.25 / 6,
    }
    for (pool, weights), expected in cases.items():
        errors = ts.error_direction(table, pool=pool, weights=weights)  # type: ignore[arg-type]
        assert errors.rates["estimate"][0] == pytest.approx(expected, abs=EXACT)


def test_rates_of_one_response_add_up_and_net_is_their_difference() -> None:
    errors = ts.error_direction(ts.ResponseTable(_crossed(), levels=SCALE), by="kind", n_resamples=99)
    wide = errors.rates.pivot(on="estimand", index=["condition", "model", "stratum"], values="estimate")
    total = wide["under_rate"] + wide["over_rate"] + wide["correct_rate"]
    np.testing.assert_allclose(total, 1, atol=EXACT)
    np.testing.assert_allclose(wide["over_rate"] - wide["under_rate"], wide["net_direction"], atol=EXACT)
    assert errors.contrasts is not None
    wide = errors.contrasts.pivot(on="estimand", index=["contrast", "model", "stratum"], values="estimate")
    np.testing.assert_allclose(wide["over_rate"] - wide["under_rate"], wide["net_direction"], atol=EXACT)


def test_right_answers_are_the_rates_of_analyze() -> None:
    table = ts.demo_table()
    fit = ts.analyze(table, n_resamples=99)
    errors = ts.error_direction(table, pool="responses", n_resamples=99)
    right = errors.rates.filter(pl.col("estimand") == "correct_rate")
    shown = ["condition", "model", "estimate", "std_error", "conf_low", "conf_high", "n_rows", "n_clusters"]
    assert right.select(shown).equals(fit.rates.select(shown))
    assert right["n_missing"].equals(fit.rates["n_missing"])


def test_contrasts_are_those_of_analyze_on_the_indicator() -> None:
    """The same table scored by 1[label < gold_low] gives the same contrast, interval and p-value."""
    frame = _crossed(12)
    errors = ts.error_direction(ts.ResponseTable(frame, levels=SCALE), interval="percentile", n_resamples=999)
    rank = {label: place for place, label in enumerate(SCALE)}
    low = [rank[gold[0]] for gold in frame["gold"]]
    under = [float(rank[label] < least) for label, least in zip(frame["response"], low, strict=True)]
    scored = frame.drop("response", "gold").with_columns(pl.Series("score", under))
    fit = ts.analyze(scored, higher_is_better=False, interval="percentile", n_resamples=999)
    assert fit.contrasts is not None
    assert errors.contrasts is not None
    own = errors.contrasts.filter(pl.col("estimand") == "under_rate").drop("estimand", "p_adjusted")
    assert own.equals(fit.contrasts.drop("estimand", "p_adjusted"))


def test_the_contrast_error_is_the_jackknife_by_cluster() -> None:
    frame = _crossed(10, seed=8)
    errors = ts.error_direction(ts.ResponseTable(frame, levels=SCALE), n_resamples=99)
    rank = {label: place for place, label in enumerate(SCALE)}
    over = [
        float(rank[label] > rank[gold[-1]]) for label, gold in frame.select("response", "gold").iter_rows()
    ]
    cells = (
        frame.with_columns(pl.Series("over", over))
        .group_by("scenario", "condition")
        .agg(pl.col("over").mean())
    )
    wide = cells.pivot(on="condition", index="scenario", values="over")
    d = (wide["y"] - wide["x"]).to_numpy()
    row = _rate(errors, "over_rate", contrast="y - x")
    assert row["estimate"] == pytest.approx(d.mean(), abs=EXACT)
    assert row["std_error"] == pytest.approx(d.std(ddof=1) / len(d) ** 0.5, rel=1e-10)
    assert row["df"] == 9


def test_cost_is_taken_from_the_nearest_end_of_the_range() -> None:
    """Labels A and D against B/C: costs of (B, A) and (C, D); C within the range costs nothing."""
    data = {
        "scenario": ["a", "b", "c", "d", "e", "f"],
        "response": ["A", "D", "C", "B", "A", "D"],
        "gold": ["B/C", "B/C", "B/C", "D", "D", "A"],
    }
    table = ts.ResponseTable(data, levels=SCALE)
    errors = ts.error_direction(table, cost=COSTS)
    row = _rate(errors, "error_cost")
    assert row["estimate"] == pytest.approx((2 + 1 + 0 + 5 + 9 + 4) / 6, abs=EXACT)
    assert row["method"] == "cluster jackknife t"  # a mean above 1 is no rate


def test_costs_as_mapping_frame_and_rows_agree() -> None:
    table = ts.ResponseTable(_crossed(), levels=SCALE)
    pairs = {
        (gold, label): COSTS[i][j] for i, gold in enumerate(SCALE) for j, label in enumerate(SCALE) if i != j
    }
    nested = {gold: dict(zip(SCALE, COSTS[i], strict=True)) for i, gold in enumerate(SCALE)}
    frame = pl.DataFrame(COSTS, schema=SCALE, orient="row")
    found = [
        ts.error_direction(table, cost=cost, n_resamples=99).rates
        for cost in (COSTS, np.array(COSTS), pairs, nested, frame)
    ]
    assert all(other.equals(found[0]) for other in found[1:])


def test_a_cost_frame_with_its_gold_column_is_pointed_out(refusal: Refusal) -> None:
    cost = pl.DataFrame({"gold": SCALE} | dict(zip(SCALE, COSTS, strict=True)))
    table = ts.ResponseTable(
        {"scenario": list("abcdef"), "response": list("ABCDBC"), "gold": list("BBCCDB")}, levels=SCALE
    )
    assert refusal(lambda: ts.error_direction(table, cost=cost)) == (
        "ArgumentError: `cost` has 'gold' beside the columns of the levels: order the rows as `levels`, "
        "['A', 'B', 'C', 'D'], and leave it out; or map (gold, label) to the cost"
    )


def test_a_unit_cost_is_the_rate_of_errors() -> None:
    table = ts.ResponseTable(_crossed(), levels=SCALE)
    unit = 1 - np.eye(4)
    errors = ts.error_direction(table, cost=unit, n_resamples=99)
    wide = errors.rates.pivot(on="estimand", index=["condition", "model"], values="estimate")
    np.testing.assert_allclose(wide["error_cost"], 1 - wide["correct_rate"], atol=EXACT)
    assert _rate(errors, "error_cost", condition="x", contrast=None)["method"] == "Korn-Graubard plus two"


def _unread() -> dict[str, list[Any]]:
    return {
        "scenario": list("abcdefgh"),
        "response": ["A", "D", "B", None, "B", "B", "B", "B"],
        "gold": ["B"] * 8,
        "status": ["", "", "", "unparsed", "", "", "", ""],
    }


def test_unreadable_answers_count_as_the_table_says() -> None:
    missing = ts.error_direction(ts.ResponseTable(_unread(), levels=SCALE))
    assert "unreadable_rate" not in missing.rates["estimand"]
    assert _rate(missing, "under_rate")["estimate"] == pytest.approx(1 / 7, abs=EXACT)
    assert _rate(missing, "under_rate")["n_missing"] == 1
    table = ts.ResponseTable(_unread(), levels=SCALE, unparsed="wrong")
    wrong = ts.error_direction(table, cost=COSTS)
    for measure, expected in (("under", 1), ("over", 1), ("correct", 5), ("unreadable", 1)):
        assert _rate(wrong, f"{measure}_rate")["estimate"] == pytest.approx(expected / 8, abs=EXACT)
    assert any(note.code == "unreadable_cost" for note in wrong.notes)
    assert _rate(wrong, "error_cost")["estimate"] == pytest.approx((2 + 2) / 7, abs=EXACT)
    priced = ts.error_direction(table, cost=COSTS, cost_unreadable=4)
    assert _rate(priced, "error_cost")["estimate"] == pytest.approx((2 + 2 + 4) / 8, abs=EXACT)
    assert wrong.glance().select("n_under", "n_correct", "n_over", "n_unreadable").row(0) == (1, 5, 1, 1)
    assert wrong.confusion.filter(pl.col("label").is_null()).select("direction", "n_labels").row(0) == (
        "unreadable",
        1,
    )


def test_missing_labels_are_counted_and_noted() -> None:
    columns: dict[str, Any] = {
        "scenario": [*"abcdef", *"abcdef"],
        "repetition": [1] * 6 + [2] * 6,
        "response": [*"ABCDBC", "A", None, None, "D", None, "C"],
        "gold": list("BBCCDB") * 2,
        "error": [None] * 7 + ["unparsed", "unparsed", None, "timeout", None],
    }
    errors = ts.error_direction(ts.ResponseTable(columns, levels=SCALE), n_resamples=99)
    assert errors.glance()["n_missing"][0] == 3
    messages = [note.message for note in errors.notes if note.code == "missing"]
    assert messages == [
        "2 rows could not be read and have no score: missing; with `unparsed='wrong'` they count as wrong.",
        "1 row has no label that counts: missing.",
    ]
    assert "n_missing" in repr(errors)
    wrong = ts.error_direction(ts.ResponseTable(columns, levels=SCALE, unparsed="wrong"), n_resamples=99)
    assert wrong.glance().select("n_missing", "n_unreadable").row(0) == (1, 2)


def test_rows_without_gold_are_left_out_and_said() -> None:
    data = _unread() | {"status": [""] * 8, "score": [0, 0, 1, 1, 1, 1, 1, 1]}
    data["gold"] = ["B"] * 7 + [None]
    errors = ts.error_direction(ts.ResponseTable(data, levels=SCALE))
    assert _rate(errors, "under_rate")["n_rows"] == 6
    assert [note.message for note in errors.notes if note.code == "no_direction"] == [
        "2 rows have a score but no label or no gold, and so no direction: left out."
    ]


def test_reversing_the_scale_swaps_under_and_over() -> None:
    frame = _crossed()
    up = ts.error_direction(ts.ResponseTable(frame, levels=SCALE), n_resamples=99)
    down = ts.error_direction(ts.ResponseTable(frame, levels=SCALE[::-1]), n_resamples=99)
    columns = ["condition", "contrast", "model", "estimate", "conf_low", "conf_high", "p_value"]
    for first, second in (("under_rate", "over_rate"), ("over_rate", "under_rate")):
        one = up.tidy().filter(pl.col("estimand") == first).select(columns)
        assert one.equals(down.tidy().filter(pl.col("estimand") == second).select(columns))


def test_row_order_and_threads_change_nothing() -> None:
    frame = _crossed()
    first = ts.error_direction(ts.ResponseTable(frame, levels=SCALE), cost=COSTS, n_threads=1, n_resamples=99)
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    second = ts.error_direction(
        ts.ResponseTable(mixed, levels=SCALE), cost=COSTS, n_threads=2, n_resamples=99
    )
    assert first.tidy().equals(second.tidy())
    assert first.confusion.equals(second.confusion)


def test_confusion_counts_every_label_of_the_scale() -> None:
    errors = ts.error_direction(ts.ResponseTable(_crossed(), levels=SCALE), n_resamples=99)
    confusion = errors.confusion
    assert confusion.height == 2 * 3 * 6 * 4  # conditions, pooled and two models, golds, labels
    pooled = confusion.filter(pl.col("model").is_null())
    assert pooled["n_labels"].sum() == 64
    by_direction = (
        pooled.filter(pl.col("condition") == "x").group_by("direction").agg(pl.col("n_labels").sum())
    )
    counts = dict(by_direction.iter_rows())
    for name in ("under", "over", "correct"):
        row = _rate(
            ts.error_direction(ts.ResponseTable(_crossed(), levels=SCALE), weights="row", n_resamples=99),
            f"{name}_rate",
            condition="x",
            contrast=None,
        )
        assert row["estimate"] == pytest.approx(counts[name] / 32, abs=EXACT)


def test_confusion_shares_a_response_among_its_judges(study2: ts.ResponseTable) -> None:
    confusion = ts.error_direction(study2, n_resamples=99).confusion.filter(pl.col("model").is_null())
    sums = dict(
        confusion.group_by("condition").agg(pl.struct(pl.col("n_labels", "n_responses").sum())).iter_rows()
    )
    assert sums[FREE]["n_labels"] == 1404
    assert sums[FREE]["n_responses"] == pytest.approx(702, abs=1e-9)


def test_a_simulated_shift_is_found() -> None:
    """Condition y is one level lower in a third of the answers: under rises by about 1/3, over does not."""
    rng = np.random.default_rng(5)
    rows = []
    for s in range(60):
        for condition in ("x", "y"):
            for r in range(4):
                lower = condition == "y" and rng.random() < 1 / 3
                rows.append((f"s{s:02}", condition, r, "B" if lower else "C", "C"))
    names = ["scenario", "condition", "repetition", "response", "gold"]
    table = ts.ResponseTable(pl.DataFrame(rows, schema=names, orient="row"), levels=SCALE)
    errors = ts.error_direction(table, n_resamples=999)
    row = _rate(errors, "under_rate", contrast="y - x")
    assert row["conf_low"] < 1 / 3 < row["conf_high"]
    assert row["verdict"] == "worse"
    assert row["p_value"] < 0.001
    assert _rate(errors, "over_rate", contrast="y - x")["status"] == "degenerate"
    net = _rate(errors, "net_direction", contrast="y - x")
    assert net["estimate"] == -row["estimate"]
    assert net["verdict"] is None


def test_few_clusters_and_levels_are_those_of_analyze() -> None:
    table = ts.ResponseTable(_crossed(4), levels=SCALE)
    errors = ts.error_direction(table, n_resamples=99)
    assert set(errors.rates["status"]) == {"few_clusters"}
    many = ts.error_direction(ts.ResponseTable(_crossed(20), levels=SCALE), n_resamples=99)
    wide, narrow = (many.with_level(level).rates for level in (0.99, 0.8))
    assert (wide["conf_low"] <= narrow["conf_low"]).all()
    assert many.with_level(0.99).conf_level == 0.99


def test_custom_estimands_and_two_cluster_columns() -> None:
    frame = _crossed(12).with_columns(
        pl.when((pl.col("condition") == "y") & (pl.col("repetition") == 1))
        .then(pl.lit("z"))
        .otherwise("condition")
        .alias("condition")
    )
    table = ts.ResponseTable(frame, levels=SCALE)
    errors = ts.error_direction(table, estimands=[ts.Gap("x", ["y", "z"])], n_resamples=99)
    means = {
        level: _rate(errors, "under_rate", condition=level, contrast=None)["estimate"] for level in "xyz"
    }
    row = _rate(errors, "under_rate", contrast="x - mean(y, z)")
    assert row["estimate"] == pytest.approx(means["x"] - (means["y"] + means["z"]) / 2, abs=EXACT)
    crossed = ts.error_direction(table.with_cluster(("scenario", "model")), n_resamples=99)
    pooled = crossed.rates.filter(pl.col("model").is_null())
    assert set(pooled["status"]) == {"few_clusters"}  # two models


def test_one_condition_has_no_contrasts() -> None:
    errors = ts.error_direction(ts.ResponseTable(_unread(), levels=SCALE))
    assert errors.contrasts is None
    assert errors.tidy().equals(errors.rates)


def test_adjustment_is_within_one_measure() -> None:
    errors = ts.error_direction(ts.ResponseTable(_crossed(12), levels=SCALE), n_resamples=99)
    assert errors.contrasts is not None
    single = errors.contrasts.filter(pl.col("model").is_not_null() & (pl.col("estimand") == "under_rate"))
    assert (
        single["p_adjusted"].to_list()
        == ts.adjust(single["p_value"].to_list()).tidy()["p_adjusted"].to_list()
    )


def test_the_result_is_a_tidy_frame_and_plain_values() -> None:
    errors = ts.error_direction(ts.ResponseTable(_crossed(), levels=SCALE), cost=COSTS, n_resamples=99)
    assert errors.tidy().schema == TIDY_SCHEMA
    assert errors.glance().height == 1
    assert json.loads(json.dumps(errors.to_dict()))["settings"]["pool"] == "labels"
    text = repr(errors)
    assert text.startswith("Direction of error: every label counts, 0.95 intervals, models pooled")
    assert "net_direction" in text


def test_errors_of_an_analysis() -> None:
    options = Options("auto", 99, 1, 1, None, higher_is_better=True)
    asked: dict[str, Any] = {"reference": None, "estimands": None, "match": "cell", "weights": "scenario"}
    found = errors_of_table(ts.demo_table(), **asked, options=options)
    assert found is not None
    frame = found.read(0.95)
    assert frame.schema == TIDY_SCHEMA
    assert "correct_rate" not in frame["estimand"]
    own = ts.error_direction(ts.demo_table(), pool="responses", n_resamples=99, seed=1)
    assert frame.equals(own.tidy().filter(pl.col("estimand") != "correct_rate"))
    plain = ts.ResponseTable({"scenario": ["a", "b"], "score": [1, 0]})
    assert errors_of_table(plain, **asked, options=options) is None
    unlabelled = {"scenario": ["a", "b"], "response": [None, None], "gold": ["A", "B"], "score": [1, 0]}
    table = ts.ResponseTable(unlabelled, levels=SCALE)
    assert errors_of_table(table, **asked, options=options) is None


@pytest.mark.parametrize(
    ("data", "levels", "message"),
    [
        (
            {"scenario": ["a", "b"], "response": ["A", "B"], "gold": ["A", "A"]},
            None,
            (
                "DesignError: the labels have no order, so that nothing is under or over; give the scale "
                "from least to most urgent with `levels=[...]` where the table is made"
            ),
        ),
        (
            {"scenario": ["a", "b"], "score": [1, 0], "gold": ["A", "A"]},
            SCALE,
            (
                "DesignError: the direction of an error needs labels and gold, and the table has no "
                "`response`; name its column with `response=` where the table is made"
            ),
        ),
        (
            {"scenario": ["a", "b"], "score": [1, 0], "response": ["A", "A"]},
            SCALE,
            (
                "DesignError: the direction of an error needs labels and gold, and the table has no `gold`; "
                "name its column with `gold=` where the table is made"
            ),
        ),
        (
            {"scenario": ["a", "b"], "response": ["A", "B"], "gold": ["A", "E"]},
            SCALE,
            (
                "DataError: `gold` has labels outside `levels`, ['A', 'B', 'C', 'D']: 'E' (1 row); add them "
                "to `levels`, or correct the gold"
            ),
        ),
        (
            {"scenario": ["a", "b"], "response": [None, None], "gold": ["A", "B"], "score": [1, 0]},
            SCALE,
            "DesignError: none of the 2 rows has a label that counts and gold to compare it with",
        ),
    ],
)
def test_tables_without_direction_are_refused(
    refusal: Refusal, data: dict[str, list[Any]], levels: list[str] | None, message: str
) -> None:
    assert refusal(lambda: ts.error_direction(data, levels=levels)) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pool": "judges"}, "ArgumentError: `pool` must be one of 'labels', 'responses'; got 'judges'"),
        (
            {"levels": SCALE},
            "ArgumentError: `levels` cannot be given with a ResponseTable; give them where the table is made",
        ),
        (
            {"cost": [[0, 1], [1, 0]]},
            (
                "ArgumentError: `cost` must have one row and one column a level, 4 x 4: rows are gold, "
                "columns the label; got 2 x 2"
            ),
        ),
        (
            {"cost": [[0, 1, 1, 1], [1, 0, 1, 1], [1, -2, 0, 1], [1, 1, 1, 0]]},
            "ArgumentError: `cost` is -2 for the label 'B' where 'C' is right; a cost is 0 or more",
        ),
        (
            {"cost": {("A", "B"): 1}},
            (
                "ArgumentError: `cost` is missing for (gold, label) ('A', 'C'), ('A', 'D'), ('B', 'A'), "
                "('B', 'C'), ('B', 'D') and 6 more; give a cost for every wrong label"
            ),
        ),
        (
            {"cost": {("A", "E"): 1}},
            "ArgumentError: `cost` names 'E'; choose from the levels ['A', 'B', 'C', 'D']",
        ),
        (
            {"cost": {"A": 1}},
            (
                "ArgumentTypeError: `cost` must map (gold, label) to a number, or gold to a mapping from "
                "label to a number; got 'A': 1"
            ),
        ),
        (
            {"cost": pl.DataFrame(COSTS, schema=SCALE[::-1], orient="row")},
            (
                "ArgumentError: `cost` has its columns in the order ['D', 'C', 'B', 'A']; give rows and "
                "columns in that of `levels`, ['A', 'B', 'C', 'D']"
            ),
        ),
        (
            {"cost_unreadable": -1},
            "ArgumentError: `cost_unreadable` must be finite and 0 or more; got -1",
        ),
    ],
)
def test_bad_arguments_are_refused(refusal: Refusal, arguments: dict[str, Any], message: str) -> None:
    table = ts.ResponseTable(_crossed(), levels=SCALE)
    assert refusal(lambda: ts.error_direction(table, **arguments)) == message


def test_an_absent_column_is_refused(refusal: Refusal) -> None:
    table = ts.ResponseTable(_crossed(), levels=SCALE)
    said = refusal(lambda: ts.error_direction(table, by="ward"))
    assert said.startswith("ArgumentError: `by` names 'ward', which the table does not have; choose from [")


def test_costs_of_right_labels_are_noted() -> None:
    cost = np.array(COSTS) + np.eye(4)
    errors = ts.error_direction(ts.ResponseTable(_crossed(), levels=SCALE), cost=cost, n_resamples=99)
    assert any(note.code == "cost_of_right_labels" for note in errors.notes)
