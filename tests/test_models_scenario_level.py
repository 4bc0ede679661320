"""Regressions over scenarios: against statsmodels, refits without a row, and subset means."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.models.least_squares import fit, inflation, split_dependent

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]
Array = np.ndarray[Any, np.dtype[np.float64]]

EXACT = 1e-12
SOLVED = 1e-9  # two ways to solve the same equations
GAP = ts.Gap("alpha", ["beta", "gamma"])
VCOVS = ("HC1", "HC2", "HC3")


def table_of(values: Array, columns: dict[str, Any], repetitions: int = 1) -> ts.ResponseTable:
    """Scenarios whose contrast b - a is `values`, with attributes as columns."""
    n = len(values)
    rows = {
        "scenario": [f"s{s:03}" for s in range(n) for _ in range(2 * repetitions)],
        "condition": ["a", "b"] * (n * repetitions),
        "repetition": [r for _ in range(n) for r in range(repetitions) for _ in range(2)],
        "score": [v for value in values for _ in range(repetitions) for v in (0.0, float(value))],
    }
    carried = {name: [v for v in column for _ in range(2 * repetitions)] for name, column in columns.items()}
    return ts.ResponseTable(pl.DataFrame(rows | carried))


@pytest.fixture(scope="module")
def arrays() -> tuple[Array, dict[str, Any]]:
    """Forty scenarios: a value whose spread grows, a count, a flag and a label."""
    rng = np.random.default_rng(11)
    words = rng.integers(80, 400, 40).astype(float)
    flag = rng.random(40) < 0.4
    kind = rng.choice(["x", "y", "z"], 40)
    value = 0.1 + 0.002 * words - 0.2 * flag + rng.normal(size=40) * words / 400
    return value, {"words": words, "flag": flag, "kind": kind, "pair": np.arange(40) // 4}


@pytest.fixture(scope="module")
def design_matrix(arrays: tuple[Array, dict[str, Any]]) -> Array:
    columns = arrays[1]
    return np.column_stack(
        [np.ones(40), columns["words"], columns["flag"], columns["kind"] == "y", columns["kind"] == "z"]
    ).astype(float)


TERMS = ["(Intercept)", "words", "flag", "kind[T.y]", "kind[T.z]"]


@pytest.mark.parametrize("vcov", VCOVS)
def test_the_joint_model_is_that_of_statsmodels(
    arrays: tuple[Array, dict[str, Any]], design_matrix: Array, vcov: Any
) -> None:
    sm = pytest.importorskip("statsmodels.api")
    value, columns = arrays
    found = ts.scenario_regression(table_of(value, columns), ["words", "flag", "kind"], vcov=vcov)
    other = sm.OLS(value, design_matrix).fit().get_robustcov_results(vcov, use_t=True)
    rows = found.tidy().filter(pl.col("method").str.starts_with("joint"))
    assert rows["term"].to_list() == TERMS
    for column, expected in (
        ("estimate", other.params), ("std_error", other.bse), ("statistic", other.tvalues),
        ("p_value", other.pvalues), ("conf_low", other.conf_int()[:, 0]),
        ("conf_high", other.conf_int()[:, 1]),
    ):  # fmt: skip
        assert rows[column].to_numpy() == pytest.approx(expected, rel=SOLVED)
    assert rows["df"].to_list() == [35.0] * 5
    assert found.full.fit.r_squared == pytest.approx(other.rsquared, rel=SOLVED)
    wald = other.f_test(np.eye(5)[1:])
    test = found.joint_test()
    assert (test.statistic, test.p_value) == pytest.approx(
        (float(wald.fvalue), float(wald.pvalue)), rel=SOLVED
    )
    of_kind = other.f_test(np.eye(5)[3:])
    assert found.joint_test("kind").p_value == pytest.approx(float(of_kind.pvalue), rel=SOLVED)
    contrast = found.contrast_of({"kind[T.y]": 1, "kind[T.z]": -1})
    between = other.t_test(np.array([0, 0, 0, 1, -1]))
    assert contrast.estimate == pytest.approx(float(between.effect[0]), rel=SOLVED)
    assert contrast.p_value == pytest.approx(float(between.pvalue), rel=SOLVED)


@pytest.mark.parametrize("name", ["words", "flag"])
def test_each_attribute_alone(arrays: tuple[Array, dict[str, Any]], name: str) -> None:
    sm = pytest.importorskip("statsmodels.api")
    value, columns = arrays
    found = ts.scenario_regression(table_of(value, columns), ["words", "flag", "kind"])
    x = np.column_stack([np.ones(40), columns[name]]).astype(float)
    other = sm.OLS(value, x).fit().get_robustcov_results("HC3", use_t=True)
    row = found.tidy().filter((pl.col("term") == name) & pl.col("method").str.starts_with("alone"))
    assert row.select("estimate", "std_error", "df", "p_value").row(0) == pytest.approx(
        (other.params[1], other.bse[1], 38, other.pvalues[1]), rel=SOLVED
    )
    only = ts.scenario_regression(table_of(value, columns), name)
    assert only.joint is None
    assert only.tidy()["p_value"][1] == pytest.approx(row["p_value"][0], rel=SOLVED)
    assert only.glance()["p_value"][0] == pytest.approx(row["p_value"][0], rel=SOLVED)


@pytest.mark.parametrize("vcov", ["CRV1", "CRV3"])
def test_coarser_clusters(arrays: tuple[Array, dict[str, Any]], design_matrix: Array, vcov: Any) -> None:
    """CRV1 as statsmodels has it; CRV3 by leaving clusters out; both with t(G - 1)."""
    sm = pytest.importorskip("statsmodels.api")
    value, columns = arrays
    pair = columns["pair"]
    table = table_of(value, columns).with_cluster("pair")
    found = ts.scenario_regression(table, ["words", "flag", "kind"], vcov=vcov)
    full = sm.OLS(value, design_matrix).fit()
    if vcov == "CRV1":
        expected = full.get_robustcov_results("cluster", groups=pair, use_t=True).cov_params()
    else:
        without = np.stack([
            np.linalg.lstsq(design_matrix[pair != g], value[pair != g], rcond=None)[0] for g in range(10)
        ])  # fmt: skip
        expected = 0.9 * (without - full.params).T @ (without - full.params)
    assert found.full.fit.vcov == pytest.approx(expected, rel=1e-7)
    rows = found.tidy()
    assert (rows["df"].unique().to_list(), rows["n_clusters"].unique().to_list()) == ([9.0], [10])
    assert rows["method"][0] == f"alone; least squares over scenarios, {vcov} by pair, t(9)"
    default = ts.scenario_regression(table, "words")
    assert default.vcov == "CRV3"
    asked = ts.scenario_regression(table, "words", vcov="HC3")
    assert "independence" in [note.code for note in asked.notes]


def test_hc3_is_the_sum_of_squared_moves_without_each_row() -> None:
    rng = np.random.default_rng(0)
    x, y = np.column_stack([np.ones(12), rng.normal(size=12)]), rng.normal(size=12)
    found = fit(x, y, vcov="HC3", clusters=np.arange(12))
    kept = ~np.eye(12, dtype=bool)
    without = np.stack([np.linalg.lstsq(x[rows], y[rows], rcond=None)[0] for rows in kept])
    moves = without - found.coefficients
    assert found.vcov == pytest.approx(moves.T @ moves, rel=SOLVED)


def test_published_subset_gaps_are_coefficients(shared: Shared) -> None:
    """The intercept is the gap of the reference, a coefficient the difference of two subsets."""
    responses = pl.read_csv(shared("replication/narrativeshield/responses.csv.gz"))
    table = ts.ResponseTable(responses.filter(pl.col("condition") == "B1").drop("condition"))
    questions = pl.read_csv(shared("replication/narrativeshield/questions.csv")).drop("gold")
    expected = json.loads(shared("replication/narrativeshield/expected.json").read_text())
    subsets = {name: part["gap"] for name, part in expected["subgroup_gap_B1_mean_of_7"].items()}
    found = ts.scenario_regression(
        table, ["step", "ask_type_derived", "words_beta"], estimand=GAP, scenarios=questions
    )
    rows = found.tidy().filter(pl.col("method").str.starts_with("alone"))
    estimate = {(row["term"], n): row["estimate"] for n, row in enumerate(rows.iter_rows(named=True))}
    assert estimate["(Intercept)", 0] == pytest.approx(subsets["step=step1"], abs=EXACT)
    assert estimate["step[T.step2&3]", 1] == pytest.approx(
        subsets["step=step2&3"] - subsets["step=step1"], abs=EXACT
    )
    reference = subsets["ask_type_derived=cause_or_finding"]
    for term, place in (("diagnosis", 3), ("investigation", 4), ("management", 5), ("other", 6)):
        assert estimate[f"ask_type_derived[T.{term}]", place] == pytest.approx(
            subsets[f"ask_type_derived={term}"] - reference, abs=EXACT
        )
    pooled = ts.analyze(table, estimands=[GAP], n_resamples=99).contrasts
    assert pooled is not None
    gap = pooled.filter((pl.col("estimand") == "gap") & pl.col("model").is_null())["estimate"][0]
    assert found.scenarios["value"].mean() == pytest.approx(gap, abs=EXACT)
    one = ts.scenario_regression(table, "step", estimand=GAP, scenarios=questions, model="llama31")
    assert one.scenarios["value"].mean() == pytest.approx(expected["cells"]["B1/llama31"]["gap"], abs=1e-9)
    assert one.tidy()["model"].unique().to_list() == ["llama31"]


def test_cells_are_averaged_as_everywhere() -> None:
    """Judges, then repetitions, then variants, then models: not rows."""
    frame = pl.DataFrame(
        [
            ("s1", "m", "a", 1, "j", 0.0), ("s1", "m", "b", 1, "j", 1.0), ("s1", "m", "b", 2, "j", 0.0),
            ("s1", "m", "b", 2, "k", 1.0), ("s1", "n", "a", 1, "j", 0.0), ("s1", "n", "b", 1, "j", 0.0),
            ("s2", "m", "a", 1, "j", 0.0), ("s2", "m", "b", 1, "j", 1.0), ("s2", "n", "a", 1, "j", 1.0),
            ("s2", "n", "b", 1, "j", 1.0), ("s3", "m", "a", 1, "j", 0.0), ("s3", "m", "b", 1, "j", 1.0),
            ("s4", "m", "a", 1, "j", 0.0),
        ],
        schema=["scenario", "model", "condition", "repetition", "judge", "score"], orient="row",
    )  # fmt: skip
    words = {"scenario": ["s1", "s2", "s3", "s4"], "words": [10, 20, 25, 40]}
    found = ts.scenario_regression(ts.ResponseTable(frame), "words", scenarios=words, vcov="HC1")
    # s1: m (1 + (0 + 1) / 2) / 2 = .75, n 0; s2: m 1, n 0; s3: m 1 alone; s4 has no b.
    assert found.scenarios.select("scenario", "value").rows() == [("s1", 0.375), ("s2", 0.5), ("s3", 1.0)]
    assert found.n_missing == 1
    assert {"unmatched", "partial"} <= {note.code for note in found.notes}


def test_row_order_and_repetitions_change_nothing(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    first = ts.scenario_regression(table_of(value, columns), ["words", "kind"])
    for repetitions in (1, 3):
        frame = table_of(value, columns, repetitions).frame.sample(fraction=1, shuffle=True, seed=4)
        again = ts.scenario_regression(ts.ResponseTable(frame), ["words", "kind"])
        for column in ("estimate", "std_error", "p_value"):
            assert again.tidy()[column].to_list() == pytest.approx(first.tidy()[column].to_list(), rel=1e-8)


def test_units_scale_and_shifts_change_the_constant_alone(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    first = ts.scenario_regression(table_of(value, columns), ["words", "flag"]).tidy()
    shifted = columns | {"words": columns["words"] / 1000 + 2_000}
    second = ts.scenario_regression(table_of(value + 0.5, shifted), ["words", "flag"]).tidy()
    for term, factor in (("words", 1000.0), ("flag", 1.0)):
        a, b = (frame.filter(pl.col("term") == term) for frame in (first, second))
        assert b["estimate"].to_list() == pytest.approx((a["estimate"] * factor).to_list(), rel=1e-6)
        assert b["p_value"].to_list() == pytest.approx(a["p_value"].to_list(), rel=1e-5)


def test_standardised_attributes(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    table = table_of(value, columns)
    names = ["words", "flag", "kind"]
    plain, scaled, both = (
        ts.scenario_regression(table, names, standardise=how).tidy() for how in ("no", "attributes", "all")
    )  # type: ignore[arg-type]
    spread = columns["words"].std(ddof=1)
    by = {"words": spread, "flag": 1.0, "kind[T.y]": 1.0, "kind[T.z]": 1.0}
    for a, b, c in zip(plain.to_dicts(), scaled.to_dicts(), both.to_dicts(), strict=True):
        if a["term"] in by:
            assert b["estimate"] == pytest.approx(a["estimate"] * by[a["term"]], rel=1e-8)
            assert c["estimate"] == pytest.approx(b["estimate"] / value.std(ddof=1), rel=1e-8)
            assert (b["p_value"], c["p_value"]) == pytest.approx((a["p_value"],) * 2, rel=1e-7)
    fitted = ts.scenario_regression(table, names, standardise="attributes")
    (note,) = (note for note in fitted.notes if note.code == "standardised")
    assert (
        note.message
        == f"words is in standard deviations: mean {columns['words'].mean():.4g}, SD {spread:.4g}."
    )


def test_collinear_columns_are_dropped_by_name(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    words = columns["words"]
    table = table_of(value, columns | {"total": words + 5 * columns["flag"], "same": np.full(40, 0.1)})
    found = ts.scenario_regression(table, ["words", "flag", "total", "same"])
    rows = found.tidy().filter(pl.col("method").str.starts_with("joint"))
    assert rows.select("term", "status", "reason").rows()[3:] == [
        ("total", "undefined", "it is a combination of words, flag"),
        ("same", "undefined", "it is the same in all scenarios that are used"),
    ]
    assert rows["estimate"].to_list()[3:] == [None, None]
    less = ts.scenario_regression(table, ["words", "flag"])
    assert rows["estimate"].to_list()[:3] == pytest.approx(list(less.full.fit.coefficients), rel=SOLVED)
    said = [str(note) for note in found.notes if note.code == "collinear"]
    assert said[0] == "total is dropped: it is a combination of words, flag."


def test_inflation_is_that_of_statsmodels_and_of_determinants() -> None:
    influence = pytest.importorskip("statsmodels.stats.outliers_influence")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(50, 3)) @ np.array([[1, 0.9, 0], [0, 0.4, 0.3], [0, 0, 1]])
    expected = [influence.variance_inflation_factor(np.column_stack([np.ones(50), x]), i) for i in (1, 2, 3)]
    assert inflation(x, [[0], [1], [2]]) == pytest.approx(expected, rel=SOLVED)
    r = np.corrcoef(x, rowvar=False)
    gvif = np.linalg.det(r[:2, :2]) * 1 / np.linalg.det(r)
    assert inflation(x, [[0, 1], [2]]) == pytest.approx([gvif**0.5, gvif], rel=SOLVED)


def test_high_inflation_is_named(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    rng = np.random.default_rng(2)
    table = table_of(value, columns | {"tokens": columns["words"] * 1.3 + rng.normal(size=40)})
    found = ts.scenario_regression(table, ["words", "tokens", "flag"])
    rows = found.tidy().filter(pl.col("status") == "warning")
    assert rows["term"].to_list() == ["words", "tokens"]
    assert rows["reason"][0].startswith("the other attributes predict 'words': variance inflation")
    assert [note.code for note in found.notes].count("inflation") == 2


@pytest.mark.parametrize("vcov", ["HC2", "HC3", "CRV3"])
def test_a_level_of_one_scenario_has_no_error(arrays: tuple[Array, dict[str, Any]], vcov: Any) -> None:
    """The others keep the errors that they have without that scenario."""
    value, columns = arrays
    kind = columns["kind"].astype(object).copy()
    kind[7] = "only"
    found = ts.scenario_regression(table_of(value, columns | {"kind": kind}), ["words", "kind"], vcov=vcov)
    joint = found.tidy().filter(pl.col("method").str.starts_with("joint"))
    assert joint.filter(pl.col("std_error").is_not_null())["term"].to_list() == ["words"]  # 'only' is first
    between = found.contrast_of({"kind[T.y]": 1, "kind[T.x]": -1})
    kind[kind == "only"] = "zzz"
    found = ts.scenario_regression(table_of(value, columns | {"kind": kind}), ["words", "kind"], vcov=vcov)
    rows = found.tidy().filter(pl.col("method").str.starts_with("joint")).to_dicts()
    (only,) = (row for row in rows if row["std_error"] is None)
    assert only["term"] == "kind[T.zzz]"
    assert (only["status"], only["p_value"]) == ("undefined", None)
    assert "scenario 's007'" in only["reason"]
    rest = np.arange(40) != 7
    less = table_of(value[rest], {"words": columns["words"][rest], "kind": kind[rest]})
    without = ts.scenario_regression(less, ["words", "kind"], vcov=vcov)
    expected = without.tidy().filter(pl.col("method").str.starts_with("joint"))["std_error"].to_list()
    shrink = np.sqrt((39 / 40) / (38 / 39)) if vcov == "CRV3" else 1.0
    errors = [row["std_error"] for row in rows if row is not only]
    assert errors == pytest.approx([shrink * error for error in expected], rel=1e-7)
    assert found.joint_test().undefined is not None
    assert found.contrast_of({"kind[T.zzz]": 1}).p_value is None
    same = found.contrast_of({"kind[T.y]": 1})  # x is the reference now
    assert (between.estimate, between.p_value) == pytest.approx((same.estimate, same.p_value), rel=SOLVED)


def test_perfect_fits_have_no_error() -> None:
    words = np.arange(12.0)
    found = ts.scenario_regression(table_of(0.25 + 0.5 * words, {"words": words}), "words")
    row = found.tidy().row(1, named=True)
    assert row["estimate"] == pytest.approx(0.5, abs=EXACT)
    assert (row["std_error"], row["p_value"], row["status"]) == (None, None, "degenerate")
    assert found.joint_test().undefined == "The attributes predict the values without error."
    flat = ts.scenario_regression(table_of(np.zeros(12), {"words": words}), "words")
    assert flat.tidy()["status"].to_list() == ["degenerate"] * 2
    assert flat.glance()["r_squared"][0] is None or np.isnan(flat.glance()["r_squared"][0])


def test_missing_attributes_are_left_out_and_counted(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    words = pl.Series([None if s < 3 else w for s, w in enumerate(columns["words"])])
    kind = pl.Series(["" if s == 5 else k for s, k in enumerate(columns["kind"])])
    scenarios = pl.DataFrame(
        {"item": [f"s{s:03}" for s in range(39)], "n_words": words[:39], "type": kind[:39]}
    )
    found = ts.scenario_regression(table_of(value, {}), ["n_words", "type"], scenarios=scenarios)
    assert (found.scenarios.height, found.n_missing) == (35, 5)
    (note,) = (note for note in found.notes if note.code == "missing")
    assert note.message == "5 of 40 scenarios lack an attribute (n_words in 4, type in 2), and are left out."
    rest = np.array([s >= 3 and s != 5 and s < 39 for s in range(40)])
    kept = {"n_words": columns["words"][rest], "type": columns["kind"][rest]}
    expected = ts.scenario_regression(table_of(value[rest], kept), ["n_words", "type"])
    assert found.tidy()["p_value"].to_list() == pytest.approx(expected.tidy()["p_value"].to_list(), rel=1e-8)


def test_attributes_are_found_by_their_own_names_and_by_task() -> None:
    """A role's column keeps its name; with several tasks a scenario is task/item."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        [(task, f"q{q}", arm, float(rng.random()), "us" if task == "t1" else "uk") for task in ("t1", "t2")
         for q in range(6) for arm in ("a", "b")],
        schema=["dataset", "question_id", "format", "score", "region"], orient="row",
    )  # fmt: skip
    table = ts.ResponseTable(frame)
    found = ts.scenario_regression(table, ["dataset"])
    assert found.tidy()["term"].to_list() == ["(Intercept)", "dataset[T.t2]"]
    second = pl.DataFrame(
        {"dataset": ["t1"] * 6 + ["t2"] * 6, "question_id": [f"q{q}" for q in range(6)] * 2, "n": range(12)}
    )
    joined = ts.scenario_regression(table, "n", scenarios=second)
    assert joined.scenarios["n"].to_list() == list(range(12))
    assert joined.scenarios["scenario"][0] == "t1/q0"


