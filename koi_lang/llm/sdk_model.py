"""The common base of adapters of a provider's SDK: one request to one stream of deltas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from koi_lang.errors import RequestError
from koi_lang.llm.action_schema import action_schema, open_tools
from koi_lang.llm.connection import Provider, ProviderConnection
from koi_lang.llm.context_overflow import FULL
from koi_lang.llm.images import MAX_ENCODED_BYTES, MAX_IMAGES, Image
from koi_lang.llm.json_schemas import COMPACT, can_be_sent, keep_bounds
from koi_lang.llm.messages import Delta, Discarded, Message, Request, RequestPreview, StreamEnd, Thoughts
from koi_lang.llm.models import card_of
from koi_lang.llm.provider_errors import (
    broken_off,
    cause_of,
    document_of,
    explain,
    is_silence,
    overflow,
    page_error,
    refusal_error,
    without_text,
)
from koi_lang.llm.request_trial import Refused, RequestTrial
from koi_lang.llm.stream_state import ENDLESS, TOOLS_LEFT_OUT, RunawayWatch, StreamState
from koi_lang.llm.tools import ToolOffer
from koi_lang.llm.usage import Candidate, has_images, usage_of
from koi_lang.llm.whole_answers import is_error, read_document
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    from koi_lang.llm.stream_recording import StreamStore


# Why an answer ends at its limit: OpenAI and Anthropic, then Mistral, Google and OpenAI's Responses without a reason.
CUT_SHORT = frozenset({"length", "max_tokens", "model_length", "MAX_TOKENS", "max_output_tokens", "incomplete"})
# Why an answer ends that its provider could not complete: Mistral and OpenRouter, then DeepSeek.
BROKEN = frozenset({"error", "insufficient_system_resource"})


@cache
def _pools() -> WeakKeyDictionary[AbstractEventLoop, dict[Hashable, SharedClient]]:
    """The clients that models share, by event loop: a client takes 20 ms of CPU, and a connection a handshake."""
    return WeakKeyDictionary()


@dataclass(slots=True, eq=False)
class SharedClient:
    """A client of an SDK, with the connections that it keeps open.

    Attributes:
        pool: the clients of its event loop, by their keys.
        users: how many models send their requests through it.
    """

    client: Any
    pool: dict[Hashable, SharedClient]
    key: Hashable
    users: int = 0

    @classmethod
    def join(cls, key: Hashable | None, make: Callable[[], Any]) -> SharedClient:
        """The client of a key, which is made if nobody uses it yet; without a key one that nobody shares."""
        pool = {} if key is None else _pools().setdefault(get_running_loop(), {})
        shared = pool[key] = pool.get(key) or cls(make(), pool, key)
        shared.users += 1
        return shared

    async def leave(self) -> None:
        """Close it with its last user."""
        self.users -= 1
        if not self.users:
            del self.pool[self.key]
            await self.client.close()


class SdkModel(ABC):
    """A model behind an SDK; the SDK is imported by the first request, which makes a client unless there is one.

    Models of one provider, key and address share a client.

    What the provider refuses of a request is left out, or said otherwise, in a further request, and for that model
    from then on.

    Attributes:
        refused: what was found out so, to be shared by those who ask the same models.
        note: is told what a model does not take, once for each.
        streams: keeps what the provider sends; None keeps nothing.
        wire: the format of that, as a corpus calls it.
    """

    wire: ClassVar[str] = "chat"

    def __init__(self, connection: ProviderConnection) -> None:
        self.refused: Refused = {}
        self.streams: StreamStore | None = None
        self.note: Callable[[str], None] = lambda line: None
        self.connection = connection
        self.provider = connection.provider.name
        self.model = connection.model
        self._client: Any = None
        self._shared: SharedClient | None = None
        self._has_told_open = False

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The one model that answers."""
        connection = self.connection
        return (Candidate(self.model, connection.answer_limit(), self.provider, connection.context_tokens),)

    @property
    def takes_tools(self) -> bool:
        """Whether it is told of its actions as tools, or held to their schema."""
        return self.connection.transport_of(card_of(self.model)) != "text"

    @property
    def is_small(self) -> bool:
        """Whether it is known to have few parameters."""
        return self.connection.is_small

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer. Raises RequestError; `VisionUnsupportedError` before anything is sent."""
        trial = self._trial(request)
        request = trial.request
        if self._shared is None:
            to, is_own = self.connection, bool(self.connection.http or self.streams is not None)
            key = None if is_own else (type(self)._open, to.provider, to.key, to.base_url, to.silence_s)
            self._shared = SharedClient.join(key, self._open)
            self._client = self._shared.client
        ending = self._ending(request.offer)
        ending.reads_calls = request.json
        ending.watch = RunawayWatch(is_json=request.json, is_unknown=self.connection.is_unknown(request.model))
        try:
            async with aclosing(self._deltas(trial, ending)) as deltas:
                async for delta in deltas:
                    yield delta
        except self._errors() as error:
            ending.accepted |= is_silence(error)
            raise self._failure(error, trial, ending) from cause_of(error, self.connection)
        if ending.stop_reason == ENDLESS:  # nobody has counted it
            ending.usage = ending.usage or usage_of(request, ending.written, None)
        if fault := self._fault(ending, request.model):
            fault.discarded, fault.attempts = _discarded_usage(request, ending), trial.attempts
            raise fault
        usage = ending.usage if self.connection.is_own_server and not ending.calls.has_called else None
        if usage is not None and trial.give_up_tools(usage.input_tokens, self.note):
            ending.stop_reason = TOOLS_LEFT_OUT
        has_thoughts, said = ending.thoughts is not None, ending.comment.strip()
        thoughts = Thoughts(request.model, ending.thoughts or (), said) if has_thoughts or said else None
        yield StreamEnd(ending.usage, ending.stop_reason, thoughts=thoughts)

    def preview(self, request: Request) -> RequestPreview:
        """The body that is sent first for a request; no client is made. Raises VisionUnsupportedError."""
        trial = self._trial(request)
        trial.begin()
        return RequestPreview(trial.request, trial.body)

    def _trial(self, request: Request) -> RequestTrial:
        """The bodies that may be sent for a request. Raises VisionUnsupportedError."""
        complete = self._in_transport(seen(self.connection.complete(request), self.connection))
        return RequestTrial(complete, self._body, self._refused_by(complete.model))

    def form_schema(self, request: Request) -> Mapping[str, Any] | None:
        """The schema that holds an answer without tools to its form, with the bounds that the provider takes.

        A schema that leaves something open is not sent: grammars that are made of it allow nothing but its fields.
        Local servers are told to leave out optional blanks.
        """
        row, schema = self.connection.provider, request.schema if request.offer is None else None
        is_taken = row.json_schema and card_of(request.model).schemas and can_be_sent(schema)
        options = COMPACT if self.connection.is_own_server else {}
        return {**keep_bounds(schema, row.bounds), **options} if is_taken else None

    def _refused_by(self, model: str) -> set[str]:
        """Names of the parts that a model is known to refuse."""
        return self.refused.setdefault((self.connection.base_url or self.provider, model), set())

    async def _deltas(self, trial: RequestTrial, ending: StreamState) -> AsyncGenerator[Delta, None]:
        """Thoughts and text of the answer to the strongest request that the provider accepts."""
        while not trial.is_over:
            async with aclosing(self._attempt(trial, ending)) as deltas:
                async for delta in deltas:
                    yield delta

    async def _attempt(self, trial: RequestTrial, ending: StreamState) -> AsyncGenerator[Delta, None]:
        """The answer to the next request; nothing of one that is refused where a weaker one may follow."""
        trial.begin()
        rescued = ""
        if not trial.has_tools:
            ending.expect_text()
        try:
            async with aclosing(self._stream_deltas(trial.body, ending)) as deltas:
                async for delta in deltas:
                    trial.settle(self.note)
                    yield delta
            trial.is_over = True
        except self._errors() as error:
            rescued = "" if ending.said else document_of(error).generation.strip()
            if not rescued and (ending.begun or not trial.leave_out(error)):
                raise
        for delta in ending.rescue(rescued):
            trial.is_over = True
            yield delta

    def _failure(self, error: Exception, trial: RequestTrial, ending: StreamState) -> RequestError:
        failure = explain(
            error, self.connection, trial.request.model, begun=ending.begun, body=self._body(trial.request)
        )
        failure = failure if ending.begun else trial.conclude(failure)
        failure.discarded, failure.attempts = _discarded_usage(trial.request, ending), trial.attempts
        return failure

    async def _stream_deltas(self, body: Mapping[str, Any], ending: StreamState) -> AsyncGenerator[Delta, None]:
        async with await self._send(body) as stream, aclosing(self._parts(stream, ending)) as parts:
            ending.accepted, ending.is_page = _has_type(stream, "event"), _has_type(stream, "html")
            async for part in parts:
                for delta in ending.deltas(part):
                    yield delta
                if ending.watch.is_endless:
                    ending.stop_reason = ENDLESS
                    break
        for delta in ending.finish():
            yield delta

    async def _parts(self, stream: Any, ending: StreamState) -> AsyncGenerator[Any, None]:
        """The parts of a stream, or those that stand for a document that was sent in its place."""
        document = await read_document(stream)
        if document is None:
            async for part in stream:
                yield part
            return
        ending.accepted = True
        if is_error(document):
            raise self._error_of(stream, document)
        for part in self._split(document):
            yield part

    def _in_transport(self, request: Request) -> Request:
        """A request with its actions as its model is told of them: as tools, or in text, whose schema may be closed."""
        transport = self.connection.transport_of(card_of(request.model))
        if request.offer is None or transport == "tools":
            return request
        schema = action_schema(request.offer.set) if transport == "schema" else None
        if transport == "schema" and schema is None:
            self._tell_open(request.model, open_tools(request.offer.set))
        return replace(request, offer=None, schema=request.schema or schema)

    def _tell_open(self, model: str, tools: Sequence[str]) -> None:
        """Tell once that a model cannot be held to a schema of its actions."""
        if not self._has_told_open:
            self._has_told_open = True
            listed = ", ".join(f"`{tool}`" for tool in tools)
            self.note(f"`{model}` is not held to a schema of its actions, since {listed} may be given anything")

    def _fault(self, ending: StreamState, model: str) -> RequestError | None:
        """The fault of an answer whose stream ended properly."""
        if ending.stop_reason == FULL and not ending.said:
            return overflow(model)
        if ending.refusal is not None:
            return refusal_error(self.connection.title, ending.refusal, self.connection)
        if ending.is_page and not ending.begun:
            return page_error(self.connection.title)
        if not ending.stop_reason or ending.stop_reason in BROKEN:
            return broken_off(self.connection.title, begun=ending.begun)
        called_tool = ending.calls.has_called and not ending.reads_calls
        if not ending.said and (called_tool or ending.stop_reason in CUT_SHORT):
            return without_text(self.connection.title, called_tool=called_tool)
        return None

    async def aclose(self) -> None:
        """Close the connections to the provider, unless other models use them."""
        shared, self._shared, self._client = self._shared, None, None
        if shared is not None:
            await shared.leave()

    def _http_client(self, make: Callable[..., Any]) -> Any:
        """The HTTP client of the SDK, with the headers of the connection and the recorder of streams."""
        kept = self.streams.hooks(self.connection, self.wire) if self.streams is not None else {}
        return make(**{"verify": certificates()} | dict(self.connection.http), **kept)

    @abstractmethod
    def _open(self) -> Any:
        """A client of the SDK."""

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """The body of a request, its fields in the order in which the SDK sends them."""

    @abstractmethod
    async def _send(self, body: Mapping[str, Any]) -> Any:
        """Send a body; the stream of its answer, a context manager."""

    @abstractmethod
    def _ending(self, offer: ToolOffer | None) -> StreamState:
        """A reader for the parts of one stream."""

    @abstractmethod
    def _split(self, document: Any) -> Iterable[Any]:
        """The parts of a stream that equal a whole answer."""

    @abstractmethod
    def _error_of(self, stream: Any, document: Any) -> Exception:
        """The SDK's exception for an error inside a response of status 200."""

    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]:
        """The exceptions of the SDK, its transport and its JSON decoder; imported only after an error."""


