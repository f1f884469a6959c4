"""The options of an `llm` block for embeddings to a model that turns texts into vectors, each text once.

The answer to a request of n messages is n lines, each a vector that is packed into text.
"""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from difflib import SequenceMatcher
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from koi_lang.errors import MissingKeyError, ProviderError, RequestError, SettingsError
from koi_lang.lazy import lazy_module
from koi_lang.llm.connect import NOTHING_AROUND, ModelEnvironment, connection_to, describe_server, extension_choice
from koi_lang.llm.connection import Provider, ProviderConnection
from koi_lang.llm.layers import open_stream
from koi_lang.llm.local_servers import LOCAL
from koi_lang.llm.messages import Adapter, Message, Request, TextDelta, ThinkingDelta, Usage
from koi_lang.llm.model_choice import choose, written_choice
from koi_lang.llm.model_name_check import LIMIT_S, check
from koi_lang.llm.models import priced_name
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.providers import STAND_INS, KeyLookup, key_of, provider_named
from koi_lang.llm.retry import retry
from koi_lang.llm.stream_state import StreamState
from koi_lang.llm.tools import ToolOffer
from koi_lang.llm.usage import usage_of

if TYPE_CHECKING:
    from koi_lang.llm import answer_cache
else:
    answer_cache = lazy_module("koi_lang.llm.answer_cache")


# The usual model for embeddings of the providers that have any.
MODELS: Mapping[str, str] = {
    "openai": "text-embedding-3-small",
    "gemini": "gemini-embedding-001",
    "qwen": "text-embedding-v4",
    "together": "intfloat/multilingual-e5-large-instruct",
    "openrouter": "openai/text-embedding-3-small",
    "mistral": "mistral-embed",
    "ollama": "nomic-embed-text",
}
# How many texts a request may hold.
MAX_TEXTS: Mapping[str, int] = {"qwen": 10}
DEFAULT_MAX_TEXTS = 64
WHOLE = ("ollama",)  # providers that list every model they have
FORM = 1  # of what is kept on disk; a new number forgets it
Count: TypeAlias = Callable[[Usage], None]
Before: TypeAlias = Callable[[Request], Awaitable[Request]]


class Embedder:
    """A model that turns texts into vectors of length 1; a text that it has seen is not sent again.

    Args:
        store: keeps vectors between runs; None keeps none.
        check_name: is awaited before the first request.
    """

    def __init__(
        self,
        model: Adapter,
        connection: ProviderConnection,
        store: answer_cache.AnswerStore | None,
        check_name: Callable[[], Awaitable[None]],
    ) -> None:
        self.model = model.model
        self.priced_name = priced_name(model.provider, model.model)
        self._inner = model
        self._connection = connection
        self._store = store
        self._check = check_name
        self._known: dict[str, Vector] = {}
        self._is_checked = False
        self._turn = asyncio.Lock()

    async def vectors(self, texts: Sequence[str], *, count: Count, before: Before | None = None) -> list[Vector]:
        """The vectors of n texts, all of one size.

        Args:
            count: told what each answer took.
            before: gives what is sent for a request; what it raises is raised, and nothing sent.

        Raises:
            ProviderError: the model cannot answer, or gives something else.
        """
        most = MAX_TEXTS.get(self._connection.provider.name, DEFAULT_MAX_TEXTS)
        async with self._turn:
            fresh = [text for text in dict.fromkeys(texts) if not self._is_known(text)]
            for start in range(0, len(fresh), most):
                await self._ask(fresh[start : start + most], count, before)
        found = [self._known[text] for text in texts]
        if len({len(vector) for vector in found}) > 1:
            raise self._unfit("vectors of several sizes")
        return found

    async def aclose(self) -> None:
        """Close the model and the cache on disk."""
        if self._store is not None:
            self._store.close()
        await self._inner.aclose()

    def _is_known(self, text: str) -> bool:
        if text not in self._known and self._store is not None:
            kept = unpack_vector(self._store.get(self._key(text)))
            if kept is not None:
                self._known[text] = kept
        return text in self._known

    async def _ask(self, texts: Sequence[str], count: Count, before: Before | None) -> None:
        if not self._is_checked:
            await self._check()
            self._is_checked = True
        request = Request("", tuple(Message("user", text) for text in texts), max_tokens=0)
        request = request if before is None else await before(request)
        lines = (await self._answer(request, count)).splitlines()
        vectors = [vector for line in lines if (vector := unpack_vector(line)) is not None]
        if not len(vectors) == len(texts) == len(request.messages):
            raise self._unfit(f"{len(vectors)} vectors for {len(texts)} texts")
        self._known |= zip(texts, vectors, strict=True)
        if self._store is not None:
            for message, line in zip(request.messages, lines, strict=True):
                self._store.put(self._key(message.text), line)

    async def _answer(self, request: Request, count: Count) -> str:
        pieces: list[str] = []
        async with open_stream(self._inner, request) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    pieces.append(delta.text)
                elif not isinstance(delta, ThinkingDelta):
                    count(usage_of(request, 0, delta.usage))
        return "".join(pieces)

    def _unfit(self, what: str) -> ProviderError:
        return ProviderError(f"`{self._inner.provider}` gave {what}", help=f"Is `{self.model}` a model for embeddings?")

    def _key(self, text: str) -> str:
        connection = self._connection
        about = ["vector", FORM, connection.provider.name, connection.base_url, connection.model, text]
        return sha256(json.dumps(about).encode()).hexdigest()


