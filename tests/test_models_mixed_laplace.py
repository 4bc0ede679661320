"""Mixed models by Laplace: a dense twin, brute-force integrals, exact Gaussian likelihoods, edges."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import integrate, stats

from triagestats import _native
from triagestats.errors import ArgumentError, DesignError
from triagestats.models.mixed.laplace import LaplaceFit, fit_laplace
from triagestats.models.mixed.matrix import Family, MixedMatrix, RandomPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

VALUE = 1e-8  # of log-likelihoods, which the package promises to converge so far
FLAT = 1e-4  # of a derivative over its curvature: the differences that the twin takes are exact to 1e-5
CURVED = 2e-3  # relative, of second differences of a value
DIFFERENCES = 2e-5  # of correlations: the Hessian is by differences of gradients
INTEGRAL = 1e-8  # of log-likelihoods by numerical integration, whose own error is less
SAME = 1e-7  # relative, of estimates of one model written in two ways: both searches end within 1e-8
FINITE = 5.0  # seconds in which a model without a maximum has to end; it takes a few hundredths


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def part(name: str, codes: Any, z: Any = None) -> RandomPart:
    levels, found = np.unique(codes, return_inverse=True)
    columns = np.ones((len(found), 1)) if z is None else np.asarray(z, dtype=float)
    names = tuple(f"z{i}" for i in range(columns.shape[1]))
    return RandomPart(name, (name,), tuple(map(str, levels)), found.astype(np.int64), columns, names)


def cells(
    family: Family, y: Any, x: Any, random: Sequence[RandomPart], counts: Any = None, n_levels: int = 0
) -> MixedMatrix:
    y, x = np.asarray(y, dtype=float), np.asarray(x, dtype=float)
    counts = np.ones(len(y)) if counts is None else np.asarray(counts, dtype=float)
    terms = tuple(f"x{i}" for i in range(x.shape[1]))
    levels = tuple(map(str, range(n_levels)))
    return MixedMatrix(family, y, counts, x, terms, tuple(random), levels, int(counts.sum()))


def drawn(family: Family, kind: str, *, seed: int = 9) -> MixedMatrix:
    """Answers of 4 models to 15 scenarios under 3 conditions, some missing, with effects of a kind."""
    rng = np.random.default_rng(seed)
    s, m, c, _ = (axis.ravel() for axis in np.indices((15, 4, 3, 2)))
    kept = rng.random(s.size) < 0.6
    s, m, c = s[kept], m[kept], c[kept]
    dummies = np.column_stack([c == 1, c == 2]).astype(float)
    age = rng.normal(40, 12, s.size)
    z = np.column_stack([np.ones(s.size), dummies])
    effects = rng.normal(size=(15, 3)) @ np.array([[1.1, 0.4, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.6]])
    between = rng.normal(0, 0.7, 4)[m] + rng.normal(0, 0.9, (15, 4))[s, m] + rng.normal(0, 0.6, 5)[s // 3]
    eta = dummies @ [0.8, -0.5] + 0.02 * (age - 40) + (z * effects[s]).sum(1) + between
    random = {
        "one": [part("s", s)],
        "crossed": [part("s", s), part("m", m)],
        "interaction": [part("s", s), part("m", m), part("s:m", 10 * s + m)],
        "nested": [part("pair/s", s), part("pair", s // 3), part("m", m)],
        "slopes": [part("c|s", s, z), part("m", m)],
        "slope alone": [part("s", s), part("age|m", m, age[:, None] / 40)],
    }[kind]
    x = np.column_stack([np.ones(s.size), dummies, age])
    if family == "binomial":
        return cells(family, rng.random(s.size) < logistic(eta), x, random)
    if family == "gaussian":
        return cells(family, 300 + eta + rng.normal(0, 0.8, s.size), x, random)
    level = np.digitize(eta + rng.logistic(size=s.size), [-1.0, 0.3, 1.5])
    return cells(family, level, x[:, 1:], random, n_levels=4)


def design(matrix: MixedMatrix, factors: Sequence[Array]) -> Array:
    """Return Z L, so that the predictor is x'b + (Z L) v."""
    columns = []
    for random, factor in zip(matrix.random, factors, strict=True):
        full = np.zeros((len(matrix.y), random.n_levels, random.width))
        full[np.arange(len(matrix.y)), random.codes] = random.z @ factor
        columns.append(full.reshape(len(matrix.y), -1))
    return np.column_stack(columns)


