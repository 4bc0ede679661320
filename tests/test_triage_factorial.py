"""Factorials: study 2, hand-computed grids, sign flips by enumeration, simulated truths, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats.intervals import jackknife_t

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12
PRINTED = 5e-5  # four decimals
END = 0.003  # the printed ends, and four Monte Carlo errors (0.0007) of 9,999 replicates
P = 0.003  # p-values are printed with three decimals
LEVELS = ("exact_structured", "natural_forced_letter", "natural_free_text", "source_stripped")
SOURCE, FORCED, FREE, STRIPPED = LEVELS
WORDING = {"wording": {"source": [SOURCE, STRIPPED], "natural": [FORCED, FREE]}}
OUTPUT = {"output": {"letter": [SOURCE, FORCED], "free": [STRIPPED, FREE]}}
TWO_BY_TWO: dict[str, Any] = {"a": WORDING, "b": OUTPUT}
INTERACTION = "(natural - source) x (free - letter)"


def one(frame: pl.DataFrame, **wanted: object) -> dict[str, Any]:
    """Return the one row with these values; None stands for null."""
    for name, value in wanted.items():
        frame = frame.filter(pl.col(name).is_null() if value is None else pl.col(name) == value)
    assert frame.height == 1, frame
    return frame.row(0, named=True)


def grid(cells: dict[tuple[str, str, str, str], float], **roles: Any) -> ts.ResponseTable:
    """Return a table of scenario, model, x, y and score."""
    columns = list(zip(*((*key, value) for key, value in cells.items()), strict=True))
    names = ("scenario", "model", "x", "y", "score")
    return ts.ResponseTable(dict(zip(names, map(list, columns), strict=True)), condition=["x", "y"], **roles)


def drawn_grid(
    n: int, seed: int, models: tuple[str, ...] = ("m",), effect: float = 0.0
) -> dict[tuple[str, str, str, str], float]:
    """Return scores of an additive model with two main effects and an interaction."""
    rng = np.random.default_rng(seed)
    cells = {}
    for scenario in range(n):
        base = rng.normal()
        for model, x, y in product(models, "01", "01"):
            value = base + 0.8 * (x == "1") - 0.5 * (y == "1") + effect * (x == y == "1")
            cells[f"s{scenario:02d}", model, x, y] = float(value + rng.normal())
    return cells


@pytest.fixture(scope="module")
def study2(shared: Shared) -> ts.ResponseTable:
    def read(name: str) -> pl.DataFrame:
        return pl.read_csv(shared(f"replication/study2/{name}.csv"), infer_schema=False)

    responses = pl.concat([read(f"{name}_responses") for name in LEVELS])
    judgments = pl.concat([read(f"{name}_judgments") for name in (FREE, STRIPPED)])
    return ts.ResponseTable(responses, levels=["A", "B", "C", "D"]).with_judgments(judgments)


@pytest.fixture(scope="module")
def study2_cells(study2: ts.ResponseTable) -> pl.DataFrame:
    """Complete cells, written out in polars, apart from the package's own path."""
    scored = study2.frame.filter(pl.col("score").is_not_null())
    responses = scored.group_by("scenario", "pair", "model", "condition", "repetition").agg(
        pl.col("score").mean()
    )
    cells = responses.group_by("scenario", "pair", "model", "condition").agg(pl.col("score").mean())
    return cells.pivot(on="condition", index=["scenario", "pair", "model"], values="score").drop_nulls()


@pytest.fixture(scope="module")
def found(study2: ts.ResponseTable) -> ts.Factorial:
    return ts.factorial(study2, interval="percentile", **TWO_BY_TWO)


def test_study2_interaction(found: ts.Factorial) -> None:
    row = one(found.effects, estimand="interaction", model=None, judge=None)
    assert (found.n_cells, found.n_planned) == (344, 360)
    assert row["contrast"] == INTERACTION
    assert row["estimate"] == pytest.approx(-0.0451, abs=PRINTED)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((-0.081, -0.012), abs=END)
    assert row["p_value"] == pytest.approx(0.014, abs=P)
    assert (row["n_clusters"], row["n_missing"], row["verdict"]) == (60, 16, None)


