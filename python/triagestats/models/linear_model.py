"""LinearModel: least-squares coefficients with their covariance matrix, read as tests and intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.arguments import valid_level
from triagestats.errors import ArgumentError
from triagestats.models.covariance import Covariance
from triagestats.models.engines import Engine
from triagestats.models.formula import INTERCEPT
from triagestats.models.leverage import leverage_of
from triagestats.models.linear_terms import combination_of, terms_of
from triagestats.models.matrix import ModelMatrix
from triagestats.models.sandwich import SmallSample, Vcov
from triagestats.models.t_inference import UNKNOWN, hypothesis, inference_of
from triagestats.results import Note, Shown, Test, as_json, plain, tidy_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LinearModel"]

_DOUBTS: Final = ("few_clusters", "many_regressors", "one_cluster", "independence", "repaired")
"""Codes of the notes that make an error doubtful."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinearModel(Shown):
    """A linear model that was fitted by least squares.

    Attributes
    ----------
    formula
        As it was written.
    estimates
        Coefficients, shape (k,), in the order of `terms`.
    vcov
        Their covariance matrix, shape (k, k), with its small-sample factor.
    residuals
        Shape (n,), in the order of the rows that were used.
    matrix
        The arrays that were fitted; `matrix.terms` names the coefficients.
    covariance
        The matrix before factors and repairs, the factors, K, and degrees of freedom.
    kind, small_sample
        The convention of the errors.
    engine
        The library of the estimates.
    parts
        The parts of the formula, each with its terms.
    contrasts
        Of each dummy the comparison in words.
    undefined
        Terms whose error is undefined, and why.
    dropped
        Terms that were left out as collinear.
    n_missing, n_singletons
        Rows that were left out.
    crosscheck
        All engines side by side: `engine`, `term`, `estimate`, `std_error`, `factor`; None if not asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = {"item": list("aabbccdd"), "arm": list("uvuvuvuv"), "y": [0, 1, 1, 1, 0, 1, 0, 0]}
    >>> fit = ts.lpm("y ~ arm | item", rows)
    >>> fit.tidy().select("term", "contrast", "estimate", "df").rows()
    [('arm[T.v]', 'v - u', 0.5, 3.0)]
    >>> fit.contrast({"arm[T.v]": 2}).estimate, fit.with_level(0.9).conf_level
    (1.0, 0.9)
    """

    formula: str
    estimates: Array
    vcov: Array
    residuals: Array
    matrix: ModelMatrix
    covariance: Covariance
    kind: Vcov
    small_sample: SmallSample
    engine: Engine
    conf_level: float
    parts: Mapping[str, tuple[str, ...]]
    contrasts: Mapping[str, str]
    undefined: Mapping[str, str]
    dropped: tuple[str, ...]
    n_missing: int
    n_singletons: int
    r_squared: float
    r_squared_within: float
    crosscheck: pl.DataFrame | None
    notes: tuple[Note, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.matrix.terms

    @property
    def fitted(self) -> Array:
        """Fitted values, fixed effects included, shape (n,); they may leave 0 to 1."""
        return self.matrix.y - self.residuals

    @property
    def std_errors(self) -> Array:
        """Standard errors, shape (k,); NaN where undefined."""
        known = np.array([term not in self.undefined for term in self.terms])
        return np.sqrt(np.where(known, np.diag(self.vcov), np.nan))

    @property
    def df(self) -> Array:
        """Degrees of freedom of each coefficient, shape (k,)."""
        return np.array([self.covariance.df_of(row) for row in np.eye(len(self.terms))])

    @property
    def n_clusters(self) -> int | None:
        """Clusters, the smaller number of two; None where the errors are not clustered."""
        return min(self.covariance.sizes, default=None)

    def with_level(self, conf_level: float) -> LinearModel:
        """The same fit with intervals of another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def leave_one_out(self) -> Array:
        """Coefficients without each cluster, shape (G, k), in the order of the cluster codes.

        Raises
        ------
        ArgumentError
            If the model has not one cluster column.
        """
        if len(self.matrix.clusters) != 1:
            raise ArgumentError("to leave clusters out, the model needs one cluster column")
        leverage = leverage_of(
            self.matrix.x, self.matrix.absorbed, self.matrix.weights, self.residuals, self.matrix.clusters[0]
        )
        without = self.estimates - leverage.contributions(-1.0)
        without[:, ~leverage.estimable()] = np.nan
        return without

    def contrast(self, weights: Mapping[str, float] | str, *, value: float = 0.0) -> Test:
        """A combination of coefficients, `sum w_j b_j`, with its interval and the test that it is `value`.

        Parameters
        ----------
        weights
            Term to weight, or a sum such as `"a - b"` or `"0.5*a + 0.5*b"`.
        value
            Of the combination under the hypothesis.

        Returns
        -------
        Test
            `details`: `value`, `std_error`, `df`, `n_clusters`.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If a term is not known, or `weights` cannot be read.
        """
        vector, words = combination_of(weights, self.terms)
        held = hypothesis(value)
        estimate = float(vector @ self.estimates)
        variance = float(vector @ self.vcov @ vector)
        used = [term for term, weight in zip(self.terms, vector, strict=True) if weight]
        reason = next((self.undefined[term] for term in used if term in self.undefined), None)
        scale = float(vector**2 @ np.abs(np.diag(self.vcov)))
        if reason is None and not variance > 1e-14 * scale:
            reason = "the variance of this combination is not positive"
        df = self.covariance.df_of(vector)
        numbers = UNKNOWN if reason else inference_of(estimate, variance, df, self.conf_level, value=held)
        return Test(
            estimand="combination of coefficients",
            contrast=words,
            estimate=estimate,
            statistic=numbers.statistic,
            p_value=numbers.p_value,
            conf_low=numbers.conf_low,
            conf_high=numbers.conf_high,
            conf_level=self.conf_level,
            method=f"{self._errors}; t",
            n=len(self.matrix.y),
            details={
                "value": held,
                "std_error": numbers.std_error,
                "df": numbers.df,
                "n_clusters": self.n_clusters,
            },
            notes=(
                *self._doubts(used),
                *([Note("undefined", f"No error: {reason}.", "caution")] if reason else []),
            ),
        )

    def wald(self, terms: str | Sequence[str] | None = None) -> Test:
        """Joint test that several coefficients are 0.

        With b the q coefficients and V their covariance matrix, `F = b' V^-1 b / q` on q and `df`
        degrees of freedom.

        Parameters
        ----------
        terms
            Terms, or parts of the formula such as `condition`, which stand for all their terms. Default:
            all but the constant.

        Returns
        -------
        Test
            `details`: `df_num`, `df` (of the denominator), `terms`, `n_clusters`.

        Raises
        ------
        ArgumentError
            If a name is not known.

        Notes
        -----
        The denominator has the degrees of freedom of the model, G - 1 for clusters; with Satterthwaite's
        the smallest of the coefficients, which is conservative. A matrix from G clusters has rank G - 1 at
        most: more coefficients than that cannot be tested together.
        """
        wanted = [term for term in self.terms if term != INTERCEPT] if terms is None else terms
        places = terms_of(wanted, self.terms, self.parts)
        names = tuple(self.terms[place] for place in places)
        b, v = self.estimates[places], self.vcov[np.ix_(places, places)]
        q = len(places)
        df = float(min(self.df[places]))
        reason = next((f"{name}: {self.undefined[name]}" for name in names if name in self.undefined), None)
        if reason is None and self.n_clusters is not None and q > self.n_clusters - 1:
            reason = (
                f"{q} coefficients cannot be tested together with {self.n_clusters} clusters, "
                f"which carry {self.n_clusters - 1} at most"
            )
        scale = np.sqrt(np.abs(np.diag(v)))
        if reason is None:
            v = v / np.outer(scale, scale)
            if np.linalg.eigvalsh(v).min() < 1e-12:
                reason = "the covariance matrix of these coefficients is not positive definite"
        statistic = p_value = None
        if reason is None:
            from scipy import stats

            statistic = float(b / scale @ np.linalg.solve(v, b / scale)) / q
            p_value = float(stats.f.sf(statistic, q, df))
        return Test(
            estimand="coefficients",
            contrast=" = ".join((*names, "0")),
            statistic=statistic,
            p_value=p_value,
            method=f"Wald F, {self._errors}",
            n=len(self.matrix.y),
            details={"df_num": q, "df": df, "terms": list(names), "n_clusters": self.n_clusters},
            notes=(
                *self._doubts(names),
                *([Note("undefined", f"No joint test: {reason}.", "caution")] if reason else []),
            ),
        )

    def tidy(self) -> pl.DataFrame:
        """One row a coefficient, with the columns of the glossary."""
        rows = []
        for j, (term, df) in enumerate(zip(self.terms, self.df, strict=True)):
            reason = self.undefined.get(term)
            doubts = " ".join(note.message for note in self._doubts([term])) or None
            estimate, variance = float(self.estimates[j]), float(self.vcov[j, j])
            numbers = UNKNOWN if reason else inference_of(estimate, variance, float(df), self.conf_level)
            rows.append(
                {
                    "estimand": "coefficient",
                    "term": term,
                    "contrast": self.contrasts.get(term),
                    "estimate": estimate,
                    **asdict(numbers),
                    "conf_level": self.conf_level,
                    "status": "undefined" if reason else "warning" if doubts else "ok",
                    "reason": reason or doubts,
                    "method": f"{self._errors}; t",
                    "n_rows": len(self.matrix.y),
                    "n_clusters": self.n_clusters,
                }
            )
        return tidy_frame(rows)

    def glance(self) -> pl.DataFrame:
        """One row: the size of the fit and its conventions."""
        sizes = self.covariance.sizes
        values: dict[str, tuple[Any, Any]] = {
            "n_rows": (len(self.matrix.y), pl.Int64),
            "n_clusters": (sizes[0] if sizes else None, pl.Int64),
            "n_clusters_2": (sizes[1] if len(sizes) > 1 else None, pl.Int64),
            "n_terms": (len(self.terms), pl.Int64),
            "n_parameters": (self.covariance.n_parameters, pl.Int64),
            "n_missing": (self.n_missing, pl.Int64),
            "n_singletons": (self.n_singletons, pl.Int64),
            "n_collinear": (len(self.dropped), pl.Int64),
            "vcov": (self.kind, pl.String),
            "factor": (self.covariance.factors[0], pl.Float64),
            "df": (self.covariance.df, pl.Float64),
            "r_squared": (self.r_squared, pl.Float64),
            "r_squared_within": (self.r_squared_within, pl.Float64),
            "engine": (self.engine, pl.String),
            "conf_level": (self.conf_level, pl.Float64),
            "n_notes": (len(self.notes), pl.Int64),
        }
        return pl.DataFrame(
            {name: [value] for name, (value, _) in values.items()},
            schema={name: kind for name, (_, kind) in values.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Coefficients, settings and notes as plain JSON values."""
        return as_json(
            self,
            formula=self.formula,
            estimates=self.tidy(),
            vcov=self.vcov.tolist(),
            crosscheck=None if self.crosscheck is None else plain(self.crosscheck),
        )

    def __repr__(self) -> str:
        clusters = ""
        if self.covariance.sizes:
            sizes = zip(self.covariance.sizes, self.matrix.cluster_names, strict=True)
            clusters = "; clusters: " + " and ".join(f"{size:,} {name}" for size, name in sizes)
        lines = [f"{self.formula}: {len(self.matrix.y):,} rows{clusters}"]
        for row in self.tidy().iter_rows(named=True):
            if row["std_error"] is None:
                lines.append(f"  {row['term']}: {row['estimate']:.4g}, no error ({row['reason']})")
                continue
            lines.append(
                f"  {row['term']}: {row['estimate']:.4g}, error {row['std_error']:.4g}, "
                f"{self.conf_level * 100:g} % [{row['conf_low']:.4g}, {row['conf_high']:.4g}], "
                f"t({row['df']:.4g}) = {row['statistic']:.4g}, p = {row['p_value']:.3g}"
                + (
                    " (not to be trusted: one cluster decides it)"
                    if row["term"] in self._of_one_cluster
                    else ""
                )
            )
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])

    @property
    def _errors(self) -> str:
        by = f" by {' and '.join(self.matrix.cluster_names)}" if self.covariance.sizes else ""
        return f"least squares, {self.kind}{by}"

    def _doubts(self, terms: Collection[str]) -> tuple[Note, ...]:
        """The notes that make the errors of some terms doubtful."""
        return tuple(
            note
            for note in self.notes
            if note.code in _DOUBTS
            and (note.code != "one_cluster" or not self._of_one_cluster.isdisjoint(terms))
        )

    @property
    def _of_one_cluster(self) -> frozenset[str]:
        """Terms that one cluster alone decides."""
        fine = self.covariance.estimable
        return frozenset(term for term, known in zip(self.terms, fine, strict=True) if not known)
