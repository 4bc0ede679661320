"""Average marginal effects of a logit, with the gradient that the delta method needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.errors import DataError
from triagestats.models.design_columns import Columns, is_category, levels_in
from triagestats.models.formula import Formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Effect", "effects_of"]

_STEP: Final = 1e-4
"""Of the spread of a column: half the difference that gives a slope."""


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """One average marginal effect.

    Attributes
    ----------
    term
        The column of the table.
    contrast
        `b - a` for levels, `1 - 0` for 0/1 columns, `slope` for numbers.
    estimate
        Change of the mean probability; NaN where it is not identified.
    gradient
        Its derivative with regard to the coefficients, shape (k,).
    certain
        Whether some of its probabilities are 0 or 1, so that the gradient says nothing of them.
    """

    term: str
    contrast: str
    estimate: float
    gradient: Array
    certain: bool


def effects_of(
    formula: Formula,
    frame: pl.DataFrame,
    columns: Columns,
    kept: NDArray[np.bool_],
    log_odds: Callable[[Array], Array],
    coefficients: Array,
) -> Iterator[Effect]:
    """The average marginal effects of every column among the regressors.

    For a level l against the reference r, `mean_i p(x_i with l) - p(x_i with r)`; the same for 1 against 0;
    for a number `mean_i dp(x_i)/dx`. The other columns stay as they
    are in each row. A column whose regressors were all left out has no effect.

    Parameters
    ----------
    formula, frame, columns, kept
        The regressors, and which of them have coefficients.
    log_odds
        From regressors (n, k) to log odds (n,), infinite where the outcome is certain.
    coefficients
        Shape (k,).
    """
    for name in formula.regressors:
        series = frame[name]
        as_levels = re.search(rf"\bC\(\s*`?{re.escape(name)}`?\s*[,)]", formula.fixed) is not None
        if is_category(series):
            levels: list[object] = list(levels_in(series))
        elif as_levels or set(series.unique()) <= {0, 1}:
            levels = sorted(series.unique().to_list())
        else:
            slope = _slope(name, series, columns, kept, log_odds, coefficients)
            if slope is not None:
                yield slope
            continue
        at = [columns.with_column(name, level)[:, kept] for level in levels]
        odds = [log_odds(x) for x in at]
        certain = [bool((~np.isfinite(each)).any()) for each in odds]
        chances = [_chance(each) for each in odds]
        means = [float(p.mean()) for p in chances]
        gradients = [((p * (1 - p))[:, None] * x).mean(axis=0) for p, x in zip(chances, at, strict=True)]
        for place in range(1, len(levels)):
            if (at[place] == at[0]).all():
                continue
            words = f"{_label(levels[place])} - {_label(levels[0])}"
            yield Effect(
                term=name,
                contrast=words,
                estimate=means[place] - means[0],
                gradient=gradients[place] - gradients[0],
                certain=certain[place] or certain[0],
            )


def _slope(
    name: str,
    series: pl.Series,
    columns: Columns,
    kept: NDArray[np.bool_],
    log_odds: Callable[[Array], Array],
    coefficients: Array,
) -> Effect | None:
    values = series.cast(pl.Float64).to_numpy()
    step = np.full(len(values), _STEP * float(values.std()))
    change = _change(name, values, step, columns)[:, kept]
    if (bad := ~np.isfinite(change).all(axis=1)).any():  # a step over the edge of where a function is defined
        step[bad] = _STEP * np.abs(values[bad])
        change = _change(name, values, step, columns)[:, kept]
    if not np.isfinite(change).all():
        raise DataError(
            f"`formula` has a function of {name!r} that has no slope at some of its values; take another "
            "function, or drop these rows"
        )
    if not change.any():
        return None
    x = columns.values[:, kept]
    odds = log_odds(x)
    p = _chance(odds)
    along = change @ coefficients
    weight = p * (1 - p)
    rows = (weight * (1 - 2 * p) * along)[:, None] * x + weight[:, None] * change
    certain = bool((~np.isfinite(odds)).any())
    return Effect(name, "slope", float((weight * along).mean()), rows.mean(axis=0), certain)


def _change(name: str, values: Array, step: Array, columns: Columns) -> Array:
    """The slope of each regressor in a column, in every row, shape (n, k)."""
    above, below = values + step, values - step
    rise = columns.with_column(name, above) - columns.with_column(name, below)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope: Array = rise / (above - below)[:, None]  # twice the step but for rounding
    return slope


def _chance(log_odds: Array) -> Array:
    from scipy.special import expit

    chance: Array = expit(log_odds)
    return chance


def _label(level: object) -> str:
    return str(int(level)) if isinstance(level, bool | float) and level == int(level) else str(level)