def log_cells(matrix: MixedMatrix, eta: Array, thresholds: Array) -> tuple[Array, Array, Array]:
    """Log-likelihood of each cell, its derivative, and minus the second one."""
    if matrix.family == "binomial":
        p = logistic(eta)
        value = matrix.y * np.log(p) + (matrix.counts - matrix.y) * np.log1p(-p)
        return value, matrix.y - matrix.counts * p, matrix.counts * p * (1 - p)
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    level = matrix.y.astype(int)
    upper, lower = logistic(ends[level + 1] - eta), logistic(ends[level] - eta)
    weight = upper * (1 - upper) + lower * (1 - lower)
    return matrix.counts * np.log(upper - lower), matrix.counts * (upper + lower - 1), matrix.counts * weight


def unpacked(matrix: MixedMatrix, parameters: Array) -> tuple[Array, Array, list[Array]]:
    """Thresholds, coefficients and factors of the order of `vcov`."""
    n_thresholds = max(0, len(matrix.levels) - 1)
    fixed = n_thresholds + matrix.x.shape[1]
    rest, factors = list(parameters[fixed:]), []
    for random in matrix.random:
        factor = np.zeros((random.width, random.width))
        for r in range(random.width):
            for c in range(r + 1):
                factor[r, c] = rest.pop(0)
        factors.append(factor)
    return parameters[:n_thresholds], parameters[n_thresholds:fixed], factors


def packed(fit: LaplaceFit) -> Array:
    lower = [factor[np.tril_indices(len(factor))] for factor in fit.factors]
    sigma = [] if fit.sigma is None else [[fit.sigma]]
    return np.concatenate([fit.thresholds, fit.coefficients, *lower, *sigma])


def twin(matrix: MixedMatrix, parameters: Array) -> tuple[float, Array, Array]:
    """Laplace log-likelihood with dense matrices; the modes of v and their curvature."""
    thresholds, coefficients, factors = unpacked(matrix, parameters)
    a, offset = design(matrix, factors), matrix.x @ coefficients
    v = np.zeros(a.shape[1])
    for _ in range(100):
        value, score, weight = log_cells(matrix, offset + a @ v, thresholds)
        h = np.eye(len(v)) + a.T @ (weight[:, None] * a)
        step = np.linalg.solve(h, a.T @ score - v)
        v = v + step
        if abs(step).max() < 1e-13:
            break
    value, _, weight = log_cells(matrix, offset + a @ v, thresholds)
    h = np.eye(len(v)) + a.T @ (weight[:, None] * a)
    return float(value.sum() - v @ v / 2 - np.linalg.slogdet(h)[1] / 2), v, h


def exact(matrix: MixedMatrix, parameters: Array, *, reml: bool) -> float:
    """Gaussian log-likelihood of all coefficients, factors and the residual deviation."""
    _, coefficients, factors = unpacked(matrix, parameters[:-1])
    a = design(matrix, factors)
    cov = a @ a.T + parameters[-1] ** 2 * np.eye(len(a))
    root = np.linalg.cholesky(cov)
    white = np.linalg.solve(root, matrix.y - matrix.x @ coefficients)
    value = -float(len(white) * np.log(2 * np.pi) + white @ white) / 2 - float(np.log(np.diag(root)).sum())
    if reml:
        information = matrix.x.T @ np.linalg.solve(cov, matrix.x)
        value += len(coefficients) / 2 * np.log(2 * np.pi) - np.linalg.slogdet(information)[1] / 2
    return value


