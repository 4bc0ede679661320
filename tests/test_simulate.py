"""The simulator: its draws follow the stated model, and its true values are true."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys
from importlib.resources import files

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import integrate, stats

from triagestats import _demo, _simulate_truth
from triagestats.errors import ArgumentError
from triagestats.simulate import (
    Condition,
    Effects,
    StudyDesign,
    demo_study,
    main,
    simulate_scores,
    simulate_study,
)

KEY = ["scenario", "model", "condition", "variant", "repetition"]
DEMO_FILES = ["README.md", "demo_judgments.csv", "demo_responses.csv", "demo_truth.json"]

# Monte Carlo means of a right program leave 4 standard errors once in 16,000 comparisons.
Z_BAND = 4.0
# Two ways to the same integral, both accurate to rounding of numbers near 1.
QUADRATURE_ATOL = 1e-10
# The same sum in another order.
SUM_ATOL = 1e-12
# demo_truth.json is rounded to ten digits.
FILE_ATOL = 1e-9

LEVELS = ("self_care", "routine", "urgent", "emergency")


def design(**changes: object) -> StudyDesign:
    plain = StudyDesign(
        n_scenarios=6,
        models=("a", "b", "c"),
        conditions=(
            Condition("free", mode="judged", variants=("x", "y"), n_repetitions=3),
            Condition("letter", variants=("x", "y"), n_repetitions=4),
        ),
        judges=("j1", "j2"),
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def one_cell(n: int, *, gold: str, mode: str = "label", n_judges: int = 1) -> StudyDesign:
    """Return n answers to one scenario."""
    return StudyDesign(
        n_scenarios=1,
        models=("a",),
        conditions=(Condition("c", mode=mode, n_repetitions=n),),  # type: ignore[arg-type]
        judges=tuple(f"j{i}" for i in range(n_judges)),
        gold=(gold,),
    )


def certain(*, right: bool, **changes: object) -> Effects:
    """Return effects under which every answer is right, or every answer wrong."""
    return Effects(
        base_logit=800.0 if right else -800.0,
        scenario_sd=0.0,
        scenario_condition_sd=0.0,
        scenario_model_sd=0.0,
        **changes,  # type: ignore[arg-type]
    )


def assert_close(found: pl.DataFrame, expected: pl.DataFrame, *, atol: float) -> None:
    """Compare frames: numbers within atol, all else exactly."""
    assert_frame_equal(found.select(pl.exclude(pl.Float64)), expected.select(pl.exclude(pl.Float64)))
    numbers = [frame.select(pl.col(pl.Float64)) for frame in (found, expected)]
    assert numbers[0].columns == numbers[1].columns
    np.testing.assert_allclose(numbers[0].to_numpy(), numbers[1].to_numpy(), rtol=0, atol=atol)


def assert_share(hits: pl.Series, share: float) -> None:
    """Compare an observed with an expected share, by its binomial standard error."""
    assert len(hits) > 1_000
    band = Z_BAND * np.sqrt(share * (1 - share) / len(hits))
    assert abs(hits.mean() - share) < band


def test_counts_of_the_design() -> None:
    study = simulate_study(design(), Effects(), seed=3)
    counts = dict(study.responses.group_by("condition").len().iter_rows())
    assert counts == {"free": 6 * 3 * 2 * 3, "letter": 6 * 3 * 2 * 4}
    assert study.responses.columns == [*KEY, "gold", "response", "error"]
    assert study.judgments.columns == [*KEY, "judge", "label", "error"]
    assert study.responses.select(KEY).is_unique().all()
    assert study.judgments.select([*KEY, "judge"]).is_unique().all()
    assert study.judgments.height == 2 * counts["free"]
    assert study.judgments["condition"].unique().to_list() == ["free"]
    assert study.responses.filter(condition="free")["response"].is_null().all()
    assert study.responses.filter(condition="letter")["response"].is_not_null().all()
    assert study.responses["error"].is_null().all()
    gold = study.responses.unique("scenario").sort("scenario")["gold"].to_list()
    assert gold == [*LEVELS, *LEVELS[:2]]


def test_without_a_judged_condition_there_is_an_empty_judgment_table() -> None:
    letter_only = design(conditions=(Condition("letter"),), judges=())
    study = simulate_study(letter_only, Effects(), seed=1)
    assert study.judgments.schema == simulate_study(design(), Effects(), seed=1).judgments.schema
    assert study.judgments.height == 0


def test_same_seed_same_tables_and_another_seed_others() -> None:
    first, again, other = (simulate_study(design(), Effects(), seed=s) for s in (5, 5, 6))
    assert_frame_equal(first.responses, again.responses)
    assert_frame_equal(first.judgments, again.judgments)
    assert_frame_equal(first.truth.cells, again.truth.cells)
    assert not first.responses.equals(other.responses)
    assert not first.judgments.equals(other.judgments)
    assert not first.truth.cells.equals(other.truth.cells)


def test_scenarios_stay_when_repetitions_judges_or_models_are_added() -> None:
    cells = simulate_study(design(), Effects(), seed=5).truth.cells
    more = tuple(dataclasses.replace(c, n_repetitions=9) for c in design().conditions)
    for changes in ({"conditions": more}, {"judges": ("j1", "j2", "j3")}):
        assert_frame_equal(simulate_study(design(**changes), Effects(), seed=5).truth.cells, cells)
    with_model = simulate_study(design(models=("a", "b", "c", "d")), Effects(), seed=5)
    assert_frame_equal(with_model.truth.cells.filter(pl.col("model") != "d"), cells)
    scores = [simulate_scores(9, n_models=2, n_repetitions=r, seed=2) for r in (1, 7)]
    assert_frame_equal(scores[0].truth.cells, scores[1].truth.cells)


@pytest.mark.parametrize("sd", [0.0, 0.3, 1.0, 2.5, 8.0])
def test_quadrature_agrees_with_an_adaptive_integral(sd: float) -> None:
    eta = np.array([-3.0, -0.4, 0.0, 1.7])
    found = _simulate_truth.logistic_normal_mean(eta, sd)

    def integrand(z: float, mean: float) -> float:
        return float(stats.norm.pdf(z) / (1.0 + np.exp(-(mean + sd * z))))

    expected = [
        integrate.quad(integrand, -12, 12, args=(mean,), epsabs=1e-13, epsrel=1e-13, limit=400)[0]
        for mean in eta
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=QUADRATURE_ATOL)


def test_superpopulation_rates_follow_from_the_effects_by_quadrature() -> None:
    effects = Effects(
        base_logit=0.4,
        condition_effects={"letter": -0.7},
        model_effects={"b": 0.9},
        variant_effects={"y": -0.5},
        scenario_sd=0.8,
        scenario_condition_sd=0.6,
        scenario_model_sd=0.3,
    )
    rates = simulate_study(design(), effects, seed=1).truth.rates
    total_sd = np.sqrt(0.8**2 + 0.6**2 + 0.3**2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def rate(eta: float) -> float:
        return float(weights @ (1.0 / (1.0 + np.exp(-eta - total_sd * nodes))))

    expected = {
        (c, m): (rate(0.4 + by_c + by_m) + rate(0.4 + by_c + by_m - 0.5)) / 2
        for c, by_c in (("free", 0.0), ("letter", -0.7))
        for m, by_m in (("a", 0.0), ("b", 0.9), ("c", 0.0))
    }
    for (condition, model), value in expected.items():
        row = rates.filter(population="superpopulation", condition=condition, model=model)
        assert row["correct"].item() == pytest.approx(value, abs=QUADRATURE_ATOL)
    pooled = rates.filter(pl.col("model").is_null(), population="superpopulation", condition="free")
    mean = np.mean([expected["free", m] for m in "abc"])
    assert pooled["correct"].item() == pytest.approx(mean, abs=QUADRATURE_ATOL)


def test_superpopulation_rates_against_monte_carlo() -> None:
    n = 40_000
    simulated = simulate_scores(
        n,
        n_models=2,
        n_conditions=3,
        condition_effects=(0.0, -0.6, 0.9),
        model_effects=(0.2, -0.8),
        scenario_sd=1.2,
        scenario_condition_sd=0.9,
        scenario_model_sd=0.7,
        seed=11,
    )
    score = simulated.scores["score"].to_numpy().reshape(n, 2, 3).astype(float)
    truth = simulated.truth.rates.filter(pl.col("model").is_not_null(), population="superpopulation")
    for row in truth.to_dicts():
        values = score[:, int(row["model"][1]) - 1, int(row["condition"][1]) - 1]
        assert abs(values.mean() - row["correct"]) < Z_BAND * values.std() / np.sqrt(n)
    contrast = simulated.truth.contrasts.filter(
        pl.col("model").is_null(), population="superpopulation", contrast="c2 - c1"
    )["correct"].item()
    difference = score[:, :, 1].mean(axis=1) - score[:, :, 0].mean(axis=1)
    assert contrast < -0.05
    assert abs(difference.mean() - contrast) < Z_BAND * difference.std() / np.sqrt(n)


def test_scores_and_studies_of_the_same_effects_have_the_same_truth() -> None:
    sds = {"scenario_sd": 0.7, "scenario_condition_sd": 0.4, "scenario_model_sd": 0.2}
    two = StudyDesign(n_scenarios=4, models=("m1", "m2"), conditions=(Condition("c1"), Condition("c2")))
    effects = Effects(base_logit=0.3, model_effects={"m2": 0.8}, condition_effects={"c2": -0.5}, **sds)
    scores = simulate_scores(
        4,
        n_models=2,
        base_logit=0.3,
        model_effects=(0, 0.8),
        condition_effects=(0, -0.5),
        **sds,
        seed=1,
    )
    study = simulate_study(two, effects, seed=1)
    for name in ("rates", "contrasts"):
        found = getattr(scores.truth, name)
        expected = getattr(study.truth, name).select(found.columns)
        assert_close(found, expected, atol=SUM_ATOL)


def test_scenario_effects_have_the_stated_variances() -> None:
    sds = {"scenario_sd": 0.9, "scenario_condition_sd": 0.5, "scenario_model_sd": 0.3}
    n = 20_000
    cells = simulate_scores(n, n_models=2, **sds, seed=4).truth.cells
    p = cells["correct"].to_numpy().reshape(n, 2, 2)
    logit = np.log(p / (1 - p)) - 1.0
    shared = {
        (0, 0): 0.9**2 + 0.5**2 + 0.3**2,
        (0, 1): 0.9**2 + 0.3**2,
        (1, 0): 0.9**2 + 0.5**2,
        (1, 1): 0.9**2,
    }
    for (model, condition), covariance in shared.items():
        product = logit[:, 0, 0] * logit[:, model, condition]
        assert abs(product.mean() - covariance) < Z_BAND * product.std() / np.sqrt(n)


def test_finite_truth_is_the_mean_over_the_drawn_cells() -> None:
    study = simulate_study(design(), Effects(scenario_sd=1.5, variant_effects={"y": 1}), seed=8)
    truth = study.truth
    finite = truth.rates.filter(population="finite")
    by_model = truth.cells.group_by("condition", "model").agg(pl.col("correct").mean())
    merged = by_model.join(finite, on=["condition", "model"])
    assert merged.height == 6
    np.testing.assert_allclose(merged["correct"], merged["correct_right"], rtol=0, atol=SUM_ATOL)
    superpopulation = truth.rates.filter(population="superpopulation")
    assert (finite["correct"] - superpopulation["correct"]).abs().min() > 0.001
    total = truth.rates.select(pl.sum_horizontal("correct", "under", "over"))
    np.testing.assert_allclose(total.to_numpy(), 1.0, rtol=0, atol=SUM_ATOL)


def test_many_repetitions_reach_the_finite_truth_as_judged() -> None:
    n = 1_500
    many = tuple(dataclasses.replace(c, n_repetitions=n) for c in design().conditions)
    effects = Effects(
        condition_effects={"letter": -0.8},
        judge_error_rate=0.2,
        unparsed_rates={"free": 0.1, "letter": 0.2},
        under_share=0.8,
        two_level_share=0.3,
    )
    study = simulate_study(
        design(conditions=many, gold=("self_care", "routine/urgent", *LEVELS[1:], "urgent")),
        effects,
        seed=9,
    )
    position = {level: i for i, level in enumerate(LEVELS)}
    labels = pl.concat(
        [
            study.judgments.join(study.responses.select(*KEY, "gold"), on=KEY).drop("judge"),
            study.responses.filter(condition="letter").rename({"response": "label"}),
        ],
        how="diagonal",
    ).with_columns(
        pl.col("label").replace_strict(position, return_dtype=pl.Int64).alias("at"),
        pl.col("gold").str.split("/").list.first().replace_strict(position).alias("low"),
        pl.col("gold").str.split("/").list.last().replace_strict(position).alias("high"),
    )
    under, over = pl.col("at") < pl.col("low"), pl.col("at") > pl.col("high")
    right = pl.col("at").is_between("low", "high")
    for condition in ("free", "letter"):
        truth = study.truth.rates.filter(
            pl.col("model").is_null(), population="finite", condition=condition
        ).to_dicts()[0]
        rows = labels.filter(condition=condition)
        for name, hit in (
            ("judged_under", under),
            ("judged_over", over),
            ("judged_correct", right),
            ("unparsed_as_wrong", right.fill_null(value=False)),
        ):
            hits = rows.select(hit.alias("hit"))["hit"].drop_nulls()
            # Two judges share an answer, so a free-text row is worth at least half a row.
            band = Z_BAND * np.sqrt(truth[name] * (1 - truth[name]) / (len(hits) / 2))
            assert band < 0.02
            assert abs(hits.mean() - truth[name]) < band, (condition, name)


def test_judge_error_separates_the_two_truths_only_where_judged() -> None:
    truth = simulate_study(design(), Effects(judge_error_rate=0.15), seed=1).truth.rates
    letter = truth.filter(condition="letter")
    for name in ("correct", "under", "over"):
        np.testing.assert_allclose(letter[name], letter[f"judged_{name}"], rtol=0, atol=SUM_ATOL)
    free = truth.filter(condition="free")
    assert (free["correct"] - free["judged_correct"]).min() > 0.02


def test_true_contrasts_are_differences_of_true_rates() -> None:
    effects = Effects(condition_effects={"letter": -0.5}, model_effects={"c": 1.0})
    truth = simulate_study(design(), effects, seed=2).truth
    values = truth.rates.columns[3:]

    def rates(population: str, condition: str | None, model: str | None) -> np.ndarray:
        rows = truth.rates.filter(population=population)
        rows = rows.filter(pl.col("model").is_not_null() if model is None else model == pl.col("model"))
        if condition is not None:
            rows = rows.filter(condition=condition)
        return rows.select(values).mean().to_numpy()[0]

    assert truth.contrasts.height == 2 * (1 * 4 + 3 * 3)
    for row in truth.contrasts.to_dicts():
        assert row["contrast"] == f"{row['level']} - {row['reference']}"
        if row["term"] == "condition":
            level = rates(row["population"], row["level"], row["model"])
            reference = rates(row["population"], row["reference"], row["model"])
        else:
            level = rates(row["population"], row["condition"], row["level"])
            reference = rates(row["population"], row["condition"], row["reference"])
        found = [row[name] for name in values]
        np.testing.assert_allclose(found, level - reference, rtol=0, atol=SUM_ATOL)


@pytest.mark.parametrize(
    ("gold", "shares"),
    [
        ("self_care", {"routine": 0.75, "urgent": 0.25}),
        ("routine", {"self_care": 0.7, "urgent": 0.3 * 0.75, "emergency": 0.3 * 0.25}),
        ("urgent", {"self_care": 0.7 * 0.25, "routine": 0.7 * 0.75, "emergency": 0.3}),
        ("emergency", {"routine": 0.25, "urgent": 0.75}),
        ("routine/urgent", {"self_care": 0.7, "emergency": 0.3}),
        ("urgent/emergency", {"self_care": 0.25, "routine": 0.75}),
    ],
)
def test_wrong_answers_go_under_or_over_as_stated(gold: str, shares: dict[str, float]) -> None:
    effects = certain(right=False, under_share=0.7, two_level_share=0.25)
    study = simulate_study(one_cell(20_000, gold=gold), effects, seed=7)
    response = study.responses["response"]
    assert set(response.unique()) == set(shares)
    for level, share in shares.items():
        if share < 1:
            assert_share(response == level, share)
    low = LEVELS.index(gold.partition("/")[0])
    under = sum(share for level, share in shares.items() if LEVELS.index(level) < low)
    row = study.truth.rates.filter(pl.col("model").is_null(), population="finite")
    assert row["under"].item() == pytest.approx(under, abs=SUM_ATOL)
    assert row["over"].item() == pytest.approx(1 - under, abs=SUM_ATOL)


def test_right_answers_lie_in_the_gold_range() -> None:
    ranged = simulate_study(one_cell(20_000, gold="routine/urgent"), certain(right=True), seed=7)
    response = ranged.responses["response"]
    assert set(response.unique()) == {"routine", "urgent"}
    assert_share(response == "urgent", 0.5)
    single = simulate_study(one_cell(2_000, gold="urgent"), certain(right=True), seed=7)
    assert single.responses["response"].unique().to_list() == ["urgent"]


@pytest.mark.parametrize(
    ("gold", "shares"),
    [
        ("self_care", {"self_care": 0.8, "routine": 0.2}),
        ("urgent", {"routine": 0.1, "urgent": 0.8, "emergency": 0.1}),
    ],
)
def test_judges_misread_by_one_level(gold: str, shares: dict[str, float]) -> None:
    asked = one_cell(20_000, gold=gold, mode="judged", n_judges=2)
    study = simulate_study(asked, certain(right=True, judge_error_rate=0.2), seed=7)
    first, second = (study.judgments.filter(judge=j)["label"] for j in ("j0", "j1"))
    for label in (first, second):
        assert set(label.unique()) == set(shares)
        for level, share in shares.items():
            assert_share(label == level, share)
    assert_share((first == gold) & (second == gold), 0.8**2)
    perfect = simulate_study(asked, certain(right=True), seed=7)
    assert perfect.judgments["label"].unique().to_list() == [gold]


def test_unparsed_has_no_label_and_is_unrelated_to_being_right() -> None:
    effects = Effects(base_logit=0.0, unparsed_rates={"letter": 0.2, "free": 0.1})
    many = tuple(dataclasses.replace(c, n_repetitions=200) for c in design().conditions)
    study = simulate_study(design(conditions=many), effects, seed=3)
    letter = study.responses.filter(condition="letter")
    assert_share(letter["error"].is_not_null(), 0.2)
    assert_share(study.judgments["error"].is_not_null(), 0.1)
    assert study.responses.filter(condition="free")["error"].is_null().all()
    for frame, column in ((letter, "response"), (study.judgments, "label")):
        assert frame["error"].unique().sort().to_list() == [None, "unparsed"]
        assert (frame[column].is_null() == frame["error"].is_not_null()).all()
    everything = simulate_study(
        design(conditions=many), dataclasses.replace(effects, unparsed_rates={}), seed=3
    )
    hidden = everything.responses.filter(condition="letter").filter(letter["error"].is_not_null())
    seen = everything.responses.filter(condition="letter").filter(letter["error"].is_null())
    rates = [(frame["response"] == frame["gold"]).mean() for frame in (hidden, seen)]
    band = Z_BAND * np.sqrt(0.25 / hidden.height + 0.25 / seen.height)
    assert abs(rates[0] - rates[1]) < band


def test_missing_cells_and_rows_are_absent_and_leave_the_rest() -> None:
    whole = simulate_study(design(n_scenarios=200), Effects(), seed=3)
    cells = simulate_study(design(n_scenarios=200), Effects(missing_cell_rate=0.1), seed=3)
    key = KEY[:4]
    kept = cells.responses.group_by(key).len().join(whole.responses.group_by(key).len(), on=key)
    assert (kept["len"] == kept["len_right"]).all()
    n_cells = 200 * 3 * 2 * 2
    assert_share(pl.Series(np.arange(n_cells) < kept.height), 0.9)
    assert_frame_equal(whole.responses.join(cells.responses, on=KEY, how="semi"), cells.responses)
    assert_frame_equal(whole.judgments.join(cells.judgments, on=KEY, how="semi"), cells.judgments)
    rows = simulate_study(design(n_scenarios=200), Effects(missing_row_rate=0.1), seed=3)
    assert_share(pl.Series(np.arange(whole.responses.height) < rows.responses.height), 0.9)
    assert rows.responses.group_by(key).len()["len"].n_unique() > 2
    answered = rows.responses.filter(condition="free")
    assert rows.judgments.height == 2 * answered.height
    assert rows.judgments.join(answered, on=KEY, how="anti").height == 0


def test_scores_reshape_to_the_crossing() -> None:
    simulated = simulate_scores(5, n_models=2, n_conditions=3, n_repetitions=4, seed=1)
    scores = simulated.scores
    expected = np.indices((5, 2, 3, 4)).reshape(4, -1)
    np.testing.assert_array_equal(scores["scenario"], expected[0])
    np.testing.assert_array_equal(scores["model"].str.slice(1).cast(int), expected[1] + 1)
    np.testing.assert_array_equal(scores["condition"].str.slice(1).cast(int), expected[2] + 1)
    np.testing.assert_array_equal(scores["repetition"], expected[3] + 1)
    assert set(scores["score"]) == {0, 1}


def test_scores_belong_to_their_cells() -> None:
    simulated = simulate_scores(4, n_models=2, n_repetitions=5_000, scenario_sd=2.0, seed=6)
    observed = simulated.scores.group_by("scenario", "model", "condition").agg(pl.col("score").mean())
    merged = observed.join(simulated.truth.cells, on=["scenario", "model", "condition"])
    assert merged.height == 16
    p = merged["correct"].to_numpy()
    band = Z_BAND * np.sqrt(p * (1 - p) / 5_000)
    assert np.all(np.abs(merged["score"].to_numpy() - p) < band)
    assert p.max() - p.min() > 0.2


def test_study_pickles() -> None:
    study = simulate_study(design(), Effects(model_effects={"b": 1.0}), seed=1)
    again = pickle.loads(pickle.dumps(study))
    assert_frame_equal(again.responses, study.responses)
    assert again.design == study.design
    assert again.effects == study.effects


def test_bundled_files_are_a_fresh_run(tmp_path) -> None:
    main([str(tmp_path / "new" / "folder")])
    fresh = {path.name: path.read_bytes() for path in (tmp_path / "new" / "folder").iterdir()}
    assert sorted(fresh) == DEMO_FILES
    for name, content in fresh.items():
        assert (files("triagestats") / "data" / name).read_bytes() == content, name


def test_module_runs_as_a_command(tmp_path) -> None:
    subprocess.run([sys.executable, "-W", "error", "-m", "triagestats.simulate", str(tmp_path)], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == DEMO_FILES


def test_bundled_tables_read_back_as_the_study() -> None:
    study = demo_study()
    for name, frame in (("responses", study.responses), ("judgments", study.judgments)):
        text = (files("triagestats") / "data" / f"demo_{name}.csv").read_bytes()
        assert_frame_equal(pl.read_csv(text, infer_schema_length=None), frame)
    truth = json.loads((files("triagestats") / "data" / "demo_truth.json").read_text("utf-8"))
    for name, frame in (("rates", study.truth.rates), ("contrasts", study.truth.contrasts)):
        assert_close(pl.DataFrame(truth[name]), frame, atol=FILE_ATOL)


def test_demo_design() -> None:
    study = demo_study()
    counts = study.responses.select(pl.col(KEY).n_unique()).to_dicts()[0]
    assert list(counts.values()) == [17, 5, 2, 3, 5]
    assert study.judgments["judge"].n_unique() == 2
    planned = 17 * 5 * 3 * 5
    for condition in ("letter", "free_text"):
        cells = study.responses.filter(condition=condition).group_by(KEY[:4]).len()
        assert (cells["len"] == 5).all()
        assert planned - 100 < 5 * cells.height < planned
    unparsed = study.responses.filter(condition="letter")["error"].is_not_null().mean()
    assert 0.01 < unparsed < 0.03
    assert study.responses["gold"].str.contains("/").any()
    assert sorted(study.design.levels) != list(study.design.levels)


def test_demo_contrast_looks_sure_by_rows_and_open_by_scenarios() -> None:
    study = demo_study()
    found = _demo.compare(study)
    assert found.row_p_value < 0.01
    assert found.scenario_p_value > 0.05
    assert found.scenario_std_error / found.row_std_error > 2
    truth = study.truth.contrasts.filter(
        pl.col("model").is_null(), term="condition", contrast="letter - free_text"
    ).select("population", "judged_correct")
    values = dict(truth.iter_rows())
    assert -0.06 < values["superpopulation"] < -0.01
    # Given the scenarios, rows are independent, and the row-wise error is (more than) right.
    assert abs(found.row_estimate - values["finite"]) < Z_BAND * found.row_std_error
    superpopulation_z = (found.scenario_estimate - values["superpopulation"]) / (found.scenario_std_error)
    assert abs(superpopulation_z) < stats.t.isf(0.025, df=16)


def test_demo_seed_is_the_first_that_shows_the_trap() -> None:
    shown = [
        seed
        for seed in range(1, _demo.SEED + 1)
        for found in (_demo.compare(_demo.build(seed)),)
        if found.row_p_value < 0.01 and found.scenario_p_value > 0.1
    ]
    assert shown == [_demo.SEED]


def test_comparison_by_hand() -> None:
    study = demo_study()
    position = {level: i for i, level in enumerate(study.design.levels)}

    def score(label: str, gold: str) -> float:
        ends = [position[end] for end in gold.split("/")]
        return float(ends[0] <= position[label] <= ends[-1])

    gold = dict(study.responses.select("scenario", "gold").unique().iter_rows())
    answers: dict[tuple[object, ...], list[float]] = {}
    for row in study.responses.filter(pl.col("response").is_not_null()).iter_rows():
        answers.setdefault(row[:5], []).append(score(row[6], gold[row[0]]))
    for row in study.judgments.filter(pl.col("label").is_not_null()).iter_rows():
        answers.setdefault(row[:5], []).append(score(row[6], gold[row[0]]))
    rows = {key: np.mean(values) for key, values in answers.items()}
    letter, free = ([v for k, v in rows.items() if k[2] == c] for c in ("letter", "free_text"))
    assert _demo.compare(study).row_estimate == pytest.approx(np.mean(letter) - np.mean(free))
    levels = rows
    for width in (4, 3):
        grouped: dict[tuple[object, ...], list[float]] = {}
        for key, value in levels.items():
            grouped.setdefault(key[:width], []).append(float(value))
        levels = {key: np.mean(values) for key, values in grouped.items()}
    scenario: dict[tuple[object, object], list[float]] = {}
    for (name, _, condition), value in levels.items():
        scenario.setdefault((name, condition), []).append(float(value))
    difference = [np.mean(scenario[name, "letter"]) - np.mean(scenario[name, "free_text"]) for name in gold]
    found = _demo.compare(study)
    assert found.scenario_estimate == pytest.approx(np.mean(difference))
    assert found.scenario_std_error == pytest.approx(stats.sem(difference))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: design(n_scenarios=0), r"`n_scenarios` must be an integer of at least 1, got 0"),
        (lambda: design(n_scenarios=2.5), r"`n_scenarios` must be an integer .* got 2\.5"),
        (lambda: design(n_scenarios=True), r"`n_scenarios` must be an integer .* got True"),
        (lambda: design(models=()), r"`models` must hold at least 1, got 0"),
        (lambda: design(models="abc"), r"`models` must be a sequence of strings, got 'abc'"),
        (lambda: design(models=("a", "a")), r"`models` must hold each name once, got 'a'"),
        (lambda: design(models=("",)), r"`models` must hold names that are not empty"),
        (lambda: design(conditions=("letter",)), r"`conditions` must be a tuple of Condition"),
        (lambda: design(conditions=()), r"`conditions` must hold at least 1, got 0"),
        (lambda: design(judges=()), r"`judges` must name at least one judge"),
        (lambda: design(levels=("low",)), r"`levels` must hold at least 2, got 1"),
        (lambda: design(levels=("a", "b/c")), r"`levels` must hold names .* no '/', got 'b/c'"),
        (lambda: design(scenarios=("s",)), r"`scenarios` must have one entry a scenario \(6\)"),
        (lambda: design(gold=("urgent",)), r"`gold` must have one entry a scenario \(6\), got 1"),
        (lambda: design(n_scenarios=1, gold=("high",)), r"`gold` must hold labels .* got 'high'"),
        (
            lambda: design(n_scenarios=1, gold=("urgent/routine",)),
            r"`gold` must hold labels .* got 'urgent/routine'",
        ),
        (
            lambda: design(n_scenarios=1, gold=("self_care/emergency",)),
            r"`gold` must leave room for a wrong answer",
        ),
        (
            lambda: Condition("c", mode="free"),
            r"`mode` must be \"label\" or \"judged\", got 'free'",
        ),
        (lambda: Condition("c", variants=()), r"`variants` must hold at least 1"),
        (lambda: Condition("c", n_repetitions=0), r"`n_repetitions` must be .* got 0"),
        (
            lambda: Effects(base_logit=float("nan")),
            r"`base_logit` must be a finite number, got nan",
        ),
        (lambda: Effects(scenario_sd=-1.0), r"`scenario_sd` must be .* of at least 0, got -1\.0"),
        (lambda: Effects(under_share=1.5), r"`under_share` must be .* from 0 to 1, got 1\.5"),
        (lambda: Effects(judge_error_rate=-0.1), r"`judge_error_rate` must be .* got -0\.1"),
        (lambda: Effects(missing_cell_rate=2), r"`missing_cell_rate` must be .* got 2"),
        (lambda: Effects(unparsed_rates={"c": 2.0}), r"`unparsed_rates\['c'\]` must be .* got 2"),
        (lambda: Effects(model_effects={"m": "x"}), r"`model_effects\['m'\]` must be .* got 'x'"),
        (
            lambda: simulate_study(design(), Effects(model_effects={"z": 1.0}), seed=1),
            r"`model_effects` must name what the design has, got 'z'\. Use a, b, c\.",
        ),
        (
            lambda: simulate_study(design(), Effects(unparsed_rates={"z": 0.1}), seed=1),
            r"`unparsed_rates` must name what the design has, got 'z'",
        ),
        (
            lambda: simulate_study(design(), Effects(), seed=-1),
            r"`seed` must be .* least 0, got -1",
        ),
        (lambda: simulate_scores(0, seed=1), r"`n_clusters` must be .* got 0"),
        (lambda: simulate_scores(3, n_repetitions=0, seed=1), r"`n_repetitions` must be .* got 0"),
        (
            lambda: simulate_scores(3, condition_effects=(0.1,), seed=1),
            r"`condition_effects` must have 2 numbers, one a level, got 1",
        ),
        (
            lambda: simulate_scores(3, scenario_model_sd=-0.1, seed=1),
            r"`scenario_model_sd` must be .* of at least 0, got -0\.1",
        ),
    ],
)
def test_senseless_input_is_refused(make, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
