"""Judges: what they see, what they bring, and what is not judged."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import triagestats as ts
from triagestats.collect.contract import Answer, Misfit, Parsed, Scenario
from triagestats.collect.judge_scores import RecallJudge
from triagestats.collect.protocols.yes_no import as_bool, as_texts

CASE = Scenario(
    "s1",
    {
        "text": "A secret case.",
        "gold_answer": "influenza",
        "facts": ["cough for 3 days", "no fever", "asthma"],
        "items": '["rest", "fluids"]',
    },
)


@pytest.mark.parametrize(
    ("verdict", "label", "status", "reason"),
    [
        ('{"label": "D", "why": "told to go now"}', "D", "ok", None),
        ('```json\n{"label": "c"}\n```', "C", "ok", None),
        ('{"label": "NONE"}', None, "deferred", "no primary recommendation"),
        ('{"label": null}', None, "deferred", "no primary recommendation"),
        ('{"label": "none."}', None, "deferred", "no primary recommendation"),
        ('{"label": "C or D"}', None, "unparsed", "two different letters: C, D"),
        ('{"level": "C"}', None, "unparsed", "no key 'label' in the JSON object"),
        ("It says C.", None, "unparsed", "no JSON object"),
    ],
)
def test_the_disposition_judge(
    scripted: ModuleType, verdict: str, label: str | None, status: str, reason: str | None
) -> None:
    (parsed,), _ = scripted.judged({"scale": scripted.SCALE}, "Go now.", verdict)
    assert (parsed.label, parsed.status, parsed.reason) == (label, status, reason)


def test_the_disposition_judge_is_told_what_counts(scripted: ModuleType) -> None:
    table = {"scale": scripted.SCALE, "rubric": "Mind the child.", "system": "You are strict."}
    _, ask = scripted.judged(table, "Rest {now}. If worse, ER.", '{"label": "A"}', CASE)
    (call,) = ask.calls
    assert (call.role, call.parameters) == ("judge", {"temperature": 0.0})
    assert call.messages[0] == {"role": "system", "content": "You are strict."}
    for said in (
        "primary recommendation",
        "contingency advice",
        "Mind the child.",
        "Rest {now}. If worse, ER.",
    ):
        assert said in call.last
    assert "- A: stay at home\n- B: doctor in weeks\n" in call.last
    assert "secret" not in call.last


def test_labels_of_judges_may_be_words_or_letters(scripted: ModuleType) -> None:
    where = scripted.setting(levels=("home", "doctor", "emergency"))
    (parsed,), _ = scripted.judged({}, "x", '{"label": "Emergency"}', where=where)
    assert parsed.label == "emergency"
    (parsed,), _ = scripted.judged({"answer": "letter"}, "x", "It tells to go now.\n\nAnswer: D")
    assert parsed.label == "D"
    (parsed,), _ = scripted.judged({"answer": "letter"}, "x", "Answer: NONE")
    assert parsed.status == "deferred"


def test_a_temperature_can_be_left_out(scripted: ModuleType) -> None:
    _, ask = scripted.judged({"temperature": False}, "x", '{"label": "A"}')
    assert ask.calls[0].parameters == {}
    _, ask = scripted.judged({"temperature": 1}, "x", '{"label": "A"}')
    assert ask.calls[0].parameters == {"temperature": 1.0}


@pytest.mark.parametrize(
    ("verdict", "score", "status"),
    [
        ('{"equivalent": true}', 1.0, "ok"),
        ('{"equivalent": "no"}', 0.0, "ok"),
        ('{"equivalent": "maybe"}', None, "unparsed"),
        ("Yes.", None, "unparsed"),
    ],
)
def test_the_equivalence_judge(scripted: ModuleType, verdict: str, score: float | None, status: str) -> None:
    (parsed,), ask = scripted.judged({"kind": "equivalence"}, "The flu.", verdict, CASE)
    assert (parsed.score, parsed.status, parsed.metric, parsed.label) == (score, status, "equivalent", None)
    assert "influenza" in ask.calls[0].last
    assert "The flu." in ask.calls[0].last
    assert "secret" not in ask.calls[0].last


def test_the_equivalence_judge_cannot_be_shown_the_question(scripted: ModuleType) -> None:
    for key in ("template", "rubric", "system"):
        with pytest.raises(ValidationError, match="must not see the question"):
            scripted.judged({"kind": "equivalence", key: "{{ text }} {{ gold }}"}, "x", None, CASE)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ('{"kept": [1, 3], "added": ["sad"], "invented": []}', [2.0, 1.0, 0.0]),
        ('{"kept": ["1", "1"], "added": "sad", "invented": null}', [1.0, 1.0, 0.0]),
        ('{"kept": 2, "added": 0, "invented": 4}', [2.0, 0.0, 4.0]),
        ('{"kept": [4], "added": [], "invented": ["none"]}', [None, 0.0, 0.0]),
        ('{"kept": ["cough"], "added": -1}', [None, None, 0.0]),
        ("All of them.", [None, None, None]),
    ],
)
def test_the_counts_judge(scripted: ModuleType, verdict: str, expected: list[float | None]) -> None:
    found, ask = scripted.judged({"kind": "counts"}, "I cough.", verdict, CASE)
    assert [parsed.metric for parsed in found] == ["facts_kept", "facts_added", "facts_invented"]
    assert [parsed.score for parsed in found] == expected
    assert all((parsed.status == "ok") == (parsed.score is not None) for parsed in found)
    assert all(parsed.features == {"n_facts": 3} for parsed in found)
    assert "1. cough for 3 days\n2. no fever\n3. asthma\n" in ask.calls[0].last


def test_the_recall_judge_gives_each_item_and_the_share(scripted: ModuleType) -> None:
    found, ask = scripted.judged({"kind": "recall"}, "Rest.", '{"1": true, "2": "no"}', CASE)
    assert [(parsed.metric, parsed.score) for parsed in found] == [
        ("recall", 0.5),
        ("recall 1", 1.0),
        ("recall 2", 0.0),
    ]
    assert '{"1": true or false, "2": true or false}' in ask.calls[0].last
    found, _ = scripted.judged({"kind": "recall"}, "Rest.", '{"items": {"1": 1, "2": 1}}', CASE)
    assert found[0].score == 1.0
    found, _ = scripted.judged({"kind": "recall", "per_item": False}, "Rest.", '{"1": true, "2": true}', CASE)
    assert [parsed.metric for parsed in found] == ["recall"]


def test_a_share_needs_a_verdict_on_every_item(scripted: ModuleType) -> None:
    found, _ = scripted.judged({"kind": "recall"}, "Rest.", '{"1": true}', CASE)
    assert [(parsed.metric, parsed.score, parsed.status) for parsed in found] == [
        ("recall", None, "unparsed"),
        ("recall 1", 1.0, "ok"),
        ("recall 2", None, "unparsed"),
    ]
    assert found[0].reason == "the verdict could not be read: nothing on 1 of 2 items"


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_recall_is_the_mean_of_its_items(present: list[bool]) -> None:
    judge = RecallJudge(name="j", model="m")
    verdict = "{" + ", ".join(f'"{n}": {str(one).lower()}' for n, one in enumerate(present, 1)) + "}"
    share, *items = judge._read(Answer("key", verdict), {"items": [""] * len(present)})
    assert share.score == pytest.approx(sum(present) / len(present), abs=1e-15)
    assert [item.score for item in items] == [float(one) for one in present]


@pytest.mark.parametrize(
    ("kind", "metrics"),
    [
        ("disposition", [None]),
        ("equivalence", ["equivalent"]),
        ("counts", ["facts_kept", "facts_added", "facts_invented"]),
        ("recall", ["recall", "recall 1", "recall 2"]),
    ],
)
def test_what_is_not_judged_costs_no_call(scripted: ModuleType, kind: str, metrics: list[str | None]) -> None:
    found, _ = scripted.judged({"kind": kind}, " \n", None, CASE)
    assert [(parsed.status, parsed.metric) for parsed in found] == [("unparsed", one) for one in metrics]
    left_out = (Parsed(None, "unscored", "not answerable"),)
    found, _ = scripted.judged({"kind": kind}, "text", None, CASE, own=left_out)
    assert [(parsed.status, parsed.reason) for parsed in found] == [("unscored", "not answerable")] * len(
        metrics
    )
    if kind != "disposition":
        found, _ = scripted.judged({"kind": kind}, "text", None, Scenario("s", {}))
        assert {parsed.status for parsed in found} == {"unscored"}
        assert "of judge 'j' names" in str(found[0].reason)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ({"kind": "vibes"}, Misfit, "must be one of disposition, equivalence, counts, recall"),
        ({"scale": {"E": "x"}}, ValidationError, "must lead to the levels"),
        ({"answer": "text"}, ValidationError, "must read a label"),
        ({"kind": "recall", "itmes_field": "x"}, ValidationError, "itmes_field"),
    ],
)
def test_judges_that_do_not_fit_are_refused(
    scripted: ModuleType, table: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        scripted.judged(table, "x", None)


def test_a_judge_needs_levels_from_somewhere(scripted: ModuleType) -> None:
    with pytest.raises(ValidationError, match="`scale` must name the levels"):
        scripted.judged({}, "x", None, where=scripted.setting(levels=None))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("YES", True), (1, True), (0, False), ("No.", False), (2, None), (None, None)],
)
def test_yes_and_no(value: object, expected: bool | None) -> None:
    assert as_bool(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ()), ([], ()), ("one", ("one",)), (["none", " a ", None], ("a",)), (3, None), ({}, None)],
)
def test_short_texts(value: object, expected: tuple[str, ...] | None) -> None:
    assert as_texts(value) == expected


def test_several_judges_from_a_server(chat: ModuleType, scripted: ModuleType) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = body["messages"][-1]["content"]
        if "level of care" in said:
            return '{"label": "D"}' if "lenient" in said else '{"label": "C"}'
        if "numbered list of facts" in said:
            return '{"kept": [1, 2, 3], "added": [], "invented": ["x"]}'
        return "See a doctor tomorrow."

    with chat.ChatServer(reply) as server:
        table = {
            "levels": ["A", "B", "C", "D"],
            "scenarios": {"rows": [{"id": "s1", "gold": "D", **CASE.fields}]},
            "models": [{"name": "m", "base_url": server.url}],
            "judges": [
                {"name": "plain", "model": "m"},
                {"name": "lenient", "model": "m", "rubric": "Be lenient."},
                {"name": "facts", "kind": "counts", "model": "m"},
            ],
            "conditions": [
                {"name": "free", "protocol": "prompt", "template": "{{ text }}", "answer": "text"}
            ],
        }
        labels = ts.collect(table, store=":memory:", progress=False)
        counts = ts.collect(table, store=":memory:", progress=False, metric="facts_invented")
    found = labels.frame.select("judge", "response", "score").drop_nulls("response").sort("judge")
    assert found.rows() == [("lenient", "D", 1.0), ("plain", "C", 0.0)]
    assert counts.frame.filter(pl.col("judge") == "facts")["score"].to_list() == [1.0]
