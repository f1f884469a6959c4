"""Errors of the provider SDKs as one sentence for a person, and as facts for a retry."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from koi_lang.errors import AnswerRefusedError, AnswerTooLongError, ContextOverflowError, RequestError, root_reason
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.context_overflow import error_text, is_overflow, overflow_size
from koi_lang.llm.error_documents import MAX_CHARS_READ, ErrorDocument, read_error
from koi_lang.llm.request_parts import part_of
from koi_lang.system.text_width import clean

MAX_DETAIL_CHARS = 200
STATUS_OF_TYPE = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "throttlingException": 429,
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "serviceUnavailableException": 503,
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "invalid_prompt": 400,
}
# How codes begin for images that cannot be read.
BAD_IMAGE = ("image_", "invalid_image", "invalid_base64_image", "unsupported_image", "empty_image")
OUT_OF_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
NO_CREDIT = "credit balance is too low"  # Anthropic, with the status 400

# OpenRouter has the model, but nobody behind it who takes what a request has, such as tools or images.
NO_ENDPOINT = "No endpoints found that"
# Google and xAI answer 400 to a key that they do not accept.
WRONG_KEY = re.compile(r"(invalid|incorrect) api.?key|api.?key (is )?(not valid|invalid)", re.IGNORECASE)
# What OpenAI says of a model that it has nowhere else.
OTHER_INTERFACE = "only supported in v1/responses"
ELSEWHERE = (
    "`{provider}` has `{model}` behind its Responses interface alone",
    'Write `interface: "responses"` in the `llm` block of the agent.',
)
# What servers say of a path that they do not have, where they say more than a page does.
NO_PATH = re.compile(
    r"(404:? ?)?((page|file|resource|route|path) )?not found\.?|(invalid url|cannot post)\b.*",
    re.IGNORECASE | re.DOTALL,
)
PATHS = ("/chat/completions", "/responses", "/v1/messages")
NO_PATH_SENTENCE = "`{provider}` has no path at {where} that ends in `{path}`"
NO_PATH_HELP = "Check the address: `base_url` is what stands before `{path}`."
NO_RESPONSES = ' Where there is no Responses interface, write `interface: "chat"` in the `llm` block.'
TOO_LONG = "Split the work, or choose a model that reads more."

# Room for an answer in the window that is recommended, which is a multiple of the other number.
ANSWER_TOKENS, WINDOW_STEP = 512, 1024

# What a status means: the sentence, and what to do about it.
MEANINGS: Mapping[int, tuple[str, str]] = {
    400: (
        "`{provider}` rejects the request: {detail}",
        "Check the model of the agent, and the options in its `llm` block, such as `effort` and `max_tokens`.",
    ),
    401: (
        "`{provider}` does not accept the key in `{key}`",
        "`koi connect {provider}` keeps another one; the key was sent to {where}.",
    ),
    402: (
        "the credit at `{provider}` is used up",
        "Add credit to the account, or choose another model with `koi run -m provider/model`.",
    ),
    403: ("the key in `{key}` may not use `{model}` at `{provider}`", "Check what the key is allowed to do."),
    404: (
        "`{provider}` does not know the model `{model}`",
        "`koi models {name}` lists what it has; the address is {where}.",
    ),
    429: ("`{provider}` asks to slow down: {detail}", "Wait a little, or send fewer requests at once."),
    500: ("`{provider}` has a problem of its own (status {status}): {detail}", "Try again later."),
    529: ("`{provider}` is overloaded", "Try again later."),
}

# What a server of a person's own says that was asked without a key, or with a wrong one.
WANTS_KEY = (
    "`{provider}` wants a key",
    "`koi connect {provider}` asks for one and keeps it; `LOCAL_API_KEY` is for the server at `LOCAL_BASE_URL` alone.",
)
# A fault of the model, which need not make it again.
UNREADABLE = ("`{provider}` cannot read what the model wrote: {detail}", "Try again, or choose another model.")


def explain(
    error: Exception, connection: ProviderConnection, model: str, *, begun: bool, body: Mapping[str, Any] | None = None
) -> RequestError:
    """The error of an SDK or its transport without the key.

    The SDKs of OpenAI and Anthropic name their attributes alike, so nothing here imports either.

    Args:
        model: the one that was asked.
        begun: whether a part of the answer had arrived.
        body: what was asked; None where it has no parts that a provider may refuse.
    """
    document = document_of(error)
    status = status_of(error, document)
    if is_overflow(status, document.code, error_text(getattr(error, "body", None))):
        size = overflow_size(getattr(error, "body", None))
        return overflow(model, status, size, is_own_server=connection.is_own_server)
    if status is None:
        return _without_status(error, connection, document, begun=begun)
    out_of_credit = document.code in OUT_OF_CREDIT
    sentence, help, status = _tell_status(status, document, body or {})
    path = _missing_path(error, status, document)
    if path:
        sentence, help = NO_PATH_SENTENCE, NO_PATH_HELP + (NO_RESPONSES if path == "/responses" else "")
    words = {
        "path": path,
        "provider": connection.title,
        "key": " or ".join(connection.provider.keys) or "no key",
        "name": connection.provider.name,
        "model": model,
        "where": _address(error, connection),
        "detail": _line(document.message or "no reason given", connection),
        "status": status,
    }
    if status == 401 and connection.is_own_server:
        sentence, help = WANTS_KEY
    failure = RequestError(sentence.format(**words), help=help.format(**words), status=status)
    failure.retry_after_s = retry_after_s(getattr(getattr(error, "response", None), "headers", {}))
    failure.repeatable = failure.repeatable and not out_of_credit
    return failure


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How many seconds to wait; None when the headers do not say.

    Providers tell milliseconds, seconds, or a date, which is measured against the date of the answer itself.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after", "")
    seconds = _seconds(asked)
    return _seconds_between(headers.get("date", ""), asked) if seconds is None else seconds


def document_of(error: Exception) -> ErrorDocument:
    """The error document in an exception of an SDK; empty for none."""
    return read_error(getattr(error, "body", None))


def status_of(error: Exception, document: ErrorDocument) -> int | None:
    """The HTTP status, or the equivalent in an error inside a stream of status 200."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return status
    if document.code.startswith(BAD_IMAGE):
        return 400
    return document.status or STATUS_OF_TYPE.get(document.code)


