"""Notes on a comparison of gaps: what is missing, what verdicts read, and how models weigh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from triagestats.design import Design
from triagestats.inference import Family
from triagestats.labels import counted
from triagestats.results import Note
from triagestats.schema import Weights
from triagestats.triage.frames import withheld_notes
from triagestats.triage.gap_plan import REDUCTION
from triagestats.triage.voices import Voices, unscored

__all__ = ["gap_notes"]

_ANCHORING: Final = Note(
    "anchoring_gap",
    "The anchoring gap is given by model only: a minimum of noisy means is too low, so that it is biased up, "
    "and averages keep the bias; ts.anchoring_null estimates it.",
)
_VERDICTS: Final = Note(
    "verdicts",
    "Verdicts on gap_reduction read its interval and those of the changes: levels up, levels down, mixed "
    "(the gap shrinks without either, grows, or is below 0 at the baseline), undecided (its interval holds "
    "0). p-values flip, by cluster, which method is the baseline.",
)
_NO_VICTIMS: Final = Note(
    "no_victims",
    "Scores do not lie between 0 and 1, so that no answer is right or wrong: there are no victims.",
    "caution",
)
_WEIGHTS: Final[dict[Weights, Note]] = {
    "scenario": Note(
        "weights",
        "Every model weighs the same in the estimates of all models; relative ones are ratios of these.",
    ),
    "row": Note("weights", "Every matched key weighs the same, over all models."),
}


def gap_notes(
    family: Family, gaps: pl.DataFrame, design: Design, voices: Voices, weights: Weights
) -> Iterator[Note]:
    """The notes on the estimates of a family and their frame."""
    yield from _missing_notes(family, design, voices)
    yield from withheld_notes(gaps)
    yield from _turned_notes(gaps, voices.baseline)
    yield from (_WEIGHTS[weights], _VERDICTS, _ANCHORING)
    yield from _victim_notes(len(design.models), weights) if design.is_rate else (_NO_VICTIMS,)


def _victim_notes(n_models: int, weights: Weights) -> tuple[Note, ...]:
    """Why shares of counted victims are not those of all models."""
    if n_models == 1 or weights == "row":
        return ()
    message = (
        "recovered and broken of all models are plain means of the models' shares; the shares in `victims` "
        "are of the pairs of all models, so that a model with more victims weighs more."
    )
    return (Note("victims", message),)


def _missing_notes(family: Family, design: Design, voices: Voices) -> list[Note]:
    """Models that are in no estimate of a method, and keys that are not scored in all voices."""
    notes = []
    for row in family.rows:
        identity = row.identity
        if identity["estimand"] != REDUCTION or identity["stratum"] is not None:
            continue
        if identity["model"] is None and identity.get("n_missing"):
            message = (
                f"{counted(identity['n_missing'], 'planned key')} "
                f"{'is' if identity['n_missing'] == 1 else 'are'} not scored in all voices with both the "
                f"baseline and {identity['term']}, and in no estimate of it."
            )
            notes.append(Note("incomplete_keys", message, "caution"))
        elif row.slot is None and identity["model"] is not None:
            lost = unscored(design, voices, identity["term"], design.models.index(identity["model"]))
            why = f"no answer of it {lost} has a score" if lost else row.reason
            message = f"{identity['model']} is in no estimate of {identity['term']}: {why}."
            notes.append(Note("model_left_out", message, "caution"))
    return notes


def _turned_notes(gaps: pl.DataFrame, baseline: str) -> list[Note]:
    """A baseline gap below 0, where the marked voices do better than the control."""
    whole = (pl.col("estimand") == "gap") & pl.col("model").is_null() & pl.col("stratum").is_null()
    turned = gaps.filter(whole & (pl.col("condition") == baseline) & (pl.col("conf_high") < 0))
    if turned.is_empty():
        return []
    message = (
        "At the baseline the marked voices do better than the control: a positive gap_reduction then makes "
        "the distance between them larger."
    )
    return [Note("turned_gap", message, "caution")]
