"""ResponseTable: a frame of responses, the roles of its columns, the response scale, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from triagestats.arguments import valid_choice, valid_flag
from triagestats.canonical import Factor, canonical_frame, check_key, recluster
from triagestats.errors import ArgumentTypeError, DataError
from triagestats.ingest import to_polars
from triagestats.labels import listed
from triagestats.results import Note
from triagestats.roles import ROLE_ARGUMENTS, Assignment, RoleArgument, assign_roles
from triagestats.schema import KEY_ROLES, Unparsed
from triagestats.scoring import score_rows
from triagestats.table_steps import (
    carried_columns,
    key_order,
    left_out,
    no_rows,
    one_metric,
    present_factors,
    refuse_lacking,
    scale_of,
    scenario_in_task,
)

__all__ = ["ResponseTable"]


@dataclass(frozen=True, slots=True, init=False, eq=False)
class ResponseTable:
    """Responses of models to scenarios under conditions, one row a response (or a judgment of it).

    Parameters
    ----------
    data
        A dataframe (polars, lazy polars, pandas, pyarrow, duckdb, or any that narwhals knows), a mapping
        of columns, or a path to a csv, tsv, parquet or jsonl file, plain or gzip. It is never changed.
    scenario, model, condition, variant, repetition, judge, metric, response, gold, score, status, \
