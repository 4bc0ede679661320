"""Which estimand, of which model, a scenario-level method is about."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from triagestats.blocks import Block, Target, contrast_block, contrast_targets
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Difference, Estimand, Mean
from triagestats.labels import label_of, listed
from triagestats.matching import keys_of
from triagestats.plan import targets_of
from triagestats.schema import Match, Weights
from triagestats.totals import TotalsBuilder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["EstimandArgument", "Measured", "measured", "model_code", "suggestion", "target_of"]

EstimandArgument = Estimand | tuple[str, str] | None


def target_of(design: Design, estimand: EstimandArgument) -> Target:
    """The estimand that was asked for; by default the only contrast, or the mean without conditions.

    Parameters
    ----------
    design
        The design of the table.
    estimand
        An estimand, or a pair (level, reference) for their difference.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is needed and not given, is no estimand, or names a level that the table does not have.
    DesignError
        If its levels never stand together in one combination of the other factors.
    """
    if estimand is None:
        targets = contrast_targets(design)
        if len(targets) == 1:
            return targets[0]
        if targets:
            pairs = [f"({target.estimand.levels[0]!r}, {target.estimand.levels[1]!r})" for target in targets]
            raise ArgumentError(
                f"`estimand` is needed, as the table has {len(targets)} contrasts; give a pair such as "
                f"{pairs[0]}, out of {', '.join(pairs[:6])}{' and more' if len(pairs) > 6 else ''}, or an "
                "estimand such as ts.Gap(...)"
            )
        estimand = Mean(design.levels[0].label)
    elif isinstance(estimand, tuple) and len(estimand) == 2:
        estimand = Difference(*estimand)
    if not isinstance(estimand, Estimand):
        raise ArgumentTypeError(
            "`estimand` must be an estimand such as ts.Gap(...), or a pair (level, reference); "
            f"got {estimand!r}"
        )
    return targets_of(design, [estimand])[-1]


def model_code(design: Design, model: object) -> int | None:
    """The code of a model; None for all models with equal weight.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If the table has no such model.
    """
    if model is None:
        return None
    if not isinstance(model, str | int | float):
        raise ArgumentTypeError(f"`model` must be the name of a model, or None to pool all; got {model!r}")
    if not design.has_models:
        raise ArgumentError("`model` cannot be given: the table has no model column")
    name = label_of(model)
    if name is None or name not in design.models:
        raise ArgumentError(
            f"`model` names {model!r}, which the table does not have{suggestion(str(name), design.models)}; "
            f"its models are {listed(design.models)}"
        )
    return design.models.index(name)


def suggestion(name: str, known: tuple[str, ...] | list[str]) -> str:
    """`; did you mean ...?` for a name that is nearly one of those known, else nothing."""
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Estimands on the totals of a table.

    Attributes
    ----------
    blocks
        One an estimand, for the pooled models and for each model.
    totals
        Sums by cluster, shape (G, K).
    """

    blocks: tuple[Block, ...]
    totals: Array


def measured(design: Design, targets: tuple[Target, ...], *, match: Match, weights: Weights) -> Measured:
    """Estimands on per-cluster totals.

    Raises
    ------
    DesignError
        If clusters cross, or no key is matched for an estimand.
    """
    if len(design.axes) > 1:
        raise DesignError(
            f"the clusters are {design.cluster_name}, which cross, and this method takes one cluster column; "
            "choose one with `table.with_cluster(...)`"
        )
    if not targets:
        return Measured((), np.empty((len(design.axes[0].labels), 0)))
    builder = TotalsBuilder(design.axes)
    keys = keys_of(design, match)
    blocks = []
    for target in targets:
        block = contrast_block(builder, design, keys, target, weights=weights, stratum=None)
        if block is None:
            raise DesignError(
                f"no key is scored at all levels of {target.estimand.label!r} with match={match!r}; "
                "match='cell' averages repetitions, match='scenario' also averages variants"
            )
        blocks.append(block)
    return Measured(tuple(blocks), builder.build().values)
