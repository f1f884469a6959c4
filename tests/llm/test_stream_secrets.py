"""Secrets in streams that are to be kept: whatever way they are written, none is kept that a reader would find."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koi_lang.errors import CorpusError
from koi_lang.llm.recorded_stream import CorpusStream, StreamAbout
from koi_lang.llm.stream_recording import without_secrets
from koi_lang.redaction.redactor import redactor

KEY = "wJalrXUt+FEMI/K7MDENGbPxRfiCYz9q"
START, END = "wJalrXUt+FEMI", "/K7MDENGbPxRfiCYz9q"
FAULT = json.dumps({"error": {"message": f"no such key: {KEY}"}})


def event(delta: Any, **beside: Any) -> str:
    """An event of a chat."""
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}], **beside}, ensure_ascii=False)}\n\n"


def in_two(make: Any) -> str:
    """Two events, each with a part of the key."""
    return make(START) + make(END)


WRITTEN = {
    "slashes escaped": FAULT.replace("/", "\\/"),
    "signs escaped": FAULT.replace("+", "\\u002B"),
    "escaped in an event": f"data: {FAULT.replace('/', chr(92) + '/')}\n\n",
    "over several lines": json.dumps(json.loads(FAULT), indent=2).replace("/", "\\/"),
    "name of a field": json.dumps({"error": {KEY: 1}}).replace("/", "\\/"),
    "line separators beside": in_two(lambda part: event({"content": part}, obfuscation="\u2028")),
    "events of two lines": in_two(lambda part: event({"content": part}).replace('"delta"', '\ndata: "delta"')),
    "lines that end in returns": in_two(lambda part: event({"content": part})).replace("\n", "\r"),
    "citations": in_two(lambda part: event({"citation": {"cited_text": part}})),
    "summaries": in_two(lambda part: event({"reasoning_details": [{"summary": part}]})),
    "two calls at once": "".join(
        event({"tool_calls": [{"index": number, "function": {"arguments": part}} for number in (0, 1)]})
        for part in (START, END)
    ),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_a_secret_that_cannot_be_replaced_is_not_kept(way: str) -> None:
    """JSON has many ways to write a text, and a stream many to tell it in pieces."""
    stream = CorpusStream(StreamAbout("openai", "chat", "m", "recorded"), WRITTEN[way])

    with pytest.raises(CorpusError, match="a secret is spread over several of its lines, or"):
        without_secrets(stream, redactor({"OPENAI_API_KEY": KEY}))


def test_a_stream_without_secrets_is_kept_as_it_is() -> None:
    """Identifiers that stand in every event are none, however often they stand there."""
    text = "".join(event({"content": f"word {n} "}, id="chatcmpl-8fK2", obfuscation="aZ9kQ") for n in range(50))
    stream = CorpusStream(StreamAbout("openai", "chat", "m", "recorded"), text)

    assert text == without_secrets(stream, redactor({"OPENAI_API_KEY": KEY})).text
