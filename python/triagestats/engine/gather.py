"""What the engine is asked for: sums by cluster, and the counts beside them, all rows or one stratum."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.engine.held import Held
from triagestats.engine.stages import Group, Stages
from triagestats.errors import DesignError
from triagestats.schema import Match, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Gathered", "Wanted", "gather", "refuse_too_many"]

SHARE_OF_MEMORY: Final = 0.25
"""The sums may take so much of the machine's memory: reading them takes copies."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which groups of levels are summed and described, at which kind of key.

    Attributes
    ----------
    weights
        As in `analyze`.
    summed
        Groups whose sums by cluster arrive, by kind of key.
    described
        Groups whose keys are counted, by kind of key.
    times
        How often the sums are asked for: of all rows, and of each stratum.
    """

    weights: Weights
    summed: Mapping[Match, tuple[Group, ...]]
    described: Mapping[Match, tuple[Group, ...]]
    times: int = 1

    def n_sums(self, n_models: int) -> int:
        """Numbers that arrive for each cluster."""
        return (
            self.times
            * max(n_models, 1)
            * sum(1 + len(group.levels) for groups in self.summed.values() for group in groups)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What arrived.

    Attributes
    ----------
    clusters
        The cluster columns as the engine holds them, one row a cluster, in order of arrival.
    sums
        Sums by cluster, by kind of key and column name, each of shape (G,).
    described
        Counts by model and variant, by kind of key; several rows of one model and variant add up.
    """

    clusters: pl.DataFrame
    sums: dict[Match, dict[str, NDArray[np.float64]]]
    described: dict[Match, pl.DataFrame]


def gather(stages: Stages, parts: Sequence[Held], wanted: Wanted, name: str) -> Gathered:
    """Ask for sums and counts, part by part.

    Parameters
    ----------
    stages
        The steps, on all rows.
    parts
        The rows in parts that share no cluster.
    wanted
        What is asked for.
    name
        What the clusters are called.

    Raises
    ------
    DesignError
        If the sums of all clusters would not fit in memory.
    """
    n_sums = wanted.n_sums(len(stages.models))
    if parts[0].engine != "polars":  # it would send them all; polars sends those of a part first
        (several,) = parts[0].collect(stages.within(parts[0].frame).n_clusters())
        refuse_too_many(int(several["n"][0]), n_sums, name)
    described: dict[Match, list[pl.DataFrame]] = {match: [] for match in wanted.described}
    arrived: dict[Match, list[pl.DataFrame]] = {match: [] for match in wanted.summed}
    for part in parts:
        found = _answers(stages, part, wanted)
        for match, frame in zip(wanted.described, found, strict=False):
            described[match].append(frame)
        for match, frame in zip(wanted.summed, found[len(wanted.described) :], strict=True):
            arrived[match].append(frame)
        refuse_too_many(found[-1].height * len(parts), n_sums, name)
    sums: dict[Match, dict[str, NDArray[np.float64]]] = {}
    clusters = pl.concat([frame.select(stages.cluster) for frame in arrived["cell"]])
    for match, frames in arrived.items():
        own = pl.concat([frame.select(stages.cluster) for frame in frames])
        place = None if match == "cell" else places_of(own, clusters)
        sums[match] = {}
        for column in [name for name in frames[0].columns if name not in stages.cluster]:
            values = np.concatenate([_floats(frame[column]) for frame in frames])
            frames[:] = [frame.drop(column) for frame in frames]  # each column is in memory once
            sums[match][column] = values if place is None else _scattered(values, place, clusters.height)
    return Gathered(clusters, sums, {match: pl.concat(frames) for match, frames in described.items()})


def _answers(stages: Stages, part: Held, wanted: Wanted) -> list[pl.DataFrame]:
    """The counts, then the sums, of a part; what polars keeps of it goes with this call."""
    steps = stages.within(part.frame).responses()
    base = part.settled(steps.base())
    keys = {match: steps.keys(base, match) for match in wanted.described}
    queries = [steps.described(keys[match], groups) for match, groups in wanted.described.items()]
    queries += [
        steps.clusters(keys[match], groups, wanted.weights) for match, groups in wanted.summed.items()
    ]
    return part.collect(*queries)


def _floats(column: pl.Series) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.cast(pl.Float64).fill_null(0.0).to_numpy()
    return values


def places_of(keys: pl.DataFrame, clusters: pl.DataFrame) -> NDArray[np.int64]:
    """The row of each key among the clusters."""
    numbered = clusters.with_row_index("_place")
    joined = keys.join(numbered, on=keys.columns, how="left", maintain_order="left")
    return joined["_place"].to_numpy().astype(np.int64)


def _scattered(values: NDArray[Any], place: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Values at their places, 0 elsewhere."""
    result = np.zeros(size)
    result[place] = values
    return result


def refuse_too_many(n_clusters: int, n_sums: int, cluster: str) -> None:
    """Refuse sums that would not fit in memory beside the copies that reading them takes.

    Raises
    ------
    DesignError
        If they would not.
    """
    memory = _memory()
    needed = 8 * n_clusters * n_sums
    if memory is not None and needed > SHARE_OF_MEMORY * memory:
        raise DesignError(
            f"`cluster` is {cluster!r}, which has some {n_clusters:,} values, and {n_sums:,} sums of each "
            f"take {needed / 2**30:.1f} GiB, more than a quarter of this machine's {memory / 2**30:.1f} GiB. "
            "Name a coarser column with `cluster=`, or keep the rows of fewer models or conditions"
        )


def _memory() -> int | None:
    """The bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
