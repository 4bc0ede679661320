"""lpm: linear probability models with absorbed fixed effects and errors by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.models.covariance import Covariance, check_convention, covariance_of
from triagestats.models.design_columns import Columns, columns_of
from triagestats.models.engines import Engine, Fitted, compare_engines, fit_engine
from triagestats.models.formula import Formula, parse_formula
from triagestats.models.linear_model import LinearModel
from triagestats.models.linear_notes import notes_of, undefined_terms
from triagestats.models.matrix import ModelMatrix
from triagestats.models.model_data import ClusterArgument, ModelData, Singletons, read_model_data
from triagestats.models.sandwich import SmallSample, Vcov
from triagestats.models.within import demeaned, independent, n_levels
from triagestats.results import Note

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LinearModel", "lpm"]

_PERFECT: Final = 1e-10
"""Residuals below this share of the outcome, as lengths, are rounding."""
_AGREE: Final = 1e-5
"""How far the estimates of an engine may lie from the normal equations, relative to their plain errors."""


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
        The library of the estimates. The errors follow `vcov` and `small_sample` whatever the engine.
    crosscheck
        Fit by all engines; their own errors and factors are in `crosscheck` of the result.
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
    With few clusters CRV1 is too small: prefer CRV2, CRV3 or `wild_bootstrap`. Fitted values of a linear
    probability model may leave 0 to 1; `logit` does not.

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
    if not isinstance(crosscheck, bool):
        raise ArgumentTypeError(f"`crosscheck` must be True or False; got {crosscheck!r}")
    level = valid_level(conf_level)
    small = _small_sample(small_sample)
    parsed = parse_formula(formula)
    if parsed.random:
        raise ArgumentError(
            f"`formula` has the random term ({parsed.random[0].terms} | {parsed.random[0].group}), which a "
            "linear probability model does not have: use ts.mixed, or absorb the group behind |"
        )
    clustered = vcov.startswith("CRV")
    rows = read_model_data(
        parsed, data, cluster=cluster, clustered=clustered, weights=weights, singletons=singletons
    )
    columns = columns_of(parsed, rows.frame)
    if not columns.names:
        raise DesignError("`formula` has no regressors; name one on the right of ~")
    within = demeaned(columns.values, rows.absorbed, rows.weights)
    kept, left_out = _kept(parsed, columns, rows, within)
    matrix = ModelMatrix(
        y=rows.y,
        x=columns.values[:, kept],
        terms=tuple(name for name, keep in zip(columns.names, kept, strict=True) if keep),
        absorbed=rows.absorbed,
        absorbed_names=parsed.absorbed_names,
        weights=rows.weights,
        clusters=rows.clusters,
        cluster_names=rows.cluster_names,
    )
    within = within[:, kept]
    y_within = demeaned(rows.y[:, None], rows.absorbed, rows.weights)[:, 0]
    check_convention(matrix, vcov, small)
    estimates = fit_engine(engine, matrix)
    residuals = y_within - within @ estimates
    covariance = covariance_of(matrix, within, residuals, vcov, small)
    w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    root = np.sqrt(w)[:, None]
    rss = float(w @ residuals**2)
    perfect = rss <= _PERFECT**2 * float(w @ rows.y**2)
    undefined = undefined_terms(matrix, within, w, rss, covariance, vcov, perfect=perfect)
    ahead = np.asarray(np.linalg.lstsq(within * root, residuals * root[:, 0])[0], dtype=np.float64)
    mean = float(w @ rows.y / w.sum())
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
        undefined=undefined,
        dropped=tuple(left_out),
        n_missing=rows.n_missing,
        n_singletons=rows.n_singletons,
        r_squared=_share(rss, float(w @ (rows.y - mean) ** 2)),
        r_squared_within=_share(rss, float(w @ y_within**2)),
        crosscheck=_crosscheck(matrix, vcov, estimates, covariance) if crosscheck else None,
        notes=(
            *rows.notes,
            *left_out.values(),
            *_disagreement(engine, ahead, covariance),
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


def _kept(
    formula: Formula, columns: Columns, rows: ModelData, within: Array
) -> tuple[NDArray[np.bool_], dict[str, Note]]:
    """Which regressors can be estimated, and a note on each of the others."""
    root = np.ones(len(rows.y)) if rows.weights is None else np.sqrt(rows.weights)
    kept = independent(within * root[:, None], columns.values * root[:, None])
    notes = {}
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
    return kept, notes


def _swallowing(column: Array, formula: Formula, rows: ModelData) -> str | None:
    """The first fixed effect within which a regressor is constant."""
    for codes, name in zip(rows.absorbed, formula.absorbed_names, strict=True):
        low, high = np.full(n_levels(codes), np.inf), np.full(n_levels(codes), -np.inf)
        np.minimum.at(low, codes, column)
        np.maximum.at(high, codes, column)
        if (high == low).all():
            return name
    return None


def _crosscheck(matrix: ModelMatrix, vcov: Vcov, estimates: Array, covariance: Covariance) -> pl.DataFrame:
    with np.errstate(invalid="ignore"):
        own, without = np.sqrt(np.diag(covariance.vcov)), np.sqrt(np.diag(covariance.plain))
    return compare_engines(matrix, vcov, Fitted("triagestats", estimates, own), without)


def _disagreement(engine: Engine, ahead: Array, covariance: Covariance) -> tuple[Note, ...]:
    """A note where the estimates of an engine do not solve the normal equations."""
    off = np.abs(ahead) > _AGREE * np.sqrt(np.abs(np.diag(covariance.plain))) + np.finfo(float).eps
    if not off.any():
        return ()
    message = (
        f"The estimates of {engine} are up to {np.abs(ahead).max():.2g} off the least-squares solution: its "
        "search for the fixed effects stopped early. Try another engine."
    )
    return (Note("engine", message, "caution"),)


def _share(rss: float, total: float) -> float:
    return 1 - rss / total if total > 0 else float("nan")
