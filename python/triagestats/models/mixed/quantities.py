"""Quantities: what a Bayesian mixed model reports, each as its posterior draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.naming import correlation_name, deviation_name, threshold_names
from triagestats.models.mixed.posterior_averages import profile_averages, variance_shares
from triagestats.models.mixed.profiles import Profile, Profiles
from triagestats.roles import role_spelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Quantity", "average_quantities", "model_quantities", "placed_profile"]

_COEFFICIENTS: Final = {"binomial": "log odds", "ordinal": "log cumulative odds", "gaussian": "coefficient"}


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """One reported quantity.

    Attributes
    ----------
    estimand, term, condition, model, contrast
        As in the glossary of result columns.
    values
        Its draws, shape (chains, draws).
    oriented
        Whether it is a difference of which more is better, or worse: a verdict has a meaning.
    n_clusters
        Levels of the random part that it is about.
    """

    estimand: str
    values: Array
    term: str | None = None
    condition: str | None = None
    model: str | None = None
    contrast: str | None = None
    oriented: bool = False
    n_clusters: int | None = None

    @property
    def name(self) -> str:
        """What it is, in one line."""
        what = [self.term, self.condition or self.model or self.contrast]
        return ", ".join([self.estimand, *(text for text in what if text)])


def average_quantities(matrix: MixedMatrix, draws: Draws, profiles: Profiles) -> tuple[Quantity, ...]:
    """Population-averaged probabilities of the profiles that are shown, then all comparisons.

    An ordinal outcome has the probability of each level, those under and over the gold range, and the mean
    level (its place, from 1); a gaussian one the mean.
    """
    tables = [dict(_of_profile(matrix, draws, profile)) for profile in profiles.profiles]
    found = [
        Quantity(f"population-averaged {what}", values, **placed_profile(profile))
        for profile, table in zip(profiles.profiles[: profiles.shown], tables, strict=False)
        for what, values in table.items()
    ]
    found += [
        Quantity(
            f"population-averaged {what}",
            (values - tables[comparison.low][what]) * comparison.scale,
            term=comparison.term,
            contrast=comparison.label,
            oriented=what in ("probability", "mean"),
        )
        for comparison in profiles.comparisons
        for what, values in tables[comparison.high].items()
    ]
    return tuple(found)


def placed_profile(profile: Profile) -> dict[str, Any]:
    """The columns that say what a profile is an average of."""
    if profile.term is None:
        return {}
    column = "model" if role_spelled(profile.term) == "model" else "condition"
    return {"term": profile.term, column: profile.label}


def _of_profile(matrix: MixedMatrix, draws: Draws, profile: Profile) -> Iterator[tuple[str, Array]]:
    averages = profile_averages(matrix, draws, profile)
    if matrix.family != "ordinal":
        yield "probability" if matrix.family == "binomial" else "mean", averages[..., 0]
        return
    j = len(matrix.levels)
    for place, level in enumerate(matrix.levels):
        yield f"probability of {level}", averages[..., place]
    gold = {"rate under gold": profile.under, "rate over gold": profile.over}
    known = [name for name, weights in gold.items() if weights is not None]
    for place, name in enumerate(known):
        yield name, averages[..., j + place]
    yield "mean level", averages[..., :j] @ np.arange(1.0, j + 1)


def model_quantities(
    matrix: MixedMatrix, draws: Draws, contrasts: dict[str, str] | None = None
) -> tuple[Quantity, ...]:
    """Thresholds, coefficients, standard deviations, correlations, and shares of the latent variance.

    `contrasts` has the comparison in words by term, for coefficients that are one.
    """
    found = [
        Quantity("threshold", draws.thresholds[:, :, place], name)
        for place, name in enumerate(threshold_names(matrix))
    ]
    found += [
        Quantity(
            _COEFFICIENTS[matrix.family],
            draws.coefficients[:, :, place],
            term,
            contrast=(contrasts or {}).get(term),
        )
        for place, term in enumerate(matrix.terms)
    ]
    levels = {part.name: part.n_levels for part in matrix.random}
    for part, factor in zip(matrix.random, draws.factors, strict=True):
        sds = np.sqrt(np.square(factor).sum(axis=3))
        for a in range(part.width):
            label = deviation_name(part, a)
            found.append(Quantity("standard deviation", sds[:, :, a], label, n_clusters=part.n_levels))
        for a in range(part.width):
            for b in range(a):
                covariance = (factor[:, :, a] * factor[:, :, b]).sum(axis=2)
                with np.errstate(invalid="ignore", divide="ignore"):
                    values = covariance / (sds[:, :, a] * sds[:, :, b])
                label = correlation_name(part, b, a)
                found.append(Quantity("correlation", values, label, n_clusters=part.n_levels))
    if draws.sigma is not None:
        found.append(Quantity("standard deviation", draws.sigma, "residual"))
    found += [
        Quantity("share of variance", value, name, n_clusters=levels.get(name))
        for name, value in variance_shares(matrix, draws).items()
    ]
    return tuple(found)
