"""The JSON Schemas of the API, by their names in the document.

Those of messages, events and commands are made from their records.
"""

from __future__ import annotations

import typing
from collections import abc
from collections.abc import Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Any

from koi_lang.events import EVENTS, OMITTED, VERSION, AnswerDelta, EventData
from koi_lang.rpc.commands import all_commands
from koi_lang.runtime.schema import of_annotation
from koi_lang.service.feed import ADDED_FIELDS, WrittenText
from koi_lang.service.hosted import OF_OTHER_RUNS
from koi_lang.service.user_view import EVENT_FIELDS
from koi_lang.sessions.messages import (
    FOLLOWER_MESSAGES,
    ApprovalMessage,
    QuestionForm,
    QuestionMessage,
    QuestionTool,
    ResponseMessage,
)

Schema = Mapping[str, Any]
STATES = ("working", "waiting", "paused", "idle", "asleep", "ok", "failed", "cancelled", "interrupted")
START_STATES = ("waiting", "starting", "started", "ended", "failed", "skipped")
TEXT: Schema = {"type": "string"}
YES_OR_NO: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number", "description": "seconds since the epoch"}
ANY_OBJECT: Schema = {"type": "object"}
ANYTHING: Schema = {}


def object_of(required: Mapping[str, Schema], **optional: Schema) -> dict[str, Any]:
    """The schema of an object with some fields; others may come to it with later versions."""
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def closed_object(required: Mapping[str, Schema], **optional: Schema) -> dict[str, Any]:
    """The same of one that is sent: a field that is not known is refused."""
    return {**object_of(required, **optional), "additionalProperties": False}


def list_of(item: Schema) -> dict[str, Any]:
    """The schema of a list."""
    return {"type": "array", "items": item}


def or_null(schema: Schema) -> dict[str, Any]:
    """The schema of a value that may be missing."""
    return {"anyOf": [schema, {"type": "null"}]}


def reference(name: str) -> dict[str, str]:
    """The schema that stands under a name in the document."""
    return {"$ref": f"#/components/schemas/{name}"}


_RUN: Mapping[str, Schema] = {
    "id": TEXT,
    "program": TEXT,
    "owner": TEXT,
    "state": reference("State"),
    "title": TEXT,
    "started": SECONDS,
    "updated": SECONDS,
    "requests": COUNT,
    "tokens": COUNT,
    "usd": or_null({"type": "number"}),
    "parent": or_null(ANYTHING),
    "hosted": {**YES_OR_NO, "description": "whether this process carries it out"},
    "entries": COUNT,
}
_OUTCOME: Mapping[str, Schema] = {
    "ok": {**or_null(YES_OR_NO), "description": "whether the last call has a result; null where it has not ended"},
    "result": {"description": "of the last call; `Results` has its type"},
    "code": {**or_null(TEXT), "description": "the kind of failure of the last call, such as E0501 for a limit"},
    "error": {**or_null(TEXT), "description": "why the last call failed"},
    "help": or_null(TEXT),
    "aborted": {**YES_OR_NO, "description": "whether the last call was cancelled"},
    "last_call": {**or_null(TEXT), "description": "id of the last call; null where it has not ended"},
}
_HANDLER: Mapping[str, Schema] = {
    "name": TEXT,
    "affordance": TEXT,
    "playbook": YES_OR_NO,
    "private": YES_OR_NO,
    "takes": {**TEXT, "description": "its payload as a signature"},
    "schema": {**ANY_OBJECT, "description": "JSON Schema of its payload"},
    "gives": TEXT,
    "result": or_null(ANY_OBJECT),
}
_AGENT = object_of({"name": TEXT, "affordance": TEXT, "role": TEXT, "handlers": list_of(object_of(_HANDLER))})
_CHAT = object_of({"agent": TEXT, "event": TEXT, "field": or_null(TEXT), "title": TEXT})
_PROGRAM = object_of({"name": TEXT, "path": TEXT, "ok": YES_OR_NO, "agents": list_of(_AGENT), "chat": list_of(_CHAT)})
_ENTRY = object_of({"n": COUNT, "ts": SECONDS, "kind": TEXT, "path": list_of(TEXT), "agent": TEXT})
_USAGE: Mapping[str, Schema] = {"requests": COUNT, "tokens": COUNT, "usd": or_null({"type": "number"})}
_SESSIONS = object_of({"working": COUNT, "idle": COUNT, "asleep": COUNT})
_LAST = object_of({"run": TEXT, "due": TEXT, "state": {"enum": list(START_STATES)}, "reason": TEXT})
_DELIVERY = object_of(
    {"id": TEXT, "event": TEXT, "address": TEXT, "run": TEXT, "created": {"type": "number"},
     "due": {"type": "number"}, "tries": COUNT,
     "state": {"enum": ["waiting", "sending", "delivered", "failed"]}, "problem": TEXT}
)  # fmt: skip
_JOB = object_of(
    {"id": TEXT, "program": TEXT, "name": TEXT, "handler": TEXT, "payload": ANYTHING, "words": TEXT, "line": COUNT,
     "trigger": {"enum": ["every", "when"]}, "missed": {"enum": ["once", "never"]},
     "overlap": {"enum": ["skip", "wait", "together"]}, "jitter": {"type": "number", "minimum": 0},
     "zone": or_null(TEXT), "next": or_null({**TEXT, "format": "date-time"})},
    last=_LAST,
)  # fmt: skip

