"""The same linear model by pyfixest, linearmodels and statsmodels, each with its own errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats.models.formula import need_extra
from triagestats.models.matrix import ModelMatrix
from triagestats.models.sandwich import Vcov
from triagestats.models.within import demeaned, dummies, n_levels
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Engine", "EngineError", "Fitted", "compare_engines", "fit_engine"]

Engine = Literal["pyfixest", "linearmodels", "statsmodels"]

_MOST_CELLS: Final = 5_000_000
"""Dummies are spelled out for statsmodels up to so many numbers."""
_MOST_REFITS: Final = 100
"""Up to so many clusters pyfixest leaves each out in turn."""


_AGREE: Final = 1e-4
"""How far the estimates of an engine may lie from ours without a note, in standard errors."""


class EngineError(Exception):
    """An engine gave no estimates, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Coefficients and standard errors, shape (k,); errors None where the engine has no such kind."""

    engine: str
    estimates: Array
    errors: Array | None


def fit_engine(engine: Engine, matrix: ModelMatrix) -> Array:
    """The coefficients as one engine finds them, shape (k,).

    Parameters
    ----------
    engine
        The library.
    matrix
        What to fit: no regressor may be collinear with others or with the fixed effects.

    Raises
    ------
    ArgumentError
        If the library is not installed.
    EngineError
        If it fails, or leaves a regressor out.
    """
    fits: dict[str, Callable[[ModelMatrix, Vcov | None], Fitted]] = {
        "pyfixest": _pyfixest,
        "linearmodels": _linearmodels,
        "statsmodels": _within,
    }
    with _library(engine):
        return fits[engine](matrix, None).estimates


def compare_engines(
    matrix: ModelMatrix, vcov: Vcov, own: Fitted, plain_errors: Array, units: Array
) -> tuple[pl.DataFrame, list[Note]]:
    """Estimates, errors and factors of every engine side by side, and notes on those that fail or differ.

    Parameters
    ----------
    matrix
        As in `fit_engine`.
    vcov
        The kind of errors; each engine's own small-sample factor applies.
    own
        What this package reports.
    plain_errors
        Errors without a small-sample factor, shape (k,).
    units
        Differences between estimates are in multiples of these, shape (k,).

    Returns
    -------
    tuple
        One row for an engine and term: `engine`, `term`, `estimate`, `std_error` by the engine's own
        convention, and `factor`, the square of that error over the one without a factor; and the notes.

    Notes
    -----
    pyfixest counts K without nested effects; linearmodels (debiased) counts all effects, or none where all
    are nested; statsmodels on demeaned rows counts the regressors alone, and with a dummy for each level all
    effects. The last is fitted where it is small. Errors that an engine does not have are null, and so
    are those of pyfixest's CRV3 beyond 100 clusters, which it refits one by one. Where an engine gives no
    estimates its numbers are null.
    """
    fits: list[Fitted] = [own]
    notes: list[Note] = []
    for engine, fit in (
        ("pyfixest", _pyfixest),
        ("linearmodels", _linearmodels),
        ("statsmodels", _within),
        ("statsmodels", _with_dummies),
    ):
        try:
            with _library(engine):
                found = fit(matrix, vcov)
        except EngineError as error:
            nothing = np.full(len(matrix.terms), np.nan)
            fits.append(Fitted(engine, nothing, None))
            message = f"{engine} gives no estimates for these columns ({error}); its row is empty."
            notes.append(Note("crosscheck", message, "caution"))
            continue
        if found is None:
            continue
        fits.append(found)
        off = float(np.max(np.abs(found.estimates - own.estimates) / units))
        if not off <= _AGREE:
            message = (
                f"The estimates of {found.engine} are up to {off:.2g} standard errors off ours: it was "
                "given the columns as they are, and loses digits where means are large or regressors nearly "
                "collinear."
            )
            notes.append(Note("crosscheck", message, "caution"))
    schema = {"engine": pl.String, "term": pl.String, "estimate": pl.Float64, "std_error": pl.Float64}
    rows = [row for fitted in fits for row in _compared(fitted, matrix.terms, plain_errors)]
    return pl.DataFrame(rows, schema=schema | {"factor": pl.Float64}), notes


def _compared(fitted: Fitted, terms: tuple[str, ...], plain_errors: Array) -> Iterator[dict[str, Any]]:
    """A row for each term; numbers that are not known are null."""
    for j, term in enumerate(terms):
        estimate, plain = float(fitted.estimates[j]), float(plain_errors[j])
        error = None if fitted.errors is None or np.isnan(fitted.errors[j]) else float(fitted.errors[j])
        yield {
            "engine": fitted.engine,
            "term": term,
            "estimate": None if np.isnan(estimate) else estimate,
            "std_error": error,
            "factor": None if error is None or not plain > 0 else (error / plain) ** 2,
        }


@contextmanager
def _library(engine: str) -> Iterator[None]:
    """Deprecations between libraries are none of the caller's; whatever else they raise has one name."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise need_extra(error, engine) from error
    except EngineError:
        raise
    except Exception as error:  # other libraries raise what they like
        said = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise EngineError(f"{type(error).__name__}: {said}" if said else type(error).__name__) from error


