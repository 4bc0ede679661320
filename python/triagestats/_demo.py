"""The bundled demo study, and the files it is published as."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats.simulate import Condition, Effects, StudyDesign, simulate_study

if TYPE_CHECKING:
    from pathlib import Path

    from triagestats.simulate import SimulatedStudy

__all__ = ["SEED", "Comparison", "build", "compare", "write"]

# Counting from 1, the first seed for which the row-wise p of `compare` is below .01 and the
# scenario-level p above .1: what the demo is to show. The README says so.
SEED = 1

_SCENARIOS = (
    ("chest_pain_at_rest", "Chest pain at rest with sweating", "emergency"),
    ("sudden_facial_droop", "Sudden facial droop and slurred speech", "emergency"),
    ("wheeze_after_peanut", "Wheezing and hives after eating a peanut", "emergency"),
    ("worst_headache_of_life", "Sudden worst headache of life", "emergency"),
    ("fever_in_newborn", "Fever in a three-week-old", "urgent/emergency"),
    ("calf_swelling_after_flight", "One-sided calf swelling after a long flight", "urgent"),
    ("flank_pain_with_fever", "Flank pain with fever and chills", "urgent"),
    ("deep_cut_on_hand", "Deep cut on the hand that no longer bleeds", "urgent"),
    ("red_painful_eye", "Red, painful eye in a wearer of contact lenses", "urgent"),
    ("ear_pain_in_child", "Ear pain for two days in a child", "routine/urgent"),
    ("rash_after_antibiotic", "Itchy rash after a new antibiotic", "routine/urgent"),
    ("changing_mole", "Mole that changed its shape", "routine"),
    ("knee_pain_for_months", "Knee pain for three months", "routine"),
    ("tired_for_weeks", "Tired for six weeks", "routine"),
    ("heartburn_after_meals", "Heartburn after large meals", "self_care"),
    ("runny_nose_three_days", "Runny nose for three days", "self_care"),
    ("twisted_ankle_walking", "Twisted ankle, able to walk", "self_care"),
)
_VARIANTS = ("plain", "detailed", "worried")
_CONDITIONS = (
    Condition("free_text", mode="judged", variants=_VARIANTS, n_repetitions=5),
    Condition("letter", mode="label", variants=_VARIANTS, n_repetitions=5),
)
_DESIGN = StudyDesign(
    n_scenarios=len(_SCENARIOS),
    models=("model_a", "model_b", "model_c", "model_d", "model_e"),
    conditions=_CONDITIONS,
    judges=("judge_1", "judge_2"),
    levels=("self_care", "routine", "urgent", "emergency"),
    scenarios=tuple(name for name, _, _ in _SCENARIOS),
    gold=tuple(gold for _, _, gold in _SCENARIOS),
)
_EFFECTS = Effects(
    base_logit=1.2,
    condition_effects={"letter": -0.3},
    model_effects={"model_b": 0.3, "model_c": -0.3, "model_d": 0.1, "model_e": -0.5},
    variant_effects={"detailed": 0.2, "worried": -0.2},
    scenario_sd=1.0,
    scenario_condition_sd=1.3,
    scenario_model_sd=0.5,
    under_share=0.6,
    two_level_share=0.15,
    judge_error_rate=0.04,
    unparsed_rates={"free_text": 0.01, "letter": 0.025},
    missing_cell_rate=0.01,
)
_KEY = ["scenario", "model", "condition", "variant", "repetition"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The observed contrast letter - free_text, read by rows and by scenarios."""

    row_estimate: float
    row_std_error: float
    row_p_value: float
    scenario_estimate: float
    scenario_std_error: float
    scenario_p_value: float


def build(seed: int = SEED) -> SimulatedStudy:
    """Return the demo study, or its sibling of another seed."""
    return simulate_study(_DESIGN, _EFFECTS, seed=seed)


