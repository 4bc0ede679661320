"""mediation: how much of a coefficient is gone when a covariate is added, by cluster bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_level
from triagestats.bootstraps import bootstrap
from triagestats.defaults import BY_QUANTILES, Method, too_few
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimates import Estimates
from triagestats.models.design_columns import Columns, columns_of
from triagestats.models.eliminated import PIVOT, Gram, gram_of, paths
from triagestats.models.formula import INTERCEPT, Formula, parse_formula, refuse_random, with_regressors
from triagestats.models.linear_notes import constant_categories
from triagestats.models.model_data import ModelData, read_model_data
from triagestats.models.targets import suggestion
from triagestats.models.within import demeaned, dummies, is_nested, n_levels, orthogonal
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["mediation"]

MOST_DUMMIES: Final = 200
"""Levels of fixed effects that are not nested in clusters, which become columns."""
_CAUSAL: Final = Note(
    "not_causal",
    "A change of a coefficient is no mechanism by itself: it is an effect through the covariate only if "
    "nothing unmeasured moves the covariate together with the outcome or the term, the covariate comes "
    "before the outcome, and its effect does not depend on the term.",
    "caution",
)


def mediation(
    formula: str,
    data: object,
    *,
    term: str,
    covariate: str | Sequence[str],
    cluster: str | None = None,
    weights: str | None = None,
    interval: Method = "percentile",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Change of a coefficient when a covariate, such as fact recall, is added: `c - c'`.

    With the same rows in both,

        y = c x + controls + e             (total)
        y = c' x + b m + controls + e'     (direct)

    by least squares; `c - c' = a b`, with a the coefficient of x for the covariate m. Clusters are drawn
    with replacement, and both models fitted again from the totals of each cluster.

    Parameters
    ----------
    formula
        The model without the covariate, such as `correct ~ condition | scenario^model`.
    data
        A table of any make, or a ResponseTable.
    term
        The coefficient, such as `condition[T.b]`; the column alone where it has one coefficient.
    covariate
        One column or several that are added together.
    cluster
        The cluster column. Default: the cluster of a ResponseTable, or its scenario.
    weights
        A column of positive numbers.
    interval
        `percentile`, `basic`, `normal`, `bca` or `jackknife-t`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        `estimate` is c - c', `n` the rows. `p_value` inverts the percentile interval: twice the smaller
        share of replicates on one side of 0; there is none for other intervals. `details` hold `total` and
        `direct` with their intervals, `proportion` (c - c') / c, `covariates` with a and b of each column,
        `std_error`, `n_clusters`, `n_missing`, `n_degenerate` and `dropped`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        For a formula, term or column that cannot be used.
    DesignError
        If fixed effects or controls swallow the term or a covariate, there is one cluster, or clusters
        cross.

    Notes
    -----
    The proportion is withheld where the interval of the total holds 0: it divides by what may be nothing.
    Beyond 0 to 1 the covariate hides an effect (suppression) rather than carrying it.

    Fixed effects that lie within clusters are taken off by means first, which draws of whole clusters leave
    as they are; others become columns. Rows with a missing covariate are left out of both models. Replicates
    in which the term or a covariate does not vary are degenerate, and are counted and left out.

    The numbers alone do not tell mediation from confounding (MacKinnon, Krull and Lockwood 2000).

    References
    ----------
    MacKinnon, D. P., Krull, J. L. and Lockwood, C. M. (2000), Equivalence of the mediation, confounding and
    suppression effect, Prevention Science 1(4):173-181, doi:10.1023/A:1026595011371.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = {
    ...     "scenario": [s for s in range(30) for _ in range(2)],
    ...     "marked": [0, 1] * 30,
    ...     "recall": [v for s in range(30) for v in (5 + s % 3, 4 + s % 2)],
    ...     "score": [v for s in range(30) for v in (0.8 + 0.1 * (s % 3), 0.6 + 0.1 * (s % 2))],
    ... }
    >>> result = ts.mediation(
    ...     "score ~ marked | scenario", table, term="marked", covariate="recall", n_resamples=999
    ... )
    >>> round(result.details["total"]["estimate"], 3), round(result.estimate, 3)
    (-0.25, -0.15)
    """
    level = valid_level(conf_level)
    asked: dict[str, Any] = {
        "n_resamples": valid_resamples(n_resamples),
        "seed": valid_seed(seed),
        "n_threads": thread_count(n_threads),
    }
    added = _covariates(covariate)
    plain = parse_formula(formula)
    refuse_random(plain, "mediation", "absorb the group behind |")
    full = _with(plain, added)
    rows = read_model_data(full, data, cluster=cluster, weights=weights)
    if len(rows.clusters) != 1:
        raise DesignError(
            f"mediation takes one cluster column, and there are {len(rows.clusters)}; name it with `cluster=`"
        )
    columns = columns_of(full, rows.frame)
    of_covariates = [name for part in added for name in columns.parts[part]]
    constant = constant_categories(columns)
    for name in (*added, term):
        if name in constant:
            what = "`term`" if name == term else "`covariate`"
            raise DesignError(f"{what} has no coefficient: {constant[name].message}")
    wanted = _term(term, columns, of_covariates)
    gram, dropped = _gram(rows, columns, wanted, of_covariates, plain)
    rows = replace(rows, notes=(*rows.notes, *constant.values()))
    estimates = bootstrap(gram.totals, gram.effects, interval=interval, conf_level=level, **asked)
    return _result(rows, gram, estimates, wanted, of_covariates, dropped, interval, asked)


