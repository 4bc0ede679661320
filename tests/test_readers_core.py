"""What all readers share: scores, rows, runs, judges, clusters, and files in bounded memory."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts
from triagestats.readers.assemble import Options, assemble
from triagestats.readers.bounded import open_file
from triagestats.readers.read import FORMATS, READERS
from triagestats.readers.rows import ABSENT, Ask, Collector, scored, text_of

Refusal = Callable[[Callable[[], object]], str]


def collected(*rows: Mapping[str, Any], **ask: Any) -> Collector:
    gathered = Collector(Ask(**ask))
    for row in rows:
        gathered.add(**({"source": "a.json", "scenario": "q1", "scorer": "match", "value": 1} | dict(row)))
    return gathered


def table_of(*rows: Mapping[str, Any], **options: Any) -> ts.ResponseTable:
    return assemble(collected(*rows).done(), Options(**options))


def frame_of(*rows: Mapping[str, Any], **options: Any) -> list[tuple[Any, ...]]:
    columns = ("scenario", "repetition", "score", "status")
    return table_of(*rows, **options).frame.select(columns).rows()


def codes(table: ts.ResponseTable) -> list[str]:
    return [note.code for note in table.notes]


@pytest.mark.parametrize(
    ("value", "score", "status", "raw"),
    [
        ("C", 1.0, "ok", "C"),
        ("I", 0.0, "ok", "I"),
        ("P", 0.5, "ok", "P"),
        ("N", 0.0, "ok", "N"),
        ("c", None, "non_scalar", "c"),
        ("PASS", 1.0, "ok", "PASS"),
        ("fail", 0.0, "ok", "fail"),
        ("Yes", 1.0, "ok", "Yes"),
        ("0.25", 0.25, "ok", "0.25"),
        ("1e-3", 0.001, "ok", "1e-3"),
        ("1e999", None, "unscored", "inf"),
        ("NaN", None, "unscored", "NaN"),
        ("", None, "missing", None),
        ("N/A", None, "missing", "N/A"),
        ("perhaps", None, "non_scalar", "perhaps"),
        (True, 1.0, "ok", "true"),
        (False, 0.0, "ok", "false"),
        (3, 3.0, "ok", "3"),
        (1.0, 1.0, "ok", "1.0"),
        (math.nan, None, "unscored", "NaN"),
        (math.inf, None, "unscored", "inf"),
        (10**400, None, "unscored", str(10**400)),
        (None, None, "missing", None),
        (ABSENT, None, "absent", None),
        ([0, "[0.1]"], None, "non_scalar", '[0, "[0.1]"]'),
        ({"a": 1}, None, "non_scalar", '{"a": 1}'),
    ],
)
def test_values_as_scores(value: object, score: float | None, status: str, raw: str | None) -> None:
    found = scored(value)
    assert (found.score, found.status, found.raw) == (score, status, raw)


def test_null_is_what_the_format_says() -> None:
    assert scored(None, null="unscored").status == "unscored"


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert text_of("a\ud800b") == "a?b"
    assert table_of({"response": "a\ud800"}).frame["response"].to_list() == ["a?"]


def test_an_error_is_missing_whatever_the_scorer_said() -> None:
    table = table_of({"value": 0, "error": "timeout"}, {"scenario": "q2"})
    row = table.frame.row(0, named=True)
    assert (row["score"], row["status"], row["reason"], row["score_raw"]) == (None, "error", "timeout", "0")


def test_nothing_is_made_of_labels_that_a_harness_scored() -> None:
    """A blank score beside a response stays blank, and a blank response beside 0 is no unread answer."""
    found = frame_of(
        {"value": None, "response": "A", "gold": "A"},
        {"scenario": "q2", "value": 0, "response": None, "gold": "A"},
        {"scenario": "q3", "value": 0, "response": "A", "gold": "A"},
    )
    assert found == [
        ("q1", "1", None, "missing"),
        ("q2", "1", 0.0, "ok"),
        ("q3", "1", 0.0, "ok"),
    ]


@pytest.mark.parametrize(
    ("unparsed", "score", "status"),
    [("as scored", 0.0, "ok"), ("wrong", 0.0, "unparsed"), ("missing", None, "unparsed")],
)
def test_an_unread_answer_keeps_its_score_and_says_so(
    unparsed: str, score: float | None, status: str
) -> None:
    row = {"value": 0, "unread": True, "reason": "[invalid]", "response": "[invalid]"}
    table = table_of(row, {"scenario": "q2", "response": "A"}, unparsed=unparsed)
    first = table.frame.row(0, named=True)
    assert (first["score"], first["status"], first["reason"]) == (score, status, "[invalid]")
    assert ("unparsed" in codes(table)) == (unparsed == "as scored")


def test_an_unread_answer_is_no_label_of_the_scale() -> None:
    row = {"value": 0, "unread": True, "reason": "[invalid]", "response": "[invalid]", "gold": "A"}
    table = table_of(row, {"scenario": "q2", "response": "B", "gold": "B"}, levels=["A", "B"])
    assert table.frame["response"].to_list() == [None, "B"]


def test_repetitions_are_counted_only_where_files_number_none() -> None:
    """Two values of one scorer in order; a file that has epochs keeps them."""
    assert frame_of({"value": 0}, {"value": 1}, {"value": 0, "scenario": "q2", "repetition": 7}) == [
        ("q1", "1", 0.0, "ok"),
        ("q1", "2", 1.0, "ok"),
        ("q2", "7", 0.0, "ok"),
    ]


def test_files_without_epochs_are_runs_in_order() -> None:
    """Also where the first run lacks an item: its repetition is that of the run."""
    table = table_of({}, {"source": "b.json", "value": 0}, {"source": "b.json", "scenario": "q2", "value": 0})
    assert table.frame.select("scenario", "repetition", "source").rows() == [
        ("q1", "1", "a.json"),
        ("q1", "2", "b.json"),
        ("q2", "2", "b.json"),
    ]
    note = next(note for note in table.notes if note.code == "runs")
    assert "['b.json']" in note.message


def test_shards_of_one_run_are_no_runs() -> None:
    table = table_of({}, {"source": "b.json", "scenario": "q2"})
    assert table.frame["repetition"].to_list() == ["1", "1"]
    assert "runs" not in codes(table)


def test_runs_are_counted_within_model_task_and_condition() -> None:
    rows = [
        {"model": model, "task": task, "source": f"{model}{task}{run}"}
        for run in (1, 2)
        for model in "ab"
        for task in "xy"
    ]
    table = table_of(*rows)
    counts = table.frame.group_by("model", "task").agg(pl.col("repetition").sort())
    assert counts["repetition"].to_list() == [["1", "2"]] * 4


def test_two_files_that_claim_one_epoch_are_named(refusal: Refusal) -> None:
    rows = [
        {"source": source, "repetition": 1, "model": "acme/a", "task": "t"} for source in ("a.eval", "b.eval")
    ]
    said = refusal(lambda: table_of(*rows))
    assert said == (
        "DataError: `path`: 'a.eval' and 'b.eval' both claim model 'acme/a', task 't', epoch 1, item 'q1'; "
        "leave one of them out, or give `runs=True` if they are runs of their own, to number them as "
        "repetitions"
    )


def test_runs_true_numbers_them_as_repetitions() -> None:
    rows = [
        {"source": source, "repetition": epoch, "value": value}
        for source, value in (("a.eval", 1), ("b.eval", 0))
        for epoch in (1, 2)
    ]
    assert frame_of(*rows, runs=True) == [
        ("q1", "1", 1.0, "ok"),
        ("q1", "2", 1.0, "ok"),
        ("q1", "3", 0.0, "ok"),
        ("q1", "4", 0.0, "ok"),
    ]


def test_one_file_that_has_an_answer_twice_is_named(refusal: Refusal) -> None:
    said = refusal(lambda: table_of({"repetition": 1}, {"repetition": 1}))
    assert "'a.json' has two values of one scorer for epoch 1, item 'q1'" in said


def test_copies_are_refused_unless_their_runs_differ(refusal: Refusal) -> None:
    rows = collected({}, {"source": "b.json"})
    copies = [("a.json", "b.json")]
    said = refusal(lambda: assemble(rows.done(), Options(), copies))
    assert "'a.json' and 'b.json' claim the same model, task and run" in said
    rows = collected({}, {"source": "b.json"})
    rows.run_ids |= {"a.json": "monday", "b.json": "tuesday"}
    assert assemble(rows.done(), Options(), copies).frame["repetition"].to_list() == ["1", "2"]
    rows = collected({}, {"source": "b.json"})
    assert assemble(rows.done(), Options(runs=True), copies).frame["repetition"].to_list() == ["1", "2"]


def test_copies_of_other_models_are_none() -> None:
    """Two models that answer alike write the same bytes."""
    rows = collected({"model": "a"}, {"model": "b", "source": "b.json"})
    assert assemble(rows.done(), Options(), [("a.json", "b.json")]).frame.height == 2


def test_one_run_in_two_files_is_refused(refusal: Refusal) -> None:
    rows = collected({}, {"source": "b.json", "value": 0})
    rows.run_ids |= {"a.json": "r1", "b.json": "r1"}
    assert "'a.json' and 'b.json' claim the same model, task and run" in refusal(
        lambda: assemble(rows.done(), Options())
    )


SCORERS = (
    {"scorer": "match"},
    {"scorer": "rubric", "measure": "safe", "value": 0},
    {"scorer": "rubric", "measure": "kind", "value": 0.5},
)


def test_scorers_are_metrics() -> None:
    table = table_of(*SCORERS)
    assert table.metrics == ("match", "rubric/kind", "rubric/safe")
    assert table.judges == ()


def test_one_metric_is_kept_with_a_note() -> None:
    table = table_of(*SCORERS, metric="rubric/kind")
    assert table.frame["score"].to_list() == [0.5]
    assert "Metric 'rubric/kind'; 2 rows of other metrics are left out." in map(str, table.notes)


def test_a_metric_is_chosen_of_a_table() -> None:
    table = table_of(*SCORERS).with_metric("match", higher_is_better=False)
    assert (table.metrics, table.higher_is_better) == (("match",), False)
    assert ts.ResponseTable({"scenario": ["a"], "score": [1]}).metrics == ()


def test_several_metrics_are_not_analysed_together(refusal: Refusal) -> None:
    table = table_of(*SCORERS)
    wanted = "`metric` has several values, ['match', 'rubric/kind', 'rubric/safe']; choose one, for instance "
    assert wanted in refusal(lambda: ts.analyze(table))
    assert wanted in refusal(lambda: ts.mcnemar(table))
    assert "must be a metric of the table" in refusal(lambda: table.with_metric("exact"))
    assert "names 'exact', which the files do not have" in refusal(lambda: table_of(*SCORERS, metric="exact"))


def test_analyze_chooses_a_metric_of_a_table() -> None:
    rows = [{"scenario": f"q{i}", "scorer": name, "value": i % 2} for i in range(8) for name in ("a", "b")]
    assert ts.analyze(table_of(*rows), metric="b", n_resamples=99).rates["metric"].to_list() == ["b"]


def test_named_scorers_are_judges_of_one_metric() -> None:
    rows = [{"scorer": name, "value": value} for name, value in (("x", 1), ("y", 0), ("length", 17))]
    table = table_of(*rows, judge=["x", "y"])
    assert table.frame.select("judge", "score").rows() == [("x", 1.0), ("y", 0.0)]
    assert table.metrics == ()
    assert "1 row of scorers that are no judges are left out." in map(str, table.notes)
    assert table_of(*rows, judge=True).judges == ("length", "x", "y")
    assert table_of(*rows, judge="x").judges == ("x",)


def test_measures_of_judges_are_metrics() -> None:
    rows = [{"scorer": name, "measure": part} for name in ("x", "y") for part in ("safe", "kind")]
    assert table_of(*rows, judge=True, metric="safe").frame.select("judge", "metric").rows() == [
        ("x", "safe"),
        ("y", "safe"),
    ]


def test_an_unknown_judge_is_refused(refusal: Refusal) -> None:
    said = refusal(lambda: table_of(*SCORERS, judge="claude"))
    assert "names 'claude', which is no scorer of these files; choose from ['match', 'rubric']" in said


def test_tasks_are_kept_by_name(refusal: Refusal) -> None:
    rows = [{"task": name} for name in ("t1", "t2", "t3")]
    assert table_of(*rows).frame["scenario"].to_list() == ["t1/q1", "t2/q1", "t3/q1"]
    assert table_of(*rows, task="t2").frame["scenario"].to_list() == ["q1"]
    assert table_of(*rows, task=["t1", "t3"]).frame.height == 2
    assert "`task` names 't9'" in refusal(lambda: table_of(*rows, task="t9"))


def test_a_condition_of_each_task_is_not_compared() -> None:
    rows = [
        {"task": f"t{i}", "condition": {"shots": i}, "scenario": f"q{j}"} for i in (1, 2) for j in range(9)
    ]
    table = table_of(*rows)
    assert table.factors == ()
    assert "conditions" in codes(table)
    assert set(table.frame["carried.condition"]) == {'{"shots": 1}', '{"shots": 2}'}


def test_conditions_of_one_task_are_compared() -> None:
    table = table_of({"condition": "plain"}, {"source": "b.json"})
    assert table.factors[0].levels == ("(none)", "plain")


def test_the_model_that_no_file_names(refusal: Refusal) -> None:
    rows = collected({}, model="acme/a").done()
    assert assemble(rows, Options()).frame["model"].to_list() == ["acme/a"]
    said = refusal(lambda: table_of({"model": "x"}, {"source": "b.json", "scenario": "q2"}))
    assert "'b.json' does not say which model it is of" in said


META = {"extra": {"metadata": {"passage_id": "p1", "deep": {"id": 7}, "tags": ["a"]}, "doc": {"site": "uk"}}}


@pytest.mark.parametrize("name", ["metadata.passage_id", "passage_id"])
def test_clusters_from_metadata(name: str) -> None:
    assert table_of(META, cluster=name).frame["cluster_1"].to_list() == ["p1"]


def test_metadata_stands_for_whatever_a_format_calls_it() -> None:
    assert table_of(META, cluster="metadata.site").frame["cluster_1"].to_list() == ["uk"]


def test_two_clusters_and_a_stratum() -> None:
    table = table_of(META, cluster=["passage_id", "scenario"], stratum="site")
    assert table.frame.select("cluster_1", "cluster_2", "stratum").rows() == [("p1", "q1", "uk")]


def test_an_absent_or_doubtful_cluster_is_refused(refusal: Refusal) -> None:
    said = refusal(lambda: table_of(META, cluster="metadata.passage"))
    assert "RoleError: `cluster` names 'metadata.passage', which the files do not have" in said
    assert "metadata.passage_id" in said
    row = {"extra": {"metadata": {"site": "a"}, "doc": {"site": "b"}}}
    assert "could be ['metadata.site', 'doc.site']" in refusal(lambda: table_of(row, cluster="site"))


def test_blank_clusters_are_refused(refusal: Refusal) -> None:
    said = refusal(lambda: table_of(META, {"scenario": "q2"}, cluster="passage_id"))
    assert "`cluster` is column 'metadata.passage_id', which is blank in 1 of 2 rows" in said


def test_long_metadata_are_carried_where_they_are_wanted() -> None:
    row = {"extra": {"metadata": {"text": "x" * 500, "tags": ["a", "b"]}}}
    assert not [name for name in collected(row).done().frame.columns if name.startswith("metadata")]
    wanted = collected(row, keys=("metadata.text", "tags")).done().frame
    assert wanted.select("metadata.text", "metadata.tags").rows() == [("x" * 500, '["a", "b"]')]


def test_metadata_that_get_long_late_are_left_out() -> None:
    rows = [
        {"scenario": f"q{i}", "extra": {"m": {"t": "x" * (500 if i == 30_000 else 5)}}} for i in range(30_001)
    ]
    frame = collected(*rows).done().frame
    assert frame.height == 30_001
    assert "m.t" not in frame.columns


def test_lower_is_better_where_the_files_say_so() -> None:
    rows = collected({"scorer": "loss"}, {"scorer": "acc"})
    rows.lower.add("loss")
    assert assemble(rows.done(), Options(metric="loss")).higher_is_better is False
    assert assemble(rows.done(), Options(metric="loss", higher_is_better=True)).higher_is_better is True
    assert assemble(rows.done(), Options(metric="acc")).higher_is_better is True


def test_lower_is_better_is_not_lost_among_several_metrics() -> None:
    rows = collected({"scorer": "loss"}, {"scorer": "acc"})
    rows.lower.add("loss")
    table = assemble(rows.done(), Options())
    assert "A smaller value is better for ['loss']" in " ".join(map(str, table.notes))


def test_every_format_has_a_name_of_its_own() -> None:
    assert len({reader.name for reader in READERS}) == len(READERS)
    assert FORMATS[-1] == "csv"


def test_files_of_each_format_belong_to_it_alone(shared: Callable[[str], Path]) -> None:
    """The first reader that recognises a file is that of its harness."""
    folder = shared("harness")
    owners = {
        "inspect": "inspect",
        "lm_eval": "lm_eval",
        "helm": "helm",
        "lighteval": "lighteval",
        "openai_evals": "openai_evals",
        "healthbench_simple_evals": "healthbench",
        "promptfoo": "promptfoo",
        "deepeval": "deepeval",
        "mlflow": "mlflow",
        "langsmith": "langsmith",
        "eee": "every_eval_ever",
    }
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        part = path.relative_to(folder).parts[0]
        file = open_file(path, path.name)
        first = next((reader.name for reader in READERS if reader.recognises(file)), None)
        assert first in (owners.get(part), None), path


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "kind", "keys"),
    [
        ("a.json", '{"a": {"b": 1}, "c": [{"d": 2}]}', "json", ("a", "c")),
        ("a.json", '[{"a": 1, "b": "}"}, {"c": 2}]', "json", ("a", "b")),
        ("a.json", "[]", "json", ()),
        ("a.jsonl", '{"a": 1}\n', "jsonl", ("a",)),
        ("a.log", '{"a": 1}\n{"b": 2}\n', "jsonl", ("a",)),
        ("a.json", '{\n "a": 1\n}', "json", ("a",)),
        ("a.json", '{"a": "' + "x" * 100_000 + '", "b": 1}', "json", ("a",)),
        ("a.jsonl", '{"b": 1, "a": "' + "x" * 100_000 + '", "c": 2}\n{}', "jsonl", ("b", "a", "c")),
        ("a.csv", "a,b\n1,2\n", "csv", ()),
        ("a.md", "# words", "other", ()),
        ("a.json", " \n", "empty", ()),
    ],
)
def test_the_kind_of_a_file(
    tmp_path: Path, name: str, content: str, kind: str, keys: tuple[str, ...]
) -> None:
    for packed in (False, True):
        path = write(tmp_path / name, gzip.compress(content.encode()) if packed else content)
        file = open_file(path, name)
        assert (file.kind, file.keys) == (kind, keys)


def test_the_columns_of_a_table(tmp_path: Path) -> None:
    assert open_file(write(tmp_path / "a.csv", '\ufeffa;"b;c";d\n1;2;3\n'), "a.csv").columns == (
        "a",
        "b;c",
        "d",
    )
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1], "b": [2]}).write_parquet(path)
    assert open_file(path, "a.parquet").columns == ("a", "b")


def test_a_large_document_is_read_piece_by_piece(tmp_path: Path) -> None:
    """Elements that end at every place within a chunk, text with brackets, and values beside the list."""
    items = [{"i": i, "text": "é]}" * (i % 7), "n": [i, {"k": "]"}]} for i in range(40_000)]
    document = {"first": {"a": [1, 2]}, "items": items, "rest": 12, "nan": math.nan}
    path = write(tmp_path / "a.json", json.dumps(document, ensure_ascii=False, indent=1))
    pieces = list(open_file(path, "a.json").stream("items"))
    assert [value for key, value in pieces if key == "items"] == items
    assert [key for key, _ in pieces if key != "items"] == ["first", "rest", "nan"]
    listed = write(tmp_path / "b.json", json.dumps(items))
    assert [value for _, value in open_file(listed, "b.json").stream()] == items


def test_a_number_that_ends_with_the_file(tmp_path: Path) -> None:
    assert list(open_file(write(tmp_path / "a.json", '{"a": 12, "b": 345}'), "a.json").stream()) == [
        ("a", 12),
        ("b", 345),
    ]


def test_options_that_are_none(refusal: Refusal, tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.json",
        json.dumps({"status": "success", "eval": {"task": "t", "model": "m"}, "samples": []}),
    )
    assert "`scenario`: no option of a reader of Inspect files" in refusal(
        lambda: ts.analyze(path, scenario="x")
    )
    assert "`nonsense`: no option" in refusal(lambda: ts.read(path, nonsense=1))
    assert "`max_bytes` must be a positive whole number" in refusal(lambda: ts.read(path, max_bytes=-1))
    assert "`format` must be one of 'inspect', 'lm_eval'" in refusal(lambda: ts.read(path, "excel"))
    assert "`path` must be a file, a folder or a list" in refusal(lambda: ts.read(3))  # type: ignore[arg-type]
    assert "`path` is an empty list" in refusal(lambda: ts.read([]))
