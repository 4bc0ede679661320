"""What a simulated study is known to be: readings of the scale, expectations, truth frames."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

__all__ = [
    "POPULATIONS",
    "Truth",
    "class_rates",
    "contrast_frame",
    "judge_matrix",
    "logistic",
    "logistic_normal_mean",
    "rate_frame",
    "reading_given_correct",
]

POPULATIONS = ("superpopulation", "finite")

_Z_END = 9.0
_Z_STEP = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    r"""The true values behind a simulated study.

    With s for a scenario, c a condition, m a model, v one of the :math:`V_c` variants, and
    :math:`\eta_{cmv}` the fixed part of the logit:

    - "superpopulation": over new scenarios of the same kind, by quadrature,
      :math:`P_{cm} = V_c^{-1} \sum_v E_Z[\operatorname{logit}^{-1}(\eta_{cmv} + \tau Z)]`,
      :math:`\tau^2 = \sigma_S^2 + \sigma_{SC}^2 + \sigma_{SM}^2`. An interval that treats
      scenarios as the sample aims at this.
    - "finite": over the scenarios that were drawn,
      :math:`Q_{cm} = (S V_c)^{-1} \sum_{s,v} p_{smcv}`. An interval for "these scenarios only"
      aims at this; it is the mean of the answers over endless repetitions.

    Rows without a model (or condition) are plain means over all of them. In both populations the
    gold labels are those of the design.

    Attributes
    ----------
    rates : frame
        population, condition, model, and the values below.
    contrasts : frame
        population, term ("condition" or "model"), contrast, level, reference, condition, model,
        and the values below: differences, level minus reference, on the probability scale.
    cells : frame
        scenario, model, condition, variant, correct: the drawn p.

    Notes
    -----
    The values, probabilities from 0 to 1:

    - correct, under, over: a reader without error finds the answer inside, below or above the
      gold range. under = (1 - correct) x share of errors that go down, which depends on gold.
    - judged_correct, judged_under, judged_over: the label in the tables, given that there is
      one, is inside, below or above. With a share a of right and b of wrong answers that
      judges label as right, judged_correct = a * correct + b * (1 - correct): judge error pulls
      scores, and with them contrasts, together. For a "label" condition these equal the above.
    - unparsed_as_wrong: the expected score where unparsed counts as wrong,
      (1 - unparsed rate) * judged_correct. Where unparsed is left out, judged_correct is the
      expected score, as unparsed does not depend on the answer. Neither do missing rows.
    """

    rates: pl.DataFrame
    contrasts: pl.DataFrame
    cells: pl.DataFrame


def logistic(eta: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-eta))``, without overflow at either end."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * eta)), dtype=np.float64)


def logistic_normal_mean(eta: FloatArray, sd: float) -> FloatArray:
    r"""Return the mean of a logistic function of a normal variable.

    .. math:: E[\operatorname{logit}^{-1}(\eta + \sigma Z)], \quad Z \sim N(0, 1)

    Parameters
    ----------
    eta : array, any shape
        Means on the logit scale.
    sd : float
        Standard deviation on the logit scale, at least 0.

    Returns
    -------
    array, the shape of `eta`
        Probabilities.

    Notes
    -----
    Trapezoidal rule on z in [-9, 9]. The integrand is analytic up to the poles of the logistic
    function at distance pi / sd from the real line, so the error falls like
    exp(-2 pi**2 / (sd * step)): it is below 1e-15 for any `sd` up to 25.

    References
    ----------
    Trefethen, L. N. and Weideman, J. A. C. (2014). The exponentially convergent trapezoidal rule.
    SIAM Review 56, 385-458. doi:10.1137/130932132

    Examples
    --------
    >>> round(float(logistic_normal_mean(np.array(1.0), 2.0)), 6)
    0.647726
    """
    if sd == 0.0:
        return logistic(eta)
    half = round(_Z_END / _Z_STEP)
    z = np.arange(-half, half + 1) * _Z_STEP
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    values = np.sum(logistic(np.asarray(eta)[..., None] + sd * z) * weight, axis=-1)
    return np.asarray(values, dtype=np.float64)


def reading_given_correct(
    low: int, high: int, n_levels: int, *, under_share: float, two_level_share: float
) -> FloatArray:
    """Return the distribution over levels of a wrong and of a correct answer.

    Parameters
    ----------
    low, high : int
        First and last level of the gold range, 0 the least urgent.
    n_levels : int
        Levels of the scale.
    under_share : float
        Share of wrong answers below the gold range, where both sides exist.
    two_level_share : float
        Share of wrong answers two levels off, where the scale reaches that far on their side.

    Returns
    -------
    array (2, n_levels)
        Row 0 for a wrong answer, row 1 for a correct one; rows sum to 1.
    """
    reading = np.zeros((2, n_levels))
    reading[1, low : high + 1] = 1.0 / (high - low + 1)
    n_below, n_above = low, n_levels - 1 - high
    if n_above == 0:
        under_share = 1.0
    elif n_below == 0:
        under_share = 0.0
    for share, room, near, step in (
        (under_share, n_below, low - 1, -1),
        (1.0 - under_share, n_above, high + 1, 1),
    ):
        far = two_level_share if room > 1 else 0.0
        if room > 0:
            reading[0, near] = share * (1.0 - far)
        if room > 1:
            reading[0, near + step] = share * far
    return reading


def judge_matrix(n_levels: int, error_rate: float) -> FloatArray:
    """Return the probabilities that a judge reads level l (column) when level k (row) was said.

    An erring judge reads a neighbouring level, each side equally often, at an end the only one.
    """
    matrix = np.eye(n_levels) * (1.0 - error_rate)
    for level in range(n_levels):
        sides = [side for side in (level - 1, level + 1) if 0 <= side < n_levels]
        matrix[level, sides] = error_rate / len(sides)
    return matrix


def class_rates(reading: FloatArray, low: Sequence[int], high: Sequence[int]) -> FloatArray:
    """Return the probability of a correct, an under- and an over-triaged label.

    Parameters
    ----------
    reading : array (S, 2, L)
        Distribution over levels, per scenario, of a wrong (0) and of a correct (1) answer.
    low, high : sequences of S integers
        Gold range of each scenario.

    Returns
    -------
    array (S, 2, 3)
        Last axis: correct, under, over.
    """
    levels = np.arange(reading.shape[-1])
    under = levels < np.asarray(low)[:, None]
    over = levels > np.asarray(high)[:, None]
    classes = np.stack([~(under | over), under, over], axis=-1).astype(np.float64)
    return np.asarray(np.einsum("skl,slc->skc", reading, classes), dtype=np.float64)


def rate_frame(
    values: FloatArray, *, conditions: Sequence[str], models: Sequence[str], columns: Sequence[str]
) -> pl.DataFrame:
    """Return the true rates, one row a population, condition and model.

    Parameters
    ----------
    values : array (2, C, M, K)
        True values: population, condition, model, column.
    conditions, models, columns : sequences of C, M and K names
        The model is null in the rows that average the models.

    Returns
    -------
    frame of 2 * C * (M + 1) rows
        population, condition, model, and the K columns.
    """
    full = np.concatenate([values, values.mean(axis=2, keepdims=True)], axis=2)
    keys = [
        (population, condition, model)
        for population in POPULATIONS
        for condition in conditions
        for model in (*models, None)
    ]
    return _frame(("population", "condition", "model"), keys, columns, full)


def contrast_frame(
    values: FloatArray, *, conditions: Sequence[str], models: Sequence[str], columns: Sequence[str]
) -> pl.DataFrame:
    """Return the true differences of rates, level minus reference, for every pair.

    The reference is the earlier of the two in the order given. A null condition or model marks an
    average over all of them, with equal weights. Parameters are those of `rate_frame`.

    Returns
    -------
    frame
        population, term ("condition" or "model"), contrast ("level - reference"), level,
        reference, condition, model, and the K columns.
    """
    keys: list[tuple[str | None, ...]] = []
    rows: list[FloatArray] = []
    for population, rates in zip(POPULATIONS, values, strict=True):
        by_condition = np.concatenate([rates, rates.mean(axis=1, keepdims=True)], axis=1)
        by_model = np.concatenate([rates, rates.mean(axis=0, keepdims=True)], axis=0)
        for i, j in combinations(range(len(conditions)), 2):
            reference, level = conditions[i], conditions[j]
            for m, model in enumerate((*models, None)):
                contrast = f"{level} - {reference}"
                keys.append((population, "condition", contrast, level, reference, None, model))
                rows.append(by_condition[j, m] - by_condition[i, m])
        for i, j in combinations(range(len(models)), 2):
            reference, level = models[i], models[j]
            for c, condition in enumerate((*conditions, None)):
                contrast = f"{level} - {reference}"
                keys.append((population, "model", contrast, level, reference, condition, None))
                rows.append(by_model[c, j] - by_model[c, i])
    names = ("population", "term", "contrast", "level", "reference", "condition", "model")
    return _frame(names, keys, columns, np.array(rows))


def _frame(
    names: Sequence[str],
    keys: Sequence[tuple[str | None, ...]],
    columns: Sequence[str],
    values: FloatArray,
) -> pl.DataFrame:
    text = pl.DataFrame(keys, schema=dict.fromkeys(names, pl.String), orient="row")
    numbers = pl.DataFrame(values.reshape(len(keys), len(columns)), schema=list(columns))
    return text.hstack(numbers)