def test_study2_interaction_by_pair(study2: ts.ResponseTable) -> None:
    paired = ts.factorial(study2.with_cluster("pair"), interval="percentile", **TWO_BY_TWO)
    row = one(paired.effects, estimand="interaction", model=None, judge=None)
    assert row["estimate"] == pytest.approx(-0.0451, abs=PRINTED)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((-0.085, -0.010), abs=END)
    assert row["p_value"] == pytest.approx(0.026, abs=P)
    assert row["n_clusters"] == 30


@pytest.mark.parametrize(("judge", "printed"), [("gpt-5.4-xhigh", -0.032), ("claude-opus-4.6", -0.058)])
def test_study2_interaction_by_judge(found: ts.Factorial, judge: str, printed: float) -> None:
    row = one(found.effects, estimand="interaction", model=None, judge=judge)
    assert row["estimate"] == pytest.approx(printed, abs=5e-4)


def test_study2_effects_are_means_over_complete_cells(
    found: ts.Factorial, study2_cells: pl.DataFrame
) -> None:
    mean = {name: float(study2_cells[name].to_numpy().mean()) for name in LEVELS}
    expected = {
        ("main_effect", "natural - source"): (mean[FORCED] + mean[FREE] - mean[SOURCE] - mean[STRIPPED]) / 2,
        ("main_effect", "free - letter"): (mean[STRIPPED] + mean[FREE] - mean[SOURCE] - mean[FORCED]) / 2,
        ("simple_effect", "natural - source at output = letter"): mean[FORCED] - mean[SOURCE],
        ("simple_effect", "natural - source at output = free"): mean[FREE] - mean[STRIPPED],
        ("simple_effect", "free - letter at wording = source"): mean[STRIPPED] - mean[SOURCE],
        ("simple_effect", "free - letter at wording = natural"): mean[FREE] - mean[FORCED],
        ("interaction", INTERACTION): (mean[FREE] - mean[FORCED]) - (mean[STRIPPED] - mean[SOURCE]),
    }
    shown = found.effects.filter(pl.col("model").is_null() & pl.col("judge").is_null())
    got = {(e, c): v for e, c, v in shown.select("estimand", "contrast", "estimate").iter_rows()}
    assert got == pytest.approx(expected, abs=EXACT)
    condition = "wording=natural, output=free"
    rate = one(found.means, condition=condition, model=None, judge=None)
    assert rate["estimate"] == pytest.approx(mean[FREE], abs=EXACT)


def test_scenario_weights_average_the_models(study2: ts.ResponseTable, study2_cells: pl.DataFrame) -> None:
    contrast = (pl.col(FREE) - pl.col(FORCED) - pl.col(STRIPPED) + pl.col(SOURCE)).alias("i")
    by_model = study2_cells.group_by("model").agg(contrast.mean())
    fit = ts.factorial(study2, weights="scenario", n_resamples=99, **TWO_BY_TWO)
    rows = fit.effects.filter((pl.col("estimand") == "interaction") & pl.col("judge").is_null())
    assert one(rows, model=None)["estimate"] == pytest.approx(by_model["i"].to_numpy().mean(), abs=EXACT)
    for model, value in by_model.iter_rows():
        assert one(rows, model=model)["estimate"] == pytest.approx(value, abs=EXACT)


def test_the_t_interval_is_that_of_the_cluster_jackknife(
    study2: ts.ResponseTable, study2_cells: pl.DataFrame
) -> None:
    contrast = (pl.col(FREE) - pl.col(FORCED) - pl.col(STRIPPED) + pl.col(SOURCE)).alias("i")
    sums = study2_cells.group_by("scenario").agg(contrast.sum(), pl.len().alias("n"))
    i, n = sums["i"].to_numpy(), sums["n"].to_numpy()
    without = (i.sum() - i) / (n.sum() - n)
    size = len(i)
    error = np.sqrt((size - 1) / size * ((without - without.mean()) ** 2).sum())
    row = one(
        ts.factorial(study2, n_resamples=99, **TWO_BY_TWO).effects,
        estimand="interaction",
        model=None,
        judge=None,
    )
    assert row["std_error"] == pytest.approx(error, rel=1e-9)
    ends = jackknife_t(np.array([i.sum() / n.sum()]), np.array([error]), np.array([size - 1.0]), 0.95)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((ends.low[0], ends.high[0]), abs=1e-9)