def is_silence(error: Exception) -> bool:
    """Whether a request was sent as a whole, and nothing came until the time limit."""
    return any(type(each).__name__ == "ReadTimeout" for each in (error, error.__cause__))


def overflow(
    model: str, status: int | None = None, size: tuple[int, int] | None = None, *, is_own_server: bool = False
) -> ContextOverflowError:
    """The error for a conversation that is too long for a model.

    Args:
        size: how many tokens were sent, and how many the model reads, where that is known.
        is_own_server: whether the person can start it with a larger window.
    """
    message, help = f"the conversation is too long for `{model}`", TOO_LONG
    if size is not None:
        sent, read = size
        message += f": it has {sent:,} tokens, and the model reads {read:,}"
        if is_own_server and sent >= read:
            window = math.ceil((sent + ANSWER_TOKENS) / WINDOW_STEP) * WINDOW_STEP
            help = f"Start the server with a larger window (llama.cpp: `-c {window}`), or split the work."
    return ContextOverflowError(message, help=help, status=status)


def broken_off(provider: str, *, begun: bool) -> RequestError:
    """The error for a stream that ended without its closing part."""
    if begun:
        return RequestError(f"`{provider}` broke off its answer before it was complete", help="Try again.")
    return RequestError(f"`{provider}` sent no answer", help="Check that `base_url` is the address of its API.")


def page_error(provider: str) -> RequestError:
    """The error for a page in place of an answer; the same address gives it again."""
    failure = RequestError(
        f"`{provider}` sent a page for people instead of an answer",
        help="Check that `base_url` is the address of its API, and that no proxy answers in its place.",
    )
    failure.repeatable = False
    return failure


def refusal_error(provider: str, reason: str, connection: ProviderConnection) -> RequestError:
    """The error for an answer that is a refusal; the same request would be refused again."""
    detail = f": {_line(reason, connection)}" if reason.strip() else ""
    message = f"the model at `{provider}` declined to answer{detail}"
    return AnswerRefusedError(message, help="Word the request differently.")


