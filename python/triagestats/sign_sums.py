"""Exact p-values of sums of signed ranks, from the laws of two halves of the ranks."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.midranks import is_countable, shifted, sign_law
from triagestats.results import Alternative
from triagestats.tolerances import SMALLEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["sign_p_value"]

_KEPT: Final = 100
"""Ranks up to which the halves are kept between calls, twenty megabytes at most."""


def sign_p_value(
    ranks: Array, value: float, alternative: Alternative, *, asked: bool = False
) -> float | None:
    """P-value of a sum of ranks with random signs, as `sign_law` has it; None where that is too long.

    With T = A + B, `P(T <= t) = sum over a of P(A = a) P(B <= t - a)`; the upper tail is a lower one by
    symmetry. Of equal ranks one goes to each half, so that what the halves have in common is built once.

    Parameters
    ----------
    ranks
        Multiples of 1/2, shape (m,); also sums of them.
    value
        The sum of those with a positive sign.
    alternative
        Which tail counts; for two sides twice the smaller one.
    asked
        As in `sign_law`.
    """
    doubled = (ranks + ranks).astype(np.int64)
    doubled.sort()
    widths: list[int] = doubled.tolist()
    total = sum(widths)
    if not total or not is_countable(len(widths), total, asked=asked):
        law = sign_law(ranks, asked=asked)
        return None if law is None else law.p_value(value, alternative)
    halves = _kept_halves(tuple(widths)) if len(widths) <= _KEPT else _halves(tuple(widths))
    place = round(2 * value)
    if alternative == "greater" or (alternative == "two-sided" and 2 * place > total):
        place = total - place
    tail = max(math.ldexp(_at_most(*halves, place), -len(widths)), SMALLEST)
    return min(1.0, 2 * tail if alternative == "two-sided" else tail)


def _halves(ordered: tuple[int, ...]) -> tuple[Array, Array]:
    """How many subsets of one half of the widths have each sum, and of the other half at most each sum."""
    common, left = _twins(ordered)
    start, held = shifted(common), len(common)
    # Where few are left over, one half takes them all.
    split = len(left) > held
    first = shifted(left[::2], start, held=held) if split else start
    second = shifted(left[1::2] if split else left, start, held=held)
    kind = np.float64 if second.dtype == np.float64 else np.int64
    return first.astype(np.float64), np.add.accumulate(second, dtype=kind).astype(np.float64)


_kept_halves = lru_cache(maxsize=256)(_halves)  # the same differences are often tested again


def _twins(ordered: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Numbers that occur in pairs, one of each pair, and those that are left over."""
    common, left = [], []
    before = None
    for number in ordered:
        if number == before:
            common.append(number)
            before = None
        else:
            if before is not None:
                left.append(before)
            before = number
    return common, left if before is None else [*left, before]


def _at_most(first: Array, below: Array, place: int) -> float:
    """Pairs of a subset of each half with a sum of at most `place`; `first` is its own reverse."""
    last = len(first) - 1
    start, stop = max(0, last - place), min(last + 1, len(below) - place + last)
    found = float(first[start:stop] @ below[start + place - last : stop + place - last])
    return found if stop > last else found + float(first[stop:].sum()) * float(below[-1])
