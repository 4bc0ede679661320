"""What each label says of the gold range: below it, within it, above it, or unreadable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from triagestats.design import Design, Reference, design_of
from triagestats.errors import DataError, DesignError
from triagestats.labels import n_rows
from triagestats.results import Note
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "DIRECTION",
    "HIGH",
    "LABEL",
    "LOW",
    "VALUE",
    "Direction",
    "Kind",
    "Outcomes",
    "Pool",
    "directed",
    "direction_of",
    "has_direction",
    "outcomes_of",
    "unit_values",
]

Pool = Literal["labels", "responses"]
Kind = Literal["under", "over", "wrong", "correct"]
Direction = Literal["under", "correct", "over", "unreadable"]

LOW: Final = "_low"
HIGH: Final = "_high"
LABEL: Final = "_label"
DIRECTION: Final = "_direction"
VALUE: Final = "_value"
_KEY: Final = ("unit", "model", "level", "variant", "repetition", "stratum")


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """The direction of every label, and what is resampled.

    Attributes
    ----------
    design
        The design; its responses are labels, or with `pool="responses"` responses.
    rows
        One row a label or a response: its key as in the design, and one column a measure, null where it has
        none.
    frame
        The rows of the table with their places on the scale and their `_direction`.
    repetitions
        At each level, the most responses of one cell.
    notes
        Choices made and doubts.
    """

    design: Design
    rows: pl.DataFrame
    frame: pl.DataFrame
    repetitions: tuple[int, ...]
    notes: tuple[Note, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, in order."""
        return tuple(name for name in self.rows.columns if name in _MEASURES)

    def of(self, measure: str) -> Design:
        """The design with one measure as its score."""
        key = [name for name in _KEY if name in self.rows.columns]
        values = self.rows[measure]
        return replace(
            self.design,
            responses=self.rows.select(*key, values.alias("score"), "n_judges", "status"),
            is_rate=bool(values.drop_nulls().is_between(0, 1).all()),
        )

    def paired(self, design: Design) -> Design:
        """The same for contrasts, which pair responses and not labels."""
        if design.repetitions == self.repetitions:
            return design
        return replace(design, repetitions=self.repetitions)


_MEASURES: Final = (
    "under_rate",
    "over_rate",
    "correct_rate",
    "unreadable_rate",
    "net_direction",
    "error_cost",
)


def has_direction(table: ResponseTable) -> bool:
    """Whether a table has an ordered scale, labels and gold."""
    return table.levels is not None and {"response", "gold_low"} <= set(table.frame.columns)


def directed(table: ResponseTable) -> pl.DataFrame:
    """The frame of a table with `_low`, `_high`, `_label` (places on the scale) and `_direction`.

    A row has a direction where its score counts, it has gold, and either a label or the status `unparsed`.

    Raises
    ------
    DesignError
        If the scale has no order, or there are no labels, no gold, or no row with both.
    """
    if table.levels is None:
        raise DesignError(
            "the labels have no order, so that nothing is under or over; give the scale from least to most "
            "urgent with `levels=[...]` where the table is made"
        )
    for column, role in (("response", "response"), ("gold_low", "gold")):
        if column not in table.frame.columns:
            raise DesignError(
                f"the direction of an error needs labels and gold, and the table has no `{role}`; name its "
                f"column with `{role}=` where the table is made"
            )
    rank = {level: place for place, level in enumerate(table.levels)}
    low, high, label = (
        pl.col(name).replace_strict(rank, default=None, return_dtype=pl.Int64).alias(place)
        for name, place in (("gold_low", LOW), ("gold_high", HIGH), ("response", LABEL))
    )
    frame = table.frame.with_columns(low, high, label)
    frame = frame.with_columns(_direction().alias(DIRECTION))
    if frame[DIRECTION].count() == 0:
        raise DesignError(
            f"none of the {n_rows(frame.height)} has a label that counts and gold to compare it with"
        )
    return frame


def _direction() -> pl.Expr:
    unread = pl.col(LABEL).is_null() & (pl.col("status") == "unparsed")
    counts = pl.col("score").is_not_null() & pl.col(LOW).is_not_null()
    return pl.when(counts).then(direction_of(unread))


def direction_of(unread: pl.Expr) -> pl.Expr:
    """The direction of labels by their places on the scale; null where there is none to read."""
    return (
        pl.when(unread)
        .then(pl.lit("unreadable"))
        .when(pl.col(LABEL) < pl.col(LOW))
        .then(pl.lit("under"))
        .when(pl.col(LABEL) > pl.col(HIGH))
        .then(pl.lit("over"))
        .when(pl.col(LABEL).is_not_null())
        .then(pl.lit("correct"))
    )


