"""Samples of lm-evaluation-harness, with the results beside them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

DATE = "2026-11-30T05-51-00.876340"
LATER = "2026-12-01T05-51-00.876340"


def line(document: int = 0, **more: Any) -> dict[str, Any]:
    made = {
        "doc_id": document,
        "doc": {"passage_id": "p1", "question": "2+3"},
        "target": "5",
        "arguments": {"gen_args_0": {"arg_0": "Q: 2+3", "arg_1": {"until": ["\n"]}}},
        "resps": [["#### 5"]],
        "filtered_resps": ["5"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": 1.0,
    }
    return {key: value for key, value in (made | more).items() if value is not ...}


def choices(*texts: str, best: int = 0, **more: Any) -> dict[str, Any]:
    """A line of multiple choice."""
    answers = [[str(-1.0 - (place != best)), "False"] for place in range(len(texts))]
    arguments = {f"gen_args_{place}": {"arg_0": "Q", "arg_1": f" {text}"} for place, text in enumerate(texts)}
    own = {"arguments": arguments, "resps": [[one] for one in answers], "filtered_resps": answers}
    return line(**(own | {"metrics": ["acc"], "acc": 1.0, "exact_match": ...} | more))


def written(
    folder: Path,
    *lines: Mapping[str, Any],
    task: str = "sums",
    date: str = DATE,
    results: Mapping[str, Any] | None = None,
) -> Path:
    """A samples file, and the results of the same date where they are given."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"samples_{task}_{date}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    if results is not None:
        whole = {"results": {}, "configs": {}, "model_name": "acme/mock-7b"} | results
        (folder / f"results_{date}.json").write_text(json.dumps(whole), encoding="utf-8")
    return path


