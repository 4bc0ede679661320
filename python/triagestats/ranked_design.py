"""The models of a design ranked on the scenarios that all of them were scored on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from triagestats.beside import Extra, Shares
from triagestats.blocks import Target, custom_target
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Estimand, Mean
from triagestats.joint import Means, best_first, marginals_of
from triagestats.labels import counted, listed
from triagestats.matching import keys_of
from triagestats.results import Note
from triagestats.standings import Leaderboard
from triagestats.triage.text import in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["Sharing", "ranked_models", "ranking_of"]

Sharing = Literal["shared", "own"]


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """The models of a design with the sums that they are ranked on.

    Attributes
    ----------
    means
        Sums by cluster; clusters without any shared scenario are left out.
    n_rows
        Answers behind each model, shape (M,).
    n_scenarios
        Scenarios that are used.
    notes
        What was left out.
    """

    means: Means
    n_rows: Array
    n_scenarios: int
    notes: tuple[Note, ...]


def ranked_models(models: Sequence[str], unranked: object) -> Mask:
    """Which models are ranked.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `unranked` is no list, or names something else.
    """
    if isinstance(unranked, str) or not isinstance(unranked, Sequence):
        raise ArgumentTypeError(f"`unranked` must be a list of models; got {unranked!r}")
    if unknown := [name for name in unranked if name not in models]:
        raise ArgumentError(
            f"`unranked` names {', '.join(map(repr, unknown))}; choose from the models {listed(models)}"
        )
    return np.array([model not in unranked for model in models], dtype=bool)


def ranking_or_note(
    design: Design, *, higher_is_better: bool, conf_level: float, n_resamples: int, seed: int, n_threads: int
) -> tuple[Leaderboard | None, tuple[Note, ...]]:
    """The leaderboard of a design with two models or more; None, and why, where they cannot be ranked."""
    if len(design.models) < 2:
        return None, ()
    try:
        found = ranking_of(
            design,
            higher_is_better=higher_is_better,
            conf_level=conf_level,
            n_resamples=n_resamples,
            seed=seed,
            n_threads=n_threads,
        )
    except (ArgumentError, DesignError) as error:
        return None, (Note("no_ranking", f"The models are not ranked: {error}."),)
    return found, ()


def ranking_of(
    design: Design,
    *,
    estimand: Estimand | None = None,
    match: Sharing = "shared",
    unranked: Sequence[str] = (),
    higher_is_better: bool = True,
    extras: tuple[Extra, ...] = (),
    shares: Shares | None = None,
    conf_level: float,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Leaderboard | None:
    """The leaderboard of a design; None where it has no column of models.

    Parameters
    ----------
    estimand
        What the models are ranked by; the mean over conditions where not given.
    extras, shares
        Rows and flags beside the ranking.
    match, unranked, higher_is_better, conf_level, n_resamples, seed, n_threads
        As in `leaderboard`.

    Raises
    ------
    ArgumentError, DesignError
        As `leaderboard`.
    """
    if not design.has_models:
        return None
    if len(design.axes) > 1:
        raise DesignError(
            "a ranking is resampled by one cluster column, and the table has two that cross, "
            f"{design.cluster_name}; choose one with `table.with_cluster(...)`"
        )
    ranked = ranked_models(design.models, unranked)
    field = _field_of(design, estimand, ranked, match)
    means = field.means
    joint = means.joint(n_resamples=n_resamples, seed=seed, n_threads=n_threads)
    able = ranked & np.isfinite(joint.estimate)
    places = np.flatnonzero(able)
    order = places[best_first(joint.estimate[places], higher_is_better=higher_is_better)]
    others = np.flatnonzero(~able)
    everyone = np.concatenate([order, others])
    linear = isinstance(means.estimand, Mean)
    lost = [design.models[place] for place in np.flatnonzero(ranked & ~able)]
    undefined = Note("unranked", f"The metric is undefined for {in_words(lost)}: not ranked.", "caution")
    return Leaderboard(
        metric=means.estimand.name if estimand is not None else "rate" if design.is_rate else "mean",
        models=tuple(design.models[place] for place in order),
        unranked=tuple(design.models[place] for place in others),
        marginals=marginals_of(joint, everyone, means, field.n_rows, is_rate=design.is_rate and linear),
        contest=joint.contest(
            order,
            means.contributes[:, order],
            higher_is_better=higher_is_better,
            linear=linear and match == "shared",
            smooth=means.estimand.smooth,
        )
        if len(order)
        else None,
        extras=extras,
        flags=shares,
        n_scenarios=field.n_scenarios,
        higher_is_better=higher_is_better,
        conf_level=conf_level,
        n_resamples=n_resamples,
        seed=seed,
        notes=(
            *(note for note in design.notes if note.code != "reference"),  # no level is compared with another
            *field.notes,
            *((undefined,) if lost else ()),
        ),
    )


def _field_of(design: Design, estimand: Estimand | None, ranked: Mask, match: Sharing) -> _Field:
    """Sums of the scenarios that count; variants of a scenario are averaged first, those present.

    Raises
    ------
    ArgumentError
        If the estimand names a level that the design does not have.
    DesignError
        If no scenario is scored for all ranked models.
    """
    target = _target(design, estimand)
    keys = keys_of(design, "scenario")
    shape = (design.n_units, len(design.models), len(design.levels))
    values, counts = np.full(shape, np.nan), np.zeros(shape)
    values[keys.unit, keys.model] = keys.values
    counts[keys.unit, keys.model] = keys.counts
    (axis,) = design.axes
    scores, sizes, dropped = [], [], []
    n_rows = np.zeros(shape[1])
    planned, used_somewhere = (np.zeros(shape[0], dtype=bool) for _ in range(2))
    uneven = False
    for columns in target.columns:
        part = values[:, :, list(columns)]
        used = ~np.isnan(part).any(axis=2)
        planned |= used[:, ranked].any(axis=1)
        if match == "shared":
            used &= used[:, ranked].all(axis=1, keepdims=True)
        if not used[:, ranked].any():
            dropped.append(columns)
            continue
        uneven |= bool((used[:, ranked].any(axis=1) != used[:, ranked].all(axis=1)).any())
        used_somewhere |= used[:, ranked].any(axis=1)
        n_rows += np.where(used[:, :, None], counts[:, :, list(columns)], 0).sum(axis=(0, 2))
        scores.append(_by_cluster(np.where(used[:, :, None], part, 0.0), axis.codes, len(axis.labels)))
        sizes.append(_by_cluster(used.astype(np.float64), axis.codes, len(axis.labels)))
    if not scores:
        raise DesignError(_nothing_shared(design, values, ranked))
    kept = np.any([part[:, ranked].any(axis=1) for part in sizes], axis=0)
    if kept.sum() < 2:
        raise DesignError("the shared scenarios lie in one cluster, and an interval needs at least two")
    means = Means(target.estimand, tuple(part[kept] for part in scores), tuple(part[kept] for part in sizes))
    shared = int(used_somewhere.sum())
    notes = _notes(design, int(planned.sum()) - shared, dropped, uneven=uneven)
    return _Field(means, n_rows, shared, notes)


def _target(design: Design, estimand: Estimand | None) -> Target:
    """What is averaged: every joint level, or the combinations at which the levels of an estimand stand."""
    if estimand is None:
        return Target(Mean("level"), None, tuple((code,) for code in range(len(design.levels))))
    target = custom_target(design, estimand)
    if target is None or not target.columns:
        known = {factor.name: list(factor.levels) for factor in design.factors}
        raise ArgumentError(
            f"`metric` {estimand.label!r} needs the levels {list(estimand.levels)} of one condition; the "
            f"levels are {known or 'none, as the table has no condition column'}"
        )
    return target


def _by_cluster(values: Array, codes: NDArray[np.int64], size: int) -> Array:
    """Sums of (units, ...) by cluster."""
    if len(values) == size and (codes == np.arange(size)).all():
        return values
    total = np.zeros((size, *values.shape[1:]))
    np.add.at(total, codes, values)
    return total


def _nothing_shared(design: Design, values: Array, ranked: Mask) -> str:
    """Why no scenario is scored for all models."""
    if not ranked.any():
        return "`unranked` names all models: nothing is left to rank"
    scored = (~np.isnan(values)).any(axis=2).sum(axis=0)
    places = np.flatnonzero(ranked)
    fewest = places[np.argmin(scored[places])]
    return (
        f"no scenario is scored for all {len(places):,} ranked models; {design.models[fewest]!r} has the "
        f"fewest, {int(scored[fewest]):,}. Name such models in `unranked`, or use match='own'"
    )


def _notes(
    design: Design, lost: int, dropped: Sequence[tuple[int, ...]], *, uneven: bool
) -> tuple[Note, ...]:
    notes = []
    if uneven:
        message = (
            "Each model is estimated on its own scenarios: the models were not all scored on the same ones."
        )
        notes.append(Note("own_scenarios", message, "caution"))
    if lost:
        verb = "is" if lost == 1 else "are"
        message = f"{counted(lost, 'scenario')} {verb} not scored for all ranked models, and left out."
        notes.append(Note("shared", message, "caution"))
    if dropped:
        names = in_words([", ".join(design.levels[code].label for code in columns) for columns in dropped])
        message = f"Conditions at which no scenario is scored for all ranked models are left out: {names}."
        notes.append(Note("condition_dropped", message, "caution"))
    return tuple(notes)
