"""The wild cluster bootstrap on workload W7: 36,000 rows, 1,000 clusters, 9,999 replicates, one thread.

    python benches/wild.py [--rounds 5] [--peers]

Times the public call on the arrays of the model, taking out the other regressors and the interval included:
W7 as it is (balanced), with a fifth of the rows left out, and with the models absorbed; then the fit by `lpm`
that comes before, and both together from a table to the p-value. With `--peers`, also `bench/peers.py`,
each in turns with ours, and how many times as long they take: they fit and draw in one call. The file is in
TRIAGESTATS_SHARED, or in `../shared` beside the checkout; pyfixest's route needs wildboottest, 20 seconds a
call.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import triagestats as ts
from triagestats.models.matrix import ModelMatrix

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).resolve().parents[2] / "shared")
SOURCE = SHARED / "bench" / "peers.py"
SHAPE = (1_000, 12, 3)
N_RESAMPLES = 9_999
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PEERS = ("numpy_fast_wild", "pyfixest_wildboottest", "wildboottest_statsmodels")


def scores() -> np.ndarray:
    """Return the answers of W7, from the same draws as `peers.data`."""
    rng = np.random.default_rng(20240601)
    base = rng.normal(0.6, 1.2, (1000, 1, 1))
    model = rng.normal(0, 0.5, (1, 12, 1))
    voice = np.array([0.15, 0.0, -0.1])
    return (rng.random(SHAPE) < 1 / (1 + np.exp(-(base + model + voice)))).astype(float)


def matrices() -> dict[str, ModelMatrix]:
    """Return the models that are timed."""
    scenario, model, voice = (axis.ravel() for axis in np.indices(SHAPE))
    voices = np.column_stack([voice == 1, voice == 2]).astype(float)
    dummies = np.column_stack([np.ones(scenario.size), *(model == m for m in range(1, 12))]).astype(float)
    terms = ("v1", "v2")
    y = scores().ravel()
    absorbed = ModelMatrix(y, voices, terms, (model,), ("model",), None, (scenario,), ("scenario",))
    names = (*terms, "one", *(f"m{m}" for m in range(1, 12)))
    full = replace(
        absorbed, x=np.column_stack([voices, dummies]), terms=names, absorbed=(), absorbed_names=()
    )
    kept = np.random.default_rng(1).random(y.size) < 0.8
    unbalanced = replace(full, y=y[kept], x=full.x[kept], clusters=(scenario[kept],))
    return {"W7": full, "W7, unbalanced": unbalanced, "W7, models absorbed": absorbed}


def seconds(call: Callable[[], object], rounds: int) -> float:
    """Return the median time of a call, after one that is not counted."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times[1:])


def in_turns(peer: Callable[[], object], ours: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return median times of a peer and of our calls, three rounds of each in turns after one of all."""
    calls = {"peer": peer, **ours}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(4):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: median(taken[1:]) for name, taken in times.items()}


def rows() -> dict[str, np.ndarray]:
    """Return W7 as a table."""
    scenario, model, voice = (axis.ravel() for axis in np.indices(SHAPE))
    return {"y": scores().ravel(), "v": voice.astype(str), "m": model.astype(str), "s": scenario}


def fit(table: dict[str, np.ndarray]) -> ts.LinearModel:
    """Fit W7."""
    return ts.lpm("y ~ v + m", table, cluster="s")


def whole(table: dict[str, np.ndarray]) -> object:
    """Fit W7 and bootstrap it."""
    return ts.wild_bootstrap(fit(table), "v[T.1]", n_resamples=N_RESAMPLES, n_threads=1)


def peers() -> Any:
    """Return the module with the peers."""
    spec = importlib.util.spec_from_file_location("peers", SOURCE)
    if spec is None or spec.loader is None or not SOURCE.exists():
        sys.exit(f"{SOURCE} is not there; set TRIAGESTATS_SHARED")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="time pyfixest and NumPy too")
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # read by the libraries when they are loaded
        os.execve(sys.executable, sys.orig_argv, os.environ | ONE_THREAD)  # noqa: S606  # this very script
    print(f"load {os.getloadavg()[0]:.1f}, medians of {options.rounds}, one thread")
    for name, matrix in matrices().items():
        for weights in ("rademacher", "webb", "mammen"):
            taken = seconds(
                lambda matrix=matrix, weights=weights: ts.wild_bootstrap(
                    matrix, "v1", weights=weights, n_resamples=N_RESAMPLES, n_threads=1
                ),
                options.rounds,
            )
            print(f"{name:22} {weights:12} {taken:8.4f} s")
    table = rows()
    print(f"{'lpm before it':35} {seconds(lambda: fit(table), options.rounds):8.4f} s")
    print(f"{'fit and bootstrap':35} {seconds(lambda: whole(table), options.rounds):8.4f} s")
    if options.peers:
        module, matrix = peers(), matrices()["W7"]
        alone = {
            "bootstrap alone": lambda: ts.wild_bootstrap(
                matrix, "v1", weights="rademacher", n_resamples=N_RESAMPLES, n_threads=1
            ),
            "fit and bootstrap": lambda: whole(table),
        }
        for peer in PEERS:
            try:
                times = in_turns(lambda peer=peer: getattr(module, peer)("W7", N_RESAMPLES, 1), alone)
            except ImportError as error:
                print(f"{peer:35} not installed: {error}")
                continue
            ratios = ", ".join(f"{times['peer'] / times[name]:,.0f} x {name}" for name in alone)
            print(f"{peer:35} {times['peer']:8.4f} s: {ratios}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