def compare(study: SimulatedStudy) -> Comparison:
    """Compare letter with free text, by rows as if independent, then by scenarios.

    An answer is scored 1 where its label lies in the gold range, judges averaged first, unparsed
    left out. By rows: Welch's t-test. By scenarios: means of cells, then of models, then the
    paired t-test over scenarios.
    """
    from scipy import stats

    scores = _scores(study)
    letter, free_text = (
        scores.filter(condition=name)["score"].to_numpy() for name in ("letter", "free_text")
    )
    rows = stats.ttest_ind(letter, free_text, equal_var=False)
    cells = scores.group_by(_KEY[:4]).agg(pl.col("score").mean())
    by_model = cells.group_by(_KEY[:3]).agg(pl.col("score").mean())
    wide = (
        by_model.group_by("scenario", "condition")
        .agg(pl.col("score").mean())
        .pivot("condition", index="scenario", values="score")
        .sort("scenario")
    )
    difference = (wide["letter"] - wide["free_text"]).to_numpy()
    scenarios = stats.ttest_1samp(difference, 0.0)
    variance = letter.var(ddof=1) / letter.size + free_text.var(ddof=1) / free_text.size
    return Comparison(
        row_estimate=float(letter.mean() - free_text.mean()),
        row_std_error=float(np.sqrt(variance)),
        row_p_value=float(rows.pvalue),
        scenario_estimate=float(difference.mean()),
        scenario_std_error=float(difference.std(ddof=1) / np.sqrt(difference.size)),
        scenario_p_value=float(scenarios.pvalue),
    )


def write(folder: Path) -> None:
    """Write the tables, the true values and the codebook into `folder`."""
    study = build()
    folder.mkdir(parents=True, exist_ok=True)
    study.responses.write_csv(folder / "demo_responses.csv", line_terminator="\n")
    study.judgments.write_csv(folder / "demo_judgments.csv", line_terminator="\n")
    truth = json.dumps(_truth(study), indent=1) + "\n"
    (folder / "demo_truth.json").write_bytes(truth.encode())
    (folder / "README.md").write_bytes(_codebook(study).encode())


def _scores(study: SimulatedStudy) -> pl.DataFrame:
    labels = pl.concat(
        [
            study.responses.select(*_KEY, label="response"),
            study.judgments.select(*_KEY, "label"),
        ]
    )
    right = pl.col("gold").str.split("/").list.contains(pl.col("label"))
    # A range in the demo spans two neighbouring levels, so its two ends are all of it.
    return (
        labels.drop_nulls("label")
        .join(study.responses.select(*_KEY, "gold"), on=_KEY)
        .group_by(_KEY, maintain_order=True)
        .agg(right.cast(pl.Float64).mean().alias("score"))
    )


def _truth(study: SimulatedStudy) -> dict[str, Any]:
    def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
        return frame.with_columns(pl.col(pl.Float64).round(10)).to_dicts()

    return {
        "seed": study.seed,
        "design": asdict(study.design),
        "effects": asdict(study.effects),
        "titles": {name: title for name, title, _ in _SCENARIOS},
        "rates": rows(study.truth.rates),
        "contrasts": rows(study.truth.contrasts),
    }


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _true_table(study: SimulatedStudy) -> str:
    """Return the true rates and the true contrast of the conditions, models averaged."""
    pooled = pl.col("model").is_null()
    rates = study.truth.rates.filter(pooled)
    contrast = study.truth.contrasts.filter(pooled, term="condition")
    rows = [
        (label, row["population"], *(f"{row[name]:.4f}" for name in study.truth.rates.columns[3:]))
        for frame, key in ((rates, "condition"), (contrast, "contrast"))
        for row in frame.to_dicts()
        for label in (f"`{row[key]}`",)
    ]
    return _table(("value of", "population", *study.truth.rates.columns[3:]), rows)


def _codebook(study: SimulatedStudy) -> str:
    n_planned = len(_SCENARIOS) * len(_DESIGN.models) * len(_VARIANTS) * 5
    counts = {name: study.responses.filter(condition=name).height for name in ("letter", "free_text")}
    unparsed = study.responses.filter(error="unparsed").height
    unread = study.judgments.filter(error="unparsed").height
    found = compare(study)
    return _CODEBOOK.format(
        seed=study.seed,
        n_planned=n_planned,
        n_letter=counts["letter"],
        n_free_text=counts["free_text"],
        n_responses=study.responses.height,
        n_judgments=study.judgments.height,
        unparsed=unparsed,
        unread=unread,
        scenarios=_table(
            ("scenario", "title", "gold"),
            [(f"`{name}`", title, f"`{gold}`") for name, title, gold in _SCENARIOS],
        ),
        effects="\n".join(f"- `{name}`: {json.dumps(value)}" for name, value in asdict(_EFFECTS).items()),
        true_values=_true_table(study),
        row=f"{found.row_estimate:.3f} | {found.row_std_error:.3f} | {found.row_p_value:.1g}",
        scenario=(
            f"{found.scenario_estimate:.3f} | {found.scenario_std_error:.3f} | {found.scenario_p_value:.2f}"
        ),
        ratio=f"{found.scenario_std_error / found.row_std_error:.1f}",
    )


