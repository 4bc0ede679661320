"""The native sampler of logistic mixed models: its density, its draws, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from triagestats.models.mixed import native_plan as planning
from triagestats.models.mixed import native_sampler as sampling
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix, RandomPart
from triagestats.models.mixed.native_draws import unknowns
from triagestats.models.mixed.native_plan import native_plan
from triagestats.models.mixed.native_sampler import covers, sample_native
from triagestats.models.mixed.priors import Priors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

SLOPE = 1e-6
"""Central differences with steps of 1e-5 are off by the third derivative times 1e-10 and rounding."""
QUADRATURE = 1e-5
"""Quadratures of 9 nodes differ by less on levels with a few rows."""
EXACT = 1e-9
"""Both sides sum the same numbers in another order."""
ERRORS = 4.5
"""Monte Carlo standard errors two means may differ by; several dozen are compared."""
P_VALUE = 1e-3
"""Below it, ranks are not uniform; a few dozen tests are made of a fixed seed."""


def part(name: str, codes: Codes) -> RandomPart:
    """A random intercept."""
    n_levels = int(codes.max()) + 1
    levels = tuple(str(level) for level in range(n_levels))
    return RandomPart(name, tuple(name.split(":")), levels, codes, np.ones((codes.size, 1)), ("(Intercept)",))


def table(
    shape: Sequence[int],
    random: dict[str, Sequence[int]],
    *,
    trials: int = 1,
    sd: float = 0.8,
    missing: float = 0.0,
    seed: int = 1,
) -> MixedMatrix:
    """Cells that cross the axes, the last of them fixed; `random` names the axes that levels combine."""
    rng = np.random.default_rng(seed)
    axes = [axis.ravel() for axis in np.indices(shape)]
    if missing:
        kept = rng.random(axes[0].size) > missing
        axes = [axis[kept] for axis in axes]
    fixed = axes[-1]
    eta = 0.4 - 0.5 * fixed
    parts = []
    for name, which in random.items():
        joint = np.ravel_multi_index([axes[axis] for axis in which], [shape[axis] for axis in which])
        codes = np.unique(joint, return_inverse=True)[1].astype(np.int64)
        parts.append(part(name, codes))
        eta = eta + rng.normal(0, sd, codes.max() + 1)[codes]
    counts = rng.integers(1, trials + 1, fixed.size) if trials > 1 else np.ones(fixed.size, dtype=int)
    y = rng.binomial(counts, 1 / (1 + np.exp(-eta))).astype(float)
    dummies = [(fixed == level).astype(float) for level in range(1, shape[-1])]
    x = np.column_stack([np.ones(fixed.size), *dummies])
    terms = ("Intercept", *(f"c{level}" for level in range(1, shape[-1])))
    counts = counts.astype(float)
    return MixedMatrix("binomial", y, counts, x, terms, tuple(parts), (), int(counts.sum()))


CROSSED = {"scenario": (0,), "model": (1,)}
WITH_PAIRS = {**CROSSED, "scenario:model": (0, 1)}


def slopes(matrix: MixedMatrix) -> tuple[Array, Array]:
    """The gradient at a position, and by differences."""
    plan = native_plan(matrix, Priors())
    position = plan.starts(1, 3)[0]
    step = 1e-5

    def value(at: Array) -> float:
        return plan.posterior.log_density(at)[0]

    by_hand = [(value(position + h) - value(position - h)) / (2 * step) for h in np.eye(position.size) * step]
    return plan.posterior.log_density(position)[1], np.array(by_hand)


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
def test_gradient_crossed(trials: int, missing: float) -> None:
    """Crossed parts: the kernel of complete crossings, and where most cells are missing that of cells."""
    gradient, expected = slopes(table((9, 4, 3), CROSSED, trials=trials, missing=missing))
    np.testing.assert_allclose(gradient, expected, atol=SLOPE, rtol=SLOPE)


@pytest.mark.parametrize("trials", [1, 3, 40])
def test_gradient_integrated(trials: int) -> None:
    """A part that is integrated out: few trials a cell by products, many by logarithms."""
    matrix = table((9, 4, 3), WITH_PAIRS, trials=trials, missing=0.1)
    plan = native_plan(replace(matrix, counts=np.minimum(matrix.counts, 3.0)), Priors())
    assert plan.integrated
    gradient, expected = slopes(table((9, 4, 3), WITH_PAIRS, trials=trials, missing=0.1))
    np.testing.assert_allclose(gradient, expected, atol=QUADRATURE, rtol=QUADRATURE)


@pytest.mark.parametrize(
    "random",
    [
        {"pair": (0,), "pair:scenario": (0, 1)},
        {"model": (0,), "repetition": (1,), "model:repetition": (0, 1)},
        {"a": (0,), "a:b": (0, 1), "a:b:c": (0, 1, 2)},
    ],
)
def test_gradient_nested(random: dict[str, Sequence[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of nested effects join those they are nested in."""
    monkeypatch.setattr(planning, "_ROWS", 0)
    matrix = table((5, 3, 2, 2), random, trials=4)
    assert any(sweep.uppers for sweep in native_plan(matrix, Priors()).sweeps)
    gradient, expected = slopes(matrix)
    np.testing.assert_allclose(gradient, expected, atol=SLOPE, rtol=SLOPE)


