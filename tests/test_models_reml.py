"""The likelihood of mixed models against dense matrices, analysis of variance, and other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

import triagestats as ts
from triagestats.models import reml_blocks, reml_profile
from triagestats.models.facets import read_facets
from triagestats.models.mixed_fixed import fixed_effects, kenward_roger
from triagestats.models.random_terms import VarianceDesign, variance_design
from triagestats.models.reml import MixedFit, descend, fit_variances
from triagestats.models.reml_blocks import sums_of
from triagestats.models.reml_evaluation import Likelihood
from triagestats.models.reml_profile import profile_ends, satterthwaite_ends

ROUNDING: Final = 1e-9
"""The same quantity by two routes of linear algebra."""
CONVERGED: Final = 1e-8
"""A maximum against its closed form: where Newton steps end, a few roundings of the slopes away."""
DIFFERENCES: Final = 2e-5
"""Degrees of freedom from second differences of a dense likelihood."""
PEER: Final = 2e-3
"""statsmodels' optimiser stops early."""

Array = NDArray[np.float64]
Table = dict[str, Any]


def crossed(
    sizes: tuple[int, ...], seed: int, *, keep: float = 1.0, shares: tuple[float, ...] = (1.0, 0.5, 0.3)
) -> Table:
    """Draw scenario x model x condition x repetition with main effects and all two-way interactions."""
    rng = np.random.default_rng(seed)
    index = np.indices(sizes).reshape(len(sizes), -1)
    index = index[:, rng.random(index.shape[1]) < keep]
    s, m, c = index[:3]
    y = rng.normal(size=index.shape[1])
    for share, codes in zip(shares, (s, m, c), strict=True):
        y += share * rng.normal(size=codes.max() + 1)[codes]
    for one, other in ((s, m), (s, c), (m, c)):
        y += 0.6 * rng.normal(size=(one.max() + 1, other.max() + 1))[one, other]
    return {
        "scenario": [f"s{i:03d}" for i in s],
        "model": [f"m{i}" for i in m],
        "condition": [f"c{i}" for i in c],
        "x": rng.normal(2000, 1, size=len(y)),
        "score": y,
    }


def designed(data: Table, **options: Any) -> VarianceDesign:
    arguments = {"factors": None, "fixed": (), "nested": (), "covariates": (), "outcome": None}
    interactions = options.pop("interactions", 2)
    return variance_design(read_facets(data, **(arguments | options)), interactions)


def likelihood(design: VarianceDesign, *, reml: bool = True) -> Likelihood:
    codes = [effect.codes for effect in design.effects]
    sums = sums_of(design.y, design.fixed.x, codes, [effect.name for effect in design.effects])
    return Likelihood(sums, reml)


def fitted(design: VarianceDesign, *, reml: bool = True) -> MixedFit:
    return fit_variances(likelihood(design, reml=reml), [effect.name for effect in design.effects])


class Dense:
    """The same model with matrices of n rows."""

    def __init__(self, design: VarianceDesign, variances: Array) -> None:
        self.y, self.x = design.y, design.fixed.x
        self.z = [np.eye(effect.n_levels)[effect.codes] for effect in design.effects]
        self.parts = [*(z @ z.T for z in self.z), np.eye(len(self.y))]
        self.v = sum(v * part for v, part in zip(variances, self.parts, strict=True))
        self.inverse = np.linalg.inv(self.v)
        self.covariance = np.linalg.inv(self.x.T @ self.inverse @ self.x)
        self.p = self.inverse - self.inverse @ self.x @ self.covariance @ self.x.T @ self.inverse

    def criterion(self, *, reml: bool) -> float:
        n, p = self.x.shape
        value = np.linalg.slogdet(self.v)[1] + self.y @ self.p @ self.y
        value += (n - p if reml else n) * np.log(2 * np.pi)
        return float(value - np.linalg.slogdet(self.covariance)[1] if reml else value)

    def slopes(self, *, reml: bool) -> Array:
        trace = self.p if reml else self.inverse
        py = self.p @ self.y
        return np.array([np.trace(trace @ part) - py @ part @ py for part in self.parts])


