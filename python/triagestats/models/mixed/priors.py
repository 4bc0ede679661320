"""Priors: the prior distributions of a Bayesian mixed model, documented and settable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

from triagestats.errors import ArgumentError, ArgumentTypeError

__all__ = ["Priors"]


@dataclass(frozen=True, slots=True)
class Priors:
    """Scales of the priors of a Bayesian mixed model.

    All are weak on the scale of log odds: an intercept of 2.5 is a rate of 92 %, a coefficient of 2 an odds
    ratio of 7, and an effect of one sd of 1.5 moves a rate of 50 % to 82 %. For a gaussian outcome they are
    in standard deviations of the outcome, and the intercept is measured from its mean.

    Attributes
    ----------
    intercept
        Standard deviation of the normal prior, mean 0, of the intercept where all other regressors are at
        their means over the rows; of each threshold of an ordinal outcome there (the thresholds in order).
    coefficient
        Standard deviation of the normal prior, mean 0, of the other coefficients; by term where a mapping
        (terms that it leaves out have the default).
    sd
        Scale of the half-normal prior of each standard deviation of random effects; by name of the random
        part where a mapping.
    correlation
        Shape of the LKJ prior of correlations between random effects of one level; 1 is uniform over
        correlation matrices, more favours correlations near 0.
    residual
        Scale of the half-normal prior of the residual standard deviation; gaussian outcomes only.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If a scale is not a positive finite number.

    References
    ----------
    Lewandowski, D., Kurowicka, D. and Joe, H. (2009), Generating random correlation matrices based on vines
    and extended onion method, Journal of Multivariate Analysis 100(9):1989-2001.

    Examples
    --------
    >>> from triagestats.models.mixed.priors import Priors
    >>> print(Priors(coefficient={"condition[letter]": 1.0}).described()[1])
    coefficients: normal(0, 2); condition[letter]: normal(0, 1)
    """

    intercept: float = 2.5
    coefficient: float | Mapping[str, float] = 2.0
    sd: float | Mapping[str, float] = 1.5
    correlation: float = 2.0
    residual: float = 1.5

    def __post_init__(self) -> None:
        for name in ("intercept", "correlation", "residual"):
            _check(name, getattr(self, name))
        for name in ("coefficient", "sd"):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                for key, scale in value.items():
                    _check(f"{name}[{key!r}]", scale)
            else:
                _check(name, value)

    def described(self) -> tuple[str, ...]:
        """The priors in words, one line each."""
        return (
            f"intercept at the mean of the regressors, or each threshold: normal(0, {self.intercept:g})",
            f"coefficients: {_spread(self.coefficient, DEFAULT_COEFFICIENT, 'normal(0, {:g})')}",
            f"standard deviations of random effects: {_spread(self.sd, DEFAULT_SD, 'half-normal({:g})')}",
            f"correlations of random effects: LKJ({self.correlation:g})",
            f"residual standard deviation, gaussian: half-normal({self.residual:g}) in sds of the outcome",
        )


DEFAULT_COEFFICIENT = 2.0
DEFAULT_SD = 1.5


def _spread(value: float | Mapping[str, float], default: float, form: str) -> str:
    if not isinstance(value, Mapping):
        return form.format(value)
    return "; ".join(
        [form.format(default), *(f"{key}: {form.format(scale)}" for key, scale in value.items())]
    )


def _check(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(f"`{name}` of the priors must be a number; got {value!r}")
    if not 0 < float(value) < math.inf:
        raise ArgumentError(f"`{name}` of the priors must be positive and finite; got {float(value):g}")
