"""Collecting from a real server on loopback: what is sent, what is kept, what comes out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

import triagestats as ts
from triagestats.collect.calls import Call, NoChoices, Place, answer_of
from triagestats.collect.loops import waited
from triagestats.collect.session import Session
from triagestats.errors import ArgumentError, ReadError

ODD = (
    'braces {{ story }} {% raw %} {0} %s; quotes " \' ` \\ \\n "escaped\\"; tab\tand\nlines\r\nend; '
    "Ärger 你好 عربى हिन्दी 🩺 é e\u0301 \u2028 \u200f."
)


def study(url: str, **changes: Any) -> dict[str, Any]:
    """Four scenarios, one condition, one model."""
    return {
        "levels": ["A", "B", "C", "D"],
        "scenarios": {"rows": [{"id": f"s{n}", "story": f"Story {n}.", "gold": "A"} for n in range(1, 5)]},
        "models": [{"name": "m", "base_url": url}],
        "conditions": [condition("letter", "{{ story }} A, B, C or D?")],
    } | changes


def condition(name: str, template: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "protocol": "prompt", "template": template, "answer": {"kind": "letter"}} | more


RESTED = "Rest a while; you said: Story 1. What now?"


def stored(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_a_study_becomes_a_response_table(chat: ModuleType, tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> str:
        return "Answer: B" if "Story 2" in body["messages"][-1]["content"] else "Answer: A"

    with chat.ChatServer(reply) as server:
        model = {"name": "m", "model": "big", "base_url": server.url, "parameters": {"temperature": 0.5}}
        table = ts.collect(
            study(server.url, models=[model], repetitions=2),
            store=tmp_path / "s.sqlite",
            output=tmp_path / "out.parquet",
        )
    assert server.count == 8
    assert min(server.requests, key=str) == {
        "model": "big",
        "temperature": 0.5,
        "messages": [{"role": "user", "content": "Story 1. A, B, C or D?"}],
    }
    scores = table.frame.select("scenario", "repetition", "response", "score").rows()
    assert scores[:4] == [
        ("s1", "1", "A", 1.0),
        ("s1", "2", "A", 1.0),
        ("s2", "1", "B", 0.0),
        ("s2", "2", "B", 0.0),
    ]
    row = table.frame.row(0, named=True)
    assert row["text"] == "Answer: A"
    assert row["returned_model"] == "big-2025-01-01"
    assert row["finish_reason"] == "stop"
    assert (row["n_calls"], row["prompt_tokens"], row["completion_tokens"]) == (1, 7, 2)
    assert row["latency"] > 0
    messages = json.dumps(
        [{"role": "user", "content": "Story 1. A, B, C or D?"}], sort_keys=True, separators=(",", ":")
    )
    assert row["prompt_hash"] == hashlib.sha256(messages.encode()).hexdigest()
    keys = stored(tmp_path / "s.sqlite", "SELECT key FROM calls")
    assert (row["call"],) in keys


def test_the_file_gives_the_analysis_of_the_table(chat: ModuleType, tmp_path: Path) -> None:
    with chat.ChatServer(
        lambda body: "Answer: " + ("A" if "brief" in str(body["messages"]) else "B")
    ) as server:
        conditions = [
            condition("plain", "{{ story }}"),
            condition("brief", "{{ story }}", system="Be brief."),
        ]
        table = ts.collect(
            study(server.url, conditions=conditions), store=":memory:", output=tmp_path / "o.parquet"
        )
    from_file = ts.ResponseTable(tmp_path / "o.parquet")
    key = ["scenario", "condition"]
    columns = [*key, "score", "status", "response", "gold_low"]
    assert from_file.frame.select(columns).sort(key).equals(table.frame.select(columns).sort(key))
    rates = table.frame.group_by("condition").agg(pl.col("score").mean()).sort("condition").rows()
    assert rates == [("brief", 1.0), ("plain", 0.0)]


@pytest.mark.parametrize(
    "text", [ODD, "x " * 100_000, " leading and trailing \n"], ids=["odd", "long", "blank"]
)
def test_prompts_arrive_unchanged(chat: ModuleType, text: str) -> None:
    with chat.ChatServer() as server:
        rows = [{"id": "s", "story": text, "gold": "A"}]
        asked = study(
            server.url,
            scenarios={"rows": rows},
            conditions=[condition("c", "{{ story }}", system="Before {{ story }} after")],
        )
        ts.collect(asked, store=":memory:")
    sent = server.requests[0]["messages"]
    assert sent[1]["content"] == text
    assert sent[0]["content"] == f"Before {text} after"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_odd_text_arrives_from_files(chat: ModuleType, tmp_path: Path, ending: str) -> None:
    rows = [{"id": "007", "story": ODD, "gold": "A"}]
    path = tmp_path / f"scenarios.{ending}"
    if ending == "csv":
        pl.DataFrame(rows).write_csv(path)
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with chat.ChatServer() as server:
        asked = study(server.url, scenarios={"file": str(path)}, conditions=[condition("c", "{{ story }}")])
        table = ts.collect(asked, store=":memory:")
    assert server.requests[0]["messages"][0]["content"] == ODD
    assert table.frame["scenario"].to_list() == ["007"]


def test_nothing_is_asked_twice(chat: ModuleType, tmp_path: Path) -> None:
    """Neither in a second run, nor where two conditions send the same at the same moment."""
    with chat.ChatServer(delay=0.02) as server:
        same = [condition("one", "{{ story }}"), condition("two", "{{ story }}")]
        asked = study(server.url, conditions=same)
        first = ts.collect(asked, store=tmp_path / "s.sqlite")
        assert server.count == 4
        again = ts.collect(asked, store=tmp_path / "s.sqlite", resume=True)
        assert server.count == 4
    assert first.frame.equals(again.frame)
    assert first.frame.height == 8


def test_repetitions_are_asked_again(chat: ModuleType) -> None:
    with chat.ChatServer() as server:
        ts.collect(study(server.url, repetitions=3), store=":memory:")
    assert server.count == 12


def test_concurrency_is_bounded(chat: ModuleType) -> None:
    with chat.ChatServer(delay=0.01) as server:
        model = {"name": "m", "base_url": server.url, "concurrency": 3}
        ts.collect(study(server.url, models=[model], repetitions=10), store=":memory:")
    assert server.most_under_way == 3


def test_an_answer_is_stored_as_it_came(chat: ModuleType, tmp_path: Path) -> None:
    with chat.ChatServer(
        lambda _: {"role": "assistant", "content": None, "refusal": "No.", "extra": ["kept"]}
    ) as server:
        table = ts.collect(study(server.url), store=tmp_path / "s.sqlite")
    response = json.loads(stored(tmp_path / "s.sqlite", "SELECT response FROM calls")[0][0])
    assert response["choices"][0]["message"]["extra"] == ["kept"]
    request = json.loads(stored(tmp_path / "s.sqlite", "SELECT request FROM calls ORDER BY rowid")[0][0])
    assert request == server.requests[0]
    assert set(table.frame["status"]) == {"unparsed"}
    assert set(table.frame["refusal"]) == {"No."}


def test_a_store_holds_no_key(chat: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the endpoint repeats it in an error."""
    secret = "sk-not-to-be-written-anywhere"
    monkeypatch.setenv("TEST_KEY", secret)

    def fault(number: int, body: dict[str, Any]) -> Any:
        text = json.dumps({"error": {"message": f"Incorrect API key provided: {secret}"}})
        return chat.Fault("status", 401, text=text) if body["model"] == "closed" else None

    with chat.ChatServer(fault=fault) as server:
        models = [{"name": name, "base_url": server.url, "key": "TEST_KEY"} for name in ("open", "closed")]
        table = ts.collect(
            study(server.url, models=models), store=tmp_path / "s.sqlite", output=tmp_path / "o.parquet"
        )
    assert server.headers[0]["authorization"] == f"bearer {secret}"
    assert "Incorrect API key provided: ***" in str(table.notes)
    for path in tmp_path.iterdir():
        assert secret.encode() not in path.read_bytes(), path


