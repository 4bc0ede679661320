"""The cost of `import triagestats` over that of `import polars`, which every user pays anyhow.

Each import runs in a fresh interpreter, the two kinds in turn, and medians are compared.
"""

import statistics
import subprocess
import sys

RUNS = 21
LIMIT_MS = 60.0
LAZY = ("narwhals", "numpy", "pandas", "rich", "scipy", "typer")

TIMED = """
from time import perf_counter
start = perf_counter()
import {name}
print((perf_counter() - start) * 1e3)
"""
LOADED = """
import sys
import {name}
print(*sorted({{module.partition(".")[0] for module in sys.modules}}))
"""


def run(template: str, name: str) -> str:
    """Return what a fresh interpreter prints, which sees installed packages only."""
    command = [sys.executable, "-P", "-c", template.format(name=name)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Print both medians, the difference, and the modules loaded too early."""
    own, base = (set(run(LOADED, name).split()) for name in ("triagestats", "polars"))
    early = sorted((own - base).intersection(LAZY))

    times: dict[str, list[float]] = {"polars": [], "triagestats": []}
    for _ in range(RUNS):
        for name, measured in times.items():
            measured.append(float(run(TIMED, name)))
    median = {name: statistics.median(measured) for name, measured in times.items()}
    over = median["triagestats"] - median["polars"]

    print(f"import polars       {median['polars']:7.1f} ms  (median of {RUNS})")
    print(f"import triagestats  {median['triagestats']:7.1f} ms  (median of {RUNS})")
    print(f"difference          {over:7.1f} ms  (limit {LIMIT_MS:.0f})")
    if early:
        print(f"`import triagestats` loads {', '.join(early)}, which belong where they are used")
    return int(over > LIMIT_MS or bool(early))


if __name__ == "__main__":
    sys.exit(main())
