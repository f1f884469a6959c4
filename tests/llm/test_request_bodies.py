"""What goes over the wire is what a plain call of an SDK sends, byte for byte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from httpx2 import Timeout
from openai import AsyncOpenAI

from koi_lang.llm.images import Image
from koi_lang.llm.messages import Delta, Message, Request
from koi_lang.llm.request_bodies import encode_body
from tests.llm.server import Asked, ModelServer
from tests.llm.test_adapters import ALL, KEY, adapter
from tests.llm.test_forms import STRICT
from tests.llm.test_responses import ASKING

SEEING = {"openai": "gpt-4o", "responses": "gpt-5.4", "anthropic": "claude-sonnet-4-6"}
TALK = (Message("user", "Begin."), Message("assistant", '{"intent": "print"}'), Message("user", "It was printed."))
PICTURE = Message("user", "What is it?", (Image("image/png", "aWNo"),))
REQUESTS = {
    "a conversation": Request("You follow a playbook.", TALK),
    "no system text": Request("", TALK),
    "all settings": Request("Answer.", TALK, temperature=0.0, max_tokens=77, json=True),
    "a schema": Request("Answer.", TALK, temperature=1, json=True, schema=STRICT),
    "a picture": Request("Look.", (PICTURE,)),
    "other scripts": Request("Grüße, 你好, 🙂", (Message("user", '\x00\u2028"\\\n</s>'),)),
    "tools": replace(ASKING, messages=(*TALK, PICTURE)),
    "a system turn": Request("First.", (Message("system", "Second."), *TALK)),
}


async def send_plainly(kind: str, url: str, body: Mapping[str, Any]) -> None:
    """Send a body by the SDK's own method."""
    made, base_url = (AsyncAnthropic, url) if kind == "anthropic" else (AsyncOpenAI, f"{url}/v1")
    client: Any = made(api_key=KEY, base_url=base_url, timeout=Timeout(180.0, connect=10.0))
    known = dict(body)
    if kind == "anthropic" and "temperature" in known:  # a parameter that the SDK has no more
        known["extra_body"] = {"temperature": known.pop("temperature")}
    async with client:
        sends = client.messages if kind == "anthropic" else client.chat.completions
        sends = client.responses if kind == "responses" else sends
        async with await sends.create(**known) as stream:
            async for _ in stream:
                pass


def sent_both_ways(kind: str, request: Request) -> tuple[Asked, Asked]:
    """What the server received of the adapter, and of the SDK's own method."""

    async def run() -> tuple[Asked, Asked]:
        async with ModelServer() as server:
            model = adapter(kind, server.url, model=SEEING[kind], transport="tools", effort="low")
            await drain(model(request))
            await model.aclose()
            await send_plainly(kind, server.url, server.requests[0].body)
            return server.requests[0], server.requests[1]

    return asyncio.run(run())


@pytest.mark.sampled(10)
@ALL
@pytest.mark.parametrize("name", list(REQUESTS))
def test_the_bytes_are_those_of_a_plain_call(kind: str, name: str) -> None:
    """Neither the fields, nor their order, nor how they are written differs; nor the headers."""
    ours, plain = sent_both_ways(kind, REQUESTS[name])

    assert (plain.path, plain.sent) == (ours.path, ours.sent)
    assert {*plain.headers.items()} == {*ours.headers.items()}


@ALL
def test_half_a_character_is_sent_as_a_mark(kind: str) -> None:
    """Programs can cut a text inside of an emoji, which no UTF-8 can hold; the rest of the text arrives."""
    request = Request("", (Message("user", "cut \ud83d, whole \ud83d\ude42"),))

    async def run() -> bytes:
        async with ModelServer() as server:
            model = adapter(kind, server.url)
            await drain(model(request))
            await model.aclose()
            return server.requests[0].sent

    assert "cut \ufffd, whole 🙂".encode() in asyncio.run(run())


def test_a_key_of_an_administrator_stays_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK finds one in the environment; requests to models go with their own key."""
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")

    ours, _ = sent_both_ways("openai", REQUESTS["a conversation"])

    assert f"Bearer {KEY}" == ours.headers["authorization"]


def test_what_is_no_json_is_not_sent() -> None:
    """Infinity would be refused by any server."""
    with pytest.raises(ValueError, match="JSON"):
        encode_body({"temperature": float("inf")})


@pytest.mark.sampled(1)
@ALL
def test_a_long_conversation_is_not_converted_field_by_field(kind: str) -> None:
    """A request with the messages of 500 turns takes half of what the SDK's own method takes, or less."""
    request = Request("x", TALK[:2] * 500)

    async def run() -> tuple[float, float]:
        async with ModelServer() as server:
            model = adapter(kind, server.url)
            ours = [await cpu_s(drain(model(request))) for _ in range(4)]
            plain = [await cpu_s(send_plainly(kind, server.url, server.requests[0].body)) for _ in range(4)]
            await model.aclose()
            return min(ours), min(plain)

    ours_s, plain_s = asyncio.run(run())

    assert ours_s < plain_s / 2


async def drain(stream: AsyncIterator[Delta]) -> None:
    """Read a stream to its end."""
    async for _ in stream:
        pass


async def cpu_s(work: Awaitable[None]) -> float:
    """Seconds of CPU time that something takes."""
    start_s = time.process_time()
    await work
    return time.process_time() - start_s
