"""Mixed models by the Laplace approximation, beside lme4 where R has it.

    python benches/mixed_speed.py [--rounds 3] [--no-peers]

Answers are drawn with effects of scenarios, models, and in (c) of their pairs:

- (b) 1,000 scenarios x 12 models x 3 voices, 36,000 binary rows, crossed scenario + model;
- (c) the same with scenario:model, 12,000 effects more;
- 1,000,000 rows of (b), about 28 repetitions a cell, collapsed to counts by `numpy` before the fit, which is
  part of the time.

Times are CPU seconds of the process, the least of the rounds, with the time that passed beside them: on a
machine that others use, only the first can be compared. `glmer` is run once, with its defaults, by `Rscript`,
and counts its own CPU seconds. The ratio is what the documentation promises to be at least 50 for (b).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from triagestats.models.mixed.laplace import LaplaceFit, fit_laplace
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart

SHAPE = (1_000, 12, 3)
MANY_ROWS = 1_000_000
PROMISED = 50
GLMER = """
suppressMessages(library(lme4))
d <- read.csv(commandArgs(TRUE)[1], colClasses = c("factor", "factor", "factor", "integer"))
f <- if (commandArgs(TRUE)[2] == "c") y ~ v + (1 | s) + (1 | m) + (1 | s:m) else y ~ v + (1 | s) + (1 | m)
t <- system.time(g <- glmer(f, d, family = binomial))
cat(t[["user.self"]] + t[["sys.self"]], sprintf("%.6f", as.numeric(logLik(g))))
"""


def rows(*, paired: bool, n: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scenario, model and voice of each row, and the answers."""
    rng = np.random.default_rng(1)
    scenario, model, voice = (axis.ravel() for axis in np.indices(SHAPE))
    eta = 0.6 + rng.normal(0, 1.2, SHAPE[0])[scenario] + rng.normal(0, 0.5, SHAPE[1])[model]
    eta += np.array([0.0, 0.15, -0.1])[voice]
    if paired:
        eta += rng.normal(0, 0.75, SHAPE[:2])[scenario, model]
    which = np.arange(eta.size) if n is None else np.resize(np.arange(eta.size), n)
    y = rng.random(which.size) < 1 / (1 + np.exp(-eta[which]))
    return scenario[which], model[which], voice[which], y.astype(float)


def part(name: str, codes: np.ndarray, n_levels: int) -> RandomPart:
    """Return intercepts of the levels."""
    levels = tuple(map(str, range(n_levels)))
    return RandomPart(
        name, (name,), levels, codes.astype(np.int64), np.ones((codes.size, 1)), ("(Intercept)",)
    )


def matrix(
    scenario: np.ndarray, model: np.ndarray, voice: np.ndarray, y: np.ndarray, *, paired: bool
) -> MixedMatrix:
    """Return the cells of the rows."""
    n_scenarios, n_models, n_voices = SHAPE
    cell = (scenario * n_models + model) * n_voices + voice
    counts = np.bincount(cell, minlength=n_scenarios * n_models * n_voices).astype(float)
    successes = np.bincount(cell, y, minlength=counts.size)
    pair, voice = np.divmod(np.arange(counts.size), n_voices)
    random = [part("s", pair // n_models, n_scenarios), part("m", pair % n_models, n_models)]
    if paired:
        random.append(part("s:m", pair, n_scenarios * n_models))
    x = np.column_stack([np.ones(counts.size), voice == 1, voice == 2]).astype(float)
    return MixedMatrix("binomial", successes, counts, x, ("1", "v1", "v2"), tuple(random), (), len(y))


def timed(call: Callable[[], LaplaceFit], rounds: int) -> tuple[LaplaceFit, float, float]:
    """Return the fit, and the least CPU seconds with the seconds that passed."""
    times = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        fit = call()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return fit, *min(times)


def glmer(data: tuple[np.ndarray, ...], kind: str) -> tuple[float, float]:
    """Return CPU seconds and log-likelihood of `glmer`."""
    with tempfile.TemporaryDirectory() as folder:
        path, script = Path(folder) / "rows.csv", Path(folder) / "glmer.R"
        np.savetxt(path, np.column_stack(data), fmt="%d", delimiter=",", header="s,m,v,y", comments="")
        script.write_text(GLMER)
        done = subprocess.run(
            [str(shutil.which("Rscript")), script, path, kind],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        )
    seconds, loglik = done.stdout.split()
    return float(seconds), float(loglik)


def line(name: str, cpu: float, wall: float, fit: LaplaceFit) -> str:
    """Return a line of the table."""
    return f"{name:<22}{cpu:>8.3f}{wall:>8.3f}{fit.evaluations:>13}{fit.loglik:>17.6f}"


def has_lme4() -> bool:
    """Return whether R is there, and has lme4."""
    found = shutil.which("Rscript")
    if found is None:
        return False
    return subprocess.run([found, "-e", "library(lme4)"], check=False, capture_output=True).returncode == 0


def main() -> int:
    """Time the fits; 1 where the promised ratio is not reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="leave out lme4")
    arguments = parser.parse_args()
    peers = not arguments.no_peers and has_lme4()
    short = False
    print(f"{'':<22}{'CPU s':>8}{'wall s':>8}{'evaluations':>13}{'log-likelihood':>17}")
    for kind in ("b", "c"):
        data = rows(paired=kind == "c")
        given = matrix(*data, paired=kind == "c")
        fit, cpu, wall = timed(lambda given=given: fit_laplace(given), arguments.rounds)  # type: ignore[misc]
        print(line(f"({kind}) {given.n_rows:,} rows", cpu, wall, fit))
        if peers:
            seconds, loglik = glmer(data, kind)
            ratio = seconds / cpu
            print(f"{'    glmer':<22}{seconds:>8.3f}{'':>21}{loglik:>17.6f}   {ratio:.0f} times as long")
            short |= kind == "b" and ratio < PROMISED
    data = rows(paired=False, n=MANY_ROWS)
    fit, cpu, wall = timed(lambda: fit_laplace(matrix(*data, paired=False)), arguments.rounds)
    print(line(f"{MANY_ROWS:,} rows", cpu, wall, fit))
    if not peers:
        print("lme4 was not asked for, or Rscript does not have it")
    return int(short)


if __name__ == "__main__":
    sys.exit(main())
