"""What a server says about a tool, as text for models, and what is wrong with arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.runtime.mcp.safe_text import one_line, quote_text
from koi_lang.runtime.mcp.tool_signature import field_types, signature

if TYPE_CHECKING:
    from koi_lang.runtime.mcp import validation
    from koi_lang.runtime.mcp.validation import Checks
else:
    validation = lazy_module("koi_lang.runtime.mcp.validation")

# A signature that is longer is no help beside an error.
MOST_OF_A_HINT = 1500
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
        """What to do when arguments do not fit."""
        about = self.signature
        return f"Use {about}." if len(about) <= MOST_OF_A_HINT else "`get_mcp_tool_info` gives its whole schema."

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
        """What is wrong with arguments, one clause a problem that names the field.

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
    def _checks(self) -> Checks:
        return validation.Checks(self.schema)


def mend_tool(tool: Any, find_odd: Callable[[Mapping[str, Any]], Sequence[Sequence[int | str]]]) -> tuple[Any, str]:
    """A tool as a server describes it, without what the protocol does not allow, and a clause that says what that is.

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
