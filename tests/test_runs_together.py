"""What of two runs pairs: tasks, models, conditions, variants, metrics, judges, clusters, directions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts
from triagestats.errors import DesignError

EXACT = 1e-12  # the same sums in another order
FEW = 99  # replicates that no number read here depends on


def run(*, shift: int = 0, **columns: Sequence[str] | str) -> pl.DataFrame:
    """Twelve items for each combination of the values of some columns."""
    frame = pl.DataFrame({"item": [f"i{i}" for i in range(12)]})
    for name, values in columns.items():
        listed = [values] if isinstance(values, str) else list(values)
        frame = frame.join(pl.DataFrame({name: listed}), how="cross")
    return frame.with_columns(((pl.int_range(pl.len()) * 7 + shift) % 5 < 3).cast(pl.Float64).alias("score"))


def compared(a: object, b: object, **asked: Any) -> ts.RunComparison:
    return ts.compare(a, b, n_resamples=FEW, **asked)


def mean(frame: pl.DataFrame, **kept: str) -> float:
    for name, value in kept.items():
        frame = frame.filter(pl.col(name) == value)
    return float(frame["score"].mean())  # type: ignore[arg-type]  # a number


def codes(found: ts.RunComparison) -> list[str]:
    return [note.code for note in found.notes]


def test_single_models_pair_whatever_their_names() -> None:
    found = compared(run(model="v1"), run(model="v2", shift=2))
    assert (found.a.models, found.b.models) == (("v1",), ("v2",))
    assert found.contrasts["model"].to_list() == [None]
    assert "The runs differ in the models, 'v1' in A, 'v2' in B; these pair." in map(str, found.notes)
    unnamed = compared(run(model="v1"), run(shift=2))
    assert (unnamed.a.models, unnamed.b.models) == (("v1",), ())
    assert "The runs differ in the models, 'v1' in A, none named in B; these pair." in map(str, unnamed.notes)


def test_of_several_models_the_same_names_pair() -> None:
    a, b = run(model=["x", "y", "z"]), run(model=["w", "y", "z"], shift=3)
    found = compared(a, b)
    assert found.a.models == found.b.models == ("y", "z")
    assert found.contrasts["model"].to_list() == [None, "y", "z"]
    own = [mean(b, model=m) - mean(a, model=m) for m in "yz"]
    assert found.contrasts["estimate"].to_list() == pytest.approx([sum(own) / 2, *own], abs=EXACT)
    assert [(one.run, one.role, one.level, one.n_rows) for one in found.left_out] == [
        ("a", "model", "x", 12),
        ("b", "model", "w", 12),
    ]
    assert codes(found).count("left_out") == 2


def test_models_that_are_not_the_same_are_refused(refusal: Callable[[Callable[[], object]], str]) -> None:
    assert refusal(lambda: compared(run(model="x"), run(model=["y", "z"]))) == (
        "DataError: `model`: of the models `a` has ['x'] and `b` has ['y', 'z'], so that none is in both; "
        "give runs of one model each, which pair whatever their names, or of models with the same names"
    )


def test_conditions_within_the_runs_pair_by_name() -> None:
    """The difference is the plain mean of that of each shared condition, here of six items each."""
    a, b = run(prompt=["long", "short", "old"]), run(prompt=["long", "short", "new"], shift=1)
    found = compared(a, b)
    own = [mean(b, prompt=p) - mean(a, prompt=p) for p in ("long", "short")]
    assert found.difference["estimate"] == pytest.approx(sum(own) / 2, abs=EXACT)
    assert found.glance()["n_pairs"][0] == 24
    assert [one.level for one in found.left_out] == ["old", "new"]
    assert found.difference["contrast"] == "B - A"


def test_single_conditions_pair_whatever_their_names() -> None:
    a, b = run(prompt="v1"), run(style="v2", shift=2).rename({"style": "prompt"})
    assert "conditions_differ" in codes(compared(a, b))
    assert compared(a, run(shift=2)).difference["estimate"] == compared(a, b).difference["estimate"]


def test_a_condition_called_run_and_levels_called_like_the_runs_are_told_apart() -> None:
    a, b = (
        run(format=["A", "B"]).rename({"format": "run"}),
        run(format=["A", "B"], shift=1).rename({"format": "run"}),
    )
    found = compared(a, b, condition="run", repetition=False)
    own = [mean(b, run=level) - mean(a, run=level) for level in "AB"]
    assert found.difference["estimate"] == pytest.approx(sum(own) / 2, abs=EXACT)


def test_two_condition_columns_pair_by_their_combinations() -> None:
    a = run(prompt=["p", "q"], format=["f", "g"])
    b = run(prompt=["p", "q"], format=["f", "g"], shift=1).filter(
        ~((pl.col("prompt") == "q") & (pl.col("format") == "g"))
    )
    found = compared(a, b, condition=["prompt", "format"])
    own = [
        mean(b, prompt=p, format=f) - mean(a, prompt=p, format=f)
        for p, f in (("p", "f"), ("p", "g"), ("q", "f"))
    ]
    assert found.difference["estimate"] == pytest.approx(sum(own) / 3, abs=EXACT)
    assert "12 responses are left out, as the other run lacks their combination of conditions" in " ".join(
        map(str, found.notes)
    )


def test_variants_pair_by_name_or_alone() -> None:
    both = compared(run(variant=["s", "t"]), run(variant=["s", "t"], shift=1))
    assert both.glance()["n_pairs"][0] == 24
    assert "variants_differ" in codes(compared(run(variant="s"), run(variant="t", shift=1)))


def tasks(*names: str, shift: int = 0) -> pl.DataFrame:
    return run(task=names, shift=shift)


def test_only_tasks_of_both_pair() -> None:
    found = compared(tasks("math", "code", "law"), tasks("math", "code", "art", shift=1))
    assert found.glance().select("n_scenarios", "n_pairs").row(0) == (24, 24)
    assert [(one.run, one.level, one.n_rows) for one in found.left_out] == [
        ("a", "law", 12),
        ("b", "art", 12),
    ]
    one = compared(tasks("math", "code"), tasks("math", shift=1))
    assert one.difference["estimate"] == pytest.approx(
        mean(tasks("math", shift=1)) - mean(tasks("math", "code"), task="math"), abs=EXACT
    )
    assert one.settings.cluster == "item"


def test_an_item_that_starts_like_its_task_keeps_its_name() -> None:
    a = pl.DataFrame(
        {
            "task": ["t"] * 6 + ["u"],
            "item": [*(f"t/{i}" for i in range(6)), "0"],
            "score": [1, 0, 1, 1, 0, 1, 1],
        }
    )
    b = pl.DataFrame({"task": ["t"] * 6, "item": [f"t/{i}" for i in range(6)], "score": [1, 1, 1, 0, 0, 1]})
    assert compared(a, b).glance()["n_pairs"][0] == 6


def test_different_tasks_are_refused(refusal: Callable[[Callable[[], object]], str]) -> None:
    assert refusal(lambda: compared(tasks("math"), tasks("law"))) == (
        "DataError: `task`: `a` has ['math'] and `b` has ['law'], so that none is in both; items of "
        "different tasks are different questions and do not pair"
    )


def test_a_run_that_names_no_tasks_pairs_by_label() -> None:
    found = compared(tasks("math"), run(shift=1))
    assert found.glance()["n_pairs"][0] == 12
    assert "B names no tasks: scenarios pair by their labels." in map(str, found.notes)


def test_clusters_of_one_run_are_those_of_the_other() -> None:
    passage = (pl.int_range(12) // 2).cast(pl.String).alias("passage")
    a, b = run().with_columns(passage), run(shift=2)
    known = ts.ResponseTable(a, cluster="passage")
    found = compared(known, b)
    assert found.settings.cluster == "passage"
    assert found.difference["n_clusters"] == 6
    both = compared(a, b.with_columns(passage), cluster="passage")
    assert found.difference == both.difference
    assert "clusters_taken_over" in codes(found)
    swapped = compared(b, known)
    assert swapped.difference["estimate"] == pytest.approx(-found.difference["estimate"], abs=EXACT)


def test_two_crossed_clusters() -> None:
    by = (pl.int_range(pl.len()) % 6).cast(pl.String).alias("author")
    a, b = run(model=list("uvwxyz")).with_columns(by), run(model=list("uvwxyz"), shift=1).with_columns(by)
    found = compared(a, b, cluster=["item", "model"])
    assert found.settings.cluster == "item and model"
    assert found.difference["n_clusters"] == 6
    assert found.difference["method"] == "cluster jackknife t; t test"


def test_clusters_that_split_a_scenario_are_refused() -> None:
    a = run().with_columns(pl.lit("p").alias("passage"))
    b = run().with_columns(pl.lit("q").alias("passage"))
    with pytest.raises(DesignError, match="`cluster` is 'passage', which splits scenarios"):
        compared(a, b, cluster="passage")


def metrics(*names: str) -> pl.DataFrame:
    return run(metric=names)


def test_several_metrics_need_a_choice(
    tmp_path: Path, refusal: Callable[[Callable[[], object]], str]
) -> None:
    def log(shift: int) -> Path:
        samples = [
            {
                "id": i,
                "epoch": 1,
                "scores": {"match": {"value": "CI"[(i + shift) % 3 == 0]}, "length": {"value": i + shift}},
            }
            for i in range(9)
        ]
        path = tmp_path / f"{shift}.json"
        log = {"status": "success", "eval": {"task": "t", "model": f"m{shift}"}, "samples": samples}
        path.write_text(json.dumps(log), encoding="utf-8")
        return path

    a, b = log(0), log(1)
    assert refusal(lambda: compared(a, b)) == (
        "DataError: `metric` has several values: `a` has ['length', 'match'] and `b` has ['length', "
        "'match']; choose one, for instance `metric='length'`"
    )
    tables = ts.read(a), ts.read(b)
    assert compared(*tables, metric="match").contrasts.equals(compared(a, b, metric="match").contrasts)
    length = compared(a, b, metric="length", higher_is_better=False)
    assert (length.difference["estimate"], length.settings.metric) == (1, "length")
    assert refusal(lambda: compared(a, b, metric="other")).startswith(
        "DataError: `a`: `metric` names 'other'"
    )


def test_different_metrics_are_refused(refusal: Callable[[Callable[[], object]], str]) -> None:
    assert refusal(lambda: compared(metrics("match"), metrics("f1"))) == (
        "DataError: `metric`: `a` has 'match' and `b` has 'f1', which may not measure one thing; give "
        "runs that were scored alike, or tables in which the metric has one name"
    )


def test_judges_are_averaged_and_told_apart() -> None:
    a, b = run(judge=["j1", "j2"]), run(judge=["j1", "j2"], shift=1)
    found = compared(a, b)
    assert found.difference["estimate"] == pytest.approx(mean(b) - mean(a), abs=EXACT)
    one = compared(ts.ResponseTable(a), ts.ResponseTable(b), judge="j2")
    assert one.difference["estimate"] == pytest.approx(mean(b, judge="j2") - mean(a, judge="j2"), abs=EXACT)
    other = compared(run(judge="j1"), run(judge="j3", shift=1))
    assert "judges_differ" in codes(other)


def test_directions_that_differ_are_refused(refusal: Callable[[Callable[[], object]], str]) -> None:
    a, b = ts.ResponseTable(run()), ts.ResponseTable(run(shift=1), higher_is_better=False)
    assert refusal(lambda: compared(a, b)) == (
        "DataError: `a` and `b` differ in whether a larger score is the better one; say which with "
        "`higher_is_better=True`"
    )
    assert compared(a, b, higher_is_better=True).settings.higher_is_better


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"names": "AB"}, "ArgumentTypeError: `names` must be two names, such as ('old', 'new'); got 'AB'"),
        (
            {"names": ("x", "x ")},
            "ArgumentError: `names` must be two different names, none blank; got ['x', 'x ']",
        ),
        ({"format": "inspect"}, "ArgumentError: `format` is for files; `a` is a DataFrame"),
        (
            {"margin": 0},
            "ArgumentError: `margin` must be positive and finite, on the scale of the scores; got 0",
        ),
        ({"match": "epoch"}, "ArgumentError: `match` must be one of 'cell', 'row', 'scenario'; got 'epoch'"),
        (
            {"cluster": "nope"},
            "RoleError: `a`: `cluster` names 'nope', which is neither a column of the table",
        ),
        (
            {"runs": True},
            "ArgumentTypeError: `a`: `runs`: no option of a dataframe; the options are scenario,",
        ),
        ({"higher_is_better": 1}, "ArgumentTypeError: `a`: `higher_is_better` must be True or False; got 1"),
    ],
)
def test_arguments_that_cannot_be_used(
    asked: dict[str, Any], said: str, refusal: Callable[[Callable[[], object]], str]
) -> None:
    assert refusal(lambda: compared(run(), run(shift=1), **asked)).startswith(said)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("absent.csv", run(), "ReadError: `a`: there is no file 'absent.csv'"),
        (run(), 7, "ArgumentTypeError: `b` must be a dataframe"),
        (
            run(),
            run().with_columns(pl.lit(None, pl.Float64).alias("score")),
            "DesignError: `a` and `b` have no answer that both scored (A scored 12, B scored 0): a run with",
        ),
        (
            run(),
            run().with_columns(pl.lit("k").add(pl.col("item")).alias("item")),
            "DesignError: `a` and `b` have no answer that both scored (A scored 12, B scored 12): the runs s",
        ),
    ],
)
def test_runs_that_cannot_be_used(
    a: object, b: object, said: str, refusal: Callable[[Callable[[], object]], str]
) -> None:
    assert refusal(lambda: compared(a, b)).startswith(said)


def test_a_table_keeps_what_was_settled(refusal: Callable[[Callable[[], object]], str]) -> None:
    table = ts.ResponseTable(run())
    assert refusal(lambda: compared(table, table, score="score")) == (
        "ArgumentError: `a`: `score` cannot be given with a ResponseTable; give them where the table is made"
    )


def test_any_dataframe_and_file_is_a_run(tmp_path: Path) -> None:
    a, b = run(), run(shift=2)
    path = tmp_path / "b.csv"
    b.write_csv(path)
    one = compared(a.to_pandas(), path)
    assert one.contrasts.equals(compared(a.to_dict(as_series=False), b.lazy()).contrasts)
    assert (one.a.source, one.b.source) == (None, str(path))


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        ("inspect/passage_mcq_mock-7b.eval", "inspect/passage_mcq_mock-70b.eval", {"metric": "choice"}),
        ("inspect/passage_mcq_mock-7b.eval", "inspect/passage_mcq_mock-70b.eval", {"judge": "judge"}),
        ("lm_eval/acme__mock-7b", "lm_eval/acme__mock-70b", {"metric": "acc"}),
        ("promptfoo/results.json", "promptfoo/results.jsonl", {"metric": "correct"}),
        (
            "openai_evals/mini-match_run1.jsonl",
            "openai_evals/mini-match_run2.jsonl",
            {"metric": "match/correct"},
        ),
    ],
)
def test_files_of_harnesses(
    first: str, second: str, asked: dict[str, Any], shared: Callable[[str], Path]
) -> None:
    """The difference is that of the scores of both files, joined by item, model, condition and epoch."""
    paths = [shared(f"harness/{name}") for name in (first, second)]
    found = compared(*paths, **asked)
    a, b = (ts.read(path, **asked).frame.filter(pl.col("score").is_not_null()) for path in paths)
    key = [
        name for name in ("scenario", "condition", "repetition") if name in a.columns and name in b.columns
    ]
    if "promptfoo" in first:
        key.append("model")
    joined = a.join(b, on=key, how="inner")
    assert found.glance()["n_pairs"][0] == joined.height
    difference = (pl.col("score_right") - pl.col("score")).mean().alias("difference")
    groups = [name for name in ("model", "condition") if name in key]
    by_item = joined.group_by("scenario", *groups).agg(difference)
    estimate = by_item.group_by(groups).agg(pl.col("difference").mean()) if groups else by_item
    assert found.difference["estimate"] == pytest.approx(estimate["difference"].mean(), abs=EXACT)
