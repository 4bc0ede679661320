"""Differences of pairs, or given ones, ranked by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.columns import column_of, frame_of, shared_rows
from triagestats.midranks import SignedRanks, signed_ranks
from triagestats.pairs import Pairs, read_pairs
from triagestats.results import Note
from triagestats.schema import Match
from triagestats.table import ResponseTable
from triagestats.vectors import Missing, drop_missing, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Differences", "all_zero", "read_differences"]


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Differences and the pairs that they come from.

    Attributes
    ----------
    ranked
        The differences, and their ranks by size.
    pairs
        The pairs; where differences were given their second side is 0.
    contrast
        What is subtracted from what.
    """

    ranked: SignedRanks
    pairs: Pairs
    contrast: str


def read_differences(
    x: object, y: object, *, data: object, clusters: object, match: Match, missing: Missing
) -> Differences:
    """Differences x - y of pairs as `read_pairs` has them, or those given as `x` alone.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For what cannot be read as pairs or differences.
    """
    if y is not None or isinstance(x, ResponseTable) or isinstance(data, ResponseTable):
        pairs = read_pairs(x, y, data=data, clusters=clusters, match=match, missing=missing)
        return Differences(signed_ranks(pairs.x, pairs.y), pairs, pairs.contrast)
    frame = frame_of(data)
    given = numbers_of(column_of(frame, x, "x"), "x", dimensions=(1,))
    kept, notes = drop_missing([given], ["x"], missing)
    shared = shared_rows(frame, clusters, len(given))
    values = given[kept]
    name = x if isinstance(x, str) else "x"
    pairs = Pairs(
        x=values,
        y=np.zeros(len(values)),
        names=(name, "0"),
        shared=None if shared is None else shared.of(kept),
        n_missing=int((~kept).sum()),
        notes=notes,
    )
    return Differences(signed_ranks(values), pairs, name)


def all_zero() -> Note:
    """Why a test of differences that are all zero has no statistic."""
    return Note(
        "undefined",
        "All differences are zero: there is no rank or sign to count, and nothing speaks against the "
        "hypothesis, so p = 1.",
        "caution",
    )
