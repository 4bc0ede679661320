"""The time of `analyze` on 21,000 rows (1,000 questions, 7 models, 3 voices) with 9,999 replicates.

The rows are those of condition B1 of the narrativeshield table, in TRIAGESTATS_SHARED or in `../shared`
beside the checkout; without it a simulated table of the same size. Each run is a fresh interpreter,
timed after the import: the first call, and the print of its result.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 7
LIMIT_S = 1.0
SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).resolve().parents[2] / "shared")
TABLE = SHARED / "replication" / "narrativeshield" / "responses.csv.gz"

TIMED = """
import sys
from time import perf_counter

import polars as pl

import triagestats as ts
from triagestats.simulate import simulate_scores

path, n_threads = sys.argv[1], int(sys.argv[2]) or None
if path:
    rows = pl.read_csv(path, infer_schema_length=None).filter(pl.col("condition") == "B1").drop("condition")
else:
    rows = simulate_scores(1000, n_models=7, n_conditions=3, seed=1).scores.rename({"condition": "voice"})
assert rows.height == 21_000, rows.height
ts.analyze  # loads the modules
start = perf_counter()
fit = ts.analyze(rows, condition="voice", n_resamples=9_999, n_threads=n_threads)
done = perf_counter()
repr(fit)
print(done - start, perf_counter() - done)
"""


def run(path: str, n_threads: int) -> tuple[float, float]:
    """Return the seconds of the analysis and of its print in a fresh interpreter."""
    command = [sys.executable, "-P", "-c", TIMED, path, str(n_threads)]
    analysis, printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(analysis), float(printed)


def main() -> int:
    """Print the medians; 1 where the analysis takes longer than it may."""
    path = str(TABLE) if TABLE.exists() else ""
    print("table: " + (path or f"simulated, of the same size (there is no {TABLE})"))
    over = False
    for n_threads in (0, 1, 2):
        times = [run(path, n_threads) for _ in range(RUNS)]
        analysis, printed = (statistics.median(column) for column in zip(*times, strict=True))
        label = "default" if n_threads == 0 else f"{n_threads} thread{'s' * (n_threads > 1)}"
        slowest = max(analysis for analysis, _ in times)
        print(
            f"analyze, {label:10} {analysis:6.3f} s  (median of {RUNS}, slowest {slowest:.3f}, "
            f"limit {LIMIT_S:.1f}); print {printed:.3f} s"
        )
        over |= n_threads == 0 and analysis > LIMIT_S
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
