"""Two response tables as one, whose condition column is the run, with what they do not share left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from triagestats.canonical import Factor, joint_condition
from triagestats.errors import DataError, DesignError
from triagestats.labels import counted, in_task, listed, n_rows
from triagestats.results import Note
from triagestats.table import ResponseTable
from triagestats.table_steps import IN_TASKS

__all__ = ["LeftOut", "Together", "together"]

_KEPT: Final = ("scenario", "task", "model", "variant", "repetition", "judge", "stratum", "score", "status")
_RUN: Final = ("run", "compared run", "the run that is compared")
_FIXES: Final = {
    "model": "give runs of one model each, which pair whatever their names, or of models with the same names",
    "variant": "give runs of one variant each, or of variants with the same names",
    "condition": "keep one level of it in each run, which pair whatever their names, or levels with the same "
    "names",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows of a run that cannot pair, as the other run lacks their task, model, condition or variant."""

    run: Literal["a", "b"]
    role: str
    level: str
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Two runs in one table.

    Attributes
    ----------
    table
        The rows of both runs; the first condition column is the run, its reference the baseline.
    factor
        What the condition column of the run is called.
    models
        The models of each run that take part.
    has_repetitions
        Whether both runs number repetitions, so that these can be aligned.
    left_out
        What one run alone has.
    notes
        Choices made and doubts.
    """

    table: ResponseTable
    factor: str
    models: tuple[tuple[str, ...], tuple[str, ...]]
    has_repetitions: bool
    left_out: tuple[LeftOut, ...]
    notes: tuple[Note, ...]

    @property
    def references(self) -> dict[str, str | float]:
        """The first level of each condition column; that of the run is the baseline."""
        return {factor.name: factor.levels[0] for factor in self.table.factors}


def together(a: ResponseTable, b: ResponseTable, names: tuple[str, str]) -> Together:
    """Both runs in one table, restricted to the tasks, models, conditions and variants that they share.

    Where each run has one model (one condition, one variant) these pair whatever their names: they are what
    the runs differ in. Tasks pair by name alone.

    Raises
    ------
    DataError
        If the runs share no task, model, condition or variant.
    DesignError
        If they are clustered by different numbers of columns.
    """
    others = _other_factors(a, b)
    aligning = _Aligning([_frame(a, others[0]), _frame(b, others[1])], names)
    aligning.pair_tasks()
    if aligning.pair("model", "model", "the models"):
        models = (aligning.levels("model")[0],) * 2
    else:
        models = aligning.kept
    aligning.pair("variant", "variant", "the variants")
    factors = []
    for factor in _merged(others):
        if aligning.pair(factor.column, "condition", f"the levels of {factor.name!r}"):
            kept = aligning.levels(factor.column)[0]
            order = tuple(level for level in factor.levels if level in kept)
            factors.append(Factor(factor.name, factor.column, order, factor.declared))
    aligning.pair_clusters(a, b)
    aligning.pair_strata()
    has_repetitions = aligning.pair_repetitions()
    aligning.compare_judges()
    taken = {factor.name for factor in factors}
    name = next(own for own in _RUN if own not in taken)
    run = Factor(name, f"condition[{name}]" if factors else "condition", names, declared=True)
    frame = pl.concat(
        [
            side.with_columns(pl.lit(label).alias(run.column))
            for side, label in zip(aligning.frames, names, strict=True)
        ],
        how="diagonal",
    )
    if factors:
        all_factors = (run, *factors)
        frame = frame.with_columns(joint_condition(all_factors, [frame[f.column] for f in all_factors]))
    base = a if "cluster" in a.roles else b
    return Together(
        table=base.with_frame(frame, factors=(run, *factors)),
        factor=name,
        models=(tuple(models[0]), tuple(models[1])),
        has_repetitions=has_repetitions,
        left_out=tuple(aligning.left_out),
        notes=(*_own_notes(a, b, names), *aligning.notes),
    )


def _other_factors(
    a: ResponseTable, b: ResponseTable
) -> tuple[tuple[tuple[str, Factor], ...], tuple[tuple[str, Factor], ...]]:
    """Condition columns of each run under the names that they pair by; two single ones are one."""
    if len(a.factors) == len(b.factors) == 1:
        name = a.factors[0].name
        return ((name, a.factors[0]),), ((name, b.factors[0]),)
    return tuple((f.name, f) for f in a.factors), tuple((f.name, f) for f in b.factors)


def _merged(others: Sequence[Sequence[tuple[str, Factor]]]) -> list[Factor]:
    """The condition columns of both runs, each with the levels of both in order."""
    levels: dict[str, dict[str, None]] = {}
    declared: dict[str, bool] = {}
    for side in others:
        for name, factor in side:
            levels.setdefault(name, {}).update(dict.fromkeys(factor.levels))
            declared[name] = declared.get(name, True) and factor.declared
    return [Factor(name, f"condition[{name}]", tuple(levels[name]), declared[name]) for name in levels]


def _frame(table: ResponseTable, factors: Sequence[tuple[str, Factor]]) -> pl.DataFrame:
    """The rows of a run with what aligns, clusters and scores them; scenarios under their own names."""
    frame = table.frame
    own = [name for name in frame.columns if name in _KEPT or name.startswith("cluster_")]
    selected = frame.select(
        *own, *(pl.col(factor.column).alias(f"condition[{name}]") for name, factor in factors)
    )
    if "task" not in selected.columns:
        return selected
    if selected["task"].null_count() == selected.height:
        return selected.drop("task")
    if any(note.code == IN_TASKS for note in table.notes):  # also where rows of one task are left
        item = pl.col("scenario").str.strip_prefix(pl.col("task") + "/")
        clusters = [
            f"cluster_{place + 1}"
            for place, name in enumerate(table.roles.columns.get("cluster", ()))
            if name == table.roles.one("scenario")
        ]
        selected = selected.with_columns(item, *(item.alias(name) for name in clusters))
    return selected


class _Aligning:
    """Two frames on their way to one, with what was left out and said."""

    def __init__(self, frames: list[pl.DataFrame], names: tuple[str, str]) -> None:
        self.frames = frames
        self.names = names
        self.left_out: list[LeftOut] = []
        self.notes: list[Note] = []
        self.kept: tuple[list[str], list[str]] = ([], [])

    def levels(self, column: str) -> tuple[list[str], list[str]]:
        """What each run has in a column, sorted; nothing where it has no such column."""
        a, b = (
            frame[column].drop_nulls().unique().sort().to_list() if column in frame.columns else []
            for frame in self.frames
        )
        return a, b

    def pair(self, column: str, role: str, what: str) -> bool:
        """Keep the levels of a column that both runs have; whether several are left, so that it is needed.

        Raises
        ------
        DataError
            If no level is in both, and a run has several.
        """
        a, b = self.kept = self.levels(column)
        if len(a) <= 1 and len(b) <= 1:
            if a != b:
                said = ", ".join(
                    f"{repr(own[0]) if own else 'none named'} in {n}"
                    for own, n in zip((a, b), self.names, strict=True)
                )
                self.notes.append(Note(f"{role}s_differ", f"The runs differ in {what}, {said}; these pair."))
            self._drop(column)
            return False
        shared = [level for level in a if level in b]
        if not shared:
            has = [
                f"`{side}` has {listed(own) if own else 'none'}"
                for side, own in zip("ab", (a, b), strict=True)
            ]
            raise DataError(
                f"`{role}`: of {what} {has[0]} and {has[1]}, so that none is in both; {_FIXES[role]}"
            )
        self._keep(column, role, shared)
        self.kept = (shared, shared)
        if len(shared) == 1:
            self._drop(column)
        return len(shared) > 1

    def pair_tasks(self) -> None:
        """Keep the tasks that both runs have, and name the scenarios task/item where there are several.

        Raises
        ------
        DataError
            If no task is in both.
        """
        a, b = self.levels("task")
        if a and b:
            shared = [task for task in a if task in b]
            if not shared:
                raise DataError(
                    f"`task`: `a` has {listed(a)} and `b` has {listed(b)}, so that none is in both; items of "
                    "different tasks are different questions and do not pair"
                )
            self._keep("task", "task", shared)
            several = len(shared) > 1
        else:
            several = len(a) > 1 or len(b) > 1
            if a or b:
                self.notes.append(
                    Note(
                        "task",
                        f"{self.names[0 if b else 1]} names no tasks: scenarios pair by their labels.",
                        "caution",
                    )
                )
        if several:
            self.frames = [
                frame.with_columns(in_task().alias("scenario")) if "task" in frame.columns else frame
                for frame in self.frames
            ]
        self._drop("task")

    def pair_clusters(self, a: ResponseTable, b: ResponseTable) -> None:
        """Scenarios have the clusters that a run names, also in the run that names none.

        Raises
        ------
        DesignError
            If the runs are clustered by different numbers of columns, or what one run says of the clusters of
            its scenarios cannot be said of those of the other.
        """
        named = [table.roles.columns.get("cluster", ()) for table in (a, b)]
        if named[0] == named[1] == ():
            return
        if named[0] and named[1]:
            if len(named[0]) != len(named[1]):
                raise DesignError(
                    f"`cluster` is {list(named[0])} in `a` and {list(named[1])} in `b`; cluster both alike"
                )
            if named[0] != named[1]:
                said = (
                    f"{'/'.join(named[0])!r} in {self.names[0]} and {'/'.join(named[1])!r} in {self.names[1]}"
                )
                self.notes.append(Note("clusters_named", f"The cluster column is {said}."))
            return
        known, open_ = (0, 1) if named[0] else (1, 0)
        columns = [f"cluster_{place + 1}" for place in range(len(named[known]))]
        of_scenario = self.frames[known].select("scenario", *columns).unique()
        if of_scenario["scenario"].is_duplicated().any():
            raise DesignError(
                f"`cluster` is given in `{'ab'[known]}` alone, where it does not follow from the scenario; "
                "give it in both"
            )
        joined = self.frames[open_].join(of_scenario, on="scenario", how="left", maintain_order="left")
        self.frames[open_] = joined.with_columns(
            pl.col(name).fill_null(pl.col("scenario")) for name in columns
        )
        message = f"{self.names[open_]} names no clusters: its scenarios have those of {self.names[known]}."
        self.notes.append(Note("clusters_taken_over", message))

    def pair_strata(self) -> None:
        """Subgroups are reported where both runs name them."""
        a, b = ("stratum" in frame.columns for frame in self.frames)
        if a != b:
            message = f"{self.names[0 if b else 1]} names no strata: subgroups are not reported."
            self.notes.append(Note("strata", message))
            self._drop("stratum")

    def pair_repetitions(self) -> bool:
        """Whether both runs number repetitions."""
        a, b = ("repetition" in frame.columns for frame in self.frames)
        if a != b:
            at = 0 if a else 1
            if len(self.levels("repetition")[at]) > 1:
                message = (
                    f"{self.names[1 - at]} numbers no repetitions: those of {self.names[at]} are averaged, "
                    "and the averages pair."
                )
                self.notes.append(Note("repetitions_unnumbered", message))
        return a and b

    def compare_judges(self) -> None:
        """A note where the runs were scored by different judges."""
        a, b = self.levels("judge")
        if a != b:
            said = " and ".join(
                f"{', '.join(own) or 'no judge'} in {n}" for own, n in zip((a, b), self.names, strict=True)
            )
            message = f"The judges differ, {said}: a difference of the runs may be one of the judges."
            self.notes.append(Note("judges_differ", message, "caution"))

    def _keep(self, column: str, role: str, shared: list[str]) -> None:
        for place, (run, name) in enumerate(zip(("a", "b"), self.names, strict=True)):
            frame = self.frames[place]
            lost = frame.filter(~pl.col(column).is_in(shared) | pl.col(column).is_null())
            if lost.is_empty():
                continue
            counts = lost[column].fill_null("(none)").value_counts().sort(column)
            self.left_out += [LeftOut(run, role, level, count) for level, count in counts.iter_rows()]  # type: ignore[arg-type]  # a or b
            what = counted(counts.height, role)
            message = (
                f"{name} alone has {what}, {listed(counts[column])}: {n_rows(lost.height)} "
                f"{'is' if lost.height == 1 else 'are'} left out."
            )
            self.notes.append(Note("left_out", message, "caution"))
            self.frames[place] = frame.filter(pl.col(column).is_in(shared))

    def _drop(self, column: str) -> None:
        self.frames = [frame.drop(column, strict=False) for frame in self.frames]


def _own_notes(a: ResponseTable, b: ResponseTable, names: tuple[str, str]) -> list[Note]:
    """What is to be said of each run; once where it is the same."""
    both = [note for note in a.notes if note in b.notes]
    found = list(both)
    for table, name in zip((a, b), names, strict=True):
        found += [Note(n.code, f"{name}: {n.message}", n.level) for n in table.notes if n not in both]
    return found
