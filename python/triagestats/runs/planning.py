"""Which estimates a comparison of runs makes: the difference, and both means over what pairs."""

from __future__ import annotations

from dataclasses import replace

from triagestats.blocks import Block, Target, contrast_targets
from triagestats.design import Design
from triagestats.errors import DesignError
from triagestats.estimands import Mean
from triagestats.labels import listed
from triagestats.matching import keys_of
from triagestats.plan import Plan, Row, contrast_plan
from triagestats.runs.alignment import Alignment
from triagestats.runs.unvarying import heaviest
from triagestats.schema import Match, Weights

__all__ = ["difference_plan", "difference_target", "heaviest_weights", "rate_plan"]


def difference_target(design: Design, factor: str) -> Target:
    """Candidate minus baseline, over the combinations of other conditions that both runs have.

    Raises
    ------
    DesignError
        If they have none in common.
    """
    for target in contrast_targets(design):
        if target.term == factor:
            return target
    others = [other.name for other in design.factors if other.name != factor]
    raise DesignError(
        f"`condition`: `a` and `b` have no combination of {listed(others)} in common, so that nothing pairs"
    )


def difference_plan(
    design: Design, target: Target, keys: Alignment, *, match: Match, weights: Weights, metric: str | None
) -> Plan:
    """The difference, pooled, by model and by stratum; its missing keys are those that a run asked."""
    plan = contrast_plan(design, (target,), match=match, weights=weights, metric=metric)
    if plan is None:
        raise DesignError("`a` and `b` have no answer that both scored")
    code = {model: place for place, model in enumerate(design.models)}
    rows = []
    for row in plan.rows:
        identity = row.identity
        if identity["stratum"] is None:
            model = None if identity["model"] is None else code[identity["model"]]
            identity = identity | {"n_missing": keys.n_unusable(model)}
        rows.append(replace(row, identity=identity))
    return Plan(plan.blocks, plan.totals, tuple(rows))


def rate_plan(design: Design, plan: Plan, keys: Alignment, *, match: Match, metric: str | None) -> Plan:
    """The mean of each run over the keys that pair."""
    blocks: list[Block] = []
    rows: list[Row] = []
    for block in plan.blocks:
        for place in (1, 0):  # a difference reads candidate and baseline
            label = block.target.estimand.levels[place]
            side = _of_side(design, block, place, match)
            first = sum(len(other.groups) for other in blocks)
            for slot, model in enumerate(side.models):
                identity = {
                    "estimand": "rate" if design.is_rate else "mean",
                    "condition": label,
                    "model": None if model is None else design.models[model],
                    "stratum": block.stratum,
                    "metric": metric,
                    "n_missing": None if block.stratum is not None else keys.n_unusable(model),
                }
                rows.append(Row(identity, first + slot))
            blocks.append(side)
    return Plan(tuple(blocks), plan.totals, tuple(rows))


def _of_side(design: Design, block: Block, place: int, match: Match) -> Block:
    """The mean at one side of a difference, over the keys matched for the difference."""
    columns = block.target.columns
    matched = [keys_of(design, match, block.stratum).matched(list(pair)) for pair in columns]
    counts = tuple(
        sum(
            int(
                part.counts[:, place].sum()
                if model is None
                else part.counts[part.model == model, place].sum()
            )
            for part in matched
        )
        for model in block.models
    )
    own = tuple((pair[place],) for pair in columns)
    return replace(
        block,
        target=Target(Mean(block.target.estimand.levels[place]), block.target.term, own),
        numerators=block.numerators[:, [place]],
        n_rows=counts,
        is_rate=design.is_rate,
    )


def heaviest_weights(design: Design, plan: Plan) -> tuple[float, ...] | None:
    """The heaviest cluster over the mean, of each estimate; None without a range, or for crossed clusters."""
    if not design.is_rate or len(design.axes) > 1:
        return None
    return tuple(
        heaviest(block, plan.totals.values, place)
        for block in plan.blocks
        for place in range(len(block.groups))
    )
