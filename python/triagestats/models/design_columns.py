"""The columns of a formula: dummies, interactions and functions of the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats.canonical import ordered_levels
from triagestats.errors import ArgumentError, DataError
from triagestats.labels import as_text
from triagestats.models.formula import INTERCEPT, Formula, need_extra

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Columns", "columns_of", "is_category", "levels_in"]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The regressors of a formula.

    Attributes
    ----------
    values
        Shape (n, k).
    names
        Their k names, as pyfixest writes them: `condition[T.b]`, `a[T.u]:x`, `model::m1:x`.
    parts
        The parts of the formula, `a:x`, each with the names that it became.
    contrasts
        Of each dummy the comparison in words, `b - a`.
    single
        Columns of categories with one level, and this level.
    """

    values: Array
    names: tuple[str, ...]
    parts: Mapping[str, tuple[str, ...]]
    contrasts: Mapping[str, str]
    single: Mapping[str, str]
    _formula: Formula
    _frame: Any
    _spec: Any

    @property
    def names_read(self) -> tuple[str, ...]:
        """The columns of the table that the regressors are made of."""
        return self._formula.regressors

    def with_column(self, name: str, values: object) -> Array:
        """The same regressors, shape (n, k), if a column of the table held other values.

        Parameters
        ----------
        name
            A column of numbers or categories.
        values
            Numbers, shape (n,), or one level for all rows.
        """
        import pandas as pd

        code = self._formula.coded.code(name)
        held = self._frame[code]
        changed: Any
        if isinstance(held.dtype, pd.CategoricalDtype):
            changed = pd.Categorical([values] * len(held), dtype=held.dtype)
        else:
            changed = np.broadcast_to(np.asarray(values, dtype=np.float64), len(held))
        return _materialised(self._spec, self._formula, self._frame.assign(**{code: changed}))[0]


def is_category(series: pl.Series) -> bool:
    """Whether a column becomes dummies of its levels: whatever holds neither numbers nor true and false."""
    return not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null))


def levels_in(series: pl.Series) -> tuple[str, ...]:
    """The levels of a column that occur, as text, in the order of an Enum, else sorted."""
    return ordered_levels(series)[0]


def columns_of(formula: Formula, frame: pl.DataFrame) -> Columns:
    """The regressors of a formula for the rows of a table without missing values.

    The first level of a category is its reference: the first of an Enum that occurs, else of the sorted
    order. The constant is left out where the formula absorbs fixed effects.

    Raises
    ------
    ArgumentError
        If a part of the formula cannot be computed, or gives no number.
    """
    try:
        import pandas as pd
        from formulaic import Formula as Parsed
    except ImportError as error:
        raise need_extra(error, "formulaic") from error
    held: dict[str, Any] = {}
    contrasts: dict[str, str] = {}
    single: dict[str, str] = {}
    for name in formula.regressors:
        series, code = frame[name], formula.coded.code(name)
        if not is_category(series):
            numbers = series.cast(pl.Float64 if series.dtype == pl.Boolean else series.dtype)
            held[code] = (
                numbers.cast(pl.Float64).to_numpy() if numbers.dtype.is_decimal() else numbers.to_numpy()
            )
            continue
        levels = levels_in(series)
        if len(levels) == 1:
            single[name] = levels[0]
        place = {level: code for code, level in enumerate(levels)}
        codes: Any = as_text(series, name).replace_strict(place, return_dtype=pl.Int32).to_numpy()
        held[code] = pd.Categorical.from_codes(codes, categories=pd.Index(levels))
        for level in levels[1:]:
            for written in (name, f"C({name})"):
                contrasts[f"{written}[T.{level}]"] = f"{level} - {levels[0]}"
    table = pd.DataFrame(held, index=pd.RangeIndex(frame.height))
    values, spec = _materialised(Parsed(formula.coded.text), formula, table)
    names = [INTERCEPT if name == "Intercept" else formula.coded.decoded(name) for name in spec.column_names]
    parts = {
        formula.coded.decoded(str(part)): tuple(names[where]) for part, where in spec.term_slices.items()
    }
    if formula.absorbed and INTERCEPT in names:
        values = np.delete(values, names.index(INTERCEPT), axis=1)
        names.remove(INTERCEPT)
        parts.pop("1", None)
    if twice := {name for name in names if names.count(name) > 1}:
        raise ArgumentError(f"`formula` makes two regressors of one name, {sorted(twice)}; rename a column")
    bad = ~np.isfinite(values)
    if bad.any():
        odd = [name for name, column in zip(names, bad.T, strict=True) if column.any()]
        count = int(bad.any(axis=1).sum())
        raise DataError(
            f"`formula` has {', '.join(map(repr, odd))}, which is not finite in some rows ({count:,} of "
            f"{len(values):,}); drop these rows, or take another function"
        )
    return Columns(values, tuple(names), parts, contrasts, single, formula, table, spec)


def _materialised(wanted: Any, formula: Formula, table: Any) -> tuple[Array, Any]:
    """Values of a parsed formula or a specification, and the specification."""
    import warnings

    from formulaic.errors import FormulaicError

    functions = {"i": _i, "sqrt": np.sqrt, "log1p": np.log1p, "expm1": np.expm1}
    try:
        with warnings.catch_warnings():
            # Deprecations between pandas and formulaic; logarithms of 0 and below are refused by name.
            warnings.simplefilter("ignore")
            made = wanted.get_model_matrix(table, context=functions, output="numpy", na_action="ignore")
            values = np.asarray(made, dtype=np.float64).reshape(len(table), -1)
    except (FormulaicError, ArithmeticError, LookupError, SyntaxError, TypeError, ValueError) as error:
        said = formula.coded.decoded(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().rstrip("."))
        raise ArgumentError(f"`formula` cannot be computed: {said}. It is {formula.text!r}") from None
    return values, made.model_spec


def _i(factor: Any, x: Any = None, ref: object = None) -> Any:
    """The function `i` of pyfixest's formulas."""
    import pandas as pd
    from formulaic.materializers.types import FactorValues

    held = pd.Series(np.asarray(factor), name=getattr(factor, "name", "factor"))
    dtype = getattr(factor, "dtype", None)
    levels: Sequence[Any] = (
        list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else sorted(held.unique())
    )
    if ref is not None and ref not in levels:
        raise ValueError(f"ref={ref!r} is no level of {held.name}; choose from {levels}")
    if ref is None and x is None:
        ref = levels[0]
    if x is not None and isinstance(getattr(x, "dtype", None), pd.CategoricalDtype):
        raise ValueError("the second argument of i() must hold numbers")
    tail, scale = ("", 1.0) if x is None else (f":{x.name}", np.asarray(x, dtype=np.float64))
    columns = {
        f"{held.name}::{level}{tail}": (held == level).to_numpy() * scale for level in levels if level != ref
    }
    return FactorValues(
        columns, kind="numerical", spans_intercept=False, column_names=tuple(columns), format="{field}"
    )
