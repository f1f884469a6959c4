"""Requests to models and their answers, as plain records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from koi_lang.llm.images import Image
from koi_lang.llm.tools import ToolCall, ToolOffer, ToolResult
from koi_lang.system.interpolation import Part

Role: TypeAlias = Literal["system", "user", "assistant"]
MIN_TOKENS = 64
# That are sent for one answer in all: those that come to nothing, that are weakened, and of whatever model.
MAX_REQUESTS = 4


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The thoughts of a model before an answer, to be sent back to it, and its comments beside calls.

    Attributes:
        model: that thought so; another one cannot read it, or may not.
        blocks: each as JSON that only its provider understands.
        text: what it said.
    """

    model: str
    blocks: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        images: what a model is shown beside the text, which tells of each of them.
        calls: the same text as calls of tools, where it can be said so.
        results: what came of the calls in the message before, one for each, then what else the text tells; the same for
            models that call tools.
        thoughts: what its model thought; None where that is not known.
    """

    role: Role
    text: str
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    thoughts: Thoughts | None = None


@dataclass(frozen=True, slots=True)
class DelegateInfo:
    """An agent that can be delegated to, and the events it answers."""

    key: str
    description: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionResult:
    """One executed action and its result; `action` is as it was dispatched."""

    intent: str
    action: Mapping[str, Any]
    ok: bool
    value: Any = None


@dataclass(frozen=True, slots=True)
class Task:
    """The subject of a request, as data.

    Adapters ignore it; a model inside this process (rehearsal) works from it.

    Attributes:
        playbook: its text after interpolation.
        parts: the same text with what its author wrote and what came in apart; empty where all of it was written.
        args: the payload of the handler.
        state: the state of the agent as it is now, updates of this call included.
        actions: the names of the actions that the agent may use, which may be looked up as they are asked for.
        members: agents it may delegate to.
        results: what has been executed in this call so far, in order.
        event: whose playbook it is; empty where it is none of an agent.
        instructions: the playbook with names in the place of values.
        stands_alone: whether the request tells playbook, payload and state alone: no earlier conversation, no files.
    """

    playbook: str
    args: Any = None
    state: Mapping[str, Any] = field(default_factory=dict)
    actions: Container[str] = ()
    members: tuple[DelegateInfo, ...] = ()
    results: Sequence[ActionResult] = ()
    parts: tuple[Part, ...] = ()
    event: str = ""
    instructions: str = ""
    stands_alone: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """Everything one answer depends on.

    Attributes:
        model: empty for the default model of the connection.
        temperature: None leaves the choice to the connection, then to the provider.
        max_tokens: most tokens of the answer; None as for `temperature`.
        least_tokens: an answer that may have fewer is not worth asking for.
        json: whether the answer must be one JSON value.
        schema: the JSON Schema of that value, where the caller knows one; it asks for JSON, too.
        attempts: how many requests for this answer came to nothing before; they count as those that follow do.
        most_requests: how many may be sent for it in all, those of `attempts` included; one always may.
        offer: the actions as tools, for models that call tools; the answer is a text of actions all the same.
        cache_key: the same for requests that begin alike, for providers that find what they have read by it; empty
            where that is not known.
        is_plain: whether it explains single actions only.
        is_report: whether a call was ended and its model is to say what it has done; scripts have answers for that.
    """

    system: str
    messages: Sequence[Message]
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    json: bool = False
    schema: Mapping[str, Any] | None = None
    least_tokens: int = MIN_TOKENS
    task: Task | None = None
    attempts: int = 0
    most_requests: int = MAX_REQUESTS
    offer: ToolOffer | None = None
    cache_key: str = ""
    is_plain: bool = False
    is_report: bool = False


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """A request as its model is sent it first, before anything of it is refused.

    Attributes:
        request: with its actions as the model is told of them: as an offer of tools, by a schema, or in text.
        body: as the provider gets it; empty for models inside this process, and those that extensions make.
    """

    request: Request
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of an answer.

    Attributes:
        cached_tokens: those of `input_tokens` that the provider had read before.
        stored_tokens: those of `input_tokens` that it was paid to remember.
        estimated: whether the numbers are a guess from the length of the texts.
        thinking_tokens: those of `output_tokens` that the model thought, as far as the provider tells.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    stored_tokens: int = 0
    estimated: bool = False
    thinking_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of an answer, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """The next piece of visible thoughts, never empty; it is no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Discarded:
    """An attempt that came to nothing although it was paid for; in a stream, another attempt follows.

    Attributes:
        answered_by: as in `Finished`.
    """

    usage: Usage
    answered_by: str = ""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of an answer.

    Attributes:
        usage: None where the provider does not tell.
        answered_by: `provider/model` where that is not the model that was asked; else empty.
        replayed: whether the answer was kept from an earlier request, so that it cost nothing.
        thoughts: as in `Message`.
    """

    usage: Usage | None
    stop_reason: str
    answered_by: str = ""
    replayed: bool = False
    thoughts: Thoughts | None = None


Delta: TypeAlias = TextDelta | ThinkingDelta | Discarded | StreamEnd
Model: TypeAlias = Callable[[Request], AsyncIterator[Delta]]


class Adapter(Protocol):
    """A model with its name and the way to close it."""

    provider: str
    model: str

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer: thoughts and text, then one `StreamEnd`; earlier attempts are `Discarded`.

        Raises:
            ProviderError: there is no answer, or not to its end.
        """

    async def aclose(self) -> None:
        """Release connections; the adapter is not used afterwards."""


def message_of(said: str | Message) -> Message:
    """A text as a message of the user; a message as it is."""
    return Message("user", said) if isinstance(said, str) else said


def merge_turns(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join neighbouring messages of one role with a blank line, since providers expect turns to alternate."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            before = merged.pop()
            text = "\n\n".join(filter(None, (before.text, message.text)))
            message = Message(message.role, text, before.images + message.images)
        merged.append(message)
    return tuple(merged)


async def stream_text(text: str, *, size: int = 12, usage: Usage | None = None) -> AsyncIterator[Delta]:
    """A known answer as a stream: pieces of `size` characters, then the end."""
    for start in range(0, len(text), size):
        yield TextDelta(text[start : start + size])
    yield StreamEnd(usage, "stop")
