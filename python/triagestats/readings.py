"""The same contrasts under other intervals and tests, side by side, and where these disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.defaults import Method
from triagestats.independent import RowReading
from triagestats.inference import METHODS, Family
from triagestats.intervals import Ends
from triagestats.results import Note, tidy_frame
from triagestats.schema import Match
from triagestats.verdicts import verdict

__all__ = ["INDEPENDENT", "Comparison", "Reading"]

INDEPENDENT: Final[dict[Match, str]] = {
    "row": "rows as independent, t",
    "cell": "cells as independent, t",
    "scenario": "scenario x model as independent, t",
}
_MOST_ARRANGEMENTS: Final = 10**300  # a float holds no more
_METHODS: Final[tuple[Method, ...]] = ("jackknife-t", "percentile", "bca")
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Contrasts beside what independent rows would have said.

    Attributes
    ----------
    family
        The contrasts.
    independent
        For each estimate the readings that take rows (and cells, where they differ) as independent.
    """

    family: Family
    independent: tuple[dict[Match, RowReading | None], ...]

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        return ((row.identity, row.slot) for row in self.family.rows if row.slot is not None)

    def design_effect(self, e: int) -> float | None:
        """Variance by cluster over the variance of independent rows."""
        reading = self.independent[e].get("row")
        error = float(self.family.evidence.std_error[e])
        if reading is None or not reading.std_error > 0:
            return None
        if not np.isfinite(error) or not self.family.smooth[e]:
            return None
        return (error / reading.std_error) ** 2

    def by_rows(self, e: int) -> Iterator[tuple[dict[str, Any], RowReading]]:
        """Readings of independent rows that have an error, with what they show in every frame."""
        for match, reading in self.independent[e].items():
            if reading is not None and reading.std_error > 0:
                row = {
                    "estimate": reading.estimate,
                    "std_error": reading.std_error,
                    "df": float(reading.n - 1),
                    "p_value": None if self.family.nulls[e] is None else reading.p_value,
                    "method": INDEPENDENT[match],
                    "n_rows": reading.n,
                }
                yield row, reading

    def details(self) -> pl.DataFrame:
        """Quantities of single methods, one row each: `quantity` and `value`."""
        names = ("estimand", "term", "model", "contrast", "stratum")
        rows = [
            {name: identity[name] for name in names} | {"quantity": quantity, "value": value}
            for identity, e in self
            for quantity, value in self._quantities(e)
        ]
        schema = dict.fromkeys((*names, "quantity"), pl.String) | {"value": pl.Float64}
        return pl.DataFrame(rows, schema=schema)

    def _quantities(self, e: int) -> Iterator[tuple[str, float | None]]:
        yield "design_effect", self.design_effect(e)
        if len(replicates := self.family.evidence.replicates):
            finite = replicates[np.isfinite(replicates[:, e]), e]
            yield "bootstrap_std_error", float(finite.std(ddof=1)) if len(finite) > 1 else None
            yield "undefined_replicates", float(len(replicates) - len(finite))
        if (test := self.family.tests[e]) is not None:
            yield "arrangements", float(min(test.n_arrangements, _MOST_ARRANGEMENTS))
            yield "clusters_that_move", float(test.n_moving)
            yield "smallest_p_value", test.smallest


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A comparison read at one level.

    Attributes
    ----------
    contrasts
        The contrasts as shown.
    ends
        Their intervals by every method, NaN where it does not apply.
    """

    comparison: Comparison
    conf_level: float
    contrasts: pl.DataFrame
    ends: Mapping[Method, Ends]

    @classmethod
    def at(cls, comparison: Comparison, conf_level: float) -> Reading:
        """Read the replicates at a level."""
        family = comparison.family
        ends = {method: family.ends(method, conf_level) for method in _METHODS}
        return cls(comparison, conf_level, family.read(conf_level), ends)

    def _estimated(self) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
        """Identity, place and shown row of each contrast that has data."""
        shown = self.contrasts.filter(pl.col("status") != "no_data").iter_rows(named=True)
        for (identity, e), row in zip(self.comparison, shown, strict=True):
            yield identity, e, row

    def _intervals(self, e: int) -> Iterator[tuple[Method, float, float]]:
        for method, ends in self.ends.items():
            low, high = float(ends.low[e]), float(ends.high[e])
            if np.isfinite(low) and np.isfinite(high):
                yield method, low, high

    def sensitivity(self) -> pl.DataFrame:
        """Every contrast under every interval that applies, and under independence."""
        rows: list[dict[str, Any]] = []
        for identity, e, shown in self._estimated():
            rows += [identity | row for row in self._clustered(e, shown)]
            rows += [identity | row for row in self._independent(e)]
        return tidy_frame(rows)

    def _clustered(self, e: int, shown: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if shown["conf_low"] is None:
            return
        same = {name: shown[name] for name in ("estimate", "n_rows", "n_clusters")}
        for method, low, high in self._intervals(e):
            row = same | self._ends(e, low, high) | {"method": METHODS[method]}
            if method == "jackknife-t":
                row |= {name: shown[name] for name in ("std_error", "df")}
            yield row

    def _independent(self, e: int) -> Iterator[dict[str, Any]]:
        for row, reading in self.comparison.by_rows(e):
            yield row | self._ends(e, *reading.ends(self.conf_level))

    def _ends(self, e: int, low: float, high: float) -> dict[str, Any]:
        family = self.comparison.family
        null, higher = family.nulls[e], family.options.higher_is_better
        side = "undecided" if null is None else verdict(low - null, high - null, higher_is_better=higher)
        return {"conf_low": low, "conf_high": high, "conf_level": self.conf_level, "verdict": side}

    def tests(self) -> pl.DataFrame:
        """Every contrast under every test that applies, and under independence."""
        t_values = self.comparison.family.t_p_values()
        rows: list[dict[str, Any]] = []
        for identity, e, shown in self._estimated():
            same = identity | {name: shown[name] for name in ("estimate", "n_rows", "n_clusters")}
            test = self.comparison.family.tests[e]
            if test is not None:
                method = f"permutation of labels by cluster, {test.how}"
                rows.append(same | {"p_value": test.p_value, "method": method})
            if shown["statistic"] is not None:
                t = {name: shown[name] for name in ("statistic", "df", "std_error")}
                p = {"p_value": float(t_values[e]), "method": METHODS["jackknife-t"]}
                rows.append(same | t | p)
            rows += [
                identity | row | {"statistic": reading.estimate / reading.std_error}
                for row, reading in self.comparison.by_rows(e)
                if row["p_value"] is not None
            ]
        return tidy_frame(rows)

    def notes(self) -> tuple[Note, ...]:
        """Where interval, other intervals and test of a contrast do not say the same.

        Pooled contrasts come first, one sentence each; single models are only named.
        """
        pooled: list[str] = []
        single: list[str] = []
        unreachable: list[Note] = []
        for _, e, row in self._estimated():
            excluding, holding = self._sides(e, row)
            if excluding and holding:
                null = self.comparison.family.nulls[e]
                conflict = f"{null:g} is excluded by {_listed(excluding)}, not by {_listed(holding)}"
                (single if row["model"] else pooled).append(
                    _name(row) if row["model"] else f"Readings disagree on {_name(row)}: {conflict}"
                )
            test = self.comparison.family.tests[e]
            smallest = None if test is None else test.smallest
            if test is not None and smallest is not None and not row["model"] and smallest > self._alpha:
                few = f"{test.n_moving} cluster{'s differ' if test.n_moving != 1 else ' differs'}"
                message = (
                    f"{_name(row)}: {few} between the levels, so the permutation test's p cannot be "
                    f"below {smallest:g}."
                )
                unreachable.append(Note("smallest_p", message, "caution"))
        notes = [
            Note("disagreement", f"{sentence}.", "caution")
            for sentence in _first(pooled, "other contrasts have readings that disagree")
        ]
        if single:
            message = f"Readings disagree for single models: {_some(single)}; see `sensitivity` and `tests`."
            notes.append(Note("disagreement", message, "caution"))
        return (*notes, *unreachable)

    @property
    def _alpha(self) -> float:
        return 1 - self.conf_level

    def _sides(self, e: int, row: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The readings whose interval excludes 0 or whose test rejects, and the others."""
        null = self.comparison.family.nulls[e]
        if null is None or row["conf_low"] is None or not self.comparison.family.smooth[e]:
            return [], []
        excludes = {METHODS[method]: not low <= null <= high for method, low, high in self._intervals(e)}
        if len(excludes) > 1 and len(set(excludes.values())) == 1:
            excludes = {"all intervals": next(iter(excludes.values()))}
        if row["p_value"] is not None:
            test = "permutation test" if self.comparison.family.tests[e] is not None else "t test"
            p = f"p = {row['p_value']:.3f}" if row["p_value"] >= 0.001 else "p < 0.001"
            excludes[f"the {test} ({p})"] = row["p_value"] <= self._alpha
        return [name for name, out in excludes.items() if out], [k for k, out in excludes.items() if not out]


def _name(row: Mapping[str, Any]) -> str:
    model = f" ({row['model']})" if row["model"] else ""
    return f"{row['contrast']}{model}" + (f" in {row['stratum']}" if row["stratum"] else "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _first(sentences: Sequence[str], others: str) -> list[str]:
    more = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], *([f"{more} {others}"] if more > 0 else [])]
