"""Requests to streams of deltas through OpenAI's SDK, for every provider that speaks chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.lazy import lazy_module
from koi_lang.llm.chat_thoughts import ThoughtKeeper, fields_of_calls, fields_of_message
from koi_lang.llm.connection import Provider
from koi_lang.llm.images import Image
from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.messages import Message, Request, Usage, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.request_bodies import encode_body, in_order, plain_parts
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.stream_fields import count, field, first, json_word, text_of, thought_of, word
from koi_lang.llm.stream_state import StreamState
from koi_lang.llm.thinking import chat_effort
from koi_lang.llm.tool_turns import Exchange, exchanges, with_images_apart
from koi_lang.llm.tools import NativeTool, ToolOffer
from koi_lang.llm.whole_answers import parts_of_completion

if TYPE_CHECKING:
    import httpx2
    import openai
else:
    openai = lazy_module("openai")
    httpx2 = lazy_module("httpx2")


# Where servers that speak as OpenAI does put what a model thinks; some say it in both places.
THOUGHTS = ("reasoning_content", "reasoning")


class OpenAI(SdkModel):
    """A model behind the chat completions interface.

    Attributes:
        path: where requests go, below the address of the provider.
    """

    path: ClassVar[str] = "/chat/completions"

    def _open(self) -> openai.AsyncOpenAI:
        connection = self.connection
        client = openai.AsyncOpenAI(
            api_key=connection.key.value or "none",  # local servers need no key, the SDK does
            base_url=connection.base_url or connection.provider.base_url,
            timeout=httpx2.Timeout(connection.silence_s, connect=10.0),
            max_retries=0,
            http_client=self._http_client(openai.DefaultAsyncHttpxClient),
        )
        if connection.provider.base_url:  # what the environment says about OpenAI is nobody else's business
            client.organization = client.project = None
        return client

    async def _send(self, body: Mapping[str, Any]) -> Any:
        return await self._client.post(
            self.path,
            content=encode_body(body),
            options={"security": {"bearer_auth": True}},  # no key of an administrator that the environment may hold
            **plain_parts(openai.AsyncStream),
        )

    def _body(self, request: Request) -> dict[str, Any]:
        """The body of a request, its fields in the order in which the SDK sends them."""
        card, row = card_of(request.model), self.connection.provider
        body: dict[str, Any] = {"model": self.connection.id_of(request.model), "stream": True}
        body["messages"] = messages_of(request, row)
        if request.offer is not None:
            body |= tools_of(request.offer, is_forced=row.forces_tools)
        if request.max_tokens is not None:
            # OpenAI's newer models refuse `max_tokens`; of one without a card only that is known.
            is_there = row.name == "openai" and self.connection.base_url is None
            is_new = not card.sampling or (is_there and card.output_tokens is None)
            body["max_completion_tokens" if is_new else "max_tokens"] = request.max_tokens
        body |= chat_effort(self.connection.effort, row, card) | self._form(request) | self._cache_key(request)
        if row.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if request.temperature is not None and card.sampling:
            body["temperature"] = request.temperature
        if self.connection.top_p is not None and card.sampling:
            body["top_p"] = self.connection.top_p
        if self.connection.seed is not None and row.seed:
            body[row.seed] = self.connection.seed
        return {**self.connection.extra_body, **in_order(body, "model", "stream", "messages")}

    def _cache_key(self, request: Request) -> dict[str, Any]:
        """The key of a request, unless somebody gives another one; servers that they name may not know the field."""
        name, connection = "prompt_cache_key", self.connection
        is_taken = connection.provider.cache_key and connection.base_url is None
        return {name: request.cache_key} if is_taken and request.cache_key and name not in connection.extra_body else {}

    def _form(self, request: Request) -> dict[str, Any]:
        """The schema where provider and model are held to every word of it, else JSON where they can."""
        row, schema = self.connection.provider, self.form_schema(request)
        if request.offer is not None:
            return {}
        if schema is not None:
            described = {"name": "answer", "schema": schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        wants_json = request.json or request.schema is not None
        return {"response_format": {"type": "json_object"}} if wants_json and row.json_mode else {}

    def _ending(self, offer: ToolOffer | None) -> StreamState:
        return _ChunkReader(offer, self.connection.provider.thoughts)

    def _split(self, document: Any) -> Iterable[Any]:
        return parts_of_completion(document)

    def _error_of(self, stream: Any, document: Any) -> Exception:
        return openai.APIError("an error", stream.response.request, body=document)

    def _errors(self) -> tuple[type[Exception], ...]:
        return openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError


class _ChunkReader(StreamState):
    def __init__(self, offer: ToolOffer | None, thoughts: str) -> None:
        super().__init__(offer)
        self._kept = ThoughtKeeper(thoughts if offer is not None else "")
        # The last call that began at each index, by its number, as some servers give all of them the same one; and
        # the calls by their ids.
        self._by_index: dict[str, int] = {}
        self._by_id: dict[str, int] = {}
        self._calls_begun = 0

    def read(self, part: Any) -> str:
        self.begun = True
        choice = _first_choice(part)
        self.usage = _usage_in(part, choice) or self.usage
        self.stop_reason = word(choice, "finish_reason") or self.stop_reason
        if self.stop_reason == "content_filter":
            self.refusal = self.refusal or ""
        text = self._text(field(choice, "delta"))
        self.thoughts = self._kept.texts if self.stop_reason else None
        return text

    def _text(self, delta: Any) -> str:
        if refusal := word(delta, "refusal"):
            self.refusal = (self.refusal or "") + refusal
        calls = field(delta, "tool_calls")
        for call in calls if isinstance(calls, list) else [calls] if isinstance(calls, Mapping) else ():
            self.called += self._read_call(call)
        if (call := field(delta, "function_call")) is not None:  # how servers that follow older versions say it
            self.called += self._read_call({"function": call})
        self._kept.add_delta(delta)
        content = field(delta, "content")
        self.thought = next(filter(None, (word(delta, name) for name in THOUGHTS)), "") or thought_of(content)
        return text_of(content)

    def _read_call(self, call: Any) -> str:
        """A piece of a call; a name begins another one where the last of its place is complete, or has another id."""
        function = field(call, "function") or call
        index = str(field(call, "index"))
        id = word(call, "id")
        name = word(function, "name")
        number = self._number_of(index, id, name)
        known = self.calls.get(number)
        if number is None or known is None or (name and (known.is_complete or (id and id != known.id))):
            number = self._calls_begun
            self.calls.call(number, name, id)
            self._calls_begun += 1
            self._by_index[index] = number
        elif name:
            self.calls.add_name(number, name)
        if id:
            self._by_id[id] = number
        self._kept.add_call(number, call)
        return self.calls.add(number, json_word(function, "arguments"))

    def _number_of(self, index: str, id: str, name: str) -> int | None:
        """The call of a piece: by its index, its id, or the order of the pieces."""
        number = self._by_index.get(index)
        known = self.calls.get(number)
        if number is None and name and index != str(None):
            return None
        if id and (known is None or known.id != id):
            number = self._by_id.get(id, number)
        return self._calls_begun - 1 if number is None and self._calls_begun and not id else number


def _first_choice(part: Any) -> Any:
    """The choice of a chunk that is the answer; None where it has none, or one beside the answer."""
    choices = field(part, "choices")
    choices = choices if isinstance(choices, list) else []
    return first([each for each in choices if field(each, "index") in (None, 0, "0")])


def _usage_in(part: Any, choice: Any) -> Usage | None:
    """The usage in a chunk; Moonshot reports it within the choice, Groq also in a field of its own."""
    places = field(part, "usage"), field(choice, "usage"), field(field(part, "x_groq"), "usage")
    return next(filter(None, map(_usage, places)), None)


def _usage(usage: Any) -> Usage | None:
    """The usage; None for a missing or unreadable one."""
    if usage is None:  # of all chunks but the last one
        return None
    details = field(usage, "prompt_tokens_details")
    try:
        given, made = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
        cached = count(details, "cached_tokens") or count(usage, "cached_tokens")  # Moonshot has no details
        stored = count(details, "cache_write_tokens")
        thought = count(field(usage, "completion_tokens_details"), "reasoning_tokens")
        # Google and xAI leave thoughts out of the answer, and count them in the total alone.
        made = max(made, count(usage, "total_tokens") - given)
    except ValueError:
        return None
    return Usage(given, made, cached, stored, thinking_tokens=min(thought, made)) if given or made else None


# What stands between results and a person's words where these may not follow them.
HEARD = "OK."


def messages_of(request: Request, row: Provider) -> list[dict[str, Any]]:
    """The messages of a request, the system text first; calls of tools are told as such where it offers tools."""
    if request.offer is None:
        turns = merge_turns((Message("system", request.system), *request.messages))
        return [_message(turn) for turn in turns if turn.text or turn.images]
    messages = [_message(Message("system", request.offer.system))]
    for turn in exchanges(request.messages, request.model):
        messages += _exchange(turn, row) if isinstance(turn, Exchange) else [_message(turn)]
    return messages


def tools_of(offer: ToolOffer, *, is_forced: bool) -> dict[str, Any]:
    """The fields of a body that offer tools."""
    choice = {"tool_choice": "required"} if is_forced else {}
    return {"tools": [_tool(tool) for tool in offer.set.tools], **choice}


def _tool(tool: NativeTool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    is_strict = {"strict": True} if can_be_sent(tool.parameters) else {}
    return {"type": "function", "function": function | is_strict}


def _exchange(exchange: Exchange, row: Provider) -> Iterator[dict[str, Any]]:
    """Calls and their results; images of results are shown by the person, since results are texts there."""
    own = fields_of_calls(exchange.thoughts, row.thoughts, len(exchange.calls))
    yield {
        "role": "assistant",
        "content": exchange.text or None,
        **fields_of_message(exchange.thoughts, row.thoughts),
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}, **fields}
            for (id, call), fields in zip(exchange.calls, own, strict=True)
        ],
    }
    for id, result in exchange.results:
        yield {"role": "tool", "tool_call_id": id, "content": result.text}
    rest = with_images_apart(exchange)
    if rest is None:
        return
    if not row.user_after_results:
        yield _message(Message("assistant", HEARD))
    yield _message(rest)


def _message(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": _content(turn.text, turn.images)}


def _content(text: str, images: tuple[Image, ...]) -> str | list[dict[str, Any]]:
    if not images:
        return text
    shown = [{"type": "image_url", "image_url": {"url": image.url}} for image in images]
    return [*shown, {"type": "text", "text": text}] if text else shown
