"""Two strata of clusters: which clusters are in each, and whether both can be estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats.blocks import Block
from triagestats.canonical import ordered_levels
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import as_text, label_of, listed
from triagestats.models.attributes import columns_by_scenario
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Groups", "groups_of", "stratum_of_clusters", "two_strata"]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The clusters of two strata.

    Attributes
    ----------
    names
        The two strata.
    block
        The estimand.
    totals
        Of the clusters of either stratum that carry data, shape (G, K).
    first
        Whether a cluster is in the first stratum, shape (G,).
    n_missing
        Clusters without a stratum or without data.
    n_others
        Clusters of other strata.
    """

    names: tuple[str, str]
    block: Block
    totals: Array
    first: NDArray[np.bool_]
    n_missing: int
    n_others: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Clusters of each stratum."""
        return int(self.first.sum()), int((~self.first).sum())


def stratum_of_clusters(table: ResponseTable, design: Design, by: object, scenarios: object) -> pl.Series:
    """The stratum of each cluster, null where it is blank.

    Raises
    ------
    DesignError
        If a cluster has several.
    """
    if not isinstance(by, str):
        raise ArgumentTypeError(f"`by` must be the name of a column; got {by!r}")
    if design.n_units != design.n_scenarios:
        raise DesignError("the table has one scenario, and strata are groups of scenarios")
    labels = table.frame["scenario"].unique().sort().to_list()
    ((_, column),) = columns_by_scenario(table, [by], scenarios, labels, "by")
    levels, _ = ordered_levels(column)
    text = as_text(column, by).cast(pl.Enum(levels))
    axis = design.axes[0]
    pairs = pl.DataFrame({"cluster": axis.codes, "stratum": text}).drop_nulls().unique().sort("cluster")
    split = pairs.filter(pl.col("cluster").is_duplicated()).sort("cluster", "stratum")
    if split.height:
        example = split["cluster"][0]
        some = split.filter(pl.col("cluster") == example)["stratum"].head(2).to_list()
        raise DesignError(
            f"{axis.name} {axis.labels[example]!r} is in the strata {some[0]!r} and {some[1]!r} of {by!r}, "
            f"one of {split['cluster'].n_unique():,} clusters in several; strata must hold whole clusters. "
            "Compare within clusters with a contrast instead"
        )
    wanted = pl.DataFrame({"cluster": np.arange(len(axis.labels))})
    return wanted.join(pairs, on="cluster", how="left", maintain_order="left")["stratum"]


def two_strata(stratum: pl.Series, by: str, strata: object) -> tuple[str, str]:
    """The two strata to compare."""
    levels = ordered_levels(stratum)[0]
    if strata is None:
        if len(levels) != 2:
            raise ArgumentError(
                f"`strata` is needed, as {by!r} has {len(levels)} values, {listed(levels)}; name two of them"
            )
        return levels[1], levels[0]
    if isinstance(strata, str) or not isinstance(strata, tuple | list) or len(strata) != 2:
        raise ArgumentTypeError(f"`strata` must name two values of {by!r}; got {strata!r}")
    first, second = (str(label_of(value)) for value in strata)
    unknown = [name for name in (first, second) if name not in levels]
    if unknown or first == second:
        raise ArgumentError(
            f"`strata` must name two different values of {by!r}, out of {listed(levels)}; got {list(strata)}"
        )
    return first, second


def groups_of(
    design: Design, block: Block, totals: Array, stratum: pl.Series, names: tuple[str, str]
) -> Groups:
    """The clusters of the two strata, where both can be estimated."""
    carries = block.contributes(totals)[:, 0]
    in_either = stratum.is_in(list(names)).fill_null(value=False).to_numpy()
    used = carries & in_either
    first = (stratum == names[0]).fill_null(value=False).to_numpy()[used]
    groups = Groups(
        names=names,
        block=block,
        totals=totals[used],
        first=first,
        n_missing=int((stratum.is_null().to_numpy() | (in_either & ~carries)).sum()),
        n_others=int((~in_either & stratum.is_not_null().to_numpy()).sum()),
    )
    for name, size, rows in zip(names, groups.sizes, (first, ~first), strict=True):
        if size < 2:
            raise DesignError(
                f"stratum {name!r} has {size} cluster{'' if size == 1 else 's'} with data, and needs two"
            )
        empty = groups.totals[rows][:, block.denominators].sum(axis=0) == 0
        if empty.any():
            raise DesignError(
                f"a model or condition has no data in stratum {name!r}, so that the strata would be averaged "
                f"over different ones; choose one of the models {listed(design.models)} with `model=`"
            )
    return groups
