"""Calls of tools and their results as providers that are strict about them take them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from koi_lang.llm.connect import provider_named
from koi_lang.llm.images import Image
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.tools import ToolCall, ToolOffer, ToolResult, ToolSet
from tests.llm.server import ModelServer
from tests.llm.test_adapters import adapter

OFFER = ToolOffer("Call tools.", ToolSet(()))
BEGIN = Message("user", "Begin.")
CALLED = Message("assistant", "I looked.", calls=(ToolCall("look", "{}"), ToolCall("look", "{}")))
PICTURE = Image("image/png", "aWNo")
TOLD = Message("user", "one two", results=(ToolResult("one"), ToolResult("two")))
SHOWN = Message("user", "one two", (PICTURE,), results=(ToolResult("one", images=(PICTURE,)), ToolResult("two")))
BESIDE = Message("user", "one two !", results=(*TOLD.results, ToolResult("!")))
# What follows the first message, and the roles that Mistral is told.
TALKS = {
    "the person goes on": ((CALLED, TOLD, Message("user", "Again.")), "user assistant tool tool assistant user"),
    "told beside results": ((CALLED, BESIDE), "user assistant tool tool assistant user"),
    "images in results": ((CALLED, SHOWN), "user assistant tool tool assistant user"),
    "results end it": ((CALLED, TOLD), "user assistant tool tool"),
    "more calls": ((CALLED, TOLD, CALLED, TOLD), "user assistant tool tool assistant tool tool"),
}


def sent_to(provider: str, *messages: Message) -> list[dict[str, Any]]:
    """The messages of a request as a provider gets them, without the system text."""

    async def run() -> list[dict[str, Any]]:
        async with ModelServer(["{}"]) as server:
            model = adapter("openai", server.url, provider=provider_named(provider), transport="tools")
            try:
                async for _ in model(Request("", (BEGIN, *messages), json=True, offer=OFFER)):
                    pass
            finally:
                await model.aclose()
            return [dict(each) for each in server.requests[0].body["messages"][1:]]

    return asyncio.run(run())


@pytest.mark.parametrize("name", TALKS)
def test_no_person_speaks_directly_after_results_to_mistral(name: str) -> None:
    """It answers 400 there; others are told of it as it was said."""
    messages, roles = TALKS[name]
    told, plainly = sent_to("mistral", *messages), sent_to("openai", *messages)

    assert roles.split() == [each["role"] for each in told]
    assert "assistant user" not in " ".join(each["role"] for each in plainly[1:])
    assert plainly == [each for each in told if each != {"role": "assistant", "content": "OK."}]


def test_ids_are_such_as_every_provider_takes() -> None:
    """Mistral wants nine letters and digits; each names one call of the conversation, and results name them."""
    told = sent_to("mistral", *(CALLED, TOLD) * 60)
    ids = [call["id"] for each in told for call in each.get("tool_calls", ())]

    assert 120 == len(set(ids))
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id) for id in ids)
    assert ids == [each["tool_call_id"] for each in told if each["role"] == "tool"]
