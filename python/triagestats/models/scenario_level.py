"""scenario_regression: why some scenarios show a larger contrast than others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.design import design_of
from triagestats.errors import ArgumentTypeError, DesignError
from triagestats.models.attributes import Attribute, attribute_names, read_attributes
from triagestats.models.formula import INTERCEPT
from triagestats.models.least_squares import Vcov, fit, inflation, split_dependent
from triagestats.models.scenario_result import HIGH_INFLATION, ScenarioModel, ScenarioRegression
from triagestats.models.scenario_values import ScenarioValues, scenario_values
from triagestats.models.targets import EstimandArgument, model_code, target_of
from triagestats.results import Note
from triagestats.schema import Match
from triagestats.table import ResponseTable
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["scenario_regression"]

Standardise = Literal["no", "attributes", "all"]


def scenario_regression(
    table: ResponseTable,
    attributes: str | Sequence[str],
    *,
    estimand: EstimandArgument = None,
    model: str | None = None,
    scenarios: object = None,
    joint: bool = True,
    standardise: Standardise = "no",
    vcov: Vcov | None = None,
    match: Match = "cell",
    conf_level: float = defaults.CONF_LEVEL,
) -> ScenarioRegression:
    """Regression of a per-scenario contrast on attributes of the scenarios, each alone and all together.

    With y_s the value of the estimand in scenario s, averaged over models with equal weight,

        y_s = a + b x_s + e_s

    by least squares, with errors that are robust to unequal variances. The unit is the scenario.

    Parameters
    ----------
    table
        The responses.
    attributes
        Columns that are constant in a scenario: numbers, true and false (or 0 and 1), or labels. A label
        becomes one column for each level but the first of an Enum or of the sorted order.
    estimand
        What is computed in each scenario: an estimand such as `ts.Gap(...)`, or a pair (level, reference).
        Default: the only contrast of the table.
    model
        One model. Default: the mean over all.
    scenarios
        A second table with a column of scenarios, which holds attributes that `table` does not have.
    joint
        Whether to fit all attributes together too.
    standardise
        `attributes`: numbers are centered and divided by their standard deviation over the scenarios, so
        that b is the change for one standard deviation; flags and labels stay. `all`: the outcome too.
    vcov
        `HC3` (the default), `HC2`, `HC1`; or, where clusters hold several scenarios, `CRV3` (the default)
        or `CRV1`.
    match
        As in `analyze`.
    conf_level
        Level of the intervals.

    Returns
    -------
    ScenarioRegression
        Print it; `tidy()` has one row a coefficient, `joint_test()` and `contrast_of()` give tests.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a value that cannot be used, or an attribute is unknown (near names are shown).
    DataError
        If an attribute holds neither numbers nor labels.
    DesignError
        If an attribute varies within a scenario, or there are no more scenarios than coefficients.

    Notes
    -----
    All regressions use the scenarios that have a value and every attribute; the others are counted in
    `n_missing` and in a note. t has n - k degrees of freedom with HC, number of clusters - 1 with CRV. HC3
    divides each residual by 1 - its leverage, and is preferred below some 250 rows (Long and Ervin 2000);
    the default of much software, HC1, is too small where some scenarios have extreme attributes. A
    coefficient that rests on a single scenario has no error under HC2, HC3 and CRV3.

    Collinear columns are dropped, later ones first, and named. Variance inflation above 10 is noted
    (Fox and Monette 1992 for labels). p-values are not adjusted for the number of attributes.

    A scenario's value is noisy with few repetitions, which lowers no coefficient but widens its interval. An
    attribute that is itself measured with error has a coefficient that is too small.

    References
    ----------
    Long, J. S. and Ervin, L. H. (2000), Using heteroscedasticity consistent standard errors in the linear
    regression model, The American Statistician 54(3):217-224.
    MacKinnon, J. G. and White, H. (1985), Some heteroskedasticity-consistent covariance matrix estimators
    with improved finite sample properties, Journal of Econometrics 29:305-325.
    Fox, J. and Monette, G. (1992), Generalized collinearity diagnostics, JASA 87(417):178-183.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = ts.demo_table()
    >>> words = {"scenario": table.frame["scenario"].unique().sort(), "words": range(17)}
    >>> fit = ts.scenario_regression(table, "words", scenarios=words)
    >>> fit.contrast, fit.tidy()["df"].to_list()
    ('letter - free_text', [15.0, 15.0])
    """
    if not isinstance(table, ResponseTable):
        raise ArgumentTypeError(
            f"`table` must be a ResponseTable, as in ts.ResponseTable(data); got {type(table).__name__}"
        )
    names = attribute_names(attributes)
    valid_choice("standardise", standardise, Standardise)
    valid_choice("match", match, Match)
    if vcov is not None:
        valid_choice("vcov", vcov, Vcov)
    level = valid_level(conf_level)
    design = design_of(table)
    target = target_of(design, estimand)
    code = model_code(design, model)
    found = scenario_values(table, design, target, model=code, match=match)
    read = read_attributes(table, names, scenarios, found.scenarios)
    complete = np.all([~np.isnan(attribute.values) for attribute in read], axis=0)
    notes = [*table.notes, *(note for note in design.notes if note.code != "reference" or estimand is None)]
    notes += [*found.notes, *_incomplete(read, complete)]
    clusters = np.unique(found.clusters[complete], return_inverse=True)[1].astype(np.int64)
    n_clusters = int(clusters.max()) + 1
    chosen: Vcov = vcov or ("CRV3" if found.coarse else "HC3")
    if chosen.startswith("CRV") and n_clusters < 2:
        raise DesignError(
            f"the scenarios that are used are in one cluster ({found.cluster}); {chosen} needs two"
        )
    y = _scaled(found.values[complete]) if standardise == "all" else found.values[complete]
    regressors = [_Regressor.of(attribute, complete, scaled=standardise != "no") for attribute in read]
    notes += [note for regressor in regressors for note in regressor.notes]
    labels = [label for label, kept in zip(found.scenarios, complete, strict=True) if kept]
    fitted = [_fitted("alone", [regressor], y, chosen, clusters, labels) for regressor in regressors]
    whole = _fitted("joint", regressors, y, chosen, clusters, labels) if joint and len(read) > 1 else None
    notes += _notes(found, chosen, len(y), n_clusters, whole or fitted[0], len(read))
    return ScenarioRegression(
        estimand=target.estimand.name,
        contrast=target.estimand.label,
        model=None if code is None else design.models[code],
        alone=tuple(fitted),
        joint=whole,
        scenarios=_frame(found, read, complete),
        vcov=chosen,
        cluster=found.cluster,
        n_clusters=n_clusters,
        n_missing=found.n_unmatched + int((~complete).sum()),
        conf_level=level,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Regressor:
    """The columns of one attribute over the scenarios that are used."""

    attribute: str
    terms: tuple[str, ...]
    columns: Array
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, attribute: Attribute, rows: NDArray[np.bool_], *, scaled: bool) -> _Regressor:
        terms, columns, reference = attribute.coded(rows)
        notes = []
        if reference is not None and terms:
            message = f"The reference of {attribute.name} is {reference!r}, the first of its levels."
            notes.append(Note("reference", message))
        if scaled and attribute.kind == "number":
            mean, spread = float(columns.mean()), float(columns.std(ddof=1))
            columns = _scaled(columns)
            message = f"{attribute.name} is in standard deviations: mean {mean:.4g}, SD {spread:.4g}."
            notes.append(Note("standardised", message))
        if not terms:  # one level: nothing to compare
            terms, columns = (attribute.name,), np.zeros((int(rows.sum()), 1))
        return cls(attribute.name, terms, columns, tuple(notes))


def _scaled(values: Array) -> Array:
    """Values with mean 0 and standard deviation 1; 0 where they do not vary."""
    centered = values - values.mean()
    spread = float(values.std(ddof=1))
    result: Array = centered / spread if spread > ROUNDING * float(np.abs(values).max()) else 0 * centered
    return result


def _incomplete(attributes: Sequence[Attribute], complete: NDArray[np.bool_]) -> list[Note]:
    """How many scenarios lack an attribute.

    Raises
    ------
    DesignError
        If all do.
    """
    gone = int((~complete).sum())
    if not gone:
        return []
    gaps = ", ".join(
        f"{attribute.name} in {missing:,}"
        for attribute in attributes
        if (missing := int(np.isnan(attribute.values).sum()))
    )
    if gone == len(complete):
        raise DesignError(f"no scenario has a value and every attribute; missing are {gaps}")
    message = (
        f"{gone:,} of {len(complete):,} scenarios {'lacks' if gone == 1 else 'lack'} an attribute ({gaps}), "
        f"and {'is' if gone == 1 else 'are'} left out."
    )
    return [Note("missing", message, "caution")]


def _fitted(
    kind: Literal["alone", "joint"],
    regressors: Sequence[_Regressor],
    y: Array,
    vcov: Vcov,
    clusters: Codes,
    labels: Sequence[str],
) -> ScenarioModel:
    x = np.column_stack([np.ones(len(y)), *(regressor.columns for regressor in regressors)])
    terms = (INTERCEPT, *(term for regressor in regressors for term in regressor.terms))
    attributes = (None, *(regressor.attribute for regressor in regressors for _ in regressor.terms))
    kept, dropped = split_dependent(x)
    if len(y) <= len(kept):
        raise DesignError(
            f"{len(y):,} scenarios cannot carry {len(kept):,} coefficients ({', '.join(terms[:4])}, ...): "
            "there must be more scenarios than coefficients. Leave attributes out, or join their levels"
        )
    found = fit(x[:, kept], y, vcov=vcov, clusters=clusters)
    reasons = {terms[place]: _why_dropped([terms[i] for i in parts]) for place, parts in dropped.items()}
    for place, weights in zip(kept, np.eye(len(kept)), strict=True):
        if (row := found.decided_by(weights)) is not None:
            reasons[terms[place]] = _why_undefined(row, vcov, clusters, labels)
    groups = {
        regressor.attribute: [kept.index(i) - 1 for i in kept if attributes[i] == regressor.attribute]
        for regressor in regressors
    }
    return ScenarioModel(
        kind=kind,
        terms=terms,
        attributes=attributes,
        places=tuple(kept.index(i) if i in kept else None for i in range(len(terms))),
        reasons=reasons,
        inflation=dict(zip(groups, inflation(x[:, kept[1:]], list(groups.values())), strict=True)),
        fit=found,
    )


def _why_dropped(parts: Sequence[str]) -> str:
    if not [part for part in parts if part != INTERCEPT]:
        return "it is the same in all scenarios that are used"
    return f"it is a combination of {', '.join(parts)}"


def _why_undefined(row: int, vcov: Vcov, clusters: Codes, labels: Sequence[str]) -> str:
    if vcov != "CRV3":
        return f"it rests on scenario {labels[row]!r} alone, so that nothing shows its error"
    member = labels[int(np.flatnonzero(clusters == row)[0])]
    return f"it rests on one cluster alone, that of scenario {member!r}, so that nothing shows its error"


def _notes(
    found: ScenarioValues, vcov: Vcov, n: int, n_clusters: int, model: ScenarioModel, n_attributes: int
) -> list[Note]:
    k = len(model.fit.coefficients)
    notes = [Note("vcov", _convention(vcov, found.cluster, n, k, n_clusters))]
    if found.coarse and vcov.startswith("HC"):
        message = (
            f"{n:,} scenarios are taken as independent, but they share {n_clusters:,} clusters "
            f"({found.cluster}); vcov='CRV3' respects these."
        )
        notes.append(Note("independence", message, "caution"))
    if n_clusters < defaults.FEW_CLUSTERS:
        message = f"{n_clusters} clusters ({found.cluster}) are few: robust errors may be too small."
        notes.append(Note("few_clusters", message, "caution"))
    for term, reason in model.reasons.items():
        place = model.places[model.terms.index(term)]
        what = "is dropped" if place is None else "has no error"
        notes.append(Note("collinear" if place is None else "alone", f"{term} {what}: {reason}.", "caution"))
    for attribute, factor in model.inflation.items():
        if factor > HIGH_INFLATION:
            message = (
                f"The other attributes predict {attribute}: its variance inflation is {factor:.3g}, so that "
                "its coefficient in the joint model is hard to tell from theirs."
            )
            notes.append(Note("inflation", message, "caution"))
    if n_attributes > 1:
        notes.append(Note("unadjusted", f"p-values of {n_attributes} attributes are not adjusted."))
    return notes


def _convention(vcov: Vcov, cluster: str, n: int, k: int, n_clusters: int) -> str:
    """The small-sample convention, in words."""
    t_rows, t_clusters = "t(n - k)", f"t({n_clusters - 1})"
    factor = n_clusters / max(n_clusters - 1, 1)
    return {
        "HC1": f"HC1: squared residuals times n / (n - k), {n / (n - k):.4g} with k = {k}; {t_rows}.",
        "HC2": f"HC2: squared residuals over 1 - leverage; {t_rows}.",
        "HC3": f"HC3: squared residuals over (1 - leverage)^2; {t_rows}.",
        "CRV1": (
            f"CRV1 by {cluster}: times G / (G - 1) (n - 1) / (n - k), {factor * (n - 1) / (n - k):.4g} with "
            f"k = {k}; {t_clusters}."
        ),
        "CRV3": f"CRV3 by {cluster}: the jackknife, times (G - 1) / G, {1 / factor:.4g}; {t_clusters}.",
    }[vcov]


def _frame(found: ScenarioValues, read: Sequence[Attribute], complete: NDArray[np.bool_]) -> pl.DataFrame:
    """One row a scenario that is used."""
    columns = {
        "scenario": pl.Series(found.scenarios, dtype=pl.String),
        "cluster": pl.Series(found.clusters),
        "value": pl.Series(found.values),
    }
    for attribute in read:
        values = pl.Series(attribute.values)
        if attribute.kind == "category":
            levels = dict(enumerate(attribute.levels))
            values = values.replace_strict(levels, default=None, return_dtype=pl.String)
        columns[attribute.name] = values
    return pl.DataFrame(columns).filter(pl.Series(complete))
