"""JSON objects of an answer, parsed into actions; unreadable ones are answered, never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.llm.tools import TOOL_MARK
from koi_lang.runtime.outputs.ends import READ_OUTPUT
from koi_lang.runtime.playbook.json_repair import loads
from koi_lang.runtime.playbook.result_keys import Shapes

KINDS = ("direct", "delegate")
LISTS = ("batch", "actions", "parallel", "tool_calls")
NAMING = ("intent", "actionType", "type")
# How other systems call an action and what it is given; a call may stand in an object of its own.
CALLS = ("function", "function_call", "tool_call")
CALLED = ("name", "tool", "tool_name", "function", "action")
GIVEN = ("arguments", "parameters", "params", "input", "args", "action_input", "tool_input")
CALL_TYPES = (*CALLS, "tool_use")
# Keys of objects that were meant as actions.
MISTAKEN = ("action", "tool", "function")
# Fields of a result that change the state, as `update_state` does; they are not part of the result.
STATE_UPDATES = ("state_updates", "stateUpdates")
# Fields that say something about an action and are not part of it.
ABOUT = ("condition", "desc", "title")


# Mistakes of form: no action at all, JSON mixed with text, a cut answer, one without an end, an object without a name.
NO_ACTION = "no_action"
MIXED_FORM = "mixed"
CUT_FORM = "cut"
OPEN_FORM = "open"
NAMELESS = "nameless"


class ReplyError(KoiError):
    """An answer cannot be read as actions; the message is for the model.

    Attributes:
        form: the kind of mistake, such as `NO_ACTION`; the message where it has no kind of its own.
    """

    def __init__(self, message: str, *, help: str | None = None, form: str = "") -> None:
        super().__init__(message, help=help)
        self.form = form or message


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a model asks for.

    Attributes:
        intent: name of an action, or who it is delegated to.
        delegated: whether a team member is to do it.
        data: its fields; for `return` and delegates the payload stands under `data`.
        id: what the model calls it, empty if nothing.
        group: number of the parallel group it belongs to; 0 for none.
        function: the function of a skill by whose bare name the model has called it; empty otherwise.
    """

    intent: str
    delegated: bool
    data: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    group: int = 0
    function: str = ""


def as_action(value: Any, group: int = 0, *, results: Shapes | None = None) -> Action:
    """One JSON object as an action.

    Args:
        results: the keys that a result of the playbook may have, one set for each kind of result; None for an object
            in a list, which is no result. Outside of lists an object that names no action is the result if all of its
            keys are among those of one kind.

    Raises:
        ReplyError: says which field, what was expected and what came.
    """
    if not isinstance(value, dict):
        raise ReplyError(f"an action is a JSON object, not {_excerpt(value)}")
    if not value:
        raise ReplyError("the object is empty; name an `intent`")
    if not value.keys() & set(NAMING) and any(value.keys() <= keys for keys in results or ()):
        return Action("return", False, {"data": value}, "", group)
    if call := _call(value):
        return _action(call[0], False, call[1], value.get("id"), group)
    intent, delegated = _read_intent(value)
    naming = ("intent", "actionType") if TOOL_MARK in intent else (*NAMING, "id")
    fields = {key: item for key, item in value.items() if key not in naming}
    return _action(intent, delegated, fields, value.get("id"), group)


def _action(intent: str, delegated: bool, fields: dict[str, Any], id: Any, group: int) -> Action:
    """An action with its fields where they belong; a condition that is null or empty is none."""
    if fields.get("condition", True) in (None, ""):
        fields = {name: value for name, value in fields.items() if name != "condition"}
    if delegated:
        fields = _for_delegate(fields, id)
    elif intent == "return":
        fields = _for_return(fields)
    else:
        fields = _flat(fields)
    if intent == READ_OUTPUT and id is not None:
        fields = {"id": id, **fields}
    return Action(intent, delegated, fields, "" if id is None else str(id), group)


def as_steps(value: Any, where: str) -> list[tuple[Action, ...]]:
    """The actions nested in a control flow action: groups to carry out one after the other, members together.

    Raises:
        ReplyError: names the list, and the item that is no action.
    """
    items = value if isinstance(value, list) else [value]
    steps: list[tuple[Action, ...]] = []
    for number, item in enumerate(items, 1):
        try:
            steps += _step(item)
        except ReplyError as error:
            raise ReplyError(f"item {number} of `{where}`: {error.message}") from None
    return steps