def check_peak(function: Callable[[Array], float], at: Array, vcov: Array) -> None:
    """Check slope 0 and curvature -1 along directions that `vcov` makes independent with unit variance."""
    root = np.linalg.cholesky(vcov)
    directions = np.random.default_rng(7).normal(size=(4, len(at)))
    step, middle = 2e-2, function(at)
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        values = [function(at + k * step * (root @ direction)) for k in (-2, -1, 1, 2)]
        slope = np.dot(values, [1, -8, 8, -1]) / (12 * step)
        curvature = (np.dot(values, [-1, 16, 16, -1]) - 30 * middle) / (12 * step**2)
        assert slope == pytest.approx(0, abs=FLAT)
        assert curvature == pytest.approx(-1, abs=CURVED)


def same_covariance(left: Array, right: Array) -> None:
    errors = np.sqrt(np.diag(right))
    np.testing.assert_allclose(
        left / np.outer(errors, errors), right / np.outer(errors, errors), atol=DIFFERENCES
    )


def close(left: LaplaceFit, right: LaplaceFit) -> None:
    assert left.loglik == pytest.approx(right.loglik, abs=VALUE)
    np.testing.assert_allclose(packed(left), packed(right), rtol=SAME, atol=SAME)
    same_covariance(left.vcov, right.vcov)


KINDS = ["one", "crossed", "interaction", "nested", "slopes", "slope alone"]


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_twin_has_its_maximum_and_its_curvature_there(family: Family, kind: str) -> None:
    matrix = drawn(family, kind)
    fit = fit_laplace(matrix)
    assert fit.converged
    assert fit.n_parameters == len(packed(fit)) == len(fit.vcov)
    value, v, h = twin(matrix, packed(fit))
    assert fit.loglik == pytest.approx(value, abs=VALUE)
    # The effects and their conditional covariances.
    inverse, at = np.linalg.inv(h), 0
    for random, factor, mode, variance in zip(
        matrix.random, fit.factors, fit.modes, fit.mode_variances, strict=True
    ):
        assert (np.diag(factor) >= 0).all()
        for level in range(random.n_levels):
            own = slice(at, at + random.width)
            np.testing.assert_allclose(mode[level], factor @ v[own], atol=SAME)
            np.testing.assert_allclose(variance[level], factor @ inverse[own, own] @ factor.T, atol=SAME)
            at += random.width
    if any(fit.singular):
        return
    check_peak(lambda p: twin(matrix, p)[0], packed(fit), fit.vcov)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reml", [True, False])