def test_the_intervals_stand_side_by_side(found: ts.Factorial) -> None:
    rows = found.intervals.filter(
        (pl.col("estimand") == "interaction") & pl.col("model").is_null() & pl.col("judge").is_null()
    )
    methods = [name.split(",")[0] for name in rows["method"]]
    assert methods == ["cluster jackknife t", "cluster bootstrap percentile", "cluster bootstrap BCa"]
    shown = one(found.effects, estimand="interaction", model=None, judge=None)
    assert rows["conf_low"][1] == shown["conf_low"]


def test_columns_and_mappings_say_the_same() -> None:
    cells = drawn_grid(8, 1, ("m", "n"))
    by_columns = ts.factorial(grid(cells), a="x", b="y", n_resamples=199)
    joined = pl.DataFrame(
        {
            "scenario": [key[0] for key in cells],
            "model": [key[1] for key in cells],
            "condition": [f"c{key[2]}{key[3]}" for key in cells],
            "score": list(cells.values()),
        }
    )
    by_mapping = ts.factorial(
        ts.ResponseTable(joined),
        a={"x": {"0": ["c00", "c01"], "1": ["c10", "c11"]}},
        b={"y": {"0": ["c00", "c10"], "1": ["c01", "c11"]}},
        n_resamples=199,
    )
    names = ["estimand", "term", "model", "contrast"]
    left, right = by_columns.effects.sort(names), by_mapping.effects.sort(names)
    assert left.select(names).equals(right.select(names))
    for name in ("estimate", "std_error", "conf_low", "p_value"):
        assert left[name].to_list() == pytest.approx(right[name].to_list(), abs=1e-9)


def test_hand_computed_effects() -> None:
    scores = {"a": (1, 2, 4, 9), "b": (0, 3, 2, 1)}  # at 00, 01, 10, 11
    cells = {
        (s, "m", x, y): float(values[2 * int(x) + int(y)])
        for s, values in scores.items()
        for x, y in product("01", "01")
    }
    fit = ts.factorial(grid(cells), a="x", b="y", n_resamples=99)
    pooled = fit.effects.filter(pl.col("model").is_null())
    got = dict(pooled.select(pl.concat_str("term", pl.lit(": "), "contrast"), "estimate").iter_rows())
    assert got == pytest.approx(
        {
            "x: 1 - 0": 2.5,  # (6.5 + 1.5) / 2 - (1.5 + 1.5) / 2
            "y: 1 - 0": 2.0,
            "x: 1 - 0 at y = 0": 2.5,
            "x: 1 - 0 at y = 1": 2.5,
            "y: 1 - 0 at x = 0": 2.0,
            "y: 1 - 0 at x = 1": 2.0,
            "x x y: (1 - 0) x (1 - 0)": 0.0,  # (5 - 1) of a, (-1 - 3) of b
        }
    )
    assert pooled["conf_low"].null_count() == pooled.height  # two clusters
    assert set(pooled["status"]) == {"few_clusters"}
    assert "few_clusters" in {note.code for note in fit.notes}


