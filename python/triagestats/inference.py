"""From blocks on totals to tidy rows: errors, intervals, p-values and verdicts of a family of estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from triagestats import intervals
from triagestats.defaults import (
    BY_QUANTILES,
    FOR_SMOOTH,
    MANY_CLUSTERS,
    Choice,
    Method,
    choose_interval,
    too_few,
)
from triagestats.evidence import Evidence, gather_evidence
from triagestats.permutation import Permuted, block_tests
from triagestats.plan import Plan, Row
from triagestats.results import Note, tidy_frame
from triagestats.schema import Interval, Verdict
from triagestats.verdicts import verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["METHODS", "Family", "Options", "infer"]

METHODS: Final[dict[Method, str]] = {
    "kg2": "Korn-Graubard plus two",
    "jackknife-t": "cluster jackknife t",
    "percentile": "cluster bootstrap percentile",
    "basic": "cluster bootstrap basic",
    "normal": "cluster bootstrap normal",
    "bca": "cluster bootstrap BCa",
    "bootstrap-t": "cluster bootstrap-t",
    "max-t": "cluster bootstrap max-t, simultaneous",
    "none": "none",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asked of the inference."""

    interval: Interval
    n_resamples: int
    seed: int
    n_threads: int
    margin: float | None
    higher_is_better: bool


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Estimates with their evidence and tests, ready to be read at a level.

    Attributes
    ----------
    rows
        What is shown, in order.
    kind
        Whether the estimates are means, or contrasts.
    is_rate
        Whether each estimate is a mean of scores between 0 and 1.
    smooth, nulls
        Whether each estimand is differentiable, and its value where levels do not differ, None without.
    n_rows
        Responses behind each estimate.
    tests
        The permutation test of each estimate, None where there is none.
    many
        Whether there are too many clusters to permute.
    """

    rows: tuple[Row, ...]
    kind: Literal["mean", "contrast"]
    is_rate: tuple[bool, ...]
    smooth: tuple[bool, ...]
    nulls: tuple[float | None, ...]
    evidence: Evidence
    n_rows: tuple[int, ...]
    tests: tuple[Permuted | None, ...]
    options: Options
    n_axes: int
    many: bool = False

    @property
    def by_t(self) -> bool:
        """Whether p-values are those of the t test: two axes, or too many clusters to permute."""
        return self.n_axes > 1 or self.many

    def choices(self) -> tuple[Choice, ...]:
        """The interval that each estimate gets."""
        evidence = self.evidence
        return tuple(
            choose_interval(
                self.options.interval,
                is_rate=self.is_rate[e],
                smooth=self.smooth[e],
                estimable=not np.isnan(evidence.std_error[e]),
                varies=bool(evidence.varies[e]),
                at_boundary=bool(evidence.estimate[e] in (0.0, 1.0)),
                n_clusters=int(evidence.n_clusters[e]),
                n_axes=self.n_axes,
            )
            for e in range(len(self.smooth))
        )

    def ends(self, method: Method, conf_level: float) -> intervals.Ends:
        """All intervals by one method, NaN where it does not apply."""
        evidence = self.evidence
        if method == "kg2":
            rates = np.array(self.is_rate)
            return intervals.korn_graubard_plus_two(
                np.where(rates, evidence.estimate, np.nan),
                np.where(rates, evidence.rate_variance, np.nan),
                evidence.n_clusters.astype(np.float64),
                np.array(self.n_rows, dtype=np.float64),
                conf_level,
            )
        ends = evidence.ends(method, conf_level)
        if method in FOR_SMOOTH:
            rough = ~np.array(self.smooth)
            ends = intervals.Ends(np.where(rough, np.nan, ends.low), np.where(rough, np.nan, ends.high))
        return ends

    def read(self, conf_level: float) -> pl.DataFrame:
        """The family as a tidy frame at a level."""
        choices = self.choices()
        displayed, replaced = self._displayed(choices, conf_level)
        inner = self._displayed(choices, 2 * conf_level - 1)[0] if conf_level > 0.5 else None
        error = self._error()
        statistic = self._distance() / error
        t_values = self.t_p_values()
        rows = []
        for shown in self.rows:
            if (e := shown.slot) is None:
                rows.append(
                    shown.identity | {"status": "no_data", "reason": shown.reason, "conf_level": conf_level}
                )
                continue
            low, high = float(displayed.low[e]), float(displayed.high[e])
            status, reason, method = self._stated(
                e, choices[e], low, replaced=bool(replaced[e]), conf_level=conf_level
            )
            row = shown.identity | {
                "estimate": float(self.evidence.estimate[e]),
                "std_error": float(error[e]),
                "conf_low": low,
                "conf_high": high,
                "conf_level": conf_level,
                "status": status,
                "reason": reason,
                "method": method,
                "n_rows": self.n_rows[e],
                "n_clusters": int(self.evidence.n_clusters[e]),
            }
            if self.kind == "contrast":
                held = choices[e].method == "none"
                if not held and np.isfinite(statistic[e]):
                    row |= {"statistic": float(statistic[e]), "df": float(self.evidence.df[e])}
                test = self.tests[e]
                if test is not None:
                    row |= {"p_value": test.p_value}
                elif self.by_t and not held:
                    row |= {"p_value": float(t_values[e])}
                row |= {"verdict": self._verdict(low, high, inner, e)}
            rows.append(row)
        return tidy_frame(rows)

    def percentile_method(self, e: int, method: Method) -> str:
        """The percentile or basic interval of an estimate by name, and whether it is exact or drawn."""
        drawn = f"{len(self.evidence.replicates):,} drawn"
        return f"{METHODS[method]}, {'exact' if self.evidence.laws[e] is not None else drawn}"

    def t_p_values(self) -> Array:
        """p-values of (estimate - null) / std_error against t; NaN without an error or a null value."""
        return intervals.t_p_value(self._distance(), self._error(), self.evidence.df)

    def _error(self) -> Array:
        """Standard errors; NaN where nothing varies and for estimands that are not smooth."""
        usable = np.array(self.smooth) & (self.evidence.std_error > 0)
        return np.where(usable, self.evidence.std_error, np.nan)

    def _distance(self) -> Array:
        """Estimates minus their values under no difference; NaN where that has no meaning."""
        nulls = np.array([np.nan if null is None else null for null in self.nulls])
        distance: Array = self.evidence.estimate - nulls
        return distance

    def _verdict(self, low: float, high: float, inner: intervals.Ends | None, e: int) -> Verdict:
        null = self.nulls[e]
        if null is None:
            return "undecided"
        return verdict(
            low - null,
            high - null,
            margin=self.options.margin,
            inner=None if inner is None else (float(inner.low[e]) - null, float(inner.high[e]) - null),
            higher_is_better=self.options.higher_is_better,
        )

    def _displayed(
        self, choices: Sequence[Choice], conf_level: float
    ) -> tuple[intervals.Ends, NDArray[np.bool_]]:
        """The chosen intervals, and where a degenerate BCa gave way to the percentile interval."""
        replaced = np.zeros(len(choices), dtype=bool)
        low = np.full(len(choices), np.nan)
        high = np.full(len(choices), np.nan)
        for method in {choice.method for choice in choices}:
            chosen = np.array([choice.method == method for choice in choices])
            ends = self.ends(method, conf_level)
            low[chosen], high[chosen] = ends.low[chosen], ends.high[chosen]
            if method == "bca" and (lost := chosen & np.isnan(low)).any():
                fallback = self.ends("percentile", conf_level)
                low[lost], high[lost] = fallback.low[lost], fallback.high[lost]
                replaced |= lost
        return intervals.Ends(low, high), replaced

    def _stated(
        self, e: int, choice: Choice, low: float, *, replaced: bool, conf_level: float
    ) -> tuple[str, str | None, str]:
        """Status, reason and method of one row."""
        status, reason, method = choice.status, choice.reason, METHODS[choice.method]
        if not np.isfinite(self.evidence.estimate[e]):
            return "undefined", "the estimand is not finite for these data", METHODS["none"]
        if replaced:
            status, reason = _also(status, reason, "BCa is degenerate here: percentile is shown")
        if replaced or choice.method in ("percentile", "basic"):
            method = self.percentile_method(e, "percentile" if replaced else choice.method)
        drawn = choice.method in BY_QUANTILES and self.evidence.laws[e] is None
        if drawn and (doubt := too_few(self.options.n_resamples, conf_level)):
            status, reason = _also(status, reason, doubt)
        if choice.method != "none" and np.isnan(low):
            status, reason, method = "undefined", "no replicate is finite", METHODS["none"]
        for doubt in self.evidence.doubts(e):
            status, reason = _also(status, reason, doubt)
        test = self.tests[e]
        if test is not None:
            method += f"; permutation by cluster, {test.how}"
        elif self.kind == "contrast" and self.by_t:
            method += "; t test"
        return status, reason, method


def _also(status: str, reason: str | None, extra: str) -> tuple[str, str]:
    """A status with one more doubt; one that withholds the interval stays."""
    return "warning" if status == "ok" else status, f"{reason}; {extra}" if reason else extra


def infer(
    plan: Plan, *, kind: Literal["mean", "contrast"], options: Options, compared: bool = True
) -> tuple[Family, tuple[Note, ...]]:
    """Evidence and tests of the blocks of a plan.

    Unless contrasts are `compared` under several intervals, replicates are made only where the interval
    that is shown ends at their quantiles; with more than `MANY_CLUSTERS` they are not compared, nor permuted.
    """
    blocks, totals = plan.blocks, plan.totals
    one_axis = len(totals.axes) == 1
    drawn = options.interval not in ("auto", "jackknife-t")
    rough = any(not block.target.estimand.smooth for block in blocks)
    many = one_axis and len(totals.values) > MANY_CLUSTERS
    read = drawn or (kind == "contrast" and one_axis and ((compared and not many) or rough))
    evidence = gather_evidence(
        blocks,
        totals,
        n_resamples=options.n_resamples if read else 0,
        seed=options.seed,
        n_threads=options.n_threads,
        studentise=options.interval == "bootstrap-t",
    )
    tests: list[Permuted | None] = []
    for block in blocks:
        if kind == "contrast" and one_axis and not many:
            tests += block_tests(
                block,
                totals.values,
                n_resamples=options.n_resamples,
                seed=options.seed,
                n_threads=options.n_threads,
            )
        else:
            tests += [None] * len(block.groups)
    family = Family(
        rows=plan.rows,
        kind=kind,
        is_rate=tuple(block.is_rate for block in blocks for _ in block.groups),
        smooth=tuple(block.target.estimand.smooth for block in blocks for _ in block.groups),
        nulls=tuple(block.target.estimand.null for block in blocks for _ in block.groups),
        evidence=evidence,
        n_rows=tuple(number for block in blocks for number in block.n_rows),
        tests=tuple(tests),
        options=options,
        n_axes=len(totals.axes),
        many=many,
    )
    notes = (_by_t_note(len(totals.values)),) if many and kind == "contrast" else ()
    lost = ~np.isfinite(evidence.replicates)
    if not lost.any():
        return family, notes
    share = float(lost.any(axis=1).mean())
    return family, (
        *notes,
        Note(
            "undefined_replicates",
            f"In {share:.1%} of the replicates some estimate is undefined (no data drawn for it); its "
            "bootstrap intervals use the others.",
            "caution",
        ),
    )


def _by_t_note(n_clusters: int) -> Note:
    return Note(
        "many_clusters",
        f"{n_clusters:,} clusters: above {MANY_CLUSTERS:,} p-values are those of the cluster jackknife "
        "t test, not of a permutation, and `sensitivity` has no bootstrap intervals unless `interval` asks "
        "for one.",
    )