def test_a_gaussian_likelihood_is_exact(kind: str, reml: bool) -> None:
    matrix = drawn("gaussian", kind)
    fit = fit_laplace(matrix, reml=reml)
    assert fit.converged
    assert fit.reml == reml
    parameters, p = packed(fit), matrix.x.shape[1]
    assert fit.loglik == pytest.approx(exact(matrix, parameters, reml=reml), abs=1e-7)
    a = design(matrix, fit.factors)
    cov = a @ a.T + parameters[-1] ** 2 * np.eye(len(a))
    fixed = np.linalg.inv(matrix.x.T @ np.linalg.solve(cov, matrix.x))
    np.testing.assert_allclose(fit.vcov[:p, :p], fixed, rtol=1e-6)
    best = fixed @ matrix.x.T @ np.linalg.solve(cov, matrix.y)
    np.testing.assert_allclose(fit.coefficients, best, rtol=1e-8)
    effects = a.T @ np.linalg.solve(cov, matrix.y - matrix.x @ best)
    at = 0
    for factor, mode in zip(fit.factors, fit.modes, strict=True):
        own = effects[at : at + mode.size].reshape(mode.shape)
        np.testing.assert_allclose(mode, own @ factor.T, atol=1e-6)
        at += mode.size
    if any(fit.singular):
        return

    def profiled(variances: Array) -> float:
        factors = unpacked(matrix, np.concatenate([np.zeros(p), variances[:-1]]))[2]
        a = design(matrix, factors)
        cov = a @ a.T + variances[-1] ** 2 * np.eye(len(a))
        solved = np.linalg.solve(cov, matrix.x)
        best = np.linalg.solve(matrix.x.T @ solved, solved.T @ matrix.y)
        return exact(matrix, np.concatenate([best, variances]), reml=reml)

    check_peak(profiled, parameters[p:], fit.vcov[p:, p:])


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
@pytest.mark.parametrize("sloped", [False, True])
def test_quadrature_is_the_integral(family: Family, sloped: bool) -> None:
    matrix = drawn(family, "one")
    if sloped:
        matrix = replace(matrix, random=(part("age|s", matrix.random[0].codes, matrix.x[:, -1:] / 40),))
    fit = fit_laplace(matrix, nodes=40)
    assert fit.converged

    def likelihood(parameters: Array) -> float:
        thresholds, coefficients, factors = unpacked(matrix, parameters)
        offset, random = matrix.x @ coefficients, matrix.random[0]
        total = 0.0
        for level in range(random.n_levels):
            own = random.codes == level
            few = replace(matrix, y=matrix.y[own], counts=matrix.counts[own])

            def density(v: float, few: MixedMatrix = few, own: Any = own) -> float:
                eta = offset[own] + random.z[own, 0] * factors[0][0, 0] * v
                return float(np.exp(log_cells(few, eta, thresholds)[0].sum()) * stats.norm.pdf(v))

            total += np.log(
                integrate.quad(density, -9, 9, epsabs=0, epsrel=1e-11, limit=200, points=[-2, 0, 2])[0]
            )
        return total

    parameters = packed(fit)
    assert fit.loglik == pytest.approx(likelihood(parameters), abs=INTEGRAL)
    direction = np.linalg.cholesky(fit.vcov) @ np.full(len(parameters), 0.05 / len(parameters) ** 0.5)
    rise = likelihood(parameters + direction) - likelihood(parameters - direction)
    assert rise / 0.1 == pytest.approx(0, abs=10 * FLAT)
    assert abs(fit.loglik - fit_laplace(matrix).loglik) > 1e-3


@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_the_gradient_of_few_nodes_is_that_of_their_sum(nodes: int) -> None:
    matrix = drawn("ordinal", "one")
    fit = fit_laplace(matrix, nodes=nodes)
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)

    def value(parameters: Array) -> float:
        thresholds, coefficients, factors = unpacked(matrix, parameters)
        _, v, h = twin(matrix, parameters)
        offset, deviation = matrix.x @ coefficients, factors[0][0, 0]
        logs = []
        for place in places:
            at = v + place / np.sqrt(np.diag(h))
            of_cells = log_cells(matrix, offset + deviation * at[matrix.random[0].codes], thresholds)[0]
            logs.append(np.bincount(matrix.random[0].codes, of_cells) - at**2 / 2 + place**2 / 2)
        total = np.log(np.exp(logs).T @ (weights / weights.sum()))
        return float((total - np.log(np.diag(h)) / 2).sum())

    assert fit.loglik == pytest.approx(value(packed(fit)), abs=VALUE)
    check_peak(value, packed(fit), fit.vcov)


