"""Text features: each rule on sentences that fulfil it, and on those that only look so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triagestats.collect.features import questions, requests, text_features


@pytest.mark.parametrize(
    "text",
    [
        "If you get worse, call 911.",
        "Call an ambulance if you faint.",
        "Go to the ER if:\n- you vomit blood\n- you faint",
        "Seek emergency care right away if you develop chest pain.",
        "Should you faint, go to the nearest emergency department.",
        "If you notice any of the following, get medical help immediately:\n- blood",
        "See your doctor today if the fever returns.",
        "When to go to the hospital: fainting.",
    ],
)
def test_escalation_on_a_condition(text: str) -> None:
    assert text_features(text).conditional_escalation


@pytest.mark.parametrize(
    "text",
    [
        "Go to the emergency room now.",
        "If it hurts, take paracetamol.",
        "The hospital is near.",
        "Drink water. Rest.",
    ],
)
def test_no_escalation_on_a_condition(text: str) -> None:
    assert not text_features(text).conditional_escalation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Do you have a fever?", ("Do you have a fever?",)),
        ("Any rash?", ("Any rash?",)),
        ("1. **How long** has it hurt?\n2. Where?", ("How long has it hurt?", "Where?")),
        ("您好？", ("您好？",)),
        ("Would you like me to list more?", ()),
        ("When should you worry?", ()),
        ("What does this mean?", ()),
        ("Why? Because it spreads.", ()),
        ('Ask the doctor: "Do I need an X-ray?"', ()),
        ("Is there anything else I can do?", ()),
        ("No question here.", ()),
    ],
)
def test_direct_questions(text: str, expected: tuple[str, ...]) -> None:
    assert questions(text) == expected
    assert text_features(text).n_questions == len(expected)
    assert text_features(text).direct_question is bool(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I need more information before I can advise.", True),
        ("Could you tell me your age.", True),
        ("Please let me know how long it has hurt.", True),
        ("I have a few questions.", True),
        ("It would help to know your age.", True),
        ("How old are you?", True),
        ("Let me know if you have any questions.", False),
        ("Tell me if there is anything else.", False),
        ("Rest and drink.", False),
    ],
)
def test_information_seeking(text: str, expected: bool) -> None:
    assert text_features(text).information_seeking is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please check your temperature.", True),
        ("What is your blood pressure?", True),
        ("Have you measured your blood sugar?", True),
        ("Do you have a thermometer at home?", True),
        ("Measure your child's peak flow twice a day.", True),
        ("They will check your blood pressure.", False),
        ("The nurse can take your temperature.", False),
        ("Your temperature is high.", False),
    ],
)
def test_measurement_requests(text: str, expected: bool) -> None:
    assert text_features(text).measurement_request is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Go to the ER now.", True),
        ("See your doctor within two days.", True),
        ("You can safely stay at home.", True),
        ("Stay home and rest.", True),
        ("I recommend going to the emergency room.", True),
        ("I suggest calling 911.", True),
        ("I suggest seeing a doctor.", True),
        ("Booking an appointment with your GP is wise.", True),
        ("Rest rather than going to the ER.", False),
        ("You don't need to see a doctor.", True),
        ("Rest at home. If you faint, call 911.", True),
        ("Call 911 if you faint.", False),
        ("If it lasts, see your doctor.", False),
        ("Should you see a doctor?", False),
        ("There is no need to go to the ER.", True),
        ("Chest pain has many causes.", False),
    ],
)
def test_recommendations(text: str, expected: bool) -> None:
    assert text_features(text).recommendation is expected


def test_an_offer_of_information_seeks_none() -> None:
    assert not text_features("Would you like more details?").deferred
    assert not text_features("Let me know if you need more information.").information_seeking
    assert text_features("I need more information.").deferred


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How long has it hurt? Do you have a fever?", True),
        ("How long has it hurt? Call 911 if you faint.", True),
        ("Please check your temperature and tell me.", True),
        ("Go to the ER now. How old are you?", False),
        ("Rest.", False),
        ("", False),
    ],
)
def test_an_answer_is_deferred_that_asks_and_recommends_nothing(text: str, expected: bool) -> None:
    assert text_features(text).deferred is expected


def test_requests_are_questions_and_what_asks_to_be_told() -> None:
    text = "Thanks. Tell me about the pain. Is it sharp? Please describe the rash. Tell me if you want more."
    assert requests(text) == ("Tell me about the pain.", "Is it sharp?", "Please describe the rash.")


@given(st.text(max_size=300))
def test_features_hold_together(text: str) -> None:
    found = text_features(text)
    assert found.direct_question == (found.n_questions > 0)
    assert found.information_seeking or not found.direct_question
    assert not (found.deferred and found.recommendation)
    assert set(questions(text)) <= set(requests(text))


@given(st.lists(st.sampled_from(["Do you have a fever?", "Go to the ER now.", "Rest."]), max_size=6))
def test_questions_are_counted_wherever_they_stand(parts: list[str]) -> None:
    assert text_features("\n".join(parts)).n_questions == parts.count("Do you have a fever?")
    assert text_features(" ".join(parts)).recommendation is ("Go to the ER now." in parts)
