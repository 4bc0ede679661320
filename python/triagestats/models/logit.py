"""logit: a logit by generalised estimating equations, with average marginal effects."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.errors import ArgumentError, DataError, DesignError
from triagestats.labels import counted, n_rows
from triagestats.models.design_columns import columns_of, is_category, levels_in
from triagestats.models.formula import INTERCEPT, Formula, need_extra, parse_formula, refuse_random
from triagestats.models.linear_notes import constant_categories
from triagestats.models.logit_model import LogitModel
from triagestats.models.marginal import Effect, effects_of
from triagestats.models.matrix import ModelMatrix
from triagestats.models.model_data import ModelData, read_model_data
from triagestats.models.separation import Separation, separation_of
from triagestats.models.within import independent, n_levels, orthogonal
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["LogitModel", "logit"]

Correlation = Literal["exchangeable", "independence"]
Errors = Literal["robust", "bias-reduced"]

_MOST_STEPS: Final = 200
_FAR: Final = 10.0
"""Columns whose mean is more than so many standard deviations from 0 are centred."""


def logit(
    formula: str,
    data: object,
    *,
    cluster: str | None = None,
    correlation: Correlation = "exchangeable",
    vcov: Errors = "robust",
    conf_level: float = defaults.CONF_LEVEL,
) -> LogitModel:
    """Logit of clustered 0/1 outcomes, with average marginal effects on the scale of the probability.

    Generalised estimating equations for `logit P(y = 1) = x'b` with rows of a cluster equally correlated; the
    errors are those of the sandwich by cluster. The effect of a level l against the reference r is

        mean_i [p(x_i with l) - p(x_i with r)],

    that of a number `mean_i dp(x_i)/dx`, with errors by the delta method.

    Parameters
    ----------
    formula
        As in `lpm`, without absorbed fixed effects.
    data
        A table of any make, or a ResponseTable. The outcome is 0 or 1.
    cluster
        A column. Default: that of the ResponseTable, else the column recognised as the scenario.
    correlation
        What the equations take for the rows of a cluster; the errors hold for either.
    vcov
        `robust`: the sandwich, without small-sample factor. `bias-reduced`: that of Mancl and DeRouen, for
        few clusters.
    conf_level
        Level of the intervals.

    Returns
    -------
    LogitModel
        `tidy()` has the average marginal effects first, then the log odds.

    Raises
    ------
    ArgumentError
        If a name is not that of a column, or the formula absorbs fixed effects or has random terms.
    DataError
        If the outcome is not 0 or 1, or a cluster is missing.
    DesignError
        If there is one cluster, the outcome never varies, or every row is predicted for certain.

    Notes
    -----
    Effects are of the population, averaged over clusters, not those of one cluster as in a mixed model. The
    intervals are t with G - 1 degrees of freedom, where statsmodels takes the normal; with few clusters the
    robust errors are too small.

    Separation: where a level has a rate of 0 or 1, or a combination of regressors predicts rows for
    certain, coefficients are infinite. These are null; the others are fitted to the remaining rows. The
    effects are still known, but not the errors of those that such rows enter; `lpm` has them.

    The equations and errors are those of statsmodels' GEE. Fixed effects for every scenario would bias a
    logit, so that none are absorbed.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986), Longitudinal Data Analysis Using Generalized Linear Models,
    Biometrika 73(1):13-22, doi:10.1093/biomet/73.1.13.

    Mancl, L. A. and DeRouen, T. A. (2001), A Covariance Estimator for GEE with Improved Small-Sample
    Properties, Biometrics 57(1):126-134, doi:10.1111/j.0006-341X.2001.00126.x.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = {
    ...     "scenario": [s for s in "abcdefghijkl" for _ in range(2)],
    ...     "condition": ["forced", "free"] * 12,
    ...     "correct": [1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1],
    ... }
    >>> fit = ts.logit("correct ~ condition", rows)
    >>> effect = fit.tidy().row(0, named=True)
    >>> effect["contrast"], round(effect["estimate"], 4)
    ('free - forced', 0.1667)
    """
    valid_choice("correlation", correlation, Correlation)
    valid_choice("vcov", vcov, Errors)
    level = valid_level(conf_level)
    parsed = parse_formula(formula)
    _no_effects(parsed)
    rows = read_model_data(parsed, data, cluster=cluster)
    _check_rows(parsed, rows)
    columns = columns_of(parsed, rows.frame)
    if not columns.names:
        raise DesignError("`formula` has no regressors; name one on the right of ~")
    kept = independent(columns.values, columns.values)
    dropped = [name for name, keep in zip(columns.names, kept, strict=True) if not keep]
    x = columns.values[:, kept]
    matrix = ModelMatrix(
        y=rows.y,
        x=x,
        terms=tuple(name for name in columns.names if name not in dropped),
        absorbed=(),
        absorbed_names=(),
        weights=None,
        clusters=rows.clusters,
        cluster_names=rows.cluster_names,
    )
    # Columns of like size and small means: the search for separation and the equations lose no digits.
    turn = _standardising(x, matrix.terms)
    z = x @ turn
    separation = separation_of(z, rows.y)
    if separation.certain.all():
        raise DesignError(
            "`formula` predicts every row for certain, so that no coefficient is finite; use lpm, a paired "
            "test, or fewer regressors"
        )
    used = ~separation.certain
    fitted = _gee(rows.y[used], z[used] @ separation.basis, rows.clusters[0][used], correlation, vcov)
    b = separation.basis @ fitted.coefficients
    v = separation.basis @ fitted.vcov @ separation.basis.T

    def log_odds(at: Array) -> Array:
        standard = at @ turn
        odds: Array = standard @ b + separation.limits(standard)
        return odds

    effects = tuple(effects_of(parsed, rows.frame, columns, kept, log_odds, turn @ b))
    gradients = np.array([effect.gradient @ turn for effect in effects]).reshape(len(effects), len(b))
    identified = separation.identifies(turn)
    undefined = _undefined(matrix, identified, separation, effects)
    return LogitModel(
        formula=parsed.text,
        estimates=np.where(identified, turn @ b, np.nan),
        vcov=turn @ v @ turn.T,
        effects=effects,
        effects_vcov=gradients @ v @ gradients.T,
        undefined=undefined,
        matrix=matrix,
        contrasts=columns.contrasts,
        working_correlation=fitted.correlation,
        correlation=correlation,
        kind=vcov,
        n_missing=rows.n_missing,
        conf_level=level,
        notes=(
            *rows.notes,
            *constant_categories(columns).values(),
            *_notes(parsed, rows, matrix, dropped, fitted, given=cluster is not None),
            *_separated(matrix, separation, identified),
        ),
    )


def _standardising(x: Array, terms: Sequence[str]) -> Array:
    """A matrix that gives columns like sizes and, where there is a constant, small means; shape (k, k)."""
    means, spread = x.mean(axis=0), x.std(axis=0)
    constant = [term == INTERCEPT for term in terms]
    if not any(constant):
        return np.diag(1 / np.sqrt((x**2).mean(axis=0)))
    place = constant.index(True)
    spread[place] = 1.0
    turn = np.diag(1 / spread)
    far = np.abs(means) > _FAR * spread
    far[place] = False
    turn[place, far] = -means[far] / spread[far]
    return turn


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """What the estimating equations give."""

    coefficients: Array
    vcov: Array
    correlation: float
    converged: bool


def _gee(y: Array, x: Array, clusters: Codes, correlation: Correlation, kind: Errors) -> _Fitted:
    """Generalised estimating equations by statsmodels."""
    try:
        from statsmodels.genmod.cov_struct import Exchangeable, Independence
        from statsmodels.genmod.families import Binomial
        from statsmodels.genmod.generalized_estimating_equations import GEE
    except ImportError as error:
        raise need_extra(error, "statsmodels") from error
    # Orthonormal columns, so that near collinearity costs no digits in the equations.
    columns = orthogonal(x, x)
    turn = columns.inverse * np.sqrt(len(x))
    alone = len(np.unique(clusters)) == len(clusters)  # no pair of rows shows a correlation
    structure: Any = Independence() if alone or correlation == "independence" else Exchangeable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is noted
        fit = GEE(
            y, columns.basis * np.sqrt(len(x)), groups=clusters, family=Binomial(), cov_struct=structure
        ).fit(maxiter=_MOST_STEPS, ctol=1e-10, cov_type="robust" if kind == "robust" else "bias_reduced")
    return _Fitted(
        coefficients=turn @ np.asarray(fit.params, dtype=np.float64),
        vcov=turn @ np.asarray(fit.cov_params(), dtype=np.float64) @ turn.T,
        correlation=0.0 if isinstance(structure, Independence) else float(structure.dep_params),
        converged=bool(fit.converged),
    )


def _no_effects(formula: Formula) -> None:
    if formula.absorbed:
        raise ArgumentError(
            f"`formula` absorbs {' + '.join(formula.absorbed_names)}, which biases a logit; leave out what "
            "stands behind | (the errors respect the clusters without it), or use lpm"
        )
    refuse_random(
        formula,
        "this population-averaged logit",
        "leave it out (the errors respect the clusters without it)",
    )


def _check_rows(formula: Formula, rows: ModelData) -> None:
    if not set(np.unique(rows.y)) <= {0.0, 1.0}:
        raise DataError(
            f"`formula`: the outcome {formula.outcome!r} must be 0 or 1; got values from "
            f"{rows.y.min():g} to {rows.y.max():g}. lpm takes any numbers"
        )
    if rows.y.min() == rows.y.max():
        raise DesignError(
            f"`formula`: the outcome {formula.outcome!r} is {rows.y[0]:g} in every row, so that no "
            "coefficient is finite; see proportion_ci for its interval"
        )
    if len(rows.clusters) != 1:
        raise ArgumentError(
            "`cluster` must be one column"
            + ("; name it, as none is recognised as the scenario" if not rows.clusters else "")
        )


def _undefined(
    matrix: ModelMatrix, identified: NDArray[np.bool_], separation: Separation, effects: tuple[Effect, ...]
) -> dict[str, str]:
    """Coefficients and effects without an error, and why."""
    if not separation.certain.any():
        return {}
    why = "rows are predicted for certain (separation)"
    found = {
        term: f"{why}, so that the coefficient is not finite"
        for term, fine in zip(matrix.terms, identified, strict=True)
        if not fine
    }
    touched = [f"{effect.term}, {effect.contrast}" for effect in effects if effect.certain]
    return found | dict.fromkeys(touched, f"{why}, whose part of the error is not known")


def _notes(
    formula: Formula,
    rows: ModelData,
    matrix: ModelMatrix,
    dropped: list[str],
    fitted: _Fitted,
    *,
    given: bool,
) -> list[Note]:
    size = n_levels(matrix.clusters[0])
    name = matrix.cluster_names[0]
    notes = [] if given else [Note("cluster", f"The errors are clustered by {name}.")]
    notes.append(
        Note("convention", f"Sandwich by cluster without small-sample factor; t, df = {size - 1:,}.")
    )
    for term in dropped:
        message = f"{term} is left out: it is constant or a combination of the regressors before it."
        notes.append(Note("collinear", message, "caution"))
    if size < defaults.FEW_CLUSTERS:
        message = (
            f"{size} {name}: with fewer than {defaults.FEW_CLUSTERS} clusters robust errors are too small; "
            "see vcov='bias-reduced', or wild_bootstrap of an lpm."
        )
        notes.append(Note("few_clusters", message, "caution"))
    if len(matrix.terms) > size - 1:
        message = (
            f"{counted(len(matrix.terms), 'coefficient')} and {counted(size, 'cluster')}: the errors are not "
            "to be trusted."
        )
        notes.append(Note("many_regressors", message, "caution"))
    if not fitted.converged:
        message = f"The equations did not converge in {_MOST_STEPS} steps: do not use these numbers."
        notes.append(Note("convergence", message, "caution"))
    for column in formula.regressors:
        if is_category(rows.frame[column]):
            notes += _constant_levels(column, rows)
    return notes


def _separated(matrix: ModelMatrix, separation: Separation, identified: NDArray[np.bool_]) -> list[Note]:
    """A note where rows are predicted for certain."""
    if not separation.certain.any():
        return []
    infinite = [t for t, fine in zip(matrix.terms, identified, strict=True) if not fine]
    count = int(separation.certain.sum())
    message = (
        f"{n_rows(count)} {'is' if count == 1 else 'are'} predicted for certain (separation): the "
        f"coefficients of {', '.join(infinite)} are not finite."
    )
    return [Note("separation", message, "caution")]


def _constant_levels(column: str, rows: ModelData) -> list[Note]:
    """A note on each level at which the outcome is always 0 or always 1."""
    text = rows.frame[column].cast(str)
    notes = []
    for level in levels_in(rows.frame[column]):
        at = rows.y[(text == level).to_numpy()]
        if at.min() == at.max():
            message = f"{column} {level!r} has a rate of {at[0]:g} in {n_rows(len(at))}."
            notes.append(Note("boundary", message, "caution"))
    return notes
