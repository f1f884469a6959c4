"""Requests to streams of deltas through OpenAI's Responses interface, which some of its models alone are behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.lazy import lazy_module
from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.messages import Message, Request, Usage, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.request_bodies import in_order
from koi_lang.llm.stream_fields import count, field, json_word, text_of, word
from koi_lang.llm.stream_state import StreamState
from koi_lang.llm.thinking import responses_effort
from koi_lang.llm.tool_turns import Exchange, exchanges
from koi_lang.llm.tools import NativeTool, ToolOffer
from koi_lang.llm.whole_answers import parts_of_response

if TYPE_CHECKING:
    import openai
else:
    openai = lazy_module("openai")


# Why an answer is incomplete, in the words of the other interfaces.
STOP_REASONS = {"max_output_tokens": "max_tokens"}
# Events with a piece of an item that need not be told again at its end.
DELTAS = frozenset(
    f"response.{each}.delta" for each in ("output_text", "refusal", "reasoning_summary_text", "reasoning_text")
)
# Events about one item.
ABOUT_ITEMS = DELTAS | {
    "response.output_item.added",
    "response.content_part.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
}
# Objects of a body in which `extra_body` may have fields beside ours.
SHARED = ("reasoning", "text")


class FailedResponseError(Exception):
    """The error that a stream reports in place of an answer.

    Attributes:
        body: the provider's description, as JSON data.
    """

    def __init__(self, body: Any) -> None:
        super().__init__(word(body, "message"))
        self.body = body


class OpenAIResponses(OpenAI):
    """A model behind the Responses interface; the provider is told to keep nothing of a conversation."""

    path: ClassVar[str] = "/responses"
    wire: ClassVar[str] = "responses"

    def _body(self, request: Request) -> dict[str, Any]:
        """The body of a request, its fields in the order in which the SDK sends them."""
        card, connection = card_of(request.model), self.connection
        body: dict[str, Any] = {"model": request.model, "input": items_of(request), "store": False, "stream": True}
        if request.offer is not None:
            body |= tools_of(request.offer, is_forced=connection.provider.forces_tools)
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if card.efforts:
            body["include"] = ["reasoning.encrypted_content"]
        body |= responses_effort(connection.effort, connection.provider, card)
        body |= self._form(request) | self._cache_key(request)
        if card.sampling:
            sampling = {"temperature": request.temperature, "top_p": connection.top_p}
            body |= {name: value for name, value in sampling.items() if value is not None}
        return _with_extra(in_order(body, "model", "stream"), connection.extra_body)

    def _form(self, request: Request) -> dict[str, Any]:
        """The form of the answer, as for the chat interface."""
        row, schema = self.connection.provider, self.form_schema(request)
        if request.offer is not None:
            return {}
        if schema is not None:
            return {"text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}}
        wants_json = request.json or request.schema is not None
        return {"text": {"format": {"type": "json_object"}}} if wants_json and row.json_mode else {}

    def _ending(self, offer: ToolOffer | None) -> StreamState:
        return _ResponseReader(offer)

    def _split(self, document: Any) -> Iterable[Any]:
        return parts_of_response(document)

    def _errors(self) -> tuple[type[Exception], ...]:
        return *super()._errors(), FailedResponseError


def _with_extra(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A body with the fields that somebody has added."""
    both = [name for name in SHARED if isinstance(extra.get(name), Mapping) and name in body]
    return {**extra, **body, **{name: {**body[name], **extra[name]} for name in both}}


