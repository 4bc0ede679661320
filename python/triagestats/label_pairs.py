"""Pairs of labels on one scale as a square table: given, or counted from two vectors, columns or levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats.columns import Shared
from triagestats.crosstab import Crosstab, complete_rows, given_counts, own_clusters, two_labels
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed
from triagestats.results import Note
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import Labels, Missing, labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

__all__ = ["read_square"]


def read_square(
    x: object,
    y: object = None,
    *,
    categories: object = None,
    data: object = None,
    clusters: object = None,
    missing: Missing = "raise",
) -> Crosstab:
    """Counts of pairs of labels on one scale: a square table, two vectors, or two condition levels.

    Parameters
    ----------
    x, y
        `x` alone: a square table of counts. Both: labels of one length, or names of columns of `data`; or,
        where `data` is a ResponseTable, condition levels (none needed where there are two), whose responses
        to the same key are paired. `x` alone may be the ResponseTable.
    categories
        The scale. Default: that of the ResponseTable, else the labels that occur.
    data, clusters, missing
        As in `read_crosstab`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as pairs of labels.
    """
    if isinstance(x, ResponseTable) and data is None:
        x, data = None, x
    if isinstance(data, ResponseTable):
        return _of_levels(data, x, y, categories, clusters)
    if y is None:
        if categories is not None:
            raise ArgumentError("`categories` names the scale of labels; a table of counts has its own")
        return given_counts(x, data, clusters, square=True)
    first, second, shared = two_labels(x, y, data, clusters)
    scale = _scale(categories, first, second)
    codes = (_on(scale, first, "x"), _on(scale, second, "y"))
    (a, b), shared, n_missing, notes = complete_rows(codes, shared, missing)
    return _square(a, b, scale, shared, n_missing, notes)


def _square(
    a: Codes, b: Codes, scale: tuple[str, ...], shared: Shared | None, n_missing: int, notes: tuple[Note, ...]
) -> Crosstab:
    counts = np.zeros((len(scale), len(scale)), dtype=np.int64)
    np.add.at(counts, (a, b), 1)
    return Crosstab(counts, scale, scale, shared, n_missing, notes, (a, b))


def _scale(categories: object, *sides: Labels) -> tuple[str, ...]:
    """The categories in words: the declared ones, else those that occur."""
    if categories is None:
        return tuple(dict.fromkeys(level for side in sides for level in side.levels))
    if isinstance(categories, str | Mapping) or not isinstance(categories, Iterable):
        raise ArgumentTypeError(f"`categories` must be a list of labels; got {categories!r}")
    given = [label_of(level) for level in categories]
    scale = tuple(level for level in given if level is not None)
    if len(scale) < max(2, len(given)) or len(set(scale)) < len(scale):
        raise ArgumentError(
            f"`categories` must hold two or more different labels, each once and none blank; got {given}"
        )
    return scale


def _on(scale: tuple[str, ...], labels: Labels, argument: str) -> Codes:
    """Codes of labels on a scale, -1 where missing."""
    unknown = [level for level in labels.levels if level not in scale]
    if unknown:
        raise ArgumentError(
            f"`{argument}` holds {listed(unknown)}, which `categories` does not list: {listed(scale)}"
        )
    places = np.array([scale.index(level) for level in labels.levels] + [-1], dtype=np.int64)
    return places[labels.codes]


def _of_levels(table: ResponseTable, x: object, y: object, categories: object, clusters: object) -> Crosstab:
    """Responses to the same key at two condition levels."""
    if clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
            "`table.with_cluster(...)`"
        )
    if "response" not in table.frame.columns or "condition" not in table.frame.columns:
        raise DesignError(
            "the table must have responses and a condition to compare their labels; name the columns with "
            "`response=` and `condition=`"
        )
    first, second = _two_levels(table, x, y)
    # A judge labels a response, so that a judged row carries the label of the judge: it is compared with the
    # response to the same key at the other level, which nobody need have judged.
    key = [role for role in KEY_ROLES if role in table.frame.columns and role not in ("condition", "judge")]
    at = [
        table.frame.filter((pl.col("condition") == level) & pl.col("response").is_not_null())
        for level in (first, second)
    ]
    judged = _one_judge(at, (first, second))
    both = at[0].join(at[1].select(*key, pl.col("response").alias("_other")), on=key, nulls_equal=True)
    if not both.height:
        raise DesignError(f"no key has a response at both {first!r} and {second!r}")
    lost = at[0].height + at[1].height - 2 * both.height
    notes = [*table.notes, *judged]
    if lost:
        message = f"{lost:,} responses without a counterpart at the other level are left out."
        notes.append(Note("unmatched", message, "caution"))
    if "model" in key and both["model"].n_unique() > 1:
        notes.append(Note("pooled", f"Pairs of {both['model'].n_unique()} models are pooled."))
    labels = labels_of(both["response"], "response"), labels_of(both["_other"], "response")
    scale = _scale(table.levels if categories is None else categories, *labels)
    a, b = _on(scale, labels[0], "response"), _on(scale, labels[1], "response")
    return _square(a, b, scale, own_clusters(table, both), lost, tuple(notes))


def _one_judge(at: Sequence[pl.DataFrame], levels: tuple[str, str]) -> tuple[Note, ...]:
    """Refuse a level that several judges labelled; a note where the levels had different ones."""
    if "judge" not in at[0].columns:
        return ()
    judges = [rows["judge"].drop_nulls().unique().sort().to_list() for rows in at]
    for level, names in zip(levels, judges, strict=True):
        if len(names) > 1:
            raise DesignError(
                f"{len(names)} judges labelled the responses at {level!r}, {listed(names)}, and a response "
                f"is one pair: test per judge, data=table.with_judge({names[0]!r})"
            )
    if all(judges) and judges[0] != judges[1]:
        message = f"{judges[0][0]!r} labelled {levels[0]!r}, and {judges[1][0]!r} labelled {levels[1]!r}."
        return (Note("judges", f"Different judges are compared as well as levels: {message}", "caution"),)
    return ()


def _two_levels(table: ResponseTable, x: object, y: object) -> tuple[str, str]:
    """The two levels in words; level and reference where the table has two."""
    if len(table.factors) == 1:
        levels = table.factors[0].levels
    else:
        levels = tuple(table.frame["condition"].unique().sort().to_list())
    if x is None and y is None and len(levels) == 2:
        return levels[1], levels[0]
    wanted = [label_of(side) if isinstance(side, str | int | float) else None for side in (x, y)]
    for side, argument in zip(wanted, ("x", "y"), strict=True):
        if side not in levels:
            raise ArgumentError(
                f"`{argument}` must be a condition level of the table, one of {listed(levels)}; got {side!r}"
            )
    if wanted[0] == wanted[1]:
        raise ArgumentError(f"`x` and `y` are both the level {wanted[0]!r}; name two levels")
    return str(wanted[0]), str(wanted[1])
