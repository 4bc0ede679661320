"""Covariance matrices of least-squares coefficients, with small-sample conventions that are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentTypeError
from triagestats.models.within import is_nested, n_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = [
    "SmallSample",
    "TwoWay",
    "Vcov",
    "cluster_factors",
    "cluster_sums",
    "count_parameters",
    "crossed",
    "intersections",
    "meat_inverse",
]

Vcov = Literal["CRV1", "CRV2", "CRV3", "iid", "HC1"]
Effects = Literal["nonnested", "full", "none"]
TwoWayG = Literal["min", "conventional"]
Repair = Literal["diagonal", "eigenvalues", "none"]
Center = Literal["estimate", "mean"]
Df = Literal["auto", "clusters", "satterthwaite"]

_EIGENVALUE: Final = 1e-10
"""Floor of a repaired eigenvalue, as fixest has it."""
_POSITIVE: Final = 1e-12
"""A two-way variance below this share of the larger one-way variance is not positive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallSample:
    """What multiplies a covariance matrix, and the degrees of freedom of its t.

    Attributes
    ----------
    effects
        Which absorbed effects K counts: `nonnested` leaves out those nested in a cluster (one is counted
        for all levels), `full` counts all, `none` counts none.
    k
        Multiply by (N - 1) / (N - K); for HC1 N / (N - K). Without it by 1.
    g
        Multiply CRV1 by G / (G - 1), and CRV3 by (G - 1) / G.
    two_way
        G of two-way errors: `min`, the smaller number of clusters for all three parts; `conventional`, the
        own number of each.
    repair
        A two-way matrix need not be positive. `diagonal`: where a variance is not positive, the one-way
        matrix with the larger variances is taken. `eigenvalues`: negative eigenvalues are raised to
        1e-10 wherever there are any, as fixest does. `none`: it stays.
    center
        What the leave-one-cluster-out estimates of CRV3 are compared with.
    df
        `clusters`: G - 1, of the smaller G of two. `satterthwaite`: of each coefficient its own, after Bell
        and McCaffrey. `auto`: `satterthwaite` for CRV2, else `clusters`.

    Examples
    --------
    >>> from triagestats.models.sandwich import SmallSample
    >>> SmallSample(effects="full").effects
    'full'
    """

    effects: Effects = "nonnested"
    k: bool = True
    g: bool = True
    two_way: TwoWayG = "min"
    repair: Repair = "diagonal"
    center: Center = "estimate"
    df: Df = "auto"

    def __post_init__(self) -> None:
        choices = {
            "effects": Effects,
            "two_way": TwoWayG,
            "repair": Repair,
            "center": Center,
            "df": Df,
        }
        for name, options in choices.items():
            valid_choice(name, getattr(self, name), options)
        for name in ("k", "g"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentTypeError(f"`{name}` must be True or False; got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True, eq=False)
class TwoWay:
    """A two-way matrix, before and after it was repaired.

    Attributes
    ----------
    vcov, unrepaired
        Shape (k, k).
    repaired
        How it was repaired, None where it was not.
    """

    vcov: Array
    unrepaired: Array
    repaired: str | None


def count_parameters(
    n_regressors: int, absorbed: Sequence[Codes], clusters: Sequence[Codes], effects: Effects
) -> int:
    """K, the parameters that the factor (N - 1) / (N - K) counts.

    Fixed effects have together as many as their levels, less one for each effect but the first. One that is
    nested in a cluster variable counts one under `nonnested`.
    """
    if not absorbed or effects == "none":
        return n_regressors
    count = n_regressors + sum(map(n_levels, absorbed)) - (len(absorbed) - 1)
    if effects == "nonnested":
        nested = [codes for codes in absorbed if any(is_nested(codes, outer) for outer in clusters)]
        count -= sum(n_levels(codes) - 1 for codes in nested)
    return count


def cluster_factors(n: int, k: int, sizes: Sequence[int], small: SmallSample) -> tuple[float, ...]:
    """The factor of CRV1 for each of one or two cluster variables (then also their intersections)."""
    rows = (n - 1) / (n - k) if small.k else 1.0
    if small.two_way == "min":
        sizes = [min(sizes)] * len(sizes)
    return tuple((g / (g - 1) if small.g else 1.0) * rows for g in sizes)


def cluster_sums(rows: Array, codes: Codes) -> Array:
    """Sums of rows by cluster, shape (G, k)."""
    if not rows.shape[1]:
        return np.zeros((n_levels(codes), 0))
    return np.stack([np.bincount(codes, weights=column) for column in rows.T], axis=1)


def intersections(clusters: Sequence[Codes]) -> Codes:
    """Codes of the pairs of two cluster variables that occur."""
    first, second = clusters
    pairs: Codes = np.unique(first * n_levels(second) + second, return_inverse=True)[1].astype(np.int64)
    return pairs


def meat_inverse(bread: Array, scores: Array) -> Array:
    """The sum of squares of scores times bread, `B' S'S B`, shape (k, k)."""
    half = scores @ bread
    result: Array = half.T @ half
    return result


def crossed(first: Array, second: Array, both: Array, repair: Repair) -> TwoWay:
    """The two-way matrix V1 + V2 - V12, repaired as asked.

    References
    ----------
    Cameron, A. C., Gelbach, J. B. and Miller, D. L. (2011), Robust Inference With Multiway Clustering,
    Journal of Business & Economic Statistics 29(2):238-249, doi:10.1198/jbes.2010.07136.
    """
    raw = first + second - both
    if repair == "eigenvalues":
        values, vectors = np.linalg.eigh(raw)
        if (values < 0).any():
            fixed = (vectors * np.maximum(values, _EIGENVALUE)) @ vectors.T
            return TwoWay(fixed, raw, "negative eigenvalues are raised to 1e-10")
    elif repair == "diagonal":
        larger = np.maximum(np.diag(first), np.diag(second))
        if (np.diag(raw) <= _POSITIVE * larger).any() and (larger > 0).any():
            one = first if np.trace(first) >= np.trace(second) else second
            return TwoWay(one, raw, "the one-way matrix with the larger variances is used")
    return TwoWay(raw, raw, None)
