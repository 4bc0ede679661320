"""triagestats beside what Python users run today, interleaved in one process, on the workloads W1 to W6.

    python benches/peers.py [--only W1a,W4] [--rounds 5] [--w5] [--no-memory] [--out FILE]

Data and peers are those of `bench/peers.py` in TRIAGESTATS_SHARED, or in `../shared` beside the checkout.
Each workload runs in a fresh process with one BLAS thread: a peer, triagestats, the next peer, triagestats,
and so on, for some rounds; every time is that of a whole call with its quantiles. A call of triagestats is
compared with the reference before it is timed. Peers that are not installed are listed with the reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import TYPE_CHECKING, Any

from workloads import BUILDERS, Workload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ends = tuple[NDArray[np.float64], NDArray[np.float64]]

SHARED = Path(os.environ.get("TRIAGESTATS_SHARED") or Path(__file__).resolve().parents[2] / "shared")
SOURCE = SHARED / "bench" / "peers.py"
PACKAGES = (
    "triagestats",
    "numpy",
    "scipy",
    "pandas",
    "statsmodels",
    "arch",
    "resample",
    "confidenceinterval",
    "evalstats",
    "polars",
)
THREADS = 1.6
"""Times faster that two idle threads are to be."""
MEMORY_MB = 200
"""Peak extra memory that is allowed."""
MEMORY = (
    ("W1b", 10_000),
    ("W1b", 262_000),
    ("W2", 10_000),
    ("W3", 10_000),
    ("W4", 10_000),
    ("W4c", 10_000),
    ("W5", 10_000),
    ("W5c", 10_000),
)
SLOW_S = 30.0
"""A peer that takes longer is run once."""
SHORT_S = 0.05
"""Shorter calls are repeated for so long, and the median is taken."""
MISSED = "**missed**"
REASONS = {"rliable_stratified": "rliable 1.2.0 needs arch < 8, and fails with it under pandas 3"}
ELSEWHERE = (
    """W7 (wild cluster bootstrap) is timed by wild.py, W8 (exact tests by the hundred) by exact_tests.py."""
)


def main() -> int:
    """Run what was asked, and print the tables; 1 where our results disagree with the peers'."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="workloads, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--w5", action="store_true", help="also the million clusters of W5; minutes")
    parser.add_argument("--no-memory", action="store_true", help="times only")
    parser.add_argument("--out", type=Path, help="write the tables to this file, as markdown")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not SOURCE.exists():
        print(
            f"benches/peers.py needs {SOURCE}: set TRIAGESTATS_SHARED to the folder that has bench/peers.py"
        )
        return 1
    if given.child:
        return child(*given.child)
    names = (
        given.only.split(",") if given.only else [name for name in BUILDERS if name[:2] != "W5" or given.w5]
    )
    if unknown := [name for name in names if name not in BUILDERS]:
        print(f"--only takes {', '.join(BUILDERS)}; got {', '.join(unknown)}")
        return 1
    lines = list(machine())
    failed = 0
    for name in names:
        found = run_child("time", name, str(given.rounds))
        failed += found is None
        lines += ["", *(timings(name, found) if found else [f"## {name}", "", "Failed; see above."])]
        print("\n".join(lines[-1:]) if not found else f"{name} done", file=sys.stderr, flush=True)
    if not given.no_memory:
        lines += ["", *memory([(name, number) for name, number in MEMORY if name in names])]
    lines += ["", ELSEWHERE]
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    return int(failed > 0)


