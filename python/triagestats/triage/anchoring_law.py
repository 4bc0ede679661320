"""The law of the anchoring gap of each model under relabelling of the voices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.blocks import Block
from triagestats.design import Design
from triagestats.extremes import Center, as_extreme
from triagestats.permutation import block_null
from triagestats.tolerances import ROUNDING
from triagestats.totals import TotalsBuilder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["NULL_SCHEMA", "Law", "averages_of", "laws_of", "row_of"]

_LEVEL: Final = 0.95
NULL_SCHEMA: Final = pl.Schema(
    dict.fromkeys(("condition", "model"), pl.String())
    | dict.fromkeys(("observed", "null_mean", "null_std", "null_q95", "p_value"), pl.Float64())
)
_AVERAGES: Final = pl.Schema(
    {"condition": pl.String(), "n_models": pl.Int64()}
    | dict.fromkeys(("null_mean", "null_q95", "pooled_q95"), pl.Float64())
)


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The anchoring gap of a model and its values under relabelling."""

    condition: str | None
    model: str | None
    observed: float
    values: Array
    exact: bool
    moves: bool
    noise: float
    n_rows: int
    n_keys: int
    n_clusters: int

    @property
    def p_value(self) -> float:
        extreme = int(as_extreme(self.values, self.observed, Center(0.0), "greater", self.noise).sum())
        return extreme / len(self.values) if self.exact else (extreme + 1) / (len(self.values) + 1)

    def shown(self) -> dict[str, Any]:
        """Its row of the frame `null`."""
        return {
            "condition": self.condition,
            "model": self.model,
            "observed": self.observed,
            "null_mean": float(self.values.mean()),
            "null_std": float(self.values.std()),
            "null_q95": _quantile(self.values),
            "p_value": self.p_value,
        }


def _quantile(values: Array) -> float:
    """The quantile of probability 0.95: the smallest value with at least that share at or below it."""
    return float(np.quantile(values, _LEVEL, method="inverted_cdf"))


def laws_of(
    block: Block,
    builder: TotalsBuilder,
    condition: str | None,
    design: Design,
    *,
    n_resamples: int,
    seed: int,
    threads: int,
) -> dict[int, Law]:
    """The law of each model that has data."""
    totals = builder.build()
    null, exact = block_null(block, totals.values, n_resamples=n_resamples, seed=seed, n_threads=threads)
    observed, noise = block.evaluate(totals.sums), ROUNDING * block.magnitude(totals.sums)
    n_clusters = block.contributes(totals.values).sum(axis=0)
    laws = {}
    for place, model in enumerate(block.models):
        if model is None and design.has_models:
            continue
        values = null[:, place]
        laws[model or 0] = Law(
            condition=condition,
            model=design.models[model] if model is not None else None,
            observed=float(observed[place]),
            values=values,
            exact=exact,
            moves=bool(np.ptp(values) > noise[place]),
            noise=float(noise[place]),
            n_rows=block.n_rows[place],
            n_keys=block.n_keys[place],
            n_clusters=int(n_clusters[place]),
        )
    return laws


def row_of(law: Law | None, planned: int) -> dict[str, Any]:
    """What the tidy frame says of a law; None is a model without data."""
    if law is None:
        reason = "no key is scored in all voices"
        return {"status": "no_data", "reason": reason, "n_rows": 0, "n_clusters": 0, "n_missing": planned}
    spread = float(law.values.std())
    how = "exact by enumeration" if law.exact else f"{len(law.values):,} drawn"
    return {
        "estimate": law.observed,
        "statistic": (law.observed - float(law.values.mean())) / spread if law.moves else None,
        "p_value": law.p_value,
        "status": "ok" if law.moves else "degenerate",
        "reason": None if law.moves else "the voices do not differ in any cluster",
        "method": f"permutation by cluster, {how}; one-sided, greater",
        "n_rows": law.n_rows,
        "n_clusters": law.n_clusters,
        "n_missing": max(0, planned - law.n_keys),
    }


def averages_of(laws: Sequence[Law]) -> pl.DataFrame:
    """Averages over the models of a condition whose voices differ somewhere."""
    rows = []
    for condition in dict.fromkeys(law.condition for law in laws):
        moving = [law for law in laws if law.condition == condition and law.moves]
        if moving:
            rows.append(
                {
                    "condition": condition,
                    "n_models": len(moving),
                    "null_mean": float(np.mean([law.values.mean() for law in moving])),
                    "null_q95": float(np.mean([_quantile(law.values) for law in moving])),
                    "pooled_q95": _quantile(np.concatenate([law.values for law in moving])),
                }
            )
    return pl.DataFrame(rows, schema=_AVERAGES)
