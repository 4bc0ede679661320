"""model_correlation: two quantities across models, with a flag where one holds the noise of the other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.blocks import Target
from triagestats.design import Design, design_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Estimand, Mean
from triagestats.labels import listed
from triagestats.models.association import (
    Correlation,
    Correlator,
    Tested,
    fisher_interval,
    varies,
)
from triagestats.models.shared_noise import by_model, oldham, shared_levels, split_half
from triagestats.models.targets import measured, suggestion
from triagestats.pairs import read_pairs
from triagestats.plan import targets_of
from triagestats.resample import valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.schema import Match, Weights
from triagestats.table import ResponseTable
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["model_correlation"]

FEW: Final = 10
"""Models below which a correlation says little."""
ALPHA: Final = 0.05
"""A test that cannot reach it carries a note."""
_NAMES: Final = {"pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}
_WAYS: Final = {
    "pearson": "Fisher's z",
    "spearman": "Fisher's z with the variance of Bonett and Wright",
    "kendall": "Fisher's z with the variance of Fieller, Hartley and Pearson",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Two values a model, what they are called, and what else is known of them."""

    x: Array
    y: Array
    names: tuple[str, str]
    what: str
    details: dict[str, Any]
    notes: tuple[Note, ...]
    n_missing: int


def model_correlation(
    x: Iterable[Any] | str | Estimand,
    y: Iterable[Any] | str | Estimand,
    *,
    data: object = None,
    method: Correlation = "pearson",
    alternative: Alternative = "two-sided",
    match: Match = "cell",
    weights: Weights = "scenario",
    missing: Missing = "raise",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Correlation of two quantities across models, such as accuracy and gap.

    The models are the sample: n is their number. With r the coefficient and r* under a permutation of y,

        p = #{|r*| >= |r|} / n!

    over all permutations for n of at most 9, else `(b + 1) / (R + 1)` over R drawn ones.

    Parameters
    ----------
    x, y
        One number a model: lists, arrays or series; or columns of `data`, a table with one row a model.
        Where `data` is a ResponseTable: estimands (`ts.Gap(...)`), condition levels (their mean score), or
        columns that are constant for a model, such as its size.
    data
        The table.
    method
        `pearson`, `spearman` (of midranks) or `kendall` (tau-b).
    alternative
        `two-sided`; `greater`: r* >= r; `less`: r* <= r.
    match, weights
        As in `analyze`, for a ResponseTable.
    missing
        `raise`, or `omit` the rows in which a value is null or NaN; for vectors and columns.
    conf_level
        Level of the interval.
    n_resamples, seed
        R, and a whole number; the same call gives the same answer.

    Returns
    -------
    Test
        `estimate` is the coefficient, `n` the number of models. `details` hold `way`, `n_arrangements`,
        `smallest_p_value` and `n_missing`; of a ResponseTable also `models` with their values `x` and `y`,
        and where the quantities share scores `shared`, `split_half` and `oldham` (see Notes).

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For quantities that cannot be read; the message says how to fix it.

    Notes
    -----
    The p-value needs models that are exchangeable under the hypothesis. Models of one family are not: they
    count as more evidence than they are. Ties are kept by relative tolerance. The interval is that of
    Fisher's z; for Pearson's r it assumes normal values. It is withheld for |r| = 1, for fewer than 4 models
    (Kendall: 5), and carries a caution below 10.

    Where both quantities are computed from the same scores, as a change and its own baseline are, the noise
    of these scores is in both, and they correlate though nothing does (Oldham 1962; Chiolero et al. 2013).
    A note says so, and `details` hold two alternatives without that bias. `split_half` takes x from one
    half of the clusters and y from the other, averaged over 200 random halves in both directions; halves are
    noisier, so that it is attenuated. `oldham` correlates the change with the mean of its two sides
    instead of its baseline; it asks whether the spread of the models grows.

    References
    ----------
    Oldham, P. D. (1962), A note on the analysis of repeated measurements of the same subjects, Journal of
    Chronic Diseases 15:969-977.
    Chiolero, A., Paradis, G., Rich, B. and Hanley, J. A. (2013), Assessing the relationship between the
    baseline value of a continuous variable and subsequent change over time, Frontiers in Public Health
    1:29, doi:10.3389/fpubh.2013.00029.
    Bonett, D. G. and Wright, T. A. (2000), Sample size requirements for estimating Pearson, Kendall and
    Spearman correlations, Psychometrika 65(1):23-28, doi:10.1007/BF02294183.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.model_correlation([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5])
    >>> round(result.estimate, 4), round(result.p_value, 6), result.n
    (0.8286, 0.058333, 6)
    """
    valid_choice("method", method, Correlation)
    valid_choice("alternative", alternative, Alternative)
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    level = valid_level(conf_level)
    correlator = Correlator(method, alternative, valid_resamples(n_resamples), valid_seed(seed))
    if isinstance(data, ResponseTable):
        values = _of_models(data, x, y, match, weights, correlator)
    else:
        values = _of_pairs(x, y, data, missing)
    return _result(values, correlator, level)


def _of_pairs(x: object, y: object, data: object, missing: Missing) -> _Values:
    if any(isinstance(value, Estimand) for value in (x, y)):
        raise ArgumentTypeError("an estimand needs its ResponseTable as `data=`")
    pairs = read_pairs(x, y, data=data, missing=missing)
    notes = tuple(note for note in pairs.notes if note.code == "missing")
    return _Values(pairs.x, pairs.y, pairs.names, "pairs", {}, notes, pairs.n_missing)


def _result(values: _Values, correlator: Correlator, level: float) -> Test:
    n = len(values.x)
    notes = list(values.notes)
    tested = Tested()
    if n < 3:
        notes.append(Note("undefined", f"{n} {values.what}: a correlation needs at least three.", "caution"))
    else:
        tested = correlator.of(values.x, values.y)
        if math.isnan(tested.estimate):
            sides = zip(values.names, (values.x, values.y), strict=True)
            flat = [name for name, side in sides if not varies(side)]
            message = f"{' and '.join(map(repr, flat))} is the same for all {n} {values.what}."
            notes.append(Note("undefined", message, "caution"))
    defined = not math.isnan(tested.estimate)
    ends = fisher_interval(tested.estimate, n, correlator.method, level) if defined else None
    if defined:
        notes += _doubts(n, values.what, tested, has_interval=ends is not None)
    how = f"exact by enumeration of {n}!" if tested.exact else f"{tested.n_arrangements:,} drawn"
    details: dict[str, Any] = {
        "way": "enumeration" if tested.exact else "drawn",
        "n_arrangements": tested.n_arrangements,
        "smallest_p_value": _none(tested.smallest),
        "n_missing": values.n_missing,
        "interval": _WAYS[correlator.method] if ends else None,
        "seed": correlator.seed,
    }
    return Test(
        estimand=correlator.method,
        contrast=f"correlation of {values.names[0]} and {values.names[1]}",
        estimate=_none(tested.estimate),
        statistic=_none(tested.estimate),
        p_value=_none(tested.p_value),
        conf_low=ends[0] if ends else None,
        conf_high=ends[1] if ends else None,
        conf_level=level if ends else None,
        alternative=correlator.alternative,
        method=f"{_NAMES[correlator.method]} across {values.what}, permutation test, {how}",
        n=n,
        details=details | values.details,
        notes=tuple(notes),
    )


def _none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _doubts(n: int, what: str, tested: Tested, *, has_interval: bool) -> list[Note]:
    notes = []
    if n < FEW:
        message = f"n = {n} {what}: with fewer than {FEW} one of them can make or break a correlation" + (
            ", and the interval is rough." if has_interval else "."
        )
        notes.append(Note("few_models", message, "caution"))
    if not has_interval:
        why = "they lie on one line or in one order" if abs(tested.estimate) > 0.5 else f"n = {n} is too few"
        notes.append(Note("no_interval", f"No interval: {why}.", "caution"))
    if tested.smallest > ALPHA:
        message = f"With {n} {what}, p cannot be below {tested.smallest:.3g}."
        notes.append(Note("smallest_p", message, "caution"))
    return notes


def _of_models(
    table: ResponseTable, x: object, y: object, match: Match, weights: Weights, correlator: Correlator
) -> _Values:
    """The quantities of each model, and what their common scores do to the correlation."""
    design = design_of(table)
    if not design.has_models:
        raise DesignError("the table has no model column, so that there is nothing to correlate across")
    sides = [_side(table, design, value, name) for value, name in ((x, "x"), (y, "y"))]
    if sides[0] == sides[1]:
        raise ArgumentError("`x` and `y` are the same quantity")
    targets = tuple(side for side in sides if isinstance(side, Target))
    found = measured(design, targets, match=match, weights=weights)
    blocks = iter(found.blocks)
    names, values = [], []
    for side in sides:
        if isinstance(side, Target):
            names.append(side.estimand.label)
            values.append(by_model(design, next(blocks), found.totals.sum(axis=0)))
        else:
            names.append(side)
            values.append(_column_by_model(table.frame, design, side))
    usable = np.isfinite(values[0]) & np.isfinite(values[1])
    models = [name for name, kept in zip(design.models, usable, strict=True) if kept]
    gone = [name for name in design.models if name not in models]
    notes = []
    if gone:
        notes.append(Note("missing", f"Without both quantities, and left out: {listed(gone)}.", "caution"))
    x_values, y_values = (side[usable] for side in values)
    details: dict[str, Any] = {"models": models, "x": x_values.tolist(), "y": y_values.tolist()}
    if len(targets) == 2 and len(models) > 2 and (shared := shared_levels(design, targets)):
        details |= {
            "shared": shared,
            "split_half": split_half(design, found, usable, correlator),
            "oldham": oldham(design, targets, usable, correlator, match=match, weights=weights),
        }
        notes.append(_shared_note(details))
    return _Values(x_values, y_values, (names[0], names[1]), "models", details, tuple(notes), len(gone))


def _shared_note(details: dict[str, Any]) -> Note:
    instead = [
        f"{name} {details[key]['estimate']:.3g}"
        for key, name in (("split_half", "split halves"), ("oldham", "change with mean (Oldham)"))
        if details[key] is not None
    ]
    return Note(
        "shared_noise",
        f"Both quantities hold the scores at {listed(details['shared'])}, and so the same noise, which alone "
        "makes them correlate: the coefficient is biased."
        + (f" Without shared noise: {', '.join(instead)} (`details`)." if instead else ""),
        "caution",
    )


def _side(table: ResponseTable, design: Design, value: object, argument: str) -> Target | str:
    """An estimand, a condition level, or the name of a column."""
    if isinstance(value, Estimand):
        return targets_of(design, [value])[-1]
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"`{argument}` must be an estimand such as ts.Gap(...), a condition level, or a column of the "
            f"table that is constant in each model; got {type(value).__name__}"
        )
    levels = dict.fromkeys([level for factor in design.factors for level in factor.levels])
    levels |= dict.fromkeys(level.label for level in design.levels)
    if value in levels and value in table.frame.columns:
        raise ArgumentError(
            f"`{argument}` could be the condition level {value!r} or the column of that name; for the level "
            f"say ts.Mean({value!r})"
        )
    if value in levels:
        return targets_of(design, [Mean(value)])[-1]
    if value not in table.frame.columns:
        raise ArgumentError(
            f"`{argument}` names {value!r}, which is neither a condition level nor a column of the table"
            f"{suggestion(value, [*levels, *table.frame.columns])}; the levels are {listed(levels)}"
        )
    return value


def _column_by_model(frame: pl.DataFrame, design: Design, column: str) -> Array:
    """Numbers that are constant in each model, NaN where a model has none, shape (M,)."""
    series = frame[column]
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        raise ArgumentTypeError(f"column {column!r} holds {series.dtype}; a correlation needs numbers")
    number = pl.col(column).cast(pl.Float64).fill_nan(None).alias("number")
    pairs = frame.select("model", number).drop_nulls().unique()
    split = pairs.filter(pl.col("model").is_duplicated()).sort("model")
    if split.height:
        raise DesignError(
            f"column {column!r} has several values for model {split['model'][0]!r}; it must be constant in "
            "each model. For the mean of scores give an estimand or a condition level"
        )
    value = dict(pairs.iter_rows())
    return np.array([value.get(model, math.nan) for model in design.models])
