"""Parts of requests that providers refuse: their names in errors, and the messages to the user, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koi_lang.llm.error_documents import ErrorDocument
from koi_lang.llm.stream_fields import field

LEAVE_OUT = "Leave `{name}` out of the `llm` block of the agent, or choose another model."
OTHER_MODEL = "Choose another model with `-m provider/model`."


@dataclass(frozen=True, slots=True)
class RequestPart:
    """A part of the body of a request.

    Attributes:
        name: what it is called here.
        called: what it is called in a sentence, after "rejects".
        help: one thing to do about it.
        fields: where it stands in a body, as paths; those that stand in every body are left out.
        sayings: what is said of nothing else, whatever else is named.
        words: what may be said of something else, too, where nothing is named.
    """

    name: str
    called: str
    help: str
    fields: tuple[str, ...]
    sayings: str = ""
    words: str = ""


def _option(name: str, *fields: str, words: str = "") -> RequestPart:
    """A part that is an option of the same name."""
    return RequestPart(name, f"`{name}`", LEAVE_OUT.format(name=name), fields or (name,), words=words)


def _part_of_koi(name: str, sayings: str = "") -> RequestPart:
    """A part that nobody has asked for but Koi."""
    return RequestPart(name, f"`{name}`", OTHER_MODEL, (name,), sayings, words=rf"\b{name}\b")


# Those that stand within other parts, so that no name of a field means them alone.
WITHIN_OTHERS = frozenset({"images", "cache_marks"})
# In the order in which they are looked for: what may be said of several stands behind what is said of one.
PARTS = (
    RequestPart(
        "tools",
        "the tools that it is offered",
        OTHER_MODEL,
        ("tools", "functions"),
        # OpenRouter, Ollama, vLLM, Groq
        sayings=r"support(s)? (tool|function)|enable-auto-tool-choice|tool.?call-parser"
        r"|(tools?|functions?)( use| call(ing|s))?[`'\"]? (is|are) not (supported|enabled)",
        words=r"\b(tools?|functions?)\b",
    ),
    _part_of_koi("tool_choice", sayings=r"tool.?choice"),
    _part_of_koi("parallel_tool_calls"),
    _part_of_koi("prompt_cache_key"),
    RequestPart("cache_marks", "`cache_control`", OTHER_MODEL, ("system",), sayings=r"cache.?control"),
    _part_of_koi("stream_options"),
    RequestPart(
        "form",
        "the form of the answer",
        OTHER_MODEL,
        ("response_format", "output_config.format", "output_format", "text.format"),
        sayings=r"contain the word .?json|json.?(object|mode|validate|schema|output)|response.?format"
        r"|structured.?output|failed to (generate|validate) json|grammar|guided|output.?(config\.)?format",
        words=r"schema|output.?config",
    ),
    RequestPart(
        "summary",
        "a summary of thoughts",
        OTHER_MODEL,
        ("reasoning.summary",),
        sayings=r"reasoning.?(\.summary|summar)",
    ),
    RequestPart("include", "`include`", OTHER_MODEL, ("include",), sayings=r"encrypted.?content"),
    RequestPart(
        "effort",
        "`effort`",
        LEAVE_OUT.format(name="effort"),
        ("reasoning_effort", "output_config.effort", "reasoning", "thinking", "enable_thinking"),
        sayings=r"reasoning.?effort",
        words=r"\b(reasoning|thinking|effort)\b|output.?config",
    ),
    _option("top_p", words=r"\btop.?p\b"),
    _option("temperature", words=r"\btemperature\b"),
    _option("seed", "seed", "random_seed", words=r"\bseed\b"),
    RequestPart(
        "max_tokens",
        "`max_tokens`",
        "Set another `max_tokens` in the `llm` block of the agent.",
        ("max_tokens", "max_completion_tokens", "max_output_tokens"),
        words=r"max.?(completion.?|output.?|new.?)?tokens",
    ),
    RequestPart(
        "images",
        "an image",
        "Send fewer or smaller images, or choose a model that sees with `-m provider/model`.",
        ("messages", "input"),
        sayings=r"image|vision|multi.?modal",
    ),
    _part_of_koi("stream", sayings=r"stream this model|stream(ing)?[`'\"]? is not supported"),
    RequestPart(
        "model",
        "the model `{model}`",
        "`koi models {provider}` lists what it has.",
        ("model",),
        words=r"\bmodel\b.{0,80}(not found|not exist|decommission|deprecat|retired|not available)"
        r"|(invalid|unknown|no such|unexpected|not a valid) model|model.?(id|name)",
    ),
    RequestPart("input", "what it is given to read", OTHER_MODEL, ("input", "instructions", "encoding_format")),
    RequestPart(
        "messages",
        "the messages of the conversation",
        "Choose another model with `-m provider/model`, or begin a new conversation.",
        ("messages", "system"),
        words=r"\b(messages?|roles?|content|prompt)\b",
    ),
)


def part_of(error: ErrorDocument, body: Mapping[str, Any]) -> RequestPart | None:
    """The part of a request that an error is about; None where it does not say.

    Args:
        body: of the request; a part that is not in it is not meant.
    """
    present = [part for part in PARTS if any(_holds(body, path) for path in part.fields)]
    if not has_images(body):
        present = [part for part in present if part.name != "images"]
    return (
        _by_pattern(present, "sayings", error.text)
        or _by_name(present, body, error)
        or _by_pattern(present, "words", error.text)
    )


def has_images(body: Mapping[str, Any]) -> bool:
    """Whether a message of a body shows something."""
    contents = [field(message, "content") for message in body.get("messages", body.get("input", ()))]
    kinds = [field(block, "type") for content in contents if isinstance(content, list) for block in content]
    return any(kind in ("image", "image_url", "input_image") for kind in kinds)


def _by_pattern(parts: list[RequestPart], kind: str, text: str) -> RequestPart | None:
    patterns = [(part, getattr(part, kind)) for part in parts]
    return next((part for part, words in patterns if words and re.search(words, text, re.IGNORECASE)), None)


def _by_name(parts: list[RequestPart], body: Mapping[str, Any], error: ErrorDocument) -> RequestPart | None:
    """The part whose field an error names, or one for a field of the user's own."""
    own = [part for part in parts if part.name not in WITHIN_OTHERS]
    for path in error.fields:
        for part in own:
            if any(path == name or path.startswith(f"{name}.") for name in part.fields):
                return part
        name = path.partition(".")[0]
        if name in body and not any(name == each.partition(".")[0] for part in PARTS for each in part.fields):
            return extra_part(name)
    return None


def extra_part(name: str) -> RequestPart:
    """A field of `extra_body`."""
    called = name.replace("{", "{{").replace("}", "}}")
    help = f"Leave `{called}` out of `extra_body`, or choose another model."
    return RequestPart(name, f"`{called}` of `extra_body`", help, (name,))


def _holds(body: Any, path: str) -> bool:
    name, _, rest = path.partition(".")
    if not isinstance(body, Mapping) or name not in body:
        return False
    return _holds(body[name], rest) if rest else True