def _covariates(covariate: object) -> tuple[str, ...]:
    names = (covariate,) if isinstance(covariate, str) else covariate
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"`covariate` must name one column or several; got {covariate!r}")
    return tuple(names)


def _with(formula: Formula, added: Sequence[str]) -> Formula:
    """The formula with covariates added."""
    if twice := [name for name in added if name in formula.names]:
        raise ArgumentError(
            f"`covariate` names {twice[0]!r}, which the formula {formula.text!r} has already; give the "
            "formula without it"
        )
    return with_regressors(formula, added)


def _term(term: object, columns: Columns, of_covariates: Sequence[str]) -> str:
    """The name of the coefficient."""
    names = [name for name in columns.names if name not in of_covariates]
    if isinstance(term, str):
        found = (term,) if term in names else columns.parts.get(term, ())
        if len(found) == 1 and found[0] in names:
            return found[0]
        if len(found) > 1:
            raise ArgumentError(f"`term` {term!r} has several coefficients; choose one of {list(found)}")
    raise ArgumentError(
        f"`term` must be a coefficient of the formula, one of {names}; got {term!r}"
        f"{suggestion(str(term), names)}"
    )


def _gram(
    rows: ModelData, columns: Columns, term: str, of_covariates: Sequence[str], formula: Formula
) -> tuple[Gram, list[str]]:
    """Cross products by cluster: controls, the term, covariates and the outcome, in this order."""
    (clusters,) = rows.clusters
    nested = [codes for codes in rows.absorbed if is_nested(codes, clusters)]
    crossing = [codes for codes in rows.absorbed if not is_nested(codes, clusters)]
    if sum(map(n_levels, crossing)) > MOST_DUMMIES:
        raise DesignError(
            f"the fixed effects {', '.join(formula.absorbed_names)} are not nested in the clusters "
            f"({rows.cluster_names[0]}) and have more than {MOST_DUMMIES} levels; cluster by a coarser "
            "column, or leave one out"
        )
    place = {name: columns.values[:, i] for i, name in enumerate(columns.names)}
    controls = [name for name in columns.names if name != term and name not in of_covariates]
    before = np.column_stack(
        [
            *(dummies(codes) for codes in crossing),
            *(place[name] for name in (*controls, term, *of_covariates)),
        ]
    )
    names = ["" for codes in crossing for _ in range(n_levels(codes))] + [*controls, term, *of_covariates]
    weights = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    values = np.column_stack([before, rows.y])
    if crossing or INTERCEPT in names:  # beside a constant, centered columns have the same coefficients
        movable = np.array([name not in ("", INTERCEPT) for name in names] + [True])
        values[:, movable] -= np.average(values[:, movable], axis=0, weights=weights)
    root = np.sqrt(weights)
    within = root[:, None] * demeaned(values, nested, rows.weights)
    found = orthogonal(within[:, :-1], root[:, None] * before)
    kept = found.kept
    lost = [name for name, stays in zip(names, kept, strict=True) if name and not stays]
    for name in (term, *of_covariates):
        if name in lost:
            raise DesignError(_swallowed(name, formula, controls, is_covariate=name in of_covariates))
    # Whatever spans the controls gives the same coefficients: orthonormal columns, taken off the others.
    n_controls = int(kept.sum()) - 1 - len(of_covariates)
    basis, rest = found.basis[:, :n_controls], within[:, len(names) - 1 - len(of_covariates) :]
    for _ in range(2):  # the second pass removes the rounding of the first
        rest = rest - basis @ (basis.T @ rest)
    upper = found.upper[n_controls:, n_controls:]
    for j, name in enumerate((term, *of_covariates)):
        if upper[j, j] ** 2 <= PIVOT * float(upper[:, j] @ upper[:, j]):
            raise DesignError(_swallowed(name, formula, controls, is_covariate=True))
    return gram_of(np.column_stack([basis, rest]), clusters, n_controls), lost


