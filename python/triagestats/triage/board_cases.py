"""Cases of a triage board: which are urgent, and how often each model escalated them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError, DataError, DesignError
from triagestats.flags import binary_column, column_named
from triagestats.ingest import to_polars
from triagestats.labels import as_text, counted, listed
from triagestats.results import Note
from triagestats.roles import RoleArgument, assign_roles
from triagestats.schema import ROLES
from triagestats.table import ResponseTable
from triagestats.tolerances import MASS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Cases", "Places", "places_of", "read_cases"]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Whose row each row of a table is.

    Attributes
    ----------
    frame
        The table as polars holds it.
    models, scenarios
        Labels by code; a table without a column of models has one nameless one.
    model, scenario, cluster
        Codes of each row, shape (n,).
    cluster_name
        What a cluster is.
    notes
        Choices made while reading.
    """

    frame: pl.DataFrame
    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    model: Codes
    scenario: Codes
    cluster: Codes
    cluster_name: str
    notes: tuple[Note, ...] = ()


def places_of(
    data: object, *, scenario: RoleArgument = None, model: RoleArgument = None, cluster: RoleArgument = None
) -> Places:
    """Models, scenarios and clusters of the rows of a table of any make.

    Raises
    ------
    RoleError
        If a named column is absent, or two could play one role.
    DataError
        If there is no column of scenarios, one of them is blank, or a cluster splits a scenario.
    DesignError
        If a response table has two crossed cluster columns.
    """
    notes: tuple[Note, ...] = ()
    if isinstance(data, ResponseTable):
        frame = data.frame
        if "cluster_2" in frame.columns:
            raise DesignError(
                "a board is resampled by one cluster column, and the table has two that cross; choose one "
                "with `table.with_cluster(...)`"
            )
        given = {"scenario": scenario, "model": model, "cluster": cluster}
        columns: dict[str, str] = {
            role: name
            for role, name in (("scenario", "scenario"), ("model", "model"), ("cluster", "cluster_1"))
            if name in frame.columns
        }
        columns |= {role: str(name) for role, name in given.items() if name}
        named = {role: data.roles.one(role) or role for role in ("scenario", "model", "cluster")}
    else:
        came = to_polars(data)
        frame, notes = came.frame, came.notes
        others: dict[str, RoleArgument] = dict.fromkeys(ROLES, False)
        roles = assign_roles(
            frame.columns, others | {"scenario": scenario, "model": model, "cluster": cluster}
        )
        columns = {role: names[0] for role, names in roles.columns.items()}
        named = dict(columns)
    if frame.height == 0:
        raise DataError("`data` has no rows")
    if "scenario" not in columns:
        raise DataError(
            "`scenario` has no column: name the one that holds the case or item with `scenario=`; the "
            f"columns are {listed(frame.columns)}"
        )
    scenario_code, scenarios = _codes(frame, columns["scenario"], "scenario")
    model_code: Codes = np.zeros(frame.height, dtype=np.int64)
    models: tuple[str, ...] = ("",)
    if "model" in columns:
        model_code, models = _codes(frame, columns["model"], "model")
    cluster_code = scenario_code
    if "cluster" in columns:
        cluster_code, _ = _codes(frame, columns["cluster"], "cluster")
        pairs = np.unique(np.stack([scenario_code, cluster_code], axis=1), axis=0)
        if len(pairs) > len(scenarios):
            split = pairs[np.flatnonzero(np.diff(pairs[:, 0]) == 0)[0]]
            raise DataError(
                f"`cluster` splits scenario {scenarios[split[0]]!r}: a cluster must hold whole scenarios"
            )
    name = named.get("cluster" if "cluster" in columns else "scenario", "scenario")
    return Places(frame, models, scenarios, model_code, scenario_code, cluster_code, name, notes)