def _discarded_usage(request: Request, ending: StreamState) -> Discarded | None:
    """The usage of a discarded answer; None for a request that was not accepted, and is not charged.

    Some providers count the request at the beginning and the answer at its end, some do not count what they break off.
    """
    if not (ending.begun or ending.accepted):
        return None
    estimate = usage_of(request, ending.written, None)
    if ending.stop_reason in CUT_SHORT and request.max_tokens is not None:
        estimate = replace(estimate, output_tokens=request.max_tokens)
    if ending.usage is None:
        return Discarded(estimate)
    if ending.stop_reason:
        return Discarded(ending.usage)
    written = max(ending.usage.output_tokens, estimate.output_tokens)
    return Discarded(replace(ending.usage, output_tokens=written, estimated=True))


def _has_type(stream: Any, word: str) -> bool:
    """Whether a response says that it is a stream of events, as models send it, or a page, as others do."""
    headers = getattr(getattr(stream, "response", None), "headers", {})
    return word in str(headers.get("content-type", ""))


ELSEWHERE = "Choose one that does with `-m provider/model`, such as `-m anthropic/sonnet`."


class VisionUnsupportedError(RequestError):
    """A model was shown an image and reads text only; the same request fails again."""

    def __init__(self, message: str, *, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help, status=status)
        self.repeatable = False


