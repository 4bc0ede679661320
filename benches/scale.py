"""Time and peak memory of `analyze` on a parquet folder of many rows, in a process of its own.

    python benches/scale.py                        # 100 million rows in 1 million clusters; some 20 minutes
    python benches/scale.py --rows 1_000_000       # smaller: 100 rows a cluster all the same
    python benches/scale.py --order sorted         # the rows of a cluster stand together

The files are made by this script, in a folder of its own under `--scratch` (the system's folder for temporary
files where not given), and removed afterwards. Rows are those of 5 models x 2 formats x 10 runs of every
scenario, 1 % of them without a score; the order is that of the runs, scenarios shuffled within each, unless
sorted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

MODELS, FORMATS, RUNS = 5, 2, 10
EACH = MODELS * FORMATS * RUNS
MISSING = 0.01
MOST_SECONDS = 3_600


def runs(n_scenarios: int, rng: np.random.Generator) -> Iterator[pl.DataFrame]:
    """One frame a run: every scenario once, in an order of its own."""
    ease = rng.normal(0.8, 1.0, n_scenarios)
    for model in range(MODELS):
        for form in range(FORMATS):
            for run in range(RUNS):
                order = rng.permutation(n_scenarios)
                yield _frame(order, ease[order] + 0.2 * model - 0.3 * form, model, form, run, rng)


def sorted_parts(n_scenarios: int, rng: np.random.Generator) -> Iterator[pl.DataFrame]:
    """Frames in which the rows of a scenario stand together."""
    ease = rng.normal(0.8, 1.0, n_scenarios)
    cells = np.arange(EACH)
    for part in np.array_split(np.arange(n_scenarios), min(100, n_scenarios)):
        scenario, cell = np.repeat(part, EACH), np.tile(cells, len(part))
        model, form, run = cell // (FORMATS * RUNS), cell // RUNS % FORMATS, cell % RUNS
        yield _frame(scenario, ease[scenario] + 0.2 * model - 0.3 * form, model, form, run, rng)


def _frame(
    scenario: np.ndarray,
    ease: np.ndarray,
    model: np.ndarray | int,
    form: np.ndarray | int,
    run: np.ndarray | int,
    rng: np.random.Generator,
) -> pl.DataFrame:
    size = len(scenario)
    score = (rng.random(size) < 1 / (1 + np.exp(-ease))).astype(np.int8)
    frame = pl.DataFrame(
        {
            "scenario": scenario,
            "model": np.broadcast_to(model, size),
            "format": np.broadcast_to(form, size),
            "repetition": np.broadcast_to(run, size).astype(np.int8),
            "score": pl.Series(score).set(pl.Series(rng.random(size) < MISSING), None),
        }
    )
    number = pl.col("scenario").cast(pl.String).str.zfill(8)
    return frame.with_columns(
        pl.concat_str(pl.lit("scenario-"), number).alias("scenario"),
        pl.concat_str(pl.lit("model-"), pl.col("model").cast(pl.String)).alias("model"),
        pl.when(pl.col("format") == 0).then(pl.lit("letter")).otherwise(pl.lit("free text")).alias("format"),
    )


def make(folder: Path, n_rows: int, order: str) -> int:
    """Write the files, and return their size in bytes."""
    rng = np.random.default_rng(7)
    n_scenarios = max(n_rows // EACH, 2)
    frames = runs(n_scenarios, rng) if order == "runs" else sorted_parts(n_scenarios, rng)
    for number, frame in enumerate(frames):
        frame.write_parquet(folder / f"part-{number:03}.parquet")
    return sum(path.stat().st_size for path in folder.iterdir())


def measure(folder: Path) -> None:
    """Analyse the files in this process, and print the time and the peak memory."""
    import triagestats as ts

    start = time.perf_counter()
    fit = ts.analyze(pl.scan_parquet(folder / "*.parquet"))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    sizes = fit.glance().row(0, named=True)
    print(f"{sizes['rows']:,} rows, {sizes['n_clusters']:,} clusters: {seconds:.0f} s, peak {peak:.2f} GiB")
    if fit.contrasts is not None:
        print(fit.contrasts.select("contrast", "model", "estimate", "std_error", "p_value"))


def main() -> None:
    """Make the files, measure, and remove them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=lambda text: int(text.replace("_", "")), default=100_000_000)
    parser.add_argument("--order", choices=("runs", "sorted"), default="runs")
    parser.add_argument("--scratch", type=Path, help="where the files are made")
    parser.add_argument("--analyse", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.analyse is not None:
        measure(asked.analyse)
        return
    with tempfile.TemporaryDirectory(dir=asked.scratch) as folder:
        start = time.perf_counter()
        size = make(Path(folder), asked.rows, asked.order)
        print(
            f"{size / 1024**3:.2f} GiB made in {time.perf_counter() - start:.0f} s ({os.cpu_count()} cores)"
        )
        command = [sys.executable, "-P", __file__, "--analyse", folder]
        subprocess.run(command, check=True, timeout=MOST_SECONDS)


if __name__ == "__main__":
    main()
