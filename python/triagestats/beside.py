"""Rows beside a ranking: policies, models known by counts alone, and shares that do not enter it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from triagestats import intervals
from triagestats.defaults import FEWEST_CLUSTERS, choose_interval
from triagestats.errors import DataError
from triagestats.marginals import Marginals, Scarce, share_of_counts
from triagestats.tolerances import TIES
from triagestats.triage.text import in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Extra", "Shares", "refuse_known"]


def refuse_known(names: Iterable[str], known: Iterable[str], what: str, fix: str) -> None:
    """Refuse models of `counts` that stand on the board already.

    Raises
    ------
    DataError
        If a name is known.
    """
    if both := sorted(set(names) & set(known)):
        raise DataError(f"`counts` names {in_words(map(repr, both))}, {what}; {fix}")


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
    strength
        What its rank is read from, the larger the better; None where the estimate says it.
    scarce
        What it needs and is known of few clusters.
    """

    model: str
    kind: Literal["counts", "policy"]
    estimate: float
    n_rows: int = 0
    successes: int = -1
    replicates: Array = field(default_factory=lambda: np.empty(0))
    strength: float | None = None
    scarce: Scarce | None = None

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
        if self.scarce is not None:
            withheld = self.scarce.n_clusters < FEWEST_CLUSTERS
            choice = choose_interval(
                "auto" if withheld else "percentile",
                is_rate=False,
                smooth=True,
                estimable=True,
                varies=True,
                at_boundary=False,
                n_clusters=self.scarce.n_clusters,
                n_axes=1,
            )
            row |= {"status": choice.status, "reason": self.scarce.of(choice.reason)}
            if choice.method == "none":
                return row | {"method": "none"}
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