def seen(request: Request, connection: ProviderConnection) -> Request:
    """The request with the newest images that its model may get; omitted ones are noted in texts.

    A model that is known to read text only can go on with a conversation in which there were images. Raises
    VisionUnsupportedError when there are some that no answer has followed yet. Of other models nothing is known, and
    the provider decides.
    """
    if not has_images(request.messages):
        return request
    if card_of(request.model).vision is not False:
        return _limit_images(request)
    if has_images(_new_messages(request.messages)):
        raise VisionUnsupportedError(f"`{request.model}` cannot see images", help=_help(connection.provider))
    return replace(request, messages=tuple(replace(message, images=()) for message in request.messages))


def _new_messages(messages: Sequence[Message]) -> Sequence[Message]:
    answered = [index for index, message in enumerate(messages) if message.role == "assistant"]
    return messages[answered[-1] + 1 :] if answered else messages


def _limit_images(request: Request) -> Request:
    """The request without the oldest of its images where there are too many."""
    left = MAX_IMAGES
    room = MAX_ENCODED_BYTES
    kept = list[Message]()
    for message in reversed(request.messages):
        images = list[Image]()
        for image in reversed(message.images):
            left, room = left - 1, room - len(image.data)
            if left >= 0 and room >= 0:
                images.insert(0, image)
        kept.insert(0, message if len(images) == len(message.images) else replace(message, images=tuple(images)))
    return replace(request, messages=tuple(kept))


def _help(provider: Provider) -> str:
    own = provider.seeing or (provider.model if card_of(provider.model).vision else "")
    return f"`{own}` can: choose it with `-m {provider.name}/{own}`." if own else ELSEWHERE
