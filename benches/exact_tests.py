"""W8: 198 exact McNemar tests and 190 exact signed-rank tests, each as a table of results needs them.

The McNemar tests take two counts, the signed-rank tests 60 pairs with their interval: differences that all
differ, and half-unit scores, whose differences tie and are often zero. Every time is the median of runs in
one process, after a first one. Every test of every run has data of its own, as laws are kept between calls;
the last line tests the same data again.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np

import triagestats as ts

RUNS = 15
LIMIT_S = 0.020
N_TABLES = 198
N_SAMPLES = 190
N_PAIRS = 60


Run = Callable[[np.random.Generator], Callable[[], object]]


def median_time(prepare: Run) -> float:
    """Return the median of the times of some runs, each on data of its own."""
    random = np.random.default_rng(20_260_911)
    prepare(random)()
    times = []
    for _ in range(RUNS):
        run = prepare(random)
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return statistics.median(times)


def tables(random: np.random.Generator) -> Callable[[], object]:
    """Discordant pairs of both kinds."""
    counts = [(int(b), int(c)) for b, c in random.integers(0, 120, size=(N_TABLES, 2))]
    return lambda: [ts.mcnemar(b, c, method="exact") for b, c in counts]


def untied(random: np.random.Generator) -> Callable[[], object]:
    """Differences that all differ."""
    differences = random.normal(0.2, 1.0, size=(N_SAMPLES, N_PAIRS))
    return lambda: [ts.wilcoxon_signed_rank(d, method="exact") for d in differences]


def tied(random: np.random.Generator) -> Callable[[], object]:
    """Scores from 1 to 5 in steps of a half, as two judges give them."""
    x, y = (random.integers(2, 11, size=(N_SAMPLES, N_PAIRS)) / 2 for _ in range(2))
    return lambda: [ts.wilcoxon_signed_rank(a, b, method="exact") for a, b in zip(x, y, strict=True)]


def again(_: np.random.Generator) -> Callable[[], object]:
    """The same scores every time."""
    return tied(np.random.default_rng(1))


def main() -> int:
    """Print the medians; 1 where one takes longer than it may."""
    workloads: dict[str, Run] = {
        f"{N_TABLES} exact McNemar tests": tables,
        f"{N_SAMPLES} exact signed-rank tests, no ties": untied,
        f"{N_SAMPLES} exact signed-rank tests, ties and zeros": tied,
        "the same on data that were tested before": again,
    }
    over = False
    for name, prepare in workloads.items():
        time = median_time(prepare)
        print(f"{name:44} {time * 1e3:6.1f} ms  (median of {RUNS}, limit {LIMIT_S * 1e3:.0f})")
        over |= time > LIMIT_S
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
