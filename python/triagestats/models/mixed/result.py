"""MixedModel: a mixed model that was fitted by maximum likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from triagestats.arguments import valid_choice, valid_level
from triagestats.errors import ArgumentTypeError
from triagestats.labels import counted
from triagestats.models.mixed.estimate_rows import AverageAt, Rows
from triagestats.models.mixed.laplace import LaplaceFit
from triagestats.models.mixed.nested_models import Nested, likelihood_ratio
from triagestats.models.mixed.profiles import Profiles
from triagestats.models.mixed.read import MixedData
from triagestats.models.mixed.shown import shown_rows
from triagestats.results import Note, Shown, Test, as_json, tidy_frame

__all__ = ["MixedModel"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MixedModel(Shown):
    """A mixed model that was fitted by maximum likelihood, with probabilities averaged over the population.

    Attributes
    ----------
    data
        What was fitted: formula, cells, groupings.
    fit
        Parameters, their covariance matrix, the modes of the random effects, and the log-likelihood.
    profiles
        What the probabilities are averaged over.
    margin
        The smallest difference that matters, for the verdicts.
    higher_is_better
        Whether more of the outcome is better.
    conf_level
        Level of the intervals.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.mixed("correct ~ condition + (1 | scenario)", ts.demo_table(), judge="judge_1")
    >>> fit.tidy()["estimand"][0]
    'population-averaged probability'
    >>> fit.random_effects().height
    17
    """

    data: MixedData
    fit: LaplaceFit
    profiles: Profiles
    margin: float | None
    higher_is_better: bool
    conf_level: float
    notes: tuple[Note, ...]

    @property
    def family(self) -> str:
        """`binomial`, `ordinal` or `gaussian`."""
        return self.data.matrix.family

    @property
    def loglik(self) -> float:
        """The log-likelihood at the maximum, with all constants of single rows."""
        return self.fit.loglik

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 k - 2 log L; parameters of the random effects count among the k."""
        return 2 * self.fit.n_parameters - 2 * self.fit.loglik

    @property
    def bic(self) -> float:
        """The Bayesian criterion, k log n - 2 log L, with n the rows."""
        return self.fit.n_parameters * math.log(self.data.matrix.n_rows) - 2 * self.fit.loglik

    @property
    def singular(self) -> bool:
        """Whether the covariance matrix of some random part is singular, as with a variance of 0."""
        return any(self.fit.singular)

    @property
    def converged(self) -> bool:
        """Whether the gradient vanishes at the estimates."""
        return self.fit.converged

    @property
    def fit_method(self) -> str:
        """How the likelihood was maximised, in words."""
        if self.family == "gaussian":
            return "restricted maximum likelihood" if self.fit.reml else "maximum likelihood"
        return "Laplace" if self.fit.nodes == 1 else f"{self.fit.nodes}-node adaptive quadrature"

    def with_level(self, conf_level: float) -> MixedModel:
        """The same fit with intervals of another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def averages(self, at: AverageAt = "population") -> pl.DataFrame:
        """Predicted probabilities (means, for `gaussian`) by level of each regressor, and their differences.

        Parameters
        ----------
        at
            `population`: integrated over new levels of all random factors, such as new scenarios. `estimated
            effects`: averaged over the levels in the data at their predicted effects; these have no error
            here. `effects at zero`: for a scenario and a model of median difficulty, which is not the mean.
        """
        valid_choice("at", at, AverageAt)
        return tidy_frame(self._rows.averages(at))

    def random_effects(self) -> pl.DataFrame:
        """The predicted effects: one row a level and effect of each random part.

        Columns `part`, `level`, `effect`, `estimate` (the conditional mode), `std_error` (of the effect given
        the parameters), `conf_low`, `conf_high`.
        """
        width = float(stats.norm.isf((1 - self.conf_level) / 2))
        frames: list[pl.DataFrame] = []
        for part, modes, covariances in zip(
            self.data.matrix.random, self.fit.modes, self.fit.mode_variances, strict=True
        ):
            for place, effect in enumerate(part.z_names):
                frames.append(
                    pl.DataFrame(
                        {
                            "part": part.name,
                            "level": part.levels,
                            "effect": effect,
                            "estimate": modes[:, place],
                            "std_error": np.sqrt(covariances[:, place, place]),
                        }
                    )
                )
        schema: dict[str, pl.DataType] = {
            **dict.fromkeys(("part", "level", "effect"), pl.String()),
            **dict.fromkeys(("estimate", "std_error"), pl.Float64()),
        }
        return pl.concat([pl.DataFrame(schema=schema), *frames]).with_columns(
            (pl.col("estimate") - width * pl.col("std_error")).alias("conf_low"),
            (pl.col("estimate") + width * pl.col("std_error")).alias("conf_high"),
        )

    def likelihood_ratio(self, smaller: MixedModel) -> Test:
        r"""Likelihood ratio test against a model that this one contains.

        .. math::
            \chi^2 = 2 (\log L - \log L_0), \qquad \mathrm{df} = k - k_0

        Where the smaller model lacks one variance, that variance lies on the edge of its range under the
        hypothesis: p is half that of :math:`\chi^2_1` (Self and Liang 1987). Where it lacks several
        variances, or other terms besides, the p-value of :math:`\chi^2` is an upper bound, which a note says.
        A correlation alone has no such edge at 0.

        Parameters
        ----------
        smaller
            Fitted to the same rows, with fewer terms.

        Raises
        ------
        ArgumentTypeError
            If it is no model of `ts.mixed` with the Laplace engine.
        ArgumentError
            If it has other rows, another family or approximation, or no fewer parameters.

        References
        ----------
        Self, S. G. and Liang, K.-Y. (1987), Asymptotic properties of maximum likelihood estimators and
        likelihood ratio tests under nonstandard conditions, Journal of the American Statistical Association
        82(398):605-610, doi:10.1080/01621459.1987.10478472.
        """
        if not isinstance(smaller, MixedModel):
            raise ArgumentTypeError(f"`smaller` must be a MixedModel; got {type(smaller).__name__}")
        return likelihood_ratio(
            *(Nested(m.data.formula.text, m.data.matrix, m.fit, m.data.frame) for m in (self, smaller))
        )

    def tidy(self) -> pl.DataFrame:
        """Averages and their differences, then coefficients, thresholds, deviations and correlations."""
        rows = self._rows
        return tidy_frame([*rows.averages("population"), *rows.coefficients(), *rows.deviations()])

    def glance(self) -> pl.DataFrame:
        """One row: the size of the fit, its likelihood, and whether it converged."""
        matrix = self.data.matrix
        return pl.DataFrame(
            {
                "family": [self.family],
                "engine": ["laplace" if self.fit.nodes == 1 else "quadrature"],
                "nodes": [self.fit.nodes],
                "n_rows": [matrix.n_rows],
                "n_cells": [len(matrix.y)],
                "n_missing": [self.data.n_missing],
                "n_parameters": [self.fit.n_parameters],
                "log_likelihood": [self.loglik],
                "aic": [self.aic],
                "bic": [self.bic],
                "singular": [self.singular],
                "converged": [self.converged],
                "conf_level": [self.conf_level],
                "margin": [self.margin],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"margin": pl.Float64},
        )

    def to_dict(self) -> dict[str, Any]:
        """Estimates, predicted effects, settings and notes as plain JSON values."""
        return as_json(
            self, formula=self.data.formula.text, estimates=self.tidy(), random_effects=self.random_effects()
        )

    @property
    def _rows(self) -> Rows:
        return Rows(self.data, self.fit, self.profiles, self.margin, self.higher_is_better, self.conf_level)

    def __repr__(self) -> str:
        matrix = self.data.matrix
        sizes = ", ".join(
            f"{':'.join(parts)} {counted(n, 'level')}"
            for parts, n in dict.fromkeys((part.parts, part.n_levels) for part in matrix.random)
        )
        likelihood = f"log-likelihood {self.loglik:,.6g}, AIC {self.aic:,.6g}"
        size = f"{matrix.n_rows:,} rows in {counted(len(matrix.y), 'cell')}; {sizes or 'no random effects'}"
        lines = [
            f"Mixed model {self.data.formula.text}: {self.family}, {self.fit_method}",
            f"  {size}; {likelihood}, {self.fit.n_parameters} parameters",
        ]
        if not self.converged:
            lines.insert(0, f"NOT CONVERGED: {self.fit.message}")
        lines += shown_rows(self.tidy(), self.conf_level)
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])
