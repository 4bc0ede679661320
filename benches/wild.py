"""The wild cluster bootstrap on workload W7: 36,000 rows, 1,000 clusters, 9,999 replicates, one thread.

    python benches/wild.py [--rounds 5] [--peers]

Times the public call on the arrays of the model, taking out the other regressors and the interval included:
W7 as it is (balanced), with a fifth of the rows left out, and with the models absorbed; then the fit by `lpm`
that comes before. With `--peers`, also those of `bench/peers.py` in TRIAGESTATS_SHARED, or in `../shared`
beside the checkout; pyfixest's route needs wildboottest, and takes 20 seconds a call.
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


def fit() -> object:
    """Fit W7 from a table."""
    scenario, model, voice = (axis.ravel() for axis in np.indices(SHAPE))
    rows = {"y": scores().ravel(), "v": voice.astype(str), "m": model.astype(str), "s": scenario}
    return ts.lpm("y ~ v + m", rows, cluster="s")


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
    print(f"{'lpm before it':35} {seconds(fit, options.rounds):8.4f} s")
    if options.peers:
        module = peers()
        for peer in PEERS:
            try:
                taken = seconds(lambda peer=peer: getattr(module, peer)("W7", N_RESAMPLES, 1), 1)
            except ImportError as error:
                print(f"{peer:35} not installed: {error}")
            else:
                print(f"{peer:35} {taken:8.4f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
