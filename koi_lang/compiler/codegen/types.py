"""Type annotations of Koi to annotations of Python and to JSON Schema."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.declared_types import bounds_of
from koi_lang.compiler.doc_comments import comment_of_field, doc_comment
from koi_lang.compiler.literals import value_of_literal_type
from koi_lang.compiler.symbols import Symbol, SymbolTable
from koi_lang.compiler.walk import everything

SIMPLE = {
    "number": "float", "int": "int", "string": "str", "boolean": "bool", "bool": "bool", "void": "None", "null": "None",
    "undefined": "None",
}  # fmt: skip
# Stands for the declared type whose fields are annotated: these may mention it.
FIELDS = ("",)
SCHEMAS = {"float": "number", "int": "integer", "str": "string", "bool": "boolean", "None": "null"}


def annotation(type: n.Type, at: py.At, names: ModuleNames, around: tuple[str, ...] = ()) -> ast.expr:
    """The Python annotation that says the same; `Any` for what Python has no word for.

    Where it mentions a declared type it is a text, which is looked at when somebody asks: modules may need each other.

    Args:
        around: the declared types that it is part of; literals say which ones they are within these alone.
    """
    found = _annotation(type, at, names, around)
    is_declared = any(isinstance(part, n.Type) and part.name in names.table.types for part in everything(type))
    return py.constant(ast.unparse(found), at) if is_declared else found


def typed_dict(node: n.TypeDeclaration, at: py.At, names: ModuleNames) -> ast.expr:
    """`koi.TypedDict("Name", {…})` for a declared type that is an object."""
    keys: list[ast.expr | None] = [py.constant(field.name, at) for field in node.type.fields]
    values: list[ast.expr] = []
    for each in node.type.fields:
        annotated = annotation(each.type, at, names, FIELDS)
        values.append(
            ast.Subscript(py.koi("NotRequired", at), annotated, py.LOAD, **at) if each.optional else annotated
        )
    return py.helper("TypedDict", [py.constant(node.name.name, at), ast.Dict(keys, values, **at)], at)


def _annotation(type: n.Type, at: py.At, names: ModuleNames, seen: tuple[str, ...]) -> ast.expr:
    """An annotation within the declared types that were `seen`; one that is an object stands for itself."""
    simple = SIMPLE.get(type.name.lower())
    if simple is not None:
        return py.constant(None, at) if simple == "None" else py.load(simple, at)
    match type.name:
        case "Array" if type.arguments:
            return ast.Subscript(py.load("list", at), _annotation(type.arguments[0], at, names, seen), py.LOAD, **at)
        case "Promise" if type.arguments:
            return _annotation(type.arguments[0], at, names, seen)
        case "object":
            pair = ast.Tuple([py.load("str", at), py.koi("Any", at)], py.LOAD, **at)
            return ast.Subscript(py.load("dict", at), pair, py.LOAD, **at)
        case "union":
            result = _annotation(type.arguments[0], at, names, seen)
            for argument in type.arguments[1:]:
                result = ast.BinOp(result, ast.BitOr(), _annotation(argument, at, names, seen), **at)
            return result
        case "literal" if seen:
            return ast.Subscript(
                py.koi("Literal", at), py.constant(value_of_literal_type(type.text), at), py.LOAD, **at
            )
    symbol = names.table.types.get(type.name)
    if symbol is None or symbol.name in seen:
        return py.koi("Any", at)
    if is_record(symbol.node):
        return names.reference(symbol, at)
    return _annotation(_type_of(symbol), at, names, (*seen, symbol.name))


def is_record(node: n.Node) -> bool:
    """Whether a declared type is an object, which Python has a class for."""
    return isinstance(node, n.TypeDeclaration) and node.type.name == "object" and bool(node.type.fields)


def schema(type: n.Type | None, table: SymbolTable, text: str) -> dict[str, Any]:
    """The JSON Schema of a type; empty (anything) for types that say nothing.

    Declared types that it mentions stand under `$defs`; one that is all of it stands in its place. Comments of declared
    types and of fields are their descriptions.

    Args:
        text: of the file that the type stands in.
    """
    if type is None:
        return {}
    made = _SchemaWriter(table)
    seen = set[str]()
    described = dict[str, str]()
    while (symbol := table.types.get(type.name)) is not None and symbol.name not in seen:
        seen.add(symbol.name)
        type, described = _type_of(symbol), described or _description(symbol)
        text = symbol.unit.source.text
    found = {**made.schema(type, text), **described}
    return {**found, "$defs": made.definitions} if made.definitions else found


def declared_schemas(table: SymbolTable) -> dict[str, Any]:
    """The JSON Schema of each declared type that a file can use, by its name; they refer to each other."""
    writer = _SchemaWriter(table)
    for symbol in table.types.values():
        writer.refer(symbol)
    return writer.definitions


def says_more_than_python(type: n.Type | None, table: SymbolTable) -> bool:
    """Whether the schema of a type holds what Python has no annotation for: fields, literals, bounds, named types."""
    parts = [] if type is None else [part for part in everything(type) if isinstance(part, n.Type)]
    return any(part.name in table.types or part.fields or part.bounds or part.name == "literal" for part in parts)


@dataclass(slots=True)
class _SchemaWriter:
    """Writes schemas, and keeps those of the declared types that they mention.

    Attributes:
        definitions: by the name of the type.
    """

    table: SymbolTable
    definitions: dict[str, Any] = field(default_factory=dict)

    def schema(self, type: n.Type, text: str) -> dict[str, Any]:
        simple = SIMPLE.get(type.name.lower())
        if simple is not None:
            return {"type": SCHEMAS[simple], **bounds_of(type)}
        match type.name:
            case "Array" if type.arguments:
                return {"type": "array", "items": self.schema(type.arguments[0], text), **bounds_of(type)}
            case "Promise" if type.arguments:
                return self.schema(type.arguments[0], text)
            case "union":
                return {"anyOf": [self.schema(argument, text) for argument in type.arguments]}
            case "literal":
                return {"const": value_of_literal_type(type.text)}
            case "object":
                properties = {}
                for each in type.fields:
                    found = self.schema(each.type, text)
                    said = (
                        "" if "$ref" in found else comment_of_field(text, each.span)
                    )  # a reference has no room for it
                    properties[each.name] = {**found, "description": said} if said else found
                required = [each.name for each in type.fields if not each.optional]
                return {"type": "object", "properties": properties, "required": required}
        symbol = self.table.types.get(type.name)
        return {} if symbol is None else self.refer(symbol)

    def refer(self, symbol: Symbol) -> dict[str, Any]:
        """A reference to a declared type, whose schema is kept."""
        if symbol.name not in self.definitions:
            self.definitions[symbol.name] = {}  # it may mention itself
            self.definitions[symbol.name] = {
                **self.schema(_type_of(symbol), symbol.unit.source.text),
                **_description(symbol),
            }
        return {"$ref": f"#/$defs/{symbol.name}"}


def _description(symbol: Symbol) -> dict[str, str]:
    """What the comment above a declared type says, as a schema has it."""
    doc = doc_comment(symbol.unit.source.text, symbol.node.span.start)
    return {"description": doc} if doc else {}


def _type_of(symbol: Symbol) -> n.Type:
    assert isinstance(symbol.node, n.TypeDeclaration)
    return symbol.node.type
