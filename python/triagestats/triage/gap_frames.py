"""A family of gaps read at a level: verdicts on levelling, ratios withheld, and models in each direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import polars as pl

from triagestats.inference import Family
from triagestats.results import tidy_frame
from triagestats.triage.frames import contrasts_frame
from triagestats.triage.gap_plan import CHANGES, REDUCTION, RELATIVE

__all__ = ["GapVerdict", "directions_frame", "gap_verdict", "gaps_frame"]

GapVerdict = Literal["levels up", "levels down", "mixed", "undecided"]

_COUNTED: Final = (*CHANGES, REDUCTION)
_DIRECTIONS: Final = pl.Schema(
    dict.fromkeys(("estimand", "method", "stratum"), pl.String())
    | dict.fromkeys(("n_models", "n_above", "n_below"), pl.Int64())
    | dict.fromkeys(("above", "below"), pl.List(pl.String))
)
Ends = tuple[float | None, float | None]


def gap_verdict(reduction: Ends, marked: Ends, control: Ends, baseline: Ends = (None, None)) -> GapVerdict:
    """What the intervals of the reduction and of the changes say of a method.

    `levels up`: the reduction and the change of the marked voices lie above 0. `levels down`: the reduction
    lies above 0 and the change of the control below it, and that of the marked voices does not lie above.
    `undecided`: the interval of the reduction holds 0, or is withheld. `mixed`: all else, a gap that shrinks
    without either, that grows, or that lies below 0 at the baseline: a reduction then takes the marked voices
    further above the control.

    Examples
    --------
    >>> from triagestats.triage.gap_frames import gap_verdict
    >>> gap_verdict((0.01, 0.05), (0.02, 0.06), (-0.01, 0.03))
    'levels up'
    >>> gap_verdict((0.01, 0.05), (-0.02, 0.01), (-0.06, -0.02))
    'levels down'
    """
    side = _side(reduction)
    if side == 0:
        return "undecided"
    if _side(baseline) < 0:
        return "mixed"
    if side > 0 and _side(marked) > 0:
        return "levels up"
    if side > 0 and _side(control) < 0:
        return "levels down"
    return "mixed"


def _side(ends: Ends) -> int:
    """1 above 0, -1 below, 0 where the interval holds 0 or there is none."""
    low, high = ends
    if low is None or high is None:
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def gaps_frame(family: Family, conf_level: float, baseline: str) -> pl.DataFrame:
    """The family as a tidy frame, with verdicts of the reductions and ratios withheld where they must be."""
    rows = contrasts_frame(family, conf_level, sided=CHANGES).to_dicts()
    found = {_key(row, row["estimand"], row["condition"]): row for row in rows}
    for row in rows:
        if row["estimand"] == REDUCTION and row["estimate"] is not None:
            row["verdict"] = gap_verdict(
                _ends(row),
                _ends(found[_key(row, "marked_change", None)]),
                _ends(found[_key(row, "control_change", None)]),
                _ends(found[_key(row, "gap", baseline)]),
            )
        elif row["estimand"] == RELATIVE:
            _withhold(row, found[_key(row, "gap", baseline)])
    return tidy_frame(rows)


def _key(row: Mapping[str, Any], estimand: str, condition: str | None) -> tuple[object, ...]:
    return (estimand, condition, row["term"], row["model"], row["stratum"])


def _ends(row: Mapping[str, Any]) -> Ends:
    return row["conf_low"], row["conf_high"]


def _withhold(row: dict[str, Any], gap: Mapping[str, Any]) -> None:
    """Take a ratio away whose denominator may be 0."""
    if row["estimate"] is None and row["status"] == "no_data":
        return
    low, high = _ends(gap)
    if low is None or high is None:
        reason = "the baseline gap has no interval, so that it may be 0"
    elif low <= 0 <= high:
        reason = f"the interval of the baseline gap, [{low:.4g}, {high:.4g}], holds 0"
    else:
        if high < 0:
            doubt = "the baseline gap is below 0, so that a positive ratio is a gap that moves towards 0"
            row.update(status="warning", reason="; ".join(filter(None, (row["reason"], doubt))))
        return
    gone = ("estimate", "std_error", "conf_low", "conf_high", "statistic", "df", "p_value", "p_adjusted")
    row.update(dict.fromkeys(gone), status="withheld", reason=reason, method="none")


def directions_frame(gaps: pl.DataFrame, left_out: frozenset[str], without: str | None) -> pl.DataFrame:
    """Models whose interval lies above or below 0, of those that have one.

    Parameters
    ----------
    gaps
        The tidy frame.
    left_out, without
        Models that are left out once more, and what that is called.
    """
    single = gaps.filter(
        pl.col("model").is_not_null()
        & pl.col("conf_low").is_not_null()
        & pl.col("estimand").is_in(list(_COUNTED))
    )
    kept = single.with_columns(pl.lit(None, pl.String).alias("part"))
    if without is not None:
        rest = single.filter(pl.col("stratum").is_null() & ~pl.col("model").is_in(list(left_out)))
        kept = pl.concat([kept, rest.with_columns(pl.lit(without).alias("part"))])
    above, below = pl.col("conf_low") > 0, pl.col("conf_high") < 0
    counted = kept.group_by(
        "estimand",
        pl.col("term").alias("method"),
        pl.coalesce("part", "stratum").alias("stratum"),
        maintain_order=True,
    ).agg(
        pl.len().alias("n_models"),
        above.sum().alias("n_above"),
        below.sum().alias("n_below"),
        pl.col("model").filter(above).alias("above"),
        pl.col("model").filter(below).alias("below"),
    )
    return counted.cast(dict(_DIRECTIONS))  # type: ignore[arg-type]  # a mapping from name to type
