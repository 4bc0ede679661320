"""The likelihood ratio test of two mixed models, one of which contains the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from scipy import stats

from triagestats.errors import ArgumentError
from triagestats.models.mixed.laplace import LaplaceFit
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.results import Note, Test

__all__ = ["Nested", "likelihood_ratio"]


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """A model to compare: its formula, cells and fit, and the columns of the cells."""

    formula: str
    matrix: MixedMatrix
    fit: LaplaceFit
    frame: pl.DataFrame

    @property
    def n_random(self) -> int:
        """Parameters of the random effects."""
        return sum(part.width * (part.width + 1) // 2 for part in self.matrix.random)

    @property
    def n_variances(self) -> int:
        """Variances among them; the others are covariances, which may be of either sign."""
        return sum(part.width for part in self.matrix.random)

    @property
    def groupings(self) -> dict[tuple[str, ...], set[str]]:
        """The effects of each grouping."""
        found: dict[tuple[str, ...], set[str]] = {}
        for part in self.matrix.random:
            found.setdefault(part.parts, set()).update(part.z_names)
        return found


def likelihood_ratio(larger: Nested, smaller: Nested) -> Test:
    """Twice the difference of the log-likelihoods, against its law under the smaller model.

    Raises
    ------
    ArgumentError
        If the models are not nested, or their likelihoods cannot be compared.
    """
    _check(larger, smaller)
    df = larger.fit.n_parameters - smaller.fit.n_parameters
    statistic = 2 * (larger.fit.loglik - smaller.fit.loglik)
    lost = larger.n_random - smaller.n_random
    edge = larger.n_variances - smaller.n_variances
    p_value = float(stats.chi2.sf(max(statistic, 0.0), df))
    method, notes = f"likelihood ratio test, chi-square with {df} df", []
    if edge and df == 1:
        p_value = 0.5 * p_value if statistic > 0 else 1.0
        method = "likelihood ratio test, half chi-square with 1 df"
        notes.append(
            Note(
                "boundary",
                "Under the hypothesis the variance lies on the edge of its range: half of the law is at 0.",
            )
        )
    elif edge and lost:
        notes.append(
            Note(
                "boundary",
                "Under the hypothesis variances lie on the edge of their range: p is an upper bound.",
                "caution",
            )
        )
    if statistic < 0:
        message = (
            "The larger model has the lower likelihood: one of the fits has not reached its maximum, or the "
            "difference is rounding."
        )
        notes.append(Note("negative", message, "caution"))
    return Test(
        estimand="likelihood ratio",
        contrast=f"{larger.formula} / {smaller.formula}",
        statistic=statistic,
        p_value=p_value,
        method=method,
        n=larger.matrix.n_rows,
        details={"df": float(df), "loglik": larger.fit.loglik, "loglik_smaller": smaller.fit.loglik},
        notes=tuple(notes),
    )


def _check(larger: Nested, smaller: Nested) -> None:
    one, other = larger.matrix, smaller.matrix
    if one.family != other.family or one.n_rows != other.n_rows or not _same_rows(larger, smaller):
        raise ArgumentError(
            "`smaller` must be fitted to the same rows and family; it has "
            f"{other.n_rows:,} rows, {other.family}, against {one.n_rows:,}, {one.family}. Leave out rows "
            "with missing values before both fits"
        )
    # Without random effects nothing is approximated, whatever the nodes.
    if smaller.matrix.random and larger.fit.nodes != smaller.fit.nodes:
        raise ArgumentError(
            f"`smaller` must be fitted with as many nodes: {smaller.fit.nodes} against {larger.fit.nodes} "
            "are different approximations of the likelihood"
        )
    same_fixed = one.terms == other.terms
    if one.family == "gaussian" and larger.fit.reml != smaller.fit.reml:
        raise ArgumentError("`smaller` must be fitted with the same `reml`")
    if one.family == "gaussian" and larger.fit.reml and not same_fixed:
        raise ArgumentError(
            "`smaller` has other regressors, and restricted likelihoods of different regressors cannot be "
            "compared: fit both with reml=False"
        )
    lacking = set(other.terms) - set(one.terms)
    own, of_other = larger.groupings, smaller.groupings
    lacking |= {":".join(group) for group, names in of_other.items() if not names <= own.get(group, set())}
    if lacking or smaller.fit.n_parameters >= larger.fit.n_parameters:
        why = (
            f"it has {', '.join(sorted(lacking))}, which the larger does not" if lacking else "it is as large"
        )
        raise ArgumentError(f"`smaller` must be a part of the model; {why}")


def _same_rows(one: Nested, other: Nested) -> bool:
    """Whether the outcomes are the same by the columns that both have; cells may be cut differently."""
    if one.matrix.levels != other.matrix.levels:
        return False
    columns = [name for name in one.frame.columns if name in other.frame.columns]
    if any(one.frame[name].dtype != other.frame[name].dtype for name in columns):
        return False
    return _outcomes(one, columns).equals(_outcomes(other, columns))


def _outcomes(model: Nested, columns: Sequence[str]) -> pl.DataFrame:
    """Rows by outcome and columns; of 0 and 1 the sum of the outcomes, which says the same."""
    matrix = model.matrix
    cells = model.frame.select(
        *(pl.col(name).alias(f"column {place}") for place, name in enumerate(columns)),
        outcome=pl.Series(matrix.y),
        rows=pl.Series(matrix.counts),
    )
    keys = [name for name in cells.columns if name not in ("outcome", "rows")]
    if matrix.family != "binomial":
        keys.append("outcome")
    sums = [pl.col(name).sum() for name in ("outcome", "rows") if name not in keys]
    return cells.group_by(keys).agg(sums).sort(keys) if keys else cells.select(sums)