def rows(table: ts.ResponseTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


def test_every_expected_row_is_read(
    shared: Callable[[str], Path], expected_rows: Callable[..., list[str]]
) -> None:
    """Metrics are named as the harness writes them, and a list is kept as it is."""
    folders = [shared(f"harness/lm_eval/acme__mock-{size}") for size in ("7b", "70b")]
    table = ts.read_lm_eval(folders, cluster="doc.passage_id")
    left = expected_rows(table, "lm_eval", without=("metric", "score_raw"))
    assert len(left) == 8  # items of mini_ppl, which has no passages, are clusters of their own
    assert all("mini_ppl" in row for row in left)
    table = ts.read_lm_eval(folders)
    assert expected_rows(table, "lm_eval", without=("metric", "score_raw", "cluster")) == []
    assert set(table.metrics) == {
        "acc",
        "acc_norm",
        "brier_score",
        "word_perplexity",
        "exact_match,strict-match",
        "exact_match,flexible-extract",
        "exact_match,maj@3",
    }
    lists = table.frame.filter(status="non_scalar")["score_raw"].to_list()
    assert all(text.startswith("[") for text in lists)


def test_a_cluster_that_a_metric_has_throughout(shared: Callable[[str], Path]) -> None:
    folders = [shared(f"harness/lm_eval/acme__mock-{size}") for size in ("7b", "70b")]
    table = ts.read_lm_eval(folders, metric="acc", cluster="doc.passage_id")
    assert set(rows(table, "scenario", "cluster_1")) == {
        ("0", "p1"),
        ("1", "p1"),
        ("2", "p2"),
        ("3", "p2"),
        ("4", "p3"),
    }
    assert not [note for note in table.notes if note.code == "clusters"]


def test_a_cluster_that_a_task_has_in_part_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    written(tmp_path, line(0), line(1, doc={}))
    written(tmp_path, line(0), task="other")
    assert "blank in 1 of 3 rows" in refusal(lambda: ts.read(tmp_path, cluster="passage_id"))


def test_the_note_says_that_repeats_are_lost(shared: Callable[[str], Path]) -> None:
    table = ts.read(shared("harness/lm_eval/acme__mock-7b"), task="mini_gen")
    note = next(note for note in table.notes if note.code == "repeats")
    assert "has 3 answers to each request" in note.message
    assert "repetitions cannot be recovered" in note.message
    assert table.frame["repetition"].unique().to_list() == ["1"]


def test_a_real_run_with_part_of_its_samples(shared: Callable[[str], Path]) -> None:
    table = ts.read(shared("harness/lm_eval/fixture_eee"))
    assert table.frame.height == 10
    assert table.frame["task"].unique().to_list() == ["math_perturbed_full"]
    assert table.frame["model"][0].startswith("RylanSchaeffer/mem_Qwen3-93M")
    assert any("10 of the 5,000 documents" in note.message for note in table.notes)


def test_results_without_samples_are_refused(shared: Callable[[str], Path], refusal: Refusal) -> None:
    path = next(shared("harness/lm_eval/acme__mock-7b").glob("results_*.json"))
    assert "holds averages of lm-evaluation-harness and no samples; run it with --log_samples" in refusal(
        lambda: ts.read(path)
    )


def test_the_model_is_that_of_the_results(tmp_path: Path) -> None:
    """Else of its arguments, the caller, or the folder, in which `/` is written `__`."""
    file = written(tmp_path / "acme__guess", line())
    assert ts.read(file).frame["model"][0] == "acme/guess"
    assert ts.read(file, model="said").frame["model"][0] == "said"
    config = {"model_args": "pretrained=acme/deep/true,dtype=float"}
    file = written(tmp_path / "b", line(), results={"model_name": None, "config": config})
    assert ts.read(file, model="said").frame["model"][0] == "acme/deep/true"
    file = written(tmp_path / "c", line(), results={"model_name": "acme/named"})
    assert ts.read(file).frame["model"][0] == "acme/named"


def test_a_task_name_with_underscores(tmp_path: Path) -> None:
    table = ts.read(written(tmp_path, line(), task="mmlu_pro_2024-05-01_en"))
    assert table.frame["task"][0] == "mmlu_pro_2024-05-01_en"


def test_runs_of_one_model_are_repetitions_by_date(tmp_path: Path) -> None:
    """Also where their bytes are the same, as greedy runs write them."""
    for date in (LATER, DATE):
        written(tmp_path, line(), date=date, results={})
    table = ts.read(tmp_path)
    assert [(repetition, LATER in source) for repetition, source in rows(table, "repetition", "source")] == [
        ("1", False),
        ("2", True),
    ]


def test_a_copy_is_named(tmp_path: Path, refusal: Refusal) -> None:
    for folder in ("acme__a", "backup/acme__a"):
        written(tmp_path / folder, line())
    said = refusal(lambda: ts.read(tmp_path))
    assert f"'acme__a/samples_sums_{DATE}.jsonl' and 'backup/acme__a/samples_sums_{DATE}.jsonl' claim" in said


def test_other_shots_are_a_condition_and_no_run(tmp_path: Path) -> None:
    for date, shots in ((DATE, 0), (LATER, 5)):
        written(tmp_path, line(), date=date, results={"n-shot": {"sums": shots}})
    assert rows(ts.read(tmp_path), "condition", "repetition") == [
        ('{"n-shot": 0}', "1"),
        ('{"n-shot": 5}', "1"),
    ]


def test_filters_are_metrics(tmp_path: Path) -> None:
    lines = [line(filter=name, exact_match=value) for name, value in (("strict", 0.0), ("loose", 1.0))]
    table = ts.read(written(tmp_path, *lines))
    assert rows(table, "metric", "score", "repetition") == [
        ("exact_match,loose", 1.0, "1"),
        ("exact_match,strict", 0.0, "1"),
    ]


def test_versions_that_do_not_say_the_filter_or_the_metrics(tmp_path: Path) -> None:
    """A block of lines a filter, in the order of the configuration; every other key is a metric."""
    lines = [
        line(document, filter=..., metrics=..., exact_match=float(block))
        for block in (0, 1)
        for document in (0, 1)
    ]
    configs = {"sums": {"filter_list": [{"name": "strict"}, {"name": "loose"}]}}
    table = ts.read(written(tmp_path, *lines, results={"configs": configs}))
    assert rows(table, "scenario", "metric", "score") == [
        ("0", "exact_match,loose", 1.0),
        ("0", "exact_match,strict", 0.0),
        ("1", "exact_match,loose", 1.0),
        ("1", "exact_match,strict", 0.0),
    ]
    (tmp_path / f"results_{DATE}.json").unlink()
    assert ts.read(tmp_path).metrics == ("exact_match", "exact_match,filter 2")


def test_the_likeliest_choice_is_the_response(tmp_path: Path) -> None:
    lines = (
        choices("alpha", "beta", best=1),
        choices("alpha", "beta", "alpha", "beta", best=1, doc_id=1),  # each again without its question
        choices("the same", "the same", best=1, doc_id=2),  # choices are in the contexts
        choices("only", doc_id=3),  # how likely a continuation is
    )
    assert rows(ts.read(written(tmp_path, *lines)), "response") == [("beta",), ("beta",), ("1",), (None,)]


def test_arguments_of_older_versions_are_lists(tmp_path: Path) -> None:
    old = choices("alpha", "beta", best=1, arguments=[["Q", " alpha"], ["Q", " beta"]])
    assert rows(ts.read(written(tmp_path, old)), "response") == [("beta",)]


def test_what_could_not_be_read_keeps_its_score(tmp_path: Path) -> None:
    lines = (
        line(0, filtered_resps=["[invalid]"], exact_match=0.0),
        line(1, filtered_resps=[""], resps=[[" "]], exact_match=0.0),
        line(2, filtered_resps=["[invalid]"], exact_match=1.0),
        line(3, filtered_resps=[["5", "6"]], exact_match=1.0),
    )
    path = written(tmp_path, *lines)
    assert rows(ts.read(path), "score", "status", "reason", "response") == [
        (0.0, "ok", "[invalid]", "[invalid]"),
        (0.0, "ok", "empty response", None),
        (1.0, "ok", "[invalid]", "[invalid]"),
        (1.0, "ok", None, '["5", "6"]'),
    ]
    assert ts.read(path, unparsed="missing").frame["score"].to_list() == [None, None, 1.0, 1.0]


def test_values_that_are_no_number(tmp_path: Path) -> None:
    lines = (line(0, exact_match=[1, "x"]), line(1, exact_match=float("nan")), line(2, exact_match=None))
    assert rows(ts.read(written(tmp_path, *lines)), "score", "status") == [
        (None, "non_scalar"),
        (None, "unscored"),
        (None, "unscored"),
    ]


def test_the_direction_of_a_metric(tmp_path: Path) -> None:
    results = {"higher_is_better": {"sums": {"exact_match": False}}}
    path = written(tmp_path, line(), results=results)
    assert ts.read(path).higher_is_better is False
    assert ts.read(path, higher_is_better=True).higher_is_better is True


def test_a_file_without_a_date(tmp_path: Path) -> None:
    source = written(tmp_path / "a", line())
    (tmp_path / "acme__b").mkdir()
    path = shutil.copy(source, tmp_path / "acme__b" / "samples_sums.jsonl")
    assert rows(ts.read(path), "task", "model") == [("sums", "acme/b")]


def test_a_gzip_file(tmp_path: Path) -> None:
    import gzip

    path = written(tmp_path, line())
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows(ts.read(packed), "task", "score") == [("sums", 1.0)]