@pytest.mark.parametrize("trials", [1, 3])
def test_kernels_agree(trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel for crossings gives what that of cells gives."""
    matrix = table((20, 5, 3), CROSSED, trials=trials, missing=0.2)
    position = native_plan(matrix, Priors()).starts(1, 1)[0]
    one = native_plan(matrix, Priors()).posterior.log_density(position)
    monkeypatch.setattr(planning, "_SPARSE", 0)
    other = native_plan(matrix, Priors()).posterior.log_density(position)
    assert one[0] == pytest.approx(other[0], abs=EXACT)
    np.testing.assert_allclose(one[1], other[1], atol=EXACT)


def test_density_is_that_of_the_model() -> None:
    """Differences of the density, written out in NumPy on the scale of the model."""
    matrix = table((7, 4, 3), CROSSED, trials=3, missing=0.2)
    plan = native_plan(matrix, Priors(intercept=1.5, coefficient={"c1": 0.5}, sd={"model": 0.7}))
    p = plan.centre.size

    def written_out(position: Array) -> float:
        heads, tails = position[None, : p + 2], position[None, p + 2 :]
        b, s = plan.centre + plan.basis @ position[:p], position[p : p + 2]
        variance = np.diag([1.5**2, 0.5**2, 2.0**2])
        eta = plan.centring.x @ b
        total = stats.norm.logpdf(s, scale=[1.5, 0.7]).sum()
        first = 0
        for number, (sweep, here) in enumerate(zip(plan.sweeps, matrix.random, strict=True)):
            variance += s[number] ** 2 * sweep.directions @ sweep.directions.T
            z = tails[0, first : first + sweep.free.size]
            spread = 1 + plan.information[number] * s[number] ** 2
            e = np.zeros(here.n_levels)
            e[sweep.free] = s[number] ** 2 * plan.pulls[number] / spread + s[number] * z / np.sqrt(spread)
            total += stats.norm.logpdf(e[sweep.free], scale=abs(s[number])).sum()
            total += np.log(np.abs(s[number]) / np.sqrt(spread)).sum()
            eta += sweep.reflections.apply(e)[here.codes]
            first += sweep.free.size
        total += stats.multivariate_normal.logpdf(b, cov=variance)
        assert heads.shape == (1, p + 2)
        return float(total + stats.binom.logpmf(matrix.y, matrix.counts, 1 / (1 + np.exp(-eta))).sum())

    one, other = plan.starts(2, 5)
    expected = written_out(one) - written_out(other)
    actual = plan.posterior.log_density(one)[0] - plan.posterior.log_density(other)[0]
    assert actual == pytest.approx(expected, abs=EXACT)


def test_sums_are_split_exactly() -> None:
    """The coefficients and effects that are drawn give the linear predictors that were sampled."""
    for random in (CROSSED, {"pair": (0,), "pair:scenario": (0, 1)}):
        matrix = table((6, 4, 3), random, trials=30)
        plan = native_plan(matrix, Priors())
        assert not plan.integrated
        p, n_parts = plan.centre.size, len(matrix.random)
        starts = plan.starts(5, 2)
        drawn = unknowns(plan, starts[:, : p + n_parts], starts[:, p + n_parts :], every=1, seed=3, chain=0)
        eta = drawn.coefficients @ matrix.x.T
        for here, effects in zip(matrix.random, drawn.effects, strict=True):
            eta += effects[:, here.codes]
        expected = (plan.centre + starts[:, :p] @ plan.basis.T) @ plan.centring.x.T
        first = p + n_parts
        for number, (sweep, here) in enumerate(zip(plan.sweeps, matrix.random, strict=True)):
            s2 = sum(starts[:, p + low.part] ** 2 / low.size for low in plan.lower[number])
            alone = len(plan.lower[number]) == 1
            sigma = (starts[:, p + number] if alone else np.sqrt(s2))[:, None]
            spread = 1 + plan.information[number] * sigma**2
            e = np.zeros((5, here.n_levels))
            z = starts[:, first : first + sweep.free.size]
            e[:, sweep.free] = sigma**2 * plan.pulls[number] / spread + sigma * z / np.sqrt(spread)
            expected += sweep.reflections.apply(e)[:, here.codes]
            first += sweep.free.size
        np.testing.assert_allclose(eta, expected, atol=EXACT)


def integrated_means(matrix: MixedMatrix) -> dict[str, float]:
    """Posterior means by summing over a grid: an intercept, three scenarios crossed with two models."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    b, wb = 9 * nodes, weights * stats.norm.pdf(9 * nodes, scale=2.5)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    s, ws = 3.2 * (nodes + 1), weights * stats.norm.pdf(3.2 * (nodes + 1), scale=1.5)
    z, wz = np.polynomial.hermite_e.hermegauss(13)
    wz = wz / wz.sum()
    # eta of both models, from b, s_v, v_1 and v_2.
    v = s[:, None] * z
    one = b[:, None, None, None] + v[None, :, :, None] + 0 * v[None, :, None, :]
    other = b[:, None, None, None] + 0 * v[None, :, :, None] + v[None, :, None, :]
    y = matrix.y.reshape(3, 2)
    n = matrix.counts.reshape(3, 2)
    sums = dict.fromkeys(("all", "b", "s_u", "s_v", "u", "v"), 0.0)
    outer = wb[:, None, None, None] * ws[:, None, None] * wz[:, None] * wz
    for s_u, w_u in zip(s, ws, strict=True):
        product, first = np.ones_like(one), np.zeros_like(one)
        for scenario in range(3):
            total, mean = np.zeros_like(one), np.zeros_like(one)
            for zu, wu in zip(z, wz, strict=True):
                likelihood = np.full_like(one, wu)
                for column, eta in enumerate((one, other)):
                    p = 1 / (1 + np.exp(-(eta + s_u * zu)))
                    likelihood *= p ** y[scenario, column]
                    likelihood *= (1 - p) ** (n[scenario, column] - y[scenario, column])
                total += likelihood
                mean += likelihood * s_u * zu
            if scenario == 0:
                # Far from the data, all likelihoods are too small for a float.
                first = np.divide(mean, total, out=first, where=total > 0)
            product *= total
        density = product * outer * w_u
        sums["all"] += density.sum()
        sums["b"] += (density * b[:, None, None, None]).sum()
        sums["s_u"] += s_u * density.sum()
        sums["s_v"] += (density * s[:, None, None]).sum()
        sums["u"] += (density * first).sum()
        sums["v"] += (density * v[:, :, None]).sum()
    return {name: value / sums["all"] for name, value in sums.items() if name != "all"}


def close(drawn: Array, expected: float, effective: float = 3.0) -> bool:
    """Whether a mean of draws (chains, draws) is within its error, at one effective draw in `effective`."""
    return bool(abs(drawn.mean() - expected) < ERRORS * drawn.std() * (effective / drawn.size) ** 0.5)


def test_against_integration() -> None:
    """A tiny model against sums over a grid."""
    scenario, model = (axis.ravel() for axis in np.indices((3, 2)))
    y, n = np.array([5.0, 2.0, 3.0, 0.0, 6.0, 4.0]), np.array([6.0, 6.0, 5.0, 6.0, 6.0, 6.0])
    parts = part("scenario", scenario), part("model", model)
    matrix = MixedMatrix("binomial", y, n, np.ones((6, 1)), ("Intercept",), parts, (), 35)
    expected = integrated_means(matrix)
    draws = sample_native(matrix, Priors(), draws=4_000, seed=1, n_threads=1)
    assert draws.statistics["diverging"].mean() < 0.01
    assert close(draws.coefficients[..., 0], expected["b"])
    assert close(draws.factors[0][..., 0, 0], expected["s_u"])
    assert close(draws.factors[1][..., 0, 0], expected["s_v"])
    assert close(draws.effects[0][..., 0, 0], expected["u"])
    assert close(draws.effects[1][..., 0, 0], expected["v"])


def same_posterior(one: Draws, other: Draws) -> None:
    """All means and standard deviations within Monte Carlo error."""

    def columns(draws: Draws) -> Array:
        sds = [factor[..., 0, 0][..., None] for factor in draws.factors]
        effects = [effect[..., 0] for effect in draws.effects]
        out: Array = np.concatenate([draws.coefficients, *sds, *effects], axis=-1)
        return out.reshape(-1, out.shape[-1])

    a, b = columns(one), columns(other)
    error = (3 * (a.var(axis=0) / len(a) + b.var(axis=0) / len(b))) ** 0.5
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < ERRORS * error).all()
    ratio = np.log(a.std(axis=0) / b.std(axis=0))
    # The variance of a log standard deviation is (kurtosis - 1) / 4 over the number of draws.
    spread = sum(3 * (stats.kurtosis(x, axis=0) + 2) / (4 * len(x)) for x in (a, b)) ** 0.5
    assert (np.abs(ratio) < ERRORS * spread).all()


