"""Protocols: what they ask, what they pass on, what they read."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import triagestats as ts
from triagestats.collect.contract import Misfit, Scenario
from triagestats.collect.protocols.common import in_seeded_order, list_field
from triagestats.collect.protocols.free_response import open_question
from triagestats.collect.protocols.masking import mask_files, mask_stem
from triagestats.collect.protocols.registry import PROTOCOLS
from triagestats.collect.templates import packaged_prompt
from triagestats.errors import ArgumentError, DataError, ReadError

CASE = Scenario(
    "s1",
    {
        "text": 'A {40}-year-old, "acute" {{ pain }}.',
        "patient_text": "My chest hurts. What should I do?",
        "stem": "He coughs. Which of the following is the most likely diagnosis?",
        "options": ["flu", "asthma", "TB", "croup"],
    },
    gold="C",
)


def test_every_prompt_of_the_package_is_used_and_ends_without_a_blank_line() -> None:
    folder = Path(ts.__path__[0]) / "collect" / "prompts"
    source = "".join(path.read_text(encoding="utf-8") for path in (folder.parent).rglob("*.py"))
    names = sorted(path.stem for path in folder.glob("*.j2"))
    assert len(names) == 16
    for name in names:
        assert f'"{name}"' in source
        assert packaged_prompt(name).source.strip() == packaged_prompt(name).source


def test_the_two_by_two_is_one_definition(scripted: ModuleType) -> None:
    factors = {"wording": ["source", "rewrite"], "output": ["letter", "free_text"]}
    conditions = scripted.built("wording_output", scale=scripted.SCALE, factors=factors)
    assert [condition.name for condition in conditions] == [
        "c: wording=source, output=letter",
        "c: wording=source, output=free_text",
        "c: wording=rewrite, output=letter",
        "c: wording=rewrite, output=free_text",
    ]
    assert dict(conditions[2].factors) == {"wording": "rewrite", "output": "letter"}
    trace, ask = scripted.ran(conditions[0], CASE, "Answer: C")
    assert trace.parsed[0].label == "C"
    assert ask.calls[0].last.startswith('A {40}-year-old, "acute" {{ pain }}.\n\nWhich of these')
    assert "C: doctor in two days\nD: emergency now\n\nEnd" in ask.calls[0].last
    trace, ask = scripted.ran(conditions[1], CASE, "Go to the ER now.")
    assert trace.parsed[0].label is None
    assert "in your own words" in ask.calls[0].last
    _, ask = scripted.ran(conditions[3], CASE, "Go to the ER now.")
    assert ask.calls[0].messages == [{"role": "user", "content": "My chest hurts. What should I do?"}]


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ({"base_only": True}, "Go only by what this message says"),
        ({"no_questions": True}, "Do not ask anything back"),
        ({"word_cap": 60}, "no more than 60 words"),
        ({"state_confidence": True}, "`Confidence: N%`"),
    ],
)
def test_each_switch_adds_one_paragraph(scripted: ModuleType, switch: dict[str, Any], said: str) -> None:
    texts = []
    for more in ({}, switch):
        (condition,) = scripted.built("wording_output", scale=scripted.SCALE, **more)
        _, ask = scripted.ran(condition, CASE, "Answer: C")
        texts.append(ask.calls[0].last)
    assert texts[1].startswith(f"{texts[0]}\n\n")
    assert said in texts[1].removeprefix(texts[0])
    assert "\n\n" not in texts[1].removeprefix(f"{texts[0]}\n\n")


def test_one_at_a_time_differs_from_the_base_in_one_factor(scripted: ModuleType) -> None:
    factors = {"no_questions": [False, True], "word_cap": [0, 60, 120], "state_confidence": [False, True]}
    conditions = scripted.built(
        "wording_output", scale=scripted.SCALE, factors=factors, design="one_at_a_time"
    )
    assert [condition.name for condition in conditions] == [
        "c",
        "c, no_questions=yes",
        "c, word_cap=60",
        "c, word_cap=120",
        "c, state_confidence=yes",
    ]
    assert all(not condition.factors for condition in conditions)
    base, *others = (condition.protocol.model_dump() for condition in conditions)
    assert [[key for key in one if one[key] != base[key]] for one in others] == [
        ["no_questions"],
        ["word_cap"],
        ["word_cap"],
        ["state_confidence"],
    ]


def test_a_full_grid_crosses_every_level(scripted: ModuleType) -> None:
    factors = {
        "base_only": [False, True],
        "word_cap": [0, 60],
        "system": {"none": False, "brief": "Be brief."},
    }
    conditions = scripted.built("wording_output", scale=scripted.SCALE, factors=factors)
    cells = {tuple(condition.factors.values()) for condition in conditions}
    assert cells == {(a, b, c) for a in ("no", "yes") for b in ("0", "60") for c in ("none", "brief")}
    systems = {condition.factors["system"]: condition.protocol.system for condition in conditions}
    assert systems["none"] is None
    assert systems["brief"].source == "Be brief."


def test_an_instruction_is_prepended_and_its_labels_are_mapped(scripted: ModuleType) -> None:
    label_map = {"ED_NOW": "D", "DOCTOR_SOON": "C", "HOME": "A"}
    (condition,) = scripted.built(
        "prompt",
        instruction="Begin with one of ED_NOW, DOCTOR_SOON, HOME.",
        system="You are a nurse.",
        template="{{ text }}",
        answer={"kind": "label", "label_map": label_map},
    )
    trace, ask = scripted.ran(condition, CASE, "**Disposition:** ED_NOW, at once.")
    assert trace.parsed[0].label == "D"
    assert ask.calls[0].messages == [
        {"role": "system", "content": "You are a nurse."},
        {
            "role": "user",
            "content": 'Begin with one of ED_NOW, DOCTOR_SOON, HOME.\n\nA {40}-year-old, "acute" {{ pain }}.',
        },
    ]


@pytest.mark.parametrize(
    ("style", "steps", "ignores"),
    [("B1", False, False), ("B2", True, False), ("B3", False, True), ("both", True, True)],
)
def test_the_four_styles(scripted: ModuleType, style: str, steps: bool, ignores: bool) -> None:
    (condition,) = scripted.built("style", style=style)
    trace, ask = scripted.ran(condition, CASE, "Answer: B")
    said = ask.calls[0].last
    assert ("step by step" in said, "dialect" in said) == (steps, ignores)
    assert "A. flu\nB. asthma\nC. TB\nD. croup\n" in said
    assert trace.parsed[0].label == "B"


def test_shuffled_options_give_the_letter_of_the_original_order(scripted: ModuleType) -> None:
    (condition,) = scripted.built("style", shuffle=True)
    seen = set()
    for number in range(20):
        scenario = Scenario(f"s{number}", CASE.fields)
        trace, ask = scripted.ran(condition, scenario, "Answer: A")
        first = ask.calls[0].last.split("\nA. ")[1].split("\n")[0]
        letter = "ABCD"[["flu", "asthma", "TB", "croup"].index(first)]
        assert trace.parsed[0].label == letter
        assert trace.features["option_order"].split()[0] == letter
        seen.add(trace.features["option_order"])
        again, _ = scripted.ran(condition, scenario, "Answer: A")
        assert again == trace
    assert len(seen) > 5


@given(st.integers(1, 8), st.integers(), st.text(max_size=5))
def test_a_seeded_order_is_a_permutation(n: int, seed: int, name: str) -> None:
    order = in_seeded_order(["x"] * n, seed, name)
    assert sorted(order) == list(range(n))
    assert order == in_seeded_order(["x"] * n, seed, name)


def test_the_seed_of_the_study_orders_the_options(scripted: ModuleType) -> None:
    protocols = [
        scripted.built("style", scripted.setting(seed=seed), shuffle=True)[0].protocol for seed in (1, 2)
    ]
    assert [protocol.seed for protocol in protocols] == [1, 2]


def test_rewrite_then_reason_hides_the_story(scripted: ModuleType) -> None:
    (condition,) = scripted.built("two_step", first="rewrite", scale=scripted.SCALE)
    trace, ask = scripted.ran(condition, CASE, "<think>hm</think>A man with pain.", "Answer: D")
    assert ask.roles == ["rewrite", "reason"]
    assert ask.calls[0].last.endswith(CASE.fields["text"])
    assert CASE.fields["text"] not in ask.calls[1].last
    assert "A man with pain." in ask.calls[1].last
    assert "hm" not in ask.calls[1].last.split()
    assert trace.parsed[0].label == "D"
    assert trace.features == {"first_text": "<think>hm</think>A man with pain."}
    assert [message["role"] for message in trace.transcript] == ["user", "assistant", "user", "assistant"]


def test_extract_then_reason_passes_the_object_on(scripted: ModuleType) -> None:
    schema = {"age": "number", "pain": {"where": "text"}}
    (condition,) = scripted.built(
        "two_step", first="extract", schema=schema, scale=scripted.SCALE, json_mode=True
    )
    said = '```json\n{"age": 40, "pain": {"where": "胸"}}\n```'
    trace, ask = scripted.ran(condition, CASE, said, "Answer: D")
    assert json.dumps(schema, indent=2) in ask.calls[0].last
    assert ask.calls[0].parameters == {"response_format": {"type": "json_object"}}
    assert ask.calls[1].parameters == {}
    assert CASE.fields["text"] not in ask.calls[1].last
    assert '"where": "胸"' in ask.calls[1].last
    assert "```" not in ask.calls[1].last
    assert trace.features["extraction"] == "json"


def test_json_that_cannot_be_read_is_passed_on_raw(scripted: ModuleType) -> None:
    (condition,) = scripted.built("two_step", first="extract", scale=scripted.SCALE)
    trace, ask = scripted.ran(condition, CASE, '{"age": 40, "pain": ', "Answer: D")
    assert '{"age": 40, "pain":' in ask.calls[1].last
    assert trace.features["extraction"] == "raw"


def test_story_plus_schema_gives_both(scripted: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"only": "this"}', encoding="utf-8")
    (condition,) = scripted.built(
        "two_step",
        scripted.setting(tmp_path),
        first="story_and_schema",
        schema={"file": "schema.json"},
        scale=scripted.SCALE,
    )
    _, ask = scripted.ran(condition, CASE, '{"only": "pain"}', "Answer: D")
    assert '"only": "this"' in ask.calls[0].last
    assert CASE.fields["text"] in ask.calls[1].last
    assert '"only": "pain"' in ask.calls[1].last


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("Which of the following is the most likely diagnosis?", "What is the most likely diagnosis?"),
        ("Which one of the following drugs should be given?", "Which drugs should be given?"),
        ("Which of the following would you do?", "What would you do?"),
        ("Select the best answer below: the cause is", "State: the cause is"),
        ("What is it? (Choose one answer)", "What is it?"),
        ("What is the diagnosis?", "What is the diagnosis?"),
    ],
)
def test_questions_are_opened_by_patterns(stem: str, expected: str) -> None:
    assert open_question(stem) == expected


def test_free_response_shows_no_options(scripted: ModuleType) -> None:
    (condition,) = scripted.built("free_response")
    trace, ask = scripted.ran(condition, CASE, "Asthma.")
    assert "What is the most likely diagnosis?" in ask.calls[0].last
    assert not any(option in ask.calls[0].last for option in CASE.fields["options"])
    assert trace.features == {"asks_openly": True}
    assert trace.parsed[0].status == "ok"
    assert not condition.scored


def test_patterns_are_replaceable(scripted: ModuleType) -> None:
    (condition,) = scripted.built(
        "free_response", patterns=[{"find": "he (coughs)", "replace": r"she \1"}], template="{{ question }}"
    )
    trace, ask = scripted.ran(condition, CASE, "Asthma.")
    assert ask.calls[0].last == "she coughs. Which of the following is the most likely diagnosis?"
    assert trace.features == {"asks_openly": False}


def test_the_filter_leaves_out_what_cannot_be_answered(scripted: ModuleType) -> None:
    (condition,) = scripted.built("free_response", filter={"model": "other"})
    trace, ask = scripted.ran(condition, CASE, '{"answerable": false, "why": "many"}')
    assert (ask.calls[0].role, ask.calls[0].model, ask.calls[0].parameters) == (
        "filter",
        "other",
        {"temperature": 0},
    )
    assert trace.parsed[0].status == "unscored"
    assert trace.features["answerable"] is False
    trace, ask = scripted.ran(condition, CASE, '{"answerable": "yes"}', "Asthma.")
    assert ask.roles == ["filter", "answer"]
    assert trace.features["answerable"] is True
    trace, _ = scripted.ran(condition, CASE, "Who knows?", "Asthma.")
    assert trace.features["answerable"] is None


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        (0, "a b\n c d"),
        (25, "a b\n c [MASK]"),
        (50, "a b\n [MASK] [MASK]"),
        (75, "a [MASK]\n [MASK] [MASK]"),
        (100, "[MASK] [MASK]\n [MASK] [MASK]"),
    ],
)
def test_the_last_words_are_masked(percent: int, expected: str) -> None:
    assert mask_stem("a b\n c d", percent) == expected


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=40), st.integers(0, 100))
def test_masking_keeps_the_beginning_and_the_number_of_words(words: list[str], percent: int) -> None:
    masked = mask_stem(" ".join(words), percent).split()
    count = masked.count("[MASK]")
    assert abs(count - len(words) * percent / 100) <= 0.5
    assert masked == words[: len(words) - count] + ["[MASK]"] * count


def test_one_static_file_a_level(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [{"id": "q1", "stem": "He has a fever.", "options": ["flu", "TB"], "gold": "A", "note": "ä"}]
    items.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    files = mask_files(items, tmp_path / "masked")
    assert [path.name for path in files] == [f"items-mask{level:03d}.jsonl" for level in (25, 50, 75, 100)]
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert [row.pop("stem") for row in found] == [
        "He has a [MASK]",
        "He has [MASK] [MASK]",
        "He [MASK] [MASK] [MASK]",
        "[MASK] [MASK] [MASK] [MASK]",
    ]
    assert [row.pop("mask") for row in found] == [25, 50, 75, 100]
    assert all(row == {key: rows[0][key] for key in ("id", "options", "gold", "note")} for row in found)


def test_mask_files_refuse(tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("id,stem\nq1,He coughs.\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="`levels` must be percentages"):
        mask_files(items, tmp_path, levels=(0, 150))
    with pytest.raises(DataError, match=r"item 1 of 'items\.csv' has no text under 'question'"):
        mask_files(items, tmp_path, field="question")
    with pytest.raises(ReadError):
        mask_files(tmp_path / "none.jsonl", tmp_path)


@pytest.mark.parametrize(
    "value", [["a", "b"], '["a", "b"]', "a\n\nb\n", {"B": "b", "A": "a"}, '{"A": "a", "B": "b"}', ("a", "b")]
)
def test_a_list_of_a_scenario_has_many_forms(value: Any) -> None:
    assert list_field(Scenario("s", {"options": value}), "options", "options_field") == ("a", "b")


@pytest.mark.parametrize("value", [None, "", [], "[1, ", [{"a": 1}], 3])
def test_what_is_no_list_is_refused(value: Any) -> None:
    with pytest.raises(Misfit):
        list_field(Scenario("s", {"options": value}), "options", "options_field")


@pytest.mark.parametrize(
    ("keys", "path", "message"),
    [
        ({"protocol": "chat"}, ("protocol",), "must be one of prompt, wording_output, style"),
        ({"protocol": "style", "design": "half"}, ("design",), "must be one of grid, one_at_a_time"),
        ({"protocol": "style", "design": "grid"}, ("design",), "needs `factors`"),
        ({"protocol": "style", "factors": {"stile": ["B1", "B2"]}}, ("factors", "stile"), "is no key of"),
        ({"protocol": "style", "factors": {"mask": 50}}, ("factors", "mask"), "must be a list"),
        ({"protocol": "style", "factors": {"mask": [50]}}, ("factors", "mask"), "two or more"),
        ({"protocol": "style", "factors": {"mask": [50, 50]}}, ("factors", "mask"), "two or more"),
        ({"protocol": "style", "factors": {"style": ["B1", "B9"]}}, ("factors", "style", 1), "should be"),
        ({"protocol": "style", "mask": 5, "factors": {"mask": [0, 50]}}, ("factors", "mask"), "sets, too"),
        ({"protocol": "style", "factors": {"answer": [{}, {}]}}, ("factors", "answer"), "needs a label"),
    ],
)
def test_conditions_that_do_not_fit_say_where(
    scripted: ModuleType, keys: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    protocol = keys.pop("protocol")
    with pytest.raises(Misfit, match=message) as caught:
        scripted.built(protocol, **keys)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("protocol", "keys", "message"),
    [
        ("wording_output", {}, "`scale` must say what the letters mean"),
        ("prompt", {"answer": "letter"}, "template"),
        ("prompt", {"template": "x", "answer": {"kind": "letter"}, "sistem": "y"}, "sistem"),
        ("prompt", {"template": "x", "answer": {"kind": "letter"}, "where": None}, "must name its `options`"),
        ("free_response", {"patterns": [{"find": "(", "replace": ""}]}, "no regular expression"),
        ("two_step", {"schema": {"file": "none.json"}}, "cannot be read as JSON"),
    ],
)
def test_keys_that_do_not_fit_are_refused(
    scripted: ModuleType, protocol: str, keys: dict[str, Any], message: str
) -> None:
    where = scripted.setting(levels=None) if "where" in keys else scripted.setting()
    keys.pop("where", None)
    with pytest.raises(ValidationError, match=message):
        scripted.built(protocol, where, **keys)


@pytest.mark.parametrize(
    ("protocol", "keys", "field"),
    [
        ("wording_output", {"scale": {"A": "x", "B": "y"}, "wording": "rewrite"}, "patient_text"),
        ("style", {}, "stem"),
        ("style", {}, "options"),
        ("two_step", {"answer": "text"}, "text"),
        ("free_response", {}, "stem"),
        ("rewriting", {"auditor": "other"}, "text"),
        ("conversation", {}, "text"),
        ("conversation", {}, "script"),
    ],
)
def test_a_scenario_must_have_what_the_protocol_needs(
    scripted: ModuleType, protocol: str, keys: dict[str, Any], field: str
) -> None:
    (condition,) = scripted.built(protocol, **keys)
    fields = {**CASE.fields, "script": {"fever": "No."}}
    condition.protocol.check(Scenario("s", fields))
    with pytest.raises(Misfit, match=f"names '{field}'"):
        condition.protocol.check(Scenario("s", {key: v for key, v in fields.items() if key != field}))


def test_prompts_of_the_package_use_only_what_their_protocol_gives(scripted: ModuleType) -> None:
    tables: dict[str, dict[str, Any]] = {
        "prompt": {"template": "x", "answer": "text"},
        "wording_output": {"scale": scripted.SCALE},
        "free_response": {"filter": {"model": "other"}},
        "rewriting": {"auditor": "other"},
        "conversation": {"matcher": {"kind": "model", "model": "other"}},
    }
    for protocol in PROTOCOLS:
        (condition,) = scripted.built(protocol, **tables.get(protocol, {}))
        for slot in condition.protocol.slots().values():
            assert slot.template.names <= slot.provides


def test_a_prompt_is_replaced_by_a_file(scripted: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("{{ stem }} // {{ letters | join }}", encoding="utf-8")
    (condition,) = scripted.built("style", scripted.setting(tmp_path), template={"file": "mine.txt"})
    _, ask = scripted.ran(condition, CASE, "A")
    assert ask.calls[0].last == f"{CASE.fields['stem']} // ABCD"


def test_who_judges_and_what_is_scored(scripted: ModuleType) -> None:
    where = scripted.setting(label_judges=("d",))
    grid = {"scale": scripted.SCALE, "factors": {"output": ["letter", "free_text"]}}
    for judges, expected in ((None, [(), None]), (("d",), [(), ("d",)])):
        more = {} if judges is None else {"judges": list(judges)}
        cells = scripted.built("wording_output", where, **grid, **more)
        assert [cell.judges for cell in cells] == expected
        assert [cell.scored for cell in cells] == [True, True]
    cells = scripted.built("wording_output", where, **grid, judges=["e"])
    assert [cell.scored for cell in cells] == [True, False]
    (letters,) = scripted.built("wording_output", where, scale=scripted.SCALE, judges=["d"])
    assert letters.judges == ("d",)
    (rewrites,) = scripted.built("rewriting", where, auditor="other")
    assert (rewrites.judges, rewrites.scored) == ((), False)
    (free,) = scripted.built("free_response", scripted.setting())
    assert (free.judges, free.scored) == (None, False)
    (forced,) = scripted.built("free_response", scripted.setting(), scored=True)
    assert forced.scored


def test_the_two_by_two_from_a_server(chat: ModuleType, scripted: ModuleType) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = body["messages"][-1]["content"]
        if "primary recommendation" in said:
            return '{"label": "D"}' if "ER" in said.split("The reply:")[1] else '{"label": "NONE"}'
        if "Answer: X" in said:
            return "Answer: C"
        return "Go to the ER now." if "My chest" in said else "How old are you?"

    with chat.ChatServer(reply) as server:
        table = ts.collect(
            {
                "levels": ["A", "B", "C", "D"],
                "scenarios": {"rows": [{"id": "s1", "gold": "D", **CASE.fields}]},
                "models": [
                    {"name": "m", "base_url": server.url},
                    {"name": "grader", "base_url": server.url, "answers": False},
                ],
                "judges": [{"name": "j", "model": "grader", "scale": scripted.SCALE}],
                "conditions": [
                    {
                        "name": "w",
                        "protocol": "wording_output",
                        "scale": scripted.SCALE,
                        "factors": {"wording": ["source", "rewrite"], "output": ["letter", "free_text"]},
                    }
                ],
            },
            store=":memory:",
            progress=False,
        )
    rows = table.frame.select("wording", "output", "judge", "response", "score", "status").sort(
        "wording", "output"
    )
    assert rows.rows() == [
        ("rewrite", "free_text", "j", "D", 1.0, "ok"),
        ("rewrite", "letter", None, "C", 0.0, "ok"),
        ("source", "free_text", "j", None, None, "deferred"),
        ("source", "letter", None, "C", 0.0, "ok"),
    ]
    assert server.count == 6


def test_the_other_protocols_from_a_server(chat: ModuleType, scripted: ModuleType) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = body["messages"][-1]["content"]
        if "answerable" in said:
            return '{"answerable": true}'
        if "reference" in said.lower():
            return '{"equivalent": true}'
        if "JSON object with these keys" in said:
            return "no object"
        return "It is flu." if "own words" in said else "Answer: A"

    with chat.ChatServer(reply) as server:
        table = ts.collect(
            {
                "scenarios": {"rows": [{"id": "s1", "gold": "A", "gold_answer": "influenza", **CASE.fields}]},
                "models": [{"name": "m", "base_url": server.url}],
                "judges": [{"name": "j", "kind": "equivalence", "model": "m"}],
                "conditions": [
                    {"name": "mcq", "protocol": "style", "factors": {"style": ["B1", "B4"]}},
                    {
                        "name": "two",
                        "protocol": "two_step",
                        "first": "extract",
                        "scale": {"A": "home", "B": "doctor"},
                    },
                    {"name": "free", "protocol": "free_response", "filter": {"model": "m"}},
                ],
            },
            store=":memory:",
            progress=False,
            metric="correct",
        )
    rows = table.frame.select("condition", "response", "score", "status").sort("condition").rows()
    assert rows == [
        ("mcq: style=B1", "A", 1.0, "ok"),
        ("mcq: style=B4", "A", 1.0, "ok"),
        ("two", "A", 1.0, "ok"),
    ]
