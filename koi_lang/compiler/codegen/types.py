"""Type annotations of Koi to annotations of Python and to JSON Schema."""

from __future__ import annotations

import ast
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py

SIMPLE = {
    "number": "float", "int": "int", "string": "str", "boolean": "bool", "bool": "bool", "void": "None", "null": "None",
    "undefined": "None",
}  # fmt: skip
SCHEMAS = {"float": "number", "int": "integer", "str": "string", "bool": "boolean", "None": "null"}


def annotation(type: n.Type, at: py.At) -> ast.expr:
    """The Python annotation that says the same; `Any` for what Python has no word for."""
    simple = SIMPLE.get(type.name.lower())
    if simple is not None:
        return py.constant(None, at) if simple == "None" else py.load(simple, at)
    match type.name:
        case "Array" if type.arguments:
            return ast.Subscript(py.load("list", at), annotation(type.arguments[0], at), py.LOAD, **at)
        case "Promise" if type.arguments:
            return annotation(type.arguments[0], at)
        case "object":
            pair = ast.Tuple([py.load("str", at), py.koi("Any", at)], py.LOAD, **at)
            return ast.Subscript(py.load("dict", at), pair, py.LOAD, **at)
        case "union":
            result = annotation(type.arguments[0], at)
            for argument in type.arguments[1:]:
                result = ast.BinOp(result, ast.BitOr(), annotation(argument, at), **at)
            return result
    return py.koi("Any", at)


def schema(type: n.Type | None) -> dict[str, Any]:
    """The JSON Schema of a type; empty (anything) for types that say nothing."""
    if type is None:
        return {}
    simple = SIMPLE.get(type.name.lower())
    if simple is not None:
        return {"type": SCHEMAS[simple]}
    match type.name:
        case "Array" if type.arguments:
            return {"type": "array", "items": schema(type.arguments[0])}
        case "Promise" if type.arguments:
            return schema(type.arguments[0])
        case "union":
            return {"anyOf": [schema(argument) for argument in type.arguments]}
        case "literal":
            return {"const": ast.literal_eval(type.text.capitalize() if type.text in ("true", "false") else type.text)}
        case "object":
            return {
                "type": "object",
                "properties": {field.name: schema(field.type) for field in type.fields},
                "required": [field.name for field in type.fields if not field.optional],
            }
    return {}
