"""What only some models need, by name: it is loaded when it is asked for first, SDKs with the first request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import on_demand

if TYPE_CHECKING:
    from http.client import HTTPConnection as HTTPConnection
    from http.client import HTTPException as HTTPException
    from http.client import HTTPSConnection as HTTPSConnection

    from anthropic import AnthropicError as AnthropicError
    from anthropic import AsyncAnthropic as AsyncAnthropic
    from anthropic import AsyncAnthropicBedrock as AsyncAnthropicBedrock
    from httpx2 import AsyncClient as AsyncClient
    from httpx2 import HTTPError as HTTPError
    from httpx2 import InvalidURL as InvalidURL
    from httpx2 import Timeout as Timeout
    from openai import AsyncOpenAI as AsyncOpenAI
    from openai import OpenAIError as OpenAIError

    from koi_lang.llm.answer_cache import AnswerStore as AnswerStore
    from koi_lang.llm.answer_cache import cached as cached
    from koi_lang.llm.embeddings import check_name as check_name
    from koi_lang.llm.embeddings import connection_for as connection_for
    from koi_lang.llm.embeddings import embedder as embedder
    from koi_lang.llm.rehearsal import Rehearsal as Rehearsal
else:
    __getattr__ = on_demand(
        __name__,
        {
            "http.client": ("HTTPConnection", "HTTPException", "HTTPSConnection"),
            "anthropic": ("AnthropicError", "AsyncAnthropic", "AsyncAnthropicBedrock"),
            "httpx2": ("AsyncClient", "HTTPError", "InvalidURL", "Timeout"),
            "openai": ("AsyncOpenAI", "OpenAIError"),
            "koi_lang.llm.answer_cache": ("AnswerStore", "cached"),
            "koi_lang.llm.embeddings": ("check_name", "connection_for", "embedder"),
            "koi_lang.llm.rehearsal": ("Rehearsal",),
        },
    )
