"""The estimates of a comparison of gaps: changes, gaps, their reduction, and victims, on shared totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.blocks import Block, Target, contrast_block
from triagestats.design import Design
from triagestats.errors import DesignError
from triagestats.estimands import AnchoringGap, Estimand, Function, Gap
from triagestats.matching import Keys, keys_of
from triagestats.plan import Plan, Row
from triagestats.schema import Match, Weights
from triagestats.totals import TotalsBuilder
from triagestats.triage.contrasts import Contrast, Named, of_pooled_means
from triagestats.triage.factorial_plan import block_rows
from triagestats.triage.text import in_words
from triagestats.triage.victims import BROKEN, RECOVERED, VICTIMS_SCHEMA, transitions_of, victim_rows
from triagestats.triage.voices import Voices, level_name, unscored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["CHANGES", "REDUCTION", "RELATIVE", "GapPlan", "gap_plan"]

CHANGES: Final = ("control_change", "marked_change", "overall_change")
REDUCTION: Final = "gap_reduction"
RELATIVE: Final = "relative_gap_reduction"


@dataclass(frozen=True, slots=True)
class GapPlan:
    """Blocks, totals and rows, and the counts of victims."""

    plan: Plan
    victims: pl.DataFrame


@dataclass(slots=True)
class _Builder:
    """Collects blocks on shared totals, and the rows that show them."""

    design: Design
    totals: TotalsBuilder
    blocks: list[Block] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        block: Block | None,
        identity: Mapping[str, Any],
        reason: str,
        planned: int | None = None,
        *,
        pooled: bool = True,
    ) -> None:
        """Rows of a block, for all models and by model."""
        first = sum(len(one.groups) for one in self.blocks)
        rows = block_rows(self.design, block, first, identity, reason, planned)
        self.rows += [row for row in rows if pooled or row.identity["model"] is not None]
        if block is not None:
            self.blocks.append(block)

    def add_pooled(self, block: Block | None, identity: Mapping[str, Any], reason: str) -> None:
        """The row of some of the models together."""
        named = {**identity, "model": None}
        if block is None:
            self.rows.append(Row(named | {"n_rows": 0, "n_clusters": 0}, None, reason))
            return
        self.rows.append(Row(named, sum(len(one.groups) for one in self.blocks)))
        self.blocks.append(block.only(0))


def gap_plan(
    design: Design,
    voices: Voices,
    *,
    without: Sequence[int],
    match: Match,
    weights: Weights,
    metric: str | None,
) -> GapPlan:
    """Every estimate for all models, without some, by model, and by stratum.

    The anchoring gap is there by model alone. Victims are there where scores lie between 0 and 1.

    Raises
    ------
    DesignError
        If nothing is scored in all voices with two methods.
    """
    builder = _Builder(design, TotalsBuilder(design.axes))
    counted: list[dict[str, object]] = []
    others = f"without {', '.join(design.models[model] for model in without)}"
    for stratum in (None, *design.strata):
        keys = keys_of(design, match, stratum)
        parts: list[tuple[Keys, str | None]] = [(keys, stratum)]
        if without and stratum is None:
            parts.append((_of_models(keys, without), others))
        for method in voices.methods:
            columns = voices.columns(method)
            planned = (
                sum(design.planned(list(codes), match) for codes in columns) if stratum is None else None
            )
            shared = {"term": method, "metric": metric}
            for estimand, identity in _estimands(voices, method):
                target = Target(estimand, method, columns)
                reason = "no key is scored in all voices with both methods"
                for some, name in parts:
                    block = contrast_block(
                        builder.totals, design, some, target, weights=weights, stratum=stratum
                    )
                    if block is not None and identity["estimand"] == RELATIVE:
                        block = of_pooled_means(block)
                    named = shared | identity | {"stratum": name}
                    by_model = identity["estimand"] == "anchoring_gap" and design.has_models
                    if name == stratum:
                        builder.add(block, named, reason, planned, pooled=not by_model)
                    elif not by_model:
                        builder.add_pooled(block, named, reason)
            if not design.is_rate:
                continue
            for some, name in parts:
                found = transitions_of([some.matched(list(codes)) for codes in columns])
                counted += victim_rows(found, design, voices, method, name, by_model=name == stratum)
                for share, reason in (
                    (RECOVERED, "there is no victim"),
                    (BROKEN, "no marked answer is right"),
                ):
                    block = found.block(builder.totals, design, share, weights=weights, stratum=stratum)
                    named = shared | {"estimand": share, "condition": method, "stratum": name}
                    if name == stratum:
                        builder.add(block, named, reason)
                    else:
                        builder.add_pooled(block, named, reason)
    if not builder.blocks:
        raise DesignError(_why_none(design, voices, match))
    plan = Plan(tuple(builder.blocks), builder.totals.build(), tuple(builder.rows))
    return GapPlan(plan, pl.DataFrame(counted, schema=VICTIMS_SCHEMA))


def _why_none(design: Design, voices: Voices, match: Match) -> str:
    lost = dict.fromkeys(filter(None, (unscored(design, voices, method) for method in voices.methods)))
    why = (
        f"no answer {in_words(lost)} has a score: could its output be read?"
        if lost
        else "scenarios, models or variants differ between them"
    )
    return (
        f"no key is scored in all of the voices {list(voices.voices)} with both {voices.baseline!r} and "
        f"another method, with match={match!r}; {why}"
    )


def _of_models(keys: Keys, without: Sequence[int]) -> Keys:
    kept = ~np.isin(keys.model, list(without))
    return Keys(keys.unit[kept], keys.model[kept], keys.cell[kept], keys.values[kept], keys.counts[kept])


def _estimands(voices: Voices, method: str) -> Iterator[tuple[Estimand, dict[str, Any]]]:
    """Changes, gaps and their reduction as functions of the means by method and voice."""
    levels = voices.levels(method)
    base = voices.baseline
    change = f"{method} - {base}"
    n_marked = len(voices.marked)
    everyone = dict.fromkeys(voices.voices, 1 / len(voices.voices))
    marked = dict.fromkeys(voices.marked, 1 / n_marked)

    def contrast(name: str, label: str, parts: Sequence[tuple[str, float, Mapping[str, float]]]) -> Contrast:
        weights = dict.fromkeys(levels, 0.0)
        for which, sign, shares in parts:
            for voice, share in shares.items():
                weights[level_name(which, voice)] += sign * share
        return Contrast(name, label, weights)

    of_change = {
        "control_change": {voices.control: 1.0},
        "marked_change": marked,
        "overall_change": everyone,
    }
    for name, shares in of_change.items():
        found = contrast(name, change, [(method, 1.0, shares), (base, -1.0, shares)])
        yield found, {"estimand": name, "contrast": change}
    gap = {voices.control: 1.0} | {voice: -share for voice, share in marked.items()}
    of_base = contrast("gap", "gap", [(base, 1.0, gap)])
    reduction = contrast(REDUCTION, f"gap {base} - gap {method}", [(base, 1.0, gap), (method, -1.0, gap)])
    yield reduction, {"estimand": REDUCTION, "contrast": reduction.label}
    relative = Function(_ratio, [reduction, of_base], name=RELATIVE, null=0.0)
    label = f"1 - gap {method} / gap {base}"
    yield Named(RELATIVE, label, levels, relative), {"estimand": RELATIVE, "contrast": label}
    for which in (base, method):
        control = level_name(which, voices.control)
        others = [level_name(which, voice) for voice in voices.marked]
        for plain in (Gap(control, others), AnchoringGap(control, others)):
            of_voices = type(plain)(voices.control, voices.marked).label
            named = {"estimand": plain.name, "condition": which, "contrast": of_voices}
            yield Named(plain.name, of_voices, levels, plain), named


def _ratio(values: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = values[..., 0] / values[..., 1]
    return ratio