LAYOUTS: dict[str, dict[str, Any]] = {
    "all random": {},
    "fixed condition": {"fixed": "condition"},
    "fixed condition and model": {"fixed": ["condition", "model"]},
    "one factor": {"factors": "scenario"},
    "no blocks": {"factors": ["model", "condition"]},
    "main effects": {"interactions": 0},
    "covariate": {"covariates": "x", "fixed": "condition"},
    "nested": {"factors": ["condition"], "nested": "model/scenario"},
    "three-way": {"interactions": 3},
}


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_likelihood_equals_dense(
    layout: str, reml: bool, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `leaves`, the term with most levels is solved before the blocks, as in large tables with gaps."""
    if leaves:
        monkeypatch.setattr(reml_blocks, "_LARGE", 0.0)
        monkeypatch.setattr(reml_blocks, "PASS", 0.0)
    design = designed(crossed((7, 4, 3, 2), 1, keep=0.8), **LAYOUTS[layout])
    found = likelihood(design, reml=reml)
    sums = found.sums
    crossings = layout not in ("one factor", "main effects", "nested", "no blocks")
    assert (sums.leaves is not None) == leaves or not crossings
    rng = np.random.default_rng(2)
    variances = rng.uniform(0.1, 1.5, size=len(design.effects) + 1)
    variances[rng.integers(len(design.effects))] = 0.0  # a boundary is no special case
    value, slopes, parts = found.at(variances)
    dense = Dense(design, variances * sums.scale**2)
    offset = 2 * found.df * np.log(sums.scale) + 2 * np.log(sums.stretch).sum() * reml
    assert value + offset == pytest.approx(dense.criterion(reml=reml), rel=ROUNDING)
    assert slopes / sums.scale**2 == pytest.approx(dense.slopes(reml=reml), rel=ROUNDING, abs=ROUNDING)
    free = variances[variances > 0]
    ratios = variances[:-1] / variances[-1]
    profiled, ratio_slopes, residual = found.profiled(ratios)
    assert profiled == pytest.approx(found.at(np.append(ratios, 1) * residual)[0], rel=ROUNDING)
    assert ratio_slopes == pytest.approx(
        found.at(np.append(ratios, 1) * residual)[1][:-1] * residual, rel=1e-8, abs=1e-8
    )
    assert len(free) == len(design.effects)
    assert parts.fixed_covariance.shape == (sums.n_fixed, sums.n_fixed)


@pytest.mark.parametrize("keep", [1.0, 0.7])
def test_leaves_change_nothing(keep: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where blocks share their cells, pieces are small, and terms are at 0 or large."""
    design = designed(crossed((30, 6, 3, 3), 4, keep=keep), fixed="condition")
    before = likelihood(design)
    monkeypatch.setattr(reml_blocks, "_LARGE", 0.0)
    monkeypatch.setattr(reml_blocks, "PASS", 0.0)
    monkeypatch.setattr(reml_blocks, "_PIECE", 500)
    after = likelihood(design)
    assert before.sums.leaves is None
    assert after.sums.leaves is not None
    assert after.sums.work < before.sums.work
    n = before.sums.n_terms
    for ratios in (np.zeros(n), np.full(n, 0.3), np.arange(n) % 2 * 0.5, np.geomspace(1e-8, 100, n)):
        found, expected = after.profiled(ratios), before.profiled(ratios)
        assert found[0] == pytest.approx(expected[0], rel=ROUNDING)
        assert found[1] == pytest.approx(expected[1], rel=1e-7, abs=1e-7)
        assert found[2] == pytest.approx(expected[2], rel=ROUNDING)


def test_profile_ends_are_where_the_profile_rises() -> None:
    """Ends found with few evaluations are those of a search to ten digits."""
    fit = fitted(designed(crossed((25, 6, 3, 2), 8, keep=0.8)))
    ends = profile_ends(fit, 0.95)
    tight = pytest.MonkeyPatch()
    with tight.context() as patch:
        patch.setattr(reml_profile, "_CLOSE", 1e-7)
        patch.setattr(reml_profile, "_GAIN", 1e-11)
        exact = profile_ends(fit, 0.95)
    assert ends.low == pytest.approx(exact.low, rel=2e-5)
    assert ends.high == pytest.approx(exact.high, rel=2e-5)
    assert ends.n_evaluations < 140 < exact.n_evaluations * 1.5


def test_covariates_far_from_zero_keep_their_digits() -> None:
    """A column of years: x'x is nearly singular beside the constant."""
    data = crossed((7, 4, 3, 2), 1, keep=0.8)
    data["near"] = data["x"] - 2000
    fits = [
        ts.variance_components(data, fixed="condition", covariates=name, interactions=0)
        for name in ("x", "near")
    ]
    assert fits[0].fixed.estimate[1:] == pytest.approx(fits[1].fixed.estimate[1:], rel=1e-8)
    assert fits[0].log_likelihood == pytest.approx(fits[1].log_likelihood, rel=ROUNDING)
    shift = fits[0].fixed.estimate[0] + 2000 * fits[0].fixed.estimate[-1]
    assert shift == pytest.approx(fits[1].fixed.estimate[0], rel=1e-7)


def test_blocks_with_the_same_cells_are_one() -> None:
    balanced = likelihood(designed(crossed((50, 4, 3, 1), 3)))
    assert balanced.sums.n_patterns == 1
    assert [batch.inner.shape for batch in balanced.sums.batches] == [(1, 8, 8)]
    assert likelihood(designed(crossed((50, 4, 3, 1), 3, keep=0.8))).sums.n_patterns > 10


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    design = designed(crossed((40, 4, 3, 2), 4, keep=0.7))
    variances = np.linspace(0.2, 1, len(design.effects) + 1)
    one = likelihood(design).at(variances)
    monkeypatch.setattr(reml_blocks, "_PIECE", 200)
    pieces = likelihood(design)
    assert len(pieces.sums.batches) > 3
    assert pieces.at(variances)[0] == pytest.approx(one[0], rel=ROUNDING)
    assert pieces.at(variances)[1] == pytest.approx(one[1], rel=ROUNDING)


def mean_square(y: Array, axes: tuple[int, ...]) -> tuple[float, int]:
    """Mean square of the interaction of some axes of a balanced array (s, m, c, r), and its df."""
    effect = y
    for axis in range(y.ndim):
        mean = effect.mean(axis=axis, keepdims=True)
        effect = effect - mean if axis in axes else np.broadcast_to(mean, effect.shape)
    df = int(np.prod([y.shape[axis] - 1 for axis in axes]))
    return float((effect**2).sum()) / df, df


def test_balanced_random_model_equals_analysis_of_variance() -> None:
    """Expected mean squares solved for the components, where all are positive."""
    s, m, c, r = 12, 6, 5, 3
    data = crossed((s, m, c, r), 6)
    rng = np.random.default_rng(5)
    cell = np.repeat(0.5 * rng.normal(size=s * m * c), r)
    data["score"] = np.array(data["score"]) + cell
    y = np.array(data["score"]).reshape(s, m, c, r)
    square = {axes: mean_square(y, axes)[0] for axes in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]}
    error = float(((y - y.mean(axis=3, keepdims=True)) ** 2).sum()) / (s * m * c * (r - 1))
    top = square[0, 1, 2]
    expected = {
        "scenario": (square[0,] - square[0, 1] - square[0, 2] + top) / (m * c * r),
        "model": (square[1,] - square[0, 1] - square[1, 2] + top) / (s * c * r),
        "condition": (square[2,] - square[0, 2] - square[1, 2] + top) / (s * m * r),
        "scenario:model": (square[0, 1] - top) / (c * r),
        "scenario:condition": (square[0, 2] - top) / (m * r),
        "model:condition": (square[1, 2] - top) / (s * r),
        "scenario:model:condition": (top - error) / r,
        "residual": error,
    }
    assert min(expected.values()) > 0  # the seed is chosen so
    fit = ts.variance_components(data, interactions=3, interval="none")
    assert fit.variances == pytest.approx(expected, rel=CONVERGED)
    assert fit.fixed.estimate[0] == pytest.approx(y.mean())
    variance = (
        square[0,] + square[1,] + square[2,] - square[0, 1] - square[0, 2] - square[1, 2] + top
    ) / y.size
    assert fit.fixed.covariance[0, 0] == pytest.approx(variance, rel=CONVERGED)


