"""The description of a tool as text for models, and the check of its arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from koi_lang.runtime.mcp import validation
from koi_lang.runtime.mcp.safe_text import FENCE, one_line, quote_text

# A signature that is longer is no help beside an error.
MAX_HINT_CHARS = 1500
MAX_MENDINGS = 20
# What a schema may hold that asks for nothing but the types of its fields.
SAID = frozenset({"type", "title", "description", "default"})
PLAIN = SAID | {"$schema", "properties", "required", "additionalProperties"}
TYPES: Mapping[Any, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
}


@dataclass(frozen=True)
class Tool:
    """A tool of a server; everything here was written by the server.

    Attributes:
        schema: JSON Schema of its arguments.
        annotations: hints such as `readOnlyHint`.
        needs_task: whether it can only be called as a task, which clients may do without, and this one does.
    """

    server: str
    name: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any]
    needs_task: bool = False

    @cached_property
    def takes(self) -> str:
        """Its parameters as they stand in prompts: `path: string, limit?: integer = 10 /* Most lines */`."""
        return signature(self.schema)

    @property
    def signature(self) -> str:
        """The call as it stands in prompts: `files.read(path: string, limit?: integer)`."""
        return f"{self.server}.{one_line(self.name)}({self.takes})"

    @property
    def hint(self) -> str:
        """Advice for invalid arguments."""
        about = self.signature
        return f"Use {about}." if len(about) <= MAX_HINT_CHARS else "`get_mcp_tool_info` gives its whole schema."

    @cached_property
    def line(self) -> str:
        """One line with all there is to say; the server's description stands in quotation marks at its end."""
        return f"{self.signature} {quote_text(self.description, len(self.description))}".rstrip()

    @cached_property
    def short_line(self) -> str:
        """The same with no more than the beginning of the description."""
        return f"{self.signature} {quote_text(self.description)}".rstrip()

    @property
    def only_reads(self) -> bool:
        """Whether the server says that calling it changes nothing; nobody checks that."""
        return self.annotations.get("readOnlyHint") is True

    def parameters(self) -> list[dict[str, Any]]:
        """Name, type, description and `required` of every parameter, in the order of the schema."""
        properties, required = self.schema.get("properties"), self.schema.get("required")
        names = required if isinstance(required, list) else []
        described = properties.items() if isinstance(properties, dict) else ()
        types = field_types(self.schema)
        return [
            {
                "name": name,
                "type": types[name],
                "description": str(about.get("description", "")) if isinstance(about, dict) else "",
                "required": name in names,
            }
            for name, about in described
        ]

    def problems(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """The faults of arguments, one clause each with the name of the field.

        Raises:
            ValueError: the schema of the tool itself is not usable.
        """
        if not self._plainly_fit(arguments):
            yield from self._checks.problems(arguments)

    def _plainly_fit(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments fit beyond doubt, found out in a fraction of the time that a full check takes."""
        if self._types is None:
            return False
        types, required = self._types
        fit = all(type(value) in types.get(name, ()) for name, value in arguments.items())
        return fit and all(name in arguments for name in required)

    @cached_property
    def _types(self) -> tuple[Mapping[str, tuple[type, ...]], Sequence[str]] | None:
        """The types of those fields that have no other conditions, and the fields that must be there.

        None where the schema sets conditions beside its fields.
        """
        properties, required = self.schema.get("properties", {}), self.schema.get("required", [])
        is_plain = PLAIN >= self.schema.keys() and self.schema.get("type") == "object"
        if not is_plain or not isinstance(properties, dict) or not isinstance(required, list):
            return None
        plain = {name: about["type"] for name, about in properties.items() if _is_plain(about)}
        return {name: TYPES[kind] for name, kind in plain.items()}, required

    @cached_property
    def _checks(self) -> validation.Checks:
        return validation.Checks(self.schema)


def mend_tool(tool: Any, find_odd: Callable[[Mapping[str, Any]], Sequence[Sequence[int | str]]]) -> tuple[Any, str]:
    """The description of a tool without parts that the protocol forbids, and a clause that names these.

    Args:
        find_odd: finds in a result with a list of tools where they are odd, each as the steps within a tool.

    Returns:
        None for a tool that cannot be called; an empty text where nothing is odd.
    """
    first, name = "", one_line(str(tool.get("name", ""))) if isinstance(tool, dict) else ""
    for _ in range(MAX_MENDINGS):  # leaving out one thing may show another
        place = [str(step) for step in next(iter(find_odd({"tools": [tool]})), ())]
        if not place and isinstance(tool, dict):
            break
        first = first or ".".join(place)
        if not place or place[0] == "name":
            return None, "lists a tool without a name, which is left out"
        schema = tool.get("inputSchema")
        fields = schema.get("properties") if isinstance(schema, dict) else None
        if place[0] != "inputSchema":
            tool = {key: value for key, value in tool.items() if key != place[0]}
        elif not isinstance(schema, dict) or place[1:] == ["type"]:
            tool = {**tool, "inputSchema": {**(schema if isinstance(schema, dict) else {}), "type": "object"}}
        elif place[1:2] == ["properties"] and len(place) > 2 and isinstance(fields, dict):
            moved = {"required": fields["required"]} if place[2] == "required" and "required" not in schema else {}
            known = {name: field for name, field in fields.items() if name != place[2]}
            tool = {**tool, "inputSchema": {**schema, "properties": known, **moved}}
        else:
            tool = {**tool, "inputSchema": {key: value for key, value in schema.items() if key not in place[1:2]}}
    return tool, f"describes its tool `{name}` wrongly, in `{one_line(first)}`" if first else ""


def _is_plain(about: Any) -> bool:
    """Whether a schema asks for a type and nothing else."""
    kind = about.get("type") if isinstance(about, dict) and about.keys() <= SAID else None
    return isinstance(kind, str) and kind in TYPES


# What a signature says in its own notation, and what only concerns whoever reads schemas by program.
EXPRESSED = frozenset(
    "$ref $schema $id $anchor $comment $defs definitions title description default type const enum anyOf oneOf allOf"
    " properties required additionalProperties items prefixItems".split()
)
# Keywords that make a schema one of an object or a list without saying so.
SHAPES = ("type", "properties", "required", "additionalProperties", "items", "prefixItems")
MAX_SCHEMA_CHARS = 100_000
UNREADABLE = "…"


def signature(schema: Mapping[str, Any]) -> str:
    """All that a schema asks of an object: `path: string, limit?: integer(minimum 1) = 10 /* Most lines */`.

    Definitions that it refers to stand behind `where`. A schema that is too large or nested too deeply is `…`.
    """
    try:
        if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
            return UNREADABLE
        writer = _TypeWriter(schema)
        return f"{writer.arguments()}{writer.definitions()}"
    except (RecursionError, OverflowError):
        return UNREADABLE


def field_types(schema: Mapping[str, Any]) -> dict[str, str]:
    """The type of every field in the same notation, without the definitions that it refers to."""
    properties, writer = schema.get("properties"), _TypeWriter(schema)
    fields = properties if isinstance(properties, dict) else {}
    try:
        return {name: writer.type_of(about) for name, about in fields.items()}
    except RecursionError:
        return dict.fromkeys(fields, UNREADABLE)


class _TypeWriter:
    """Writes the types of one schema; any content of a server gets some form.

    A definition that is referred to is named, not copied, so that the text is never much longer than the schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._names: dict[str, str] = {}
        self._references: list[str] = []

    def arguments(self) -> str:
        """The fields of the outermost object, and its further constraints."""
        schema = self._schema
        referred = [self._name(schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
        parts = [self._fields(schema), *referred, *self._write_combined(schema), _constraints(schema)]
        return _join_types([part for part in parts if part], " & ")

    def definitions(self) -> str:
        """The types behind the names written so far. Raises OverflowError when they are too long."""
        written: list[str] = []
        for reference in self._references:  # writing one may name others
            written.append(f"{self._names[reference]} = {self.type_of(self._definition(reference))}")
            if sum(map(len, written)) > MAX_SCHEMA_CHARS:
                raise OverflowError
        return f" where {', '.join(written)}" if written else ""

    # ------------------------------------------------------------ fields

    def _fields(self, schema: Mapping[str, Any]) -> str:
        described = schema.get("properties")
        properties = described if isinstance(described, dict) else {}
        names = schema.get("required")
        required = dict.fromkeys(name for name in names if isinstance(name, str)) if isinstance(names, list) else {}
        fields = {**properties, **{name: True for name in required if name not in properties}}
        shown = [
            f"{one_line(name)}{'' if name in required else '?'}: {self._value(about)}" for name, about in fields.items()
        ]
        others = schema.get("additionalProperties")
        if isinstance(others, dict) and others:
            shown.append(f"[name]: {self._value(others)}")
        return ", ".join(shown)

    def _value(self, schema: Any) -> str:
        """A type with its default and description."""
        if not isinstance(schema, dict):
            return self.type_of(schema)
        default = f" = {_literal(schema['default'])}" if "default" in schema else ""
        return f"{self.type_of(schema)}{default}{_comment(schema.get('description'))}"

    # ------------------------------------------------------------ types

    def type_of(self, schema: Any) -> str:
        """A schema as a type, with its constraints."""
        if not isinstance(schema, dict):
            return "never" if schema is False else "any"
        text = _join_types([*self._plain(schema), *self._write_combined(schema)], " & ") or "any"
        constraints = _constraints(schema)
        return f"({text}){constraints}" if constraints and " | " in text else f"{text}{constraints}"

    def _plain(self, schema: Mapping[str, Any]) -> Iterator[str]:
        if isinstance(schema.get("$ref"), str):
            yield self._name(schema["$ref"])
        if "const" in schema:
            yield _literal(schema["const"])
        elif isinstance(schema.get("enum"), list):
            yield " | ".join(map(_literal, schema["enum"]))
        elif not schema.keys().isdisjoint(SHAPES):
            declared = schema.get("type", "array" if "items" in schema or "prefixItems" in schema else "object")
            kinds = declared if isinstance(declared, list) else [declared]
            yield " | ".join(self._of_kind(kind, schema) for kind in dict.fromkeys(map(str, kinds))) or "never"

    def _of_kind(self, kind: str, schema: Mapping[str, Any]) -> str:
        if kind == "array":
            return self._list(schema)
        fields = self._fields(schema) if kind == "object" else ""
        return f"{{ {fields} }}" if fields else one_line(kind)

    def _list(self, schema: Mapping[str, Any]) -> str:
        first = schema.get("prefixItems")
        if isinstance(first, list):
            return f"[{', '.join(self._value(each) for each in first)}]"
        items = schema.get("items", True)
        text = self.type_of(items)
        comment = _comment(items.get("description")) if isinstance(items, dict) else ""
        return f"({text}{comment})[]" if comment or " | " in text or " & " in text else f"{text}[]"

    def _write_combined(self, schema: Mapping[str, Any]) -> Iterator[str]:
        for keyword, mark in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
            options = schema.get(keyword)
            if isinstance(options, list) and options:
                yield _join_types([self._option(option) for option in options], mark)

    def _option(self, schema: Any) -> str:
        """One of several options; the title of a value may be its only explanation."""
        about = schema if isinstance(schema, dict) else {}
        title = about.get("title") if "const" in about else None
        return f"{self.type_of(schema)}{_comment(about.get('description') or title)}"

    # ------------------------------------------------------------ definitions

    def _name(self, reference: str) -> str:
        """The name under which a definition stands behind `where`."""
        if not reference.startswith("#"):
            return f"any($ref {_literal(reference)})"
        if reference not in self._names:
            name = one_line(unquote(reference.rpartition("/")[2].lstrip("#"))) or "Input"
            is_taken = name in self._names.values()
            self._names[reference] = f"{name}{len(self._names)}" if is_taken else name
            self._references.append(reference)
        return self._names[reference]

    def _definition(self, reference: str) -> Any:
        found: Any = self._schema
        for key in filter(None, reference.lstrip("#").split("/")):
            plain = unquote(key).replace("~1", "/").replace("~0", "~")
            found = found.get(plain, True) if isinstance(found, dict) else True
        return found


def _join_types(parts: list[str], mark: str) -> str:
    """Parts of a type with a mark between them; in parentheses where another mark stands in one."""
    other = " & " if mark == " | " else " | "
    return mark.join(f"({part})" if len(parts) > 1 and other in part else part for part in parts)


def _constraints(schema: Mapping[str, Any]) -> str:
    """Everything that a type does not say, keyword by keyword: `(minimum 1, maximum 10)`."""
    said = [f"{one_line(name)} {_literal(value)}" for name, value in schema.items() if name not in EXPRESSED]
    return f"({', '.join(said)})" if said else ""


def _literal(value: Any) -> str:
    """A value as JSON on one line that nothing in it can break or fence in; it stays the same value."""
    text = json.dumps(value, ensure_ascii=False)
    safe = FENCE.sub(lambda found: "".join(map(_escape, found[0])), text)
    return "".join(character if character.isprintable() else _escape(character) for character in safe)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if not character.isascii() else f"\\u{ord(character):04x}"


def _comment(text: Any) -> str:
    """The description of a part, in a comment that it cannot end itself."""
    said = one_line(text, len(text)).replace("*/", "* /") if isinstance(text, str) else ""
    return f" /* {said} */" if said else ""
