"""Categories of ratings: their order, and what each is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.canonical import ordered_levels
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.labels import as_text, label_of, listed
from triagestats.results import Note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Scale", "codes_on", "disjoint", "plain_scale", "scale_of"]

_BOOLEANS: Final = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True, slots=True)
class Scale:
    """The categories that raters could choose.

    Attributes
    ----------
    labels
        The categories, in their order where they have one.
    values
        What each is worth: numbers their value, text of a declared order its position from 1. None where
        nothing orders the categories.
    declared
        Whether the categories were given; else they are those that occur, and unused ones are not known.
    numeric
        Whether the values are those of numbers.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...] | None
    declared: bool
    numeric: bool

    @property
    def size(self) -> int:
        """Number of categories."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether the categories have an order."""
        return self.values is not None

    def as_they_occur(self) -> tuple[Note, ...]:
        """A note for a coefficient that depends on how many categories there are, if that is not known."""
        if self.declared:
            return ()
        message = (
            f"The categories are the {self.size} that occur, and the coefficient depends on their number; "
            "give all that the raters could choose as `categories`."
        )
        return (Note("categories", message),)

    def worth(self, what: str) -> Array:
        """The values, for `what` needs them, shape (k,).

        Raises
        ------
        ArgumentError
            If nothing orders the categories.
        """
        if self.values is None:
            raise ArgumentError(
                f"{what} needs the order of the categories, and nothing orders {listed(self.labels)}; give "
                "`categories` from the lowest to the highest, or labels of an Enum"
            )
        return np.array(self.values)

    def steps(self, what: str) -> Array:
        """The level of each category, neighbours one apart, shape (k,).

        Raises
        ------
        ArgumentError
            If the levels are not known: between those that occur there may be others.
        """
        values = self.worth(what)
        if self.declared:
            return np.arange(self.size, dtype=np.float64)
        if (values != np.floor(values)).any():
            raise ArgumentError(
                f"{what} needs the levels of the scale, and between those that occur, {listed(self.labels)}, "
                "there may be others; give all of them as `categories`"
            )
        return values


def scale_of(columns: Sequence[pl.Series], categories: object = None) -> Scale:
    """The scale of some columns of labels.

    Parameters
    ----------
    columns
        One a rater.
    categories
        All categories in their order, used or not. By default those of an Enum, else the labels that occur.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `categories` is no list of different labels, or numbers neither rise nor fall.
    DataError
        If two labels are one number, or columns have different orders.
    """
    if categories is not None:
        return _declared(_listed(categories), "`categories`")
    enums = {tuple(column.dtype.categories) for column in columns if isinstance(column.dtype, pl.Enum)}
    if len(enums) > 1:
        raise DataError(
            f"the raters have different Enums, such as {listed(min(enums))} and {listed(max(enums))}; "
            "give `categories`"
        )
    if enums:
        return _declared([level.strip() for level in enums.pop()], "the Enum of the ratings")
    labels, _ = ordered_levels(pl.concat([as_text(column, column.name).alias("") for column in columns]))
    values = _numbers(labels)
    if all(column.dtype in (pl.Boolean, pl.Null) for column in columns):
        values = tuple(_BOOLEANS[label] for label in labels)
    return Scale(labels, values, declared=False, numeric=values is not None)


def plain_scale(size: int, categories: object = None) -> Scale:
    """The scale of a table of counts: its rows in their order, under the names of `categories`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there are not as many categories as rows.
    """
    if categories is None:
        positions = range(1, size + 1)
        return Scale(tuple(map(str, positions)), tuple(map(float, positions)), declared=True, numeric=False)
    scale = scale_of([], categories)
    if scale.size != size:
        raise ArgumentError(
            f"`categories` must name the {size} categories of the table of counts; got {scale.size}"
        )
    return scale


def codes_on(scale: Scale, column: pl.Series, argument: str) -> Codes:
    """The place of each label on the scale, -1 where it is missing.

    Raises
    ------
    DataError
        If a label is not on it.
    """
    text = as_text(column, argument)
    place = {label: code for code, label in enumerate(scale.labels)}
    codes = text.replace_strict(place, default=None, return_dtype=pl.Int64)
    strange = text.filter(text.is_not_null() & codes.is_null())
    if len(strange):
        raise DataError(
            f"`{argument}` holds {strange[0]!r} in {len(strange):,} of {len(text):,} rows, which is none of "
            f"the categories {listed(scale.labels)}; add it to `categories`, or make it missing"
        )
    return codes.fill_null(-1).to_numpy().astype(np.int64)


def disjoint(scale: Scale, codes: Codes, raters: Sequence[str]) -> tuple[Note, ...]:
    """A note where the first rater whose labels nobody else uses may write the same categories otherwise.

    Parameters
    ----------
    scale
        The categories; if they were declared, or all are numbers, raters just differ.
    codes
        Categories of the ratings, -1 where one is missing, shape (n, m).
    raters
        What the raters are called.
    """
    if scale.declared or scale.ordered:
        return ()
    used = [set(column[column >= 0].tolist()) for column in codes.T]
    for place, (rater, own) in enumerate(zip(raters, used, strict=True)):
        others = set().union(*(other for at, other in enumerate(used) if at != place))
        if own and others and not own & others:
            one, rest = (listed([scale.labels[code] for code in sorted(found)]) for found in (own, others))
            message = (
                f"No label of `{rater}`, {one}, is one of the others', {rest}. If they mean the same "
                "categories, write them in one way."
            )
            return (Note("disjoint", message, "caution"),)
    return ()


def _listed(categories: object) -> list[str]:
    """The labels given as `categories`."""
    if isinstance(categories, str | bytes | Mapping | Set) or not isinstance(categories, Iterable):
        raise ArgumentTypeError(
            "`categories` must be a list of all categories, from the lowest to the highest where they have "
            f"an order, such as [1, 2, 3]; got {type(categories).__name__}"
        )
    given: list[Any] = list(categories)
    if any(isinstance(value, float | np.floating) and math.isinf(value) for value in given):
        raise ArgumentError(f"`categories` holds an infinite value, which is no category; got {given}")
    labels = [label_of(value) for value in given]
    if not labels or None in labels or len(set(labels)) < len(labels):
        raise ArgumentError(f"`categories` must hold different labels, each once and none blank; got {given}")
    return [label for label in labels if label is not None]


def _declared(labels: Sequence[str], source: str) -> Scale:
    values = _numbers(labels)
    if values is None:
        positions = tuple(float(place + 1) for place in range(len(labels)))
        return Scale(tuple(labels), positions, declared=True, numeric=False)
    steps = np.diff(values)
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ArgumentError(f"{source} must rise or fall where the labels are numbers; got {listed(labels)}")
    return Scale(tuple(labels), values, declared=True, numeric=True)


def _numbers(labels: Sequence[str]) -> tuple[float, ...] | None:
    """The numbers that labels stand for; None where one stands for none."""
    try:
        values = tuple(float(label) for label in labels)
    except ValueError:
        return None
    if not labels or not all(map(math.isfinite, values)):
        return None
    if len(set(values)) < len(values):
        twice = [label for label, value in zip(labels, values, strict=True) if values.count(value) > 1]
        raise DataError(f"the labels {listed(twice)} are one number; write it in one way")
    return values
