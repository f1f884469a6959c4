"""The list of models of a provider, fetched with one request, and its data on each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from koi_lang.errors import RequestError
from koi_lang.lazy import lazy_module
from koi_lang.llm.cards import ModelCard
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.local_servers import origin
from koi_lang.llm.models import card_of
from koi_lang.llm.provider_errors import explain
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    import httpx2

else:
    httpx2 = lazy_module("httpx2")

DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
VERSION = "2023-06-01"  # of Anthropic's interface
LIMIT_S = 10.0
MAX_MODELS = 1000
NOT_FOUND, NO_SUCH_METHOD = 404, 405
MILLION = 1_000_000
# In the names of models that make embeddings.
EMBEDDING = ("embed", "-e5-", "bge-")

# Servers of one's own by the `owned_by` of their models, each with where it tells more than its list does.
SERVERS = {
    "llamacpp": ("llama.cpp", "props"),
    "organization_owner": ("LM Studio", "api/v0/models"),
    "vllm": ("vLLM", ""),
    "library": ("Ollama", ""),
}
SERVED_CONTEXT = ("n_ctx", "loaded_context_length", "max_total_tokens", "max_model_len", "context_length")
# The end of the name of a model in several files.
SHARD = re.compile(r"-\d{5}-of-\d{5}$")
# The number of parameters in a name, such as `0.5b` in `qwen2.5-coder-0.5b-instruct`, not `A3B`, which only answer.
SIZE, UNITS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.I), {"b": 10**9, "m": 10**6}
# How providers call the same thing.
CONTEXT = ("context_length", "context_window", "max_context_length", "max_input_tokens", "max_model_len")
OUTPUT = ("max_completion_tokens", "max_output_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model; None where nothing is known.

    Attributes:
        prices_usd: per million tokens: input, output.
        abilities: such as `schema` (can be held to a JSON Schema), `temperature`, `images`,
            `effort` (can be told how much to think), `reasoning`.
        id: what requests call it, where that is not its name.
        has_tools: whether the template of its server tells it of tools; None where the server does not say.
        parameters: how many it has, as its server or its name says.
        server: the program that serves it, where it is a server of one's own that is known.
    """

    name: str
    context_tokens: int | None = None
    output_tokens: int | None = None
    prices_usd: tuple[float, float] | None = None
    abilities: tuple[str, ...] = ()
    id: str = ""
    has_tools: bool | None = None
    parameters: int | None = None
    server: str = ""

    @property
    def answers(self) -> bool:
        """Whether it is, as far as its name tells, more than a model for embeddings."""
        return not any(part in self.name.lower() for part in EMBEDDING)


