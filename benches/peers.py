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
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

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
    ("W1b", 1_000_000),
    ("W2", 10_000),
    ("W3", 10_000),
    ("W4", 10_000),
    ("W4c", 10_000),
    ("W5", 10_000),
    ("W5c", 10_000),
)
ERRORS = 5.0
"""Standard errors that two estimates of a quantile may lie apart: one in 1.7 million by chance."""
DENSITY = 0.05844507
"""Of the standard normal at its quantile of 0.975."""
SLOW_S = 30.0
"""A peer that takes longer is run once."""
SHORT_S = 0.05
"""Shorter calls are repeated for so long, and the median is taken."""
MISSED = "**missed**"
REASONS = {"rliable_stratified": "rliable 1.2.0 needs arch < 8, and fails with it under pandas 3"}
LATER = """W7 (wild cluster bootstrap) and W8 (exact tests by the hundred) are later pieces of work and were
not run; of their peers, wildboottest needs numpy < 2."""


@dataclass(frozen=True)
class Call:
    """A public call of triagestats, quantiles included.

    Attributes
    ----------
    run
        From data, replicates and threads to the result.
    check
        From the result of `run` on one thread to what is wrong with it; empty where it agrees.
    """

    name: str
    run: Callable[[NDArray[Any], int, int], Any]
    check: Callable[[Any], str]


@dataclass(frozen=True)
class Workload:
    """One workload: its data, our calls, and the peers with their goals.

    Attributes
    ----------
    calls
        The first one is what peers are compared with.
    peers
        Name, function from (replicates, seed), most replicates it runs, and whether it always runs all.
    goals
        How many times faster than a peer to be.
    """

    what: str
    n_resamples: int
    data: NDArray[Any]
    calls: tuple[Call, ...]
    peers: tuple[tuple[str, Callable[[int, int], Any], int, bool], ...]
    goals: Mapping[str, float]


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
    lines += ["", LATER]
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
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--child", *arguments]
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


def percentile_check(
    expected: Callable[[], Ends], step: float, n_resamples: int, point: Callable[[], Any] | None = None
) -> Callable[[Any], str]:
    """A check of estimates and percentile ends against a peer's, within Monte Carlo error.

    `step` is the distance of neighbouring values of a replicate, `n_resamples` that of the peer.
    """
    import numpy as np

    def check(fit: Any) -> str:
        if point is not None and not np.allclose(fit.estimate, point(), rtol=0, atol=1e-12):
            return f"estimates {fit.estimate} are not {point()}"
        spread = fit.replicates.std(axis=0) * np.sqrt(0.025 * 0.975) / DENSITY
        error = spread * np.sqrt(1 / n_resamples + 1 / len(fit.replicates))
        for ours, theirs in zip((fit.conf_low, fit.conf_high), expected(), strict=True):
            apart = np.abs(ours - theirs) / (ERRORS * error + step)
            if not (apart <= 1).all():
                place = int(np.argmax(apart))
                return f"an end of estimate {place} is {ours[place]:.6g}, the peer's {theirs[place]:.6g}"
        return ""

    return check


def peers_of(
    shared: ModuleType, name: str, only: tuple[str, ...] = ()
) -> tuple[tuple[str, Callable[[int, int], Any], int, bool], ...]:
    """The peers of a workload, all or those named, as functions of replicates and seed."""
    found = []
    for peer, (run, most, _, full) in shared.PEERS[name].items():
        if not only or peer in only:
            limit = most or shared.B_FULL[name]
            found.append((peer, lambda number, seed, run=run: run(name, number, seed), limit, full))
    return tuple(found)


