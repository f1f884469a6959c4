"""Detection of overlong conversations in the errors of providers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_context_window_exceeded",
        "request_too_large",
        "string_above_max_length",
    }
)
# What a model stops with whose window is full.
FULL = "model_context_window_exceeded"
TOO_LARGE = 413
# Statuses that speak of something else, whatever the text says.
OTHERS = frozenset({401, 402, 403, 404, 429})
# Limits of rates count tokens, too, and some providers send them with the status 413.
RATES = re.compile(r"rate.?limit|per (minute|hour|day)|\bTP[MD]\b|quota|throttl|too many requests", re.IGNORECASE)
SAYINGS = re.compile(
    "|".join(
        (
            r"max(imum)? context length",  # OpenAI, DeepSeek, Groq, Mistral, OpenRouter, Together, Ollama, vLLM
            r"exceeds? (the )?(available |maximum |model'?s )*context (window|length|size|limit)",  # OpenAI, llama.cpp
            r"reduce the length of (the|your) messages",
            r"prompt is too long",  # Anthropic
            r"input is too long for",  # Bedrock
            r"request exceeds the maximum size",
            r"input token count.{0,40}exceeds the maximum",  # Gemini
            r"maximum prompt length is \d",  # xAI
            r"exceeded model token limit|model max length exceeded",  # Moonshot
            r"range of input length should be",  # Qwen
            r"inputs?`? tokens \+ `?max_new_tokens`? must be",  # Together
            r"input length.{0,40}exceeds the maximum allowed length",  # SGLang
            r"greater than the context length|context length of only \d",  # LM Studio
        )
    ),
    re.IGNORECASE,
)
MAX_CHARS_READ = 4000
# How servers say how much was sent and how much they read: llama.cpp, whose bodies also have fields for it; vLLM.
SENT_AND_READ = re.compile(r"request \((?P<sent>\d+) tokens\) exceeds the available context size \((?P<read>\d+)")
READ_AND_SENT = re.compile(r"maximum context length is (?P<read>\d+) tokens.{0,80}?\b(?P<sent>\d+) tokens", re.DOTALL)


def is_overflow(status: int | None, code: str, text: str) -> bool:
    """Whether a rejected request was longer than the model's window.

    Args:
        status: of the answer; None for an error inside a stream.
        code: the provider's own word for the error, empty without one.
        text: what the provider says, see `said`.
    """
    if status in OTHERS or RATES.search(f"{code} {text}"):
        return False
    return status == TOO_LARGE or code in CODES or SAYINGS.search(text) is not None


def overflow_size(body: Any) -> tuple[int, int] | None:
    """How many tokens were sent, and how many the model reads; None where that is not said."""
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(inner, Mapping):
        sent, read = inner.get("n_prompt_tokens"), inner.get("n_ctx")
        if type(sent) is int and type(read) is int:
            return sent, read
    text = error_text(body)
    found = SENT_AND_READ.search(text) or READ_AND_SENT.search(text)
    return None if found is None else (int(found["sent"]), int(found["read"]))


def error_text(body: Any) -> str:
    """All that the body of an error says in words; a page for people says nothing."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str):
        return "" if body.lstrip().startswith("<") else body[:MAX_CHARS_READ]
    if not isinstance(body, Mapping):
        return ""
    inner = body.get("error")
    about = body.get("metadata")  # OpenRouter hands on what the provider behind it said
    parts = (body.get("message"), about.get("raw") if isinstance(about, Mapping) else None)
    texts = [str(part)[:MAX_CHARS_READ] for part in parts if part]
    return " ".join([*texts, error_text(inner)]) if inner is not None else " ".join(texts)
