"""Requests to streams of deltas through OpenAI's SDK, for every provider that speaks chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koi_lang.llm import late
from koi_lang.llm.connection import Provider
from koi_lang.llm.messages import Message, Request, Usage, merge_turns
from koi_lang.llm.models import card_of
from koi_lang.llm.schemas import is_object, is_strict
from koi_lang.llm.streaming import Ending, SdkModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDelta


class OpenAI(SdkModel):
    """A model behind the chat completions interface."""

    def _open(self) -> AsyncOpenAI:
        connection = self.connection
        client = late.AsyncOpenAI(
            api_key=connection.key.value or "none",  # local servers need no key, the SDK does
            base_url=connection.base_url or connection.provider.base_url,
            timeout=late.Timeout(connection.silence_s, connect=10.0),
            max_retries=0,
        )
        if connection.provider.base_url:  # what the environment says about OpenAI is nobody else's business
            client.organization = client.project = None
        return client

    async def _send(self, request: Request) -> Any:
        return await self._client.chat.completions.create(stream=True, **self._body(request))

    def _body(self, request: Request) -> dict[str, Any]:
        card, row = card_of(request.model), self.connection.provider
        body: dict[str, Any] = {"model": request.model, "messages": _messages(request)}
        if row.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if form := _answer_form(request, row):
            body["response_format"] = form
        if request.temperature is not None and card.sampling:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_tokens" if card.sampling else "max_completion_tokens"] = request.max_tokens
        return body

    def _ending(self) -> Ending:
        return _ChunkReader()

    def _errors(self) -> tuple[type[Exception], ...]:
        return late.OpenAIError, late.HTTPError, ValueError


class _ChunkReader(Ending):
    def take(self, part: ChatCompletionChunk) -> str:
        self.begun = True
        if part.usage:
            self.usage = _usage(part.usage)
        if not part.choices:
            return ""
        choice = part.choices[0]
        self.stop_reason = choice.finish_reason or self.stop_reason
        if choice.finish_reason == "content_filter":
            self.refusal = self.refusal or ""
        return self._text(choice.delta) if choice.delta else ""

    def _text(self, delta: ChoiceDelta) -> str:
        if delta.refusal:
            self.refusal = (self.refusal or "") + delta.refusal
        self.called_tool = self.called_tool or bool(delta.tool_calls)
        return delta.content or ""


def _answer_form(request: Request, row: Provider) -> dict[str, Any] | None:
    """What `response_format` says: the schema where provider and model can keep to it, else JSON where it can."""
    schema = request.schema
    if schema is not None and row.json_schema and card_of(request.model).schemas and is_object(schema):
        described = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
        return {"type": "json_schema", "json_schema": described}
    wants_json = request.json or schema is not None
    return {"type": "json_object"} if wants_json and row.json_mode else None


def _messages(request: Request) -> list[dict[str, Any]]:
    turns = merge_turns((Message("system", request.system), *request.messages))
    return [{"role": turn.role, "content": _content(turn)} for turn in turns if turn.text or turn.images]


def _content(turn: Message) -> str | list[dict[str, Any]]:
    if not turn.images:
        return turn.text
    images = [{"type": "image_url", "image_url": {"url": image.url}} for image in turn.images]
    return [*images, {"type": "text", "text": turn.text}] if turn.text else images


def _usage(usage: CompletionUsage) -> Usage:
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens if details else None) or 0
    stored = (details.cache_write_tokens if details else None) or 0
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, cached, stored)
