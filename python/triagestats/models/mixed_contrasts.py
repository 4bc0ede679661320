"""Rows of results for fixed effects: coefficients, means of levels, contrasts of means, F tests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentError
from triagestats.models.mixed_fixed import FixedEffects
from triagestats.step_procedures import adjusted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Marginals = Mapping[str, tuple[tuple[str, ...], Array]]

__all__ = ["Adjustment", "coefficient_rows", "contrast_rows", "f_rows", "mean_rows"]

Adjustment = Literal["none", "holm", "tukey"]
Row = dict[str, Any]

_METHODS: Final = {
    "satterthwaite": "t with Satterthwaite's df",
    "kenward-roger": "t with Kenward and Roger's df and error",
    "normal": "normal",
}


def coefficient_rows(fixed: FixedEffects, conf_level: float) -> list[Row]:
    """One row a coefficient."""
    units = np.eye(len(fixed.names))
    return [
        {"estimand": "coefficient", "term": name, **_numbers(fixed, units[place], conf_level)}
        for place, name in enumerate(fixed.names)
    ]


def mean_rows(fixed: FixedEffects, marginals: Marginals, factor: str, conf_level: float) -> list[Row]:
    """One row a level: its mean, the other fixed factors with equal weight, covariates at their means.

    Raises
    ------
    ArgumentError
        If the factor is not among the fixed ones.
    """
    levels, weights = _marginal(marginals, factor)
    return [
        {"estimand": "mean", "term": f"{factor} = {level}", **_numbers(fixed, row, conf_level)}
        for level, row in zip(levels, weights, strict=True)
    ]


def contrast_rows(
    fixed: FixedEffects, marginals: Marginals, factor: str, adjust: Adjustment, conf_level: float
) -> list[Row]:
    """One row a pair of levels, the later minus the earlier.

    Raises
    ------
    ArgumentError
        If the factor is not among the fixed ones, or the adjustment is unknown.
    """
    valid_choice("adjust", adjust, Adjustment)
    levels, weights = _marginal(marginals, factor)
    rows = [
        {
            "estimand": "difference",
            "term": factor,
            "contrast": f"{levels[after]} - {levels[before]}",
            **_numbers(fixed, weights[after] - weights[before], conf_level),
        }
        for before, after in combinations(range(len(levels)), 2)
    ]
    known = [row for row in rows if row["p_value"] is not None]
    if adjust == "holm":
        for row, p in zip(
            known, adjusted(np.array([row["p_value"] for row in known]), "holm").tolist(), strict=True
        ):
            row["p_adjusted"] = p
    if adjust == "tukey":
        from scipy import stats

        for row in known:
            range_of_means = abs(row["statistic"]) * np.sqrt(2)
            row["p_adjusted"] = float(stats.studentized_range.sf(range_of_means, len(levels), row["df"]))
    if adjust != "none":
        for row in rows:
            row["method"] += f"; {adjust.capitalize()} over {len(known)} contrasts"
    return rows


def f_rows(fixed: FixedEffects, marginals: Marginals) -> list[Row]:
    """One row a fixed factor: F of no difference between its means."""
    from scipy import stats

    rows = []
    for factor, (_, weights) in marginals.items():
        row: Row = {"estimand": "means do not differ", "term": factor, "status": "undefined"}
        if np.isnan(weights).any():
            row["reason"] = "a combination of levels has no row, so that some means are not estimable"
        else:
            f, numerator, denominator = fixed.joint(weights[1:] - weights[:1])
            row |= {
                "statistic": f,
                "df": denominator,
                "p_value": float(stats.f.sf(f, numerator, denominator))
                if np.isfinite(denominator)
                else float(stats.chi2.sf(f * numerator, numerator)),
                "status": "ok",
                "method": f"F with {numerator} numerator df, {_METHODS[fixed.df_method].partition(' ')[2]}"
                if fixed.df_method != "normal"
                else f"chi-square with {numerator} df",
            }
        rows.append(row)
    return rows


def _numbers(fixed: FixedEffects, weights: Array, conf_level: float) -> Row:
    """Estimate, error, interval and test of a weighted sum of coefficients."""
    from scipy import stats

    method = _METHODS[fixed.df_method]
    if np.isnan(weights).any():
        return {
            "p_value": None,
            "status": "undefined",
            "reason": "not estimable: a combination of levels has no row",
            "method": method,
        }
    estimate, error, df = fixed.combination(weights)
    t = estimate / error
    reach = float(stats.t.isf((1 - conf_level) / 2, df)) * error
    return {
        "estimate": estimate,
        "std_error": error,
        "conf_low": estimate - reach,
        "conf_high": estimate + reach,
        "conf_level": conf_level,
        "statistic": t,
        "df": df,
        "p_value": float(2 * stats.t.sf(abs(t), df)),
        "status": "ok",
        "method": method,
    }


def _marginal(marginals: Marginals, factor: str) -> tuple[tuple[str, ...], Array]:
    if factor not in marginals:
        have = f"these are fixed: {list(marginals)}" if marginals else "no factor is fixed"
        raise ArgumentError(f"`factor` must be a fixed factor of the fit; got {factor!r}, and {have}")
    return marginals[factor]
