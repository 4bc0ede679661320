"""Intraclass correlations of ratings that are numbers: six forms, each by its name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from scipy.special import fdtrc, fdtri

from triagestats import defaults
from triagestats.agreement.estimation import (
    Uncertainty,
    is_clustered,
    measured,
    reported,
    resampling_of,
)
from triagestats.agreement.functions import Coefficient, ratio
from triagestats.agreement.ratings import read_scores
from triagestats.defaults import Method
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.results import Note, Test
from triagestats.tolerances import ROUNDING
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Sums = NDArray[Any]

__all__ = ["icc"]

Form = Literal["ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)"]

_SPELLING: Final = re.compile(r"ICC[( ]*([123])(?: *, *)?([1K]?)\)?", re.IGNORECASE)
_MODELS: Final = {
    "1": "one-way random raters",
    "2": "two-way random raters, absolute agreement",
    "3": "two-way fixed raters, consistency",
}


@dataclass(frozen=True, slots=True)
class _Squares:
    """Mean squares of n units in rows by m raters in columns; numbers, or arrays for replicates."""

    rows: Any
    columns: Any
    residual: Any
    within: Any
    n: Any
    m: int


def icc(
    ratings: object,
    *,
    form: str | None = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
    interval: Method | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Test:
    """Intraclass correlation: the share of variance that is between units, in one of six forms.

    With n units in rows, m raters in columns, and the mean squares of rows R, columns C, residual E and
    within rows W, for a single rating, `(x,1)`, or the mean of m ratings, `(x,k)`:

    | form | raters | `(x,1)` | `(x,k)` |
    |---|---|---|---|
    | 1 | others for each unit | (R - W) / (R + (m - 1) W) | (R - W) / R |
    | 2 | random, levels matter | (R - E) / (R + (m - 1) E + m (C - E) / n) | (R - E) / (R + (C - E) / n) |
    | 3 | these ones, levels do not | (R - E) / (R + (m - 1) E) | (R - E) / R |

    Parameters
    ----------
    ratings
        Numbers, one row a unit and one column a rater; or names of columns of `data`; or judges, or None
        for all, where `data` is a ResponseTable, of which the scores are taken.
    form
        `ICC(1,1)`, `ICC(2,1)`, `ICC(3,1)`, `ICC(1,k)`, `ICC(2,k)` or `ICC(3,k)`; `ICC2` and `ICC2k` are
        other spellings. It is needed: on the same data the forms can be 0.17, 0.29 and 0.71. If
        judges stand for judges like them, and their level matters, it is `ICC(2,1)`.
    data, clusters
        As in `cohen_kappa`.
    missing
        `raise`, or `omit` units with a missing number.
    interval
        By default that of the F distribution (McGraw and Wong, for form 2 with approximate degrees of
        freedom), or with clusters `percentile`. Or any interval of `bootstrap`.
    conf_level, n_resamples, seed, n_threads
        As in `bootstrap`.

    Returns
    -------
    Test
        Without clusters `statistic` is F and `p_value` its upper tail, of no variance between units.
        `details` hold `df1`, `df2`, `msr`, `msc`, `mse`, `msw`, `form`, `n_raters`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments or data cannot be used.

    Notes
    -----
    Estimates can be negative, where units vary less than chance would have them, and are not clipped. Where
    the denominator is not positive the form is undefined. F and its interval take units as independent and
    ratings as normal; for ordinal ratings see `krippendorff_alpha`.

    References
    ----------
    Shrout, P. E. and Fleiss, J. L. (1979), Intraclass correlations: uses in assessing rater reliability,
    Psychological Bulletin 86(2):420-428, doi:10.1037/0033-2909.86.2.420.

    McGraw, K. O. and Wong, S. P. (1996), Forming inferences about some intraclass correlation
    coefficients, Psychological Methods 1(1):30-46, doi:10.1037/1082-989X.1.1.30.

    Examples
    --------
    >>> import triagestats as ts
    >>> ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> [round(ts.icc(ratings, form=form).estimate, 2) for form in ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)")]
    [0.17, 0.29, 0.71]
    """
    asked = resampling_of(interval, conf_level, n_resamples, seed, n_threads)
    model, average = _form(form)
    name = f"ICC({model},{'k' if average else '1'})"
    scores = read_scores(ratings, data=data, clusters=clusters, missing=missing)
    n, m = scores.values.shape
    if n < 2:
        raise DataError(f"`ratings` has {n} unit, and variance between units needs two")
    squares = _mean_squares(scores.values)
    size = max(squares.rows, squares.columns, squares.within)
    read = _reader(model, average)
    value = float(read(squares))
    estimate = value if np.isfinite(value) else None
    error = squares.within if model == "1" else squares.residual
    df1, df2 = n - 1, n * (m - 1) if model == "1" else (n - 1) * (m - 1)
    uncertainty = Uncertainty()
    statistic = p_value = None
    if estimate is not None and error > ROUNDING * size:
        statistic = float(squares.rows / error)
        p_value = float(fdtrc(df1, df2, statistic))
    if estimate is not None:
        uncertainty = measured(
            Coefficient("icc", name, lambda sums: read(_squares_of(sums, m))),
            lambda: scores.totals(_sums(scores.values)),
            asked,
            scores.shared,
            "icc",
            n_rows=n,
            alone=lambda: _interval(model, average, squares, statistic, asked.conf_level),
        )
    tested = p_value is not None and not is_clustered(scores.shared)
    return reported(
        estimand=name,
        estimate=estimate,
        uncertainty=uncertainty,
        conf_level=asked.conf_level,
        method=f"{name}, {_MODELS[model]}, {f'mean of {m} ratings' if average else 'single rating'}",
        n=n,
        statistic=statistic if tested else None,
        p_value=p_value if tested else None,
        alternative="greater" if tested else "two-sided",
        details={
            "form": name,
            "df1": float(df1),
            "df2": float(df2),
            "msr": squares.rows,
            "msc": squares.columns,
            "mse": squares.residual,
            "msw": squares.within,
            "n_raters": m,
            "raters": list(scores.raters),
            "n_missing": scores.n_missing,
        },
        notes=scores.notes,
        least=-math.inf,
        reason="All ratings are equal, so that there is no variance to share."
        if size == 0
        else f"The estimated variance that {name} divides by is not positive: units vary less than "
        "chance would have them.",
    )


def _form(form: object) -> tuple[str, bool]:
    """The model, 1 to 3, and whether means of ratings are meant."""
    forms = ", ".join(map(repr, get_args(Form)))
    if form is None:
        raise ArgumentTypeError(
            f"`form` is needed, one of {forms}: they differ widely on the same data. If judges stand for "
            "judges like them, and their level matters, take 'ICC(2,1)'"
        )
    if not isinstance(form, str):
        raise ArgumentTypeError(f"`form` must be one of {forms}; got {form!r}")
    found = _SPELLING.fullmatch(form.strip())
    if found is None:
        raise ArgumentError(f"`form` must be one of {forms}; got {form!r}")
    return found[1], found[2].lower() == "k"


def _mean_squares(values: Array) -> _Squares:
    """Mean squares, by deviations from means."""
    n, m = values.shape
    values = values - values[0, 0]  # so that equal ratings leave no rounding
    rows, columns, whole = values.mean(axis=1), values.mean(axis=0), values.mean()
    residual = values - rows[:, None] - columns + whole
    return _Squares(
        rows=float(m * ((rows - whole) ** 2).sum() / (n - 1)),
        columns=float(n * ((columns - whole) ** 2).sum() / (m - 1)),
        residual=float((residual**2).sum() / ((n - 1) * (m - 1))),
        within=float(((values - rows[:, None]) ** 2).sum() / (n * (m - 1))),
        n=n,
        m=m,
    )


def _sums(values: Array) -> Array:
    """Of each unit: 1, the sum of its squares, the square of its sum, and its ratings; standardised."""
    spread = values.std()
    scaled = (values - values.mean()) / (spread if spread > 0 else 1.0)
    total = scaled.sum(axis=1)
    return np.column_stack([np.ones(len(values)), (scaled**2).sum(axis=1), total**2, scaled])


def _squares_of(sums: Sums, m: int) -> _Squares:
    """Mean squares from sums over units (..., 3 + m)."""
    n, squares, of_rows = (sums[..., place] for place in range(3))
    columns = sums[..., 3:]
    between_rows = of_rows / m
    between_columns = ratio((columns**2).sum(axis=-1), n)
    whole = ratio(columns.sum(axis=-1) ** 2, n * m)
    return _Squares(
        rows=ratio(between_rows - whole, n - 1.0),
        columns=(between_columns - whole) / (m - 1),
        residual=ratio(squares - between_rows - between_columns + whole, (n - 1.0) * (m - 1)),
        within=ratio(squares - between_rows, n * (m - 1)),
        n=n,
        m=m,
    )


def _reader(model: str, average: bool) -> Callable[[_Squares], Any]:
    """The form as a function of mean squares, NaN where its denominator is not positive."""

    def read(of: _Squares) -> Any:
        error = of.within if model == "1" else of.residual
        raters = ratio(of.columns - of.residual, of.n) if model == "2" else 0.0
        denominator = of.rows + raters if average else of.rows + (of.m - 1) * error + of.m * raters
        return ratio(of.rows - error, denominator, of.rows + of.columns + of.within)

    return read


def _interval(
    model: str, average: bool, of: _Squares, statistic: float | None, conf_level: float
) -> Uncertainty:
    """The interval of McGraw and Wong."""
    if statistic is None:
        message = (
            "Raters leave no residual variance: F is infinite, and nothing shows how far it could be off."
        )
        return Uncertainty(notes=(Note("degenerate", message, "caution"),))
    low, high = _ends(model, average, of, statistic, 0.5 + conf_level / 2)
    if of.rows <= ROUNDING * of.within or not (np.isfinite(low) and np.isfinite(high)):
        message = "Units have equal means: the F interval has no width, and none is given."
        return Uncertainty(notes=(Note("degenerate", message, "caution"),))
    return Uncertainty(low, high, how="F interval")


def _ends(model: str, average: bool, of: _Squares, statistic: float, upper: float) -> tuple[float, float]:
    n, m = of.n, of.m
    if model in ("1", "3"):
        df1, df2 = n - 1, n * (m - 1) if model == "1" else (n - 1) * (m - 1)
        ends = statistic / fdtri(df1, df2, upper), statistic * fdtri(df2, df1, upper)
        singles = [float((end - 1) / (end + m - 1)) for end in ends]
    else:
        value = float(_reader("2", average=False)(of))
        # Satterthwaite's degrees of freedom of the mix of C and E that stands in the denominator.
        columns = m * value * of.columns
        residual = (n * (1 + (m - 1) * value) - m * value) * of.residual
        parts = columns**2 / (m - 1) + residual**2 / ((n - 1) * (m - 1))
        df = (columns + residual) ** 2 / parts if parts > 0 else np.nan
        mixed = m * of.columns + (m * n - m - n) * of.residual
        first, second = fdtri(n - 1, df, upper), fdtri(df, n - 1, upper)
        singles = [
            float(n * (of.rows - first * of.residual) / (first * mixed + n * of.rows)),
            float(n * (second * of.rows - of.residual) / (mixed + n * second * of.rows)),
        ]
    low, high = (m * end / (1 + (m - 1) * end) for end in singles) if average else singles
    return low, high
