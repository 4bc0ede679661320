"""lpm: estimates, errors by every convention, contrasts, and what it says of doubtful data."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats.models import engines, linear
from triagestats.models.engines import EngineError
from triagestats.models.sandwich import SmallSample
from triagestats.models.within import dummies
from triagestats.results import TIDY_SCHEMA

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

# Two ways to the same sums of some hundred numbers.
SAME = 1e-9


@cache
def clustered(seed: int = 1, *, n_items: int = 14) -> pl.DataFrame:
    """Unbalanced rows: items (clusters), models crossed with them, three arms, a number and weights."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        base = rng.normal()
        for model in range(4):
            for _ in range(int(rng.integers(2, 5))):
                arm, x = int(rng.integers(0, 3)), rng.normal()
                chance = 1 / (1 + np.exp(-(base + 0.5 * arm + 0.3 * x - 0.2 * model)))
                y = int(rng.random() < chance)
                rows.append((f"i{item:02}", f"m{model}", f"a{arm}", x, rng.uniform(0.5, 2), y))
    return pl.DataFrame(rows, schema=["item", "model", "arm", "x", "w", "y"], orient="row")


def dense(
    data: pl.DataFrame, regressors: np.ndarray[Any, Any], effects: list[str], weighted: bool
) -> tuple[Any, ...]:
    """Regressors with dummies of the effects, outcome and clusters, all times root weights."""
    codes = [np.unique(data[name].to_numpy(), return_inverse=True)[1] for name in effects]
    first = [dummies(codes[0])] if codes else [np.ones((data.height, 1))]
    matrix = np.column_stack([regressors, *first, *(dummies(c)[:, 1:] for c in codes[1:])])
    root = np.sqrt(data["w"].to_numpy()) if weighted else np.ones(data.height)
    return matrix * root[:, None], data["y"].to_numpy() * root, data["item"].to_numpy()


