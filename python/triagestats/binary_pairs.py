"""Pairs of 0/1 outcomes as the counts of a 2 x 2 table: two counts, a table, vectors, columns or levels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.columns import Shared
from triagestats.counts import count_of, pair_table
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.pairs import Pairs, read_pairs
from triagestats.results import Note
from triagestats.schema import Match
from triagestats.table import ResponseTable
from triagestats.vectors import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PairCounts", "read_pair_counts"]


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """How many pairs are 1 on both sides, on one, on none.

    Attributes
    ----------
    b, c
        Discordant pairs: only x is 1, only y is 1.
    n
        All pairs; None where two counts were given without it.
    both
        Pairs that are 1 on both sides; None where two counts were given.
    names
        What the two sides are called.
    pairs
        The pairs themselves, None where counts were given.
    read
        How a table of counts was read.
    """

    b: int
    c: int
    n: int | None = None
    both: int | None = None
    names: tuple[str, str] = ("x", "y")
    pairs: Pairs | None = None
    read: tuple[Note, ...] = ()

    @property
    def n_discordant(self) -> int:
        """Pairs that differ."""
        return self.b + self.c

    @property
    def notes(self) -> tuple[Note, ...]:
        """Choices made while reading."""
        return self.read if self.pairs is None else self.pairs.notes

    @property
    def clustered(self) -> bool:
        """Whether the caller gave clusters."""
        return self.pairs is not None and self.pairs.clustered

    def independence(self, clustered: str) -> tuple[Note, ...]:
        """A note for a test that ignores clusters which the pairs share."""
        return () if self.pairs is None else self.pairs.independence(clustered)

    def clusters_for(self, method: str) -> tuple[Pairs, Shared]:
        """The pairs and their clusters, for a method that needs both.

        Raises
        ------
        ArgumentError
            If counts were given, or no clusters.
        DesignError
            If there are fewer than two clusters, or two crossed ones.
        """
        if self.pairs is None:
            raise ArgumentError(
                f"method={method!r} needs every pair with its cluster, and got counts; give `x` and `y` as "
                "vectors of 0 and 1 with `clusters`"
            )
        return self.pairs, self.pairs.clusters_for(method)


def read_pair_counts(
    x: object,
    y: object = None,
    *,
    n: object = None,
    data: object = None,
    clusters: object = None,
    match: Match = "row",
    missing: Missing = "raise",
) -> PairCounts:
    """The counts of pairs of 0/1 outcomes.

    Parameters
    ----------
    x, y
        Two counts, b and c; or `x` alone a table [[both, x only], [y only, neither]], a crosstab of pandas
        by its labels 0 and 1; or what `read_pairs` takes, with values 0 and 1.
    n
        All pairs, for two counts.
    data, clusters, match, missing
        As in `read_pairs`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read, or holds other values than 0 and 1.
    """
    valid_choice("match", match, Match)
    if data is None and not isinstance(x, ResponseTable):
        numbers = _is_number(x), _is_number(y)
        if all(numbers):
            _refuse_clusters(clusters)
            return _of_two(x, y, n)
        if any(numbers):
            raise ArgumentTypeError(
                "two counts are needed: `x`, how many pairs are 1 on the first side only, and `y`, how many "
                "are 1 on the second side only; or two vectors, or a 2 x 2 table as `x`"
            )
    if n is not None:
        raise ArgumentError("`n` goes with two counts only; vectors and tables have their own")
    if data is None and y is None and _is_table(x):
        _refuse_clusters(clusters)
        return _of_table(x)
    pairs = read_pairs(x, y, data=data, clusters=clusters, match=match, missing=missing)
    for side, name in zip((pairs.x, pairs.y), pairs.names, strict=True):
        # Only 0 and 1 are their own squares.
        if np.count_nonzero(side * side - side):
            raise _not_binary(side, name)
    both = int(pairs.x @ pairs.y)
    b, c = int(pairs.x.sum()) - both, int(pairs.y.sum()) - both
    return PairCounts(b, c, len(pairs.x), both, pairs.names, pairs)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_table(value: Any) -> bool:
    if isinstance(value, ResponseTable):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim == 2
    if hasattr(value, "columns"):
        return True
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], list | tuple | np.ndarray)


def _refuse_clusters(clusters: object) -> None:
    if clusters is not None:
        raise ArgumentError(
            "`clusters` needs one label a pair; counts have none, so give `x` and `y` as vectors of 0 and 1"
        )


def _of_two(x: object, y: object, n: object) -> PairCounts:
    b, c = count_of(x, "x"), count_of(y, "y")
    if n is None:
        return PairCounts(b, c)
    size = count_of(n, "n")
    if size < max(b + c, 1):
        raise ArgumentError(
            f"`n` must be the number of all pairs, at least {max(b + c, 1):,} here; got {size:,}"
        )
    return PairCounts(b, c, size)


def _of_table(x: object) -> PairCounts:
    counts, notes = pair_table(x, "x")
    if counts.shape != (2, 2):
        rows, columns = counts.shape
        more = (
            f"; for {rows} categories use `bowker(table)` or `stuart_maxwell(table)`"
            if rows == columns
            else ""
        )
        raise ArgumentError(
            f"`x` must be a 2 x 2 table, [[both, x only], [y only, neither]]; got {rows} x {columns}{more}"
        )
    (both, b), (c, _) = counts.tolist()
    return PairCounts(b, c, int(counts.sum()), both, read=notes)


def _not_binary(side: NDArray[np.float64], name: str) -> DataError:
    wrong = side[side * side != side]
    example = f"`{name}` holds {wrong[0]:g} where 0 and 1 are expected"
    if ((wrong > 0) & (wrong < 1)).any():
        return DataError(
            f"{example}. A mean over judges or repetitions is no single answer: test per judge, "
            "`table.with_judge('...')`, or only what all judges agree on, `table.with_unanimous_judges()`, "
            "with match='row'; for means use `wilcoxon_signed_rank` or `permutation_test`"
        )
    return DataError(
        f"{example}; for scores on a scale use `wilcoxon_signed_rank`, for labels `bowker(table)`"
    )