def test_maximum_likelihood_of_one_way_equals_closed_form() -> None:
    """Balanced groups: v_e = SSW / (g (m - 1)), v_a = (SSA / g - v_e) / m (Searle, Casella, McCulloch)."""
    rng = np.random.default_rng(6)
    g, m = 15, 4
    y = rng.normal(size=(g, m)) + 2 * rng.normal(size=(g, 1))
    within = float(((y - y.mean(axis=1, keepdims=True)) ** 2).sum()) / (g * (m - 1))
    between = m * float(((y.mean(axis=1) - y.mean()) ** 2).sum()) / g
    data = {"scenario": np.repeat(np.arange(g), m), "score": y.ravel()}
    fit = ts.variance_components(data, method="ml")
    assert fit.variances == pytest.approx(
        {"scenario": (between - within) / m, "residual": within}, rel=CONVERGED
    )
    n = g * m
    constant = n * np.log(2 * np.pi) + g * (m - 1) * np.log(within) + g * np.log(between) + n
    assert fit.log_likelihood == pytest.approx(-constant / 2, rel=ROUNDING)


def test_unbalanced_fit_equals_statsmodels() -> None:
    mixed_linear = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    pd = pytest.importorskip("pandas")
    data = crossed((10, 5, 3, 1), 7, keep=0.85)
    frame = pd.DataFrame({name: data[name] for name in ("scenario", "model", "condition", "score")})
    formulas = {
        "scenario": "0 + C(scenario)",
        "model": "0 + C(model)",
        "scenario:model": "0 + C(scenario):C(model)",
    }
    frame["all"] = 1
    peer = mixed_linear.MixedLM.from_formula(
        "score ~ C(condition)", groups="all", vc_formula=formulas, re_formula="0", data=frame
    ).fit(reml=True, method=["lbfgs"])
    fit = ts.variance_components(
        data, factors=["scenario", "model"], fixed="condition", interactions=["scenario:model"]
    )
    names = peer.model.exog_vc.names
    assert [fit.variances[name] for name in names] == pytest.approx(list(peer.vcomp), rel=PEER, abs=PEER)
    assert fit.variances["residual"] == pytest.approx(peer.scale, rel=PEER)
    assert fit.fixed.estimate == pytest.approx(np.array(peer.fe_params), rel=PEER, abs=PEER)
    assert fit.log_likelihood >= peer.llf - 1e-6
    assert fit.log_likelihood == pytest.approx(peer.llf, abs=1e-3)


