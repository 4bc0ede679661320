"""What the reader of a mixed model must know of its rows and terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from triagestats.labels import counted, listed
from triagestats.models.design_columns import is_category
from triagestats.models.formula import INTERCEPT, Formula
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.naming import written
from triagestats.models.mixed.random_parts import FEW_LEVELS, ReadPart
from triagestats.models.model_data import ModelData
from triagestats.results import Note

__all__ = ["read_notes"]


def read_notes(
    formula: Formula,
    rows: ModelData,
    frame: pl.DataFrame,
    matrix: MixedMatrix,
    parts: Sequence[ReadPart],
    dropped: Sequence[str],
    absent: Sequence[str],
) -> Iterator[Note]:
    """Notes on what was left out, collapsed or dropped, and on terms that are doubtful.

    Parameters
    ----------
    formula, rows
        What was read.
    frame, matrix, parts
        The cells and their arrays.
    dropped
        Regressors that the others determine.
    absent
        Levels of an ordinal scale that no row has.
    """
    yield from _of_rows(rows, parts)
    if dropped:
        verb, what = ("is", "it") if len(dropped) == 1 else ("are", "them")
        message = f"{listed(dropped)} {verb} dropped: the regressors before determine {what}."
        yield Note("collinear", message, "caution")
    if len(matrix.y) < matrix.n_rows:
        message = (
            f"{matrix.n_rows:,} rows are {counted(len(matrix.y), 'cell')} of rows that share all columns."
        )
        yield Note("collapsed", message)
    if absent:
        verb = "this level has" if len(absent) == 1 else "these levels have"
        message = f"No response is {listed(absent)}: {verb} no probability in the model."
        yield Note("absent_levels", message, "caution")
    yield from _few_levels(parts)
    yield from _same_effect(formula, frame, parts, matrix.n_rows)
    if not formula.random:
        message = "The formula has no random terms: the rows are taken as independent."
        yield Note("independence", message, "caution")


def _of_rows(rows: ModelData, parts: Sequence[ReadPart]) -> Iterator[Note]:
    """Notes on the rows; several judges are as meant where their responses, or they, are random."""
    groupings = {name for read in parts for name in read.part.parts}
    for note in rows.notes:
        if note.code != "judges":
            yield note
        elif not groupings & {"response", "judge"}:
            message = (
                "Each score of each judge is a row, and the scores of one response are taken as independent "
                "given the random effects: add (1 | response), or choose one judge with `judge=`."
            )
            yield Note("judges", message, "caution")


def _few_levels(parts: Sequence[ReadPart]) -> Iterator[Note]:
    """Groupings with few levels, and the alternative."""
    for part in (read.part for read in parts):
        if part.n_levels < FEW_LEVELS:
            message = (
                f"{part.name} has {counted(part.n_levels, 'level')}, which say little of the variance of a "
                f"population of levels: take it as fixed, `{':'.join(part.parts)}` among the regressors, "
                "unless new levels are the question."
            )
            yield Note("few_levels", message, "caution")


def _same_effect(
    formula: Formula, frame: pl.DataFrame, parts: Sequence[ReadPart], n_rows: int
) -> Iterator[Note]:
    """Categories whose effect is taken as the same in all levels of a grouping within which they vary.

    Not where each level has one row a category: there the effect is no other than the answer.
    """
    groupings = list(dict.fromkeys(read.part.parts for read in parts if len(read.part.parts) == 1))
    for name in formula.regressors:
        if not is_category(frame[name]) and frame[name].n_unique() > 2:
            continue
        same = [
            grouping[0]
            for grouping in groupings
            if grouping != (name,)
            and not any(_varies_by(frame, read, name, grouping[0]) for read in parts)
            and frame.group_by(grouping[0]).agg(pl.col(name).n_unique())[name].max() != 1
            and frame.select(grouping[0], name).n_unique() < n_rows
        ]
        if same:
            column = written(name)
            terms = " + ".join(f"(1 | {written(grouping)}:{column})" for grouping in same)
            message = (
                f"The effect of {name} is taken as the same in every {' and every '.join(same)}. Where it is "
                f"not, its error is too small for new ones: add {terms}, or slopes such as "
                f"({column} | {written(same[0])})."
            )
            yield Note("same_effect", message, "caution")


def _varies_by(frame: pl.DataFrame, read: ReadPart, name: str, grouping: str) -> bool:
    """Whether a random part lets the effect of a column differ between the levels of a grouping.

    So does one of a grouping that is nested in this one, as scenarios are in pairs.
    """
    within = [part for part in read.part.parts if part != name]
    is_slope = read.part.z_names != (INTERCEPT,)
    sloped = is_slope and read.columns is not None and name in read.columns.names_read
    if not within or not (sloped or name in read.part.parts):
        return False
    return frame.select(*dict.fromkeys([*within, grouping])).n_unique() == frame.select(within).n_unique()
