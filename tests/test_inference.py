"""Errors, refusals and doubts of estimates, through the public call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats import intervals

CLOSE = 1e-9  # jackknife differences lose a few digits to cancellation
INTERVALS = ["auto", "jackknife-t", "percentile", "bca"]

Scores = dict[tuple[str, str, str], float]


def as_frame(scores: Scores) -> pl.DataFrame:
    rows = [(*key, score) for key, score in scores.items()]
    return pl.DataFrame(rows, schema=["scenario", "model", "condition", "score"], orient="row")


def ragged(seed: int, *, scenarios: int = 9, models: int = 6) -> Scores:
    """Scores of incomplete pairs: every model misses other scenarios."""
    rng = np.random.default_rng(seed)
    return {
        (f"s{s}", f"m{m}", condition): float(rng.integers(0, 3)) + s / 4 + m / 2 * (condition == "b")
        for s in range(scenarios)
        for m in range(models)
        if rng.random() < 0.85
        for condition in ("a", "b")
    }


def pooled_difference(scores: Scores) -> float:
    """The plain mean over models of their mean differences; NaN where there is none."""
    differences: dict[str, list[float]] = {}
    for (scenario, model, condition), score in scores.items():
        if condition == "b":
            differences.setdefault(model, []).append(score - scores[scenario, model, "a"])
    return fmean(fmean(values) for values in differences.values()) if differences else math.nan


def jackknife(scores: Scores, cluster: Callable[[tuple[str, str, str]], object]) -> float:
    """Delete-one-cluster variance, straight from the definition."""
    clusters = sorted({cluster(key) for key in scores}, key=str)
    without = [pooled_difference({k: v for k, v in scores.items() if cluster(k) != one}) for one in clusters]
    center, size = fmean(without), len(without)
    return (size - 1) / size * sum((value - center) ** 2 for value in without)


def pooled(frame: pl.DataFrame | None, contrast: str | None = None) -> dict[str, Any]:
    assert frame is not None
    rows = frame.filter(pl.col("model").is_null())
    if contrast is not None:
        rows = rows.filter(pl.col("contrast") == contrast)
    return rows.row(0, named=True)


@pytest.mark.parametrize("seed", range(4))
def test_one_way_errors_of_ragged_tables(seed: int) -> None:
    scores = ragged(seed)
    row = pooled(ts.analyze(as_frame(scores), n_resamples=9).contrasts)
    variance = jackknife(scores, lambda key: key[0])
    assert row["estimate"] == pytest.approx(pooled_difference(scores), abs=CLOSE)
    assert row["std_error"] == pytest.approx(math.sqrt(variance), rel=CLOSE)
    assert row["df"] == 8
    half = stats.t.isf(0.025, 8) * math.sqrt(variance)
    assert row["conf_low"] == pytest.approx(row["estimate"] - half, abs=CLOSE)
    assert row["conf_high"] == pytest.approx(row["estimate"] + half, abs=CLOSE)


@pytest.mark.parametrize("weights", ["scenario", "row"])
@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_rates_read_the_linearised_error(seed: int, weights: Any) -> None:
    """Two models that miss other scenarios, one to four repetitions a cell; N counts responses."""
    rng = np.random.default_rng(seed)
    cells = {
        (f"s{s:02}", m): [float(rng.random() < 0.3 + s / 30) for _ in range(rng.integers(1, 5))]
        for s in range(14)
        for m in ("m", "n")
        if rng.random() < 0.8
    }
    rows = [(s, m, r, x) for (s, m), values in cells.items() for r, x in enumerate(values)]
    frame = pl.DataFrame(rows, schema=["scenario", "model", "repetition", "score"], orient="row")
    row = pooled(ts.analyze(frame, weights=weights).rates)
    scenarios = sorted({s for s, _ in cells})
    influence = dict.fromkeys(scenarios, 0.0)
    if weights == "row":
        rate, n_rows = fmean(x for *_, x in rows), len(rows)
        for scenario, _, _, x in rows:
            influence[scenario] += (x - rate) / n_rows
    else:
        by_model = {
            m: {s: fmean(values) for (s, other), values in cells.items() if other == m} for m in ("m", "n")
        }
        rate = fmean(fmean(means.values()) for means in by_model.values())
        for means in by_model.values():
            for scenario, x in means.items():
                influence[scenario] += (x - fmean(means.values())) / len(means) / 2
    size = len(scenarios)
    variance = size / (size - 1) * sum(psi**2 for psi in influence.values())
    ends = intervals.korn_graubard_plus_two(
        *(np.array([float(value)]) for value in (rate, variance, size, len(rows))), 0.95
    )
    assert row["estimate"] == pytest.approx(rate, abs=CLOSE)
    assert (row["n_rows"], row["n_clusters"]) == (len(rows), size)
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((ends.low[0], ends.high[0]), abs=CLOSE)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cluster", [("scenario", "model"), ("model", "scenario")])
def test_two_way_errors_of_models_and_scenarios(seed: int, cluster: tuple[str, str]) -> None:
    scores = ragged(seed)
    fit = ts.analyze(as_frame(scores), cluster=cluster, n_resamples=9)
    variance = (
        jackknife(scores, lambda key: key[0])
        + jackknife(scores, lambda key: key[1])
        - jackknife(scores, lambda key: key[:2])
    )
    assert variance > 0
    row = pooled(fit.contrasts)
    assert row["std_error"] == pytest.approx(math.sqrt(variance), rel=CLOSE)
    assert (row["df"], row["n_clusters"]) == (5, 6)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["statistic"]), 5), rel=CLOSE)
    assert row["conf_high"] - row["estimate"] == pytest.approx(
        stats.t.isf(0.025, 5) * math.sqrt(variance), rel=CLOSE
    )


def test_two_way_errors_of_a_model_use_the_scenarios() -> None:
    scores = ragged(1)
    two = ts.analyze(as_frame(scores), cluster=("model", "scenario"), n_resamples=9).contrasts
    one = ts.analyze(as_frame(scores), n_resamples=9).contrasts
    assert two is not None
    assert one is not None
    columns = ["model", "estimate", "std_error", "conf_low", "conf_high", "df", "n_clusters"]
    assert (
        two.filter(pl.col("model").is_not_null())
        .select(columns)
        .equals(one.filter(pl.col("model").is_not_null()).select(columns))
    )
    assert two["reason"].str.contains("one cluster along one of the two").to_list() == [False] + [True] * 6


@pytest.mark.parametrize("seed", range(3))
def test_two_way_errors_of_crossed_scenario_columns(seed: int) -> None:
    scores = ragged(seed, scenarios=36)
    ward = {f"s{s}": f"w{s % 6}" for s in range(36)}
    year = {f"s{s}": f"y{s // 6}" for s in range(36)}
    frame = as_frame(scores).with_columns(
        pl.col("scenario").replace_strict(ward).alias("ward"),
        pl.col("scenario").replace_strict(year).alias("year"),
    )
    row = pooled(ts.analyze(frame, cluster=("ward", "year"), n_resamples=9).contrasts)
    parts = [
        jackknife(scores, lambda key: ward[key[0]]),
        jackknife(scores, lambda key: year[key[0]]),
        jackknife(scores, lambda key: (ward[key[0]], year[key[0]])),
    ]
    crossed = parts[0] + parts[1] - parts[2]
    expected = crossed if crossed > 0 else max(parts[:2])
    assert row["std_error"] == pytest.approx(math.sqrt(expected), rel=CLOSE)
    assert ("not positive" in row["reason"]) == (crossed <= 0)


def test_a_two_way_variance_below_zero_is_replaced_and_said() -> None:
    """Latin squares: rows and columns average out, so that V1 = V2 = 0 < V12 up to their noise."""
    n = 6
    scores: Scores = {}
    for s in range(n * n):
        shift = 1.0 if (s // n + s % n) % 2 else -1.0
        shift += 0.1 * (s // n)
        scores[f"s{s:02}", "m", "a"] = 0.0
        scores[f"s{s:02}", "m", "b"] = shift
    frame = as_frame(scores).with_columns(
        (pl.col("scenario").str.slice(1).cast(pl.Int64) // n).cast(pl.String).alias("ward"),
        (pl.col("scenario").str.slice(1).cast(pl.Int64) % n).cast(pl.String).alias("year"),
    )
    row = ts.analyze(frame, cluster=("ward", "year"), n_resamples=9).contrasts
    assert row is not None
    assert row["status"][0] == "warning"
    assert "two-way variance is not positive" in row["reason"][0]
    assert row["std_error"][0] == pytest.approx(
        math.sqrt(jackknife(scores, lambda key: int(key[0][1:]) // n)), rel=CLOSE
    )


def complete(value: Callable[[int, int, str], float], *, scenarios: int, models: int = 2) -> Scores:
    return {
        (f"s{s:02}", f"m{m:02}", condition): value(s, m, condition)
        for s in range(scenarios)
        for m in range(models)
        for condition in ("a", "b")
    }


def varied(s: int, m: int, condition: str) -> float:
    return float((s * s + m * s + (condition == "b") * (1 + m + s // 2)) % 3 > 0)


@pytest.mark.parametrize(
    ("scenarios", "status"),
    [(2, "few_clusters"), (4, "few_clusters"), (5, "warning"), (11, "warning"), (12, "ok")],
)
def test_few_clusters(scenarios: int, status: str) -> None:
    fit = ts.analyze(as_frame(complete(varied, scenarios=scenarios)), n_resamples=99)
    for row in (pooled(fit.rates), pooled(fit.contrasts)):
        assert row["status"] == status
        assert (row["conf_low"] is None) == (status == "few_clusters")
        assert (row["reason"] is None) == (status == "ok")
    row = pooled(fit.contrasts)
    assert row["p_value"] is not None  # the permutation test is exact at any size
    if status == "few_clusters":
        assert row["verdict"] == "undecided"
        assert row["statistic"] is None


@pytest.mark.parametrize("interval", INTERVALS)
def test_clusters_that_agree_show_no_error(interval: Any) -> None:
    """Every scenario has the same difference: the interval is withheld, not of zero width."""
    scores = complete(lambda s, _, condition: (s % 3) / 4 + 0.1 * (condition == "b"), scenarios=12)
    row = pooled(ts.analyze(as_frame(scores), interval=interval, n_resamples=199).contrasts)
    assert row["status"] == "degenerate"
    assert row["estimate"] == pytest.approx(0.1, abs=CLOSE)
    for column in ("std_error", "conf_low", "conf_high", "statistic", "df"):
        assert row[column] is None
    assert row["verdict"] == "undecided"


@pytest.mark.parametrize("interval", INTERVALS)
def test_rounding_is_no_evidence(interval: Any) -> None:
    """Means of .1, .2 and .3 in two orders differ in the last bit only."""
    rows = [
        (f"s{s:02}", condition, f"r{r}", value * 1000 + s)
        for s in range(12)
        for condition, values in (
            ("a", (0.1, 0.2, 0.3)),
            ("b", (0.3, 0.2, 0.1) if s % 2 else (0.1, 0.2, 0.3)),
        )
        for r, value in enumerate(values)
    ]
    frame = pl.DataFrame(rows, schema=["scenario", "condition", "repetition", "score"], orient="row")
    frame = frame.with_columns(pl.col("score") / 7)
    fit = ts.analyze(frame, interval=interval, n_resamples=199)
    row = pooled(fit.contrasts)
    assert abs(row["estimate"]) < 1e-10
    assert (row["status"], row["p_value"], row["verdict"]) == ("degenerate", 1.0, "undecided")
    assert row["std_error"] is None


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("score", [0.0, 1.0])
@pytest.mark.parametrize("models", [1, 2, 49])
def test_rates_of_zero_and_one_have_a_width(interval: Any, score: float, models: int) -> None:
    """49 shares of 1/49 do not add up to 1 in floats."""
    scores = complete(lambda *_: score, scenarios=12, models=models)
    rates = ts.analyze(as_frame(scores), interval=interval, n_resamples=99).rates
    for row in rates.iter_rows(named=True):
        assert row["estimate"] == score
        assert row["conf_high"] - row["conf_low"] > 0.1
        assert row["std_error"] is None
        assert row["status"] == ("ok" if interval == "auto" else "warning")


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_constant_rate_inside_has_a_width(interval: Any) -> None:
    scores = complete(lambda _s, m, _c: float(m), scenarios=12)
    row = pooled(ts.analyze(as_frame(scores), interval=interval, n_resamples=99).rates)
    assert row["estimate"] == 0.5
    assert row["conf_high"] - row["conf_low"] > 0.1


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_model_on_one_scenario_leaves_the_pooled_error_unknown(interval: Any) -> None:
    scores = complete(varied, scenarios=14)
    scores = {key: value for key, value in scores.items() if key[1] == "m00" or key[0] == "s03"}
    fit = ts.analyze(as_frame(scores), interval=interval, n_resamples=99)
    for frame in (fit.rates, fit.contrasts):
        row = pooled(frame)
        assert row["status"] == "undefined"
        assert "one cluster" in row["reason"]
        assert row["conf_low"] is None
        assert row["std_error"] is None
        assert frame is not None
        assert frame.filter(pl.col("model") == "m00")["status"][0] == "ok"
        assert frame.filter(pl.col("model") == "m01")["status"][0] == "few_clusters"


def test_a_model_without_data_is_listed_and_not_pooled() -> None:
    scores = complete(varied, scenarios=12)
    frame = as_frame(scores).with_columns(
        pl.when(pl.col("model") == "m00").then(pl.col("score")).alias("score")
    )
    contrasts = ts.analyze(frame, n_resamples=99).contrasts
    assert contrasts is not None
    assert contrasts["status"].to_list() == ["ok", "ok", "no_data"]
    assert contrasts["estimate"][0] == contrasts["estimate"][1]
    assert contrasts["n_missing"].to_list() == [12, 0, 12]


def three(seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(f"s{s:02}", c, float(rng.random() < 0.6)) for s in range(20) for c in ("a", "b", "c")]
    return pl.DataFrame(rows, schema=["scenario", "condition", "score"], orient="row")


@pytest.mark.parametrize("interval", INTERVALS)
def test_an_estimand_that_is_not_smooth_gets_the_percentile(interval: Any) -> None:
    gap = ts.AnchoringGap("a", ["b", "c"])
    fit = ts.analyze(three(), estimands=[gap], interval=interval, n_resamples=999)
    row = pooled(fit.contrasts, gap.label)
    assert row["method"].startswith("cluster bootstrap percentile")
    assert row["status"] == "warning"
    assert "about .90" in row["reason"]
    assert row["conf_low"] < row["conf_high"]
    for column in ("std_error", "statistic", "df"):
        assert row[column] is None
    assert row["p_value"] is not None


def test_two_axes_have_nothing_for_what_is_not_smooth() -> None:
    frame = pl.concat([three(seed).with_columns(pl.lit(f"m{seed}").alias("model")) for seed in range(5)])
    gap = ts.AnchoringGap("a", ["b", "c"])
    row = pooled(ts.analyze(frame, estimands=[gap], cluster=("scenario", "model")).contrasts, gap.label)
    assert row["status"] == "undefined"
    assert row["reason"].startswith("not smooth")
    for column in ("std_error", "conf_low", "p_value", "statistic"):
        assert row[column] is None


def test_means_and_functions_have_no_verdict_without_a_null_value() -> None:
    def ratio(v: np.ndarray) -> np.ndarray:
        return v[..., 0] / v[..., 1]

    parts = [ts.Mean("a"), ts.Mean("b")]
    custom = [
        ts.Mean("a"),
        ts.Function(ratio, parts, name="plain"),
        ts.Function(ratio, parts, name="against one", null=1.0),
    ]
    fit = ts.analyze(three(), estimands=custom, n_resamples=199)
    for estimand in custom[:2]:
        row = pooled(fit.contrasts, estimand.label)
        assert row["verdict"] == "undecided"
        assert row["statistic"] is None
        assert row["std_error"] > 0
        assert row["conf_low"] > 0
    row = pooled(fit.contrasts, custom[2].label)
    assert row["statistic"] == pytest.approx((row["estimate"] - 1) / row["std_error"], rel=CLOSE)


def test_replicates_that_lose_a_model_are_told() -> None:
    scores = complete(varied, scenarios=12)
    kept: Iterable[str] = ("s01", "s02", "s03")
    scores = {key: value for key, value in scores.items() if key[1] == "m00" or key[0] in kept}
    fit = ts.analyze(as_frame(scores), interval="percentile", n_resamples=999)
    notes = [note for note in fit.notes if note.code == "undefined_replicates"]
    assert notes
    share = 0.75**12  # none of the three scenarios drawn
    expected = float(notes[0].message.split("%")[0].split()[-1]) / 100
    assert abs(expected - share) < 5 * math.sqrt(share / 999) + 0.0005
    assert pooled(fit.contrasts)["conf_low"] is not None


def test_few_models_on_the_second_axis_get_no_population_test() -> None:
    frame = as_frame(complete(varied, scenarios=12, models=4))
    row = pooled(ts.analyze(frame, cluster=("scenario", "model")).contrasts)
    assert (row["status"], row["n_clusters"]) == ("few_clusters", 4)
    for column in ("conf_low", "statistic", "p_value"):
        assert row[column] is None


def test_equivalence_reads_the_interval_at_twice_alpha() -> None:
    """A margin between the ends of the 90 % and of the 95 % interval."""
    frame = as_frame(complete(varied, scenarios=30))
    wide, narrow = (
        max(-row["conf_low"], row["conf_high"])
        for row in (pooled(ts.analyze(frame, conf_level=level).contrasts) for level in (0.95, 0.9))
    )
    assert narrow < wide
    for margin, equivalent in (((narrow + wide) / 2, True), (0.99 * narrow, False)):
        row = pooled(ts.analyze(frame, margin=margin).contrasts)
        assert (row["verdict"] == "equivalent") == equivalent
