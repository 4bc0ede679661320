"""Combinations of coefficients: from a mapping, or from an expression such as `a - b`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Final

import numpy as np

from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.models.formula import unknown_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["combination_of", "terms_of"]

_SIGN: Final = re.compile(r"\s*([+-])?\s*")
_FACTOR: Final = re.compile(r"(\d+\.?\d*|\.\d+)\s*\*\s*")


def combination_of(weights: Mapping[str, float] | str, terms: Sequence[str]) -> tuple[Array, str]:
    """Weights of a combination of coefficients, shape (k,), and the combination in words.

    Parameters
    ----------
    weights
        Term to weight, or a sum such as `a - b` or `0.5*a + 0.5*b`, read with the longest names first.
    terms
        The terms of the model.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    ArgumentError
        If a term is not known, or all weights are 0.
    """
    if isinstance(weights, str):
        chosen = _read(weights, terms)
    elif isinstance(weights, Mapping):
        chosen = dict(weights)
    else:
        raise ArgumentTypeError(
            f"`weights` must map terms to numbers, or be a sum such as 'a - b'; got {type(weights).__name__}"
        )
    unknown_names(map(str, chosen), terms, "weights", "the model does", "terms")
    if not all(_is_number(value) for value in chosen.values()):
        raise ArgumentTypeError(f"`weights` must be finite numbers; got {list(chosen.values())}")
    vector = np.array([float(chosen.get(term, 0.0)) for term in terms])
    if not vector.any():
        raise ArgumentError("`weights` must have one number that is not 0")
    return vector, weights if isinstance(weights, str) else _words(chosen)


def terms_of(
    wanted: str | Sequence[str] | None, terms: Sequence[str], parts: Mapping[str, Sequence[str]]
) -> list[int]:
    """Places of the terms that are named, or of all terms of a part of the formula such as `condition`.

    Raises
    ------
    ArgumentError
        If a name is neither, or there is none.
    """
    names = list(terms) if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    listed: list[str] = []
    for name in names:
        listed += (
            [name] if name in terms else [term for term in parts.get(name, [name]) if term in terms] or [name]
        )
    known = [*terms, *(part for part in parts if part not in terms and part != "1")]
    unknown_names(listed, known, "terms", "the model does", "terms")
    unusable = [name for name in listed if name not in terms]
    if unusable or not listed:
        raise ArgumentError(f"`terms` must name terms that were estimated; got {unusable or names}")
    return [list(terms).index(name) for name in dict.fromkeys(listed)]


def _read(expression: str, terms: Sequence[str]) -> dict[str, float]:
    """A sum of terms, from left to right."""
    by_length = sorted(terms, key=len, reverse=True)
    found: dict[str, float] = {}
    place, text = 0, expression.strip()
    while place < len(text):
        sign = _SIGN.match(text, place)
        if sign is None or (place and not sign[1]):
            raise ArgumentError(
                f"`weights` cannot be read from {text[place:].strip()!r} on; expected a sum of terms such as "
                f"'{terms[0]} - {terms[-1]}'"
            )
        place = sign.end()
        factor = _FACTOR.match(text, place)
        place = factor.end() if factor else place
        name = next((term for term in by_length if text.startswith(term, place)), None)
        if name is None:
            rest = text[place:]
            if rest and re.fullmatch(r"(\d+\.?\d*|\.\d+)", rest):
                raise ArgumentError(
                    f"`weights` ends with a number, {rest}: the value that {text[:place].strip(' +-')!r} is "
                    "compared with goes into `value`"
                )
            unknown_names([rest], terms, "weights", "the model does", "terms")
            raise ArgumentError(f"`weights` ends without a term: {expression!r}")
        place += len(name)
        value = float(factor[1]) if factor else 1.0
        found[name] = found.get(name, 0.0) + (-value if sign[1] == "-" else value)
    return found


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and bool(np.isfinite(float(value)))


def _words(weights: Mapping[str, float]) -> str:
    words = ""
    for term, weight in weights.items():
        if weight:
            size = "" if abs(weight) == 1 else f"{abs(weight):.4g}*"
            sign = ("-" if weight < 0 else "") if not words else (" - " if weight < 0 else " + ")
            words += f"{sign}{size}{term}"
    return words
