"""Estimates: the result of a bootstrap, read at any level and as any interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats import intervals
from triagestats.arguments import valid_level
from triagestats.defaults import BY_QUANTILES, FEW_CLUSTERS, FOR_SMOOTH, OF_SCHEME, Method, too_few
from triagestats.errors import ArgumentError
from triagestats.evidence import Evidence
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.schema import Scheme

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["JACKKNIFED", "Estimates", "readable"]

JACKKNIFED: Final = ("bca", "bootstrap-t", "jackknife-t", "max-t")
"""Intervals that need the jackknife."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates(Shown):
    """Estimates with bootstrap replicates; the same replicates give every interval at every level.

    Attributes
    ----------
    identity
        The columns that say what each estimate is.
    evidence
        Estimates, errors and replicates.
    interval, conf_level
        What `conf_low` and `conf_high` are.
    scheme
        What was drawn.
    smooth
        Whether each estimand is differentiable; where not, only percentile and basic hold.
    binomial
        Numbers of clusters behind estimates that are means of values 0 and 1, 0 for others: at 0 and 1
        these get Wilson's interval.
    n_rows
        Rows behind each estimate.
    n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.bootstrap([[1, 1], [0, 1], [1, 1], [0, 0], [1, 1], [0, 1]], n_resamples=999)
    >>> fit.estimate.round(3).tolist(), fit.with_level(0.8).conf_level
    ([0.5, 0.833], 0.8)
    >>> fit.with_interval("basic").tidy()["method"][0]
    'cluster bootstrap, basic, exact'
    """

    identity: tuple[Mapping[str, Any], ...]
    evidence: Evidence
    interval: Method
    conf_level: float
    scheme: Scheme
    smooth: tuple[bool, ...]
    binomial: tuple[int, ...]
    n_rows: tuple[int, ...]
    n_resamples: int
    seed: int
    notes: tuple[Note, ...] = ()
    _read: intervals.Ends = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_read", self._ends())

    @property
    def estimate(self) -> Array:
        """Point estimates, shape (E,)."""
        return self.evidence.estimate

    @property
    def replicates(self) -> Array:
        """Bootstrap estimates, shape (R, E)."""
        return self.evidence.replicates

    @property
    def std_error(self) -> Array:
        """Standard deviation of the replicates, or the jackknife error for t intervals, shape (E,)."""
        if self.interval in ("jackknife-t", "bootstrap-t", "max-t"):
            error = self.evidence.std_error
        else:
            error = intervals.moments(self.replicates)[1]
        return np.where(self.evidence.varies, error, 0.0)

    @property
    def conf_low(self) -> Array:
        """Lower ends, shape (E,)."""
        return self._read.low

    @property
    def conf_high(self) -> Array:
        """Upper ends, shape (E,)."""
        return self._read.high

    def with_level(self, conf_level: float) -> Estimates:
        """The same replicates at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def with_interval(self, interval: Method) -> Estimates:
        """The same replicates as another interval.

        Raises
        ------
        ArgumentError
            If the scheme does not have it, or it needs what was not computed.
        """
        readable(interval, self.scheme)
        computed = len(self.evidence.pivots) if interval == "bootstrap-t" else self._jackknifed
        if interval in JACKKNIFED and not computed:
            raise ArgumentError(
                f"`interval` {interval!r} needs more than the replicates: ask for it in the call"
            )
        return replace(self, interval=interval)

    @property
    def _jackknifed(self) -> bool:
        return bool(np.isfinite(self.evidence.std_error).any() or not self.evidence.varies.any())

    def _ends(self) -> intervals.Ends:
        ends = self.evidence.ends(self.interval, self.conf_level)
        low, high = ends.low.copy(), ends.high.copy()
        for e, estimate in enumerate(self.estimate):
            if not self.smooth[e] and self.interval in FOR_SMOOTH:
                low[e] = high[e] = np.nan
            elif self.binomial[e] and estimate in (0.0, 1.0):
                low[e], high[e] = intervals.wilson(float(estimate), self.binomial[e], self.conf_level)
            elif not self.evidence.varies[e]:
                low[e] = high[e] = estimate if self.interval in ("percentile", "basic") else np.nan
        return intervals.Ends(low, high)

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary."""
        ends, errors = self._read, self.std_error
        rows = []
        for e, identity in enumerate(self.identity):
            status, reason = self._status(e, float(ends.low[e]))
            rows.append(
                {
                    **identity,
                    "estimate": float(self.estimate[e]),
                    "std_error": float(errors[e]) if errors[e] > 0 else None,
                    "conf_low": float(ends.low[e]),
                    "conf_high": float(ends.high[e]),
                    "conf_level": self.conf_level,
                    "status": status,
                    "reason": reason,
                    "method": self._method(e),
                    "n_rows": self.n_rows[e],
                    "n_clusters": int(self.evidence.n_clusters[e]),
                }
            )
        return tidy_frame(rows)

    def _status(self, e: int, low: float) -> tuple[str, str | None]:
        if not np.isfinite(self.estimate[e]):
            return "undefined", "the estimand is not finite for these data"
        if self.binomial[e] and self.estimate[e] in (0.0, 1.0):
            return "degenerate", "a share of exactly 0 or 1: Wilson's interval is shown"
        if not self.evidence.varies[e]:
            return "degenerate", "all clusters agree: nothing shows how far the estimate could be off"
        if not self.smooth[e] and self.interval in FOR_SMOOTH:
            return "undefined", f"not smooth: {self.interval} does not hold; read it as percentile or basic"
        if np.isnan(low):
            return "undefined", f"{self.interval} is degenerate here; read it as percentile"
        doubts = self.evidence.doubts(e) if self.interval == "jackknife-t" else []
        if lost := int((~np.isfinite(self.replicates[:, e])).sum()):
            doubts.append(f"{lost:,} replicates are undefined and left out")
        if (number := int(self.evidence.n_clusters[e])) < FEW_CLUSTERS:
            doubts.append(f"{number} clusters: intervals from fewer than {FEW_CLUSTERS} may cover too little")
        drawn = self.interval in BY_QUANTILES and self.evidence.laws[e] is None
        if drawn and (doubt := too_few(self.n_resamples, self.conf_level)):
            doubts.append(doubt)
        return ("warning", "; ".join(doubts)) if doubts else ("ok", None)

    def _method(self, e: int) -> str:
        way = f"{len(self.replicates):,} drawn"
        if self.interval in ("percentile", "basic") and self.evidence.laws[e] is not None:
            way = "exact"
        if self.interval == "jackknife-t":
            return "jackknife t"
        return f"{self.scheme} bootstrap, {self.interval}, {way}"

    def glance(self) -> pl.DataFrame:
        """One row: what was drawn, how often, and how it is read."""
        return pl.DataFrame(
            {
                "n_estimates": [len(self.identity)],
                "n_clusters": [int(self.evidence.n_clusters.max(initial=0))],
                "scheme": [self.scheme],
                "interval": [self.interval],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Estimates, settings and notes as plain JSON values."""
        return as_json(self, estimates=self.tidy())

    def __repr__(self) -> str:
        lines = [f"{self.scheme} bootstrap, {len(self.replicates):,} replicates, seed {self.seed}"]
        for row in self.tidy().iter_rows(named=True):
            name = " / ".join(filter(None, (row["contrast"] or row["term"] or row["estimand"], row["model"])))
            ends = (
                "no interval"
                if row["conf_low"] is None
                else f"[{row['conf_low']:.4g}, {row['conf_high']:.4g}]"
            )
            doubt = "" if row["reason"] is None else f"  ({row['reason']})"
            lines.append(
                f"  {name}: {row['estimate']:.4g}, {self.conf_level * 100:g} % {self.interval} {ends}{doubt}"
            )
        return "\n".join(lines + [f"  note: {note.message}" for note in self.notes])


def readable(interval: Method, scheme: Scheme) -> Method:
    """`interval` if the scheme has it.

    Raises
    ------
    ArgumentError
        If not.
    """
    allowed = OF_SCHEME[scheme]
    if interval not in allowed:
        if interval not in OF_SCHEME["cluster"]:
            raise ArgumentError(
                f"`interval` must be one of {', '.join(map(repr, allowed))}; got {interval!r}"
            )
        raise ArgumentError(
            f"`interval` {interval!r} does not go with scheme={scheme!r}, which has "
            f"{', '.join(map(repr, allowed))}"
        )
    return interval