@pytest.mark.parametrize("family", ["binomial", "ordinal"])
def test_collapsing_rows_changes_nothing(family: Family) -> None:
    rng = np.random.default_rng(8)
    s, m, c = (axis.ravel() for axis in np.indices((12, 4, 2)))
    eta = rng.normal(0, 1, 12)[s] + rng.normal(0, 0.7, 4)[m] + 0.5 * c
    x = np.column_stack([np.ones(s.size), c]).astype(float)[:, int(family == "ordinal") :]
    if family == "binomial":
        trials = rng.integers(1, 6, s.size)
        y = rng.binomial(trials, logistic(eta))
        which = np.repeat(np.arange(s.size), trials)
        rows = np.concatenate([np.arange(n) < k for n, k in zip(trials, y, strict=True)])
        small, n_levels = cells(family, y, x, [part("s", s), part("m", m)], trials), 0
    else:
        n_levels, which = 3, np.repeat(np.arange(s.size), 4)
        rows = np.digitize(eta[which] + rng.logistic(size=which.size), [-0.5, 1.0])
        found, counts = np.unique(np.column_stack([which, rows]), axis=0, return_counts=True)
        w, y = found.T
        small = cells(family, y, x[w], [part("s", s[w]), part("m", m[w])], counts, n_levels)
    large = cells(family, rows, x[which], [part("s", s[which]), part("m", m[which])], n_levels=n_levels)
    assert len(small.y) < len(large.y)
    close(fit_laplace(small), fit_laplace(large))


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
def test_order_and_coding_change_nothing(family: Family) -> None:
    matrix = drawn(family, "slopes")
    fit = fit_laplace(matrix)
    order = np.random.default_rng(2).permutation(len(matrix.y))
    first, second = (
        replace(random, codes=random.codes[order], z=random.z[order]) for random in matrix.random
    )
    moved = replace(
        matrix, y=matrix.y[order], counts=matrix.counts[order], x=matrix.x[order], random=(first, second)
    )
    close(fit, fit_laplace(moved))
    # Regressors that are combinations of the old ones, on scales far apart.
    mix = np.diag([1e3, 1e-3, 1.0, 10.0][: matrix.x.shape[1]])
    mix[0, -1] = 5.0
    mixed = fit_laplace(replace(matrix, x=matrix.x @ mix))
    assert mixed.loglik == pytest.approx(
        fit.loglik - (np.log(abs(np.linalg.det(mix))) if family == "gaussian" else 0), abs=1e-7
    )
    np.testing.assert_allclose(mix @ mixed.coefficients, fit.coefficients, rtol=1e-6)
    np.testing.assert_allclose(mixed.thresholds, fit.thresholds, rtol=1e-6)
    j = len(fit.thresholds)
    own = slice(j, j + len(mix))
    np.testing.assert_allclose(mix @ mixed.vcov[own, own] @ mix.T, fit.vcov[own, own], rtol=1e-5, atol=1e-12)
    # Slopes in other units.
    scale = np.array([1.0, 100.0, 0.01])
    scaled = replace(
        matrix, random=(replace(matrix.random[0], z=matrix.random[0].z / scale), matrix.random[1])
    )
    np.testing.assert_allclose(
        fit_laplace(scaled).covariances[0] / np.outer(scale, scale), fit.covariances[0], rtol=1e-5, atol=1e-7
    )


def test_the_same_call_gives_the_same_bits() -> None:
    first, second = (fit_laplace(drawn("ordinal", "slopes")) for _ in range(2))
    np.testing.assert_array_equal(packed(first), packed(second))
    np.testing.assert_array_equal(first.vcov, second.vcov)


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
def test_a_variance_of_zero_is_exactly_zero_and_the_rest_is_the_model_without_it(family: Family) -> None:
    matrix = drawn(family, "one")
    without = fit_laplace(matrix)
    # Groups that differ less than they would by chance: each has residuals of every size.
    predicted = matrix.x @ without.coefficients + without.modes[0][matrix.random[0].codes, 0]
    residual = matrix.y - (logistic(predicted) if family == "binomial" else predicted)
    even = np.empty(len(residual), dtype=np.int64)
    even[np.argsort(residual)] = np.resize([*range(7), *range(6, -1, -1)], len(residual))
    fit = fit_laplace(replace(matrix, random=(matrix.random[0], part("even", even))))
    assert fit.converged
    assert fit.singular == (False, True)
    assert fit.factors[1][0, 0] == 0
    assert (fit.modes[1] == 0).all()
    assert (fit.mode_variances[1] == 0).all()
    assert fit.loglik == pytest.approx(without.loglik, abs=VALUE)
    np.testing.assert_allclose(fit.coefficients, without.coefficients, rtol=1e-6)
    at = len(fit.thresholds) + len(fit.coefficients) + 1
    assert np.isnan(fit.vcov[at]).all()
    assert np.isnan(fit.vcov[:, at]).all()
    same_covariance(np.delete(np.delete(fit.vcov, at, 0), at, 1), without.vcov)


