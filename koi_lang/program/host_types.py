"""Declared types as types of the host language: models of Pydantic, and types of TypeScript."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from koi_lang.js.value_bounds import bounds_words

Schema: TypeAlias = Mapping[str, Any]
TYPESCRIPT = {"string": "string", "boolean": "boolean", "integer": "number", "number": "number", "null": "null"}
PYTHON = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "null": "None"}
# Bounds by the parameters of `Field`.
PARAMETERS = {
    "minimum": "ge", "maximum": "le", "minLength": "min_length", "maxLength": "max_length", "minItems": "min_length",
    "maxItems": "max_length", "pattern": "pattern",
}  # fmt: skip
# A name of a field that needs no quotes in TypeScript.
PLAIN = re.compile(r"[A-Za-z_]\w*")
# What the regular expressions of Rust do not have, which Pydantic uses unless it is told otherwise.
LOOKS_AROUND = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<")
# Names that mean something else in the module that is written, or in each model.
TAKEN = frozenset("Annotated Any BaseModel ConfigDict Field Literal TypeAliasType".split())
TAKEN_BY_MODELS = frozenset(
    "construct copy dict fields from_orm json parse_file parse_obj parse_raw schema validate".split()
)
# Names in annotations, which a field with a default hides from those of its model.
TAKEN_BY_TYPES = frozenset("bool float int list str".split())


# ---------------------------------------------------------------- TypeScript


def typescript_module(types: Mapping[str, Schema], note: str) -> str:
    """A module that exports a type for each schema.

    Args:
        types: schemas by the names of types.
        note: a line about where the module is from.
    """
    parts = [f"// {note}"]
    for name, schema in types.items():
        declared = f"type {name} = {typescript_type(schema)};"
        if "properties" in schema:
            declared = "\n".join([f"interface {name} {{", *_members(schema, "  "), "}"])
        parts.append(f"{_comment(schema, '')}export {declared}")
    return "\n\n".join(parts) + "\n"


def _members(schema: Schema, indent: str) -> Iterator[str]:
    """The fields of an object, each below its comment; behind it where the object stands in one line."""
    for name, part in schema["properties"].items():
        mark = "" if name in schema.get("required", ()) else "?"
        key = name if PLAIN.fullmatch(name) else json.dumps(name)
        comment = _comment(part, indent)
        comment = comment if indent else " ".join(comment.split("\n"))
        yield f"{comment}{indent}{key}{mark}: {typescript_type(part)};"


def _comment(schema: Schema, indent: str) -> str:
    """What is said of a value, and its bounds, above its type."""
    said, bounds = schema.get("description", ""), _bounds_in(schema)
    said = ", ".join(filter(None, (said.rstrip(".") if bounds else said, bounds))).replace("*/", "*\\/")
    return f"{indent}/** {said} */\n" if said else ""


def _bounds_in(schema: Schema) -> str:
    """The bounds of a value, of each kind of it, and of its items."""
    options = (_bounds_in(each) for each in schema.get("anyOf") or schema.get("oneOf") or ())
    items = _bounds_in(schema["items"]) if isinstance(schema.get("items"), dict) else ""
    parts = (bounds_words(schema), " or ".join(dict.fromkeys(filter(None, options))), items and f"each {items}")
    return ", ".join(filter(None, parts))


def typescript_type(schema: Schema) -> str:
    """A schema as a type of TypeScript."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return " | ".join(dict.fromkeys(map(typescript_type, options)))
    match schema.get("type"):
        case "array":
            return f"Array<{typescript_type(schema.get('items', {}))}>"
        case "object" if schema.get("properties"):
            return f"{{ {' '.join(_members(schema, ''))} }}"
        case "object":
            return f"Record<string, {typescript_type(schema.get('additionalProperties') or {})}>"
        case list() as types:
            return " | ".join(TYPESCRIPT[each] for each in types)
        case str() as type:
            return TYPESCRIPT[type]
    return "unknown"


# ---------------------------------------------------------------- Pydantic


