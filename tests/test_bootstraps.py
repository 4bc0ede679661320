"""The bootstrap's front doors: arrays, pairs, clusters and tables, under every scheme and reading."""

from __future__ import annotations

import io
import json
import math
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import triagestats as ts
from triagestats import _native, progress, schemes
from triagestats.defaults import OF_SCHEME
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, DesignError

EXACT = 1e-12  # sums of a few dozen doubles in another order
MONTE_CARLO = 0.02  # of a standard error, 99,999 replicates: five standard errors of a standard deviation
RNG = np.random.default_rng(20)
NORMAL = RNG.normal(loc=[0.0, 0.5, 1.0], size=(40, 3))
BINARY = RNG.integers(0, 2, size=(40, 3))


def gap(means: np.ndarray) -> np.ndarray:
    return means[..., 1:] - means[..., :1]


def test_the_default_statistic_is_the_column_means() -> None:
    fit = ts.bootstrap(NORMAL, n_resamples=99_999)
    assert fit.estimate == pytest.approx(NORMAL.mean(axis=0), abs=EXACT)
    error = NORMAL.std(axis=0) / math.sqrt(40)  # of the ideal bootstrap
    assert fit.std_error == pytest.approx(error, rel=MONTE_CARLO)
    assert fit.replicates.shape == (99_999, 3)


@pytest.mark.parametrize("values", [NORMAL, BINARY, BINARY.astype(float), BINARY.astype(bool)])
def test_replicates_are_counts_times_rows(values: np.ndarray) -> None:
    fit = ts.bootstrap(values, gap, n_resamples=50, seed=7)
    counts = _native.bootstrap_counts(40, 50, 7)
    assert fit.replicates == pytest.approx(gap(counts @ values.astype(float) / 40), abs=EXACT)


def test_strata_keep_their_sizes() -> None:
    strata = np.repeat(["x", "y", "z"], [10, 12, 18])
    values = np.stack([strata == label for label in "xyz"], axis=1)
    fit = ts.bootstrap(values, scheme="stratified", strata=strata, n_resamples=200)
    assert (fit.replicates == [10 / 40, 12 / 40, 18 / 40]).all()
    assert set(fit.tidy()["status"]) == {"degenerate"}


def test_bayesian_weights_have_the_variance_of_the_dirichlet() -> None:
    fit = ts.bootstrap(NORMAL, scheme="bayesian", n_resamples=99_999)
    error = NORMAL.std(axis=0) / math.sqrt(41)  # Rubin 1981: divided by G + 1
    assert fit.std_error == pytest.approx(error, rel=MONTE_CARLO)


def test_nested_draws_add_the_variance_within() -> None:
    cells = RNG.normal(size=(30, 2, 4))
    fit = ts.bootstrap(cells, scheme="nested", n_resamples=99_999)
    between = cells.mean(axis=2).var(axis=0) / 30
    within = (cells.var(axis=2) / 4).mean(axis=0) / 30
    assert fit.std_error**2 == pytest.approx(between + within, rel=2 * MONTE_CARLO)
    assert fit.estimate == pytest.approx(cells.mean(axis=(0, 2)), abs=EXACT)


def test_nested_cells_may_be_ragged() -> None:
    cells = RNG.normal(size=(30, 2, 4))
    cells[0, 0, 1:] = np.nan
    cells[1, 1] = np.nan
    fit = ts.bootstrap(cells, scheme="nested", n_resamples=500)
    means = [
        np.nanmean(cells[:, 0], axis=1).mean(),
        np.nanmean(np.delete(cells[:, 1], 1, axis=0), axis=1).mean(),
    ]
    assert fit.estimate == pytest.approx(means, abs=EXACT)
    assert np.isfinite(fit.replicates).all()