def test_a_singular_covariance_of_slopes_is_found() -> None:
    rng = np.random.default_rng(3)
    s, c = (axis.ravel() for axis in np.indices((40, 12)))
    c = c % 2
    u = rng.normal(0, 1.2, 40)[s]
    y = rng.random(s.size) < logistic(0.3 + u * (1 + 0.5 * c))  # slope and intercept determine each other
    z = np.column_stack([np.ones(s.size), c])
    fit = fit_laplace(cells("binomial", y, z, [part("s", s, z)]))
    found = fit.covariances[0]
    if fit.singular[0]:
        assert abs(found[0, 1]) == pytest.approx(np.sqrt(found[0, 0] * found[1, 1]))
        assert np.isfinite(fit.vcov[:2, :2]).all()
        assert np.isnan(fit.vcov[2:]).all()
    assert fit.converged
    correlation = found[0, 1] / np.sqrt(found[0, 0] * found[1, 1])
    assert correlation > 0.9


def test_an_ordinal_outcome_of_two_levels_is_binomial() -> None:
    binomial = drawn("binomial", "crossed")
    ordinal = replace(
        binomial, family="ordinal", x=binomial.x[:, 1:], terms=binomial.terms[1:], levels=("0", "1")
    )
    logit, clm = fit_laplace(binomial), fit_laplace(ordinal)
    assert clm.loglik == pytest.approx(logit.loglik, abs=VALUE)
    # logit P(y <= 0) = threshold - x'b is minus the logit of a success.
    assert clm.thresholds[0] == pytest.approx(-logit.coefficients[0], rel=1e-6)
    np.testing.assert_allclose(clm.coefficients, logit.coefficients[1:], rtol=1e-6)
    np.testing.assert_allclose(np.diag(clm.vcov), np.diag(logit.vcov), rtol=1e-5)


def test_more_urgent_answers_have_larger_predictors() -> None:
    rng = np.random.default_rng(1)
    s = np.repeat(np.arange(40), 10)
    x = rng.normal(size=(400, 1))
    y = np.digitize(1.5 * x[:, 0] + rng.normal(0, 0.8, 40)[s] + rng.logistic(size=400), [-1, 0, 1])
    fit = fit_laplace(cells("ordinal", y, x, [part("s", s)], n_levels=4))
    assert fit.coefficients[0] == pytest.approx(1.5, abs=0.5)
    assert all(low < high for low, high in pairwise(fit.thresholds))


def test_without_random_effects_it_is_a_logit() -> None:
    matrix = replace(drawn("binomial", "one"), random=())
    fit = fit_laplace(matrix)
    p = logistic(matrix.x @ fit.coefficients)
    np.testing.assert_allclose(matrix.x.T @ (matrix.y - p), 0, atol=1e-6)
    information = matrix.x.T @ (matrix.x * (p * (1 - p))[:, None])
    same_covariance(fit.vcov, np.linalg.inv(information))


