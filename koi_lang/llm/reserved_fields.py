"""Fields of bodies of requests that no `extra_body` may have, as data."""

from __future__ import annotations

# What requests say themselves, or have an option for; servers that are written in Go read names in any case.
RESERVED = frozenset({
    "fallbacks", "function_call", "functions", "input", "instructions", "max_completion_tokens", "max_tokens",
    "messages", "model", "models", "n", "output_config", "prompt", "random_seed", "response_format", "seed", "stream",
    "stream_options", "system", "temperature", "tool_choice", "tools", "top_p",
})  # fmt: skip


def reserved_help(name: str) -> str:
    """The advice for a field that requests set themselves."""
    options = ("max_tokens", "model", "seed", "temperature", "top_p")
    is_option = name.lower() in options
    return f"Write `{name.lower()}` beside it." if is_option else "Koi says it itself in every request; leave it out."
