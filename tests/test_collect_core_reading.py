"""What is read from stored answers, again and again; and the command line around it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import triagestats as ts
from triagestats.cli import app
from triagestats.collect.meter import Meter
from triagestats.collect.session import Session

STUDY = """\
levels = ["A", "B", "C"]
repetitions = 2

[scenarios]
rows = [
  {id = "s1", story = "One.", gold = "A"},
  {id = "s2", story = "Two.", gold = "B"},
]

[[models]]
name = "m"
base_url = "URL"

[[conditions]]
name = "plain"
protocol = "prompt"
template = "{{ story }} A, B or C?"
answer = { kind = "letter", label_map = { A = "A", B = "B", C = "C" } }

[[conditions]]
name = "short"
protocol = "prompt"
template = "{{ story }} A, B or C? One letter."
answer = { kind = "letter", label_map = { A = "A", B = "B", C = "C" } }
"""


def reply(body: dict[str, Any]) -> str:
    """The right letter in the short condition, C in the other."""
    said = body["messages"][-1]["content"]
    return ("A" if "One." in said[:5] else "B") if "One letter" in said else "C"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["collect", *arguments])


def test_a_dry_run_asks_nothing(chat: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    path = tmp_path / "pilot.toml"
    with chat.ChatServer() as server:
        path.write_text(STUDY.replace("URL", server.url).replace('name = "m"', 'name = "m"\nkey = "MY_KEY"'))
        done = run(str(path), "--dry-run")
        assert server.count == 0
    assert done.exit_code == 0
    assert (
        done.output == "pilot: 2 scenarios, 2 conditions, 2 repetitions, 0 judges; 8 answers.\n  m  8 calls\n"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["pilot.toml"]


def test_the_command_collects_resumes_and_reads_again(chat: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "pilot.toml"
    out = str(tmp_path / "responses.parquet")
    with chat.ChatServer(reply) as server:
        text = STUDY.replace("URL", server.url)
        path.write_text(text)
        done = run(str(path), "-o", out)
        assert done.exit_code == 0
        assert done.output == f"8 rows: 8 ok.\nTable: {out}; answers: {tmp_path / 'pilot.sqlite'}.\n"
        again = run(str(path), "-o", out)
        assert again.exit_code == 2
        assert "is there, with 8 answers; go on with --resume, or choose another --store" in again.output
        assert run(str(path), "-o", out, "--resume").output == done.output
        assert server.count == 8
    # The letter C now means A, in both conditions: the server is gone, and nothing is asked.
    path.write_text(text.replace('C = "C"', 'C = "A"'))
    refused = run(str(path), "-o", out, "--resume")
    assert refused.exit_code == 2
    assert "conditions.plain.reads.answer.label_map.C" in refused.output
    assert "read the stored answers again with --reparse" in refused.output
    reread = run(str(path), "-o", out, "--reparse")
    assert reread.exit_code == 0
    assert reread.output.startswith(
        "4 of 8 labels changed.\n  C -> A: 4\n1 contrasts changed.\n  m, short - plain: +1.0000 -> +0.5000\n"
    )
    rates = pl.read_parquet(out).group_by("condition").agg(pl.col("score").mean()).sort("condition").rows()
    assert rates == [("plain", 0.5), ("short", 1.0)]
    assert run(str(path), "-o", out, "--reparse").output.startswith(
        "0 of 8 labels changed.\n0 contrasts changed."
    )


def test_reparse_needs_a_store(tmp_path: Path) -> None:
    path = tmp_path / "pilot.toml"
    path.write_text(STUDY.replace("URL", "http://localhost:1/v1"))
    done = run(str(path), "--reparse")
    assert done.exit_code == 2
    assert "--reparse reads stored answers, and there is no store" in done.output


def test_reparse_with_other_prompts_says_what_is_missing(chat: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "pilot.toml"
    with chat.ChatServer(reply) as server:
        path.write_text(STUDY.replace("URL", server.url))
        run(str(path))
    path.write_text(STUDY.replace("URL", server.url).replace("One letter", "A letter"))
    done = run(str(path), "--reparse")
    assert done.exit_code == 2
    assert (
        "study has changed since its store was made: conditions.short.template.source was"
        in done.output.lower()
    )


def test_what_is_not_complete_has_exit_code_1(chat: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "pilot.toml"
    with chat.ChatServer(fault=lambda *_: chat.Fault("status", 401)) as server:
        path.write_text(STUDY.replace("URL", server.url))
        done = run(str(path))
    assert done.exit_code == 1
    assert re.search("8 answers are not complete: --resume asks what is left.", done.output)
    assert "Model 'm' has stopped: HTTP 401" in done.output


def test_factors_and_carried_columns_are_in_the_table(chat: ModuleType) -> None:
    with chat.ChatServer(lambda _: "A") as server:
        table = ts.collect(
            {
                "levels": ["A", "B"],
                "scenarios": {
                    "rows": [{"id": "s", "story": "x", "gold": "A", "age": 70, "ward": "w", "kind": "k"}],
                    "carry": ["age"],
                    "cluster": "ward",
                    "stratum": "kind",
                },
                "models": [{"name": "m", "base_url": server.url}],
                "conditions": [
                    {
                        "name": "c",
                        "protocol": "prompt",
                        "template": "{{ story }}",
                        "answer": {"kind": "letter"},
                        "factors": {"system": {"none": False, "brief": "Be brief."}},
                    }
                ],
            },
            store=":memory:",
        )
    columns = ["factor_system", "age", "cluster_1", "stratum", "gold_low"]
    assert table.frame.select(columns).sort("factor_system").rows() == [
        ("brief", "70", "w", "k", "A"),
        ("none", "70", "w", "k", "A"),
    ]


def test_unscored_conditions_need_no_gold(chat: ModuleType) -> None:
    with chat.ChatServer(lambda _: "Some text.") as server:
        table = ts.collect(
            {
                "scenarios": {"rows": [{"id": "s", "story": "x"}]},
                "models": [{"name": "m", "base_url": server.url}],
                "conditions": [
                    {"name": "c", "protocol": "prompt", "template": "{{ story }}", "answer": {"kind": "text"}}
                ],
            },
            store=":memory:",
        )
    assert table.frame.select("status", "text", "score").rows() == [("unscored", "Some text.", None)]


def test_a_judge_of_several_things_gives_a_metric_each(chat: ModuleType, tmp_path: Path) -> None:
    def judged(body: dict[str, Any]) -> str:
        counts = {"kept": [1, 2], "added": 1, "invented": 0}
        return json.dumps(counts) if body["model"] == "j" else f"Retold: {body['messages'][-1]['content']}"

    def fault(number: int, body: dict[str, Any]) -> Any:
        return (
            chat.Fault("status", 200, text="") if body["model"] == "j" and "Retold: x2" in str(body) else None
        )

    with chat.ChatServer(judged, fault=fault) as server:
        study = {
            "scenarios": {"rows": [{"id": f"s{n}", "story": f"x{n}", "facts": ["a", "b"]} for n in (1, 2)]},
            "models": [
                {"name": "m", "base_url": server.url},
                {"name": "j", "base_url": server.url, "answers": False},
            ],
            "judges": [{"name": "j", "model": "j", "kind": "counts"}],
            "conditions": [
                {"name": "c", "protocol": "prompt", "template": "{{ story }}", "answer": {"kind": "text"}}
            ],
        }
        out = tmp_path / "o.parquet"
        table = ts.collect(study, store=tmp_path / "s.sqlite", output=out, metric="facts_added")
        assert table.frame.select("status", "score").rows() == [("ok", 1.0), ("error", None)]
        counts = pl.read_parquet(out).group_by("metric").agg(pl.col("score").sort(nulls_last=True))
        assert counts.sort("metric").rows() == [
            ("facts_added", [1.0, None]),
            ("facts_invented", [0.0, None]),
            ("facts_kept", [2.0, None]),
        ]
        with pytest.raises(ts.TriagestatsError, match="`metric` must be one of"):
            ts.collect(study, store=tmp_path / "s.sqlite", resume=True, metric="absent")


def test_the_line_says_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    meter = Meter(1200, shown=True)
    for done in range(300):
        meter.advance(failed=done < 3)
    now[0] += 30
    assert meter.line() == "300 of 1,200 answers, 3 failed, 10.0 a second, about 2 min left"
    now[0] += 30
    assert meter.line() == "300 of 1,200 answers, 3 failed, 0.0 a second"


def test_lines_are_written_where_there_is_no_terminal(
    chat: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("triagestats.collect.meter"), "EVERY", 0.05)
    with chat.ChatServer(delay=0.2) as server:
        session = Session.of(minimal(server.url), store=":memory:", output=None)
        session.run(None, shown=True)
        said = capsys.readouterr().err.splitlines()
        session.run(None, shown=False)
    assert said[0].startswith("0 of 1 answers, 0.0 a second")
    assert len(said) >= 2
    assert capsys.readouterr().err == ""


def minimal(url: str) -> dict[str, Any]:
    return {
        "scenarios": {"rows": [{"id": "s", "story": "x", "gold": "A"}]},
        "levels": ["A", "B"],
        "models": [{"name": "m", "base_url": url}],
        "conditions": [
            {"name": "c", "protocol": "prompt", "template": "{{ story }}", "answer": {"kind": "letter"}}
        ],
    }


def test_a_bar_is_shown_on_a_terminal(chat: ModuleType, tmp_path: Path) -> None:
    """The other end of a pseudo-terminal is read while the command runs."""
    with chat.ChatServer(reply, delay=0.1) as server:
        (tmp_path / "pilot.toml").write_text(STUDY.replace("URL", server.url))
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from triagestats.cli import main; main()",
                "collect",
                str(tmp_path / "pilot.toml"),
            ],
            stderr=theirs,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the end of a pseudo-terminal
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        assert process.wait() == 0
    assert b"answers" in shown
    assert "━".encode() in shown