def bell_mccaffrey(
    matrix: np.ndarray[Any, Any], y: np.ndarray[Any, Any], cluster: np.ndarray[Any, Any], k: int, power: float
) -> tuple[np.ndarray[Any, Any], list[float]]:
    """Covariance of the first k coefficients and their Satterthwaite df, from the full hat matrix."""
    bread = np.linalg.inv(matrix.T @ matrix)
    left = np.eye(len(y)) - matrix @ bread @ matrix.T
    residuals = left @ y
    rows, blocks = [], []
    for name in np.unique(cluster):
        at = cluster == name
        values, vectors = np.linalg.eigh(left[np.ix_(at, at)])
        powers = np.where(values > 1e-10, np.abs(values) ** power, 0.0) if power else np.ones(len(values))
        block = np.zeros((len(y), k))
        block[at] = (vectors * powers) @ vectors.T @ matrix[at] @ bread[:, :k]
        rows.append(block.T @ residuals)
        blocks.append(block)
    df = []
    for j in range(k):
        form = np.stack([block[:, j] for block in blocks])
        form = form @ left @ form.T
        df.append(float(np.trace(form) ** 2 / (form**2).sum()))
    return np.array(rows).T @ np.array(rows), df


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("effects", ["", "item", "model", "item + model", "item^model", "item^model + model"])
@pytest.mark.parametrize(("vcov", "power"), [("CRV1", 0.0), ("CRV2", -0.5), ("CRV3", -1.0)])
def test_leverage_against_the_full_hat_matrix(vcov: Any, power: float, effects: str, weighted: bool) -> None:
    data = clustered().with_columns(pl.concat_str("item", "model").alias("cell"))
    fit = ts.lpm(
        "y ~ arm + x" + (f" | {effects}" if effects else ""),
        data,
        cluster="item",
        vcov=vcov,
        weights="w" if weighted else None,
        small_sample={"k": False, "g": False, "df": "satterthwaite"},
    )
    arms = np.column_stack([(data["arm"] == "a1"), (data["arm"] == "a2"), data["x"]]).astype(float)
    names = [name.strip() for name in effects.replace("item^model", "cell").split("+")] if effects else []
    # model has no level that varies within item^model: a second effect adds nothing to the first.
    matrix, y, cluster = dense(data, arms, names if names != ["cell", "model"] else ["cell"], weighted)
    expected, df = bell_mccaffrey(matrix, y, cluster, 3, power)
    wanted = [fit.terms.index(term) for term in ("arm[T.a1]", "arm[T.a2]", "x")]
    np.testing.assert_allclose(fit.vcov[np.ix_(wanted, wanted)], expected, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(fit.df[wanted], df, rtol=1e-7)


@pytest.mark.parametrize("formula", ["y ~ arm + x", "y ~ arm + x | item", "y ~ arm + x | model"])
def test_leave_one_out_is_what_refitting_gives(formula: str) -> None:
    data = clustered(2, n_items=6)
    fit = ts.lpm(formula, data, cluster="item", vcov="CRV3")
    items = sorted(data["item"].unique())
    refitted = [
        ts.lpm(formula, data.filter(pl.col("item") != item), cluster="item", engine="statsmodels").estimates
        for item in items
    ]
    np.testing.assert_allclose(fit.leave_one_out(), refitted, rtol=SAME, atol=SAME)
    moved = np.array(refitted) - fit.estimates
    np.testing.assert_allclose(fit.vcov, 5 / 6 * moved.T @ moved, rtol=SAME, atol=1e-12)


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize(
    ("vcov", "cluster"), [("iid", None), ("HC1", None), ("CRV1", "item"), ("CRV1", ("item", "model"))]
)
@pytest.mark.parametrize("effects", ["", " | item", " | item + model", " | item^model"])
def test_engines_agree_and_pyfixest_has_our_convention(
    vcov: Any, cluster: Any, effects: str, weights: str | None
) -> None:
    fit = ts.lpm(
        f"y ~ arm + x{effects}",
        clustered(3),
        cluster=cluster,
        vcov=vcov,
        weights=weights,
        small_sample={"repair": "none"},
        crosscheck=True,
    )
    assert fit.crosscheck is not None
    frame = fit.crosscheck
    for term, estimate in zip(fit.terms, fit.estimates, strict=True):
        found = frame.filter(pl.col("term") == term)["estimate"].to_numpy()
        np.testing.assert_allclose(found, estimate, rtol=1e-6, atol=1e-8)  # linearmodels searches to 1e-8
    ours = frame.filter(pl.col("engine") == "triagestats")["std_error"].to_numpy()
    theirs = frame.filter(pl.col("engine") == "pyfixest")["std_error"].to_numpy()
    np.testing.assert_allclose(theirs, ours, rtol=1e-7)


@pytest.mark.parametrize("engine", ["linearmodels", "statsmodels"])
@pytest.mark.parametrize("effects", ["", " | item + model"])
def test_the_errors_do_not_depend_on_the_engine(engine: Any, effects: str) -> None:
    usual = ts.lpm(f"y ~ arm + x{effects}", clustered(), cluster="item", weights="w")
    other = ts.lpm(f"y ~ arm + x{effects}", clustered(), cluster="item", weights="w", engine=engine)
    np.testing.assert_allclose(other.estimates, usual.estimates, rtol=1e-6)  # linearmodels searches to 1e-8
    np.testing.assert_allclose(other.vcov, usual.vcov, rtol=1e-5, atol=1e-9)
    assert other.engine == engine
    assert "engine" not in {note.code for note in other.notes}


def test_factors_side_by_side(shared: Shared) -> None:
    """The data set of CONVENTIONS 26, with its singletons: 0.07892, 0.08307, and without factor 0.07520."""
    data = json.loads(shared("oracles/data/lpm.json").read_text(encoding="utf-8"))
    fit = ts.lpm("y ~ treat + x2 | scenario + model", data, singletons="keep", crosscheck=True)
    assert fit.crosscheck is not None
    at = {
        row["engine"]: row for row in fit.crosscheck.filter(pl.col("term") == "treat").iter_rows(named=True)
    }
    assert at["triagestats"]["std_error"] == pytest.approx(0.0789188, rel=1e-5)
    assert at["pyfixest"]["std_error"] == pytest.approx(0.0789188, rel=1e-5)
    assert at["linearmodels"]["std_error"] == pytest.approx(0.0830679, rel=1e-5)
    assert at["statsmodels, dummies"]["std_error"] == pytest.approx(0.0830679, rel=1e-5)
    assert at["triagestats"]["factor"] == pytest.approx(16 / 15 * 159 / (160 - 6))
    assert at["statsmodels, dummies"]["factor"] == pytest.approx(16 / 15 * 159 / (160 - 21))
    assert at["statsmodels, demeaned"]["factor"] == pytest.approx(16 / 15 * 159 / (160 - 2))
    none = ts.lpm(
        "y ~ treat + x2 | scenario + model",
        data,
        singletons="keep",
        small_sample=SmallSample(k=False, g=False),
    )
    assert none.std_errors[0] == pytest.approx(0.0752017, rel=1e-5)


def narrativeshield(shared: Shared) -> tuple[pl.DataFrame, dict[str, Any]]:
    expected = json.loads(shared("replication/narrativeshield/expected.json").read_text(encoding="utf-8"))
    rows = pl.read_csv(shared("replication/narrativeshield/responses.csv.gz").read_bytes())
    voices = {name: (pl.col("voice") == name).cast(pl.Int8) for name in ("beta", "gamma")}
    return rows.with_columns(marked=(pl.col("voice") != "alpha").cast(pl.Int8), **voices), expected["lpm"]


def test_narrativeshield_models(shared: Shared) -> None:
    """Every model of expected.json, by pyfixest's convention and both of statsmodels."""
    rows, cells = narrativeshield(shared)
    for name, cell in cells.items():
        data = rows.filter((pl.col("condition") == cell["condition"]) & pl.col("model").is_in(cell["models"]))
        fit = ts.lpm(cell["formula"], data, crosscheck=name == "B1_all7")
        full = ts.lpm(cell["formula"], data, small_sample={"effects": "full"})
        plain = ts.lpm(cell["formula"], data, small_sample={"k": False, "g": False})
        assert fit.glance().select("n_rows", "n_clusters").row(0) == (cell["N"], cell["G"])
        assert int(fit.matrix.absorbed[0].max()) + 1 == cell["n_fixed_effects"]
        for row in fit.tidy().iter_rows(named=True):
            wanted = cell["terms"][row["term"]]
            usual = wanted["pyfixest"]
            assert row["estimate"] == pytest.approx(wanted["coef"], rel=SAME)
            assert row["std_error"] == pytest.approx(usual["se"], rel=SAME)
            assert [row["conf_low"], row["conf_high"]] == pytest.approx(usual["ci95"], rel=SAME)
            assert row["statistic"] == pytest.approx(usual["t"], rel=SAME)
            assert row["p_value"] == pytest.approx(usual["p"], rel=1e-6, abs=1e-15)
            place = fit.terms.index(row["term"])
            assert full.std_errors[place] == pytest.approx(wanted["statsmodels_dummies"]["se"], rel=1e-4)
            assert plain.std_errors[place] == pytest.approx(wanted["uncorrected_se"], rel=SAME)
            if fit.crosscheck is not None:
                within = fit.crosscheck.filter(pl.col("engine") == "statsmodels, demeaned")["std_error"][0]
                assert within == pytest.approx(wanted["statsmodels_within"]["se"], rel=SAME)


def test_narrativeshield_b1_as_the_issue_states_it(shared: Shared) -> None:
    rows, _ = narrativeshield(shared)
    table = ts.ResponseTable(
        rows.filter(pl.col("condition") == "B1").drop("condition"), condition="voice", score="correct"
    )
    for formula in ("correct ~ marked | question_id^model", "score ~ marked | scenario^model"):
        row = ts.lpm(formula, table).tidy().row(0, named=True)
        assert row["estimate"] == pytest.approx(-0.0872857, abs=5e-8)
        assert row["std_error"] == pytest.approx(0.00748339, abs=5e-9)
        assert row["conf_low"] == pytest.approx(-0.101971, abs=5e-7)
        assert row["conf_high"] == pytest.approx(-0.072601, abs=5e-7)
        assert row["n_clusters"] == 1_000


def paired(differences: list[int]) -> dict[str, list[object]]:
    """Two rows an item, whose scores differ by -1, 0 or 1."""
    rows: dict[str, list[object]] = {"item": [], "arm": [], "y": []}
    for place, difference in enumerate(differences):
        rows["item"] += [f"i{place}"] * 2
        rows["arm"] += ["u", "v"]
        rows["y"] += [int(difference < 0), int(difference > 0)]
    return rows


def test_a_paired_difference_by_hand() -> None:
    differences = [1, 1, 0, 1, -1, 0, 1, 1, 0, 1, 1, 0]
    fit = ts.lpm("y ~ arm | item", paired(differences))
    mean = np.mean(differences)
    spread = np.sum((np.array(differences) - mean) ** 2)
    row = fit.tidy().row(0, named=True)
    assert row["estimate"] == pytest.approx(mean)
    assert row["contrast"] == "v - u"
    # X'X = G / 2 and scores (d - mean) / 2; G = 12, N = 24, K = 2.
    assert row["std_error"] ** 2 == pytest.approx(12 / 11 * 23 / 22 * spread / 144)
    assert row["df"] == 11
    t = mean / row["std_error"]
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(t, 11))
    # The jackknife of a mean is its usual error.
    crv3 = ts.lpm("y ~ arm | item", paired(differences), vcov="CRV3").tidy().row(0, named=True)
    usual = stats.ttest_1samp(differences, 0)
    assert crv3["statistic"] == pytest.approx(usual.statistic)
    assert crv3["p_value"] == pytest.approx(usual.pvalue)
    # So is CRV2 in a balanced design, where its df are those of the mean.
    crv2 = ts.lpm("y ~ arm | item", paired(differences), vcov="CRV2").tidy().row(0, named=True)
    assert (crv2["std_error"], crv2["df"]) == (pytest.approx(crv3["std_error"]), pytest.approx(11))


