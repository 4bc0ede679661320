"""ScenarioRegression: the result of a regression over scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats import intervals
from triagestats.arguments import valid_level
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.models.formula import INTERCEPT
from triagestats.models.least_squares import Fit, Vcov
from triagestats.models.targets import suggestion
from triagestats.results import Note, Shown, Test, as_json, tidy_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ScenarioModel", "ScenarioRegression"]

HIGH_INFLATION: Final = 10.0
"""Variance inflation from which a coefficient carries a warning."""


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioModel:
    """One fitted regression.

    Attributes
    ----------
    kind
        `alone`: one attribute; `joint`: all of them.
    terms
        Names of the coefficients, with those that were dropped.
    attributes
        The attribute of each term, None for the constant.
    places
        Place of each term among the fitted coefficients, None where it was dropped.
    reasons
        Why a term has no estimate or error, by name.
    inflation
        Variance inflation of each attribute in the joint model.
    fit
        The coefficients and their covariance.
    """

    kind: Literal["alone", "joint"]
    terms: tuple[str, ...]
    attributes: tuple[str | None, ...]
    places: tuple[int | None, ...]
    reasons: Mapping[str, str]
    inflation: Mapping[str, float]
    fit: Fit

    def numbers(self, term: str, level: float) -> dict[str, Any]:
        """Estimate, error, interval and test of one term, by glossary name."""
        place = self.places[self.terms.index(term)]
        if place is None:
            return {"status": "undefined", "reason": self.reasons[term]}
        weights = np.zeros(len(self.fit.coefficients))
        weights[place] = 1.0
        found = self.combined(weights, level)
        attribute = self.attributes[self.terms.index(term)]
        inflated = self.inflation.get(attribute or "", 1.0)
        if "std_error" not in found:
            degenerate = "the attributes predict the values without error, and so say nothing of it"
            reason = degenerate if self.fit.is_perfect else self.reasons.get(term)
            return found | {"status": "degenerate" if self.fit.is_perfect else "undefined", "reason": reason}
        if inflated > HIGH_INFLATION:
            doubt = f"the other attributes predict {attribute!r}: variance inflation {inflated:.3g}"
            return found | {"status": "warning", "reason": doubt}
        return found | {"status": "ok"}

    def combined(self, weights: Array, level: float) -> dict[str, Any]:
        """The same of a weighted sum of the fitted coefficients; its estimate alone where it has no error."""
        estimate = float(weights @ self.fit.coefficients)
        variance = float(weights @ self.fit.vcov @ weights)
        if self.fit.is_perfect or not variance > 0 or self.fit.decided_by(weights) is not None:
            return {"estimate": estimate, "conf_level": level}
        error, df = np.array([math.sqrt(variance)]), np.array([self.fit.df])
        ends = intervals.jackknife_t(np.array([estimate]), error, df, level)
        return {
            "estimate": estimate,
            "std_error": float(error[0]),
            "conf_low": float(ends.low[0]),
            "conf_high": float(ends.high[0]),
            "conf_level": level,
            "statistic": estimate / float(error[0]),
            "df": self.fit.df,
            "p_value": float(intervals.t_p_value(np.array([estimate]), error, df)[0]),
        }


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioRegression(Shown):
    """The value of an estimand in each scenario, regressed on attributes of the scenarios.

    Attributes
    ----------
    estimand, contrast
        What was regressed.
    model
        The model; None where all are averaged.
    alone
        The regression on each attribute alone.
    joint
        The regression on all of them; None for a single attribute, or where it was not asked for.
    scenarios
        One row a scenario that was used: `scenario`, its `cluster`, its `value`, and the attributes.
    vcov
        The robust covariance.
    cluster
        What a cluster is.
    n_clusters
        Clusters that were used.
    n_missing
        Scenarios that were left out.
    conf_level
        Level of the intervals.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = ts.demo_table()
    >>> words = {"scenario": table.frame["scenario"].unique().sort(), "words": range(17)}
    >>> fit = ts.scenario_regression(table, "words", scenarios=words)
    >>> fit.glance()["n_scenarios"][0], fit.tidy()["term"].to_list()
    (17, ['(Intercept)', 'words'])
    """

    estimand: str
    contrast: str
    model: str | None
    alone: tuple[ScenarioModel, ...]
    joint: ScenarioModel | None
    scenarios: pl.DataFrame
    vcov: Vcov
    cluster: str
    n_clusters: int
    n_missing: int
    conf_level: float
    notes: tuple[Note, ...]

    @property
    def full(self) -> ScenarioModel:
        """The joint model, or that of the only attribute."""
        return self.joint or self._only()

    def _only(self) -> ScenarioModel:
        if len(self.alone) == 1:
            return self.alone[0]
        raise ArgumentError("the joint model was not fitted; ask for it with `joint=True`")

    def with_level(self, conf_level: float) -> ScenarioRegression:
        """The same regression with intervals at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def joint_test(self, attribute: str | None = None) -> Test:
        """Wald test that all attributes, or the coefficients of one, are 0: `F = b' V^-1 b / q`.

        With F(q, df), where df is that of the t tests.

        Parameters
        ----------
        attribute
            One of the attributes; all where not given.

        Raises
        ------
        ArgumentError
            If it is none of them, or the joint model was not fitted.
        """
        from scipy.special import fdtrc

        model = self.full
        known = [name for name in dict.fromkeys(model.attributes) if name is not None]
        if attribute is not None and attribute not in known:
            raise ArgumentError(
                f"`attribute` must be one of {known}; got {attribute!r}{suggestion(str(attribute), known)}"
            )
        chosen = [
            place
            for place, of in zip(model.places, model.attributes, strict=True)
            if place is not None and of is not None and attribute in (None, of)
        ]
        b, v = model.fit.coefficients[chosen], model.fit.vcov[np.ix_(chosen, chosen)]
        statistic, p_value, why = None, None, None
        scale = np.sqrt(np.diag(v))
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.nan_to_num(v / np.outer(scale, scale))  # units of the attributes do not matter
        if not chosen:
            why = "no coefficient is left to test"
        elif model.fit.is_perfect:
            why = "the attributes predict the values without error"
        elif any(
            model.fit.decided_by(row) is not None for row in np.eye(len(model.fit.coefficients))[chosen]
        ):
            why = "the error of a coefficient is undefined: " + "; ".join(
                dict.fromkeys(model.reasons.values())
            )
        elif np.linalg.matrix_rank(alike, hermitian=True) < len(chosen):
            why = f"{self.n_clusters} clusters are too few for a joint test of {len(chosen)} coefficients"
        else:
            statistic = float(b / scale @ np.linalg.solve(alike, b / scale)) / len(chosen)
            p_value = float(fdtrc(len(chosen), model.fit.df, statistic))
        return Test(
            estimand=self.estimand,
            contrast=attribute or "all attributes",
            statistic=statistic,
            p_value=p_value,
            method=f"Wald F test of {len(chosen)} coefficient{'' if len(chosen) == 1 else 's'}, {self.vcov}",
            n=self.scenarios.height,
            details={"df_1": len(chosen), "df": model.fit.df, "n_clusters": self.n_clusters},
            notes=() if why is None else (Note("undefined", f"{why[0].upper()}{why[1:]}.", "caution"),),
        )

    def contrast_of(self, weights: Mapping[str, float]) -> Test:
        """A weighted sum of coefficients of the full model, such as the difference of two levels.

        Parameters
        ----------
        weights
            Weight of each coefficient by name, such as `{"ask[T.cause]": 1, "ask[T.other]": -1}`.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If a name is that of no coefficient, or a weight is no number.
        """
        model = self.full
        if not hasattr(weights, "items") or not weights:
            raise ArgumentTypeError("`weights` must map names of coefficients to numbers")
        row = np.zeros(len(model.fit.coefficients))
        for term, weight in weights.items():
            place = dict(zip(model.terms, model.places, strict=True)).get(term)
            if place is None:
                dropped = f", which was dropped: {model.reasons[term]}" if term in model.reasons else ""
                raise ArgumentError(
                    f"`weights` names {term!r}{dropped or suggestion(str(term), model.terms)}; the "
                    f"coefficients are {list(model.terms)}"
                )
            row[place] = float(weight)
        found = model.combined(row, self.conf_level)
        undefined = Note("undefined", "The error of a coefficient is undefined.", "caution")
        words = " ".join(f"{weight:+g} {term}" for term, weight in weights.items())
        return Test(
            estimand=self.estimand,
            contrast=words,
            estimate=found["estimate"],
            statistic=found.get("statistic"),
            p_value=found.get("p_value"),
            conf_low=found.get("conf_low"),
            conf_high=found.get("conf_high"),
            conf_level=self.conf_level,
            method=f"contrast of coefficients, {self.vcov}, t",
            n=self.scenarios.height,
            details={
                "std_error": found.get("std_error"),
                "df": model.fit.df,
                "n_clusters": self.n_clusters,
            },
            notes=() if "std_error" in found else (undefined,),
        )

    def tidy(self) -> pl.DataFrame:
        """One row a coefficient, those of each attribute alone first; `method` says which model it is."""
        models = (*self.alone, *([self.joint] if self.joint else []))
        return tidy_frame(
            {
                "estimand": self.estimand,
                "term": term,
                "model": self.model,
                "contrast": self.contrast,
                **model.numbers(term, self.conf_level),
                "method": f"{model.kind}; {self._method}",
                "n_rows": self.scenarios.height,
                "n_clusters": self.n_clusters,
                "n_missing": self.n_missing,
            }
            for model in models
            for term in model.terms
        )

    @property
    def _method(self) -> str:
        if self.vcov.startswith("HC"):
            return f"least squares over scenarios, {self.vcov}, t(n - k)"
        return f"least squares over scenarios, {self.vcov} by {self.cluster}, t({self.n_clusters - 1})"

    def glance(self) -> pl.DataFrame:
        """One row: what was regressed, and the joint test of all attributes."""
        whole = self.joint or (self.alone[0] if len(self.alone) == 1 else None)
        test = self.joint_test() if whole else None
        return pl.DataFrame(
            {
                "contrast": [self.contrast],
                "model": [self.model],
                "vcov": [self.vcov],
                "cluster": [self.cluster],
                "n_scenarios": [self.scenarios.height],
                "n_clusters": [self.n_clusters],
                "n_missing": [self.n_missing],
                "r_squared": [whole.fit.r_squared if whole else None],
                "statistic": [test.statistic if test else None],
                "df_1": [test.details["df_1"] if test else None],
                "df": [test.details["df"] if test else None],
                "p_value": [test.p_value if test else None],
                "conf_level": [self.conf_level],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={
                "model": pl.String,
                "r_squared": pl.Float64,
                "statistic": pl.Float64,
                "df_1": pl.Int64,
                "df": pl.Float64,
                "p_value": pl.Float64,
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Coefficients, settings and notes as plain JSON values."""
        return as_json(
            self,
            coefficients=self.tidy(),
            inflation=dict(self.joint.inflation) if self.joint else {},
        )

    def __repr__(self) -> str:
        who = "mean over models" if self.model is None else self.model
        lines = [f"{self.contrast} by scenario ({who}), {self.scenarios.height:,} scenarios, {self.vcov}"]
        for row in self.tidy().filter(pl.col("term") != INTERCEPT).iter_rows(named=True):
            kind = row["method"].partition(";")[0]
            if row["estimate"] is None:
                numbers = "no estimate"
            elif row["std_error"] is None:
                numbers = f"{row['estimate']:.4g}, no error"
            else:
                numbers = (
                    f"{row['estimate']:.4g}, {self.conf_level * 100:g} % [{row['conf_low']:.4g}, "
                    f"{row['conf_high']:.4g}], p = {row['p_value']:.3g}"
                )
            doubt = "" if row["reason"] is None else f"  ({row['reason']})"
            lines.append(f"  {row['term']} ({kind}): {numbers}{doubt}")
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])