def reader(statistic: Callable[[Any], Any] | None, **options: Any) -> Callable[[NDArray[Any], int, int], Any]:
    """`ts.bootstrap` of an array, with its percentile ends."""
    import triagestats as ts

    def run(data: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        return read(
            ts.bootstrap(
                data,
                statistic,
                interval="percentile",
                n_resamples=n_resamples,
                n_threads=n_threads,
                **options,
            )
        )

    return run


def read(fit: Any) -> Any:
    """Read the ends of a fit."""
    _ = fit.conf_low, fit.conf_high
    return fit


def build_w1(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """12 gaps and 12 gaps to the worse voice of 12 models and 3 voices."""
    number = shared.B_FULL[name]
    check = percentile_check(
        lambda: shared.PEERS[name]["numpy_counts_gemm"][0](name, number, 1),
        1 / 2000,
        number,
        lambda: shared.w1_stats(shared.cells(name)[0].mean(axis=0)),
    )
    return Workload(
        what="1,000 scenarios x 12 models x 3 voices, binary, 24 statistics",
        n_resamples=number,
        data=shared.data(name).reshape(1000, 36) if data is None else data,
        calls=(Call("ts.bootstrap(int8, f)", reader(shared.w1_stats, smooth=False), check),),
        peers=peers_of(shared, name),
        goals={
            "numpy_counts_gemm": 3.5,
            "numpy_multinomial_gemm": 3.5,
            "scipy_bootstrap_percentile": 25,
        },
    )


def build_w2(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """24 cell means of scenarios and repetitions."""
    number = shared.B_FULL[name]
    check = percentile_check(
        lambda: shared.PEERS[name]["numpy_collapsed"][0](name, number, 1),
        1 / 120,
        number,
        lambda: shared.data(name).reshape(60, 24, 2).mean(axis=(0, 2)),
    )
    return Workload(
        what="60 scenarios x 6 models x 4 formats x 2 repetitions, binary, two-level, 24 cell means",
        n_resamples=number,
        data=shared.data(name).reshape(60, 24, 2) if data is None else data,
        calls=(Call("ts.bootstrap(scheme='nested')", reader(None, scheme="nested"), check),),
        peers=peers_of(shared, name),
        goals={"numpy_collapsed": 8, "evalstats_nested": 100},
    )


def fast_w3(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Under, over, score and rank as `w3_stats` gives them, the ranks by whole columns of small integers."""
    import numpy as np

    under, over, squares = means[..., :20], means[..., 20:40], means[..., 40:]
    keys = np.ascontiguousarray(np.moveaxis(np.rint(squares * 250), -1, 0), dtype=np.int16)
    result = np.empty((*means.shape[:-1], 80))
    result[..., :20], result[..., 20:40], result[..., 40:60] = under, over, 100 / (1 + squares / 2)
    for place, key in enumerate(keys):
        twice = (keys < key).view(np.uint8) + (keys <= key)
        result[..., 60 + place] = twice.sum(axis=0, dtype=np.uint8)
    result[..., 60:] = (result[..., 60:] + 1) / 2
    return result


def build_w3(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """Two rates, score and rank of 20 models."""
    import numpy as np

    number, plain = shared.B_FULL[name], shared.w3_stats
    if data is None:
        graded = shared.data(name)
        data = np.concatenate([graded < 0, graded > 0, graded**2], axis=1, dtype=np.int8)
        means = data[np.random.default_rng(1).integers(0, 250, (50, 250))].mean(axis=1)
        if not np.array_equal(fast_w3(means), plain(means)):
            raise SystemExit("the fast ranks of W3 are not those of w3_stats")
    check = percentile_check(
        lambda: shared.PEERS[name]["numpy_counts_gemm"][0](name, number, 1),
        1.0,
        number,
        lambda: plain(shared.cells(name)[0].mean(axis=0)),
    )

    def expert(n_resamples: int, seed: int) -> Any:
        shared.w3_stats = fast_w3
        try:
            return shared.PEERS[name]["numpy_counts_gemm"][0](name, n_resamples, seed)
        finally:
            shared.w3_stats = plain

    return Workload(
        what="250 cases x 20 models, ordinal: two rates, score, rank",
        n_resamples=number,
        data=data,
        calls=(
            Call("ts.bootstrap(int8, f), fast ranks", reader(fast_w3, smooth=False), check),
            Call("ts.bootstrap(int8, f), ranks of w3_stats", reader(plain, smooth=False), check),
        ),
        peers=(*peers_of(shared, name), ("numpy_counts_gemm, fast ranks", expert, number, True)),
        goals={"numpy_counts_gemm": 3, "numpy_multinomial_gemm": 3, "scipy_bootstrap_percentile": 12},
    )


def build_w4(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """Difference of two arms, from rows to the interval, where cluster sums repeat."""
    import numpy as np

    import triagestats as ts

    number = shared.B_FULL[name]
    rows = shared.data(name) if data is None else data
    expected = percentile_check(
        lambda: tuple(np.atleast_1d(shared.PEERS[name]["numpy_collapsed"][0](name, number, 1))),
        1 / rows[:, 0].size,
        number,
        lambda: shared.w4_d(name).mean() / 5,
    )
    n_rows = rows.shape[2]
    of_differences = reader(lambda mean: mean / n_rows)
    of_sums = reader(lambda mean: (mean[..., 0] - mean[..., 1]) / n_rows)

    def subtracted(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        sums = rows.sum(axis=2)
        return of_differences(sums[:, 0] - sums[:, 1], n_resamples, n_threads)

    def summed(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        return of_sums(rows.sum(axis=2), n_resamples, n_threads)

    def both(*arms: NDArray[Any], **asked: Any) -> Any:
        return read(ts.paired_bootstrap(*arms, interval="percentile", **asked))

    def paired(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        sums = rows.sum(axis=2)
        return both(sums[:, 0], sums[:, 1], n_resamples=n_resamples, n_threads=n_threads)

    def clustered(rows: NDArray[Any], n_resamples: int, n_threads: int) -> Any:
        arms = (np.ascontiguousarray(rows[:, arm]).reshape(-1) for arm in (0, 1))
        return both(*arms, clusters=labels, n_resamples=n_resamples, n_threads=n_threads)

    def last(scale: float) -> Callable[[Any], str]:
        names = ("estimate", "conf_low", "conf_high")
        return lambda fit: expected(
            SimpleNamespace(
                replicates=fit.replicates[:, 2:] / scale,
                **{name: getattr(fit, name)[2:] / scale for name in names},
            )
        )

    labels = np.repeat(np.arange(len(rows)), n_rows)
    calls = [Call("rows summed, ts.bootstrap(differences, f)", subtracted, expected)]
    if name == "W4":
        calls += [
            Call("rows summed, ts.bootstrap(sums, f)", summed, expected),
            Call("rows summed, ts.paired_bootstrap(sums)", paired, last(n_rows)),
            Call("ts.paired_bootstrap(rows, clusters)", clustered, last(1)),
        ]
    return Workload(
        what=f"{len(rows):,} clusters x 2 arms x {n_rows} rows, binary; the pass over rows included",
        n_resamples=number,
        data=rows,
        calls=tuple(calls),
        peers=peers_of(shared, name, ("numpy_collapsed", "numpy_rows_loop", "polars_join")),
        goals={"numpy_collapsed": 1} if name == "W4" else {},
    )


def build_w4c(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """The same difference from cluster sums with a continuous noise, so that nothing repeats."""
    import numpy as np

    whole = name.removesuffix("c")
    number = shared.B_FULL[whole]
    if data is None:
        sums = shared.w4_sums(whole)
        data = (sums / 5 + np.random.default_rng(1).normal(0, 1e-3, len(sums)))[:, None]

    def expected() -> Ends:
        half = 1.959964 * data.std() / np.sqrt(len(data))
        return data.mean(axis=0) - half, data.mean(axis=0) + half

    loops = ("numpy_sums_loop", "numpy_poisson", "scipy_bootstrap_percentile_sums", "arch_iid_sums")
    return Workload(
        what=f"{len(data):,} cluster sums, continuous; pass over rows left out on both sides",
        n_resamples=number,
        data=data,
        calls=(Call("ts.bootstrap(sums)", reader(None), percentile_check(expected, 0.0, number)),),
        peers=peers_of(shared, whole, (*loops, "evalstats_means_1d")),
        goals={"numpy_sums_loop": 6} if whole == "W4" else {},
    )


def build_w6(shared: ModuleType, name: str, data: NDArray[Any] | None = None) -> Workload:
    """Sign-flip tests of 12 models."""
    import numpy as np
    import polars as pl

    import triagestats as ts
    from triagestats import _native

    voice_names = pl.col("voice").replace_strict({0: "A", 1: "B"}, return_dtype=pl.String)

    number = shared.B_FULL[name]

    def agrees(expected: Callable[[], NDArray[np.float64]]) -> Callable[[NDArray[np.float64]], str]:
        def check(p: NDArray[np.float64]) -> str:
            theirs = expected()
            error = np.sqrt(2 * theirs * (1 - theirs) / number)
            wrong = (np.abs(p - theirs) > ERRORS * error + 2 / number).any()
            return f"p {p}, the peer's {theirs}" if wrong else ""

        return check

    def flipped() -> NDArray[np.float64]:
        away = noisy[:, :, 0] - noisy[:, :, 1]
        signs = np.random.default_rng(2).integers(0, 2, (number, len(away)), dtype=np.int8) * 2 - 1
        return (np.abs(signs @ away) >= np.abs(away.sum(axis=0))).mean(axis=0)

    def kernel(cube: NDArray[Any], n_resamples: int, n_threads: int) -> NDArray[np.float64]:
        away = (cube[:, :, 0] - cube[:, :, 1]).astype(np.float64)
        null = _native.sign_flip_totals(away, n_resamples, 1, n_threads=n_threads)
        extreme = np.abs(null) >= np.abs(away.sum(axis=0)) - 1e-9
        return (extreme.sum(axis=0) + 1) / (n_resamples + 1)

    def tests(cube: NDArray[Any], n_resamples: int, n_threads: int) -> NDArray[np.float64]:
        asked = {"n_resamples": n_resamples, "n_threads": n_threads}
        models = range(cube.shape[1])
        return np.array([ts.permutation_test(cube[:, m, 0], cube[:, m, 1], **asked).p_value for m in models])

    def family(_: NDArray[Any], n_resamples: int, n_threads: int) -> NDArray[np.float64]:
        found = ts.permutation_tests(table, n_resamples=n_resamples, n_threads=n_threads).tidy()
        return found.filter(found["model"].is_not_null()).sort("model")["p_value"].to_numpy()

    cube = shared.data(name) if data is None else data
    noisy = cube + np.random.default_rng(1).normal(0, 0.1, cube.shape)
    scenario, model, voice = (place.reshape(-1) for place in np.indices((len(cube), cube.shape[1], 2)))
    columns = {"scenario": scenario, "model": model, "voice": voice, "score": cube[:, :, :2].reshape(-1)}
    text = {"model": pl.format("m{}", pl.col("model").cast(pl.String).str.zfill(2)), "voice": voice_names}
    table = ts.ResponseTable(pl.DataFrame(columns).with_columns(**text), condition="voice")
    expert = agrees(lambda: shared.PEERS[name]["numpy_signs_gemm"][0](name, number, 1))
    return Workload(
        what="sign-flip null, 12 models, 1,000 scenarios",
        n_resamples=number,
        data=cube,
        calls=(
            Call("12 x ts.permutation_test(a, b): exact, by convolution", tests, expert),
            Call(
                "12 x ts.permutation_test(a, b), continuous values: drawn",
                lambda _, *asked: tests(noisy, *asked),
                agrees(flipped),
            ),
            Call("ts.permutation_tests(table): exact, and max-T of a joint draw", family, expert),
            Call("kernel sign_flip_totals alone, joint, and p by numpy", kernel, expert),
        ),
        peers=peers_of(shared, name),
        goals={"numpy_signs_gemm": 10, "scipy_permutation_test": 1000},
    )


BUILDERS: dict[str, Callable[..., Workload]] = {
    "W1a": build_w1,
    "W1b": build_w1,
    "W2": build_w2,
    "W3": build_w3,
    "W4": build_w4,
    "W4c": build_w4c,
    "W5": build_w4,
    "W5c": build_w4c,
    "W6": build_w6,
}

if __name__ == "__main__":
    sys.exit(main())
