"""Images on their way to models: which are taken, how each provider gets them, and who cannot see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.llm.answer_cache import with_answer_cache
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.bedrock import Bedrock
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.fallback import fallback
from koi_lang.llm.images import MAX_BYTES, MAX_IMAGES, BadImageError, Image, require_few
from koi_lang.llm.messages import Message, Request, StreamEnd, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.providers import PROVIDERS, provider_named
from koi_lang.llm.rehearsal import Rehearsal
from koi_lang.llm.sdk_model import VisionUnsupportedError, seen
from koi_lang.llm.usage import usage_of
from tests.llm.server import ModelServer
from tests.llm.test_adapters import asked_for, remembered
from tests.pictures import DARK, RED, png

LOOK = Request("Look.", (Message("user", "What is this?", (RED,)),))


def connected(provider: str, model: str = "") -> ProviderConnection:
    """How a provider is reached that nobody asks."""
    row = provider_named(provider)
    return ProviderConnection(row, Secret(""), model or row.model, "http://127.0.0.1:9")


def refusal(provider: str, model: str, request: Request = LOOK) -> tuple[str, str | None]:
    """What is said about a model that is shown an image."""
    with pytest.raises(VisionUnsupportedError) as caught:
        seen(replace(request, model=model), connected(provider, model))
    assert not caught.value.repeatable
    return caught.value.message, caught.value.help


# ---------------------------------------------------------------- what is an image


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (png(), "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\1\0\1\0", "image/gif"),
        (b"RIFF\x1a\0\0\0WEBPVP8L", "image/webp"),
    ],
)
def test_an_image_is_known_by_its_beginning(content: bytes, media_type: str) -> None:
    """The bytes tell the format, whatever a file is called."""
    image = Image.of(content, "photo.bmp")

    assert (media_type, len(content)) == (image.media_type, image.size)
    assert image == Image.from_base64(image.data)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "`a.png` is empty"),
        (b"BM\x1a\0\0\0", "`a.png` is no image that models read"),
        (b"RIFF\x1a\0\0\0WAVEfmt ", "`a.png` is no image that models read"),
        (png() + bytes(MAX_BYTES), "`a.png` has 3.9 MB, and an image may have at most 3.9 MB"),
    ],
)
def test_what_models_do_not_read_is_refused(content: bytes, told: str) -> None:
    """What is no image, or too large, is refused with its name and what to do."""
    with pytest.raises(BadImageError) as caught:
        Image.of(content, "a.png")

    assert told == caught.value.message
    assert caught.value.help


def test_data_that_is_not_base64_is_refused() -> None:
    """Base64 that is damaged is told as such."""
    with pytest.raises(BadImageError, match="the data of `the image` is not base64"):
        Image.from_base64("iVBOR*")


def test_the_largest_image_fits_into_five_encoded_megabytes() -> None:
    """The limit of a provider is one of the encoded text, and is reached exactly."""
    image = Image.of(png() + bytes(MAX_BYTES - len(png())))

    assert 5 * 2**20 == len(image.data)


def test_a_message_has_a_limit() -> None:
    """More images than providers take at once are refused before they are sent."""
    require_few([RED] * MAX_IMAGES)

    with pytest.raises(BadImageError, match="the message has 21 images, and it may have at most 20"):
        require_few([RED] * (MAX_IMAGES + 1))


def test_an_image_is_printed_short() -> None:
    """Whoever prints a request does not get megabytes."""
    assert f"Image(image/png, {len(png())} bytes)" == repr(RED)


# ---------------------------------------------------------------- on the wire


def test_openai_gets_data_urls() -> None:
    """Images stand before the text of their message; messages without images stay texts."""
    asked = asked_for("openai", LOOK)

    parts = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{RED.data}"}}]
    told = [*parts, {"type": "text", "text": "What is this?"}]
    assert [{"role": "system", "content": "Look."}, {"role": "user", "content": told}] == asked.body["messages"]


def test_anthropic_gets_blocks() -> None:
    """Images are blocks before the text, and what is remembered ends behind them."""
    asked = asked_for("anthropic", LOOK)

    source = {"type": "base64", "media_type": "image/png", "data": RED.data}
    told = [{"type": "image", "source": source}, remembered("What is this?")]
    assert [{"role": "user", "content": told}] == asked.body["messages"]


def test_an_image_needs_no_text() -> None:
    """A message that is only an image is sent; an empty block of text would be refused."""
    alone = Request("", (Message("user", "", (RED,)),))
    (openai,), (anthropic,) = (asked_for(kind, alone).body["messages"] for kind in ("openai", "anthropic"))

    assert ["image_url"] == [part["type"] for part in openai["content"]]
    assert [("image", {"type": "ephemeral"})] == [
        (part["type"], part["cache_control"]) for part in anthropic["content"]
    ]


def test_joined_turns_keep_their_images() -> None:
    """Neighbouring messages of one role become one, with the images of both in order."""
    merged = merge_turns([Message("user", "a", (RED,)), Message("user", "b", (DARK,))])

    assert (Message("user", "a\n\nb", (RED, DARK)),) == merged


def test_bedrock_gets_the_same_blocks() -> None:
    """Models of Anthropic's at Amazon are shown images in the same form."""
    model = object.__new__(Bedrock)
    model.connection = connected("bedrock")
    known: Any = Anthropic(connected("anthropic"))
    request = replace(LOOK, model=model.connection.model)

    assert known._body(request)["messages"] == model._body(request)["messages"]