def outcomes_of(
    table: ResponseTable,
    *,
    pool: Pool,
    reference: Reference,
    costs: Array | None = None,
    cost_unreadable: float | None = None,
) -> Outcomes:
    """The directions of a table as measures on its design.

    Parameters
    ----------
    table
        The responses.
    pool
        Whether each judge's label counts, or the judges of a response are averaged first.
    reference
        As in `design_of`.
    costs
        Cost of each label (column) by the nearest end of its gold range (row), shape (k, k).
    cost_unreadable
        Cost of an answer that could not be read; None leaves it out of the mean cost.

    Raises
    ------
    DesignError
        As `directed` and `design_of`.
    """
    frame = directed(table).with_row_index("_row")
    measures = frame.select(_measures(frame))
    if costs is not None:
        measures = measures.with_columns(_costs(frame, costs, cost_unreadable))
    seen = pl.col(DIRECTION).is_not_null()
    # Without judges a design has one row a label; its score is the place of the label in the frame.
    coded = frame.drop("judge", strict=False).with_columns(
        pl.when(seen).then(pl.col("_row").cast(pl.Float64)).alias("score")
    )
    design = design_of(table.with_frame(coded), reference=reference)
    rows = design.responses.with_columns(pl.col("score").cast(pl.Int64).alias("_row")).drop("score")
    rows = rows.with_columns(column.gather(rows["_row"]) for column in measures).drop("_row")
    key = [name for name in _KEY if name in rows.columns]
    responses = rows.group_by(key, maintain_order=True).agg(
        pl.col(measures.columns).mean(),
        pl.col(measures.columns[0]).count().cast(pl.Int64).alias("n_judges"),
        pl.col("status").first(),
    )
    repetitions = _most(responses, len(design.levels))
    if pool == "responses":
        design = replace(design, repetitions=repetitions)
    return Outcomes(
        design=design,
        rows=rows if pool == "labels" else responses,
        frame=frame,
        repetitions=repetitions,
        notes=(*design.notes, *_notes(frame, responses, pool, costs is not None, cost_unreadable)),
    )


def _measures(frame: pl.DataFrame) -> list[pl.Expr]:
    direction = pl.col(DIRECTION)
    shown: list[Direction] = ["under", "over", "correct"]
    if (frame[DIRECTION] == "unreadable").any():
        shown.append("unreadable")
    shares = [(direction == name).cast(pl.Float64).alias(f"{name}_rate") for name in shown]
    net = (direction == "over").cast(pl.Float64) - (direction == "under").cast(pl.Float64)
    return [*shares, net.alias("net_direction")]


def _costs(frame: pl.DataFrame, costs: Array, unreadable: float | None) -> pl.Series:
    """Cost of each label by the end of its gold range that is nearest to it."""
    nearest = pl.max_horizontal(LOW, pl.min_horizontal(HIGH, LABEL))
    place = frame.select(
        pl.when(pl.col(DIRECTION).is_in(["under", "correct", "over"])).then(
            nearest * len(costs) + pl.col(LABEL)
        )
    ).to_series()
    found = pl.Series("error_cost", costs.ravel()).gather(place)
    if unreadable is not None:
        found = found.set((frame[DIRECTION] == "unreadable").fill_null(value=False), unreadable)
    return found


def _most(responses: pl.DataFrame, n_levels: int) -> tuple[int, ...]:
    """At each level, the most responses of one cell."""
    cell = [name for name in ("level", "unit", "model", "variant") if name in responses.columns]
    most = dict(responses.group_by(cell).len().group_by("level").agg(pl.col("len").max()).iter_rows())
    return tuple(int(most.get(level, 0)) for level in range(n_levels))


def _notes(
    frame: pl.DataFrame, responses: pl.DataFrame, pool: Pool, costed: bool, cost_unreadable: float | None
) -> list[Note]:
    notes = []
    if responses["n_judges"].max() != 1 and "judge" in frame.columns:
        how = {
            "labels": "Each judge's label counts: labels are averaged, not responses.",
            "responses": "Labels of several judges are averaged within a response.",
        }
        notes.append(Note("judges", how[pool]))
    lost = int((frame["score"].is_not_null() & frame[DIRECTION].is_null()).sum())
    if lost:
        what = "has a score but no label or no gold, and so" if lost == 1 else "have a score but no label or "
        what += " no direction" if lost == 1 else "no gold, and so no direction"
        notes.append(Note("no_direction", f"{n_rows(lost)} {what}: left out.", "caution"))
    missing = frame.filter(pl.col("score").is_null())
    silent = missing.filter(pl.col("status") == "unparsed").height
    if silent:
        said = "could not be read and {} no score: missing; with `unparsed='wrong'` they count as wrong."
        said = f"{n_rows(silent)} {said.format('has' if silent == 1 else 'have')}"
        notes.append(Note("missing", said, "caution"))
    if rest := missing.height - silent:
        said = f"{n_rows(rest)} {'has' if rest == 1 else 'have'} no label that counts: missing."
        notes.append(Note("missing", said, "caution"))
    unread = int((frame[DIRECTION] == "unreadable").sum())
    if unread:
        said = f"{n_rows(unread)} could not be read and count as neither under nor over."
        notes.append(Note("unreadable", said))
        if costed and cost_unreadable is None:
            said = (
                f"{n_rows(unread)} could not be read and are left out of the mean cost; give them one with "
                "`cost_unreadable=`."
            )
            notes.append(Note("unreadable_cost", said, "caution"))
    return notes


def unit_values(table: ResponseTable, kind: Kind) -> pl.DataFrame:
    """The frame of a table with `_value`: 1 where a row is of the kind, 0 where not, null where unusable.

    `under` and `over` read labels; `correct` is the score and `wrong` one minus it.

    Raises
    ------
    DesignError
        As `directed`; for `correct` and `wrong` if no row has a score.
    DataError
        If scores do not lie between 0 and 1.
    """
    if kind in ("under", "over"):
        value = pl.when(pl.col(DIRECTION).is_not_null()).then((pl.col(DIRECTION) == kind).cast(pl.Float64))
        return directed(table).with_columns(value.alias(VALUE))
    scores = table.frame["score"].drop_nulls()
    if scores.is_empty():
        raise DesignError("`score` is there in no row, so nothing can be counted")
    if not scores.is_between(0, 1).all():
        raise DataError(
            f"`kind={kind!r}` needs scores from 0 to 1; these run from {scores.min()!r} to {scores.max()!r}"
        )
    score = pl.col("score")
    return table.frame.with_columns((score if kind == "correct" else 1 - score).alias(VALUE))