@pytest.mark.parametrize("vcov", ["CRV1", "CRV2", "CRV3"])
def test_order_and_labels_change_nothing_and_shifts_shift(vcov: Any) -> None:
    data = clustered()
    fit = ts.lpm("y ~ arm + x | item + model", data, vcov=vcov)
    order = np.random.default_rng(0).permutation(data.height)
    names = {name: f"z{place}" for place, name in enumerate(sorted(data["item"].unique(), reverse=True))}
    changed = data[order].with_columns(pl.col("item").replace_strict(names), y=3 * pl.col("y") + 7)
    other = ts.lpm("y ~ arm + x | item + model", changed, vcov=vcov)
    np.testing.assert_allclose(other.estimates, 3 * fit.estimates, rtol=SAME)
    np.testing.assert_allclose(other.vcov, 9 * fit.vcov, rtol=1e-7)
    np.testing.assert_allclose(other.df, fit.df, rtol=1e-7)


@pytest.mark.parametrize("vcov", ["CRV1", "CRV2", "CRV3"])
def test_another_reference_is_a_contrast(vcov: Any) -> None:
    data = clustered()
    fit = ts.lpm("y ~ arm + x | item", data, vcov=vcov)
    turned = data.with_columns(pl.col("arm").cast(pl.Enum(["a1", "a0", "a2"])))
    other = ts.lpm("y ~ arm + x | item", turned, vcov=vcov).tidy().row(1, named=True)
    assert other["contrast"] == "a2 - a1"
    for weights in ("arm[T.a2] - arm[T.a1]", {"arm[T.a2]": 1, "arm[T.a1]": -1}):
        test = fit.contrast(weights)
        assert test.contrast == "arm[T.a2] - arm[T.a1]"
        assert test.estimate == pytest.approx(other["estimate"])
        assert test.details["std_error"] == pytest.approx(other["std_error"])
        assert test.details["df"] == pytest.approx(other["df"])
        assert (test.conf_low, test.p_value) == (
            pytest.approx(other["conf_low"]),
            pytest.approx(other["p_value"]),
        )