def without_text(provider: str, *, called_tool: bool) -> RequestError:
    """The error for an answer that ended before it said anything."""
    if called_tool:
        return RequestError(f"`{provider}` answered with a tool call instead of text", help="Choose another model.")
    return AnswerTooLongError(
        f"the answer of `{provider}` reached its limit of tokens before it said anything",
        help="Raise `max_tokens` of the agent.",
    )


def cause_of(error: Exception, connection: ProviderConnection) -> Exception | None:
    """The exception for the traceback, unless its text contains the key or another secret."""
    text = f"{error} {getattr(error, 'body', '')}"
    return error if connection.hide_in(text) == text else None


def _tell_status(status: int, document: ErrorDocument, body: Mapping[str, Any]) -> tuple[str, str, int]:
    """Message, advice, and the usual status: some providers reject keys and models with 400."""
    if document.is_of_answer:
        return *UNREADABLE, 500
    if OTHER_INTERFACE in document.message:
        return *ELSEWHERE, 404
    meaning = _meaning(status, document)
    part = part_of(document, body) if body and meaning == 400 else None
    if part is None:
        return *MEANINGS[meaning], 401 if meaning == 401 else status
    return f"`{{provider}}` rejects {part.called}: {{detail}}", part.help, 404 if part.name == "model" else status


def _missing_path(error: Exception, status: int, document: ErrorDocument) -> str:
    """How the address ended that a server does not have; empty where it has, or knows it by another name."""
    message = document.message.strip()[:MAX_CHARS_READ]
    if status != 404 or (message and not NO_PATH.fullmatch(message)):
        return ""
    asked = urlsplit(str(getattr(getattr(error, "request", None), "url", ""))).path
    return next((path for path in PATHS if asked.endswith(path)), "")


def _without_status(
    error: Exception, connection: ProviderConnection, document: ErrorDocument, *, begun: bool
) -> RequestError:
    name = connection.title
    kind = type(error).__name__
    if "Timeout" in kind:
        return RequestError(f"`{name}` sent nothing for {connection.silence_s:g} s", help="Try again later.")
    if isinstance(error, (ValueError, RecursionError)):
        return RequestError(f"`{name}` sent an answer that is not well formed", help="Try again.")
    if document.message:
        detail = _line(document.message, connection)
        return RequestError(f"`{name}` broke off its answer: {detail}", help="Try again.")
    if not begun:
        why = _line(root_reason(error), connection)
        if connection.is_own_server:
            help = (
                "Start the server, or name another one with `koi connect ADDRESS`; `koi doctor` looks which run here."
            )
            return RequestError(f"cannot reach {_address(error, connection)}: {why}", help=help)
        return RequestError(
            f"cannot reach `{name}` at {_address(error, connection)}: {why}",
            help="Check the network and the address; `koi doctor` tries all providers.",
        )
    return broken_off(name, begun=begun)


def _meaning(status: int, document: ErrorDocument) -> int:
    if document.code in OUT_OF_CREDIT or (status == 400 and NO_CREDIT in document.message):
        return 402
    if status == 404 and NO_ENDPOINT in document.message:
        return 400
    if status == 400 and WRONG_KEY.search(document.message[:MAX_CHARS_READ]):
        return 401
    if status == 413:  # too much at once for a limit of rates
        return 429
    if status in MEANINGS:
        return status
    return 500 if status >= 500 else 400


def _line(text: str, connection: ProviderConnection) -> str:
    """A text as one short line that steers no terminal, without the key."""
    beginning = connection.hide_in(text)[:MAX_CHARS_READ]
    line = connection.hide_in(" ".join(clean(beginning).split()))
    return line if len(line) <= MAX_DETAIL_CHARS else f"{line[:MAX_DETAIL_CHARS]}…"


def _address(error: Exception, connection: ProviderConnection) -> str:
    """Where the request went, without credentials and path."""
    request = getattr(error, "request", None)
    try:
        parts = urlsplit(str(request.url) if request else connection.base_url or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # somebody has mistyped it
        return "its address"
    return f"`{parts.scheme}://{parts.hostname}{port}`" if parts.hostname else "its address"


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_between(start: str, end: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(end) - parsedate_to_datetime(start)).total_seconds())
    except (TypeError, ValueError):  # no dates, or only one with a time zone
        return None
