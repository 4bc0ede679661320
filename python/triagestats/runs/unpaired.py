"""What of two runs does not pair, in words."""

from __future__ import annotations

from typing import Final

import polars as pl

from triagestats.blocks import Target
from triagestats.design import Design
from triagestats.errors import DesignError
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.runs.alignment import SCORED, Alignment
from triagestats.schema import Match

__all__ = ["refuse_unpaired", "unpaired_notes", "unshared_notes"]

_WHAT: Final[dict[Match, str]] = {"row": "answers (item and epoch)", "cell": "items", "scenario": "items"}


def refuse_unpaired(keys: Alignment, names: tuple[str, str], match: Match) -> None:
    """Nothing pairs, or a run has no score.

    Raises
    ------
    DesignError
        If no key is scored in both runs.
    """
    if keys.n(True, True):
        return
    n_scored = [int(keys.counts.filter(pl.col(side) == SCORED)["n"].sum()) for side in ("a", "b")]
    said = ", ".join(f"{name} scored {n:,}" for name, n in zip(names, n_scored, strict=True))
    if not all(n_scored):
        fix = "a run without scores cannot be compared"
    elif match == "row":
        fix = "the runs share no item, or no epoch of one; `match='cell'` pairs items by the means of epochs"
    else:
        fix = "the runs share no item"
    raise DesignError(f"`a` and `b` have no answer that both scored ({said}): {fix}")


def unshared_notes(design: Design, target: Target) -> tuple[Note, ...]:
    """Answers under combinations of conditions that one run alone has."""
    shared = [code for columns in target.columns for code in columns]
    lost = design.responses.filter(~pl.col("level").is_in(shared))
    if lost.is_empty():
        return ()
    levels = [design.levels[code].label for code in lost["level"].unique().sort()]
    return (
        Note(
            "left_out",
            f"{lost.height:,} responses are left out, as the other run lacks their combination of "
            f"conditions, {listed(levels)}.",
            "caution",
        ),
    )


def unpaired_notes(
    design: Design, target: Target, keys: Alignment, names: tuple[str, str], *, match: Match
) -> tuple[Note, ...]:
    """What the runs do not both have, and that repetitions are averaged where they are."""
    notes: list[Note] = []
    what = _WHAT[match]
    for name, number, lone in zip(names, (keys.n_only_a, keys.n_only_b), keys.n_lone_epochs, strict=True):
        if number:
            said = f"{number:,} {what} are in {name} alone and do not pair"
            if lone:
                said += (
                    f", {lone:,} of them in epochs that the other run lacks of the item (match='cell' "
                    "pairs the means of all epochs)"
                )
            notes.append(Note("one_side", f"{said}.", "caution"))
    for name, number in zip(reversed(names), (keys.n(True, False), keys.n(False, True)), strict=True):
        if number:
            said = (
                f"{number:,} {what} have a score in one run and none in {name}, and do not pair: a run that "
                "fails where it would be wrong looks better than it is"
            )
            worst = "; `missing` has the worst cases" if design.is_rate else ""
            notes.append(Note("unscored_one_side", f"{said}{worst}.", "caution"))
    for name, number in zip(names, keys.n_within, strict=True):
        if number:
            said = (
                f"{number:,} {'answer' if number == 1 else 'answers'} of {name} "
                f"{'has' if number == 1 else 'have'} no score within items that others score: their means "
                "are of the others, and a run that fails where it would be wrong looks better than it is"
            )
            worst = "; `missing` has the worst cases" if design.is_rate else ""
            notes.append(Note("unscored_within", f"{said}{worst}.", "caution"))
    levels = {code for columns in target.columns for code in columns}
    if match != "row" and max(design.repetitions[code] for code in levels) > 1:
        notes.append(Note("repetitions", "Repetitions are averaged before they pair."))
    return tuple(notes)
