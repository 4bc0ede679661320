"""What an equivalence test was asked, and the way that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.columns import Shared, column_of, frame_of
from triagestats.counts import pair_table
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.equivalence_sides import (
    Bounds,
    Sides,
    bootstrap_sides,
    cluster_error,
    mean_error,
    rank_sides,
    t_sides,
    tango_sides,
    two_sample_error,
)
from triagestats.equivalence_table import few_cluster_notes, table_sides
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.estimands import Estimand
from triagestats.pairs import Pairs, read_pairs
from triagestats.results import Note
from triagestats.schema import Match, Weights
from triagestats.table import ResponseTable
from triagestats.vectors import Missing, drop_missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Asked", "Found", "Law", "Method", "find"]

Method = Literal["t", "welch", "pooled", "tango", "signed-rank", "bootstrap", "cluster"]
Law = Literal["auto", "exact", "normal"]

_TWO_SAMPLES: Final = ("welch", "pooled")
_CLUSTERED: Final = ("cluster", "bootstrap")


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of `tost` and `noninferiority`, but for the bounds."""

    x: object
    y: object
    data: object
    clusters: object
    estimand: Estimand | None
    model: str | None
    method: Method | None
    law: Law
    correction: bool
    match: Match | None
    weights: Weights
    missing: Missing
    n_resamples: int
    seed: int
    n_threads: int

    @property
    def table(self) -> ResponseTable | None:
        """The ResponseTable, where there is one."""
        if isinstance(self.x, ResponseTable) and self.data is None:
            return self.x
        return self.data if isinstance(self.data, ResponseTable) else None

    @property
    def levels(self) -> tuple[object, object]:
        """The condition levels of a ResponseTable."""
        return (None if isinstance(self.x, ResponseTable) else self.x), self.y


@dataclass(frozen=True, slots=True)
class Found:
    """Both one-sided tests, and what they are about."""

    sides: Sides
    bounds: Bounds
    estimand: str
    contrast: str
    n: int
    details: dict[str, Any]
    notes: tuple[Note, ...]


def find(asked: Asked, bounds_at: Callable[[float], Bounds]) -> Found:
    """The tests by the method that was asked for, or the one that fits the data.

    Parameters
    ----------
    bounds_at
        The bounds for an estimand whose value without a difference is the argument.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If arguments do not go together, or the data cannot be read.
    """
    if asked.method is not None:
        valid_choice("method", asked.method, Method)
    valid_choice("law", asked.law, Law)
    valid_choice("missing", asked.missing, Missing)
    table = asked.table
    if table is not None and asked.method in (None, "cluster"):
        return _of_table(asked, table, bounds_at)
    if asked.estimand is not None or asked.model is not None:
        raise ArgumentError("`estimand` and `model` need a ResponseTable as `data`, and method='cluster'")
    bounds = bounds_at(0.0)
    if asked.method in _TWO_SAMPLES:
        return _of_samples(asked, bounds)
    if asked.y is None and table is None and (found := _paired_counts(asked.x)) is not None:
        return _of_counts(asked, *found, bounds)
    return _of_pairs(asked, _pairs(asked), bounds)


def _of_table(asked: Asked, table: ResponseTable, bounds_at: Callable[[float], Bounds]) -> Found:
    bounds: list[Bounds] = []

    def remembered(null: float) -> Bounds:
        bounds.append(bounds_at(null))
        return bounds[0]

    if asked.clusters is not None:
        raise ArgumentError(
            "`clusters` cannot be given with a ResponseTable, which has its own; change them with "
            "`table.with_cluster(...)`"
        )
    found = table_sides(
        table,
        asked.levels,
        asked.estimand,
        asked.model,
        remembered,
        match=asked.match or "cell",
        weights=asked.weights,
        n_resamples=asked.n_resamples,
        seed=asked.seed,
        n_threads=asked.n_threads,
    )
    details = {"n_clusters": found.n_clusters} | ({} if asked.model is None else {"model": asked.model})
    return Found(
        found.sides, bounds[0], found.estimand.name, found.estimand.label, found.n_keys, details, found.notes
    )


def _of_samples(asked: Asked, bounds: Bounds) -> Found:
    """Two independent samples."""
    if asked.y is None or asked.table is not None:
        raise ArgumentError(f"method={asked.method!r} takes two samples, `x` and `y`")
    if asked.clusters is not None:
        raise ArgumentError(
            f"method={asked.method!r} takes values as independent; with `clusters` compare pairs, or the "
            "levels of a ResponseTable"
        )
    frame = frame_of(asked.data)
    samples: list[Array] = []
    notes: list[Note] = []
    missing = 0
    for side, name in ((asked.x, "x"), (asked.y, "y")):
        values = numbers_of(column_of(frame, side, name), name, dimensions=(1,))
        kept, note = drop_missing([values], [name], asked.missing)
        samples.append(values[kept])
        notes += note
        missing += int((~kept).sum())
    x, y = samples
    error = two_sample_error(x, y, pooled=asked.method == "pooled")
    method = "pooled t" if asked.method == "pooled" else "Welch t"
    sides = t_sides(
        error, bounds, method, "both samples are constant, so nothing shows how far they could be off"
    )
    details = {"n_x": len(x), "n_y": len(y), "n_missing": missing}
    return Found(sides, bounds, "difference of means", "x - y", len(x) + len(y), details, tuple(notes))


