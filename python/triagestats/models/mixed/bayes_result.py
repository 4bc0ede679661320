"""BayesianMixedModel: a mixed model whose posterior was sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.arguments import valid_level, valid_margin
from triagestats.errors import ArgumentError
from triagestats.labels import counted
from triagestats.models.mixed.bayes_rows import Reading
from triagestats.models.mixed.checks import CheckedLevels, PredictiveCheck, predictive_check
from triagestats.models.mixed.diagnostics import Diagnostics
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.inference_data import inference_data
from triagestats.models.mixed.levels import best_levels, fixed_levels, new_levels
from triagestats.models.mixed.loo import LeaveOneOut, leave_one_out
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.prior_sensitivity import prior_sensitivity
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.profiles import Profiles
from triagestats.models.mixed.quantities import Quantity
from triagestats.models.mixed.shown import shown_rows
from triagestats.results import Note, Shown, as_json, tidy_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["BayesianMixedModel"]

_SAMPLERS: Final = {"native": "native NUTS", "pymc": "NUTS of PyMC", "nutpie": "NUTS of nutpie"}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BayesianMixedModel(Shown):
    """A mixed model whose posterior was sampled, with probabilities averaged over the population.

    Where `diagnostics` fail, the first line of the print says so, every row has the status `warning`, and
    verdicts are withheld.

    Attributes
    ----------
    formula
        As it was written.
    matrix, priors
        The cells and the priors.
    draws
        From the posterior.
    profiles
        What the probabilities are averaged over.
    quantities
        What is reported, each with its draws: averages, differences, coefficients, deviations, shares.
    diagnostics
        Whether the draws can be trusted.
    margin, higher_is_better
        For the verdicts.
    conf_level
        Level of the credible intervals, which are equal-tailed.
    seed
        Of what is drawn from the fit later.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> formula = "correct ~ condition + (1 | scenario) + (1 | scenario:condition)"
    >>> fit = ts.mixed(formula, ts.demo_table(), judge="judge_1", engine="bayes", draws=200, chains=2)
    >>> fit.details().select("term", "contrast").row(0)
    ('condition', 'letter - free_text')
    >>> fit.draws.effects[0].shape
    (2, 200, 17, 1)
    """

    formula: str
    matrix: MixedMatrix
    priors: Priors
    draws: Draws
    profiles: Profiles
    quantities: tuple[Quantity, ...]
    diagnostics: Diagnostics
    margin: float | None
    higher_is_better: bool
    conf_level: float
    seed: int
    notes: tuple[Note, ...]
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def family(self) -> str:
        """`binomial`, `ordinal` or `gaussian`."""
        return self.matrix.family

    @property
    def inference_data(self) -> Any:
        """The draws as `arviz.InferenceData`, made once; `as_inference_data` has choices.

        Raises
        ------
        ArgumentError
            If ArviZ is not installed.
        """
        if "inference_data" not in self._kept:
            self._kept["inference_data"] = self.as_inference_data()
        return self._kept["inference_data"]

    def as_inference_data(
        self, *, log_likelihood: bool | None = None, predictive: bool | None = None, prior: int = 500
    ) -> Any:
        """The draws as `arviz.InferenceData`.

        Parameters
        ----------
        log_likelihood, predictive
            Whether to add the log likelihood, and predicted outcomes, of each cell at each draw. Default:
            where these are at most 20 million numbers.
        prior
            Draws from the prior; 0 for none.

        Raises
        ------
        ArgumentError
            If ArviZ is not installed.
        """
        return inference_data(
            self.matrix,
            self.draws,
            self.priors,
            log_likelihood=log_likelihood,
            predictive=predictive,
            prior=prior,
            seed=self.seed,
        )

    def with_level(self, conf_level: float) -> BayesianMixedModel:
        """The same draws with intervals of another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def with_margin(self, margin: float | None) -> BayesianMixedModel:
        """The same draws read against another margin.

        Raises
        ------
        ArgumentError
            If `margin` is not positive.
        """
        return replace(self, margin=valid_margin(margin))

    def details(self) -> pl.DataFrame:
        """Posterior probabilities of each difference.

        Columns `estimand`, `term`, `contrast`, `p_above_zero`, `p_direction` (of the likelier sign),
        `p_better`, `p_within_margin`, `p_not_worse`; null where one does not apply.
        """
        return self._reading.details(self.quantities)

    def best(self, name: str = "model") -> pl.DataFrame:
        """The levels of a random part or of a regressor, best first, with their chance of being best.

        Parameters
        ----------
        name
            A random part such as `model`, or a regressor with levels.

        Returns
        -------
        polars.DataFrame
            `level`, `estimate` (its rate), `std_error`, `conf_low`, `conf_high`, `p_best`, `mean_rank`.

        Raises
        ------
        ArgumentError
            If it is neither.
        """
        shared: dict[str, Any] = {
            "higher_is_better": self.higher_is_better,
            "conf_level": self.conf_level,
        }
        random = [part.name for part in self.matrix.random]
        if name in random:
            return best_levels(self.matrix, self.draws, self.profiles, name, **shared)
        what = {"binomial": "probability", "gaussian": "mean", "ordinal": "mean level"}[self.family]
        found = [
            (quantity.condition or quantity.model or "", quantity.values.ravel())
            for quantity in self.quantities
            if quantity.estimand == f"population-averaged {what}"
            and quantity.term == name
            and quantity.contrast is None
        ]
        if not found:
            known = random + sorted({p.term for p in self.profiles.profiles[: self.profiles.shown] if p.term})
            raise ArgumentError(
                f"`name` must be a random part or a regressor with levels, {known}; got {name!r}"
            )
        labels, rates = zip(*found, strict=True)
        return fixed_levels(labels, np.stack(rates), **shared)

    def new_level(self, part: str = "scenario") -> pl.DataFrame:
        """Distribution of the rate of one new level, such as a new scenario, at each level of the regressors.

        Columns `term`, `condition`, `model`, `estimate` (its mean), `std_error`, `conf_low`, `median`,
        `conf_high`: an interval for the rate of a single new scenario, not of the average one.

        Raises
        ------
        ArgumentError
            If `part` is no random part.
        """
        return new_levels(
            self.matrix, self.draws, self.profiles, part, conf_level=self.conf_level, seed=self.seed
        )

    def predictive_check(
        self, *, levels: CheckedLevels = "observed", groups: Mapping[str, Any] | None = None
    ) -> PredictiveCheck:
        """Statistics of the data beside those of data that the model makes.

        Parameters
        ----------
        levels
            `observed`: new answers of the same scenarios and models; `new`: of new ones.
        groups
            By name, which cells belong to a group. Default: the patterns of regressors, up to 12.
        """
        return predictive_check(self.matrix, self.draws, levels=levels, groups=groups, seed=self.seed)

    def loo(self, unit: str | None = None) -> LeaveOneOut:
        """Leave-one-out cross-validation.

        Parameters
        ----------
        unit
            What is left out at once: a random part such as `scenario`, predicted as a new level; `cell`; or
            `row`. Default: the first random part, else `row`.

        Raises
        ------
        ArgumentError
            If it is none of these, or effects are nested in it that cannot be integrated.
        """
        chosen = unit or (self.matrix.random[0].name if self.matrix.random else "row")
        return leave_one_out(self.matrix, self.draws, unit=chosen, efficiency=self._efficiency)

    def prior_sensitivity(self) -> pl.DataFrame:
        """How much each quantity would change if the priors, or the data, weighed more or less.

        Columns `quantity`, `prior`, `prior of <kind>`, `likelihood`, `diagnosis`; 0.05 and more is sensitive.
        """
        return prior_sensitivity(self.matrix, self.draws, self.priors, self.quantities)

    def random_effects(self) -> pl.DataFrame:
        """The effects of the levels that were seen: one row a level and effect of each random part.

        Columns `part`, `level`, `effect`, `estimate` (posterior mean), `std_error`, `conf_low`, `conf_high`.
        """
        alpha = (1 - self.conf_level) / 2
        frames = []
        for part, effects in zip(self.matrix.random, self.draws.effects, strict=True):
            for place, effect in enumerate(part.z_names):
                values = effects[..., place].reshape(-1, part.n_levels)
                low, high = np.quantile(values, [alpha, 1 - alpha], axis=0)
                frames.append(
                    pl.DataFrame(
                        {
                            "part": part.name,
                            "level": part.levels,
                            "effect": effect,
                            "estimate": values.mean(axis=0),
                            "std_error": values.std(axis=0, ddof=1),
                            "conf_low": low,
                            "conf_high": high,
                        }
                    )
                )
        return pl.concat(frames) if frames else pl.DataFrame()

    def tidy(self) -> pl.DataFrame:
        """Averages and differences, thresholds, coefficients, deviations, correlations, variance shares."""
        return tidy_frame(self._reading.rows(self.quantities))

    def glance(self) -> pl.DataFrame:
        """One row: the size of the fit, and whether its draws can be trusted."""
        found, draws = self.diagnostics, self.draws
        return pl.DataFrame(
            {
                "family": [self.family],
                "engine": ["bayes"],
                "sampler": [draws.sampler],
                "n_rows": [self.matrix.n_rows],
                "n_cells": [len(self.matrix.y)],
                "n_chains": [draws.n_chains],
                "n_draws": [draws.n_draws],
                "n_tune": [draws.n_tune],
                "seconds": [draws.seconds],
                "ok": [found.ok],
                "worst_r_hat": [found.worst_r_hat],
                "least_ess_bulk": [found.least_bulk],
                "least_ess_tail": [found.least_tail],
                "divergences": [found.divergences],
                "conf_level": [self.conf_level],
                "margin": [self.margin],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"margin": pl.Float64},
        ).with_columns(pl.col("worst_r_hat", "least_ess_bulk", "least_ess_tail").fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """Estimates, probabilities, diagnostics, settings and notes as plain JSON values."""
        return as_json(
            self,
            formula=self.formula,
            priors=list(self.priors.described()),
            estimates=self.tidy(),
            details=self.details(),
            diagnostics=self.diagnostics.as_dict(),
        )

    @property
    def _reading(self) -> Reading:
        sampler = _SAMPLERS.get(self.draws.sampler, self.draws.sampler)
        return Reading(
            self.conf_level,
            self.margin,
            self.higher_is_better,
            self.diagnostics.failed,
            f"Bayesian {self.family} mixed model, {sampler}",
            self.matrix.n_rows,
        )

    @property
    def _efficiency(self) -> float:
        bulk = self.diagnostics.ess_bulk
        known = bulk[~np.isnan(bulk)]
        total = self.draws.n_chains * self.draws.n_draws
        return min(1.0, float(known.mean()) / total) if len(known) else 1.0

    def __repr__(self) -> str:
        matrix, draws, found = self.matrix, self.draws, self.diagnostics
        sizes = ", ".join(
            f"{':'.join(parts)} {counted(n, 'level')}"
            for parts, n in dict.fromkeys((part.parts, part.n_levels) for part in matrix.random)
        )
        lines = []
        if not found.ok:
            lines.append(f"NOT RELIABLE, verdicts withheld: {'; '.join(found.failed)}")
        sampler = _SAMPLERS.get(draws.sampler, draws.sampler)
        size = f"{matrix.n_rows:,} rows in {counted(len(matrix.y), 'cell')}; {sizes or 'no random effects'}"
        least = f"bulk {found.least_bulk:,.0f}, tail {found.least_tail:,.0f}"
        worst = f"worst R-hat {found.worst_r_hat:.3f}, smallest effective sample size {least}"
        lines += [
            f"Bayesian mixed model {self.formula}: {self.family}, {sampler}",
            f"  {size}; {draws.n_chains} x {draws.n_draws:,} draws",
            f"  {worst}; divergences {found.divergences}",
        ]
        lines += shown_rows(self.tidy(), self.conf_level)
        for row in self.details().iter_rows(named=True):
            if row["p_better"] is None:
                continue
            within = row["p_within_margin"]
            rest = "" if within is None else f", P(within +-{self.margin:g}) = {within:.3f}"
            lines.append(f"  {row['term']}: {row['contrast']}: P(> 0) = {row['p_above_zero']:.3f}{rest}")
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])
