"""What `analyze` says to data and arguments that cannot be used, and that hostile names do no harm."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import triagestats as ts
from triagestats import errors

N_SCENARIOS = 8


def study(n_scenarios: int = N_SCENARIOS, conditions: str = "xy", models: str = "m") -> pl.DataFrame:
    rng = random.Random(1)
    return pl.DataFrame(
        [
            {"scenario": f"s{s}", "condition": c, "model": m, "score": rng.randint(0, 1)}
            for s in range(n_scenarios)
            for c in conditions
            for m in models
        ]
    )


def fit(data: object, **options: Any) -> ts.Analysis:
    return ts.analyze(data, **{"n_resamples": 99, **options})


def nulled(condition: str) -> pl.DataFrame:
    kept = pl.when(pl.col("condition") != condition).then("score")
    return study().with_columns(kept.alias("score"))


STUDY = study().with_columns(
    pl.lit("k").alias("constant"),
    pl.int_range(pl.len()).alias("fine"),
    pl.lit(None, pl.String).alias("nothing"),
)
SPLITS = (
    "Rows of one scenario are dependent, so a cluster must hold whole scenarios; leave `cluster` out to "
    "cluster by scenario, or give two columns that cross, such as `cluster=('scenario', 'model')`"
)
COLUMNS = "['scenario', 'condition', 'model', 'score', 'constant', 'fine', 'nothing']"

REFUSED: dict[str, tuple[pl.DataFrame, dict[str, Any], str]] = {
    "one scenario": (
        study(1),
        {},
        (
            "DesignError: `cluster` gives one cluster, scenario 's0', and an interval needs two: a study of "
            "one scenario can say `cluster='repetition'`; its intervals then speak of it alone"
        ),
    ),
    "nothing observed": (
        STUDY.with_columns(pl.lit(None).alias("score"), error=pl.lit("x")),
        {},
        "DesignError: `score` is there in no row, so nothing can be estimated; rows by status: 16 error",
    ),
    "constant cluster": (
        STUDY,
        {"cluster": "constant"},
        (
            "DesignError: `cluster` gives one cluster, constant 'k', and an interval needs two: choose a "
            "column with at least two values, or leave `cluster` out to cluster by scenario"
        ),
    ),
    "cluster finer than the scenario": (
        STUDY,
        {"cluster": "fine"},
        (
            "DesignError: `cluster` is 'fine', which splits scenarios: scenario 's0' is in '0' and '1'. "
            f"{SPLITS}"
        ),
    ),
    "blank cluster": (
        STUDY,
        {"cluster": "nothing"},
        (
            "DataError: `cluster` is column 'nothing', which is blank in 16 of 16 rows; fill it in, or drop "
            "these rows"
        ),
    ),
    "absent cluster": (
        STUDY,
        {"cluster": "zz"},
        (
            "RoleError: `cluster` names 'zz', which is neither a column of the table nor a role that it has; "
            f"choose from its columns {COLUMNS}"
        ),
    ),
    "crossed clusters of which one is finer": (
        STUDY,
        {"cluster": ("scenario", "fine")},
        (
            "DesignError: `cluster` is 'fine', which splits scenarios: scenario 's0' is in '0' and '1'. Rows "
            "of one scenario are dependent, so a cluster must hold whole scenarios or whole models"
        ),
    ),
    "unknown reference": (
        STUDY,
        {"reference": "z"},
        "ArgumentError: `reference` is 'z'; choose from the levels of 'condition', ['x', 'y']",
    ),
    "reference that is no level": (
        STUDY,
        {"reference": ["x"]},
        "ArgumentTypeError: `reference` must be a level of the condition; got ['x']",
    ),
    "reference of an unknown column": (
        STUDY,
        {"reference": {"format": "x"}},
        "ArgumentError: `reference` names 'format'; choose from the condition columns ['condition']",
    ),
    "reference without conditions": (
        study(conditions="x").drop("condition"),
        {"reference": "x"},
        "ArgumentError: `reference` needs a condition column; name it with `condition=`",
    ),
    "one reference for two conditions": (
        STUDY,
        {"reference": "x", "condition": ["condition", "constant"]},
        (
            "ArgumentError: `reference` must map the condition columns ['condition', 'constant'] to their "
            "levels, for instance `reference={'condition': 'x'}`; got 'x'"
        ),
    ),
    "absent role": (
        STUDY,
        {"score": "Score"},
        f"RoleError: `score` names 'Score', which the table does not have; choose from its columns {COLUMNS}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Callable[..., str]) -> None:
    data, options, message = REFUSED[case]
    assert refusal(lambda: fit(data, **options)) == message


@pytest.mark.parametrize("value", [0, 1, -1, 1.5, 95, float("nan"), "0.95", None, True])
def test_conf_level(value: Any, refusal: Callable[..., str]) -> None:
    said = refusal(lambda: fit(STUDY, conf_level=value))
    kind = "ArgumentError" if isinstance(value, int | float) and value is not True else "ArgumentTypeError"
    assert said.startswith(f"{kind}: `conf_level` must ")
    assert f"; got {value!r}" in said


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, "ArgumentError"),
        (-1, "ArgumentError"),
        (10**12, "ArgumentError"),
        (10**30, "ArgumentError"),
        (1.5, "ArgumentTypeError"),
        ("99", "ArgumentTypeError"),
        (None, "ArgumentTypeError"),
        (True, "ArgumentTypeError"),
    ],
)
def test_n_resamples(value: Any, kind: str, refusal: Callable[..., str]) -> None:
    assert refusal(lambda: fit(STUDY, n_resamples=value)).startswith(f"{kind}: `n_resamples` ")


def test_one_scenario_by_repetition() -> None:
    data = study(conditions="xy").rename({"scenario": "rep"}).with_columns(scenario=pl.lit("s"))
    made = fit(data, cluster="repetition")
    assert "One scenario, clustered by rep: the intervals speak of new rep values of this scenario" in str(
        made.notes
    )


def test_one_condition_has_rates_and_no_contrasts() -> None:
    made = fit(study(conditions="x"))
    assert made.contrasts is None
    assert set(made.rates["n_rows"]) == {N_SCENARIOS}


def test_a_model_with_nothing_observed_is_kept_and_has_no_number() -> None:
    data = study(models="mn").with_columns(pl.when(pl.col("model") == "m").then("score").alias("score"))
    rates = fit(data).rates.filter(pl.col("model") == "n")
    assert rates["estimate"].to_list() == [None, None]
    assert rates["n_missing"].to_list() == [N_SCENARIOS] * 2
    assert "ok" not in rates["status"].to_list()


@pytest.mark.parametrize("reference", [10, 10.0, "10", " 10 "])
def test_levels_named_like_numbers(reference: Any) -> None:
    data = study().with_columns(pl.col("condition").replace({"x": "10", "y": "9"}))
    assert fit(data).contrasts["contrast"][0] == "10 - 9"
    for column in (
        pl.col("condition"),
        pl.col("condition").cast(pl.Int64),
        pl.col("condition").cast(pl.Float64),
    ):
        made = fit(data.with_columns(column), reference=reference)
        assert made.contrasts["contrast"][0] == "9 - 10"


def test_a_reference_may_be_a_boolean() -> None:
    made = fit(study().with_columns(pl.col("condition") == "x"), reference=True)
    assert made.contrasts["contrast"][0] == "false - true"


HOSTILE = [
    "a+b",
    "a/b",
    "a'b",
    'a"b',
    "a\nb",
    "a\r\nb",
    "日本",
    "שלום",
    "[bold]x[/bold]",
    "[/]",
    "{x}",
    "%s",
    "a - b",
    "a, b=c",
    "<b>",
    "x" * 300,
    "nan",
    "None",
    "1e5",
]
PLACES: dict[str, Callable[[str], tuple[pl.DataFrame, dict[str, Any]]]] = {
    "level": lambda name: (study().with_columns(pl.col("condition").replace({"x": name})), {}),
    "model": lambda name: (study().with_columns(pl.lit(name).alias("model")), {}),
    "scenario": lambda name: (study().with_columns(pl.col("scenario").replace({"s1": name})), {}),
    "condition column": lambda name: (study().rename({"condition": name}), {"condition": name}),
    "model column": lambda name: (study().rename({"model": name}), {"model": name}),
    "cluster column": lambda name: (study().with_columns(pl.col("scenario").alias(name)), {"cluster": name}),
    "carried column": lambda name: (study().with_columns(pl.lit(1).alias(name)), {}),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_change_no_number(place: str, name: str) -> None:
    data, options = PLACES[place](name)
    plain = fit(study(), reference="x")
    made = fit(data, **options, reference=name if place == "level" else "x")
    # Renaming clusters moves the draws, so ends of simulated intervals are left out.
    assert made.contrasts["estimate"].to_list() == plain.contrasts["estimate"].to_list()
    assert made.contrasts["std_error"].to_list() == plain.contrasts["std_error"].to_list()
    assert str(made)


@pytest.mark.parametrize(
    "name", ["unit", "level", "model_code", "n_judges", "index", "len", "cluster_1", "_response", "own_score"]
)
def test_names_used_within_are_free_to_use(name: str) -> None:
    made = fit(study().with_columns(pl.lit(7).alias(name)))
    assert made.contrasts.equals(fit(study()).contrasts)


def test_every_error_has_one_root() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), ts.TriagestatsError)


def test_a_condition_without_scores_leaves_the_rates_of_the_other() -> None:
    scenarios = [f"s{number}" for number in range(8)]
    fit = ts.analyze(
        {
            "scenario": scenarios * 2,
            "condition": ["a"] * 8 + ["b"] * 8,
            "score": [1, 0, 1, 1, 0, 1, 0, 1] + [None] * 8,
        }
    )
    assert fit.contrasts is None
    assert fit.rates["estimate"].to_list() == [0.625, None]
    assert "Nothing is scored at 'b'; its contrasts are not estimated." in [n.message for n in fit.notes]
