"""Rows beside a ranking: policies, models known by counts alone, and shares that do not enter it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from triagestats import intervals
from triagestats.marginals import Marginals, share_of_counts
from triagestats.tolerances import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Extra", "Shares"]


@dataclass(frozen=True, slots=True, eq=False)
class Extra:
    """A row without paired rows: a policy, or a model known by its counts alone.

    Attributes
    ----------
    model, kind, estimate, n_rows
        What it is, and the answers behind it; a policy has none.
    successes
        Of a share, how many; else -1.
    replicates
        Draws from its counts, shape (R,); none for a share or a policy.
    """

    model: str
    kind: Literal["counts", "policy"]
    estimate: float
    n_rows: int = 0
    successes: int = -1
    replicates: Array = field(default_factory=lambda: np.empty(0))

    def read(self, conf_level: float) -> dict[str, Any]:
        """The columns of a tidy row."""
        if self.successes >= 0:
            return share_of_counts(self.successes, self.n_rows, conf_level)
        row: dict[str, Any] = {
            "estimate": self.estimate,
            "conf_level": conf_level,
            "status": "ok",
            "method": "none",
        }
        if self.kind == "policy":
            return row | {"conf_level": None, "method": "a policy: known, not estimated"}
        row |= {
            "n_rows": self.n_rows,
            "method": f"percentile, {len(self.replicates):,} drawn from the counts",
        }
        if np.ptp(self.replicates) <= TIES * abs(self.estimate):
            return row | {"status": "degenerate", "reason": "the draws do not vary"}
        ends = intervals.percentile(self.replicates[:, None], conf_level)
        return row | {"conf_low": float(ends.low[0]), "conf_high": float(ends.high[0])}


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Shares by model that are shown beside the ranking and do not enter it.

    `names` has one pair (model, what is counted) for each of the estimates.
    """

    names: tuple[tuple[str, str], ...]
    marginals: Marginals

    def read(self, conf_level: float) -> list[dict[str, Any]]:
        """Tidy rows."""
        rows = self.marginals.read(conf_level)
        return [
            {"estimand": "share", "term": term, "model": model, **row}
            for (model, term), row in zip(self.names, rows, strict=True)
        ]
