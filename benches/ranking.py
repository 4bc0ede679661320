"""The time of `leaderboard` and `triage_board` with 9,999 replicates, from rows to ranks and all pairs.

Tables are simulated: 20 models x 250 cases and 30 models x 1,000 cases, scores of 0 and 1 that models share
in part. Medians after one call that loads the modules.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import polars as pl

import triagestats as ts
from triagestats.joint import rank_totals

RUNS = 9
N_RESAMPLES = 9_999
GOALS = ((20, 250, 0.1), (30, 1_000, 0.5))
"""Models, cases, and seconds that a leaderboard may take."""


def rows(n_models: int, n_cases: int, seed: int = 1) -> pl.DataFrame:
    """Return answers of models to cases of various difficulty."""
    random = np.random.default_rng(seed)
    difficulty = random.normal(size=(n_cases, 1))
    skill = np.linspace(-0.5, 1.0, n_models)
    chance = 1 / (1 + np.exp(-(skill - difficulty)))
    score = random.random((n_cases, n_models)) < chance
    urgent = np.repeat(random.random(n_cases) < 0.6, n_models)
    return pl.DataFrame(
        {
            "scenario": np.repeat(np.arange(n_cases), n_models),
            "model": np.tile([f"model_{m:02}" for m in range(n_models)], n_cases),
            "score": score.reshape(-1).astype(np.int64),
            "urgent": urgent.astype(np.int64),
            "escalate": (score.reshape(-1) == urgent).astype(np.int64),
        }
    )


def median(call: Callable[[], object]) -> float:
    """Return the median seconds of a call."""
    call()
    times = []
    for _ in range(RUNS):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    """Print the medians; 1 where a leaderboard takes longer than it may."""
    over = False
    for n_models, n_cases, goal in GOALS:
        frame = rows(n_models, n_cases)
        table = ts.ResponseTable(frame.select("scenario", "model", "score"))
        scores = frame["score"].to_numpy().reshape(n_cases, n_models).astype(np.float64)
        models = frame["model"][:n_models].to_list()
        calls: dict[str, Callable[[int], object]] = {
            "rank_totals": lambda n, s=scores, m=models: rank_totals(s, m, n_threads=n),
            "leaderboard": lambda n, t=table: ts.leaderboard(t, n_threads=n),
            "leaderboard, rows": lambda n, f=frame: ts.leaderboard(
                f.select("scenario", "model", "score"), n_threads=n
            ),
            "tidy": lambda n, t=table: ts.leaderboard(t, n_threads=n).tidy(),
            "triage_board": lambda n, f=frame: ts.triage_board(f, U=0.05, O=0.35, n_threads=n),
        }
        print(f"{n_models} models x {n_cases:,} cases, {N_RESAMPLES:,} replicates, goal {goal:g} s")
        for name, call in calls.items():
            seconds = {n: median(lambda c=call, n=n: c(n)) for n in (1, 2)}
            told = ", ".join(f"{n} thread{'s' * (n > 1)} {s * 1000:7.1f} ms" for n, s in seconds.items())
            print(f"  {name:18} {told}")
            over |= name == "leaderboard, rows" and min(seconds.values()) > goal
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
