"""What of two runs pairs, what one of them lacks, and how far that could move their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats.blocks import Target
from triagestats.design import Design
from triagestats.matching import parts_of
from triagestats.plan import contrast_plan
from triagestats.schema import Match, Weights

__all__ = ["ABSENT", "SCORED", "Alignment", "Bounds", "align", "difference_bounds"]

SCORED: Final = "scored"
ABSENT: Final = "absent"


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Keys that at least one run asked, by what each run has of them.

    Attributes
    ----------
    counts
        `model` (code), `a` and `b` (`scored`, the status of an answer without a score, or `absent`), `n`.
    n_scenarios
        Scenarios with a key that both runs scored.
    n_lone_epochs
        Keys of `n_only_a` and of `n_only_b` whose item both runs asked, in other repetitions.
    n_within
        Answers of each run without a score within keys that it scored: the means are over the others.
    """

    counts: pl.DataFrame
    n_scenarios: int
    n_lone_epochs: tuple[int, int]
    n_within: tuple[int, int]

    def n(self, a: bool, b: bool, model: int | None = None) -> int:
        """Keys that both runs asked, by whether each scored them."""
        chosen = _is(a, "a") & _is(b, "b")
        if model is not None:
            chosen &= pl.col("model") == model
        return int(self.counts.filter(chosen)["n"].sum())

    @property
    def n_only_a(self) -> int:
        """Keys that the baseline alone asked, scored or not."""
        return int(self.counts.filter(pl.col("b") == ABSENT)["n"].sum())

    @property
    def n_only_b(self) -> int:
        """Keys that the candidate alone asked, scored or not."""
        return int(self.counts.filter(pl.col("a") == ABSENT)["n"].sum())

    def n_unusable(self, model: int | None = None) -> int:
        """Keys that a run asked and that do not pair."""
        counts = self.counts if model is None else self.counts.filter(pl.col("model") == model)
        return int(counts["n"].sum()) - self.n(True, True, model)

    def by_status(self) -> pl.DataFrame:
        """Keys by what each run has of them, models pooled; what pairs comes first."""
        scored = (pl.col("a") == SCORED) & (pl.col("b") == SCORED)
        summed = self.counts.group_by("a", "b").agg(pl.col("n").sum())
        return summed.sort(scored, "a", "b", descending=[True, False, False])

    def missing(self, names: tuple[str, str], metric: str | None) -> list[dict[str, Any]]:
        """Rows of the share of keys that each run lacks, by status."""
        total = int(self.counts["n"].sum())
        rows: list[dict[str, Any]] = []
        for side, name in zip(("a", "b"), names, strict=True):
            lost = self.counts.filter(pl.col(side) != SCORED)
            n_missing = int(lost["n"].sum())
            by_status = lost.group_by(side).agg(pl.col("n").sum()).sort(side)
            rows += [
                {
                    "estimand": "share_missing",
                    "condition": name,
                    "metric": metric,
                    "status": status,
                    "estimate": number / total,
                    "n_rows": total - n_missing,
                    "n_missing": n_missing,
                }
                for status, number in by_status.iter_rows()
            ]
        return rows


@dataclass(frozen=True, slots=True)
class Bounds:
    """The difference if every missing answer spoke against the candidate (low), and for it (high).

    Against is 0 for what it lacks and 1 for what the baseline lacks: in scores, whatever is better.
    """

    low: float
    high: float

    def rows(self, contrast: str, metric: str | None, n_missing: int) -> list[dict[str, Any]]:
        """As tidy rows."""
        same = {"contrast": contrast, "metric": metric, "n_missing": n_missing}
        return [
            same | {"estimand": f"difference_if_missing_{end}", "estimate": getattr(self, end)}
            for end in ("low", "high")
        ]


