"""Response tables with a known truth, for demonstration, tests and calibration.

`python -m triagestats.simulate FOLDER` writes the bundled demo study.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats import _simulate_truth as known
from triagestats._simulate_design import (
    Condition,
    Effects,
    Mode,
    StudyDesign,
    check_count,
    check_number,
)
from triagestats._simulate_draw import (
    draw_condition,
    key_frame,
    readings,
    scenario_deviations,
)
from triagestats._simulate_truth import Truth
from triagestats.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

__all__ = [
    "Condition",
    "Effects",
    "Mode",
    "SimulatedScores",
    "SimulatedStudy",
    "StudyDesign",
    "Truth",
    "demo_study",
    "simulate_scores",
    "simulate_study",
]

_VALUES = (
    "correct",
    "under",
    "over",
    "judged_correct",
    "judged_under",
    "judged_over",
    "unparsed_as_wrong",
)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedStudy:
    """A simulated study with what made it.

    Attributes
    ----------
    responses : frame
        scenario, model, condition, variant, repetition, gold, response, error; one row an answer.
        The response is null where `error` is "unparsed", and where the condition is judged.
    judgments : frame
        scenario, model, condition, variant, repetition, judge, label, error; one row a judge of
        an answer in a judged condition.
    truth : Truth
    design, effects, seed
        What was asked for.
    """

    responses: pl.DataFrame
    judgments: pl.DataFrame
    truth: Truth
    design: StudyDesign
    effects: Effects
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedScores:
    """Simulated 0/1 scores with their true rates.

    Attributes
    ----------
    scores : frame
        scenario (0, 1, ...), model ("m1", ...), condition ("c1", ...), repetition (1, 2, ...),
        score (0 or 1). Rows are in this order, so that the score column reshapes to
        (n_clusters, n_models, n_conditions, n_repetitions).
    truth : Truth
        With the one value "correct".
    """

    scores: pl.DataFrame
    truth: Truth


def simulate_study(design: StudyDesign, effects: Effects, *, seed: int) -> SimulatedStudy:
    """Draw the response and judgment tables of a study, with their true values.

    The model is the formula of `Effects`; what is true of it is defined in `Truth`.

    Parameters
    ----------
    design : StudyDesign
    effects : Effects
        On the logit scale.
    seed : int
        At least 0. The same call gives the same tables. Scenario effects depend on the seed, the
        scenarios, models and conditions only: more repetitions, variants or judges keep them.

    Returns
    -------
    SimulatedStudy

    Raises
    ------
    ArgumentError
        For a negative seed, or effects of names that the design does not have.

    Notes
    -----
    A right answer is a level of the gold range, each equally often; a wrong one is one level, or
    with `two_level_share` two levels, off the range. In a judged condition "unparsed" is a
    property of the judgment, in a label condition of the answer.

    Examples
    --------
    >>> design = StudyDesign(
    ...     n_scenarios=4, models=("a", "b"), conditions=(Condition("letter", n_repetitions=3),)
    ... )
    >>> study = simulate_study(design, Effects(), seed=1)
    >>> study.responses.height
    24
    """
    check_count("seed", seed, at_least=0)
    _check_effect_names(design, effects)
    n_scenarios, n_models = design.n_scenarios, len(design.models)
    names = [condition.name for condition in design.conditions]
    scenario_seeds, answer_seeds = np.random.SeedSequence(seed).spawn(2)
    deviations = scenario_deviations(
        scenario_seeds,
        shape=(n_scenarios, n_models, len(names)),
        sds=(effects.scenario_sd, effects.scenario_condition_sd, effects.scenario_model_sd),
    )
    fixed = _fixed_logits(design, effects)
    cells = [known.logistic(logit[None] + deviations[:, :, c, None]) for c, logit in enumerate(fixed)]
    responses, judgments = [], []
    for condition, p, condition_seeds in zip(
        design.conditions, cells, answer_seeds.spawn(len(names)), strict=True
    ):
        drawn = draw_condition(design, effects, condition, p=p, seeds=condition_seeds)
        responses.append(drawn[0])
        judgments.append(drawn[1])
    values = _true_values(design, effects, fixed=fixed, cells=cells)
    return SimulatedStudy(
        responses=pl.concat(responses),
        judgments=pl.concat(judgments),
        truth=Truth(
            rates=known.rate_frame(values, conditions=names, models=design.models, columns=_VALUES),
            contrasts=known.contrast_frame(values, conditions=names, models=design.models, columns=_VALUES),
            cells=pl.concat(
                key_frame(design, condition, shape=p.shape).with_columns(pl.Series("correct", p.ravel()))
                for condition, p in zip(design.conditions, cells, strict=True)
            ),
        ),
        design=design,
        effects=effects,
        seed=seed,
    )


def simulate_scores(
    n_clusters: int,
    *,
    n_models: int = 1,
    n_conditions: int = 2,
    n_repetitions: int = 1,
    base_logit: float = 1.0,
    model_effects: Sequence[float] | None = None,
    condition_effects: Sequence[float] | None = None,
    scenario_sd: float = 1.0,
    scenario_condition_sd: float = 0.5,
    scenario_model_sd: float = 0.5,
    seed: int,
) -> SimulatedScores:
    r"""Draw clustered 0/1 scores, without labels, for calibration work.

    .. math::
        \operatorname{logit} p_{smc} = \beta + \mu_m + \alpha_c
            + \sigma_S z_s + \sigma_{SC} z_{sc} + \sigma_{SM} z_{sm}

    Parameters
    ----------
    n_clusters : int
        Scenarios.
    n_models, n_conditions, n_repetitions : int
        A full crossing; scores given p are independent.
    base_logit : float
    model_effects, condition_effects : sequences of n_models and n_conditions floats, optional
        Logit scale; default 0.
    scenario_sd, scenario_condition_sd, scenario_model_sd : float
        Standard deviations on the logit scale.
    seed : int
        At least 0. Scenario effects do not depend on the number of repetitions.

    Returns
    -------
    SimulatedScores

    Raises
    ------
    ArgumentError
        For counts below 1, effects of the wrong number, negative sds, numbers that are not finite.

    Examples
    --------
    >>> simulated = simulate_scores(17, n_models=2, n_repetitions=5, seed=1)
    >>> simulated.scores.height
    340
    """
    shape = {"n_clusters": n_clusters, "n_models": n_models}
    shape |= {"n_conditions": n_conditions, "n_repetitions": n_repetitions}
    for name, count in shape.items():
        check_count(name, count)
    check_count("seed", seed, at_least=0)
    check_number("base_logit", base_logit)
    sds = (scenario_sd, scenario_condition_sd, scenario_model_sd)
    sd_names = ("scenario_sd", "scenario_condition_sd", "scenario_model_sd")
    for name, value in zip(sd_names, sds, strict=True):
        check_number(name, value, low=0.0)
    by_model = _effect_array("model_effects", model_effects, n=n_models)
    by_condition = _effect_array("condition_effects", condition_effects, n=n_conditions)

    scenario_seeds, answer_seeds = np.random.SeedSequence(seed).spawn(2)
    fixed = base_logit + by_model[:, None] + by_condition[None, :]
    p = known.logistic(fixed + scenario_deviations(scenario_seeds, shape=(n_clusters, *fixed.shape), sds=sds))
    score = np.random.default_rng(answer_seeds).random((*p.shape, n_repetitions)) < p[..., None]

    models = [f"m{i}" for i in range(1, n_models + 1)]
    conditions = [f"c{i}" for i in range(1, n_conditions + 1)]
    population = known.logistic_normal_mean(fixed, float(np.linalg.norm(sds)))
    values = np.stack([population, p.mean(axis=0)]).swapaxes(1, 2)[..., None]

    def keys(sizes: tuple[int, ...]) -> pl.DataFrame:
        index = np.indices(sizes).reshape(len(sizes), -1)
        columns = [
            pl.Series("scenario", index[0]),
            pl.Series("model", models).gather(index[1]),
            pl.Series("condition", conditions).gather(index[2]),
        ]
        if len(sizes) > len(columns):
            columns.append(pl.Series("repetition", index[3] + 1))
        return pl.DataFrame(columns)

    return SimulatedScores(
        scores=keys(score.shape).with_columns(
            pl.Series("score", score.ravel().astype(np.int8)),
        ),
        truth=Truth(
            rates=known.rate_frame(values, conditions=conditions, models=models, columns=("correct",)),
            contrasts=known.contrast_frame(
                values, conditions=conditions, models=models, columns=("correct",)
            ),
            cells=keys(p.shape).with_columns(pl.Series("correct", p.ravel())),
        ),
    )


def demo_study() -> SimulatedStudy:
    """Return the bundled demo study; its codebook is the README beside the data files.

    Returns
    -------
    SimulatedStudy
        17 triage scenarios, 5 models, 3 prompt variants, 5 repetitions, answered by letter and in
        free text, the latter labelled by 2 judges.

    Examples
    --------
    >>> demo_study().design.n_scenarios
    17
    """
    from triagestats import _demo

    return _demo.build()


def _fixed_logits(design: StudyDesign, effects: Effects) -> list[FloatArray]:
    """Return the fixed part of the logit, (models, variants) for each condition."""
    by_model = np.array([effects.model_effects.get(name, 0.0) for name in design.models])
    logits = []
    for condition in design.conditions:
        by_variant = np.array([effects.variant_effects.get(v, 0.0) for v in condition.variants])
        base = effects.base_logit + effects.condition_effects.get(condition.name, 0.0)
        logits.append(base + by_model[:, None] + by_variant[None, :])
    return logits


def _true_values(
    design: StudyDesign, effects: Effects, *, fixed: list[FloatArray], cells: list[FloatArray]
) -> FloatArray:
    """Return the values of `Truth`, (population, conditions, models, values)."""
    reading = readings(design, effects)
    judged = reading @ known.judge_matrix(len(design.levels), effects.judge_error_rate)
    low, high = zip(*design.gold_ranges(), strict=True)
    total_sd = float(
        np.linalg.norm([effects.scenario_sd, effects.scenario_condition_sd, effects.scenario_model_sd])
    )
    values = []
    for condition, logit, p in zip(design.conditions, fixed, cells, strict=True):
        seen = judged if condition.mode == "judged" else reading
        rates = np.concatenate(
            [known.class_rates(reading, low, high), known.class_rates(seen, low, high)], axis=2
        )
        superpopulation = known.logistic_normal_mean(logit, total_sd).mean(axis=1)
        drawn = p.mean(axis=2)
        wrong, right = rates[:, 0], rates[:, 1]
        by_population = np.stack(
            [
                np.outer(superpopulation, right.mean(axis=0))
                + np.outer(1.0 - superpopulation, wrong.mean(axis=0)),
                (drawn.T @ right + (1.0 - drawn).T @ wrong) / design.n_scenarios,
            ]
        )
        parsed = 1.0 - effects.unparsed_rates.get(condition.name, 0.0)
        values.append(np.concatenate([by_population, parsed * by_population[..., 3:4]], axis=2))
    return np.stack(values, axis=1)


def _check_effect_names(design: StudyDesign, effects: Effects) -> None:
    conditions = [condition.name for condition in design.conditions]
    variants = [variant for condition in design.conditions for variant in condition.variants]
    for name, given, names in (
        ("condition_effects", effects.condition_effects, conditions),
        ("unparsed_rates", effects.unparsed_rates, conditions),
        ("model_effects", effects.model_effects, design.models),
        ("variant_effects", effects.variant_effects, variants),
    ):
        for key in given:
            if key not in names:
                raise ArgumentError(
                    f"`{name}` must name what the design has, got {key!r}. "
                    f"Use {', '.join(dict.fromkeys(names))}."
                )


def _effect_array(name: str, values: Sequence[float] | None, *, n: int) -> FloatArray:
    if values is None:
        return np.zeros(n)
    if len(values) != n:
        raise ArgumentError(
            f"`{name}` must have {n} numbers, one a level, got {len(values)}. "
            f"Change it or the count of levels."
        )
    for value in values:
        check_number(name, value)
    return np.asarray(values, dtype=np.float64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the demo study into a folder."""
    parser = argparse.ArgumentParser(description="Write the bundled demo study into a folder.")
    parser.add_argument("folder", type=Path, help="where its files go; made if absent")
    from triagestats import _demo

    _demo.write(parser.parse_args(arguments).folder)


if __name__ == "__main__":
    main()
