"""lpm: linear probability models with absorbed fixed effects and errors by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_flag, valid_level
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.models.covariance import check_convention, covariance_of
from triagestats.models.design_columns import Columns, columns_of
from triagestats.models.engines import Engine, EngineError, Fitted, compare_engines, fit_engine
from triagestats.models.formula import Formula, parse_formula, refuse_random
from triagestats.models.linear_model import LinearModel
from triagestats.models.linear_notes import constant_categories, notes_of, undefined_terms
from triagestats.models.matrix import ModelMatrix
from triagestats.models.model_data import ClusterArgument, ModelData, Singletons, read_model_data
from triagestats.models.sandwich import SmallSample, Vcov
from triagestats.models.within import Orthogonal, demeaned, n_levels, orthogonal
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LinearModel", "lpm"]

_PERFECT: Final = 1e-10
"""Residuals below this share of what the outcome varies, as lengths, are rounding."""
_ROUNDING: Final = 1e-13
"""The same of the outcome with its mean."""
_AGREE: Final = 1e-5
"""How far the estimates of an engine may lie from the solution, in standard errors without factor."""


def lpm(
    formula: str,
    data: object,
    *,
    cluster: ClusterArgument = None,
    vcov: Vcov = "CRV1",
    weights: str | None = None,
    singletons: Singletons = "drop",
    small_sample: SmallSample | Mapping[str, object] | None = None,
    engine: Engine = "pyfixest",
    crosscheck: bool = False,
    conf_level: float = defaults.CONF_LEVEL,
) -> LinearModel:
    r"""Linear probability model: least squares with absorbed fixed effects and cluster-robust errors.

    With X and y after the fixed effects are taken off,

        b = (X'X)^-1 X'y,    V = c (X'X)^-1 (sum_g s_g s_g') (X'X)^-1,    s_g = X_g'(y_g - X_g b)

    where for CRV1 `c = G/(G-1) (N-1)/(N-K)`, and the coefficients have t distributions with G - 1 degrees
    of freedom.

    Parameters
    ----------
    formula
        `"correct ~ condition | scenario^model"`: outcome, regressors, and behind | the fixed effects to
        absorb. `a:b`, `a*b`, `C(x)` and `i(a, x)` are read; see `triagestats.models.formula.parse_formula`.
        The reference of a category is the first of an Enum or ordered categorical, else of the sorted order.
    data
        A table of any make, or a ResponseTable, whose columns are known by their roles and own names.
    cluster
        One or two columns. Default: those of the ResponseTable, else the column recognised as the scenario.
        A row that is complete but for its cluster is refused, whether or not the cluster is absorbed too.
    vcov
        `CRV1`: the cluster sandwich. `CRV2`: Bell and McCaffrey's, unbiased under independence, with
        Satterthwaite's degrees of freedom. `CRV3`: the cluster jackknife,
        `(G-1)/G sum_g (b_g - b)(b_g - b)'`. `iid` and `HC1` take rows as independent.
    weights
        A column of analytic weights: the variance of a row is taken as 1 / weight.
    singletons
        `drop` rows that are alone in a fixed effect, again and again, or `keep` them.
    small_sample
        Other conventions than these: `SmallSample`, or a mapping of its fields: `effects` ("nonnested",
        "full", "none": which absorbed effects K counts), `k` and `g` (whether the two factors apply),
        `two_way` ("min", "conventional"), `repair`, `center`, `df`.
    engine
        The library of the estimates. It is given the regressors as orthonormal columns, and checked against
        a QR decomposition, which stands in, with a note, where the two differ. Which regressors are
        collinear and the errors by `vcov` and `small_sample` do not depend on the engine.
    crosscheck
        Fit by all engines; their own errors and factors are in `crosscheck` of the result. They are given
        the columns as they are: a note says which of them refuse, or lose digits.
    conf_level
        Level of the intervals.

    Returns
    -------
    LinearModel
        `tidy()`, `glance()`, `contrast(weights)`, `wald(terms)`, `vcov`, and `matrix`, which
        `wild_bootstrap` reads.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If a name is not that of a column (near ones are named), or an argument has a value that cannot be
        used.
    DataError
        If the outcome or weights are no numbers, or a cluster is missing.
    DesignError
        If there is one cluster, no more rows than parameters, or a fixed effect swallows all regressors.

    Notes
    -----
    K counts the regressors and the fixed effects, without those nested in the clusters (Correia): treating
    the same data, statsmodels with dummies counts all, which makes errors up to sqrt(L / (L - 1)) times
    larger for L rows a fixed effect; statsmodels on demeaned rows counts none.

    Two clusters: V1 + V2 - V12 with the factor of the smaller G (fixest's `G.df="min"`) and t with that
    G - 1. The matrix is repaired only where a variance is not positive: the larger one-way
    matrix is then used, and a note says so; fixest raises negative eigenvalues in any case, pyfixest never.

    CRV3 is centred at the estimate. pyfixest's has no (G-1)/G and the factor of CRV1 in its place.

    Assumptions: the mean is linear in the regressors, clusters are independent, many, and none dominates.
    With few clusters CRV1 is too small: prefer CRV2, CRV3 or `wild_bootstrap`; below 12 clusters a note says
    so. Intervals are given for two clusters and more, where `analyze` withholds its own below five: it
    chooses what to show, and a model that was asked for shows its numbers beside the doubt. Fitted values of
    a linear probability model may leave 0 to 1; `logit` does not.

    Large means, units and near collinearity cost no digits: estimates and errors come from orthonormal
    columns. A regressor of which less than 1e-9 is left beside the others is collinear, for every engine.

    References
    ----------
    Cameron, A. C. and Miller, D. L. (2015), A Practitioner's Guide to Cluster-Robust Inference, Journal of
    Human Resources 50(2):317-372, doi:10.3368/jhr.50.2.317.

    Bell, R. M. and McCaffrey, D. F. (2002), Bias Reduction in Standard Errors for Linear Regression with
    Multi-Stage Samples, Survey Methodology 28(2):169-181.

    MacKinnon, J. G., Nielsen, M. Ø. and Webb, M. D. (2023), Fast and reliable jackknife and bootstrap
    methods for cluster-robust inference, Journal of Applied Econometrics 38(5):671-694, doi:10.1002/jae.2969.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = {
    ...     "scenario": [s for s in "abcdefgh" for _ in range(4)],
    ...     "model": ["m", "m", "n", "n"] * 8,
    ...     "condition": ["forced", "free"] * 16,
    ...     "correct": [0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1] * 2,
    ... }
    >>> fit = ts.lpm("correct ~ condition | scenario^model", rows)
    >>> fit.tidy().select("contrast", "estimate", "df").rows()
    [('free - forced', 0.5, 7.0)]
    >>> fit.glance()["n_parameters"][0]  # the slope and one for the nested scenario^model
    2
    """
    valid_choice("vcov", vcov, Vcov)
    valid_choice("singletons", singletons, Singletons)
    valid_choice("engine", engine, Engine)
    valid_flag("crosscheck", crosscheck)
    level = valid_level(conf_level)
    small = _small_sample(small_sample)
    parsed = parse_formula(formula)
    refuse_random(
        parsed,
        "a linear probability model",
        "use ts.variance_components, or absorb the group behind |",
    )
    clustered = vcov.startswith("CRV")
    rows = read_model_data(
        parsed, data, cluster=cluster, clustered=clustered, weights=weights, singletons=singletons
    )
    columns = columns_of(parsed, rows.frame)
    if not columns.parts:
        raise DesignError("`formula` has no regressors; name one on the right of ~")
    w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    root = np.sqrt(w)
    within = demeaned(columns.values, rows.absorbed, rows.weights)
    regressors = orthogonal(within * root[:, None], columns.values * root[:, None])
    left_out = _left_out(parsed, columns, rows, regressors.kept)
    matrix = ModelMatrix(
        y=rows.y,
        x=columns.values[:, regressors.kept],
        terms=tuple(name for name, keep in zip(columns.names, regressors.kept, strict=True) if keep),
        absorbed=rows.absorbed,
        absorbed_names=parsed.absorbed_names,
        weights=rows.weights,
        clusters=rows.clusters,
        cluster_names=rows.cluster_names,
    )
    check_convention(matrix, vcov, small)
    y_within = demeaned(rows.y[:, None], rows.absorbed, rows.weights)[:, 0]
    own = regressors.coefficients(y_within * root)
    residuals = y_within - within[:, regressors.kept] @ own
    rss = float(w @ residuals**2)
    covariance = covariance_of(matrix, regressors, residuals, vcov, small)
    with np.errstate(invalid="ignore"):
        plain_errors = np.sqrt(np.diag(covariance.plain))
    per_unit = (regressors.inverse**2).sum(axis=1)
    # Estimates are compared in units of their errors; where there is no error, of rounding in the outcome.
    units = np.maximum(plain_errors, _ROUNDING * np.sqrt(per_unit * float(w @ rows.y**2)))
    estimates, notes = _by_engine(engine, matrix, regressors, y_within, own, units)
    compared = None
    if crosscheck:
        errors = np.sqrt(np.where(np.diag(covariance.vcov) < 0, np.nan, np.diag(covariance.vcov)))
        compared, doubts = compare_engines(
            matrix, vcov, Fitted("triagestats", own, errors), plain_errors, units
        )
        notes += doubts
    mean = float(w @ rows.y / w.sum())
    about_mean = float(w @ (rows.y - mean) ** 2)
    perfect = rss <= max(
        _PERFECT**2 * min(about_mean, float(w @ y_within**2)), _ROUNDING**2 * float(w @ rows.y**2)
    )
    return LinearModel(
        formula=parsed.text,
        estimates=estimates,
        vcov=covariance.vcov,
        residuals=residuals,
        matrix=matrix,
        covariance=covariance,
        kind=vcov,
        small_sample=small,
        engine=engine,
        conf_level=level,
        parts=columns.parts,
        contrasts=columns.contrasts,
        undefined=undefined_terms(matrix, rss / len(w) * per_unit, covariance, vcov, perfect=perfect),
        dropped=tuple(left_out),
        n_missing=rows.n_missing,
        n_singletons=rows.n_singletons,
        r_squared=_share(rss, about_mean),
        r_squared_within=_share(rss, float(w @ y_within**2)),
        crosscheck=compared,
        notes=(
            *rows.notes,
            *left_out.values(),
            *notes,
            *notes_of(matrix, covariance, vcov, small, given=cluster is not None, perfect=perfect),
        ),
    )


def _small_sample(given: SmallSample | Mapping[str, object] | None) -> SmallSample:
    if given is None:
        return SmallSample()
    if isinstance(given, SmallSample):
        return given
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"`small_sample` must be a SmallSample or a mapping of its fields; got {type(given).__name__}"
        )
    fields = SmallSample.__dataclass_fields__
    if unknown := [name for name in given if name not in fields]:
        raise ArgumentError(f"`small_sample` has no {unknown[0]!r}; its fields are {', '.join(fields)}")
    return SmallSample(**given)  # type: ignore[arg-type]  # its values are checked there


def _left_out(
    formula: Formula, columns: Columns, rows: ModelData, kept: NDArray[np.bool_]
) -> dict[str, Note]:
    """A note on each regressor that cannot be estimated."""
    notes = constant_categories(columns)
    for j in np.flatnonzero(~kept):
        name, effect = columns.names[j], _swallowing(columns.values[:, j], formula, rows)
        why = (
            f"it does not vary within {effect}, which is absorbed"
            if effect
            else "it is constant or a combination of the regressors before it"
            + (" and the fixed effects" if rows.absorbed else "")
        )
        notes[name] = Note("collinear", f"{name} is left out: {why}.", "caution")
    if not kept.any():
        said = " ".join(note.message for note in notes.values())
        raise DesignError(f"`formula` leaves no coefficient to estimate. {said}")
    return notes


def _swallowing(column: Array, formula: Formula, rows: ModelData) -> str | None:
    """The first fixed effect within which a regressor is constant."""
    for codes, name in zip(rows.absorbed, formula.absorbed_names, strict=True):
        low, high = np.full(n_levels(codes), np.inf), np.full(n_levels(codes), -np.inf)
        np.minimum.at(low, codes, column)
        np.maximum.at(high, codes, column)
        if (high == low).all():
            return name
    return None


def _by_engine(
    engine: Engine, matrix: ModelMatrix, regressors: Orthogonal, y_within: Array, own: Array, units: Array
) -> tuple[Array, list[Note]]:
    """The estimates of an engine if they solve the model, else our own, with a note.

    The engine gets orthonormal regressors and an outcome of length sqrt(n), both less their fixed effects,
    which it takes off again: then means, units and near collinearity cost no digits in any of them.
    """
    size = float(np.sqrt(np.mean(y_within**2))) or 1.0
    roots = np.ones(len(y_within)) if matrix.weights is None else np.sqrt(matrix.weights)
    stretch = np.sqrt(len(y_within))
    easy = replace(matrix, x=regressors.basis * stretch / roots[:, None], y=y_within / size)
    try:
        estimates = regressors.inverse @ fit_engine(engine, easy) * (size * stretch)
    except EngineError as error:
        message = f"{engine} gave no estimates ({error}); they are from a QR decomposition instead."
        return own, [Note("engine", message, "caution")]
    off = float(np.max(np.abs(estimates - own) / units))
    if off <= _AGREE:
        return estimates, []
    message = (
        f"The estimates of {engine} were up to {off:.2g} standard errors off the least-squares solution; "
        "those shown are from a QR decomposition."
    )
    return own, [Note("engine", message, "caution")]


def _share(rss: float, total: float) -> float:
    return 1 - rss / total if total > 0 else float("nan")
