"""Streams of a corpus read again: by the SDK of their provider and by the readers here, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import Any

import httpx2

from koi_lang.errors import RequestError
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.connection import Provider, ProviderConnection, Secret
from koi_lang.llm.messages import Message, Request, StreamEnd, TextDelta, ThinkingDelta, Usage
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.openai_responses import OpenAIResponses
from koi_lang.llm.providers import PROVIDERS
from koi_lang.llm.recorded_stream import CorpusStream, StreamAbout
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.tools import NativeTool, ToolOffer, ToolSet

READERS: Mapping[str, type[SdkModel]] = {"chat": OpenAI, "messages": Anthropic, "responses": OpenAIResponses}
STYLES = {"messages": "anthropic"}
# What is known of offered tools: a call is the action of its name, and the arguments of a plan are actions themselves.
OFFER = ToolOffer("", ToolSet((NativeTool("plan", "", {}),)))
# Bytes that arrive at once.
PIECE = 4096
LIMIT_S = 60.0
NOBODY = "http://127.0.0.1:9"


async def read_again(stream: CorpusStream, piece: int = PIECE) -> dict[str, Any]:
    """The reading of a stream, without empty parts.

    Args:
        piece: how many bytes arrive at once.

    Returns:
        `text`, the actions; `thoughts`, as they are shown; `kept`, the blocks of thoughts that are sent back;
        `stop_reason`; `usage`; and `fault`, the sentence that a person gets, with `repeatable` where the same request
        may succeed later.
    """
    model = READERS[stream.about.wire](_connection(stream, piece))
    try:
        async with asyncio.timeout(LIMIT_S):
            read = await _read(model, _request(stream.body))
    except TimeoutError:
        read = {"fault": f"it was not read within {LIMIT_S:g} s"}
    finally:
        await model.aclose()
    return {name: value for name, value in read.items() if value}


async def _read(model: SdkModel, request: Request) -> dict[str, Any]:
    text, thoughts = [], []
    read: dict[str, Any] = {}
    try:
        async with aclosing(model(request)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                match delta:
                    case TextDelta():
                        text.append(delta.text)
                    case ThinkingDelta():
                        thoughts.append(delta.text)
                    case StreamEnd():
                        read = _end(delta)
    except RequestError as error:
        counted = error.discarded.usage if error.discarded else None
        is_told = counted is not None and not counted.estimated
        read = {"fault": error.message, "repeatable": error.repeatable, "usage": _usage(counted) if is_told else None}
    return {"text": "".join(text), "thoughts": "".join(thoughts), **read}


def _end(end: StreamEnd) -> dict[str, Any]:
    kept = [json.loads(block) for block in (end.thoughts.blocks if end.thoughts else ())]
    return {"kept": kept, "stop_reason": end.stop_reason, "usage": _usage(end.usage)}


def _usage(usage: Usage | None) -> dict[str, int] | None:
    return None if usage is None else {name: count for name, count in asdict(usage).items() if count}


def _request(body: Any) -> Request:
    """A request whose answer is read like that to the one which was sent: tools are offered where it had some."""
    return Request("", (Message("user", "Begin."),), json=True, offer=OFFER if _has_tools(body) else None)


def _has_tools(body: Any) -> bool:
    return isinstance(body, dict) and bool(body.get("tools"))


def _connection(stream: CorpusStream, piece: int) -> ProviderConnection:
    return ProviderConnection(
        _row(stream.about),
        Secret(""),
        stream.about.model,
        transport="tools" if _has_tools(stream.body) else "text",
        http={"transport": _ReplayTransport(stream, piece)},
    )


def _row(about: StreamAbout) -> Provider:
    """The provider of a stream, at no address; for an unknown one only the facts in the stream."""
    style = STYLES.get(about.wire, "openai")
    known = (row for row in PROVIDERS if row.name == about.provider and row.style == style)
    row = next(known, Provider(about.provider, (), about.model, style=style))
    return replace(row, base_url=NOBODY)


class _ReplayTransport(httpx2.AsyncBaseTransport):
    """Answers every request with one stream."""

    def __init__(self, stream: CorpusStream, piece: int) -> None:
        self._stream, self._piece = stream, piece

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": self._stream.about.content_type}
        return httpx2.Response(self._stream.about.status, headers=headers, stream=_Pieces(self._stream, self._piece))


class _Pieces(httpx2.AsyncByteStream):
    """A body in pieces, ended as it had ended."""

    def __init__(self, stream: CorpusStream, piece: int) -> None:
        self._stream, self._piece = stream, piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = self._stream.text.encode()
        for start in range(0, len(body), self._piece):
            yield body[start : start + self._piece]
            await asyncio.sleep(0)  # so that a limit of time can end it
        if self._stream.about.ending == "cut":
            raise httpx2.RemoteProtocolError("the connection broke")
        if self._stream.about.ending == "silent":
            raise httpx2.ReadTimeout("nothing more came")
