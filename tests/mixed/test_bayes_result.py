"""BayesianMixedModel: what it reports of draws that are known, and what it withholds."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

from triagestats.errors import ArgumentError
from triagestats.models.mixed.bayes_fit import bayes_fit, bayes_result
from triagestats.models.mixed.bayes_result import BayesianMixedModel
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.loo import leave_one_out
from triagestats.models.mixed.matrix import Family, MixedMatrix
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.profiles import Comparison, Profile, Profiles
from triagestats.results import Note

Array = NDArray[np.float64]
Maker = Callable[..., MixedMatrix]
Drawer = Callable[..., Draws]

ROUNDING = 1e-12


def profiles(matrix: MixedMatrix) -> Profiles:
    """All cells, then the condition set to `a` and to `b`, and `b - a`."""
    weights = matrix.counts / matrix.counts.sum()

    def at(level: float | None) -> Profile:
        x = matrix.x.copy()
        if level is not None:
            x[:, -1] = level
        z = []
        for part in matrix.random:
            block = part.z.copy()
            if level is not None and part.width > 1:
                block[:, 1] = level
            z.append(block)
        label = "" if level is None else "ab"[int(level)]
        return Profile(None if level is None else "condition", label, x, tuple(z), weights)

    return Profiles((at(None), at(0.0), at(1.0)), 3, (Comparison("condition", "b - a", 2, 1),))


def result(matrix: MixedMatrix, draws: Draws, **settings: object) -> BayesianMixedModel:
    return bayes_result(
        matrix,
        Priors(),
        draws,
        profiles=profiles(matrix),
        formula="y ~ condition",
        **settings,  # type: ignore[arg-type]
    )


@pytest.fixture
def fit(crossed: Maker, independent: Drawer) -> BayesianMixedModel:
    matrix = crossed()
    return result(matrix, independent(matrix), margin=0.05)


def test_rows_summarise_the_draws(fit: BayesianMixedModel) -> None:
    tidy = fit.tidy()
    assert tidy["estimand"].unique(maintain_order=True).to_list() == [
        "population-averaged probability",
        "log odds",
        "standard deviation",
        "share of variance",
    ]
    row = tidy.filter(tidy["term"] == "condition[T.b]").row(0, named=True)
    values = fit.draws.coefficients[:, :, 1].ravel()
    assert row["estimate"] == pytest.approx(float(values.mean()), rel=ROUNDING)
    assert row["std_error"] == pytest.approx(float(values.std(ddof=1)), rel=ROUNDING)
    assert row["conf_low"] == pytest.approx(float(np.quantile(values, 0.025)), rel=ROUNDING)
    assert row["p_value"] is None
    difference = tidy.filter(tidy["contrast"] == "b - a").row(0, named=True)
    levels = tidy.filter(tidy["condition"].is_in(["a", "b"]))["estimate"]
    assert difference["estimate"] == pytest.approx(levels[1] - levels[0], rel=1e-9)


def test_verdicts_follow_margin_and_orientation(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed()
    draws = independent(matrix)
    far = replace(draws, coefficients=draws.coefficients * 0.1 + np.array([0.0, 2.0]))
    read = {
        up: result(matrix, far, higher_is_better=up).tidy().drop_nulls("contrast")["verdict"].to_list()
        for up in (True, False)
    }
    assert read == {True: ["better"], False: ["worse"]}
    near = replace(draws, coefficients=draws.coefficients * 0.01)
    assert result(matrix, near, margin=0.05).tidy().drop_nulls("contrast")["verdict"].to_list() == [
        "equivalent"
    ]


def test_details_are_shares_of_draws(fit: BayesianMixedModel) -> None:
    row = fit.details().row(0, named=True)
    values = next(q for q in fit.quantities if q.contrast == "b - a").values
    assert row["p_above_zero"] == float((values > 0).mean())
    assert row["p_direction"] == max(float((values > 0).mean()), float((values < 0).mean()))
    assert row["p_within_margin"] == float((np.abs(values) < 0.05).mean())
    assert row["p_better"] == row["p_above_zero"]
    assert fit.with_margin(None).details()["p_within_margin"].to_list() == [None]


def test_failed_diagnostics_come_first_and_withhold_verdicts(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed()
    draws = independent(matrix)
    diverging = draws.statistics["diverging"].copy()
    diverging[0, :3] = True
    fit = result(matrix, replace(draws, statistics={**draws.statistics, "diverging": diverging}), margin=0.05)
    first = repr(fit).splitlines()[0]
    assert first.startswith("NOT RELIABLE, verdicts withheld: 3 trajectories of 1,000 diverged")
    tidy = fit.tidy()
    assert tidy["verdict"].null_count() == tidy.height
    assert set(tidy["status"]) == {"warning"}
    assert fit.glance()["ok"].to_list() == [False]
    assert [note.level for note in fit.notes if note.code == "diagnostics"] == ["caution"]


def test_other_levels_reread_the_draws(fit: BayesianMixedModel) -> None:
    narrow, wide = (fit.with_level(level).tidy() for level in (0.5, 0.99))
    assert ((wide["conf_high"] - wide["conf_low"]) > (narrow["conf_high"] - narrow["conf_low"])).all()
    assert wide["estimate"].to_list() == narrow["estimate"].to_list()


def test_the_best_model_is_counted(fit: BayesianMixedModel) -> None:
    """The rate of a model rises with its effect, so the best model has the largest effect in each draw."""
    effects = fit.draws.effects[1][..., 0].reshape(-1, 3)
    shares = np.bincount(effects.argmax(axis=1), minlength=3) / len(effects)
    found = dict(fit.best("model").select("level", "p_best").iter_rows())
    assert found == pytest.approx({f"model{k}": float(share) for k, share in enumerate(shares)}, rel=ROUNDING)
    low = replace(fit, higher_is_better=False).best("model")
    shares = np.bincount(effects.argmin(axis=1), minlength=3) / len(effects)
    assert dict(low.select("level", "p_best").iter_rows())["model0"] == pytest.approx(float(shares[0]))
    assert fit.best("condition")["p_best"].sum() == pytest.approx(1.0)
    with pytest.raises(ArgumentError, match="`name` must be a random part or a regressor with levels"):
        fit.best("judge")


def test_a_new_scenario_is_less_certain_than_the_mean(fit: BayesianMixedModel) -> None:
    new = fit.new_level("scenario")
    mean = fit.tidy().filter(fit.tidy()["condition"] == "a").row(0, named=True)
    row = new.filter(new["condition"] == "a").row(0, named=True)
    assert row["std_error"] > 2 * mean["std_error"]
    with pytest.raises(
        ArgumentError, match=r"`part` must be a random part of the model, one of \['scenario', 'model'\]"
    ):
        fit.new_level("judge")


def test_sensitivity_has_a_row_a_quantity(fit: BayesianMixedModel) -> None:
    found = fit.prior_sensitivity()
    assert found["quantity"].to_list() == [quantity.name for quantity in fit.quantities]
    assert found.columns[:2] == ["quantity", "prior"]
    own = found.filter(found["quantity"] == "standard deviation, scenario").row(0, named=True)
    # The draws of a standard deviation move with its own prior, hardly with that of the coefficients.
    assert own["prior of sds"] > 10 * own["prior of coefficients"]


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
@pytest.mark.parametrize("slope", [False, True])
def test_every_family_reports(crossed: Maker, independent: Drawer, family: Family, slope: bool) -> None:
    matrix = crossed(family, slope=slope)
    fit = result(matrix, independent(matrix), margin=0.1, notes=(Note("n", "A note."),))
    tidy = fit.tidy()
    assert tidy["estimate"].null_count() == 0
    assert ("correlation" in tidy["estimand"].to_list()) is slope
    assert ("threshold" in tidy["estimand"].to_list()) is (family == "ordinal")
    assert fit.glance().height == 1
    assert fit.random_effects().height == 6 * (2 if slope else 1) + 3
    assert repr(fit).splitlines()[-2 if fit.diagnostics.ok else -1]
    json.dumps(fit.to_dict())
    again = pickle.loads(pickle.dumps(fit))
    assert again.tidy().equals(tidy)


def test_levels_of_an_ordinal_outcome_have_no_verdict(crossed: Maker, independent: Drawer) -> None:
    matrix = crossed("ordinal")
    fit = result(matrix, independent(matrix))
    rows = fit.tidy().drop_nulls("contrast")
    assert rows["estimand"].to_list() == [
        *(f"population-averaged probability of {level}" for level in "ABC"),
        "population-averaged mean level",
    ]
    assert rows["verdict"].null_count() == 4
    assert rows["estimate"][:3].sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("family", ["binomial", "ordinal", "gaussian"])
@pytest.mark.parametrize("slope", [False, True])
def test_inference_data_holds_what_arviz_needs(
    crossed: Maker, independent: Drawer, family: Family, slope: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells once a day of its coming refactoring
        pytest.importorskip("arviz")
    matrix = crossed(family, slope=slope)
    fit = result(matrix, independent(matrix, draws=100))
    data = fit.inference_data
    assert data is fit.inference_data
    posterior = data.posterior
    assert posterior["coefficients"].sel(term="condition[T.b]").to_numpy() == pytest.approx(
        fit.draws.coefficients[:, :, -1]
    )
    effects = posterior["effects_model"].sel(model="model2").to_numpy()
    assert effects == pytest.approx(fit.draws.effects[1][:, :, 2, 0])
    if slope:
        correlation = posterior["correlation_scenario"].to_numpy()
        np.testing.assert_allclose(np.diagonal(correlation, axis1=2, axis2=3), 1.0)
        assert np.abs(correlation).max() <= 1 + 1e-12
    assert data.log_likelihood["y"].shape == (4, 100, len(matrix.y))
    assert data.posterior_predictive["y"].shape == (4, 100, len(matrix.y))
    assert data.prior_predictive["y"].shape == (1, 500, len(matrix.y))
    assert data.observed_data["y"].to_numpy() == pytest.approx(matrix.y)
    assert {"coefficients", "sds"} <= set(data.log_prior.data_vars)
    assert data.sample_stats["diverging"].dtype == bool
    assert data.attrs["sampler"] == "native"
    bare = fit.as_inference_data(log_likelihood=False, predictive=False, prior=0)
    assert "log_likelihood" not in bare.groups()
    assert "prior" not in bare.groups()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, fit: BayesianMixedModel) -> None:
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(ArgumentError, match=r'pip install "triagestats\[bayes\]"'):
        fit.as_inference_data()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampler": "stan"}, "`sampler` must be one of 'auto', 'native', 'pymc', 'nutpie'; got 'stan'"),
        ({"draws": 4}, "`draws` must be a whole number, 8 or more; got 4"),
        ({"chains": 2.0}, "`chains` must be a whole number, 1 or more; got 2.0"),
        ({"target_accept": 1.0}, "`target_accept` must lie between 0 and 1; got 1"),
        ({"priors": Priors(sd={"judge": 1.0})}, "`sd` of the priors names 'judge', which is no random part"),
    ],
)
def test_bad_arguments_are_refused_before_sampling(
    crossed: Maker, settings: dict[str, object], message: str
) -> None:
    matrix = crossed()
    with pytest.raises(ArgumentError) as caught:
        bayes_fit(matrix, profiles=profiles(matrix), **settings)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_effects_that_were_thinned_are_used_with_their_draws(crossed: Maker, independent: Drawer) -> None:
    """Effects kept for every second, or fourth, draw give what the fourth part of all draws gives."""
    matrix = crossed()
    whole = independent(matrix)
    kept = replace(
        whole,
        effects=(whole.effects[0][:, ::2], whole.effects[1][:, ::4]),
        effects_every=(2, 4),
        interrupted=True,
    )
    fourth = replace(
        whole,
        coefficients=whole.coefficients[:, ::4],
        thresholds=whole.thresholds[:, ::4],
        factors=tuple(factor[:, ::4] for factor in whole.factors),
        effects=tuple(effects[:, ::4] for effects in whole.effects),
        statistics={name: values[:, ::4] for name, values in whole.statistics.items()},
    )
    one, other = result(matrix, kept), result(matrix, fourth)
    assert one.tidy()["estimate"].to_list() == result(matrix, whole).tidy()["estimate"].to_list()
    assert {"interrupted", "effects_thinned"} <= {note.code for note in one.notes}
    assert one.best("model").equals(other.best("model"))
    assert one.predictive_check().tidy().equals(other.predictive_check().tidy())
    assert_frame_equal(one.prior_sensitivity(), other.prior_sensitivity(), rel_tol=1e-6)
    for unit in ("scenario", "row"):
        settings = {"unit": unit, "efficiency": 1.0}
        left = [leave_one_out(fit.matrix, fit.draws, **settings).elpd for fit in (one, other)]  # type: ignore[arg-type]
        assert left[0] == pytest.approx(left[1], rel=ROUNDING)
