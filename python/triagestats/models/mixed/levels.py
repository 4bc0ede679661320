"""What is known of single levels: of those that were seen, which is best; of one that is new, its rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.posterior_averages import level_averages, new_level_averages
from triagestats.models.mixed.profiles import Profiles
from triagestats.models.mixed.quantities import placed_profile
from triagestats.models.mixed.thinning import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["best_levels", "fixed_levels", "new_levels"]


def best_levels(
    matrix: MixedMatrix,
    draws: Draws,
    profiles: Profiles,
    part: str,
    *,
    higher_is_better: bool,
    conf_level: float,
) -> pl.DataFrame:
    """Each level that was seen of a random part, with its rate and its chance of being best.

    The rate is averaged over all cells, with the effects of the level and new levels of the other parts.

    Returns
    -------
    polars.DataFrame
        `level`, `estimate`, `std_error`, `conf_low`, `conf_high`, `p_best`, `mean_rank` (1 is best), best
        first.

    Raises
    ------
    ArgumentError
        If `part` is no random part.
    """
    known_part(matrix, part)
    levels = next(found.levels for found in matrix.random if found.name == part)
    everything = profiles.profiles[0]
    draws = aligned(draws)
    rates = np.stack(
        [
            _scalar(matrix, level_averages(matrix, draws, everything, part, place)).ravel()
            for place in range(len(levels))
        ]
    )
    return _ranked(levels, rates, higher_is_better=higher_is_better, conf_level=conf_level)


def fixed_levels(
    labels: tuple[str, ...], rates: Array, *, higher_is_better: bool, conf_level: float
) -> pl.DataFrame:
    """The same for the levels of a regressor, from draws of their rates, shape (levels, draws)."""
    return _ranked(labels, rates, higher_is_better=higher_is_better, conf_level=conf_level)


def new_levels(
    matrix: MixedMatrix, draws: Draws, profiles: Profiles, part: str, *, conf_level: float, seed: int
) -> pl.DataFrame:
    """The rate of one new level, such as a new scenario, at each profile: its predictive distribution.

    At each draw one new level is drawn, with its effect at the level of the regressor that a profile sets
    where there is one, as of `(1 | scenario:condition)`; new levels of the other parts are averaged over.

    Returns
    -------
    polars.DataFrame
        `term`, `condition`, `model`, `estimate`, `std_error`, `conf_low`, `median`, `conf_high`.

    Raises
    ------
    ArgumentError
        If `part` is no random part.
    """
    known_part(matrix, part)
    rows = []
    alpha = (1 - conf_level) / 2
    for profile in profiles.profiles[: profiles.shown]:
        # The same new levels at every profile, so that rows differ by the profile alone.
        rng = np.random.default_rng([seed, 0x0E3])
        values = _scalar(matrix, new_level_averages(matrix, draws, profile, part, rng)).ravel()
        low, median, high = np.quantile(values, [alpha, 0.5, 1 - alpha])
        rows.append(
            {
                **dict.fromkeys(("term", "condition", "model")),
                **placed_profile(profile),
                "estimate": float(values.mean()),
                "std_error": float(values.std(ddof=1)),
                "conf_low": float(low),
                "median": float(median),
                "conf_high": float(high),
            }
        )
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(("term", "condition", "model"), pl.String))


def known_part(matrix: MixedMatrix, part: str) -> None:
    """Refuse a name that no random part has.

    Raises
    ------
    ArgumentError
        If it is none of them.
    """
    names = [found.name for found in matrix.random]
    if part not in names:
        raise ArgumentError(f"`part` must be a random part of the model, one of {names}; got {part!r}")


def _scalar(matrix: MixedMatrix, averages: Array) -> Array:
    """The probability, the mean, or the mean level, from 1."""
    if matrix.family != "ordinal":
        return averages[..., 0]
    j = len(matrix.levels)
    mean: Array = averages[..., :j] @ np.arange(1.0, j + 1)
    return mean


def _ranked(
    labels: tuple[str, ...], rates: Array, *, higher_is_better: bool, conf_level: float
) -> pl.DataFrame:
    places = np.argsort(np.argsort(-rates if higher_is_better else rates, axis=0, kind="stable"), axis=0)
    alpha = (1 - conf_level) / 2
    low, high = np.quantile(rates, [alpha, 1 - alpha], axis=1)
    return pl.DataFrame(
        {
            "level": list(labels),
            "estimate": rates.mean(axis=1),
            "std_error": rates.std(axis=1, ddof=1),
            "conf_low": low,
            "conf_high": high,
            "p_best": (places == 0).mean(axis=1),
            "mean_rank": places.mean(axis=1) + 1,
        }
    ).sort("mean_rank", maintain_order=True)
