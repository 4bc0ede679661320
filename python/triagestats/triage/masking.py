"""masking_slope: how scores fall as more of a question is masked, by question and by run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_level
from triagestats.blocks import contrast_targets
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.estimands import Estimand, Mean
from triagestats.inference import Family, Options
from triagestats.labels import label_of, listed
from triagestats.plan import contrast_plan, targets_of
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, Test, as_json, tidy_frame
from triagestats.sign_tests import sign_test
from triagestats.triage.contrasts import Contrast, family_of
from triagestats.triage.run_values import RunValues, runs_of_table, table_of_levels
from triagestats.triage.text import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["MaskingSlope", "masking_slope"]

FALSE_POSITIVES: Final = "false_positive_rate"
_SHOWN: Final = (
    "estimand",
    "term",
    "condition",
    "estimate",
    "std_error",
    "conf_low",
    "conf_high",
    "p_value",
    "n_rows",
    "n_clusters",
)


@dataclass(frozen=True, slots=True, eq=False)
class MaskingSlope(Shown):
    """Slope of the score over the level of masking.

    Attributes
    ----------
    levels
        How much is masked at each level of the condition, least first.
    slopes
        One row a run that has all levels: `run`, `slope`.
    test
        Sign test of the slopes of the runs; None where fewer than two runs have all levels.
    chance
        What an answer without any information scores.
    conf_level, n_resamples, seed
        What was asked.
    notes
        What the estimates speak of, and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = [(q, m, int(q % 10 < 9 - m / 20)) for q in range(40) for m in (0, 50, 100)]
    >>> found = ts.masking_slope(dict(zip(["question", "condition", "score"], zip(*rows))))
    >>> isinstance(found, ts.MaskingSlope), found.levels
    (True, {'0': 0.0, '50': 50.0, '100': 100.0})
    """

    levels: Mapping[str, float]
    slopes: pl.DataFrame
    test: Test | None
    chance: float
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _rows: tuple[Mapping[str, Any], ...]
    _family: Family

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary.

        By question: `slope`, `mean` at each level, and at the full masking `false_positive_rate` where chance
        is 0, `above_chance` where it is not. By run: the mean and the standard deviation of their slopes.
        """
        frame = self._family.read(self.conf_level).with_columns(
            pl.lit("questions").alias("term"), pl.lit(None, pl.String).alias("verdict")
        )
        means = frame.filter(pl.col("estimand") == "mean")
        label = pl.col("contrast").str.strip_prefix("mean(").str.strip_suffix(")")
        means = means.with_columns(label.alias("condition"), pl.lit(None, pl.String).alias("contrast"))
        full = list(self.levels)[-1]
        last = means.filter(pl.col("condition") == full)
        shifted = [pl.col(name) - self.chance for name in ("estimate", "conf_low", "conf_high")]
        name = "above_chance" if self.chance else FALSE_POSITIVES
        last = last.with_columns(pl.lit(name).alias("estimand"), *shifted)
        slope = frame.filter(pl.col("estimand") == "slope")
        return pl.concat([slope, means, last, tidy_frame(dict(row) for row in self._rows)])

    def glance(self) -> pl.DataFrame:
        """One row: sizes and settings."""
        return pl.DataFrame(
            {
                "n_levels": [len(self.levels)],
                "n_runs": [self.slopes.height],
                "n_clusters": [int(self._family.evidence.n_clusters.max(initial=0))],
                "chance": [self.chance],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"seed": pl.UInt64},
        )

    def with_level(self, conf_level: float) -> MaskingSlope:
        """The same estimates at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def to_dict(self) -> dict[str, Any]:
        """Estimates, slopes of the runs, notes and settings as plain JSON values."""
        return as_json(
            self,
            {"levels": dict(self.levels)},
            estimates=self.tidy(),
            slopes=self.slopes,
            test=None if self.test is None else self.test.to_dict(),
        )

    def __repr__(self) -> str:
        ends = list(self.levels.values())
        span = f"{ends[0]:g} to {ends[-1]:g}"
        return "\n".join(
            [
                f"Slope of the score over masking, {span}; {self.conf_level:.4g} intervals",
                *aligned(self.tidy(), _SHOWN),
                *(f"note: {note}" for note in self.notes),
            ]
        )


def masking_slope(
    data: object,
    *,
    levels: Mapping[str, float] | None = None,
    model: str | None = None,
    chance: float = 0.0,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> MaskingSlope:
    """Slope of the mean score over how much of a question is masked, by question and by run.

    With x the masking of the L levels and y(x) the mean score there,

        slope = sum (x - mean(x)) y(x) / sum (x - mean(x))^2

    over the questions scored at all levels; the slope of the mean is the mean of the questions' own slopes.

    Parameters
    ----------
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, of one model, whose condition column
        holds the masking.
    levels
        Masking of each level of the condition. Default: the numbers in their names, such as 0, 25 or `50%`.
    model
        The model, where `data` has several.
    chance
        What an answer to a fully masked question scores without any information: 0 for free text, 1 / k for
        k options.
    conf_level, n_resamples, seed, n_threads
        As in `analyze`.

    Returns
    -------
    MaskingSlope
        `tidy()`, `slopes` of the runs, and their `test`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says what would help.

    Notes
    -----
    The interval is the cluster jackknife by question with t(G - 1); its p-value flips the signs of the
    questions' slopes. The slopes of the runs have a sign test, which speaks of further runs with the same
    questions.

    Nothing is left to answer a fully masked question from. In free text chance is 0, so that the rate that
    remains is of answers that the judge takes for right without reason: it estimates the judge's false
    positives, for answers such as these. It also holds questions that a model knows by heart from what is
    left of them, and is then too large.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = [(q, f"{m}%", int(q % 10 < 9 - m / 20)) for q in range(40) for m in (0, 25, 50, 75, 100)]
    >>> found = ts.masking_slope(dict(zip(["question", "condition", "score"], zip(*rows))))
    >>> by_name = dict(found.tidy().select("estimand", "estimate").iter_rows())
    >>> round(by_name["slope"], 4), round(by_name["false_positive_rate"], 2)
    (-0.0048, 0.4)
    """
    share = _chance(chance)
    conf = valid_level(conf_level)
    options = Options(
        interval="auto",
        n_resamples=valid_resamples(n_resamples),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
        margin=None,
        higher_is_better=True,
    )
    named = None if levels is None else _given(levels)
    keys = None if named is None else list(named)
    table, found = table_of_levels(data, keys, ["levels"] * len(keys or ()), model)
    masking = dict(zip(found, named.values(), strict=True)) if named else _in_names(found)
    if len(set(masking.values())) < max(2, len(masking)):
        raise DesignError(
            f"masking must differ between at least two levels, each with its own; got {masking}"
        )
    masking = dict(sorted(masking.items(), key=lambda pair: pair[1]))
    design, runs, notes = _runs(table, tuple(masking))
    weights = _weights(np.array(list(masking.values())))
    family, doubts = _by_question(design, masking, weights, options)
    slopes = _run_slopes(runs, weights)
    test = sign_test(slopes["slope"].to_numpy()) if slopes.height > 1 else None
    return MaskingSlope(
        levels=masking,
        slopes=slopes,
        test=test,
        chance=share,
        conf_level=conf,
        n_resamples=options.n_resamples,
        seed=options.seed,
        notes=(*table.notes, *notes, *doubts, *_notes(test, slopes.height, design.n_units, share)),
        _rows=tuple(_run_rows(slopes, test)),
        _family=family,
    )


def _chance(chance: object) -> float:
    """What an answer without information scores."""
    if isinstance(chance, bool) or not isinstance(chance, Real) or not 0 <= float(chance) < 1:
        raise ArgumentError(f"`chance` must be a number from 0 to below 1; got {chance!r}")
    return float(chance)


def _given(levels: object) -> dict[str, float]:
    """Masking by level as it was given."""
    if not isinstance(levels, Mapping) or not levels:
        raise ArgumentTypeError(
            f"`levels` must map levels of the condition to numbers, such as {{'half': 50}}; got {levels!r}"
        )
    for level, value in levels.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ArgumentTypeError(f"`levels` must map to finite numbers; {level!r} has {value!r}")
    return {str(label_of(level)): float(value) for level, value in levels.items()}


def _in_names(levels: Sequence[str]) -> dict[str, float]:
    """Masking by level from the names of the levels."""
    found = {}
    for level in levels:
        try:
            found[level] = float(level.strip().removesuffix("%"))
        except ValueError:
            raise ArgumentError(
                f"`levels` is needed: the level {level!r} is no number; map each level to how much is "
                f"masked, such as levels={{{level!r}: 100}}"
            ) from None
    return found


def _runs(table: Any, levels: tuple[str, ...]) -> tuple[Design, tuple[RunValues, ...], tuple[Note, ...]]:
    """Runs by level; a table without repetitions is one run."""
    if "repetition" not in table.frame.columns:
        table = table.with_frame(table.frame.with_columns(pl.lit("1").alias("repetition")))
    return runs_of_table(table, levels, "run")


def _weights(x: Array) -> Array:
    """What the mean at each level adds to the slope."""
    centred = x - x.mean()
    weights: Array = centred / (centred @ centred)
    return weights


def _by_question(
    design: Design, masking: Mapping[str, float], weights: Array, options: Options
) -> tuple[Family, tuple[Note, ...]]:
    """The slope, and the mean at each level, by question."""
    by_level = dict(zip(masking, weights.tolist(), strict=True))
    estimands: list[Estimand] = [Contrast("slope", "slope over masking", by_level), *map(Mean, masking)]
    targets = targets_of(design, estimands)[len(contrast_targets(design)) :]
    plan = contrast_plan(design, targets, match="cell", weights="scenario", metric=None, strata=False)
    if plan is None:
        raise DesignError(f"nothing is scored at all of {listed(list(masking))}")
    pooled = tuple(row for row in plan.rows if row.identity["model"] is None)
    return family_of(replace(plan, rows=pooled), options)


def _run_slopes(runs: Sequence[RunValues], weights: Array) -> pl.DataFrame:
    """The slope of every run that has all levels."""
    shared = [label for label in runs[0].labels if all(label in run.labels for run in runs)]
    values = np.stack([run.only(shared).values for run in runs])
    return pl.DataFrame(
        {"run": shared, "slope": weights @ values}, schema={"run": pl.String, "slope": pl.Float64}
    )


def _run_rows(slopes: pl.DataFrame, test: Test | None) -> list[dict[str, Any]]:
    """Estimates at the level of the runs."""
    if test is None:
        return []
    values = slopes["slope"].to_numpy()
    shared = {"term": "runs", "n_rows": len(values), "status": "ok"}
    return [
        shared
        | {
            "estimand": "slope",
            "estimate": float(values.mean()),
            "p_value": test.p_value,
            "method": test.method,
        },
        shared | {"estimand": "run_sd", "estimate": float(values.std(ddof=1))},
    ]


def _notes(test: Test | None, n_runs: int, n_questions: int, chance: float) -> list[Note]:
    """What is spoken of."""
    notes = []
    if test is not None:
        message = (
            f"The sign test of {n_runs:,} runs speaks of further runs with the same {n_questions:,} "
            "questions, not of other questions; of those the interval by question speaks."
        )
        notes.append(Note("reruns", message, "caution"))
    if chance:
        message = (
            f"At full masking an answer without information scores {chance:g}: above_chance is beyond it."
        )
        notes.append(Note("chance", message))
    else:
        message = (
            "At full masking nothing is left to answer from, and chance is 0: the rate there estimates the "
            "judge's false positives (with what models know by heart, it is at most too large)."
        )
        notes.append(Note("false_positives", message))
    return notes