def test_the_manifest_says_what_a_table_was_made_of(chat: ModuleType, tmp_path: Path) -> None:
    with chat.ChatServer() as server:
        for name in ("one", "two"):
            ts.collect(study(server.url, name=name), store=":memory:", output=tmp_path / f"{name}.parquet")
    outputs = json.loads((tmp_path / "manifest.json").read_text())["outputs"]
    assert list(outputs) == ["one.parquet", "two.parquet"]
    one = outputs["one.parquet"]
    assert one["sha256"] == hashlib.sha256((tmp_path / "one.parquet").read_bytes()).hexdigest()
    assert one["statuses"] == {"ok": 4}
    assert one["calls"] == {"m": {"at_least": 4, "at_most": 4, "stored": 4}}
    assert one["tokens"] == 4 * (7 + 2)
    assert one["study"]["name"] == "one"


def test_a_manifest_of_another_program_stays(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(ArgumentError, match="is no manifest of this program"):
        Session.of(study("http://localhost:1/v1"), store=":memory:", output=tmp_path / "o.parquet")


@pytest.mark.parametrize(
    ("limits", "most"), [({"calls": 5}, 5), ({"tokens": 40}, 12)], ids=["calls", "tokens"]
)
def test_limits_stop_cleanly(chat: ModuleType, tmp_path: Path, limits: dict[str, int], most: int) -> None:
    """Tokens are known when an answer is there: what is under way then is finished."""
    with chat.ChatServer(delay=0.01) as server:
        store = tmp_path / "s.sqlite"
        table = ts.collect(study(server.url, repetitions=4, limits=limits), store=store)
        assert server.count == len(stored(store, "SELECT key FROM calls")) <= most
        assert table.notes[-1].message.startswith("The limit of")
        counts = dict(table.frame["status"].value_counts().iter_rows())
        assert counts == {"ok": server.count, "missing": 16 - server.count}
        whole = ts.collect(study(server.url, repetitions=4), store=store, resume=True)
        assert server.count == 16
    assert set(whole.frame["status"]) == {"ok"}


def test_a_client_can_be_given(chat: ModuleType) -> None:
    from openai import AsyncOpenAI

    with chat.ChatServer() as server:
        client = AsyncOpenAI(base_url=server.url, api_key="given")
        asked = study("http://localhost:1/v1")
        assert set(ts.collect(asked, client, store=":memory:").frame["status"]) == {"ok"}
        assert server.headers[0]["authorization"] == "bearer given"
        assert ts.collect(asked, {"m": client}, store=":memory:").frame.height == 4
        with pytest.raises(ArgumentError, match=r"no entry for the models \['m'\]"):
            ts.collect(asked, {}, store=":memory:")
        waited(client.close)


def test_collecting_works_within_a_running_loop(chat: ModuleType) -> None:
    """As in a notebook, where the same client is used again: its connections belong to one loop."""
    from openai import AsyncOpenAI

    with chat.ChatServer() as server:
        client = AsyncOpenAI(base_url=server.url, api_key="given")

        async def notebook() -> None:
            for _ in range(2):
                table = ts.collect(study(server.url), client, store=":memory:")
                assert set(table.frame["status"]) == {"ok"}
            waited(client.close)

        asyncio.run(notebook())


def test_what_goes_wrong_in_a_running_loop_is_raised(chat: ModuleType) -> None:
    async def notebook() -> None:
        ts.collect(study("http://localhost:1/v1"), {}, store=":memory:")

    with pytest.raises(ArgumentError, match="no entry for the models"):
        asyncio.run(notebook())


def test_judges_score_in_rows_of_their_own(chat: ModuleType) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = body["messages"][-1]["content"]
        label = {"j1": "A", "j2": "B"}.get(body["model"])
        return (label and json.dumps({"label": label})) or f"Rest a while; you said: {said}"

    with chat.ChatServer(reply) as server:
        models = [{"name": "m", "base_url": server.url}]
        models += [{"name": name, "base_url": server.url, "answers": False} for name in ("j1", "j2")]
        judges = [{"name": name, "model": name, "kind": "disposition"} for name in ("j1", "j2")]
        asked = study(
            server.url,
            models=models,
            judges=judges,
            conditions=[condition("free", "{{ story }} What now?", answer={"kind": "text"})],
        )
        table = ts.collect(asked, store=":memory:")
    assert server.count == 12
    assert table.judges == ("j1", "j2")
    rows = (
        table.frame.group_by("judge").agg(pl.col("score").mean(), pl.col("text").first()).sort("judge").rows()
    )
    assert rows == [("j1", 1.0, RESTED), ("j2", 0.0, RESTED)]


def test_a_key_is_the_hash_of_everything_sent() -> None:
    def call(**changes: Any) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]} | changes.pop("body", {})
        place = Place("s", "c", "m", changes.pop("repetition", 1), changes.pop("judge", None))
        return Call(place, "answer", "m", changes.pop("url", "u"), body, **changes).key

    assert call() == call(judge="j") == call(body={"model": "m"})
    others = [
        call(repetition=2),
        call(url="v"),
        call(attempt=1),
        call(body={"temperature": 0}),
        call(body={"messages": [{"role": "user", "content": "x "}]}),
        call(body={"model": "n"}),
    ]
    assert len({call(), *others}) == 7


