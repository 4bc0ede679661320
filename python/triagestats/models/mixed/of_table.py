"""The Bayesian mixed model of an analysis: which terms the design of a table asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats.design import Design
from triagestats.errors import TriagestatsError
from triagestats.models.mixed.bayes_result import BayesianMixedModel
from triagestats.models.mixed.fit import mixed
from triagestats.models.mixed.naming import written
from triagestats.models.mixed.random_parts import FEW_LEVELS
from triagestats.results import Note
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable

__all__ = ["bayes_of_table", "formula_of"]

_DRAWS: Final = 3_000
"""Of each chain: cheap for such tables, and few scenarios make some quantities mix slowly."""
_TUNE: Final = 1_500


@dataclass(frozen=True, slots=True)
class _Terms:
    """Terms of a formula as they are collected."""

    fixed: list[str]
    random: list[str]

    @property
    def text(self) -> str:
        return " + ".join([*(self.fixed or ["1"]), *(f"(1 | {grouping})" for grouping in self.random)])


def bayes_of_table(
    table: ResponseTable, design: Design, **settings: Any
) -> tuple[BayesianMixedModel | None, tuple[Note, ...]]:
    """The model of a table, or None with a note why there is none.

    Parameters
    ----------
    table
        The responses; scores are 0 and 1.
    design
        Their design, whose references the conditions are compared with.
    **settings
        Of the sampler and of the reading, as `mixed` takes them.
    """
    made = formula_of(table, design)
    if isinstance(made, Note):
        return None, (made,)
    formula, rows, notes = made
    try:
        fit = mixed(formula, rows, engine="bayes", draws=_DRAWS, tune=_TUNE, **settings)
    except TriagestatsError as error:
        return None, (*notes, Note("no_mixed", f"No mixed model: {error}.", "caution"))
    asked = Note("mixed", f"The mixed model is {formula}; ts.mixed fits others.")
    # What the diagnostics say stands in every row of the model.
    doubts = [
        note
        for note in fit.notes
        if note.level == "caution" and note.code != "diagnostics" and note not in table.notes
    ]
    return fit, (*notes, asked, *(replace(note, message=f"Mixed model: {note.message}") for note in doubts))


def formula_of(table: ResponseTable, design: Design) -> tuple[str, ResponseTable, tuple[Note, ...]] | Note:
    """The formula that a design asks for, and the table that it is of.

    Conditions are fixed, scenarios (in their clusters) random, and so is the effect of a condition in each
    scenario where it varies there and has several rows; models are random where there are five or more, else
    fixed, and have an effect in each scenario where it has several rows of one. Where several judges scored a
    response, the scores of the first judge are taken.
    """
    scored = table.frame.filter(pl.col("score").is_not_null())
    if not scored["score"].is_in([0.0, 1.0]).all():
        return Note(
            "no_mixed",
            "No mixed model: the scores are not all 0 or 1. ts.mixed has family='ordinal' and 'gaussian'.",
        )
    if scored["scenario"].n_unique() < FEW_LEVELS:
        return Note(
            "no_mixed",
            f"No mixed model: {scored['scenario'].n_unique()} scenarios say little of the variance of a "
            "population of scenarios.",
        )
    notes: tuple[Note, ...] = ()
    if len(table.judges) > 1 and _repeats(scored, _response_key(scored)):
        first = table.judges[0]
        scored = scored.filter(pl.col("judge").is_null() | (pl.col("judge") == first))
        message = (
            f"The mixed model is of the scores of {first}: means of judges are no 0 or 1. ts.mixed takes "
            "another with `judge=`, and all with (1 | response)."
        )
        notes = (Note("mixed_judge", message),)
    frame, terms = scored, _Terms([], [])
    clusters = [name for name in ("cluster_1", "cluster_2") if name in frame.columns]
    for name in clusters:
        if frame[name].n_unique() >= FEW_LEVELS and name not in _same_as(frame, "scenario", clusters):
            terms.random.append(name)
    terms.random.append("scenario")
    for factor in table.factors:
        named = factor.column if factor.name in frame.columns else factor.name
        terms.fixed.append(written(named))
        # An effect for each single row could not be told from the answer itself.
        if _varies(frame, factor.column, ["scenario"]) and _repeats(frame, ["scenario", factor.column]):
            terms.random.append(f"scenario:{written(named)}")
    if len(design.models) > 1:
        if len(design.models) < FEW_LEVELS:
            terms.fixed.append("model")
        else:
            terms.random.append("model")
        if _repeats(frame, ["scenario", "model"]) and _varies(frame, "model", ["scenario"]):
            terms.random.append("scenario:model")
    ordered = tuple(
        replace(factor, levels=(reference, *(level for level in factor.levels if level != reference)))
        for factor, reference in zip(table.factors, design.references, strict=True)
    )
    return f"score ~ {terms.text}", table.with_frame(scored, factors=ordered), notes


def _response_key(frame: pl.DataFrame) -> list[str]:
    return [role for role in KEY_ROLES if role in frame.columns and role != "judge"]


def _varies(frame: pl.DataFrame, name: str, within: list[str]) -> bool:
    """Whether a column varies within groups."""
    return frame.select(*within, name).n_unique() > frame.select(within).n_unique()


def _repeats(frame: pl.DataFrame, key: list[str]) -> bool:
    """Whether some combination has several rows."""
    return frame.height > frame.select(key).n_unique()


def _same_as(frame: pl.DataFrame, column: str, others: Sequence[str]) -> list[str]:
    """Those of the other columns whose levels are the same groups of rows."""
    size = frame[column].n_unique()
    return [
        name for name in others if frame[name].n_unique() == size == frame.select(column, name).n_unique()
    ]
