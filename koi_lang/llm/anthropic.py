"""Requests to streams of deltas through Anthropic's SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.llm import late
from koi_lang.llm.connection import Connection
from koi_lang.llm.images import Image
from koi_lang.llm.messages import Message, Request, Usage, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.schemas import is_object, is_strict
from koi_lang.llm.streaming import Ending, SdkModel

if TYPE_CHECKING:
    import anthropic.types
    from anthropic import AsyncAnthropic, AsyncAnthropicBedrock

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

    def __init__(self, connection: Connection) -> None:
        super().__init__(replace(connection, model=self._full_name(connection.model)))

    def _full_name(self, model: str) -> str:
        return self.aliases.get(model, model)

    def _open(self) -> AsyncAnthropic | AsyncAnthropicBedrock:
        return late.AsyncAnthropic(
            api_key=self.connection.key.value or "none",
            base_url=self.connection.base_url,
            timeout=late.Timeout(self.connection.silence_s, connect=10.0),
            max_retries=0,
        )

    async def _send(self, request: Request) -> Any:
        request = replace(request, model=self._full_name(request.model))
        return await self._client.messages.create(stream=True, **self._body(request))

    def _body(self, request: Request) -> dict[str, Any]:
        card = card_of(request.model)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": _turns(request),
        }
        if system := _system(request):
            body["system"] = system
        if request.temperature is not None and card.sampling:
            body["extra_body"] = {"temperature": request.temperature}  # the SDK has dropped the argument
        if self.connection.provider.json_schema and card.schemas and _fits(request.schema):
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return body

    def _ending(self) -> Ending:
        return _EventReader()

    def _errors(self) -> tuple[type[Exception], ...]:
        return late.AnthropicError, late.HTTPError, ValueError


class _EventReader(Ending):
    def take(self, part: anthropic.types.RawMessageStreamEvent) -> str:
        self.begun = True
        if part.type == "content_block_delta" and part.delta.type == "text_delta":
            return part.delta.text
        if part.type == "content_block_start":
            self.called_tool = self.called_tool or part.content_block.type == "tool_use"
        if part.type == "message_start" and part.message.usage:
            self.usage = _input_usage(part.message.usage)
        if part.type == "message_delta":
            self._take_end(part)
        return ""

    def _take_end(self, part: anthropic.types.RawMessageDeltaEvent) -> None:
        self.stop_reason = part.delta.stop_reason or self.stop_reason
        if self.stop_reason == "refusal":
            self.refusal = ""
        if part.usage and self.usage:
            self.usage = replace(self.usage, output_tokens=part.usage.output_tokens)


def _fits(schema: Mapping[str, Any] | None) -> bool:
    return schema is not None and is_object(schema) and is_strict(schema)


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


def _input_usage(usage: anthropic.types.Usage) -> Usage:
    """Anthropic counts cached tokens apart from the others."""
    cached = usage.cache_read_input_tokens or 0
    stored = usage.cache_creation_input_tokens or 0
    return Usage(usage.input_tokens + cached + stored, usage.output_tokens, cached, stored)
