"""What a comparison says to CI: not worse by the margin, worse, undecided, or unusable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["EXIT_CODES", "Decision", "Gate", "gate_of"]

Decision = Literal["not worse", "worse", "undecided", "unusable"]

EXIT_CODES: Final[dict[Decision, int]] = {"not worse": 0, "worse": 1, "unusable": 2, "undecided": 3}
"""The code with which `triagestats compare --gate` ends."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A decision, the margin that it was made with, and why."""

    decision: Decision
    margin: float
    reason: str

    @property
    def exit_code(self) -> int:
        """The code with which `triagestats compare --gate` ends."""
        return EXIT_CODES[self.decision]


def gate_of(row: Mapping[str, Any], *, margin: float | None, higher_is_better: bool) -> Gate:
    """The decision about one difference, candidate minus baseline, from its displayed interval.

    With the ends l and u of the interval, turned round where lower scores are better, and the margin m:
    `not worse` where l > -m; else `worse` where u < 0; else `undecided`. Without an interval it is
    `unusable`. Without a margin m is 0, so that only a candidate shown to be better is not worse.

    Parameters
    ----------
    row
        The row of the difference: `conf_low`, `conf_high`, `conf_level`, `reason`.
    margin
        The largest loss that is accepted, on the scale of the scores; None for none.
    higher_is_better
        Whether a positive difference is a gain.

    Notes
    -----
    A candidate that is in truth worse by the margin or more passes with a probability of at most half of
    1 - `conf_level`, as far as the interval holds its level: it is a test of noninferiority. A loss within
    the margin passes, also one that is shown to be below 0.

    Examples
    --------
    >>> from triagestats.runs.gate import gate_of
    >>> row = {"conf_low": -0.03, "conf_high": 0.01, "conf_level": 0.95, "reason": None}
    >>> gate_of(row, margin=0.05, higher_is_better=True).decision
    'not worse'
    >>> gate_of(row, margin=0.02, higher_is_better=True).exit_code
    3
    """
    m = 0.0 if margin is None else margin
    if row["conf_low"] is None or row["conf_high"] is None:
        return Gate("unusable", m, f"there is no interval: {row['reason']}")
    low, high = (row["conf_low"], row["conf_high"])
    if not higher_is_better:
        low, high = -high, -low
    level = f"{100 * row['conf_level']:g} %"
    gained = "gain" if higher_is_better else "gain (a lower score)"
    ends = f"the {level} interval of the {gained} is [{low:.4g}, {high:.4g}]"
    asked = f"-{m:g}" if margin is not None else "0 (no margin was given)"
    if low > -m:
        return Gate("not worse", m, f"{ends}: its lower end is above {asked}")
    if high < 0:
        return Gate("worse", m, f"{ends}: it is below 0, and its lower end is not above {asked}")
    return Gate(
        "undecided", m, f"{ends}: its lower end is not above {asked}, and its upper end is not below 0"
    )
