"""Estimands compiled onto totals: which columns each reads, for which models, and who pools whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from triagestats.design import Design
from triagestats.errors import ArgumentError
from triagestats.estimands import Difference, Estimand, Mean
from triagestats.layout import Layout
from triagestats.matching import Keys
from triagestats.schema import Weights
from triagestats.totals import Matched, Sums, TotalsBuilder, matched_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Block",
    "Target",
    "block_of",
    "contrast_block",
    "contrast_targets",
    "custom_target",
    "rate_block",
]


@dataclass(frozen=True, slots=True)
class Target:
    """An estimand at joint condition levels.

    Attributes
    ----------
    estimand
        What is estimated.
    term
        The factor whose levels it names; None for joint levels.
    columns
        Codes of the joint levels that it reads, one row for each combination of the other factors,
        over which it is averaged with equal weight. Shape (O, L).
    """

    estimand: Estimand
    term: str | None
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One estimand on totals, for the pooled models and for each model.

    With C combinations (model x other factors), L levels and E estimates: means are
    `totals[numerators] / totals[denominators]`, shape (C, L); the estimand turns them into C values;
    an estimate is the weighted mean of the values of its group.

    Attributes
    ----------
    target
        The estimand and its levels.
    stratum
        The subgroup, None for all.
    models
        Model code of each estimate; None for the pooled one.
    numerators, denominators
        Columns of the totals, shapes (C, L) and (C,).
    groups, shares
        Combinations that each estimate averages, and the weight of each; weights sum to 1.
    n_rows
        Responses behind each estimate; for a contrast those on the side that has fewer.
    n_keys
        Matched keys behind each estimate.
    is_rate
        Whether the estimates are means, at one level, of scores between 0 and 1.
    """

    target: Target
    stratum: str | None
    models: tuple[int | None, ...]
    numerators: NDArray[np.int64]
    denominators: NDArray[np.int64]
    groups: tuple[NDArray[np.int64], ...]
    shares: tuple[NDArray[np.float64], ...]
    n_rows: tuple[int, ...]
    n_keys: tuple[int, ...]
    is_rate: bool = False

    def evaluate(self, totals: NDArray[np.float64], *, drop_empty: bool = False) -> NDArray[np.float64]:
        """Estimates from totals of shape (..., K), shape (..., E).

        Where a combination has no weight its groups are NaN; with `drop_empty` they are averaged over
        their other combinations, as when models are the sample and one is left out.
        """
        return self.of_sums(
            totals[..., self.numerators], totals[..., self.denominators], drop_empty=drop_empty
        )

    def of_sums(
        self, scores: NDArray[np.float64], weights: NDArray[np.float64], *, drop_empty: bool = False
    ) -> NDArray[np.float64]:
        """Estimates from sums of scores (..., C, L) and of weights (..., C)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.target.estimand.evaluate(scores / weights[..., None])
            result = np.empty((*values.shape[:-1], len(self.groups)))
            # One after the other: NumPy's own sums take an order that depends on shape and layout,
            # and the last bit with it.
            for place, (group, shares) in enumerate(zip(self.groups, self.shares, strict=True)):
                total: NDArray[np.float64] | float = 0.0
                whole: NDArray[np.float64] | float = 0.0
                for combination, share in zip(group, shares, strict=True):
                    term = values[..., combination] * share
                    if drop_empty:
                        present = weights[..., combination] > 0
                        term, whole = np.where(present, term, 0.0), whole + present * share
                    else:
                        whole = whole + share
                    total = total + term
                result[..., place] = np.divide(total, whole)
        return result

    def only(self, place: int) -> Block:
        """The block of one of the estimates."""
        group = self.groups[place]
        return replace(
            self,
            models=(self.models[place],),
            numerators=self.numerators[group],
            denominators=self.denominators[group],
            groups=(np.arange(len(group)),),
            shares=(self.shares[place],),
            n_rows=(self.n_rows[place],),
            n_keys=(self.n_keys[place],),
        )

    def by_label(self, place: int, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each cluster of totals (G, K) adds to the level means of one estimate, shape (G, L).

        Their sums over clusters, times the coefficients of a linear estimand, are the estimate.
        """
        group = self.groups[place]
        weights = totals[:, self.denominators[group]].sum(axis=0)
        parts: NDArray[np.float64] = (
            totals[:, self.numerators[group]] * (self.shares[place] / weights)[:, None]
        ).sum(axis=1)
        return parts

    def is_sum(self, place: int, totals: NDArray[np.float64]) -> bool:
        """Whether one estimate is a sum over clusters under resampling too: all weigh the same in it."""
        weights = totals[:, self.denominators[self.groups[place]]]
        linear = self.target.estimand.coefficients is not None
        return linear and bool((weights == weights[:1]).all())

    def contributes(self, totals: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each cluster of totals (G, K) carries data for each estimate, shape (G, E)."""
        present = totals[:, self.denominators] > 0
        return np.stack([present[:, group].any(axis=1) for group in self.groups], axis=-1)

    def magnitude(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Largest absolute mean that each estimate reads, from sums (K,); shape (E,)."""
        means = np.abs(sums[self.numerators] / sums[self.denominators][:, None])
        return np.array([means[group].max() for group in self.groups])

    def influence(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """First-order influence of each cluster on a mean, shape (G, E); for estimands of one level."""
        scores = totals[:, self.numerators[:, 0]]
        weights = totals[:, self.denominators]
        sums = weights.sum(axis=0)
        psi = (scores - scores.sum(axis=0) / sums * weights) / sums
        return np.stack(
            [
                (psi[:, group] * share).sum(axis=1)
                for group, share in zip(self.groups, self.shares, strict=True)
            ],
            axis=-1,
        )


def contrast_targets(design: Layout) -> tuple[Target, ...]:
    """Every level against the reference of its factor, averaged over the other factors."""
    targets = []
    for position, (factor, reference) in enumerate(zip(design.factors, design.references, strict=True)):
        for level in factor.levels:
            if level != reference:
                targets.append(_target(design, Difference(level, reference), position))
    return tuple(target for target in targets if target.columns)


def custom_target(design: Layout, estimand: Estimand) -> Target | None:
    """The target of an estimand on joint levels or on the levels of one factor; None for other levels.

    Raises
    ------
    ArgumentError
        If several factors have these levels.
    """
    labels = {level.label: code for code, level in enumerate(design.levels)}
    if all(level in labels for level in estimand.levels):
        term = design.factors[0].name if len(design.factors) == 1 else None
        return Target(estimand, term, (tuple(labels[level] for level in estimand.levels),))
    fitting = [
        position
        for position, factor in enumerate(design.factors)
        if all(level in factor.levels for level in estimand.levels)
    ]
    if len(fitting) > 1:
        raise ArgumentError(
            f"estimand {estimand.label!r} fits the condition columns "
            f"{[design.factors[position].name for position in fitting]}; name joint levels instead, such as "
            f"{design.levels[0].label!r}"
        )
    return _target(design, estimand, fitting[0]) if fitting else None


def _target(design: Layout, estimand: Estimand, position: int) -> Target:
    """Columns of an estimand on one factor, for each combination of the others that has all its levels."""
    code = {level.parts: index for index, level in enumerate(design.levels)}
    others = dict.fromkeys((*level.parts[:position], *level.parts[position + 1 :]) for level in design.levels)
    columns = []
    for other in others:
        wanted = [(*other[:position], level, *other[position:]) for level in estimand.levels]
        if all(parts in code for parts in wanted):
            columns.append(tuple(code[parts] for parts in wanted))
    return Target(estimand, design.factors[position].name, tuple(columns))


def rate_block(
    builder: TotalsBuilder,
    layout: Layout,
    matched: Matched,
    level: int,
    *,
    weights: Weights,
    stratum: str | None,
) -> Block | None:
    """Mean scores at one joint level, pooled and by model; None where nothing is scored."""
    target = Target(Mean(layout.levels[level].label), None, ((level,),))
    return block_of(builder, layout, target, (matched,), weights=weights, stratum=stratum)


def contrast_block(
    builder: TotalsBuilder,
    design: Design,
    keys: Keys,
    target: Target,
    *,
    weights: Weights,
    stratum: str | None,
) -> Block | None:
    """An estimand over the keys matched for it, pooled and by model; None where no key is matched."""
    matched = [
        matched_sums(keys.matched(list(columns)), design.axes, len(design.models), weights=weights)
        for columns in target.columns
    ]
    return block_of(builder, design, target, matched, weights=weights, stratum=stratum)


def block_of(
    builder: TotalsBuilder,
    layout: Layout,
    target: Target,
    matched: Sequence[Matched],
    *,
    weights: Weights,
    stratum: str | None,
) -> Block | None:
    """An estimand on the sums of the keys matched for each of its combinations; None where there are none."""
    n_models = len(layout.models)
    sums = [part.sums for part in matched]
    pooled_by_sum = weights == "row"
    if pooled_by_sum and sums:
        sums = [Sums(np.sum([s.scores for s in sums], axis=0), np.sum([s.weights for s in sums], axis=0))]
    numerators: list[list[int]] = []
    denominators: list[int] = []
    of_model: dict[int, list[int]] = {model: [] for model in range(n_models)}

    def add(scores: NDArray[np.float64], weight: NDArray[np.float64]) -> int:
        numerators.append([builder.add(np.ascontiguousarray(column)) for column in scores.T])
        denominators.append(builder.add(np.ascontiguousarray(weight)))
        return len(denominators) - 1

    for part in sums:
        for model in range(n_models):
            if part.weights[:, model].any():
                of_model[model].append(add(part.scores[:, model], part.weights[:, model]))
    present = [model for model, places in of_model.items() if places]
    if not present:
        return None
    everywhere = [place for model in present for place in of_model[model]]
    share = [1 / (len(present) * len(of_model[model])) for model in present for _ in of_model[model]]
    if pooled_by_sum:
        everywhere, share = [add(sums[0].scores.sum(axis=1), sums[0].weights.sum(axis=1))], [1.0]
    models: list[int | None] = [None]
    groups, shares = [np.array(everywhere)], [np.array(share)]
    if layout.has_models:
        models += present
        groups += [np.array(of_model[model]) for model in present]
        shares += [np.full(len(of_model[model]), 1 / len(of_model[model])) for model in present]
    return Block(
        target=target,
        stratum=stratum,
        models=tuple(models),
        numerators=np.array(numerators),
        denominators=np.array(denominators),
        groups=tuple(groups),
        shares=tuple(shares),
        n_rows=tuple(sum(int(_of(part.n_rows, model).min()) for part in matched) for model in models),
        n_keys=tuple(sum(int(_of(part.n_keys, model)) for part in matched) for model in models),
        is_rate=layout.is_rate and len(target.estimand.levels) == 1,
    )


def _of(counts: NDArray[np.int64], model: int | None) -> NDArray[np.int64]:
    """Counts of shape (M, ...) of one model, or of all together."""
    chosen: NDArray[np.int64] = counts.sum(axis=0) if model is None else counts[model]
    return chosen