@pytest.mark.parametrize("weights", ["row", "scenario"])
def test_the_p_value_is_that_of_all_sign_flips(weights: Any) -> None:
    """Enumerated here over clusters of two scenarios, with unequal numbers of cells and a weaker model."""
    cells = {key: float(np.round(value)) for key, value in drawn_grid(16, 3, ("m", "n"), 1.2).items()}
    for scenario in ("s00", "s05", "s06"):
        for x, y in product("01", "01"):
            del cells[scenario, "n", x, y]
    rows = [(*key, f"p{int(key[0][1:]) // 2}", value) for key, value in cells.items()]
    columns = zip(*rows, strict=True)
    names = ("scenario", "model", "x", "y", "pair", "score")
    data = dict(zip(names, map(list, columns), strict=True))
    table = ts.ResponseTable(data, condition=["x", "y"], cluster="pair")
    row = one(
        ts.factorial(table, a="x", b="y", weights=weights, n_resamples=999).effects,
        estimand="interaction",
        model=None,
    )
    added = np.zeros(8)
    n_cells = {model: sum(key[1] == model for key in cells) / 4 for model in ("m", "n")}
    for (scenario, model, x, y), value in cells.items():
        sign = 1 if x == y else -1
        share = 1 / sum(n_cells.values()) if weights == "row" else 1 / (2 * n_cells[model])
        added[int(scenario[1:]) // 2] += sign * value * share
    flips = np.array(list(product((-1, 1), repeat=8))) @ added
    assert row["estimate"] == pytest.approx(added.sum(), abs=1e-9)
    assert row["p_value"] == np.mean(np.abs(flips) >= abs(added.sum()) - 1e-9)


def test_main_effects_of_two_levels_have_the_p_value_of_analyze() -> None:
    """One factor: a main effect is the contrast of `analyze`, with its interval and its test."""
    cells = {key: value for key, value in drawn_grid(14, 5, ("m", "n")).items() if key[3] == "0"}
    table = grid(cells)
    fit = ts.factorial(table, a="x", weights="scenario")
    contrasts = ts.analyze(table).contrasts
    assert contrasts is not None
    assert fit.effects["estimand"].unique().to_list() == ["main_effect"]
    for model in (None, "m", "n"):
        mine, theirs = one(fit.effects, model=model), one(contrasts, model=model)
        for name in ("estimate", "std_error", "conf_low", "conf_high", "p_value", "verdict"):
            assert mine[name] == pytest.approx(theirs[name], abs=1e-9) if name != "verdict" else mine[name]
        assert mine["verdict"] == theirs["verdict"]


def test_swapping_a_reference_swaps_signs() -> None:
    table = grid(drawn_grid(9, 7))
    plain = ts.factorial(table, a="x", b="y", n_resamples=99).effects
    turned = ts.factorial(table, a="x", b="y", reference={"x": "1"}, n_resamples=99).effects
    for estimand, term in (("main_effect", "x"), ("interaction", "x x y")):
        before = one(plain, estimand=estimand, term=term, model=None)
        after = one(turned, estimand=estimand, term=term, model=None)
        assert after["estimate"] == pytest.approx(-before["estimate"], abs=1e-12)
        assert after["conf_low"] == pytest.approx(-before["conf_high"], abs=1e-12)
        assert after["p_value"] == before["p_value"]
    same = one(turned, estimand="main_effect", term="y", model=None)["estimate"]
    assert same == pytest.approx(one(plain, estimand="main_effect", term="y", model=None)["estimate"])


def test_an_interaction_ignores_additive_effects() -> None:
    """A constant of a scenario, a shift of a level and a shift of the scores change no interaction."""
    cells = drawn_grid(9, 8)
    moved = {
        key: value + 7 + 3 * (key[2] == "1") - 2 * (key[3] == "1") + int(key[0][1:])
        for key, value in cells.items()
    }
    rows = [
        one(ts.factorial(grid(part), n_resamples=99).effects, estimand="interaction", model=None)
        for part in (cells, moved)
    ]
    for name in ("estimate", "std_error", "conf_low", "conf_high", "p_value"):
        assert rows[0][name] == pytest.approx(rows[1][name], abs=1e-9)


def test_the_order_of_rows_changes_nothing() -> None:
    cells = drawn_grid(7, 9, ("m", "n"))
    turned = dict(reversed(cells.items()))
    assert (
        ts.factorial(grid(cells), n_resamples=199)
        .tidy()
        .equals(ts.factorial(grid(turned), n_resamples=199).tidy())
    )


def test_repetitions_are_averaged_within_a_cell() -> None:
    rows = [
        ("a", "0", 1, 1.0),
        ("a", "0", 2, 0.0),
        ("a", "0", 3, 0.0),
        ("a", "1", 1, 1.0),
        ("b", "0", 1, 0.0),
    ]
    rows += [("b", "1", 1, 1.0)]
    names = ("scenario", "x", "repetition", "score")
    table = ts.ResponseTable(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), condition="x")
    row = one(ts.factorial(table, a="x", n_resamples=99).effects)
    assert row["estimate"] == pytest.approx((2 / 3 + 1) / 2)  # not the mean over repetitions


