"""LogitModel: average marginal effects and log odds of a logit, with errors by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats.arguments import valid_level
from triagestats.models.marginal import Effect
from triagestats.models.matrix import ModelMatrix
from triagestats.models.t_inference import UNKNOWN, inference_of
from triagestats.results import Note, Shown, as_json, tidy_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LogitModel"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LogitModel(Shown):
    """A logit that was fitted by generalised estimating equations.

    Attributes
    ----------
    formula
        As it was written.
    estimates
        Log odds, shape (k,), in the order of `matrix.terms`; NaN where a coefficient is infinite.
    vcov
        Their cluster-robust covariance matrix, shape (k, k).
    effects
        Average marginal effects, on the scale of the probability.
    effects_vcov
        Their covariance matrix by the delta method, shape (m, m).
    undefined
        Effects and terms without an error, and why; effects by `term, contrast`.
    matrix
        The arrays that were fitted.
    working_correlation
        Correlation of two rows of a cluster, as the equations took it.
    correlation, kind
        The working correlation and the kind of errors.
    conf_level
        Level of the intervals.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = {"item": list("aabbccdd"), "arm": list("uvuvuvuv"), "y": [0, 1, 1, 1, 0, 1, 0, 0]}
    >>> fit = ts.logit("y ~ arm", rows)
    >>> fit.tidy().select("estimand", "term", "contrast")[0].row(0)
    ('average marginal effect', 'arm', 'v - u')
    >>> round(fit.effects[0].estimate, 6)
    0.5
    """

    formula: str
    estimates: Array
    vcov: Array
    effects: tuple[Effect, ...]
    effects_vcov: Array
    undefined: Mapping[str, str]
    matrix: ModelMatrix
    contrasts: Mapping[str, str]
    working_correlation: float
    correlation: str
    kind: str
    n_missing: int
    conf_level: float
    notes: tuple[Note, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.matrix.terms

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.matrix.clusters[0].max()) + 1

    def with_level(self, conf_level: float) -> LogitModel:
        """The same fit with intervals of another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def tidy(self) -> pl.DataFrame:
        """One row an average marginal effect, then one a coefficient, with the columns of the glossary."""
        rows = [
            self._row(
                "average marginal effect", e.term, e.contrast, e.estimate, float(v), f"{e.term}, {e.contrast}"
            )
            for e, v in zip(self.effects, np.diag(self.effects_vcov), strict=True)
        ]
        rows += [
            self._row("log odds", term, self.contrasts.get(term), float(b), float(v), term)
            for term, b, v in zip(self.terms, self.estimates, np.diag(self.vcov), strict=True)
        ]
        return tidy_frame(rows)

    def _row(
        self, estimand: str, term: str, contrast: str | None, estimate: float, variance: float, key: str
    ) -> dict[str, object]:
        reason = self.undefined.get(key)
        if reason is None and not variance > 0:
            reason = "its variance is not positive"
        doubts = " ".join(note.message for note in self.notes if note.level == "caution") or None
        row: dict[str, object] = {
            "estimand": estimand,
            "term": term,
            "contrast": contrast,
            "estimate": estimate,
            "conf_level": self.conf_level,
            "status": "undefined" if reason else "warning" if doubts else "ok",
            "reason": reason or doubts,
            "method": (
                f"GEE logit, {self.correlation}, {self.kind} errors by {self.matrix.cluster_names[0]}"
                f"{', delta method' if estimand != 'log odds' else ''}; t"
            ),
            "n_rows": len(self.matrix.y),
            "n_clusters": self.n_clusters,
        }
        df = float(self.n_clusters - 1)
        numbers = UNKNOWN if reason else inference_of(estimate, variance, df, self.conf_level)
        return row | asdict(numbers)

    def glance(self) -> pl.DataFrame:
        """One row: the size of the fit and its conventions."""
        return pl.DataFrame(
            {
                "n_rows": [len(self.matrix.y)],
                "n_clusters": [self.n_clusters],
                "n_terms": [len(self.terms)],
                "n_missing": [self.n_missing],
                "rate": [float(self.matrix.y.mean())],
                "correlation": [self.correlation],
                "working_correlation": [self.working_correlation],
                "vcov": [self.kind],
                "df": [float(self.n_clusters - 1)],
                "conf_level": [self.conf_level],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Estimates, settings and notes as plain JSON values."""
        return as_json(self, formula=self.formula, estimates=self.tidy())

    def __repr__(self) -> str:
        lines = [
            (
                f"logit {self.formula}: {len(self.matrix.y):,} rows; clusters: {self.n_clusters:,} "
                f"{self.matrix.cluster_names[0]}; working correlation {self.working_correlation:.3g}"
            )
        ]
        for row in self.tidy().iter_rows(named=True):
            what = f"{row['term']}, {row['contrast']}" if row["estimand"] != "log odds" else row["term"]
            estimate = "no estimate" if row["estimate"] is None else f"{row['estimate']:.4g}"
            if row["std_error"] is None:
                lines.append(f"  {row['estimand']} of {what}: {estimate}, no error ({row['reason']})")
                continue
            lines.append(
                f"  {row['estimand']} of {what}: {estimate}, error {row['std_error']:.4g}, "
                f"{self.conf_level * 100:g} % [{row['conf_low']:.4g}, {row['conf_high']:.4g}], "
                f"p = {row['p_value']:.3g}"
            )
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])
