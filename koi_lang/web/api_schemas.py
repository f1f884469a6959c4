"""The JSON Schemas of what the API takes and gives, by the names that the document has them under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    "result": {"description": "of the last call, as the type of its handler says"},
    "error": {**or_null(TEXT), "description": "why the last call failed"},
    "help": or_null(TEXT),
    "aborted": {**YES_OR_NO, "description": "whether the last call was cancelled"},
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
        {**_RUN, "open": list_of(ANY_OBJECT), **_OUTCOME}, call=or_null(ANYTHING), handler=or_null(TEXT)
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