@pytest.fixture(scope="module")
def sweep(shared: Shared) -> pl.DataFrame:
    return pl.read_csv(shared("replication/study1/factor_sweep_responses.csv"), infer_schema=False)


def test_a_full_grid_of_four_factors(sweep: pl.DataFrame) -> None:
    names = ["race", "gender", "anchor", "barrier"]
    fit = ts.factorial(ts.ResponseTable(sweep, condition=names, variant=False))
    assert fit.factors == {
        "race": ("Black", "White"),
        "gender": ("man", "woman"),
        "anchor": ("0", "1"),
        "barrier": ("0", "1"),
    }
    pooled = fit.effects.filter(pl.col("model").is_null())
    assert dict(pooled.group_by("estimand").len().iter_rows()) == {
        "main_effect": 4,
        "simple_effect": 24,
        "interaction": 6,
    }
    scored = sweep.with_columns((pl.col("response") == "A").cast(pl.Float64).alias("score"))
    for name, low, high in (("race", "Black", "White"), ("anchor", "0", "1"), ("barrier", "0", "1")):
        means = dict(scored.group_by(name).agg(pl.col("score").mean()).iter_rows())
        row = one(pooled, estimand="main_effect", term=name)
        assert row["estimate"] == pytest.approx(means[high] - means[low], abs=EXACT)
    means4 = dict(scored.group_by(pl.concat_str("race", "barrier")).agg(pl.col("score").mean()).iter_rows())
    expected = means4["White1"] - means4["White0"] - means4["Black1"] + means4["Black0"]
    row = one(pooled, estimand="interaction", term="race x barrier")
    assert row["estimate"] == pytest.approx(expected, abs=EXACT)


def test_columns_that_are_not_named_are_averaged_over(sweep: pl.DataFrame) -> None:
    table = ts.ResponseTable(sweep, condition=["race", "gender", "anchor", "barrier"], variant=False)
    whole, part = ts.factorial(table), ts.factorial(table, a="race", b="anchor")
    assert any("gender, barrier" in note.message for note in part.notes if note.code == "averaged")
    for estimand, term in (("main_effect", "race"), ("interaction", "race x anchor")):
        wanted: dict[str, object] = {"estimand": estimand, "term": term, "model": None}
        assert one(part.effects, **wanted)["estimate"] == one(whole.effects, **wanted)["estimate"]


def test_a_variant_that_names_the_combination_is_pointed_out(sweep: pl.DataFrame, refusal: Refusal) -> None:
    table = ts.ResponseTable(sweep, condition=["race", "gender", "anchor", "barrier"])
    said = refusal(lambda: ts.factorial(table))
    assert said.startswith("DesignError: no cell is scored in all 16 condition levels")
    assert "`variant=False`" in said


def test_three_way_interactions() -> None:
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 5, size=(6, 2, 2, 2)).astype(float)
    rows = [(f"s{s}", *map(str, place), scores[s][place]) for s in range(6) for place in np.ndindex(2, 2, 2)]
    names = ("scenario", "x", "y", "z", "score")
    table = ts.ResponseTable(
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), condition=["x", "y", "z"]
    )
    two = ts.factorial(table, n_resamples=99).effects
    three = ts.factorial(table, order=3, n_resamples=99).effects
    assert three.height == two.height + 1
    mean = scores.mean(axis=0)
    step = mean[1] - mean[0]
    expected = (step[1, 1] - step[1, 0]) - (step[0, 1] - step[0, 0])
    assert one(three, term="x x y x z")["estimate"] == pytest.approx(expected, abs=EXACT)
    marginal = scores.mean(axis=(0, 3))
    expected = marginal[1, 1] - marginal[1, 0] - marginal[0, 1] + marginal[0, 0]
    assert one(three, term="x x y")["estimate"] == pytest.approx(expected, abs=EXACT)


