"""Bayesian logistic mixed models by the native sampler: processor time, and how well the chains mix.

    python benches/mixed_bayes.py [small] [large] [interaction]

`small` is 60 scenarios x 6 models x 4 conditions, `large` 1,000 x 12 x 3 (36,000 rows), `interaction` that
with effects of scenario:model. All have 4 chains of 1,000 + 1,000 draws.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.native_sampler import sample_native
from triagestats.models.mixed.priors import Priors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WORKLOADS = {
    "small": ((60, 6, 4), 0.0),
    "large": ((1_000, 12, 3), 0.0),
    "interaction": ((1_000, 12, 3), 0.75),
}


def _part(name: str, codes: NDArray[np.int64]) -> RandomPart:
    levels = tuple(map(str, range(int(codes.max()) + 1)))
    return RandomPart(name, tuple(name.split(":")), levels, codes, np.ones((codes.size, 1)), ("(Intercept)",))


def study(shape: tuple[int, int, int], interaction: float) -> MixedMatrix:
    """Binary answers to scenarios by models under conditions."""
    rng = np.random.default_rng(1)
    n_scenarios, n_models, n_conditions = shape
    scenario, model, condition = (axis.ravel() for axis in np.indices(shape))
    pair = scenario * n_models + model
    eta = 0.5 + rng.normal(0, 1.0, n_scenarios)[scenario] + rng.normal(0, 0.7, n_models)[model]
    eta = eta + interaction * rng.standard_normal(n_scenarios * n_models)[pair]
    eta = eta + np.linspace(0, -0.4, n_conditions)[condition]
    y = (rng.random(eta.size) < 1 / (1 + np.exp(-eta))).astype(float)
    x = np.column_stack([np.ones(eta.size), *(condition == level for level in range(1, n_conditions))])
    parts = [_part("scenario", scenario), _part("model", model)]
    if interaction:
        parts.append(_part("scenario:model", pair))
    terms = ("Intercept", *(f"c{level}" for level in range(1, n_conditions)))
    return MixedMatrix("binomial", y, np.ones(eta.size), x, terms, tuple(parts), (), eta.size)


def mixing(draws: Draws) -> str:
    """Worst diagnostics over all coefficients, standard deviations and effects."""
    try:
        import arviz
    except ImportError:
        return "arviz is not installed"
    found = []
    for values in (
        draws.coefficients,
        *(f[..., 0] for f in draws.factors),
        *(e[..., 0] for e in draws.effects),
    ):
        data = arviz.convert_to_dataset({"x": values})
        found.append(
            (
                float(arviz.rhat(data)["x"].max()),
                float(arviz.ess(data, method="bulk")["x"].min()),
                float(arviz.ess(data, method="tail")["x"].min()),
            )
        )
    rhat, bulk, tail = zip(*found, strict=True)
    return f"R-hat {max(rhat):.4f}, bulk ESS {min(bulk):.0f}, tail ESS {min(tail):.0f}"


def main() -> None:
    """Run the workloads that are named, or the two that take seconds."""
    for name in sys.argv[1:] or ["small", "large"]:
        shape, interaction = WORKLOADS[name]
        matrix = study(shape, interaction)
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        draws = sample_native(matrix, Priors(), seed=1)
        after = resource.getrusage(resource.RUSAGE_SELF)
        wall = time.perf_counter() - wall
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        diverging = int(draws.statistics["diverging"].sum())
        print(
            f"{name:12s} {cpu:6.1f} CPU s, {wall:6.1f} s, {diverging} divergences; {mixing(draws)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
