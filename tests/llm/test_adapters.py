"""The adapters, through the real SDKs, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import RequestError
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.connect import provider_named
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.messages import Adapter, Delta, Message, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.openai_responses import OpenAIResponses
from koi_lang.llm.sdk_model import _pools
from koi_lang.system.certificates import certificates
from tests.limits import LIMIT_S
from tests.llm.server import Answer, Asked, ModelServer

KEY = "sk-very-secret-0123456789"
REQUEST = Request("You follow a playbook.", (Message("user", "Begin."),), json=True)
KINDS: dict[str, Callable[[ProviderConnection], Adapter]] = {
    "openai": OpenAI,
    "responses": OpenAIResponses,
    "anthropic": Anthropic,
}
BOTH = pytest.mark.parametrize("kind", ["openai", "anthropic"])
ALL = pytest.mark.parametrize("kind", list(KINDS))


def provider_of(kind: str) -> str:
    """The provider behind an adapter."""
    return "openai" if kind == "responses" else kind


def adapter(kind: str, url: str, **options: Any) -> Adapter:
    """An adapter that talks to the server at `url`."""
    base_url = url if kind == "anthropic" else f"{url}/v1"
    connection = ProviderConnection(provider_named(provider_of(kind)), Secret(KEY), "some-model", base_url)
    return KINDS[kind](replace(connection, **options))


@asynccontextmanager
async def talk(kind: str, *answers: Answer | str, **options: Any) -> AsyncIterator[tuple[Adapter, ModelServer]]:
    """A server with these answers and an adapter connected to it."""
    async with ModelServer(answers or ("ok",)) as server:
        model = adapter(kind, server.url, **options)
        try:
            yield model, server
        finally:
            await model.aclose()


def answer_to(kind: str, *answers: Answer | str, request: Request = REQUEST, **options: Any) -> list[Delta]:
    """All deltas of one request."""

    async def run() -> list[Delta]:
        async with talk(kind, *answers, **options) as (model, _):
            return [delta async for delta in model(request)]

    return asyncio.run(run())


def asked_for(kind: str, request: Request) -> Asked:
    """What the server received for a request."""

    async def run() -> Asked:
        async with talk(kind) as (model, server):
            async for _ in model(request):
                pass
            return server.requests[0]

    return asyncio.run(run())


def remembered(text: str) -> dict[str, Any]:
    """A block of text that Anthropic is asked to remember, with everything before it."""
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def failure_of(kind: str, *answers: Answer | str) -> RequestError:
    """The error that a request ends with."""
    with pytest.raises(RequestError) as caught:
        answer_to(kind, *answers)
    return caught.value


@ALL
def test_the_pieces_of_an_answer_arrive_and_usage_ends_it(kind: str) -> None:
    """Each piece of text is a delta; the end carries the counted tokens and why the model stopped."""
    stop = {"openai": "stop", "anthropic": "end_turn", "responses": "completed"}[kind]

    deltas = answer_to(kind, Answer(pieces=('{"a"', ": 1}")))

    assert [TextDelta('{"a"'), TextDelta(": 1}"), StreamEnd(Usage(7, 3, 2), stop)] == deltas


def test_openai_tells_which_tokens_it_was_paid_to_remember() -> None:
    """Newer models of OpenAI take more for input that they store."""
    details = {"cached_tokens": 2, "cache_write_tokens": 5}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10, "prompt_tokens_details": details}
    end = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "usage": usage}
    choices = [{"index": 0, "delta": {}, "finish_reason": "stop"}]

    deltas = answer_to("openai", Answer(raw=f"data: {json.dumps({**end, 'choices': choices})}\n\ndata: [DONE]\n\n"))

    assert StreamEnd(Usage(9, 1, 2, 5), "stop") == deltas[-1]


@ALL
def test_the_first_delta_arrives_before_the_last_is_sent(kind: str) -> None:
    """Text is handed on while the provider still writes."""

    async def run() -> list[Delta]:
        async with talk(kind, Answer(pieces=("first", "second"), pause=True)) as (model, server):
            stream = model(REQUEST)
            first = await anext(stream)
            server.go_on.set()
            return [first, *[delta async for delta in stream]][:2]

    assert [TextDelta("first"), TextDelta("second")] == asyncio.run(run())


@ALL
def test_an_abandoned_stream_leaves_nothing_open(kind: str) -> None:
    """A consumer may stop after the first delta; the provider is told by the closed connection."""

    async def run() -> bool:
        async with talk(kind, Answer(pieces=("first", *["x" * 100_000] * 50), pause=True)) as (model, server):
            stream = model(REQUEST)
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
            server.go_on.set()
            return await asyncio.wait_for(server.dropped.wait(), LIMIT_S)

    assert asyncio.run(run())


@ALL
def test_connections_are_used_again(kind: str) -> None:
    """Several requests, one after the other and at once, go through one adapter."""

    async def run() -> list[str]:
        async with talk(kind, "one", "two", "three") as (model, _):
            await text_of(model)
            return sorted(await asyncio.gather(text_of(model), text_of(model)))

    async def text_of(model: Adapter) -> str:
        return "".join([delta.text async for delta in model(REQUEST) if isinstance(delta, TextDelta)])

    assert asyncio.run(run()) == ["three", "two"]


@pytest.mark.sampled(10)
@ALL
@pytest.mark.parametrize(
    ("status", "start", "repeatable"),
    [
        (400, "`{0}` rejects the request: no …", False),
        (401, "`{0}` does not accept the key in `{1}_API_KEY`", False),
        (402, "the credit at `{0}` is used up", False),
        (403, "the key in `{1}_API_KEY` may not use `some-model` at `{0}`", False),
        (404, "`{0}` does not know the model `some-model`", False),
        (413, "the conversation is too long for `some-model`", False),
        (418, "`{0}` rejects the request: no …", False),
        (429, "`{0}` asks to slow down: no …", True),
        (500, "`{0}` has a problem of its own (status 500): no …", True),
        (503, "`{0}` has a problem of its own (status 503): no …", True),
        (529, "`{0}` is overloaded", True),
    ],
)
def test_a_refusal_is_one_sentence_without_the_key(kind: str, status: int, start: str, repeatable: bool) -> None:
    """Every status has words of its own; the key is shown neither there nor in the cause."""
    error = {"error": {"message": f"no {KEY}", "type": "whatever"}}
    provider = provider_of(kind)
    expected = start.format(provider, provider.upper())

    failure = failure_of(kind, Answer(status=status, error=error))

    assert (expected, repeatable, status) == (failure.message, failure.repeatable, failure.status)
    assert KEY not in f"{failure.help} {failure.__cause__!r} {failure.__cause__}"


@ALL
def test_the_wait_a_provider_asks_for_is_kept(kind: str) -> None:
    """A `retry-after` header is there for whoever repeats the request."""
    failure = failure_of(kind, Answer(status=429, headers={"retry-after": "2.5"}))

    assert failure.retry_after_s == 2.5


@ALL
def test_certificates_are_read_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further server is checked with those that have been read: to read them again would hold a loop up."""
    shared, reads = certificates(), list[Any]()
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *places: reads.append(places))

    answer_to(kind, "ok")

    assert ([], True) == (reads, certificates() is shared)


