"""What providers say when a conversation is too long for a model, against everything else that they reject."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koi_lang.errors import ContextOverflowError
from koi_lang.llm.provider_errors import overflow
from koi_lang.llm.providers import PROVIDERS
from koi_lang.runtime.replay.error_records import data_of, from_data
from tests.llm.server import Answer
from tests.llm.test_adapters import BOTH, failure_of


def body(message: str, **about: Any) -> dict[str, Any]:
    """An error as most providers send it."""
    return {"error": {"message": message, **about}}


INVALID = {"type": "invalid_request_error"}
MODEL_READS = "This model's maximum context length is"

# By provider and a word on the case: the adapter, the status, and the document.
TOO_LONG: dict[str, tuple[str, int, Any]] = {
    "openai code": (
        "openai",
        400,
        body(
            f"{MODEL_READS} 128000 tokens. However, your messages resulted in 141022 tokens.",
            code="context_length_exceeded",
        ),
    ),
    "openai code alone": ("openai", 400, body("Too long.", code="context_length_exceeded", **INVALID)),
    "openai window": (
        "openai",
        400,
        body("Your input exceeds the context window of this model. Please adjust your input and try again.", **INVALID),
    ),
    "openai text": ("openai", 400, body("string too long", code="string_above_max_length")),
    "anthropic": (
        "anthropic",
        400,
        {
            "type": "error",
            **body("prompt is too long: 213462 tokens > 200000 maximum", type="invalid_request_error"),
        },
    ),
    "anthropic with answer": (
        "anthropic",
        400,
        body("input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input", **INVALID),
    ),
    "anthropic bytes": ("anthropic", 413, body("Request exceeds the maximum size", type="request_too_large")),
    "bedrock": ("anthropic", 400, {"message": "Input is too long for requested model."}),
    "bedrock handed on": (
        "anthropic",
        400,
        {"message": "The model returned the following errors: prompt is too long: 1000 tokens > 900 maximum"},
    ),
    "gemini": (
        "openai",
        400,
        [
            body(
                "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
                code=400,
                status="INVALID_ARGUMENT",
            )
        ],
    ),
    "groq": (
        "openai",
        400,
        body("Please reduce the length of the messages or completion.", code="context_length_exceeded"),
    ),
    "deepseek": (
        "openai",
        400,
        body(f"{MODEL_READS} 65536 tokens. However, you requested 69648 tokens (69648 in the messages).", **INVALID),
    ),
    "moonshot": (
        "openai",
        400,
        body("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", **INVALID),
    ),
    "xai": (
        "openai",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        },
    ),
    "qwen": (
        "openai",
        400,
        body(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
            code="invalid_parameter_error",
        ),
    ),
    "together": (
        "openai",
        422,
        {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 and 512"},
    ),
    "openrouter": (
        "openai",
        400,
        body("This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741 tokens"),
    ),
    "openrouter handed on": (
        "openai",
        400,
        body(
            "Provider returned error",
            metadata={"raw": '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}'},
        ),
    ),
    "mistral": (
        "openai",
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        },
    ),
    "ollama": ("openai", 400, body("prompt too long; exceeded max context length by 512 tokens", type="api_error")),
    "ollama by llama.cpp": (
        "openai",
        400,
        body(
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            type="exceed_context_size_error",
        ),
    ),
    "local": (
        "openai",
        400,
        body(
            "request (9030 tokens) exceeds the available context size (8192 tokens), try increasing it",
            code=400,
            type="exceed_context_size_error",
            n_prompt_tokens=9030,
            n_ctx=8192,
        ),
    ),
    "a server with other statuses": (
        "openai",
        500,
        body("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
    ),
    "a bare 413": ("openai", 413, {}),
}
OTHERWISE: dict[str, tuple[str, int, Any]] = {
    "openai rate": (
        "openai",
        429,
        body(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
            code="rate_limit_exceeded",
            type="tokens",
        ),
    ),
    "openai answer": (
        "openai",
        400,
        body("max_tokens is too large: 90000. This model supports at most 16384 completion tokens", **INVALID),
    ),
    "openai value": ("openai", 400, body("Unsupported value: 'temperature' does not support 0.2", **INVALID)),
    "openai credit": ("openai", 429, body("You exceeded your current quota", code="insufficient_quota")),
    "anthropic rate": (
        "anthropic",
        429,
        body("This request would exceed your organization's rate limit of 40,000 input tokens per minute"),
    ),
    "anthropic answer": (
        "anthropic",
        400,
        body("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for this model"),
    ),
    "anthropic empty": ("anthropic", 400, body("messages: text content blocks must be non-empty", **INVALID)),
    "bedrock rate": ("anthropic", 429, {"message": "Too many tokens, please wait before trying again."}),
    "bedrock model": ("anthropic", 400, {"message": "The provided model identifier is invalid."}),
    "gemini rate": (
        "openai",
        429,
        [body("You exceeded your current quota. Quota exceeded for input_token_count, limit: 250000", code=429)],
    ),
    "groq rate with 413": (
        "openai",
        413,
        body(
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7411, "
            "please reduce your message size and try again.",
            code="rate_limit_exceeded",
        ),
    ),
    "deepseek balance": ("openai", 402, body("Insufficient Balance")),
    "moonshot concurrency": ("openai", 429, body("max organization concurrency reached, please try again after 1 s")),
    "xai key": ("openai", 400, {"code": "invalid argument", "error": "Incorrect API key provided: …"}),
    "qwen parameter": ("openai", 400, body("Range of max_tokens should be [1, 8192]", code="invalid_parameter_error")),
    "together model": ("openai", 404, body("Unable to access model m")),
    "openrouter credit": ("openai", 402, body("This request requires more credits, or fewer max_tokens.")),
    "mistral option": ("openai", 422, {"detail": [{"msg": "Extra inputs are not permitted"}]}),
    "ollama model": ("openai", 404, body('model "m" not found, try pulling it first')),
    "local path": ("openai", 404, body("File Not Found", type="not_found_error", code=404)),
    "a page": ("openai", 400, "<html>maximum context length</html>"),
}


def failure(case: tuple[str, int, Any]) -> Any:
    """What an adapter makes of a rejection."""
    kind, status, document = case
    page = document if isinstance(document, str) else ""
    return failure_of(kind, Answer(status=status, error={} if page else document, page=page))


@pytest.mark.parametrize("case", list(TOO_LONG))
def test_a_conversation_that_is_too_long_is_recognised(case: str) -> None:
    """Whatever the provider calls it, the sentence begins alike, and the request is not repeated as it is."""
    error = failure(TOO_LONG[case])

    assert ContextOverflowError is type(error)
    assert error.message.partition(":")[0] == "the conversation is too long for `some-model`"
    assert not error.repeatable
    assert TOO_LONG[case][1] == error.status


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("local", "it has 9,030 tokens, and the model reads 8,192"),
        ("ollama by llama.cpp", "it has 9,000 tokens, and the model reads 8,192"),
        ("openai code", "it has 141,022 tokens, and the model reads 128,000"),
        ("openrouter", "it has 1,293,741 tokens, and the model reads 1,048,576"),
        ("anthropic", ""),
    ],
)
def test_both_numbers_are_told(case: str, told: str) -> None:
    """How much was sent, and how much the model reads, as far as the provider says it."""
    assert failure(TOO_LONG[case]).message.partition(": ")[2] == told


@pytest.mark.parametrize(("own", "window"), [(True, "`-c 10240`"), (False, "")])
def test_a_window_that_would_do(own: bool, window: str) -> None:
    """Who starts the server is told with which window; others can only send less."""
    help = overflow("m", 400, (9030, 8192), is_own_server=own).help or ""

    assert window in help
    assert ("-c" in help) is own


@pytest.mark.parametrize("case", list(OTHERWISE))
def test_other_rejections_are_not_taken_for_it(case: str) -> None:
    """Neither limits of rates, which count tokens, too, nor anything else that is wrong with a request."""
    error = failure(OTHERWISE[case])

    assert not isinstance(error, ContextOverflowError)
    assert "too long" not in error.message


@pytest.mark.parametrize("provider", [provider.name for provider in PROVIDERS])
def test_every_provider_is_looked_at(provider: str) -> None:
    """The tables above have a case of both kinds for each row of the catalogue."""
    assert any(case.split()[0] == provider for case in TOO_LONG)
    assert any(case.split()[0] == provider for case in OTHERWISE)


def test_a_limit_of_rates_with_the_status_413_says_so() -> None:
    """Too much at once for a limit of rates is told as what it is."""
    error = failure(OTHERWISE["groq rate with 413"])

    assert error.message.startswith("`openai` asks to slow down: Request too large for model")


PROMPT = {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}


@pytest.mark.parametrize(("kind", "head"), [("openai", ""), ("responses", ""), ("anthropic", "event: error\n")])
def test_an_error_inside_a_stream_is_recognised(kind: str, head: str) -> None:
    """Some servers begin an answer before they count."""
    raw = f"{head}data: {json.dumps({'type': 'error', 'error': PROMPT})}\n\n"

    assert ContextOverflowError is type(failure_of(kind, Answer(pieces=(), raw=raw)))


@BOTH
def test_a_full_window_instead_of_an_answer_is_recognised(kind: str) -> None:
    """Newer models answer nothing and say that their window is full."""
    answer = Answer(pieces=(), stop_reason="model_context_window_exceeded")

    assert ContextOverflowError is type(failure_of(kind, answer))


def test_other_words_leave_it_what_it_is() -> None:
    """Layers around a model, and the journal, keep the kind of the failure."""
    error = failure(TOO_LONG["anthropic"])
    recalled = from_data(data_of(error))

    assert ContextOverflowError is type(error.with_message("other words"))
    assert (ContextOverflowError, 400, False) == (type(recalled), recalled.status, recalled.repeatable)  # type: ignore[attr-defined]