def test_crossed_draws_are_product_weights() -> None:
    table = RNG.normal(size=(12, 9))
    fit = ts.bootstrap(table, scheme="crossed", n_resamples=60, seed=5)
    first, second = _native.crossed_counts(12, 9, 60, 5)
    expected = np.einsum("ri,rj,ij->r", first, second, table) / 108
    assert fit.replicates[:, 0] == pytest.approx(expected, abs=EXACT)
    by_rows, by_columns = table.mean(axis=1).var(ddof=1) / 12, table.mean(axis=0).var(ddof=1) / 9
    both = table.reshape(-1).var(ddof=1) / 108
    t = ts.bootstrap(table, scheme="crossed", interval="jackknife-t", n_resamples=60)
    assert t.std_error[0] ** 2 == pytest.approx(
        max(by_rows + by_columns - both, 0) or max(by_rows, by_columns)
    )


def test_multiplicities_serve_statistics_that_are_no_function_of_means() -> None:
    values = np.sort(NORMAL[:, 0])

    def median(counts: np.ndarray) -> np.ndarray:
        return values[(np.cumsum(counts, axis=1) >= counts.sum(axis=1, keepdims=True) / 2).argmax(axis=1)]

    fit = ts.bootstrap(values, median, of="multiplicities", smooth=False, n_resamples=300, seed=2)
    counts = _native.bootstrap_counts(40, 300, 2)
    assert fit.replicates[:, 0].tolist() == [np.sort(np.repeat(values, row))[19] for row in counts]
    assert fit.with_interval("bca").tidy()["status"][0] == "undefined"


@pytest.mark.parametrize("interval", OF_SCHEME["cluster"])
def test_every_interval_holds_the_estimate_and_grows_with_the_level(interval: Any) -> None:
    fit = ts.bootstrap(NORMAL, gap, interval=interval, n_resamples=1_999)
    wide = fit.with_level(0.99)
    assert ((fit.conf_low < fit.estimate) & (fit.estimate < fit.conf_high)).all()
    assert ((wide.conf_low < fit.conf_low) & (fit.conf_high < wide.conf_high)).all()
    assert wide.replicates is fit.replicates


def test_normal_and_basic_by_hand() -> None:
    fit = ts.bootstrap(NORMAL, gap, n_resamples=1_999)
    center, spread = fit.replicates.mean(axis=0), fit.replicates.std(axis=0, ddof=1)
    z = stats.norm.ppf(0.975)
    normal = fit.with_interval("normal")
    assert normal.conf_low == pytest.approx(2 * fit.estimate - center - z * spread, rel=1e-12)
    basic = fit.with_interval("basic")
    assert basic.conf_low == pytest.approx(2 * fit.estimate - fit.conf_high, rel=1e-12)


def test_bootstrap_t_of_a_mean_studentises_by_the_drawn_rows() -> None:
    x = NORMAL[:, :1]
    fit = ts.bootstrap(x, interval="bootstrap-t", n_resamples=499, seed=3)
    counts = _native.bootstrap_counts(40, 499, 3)
    drawn = [np.repeat(x[:, 0], row) for row in counts]
    pivots = [(d.mean() - x.mean()) / (d.std(ddof=1) / math.sqrt(40)) for d in drawn]
    low, high = np.quantile(pivots, [0.025, 0.975], method="weibull")
    error = x.std(ddof=1) / math.sqrt(40)
    assert fit.conf_low[0] == pytest.approx(x.mean() - high * error, rel=1e-9)
    assert fit.conf_high[0] == pytest.approx(x.mean() - low * error, rel=1e-9)


def test_draws_without_variance_have_a_floor() -> None:
    x = np.array([0.0] * 9 + [1.3])
    fit = ts.bootstrap(x, interval="bootstrap-t", n_resamples=999)
    assert np.isfinite([fit.conf_low[0], fit.conf_high[0]]).all()


