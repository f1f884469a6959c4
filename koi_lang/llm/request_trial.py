"""The requests for one answer, each weaker than the one before, until the provider accepts one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from koi_lang.errors import RequestError
from koi_lang.llm.error_documents import ErrorDocument
from koi_lang.llm.messages import Request
from koi_lang.llm.provider_errors import document_of, status_of
from koi_lang.llm.request_parts import PARTS, part_of
from koi_lang.llm.token_weight import weight
from koi_lang.llm.usage import tokens_of

# Of the tokens that tools are estimated to take, that a server must have counted if it has passed them on.
MIN_SHARE = 0.3
# Names of downgrades that models need, by the address of the provider and the name of the model.
Refused: TypeAlias = MutableMapping[tuple[str, str], set[str]]


@dataclass(slots=True)
class RequestTrial:
    """One answer that is asked for.

    Attributes:
        request: what is asked.
        make_body: a request to its body, with all that is wanted.
        known: names of what the model is known to refuse; it grows.
        weaker: names of what was tried for this answer alone.
        body: of the request that was made last.
        sent: names of all that it did without; what is known may have grown since.
        requests: how many were sent.
        is_over: whether one of them was accepted.
    """

    request: Request
    make_body: Callable[[Request], Mapping[str, Any]]
    known: set[str]
    weaker: list[str] = field(default_factory=list)
    body: Mapping[str, Any] = field(default_factory=dict)
    sent: tuple[str, ...] = ()
    requests: int = 0
    is_over: bool = False

    @property
    def attempts(self) -> int:
        """How many requests there were, those of earlier attempts at the answer included."""
        return self.request.attempts + self.requests

    @property
    def has_tools(self) -> bool:
        """Whether the last request may offer tools."""
        return self.request.offer is not None and TOOLS not in self.sent

    def begin(self) -> None:
        """Make the body that is sent next."""
        self.requests += 1
        self.sent = (*self.known, *self.weaker)
        request = replace(self.request, offer=None) if TOOLS in self.sent else self.request
        self.body = reduce_body(self.make_body(request), self.sent)

    def leave_out(self, error: Exception) -> bool:
        """Leave out the part that an error of an SDK refuses; whether there is one."""
        document = document_of(error)
        if self.attempts >= self.request.most_requests:
            return False
        found = next_downgrade(document, status_of(error, document), self.body, self.sent)
        if found is not None:
            self.weaker.append(found.name)
        return found is not None

    def settle(self, note: Callable[[str], None]) -> None:
        """Store and report the parts that the answer was had without."""
        if not self.weaker:
            return
        for each in DOWNGRADES:
            if each.name in self.weaker and each.name not in self.known:
                self.known.add(each.name)
                note(f"`{self.request.model}` {each.told}")
        self.weaker.clear()

    def give_up_tools(self, counted_tokens: int, note: Callable[[str], None]) -> bool:
        """Do without tools from now on if the tokens of a request show that its server has left them out.

        Templates that know no tools do that in silence, and the model is told of no action. Only where the tools are
        longer than the rest can an estimate tell one from the other.

        Returns:
            Whether they do.
        """
        if not self.has_tools or self.request.offer is None:
            return False
        said = tokens_of(self.request.messages, self.request.offer.system)
        offered = weight(json.dumps(self.body.get("tools", [])))
        are_left_out = offered > said and counted_tokens < said + offered * MIN_SHARE
        if are_left_out:
            self.weaker.append(TOOLS)
            self.settle(note)
        return are_left_out

    def conclude(self, failure: RequestError) -> RequestError:
        """The failure that ends the trial, with the attempts."""
        if not self.weaker or failure.repeatable:
            return failure
        names = ", ".join(part.called for part in PARTS if part.name in changed_parts(self.weaker))
        return failure.with_message(f"{failure.message} (also after a change of {names})")


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
    remaining = [item for item in items if item.get("type") != "reasoning"] if isinstance(items, list) else items
    return {**_drop(body, "include"), **({"input": remaining} if "input" in body else {})}


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
    """The next attempt after a refused request; None where nothing is known to help.

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
