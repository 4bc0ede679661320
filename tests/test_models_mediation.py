"""Mediation: the change of a coefficient against refits, identities, and a known truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import triagestats as ts
from triagestats import _native
from triagestats.models.eliminated import gram_of, paths

Refusal = Callable[[Callable[[], object]], str]
Array = np.ndarray[Any, np.dtype[np.float64]]

SOLVED = 1e-9  # two ways to solve the same equations
FEW_DRAWS = 400


def simulated(seed: int, n: int = 60, direct: float = -0.1, a: float = -0.5, b: float = 0.3) -> pl.DataFrame:
    """Marking lowers recall by -a, and recall raises the score by b; scenario and model effects on both."""
    rng = np.random.default_rng(seed)
    rows = []
    scenario, of_recall = rng.normal(size=n), rng.normal(size=n)
    ability = {"m": 0.0, "n": 0.4, "o": 1.0}
    for s in range(n):
        for model, effect in ability.items():
            for marked in (0, 1):
                recall = 3 + a * marked + of_recall[s] + effect + 0.3 * rng.normal()
                score = 1 + direct * marked + b * recall + scenario[s] + effect + 0.2 * rng.normal()
                rows.append((f"s{s:02}", f"g{s // 4:02}", model, "ab"[marked], marked, recall, score))
    schema = ["scenario", "group", "model", "condition", "marked", "recall", "score"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def least_squares(frame: pl.DataFrame, columns: list[Array], weights: Array | None = None) -> Array:
    root = np.ones(frame.height) if weights is None else np.sqrt(weights)
    x = np.column_stack(columns) * root[:, None]
    result: Array = np.linalg.lstsq(x, frame["score"].to_numpy() * root, rcond=None)[0]
    return result


def dummies(frame: pl.DataFrame, *names: str) -> list[Array]:
    joint = frame.select(pl.concat_str(names, separator="/")).to_series()
    return [(joint == level).to_numpy().astype(float) for level in joint.unique().sort()]


@pytest.mark.parametrize(
    ("formula", "effects"),
    [
        ("score ~ marked", []),
        ("score ~ marked | scenario", [("scenario",)]),
        ("score ~ marked | scenario + model", [("scenario",), ("model",)]),
        ("score ~ marked | scenario^model", [("scenario", "model")]),
        ("score ~ marked | model", [("model",)]),
        ("score ~ marked + model | scenario", [("scenario",), ("model",)]),
    ],
)
def test_both_coefficients_are_those_of_dummies(formula: str, effects: list[tuple[str, ...]]) -> None:
    frame = simulated(1, n=12)
    marked, recall = (frame[name].to_numpy().astype(float) for name in ("marked", "recall"))
    controls = [column for names in effects for column in dummies(frame, *names)] or [np.ones(frame.height)]
    total = least_squares(frame, [marked, *controls])[0]
    direct, slope = least_squares(frame, [marked, recall, *controls])[:2]
    found = ts.mediation(formula, frame, term="marked", covariate="recall", n_resamples=99)
    assert found.details["total"]["estimate"] == pytest.approx(total, rel=SOLVED)
    assert found.details["direct"]["estimate"] == pytest.approx(direct, rel=SOLVED)
    assert found.estimate == pytest.approx(total - direct, rel=1e-7)
    (path,) = found.details["covariates"]
    assert path["on_outcome"] == pytest.approx(slope, rel=SOLVED)
    assert path["on_term"] * path["on_outcome"] == pytest.approx(found.estimate, rel=1e-7)
    assert (found.n, found.details["n_clusters"]) == (72, 12)


def test_replicates_are_refits_of_the_drawn_clusters() -> None:
    """The same draws as weights of rows, fitted by least squares with dummies."""
    frame = simulated(2, n=10)
    found = ts.mediation(
        "score ~ marked | scenario + model", frame, term="marked", covariate="recall", n_resamples=FEW_DRAWS,
        seed=7, interval="percentile", conf_level=0.8,
    )  # fmt: skip
    counts = _native.bootstrap_counts(10, FEW_DRAWS, 7).astype(float)
    row_of = frame["scenario"].rank("dense").to_numpy() - 1
    marked, recall = (frame[name].to_numpy().astype(float) for name in ("marked", "recall"))
    controls = dummies(frame, "scenario") + dummies(frame, "model")
    changes = []
    for draw in counts:
        weights = draw[row_of]
        total = least_squares(frame, [marked, *controls], weights)[0]
        changes.append(total - least_squares(frame, [marked, recall, *controls], weights)[0])
    ends = np.quantile(changes, [0.1, 0.9], method="weibull")
    assert (found.conf_low, found.conf_high) == pytest.approx(tuple(ends), rel=1e-7)
    assert found.details["std_error"] == pytest.approx(np.std(changes, ddof=1), rel=1e-7)
    below = int((np.array(changes) <= 0).sum())
    expected = 2 * (min(below, FEW_DRAWS - below) + 1) / (FEW_DRAWS + 1)
    assert found.p_value == pytest.approx(expected)


def test_the_truth_is_found() -> None:
    """c = -0.1 - 0.5 * 0.3 = -0.25, of which -0.15 goes through recall: 60 percent."""
    found = ts.mediation(
        "score ~ condition | scenario^model", simulated(3, n=200), term="condition", covariate="recall"
    )
    assert found.contrast == "condition[T.b]: without - with recall"
    assert found.details["total"]["conf_low"] < -0.25 < found.details["total"]["conf_high"]
    assert found.details["direct"]["conf_low"] < -0.1 < found.details["direct"]["conf_high"]
    assert found.conf_low is not None
    assert found.conf_high is not None
    assert found.conf_low < -0.15 < found.conf_high < 0
    assert found.p_value == pytest.approx(2 / 10_000)
    assert found.details["proportion"]["conf_low"] < 0.6 < found.details["proportion"]["conf_high"]
    assert [note.code for note in found.notes] == ["not_causal"]
    assert found.tidy()["std_error"][0] == found.details["std_error"]
    assert found.tidy()["n_clusters"][0] == 200


def test_intervals_cover_the_change() -> None:
    """Of 120 intervals at 80 percent 78 to 113 cover, but for one in ten thousand such studies."""
    covered = 0
    for seed in range(120):
        found = ts.mediation(
            "score ~ marked | scenario^model", simulated(seed, n=25), term="marked", covariate="recall",
            n_resamples=399, conf_level=0.8, seed=seed,
        )  # fmt: skip
        assert found.conf_low is not None
        assert found.conf_high is not None
        covered += found.conf_low <= -0.15 <= found.conf_high
    assert 78 <= covered <= 113


def test_a_response_table_brings_names_and_clusters() -> None:
    frame = simulated(4, n=24)
    table = ts.ResponseTable(frame, cluster="group")
    found = ts.mediation(
        "correct ~ condition | scenario^model",
        table,
        term="condition[T.b]",
        covariate="recall",
        n_resamples=99,
    )
    plain = ts.mediation(
        "score ~ marked | scenario^model", frame, term="marked", covariate="recall", cluster="group",
        n_resamples=99,
    )  # fmt: skip
    assert found.details["n_clusters"] == 6
    assert (found.estimate, found.conf_low) == pytest.approx((plain.estimate, plain.conf_low), rel=1e-9)
    assert found.method.endswith("by group")
    assert "few_clusters" in [note.code for note in found.notes]


def test_rows_without_the_covariate_leave_both_models() -> None:
    frame = simulated(5, n=20)
    gaps = frame.with_columns(recall=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise("recall"))
    found = ts.mediation("score ~ marked | model", gaps, term="marked", covariate="recall", n_resamples=99)
    kept = gaps.drop_nulls()
    expected = ts.mediation("score ~ marked | model", kept, term="marked", covariate="recall", n_resamples=99)
    assert found.details["total"] == expected.details["total"]
    assert (found.n, found.details["n_missing"]) == (kept.height, frame.height - kept.height)
    assert "missing" in [note.code for note in found.notes]


def test_several_covariates_and_units() -> None:
    """The parts sum to the change; units and shifts of a covariate do not matter."""
    frame = simulated(6, n=30).with_columns(
        length=pl.col("recall").shift(3, fill_value=1.0) + pl.col("marked") + 2_000.0
    )
    asked: dict[str, Any] = {"term": "marked", "n_resamples": 99}
    both = ts.mediation("score ~ marked", frame, covariate=["recall", "length"], **asked)
    parts = sum(path["on_term"] * path["on_outcome"] for path in both.details["covariates"])
    assert parts == pytest.approx(both.estimate, rel=1e-7)
    scaled = frame.with_columns(length=pl.col("length") * 1e6 + 1e11, recall=pl.col("recall") / 1e3)
    again = ts.mediation("score ~ marked", scaled, covariate=["recall", "length"], **asked)
    assert (again.estimate, again.conf_low, again.conf_high) == pytest.approx(
        (both.estimate, both.conf_low, both.conf_high), rel=1e-6
    )


def test_weights_count_rows_several_times() -> None:
    frame = simulated(7, n=15).with_columns(w=1 + pl.int_range(pl.len()) % 3)
    repeated = frame.select(pl.all().repeat_by("w")).explode(pl.all())
    asked: dict[str, Any] = {"term": "marked", "covariate": "recall", "n_resamples": 99}
    weighted = ts.mediation("score ~ marked | scenario + model", frame, weights="w", **asked)
    longer = ts.mediation("score ~ marked | scenario + model", repeated, **asked)
    for side in ("total", "direct"):
        expected = longer.details[side]["estimate"]
        assert weighted.details[side]["estimate"] == pytest.approx(expected, rel=1e-8)


def test_the_proportion_is_withheld_where_the_total_may_be_nothing() -> None:
    found = ts.mediation(
        "score ~ marked | scenario", simulated(8, n=20, direct=0.15), term="marked", covariate="recall",
        n_resamples=999,
    )  # fmt: skip
    assert found.details["proportion"] is None
    (note,) = (note for note in found.notes if note.code == "proportion")
    assert note.message == "The proportion of the total is withheld: its interval holds 0."
    opposite = simulated(9, n=80, direct=-0.4, a=0.5)
    hidden = ts.mediation(
        "score ~ marked | scenario", opposite, term="marked", covariate="recall", n_resamples=999
    )  # fmt: skip
    assert hidden.details["proportion"]["estimate"] < 0
    assert "suppression" in [note.code for note in hidden.notes]


def test_degenerate_replicates_are_counted() -> None:
    """The covariate varies in one cluster alone: without it there is no second model."""
    frame = simulated(10, n=8).with_columns(
        rare=pl.when(pl.col("scenario") == "s03").then("recall").otherwise(0.0)
    )
    found = ts.mediation(
        "score ~ marked | scenario", frame, term="marked", covariate="rare", n_resamples=FEW_DRAWS, seed=5
    )
    without = int((_native.bootstrap_counts(8, FEW_DRAWS, 5)[:, 3] == 0).sum())
    assert found.details["n_degenerate"] == without > 0
    message = f"{without} replicates in which the term or a covariate does not vary are left out."
    assert message in map(str, found.notes)


def test_few_clusters_have_no_interval() -> None:
    found = ts.mediation(
        "score ~ marked | scenario", simulated(11, n=4), term="marked", covariate="recall", n_resamples=99
    )
    assert found.estimate is not None
    assert (found.conf_low, found.conf_level, found.p_value) == (None, None, None)
    assert found.details["proportion"] is None
    assert "4 clusters (scenario) are few: intervals need 5." in map(str, found.notes)


def test_other_intervals_have_no_p_value() -> None:
    asked: dict[str, Any] = {"term": "marked", "covariate": "recall", "n_resamples": 199}
    for interval in ("bca", "basic", "normal", "jackknife-t"):
        found = ts.mediation("score ~ marked | scenario", simulated(12), interval=interval, **asked)
        assert found.p_value is None
        assert found.conf_low is not None


def test_elimination_skips_controls_that_do_not_vary() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(60, 5))  # two controls, term, covariate, outcome
    columns[:50, 1] = 0.0  # one control is nothing but for the last cluster
    gram = gram_of(columns, np.arange(60) // 10, 2)
    without = gram.effects(gram.totals[:5].sum(axis=0))
    x, y = columns[:50, [0, 2]], columns[:50, 4]
    assert without[0] == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0][1], rel=SOLVED)
    assert gram.effects(3 * gram.totals.sum(axis=0)) == pytest.approx(gram.effects(gram.totals.sum(axis=0)))
    ((a, b),) = paths(gram)
    assert a * b == pytest.approx(gram.effects(gram.totals.sum(axis=0))[2], rel=1e-7)


def test_bad_calls_are_refused(refusal: Refusal) -> None:
    frame = simulated(13, n=12).with_columns(length=pl.col("scenario").str.slice(1).cast(pl.Float64))

    def said(formula: str = "score ~ marked | scenario", **options: Any) -> str:
        asked = {"term": "marked", "covariate": "recall", "n_resamples": 99} | options
        return refusal(lambda: ts.mediation(formula, frame, **asked))

    assert "Did you mean 'recall'?" in said(covariate="recal")
    assert (
        "`term` must be a coefficient of the formula, one of ['marked']; got 'market'; did you mean"
        in said(term="market")
    )
    assert "`covariate` names 'recall', which the formula" in said("score ~ marked + recall")
    assert "`term` 'model' has several coefficients; choose one of ['model[T.n]', 'model[T.o]']" in said(
        "score ~ model | scenario", term="model"
    )
    assert said(covariate="length").startswith(
        "DesignError: covariate 'length' is swallowed by the fixed effects scenario and the term"
    )
    assert "term 'marked' is swallowed by the fixed effects scenario^condition" in said(
        "score ~ marked | scenario^condition + model"
    )
    assert "`covariate` must name one column or several" in said(covariate=[])
    assert "mediation takes one cluster column" in said(cluster=["scenario", "model"])
    assert "`conf_level`" in said(conf_level=2)


def test_random_terms_are_refused(refusal: Refusal) -> None:
    said = refusal(
        lambda: ts.mediation(
            "score ~ marked + (1 | scenario)", simulated(1), term="marked", covariate="recall"
        )
    )
    assert said == (
        "ArgumentError: `formula` has the random term (1 | scenario), which mediation does not have: absorb "
        "the group behind |"
    )


def test_rows_and_levels_that_are_not_there(refusal: Refusal) -> None:
    frame = simulated(1).with_columns(z=pl.lit("q"))
    asked: dict[str, Any] = {"term": "marked", "covariate": "recall"}
    said = refusal(lambda: ts.mediation("score ~ marked", frame.head(0), **asked))
    assert said.startswith("DataError: `data` has no rows")
    said = refusal(lambda: ts.mediation("score ~ marked", frame, term="marked", covariate="z"))
    assert said == "DesignError: `covariate` has no coefficient: z is left out: it is 'q' in every row."
    said = refusal(lambda: ts.mediation("score ~ z", frame, term="z", covariate="recall"))
    assert said == "DesignError: `term` has no coefficient: z is left out: it is 'q' in every row."
    found = ts.mediation("score ~ marked + z", frame, n_resamples=99, **asked)
    assert "z is left out: it is 'q' in every row." in map(str, found.notes)


def test_few_replicates_are_said() -> None:
    asked: dict[str, Any] = {"term": "marked", "covariate": "recall"}
    few = ts.mediation("score ~ marked | scenario", simulated(2), n_resamples=10, **asked)
    note = next(note for note in few.notes if note.code == "too_few")
    assert note.message.startswith("10 replicates are too few for a 95 % interval")
    enough = ts.mediation("score ~ marked | scenario", simulated(2), n_resamples=39, **asked)
    assert "too_few" not in {note.code for note in enough.notes}
    normal = ts.mediation(
        "score ~ marked | scenario", simulated(2), n_resamples=10, interval="normal", **asked
    )
    assert "too_few" not in {note.code for note in normal.notes}


def test_names_that_need_backticks() -> None:
    frame = simulated(3)
    odd = frame.rename({"score": "the score", "marked": "C", "recall": "a | b", "scenario": "s s"})
    usual = ts.mediation(
        "score ~ marked | scenario^model", frame, term="marked", covariate="recall", n_resamples=99
    )
    found = ts.mediation(
        "`the score` ~ C | `s s`^model", odd, term="C", covariate="a | b", cluster="s s", n_resamples=99
    )
    assert found.estimate == pytest.approx(usual.estimate, rel=SOLVED)
    assert found.details["total"] == pytest.approx(usual.details["total"], rel=SOLVED)


@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_controls_that_are_nearly_collinear_both_count(size: float) -> None:
    """The second control was dropped without a word in the sums by cluster."""
    rng = np.random.default_rng(4)
    frame = simulated(4)
    noise, base = pl.Series(rng.normal(size=frame.height)), pl.Series(rng.normal(size=frame.height))
    frame = frame.with_columns(u=base, v=base + size * noise, score=pl.col("score") + noise)
    frame = frame.with_columns(d=pl.col("v") - pl.col("u"))
    asked: dict[str, Any] = {"term": "marked", "covariate": "recall", "n_resamples": 99}
    near = ts.mediation("score ~ marked + u + v | scenario", frame, **asked)
    apart = ts.mediation("score ~ marked + u + d | scenario", frame, **asked)
    assert near.details["dropped"] == apart.details["dropped"] == []
    assert near.estimate == pytest.approx(apart.estimate, rel=1e-6)
    assert near.details["total"]["std_error"] == pytest.approx(apart.details["total"]["std_error"], rel=1e-6)
    fit = ts.lpm("score ~ marked + u + v | scenario", frame)
    assert near.details["total"]["estimate"] == pytest.approx(fit.estimates[0], rel=1e-6)


def test_a_covariate_that_is_nearly_the_term_is_refused(refusal: Refusal) -> None:
    frame = simulated(5).with_columns(near=pl.col("marked") + 1e-6 * pl.col("recall"))
    said = refusal(lambda: ts.mediation("score ~ marked", frame, term="marked", covariate="near"))
    assert said.startswith(
        "DesignError: covariate 'near' is swallowed by the regressors (Intercept) and the term"
    )
