"""concentration: headlines that rest on few scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.design import Reference
from triagestats.inference import Options
from triagestats.labels import counted
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, as_json
from triagestats.schema import Interval, Weights
from triagestats.triage.concentration_counts import labels_of_misses
from triagestats.triage.concentration_parts import OF_LABELS, Parts, parts_of, tidy_of
from triagestats.triage.fixed_scenarios import HEADING
from triagestats.triage.outcomes import Kind, Pool, unit_values
from triagestats.triage.selection import Rows, column_named, rows_where, table_of, with_condition
from triagestats.triage.text import aligned, amount, number, withheld_lines

__all__ = ["Concentration", "concentration"]

_CONDITION: Final = "condition"
_MANY: Final = 12
"""More scenarios than this are shown by their misses alone."""
_WORDS: Final[Mapping[Kind, str]] = {
    "under": "labels under the gold range",
    "over": "labels over the gold range",
    "wrong": "wrong answers",
    "correct": "right answers",
}


@dataclass(frozen=True, slots=True, eq=False)
class Concentration(Shown):
    """How many scenarios a rate rests on.

    Attributes
    ----------
    kind
        What is counted; `misses` stands for it in the frames.
    counts
        One row a condition and scenario: `condition`, `scenario`, `misses`, `n`, and `share`, that of the
        scenario among the misses of the condition (null without any).
    labels
        Labels of the misses: `condition`, `label`, `misses`.
    without
        Every estimate without each cluster: `condition` or `contrast`, `cluster`, `estimate`.
    pool, weights, conf_level, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> found = ts.concentration(ts.demo_table(), kind="wrong", n_resamples=999)
    >>> isinstance(found, ts.Concentration), found.counts.columns
    (True, ['condition', 'scenario', 'misses', 'n', 'share'])
    >>> found.tidy()["estimand"].unique(maintain_order=True).to_list()[:2]
    ['wrong_rate', 'effective_scenarios']
    """

    kind: Kind
    counts: pl.DataFrame
    labels: pl.DataFrame
    without: pl.DataFrame
    pool: Pool
    weights: Weights
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _parts: Parts
    _frame: pl.DataFrame

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary.

        For each condition its rate (`under_rate_of_labels` and so on beside it where every label is taken as
        a draw), `effective_scenarios`, `largest_share` (`term` is the scenario), and
        `leave_one_out_low` and `leave_one_out_high` (`term` is the cluster left out); then contrasts with
        the range of theirs.
        """
        return self._frame

    def glance(self) -> pl.DataFrame:
        """One row: sizes and settings."""
        return pl.DataFrame(
            {
                "kind": [self.kind],
                "misses": [float(self.counts["misses"].sum())],
                "n": [int(self.counts["n"].sum())],
                "n_scenarios": [self.counts["scenario"].n_unique()],
                "n_clusters": [self._parts.n_clusters],
                "pool": [self.pool],
                "weights": [self.weights],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"seed": pl.UInt64},
        )

    def with_level(self, conf_level: float) -> Concentration:
        """The same estimates at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        level = valid_level(conf_level)
        return replace(self, conf_level=level, _frame=tidy_of(self._parts, level))

    def to_dict(self) -> dict[str, Any]:
        """Frames, notes and settings as plain JSON values."""
        return as_json(
            self, estimates=self._frame, counts=self.counts, labels=self.labels, without=self.without
        )

    def __repr__(self) -> str:
        lines = [f"Concentration of {_WORDS[self.kind]}: count of n, by scenario"]
        lines += _crossed(self.counts)
        lines += ["By condition", *aligned(*_summary(self))]
        if (ranges := _ranges(self._frame)).height:
            lines += ["Contrasts without each cluster", *aligned(ranges, ranges.columns)]
        names = {f"{self.kind}_rate": "responses", f"{self.kind}{OF_LABELS}": "labels"}
        rates = self._frame.filter(pl.col("estimand").is_in(list(names)))
        if self._parts.of_labels:
            draws = pl.col("estimand").replace_strict(names, return_dtype=pl.String)
            rates = rates.with_columns(pl.when(pl.col("condition").is_not_null()).then(draws).alias("draws"))
        fixed = pl.col("method").str.starts_with(HEADING).fill_null(value=False)
        shown = (
            *(["draws"] if self._parts.of_labels else []),
            "condition",
            "contrast",
            "estimate",
            "conf_low",
            "conf_high",
            "p_value",
            "n_rows",
            "n_clusters",
        )
        for title, part in (
            (f"{HEADING.capitalize()}, {self.conf_level:.4g} intervals", rates.filter(fixed)),
            (f"For new scenarios, {self.conf_level:.4g} intervals", rates.filter(~fixed)),
        ):
            if part.height:
                called = pl.coalesce("contrast", "condition", pl.lit("all"))
                lines += [title, *aligned(part, shown), *withheld_lines(part, called)]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _ranges(frame: pl.DataFrame) -> pl.DataFrame:
    """The range of each contrast without each cluster, as text."""
    ends = frame.filter(
        pl.col("contrast").is_not_null() & pl.col("estimand").str.starts_with("leave_one_out")
    ).drop_nulls("estimate")
    told = pl.col("estimate").map_elements(number, return_dtype=pl.String) + " (" + pl.col("term") + ")"
    return ends.group_by("contrast", maintain_order=True).agg(told.str.join(" to ").alias("leave one out"))


def _crossed(counts: pl.DataFrame) -> list[str]:
    """Scenarios by condition; where there are many, those that have misses, and how many have none."""
    told = counts.with_columns(
        (
            pl.col("misses").map_elements(number, return_dtype=pl.String) + "/" + pl.col("n").cast(pl.String)
        ).alias("told"),
        pl.col(_CONDITION).fill_null("all"),
    )
    of_scenario = counts.group_by("scenario").agg(pl.col("misses", "n").sum())
    without = of_scenario.filter(pl.col("misses") == 0)
    if of_scenario.height <= _MANY:
        without = without.clear()
    kept = told.filter(~pl.col("scenario").is_in(without["scenario"].to_list()))
    wide = kept.pivot(on=_CONDITION, index="scenario", values="told")
    lines = aligned(wide, wide.columns)
    if without.height:
        said = counted(without.height, "scenario")
        lines.append(f"  not shown: {said} without any, 0 of {without['n'].sum():,}")
    return lines


def _summary(found: Concentration) -> tuple[pl.DataFrame, Sequence[str]]:
    """One line a condition: misses, their labels, what they rest on, and the range without each cluster."""
    rows = []
    frame = found.tidy().filter(pl.col("contrast").is_null())
    for (condition,), part in frame.group_by(_CONDITION, maintain_order=True):
        named = {row["estimand"]: row for row in part.iter_rows(named=True)}
        same = pl.col(_CONDITION).eq_missing(condition)
        counts = found.counts.filter(same)
        labels = found.labels.filter(same & (pl.col("misses") > 0)).select("label", "misses").iter_rows()
        ends = [named[f"leave_one_out_{end}"] for end in ("low", "high")]
        told = " to ".join(f"{number(end['estimate'])} ({end['term']})" for end in ends)
        largest = named["largest_share"]
        rows.append(
            {
                _CONDITION: condition or "all",
                "count": f"{amount(float(counts['misses'].sum()))}/{counts['n'].sum()}",
                "labels": ", ".join(f"{label or 'unreadable'} {amount(n)}" for label, n in labels) or None,
                "effective": named["effective_scenarios"]["estimate"],
                "largest": largest["term"] and f"{largest['term']} {largest['estimate']:.2f}",
                "leave one out": told if ends[0]["term"] else None,
            }
        )
    summary = pl.DataFrame(rows, schema_overrides={"effective": pl.Float64, "labels": pl.String})
    return summary.cast({"largest": pl.String, "leave one out": pl.String}), summary.columns


def concentration(
    data: object,
    *,
    levels: Sequence[str] | None = None,
    kind: Kind = "under",
    subset: Rows | None = None,
    by: str | None = _CONDITION,
    pool: Pool = "labels",
    reference: Reference = None,
    weights: Weights = "row",
    interval: Interval = "auto",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Concentration:
    """How many scenarios a rate of errors rests on, and how far it moves without each of them.

    With s_j the share of scenario j among the misses of a condition,

        effective scenarios = 1 / sum_j s_j^2

    which is J where J scenarios hold equal shares and 1 where one scenario holds all of them.

    Parameters
    ----------
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, its columns under usual names.
    levels
        The scale from least to most urgent, where `data` is no ResponseTable.
    kind
        What is counted as a miss: `under` or `over` the gold range, `wrong` (1 - score), or `correct` (the
        score), to see what right answers and their contrasts rest on.
    subset
        The rows that a headline is about: a polars expression, a mapping from column to value(s), a
        stratum, or a function from the frame to an expression or booleans. Default: all rows.
    by
        The column that is crossed with the scenario, and whose levels are compared; None for none.
    pool
        `labels`: each judge's label counts; `responses`: the judges of a response are averaged first.
    reference
        The level that the others are compared with, as in `analyze`.
    weights
        `row`: every label (or response) weighs the same, so that a rate is misses over n; `scenario`: as in
        `analyze`.
    interval, conf_level, n_resamples, seed, n_threads
        As in `analyze`.

    Returns
    -------
    Concentration
        `counts`, `labels`, `without`, and tidy rows.

    Raises
    ------
    DesignError
        If `kind` needs an order of labels and the scale has none, or nothing counts.
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used.
    DataError
        If `subset` leaves no row, or scores do not lie between 0 and 1.

    Notes
    -----
    With fewer than 5 clusters there is no interval for new scenarios. The one shown is headed "these
    scenarios only" and speaks of fresh answers of the same models to the same scenarios:

        variance = sum_c (n_c / N)^2 s_c^2 / n_c

    over scenario x model cells of n_c responses with variance s_c^2, and t with Satterthwaite's degrees of
    freedom. The labels that several judges give to one response are one draw: s_c^2 is that of responses,
    each with the mean of its labels. Where `pool="labels"` and `weights="row"`, rows named
    `under_rate_of_labels` and so on read the formula on labels instead: every label is a draw, and n_c counts
    labels, which takes the judges of one response as independent.

    A cell of one response has no s_c^2, and the interval is refused; where no cell varies, Wilson's interval
    of all responses is shown, with a note. A contrast takes cells of scenario x model x variant, on each
    side; it is the mean over the cells that both sides have, and differs from the difference of the rates
    where these weigh other rows.

    Ranges without a cluster are the smallest and the largest of the estimates without one.

    References
    ----------
    Hill, M. O. (1973), Diversity and evenness: a unifying notation and its consequences, Ecology
    54:427-432 (the effective number, of order 2).
    Satterthwaite, F. E. (1946), An approximate distribution of estimates of variance components,
    Biometrics Bulletin 2(6):110-114.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = ts.ResponseTable(
    ...     {"scenario": ["a", "a", "b", "b", "c", "c"], "repetition": [1, 2, 1, 2, 1, 2],
    ...      "score": [0, 0, 0, 1, 1, 1]}
    ... )
    >>> found = ts.concentration(table, kind="wrong")
    >>> found.counts.select("scenario", "misses", "share").rows()[0]
    ('a', 2.0, 0.6666666666666666)
    >>> round(dict(found.tidy().select("estimand", "estimate").iter_rows())["effective_scenarios"], 3)
    1.8
    """
    valid_choice("kind", kind, Kind)
    valid_choice("pool", pool, Pool)
    valid_choice("weights", weights, Weights)
    valid_choice("interval", interval, Interval)
    level = valid_level(conf_level)
    options = Options(
        interval=interval,
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
        margin=None,
        higher_is_better=kind == "correct",
    )
    whole = table_of(data, levels)
    table = whole if subset is None else rows_where(whole, subset, "subset")
    if by != _CONDITION or _CONDITION in table.frame.columns:
        table = with_condition(table, None if by is None else column_named(table, by, "by"), "by")
    table = table.with_frame(unit_values(table, kind))
    parts = parts_of(table, kind=kind, pool=pool, reference=reference, weights=weights, options=options)
    return Concentration(
        kind=kind,
        counts=parts.counts(),
        labels=labels_of_misses(table.frame, pool, parts.levels, table.levels),
        without=parts.without,
        pool=pool,
        weights=weights,
        conf_level=level,
        n_resamples=options.n_resamples,
        seed=options.seed,
        notes=(*whole.notes, *parts.notes),
        _parts=parts,
        _frame=tidy_of(parts, level),
    )