def test_contrasts_by_words() -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    weighted = fit.contrast("0.5*arm[T.a1] + .5 * arm[T.a2] - x")
    assert weighted.estimate == pytest.approx(
        0.5 * fit.estimates[0] + 0.5 * fit.estimates[1] - fit.estimates[2]
    )
    assert fit.contrast({"x": -2.0}).contrast == "-2*x"
    assert fit.contrast("- x").estimate == pytest.approx(-fit.estimates[2])
    assert weighted.tidy()["df"][0] == 13


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("arm[T.a1] arm[T.a2]", "`weights` cannot be read from 'arm[T.a2]' on"),
        ("arm[T.a3]", "`weights` names 'arm[T.a3]', which the model does not have. Did you mean"),
        ("arm[T.a1] -", "`weights` names ''"),
        ({"x": True}, "`weights` must be finite numbers"),
        ({"x": 0}, "`weights` must have one number that is not 0"),
        (3, "`weights` must map terms to numbers"),
    ],
)
def test_contrasts_that_cannot_be_read(refusal: Refusal, weights: Any, said: str) -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    assert said in refusal(lambda: fit.contrast(weights))


def test_wald_by_its_formula() -> None:
    fit = ts.lpm("y ~ arm*x", clustered())
    joint = fit.wald(["arm[T.a1]", "arm[T.a2]"])
    b, v = fit.estimates[1:3], fit.vcov[1:3, 1:3]
    f = b @ np.linalg.inv(v) @ b / 2
    assert joint.statistic == pytest.approx(f)
    assert joint.p_value == pytest.approx(stats.f.sf(f, 2, 13))
    assert joint.details == {"df_num": 2, "df": 13.0, "terms": ["arm[T.a1]", "arm[T.a2]"], "n_clusters": 14}
    assert fit.wald("arm").statistic == pytest.approx(f)
    assert fit.wald().details["df_num"] == 5  # all but the constant
    single = fit.tidy().row(3, named=True)
    assert fit.wald("x").statistic == pytest.approx(single["statistic"] ** 2)
    assert fit.wald("x").p_value == pytest.approx(single["p_value"])


def test_wald_refuses_names(refusal: Refusal) -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    assert "`terms` names 'amr', which the model does not have. Did you mean 'arm'?" in refusal(
        lambda: fit.wald("amr")
    )


def test_more_terms_than_clusters_carry_no_joint_test() -> None:
    data = clustered(4, n_items=3)
    fit = ts.lpm("y ~ arm + x", data)
    assert "many_regressors" in {note.code for note in fit.notes}
    message = next(note.message for note in fit.notes if note.code == "many_regressors")
    assert message.startswith("4 regressors and 3 clusters: the covariance matrix has rank 2 at most")
    joint = fit.wald()
    assert (joint.statistic, joint.p_value) == (None, None)
    assert joint.undefined == (
        "No joint test: 3 coefficients cannot be tested together with 3 clusters, which carry 2 at most."
    )


# Crossed in threes, with a treatment that the first cluster of `a` has alone.
NEGATIVE = {
    "a": list("pppqqqrrr"),
    "b": list("uvwuvwuvw"),
    "x": [1, 1, 1, 0, 0, 0, 0, 0, 0],
    "y": [2, 1, 2, 1, 1, 2, 2, 1, 1],
}


def test_a_two_way_variance_that_is_not_positive_is_repaired_and_said() -> None:
    raw = ts.lpm("y ~ x", NEGATIVE, cluster=["a", "b"], small_sample={"repair": "none"})
    # By hand: the residuals are (1, -2, 1, -1, -1, 2, 2, -1, -1) / 3.
    assert raw.vcov[1, 1] == pytest.approx(-0.158730, rel=1e-5)
    assert raw.tidy()["std_error"][1] is None
    assert raw.tidy()["status"][1] == "undefined"
    assert raw.contrast("x").undefined == "No error: its variance is not positive."
    fit = ts.lpm("y ~ x", NEGATIVE, cluster=["a", "b"])
    ways = [ts.lpm("y ~ x", NEGATIVE, cluster=name).vcov for name in ("a", "b")]
    np.testing.assert_allclose(fit.vcov, max(ways, key=np.trace), rtol=SAME)
    np.testing.assert_allclose(fit.covariance.unrepaired, raw.vcov, rtol=SAME)
    note = next(note for note in fit.notes if note.code == "repaired")
    assert note.message == (
        "The two-way matrix is not positive; the one-way matrix with the larger variances is used."
    )