def test_the_order_of_keys_is_no_difference() -> None:
    place = Place("s", "c", "m", 1)
    one = Call(place, "answer", "m", "u", {"model": "m", "seed": 1})
    other = Call(place, "answer", "m", "u", {"seed": 1, "model": "m"})
    assert one.key == other.key


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ("<html>", "is not JSON"),
        ("[]", "has no choices"),
        ('{"choices": []}', "has no choices"),
        ('{"choices": [{"message": null}]}', "has no choices"),
        ('{"error": {"message": "overloaded"}}', "has no choices"),
    ],
)
def test_what_is_no_completion_is_no_answer(response: str, said: str) -> None:
    with pytest.raises(NoChoices, match=said):
        answer_of("k", response, latency=0, asked_at="")


def test_content_comes_in_parts_or_halves() -> None:
    def text(content: str) -> str:
        body = f'{{"choices": [{{"message": {{"content": {content}}}}}]}}'
        return answer_of("k", body, latency=0, asked_at="").text

    assert text('[{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]') == "ab"
    assert text("null") == ""
    assert text('"\\ud83e\\ude7a"') == "🩺"
    assert text('"\\ud83e"') == "\ufffd"  # half a character, which no file would take


def test_one_process_holds_a_store(chat: ModuleType, tmp_path: Path) -> None:
    from triagestats.collect.store import Store

    with Store(tmp_path / "s.sqlite"), pytest.raises(ReadError, match="in use by another process"):
        Store(tmp_path / "s.sqlite")
    Store(tmp_path / "s.sqlite").close()


def test_a_file_that_is_no_store_stays_as_it_is(tmp_path: Path) -> None:
    from triagestats.collect.store import Store

    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be taken for one" * 10)
    with pytest.raises(ReadError, match="cannot be opened as a store"):
        Store(text)
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    with pytest.raises(ReadError, match="no store of this version"):
        Store(other)
    assert text.read_text().startswith("not a database")
    assert stored(other, "SELECT name FROM sqlite_master") == [("mine",)]