@ALL
def test_a_request_is_sent_once(kind: str) -> None:
    """The SDKs do not repeat on their own: how often is decided elsewhere."""

    async def run() -> int:
        async with talk(kind, Answer(status=500)) as (model, server):
            with pytest.raises(RequestError):
                await anext(model(REQUEST))
            return len(server.requests)

    assert asyncio.run(run()) == 1


def test_used_up_credit_is_not_a_rate_limit() -> None:
    """OpenAI sends 429 for both; only one of them passes by waiting."""
    failure = failure_of("openai", Answer(status=429, error={"error": {"code": "insufficient_quota", "message": ""}}))

    assert (failure.message, failure.repeatable) == ("the credit at `openai` is used up", False)


@ALL
@pytest.mark.parametrize(("events", "message"), [(0, "cannot reach `{}` at"), (3, "`{}` broke off its answer")])
def test_a_cut_stream_is_an_error(kind: str, events: int, message: str) -> None:
    """A connection that closes in the middle of an answer never looks like the end of it."""
    failure = failure_of(kind, Answer(pieces=("a", "b", "c", "d"), cut_after=events))

    assert failure.message.startswith(message.format(provider_of(kind)))
    assert failure.repeatable


@ALL
def test_an_answer_without_its_end_is_an_error(kind: str) -> None:
    """A stream that closes properly but never said why the model stopped is not complete."""
    failure = failure_of(kind, Answer(raw=": nothing\n\n"))

    assert failure.message == f"`{provider_of(kind)}` broke off its answer before it was complete"


