"""What must not change a result, and how results must change, through the public call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import triagestats as ts

CLOSE = 1e-12  # scores of size 1, added in another order
MIRROR = 1e-9  # jackknife differences lose a few digits to cancellation
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = ["estimate", "std_error", "conf_low", "conf_high", "statistic", "df", "p_value"]
SEEDS = st.integers(0, 2**32 - 1)


def table(
    seed: int,
    *,
    scenarios: int = 12,
    models: int = 3,
    conditions: Sequence[str] = ("a", "b", "c"),
    repetitions: int = 2,
    integers: bool = False,
    kept: float = 0.9,
) -> pl.DataFrame:
    """An incomplete table of 0/1 scores, or of floats of very different size."""
    rng = np.random.default_rng(seed)
    shape = (scenarios, models, len(conditions), repetitions)
    s, m, c, r = (index.ravel() for index in np.indices(shape))
    size = s.size
    hard = rng.normal(size=scenarios)[s] + rng.normal(size=(scenarios, len(conditions)))[s, c]
    scores = (hard + rng.normal(size=size) > 0).astype(float)
    if not integers:
        scores = rng.normal(size=size) * 10.0 ** rng.integers(-3, 3, size=size)
    frame = pl.DataFrame(
        {
            "scenario": [f"s{place:03}" for place in s],
            "model": [f"m{place:02}" for place in m],
            "condition": [conditions[place] for place in c],
            "repetition": r,
            "score": scores,
        }
    )
    return frame.filter(pl.Series(rng.random(size) < kept))


def frames(fit: ts.Analysis) -> list[pl.DataFrame]:
    found = [fit.rates, fit.contrasts, fit.sensitivity, fit.tests, fit.details]
    return [frame for frame in found if frame is not None]


def contrasts(fit: ts.Analysis) -> pl.DataFrame:
    assert fit.contrasts is not None
    return fit.contrasts


@QUICK
@given(SEEDS, st.booleans(), st.sampled_from(["jackknife-t", "percentile", "bca"]))
def test_row_order_and_threads_change_no_bit(seed: int, integers: bool, interval: Any) -> None:
    frame = table(seed, integers=integers)
    once = ts.analyze(frame, interval=interval, n_resamples=99, n_threads=1)
    other = ts.analyze(
        frame.sample(fraction=1, shuffle=True, seed=seed % 1000),
        interval=interval,
        n_resamples=99,
        n_threads=2,
    )
    for one, two in zip(frames(once), frames(other), strict=True):
        assert one.equals(two)


@pytest.mark.parametrize("models", [1, 20])
def test_chunks_change_no_bit(models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty models: NumPy would sum them in an order that depends on the size of the chunk."""
    frame = table(4, models=models)
    custom = [ts.AnchoringGap("a", ["b", "c"])]
    once = ts.analyze(frame, estimands=custom, n_resamples=101)
    for size in (8, 8_000, 100_000):
        monkeypatch.setattr("triagestats.resample._CHUNK_BYTES", size)
        other = ts.analyze(frame, estimands=custom, n_resamples=101)
        for one, two in zip(frames(once), frames(other), strict=True):
            assert one.equals(two)


_DIGEST = """
import sys, hashlib
import numpy as np
import polars as pl
import triagestats as ts
frame = pl.read_parquet(sys.argv[1])
fit = ts.analyze(frame, n_resamples=50, interval="percentile", estimands=[ts.AnchoringGap("a", ["b", "c"])])
numbers = [f.select(pl.col(pl.Float64)).to_numpy().tobytes() for f in (fit.rates, fit.contrasts)]
print(pl.thread_pool_size(), hashlib.sha256(b"".join(numbers)).hexdigest())
"""


def test_polars_threads_change_no_bit(tmp_path: Path) -> None:
    table(6, scenarios=400, models=12, repetitions=5).write_parquet(tmp_path / "table.parquet")
    digests = {}
    for n_threads in ("1", "2"):
        environment = os.environ | {"POLARS_MAX_THREADS": n_threads, "TRIAGESTATS_NUM_THREADS": n_threads}
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST, str(tmp_path / "table.parquet")],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        used, digest = done.stdout.split()
        assert used == n_threads
        digests[used] = digest
    assert digests["1"] == digests["2"]


