"""Rates and contrasts of the direction of error as families of estimates, read at any level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from triagestats.blocks import Block
from triagestats.contrast_rows import with_adjusted
from triagestats.errors import DesignError
from triagestats.estimands import Estimand
from triagestats.inference import Family, Options, infer
from triagestats.plan import Plan, Row, contrast_plan, rate_plan, targets_of
from triagestats.resample import valid_resamples
from triagestats.results import Note
from triagestats.schema import Match, Weights
from triagestats.totals import TotalsBuilder
from triagestats.triage.outcomes import Outcomes

__all__ = ["COMPARED", "Errors", "errors_of", "joined"]

COMPARED: Final = ("under_rate", "over_rate", "net_direction", "error_cost")
"""The measures of which levels are compared; correct answers are those of `analyze`."""

_FAMILIES: Final = Note(
    "families",
    "p_adjusted is Holm's within the contrasts of one measure and one stratum; contrasts of all models are "
    "one family, those of single models another.",
)


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """The direction of error of a table, ready to be read at a level.

    Attributes
    ----------
    rates
        The family of rates, net directions and mean costs.
    contrasts
        The family of their differences between conditions; None where nothing is compared.
    notes
        Choices made and doubts.
    """

    rates: Family
    contrasts: Family | None
    notes: tuple[Note, ...]

    def read_rates(self, conf_level: float) -> pl.DataFrame:
        """Rates as a tidy frame."""
        return self.rates.read(conf_level)

    def read_contrasts(self, conf_level: float) -> pl.DataFrame | None:
        """Contrasts as a tidy frame; None where nothing is compared."""
        if self.contrasts is None:
            return None
        frame = self.contrasts.read(conf_level)
        net = pl.col("estimand") == "net_direction"  # neither side of it is the better one
        frame = frame.with_columns(pl.when(~net).then("verdict").alias("verdict"))
        parts = frame.partition_by("estimand", maintain_order=True)
        return pl.concat([with_adjusted(part, by_kind=False) for part in parts])

    def read(self, conf_level: float) -> pl.DataFrame:
        """Rates, then contrasts, with the columns of the glossary."""
        contrasts = self.read_contrasts(conf_level)
        rates = self.read_rates(conf_level)
        return rates if contrasts is None else pl.concat([rates, contrasts])


def errors_of(
    outcomes: Outcomes,
    *,
    estimands: Sequence[Estimand] | None,
    match: Match,
    weights: Weights,
    metric: str | None,
    options: Options,
) -> Errors:
    """Every measure by model, condition and stratum, and its contrasts, from one joint set of draws.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DesignError
        If an estimand cannot be used.
    """
    targets = targets_of(outcomes.design, estimands)
    rated: list[Plan] = []
    compared: list[Plan] = []
    notes: list[Note] = []
    for measure in outcomes.measures:
        design = outcomes.of(measure)
        rated.append(_named(rate_plan(design, weights=weights, metric=metric), measure))
        if measure not in COMPARED:
            continue
        paired = outcomes.paired(design)
        try:
            found = contrast_plan(paired, targets, match=match, weights=weights, metric=metric)
        except DesignError as error:
            notes.append(Note("nothing_matched", f"Of {measure} nothing is compared: {error}.", "caution"))
            continue
        if found is not None:
            compared.append(_named(found, measure))
    every_rate = joined(rated)
    every_contrast = joined(compared) if compared else None
    if options.interval not in ("auto", "jackknife-t"):  # replicates are kept
        width = len(every_rate.rows) + (len(every_contrast.rows) if every_contrast else 0)
        valid_resamples(options.n_resamples, width)
    rates, rate_notes = infer(every_rate, kind="mean", options=options)
    contrasts = None
    if every_contrast is not None:
        contrasts, contrast_notes = infer(every_contrast, kind="contrast", options=options, compared=False)
        notes += [*contrast_notes, _FAMILIES]
    return Errors(rates, contrasts, (*outcomes.notes, *rate_notes, *notes))


def _named(plan: Plan, measure: str) -> Plan:
    """A plan whose rows say which measure they are of."""
    rows = tuple(replace(row, identity=row.identity | {"estimand": measure}) for row in plan.rows)
    return replace(plan, rows=rows)


def joined(plans: Sequence[Plan]) -> Plan:
    """Several plans on the same clusters as one, so that one set of draws serves them all."""
    builder = TotalsBuilder(plans[0].totals.axes)
    blocks: list[Block] = []
    rows: list[Row] = []
    slots = 0
    for plan in plans:
        columns = plan.totals.cells.T
        places = np.array([builder.add(np.ascontiguousarray(column)) for column in columns], dtype=np.int64)
        for block in plan.blocks:
            blocks.append(
                replace(block, numerators=places[block.numerators], denominators=places[block.denominators])
            )
        rows += [row if row.slot is None else replace(row, slot=row.slot + slots) for row in plan.rows]
        slots += sum(len(block.groups) for block in plan.blocks)
    return Plan(tuple(blocks), builder.build(), tuple(rows))