def run_child(*arguments: str) -> dict[str, Any] | None:
    """What a fresh process with one BLAS thread and no BLAS tuning prints; None where it fails."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"TRIAGESTATS_NUM_THREADS": "1", "TRIAGESTATS_SHARED": str(SHARED)}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    command = [sys.executable, str(Path(__file__).resolve()), "--child", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(task: str, *arguments: str) -> int:
    """One task in a fresh process: it prints one line of JSON."""
    if task == "memory":
        found = measure_memory(arguments[0], int(arguments[1]), Path(arguments[2]))
    else:
        shared = load()
        workload = BUILDERS[arguments[0]](shared, arguments[0])
        if task == "save":
            import numpy as np

            np.save(arguments[1], workload.data)
            found = {}
        else:
            found = measure_times(workload, int(arguments[1]))
    print(json.dumps(found))
    return 0


def load() -> ModuleType:
    """Import the peers as a module."""
    spec = importlib.util.spec_from_file_location("shared_peers", SOURCE)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{SOURCE} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure_times(workload: Workload, rounds: int) -> dict[str, Any]:
    """Check our calls, then time them and the peers in turn."""
    number, ours = workload.n_resamples, workload.calls[0]
    for call in workload.calls:
        if wrong := call.check(call.run(workload.data, number, 1)):
            raise SystemExit(f"{call.name} disagrees with the reference: {wrong}")
    load_before = os.getloadavg()[0]
    skipped, sizes = {}, {}
    for name, peer, most, full in workload.peers:
        try:
            peer(min(most, max(2, number // 100)), 0)  # imports, compiles and fills caches
            sizes[name] = number if full else min(most, number)
        except Exception as error:  # noqa: BLE001  a peer may fail in any way
            skipped[name] = REASONS.get(name, f"{type(error).__name__}: {error}"[:200])
    peers: dict[str, list[tuple[float, float]]] = {name: [] for name in sizes}
    calls: dict[str, list[tuple[float, float]]] = {call.name: [] for call in workload.calls}
    for turn in range(rounds):
        for name, peer, _, _ in workload.peers:
            if name in sizes and not (turn and peers[name][0][0] * sizes[name] > SLOW_S * number):
                theirs = seconds(peer, sizes[name], turn + 1)
                own = seconds(ours.run, workload.data, number, 1)
                peers[name].append((theirs * number / sizes[name], own))
        for call in workload.calls:
            one, two = (seconds(call.run, workload.data, number, n_threads) for n_threads in (1, 2))
            calls[call.name].append((one, two))
    return {
        "what": workload.what,
        "n_resamples": number,
        "load": [load_before, os.getloadavg()[0]],
        "calls": calls,
        "peers": peers,
        "sizes": sizes,
        "skipped": skipped,
        "goals": dict(workload.goals),
    }


def seconds(run: Callable[..., object], *arguments: object) -> float:
    """Wall time of a call."""
    times: list[float] = []
    while sum(times) < SHORT_S:
        start = time.perf_counter()
        run(*arguments)
        times.append(time.perf_counter() - start)
    return median(times)


def timings(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    """Tables of one workload."""
    before, after = found["load"]
    yield f"## {name}: {found['what']}"
    yield ""
    yield f"R = {found['n_resamples']:,}; load average {before:.1f} before, {after:.1f} after."
    yield ""
    yield f"| triagestats | seconds, 1 thread | 2 threads | times faster, goal {THREADS} |"
    yield "|---|---|---|---|"
    for call, pairs in found["calls"].items():
        one, two = (median(column) for column in zip(*pairs, strict=True))
        yield f"| {call} | {one:.5f} | {two:.5f} | {one / two:.2f}, {verdict(one / two, THREADS)} |"
    yield ""
    yield "| peer | seconds | times ours | lowest to highest | goal | |"
    yield "|---|---|---|---|---|---|"
    for peer, pairs in sorted(found["peers"].items(), key=lambda item: median(p[0] for p in item[1])):
        ratios = [theirs / own for theirs, own in pairs]
        ratio = median(p[0] for p in pairs) / median(p[1] for p in pairs)
        scaled = "" if found["sizes"][peer] == found["n_resamples"] else f" (from {found['sizes'][peer]:,})"
        goal = found["goals"].get(peer)
        cells = [peer, f"{median(p[0] for p in pairs):.4f}{scaled}", f"{ratio:.2f}"]
        cells += [f"{min(ratios):.2f} to {max(ratios):.2f}", "" if goal is None else f"{goal:g}"]
        yield f"| {' | '.join(cells)} | {'' if goal is None else verdict(ratio, goal)} |"
    for peer, reason in found["skipped"].items():
        yield f"| {peer} | skipped: {reason.replace('|', '/')} | | | | |"


def verdict(reached: float, goal: float) -> str:
    """Whether a goal is met."""
    return "met" if reached >= goal else MISSED


def machine() -> Iterator[str]:
    """The machine and the versions, in words."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        facts = dict(
            (part.strip() for part in line.split(":", 1)) for line in text.splitlines() if ":" in line
        )
    except OSError:
        facts = {}
    flags = facts.get("flags", facts.get("Features", "")).split()
    features = [flag for flag in ("popcnt", "avx2", "bmi2", "fma", "avx512f", "asimd") if flag in flags]
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    yield "# triagestats beside its peers"
    yield ""
    model = facts.get("model name", platform.processor() or "unknown processor")
    yield f"- {os.cpu_count()} cores, {model}; has {', '.join(features) or 'no known vector instructions'}"
    yield f"- {platform.platform()}, Python {platform.python_version()}; {', '.join(versions)}"
    yield f"- {time.strftime('%Y-%m-%d %H:%M')}, load average {load_average}"
    yield "- one thread, and one of BLAS, unless said; medians; a peer that is scaled up says from how many"


def memory(wanted: list[tuple[str, int]]) -> Iterator[str]:
    """Table of peak extra memory, each case in a fresh process that only loads its data."""
    yield f"## Peak extra memory, goal {MEMORY_MB} MB"
    yield ""
    yield "| workload | R | MB | of which replicates, returned | MB beyond these | |"
    yield "|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for name, number in wanted:
            path = Path(folder) / f"{name}.npy"
            found = None
            if path.exists() or run_child("save", name, str(path)) is not None:
                found = run_child("memory", name, str(number), str(path))
            if found is None:
                yield f"| {name} | {number:,} | failed | | | |"
                continue
            peak, kept = found["peak_mb"], found["replicates_mb"]
            within = (
                "met" if peak <= MEMORY_MB else "met beyond these" if peak - kept <= MEMORY_MB else MISSED
            )
            yield f"| {name} | {number:,} | {peak:.0f} | {kept:.0f} | {peak - kept:.0f} | {within} |"


def measure_memory(name: str, n_resamples: int, path: Path) -> dict[str, float]:
    """Growth of the largest resident size over that with the data loaded and the modules warm."""
    import numpy as np

    data = np.load(path)
    call = BUILDERS[name](load(), name, data).calls[0]
    call.run(data[:32], 16, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = call.run(data, n_resamples, 1)
    unit = 1 if sys.platform == "darwin" else 1024
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    return {"peak_mb": grown / 1e6, "replicates_mb": result.replicates.nbytes / 1e6}


if __name__ == "__main__":
    sys.exit(main())
