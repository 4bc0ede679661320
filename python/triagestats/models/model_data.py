"""The rows of a model: columns by the user's names, complete cases, clusters, weights, singletons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from triagestats.errors import ArgumentTypeError, DataError, DesignError
from triagestats.ingest import to_polars
from triagestats.labels import as_text, n_rows
from triagestats.models.design_columns import is_category
from triagestats.models.formula import Formula, nested_groups, unknown_names
from triagestats.results import Note
from triagestats.roles import role_spelled
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable
from triagestats.vectors import labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["ClusterArgument", "ModelData", "Singletons", "read_model_data"]

ClusterArgument = str | Sequence[str] | None
Singletons = Literal["drop", "keep"]


@dataclass(frozen=True, slots=True, eq=False)
class ModelData:
    """The rows that a model is fitted to.

    Attributes
    ----------
    frame
        The columns that the formula names, under these names, without missing values.
    y
        The outcome, shape (n,).
    absorbed
        Codes of each fixed effect, 0 to its number of levels - 1.
    clusters, cluster_names
        Codes of none, one or two cluster variables, and their names.
    weights
        Positive numbers, shape (n,), or None.
    n_singletons
        Rows that were dropped because a fixed effect had no other row.
    n_missing
        Rows that were left out for a missing value.
    notes
        What was dropped.
    """

    frame: pl.DataFrame
    y: Array
    absorbed: tuple[Codes, ...]
    clusters: tuple[Codes, ...]
    cluster_names: tuple[str, ...]
    weights: Array | None
    n_singletons: int
    n_missing: int
    notes: tuple[Note, ...]


def read_model_data(
    formula: Formula,
    data: object,
    *,
    cluster: ClusterArgument,
    clustered: bool = True,
    weights: str | None = None,
    singletons: Singletons = "drop",
    as_numbers: Callable[[pl.Series], pl.Series] | None = None,
    also: Sequence[str] = (),
) -> ModelData:
    """The rows of a table or a ResponseTable that a formula can use.

    A ResponseTable knows its columns by the roles (`score`, `condition`), by the names that they came
    with, and by the other spellings of the roles, such as `correct`. Where `cluster` is None, the clusters
    are those of a ResponseTable, or the column that is recognised as the scenario.

    Parameters
    ----------
    formula
        What to read.
    data
        A table of any make, or a ResponseTable. Rows with a missing value in a column that is named are left
        out, which a note counts.
    cluster
        One or two columns. They must be known in all rows that are complete otherwise, whether or not the
        formula names them too.
    clustered
        Whether clusters are needed; where they are not, those that cannot be used are left out.
    weights
        A column of positive numbers.
    singletons
        Whether rows that are alone in a fixed effect are dropped, again and again until none is left.
    as_numbers
        Makes numbers of the outcome, where it may hold something else.
    also
        Columns that the frame is to have besides, where rows may lack a value.

    Raises
    ------
    ArgumentError
        If a name is not that of a column.
    DataError
        If a cluster is missing, the outcome or weights are no numbers, or no row is complete.
    DesignError
        If there is one cluster, or every row is a singleton.
    """
    table = data if isinstance(data, ResponseTable) else None
    source = table.frame if table is not None else to_polars(data).frame
    cluster_names = _cluster_names(cluster, source, table)
    optional = cluster is None and not clustered
    if weights is not None and not isinstance(weights, str):
        raise ArgumentTypeError(f"`weights` must be the name of a column; got {type(weights).__name__}")
    found = {
        "formula": _columns(formula.names, source, table, "formula"),
        "cluster": _columns(cluster_names, source, table, "cluster"),
        "weights": _columns([weights] if weights is not None else [], source, table, "weights"),
    }
    frame = pl.DataFrame(list(found["formula"].values()))
    if as_numbers is not None:
        frame = frame.with_columns(as_numbers(frame[formula.outcome]))
    if not frame.height:
        raise DataError("`data` has no rows, and a model needs some")
    for name in frame.columns:
        if frame[name].dtype.is_nested():
            raise DataError(
                f"`formula` names {name!r}, which holds {frame[name].dtype}; expected numbers, true and "
                "false, or labels: put what you mean into a column of its own"
            )
    _check_outcome(frame[formula.outcome], formula.outcome)
    frame = frame.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    grouping = {name for term in formula.random for group in nested_groups(term) for name in group}
    # A blank label names no level: it is missing, as it is in a cluster.
    frame = frame.with_columns(_unblank(frame[name]) for name in frame.columns if name in grouping)
    complete = np.ones(frame.height, dtype=bool)
    for name in frame.columns:
        # Rows of unknown clusters are refused below, also where the cluster is absorbed.
        if optional or name not in cluster_names:
            complete &= frame[name].is_not_null().to_numpy()
    notes = (*_incomplete(complete, frame), *_judges(table, formula))
    of_clusters = {name: found["cluster"][name].filter(pl.Series(complete)) for name in cluster_names}
    if optional and any(as_text(column, "cluster").null_count() for column in of_clusters.values()):
        cluster_names, of_clusters = (), {}
    clusters = tuple(_cluster_codes(column, name) for name, column in of_clusters.items())
    of_rows = None if weights is None else _weights(found["weights"][weights], weights)[complete]
    frame = frame.with_columns(_columns(also, source, table, "also").values()).filter(pl.Series(complete))
    made = ModelData(
        frame=frame,
        y=frame[formula.outcome].cast(pl.Float64).to_numpy(),
        absorbed=tuple(_joint(frame, parts) for parts in formula.absorbed),
        clusters=clusters,
        cluster_names=cluster_names,
        weights=of_rows,
        n_singletons=0,
        n_missing=int((~complete).sum()),
        notes=notes,
    )
    if not np.isfinite(made.y).all():
        raise DataError(f"`formula`: the outcome {formula.outcome!r} holds infinite values; drop these rows")
    made = _without_singletons(made, formula, singletons)
    for codes, name in zip(made.clusters, cluster_names, strict=True):
        if codes.max() == 0 and not optional:
            raise DesignError(
                f"`cluster` is {name!r}, which has one value in the rows that are used: an error needs two "
                "clusters or more. Cluster by another column"
            )
    return made


def _unblank(series: pl.Series) -> pl.Series:
    """Null where a label is blank."""
    text = as_text(series, "formula")
    return series.to_frame().select(pl.when(text.is_not_null()).then(pl.col(series.name))).to_series()


def _cluster_names(
    cluster: ClusterArgument, source: pl.DataFrame, table: ResponseTable | None
) -> tuple[str, ...]:
    """The columns that the rows are clustered by, as the user knows them."""
    if cluster is None:
        if table is not None:
            return table.roles.columns.get("cluster", ()) or (table.roles.one("scenario") or "scenario",)
        known = [name for name in source.columns if role_spelled(name) == "scenario"]
        return (known[0],) if len(known) == 1 else ()
    names = (cluster,) if isinstance(cluster, str) else tuple(cluster)
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise ArgumentTypeError(f"`cluster` must name one or two columns; got {cluster!r}")
    return names


def _columns(
    names: Sequence[str], source: pl.DataFrame, table: ResponseTable | None, argument: str
) -> dict[str, pl.Series]:
    """Columns under the names that were asked for."""
    aliases = {} if table is None else _own_names(table)
    where = {name: _place(name, source, aliases, spelled=table is not None) for name in names}
    unknown_names(
        [name for name in names if where[name] is None],
        list(dict.fromkeys([*aliases, *source.columns])),
        argument,
    )
    orders = {} if table is None else {f.column: f.levels for f in table.factors}
    columns = {}
    for name, column in where.items():
        series = source[column or name].alias(name)
        order = orders.get(column or name)
        columns[name] = series if order is None else series.cast(pl.Enum(order))
    return columns


def _own_names(table: ResponseTable) -> dict[str, str]:
    """The names that the columns of a response table came with, and where they are in its frame."""
    names: dict[str, str] = {}
    for position, name in enumerate(table.roles.columns.get("cluster", ())):
        names[name] = f"cluster_{position + 1}"
    for role, columns in table.roles.columns.items():
        if role not in ("cluster", "condition") and len(columns) == 1 and role in table.frame.columns:
            names[columns[0]] = role
    return names | {factor.name: factor.column for factor in table.factors}


def _place(name: str, source: pl.DataFrame, aliases: dict[str, str], *, spelled: bool) -> str | None:
    if name in source.columns:
        return name
    if name in aliases:
        return aliases[name]
    role = role_spelled(name) if spelled else None
    return role if role in source.columns else None


def _check_outcome(series: pl.Series, name: str) -> None:
    if is_category(series) or series.dtype == pl.Null:
        shown = next((str(value) for value in series.drop_nulls()), "nothing")
        raise DataError(
            f"`formula`: the outcome {name!r} holds {series.dtype} such as {shown!r}; it must hold numbers, "
            "or true and false"
        )


def _incomplete(complete: NDArray[np.bool_], frame: pl.DataFrame) -> tuple[Note, ...]:
    gone = int((~complete).sum())
    if not gone:
        return ()
    gaps = ", ".join(f"{name} in {count:,}" for name in frame.columns if (count := frame[name].null_count()))
    if gone == len(complete):
        raise DataError(f"no row has a value in every column of the formula; missing are {gaps}")
    message = f"{n_rows(gone)} of {len(complete):,} with a missing value {'is' if gone == 1 else 'are'} left "
    return (Note("missing", f"{message}out ({gaps}).", "caution"),)


def _judges(table: ResponseTable | None, formula: Formula) -> tuple[Note, ...]:
    """A note where several judges make several rows of one response."""
    if table is None or len(table.judges) < 2 or "judge" in {role_spelled(name) for name in formula.names}:
        return ()
    key = [role for role in KEY_ROLES if role in table.frame.columns and role != "judge"]
    if not table.frame.filter(pl.col("score").is_not_null()).select(key).is_duplicated().any():
        return ()
    wanted = list(dict.fromkeys([*key, *(name for name in formula.names if name in table.frame.columns)]))
    grouped = ", ".join(repr(name) for name in wanted if name != "score")
    averaged = f"table.frame.group_by({grouped}).agg(pl.col('score').mean())"
    message = (
        f"Each score of the {len(table.judges)} judges is a row: a response counts as often as it was "
        f"judged. To average them first, pass {averaged}; for one judge, table.with_judge(...)."
    )
    return (Note("judges", message, "caution"),)


def _cluster_codes(series: pl.Series, name: str) -> Codes:
    text = as_text(series, "cluster")
    if gaps := text.null_count():
        raise DataError(
            f"`cluster` is {name!r}, which is missing in {gaps:,} of {n_rows(len(text))}: rows of unknown "
            "clusters cannot be counted as dependent or not. Fill it in, or drop these rows"
        )
    return labels_of(text, name).codes


def _weights(series: pl.Series, name: str) -> Array:
    if not series.dtype.is_numeric():
        raise DataError(f"`weights` is {name!r}, which holds {series.dtype}; it must hold numbers")
    weights: Array = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    if bad := int((~(np.isfinite(weights) & (weights > 0))).sum()):
        raise DataError(
            f"`weights` is {name!r}, which is missing, infinite or not positive in {bad:,} of "
            f"{n_rows(len(weights))}; drop these rows, or give them a weight"
        )
    return weights


def _joint(frame: pl.DataFrame, parts: Sequence[str]) -> Codes:
    """Codes of the pairs (or more) of levels of several columns."""
    codes = np.zeros(frame.height, dtype=np.int64)
    for part in parts:
        labels = labels_of(frame[part], part)
        codes = _dense(codes * max(len(labels.levels), 1) + labels.codes)
    return codes


def _dense(codes: Codes) -> Codes:
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _without_singletons(made: ModelData, formula: Formula, singletons: Singletons) -> ModelData:
    """Drop rows that are alone in a fixed effect until there is none; or count them."""
    kept = np.ones(len(made.y), dtype=bool)
    while True:
        alone = np.zeros(len(kept), dtype=bool)
        for codes in made.absorbed:
            alone |= kept & (np.bincount(codes[kept], minlength=codes.max(initial=0) + 1)[codes] == 1)
        if not alone.any() or singletons == "keep":
            break
        kept &= ~alone
    effects = " or ".join(formula.absorbed_names)
    if singletons == "keep":
        if not alone.any():
            return made
        count = int(alone.sum())
        message = f"{n_rows(count)} alone in {effects} (singletons) {'is' if count == 1 else 'are'} kept."
        return replace(made, notes=(*made.notes, Note("singletons", message)))
    gone = int((~kept).sum())
    if not gone:
        return made
    if not kept.any():
        raise DesignError(
            f"every row is alone in a level of {effects}, so that nothing is left to compare; absorb a "
            "coarser fixed effect"
        )
    message = (
        f"{n_rows(gone)} alone in {effects} (singletons) {'is' if gone == 1 else 'are'} dropped: such rows "
        "do not enter the estimates, and would lower the errors or change the degrees of freedom."
    )
    return replace(
        made,
        frame=made.frame.filter(pl.Series(kept)),
        y=made.y[kept],
        absorbed=tuple(_dense(codes[kept]) for codes in made.absorbed),
        clusters=tuple(_dense(codes[kept]) for codes in made.clusters),
        weights=None if made.weights is None else made.weights[kept],
        n_singletons=gone,
        notes=(*made.notes, Note("singletons", message)),
    )
