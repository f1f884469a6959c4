"""Requests to streams of deltas through Anthropic's SDK."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koi_lang.llm.connection import Connection
from koi_lang.llm.messages import Request, Usage, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.streaming import Ending, SdkModel

if TYPE_CHECKING:
    import anthropic.types
    from anthropic import AsyncAnthropic

DEFAULT_MAX_TOKENS = 8000
ALIASES = {"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "haiku": "claude-haiku-5-5"}


class Anthropic(SdkModel):
    """A model behind Anthropic's messages interface."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(replace(connection, model=ALIASES.get(connection.model, connection.model)))

    def _open(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, Timeout

        return AsyncAnthropic(
            api_key=self.connection.key.value or "none",
            base_url=self.connection.base_url,
            timeout=Timeout(self.connection.silence_s, connect=10.0),
            max_retries=0,
        )

    async def _send(self, request: Request) -> Any:
        return await self._client.messages.create(stream=True, **_body(request))

    def _ending(self) -> Ending:
        return _EventReader()

    def _errors(self) -> tuple[type[Exception], ...]:
        from anthropic import AnthropicError
        from httpx2 import HTTPError

        return AnthropicError, HTTPError, ValueError


class _EventReader(Ending):
    def take(self, part: anthropic.types.RawMessageStreamEvent) -> str:
        self.begun = True
        if part.type == "content_block_delta" and part.delta.type == "text_delta":
            return part.delta.text
        if part.type == "message_start":
            self.usage = _input_usage(part.message.usage)
        if part.type == "message_delta":
            self.stop_reason = part.delta.stop_reason or self.stop_reason
            self.usage = replace(self.usage or Usage(0, 0), output_tokens=part.usage.output_tokens)
        return ""


def _body(request: Request) -> dict[str, Any]:
    model = ALIASES.get(request.model, request.model)
    system = "\n\n".join([request.system, *(turn.text for turn in request.messages if turn.role == "system")])
    turns = merge_turns(turn for turn in request.messages if turn.role != "system")
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": [{"role": turn.role, "content": turn.text} for turn in turns],
        "cache_control": {"type": "ephemeral"},  # the turns of a playbook repeat everything before them
    }
    if system.strip():
        body["system"] = system
    if request.temperature is not None and card_of(model).sampling:
        body["extra_body"] = {"temperature": request.temperature}  # the SDK has dropped the argument
    return body


def _input_usage(usage: anthropic.types.Usage) -> Usage:
    """Anthropic counts cached tokens apart from the others."""
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    return Usage(usage.input_tokens + cached + written, usage.output_tokens, cached)