def _codes(frame: pl.DataFrame, name: str, role: str) -> tuple[Codes, tuple[str, ...]]:
    """Codes of the labels of a column in sorted order, and the labels."""
    text = as_text(column_named(frame, name, role), role)
    if blank := text.null_count():
        raise DataError(f"`{role}` is column {name!r}, which is blank in {blank:,} of {frame.height:,} rows")
    labels = text.unique().sort()
    codes = (text.rank("dense") - 1).cast(pl.Int64).to_numpy()
    return codes, tuple(labels.to_list())


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """What is known of N cases and M models.

    Attributes
    ----------
    models
        Labels.
    severe
        Whether each case is urgent, 0 or 1; or the probability to which `threshold` applies. Shape (N,).
    threshold
        Urgent where `severe` is at least so much; None where `severe` is the label itself.
    escalated
        Share of a model's answers to a case that escalate it, NaN where there is none. Shape (N, M).
    n_answers
        Answers behind it, shape (N, M).
    readable
        Share of each model's answers that could be read, shape (M,).
    cluster
        Codes of the cases, shape (N,).
    """

    models: tuple[str, ...]
    severe: Array
    threshold: float | None
    escalated: Array
    n_answers: Codes
    readable: Array
    cluster: Codes

    def urgent(self, threshold: float | None = None) -> NDArray[np.bool_]:
        """Which cases are urgent, by another threshold where one is given."""
        least = self.threshold if threshold is None else threshold
        result: NDArray[np.bool_] = self.severe >= (0.5 if least is None else least - MASS)
        return result

    def of_models(self, order: Codes) -> Cases:
        """The models in an order."""
        return replace(
            self,
            models=tuple(self.models[place] for place in order),
            escalated=self.escalated[:, order],
            n_answers=self.n_answers[:, order],
            readable=self.readable[order],
        )

    def of_cases(self, kept: NDArray[np.bool_]) -> Cases:
        """Some of the cases."""
        return replace(
            self,
            severe=self.severe[kept],
            escalated=self.escalated[kept],
            n_answers=self.n_answers[kept],
            cluster=self.cluster[kept],
        )

    def totals(self, threshold: float | None = None) -> Array:
        """Sums by cluster, (G, 4, M): urgent cases, other ones, missed ones, needless escalations."""
        urgent = self.urgent(threshold)[:, None]
        known = ~np.isnan(self.escalated)
        done = np.where(known, self.escalated, 0.0)
        parts = (known & urgent, known & ~urgent, np.where(known & urgent, 1.0 - done, 0.0), done * ~urgent)
        size = int(self.cluster.max()) + 1
        total = np.zeros((size, 4, len(self.models)))
        np.add.at(total, self.cluster, np.stack(parts, axis=1).astype(np.float64))
        return total


def read_cases(
    places: Places, *, escalate: str, urgent: str, valid: str | None, threshold: float | None
) -> tuple[Cases, tuple[Note, ...]]:
    """Cases of a table with one row an answer; an answer that cannot be read does not escalate.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        If a column is absent or holds something else, or the label of a case differs between its rows.
    """
    frame = places.frame
    done = binary_column(frame, escalate, "escalate")
    readable = ~np.isnan(done)
    notes: list[Note] = []
    if valid is not None:
        stated = binary_column(frame, valid, "valid")
        if gaps := int(np.isnan(stated).sum()):
            raise DataError(
                f"`valid` is column {valid!r}, which is blank in {gaps:,} of {len(stated):,} rows"
            )
        if claimed := int(((done == 1) & (stated == 0)).sum()):
            said = "answer that escalates" if claimed == 1 else "answers that escalate"
            message = f"{claimed:,} {said} could not be read ({valid} = 0): not escalated."
            notes.append(Note("unreadable_escalated", message, "caution"))
        readable &= stated == 1
    if lost := int((~readable).sum()):
        message = f"{lost:,} of {counted(len(readable), 'answer')} could not be read: not escalated."
        notes.append(Note("unreadable", message, "caution"))
    done = np.where(readable, done, 0.0)
    severe = _severe(places, urgent, threshold)
    shape = (len(places.scenarios), len(places.models))
    cell = places.scenario * shape[1] + places.model
    number = np.bincount(cell, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        share = np.bincount(cell, weights=done, minlength=len(number)) / number
    answers = np.bincount(places.model, minlength=shape[1])
    cluster = np.zeros(shape[0], dtype=np.int64)
    cluster[places.scenario] = places.cluster
    if int(number.max()) > 1:
        notes.append(
            Note("repetitions", "Several answers of a model to a case are averaged, and weigh one case.")
        )
    cases = Cases(
        models=places.models,
        severe=severe,
        threshold=threshold,
        escalated=share.reshape(shape),
        n_answers=number.reshape(shape),
        readable=np.bincount(places.model, weights=readable, minlength=shape[1]) / answers,
        cluster=cluster,
    )
    return cases, tuple(notes)


def _severe(places: Places, urgent: str, threshold: float | None) -> Array:
    """Label or probability of each case."""
    if threshold is None:
        series = column_named(places.frame, urgent, "urgent")
        if series.dtype.is_float() and ((series > 0) & (series < 1)).any():
            raise ArgumentError(
                f"`urgent` is column {urgent!r}, which holds probabilities; say from where on a case is "
                "urgent with `threshold=`"
            )
        values = binary_column(places.frame, urgent, "urgent")
    else:
        series = column_named(places.frame, urgent, "urgent").cast(pl.Float64, strict=False)
        values = series.fill_null(np.nan).to_numpy()
        if (wrong := ~((values >= 0) & (values <= 1 + MASS)) & ~np.isnan(values)).any():
            raise DataError(
                f"`urgent` is column {urgent!r}, which holds {values[wrong][0]:g}; with `threshold` it must "
                "hold probabilities"
            )
    if gaps := int(np.isnan(values).sum()):
        raise DataError(
            f"`urgent` is column {urgent!r}, which is blank in {gaps:,} of {len(values):,} rows; every case "
            "needs its label"
        )
    found = np.full(len(places.scenarios), np.nan)
    found[places.scenario] = values
    if (apart := found[places.scenario] != values).any():
        name = places.scenarios[int(places.scenario[apart][0])]
        raise DataError(
            f"`urgent` is column {urgent!r}, which differs between the rows of case {name!r}; give a "
            "case one label"
        )
    return found
