"""Columns of ratings, one a rater: from vectors, matrices, tables, and the judges of a response table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.ingest import to_polars
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import complete_codes, series_of

__all__ = ["Columns", "is_matrix", "judges_of", "of_judges", "rated_columns"]

_CELL: Final = "rater_"


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One column of labels a rater."""

    columns: tuple[pl.Series, ...]
    categories: object
    shared: Shared | None
    notes: tuple[Note, ...] = ()

    @property
    def raters(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def is_matrix(values: object) -> bool:
    """Whether values have rows and columns."""
    if isinstance(values, np.ndarray):
        return values.ndim == 2
    if hasattr(values, "columns"):
        return True
    return isinstance(values, Sequence) and bool(len(values)) and _is_row(values[0])


def _is_row(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def rated_columns(ratings: object, data: object, categories: object, clusters: object, what: str) -> Columns:
    """One column a rater, whatever holds them."""
    if isinstance(ratings, ResponseTable) and data is None:
        ratings, data = None, ratings
    if isinstance(data, ResponseTable):
        return of_judges(data, judges_of(data, ratings), categories, clusters, what)
    frame = frame_of(data)
    if frame is not None:
        names = _names(ratings, "the columns of `data`, one a rater")
        columns = [series_of(column_of(frame, name, "ratings"), name) for name in names]
    elif isinstance(ratings, Mapping) or hasattr(ratings, "columns"):
        columns = to_polars(ratings, "ratings").frame.get_columns()
    else:
        columns = _transposed(ratings)
    if len(columns) < 2:
        raise ArgumentError(
            f"`ratings` must have one column a rater, and two at least; got {len(columns)}. Rows are units"
        )
    if not len(columns[0]):
        raise ArgumentError("`ratings` holds no unit")
    return Columns(tuple(columns), categories, shared_rows(frame, clusters, len(columns[0])))


def _names(given: object, what: str) -> list[Any]:
    if (
        isinstance(given, str | bytes)
        or not isinstance(given, Sequence)
        or not all(isinstance(name, str) for name in given)
    ):
        raise ArgumentTypeError(f"`ratings` must be a list of {what}; got {given!r}")
    if len(set(given)) < len(given):
        raise ArgumentError(f"`ratings` names a rater twice: {list(given)}")
    return list(given)


def _transposed(ratings: object) -> list[pl.Series]:
    """The columns of a matrix given by rows."""
    if isinstance(ratings, np.ndarray) and ratings.ndim == 2:
        return [series_of(column, f"rater {place + 1}") for place, column in enumerate(ratings.T)]
    if not isinstance(ratings, Sequence) or not len(ratings) or not all(map(_is_row, ratings)):
        raise ArgumentTypeError(
            "`ratings` must be a matrix with one row a unit and one column a rater, or a table; got "
            + (f"shape {ratings.shape}" if isinstance(ratings, np.ndarray) else type(ratings).__name__)
        )
    lengths = {len(row) for row in ratings}
    if len(lengths) > 1:
        raise ArgumentError(
            "`ratings` must have as many ratings in every row, None where one is missing; got rows of "
            f"{min(lengths)} and of {max(lengths)}"
        )
    return [
        series_of(list(column), f"rater {place + 1}")
        for place, column in enumerate(zip(*ratings, strict=True))
    ]


def judges_of(table: ResponseTable, wanted: object) -> list[str]:
    """The judges asked for, all of the table where none are.

    Raises
    ------
    ArgumentError, DesignError
        If the table has none, or not those.
    """
    present = table.judges
    if len(present) < 2:
        raise DesignError(
            f"agreement is between judges, and the table has {len(present)}; name the column of judges with "
            "`judge=`, or join judgments with `table.with_judgments(...)`"
        )
    if wanted is None:
        return list(present)
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise ArgumentTypeError(f"the judges must be a list of names; got {wanted!r}")
    for judge in wanted:
        if judge not in present:
            raise ArgumentError(f"there is no judge {judge!r}; the table has {listed(present)}")
    if len(wanted) < 2 or len(set(wanted)) < len(wanted):
        raise ArgumentError(f"agreement is between different judges; got {list(wanted)}")
    return list(wanted)


def of_judges(
    table: ResponseTable, judges: list[str], categories: object, clusters: object, what: str
) -> Columns:
    """One column a judge, one row a response; the clusters are those of the table."""
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
            "`table.with_cluster(...)`"
        )
    frame = table.frame
    names = table.roles.columns.get("cluster", ())
    if len(names) > 1:
        raise DesignError(
            "agreement takes one cluster column, and the table has two that cross; choose one with "
            "`table.with_cluster(...)`"
        )
    cluster = "cluster_1" if names else "scenario"
    label = what if what in frame.columns and frame[what].count() else "score"
    key = [role for role in KEY_ROLES if role in frame.columns and role != "judge"]
    judge = pl.col("judge")
    units = (
        frame.filter(judge.is_in(judges))
        .group_by(key, maintain_order=True)
        .agg(
            *(
                pl.col(label).filter(judge == name).first().alias(f"{_CELL}{j}")
                for j, name in enumerate(judges)
            ),
            pl.col(cluster).first().alias("_cluster"),
            pl.col(cluster).n_unique().alias("_clusters"),
        )
    )
    if int(units["_clusters"].max()) > 1:  # type: ignore[arg-type]  # an integer column
        raise DesignError(
            f"`cluster` is {names[0]!r}, which splits the judgments of one response; choose one that holds "
            "whole responses with `table.with_cluster(...)`"
        )
    notes = list(table.notes)
    if label != what:
        notes.append(Note("labels", "The table has no labels: the scores are compared."))
    if categories is None and label == "response":
        categories = table.levels
    codes = complete_codes(units["_cluster"], "cluster", units.height)
    return Columns(
        columns=tuple(units[f"{_CELL}{j}"].alias(name) for j, name in enumerate(judges)),
        categories=categories,
        shared=Shared(codes, names[0] if names else table.roles.one("scenario") or "scenario", asked=True),
        notes=tuple(notes),
    )
