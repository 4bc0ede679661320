"""Victims of a gap: right in the control voice, wrong in a marked one; and what a method makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from triagestats.blocks import Block, Target
from triagestats.design import Design
from triagestats.estimands import Mean
from triagestats.matching import Keys
from triagestats.schema import Weights
from triagestats.totals import TotalsBuilder, cluster_codes
from triagestats.triage.contrasts import Named
from triagestats.triage.voices import Voices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["BROKEN", "RECOVERED", "VICTIMS_SCHEMA", "Transitions", "transitions_of", "victim_rows"]

RECOVERED: Final = "recovered"
BROKEN: Final = "broken"
VICTIMS_SCHEMA: Final = pl.Schema(
    dict.fromkeys(("method", "model", "voice", "stratum"), pl.String())
    | dict.fromkeys(
        ("victims", "recovered", "recovered_share", "right", "broken", "broken_share"), pl.Float64()
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """Counts of pairs (item, marked voice), one row a matched key.

    Attributes
    ----------
    keys
        The matched keys.
    victims, recovered
        Right in the control and wrong in the marked voice at the baseline; of these, right with the method.
        Shape (n, marked voices).
    right, broken
        Right in the marked voice at the baseline; of these, wrong with the method.
    """

    keys: Keys
    victims: Array
    recovered: Array
    right: Array
    broken: Array

    def block(
        self, builder: TotalsBuilder, design: Design, share: str, *, weights: Weights, stratum: str | None
    ) -> Block | None:
        """The share recovered or broken, for all models and by model; None where nothing could be.

        With scenario weights that of all models is the plain mean of the models' shares, with row weights
        the share of all pairs.
        """
        part, whole = (self.recovered, self.victims) if share == RECOVERED else (self.broken, self.right)
        n_models = len(design.models)
        size = int(np.prod([len(axis.labels) for axis in design.axes]))
        place = cluster_codes(self.keys, design.axes) * n_models + self.keys.model
        sums = [
            np.bincount(place, weights=values.sum(axis=1), minlength=size * n_models).reshape(size, n_models)
            for values in (part, whole)
        ]
        present = [model for model in range(n_models) if sums[1][:, model].any()]
        if not present:
            return None
        columns = [
            tuple(builder.add(np.ascontiguousarray(values[:, model])) for values in sums) for model in present
        ]
        groups = [np.arange(len(present))]
        shares = [np.full(len(present), 1 / len(present))]
        if weights == "row":
            columns.append(tuple(builder.add(np.ascontiguousarray(values.sum(axis=1))) for values in sums))
            groups, shares = [np.array([len(present)])], [np.ones(1)]
        models: list[int | None] = [None]
        if design.has_models:
            models += present
            groups += [np.array([place]) for place in range(len(present))]
            shares += [np.ones(1)] * len(present)
        pairs = [int((whole[_of(self.keys, model)] > 0).sum()) for model in models]
        return Block(
            target=Target(Named(share, share, (share,), Mean(share)), None, ((0,),)),
            stratum=stratum,
            models=tuple(models),
            numerators=np.array([[part] for part, _ in columns]),
            denominators=np.array([whole for _, whole in columns]),
            groups=tuple(groups),
            shares=tuple(shares),
            n_rows=tuple(pairs),
            n_keys=tuple(pairs),
            is_rate=True,
        )


def transitions_of(keys: Sequence[Keys]) -> Transitions:
    """Transitions of matched keys, whose levels are the voices at the baseline, then with the method.

    With c, m and m' the scores in the control voice, in a marked one and there with the method, a pair counts
    c (1 - m) as a victim and c (1 - m) m' as recovered, m as right and m (1 - m') as broken: 0 or 1 for
    scores of 0 and 1. Means of repetitions are chances, and a pair counts its expected share.
    """
    names = ("unit", "model", "cell", "values", "counts")
    whole = Keys(*(np.concatenate([getattr(part, name) for part in keys]) for name in names))
    n_voices = whole.values.shape[1] // 2
    control = whole.values[:, [0]]
    before, after = whole.values[:, 1:n_voices], whole.values[:, n_voices + 1 :]
    victims = control * (1 - before)
    return Transitions(whole, victims, victims * after, before, before * (1 - after))


def victim_rows(
    found: Transitions,
    design: Design,
    voices: Voices,
    method: str,
    stratum: str | None,
    *,
    by_model: bool,
) -> Iterator[dict[str, object]]:
    """Counts by model and marked voice; null is all of them."""
    single = np.unique(found.keys.model).tolist() if by_model and design.has_models else []
    for model in (None, *single):
        rows = _of(found.keys, model)
        for voice in (None, *voices.marked):
            columns = slice(None) if voice is None else [voices.marked.index(voice)]
            victims, recovered, right, broken = (
                float(values[rows][:, columns].sum())
                for values in (found.victims, found.recovered, found.right, found.broken)
            )
            yield {
                "method": method,
                "model": None if model is None else design.models[model],
                "voice": voice,
                "stratum": stratum,
                "victims": victims,
                "recovered": recovered,
                "recovered_share": recovered / victims if victims else None,
                "right": right,
                "broken": broken,
                "broken_share": broken / right if right else None,
            }


def _of(keys: Keys, model: int | None) -> NDArray[np.bool_]:
    return np.ones(len(keys.model), dtype=bool) if model is None else keys.model == model
