"""Posterior predictive checks: whether the model makes data like those that were seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentError
from triagestats.models.formula import INTERCEPT
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.likelihood import blocks, new_level_counts, new_outcomes, predictor
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.thinning import thinned
from triagestats.results import Note, Shown, as_json, tidy_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["CheckedLevels", "PredictiveCheck", "predictive_check"]

CheckedLevels = Literal["observed", "new"]

_MOST_PATTERNS: Final = 12
_DOUBTFUL: Final = 0.025
_TINY: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PredictiveCheck(Shown):
    """Statistics of the data beside those of data that the model makes at each draw.

    Attributes
    ----------
    names
        The k statistics.
    observed
        Of the data, shape (k,).
    replicated
        Of new data, shape (draws, k).
    levels
        `observed`: new answers of the levels that were seen; `new`: of new levels.
    notes
        Choices made and doubts.
    """

    names: tuple[str, ...]
    observed: Array
    replicated: Array
    levels: CheckedLevels
    n_rows: int
    notes: tuple[Note, ...]

    @property
    def p_values(self) -> Array:
        """Share of new data with a larger statistic, half of those that tie, shape (k,)."""
        tolerance = _TINY * np.maximum(np.abs(self.observed), 1)
        ties = np.abs(self.replicated - self.observed) <= tolerance
        above = (self.replicated > self.observed) & ~ties
        shares: Array = above.mean(axis=0) + 0.5 * ties.mean(axis=0)
        return shares

    def tidy(self) -> pl.DataFrame:
        """One row a statistic: the observed value, mean and 95 % interval of the new ones in the method."""
        low, high = np.quantile(self.replicated, [0.025, 0.975], axis=0)
        rows = []
        for place, name in enumerate(self.names):
            p = float(self.p_values[place])
            odd = min(p, 1 - p) < _DOUBTFUL
            rows.append(
                {
                    "estimand": "posterior predictive check",
                    "term": name,
                    "estimate": float(self.observed[place]),
                    "conf_low": float(low[place]),
                    "conf_high": float(high[place]),
                    "conf_level": 0.95,
                    "statistic": p,
                    "status": "warning" if odd else "ok",
                    "reason": "the model rarely makes data like these" if odd else None,
                    "method": f"observed value; interval of new data of {self.levels} levels; statistic is "
                    "the Bayesian p-value",
                    "n_rows": self.n_rows,
                }
            )
        return tidy_frame(rows)

    def glance(self) -> pl.DataFrame:
        """One row: how many statistics are far from what the model makes."""
        p = self.p_values
        return pl.DataFrame(
            {
                "n_statistics": [len(self.names)],
                "n_doubtful": [int((np.minimum(p, 1 - p) < _DOUBTFUL).sum())],
                "levels": [self.levels],
                "n_draws": [len(self.replicated)],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Statistics, settings and notes as plain JSON values."""
        return as_json(self, statistics=self.tidy())

    def __repr__(self) -> str:
        lines = [f"Posterior predictive check, {self.levels} levels, {len(self.replicated):,} new data sets"]
        for row in self.tidy().iter_rows(named=True):
            lines.append(
                f"  {row['term']}: observed {row['estimate']:.4g}, new 95 % [{row['conf_low']:.4g}, "
                f"{row['conf_high']:.4g}], share above {row['statistic']:.3g}"
                + (f": {row['reason']}" if row["reason"] else "")
            )
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])


def predictive_check(
    matrix: MixedMatrix,
    draws: Draws,
    *,
    levels: CheckedLevels = "observed",
    groups: Mapping[str, NDArray[np.int64]] | None = None,
    most_draws: int = 1_000,
    seed: int = 0,
) -> PredictiveCheck:
    """Compare statistics of the data with those of new data.

    The statistics are the mean of all rows (the rate; of levels from 1 for an ordinal outcome, with the
    share of each level), the mean of each group, and for every random part the standard deviation of the
    means of its levels and their extremes.

    Parameters
    ----------
    matrix, draws
        The model and its draws.
    levels
        `observed`: new answers of the same scenarios and models, with their effects as drawn. `new`: of new
        ones, whose effects are drawn from their normal distribution, which tests that distribution.
    groups
        By name, which cells belong to a group, shape (n,), true or 1. Default: the patterns of regressors,
        where there are at most 12.
    most_draws
        Of more draws, every k-th is used.
    seed
        Of the new data.

    References
    ----------
    Gelman, A., Meng, X.-L. and Stern, H. (1996), Posterior predictive assessment of model fitness via
    realized discrepancies, Statistica Sinica 6(4):733-760.
    """
    valid_choice("levels", levels, CheckedLevels)
    kept = thinned(draws, most_draws)
    n = kept.n_chains * kept.n_draws
    rng = np.random.default_rng([seed, 0xC4EC])
    if levels == "new":
        kept = _with_new_levels(kept, rng)
    chosen, notes = _groups(matrix, groups)
    if kept.n_draws < draws.n_draws:
        notes = (
            *notes,
            Note("thinned", f"{n:,} of {draws.n_chains * draws.n_draws:,} draws make new data."),
        )
    sums = _Sums(matrix, chosen)
    observed = sums.start(1)
    replicated = sums.start(n)
    for rows in blocks(len(matrix.y), n * max(len(matrix.levels), 1)):
        eta = predictor(matrix, kept, rows)
        if matrix.family == "ordinal":
            counts = new_level_counts(matrix, kept, rows, eta, rng)
            sums.add(replicated, rows, counts @ np.arange(1.0, len(matrix.levels) + 1), counts)
        else:
            sums.add(replicated, rows, new_outcomes(matrix, kept, rows, eta, rng), None)
        sums.add(observed, rows, *_seen(matrix, rows))
    names = sums.names()
    return PredictiveCheck(
        names=names,
        observed=sums.statistics(observed)[0],
        replicated=sums.statistics(replicated),
        levels=levels,
        n_rows=matrix.n_rows,
        notes=notes,
    )


