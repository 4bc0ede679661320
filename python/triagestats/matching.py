"""Keys: what is compared with what, as dense arrays over condition levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from triagestats.design import Design
from triagestats.schema import Match

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Keys", "Repetitions", "keys_of", "parts_of", "repetitions_of"]

_PARTS: Final[dict[Match, tuple[str, ...]]] = {
    "cell": ("unit", "model", "variant"),
    "row": ("unit", "model", "variant", "repetition"),
    "scenario": ("unit", "model"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Scores by key and condition level.

    Attributes
    ----------
    unit, model, cell
        Codes, shape (n,); keys of one cell differ in the repetition alone.
    values
        Mean score of the key at each level, shape (n, L); NaN where nothing is scored.
    counts
        Responses behind each value, shape (n, L).
    """

    unit: NDArray[np.int64]
    model: NDArray[np.int64]
    cell: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]

    def matched(self, columns: list[int]) -> Keys:
        """The keys scored at all of the given levels, with those levels only."""
        values = self.values[:, columns]
        kept = ~np.isnan(values).any(axis=1)
        return Keys(
            self.unit[kept],
            self.model[kept],
            self.cell[kept],
            values[kept],
            self.counts[kept][:, columns],
        )


_FOUND: Final[WeakKeyDictionary[Design, dict[tuple[Match, str | None], Keys]]] = WeakKeyDictionary()


def keys_of(design: Design, match: Match, stratum: str | None = None) -> Keys:
    """Keys of a design, each with its mean score at every level.

    Parameters
    ----------
    design
        The design.
    match
        What a key is: `cell` is unit x model x variant, with repetitions averaged; `row` also holds
        the repetition; `scenario` is unit x model, with cells averaged over variants.
    stratum
        Use the responses of one subgroup only.

    Notes
    -----
    The keys are kept as long as the design, as rates, contrasts and descriptions read the same ones.
    """
    if match == "row" and "repetition" not in design.responses.columns:
        match = "cell"
    found = _FOUND.setdefault(design, {})
    if (match, stratum) not in found:
        found[match, stratum] = _make(design, match, stratum)
    return found[match, stratum]


def _make(design: Design, match: Match, stratum: str | None) -> Keys:
    responses = _scored(design, stratum)
    parts = _present(responses, "row" if match == "row" else "cell")
    cells = responses.group_by([*parts, "level"], maintain_order=True).agg(
        pl.col("score").mean().alias("value"), pl.len().cast(pl.Int64).alias("count")
    )
    if match == "scenario":
        parts = _present(responses, "scenario")
        cells = cells.group_by([*parts, "level"], maintain_order=True).agg(
            pl.col("value").mean(), pl.col("count").sum()
        )
    keys = cells.select(parts).unique(maintain_order=True).sort(parts).with_row_index("key")
    cells = cells.join(keys, on=parts, how="left", nulls_equal=True, maintain_order="left")
    shape = (keys.height, len(design.levels))
    values = np.full(shape, np.nan)
    counts = np.zeros(shape, dtype=np.int64)
    place = (cells["key"].to_numpy(), cells["level"].to_numpy())
    values[place] = cells["value"].to_numpy()
    counts[place] = cells["count"].to_numpy()
    of_cell = _present(keys, "scenario" if match == "scenario" else "cell")
    return Keys(
        unit=keys["unit"].to_numpy().astype(np.int64),
        model=keys["model"].to_numpy(),
        cell=keys.select(pl.struct(of_cell).rle_id()).to_series().to_numpy().astype(np.int64),
        values=values,
        counts=counts,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Repetitions:
    """Scored responses: their cell key in `keys_of(design, "cell")`, level code and score, shape (n,)."""

    key: NDArray[np.int64]
    level: NDArray[np.int64]
    score: NDArray[np.float64]


def repetitions_of(design: Design, stratum: str | None = None) -> Repetitions:
    """The scored responses of a design behind the cells of its keys."""
    responses = _scored(design, stratum)
    parts = _present(responses, "cell")
    keys = responses.select(parts).unique().sort(parts).with_row_index("key")
    rows = responses.join(keys, on=parts, how="left", nulls_equal=True, maintain_order="left")
    return Repetitions(
        rows["key"].to_numpy().astype(np.int64), rows["level"].to_numpy(), rows["score"].to_numpy()
    )


def _scored(design: Design, stratum: str | None) -> pl.DataFrame:
    responses = design.responses.filter(pl.col("score").is_not_null())
    return responses if stratum is None else responses.filter(pl.col("stratum") == stratum)


def parts_of(design: Design, match: Match) -> list[str]:
    """The columns of the responses that make a key, of those that the design has."""
    return _present(design.responses, match)


def _present(responses: pl.DataFrame, match: Match) -> list[str]:
    return [part for part in _PARTS[match] if part in responses.columns]
