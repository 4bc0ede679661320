"""The models of a triage board in order, on the cases that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from triagestats.beside import Shares
from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.joint import Joint, best_first
from triagestats.labels import counted, listed
from triagestats.marginals import Scarce
from triagestats.results import Note
from triagestats.schema import Interval
from triagestats.triage.board_cases import Cases
from triagestats.triage.board_rates import Measures, measures_of, scarce_of
from triagestats.triage.policies import Tolerances
from triagestats.triage.text import in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

__all__ = ["RankedModels", "rank_models"]


@dataclass(frozen=True, slots=True, eq=False)
class RankedModels:
    """Models with rows: the ranked ones from the best, then the others."""

    models: tuple[str, ...]
    n_ranked: int
    cases: Cases
    measures: Measures
    joint: Joint
    contributes: Mask
    scarce: Scarce | None
    notes: tuple[Note, ...]
    flags: Shares | None = None


def rank_models(
    cases: Cases,
    tolerances: Tolerances,
    unranked: object,
    *,
    readable: bool,
    match: Literal["shared", "own"],
    interval: Interval,
    **asked: int,
) -> RankedModels:
    """Measures of the models on shared cases, in order."""
    notes: list[Note] = []
    ranked = _ranked(cases, unranked, notes, readable=readable)
    if match == "shared":
        cases = _shared(cases, ranked, notes)
    totals = cases.totals()
    totals = totals[totals[:, :2][:, :, ranked].sum(axis=(1, 2)) > 0]
    sums = totals[:, :2][:, :, ranked].sum(axis=0)
    for what, number in (("urgent", sums[0]), ("not urgent", sums[1])):
        if (number == 0).any():
            raise DesignError(f"no case is {what}: there is no rate to estimate; check the column `urgent`")
    if len(totals) < 2:
        raise DesignError("there is one cluster of cases, and an interval needs at least two")
    binary = bool((cases.n_answers <= 1).all())
    measures, joint = measures_of(totals, tolerances, binary=binary, interval=interval, **asked)
    places = np.flatnonzero(ranked)
    order = places[best_first(measures.distance[places], higher_is_better=False)]
    everyone = np.concatenate([order, np.flatnonzero(~ranked)])
    at_end = np.isin(measures.under, (0.0, 1.0)) | np.isin(measures.over, (0.0, 1.0))
    if still := [cases.models[place] for place in order if at_end[place]]:
        message = (
            f"Under or over rates of exactly 0 or 1, which no draw moves: {in_words(still)}. Intervals of "
            "their scores and ranks leave out how far these rates could be off."
        )
        notes.append(Note("boundary", message, "caution"))
    contributes = totals[:, :2].sum(axis=1) > 0
    (scarce,) = scarce_of((totals[:, :2] > 0).sum(axis=0)[:, ranked].min(axis=1, keepdims=True))
    if scarce is not None:
        notes.append(_few(scarce))
    return RankedModels(
        models=tuple(cases.models[place] for place in everyone),
        n_ranked=len(order),
        cases=cases.of_models(everyone),
        measures=measures.ordered(everyone),
        joint=joint.ordered(4 * len(everyone) + everyone),
        contributes=contributes[:, everyone],
        scarce=scarce,
        notes=tuple(notes),
    )


def _few(scarce: Scarce) -> Note:
    """A note on few urgent or few other cases."""
    held = f"{counted(scarce.n_clusters, 'cluster')} {'holds' if scarce.n_clusters == 1 else 'hold'}"
    if scarce.n_clusters < FEWEST_CLUSTERS:
        said = f"under {FEWEST_CLUSTERS} scores and kappas have no interval, and ranks no set and no verdict"
    else:
        said = f"under {FEW_CLUSTERS} intervals of scores and rank sets may cover less than they say"
    return Note("few_cases", f"{held} {scarce.what}: {said}.", "caution")


def _ranked(cases: Cases, unranked: object, notes: list[Note], *, readable: bool) -> Mask:
    """Which models are ranked: those not named, with some readable answer."""
    if isinstance(unranked, str) or not isinstance(unranked, Sequence):
        raise ArgumentTypeError(f"`unranked` must be a list of models; got {unranked!r}")
    if unknown := [name for name in unranked if name not in cases.models]:
        raise ArgumentError(
            f"`unranked` names {', '.join(map(repr, unknown))}; choose from the models {listed(cases.models)}"
        )
    named = np.array([model in unranked for model in cases.models])
    mute = (cases.readable == 0) & ~named
    if mute.any():
        names = in_words([model for model, is_mute in zip(cases.models, mute, strict=True) if is_mute])
        notes.append(
            Note("no_readable_answer", f"No answer could be read of {names}: not ranked.", "caution")
        )
    if (named | mute).all():
        why = (
            "no model has a readable answer" if readable or not named.all() else "`unranked` names all models"
        )
        raise DesignError(f"{why}: nothing is left to rank")
    ranked: Mask = ~(named | mute)
    return ranked


def _shared(cases: Cases, ranked: Mask, notes: list[Note]) -> Cases:
    """The cases that all ranked models answered."""
    kept: Mask = np.all(~np.isnan(cases.escalated[:, ranked]), axis=1)
    if not kept.any():
        number = (~np.isnan(cases.escalated)).sum(axis=0)
        fewest = np.flatnonzero(ranked)[np.argmin(number[ranked])]
        raise DesignError(
            f"no case was answered by all {int(ranked.sum()):,} ranked models; {cases.models[fewest]!r} "
            f"answered the fewest, {int(number[fewest]):,}. Name such models in `unranked`, or take "
            "match='own'"
        )
    if lost := int((~kept).sum()):
        message = f"Left out, as not all ranked models answered them: {lost:,} of {len(kept):,} cases."
        notes.append(Note("shared", message, "caution"))
    return cases.of_cases(kept)