def test_three_levels_are_each_compared_with_the_reference() -> None:
    rows = [
        (s, level, float(value))
        for level, v in (("a", 1), ("b", 3), ("c", 8))
        for s, value in (("s0", v), ("s1", v + 1), ("s2", 2 * v))
    ]
    names = ("scenario", "x", "score")
    table = ts.ResponseTable(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), condition="x")
    effects = ts.factorial(table, a="x", reference="b", n_resamples=99).effects
    assert effects["contrast"].to_list() == ["a - b", "c - b"]
    assert effects["estimate"].to_list() == pytest.approx([-(2 + 2 + 4) / 3, (5 + 5 + 10) / 3])


@pytest.fixture
def one_at_a_time() -> ts.ResponseTable:
    """Return a base and single changes of three factors."""
    rng = np.random.default_rng(4)
    rows = [
        (f"s{s}", *place, float(rng.integers(0, 2)))
        for s in range(12)
        for place in (("0", "0", "0"), ("1", "0", "0"), ("0", "1", "0"), ("0", "0", "1"))
    ]
    names = ("scenario", "x", "y", "z", "score")
    return ts.ResponseTable(
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), condition=["x", "y", "z"]
    )


def test_ablations_one_factor_at_a_time(one_at_a_time: ts.ResponseTable) -> None:
    fit = ts.factorial(one_at_a_time, order=1, others="reference", n_resamples=99)
    frame = one_at_a_time.frame
    base = frame.filter(condition="x=0, y=0, z=0")["score"].to_numpy().mean()
    for term, label in (("x", "x=1, y=0, z=0"), ("y", "x=0, y=1, z=0"), ("z", "x=0, y=0, z=1")):
        changed = frame.filter(condition=label)["score"].to_numpy().mean()
        assert one(fit.effects, term=term)["estimate"] == pytest.approx(changed - base, abs=EXACT)
    assert fit.n_cells == 12


def test_a_grid_with_holes_is_refused(one_at_a_time: ts.ResponseTable, refusal: Refusal) -> None:
    said = refusal(lambda: ts.factorial(one_at_a_time))
    assert said.startswith("DesignError: the factors do not cross: no condition level is at (x=1, y=0, z=1)")
    assert "order=1" in said


