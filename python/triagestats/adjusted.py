"""Adjusted: the result of an adjustment for multiplicity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from triagestats.results import Note, Shown, as_json, tidy_frame

if TYPE_CHECKING:
    pass

__all__ = ["Adjusted", "Adjustment"]

Adjustment = Literal[
    "holm",
    "bonferroni",
    "hochberg",
    "hommel",
    "bh",
    "by",
    "sidak",
    "holm-sidak",
    "max-t",
    "max-t-single-step",
]
_NAMES: Final = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "hochberg": "Hochberg",
    "hommel": "Hommel",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
    "sidak": "Sidak",
    "holm-sidak": "Holm-Sidak",
    "max-t": "max-T, step-down",
    "max-t-single-step": "max-T, single-step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted(Shown):
    """P-values and what they are after adjustment, each in its place.

    Attributes
    ----------
    p_values
        As they came, None where missing; with max-T, those of each statistic by itself.
    p_adjusted
        Adjusted within the family of each, None where missing.
    p_adjusted_overall
        Adjusted over all as one family; as `p_adjusted` where no families were named.
    method
        The procedure.
    family
        The family of each, None where no families were named.
    n
        P-values that are not missing.
    n_missing
        Those that are.
    details
        Quantities of this method, plain values by name.
    notes
        Choices made and doubts.
    frame
        The frame that the p-values came from, None where they came as a vector.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.adjust([0.04, 0.02, None, 0.5])
    >>> result.p_adjusted, result.n, result.n_missing
    ((0.08, 0.06, None, 0.5), 3, 1)
    >>> result.tidy().select("p_value", "p_adjusted", "method").row(1)
    (0.02, 0.06, 'Holm')
    """

    p_values: tuple[float | None, ...]
    p_adjusted: tuple[float | None, ...]
    p_adjusted_overall: tuple[float | None, ...]
    method: Adjustment
    family: tuple[str, ...] | None = None
    n: int
    n_missing: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    frame: pl.DataFrame | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The procedure in words."""
        return _NAMES[self.method]

    def tidy(self) -> pl.DataFrame:
        """The frame that came with `p_adjusted` filled in; of a vector, one row a p-value.

        In the rows of a vector `term` holds the family.
        """
        if self.frame is not None:
            return self.frame.with_columns(pl.Series("p_adjusted", self.p_adjusted, dtype=pl.Float64))
        family = self.family or (None,) * len(self.p_values)
        return tidy_frame(
            {
                "term": term,
                "p_value": p,
                "p_adjusted": after,
                "status": "undefined" if p is None else "ok",
                "reason": "the p-value is missing" if p is None else None,
                "method": self.name,
            }
            for term, p, after in zip(family, self.p_values, self.p_adjusted, strict=True)
        )

    def glance(self) -> pl.DataFrame:
        """One row: the procedure, and how many p-values it took."""
        return pl.DataFrame(
            {
                "method": [self.method],
                "n": [self.n],
                "n_missing": [self.n_missing],
                "n_families": [1 if self.family is None else len(set(self.family))],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        names = ("p_value", "p_adjusted", "p_adjusted_overall", "family")
        columns = (
            self.p_values,
            self.p_adjusted,
            self.p_adjusted_overall,
            self.family or (None,) * len(self.p_values),
        )
        return as_json(
            self,
            p_values=[dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
            details=dict(self.details),
        )

    def __repr__(self) -> str:
        lines = [
            f"{self.name}: {self.n:,} p-values" + (f", {self.n_missing:,} missing" if self.n_missing else "")
        ]
        for place, (p, after) in enumerate(zip(self.p_values, self.p_adjusted, strict=True)):
            label = "" if self.family is None else f"{self.family[place]}: "
            lines.append(
                f"  {label}" + ("missing" if p is None or after is None else f"{p:.4g} -> {after:.4g}")
            )
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])