def test_a_two_way_matrix_with_positive_variances_is_left(shared: Shared) -> None:
    data = json.loads(shared("oracles/data/lpm.json").read_text(encoding="utf-8"))
    fit = ts.lpm("y ~ treat + x2 | scenario^model", data, cluster=["scenario", "model"], singletons="keep")
    assert fit.std_errors[1] == pytest.approx(0.0169177, rel=1e-5)  # fixest repairs: 0.0188620
    codes = [note.code for note in fit.notes]
    assert "not_positive" in codes
    assert "few_clusters" in codes
    assert "repaired" not in codes


def test_conventions_are_printed() -> None:
    fit = ts.lpm("y ~ arm + x | item + model", clustered())
    text = str(fit)
    rows = clustered().height
    assert f"y ~ arm + x | item + model: {rows} rows; clusters: 14 item" in text
    assert "note: The errors are clustered by item." in text
    assert (
        f"(N-1)/(N-K), G = 14, N = {rows}, K = 7 (item: 14 levels, nested in the clusters, counted as 1; "
        "model: 4 levels); t, df = 13."
    ) in text
    none = ts.lpm("y ~ x | model", clustered(), small_sample={"k": False, "g": False})
    assert "CRV1: factor 1 = no factor, G = 14" in str(none)
    crv3 = str(ts.lpm("y ~ x | model", clustered(), vcov="CRV3"))
    assert "CRV3, centred at the estimate: factor 0.928571 = (G-1)/G, G = 14" in crv3
    assert "Satterthwaite's df for each" in str(ts.lpm("y ~ x | model", clustered(), vcov="CRV2"))
    assert "HC1: factor" in str(ts.lpm("y ~ x", clustered(), vcov="HC1"))


def test_the_result_in_tables() -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    tidy = fit.tidy()
    assert tidy.schema == TIDY_SCHEMA
    assert tidy["term"].to_list() == ["arm[T.a1]", "arm[T.a2]", "x"]
    assert tidy["method"][0] == "least squares, CRV1 by item; t"
    assert tidy["status"].to_list() == ["ok"] * 3
    assert fit.glance().height == 1
    narrow = fit.with_level(0.5).tidy()
    half = (narrow["conf_high"] - narrow["conf_low"]) / 2
    expected = stats.t.isf(0.25, 13) * narrow["std_error"].to_numpy()
    np.testing.assert_allclose(half.to_numpy(), expected)
    assert json.loads(json.dumps(fit.to_dict()))["formula"] == "y ~ arm + x | item"
    assert fit.to_pandas()["estimate"].tolist() == tidy["estimate"].to_list()
    assert fit.n_clusters == 14
    assert fit.matrix.terms == fit.terms
    assert fit.matrix.x.shape == (clustered().height, 3)


def test_r_squared_within() -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    plain = ts.lpm("y ~ arm + x", clustered())
    assert plain.r_squared < fit.r_squared
    y = clustered()["y"].to_numpy()
    assert fit.r_squared == pytest.approx(1 - fit.residuals @ fit.residuals / ((y - y.mean()) ** 2).sum())


def test_a_response_table_and_its_frame_give_the_same() -> None:
    data = clustered().with_row_index("repetition")
    table = ts.ResponseTable(data, condition="arm", score="y", scenario="item", model="model")
    by_role = ts.lpm("score ~ condition + x | scenario^model", table)
    by_name = ts.lpm("y ~ arm + x | item^model", table)
    plain = ts.lpm("y ~ arm + x | item^model", data)
    np.testing.assert_allclose(by_role.vcov, by_name.vcov, rtol=SAME)
    np.testing.assert_allclose(by_role.vcov, plain.vcov, rtol=SAME)
    assert by_role.matrix.cluster_names == ("item",)


def test_a_perfect_fit_has_no_error() -> None:
    data = clustered().with_columns(y=2.0 * pl.col("x") + 1)
    fit = ts.lpm("y ~ x + arm", data)
    row = fit.tidy().filter(pl.col("term") == "x").row(0, named=True)
    assert row["estimate"] == pytest.approx(2)
    assert (row["std_error"], row["p_value"], row["conf_low"], row["status"]) == (
        None,
        None,
        None,
        "undefined",
    )
    assert row["reason"].startswith("the fit is perfect")
    assert "perfect_fit" in {note.code for note in fit.notes}
    assert fit.wald().p_value is None
    assert "no error (the fit is perfect" in str(fit)


def test_one_treated_cluster_is_doubted() -> None:
    data = clustered().with_columns(treated=(pl.col("item") == "i03").cast(pl.Int8))
    fit = ts.lpm("y ~ treated + x", data)
    note = next(note for note in fit.notes if note.code == "one_cluster")
    assert note.message == (
        "treated cannot be estimated without one of the clusters, whose own variation CRV1 does not see: "
        "such errors are far too small."
    )
    jackknife = ts.lpm("y ~ treated + x", data, vcov="CRV3")
    assert jackknife.undefined == {"treated": "it cannot be estimated without one of the clusters"}
    assert jackknife.tidy()["std_error"].is_null().to_list() == [False, True, False]
    assert np.isnan(jackknife.leave_one_out()[:, 1]).all()
    saturated = ts.lpm("y ~ model", clustered(), cluster="model")
    assert "its error comes out as 0" in saturated.undefined["model[T.m1]"]


