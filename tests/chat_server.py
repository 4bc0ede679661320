"""A real HTTP server on loopback that speaks chat completions, and that fails as told."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ChatServer", "Fault"]

Body = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What happens instead of an answer.

    Attributes
    ----------
    kind
        `status`; `hang` (no byte, until the client goes away); `reset` (the connection is cut); `text` (a 200
        that holds `text`, whatever it is).
    code, headers, text
        Of the response.
    """

    kind: str
    code: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    text: str = '{"error": {"message": "told to fail"}}'


class ChatServer:
    """Answers on 127.0.0.1 from a thread of its own.

    Parameters
    ----------
    reply
        The content of the answer to a request; or a whole message, or None for a null content.
    fault
        What goes wrong with the n-th request (from 1), or None.
    delay
        Seconds before an answer.
    """

    def __init__(
        self,
        reply: Callable[[Body], Any] = lambda _: "Answer: A",
        *,
        fault: Callable[[int, Body], Fault | None] = lambda *_: None,
        delay: float = 0.0,
        keep: bool = True,
    ) -> None:
        self.reply = reply
        self.fault = fault
        self.delay = delay
        self.keep = keep
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.count = 0
        self.answered = 0
        self.under_way = 0
        self.most_under_way = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ChatServer:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 24)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))))
        self.count += 1
        if self.keep:
            self.requests.append(body)
            self.headers.append(headers)
        fault = self.fault(self.count, body)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            if fault is None:
                self.answered += 1
                self._write(writer, 200, {}, json.dumps(self._completion(body)))
            elif fault.kind == "hang":
                await reader.read(1)
                return False
            elif fault.kind == "reset":
                writer.transport.abort()
                return False
            else:
                self._write(writer, fault.code, fault.headers, fault.text)
        finally:
            self.under_way -= 1
        await writer.drain()
        return True

    def _completion(self, body: Body) -> Body:
        said = self.reply(body)
        message = said if isinstance(said, dict) else {"role": "assistant", "content": said}
        words = sum(len(str(one["content"]).split()) for one in body["messages"])
        return {
            "id": f"chatcmpl-{self.count}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": f"{body['model']}-2025-01-01",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": words, "completion_tokens": 2, "total_tokens": words + 2},
        }

    @staticmethod
    def _write(writer: asyncio.StreamWriter, code: int, headers: dict[str, str], text: str) -> None:
        content = text.encode()
        lines = [f"HTTP/1.1 {code} X", "content-type: application/json", f"content-length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