def test_crossed_effects_of_the_reference_table(shared: Callable[[str], Any]) -> None:
    """The trap: one factor as `groups` in MixedLM takes the other as nested."""
    import json

    data = json.loads(shared("oracles/data/lmm.json").read_text())
    fit = ts.variance_components(data, factors=["scenario", "model"], fixed="cond", interactions=0)
    assert list(fit.variances.values()) == pytest.approx([0.40462, 0.08817, 0.30816], abs=5e-6)


@pytest.mark.parametrize("reml", [True, False])
def test_estimates_are_a_maximum(reml: bool) -> None:
    """Slopes vanish where variances are free, and push against 0 where not."""
    design = designed(crossed((9, 4, 3, 1), 8, keep=0.8, shares=(0.1, 0.0, 0.0)))
    fit = fitted(design, reml=reml)
    assert fit.converged
    assert not fit.free.all()  # this seed has a component at 0
    units = fit.likelihood.sums.scale**2
    slopes = Dense(design, fit.variances * units).slopes(reml=reml)
    assert slopes[fit.free] == pytest.approx(0, abs=1e-5)
    assert (slopes[~fit.free] > 0).all()
    assert fit.criterion == pytest.approx(Dense(design, fit.variances * units).criterion(reml=reml))


def test_small_variances_are_not_rounded_to_zero() -> None:
    """A component of a thousandth of the residual that the data do show."""
    rng = np.random.default_rng(9)
    s, r = 300, 400
    effect = rng.normal(size=s)
    effect = 0.06 * (effect - effect.mean()) / effect.std()
    noise = rng.normal(size=(s, r))
    data = {"scenario": np.repeat(np.arange(s), r), "score": (effect[:, None] + noise).ravel()}
    fit = ts.variance_components(data)
    assert not fit.singular
    low = fit.components[0].conf_low
    assert low is not None
    assert 0 < low < fit.variances["scenario"] < 0.006


@pytest.mark.parametrize("df_method", ["satterthwaite", "kenward-roger"])
def test_units_and_order_change_nothing(df_method: Literal["satterthwaite", "kenward-roger"]) -> None:
    data = crossed((8, 4, 3, 1), 10, keep=0.85)
    fit = ts.variance_components(data, fixed="condition", df_method=df_method)
    order = np.random.default_rng(1).permutation(len(data["score"]))
    moved = {name: [data[name][i] for i in order] for name in ("scenario", "model", "condition")}
    moved["scenario"] = [f"z{name[::-1]}" for name in moved["scenario"]]
    moved["score"] = 3.0 - 50 * np.array(data["score"])[order]
    other = ts.variance_components(moved, fixed="condition", df_method=df_method)
    for name, value in fit.variances.items():
        assert other.variances[name] == pytest.approx(2500 * value, rel=1e-6, abs=1e-9)
    assert other.fixed.estimate[1:] == pytest.approx(-50 * fit.fixed.estimate[1:], rel=1e-6)
    df = len(data["score"]) - 3
    assert other.log_likelihood == pytest.approx(fit.log_likelihood - df * np.log(50), rel=ROUNDING)
    ours, theirs = fit.contrasts("condition"), other.contrasts("condition")
    assert theirs["df"].to_list() == pytest.approx(ours["df"].to_list(), rel=1e-5)
    assert theirs["p_value"].to_list() == pytest.approx(ours["p_value"].to_list(), rel=1e-5)