def pydantic_module(types: Mapping[str, Schema], note: str) -> str:
    """A module with a model for each schema of an object, and an alias for each other one.

    Args:
        types: schemas by the names of types.
        note: a line about where the module is from.
    """
    written = _Models({name: f"{name}Type" if name in TAKEN else name for name in types})
    for name, schema in types.items():
        written.declare(written.names[name], schema)
    text = "\n\n\n".join(written.declarations)
    parts = [f'"""{note}"""', "from __future__ import annotations"]
    typing = [name for name in ("Annotated", "Any", "Literal") if re.search(rf"\b{name}\b", text)]
    parts += [f"from typing import {', '.join(typing)}"] if typing else []
    pydantic = [name for name in ("BaseModel", "ConfigDict", "Field") if re.search(rf"\b{name}\b", text)]
    imported = [f"from pydantic import {', '.join(pydantic)}"] if pydantic else []
    imported += ["from typing_extensions import TypeAliasType"] if "TypeAliasType(" in text else []
    return "\n\n".join([*parts, "\n".join(imported)]) + f"\n\n\n{text}\n"


@dataclass(slots=True)
class _Models:
    """Writes the declarations of a module.

    Attributes:
        names: of the classes and aliases by the names of types.
    """

    names: dict[str, str]
    declarations: list[str] = field(default_factory=list)

    def declare(self, name: str, schema: Schema) -> None:
        """Add a model or an alias, behind the models of objects in it."""
        if "properties" not in schema:
            about = f"# {schema['description']}\n" if "description" in schema else ""
            self.declarations.append(f"{about}{name} = TypeAliasType({name!r}, {self._type(schema, name)!r})")
            return
        taken = {*TAKEN, *TAKEN_BY_MODELS, *TAKEN_BY_TYPES, *self.names.values()}
        fields = [self._field(each, taken, name, schema) for each in schema["properties"]]
        options = ["extra='allow'", "strict=True", "populate_by_name=True"]
        options += ["regex_engine='python-re'"] if LOOKS_AROUND.search(json.dumps(schema)) else []
        description = [f"    {schema['description']!r}\n"] if "description" in schema else []
        config = f"    model_config = ConfigDict({', '.join(options)})\n"
        self.declarations.append("\n".join([f"class {name}(BaseModel):", *description, config, *fields]))

    def _field(self, name: str, taken: set[str], owner: str, schema: Schema) -> str:
        """A field of a model, under a name that is not taken where its own cannot stand in a class."""
        python = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "field"
        python = f"field_{python}" if python[0].isdigit() or python.startswith("model_") else python
        while keyword.iskeyword(python) or python in taken:
            python += "_"
        taken.add(python)
        part = schema["properties"][name]
        type = self._type(part, f"{owner}{python.title().replace('_', '')}")
        is_required = name in schema.get("required", ())
        options = [f"alias={name!r}"] if python != name else []
        options += [f"description={part['description']!r}"] if "description" in part else []
        default = [] if is_required else ["None" if not options else "default=None"]
        value = f" = Field({', '.join([*default, *options])})" if options else "".join(f" = {each}" for each in default)
        return f"    {python}: {type if is_required else f'{type} | None'}{value}"

    def _type(self, schema: Schema, name: str) -> str:
        """The annotation of a value; an object in it becomes a model of a name."""
        bounds = [f"{PARAMETERS[key]}={value!r}" for key, value in schema.items() if key in PARAMETERS]
        plain = self._plain_type(schema, name)
        return f"Annotated[{plain}, Field({', '.join(bounds)})]" if bounds else plain

    def _plain_type(self, schema: Schema, name: str) -> str:
        if "$ref" in schema:
            return self.names[str(schema["$ref"]).rpartition("/")[2]]
        if "const" in schema or "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema.get('enum', [schema.get('const')])))}]"
        if "anyOf" in schema:
            options = [option for option in schema["anyOf"] if "const" not in option]
            values = [option["const"] for option in schema["anyOf"] if "const" in option]
            found = [f"Literal[{', '.join(map(repr, values))}]"] if values else []
            found += [self._type(option, f"{name}{at}") for at, option in enumerate(options, 1)]
            return " | ".join(dict.fromkeys(found))
        match schema.get("type"):
            case "array":
                return f"list[{self._type(schema.get('items', {}), f'{name}Item')}]"
            case "object" if schema.get("properties"):
                self.declare(name, schema)
                return name
            case "object":
                return "dict[str, Any]"
            case str() as type:
                return PYTHON[type]
        return "Any"
