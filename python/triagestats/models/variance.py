"""variance_components: where the variance of scores sits, by restricted maximum likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.errors import DesignError
from triagestats.models.facets import read_facets
from triagestats.models.generalisability import RESIDUAL, Component, FactorSize
from triagestats.models.mixed_fixed import DfMethod, fixed_effects
from triagestats.models.random_terms import VarianceDesign, variance_design
from triagestats.models.reml import MixedFit, fit_variances
from triagestats.models.reml_blocks import sums_of
from triagestats.models.reml_evaluation import Likelihood
from triagestats.models.reml_profile import Ends, profile_ends, satterthwaite_ends
from triagestats.models.variance_notes import fit_notes, interval_notes
from triagestats.models.variance_result import MixedMethod, VarianceComponents, VarianceInterval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["variance_components"]

_MOST_WORK: Final = 4e8
"""Multiplications in one likelihood, a tenth of a second, above which `auto` does not compute profiles."""


def variance_components(
    data: object,
    *,
    factors: Sequence[str] | str | None = None,
    interactions: int | Sequence[str] | str = 2,
    nested: Sequence[str] | str = (),
    fixed: Sequence[str] | str = (),
    covariates: Sequence[str] | str = (),
    outcome: str | None = None,
    method: MixedMethod = "reml",
    interval: VarianceInterval = "auto",
    df_method: DfMethod = "satterthwaite",
    conf_level: float = defaults.CONF_LEVEL,
) -> VarianceComponents:
    r"""Variance of scores by scenario, model, condition, their interactions, and repetition.

    .. math::
        y = X\beta + \sum_t Z_t u_t + e, \quad u_t \sim N(0, \sigma_t^2 I), \quad e \sim N(0, \sigma_e^2 I)

    with one random term t for each factor and interaction, and the repetitions as the residual e. For 0/1
    scores this is a linear probability model: components are on the scale of the rate, and the residual
    holds the binomial noise.

    Parameters
    ----------
    data
        A table of any make, or a ResponseTable, in which the role names are columns. Rows without an outcome
        are left out; judges are averaged first, unless `judge` is a factor.
    factors
        The random factors: their levels are a sample of more. Default: those of scenario, model and condition
        that the table has.
    interactions
        The largest number of factors in an interaction, all of which are fitted (0 or 1: none), or a list
        such as `["scenario:model"]`.
    nested
        `pair/scenario` where the labels of scenarios mean something within a pair only; both are factors.
    fixed
        Factors whose levels are the only ones of interest, such as `condition`. Interactions of fixed
        factors alone are fixed, those with a random factor are random.
    covariates
        Columns of numbers that enter linearly.
    outcome
        The column that is explained. Default: the score.
    method
        `reml`, or `ml`, by which models with different fixed effects can be compared.
    interval
        Of the components. `profile`: where -2 log likelihood rises by the quantile of chi-square(1);
        `satterthwaite`: chi-square with df = 2 v^2 / Var(v); `none`. `auto`: profile, or `satterthwaite`
        where one likelihood takes more than 4e8 multiplications: profiles compute a hundred or more of them.
    df_method
        Of tests of fixed effects: `satterthwaite`, `kenward-roger` (for up to 2,500 combinations of levels;
        it also corrects the errors), or `normal`.
    conf_level
        Of all intervals.

    Returns
    -------
    VarianceComponents
        With `components`, `tidy()`, `icc`, `design_effect()`, `means(factor)`, `contrasts(factor)`,
        `f_tests()` and `generalisability(n_scenarios=..., ...)`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument names something that the table does not have, or has a value that cannot be used.
    DataError
        If a label is blank, or no row has an outcome.
    DesignError
        If the outcome does not vary, the model fits every row (the residual is below 1e-4 of what the fixed
        effects leave), a component cannot be told from another or from the residual, or the model is too
        large.

    Notes
    -----
    Assumes that effects are normal with one variance a term, and independent. The design may be unbalanced
    with missing cells. Estimates are at least 0; one at 0 is `singular`, which is no proof that there is no
    such variance. The criterion is that of lme4, with which log likelihoods agree. statsmodels' MixedLM fits
    crossed factors only as `vc_formula` within one group for all rows: with `groups` at one factor it takes
    the others as nested in it.

    A default interaction whose effects the data cannot tell from others or from the residual is left out
    with a note; one that was named is an error. A random factor with 6 levels or fewer gets a caution: its
    variance is hardly known, and declaring it `fixed` may be better.

    Profile intervals hold 0 where the data do. Satterthwaite's degrees of freedom use the curvature of the
    criterion as lmerTest does; F tests of several df are those of Fai and Cornelius. Kenward and Roger's use
    the expected information, as pbkrtest does.

    References
    ----------
    Bates, D., Maechler, M., Bolker, B. and Walker, S. (2015), Fitting Linear Mixed-Effects Models Using lme4,
    Journal of Statistical Software 67(1), doi:10.18637/jss.v067.i01.
    Fai, A. H.-T. and Cornelius, P. L. (1996), Approximate F-tests of multiple degree of freedom hypotheses
    in generalized least squares analyses of unbalanced split-plot experiments, Journal of Statistical
    Computation and Simulation 54(4):363-378, doi:10.1080/00949659608811740.
    Kenward, M. G. and Roger, J. H. (1997), Small Sample Inference for Fixed Effects from Restricted Maximum
    Likelihood, Biometrics 53(3):983-997, doi:10.2307/2533558.
    Kuznetsova, A., Brockhoff, P. B. and Christensen, R. H. B. (2017), lmerTest Package: Tests in Linear Mixed
    Effects Models, Journal of Statistical Software 82(13), doi:10.18637/jss.v082.i13.
    Satterthwaite, F. E. (1946), An Approximate Distribution of Estimates of Variance Components, Biometrics
    Bulletin 2(6):110-114, doi:10.2307/3002019.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.variance_components(ts.demo_table(), fixed="condition")
    >>> [part.name for part in fit.components]
    ['scenario', 'model', 'scenario:model', 'scenario:condition', 'model:condition', 'residual']
    >>> fit.generalisability(n_scenarios=[17, 100], n_models=5).frame["se_contrast"].round(3).to_list()
    [0.065, 0.029]
    """
    level = valid_level(conf_level)
    for name, value, options in (
        ("method", method, MixedMethod),
        ("interval", interval, VarianceInterval),
        ("df_method", df_method, DfMethod),
    ):
        valid_choice(name, value, options)
    if df_method == "kenward-roger" and method != "reml":
        raise DesignError(
            "Kenward and Roger's correction rests on method='reml'; use it, or another df_method"
        )
    read = read_facets(
        data, factors=factors, fixed=fixed, nested=nested, covariates=covariates, outcome=outcome
    )
    if np.ptp(read.y) == 0:
        value = read.y[0] + 0.0
        raise DesignError(f"`{read.outcome}` is {value:g} in every row: there is no variance to divide")
    design = variance_design(read, interactions)
    names = [effect.name for effect in design.effects]
    sums = sums_of(read.y, design.fixed.x, [effect.codes for effect in design.effects], names)
    fit = fit_variances(Likelihood(sums, method == "reml"), names)
    way, ends = _ends(fit, interval, level)
    components = _components(design, fit, ends)
    return VarianceComponents(
        components=components,
        fixed=fixed_effects(design, fit, df_method),
        factors={
            name: FactorSize(name, len(facet.levels), facet.random, facet.within, facet.role)
            for name, facet in design.facets.items()
        },
        marginals={
            name: (levels, design.fixed.marginal(name)) for name, levels in design.fixed.levels.items()
        },
        outcome=read.outcome,
        method=method,
        interval=way,
        conf_level=level,
        log_likelihood=-fit.criterion / 2,
        n_rows=len(read.y),
        n_missing=read.n_missing,
        n_repetitions=_repetitions(design),
        converged=fit.converged,
        notes=(
            *design.notes,
            *fit_notes(design, fit, components),
            *interval_notes(interval, way, components),
        ),
    )


def _ends(fit: MixedFit, interval: VarianceInterval, conf_level: float) -> tuple[VarianceInterval, Ends]:
    """Intervals in units of the standardised outcome, and what they are."""
    if interval == "auto":
        interval = "profile" if fit.likelihood.sums.work <= _MOST_WORK else "satterthwaite"
    if interval == "profile":
        return interval, profile_ends(fit, conf_level)
    if interval == "satterthwaite":
        return interval, satterthwaite_ends(fit, conf_level)
    nothing = np.full(len(fit.variances), math.nan)
    return interval, Ends(nothing, nothing, 0)


def _components(design: VarianceDesign, fit: MixedFit, ends: Ends) -> tuple[Component, ...]:
    units = fit.likelihood.sums.scale**2
    errors = np.sqrt(np.diag(fit.covariance)) * units
    total = float(fit.variances.sum())
    n = len(design.y)
    found = []
    for place, value in enumerate(fit.variances):
        effect = design.effects[place] if place < len(design.effects) else None
        low, high = float(ends.low[place]) * units, float(ends.high[place]) * units
        known = math.isfinite(low) and math.isfinite(high)
        found.append(
            Component(
                name=RESIDUAL if effect is None else effect.name,
                parts=() if effect is None else effect.parts,
                variance=float(value) * units,
                std_error=float(errors[place]) if fit.free[place] else None,
                conf_low=low if known else None,
                conf_high=high if known else None,
                share=float(value) / total,
                n_levels=n if effect is None else effect.n_levels,
                concentration=1 / n
                if effect is None
                else float(((np.bincount(effect.codes) / n) ** 2).sum()),
                singular=not bool(fit.free[place]),
            )
        )
    return tuple(found)


def _repetitions(design: VarianceDesign) -> float:
    """Harmonic mean of the rows in a combination of all factors."""
    return float(1 / (1 / np.bincount(design.cells)).mean())
