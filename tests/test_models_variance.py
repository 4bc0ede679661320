"""variance_components: factors, terms, results, designs, and what it refuses."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import triagestats as ts
from triagestats.simulate import simulate_scores

ROUNDING: Final = 1e-9
"""The same quantity by two formulas."""
SAME_MAXIMUM: Final = 1e-6
"""Two routes to one maximum."""
MONTE_CARLO: Final = 0.12
"""Four standard errors of a standard deviation over 600 draws."""

Array = NDArray[np.float64]
Table = dict[str, Any]
Refusal = Callable[[Callable[[], object]], str]


def scores(
    sizes: tuple[int, int, int, int], seed: int, *, keep: float = 1.0, names: str = "scenario model condition"
) -> Table:
    """Draw 0/1 scores with scenario, scenario:model and scenario:condition effects."""
    rng = np.random.default_rng(seed)
    s, m, c, r = np.indices(sizes).reshape(4, -1)
    kept = rng.random(len(s)) < keep
    s, m, c, r = s[kept], m[kept], c[kept], r[kept]
    rate = 0.6 + 0.2 * rng.normal(size=sizes[0])[s] + 0.1 * rng.normal(size=sizes[1])[m] - 0.05 * c
    rate += 0.15 * rng.normal(size=sizes[:2])[s, m] + 0.1 * rng.normal(size=(sizes[0], sizes[2]))[s, c]
    first, second, third = names.split()
    return {
        first: [f"s{i:03d}" for i in s],
        second: [f"m{i}" for i in m],
        third: ["abcdef"[i] for i in c],
        "repetition": r,
        "score": (rng.random(len(s)) < rate).astype(float),
    }


def normal(sizes: tuple[int, ...], seed: int, sds: tuple[float, ...]) -> Array:
    """Draw an array scenario x model x condition x repetition with the seven components and noise."""
    rng = np.random.default_rng(seed)
    y = np.zeros(sizes)
    for sd, axes in zip(sds, [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2, 3)], strict=True):
        shape = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
        y = y + sd * rng.normal(size=shape)
    return y


def as_table(y: Array) -> Table:
    index = np.indices(y.shape).reshape(y.ndim, -1)
    names = ("scenario", "model", "condition", "repetition")[: y.ndim]
    return dict(zip(names, index, strict=True)) | {"score": y.ravel()}


def codes(fit: ts.VarianceComponents) -> set[str]:
    return {note.code for note in fit.notes}


class TestTerms:
    def test_default_factors_and_all_two_way_interactions(self) -> None:
        fit = ts.variance_components(scores((10, 4, 3, 2), 1))
        assert [part.name for part in fit.components] == [
            "scenario",
            "model",
            "condition",
            "scenario:model",
            "scenario:condition",
            "model:condition",
            "residual",
        ]
        assert [part.n_levels for part in fit.components] == [10, 4, 3, 40, 30, 12, 240]
        assert fit.n_repetitions == 2

    def test_usual_spellings_are_recognised(self) -> None:
        data = scores((10, 4, 3, 2), 1, names="item llm voice")
        data["correct"] = data.pop("score")
        fit = ts.variance_components(data)
        assert list(fit.factors) == ["item", "llm", "voice"]
        assert fit.outcome == "correct"
        assert fit.generalisability(n_scenarios=20, n_models=2).frame["n_models"].to_list() == [2]

    def test_fixed_factors_and_their_interaction_are_fixed(self) -> None:
        data = scores((10, 4, 3, 2), 2)
        fit = ts.variance_components(data, fixed=["condition", "model"])
        assert [part.name for part in fit.components] == [
            "scenario",
            "scenario:condition",
            "scenario:model",
            "residual",
        ]
        assert fit.fixed.names == (
            "(Intercept)",
            "condition[T.b]",
            "condition[T.c]",
            "model[T.m1]",
            "model[T.m2]",
            "model[T.m3]",
            *(f"condition[T.{c}]:model[T.m{m}]" for c in "bc" for m in (1, 2, 3)),
        )

    def test_explicit_interactions(self) -> None:
        data = scores((10, 4, 3, 2), 2)
        fit = ts.variance_components(data, interactions="model:scenario", fixed="condition")
        assert [part.name for part in fit.components] == ["scenario", "model", "scenario:model", "residual"]
        assert ts.variance_components(data, interactions=[]).variances.keys() == {
            "scenario",
            "model",
            "condition",
            "residual",
        }

    def test_nested_labels_mean_something_within_their_pair_only(self) -> None:
        rng = np.random.default_rng(3)
        pair = np.repeat(np.arange(20), 6)
        scenario = np.tile(np.repeat([0, 1], 3), 20)
        y = rng.normal(size=20)[pair] + 0.7 * rng.normal(size=(20, 2))[pair, scenario] + rng.normal(size=120)
        data = {"pair": pair, "scenario": scenario, "score": y}
        fit = ts.variance_components(data, factors=[], nested="pair/scenario")
        assert [(part.name, part.n_levels) for part in fit.components] == [
            ("pair", 20),
            ("scenario", 40),
            ("residual", 120),
        ]
        other = ts.variance_components(
            data | {"unique": pair * 2 + scenario}, factors=["pair", "unique"], interactions=0
        )
        assert other.log_likelihood == pytest.approx(fit.log_likelihood, rel=ROUNDING)
        assert set(fit.icc) == {"pair", "pair, scenario"}
        crossed = ts.variance_components(
            data | {"model": np.tile([0, 1, 2], 40)}, factors="model", nested="pair/scenario"
        )
        assert [part.name for part in crossed.components] == [
            "pair",
            "scenario",
            "model",
            "pair:model",
            "residual",
        ]
        assert "scenario:model (each of its levels has one row, which is the residual)" in str(crossed.notes)

    def test_confounded_interactions_are_left_out_with_a_note(self) -> None:
        data = scores((10, 4, 1, 1), 4)
        fit = ts.variance_components(data)
        assert [part.name for part in fit.components] == ["scenario", "model", "residual"]
        messages = {note.code: note.message for note in fit.notes}
        assert messages["one_level"] == "Left out, since it has one level: condition."
        assert messages["confounded"] == (
            "Left out, since the data cannot show them: scenario:model (each of its levels has one row, "
            "which is the residual)."
        )
        assert "no_repetition" in messages

    def test_factors_that_are_nested_in_the_data(self) -> None:
        data = scores((12, 3, 2, 2), 5)
        data["task"] = [f"t{int(name[1:]) // 3}" for name in data["scenario"]]
        fit = ts.variance_components(data, factors=["task", "scenario"], interactions=2)
        assert [part.name for part in fit.components] == ["task", "scenario", "residual"]
        assert "task:scenario (its levels are those of scenario)" in str(fit.notes)

    def test_missing_outcomes_are_left_out(self) -> None:
        data = scores((10, 4, 3, 2), 6)
        kept = np.random.default_rng(1).random(240) < 0.8
        less = {name: np.array(values)[kept] for name, values in data.items()}
        data["score"] = [score if k else None for score, k in zip(data["score"], kept, strict=True)]
        fit = ts.variance_components(data)
        assert fit.n_missing == int((~kept).sum())
        assert "missing" in codes(fit)
        assert fit.log_likelihood == pytest.approx(ts.variance_components(less).log_likelihood, rel=ROUNDING)


class TestResponseTables:
    def test_judges_are_averaged_first(self) -> None:
        data = scores((10, 4, 2, 2), 7)
        rng = np.random.default_rng(8)
        rows = len(data["score"])
        judged = {name: np.repeat(values, 2) for name, values in data.items()}
        judged["judge"] = np.tile(["x", "y"], rows)
        judged["score"] = np.where(rng.random(2 * rows) < 0.8, judged["score"], 1 - judged["score"])
        table = ts.ResponseTable(judged)
        means = judged["score"].reshape(-1, 2).mean(axis=1)
        fit = ts.variance_components(table)
        assert fit.n_rows == rows
        assert "judges" in codes(fit)
        plain = ts.variance_components(data | {"score": means})
        assert fit.log_likelihood == pytest.approx(plain.log_likelihood, rel=ROUNDING)
        with_judges = ts.variance_components(table, factors=["scenario", "judge"])
        assert with_judges.n_rows == 2 * rows
        assert "judge" in with_judges.variances

    def test_several_conditions_are_factors_each(self) -> None:
        data = scores((10, 3, 4, 2), 9)
        data["voice"] = ["plain" if c in "ab" else "marked" for c in data["condition"]]
        data["format"] = ["text" if c in "ac" else "letter" for c in data.pop("condition")]
        table = ts.ResponseTable(data, condition=["voice", "format"])
        fit = ts.variance_components(table, fixed=["voice", "format"])
        assert list(fit.factors) == ["scenario", "model", "voice", "format"]
        assert fit.fixed.names[1:3] == ("voice[T.plain]", "format[T.text]")
        assert {"scenario:voice", "scenario:format"} <= set(fit.variances)

    def test_declared_order_and_former_names(self) -> None:
        data = scores((10, 3, 3, 2), 10, names="item llm condition")
        frame = pl.DataFrame(data).with_columns(pl.col("condition").cast(pl.Enum(["c", "a", "b"])))
        table = ts.ResponseTable(frame)
        fit = ts.variance_components(table, factors=["item", "llm"], fixed="condition")
        assert fit.fixed.names == ("(Intercept)", "condition[T.a]", "condition[T.b]")
        assert list(fit.factors) == ["scenario", "model", "condition"]
        assert fit.contrasts("condition")["contrast"].to_list() == ["a - c", "b - c", "b - a"]

    def test_variants_count_as_repetitions_and_are_said_to(self) -> None:
        fit = ts.variance_components(ts.demo_table(), fixed="condition")
        assert {"judges", "variants", "few_levels"} <= codes(fit)


class TestReadings:
    def test_one_way_layout(self) -> None:
        """Shares, correlation and design effect 1 + (m - 1) rho by hand."""
        y = np.random.default_rng(11).normal(size=(30, 5)) + np.random.default_rng(12).normal(size=(30, 1))
        fit = ts.variance_components({"scenario": np.repeat(np.arange(30), 5), "score": y.ravel()})
        between = 5 * y.mean(axis=1).var(ddof=1)
        within = float(((y - y.mean(axis=1, keepdims=True)) ** 2).sum()) / 120
        component = (between - within) / 5
        rho = component / (component + within)
        assert fit.icc == pytest.approx({"scenario": rho}, rel=SAME_MAXIMUM)
        assert [part.share for part in fit.components] == pytest.approx([rho, 1 - rho], rel=SAME_MAXIMUM)
        assert fit.design_effect() == pytest.approx(1 + 4 * rho, rel=SAME_MAXIMUM)
        assert fit.n_effective() == pytest.approx(150 / (1 + 4 * rho), rel=SAME_MAXIMUM)
        assert fit.design_effect(fixed="scenario") == pytest.approx(1)
        error = fit.generalisability().frame["se_rate"][0]
        assert error == pytest.approx((between / 150) ** 0.5, rel=SAME_MAXIMUM)

    def test_design_effect_of_unequal_clusters_is_the_variance_of_the_mean(self) -> None:
        data = scores((12, 4, 3, 2), 13, keep=0.5)
        fit = ts.variance_components(data)
        n = fit.n_rows
        variance = fit.variances["residual"] * np.eye(n)
        for part in fit.components[:-1]:
            labels = np.array(
                ["/".join(row) for row in zip(*(data[name] for name in part.parts), strict=True)]
            )
            variance += part.variance * (labels[:, None] == labels[None])
        of_mean = variance.sum() / n**2
        assert fit.design_effect() == pytest.approx(of_mean * n / fit.total, rel=ROUNDING)
        assert sum(part.share for part in fit.components) == pytest.approx(1)

    def test_correlations_add_what_is_shared(self) -> None:
        fit = ts.variance_components(scores((12, 4, 3, 3), 14))
        v = fit.variances
        assert list(fit.icc) == [
            "scenario",
            "model",
            "condition",
            "scenario, model",
            "scenario, condition",
            "model, condition",
            "scenario, model, condition",
        ]
        expected = (v["scenario"] + v["model"] + v["scenario:model"]) / fit.total
        assert fit.icc["scenario, model"] == pytest.approx(expected)
        assert fit.icc["scenario, model, condition"] == pytest.approx(1 - v["residual"] / fit.total)

    def test_tidy_glance_and_copies(self) -> None:
        fit = ts.variance_components(scores((12, 4, 3, 2), 15), fixed="condition", conf_level=0.9)
        tidy = fit.tidy()
        assert tidy.columns == ts.permutation_test([1, 2], [0, 1]).tidy().columns
        kinds = tidy["estimand"].unique(maintain_order=True).to_list()
        assert kinds == ["variance", "share of variance", "intraclass correlation", "coefficient"]
        variances = tidy.filter(pl.col("estimand") == "variance")
        assert variances["conf_level"].to_list() == [0.9] * 6
        inside = (variances["conf_low"] <= variances["estimate"]) & (
            variances["estimate"] <= variances["conf_high"]
        )
        assert inside.all()
        assert fit.glance().height == 1
        assert fit.glance()["n_parameters"][0] == 9
        again = pickle.loads(pickle.dumps(fit))
        assert again.tidy().equals(tidy)
        assert json.loads(json.dumps(fit.to_dict()))["settings"]["interval"] == "profile"
        assert fit.to_pandas().shape == tidy.shape

    def test_printed(self) -> None:
        data = as_table(normal((12, 5, 3, 2), 16, (1, 0.5, 0, 0.5, 0.4, 0.2, 1)))
        text = repr(ts.variance_components(data, fixed="condition"))
        lines = text.splitlines()
        assert lines[0] == (
            "Variance components of score: 360 rows (scenario 12, model 5, condition 3), restricted maximum "
            "likelihood"
        )
        assert lines[1].split() == [
            "term",
            "variance",
            "sd",
            "share",
            *["95", "%", "profile", "likelihood"],
            "levels",
        ]
        assert lines[8].split() == ["fixed", "effect", "estimate", "error", "95", "%", "interval", "df", "p"]
        assert "tell as much as" in text
        assert "note: Few levels to learn a variance from: model (5)." in text

    def test_singular_fit(self) -> None:
        """Groups that differ less than chance: the component is 0, flagged, with an upper end."""
        y = np.random.default_rng(17).normal(size=(20, 5))
        y -= y.mean(axis=1, keepdims=True)
        fit = ts.variance_components({"scenario": np.repeat(np.arange(20), 5), "score": y.ravel()})
        part = fit.components[0]
        assert (part.variance, part.std_error, part.conf_low, part.singular) == (0, None, 0, True)
        assert part.conf_high is not None
        assert 0 < part.conf_high < 0.1
        assert fit.variances["residual"] == pytest.approx(y.var(ddof=1))
        assert fit.tidy()["status"][0] == "singular"
        assert fit.converged
        assert "singular" in codes(fit)
        chi_square = ts.variance_components(
            {"scenario": np.repeat(np.arange(20), 5), "score": y.ravel()}, interval="satterthwaite"
        )
        assert chi_square.components[0].conf_high is None
        assert "no_interval" in codes(chi_square)

    def test_intervals_on_request(self) -> None:
        data = scores((15, 4, 2, 2), 18)
        none = ts.variance_components(data, fixed="condition", interval="none")
        assert all(part.conf_high is None for part in none.components)
        assert "no_interval" not in codes(none)
        assert ts.variance_components(data, fixed="condition").interval == "profile"

    def test_repetitions_that_agree_more_than_the_residual(self) -> None:
        """A joint interaction of all factors in the residual, which repetitions do not shrink."""
        rng = np.random.default_rng(19)
        y = normal((15, 4, 3, 1), 19, (1, 0.5, 0, 0.5, 0.4, 0.2, 1)) + 0.3 * rng.normal(size=(15, 4, 3, 3))
        fit = ts.variance_components(as_table(y))
        message = next(note.message for note in fit.notes if note.code == "residual")
        assert "Fit it with interactions=3." in message
        full = ts.variance_components(as_table(y), interactions=3)
        assert "residual" not in codes(full)
        assert full.variances["residual"] == pytest.approx(0.09, rel=0.2)
        assert "residual" not in codes(ts.variance_components(scores((15, 4, 3, 3), 20)))


class TestFixedEffects:
    def test_balanced_contrast_is_that_of_scenario_differences(self) -> None:
        """Mean difference with the error and df of a paired t-test over scenarios."""
        y = normal((14, 1, 2, 4), 21, (1, 0, 0, 0, 0.5, 0, 1))
        fit = ts.variance_components(
            as_table(y), factors="scenario", fixed="condition", interactions=["scenario:condition"]
        )
        assert not fit.singular
        gaps = y.mean(axis=(1, 3))[:, 1] - y.mean(axis=(1, 3))[:, 0]
        row = fit.contrasts("condition").row(0, named=True)
        assert row["estimate"] == pytest.approx(gaps.mean())
        assert row["std_error"] == pytest.approx(gaps.std(ddof=1) / 14**0.5, rel=SAME_MAXIMUM)
        assert row["df"] == pytest.approx(13, rel=1e-5)
        assert (row["term"], row["contrast"]) == ("condition", "1 - 0")

    def test_means_average_over_the_other_fixed_factor(self) -> None:
        data = scores((20, 3, 2, 1), 22, keep=0.7)
        fit = ts.variance_components(data, fixed=["condition", "model"], interactions=0)
        b = dict(zip(fit.fixed.names, fit.fixed.estimate, strict=True))
        means = fit.means("condition")["estimate"].to_list()
        models = (b["model[T.m1]"] + b["model[T.m2]"]) / 3
        assert means == pytest.approx(
            [b["(Intercept)"] + models, b["(Intercept)"] + models + b["condition[T.b]"]]
        )
        assert fit.f_tests()["term"].to_list() == ["condition", "model"]
        f = fit.f_tests().row(0, named=True)
        t = fit.contrasts("condition").row(0, named=True)
        assert f["statistic"] == pytest.approx(t["statistic"] ** 2)
        assert f["p_value"] == pytest.approx(t["p_value"])

    def test_adjusted_p_values(self) -> None:
        fit = ts.variance_components(scores((20, 3, 3, 1), 23), fixed="condition", df_method="normal")
        plain = fit.contrasts("condition")["p_value"].to_list()
        holm = fit.contrasts("condition", adjust="holm")["p_adjusted"].to_list()
        order = np.argsort(plain)
        stepped = np.maximum.accumulate(np.minimum(1, np.array([3, 2, 1]) * np.array(plain)[order]))
        assert np.array(holm)[order] == pytest.approx(stepped)
        tukey = fit.contrasts("condition", adjust="tukey")["p_adjusted"].to_list()
        assert all(p <= q <= 3 * p + 1e-9 for p, q in zip(plain, tukey, strict=True))
        row = fit.f_tests().row(0, named=True)
        assert row["method"] == "chi-square with 2 df"
        assert np.isinf(row["df"])

    def test_empty_cells_of_fixed_factors_leave_means_undefined(self) -> None:
        data = scores((20, 2, 3, 2), 24)
        kept = [not (m == "m1" and c == "c") for m, c in zip(data["model"], data["condition"], strict=True)]
        data = {name: np.array(values)[kept] for name, values in data.items()}
        fit = ts.variance_components(data, fixed=["condition", "model"])
        assert "collinear" in codes(fit)
        means = fit.means("condition")
        assert means["status"].to_list() == ["ok", "ok", "undefined"]
        assert means["estimate"][2] is None
        assert means["reason"][2] == "not estimable: a combination of levels has no row"
        assert fit.contrasts("condition", adjust="holm")["p_adjusted"].null_count() == 2
        assert fit.f_tests()["status"].to_list() == ["undefined", "undefined"]

    def test_covariates_enter_linearly(self) -> None:
        rng = np.random.default_rng(25)
        length = rng.normal(300, 50, size=40)
        y = 0.01 * length[:, None] + rng.normal(size=(40, 1)) + rng.normal(size=(40, 4))
        data = {
            "scenario": np.repeat(np.arange(40), 4),
            "length": np.repeat(length, 4),
            "score": y.ravel(),
        }
        fit = ts.variance_components(data, covariates="length")
        means = y.mean(axis=1)
        slope = np.polyfit(length, means, 1)[0]  # balanced: least squares on the means
        assert fit.fixed.names == ("(Intercept)", "length")
        assert fit.fixed.estimate[1] == pytest.approx(slope)
        assert fit.fixed.combination(np.array([0.0, 1.0]))[2] == pytest.approx(38, rel=1e-5)


class TestGeneralisability:
    def test_errors_of_the_observed_design_are_those_of_the_fit(self) -> None:
        y = normal((25, 6, 3, 2), 26, (1, 0.5, 0, 0.5, 0.4, 0.3, 1))
        fit = ts.variance_components(as_table(y), fixed="condition")
        assert not fit.singular
        row = fit.generalisability().frame.row(0, named=True)
        assert row["n_scenarios"] == 25
        assert row["n_models"] == 6
        assert row["n_repetitions"] == 2
        assert row["se_contrast"] == pytest.approx(
            fit.contrasts("condition")["std_error"][0], rel=SAME_MAXIMUM
        )
        assert row["se_rate"] == pytest.approx(fit.means("condition")["std_error"][0], rel=SAME_MAXIMUM)

    def test_formulas(self) -> None:
        y = normal((25, 6, 3, 2), 27, (1, 0.5, 0.4, 0.5, 0.4, 0.3, 1))
        fit = ts.variance_components(as_table(y))
        v = fit.variances
        found = fit.generalisability(
            n_scenarios=[10, 40], n_repetitions=[1, 5], n_models=2, fixed="model", measured="model"
        )
        assert found.frame.select("n_scenarios", "n_models", "n_repetitions").rows() == [
            (10, 2, 1),
            (10, 2, 5),
            (40, 2, 1),
            (40, 2, 5),
        ]
        for s, m, r, rate, contrast, relative, absolute, g, phi in found.frame.rows():
            noise = v["residual"] / (s * m * r)
            expected = (v["scenario"] + v["scenario:condition"] + v["scenario:model"] / m) / s + noise
            assert rate == pytest.approx(expected**0.5)
            expected = 2 * (v["scenario:condition"] / s + noise)
            assert contrast == pytest.approx(expected**0.5)
            delta = v["scenario:model"] / s + v["model:condition"] / 3 + v["residual"] / (s * 3 * r)
            assert relative**2 == pytest.approx(delta)
            assert absolute**2 == pytest.approx(
                delta + v["scenario"] / s + v["condition"] / 3 + v["scenario:condition"] / (3 * s)
            )
            assert g == pytest.approx(v["model"] / (v["model"] + relative**2))
            assert phi == pytest.approx(v["model"] / (v["model"] + absolute**2))
        random = fit.generalisability(n_scenarios=10, n_models=2, n_repetitions=1).frame.row(0, named=True)
        added = v["model"] / 2 + v["model:condition"] / 2
        assert random["se_rate"] ** 2 == pytest.approx(found.frame["se_rate"][0] ** 2 + added)
        added = 2 * v["model:condition"] / 2
        assert random["se_contrast"] ** 2 == pytest.approx(found.frame["se_contrast"][0] ** 2 + added)

    def test_coefficient_of_persons_by_items_is_cronbachs_alpha(self) -> None:
        y = normal((30, 8, 1, 1), 28, (1, 0.7, 0, 0, 0, 0, 1))[:, :, 0, 0]
        fit = ts.variance_components(as_table(y))
        k = y.shape[1]
        alpha = k / (k - 1) * (1 - y.var(axis=0, ddof=1).sum() / y.sum(axis=1).var(ddof=1))
        row = fit.generalisability(measured="scenario").frame.row(0, named=True)
        assert row["coefficient"] == pytest.approx(alpha, rel=SAME_MAXIMUM)
        assert row["dependability"] < row["coefficient"]
        assert row["se_contrast"] is None

    def test_fixed_factors_join_the_universe_score(self) -> None:
        y = normal((25, 6, 3, 2), 29, (1, 0.5, 0, 0.5, 0.4, 0.3, 1))
        fit = ts.variance_components(as_table(y), fixed="condition")
        v = fit.variances
        row = fit.generalisability(measured="model").frame.row(0, named=True)
        universe = v["model"] + v["model:condition"] / 3
        relative = v["scenario:model"] / 25 + v["residual"] / (25 * 3 * 2)
        assert row["coefficient"] == pytest.approx(universe / (universe + relative))

    def test_nested_scenarios_count_in_all(self) -> None:
        rng = np.random.default_rng(30)
        pair, scenario = np.repeat(np.arange(20), 12), np.tile(np.repeat([0, 1], 6), 20)
        model = np.tile([0, 1, 2], 80)
        y = rng.normal(size=20)[pair] + 0.7 * rng.normal(size=(20, 2))[pair, scenario] + rng.normal(size=240)
        data = {"pair": pair, "scenario": scenario, "model": model, "score": y}
        fit = ts.variance_components(
            data, factors="model", nested="pair/scenario", interactions=0, fixed="model"
        )
        found = fit.generalisability(n_scenarios=60, n_levels={"pair": 30}, contrast="model", n_repetitions=2)
        v = fit.variances
        row = found.frame.row(0, named=True)
        assert row["n_levels[pair]"] == 30
        assert row["se_rate"] ** 2 == pytest.approx(v["pair"] / 30 + v["scenario"] / 60 + v["residual"] / 120)
        assert row["se_contrast"] ** 2 == pytest.approx(2 * v["residual"] / 120)
        by_pair = fit.generalisability(contrast="pair", n_repetitions=1).frame.row(0, named=True)
        inside = v["scenario"] / 2 + v["residual"] / (2 * 3)
        assert by_pair["se_contrast"] ** 2 == pytest.approx(2 * inside)

    def test_errors_of_other_designs_against_simulation(self) -> None:
        """Components of one large table predict the spread of estimates over many small ones."""
        truth: dict[str, Any] = {
            "n_models": 3,
            "n_conditions": 2,
            "model_effects": [0.5, 0.0, -0.5],
            "condition_effects": [0.0, 0.4],
            "base_logit": 0.5,
            "scenario_condition_sd": 0.8,
        }
        large = simulate_scores(1500, n_repetitions=3, seed=1, **truth).scores
        fit = ts.variance_components(large, fixed=["model", "condition"], interactions=3, interval="none")
        row = fit.generalisability(n_scenarios=20, n_repetitions=2).frame.row(0, named=True)
        drawn = []
        for seed in range(600):
            small = simulate_scores(20, n_repetitions=2, seed=100 + seed, **truth).scores
            y = small["score"].to_numpy().reshape(20, 3, 2, 2).mean(axis=(0, 1, 3))
            drawn.append((y[0], y[1], y[1] - y[0]))
        spread = np.std(drawn, axis=0, ddof=1)
        assert row["se_rate"] == pytest.approx(np.mean(spread[:2]), rel=MONTE_CARLO)
        assert row["se_contrast"] == pytest.approx(spread[2], rel=MONTE_CARLO)

    def test_result_and_notes(self) -> None:
        fit = ts.variance_components(scores((15, 4, 2, 2), 31), fixed="condition")
        found = fit.generalisability(
            n_scenarios=range(10, 40, 10), n_models=np.array([4, 8]), measured="model"
        )
        assert found.frame.height == 6
        assert found.tidy().height == 36
        row = found.tidy().row(0, named=True)
        assert (row["estimand"], row["term"]) == ("rate", "n_scenarios = 10, n_models = 4, n_repetitions = 2")
        assert found.glance().row(0) == (6, "condition", "model", "condition", 1)
        assert len(json.loads(json.dumps(found.to_dict()))["designs"]) == 6
        assert found.to_pandas().shape == found.frame.shape
        assert "n_scenarios" in repr(found)
        assert "note: Levels taken as the only ones: condition." in repr(found)
        sized = fit.generalisability(n_models=2, fixed="model")
        assert {note.code for note in sized.notes} == {"fixed_size", "fixed"}
        alone = ts.variance_components(scores((15, 4, 1, 2), 31)).generalisability()
        assert alone.notes[0].code == "no_contrast"


def data_for_refusals() -> Table:
    return scores((10, 4, 3, 2), 40)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown column": (
        {"factors": ["scenaro", "model"]},
        "ArgumentError: `factors` names 'scenaro', which the data do not have. Did you mean 'scenario'?",
    ),
    "no such outcome": ({"outcome": "grade"}, "ArgumentError: `outcome` names 'grade'"),
    "no list": ({"factors": 3}, "ArgumentTypeError: `factors` must be a name or a list of names; got 3"),
    "twice": ({"factors": ["model", "model"]}, "ArgumentError: `factors` names something twice"),
    "factor and covariate": (
        {"covariates": "model"},
        "ArgumentError: `covariates` and the factors share ['model']; a column can be only one of them",
    ),
    "outcome and factor": (
        {"factors": ["score", "model"]},
        "ArgumentError: `outcome` is 'score', which is also a factor or covariate",
    ),
    "nothing random": (
        {"factors": "model", "fixed": "model"},
        "DesignError: no factor is random, so there is no variance to divide",
    ),
    "words for an order": (
        {"interactions": 1.5},
        "ArgumentTypeError: `interactions` must be the largest number of factors in one",
    ),
    "negative order": ({"interactions": -1}, "ArgumentError: `interactions` must be at least 0; got -1"),
    "unknown interaction": (
        {"interactions": ["scenario:judge"]},
        "ArgumentError: `interactions` must join two or more of the factors ['scenario', 'model', ",
    ),
    "interaction twice": (
        {"interactions": ["scenario:model", "model:scenario"]},
        "ArgumentError: `interactions` names something twice",
    ),
    "interaction of nested factors": (
        {"factors": "model", "nested": "condition/scenario", "interactions": ["condition:scenario"]},
        "ArgumentError: `interactions` has 'condition:scenario', but one of these is nested in another",
    ),
    "nested without an outer factor": (
        {"nested": "scenario"},
        "ArgumentError: `nested` must be like 'pair/scenario', the outer factor first; got 'scenario'",
    ),
    "nested twice": (
        {"nested": ["model/scenario", "condition/scenario"]},
        "ArgumentError: `nested` says twice what 'scenario' is nested in",
    ),
    "method": ({"method": "bayes"}, "ArgumentError: `method` must be one of 'reml', 'ml'; got 'bayes'"),
    "interval": ({"interval": "wald"}, "ArgumentError: `interval` must be one of 'auto', 'profile'"),
    "level": ({"conf_level": 95}, "ArgumentError: `conf_level` must lie between 0 and 1; got 95"),
    "correction without reml": (
        {"method": "ml", "df_method": "kenward-roger"},
        "DesignError: Kenward and Roger's correction rests on method='reml'",
    ),
    "each row a level": (
        {"factors": ["row"], "interactions": 0},
        "DesignError: the variance of row cannot be estimated: each of its levels has one row",
    ),
    "two names for one factor": (
        {"factors": ["scenario", "copy"]},
        "DesignError: the variance of copy cannot be estimated: its levels are those of scenario",
    ),
    "swallowed": (
        {"factors": ["scenario", "copy"], "fixed": "copy", "interactions": 0},
        "DesignError: the fixed effects determine every level of scenario, so that its variance cannot",
    ),
    "one level": (
        {"factors": ["scenario", "one"]},
        "DesignError: 'one' has one level, '1': nothing shows how levels differ. Leave it out",
    ),
    "constant": (
        {"outcome": "one"},
        "DesignError: `one` is 1 in every row: there is no variance to divide",
    ),
    "repetitions agree": (
        {"outcome": "agreed", "interactions": 3},
        "DesignError: the terms fit every row, so that the residual variance is 0",
    ),
    "fixed effects fit": (
        {"outcome": "level", "fixed": "condition"},
        "DesignError: the fixed effects fit every row: no variance is left to divide",
    ),
    "blank label": (
        {"factors": ["gaps", "model"]},
        "DataError: `gaps` is blank in 10 of 240 rows; fill it in, or drop these rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Refusal) -> None:
    arguments, message = REFUSED[case]
    data = data_for_refusals()
    n = len(data["score"])
    rng = np.random.default_rng(1)
    data |= {
        "row": np.arange(n),
        "copy": [name.upper() for name in data["scenario"]],
        "one": np.ones(n, dtype=int),
        "agreed": np.repeat(rng.normal(size=n // 2), 2),
        "level": ["abc".index(c) for c in data["condition"]],
        "gaps": [None if i < 10 else name for i, name in enumerate(data["scenario"])],
    }
    assert refusal(lambda: ts.variance_components(data, **arguments)).startswith(message)


def test_refused_tables(refusal: Refusal) -> None:
    data = data_for_refusals()
    assert refusal(lambda: ts.variance_components({"a": [1, 2], "score": [0, 1]})).startswith(
        "ArgumentError: `factors` must be named: no column is recognised as scenario, model or condition"
    )
    assert refusal(lambda: ts.variance_components(data | {"item": data["scenario"]})).startswith(
        "ArgumentError: `factors` must be named: the columns ['scenario', 'item'] could all be the scenario"
    )
    without = {name: values for name, values in data.items() if name != "score"}
    assert refusal(lambda: ts.variance_components(without)).startswith(
        "ArgumentError: `outcome` must be named: no column is a score"
    )
    assert refusal(lambda: ts.variance_components(without | {"passed": 1, "correct": 1})).startswith(
        "ArgumentError: `outcome` must be named: ['passed', 'correct'] could all be it"
    )
    single = {"scenario": ["a", "a"], "score": [0, 1]}
    assert refusal(lambda: ts.variance_components(single)) == (
        "DesignError: every factor has one level, so that no variance can be divided"
    )
    many = scores((60, 15, 3, 1), 41)
    assert refusal(
        lambda: ts.variance_components(many, fixed="condition", df_method="kenward-roger", interval="none")
    ).startswith("DesignError: Kenward and Roger's correction is computed for at most 2,500 combinations")


def test_refused_readings(refusal: Refusal) -> None:
    fit = ts.variance_components(data_for_refusals(), fixed="condition", interval="none")
    assert refusal(lambda: fit.means("model")) == (
        "ArgumentError: `factor` must be a fixed factor of the fit; got 'model', and these are fixed: "
        "['condition']"
    )
    assert refusal(lambda: fit.contrasts("condition", adjust="fdr")).startswith(  # type: ignore[arg-type]
        "ArgumentError: `adjust` must be one of 'none', 'holm', 'tukey'"
    )
    assert refusal(lambda: fit.design_effect(fixed="judge")).startswith(
        "ArgumentError: `fixed` names 'judge', which is no factor of the fit"
    )
    assert refusal(lambda: fit.generalisability(measured="judge")).startswith(
        "ArgumentError: `measured` names"
    )
    assert refusal(lambda: fit.generalisability(n_scenarios=0)).startswith(
        "ArgumentError: `n_scenarios` must be a whole number of at least 1"
    )
    assert refusal(lambda: fit.generalisability(n_repetitions="many")).startswith("ArgumentTypeError:")
    named = ts.variance_components(
        data_for_refusals(), factors=["model"], fixed="condition", interactions=0, interval="none"
    )
    assert refusal(lambda: named.generalisability(n_scenarios=3)).startswith(
        "ArgumentError: `n_scenarios` needs one factor that is the scenario"
    )


def test_large_models_get_chi_square_intervals_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    from triagestats.models import variance

    monkeypatch.setattr(variance, "_MOST_WORK", 10)
    fit = ts.variance_components(scores((12, 4, 2, 2), 42), fixed="condition")
    assert fit.interval == "satterthwaite"
    assert "interval" in codes(fit)
    asked = ts.variance_components(scores((12, 4, 2, 2), 42), fixed="condition", interval="profile")
    assert asked.interval == "profile"


def test_small_discrete_tables_end_at_a_maximum() -> None:
    """Ties put maxima at 0 with no slope, which must be 0 and not a small number without intervals."""
    singular = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = (int(rng.integers(3, 9)), int(rng.integers(2, 5)), int(rng.integers(1, 3)), 3)
        s, m, c, _ = np.indices(sizes).reshape(4, -1)
        data = {"scenario": s, "model": m, "condition": c, "score": rng.integers(0, 2, size=len(s))}
        fit = ts.variance_components(data, method="ml" if seed % 2 else "reml")
        assert fit.converged
        assert not {"no_interval", "not_converged"} & codes(fit)
        for part in fit.components:
            assert part.conf_low is not None
            assert part.conf_high is not None
            assert part.conf_low <= part.variance <= part.conf_high
            assert part.singular == (part.variance == 0)
        singular += fit.singular
    assert singular > 20


def test_numbers_of_levels_are_whole_and_named(refusal: Refusal) -> None:
    fit = ts.variance_components(ts.demo_table(), fixed="condition", interval="none")
    assert refusal(lambda: fit.generalisability(n_scenarios=0)) == (
        "ArgumentError: `n_scenarios` must be a whole number of at least 1, or several such as [50, 100]; "
        "got 0"
    )
    assert "`n_models` must be a whole number" in refusal(lambda: fit.generalisability(n_models=[3, 2.5]))
    assert "`n_repetitions` must be a whole" in refusal(lambda: fit.generalisability(n_repetitions=0.5))
    assert "`n_levels['scenario']` must be a whole" in refusal(
        lambda: fit.generalisability(n_levels={"scenario": 1.5})
    )
    assert "`n_scenarios` holds no value" in refusal(lambda: fit.generalisability(n_scenarios=[]))
    assert fit.generalisability(n_scenarios=20.0).frame["n_scenarios"].to_list() == [20.0]


def test_results_in_a_notebook() -> None:
    fit = ts.variance_components(ts.demo_table(), fixed="condition", interval="none")
    assert fit._repr_html_().startswith("<pre>Variance components of score: ")
    assert fit.generalisability()._repr_html_().startswith("<pre>Errors of other designs: ")


@pytest.mark.slow
def test_a_large_table_with_gaps_is_fast() -> None:
    """36,000 of 45,000 cells, profiles included: under 5 s of processor time."""
    rng = np.random.default_rng(20240601)
    base = rng.normal(0.6, 1.2, (1000, 1, 1)) + rng.normal(0, 0.5, (1, 15, 1)) + np.array([0.15, 0, -0.1])
    y = (rng.random((1000, 15, 3)) < 1 / (1 + np.exp(-base))).astype(float)
    kept = rng.permutation(y.size)[:36_000]
    scenario, model, condition = (axis.ravel()[kept] for axis in np.indices(y.shape))
    rows = {"scenario": scenario, "model": model.astype(str), "condition": condition.astype(str)}
    start = time.process_time()
    fit = ts.variance_components(rows | {"score": y.ravel()[kept]})
    assert time.process_time() - start < 5
    assert fit.interval == "profile"
