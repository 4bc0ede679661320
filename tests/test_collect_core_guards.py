"""What would lose, mix or spoil answers in silence is refused beforehand, or told."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from openai import OpenAI

import triagestats as ts
from triagestats.collect.sheets import blind_sheet, next_versions, replace_rewrites, review_sheet
from triagestats.collect.study_file import read_study
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, ReadError

REVIEW = {
    "scenario": ["a", "b"],
    "rewrite_version": [1, 1],
    "fact_faithful": ["yes", "no"],
    "sound": ["yes", "yes"],
    "same_urgency": ["yes", "yes"],
    "plausibility": [4, 5],
    "major_issue": ["no", "no"],
}
PASSED = json.dumps({"added": [], "dropped": [], "changed": [], "same_urgency": True})
TOO_LONG = 10**30
"""Beyond what SQLite and polars hold as whole numbers."""


def study(url: str = "http://127.0.0.1:9/v1", n: int = 2, **keys: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "levels": ["A", "B"],
        "scenarios": {"rows": [{"id": f"s{i}", "story": f"Story {i}.", "gold": "A"} for i in range(n)]},
        "models": [
            {"name": "m", "base_url": url, "retries": 0},
            {"name": "j", "base_url": url, "retries": 0, "answers": False},
        ],
        "conditions": [{"name": "c", "template": "{{ story }}", "answer": {"kind": "letter"}}],
    }
    return made | keys


def prompt(name: str, template: str = "{{ story }}", answer: str = "letter") -> dict[str, Any]:
    return {"name": name, "template": template, "answer": {"kind": answer}}


def collected(
    chat: ModuleType, reply: Callable[[Any], Any], made: dict[str, Any], **keys: Any
) -> pl.DataFrame:
    """The table of a study, asked of a server that replies so."""
    with chat.ChatServer(reply=reply) as server:
        for model in made["models"]:
            model["base_url"] = server.url
        return ts.collect(made, store=":memory:", progress=False, **keys).frame


# What a study says


@pytest.mark.parametrize("name", ["text", "latency", "call", "returned_model"])
def test_a_carried_column_replaces_none_of_the_answers(name: str) -> None:
    made = study()
    made["scenarios"]["carry"] = [name]
    made["scenarios"]["rows"] = [row | {name: "mine"} for row in made["scenarios"]["rows"]]
    with pytest.raises(ArgumentError) as caught:
        read_study(made)
    assert str(caught.value) == (
        f"`scenarios.carry[1]`: {name!r} is a column that the response table fills itself; rename it, or do "
        "not carry it"
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ story | shout }}", "No filter named 'shout'"),
        ("{{ [1, 2] | random }}", "No filter named 'random'"),
        ("{{ lipsum() }}", "'lipsum', which is not defined"),
        ("{{ story + 1 }}", "cannot be filled in: can only concatenate str"),
        ("{{ story.age }}", "'str object' has no attribute 'age'"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% include 'other' %}", "no loader"),
    ],
)
def test_a_template_that_fails_is_found_before_any_call(template: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=r"^`conditions\[1\]") as caught:
        read_study(study(conditions=[prompt("c", template)]))
    assert said in str(caught.value)


def test_one_scenario_that_a_template_fails_for_is_named() -> None:
    made = study(conditions=[prompt("c", "{{ age + 1 }}")])
    for row, age in zip(made["scenarios"]["rows"], (40, "forty"), strict=True):
        row["age"] = age
    with pytest.raises(ArgumentError, match=r"\(scenario 's1'\)$"):
        read_study(made)


def test_judges_that_would_share_every_verdict_are_refused() -> None:
    made = study(
        conditions=[prompt("c", answer="text")], judges=[{"name": n, "model": "j"} for n in ("one", "two")]
    )
    with pytest.raises(ArgumentError) as caught:
        read_study(made)
    assert str(caught.value).startswith("`judges[2]`: 'two' judges exactly as 'one' does")
    made["judges"][1]["rubric"] = "Be strict."
    assert list(read_study(made).judges) == ["one", "two"]


def test_half_a_character_is_refused() -> None:
    made = study()
    made["scenarios"]["rows"][1]["story"] = "a\ud800b"
    with pytest.raises(ArgumentError, match=r"`scenarios.rows\[2\]`: holds text that is not Unicode"):
        read_study(made)


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "https://api.openai.com/v1/"])
def test_openai_by_its_address_wants_its_key(url: str) -> None:
    assert read_study(study(url)).models["m"].key == "OPENAI_API_KEY"


@pytest.mark.parametrize("name", ["api_key", "extra_headers", "Authorization"])
def test_a_key_is_no_parameter(name: str) -> None:
    made = study()
    made["models"][0]["parameters"] = {name: "secret-1"}
    with pytest.raises(
        ArgumentError, match=r"are sent in the body and stored; give a key by an env"
    ) as caught:
        read_study(made)
    assert "secret-1" not in str(caught.value)


@pytest.mark.parametrize("client", ["key", OpenAI(api_key="none"), {"m": None, "j": None}])
def test_a_client_that_cannot_be_awaited_is_refused(client: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^`client` must be an openai.AsyncOpenAI, or a mapping"):
        ts.collect(study(), client, store=":memory:", progress=False)


# What may change


def test_a_first_judge_may_come_later(chat: ModuleType, tmp_path: Path) -> None:
    def reply(body: Any) -> str:
        return '{"label": "A"}' if "level of care" in body["messages"][-1]["content"] else "Rest at home."

    with chat.ChatServer(reply=reply) as server:
        made = study(server.url, conditions=[prompt("c", answer="text")])
        ts.collect(made, store=tmp_path / "s.sqlite", progress=False)
        judged = made | {"judges": [{"name": "late", "model": "j"}]}
        table = ts.collect(judged, store=tmp_path / "s.sqlite", resume=True, progress=False)
        assert server.count == 3  # two answers, and one verdict: they say the same
    assert table.frame["score"].to_list() == [1.0, 1.0]


def test_a_review_makes_new_versions_in_the_same_store(chat: ModuleType, tmp_path: Path) -> None:
    with chat.ChatServer(
        reply=lambda body: (
            PASSED
            if body["messages"][-1]["content"].startswith("Compare")
            else f"Told the {len(server.requests)}. time. What should I do?"
        )
    ) as server:
        made = study(server.url)
        made["conditions"] = [{"name": "r", "protocol": "rewriting", "auditor": "j", "source_field": "story"}]
        first = ts.collect(made, store=tmp_path / "s.sqlite", progress=False)
        made["conditions"][0]["versions"] = {"s0": 1, "s1": 2}
        second = ts.collect(made, store=tmp_path / "s.sqlite", resume=True, progress=False)
        assert server.count == 6
        made["conditions"][0]["versions"] = {"s0": 1}
        with pytest.raises(ArgumentError, match=r"conditions.r.versions.s1 is gone"):
            ts.collect(made, store=tmp_path / "s.sqlite", resume=True, progress=False)
    assert second.frame["rewrite_version"].to_list() == [1, 2]
    assert (first.frame["text"] == second.frame["text"]).to_list() == [True, False]
    assert [note.message for note in second.notes if note.code == "study_grown"] == [
        "Added since the store was made: conditions.r.versions.s1 (1 to 2)."
    ]


def test_answers_of_a_model_that_has_stopped_are_judged(chat: ModuleType, tmp_path: Path) -> None:
    n = 40

    def reply(body: Any) -> str:
        asked = body["messages"][-1]["content"]
        return '{"label": "A"}' if "level of care" in asked else f"Rest at home. {asked}"

    def fault(_: int, body: Any) -> Any:
        return chat.Fault("status", codes[-1]) if body["messages"][-1]["content"] == "Story 0." else None

    codes = [503]
    with chat.ChatServer(reply=reply, fault=fault) as server:
        made = study(server.url, n, conditions=[prompt("c", answer="text")])
        made["models"][0]["concurrency"] = 1
        ts.collect(made, store=tmp_path / "s.sqlite", progress=False)
        codes.append(404)
        made["judges"] = [{"name": "late", "model": "j"}]
        table = ts.collect(made, store=tmp_path / "s.sqlite", resume=True, progress=False)
    assert dict(table.frame["status"].value_counts().iter_rows()) == {"ok": n - 1, "error": 1}


@pytest.mark.parametrize("name", ["gold", "reads", "levels", "models"])
def test_names_of_conditions_are_no_keys(chat: ModuleType, tmp_path: Path, name: str) -> None:
    with chat.ChatServer() as server:
        made = study(server.url, conditions=[prompt(name), prompt("other", "Now: {{ story }}")])
        ts.collect(made, store=tmp_path / "s.sqlite", progress=False)
        for conditions, said in (
            (
                [prompt(name, "New: {{ story }}"), made["conditions"][1]],
                f"conditions.{name}.template.source was",
            ),
            (made["conditions"][1:], f"conditions.{name} is gone"),
        ):
            with pytest.raises(ArgumentError, match=f"has changed since its store was made: {said}"):
                ts.collect(
                    made | {"conditions": conditions},
                    store=tmp_path / "s.sqlite",
                    reparse=True,
                    progress=False,
                )


# What comes back


def test_judges_see_no_thoughts(chat: ModuleType) -> None:
    seen: list[str] = []

    def reply(body: Any) -> str:
        asked = body["messages"][-1]["content"]
        if "level of care" not in asked:
            return "<think>Go to the ER?</think>Rest at home."
        seen.append(asked)
        return '{"label": "A"}'

    made = study(n=1, conditions=[prompt("c", answer="text")], judges=[{"name": "x", "model": "j"}])
    frame = collected(chat, reply, made)
    assert frame["text"].to_list() == ["<think>Go to the ER?</think>Rest at home."]
    assert len(seen) == 1
    assert "Rest at home." in seen[0]
    assert "ER?" not in seen[0]


def test_why_there_is_nothing_to_judge_is_told(chat: ModuleType) -> None:
    made = study(n=1, conditions=[prompt("c", answer="text")], judges=[{"name": "x", "model": "j"}])
    frame = collected(chat, lambda _: {"role": "assistant", "content": None, "refusal": "No."}, made)
    assert frame.select("status", "reason").rows() == [("unparsed", "refusal")]


def test_a_rewrite_is_known_by_its_writer_and_not_its_auditor(chat: ModuleType) -> None:
    made = study(n=1)
    made["models"][1]["model"] = "strict"
    made["conditions"] = [{"name": "r", "protocol": "rewriting", "auditor": "j", "source_field": "story"}]
    frame = collected(
        chat,
        lambda body: PASSED if body["model"] == "strict" else "It hurts. What should I do?",
        made,
    )
    assert frame["n_calls"].to_list() == [2]
    assert "strict" not in frame["returned_model"][0]


@pytest.mark.parametrize("failure", ["no answer", "no verdict", "nothing to judge"])
def test_every_item_of_a_recall_has_a_row_whatever_fails(chat: ModuleType, failure: str) -> None:
    asked = {"no answer": 1, "no verdict": 2}.get(failure)
    made = study(n=1, conditions=[prompt("c", answer="text")])
    made["scenarios"]["rows"][0]["items"] = ["rest", "fluids"]
    made["judges"] = [{"name": "recall", "kind": "recall", "model": "j"}]
    with chat.ChatServer(
        reply=lambda _: "" if failure == "nothing to judge" else "Rest.",
        fault=lambda number, _: chat.Fault("status", 500) if number == asked else None,
    ) as server:
        for model in made["models"]:
            model["base_url"] = server.url
        frame = ts.collect(made, store=":memory:", progress=False, metric="recall 2").frame
    assert frame["metric"].to_list() == ["recall 2"]
    assert frame["status"].to_list() == ["unparsed" if asked is None else "error"]


def completion(**keys: Any) -> str:
    message = {"role": "assistant", "content": "Größe 大: Answer: A"}
    return json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}], **keys}, ensure_ascii=False
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [("text/plain; charset=iso-8859-1", completion()), ("application/json", "\ufeff" + completion())],
    ids=["another charset", "byte order mark"],
)
def test_json_is_utf8_whatever_its_header_says(chat: ModuleType, kind: str, text: str) -> None:
    with chat.ChatServer(fault=lambda *_: chat.Fault("text", 200, {"content-type": kind}, text)) as server:
        frame = ts.collect(study(server.url, 1), store=":memory:", progress=False).frame
    assert frame["text"].to_list() == ["Größe 大: Answer: A"]


@pytest.mark.parametrize("count", [TOO_LONG, -5])
def test_a_count_that_is_none_is_unknown(chat: ModuleType, count: int) -> None:
    text = completion(usage={"prompt_tokens": count, "completion_tokens": 3})
    with chat.ChatServer(fault=lambda *_: chat.Fault("text", text=text)) as server:
        frame = ts.collect(study(server.url, 1), store=":memory:", progress=False).frame
    assert frame.select("status", "prompt_tokens", "completion_tokens").rows() == [("ok", None, 3)]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ((True, 1), ["true", "1"]),
        ((True, False), [True, False]),
        ((1, 2.5), [1.0, 2.5]),
        ((True, "x"), ["true", "x"]),
        ((TOO_LONG**2, 1), [str(TOO_LONG**2), "1"]),
    ],
)
def test_kept_values_stay_what_they_are(chat: ModuleType, values: tuple[Any, Any], kept: list[Any]) -> None:
    def reply(body: Any) -> str:
        at = int("Story 1." in body["messages"][-1]["content"])
        return json.dumps({"answer": "A", "sure": values[at]})

    made = study()
    made["conditions"][0]["answer"] = {"kind": "json", "keep": ["sure"]}
    assert collected(chat, reply, made).sort("scenario")["json_sure"].to_list() == kept


# Files


def test_the_scenarios_are_not_overwritten(chat: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "study.parquet"
    pl.DataFrame({"id": ["a"], "story": ["x"], "gold": ["A"]}).write_parquet(file)
    before = file.read_bytes()
    made = study(scenarios={"file": str(file)})
    with pytest.raises(ArgumentError, match=r"^`output` is the file of the scenarios"):
        ts.collect(made, store=":memory:", output=tmp_path / "." / "study.parquet")
    assert file.read_bytes() == before


def test_an_output_that_is_a_folder_is_refused_before_any_call(tmp_path: Path) -> None:
    (tmp_path / "out.parquet").mkdir()
    with pytest.raises(ArgumentError, match=r"out.parquet' is a folder; name a file in it$"):
        ts.collect(study(), store=":memory:", output=tmp_path / "out.parquet")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told(chat: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "out.parquet").symlink_to("/dev/full")
    with pytest.raises(ReadError, match=r"^`output`: .* cannot be written: .*No space left"):
        collected(chat, lambda _: "Answer: A", study(n=1), output=tmp_path / "out.parquet")


@pytest.mark.parametrize("version", [0, 1])
def test_a_database_of_another_program_stays_as_it_is(tmp_path: Path, version: int) -> None:
    file = tmp_path / "other.sqlite"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE things (x)")
    other.execute(f"PRAGMA user_version={version}")
    other.commit()
    other.close()
    before = file.read_bytes()
    with pytest.raises(ReadError, match="is a database, but no store of this version"):
        ts.collect(study(), store=file, progress=False)
    assert file.read_bytes() == before


# Sheets


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"rewrite_version": [1, None]},
            "`rewrite_version` of scenario 'b' must be a whole number from 1; got None",
        ),
        (
            {"rewrite_version": ["1", "x"]},
            "`rewrite_version` of scenario 'b' must be a whole number from 1; got 'x'",
        ),
        (
            {"rewrite_version": [1.0, 2.5]},
            "`rewrite_version` of scenario 'b' must be a whole number from 1; got 2.5",
        ),
        ({"scenario": ["a", None]}, "`scenario` of `review` is blank in a row; name it, or delete the row"),
    ],
)
def test_rows_of_a_review_that_are_wrong(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        next_versions(REVIEW | changes)
    assert str(caught.value) == said


def test_what_was_not_rewritten_is_not_reviewed() -> None:
    rewrites = {"scenario": ["a", "b"], "rewrite_version": [1, None], "text": ["My arm hurts.", None]}
    assert review_sheet(rewrites)["scenario"].to_list() == ["a"]
    with pytest.raises(ArgumentError, match="names scenario 'b', which has no rewrite"):
        replace_rewrites(rewrites, {"b": "By hand."})
    with pytest.raises(DataError, match="`rewrite_version` of `data` must hold whole numbers; got 'one'"):
        review_sheet(rewrites | {"rewrite_version": ["one", "2"]})


def test_a_blind_sheet_that_cannot_be(tmp_path: Path) -> None:
    table = {"scenario": ["a"], "text": ["Rest."]}
    with pytest.raises(ArgumentError, match="`ask` names 'right'"):
        blind_sheet(table, ask=("right", "right"))
    with pytest.raises(DataError, match="has a column 'entry', which the sheet adds"):
        blind_sheet(table | {"entry": [1]})
    with pytest.raises(
        ReadError, match=r"key.csv' cannot be written: CSV format does not support nested data"
    ):
        blind_sheet(table | {"parts": [[1, 2]]}).write(tmp_path / "sheet.csv", tmp_path / "key.csv")
