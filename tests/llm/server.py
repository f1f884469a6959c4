"""A model provider on 127.0.0.1: speaks the streaming wire formats of OpenAI and Anthropic, and can misbehave."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request.

    Attributes:
        pieces: the text of the answer, one event each.
        usage: input, output and cached tokens; None sends none.
        status: anything but 200 sends `error` as an error document.
        cut_after: close the connection after this many events.
        raw: an event sent as it is after the pieces, well formed or not.
        pause: wait for `ModelServer.go_on` after the first piece.
    """

    pieces: tuple[str, ...] = ("ok",)
    usage: tuple[int, int, int] | None = (7, 3, 2)
    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    raw: str = ""
    pause: bool = False
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived; `at_s` is the monotonic clock then."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at_s: float = field(default_factory=time.monotonic, compare=False)


class ModelServer:
    """Answers requests in order; the last answer is repeated.

    Use as `async with ModelServer(["text", Answer(status=429)]) as server`, then point an adapter at `server.url`.
    """

    def __init__(self, answers: Sequence[Answer | str] = (Answer(),)) -> None:
        self._answers = [Answer(pieces=(each,)) if isinstance(each, str) else each for each in answers]
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[Any] | None] = {}
        self.requests: list[Asked] = []
        self.go_on = asyncio.Event()
        self.dropped = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> ModelServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self.go_on.set()
        self._server.close()
        served = [task for task in self._open.values() if task]
        for writer in self._open:
            writer.close()
        await asyncio.gather(*served)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = asyncio.current_task()
        try:
            while asked := await _read_request(reader):
                self.requests.append(asked)
                await self._answer(asked, self._answers[min(len(self.requests), len(self._answers)) - 1], writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.dropped.set()
        finally:
            self._open.pop(writer, None)
            writer.close()

    async def _answer(self, asked: Asked, answer: Answer, writer: asyncio.StreamWriter) -> None:
        if answer.status != 200:
            body = json.dumps(answer.error).encode()
            writer.write(_head(answer.status, JSON, {**answer.headers, "content-length": str(len(body))}) + body)
            await writer.drain()
            return
        writer.write(_head(200, EVENTS, {**answer.headers, "transfer-encoding": "chunked"}))
        await self._send(asked, answer, writer)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _send(self, asked: Asked, answer: Answer, writer: asyncio.StreamWriter) -> None:
        events = anthropic_events(answer) if asked.path.endswith("/messages") else openai_events(asked, answer)
        for number, event in enumerate(events):
            if number == answer.cut_after:
                raise ConnectionResetError("the server cuts the stream")
            data = event.encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            if answer.pause and _has_text(event, answer):
                await self.go_on.wait()


def openai_events(asked: Asked, answer: Answer) -> Iterator[str]:
    """The events of a chat completion."""
    for piece in answer.pieces:
        yield _chunk([{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}])
    if answer.raw:
        yield answer.raw
        return
    yield _chunk([{"index": 0, "delta": {}, "finish_reason": answer.stop_reason or "stop"}])
    if answer.usage and asked.body.get("stream_options", {}).get("include_usage"):
        yield _chunk([], usage=_openai_usage(*answer.usage))
    yield "data: [DONE]\n\n"


def anthropic_events(answer: Answer) -> Iterator[str]:
    """The events of a message."""
    given, made, cached = answer.usage or (0, 0, 0)
    usage = {"input_tokens": given - cached, "output_tokens": 1, "cache_read_input_tokens": cached}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": usage}
    yield _event("message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None}})
    yield _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in answer.pieces:
        yield _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}})
    if answer.raw:
        yield answer.raw
        return
    yield _event("content_block_stop", {"index": 0})
    delta = {"stop_reason": answer.stop_reason or "end_turn", "stop_sequence": None}
    yield _event("message_delta", {"delta": delta, "usage": {"output_tokens": made}})
    yield _event("message_stop", {})


def _chunk(choices: list[dict[str, Any]], usage: Mapping[str, Any] | None = None) -> str:
    document = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": choices}
    return f"data: {json.dumps({**document, 'usage': usage})}\n\n"


def _openai_usage(given: int, made: int, cached: int) -> dict[str, Any]:
    counts = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}}


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"


def _has_text(event: str, answer: Answer) -> bool:
    return bool(answer.pieces) and json.dumps(answer.pieces[0]) in event


def _head(status: int, kind: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    lines = [line async for line in _head_lines(reader)]
    if not lines:
        return None
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.strip().lower(): text.strip() for name, _, text in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(lines[0].split()[1].partition("?")[0], headers, json.loads(body or b"{}"))


async def _head_lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := (await reader.readline()).decode().strip():
        yield line
