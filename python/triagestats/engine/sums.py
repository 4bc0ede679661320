"""The sums of an analysis, its counts, and the readings of independent rows, from what the engine sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats.blocks import Block
from triagestats.engine.gather import Gathered
from triagestats.engine.stages import Group, denominator, numerator
from triagestats.independent import RowReading
from triagestats.key_sums import KeySums
from triagestats.labels import as_text
from triagestats.schema import Match
from triagestats.tallies import Tally, pooled
from triagestats.tolerances import ROUNDING
from triagestats.totals import Matched, Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["HeldSums", "level_code", "readings_of", "tally_from"]


@dataclass(frozen=True, slots=True, eq=False)
class HeldSums(KeySums):
    """Sums that arrived, by stratum.

    Attributes
    ----------
    gathered
        By stratum; None for all rows.
    groups
        The groups of rates and contrasts, by kind of key, in the order in which they were asked for.
    order
        For each stratum the place of each sorted cluster among those that arrived; -1 where it has none.
    match
        The kind of key of contrasts.
    models
        The values of the column of models; one None where there is none.
    """

    gathered: Mapping[str | None, Gathered]
    groups: Mapping[Match, tuple[Group, ...]]
    order: Mapping[str | None, NDArray[np.int64]]
    match: Match
    models: tuple[Any, ...]

    def rate(self, level: int, stratum: str | None) -> Matched:
        return self._matched("cell", (level,), stratum, by_count=True)

    def contrast(self, columns: Sequence[int], stratum: str | None) -> Matched:
        return self._matched(self.match, tuple(columns), stratum, by_count=False)

    def n_matched(self, columns: Sequence[int]) -> int:
        group = _place(self.groups[self.match], tuple(columns), by_count=False)
        return int(self.gathered[None].described[self.match][f"m_{group}"].sum())

    def n_scored(self) -> NDArray[np.int64]:
        counts = self.gathered[None].described[self.match]
        found = [name for name in counts.columns if name.startswith("h_")]
        return np.array([int(counts[f"h_{code}"].sum()) for code in range(len(found))], dtype=np.int64)

    def _matched(
        self, match: Match, levels: tuple[int, ...], stratum: str | None, *, by_count: bool
    ) -> Matched:
        group = _place(self.groups[match], levels, by_count=by_count)
        arrived, order = self.gathered[stratum], self.order[stratum]
        sums = arrived.sums[match]
        codes = range(len(self.models))
        places = range(len(levels))

        def column(name: str) -> Array:
            values = sums[name][order]
            values[order < 0] = 0.0
            return values

        shape = (len(order), len(self.models))
        scores, weights = np.empty((*shape, len(levels))), np.empty(shape)
        for code in codes:
            weights[:, code] = column(denominator(group, code))
            for place in places:
                scores[:, code, place] = column(numerator(group, place, code))
        counts = [_of_model(arrived.described[match], value) for value in self.models]
        return Matched(
            Sums(scores, weights),
            np.array([int(own[f"m_{group}"].sum()) for own in counts], dtype=np.int64),
            np.array(
                [[int(own[f"r_{group}_{place}"].sum()) for place in places] for own in counts],
                dtype=np.int64,
            ),
        )


def _place(groups: Sequence[Group], levels: tuple[int, ...], *, by_count: bool) -> int:
    return next(
        place for place, group in enumerate(groups) if group.levels == levels and group.by_count is by_count
    )


def _of_model(counts: pl.DataFrame, value: Any) -> pl.DataFrame:
    """Counts of one model; all where there is no column of models."""
    return counts if value is None else counts.filter(pl.col("model") == value)


def readings_of(
    sums: HeldSums, blocks: Sequence[Block], kinds: Mapping[Match, Match]
) -> tuple[dict[Match, RowReading | None], ...]:
    """As `read_independent`; `kinds` says which kind of key is described for rows, and for cells."""
    readings: list[dict[Match, RowReading | None]] = []
    for block in blocks:
        for model in block.models:
            readings.append({kind: _read(sums, block, model, key) for kind, key in kinds.items()})
    return tuple(readings)


def _read(sums: HeldSums, block: Block, model: int | None, match: Match) -> RowReading | None:
    estimand = block.target.estimand
    if estimand.coefficients is None or estimand.null is None:
        return None
    counts = sums.gathered[block.stratum].described[match]
    if model is not None:
        counts = _of_model(counts, sums.models[model])
    parts = []
    largest = 0.0
    for levels in block.target.columns:
        group = _place(sums.groups[match], levels, by_count=False)
        number = sums.groups[match][group].contrasts.index(estimand.coefficients)
        n, name = counts[f"m_{group}"], f"d_{group}_{number}"
        squares = (counts[f"var_{name}"] * (n - 1)).fill_nan(None).fill_null(0.0)
        mean = counts[f"mean_{name}"].fill_nan(None).fill_null(0.0)
        parts.append(pl.DataFrame({"scored": n.cast(pl.Int64), "mean": mean, "squares": squares}))
        sizes = [counts[f"a_{group}_{place}"].max() for place in range(len(levels))]
        largest = max(largest, *(float(size or 0.0) for size in sizes))  # type: ignore[arg-type]  # numbers
    found = pooled(pl.concat(parts))
    if found.n < 2:
        return None
    deviation = found.deviation if found.deviation > ROUNDING * largest else 0.0
    return RowReading(found.n, found.mean, deviation / found.n**0.5)


def level_code(levels: Sequence[Mapping[str, Any]]) -> pl.Expr:
    """The code of the joint level whose values the condition columns have."""
    code = pl.lit(0, pl.Int64)
    for place, values in enumerate(levels):
        if values:
            here = pl.all_horizontal(pl.col(name) == value for name, value in values.items())
            code = pl.when(here).then(pl.lit(place, pl.Int64)).otherwise(code)
    return code


def tally_from(
    counts: pl.DataFrame,
    models: Sequence[Any],
    levels: Sequence[Mapping[str, Any]],
    *,
    n_rows: int,
    n_cells: int,
    n_judges: int | None,
) -> Tally:
    """The counts of responses as a tally, with codes for models and levels."""
    model = pl.lit(0, pl.Int64)
    for code, value in enumerate(models):
        if value is not None:
            model = pl.when(pl.col("model") == value).then(pl.lit(code, pl.Int64)).otherwise(model)
    stratum = pl.Series("stratum", [None] * counts.height, dtype=pl.String)
    if "stratum" in counts.columns:
        stratum = as_text(counts["stratum"], "stratum")
    n = pl.col("responses").cast(pl.Int64)
    parts = counts.with_columns(
        level=level_code(levels),
        model=model,
        stratum=stratum,
        n=n,
        squares=(pl.col("var") * (n - 1)).fill_nan(None).fill_null(0.0),
        mean=pl.when(pl.col("scored") > 0).then(pl.col("mean")).otherwise(0.0),
    ).with_columns(scored=n * pl.col("scored").cast(pl.Int64))
    rows = []
    for key, own in parts.group_by("level", "model", "stratum", "status"):
        moments = pooled(own)
        rows.append(
            dict(zip(("level", "model", "stratum", "status"), key, strict=True))
            | {
                "responses": int(own["n"].sum()),
                "scored": moments.n,
                "total": float(own["total"].sum()),
                "mean": moments.mean,
                "squares": moments.squares,
            }
        )
    schema = {
        "level": pl.Int64,
        "model": pl.Int64,
        "stratum": pl.String,
        "status": pl.String,
        "responses": pl.Int64,
        "scored": pl.Int64,
        "total": pl.Float64,
        "mean": pl.Float64,
        "squares": pl.Float64,
    }
    responses = pl.DataFrame(rows, schema=schema).sort("level", "model", "stratum", "status")
    return Tally(n_rows, n_cells, n_judges, responses)
