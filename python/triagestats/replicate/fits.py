"""A fit whose rows are found by name, and whose percentile ends are read at several levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from triagestats.estimates import Estimates
from triagestats.replicate.entry import NotDerivableError
from triagestats.replicate.montecarlo import Band, bands_of_ends

__all__ = ["LEVEL", "Fit"]

LEVEL = 0.95
"""Of the intervals in the folders."""


@dataclass(slots=True)
class Fit:
    """Bootstrap estimates by the label of the estimand and the model.

    Attributes
    ----------
    estimates
        Read as percentile intervals.
    """

    estimates: Estimates
    _frame: pl.DataFrame | None = None
    _levels: dict[float, Estimates] = field(default_factory=dict)

    def row(self, label: str, model: str | None = None) -> Mapping[str, Any]:
        """The tidy row of an estimand, for a model or pooled.

        Raises
        ------
        NotDerivableError
            If there is none.
        """
        if self._frame is None:
            self._frame = self.estimates.tidy()
        return self._frame.row(self._place(label, model), named=True)

    def bands(self, name: str, label: str, model: str | None, source: int | None) -> dict[str, Band]:
        """Bands of the two ends of a percentile interval of the source, under the path that they have."""
        if not source:
            return {}
        place = self._place(label, model)
        library = None if self.estimates.evidence.laws[place] is not None else self.estimates.n_resamples

        def read(level: float) -> tuple[float, float]:
            if level not in self._levels:
                self._levels[level] = self.estimates.with_level(level)
            again = self._levels[level]
            return float(again.conf_low[place]), float(again.conf_high[place])

        ends = bands_of_ends(read, LEVEL, source, library)
        return {f"{name}/{end}": band for end, band in enumerate(ends)}

    def _place(self, label: str, model: str | None) -> int:
        for place, identity in enumerate(self.estimates.identity):
            names = (identity.get("contrast"), identity.get("term"), identity.get("estimand"))
            if label in names and identity.get("model") == model:
                return place
        raise NotDerivableError(f"rows are not in the folder: no {label} of {model or 'all models'}")
