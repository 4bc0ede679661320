"""What a simulated study asks, and how its answers come about."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Literal

from triagestats.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Condition", "Effects", "Mode", "StudyDesign", "check_count", "check_number"]

Mode = Literal["label", "judged"]


def check_count(name: str, value: object, *, at_least: int = 1) -> None:
    """Refuse what is not an integer of at least `at_least`."""
    try:
        fine = not isinstance(value, bool) and index(value) >= at_least  # type: ignore[arg-type]
    except TypeError:
        fine = False
    if not fine:
        raise ArgumentError(
            f"`{name}` must be an integer of at least {at_least}, got {value!r}. Give a whole number."
        )


def check_number(name: str, value: float, *, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse what is not a finite number from `low` to `high`."""
    try:
        fine = math.isfinite(value) and low <= value <= high
    except TypeError:
        fine = False
    if not fine:
        bounds = "" if low == -math.inf else f" of at least {low:g}"
        bounds = f" from {low:g} to {high:g}" if high < math.inf else bounds
        raise ArgumentError(f"`{name}` must be a finite number{bounds}, got {value!r}. Give one number.")


def check_names(name: str, values: Sequence[str], *, at_least: int = 1, without: str = "") -> None:
    """Refuse a lone string, too few names, names that repeat, are empty or hold `without`."""
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise ArgumentError(
            f"`{name}` must be a sequence of strings, got {values!r}. Write it as a tuple of names."
        )
    if len(values) < at_least:
        raise ArgumentError(f"`{name}` must hold at least {at_least}, got {len(values)}. Add names.")
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ArgumentError(
            f"`{name}` must hold each name once, got {repeated[0]!r} repeated. Rename one of them."
        )
    for value in values:
        if not value or (without and without in value):
            raise ArgumentError(
                f"`{name}` must hold names that are not empty"
                + (f" and have no {without!r}" if without else "")
                + f", got {value!r}. Rename it."
            )


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a study.

    Parameters
    ----------
    name : str
    mode : "label" or "judged"
        "label": the answer is a label of the scale (forced letter). "judged": the answer is free
        text, and every judge of the design labels it.
    variants : tuple of str
        Prompt variants asked in this condition.
    n_repetitions : int
        Answers to each request.

    Raises
    ------
    ArgumentError
        For an unknown mode, no variant, a repeated name, or less than one repetition.
    """

    name: str
    mode: Mode = "label"
    variants: tuple[str, ...] = ("v1",)
    n_repetitions: int = 1

    def __post_init__(self) -> None:
        check_names("name", (self.name,))
        if self.mode not in ("label", "judged"):
            raise ArgumentError(
                f'`mode` must be "label" or "judged", got {self.mode!r}. '
                'Use "judged" where judges label free text.'
            )
        check_names("variants", self.variants)
        check_count("n_repetitions", self.n_repetitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDesign:
    """What is asked: a full crossing of scenarios, models, conditions, variants, repetitions.

    Parameters
    ----------
    n_scenarios : int
    models : tuple of str
    conditions : tuple of Condition
        The first one, and the first model, are the references of the true contrasts.
    judges : tuple of str
        Needed where a condition is judged.
    levels : tuple of str
        The response scale, from least to most urgent.
    scenarios : tuple of str, optional
        Names; default "s01", "s02", ...
    gold : tuple of str, optional
        Right label of each scenario, or a range "low/high". Default: the levels in turn.

    Raises
    ------
    ArgumentError
        For counts below 1, repeated or empty names, fewer than two levels, a gold that is not on
        the scale or covers all of it, or a judged condition without judges.
    """

    n_scenarios: int
    models: tuple[str, ...]
    conditions: tuple[Condition, ...]
    judges: tuple[str, ...] = ()
    levels: tuple[str, ...] = ("self_care", "routine", "urgent", "emergency")
    scenarios: tuple[str, ...] | None = None
    gold: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_count("n_scenarios", self.n_scenarios)
        check_names("models", self.models)
        if not all(isinstance(condition, Condition) for condition in self.conditions):
            raise ArgumentError(
                f"`conditions` must be a tuple of Condition, got {self.conditions!r}. "
                'Write Condition("letter") for a name.'
            )
        check_names("conditions", [condition.name for condition in self.conditions])
        check_names("judges", self.judges, at_least=0)
        check_names("levels", self.levels, at_least=2, without="/")
        if not self.judges and any(condition.mode == "judged" for condition in self.conditions):
            raise ArgumentError(
                "`judges` must name at least one judge for a judged condition, got none. "
                'Give names, or use the mode "label".'
            )
        for name, given in (("scenarios", self.scenarios), ("gold", self.gold)):
            if given is not None and len(given) != self.n_scenarios:
                raise ArgumentError(
                    f"`{name}` must have one entry a scenario ({self.n_scenarios}), "
                    f"got {len(given)}. Change it or `n_scenarios`."
                )
        if self.scenarios is not None:
            check_names("scenarios", self.scenarios)
        self.gold_ranges()

    def scenario_names(self) -> tuple[str, ...]:
        """Return the scenario names, one a scenario."""
        width = max(2, len(str(self.n_scenarios)))
        default = (f"s{i:0{width}d}" for i in range(1, self.n_scenarios + 1))
        return tuple(default) if self.scenarios is None else self.scenarios

    def gold_labels(self) -> tuple[str, ...]:
        """Return the right label, or range of labels, of each scenario."""
        if self.gold is not None:
            return self.gold
        return tuple(self.levels[i % len(self.levels)] for i in range(self.n_scenarios))

    def gold_ranges(self) -> tuple[tuple[int, int], ...]:
        """Return the first and last right level of each scenario, 0 the least urgent."""
        position = {level: i for i, level in enumerate(self.levels)}
        ranges = []
        for label in self.gold_labels():
            ends = label.split("/")
            known_ends = [position[end] for end in ends if end in position]
            if len(known_ends) != len(ends) or len(ends) > 2 or known_ends != sorted(known_ends):
                raise ArgumentError(
                    "`gold` must hold labels of `levels` or ranges 'low/high', from less to more "
                    f"urgent, got {label!r}. The levels are {', '.join(self.levels)}."
                )
            if known_ends[-1] - known_ends[0] == len(self.levels) - 1:
                raise ArgumentError(
                    f"`gold` must leave room for a wrong answer, got {label!r}, the whole scale. "
                    "Narrow the range or add a level."
                )
            ranges.append((known_ends[0], known_ends[-1]))
        return tuple(ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    r"""How the answers come about.

    .. math::
        \operatorname{logit} p_{smcv} = \beta + \alpha_c + \mu_m + \nu_v
            + \sigma_S z_s + \sigma_{SC} z_{sc} + \sigma_{SM} z_{sm}

    with independent standard normal z; given p, answers are independent Bernoulli draws.

    Parameters
    ----------
    base_logit : float
    condition_effects, model_effects, variant_effects : mapping of name to float
        Logit scale; a name that is not given has 0.
    scenario_sd, scenario_condition_sd, scenario_model_sd : float
        Standard deviations on the logit scale.
    under_share : float
        Probability that a wrong answer lies below the gold range, where both sides exist; at an
        end of the scale all errors go the one way.
    two_level_share : float
        Probability that a wrong answer is two levels off, where the scale reaches that far.
    judge_error_rate : float
        Probability that a judge reads a neighbouring level; errors of judges are independent.
    unparsed_rates : mapping of condition to float
        Probability that an answer (label) or a judgment (judged) yields no label, right or wrong.
    missing_cell_rate, missing_row_rate : float
        Probability that a scenario x model x condition x variant cell, or a single answer, is
        absent from the tables.

    Raises
    ------
    ArgumentError
        For a number that is not finite, a negative sd, or a probability outside 0 to 1.
    """

    base_logit: float = 1.0
    condition_effects: Mapping[str, float] = field(default_factory=dict)
    model_effects: Mapping[str, float] = field(default_factory=dict)
    variant_effects: Mapping[str, float] = field(default_factory=dict)
    scenario_sd: float = 1.0
    scenario_condition_sd: float = 0.5
    scenario_model_sd: float = 0.5
    under_share: float = 0.5
    two_level_share: float = 0.1
    judge_error_rate: float = 0.0
    unparsed_rates: Mapping[str, float] = field(default_factory=dict)
    missing_cell_rate: float = 0.0
    missing_row_rate: float = 0.0

    def __post_init__(self) -> None:
        check_number("base_logit", self.base_logit)
        for name in ("condition_effects", "model_effects", "variant_effects"):
            for key, value in getattr(self, name).items():
                check_number(f"{name}[{key!r}]", value)
        for name in ("scenario_sd", "scenario_condition_sd", "scenario_model_sd"):
            check_number(name, getattr(self, name), low=0.0)
        for name in (
            "under_share",
            "two_level_share",
            "judge_error_rate",
            "missing_cell_rate",
            "missing_row_rate",
        ):
            check_number(name, getattr(self, name), low=0.0, high=1.0)
        for key, value in self.unparsed_rates.items():
            check_number(f"unparsed_rates[{key!r}]", value, low=0.0, high=1.0)
