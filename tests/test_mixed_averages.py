"""Averages over the population, deviations and correlations, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats
from scipy.special import expit

from triagestats.models.mixed.averages import Parameters, averages, estimated_averages
from triagestats.models.mixed.deviations import deviations
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.profiles import profiles_of
from triagestats.models.mixed.read import MixedData, mixed_data

Array = NDArray[np.float64]
STEP = 1e-6
SLOPES = 1e-7
"""Central differences with this step are good to about 1e-9."""

RNG = np.random.default_rng(11)
ROWS: dict[str, list[Any]] = {
    "scenario": [f"s{i % 6}" for i in range(72)],
    "model": [f"m{i % 4}" for i in range(72)],
    "condition": ["xyz"[i // 24] for i in range(72)],
    "length": RNG.normal(size=72).round(2).tolist(),
    "correct": RNG.integers(0, 2, 72).tolist(),
    "grade": RNG.integers(0, 4, 72).tolist(),
}
FORMULAS = [
    ("correct ~ condition + length + (condition | scenario) + (1 | model)", "binomial"),
    ("grade ~ condition * length + (length | scenario) + (1 | model)", "ordinal"),
    ("length ~ condition + (1 | scenario)", "gaussian"),
]


def parameters_of(data: MixedData) -> Parameters:
    rng = np.random.default_rng(5)
    factors = tuple(np.tril(rng.normal(size=(part.width, part.width))) for part in data.matrix.random)
    n_thresholds = max(len(data.matrix.levels) - 1, 0)
    return Parameters(
        np.sort(rng.normal(size=n_thresholds)), rng.normal(size=data.matrix.x.shape[1]), factors
    )


def flat(parameters: Parameters) -> Array:
    entries = [factor[np.tril_indices(len(factor))] for factor in parameters.factors]
    return np.concatenate([parameters.thresholds, parameters.coefficients, *entries])


def unflat(values: Array, like: Parameters) -> Parameters:
    cuts = [len(like.thresholds), len(like.coefficients)]
    cuts += [len(factor) * (len(factor) + 1) // 2 for factor in like.factors]
    parts = np.split(values, np.cumsum(cuts)[:-1])
    factors = []
    for entries, factor in zip(parts[2:], like.factors, strict=True):
        made = np.zeros_like(factor)
        made[np.tril_indices(len(factor))] = entries
        factors.append(made)
    return Parameters(parts[0], parts[1], tuple(factors))


@pytest.mark.parametrize(("formula", "family"), FORMULAS)
def test_gradients_are_slopes(formula: str, family: Any) -> None:
    data = mixed_data(formula, ROWS, family=family)
    parameters, profiles = parameters_of(data), profiles_of(data)
    found = averages(data.matrix, profiles, parameters)
    values = flat(parameters)
    for place in range(len(values)):
        ends = []
        for sign in (1, -1):
            moved = values.copy()
            moved[place] += sign * STEP
            ends.append(averages(data.matrix, profiles, unflat(moved, parameters)))
        for average, high, low in zip(found, *ends, strict=True):
            slope = (high.estimate - low.estimate) / (2 * STEP)
            assert average.gradient[place] == pytest.approx(slope, rel=SLOPES, abs=SLOPES)


def test_a_probability_is_the_integral() -> None:
    """Against adaptive quadrature, cell by cell."""
    data = mixed_data(FORMULAS[0][0], ROWS, family="binomial")
    parameters = parameters_of(data)
    found = averages(data.matrix, profiles_of(data), parameters)[0].estimate
    total = 0.0
    for place, count in enumerate(data.matrix.counts):
        variance = 0.0
        for part, factor in zip(data.matrix.random, parameters.factors, strict=True):
            variance += float(part.z[place] @ factor @ factor.T @ part.z[place])
        centre, sd = float(data.matrix.x[place] @ parameters.coefficients), variance**0.5
        chance, _ = integrate.quad(lambda u, c=centre, s=sd: expit(c + s * u) * stats.norm.pdf(u), -12, 12)
        total += count * chance
    assert found == pytest.approx(total / data.matrix.counts.sum(), abs=1e-8)


def test_levels_add_up_and_gold_is_counted() -> None:
    data = mixed_data(FORMULAS[1][0], ROWS, family="ordinal")
    found = averages(data.matrix, profiles_of(data), parameters_of(data))
    chances = [a.estimate for a in found if a.term == "condition" and a.label == "y"]
    assert len(chances) == 4
    assert sum(chances) == pytest.approx(1, abs=1e-14)


def test_a_slope_is_the_change_for_one_unit_nearby() -> None:
    data = mixed_data("correct ~ length + (1 | scenario)", ROWS, family="binomial")
    parameters = Parameters(np.empty(0), np.array([0.3, -0.8]), (np.array([[0.0]]),))
    slope = next(a for a in averages(data.matrix, profiles_of(data), parameters) if a.label == "slope")
    chance = expit(data.matrix.x @ parameters.coefficients)
    shares = data.matrix.counts / data.matrix.counts.sum()
    assert slope.estimate == pytest.approx(float(shares @ (chance * (1 - chance) * -0.8)), rel=1e-5)


def test_estimated_averages_take_each_cell_at_its_own_effects() -> None:
    data = mixed_data("correct ~ condition + (1 | scenario)", ROWS, family="binomial")
    parameters = Parameters(np.empty(0), np.array([0.2, 0.5, -0.4]), (np.array([[1.0]]),))
    modes = np.linspace(-1, 1, 6)[:, None]
    cells = profiles_of(data, collapse=False)
    found = estimated_averages(data.matrix, cells, parameters, (modes,))
    at_y = next(a for a in found if a.label == "y").estimate
    assert at_y == pytest.approx(float(expit(0.2 + 0.5 + modes).mean()), abs=1e-12)


def test_deviations_and_correlations() -> None:
    rng = np.random.default_rng(0)

    def part(q: int) -> RandomPart:
        ones = np.ones((3, q))
        return RandomPart(f"g{q}", (f"g{q}",), ("a", "b", "c"), np.arange(3), ones, tuple("xyz"[:q]))

    matrix = MixedMatrix(
        "binomial", np.zeros(3), np.ones(3), np.ones((3, 1)), ("i",), tuple(map(part, (1, 3, 2))), (), 3
    )
    like = Parameters(np.empty(0), np.empty(0), tuple(np.tril(rng.normal(size=(q, q))) for q in (1, 3, 2)))
    found = list(deviations(matrix, like.factors))
    kinds = ["standard deviation"] * 4 + ["correlation"] * 3 + ["standard deviation"] * 2 + ["correlation"]
    assert [each.kind for each in found] == kinds
    covariance = like.factors[1] @ like.factors[1].T
    sds = np.sqrt(np.diag(covariance))
    assert [each.estimate for each in found[1:4]] == pytest.approx(sds.tolist(), rel=1e-14)
    assert found[5].term == "x, z | g3"
    assert found[5].estimate == pytest.approx(covariance[0, 2] / (sds[0] * sds[2]), rel=1e-14)
    values = flat(like)
    for place in range(len(values)):
        ends = []
        for sign in (1, -1):
            moved = values.copy()
            moved[place] += sign * STEP
            ends.append(deviations(matrix, unflat(moved, like).factors))
        for each, high, low in zip(found, *ends, strict=True):
            assert each.gradient[place] == pytest.approx(
                (high.estimate - low.estimate) / (2 * STEP), abs=SLOPES
            )


def test_a_correlation_with_what_does_not_vary_is_unknown() -> None:
    part = RandomPart("g", ("g",), ("a", "b"), np.arange(2), np.ones((2, 2)), ("x", "y"))
    matrix = MixedMatrix("binomial", np.zeros(2), np.ones(2), np.ones((2, 1)), ("i",), (part,), (), 2)
    *sds, correlation = deviations(matrix, (np.array([[1.0, 0.0], [0.0, 0.0]]),))
    assert [each.estimate for each in sds] == [1.0, 0.0]
    assert np.isnan(correlation.estimate)