def test_satterthwaite_equals_second_differences_of_a_dense_likelihood() -> None:
    """lmerTest's way: Hessian of the criterion and gradient of the variance, here in log variances."""
    design = designed(crossed((8, 4, 3, 2), 6, keep=0.6), fixed="condition", interactions=["scenario:model"])
    fit = fitted(design)
    assert fit.free.all()
    logs = np.log(fit.variances * fit.likelihood.sums.scale**2)

    def criterion(at: Array) -> float:
        return Dense(design, np.exp(at)).criterion(reml=True)

    weights = np.array([0.0, 1.0, -1.0])

    def variance(at: Array) -> float:
        return float(weights @ Dense(design, np.exp(at)).covariance @ weights)

    n, h = len(logs), 2e-3
    unit = np.eye(n) * h
    hessian = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            corners = [criterion(logs + a * unit[i] + b * unit[j]) for a in (1, -1) for b in (1, -1)]
            hessian[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h * h)
    gradient = np.array([(variance(logs + u) - variance(logs - u)) / (2 * h) for u in unit])
    expected = 2 * variance(logs) ** 2 / (gradient @ (2 * np.linalg.inv(hessian)) @ gradient)
    found = fixed_effects(design, fit, "satterthwaite").combination(weights)
    assert found[2] == pytest.approx(expected, rel=DIFFERENCES)
    assert found[1] ** 2 == pytest.approx(variance(logs), rel=ROUNDING)


def test_kenward_roger_equals_its_definition_on_rows() -> None:
    """Sums over pairs of variances, with n x n matrices and the derivatives taken by differences."""
    design = designed(crossed((9, 5, 3, 2), 11, keep=0.6), fixed="condition", interactions=["scenario:model"])
    fit = fitted(design)
    variances = fit.variances * fit.likelihood.sums.scale**2
    dense = Dense(design, variances)
    x, inverse, phi = dense.x, dense.inverse, dense.covariance
    information = np.array([[np.trace(dense.p @ a @ dense.p @ b) for b in dense.parts] for a in dense.parts])
    weights = 2 * np.linalg.inv(information)

    def precision(at: Array) -> Array:
        found: Array = np.linalg.inv(Dense(design, at).covariance)
        return found

    steps = np.diag(variances * 1e-4)
    pieces = [(precision(variances + s) - precision(variances - s)) / (2 * s.sum()) for s in steps]
    total = np.zeros_like(phi)
    for r, a in enumerate(dense.parts):
        for s, b in enumerate(dense.parts):
            cross = x.T @ inverse @ a @ inverse @ b @ inverse @ x
            total += weights[r, s] * (cross - pieces[r] @ phi @ pieces[s])
    found = kenward_roger(design, variances)
    assert found.weights == pytest.approx(weights, rel=ROUNDING)
    assert found.adjusted == pytest.approx(phi + 2 * phi @ total @ phi, rel=1e-6)
    assert (np.diag(found.adjusted) > np.diag(phi)).all()
    # For one contrast the degrees of freedom are Satterthwaite's with the expected information.
    contrast = np.array([0.0, 1.0, 0.0])
    slopes = np.array([-contrast @ phi @ piece @ phi @ contrast for piece in pieces])
    expected = 2 * (contrast @ phi @ contrast) ** 2 / (slopes @ weights @ slopes)
    fixed = fixed_effects(design, fit, "kenward-roger")
    assert fixed.combination(contrast)[2] == pytest.approx(expected, rel=1e-6)
    assert fixed.joint(contrast[None])[0] == pytest.approx(
        (fixed.estimate[1] / fixed.combination(contrast)[1]) ** 2, rel=1e-9
    )


def test_balanced_split_plot_has_exact_degrees_of_freedom() -> None:
    """Condition against scenario:condition: F(c - 1, (s - 1)(c - 1)) by all methods."""
    s, m, c = 10, 4, 3
    data = crossed((s, m, c, 1), 12)
    y = np.array(data["score"]).reshape(s, m, c, 1)
    f = mean_square(y, (2,))[0] / mean_square(y, (0, 2))[0]
    for method in ("satterthwaite", "kenward-roger"):
        fit = ts.variance_components(
            data,
            factors="scenario",
            fixed="condition",
            interactions=["scenario:condition"],
            df_method=method,  # type: ignore[arg-type]  # both are options
        )
        assert not fit.singular
        row = fit.f_tests().row(0, named=True)
        assert row["statistic"] == pytest.approx(f, rel=CONVERGED)
        assert row["df"] == pytest.approx((s - 1) * (c - 1), rel=1e-5)