def _paired_counts(x: object) -> tuple[NDArray[np.int64], tuple[Note, ...]] | None:
    """Paired counts where `x` is a 2 x 2 table, and how it was read; None where it is a vector."""
    if isinstance(x, str) or x is None:
        return None
    values = numbers_of(x, "x")
    if values.ndim == 1:
        return None
    if values.shape != (2, 2):
        raise ArgumentError(
            f"`x` must be a vector of differences, or a 2 x 2 table of paired counts; got {values.shape}"
        )
    return pair_table(x, "x")


def _of_counts(asked: Asked, counts: NDArray[np.int64], notes: tuple[Note, ...], bounds: Bounds) -> Found:
    if asked.method not in (None, "tango"):
        raise ArgumentError(f"a table of paired counts takes method='tango'; got {asked.method!r}")
    if asked.clusters is not None:
        raise ArgumentError("`clusters` needs the pairs themselves, not their counts")
    n = int(counts.sum())
    sides = tango_sides(int(counts[0, 1]), int(counts[1, 0]), n, bounds)
    return Found(sides, bounds, "difference of paired proportions", "x - y", n, {}, notes)


def _pairs(asked: Asked) -> Pairs:
    """The pairs; differences given alone are paired with zeros."""
    match: Match = asked.match or ("row" if asked.method == "tango" else "cell")
    if asked.y is not None or asked.table is not None:
        return read_pairs(
            asked.x, asked.y, data=asked.data, clusters=asked.clusters, match=match, missing=asked.missing
        )
    if asked.x is None:
        raise ArgumentTypeError("`x` is needed: pairs, differences, a table of counts, or a ResponseTable")
    differences = column_of(frame_of(asked.data), asked.x, "x")
    values = numbers_of(differences, "x", dimensions=(1,))
    pairs = read_pairs(values, np.zeros(len(values)), clusters=_labels(asked), missing=asked.missing)
    name = asked.x if isinstance(asked.x, str) else "x"
    return Pairs(pairs.x, pairs.y, (name, ""), pairs.shared, pairs.n_missing, pairs.notes)


def _labels(asked: Asked) -> object:
    if asked.clusters is None:
        return None
    return column_of(frame_of(asked.data), asked.clusters, "clusters")


def _of_pairs(asked: Asked, pairs: Pairs, bounds: Bounds) -> Found:
    differences = pairs.x - pairs.y
    n = len(differences)
    scale = float(max(np.abs(pairs.x).max(), np.abs(pairs.y).max()))
    binary = bool(np.isin(np.concatenate([pairs.x, pairs.y]), (0.0, 1.0)).all()) and bool(pairs.names[1])
    method = asked.method or ("cluster" if pairs.clustered else "tango" if binary else "t")
    notes = list(pairs.notes)
    details: dict[str, Any] = {"n_missing": pairs.n_missing}
    if method == "tango" and asked.method is None:
        notes.append(Note("method", "Values of 0 and 1 are read as proportions: method='tango'."))
    if method not in _CLUSTERED:
        notes += pairs.independence("method='cluster'")
    if method == "tango":
        if not binary:
            raise ArgumentError(
                "method='tango' takes pairs of 0 and 1, and these hold other values; means of judges can be "
                "read by judge (`table.with_judge('...')`) or where they agree "
                "(`table.with_unanimous_judges()`), or use method='t' or 'cluster'"
            )
        b, c = int((differences > 0).sum()), int((differences < 0).sum())
        sides = tango_sides(b, c, n, bounds)
    elif method == "signed-rank":
        if binary:
            raise ArgumentError(
                "method='signed-rank' speaks of a median, which for values of 0 and 1 is no proportion; use "
                "method='tango'"
            )
        sides = rank_sides(differences, bounds, asked.law, correction=asked.correction)
    elif method == "t":
        sides = t_sides(mean_error(differences, scale), bounds, "paired t")
    elif method == "bootstrap":
        shared = pairs.shared
        codes = np.arange(n) if shared is None else pairs.clusters_for(method).codes
        sides = bootstrap_sides(
            differences,
            codes,
            scale,
            bounds,
            n_resamples=asked.n_resamples,
            seed=asked.seed,
            n_threads=asked.n_threads,
        )
        if shared is not None:
            sides = _enough(sides, shared)
            details["n_clusters"] = shared.size
            notes += few_cluster_notes(shared.size)
    else:
        shared = pairs.clusters_for(method)
        error = cluster_error(differences, shared.codes, scale)
        sides = _enough(t_sides(error, bounds, "cluster jackknife t"), shared)
        details["n_clusters"] = shared.size
        notes += few_cluster_notes(shared.size)
    what = {"tango": "difference of paired proportions", "signed-rank": "pseudo-median"}
    contrast = pairs.contrast if pairs.names[1] else pairs.names[0]
    return Found(sides, bounds, what.get(method, "mean difference"), contrast, n, details, tuple(notes))


def _enough(sides: Sides, shared: Shared) -> Sides:
    if shared.size >= FEWEST_CLUSTERS:
        return sides
    return sides.withheld(
        f"{shared.size} clusters are too few for a test that speaks of a population of clusters "
        f"({FEWEST_CLUSTERS} are needed)"
    )
