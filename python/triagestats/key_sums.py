"""Where the sums of an analysis come from: keys in memory, or an engine that holds the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from triagestats.design import Design
from triagestats.matching import Keys, keys_of
from triagestats.schema import Match, Weights
from triagestats.totals import Matched, matched_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DesignSums", "KeySums"]


class KeySums(ABC):
    """Sums by cluster of what is scored at some levels, for rates and for contrasts."""

    __slots__ = ()

    @abstractmethod
    def rate(self, level: int, stratum: str | None) -> Matched:
        """The cells scored at one joint level."""

    @abstractmethod
    def contrast(self, columns: Sequence[int], stratum: str | None) -> Matched:
        """The keys scored at all of the given levels, in their order."""

    @abstractmethod
    def n_matched(self, columns: Sequence[int]) -> int:
        """Number of keys scored at all of the given levels."""

    @abstractmethod
    def n_scored(self) -> NDArray[np.int64]:
        """Number of keys scored at each level, shape (L,)."""


@dataclass(frozen=True, slots=True, eq=False)
class DesignSums(KeySums):
    """The sums of a design whose responses are in memory."""

    design: Design
    match: Match
    weights: Weights

    def rate(self, level: int, stratum: str | None) -> Matched:
        keys = keys_of(self.design, "cell", stratum).matched([level])
        return self._sums(keys, by_count=True)

    def contrast(self, columns: Sequence[int], stratum: str | None) -> Matched:
        keys = keys_of(self.design, self.match, stratum).matched(list(columns))
        return self._sums(keys, by_count=False)

    def n_matched(self, columns: Sequence[int]) -> int:
        scored = keys_of(self.design, self.match).counts[:, list(columns)] > 0
        return int(scored.all(axis=1).sum())

    def n_scored(self) -> NDArray[np.int64]:
        scored: NDArray[np.int64] = (keys_of(self.design, self.match).counts > 0).sum(axis=0)
        return scored

    def _sums(self, keys: Keys, *, by_count: bool) -> Matched:
        axes, n_models = self.design.axes, len(self.design.models)
        return matched_sums(keys, axes, n_models, weights=self.weights, by_count=by_count)
