"""From a formula and a table to the cells of a mixed model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.labels import n_rows
from triagestats.models.design_columns import Columns, columns_of
from triagestats.models.formula import INTERCEPT, Formula, nested_groups, parse_formula
from triagestats.models.linear_notes import constant_categories
from triagestats.models.mixed.matrix import Family, MixedMatrix
from triagestats.models.mixed.outcomes import Outcome
from triagestats.models.mixed.random_parts import ReadPart, random_parts
from triagestats.models.mixed.read_notes import read_notes
from triagestats.models.model_data import read_model_data
from triagestats.models.within import independent
from triagestats.results import Note
from triagestats.roles import role_spelled
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.table_steps import scale_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["MixedData", "mixed_data"]

_OF_ALL_ROWS: Final = re.compile(r"\b(center|scale|standardize|poly|bs|cs|cr|cc)\s*\(")
"""Functions whose values depend on all rows, so that rows cannot be collapsed before."""
_RESPONSE: Final = "response"
_COUNT: Final = "_rows"
_GOLD: Final = ("gold_low", "gold_high")


@dataclass(frozen=True, slots=True, eq=False)
class MixedData:
    """What a mixed model was asked to fit.

    Attributes
    ----------
    formula
        In its parts.
    matrix
        The cells as arrays.
    frame
        One row a cell: the columns of the formula but the outcome, and the ends of the gold range where there
        is one.
    columns
        The regressors, of which `kept` have a coefficient.
    parts
        The random parts with their columns.
    scale
        All labels of an ordinal outcome in order, also those that do not occur.
    n_missing
        Rows that were left out.
    notes
        Choices made and doubts.
    """

    formula: Formula
    matrix: MixedMatrix
    frame: pl.DataFrame
    columns: Columns
    kept: NDArray[np.bool_]
    parts: tuple[ReadPart, ...]
    scale: tuple[str, ...]
    n_missing: int
    notes: tuple[Note, ...]

    def x_with(self, name: str, level: object) -> Array:
        """The regressors with a coefficient for all cells if a column held another level."""
        return self.columns.with_column(name, level)[:, self.kept]


def mixed_data(
    formula: str,
    data: object,
    *,
    family: Family,
    judge: str | None = None,
    levels: Sequence[str] | None = None,
) -> MixedData:
    """The cells that a formula makes of a table.

    Rows that share all columns of the formula become one cell with counts; rows of a gaussian model stay.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If the formula or an argument cannot be read, or labels have no order.
    DataError
        If the outcome is not of the family.
    DesignError
        If a random factor has one level, or cannot be told from another.
    """
    parsed = parse_formula(formula)
    if parsed.absorbed:
        raise ArgumentError(
            f"`formula` absorbs {', '.join(parsed.absorbed_names)}, which a mixed model does not: write it "
            f"as random, (1 | {parsed.absorbed_names[0]}), or among the regressors. It is {parsed.text!r}"
        )
    if levels is not None and family != "ordinal":
        raise ArgumentError(f"`levels` orders the labels of family='ordinal'; the family is {family!r}")
    table, notes = _prepared(parsed, data, judge)
    gold = _gold_columns(parsed, table) if family == "ordinal" else ()
    outcome = Outcome(parsed, family, _scale(parsed, table, levels))
    rows = read_model_data(
        parsed,
        table,
        cluster=None,
        clustered=False,
        singletons="keep",
        as_numbers=outcome.reader,
        also=gold,
    )
    outcome.check(rows.frame[parsed.outcome].cast(pl.Float64))
    frame, gold_notes = _with_gold(rows.frame, gold, outcome.whole)
    frame = _cells(parsed, frame, family)
    columns = columns_of(parsed, frame)
    x, terms, kept, dropped = _regressors(columns, family)
    parts = random_parts(parsed, frame, rows.frame.height)
    matrix = MixedMatrix(
        family=family,
        y=np.ascontiguousarray(frame[parsed.outcome].cast(pl.Float64).to_numpy()),
        counts=np.ascontiguousarray(frame[_COUNT].cast(pl.Float64).to_numpy()),
        x=x,
        terms=terms,
        random=tuple(read.part for read in parts),
        levels=outcome.levels,
        n_rows=rows.frame.height,
    )
    return MixedData(
        formula=parsed,
        matrix=matrix,
        frame=frame.drop(parsed.outcome, _COUNT),
        columns=columns,
        kept=kept,
        parts=parts,
        scale=outcome.whole,
        n_missing=rows.n_missing,
        notes=(
            *notes,
            *gold_notes,
            *constant_categories(columns).values(),
            *read_notes(parsed, rows, frame, matrix, parts, dropped, outcome.absent),
        ),
    )


def _prepared(parsed: Formula, data: object, judge: str | None) -> tuple[object, tuple[Note, ...]]:
    """The data with one judge where asked, and with responses to group by where the formula names them."""
    if judge is not None and not isinstance(judge, str):
        raise ArgumentTypeError(f"`judge` must be the name of a judge; got {judge!r}")
    if judge is not None:
        table = data if isinstance(data, ResponseTable) else ResponseTable(data)
        data = table.with_judge(judge)
    groupings = {name for term in parsed.random for group in nested_groups(term) for name in group}
    if not isinstance(data, ResponseTable):
        return data, ()
    data.refuse_metrics()
    if _RESPONSE not in groupings or parsed.outcome == _RESPONSE:
        return data, ()
    key = [role for role in KEY_ROLES if role in data.frame.columns and role != "judge"]
    named = pl.concat_str([pl.col(role).cast(pl.String).fill_null("") for role in key], separator="/")
    message = f"A response is one {' x '.join(key)}; its rows are the judges' scores of it."
    return data.with_frame(data.frame.with_columns(named.alias(_RESPONSE))), (Note("response", message),)


def _scale(parsed: Formula, table: object, levels: Sequence[str] | None) -> tuple[str, ...] | None:
    """The order of the labels: what was given, or that of the response table for its responses."""
    if levels is not None:
        return scale_of(levels)
    if isinstance(table, ResponseTable) and _is_response(parsed, table):
        return table.levels
    return None


def _is_response(parsed: Formula, table: ResponseTable) -> bool:
    """Whether the outcome is the label that was given."""
    name = parsed.outcome
    return name == _RESPONSE or table.roles.one(_RESPONSE) == name or role_spelled(name) == _RESPONSE


def _gold_columns(parsed: Formula, table: object) -> tuple[str, ...]:
    """The ends of the gold range, where the outcome is a label that has one."""
    if not isinstance(table, ResponseTable) or not _is_response(parsed, table) or table.levels is None:
        return ()
    return tuple(name for name in _GOLD if name in table.frame.columns and name not in parsed.names)


def _with_gold(
    frame: pl.DataFrame, gold: Sequence[str], scale: Sequence[str]
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """The rows without their gold ranges where some have none on the scale, and a note that says so."""
    ends = [pl.col(name).cast(pl.String).is_in(list(scale)).fill_null(value=False) for name in gold]
    if not ends:
        return frame, ()
    lacking = int(frame.select((~pl.all_horizontal(ends)).sum()).item())
    if not lacking:
        return frame, ()
    message = (
        f"{n_rows(lacking)} of {frame.height:,} {'has' if lacking == 1 else 'have'} no gold range on the "
        "scale: the rates under and over gold are not given."
    )
    return frame.drop(gold), (Note("no_gold", message, "caution"),)


def _cells(parsed: Formula, frame: pl.DataFrame, family: Family) -> pl.DataFrame:
    """One row a cell, sorted, so that the order of the rows changes nothing."""
    outcome = parsed.outcome
    keys = [name for name in frame.columns if name != outcome]
    texts = [parsed.fixed, *(term.terms for term in parsed.random)]
    if family == "gaussian" or any(_OF_ALL_ROWS.search(text) for text in texts):
        return frame.with_columns(pl.lit(1.0).alias(_COUNT)).sort(*keys, outcome)
    if family == "ordinal":
        return frame.group_by(*keys, outcome).agg(pl.len().alias(_COUNT)).sort(*keys, outcome)
    value = pl.col(outcome).cast(pl.Float64)
    if not keys:
        return frame.select(value.sum(), pl.len().alias(_COUNT))
    return frame.group_by(keys).agg(value.sum(), pl.len().alias(_COUNT)).sort(keys)


def _regressors(
    columns: Columns, family: Family
) -> tuple[Array, tuple[str, ...], NDArray[np.bool_], tuple[str, ...]]:
    """The regressors that the others do not determine; thresholds take the place of a constant."""
    names = columns.names
    values = columns.values
    if family == "ordinal":
        ahead = np.column_stack([np.ones(len(values)), values])
        kept = independent(ahead, ahead)[1:]
        kept &= np.array([name != INTERCEPT for name in names], dtype=bool)
    else:
        kept = independent(values, values)
    dropped = tuple(name for name, keep in zip(names, kept, strict=True) if not keep and name != INTERCEPT)
    terms = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
    return np.ascontiguousarray(values[:, kept]), terms, kept, dropped
