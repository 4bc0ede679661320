"""The rows of `tidy()` of a mixed model that was fitted by maximum likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.models.mixed.averages import At, Average, Parameters, averages, estimated_averages
from triagestats.models.mixed.deviations import deviations
from triagestats.models.mixed.laplace import LaplaceFit
from triagestats.models.mixed.profiles import Profiles, profiles_of
from triagestats.models.mixed.read import MixedData
from triagestats.models.mixed.wald import row_of, verdict_of
from triagestats.roles import role_spelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["COEFFICIENTS", "AverageAt", "Rows", "named_quantity", "placed"]

AverageAt = Literal["population", "estimated effects", "effects at zero"]

_AVERAGED: Final[dict[str, str]] = {
    "population": "population-averaged {}",
    "estimated effects": "{} at the estimated effects",
    "effects at zero": "{} at random effects of zero",
}
COEFFICIENTS: Final = {"binomial": "log odds", "ordinal": "log cumulative odds", "gaussian": "coefficient"}
"""What a coefficient is called."""


def named_quantity(average: Average, at: AverageAt = "population") -> str:
    """The estimand of an average, such as `population-averaged probability`."""
    return _AVERAGED[at].format(average.quantity)


def placed(average: Average) -> dict[str, Any]:
    """The columns that say what an average is of."""
    if average.term is None:
        return {}
    if average.difference:
        return {"term": average.term, "contrast": average.label}
    column = "model" if role_spelled(average.term) == "model" else "condition"
    return {"term": average.term, column: average.label}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A fit, and how its estimates are read."""

    data: MixedData
    fit: LaplaceFit
    profiles: Profiles
    margin: float | None
    higher_is_better: bool
    conf_level: float

    def averages(self, at: AverageAt) -> Iterator[dict[str, Any]]:
        """Averages by level, then their differences."""
        fit, matrix = self.fit, self.data.matrix
        parameters = Parameters(fit.thresholds, fit.coefficients, fit.factors)
        if at == "estimated effects":
            cells = profiles_of(self.data, collapse=False)
            for average in estimated_averages(matrix, cells, parameters, fit.modes):
                yield self._row(named_quantity(average, at), average.estimate, {}) | placed(average)
            return
        place: At = "zero" if at == "effects at zero" else "population"
        for average in averages(matrix, self.profiles, parameters, at=place):
            variance = self._variance(average.gradient)
            inside = matrix.family != "gaussian" and not average.difference
            numbers = row_of(
                average.estimate,
                variance,
                self.conf_level,
                scale="logit" if inside else "identity",
                tested=average.difference,
            )
            oriented = average.difference and average.quantity in ("probability", "mean")
            if oriented and fit.converged:
                numbers["verdict"] = verdict_of(
                    average.estimate,
                    variance,
                    self.conf_level,
                    self.margin,
                    higher_is_better=self.higher_is_better,
                )
            yield self._row(named_quantity(average, at), average.estimate, numbers) | placed(average)

    def coefficients(self) -> Iterator[dict[str, Any]]:
        """Thresholds and coefficients, on the scale of the linear predictor."""
        matrix, fit = self.data.matrix, self.fit
        names = [f"{low}|{high}" for low, high in zip(matrix.levels, matrix.levels[1:], strict=False)]
        variances = np.diag(fit.vcov)
        values = np.concatenate([fit.thresholds, fit.coefficients])
        for place, name in enumerate([*names, *matrix.terms]):
            is_threshold = place < len(names)
            estimand = "threshold" if is_threshold else COEFFICIENTS[matrix.family]
            value = float(values[place])
            numbers = row_of(value, float(variances[place]), self.conf_level, tested=not is_threshold)
            yield self._row(estimand, value, numbers) | {
                "term": name,
                "contrast": self.data.columns.contrasts.get(name),
            }

    def deviations(self) -> Iterator[dict[str, Any]]:
        """Standard deviations and correlations of the random effects, and of the residual."""
        start = len(self.fit.thresholds) + len(self.fit.coefficients)
        for found in deviations(self.data.matrix, self.fit.factors):
            gradient = np.concatenate([np.zeros(start), found.gradient])
            numbers = row_of(
                found.estimate,
                self._variance(gradient),
                self.conf_level,
                scale="log" if found.kind == "standard deviation" else "atanh",
                tested=False,
            )
            row = self._row(found.kind, found.estimate, numbers)
            if found.kind == "standard deviation" and found.estimate == 0:
                row |= {"status": "singular", "reason": "the estimate is at the boundary 0"}
            yield row | {"term": found.term, "n_clusters": found.n_levels}
        if self.fit.sigma is not None:
            variance = float(self.fit.vcov[-1, -1])
            numbers = row_of(self.fit.sigma, variance, self.conf_level, scale="log", tested=False)
            yield self._row("standard deviation", self.fit.sigma, numbers) | {"term": "residual"}

    def _variance(self, gradient: Any) -> float:
        """By the delta method; parameters on the boundary are taken as known."""
        known = np.nan_to_num(self.fit.vcov[: len(gradient), : len(gradient)])
        return float(gradient @ known @ gradient)

    def _row(self, estimand: str, estimate: float, numbers: dict[str, Any]) -> dict[str, Any]:
        matrix, fit = self.data.matrix, self.fit
        way = {True: "Laplace", False: f"{fit.nodes}-node adaptive quadrature"}[fit.nodes == 1]
        if matrix.family == "gaussian":
            way = "restricted maximum likelihood" if fit.reml else "maximum likelihood"
        status, reason = "ok", None
        if not fit.converged:
            status, reason = "warning", f"the fit did not converge: {fit.message}"
        elif "std_error" not in numbers:
            status, reason = "no error", "its error is not known"
        return {
            "estimand": estimand,
            "estimate": estimate,
            **numbers,
            "conf_level": self.conf_level if "conf_low" in numbers else None,
            "status": status,
            "reason": reason,
            "method": f"{matrix.family} mixed model, {way}; Wald z",
            "n_rows": matrix.n_rows,
        }
