"""Correlations of quantities that share scores: what is left of them without the shared noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.blocks import Block, Target
from triagestats.design import Design
from triagestats.estimands import Estimand, Function, Mean
from triagestats.models.association import Correlator, Tested, orders
from triagestats.models.targets import Measured, measured
from triagestats.plan import targets_of
from triagestats.schema import Match, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["SPLITS", "by_model", "oldham", "shared_levels", "split_half"]

SPLITS: Final = 200
"""Random halves of the clusters that are averaged."""


def by_model(design: Design, block: Block, totals: Array) -> Array:
    """The estimate of each model from totals (..., K), shape (..., M); NaN where a model has no data."""
    estimates = block.evaluate(totals)
    result = np.full((*estimates.shape[:-1], len(design.models)), np.nan)
    for place, model in enumerate(block.models):
        if model is not None:
            result[..., model] = estimates[..., place]
    return result


def shared_levels(design: Design, targets: tuple[Target, Target]) -> list[str]:
    """Joint levels whose scores are in both quantities."""
    first, second = ({code for row in target.columns for code in row} for target in targets)
    return [design.levels[code].label for code in sorted(first & second)]


def split_half(
    design: Design, found: Measured, usable: NDArray[np.bool_], correlator: Correlator
) -> dict[str, Any] | None:
    """The correlation of x from one half of the clusters with y from the other, over random halves.

    None with fewer than four clusters, or where no half has a value for every model.
    """
    size = len(found.totals)
    if size < 4:
        return None
    order = np.concatenate(orders(size, SPLITS, correlator.seed))
    chosen = np.zeros((SPLITS, size))
    np.put_along_axis(chosen, order[:, : size // 2], 1.0, axis=1)
    halves = chosen @ found.totals
    rest = found.totals.sum(axis=0) - halves
    x, y = (
        np.concatenate([by_model(design, block, sums)[:, usable] for sums in sides])
        for block, sides in zip(found.blocks, ((halves, rest), (rest, halves)), strict=True)
    )
    return _plain(correlator.of_halves(x, y), n_splits=SPLITS)


def oldham(
    design: Design,
    targets: tuple[Target, Target],
    usable: NDArray[np.bool_],
    correlator: Correlator,
    *,
    match: Match,
    weights: Weights,
) -> dict[str, Any] | None:
    """A change with the mean of its two sides; None unless one quantity is a change and the other a side."""
    for change, baseline in (targets, targets[::-1]):
        middle = _middle(change.estimand, baseline.estimand)
        if middle is None:
            continue
        pair = (change, targets_of(design, [middle])[-1])
        found = measured(design, pair, match=match, weights=weights)
        sums = found.totals.sum(axis=0)
        y, x = (by_model(design, block, sums)[usable] for block in found.blocks)
        if np.isfinite(x).all() and np.isfinite(y).all():
            return _plain(correlator.of(x, y), change=change.estimand.label)
    return None


def _middle(change: Estimand, baseline: Estimand) -> Function | None:
    """The mean of the two sides of a change whose one side is the baseline."""
    if change.coefficients is None or baseline.coefficients is None:
        return None
    parts = dict(zip(change.levels, change.coefficients, strict=True))
    sides = [{level: sign * c for level, c in parts.items() if sign * c > 0} for sign in (1, -1)]
    base = dict(zip(baseline.levels, baseline.coefficients, strict=True))
    if not all(abs(sum(side.values()) - 1) < 1e-9 for side in sides) or base not in sides:
        return None
    share = np.abs(np.array(change.coefficients)) / 2
    return Function(lambda v: v @ share, [Mean(level) for level in change.levels], name="mean of both sides")


def _plain(tested: Tested, **more: Any) -> dict[str, Any] | None:
    if np.isnan(tested.estimate):
        return None
    p_value = None if np.isnan(tested.p_value) else tested.p_value
    return {"estimate": tested.estimate, "p_value": p_value, **more}