SCHEMAS: Mapping[str, Schema] = {
    "Error": object_of({"code": TEXT, "message": TEXT}, help=or_null(TEXT)),
    "State": {"enum": list(STATES)},
    "Ok": ANY_OBJECT,
    "Health": object_of(
        {
            "ok": YES_OR_NO,
            "version": TEXT,
            "open_files": COUNT,
            "max_files": or_null(COUNT),
            "free_disk_mb": COUNT,
            "loop_lag_s": {"type": "number", "minimum": 0},
            "problems": list_of(TEXT),
        }
    ),
    "Status": object_of(
        {"version": TEXT, "user": TEXT, "admin": YES_OR_NO, "sessions": _SESSIONS, "programs": list_of(TEXT)}
    ),
    "Programs": object_of({"programs": list_of(_PROGRAM)}),
    "Started": object_of({"id": TEXT, "program": TEXT, "owner": TEXT, "state": reference("State")}, call=or_null(TEXT)),
    "Run": object_of(_RUN),
    "RunDetails": object_of(
        {**_RUN, "open": list_of(reference("OpenRequest")), **_OUTCOME}, call=or_null(ANYTHING), handler=or_null(TEXT)
    ),
    "Runs": object_of({"runs": list_of(reference("Run")), "next": or_null(TEXT)}),
    "Entries": object_of({"entries": list_of(_ENTRY), "last": COUNT, "more": YES_OR_NO}),
    "Tree": object_of({"current": TEXT, "runs": list_of(object_of({"run": TEXT}))}),
    "RunCost": object_of(_USAGE),
    "Costs": object_of({"by": TEXT, "groups": list_of(object_of(_USAGE)), "total": object_of(_USAGE)}),
    "File": object_of({"path": TEXT, "bytes": COUNT}, changed=SECONDS),
    "Files": object_of({"files": list_of(reference("File"))}),
    "Response": object_of({"type": {"const": "response"}, "command": TEXT, "success": YES_OR_NO}),
    "Models": object_of({"models": list_of(object_of({"model": TEXT}))}),
    "Deliveries": object_of({"deliveries": list_of(_DELIVERY)}),
    "Jobs": object_of({"jobs": list_of(_JOB)}),
    "Reloaded": object_of(
        {"programs": list_of(object_of({"name": TEXT, "changed": YES_OR_NO, "error": or_null(TEXT)}))}
    ),
    "Audit": object_of({"programs": list_of(ANY_OBJECT)}),
}


# ---------------------------------------------------------------- messages, events and commands

# Fields of messages whose records say less than the document.
_PARTS: Mapping[str, Schema] = {"state": reference("State"), "event": reference("Event")}
# What events with an error have beside their fields.
_FAILURE: Mapping[str, Schema] = {"error": TEXT, "origin": list_of(TEXT), "help": TEXT, "class": TEXT}
COMMAND_ID: Schema = {"anyOf": [TEXT, {"type": "number"}], "description": "comes back in the response"}


