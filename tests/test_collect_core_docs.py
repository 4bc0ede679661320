"""The documentation of collecting: its study runs against the server, and prints what the page shows."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from triagestats.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "collect.md"
LEVELS = "ABCD"
CASES = {
    "chest": "D",
    "hroat": "A",
    "urin": "C",
    "pee": "C",
    "right arm": "D",
    "sneez": "A",
    "nkle": "B",
    "rash": "B",
    "39.5": "C",
    "eadache": "D",
    "calf": "C",
    "aper cut": "A",
    "back": "B",
}


def reply(body: dict[str, Any]) -> str:
    """Models that are right more often in letters, and for the large one; a judge that reads the letter."""
    text = body["messages"][-1]["content"]
    if body["model"] == "judge":
        found = re.search("level ([A-D])", text)
        return json.dumps({"label": found[1] if found else None})
    right = next(level for word, level in CASES.items() if word.lower() in text.lower())
    chance = int(hashlib.sha256(f"{body['model']} {text}".encode()).hexdigest(), 16) % 100
    letters = "Answer: X" in text
    wrong = chance >= {"large": 90, "small": 75}[body["model"]] - (0 if letters else 30)
    level = LEVELS[max(LEVELS.index(right) - 1, 0)] if wrong else right
    return f"I thought about it.\nAnswer: {level}" if letters else f"I would say level {level} of care."


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_runs_as_shown(chat: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (table,), (console,) = blocks("csv"), blocks("console")
    Path("scenarios.csv").write_text(table, encoding="utf-8")
    with chat.ChatServer(reply) as server:
        study = blocks("toml")[0].replace("http://localhost:8000/v1", server.url)
        Path("study.toml").write_text(study, encoding="utf-8")
        for command, shown in re.findall(r"^\$ triagestats (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE):
            done = CliRunner().invoke(app, shlex.split(command))
            assert done.exit_code == 0, done.output
            start, rest = shown.removesuffix("...\n"), shown.endswith("...\n")
            same = done.output.startswith(start) if rest else done.output == shown
            assert same, f"{command} prints:\n{done.output}"
        exec(compile(blocks("python")[0], str(PAGE), "exec"), {})