@pytest.mark.parametrize(
    ("shape", "random"),
    [
        ((6, 2, 3), {"pair": (0,), "pair:scenario": (0, 1)}),
        ((6, 3, 3), WITH_PAIRS),
    ],
)
def test_integrated_or_not(
    shape: Sequence[int], random: dict[str, Sequence[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nested effects integrated by quadrature, and sampled with their means swept, have one posterior."""
    matrix = table(shape, random)
    integrated = sample_native(matrix, Priors(), draws=3_000, seed=1, n_threads=1)
    assert native_plan(matrix, Priors()).integrated
    monkeypatch.setattr(planning, "_ROWS", 0)
    assert not native_plan(matrix, Priors()).integrated
    same_posterior(integrated, sample_native(matrix, Priors(), draws=3_000, seed=2, n_threads=1))


def test_threads_and_seeds() -> None:
    """The draws depend on the seed, and on nothing else."""
    matrix = table((8, 4, 3), WITH_PAIRS)
    runs = [
        sample_native(matrix, Priors(), chains=3, draws=30, tune=50, seed=seed, n_threads=n_threads)
        for seed, n_threads in ((1, 1), (1, 2), (1, 7), (2, 1))
    ]
    for run in runs[1:3]:
        np.testing.assert_array_equal(run.coefficients, runs[0].coefficients)
        for one, other in zip(run.effects, runs[0].effects, strict=True):
            np.testing.assert_array_equal(one, other)
    assert not np.array_equal(runs[3].coefficients, runs[0].coefficients)
    assert not np.array_equal(runs[0].coefficients[0], runs[0].coefficients[1])


def test_order_of_rows_and_parts() -> None:
    """Another order of the cells or the parts is another run of the same posterior."""
    matrix = table((8, 4, 3), CROSSED, trials=3)
    order = np.random.default_rng(1).permutation(matrix.y.size)
    parts = [replace(each, codes=each.codes[order], z=each.z[order]) for each in matrix.random[::-1]]
    other = replace(
        matrix, y=matrix.y[order], counts=matrix.counts[order], x=matrix.x[order], random=tuple(parts)
    )
    one = sample_native(matrix, Priors(), draws=2_000, seed=1, n_threads=1)
    two = sample_native(other, Priors(), draws=2_000, seed=2, n_threads=1)
    same_posterior(one, replace(two, factors=two.factors[::-1], effects=two.effects[::-1]))


def test_kept_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is short, the effects of every k-th draw are kept, and all of the rest."""
    matrix = table((8, 4, 3), WITH_PAIRS)
    whole = sample_native(matrix, Priors(), chains=2, draws=50, tune=50, seed=1)
    assert whole.effects_every == (1, 1, 1)
    monkeypatch.setattr(sampling, "_BYTES", 8 * 32 * 100 // 3)
    short = sample_native(matrix, Priors(), chains=2, draws=50, tune=50, seed=1)
    assert short.effects_every == (2, 2, 4)
    assert [effects.shape for effects in short.effects] == [(2, 25, 8, 1), (2, 25, 4, 1), (2, 13, 32, 1)]
    np.testing.assert_array_equal(short.coefficients, whole.coefficients)
    np.testing.assert_array_equal(short.factors[0], whole.factors[0])


def test_interrupted() -> None:
    """What is drawn until Ctrl-C is kept on request; other exceptions go through."""
    matrix = table((30, 6, 3), CROSSED)
    seen: list[int] = []

    def stop(done: int) -> None:
        seen.append(done)
        if done > 400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_native(matrix, Priors(), draws=200_000, tune=50, seed=1, progress=stop)
    draws = sample_native(
        matrix, Priors(), draws=200_000, tune=50, seed=1, progress=stop, keep_on_interrupt=True
    )
    assert draws.interrupted
    assert 0 < draws.n_draws < 200_000
    assert draws.effects[0].shape[:2] == (4, -(-draws.n_draws // draws.effects_every[0]))
    assert seen == sorted(seen) or len(seen) > 1

    def fail(done: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sample_native(matrix, Priors(), draws=200_000, tune=50, seed=1, progress=fail, keep_on_interrupt=True)


def test_separated() -> None:
    """All successes: the priors keep the posterior finite."""
    matrix = table((10, 4, 2), CROSSED)
    draws = sample_native(replace(matrix, y=matrix.counts), Priors(), draws=500, tune=500, seed=1)
    assert np.isfinite(draws.coefficients).all()
    assert draws.coefficients[..., 0].mean() > 1


def test_without_constant() -> None:
    """Columns that make a constant together have the priors of coefficients."""
    matrix = table((10, 4, 2), CROSSED)
    x = np.column_stack([1 - matrix.x[:, 1], matrix.x[:, 1]])
    plan = native_plan(replace(matrix, x=x, terms=("c0", "c1")), Priors())
    assert plan.centring.constant is None
    np.testing.assert_array_equal(plan.centring.variances, [4.0, 4.0])
    np.testing.assert_array_equal(plan.centring.x, x)


def test_covers() -> None:
    """What the sampler refuses, and why."""
    matrix = table((5, 4, 2), CROSSED)
    scenario, model = matrix.random
    sloped = replace(scenario, z=np.column_stack([scenario.z, matrix.x[:, 1]]), z_names=("(Intercept)", "c1"))
    single = part("judge", np.zeros(matrix.y.size, dtype=np.int64))
    assert covers(matrix) is None
    assert covers(replace(matrix, family="ordinal")) == (
        "it samples models of family 'binomial', not 'ordinal'"
    )
    assert covers(replace(matrix, random=())) == "the model has no random effects"
    assert covers(replace(matrix, random=(sloped, model))) == (
        "it samples random intercepts, and scenario has slopes"
    )
    assert covers(replace(matrix, random=(scenario, single))) == "judge has one level"
    twice = replace(scenario, name="case")
    assert covers(replace(matrix, random=(scenario, twice))) == "scenario and case have the same levels"


@pytest.mark.slow
def test_calibrated() -> None:
    """Ranks of the truth among the draws are uniform (Talts et al. 2018), over 200 sets of data."""
    rng = np.random.default_rng(20)
    base = table((8, 4, 2), CROSSED)
    scenario, model = (each.codes for each in base.random)
    ranks = []
    for number in range(200):
        s_u, s_v = np.abs(rng.normal(0, 1.5, 2))
        u, v = rng.normal(0, s_u, 8), rng.normal(0, s_v, 4)
        centred, slope = rng.normal(0, 2.5), rng.normal(0, 2.0)
        eta = centred + slope * (base.x[:, 1] - 0.5) + u[scenario] + v[model]
        y = (rng.random(eta.size) < 1 / (1 + np.exp(-eta))).astype(float)
        draws = sample_native(replace(base, y=y), Priors(), draws=500, tune=500, seed=number)
        truth = np.array([centred - 0.5 * slope, slope, s_u, s_v, u[0], v[0], u @ u, v.mean()])
        effects = [effect[..., 0] for effect in draws.effects]
        drawn = np.stack(
            [
                draws.coefficients[..., 0],
                draws.coefficients[..., 1],
                draws.factors[0][..., 0, 0],
                draws.factors[1][..., 0, 0],
                effects[0][..., 0],
                effects[1][..., 0],
                (effects[0] ** 2).sum(axis=-1),
                effects[1].mean(axis=-1),
            ]
        )
        # 199 draws far enough apart.
        drawn = drawn.reshape(truth.size, -1)[:, 10::10][:, :199]
        ranks.append((drawn < truth[:, None]).sum(axis=1))
    for name, column in zip(
        ("b0", "b1", "s_u", "s_v", "u", "v", "u'u", "mean v"), np.array(ranks).T, strict=True
    ):
        observed = np.bincount(column // 20, minlength=10)
        assert stats.chisquare(observed).pvalue > P_VALUE, name


@pytest.mark.slow
@pytest.mark.parametrize("random", [CROSSED, WITH_PAIRS])
def test_against_pymc(random: dict[str, Sequence[int]]) -> None:
    """The same posterior by PyMC, written in the plainest way."""
    pymc = pytest.importorskip("pymc")
    matrix = table((10, 4, 3), random, sd=0.7)
    means = np.average(matrix.x[:, 1:], axis=0, weights=matrix.counts)
    with pymc.Model():
        b = pymc.Normal("b", 0, 2.0, shape=2)
        centred = pymc.Normal("centred", 0, 2.5)
        eta = centred + (matrix.x[:, 1:] - means) @ b
        for number, each in enumerate(matrix.random):
            sd = pymc.HalfNormal(f"sd{number}", 1.5)
            z = pymc.Normal(f"z{number}", shape=each.n_levels)
            effect = pymc.Deterministic(f"u{number}", sd * z)
            eta = eta + effect[each.codes]
        pymc.Binomial("y", matrix.counts.astype(int), logit_p=eta, observed=matrix.y.astype(int))
        trace = pymc.sample(
            2_000, tune=1_500, chains=4, cores=1, random_seed=1, progressbar=False, target_accept=0.95
        )
    posterior = trace.posterior
    intercept = posterior["centred"].values - posterior["b"].values @ means
    n_parts = len(matrix.random)
    other = Draws(
        coefficients=np.concatenate([intercept[..., None], posterior["b"].values], axis=-1),
        thresholds=np.empty((4, 2_000, 0)),
        factors=tuple(posterior[f"sd{number}"].values[..., None, None] for number in range(n_parts)),
        sigma=None,
        effects=tuple(posterior[f"u{number}"].values[..., None] for number in range(n_parts)),
        statistics={},
        sampler="pymc",
        seconds=0.0,
        n_tune=1_500,
    )
    same_posterior(sample_native(matrix, Priors(), draws=3_000, seed=1), other)
