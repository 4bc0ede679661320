"""Rewrites: checked, written again on failure, reviewed, replaced by new versions."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triagestats as ts
from triagestats.collect.contract import Scenario
from triagestats.collect.sheets import blind_sheet, next_versions, replace_rewrites, review_sheet
from triagestats.errors import ArgumentError, DataError

CASE = Scenario("s1", {"text": "A man of 40 has had chest pain for two hours; no fever."})
GOOD = "I am 40 and my chest has hurt for two hours, no fever. What should I do?"
PASS = '{"added": [], "dropped": [], "changed": [], "same_urgency": true}'


def rewriting(scripted: ModuleType, **keys: Any) -> Any:
    (condition,) = scripted.built("rewriting", **({"auditor": "other"} | keys))
    return condition


def test_a_rewrite_that_passes_is_kept(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(rewriting(scripted), CASE, GOOD, PASS)
    assert [(call.role, call.model, call.attempt, call.parameters) for call in ask.calls] == [
        ("rewrite", None, 0, {}),
        ("audit", "other", 0, {"temperature": 0}),
    ]
    assert CASE.fields["text"] in ask.calls[0].last
    assert "the patient, in the first person" in ask.calls[0].last
    assert "Add no fact" in ask.calls[0].last
    assert CASE.fields["text"] in ask.calls[1].last
    assert GOOD in ask.calls[1].last
    assert trace.text == GOOD
    assert trace.parsed[0].status == "ok"
    assert trace.features == {
        "rewrite_version": 1,
        "n_audits": 1,
        "audit_passed": True,
        "audit_faults": None,
    }


def test_a_given_voice_and_question(scripted: ModuleType) -> None:
    condition = rewriting(scripted, voice="a worried neighbour", question="Is it bad?", system="Write well.")
    _, ask = scripted.ran(condition, CASE, "He is 40 and hurts. Is it bad?", PASS)
    assert ask.calls[0].messages[0] == {"role": "system", "content": "Write well."}
    assert "a worried neighbour" in ask.calls[0].last
    assert "exactly this question: Is it bad?" in ask.calls[0].last
    assert "a worried neighbour" in ask.calls[1].last


def test_a_failure_is_written_again_with_what_was_wrong(scripted: ModuleType) -> None:
    bad = '{"added": ["sweating"], "dropped": ["no fever"], "changed": [], "same_urgency": false}'
    trace, ask = scripted.ran(
        rewriting(scripted), CASE, "My chest hurts.", "I sweat. What should I do?", bad, GOOD, PASS
    )
    assert ask.roles == ["rewrite", "rewrite", "audit", "rewrite", "audit"]
    assert [call.attempt for call in ask.calls if call.role == "rewrite"] == [0, 1, 2]
    assert "it does not end with the question: What should I do?" in ask.calls[1].last
    last = ask.calls[3]
    assert [message["role"] for message in last.messages] == ["user", "assistant"] * 2 + ["user"]
    for said in ("it adds: sweating", "it drops: no fever", "it changes how urgent the case sounds"):
        assert said in last.last
    assert trace.text == GOOD
    assert (trace.features["n_audits"], trace.features["audit_passed"]) == (2, True)


def test_a_rewrite_that_never_passes_says_why(scripted: ModuleType) -> None:
    bad = '{"added": ["sweating"], "dropped": [], "changed": [], "same_urgency": true}'
    trace, _ = scripted.ran(rewriting(scripted, max_attempts=2), CASE, GOOD, bad, GOOD, bad)
    assert trace.text == GOOD
    assert trace.parsed[0].status == "unparsed"
    assert trace.parsed[0].reason == "no rewrite passed in 2 attempts: it adds: sweating"
    assert (trace.features["audit_passed"], trace.features["audit_faults"]) == (False, "it adds: sweating")


@pytest.mark.parametrize(
    "audit",
    [
        "Fine.",
        '{"added": [], "dropped": [], "changed": []}',
        '{"same_urgency": "perhaps"}',
        '{"added": 3, "same_urgency": true}',
    ],
)
def test_an_audit_that_cannot_be_read_does_not_pass(scripted: ModuleType, audit: str) -> None:
    trace, _ = scripted.ran(rewriting(scripted, max_attempts=1), CASE, GOOD, audit)
    assert trace.features["audit_faults"] == "its audit could not be read"


def test_an_empty_rewrite_is_asked_for_anew(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(rewriting(scripted), CASE, "<think>hm</think>", GOOD, PASS)
    assert ask.calls[1].messages == ask.calls[0].messages
    assert ask.calls[1].attempt == 1
    assert trace.parsed[0].status == "ok"


def test_quotation_marks_around_a_rewrite_hide_no_question(scripted: ModuleType) -> None:
    trace, _ = scripted.ran(rewriting(scripted), CASE, f'"{GOOD}"', PASS)
    assert trace.features["audit_passed"]


def test_a_replaced_version_is_asked_for_under_other_attempts(scripted: ModuleType) -> None:
    attempts = set()
    for version in (1, 2, 3):
        condition = rewriting(scripted, versions={"s1": version}, max_attempts=2)
        trace, ask = scripted.ran(condition, CASE, "No.", GOOD, PASS)
        assert trace.features["rewrite_version"] == version
        attempts |= {call.attempt for call in ask.calls if call.role == "rewrite"}
    assert attempts == set(range(6))


def review(**changes: Any) -> dict[str, list[Any]]:
    return {
        "scenario": ["a", "b"],
        "rewrite_version": [1, 1],
        "fact_faithful": ["yes", "yes"],
        "sound": ["Yes", "y"],
        "same_urgency": [True, True],
        "plausibility": [5, 1],
        "major_issue": ["no", "no"],
    } | changes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"a": 1, "b": 1}),
        ({"major_issue": ["yes", "no"]}, {"a": 2, "b": 1}),
        ({"fact_faithful": ["yes", "no"]}, {"a": 1, "b": 2}),
        ({"same_urgency": [False, True]}, {"a": 2, "b": 1}),
        ({"sound": ["no", "no"], "rewrite_version": [3, 1]}, {"a": 4, "b": 2}),
        ({"scenario": ["a", "a"], "major_issue": ["yes", "no"]}, {"a": 2}),
        ({"scenario": ["a", "a"], "rewrite_version": [1, 2], "major_issue": ["yes", "no"]}, {"a": 2}),
    ],
)
def test_a_review_sets_the_next_versions(changes: dict[str, Any], expected: dict[str, int]) -> None:
    assert next_versions(review(**changes)) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"plausibility": [6, 1]},
            "`plausibility` of scenario 'a' must be a whole number from 1 to 5; got 6",
        ),
        ({"plausibility": [3, None]}, "`plausibility` of scenario 'b' must be"),
        ({"sound": ["", "yes"]}, "`sound` of scenario 'a' must be yes or no"),
        (
            {"major_issue": ["no", "perhaps"]},
            "`major_issue` of scenario 'b' must be yes or no; got 'perhaps'",
        ),
    ],
)
def test_a_review_that_cannot_be_read_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        next_versions(review(**changes))


def test_a_review_needs_its_columns() -> None:
    with pytest.raises(ArgumentError, match="`review` has no column 'sound'"):
        next_versions({key: value for key, value in review().items() if key != "sound"})


def test_the_review_sheet_has_one_row_a_rewrite() -> None:
    table = {"scenario": ["a", "a", "b"], "rewrite_version": [1, 1, 2], "text": ["x", "x", "y"]}
    sheet = review_sheet(table, source={"a": "orig a", "b": "orig b"})
    assert sheet.rows() == [("a", 1, "orig a", "x", *[""] * 6), ("b", 2, "orig b", "y", *[""] * 6)]
    with pytest.raises(ArgumentError, match="no original of scenario 'b'"):
        review_sheet(table, source={"a": "orig a"})
    with pytest.raises(ArgumentError, match="`data` has no column 'rewrite_version'"):
        review_sheet({"scenario": ["a"], "text": ["x"]})


def test_replaced_rewrites_are_new_versions_and_old_ones_stay() -> None:
    rewrites = {"scenario": ["a", "b"], "rewrite_version": [1, 2], "text": ["x", "y"]}
    found = replace_rewrites(rewrites, {"b": "z"})
    assert found.rows() == [("a", 1, "x", True), ("b", 2, "y", False), ("b", 3, "z", True)]
    assert replace_rewrites(found, {"b": "w"}).filter(pl.col("current"))["text"].to_list() == ["x", "w"]
    for wrong in ({"c": "z"}, {"a": " "}, {"a": "x"}):
        with pytest.raises(ArgumentError, match="`replacements`"):
            replace_rewrites(rewrites, wrong)


TABLE = {
    "scenario": [f"s{n}" for n in range(30)],
    "model": ["m", "n"] * 15,
    "condition": ["c"] * 30,
    "text": [f"Text {n}" for n in range(30)],
}


def test_a_blind_sheet_tells_nothing_and_its_key_tells_all(tmp_path: Path) -> None:
    sample = blind_sheet(TABLE, n=10, ask=["urgency"])
    assert sample.sheet.columns == ["entry", "text", "urgency"]
    assert sample.sheet["entry"].to_list() == [f"E{n:02d}" for n in range(1, 11)]
    joined = sample.sheet.join(sample.key, on="entry")
    by_text = dict(zip(TABLE["text"], TABLE["scenario"], strict=True))
    assert all(by_text[row["text"]] == row["scenario"] for row in joined.iter_rows(named=True))
    assert sample.sheet["text"].to_list() != sorted(sample.sheet["text"].to_list())
    sample.write(tmp_path / "sheet.csv", tmp_path / "key.csv")
    assert pl.read_csv(tmp_path / "key.csv").columns == ["entry", "scenario", "model", "condition"]


@given(st.permutations(range(30)), st.integers(1, 30))
def test_the_order_of_the_table_changes_no_sample(order: list[int], n: int) -> None:
    shuffled = {key: [values[at] for at in order] for key, values in TABLE.items()}
    assert blind_sheet(shuffled, n=n).sheet.equals(blind_sheet(TABLE, n=n).sheet)


def test_a_blind_sheet_refuses() -> None:
    assert not blind_sheet(TABLE, seed=1).sheet.equals(blind_sheet(TABLE, seed=2).sheet)
    with pytest.raises(ArgumentError, match="`n` must be from 1 to 30"):
        blind_sheet(TABLE, n=31)
    with pytest.raises(ArgumentError, match="`show` names 'answer'"):
        blind_sheet(TABLE, show=["answer"])
    with pytest.raises(ArgumentError, match="`ask` names 'model'"):
        blind_sheet(TABLE, ask=["model"])


def test_rewriting_from_a_server(chat: ModuleType, tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = body["messages"]
        if "Compare a retold case" in said[-1]["content"]:
            assert body["temperature"] == 0
            return PASS if GOOD in said[-1]["content"] else '{"added": ["x"], "same_urgency": true}'
        return GOOD if "it adds: x" in said[-1]["content"] else "It hurts. What should I do?"

    with chat.ChatServer(reply) as server:
        study = {
            "scenarios": {"rows": [{"id": "s1", **CASE.fields}]},
            "models": [
                {"name": "writer", "base_url": server.url},
                {"name": "auditor", "base_url": server.url, "answers": False},
            ],
            "conditions": [{"name": "patient", "protocol": "rewriting", "auditor": "auditor"}],
        }
        table = ts.collect(study, store=tmp_path / "s.sqlite", progress=False)
        assert server.count == 4
        again = ts.collect(study, store=tmp_path / "s.sqlite", progress=False, resume=True)
        assert server.count == 4
    row = table.frame.row(0, named=True)
    assert (row["text"], row["audit_passed"], row["n_audits"]) == (GOOD, True, 2)
    assert row["status"] == "unscored"
    assert again.frame.equals(table.frame)
    assert review_sheet(table, source={"s1": CASE.fields["text"]})["rewrite"].to_list() == [GOOD]
