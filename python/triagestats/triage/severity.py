"""How severe the conditions behind a case are, and which cases are urgent for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from triagestats.arguments import valid_choice
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError
from triagestats.ingest import to_polars
from triagestats.labels import label_of, listed
from triagestats.tolerances import MASS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["severe_probability", "urgent_labels", "valid_threshold"]

Unknown = Literal["raise", "not severe"]

_TOO_MUCH: Final = 1e-6
"""How far printed probabilities of a case may sum above 1."""


def severe_probability(
    differential: object,
    severity: object,
    *,
    severe: float | Iterable[object] = 2,
    unknown: Unknown = "raise",
) -> Array | float:
    """Probability that a case is severe: the mass of the severe conditions in its differential.

        P(severe) = sum of p_k over the conditions k whose severity is one of `severe`

    Parameters
    ----------
    differential
        One differential a case: pairs (condition, probability), or a mapping from condition to probability.
        Or the differential of a single case.
    severity
        Severity of each condition: a mapping, or a table whose first column holds the conditions and whose
        second one their severities.
    severe
        Which severities count: a number, for that one and smaller ones (1 the most severe), or a list.
    unknown
        What a condition without a severity does: `raise`, or count as `not severe`.

    Returns
    -------
    numpy.ndarray
        One probability a case, shape (n,); of a single case a float.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        If a condition has no severity, or probabilities are missing, negative, or sum to more than 1.

    Notes
    -----
    Probabilities are not scaled to sum to 1: what a differential leaves out is not severe. Conditions are
    compared without regard to case and to blanks around them.

    References
    ----------
    Fansi Tchango, A., Goel, R., Wen, Z., Martel, J. and Ghosn, J. (2022), DDXPlus: a new dataset for
    automatic medical diagnosis, arXiv:2205.09148 (differentials with probabilities).

    Examples
    --------
    >>> import triagestats as ts
    >>> scale = {"Ebola": 1, "Pulmonary embolism": 2, "Influenza": 4}
    >>> cases = [[("Influenza", 0.7), ("Pulmonary embolism", 0.2), ("Ebola", 0.05)], {"influenza": 1.0}]
    >>> ts.severe_probability(cases, scale).tolist()
    [0.25, 0.0]
    """
    valid_choice("unknown", unknown, Unknown)
    counts = _counting(severe)
    scale = _scale(severity)
    cases, single = _cases(differential, with_probability=True)
    found = [_mass(items, place, scale, counts, unknown=unknown) for place, items in enumerate(cases)]
    return found[0] if single else np.array(found)


def urgent_labels(
    differential: object,
    severity: object,
    *,
    threshold: float | None = None,
    top: int | None = None,
    severe: float | Iterable[object] = 2,
    unknown: Unknown = "raise",
) -> NDArray[np.bool_] | bool:
    """Whether each case is urgent: by `severe_probability`, or by any severe condition among the first.

    Parameters
    ----------
    differential, severity, severe, unknown
        As in `severe_probability`. With `top` the conditions may also stand without probabilities, the
        most likely first.
    threshold
        Urgent where P(severe) is at least so much.
    top
        Urgent where any of the so many most likely conditions is severe; those that tie for the last place
        are taken in the order of the differential.

    Returns
    -------
    numpy.ndarray
        One truth value a case, shape (n,); of a single case a truth value.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        As `severe_probability`, and unless one of `threshold` and `top` is given.

    References
    ----------
    Fansi Tchango, A., Goel, R., Wen, Z., Martel, J. and Ghosn, J. (2022), DDXPlus: a new dataset for
    automatic medical diagnosis, arXiv:2205.09148 (differentials with probabilities).

    Examples
    --------
    >>> import triagestats as ts
    >>> scale = {"Ebola": 1, "Pulmonary embolism": 2, "Influenza": 4}
    >>> cases = [[("Influenza", 0.9), ("Ebola", 0.1)], [("Influenza", 1.0)]]
    >>> ts.urgent_labels(cases, scale, threshold=0.15).tolist()
    [False, False]
    >>> ts.urgent_labels(cases, scale, top=3).tolist()
    [True, False]
    """
    if (threshold is None) == (top is None):
        raise ArgumentError(
            "give one of `threshold`, for P(severe), and `top`, for the most likely conditions"
        )
    if threshold is not None:
        least = valid_threshold(threshold) - MASS
        found = severe_probability(differential, severity, severe=severe, unknown=unknown)
        return found >= least
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise ArgumentError(f"`top` must be a whole number of at least 1; got {top!r}")
    valid_choice("unknown", unknown, Unknown)
    counts, scale = _counting(severe), _scale(severity)
    labels = []
    cases, single = _cases(differential, with_probability=False)
    for place, items in enumerate(cases):
        first = sorted(items, key=lambda item: -item[1])[:top]
        levels = [_severity(name, place, scale, unknown=unknown) for name, _ in first]
        labels.append(any(level is not None and counts(level) for level in levels))
    return labels[0] if single else np.array(labels, dtype=bool)


def valid_threshold(threshold: object, argument: str = "threshold") -> float:
    """A probability above 0.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is not.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise ArgumentTypeError(f"`{argument}` must be a probability; got {threshold!r}")
    value = float(threshold)
    if not 0 < value <= 1:
        raise ArgumentError(f"`{argument}` must lie above 0 and up to 1; got {value:g}")
    return value