# ---------------------------------------------------------------- which model


def embedder(options: Mapping[str, Any], key: KeyLookup, *, around: ModelEnvironment = NOTHING_AROUND) -> Embedder:
    """The model for embeddings that the options of an `llm` block ask for; the caller closes it.

    Args:
        options: `provider`, `model`, `base_url`; with `cache: false` vectors are not kept on disk.

    Raises:
        MissingKeyError: there is no key for the provider, or for any that makes embeddings.
        ProviderError: the provider does not exist, or makes none.
        SettingsError: a `fallback` is wanted.
    """
    connection = connection_for(options, key, around=around)
    model = retry(Vectors(connection), sleep=around.sleep, on_event=around.on_event)
    is_kept = around.cache_folder is not None and options.get("cache", True)
    store = (
        answer_cache.AnswerStore(around.cache_folder, around.on_event)
        if around.cache_folder is not None and is_kept
        else None
    )
    return Embedder(model, connection, store, lambda: check_name(connection, around))


def connection_for(
    options: Mapping[str, Any], key: KeyLookup, *, around: ModelEnvironment = NOTHING_AROUND
) -> ProviderConnection:
    """How the model of some options is reached; without a provider the first that has a key and makes embeddings.

    Raises as `embedder` does.
    """
    require_embeddings(options, around)
    provider, model = _written_choice(options, around)
    own = around.providers.get(provider)
    name = _first_with_key(model, key) if provider == "auto" else provider
    row = own if isinstance(own, Provider) else provider_named(name)
    meant = {"provider": row.name, "model": model or MODELS.get(row.name, row.model)}
    return describe_server(connection_to(choose(meant, key, ollama=around.ollama), options, key, row), around)


def require_embeddings(options: Mapping[str, Any], around: ModelEnvironment = NOTHING_AROUND) -> None:
    """See that options can be those of a model for embeddings, as far as that can be told without a key.

    Raises:
        ProviderError: their provider makes no embeddings.
        SettingsError: they name models to fall back on.
    """
    if options.get("fallback"):
        help = "Leave it out: vectors of different models cannot be compared."
        raise SettingsError("a model for embeddings has no `fallback`", help=help)
    provider, _ = _written_choice(options, around)
    if provider == "auto" or provider in MODELS:
        return
    own = around.providers.get(provider)
    row = own or (None if provider in STAND_INS else provider_named(provider))
    # A provider of an extension, or another one at an address of its own, may have them.
    is_possible = isinstance(row, Provider) and row.style == "openai"
    is_possible = is_possible and bool(own or provider == LOCAL or options.get("base_url"))
    if not is_possible:
        known = ", ".join(f"`{name}`" for name in MODELS)
        raise ProviderError(f"`{provider}` makes no embeddings", help=f"These do: {known}.")


