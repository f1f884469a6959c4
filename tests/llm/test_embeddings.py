"""Texts to vectors through OpenAI's SDK: which model, how often, and what comes of wrong answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError, MissingKeyError, ProviderError, RequestError, SettingsError, UnknownModelError
from koi_lang.llm.connect import ModelEnvironment
from koi_lang.llm.connection import Provider
from koi_lang.llm.embeddings import (
    Embedder,
    Vector,
    connection_for,
    embedder,
    pack_vector,
    require_embeddings,
    unpack_vector,
)
from koi_lang.llm.messages import Message, Request, Usage
from koi_lang.llm.model_list_cache import ModelListCache
from tests.llm.meanings import meaning
from tests.llm.server import Answer, ModelServer

KEY = "sk-test-0123456789abcdef"
MODEL = "text-embedding-3-small"


def keys(**known: str) -> Callable[[str], str | None]:
    """What finds keys."""
    return known.get


def asked(work: Callable[[ModelServer], Awaitable[Any]], *, server: ModelServer | None = None) -> Any:
    """What some work comes to while a server answers."""
    given = server or ModelServer(embed=meaning)

    async def run() -> Any:
        async with given:
            return await work(given)

    return asyncio.run(run())


def at(server: ModelServer, *, around: ModelEnvironment | None = None, **options: Any) -> Embedder:
    """A model for embeddings at a server; nothing is waited for between attempts."""
    meant = {"provider": "openai", "model": MODEL, "base_url": server.url, **options}
    return embedder(meant, keys(OPENAI_API_KEY=KEY), around=around or ModelEnvironment(sleep=_at_once))


async def _at_once(seconds: float) -> None:
    """No pause."""


def ignore(usage: Usage) -> None:
    """Nobody counts."""


def test_texts_become_vectors_in_their_order() -> None:
    """Each vector is that of its text and of length 1, whatever order the provider tells them in."""

    async def work(server: ModelServer) -> list[Vector]:
        async with aclosing(at(server)) as model:
            return await model.vectors(["short", "paint", "short"], count=ignore)

    short, paint, again = asked(work)

    assert [(1.0, 0.0), (0.0, 1.0)] == [(each[0], each[2]) for each in (short, paint)]
    assert short == again


def test_a_request_is_what_the_interface_wants() -> None:
    """Model, texts and form go to `/embeddings`, with the key."""

    async def work(server: ModelServer) -> None:
        async with aclosing(at(server)) as model:
            await model.vectors(["one", "two"], count=ignore)

    server = ModelServer(embed=meaning)
    asked(work, server=server)
    (request,) = server.embedded

    assert {"model": MODEL, "input": ["one", "two"], "encoding_format": "float"} == request.body
    assert ("/embeddings", f"Bearer {KEY}") == (request.path, request.headers["authorization"])


def test_many_texts_go_in_batches_and_each_once() -> None:
    """No request holds more texts than a provider takes; what has been seen is not sent again."""

    async def work(server: ModelServer) -> tuple[list[int], list[int]]:
        usages: list[Usage] = []
        async with aclosing(at(server, provider="qwen")) as model:
            await model.vectors([f"text {n}" for n in range(23)], count=usages.append)
            await asyncio.gather(*(model.vectors(["text 5", "new"], count=usages.append) for _ in range(2)))
        sizes = [len(request.body["input"]) for request in server.embedded]
        return sizes, [usage.input_tokens for usage in usages]

    assert ([10, 10, 3, 1], [20, 20, 6, 1]) == asked(work)


def test_vectors_are_kept_between_runs(tmp_path: Path) -> None:
    """What was embedded once is read from disk, unless the options say otherwise; another model has its own."""

    async def work(server: ModelServer) -> list[list[str]]:
        around = ModelEnvironment(cache_folder=tmp_path / "answers")
        for options in ({}, {}, {"model": "other"}, {"cache": False}):
            async with aclosing(at(server, around=around, **options)) as model:
                await model.vectors(["one", "two"], count=ignore)
        return [request.body["input"] for request in server.embedded]

    assert [["one", "two"]] * 3 == asked(work)


def test_a_failed_request_is_repeated() -> None:
    """The layer that repeats other requests repeats these, and tells of it."""
    told: list[str] = []

    async def work(server: ModelServer) -> None:
        around = ModelEnvironment(sleep=_at_once, on_event=lambda data: told.append(data.type))
        async with aclosing(at(server, around=around)) as model:
            with pytest.raises(RequestError, match=r"problem of its own .*\(3 attempts\)"):
                await model.vectors(["one"], count=ignore)

    server = ModelServer([Answer(status=500, error={"error": {"message": "no"}})])
    asked(work, server=server)

    assert (3, ["retry_started", "retry_started", "retry_ended"]) == (len(server.requests), told)


@pytest.mark.parametrize(
    "page",
    [
        "<html>", "[]", "{}", '{"data": []}', '{"data": 5}', '{"data": [5]}', '{"data": [{"index": 0}]}',
        '{"data": [{"index": 0, "embedding": "x"}]}', '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": [0, 0]}]}', '{"data": [{"index": 0, "embedding": [1e999]}]}',
        '{"data": [{"index": 0, "embedding": [NaN]}]}', '{"data": [{"index": 0, "embedding": [null]}]}',
        '{"data": [{"index": "a", "embedding": [1]}, {"index": 0, "embedding": [1]}]}',
    ],
)  # fmt: skip
def test_an_answer_that_is_no_vector_is_an_error(page: str) -> None:
    """Whatever a server sends, there is one sentence, and nothing is taken for a vector."""

    async def work(server: ModelServer) -> None:
        async with aclosing(at(server)) as model:
            with pytest.raises(RequestError, match="sent an answer that is not well formed"):
                await model.vectors(["one"], count=ignore)

    asked(work, server=ModelServer([Answer(page=page)]))


def test_vectors_of_several_sizes_are_an_error() -> None:
    """What cannot be compared is not."""

    def embed(text: str) -> Sequence[float]:
        return [1.0] * len(text)

    async def work(server: ModelServer) -> None:
        async with aclosing(at(server)) as model:
            with pytest.raises(ProviderError, match="gave vectors of several sizes"):
                await model.vectors(["a", "bb"], count=ignore)

    asked(work, server=ModelServer(embed=embed))


def test_what_is_sent_may_be_changed_or_refused() -> None:
    """Whoever looks at requests changes what leaves, and vectors are kept for what was sent; or nothing leaves."""

    async def without_name(request: Request) -> Request:
        return Request("", tuple(Message("user", each.text.replace("Ada", "…")) for each in request.messages))

    async def refused(request: Request) -> Request:
        raise ProviderError("no")

    async def work(server: ModelServer) -> list[Any]:
        async with aclosing(at(server)) as model:
            await model.vectors(["tell Ada"], count=ignore, before=without_name)
            with pytest.raises(ProviderError, match="no"):
                await model.vectors(["tell Bob"], count=ignore, before=refused)
        return [request.body["input"] for request in server.embedded]

    assert [["tell …"]] == asked(work)


def test_a_mistyped_model_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    """The list of the provider says what may have been meant; a list without such models says nothing."""

    async def work(server: ModelServer) -> tuple[str | None, int]:
        around = ModelEnvironment(lists=ModelListCache(tmp_path), ask_for_lists=True, sleep=_at_once)
        async with aclosing(at(server, around=around, model="text-embeding-3-small")) as model:
            with pytest.raises(UnknownModelError, match="has no model `text-embeding-3-small`") as caught:
                await model.vectors(["one"], count=ignore)
        return caught.value.help, len(server.embedded)

    help, sent = asked(work, server=ModelServer(models=["gpt-4o", MODEL], embed=meaning))

    assert help is not None
    assert help.startswith(f"Did you mean `{MODEL}`?")
    assert 0 == sent


def test_a_list_without_such_models_says_nothing(tmp_path: Path) -> None:
    """Some providers list models for answers only."""

    async def work(server: ModelServer) -> int:
        around = ModelEnvironment(lists=ModelListCache(tmp_path), ask_for_lists=True)
        async with aclosing(at(server, around=around)) as model:
            await model.vectors(["one"], count=ignore)
        return len(server.embedded)

    assert 1 == asked(work, server=ModelServer(models=["gpt-4o"], embed=meaning))


# ---------------------------------------------------------------- which model

ALL = dict.fromkeys(("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "DASHSCOPE_API_KEY"), KEY)


def test_a_server_of_the_person_needs_no_key() -> None:
    """An address is enough for one that answers as OpenAI does."""

    async def work(server: ModelServer) -> Vector:
        async with aclosing(embedder({"model": "openai/bge-m3", "base_url": server.url}, keys())) as model:
            return (await model.vectors(["short"], count=ignore))[0]

    server = ModelServer(embed=meaning)

    assert 1.0 == asked(work, server=server)[0]
    assert ["bge-m3"] == [request.body["model"] for request in server.embedded]


@pytest.mark.parametrize(
    ("options", "known", "meant"),
    [
        ({"model": "openai/text-embedding-3-large"}, {"OPENAI_API_KEY": KEY}, "openai/text-embedding-3-large"),
        ({"provider": "mistral"}, ALL, "mistral/mistral-embed"),
        ({"model": "mistral-embed"}, ALL, "mistral/mistral-embed"),
        ({"model": "gemini-embedding-001"}, ALL, "gemini/gemini-embedding-001"),
        ({"provider": "auto"}, ALL, "gemini/gemini-embedding-001"),
        ({"model": "ollama/nomic-embed-text"}, {}, "ollama/nomic-embed-text"),
        ({"model": "groq/mine", "base_url": "http://127.0.0.1:9"}, {}, "groq/mine"),
        ({"model": "ours/embed"}, {}, "ours/embed"),
    ],
)
def test_the_provider_is_found(options: dict[str, str], known: dict[str, str], meant: str) -> None:
    """A named one counts, also that of an extension; else the maker of the model; else the first that has a key."""
    ours = Provider("ours", (), "chat", "http://127.0.0.1:9", needs_key=False)
    connection = connection_for(options, keys(**known), around=ModelEnvironment(providers={"ours": ours}))

    assert meant == f"{connection.provider.name}/{connection.model}"


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"model": "anthropic/sonnet"}, ProviderError, "`anthropic` makes no embeddings"),
        ({"provider": "anthropic", "base_url": "http://127.0.0.1:9"}, ProviderError, "`anthropic` makes no embeddings"),
        ({"provider": "groq"}, ProviderError, "`groq` makes no embeddings"),
        ({"provider": "scripted"}, ProviderError, "`scripted` makes no embeddings"),
        ({"provider": "opnai"}, ProviderError, "there is no provider `opnai`"),
        ({"model": "mistrl/mistral-embed"}, ProviderError, "there is no provider `mistrl`"),
        ({"provider": "openai"}, MissingKeyError, "the provider `openai` needs a key"),
        ({"model": "some-model"}, MissingKeyError, "no provider that makes embeddings is connected"),
        ({"provider": "openai", "fallback": ["mistral/mistral-embed"]}, SettingsError, "has no `fallback`"),
    ],
)
def test_what_cannot_embed_is_told_at_once(options: dict[str, Any], kind: type[KoiError], told: str) -> None:
    """One sentence says what is wrong, another one what to do."""
    with pytest.raises(kind, match=told) as caught:
        connection_for(options, keys(ANTHROPIC_API_KEY=KEY))

    assert caught.value.help


def test_what_can_be_told_without_a_key_is() -> None:
    """Settings are looked at before there is a key."""
    require_embeddings({"model": "openai/text-embedding-3-small"})
    with pytest.raises(ProviderError, match="`xai` makes no embeddings") as caught:
        require_embeddings({"model": "xai/grok-4.3"})

    assert "`openai`, `gemini`" in str(caught.value.help)


def test_vectors_are_packed_into_text() -> None:
    """They come back as they were; anything else is none."""
    assert [0.5, -1.0] == list(unpack_vector(pack_vector([0.5, -1.0])) or ())
    assert [None] * 5 == [unpack_vector(each) for each in (None, "", "?", "AAA=", 5)]
