"""The modules of the JavaScript client that are made from the OpenAPI document: its operations and its types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from koi_lang.program.host_types import typescript_module, typescript_type
from koi_lang.version import __version__
from koi_lang.web.api_schemas import Schema
from koi_lang.web.openapi import document_of
from koi_lang.web.operations import BYTES, OPERATIONS, STREAM, ApiOperation

NOTE = "Made from the OpenAPI document of the service by `python -m docs.generate`."
SCHEMAS = "#/components/schemas/"
# The classes of operations by where their paths begin, the longest first, with what each is.
RUN, RUNS, SERVICE = "RunOperations", "RunsOperations", "ServiceOperations"
CLASSES = {
    RUN: ("/runs/{id}", "The operations of a run."),
    RUNS: ("/runs", "The operations of all runs."),
    SERVICE: ("", "The operations of a service."),
}
IN_PATH = re.compile(r"{(\w+)}")
WIDTH = 120


def client_modules() -> dict[str, str]:
    """The text of each module by the name of its file."""
    return {"operations.js": operations_module(), "operations.d.ts": operation_types(), "schemas.d.ts": schema_types()}


def operations_by_class() -> dict[str, list[tuple[str, ApiOperation]]]:
    """The public operations, each with the name of its method, but the stream, which the client follows by itself."""
    found: dict[str, list[tuple[str, ApiOperation]]] = {name: [] for name in CLASSES}
    for operation in OPERATIONS:
        if operation.is_public and operation.media != STREAM:
            owner = next(name for name, (path, _) in CLASSES.items() if operation.path.startswith(path))
            method = operation.name if owner == SERVICE else re.sub("Runs?", "", operation.name, count=1)
            found[owner].append((method, operation))
    return found


def operations_module() -> str:
    """The operations as methods of JavaScript."""
    parts = [f"// {NOTE}", 'import { encodePath, withKey } from "./transport.js";']
    for name, operations in operations_by_class().items():
        methods = [
            f"  /** {each.summary}. */\n  {method}({_parameters(each)}) {{ {_call(each)} }}"
            for method, each in operations
        ]
        begin = "  constructor(transport) {\n    this.transport = transport;\n  }\n"
        body = "\n".join([begin, *methods])
        parts.append(f"/** {CLASSES[name][1]} */\nexport class {name} {{\n{body}\n}}")
    return "\n\n".join(parts) + "\n"


def _parameters(operation: ApiOperation) -> str:
    own = [name for name in IN_PATH.findall(operation.path) if name != "id"]
    return ", ".join([*own, *(["body"] if operation.takes is not None else []), "options"])


def _call(operation: ApiOperation) -> str:
    path = operation.path.replace("{id}", "${encodeURIComponent(this.id)}").replace("{path}", "${encodePath(path)}")
    place = f"`{path}`" if "$" in path else json.dumps(path)
    options = "withKey(options)" if any(field.name == "Idempotency-Key" for field in operation.fields) else "options"
    body = ["body"] if operation.takes is not None else []
    function = "request" if operation.media == BYTES else "send"
    return f"return this.transport.{function}({', '.join([json.dumps(operation.method), place, options, *body])});"


# ---------------------------------------------------------------- types


def operation_types() -> str:
    """The types of the operations."""
    used = set[str]()
    classes = []
    for name, operations in operations_by_class().items():
        methods = [_method_type(method, each, used) for method, each in operations]
        classes.append(f"/** {CLASSES[name][1]} */\nexport class {name} {{\n" + "\n".join(methods) + "\n}")
    options = """/** What every request takes: a signal that ends it, and whether it outlives its page. */
export interface RequestOptions {
  signal?: AbortSignal;
  keepalive?: boolean;
}"""
    imports = 'import type { Run as RunHandle } from "./index.d.ts";\n'
    imports += f'import type {{ {", ".join(sorted(used))} }} from "./schemas.d.ts";'
    return "\n\n".join([f"// {NOTE}", imports, options, *classes]) + "\n"


def _method_type(method: str, operation: ApiOperation, used: set[str]) -> str:
    parameters = [f"{name}: string" for name in IN_PATH.findall(operation.path) if name != "id"]
    if operation.takes is not None:
        is_bytes = operation.takes_media == BYTES
        body = "Blob | ArrayBuffer | ArrayBufferView | string" if is_bytes else _named_type(operation.takes, used)
        parameters.append(f"body: {body}")
    fields = [
        f"{'idempotencyKey' if field.name == 'Idempotency-Key' else field.name}?: {_named_type(field.schema, used)}"
        for field in operation.fields
    ]
    options = f"RequestOptions & {{ {'; '.join(fields)} }}" if fields else "RequestOptions"
    result = "void" if operation.gives is None else _named_type(operation.gives, used)
    if operation.media == BYTES:
        result = "Response"
    if operation.gives == "Started" and "idempotencyKey" in options:
        result = "RunHandle"
    elif operation.ended:
        result += f" | {_named_type(operation.ended, used)}"
    return (
        f"  /** {operation.summary}. */\n"
        f"  {method}({', '.join([*parameters, f'options?: {options}'])}): Promise<{result}>;"
    )


def _named_type(schema: Schema | str, used: set[str]) -> str:
    """A schema, or the one of a name, as a type of TypeScript; names that it mentions are added to `used`."""
    found = {"$ref": f"{SCHEMAS}{schema}"} if isinstance(schema, str) else schema
    used |= {*re.findall(rf'"{SCHEMAS}(\w+)"', json.dumps(found))}
    return typescript_type(found)


def schema_types() -> str:
    """The types of all schemas of the document, those of a service without programs."""
    text = json.dumps(document_of([], __version__)["components"]["schemas"])
    # That nothing is counted below 0 needs no comment.
    schemas: Mapping[str, Schema] = json.loads(text.replace(', "minimum": 0', ""))
    return typescript_module(schemas, NOTE)