reason, task, source, cluster, stratum
        The column that plays each role; recognised by its usual spellings where not given, and False
        where none plays it. `condition` takes several columns; `gold` one column, a pair (low, high),
        or a column of ranges such as `C/D`; `cluster` one or two columns or roles; `metric` also takes
        the value to keep. A column plays one role, but `cluster` and `stratum` may name that of another.
    levels
        The response scale from least to most urgent. Needed to read gold ranges.
    higher_is_better
        Whether a larger score is the better one.
    unparsed
        What becomes of answers that could not be read: `as scored` (default) leaves them as the table
        has them, `wrong` scores them 0, `missing` takes their score away.

    Attributes
    ----------
    frame
        The canonical polars frame: role columns under the names of the roles, `score` (float),
        `status` and `reason`, then the other columns. Sorted by key, so that the order of the rows
        that came in changes nothing.
    factors
        The condition columns with their levels in order; the first level is the default reference.

    Raises
    ------
    RoleError
        If a named column is absent or named for two roles, or two columns could play one role.
    DataError
        If a key repeats, a score or label cannot be read, or an identifier is blank.

    Notes
    -----
    A row is correct when `gold_low <= response <= gold_high` in the order of `levels`; without
    `levels`, when the response equals the gold. NaN scores get the status `unscored`, null ones
    `missing`; a pandas column of numpy floats has no null, so that what is blank there is `unscored`, and
    `missing` in one of a nullable dtype.

    Key = scenario, model, condition(s), variant, repetition, judge, metric.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = ts.ResponseTable(
    ...     {"scenario": ["a", "a", "b"], "response": ["C", "D", "A"], "gold": ["C/D", "C/D", "B"],
    ...      "model": ["m", "n", "m"]},
    ...     levels=["A", "B", "C", "D"],
    ... )
    >>> table.frame["score"].to_list()
    [1.0, 1.0, 0.0]
    """

    frame: pl.DataFrame
    roles: Assignment
    factors: tuple[Factor, ...]
    levels: tuple[str, ...] | None
    higher_is_better: bool
    unparsed: Unparsed
    notes: tuple[Note, ...]

    def __init__(
        self,
        data: object,
        *,
        scenario: RoleArgument = None,
        model: RoleArgument = None,
        condition: RoleArgument = None,
        variant: RoleArgument = None,
        repetition: RoleArgument = None,
        judge: RoleArgument = None,
        metric: RoleArgument = None,
        response: RoleArgument = None,
        gold: RoleArgument = None,
        score: RoleArgument = None,
        status: RoleArgument = None,
        reason: RoleArgument = None,
        task: RoleArgument = None,
        source: RoleArgument = None,
        cluster: RoleArgument = None,
        stratum: RoleArgument = None,
        levels: Sequence[str] | None = None,
        higher_is_better: bool = True,
        unparsed: Unparsed = "as scored",
    ) -> None:
        given = {role: value for role, value in locals().items() if role in ROLE_ARGUMENTS}
        scale = scale_of(levels)
        valid_choice("unparsed", unparsed, Unparsed)
        valid_flag("higher_is_better", higher_is_better)
        if isinstance(data, ResponseTable):
            raise ArgumentTypeError(
                "`data` is a ResponseTable already; use it, or give what it was made from"
            )
        came = to_polars(data)
        raw = came.frame
        if raw.height == 0:
            raise no_rows(raw.columns)
        roles = assign_roles(raw.columns, given)
        refuse_lacking(roles, raw.columns)
        frame, factors = canonical_frame(raw, roles)
        frame, metric_note = one_metric(frame, roles, several=came.settled)
        frame, task_note = scenario_in_task(frame, roles)
        frame, scoring_notes = score_rows(
            frame, levels=scale, unparsed=unparsed, decimal_comma=came.decimal_comma, settled=came.settled
        )
        frame = key_order(frame)
        check_key(frame, roles, carried_columns(frame))
        self._fill(
            frame=frame,
            roles=roles,
            factors=present_factors(frame, factors),
            levels=scale,
            higher_is_better=higher_is_better,
            unparsed=unparsed,
            notes=(*came.notes, *metric_note, *task_note, *scoring_notes),
        )

    def _fill(self, **values: Any) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, values[field.name])

    def _with(self, **changes: Any) -> ResponseTable:
        copy = object.__new__(ResponseTable)
        copy._fill(**{field.name: getattr(self, field.name) for field in fields(self)} | changes)
        return copy

    def with_judgments(self, judgments: object, **roles: RoleArgument) -> ResponseTable:
        """Responses scored by a second table that has one row a judgment.

        Parameters
        ----------
        judgments
            A table as `ResponseTable` takes it: the key of the response, a judge, and a label or a score.
        **roles
            The columns of `judgments`, as in `ResponseTable`; recognised where not given.

        Returns
        -------
        ResponseTable
            One row a judgment for the responses that were judged, the other rows as they were. A label and
            a score that a judged response had itself are carried as `own_response` and `own_score`; what
            else the judgments hold is carried too, as `judgment.name` where the responses have that name.

        Raises
        ------
        DataError
            If a judgment fits no response or several, a judge judges a response twice, or the table
            already names judges.

        Examples
        --------
        >>> import triagestats as ts
        >>> responses = ts.ResponseTable(
        ...     {"scenario": ["a", "b"], "response": [None, "no"], "gold": ["yes", "no"]}
        ... )
        >>> judged = responses.with_judgments(
        ...     {"scenario": ["a", "a"], "judge": ["x", "y"], "label": ["yes", "no"]}
        ... )
        >>> judged.frame.select("scenario", "judge", "score").rows()
        [('a', 'x', 1.0), ('a', 'y', 0.0), ('b', None, 1.0)]
        """
        from triagestats.judgments import attach_judgments

        frame, notes = attach_judgments(self, judgments, roles)
        return self._with(frame=key_order(frame), notes=(*self.notes, *notes))

    def with_cluster(self, cluster: RoleArgument) -> ResponseTable:
        """The same responses resampled by another column, two crossed columns, or (False) the scenario.

        Parameters
        ----------
        cluster
            One or two columns of the frame, or roles that it has.

        Raises
        ------
        RoleError
            If there is no such column.
        """
        frame, roles = recluster(self.frame, self.roles, cluster)
        return self._with(frame=frame, roles=roles)

    def with_frame(self, frame: pl.DataFrame, *, factors: tuple[Factor, ...] | None = None) -> ResponseTable:
        """The same table with other rows or scores; `frame` has the canonical columns.

        Levels of conditions that no row has are dropped; with `factors` the conditions are these.
        """
        present = present_factors(frame, self.factors if factors is None else factors)
        return self._with(frame=key_order(frame), factors=present)

    def with_metric(self, metric: str, *, higher_is_better: bool | None = None) -> ResponseTable:
        """The responses with the scores of one metric, where a reader found several.

        Parameters
        ----------
        metric
            A metric that the table has.
        higher_is_better
            Whether a larger score is the better one; as it was where not given.

        Raises
        ------
        DataError
            If it does not.

        Examples
        --------
        >>> import triagestats as ts
        >>> table = ts.ResponseTable(
        ...     {"scenario": ["a", "b"], "metric": ["match", "match"], "score": [1, 0]}
        ... )
        >>> table.with_metric("match").metrics
        ('match',)
        """
        if metric not in self.metrics:
            raise DataError(
                f"`metric` must be a metric of the table, one of {listed(self.metrics)}; got {metric!r}"
            )
        kept = self.frame.filter(pl.col("metric") == metric)
        left = self.frame.height - kept.height
        return self._with(
            frame=kept,
            factors=present_factors(kept, self.factors),
            higher_is_better=self.higher_is_better if higher_is_better is None else higher_is_better,
            notes=(*self.notes, *left_out(metric, left)),
        )

    def with_notes(self, *notes: Note) -> ResponseTable:
        """The same table with further notes."""
        return self._with(notes=(*self.notes, *notes))

    def with_judge(self, judge: str) -> ResponseTable:
        """The responses as one judge scored them, beside those that no judge did.

        Parameters
        ----------
        judge
            A judge that the table has.

        Raises
        ------
        DataError
            If it does not.

        Examples
        --------
        >>> import triagestats as ts
        >>> table = ts.ResponseTable(
        ...     {"scenario": ["a", "a", "b", "b"], "judge": ["x", "y", "x", "y"], "score": [1, 0, 1, 1]}
        ... )
        >>> table.with_judge("y").frame["score"].to_list()
        [0.0, 1.0]
        """
        if judge not in self.judges:
            raise DataError(
                f"`judge` must be a judge of the table, one of {listed(self.judges)}; got {judge!r}"
            )
        by = pl.col("judge")
        return self._with(frame=self.frame.filter(by.is_null() | (by == judge)))

    def with_unanimous_judges(self) -> ResponseTable:
        """The responses on which all judges gave one score, beside those that no judge scored.

        A note counts the others, which are left out.

        Examples
        --------
        >>> import triagestats as ts
        >>> table = ts.ResponseTable(
        ...     {"scenario": ["a", "a", "b", "b"], "judge": ["x", "y", "x", "y"], "score": [1, 0, 1, 1]}
        ... )
        >>> table.with_unanimous_judges().frame["scenario"].unique().to_list()
        ['b']
        """
        if "judge" not in self.frame.columns:
            return self
        key = [role for role in KEY_ROLES if role in self.frame.columns and role != "judge"]
        scores = pl.col("score").drop_nulls()
        rows = self.frame.with_columns(scores.n_unique().over(key).alias("_scores"))
        kept = rows.filter(pl.col("_scores") <= 1).drop("_scores")
        lost = rows.filter(pl.col("_scores") > 1).select(key).n_unique()
        message = f"{lost:,} responses on which the judges differ are left out."
        return self._with(
            frame=kept, notes=(*self.notes, *([Note("unanimous", message, "caution")] if lost else []))
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics, sorted; none where the table has no such column."""
        if "metric" not in self.frame.columns:
            return ()
        return tuple(self.frame["metric"].drop_nulls().unique().sort().to_list())

    def refuse_metrics(self) -> None:
        """Refuse scores of several metrics, which have no common scale.

        Raises
        ------
        DataError
            If the table has several; readers keep all that the files hold.
        """
        if len(self.metrics) > 1:
            raise DataError(
                f"`metric` has several values, {listed(self.metrics)}; choose one, for instance "
                f"`metric={self.metrics[0]!r}` (`with_metric` of a table)"
            )

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges, sorted; none where the table has no such column."""
        if "judge" not in self.frame.columns:
            return ()
        return tuple(self.frame["judge"].drop_nulls().unique().sort().to_list())

    def __repr__(self) -> str:
        scored = self.frame["score"].count()
        return (
            f"ResponseTable: {self.frame.height:,} rows, {scored:,} with a score, "
            f"{self.frame['scenario'].n_unique():,} scenarios; "
            + ", ".join(f"{role} = {'/'.join(columns)}" for role, columns in self.roles.columns.items())
        )
