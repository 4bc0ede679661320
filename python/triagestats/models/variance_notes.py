"""What a reader of variance components must know: doubts, and what the residual is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from triagestats.models.generalisability import Component
from triagestats.models.random_terms import VarianceDesign
from triagestats.models.reml import MixedFit
from triagestats.models.variance_result import VarianceInterval
from triagestats.results import Note

__all__ = ["fit_notes", "interval_notes"]

_FEW_LEVELS: Final = 6
"""A random factor with so many levels or fewer gets a caution."""
_EXCESS: Final = 2.0
"""Standard errors by which the residual may exceed the variance of repetitions before a caution."""


def fit_notes(design: VarianceDesign, fit: MixedFit, components: Sequence[Component]) -> list[Note]:
    """Doubts about the components, and what the residual is."""
    notes = []
    if set(np.unique(design.y)) <= {0.0, 1.0}:
        notes.append(
            Note(
                "linear",
                "Scores are 0/1: components are on the scale of the rate, and the residual holds the "
                "binomial noise.",
            )
        )
    few = [
        f"{f.name} ({len(f.levels)})"
        for f in design.facets.values()
        if f.random and len(f.levels) <= _FEW_LEVELS
    ]
    if few:
        notes.append(
            Note(
                "few_levels",
                f"Few levels to learn a variance from: {', '.join(few)}. Their components are hardly known; "
                "where the levels are the only ones of interest, declare the factor `fixed`.",
                "caution",
            )
        )
    singular = [part.name for part in components if part.singular]
    if singular:
        notes.append(
            Note(
                "singular",
                f"At the boundary 0: {', '.join(singular)}. The data show no such variance, which is no "
                "proof that there is none.",
                "caution",
            )
        )
    notes += _residual_notes(design, fit)
    if not fit.converged:
        notes.append(
            Note(
                "not_converged",
                "The search for the maximum did not end at one: do not use the estimates.",
                "caution",
            )
        )
    if not fit.starts_agree:
        notes.append(
            Note(
                "several_optima",
                "Two starts ended at different likelihoods; the better one is shown.",
                "caution",
            )
        )
    return notes


def _residual_notes(design: VarianceDesign, fit: MixedFit) -> list[Note]:
    """What the residual is made of."""
    square, df = fit.likelihood.sums.within
    if df == 0:
        return [
            Note(
                "no_repetition",
                "No combination of all factors has two rows: the residual is their joint interaction with "
                "the noise of a repetition.",
            )
        ]
    if any(effect.n_levels == int(design.cells.max()) + 1 for effect in design.effects):
        return []
    repeated, residual = square / df, float(fit.variances[-1])
    if residual <= repeated * (1 + _EXCESS * math.sqrt(2 / df)):
        return []
    units = fit.likelihood.sums.scale**2
    return [
        Note(
            "residual",
            f"The residual, {residual * units:.4g}, exceeds the variance between repetitions of a request, "
            f"{repeated * units:.4g}: part of it is an interaction of more factors, which more repetitions "
            f"do not shrink. Fit it with interactions={len(design.facets)}.",
            "caution",
        )
    ]


def interval_notes(
    asked: VarianceInterval, used: VarianceInterval, components: Sequence[Component]
) -> list[Note]:
    """How the intervals of components were found, and for which there is none."""
    notes = []
    if asked == "auto" and used != "profile":
        notes.append(
            Note(
                "interval",
                "The model is large: intervals are Satterthwaite's chi-square; interval='profile' computes "
                "profiles, which takes longer.",
            )
        )
    without = [part.name for part in components if part.conf_high is None]
    if used != "none" and without:
        notes.append(Note("no_interval", f"No interval could be found for {', '.join(without)}.", "caution"))
    return notes