def test_max_t_covers_the_family() -> None:
    family = ts.bootstrap(NORMAL, interval="max-t", n_resamples=4_999)
    single = family.with_interval("normal")
    assert (family.conf_high - family.conf_low > single.conf_high - single.conf_low).all()
    away = np.abs(family.replicates - family.estimate) / family.std_error
    c = np.quantile(away.max(axis=1), 0.95, method="weibull")
    assert family.conf_high - family.estimate == pytest.approx(c * family.std_error, rel=1e-9)


def test_exact_intervals_have_no_monte_carlo_error() -> None:
    one, other = (ts.bootstrap(BINARY, n_resamples=999, seed=seed) for seed in (1, 2))
    assert one.conf_low.tolist() == other.conf_low.tolist()
    assert "exact" in one.tidy()["method"][0]
    law = stats.binom(40, BINARY[:, 0].mean())
    assert one.conf_low[0] * 40 == pytest.approx(law.ppf(0.025))


def test_many_clusters_of_few_kinds_are_drawn_by_kind() -> None:
    sums = RNG.integers(0, 6, size=(20_000, 2))
    assert isinstance(schemes.cluster_draws(sums), schemes.Collapsed)
    fit = ts.bootstrap(sums, gap, n_resamples=4_999)
    error = (sums[:, 1] - sums[:, 0]).std() / math.sqrt(20_000)
    assert fit.std_error[0] == pytest.approx(error, rel=0.05)  # 4,999 replicates: five standard errors
    assert fit.estimate[0] == pytest.approx((sums[:, 1] - sums[:, 0]).mean(), abs=EXACT)


@pytest.mark.parametrize("values", [BINARY, NORMAL, RNG.integers(0, 4, size=(9_000, 2))])
def test_threads_change_nothing(values: np.ndarray) -> None:
    for scheme in ("cluster", "bayesian"):
        one, two = (ts.bootstrap(values, scheme=scheme, n_resamples=211, n_threads=n) for n in (1, 2))
        assert one.replicates.tobytes() == two.replicates.tobytes()


def test_pairs_equal_scipy() -> None:
    a, b = NORMAL[:, 0], NORMAL[:, 1]
    fit = ts.paired_bootstrap(a, b, interval="bca", n_resamples=99_999)
    theirs = stats.bootstrap(
        (a - b,), np.mean, n_resamples=99_999, method="BCa", rng=np.random.default_rng(1), batch=2_000
    ).confidence_interval
    assert (fit.conf_low[2], fit.conf_high[2]) == pytest.approx(
        theirs, abs=MONTE_CARLO * fit.std_error[2] * 3
    )


def test_clusters_are_drawn_whole() -> None:
    x, clusters = NORMAL[:, 0], [f"c{i % 7}" for i in range(40)]
    fit = ts.cluster_bootstrap(x, clusters, n_resamples=30, seed=4)
    counts = _native.bootstrap_counts(7, 30, 4)
    sums = np.array([[x[c::7].sum(), len(x[c::7])] for c in range(7)])
    assert fit.replicates[:, 0] == pytest.approx((counts @ sums[:, 0]) / (counts @ sums[:, 1]), abs=EXACT)
    pairs = ts.paired_bootstrap(x, x + 1, clusters)
    assert pairs.estimate[2] == pytest.approx(-1)
    assert pairs.tidy()["status"].to_list()[2] == "degenerate"


def test_clusters_of_the_oracle(shared: Callable[[str], Path]) -> None:
    fixtures = json.loads(shared("oracles/bootstrap.json").read_text())["fixtures"]
    fixture = next(f for f in fixtures if f["name"] == "boot_cluster_supplied")
    groups = fixture["input"]["clusters"]
    rows = [(label, value) for label, values in enumerate(groups) for value in values]
    fit = ts.cluster_bootstrap([v for _, v in rows], [c for c, _ in rows], interval="bca", n_resamples=99)
    expected = fixture["expected"]
    assert fit.estimate[0] == pytest.approx(expected["t0_pooled"], abs=1e-12)
    assert fit.evidence.leave_one_out[:, 0] == pytest.approx(expected["jackknife_clusters_pooled"], abs=1e-12)


