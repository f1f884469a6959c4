"""Requests to streams of deltas through Anthropic's SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from koi_lang.llm.sdk_model import SdkModel, StreamState
from koi_lang.llm.stream_fields import count, field, text_of, word
from koi_lang.llm.thinking import claude_effort, room_for_thoughts
from koi_lang.llm.token_weight import weight
from koi_lang.llm.usage import Candidate

if TYPE_CHECKING:
    import anthropic
    import httpx2
else:
    anthropic = lazy_module("anthropic")
    httpx2 = lazy_module("httpx2")

DEFAULT_MAX_TOKENS = 8000
REMEMBERED_TURNS = 2
REMEMBER = {"cache_control": {"type": "ephemeral"}}


class Anthropic(SdkModel):
    """A model behind Anthropic's messages interface.

    Attributes:
        aliases: short names of models, for those who do not care which version.
    """

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
        output = effort.pop("output_config", {}) | self._form(request).get("output_config", {})
        body: dict[str, Any] = {
            "max_tokens": max_tokens,
            "messages": _turns(request),
            "model": request.model,
            **({"output_config": output} if output else {}),
            "stream": True,
        }
        if system := _system(request):
            body["system"] = system
        body |= effort
        sampling = {"temperature": request.temperature, "top_p": self.connection.top_p}
        if takes_sampling(body, card):
            body |= {name: value for name, value in sampling.items() if value is not None}
        return {**self.connection.extra_body, **body}

    def _form(self, request: Request) -> dict[str, Any]:
        row, schema = self.connection.provider, request.schema
        if not (row.json_schema and card_of(request.model).schemas and can_be_sent(schema)):
            return {}
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def _ending(self) -> StreamState:
        return _EventReader()

    def _errors(self) -> tuple[type[Exception], ...]:
        return anthropic.AnthropicError, httpx2.HTTPError, ValueError


class _EventReader(StreamState):
    def read(self, part: Any) -> str:
        self.begun = True
        match field(part, "type"):
            case "content_block_delta":
                return self._text(field(part, "delta"))
            case "content_block_start":
                self.called_tool = self.called_tool or word(field(part, "content_block"), "type") == "tool_use"
            case "message_start":
                self.usage = _usage(field(field(part, "message"), "usage"))
            case "message_delta":
                self._take_end(part)
        return ""

    def _text(self, delta: Any) -> str:
        self.written += weight(word(delta, "partial_json"))
        if word(delta, "type") == "thinking_delta":
            self.thought = word(delta, "thinking")
        return text_of(field(delta, "text")) if word(delta, "type") == "text_delta" else ""

    def _take_end(self, part: Any) -> None:
        self.stop_reason = word(field(part, "delta"), "stop_reason") or self.stop_reason
        if self.stop_reason == "refusal":
            self.refusal = ""
        self.usage = _with_output(self.usage, field(part, "usage"))


def takes_sampling(body: Mapping[str, Any], card: ModelCard) -> bool:
    """Whether a temperature, or its like, may be sent with a body: no model takes one while it thinks."""
    return card.sampling and body.get("thinking", {}).get("type") not in ("adaptive", "enabled")


def _system(request: Request) -> list[dict[str, Any]]:
    """The system text, to be remembered by the provider, then what was added in the conversation."""
    added = [turn.text for turn in request.messages if turn.role == "system"]
    first, *rest = [text for text in (request.system, *added) if text.strip()] or [""]
    return [_block(first) | REMEMBER, *map(_block, rest)] if first else []


def _turns(request: Request) -> list[dict[str, Any]]:
    """The conversation without its system turns.

    The last turns of the user end what the provider remembers: a playbook's next request repeats everything up to the
    last one, and finds what the request before had stored at the one before it.
    """
    said = (turn for turn in request.messages if turn.role != "system" and (turn.text.strip() or turn.images))
    turns = merge_turns(said)
    asked = [index for index, turn in enumerate(turns) if turn.role == "user"]
    remembered = asked[-REMEMBERED_TURNS:]
    return [_turn(turn, remember=index in remembered) for index, turn in enumerate(turns)]


def _turn(turn: Message, *, remember: bool) -> dict[str, Any]:
    if not remember and not turn.images:
        return {"role": turn.role, "content": turn.text}
    blocks = [*map(_picture, turn.images), *([_block(turn.text)] if turn.text.strip() else [])]
    if remember:
        blocks[-1] |= REMEMBER
    return {"role": turn.role, "content": blocks}


def _block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _usage(usage: Any) -> Usage | None:
    """What was counted at the beginning, cached tokens apart from the others; None where that cannot be read."""
    try:
        cached, stored = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
        given, made = count(usage, "input_tokens"), count(usage, "output_tokens")
    except ValueError:
        return None
    given += cached + stored
    return Usage(given, made, cached, stored) if given or made else None


def _with_output(known: Usage | None, usage: Any) -> Usage | None:
    """What was counted before, with the tokens of the whole answer; None where they cannot be read."""
    if not (known and usage):
        return known
    try:
        made = count(usage, "output_tokens")
        thought = count(field(usage, "output_tokens_details"), "thinking_tokens")
        return replace(known, output_tokens=made, thinking_tokens=min(thought, made))
    except ValueError:
        return None