def test_a_fixed_effect_that_swallows_a_regressor(refusal: Refusal) -> None:
    data = clustered().with_columns(length=pl.col("item").str.slice(1).cast(pl.Float64))
    fit = ts.lpm("y ~ length + arm | model + item", data)
    assert fit.dropped == ("length",)
    note = next(note for note in fit.notes if note.code == "collinear")
    assert note.message == "length is left out: it does not vary within item, which is absorbed."
    said = refusal(lambda: ts.lpm("y ~ length | item", data))
    assert said == (
        "DesignError: `formula` leaves no coefficient to estimate. length is left out: it does not vary "
        "within item, which is absorbed."
    )


def test_collinear_terms_are_named() -> None:
    data = clustered().with_columns(x2=2 * pl.col("x") - 3, one=pl.lit(1))
    fit = ts.lpm("y ~ x + x2 + one", data)
    assert fit.dropped == ("x2", "one")
    assert fit.glance()["n_collinear"][0] == 2
    assert "x2 is left out: it is constant or a combination of the regressors before it." in str(fit)


def test_errors_of_independent_rows_are_doubted() -> None:
    fit = ts.lpm("y ~ x", clustered(), vcov="HC1")
    note = next(note for note in fit.notes if note.code == "independence")
    assert "but they share 14 clusters (item)" in note.message
    assert fit.tidy()["status"].to_list() == ["warning"] * 2
    rows = {"y": [0, 1, 0, 1, 1], "x": [1, 2, 3, 4, 9]}
    assert "independence" not in {note.code for note in ts.lpm("y ~ x", rows, vcov="iid").notes}


def test_few_clusters_are_doubted() -> None:
    fit = ts.lpm("y ~ x | item", clustered(4, n_items=8))
    note = next(note for note in fit.notes if note.code == "few_clusters")
    assert note.message == (
        "8 item: with fewer than 12 clusters CRV1 errors may be too small; see wild_bootstrap, CRV2 or CRV3."
    )
    assert fit.contrast("x").notes == (note,)


@pytest.mark.parametrize(
    ("formula", "arguments", "said"),
    [
        ("y ~ amr | item", {}, "`formula` names 'amr', which the data do not have. Did you mean 'arm'?"),
        (
            "y ~ x + (1 | item)",
            {},
            "has the random term (1 | item), which a linear probability model does not",
        ),
        ("y ~ x", {"cluster": "gap"}, "`cluster` is 'gap', which is missing in"),
        ("y ~ x", {"cluster": "one"}, "`cluster` is 'one', which has one value in the rows that are used"),
        ("y ~ x", {"cluster": ["item", "model"], "vcov": "CRV3"}, "vcov='CRV3' takes one cluster column"),
        ("y ~ x", {"vcov": "CR2"}, "`vcov` must be one of 'CRV1', 'CRV2', 'CRV3', 'iid', 'HC1'"),
        ("y ~ x", {"engine": "fixest"}, "`engine` must be one of"),
        ("y ~ x", {"singletons": "yes"}, "`singletons` must be one of"),
        ("y ~ x", {"crosscheck": 1}, "`crosscheck` must be True or False"),
        ("y ~ x", {"conf_level": 95}, "did you mean 0.95?"),
        ("y ~ x", {"small_sample": {"K": 1}}, "`small_sample` has no 'K'; its fields are effects, k, g"),
        (
            "y ~ x",
            {"small_sample": {"effects": "half"}},
            "`effects` must be one of 'nonnested', 'full', 'none'",
        ),
        ("y ~ x", {"small_sample": {"k": 1}}, "`k` must be True or False"),
        ("y ~ x", {"small_sample": 3}, "`small_sample` must be a SmallSample or a mapping"),
        ("y ~ x", {"vcov": "iid", "small_sample": {"df": "satterthwaite"}}, "needs one cluster column"),
        ("y ~ 1 | item", {}, "`formula` has no regressors"),
        ("y ~ x | code", {"singletons": "keep", "vcov": "iid"}, "rows cannot carry"),
    ],
)
def test_what_is_refused(refusal: Refusal, formula: str, arguments: dict[str, Any], said: str) -> None:
    data = clustered().with_columns(
        gap=pl.when(pl.col("x") < 0).then("item"),
        one=pl.lit("a"),
        code=(pl.int_range(pl.len()) // 1).cast(pl.String).replace("1", "0"),
    )
    assert said in refusal(lambda: ts.lpm(formula, data, **arguments))


def test_clusters_that_nothing_names(refusal: Refusal) -> None:
    rows = {"y": [0, 1, 0, 1, 1], "x": [1, 2, 3, 4, 9]}
    assert refusal(lambda: ts.lpm("y ~ x", rows)) == (
        "ArgumentError: `cluster` is needed for vcov='CRV1', and no column is recognised as the scenario: "
        "name one, or ask for vcov='HC1' if the rows are independent"
    )


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, refusal: Refusal) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyfixest", None)
    said = refusal(lambda: ts.lpm("y ~ x", clustered()))
    assert said.startswith("ArgumentError: this needs pyfixest, which is not installed")
    assert said.endswith('pip install "triagestats[models]"')


