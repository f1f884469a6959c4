"""The connection to a model provider, and requests completed by its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from koi_lang.llm.cards import ModelCard
from koi_lang.llm.local_servers import server_title
from koi_lang.llm.messages import Request
from koi_lang.llm.models import card_of
from koi_lang.llm.usage import UNKNOWN_ANSWER_TOKENS, least

# How a model is told of its actions and says what it wants: as native tools, or in text, which a schema may bound.
Transport: TypeAlias = Literal["tools", "schema", "text"]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
# Which of the interfaces of OpenAI a model is asked through.
Interface: TypeAlias = Literal["chat", "responses"]
INTERFACES: tuple[Interface, ...] = get_args(Interface)

# Of texts in `extra_body`, those with more characters are not shown to anybody.
MAX_WORD_CHARS = 11
# Smaller models get actions as text, unless `transport` says otherwise: with half a billion, of 20 tasks 10 came right
# in text, and one with tools (`python -m benchmarks.models`).
MIN_TOOL_PARAMETERS = 3 * 10**9


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of the table of providers.

    Attributes:
        keys: environment variables that may hold the key, in order; empty when none is needed.
        needs_key: whether one of them must be set; Amazon has other ways to say who asks.
        style: which adapter speaks to it.
        base_url: None leaves it to the provider's own SDK.
        json_mode: whether it can be told to answer with a JSON object.
        json_schema: whether it can be held to a JSON Schema.
        bounds: the bounds that such a schema may have; others would be refused.
        stream_usage: whether it must, and may, be asked to count tokens of a stream.
        prefixes: how names of its own models begin.
        seeing: a model of it that can be shown images, where `model` cannot.
        effort_form: how it is told how much to think, a key of `thinking.FORMS`; Anthropic's models have their own.
        seed: what it calls the number that random choices follow from; empty where it takes none.
        transport: how its models are told of actions where nobody says how.
        forces_tools: whether it can be told that an answer must call a tool.
        responses: whether it has the Responses interface, for models that are behind it alone.
        cache_key: whether it finds what it has read before by a key of requests.
        thoughts: the field of an answer in which it wants back, with calls of tools, what was thought before them: of
            `chat_thoughts`; empty where it wants nothing, or has an interface of its own for that.
        user_after_results: whether a person may speak directly after results of tools.
    """

    name: str
    keys: tuple[str, ...]
    model: str
    base_url: str | None = None
    style: str = "openai"
    json_mode: bool = True
    json_schema: bool = False
    bounds: tuple[str, ...] = ()
    stream_usage: bool = True
    prefixes: tuple[str, ...] = ()
    needs_key: bool = True
    seeing: str = ""
    effort_form: str = "reasoning_effort"
    seed: str = "seed"
    transport: Transport = "tools"
    forces_tools: bool = True
    responses: bool = False
    cache_key: bool = False
    thoughts: str = ""
    user_after_results: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A text that must not appear in messages, logs and tracebacks."""

    value: str

    def __repr__(self) -> str:
        return "Secret(…)"

    def hide_in(self, text: str) -> str:
        """The text with every occurrence of the secret replaced."""
        return text.replace(self.value, "…") if self.value else text


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """A provider with the key and the defaults of one `llm` block; printing it does not show the key.

    Attributes:
        effort: how much the model is to think, one of `EFFORTS`; empty leaves it to the model.
        extra_body: fields that requests have beside those that are known here.
        transport: how the model is told of actions; None leaves it to the provider.
        interface: through which it is asked; None leaves it to the model. Anthropic's have one alone.
        id: what requests call the model, where that is not its name.
        context_tokens: most tokens of request and answer together, as its server says; None where it does not.
        has_tools: whether the template of its server tells it of tools; None where that is not known.
        parameters: how many the model has, as its server says; None where it does not.
        http: arguments of the HTTP client of the SDK beside the usual ones.
    """

    provider: Provider
    key: Secret
    model: str
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    silence_s: float = 180.0
    effort: str = ""
    top_p: float | None = None
    seed: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    transport: Transport | None = None
    interface: Interface | None = None
    id: str = ""
    context_tokens: int | None = None
    has_tools: bool | None = None
    parameters: int | None = None
    http: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_own_server(self) -> bool:
        """Whether it leads to a server of a person's own: an address that somebody named, without a key."""
        is_named = self.base_url is not None and self.base_url != self.provider.base_url
        return self.provider.name == "local" or (is_named and not self.key.value and self.provider.name == "openai")

    @property
    def title(self) -> str:
        """Its name in messages: a provider, or the address of a local server."""
        return server_title(str(self.base_url)) if self.is_own_server and self.base_url else self.provider.name

    @property
    def is_small(self) -> bool:
        """Whether the model is known to have too few parameters for tools."""
        return self.parameters is not None and self.parameters < MIN_TOOL_PARAMETERS

    def transport_of(self, card: ModelCard) -> Transport:
        """The transport of actions; for a server by address it depends on the server's own data.

        One whose template leaves tools out would not tell the model of any action, and small models seldom call tools.
        """
        if self.transport is not None:
            return "text" if self.transport == "tools" and self.has_tools is False else self.transport
        if self.has_tools is not None:
            return "tools" if self.has_tools and not self.is_small else "text"
        return self.provider.transport if card.tools and self.base_url is None else "text"

    def interface_of(self, card: ModelCard) -> Interface:
        """Through which interface a model is asked; servers at an address that somebody named have that for chats."""
        if self.interface is not None:
            return self.interface
        return "responses" if card.responses and self.provider.responses and self.base_url is None else "chat"

    def id_of(self, model: str) -> str:
        """The id of a model in requests."""
        return self.id if self.id and model == self.model else model

    def hide_in(self, text: str) -> str:
        """A text without the key, and without longer texts of `extra_body`."""
        for secret in sorted(texts_in(self.extra_body), key=len, reverse=True):
            text = text.replace(secret, "…")
        return self.key.hide_in(text)

    def complete(self, request: Request) -> Request:
        """The request with the defaults where it says nothing, and with no longer an answer than they allow."""
        return replace(
            request,
            model=request.model or self.model,
            temperature=self.temperature if request.temperature is None else request.temperature,
            max_tokens=least(self.answer_limit(request.model), request.max_tokens),
        )

    def answer_limit(self, model: str = "") -> int | None:
        """The most tokens that an answer may have; None leaves it to the provider.

        A model without a card at an address that somebody named has a limit of ours: such servers often have none, and
        small models write on to the end of their window.
        """
        is_limited = self.max_tokens is None and self.is_unknown(model)
        return UNKNOWN_ANSWER_TOKENS if is_limited else self.max_tokens

    def is_unknown(self, model: str = "") -> bool:
        """Whether nothing is known of a model but the address that somebody named."""
        return self.base_url is not None and card_of(model or self.model).output_tokens is None


def texts_in(value: Any) -> Iterator[str]:
    """The texts in JSON data that are too long to be words of an interface such as `flex`."""
    if isinstance(value, str):
        yield from (value,) if len(value) > MAX_WORD_CHARS else ()
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from texts_in(item)
