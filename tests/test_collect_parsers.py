"""Reading answers: letters, labels, JSON, confidence, and why nothing was read."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from triagestats.collect.answer_text import stated_confidence, visible_text
from triagestats.collect.contract import Answer, Parsed, Scenario, Setting
from triagestats.collect.dispositions import parse_disposition
from triagestats.collect.json_answers import find_object, value_at
from triagestats.collect.letters import parse_letter
from triagestats.collect.parsers import AnswerContract

LABELS = {"ED_NOW": "D", "DOCTOR_24H": "C", "DOCTOR_WEEKS": "B", "HOME_CARE": "A"}
SETTING = Setting(Path(), ("A", "B", "C", "D"), ("m",))
SCENARIO = Scenario("s", {})
LONGEST = 2.0
"""Seconds that an answer of 100,000 characters may take: patterns that look back do not end at all."""


def contract(value: Any, setting: Setting = SETTING) -> Any:
    return TypeAdapter(AnswerContract).validate_python(value, context={"setting": setting})


def read(value: Any, text: str, **answer: Any) -> Parsed:
    found: Parsed = contract(value).parse(Answer("key", text, **answer), SCENARIO)
    return found


def letter(text: str, options: str = "ABCD") -> str | None:
    return parse_letter(visible_text(text), options).label


@pytest.mark.parametrize(
    "text",
    [
        "C",
        "c",
        "(c)",
        "C.",
        "C)",
        "**C**",
        "> C",
        "- **C**: See a doctor",
        "Answer: C",
        "answer: c",
        "ANSWER:C",
        "Answer：Ｃ",
        "**Answer:** C",
        "**Answer: C**",
        "__Answer__: __C__",
        "## Answer\n\nC",
        "Answer: (C)",
        "Answer: [C]",
        "Answer: “C”",
        "Answer - C",
        "Answer -> C",
        "Answer is: C",
        "Answer (A-D): C",
        "<answer>C</answer>",
        '{"answer": "C"}',
        "Final answer: `C`",
        "The correct answer is option C because of the fever.",
        "The final answer is $\\boxed{C}$.",
        "\\boxed{\\text{C}}",
        "\\boxed{C. Go now}",
        "Triage level: C",
        "C. See a doctor today.",
        "C - see a doctor today",
        "I'd go with C",
        "I would choose option (c).",
        "C is the best option here.",
        "I think C, rather than B.",
        "It is not B. It's C.",
        "Option A: too slow. Option B: too slow.\n\nTherefore, C.",
        "The best answer is therefore:\n\n**C) See a doctor within 24-48 hours**",
        "My answer is C, go to the clinic.",
        "Both B and C are possible; choose C",
        "Answer: C (not D)",
        "Answer: C, I think",
        "Answer: C. If she gets confused, the answer would be D.",
        "If I had to choose, the answer is C.",
        "A. Home\nB. Weeks\nC. Soon\nD. Now\n\nAnswer: C",
        "Answer: A, B, C, or D\nAnswer: C",
        "Answer: B. Wait, actually C.",
        "Answer: B\n\nOn reflection.\n\nAnswer: C",
        "<think>Answer: B</think>Answer: C",
        "Answer: B</think>C",
        "C\n\nConfidence: 80%",
    ],
)
def test_a_letter_is_read_however_it_is_stated(text: str) -> None:
    assert letter(text) == "C"


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "a",
        "A.",
        "Answer: A",
        "The answer is A because of the rash.",
        "A: stay at home",
        "I recommend A.",
    ],
)
def test_the_letter_a_is_told_from_the_article(text: str) -> None:
    assert letter(text) == "A"


@pytest.mark.parametrize(
    "text",
    [
        "A patient with chest pain should go.",
        "Answer: A patient should go to the ED",
        "The answer is a matter of urgency.",
        "I say a doctor should see this",
        "The answer is not C.",
        "Not B.",
        "Answer: N/A",
        "Answer: C-section",
        "Answer: B cell lymphoma",
        "He lacks vitamin C.",
        "Hepatitis B is likely here",
        "The patient is in group A.",
        "Answer choices were unclear",
    ],
)
def test_what_is_no_letter_is_not_read(text: str) -> None:
    parsed = parse_letter(text, "ABCD")
    assert (parsed.label, parsed.status, parsed.reason) == (None, "unparsed", "no letter")


@pytest.mark.parametrize(
    "text",
    [
        "B or C",
        "B/C",
        "Answer: B or C",
        "Answer: B/C",
        "Answer: B–C",
        "Answer: B, C",
        "Answer: B and C",
        "Answer: (B) or (C)",
        "The answer is between B and C.",
        "The answer is either B or C.",
        "(B) is possible. So is (C).",
        "B. Weeks\nC. Soon",
        "B\nC",
    ],
)
def test_two_different_letters_are_not_read(text: str) -> None:
    assert parse_letter(text, "ABCD").reason == "two different letters: B, C"


def test_of_several_statements_the_last_one_counts_and_all_are_told() -> None:
    parsed = read("letter", "Answer: B\n\nNo, wait.\n\nAnswer: C")
    assert parsed.label == "C"
    assert parsed.features["stated_labels"] == "B > C"


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("", {}, "empty answer"),
        (" \n ", {}, "empty answer"),
        ("<think>It is C.", {}, "empty answer"),
        ("<think>It is", {"finish_reason": "length"}, "cut off at the token limit; empty answer"),
        ("I weigh the", {"finish_reason": "length"}, "cut off at the token limit; no letter"),
        ("", {"finish_reason": "content_filter"}, "stopped by the content filter"),
        ("", {"refusal": "No."}, "refusal"),
        ("I'm sorry, but I can't help with that.", {}, "refusal"),
        ("As an AI, I am not able to give medical advice.", {}, "refusal"),
        ("Answer: E", {}, "letter E is not among A, B, C, D"),
        ("It depends.", {}, "no letter"),
    ],
)
def test_what_is_unparsed_says_why(text: str, answer: dict[str, Any], reason: str) -> None:
    parsed = read("letter", text, **answer)
    assert (parsed.label, parsed.status, parsed.reason) == (None, "unparsed", reason)


def test_a_refusal_that_answers_after_all_is_an_answer() -> None:
    assert read("letter", "I can't diagnose you. Answer: D").label == "D"


@given(
    label=st.sampled_from("ABCDE"),
    form=st.sampled_from(
        ["{}", "({})", "**{}**", "Answer: {}", "\\boxed{{{}}}", "Reasons.\n\nAnswer: **{}**"]
    ),
    lower=st.booleans(),
)
def test_every_letter_is_read_in_every_form(label: str, form: str, lower: bool) -> None:
    written = form.format(label.lower() if lower else label)
    assert letter(written, "ABCDE") == label


@given(st.text(max_size=200))
def test_no_text_breaks_a_contract(text: str) -> None:
    for value in ("letter", "text", {"kind": "label", "label_map": LABELS}, {"kind": "json"}):
        parsed = read(value, text)
        assert parsed.status != "unparsed" or parsed.reason
        assert parsed.label is None or parsed.status == "ok"


@given(st.permutations("ABCD"), st.sampled_from(["Answer: {}", "({})", "{}"]))
def test_relabelled_options_are_relabelled_answers(order: list[str], form: str) -> None:
    to_label = dict(zip("ABCD", order, strict=True))
    for written in "ABCD":
        assert parse_letter(form.format(written), "ABCD", label_map=to_label).label == to_label[written]


@pytest.mark.parametrize(
    "text",
    [
        "ED_NOW",
        "ed-now",
        "**Triage:** `ED_NOW`",
        "TRIAGE: ED NOW",
        "- Recommendation — **ed now**",
        "| Triage | ED\\_NOW |",
        "**Disposition:**\n\nED_NOW",
        "Disposition (one of ED_NOW, HOME_CARE): ED_NOW",
        "I'd classify this as ED_NOW.",
        "It's ED_NOW rather than HOME_CARE",
        "ED_NOW. If the pain goes away at once, HOME_CARE.",
        "Triage: HOME_CARE\nNo.\nTriage: ED_NOW",
        "Triage: ED_NOW. If it is only a cramp, triage: HOME_CARE",
    ],
)
def test_a_labelled_disposition_is_read_and_mapped(text: str) -> None:
    assert parse_disposition(text, LABELS).label == "D"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ED_NOW or HOME_CARE", "two different labels: ED_NOW, HOME_CARE"),
        ("Triage: ED_NOW/DOCTOR_24H", "two different labels: DOCTOR_24H, ED_NOW"),
        ("Take care at home", "no label"),
        ("I cannot help with that.", "refusal"),
        ("", "empty answer"),
    ],
)
def test_an_unread_disposition_says_why(text: str, reason: str) -> None:
    assert parse_disposition(text, LABELS).reason == reason


def test_two_words_for_one_label_are_one_label() -> None:
    assert parse_disposition("Triage: ED_NOW or CALL_911", {"ED_NOW": "D", "CALL_911": "D"}).label == "D"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Non-urgent", "1"),
        ("NON URGENT", "1"),
        ("It is URGENT.", "2"),
        ("urgency: urgent", "2"),
        ("urgent", "2"),
    ],
)
def test_the_longest_label_wins(text: str, label: str) -> None:
    assert parse_disposition(text, {"URGENT": "2", "NON_URGENT": "1", "ROUTINE": "0"}).label == label


def test_a_small_word_in_prose_is_no_label() -> None:
    assert parse_disposition("This is urgent, I think.", {"URGENT": "2", "ROUTINE": "0"}).reason == "no label"


def test_a_marker_of_another_language_can_be_given() -> None:
    text = "Er hat seit drei Tagen Fieber und trinkt kaum; das ist in seinem Alter zu lange. Antwort: C"
    assert read("letter", text).reason == "no letter"
    assert read({"kind": "letter", "markers": ["Antwort"]}, text).label == "C"


JSON = {"kind": "json", "field": "triage", "keep": ["why"]}


@pytest.mark.parametrize(
    "text",
    [
        '{"triage": "C"}',
        '```json\n{"triage": "C", "why": {"a": 1}}\n```',
        'Sure {really}: {"triage": "c"} Take care.',
        '{"TRIAGE": "C. See a doctor"}',
        '{"triage": ["C"]}',
        '{"triage": "B"} On reflection: {"triage": "C"}',
        '<think>{"triage": "B"}</think>{"triage": "C"}',
    ],
)
def test_json_is_read_with_and_without_fences(text: str) -> None:
    assert read(JSON, text).label == "C"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"triage": "B", "triage": "C"}', "two different labels: B, C"),
        ('{"triage": ["B", "C"]}', "two different labels: B, C"),
        ('{"triage": "B or C"}', "two different letters: B, C"),
        ('{"triage": "E"}', "letter E is not among A, B, C, D"),
        ('{"level": "C"}', "no key 'triage' in the JSON object"),
        ('{"triage": null}', "no key 'triage' in the JSON object"),
        ('{"triage": []}', "nothing under the key 'triage'"),
        ('{"triage": "C"', "no JSON object"),
        ("{'triage': 'C'}", "no JSON object"),
        ("I cannot help with that.", "refusal"),
        ("", "empty answer"),
    ],
)
def test_json_that_is_not_read_says_why(text: str, reason: str) -> None:
    parsed = read(JSON, text)
    assert (parsed.label, parsed.status, parsed.reason) == (None, "unparsed", reason)


def test_json_labels_confidence_and_kept_keys() -> None:
    value = {"kind": "json", "field": "result.triage", "label_map": LABELS, "keep": ["why"]}
    parsed = read(value, '{"result": {"triage": "ed now"}, "confidence": "80%", "why": ["a", "b"]}')
    assert (parsed.label, parsed.confidence) == ("D", 0.8)
    assert parsed.features == {"json_why": '["a", "b"]'}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_object_comes_back_from_words_and_fences(value: Any) -> None:
    found = {"triage": "C", "rest": value}
    text = f"Here {{you}} go:\n```json\n{json.dumps(found, indent=1)}\n```\nBye."
    assert find_object(text, "triage") == found
    assert value_at(found, "Triage") == "C"


@pytest.mark.parametrize(
    "text",
    ['{"triage": 1' + "0" * 5000 + "}", '{"triage": "\\ud800"}', '{"confidence": 1e999}', '{"triage": NaN}'],
)
def test_json_at_the_limits_is_unparsed(text: str) -> None:
    parsed = read(JSON, text)
    assert parsed.status == "unparsed"
    str(parsed).encode()


@pytest.mark.parametrize(
    ("text", "share", "stated"),
    [
        ("Confidence: 85%", 0.85, "85%"),
        ("**Confidence:** 85", 0.85, "85"),
        ("confidence level is 0.85", 0.85, "0.85"),
        ("Confidence: 8/10", 0.8, "8/10"),
        ("Confidence (1-10): 8", 0.8, "8"),
        ("Confidence (0-100): 85", 0.85, "85"),
        ("Confidence: about 85 percent", 0.85, "85percent"),
        ("I am 90% sure.", 0.9, "90%"),
        ("Confidence: 30%. No: Confidence: 40%", 0.4, "40%"),
        ("Confidence: 0,85", 0.85, "0,85"),
        ("Confidence: 1%", 0.01, "1%"),
        ("Confidence: 1", 1.0, "1"),
        ("Confidence: 120%", None, "120%"),
        ("Confidence: high", None, "high"),
        ("The 95% confidence interval is wide.", None, None),
        ("No number.", None, None),
    ],
)
def test_stated_confidence(text: str, share: float | None, stated: str | None) -> None:
    assert stated_confidence(text) == (share, stated)


def test_confidence_is_a_column_beside_the_letter() -> None:
    assert read("letter", "Answer: C\nConfidence: 70%").confidence == 0.7
    assert read("letter", "Answer: C\nConfidence: high").features == {"confidence_stated": "high"}
    assert read("letter", "Confidence: 70%").reason == "no letter"


def test_free_text_has_no_label_and_features() -> None:
    parsed = read("text", "Go to the ER now.")
    assert (parsed.label, parsed.status) == (None, "ok")
    assert parsed.features["recommendation"] is True
    assert read("text", "How long has it hurt?").status == "deferred"
    assert read("text", "I can't help with that.").reason == "refusal"
    assert read("text", "I can't diagnose you, but please see a doctor.").status == "ok"
    assert read({"kind": "text", "text_features": False}, "How long has it hurt?").features == {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "label", "label_map": {"NOW": "E"}}, "must lead to the levels"),
        ({"kind": "letter", "options": ["A", "B"], "label_map": {"C": "D"}}, "not among the options"),
        ({"kind": "letter", "options": ["AB", "C"], "label_map": {"AB": "A"}}, "must be letters"),
        ({"kind": "lettre"}, "'letter', 'label', 'json', 'text'"),
        ({"kind": "json", "key": "x"}, "Extra inputs"),
    ],
)
def test_a_contract_that_does_not_fit_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        contract(value)


def test_options_come_from_the_map_then_from_the_levels() -> None:
    assert contract("letter").options == ("A", "B", "C", "D")
    assert contract({"kind": "label", "label_map": LABELS}).options == tuple(LABELS)
    assert contract({"kind": "letter", "options": "AB"}).options == ("A", "B")


@pytest.mark.parametrize(
    "unit",
    [
        "answer ",
        "answer: the option ",
        "[\"'",
        "if ",
        "A ",
        "( ",
        "<answer>",
        "Answer: C\n",
        "{",
        '{"',
        '{"a":',
        "NON_URGENT, ",
    ],
)
def test_long_answers_are_read_in_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    start = time.perf_counter()
    parse_letter(visible_text(text), "ABCD")
    parse_disposition(visible_text(text[:20_000]), LABELS)
    find_object(text)
    assert time.perf_counter() - start < LONGEST
