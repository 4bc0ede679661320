"""The outcome of a mixed model as numbers: 0 and 1, places on a scale, or numbers as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from triagestats.errors import ArgumentError, DataError
from triagestats.labels import as_text, counted, listed, n_rows
from triagestats.models.formula import Formula
from triagestats.models.mixed.matrix import Family

__all__ = ["Outcome"]


@dataclass(slots=True)
class Outcome:
    """Reads an outcome of one family.

    Attributes
    ----------
    formula
        What names it.
    family
        What it is taken for.
    scale
        Its labels from lowest to highest; None where the values order themselves.
    levels
        The labels that occur, in order, once it was read; empty but for `ordinal`.
    whole
        All labels of the scale, also those that do not occur.
    """

    formula: Formula
    family: Family
    scale: Sequence[str] | None
    levels: tuple[str, ...] = field(default=(), init=False)
    whole: tuple[str, ...] = field(default=(), init=False)

    @property
    def reader(self) -> Callable[[pl.Series], pl.Series] | None:
        """What makes numbers of the outcome; None where it holds them."""
        return self._places if self.family == "ordinal" else None

    @property
    def absent(self) -> tuple[str, ...]:
        """Labels of the scale that do not occur."""
        return tuple(label for label in self.whole if label not in self.levels)

    def check(self, values: pl.Series) -> None:
        """Refuse an outcome that the family does not have.

        Raises
        ------
        DataError
            If it is not 0 and 1, or does not vary.
        """
        name = self.formula.outcome
        if self.family == "binomial" and (odd := values.filter((values != 0) & (values != 1))).len():
            example = float(odd[0])
            why = (
                "Fractions are means, of judges or repetitions, and no responses: give one row a judge and "
                "name `(1 | response)` in the formula, or choose one with `judge=`. Partial credit is "
                "graded: family='ordinal'"
                if 0 < example < 1
                else "Graded outcomes are family='ordinal', measurements family='gaussian'"
            )
            raise DataError(
                f"`formula`: the outcome {name!r} must be 0 or 1, or false or true, for family='binomial'; "
                f"{n_rows(odd.len())} of {values.len():,} hold something else, such as {example:g}. {why}"
            )
        if values.n_unique() < 2:
            raise DataError(
                f"`formula`: the outcome {name!r} has one value in all {n_rows(values.len())} that are used, "
                f"{self._label(values[0])}: nothing varies that a model could explain"
            )

    def _label(self, value: float) -> str:
        return repr(self.levels[int(value)]) if self.levels else f"{value:g}"

    def _places(self, values: pl.Series) -> pl.Series:
        """Places on the scale, among the labels that occur; null where a value is missing."""
        name = self.formula.outcome
        if values.dtype.is_float():
            values = values.fill_nan(None)
        text = as_text(values, name)
        present = set(text.drop_nulls())
        scale = self._scale(values, present)
        if unknown := sorted(present - set(scale)):
            raise DataError(
                f"`formula`: the outcome {name!r} holds {listed(unknown)}, which the scale does not have: "
                f"{' < '.join(scale)}. Give all labels in `levels=`, from lowest to highest"
            )
        self.levels = tuple(label for label in scale if label in present)
        self.whole = scale
        places = {label: float(place) for place, label in enumerate(self.levels)}
        return text.replace_strict(places, default=None, return_dtype=pl.Float64).alias(name)

    def _scale(self, values: pl.Series, present: set[str]) -> tuple[str, ...]:
        name = self.formula.outcome
        if self.scale is not None:
            return tuple(self.scale)
        if isinstance(values.dtype, pl.Enum):
            return tuple(label.strip() for label in values.dtype.categories)
        if values.dtype.is_numeric() or values.dtype == pl.Boolean:
            most = 50  # thresholds beyond this are no scale but a measurement
            numbers = values.cast(pl.Float64).drop_nulls().unique().sort()
            if len(numbers) > most:
                raise ArgumentError(
                    f"`family` is 'ordinal', but the outcome {name!r} has {counted(len(numbers), 'value')}; "
                    f"more than {most} are no graded scale: take family='gaussian', or join values"
                )
            return tuple(as_text(numbers, name))
        raise ArgumentError(
            f"`family` is 'ordinal', but the outcome {name!r} holds labels without an order: "
            f"{listed(sorted(present))}. Give `levels=` from lowest to highest, here or to ResponseTable, or "
            "make the column an Enum"
        )