def _written_choice(options: Mapping[str, Any], around: ModelEnvironment) -> tuple[str, str]:
    """Provider and model as they are written; those of extensions go first."""
    provider, model = extension_choice(options, around)
    return (provider, model) if provider else written_choice(options)


def _first_with_key(model: str, key: KeyLookup) -> str:
    """The provider with a key whose model for embeddings is called most like one; the first for one without a name."""
    having = [name for name in MODELS if key_of(provider_named(name), key)]
    if not having:
        help = 'Connect one with `koi connect openai`, or name a local one: `embedding = "ollama/nomic-embed-text"`.'
        raise MissingKeyError("no provider that makes embeddings is connected", help=help)
    return max(having, key=lambda name: SequenceMatcher(None, MODELS[name], model).ratio())


async def check_name(connection: ProviderConnection, around: ModelEnvironment) -> None:
    """Raise UnknownModelError when a provider's list tells of models for embeddings, and not of this one."""
    if around.lists is None:
        return
    known = around.lists.find(connection)
    if known is None and around.ask_for_lists:
        with suppress(RequestError):  # the request for vectors will fail in the same way, and be explained
            known = await around.lists.current(connection, limit_s=LIMIT_S)
    names = known.names if known is not None else []
    if connection.provider.name in WHOLE or any("embed" in name for name in names):
        await check(connection, around.lists, ask=False)


Vector: TypeAlias = Sequence[float]


class Vectors(OpenAI):
    """A model behind the embeddings interface; its answer is a line for each message of the request."""

    def _body(self, request: Request) -> dict[str, Any]:
        texts = [message.text for message in request.messages]
        return {"model": request.model, "input": texts, "encoding_format": "float"}

    async def _send(self, body: Mapping[str, Any]) -> Any:
        raw = await self._client.embeddings.with_raw_response.create(**body)
        return _at_once((raw.http_response.json(), len(body["input"])))

    def _ending(self, offer: ToolOffer | None) -> StreamState:
        return _Whole()


class _Whole(StreamState):
    def read(self, part: tuple[Any, int]) -> str:
        document, count = part
        self.begun, self.stop_reason = True, "stop"
        self.usage = _usage(document)
        return "\n".join(map(pack_vector, _vectors(document, count)))


@asynccontextmanager
async def _at_once(part: Any) -> AsyncIterator[AsyncIterator[Any]]:
    """A stream of one part."""

    async def parts() -> AsyncIterator[Any]:
        yield part

    yield parts()


def _vectors(document: Any, count: int) -> list[Vector]:
    """The vectors in an answer in the order of their texts. Raises ValueError when it is not well formed."""
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list) or len(data) != count:
        raise ValueError(f"{count} vectors were expected")
    try:
        ordered = sorted(data, key=lambda each: each.get("index", 0))
        return [_unit(array("f", each["embedding"])) for each in ordered]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("these are no vectors") from error


def _usage(document: Any) -> Usage | None:
    usage = document.get("usage") if isinstance(document, dict) else None
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return Usage(tokens, 0) if isinstance(tokens, int) else None


def _unit(vector: Vector) -> array[float]:
    length = math.sqrt(math.fsum(x * x for x in vector))
    if not (length > 0 and math.isfinite(length)):
        raise ValueError("a vector without a direction")
    return array("f", (x / length for x in vector))


def pack_vector(vector: Vector) -> str:
    """A vector as a short text: its numbers with the accuracy of 32 bits."""
    return b64encode(array("f", vector).tobytes()).decode()


def unpack_vector(text: Any) -> Vector | None:
    """The vector in a text; None where there is none."""
    try:
        vector = array("f", b64decode(text, validate=True))
    except (TypeError, ValueError):
        return None
    return vector or None
