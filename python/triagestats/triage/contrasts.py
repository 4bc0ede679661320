"""Linear contrasts of condition levels, functions of pooled means, and sign flips of both by cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.blocks import Block, Target
from triagestats.estimands import Difference, Estimand
from triagestats.evidence import gather_evidence
from triagestats.inference import Family, Options
from triagestats.permutation import Permuted, block_tests
from triagestats.plan import Plan
from triagestats.results import Note
from triagestats.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Contrast", "Named", "family_of", "of_pooled_means"]

_CANCELLED: Final = 1e-14
"""A sum below this share of its largest term is 0."""
_FLIPPED: Final = Target(Difference("as it is", "flipped"), None, ((0, 1),))


@dataclass(frozen=True, slots=True)
class Contrast(Estimand):
    """`sum of weight * mean(level)` over the keys scored at all levels.

    A level may have the weight 0: it is not read, and yet keys must be scored there.
    """

    called: str
    text: str
    weights: Mapping[str, float]

    @property
    def name(self) -> str:
        return self.called

    @property
    def label(self) -> str:
        return self.text

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def coefficients(self) -> tuple[float, ...]:
        return tuple(self.weights.values())

    @property
    def null(self) -> float | None:
        return 0.0 if abs(sum(self.coefficients)) < ROUNDING else None

    def evaluate(self, means: Array) -> Array:
        total: Array = np.zeros(means.shape[:-1])
        largest: Array = np.zeros(means.shape[:-1])
        for place, weight in enumerate(self.coefficients):
            if weight:
                term = means[..., place] * weight
                total, largest = total + term, np.maximum(largest, np.abs(term))
        return np.where(np.abs(total) <= _CANCELLED * largest, 0.0, total)  # what cancels leaves rounding


@dataclass(frozen=True, slots=True)
class Named(Estimand):
    """An estimand under another name, on keys scored at all `matched` levels: more than it may read."""

    called: str
    text: str
    matched: tuple[str, ...]
    inner: Estimand

    @property
    def name(self) -> str:
        return self.called

    @property
    def label(self) -> str:
        return self.text

    @property
    def levels(self) -> tuple[str, ...]:
        return self.matched

    @property
    def smooth(self) -> bool:
        return self.inner.smooth

    @property
    def coefficients(self) -> tuple[float, ...] | None:
        if self.inner.coefficients is None:
            return None
        of_level = dict(zip(self.inner.levels, self.inner.coefficients, strict=True))
        return tuple(of_level.get(level, 0.0) for level in self.levels)

    @property
    def null(self) -> float | None:
        return self.inner.null

    def evaluate(self, means: Array) -> Array:
        return self.inner.evaluate(means[..., [self.levels.index(level) for level in self.inner.levels]])


class _OfPooledMeans(Block):
    """A block whose estimates are functions of the averaged means, not averages of functions."""

    __slots__ = ()

    def of_sums(self, scores: Array, weights: Array, *, drop_empty: bool = False) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = scores / weights[..., None]
            result = np.empty((*means.shape[:-2], len(self.groups)))
            for place, (group, shares) in enumerate(zip(self.groups, self.shares, strict=True)):
                total: Array | float = 0.0
                whole: Array | float = 0.0
                for combination, share in zip(group, shares, strict=True):
                    term = means[..., combination, :] * share
                    if drop_empty:
                        present = weights[..., combination] > 0
                        term, whole = np.where(present[..., None], term, 0.0), whole + present * share
                    else:
                        whole = whole + share
                    total = total + term
                average = np.divide(total, np.asarray(whole)[..., None])
                result[..., place] = self.target.estimand.evaluate(average)
        return result


def of_pooled_means(block: Block) -> Block:
    """The block with the estimand of the pooled means, such as a ratio of pooled gaps."""
    return _OfPooledMeans(**{field.name: getattr(block, field.name) for field in fields(block)})


def family_of(
    plan: Plan, options: Options, *, untested: Iterable[str] = ()
) -> tuple[Family, tuple[Note, ...]]:
    """Evidence of all blocks of a plan from one set of draws, with sign flips of linear contrasts.

    What a cluster adds to a linear contrast changes its sign, for all of its models and cells at once.

    Parameters
    ----------
    plan
        Blocks, totals and rows.
    options
        What was asked.
    untested
        Names of estimands that get no p-value.
    """
    blocks, totals = plan.blocks, plan.totals
    drawn: dict[str, Any] = {
        "n_resamples": options.n_resamples,
        "seed": options.seed,
        "n_threads": options.n_threads,
    }
    evidence = gather_evidence(blocks, totals, studentise=options.interval == "bootstrap-t", **drawn)
    left_out = frozenset(untested)
    places = [(block, place) for block in blocks for place in range(len(block.groups))]
    tested = [
        (block, place)
        for block, place in places
        if len(totals.axes) == 1 and block.target.estimand.name not in left_out and _is_contrast(block)
    ]
    found = dict(zip(map(_identity, tested), _flips(tested, totals.values, drawn), strict=True))
    family = Family(
        rows=plan.rows,
        kind="contrast",
        is_rate=tuple(block.is_rate for block, _ in places),
        smooth=tuple(block.target.estimand.smooth for block, _ in places),
        nulls=tuple(block.target.estimand.null for block, _ in places),
        evidence=evidence,
        n_rows=tuple(block.n_rows[place] for block, place in places),
        tests=tuple(found.get(_identity(pair)) for pair in places),
        options=options,
        n_axes=len(totals.axes),
    )
    lost = ~np.isfinite(evidence.replicates[:, np.isfinite(evidence.estimate)])
    if not lost.any():
        return family, ()
    message = (
        f"In {float(lost.any(axis=1).mean()):.1%} of the replicates some estimate is undefined (no data "
        "drawn for it); its bootstrap intervals use the others."
    )
    return family, (Note("undefined_replicates", message, "caution"),)


def _identity(pair: tuple[Block, int]) -> tuple[int, int]:
    block, place = pair
    return id(block), place


def _is_contrast(block: Block) -> bool:
    estimand = block.target.estimand
    return estimand.coefficients is not None and estimand.null == 0


def _flips(
    tested: Sequence[tuple[Block, int]], totals: Array, drawn: dict[str, Any]
) -> tuple[Permuted | None, ...]:
    """Sign flips of what each cluster adds to each contrast.

    A sign flip is a relabelling of two levels, one of which has the sum and the other nothing.
    """
    if not tested:
        return ()
    added = np.stack([_added(block, place, totals) for block, place in tested], axis=1)
    size, number = added.shape
    both = np.concatenate([added, np.zeros((size, 1)), np.ones((size, 1))], axis=1)
    flipped = Block(
        target=_FLIPPED,
        stratum=None,
        models=(None,) * number,
        numerators=np.stack([np.arange(number), np.full(number, number)], axis=1),
        denominators=np.full(number, number + 1),
        groups=tuple(np.array([place]) for place in range(number)),
        shares=(np.ones(1),) * number,
        n_rows=(0,) * number,
        n_keys=(0,) * number,
    )
    return block_tests(flipped, both, **drawn)


def _added(block: Block, place: int, totals: Array) -> Array:
    """What each cluster adds to a contrast, shape (G,); 0 where only rounding is left."""
    weights = np.array(block.target.estimand.coefficients)
    parts = block.by_label(place, totals) * weights
    sums: Array = parts.sum(axis=1)
    sums[np.abs(sums) <= ROUNDING * np.abs(parts).max(initial=0.0) * parts.shape[1]] = 0.0
    return sums