def without_maximum() -> dict[str, MixedMatrix]:
    s, m, c = (axis.ravel() for axis in np.indices((10, 4, 2)))
    one, random = np.ones(s.size), [part("s", s), part("m", m)]
    x = np.column_stack([one, c])
    noise = np.random.default_rng(5).random(s.size)
    return {
        "a condition predicts all": cells("binomial", c, x, random),
        "a condition predicts one side": cells("binomial", (c == 1) | (noise < 0.5), x, random),
        "all right": cells("binomial", one, x[:, :1], random),
        "a scenario has one answer": cells("binomial", s % 2, x[:, :1], [part("s", s)]),
        "a level of an ordered answer": cells("ordinal", c + (noise < 0.5) * c, x[:, 1:], random, n_levels=3),
    }


@pytest.mark.parametrize("name", list(without_maximum()))
def test_separation_ends_and_says_so(name: str) -> None:
    start = time.process_time()
    fit = fit_laplace(without_maximum()[name])
    assert time.process_time() - start < FINITE
    assert not fit.converged
    assert "separation" in fit.message
    assert np.isfinite(fit.coefficients).all()
    assert np.isfinite(fit.loglik)


def test_a_far_outlier_is_no_separation() -> None:
    matrix = drawn("binomial", "crossed")
    x = matrix.x.copy()
    row = int(np.flatnonzero(matrix.y)[0])
    x[row, 3] = 2_000.0
    fit = fit_laplace(replace(matrix, x=x))
    assert fit.converged or "separation" in fit.message


def test_what_residual_and_effects_share_is_flat() -> None:
    matrix = drawn("gaussian", "one")
    each = part("row", np.arange(len(matrix.y)))
    fit = fit_laplace(replace(matrix, random=(*matrix.random, each)))
    assert not fit.converged
    assert "flat" in fit.message
    without = fit_laplace(matrix)
    assert fit.loglik == pytest.approx(without.loglik, abs=1e-6)
    assert np.isnan(fit.vcov[-1, -1])


def test_one_level_has_no_variance() -> None:
    matrix = drawn("binomial", "one")
    fit = fit_laplace(replace(matrix, random=(*matrix.random, part("all", np.zeros(len(matrix.y), int)))))
    assert fit.singular == (False, True)
    assert fit.converged


def test_many_levels_stay_sparse() -> None:
    rng = np.random.default_rng(9)
    s, m = (axis.ravel() for axis in np.indices((3_000, 5)))
    y = rng.binomial(
        4, logistic(rng.normal(0, 1, 3_000)[s] + rng.normal(0, 0.5, 5)[m] + rng.normal(0, 0.5, s.size))
    )
    random = [part("m", m), part("s", s), part("s:m", np.arange(s.size))]
    start = time.process_time()
    fit = fit_laplace(cells("binomial", y, np.ones((s.size, 1)), random, np.full(s.size, 4)))
    assert time.process_time() - start < FINITE
    assert fit.converged
    assert fit.factors[1][0, 0] == pytest.approx(1.0, abs=0.15)


def test_nodes_are_checked() -> None:
    matrix = drawn("binomial", "crossed")
    with pytest.raises(ArgumentError, match=r"`nodes` must be an integer from 1 to 100, got 0"):
        fit_laplace(matrix, nodes=0)
    with pytest.raises(ArgumentError, match=r"`nodes` must be an integer from 1 to 100, got True"):
        fit_laplace(matrix, nodes=True)
    message = (
        r"`nodes` > 1 takes one random part with one effect a level, got s \(1\), m \(1\); "
        "use nodes=1, the Laplace approximation"
    )
    with pytest.raises(ArgumentError, match=message):
        fit_laplace(matrix, nodes=5)
    with pytest.raises(ArgumentError, match=r"`nodes` must be 1 for a Gaussian outcome"):
        fit_laplace(drawn("gaussian", "one"), nodes=5)