@cache
def message_schemas() -> Mapping[str, Schema]:
    """The schemas of messages from and to followers of a run, by the names of their records."""
    records = {each.__name__: _record_schema(each) for each in (*FOLLOWER_MESSAGES, ResponseMessage)}
    parts = {each.__name__: _record_schema(each) for each in (QuestionForm, QuestionTool, WrittenText)}
    events = {each.__name__: _event_schema(each) for each in EVENTS.values() if each is not AnswerDelta}
    commands = {
        f"{each.name.title().replace('_', '')}Command": _add_description(
            closed_object({"type": {"const": each.name}}, id=COMMAND_ID, **each.schema["properties"]),
            each.description,
            each.schema["required"],
        )
        for each in all_commands()
        if each.name not in OF_OTHER_RUNS
    }
    messages = {each.__name__: records[each.__name__] for each in FOLLOWER_MESSAGES}
    requests = {each.__name__: records[each.__name__] for each in (QuestionMessage, ApprovalMessage)}
    unions = {
        "Message": messages,
        "SocketMessage": records,
        "OpenRequest": requests,
        "Event": events,
        "Command": commands,
    }
    schemas: dict[str, Schema] = {**records, **parts, **events, **commands}
    for union, members in unions.items():
        places = {each["properties"]["type"]["const"]: reference(name)["$ref"] for name, each in members.items()}
        tag = {"propertyName": "type", "mapping": places}
        schemas[union] = {"oneOf": list(map(reference, members)), "discriminator": tag}
    return schemas


def _add_description(schema: dict[str, Any], text: str | None, required: Iterable[str] = ()) -> dict[str, Any]:
    return {"description": " ".join((text or "").split()), **schema, "required": [*schema["required"], *required]}


def _record_schema(record: Any) -> dict[str, Any]:
    """The schema of a `TypedDict`."""
    hints = typing.get_type_hints(record, include_extras=True)
    fields = {name: _PARTS.get(name) or _schema_of(hint) for name, hint in hints.items()}
    required = [name for name, hint in hints.items() if typing.get_origin(hint) is not typing.NotRequired]
    return _add_description(object_of({}, **fields), record.__doc__, required)


def _event_schema(event: type[EventData]) -> dict[str, Any]:
    """The schema of an event; a field is required where all users get it, and it may not be omitted."""
    hints = {name: hint for name, hint in typing.get_type_hints(event).items() if name in event.__annotations__}
    if event.spread:
        del hints[event.spread]
    wire = {name: event.wire_names.get(name, name) for name in hints}
    public = EVENT_FIELDS.get(event, tuple(wire.values()))
    required = [wire[name] for name in hints if getattr(event, name, None) is not OMITTED and wire[name] in public]
    envelope: dict[str, Schema] = {"v": {"const": VERSION}, "type": {"const": event.type}, "run": TEXT, "agent": TEXT}
    envelope |= {"path": list_of(TEXT), **({} if event.is_transient else {"seq": COUNT, "ts": SECONDS})}
    fields = {wire[name]: _schema_of(hint) for name, hint in hints.items()}
    fields |= {name: _schema_of(hint) for name, hint in ADDED_FIELDS.get(event, {}).items()}
    failure = _FAILURE if event.spread else {}
    text = f"{event.__doc__}{'' if event in EVENT_FIELDS else ' For admins alone.'}"
    return _add_description(object_of(envelope, recalled=YES_OR_NO, **fields, **failure), text, required)


def _schema_of(annotation: Any) -> Schema:
    """The schema of the type of a field; anything for `Any`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.NotRequired:
        return _schema_of(arguments[0])
    if typing.is_typeddict(annotation):
        return reference(annotation.__name__)
    if origin in (typing.Union, UnionType):
        return {"anyOf": [_schema_of(each) for each in arguments]}
    if origin is typing.Literal and len(arguments) == 1:
        return {"const": arguments[0]}
    if origin is abc.Sequence:
        return list_of(_schema_of(arguments[0]))
    if origin is abc.Mapping:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    return of_annotation(annotation)
