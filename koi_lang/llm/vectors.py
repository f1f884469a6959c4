"""Texts to vectors by the embeddings interface of OpenAI's SDK, in the form of a model, so that retries fit around it.

The answer to a request of n messages is n lines, each a vector that is packed into text.
"""

from __future__ import annotations

import math
from array import array
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from koi_lang.llm.messages import Request, Usage
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.stream_state import StreamState
from koi_lang.llm.tools import ToolOffer

Vector: TypeAlias = Sequence[float]


class Vectors(OpenAI):
    """A model behind the embeddings interface; its answer is a line for each message of the request."""

    def _body(self, request: Request) -> dict[str, Any]:
        texts = [message.text for message in request.messages]
        return {"model": request.model, "input": texts, "encoding_format": "float"}

    async def _send(self, body: Mapping[str, Any]) -> Any:
        raw = await self._client.embeddings.with_raw_response.create(**body)
        return _at_once((raw.http_response.json(), len(body["input"])))

    def _ending(self, offer: ToolOffer | None) -> StreamState:
        return _Whole()


class _Whole(StreamState):
    def read(self, part: tuple[Any, int]) -> str:
        document, count = part
        self.begun, self.stop_reason = True, "stop"
        self.usage = _usage(document)
        return "\n".join(map(pack_vector, _vectors(document, count)))


@asynccontextmanager
async def _at_once(part: Any) -> AsyncIterator[AsyncIterator[Any]]:
    """A stream of one part."""

    async def parts() -> AsyncIterator[Any]:
        yield part

    yield parts()


def _vectors(document: Any, count: int) -> list[Vector]:
    """The vectors in an answer in the order of their texts. Raises ValueError when it is not well formed."""
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list) or len(data) != count:
        raise ValueError(f"{count} vectors were expected")
    try:
        ordered = sorted(data, key=lambda each: each.get("index", 0))
        return [_unit(array("f", each["embedding"])) for each in ordered]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("these are no vectors") from error


def _usage(document: Any) -> Usage | None:
    told = document.get("usage") if isinstance(document, dict) else None
    tokens = told.get("prompt_tokens") if isinstance(told, dict) else None
    return Usage(tokens, 0) if isinstance(tokens, int) else None


def _unit(vector: Vector) -> array[float]:
    length = math.sqrt(math.fsum(x * x for x in vector))
    if not (length > 0 and math.isfinite(length)):
        raise ValueError("a vector without a direction")
    return array("f", (x / length for x in vector))


def pack_vector(vector: Vector) -> str:
    """A vector as a short text: its numbers with the accuracy of 32 bits."""
    return b64encode(array("f", vector).tobytes()).decode()


def unpack_vector(text: Any) -> Vector | None:
    """The vector in a text; None where there is none."""
    try:
        vector = array("f", b64decode(text, validate=True))
    except (TypeError, ValueError):
        return None
    return vector or None