@pytest.mark.parametrize("engine", ["pyfixest", "linearmodels", "statsmodels"])
@pytest.mark.parametrize("effects", ["", " | item"])
@pytest.mark.parametrize(
    ("shift", "scale"), [(1e4, 1.0), (1e6, 1.0), (1e8, 1.0), (0.0, 1e-10), (0.0, 1e12), (-1e7, 1e-2)]
)
def test_means_and_units_of_regressors_do_not_matter(
    engine: Any, effects: str, shift: float, scale: float
) -> None:
    """pyfixest's normal equations were 18 % off at a mean of 1e7, without a note."""
    data = clustered()
    moved = data.with_columns(far=pl.col("x") * scale + shift)
    # The column itself has lost digits: a mean of 1e8 leaves 8 of them.
    tolerance = 1e-10 + 1e-15 * shift / scale
    plain = ts.lpm(f"y ~ x + arm{effects}", data, engine=engine)
    fit = ts.lpm(f"y ~ far + arm{effects}", moved, engine=engine)
    assert fit.dropped == ()
    places = [[model.terms.index(term) for term in ("arm[T.a1]", "arm[T.a2]")] for model in (plain, fit)]
    x, far = plain.terms.index("x"), fit.terms.index("far")
    assert fit.estimates[far] * scale == pytest.approx(plain.estimates[x], rel=max(tolerance, 1e-8))
    assert fit.std_errors[far] * scale == pytest.approx(plain.std_errors[x], rel=max(tolerance, 1e-8))
    assert fit.estimates[places[1]] == pytest.approx(plain.estimates[places[0]], rel=1e-7)
    assert fit.std_errors[places[1]] == pytest.approx(plain.std_errors[places[0]], rel=1e-7)
    assert fit.tidy()["status"].to_list() == ["ok"] * len(fit.terms)
    assert {note.code for note in fit.notes} == {note.code for note in plain.notes}


def test_years_and_their_squares() -> None:
    """With the years from 2012 the same polynomial, without the cancellation."""
    rng = np.random.default_rng(0)
    year, item = rng.integers(2000, 2025, 200), np.repeat(np.arange(20), 10)
    rows = {"year": year, "since": year - 2012, "y": rng.normal(size=200), "item": item}
    fit = ts.lpm("y ~ year + I(year**2)", rows, cluster="item")
    near = ts.lpm("y ~ since + I(since**2)", rows, cluster="item")
    assert fit.estimates[2] == pytest.approx(near.estimates[2], rel=1e-8)
    assert fit.std_errors[2] == pytest.approx(near.std_errors[2], rel=1e-8)
    assert fit.estimates[1] == pytest.approx(near.estimates[1] - 2 * 2012 * near.estimates[2], rel=1e-8)


@pytest.mark.parametrize("engine", ["pyfixest", "linearmodels", "statsmodels"])
@pytest.mark.parametrize("vcov", ["CRV1", "CRV2", "CRV3", "HC1", "iid"])
@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-8])
def test_near_collinear_regressors_are_kept_by_every_engine(engine: Any, vcov: Any, size: float) -> None:
    rng = np.random.default_rng(2)
    x, noise = rng.normal(size=(2, 200))
    z = x + size * noise
    # z - x, which is what z adds, has the digits that z leaves of it.
    rows = {"x": x, "z": z, "d": z - x, "y": rng.normal(size=200), "item": np.repeat(np.arange(20), 10)}
    fit = ts.lpm("y ~ x + z | item", rows, cluster="item", engine=engine, vcov=vcov)
    apart = ts.lpm("y ~ x + d | item", rows, cluster="item", engine=engine, vcov=vcov)
    assert fit.dropped == apart.dropped == ()
    tolerance = 1e-14 / size + 1e-8
    assert fit.estimates[1] == pytest.approx(apart.estimates[1], rel=tolerance)
    assert fit.std_errors[1] == pytest.approx(apart.std_errors[1], rel=tolerance)
    assert fit.estimates.sum() == pytest.approx(apart.estimates[0], rel=1e-5)
    gone = ts.lpm("y ~ x + z | item", rows | {"z": x + 1e-11 * noise}, cluster="item", engine=engine)
    assert gone.dropped == ("z",)


def test_a_crosscheck_survives_engines_that_refuse() -> None:
    rng = np.random.default_rng(2)
    x, noise = rng.normal(size=(2, 200))
    rows = {"x": x, "z": x + 1e-6 * noise, "y": rng.normal(size=200), "item": np.repeat(np.arange(20), 10)}
    fit = ts.lpm("y ~ x + z | item", rows, cluster="item", crosscheck=True)
    assert fit.crosscheck is not None
    at = {row["engine"]: row for row in fit.crosscheck.filter(pl.col("term") == "z").iter_rows(named=True)}
    assert at["linearmodels"]["estimate"] is at["linearmodels"]["std_error"] is None
    assert at["triagestats"]["estimate"] == pytest.approx(fit.estimates[1])
    said = [note.message for note in fit.notes if note.code == "crosscheck"]
    assert any(
        text.startswith("linearmodels gives no estimates for these columns (AbsorbingEffectError: The model")
        for text in said
    )
    small = ts.lpm("y ~ t", rows | {"t": x * 1e-10}, cluster="item", crosscheck=True)
    said = [note.message for note in small.notes if note.code == "crosscheck"]
    assert said == [
        "pyfixest gives no estimates for these columns (it leaves out t as collinear); its row is empty."
    ]
    # Engines get the columns as they are here, and lose digits where ours do not.
    far = ts.lpm("y ~ t", rows | {"t": x + 1e7}, cluster="item", crosscheck=True)
    assert any("standard errors off ours" in note.message for note in far.notes)
    assert "engine" not in {note.code for note in far.notes}


