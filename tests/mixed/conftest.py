"""Small models and draws whose answers are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import Family, MixedMatrix, RandomPart

Array = NDArray[np.float64]


def part(name: str, codes: NDArray[np.int64], z: Array | None = None) -> RandomPart:
    """A random part with levels `<name>0`, `<name>1`, ..."""
    columns = np.ones((len(codes), 1)) if z is None else z
    names = ("(Intercept)", *(f"slope{j}" for j in range(1, columns.shape[1])))
    levels = tuple(f"{name}{level}" for level in range(int(codes.max()) + 1))
    return RandomPart(name, tuple(name.split(":")), levels, codes, columns, names)


@pytest.fixture
def crossed() -> Callable[..., MixedMatrix]:
    """A maker of crossed scenarios, models and two conditions, with three rows a binomial cell."""

    def make(
        family: Family = "binomial",
        *,
        scenarios: int = 6,
        models: int = 3,
        slope: bool = False,
        seed: int = 1,
    ) -> MixedMatrix:
        rng = np.random.default_rng(seed)
        s, m, c = (a.ravel() for a in np.meshgrid(range(scenarios), range(models), range(2), indexing="ij"))
        n = len(s)
        x = np.column_stack([np.ones(n), c.astype(np.float64)])
        terms: tuple[str, ...] = ("(Intercept)", "condition[T.b]")
        levels: tuple[str, ...] = ()
        latent = 0.4 - 0.6 * c + rng.standard_normal(scenarios)[s] + 0.5 * rng.standard_normal(models)[m]
        counts = np.ones(n)
        if family == "binomial":
            counts = np.full(n, 3.0)
            y = rng.binomial(3, 1 / (1 + np.exp(-latent))).astype(np.float64)
        elif family == "gaussian":
            y = latent + rng.standard_normal(n)
        else:
            y = ((latent + rng.logistic(size=n))[:, None] > np.array([-1.0, 1.0])).sum(axis=1).astype(float)
            x, terms, levels = x[:, 1:], terms[1:], ("A", "B", "C")
        z = np.column_stack([np.ones(n), c.astype(np.float64)]) if slope else None
        parts = (part("scenario", s.astype(np.int64), z), part("model", m.astype(np.int64)))
        return MixedMatrix(family, y, counts, x, terms, parts, levels, int(counts.sum()))

    return make


@pytest.fixture
def independent() -> Callable[..., Draws]:
    """A maker of independent draws around plausible parameters of a matrix."""

    def make(matrix: MixedMatrix, *, chains: int = 4, draws: int = 250, seed: int = 3) -> Draws:
        rng = np.random.default_rng(seed)
        shape = (chains, draws)
        p, j = matrix.x.shape[1], len(matrix.levels)
        thresholds = np.zeros((*shape, 0))
        if j:
            thresholds = np.sort(
                np.linspace(-1, 1, j - 1) + 0.2 * rng.standard_normal((*shape, j - 1)), axis=2
            )
        factors, effects = [], []
        for found in matrix.random:
            q = found.width
            factor = np.tril(0.3 * rng.standard_normal((*shape, q, q)))
            factor[..., range(q), range(q)] = np.abs(0.8 + 0.1 * rng.standard_normal((*shape, q)))
            factors.append(factor)
            effects.append(rng.standard_normal((*shape, found.n_levels, q)) @ factor.swapaxes(2, 3))
        statistics = {
            "diverging": np.zeros(shape, dtype=bool),
            "energy": rng.standard_normal(shape),
            "tree_depth": np.full(shape, 4),
        }
        return Draws(
            0.3 * rng.standard_normal((*shape, p)) - 0.2,
            thresholds,
            tuple(factors),
            np.abs(1 + 0.1 * rng.standard_normal(shape)) if matrix.family == "gaussian" else None,
            tuple(effects),
            statistics,
            "native",
            1.5,
            250,
        )

    return make
