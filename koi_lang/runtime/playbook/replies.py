"""A model's answer to the steps it asks for, whatever it wrapped them in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import KoiError

FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*|\s*```\s*$")
TRAILING_COMMA = re.compile(r",(\s*[}\]])")
KINDS = ("direct", "delegate")


class ReplyError(KoiError):
    """An answer cannot be read as actions; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a model asks for.

    Attributes:
        intent: name of an action, or who it is delegated to.
        delegated: whether a team member is to do it.
        data: its fields; for `return` and delegates the payload stands under `data`.
        id: what the model calls it, empty if nothing.
    """

    intent: str
    delegated: bool
    data: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Actions to carry out at the same time."""

    actions: tuple[Action, ...]


Step = Action | Group


def read_reply(text: str) -> list[Step]:
    """The steps of an answer, at least one.

    Code fences, prose before and after, several objects in a row, a list, `batch`, `actions` and `parallel` are
    understood. Raises ReplyError with the field, what was expected and what came.
    """
    values = list(_json_values(FENCE.sub("", text)))
    if not values:
        raise ReplyError(f"the answer holds no JSON object: {text.strip()[:200]!r}")
    steps = [step for value in values for step in _steps(value)]
    if not steps:
        raise ReplyError("the list of actions is empty; give at least one action")
    return steps


def _json_values(text: str) -> Iterator[Any]:
    """All JSON objects and lists in a text, from the left; what stands between them is skipped."""
    decoder = json.JSONDecoder(strict=False)
    at = _next_opening(text, 0)
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            value, end = _repaired(text, at, error)
        yield value
        at = _next_opening(text, end)


def _next_opening(text: str, start: int) -> int:
    found = [at for at in (text.find("{", start), text.find("[", start)) if at >= 0]
    return min(found, default=-1)


def _repaired(text: str, at: int, error: json.JSONDecodeError) -> tuple[Any, int]:
    """The rest of the text without trailing commas, as one value."""
    rest = TRAILING_COMMA.sub(r"\1", text[at:])
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(rest)
    except json.JSONDecodeError:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        raise ReplyError(f"the JSON is broken near {near!r}: {error.msg.lower()}") from None
    return value, len(text)


def _steps(value: Any) -> Iterator[Step]:
    if isinstance(value, list):
        for item in value:
            yield from _steps(item)
        return
    if not isinstance(value, dict):
        raise ReplyError(f"an action is a JSON object, not {json.dumps(value)[:80]}")
    for name in ("batch", "actions"):
        if name in value:
            yield from _listed(name, value[name])
            return
    if "parallel" in value:
        members = tuple(step for step in _listed("parallel", value["parallel"]) if isinstance(step, Action))
        yield Group(members)
        return
    yield _action(value)


def _listed(name: str, value: Any) -> Iterator[Step]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ReplyError(f"`{name}` is empty; give at least one action")
    for item in items:
        yield from _steps(item)


def _action(value: dict[str, Any]) -> Action:
    """One object as an action; an object that names no action is the result of the playbook."""
    if not value:
        raise ReplyError("the object is empty; name an `intent`")
    kind, intent = value.get("actionType"), value.get("intent") or value.get("type")
    if kind not in KINDS and isinstance(kind, str):
        intent, kind = intent or kind, "direct"
    if intent is None and kind is None:
        return Action("return", False, {"data": value})
    if not isinstance(intent, str) or not intent:
        raise ReplyError(f"`intent` must be the name of an action, not {json.dumps(intent)}")
    fields = {key: item for key, item in value.items() if key not in ("actionType", "intent", "type", "id")}
    delegated = kind == "delegate"
    if delegated and "data" not in fields:
        fields = {"data": fields}
    return Action(intent, delegated, fields if delegated else _flat(intent, fields), str(value.get("id", "")))


def _flat(intent: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Fields under `data` are fields of the action too; for `return`, `data` is the result itself."""
    data = fields.get("data")
    return {**data, **fields} if intent != "return" and isinstance(data, dict) else fields