class ListingRefusedError(Exception):
    """An answer that is an error, with the attributes that the SDKs give to theirs."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"status {response.status_code}")
        self.status_code = response.status_code
        self.response = response
        self.request = response.request
        self.body = _document(response)


async def models_of(connection: ProviderConnection, *, limit_s: float = LIMIT_S) -> list[ModelInfo] | None:
    """All models of a provider by name; None where it has no such list. Raises RequestError."""
    path = f"models?limit={MAX_MODELS}" if _is_anthropic(connection) else "models"
    found = await _get(connection, f"{address_of(connection)}/{path}", limit_s)
    if found is None:
        return None
    entries = found.get("data", found.get("models")) if isinstance(found, dict) else found
    named = [each for each in _list(entries) if isinstance(each, dict) and _is_name(each.get("id"))]
    if connection.is_own_server and named:
        models = await _models_of_server(named, connection, limit_s)
    else:
        models = [_to_model_info(each, connection) for each in named]
    return sorted(models, key=lambda model: model.name) or None


async def has(connection: ProviderConnection, *, limit_s: float = LIMIT_S) -> bool:
    """Whether a provider knows the model of a connection. Raises RequestError."""
    address = f"{address_of(connection)}/models/{quote(connection.model, safe='/:@')}"
    return await _get(connection, address, limit_s) is not None


def address_of(connection: ProviderConnection) -> str | None:
    """Where the interface of a provider begins; None where it is not one that has a list."""
    base = connection.base_url or connection.provider.base_url or DEFAULT_URLS.get(connection.provider.name)
    if base is None or connection.provider.style == "bedrock":
        return None
    base = base.rstrip("/")
    return f"{base}/v1" if _is_anthropic(connection) else base


def _is_anthropic(connection: ProviderConnection) -> bool:
    return connection.provider.style == "anthropic"


async def _get(connection: ProviderConnection, address: str, limit_s: float) -> Any:
    """The answer as JSON; None when there is nothing at that address."""
    if address_of(connection) is None:
        return None
    try:
        # Redirects are not followed: they could take the key somewhere else.
        timeout = httpx2.Timeout(limit_s, connect=min(limit_s, 5.0))
        async with httpx2.AsyncClient(timeout=timeout, verify=certificates()) as client:
            response = await client.get(address, headers=_headers(connection))
        if response.status_code in (NOT_FOUND, NO_SUCH_METHOD):
            return None
        if response.status_code >= 400:
            raise ListingRefusedError(response)
        return response.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ListingRefusedError, ValueError, ExceptionGroup) as error:
        raise explain(error, connection, connection.model, begun=False) from None


def _headers(connection: ProviderConnection) -> dict[str, str]:
    key = connection.key.value
    if _is_anthropic(connection):
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
    return {"authorization": f"Bearer {key}"} if key else {}


def _document(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _list(value: Any) -> list[Any]:
    """A list as it is; anything else a server may say in its place is an empty one."""
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_name(value: Any) -> bool:
    """Whether something can be shown to a person as the name of a model."""
    return isinstance(value, str) and value.isprintable() and value != ""


def _to_model_info(entry: Mapping[str, Any], connection: ProviderConnection) -> ModelInfo:
    """The data of a listed model, completed from the cards."""
    name = entry["id"].removeprefix("models/")
    card = card_of(name)
    usual = (card.prices_usd[0], card.prices_usd[2]) if card.prices_usd else None
    return ModelInfo(
        name,
        _number(entry, CONTEXT) or card.context_tokens,
        _number(_object(entry.get("top_provider")) or entry, OUTPUT) or card.output_tokens,
        _prices(entry) or usual,
        tuple(_abilities(entry, card, connection)),
    )


async def _models_of_server(
    entries: Sequence[Mapping[str, Any]], connection: ProviderConnection, limit_s: float
) -> list[ModelInfo]:
    """The models of a local server, with the further data of llama.cpp, LM Studio and TGI."""
    (server, path), details = SERVERS.get(str(entries[0].get("owned_by")), ("", "info")), dict[str, Any]()
    if path and not _number(entries[0], CONTEXT):
        with suppress(RequestError):  # the list is enough
            details = _object(await _get(connection, f"{origin(str(connection.base_url))}/{path}", limit_s))
    settings, caps = _object(details.get("default_generation_settings")), details.get("chat_template_caps")
    by_id = {each.get("id"): each for each in map(_object, _list(details.get("data")))}
    names = Counter(_short_name(entry["id"]) for entry in entries)
    models = []
    for entry in entries:
        id = entry["id"]
        more = by_id.get(entry["id"], {})
        short = _short_name(entry["id"])
        windows = (settings, _object(entry.get("meta")), more, details, entry)
        has_tools = bool(caps.get("supports_tools")) if isinstance(caps, dict) else None
        has_tools = True if "tool_use" in _list(more.get("capabilities")) else has_tools
        can = {
            "schema": True,
            "temperature": True,
            "images": _sees(entry, {}) or more.get("type") == "vlm",
            "tools": has_tools,
        }
        size = SIZE.search(id)
        named_size = int(float(size[1]) * UNITS[size[2].lower()]) if size else None
        info = ModelInfo(
            short if names[short] == 1 else id,
            next(filter(None, (_number(each, SERVED_CONTEXT) for each in windows)), None),
            prices_usd=(0.0, 0.0),
            abilities=tuple(name for name, has in can.items() if has),
            has_tools=has_tools,
            parameters=_number(_object(entry.get("meta")), ("n_params",)) or named_size,
            server="TGI" if "text-generation" in str(details.get("router")) else server,
        )
        models.append(info if info.name == id else replace(info, id=id))
    return models


def _short_name(id: str) -> str:
    """The short name of a model whose server names it after its file or folder."""
    if not id.endswith(".gguf") and not id.startswith(("/", "./", "../")) and "\\" not in id:
        return id
    return SHARD.sub("", id.replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".gguf"))


def _number(entry: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((entry[name] for name in names if type(entry.get(name)) is int and entry[name] > 0), None)


def _prices(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    """Prices per million tokens. OpenRouter tells them per token, as texts; Together per million, as numbers."""
    pricing = _object(entry.get("pricing"))
    try:
        if isinstance(pricing.get("prompt"), str):
            given, made = float(pricing["prompt"]) * MILLION, float(pricing["completion"]) * MILLION
        else:
            given, made = float(pricing["input"]), float(pricing["output"])
    except (KeyError, TypeError, ValueError):
        return None
    return (round(given, 6), round(made, 6)) if 0 <= given < inf and 0 <= made < inf else None


def _abilities(entry: Mapping[str, Any], card: ModelCard, connection: ProviderConnection) -> list[str]:
    """The abilities of a model that Koi uses, or that people ask for first."""
    capabilities, parameters = _object(entry.get("capabilities")), _list(entry.get("supported_parameters"))
    known = {
        "schema": connection.provider.json_schema and card.schemas,
        "temperature": card.sampling and ("temperature" in parameters or not parameters),
        "images": _sees(entry, capabilities) if _tells_of_images(entry, capabilities) else bool(card.vision),
        "effort": _can_be_told_effort(capabilities, parameters, card),
        "reasoning": "reasoning" in parameters
        or bool(capabilities.get("reasoning"))
        or _is_supported(capabilities, "thinking"),
        "tools": "tools" in parameters or bool(capabilities.get("function_calling")),
    }
    return [name for name, has in known.items() if has]


def _can_be_told_effort(data: Mapping[str, Any], parameters: list[Any], card: ModelCard) -> bool:
    if "thinking" in data or "effort" in data:
        return _is_supported(data, "thinking") or _is_supported(data, "effort")
    return "reasoning" in parameters if parameters else bool(card.efforts)


def _tells_of_images(entry: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    return bool(_inputs(entry)) or "vision" in data or "image_input" in data


def _sees(entry: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    return "image" in _inputs(entry) or bool(data.get("vision")) or _is_supported(data, "image_input")


def _inputs(entry: Mapping[str, Any]) -> list[Any]:
    return _list(_object(entry.get("architecture")).get("input_modalities"))


def _is_supported(data: Mapping[str, Any], name: str) -> bool:
    return bool(_object(data.get(name)).get("supported"))
