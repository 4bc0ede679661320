"""The permutation null of the anchoring gap: narrativeshield, enumeration, simulated nulls, bad input."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts

Shared = Callable[[str], Path]
Refusal = Callable[[Callable[[], object]], str]

EXACT = 1e-12
ERRORS = 4  # standard errors of two sets of 2,000 permutations that count as the same
LATTICE = 0.001  # an anchoring gap of 1,000 items moves by one item
BOTH = math.sqrt(2 / 2_000)


def table_of(voices: dict[str, list[int]], models: int = 1) -> ts.ResponseTable:
    rows = [
        (f"m{m}", f"s{s:03d}", voice, value if m == 0 else 1 - value)
        for m in range(models)
        for voice, values in voices.items()
        for s, value in enumerate(values)
    ]
    names = ("model", "scenario", "voice", "score")
    return ts.ResponseTable(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.fixture(scope="module")
def expected(shared: Shared) -> dict[str, Any]:
    loaded = json.loads(shared("replication/narrativeshield/expected.json").read_text())
    null: dict[str, Any] = loaded["nag_permutation_null_2000"]
    return null


@pytest.fixture(scope="module")
def found(shared: Shared) -> ts.AnchoringNull:
    raw = pl.read_csv(shared("replication/narrativeshield/responses.csv.gz"), infer_schema=False)
    table = ts.ResponseTable(raw, condition=["condition", "voice"])
    return ts.anchoring_null(table, voice="voice", control="alpha", n_resamples=2_000)


def test_every_entry_by_model(found: ts.AnchoringNull, expected: dict[str, Any]) -> None:
    """Of two sets of 2,000 means differ by sd sqrt(2/2000), and q95 by sqrt(.95 .05 2/2000) / density."""
    rows = {f"{row['condition']}/{row['model']}": row for row in found.null.iter_rows(named=True)}
    entries = {name: golden for name, golden in expected.items() if "observed" in golden}
    assert set(entries) == set(rows) - {"B3/biomistral"}
    for name, golden in entries.items():
        row, std = rows[name], golden["sd"]
        density = math.exp(-(1.645**2) / 2) / math.sqrt(2 * math.pi) / std
        assert row["observed"] == pytest.approx(golden["observed"], abs=EXACT)
        assert row["null_mean"] == pytest.approx(golden["mean"], abs=ERRORS * std * BOTH)
        assert row["null_std"] == pytest.approx(std, rel=ERRORS * BOTH / math.sqrt(2))
        q95_error = ERRORS * math.sqrt(0.95 * 0.05) * BOTH / density + LATTICE
        assert row["null_q95"] == pytest.approx(golden["p95"], abs=q95_error)
        assert row["p_value"] == pytest.approx(golden["p_value"], abs=1e-3)


def test_averages_over_models(found: ts.AnchoringNull, expected: dict[str, Any]) -> None:
    """The models share their relabellings, so that an average may be as far off as one of them."""
    for condition, n_models in (("B1", 7), ("B3", 6)):
        row = found.averages.filter(condition=condition).row(0, named=True)
        average, pooled = (expected[f"{condition}/{name}"] for name in ("average_of_models", "pooled_draws"))
        assert row["n_models"] == n_models
        assert row["null_mean"] == pytest.approx(average["mean"], abs=ERRORS * 0.0143 * BOTH)
        assert row["null_mean"] == pytest.approx(pooled["mean"], abs=ERRORS * 0.0143 * BOTH)
        assert row["null_q95"] == pytest.approx(average["p95"], abs=0.002)
        assert row["pooled_q95"] == pytest.approx(pooled["p95"], abs=0.002)
    row = found.averages.filter(condition="B1").row(0, named=True)
    assert row["null_mean"] == pytest.approx(0.0063, abs=0.0012)  # the paper, and four errors of 2,000
    assert row["null_q95"] == pytest.approx(0.0299, abs=0.002)


def test_a_model_of_which_nothing_was_read(found: ts.AnchoringNull) -> None:
    row = found.frame.filter(model="biomistral", condition="B3").row(0, named=True)
    assert (row["estimate"], row["p_value"], row["status"], row["statistic"]) == (
        0.0,
        1.0,
        "degenerate",
        None,
    )
    assert any("biomistral B3" in note.message for note in found.notes if note.code == "degenerate")


def test_it_is_given_by_model_only(found: ts.AnchoringNull) -> None:
    assert found.frame["model"].null_count() == 0
    assert any("biased up" in note.message for note in found.notes)


@pytest.mark.parametrize("models", [1, 2])
def test_the_law_is_that_of_all_relabellings(models: int) -> None:
    voices = {"plain": [1, 1, 1, 1, 1], "x": [0, 1, 0, 0, 1], "y": [1, 0, 0, 1, 0]}
    fit = ts.anchoring_null(table_of(voices, models), control="plain", n_resamples=8_000)
    assert fit.exact
    assert fit.n_arrangements == 6**5
    scores = np.array([voices[name] for name in ("plain", "x", "y")])
    for model in range(models):
        own = scores if model == 0 else 1 - scores
        values = []
        for orders in product(permutations(range(3)), repeat=5):
            moved = np.stack([own[list(order), s] for s, order in enumerate(orders)], axis=1).mean(axis=1)
            values.append(moved[0] - moved[1:].min())
        observed = own.mean(axis=1)[0] - own.mean(axis=1)[1:].min()
        row = fit.null.filter(model=f"m{model}").row(0, named=True)
        assert row["observed"] == pytest.approx(observed)
        assert row["null_mean"] == pytest.approx(np.mean(values))
        assert row["null_std"] == pytest.approx(np.std(values))
        assert row["null_q95"] == pytest.approx(np.quantile(values, 0.95, method="inverted_cdf"))
        assert row["p_value"] == pytest.approx(np.mean(np.array(values) >= observed - 1e-9))


def test_the_p_value_is_that_of_analyze_one_sided() -> None:
    rng = np.random.default_rng(1)
    voices = {name: rng.binomial(1, p, 60).tolist() for name, p in (("plain", 0.7), ("x", 0.5), ("y", 0.55))}
    table = table_of(voices)
    drawn: dict[str, Any] = {"n_resamples": 999, "seed": 5}
    row = ts.anchoring_null(table, control="plain", **drawn).frame.row(0, named=True)
    tests = ts.permutation_tests(
        table, estimands=[ts.AnchoringGap("plain", ["x", "y"])], alternative="greater", **drawn
    )
    other = tests.frame.filter(model="m0").row(0, named=True)
    assert row["p_value"] == other["p_value"]
    assert row["estimate"] == other["estimate"]


def test_the_mean_of_the_law_is_the_bias_where_voices_tie() -> None:
    """Voices that do not differ: the mean estimate over samples is the mean of their laws, not 0."""
    rng = np.random.default_rng(8)
    estimates, biases = [], []
    for _ in range(60):
        item = rng.beta(2, 2, 80)
        voices = {name: rng.binomial(1, item).tolist() for name in ("plain", "x", "y")}
        row = ts.anchoring_null(table_of(voices), control="plain", n_resamples=99).null.row(0, named=True)
        estimates.append(row["observed"])
        biases.append(row["null_mean"])
    error = float(np.std(estimates) / math.sqrt(len(estimates)))
    assert abs(np.mean(estimates) - np.mean(biases)) < 3 * error
    assert np.mean(biases) > 5 * float(np.std(biases) / math.sqrt(len(biases)))


def test_one_marked_voice_has_no_bias() -> None:
    voices = {"plain": [1, 1, 1, 0, 1, 1], "x": [0, 1, 0, 1, 0, 0]}
    row = ts.anchoring_null(table_of(voices), control="plain").null.row(0, named=True)
    assert row["null_mean"] == pytest.approx(0.0, abs=EXACT)


def test_conditions_are_tested_by_themselves() -> None:
    rng = np.random.default_rng(2)
    rows = [
        (f"s{s}", method, voice, int(rng.binomial(1, 0.6)))
        for s in range(30)
        for method in ("B1", "B3")
        for voice in ("plain", "x", "y")
    ]
    names = ("scenario", "method", "voice", "score")
    data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    drawn: dict[str, Any] = {"control": "plain", "n_resamples": 299}
    both = ts.anchoring_null(ts.ResponseTable(data, condition=["method", "voice"]), voice="voice", **drawn)
    for method in ("B1", "B3"):
        part = pl.DataFrame(data).filter(method=method)
        alone = ts.anchoring_null(ts.ResponseTable(part, condition="voice"), **drawn)
        assert both.null.filter(condition=method).drop("condition").equals(alone.null.drop("condition"))


def test_results_convert(found: ts.AnchoringNull) -> None:
    assert found.tidy().columns == ts.analyze(ts.demo_table(), n_resamples=99).tidy().columns
    assert found.glance().height == 1
    json.dumps(found.to_dict(), allow_nan=False)
    assert "2,000 arrangements (drawn)" in repr(found)


VOICES = {"plain": [1, 1, 0], "x": [0, 1, 0], "y": [1, 0, 1]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"control": "z"}, "`control` is 'z'; choose from the levels of 'voice', ['plain', 'x', 'y']"),
        ({"control": "x", "marked": ["x"]}, "`marked` holds the control 'x'; leave it out"),
        (
            {"control": "plain", "voice": "tone"},
            (
                "`voice` names 'tone'; choose from the condition columns ['voice'], or make the table with "
                "it in `condition=[...]`"
            ),
        ),
        ({"control": "plain", "n_resamples": 0}, "`n_resamples` must be at least 1 (9,999 is usual); got 0"),
    ],
)
def test_bad_arguments(options: dict[str, Any], said: str, refusal: Refusal) -> None:
    assert refusal(lambda: ts.anchoring_null(table_of(VOICES), **options)) == f"ArgumentError: {said}"


def test_tables_that_cannot_answer_are_refused(refusal: Refusal) -> None:
    crossed = table_of(VOICES, 2).with_cluster(("scenario", "model"))
    assert refusal(lambda: ts.anchoring_null(crossed, control="plain")).startswith(
        "DesignError: a permutation within clusters needs one cluster column"
    )
    two = table_of(VOICES).frame.with_columns(pl.lit("B1").alias("method"))
    table = ts.ResponseTable(
        two.select("model", "scenario", pl.col("condition").alias("voice"), "method", "score"),
        condition=["method", "voice"],
    )
    assert refusal(lambda: ts.anchoring_null(table, control="plain")) == (
        "ArgumentError: `voice` must name the condition column that holds the voices, one of "
        "['method', 'voice']"
    )
    many = {f"v{place}": [1, 0, 1] for place in range(9)}
    assert refusal(lambda: ts.anchoring_null(table_of(many), control="v0")) == (
        "ArgumentError: `marked` names 8 voices; at most 7 can be permuted with the control"
    )