def _swallowed(name: str, formula: Formula, controls: Sequence[str], *, is_covariate: bool) -> str:
    what = "covariate" if is_covariate else "term"
    by = [f"the fixed effects {', '.join(formula.absorbed_names)}"] if formula.absorbed else []
    by += [f"the regressors {', '.join(controls)}"] if controls else []
    by += ["the term"] if is_covariate else []
    return (
        f"{what} {name!r} is swallowed by {' and '.join(by) or 'the constant'}: beside these it does not "
        "vary, or hardly, so that it has no coefficient"
    )


def _result(
    rows: ModelData,
    gram: Gram,
    estimates: Estimates,
    term: str,
    covariates: Sequence[str],
    dropped: list[str],
    interval: Method,
    asked: dict[str, Any],
) -> Test:
    n_clusters = len(gram.totals)
    enough = n_clusters >= defaults.FEWEST_CLUSTERS
    total, direct, change, proportion = (_shown(row, enough) for row in estimates.tidy().to_dicts())
    replicates = estimates.replicates[:, 2]
    finite = replicates[np.isfinite(replicates)]
    notes = [*rows.notes]
    low, high = total["conf_low"], total["conf_high"]
    clear = low is not None and high is not None and (low > 0 or high < 0)
    if not clear:
        why = "it has no interval" if low is None else "its interval holds 0"
        notes.append(Note("proportion", f"The proportion of the total is withheld: {why}.", "caution"))
    elif not 0 <= proportion["estimate"] <= 1:
        message = "The proportion lies beyond 0 to 1: the covariate hides an effect rather than carrying it."
        notes.append(Note("suppression", message, "caution"))
    if degenerate := len(replicates) - len(finite):
        message = (
            f"{degenerate:,} replicate{'' if degenerate == 1 else 's'} in which the term or a covariate does "
            f"not vary {'is' if degenerate == 1 else 'are'} left out."
        )
        notes.append(Note("degenerate", message, "caution"))
    if n_clusters < defaults.FEW_CLUSTERS:
        message = f"{n_clusters} clusters ({rows.cluster_names[0]}) are few" + (
            ": intervals may cover too little." if enough else f": intervals need {defaults.FEWEST_CLUSTERS}."
        )
        notes.append(Note("few_clusters", message, "caution"))
    if interval in BY_QUANTILES and (doubt := too_few(asked["n_resamples"], estimates.conf_level)):
        notes.append(Note("too_few", f"{doubt}.", "caution"))
    if dropped:
        message = f"Collinear regressors are dropped: {', '.join(dropped)}."
        notes.append(Note("collinear", message, "caution"))
    p_value = None
    if enough and interval == "percentile":
        sides = [int((finite <= 0).sum()), int((finite >= 0).sum())]
        p_value = min(1.0, 2 * (min(sides) + 1) / (len(finite) + 1))
    name = " + ".join(covariates)
    return Test(
        estimand="mediated",
        contrast=f"{term}: without - with {name}",
        estimate=change["estimate"],
        statistic=None,
        p_value=p_value,
        conf_low=change["conf_low"],
        conf_high=change["conf_high"],
        conf_level=None if change["conf_low"] is None else estimates.conf_level,
        method=f"change of a coefficient; {estimates.tidy()['method'][2]}, by {rows.cluster_names[0]}",
        n=len(rows.y),
        details={
            "total": total,
            "direct": direct,
            "proportion": proportion if clear else None,
            "covariates": [
                {"term": covariate, "on_term": a, "on_outcome": b}
                for covariate, (a, b) in zip(covariates, paths(gram), strict=True)
            ],
            "std_error": change["std_error"],
            "n_clusters": n_clusters,
            "n_missing": rows.n_missing,
            "n_singletons": rows.n_singletons,
            "n_degenerate": degenerate,
            "dropped": dropped,
            "n_resamples": asked["n_resamples"],
            "seed": asked["seed"],
        },
        notes=(*notes, _CAUSAL),
    )


def _shown(row: dict[str, Any], enough: bool) -> dict[str, Any]:
    """Estimate, error and interval of one row; no interval where clusters are too few or nothing varies."""
    withheld = not enough or row["status"] == "degenerate"
    return {
        name: None if withheld and name in ("conf_low", "conf_high") else row[name]
        for name in ("estimate", "std_error", "conf_low", "conf_high")
    }
