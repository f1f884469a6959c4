"""Requests to streams of deltas through Anthropic's SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.lazy import lazy_module
from koi_lang.llm.cards import ModelCard
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.images import Image
from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.messages import Message, Request, Usage, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.request_bodies import encode_body, plain_parts
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.stream_fields import count, field, json_word, text_of, word
from koi_lang.llm.stream_state import StreamState
from koi_lang.llm.thinking import claude_effort, room_for_thoughts
from koi_lang.llm.tool_turns import Exchange, exchanges, own_thoughts
from koi_lang.llm.tools import NativeTool, ToolCall, ToolOffer, ToolResult
from koi_lang.llm.usage import Candidate
from koi_lang.llm.whole_answers import parts_of_message

if TYPE_CHECKING:
    import anthropic
    import httpx2
else:
    anthropic = lazy_module("anthropic")
    httpx2 = lazy_module("httpx2")


DEFAULT_MAX_TOKENS = 8000
# What is kept of the blocks in which a model thinks, to be sent back as they are.
THOUGHT_FIELDS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}


class Anthropic(SdkModel):
    """A model behind Anthropic's messages interface.

    Attributes:
        aliases: short names of models, for those who do not care which version.
    """

    wire: ClassVar[str] = "messages"
    aliases: ClassVar[Mapping[str, str]] = {
        "sonnet": "claude-sonnet-5-5",
        "opus": "claude-opus-5-5",
        "haiku": "claude-haiku-5-5",
    }

    def __init__(self, connection: ProviderConnection) -> None:
        super().__init__(replace(connection, model=self._full_name(connection.model)))

    def _full_name(self, model: str) -> str:
        return self.aliases.get(model, model)

    def _open(self) -> anthropic.AsyncAnthropic | anthropic.AsyncAnthropicBedrock:
        return anthropic.AsyncAnthropic(
            api_key=self.connection.key.value or "none",
            base_url=self.connection.base_url,
            timeout=httpx2.Timeout(self.connection.silence_s, connect=10.0),
            max_retries=0,
            http_client=self._http_client(anthropic.DefaultAsyncHttpxClient),
        )

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The one model that answers; it is always told how long its answer may be."""
        return (Candidate(self.model, self.connection.max_tokens or self._usual_max_tokens(self.model)),)

    def _usual_max_tokens(self, model: str) -> int:
        """Most tokens of an answer to which nobody sets a limit, with room for the thoughts that it may begin with."""
        card = card_of(model)
        room = room_for_thoughts(self.connection.effort, self.connection.provider, card)
        return min(DEFAULT_MAX_TOKENS + room, card.output_tokens or DEFAULT_MAX_TOKENS + room)

    async def _send(self, body: Mapping[str, Any]) -> Any:
        return await self._client.post("/v1/messages", **self._payload(body), **plain_parts(anthropic.AsyncStream))

    def _payload(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """How the SDK is given a body."""
        return {"content": encode_body(body)}

    def _body(self, request: Request) -> dict[str, Any]:
        """The body of a request, its fields in the order in which the SDK sends them."""
        request = replace(request, model=self._full_name(request.model))
        card, max_tokens = card_of(request.model), request.max_tokens or self._usual_max_tokens(request.model)
        effort = claude_effort(self.connection.effort, self.connection.provider, card, max_tokens)
        thinks = _thinks(effort) or (not effort and bool(card.usual_effort))
        schema = self.form_schema(request)
        form = {} if schema is None else {"format": {"type": "json_schema", "schema": schema}}
        output = effort.pop("output_config", {}) | form
        body: dict[str, Any] = {
            "max_tokens": max_tokens,
            "messages": messages_of(request, thinks=thinks),
            "model": request.model,
            **({"output_config": output} if output else {}),
            "stream": True,
        }
        if system := system_of(request):
            body["system"] = system
        body |= effort
        if request.offer is not None:
            body |= tools_of(request.offer, is_forced=not thinks)
        sampling = {"temperature": request.temperature, "top_p": self.connection.top_p}
        if takes_sampling(body, card):
            body |= {name: value for name, value in sampling.items() if value is not None}
        return {**self.connection.extra_body, **body}

    def _ending(self, offer: ToolOffer | None) -> StreamState:
        return _EventReader(offer)

    def _split(self, document: Any) -> Iterable[Any]:
        return parts_of_message(document)

    def _error_of(self, stream: Any, document: Any) -> Exception:
        return anthropic.APIError("an error", stream.response.request, body=document)

    def _errors(self) -> tuple[type[Exception], ...]:
        return anthropic.AnthropicError, httpx2.HTTPError, ValueError, RecursionError


class _EventReader(StreamState):
    def __init__(self, offer: ToolOffer | None) -> None:
        super().__init__(offer)
        self.thoughts = None if offer is None else ()
        # The last block that began at each index, by its number.
        self._numbers: dict[str, int] = {}
        self._blocks_begun = 0
        # The blocks of thoughts that have begun, by their number.
        self._thinking: dict[int, dict[str, Any]] = {}
        # Arguments that stand in the beginning of a call already; pieces of them count instead.
        self._whole: dict[int, str] = {}

    def read(self, part: Any) -> str:
        self.begun = True
        index = str(field(part, "index"))
        number = self._numbers.get(index, self._blocks_begun)
        match field(part, "type"):
            case "content_block_delta":
                return self._take_delta(number, field(part, "delta"))
            case "content_block_start":
                self._blocks_begun += 1
                self._numbers[index] = self._blocks_begun
                return self._begin_block(self._blocks_begun, field(part, "content_block"))
            case "content_block_stop":
                self._end_block(self._numbers.get(index, 0))
            case "message_start":
                self.usage = _usage(field(field(part, "message"), "usage"))
            case "message_delta":
                self._take_end(part)
        return ""

    def _begin_block(self, number: int, block: Any) -> str:
        """The beginning of a block; its text, which some servers send whole in it."""
        match word(block, "type"):
            case "text":
                return text_of(field(block, "text"))
            case "tool_use":
                self.calls.call(number, word(block, "name"), word(block, "id"))
                self._whole[number] = json_word(block, "input")
            case "thinking" | "redacted_thinking" as kind:
                self.thought = word(block, "thinking")
                self._thinking[number] = {"type": kind, **{name: word(block, name) for name in THOUGHT_FIELDS[kind]}}
        return ""

    def _take_delta(self, number: int, delta: Any) -> str:
        match word(delta, "type"):
            case "input_json_delta" if self.calls.get(number) is not None:
                arguments = json_word(delta, "partial_json")
                if arguments.strip():
                    self._whole.pop(number, None)
                self.called = self.calls.add(number, arguments)
            case "thinking_delta":
                self.thought = word(delta, "thinking")
                self._extend_thought(number, "thinking", self.thought)
            case "signature_delta":
                self._extend_thought(number, "signature", word(delta, "signature"))
            case "text_delta":
                return text_of(field(delta, "text"))
        return ""

    def _extend_thought(self, number: int, name: str, text: str) -> None:
        if number in self._thinking:
            self._thinking[number][name] += text

    def _end_block(self, number: int) -> None:
        if number in self._whole:
            self.called += self.calls.add(number, self._whole.pop(number))
        if self.thoughts is not None and number in self._thinking:
            self.thoughts = (*self.thoughts, json.dumps(self._thinking.pop(number)))

    def _take_end(self, part: Any) -> None:
        for number in [*self._whole]:
            self._end_block(number)
        self.stop_reason = word(field(part, "delta"), "stop_reason") or self.stop_reason
        if self.stop_reason == "refusal":
            self.refusal = ""
        self.usage = _with_output(self.usage, field(part, "usage"))


def takes_sampling(body: Mapping[str, Any], card: ModelCard) -> bool:
    """Whether a temperature, or its like, may be sent with a body: no model takes one while it thinks."""
    return card.sampling and not _thinks(body)


def _thinks(body: Mapping[str, Any]) -> bool:
    """Whether a body has its model think."""
    return body.get("thinking", {}).get("type") in ("adaptive", "enabled")


def _usage(usage: Any) -> Usage | None:
    """The usage at the beginning of an answer, with cached tokens apart; None for an unreadable one."""
    try:
        cached, stored = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
        given, made = count(usage, "input_tokens"), count(usage, "output_tokens")
    except ValueError:
        return None
    given += cached + stored
    return Usage(given, made, cached, stored) if given or made else None


def _with_output(known: Usage | None, usage: Any) -> Usage | None:
    """The earlier usage with the tokens of the whole answer; None where they cannot be read.

    Tools of the provider add to the request while it is answered; it is counted once more then.
    """
    if not (known and usage):
        return known
    again = _usage(usage)
    if again is not None and again.input_tokens > known.input_tokens:
        known = again
    try:
        made = count(usage, "output_tokens")
        thought = count(field(usage, "output_tokens_details"), "thinking_tokens")
        return replace(known, output_tokens=made, thinking_tokens=min(thought, made))
    except ValueError:
        return None


REMEMBERED_TURNS = 2
REMEMBER = {"cache_control": {"type": "ephemeral"}}


def system_of(request: Request) -> list[dict[str, Any]]:
    """The system text with a cache mark, then the additions of the conversation."""
    added = [turn.text for turn in request.messages if turn.role == "system"]
    system = request.system if request.offer is None else request.offer.system
    first, *rest = [text for text in (system, *added) if text.strip()] or [""]
    return [_block(first) | REMEMBER, *map(_block, rest)] if first else []


def messages_of(request: Request, *, thinks: bool = False) -> list[dict[str, Any]]:
    """The conversation without its system turns; calls of tools are told as such where it offers tools.

    The last turns of the user end what the provider remembers: a playbook's next request repeats everything up to the
    last one, and finds what the request before had stored at the one before it.

    Args:
        thinks: whether the model is to think; calls whose thoughts are not known are told as text then, since it wants
            to see again what it thought before it called.
    """
    said = [turn for turn in request.messages if turn.role != "system" and (turn.text.strip() or turn.images)]
    if request.offer is None:
        turns = [_turn(turn) for turn in merge_turns(said)]
    else:
        known = [_without_unexplained_calls(turn, request.model) for turn in said] if thinks else said
        turns = [each for turn in exchanges(known, request.model) for each in _as_turns(turn)]
    asked = [index for index, turn in enumerate(turns) if turn["role"] == "user"]
    for index in asked[-REMEMBERED_TURNS:]:
        turns[index]["content"] = _end_memory(turns[index]["content"])
    return turns


def tools_of(offer: ToolOffer, *, is_forced: bool) -> dict[str, Any]:
    """The fields of a body that offer tools."""
    choice = {"tool_choice": {"type": "any"}} if is_forced else {}
    return {**choice, "tools": [_tool(tool) for tool in offer.set.tools]}


def _tool(tool: NativeTool) -> dict[str, Any]:
    """A tool whose arguments are streamed as the model writes them."""
    is_strict = {"strict": True} if can_be_sent(tool.parameters) else {}
    described = {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
    return {**described, "eager_input_streaming": True, **is_strict}


def _without_unexplained_calls(turn: Message, model: str) -> Message:
    """A turn without its calls, if the thoughts of a Claude before them are unknown."""
    return replace(turn, calls=()) if turn.calls and _thoughts(own_thoughts(turn, model)) is None else turn


def _as_turns(turn: Message | Exchange) -> Iterator[dict[str, Any]]:
    if isinstance(turn, Message):
        yield _turn(turn)
        return
    thoughts = _thoughts(turn.thoughts) or []
    said = [{"type": "text", "text": turn.text}] if turn.text else []
    yield {"role": "assistant", "content": [*thoughts, *said, *(_call(id, call) for id, call in turn.calls)]}
    blocks = [_result(id, result) for id, result in turn.results]
    yield {"role": "user", "content": [*blocks, *(_blocks(turn.rest) if turn.rest is not None else [])]}


def _thoughts(texts: tuple[str, ...] | None) -> list[dict[str, Any]] | None:
    """The blocks in which a Claude thought; None where that is not known, or another model thought."""
    blocks = [json.loads(text) for text in texts or ()]
    are_known = texts is not None and all(isinstance(block, dict) and "type" in block for block in blocks)
    return blocks if are_known else None


def _call(id: str, call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": call.name, "input": _input(call.arguments)}


def _input(arguments: str) -> dict[str, Any]:
    """Arguments as the object that they must be."""
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _result(id: str, result: ToolResult) -> dict[str, Any]:
    failed = {"is_error": True} if result.is_error else {}
    shown = [_block(result.text), *map(_picture, result.images)] if result.images else result.text
    return {"type": "tool_result", "tool_use_id": id, "content": shown, **failed}


def _turn(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": _blocks(turn) if turn.images else turn.text}


def _end_memory(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content of a message with a cache mark at its end."""
    blocks = [_block(content)] if isinstance(content, str) else content
    return [*blocks[:-1], blocks[-1] | REMEMBER]


def _blocks(turn: Message) -> list[dict[str, Any]]:
    return [*map(_picture, turn.images), *([_block(turn.text)] if turn.text.strip() else [])]


def _block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