# ---------------------------------------------------------------- who can see


@pytest.mark.parametrize(
    ("provider", "model", "help"),
    [
        ("openai", "gpt-3.5-turbo", f"`{provider_named('openai').model}` can"),
        ("groq", "openai/gpt-oss-120b", "`qwen/qwen3.8-27b` can"),
        ("ollama", "gpt-oss:20b", "`llama3.2-vision` can: choose it with `-m ollama/llama3.2-vision`."),
        ("openrouter", "openai/gpt-oss-120b", "Choose one that does with `-m provider/model`"),
    ],
)
def test_a_model_that_cannot_see_is_not_asked(provider: str, model: str, help: str) -> None:
    """A model that is known to read text only is refused, and the help names one of its provider that sees."""
    told, advice = refusal(provider, model)

    assert f"`{model}` cannot see images" == told
    assert (advice or "").startswith(help)


def test_whoever_is_named_as_seeing_sees() -> None:
    """No help names a model whose own card says that it cannot see."""
    named = {row.seeing: card_of(row.seeing).vision for row in PROVIDERS if row.seeing}

    assert [] == [name for name, vision in named.items() if vision is False]


def test_nothing_is_sent_to_a_model_that_cannot_see() -> None:
    """The refusal comes before any request."""

    async def run() -> int:
        async with ModelServer() as server:
            connection = replace(connected("openai", "gpt-3.5-turbo"), base_url=f"{server.url}/v1")
            with pytest.raises(VisionUnsupportedError):
                [delta async for delta in OpenAI(connection)(LOOK)]
            return len(server.requests)

    assert 0 == asyncio.run(run())


def test_a_model_that_sees_steps_in() -> None:
    """Of several models the first that can see answers, and the others cost nothing."""

    async def run() -> StreamEnd:
        async with ModelServer() as server:
            blind, sees = (
                replace(connected("openai", name), base_url=f"{server.url}/v1") for name in ("gpt-4", "gpt-4o")
            )
            model = fallback([OpenAI(blind), OpenAI(sees)])
            deltas = [delta async for delta in model(LOOK)]
            await model.aclose()
        assert isinstance(deltas[-1], StreamEnd)
        return deltas[-1]

    assert "openai/gpt-4o" == asyncio.run(run()).answered_by


def test_older_images_do_not_keep_a_blind_model_from_going_on() -> None:
    """What another model has seen and answered stays as a text; only new images are refused."""
    later = (*LOOK.messages, Message("assistant", "A red pixel."), Message("user", "Thanks."))

    request = seen(replace(LOOK, messages=later, model="gpt-3.5-turbo"), connected("openai"))

    assert [("What is this?", ()), ("A red pixel.", ()), ("Thanks.", ())] == [
        (message.text, message.images) for message in request.messages
    ]


def test_too_many_images_leave_the_oldest_out() -> None:
    """A conversation with more images than a request takes shows the newest; all texts stay."""
    messages = tuple(Message("user", str(number), (RED,)) for number in range(MAX_IMAGES + 2))

    request = seen(Request("", messages, model="gpt-4o"), connected("openai"))

    assert [0, 0, *[1] * MAX_IMAGES] == [len(message.images) for message in request.messages]
    assert list(messages[2:]) == list(request.messages[2:])


def test_an_unknown_model_decides_itself() -> None:
    """Where nothing is known the request goes out as it is."""
    request = replace(LOOK, model="some-model")

    assert request == seen(request, connected("openai"))


def test_a_rehearsal_says_that_it_cannot_see() -> None:
    """A rehearsal reads text only, and tells so among its notes."""
    model = Rehearsal()

    async def run() -> None:
        [delta async for delta in model(LOOK)]

    asyncio.run(run())

    assert "an image, since a rehearsal reads text only" in model.notes()


# ---------------------------------------------------------------- counting and keeping


def test_an_image_takes_tokens() -> None:
    """Where nobody counts, an image is estimated at 1600 tokens."""
    plain = replace(LOOK, messages=(Message("user", "What is this?"),))

    assert 1600 == usage_of(LOOK, 0, None).input_tokens - usage_of(plain, 0, None).input_tokens


def test_kept_answers_belong_to_their_images(tmp_path: Any) -> None:
    """The same words about another image are another question."""
    dark = Request("Look.", (Message("user", "What is this?", (DARK,)),))

    async def run() -> int:
        async with ModelServer(["red", "dark"]) as server:
            connection = replace(connected("openai", "gpt-4o"), base_url=f"{server.url}/v1")
            model = with_answer_cache(OpenAI(connection), tmp_path / "kept", connection)
            for request in (LOOK, dark, LOOK, dark):
                [delta async for delta in model(request)]
            await model.aclose()
            return len(server.requests)

    assert 2 == asyncio.run(run())
