"""error_direction: in which direction labels miss the gold range, and how that differs between conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level, valid_margin
from triagestats.design import Reference
from triagestats.errors import DesignError
from triagestats.estimands import Estimand
from triagestats.inference import Options
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, as_json
from triagestats.schema import Interval, Match, Weights
from triagestats.table import ResponseTable
from triagestats.triage.confusion import confusion_of
from triagestats.triage.costs import read_cost, read_costs
from triagestats.triage.error_families import Errors, errors_of
from triagestats.triage.outcomes import DIRECTION, Pool, has_direction, outcomes_of
from triagestats.triage.selection import column_named, table_of, with_stratum
from triagestats.triage.text import aligned

__all__ = ["ErrorDirection", "error_direction", "errors_of_table"]

_SHOWN: Final = (
    "estimand",
    "condition",
    "contrast",
    "stratum",
    "estimate",
    "conf_low",
    "conf_high",
    "p_value",
    "n_rows",
    "n_missing",
    "n_clusters",
)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorDirection(Shown):
    """Rates of labels below and above the gold range, and their differences between conditions.

    Attributes
    ----------
    rates
        One row a measure, condition, model (null: pooled) and stratum (null: all): `under_rate`,
        `over_rate`, `correct_rate`, `unreadable_rate` where some answers could not be read,
        `net_direction` (over minus under) and `error_cost` where costs were given.
    contrasts
        Level minus reference of `under_rate`, `over_rate`, `net_direction` and `error_cost`; None where
        nothing is compared. For rates and costs a negative contrast is the better one; a net direction
        has no better side and no verdict.
    confusion
        Counts of labels by gold range: `condition`, `model`, `gold`, `label`, `direction`, `n_labels`,
        and `n_responses`, in which a response counts once.
    n_missing
        Rows of the table, labels or responses, that have no direction and count nowhere.
    pool, match, weights, interval, conf_level, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> errors = ts.error_direction(ts.demo_table(), n_resamples=999)
    >>> isinstance(errors, ts.ErrorDirection), errors.with_level(0.9).rates["conf_level"][0]
    (True, 0.9)
    >>> errors.confusion.columns[:5]
    ['condition', 'model', 'gold', 'label', 'direction']
    """

    rates: pl.DataFrame
    contrasts: pl.DataFrame | None
    confusion: pl.DataFrame
    n_missing: int
    pool: Pool
    match: Match
    weights: Weights
    interval: Interval
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _errors: Errors

    def tidy(self) -> pl.DataFrame:
        """Rates, then contrasts, with the columns of the glossary."""
        return self.rates if self.contrasts is None else pl.concat([self.rates, self.contrasts])

    def glance(self) -> pl.DataFrame:
        """One row: labels by direction, and settings."""
        pooled = self.confusion.filter(pl.col("model").is_null())
        counts = dict(pooled.group_by("direction").agg(pl.col("n_labels").sum()).iter_rows())
        names = ("under", "correct", "over", "unreadable")
        return pl.DataFrame(
            {f"n_{name}": [counts.get(name, 0)] for name in names}
            | {
                "n_missing": [self.n_missing],
                "pool": [self.pool],
                "match": [self.match],
                "weights": [self.weights],
                "interval": [self.interval],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={f"n_{name}": pl.Int64 for name in names} | {"seed": pl.UInt64},
        )

    def with_level(self, conf_level: float) -> ErrorDirection:
        """The same replicates read at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        level = valid_level(conf_level)
        return replace(
            self,
            rates=self._errors.read_rates(level),
            contrasts=self._errors.read_contrasts(level),
            conf_level=level,
        )

    def to_dict(self) -> dict[str, Any]:
        """Frames, notes and settings as plain JSON values."""
        return as_json(self, rates=self.rates, contrasts=self.contrasts, confusion=self.confusion)

    def __repr__(self) -> str:
        pools = {"labels": "every label counts", "responses": "labels averaged within responses"}
        lines = [f"Direction of error: {pools[self.pool]}, {self.conf_level:.4g} intervals, models pooled"]
        for frame in (self.rates, self.contrasts):
            if frame is not None:
                lines += aligned(frame.filter(pl.col("model").is_null()), _SHOWN)
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def error_direction(
    data: object,
    *,
    levels: Sequence[str] | None = None,
    pool: Pool = "labels",
    cost: object = None,
    cost_unreadable: float | None = None,
    by: str | None = None,
    reference: Reference = None,
    estimands: Sequence[Estimand] | None = None,
    match: Match = "cell",
    weights: Weights = "scenario",
    interval: Interval = "auto",
    margin: float | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> ErrorDirection:
    """Rates of labels under and over the gold range, with uncertainty by cluster.

    With labels and gold in the order of the scale,

        under = 1[label < gold_low],  over = 1[label > gold_high],  net = over - under,
        cost  = C[g, label] with g the end of [gold_low, gold_high] nearest to the label

    Their means are taken over the same cells, models and strata as the rates of `analyze`, and their
    differences between conditions over the same matched keys.

    Parameters
    ----------
    data
        A `ResponseTable` with `levels`, labels and gold; or a table that `ResponseTable(data)` takes, its
        columns under usual names.
    levels
        The scale from least to most urgent, where `data` is no ResponseTable.
    pool
        `labels`: each judge's label counts, so that a response with two labels weighs twice that of one
        within its cell; `responses`: the judges of a response are averaged first, as in `analyze`. They
        differ where responses of a cell have unequal numbers of labels.
    cost
        C, costs of at least 0: rows (gold) of columns (label) in the order of the scale, a frame, or a
        mapping from (gold, label), or from gold to a mapping from label. None: no mean cost.
    cost_unreadable
        Cost of an answer that could not be read. None leaves those out of the mean cost, with a note.
    by
        A column whose values are subgroups. Default: the stratum of the table.
    reference, estimands, match, weights, interval, conf_level, n_resamples, seed, n_threads
        As in `analyze`.
    margin
        The smallest difference that matters, for the verdicts of the contrasts.

    Returns
    -------
    ErrorDirection
        `rates`, `contrasts` and `confusion`.

    Raises
    ------
    DesignError
        If the scale has no order, there are no labels or no gold, or fewer than two clusters.
    DataError
        If gold lies outside the scale, or the table cannot be read.
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used.
        All of these derive from `TriagestatsError`; the message says what would help.

    Notes
    -----
    A row counts where its score counts in `analyze` and it has gold and a label. An answer that could not be
    read has no label: where the table scores it 0 (`unparsed="wrong"`), it is `unreadable`, which is neither
    under nor over nor correct, and stays in the denominator; where it has no score, it is missing.

    Rates get the interval of Korn and Graubard after adding one all-right and one all-wrong cluster,
    differences the cluster jackknife with t(G - 1) and the p-value of a permutation of conditions within
    clusters, with fewer than 5 clusters no interval: as in `analyze`.

    References
    ----------
    Miller, E. (2024), Adding error bars to evals: a statistical approach to language model evaluations,
    arXiv:2411.00640.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = ts.ResponseTable(
    ...     {"scenario": ["a", "b", "c", "d", "e", "f"], "response": list("ABCDBC"),
    ...      "gold": ["B", "B", "C/D", "C", "C/D", "B/C"]},
    ...     levels=["A", "B", "C", "D"],
    ... )
    >>> errors = ts.error_direction(table)
    >>> errors.rates.select("estimand", "estimate").rows()[1]
    ('over_rate', 0.16666666666666666)
    >>> errors.glance().select("n_under", "n_correct", "n_over").row(0)
    (2, 3, 1)
    """
    valid_choice("pool", pool, Pool)
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    valid_choice("interval", interval, Interval)
    level = valid_level(conf_level)
    options = Options(
        interval=interval,
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
        margin=valid_margin(margin),
        higher_is_better=False,
    )
    unreadable = read_cost(cost_unreadable, "cost_unreadable")
    table = table_of(data, levels)
    if by is not None:
        table = with_stratum(table, column_named(table, by, "by"))
    costs, cost_notes = (None, ()) if cost is None or table.levels is None else read_costs(cost, table.levels)
    outcomes = outcomes_of(table, pool=pool, reference=reference, costs=costs, cost_unreadable=unreadable)
    found = errors_of(
        outcomes,
        estimands=estimands,
        match=match,
        weights=weights,
        metric=_metric_name(table),
        options=options,
    )
    return ErrorDirection(
        rates=found.read_rates(level),
        contrasts=found.read_contrasts(level),
        confusion=confusion_of(outcomes, table.levels or ()),
        n_missing=outcomes.frame[DIRECTION].null_count(),
        pool=pool,
        match=match,
        weights=weights,
        interval=interval,
        conf_level=level,
        n_resamples=options.n_resamples,
        seed=options.seed,
        notes=(*table.notes, *cost_notes, *found.notes),
        _errors=found,
    )


def errors_of_table(
    table: ResponseTable,
    *,
    reference: Reference,
    estimands: Sequence[Estimand] | None,
    match: Match,
    weights: Weights,
    options: Options,
) -> Errors | None:
    """The direction of error of a table for an analysis, judges averaged; None where it has no direction.

    Rates of right answers, and notes on the design and on families of p-values, are left out; the analysis
    has them.
    """
    if not has_direction(table):
        return None
    try:
        outcomes = outcomes_of(table, pool="responses", reference=reference)
    except DesignError:  # no row has a label that counts and gold
        return None
    own = outcomes.notes[len(outcomes.design.notes) :]
    found = errors_of(
        replace(
            outcomes,
            rows=outcomes.rows.drop("correct_rate"),
            notes=tuple(note for note in own if note.code not in ("judges", "missing")),
        ),
        estimands=estimands,
        match=match,
        weights=weights,
        metric=_metric_name(table),
        options=replace(options, higher_is_better=False, margin=None),
    )
    return replace(found, notes=tuple(note for note in found.notes if note.code != "families"))


def _metric_name(table: ResponseTable) -> str | None:
    return table.frame["metric"][0] if "metric" in table.frame.columns else None
