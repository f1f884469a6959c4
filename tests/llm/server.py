"""A model provider on 127.0.0.1: speaks the wire formats of OpenAI and Anthropic, and can misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from tests.llm.wire import Answer, anthropic_events, embeddings, openai_events
from tests.llm.wire_responses import responses_events

__all__ = ["Answer", "Asked", "ModelServer"]

JSON = "application/json"
HTML = "text/html"
NO_DOCUMENTS: Mapping[str, Any] = {}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived; `at_s` is the monotonic clock then, `sent` the body in bytes."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at_s: float = field(default_factory=time.monotonic, compare=False)
    method: str = "POST"
    sent: bytes = field(default=b"", compare=False)


class ModelServer:
    """Answers requests in order; the last answer is repeated. Lists of models, if it has any, are answered apart.

    Given a function from texts to vectors, it answers requests for embeddings apart, too. Answers may be a function of
    the request. Documents, by their paths, are what it has beside. With a key it refuses
    to list anything without it.

    Use as `async with ModelServer(["text", Answer(status=429)]) as server`, then point an adapter at `server.url`.
    """

    def __init__(
        self,
        answers: Sequence[Answer | str] | Callable[[Asked], Answer] = ("ok",),
        models: Sequence[str | Mapping[str, Any]] = (),
        embed: Callable[[str], Sequence[float]] | None = None,
        documents: Mapping[str, Any] = NO_DOCUMENTS,
        key: str = "",
    ) -> None:
        self._key = key
        self._documents = documents
        self._choose = answers if callable(answers) else self._in_order(answers)
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[Any] | None] = {}
        self._models = [{"id": each} if isinstance(each, str) else each for each in models]
        self._embed = embed
        self.embedded: list[Asked] = []
        self.requests: list[Asked] = []
        self.looks: list[Asked] = []
        self.go_on = asyncio.Event()
        self.dropped = asyncio.Event()
        self.asked = asyncio.Event()
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

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """What the server itself is doing."""
        return {task for task in self._open.values() if task is not None}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = asyncio.current_task()
        try:
            while asked := await _read_request(reader):
                if (self._models or self._documents) and asked.method == "GET":
                    self.looks.append(asked)
                    await self._list(asked, writer)
                    continue
                if self._embed is not None and asked.path.endswith("/embeddings"):
                    self.embedded.append(asked)
                    await _send_document(embeddings(asked.body["input"], self._embed), writer)
                    continue
                self.requests.append(asked)
                self.asked.set()
                await self._answer(asked, self._choose(asked), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.dropped.set()
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _in_order(self, answers: Sequence[Answer | str]) -> Callable[[Asked], Answer]:
        given = [Answer(pieces=(each,)) if isinstance(each, str) else each for each in answers]
        return lambda asked: given[min(len(self.requests), len(given)) - 1]

    async def _list(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        """The list of models, or the one that is asked for, or another document."""
        if self._key and asked.headers.get("authorization") != f"Bearer {self._key}":
            refusal = {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
            await _send_document(refusal, writer, status=401)
            return
        if asked.path in self._documents or not asked.path.partition("/models")[1]:
            found = self._documents.get(asked.path)
            await _send_document(found, writer, status=200 if found is not None else 404)
            return
        name = asked.path.partition("/models/")[2]
        found = next((each for each in self._models if each["id"] == name), None)
        document = found if name else {"object": "list", "data": self._models}
        await _send_document(document, writer, status=404 if name and found is None else 200)

    async def _answer(self, asked: Asked, answer: Answer, writer: asyncio.StreamWriter) -> None:
        if answer.silent:
            await self.go_on.wait()
        if answer.page or answer.status != 200:
            body = (answer.page or json.dumps(answer.error)).encode()
            headers = {**answer.headers, "content-length": str(len(body))}
            writer.write(_head(answer.status, HTML if answer.page else JSON, headers) + body)
            await writer.drain()
            return
        if answer.document is not None:
            await _send_document(answer.document, writer)
            return
        writer.write(_head(200, answer.kind, {**answer.headers, "transfer-encoding": "chunked"}))
        await self._send(asked, answer, writer)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _send(self, asked: Asked, answer: Answer, writer: asyncio.StreamWriter) -> None:
        for number, event in enumerate(_events(asked, answer)):
            if number == answer.cut_after:
                if answer.reset:
                    _socket_of(writer).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                raise ConnectionResetError("the server cuts the stream")
            data = event.encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            if answer.pause and _has_text(event, answer):
                await self.go_on.wait()


async def _send_document(document: Any, writer: asyncio.StreamWriter, status: int = 200) -> None:
    body = json.dumps(document).encode()
    writer.write(_head(status, JSON, {"content-length": str(len(body))}) + body)
    await writer.drain()


def _events(asked: Asked, answer: Answer) -> Iterator[str]:
    if asked.path.endswith("/messages"):
        return anthropic_events(answer)
    if asked.path.endswith("/responses"):
        return responses_events(answer)
    return openai_events(answer, with_usage=bool(asked.body.get("stream_options", {}).get("include_usage")))


def _socket_of(writer: asyncio.StreamWriter) -> socket.socket:
    found: socket.socket = writer.get_extra_info("socket")
    return found


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
    method, path, _ = lines[0].split()
    return Asked(path.partition("?")[0], headers, json.loads(body or b"{}"), method=method, sent=body)


async def _head_lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := (await reader.readline()).decode().strip():
        yield line
