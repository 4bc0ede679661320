"""Numbers and names as they are printed; the only place where numbers are rounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Decimals", "count", "level_text", "name", "p_text", "percent", "place", "quantity"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decimals:
    """How many decimals the numbers of an analysis are shown with.

    Rates and their differences have three; for other scores the standard error shows three digits.
    """

    places: int = 3

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Decimals:
        """The decimals that show three digits of a middling standard error."""
        known = sorted(error for error in errors if error is not None and 0 < error < math.inf)
        if not known:
            return cls()
        return cls(min(9, max(0, 2 - math.floor(math.log10(known[len(known) // 2])))))

    def number(self, value: float | None, *, sign: bool = False) -> str:
        """A number, with a minus only where a digit that is not 0 shows."""
        if value is None:
            return ""
        text = f"{value:{'+' if sign else ''},.{self.places}f}"
        return text if text.strip("+-0.,") else text.lstrip("+-")

    def signed(self, value: float | None) -> str:
        """A difference."""
        return self.number(value, sign=True)

    def interval(self, row: Row) -> str:
        """The interval of a row, or that it is withheld."""
        if row["conf_low"] is None or row["conf_high"] is None:
            return "withheld"
        return f"[{self.number(row['conf_low'])}, {self.number(row['conf_high'])}]"

    def estimate(self, row: Row) -> str:
        """The estimate of a row with its interval."""
        if row["estimate"] is None:
            return "no data"
        return f"{self.number(row['estimate'])} {self.interval(row)}"


def p_text(value: float | None, *, equals: bool = False) -> str:
    """A p-value, or `p = ...` with `equals`."""
    if value is None:
        return ""
    if value < 0.001:
        return "p < 0.001" if equals else "< 0.001"
    return f"p = {value:.3f}" if equals else f"{value:.3f}"


def level_text(conf_level: float) -> str:
    """A level as in `95 %`."""
    return f"{round(conf_level * 100, 6):g} %"


def percent(share: float) -> str:
    """A share; one that is not whole does not round to 100 %."""
    if share < 1 and round(share * 100, 1) >= 100:
        return "> 99.9 %"
    return f"{share * 100:.1f} %"


def count(number: float, noun: str) -> str:
    """A number with its noun, in the plural where it is not 1."""
    return f"{number:,.0f} {noun}{'' if number == 1 else 's'}"


def quantity(value: float | None) -> str:
    """A ratio with one decimal."""
    if value is None:
        return ""
    return "< 0.1" if value < 0.05 else f"{value:,.1f}"


def name(text: str | None) -> str:
    """A name from the data on one line, with control characters shown rather than sent to a terminal."""
    flat = " ".join((text or "").split())
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in flat)


def place(row: Row, contrast: str) -> str:
    """Where a row stands: contrast or condition, model, stratum."""
    what = name(contrast or row["condition"])
    model = name(row["model"])
    where = f"{what} ({model})" if what and model else what or model or "all"
    return where + (f" in {name(row['stratum'])}" if row["stratum"] else "")
