"""What a server says about a tool, as text for models, and what is wrong with arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a server; everything here was written by the server.

    Attributes:
        schema: JSON Schema of its arguments.
        annotations: hints such as `readOnlyHint`.
    """

    server: str
    name: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any]

    @property
    def signature(self) -> str:
        """The call as it stands in prompts: `files.read(path: string, limit?: integer)`."""
        shown = [f"{p['name']}{'' if p['required'] else '?'}: {p['type']}" for p in self.parameters()]
        return f"{self.server}.{self.name}({clipped(', '.join(shown))})"

    @property
    def line(self) -> str:
        """One line about the tool, however it is described."""
        return " ".join(f"{self.signature} {clipped(' '.join(self.description.split()))}".split())

    def parameters(self) -> list[dict[str, Any]]:
        """Name, type, description and `required` of every parameter, in the order of the schema."""
        properties, required = self.schema.get("properties"), self.schema.get("required")
        names = required if isinstance(required, list) else []
        described = properties.items() if isinstance(properties, dict) else ()
        return [{**_described(name, schema), "required": name in names} for name, schema in described]

    def problems(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with arguments, one clause a problem that names the field.

        Raises:
            ValueError: the schema of the tool itself is not usable.
        """
        from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
        from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
        from referencing import Registry
        from referencing.exceptions import Unresolvable

        kind = validator_for(self.schema, default=Draft202012Validator)
        try:
            kind.check_schema(self.schema)
            # An empty registry: what the schema refers to is never fetched from anywhere.
            for error in kind(self.schema, registry=Registry()).iter_errors(arguments):
                yield _clause(error.absolute_path, error.message)
        except (SchemaError, Unresolvable) as error:
            raise ValueError(clipped(str(error).partition("\n")[0])) from error


def _described(name: str, schema: Any) -> dict[str, Any]:
    about = schema if isinstance(schema, dict) else {}
    return {"name": name, "type": _type_text(about), "description": str(about.get("description", ""))}


def _type_text(schema: Mapping[str, Any]) -> str:
    """A schema as a short type, whatever a server writes into it."""
    options = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(options, list):
        return " | ".join(_type_text(option) for option in options if isinstance(option, dict))
    if isinstance(schema.get("enum"), list):
        return " | ".join(map(repr, schema["enum"]))
    declared = schema.get("type", "any")
    if declared == "array":
        items = schema.get("items")
        return f"{_type_text(items) if isinstance(items, dict) else 'any'}[]"
    return " | ".join(map(str, declared)) if isinstance(declared, list) else str(declared)


def _clause(path: Any, message: str) -> str:
    field = ".".join(map(str, path))
    return f"`{field}`: {clipped(message)}" if field else clipped(message)


def clipped(text: str, most: int = MOST_SHOWN) -> str:
    """A text, or its beginning with a mark that it goes on; at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