@ALL
def test_malformed_json_in_a_stream_is_an_error(kind: str) -> None:
    """An event that cannot be read ends the request with words, not with a parser's exception."""
    failure = failure_of(kind, Answer(raw='event: message_delta\ndata: {"oops\n\n'))

    assert failure.message == f"`{provider_of(kind)}` sent an answer that is not well formed"


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        ("openai", 'data: {"error": {"message": "boom"}}\n\n', "`openai` broke off its answer: boom"),
        (
            "anthropic",
            'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}\n\n',
            "`anthropic` is overloaded",
        ),
        (
            "responses",
            'data: {"type": "error", "code": null, "message": "boom", "param": null, "sequence_number": 9}\n\n',
            "`openai` broke off its answer: boom",
        ),
    ],
)
def test_an_error_inside_a_stream_is_told(kind: str, raw: str, message: str) -> None:
    """A provider may fail after it has begun to answer."""
    failure = failure_of(kind, Answer(raw=raw))

    assert (message, True) == (failure.message, failure.repeatable)


@ALL
def test_silence_ends_a_request(kind: str) -> None:
    """A provider that stops sending is given up after the time that was set."""

    async def run() -> None:
        async with ModelServer([Answer(pause=True)]) as server:
            model = adapter(kind, server.url, silence_s=0.05)
            try:
                async for _ in model(REQUEST):
                    pass
            finally:
                await model.aclose()

    with pytest.raises(RequestError, match=f"`{provider_of(kind)}` sent nothing for 0.05 s"):
        asyncio.run(run())


@ALL
def test_nobody_listening_is_told_with_the_address(kind: str, unused_tcp_port: int) -> None:
    """Where no server runs, the message says where it was looked for."""

    async def run() -> None:
        model = adapter(kind, f"http://127.0.0.1:{unused_tcp_port}")
        try:
            await anext(model(REQUEST))
        finally:
            await model.aclose()

    with pytest.raises(
        RequestError, match=rf"cannot reach `{provider_of(kind)}` at `http://127.0.0.1:{unused_tcp_port}`"
    ):
        asyncio.run(run())


def test_openai_is_asked_for_json_and_usage() -> None:
    """The request carries the conversation, JSON mode and the wish for token counts."""
    asked = asked_for("openai", replace(REQUEST, temperature=0.0, max_tokens=50))

    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "You follow a playbook."},
            {"role": "user", "content": "Begin."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_object"},
        "temperature": 0.0,
        "max_tokens": 50,
    }


def test_reasoning_models_of_openai_get_no_temperature() -> None:
    """Newer models refuse a temperature and count the limit under another name."""
    asked = asked_for("openai", replace(REQUEST, model="gpt-5.4-mini", temperature=0.0, max_tokens=50, json=False))

    assert {"model", "messages", "stream", "stream_options", "max_completion_tokens"} == set(asked.body)


@pytest.mark.parametrize(
    ("model", "url", "own", "sent"),
    [
        ("some-model", "http://127.0.0.1:9", None, 4096),
        ("some-model", "http://127.0.0.1:9", 9000, 9000),
        ("some-model", None, None, None),
        ("gpt-4o-mini", "http://127.0.0.1:9", None, None),
    ],
)
def test_unknown_models_have_a_limit(model: str, url: str | None, own: int | None, sent: int | None) -> None:
    """Small models of somebody's own server would write to the end of their window; known ones end by themselves."""
    connection = ProviderConnection(provider_named("openai"), Secret(KEY), model, url, max_tokens=own)

    assert sent == connection.complete(replace(REQUEST, model="", max_tokens=None)).max_tokens
    assert min(sent or 50, 50) == connection.complete(replace(REQUEST, model="", max_tokens=50)).max_tokens


def test_a_model_of_openai_without_a_card_is_told_its_limit_in_the_new_way() -> None:
    """A budget may tell any model how long its answer may be, and newer ones refuse the old word for it."""
    connection = ProviderConnection(provider_named("openai"), Secret(KEY), "gpt-99")
    bodies = [OpenAI(connection)._body(replace(REQUEST, model=name, max_tokens=80)) for name in ("gpt-99", "gpt-4o")]

    assert [{"max_completion_tokens"}, {"max_tokens"}] == [
        {name for name in body if name.startswith("max_")} for body in bodies
    ]