_CODEBOOK = """\
# The demo study

A made-up study of triage advice whose true values are known. No model, judge or patient stands
behind it, the gold labels are for illustration, and none of it is medical advice.

## Files

| file | rows | content |
| --- | --- | --- |
| `demo_responses.csv` | {n_responses} | one row an answer |
| `demo_judgments.csv` | {n_judgments} | one row a judge of a free-text answer |
| `demo_truth.json` | | design, effects, seed, titles, true rates and contrasts |

UTF-8, comma separated, a header line, empty means null.

## Design

17 scenarios x 5 models x 2 conditions x 3 prompt variants x 5 repetitions, fully crossed:
{n_planned} answers planned a condition. In `letter` the answer is a label of the scale. In
`free_text` two judges label each answer. The scale, from least to most urgent:
`self_care`, `routine`, `urgent`, `emergency` (alphabetical order is another one).

About 1 % of the scenario x model x condition x variant cells never came back: their rows are
absent, which leaves {n_letter} answers in `letter` and {n_free_text} in `free_text`.
Unparsed: {unparsed} answers in `letter`, {unread} judgments in `free_text`.

{scenarios}

## Columns

`demo_responses.csv`; the first five columns are the key.

| column | type | meaning | values |
| --- | --- | --- | --- |
| `scenario` | text | the case that is asked about; the cluster | 17, see above |
| `model` | text | what answers | `model_a` ... `model_e` |
| `condition` | text | how the answer is asked for | `free_text`, `letter` |
| `variant` | text | wording of the prompt | `plain`, `detailed`, `worried` |
| `repetition` | integer | the n-th answer to the same request | 1 to 5 |
| `gold` | text | the right label, or a range `low/high`, both ends right | labels of the scale |
| `response` | text | the label given; null if unparsed, and in `free_text` | labels of the scale |
| `error` | text | why there is no label; null if there is one, and in `free_text` | `unparsed` |

`demo_judgments.csv`; the first five columns join to an answer, with `judge` they are the key.

| column | type | meaning | values |
| --- | --- | --- | --- |
| `scenario` ... `repetition` | | as above; `condition` is always `free_text` | |
| `judge` | text | who labels the answer | `judge_1`, `judge_2` |
| `label` | text | the label the judge reads in the answer; null if unparsed | labels of the scale |
| `error` | text | why there is no label; null if there is one | `unparsed` |

## How it was made

The probability that an answer of model m to scenario s, variant v, condition c is right:

    logit p = base + condition + model + variant
              + scenario_sd z[s] + scenario_condition_sd z[s, c] + scenario_model_sd z[s, m]

with independent standard normal z. A wrong answer is one level off the gold range, or two with
probability `two_level_share` where the scale reaches; below it with probability `under_share`
where both sides exist. A judge reads a neighbouring level with probability `judge_error_rate`.
Effects not listed are 0; those on the logit scale are the effects and the sds.

{effects}

The seed is {seed}: counting from 1, the first whose tables show what the demo is for, a row-wise
p-value below .01 and a scenario-level one above .1. The tables are thus picked to show a known
trap; they are no evidence of how often it springs.

## True values

Models, and variants, are averaged with equal weights.

- `superpopulation`: over new scenarios of this kind (by quadrature). What an interval that takes
  scenarios as the sample aims at.
- `finite`: over the 17 scenarios drawn. What endless repetitions of these would show.
- `correct`, `under`, `over`: the answer is inside, below, above the gold range, to a reader
  without error.
- `judged_correct`, `judged_under`, `judged_over`: the same of the labels in the tables, where
  there is one. This is what the score averages to when unparsed is left out. Judge error pulls
  it, and contrasts, together; `letter` has none.
- `unparsed_as_wrong`: what the score averages to when unparsed counts as wrong.

{true_values}

`demo_truth.json` has them for each model too, and the contrasts of models.

The observed contrast `letter - free_text`, unparsed left out, judges averaged first:

| read | estimate | std. error | p |
| --- | --- | --- | --- |
| by rows as if independent (Welch's t) | {row} |
| by scenario (paired t, 16 df) | {scenario} |

The second standard error is {ratio} times the first. The 17 scenarios differ in how they react
to the format; answers of the same scenario repeat that, they do not average it out.

## Made again

    python -m triagestats.simulate data/

writes all four files, byte for byte. Licence: that of the project.
"""
