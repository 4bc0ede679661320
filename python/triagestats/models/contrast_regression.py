"""The fixed-effects regression of an analysis: every condition column on cells that are absorbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS
from triagestats.design import Design
from triagestats.errors import DesignError
from triagestats.intervals import jackknife_t, t_p_value
from triagestats.matching import Keys, keys_of
from triagestats.models.absorbed import Absorbed, fit_absorbed
from triagestats.results import Note, tidy_frame
from triagestats.schema import Weights
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["ContrastRegressions", "contrast_regressions"]

_ALIKE: Final = 0.1
"""How many standard errors two estimates may be apart and still be called alike."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """The regression of one condition column, of one model or all.

    `levels` are those of the column, and `noise` is the rounding of an error.
    """

    term: str
    levels: tuple[str, ...]
    reference: int
    model: str | None
    fit: Absorbed
    noise: float

    @property
    def std_error(self) -> Array:
        """Errors by cluster, 0 where they are rounding of the scores."""
        error = np.sqrt(np.diag(self.fit.crv1))
        return np.where(error > self.noise, error, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ContrastRegressions:
    """Regressions of the scores on each condition column, to be read at any level."""

    fits: tuple[_Fitted, ...]
    cells: str
    metric: str | None

    def read(self, conf_level: float) -> pl.DataFrame:
        """The frame `regression` at a level."""
        return tidy_frame(row for fitted in self.fits for row in self._rows(fitted, conf_level))

    def _rows(self, fitted: _Fitted, conf_level: float) -> Iterator[dict[str, Any]]:
        fit = fitted.fit
        error = fitted.std_error
        df = np.full(len(error), float(fit.df))
        ends = jackknife_t(fit.estimates, error, df, conf_level)
        p_values = t_p_value(fit.estimates, error, df)
        clusters = min(fit.n_clusters)
        status, reason = _status(clusters)
        factor = ", ".join(f"{value:.4g}" for value in fit.factors)
        for place, code in enumerate(fit.levels.tolist()):
            shown = clusters >= FEWEST_CLUSTERS and error[place] > 0
            row = {
                "estimand": "coefficient",
                "term": fitted.term,
                "model": fitted.model,
                "contrast": f"{fitted.levels[code]} - {fitted.levels[fitted.reference]}",
                "metric": self.metric,
                "estimate": float(fit.estimates[place]),
                "conf_level": conf_level,
                "status": status if shown or clusters < FEWEST_CLUSTERS else "degenerate",
                "reason": reason if shown or clusters < FEWEST_CLUSTERS else "the fit is perfect",
                "method": f"least squares, {self.cells} absorbed, CRV1 with factor {factor}, t",
                "n_rows": fit.n_rows,
                "n_clusters": clusters,
            }
            if shown:
                row |= {
                    "std_error": float(error[place]),
                    "statistic": float(fit.estimates[place] / error[place]),
                    "df": float(fit.df),
                    "p_value": float(p_values[place]),
                    "conf_low": float(ends.low[place]),
                    "conf_high": float(ends.high[place]),
                }
            yield row

    def notes(self, contrasts: pl.DataFrame, conf_level: float, weights: Weights) -> tuple[Note, ...]:
        """Where the regression and the direct contrast do not both exclude 0, or lie on different sides."""
        direct = {
            (row["term"], row["contrast"]): row
            for row in contrasts.iter_rows(named=True)
            if row["model"] is None and row["stratum"] is None
        }
        found = []
        for row in self.read(conf_level).filter(pl.col("model").is_null()).iter_rows(named=True):
            other = direct.get((row["term"], row["contrast"]))
            if other is None or _side(row) is None or _side(other) is None or _side(row) == _side(other):
                continue
            found.append(
                Note(
                    "regression_disagrees",
                    f"{row['contrast']}: the fixed-effects regression gives {row['estimate']:+.3f} "
                    f"[{row['conf_low']:.3f}, {row['conf_high']:.3f}], the contrast {other['estimate']:+.3f} "
                    f"[{other['conf_low']:.3f}, {other['conf_high']:.3f}]; {_why(row, other, weights)}.",
                    "caution",
                )
            )
        return tuple(found)


def _why(row: dict[str, Any], other: dict[str, Any], weights: Weights) -> str:
    """What may make the two differ."""
    apart = abs(row["estimate"] - other["estimate"])
    if apart <= _ALIKE * max(row["std_error"] or 0.0, other["std_error"] or 0.0):
        return (
            f"the estimates are alike, their errors are not: CRV1 here, {other['method'].split(';')[0]} there"
        )
    if weights == "scenario":
        return "the regression weighs answers, the contrast scenarios"
    return "the regression weighs a cell by the answers on both sides of it, the contrast by matched keys"


def _side(row: dict[str, Any]) -> int | None:
    """On which side of 0 an interval lies: 1, -1, or 0 where it holds 0; None without one."""
    if row["conf_low"] is None or row["conf_high"] is None:
        return None
    return int(row["conf_low"] > 0) - int(row["conf_high"] < 0)


def _status(clusters: int) -> tuple[str, str | None]:
    if clusters < FEWEST_CLUSTERS:
        return (
            "few_clusters",
            f"{clusters} clusters are too few for an interval ({FEWEST_CLUSTERS} are needed)",
        )
    if clusters < FEW_CLUSTERS:
        return "warning", f"{clusters} clusters: errors from fewer than {FEW_CLUSTERS} may be too small"
    return "ok", None


def contrast_regressions(design: Design, *, metric: str | None) -> ContrastRegressions | None:
    """`score ~ condition | scenario x model x variant`, for each condition column, pooled and by model.

    In a study of one scenario its clusters stand for the scenario. With several columns the cells hold the
    levels of the others too. Computed from the sums of the cells, which lie in one cluster each. None where
    nothing is compared, or no cell links two levels.
    """
    keys = keys_of(design, "cell")
    models: list[int | None] = [None, *(range(len(design.models)) if design.has_models else ())]
    noise = ROUNDING * float(np.nanmax(np.abs(keys.values), initial=0.0))
    fits = []
    for position, (factor, reference) in enumerate(zip(design.factors, design.references, strict=True)):
        place = factor.levels.index(reference)
        columns = _columns(design, position)
        for model in models:
            kept = np.ones(len(keys.model), dtype=bool) if model is None else keys.model == model
            fit = _fit(design, keys, kept, columns, place)
            if fit is not None:
                name = None if model is None else design.models[model]
                fits.append(_Fitted(factor.name, factor.levels, place, name, fit, noise))
    if not fits:
        return None
    units = design.axes[0].name if design.n_units > design.n_scenarios else "scenario"
    cells = [units, *(["model"] if design.has_models else [])]
    if "variant" in design.responses.columns:
        cells.append("variant")
    if len(design.factors) > 1:
        cells.append("other conditions")
    return ContrastRegressions(tuple(fits), " x ".join(cells), metric)


def _columns(design: Design, position: int) -> Codes:
    """Joint level of each level of a factor, for each combination of the others; -1 where there is none."""
    code = {level.parts: index for index, level in enumerate(design.levels)}
    others = dict.fromkeys((*level.parts[:position], *level.parts[position + 1 :]) for level in design.levels)
    levels = design.factors[position].levels
    return np.array(
        [
            [code.get((*other[:position], level, *other[position:]), -1) for level in levels]
            for other in others
        ]
    )


def _fit(
    design: Design, keys: Keys, kept: NDArray[np.bool_], columns: Codes, reference: int
) -> Absorbed | None:
    def of_levels(values: Array, row: Sequence[int]) -> Array:
        padded = np.concatenate([values, np.zeros((len(values), 1))], axis=1)
        return padded[:, row]

    counts = keys.counts[kept].astype(np.float64)
    sums = np.where(counts > 0, keys.values[kept], 0.0) * counts
    repeats = len(columns)
    n = np.concatenate([of_levels(counts, row) for row in columns.tolist()])
    s = np.concatenate([of_levels(sums, row) for row in columns.tolist()])
    clusters = [
        np.tile(axis.codes[(keys.unit if axis.by == "unit" else keys.model)[kept]], repeats)
        for axis in design.axes
    ]
    try:
        return fit_absorbed(n, s, clusters, reference=reference)
    except DesignError:  # one level only, or one cluster
        return None