def test_condition_levels_that_share_a_combination_are_averaged() -> None:
    scores = {"p": [1, 0, 1, 1], "q": [0, 0, 1, 1], "r": [1, 1, 1, 1], "left": [0, 0, 0, 0]}
    rows = [(f"s{s}", name, value) for name, values in scores.items() for s, value in enumerate(values)]
    names = ("scenario", "condition", "score")
    table = ts.ResponseTable(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    fit = ts.factorial(table, a={"old": ["p", "q"], "new": "r"}, n_resamples=99)
    row = one(fit.effects)
    assert (row["term"], row["contrast"]) == ("a", "new - old")
    assert row["estimate"] == pytest.approx(1 - (0.75 + 0.5) / 2)
    assert any("'left'" in note.message for note in fit.notes if note.code == "unused")


def test_a_level_that_a_model_lacks_is_noted() -> None:
    cells = drawn_grid(8, 6, ("m", "n"))
    gone = {key: value for key, value in cells.items() if key[1] == "m" or key[2:] != ("1", "0")}
    fit = ts.factorial(grid(gone), a="x", b="y", n_resamples=99)
    alone = ts.factorial(grid({k: v for k, v in cells.items() if k[1] == "m"}), a="x", b="y", n_resamples=99)
    for estimand, term in (("main_effect", "x"), ("interaction", "x x y")):
        wanted: dict[str, object] = {"estimand": estimand, "term": term, "model": None}
        assert one(fit.effects, **wanted)["estimate"] == one(alone.effects, **wanted)["estimate"]
    row = one(fit.effects, estimand="interaction", model="n")
    assert (row["estimate"], row["status"], row["n_missing"]) == (None, "no_data", 8)
    (note,) = (note for note in fit.notes if note.code == "model_left_out")
    assert note.message == "n is in no estimate: it has no score at x=1, y=0."
    assert note.level == "caution"


def test_unscored_cells_are_counted() -> None:
    cells = drawn_grid(8, 6, ("m", "n"))
    del cells["s03", "n", "1", "1"]
    fit = ts.factorial(grid(cells), a="x", b="y", n_resamples=99)
    assert (fit.n_cells, fit.n_planned) == (15, 16)
    (note,) = (note for note in fit.notes if note.code == "incomplete_cells")
    assert note.message == "15 of 16 planned cells are scored in all 4 levels (n 7 of 8)."


def test_strata_and_two_cluster_columns() -> None:
    cells = drawn_grid(12, 12, ("m", "n", "o"))
    frame = pl.DataFrame(
        [(*key, value, "odd" if int(key[0][1:]) % 2 else "even") for key, value in cells.items()],
        schema=["scenario", "model", "x", "y", "score", "kind"],
        orient="row",
    )
    table = ts.ResponseTable(frame, condition=["x", "y"], stratum="kind")
    fit = ts.factorial(table, n_resamples=99)
    odd = {key: value for key, value in cells.items() if int(key[0][1:]) % 2}
    expected = one(ts.factorial(grid(odd), n_resamples=99).effects, estimand="interaction", model=None)
    row = one(fit.effects, estimand="interaction", model=None, stratum="odd")
    assert row["estimate"] == pytest.approx(expected["estimate"], abs=EXACT)
    crossed = ts.factorial(table.with_cluster(("scenario", "model")), n_resamples=99)
    row = one(crossed.effects, estimand="interaction", model=None, stratum=None)
    assert row["method"].endswith("t test")
    assert "sign_flips" not in {note.code for note in crossed.notes}


def test_intervals_cover_and_flips_keep_their_size() -> None:
    """Two main effects and no interaction: nominal 95 % and 5 %, judged by binomial bands of 80 samples."""
    n_samples, covered, rejected = 80, 0, 0
    for seed in range(n_samples):
        table = grid(drawn_grid(14, 1000 + seed))
        row = one(ts.factorial(table, n_resamples=99).effects, estimand="interaction", model=None)
        covered += row["conf_low"] <= 0 <= row["conf_high"]
        rejected += row["p_value"] <= 0.05
    assert covered >= 69  # the 1 in 1,000 quantile of a binomial with 80 and 0.95
    assert rejected <= 11  # the 1 in 1,000 quantile of a binomial with 80 and 0.05


def test_a_true_interaction_is_found() -> None:
    row = one(
        ts.factorial(grid(drawn_grid(40, 21, ("m", "n"), 1.5)), n_resamples=999).effects,
        estimand="interaction",
        model=None,
    )
    assert row["conf_low"] < 1.5 < row["conf_high"]
    assert row["p_value"] < 0.01


def test_results_convert(found: ts.Factorial) -> None:
    assert found.tidy().columns == ts.analyze(ts.demo_table(), n_resamples=99).tidy().columns
    assert found.glance().height == 1
    json.dumps(found.to_dict(), allow_nan=False)
    narrow = found.with_level(0.8)
    row, wide = (one(fit.effects, estimand="interaction", model=None, judge=None) for fit in (narrow, found))
    assert wide["conf_low"] < row["conf_low"] < row["conf_high"] < wide["conf_high"]
    assert row["p_value"] == wide["p_value"]
    text = repr(found)
    assert "344 of 360 cells" in text
    assert INTERACTION in text


def test_holm_is_within_the_kind_of_effect() -> None:
    effects = ts.factorial(grid(drawn_grid(12, 30, ("m", "n"))), n_resamples=99).effects
    for estimand in ("main_effect", "simple_effect", "interaction"):
        family = effects.filter((pl.col("estimand") == estimand) & pl.col("model").is_null())
        expected = ts.adjust(family["p_value"]).p_adjusted
        assert family["p_adjusted"].to_list() == pytest.approx(list(expected))


EXAMPLE = "{'wording': {'source': ['exact', 'stripped'], 'natural': ['free', 'letter']}}"
KNOWN = "{'x': ['0', '1'], 'y': ['0', '1']}"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"a": "z"},
            (
                "`a` names 'z'; choose from the condition columns ['x', 'y'], or map the levels of a factor "
                f"to condition levels, such as {EXAMPLE}"
            ),
        ),
        ({"a": {"p": ["0"], "q": ["0", "1"]}}, "`a` gives '0' twice; a level belongs to one"),
        (
            {"a": {"p": ["0"], "q": ["1"]}},
            (
                f"`a` names levels that several condition columns have, {KNOWN}; give joint levels such as "
                "'x=0, y=0'"
            ),
        ),
        (
            {"a": {"p": ["0"], "q": ["7"]}},
            f"`a` names '0', '7'; the levels of one condition column are needed, of {KNOWN}",
        ),
        ({"a": "x", "b": "x"}, "the factors must have different names; got ['x', 'x']"),
        ({"a": "x", "order": 0}, "`order` must be at least 1; got 0"),
        ({"a": "x", "others": "none"}, "`others` must be one of 'marginal', 'reference'; got 'none'"),
        (
            {"a": {"p": ["x=0, y=0"]}},
            f"`a` must have two levels or more, such as {EXAMPLE}; got {{'p': ['x=0, y=0']}}",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], expected: str, refusal: Refusal) -> None:
    table = grid(drawn_grid(5, 1))
    said = refusal(lambda: ts.factorial(table, n_resamples=99, **arguments))
    assert said == f"ArgumentError: {expected}"