def bad_input() -> dict[str, tuple[MixedMatrix, str]]:
    binomial, ordinal, gaussian = (drawn(family, "one") for family in ("binomial", "ordinal", "gaussian"))
    x = np.column_stack([gaussian.x, gaussian.x[:, 0] + gaussian.x[:, 1]])
    few = slice(0, 3)
    random = replace(gaussian.random[0], codes=gaussian.random[0].codes[few], z=gaussian.random[0].z[few])
    nan = np.where(np.arange(len(binomial.y)) == 3, np.nan, binomial.y)
    return {
        "dependent": (
            replace(gaussian, x=x),
            "column 4 is 0 or depends on the columns before it; leave it out",
        ),
        "empty slope": (
            replace(binomial, random=(part("s", binomial.random[0].codes, np.zeros((len(nan), 1))),)),
            "column 0 is 0 or depends on the columns before it; leave it out",
        ),
        "level without cells": (
            replace(ordinal, levels=(*ordinal.levels, "never")),
            "`y` must have 2 levels or more, each of some cell, got 5; leave out levels that never occur",
        ),
        "few rows": (
            replace(
                gaussian, x=gaussian.x[few], y=gaussian.y[few], counts=gaussian.counts[few], random=(random,)
            ),
            "there must be more rows than coefficients, got 3 rows and 4 coefficients",
        ),
        "no residuals": (
            replace(gaussian, y=gaussian.x @ np.array([1.0, 2.0, 3.0, 4.0])),
            "the regressors fit `y` exactly, which leaves no variance to divide",
        ),
        "missing": (
            replace(binomial, y=nan),
            "`y` must be finite, got NaN at [3]; remove or fill missing values before summing by cluster",
        ),
        "successes": (
            replace(binomial, y=binomial.y + 1),
            f"`y` must be within 0 and the 1 trials, got 2 at {int(np.flatnonzero(binomial.y)[0])}",
        ),
        "half a level": (
            replace(ordinal, y=ordinal.y / 2),
            (
                "`y` of an ordinal outcome must hold levels 0, 1, 2, ...; got "
                f"{ordinal.y[ordinal.y % 2 == 1][0] / 2:g} at {int(np.flatnonzero(ordinal.y % 2)[0])}"
            ),
        ),
        "no trials": (
            replace(binomial, counts=np.zeros(len(binomial.y))),
            "`counts` must be above 0, got 0 at 0",
        ),
    }


@pytest.mark.parametrize("name", list(bad_input()))
def test_arrays_that_make_no_model_are_refused(name: str) -> None:
    matrix, message = bad_input()[name]
    with pytest.raises(DesignError) as caught:
        fit_laplace(matrix)
    assert str(caught.value) == message


def test_the_kernel_checks_its_arrays() -> None:
    y = np.array([0.0, 1.0, 1.0])
    codes = np.array([0, 1, 1], dtype=np.uint32)
    rest: dict[str, Any] = {"n_levels": 0, "nodes": None, "log_weights": None, "reml": True}
    one = np.ones((3, 1))
    with pytest.raises(
        ValueError, match='`family` must be "binomial", "ordinal" or "gaussian", got "poisson"'
    ):
        _native.fit_laplace("poisson", y, np.ones(3), one, [(codes, None, 2)], **rest)
    with pytest.raises(ValueError, match="`codes` must be below the 1 levels, got 1 at 1"):
        _native.fit_laplace("binomial", y, np.ones(3), one, [(codes, None, 1)], **rest)
    with pytest.raises(ValueError, match="`x` must hold 3 values, got 2"):
        _native.fit_laplace("binomial", y, np.ones(3), one[:2], [(codes, None, 2)], **rest)
    with pytest.raises(TypeError, match="`codes` must be a C-contiguous uint32 array"):
        _native.fit_laplace("binomial", y, np.ones(3), one, [(codes.astype(float), None, 2)], **rest)


def test_a_fit_is_plain_numbers() -> None:
    fit = fit_laplace(drawn("ordinal", "crossed"))
    json.dumps([fit.loglik, fit.n_parameters, fit.converged, fit.message, fit.singular, fit.evaluations])
