"""The programs of a service to the OpenAPI document of its API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from koi_lang.web.api_schemas import SCHEMAS, TEXT, Schema, closed_object, message_schemas, object_of, reference
from koi_lang.web.operations import JSON, OPERATIONS, START, STREAM, ApiOperation

OPENAPI, DIALECT = "3.1.1", "https://json-schema.org/draft/2020-12/schema"
# What a name of a schema in the document cannot hold.
FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
IN_PATH = re.compile(r"{(\w+)}")
DEFINED = "#/$defs/"
SCHEMES: Mapping[str, Any] = {
    "token": {"type": "http", "scheme": "bearer", "description": "the token that the server has shown at its start"}
}
REFUSED: Mapping[str, Any] = {
    "description": "It was refused; nothing has changed.",
    "content": {JSON: {"schema": reference("Error")}},
}

# The types of what handlers give.
RESULTS = "Results"
# One server-sent event, in the form that OpenAPI 3.2 has for the items of a stream.
_DATA: Schema = {**TEXT, "contentMediaType": JSON, "contentSchema": reference("Message")}
EVENT_ITEM = object_of({"id": TEXT, "data": _DATA})
# OpenAPI has no words for what comes and goes over a WebSocket.
WEBSOCKETS: Mapping[str, Any] = {"/runs/{id}/ws": {"receive": reference("SocketMessage"), "send": reference("Command")}}


@dataclass(slots=True)
class SchemaTable:
    """Schemas by the names that they have in the document."""

    schemas: dict[str, Schema] = field(default_factory=lambda: {**SCHEMAS, **message_schemas()})

    def add(self, name: str, schema: Schema) -> dict[str, str]:
        """Enter a schema with the declared types that it mentions; gives the reference to it."""
        known = {each: self._free(f"{name}.{each}") for each in schema.get("$defs", {})}
        for each, declared in schema.get("$defs", {}).items():
            self.schemas[known[each]] = _with_references(declared, known)
        own = self._free(name)
        self.schemas[own] = _with_references({key: part for key, part in schema.items() if key != "$defs"}, known)
        return reference(own)

    def _free(self, name: str) -> str:
        """A name like this that no other schema has, reserved."""
        plain = FOREIGN.sub("_", name)
        taken = self.schemas.keys()
        names = (plain if count == 1 else f"{plain}-{count}" for count in range(1, len(taken) + 2))
        free = next(each for each in names if each not in taken)
        self.schemas[free] = {}
        return free


def _with_references(part: Any, known: Mapping[str, str]) -> Any:
    """A part of a schema whose references lead to the schemas of the document."""
    if isinstance(part, list):
        return [_with_references(item, known) for item in part]
    if not isinstance(part, Mapping):
        return part
    target = part.get("$ref")
    if isinstance(target, str) and target.removeprefix(DEFINED) in known:
        return {**part, **reference(known[target.removeprefix(DEFINED)])}
    return {key: item if key in ("const", "enum") else _with_references(item, known) for key, item in part.items()}


def document_of(programs: Iterable[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """The document, OpenAPI 3.1.

    Args:
        programs: as `GET /program` gives them; those with errors are left out.
        version: of the service.
    """
    table = SchemaTable()
    served = [program for program in programs if program.get("ok")]
    table.schemas[RESULTS] = {**object_of({}), "description": "the results of handlers, by their names"}
    table.schemas[START] = _start_of(served, table)
    paths: dict[str, dict[str, Any]] = {}
    for operation in filter(lambda each: each.is_public, OPERATIONS):
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    title = " and ".join(str(program["name"]) for program in served) or "Koi"
    return {
        "openapi": OPENAPI,
        "jsonSchemaDialect": DIALECT,
        "info": {"title": title, "version": version, "description": _describe(served)},
        # From the address of the document on, so that it is right below any path of a proxy.
        "servers": [{"url": "../api"}],
        "security": [{"token": []}],
        "paths": paths,
        "x-websockets": WEBSOCKETS,
        "components": {"schemas": table.schemas, "responses": {"Refused": REFUSED}, "securitySchemes": dict(SCHEMES)},
    }


def _describe(programs: Iterable[Mapping[str, Any]]) -> str:
    """A line for each agent with its description."""
    agents = [agent for program in programs for agent in program["agents"] if agent["affordance"]]
    return "\n".join(f"- **{agent['name']}**: {agent['affordance']}" for agent in agents)


# ---------------------------------------------------------------- starting a run


def _start_of(programs: list[Mapping[str, Any]], table: SchemaTable) -> Schema:
    """The body of `POST /runs`: a payload for a handler, a message, or neither for a session without a call."""
    is_alone = len(programs) == 1
    named: Schema = {"enum": [program["name"] for program in programs]} if programs else TEXT
    handlers = [
        _call_of(program, agent, handler, table, is_alone=is_alone)
        for program in programs
        for agent in program["agents"]
        for handler in agent["handlers"]
        if not handler["private"]
    ]
    images: Schema = {"type": "array", "items": {"type": "object"}}
    if not programs:
        handlers.append(closed_object({"handler": TEXT}, program=TEXT, payload={}))
    said = closed_object({"message": TEXT}, program=named, handler=TEXT, images=images)
    opened = closed_object({}, program=named, title=TEXT)
    return {"oneOf": [*handlers, said, opened]}


def _call_of(
    program: Mapping[str, Any],
    agent: Mapping[str, Any],
    handler: Mapping[str, Any],
    table: SchemaTable,
    *,
    is_alone: bool,
) -> Schema:
    """The call of a handler with its payload; with several programs it says of which."""
    name = f"{agent['name']}.{handler['name']}"
    beginning = name if is_alone else f"{program['name']}.{name}"
    payload = table.add(f"{beginning}.payload", handler["schema"])
    if handler["result"] is not None:
        table.schemas[RESULTS]["properties"][beginning] = table.add(f"{beginning}.result", handler["result"])
    own: Schema = {"const": program["name"]}
    required: dict[str, Schema] = (
        {"handler": {"const": name}} if is_alone else {"program": own, "handler": {"const": name}}
    )
    optional: dict[str, Schema] = {"program": own} if is_alone else {}
    if handler["schema"]:
        return _add_description(closed_object({**required, "payload": payload}, **optional), handler)
    return _add_description(closed_object(required, payload=payload, **optional), handler)


def _add_description(schema: dict[str, Any], handler: Mapping[str, Any]) -> Schema:
    return {**schema, **({"description": handler["affordance"]} if handler["affordance"] else {})}


# ---------------------------------------------------------------- operations


def _operation(operation: ApiOperation) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": operation.summary}
    if operation.gives is not None:
        items = {"x-itemSchema": EVENT_ITEM} if operation.media == STREAM else {}
        answer["content"] = {operation.media: {"schema": _schema_of(operation.gives), **items}}
    ended = {"description": "The call has ended.", "content": {JSON: {"schema": reference(operation.ended)}}}
    refused = {"$ref": "#/components/responses/Refused"}
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        **({"parameters": list(_parameters(operation))} if "{" in operation.path or operation.fields else {}),
        **({"requestBody": _body(operation)} if operation.takes is not None else {}),
        "responses": {
            **({"200": ended} if operation.ended else {}),
            str(operation.status): answer,
            "4XX": refused,
            "503": answer if operation.name == "health" else refused,
        },
        **({} if operation.needs_token else {"security": []}),
    }


def _body(operation: ApiOperation) -> dict[str, Any]:
    assert operation.takes is not None, "an operation that takes nothing"
    return {"required": True, "content": {operation.takes_media: {"schema": _schema_of(operation.takes)}}}


def _parameters(operation: ApiOperation) -> Iterator[dict[str, Any]]:
    for name in IN_PATH.findall(operation.path):
        message = "of a run" if name == "id" else "of a file; slashes stand in it as they are"
        yield {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}, "description": message}
    for each in operation.fields:
        schema = dict(each.schema)
        yield {"name": each.name, "in": each.place, "schema": schema, "description": each.description}


def _schema_of(given: Schema | str) -> Schema:
    return reference(given) if isinstance(given, str) else given


def to_text(document: Mapping[str, Any]) -> str:
    """The document as it is sent."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
