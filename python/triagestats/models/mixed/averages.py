"""Predicted probabilities averaged over cells and over the random effects, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy.special import expit

from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.profiles import Profile, Profiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["At", "Average", "Parameters", "averages", "estimated_averages", "level_probabilities", "total_sd"]

At = Literal["population", "zero"]

NODES: Final = np.linspace(-8.5, 8.5, 201)
"""Of the standard normal distribution; the trapezoid sum over them is exact to rounding up to sds of 15."""
_SHARES: Final = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """A predicted quantity, or a difference of two.

    Attributes
    ----------
    quantity
        `probability`; of an ordinal outcome `probability of <level>`, `rate under gold`, `rate over gold`;
        `mean`.
    term, label
        The column that was set, and to what; for a difference `b - a`.
    difference
        Whether it is a difference.
    estimate
        Its value.
    gradient
        Its derivatives with regard to thresholds, coefficients, and the entries of the factors, as
        `parameters` orders them.
    """

    quantity: str
    term: str | None
    label: str
    difference: bool
    estimate: float
    gradient: Array


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """Parameters that predictions are made of.

    Attributes
    ----------
    thresholds, coefficients
        Shapes (J - 1,) and (p,).
    factors
        The lower triangular factor of the covariance matrix of each random part, each (q, q).
    """

    thresholds: Array
    coefficients: Array
    factors: tuple[Array, ...]


def total_sd(profile: Profile, factors: Sequence[Array]) -> Array:
    """Standard deviation of the sum of a cell's random effects, shape (m,)."""
    variance = np.zeros(len(profile.x))
    for z, factor in zip(profile.z, factors, strict=True):
        variance += ((z @ factor) ** 2).sum(axis=1)
    return np.sqrt(variance)


def level_probabilities(below: Array) -> Array:
    """Probability of each of J levels from that of being at or below the first J - 1, last axis."""
    ends = np.concatenate([np.zeros_like(below[..., :1]), below, np.ones_like(below[..., :1])], axis=-1)
    shares: Array = np.diff(ends, axis=-1)
    return shares


def averages(
    matrix: MixedMatrix, profiles: Profiles, parameters: Parameters, *, at: At = "population"
) -> tuple[Average, ...]:
    """The quantities of all profiles that are shown, then their differences.

    At `population` the expected probability is integrated over the normal distribution of all random effects,

        E P(y = 1) = integral expit(x'b + s t) phi(t) dt,    s^2 = sum_t z' S_t z,

    and averaged over the cells of a profile; at `zero` the random effects are 0. The difference of two
    profiles is that of their quantities.
    """
    made = []
    for profile in profiles.profiles:
        none = np.zeros(len(profile.x))
        scale = total_sd(profile, parameters.factors) if at == "population" else none
        made.append(_predicted(matrix, profile, parameters, none, scale))
    return _with_differences(profiles, made)


def estimated_averages(
    matrix: MixedMatrix, cells: Profiles, parameters: Parameters, modes: Sequence[Array]
) -> tuple[Average, ...]:
    """Averages over the cells at the predicted effects of their own levels.

    Their gradients leave the effects where they are, and so are not the whole of what the parameters change.

    Parameters
    ----------
    matrix, parameters
        The model.
    cells
        Profiles of all cells, not collapsed.
    modes
        The predicted effects of each random part, (levels, q).
    """
    made = []
    for profile in cells.profiles:
        shift = np.zeros(len(profile.x))
        for part, z, mode in zip(matrix.random, profile.z, modes, strict=True):
            shift += (z * mode[part.codes]).sum(axis=1)
        made.append(_predicted(matrix, profile, parameters, shift, np.zeros(len(shift))))
    return _with_differences(cells, made)


def _with_differences(profiles: Profiles, made: Sequence[Sequence[Average]]) -> tuple[Average, ...]:
    """The quantities of the profiles that are shown, then the comparisons of all."""
    shown = [average for averages_of in made[: profiles.shown] for average in averages_of]
    compared = [
        Average(
            quantity=high.quantity,
            term=comparison.term,
            label=comparison.label,
            difference=True,
            estimate=(high.estimate - low.estimate) * comparison.scale,
            gradient=(high.gradient - low.gradient) * comparison.scale,
        )
        for comparison in profiles.comparisons
        for high, low in zip(made[comparison.high], made[comparison.low], strict=True)
    ]
    return (*shown, *compared)


def _predicted(
    matrix: MixedMatrix, profile: Profile, parameters: Parameters, shift: Array, scale: Array
) -> list[Average]:
    """The quantities of one profile, with effects that add a shift and have a standard deviation."""
    weights = profile.weights
    centre = profile.x @ parameters.coefficients + shift
    of_scale = _scale_gradient(profile, parameters.factors, scale)

    def average(quantity: str, value: Array, gradient: Sequence[Array]) -> Average:
        whole = np.concatenate([*gradient])
        return Average(quantity, profile.term, profile.label, False, float(weights @ value), whole)

    if matrix.family == "gaussian":
        return [average("mean", centre, [weights @ profile.x, np.zeros(of_scale.shape[1])])]
    if matrix.family == "binomial":
        chance, slope, along = _integrated(centre, scale)
        gradient = [(weights * slope) @ profile.x, (weights * along) @ of_scale]
        return [average("probability", chance, gradient)]
    ends = [_integrated(threshold - centre, scale) for threshold in parameters.thresholds]
    below, slope, along = (np.stack(each, axis=-1) for each in zip(*ends, strict=True))
    shares = level_probabilities(below)
    n_levels = shares.shape[1]
    # Derivatives of the probabilities of the levels in those of being at or below each but the last.
    steps = np.eye(n_levels, n_levels - 1) - np.eye(n_levels, n_levels - 1, k=-1)
    choices = {
        f"probability of {label}": np.broadcast_to(row, shares.shape)
        for label, row in zip(matrix.levels, np.eye(n_levels), strict=True)
    }
    gold = {"rate under gold": profile.under, "rate over gold": profile.over}
    choices |= {name: choice for name, choice in gold.items() if choice is not None}
    made = []
    for name, choice in choices.items():
        back = (weights[:, None] * choice) @ steps
        gradient = [
            (back * slope).sum(axis=0),
            -(back * slope).sum(axis=1) @ profile.x,
            (back * along).sum(axis=1) @ of_scale,
        ]
        made.append(average(name, (choice * shares).sum(axis=1), gradient))
    return made


def _integrated(centre: Array, scale: Array) -> tuple[Array, Array, Array]:
    """Expectation of expit(centre + scale t) over normal t, and its derivatives in centre and scale."""
    chance = expit(centre[:, None] + scale[:, None] * NODES)
    slope = chance * (1 - chance)
    return chance @ _SHARES, slope @ _SHARES, slope @ (_SHARES * NODES)


def _scale_gradient(profile: Profile, factors: Sequence[Array], scale: Array) -> Array:
    """Derivatives of the total sd with regard to the entries of the factors, shape (m, entries)."""
    safe = np.where(scale > 0, scale, 1.0)
    blocks = [np.zeros((len(scale), 0))]
    for z, factor in zip(profile.z, factors, strict=True):
        along = z @ factor
        rows, columns = np.tril_indices(len(factor))
        blocks.append(np.where(scale[:, None] > 0, z[:, rows] * along[:, columns] / safe[:, None], 0.0))
    gradient: Array = np.concatenate(blocks, axis=1)
    return gradient