def test_an_engine_that_fails_or_errs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ts.lpm("y ~ x | item", clustered())

    def fails(engine: str, matrix: object) -> None:
        raise EngineError("ValueError: no")

    monkeypatch.setattr(linear, "fit_engine", fails)
    fit = ts.lpm("y ~ x | item", clustered())
    np.testing.assert_allclose(fit.estimates, usual.estimates, rtol=SAME)
    note = next(note for note in fit.notes if note.code == "engine")
    assert note.message == (
        "pyfixest gave no estimates (ValueError: no); they are from a QR decomposition instead."
    )
    right = engines.fit_engine
    monkeypatch.setattr(linear, "fit_engine", lambda engine, matrix: right(engine, matrix) * 1.5)
    fit = ts.lpm("y ~ x | item", clustered())
    np.testing.assert_allclose(fit.estimates, usual.estimates, rtol=SAME)
    assert "standard errors off the least-squares solution" in str(fit)


def test_an_outcome_with_a_large_mean_is_no_perfect_fit() -> None:
    data = clustered().with_columns(big=pl.col("y") + 1e11)
    fit, plain = ts.lpm("big ~ x", data), ts.lpm("y ~ x", data)
    assert "perfect_fit" not in {note.code for note in fit.notes}
    assert fit.estimates[1] == pytest.approx(plain.estimates[1], abs=1e-4)
    assert fit.std_errors[1] == pytest.approx(plain.std_errors[1], rel=1e-3)


def test_a_category_with_one_level_is_named(refusal: Refusal) -> None:
    data = clustered().with_columns(z=pl.lit("q"))
    assert refusal(lambda: ts.lpm("y ~ z | item", data)) == (
        "DesignError: `formula` leaves no coefficient to estimate. z is left out: it is 'q' in every row."
    )
    fit = ts.lpm("y ~ z + x | item", data)
    assert fit.dropped == ("z",)
    assert "z is left out: it is 'q' in every row." in str(fit)
    assert fit.estimates == pytest.approx(ts.lpm("y ~ x | item", data).estimates)


def test_a_contrast_with_another_value() -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    usual, test = fit.contrast("arm[T.a2] - arm[T.a1]"), fit.contrast("arm[T.a2] - arm[T.a1]", value=0.1)
    assert (test.estimate, test.conf_low) == (usual.estimate, usual.conf_low)
    t = (usual.estimate - 0.1) / usual.details["std_error"]
    assert test.statistic == pytest.approx(t)
    assert test.p_value == pytest.approx(2 * stats.t.sf(abs(t), 13))
    assert test.details["value"] == 0.1
    assert fit.contrast("x", value=fit.estimates[2]).p_value == pytest.approx(1)


def test_a_value_within_a_contrast_is_refused(refusal: Refusal) -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    assert refusal(lambda: fit.contrast("x - 0.1")) == (
        "ArgumentError: `weights` ends with a number, 0.1: the value that 'x' is compared with goes into "
        "`value`"
    )
    assert "`value` must be a number; got '1'" in refusal(lambda: fit.contrast("x", value="1"))  # type: ignore[arg-type]
    assert "`value` must be finite" in refusal(lambda: fit.contrast("x", value=float("nan")))


def test_units_do_not_matter_to_a_joint_test() -> None:
    data = clustered().with_columns(tiny=pl.col("x") * 1e-9)
    usual, tiny = ts.lpm("y ~ arm + x", data).wald(), ts.lpm("y ~ arm + tiny", data).wald()
    assert tiny.statistic == pytest.approx(usual.statistic, rel=1e-8)


def test_doubts_of_one_cluster_are_those_of_its_terms() -> None:
    data = clustered(n_items=20).with_columns(treated=(pl.col("item") == "i03").cast(pl.Int8))
    fit = ts.lpm("y ~ treated + x", data)
    assert fit.tidy()["status"].to_list() == ["ok", "warning", "ok"]
    line = next(line for line in str(fit).splitlines() if line.startswith("  treated:"))
    assert line.endswith("(not to be trusted: one cluster decides it)")
    assert fit.contrast("x").notes == ()
    assert [note.code for note in fit.contrast("x + treated").notes] == ["one_cluster"]


def test_fitted_values_and_notebooks() -> None:
    fit = ts.lpm("y ~ arm + x | item", clustered())
    np.testing.assert_allclose(fit.fitted + fit.residuals, fit.matrix.y)
    np.testing.assert_allclose(np.bincount(fit.matrix.absorbed[0], weights=fit.residuals), 0, atol=SAME)
    shown = fit._repr_html_()
    assert shown.startswith("<pre>y ~ arm + x | item: ")
    assert ts.lpm("y ~ I(x > 0)", clustered())._repr_html_().count("&gt;") == 2
