"""The rows of a Bayesian mixed model: summaries of posteriors, and probabilities of hypotheses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from triagestats.models.mixed.quantities import Quantity
from triagestats.verdicts import verdict

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How posteriors are read.

    Attributes
    ----------
    conf_level
        Of the equal-tailed credible intervals.
    margin, higher_is_better
        For verdicts and probabilities of equivalence.
    failed
        Why the draws cannot be trusted, in words; empty where they can.
    method
        The model and sampler in words.
    n_rows
        Rows of the fit.
    """

    conf_level: float
    margin: float | None
    higher_is_better: bool
    failed: tuple[str, ...]
    method: str
    n_rows: int

    def rows(self, quantities: Iterable[Quantity]) -> Iterator[dict[str, Any]]:
        """One row a quantity, for the tidy frame: posterior mean, sd and interval."""
        alpha = 1 - self.conf_level
        for quantity in quantities:
            values = quantity.values.ravel()
            known = bool(np.isfinite(values).all())
            # The interval at alpha, and at 2 alpha, which equivalence is read from.
            places = [alpha / 2, 1 - alpha / 2, alpha, 1 - alpha]
            ends = np.quantile(values, places) if known else np.full(4, np.nan)
            low, high, inner_low, inner_high = ends.tolist()
            row = {
                "estimand": quantity.estimand,
                "term": quantity.term,
                "condition": quantity.condition,
                "model": quantity.model,
                "contrast": quantity.contrast,
                "estimate": float(values.mean()) if known else None,
                "std_error": float(values.std(ddof=1)) if known else None,
                "conf_low": low,
                "conf_high": high,
                "conf_level": self.conf_level,
                "status": "warning" if self.failed else "ok",
                "reason": f"the sampler failed: {'; '.join(self.failed)}" if self.failed else None,
                "method": f"{self.method}; posterior mean, equal-tailed credible interval",
                "n_rows": self.n_rows,
                "n_clusters": quantity.n_clusters,
            }
            if not known:
                row |= {"status": "undefined", "reason": "its draws are not finite"}
            elif quantity.oriented and not self.failed:
                row["verdict"] = verdict(
                    low,
                    high,
                    margin=self.margin,
                    inner=(inner_low, inner_high),
                    higher_is_better=self.higher_is_better,
                )
            yield row

    def details(self, quantities: Iterable[Quantity]) -> pl.DataFrame:
        """One row a difference: `estimand`, `term`, `contrast`, and posterior probabilities.

        `p_above_zero`; `p_direction`, that of the likelier sign; `p_better` (null where neither sign is
        better); `p_within_margin` and `p_not_worse` (null without a margin).
        """
        rows = []
        for quantity in quantities:
            if quantity.contrast is None or "averaged" not in quantity.estimand:
                continue
            values = quantity.values.ravel()
            above, below = float((values > 0).mean()), float((values < 0).mean())
            signed = values if self.higher_is_better else -values
            margin = self.margin if quantity.oriented else None
            rows.append(
                {
                    "estimand": quantity.estimand,
                    "term": quantity.term,
                    "contrast": quantity.contrast,
                    "p_above_zero": above,
                    "p_direction": max(above, below),
                    "p_better": float((signed > 0).mean()) if quantity.oriented else None,
                    "p_within_margin": None if margin is None else float((np.abs(values) < margin).mean()),
                    "p_not_worse": None if margin is None else float((signed > -margin).mean()),
                }
            )
        text = dict.fromkeys(("estimand", "term", "contrast"), pl.String)
        numbers = ("p_above_zero", "p_direction", "p_better", "p_within_margin", "p_not_worse")
        return pl.DataFrame(rows, schema={**text, **dict.fromkeys(numbers, pl.Float64)})