class _ResponseReader(StreamState):
    def __init__(self, offer: ToolOffer | None) -> None:
        super().__init__(offer)
        self._keeps_thoughts = offer is not None
        self._thoughts: list[str] = []
        # The call that is written at each index, by its number, and those of which arguments have come.
        self._open: dict[int, int] = {}
        self._begun: set[int] = set()
        self._calls = 0
        # Arguments that stand in the beginning of a call already; pieces of them count instead.
        self._whole: dict[int, str] = {}
        # Indices of items of which anything is known, and the index of each item by its id.
        self._seen: set[int] = set()
        self._by_id: dict[str, int] = {}

    def read(self, part: Any) -> str:
        self.begun = True
        kind = word(part, "type")
        index = self._index_of(part) if kind in ABOUT_ITEMS else 0
        match kind:
            case "response.output_text.delta":
                return text_of(field(part, "delta"))
            case "response.refusal.delta":
                self._refuse(word(part, "delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self.thought = word(part, "delta")
            case "response.reasoning_summary_part.added" if count(part, "summary_index"):
                self.thought = "\n\n"
            case "response.output_item.added":
                self._begin_item(index, field(part, "item"))
            case "response.content_part.added" if text := text_of([field(part, "part")]):
                self._seen.add(index)
                return text
            case "response.function_call_arguments.delta":
                self._add_arguments(index, json_word(part, "delta"))
            case "response.function_call_arguments.done":
                self._complete_arguments(index, json_word(part, "arguments"))
            case "response.output_item.done":
                return self._end_item(index, field(part, "item"))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._take_end(kind.removeprefix("response."), field(part, "response"))
            case "error":
                raise FailedResponseError(part)
        return ""

    def _index_of(self, part: Any) -> int:
        """The index of an event's item, which a piece makes known; where none is given, a negative one by its id."""
        id = word(part, "item_id") or word(field(part, "item"), "id")
        if field(part, "output_index") is not None:
            self._by_id[id] = count(part, "output_index")
        index = self._by_id.setdefault(id, -1 - len(self._by_id))
        self._seen |= {index} if word(part, "type") in DELTAS else set()
        return index

    def _refuse(self, reason: str) -> None:
        if reason:
            self.refusal = (self.refusal or "") + reason

    def _begin_item(self, index: int, item: Any) -> None:
        """A call begins, also at an index where another one stands."""
        if word(item, "type") == "function_call":
            self._seen.add(index)
            self._calls += 1
            self._open[index] = self._calls
            self.calls.call(self._calls, word(item, "name"), word(item, "call_id"))
            self._whole[index] = json_word(item, "arguments")

    def _add_arguments(self, index: int, arguments: str) -> None:
        number = self._open.get(index)
        if number is not None:
            self._begun.add(number)
            self.called += self.calls.add(number, arguments)

    def _complete_arguments(self, index: int, arguments: str) -> None:
        """The complete arguments of a call; pieces that were already carried out stay valid."""
        if self._open.get(index) not in self._begun:
            self._add_arguments(index, arguments)

    def _end_item(self, index: int, item: Any) -> str:
        """The end of an item; its text, where that has not come in pieces."""
        is_new = index not in self._seen
        self._seen.add(index)
        match word(item, "type"):
            case "function_call":
                if is_new:
                    self._begin_item(index, item)
                self._complete_arguments(index, json_word(item, "arguments"))
                self._open.pop(index, None)
            case "reasoning":
                self._end_thought(item, is_new=is_new)
            case "message" if is_new:
                content = _records(field(item, "content"))
                self._refuse("".join([word(part, "refusal") for part in content]))
                return text_of(content)
        return ""

    def _end_thought(self, item: Any, *, is_new: bool) -> None:
        """The end of a thought; without its encrypted content the provider could not find it."""
        if is_new:
            self.thought += "\n\n".join([word(each, "text") for each in _records(field(item, "summary"))])
        if word(item, "encrypted_content"):
            self._thoughts.append(thought_text(item, self._calls))

    def _take_end(self, kind: str, response: Any) -> str:
        """The end of the stream, with the whole answer; its text, where nothing of it has come before."""
        self.usage = _usage(field(response, "usage")) or self.usage
        if kind == "failed":
            raise FailedResponseError(field(response, "error"))
        for index in [*self._open]:
            self._complete_arguments(index, self._whole[index])
        whole = [] if self._seen else _records(field(response, "output"))
        text = "".join([self._end_item(index, item) for index, item in enumerate(whole)])
        reason = word(field(response, "incomplete_details"), "reason")
        self.stop_reason = STOP_REASONS.get(reason, reason) or kind
        if self.stop_reason == "content_filter":
            self.refusal = self.refusal or ""
        if self._keeps_thoughts:
            self.thoughts = tuple(self._thoughts)
        return text


def _records(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _usage(usage: Any) -> Usage | None:
    """The usage; None for a missing or unreadable one."""
    details = field(usage, "input_tokens_details")
    try:
        given, made = count(usage, "input_tokens"), count(usage, "output_tokens")
        cached, stored = count(details, "cached_tokens"), count(details, "cache_write_tokens")
        thought = count(field(usage, "output_tokens_details"), "reasoning_tokens")
    except ValueError:
        return None
    return Usage(given, made, cached, stored, thinking_tokens=min(thought, made)) if given or made else None


def items_of(request: Request) -> list[dict[str, Any]]:
    """The items of a request, the system text first: the word JSON has to stand in them where JSON is asked for.

    Calls of tools are told as such where it offers tools, behind what the model thought before them.
    """
    if request.offer is None:
        turns = merge_turns((Message("system", request.system), *request.messages))
        return [_message(turn) for turn in turns if turn.text or turn.images]
    items = [_message(Message("system", request.offer.system))]
    for turn in exchanges(request.messages, request.model):
        items += _exchange(turn) if isinstance(turn, Exchange) else [_message(turn)]
    return items


def tools_of(offer: ToolOffer, *, is_forced: bool) -> dict[str, Any]:
    """The fields of a body that offer tools."""
    choice = {"tool_choice": "required"} if is_forced else {}
    return {**choice, "tools": [_tool(tool) for tool in offer.set.tools]}


def thought_text(item: Mapping[str, Any], calls: int) -> str:
    """A thought as a text to store; `calls` is the number of calls before it."""
    known = {name: value for name, value in item.items() if value is not None}
    return json.dumps({"calls": calls, "item": known}, ensure_ascii=False)


def _thoughts(texts: tuple[str, ...] | None) -> list[tuple[int, dict[str, Any]]]:
    """The thoughts in such texts; those of models of other interfaces are skipped."""
    read = [json.loads(text) for text in texts or ()]
    return [(each["calls"], each["item"]) for each in read if isinstance(each, dict) and "item" in each]


def _tool(tool: NativeTool) -> dict[str, Any]:
    """A tool; one that leaves something open has to say so, since it would be closed."""
    described = {"type": "function", "name": tool.name, "description": tool.description}
    return {**described, "parameters": tool.parameters, "strict": can_be_sent(tool.parameters)}


def _exchange(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """Thoughts and calls in the order in which they came, then the results.

    The ids of calls are ours alone: an id of the provider's would have it look for what it thought before.
    """
    thoughts = _thoughts(exchange.thoughts)
    last = len(exchange.calls) - 1
    said = [_message(Message("assistant", exchange.text))] if exchange.text else []
    for number, (id, call) in enumerate(exchange.calls):
        yield from (item for calls, item in thoughts if min(calls, last) == number)
        yield from said if number == 0 else ()
        yield {"type": "function_call", "call_id": id, "name": call.name, "arguments": call.arguments}
    for id, result in exchange.results:
        shown = _content(Message("user", result.text, result.images))
        yield {"type": "function_call_output", "call_id": id, "output": shown}
    if exchange.rest is not None:
        yield _message(exchange.rest)


def _message(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": _content(turn)}


def _content(turn: Message) -> str | list[dict[str, Any]]:
    if not turn.images:
        return turn.text
    shown = [{"type": "input_image", "detail": "auto", "image_url": image.url} for image in turn.images]
    text = [{"type": "input_text", "text": turn.text}] if turn.text else []
    return [*shown, *text]