@pytest.mark.parametrize("scheme", ["cluster", "nested", "bayesian"])
def test_a_table_gives_the_estimates_of_analyze(scheme: Any) -> None:
    table = ts.demo_table()
    fit = ts.bootstrap(table, scheme=scheme, n_resamples=999)
    contrasts = ts.analyze(table, n_resamples=99).contrasts
    assert contrasts is not None
    assert fit.estimate == pytest.approx(contrasts["estimate"].to_numpy(), abs=EXACT)
    assert fit.tidy()["model"].to_list() == contrasts["model"].to_list()
    assert (fit.conf_low < fit.estimate).all()


def test_the_nested_table_scheme_equals_the_array_one() -> None:
    cells = RNG.integers(0, 2, size=(12, 2, 3))
    frame = pl.DataFrame(
        {
            "scenario": np.repeat([f"s{i:02}" for i in range(12)], 6),
            "condition": np.tile(np.repeat(["a", "b"], 3), 12),
            "repetition": np.tile([1, 2, 3], 24),
            "score": cells.reshape(-1),
        }
    )
    table = ts.bootstrap(ts.ResponseTable(frame), scheme="nested", n_resamples=20_000)
    array = ts.bootstrap(cells, gap, scheme="nested", n_resamples=20_000)
    assert table.estimate == pytest.approx(array.estimate, abs=EXACT)
    assert table.std_error == pytest.approx(array.std_error, rel=0.03)  # 20,000 replicates


def test_two_cluster_columns_of_a_table_are_crossed() -> None:
    table = ts.demo_table().with_cluster(("scenario", "model"))
    fit = ts.bootstrap(table, scheme="crossed", n_resamples=1_999)
    contrasts = ts.analyze(table, n_resamples=99).contrasts
    assert contrasts is not None
    assert fit.estimate == pytest.approx(contrasts["estimate"].to_numpy(), abs=EXACT)
    with pytest.raises(DesignError, match="go together"):
        ts.bootstrap(table)
    percentile = ts.analyze(table, interval="percentile", n_resamples=1_999).contrasts
    assert percentile is not None
    assert percentile["conf_low"][0] == pytest.approx(fit.conf_low[0])


def test_strata_of_a_table_are_a_column() -> None:
    table = ts.demo_table()
    with pytest.raises(ArgumentError, match="names 'nowhere'"):
        ts.bootstrap(table, scheme="stratified", strata="nowhere")
    with pytest.raises(DesignError, match="has several values in cluster"):
        ts.bootstrap(table, scheme="stratified", strata="variant")


def test_degenerate_data_have_a_status_and_a_sane_interval(shared: Callable[[str], Path]) -> None:
    fixtures = json.loads(shared("oracles/bootstrap.json").read_text())["fixtures"]
    fixture = next(f for f in fixtures if f["name"] == "boot_degenerate_constant")
    fit = ts.bootstrap(fixture["input"]["x"], n_resamples=99)
    row = fit.tidy().row(0, named=True)
    assert [row["conf_low"], row["conf_high"]] == fixture["expected"]["percentile"]
    assert row["status"] == "degenerate"
    assert fit.with_interval("bca").tidy()["conf_low"][0] is None
    share = ts.bootstrap([0] * 20, n_resamples=99).tidy().row(0, named=True)
    assert (share["conf_low"], round(share["conf_high"], 4)) == (0.0, 0.1611)
    assert share["reason"] == "a share of exactly 0 or 1: Wilson's interval is shown"


def test_too_few_replicates_are_said() -> None:
    row = ts.bootstrap(NORMAL, gap, n_resamples=19).tidy().row(0, named=True)
    assert row["status"] == "warning"
    assert "19 replicates are too few for a 95 % interval" in row["reason"]
    assert ts.bootstrap(NORMAL, gap, n_resamples=39).tidy()["status"][0] == "ok"


