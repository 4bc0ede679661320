"""VarianceComponents: the result of `variance_components`, as tables, text and projections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from triagestats.errors import ArgumentError
from triagestats.models.generalisability import (
    RESIDUAL,
    Component,
    FactorSize,
    Generalisability,
    design_effect,
    generalisability,
)
from triagestats.models.mixed_contrasts import Adjustment, coefficient_rows, contrast_rows, f_rows, mean_rows
from triagestats.models.mixed_fixed import FixedEffects
from triagestats.results import Note, Shown, as_json, tidy_frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["MixedMethod", "VarianceComponents", "VarianceInterval"]

MixedMethod = Literal["reml", "ml"]
VarianceInterval = Literal["auto", "profile", "satterthwaite", "none"]

_INTERVALS: Final = {
    "profile": "profile likelihood",
    "satterthwaite": "chi-square with Satterthwaite's df",
    "none": "no interval",
}


@dataclass(frozen=True, slots=True, eq=False)
class VarianceComponents(Shown):
    """Variance components of a response table, and the fixed effects beside them.

    Attributes
    ----------
    components
        The random terms, the residual last.
    fixed
        Coefficients of the fixed effects with what their tests need.
    factors
        Factors by name, with their numbers of levels.
    marginals
        Levels and weights of the means of each fixed factor.
    outcome, method, interval, conf_level
        What was fitted, and how `conf_low` and `conf_high` were found.
    log_likelihood
        At the maximum; restricted for `reml`.
    n_rows
        Rows that were used.
    n_missing
        Rows left out since the outcome is missing.
    n_repetitions
        Harmonic mean of the rows in a combination of all factors.
    converged
        Whether the slopes vanish at the estimates, or push against the boundary 0.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.variance_components(ts.demo_table(), fixed="condition")
    >>> isinstance(fit, ts.VarianceComponents), round(fit.icc["scenario, model"], 2)
    (True, 0.15)
    >>> fit.contrasts("condition")["contrast"][0]
    'letter - free_text'
    """

    components: tuple[Component, ...]
    fixed: FixedEffects
    factors: Mapping[str, FactorSize]
    marginals: Mapping[str, tuple[tuple[str, ...], Array]]
    outcome: str
    method: MixedMethod
    interval: str
    conf_level: float
    log_likelihood: float
    n_rows: int
    n_missing: int
    n_repetitions: float
    converged: bool
    notes: tuple[Note, ...]

    @property
    def variances(self) -> dict[str, float]:
        """Estimates by term."""
        return {part.name: part.variance for part in self.components}

    @property
    def singular(self) -> bool:
        """Whether a component is at its boundary 0."""
        return any(part.singular for part in self.components)

    @property
    def total(self) -> float:
        """The sum of all components."""
        return sum(part.variance for part in self.components)

    @property
    def icc(self) -> dict[str, float]:
        """Correlation of two responses by what they share, as `scenario` or `scenario, model`.

        The components of terms whose factors are all shared, over the sum of all; the fixed effects count in
        neither. Everything shared is the reliability of one repetition.
        """
        found: dict[str, float] = {}
        seen: set[frozenset[str]] = {frozenset()}
        for size in range(1, len(self.factors) + 1):
            for names in combinations(self.factors, size):
                shared = set(names)
                if any(not set(self.factors[name].within) <= shared for name in names):
                    continue
                terms = [p for p in self.components if p.name != RESIDUAL and set(p.parts) <= shared]
                key = frozenset(part.name for part in terms)
                if key not in seen:
                    seen.add(key)
                    found[", ".join(names)] = sum(part.variance for part in terms) / self.total
        return found

    def design_effect(self, *, fixed: Sequence[str] | str = ()) -> float:
        """Variance of the mean of all rows, over what as many independent rows would give.

        Parameters
        ----------
        fixed
            Factors whose levels are taken as the only ones, beside those that were fitted as fixed.

        Raises
        ------
        ArgumentError
            If one is no factor of the fit.
        """
        named = [fixed] if isinstance(fixed, str) else list(fixed)
        unknown = [name for name in named if name not in self.factors]
        if unknown:
            raise ArgumentError(
                f"`fixed` names {unknown[0]!r}, which is no factor of the fit; these are {list(self.factors)}"
            )
        return design_effect(
            self.components, {*named, *(name for name, factor in self.factors.items() if not factor.random)}
        )

    def n_effective(self, *, fixed: Sequence[str] | str = ()) -> float:
        """Independent rows that would show the mean as well: rows over `design_effect`."""
        return self.n_rows / self.design_effect(fixed=fixed)

    def means(self, factor: str) -> pl.DataFrame:
        """Mean of each level of a fixed factor, the others with equal weight, as tidy rows."""
        return tidy_frame(mean_rows(self.fixed, self.marginals, factor, self.conf_level))

    def contrasts(self, factor: str, *, adjust: Adjustment = "none") -> pl.DataFrame:
        """Differences between means of a fixed factor as tidy rows, `p_adjusted` over its pairs.

        Parameters
        ----------
        factor
            A fixed factor.
        adjust
            `none`, `holm` or `tukey` (exact for equal errors, conservative otherwise).
        """
        return tidy_frame(contrast_rows(self.fixed, self.marginals, factor, adjust, self.conf_level))

    def f_tests(self) -> pl.DataFrame:
        """F test of each fixed factor: no difference between the means of its levels, as tidy rows."""
        return tidy_frame(f_rows(self.fixed, self.marginals))

    def generalisability(
        self,
        *,
        n_scenarios: object = None,
        n_repetitions: object = None,
        n_models: object = None,
        n_levels: Mapping[str, object] | None = None,
        contrast: str | None = None,
        measured: str | None = None,
        fixed: Sequence[str] | str | None = None,
    ) -> Generalisability:
        r"""Errors of a rate and of a contrast for other numbers of scenarios, repetitions and models.

        For a balanced design with :math:`n_f` levels of factor f, a rate is the mean for one level of the
        contrasted factor c (of all rows where there is none), and

        .. math::
            \mathrm{SE}^2(\text{rate}) = \sum_t \frac{\sigma^2_t}{\prod_{f \in t, f \ne c} n_f}
            + \frac{\sigma^2_e}{n_r \prod_{f \ne c} n_f}, \qquad
            \mathrm{SE}^2(\text{contrast}) = 2 \sum_{t \ni c} \frac{\sigma^2_t}{\prod_{f \in t, f \ne c} n_f}
            + \frac{2 \sigma^2_e}{n_r \prod_{f \ne c} n_f}

        over the terms t that hold a random factor other than c: both levels are seen on the same scenarios,
        so that terms without c cancel. With an object of measurement o (Brennan's p) the universe variance
        :math:`\tau` sums the terms of o and fixed factors, the relative error :math:`\sigma^2(\delta)` the
        other terms that hold o, the absolute error :math:`\sigma^2(\Delta)` also those that do not, each over
        its numbers of levels except that of o; the generalisability coefficient is
        :math:`\tau / (\tau + \sigma^2(\delta))`, the dependability :math:`\tau / (\tau + \sigma^2(\Delta))`.

        Parameters
        ----------
        n_scenarios, n_repetitions, n_models
            A number or several; every combination is a row. Default: as observed.
        n_levels
            The same for other factors by name; of a nested factor the number in all.
        contrast
            The factor whose levels are compared. Default: the condition, where there is one.
        measured
            The object of measurement, such as `model` to rank models. Errors are standard deviations.
        fixed
            Factors whose levels are taken as the only ones, beside those that were fitted as fixed.

        Returns
        -------
        Generalisability
            With `frame`, one row a design.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If a factor is not in the fit, or a number is below 1.

        Notes
        -----
        The components are taken as known: an error that rests on few levels is itself uncertain. Where the
        fit has no term of all factors, more repetitions are taken to shrink the whole residual.

        References
        ----------
        Brennan, R. L. (2001), Generalizability Theory, Springer, doi:10.1007/978-1-4757-3456-0.
        """
        by_role = {"scenario": n_scenarios, "model": n_models}
        numbers, arguments = dict(n_levels or {}), {}
        for role, value in by_role.items():
            if value is None:
                continue
            named = [name for name, factor in self.factors.items() if factor.role == role]
            if len(named) != 1:
                raise ArgumentError(
                    f"`n_{role}s` needs one factor that is the {role}; the factors are {list(self.factors)}. "
                    "Name it in `n_levels`"
                )
            numbers[named[0]], arguments[named[0]] = value, f"n_{role}s"
        return generalisability(
            self.components,
            self.factors,
            self.n_repetitions,
            numbers=numbers,
            arguments=arguments,
            n_repetitions=n_repetitions,
            contrast=contrast,
            measured=measured,
            fixed=fixed,
        )

    def tidy(self) -> pl.DataFrame:
        """One row an estimate: variances, shares, correlations and coefficients, by `estimand`."""
        label = _INTERVALS[self.interval]
        rows: list[dict[str, Any]] = []
        for part in self.components:
            rows.append(
                {
                    "estimand": "variance",
                    "term": part.name,
                    "estimate": part.variance,
                    "std_error": part.std_error,
                    "conf_low": part.conf_low,
                    "conf_high": part.conf_high,
                    "conf_level": None if part.conf_high is None else self.conf_level,
                    "status": "singular" if part.singular else "ok",
                    "reason": "the estimate is at the boundary 0" if part.singular else None,
                    "method": f"{self.method.upper()}; {label}",
                    "n_rows": self.n_rows,
                    "n_clusters": None if part.name == RESIDUAL else part.n_levels,
                }
            )
        shared = {"status": "ok", "method": self.method.upper(), "n_rows": self.n_rows}
        rows += [
            {"estimand": "share of variance", "term": part.name, "estimate": part.share, **shared}
            for part in self.components
        ]
        rows += [
            {"estimand": "intraclass correlation", "term": name, "estimate": value, **shared}
            for name, value in self.icc.items()
        ]
        rows += [{**row, "n_rows": self.n_rows} for row in coefficient_rows(self.fixed, self.conf_level)]
        return tidy_frame(rows)

    def glance(self) -> pl.DataFrame:
        """One row: the fit as a whole."""
        n_parameters = len(self.components) + len(self.fixed.names)
        return pl.DataFrame(
            {
                "n_rows": [self.n_rows],
                "n_missing": [self.n_missing],
                "method": [self.method],
                "log_likelihood": [self.log_likelihood],
                "n_parameters": [n_parameters],
                "aic": [2 * n_parameters - 2 * self.log_likelihood],
                "total_variance": [self.total],
                "design_effect": [self.design_effect()],
                "n_effective": [self.n_effective()],
                "singular": [self.singular],
                "converged": [self.converged],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Estimates, the fit as a whole, and notes as plain JSON values."""
        found = as_json(self, estimates=self.tidy())
        found["settings"] |= {"interval": self.interval, "conf_level": self.conf_level}
        return found

    def __repr__(self) -> str:
        sizes = ", ".join(f"{f.name} {f.n_levels:,}" for f in self.factors.values())
        way = "restricted" if self.method == "reml" else "full"
        lines = [
            f"Variance components of {self.outcome}: {self.n_rows:,} rows ({sizes}), {way} maximum likelihood"
        ]
        level = f"{self.conf_level * 100:g} %"
        cells = [("term", "variance", "sd", "share", f"{level} {_INTERVALS[self.interval]}", "levels")]
        for part in self.components:
            ends = "" if part.conf_high is None else f"[{part.conf_low:.4g}, {part.conf_high:.4g}]"
            cells.append(
                (
                    part.name,
                    f"{part.variance:.4g}",
                    f"{part.variance**0.5:.4g}",
                    f"{part.share * 100:.1f} %",
                    ends,
                    "" if part.name == RESIDUAL else f"{part.n_levels:,}",
                )
            )
        lines += _aligned(cells)
        cells = [("fixed effect", "estimate", "error", f"{level} interval", "df", "p")]
        for row in coefficient_rows(self.fixed, self.conf_level):
            cells.append(
                (
                    row["term"],
                    f"{row['estimate']:.4g}",
                    f"{row['std_error']:.4g}",
                    f"[{row['conf_low']:.4g}, {row['conf_high']:.4g}]",
                    f"{row['df']:.4g}",
                    f"{row['p_value']:.3g}",
                )
            )
        lines += _aligned(cells)
        lines.append(
            f"  design effect of the mean {self.design_effect():,.4g}: {self.n_rows:,} rows tell as much as "
            f"{self.n_effective():,.4g} independent ones; log likelihood {self.log_likelihood:,.6g}"
        )
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of text, the first column to the left and the others to the right."""
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    return [
        "  "
        + row[0].ljust(widths[0])
        + "".join(f"   {v.rjust(w)}" for v, w in zip(row[1:], widths[1:], strict=True))
        for row in cells
    ]