def align(design: Design, target: Target, match: Match) -> Alignment:
    """Keys of both runs beside each other.

    Parameters
    ----------
    design
        Both runs.
    target
        Candidate minus baseline, for each combination of other conditions.
    match
        What a key is.
    """
    parts = parts_of(design, match)
    keys = pl.concat(_keys(design, columns, parts) for columns in target.columns)
    lost = pl.col("score").is_null() & pl.col("score").is_not_null().any().over("level", *parts)
    within = dict(design.responses.filter(lost).group_by("level").len().iter_rows())
    pairs = keys.filter((pl.col("a") == SCORED) & (pl.col("b") == SCORED))
    counts = keys.group_by("model", "a", "b").agg(pl.len().cast(pl.Int64).alias("n"))
    item = [part for part in (*parts, "combination") if part != "repetition"]
    asked = (pl.col("a") != ABSENT).any().over(item) & (pl.col("b") != ABSENT).any().over(item)
    of_shared = keys.filter(asked)
    return Alignment(
        counts=counts.sort("model", "a", "b"),
        n_scenarios=pairs["unit"].n_unique() if design.n_scenarios > 1 else min(pairs.height, 1),
        n_lone_epochs=(
            of_shared.filter(pl.col("b") == ABSENT).height,
            of_shared.filter(pl.col("a") == ABSENT).height,
        ),
        n_within=(
            sum(within.get(columns[1], 0) for columns in target.columns),
            sum(within.get(columns[0], 0) for columns in target.columns),
        ),
    )


def _keys(design: Design, columns: Sequence[int], parts: list[str]) -> pl.DataFrame:
    """Keys at candidate and baseline of one combination, with what each run has of them."""
    scored = pl.col("score").is_not_null()
    candidate, baseline = (
        design.responses.filter(pl.col("level") == level)
        .group_by(parts, maintain_order=True)
        .agg(pl.when(scored.any()).then(pl.lit(SCORED)).otherwise(pl.col("status").min()).alias(side))
        for level, side in zip(columns, ("b", "a"), strict=True)
    )
    joined = baseline.join(candidate, on=parts, how="full", coalesce=True, nulls_equal=True)
    return joined.with_columns(
        pl.col("a", "b").fill_null(ABSENT), pl.lit(columns[0], pl.Int64).alias("combination")
    )


def difference_bounds(design: Design, target: Target, *, match: Match, weights: Weights) -> Bounds | None:
    """The difference if all that is missing were scored 0 on one side and 1 on the other, and the reverse.

    Every key that a run asked counts, also one that the other run lacks. None where scores do not lie between
    0 and 1, or nothing is missing.
    """
    if not design.is_rate:
        return None
    parts = parts_of(design, match)
    ends = []
    for of_candidate in (0.0, 1.0):
        filled = [
            _filled(design, columns, parts, (of_candidate, 1 - of_candidate)) for columns in target.columns
        ]
        plan = contrast_plan(
            replace(design, responses=pl.concat(filled, how="diagonal")),
            (target,),
            match=match,
            weights=weights,
            metric=None,
            strata=False,
        )
        if plan is None:
            return None
        ends.append(float(plan.blocks[0].evaluate(plan.totals.sums)[0]))
    return Bounds(*ends)


def _filled(
    design: Design, columns: Sequence[int], parts: list[str], scores: tuple[float, float]
) -> pl.DataFrame:
    """The responses at candidate and baseline; what is missing has the score of its side."""
    chosen = design.responses.filter(pl.col("level").is_in(list(columns)))
    keys = chosen.select(parts).unique(maintain_order=True)
    filled = []
    for level, score in zip(columns, scores, strict=True):
        there = chosen.filter(pl.col("level") == level)
        absent = keys.join(there, on=parts, how="anti", nulls_equal=True)
        filled += [there, absent.with_columns(pl.lit(level, pl.Int64).alias("level"))]
        filled[-2:] = [part.with_columns(_with(part, score)) for part in filled[-2:]]
    return pl.concat(filled, how="diagonal")


def _with(responses: pl.DataFrame, score: float) -> pl.Expr:
    if "score" not in responses.columns:
        return pl.lit(score).alias("score")
    return pl.col("score").fill_null(score)


def _is(scored: bool, side: str) -> pl.Expr:
    is_scored = pl.col(side) == SCORED
    return is_scored if scored else ~is_scored & (pl.col(side) != ABSENT)