def _counting(severe: object) -> Callable[[str], bool]:
    """Whether a severity counts as severe."""
    if isinstance(severe, int | float) and not isinstance(severe, bool):
        most = float(severe)

        def up_to(level: str) -> bool:
            try:
                return float(level) <= most
            except ValueError:
                raise ArgumentError(
                    f"`severe` is the number {most:g}, but a severity is {level!r}; list the severe ones, "
                    "such as severe=['high']"
                ) from None

        return up_to
    if isinstance(severe, str) or not isinstance(severe, Iterable):
        raise ArgumentTypeError(f"`severe` must be a number or a list of severities; got {severe!r}")
    levels = {label_of(level) for level in severe}
    return levels.__contains__


def _scale(severity: object) -> dict[str, str]:
    """Severity of each condition, as text."""
    if isinstance(severity, Mapping) and not any(_is_column(value) for value in severity.values()):
        pairs = list(severity.items())
    else:
        frame = to_polars(severity, "severity").frame
        if frame.width < 2:
            raise ArgumentError("`severity` must have two columns, of conditions and of their severities")
        pairs = list(frame.select(frame.columns[:2]).iter_rows())
    scale: dict[str, str] = {}
    for condition, level in pairs:
        name, text = _plain(condition), label_of(level)
        if name is None or text is None:
            raise DataError(f"`severity` holds a blank: {condition!r} has the severity {level!r}")
        if scale.setdefault(name, text) != text:
            raise DataError(f"`severity` gives {condition!r} twice, as {scale[name]} and as {text}")
    return scale


def _is_column(value: object) -> bool:
    return not isinstance(value, str | bytes) and isinstance(value, Iterable)


def _plain(condition: object) -> str | None:
    text = label_of(condition)
    return None if text is None else text.casefold()


def _cases(differential: object, *, with_probability: bool) -> tuple[list[list[tuple[object, float]]], bool]:
    """Conditions of each case with their probabilities, and whether a single case was given."""
    if isinstance(differential, str | bytes) or not isinstance(differential, Iterable):
        raise ArgumentTypeError(
            "`differential` must be a list with one differential a case, each of pairs (condition, "
            f"probability); got {differential!r}"
        )
    listing = [differential] if isinstance(differential, Mapping) else list(differential)
    single = isinstance(differential, Mapping) or (bool(listing) and all(map(_is_entry, listing)))
    if single and not isinstance(differential, Mapping):
        listing = [listing]
    return [
        _case(case, place, with_probability=with_probability) for place, case in enumerate(listing)
    ], single


def _is_entry(item: object) -> bool:
    """Whether something is one condition, with or without its probability, and not a case."""
    if isinstance(item, str):
        return True
    if not isinstance(item, Sequence) or len(item) != 2:
        return False
    return isinstance(item[0], str) and isinstance(item[1], Real)


def _case(case: object, place: int, *, with_probability: bool) -> list[tuple[object, float]]:
    """The conditions of one case with their probabilities; 0 for those that stand without one."""
    if isinstance(case, str | bytes) or not isinstance(case, Iterable):
        raise ArgumentTypeError(
            f"`differential` must hold pairs (condition, probability) for each case; case {place} (from 0) "
            f"is {case!r}"
        )
    items = list(case.items()) if isinstance(case, Mapping) else list(case)
    if not items:
        raise DataError(f"`differential` is empty for case {place} (from 0): its severity is unknown")
    return [_item(item, place, with_probability=with_probability) for item in items]


def _item(item: object, place: int, *, with_probability: bool) -> tuple[object, float]:
    if isinstance(item, Mapping):  # a struct: its fields in order
        item = tuple(item.values())
    if isinstance(item, Sequence) and not isinstance(item, str | bytes) and len(item) == 2:
        condition, probability = item
        if (
            isinstance(probability, bool)
            or not isinstance(probability, Real)
            or not 0 <= float(probability) <= 1 + _TOO_MUCH
        ):
            raise DataError(
                f"`differential` gives {condition!r} the probability {probability!r} in case {place} (from 0)"
                "; expected a number from 0 to 1"
            )
        return condition, float(probability)
    if with_probability or not isinstance(item, str | Real):
        raise ArgumentTypeError(
            f"`differential` must hold pairs (condition, probability); case {place} (from 0) holds {item!r}"
        )
    return item, 0.0


def _mass(
    items: list[tuple[object, float]],
    place: int,
    scale: dict[str, str],
    counts: Callable[[str], bool],
    *,
    unknown: Unknown,
) -> float:
    whole = math.fsum(probability for _, probability in items)
    if whole > 1 + _TOO_MUCH:
        raise DataError(
            f"`differential` has probabilities that sum to {whole:.6g} in case {place} (from 0); divide "
            "percentages by 100, and give each condition once"
        )
    levels = [(_severity(name, place, scale, unknown=unknown), probability) for name, probability in items]
    return min(1.0, math.fsum(p for level, p in levels if level is not None and counts(level)))


def _severity(condition: object, place: int, scale: dict[str, str], *, unknown: Unknown) -> str | None:
    """Severity of a condition; None where it has none and that is allowed."""
    name = _plain(condition)
    if name in scale:
        return scale[name]
    if unknown == "not severe":
        return None
    raise DataError(
        f"`severity` has no entry for {condition!r}, which case {place} (from 0) names; it has "
        f"{listed(sorted(scale))}. Add it, or take such conditions as not severe with unknown='not severe'"
    )
