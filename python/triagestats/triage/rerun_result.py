"""RerunComparison: conditions compared by their runs, beside what questions say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.arguments import valid_level
from triagestats.inference import Family
from triagestats.results import Note, Shown, Test, as_json, tidy_frame
from triagestats.triage.run_values import Unit
from triagestats.triage.text import aligned

if TYPE_CHECKING:
    pass

__all__ = ["RELATIVE", "RerunComparison"]

RELATIVE: Final = "relative_difference"
_SHOWN: Final = (
    "estimand",
    "term",
    "condition",
    "contrast",
    "estimate",
    "conf_low",
    "conf_high",
    "p_value",
    "n_rows",
    "n_clusters",
)


@dataclass(frozen=True, slots=True, eq=False)
class RerunComparison(Shown):
    """Two conditions compared by their runs or forms.

    Attributes
    ----------
    names
        The condition, and what it is compared with: another one, or the constant as text.
    unit, paired
        What is counted, and whether a run of the one belongs to a run of the other.
    runs
        One row a run: `condition`, `unit` (its name), `mean`, `n_rows` (null where only means are known).
    test
        The exact test at the level of the runs.
    conf_level, n_resamples, seed
        What was asked.
    notes
        What the p-value speaks of, and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> found = ts.compare_reruns([0.41, 0.42, 0.40, 0.43, 0.41], [0.52, 0.50, 0.53, 0.51, 0.52])
    >>> isinstance(found, ts.RerunComparison), found.runs.height, found.glance().height
    (True, 10, 1)
    """

    names: tuple[str, str]
    unit: Unit
    paired: bool
    runs: pl.DataFrame
    test: Test
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _rows: tuple[Mapping[str, Any], ...]
    _family: Family | None

    @property
    def p_value(self) -> float | None:
        """Of the test at the level of the runs."""
        return self.test.p_value

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary; `term` says what it is an average of.

        At the level of the runs: `mean` and `run_sd` (the standard deviation of the runs, with n - 1) of each
        condition, `difference` with the p-value, `relative_difference`. At that of the questions: the same
        with intervals, where there is a table.
        """
        frame = tidy_frame(dict(row) for row in self._rows)
        if self._family is None:
            return frame
        questions = self._family.read(self.conf_level).with_columns(pl.lit("questions").alias("term"))
        single = pl.col("estimand") == "mean"
        label = pl.col("contrast").str.strip_prefix("mean(").str.strip_suffix(")")
        questions = questions.with_columns(
            pl.when(single).then(label).alias("condition"),
            pl.when(~single).then(pl.lit(self._contrast)).alias("contrast"),
            pl.when(~single).then("p_value").alias("p_value"),
            pl.lit(None, pl.String).alias("verdict"),
        )
        return pl.concat([frame, questions])

    @property
    def _contrast(self) -> str:
        return f"{self.names[0]} - {self.names[1]}"

    def glance(self) -> pl.DataFrame:
        """One row: the test, sizes and settings."""
        counts = self.runs["condition"].value_counts()
        sizes = dict(counts.iter_rows())
        return pl.DataFrame(
            {
                "contrast": [self._contrast],
                "unit": [self.unit],
                "paired": [self.paired],
                "n_a": [sizes.get(self.names[0], 0)],
                "n_b": [sizes.get(self.names[1], 0)],
                "p_value": [self.test.p_value],
                "alternative": [self.test.alternative],
                "method": [self.test.method],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"p_value": pl.Float64, "seed": pl.UInt64},
        )

    def with_level(self, conf_level: float) -> RerunComparison:
        """The same estimates with the intervals of the questions at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def to_dict(self) -> dict[str, Any]:
        """Estimates, runs, test, notes and settings as plain JSON values."""
        return as_json(self, estimates=self.tidy(), runs=self.runs, test=self.test.to_dict())

    def __repr__(self) -> str:
        side = f", {self.test.alternative}" if self.test.alternative != "two-sided" else ""
        p = "" if self.test.p_value is None else f": p = {self.test.p_value:.3g}{side}"
        return "\n".join(
            [
                f"{self._contrast}, {self.unit}s compared by the {self.test.method}{p}",
                *aligned(self.tidy(), _SHOWN),
                *(f"note: {note}" for note in self.notes),
            ]
        )
