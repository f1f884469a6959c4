"""What providers say when they refuse a part of a request, and a request that has all of these parts."""

from __future__ import annotations

import json
from typing import Any


def error(message: str, **about: Any) -> dict[str, Any]:
    """An error as OpenAI and most others send it."""
    return {"error": {"message": message, "type": "invalid_request_error", **about}}


def extra(*path: str) -> list[dict[str, Any]]:
    """What Pydantic says of a field that a server does not know."""
    return [{"type": "extra_forbidden", "loc": ["body", *path], "msg": "Extra inputs are not permitted"}]


UNKNOWN_NAME = 'Invalid JSON payload received. Unknown name "{0}": Cannot find field.'

# By provider: what it says (word for word from its documentation, or from reports of those who met it), of which
# part of a request.
REFUSALS: dict[str, tuple[Any, str]] = {
    "openai temperature": (
        error(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported.",
            param="temperature",
            code="unsupported_value",
        ),
        "temperature",
    ),
    "openai max_tokens": (
        error(
            "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        "max_tokens",
    ),
    "openai too many tokens": (
        error("max_tokens is too large: 99999. This model supports at most 16384 completion tokens."),
        "max_tokens",
    ),
    "openai schema": (
        error("Invalid schema for response_format 'answer': 'required' is required", param="response_format"),
        "form",
    ),
    "openai mode": (
        error("'messages' must contain the word 'json' in some form, to use 'json_object'.", param="messages"),
        "form",
    ),
    "openai effort": (error("Unrecognized request argument supplied: reasoning_effort"), "effort"),
    "openai cache key": (error("Unknown parameter: 'prompt_cache_key'.", param="prompt_cache_key"), "prompt_cache_key"),
    "openai stream": (
        error("Your organization must be verified to stream this model.", param="stream", code="unsupported_value"),
        "stream",
    ),
    "openai summary": (
        error("Your organization must be verified to generate reasoning summaries.", param="reasoning.summary"),
        "summary",
    ),
    "openai thoughts": (
        error(
            "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be"
            " decrypted or parsed.",
            code="invalid_encrypted_content",
        ),
        "include",
    ),
    "openai include": (error("Encrypted content is not supported with this model.", param="include"), "include"),
    "a text": ({"error": "unknown field 'top_p'"}, "top_p"),
    "openai tool schema": (
        error(
            "Invalid schema for function 'look': In context=(), 'additionalProperties' is required to be false.",
            param="tools[0].function.parameters",
            code="invalid_function_parameters",
        ),
        "tools",
    ),
    "openai roles": (error("Invalid value: 'developer'.", param="messages[0].role"), "messages"),
    "azure function": (error("Unrecognized request argument supplied: parallel_tool_calls"), "parallel_tool_calls"),
    "gemini": ([error(UNKNOWN_NAME.format("seed"), code=400, status="INVALID_ARGUMENT")], "seed"),
    "gemini violations": (
        [{"error": {"code": 400, "message": "Bad.", "details": [{"fieldViolations": [{"field": "tools[0].x"}]}]}}],
        "tools",
    ),
    "gemini tools": (
        error(UNKNOWN_NAME.format("const\" at 'tools[0].function_declarations[5].parameters'") + " ", code=400),
        "tools",
    ),
    "groq": (error("`tool calling` is not supported with this model"), "tools"),
    "groq mode with tools": (error("json mode cannot be combined with tool/function calling"), "form"),
    "mistral": ({"detail": extra("stream_options")}, "stream_options"),
    "mistral within": (
        {"object": "error", "message": {"detail": extra("max_completion_tokens")}, "type": "invalid_request_error"},
        "max_tokens",
    ),
    "mistral as text": (
        {"object": "error", "message": json.dumps({"detail": extra("top_p")}), "code": "1000"},
        "top_p",
    ),
    "deepseek": (error("deepseek-reasoner does not support this tool_choice", param=None), "tool_choice"),
    "deepseek mode": (error("deepseek-reasoner does not support Json Output."), "form"),
    "deepseek schema": (
        error(
            "Failed to deserialize the JSON body into the target type: response_format: response_format.type"
            " `json_schema` is unavailable now at line 1 column 6790"
        ),
        "form",
    ),
    "deepseek images": (
        error("Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`"),
        "images",
    ),
    "together": (error("temperature must be between 0 and 2", param="temperature", code=None), "temperature"),
    "xai": ({"code": "Client specified an invalid argument", "error": "reasoningEffort is not supported"}, "effort"),
    "openrouter": (
        error("Provider returned error", code=400, metadata={"raw": json.dumps(error("`top_p` is deprecated"))}),
        "top_p",
    ),
    "openrouter tools": (error("No endpoints found that support tool use.", code=404), "tools"),
    "openrouter choice": (error("No endpoints found that support the provided 'tool_choice' value."), "tool_choice"),
    "openrouter model": (error("gpt-nine is not a valid model ID", code=400), "model"),
    "vllm": (
        {
            "object": "error",
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "tools",
    ),
    "ollama": (error("registry.ollama.ai/library/gemma:latest does not support tools", type="api_error"), "tools"),
    "lm studio": ({"error": "'response_format.type' must be 'json_schema' or 'text'"}, "form"),
    "llama.cpp": (error("failed to parse grammar", code=400), "form"),
    "anthropic marks": (error("system.0.cache_control: Extra inputs are not permitted"), "cache_marks"),
    "a field of one's own": (error("Unknown parameter: 'service_tier'."), "service_tier"),
}
BODY = {
    **dict.fromkeys(("temperature", "top_p", "seed", "max_tokens", "prompt_cache_key", "service_tier"), 1),
    **{name: {"x": 1} for name in ("response_format", "stream_options", "tool_choice")},
    "model": "m",
    "system": [],
    "stream": True,
    "reasoning_effort": "low",
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "parallel_tool_calls": False,
    "tools": [{"type": "function", "function": {"name": "look", "strict": True}}],
    "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
}