def test_the_smallest_p_that_can_be_reached_is_noted() -> None:
    """Three clusters have 8 sign flips: no p-value below 1/4."""
    scores = {("0", "0"): [0, 0, 0], ("1", "0"): [1, 1, 1], ("0", "1"): [0, 0, 1], ("1", "1"): [1, 1, 1]}
    rows = [(f"s{s}", x, y, v) for (x, y), values in scores.items() for s, v in enumerate(values)]
    data = dict(zip(("scenario", "x", "y", "score"), map(list, zip(*rows, strict=True)), strict=True))
    table = ts.ResponseTable(data, condition=["x", "y"])
    found = ts.factorial(table, n_resamples=99)
    (note,) = (note for note in found.notes if note.code == "smallest_p")
    assert "cannot be below 0.05" in note.message
    assert "0.25" in note.message
    assert note.message in repr(found)
    assert min(found.effects["p_value"].drop_nulls()) >= 0.25
    codes = [note.code for note in ts.factorial(table, n_resamples=99, conf_level=0.5).notes]
    assert codes.count("smallest_p") == int(max(found.effects["p_value"].drop_nulls()) > 0.5)


def test_other_kinds_of_factors_are_refused(refusal: Refusal) -> None:
    table = grid(drawn_grid(5, 1))
    wrong: Any = ["x", "y"]
    assert refusal(lambda: ts.factorial(table, a=wrong)).startswith(
        "ArgumentTypeError: `a` must name a condition column, or map the levels of a factor"
    )
    half: Any = 1.5
    assert refusal(lambda: ts.factorial(table, order=half)) == (
        "ArgumentTypeError: `order` must be a whole number; got 1.5"
    )
    plain = ts.ResponseTable({"scenario": ["a", "b"], "score": [1, 0]})
    assert refusal(lambda: ts.factorial(plain)).startswith(
        "DesignError: the table has no condition column; name it"
    )
    same = ts.ResponseTable({"scenario": ["a", "b"], "x": ["0", "0"], "score": [1, 0]}, condition="x")
    assert refusal(lambda: ts.factorial(same)) == "DesignError: factor 'x' has the level '0' alone: no effect"


def test_a_level_without_any_score_is_refused(refusal: Refusal) -> None:
    cells = drawn_grid(5, 1)
    table = grid(cells)
    blank = table.frame.with_columns(
        pl.when(pl.col("condition") == "x=1, y=1").then(None).otherwise("score").alias("score")
    )
    said = refusal(lambda: ts.factorial(table.with_frame(blank)))
    assert said.startswith("DesignError: nothing is scored at (x=1, y=1): score its answers")