def test_anthropic_gets_system_and_turns_apart() -> None:
    """System text leaves the conversation, neighbouring turns of one role are joined."""
    turns = (Message("user", "One."), Message("user", "Two."), Message("system", "Rule."), Message("assistant", "{}"))
    asked = asked_for("anthropic", Request("Base.", turns, model="claude-sonnet-4-6", temperature=0.5))

    assert asked.path == "/v1/messages"
    assert asked.body == {
        "model": "claude-sonnet-4-6",
        "system": [remembered("Base."), {"type": "text", "text": "Rule."}],
        "messages": [
            {"role": "user", "content": [remembered("One.\n\nTwo.")]},
            {"role": "assistant", "content": "{}"},
        ],
        "max_tokens": 8000,
        "temperature": 0.5,
        "stream": True,
    }


def test_anthropic_is_asked_to_remember_what_the_next_request_repeats() -> None:
    """The system text and the two last turns of the user are marked; what lies between is found through them."""
    turns = [Message(role, f"{role} {number}") for number in range(3) for role in ("user", "assistant")]
    body = asked_for("anthropic", Request("Base.", (*turns, Message("user", "last")))).body

    assert body["system"] == [remembered("Base.")]
    assert [turn["content"] for turn in body["messages"]] == [
        "user 0",
        "assistant 0",
        "user 1",
        "assistant 1",
        [remembered("user 2")],
        "assistant 2",
        [remembered("last")],
    ]


def test_anthropic_gets_no_empty_texts() -> None:
    """Anthropic refuses blocks without text; they are left out."""
    body = asked_for("anthropic", Request(" ", (Message("user", "Go."), Message("assistant", "\n")))).body

    assert ("system" in body, body["messages"]) == (False, [{"role": "user", "content": [remembered("Go.")]}])


def test_new_models_of_anthropic_get_no_temperature() -> None:
    """Models that refuse a temperature are asked without one; an alias stands for the current model."""
    body = asked_for("anthropic", replace(REQUEST, model="sonnet", temperature=0.0)).body

    assert (body["model"], "temperature" in body) == ("claude-sonnet-5-5", False)


def test_the_environment_moves_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a `base_url` the SDK's own variable decides."""

    async def run() -> str:
        async with ModelServer(["moved"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            model = OpenAI(ProviderConnection(provider_named("openai"), Secret(KEY), "m"))
            try:
                return "".join([delta.text async for delta in model(REQUEST) if isinstance(delta, TextDelta)])
            finally:
                await model.aclose()

    assert asyncio.run(run()) == "moved"


def test_other_providers_do_not_learn_the_openai_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Organisation and project of OpenAI stay with OpenAI."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")

    def headers_for(name: str) -> set[str]:
        return {header for header in _asked_by(name).headers if header.startswith("openai-")}

    assert {"openai-organization", "openai-project"} == headers_for("openai")
    assert set() == headers_for("groq")


def _asked_by(name: str) -> Asked:
    async def run() -> Asked:
        async with ModelServer() as server:
            model = OpenAI(ProviderConnection(provider_named(name), Secret(KEY), "m", server.url))
            try:
                async for _ in model(REQUEST):
                    pass
            finally:
                await model.aclose()
            return server.requests[0]

    return asyncio.run(run())


def test_a_connection_does_not_show_its_key() -> None:
    """Printing a connection, as a traceback or a log may do, hides the key."""
    connection = ProviderConnection(provider_named("openai"), Secret(KEY), "m")
    show: Callable[[object], str] = repr

    assert KEY not in show(connection)


@ALL
def test_models_share_connections(kind: str) -> None:
    """Models of one provider and key ask through one connection, another key has its own; the last one closes it."""

    async def scenario() -> tuple[int, int, int, int]:
        async with ModelServer() as server:
            first, second, other = (adapter(kind, server.url, key=Secret(key)) for key in (KEY, KEY, "another"))
            for model in (first, second, other):
                assert "ok" == await text_from(model)
            shared = len(server.tasks)
            await first.aclose()
            assert "ok" == await text_from(second)
            await second.aclose()
            await other.aclose()
            await asyncio.wait(server.tasks)
            assert "ok" == await text_from(first)
            again = len(server.tasks)
            await first.aclose()
            return shared, again, len(server.requests), len(_pools()[asyncio.get_running_loop()])

    assert (2, 1, 5, 0) == asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


async def text_from(model: Adapter) -> str:
    """The text of the answer to a request."""
    return "".join([delta.text async for delta in model(REQUEST) if isinstance(delta, TextDelta)])
