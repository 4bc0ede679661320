"""How the time of `ts.bootstrap` grows with clusters, columns, replicates and threads.

    python benches/scaling.py [--runs 3]

Whole public calls with quantiles, column means of two kinds of data: 0/1, whose sums stay integers (many
clusters of few columns are drawn by kind), and continuous. Along a row one quantity grows, the others keep
their values; a second number is the time over that of the cell to the left, which would be 10 for a time
that grows as the quantity does.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from statistics import median
from typing import Any, Literal

import numpy as np
import polars as pl

import triagestats as ts

Kind = Literal["0/1", "continuous"]

USUAL = {"clusters": 1_000, "columns": 10, "replicates": 1_000, "threads": 1}
GROWING = {
    "clusters": (100, 1_000, 10_000, 100_000, 1_000_000),
    "columns": (1, 10, 100, 1_000),
    "replicates": (100, 1_000, 10_000, 100_000),
}
KINDS: tuple[Kind, ...] = ("0/1", "continuous")
MOST_DRAWS = 10**10
"""Numbers added, beyond which a cell is left out: columns are cut first."""
ENOUGH_S = 1.0
"""A call that takes longer is not repeated."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="calls behind each median")
    runs = parser.parse_args().runs
    usual = ", ".join(f"{value:,} {name}" for name, value in USUAL.items() if name != "threads")
    print(f"numpy {np.__version__}, polars {pl.__version__}, {os.cpu_count()} cores")
    print(
        f"load average {os.getloadavg()[0]:.1f} at the start; where nothing else is said: {usual}, 1 thread"
    )
    for name, values in GROWING.items():
        print(f"\n| seconds | {' | '.join(f'{value:,} {name}' for value in values)} |")
        print(f"|---|{'---|' * len(values)}")
        for kind in KINDS:
            for n_threads in (1, 2):
                cells = " | ".join(row(kind, name, values, n_threads, runs))
                print(f"| {kind}, {n_threads} thread{'s' * (n_threads > 1)} | {cells} |", flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


def row(kind: Kind, name: str, values: tuple[int, ...], n_threads: int, runs: int) -> Iterator[str]:
    """Times along one quantity, each with its ratio to the one before."""
    before = None
    for value in values:
        shape = USUAL | {name: value, "threads": n_threads}
        if shape["clusters"] * shape["columns"] * shape["replicates"] > MOST_DRAWS:
            yield "left out"
            continue
        taken = seconds(data_of(kind, shape["clusters"], shape["columns"]), shape, runs)
        yield f"{taken:.4f}" if before is None else f"{taken:.4f} (x {taken / before:.1f})"
        before = taken


def data_of(kind: Kind, n_clusters: int, n_columns: int) -> np.ndarray[Any, Any]:
    """Clusters that share a level over their columns."""
    rng = np.random.default_rng(1)
    level = rng.normal(size=(n_clusters, 1))
    noise = rng.standard_normal((n_clusters, n_columns), dtype=np.float32)
    return (level + noise > 0).astype(np.int8) if kind == "0/1" else level + noise


def seconds(data: np.ndarray[Any, Any], shape: dict[str, int], runs: int) -> float:
    """Median wall time of a call and of the reading of its ends."""
    times: list[float] = []
    while len(times) < runs and not (times and times[0] > ENOUGH_S):
        start = time.perf_counter()
        fit = ts.bootstrap(
            data, interval="percentile", n_resamples=shape["replicates"], n_threads=shape["threads"]
        )
        _ = fit.conf_low, fit.conf_high
        times.append(time.perf_counter() - start)
    return median(times)


if __name__ == "__main__":
    main()