def test_orders_of_enums_set_the_reference(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    frame = table_of(value, columns).frame.with_columns(pl.col("kind").cast(pl.Enum(["z", "y", "x"])))
    found = ts.scenario_regression(ts.ResponseTable(frame), "kind")
    assert found.tidy()["term"].to_list() == ["(Intercept)", "kind[T.y]", "kind[T.x]"]
    assert "The reference of kind is 'z', the first of its levels." in map(str, found.notes)


def test_estimands_by_pair_and_by_default(refusal: Refusal) -> None:
    rng = np.random.default_rng(3)
    rows = [(f"s{s}", v, float(rng.random()), s) for s in range(9) for v in ("x", "y", "z")]
    table = ts.ResponseTable(pl.DataFrame(rows, schema=["scenario", "voice", "score", "n"], orient="row"))
    pair = ts.scenario_regression(table, "n", estimand=("z", "y"))
    named = ts.scenario_regression(table, "n", estimand=ts.Difference("z", "y"))
    assert pair.tidy().equals(named.tidy())
    assert pair.contrast == "z - y"
    needed = refusal(lambda: ts.scenario_regression(table, "n"))
    assert "`estimand` is needed, as the table has 2 contrasts" in needed
    level = ts.scenario_regression(table, "n", estimand=ts.Mean("x"))
    assert level.scenarios["value"].to_list() == [row[2] for row in rows if row[1] == "x"]
    worst = ts.scenario_regression(table, "n", estimand=ts.AnchoringGap("x", ["y", "z"]))
    assert "not_linear" in [note.code for note in worst.notes]
    plain = ts.ResponseTable(table.frame.filter(pl.col("condition") == "x").drop("condition"))
    assert ts.scenario_regression(plain, "n").contrast == "mean(all)"


def test_results_print_convert_and_pickle(arrays: tuple[Array, dict[str, Any]]) -> None:
    value, columns = arrays
    found = ts.scenario_regression(table_of(value, columns), ["words", "kind"])
    lines = repr(found).splitlines()
    assert lines[0] == "b - a by scenario (mean over models), 40 scenarios, HC3"
    assert lines[1].startswith("  words (alone): ")
    assert "  note: HC3: squared residuals over (1 - leverage)^2; t(n - k)." in lines
    assert "p-values of 2 attributes are not adjusted." in repr(found)
    assert found.glance().height == 1
    assert json.loads(json.dumps(found.to_dict()))["settings"]["n_scenarios"] == 40
    assert found.to_dict()["inflation"].keys() == {"words", "kind"}
    assert pickle.loads(pickle.dumps(found)).tidy().equals(found.tidy())
    narrow = found.with_level(0.8)
    width = narrow.tidy()["conf_high"] - narrow.tidy()["conf_low"]
    assert (width < found.tidy()["conf_high"] - found.tidy()["conf_low"]).all()
    assert found.to_pandas().shape == found.tidy().shape


def test_bad_calls_are_refused(arrays: tuple[Array, dict[str, Any]], refusal: Refusal) -> None:
    value, columns = arrays
    table = table_of(value, columns)
    many = {f"x{i}": np.random.default_rng(i).normal(size=40) for i in range(40)}

    def said(*args: Any, **options: Any) -> str:
        return refusal(lambda: ts.scenario_regression(*args, **options))

    assert "Did you mean 'words'?" in said(table, "word")
    assert said(table, "condition").startswith(
        "DesignError: 'condition' is no attribute of scenarios: it is 'a' and 'b' in scenario 's000', and "
        "varies in 40 scenarios."
    )
    assert "40 scenarios cannot carry 40 coefficients" in said(table_of(value, many), list(many)[:39])
    assert "must name one column or more, each once" in said(table, ["words", "words"])
    assert "`attributes` must be a column, or a list" in said(table, 3)
    assert "`table` must be a ResponseTable" in said(table.frame, "words")
    assert "both the table and `scenarios` have" in said(
        table, "words", scenarios={"scenario": ["s000"], "words": [1]}
    )
    assert "has no scenario of the table, such as 's000'; its own are such as '1'" in said(
        table, "n", scenarios={"scenario": [1], "n": [1]}
    )
    assert "must have one column that names the scenario" in said(
        table, "n", scenarios={"who": [1], "n": [1]}
    )
    assert "no model column" in said(table, "words", model="m")
    assert "`vcov` must be one of" in said(table, "words", vcov="HC4")
    assert "holds infinite values" in said(table_of(value, {"n": [np.inf] * 40}), "n")
    assert "no scenario has a value and every attribute" in said(table_of(value, {"n": [None] * 40}), "n")
    crossed = ts.ResponseTable(table.frame.with_columns(other=pl.col("scenario").str.slice(-1)))
    assert "choose one with `table.with_cluster" in said(crossed.with_cluster(("pair", "other")), "words")
    full = ts.scenario_regression(table, ["words", "flag"])
    assert "did you mean 'words'?" in refusal(lambda: full.joint_test("wordz"))
    assert "the coefficients are ['(Intercept)', 'words', 'flag']" in refusal(
        lambda: full.contrast_of({"x": 1})
    )
    apart = ts.scenario_regression(table, ["words", "flag"], joint=False)
    assert "ask for it with `joint=True`" in refusal(apart.joint_test)
    assert apart.glance()["p_value"].to_list() == [None]


def test_independent_columns_are_told_from_rounding() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(30), 1.7e9 + rng.normal(size=30) * 1e4, rng.normal(size=30)])
    assert split_dependent(x) == ([0, 1, 2], {})
    more = np.column_stack([x, x[:, 1] / 1e9, np.zeros(30), 3 * x[:, 2] - 2])
    kept, dropped = split_dependent(more)
    assert (kept, dropped) == ([0, 1, 2], {3: [1], 4: [], 5: [0, 2]})


def test_units_of_attributes_do_not_matter_to_the_joint_test() -> None:
    table = ts.demo_table()
    rng = np.random.default_rng(1)
    scenarios = pl.DataFrame(
        {
            "scenario": table.frame["scenario"].unique().sort(),
            "words": rng.normal(size=17),
            "asks": rng.integers(0, 2, 17),
        }
    )
    usual = ts.scenario_regression(table, ["words", "asks"], scenarios=scenarios)
    large = ts.scenario_regression(
        table, ["words", "asks"], scenarios=scenarios.with_columns(pl.col("words") * 1e9)
    )
    assert usual.joint_test().statistic is not None
    assert large.joint_test().statistic == pytest.approx(usual.joint_test().statistic, rel=1e-8)
    assert usual.joint_test("words").method.startswith("Wald F test of 1 coefficient, HC3")
    assert usual._repr_html_().startswith("<pre>letter - free_text by scenario")
    assert usual.to_pandas().shape[0] == usual.tidy().height
