"""check_drop: whether a drop as printed is the difference of the two figures printed beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import polars as pl

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.results import Note, Shown, notes_as_json, plain, tidy_frame
from triagestats.schema import SCHEMA_VERSION

__all__ = ["DropCheck", "check_drop"]

Reading = Literal["absolute", "relative"]


@dataclass(frozen=True, slots=True)
class DropCheck(Shown):
    """A printed drop beside the one that follows from the printed figures.

    Attributes
    ----------
    before, after, printed
        The figures as given.
    absolute, relative
        before - after, and its share of `before` in percent; None where `before` is 0.
    slack
        How far rounding of the three figures may move the absolute drop away from the printed one.
    agrees
        Which reading of the printed drop holds; None where none does.
    notes
        What is wrong with it.

    Examples
    --------
    >>> import triagestats as ts
    >>> found = ts.check_drop(39.43, 17.79, 22.29)
    >>> isinstance(found, ts.DropCheck), round(found.absolute, 2), found.agrees
    (True, 21.64, None)
    """

    before: float
    after: float
    printed: float
    absolute: float
    relative: float | None
    slack: float
    agrees: Reading | None
    notes: tuple[Note, ...]

    def tidy(self) -> pl.DataFrame:
        """The printed drop and the two that follow from the figures, with the columns of the glossary."""
        doubt = self.notes[0].message if self.agrees is None else None
        rows: list[dict[str, object]] = [
            {
                "estimand": "printed_drop",
                "estimate": self.printed,
                "status": "warning" if doubt else "ok",
                "reason": doubt,
            },
            {"estimand": "absolute_drop", "estimate": self.absolute, "status": "ok"},
        ]
        if self.relative is not None:
            rows.append({"estimand": "relative_drop", "estimate": self.relative, "status": "ok"})
        return tidy_frame(row | {"method": "from printed figures"} for row in rows)

    def glance(self) -> pl.DataFrame:
        """One row."""
        names = ("before", "after", "printed", "absolute", "relative", "slack", "agrees")
        return pl.DataFrame(
            {name: [getattr(self, name)] for name in names},
            schema_overrides={"relative": pl.Float64, "agrees": pl.String},
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "schema_version": SCHEMA_VERSION,
            **plain(self.glance())[0],
            "notes": notes_as_json(self.notes),
        }

    def __repr__(self) -> str:
        share = "" if self.relative is None else f", {self.relative:.4g} % of {self.before:g}"
        drop = f"{self.absolute:.4g}{share}; printed {self.printed:g}"
        text = f"drop from {self.before:g} to {self.after:g}: {drop}"
        return "\n".join([text, *(f"note: {note}" for note in self.notes)])


def check_drop(before: object, after: object, printed: object) -> DropCheck:
    """Whether a printed drop is the difference of the two figures that are printed beside it.

    Every figure stands for an interval of half a unit of its last digit on both sides, so that

        |printed - (before - after)| <= sum of the three half units

    where all three are right. A drop in percent of `before` is tried as well.

    Parameters
    ----------
    before, after, printed
        Numbers as printed; as text where zeros at their end count, such as "17.80".

    Returns
    -------
    DropCheck
        `agrees` says which reading holds; where none does a note says so.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If a figure is no finite number.

    Notes
    -----
    That figures agree does not make them right; that they disagree means that one of them is wrong, or of
    other rows or other rounding than it says.

    Examples
    --------
    >>> import triagestats as ts
    >>> ts.check_drop("63.6", "57.2", "6.4").agrees
    'absolute'
    >>> ts.check_drop(80, 60, 25).agrees
    'relative'
    >>> print(ts.check_drop(39.43, 17.79, 22.29).notes[0])
    The printed drop 22.29 is not 39.43 - 17.79 = 21.64, and rounding explains 0.015 at most.
    """
    (high, low, drop) = (
        _figure(value, name) for value, name in ((before, "before"), (after, "after"), (printed, "printed"))
    )
    units = [_half_unit(value) for value in (high, low, drop)]
    slack = units[0] + units[1] + units[2]
    absolute = high - low
    relative = 100 * absolute / high if high else None
    agrees: Reading | None = None
    if abs(drop - absolute) <= slack:
        agrees = "absolute"
    elif relative is not None:
        # The share moves by its derivatives in the two figures, and by the rounding of what is printed.
        moved = 100 * (units[1] + abs(low / high) * units[0]) / abs(high) + units[2]
        if abs(drop - relative) <= moved:
            agrees = "relative"
    notes = []
    if agrees is None:
        message = (
            f"The printed drop {drop} is not {high} - {low} = {absolute}, and rounding explains "
            f"{slack.normalize():f} at most."
        )
        notes.append(Note("printed_drop", message, "caution"))
    return DropCheck(
        before=float(high),
        after=float(low),
        printed=float(drop),
        absolute=float(absolute),
        relative=None if relative is None else float(relative),
        slack=float(slack),
        agrees=agrees,
        notes=tuple(notes),
    )


def _figure(value: object, argument: str) -> Decimal:
    """A printed number with its digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ArgumentTypeError(f"`{argument}` must be a number as printed; got {value!r}")
    try:
        found = Decimal(value.strip() if isinstance(value, str) else str(value))
    except InvalidOperation:
        raise ArgumentError(f"`{argument}` must be a number as printed; got {value!r}") from None
    if not math.isfinite(found):
        raise ArgumentError(f"`{argument}` must be finite; got {value!r}")
    return found


def _half_unit(value: Decimal) -> Decimal:
    """Half a unit of the last digit."""
    exponent = value.as_tuple().exponent
    return Decimal(5).scaleb(int(exponent) - 1)  # it is finite: the exponent is a number