def _estimates(values: Any, names: list[str], matrix: ModelMatrix) -> Array:
    """The coefficients by name, if all are there."""
    gone = [term for name, term in zip(names, matrix.terms, strict=True) if name not in values.index]
    if gone:
        raise EngineError(f"it leaves out {', '.join(gone)} as collinear")
    found: Array = values.loc[names].to_numpy(dtype=np.float64)
    return found


def _pyfixest(matrix: ModelMatrix, vcov: Vcov | None) -> Fitted:
    import pandas as pd
    import pyfixest

    names = [f"x{j}" for j in range(len(matrix.terms))]
    effects = [f"f{j}" for j in range(len(matrix.absorbed))]
    groups = [f"g{j}" for j in range(len(matrix.clusters))]
    table = {"y": matrix.y, **dict(zip(names, matrix.x.T, strict=True))}
    table |= dict(zip(effects, matrix.absorbed, strict=True))
    table |= dict(zip(groups, matrix.clusters, strict=True))
    if matrix.weights is not None:
        table["w"] = matrix.weights
    clustered = vcov == "CRV1" or (vcov == "CRV3" and n_levels(matrix.clusters[0]) <= _MOST_REFITS)
    kind: Any = vcov if vcov in ("iid", "HC1") else {vcov: " + ".join(groups)} if clustered else "iid"
    fit = pyfixest.feols(
        f"y ~ {' + '.join(names)}" + (f" | {' + '.join(effects)}" if effects else ""),
        pd.DataFrame(table),
        vcov=kind,
        weights=None if matrix.weights is None else "w",
        fixef_rm="none",
        collin_tol=1e-14,
        drop_intercept=not effects,
        # Estimates alone must not fail where no degree of freedom is left.
        ssc=pyfixest.ssc(k_adj=vcov is not None),
    )
    return Fitted(
        "pyfixest",
        _estimates(fit.coef(), names, matrix),
        fit.se().loc[names].to_numpy(dtype=np.float64) if kind != "iid" or vcov == "iid" else None,
    )


def _linearmodels(matrix: ModelMatrix, vcov: Vcov | None) -> Fitted:
    import pandas as pd
    from linearmodels.iv import AbsorbingLS

    names = [f"x{j}" for j in range(len(matrix.terms))]
    absorbed = {f"f{j}": pd.Categorical(codes) for j, codes in enumerate(matrix.absorbed)}
    model = AbsorbingLS(
        pd.DataFrame({"y": matrix.y}),
        pd.DataFrame(matrix.x, columns=names),
        absorb=pd.DataFrame(absorbed) if absorbed else None,
        weights=None if matrix.weights is None else pd.DataFrame({"w": matrix.weights}),
    )
    kinds: dict[str, dict[str, Any]] = {
        "iid": {"cov_type": "unadjusted"},
        "HC1": {"cov_type": "robust"},
        "CRV1": {"cov_type": "clustered", "clusters": _stacked(matrix)},
    }
    fit = model.fit(**kinds.get(vcov or "iid", kinds["iid"]), debiased=True)
    return Fitted(
        "linearmodels",
        _estimates(fit.params, names, matrix),
        fit.std_errors.loc[names].to_numpy(dtype=np.float64) if vcov in kinds else None,
    )


def _within(matrix: ModelMatrix, vcov: Vcov | None) -> Fitted:
    x = demeaned(matrix.x, matrix.absorbed, matrix.weights)
    y = demeaned(matrix.y[:, None], matrix.absorbed, matrix.weights)[:, 0]
    return _statsmodels("statsmodels, demeaned" if matrix.absorbed else "statsmodels", matrix, y, x, vcov)


def _with_dummies(matrix: ModelMatrix, vcov: Vcov | None) -> Fitted | None:
    width = matrix.x.shape[1] + sum(map(n_levels, matrix.absorbed))
    if not matrix.absorbed or len(matrix.y) * width > _MOST_CELLS:
        return None
    first, *others = matrix.absorbed
    columns = [matrix.x, dummies(first), *(dummies(codes)[:, 1:] for codes in others)]
    return _statsmodels("statsmodels, dummies", matrix, matrix.y, np.column_stack(columns), vcov)


def _statsmodels(name: str, matrix: ModelMatrix, y: Array, x: Array, vcov: Vcov | None) -> Fitted:
    from statsmodels.regression.linear_model import OLS, WLS

    kinds: dict[str, dict[str, Any]] = {
        "iid": {"cov_type": "nonrobust"},
        "HC1": {"cov_type": "HC1"},
        "CRV1": {"cov_type": "cluster", "cov_kwds": {"groups": _stacked(matrix)}},
    }
    model = OLS(y, x) if matrix.weights is None else WLS(y, x, weights=matrix.weights)
    fit = model.fit(**kinds.get(vcov or "iid", kinds["iid"]))
    k = len(matrix.terms)
    return Fitted(name, np.asarray(fit.params)[:k], np.asarray(fit.bse)[:k] if vcov in kinds else None)


def _stacked(matrix: ModelMatrix) -> Any:
    """Cluster codes, shape (n,) or (n, 2)."""
    if not matrix.clusters:
        return None
    return matrix.clusters[0] if len(matrix.clusters) == 1 else np.column_stack(matrix.clusters)