def test_profile_ends_raise_the_criterion_by_the_quantile() -> None:
    design = designed(crossed((12, 5, 3, 1), 13, keep=0.85), fixed="condition")
    fit = fitted(design)
    ends = profile_ends(fit, 0.9)
    rise = 2.705543454095404  # chi-square(1), .9
    for place, (low, high) in enumerate(zip(ends.low, ends.high, strict=True)):
        assert low < fit.variances[place] < high or not fit.free[place]
        for end in (low, high):
            if end > 0:
                assert _profile(fit, place, end) - fit.standardised == pytest.approx(rise, abs=1e-3)
            else:
                assert _profile(fit, place, 0.0) - fit.standardised <= rise
    assert (ends.low > 0).sum() >= 3
    assert (ends.low == 0).any()


def _profile(fit: MixedFit, place: int, value: float) -> float:
    """The criterion with one variance held, by an optimiser with bounds, from several starts."""
    others = np.arange(len(fit.variances)) != place
    bounds = [(0.0, None)] * (len(fit.variances) - 1)
    if place < len(fit.variances) - 1:
        bounds[-1] = (1e-3, None)

    def function(free: Array) -> tuple[float, Array]:
        full = np.empty(len(others))
        full[others], full[place] = free, value
        criterion, slopes, _ = fit.likelihood.at(full)
        return criterion, slopes[others]

    starts = [fit.variances[others] + 0.01, np.full(others.sum(), 0.2)]
    ends = [
        optimize.minimize(
            function, s, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "maxiter": 500}
        )
        for s in starts
    ]
    return min(float(end.fun) for end in ends)


def test_satterthwaite_interval_of_a_residual_is_exact() -> None:
    """In a balanced one-way layout df v / sigma^2 is chi-square with g (m - 1) df."""
    from scipy import stats

    rng = np.random.default_rng(14)
    g, m = 12, 5
    y = rng.normal(size=(g, m)) + rng.normal(size=(g, 1))
    fit = fitted(designed({"scenario": np.repeat(np.arange(g), m), "score": y.ravel()}))
    ends = satterthwaite_ends(fit, 0.95)
    df = g * (m - 1)
    assert ends.low[-1] == pytest.approx(df * fit.variances[-1] / stats.chi2.isf(0.025, df), rel=1e-5)
    assert ends.high[-1] == pytest.approx(df * fit.variances[-1] / stats.chi2.ppf(0.025, df), rel=1e-5)


def test_descend_finds_the_minimum_of_rosenbrock() -> None:
    def function(point: Array) -> tuple[float, Array]:
        return float(optimize.rosen(point)), np.asarray(optimize.rosen_der(point))

    point, value, _ = descend(function, np.array([-1.2, 1.0, 0.5]), np.eye(3) * 0.1, tolerance=1e-14)
    assert point == pytest.approx(np.ones(3), abs=1e-5)
    assert value < 1e-12


def test_descend_starts_anew_where_the_guess_is_no_longer_definite() -> None:
    def function(point: Array) -> tuple[float, Array]:
        return float(point @ point), 2 * point

    point, _, _ = descend(function, np.array([3.0, -2.0]), -np.eye(2), tolerance=1e-16)
    assert point == pytest.approx(np.zeros(2), abs=1e-6)


def test_too_many_effects_are_refused(monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]) -> None:
    data = crossed((30, 20, 3, 1), 15, keep=0.5)
    monkeypatch.setattr(reml_blocks, "MOST_DENSE", 15)
    said = refusal(lambda: ts.variance_components(data))
    assert said == (
        "DesignError: 84 effects outside blocks of scenario (model, condition, model:condition) are more "
        "than the 15 that are solved at once; leave out an interaction, or name fewer factors"
    )
    monkeypatch.setattr(reml_blocks, "MOST_DENSE", 3_000)
    monkeypatch.setattr(reml_blocks, "MOST_NUMBERS", 1_000)
    said = refusal(lambda: ts.variance_components(data))
    assert "30 different blocks need" in said
    assert "more than the 1,000 that are held" in said