def _step(item: Any) -> list[tuple[Action, ...]]:
    wrapped = [key for key in LISTS if isinstance(item, dict) and key in item and not item.keys() & set(NAMING)]
    if not wrapped:
        return [(as_action(item),)]
    key = wrapped[0]
    if key != "parallel":
        return as_steps(item[key], key)
    members = item[key] if isinstance(item[key], list) else [item[key]]
    return [tuple(as_action(member, 1) for member in members)]


def _call(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Name and fields of an action that is written as other systems call a tool; None for other objects."""
    if "intent" in value or "actionType" in value or value.get("type", "function") not in CALL_TYPES:
        return None
    inner = next((value[key] for key in CALLS if isinstance(value.get(key), dict)), value)
    name = next((inner[key].strip() for key in CALLED if isinstance(inner.get(key), str)), "")
    given = next((key for key in GIVEN if key in inner), "")
    return (name, _action_data(inner[given], f"`{given}` of `{name}`")) if name and given else None


def _action_data(fields: Any, what: str) -> dict[str, Any]:
    """The arguments in a tool call, often a text that holds JSON."""
    try:
        read = loads(fields.strip() or "null") if isinstance(fields, str) else fields
    except ValueError as error:
        raise ReplyError(f"{what} cannot be read: {error}") from None
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise ReplyError(f"{what} must be an object with its fields, not {_excerpt(read)}")
    return read


def _read_intent(value: Mapping[str, Any]) -> tuple[str, bool]:
    """The intent of an object and whether it is to be delegated. Raises ReplyError where nothing names one."""
    kind, intent = value.get("actionType"), value.get("intent", value.get("type"))
    if kind is not None and not isinstance(kind, str):
        raise ReplyError(f'`actionType` must be "direct" or "delegate", not {_excerpt(kind)}')
    if kind is not None and kind not in KINDS:
        intent, kind = intent or kind, "direct"
    if intent is None and kind is not None:
        intent = value.get("description")
    if intent is None and kind is None and not value.keys() & set(NAMING):
        raise _nameless(value)
    if not isinstance(intent, str) or not intent.strip():
        raise ReplyError(f"`intent` must be the name of an action, not {_excerpt(intent)}")
    if intent in LISTS:
        raise ReplyError(f'`{intent}` is no action; answer with {{"{intent}": [action, action]}}')
    return intent.strip(), kind == "delegate"


def _nameless(value: Mapping[str, Any]) -> ReplyError:
    """The error of an object without the name of an action."""
    if lists := [key for key in LISTS if key in value]:
        return ReplyError(f"`{lists[0]}` must be a list of actions, not {_excerpt(value[lists[0]])}")
    found = [key for key in MISTAKEN if key in value] or list(value)[:5]
    listed = ", ".join(f"`{key}`" for key in found)
    return ReplyError(f"an action names its `intent`; this object has {listed} instead", form=NAMELESS)


def _for_delegate(fields: dict[str, Any], id: Any) -> dict[str, Any]:
    """The payload under `data`; without one, all fields are the payload."""
    condition = {"condition": fields.pop("condition")} if "condition" in fields else {}
    if "data" in fields:
        beside = {"background": fields["background"]} if "background" in fields else {}
        return {"data": fields["data"], **beside, **condition}
    return {"data": fields if id is None else {**fields, "id": id}, **condition}


def _for_return(fields: dict[str, Any]) -> dict[str, Any]:
    """The result under `data`; without one, all fields are the result."""
    result = {key: item for key, item in fields.items() if key not in ABOUT}
    if "data" in fields or "result" in fields or not result:
        return _with_updates(fields)
    return {"data": result, **{key: fields[key] for key in ABOUT if key in fields}}


def _with_updates(fields: dict[str, Any]) -> dict[str, Any]:
    """A result with changes of the state that stand beside it. Raises ReplyError where it has no place for them."""
    updates = {name: fields[name] for name in STATE_UPDATES if fields.get(name)}
    if not updates:
        return fields
    given = [fields[name] for name in ("data", "result") if name in fields]
    data: Any = next((each for each in given if each is not None), None if given else {})
    if not isinstance(data, dict):
        stated = f"`{next(iter(updates))}` stands in an object of `data`, and `data` is {_excerpt(data)}"
        raise ReplyError(f"{stated}; carry out `update_state` first, and `return` the result alone")
    rest = {name: item for name, item in fields.items() if name not in ("result", *updates)}
    return {**rest, "data": {**updates, **data}}


def _flat(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields under `data` are fields of the action too."""
    data = fields.get("data")
    return {**data, **fields} if isinstance(data, dict) else fields


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:80]}…"
