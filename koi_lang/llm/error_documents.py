"""Bodies of errors, in all the shapes in which providers write them, to one record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.llm.stream_fields import word

# Of each text in a body; some providers repeat the whole request in it.
MAX_CHARS_READ = 4000
MAX_CODE_CHARS = 100
# Groq's words for calls of tools, and for texts in a model's own form, that it cannot read.
OF_ANSWERS = frozenset({"tool_use_failed", "output_parse_failed"})
# How deep texts, and names of fields, are looked for; nobody nests them deeper than routers do.
MAX_DEPTH = 6
# Where a body says in words what is wrong, the clearest place first.
SAYINGS = ("message", "msg", "detail", "error", "errors", "description", "raw", "metadata")
# Where it lists what it has found in the request.
LISTS = ("detail", "message", "error", "errors", "details", "fieldViolations")
ERROR_STATUSES = range(400, 600)
# Steps at the beginning of a path that belong to the server and not to the body.
NO_FIELDS = frozenset({"body", "__root__", "root"})
# A name that stands in quotes or before a colon, with what follows it as a path.
NAMED = re.compile(
    r"(?:^|(?<=[\s`'\"(,]))[A-Za-z_]\w*(?:\[\d+\]|\.\w+|\[['\"]?\w+['\"]?\])*(?=[`'\":])"
    r"|\b\w+\[\d+\][\w.\[\]]*"
)


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """The error of a provider for a request.

    Attributes:
        message: in its own words, of whatever length; empty without any.
        code: its word for the kind of error; empty without one.
        status: the status that the body itself names; None where it names none.
        fields: paths in the body of the request that it says the error is about, such as `tools.0.name`.
        generation: what the model had written before the provider refused to hand it out; empty without it.
    """

    message: str = ""
    code: str = ""
    status: int | None = None
    fields: tuple[str, ...] = ()
    generation: str = ""

    @property
    def is_of_answer(self) -> bool:
        """Whether the request was accepted and the model's text was rejected: another answer may work."""
        return self.code in OF_ANSWERS

    @property
    def text(self) -> str:
        """All that is said of the error, to look for words in."""
        return " ".join([*self.fields, self.code, self.message[:MAX_CHARS_READ]])


def read_error(body: Any) -> ErrorDocument:
    """The body of an error, as text or as JSON data, as a record. A page for people says nothing."""
    if isinstance(body, str):
        text = "" if body.lstrip().startswith("<") else body
        return ErrorDocument(text, fields=tuple(_names_in(text)))
    inner = _inner(body)
    message = "; ".join(dict.fromkeys(filter(None, (text.strip() for text in _sayings(body)))))
    number = inner.get("code")
    status = number if isinstance(number, int) and number in ERROR_STATUSES else None
    code = (word(inner, "code") or word(inner, "type") or str(number or ""))[:MAX_CODE_CHARS]
    fields = tuple(dict.fromkeys((*_paths(body), *_names_in(message))))
    return ErrorDocument(message, code, status, fields, word(inner, "failed_generation"))


def _names_in(text: str) -> Iterator[str]:
    """Names in a text that may be those of fields, as paths with dots."""
    for found in NAMED.finditer(text[:MAX_CHARS_READ]):
        yield _as_path(found[0])


def _inner(body: Any) -> Mapping[str, Any]:
    """The part that describes the error: Google wraps it in a list, Anthropic once more than OpenAI."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error", body)
    return inner if isinstance(inner, Mapping) else body


def _sayings(body: Any, depth: int = 0) -> Iterator[str]:
    """The texts of a body, the clearest first."""
    if depth > MAX_DEPTH:
        return
    if isinstance(body, str):
        document = _as_document(body)
        yield from [body] if document is None else _sayings(document, depth + 1)
    elif isinstance(body, list):
        for each in body[:MAX_DEPTH]:
            yield from _sayings(each, depth + 1)
    elif isinstance(body, Mapping):
        path = body.get("loc")
        place = f"{_join_steps(path)}: " if isinstance(path, list) else ""
        for name in SAYINGS:
            yield from (f"{place}{text}" for text in _sayings(body.get(name), depth + 1))


def _as_document(text: str) -> Any:
    """JSON data that routers pass on as text; None for other texts."""
    try:
        document = json.loads(text) if text.lstrip()[:1] in ("{", "[") and len(text) <= MAX_CHARS_READ else None
    except (ValueError, RecursionError):
        return None
    return document if any(_sayings(document)) else None


def _paths(body: Any, depth: int = 0) -> Iterator[str]:
    """The paths that a body lists: `param` of OpenAI, `loc` of Pydantic, `field` of Google."""
    if depth > MAX_DEPTH:
        return
    if isinstance(body, list):
        for each in body[:MAX_DEPTH]:
            yield from _paths(each, depth + 1)
    elif isinstance(body, Mapping):
        for name in ("param", "loc", "field"):
            path = body.get(name)
            if path and isinstance(path, (str, list)):
                yield _join_steps(path) if isinstance(path, list) else _as_path(path[:MAX_CODE_CHARS])
        for name in LISTS:
            yield from _paths(body.get(name), depth + 1)


def _join_steps(path: Sequence[Any]) -> str:
    steps = [str(step)[:MAX_CODE_CHARS] for step in path[:MAX_DEPTH]]
    return ".".join(steps[1:] if steps and steps[0] in NO_FIELDS else steps)


def _as_path(name: str) -> str:
    """A name such as `tools[0].function` with dots alone."""
    return re.sub(r"[\[\]'\"]+", ".", name).replace("..", ".").strip(".")