def test_missing_values_are_refused_or_dropped_aloud() -> None:
    values = NORMAL.copy()
    values[3, 1] = np.nan
    with pytest.raises(
        DataError, match="1 of 40 rows have a missing value in `data`; drop them with missing='omit'"
    ):
        ts.bootstrap(values)
    fit = ts.bootstrap(values, missing="omit")
    assert fit.estimate == pytest.approx(np.delete(values, 3, axis=0).mean(axis=0), abs=EXACT)
    assert [note.message for note in fit.notes] == ["1 of 40 rows with a missing value are left out."]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ts.bootstrap("abc"), ArgumentTypeError, "`data` must be a list, a NumPy array or a series"),
        (lambda: ts.bootstrap([]), ArgumentError, "`data` holds no value"),
        (lambda: ts.bootstrap([1.0, np.inf]), ArgumentError, "`data` holds 1 infinite value"),
        (lambda: ts.bootstrap([1.0]), DesignError, "there is 1 cluster"),
        (lambda: ts.bootstrap(NORMAL, scheme="double"), ArgumentError, "`scheme` must be one of"),
        (lambda: ts.bootstrap(NORMAL, interval="wald"), ArgumentError, "`interval` must be one of"),
        (lambda: ts.bootstrap(NORMAL, scheme="nested"), ArgumentError, "`data` must have 3 axes"),
        (lambda: ts.bootstrap(NORMAL, np.mean), ArgumentError, "`statistic` must be vectorised"),
        (
            lambda: ts.bootstrap(NORMAL, [ts.Mean("a")]),
            ArgumentTypeError,
            "must be a function of column means",
        ),
        (lambda: ts.bootstrap(NORMAL, strata=[1] * 40), ArgumentError, "go together"),
        (lambda: ts.bootstrap(NORMAL, of="multiplicities"), ArgumentError, "needs a `statistic`"),
        (lambda: ts.bootstrap(NORMAL, missing="ignore"), ArgumentError, "`missing` must be"),
        (lambda: ts.bootstrap(NORMAL, n_resamples=0), ArgumentError, "`n_resamples` must be at least 1"),
        (lambda: ts.bootstrap(NORMAL, conf_level=95), ArgumentError, "did you mean 0.95"),
        (lambda: ts.bootstrap(NORMAL).with_interval("bootstrap-t"), ArgumentError, "ask for it in the call"),
        (lambda: ts.paired_bootstrap([1, 2], [1, 2, 3]), ArgumentError, "must pair: they have 2 and 3"),
        (lambda: ts.cluster_bootstrap([1, 2], ["a"]), ArgumentError, "expected 2, got 1"),
        (lambda: ts.cluster_bootstrap([1, 2], ["a", None]), ArgumentError, "missing in 1 of 2 rows"),
        (lambda: ts.bootstrap(ts.demo_table(), gap), ArgumentTypeError, "must be a list of estimands"),
    ],
)
def test_what_cannot_be_used_is_refused(call: Callable[[], object], error: type, message: str) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(")):
        call()


def test_results_travel() -> None:
    fit = ts.bootstrap(NORMAL, gap, n_resamples=99)
    again = pickle.loads(pickle.dumps(fit))
    assert again.tidy().equals(fit.tidy())
    assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["settings"]["scheme"] == "cluster"
    assert fit.glance().height == 1
    assert "statistic 2: " in repr(fit)
    for frame in (
        pl.DataFrame(NORMAL, schema=["a", "b", "c"]),
        NORMAL.tolist(),
        pl.DataFrame(NORMAL).to_pandas(),
    ):
        assert ts.bootstrap(frame, gap, n_resamples=99).replicates.tobytes() == fit.replicates.tobytes()


def test_the_stratified_jackknife_stays_within_strata() -> None:
    x = np.concatenate([RNG.normal(0, 1, 20), RNG.normal(10, 2, 30)])
    strata = [0] * 20 + [1] * 30
    fit = ts.bootstrap(x, scheme="stratified", strata=strata, interval="jackknife-t", n_resamples=99)
    variance = (20**2 * x[:20].var(ddof=1) / 20 + 30**2 * x[20:].var(ddof=1) / 30) / 50**2
    assert fit.std_error[0] == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert fit.evidence.df[0] == 48
    bca = ts.bootstrap(x, scheme="stratified", strata=strata, interval="bca", n_resamples=9_999)
    percentile = bca.with_interval("percentile")
    assert bca.conf_low[0] == pytest.approx(percentile.conf_low[0], abs=0.3 * bca.std_error[0])


def test_one_stratum_is_no_stratum() -> None:
    plain, one = (
        ts.bootstrap(NORMAL, gap, interval="bca", n_resamples=999, **options)
        for options in ({}, {"scheme": "stratified", "strata": [7] * 40})
    )
    assert plain.conf_low == pytest.approx(one.conf_low, rel=1e-12)
    with pytest.raises(DesignError, match="2 strata have one cluster"):
        ts.bootstrap(NORMAL, scheme="stratified", strata=[1, 2] + [3] * 38)


def test_bootstrap_t_of_a_ratio_takes_each_replicates_own_error() -> None:
    sizes = RNG.integers(1, 9, size=15)
    clusters = np.repeat(np.arange(15), sizes)
    x = RNG.gamma(1.0, size=len(clusters)) + 0.3 * clusters
    fit = ts.cluster_bootstrap(x, clusters, interval="bootstrap-t", n_resamples=199, seed=6)
    sums = np.stack([np.bincount(clusters, weights=x), sizes], axis=1)
    pivots = []
    for counts in _native.bootstrap_counts(15, 199, 6):
        drawn = np.repeat(sums, counts, axis=0)
        without = (drawn[:, 0].sum() - drawn[:, 0]) / (drawn[:, 1].sum() - drawn[:, 1])
        error = math.sqrt(14 / 15 * ((without - without.mean()) ** 2).sum())
        pivots.append((drawn[:, 0].sum() / drawn[:, 1].sum() - fit.estimate[0]) / error)
    low, high = np.quantile(pivots, [0.025, 0.975], method="weibull")
    assert fit.conf_low[0] == pytest.approx(fit.estimate[0] - high * fit.std_error[0], rel=1e-9)
    assert fit.conf_high[0] == pytest.approx(fit.estimate[0] - low * fit.std_error[0], rel=1e-9)


@pytest.mark.parametrize(
    ("scheme", "interval"),
    [
        ("stratified", "bootstrap-t"),
        ("bayesian", "bca"),
        ("nested", "jackknife-t"),
        ("crossed", "bca"),
        ("crossed", "max-t"),
    ],
)
def test_a_scheme_refuses_intervals_that_it_does_not_have(scheme: Any, interval: Any) -> None:
    options = {"strata": "scenario"} if scheme == "stratified" else {}
    with pytest.raises(ArgumentError, match=f"`interval` '{interval}' does not go with scheme='{scheme}'"):
        ts.bootstrap(ts.demo_table(), scheme=scheme, interval=interval, **options)


def test_a_table_is_asked_for_what_was_named_and_no_more() -> None:
    fit = ts.bootstrap(ts.demo_table(), [ts.Difference("free_text", "letter")], n_resamples=99)
    assert set(fit.tidy()["contrast"]) == {"free_text - letter"}


def test_shares_of_zero_and_one_have_a_width_everywhere() -> None:
    clustered = ts.cluster_bootstrap([0] * 6, list("aabcde"), n_resamples=99).tidy().row(0, named=True)
    assert (clustered["conf_low"], clustered["conf_high"]) == pytest.approx(
        (0.0, 3.8415 / (5 + 3.8415)), rel=1e-4
    )
    pairs = ts.paired_bootstrap([1] * 12, [0, 1] * 6, n_resamples=99).tidy()
    assert pairs["conf_low"][0] < 1 == pairs["conf_high"][0]
    frame = {"scenario": list("abcdefgh"), "condition": ["p"] * 8, "score": [1] * 8}
    frame = {key: value * 2 for key, value in frame.items()} | {"condition": ["p"] * 8 + ["q"] * 8}
    row = ts.bootstrap(ts.ResponseTable(frame), [ts.Mean("p")], n_resamples=99).tidy().row(0, named=True)
    assert row["conf_low"] < 1 == row["conf_high"]


def test_rounding_is_no_variation() -> None:
    fit = ts.paired_bootstrap([0.1 + 0.2, 0.7, 0.3] * 5, [0.3, 0.7, 0.3] * 5, n_resamples=99)
    assert fit.tidy()["status"].to_list()[2] == "degenerate"
    constant = ts.bootstrap([0.1] * 9, interval="normal", n_resamples=99).tidy().row(0, named=True)
    assert (constant["conf_low"], constant["std_error"], constant["status"]) == (None, None, "degenerate")


def test_pairs_are_read_exactly() -> None:
    fit = ts.paired_bootstrap(BINARY[:, 0], BINARY[:, 1], n_resamples=99)
    assert all(method.endswith("exact") for method in fit.tidy()["method"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ts.bootstrap(NORMAL, match="row"), "`match` can be given only with a ResponseTable"),
        (lambda: ts.bootstrap(ts.demo_table(), smooth=False), "`smooth` can be given only with an array"),
        (
            lambda: ts.bootstrap(np.ones((4, 2, 3)), gap, scheme="nested", of="multiplicities"),
            "does not go with",
        ),
        (
            lambda: ts.bootstrap(np.ones((4, 2, 3)), scheme="nested", missing="bogus"),
            "`missing` must be one of",
        ),
        (lambda: ts.bootstrap(np.ones((4, 3)), scheme="crossed", missing="omit"), "would drop a whole row"),
        (lambda: ts.bootstrap(NORMAL, lambda _: "text"), "`statistic` must return numbers"),
        (lambda: ts.bootstrap(NORMAL, lambda m: m[..., :0]), "`statistic` must be vectorised"),
        (lambda: ts.bootstrap(NORMAL, interval="kg2"), "`interval` must be one of"),
    ],
)
def test_nothing_is_ignored_in_silence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_whole_numbers_too_large_for_exact_sums_are_floats() -> None:
    for values in (np.array([2**63, 1, 5], dtype=np.uint64), np.array([2**62, 1, 5])):
        fit = ts.bootstrap(values, n_resamples=99)
        assert fit.estimate[0] == pytest.approx(float(values.astype(float).mean()))


