"""Names shared by the whole package: column roles, statuses, options, and the glossary of result columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "GLOSSARY",
    "IDENTIFIER_ROLES",
    "KEY_ROLES",
    "ROLES",
    "SCHEMA_VERSION",
    "STATUSES",
    "TIDY_COLUMNS",
    "Interval",
    "Match",
    "Role",
    "Scheme",
    "Unparsed",
    "Verdict",
    "Weights",
]

SCHEMA_VERSION: Final = 1

Match = Literal["cell", "row", "scenario"]
Weights = Literal["scenario", "row"]
Unparsed = Literal["as scored", "wrong", "missing"]
Interval = Literal["auto", "jackknife-t", "percentile", "basic", "normal", "bca", "bootstrap-t", "max-t"]
Scheme = Literal["cluster", "stratified", "nested", "crossed", "bayesian"]
Verdict = Literal["equivalent", "better", "worse", "not worse", "undecided"]


@dataclass(frozen=True, slots=True)
class Role:
    """A part that a column can play, with the spellings under which it is recognised."""

    name: str
    spellings: tuple[str, ...]
    meaning: str


def _role(name: str, spellings: str, meaning: str) -> tuple[str, Role]:
    return name, Role(name, (name, *spellings.split()), meaning)


ROLES: Final[dict[str, Role]] = dict(
    [
        _role(
            "scenario",
            "scenario_id item item_id question question_id case case_id sample sample_id doc doc_id "
            "vignette vignette_id instance_id example_id",
            "what is asked; the unit that a study samples",
        ),
        _role("model", "model_name model_id source_model llm system", "what answers"),
        _role(
            "condition",
            "format prompt_format voice prompt arm treatment",
            "what is compared; one column or several",
        ),
        _role("variant", "prompt_variant paraphrase template", "part of the key, not compared"),
        _role(
            "repetition",
            "rep repeat run run_number epoch trial attempt",
            "the n-th answer to the same request",
        ),
        _role("judge", "judge_model rater grader annotator", "who scored a response"),
        _role("metric", "metric_name scorer measure", "what was measured"),
        _role(
            "response",
            "answer label prediction pred predicted predicted_label predicted_triage choice",
            "the label that was given",
        ),
        _role(
            "gold",
            "gold_label target truth ground_truth expected correct_answer",
            "the right label, or a range of labels",
        ),
        _role("gold_low", "", "one end of the range of right labels"),
        _role("gold_high", "", "the other end of the range of right labels"),
        _role("score", "correct is_correct accuracy acc passed", "0/1 or a number"),
        _role("status", "error", "why a row has no score, or what is doubtful about it"),
        _role("reason", "error_message failure_reason", "the status in words"),
        _role("task", "task_name subtask dataset benchmark", "the set that a scenario belongs to"),
        _role("source", "source_file file log", "where a row came from"),
        _role("cluster", "cluster_id", "what is resampled; the scenario where nothing is said"),
        _role("stratum", "strata subgroup", "reporting subgroups"),
    ]
)

IDENTIFIER_ROLES: Final = (
    "scenario",
    "model",
    "variant",
    "repetition",
    "judge",
    "metric",
    "task",
    "source",
)
KEY_ROLES: Final = (
    "scenario",
    "model",
    "condition",
    "variant",
    "repetition",
    "judge",
    "metric",
)

STATUSES: Final = (
    "ok",
    "unparsed",
    "error",
    "missing",
    "unscored",
    "absent",
    "non_scalar",
    "suspect",
    "deferred",
)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column of every tidy result."""

    name: str
    kind: Literal["text", "number", "count"]
    meaning: str


GLOSSARY: Final[tuple[ResultColumn, ...]] = (
    ResultColumn("estimand", "text", "what is estimated: rate, difference, gap, ..."),
    ResultColumn("term", "text", "the factor, coefficient or quantity that a row is about"),
    ResultColumn("model", "text", "the model; null where models are pooled"),
    ResultColumn("condition", "text", "the condition level; null where levels are compared"),
    ResultColumn("contrast", "text", "the comparison in words, level minus reference"),
    ResultColumn("stratum", "text", "the subgroup; null for all rows"),
    ResultColumn("judge", "text", "the judge; null where judges are averaged"),
    ResultColumn("metric", "text", "the metric; null where the table has one"),
    ResultColumn("estimate", "number", "the point estimate"),
    ResultColumn("std_error", "number", "its standard error, by cluster unless `method` differs"),
    ResultColumn("conf_low", "number", "lower end of the interval"),
    ResultColumn("conf_high", "number", "upper end of the interval"),
    ResultColumn("conf_level", "number", "nominal level of the interval"),
    ResultColumn(
        "statistic",
        "number",
        "the test statistic; estimate / std_error where t, also beside the p-value of a permutation",
    ),
    ResultColumn("df", "number", "degrees of freedom of `statistic`; a permutation has none"),
    ResultColumn(
        "p_value",
        "number",
        "two-sided p-value of the test that `method` names, not adjusted; that of a permutation does not "
        "follow from `statistic` and `df`",
    ),
    ResultColumn("p_adjusted", "number", "p-value adjusted for multiplicity"),
    ResultColumn("verdict", "text", "reading of the interval against the margin"),
    ResultColumn("status", "text", "ok, or why a number is absent or doubtful"),
    ResultColumn("reason", "text", "the status in words"),
    ResultColumn("method", "text", "interval; test"),
    ResultColumn("n_rows", "count", "responses used; matched responses of a contrast"),
    ResultColumn("n_clusters", "count", "clusters that carry data for this estimate"),
    ResultColumn("n_missing", "count", "keys planned by the crossing and not usable"),
)

TIDY_COLUMNS: Final = tuple(column.name for column in GLOSSARY)
