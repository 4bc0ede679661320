"""Several samples: treatments compared within blocks, and groups of independent values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.columns import Shared, column_of, frame_of, shared_rows
from triagestats.design import design_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import label_of, listed
from triagestats.matching import keys_of
from triagestats.results import Note
from triagestats.schema import Match
from triagestats.table import ResponseTable
from triagestats.vectors import Missing, drop_missing, labels_of, numbers_of

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Blocks", "Samples", "read_blocks", "read_samples"]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Values of every treatment in every block.

    Attributes
    ----------
    values
        Shape (n, k).
    names
        What the treatments are called.
    shared
        The clusters of the blocks, None where nothing says that blocks share any.
    n_missing
        Blocks that were left out.
    notes
        Choices made while reading.
    """

    values: Array
    names: tuple[str, ...]
    shared: Shared | None
    n_missing: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Independent values in groups.

    Attributes
    ----------
    values
        Shape (n,).
    codes
        Group of each, 0 to k - 1, shape (n,).
    names
        What the groups are called.
    shared
        The clusters of the values, None where nothing says that values share any.
    n_missing
        Values that were left out.
    notes
        Choices made while reading.
    """

    values: Array
    codes: NDArray[np.int64]
    names: tuple[str, ...]
    shared: Shared | None
    n_missing: int
    notes: tuple[Note, ...]


def read_blocks(
    columns: Sequence[object], *, data: object, clusters: object, match: Match, missing: Missing
) -> Blocks:
    """Read a matrix of blocks by treatments, one vector a treatment, or levels of a response table.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as blocks with two or more treatments.
    """
    if len(columns) == 1 and isinstance(columns[0], ResponseTable) and data is None:
        data, columns = columns[0], []
    if isinstance(data, ResponseTable):
        if clusters is not None:
            raise ArgumentError(
                "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
                "`table.with_cluster(...)`"
            )
        return _of_levels(columns, data, match)
    frame = frame_of(data)
    if not columns:
        raise ArgumentTypeError("give a matrix of blocks by treatments, or one vector a treatment")
    if len(columns) == 1 and frame is None:
        values: Array = numbers_of(columns[0], "blocks", dimensions=(2,))
        given: Any = getattr(columns[0], "columns", None)
        names = _numbered("treatment", values.shape[1]) if given is None else tuple(map(str, given))
    else:
        vectors = _vectors(columns, frame, "treatment")
        lengths = {len(vector) for vector in vectors}
        if len(lengths) > 1:
            raise ArgumentError(
                f"the treatments must have one value a block each: they have "
                f"{', '.join(str(len(vector)) for vector in vectors)} values"
            )
        values = np.stack(vectors, axis=1)
        names = _names(columns, "treatment")
    _enough(names, "treatment")
    kept, notes = drop_missing([values], ["blocks"], missing)
    shared = shared_rows(frame, clusters, len(values))
    return Blocks(values[kept], names, None if shared is None else shared.of(kept), int((~kept).sum()), notes)


def _of_levels(columns: Sequence[object], table: ResponseTable, match: Match) -> Blocks:
    """The keys of a response table that are scored at all levels that are asked for."""
    design = design_of(table)
    labels = [level.label for level in design.levels]
    wanted = [label_of(name) if isinstance(name, str | int | float) else None for name in columns]
    for name in wanted:
        if name not in labels:
            raise ArgumentError(
                f"the treatments must be condition levels of the table, of {listed(labels)}; got {name!r}"
            )
    if len(set(wanted)) < len(wanted):
        raise ArgumentError(f"the treatments name a level twice: {wanted}")
    names = tuple(str(name) for name in wanted) or tuple(labels)
    _enough(names, "treatment")
    keys = keys_of(design, match)
    places = [labels.index(name) for name in names]
    whole = keys.matched(places)
    if not len(whole.unit):
        raise DesignError(
            f"no key is scored at all of {listed(names)} with match={match!r}; name fewer levels, or use "
            "match='cell', which averages repetitions"
        )
    planned = int((~np.isnan(keys.values[:, places])).any(axis=1).sum())
    lost = planned - len(whole.unit)
    notes = [*table.notes, *(note for note in design.notes if note.code != "reference")]
    if lost:
        message = f"{lost:,} of {planned:,} keys are not scored at all of the levels, and left out."
        notes.append(Note("unmatched", message, "caution"))
    if len(design.models) > 1:
        notes.append(Note("pooled", f"Blocks of {len(design.models)} models are pooled."))
    axis = design.axes[0]
    codes = axis.codes[whole.unit if axis.by == "unit" else whole.model]
    shared = Shared(codes, axis.name, asked=False, crossed=len(design.axes) > 1)
    return Blocks(whole.values, names, shared, lost, tuple(notes))


def read_samples(
    samples: Sequence[object], *, groups: object, data: object, clusters: object, missing: Missing
) -> Samples:
    """Read one vector a group, a list of them, or values with one label a value.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as two or more groups.
    """
    frame = frame_of(data)
    if groups is not None:
        if len(samples) != 1:
            raise ArgumentError(f"`groups` goes with one vector of values; got {len(samples)}")
        values = numbers_of(column_of(frame, samples[0], "values"), "values", dimensions=(1,))
        labels = labels_of(column_of(frame, groups, "groups"), "groups")
        if len(labels.codes) != len(values):
            raise ArgumentError(
                f"`groups` must have one label a value: expected {len(values):,}, got {len(labels.codes):,}"
            )
        codes, names = labels.codes, labels.levels
    else:
        if len(samples) == 1 and frame is None:
            samples = _listed_groups(samples[0])
        if not samples:
            raise ArgumentTypeError(
                "give one vector a group, as in kruskal(a, b, c), or values with `groups=`"
            )
        vectors = _vectors(samples, frame, "group")
        values = np.concatenate(vectors)
        codes = np.repeat(np.arange(len(vectors)), [len(vector) for vector in vectors])
        names = _names(samples, "group")
    if groups is not None:
        kept, notes = drop_missing([values, np.where(codes < 0, np.nan, 0.0)], ["values", "groups"], missing)
    else:
        gaps = np.unique(codes[np.isnan(values)])
        kept, notes = drop_missing([values], [names[code] for code in gaps] or ["values"], missing)
    present, places = np.unique(codes[kept], return_inverse=True)
    if groups is None and len(present) < len(names):
        gone = next(name for code, name in enumerate(names) if code not in present)
        raise DesignError(f"{gone} has no value left")
    found = tuple(names[code] for code in present)
    _enough(found, "group")
    shared = shared_rows(frame, clusters, len(values))
    return Samples(
        values[kept],
        places.astype(np.int64),
        found,
        None if shared is None else shared.of(kept),
        int((~kept).sum()),
        notes,
    )


def _listed_groups(given: object) -> Sequence[object]:
    """A list of groups; a matrix does not say whether its rows or its columns are the groups."""
    if isinstance(given, list | tuple) and given and not isinstance(given[0], int | float | str | bytes):
        return given
    raise ArgumentTypeError(
        "give one vector a group, as in kruskal(a, b, c), a list of such vectors, or values with "
        f"`groups=`, one label a value; got one {type(given).__name__}"
    )


def _vectors(columns: Sequence[object], frame: pl.DataFrame | None, kind: str) -> list[Array]:
    return [
        numbers_of(column_of(frame, column, name), name, dimensions=(1,))
        for column, name in zip(columns, _numbered(kind, len(columns)), strict=True)
    ]


def _names(columns: Sequence[object], kind: str) -> tuple[str, ...]:
    texts = tuple(column for column in columns if isinstance(column, str))
    return texts if len(texts) == len(columns) else _numbered(kind, len(columns))


def _numbered(kind: str, count: int) -> tuple[str, ...]:
    return tuple(f"{kind} {place + 1}" for place in range(count))


def _enough(names: Sequence[str], kind: str) -> None:
    if len(names) < 2:
        raise DesignError(f"at least two {kind}s are needed to compare; got {len(names)}: {list(names)}")