def test_undefined_replicates_are_counted() -> None:
    fit = ts.bootstrap([0.0, 0, 0, 0, 1, 1], lambda m: 1 / m, n_resamples=999)
    row = fit.tidy().row(0, named=True)
    lost = int((~np.isfinite(fit.replicates)).sum())
    assert lost > 0
    assert f"{lost:,} replicates are undefined and left out" in row["reason"]


def test_a_bar_appears_on_a_terminal_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    shown.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    ts.bootstrap(NORMAL, gap, n_resamples=400)
    assert "resampling" in shown.getvalue()
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    ts.bootstrap(NORMAL, gap, n_resamples=400)
    assert not quiet.getvalue()


def test_a_repaired_two_way_error_is_said() -> None:
    """Rows and columns cancel: V1 + V2 - V12 is negative, and the larger one-way variance stands in."""
    table = np.where((np.arange(6)[:, None] + np.arange(6)) % 2, 1.0, -1.0) + 0.01 * np.arange(6)
    fit = ts.bootstrap(table, scheme="crossed", interval="jackknife-t", n_resamples=99)
    row = fit.tidy().row(0, named=True)
    by_column = table.mean(axis=0).var(ddof=1) / 6
    assert row["std_error"] == pytest.approx(math.sqrt(by_column))
    assert "two-way variance is not positive" in row["reason"]
