"""A scripted patient: who is asked what, what is answered, how it ends, and what is counted."""

from __future__ import annotations

import asyncio
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import triagestats as ts
from triagestats.collect.contract import Misfit, Scenario
from triagestats.collect.protocols.script import PatternMatcher, read_script

SCRIPT = {
    "fever": "38.5 since yesterday.",
    "onset": {"answer": "Two hours ago.", "asks": [r"\bwhen\b", "how long"], "about": "when it began"},
    "other_pain": "My arm, too.",
}
CASE = Scenario("s1", {"text": "My chest {hurts}.", "script": SCRIPT})


def conversation(scripted: ModuleType, **keys: Any) -> Any:
    (condition,) = scripted.built("conversation", **({"scale": scripted.SCALE} | keys))
    return condition


def test_questions_are_answered_from_the_script(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(
        conversation(scripted),
        CASE,
        "Do you have a fever? When did it start? Any allergies?",
        "Do you have other pain?",
        "Thank you, that is all.",
        "Answer: D",
    )
    assert ask.roles == ["turn", "turn", "turn", "answer"]
    assert [message["content"] for message in ask.calls[3].messages[:-1]] == [
        "My chest {hurts}.",
        "Do you have a fever? When did it start? Any allergies?",
        "38.5 since yesterday.\nTwo hours ago.\nI don't know.",
        "Do you have other pain?",
        "My arm, too.",
        "Thank you, that is all.",
    ]
    assert [message["role"] for message in ask.calls[3].messages] == ["user", "assistant"] * 3 + ["user"]
    assert "D: emergency now" in ask.calls[3].last
    assert trace.parsed[0].label == "D"
    assert trace.features == {
        "n_turns": 3,
        "n_questions": 4,
        "n_matched": 3,
        "n_unknown": 1,
        "asked": "fever; onset; other_pain",
        "ended": "no question",
    }


def test_every_turn_is_kept(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(
        conversation(scripted), CASE, "<think>hm</think>Any fever?", "Rest.", "Answer: A"
    )
    said = [message["content"] for message in trace.transcript]
    assert said[1] == "<think>hm</think>Any fever?"
    assert ask.calls[1].messages[1]["content"] == "Any fever?"
    assert said[-1] == "Answer: A"
    assert len(said) == 6
    assert trace.text == "Answer: A"


def test_the_conversation_ends_at_the_limit(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(
        conversation(scripted, max_turns=2), CASE, "Any fever?", "How long has it hurt?", "Answer: C"
    )
    assert ask.roles == ["turn", "turn", "answer"]
    assert trace.features["ended"] == "turn limit"
    assert (trace.features["n_questions"], trace.features["n_matched"]) == (2, 2)
    assert "Two hours ago." not in str(ask.calls[-1].messages)


def test_a_model_that_asks_nothing_is_asked_at_once(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(conversation(scripted), CASE, "Go to the ER now.", "Answer: D")
    assert ask.roles == ["turn", "answer"]
    assert (trace.features["n_turns"], trace.features["n_questions"], trace.features["asked"]) == (1, 0, "")


def test_the_last_turn_can_be_judged_instead(scripted: ModuleType) -> None:
    condition = conversation(scripted, ending="judge")
    assert not condition.protocol.reads_labels
    trace, ask = scripted.ran(condition, CASE, "Any fever?", "Go to the ER now.")
    assert ask.roles == ["turn", "turn"]
    assert trace.text == "Go to the ER now."
    assert trace.parsed[0].label is None
    assert trace.parsed[0].features["recommendation"] is True
    assert "n_questions" not in trace.parsed[0].features
    assert trace.features["n_questions"] == 1


def test_an_empty_turn_ends_it(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(conversation(scripted), CASE, "", "Answer: C")
    assert [message["role"] for message in ask.calls[1].messages] == ["user", "user"]
    assert trace.parsed[0].label == "C"


def test_system_instruction_and_unknown(scripted: ModuleType) -> None:
    condition = conversation(scripted, system="Be brief.", instruction="Help me.", unknown="No idea.")
    _, ask = scripted.ran(condition, CASE, "Any allergies?", "Fine.", "Answer: C")
    assert ask.calls[0].messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Help me.\n\nMy chest {hurts}."},
    ]
    assert ask.calls[1].last == "No idea."


def test_requests_without_a_question_mark_are_answered(scripted: ModuleType) -> None:
    _, ask = scripted.ran(conversation(scripted), CASE, "Tell me how long it has hurt.", "Fine.", "Answer: C")
    assert ask.calls[1].last == "Two hours ago."


def test_a_repeated_question_gets_the_same_answer(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(
        conversation(scripted), CASE, "Any fever? Have you had a fever?", "Any fever?", "Fine.", "Answer: C"
    )
    assert ask.calls[1].last == ask.calls[2].last == "38.5 since yesterday."
    assert (trace.features["n_questions"], trace.features["n_matched"]) == (3, 3)
    assert trace.features["asked"] == "fever"


MODEL = {"matcher": {"kind": "model", "model": "other"}}


def test_a_model_can_match(scripted: ModuleType) -> None:
    trace, ask = scripted.ran(
        conversation(scripted, **MODEL),
        CASE,
        "Hot? Since what time? Do you smoke?",
        '{"asked": ["Onset", "fever"], "others": 1}',
        "Go now.",
        '{"asked": [], "others": 0}',
        "Answer: D",
    )
    assert ask.roles == ["turn", "match", "turn", "match", "answer"]
    match = ask.calls[1]
    assert (match.model, match.parameters) == ("other", {"temperature": 0})
    assert "- fever\n- onset: when it began\n- other_pain\n" in match.last
    assert "38.5" not in match.last
    assert "Hot? Since what time? Do you smoke?" in match.last
    assert ask.calls[2].last == "Two hours ago.\n38.5 since yesterday.\nI don't know."
    assert trace.features["n_questions"] == 3
    assert (trace.features["n_matched"], trace.features["n_unknown"]) == (2, 1)


@pytest.mark.parametrize(
    ("verdict", "questions", "reply"),
    [
        ("What?", 2, "I don't know."),
        ('{"asked": ["shoe size"], "others": 0}', 1, "I don't know."),
        ('{"asked": ["fever", "fever"]}', 1, "38.5 since yesterday."),
        ('{"asked": "fever", "others": "some"}', 1, "38.5 since yesterday."),
    ],
)
def test_a_verdict_of_the_matcher_may_be_odd(
    scripted: ModuleType, verdict: str, questions: int, reply: str
) -> None:
    condition = conversation(scripted, **MODEL)
    trace, ask = scripted.ran(
        condition, CASE, "Are you hot? Do you smoke?", verdict, "Fine.", '{"asked": []}', "Answer: A"
    )
    assert ask.calls[2].last == reply
    assert trace.features["n_questions"] == questions


def test_scripts_have_several_forms() -> None:
    as_list = [{"name": name, **(e if isinstance(e, dict) else {"answer": e})} for name, e in SCRIPT.items()]
    expected = read_script(CASE, "script")
    assert [entry.name for entry in expected] == ["fever", "onset", "other_pain"]
    for value in (as_list, json.dumps(SCRIPT), json.dumps(as_list), SCRIPT | {"absent": None}):
        assert read_script(Scenario("s", {"script": value}), "script") == expected
    assert read_script(Scenario("s", {"script": {}}), "script") == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "it holds nothing"),
        ("fever: yes", "no JSON"),
        (3, "it holds int"),
        ([{"name": "a"}], "it holds {'name': 'a'}"),
        ([{"name": "a", "answer": "b", "ask": "c"}], "it holds"),
        ({"a": {"answer": "b", "asks": "("}}, "no regular expression"),
        ([{"name": "a", "answer": "b"}] * 2, "a name twice"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused(value: Any, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        read_script(Scenario("s", {"script": value}), "script")


@given(st.lists(st.sampled_from(["Any fever?", "When did it start?", "Do you smoke?", "Rest."]), max_size=6))
def test_counts_add_up(turn: list[str]) -> None:
    script = read_script(CASE, "script")
    match = asyncio.run(PatternMatcher().match(" ".join(turn), script, None))  # type: ignore[arg-type]
    assert match.n_questions == len(turn) - turn.count("Rest.")
    assert match.n_unknown == turn.count("Do you smoke?")
    assert set(match.names) == {
        name for name, said in (("fever", "Any fever?"), ("onset", "When did it start?")) if said in turn
    }


def test_a_conversation_from_a_server(chat: ModuleType, scripted: ModuleType) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = [message["content"] for message in body["messages"]]
        if "Answer: X" in said[-1]:
            return "Answer: D" if "38.5" in str(said) else "Answer: A"
        return "Any fever?" if len(said) == 1 else "I see."

    with chat.ChatServer(reply) as server:
        rows = [
            {"id": "s1", "text": "I feel hot.", "gold": "D", "script": {"fever": "38.5"}},
            {"id": "s2", "text": "I feel odd.", "gold": "D", "script": {"rash": "No."}},
        ]
        table = ts.collect(
            {
                "levels": ["A", "B", "C", "D"],
                "scenarios": {"rows": rows},
                "models": [{"name": "m", "base_url": server.url}],
                "conditions": [{"name": "talk", "protocol": "conversation", "scale": scripted.SCALE}],
            },
            store=":memory:",
            progress=False,
        )
    found = table.frame.select("scenario", "response", "score", "n_turns", "n_matched", "n_unknown")
    assert found.rows() == [("s1", "D", 1.0, 2, 1, 0), ("s2", "A", 0.0, 2, 0, 1)]
    assert len(json.loads(table.frame["transcript"][0])) == 6
    assert server.count == 6
