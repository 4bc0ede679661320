"""permutation_tests: every contrast of a response table, with p-values adjusted over the family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice
from triagestats.blocks import Block, contrast_targets
from triagestats.design import Design, Reference, design_of
from triagestats.errors import DesignError
from triagestats.estimands import Estimand
from triagestats.permutation import MOST_LABELS, Family, Permuted, block_tests, max_t
from triagestats.plan import Plan, contrast_plan, targets_of
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Shown, notes_as_json, plain, tidy_frame
from triagestats.schema import SCHEMA_VERSION, Match, Weights
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ALPHA", "PermutationTests", "permutation_tests"]

ALPHA: Final = 0.05
"""A smallest p-value above this is worth a note."""


@dataclass(frozen=True, slots=True, eq=False)
class PermutationTests(Shown):
    """Permutation tests of a family of estimates.

    Attributes
    ----------
    frame
        One row an estimate with the columns of the glossary: `statistic` is (T - mu) / sd over the
        arrangements, `p_value` not adjusted, `p_adjusted` by single-step max-T.
    alternative, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> tests = ts.permutation_tests(ts.demo_table(), n_resamples=999)
    >>> isinstance(tests, ts.PermutationTests)
    True
    >>> (tests.tidy()["p_adjusted"] >= tests.tidy()["p_value"]).all()
    True
    """

    frame: pl.DataFrame
    alternative: Alternative
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]

    def tidy(self) -> pl.DataFrame:
        """One row an estimate."""
        return self.frame

    def glance(self) -> pl.DataFrame:
        """One row: size of the family and settings."""
        return pl.DataFrame(
            {
                "n_estimates": [self.frame.height],
                "n_tests": [self.frame["p_value"].count()],
                "smallest_p_adjusted": [self.frame["p_adjusted"].min()],
                "alternative": [self.alternative],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"smallest_p_adjusted": pl.Float64, "seed": pl.UInt64},
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "alternative": self.alternative,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "tests": plain(self.frame),
            "notes": notes_as_json(self.notes),
        }

    def __repr__(self) -> str:
        shown = self.frame.select(
            "contrast", "model", "stratum", "estimate", "p_value", "p_adjusted", "n_clusters"
        )
        kept = [name for name in shown.columns if shown[name].count()]
        with pl.Config(tbl_rows=40, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            table = str(shown.select(kept))
        return "\n".join([f"Permutation tests by cluster, {self.alternative}", table, *map(str, self.notes)])


def permutation_tests(
    data: object,
    *,
    estimands: Sequence[Estimand] | None = None,
    reference: Reference = None,
    match: Match = "cell",
    weights: Weights = "scenario",
    alternative: Alternative = "two-sided",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> PermutationTests:
    """Permutation tests of the contrasts of a response table, adjusted for their number.

    The labels of the levels are permuted within clusters, one relabelling a cluster for all its models,
    variants, repetitions and judges. With `z[e] = (T[e] - mu[e]) / sd[e]`, mean and standard deviation taken
    over the arrangements,

        p_value[e]    = #{|z*[e]| >= |z[e]|} / A
        p_adjusted[e] = #{max over e' of |z*[e']| >= |z[e]|} / A

    and `(b + 1) / (R + 1)` where R arrangements are drawn instead of all A enumerated.

    Parameters
    ----------
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, its columns under usual names.
    estimands
        What is tested, such as `[ts.Gap("alpha", ["beta", "gamma"])]`. Default: every level minus the
        reference.
    reference, match, weights
        As in `analyze`.
    alternative
        `two-sided`; `greater`: z* >= z; `less`: z* <= z.
    n_resamples
        R, and the most arrangements that are enumerated.
    seed
        A whole number; the same call gives the same answer.
    n_threads
        Threads; changes no result. Default: TRIAGESTATS_NUM_THREADS, else all cores.

    Returns
    -------
    PermutationTests
        One row an estimate, pooled and by model, for all rows and by stratum: all of these are the family.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used.
    DataError, RoleError
        If the table cannot be read.
    DesignError
        If there is no contrast with data, or there are two crossed cluster columns.
        All of these derive from `TriagestatsError`; the message says what would help.

    Notes
    -----
    Exact p-values come from an enumeration or a convolution of their own, so that `p_value` can be exact
    where `p_adjusted`, which needs the joint law, is drawn; it is never below `p_value`. Differences of
    two labels are flipped together, all with the sign of their cluster. Estimands of three or more labels
    are adjusted together where they name the same ones, and apart from the others, which is noted.
    Missing scores enter no estimate, as in `analyze`. Where mu is not known and estimated from drawn
    arrangements, ties across it are counted as in `permutation_test`.

    References
    ----------
    Westfall, P. H. and Young, S. S. (1993), Resampling-Based Multiple Testing, Wiley.
    Phipson, B. and Smyth, G. K. (2010), Permutation p-values should never be zero, Statistical
    Applications in Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> import triagestats as ts
    >>> tests = ts.permutation_tests(ts.demo_table(), n_resamples=999)
    >>> tests.tidy().select("contrast", "model", "n_clusters").row(0)
    ('letter - free_text', None, 17)
    """
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    valid_choice("alternative", alternative, Alternative)
    table = data if isinstance(data, ResponseTable) else ResponseTable(data)
    design = design_of(table, reference=reference)
    plan = _plan(table, design, estimands, match, weights)
    options: dict[str, Any] = {
        "n_resamples": valid_resamples(n_resamples, sum(len(block.groups) for block in plan.blocks)),
        "seed": valid_seed(seed),
        "alternative": alternative,
        "n_threads": thread_count(n_threads),
    }
    totals = plan.totals.values
    tests = [test for block in plan.blocks for test in block_tests(block, totals, **options)]
    families = _families(plan.blocks)
    adjusted = [max_t([plan.blocks[i] for i in members], totals, **options) for members in families]
    return PermutationTests(
        frame=_frame(plan, tests, families, adjusted, alternative),
        alternative=alternative,
        n_resamples=options["n_resamples"],
        seed=options["seed"],
        notes=(*table.notes, *design.notes, *_notes(tests, families)),
    )


def _plan(
    table: ResponseTable,
    design: Design,
    estimands: Sequence[Estimand] | None,
    match: Match,
    weights: Weights,
) -> Plan:
    if len(design.axes) > 1:
        raise DesignError(
            "a permutation within clusters needs one cluster column, and this table has two that cross; "
            "choose one with `table.with_cluster(...)`, or see the t test of `analyze`"
        )
    targets = targets_of(design, estimands)
    if estimands is not None:
        targets = targets[len(contrast_targets(design)) :]
    if not targets:
        raise DesignError("there is no contrast: the table has no condition with two levels or more")
    metric = table.frame["metric"][0] if "metric" in table.frame.columns else None
    found = contrast_plan(design, targets, match=match, weights=weights, metric=metric)
    if found is None:
        raise DesignError("no contrast has scores at all of its levels")
    return found


def _families(blocks: Sequence[Block]) -> tuple[tuple[int, ...], ...]:
    """Blocks that are adjusted together: all of two labels; of more, those with the same labels."""
    families: dict[object, list[int]] = {}
    for place, block in enumerate(blocks):
        levels = block.target.estimand.levels
        if not 2 <= len(levels) <= MOST_LABELS:
            continue
        kind = 2 if len(levels) == 2 else (block.target.term, frozenset(levels))
        families.setdefault(kind, []).append(place)
    return tuple(map(tuple, families.values()))


def _frame(
    plan: Plan,
    tests: Sequence[Permuted | None],
    families: Iterable[Sequence[int]],
    adjusted: Iterable[Family],
    alternative: Alternative,
) -> pl.DataFrame:
    totals = plan.totals.values
    starts = np.cumsum([0, *(len(block.groups) for block in plan.blocks)])
    statistic: NDArray[np.float64] = np.full(starts[-1], np.nan)
    p_adjusted = np.full(starts[-1], np.nan)
    ways: dict[int, str] = {}
    for members, family in zip(families, adjusted, strict=True):
        slots = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in members])
        statistic[slots], p_adjusted[slots] = family.statistic, family.p_adjusted
        how = "exact by enumeration" if family.exact else f"{family.n_arrangements:,} drawn"
        side = "" if alternative == "two-sided" else f"; one-sided, {alternative}"
        ways |= dict.fromkeys(slots.tolist(), f"max-T over {len(slots)}, {how}{side}")
    estimates = np.concatenate([block.evaluate(plan.totals.sums) for block in plan.blocks])
    n_clusters = np.concatenate([block.contributes(totals).sum(axis=0) for block in plan.blocks])
    n_rows = [number for block in plan.blocks for number in block.n_rows]
    rows = []
    for shown in plan.rows:
        if (e := shown.slot) is None:
            rows.append(shown.identity | {"status": "no_data", "reason": shown.reason})
            continue
        row = shown.identity | {
            "estimate": float(estimates[e]),
            "n_rows": n_rows[e],
            "n_clusters": int(n_clusters[e]),
        }
        if (test := tests[e]) is None:
            why = "the estimand is not finite" if e in ways else "no two to eight levels to permute"
            rows.append(row | {"status": "undefined", "reason": why, "method": "none"})
            continue
        reason = None
        if test.n_moving == 0:
            reason = "the levels do not differ in any cluster"
        elif test.smallest > ALPHA:
            few = f"{test.n_moving} cluster{'' if test.n_moving == 1 else 's'}"
            reason = f"p cannot be below {test.smallest:.3g} with {few} in which the levels differ"
        rows.append(
            row
            | {
                "statistic": float(statistic[e]),
                "p_value": test.p_value,
                "p_adjusted": max(float(p_adjusted[e]), test.p_value),
                "status": "ok" if reason is None else "warning",
                "reason": reason,
                "method": f"permutation by cluster, {test.how}; {ways[e]}",
            }
        )
    return tidy_frame(rows)


def _notes(tests: Sequence[Permuted | None], families: Sequence[Sequence[int]]) -> Iterable[Note]:
    if len(families) > 1:
        yield Note(
            "families",
            f"`p_adjusted` is made apart in {len(families)} families: estimands of two labels in one, those "
            "of three or more by the labels that they name. It does not cover all of them jointly.",
            "caution",
        )
    ways = {test.way for test in tests if test is not None}
    if "drawn" in ways and len(ways) > 1:
        yield Note("ways", "Some p-values are exact and others drawn; `method` says which.")