def _seen(matrix: MixedMatrix, rows: slice) -> tuple[Array, Array | None]:
    y, counts = matrix.y[rows], matrix.counts[rows]
    if matrix.family != "ordinal":
        return y[:, None], None
    table = np.zeros((len(y), 1, len(matrix.levels)))
    table[np.arange(len(y)), 0, y.astype(np.int64)] = counts
    return (counts * (y + 1))[:, None], table


def _with_new_levels(draws: Draws, rng: np.random.Generator) -> Draws:
    effects = tuple((old.shape, factor) for old, factor in zip(draws.effects, draws.factors, strict=True))
    fresh = tuple(rng.standard_normal(shape) @ factor.swapaxes(2, 3) for shape, factor in effects)
    return replace(draws, effects=fresh)


def _groups(
    matrix: MixedMatrix, groups: Mapping[str, NDArray[np.int64]] | None
) -> tuple[dict[str, NDArray[np.bool_]], tuple[Note, ...]]:
    if groups is not None:
        for name, members in groups.items():
            if np.shape(members) != matrix.y.shape:
                raise ArgumentError(
                    f"`groups` must have one value for each of the {len(matrix.y)} cells; {name!r} has "
                    f"shape {np.shape(members)}"
                )
        return {name: np.asarray(members, dtype=bool) for name, members in groups.items()}, ()
    patterns, which = np.unique(matrix.x, axis=0, return_inverse=True)
    if len(patterns) > _MOST_PATTERNS:
        note = Note(
            "no_groups",
            f"The regressors have {len(patterns):,} patterns: no means of groups are checked unless `groups` "
            "names some.",
        )
        return {}, (note,)
    if len(patterns) < 2:
        return {}, ()
    return {_pattern(matrix.terms, row): which.ravel() == place for place, row in enumerate(patterns)}, ()


def _pattern(terms: tuple[str, ...], row: Array) -> str:
    parts = [
        term if value == 1 else f"{term} = {value:g}"
        for term, value in zip(terms, row, strict=True)
        if value != 0 and term != INTERCEPT
    ]
    return " and ".join(parts) or "reference"


class _Sums:
    """Sums of outcomes over rows, groups and levels, from which the statistics are read."""

    def __init__(self, matrix: MixedMatrix, groups: Mapping[str, NDArray[np.bool_]]) -> None:
        self._matrix = matrix
        self._groups = groups
        self._rows = [
            np.bincount(part.codes, weights=matrix.counts, minlength=part.n_levels) for part in matrix.random
        ]

    def start(self, n: int) -> dict[str, Array]:
        """Sums of nothing for n data sets."""
        sums = {"all": np.zeros(n), "levels": np.zeros((n, len(self._matrix.levels)))}
        sums |= {f"group {name}": np.zeros(n) for name in self._groups}
        return sums | {f"part {part.name}": np.zeros((part.n_levels, n)) for part in self._matrix.random}

    def add(self, sums: dict[str, Array], rows: slice, totals: Array, counts: Array | None) -> None:
        """Add cells: the sum of the outcomes of each, (cells, n), and their rows by level, (cells, n, J)."""
        sums["all"] += totals.sum(axis=0)
        if counts is not None:
            sums["levels"] += counts.sum(axis=0)
        for name, members in self._groups.items():
            sums[f"group {name}"] += totals[members[rows]].sum(axis=0)
        for part in self._matrix.random:
            np.add.at(sums[f"part {part.name}"], part.codes[rows], totals)

    def names(self) -> tuple[str, ...]:
        """Names of the statistics."""
        mean = "rate" if self._matrix.family == "binomial" else "mean"
        found = [mean, *(f"share of {level}" for level in self._matrix.levels)]
        found += [f"{mean} of {name}" for name in self._groups]
        for part in self._matrix.random:
            found += [f"{what} of the {mean}s by {part.name}" for what in ("sd", "least", "largest")]
        return tuple(found)

    def statistics(self, sums: dict[str, Array]) -> Array:
        """Their values, shape (n, k)."""
        counts = self._matrix.counts
        columns = [sums["all"] / counts.sum(), *(sums["levels"] / counts.sum()).T]
        columns += [sums[f"group {name}"] / counts[members].sum() for name, members in self._groups.items()]
        for part, rows in zip(self._matrix.random, self._rows, strict=True):
            means = sums[f"part {part.name}"][rows > 0] / rows[rows > 0, None]
            columns += [means.std(axis=0), means.min(axis=0), means.max(axis=0)]
        return np.column_stack(columns)
