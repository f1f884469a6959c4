"""What a request can do without when its provider refuses a part of it: refusals to changes of bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from koi_lang.llm.error_documents import ErrorDocument
from koi_lang.llm.request_parts import part_of

Body: TypeAlias = Mapping[str, Any]
# Statuses of requests that are wrong themselves; routers answer 404 where nobody behind them takes a part.
REFUSING = frozenset({400, 404, 422})
# Local servers answer so where they cannot make a grammar of the form of an answer.
UNABLE = frozenset({500, 501})
SCHEMAS = re.compile(r"schema|grammar|strict|keyword", re.IGNORECASE)
UNKNOWN = re.compile(
    r"un(supported|known|recogni[sz]ed|expected)|not (supported|permitted|allowed|recogni[sz]ed)|extra|instead"
    r"|cannot find|no such",
    re.IGNORECASE,
)
TOOLS = "tools"
OFFERING = ("tools", "tool_choice", "parallel_tool_calls")
OF_TOOLS = re.compile(r"schema|strict|eager|parameters|extra", re.IGNORECASE)
EFFORTS = ("reasoning_effort", "reasoning", "thinking", "enable_thinking")
LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# What only some models take of the description of a tool.
EAGER = "eager_input_streaming"
TOOL_EXTRAS = ("strict", EAGER)


@dataclass(frozen=True, slots=True)
class Downgrade:
    """A weaker form of a request.

    Attributes:
        name: by which it is remembered.
        part: of the request that is refused, a name of `request_parts.PARTS`.
        told: what is told of it, once for each model, after the name of the model.
        change: a body to the weaker one; the same body where there is nothing to change.
        sayings: what a refusal must say beside naming the part.
    """

    name: str
    part: str
    told: str
    change: Callable[[Body], Body]
    sayings: re.Pattern[str] | None = None


def without(*paths: str) -> Callable[[Body], Body]:
    """A change that leaves fields out; an object that holds nothing else goes, too."""

    def change(body: Body) -> Body:
        for path in paths:
            body = _drop(body, path)
        return body

    return change


def _drop(body: Body, path: str) -> Body:
    name, _, rest = path.partition(".")
    kept = {key: value for key, value in body.items() if key != name}
    if not rest or not isinstance(body.get(name), Mapping):
        return body if rest else kept
    inner = _drop(body[name], rest)
    return {key: inner if key == name else value for key, value in body.items()} if inner else kept


def _with_json_mode(body: Body) -> Body:
    mode, text = {"type": "json_object"}, body.get("text", {})
    if body.get("response_format", {}).get("type") == "json_schema":
        return {**body, "response_format": mode}
    return {**body, "text": {**text, "format": mode}} if text.get("format", {}).get("type") == "json_schema" else body


def _in_one_piece(body: Body) -> Body:
    return {**_drop(body, "stream_options"), "stream": False}


def _with_other_limit(body: Body) -> Body:
    return {LIMITS.get(name, name): value for name, value in body.items()}


def _without_marks(body: Body) -> Body:
    marked = {name: body[name] for name in ("system", "messages", "tools") if name in body}
    return {**body, **_drop_everywhere(marked, "cache_control")}


def _drop_everywhere(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _drop_everywhere(each, name) for key, each in value.items() if key != name}
    return [_drop_everywhere(each, name) for each in value] if isinstance(value, list) else value


def _with_plain_tools(body: Body) -> Body:
    tools = body.get("tools")
    return {**body, "tools": [_plain_tool(tool) for tool in tools]} if isinstance(tools, list) else body


def _without_eager(body: Body) -> Body:
    tools = body.get("tools")
    return {**body, "tools": [_drop(tool, EAGER) for tool in tools]} if isinstance(tools, list) else body


def _plain_tool(tool: Body) -> Body:
    plain = {name: value for name, value in tool.items() if name not in TOOL_EXTRAS}
    if plain.get("type") == "function" and "function" not in plain:
        plain["strict"] = False  # the Responses interface takes it for true where it is not said
    function = plain.get("function")
    return {**plain, "function": _plain_tool(function)} if isinstance(function, Mapping) else plain


def _without_thoughts(body: Body) -> Body:
    """A body that neither asks for encrypted thoughts nor holds any."""
    items = body.get("input")
    told = [item for item in items if item.get("type") != "reasoning"] if isinstance(items, list) else items
    return {**_drop(body, "include"), **({"input": told} if "input" in body else {})}


def _option(name: str, *fields: str) -> Downgrade:
    return Downgrade(name, name, f"takes no `{name}`, so it is left out", without(*(fields or (name,))))


DOWNGRADES = (
    Downgrade(
        "schema", "form", "takes no schema of the answer, so it is only asked for JSON", _with_json_mode, SCHEMAS
    ),
    Downgrade(
        "form",
        "form",
        "cannot be held to a form of the answer, so it is only told of it",
        without("response_format", "output_config.format", "output_format", "text.format"),
    ),
    _option("stream_options"),
    Downgrade("stream", "stream", "cannot stream, so its answers come in one piece", _in_one_piece),
    _option("temperature"),
    _option("top_p"),
    _option("seed", "seed", "random_seed"),
    Downgrade("limit", "max_tokens", "is told its `max_tokens` by another name", _with_other_limit, UNKNOWN),
    Downgrade(
        "summary",
        "summary",
        "gives no summary of its thoughts, so it is asked for none",
        without("reasoning.summary"),
    ),
    Downgrade("include", "include", "takes no encrypted thoughts, so they are left out", _without_thoughts),
    _option("effort", *EFFORTS, "output_config.effort"),
    _option("prompt_cache_key"),
    Downgrade("cache_marks", "cache_marks", "takes no `cache_control`, so it is left out", _without_marks),
    _option("tool_choice"),
    _option("parallel_tool_calls"),
    Downgrade("eager", "tools", f"takes no `{EAGER}`, so it is left out", _without_eager, re.compile(EAGER)),
    Downgrade("strict", "tools", "does not keep to schemas of tools", _with_plain_tools, OF_TOOLS),
    # Whoever makes the body says the same in text then.
    Downgrade(TOOLS, "tools", "takes no tools, so it writes its actions as text", without(*OFFERING)),
)


def next_downgrade(error: ErrorDocument, status: int | None, body: Body, done: Collection[str]) -> Downgrade | None:
    """What to try when a request is refused; None where it is not known to help.

    Args:
        status: of the refusal; None where it arrives inside of a stream and names none.
        body: as it was sent.
        done: names of what has been tried already.
    """
    part = part_of(error, body)
    if part is None or error.is_of_answer or not _is_refusal(status, part.name):
        return None
    fitting = (each for each in DOWNGRADES if each.part == part.name and each.name not in done)
    said = (each for each in fitting if each.sayings is None or each.sayings.search(error.text))
    return next((each for each in said if each.change(body) != body), None)


def reduce_body(body: Body, names: Collection[str]) -> Body:
    """A body after some downgrades, named in any order."""
    for each in DOWNGRADES:
        if each.name in names:
            body = each.change(body)
    return body


def changed_parts(names: Collection[str]) -> set[str]:
    """The parts of requests that some downgrades change."""
    return {each.part for each in DOWNGRADES if each.name in names}


def _is_refusal(status: int | None, part: str) -> bool:
    return status is None or status in REFUSING or (part == "form" and status in UNABLE)
