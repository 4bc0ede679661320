"""The draws behind a simulated study: scenario effects, answers, judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from triagestats import _simulate_truth as known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import SeedSequence
    from numpy.typing import NDArray

    from triagestats._simulate_design import Condition, Effects, StudyDesign

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

__all__ = ["draw_condition", "key_frame", "readings", "scenario_deviations"]


def scenario_deviations(
    seeds: SeedSequence, *, shape: tuple[int, int, int], sds: tuple[float, float, float]
) -> FloatArray:
    """Return the random part of the logit, (scenarios, models, conditions)."""
    n_scenarios, n_models, n_conditions = shape
    scenario, by_condition, by_model = (np.random.default_rng(part) for part in seeds.spawn(3))
    # Drawn a condition (a model) at a time, so that adding one keeps the draws of the others.
    return np.asarray(
        sds[0] * scenario.standard_normal(n_scenarios)[:, None, None]
        + sds[1] * by_condition.standard_normal((n_conditions, n_scenarios)).T[:, None, :]
        + sds[2] * by_model.standard_normal((n_models, n_scenarios)).T[:, :, None],
        dtype=np.float64,
    )


def readings(design: StudyDesign, effects: Effects) -> FloatArray:
    """Return the level distribution of wrong and right answers, (scenarios, 2, levels)."""
    return np.stack(
        [
            known.reading_given_correct(
                low,
                high,
                len(design.levels),
                under_share=effects.under_share,
                two_level_share=effects.two_level_share,
            )
            for low, high in design.gold_ranges()
        ]
    )


def draw_condition(
    design: StudyDesign,
    effects: Effects,
    condition: Condition,
    *,
    p: FloatArray,
    seeds: SeedSequence,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the answers of one condition with the judgments of them."""
    parts = seeds.spawn(6)
    right, level, unparsed, lost_cell, lost_row = (np.random.default_rng(i) for i in parts[:5])
    shape = (*p.shape, condition.n_repetitions)
    correct = right.random(shape) < p[..., None]
    reading = readings(design, effects)
    rows = np.arange(design.n_scenarios)[:, None, None, None]
    said = _pick(reading[rows, correct.astype(np.int64)], level.random(shape)).ravel()
    absent = lost_cell.random(p.shape)[..., None] < effects.missing_cell_rate
    kept = pl.Series(~(absent | (lost_row.random(shape) < effects.missing_row_rate)).ravel())
    unparsed_rate = effects.unparsed_rates.get(condition.name, 0.0)
    judged = condition.mode == "judged"

    keys = key_frame(design, condition, shape=shape)
    scenario = np.repeat(np.arange(design.n_scenarios), said.size // design.n_scenarios)
    failed = unparsed.random(said.size) < (0.0 if judged else unparsed_rate)
    hidden = np.ones(said.size, dtype=bool) if judged else failed
    responses = keys.with_columns(
        pl.Series("gold", design.gold_labels()).gather(scenario).alias("gold"),
        *_label_columns("response", design.levels, said, hidden=hidden, failed=failed),
    ).filter(kept)

    matrix = known.judge_matrix(len(design.levels), effects.judge_error_rate)
    judgments = []
    for judge, judge_seed in zip(design.judges, parts[5].spawn(len(design.judges)), strict=True):
        reads, fails = (np.random.default_rng(part) for part in judge_seed.spawn(2))
        read = _pick(matrix[said], reads.random(said.size))
        failed = fails.random(said.size) < unparsed_rate
        judgments.append(
            keys.with_columns(
                pl.lit(judge).alias("judge"),
                *_label_columns("label", design.levels, read, hidden=failed, failed=failed),
            ).filter(kept)
        )
    if not (judged and judgments):
        text = (pl.lit("").alias(name) for name in ("judge", "label", "error"))
        return responses, keys.clear().with_columns(*text)
    # One block an answer: its judges one below the other.
    order = pl.Series(np.arange(responses.height * len(judgments)).reshape(len(judgments), -1).T.ravel())
    return responses, pl.concat(judgments)[order]


def _pick(probabilities: FloatArray, uniform: FloatArray) -> IntArray:
    """Return a level for each distribution (..., levels), by inversion of a uniform number."""
    below = np.cumsum(probabilities, axis=-1)[..., :-1]
    # A sum of 1 less a rounding error must not let a level of probability 0 through.
    below = np.where(below > 1.0 - 1e-12, 1.0, below)
    return np.asarray((uniform[..., None] >= below).sum(axis=-1), dtype=np.int64)


def key_frame(design: StudyDesign, condition: Condition, *, shape: tuple[int, ...]) -> pl.DataFrame:
    """Return the key of each entry of an array of scenarios, models, variants (, repetitions)."""
    index = np.indices(shape).reshape(len(shape), -1)
    columns = [
        pl.Series("scenario", design.scenario_names()).gather(index[0]),
        pl.Series("model", design.models).gather(index[1]),
        pl.Series("condition", [condition.name]).gather(np.zeros_like(index[0])),
        pl.Series("variant", condition.variants).gather(index[2]),
    ]
    if len(shape) > 3:
        columns.append(pl.Series("repetition", index[3] + 1))
    return pl.DataFrame(columns)


def _label_columns(
    name: str,
    levels: Sequence[str],
    said: IntArray,
    *,
    hidden: NDArray[np.bool_],
    failed: NDArray[np.bool_],
) -> tuple[pl.Expr, pl.Expr]:
    """Return the label column, null where hidden, and the error column."""
    label = pl.lit(pl.Series(levels).gather(said))
    unparsed = pl.lit("unparsed")
    return (
        pl.when(pl.Series(~hidden)).then(label).alias(name),
        pl.when(pl.Series(failed)).then(unparsed).alias("error"),
    )
