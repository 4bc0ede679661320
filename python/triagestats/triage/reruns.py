"""compare_reruns: conditions compared by their runs, beside the interval that questions give."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.blocks import contrast_targets
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Difference, Estimand, Function, Mean
from triagestats.inference import Family, Options
from triagestats.labels import listed
from triagestats.permute import permutation_test
from triagestats.plan import contrast_plan, targets_of
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Alternative, Note, Test
from triagestats.sign_tests import sign_test
from triagestats.triage.contrasts import family_of
from triagestats.triage.rerun_result import RELATIVE, RerunComparison
from triagestats.triage.run_values import RunValues, Unit, runs_of_numbers, runs_of_table, table_of_levels

if TYPE_CHECKING:
    pass

__all__ = ["compare_reruns"]


def compare_reruns(
    a: object,
    b: object = None,
    *,
    data: object = None,
    constant: float | None = None,
    model: str | None = None,
    unit: Unit = "run",
    paired: bool | None = None,
    alternative: Alternative = "two-sided",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> RerunComparison:
    """Exact comparison of conditions by their runs or forms, with the interval of the questions beside it.

    | what is compared | test | smallest one-sided p |
    |---|---|---|
    | n runs of `a`, m of `b` | which n of the n + m means are those of `a` | 1 / choose(n + m, n) |
    | n pairs of runs or forms | sign test of the differences | 2^-n |
    | n runs of `a`, and a constant | sign test of mean - constant | 2^-n |

    Parameters
    ----------
    a, b
        One mean score a run. With `data` two levels of its condition column.
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, of one model.
    constant
        Instead of `b`: a number, such as the share that guessing gets right.
    model
        The model, where `data` has several.
    unit
        `run`: the repetitions of the table; `form`: its variants.
    paired
        Whether the n-th run of `a` belongs to the n-th of `b`, or with `data` that of the same name.
        Default: forms do, runs do not.
    alternative
        `greater`: `a` tends to be larger; `less`.
    conf_level, n_resamples, seed, n_threads
        As in `analyze`; up to `n_resamples` arrangements of runs are enumerated.

    Returns
    -------
    RerunComparison
        `test` and its `p_value`, `runs`, and `tidy()` with means, run standard deviations, the absolute and
        the relative difference, (mean(a) - mean(b)) / mean(b); from `data` also by question.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says what would help.

    Notes
    -----
    A run here is the model asked all questions once more. Its p-value speaks of further runs (or forms) on
    the same questions: that five runs are completely apart from five others says nothing of other
    questions. With `data` the cluster jackknife by question stands beside it, and speaks of those; its
    p-value flips the conditions by question. Means of runs use the questions scored at both levels.

    References
    ----------
    Fisher, R. A. (1935), The Design of Experiments, Oliver and Boyd (permutation of what was assigned).

    Examples
    --------
    >>> import triagestats as ts
    >>> masked, full = [0.41, 0.42, 0.40, 0.43, 0.41], [0.52, 0.50, 0.53, 0.51, 0.52]
    >>> ts.compare_reruns(masked, full, alternative="less").p_value == 1 / 252
    True
    >>> ts.compare_reruns(masked, constant=0.25, alternative="greater").p_value == 1 / 32
    True
    >>> forms = [0.4, 0.5, 0.6, 0.5, 0.4, 0.5, 0.6], [0.5, 0.6, 0.7, 0.7, 0.5, 0.6, 0.7]
    >>> ts.compare_reruns(*forms, unit="form", alternative="less").p_value == 1 / 128
    True
    """
    valid_choice("unit", unit, Unit)
    valid_choice("alternative", alternative, Alternative)
    level = valid_level(conf_level)
    limit = _constant(b, constant)
    if paired is not None and not isinstance(paired, bool):
        raise ArgumentTypeError(f"`paired` must be True, False or None; got {paired!r}")
    if paired and limit is not None:
        raise ArgumentError("`paired` goes with two conditions; a constant has no runs")
    options = Options(
        interval="auto",
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
        margin=None,
        higher_is_better=True,
    )
    notes: list[Note] = []
    family: Family | None = None
    n_questions: int | None = None
    if data is None:
        if model is not None:
            raise ArgumentError("`model` goes with `data`; numbers are of one model")
        sides = [runs_of_numbers(a, "a")] + ([] if limit is not None else [runs_of_numbers(b, "b")])
    else:
        asked = [a] if limit is not None else [a, b]
        table, levels = table_of_levels(data, asked, ("a", "b"), model)
        if len(set(levels)) < len(asked):
            raise ArgumentError(f"`a` and `b` are both {levels[0]!r}; name two levels")
        design, found, said = runs_of_table(table, levels, unit)
        sides, n_questions = list(found), design.n_units
        family, doubts = _by_question(design, levels, options)
        notes += [*table.notes, *said, *doubts]
    by_pair = limit is None and (unit == "form" if paired is None else paired)
    if by_pair:
        sides = _pairs(sides, unit, notes, named=data is not None)
    test = _test(sides, limit, by_pair, alternative, options)
    names = (sides[0].name, f"{limit:g}" if limit is not None else sides[1].name)
    notes += [*_separated(sides, limit, unit), _speaks_of(test, unit, n_questions)]
    return RerunComparison(
        names=names,
        unit=unit,
        paired=by_pair,
        runs=pl.concat([side.frame() for side in sides]),
        test=test,
        conf_level=level,
        n_resamples=options.n_resamples,
        seed=options.seed,
        notes=tuple(notes),
        _rows=tuple(_run_rows(sides, limit, test, unit, names)),
        _family=family,
    )


def _constant(b: object, constant: object) -> float | None:
    """The constant, if it is what `a` is compared with."""
    if (b is None) == (constant is None):
        raise ArgumentError("give one of `b`, another condition, and `constant`, a number; not both")
    if constant is None:
        return None
    if isinstance(constant, bool) or not isinstance(constant, Real) or not np.isfinite(float(constant)):
        raise ArgumentTypeError(f"`constant` must be a finite number; got {constant!r}")
    return float(constant)


def _pairs(sides: list[RunValues], unit: Unit, notes: list[Note], *, named: bool) -> list[RunValues]:
    """Runs that belong together, side by side."""
    first, second = sides
    if not named:
        if len(first.values) != len(second.values):
            raise ArgumentError(
                f"`a` and `b` must pair: they have {len(first.values):,} and {len(second.values):,} {unit}s"
            )
        return sides
    shared = [label for label in first.labels if label in second.labels]
    if not shared:
        raise DesignError(
            f"no {unit} is in both conditions: {listed(first.labels)} against {listed(second.labels)}; "
            "compare them with paired=False"
        )
    if lost := len(set(first.labels) ^ set(second.labels)):
        message = f"{lost:,} {unit}s are in one condition only, and are left out of the pairs."
        notes.append(Note("unpaired", message, "caution"))
    return [side.only(shared) for side in sides]


def _test(
    sides: list[RunValues], limit: float | None, by_pair: bool, alternative: Alternative, options: Options
) -> Test:
    """The exact test of the runs."""
    if limit is not None or by_pair:
        against = np.full(len(sides[0].values), limit) if limit is not None else sides[1].values
        return sign_test(sides[0].values, against, alternative=alternative)
    values = np.concatenate([side.values for side in sides])
    groups = ["a"] * len(sides[0].values) + ["b"] * len(sides[1].values)
    found = permutation_test(
        values,
        groups=groups,
        statistic=Difference("a", "b"),
        alternative=alternative,
        n_resamples=options.n_resamples,
        seed=options.seed,
        n_threads=options.n_threads,
    )
    how = found.method.partition(", ")[2]
    return replace(found, method=f"permutation of runs between conditions, {how}")


def _by_question(
    design: Design, levels: tuple[str, ...], options: Options
) -> tuple[Family, tuple[Note, ...]]:
    """Means, their difference and its share of the second, by question."""
    estimands: list[Estimand] = [Mean(level) for level in levels]
    if len(levels) == 2:
        estimands.append(Difference(*levels))
        estimands.append(Function(_relative, [Mean(level) for level in levels], name=RELATIVE, null=0.0))
    targets = targets_of(design, estimands)[len(contrast_targets(design)) :]
    plan = contrast_plan(design, targets, match="cell", weights="scenario", metric=None, strata=False)
    if plan is None:
        raise DesignError(f"nothing is scored at {listed(levels)}")
    pooled = tuple(row for row in plan.rows if row.identity["model"] is None)
    return family_of(replace(plan, rows=pooled), options)


def _relative(values: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return values[..., 0] / values[..., 1] - 1.0


def _run_rows(
    sides: list[RunValues], limit: float | None, test: Test, unit: Unit, names: tuple[str, str]
) -> list[dict[str, Any]]:
    """Estimates at the level of the runs."""
    rows: list[dict[str, Any]] = []
    term = f"{unit}s"
    for side in sides:
        size = len(side.values)
        shared = {"term": term, "condition": side.name, "n_rows": size}
        rows.append(shared | {"estimand": "mean", "estimate": float(side.values.mean()), "status": "ok"})
        spread: dict[str, Any] = {"status": "undefined", "reason": f"one {unit} has no spread"}
        if size > 1:
            spread = {"estimate": float(side.values.std(ddof=1)), "status": "ok"}
        rows.append(shared | {"estimand": "run_sd"} | spread)
    other = limit if limit is not None else float(sides[1].values.mean())
    difference = float(sides[0].values.mean()) - other
    shared = {"term": term, "contrast": f"{names[0]} - {names[1]}", "n_rows": test.n}
    one_sided = "" if test.alternative == "two-sided" else f"; one-sided, {test.alternative}"
    rows.append(
        shared
        | {
            "estimand": "difference",
            "estimate": difference,
            "p_value": test.p_value,
            "method": test.method + one_sided,
            "status": "ok",
        }
    )
    relative: dict[str, Any] = {"status": "undefined", "reason": f"{names[1]} is 0"}
    if other:
        relative = {"estimate": difference / other, "status": "ok"}
    rows.append(shared | {"estimand": RELATIVE} | relative)
    return rows


def _separated(sides: list[RunValues], limit: float | None, unit: Unit) -> list[Note]:
    """A note where all runs of one condition lie on one side of the other."""
    first = sides[0].values
    other = np.array([limit]) if limit is not None else sides[1].values
    if first.min() > other.max():
        where = "above"
    elif first.max() < other.min():
        where = "below"
    else:
        return []
    against = f"{limit:g}" if limit is not None else f"all {len(other):,} of {sides[1].name}"
    message = f"All {len(first):,} {unit}s of {sides[0].name} lie {where} {against}."
    return [Note("separated", message)]


def _speaks_of(test: Test, unit: Unit, n_questions: int | None) -> Note:
    """What the p-value of runs generalises to."""
    p = "The p-value" if test.p_value is None else f"p = {test.p_value:.3g}"
    of = "the same questions" if n_questions is None else f"the same {n_questions:,} questions"
    message = f"{p} speaks of further {unit}s with {of}, not of other questions"
    rest = (
        "; what holds for those needs the responses, by question: give them as `data`."
        if n_questions is None
        else "; of those the interval by question speaks."
    )
    return Note("reruns", message + rest, "caution")
