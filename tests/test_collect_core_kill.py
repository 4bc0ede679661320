"""kill -9 at any moment: the next run ends with one row a planned call, and few are asked twice."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

N_SCENARIOS = 60
CONCURRENCY = 4
STUDY = """
levels = ["A", "B"]
repetitions = 2
[scenarios]
file = "scenarios.csv"
[[models]]
name = "m"
base_url = "URL"
concurrency = 4
[[conditions]]
name = "c"
protocol = "prompt"
template = "{{ story }} A or B?"
answer = { kind = "letter" }
"""


def command(folder: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        "from triagestats.cli import main; main()",
        "collect",
        str(folder / "s.toml"),
        *more,
    ]


def written(folder: Path, server: Any) -> None:
    rows = "".join(f"s{n},Story {n}.,A\n" for n in range(N_SCENARIOS))
    (folder / "scenarios.csv").write_text("id,story,gold\n" + rows)
    (folder / "s.toml").write_text(STUDY.replace("URL", server.url))


def rows_in(store: Path) -> int:
    if not store.exists():
        return 0
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM calls").fetchone()[0])
    except sqlite3.OperationalError:  # killed before the tables were made
        return 0
    finally:
        connection.close()


def killed_and_resumed(chat: ModuleType, folder: Path, seed: int, *, kills: int) -> None:
    """Kill runs after a random number of requests and a random moment more; then let one end."""
    chance = random.Random(seed)
    store = folder / "s.sqlite"
    with chat.ChatServer(delay=0.005) as server:
        written(folder, server)
        for turn in range(kills):
            before = server.count
            after = chance.randrange(1, 2 * N_SCENARIOS // kills)
            process = subprocess.Popen(
                command(folder, "--resume"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while server.count - before < after and process.poll() is None:
                time.sleep(0.0005)
            time.sleep(chance.random() * 0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kept = rows_in(store)
            assert server.answered - kept <= CONCURRENCY * (turn + 1), (
                "answers were lost that were not in flight"
            )
        done = subprocess.run(command(folder, "--resume"), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "120 rows: 120 ok." in done.stdout
        assert rows_in(store) == 2 * N_SCENARIOS
        assert server.answered <= 2 * N_SCENARIOS + CONCURRENCY * kills


@pytest.mark.parametrize("seed", range(2))
def test_kill_and_resume(chat: ModuleType, tmp_path: Path, seed: int) -> None:
    killed_and_resumed(chat, tmp_path, seed, kills=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_kill_and_resume_at_random(chat: ModuleType, tmp_path: Path, seed: int) -> None:
    killed_and_resumed(chat, tmp_path, seed, kills=3)


def test_an_interrupt_is_a_clean_stop(chat: ModuleType, tmp_path: Path) -> None:
    with chat.ChatServer(delay=0.02) as server:
        written(tmp_path, server)
        process = subprocess.Popen(
            command(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while server.count < 10 and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        assert process.returncode == 130
        assert said == "Stopped. What was answered is stored; --resume asks what is left.\n"
        assert server.answered - rows_in(tmp_path / "s.sqlite") <= CONCURRENCY