@QUICK
@given(SEEDS, st.permutations(range(12)))
def test_relabelled_clusters_change_no_estimate_error_or_exact_p(seed: int, order: list[int]) -> None:
    frame = table(seed, integers=True)
    names = {f"s{old:03}": f"t{new:02}" for old, new in enumerate(order)}
    renamed = frame.with_columns(pl.col("scenario").replace(names))
    # 2^12 sign flips are at most 4,096, so every p-value of two labels is exact.
    one, two = (contrasts(ts.analyze(f, n_resamples=4_096)) for f in (frame, renamed))
    assert_frame_equal(one, two, rel_tol=0, abs_tol=MIRROR)
    assert one["p_value"].equals(two["p_value"])
    assert_frame_equal(
        ts.analyze(frame, n_resamples=9).rates,
        ts.analyze(renamed, n_resamples=9).rates,
        rel_tol=0,
        abs_tol=MIRROR,
    )


@QUICK
@given(SEEDS, st.sampled_from(["jackknife-t", "percentile", "bca"]))
def test_swapping_the_sides_mirrors(seed: int, interval: Any) -> None:
    frame = table(seed, conditions=("a", "b"), integers=True)
    options: dict[str, Any] = {"interval": interval, "n_resamples": 4_999, "margin": 0.3}
    one = contrasts(ts.analyze(frame, reference="a", **options))
    two = contrasts(ts.analyze(frame, reference="b", **options))
    for column in ("estimate", "statistic"):
        np.testing.assert_allclose(one[column].to_numpy(), -two[column].to_numpy(), atol=MIRROR)
    np.testing.assert_allclose(one["conf_low"].to_numpy(), -two["conf_high"].to_numpy(), atol=MIRROR)
    np.testing.assert_allclose(one["conf_high"].to_numpy(), -two["conf_low"].to_numpy(), atol=MIRROR)
    assert one["p_value"].equals(two["p_value"])
    assert one["status"].equals(two["status"])
    swapped = {"better": {"worse"}, "worse": {"better"}, "equivalent": {"equivalent"}}
    for verdict, other in zip(one["verdict"], two["verdict"], strict=True):
        assert other in swapped.get(verdict, {"not worse", "undecided"})


@QUICK
@given(SEEDS, st.sampled_from([-3.0, 0.5, 8.0]))
def test_a_constant_shifts_means_and_leaves_differences(seed: int, constant: float) -> None:
    frame = table(seed, integers=True)
    options: dict[str, Any] = {
        "n_resamples": 299,
        "estimands": [ts.AnchoringGap("a", ["b", "c"]), ts.Gap("a", ["b", "c"])],
    }
    one = ts.analyze(frame, **options)
    two = ts.analyze(frame.with_columns(pl.col("score") + constant), **options)
    np.testing.assert_allclose(
        one.rates["estimate"].to_numpy() + constant, two.rates["estimate"].to_numpy(), atol=CLOSE
    )
    for column in NUMBERS:
        np.testing.assert_allclose(
            contrasts(one)[column].to_numpy(), contrasts(two)[column].to_numpy(), atol=MIRROR, rtol=MIRROR
        )


@QUICK
@given(SEEDS)
def test_higher_is_better_turns_the_verdict_only(seed: int) -> None:
    frame = table(seed, conditions=("a", "b"), integers=True)
    one = contrasts(ts.analyze(frame, n_resamples=99))
    two = contrasts(ts.analyze(frame, n_resamples=99, higher_is_better=False))
    assert one.drop("verdict").equals(two.drop("verdict"))
    turned = {"better": "worse", "worse": "better", "undecided": "undecided"}
    assert two["verdict"].to_list() == [turned[verdict] for verdict in one["verdict"]]


def test_one_draw_serves_all_conditions_and_models() -> None:
    """An analysis of one model alone has the interval that it has beside the others."""
    frame = table(9, kept=1.0)
    everything = ts.analyze(frame, interval="percentile", n_resamples=199)
    alone = ts.analyze(frame.filter(pl.col("model") == "m01"), interval="percentile", n_resamples=199)
    for one, two in ((everything.rates, alone.rates), (contrasts(everything), contrasts(alone))):
        mine = one.filter(pl.col("model") == "m01").select(NUMBERS)
        assert mine.equals(two.filter(pl.col("model") == "m01").select(NUMBERS))


def test_a_level_is_read_from_the_same_replicates() -> None:
    frame = table(10, integers=True)
    fit = ts.analyze(frame, interval="percentile", n_resamples=399)
    again = ts.analyze(frame, interval="percentile", n_resamples=399, conf_level=0.8)
    assert contrasts(fit.with_level(0.8)).equals(contrasts(again))
    assert fit.with_level(0.8).rates.equals(again.rates)
