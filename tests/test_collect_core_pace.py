"""Collecting costs little beside the bare client, and its memory does not grow with the calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from triagestats.collect.client import connect
from triagestats.collect.loops import waited
from triagestats.collect.runner import run_study
from triagestats.collect.session import Session
from triagestats.collect.store import Store

LEAST = 0.7
"""Of the throughput of the bare client, as the issue asks."""
GROWTH = 8e6
"""Bytes; 10,000 answers of 2 kB each would be 20 MB if they were kept."""
ROUNDS = 3
"""Of each, in turn: the best of them is what the machine can do beside whatever else it does."""


def study(url: str, n: int, concurrency: int) -> dict[str, Any]:
    return {
        "levels": ["A", "B"],
        "scenarios": {"rows": [{"id": f"s{i}", "story": f"Story {i}. " * 20, "gold": "A"} for i in range(n)]},
        "models": [{"name": "m", "base_url": url, "concurrency": concurrency}],
        "conditions": [
            {"name": "c", "protocol": "prompt", "template": "{{ story }}", "answer": {"kind": "letter"}}
        ],
    }


async def bare(url: str, n: int, concurrency: int) -> None:
    """The same requests by the client alone."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none") as client:
        numbers = iter(range(n))

        async def worker() -> None:
            for i in numbers:
                messages: Any = [{"role": "user", "content": f"Story {i}. " * 20}]
                await client.chat.completions.create(model="m", messages=messages)

        await asyncio.gather(*(worker() for _ in range(concurrency)))


def ratio(chat: ModuleType, folder: Path, *, n: int, concurrency: int, delay: float) -> float:
    """Our throughput over that of the bare client."""
    times: dict[str, list[float]] = {"bare": [], "ours": []}
    with chat.ChatServer(delay=delay, keep=False) as server:
        made = Session.of(study(server.url, n, concurrency), store=":memory:", output=None).study
        for number in range(ROUNDS):
            start = time.perf_counter()
            asyncio.run(bare(server.url, n, concurrency))
            middle = time.perf_counter()
            with Store(folder / f"{number}.sqlite") as store:
                endpoints = connect(made.models, None, made.key_places)
                waited(lambda: run_study(made, store, endpoints, shown=False))  # noqa: B023 - awaited here
                assert store.totals().calls == n
            times["bare"].append(middle - start)
            times["ours"].append(time.perf_counter() - middle)
    return min(times["bare"]) / min(times["ours"])


@pytest.mark.slow
def test_the_pace_is_that_of_the_client(chat: ModuleType, tmp_path: Path) -> None:
    assert ratio(chat, tmp_path, n=150, concurrency=8, delay=0.02) > LEAST


@pytest.mark.slow
def test_the_pace_without_any_wait(chat: ModuleType, tmp_path: Path) -> None:
    """The server answers at once: all the time is that of the two programs."""
    found = ratio(chat, tmp_path, n=2000, concurrency=32, delay=0.0)
    assert found > LEAST, f"{found:.2f} of the throughput of the bare client"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of a process is read from /proc")
def test_memory_is_flat_over_10_000_calls(chat: ModuleType, tmp_path: Path) -> None:
    process: subprocess.Popen[bytes] | None = None
    sizes: dict[int, int] = {}

    def reply(body: dict[str, Any]) -> str:
        if server.count % 1000 == 0 and process is not None:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            sizes[server.count] = pages * 4096
        return "Answer: A. " + "word " * 400

    with chat.ChatServer(reply, keep=False) as server:
        text = (
            f'levels = ["A", "B"]\nrepetitions = 100\n[scenarios]\nfile = "s.csv"\n[[models]]\nname = "m"\n'
            f'base_url = "{server.url}"\nconcurrency = 16\n[[conditions]]\nname = "c"\nprotocol = "prompt"\n'
            'template = "{{ story }}"\nanswer = { kind = "letter" }\n'
        )
        (tmp_path / "s.toml").write_text(text)
        rows = "".join(f"s{i},{f'Story {i}. ' * 20},A\n" for i in range(100))
        (tmp_path / "s.csv").write_text("id,story,gold\n" + rows)
        program = "from triagestats.cli import main; main()"
        process = subprocess.Popen([sys.executable, "-c", program, "collect", str(tmp_path / "s.toml")])
        assert process.wait() == 0
    assert server.count == 10_000
    assert sizes[10_000] - sizes[2_000] < GROWTH, sizes
